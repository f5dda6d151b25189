# SPDX-License-Identifier: BSD-3-Clause
"""HHRT: problems beyond a memory, by the size of the temporal block."""
from analysis.claim import CONFIRMED, LARGER, NOT_RUN, REFUTED, SMALLER, UNDECIDED, Part, near, near_difference, no_less_than, no_more_than
from analysis.claims.comparing import best_of, compare, gap_of, part, short_of
from analysis.effects import LEAST_PAIRS, by_repeat, quotient
from analysis.measures import gupdates, per_step


def _hhrt(results, place):
    return {int(g["k"]): g for g in results["hhrt"].select(place=place)}


def hhrt_speed(results, known):
    """The best k at 1.5 times the DRAM against the fastest in memory."""
    groups, normal = list(_hhrt(results, "beyond").values()), results["hhrt"].one(place="inside")
    gap = gap_of(normal) or (NOT_RUN if not groups else "")
    if gap:
        return [Part("best k / in memory", None, LARGER, gap)]
    best = best_of(groups, gupdates, max)
    return [part("speed of the best k beyond the memory / inside", quotient(best, by_repeat(normal, gupdates)), no_less_than(near(known["hhrt"].value("relative-1.5"))), short_of(*[g for g in groups if g.done], normal))]


def hhrt_one(results, known):
    groups = _hhrt(results, "beyond")
    if 1 not in groups or len(groups) < 2:
        return []
    best = best_of([g for k, g in groups.items() if k > 1], gupdates, max)
    v = known["hhrt"].value
    gap = gap_of(groups[1]) or short_of(groups[1])
    return [part("speed of k = 1 / best k", quotient(by_repeat(groups[1], gupdates), best), no_more_than(near(v("k1-96gib") / v("best-96gib"))), gap)]


def hhrt_optimum(results, known):
    groups = _hhrt(results, "beyond")
    ks = sorted(groups)
    if len(ks) < 3:
        return []
    best = best_of([groups[k] for k in ks[1:-1]], per_step)
    return [part(f"time a step, best k between / k = {k}", quotient(best, by_repeat(groups[k], per_step)), SMALLER, gap_of(groups[k]) or short_of(*[g for g in groups.values() if g.done])) for k in (ks[0], ks[-1])]


def hhrt_devices(results, known):
    """The same runs on the device as it is, and slowed down."""
    groups = _hhrt(results, "beyond")
    slow = {int(g["k"]): g for g in results["hhrt"].select(place="slow")}
    return [compare(f"speed with k = {k}, fast / slow device", groups.get(k), g, gupdates, LARGER) for k, g in slow.items()]


# The table of k, in three tiers. Sizes are the slides'.


def _ktable(results, gib):
    return {int(g["k"]): g for g in results["ktable"].select(gib=gib)}


def _best_published(known, gib):
    return max(known["ktable"].value(f"{gib}-{k}") or 0 for k in (8, 16, 24, 32, 48, 64, 96))


def _best_k(results, gib):
    return best_of([g for k, g in _ktable(results, gib).items() if k > 1], gupdates, max)


def _lacks(*groups):
    """Why none of these can be compared; "" if one can."""
    gaps = [gap_of(g) for g in groups] or [NOT_RUN]
    return "" if "" in gaps else next((g for g in gaps if g != NOT_RUN), NOT_RUN)


def ktable_speed(near_published, *sizes):
    """The best k of problems beyond a tier, over the speed inside the device's memory. near_published: the band of the published ratio."""

    def found(results, known):
        inside, parts = results["ktable"].one(gib=6), []
        for gib in sizes:
            groups = list(_ktable(results, gib).values())
            band = no_less_than(near_published(_best_published(known, gib) / known["ktable"].value("6-1")))
            gap = _lacks(inside) or _lacks(*groups)
            parts.append(part(f"{gib} GiB, best k / inside", quotient(_best_k(results, gib), by_repeat(inside, gupdates)) if not gap else {}, band, gap or short_of(inside, *[g for g in groups if g.done])))
        return parts

    return found


def near_loss(share):
    """Of a share of a speed that is lost but for little: what is lost is widened."""
    return near_difference(share - 1)


def ktable_one(results, known):
    parts = []
    for gib in (16, 48, 96):
        groups = _ktable(results, gib)
        one = groups.get(1)
        gap = _lacks(one) or _lacks(*[g for k, g in groups.items() if k > 1])
        values = quotient(by_repeat(one, gupdates), _best_k(results, gib)) if not gap else {}
        parts.append(part(f"{gib} GiB, k = 1 / best k", values, no_more_than(near(known["ktable"].value(f"{gib}-1") / _best_published(known, gib))), gap or short_of(*[g for g in groups.values() if g.done])))
    return parts


def ktable_killed(results, known):
    """Cells of the table that ended for want of memory there: 96 GiB and more with a k of 64 and more."""
    groups = [g for gib in (96, 192) for k, g in _ktable(results, gib).items() if k >= 64]
    gaps = [gap_of(g) for g in groups]
    if not groups or all(gap == NOT_RUN for gap in gaps):
        return [Part("96 GiB and more, k of 64 and more", None, SMALLER, NOT_RUN)]
    ended = sum(bool(g.done) for g in groups)
    killed = sum(len(g.failures) >= LEAST_PAIRS and all("out of memory" in r.failure for r in g.failures) for g in groups if not g.done)
    return [Part(f"{ended} of {len(groups)} such cells end here, {killed} are killed for want of memory", settled=REFUTED if ended else CONFIRMED if killed == len(groups) else UNDECIDED)]


def ktable_optimum(results, known):
    """Of two of them: with 96 GiB and more the largest k did not run there."""
    parts = []
    for gib in (16, 48):
        groups = _ktable(results, gib)
        last = groups.get(max(groups, default=0))
        between = [g for k, g in groups.items() if 1 < k < max(groups)]
        gap = _lacks(last) or _lacks(*between)
        values = quotient(best_of(between, gupdates, max), by_repeat(last, gupdates)) if not gap else {}
        parts.append(part(f"{gib} GiB, speed of the best k between / k = {max(groups, default=96)}", values, LARGER, gap or short_of(*[g for g in groups.values() if g.done])))
    return parts
