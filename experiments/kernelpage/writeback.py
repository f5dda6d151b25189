# SPDX-License-Identifier: BSD-3-Clause
"""Questions on stores through a mapping and on what writes them back."""
from runner import plan

from analysis.origin import spaced

from .study import MIB, NONE, Effect, Missing, Question, at_limits, by_sign, kernel_of, numbered, of_report, report, several, step_ms, takes, written_ratio

# ------------------------------------------------------------------ dirty limits


USUAL = "dirty-usual"  # one commit, at the end, as those with limits of their own


def own_limit(s):
    """The dirty limit of the runs that set none themselves, in words."""
    run = s.latest(USUAL)
    if run is None or "vm.dirty_bytes" not in run["knobs"]:
        return "with the machine's"
    share = int(run["knobs"]["vm.dirty_bytes"]) / plan.size_bytes(run["limit"])
    return f"with {int(run['knobs']['vm.dirty_bytes']) / MIB:.0f} MiB, {share:.0%} of the limit"


def dirty_rows(s):
    return [*((f"{size // MIB} MiB", name) for size, name in numbered(s, "dirty-")), (own_limit(s).removeprefix("with "), USUAL)]


def background(s, name):
    start = s.latest(name)["knobs"].get("vm.dirty_background_bytes")
    return f", and write-back in the background from {int(start) // MIB} MiB on," if start else ""


def device_writes(s, name):
    """A sentence on what the device wrote during a run; "" where that was not counted."""
    try:
        return f" The device writes {Effect(s, name, USUAL, written_ratio)} as many bytes."
    except Missing:
        return ""


def dirty(s):
    limits = [(size, name) for size, name in numbered(s, "dirty-") if s.done(name)]
    if not limits:
        raise s.missing("dirty-8388608")
    for size, name in limits:
        yield f"With `vm.dirty_bytes` of {size // MIB} MiB{background(s, name)} a run {takes(s, name, USUAL, f'one {own_limit(s)}')}.{device_writes(s, name)} There is one commit, at the end."
    if (report(s.latest(USUAL)).get("commits") or {}).get("buffers") == 3:
        yield "For a commit that is not made after each sweep, these runs have three Buffers instead of two."
    if s.done(NONE) and s.done(USUAL):
        yield f"A run that commits after each sweep {takes(s, NONE, USUAL, 'one with a commit at its end alone')}."
    yield "Each of these runs moves both limits together. So the page does not say what an earlier write-back in the background does by itself."
    if not any(Effect(s, name, USUAL).sign for _, name in limits):
        yield "No difference in time can be told, so these runs do not answer the question."
    if any(device_writes(s, name) for _, name in limits):
        yield "The counter of writes is the device's. It includes the initial grid, and what other processes wrote in that time."
    if s.machine()["cgroup"] == "v1":
        yield ("The limits count the dirty pages of the whole machine. A memory cgroup of version 1, as here, has no dirty limits of its own. Where `vm.dirty_bytes` allows more, its reclaim may meet as many dirty pages as the memory limit holds beside the Blocks. "
               "With cgroup v1 reclaim itself waits for the write-back of a page that it meets a second time (`shrink_folio_list` in `mm/vmscan.c`). Where it meets nothing but dirty pages that nobody writes yet, it wakes the threads that write back and sleeps (`reclaim_throttle`).")  # fmt: skip


# ------------------------------------------------------------------ extents, and MADV_POPULATE_WRITE

store_us, populate_us, sync_us, read_ratio, faults_a_page = (of_report(name) for name in ("store_us", "populate_us", "sync_us", "read_ratio", "faults_a_page"))
UNWRITTEN, WRITTEN, UNWRITTEN_POPULATED, WRITTEN_POPULATED = "stores-unwritten-touch", "stores-written-touch", "stores-unwritten-populate", "stores-written-populate"
TOUCHED = [("unwritten", UNWRITTEN), ("written", WRITTEN)]
POPULATED = [("unwritten, touched", UNWRITTEN), ("unwritten, populated", UNWRITTEN_POPULATED), ("written, touched", WRITTEN), ("written, populated", WRITTEN_POPULATED)]


