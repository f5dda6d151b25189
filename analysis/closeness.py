# SPDX-License-Identifier: BSD-3-Clause
"""How close does schedule-advised mmap come to explicit I/O, and what is left? Writes sentences from the numbers of the studies of the page cache. It compares runs of one round. A difference counts if its
interval does not contain 1 and the runs are long enough. The sentences give no cause that no run shows."""
from analysis.cells import METHODS, Ratio, ratio
from analysis.effects import LEAST_PAIRS, LEAST_SECONDS
from analysis.measures import amplification, per_step, system_s

EXPLICIT = ("uring", "aio")


def _explicit(plan, algorithm):
    """Explicit I/O with this schedule: always the same backend where both ran, since the faster one of the day would be chosen by its noise."""
    return next((g for backend in EXPLICIT if (g := plan.one(backend=backend, algorithm=algorithm)) and g.done), None)


def _named(group):
    return f"explicit I/O ({METHODS[group['backend']]})"


def _decides(value):
    """1: more, -1: less, 0: the value does not decide."""
    if not isinstance(value, Ratio) or not value.interval or value.short:
        return 0
    return 1 if value.low > 1 else -1 if value.high < 1 else 0


def _say(value):
    """ "1.23 times [1.10 to 1.35, n = 9]", and what it lacks."""
    if not isinstance(value, Ratio):
        return f"an unknown number of times ({value or 'it was not run'})"
    short = f"; runs under {LEAST_SECONDS:g} s" if value.short else ""
    spread = f"[{value.low:.2f} to {value.high:.2f}, n = {value.n}{short}]" if value.interval else f"({value.low:.2f} to {value.high:.2f}, n = {value.n}{short})"
    return f"{value.median:.2f} times {spread}"


def _system_per_step(run):
    found = system_s(run)
    return found / run.steps if found is not None and run.steps else None


def _algorithms(plan, backend, but=()):
    return [a for a in dict.fromkeys(g["algorithm"] for g in plan.select(backend=backend)) if a not in but]


def how_close(results):
    """Paragraphs of text from the numbers; [] if there are none."""
    plan = results.get("advice")
    if plan is None:
        return []
    text, ends = [], {}
    for algorithm in _algorithms(plan, "mmap", but=("plain",)):
        best = _explicit(plan, algorithm)
        none, advised = (plan.one(backend="mmap", algorithm=algorithm, advice=a) for a in ("none", "schedule"))
        for name, g in (("without advice", none), ("advised by the schedule", advised)):
            if g is None or not g.done:
                text.append(f"{algorithm}: mmap {name} {'failed: ' + g.failure if g and g.failure else 'was not run'}.")
        if best and none and advised and none.done and advised.done:
            ends[algorithm] = _decides(ratio(advised, best, per_step))
            text += _compared(algorithm, best, none, advised)
    text += _on_the_mapping(plan) + _with_less_read_ahead(results, plan) + _swapped(plan)
    brackets = [f"Square brackets hold 95 % intervals, each for that ratio alone. Round brackets after a number of times hold a range over fewer than {LEAST_PAIRS} rounds, and after bytes the least and the most of the rounds. Ranges of times and runs under {LEAST_SECONDS:g} s decide nothing."]
    return text + brackets + _conclusion(ends) if text else []


def title(results):
    """What how_close can say: without runs on explicit I/O it compares nothing with it."""
    plan = results.get("advice")
    explicit = plan is not None and any(plan.select(backend=backend) for backend in EXPLICIT)
    return "How close schedule-advised mmap comes to explicit I/O" if explicit else "What advice by the schedule changes on a mapping"


def _compared(algorithm, best, none, advised):
    """Paragraphs: time, then bytes and the work of Linux."""
    times = (f"{algorithm}, with the same Blocks and the same DRAM limit: advised by the schedule, a step on mmap takes {_say(ratio(advised, best, per_step))} as long as with {_named(best)}. "
             f"Without advice a step on mmap takes {_say(ratio(none, best, per_step))} as long as with {_named(best)}. With advice it takes {_say(ratio(advised, none, per_step))} as long as without.")  # fmt: skip
    kernel = ratio(advised, best, _system_per_step, timed=True)
    counts = f"{algorithm}: advised mmap takes {_say(kernel)} the system time of {_named(best)} for a step.{_moved('Bytes moved / bytes needed', {'explicit': best, 'advised': advised, 'without advice': none})}"
    faults = {name: g.stat(lambda r: r.report["major_faults"]) for name, g in (("advised", advised), ("without advice", none))}
    return [times, counts + f" Page faults that waited for storage (major faults): {', '.join(f'{name} {v.median:.0f}' for name, v in faults.items() if v)}."]


def _moved(what, groups):
    """ " WHAT: advised 1.23 (1.20 to 1.25)", or nothing where it was not counted."""
    found = {name: g.stat(amplification) for name, g in groups.items()}
    said = ", ".join(f"{name} {v.median:.2f} ({v.low:.2f} to {v.high:.2f})" for name, v in found.items() if v)
    return f" {what}: {said}." if said else ""


def _on_the_mapping(plan):
    """Without Blocks there is no explicit counterpart: compares Linux with advice and without."""
    none, advised = (plan.one(backend="mmap", algorithm="plain", advice=a) for a in ("none", "schedule"))
    if not all(g and g.done for g in (none, advised)):
        return []
    return [f"A run on the mapping, plane by plane, has no Blocks and no explicit counterpart. Advised by the schedule, a step takes {_say(ratio(advised, none, per_step))} as long as without.{_moved('Bytes moved / bytes needed', {'advised by the schedule': advised, 'without advice': none})}"]


def _with_less_read_ahead(results, plan):
    """Compares each size of read-ahead with the first one of the study."""
    study, text = results.get("readahead"), []
    for kind in dict.fromkeys(g["kind"] for g in study.groups.values()) if study else ():
        tried = [g for g in study.select(kind=kind) if g.done]
        first, others = (tried[0], tried[1:]) if tried else (None, [])
        if others:
            text.append(f"Read-ahead, {kind}: compared with a read-ahead of {first['ahead']} KiB, a step takes " + "; ".join(f"{_say(ratio(g, first, per_step))} as long with {g['ahead']} KiB" for g in others) + ".")
    return text


def _swapped(plan):
    text = []
    for algorithm in _algorithms(plan, "swap"):
        best, none = _explicit(plan, algorithm), plan.one(backend="swap", algorithm=algorithm, advice="none")
        if not best or none is None or not none.done:
            continue
        told = [f"swap, {algorithm}: without advice a step takes {_say(ratio(none, best, per_step))} as long as with {_named(best)}."]
        against = {g["advice"]: ratio(g, none, per_step) for g in plan.select(backend="swap", algorithm=algorithm) if g.done and g is not none}
        clear = [f"{advice} takes {_say(value)} as long" for advice, value in against.items() if _decides(value)]
        open_ = [advice for advice, value in against.items() if not _decides(value)]
        told += [f"Compared with no advice, {'; '.join(clear)}."] if clear else []
        told += [f"These advices make no clear difference: {', '.join(open_)}."] if open_ else []
        text.append(" ".join(told))
    return text


def _conclusion(ends):
    if not ends:
        return []
    words = {1: "is slower than explicit I/O", -1: "is faster than explicit I/O", 0: "does not differ clearly from explicit I/O here"}
    return ["In short: advised by the schedule, mmap " + "; ".join(f"{words[end]} with {' and '.join(a for a, e in ends.items() if e == end)}" for end in dict.fromkeys(ends.values())) + "."]
