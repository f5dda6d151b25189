# SPDX-License-Identifier: BSD-3-Clause
"""Questions on advice: of madvise and of posix_fadvise."""
from .study import HUGE, NONE, SCHEDULE, URING, Effect, Question, device_reads, faults, major_faults, of_report, read_ratio, several, step_ms, sweeps, system_ms, table, take, takes, written_ratio

ADVICES = ("none", "sequential", "random", "hugepage", "schedule")
PARTS, PARTS_ADVISED = "mmap-skewed-min-none", "mmap-skewed-min-schedule"
# What Linux does with a fault: do_sync_mmap_readahead in mm/filemap.c. What the schedule calls: populate, will_need and drop in backends/mmap/mmap.c, advise_around in runtime/execute/compute.c.
AROUND = ("Without advice Linux reads around a page that a fault does not find in the page cache. Half of `read_ahead_kb` lies before the page (`do_sync_mmap_readahead` in `mm/filemap.c`). "
          "One page of this window carries a mark. A fault at the mark starts the next window, which lies ahead, and does not wait for it (`page_cache_async_ra` in `mm/readahead.c`).")  # fmt: skip
FAULTS = ((faults, "minor faults a MiB stored", "{:.1f}"), (major_faults, "major faults a MiB stored", "{:.1f}"), (read_ratio, "storage reads / loaded", "{:.2f}"), (written_ratio, "device writes / stored", "{:.2f}"))
TOLD = [("io_uring", URING), ("io_uring, parts of planes", "uring-skewed-min"), *((f"mmap, {a}", f"mmap-stream-{a}") for a in ADVICES), ("mmap, parts of planes", PARTS), ("mmap schedule, parts of planes", PARTS_ADVISED)]


majors = of_report("major_faults")
CALLS = ("Before a range is copied into a Block or from one, advice by the schedule calls `MADV_POPULATE_READ`. For ranges below 1 MiB it also calls `MADV_WILLNEED`, a little earlier. "
         "After the copy it calls `MADV_DONTNEED`, `sync_file_range` and `POSIX_FADV_DONTNEED`, which write the range back and drop it. Without Blocks it calls `MADV_WILLNEED` for the next planes instead.")  # fmt: skip
CONTROL = ("`MADV_POPULATE_READ` waits until the pages are there. memext calls `MADV_WILLNEED` for 128 KiB at a time, and lets `sync_file_range` wait where more than 32 MiB are being written. So much of this is control of I/O by synchronous calls, and not advice.")


def madvise(s):
    yield f"Without advice a mapping {takes(s, NONE, URING, 'io_uring with the same Blocks')}. Over {sweeps(s, NONE)}, the storage reads {s.median(NONE, read_ratio):.2f} times the bytes that the schedule loads."
    yield (f"`MADV_SEQUENTIAL` {takes(s, 'mmap-stream-sequential', NONE, 'none')}. It reads "
           f"{s.median('mmap-stream-sequential', read_ratio):.2f} times the bytes loaded. {AROUND} "
           f"`MADV_SEQUENTIAL` makes windows that begin at the page. {waits_said(s)}`MADV_RANDOM` turns read-ahead off: it {takes(s, 'mmap-stream-random', NONE, 'none')} and reads "
           f"{s.median('mmap-stream-random', read_ratio):.2f} times the bytes, page by page. With either advice, reclaim disregards accesses through the mapping (`vma_has_recency`).")  # fmt: skip
    yield (f"`MADV_HUGEPAGE` {takes(s, HUGE, NONE, 'none')}. It takes {s.median(HUGE, faults):.1f} minor faults a MiB stored instead of {s.median(NONE, faults):.0f} (see large folios). Two things change at once. For such a mapping Linux ignores `read_ahead_kb`. "
           "It reads two folios of 2 MiB, from the multiple of 2 MiB at or before the page on. So this figure does not belong to large folios alone.")  # fmt: skip
    yield f"{CALLS} {CONTROL}"
    yield (f"Advice by the schedule {takes(s, SCHEDULE, NONE, 'none')}. On `stream` the storage reads {s.median(SCHEDULE, read_ratio):.2f} times the bytes loaded. For parts of planes it {takes(s, PARTS_ADVISED, PARTS, 'none')}: the storage reads "
           f"{s.median(PARTS_ADVISED, read_ratio):.2f} times the bytes loaded instead of {s.median(PARTS, read_ratio):.2f}. Without Blocks it {takes(s, 'mmap-plain-schedule', 'mmap-plain-none', 'none')}.")  # fmt: skip
    yield "The table has the faults of each run, what the storage reads, and what the device writes. A major fault does not find its page in the page cache, or is tried again after it waited for the page. All others are minor: also the first store to a page that was mapped for reading."
    yield table(s, TOLD, FAULTS)
    yield "`MADV_POPULATE_READ` maps pages for reading. So with advice by the schedule each page that is stored to takes a second, minor fault. What the device writes includes the initial grid, and what other processes wrote in that time."
    if s.values(HUGE, written_ratio) and s.median(HUGE, written_ratio) > 1.1:
        yield "With `MADV_HUGEPAGE` a store makes a folio of 2 MiB dirty, while the program stores slabs of other sizes. So a folio may be written more than once."
    yield f"Against explicit transfers, `MADV_HUGEPAGE` {takes(s, HUGE, URING, 'io_uring')}. Advice by the schedule {takes(s, SCHEDULE, URING, 'io_uring')}.{parts_said(s)} Beside its Blocks a mapping has the rest of the memory limit as page cache. io_uring uses nothing of that rest."


