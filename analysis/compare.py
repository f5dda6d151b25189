#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Table and picture of several runs of one problem.

    compare.py [--picture PREFIX] [--title TEXT] [--note TEXT] REPORT.json ...

`memext run --json` writes a report. Its `label` key, if any, names the row. Its `timeline` key, if any, names the file of `--timeline`, which
alone has the count of what Linux writes of a mapping. A report that holds only {"label", "skipped"} stands for a run that could not be made;
the text below the table says why. The table is Markdown. Notes below it explain its columns, and then come those of --note. --picture PREFIX
writes PREFIX.png and PREFIX.svg.
"""
import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analysis import timeline
from analysis.measures import GIB, moved_by

COLUMNS = ["run", "algorithm", "sweeps s", "whole s", "read GiB", "written GiB", "storage read", "storage written", "waiting", "peak RSS", "verified"]
TEXT_COLUMNS = 2  # the other columns are numbers, aligned to the right
WHOLE = {"init": "initial grid", "stencil": "sweeps", "checksum": "checksum"}  # phases that every run has, fused or not
NO_RESULT = ("planned", "interrupted", "failed")
NOT_COUNTED = "not counted"


def load(path):
    with open(path) as file:
        report = json.load(file)
    report.setdefault("label", report.get("backend", path))
    if report.get("status") in NO_RESULT:  # its zeros were not measured
        return {"label": report["label"], "failed": report["error"]}
    if is_made(report):
        report["storage"] = storage(report)
    return report


def is_made(report):
    return "skipped" not in report and "failed" not in report


def storage(report):
    """(bytes read, bytes written) on storage in the sweeps, as Linux counted them; None if there is no count."""
    machine, path = report["machine"], report.get("timeline")
    line = timeline.read(path) if path and report["backend"] == "mmap" and Path(path).exists() else None
    wrote = line.total("device_write_bytes") if line is not None and len(line.samples) else None
    return moved_by(report, machine["cgroup_limit_bytes"] or machine["memory_bytes"], wrote)


def whole_seconds(report):
    return sum(report["phases"][phase]["seconds"] for phase in WHOLE)


def is_fused(report):
    return report["fused"]["source"] is True or report["fused"]["checksum"] is True


def verdict(report):
    return {True: "yes", False: "NO", None: "-"}[report["verified"]]


def gib(count):
    return NOT_COUNTED if count is None else f"{count / GIB:.2f}"


def row(report):
    return [report["label"], report["plan"]["algorithm"], f"{report['seconds']:.2f}", f"{whole_seconds(report):.2f}",
            *map(gib, (report["read_bytes"], report["write_bytes"], *report["storage"])),
            f"{100 * report['wait_share']:.1f} %", f"{report['peak_rss_bytes'] / 2**20:.0f} MiB", verdict(report)]  # fmt: skip


def table(reports):
    rows = [COLUMNS] + [row(report) for report in reports if is_made(report)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["| " + " | ".join(cell.ljust(width) if i < TEXT_COLUMNS else cell.rjust(width) for i, (cell, width) in enumerate(zip(cells, widths))) + " |"
             for cells in rows]  # fmt: skip
    lines.insert(1, "| " + " | ".join("-" * width if i < TEXT_COLUMNS else "-" * (width - 1) + ":" for i, width in enumerate(widths)) + " |")
    return "\n".join(lines)


def missing(reports):
    return [f"{report['label']}: {said}: {report[key]}" for report in reports for key, said in (("skipped", "not run"), ("failed", "failed")) if key in report]


def notes(made):
    """Sentences that explain the columns, as far as these runs need them."""
    said = ["`sweeps s` is the time of the time steps. `whole s` also has the initial grid and the checksum. Verification is in neither.",
            "`read GiB` and `written GiB` are what the schedule of the sweeps moves. `storage` is what Linux counted in the sweeps, in GiB."]  # fmt: skip
    backends = {report["backend"] for report in made}
    if "mmap" in backends:
        said.append("What mmap wrote is the count of the whole disk, so it includes writes of other programs.")
    if "swap" in backends:
        said.append("The count of swap is that of the whole machine.")
    fused = [report for report in made if is_fused(report)]
    if fused:
        said.append("A fused run makes the initial grid inside its first sweep. It takes the checksum inside its last one.")
    if 0 < len(fused) < len(made):
        said.append("The runs that are not fused (`--no-fuse`) do both in separate passes, so their sweeps are time steps alone.")
        labels = " and ".join(f"`{report['label']}`" for report in fused)
        said.append(f"Use `whole s` to compare {labels} with the runs that are not fused.")
    return said


def title(report):
    problem = report["problem"]
    buffers = 2 * report["layout"]["buffer_bytes"] / GIB
    return (f"{problem['stencil']}, {problem['nx']} x {problem['ny']} x {problem['nz']}, {problem['nt']} steps, {problem['dtype']}: "
            f"Buffers of {buffers:.2f} GiB")


def bars(axis, reports, parts, unit, total=None):
    """Stacked horizontal bars. parts: [(name, colour, value of a report)]. total makes the text behind the bar of a report; without it the text is the sum."""
    rows, left = range(len(reports)), [0.0] * len(reports)
    for name, colour, value in parts:
        values = [value(report) for report in reports]
        axis.barh(rows, values, left=left, label=name, color=colour, height=0.62)
        left = [a + b for a, b in zip(left, values)]
    for i, value in enumerate(left):
        axis.annotate(total(reports[i]) if total else f"{value:.3g}", (value, i), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    axis.set_yticks(rows, [f"{report['label']}\n{report['plan']['algorithm']}" for report in reports], fontsize=9)
    axis.set_xlabel(unit)
    axis.margins(x=0.14)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8, ncols=len(parts), loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)


def stored_text(report):
    """The text behind the bar of the bytes that Linux counted."""
    without = [way for way, count in zip(("reads", "writes"), report["storage"]) if count is None]
    if without:
        return f"{' and '.join(without)} {NOT_COUNTED}"
    return f"{sum(report['storage']) / GIB:.3g}"


def picture(reports, prefix, heading):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plot

    def share(component):
        return lambda r: 100 * component(r) / r["seconds"] if r["seconds"] else 0

    def computing(r):
        return max(r["seconds"] - r["time"]["wait_s"] - r["time"]["blk2blk_s"], 0)

    def phase(name):
        return lambda r: r["phases"][name]["seconds"]

    def stored(way):
        return lambda r: (r["storage"][way] or 0) / GIB

    figure, (wholes, times, volumes) = plot.subplots(1, 3, figsize=(12.5, 1.6 + 0.52 * len(reports)), layout="constrained", sharey=True)
    bars(wholes, reports, [(WHOLE[name], colour, phase(name)) for name, colour in zip(WHOLE, ("#8a8a8a", "#2f6f9f", "#4c9a6a"))], "seconds")
    bars(times, reports, [("computing", "#2f6f9f", share(computing)), ("copying", "#8a8a8a", share(lambda r: r["time"]["blk2blk_s"])),
                          ("waiting", "#d98c3f", share(lambda r: r["time"]["wait_s"]))], "% of the sweeps' time", total=lambda r: "")  # fmt: skip
    bars(volumes, reports, [("read", "#4c9a6a", stored(0)), ("written", "#a9577c", stored(1))], "GiB of storage in the sweeps", total=stored_text)
    wholes.invert_yaxis()
    figure.suptitle(heading, fontsize=10)
    for ending in ("png", "svg"):
        figure.savefig(f"{prefix}.{ending}", dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", metavar="REPORT.json")
    parser.add_argument("--picture", metavar="PREFIX", help="also draw the runs: write PREFIX.png and PREFIX.svg")
    parser.add_argument("--title", help="title of the table and the picture (default: the problem of the first report)")
    parser.add_argument("--note", action="append", default=[], metavar="TEXT", help="add a sentence below the table (repeatable)")
    options = parser.parse_args()
    reports = [load(path) for path in options.reports]
    made = [report for report in reports if is_made(report)]
    if made:
        print(options.title or title(made[0]), table(reports), sep="\n\n", end="\n\n")
    print("\n".join([*missing(reports), *(notes(made) if made else []), *options.note]))
    if made and options.picture:
        picture(made, options.picture, options.title or title(made[0]))
    return 0 if made else 1


if __name__ == "__main__":
    sys.exit(main())
