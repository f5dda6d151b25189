#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the report of a results folder: every figure as PNG and SVG, and one HTML file that holds them all.

    analysis/report.py results/quick [-o results/quick/report.html] [--markdown docs/results.md]

With --markdown it also writes the findings as one page of text, with commit and machine. This is how docs/results.md is made from the committed results (data/results).
"""
import argparse
import base64
import html
import os
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from analysis import checks, claim, closeness, origin, overview, pilots, predictions, published, results, rivals, setups, style, verdicts  # noqa: E402
from analysis.figures import (
    FIGURES,  # noqa: E402
    MORE,  # noqa: E402
)
from analysis.effects import LEAST_PAIRS, LEAST_SECONDS  # noqa: E402
from analysis.measures import GIB  # noqa: E402
from analysis.origin import few, mixed  # noqa: E402
from analysis.stats import median  # noqa: E402

CSS = """
body { font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; color: #1a1a1a; }
h1 { font-size: 1.6em; } h2 { margin-top: 2.2em; border-bottom: 1px solid #ccc; font-size: 1.25em; } h3 { margin-top: 1.8em; font-size: 1.05em; }
table { border-collapse: collapse; font-size: 0.82em; margin: 0.8em 0; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid #ddd; padding: 0.25em 0.7em 0.25em 0; text-align: left; vertical-align: top; } th { border-bottom: 1.5px solid #444; }
img { max-width: 100%; height: auto; } p.note, .command { color: #444; font-size: 0.88em; } code, .command { font-family: "DejaVu Sans Mono", monospace; font-size: 0.8em; overflow-wrap: anywhere; }
.confirmed::before { content: "✓ "; } .at-least-as-good::before { content: "≥ "; } .does-not-hold-here::before { content: "✗ "; } .undecided::before { content: "? "; } .not-tested::before { content: "– "; }
.confirmed { color: #00634a; font-weight: 600; } .at-least-as-good { color: #0057a0; font-weight: 600; } .does-not-hold-here { color: #a04000; font-weight: 600; } .undecided { color: #555; font-weight: 600; } .not-tested { color: #888; }
tr.failed td { color: #a04000; } @media print { body { max-width: none; } img, tr { break-inside: avoid; } table { display: table; } } details { margin: 0.5em 0; } summary { cursor: pointer; }
"""


def escape(value):
    return html.escape(str(value))


def table(header, rows, classes=None):
    if not rows:
        return ""
    head = "".join(f"<th>{escape(h)}</th>" for h in header)
    body = ""
    for i, row in enumerate(rows):
        mark = f' class="{classes[i]}"' if classes and classes[i] else ""
        body += f"<tr{mark}>" + "".join(f"<td>{c if isinstance(c, Raw) else escape(c)}</td>" for c in row) + "</tr>\n"
    return f"<table><tr>{head}</tr>\n{body}</table>\n"


class Raw(str):
    """Text that is HTML already."""


def picture(drawn, folder, warning=""):
    """Writes PNG and SVG, and returns the img element with the PNG inside. A warning is drawn in the figure itself, because people copy figures without their text."""
    if drawn.figure is None:
        return ""
    if warning:
        style.warn(drawn.figure, warning[: warning.index(" (")])
    folder.mkdir(parents=True, exist_ok=True)
    png = style.image(drawn.figure, "png")
    (folder / f"{drawn.name}.png").write_bytes(png)
    drawn.figure.set_layout_engine("none")  # it has done its work
    (folder / f"{drawn.name}.svg").write_bytes(style.image(drawn.figure, "svg"))
    style.close(drawn.figure)
    return f'<img alt="{escape(drawn.title)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">\n'


def commands(plan):
    """HTML of the commands behind a figure. Failed runs are marked."""
    rows, classes = [], []
    for group in plan.groups.values():
        run = group.runs[-1]
        settings = "".join(f"{k}={v} " for k, v in run.knobs.items())
        state = "skipped" if run.skipped else "done" if not group.failures else f"{len(group.failures)} of {len(group.runs)} failed: {group.failures[0].failure}"
        rows.append([group.id, f"{len(group.runs)}", state, Raw(f"<code>{escape(settings + shlex.join(run.command))}</code>")])
        classes.append("failed" if group.failures else "")
    return f"<details id='commands-{escape(plan.name)}'><summary>Commands ({escape(plan.name)})</summary>" + table(["run", "repeats", "state", "command"], rows, classes) + "</details>\n"


def conditions(plan):
    """A line that says what was run: problems, DRAM, repeats."""
    reports = [r.report for r in plan.runs if "stencil" in (r.report.get("problem") or {})]
    if not reports:
        return ""
    problems = few(f"{p['nx']} x {p['ny']} x {p['nz']}" for p in (r["problem"] for r in reports))
    stencils = few(f"{r['problem']['stencil']} {r['problem']['dtype']}" for r in reports)
    steps = few(str(r["problem"]["nt"]) for r in reports)
    buffers = few(f"{2 * r['layout']['buffer_bytes'] / GIB:.3g}" for r in reports if r.get("layout"))
    limits = few(g["limit"] for g in (r.params for r in plan.runs) if g.get("limit"))
    repeats = few(str(len(g.runs)) for g in plan.groups.values())
    return (f"Measured: {stencils}; {problems} cells; {steps} steps" + (f"; two Buffers of {buffers} GiB in all" if buffers else "") + (f"; memory cgroup of {limits} in runs with limited DRAM" if limits else "")
            + f"; runs of each configuration: {repeats}.")  # fmt: skip


def published_table(values):
    rows = [[v["what"], v["value"] if v["value"] is not None else "not given in the text", v["unit"] if v["value"] is not None else "", v.get("note") or f"{v['paper']}, {v['place']}"] for v in values.values.values()]
    return f'<details open><summary>Published: {escape(values.source)}</summary><p class="note">{escape(values.conditions)}{escape("".join(f"; {paper}: {said}" for paper, said in values.particular.items()))}</p>' + table(["what", "value", "unit", "where"], rows) + "</details>\n"


def shown(drawn, folder, warning=""):
    """Heading, picture, table and notes of a figure."""
    if drawn is None:
        return ""
    notes = [*drawn.notes, *([warning] if warning else [])]
    return f'<h3 id="{escape(drawn.name)}">{escape(drawn.title)}</h3>\n' + picture(drawn, folder, warning) + table(drawn.header, drawn.rows) + "".join(f'<p class="note">{escape(n)}</p>\n' for n in notes)


def sections(found, known, folder):
    """HTML of every figure, in order. A figure that could not be drawn says why. Published values and commands follow the first figure that they belong to."""
    text, told = "", set()
    for draw, plan_name, values_name in (*FIGURES, *MORE):
        values = known.get(values_name)
        plan = found.get(plan_name)
        if plan is None or not plan.groups:
            text += f"<h3>{escape(plan_name)}</h3><p class='note'>Not run: no results of the plan {escape(plan_name)}.</p>\n"
            continue
        drawn, warning = draw(plan, values), mixed(plan)
        for d in drawn if isinstance(drawn, list) else [drawn]:
            text += shown(d, folder, warning)
        if plan_name not in told:
            text += f'<p class="note">{escape(conditions(plan))}</p>\n'
        if values and values_name not in told:
            text += published_table(values)
        text += commands(plan) if plan_name not in told else f'<p class="note">Commands: <a href="#commands-{escape(plan_name)}">{escape(plan_name)}</a> above.</p>\n'
        told |= {plan_name, values_name}
    return text


def word_of(state, found):
    """The state in words. A quick run has time for a few rounds of a few plans only, so a longer run may decide what it leaves undecided."""
    return "undecided in a quick run" if state == claim.UNDECIDED and verdicts.quick(found) else state


def how_many(n, state):
    return f"{n} {state if n == 1 else state.replace('does not', 'do not')}"


def verdict_counts(found, decided):
    return ", ".join(how_many(sum(v.state == state for v in decided), word_of(state, found)) for state in claim.STATES)


def history_of(folder):
    """Paragraphs on how the measurements of a folder came about, if its history.txt has some: they hold for these results alone."""
    path = Path(folder) / "history.txt"
    return [part.strip().replace("\n", " ") for part in path.read_text().split("\n\n") if part.strip()] if path.exists() else []


HISTORY = "What was changed after results were seen"


def verdict_table(found, decided):
    rows = [[Raw(f'<span class="{v.state.replace(" ", "-")}">{word_of(v.state, found)}</span>'), v.finding, v.source, v.published, v.effect, v.rule, v.numbers, origin.runs_of(found, v.plans)] for v in decided]
    meanings = "".join(f"<li>{escape(word_of(state, found).capitalize())}: {escape(said)}</li>" for state, said in verdicts.MEANINGS.items())
    rules = "".join(f"<p>{escape(rule)}</p>\n" for rule in (f"{verdict_counts(found, decided)}.", *verdicts.RULES))
    return f"{rules}<ul>{meanings}</ul>" + table(["state", "finding", "source", "published", "measured here, with its interval", "rule", "numbers", "runs"], rows)


def where(found):
    """HTML with a table for each Sitting."""
    all_of_them = origin.sittings(found)
    return "".join((f"<h3>Session {one.number}</h3>" if len(all_of_them) > 1 else "") + table(["", ""], origin.rows(one)) for one in all_of_them)


def failed_runs(found):
    rows = [[p.name, f"{r.id} #{r.repeat + 1}", r.status, r.failure, r.stderr.strip()[-300:]] for p in found.values() for r in p.runs if not r.ok]
    return table(["plan", "run", "status", "why", "last words"], rows, ["failed"] * len(rows)) if rows else "<p>None.</p>"


def prediction_summary(found):
    """Sentences on the errors of the predictions, and on the time that the tuner's choices cost."""
    counted = [p for p in predictions.predictions(found) if p.counts]
    errors = predictions.errors_by_problem(counted)
    text = []
    if errors:
        middle, low, high = predictions.median_error(errors, claim.EACH_LEVEL)
        text.append(f"Predicted seconds differ from measured seconds by {middle:.0%}" + (f" (interval {low:.0%} to {high:.0%})" if low is not None else "") + ". " + (f"This is the median over {len(errors)} problems, where the error of a problem is the median over its configurations. " if len(errors) > 1 else "This is the median over the configurations of the one problem that counts. ")
                    + f"{len(counted)} configuration{'s count' if len(counted) > 1 else ' counts'}: those on aio and uring with at least {LEAST_PAIRS} runs and a median time of at least {LEAST_SECONDS:g} s.")  # fmt: skip
    text += predictions.with_which_rates(counted)
    costs = predictions.study(found)
    if costs:
        middle = median([median(list(r.ratios.values())) for r in costs])
        itself = sum(set(r.ratios.values()) == {1.0} for r in costs)
        text.append(f"Regret: the tuner's choice took {middle:.3f} times as long as the best plan that was run. This is the median over {len(costs)} choices; {itself} of them are themselves the best plan.")
    return text


def cells(row):
    return "| " + " | ".join(str(c).replace("|", "\\|").replace("\n", " ") for c in row) + " |"


def head(docs):
    """The first lines of the page of text. docs: the path from the page to the folder docs."""
    at = lambda path: os.path.normpath(os.path.join(docs, path))  # noqa: E731
    return [
        "# Results", "",
        "memext measures again what five papers found about problems larger than memory. `experiments/reproduce.sh --night` makes such runs and such a page on your machine. With `--quick` it makes a shorter page in 20 minutes.", "",
        f"The column `source` names a paper: `iwapt2016` and `slides` (H. Midorikawa), `japanese` (H. Midorikawa, H. Tan), `wavefront` (P.-N. Clauss, J. Gustedt, F. Suter) or `hhrt` (T. Endo). [papers.json]({at('../data/published/papers.json')}) has their titles. "
        "The source `memext` marks findings of memext's own.", "",
        f"[choosing.md]({at('choosing.md')}) explains backends and algorithms. The findings use these words:", "",
        "- *aio*, *uring*, *mmap* and *swap* are backends: ways to move data between the drive and DRAM. *Explicit I/O* is aio or uring. *Normal execution* keeps all data in DRAM.",
        "- A *Buffer* is a file or an array that holds the whole grid. A run has two, or three if it commits less often than after each sweep.",
        "- A *Block* is a piece of the grid in DRAM. An *iBlock* is the piece of a Block that is computed at once in cache: `--iblock IY IZ` with the engine `iblock`. *Temporal blocking* computes several steps, *bt*, on a Block at a time.",
        "- *mmap1*, *mmap1+opt*, *mmap2*, *mmap3y*, *mmap5y*, *aio3y* and *aio5y* are versions of the papers' algorithm-2. The first two compute on the mapping, the others through Blocks. memext's counterparts are the algorithms `direct-skewed`, `direct-skewed-opt`, `skewed`, `skewed-y` and `skewed-min`. They were written from the papers' descriptions, not from their programs. "
        "*aio2* is `skewed` on aio, which the papers do not name. Algorithm-1 is `redundant`. `stream` is memext's own.",
        "- *star7*, *edge19* and *box27* are stencils of 7, 19 and 27 points, with radius 1.",
        "- *buf2blk*, *blk2buf*, *blk2blk* and *update* are parts of a run's time: reading a Block, writing one, copying within DRAM, and computing.",
        "- *Blk-Tune* and *Naive-Tune* are the papers' tuners, which choose Blocks. With *manual choice* a person chose them. *CalcTrans* predicts the bytes that a plan moves.",
        "- A name such as *fig05* is that of a plan: the runs, listed in `experiments/plans`, that measure a figure again. The *scale* of a run (quick, thorough, night or full) is the size of its problem.",
        "- *crest0*, *crest4* and *crest6* are machines of the papers.", "",
    ]  # fmt: skip


def markdown(found, decided, known=None, docs=".", history=()):
    """The findings as one page of text. docs: the path from the page to the folder docs. history: history_of."""
    lines = head(docs)
    all_of_them = origin.sittings(found)
    lines += ["A session has all runs of one program on one machine. No ratio compares runs of two sessions.", ""] if len(all_of_them) > 1 else []
    for one in all_of_them:
        lines += [f"## Session {one.number}", ""] if len(all_of_them) > 1 else []
        lines += [cells(["", ""]), "| --- | --- |", *(cells(r) for r in origin.rows(one) if r[0] != "storage" or "None" not in r[1]), ""]
    notes = [f"- {p.name}: {m}" for p in found.values() if (m := mixed(p))]
    lines += ["These plans have runs of several commits:", "", *notes, ""] if notes else []
    lines += ["## What was run", "", *(f"- {said}" for said in setups.lines(found, known or published.read_all())), ""]
    lines += ["## Findings", "", f"{verdict_counts(found, decided)}.", "", *(line for rule in verdicts.RULES for line in (rule, ""))]
    lines += [*(f"- {word_of(state, found).capitalize()}: {said}" for state, said in verdicts.MEANINGS.items()), ""]
    for state in claim.STATES:
        rows = [v for v in decided if v.state == state]
        if not rows:
            continue
        lines += [f"### {word_of(state, found).capitalize()}", ""]
        if state == claim.NOT_TESTED:
            lines += [cells(["finding", "source", "published", "why"]), "| --- | --- | --- | --- |", *(cells([v.finding, v.source, v.published, v.numbers]) for v in rows), ""]
        else:
            lines += [cells(["finding", "source", "published", "measured here", "rule", "numbers", "runs"]), "| --- | --- | --- | --- | --- | --- | --- |", *(cells([v.finding, v.source, v.published, v.effect, v.rule, v.numbers, origin.runs_of(found, v.plans)]) for v in rows), ""]
    if asked := pilots.rows(found):
        lines += ["## Rounds", "", pilots.EXPLAINED, "", cells(pilots.HEAD), "|" + " --- |" * len(pilots.HEAD), *(cells(row) for row in asked), ""]
    lines += [f"## {HISTORY}", "", *(line for t in history for line in (t, ""))] if history else []
    lines += ["## Predictions", "", *prediction_summary(found), ""] if prediction_summary(found) else []
    close = closeness.how_close(found)
    lines += [f"## {closeness.title(found)}", "", *(line for t in close for line in (t, ""))] if close else []
    lost = [f"- {p.name} {r.id} #{r.repeat + 1}: {r.failure}" for p in found.values() for r in p.runs if not r.ok and not r.skipped]
    lines += ["## Failed runs", "", *(lost or ["None."]), ""]
    lines += ["## Configurations", "", "All configurations whose runs completed. A Block is given by its rows and planes. Seconds are those of the steps, for mapped files with the last write-back: the median, and in brackets the least and the most.", ""]
    for p in found.values():
        if rows := setups.configurations(p):
            lines += [f"<details><summary>{p.name}</summary>", "", cells(setups.COLUMNS), "|" + " --- |" * len(setups.COLUMNS), *(cells(r) for r in rows), "", "</details>", ""]
    return "\n".join(lines).rstrip() + "\n"


def rounds(found):
    """How many rounds the pilots asked for; nothing if no plan had one."""
    asked = pilots.rows(found)
    return f"<h3>Rounds</h3><p>{escape(pilots.EXPLAINED)}</p>" + table(pilots.HEAD, asked) if asked else ""


def agreement_table(found):
    rows, classes = [], []
    worst = {}
    for a in checks.agreements(found):
        key = (a.plan, a.way)
        off = max(abs(a.process - a.own), abs((a.device if a.device is not None else a.own) - a.own)) / max(1, a.own)
        if key not in worst or not a.good or off > worst[key][0]:
            worst[key] = (off, a)
    for (plan, way), (off, a) in worst.items():
        rows.append([plan, a.id, way, a.own, "equal" if a.predicted_equal else a.predicted, f"{a.process - a.own:+d}", f"{a.device - a.own:+d}" if a.device is not None else "no timeline", "agree" if a.good else "DISAGREE"])
        classes.append("" if a.good else "failed")
    note = f'<p class="note">For each plan and direction the table has the run whose counters differ most. /proc/self/io may differ by {checks.PROCESS_SLACK:.1%} or {checks.PROCESS_SLACK_BYTES >> 20} MiB. The block device serves the whole machine, so its counter may differ by {checks.DEVICE_SLACK:.0%} or {checks.DEVICE_SLACK_BYTES >> 20} MiB.</p>'
    return note + table(["plan", "run", "direction", "bytes that memext counted", "CalcTrans", "/proc/self/io", "block device", "verdict"], rows, classes)


def build(folder, out, text=None):
    """Reads the results, draws the figures and writes the report. Also writes the findings as a page of text if text names a file. Returns the verdicts."""
    found, known = results.read_all(folder), published.read_all()
    if not found:
        raise SystemExit(f"report.py: {folder} holds neither */raw.jsonl nor packed results (*.jsonl.gz); name a results folder, or make one with experiments/run.py")
    decided, history = verdicts.all_verdicts(found, known), history_of(folder)
    figures = out.parent / "figures"
    close = "".join(f"<p>{escape(t)}</p>\n" for t in closeness.how_close(found)) or "<p>Not run.</p>"
    scale = ", ".join(dict.fromkeys(p.scale for p in found.values()))
    page = f"""<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>memext: the papers' comparisons, measured again</title>
<style>{CSS}</style>
<h1>memext: the papers' comparisons, measured again</h1>
<p>A measured value is the median over the rounds, with a line from the smallest to the largest value. A ratio pairs runs of one round. Its 95 % interval stands in square brackets in the tables, and holds for that ratio alone. The findings have wider intervals, which all hold together with 95 %. A single timed run is not drawn. Open marks and boxes are published values, with one shape of mark for each source; × marks failed repeats. Scale of the runs: {escape(scale)}. The papers' problems are larger and their machines are different, so compare order and ratio.</p>
<p><a href="#findings">Findings</a> · <a href="#predictions">Predictions</a> · <a href="#question">{closeness.title(found)}</a> · <a href="#figures">Figures</a> · <a href="#counters">Counters</a> · <a href="#failed">Failed runs</a></p>
<h2>Where this was measured</h2>{where(found)}
<h2 id="setups">What was run here, and what the papers ran</h2><ul>{"".join(f"<li>{escape(said)}</li>" for said in setups.lines(found, known))}</ul>
<h2 id="findings">Findings of the papers, and what was measured here</h2>{"".join(shown(d, figures) for d in overview.findings(decided))}{verdict_table(found, decided)}
{rounds(found)}{"".join((f"<h3>{HISTORY}</h3>", *(f"<p>{escape(t)}</p>" for t in history))) if history else ""}<h2 id="predictions">Predicted against measured, and the tuner's regret</h2>{"".join(f"<p>{escape(t)}</p>" for t in prediction_summary(found))}{shown(overview.predicted(found), figures)}{shown(overview.regret(found), figures)}
<h2 id="question">{closeness.title(found)}</h2>{close}
<h2 id="figures">Figures</h2>{sections(found, known, figures)}
<h2 id="rivals">memext compared with other tools</h2>{rivals.section(folder, figures)}
<h2 id="counters">Do the counters agree?</h2>{agreement_table(found)}
<h2 id="failed">Failed runs</h2>{failed_runs(found)}
<h2>Sources</h2>{table(["", ""], list(next(iter(known.values())).papers.items()))}
</html>
"""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page)
    if text is not None:
        text.parent.mkdir(parents=True, exist_ok=True)
        text.write_text(markdown(found, decided, known, os.path.relpath(ROOT / "docs", text.resolve().parent), history))
    return decided


def main(argv=None):
    p = argparse.ArgumentParser(prog="analysis/report.py", description=__doc__.splitlines()[0])
    p.add_argument("results", type=Path, help="results folder of experiments/run.py, e.g. results/quick, or a folder of packed results, e.g. data/results")
    p.add_argument("-o", "--output", type=Path, help="HTML file to write (default: report.html in the results folder); its figures go to a folder figures beside it")
    p.add_argument("--markdown", type=Path, metavar="FILE", help="also write the findings as a page of text to FILE, e.g. docs/results.md")
    o = p.parse_args(argv)
    out = o.output or o.results / "report.html"
    try:
        decided = build(o.results, out, o.markdown)
    except results.SchemaError as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 2
    for v in decided:
        print(f"{v.state:10} {v.finding}: {v.effect or v.numbers}")
    print(f"report: {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
