# SPDX-License-Identifier: BSD-3-Clause
"""Questions that are asked at several memory limits: what holds at one size, and read-ahead. The grid grows with the limit."""
import re

from runner import plan

from analysis.origin import spaced

from .study import (
    HUGE,
    NONE,
    SCHEDULE,
    SIZE,
    URING,
    Effect,
    Missing,
    Question,
    at_limits,
    kernel_of,
    merged,
    read_kib,
    read_ratio,
    refaults,
    report,
    several,
    step_ms,
    sweeps,
    sweeps_made,
    table,
    takes,
    write_kib,
)

LINUX_AHEAD = int(plan.AHEAD["read_ahead_kb"])


def suffix(s, limit, name):
    """What the name of a run has at this limit, "" at the plan's own."""
    return next((run.removeprefix(name) for at, run in at_limits(s, name) if at == limit), "")


# ------------------------------------------------------------------ sweep of the limit

SWEPT = (("io_uring", URING), ("none", NONE), ("hugepage", HUGE), ("schedule", SCHEDULE))


def sweep_rows(s):
    return [(f"{spaced(limit)}, {label}", run) for limit, _ in at_limits(s, NONE) for label, name in SWEPT for at, run in at_limits(s, name) if at == limit]


def sweep(s):
    limits = [limit for limit, run in at_limits(s, NONE) if s.done(run)]
    if len(limits) < 2:
        raise Missing("fewer than two limits have results")
    kept = []
    for limit in limits:
        end = suffix(s, limit, NONE)
        plain, huge = takes(s, NONE + end, URING + end, "io_uring"), takes(s, HUGE + end, NONE + end, "none")
        kept.append((Effect(s, NONE + end, URING + end), Effect(s, HUGE + end, NONE + end)))
        yield (f"At {spaced(limit)} a mapping without advice {plain}.{own_ahead(s, limit, end)} `MADV_HUGEPAGE` {huge}, and advice by the schedule {takes(s, SCHEDULE + end, NONE + end, 'none')}. "
               f"Without advice the storage reads {s.median(NONE + end, read_ratio):.2f} times the bytes loaded, over {sweeps(s, NONE + end)}.")  # fmt: skip
    if reads_by_sweeps(s, [NONE + suffix(s, limit, NONE) for limit in limits]):
        yield ("Without advice and with this read-ahead, what the storage reads does not depend on the limit. A store to a written extent reads its page first, and only the first sweep stores to unwritten ones. So S sweeps read (2 S - 1) / S times the bytes. "
               "Times of different limits are not compared, because grids and sweeps differ.")  # fmt: skip
    if not all(effect.enough for pair in kept for effect in pair):
        yield "There are too few rounds, or too short runs, to compare the limits."
        return
    yield f"{directions('a mapping without advice against io_uring', [a.sign for a, _ in kept])} {directions('`MADV_HUGEPAGE` against none', [b.sign for _, b in kept])}"


def own_ahead(s, limit, end):
    """How a mapping fares with the read-ahead that the machine's device came with; "" if that is the one of the other runs, or was not run."""
    size = s.machine()["storage"]["read_ahead_kb"]
    name = next((run for ahead, run in ahead_runs(s).get(limit, ()) if ahead == size), None)
    if size == LINUX_AHEAD or name is None or not s.done(name):
        return ""
    return f" With the read-ahead that this device came with, {size} KiB, it {takes(s, name, URING + end, 'io_uring')}, and {takes(s, name, HUGE + end, '`MADV_HUGEPAGE` with 128 KiB')}."


OTHER_WAYS = "The runs at the limits differ in more than the limit: larger grids make fewer sweeps, and a read-ahead of some MiB takes a lesser share of a larger limit."


def reads_by_sweeps(s, names):
    """Whether all that is read twice is what stores to written extents read first. The first sweep into the second Buffer stores to extents that were never written: S sweeps read (2S - 1) / S times the bytes."""
    made = {name: sweeps_made(s.latest(name)) for name in names}
    return all(made.values()) and all(abs(s.median(name, read_ratio) - (2 * n - 1) / n) < 0.02 for name, n in made.items())


def directions(what, signs):
    """Whether the findings at all limits have one direction."""
    if not any(signs):
        return f"For {what} no difference can be told at any of these limits."
    if len(set(signs)) == 1:
        return f"For {what} the finding has the same direction at each of these limits."
    return f"For {what} the findings at these limits differ. The limits were not compared directly."