def parts_said(s):
    explicit = "uring-skewed-min"
    return f" For parts of planes a mapping without advice {takes(s, PARTS, explicit, 'io_uring')}." if s.done(explicit) and s.done(PARTS) else ""


def waits_said(s):
    """How many of the reads a fault waited for, with MADV_SEQUENTIAL and without."""
    told, plain = "mmap-stream-sequential", NONE
    if not all(s.values(name, of) for name in (told, plain) for of in (majors, device_reads)) or s.median(told, majors) <= 1.5 * s.median(plain, majors):
        return ""
    return f"More of its windows are read while a fault waits for them. It takes {s.median(told, majors):.0f} major faults for {s.median(told, device_reads):.0f} reads of the device, instead of {s.median(plain, majors):.0f} for {s.median(plain, device_reads):.0f}. {stores_said(s, told, plain)}"


def stores_said(s, told, plain):
    """That stores fault more often with this advice, where they do."""
    if s.median(told, faults) <= 1.5 * s.median(plain, faults):
        return ""
    return f"Stores also take more minor faults, {s.median(told, faults):.0f} a MiB instead of {s.median(plain, faults):.0f}, and the process {s.median(told, system_ms):.0f} ms of system time a step instead of {s.median(plain, system_ms):.0f}. "


us_a_mib, system_us = of_report("us_a_mib"), of_report("system_us_a_mib")
FADVICES = [(a, f"fadvise-{a}") for a in ("none", "sequential", "willneed", "dontneed", "both")]


def reads_again(r):
    """bytes that the storage read, of those that it was asked for"""
    return r["report"]["storage_read_bytes"] / r["report"]["read_bytes"]


def whole_said(s):
    """That a request that the device takes whole hides what read-ahead does."""
    if (s.machine()["storage"].get("max_request_kb") or 0) < 1024:
        return ""
    return " Linux reads a MiB that `pread` asks for in one piece here, whatever the read-ahead is. So these runs do not tell what doubling is worth."


def single_said(s):
    """A likely reason, where WILLNEED takes more system time."""
    if not all(s.values(f"fadvise-{a}", system_us) for a in ("none", "willneed")) or s.median("fadvise-willneed", system_us) < 1.5 * s.median("fadvise-none", system_us):
        return ""
    return " A likely reason for the time of `POSIX_FADV_WILLNEED` is that it brings in single pages, and `pread` larger folios. The sizes of folios were not looked at here."


def fadvise(s):
    none = "fadvise-none"
    yield (f"A reader without a mapping calls `pread` for a MiB at a time, from the beginning of a file to its end and again, and computes a checksum of each. `POSIX_FADV_WILLNEED` for the next MiB {takes(s, 'fadvise-willneed', none, 'no advice', us_a_mib)}. "
           f"`POSIX_FADV_DONTNEED` behind it {takes(s, 'fadvise-dontneed', none, 'no advice', us_a_mib)}. The two together {take(s, 'fadvise-both', none, 'no advice', us_a_mib)}. "
           f"`POSIX_FADV_SEQUENTIAL` doubles the read-ahead: it {takes(s, 'fadvise-sequential', none, 'no advice', us_a_mib)}.{whole_said(s)}")  # fmt: skip
    yield (f"The storage reads, of the bytes asked for: {several(s, FADVICES, reads_again, '{:.2f}')}. System time a MiB: {several(s, FADVICES, system_us, '{:.0f} us')}.{single_said(s)}")
    dropped = Effect(s, "fadvise-dontneed", none, reads_again)
    if dropped.sign > 0:
        yield f"`POSIX_FADV_DONTNEED` makes the storage read {dropped} as many bytes: it drops pages that the next pass would find."


QUESTIONS = [
    Question("advice", "Advice", "Does a mapping reach the speed of explicit transfers if the program tells Linux what comes next?", "The papers' mmap programs gave no advice (Linux 3.13).",
             [("uring (explicit)", URING), *((f"mmap, {a}", f"mmap-stream-{a}") for a in ADVICES), ("uring, parts of planes", "uring-skewed-min"), ("mmap none, parts of planes", PARTS),
              ("mmap schedule, parts of planes", PARTS_ADVISED), ("mmap none, no Blocks", "mmap-plain-none"), ("mmap schedule, no Blocks", "mmap-plain-schedule")],
             ((step_ms, "ms a step"), (read_ratio, "storage reads / loaded")), madvise, (("none", NONE), ("hugepage", HUGE), ("schedule", SCHEDULE), ("none, parts of planes", PARTS))),
    Question("fadvise", "posix_fadvise alone", "Does advice help a reader that has no mapping?", "The papers' programs read with aio or through a mapping.",
             FADVICES, ((us_a_mib, "us a MiB"), (reads_again, "storage reads / asked for")), fadvise),
]  # fmt: skip
