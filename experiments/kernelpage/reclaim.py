# SPDX-License-Identifier: BSD-3-Clause
"""Questions on reclaim: who waits for it, and which pages it takes."""
import statistics

from .study import HUGE, NONE, SCHEDULE, URING, Effect, Question, counter, kernel_of, read_ratio, report, share, step_ms, table, takes

STALLED = [("io_uring", URING), ("io_uring, RWF_DONTCACHE", "uring-uncached"), ("mmap, none", NONE), ("mmap, hugepage", HUGE), ("mmap, schedule", SCHEDULE),
           ("mmap, parts of planes", "mmap-skewed-min-none"), ("swap file", "swap-file")]  # fmt: skip
some, full, waits = share("memory", "some"), share("memory", "full"), share("io", "some")
ZONES = "allocstall_"


def scanned(r):
    """pages that reclaim scanned, of those that the run moved (a page each 4096 bytes loaded or stored)"""
    pages = [counter(name)(r) for name in ("pgscan_file", "pgscan_anon")]
    moved = (report(r)["kernel"]["storage_read_bytes"] + report(r)["write_bytes"]) / 4096
    return None if None in pages or not moved else sum(pages) / moved


def by_the_tasks(r):
    """pages scanned by the tasks that wanted memory, of all scanned"""
    of_cgroup, all_of_it = r.get("cgroup") or {}, [counter(name)(r) for name in ("pgscan_file", "pgscan_anon")]
    if None in all_of_it or not sum(all_of_it):
        return None
    if "pgscan_direct" in of_cgroup:
        return min(1.0, of_cgroup["pgscan_direct"] / sum(all_of_it))
    others = [counter(name)(r) or 0 for name in ("pgscan_kswapd", "pgscan_khugepaged", "pgscan_proactive")]
    return max(0.0, 1 - sum(others) / sum(all_of_it))


def stalls_of_machine(r):
    """allocstall of /proc/vmstat"""
    found = [value for name, value in (r.get("vmstat") or {}).items() if name.startswith(ZONES)]
    return sum(found) if found else None


def stalls(s):
    waited = [(label, name) for label, name in STALLED if s.values(name, some)]
    if waited:
        yield "By PSI some or all tasks of the machine waited for memory or for I/O in these shares of a run. The shares include other processes, faults on pages that were reclaimed too early, and swapping in. The last column has the pages that reclaim scanned, for each page that the run moved."
    else:
        yield "PSI is not counted here (no `/proc/pressure`, or Linux was started without `psi=1`). The table has the pages that reclaim scanned, for each page that the run moved."
    waits_of = ((some, "some wait for memory", "{:.0%}"), (full, "all wait for memory", "{:.0%}"), (waits, "some wait for I/O", "{:.0%}")) if waited else ()
    yield table(s, STALLED, (*waits_of, (scanned, "scanned / moved", "{:.2f}")))
    yield f"Of the scanning without advice {s.median(NONE, by_the_tasks):.0%} was direct: for a memory limit the task that wants memory reclaims it."
    counted = [v for _, name in STALLED for v in s.values(name, stalls_of_machine)]
    if counted:
        yield (f"`allocstall` of `/proc/vmstat` rose by {statistics.median(counted):.0f} in the median run, and by {max(counted):.0f} at most. It counts direct reclaim for the machine's own want of memory; "
               "the reclaim of a memory limit is not in it, nor in `pgscan_direct`.")  # fmt: skip
    if s.machine()["cgroup"] == "v1":
        yield "Linux counts no stalls for a cgroup of version 1. One of version 2 has its own PSI and `pgscan_direct`."


def mglru(s):
    yield f"With MGLRU a run {takes(s, 'mglru-on', 'mglru-off', 'one without')}. The storage reads {Effect(s, 'mglru-on', 'mglru-off', kernel_of('storage_read_bytes'))} as many bytes."


QUESTIONS = [
    Question("reclaim", "Direct reclaim", "How long do tasks stall for memory?", "No counterpart in the papers.",
             STALLED, ((some, "some wait for memory, share"), (full, "all wait for memory, share"), (scanned, "scanned / moved")), stalls),
    Question("mglru", "MGLRU", "Does the multi-generation LRU keep the right pages of a sweep?",
             "The papers: performance \"depends on the degree of matching between the operating system (OS) kernel page replacement policy in the page cache and memory access patterns\".",
             [("MGLRU on", "mglru-on"), ("MGLRU off", "mglru-off")], ((step_ms, "ms a step"), (read_ratio, "storage reads / loaded")), mglru, needs=("mglru-on",)),
]  # fmt: skip