# ------------------------------------------------------------------ read-ahead


def ahead_runs(s):
    """{limit: [(KiB, run)]} in order. The runs without advice have Linux's own size, unless they were made with other settings."""
    found = {}
    for limit, name in at_limits(s, NONE):
        if s.latest(name)["knobs"].get("read_ahead_kb") == str(LINUX_AHEAD):
            found.setdefault(limit, {})[LINUX_AHEAD] = name
    for name in s.runs:
        match = re.fullmatch(rf"ahead-(\d+)(?:-{SIZE})?", name)
        if match:
            found.setdefault(s.latest(name)["limit"], {}).setdefault(int(match[1]), name)
    return {limit: sorted(found[limit].items()) for limit in sorted(found, key=plan.size_bytes)}


def ahead_rows(s):
    rows = [(f"{spaced(limit)}, {size} KiB", name) for limit, runs in ahead_runs(s).items() for size, name in runs]
    own = NONE + "-machine"
    return [*rows, (f"{spaced(s.latest(own)['limit'])}, the machine's own", own)] if own in s.runs else rows


def at_one_limit(s, limit, known):
    """(sentences, (Linux's own size, the largest size), by what effect the largest differs from Linux's own) at one limit."""
    own, usual = next((run for run in known if run[0] == LINUX_AHEAD), known[0])
    (best, least), (largest, last) = min(known, key=lambda run: s.median(run[1], step_ms)), known[-1]
    said = [f"At {spaced(limit)} the least median time is that of {best} KiB" + (f". It {takes(s, least, usual, f'{own} KiB')}." if best != own else ", which is Linux's own." if own == LINUX_AHEAD else "."),
            f"The storage reads these multiples of the bytes loaded: {several(s, [(f'{n} KiB', run) for n, run in known], read_ratio, '{:.2f}')}."]  # fmt: skip
    effect = Effect(s, last, usual)
    said.append(f"{largest} KiB {takes(s, last, usual, f'{own} KiB')}, and the storage reads {Effect(s, last, usual, kernel_of('storage_read_bytes'))} as many bytes.")
    again = [s.median(run, refaults) for run in (usual, last) if s.values(run, refaults)]
    if len(again) == 2 and again[1] > 1.2 * again[0]:
        said.append(f"Linux counted {again[1]:.2f} refaults for each page loaded, instead of {again[0]:.2f}: more pages are reclaimed that are needed again.")
    return said, (own, largest), effect


FINDINGS = {1: "costs time", -1: "saves time", 0: "shows no clear difference"}


def over_limits(found):
    """What the limits say together. found: [(limit, (size, largest size), effect of the second against the first)]"""
    if len(found) < 2:
        return "One limit was measured, which says nothing of larger ones."
    if not all(effect.enough for _, _, effect in found):
        return "There are too few rounds, or too short runs, to say whether the limit decides."
    at = {}
    for limit, _, effect in found:
        at.setdefault(FINDINGS[effect.sign], []).append(spaced(limit))
    told = [f"{what} at {' and '.join(filter(None, [', '.join(limits[:-1]), limits[-1]]))}" for what, limits in at.items()]
    if len(at) > 1:
        said = f"The largest read-ahead {', and '.join(told)}."
    else:
        said = "No difference can be told at any of these limits." if FINDINGS[0] in at else f"The largest read-ahead {next(iter(at))} at each of these limits."
    return said + between(found[0], found[-1])


def between(small, large):
    """A sentence that compares the effects of the same two sizes at two limits by their intervals; "" where the sizes differ."""
    (at, sizes, _), (other, others, _) = small, large
    if sizes != others:
        return ""
    (low, high), (lower, higher) = (effect.effect.interval() for _, _, effect in (small, large))
    if low <= higher and lower <= high:
        return f" The intervals of this effect at {spaced(at)} and at {spaced(other)} overlap, so these runs do not tell the two limits apart."
    less, more = (other, at) if low > higher else (at, other)
    what = "loss" if max(small[2].sign, large[2].sign) > 0 and min(small[2].sign, large[2].sign) >= 0 else "ratio"
    return f" The {what} of {sizes[1]} KiB against {sizes[0]} KiB is smaller at {spaced(less)} than at {spaced(more)}: the two intervals do not overlap."


