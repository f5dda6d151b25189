# SPDX-License-Identifier: BSD-3-Clause
"""HHRT: problems larger than a memory, by the size of the temporal block."""
from dataclasses import replace

from analysis.claim import LARGER, NOT_RUN, SMALLER, Part, near, near_difference, no_less_than, no_more_than
from analysis.claims.comparing import best_of, compare, gap_of, part, short_of
from analysis.effects import by_repeat, quotient
from analysis.measures import gupdates, per_step


def _hhrt(results, place):
    return {int(g["k"]): g for g in results["hhrt"].select(place=place)}


def hhrt_speed(results, known):
    """Speed of the best k at 1.5 times the DRAM / speed in memory. These runs have two tiers, the slides have three."""
    groups, normal = list(_hhrt(results, "beyond").values()), results["hhrt"].one(place="inside")
    gap = gap_of(normal) or (NOT_RUN if not groups else "")
    if gap:
        return [Part("best k / in memory", None, LARGER, gap)]
    best = best_of(groups, gupdates, max)
    return [part("speed of the best k beyond the memory / inside", quotient(best, by_repeat(normal, gupdates)), no_less_than(near(known["hhrt"].value("relative-1.5"))), short_of(*groups, normal))]


def hhrt_one(results, known):
    groups = _hhrt(results, "beyond")
    if 1 not in groups or len(groups) < 2:
        return []
    best = best_of([g for k, g in groups.items() if k > 1], gupdates, max)
    v = known["hhrt"].value
    gap = gap_of(groups[1]) or short_of(*groups.values())
    parts = [part("speed of k = 1 / best k", quotient(by_repeat(groups[1], gupdates), best), no_more_than(near(v("k1-96gib") / v("best-96gib"))), gap)]
    inside = results["hhrt"].one(place="inside")
    if not gap_of(groups[1]) and not gap_of(inside):
        parts.append(replace(part(f"speed of k = 1 / inside (HHRT: {v('k1-96gib') / v('inside'):.3f})", quotient(by_repeat(groups[1], gupdates), by_repeat(inside, gupdates))), beside=True))
    return parts


def _between_the_extremes(groups, name=""):
    ks = sorted(groups)
    if len(ks) < 3:
        return []
    best = best_of([groups[k] for k in ks[1:-1]], per_step)
    return [part(f"{name}time of a step, best k between the extremes / k = {k}", quotient(best, by_repeat(groups[k], per_step)), SMALLER, gap_of(groups[k]) or short_of(*groups.values())) for k in (ks[0], ks[-1])]


def hhrt_optimum(results, known):
    """On flash at 1.5 times the DRAM. Beside it the model of the table, for each problem that is larger than the device's memory: its algorithm recomputes nothing, so it cannot test the statement."""
    parts = _between_the_extremes(_hhrt(results, "beyond"))
    for gib in sorted({int(g["gib"]) for g in results["ktable"].groups.values()} - {6}) if "ktable" in results else ():
        parts += [replace(p, beside=True) for p in _between_the_extremes(_ktable(results, gib), f"model, {gib} GiB: ")]
    return parts


def ssd_speed(results, known):
    """Each device of the slides against the next faster one. Linux limits the bandwidth of one device to the rates of three."""
    groups = sorted((g for g in results["ssds"].groups.values()), key=lambda g: g["gbs"])
    return [replace(compare(f"time, {slow['gbs']:g} / {fast['gbs']:g} GB/s", slow, fast, band=LARGER), form="{:.4g}") for slow, fast in zip(groups, groups[1:])]


# The table of k, in three tiers. The sizes are those of the slides. On the accelerator `host` this is a model, with rates of bus and drive that the plan chooses.


def _ktable(results, gib):
    return {int(g["k"]): g for g in results["ktable"].select(gib=gib)}


def _best_published(known, gib):
    """(speed, k) of HHRT's best k."""
    return max((known["ktable"].value(f"{gib}-{k}") or 0, k) for k in (8, 16, 24, 32, 48, 64, 96))


def _best_speed(results, gib):
    return best_of([g for k, g in _ktable(results, gib).items() if k > 1], gupdates, max)


def _best_k(results, gib):
    """The k whose median speed is the highest, in words that tell whether a larger one was run."""
    speeds = {k: g.stat(gupdates) for k, g in _ktable(results, gib).items() if k > 1}
    there = {k: s.median for k, s in speeds.items() if s}
    if not there:
        return "none"
    best = max(there, key=there.get)
    return f"{best}, the only one that was run" if len(there) == 1 else f"{best}, the largest that was run" if best == max(there) else f"{best}"


def _lacks(*groups):
    """Why no group of these can be compared; "" if one can."""
    gaps = [gap_of(g) for g in groups] or [NOT_RUN]
    return "" if "" in gaps else next((g for g in gaps if g != NOT_RUN), NOT_RUN)


SAME_K = (1, 32)


def _same_k(results, known, gib, inside):
    """The speeds at k that HHRT has too, beside the speed of the best k: `stream` computes nothing twice, so its best k may be another one."""
    parts = []
    for k in SAME_K:
        group, given = _ktable(results, gib).get(k), known["ktable"].values.get(f"{gib}-{k}", {}).get("value")
        if group is None or gap_of(group) or gap_of(inside):
            continue
        published = f"{given / known['ktable'].value('6-1'):.3g}" if given else "out of memory"
        parts.append(replace(part(f"{gib} GiB, k = {k} / inside (HHRT: {published})", quotient(by_repeat(group, gupdates), by_repeat(inside, gupdates))), beside=True))
    return parts


def ktable_speed(near_published, *sizes):
    """Speed of the best k for problems larger than a tier / speed inside the device's memory. near_published: makes the band of a published ratio."""

    def found(results, known):
        inside, parts = results["ktable"].one(gib=6), []
        for gib in sizes:
            groups = list(_ktable(results, gib).values())
            published, k = _best_published(known, gib)
            band = no_less_than(near_published(published / known["ktable"].value("6-1")))
            gap = _lacks(inside) or _lacks(*groups)
            label = f"{gib} GiB, best k ({_best_k(results, gib)}; HHRT: {k}) / inside"
            parts.append(part(label, quotient(_best_speed(results, gib), by_repeat(inside, gupdates)) if not gap else {}, band, gap or short_of(inside, *[g for g in groups if g.done])))
            parts += _same_k(results, known, gib, inside)
        return parts

    return found


def near_loss(share):
    """The band of a ratio of speeds that is close to 1. The tolerance widens the lost part, 1 - share, and not the share."""
    return near_difference(share - 1)
