# SPDX-License-Identifier: BSD-3-Clause
"""Figs. 12 to 18: versions of the program, and the division into Blocks."""
from dataclasses import replace

from analysis.claim import LARGER, SMALLER, Band
from analysis.claims.comparing import FAST_MAPPING, compare, gap_of, part
from analysis.effects import by_repeat
from analysis.measures import ON_MAPPING, THROUGH_BLOCKS, dram_bytes, typical_block_bytes, version


def _twelve(results, backend, algorithm, room):
    return results["fig12"].one(backend=backend, algorithm=algorithm, room=room)


def enough_fast(results, known):
    plan = results["enough"]
    return [compare(f"{version('mmap', a)} / the same on plain memory", plan.one(backend="mmap", algorithm=a), plan.one(backend="dram", algorithm=a), band=Band(0.0, FAST_MAPPING)) for a in ON_MAPPING]


def deteriorate(results, known):
    return [compare(f"{version('mmap', a)}, with half of the DRAM / with enough DRAM", _twelve(results, "mmap", a, "x2"), _twelve(results, "mmap", a, "enough"), band=LARGER) for a in ON_MAPPING]


def blocks_beat(room):
    def parts(results, known):
        return [compare(f"{version('mmap', b)} / {version('mmap', d)}", _twelve(results, "mmap", b, room), _twelve(results, "mmap", d, room)) for b in THROUGH_BLOCKS for d in ON_MAPPING]

    return parts


def fastest_versions(results, known):
    """Judges the versions that section III-B names. aio2 is memext's counterpart of mmap2."""
    others = [("mmap", a) for a in (*ON_MAPPING, *THROUGH_BLOCKS)] + [("aio", "skewed")]
    for best in ("skewed-y", "skewed-min"):
        for other in others:
            yield replace(compare(f"{version('aio', best)} / {version(*other)}", _twelve(results, "aio", best, "x2"), _twelve(results, *other, "x2")), beside=other[0] == "aio")


def division(figure):
    def parts(results, known):
        plan = results["divisions"]
        if figure == "16":
            return [part(f"exact / typical, {g.id}", by_repeat(g, lambda r: dram_bytes(r) / typical_block_bytes(r)), SMALLER, gap_of(g), True) for g in plan.select(figure="16")]
        good, bad = ("balanced", "unbalanced") if figure == "17" else ("unbalanced", "balanced")
        cases = dict.fromkeys(g["case"] for g in plan.select(figure=figure))
        return [compare(f"Block's bytes, {good} / {bad}, {c}", plan.one(figure=figure, case=c, division=good), plan.one(figure=figure, case=c, division=bad), dram_bytes, timed=False, exact=True) for c in cases]

    return parts
