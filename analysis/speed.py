#!/usr/bin/python3
"""Picture of what experiments/speed.py recorded.

    analysis/speed.py results/speed/speed-star7-f64.json [-o PREFIX]

Writes PREFIX.png and PREFIX.svg (default: beside the JSON file). Medians as bars with their range, the names of the runs as in the table that experiments/speed.py prints. A record with fewer
rows, of a run that was interrupted, is drawn as far as it goes; rows that were not right (checksum or bytes) are marked.
"""
import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analysis import style  # noqa: E402

COLOURS = {"peak": style.GREY, "memory": style.BLUE, "stream": style.RED, "skewed-min": style.GREEN}


def wrong(row):
    """What is not right with a row, in words; "" if nothing."""
    said = [text for key, text in (("predicted", "bytes not as predicted"), ("same", "checksum differs")) if row.get(key) is False]
    return "; ".join([*said, *([f"failed: {row['failed']}"] if row.get("failed") else [])])


def title(record):
    """Needs: stencil, dtype (of rows or of the file), size, steps."""
    nx, ny, nz = record["size"]
    dtype = record.get("dtype", "f64")
    gib = 2 * (nx + 2) * (ny + 2) * (nz + 2) * (8 if dtype == "f64" else 4) / (1 << 30)
    return f"{record.get('stencil', 'star7')} {dtype}, {nx} x {ny} x {nz}, {record['steps']} steps; Buffers {gib:.1f} GiB; {record.get('commit', 'unknown commit')}"


def draw(record):
    """record: what experiments/speed.py writes: {size, steps, repeats, commit, rows: [{name, group, gups, least, most, predicted?, same?, failed?}]}. The figure."""
    rows = record["rows"]
    figure, ax = style.new(8, 0.4 * max(1, len(rows)) + 1.3)
    for i, r in enumerate(rows):
        if r.get("gups") is None:
            ax.annotate(f"× {wrong(r) or 'no result'}", (0, i), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8, color=style.RED)
            continue
        ax.barh(i, r["gups"], 0.7, color=COLOURS.get(r["group"], style.SKY))
        ax.plot([r["least"], r["most"]], [i, i], color="#333333", linewidth=1.0)
        ax.annotate(f"{r['gups']:.2f}" + (f"  × {wrong(r)}" if wrong(r) else ""), (r["most"], i), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8, color=style.RED if wrong(r) else style.BLACK)
    ax.set_yticks(range(len(rows)), [r["name"] for r in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0, 1.14 * max([r["most"] for r in rows if r.get("gups") is not None], default=1.0))
    ax.grid(visible=False, axis="y")
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_xlabel("1e9 updates per second (median and range)")
    ax.set_title(title(record), fontsize=9)
    return figure


def write(record, prefix):
    """PREFIX.png and PREFIX.svg."""
    figure = draw(record)
    for kind in ("png", "svg"):
        Path(f"{prefix}.{kind}").write_bytes(style.image(figure, kind))
    style.close(figure)


def main(argv=None):
    p = argparse.ArgumentParser(prog="analysis/speed.py", description=__doc__.splitlines()[0])
    p.add_argument("record", type=Path, help="JSON file that experiments/speed.py wrote")
    p.add_argument("-o", "--output", help="prefix of the pictures (default: the file's name without its ending)")
    o = p.parse_args(argv)
    try:
        record = json.loads(o.record.read_text())
        if not isinstance(record.get("rows"), list):
            raise ValueError("it has no rows")
    except (OSError, ValueError, AttributeError) as error:
        print(f"speed.py: {o.record}: {error}; name a file that experiments/speed.py wrote", file=sys.stderr)
        return 2
    prefix = o.output or str(o.record.with_suffix(""))
    write(record, prefix)
    print(f"{prefix}.png and .svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