def brought_in(r):
    """microseconds a page to bring it in and store to it"""
    return r["report"]["populate_us"] + r["report"]["store_us"]


def whole(r):
    """microseconds a page to bring it in, store to it and sync it"""
    return brought_in(r) + r["report"]["sync_us"]


def extents(s):
    yield (f"The first store to a page whose extent has been written {takes(s, WRITTEN, UNWRITTEN, 'one to an extent that is allocated alone', store_us)}. The storage reads "
           f"{s.median(WRITTEN, read_ratio):.2f} bytes for each that is stored, and {s.median(UNWRITTEN, read_ratio):.2f} where the extent is unwritten.")  # fmt: skip
    sync = Effect(s, UNWRITTEN, WRITTEN, sync_us)
    yield by_sign(sync, f"The sync takes {sync} as long for unwritten extents, although the file system converts them.", f"The sync pays a part back: it takes {sync} as long for unwritten extents, which the file system converts.",
                  f"The sync of the two cannot be told apart ({sync}).") + f" Stores and sync together: unwritten {takes(s, UNWRITTEN, WRITTEN, 'written', whole)}."  # fmt: skip
    yield "A Buffer that memext has allocated and not yet filled is unwritten. In each later pass it is written."


def populated(s):
    for label, fill, touch in (("unwritten extents", UNWRITTEN_POPULATED, UNWRITTEN), ("written extents that are not in the page cache", WRITTEN_POPULATED, WRITTEN)):
        yield (f"For {label}, populating and storing {takes(s, fill, touch, 'storing alone', brought_in)}. The call takes {s.median(fill, populate_us):.2f} us a page, and the stores after it {s.median(fill, store_us):.2f} us "
               f"instead of {s.median(touch, store_us):.2f}.")  # fmt: skip
    yield f"Faults a page stored: {several(s, POPULATED, faults_a_page, '{:.3f}')}. They include the faults that the call takes itself."
    a_fault = s.median(UNWRITTEN, faults_a_page)
    if 0 < a_fault < 0.5:
        yield f"So a fault here brings in {1 / a_fault:.0f} pages: since Linux 6.18 it maps a whole folio. What a fault for each page would cost was not measured: that needs folios of one page."


# ------------------------------------------------------------------ memory.high

HIGH = "mmap-stream-none-high"


def high_rows(s):
    run = s.latest(HIGH)
    return [("limit alone", NONE), (f"memory.high {spaced(run['high'])}, limit {spaced(run['limit'])}" if run else "memory.high", HIGH)]


def high(s):
    from_limit, at = at_limits(s, NONE)[0][0] if s.done(NONE) else "", s.latest(HIGH)
    yield f"With `memory.high` of {spaced(at['high']) if at else '?'} below a larger limit a run {takes(s, HIGH, NONE, f'with a limit of {spaced(from_limit)}')}. The storage reads {Effect(s, HIGH, NONE, kernel_of('storage_read_bytes'))} as many bytes."
    events = s.values(HIGH, lambda r: (r.get("cgroup") or {}).get("events_high"))
    if events:
        yield f"Linux throttled the run {sorted(events)[len(events) // 2]} times."


QUESTIONS = [
    Question("dirty", "Dirty limits", "Does it help to write back sooner?", "No counterpart in the papers.", dirty_rows, ((step_ms, "ms a step"), (written_ratio, "device writes / stored")), dirty),
    Question("extents", "Unwritten and written extents", "Does a store through a mapping cost less where the extent has never been written?", "The papers' programs write their files first.",
             TOUCHED, ((store_us, "us a page, store"), (sync_us, "us a page, sync"), (read_ratio, "read / stored")), extents),
    Question("populate", "MADV_POPULATE_WRITE", "Is it cheaper to bring pages in for stores by one call (Linux 5.14) than by faults?", "No counterpart in the papers.",
             POPULATED, ((brought_in, "us a page, call and stores"), (faults_a_page, "faults a page")), populated),
    Question("high", "memory.high", "Does throttling (memory.high of cgroup v2) page better than a limit?", "No counterpart in the papers.",
             high_rows, ((step_ms, "ms a step"),), high, needs=(HIGH,)),
]  # fmt: skip
