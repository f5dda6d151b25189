#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The picture of README.md: speed by size of the problem / DRAM, for memext alone and together with other tools.

    analysis/sizes.py [data/measured/sizes.json] [-o docs/pictures/sizes.svg]

The numbers are those of docs/performance.md and docs/rivals.md. The file that this reads also has machine, commit and command.
"""
import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from analysis import style

COLOURS = (style.GREEN, style.BLUE, style.ORANGE, style.RED, style.GREY, style.SKY, style.PINK)


def apart(rates, ratio=1.23):
    """Places of the labels of these rates on a logarithmic axis. Two labels are never closer than this ratio."""
    places, lowest = {}, 0.0
    for name, rate in sorted(rates.items(), key=lambda item: item[1]):
        places[name] = lowest = max(rate, lowest * ratio)
    return places


def draw_sizes(ax, record):
    """Draws the rates of memext, from a grid that fits in DRAM to one of 16 times the DRAM, and the rate of normal execution."""
    rows, normal = record["memext"], record["normal"]
    at = range(len(rows))
    ax.plot(at, [row["rate"] for row in rows], marker="o", color=style.GREEN)
    ax.vlines(at, [row["least"] for row in rows], [row["most"] for row in rows], color=style.GREEN, linewidth=0.9)
    for x, row in zip(at, rows):
        ax.annotate(f"{row['rate']:.2f}", (x, row["most"]), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=7.5, color=style.GREEN)
    ax.axhline(normal["rate"], linestyle="--", color=style.BLACK, linewidth=1.2)
    ax.annotate(f"{normal['title']}: {normal['rate']}", (0, normal["rate"]), xytext=(0, 4), textcoords="offset points", fontsize=7.5)
    ax.set_xticks(list(at), ["in DRAM", *(f"{row['size']} x" for row in rows[1:])])
    ax.set_xlim(-0.4, len(rows) - 0.6)
    ax.set_ylim(0, 8)
    ax.set_ylabel("1e9 cell updates a second (Gupdates/s)")


def draw_beside(ax, record):
    """Draws the rates of several tools. The axis is logarithmic, since they differ by two orders of magnitude."""
    at = range(len(record["sizes"]))
    places = apart({name: rates[-1] / 1000 for name, rates in record["rates"].items()})
    for i, (name, rates) in enumerate(record["rates"].items()):
        ax.plot(at, [rate / 1000 for rate in rates], marker=style.MARKERS[i], color=COLOURS[i])
        ax.annotate(name, (at[-1], places[name]), xytext=(8, 0), textcoords="offset points", va="center", fontsize=7.5, color=COLOURS[i], annotation_clip=False)
    loop = record["loop"]["rate"] / 1000
    ax.axhline(loop, linestyle="--", color=style.BLACK, linewidth=1.2)
    ax.annotate(f"{record['loop']['title']}: {loop:.2f}", (0, loop), xytext=(0, -11), textcoords="offset points", fontsize=7.5)
    ax.set_xticks(list(at), [f"{size} x" for size in record["sizes"]])
    ax.set_xlim(-0.15, 2.5)
    ax.set_yscale("log")
    ax.set_ylim(0.015, 4)
    style.plain_log(ax.yaxis, 0.015, 4)


def draw(record):
    figure, axes = style.new(8.2, 3.6, columns=2)
    draw_sizes(axes[0], record["sizes"])
    draw_beside(axes[1], record["beside"])
    for ax, part in zip(axes, (record["sizes"], record["beside"])):
        ax.set_title(part["title"], loc="left")
        ax.set_xlabel("size of the problem / DRAM")
    return figure


def main(argv=None):
    p = argparse.ArgumentParser(prog="analysis/sizes.py", description=__doc__.splitlines()[0])
    p.add_argument("record", type=Path, nargs="?", default=ROOT / "data" / "measured" / "sizes.json")
    p.add_argument("-o", "--output", type=Path, metavar="FILE", default=ROOT / "docs" / "pictures" / "sizes.svg", help="picture to write, .svg or .png (default: docs/pictures/sizes.svg)")
    o = p.parse_args(argv)
    style.plt.rcParams["svg.hashsalt"] = "memext"  # the same file from the same numbers
    figure = draw(json.loads(o.record.read_text()))
    o.output.parent.mkdir(parents=True, exist_ok=True)
    o.output.write_bytes(style.image(figure, o.output.suffix[1:]))
    style.close(figure)
    print(o.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
