# SPDX-License-Identifier: BSD-3-Clause
"""The wavefront paper. It compares layouts and ways to run waves, so the figures draw ratios. The tables have the times."""
import math

from analysis import style
from analysis.cells import Drawn, Rounds, cell, paired, ratio, show
from analysis.effects import by_repeat, quotient
from analysis.measures import seconds, wave_key
from analysis.predictions import best_of

LAYOUTS = {"row": "row-major", "block": "block", "frontier": "frontier"}


def _tile(group):
    tile = wave_key(group, "tile")
    return " x ".join(str(x) for x in tile) if isinstance(tile, list) else str(tile)


def _cells(group):
    tile = wave_key(group, "tile")
    return math.prod(tile) if isinstance(tile, list) else int(tile or 0) ** 2


def _time_rows(plan):
    return [[str(wave_key(g, "layout")), _tile(g), str(wave_key(g, "waves")), str(wave_key(g, "threads")), show(cell(g, seconds), "{:.2f} s")] for g in plan.groups.values()]


def _best(groups):
    """{round: seconds} of the best of several groups."""
    return best_of([by_repeat(g, seconds) for g in groups if g.done])


def _failure(*groups):
    """Why none of these groups completed; None if there is no group."""
    return next((g.failure for g in groups if g.failure), None)


def _of_best(a, b):
    """The Ratio of the best group of each side, or why there is none."""
    if not any(g.done for g in a) or not any(g.done for g in b):
        return _failure(*a, *b)
    return paired(quotient(_best(a), _best(b)))


def fig7a(plan, published):
    groups, rounds = list(plan.groups.values()), Rounds()
    alone = [g for g in groups if wave_key(g, "layout") == "row" and int(wave_key(g, "threads") or 0) == 1]
    of = {name: sorted((g for g in groups if wave_key(g, "layout") == name and g not in alone), key=_cells) for name in LAYOUTS}
    tiles = sorted({(_cells(g), _tile(g)) for row in of.values() for g in row})
    at = {(name, _tile(g)): ratio(g, alone[0] if alone else None, seconds) for name, row in of.items() for g in row}
    square = [g for g in of["row"] if len(set(_tile(g).split(" x "))) == 1]
    best = [_of_best(square, alone), _of_best(of["frontier"], of["block"])]
    figure, (left, right) = style.new(style.TWO, 2.6, columns=2, width_ratios=(1.6, 1))
    style.dots(left, [t.replace(" x ", " x\n") for _, t in tiles], {name: rounds.row(at.get((name, t)) for _, t in tiles) for name in LAYOUTS}, "time of two threads / of the sequential program", log=True, names=LAYOUTS, base="equal", value_format="{:.2g}")
    left.set_xlabel("tile (cells)")
    given = [(published.value(name), published.paper(name)) for name in ("row-of-sequential", "gain-of-time")]
    style.dots(right, ["row-major, square /\nsequential", "frontier /\nblock"], {"best": rounds.row(best)}, "ratio of times, each at its best tile", log=True, published={"best": given}, base="equal", names={"best": "each at its best tile"})
    style.legend_above(figure, left, right)
    rows = [*_time_rows(plan), ["row-major / sequential", "best square one", "", "", show(best[0], "{:.2f}")], ["frontier / block", "best of each", "", "", show(best[1], "{:.2f}")]]
    return rounds.finish(Drawn("fig7a", "Wavefront, Fig. 7a: layouts by tile size", figure, ["layout", "tile", "waves", "threads", "time, or ratio of times"], rows,
                               ["Published: row-major at best ten times the sequential time; the frontier layout 20 % better than the block layout, each with its best tile. In each round, the other rounds decide which tile is best."]))  # fmt: skip


def _chained(group):
    """Are the waves chained? The report says so; where it does not, more than one wave means yes."""
    said = wave_key(group, "chained")
    return bool(said) if said is not None else int(wave_key(group, "waves") or 0) > 1


def fig7b(plan, published):
    rounds, several, alone = Rounds(), [g for g in plan.groups.values() if not g["alone"]], plan.select(alone=True)
    chained, single = ([g for g in several if _chained(g) == c] for c in (True, False))
    a_wave = ratio(chained[0] if chained else None, alone[0] if alone else None, lambda r: r.report.get("seconds_per_wave"))
    values = [_of_best(chained, single), a_wave]
    figure, ax = style.new(style.ONE, 2.3)
    given = [(published.value("gain-of-time"), published.paper("gain-of-time")), None]
    style.dots(ax, ["whole run: chained /\none after the other", "an iteration:\nchained / alone"], {"waves": rounds.row(values)}, "ratio of times", published={"waves": given}, base="equal", names={"waves": "chained waves"})
    style.legend_above(figure, ax)
    how = [["chained" if _chained(g) else "one iteration alone" if g["alone"] else "one after the other"] for g in plan.groups.values()]
    rows = [[*h, *row] for h, row in zip(how, _time_rows(plan))]
    rows += [[name, "", "", "", "", show(v, "{:.2f}")] for name, v in zip(("chained / one after the other", "an iteration, chained / alone"), values)]
    return rounds.finish(Drawn("fig7b", "Wavefront, Fig. 7b: chained waves", figure, ["waves", "layout", "tile", "waves a pass", "threads", "time, or ratio of times"], rows,
                               ["Published: chaining gains 20 %. An iteration takes longer if more than one is under way; the paper gives no number for this."]))  # fmt: skip


def fig4w(plan, published):
    """Compares the conversion of the matrix za into both layouts, and out of both."""
    groups, rounds = list(plan.groups.values()), Rounds()
    ways = {"pre": "from row-major\ninto the layout", "post": "from the layout\nto row-major"}
    cost = {w: lambda r, w=w: r.report.get(f"{w}process", {}).get("za") for w in ways}
    block, frontier = (next((g for g in groups if wave_key(g, "layout") == name), None) for name in ("block", "frontier"))
    values = [ratio(frontier, block, cost[w]) for w in ways]
    figure, ax = style.new(style.ONE, 2.2)
    style.dots(ax, list(ways.values()), {"cost": rounds.row(values)}, "time of frontier / of block", base="block layout", names={"cost": "frontier layout"})
    style.legend_above(figure, ax)
    rows = [[str(wave_key(g, "layout")), _tile(g), *(show(cell(g, cost[w]), "{:.2f} s") for w in ways)] for g in groups]
    rows.append(["frontier / block", "", *(show(v, "{:.2f}") for v in values)])
    return rounds.finish(Drawn("fig4w", "Wavefront, Fig. 4: conversion of layouts", figure, ["layout", "tile", "from row-major", "to row-major"], rows,
                               ["The paper draws the times and gives no numbers. They are almost equal, except for the conversion into the frontier layout, which takes longer."]))  # fmt: skip
