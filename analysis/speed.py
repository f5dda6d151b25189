#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Picture of what experiments/speed.py recorded.

    analysis/speed.py results/speed/speed-star7-f64.json [-o FILE.png]

Writes a PNG and an SVG (default: beside the JSON file). Bars are medians, with their range. The names of the runs are those of the table that experiments/speed.py prints. The record of
an interrupted run is drawn as far as it goes. Runs that failed, or had a wrong checksum or wrong bytes, are marked.
"""
import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analysis import style  # noqa: E402

COLOURS = {"peak": style.GREY, "memory": style.BLUE, "stream": style.RED, "skewed-min": style.GREEN}


def wrong(record, name):
    """What was wrong with the runs of a name, in words; "" if nothing was."""
    said = [f["why"] for f in record.get("failed", []) if f["name"] == name]
    said += ["the bytes differ from the prediction" for r in record["rows"] if r["name"] == name and r.get("predicted") is False and not said]
    return "; ".join(dict.fromkeys(said))


def title(record):
    """The title of the figure, from the record's stencil, dtype, size and steps."""
    nx, ny, nz = record["size"]
    dtype = record.get("dtype", "f64")
    gib = record.get("buffers_bytes", 2 * (nx + 2) * (ny + 2) * (nz + 2) * (8 if dtype == "f64" else 4)) / (1 << 30)
    return f"{record.get('stencil', 'star7')} {dtype}, {nx} x {ny} x {nz}, {record['steps']} steps; Buffers {gib:.1f} GiB; {record.get('commit', 'unknown commit')}"


def draw(record):
    """The figure of a record that experiments/speed.py writes: {size, steps, repeats, commit, rows: [{name, group, gups, least, most, predicted?}], failed: [{name, why}]}."""
    rows = list(record["rows"])
    rows += [{"name": name} for name in dict.fromkeys(f["name"] for f in record.get("failed", [])) if name not in {r["name"] for r in rows}]
    figure, ax = style.new(style.TWO, 0.22 * max(1, len(rows)) + 0.7)
    for i, r in enumerate(rows):
        if r.get("gups") is None:
            ax.annotate(f"× {wrong(record, r['name'])[:80]}", (0, i), xytext=(3, 0), textcoords="offset points", va="center", fontsize=style.SMALL, color=style.RED)
            continue
        ax.barh(i, r["gups"], 0.7, color=COLOURS.get(r["group"], style.SKY))
        ax.plot([r["least"], r["most"]], [i, i], color="#333333", linewidth=1.0)
        said = wrong(record, r["name"])
        ax.annotate(f"{r['gups']:.2f}" + (f"  × {said[:60]}" if said else ""), (r["most"], i), xytext=(4, 0), textcoords="offset points", va="center", fontsize=style.SMALL, color=style.RED if said else style.BLACK)
    ax.set_yticks(range(len(rows)), [r["name"] for r in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0, 1.14 * max([r["most"] for r in rows if r.get("gups") is not None], default=1.0))
    style.across(ax)
    ax.set_xlabel(f"1e9 updates per second: median and range, n = {record.get('repeats', '?')}")
    ax.set_title(title(record))
    return figure


def write(record, path):
    """Writes the PNG at path, and an SVG beside it."""
    figure = draw(record)
    for kind in ("png", "svg"):
        Path(path).with_suffix(f".{kind}").write_bytes(style.image(figure, kind))
    style.close(figure)


def main(argv=None):
    p = argparse.ArgumentParser(prog="analysis/speed.py", description=__doc__.splitlines()[0])
    p.add_argument("record", type=Path, help="JSON file that experiments/speed.py wrote")
    p.add_argument("-o", "--output", type=Path, metavar="FILE.png", help="picture to write; an SVG is written beside it (default: beside the record)")
    o = p.parse_args(argv)
    try:
        record = json.loads(o.record.read_text())
        if not isinstance(record.get("rows"), list):
            raise ValueError("the file has no list 'rows'")
    except (OSError, ValueError, AttributeError) as error:
        print(f"speed.py: {o.record}: {error}; name a file that experiments/speed.py wrote", file=sys.stderr)
        return 2
    path = (o.output or o.record).with_suffix(".png")
    write(record, path)
    print(f"{path} and .svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