def readahead(s):
    found = []
    for limit, runs in ahead_runs(s).items():
        known = [(size, name) for size, name in runs if s.done(name)]
        if len(known) > 1:
            said, sizes, effect = at_one_limit(s, limit, known)
            found.append((limit, sizes, effect))
            yield " ".join(said)
    if not found:
        raise Missing("fewer than two sizes of read-ahead have results")
    yield over_limits(found) + (f" {OTHER_WAYS}" if len(found) > 1 else "")
    own = NONE + "-machine"
    if s.done(own):
        machine = s.machine()
        yield (f"With this machine's own settings (read-ahead {machine['storage']['read_ahead_kb']} KiB, its own dirty limits, and DAMON as it was) a run {takes(s, own, NONE, 'one with the settings of the others')}.")
    least = min(s.median(name, read_ratio) for runs in ahead_runs(s).values() for _, name in runs if s.done(name))
    if least > 1.05:
        yield ("With every read-ahead the storage reads more bytes than the schedule loads. Stores are one reason. A store to a page of the mapping that is not in the page cache faults, and Linux reads the page first. "
               "Where the extent has never been written there is nothing to read (see below).")  # fmt: skip


# ------------------------------------------------------------------ sizes of requests


REQUESTS = [("io_uring", URING), ("io_uring, parts of planes", "uring-skewed-min"), ("io_uring, RWF_DONTCACHE", "uring-uncached"), ("mmap, none", NONE), ("mmap, sequential", "mmap-stream-sequential"), ("mmap, random", "mmap-stream-random"),
            ("mmap, hugepage", HUGE), ("mmap, schedule", SCHEDULE), ("mmap, parts of planes", "mmap-skewed-min-none"), ("swap file", "swap-file")]  # fmt: skip


def request_rows(s):
    return REQUESTS + ahead_rows(s)


def slab_said(s):
    """Why the mean of explicit transfers is far below their largest size."""
    run, most = report(s.latest(URING)), 1024
    if not (run.get("plan") or {}).get("slab") or "plane_pitch_bytes" not in (run.get("layout") or {}):
        return ""
    kib = run["plan"]["slab"] * run["layout"]["plane_pitch_bytes"] / 1024
    pieces = -(-kib // most)
    return f"A slab of planes has {kib:.0f} KiB, which memext moves in {pieces:.0f} requests of {kib / pieces:.0f} KiB in the mean. " if pieces > 1 else ""


def requests(s):
    explicit, mapped = (s.median(name, read_kib) for name in (URING, NONE))
    yield "The table has the mean size of the requests that the device completes."
    yield table(s, REQUESTS, ((read_kib, "KiB a read", "{:.0f}"), (write_kib, "KiB a write", "{:.0f}")))
    most = s.machine()["storage"].get("max_request_kb")
    yield (f"Explicit transfers have at most 1 MiB, and reach the device in reads of {explicit:.0f} KiB{f' (it takes {most} KiB at most)' if most else ''}. {slab_said(s)}A mapping without advice reaches it in reads of {mapped:.0f} KiB. "
           f"The block layer merged {s.median(URING, merged):.0%} of the requests of io_uring and {s.median(NONE, merged):.0%} of those of the mapping.")  # fmt: skip
    sizes = [(f"{spaced(limit)}, {size} KiB", name) for limit, runs in ahead_runs(s).items() for size, name in runs if s.values(name, read_kib)]
    if sizes:
        yield "The next table has the reads of a mapping without advice, by limit and read-ahead."
        yield table(s, sizes, ((read_kib, "KiB a read", "{:.0f}"),))
    yield "The counters are the device's. They include the initial grid, and what other processes read and wrote in that time."


QUESTIONS = [
    Question("sweep", "From small limits to large ones", "Does what holds at the smallest limit hold at larger ones?", "The grid grows with the limit, so that Buffers and limit keep their ratio.",
             sweep_rows, ((step_ms, "ms a step"), (read_ratio, "storage reads / loaded")), sweep),
    Question("readahead", "Read-ahead", "How far should Linux read ahead for a stream of planes through a mapping?", "The papers say that mmap \"sometimes requires OS kernel tuning for page cache\" and give no sizes. Without advice Linux reads around the page of a fault first, and then ahead of it.",
             ahead_rows, ((step_ms, "ms a step"), (read_ratio, "storage reads / loaded")), readahead),
    Question("requests", "Sizes of requests", "How large are the requests that reach the block layer?", "No counterpart in the papers.",
             request_rows, ((read_kib, "KiB a read"), (write_kib, "KiB a write")), requests),
]  # fmt: skip
