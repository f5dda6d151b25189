# SPDX-License-Identifier: BSD-3-Clause
"""How close does schedule-advised mmap come to explicit I/O, and what is left? Prose from the numbers of the studies of the page cache."""
from analysis.measures import GIB, amplification, gib, moved_read, moved_write, per_step, seconds, system_s


def _middle(group, of):
    """The median, None where it was not counted."""
    found = group.stat(of)
    return found.median if found else None


def _say(value, form):
    return form.format(value) if value is not None else "an uncounted number"


def _explicit(plan, algorithm):
    """The faster of aio and uring with this schedule, or None."""
    done = [g for g in plan.select(advice="explicit", algorithm=algorithm) if g.done]
    return min(done, key=lambda g: _middle(g, per_step)) if done else None


def _per_step(group, of):
    return _middle(group, lambda r: of(r) / r.steps)


def how_close(results):
    """How close does schedule-advised mmap come to explicit I/O, and what is left? Paragraphs of text from the numbers, [] without them."""
    plan = results.get("advice")
    if plan is None:
        return []
    text, heads = [], []
    for algorithm in dict.fromkeys(g["algorithm"] for g in plan.select(backend="mmap")):
        best = _explicit(plan, algorithm)
        none, advised = (plan.one(backend="mmap", algorithm=algorithm, advice=a) for a in ("none", "schedule"))
        for name, g in (("without advice", none), ("advised by the schedule", advised)):
            if g is None or not g.done:
                text.append(f"{algorithm}: mmap {name} {'failed: ' + g.failure if g and g.failure else 'was not run'}.")
        if best and none and advised and none.done and advised.done:
            heads.append(_head(algorithm, best, none, advised))
            text += _left(algorithm, best, none, advised)
    answer = ["With the same schedule, the same Blocks and the same DRAM limit: " + "; ".join(heads) + "."] if heads else []
    return answer + text + _on_the_mapping(plan) + _with_less_read_ahead(results, plan) + _swapped(plan) + _conclusion(plan, heads)


def _head(algorithm, best, none, advised):
    base, n, a = (_middle(g, per_step) for g in (best, none, advised))
    closes = f"; advice closes {(n - a) / (n - base):.0%} of the gap" if n > base else ""
    return f"{algorithm} on mmap takes {a / base:.2f} times as long as explicit I/O ({best['backend']}) when the schedule advises it, {n / base:.2f} times without advice{closes}"


def _left(algorithm, best, none, advised):
    """Paragraphs: time and bytes that the advised mapping costs beyond explicit I/O."""
    base = _per_step(best, seconds)
    time = {"waiting for Blocks": lambda r: r.report["time"]["wait_s"], "a slower computation, whose cores the copying threads and the kernel share": lambda r: r.report["time"]["update_s"],
            "copies between Blocks": lambda r: r.report["time"]["blk2blk_s"]}  # fmt: skip
    parts = {name: (_per_step(advised, of) - _per_step(best, of)) / base for name, of in time.items()}
    named = ", ".join(f"{v:+.0%} {k}" for k, v in sorted(parts.items(), key=lambda x: -x[1]))
    faults = {name: _middle(g, lambda r: r.report["major_faults"]) for name, g in (("none", none), ("advised", advised))}
    first = (f"{algorithm}, what is left in time, in parts of explicit I/O's: {named}. The system time of a step is {_per_step(advised, system_s):.3f} s, explicit I/O's {_per_step(best, system_s):.3f} s: every page is entered into the page "
             f"cache, mapped, copied and reclaimed; {faults['advised']:.0f} major faults ({faults['none']:.0f} without advice).")  # fmt: skip
    needed_read, needed_write = advised.first(lambda r: [b / GIB for b in r.needed_bytes])
    read, wrote, read_none = _middle(advised, gib(moved_read)), _middle(advised, gib(moved_write)), _middle(none, gib(moved_read))
    second = (f"{algorithm}, what is left in bytes: needed are {needed_read:.2f} GiB in and {needed_write:.2f} out, advised mmap reads {_say(read, '{:.2f}')} and writes {_say(wrote, '{:.2f}')}{_times(advised)}; "
              f"without advice it reads {_say(read_none, '{:.2f}')}{_times(none)}.")  # fmt: skip
    if read is None:
        return [first, second]
    extra = read - needed_read
    if extra > 0.05 * needed_read:
        part = "all" if needed_write >= extra else f"{needed_write / extra:.0%}"
        second += f" A page that is stored to is read first, which explicit I/O need not do: that can explain {part} of the {extra:.2f} GiB read beyond the need."
    return [first, second]


