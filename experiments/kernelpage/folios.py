# SPDX-License-Identifier: BSD-3-Clause
"""Questions on large folios: what a fault costs, on this file system and on others."""
import re

from analysis.origin import spaced

from .study import HUGE, NONE, URING, Question, of_report, report, several, system_ms, takes

SIZES = ("4KiB", "64KiB", "1MiB", "2MiB")
FOLIOS = [(spaced(size), f"folio-{size}") for size in SIZES]
LOST_US = 0.02


def store_us(r):
    """us a page of the first store: a difference of two times, in which less than this is lost"""
    return max(report(r)["store_us"], LOST_US)


read_us = of_report("read_us")


def folio_kib(r):
    """0 where it could not be seen"""
    return (report(r)["folio_bytes"] or 0) / 1024


def folios(s):
    seen = [f"{s.median(name, folio_kib):.0f}" for _, name in FOLIOS if s.done(name) and s.median(name, folio_kib)]
    yield (f"A file was written by `write` calls of {', '.join(label for label, _ in FOLIOS[:-1])} and {FOLIOS[-1][0]} and synced. There was no memory limit, so it stayed in the page cache." +
           (f" The mean size of its folios was {', '.join(seen)} KiB (`/proc/kpageflags`)." if seen else "") +
           " A program mapped the file, read all of it, and then stored to every page twice. The value is the time of the first pass of stores less that of the second, for a page: "
           f"{several(s, FOLIOS, store_us, '{:.2f} us')}.")  # fmt: skip
    yield " ".join(f"With calls of {label} the first store to a page {takes(s, name, 'folio-4KiB', 'one with calls of 4 KiB', store_us)}." for label, name in FOLIOS[1:]) + (
        " Linux can map a folio of 2 MiB by one entry of the page table, with one fault. The faults were not counted here. " + dearer(s) + (
        "These are stores to pages that were mapped for reading before. Since Linux 6.18 a first store to a page that is not mapped maps its whole folio (`finish_fault` in `mm/memory.c`; see MADV_POPULATE_WRITE)."))  # fmt: skip
    yield (f"The system time of the process is {s.median(NONE, system_ms):.1f} ms a step without advice, {s.median(HUGE, system_ms):.1f} with `MADV_HUGEPAGE`, and {s.median(URING, system_ms):.1f} with io_uring. Threads of Linux that write back are not in it, so for mappings it is a lower bound. "
           "How much of this comes from the size of folios was not measured.")  # fmt: skip


def dearer(s):
    """A sentence on folios that cost more than those of 4 KiB; "" if none do."""
    found = [label for label, name in FOLIOS[1:] if s.done(name) and s.median(name, store_us) > 1.5 * s.median("folio-4KiB", store_us)]
    return f"Why a store costs more with calls of {' and '.join(found)} was not measured. " if found else ""


def file_systems(s):
    """{file system: [(size, run)]} of those that were to be run."""
    found = {}
    for name in s.runs:
        match = re.fullmatch(r"folio-([a-z]\w*)-(\w+)", name)
        if match:
            found.setdefault(match[1], []).append((match[2], name))
    return {kind: sorted(found[kind], key=lambda run: SIZES.index(run[0])) for kind in sorted(found)}


def other_rows(s):
    return [(f"{kind}, {spaced(size)}", name) for kind, runs in file_systems(s).items() for size, name in runs]


def others(s):
    kinds = file_systems(s)
    for kind, runs in kinds.items():
        if all(s.done(name) for _, name in runs):
            (small, first), (large, last) = runs[0], runs[-1]
            yield (f"{kind}, written by calls of {spaced(large)}, had folios of {s.median(last, folio_kib):.0f} KiB in the mean, and of {s.median(first, folio_kib):.0f} KiB by calls of {spaced(small)}. "
                   f"The first store to a page {takes(s, last, first, f'one with calls of {spaced(small)}', store_us)}.")  # fmt: skip
    have = {kind: runs[-1] for kind, runs in kinds.items() if s.done(runs[-1][1])}
    if not have:
        raise s.missing(next(iter(kinds.values()))[-1][1] if kinds else "folio-ext4-2MiB")
    if len(have) > 1:
        (a, (size, one)), (b, (_, two)) = list(have.items())[:2]
        yield f"With calls of {spaced(size)} {b} {takes(s, two, one, a, store_us)}."
    below = [(f"{kind} with calls of {spaced(size)}", name, n) for kind, runs in kinds.items() for size, name in runs if (n := sum(report(r)["store_us"] < LOST_US for r in s.done(name).values()))]
    if below:
        yield f"A difference of two passes below {LOST_US} us a page is lost in their noise, and counts as {LOST_US} us. This was so {' and '.join(f'in {n} of {len(s.done(name))} rounds on {label}' for label, name, n in below)}."
    without = [kind for kind, runs in kinds.items() if not any(s.done(name) for _, name in runs)]
    if without:
        yield f"No result of {' and '.join(without)}: {s.why_not(kinds[without[0]][0][1])}."
    yield "Each file system is new, in a file on a loop device, so that the two have the same storage under them."


QUESTIONS = [
    Question("folios", "Large folios", "Do large folios make stores through a mapping cheap?", "The papers' Linux had pages of 4 KiB in the page cache; ext4 has large folios since Linux 6.16.", FOLIOS,
             ((store_us, "us a page, first store"), (read_us, "us a page, first read")), folios),
    Question("file-systems", "Large folios on ext4 and xfs", "Does the file system decide what a store costs?", "xfs has large folios since Linux 5.18.",
             other_rows, ((store_us, "us a page, first store"), (folio_kib, "KiB a folio")), others),
]  # fmt: skip
