# SPDX-License-Identifier: BSD-3-Clause
"""The question on compressed memory before or instead of the disk."""
from .study import MIB, URING, Effect, Question, by_sign, faults, kernel_of, report, step_ms, takes


def held(r):
    """MiB of memory that zram took, by limit-memory's last word; None where it was not zram."""
    for line in r["stderr"].splitlines():
        if "zram: at most" in line:
            return float(line.split("at most ")[1].split()[0])
    return None


def read_mib(r):
    return kernel_of("storage_read_bytes")(r) / MIB


def compressed(s):
    buffers = 2 * s.median("zram-random", lambda r: report(r)["layout"]["buffer_bytes"]) / MIB
    yield (f"For noise, zram needed {s.median('zram-random', held):.0f} MiB of memory to hold Buffers of {buffers:.0f} MiB. The memory limit of the run does not count this memory. The run {takes(s, 'zram-random', 'swap-file', 'a swap file')}, and "
           f"{takes(s, 'zram-random', URING, 'io_uring from the disk')}. For data that are mostly zeros it needed {s.median('zram-corner', held):.0f} MiB, and the run {takes(s, 'zram-corner', 'swap-file', 'a swap file')}.")  # fmt: skip
    yield (f"With zswap before the same swap file, noise {takes(s, 'zswap-random', 'swap-file', 'noise without it')}. Data that are mostly zeros {takes(s, 'zswap-corner', 'swap-file', 'noise without it').replace('takes', 'take', 1).replace('shows', 'show', 1)}. The storage read "
           f"{s.median('zswap-random', read_mib):.0f} MiB instead of {s.median('swap-file', read_mib):.0f}. How much memory its pool held was not measured.")  # fmt: skip
    best = Effect(s, "zram-corner", URING)
    yield by_sign(best, f"Even so the best of them takes {best} as long as io_uring.", f"Even data that are compressed to next to nothing take {best} as long as io_uring: the "
                  f"faults remain, {s.median('zram-corner', faults):.0f} a MiB stored (swap file {s.median('swap-file', faults):.0f}, io_uring {s.median(URING, faults):.0f}).", f"The best of them shows no clear difference from io_uring ({best}).")  # fmt: skip


QUESTIONS = [
    Question("compressed", "zswap and zram", "Is compressed memory a tier for simulation data?", "The papers swap to flash. HHRT swaps GPU processes to host memory and flash.",
             [("swap file", "swap-file"), ("zswap, noise", "zswap-random"), ("zswap, mostly zeros", "zswap-corner"), ("zram, noise", "zram-random"), ("zram, mostly zeros", "zram-corner")],
             ((step_ms, "ms a step"), (held, "MiB of memory, zram")), compressed),
]  # fmt: skip