def _times(group):
    """" (1.23 times the need)", or nothing where it was not counted."""
    found = _middle(group, amplification)
    return f" ({found:.2f} times the need)" if found is not None else ""


def _on_the_mapping(plan):
    """Without Blocks there is no explicit counterpart; what the kernel does alone, against what it is told."""
    values = {a: plan.one(backend="mmap", algorithm="plain", advice=a) for a in ("none", "schedule")}
    if not all(g and g.done for g in values.values()):
        return []
    each = ", ".join(f"{name} {_middle(g, per_step):.2f} s a step{_times(g)}" for name, g in values.items())
    return [f"On the mapping, plane by plane (no Blocks, no explicit counterpart), the access is sequential and the kernel's read-ahead suits it: {each}."]


def _with_less_read_ahead(results, plan):
    """The same question at every read-ahead size."""
    text, study = [], results.get("readahead")
    for algorithm in ("stream", "skewed-min") if study else ():
        best = _explicit(plan, algorithm)
        if best is None:
            continue
        base, said = _per_step(best, seconds), []
        for kind, name in ((algorithm, "without advice"), (f"{algorithm}-schedule", "advised")):
            tried = [g for g in study.select(kind=kind) if g.done]
            if tried:
                fast, slow = (pick(tried, key=lambda g: _middle(g, per_step)) for pick in (min, max))
                said.append(f"{name} {_middle(fast, per_step) / base:.2f} ({fast['ahead']} KiB) to {_middle(slow, per_step) / base:.2f} times ({slow['ahead']} KiB)")
        if said:
            text.append(f"Read-ahead decides how well the kernel does alone. {algorithm}, in explicit I/O's time, by the size that suits best and worst: {'; '.join(said)}.")
    return text


def _swapped(plan):
    text = []
    for algorithm in dict.fromkeys(g["algorithm"] for g in plan.select(backend="swap")):
        best, groups = _explicit(plan, algorithm), [g for g in plan.select(backend="swap", algorithm=algorithm) if g.done]
        if best and groups:
            base = _per_step(best, seconds)
            fast, slow = (pick(groups, key=lambda g: _middle(g, per_step)) for pick in (min, max))
            text.append(f"swap, {algorithm}: {_middle(fast, per_step) / base:.1f} times explicit I/O's time with the best advice ({fast['advice']}{_times(fast)}) and {_middle(slow, per_step) / base:.1f} with the worst ({slow['advice']}{_times(slow)}). "
                        f"Advice about files means little to anonymous memory; what it lacks is read-ahead by more than vm.page-cluster.")  # fmt: skip
    return text


def _conclusion(plan, heads):
    if not heads:
        return []
    worst = []
    for algorithm in dict.fromkeys(g["algorithm"] for g in plan.select(backend="mmap")):
        best, advised = _explicit(plan, algorithm), plan.one(backend="mmap", algorithm=algorithm, advice="schedule")
        if best and advised and advised.done:
            worst.append(_per_step(advised, seconds) / _per_step(best, seconds))
    near, far = min(worst), max(worst)
    how = "comes within a fifth of explicit I/O" if far < 1.2 else f"takes {near:.1f} to {far:.1f} times explicit I/O's time" if far > 1.1 * near else f"takes {far:.1f} times explicit I/O's time"
    return [f"In short: advised by the schedule, mmap {how}. Advice can say what to read and what to drop, so that bytes come close to the need; it cannot spare the kernel's work for every page (entering, mapping, copying, "
            "reclaiming), nor the reading of pages that are overwritten as a whole, nor can it keep many requests in flight without threads that block in the kernel."]  # fmt: skip
