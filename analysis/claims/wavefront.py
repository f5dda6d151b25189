# SPDX-License-Identifier: BSD-3-Clause
"""The wavefront paper."""
import math
from dataclasses import replace

from analysis.claim import AT_LEAST_AS_GOOD, CONFIRMED, LARGER, NOT_RUN, REFUTED, SMALLER, TOO_SHORT, TWOFOLD, Part, near, near_difference, no_less_than, no_more_than
from analysis.claims.comparing import best_of, compare, gap_of, part, short_of
from analysis.effects import LEAST_PAIRS, LEAST_SECONDS, by_repeat, quotient
from analysis.measures import seconds, wave_key
from analysis.stats import median


def _tile_cells(group):
    tile = wave_key(group, "tile")
    return math.prod(tile) if isinstance(tile, list) else int(tile or 0) ** 2


def _sequential(group):
    """Is this the sequential program, which is the row-major program with one thread?"""
    return int(wave_key(group, "threads") or 0) == 1


def _layout(results, layout, sequential=False):
    """The groups of Fig. 7a that have this layout."""
    return [g for g in results["fig7a"].groups.values() if wave_key(g, "layout") == layout and (layout != "row" or _sequential(g) == sequential)]


def _layouts(results, label, a, b, band):
    gap = NOT_RUN if not a or not b else next((f for g in (*a, *b) if (f := gap_of(g)) and not any(x.done for x in a)), "")
    return [part(label, quotient(best_of(a), best_of(b)), band, gap or short_of(*a, *b))] if gap != NOT_RUN else [Part(label, None, band, NOT_RUN)]


def _is_square(group):
    tile = wave_key(group, "tile")
    return not isinstance(tile, list) or tile[0] == tile[1]


def _all_late(label, slow, fast, band):
    """The Part of slow / fast, at least a published value, if their time limit ended all slow runs: they took at least that long. What the fast ones take beside the iteration, such as making the matrices,
    is taken off the limit. Fast runs that are too short to decide do so here if that is twice what the band asks for. None if some slow runs completed, or failed otherwise."""
    late = [r for g in slow for r in g.failures]
    if not late or not fast or not fast[0].done or any(g.done for g in slow) or any(r.record["status"] != "timeout" for r in late):
        return None
    given, took = min(r.record.get("timeout_s", r.wall_s) for r in late), max(seconds(r) for r in fast[0].done)
    beside = max(r.wall_s - seconds(r) for r in fast[0].done)
    pairs = len({r.round for r in fast[0].done}.intersection(*({r.round for r in g.failures} for g in slow)))
    least = (given - beside) / took
    if pairs < LEAST_PAIRS or least <= band.best or (short_of(fast[0]) and not (short_of(fast[0]).endswith(TOO_SHORT) and least > TWOFOLD * band.low)):
        return None
    return Part(f"{label}: not complete after {given:.0f} s, where the sequential program took at most {took:.1f} s and {beside:.1f} s beside the iteration, in {pairs} rounds", None, band, settled=AT_LEAST_AS_GOOD)


def wave_rows(results, known):
    """Square tiles are judged, as in the paper."""
    band = no_less_than(near(known["fig7a"].value("row-of-sequential")))
    rows, alone = _layout(results, "row"), _layout(results, "row", True)
    square, wide = ([g for g in rows if _is_square(g) == is_square] for is_square in (True, False))
    label = "row-major at its best square tile / sequential"
    late = _all_late(label, square, alone, band)
    judged = [late] if late else _layouts(results, label, square, alone, band)
    shown = _layouts(results, "row-major at its best wide tile / sequential", wide, alone, band) if wide else []
    return [*judged, *(replace(p, beside=True) for p in shown)]


def _gain(known):
    """The band of a gain of 20 %, which may be one of time or one of speed."""
    return no_more_than(near_difference(known.value("gain-of-time") - 1, known.value("gain-of-speed") - 1))


