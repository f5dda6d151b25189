# SPDX-License-Identifier: BSD-3-Clause
"""Questions on large folios: what a fault costs, on this file system and on others."""
import re

from .study import HUGE, NONE, URING, Effect, Question, by_sign, of_report, report, several, spaced, system_ms

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
    yield ("A file was written by calls of 4 KiB, 64 KiB, 1 MiB and 2 MiB." + (f" The mean size of its folios in the page cache was {', '.join(seen)} KiB (`/proc/kpageflags`)." if seen else "") +
           f" The first store to a page through a mapping costs: {several(s, FOLIOS, store_us, '{:.2f} us')}.")  # fmt: skip
    middle, large = Effect(s, "folio-1MiB", "folio-4KiB", store_us), Effect(s, "folio-2MiB", "folio-4KiB", store_us)
    yield by_sign(middle, f"With folios of 1 MiB the fault takes {middle} as long as with pages of 4 KiB.",
                  f"With folios of 1 MiB the fault of a page takes {middle} as long as with pages of 4 KiB. There is still a fault for each page, and its work grows with the folio.",
                  f"Folios of 1 MiB show no clear difference from pages of 4 KiB ({middle} as long).") + (
        f" A folio of 2 MiB has one entry in the page table, so that 512 pages take one fault: {large} as long.")  # fmt: skip
    yield f"In a run the system takes {s.median(NONE, system_ms):.1f} ms a step without advice, {s.median(HUGE, system_ms):.1f} with `MADV_HUGEPAGE`, and {s.median(URING, system_ms):.1f} with io_uring."


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
            effect = Effect(s, last, first, store_us)
            yield (f"{kind}, written by calls of {spaced(large)}, had folios of {s.median(last, folio_kib):.0f} KiB in the mean, and of {s.median(first, folio_kib):.0f} KiB by calls of {spaced(small)}. "
                   f"The first store to a page takes {effect} as long as with calls of {spaced(small)}.")  # fmt: skip
    have = {kind: runs[-1] for kind, runs in kinds.items() if s.done(runs[-1][1])}
    if not have:
        raise s.missing(next(iter(kinds.values()))[-1][1] if kinds else "folio-ext4-2MiB")
    if len(have) > 1:
        (a, (size, one)), (b, (_, two)) = list(have.items())[:2]
        effect = Effect(s, two, one, store_us)
        yield by_sign(effect, f"With calls of {spaced(size)} {b} takes {effect} as long as {a}.", f"With calls of {spaced(size)} {b} takes {effect} as long as {a}.", f"With calls of {spaced(size)} {b} shows no clear difference from {a} ({effect} as long).")
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
