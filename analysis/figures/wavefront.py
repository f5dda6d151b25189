# SPDX-License-Identifier: BSD-3-Clause
"""The wavefront paper."""
from analysis import style
from analysis.cells import Drawn, cell, show
from analysis.measures import seconds, wave_key


def _tile(group):
    tile = wave_key(group, "tile")
    return " x ".join(str(x) for x in tile) if isinstance(tile, list) else str(tile)


def _wave_bars(plan, name, title, label_of, notes):
    groups = list(plan.groups.values())
    figure, ax = style.new(7.4, 3.6)
    values = [cell(g, seconds) for g in groups]
    style.bars(ax, [label_of(g) for g in groups], {"time": values}, "seconds", log=True)
    ax.tick_params(axis="x", rotation=60 if len(groups) > 4 else 0, labelsize=7)
    rows = [[str(wave_key(g, "layout")), _tile(g), str(wave_key(g, "waves")), str(wave_key(g, "threads")), show(v, "{:.2f} s")] for g, v in zip(groups, values)]
    return Drawn(name, title, figure, ["layout", "tile", "waves", "threads", "time"], rows, notes)


def fig7a(plan, published):
    return _wave_bars(plan, "fig7a", "Wavefront, Fig. 7a: layouts by tile size", lambda g: f"{wave_key(g, 'layout')}\n{_tile(g)}, {wave_key(g, 'threads')} thr.", ["Published: row-major at best ten times the sequential time; frontier 20 % better than block, each with its best tile."])


def fig7b(plan, published):
    return _wave_bars(plan, "fig7b", "Wavefront, Fig. 7b: chained waves", lambda g: f"{'chained' if wave_key(g, 'chained') else 'one after the other'}, {wave_key(g, 'waves')} a pass\n{_tile(g)}", ["Published: chaining gains 20 %."])


def fig4w(plan, published):
    groups = list(plan.groups.values())
    ways = {w: [cell(g, lambda r, w=w: r.report.get(f"{w}process_seconds")) for g in groups] for w in ("pre", "post")}
    figure, ax = style.new(6.4, 3.3)
    style.bars(ax, [f"{wave_key(g, 'layout')} {_tile(g)}" for g in groups], ways, "seconds", names={"pre": "from row-major", "post": "to row-major"})
    rows = [[str(wave_key(g, "layout")), _tile(g), show(i, "{:.2f} s"), show(o, "{:.2f} s")] for g, i, o in zip(groups, ways["pre"], ways["post"])]
    return Drawn("fig4w", "Wavefront, Fig. 4: conversion of layouts", figure, ["layout", "tile", "from row-major", "to row-major"], rows, [])
