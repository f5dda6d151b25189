#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Table and picture of what experiments/rivals/run.py recorded: memext compared with other tools.

    analysis/rivals.py results/full/rivals/rivals.json [-o FILE.png]

Writes the table (FILE.md), a PNG and an SVG, by default beside the record. Seconds are for all steps, from .npy to .npy. If a run measured fewer steps ("whole" is
false), its seconds are those of import and export, plus the seconds of a step times all steps.
"""
import argparse
import html
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analysis import style  # noqa: E402
from analysis.stats import median  # noqa: E402

GIB, MIB = 1 << 30, 1 << 20
OURS = "memext"
HEADER = ["run", "best settings found", "steps measured", "seconds for all steps", "Mupdates/s", "s a step", "GiB moved a step", "DRAM + program, MiB", "times memext's time", "bits"]


def words(settings):
    """The settings in words."""
    if "words" in settings:
        return " ".join([*settings["words"], *(["measured rates"] if settings.get("calibrated") else [])]) or "defaults"
    return ", ".join(k if v is True else f"{k} {v}" for k, v in settings.items() if v is not False) or "defaults"


def moved_bytes(r):
    """Bytes that the process read and wrote, and that Linux swapped. Linux counts a write through the page cache when a page becomes dirty."""
    return sum(r.get(k, 0) for k in ("read_bytes", "write_bytes", "swapped_out_bytes")) + max(0, r.get("swapped_in_bytes", 0) - r.get("read_bytes", 0))


def groups(record):
    """[(case, shape, factor)] in the order of measuring."""
    return list(dict.fromkeys((r["case"], tuple(r["shape"]), r["factor"]) for r in record["records"] if r["factor"]))


def why_not(record, name, runs):
    """Why a tool has no number. Of settings that all failed: the last reason, and the steps of their trials."""
    failed = [r for r in runs if r.get("failure")]
    if not runs:
        return record["absent"].get(name)
    if len(failed) < len(runs):
        return "the runs only looked for settings"
    least, most = (end(r["steps"] for r in failed) for end in (min, max))
    return f"all {len(failed)} settings failed: {failed[-1]['failure']} (trials of {least if least == most else f'{least} to {most}'} steps)"


def summary(record, group):
    """The rows of one comparison: [{name, title, why | settings, steps, whole, seconds, least, most, rate, step_s, moved, dram, own, ratio}], in the order of `rivals`."""
    mine = [r for r in record["records"] if (r["case"], tuple(r["shape"]), r["factor"]) == group]
    rows = []
    for name, title in record["rivals"].items():
        runs, row = [r for r in mine if r["rival"] == name], {"name": name, "title": title}
        done = [r for r in runs if r["kind"] == "whole" and not r.get("failure")]
        if not runs and name not in record["absent"]:
            continue
        rows.append(row)
        if not done:
            row["why"] = why_not(record, name, runs)
            continue
        best = done[-1]
        done = [r for r in done if r["settings"] == best["settings"]]
        total = record["steps"]
        seconds = [r["import_s"] + r["export_s"] + r["step_s"] * total for r in done]
        row |= {"settings": words(best["settings"]), "tried": len({json.dumps(r["settings"], sort_keys=True) for r in runs}), "steps": best["steps"], "whole": best["steps"] == total,
                "seconds": median(seconds), "least": min(seconds), "most": max(seconds), "n": len(seconds), "step_s": median([r["step_s"] for r in done]),
                "rate": best["cells"] * total / median(seconds), "moved": moved_bytes(best) / best["steps"], "dram": best["dram_bytes"], "own": best["limit_bytes"] - best["dram_bytes"]}  # fmt: skip
    ours = next((r for r in rows if r["name"] == OURS and "seconds" in r), None)
    for row in rows:
        if ours and "seconds" in row:
            row["ratio"], row["ends"] = row["seconds"] / ours["seconds"], (row["least"] / ours["most"], row["most"] / ours["least"])
            row["pairs"] = min(row["n"], ours["n"])
    return rows


def fused(row):
    return row["name"].endswith("-k")


def findings(rows):
    """Sentences that compare memext with the best other tool, and with the best one that computes one step for each pass."""
    others = [r for r in rows if "ratio" in r and r["name"] != OURS]
    one = [r for r in others if not fused(r)]
    said = []
    for which, some, wanted in (("other tool", others, 3), ("tool that computes one step a pass", one, 20)):
        if some:
            best = min(some, key=lambda r: r["seconds"])
            spread = f"{best['ends'][0]:.1f} to {best['ends'][1]:.1f} in {best['pairs']} runs of each" if best["pairs"] > 1 else "single runs"
            computed = "" if best["whole"] else f", extrapolated from {best['steps']} steps"
            said.append(f"The fastest {which}, {best['title']}, takes {best['ratio']:.1f} times as long as memext ({spread}{computed}; the goal is at least {wanted} times).")
    return said


def cells(row):
    if "why" in row:
        return [row["title"], row["why"], *[""] * (len(HEADER) - 2)]
    spread = f" ({row['least']:.1f} .. {row['most']:.1f})" if row["n"] > 1 else ""
    return [row["title"], f"{row['settings']} ({row['tried']} tried)", f"{row['steps']}" + ("" if row["whole"] else ", the rest extrapolated"), f"{row['seconds']:.1f}{spread}", f"{row['rate'] / 1e6:.0f}",
            f"{row['step_s']:.3f}", f"{row['moved'] / GIB:.3f}", f"{row['dram'] / MIB:.0f} + {row['own'] / MIB:.0f}", f"{row['ratio']:.1f}" if "ratio" in row else "", "same"]  # fmt: skip


def title(record, group):
    case, shape, factor = group
    r = next(r for r in record["records"] if (r["case"], tuple(r["shape"]), r["factor"]) == group)
    return f"{case}, {' x '.join(map(str, reversed(shape)))} with frame, {record['steps']} steps, data of {r['data_bytes'] / GIB:.2f} GiB, {factor:g} times the DRAM"


def plain_loop(record, group):
    """A sentence on the plain loop in DRAM, whose result all others must have; "" if it was not run."""
    found = [r for r in record["records"] if r["kind"] == "plain" and (r["case"], tuple(r["shape"])) == group[:2] and r["steps"] == record["steps"] and not r.get("failure")]
    return f"The plain loop without temporal blocking, with everything in DRAM and no limit, takes {found[-1]['seconds']:.1f} s from .npy to .npy ({found[-1]['cells'] / found[-1]['step_s'] / 1e6:.0f} Mupdates/s)." if found else ""


def markdown(record):
    m = record["machine"]
    ahead = f"; read-ahead {record['read_ahead_kb']} KiB" if record.get("read_ahead_kb") is not None else ""
    lines = [f"Commit {record['commit']}, {m.get('cpu')}, {m.get('cores')} cores, Linux {record['kernel']}{ahead}; " + ", ".join(f"{k} {v}" for k, v in record["versions"].items()) + f". `{record['command']}`", ""]
    for group in groups(record):
        rows = summary(record, group)
        line = lambda row: "| " + " | ".join(str(c).replace("|", "\\|").replace("\n", " ") for c in row) + " |"
        lines += [f"### {title(record, group)}", "", line(HEADER), line(["---"] * len(HEADER)), *(line(cells(r)) for r in rows), ""]
        lines += [" ".join([*findings(rows), plain_loop(record, group)]).strip(), ""]
    return "\n".join(lines)


def _words(row):
    """The text beside a rate: the time relative to memext, the number of runs, and the number of steps."""
    told = [f"{row['rate'] / 1e6:.0f}", *([f"{row['ratio']:.1f} times memext's time"] if "ratio" in row and row["name"] != OURS else []), f"n = {row['n']}" if row["n"] > 1 else "not drawn: one run"]
    return ", ".join([*told, *([] if row["whole"] else [f"{row['steps']} steps measured"])])


def _panel(ax, record, group):
    """Draws dots with the range of the runs, on a logarithmic axis. Dots are open if fewer steps were measured. A single run has its number and no dot."""
    rows = summary(record, group)
    ends = [r["rate"] * r["seconds"] / r[end] / 1e6 for r in rows if "rate" in r for end in ("least", "most")] or [1.0]
    low, high = min(ends) / 2, max(ends) * 12
    for i, r in enumerate(rows):
        if "rate" not in r:
            ax.annotate(f"× {r['why'][:90]}", (low, i), xytext=(3, 0), textcoords="offset points", va="center", fontsize=style.SMALL, color=style.RED)
            continue
        colour, rate = style.GREEN if r["name"] == OURS else style.BLUE if fused(r) else style.ORANGE, r["rate"] / 1e6
        if r["n"] > 1:
            ax.plot([rate * r["seconds"] / r["most"], rate * r["seconds"] / r["least"]], [i, i], color=colour, linewidth=1.4)
            ax.plot([rate], [i], marker="o", color=colour, markerfacecolor=colour if r["whole"] else "white").pop().set_gid(r["name"])
        at = rate * r["seconds"] / r["least"] if r["n"] > 1 else low
        ax.annotate(_words(r), (at, i), xytext=(5, 0), textcoords="offset points", va="center", fontsize=style.SMALL, color=style.BLACK if r["n"] > 1 else style.GREY)
    ax.set_yticks(range(len(rows)), [r["title"] for r in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    style.plain_log(ax.xaxis, low, high)
    style.across(ax)
    ax.set_title(title(record, group), loc="left")


def draw(record):
    """The figure, with a panel for each comparison."""
    found = groups(record)
    count = max((len(summary(record, g)) for g in found), default=1)
    figure, axes = style.new(style.TWO, max(1, len(found)) * (0.19 * count + 0.65), rows=max(1, len(found)), squeeze=False)
    for ax, group in zip(axes[:, 0], found):
        _panel(ax, record, group)
    axes[-1, 0].set_xlabel("1e6 updates per second, from .npy to .npy: median and range")
    return figure


def read(path):
    record = json.loads(Path(path).read_text())
    if not isinstance(record.get("records"), list):
        raise ValueError("the file has no list 'records'")
    return record


def section(folder, figures):
    """HTML for the report, made from folder/rivals/rivals.json. Says so if there is no such file. Writes the pictures."""
    import base64

    path = Path(folder) / "rivals" / "rivals.json"
    if not path.exists():
        return "<p class='note'>Not run: start experiments/rivals/run.py for these results.</p>\n"
    record = read(path)
    images(record, Path(figures) / "rivals.png")
    png = base64.b64encode((Path(figures) / "rivals.png").read_bytes()).decode()
    text = f'<img alt="memext and other tools" src="data:image/png;base64,{png}">\n'
    for group in groups(record):
        rows = summary(record, group)
        row = lambda kind, values: "<tr>" + "".join(f"<{kind}>{html.escape(str(v))}</{kind}>" for v in values) + "</tr>\n"
        text += f"<h3>{html.escape(title(record, group))}</h3><table>{row('th', HEADER)}{''.join(row('td', cells(r)) for r in rows)}</table>\n"
        text += f"<p>{html.escape(' '.join([*findings(rows), plain_loop(record, group)]))}</p>\n"
    return text + f"<p class='note'>Commit {html.escape(record['commit'])}; {html.escape(', '.join(f'{k} {v}' for k, v in record['versions'].items()))}; <code>{html.escape(record['command'])}</code></p>\n"


def images(record, path):
    """Writes the PNG at path, and an SVG beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = draw(record)
    for kind in ("png", "svg"):
        path.with_suffix(f".{kind}").write_bytes(style.image(figure, kind))
    style.close(figure)


def main(argv=None):
    p = argparse.ArgumentParser(prog="analysis/rivals.py", description=__doc__.splitlines()[0])
    p.add_argument("record", type=Path, help="file rivals.json that experiments/rivals/run.py wrote")
    p.add_argument("-o", "--output", type=Path, metavar="FILE.png", help="picture to write; .svg and .md are written beside it (default: beside the record)")
    o = p.parse_args(argv)
    try:
        record = read(o.record)
    except (OSError, ValueError, AttributeError) as error:
        print(f"rivals.py: {o.record}: {error}; name a file that experiments/rivals/run.py wrote", file=sys.stderr)
        return 2
    path = (o.output or o.record).with_suffix(".png")
    images(record, path)
    path.with_suffix(".md").write_text(markdown(record))
    print(f"{path}, .svg and .md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
