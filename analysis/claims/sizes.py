# SPDX-License-Identifier: BSD-3-Clause
"""Figs. 6 to 9: fixed DRAM, aio and mmap by size."""
import math

from analysis.claim import CONFIRMED, NOT_RUN, REFUTED, SMALLER, UNDECIDED, Band, Part, near, no_less_than
from analysis.claims.comparing import DRAM_RATIO, FLAT, compare, gap_of, grows
from analysis.effects import LEAST_PAIRS
from analysis.measures import gupdates, per_step, size_bytes


def _beyond(results):
    """The groups of Fig. 6 on aio whose Buffers exceed the DRAM, by size."""
    groups = sorted(results["fig06"].select(method="aio"), key=lambda g: size_bytes(g["size"]))
    return [g for g in groups if g["limit"] and size_bytes(g["size"]) > size_bytes(g["limit"])]


def fixed_dram(results, known):
    outside = _beyond(results)
    if not outside:
        return []
    largest = outside[-1]
    times = size_bytes(largest["size"]) / size_bytes(largest["limit"])
    found = compare(f"speed at {times:.0f} times the DRAM / normal", largest, results["fig06"].one(method="normal"), gupdates, no_less_than(near(known["fig06"].value("largest-relative"))))
    if times < DRAM_RATIO and not found.gap:
        return [Part(found.label, found.effect, found.band, f"the largest problem is {times:.0f} times the DRAM, and the paper's is {DRAM_RATIO} times")]
    return [found]


def flat_speed(results, known):
    outside = _beyond(results)
    return [compare(f"speed, {outside[-1]['size']} / {outside[0]['size']}", outside[-1], outside[0], gupdates, Band(FLAT, math.inf))] if len(outside) > 1 else []


def _fig07_pairs(results, fig07="fig07"):
    plan = results[fig07]
    return [(f"{g['stencil']} {g['size']}", g, plan.one(backend="mmap", stencil=g["stencil"], size=g["size"])) for g in plan.select(backend="aio")]


def aio_mmap(fig07="fig07"):
    def parts(results, known):
        return [compare(f"aio / mmap, {name}", a, m) for name, a, m in _fig07_pairs(results, fig07)]

    return parts


def aio_mmap_band(fig07="fig07"):
    def parts(results, known):
        v = known["fig07"].value
        return [compare(f"aio / mmap, {name}", a, m, per_step, near(v("aio-of-mmap-low"), v("aio-of-mmap-high"))) for name, a, m in _fig07_pairs(results, fig07)]

    return parts


def difference_grows(results, known):
    """mmap / aio at a size, divided by mmap / aio at the next smaller size, for each stencil and each of the plans that were run."""
    for plan in ("fig07", "fig07-large"):
        for stencil in dict.fromkeys(g["stencil"] for g in results[plan].groups.values()) if plan in results else ():
            pairs = sorted((p for p in _fig07_pairs(results, plan) if p[1]["stencil"] == stencil), key=lambda p: size_bytes(p[1]["size"]))
            for smaller, larger in zip(pairs, pairs[1:]):
                label = f"{plan}, {stencil}: mmap / aio at {larger[1]['size']}, divided by mmap / aio at {smaller[1]['size']}"
                yield grows(label, larger[:0:-1], smaller[:0:-1])


def cache_shrinks(results, known):
    """mmap / uring with Blocks of a share of the DRAM, divided by mmap / uring with the next smaller share."""
    plan = results["share"]
    pairs = [(plan.one(method="mmap", share=g["share"]), g) for g in sorted(plan.select(method="uring"), key=lambda g: float(g["share"]))]
    for smaller, larger in zip(pairs, pairs[1:]):
        yield grows(f"mmap / uring with {larger[1]['share']} % of the DRAM in Blocks, divided by mmap / uring with {smaller[1]['share']} %", larger, smaller)


def mmap_killed(results, known):
    """Settled by what happens, not by a number: whether mmap is killed in every repeat while aio completes."""
    plan = results["largest"]
    mapped, explicit = plan.one(backend="mmap"), plan.one(backend="aio")
    if NOT_RUN in (gap_of(mapped), gap_of(explicit)):
        return [Part("mmap", None, SMALLER, NOT_RUN)]
    killed = sum("out of memory" in r.failure for r in mapped.failures)
    label = f"mmap killed for lack of memory in {killed} of {len(mapped.runs)} runs, aio completed {len(explicit.done)} of {len(explicit.runs)} runs"
    state = REFUTED if explicit.failures and not explicit.done else CONFIRMED if killed >= LEAST_PAIRS and killed == len(mapped.runs) and not explicit.failures else UNDECIDED
    return [Part(label, settled=state)]
