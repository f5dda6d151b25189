# SPDX-License-Identifier: BSD-3-Clause
"""The question on compressed memory before or instead of the disk."""
import statistics

from runner import plan

from .study import MIB, URING, Question, counter, kernel_of, report, step_ms, takes


def held(r):
    """MiB of memory that zram took, by limit-memory's last word; None where it was not zram."""
    for line in r["stderr"].splitlines():
        if "zram: " in line and "at most " in line:
            return float(line.split("at most ")[1].split()[0])
    return None


held.absent = "none"


def swapped_out(r):
    """GiB that were swapped out, to zswap's pool too"""
    pages = [counter(name)(r) for name in ("pswpout", "zswpout")]
    return None if pages[0] is None else sum(p or 0 for p in pages) * 4096 / 2**30


def read_mib(r):
    return kernel_of("storage_read_bytes")(r) / MIB


FILE, FILE_ZEROS = "swap-file", "swap-file-corner"


def zeros(r):
    """pages of zeros, of the pages swapped out"""
    of_zeros, others = counter("swpout_zero")(r), counter("pswpout")(r)
    return of_zeros / (of_zeros + others) if of_zeros is not None and others is not None and of_zeros + others else None


def compressed(s):
    buffers = 2 * s.median("zram-random", lambda r: report(r)["layout"]["buffer_bytes"]) / MIB
    pool, limit = s.median("zram-random", held), plan.size_bytes(s.latest("zram-random")["limit"]) / MIB
    enough = "This is more than both Buffers, so for noise zram saves no memory. " if pool + limit >= buffers else ""
    outside = " With cgroup v1 the pool lies outside the limit." if s.machine()["cgroup"] == "v1" else ""
    yield (f"For noise, zram took up to {pool:.0f} MiB of memory beside the limit of {limit:.0f} MiB, together {pool + limit:.0f} MiB. Both Buffers have {buffers:.0f} MiB, and a part of them stays within the limit. {enough}"
           f"The run {takes(s, 'zram-random', FILE, 'a swap file')}, and "
           f"{takes(s, 'zram-random', URING, 'io_uring from the disk')}. Compression is not the only difference. From zram a fault reads only its own page, and at once. From a swap file Linux reads ahead. "
           f"{more_swapped(s)}")  # fmt: skip
    yield f"With zswap{compressor(s)} before the same swap file, noise {takes(s, 'zswap-random', FILE, 'noise without it')}. {nothing_read(s)}How much memory its pool held was not measured.{outside}{pool_limit(s)}"
    yield (f"The other data begin as zeros but for three faces. Linux keeps a page of zeros as a bit (since 6.12), before any tier sees it. {zeros_said(s)}A swap file {takes(s, FILE_ZEROS, FILE, 'one with noise')}. Against it zram, which took {s.median('zram-corner', held):.0f} MiB beside the limit, "
           f"{takes(s, 'zram-corner', FILE_ZEROS, 'the swap file with the same data')}. zswap {takes(s, 'zswap-corner', FILE_ZEROS, 'the swap file with the same data')}.")  # fmt: skip
    yield from killed_said(s)


def more_swapped(s):
    if not s.values("zram-random", swapped_out) or not s.values(FILE, swapped_out):
        return ""
    out, to_file = s.median("zram-random", swapped_out), s.median(FILE, swapped_out)
    kept = " A page that was read from the file and not changed since still has its copy there." if out > 1.2 * to_file else ""
    return f"Linux also swapped out {out:.1f} GiB to zram and {to_file:.1f} to the file.{kept}"


def compressor(s):
    said = (s.machine().get("zswap") or {}).get("compressor")
    return f" (compressor {said})" if said else ""


def pool_limit(s):
    share, memory = (s.machine().get("zswap") or {}).get("max_pool_percent"), s.machine().get("memory_bytes")
    written = s.values("zswap-random", counter("zswpwb"))
    if not share or not memory or not written or any(written) or s.machine()["cgroup"] != "v1":
        return ""
    return f" It may take {share} % of the machine's memory, {int(share) / 100 * memory / 2**30:.1f} GiB, and never wrote a page to the file. So here zswap is memory beside the limit, as zram is."


def nothing_read(s):
    """What the storage read with zswap, and whether any of it came from the swap file."""
    from_file = s.values("zswap-random", counter("pswpin"))
    said = f"The storage read {s.median('zswap-random', read_mib):.0f} MiB instead of {s.median(FILE, read_mib):.0f}. "
    return said + ("Nothing came from the swap file. " if from_file and not any(from_file) else "")


def killed_said(s):
    """A sentence for each configuration of which runs were killed for lack of memory."""
    for label, name in QUESTIONS[0].rows:
        killed = sum("out of memory" in r["stderr"] for r in s.runs.get(name, {}).values() if r["status"] == "failed")
        if killed:
            yield f"Linux killed {killed} of {len(s.runs[name])} runs of \"{label}\" for lack of memory.{' The times are those of the others.' if killed < len(s.runs[name]) else ''}"


def zeros_said(s):
    found = s.values(FILE_ZEROS, zeros)
    return f"Of the pages that were swapped out {statistics.median(found):.1%} were such. " if found else ""


QUESTIONS = [
    Question("compressed", "zswap and zram", "Is compressed memory a tier for simulation data?", "The papers swap to flash. HHRT swaps GPU processes to host memory and flash.",
             [("swap file, noise", FILE), ("swap file, corner", FILE_ZEROS), ("zswap, noise", "zswap-random"), ("zswap, corner", "zswap-corner"), ("zram, noise", "zram-random"), ("zram, corner", "zram-corner")],
             ((step_ms, "ms a step"), (held, "MiB of memory, zram")), compressed),
]  # fmt: skip
