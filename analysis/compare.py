#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Table and picture of several runs of one problem.

    compare.py [--picture PREFIX] [--title TEXT] REPORT.json ...

A report is what `memext run --json` writes; its `label` key, if any, names the row. One that holds only
{"label", "skipped"} is a run that could not be made; its row says why. Writes PREFIX.png and PREFIX.svg.
"""
import argparse
import json
import sys

GIB = 2**30
COLUMNS = ["backend", "algorithm", "engine", "seconds", "Gupdates/s", "read GiB", "written GiB", "waiting", "peak RSS", "verified"]


def load(path):
    with open(path) as file:
        report = json.load(file)
    report.setdefault("label", report.get("backend", path))
    return report


def verdict(report):
    return {True: "yes", False: "NO", None: "-"}[report["verified"]]


def row(report):
    plan = report["plan"]
    return [report["label"], plan["algorithm"], plan["engine"], f"{report['seconds']:.2f}", f"{report['updates_per_second'] / 1e9:.3f}",
            f"{report['read_bytes'] / GIB:.2f}", f"{report['write_bytes'] / GIB:.2f}", f"{100 * report['wait_share']:.1f} %",
            f"{report['peak_rss_bytes'] / 2**20:.0f} MiB", verdict(report)]


def table(reports):
    rows = [COLUMNS] + [row(report) for report in reports if "skipped" not in report]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(width) if i < 3 else cell.rjust(width) for i, (cell, width) in enumerate(zip(cells, widths)))
             for cells in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines + [f"{report['label']}: not run: {report['skipped']}" for report in reports if "skipped" in report])


def title(report):
    problem = report["problem"]
    buffers = 2 * report["layout"]["buffer_bytes"] / GIB
    return (f"{problem['stencil']}, {problem['nx']} x {problem['ny']} x {problem['nz']}, {problem['nt']} steps, {problem['dtype']}: "
            f"Buffers of {buffers:.2f} GiB")


def bars(axis, reports, parts, unit, total="{:.3g}"):
    """Stacked horizontal bars; parts: [(name or None, colour, value of a report)]."""
    rows, left = range(len(reports)), [0.0] * len(reports)
    for name, colour, value in parts:
        values = [value(report) for report in reports]
        axis.barh(rows, values, left=left, label=name, color=colour, height=0.62)
        left = [a + b for a, b in zip(left, values)]
    for i, value in enumerate(left):
        axis.annotate(total.format(value), (value, i), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    axis.set_yticks(rows, [f"{report['label']}\n{report['plan']['algorithm']}" for report in reports], fontsize=9)
    axis.set_xlabel(unit)
    axis.margins(x=0.14)
    axis.spines[["top", "right"]].set_visible(False)
    if len(parts) > 1:
        axis.legend(frameon=False, fontsize=8, ncols=len(parts), loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)


def picture(reports, prefix, heading):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plot

    def share(component):
        return lambda r: 100 * component(r) / r["seconds"] if r["seconds"] else 0

    def computing(r):
        return max(r["seconds"] - r["time"]["wait_s"] - r["time"]["blk2blk_s"], 0)

    figure, (rates, times, volumes) = plot.subplots(1, 3, figsize=(12.5, 1.6 + 0.52 * len(reports)), layout="constrained", sharey=True)
    bars(rates, reports, [(None, "#2f6f9f", lambda r: r["updates_per_second"] / 1e9)], "Gupdates/s")
    bars(times, reports, [("computing", "#2f6f9f", share(computing)), ("copying", "#8a8a8a", share(lambda r: r["time"]["blk2blk_s"])),
                          ("waiting", "#d98c3f", share(lambda r: r["time"]["wait_s"]))], "% of the time", total="")
    bars(volumes, reports, [("read", "#4c9a6a", lambda r: r["read_bytes"] / GIB), ("written", "#a9577c", lambda r: r["write_bytes"] / GIB)],
         "GiB moved")
    rates.invert_yaxis()
    figure.suptitle(heading, fontsize=10)
    for ending in ("png", "svg"):
        figure.savefig(f"{prefix}.{ending}", dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", metavar="REPORT.json")
    parser.add_argument("--picture", metavar="PREFIX")
    parser.add_argument("--title")
    options = parser.parse_args()
    reports = [load(path) for path in options.reports]
    made = [report for report in reports if "skipped" not in report]
    if not made:
        print(table(reports))
        return 1
    print(options.title or title(made[0]))
    print(table(reports))
    if options.picture:
        picture(made, options.picture, options.title or title(made[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