def wave_frontier(results, known):
    return _layouts(results, "frontier / block, each at its best tile", _layout(results, "frontier"), _layout(results, "block"), SMALLER)


def wave_frontier_band(results, known):
    return _layouts(results, "frontier / block, each at its best tile", _layout(results, "frontier"), _layout(results, "block"), _gain(known["fig7a"]))


def wave_tile(results, known):
    for layout in ("block", "frontier"):
        groups = sorted(_layout(results, layout), key=_tile_cells)
        if len(groups) < 3:
            yield Part(layout, None, SMALLER, NOT_RUN)
            continue
        best = best_of(groups[1:-1])
        for end, name in ((groups[0], "smallest"), (groups[-1], "largest")):
            yield part(f"{layout}, best tile between the extremes / {name}", quotient(best, by_repeat(end, seconds)), SMALLER, gap_of(end) or short_of(*groups))


def _is_chained(group):
    """Are the waves chained? The report says so; where it does not, more than one wave means yes."""
    said = wave_key(group, "chained")
    return bool(said) if said is not None else int(wave_key(group, "waves") or 0) > 1


def _several(results):
    """The groups of Fig. 7b that run several iterations; the remaining group runs a single iteration."""
    return [g for g in results["fig7b"].groups.values() if not g["alone"]]


def _chained(results, band):
    groups = _several(results)
    return _layouts(results, "chained waves / one after the other", [g for g in groups if _is_chained(g)], [g for g in groups if not _is_chained(g)], band)


def wave_chain(results, known):
    return _chained(results, SMALLER)


def wave_chain_band(results, known):
    return _chained(results, _gain(known["fig7b"]))


def wave_slower(results, known):
    """Time of one iteration among several chained ones / time of one iteration alone."""
    alone = results["fig7b"].select(alone=True)
    chained = [g for g in _several(results) if _is_chained(g)]
    if not alone or not chained:
        return [Part("chained / alone", None, LARGER, NOT_RUN)]
    return [compare("time of an iteration, chained / alone", chained[0], alone[0], lambda r: r.report.get("seconds_per_wave"), LARGER)]


def corner_copies(results, known):
    """Compares the space of the copied corners with Table 1, for each tile."""
    for name, v in known["table1w"].values.items():
        group = results["table1w"].groups.get(name)
        gap = gap_of(group)
        ours = group.first(lambda r: r.report.get("space", {}).get("copy_bytes")) if not gap else None
        differs = gap or f"{ours} instead of {v['value']:g} bytes"
        yield Part(f"{v['what']}: {'equal' if ours == v['value'] else differs}", gap=gap, settled="" if gap else CONFIRMED if ours == v["value"] else REFUTED)


def _conversion(group, way):
    """({repeat: seconds} of converting the matrix that is read from a row-major file, why they may not decide)."""
    gap = gap_of(group)
    values = by_repeat(group, lambda r: r.report.get(f"{way}process", {}).get("za")) if not gap and _reads_file(group) else {}
    middle = median(values.values()) if values else 0.0
    return values, gap or ("" if values else NOT_RUN) or (f"conversions of {middle:.2g} s are too short to decide" if middle < LEAST_SECONDS else "")


def _reads_file(group):
    return "za" in (group.first(lambda r: r.report.get("inputs")) or {})


def conversion(results, known):
    """Compares the conversion of the matrix za into both layouts, and out of both. Generated matrices do not count: they have no vertical frontiers to read from a row-major file."""
    by_layout = {layout: next((g for g in results["fig4w"].groups.values() if wave_key(g, "layout") == layout), None) for layout in ("frontier", "block")}
    for name, way, band in (("into", "pre", LARGER), ("out of", "post", near(1.0))):
        (a, why_a), (b, why_b) = (_conversion(by_layout[layout], way) for layout in ("frontier", "block"))
        values, label = quotient(a, b), f"{name} frontier / {name} block"
        yield part(label, values, band, why_a or why_b) if values else Part(label, None, band, NOT_RUN if NOT_RUN in (why_a, why_b) else why_a or why_b)
