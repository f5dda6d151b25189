# SPDX-License-Identifier: BSD-3-Clause
"""The page on Linux (experiments/kernelpage): its findings from made-up numbers, what is not claimed, and what is said once."""
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "experiments")]

from kernelpage import advice, compressed, folios, limits, page, pictures, reclaim, rings, study, writeback  # noqa: E402
from kernelpage.table import QUESTIONS  # noqa: E402
from runner import record  # noqa: E402

MIB = 2**20
NOISE = (1.0, 1.01, 0.99, 1.02, 0.98)  # of five rounds
LINUX = {"read_ahead_kb": "128", "vm.page-cluster": "3", "vm.dirty_background_bytes": str(8 * MIB), "vm.dirty_bytes": str(16 * MIB)}


def made(name, seconds=2.5, rounds=5, noise=NOISE, status="done", stderr="", report=(), **more):
    """Records of a configuration of 10 steps; entries of `report` and `more` are put into each. Numbers of `report` get the round's noise."""
    found = []
    for k in range(rounds):
        own = {key: value * noise[k % len(noise)] if isinstance(value, float) else value for key, value in dict(report).items()}
        counters = {key: 2**20 for key in ("storage_read_bytes", "minor_faults", "system_s")}
        said = {"seconds": seconds * noise[k % len(noise)], "steps_done": 10, "read_bytes": 2**20, "predicted_read_bytes": 2**20, "write_bytes": 2**20, "layout": {"buffer_bytes": 2**20}, "kernel": counters,
                "device": {"note": ""}, **own}  # fmt: skip
        found.append({"kind": "run", "id": name, "repeat": k, "key": name, "status": status, "stderr": stderr, "params": {}, "limit": "80MiB", "knobs": {}, "command": ["memext", "run"],
                      "report": said if status == "done" else None, "timeline": None, "other_cpu_s": 0.0, "wall_s": 10.0, **more})  # fmt: skip
    return found


def studied(folder, *configurations, cgroup="v1"):
    store = record.Store(folder)
    storage = {"file_system": "ext4", "device": "sda", "read_ahead_kb": 8192}
    store.append({"kind": "session", "commit": "abc", "program": "def", "machine": {"kernel": "6.18", "cores": 2, "cpu": "a CPU", "virtualised": "none", "cgroup": cgroup, "storage": storage}})
    for configuration in configurations:
        for r in configuration:
            store.append(r)
    return study.Study(folder)


def said(findings, *of):
    return " ".join(findings(*of))


# ------------------------------------------------------------------ differences


def test_a_difference_is_one_of_its_interval(tmp_path):
    """`apart` is larger in all rounds, and so unevenly that its interval still holds 1; three rounds have none."""
    values = {"slow": [2, 4, 6, 2, 3], "base": [1, 2, 3, 1, 1], "mixed": [1, 1, 4, 2, 9], "apart": [1.01, 2.02, 9, 1.01, 9], "few": [5, 5, 5], "fast": [0.5, 1, 1, 0.5, 0.1]}
    s = studied(tmp_path, *(made(name, 30.0, len(v), v) for name, v in values.items()))
    signs = {name: study.Effect(s, name, "base").sign for name in ("slow", "mixed", "apart", "few", "fast")}
    assert signs == {"slow": 1, "mixed": 0, "apart": 0, "few": 0, "fast": -1}
    assert "shows no clear difference from" in study.takes(s, "mixed", "base", "it") and "too few" not in study.takes(s, "mixed", "base", "it")
    assert "takes 2.00 times" in study.takes(s, "slow", "base", "it") and "too few rounds" in study.takes(s, "few", "base", "it")
    short = studied(tmp_path / "short", made("slow", 1.0), made("base", 3.0))
    assert "cannot be compared with it: the runs are too short (0.33 times [0.33 to 0.33, n = 5] as long)" in study.takes(short, "slow", "base", "it")
    with pytest.raises(study.Missing, match="absent"):
        study.Effect(s, "absent", "base")


def test_what_was_not_counted_is_no_zero(tmp_path):
    """A median of it is refused and names what is missing; a ratio leaves the round out in which one of both is 0."""
    s = studied(tmp_path, made("a", report={"x": None}), made("b", report={"x": 1.0}), made("c", report={"x": 0.0}))
    with pytest.raises(study.Missing, match="`a`.*x of its report"):
        s.median("a", study.of_report("x"))
    with pytest.raises(study.Missing, match="no round"):
        study.Effect(s, "c", "b", study.of_report("x"))


# ------------------------------------------------------------------ limits


def aheads(small, large, rounds=5, usual=1.5, best=1.2):
    """Read-ahead of 128, 1024 and 8192 KiB at two limits; 8192 takes so many times as long as 128."""
    at = {"": ("80MiB", small), "-320MiB": ("320MiB", large)}
    return [made(f"{name}{end}", 10 * seconds, rounds, limit=limit, knobs=LINUX) for end, (limit, times) in at.items() for name, seconds in ((study.NONE, usual), ("ahead-1024", best), ("ahead-8192", usual * times))]


@pytest.mark.parametrize("small, large, rounds, wanted", [
    (2.28, 0.98, 5, "costs time at 80 MiB, and saves time at 320 MiB. The ratio of 8192 KiB against 128 KiB is smaller at 320 MiB than at 80 MiB"), (2.3, 2.2, 5, "costs time at each of these limits. The loss of 8192 KiB"),
    (1.0, 1.0, 5, "No difference can be told at any of these limits"), (0.5, 0.5, 5, "saves time at each"), (0.5, 1.0, 5, "saves time at 80 MiB, and shows no clear difference at 320 MiB"),
    (2.28, 0.98, 3, "too few rounds, or too short runs, to say whether the limit decides"),
])  # fmt: skip
def test_read_ahead_is_said_for_each_limit_and_for_all(tmp_path, small, large, rounds, wanted):
    text = said(limits.readahead, studied(tmp_path, *aheads(small, large, rounds)))
    assert wanted in text and "At 80 MiB the least median time" in text and "At 320 MiB the least median time" in text
    assert "machine" not in text, "no run had its own settings"


def test_the_least_median_is_compared_with_linuxs_own_size(tmp_path):
    text = said(limits.readahead, studied(tmp_path / "faster", *aheads(2.0, 2.0)))
    assert "that of 1024 KiB. It takes 0.80 times [0.80 to 0.80, n = 5] as long as 128 KiB." in text
    assert "that of 128 KiB, which is Linux's own." in said(limits.readahead, studied(tmp_path / "own", *aheads(2.0, 2.0, usual=1.0)))
    uneven = [made("ahead-128", 4.0, noise=(1, 1, 1, 1, 1)), made("ahead-1024", 4.0, noise=(0.7, 1.2, 0.9, 0.8, 1.1))]
    assert "that of 1024 KiB. It shows no clear difference from 128 KiB" in said(limits.readahead, studied(tmp_path / "uneven", *uneven))


@pytest.mark.parametrize("small, large, wanted, absent", [
    ((2, 2.1, 1.9, 2.05, 1.95), NOISE, "costs time at 80 MiB, and shows no clear difference at 320 MiB. The loss of 8192 KiB against 128 KiB is smaller at 320 MiB than at 80 MiB: the two intervals do not overlap.", "apart"),
    ((2, 2.1, 1.9, 2.05, 1.95), (0.8, 3.5, 1, 2, 1.2), "shows no clear difference at 320 MiB. The intervals of this effect at 80 MiB and at 320 MiB overlap, so these runs do not tell the two limits apart.", "smaller"),
    (NOISE, NOISE, "No difference can be told at any of these limits.", "smaller"),
])  # fmt: skip
def test_limits_are_compared_by_their_intervals(tmp_path, small, large, wanted, absent):
    """One difference that is told and one that is not are no difference between the two."""
    even = (1, 1, 1, 1, 1)
    text = said(limits.readahead, studied(tmp_path, made("ahead-128", noise=even), made("ahead-8192", noise=small), made("ahead-128-320MiB", noise=even, limit="320MiB"), made("ahead-8192-320MiB", noise=large, limit="320MiB")))
    assert wanted in text and absent not in text and "does not matter" not in text and "scale" not in text


def test_read_ahead_at_one_limit_says_nothing_of_others(tmp_path):
    s = studied(tmp_path, *aheads(2.0, 1.0)[:3], made("mmap-stream-none-machine", 54.0))
    text = said(limits.readahead, s)
    assert "says nothing of larger ones" in text and "this machine's own settings (read-ahead 8192 KiB" in text and "takes 3.6" in text
    with pytest.raises(study.Missing, match="two sizes"):
        said(limits.readahead, studied(tmp_path / "one", made("ahead-1024")))


def test_runs_without_advice_have_linuxs_own_size_if_it_was_set(tmp_path):
    """In a folder of runs with the machine's settings they have another size, which is not known."""
    set_here, own = (studied(tmp_path / name, made(study.NONE, knobs=knobs), made("ahead-8192")) for name, knobs in (("linux", LINUX), ("machine", {})))
    assert limits.ahead_runs(set_here) == {"80MiB": [(128, study.NONE), (8192, "ahead-8192")]} and limits.ahead_runs(own) == {"80MiB": [(8192, "ahead-8192")]}


def sweep(**seconds):
    """Seconds of io_uring, none, hugepage and schedule by the end of the runs' names."""
    names = (study.URING, study.NONE, study.HUGE, study.SCHEDULE)
    return [made(name + end.replace("_", "-"), value, limit=end[1:] or "80MiB") for end, values in seconds.items() for name, value in zip(names, values)]


def test_the_sweep_says_what_holds_at_each_limit(tmp_path):
    same = said(limits.sweep, studied(tmp_path / "same", *sweep(**{"": (2, 8, 4, 6), "_320MiB": (8, 30, 15, 20), "_1.25GiB": (20, 80, 40, 60)})))
    assert "For a mapping without advice against io_uring the finding has the same direction" in same and "For `MADV_HUGEPAGE` against none the finding has the same direction" in same and "differ." not in same
    assert same.index("At 80 MiB") < same.index("At 320 MiB") < same.index("At 1.25 GiB")
    other = said(limits.sweep, studied(tmp_path / "other", *sweep(**{"": (2, 8, 4, 6), "_320MiB": (8, 30, 30, 20)})))
    assert "against io_uring the finding has the same direction" in other and "For `MADV_HUGEPAGE` against none the findings at these limits differ. The limits were not compared directly." in other
    none = said(limits.sweep, studied(tmp_path / "none", *sweep(**{"": (2, 8, 8, 6), "_320MiB": (8, 30, 30, 20)})))
    assert "For `MADV_HUGEPAGE` against none no difference can be told at any of these limits." in none
    few = [r for r in sum(sweep(**{"": (2, 8, 4, 6), "_320MiB": (8, 30, 15, 20)}), []) if r["repeat"] < 2]
    assert "too few rounds, or too short runs, to compare the limits" in said(limits.sweep, studied(tmp_path / "few", few))


def test_sizes_of_requests(tmp_path):
    """KiB a request = sectors / 2 / requests; without the counters of the block layer nothing is said."""
    def counted(reads):
        return {"block": {"reads": reads, "read_sectors": 2048, "writes": 4, "write_sectors": 2048, "reads_merged": 5, "writes_merged": 1}}

    s = studied(tmp_path, made(study.URING, **counted(2)), made(study.NONE, **counted(10)), made("ahead-128-320MiB", limit="320MiB", **counted(8)))
    text = said(limits.requests, s)
    assert "in reads of 512 KiB" in text and "in reads of 102 KiB" in text and "| 320 MiB, 128 KiB | 128 |" in text and "| mmap, none | 102 | 256 |" in text and "merged 50% of the requests of io_uring and 30%" in text
    with pytest.raises(study.Missing, match="block layer"):
        said(limits.requests, studied(tmp_path / "old", made(study.URING), made(study.NONE)))


# ------------------------------------------------------------------ stores


def stores(name, populate, store, sync, read):
    return made(name, report={"populate_us": populate, "store_us": store, "sync_us": sync, "read_ratio": read, "faults_a_page": 1.0})


def test_extents_and_populating(tmp_path):
    s = studied(tmp_path, stores(writeback.UNWRITTEN, 0.0, 2.0, 3.0, 0.0), stores(writeback.WRITTEN, 0.0, 4.0, 2.0, 1.0),
                stores(writeback.UNWRITTEN_POPULATED, 0.5, 0.5, 3.0, 0.0), stores(writeback.WRITTEN_POPULATED, 3.5, 0.5, 2.0, 1.0))  # fmt: skip
    text = said(writeback.extents, s)
    assert "takes 2.00 times" in text and "pays a part back" in text and "reads 1.00 bytes" in text
    text = said(writeback.populated, s)
    assert "For unwritten extents, populating and storing takes 0.50 times" in text and "the page cache, populating and storing shows no clear difference" in text


def test_populating_without_the_call(tmp_path):
    s = studied(tmp_path, stores(writeback.UNWRITTEN, 0.0, 2.0, 3.0, 0.0), made(writeback.UNWRITTEN_POPULATED, status="skipped", stderr="first_stores.py: this kernel has no MADV_POPULATE_WRITE (Linux 5.14)"))
    with pytest.raises(study.Missing, match="this kernel has no MADV_POPULATE_WRITE"):
        said(writeback.populated, s)
    assert s.lacks(writeback.UNWRITTEN_POPULATED).startswith("this kernel has no")


def test_dirty_limits_are_compared_with_what_the_others_had(tmp_path):
    s = studied(tmp_path, made(writeback.USUAL, knobs=LINUX), made(study.NONE, 9.0, knobs=LINUX), made("dirty-8388608", 5.0))
    text = said(writeback.dirty, s)
    assert "`vm.dirty_bytes` of 8 MiB a run takes 2.00 times" in text and "one with 16 MiB, 20% of the limit" in text
    assert "do not answer" not in text and "device" not in text, "nothing counted the device's writes"


def test_writes_are_those_of_the_device(tmp_path):
    """Not write_bytes of /proc/self/io, which counts pages of a mapping when they become dirty."""
    usual, more = (made(name, block={"write_sectors": sectors}) for name, sectors in ((writeback.USUAL, 4096), ("dirty-8388608", 8192)))
    s = studied(tmp_path, usual, more, made(study.NONE))
    assert s.median(writeback.USUAL, study.written_ratio) == 2.0 and s.values(study.NONE, study.written_ratio) == []
    text = said(writeback.dirty, s)
    assert "The device writes 2.00 times" in text and text.count("includes the initial grid") == 1 and "these runs do not answer the question" in text
    assert "as many dirty pages as the memory limit holds beside the Blocks" in text
    with pytest.raises(study.Missing, match="write_sectors"):
        s.median(study.NONE, study.written_ratio)


def test_memory_high(tmp_path):
    s = studied(tmp_path, made(study.NONE), made(writeback.HIGH, 5.0, limit="160MiB", high="80MiB", cgroup={"version": "v2", "events_high": 700}), cgroup="v2")
    text = said(writeback.high, s)
    assert "`memory.high` of 80 MiB below a larger limit a run takes 2.00 times" in text and "throttled the run 700 times" in text


def test_fadvise(tmp_path):
    def reads(name, us, again):
        return made(name, report={"us_a_mib": us, "system_us_a_mib": us / 4, "read_bytes": 100, "storage_read_bytes": again})

    s = studied(tmp_path, reads("fadvise-none", 100.0, 50.0), reads("fadvise-sequential", 100.0, 50.0), reads("fadvise-willneed", 80.0, 50.0), reads("fadvise-dontneed", 150.0, 100.0), reads("fadvise-both", 90.0, 100.0))
    text = said(advice.fadvise, s)
    assert "for the next MiB takes 0.80 times" in text and "The two together take 0.90 times" in text and "it shows no clear difference from no advice" in text
    assert "2.00 times" in text and "the next pass would find" in text


# ------------------------------------------------------------------ reclaim


def test_stalls_of_reclaim(tmp_path):
    vmstat = {"pgscan_file": 1024, "pgscan_anon": 0, "pgscan_kswapd": 256, "allocstall_normal": 3, "allocstall_movable": 1}
    pressure = {"memory_some_us": 2_500_000, "memory_full_us": 1_000_000, "io_some_us": 5_000_000}
    text = said(reclaim.stalls, studied(tmp_path, made(study.NONE, vmstat=vmstat, pressure=pressure)))
    assert "| mmap, none | 25% | 10% | 50% | 2.00 |" in text and "scanning without advice 75%" in text and "rose by 4 in the median" in text
    text = said(reclaim.stalls, studied(tmp_path / "without", made(study.NONE, vmstat={k: v for k, v in vmstat.items() if "allocstall" not in k}, pressure={})))
    assert "PSI is not counted here" in text and "allocstall" not in text
    of_cgroup = {"version": "v2", "pgscan_direct": 512}
    assert "scanning without advice 50%" in said(reclaim.stalls, studied(tmp_path / "v2", made(study.NONE, vmstat=vmstat, pressure=pressure, cgroup=of_cgroup), cgroup="v2"))
    with pytest.raises(study.Missing, match="pages scanned"):
        said(reclaim.stalls, studied(tmp_path / "old", made(study.NONE)))


# ------------------------------------------------------------------ io_uring

NO_QUEUES = "busy completion (iopoll) is not possible: the device has no poll queues; interrupts are used"


def ring(name, seconds=2.5, interrupts=100, note="", threads=()):
    return made(name, seconds, block={"reads": 50, "writes": 50, "interrupts": interrupts}, report={"device": {"note": note}, "ring_threads": dict(threads)})


def rings_said(folder, *more):
    return said(rings.rings, studied(folder, ring(rings.PLAIN), ring(rings.REGISTERED), *more))


def polled(answer="done", interrupts=0):
    some = {"reads": 100, "us": 10.0, "interrupts": interrupts}
    return made(rings.POLLED, report={"answer": answer, "polled": some if answer == "done" else None, "plain": {**some, "interrupts": 100}})


def test_polling_is_checked(tmp_path):
    """SQPOLL by its thread's CPU time; IOPOLL by memext's word, by Linux's answer, and by the interrupts."""
    sqpoll = ring(rings.SQPOLL, 5.0, threads={"iou-sqp": 4.0})
    none = rings_said(tmp_path / "1", sqpoll, ring(rings.IOPOLL, note=NO_QUEUES), polled("EOPNOTSUPP"))
    assert "SQPOLL happened: its thread iou-sqp had a core for 40% of the run" in none and "takes 2.00 times" in none
    assert "IOPOLL did not happen" in none and "no poll queues" in none and "gets EOPNOTSUPP from Linux" in none
    silent = rings_said(tmp_path / "2", sqpoll, ring(rings.IOPOLL, note=NO_QUEUES), polled(interrupts=99))
    assert "silently uses interrupts: 99 interrupts for 100 reads" in silent
    happened = rings_said(tmp_path / "3", ring(rings.SQPOLL, threads={"iou-sqp": 0.0}), ring(rings.IOPOLL, interrupts=2), polled())
    assert "SQPOLL was asked for, but no thread" in happened and "IOPOLL happened: the device raised 0.02 interrupts a request instead of 1.00" in happened
    ignored = rings_said(tmp_path / "4", sqpoll, ring(rings.IOPOLL), polled())
    assert "it did not poll" in ignored


def test_uncached_io_and_its_system_time(tmp_path):
    text = said(rings.dontcache, studied(tmp_path, ring(study.URING), ring(study.SCHEDULE), made("uring-uncached", report={"kernel": {"storage_read_bytes": 2**20, "system_s": 2**21}})))
    assert "takes 2.00 times [2.00 to 2.00, n = 5] the system time of O_DIRECT. This is the system time of the process alone." in text and "refuses" not in text


def test_what_uncached_writes_leave_to_reclaim(tmp_path):
    """The number of pages that are stored fits one kind of page; others fit none."""
    def text(name, pages):
        uncached = made("uring-uncached", report={"write_bytes": 4096 * 1000, "kernel": {"storage_read_bytes": 2**20, "system_s": 2**21}}, vmstat={"pgsteal_file": pages})
        return said(rings.dontcache, studied(tmp_path / name, ring(study.URING), ring(study.SCHEDULE), uncached))

    assert "Reclaim took 95% as many pages as the run stored. This is as many as were written" in text("one", 950)
    assert "Reclaim took 190% as many pages as the run stored." in text("two", 1900) and "as were written" not in text("three", 1900) and "Reclaim" not in text("none", 0)


# ------------------------------------------------------------------ folios


def test_what_two_passes_do_not_resolve_is_counted(tmp_path):
    of = lambda name, *us: [r for k, u in enumerate(us) for r in made(name, rounds=1, report={"store_us": u + 0.0, "read_us": 0.1, "folio_bytes": 4096}, **{"repeat": k})]  # noqa: E731
    text = said(folios.others, studied(tmp_path, of("folio-xfs-4KiB", 2, 2, 2, 2, 2), of("folio-xfs-2MiB", 0.1, 0.1, -0.01, 0.1, 0.1)))
    assert "counts as 0.02 us. This was so in 1 of 5 rounds on xfs with calls of 2 MiB." in text


def folio(name, store, **more):
    return made(name, report={"store_us": store, "read_us": 0.1, "folio_bytes": 4096.0}, **more)


def test_each_size_of_folios_is_compared_with_pages(tmp_path):
    s = studied(tmp_path, *(folio(name, value) for (_, name), value in zip(folios.FOLIOS, (2.0, 2.0, 5.0, 0.1))), made(study.NONE), made(study.HUGE), made(study.URING))
    text = said(folios.folios, s)
    assert "With calls of 64 KiB the first store to a page shows no clear difference from one with calls of 4 KiB (1.00 times" in text and "With calls of 1 MiB the first store to a page takes 2.50 times" in text
    assert "written by `write` calls of 4 KiB, 64 KiB, 1 MiB and 2 MiB" in text and "no memory limit" in text and "grows" not in text and "size of folios was not measured" in text


def test_folios_of_two_file_systems(tmp_path):
    both = [folio("folio-ext4-4KiB", 2.0), folio("folio-ext4-2MiB", 0.2), folio("folio-xfs-4KiB", 2.0), folio("folio-xfs-2MiB", 0.4)]
    text = said(folios.others, studied(tmp_path / "both", *both))
    assert "takes 0.10 times" in text and "takes 0.20 times" in text and "With calls of 2 MiB xfs takes 2.00 times" in text
    without = [*both[:2], *(made(f"folio-xfs-{size}", status="skipped", stderr="this machine has no mkfs.xfs") for size in ("4KiB", "2MiB"))]
    text = said(folios.others, studied(tmp_path / "one", *without))
    assert "No result of xfs: this machine has no mkfs.xfs." in text and "takes 0.10 times" in text
    with pytest.raises(study.Missing, match="no mkfs.xfs"):
        said(folios.others, studied(tmp_path / "none", *without[2:]))


# ------------------------------------------------------------------ advice, compressed memory


def reading(name, loaded, seconds=2.5, **more):
    """10 steps in 5 sweeps, of which the storage read so many times what was loaded."""
    return made(name, seconds, report={"plan": {"bt": 2}, "predicted_read_bytes": 2**20, "kernel": {"storage_read_bytes": loaded * 2**20, "minor_faults": 10}}, **more)


def test_advice_names_the_sweeps_of_its_ratio_and_the_calls(tmp_path):
    """10 steps of bt 2; what is read depends on their number. What the schedule calls is named, and what MADV_HUGEPAGE changes beside the folios."""
    names = [study.NONE, study.HUGE, study.URING, "mmap-stream-sequential", "mmap-stream-random", advice.PARTS, advice.PARTS_ADVISED, "mmap-plain-none", "mmap-plain-schedule"]
    text = said(advice.madvise, studied(tmp_path, *(reading(name, 1.5) for name in names), reading(study.SCHEDULE, 1.75)))
    assert "Over all 5 sweeps of the run, the storage reads 1.50 times the bytes that the schedule loads." in text and "On `stream` the storage reads 1.75 times" in text
    assert all(f"`{call}`" in text for call in ("MADV_POPULATE_READ", "MADV_WILLNEED", "MADV_DONTNEED", "sync_file_range", "POSIX_FADV_DONTNEED"))
    assert "Half of `read_ahead_kb` lies before the page" in text and "Linux ignores `read_ahead_kb`" in text


def test_the_calls_of_the_schedule_are_those_of_the_backend():
    source = (ROOT / "backends" / "mmap" / "mmap.c").read_text()
    assert all(call in source for call in re.findall(r"`((?:MADV|POSIX)_\w+|sync_file_range)`", advice.CALLS))
    assert "LAG_BYTES (UINT64_C(32) << 20)" in source and "SHORT_BYTES (UINT64_C(1) << 20)" in source


def tier(name, seconds=2.5, zero=90, stderr=""):
    return made(name, seconds, stderr=stderr, vmstat={"swpout_zero": zero, "pswpout": 100 - zero}, report={"kernel": {"storage_read_bytes": 2**30, "minor_faults": 100 * 2**20}})


def test_tiers_say_what_they_took_and_whom_linux_killed(tmp_path):
    def of(name, seconds, out, read=1, **more):
        return made(name, seconds, report={"layout": {"buffer_bytes": 2**20}}, vmstat={"pswpout": out, "pswpin": read, "zswpout": 0, "swpout_zero": 0}, stderr="limit-memory: zram: the pages swapped out took at most 25.0 MiB of memory", **more)

    def text(name, zram, killed=0):
        rows = [of(n, 5.0, zram if "zram" in n else 2**18, 0 if "zswap" in n else 1) for n in (compressed.FILE, compressed.FILE_ZEROS, "zswap-corner", "zram-random", "zram-corner", study.URING)]
        zswap = of("zswap-random", 5.0, 2**18, 0)
        for r in zswap[:killed]:
            r.update(status="failed", stderr="limit-memory: out of memory: 1 process", report=None)
        return said(compressed.compressed, studied(tmp_path / name, zswap, *rows))

    assert "swapped out 2.0 GiB to zram and 1.0 to the file. A page that was read from the file" in text("more", 2**19) and "still has its copy" not in text("same", 2**18)
    assert "Nothing came from the swap file." in text("none", 2**18) and "killed" not in text("alive", 2**18)
    assert 'Linux killed 2 of 5 runs of "zswap, noise" for lack of memory. The times are those of the others.' in text("killed", 2**18, 2)


def test_zeros_are_compared_with_zeros(tmp_path):
    """They are kept as bits before any tier: the control is a swap file with the same data."""
    held = "limit-memory: zram: the pages swapped out took at most 25.0 MiB of memory"
    assert "zram: the pages swapped out took at most {" in (ROOT / "experiments" / "limit-memory").read_text(), "it says it in other words"
    rows = [tier(compressed.FILE, 10.0, 0), tier(compressed.FILE_ZEROS, 5.0), tier("zswap-random", 10.0, 0), tier("zswap-corner", 5.0), tier("zram-random", 7.5, 0, held), tier("zram-corner", 2.5, 90, held), tier(study.URING, 2.5, 0)]
    text = said(compressed.compressed, studied(tmp_path, *rows))
    assert "Of the pages that were swapped out 90.0% were such. A swap file takes 0.50 times" in text and "which took 25 MiB beside the limit, takes 0.50 times" in text and "zswap shows no clear difference from the swap file with the same data" in text
    assert "The run takes 0.75 times" in text and "takes 3.00 times" in text and "reads only its own page" in text
    assert "up to 25 MiB of memory beside the limit of 80 MiB, together 105 MiB. Both Buffers have 2 MiB" in text and "saves no memory" in text and "the pool lies outside the limit" in text
    with pytest.raises(study.Missing, match="swap-file-corner"):
        said(compressed.compressed, studied(tmp_path / "old", *rows[:1], *rows[2:]))


def test_more_windows_that_a_fault_waits_for(tmp_path):
    """Only if there are clearly more; and the table has the faults."""
    def text(name, majors):
        runs = [made(n, report={"major_faults": 100, "plan": {"bt": 5}}, block={"reads": 900, "writes": 1, "write_sectors": 4096}) for n in (study.URING, study.NONE, study.HUGE, study.SCHEDULE, "mmap-stream-random", advice.PARTS, advice.PARTS_ADVISED, "mmap-plain-none", "mmap-plain-schedule")]
        told = made("mmap-stream-sequential", report={"major_faults": majors, "plan": {"bt": 5}}, block={"reads": 800, "writes": 1, "write_sectors": 4096})
        return said(advice.madvise, studied(tmp_path / name, told, *runs))

    assert "300 major faults for 800 reads of the device, instead of 100 for 900." in text("more", 300) and "while a fault waits" not in text("same", 110)
    assert "| mmap, sequential | 1048576.0 | 300.0 | 1.00 | 2.00 |" in text("table", 300)


def test_a_slab_that_needs_two_requests_is_explained(tmp_path):
    def text(name, planes):
        run = made(study.URING, report={"plan": {"slab": planes}, "layout": {"plane_pitch_bytes": 520 * 1024}}, block={"reads": 1, "read_sectors": 1000, "writes": 1, "write_sectors": 1000, "reads_merged": 0, "writes_merged": 0})
        return said(limits.requests, studied(tmp_path / name, run, made(study.NONE, block={"reads": 1, "read_sectors": 1000, "writes": 1, "write_sectors": 1000, "reads_merged": 0, "writes_merged": 0})))

    assert "A slab of planes has 1040 KiB, which memext moves in 2 requests of 520 KiB in the mean." in text("two", 2) and "A slab" not in text("one", 1)


def test_refaults_are_told_where_they_grow(tmp_path):
    def ahead(name, again):
        return made(name, 3.0, limit="80MiB", knobs={**LINUX, "read_ahead_kb": "8192" if "8192" in name else "128"}, report={"kernel": {"storage_read_bytes": 2**20, "refault_bytes": int(again * 2**20)}})

    text = said(limits.readahead, studied(tmp_path / "more", ahead(study.NONE, 1.5), ahead("ahead-8192", 3.0)))
    assert "Linux counted 3.00 refaults for each page loaded, instead of 1.50" in text
    assert "refaults" not in said(limits.readahead, studied(tmp_path / "same", ahead(study.NONE, 1.5), ahead("ahead-8192", 1.6)))


# ------------------------------------------------------------------ the page


def test_others_are_those_that_leave_the_kernel_little_to_do(tmp_path):
    """As on the page of results: the kernel's own threads write back for a mapping, and are no other process."""
    s = studied(tmp_path, made(study.NONE, report={"backend": "mmap"}), made(study.URING, report={"backend": "uring"}))
    for r in s.runs[study.NONE].values():
        r["other_cpu_s"] = 10.0
    for r in s.runs[study.URING].values():
        r["other_cpu_s"] = 1.0
    assert "other processes took 5% of the cores in the median of the runs on io_uring" in page.origin(s)
    assert "other processes" not in page.origin(studied(tmp_path / "none", made(study.NONE)))


def test_the_device_is_described(tmp_path):
    """Records may lack what later programs note."""
    bare = page.origin(studied(tmp_path / "bare", made(study.NONE)))
    assert "model unknown, scheduler unknown, not rotational. Transparent huge pages: not available. DAMON: off. Read-ahead from a swap file: by address in the mapping." in bare and "Blocks of" not in bare
    s = studied(tmp_path / "full", made(study.NONE, knobs={**LINUX, "damon": "off"}, report={"block_bytes": 32 * MIB}))
    s.machine().update(transparent_hugepage="always [madvise] never", damon="pageout (kdamond 0)", swap_read_ahead="true")
    s.machine()["storage"].update(scheduler="mq-deadline", rotational=True, wbt_lat_usec="75000", write_cache="write back", mount_options="rw,discard")
    text = page.origin(s)
    assert "scheduler mq-deadline, rotational, write-back throttling at 75 ms, write cache: write back, mounted with discard. Transparent huge pages: madvise." in text and "Blocks of 32 MiB" in text
    assert "DAMON: pageout (kdamond 0), but off during the runs" in text and "by position in the file, because the device counts as rotational. For such a device" in text and "threshold for disks" in text


def test_an_axis_shows_all_values():
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots(1, 3)
    assert pictures.span(axes[0], [1.0, 2.0], [0.9, 1.1, 7.9]) == "" and axes[0].get_xlim()[0] == 0 and axes[0].get_xlim()[1] > 7.9
    assert "logarithmic" in pictures.span(axes[1], [1.0, 7.0], [0.9, 1.1, 8.1]) and axes[1].get_xscale() == "log" and axes[1].get_xlim()[0] < 0.9 and axes[1].get_xlim()[1] > 8.1
    assert pictures.span(axes[2], [0.0, 7.0], [0.0, 8.1]) == "" and axes[2].get_xscale() == "linear", "0 has no logarithm"


def written(folder, *configurations):
    s = studied(folder / "kernel", *configurations)
    page.page(s, folder / "kernel", folder / "page.md")
    return (folder / "page.md").read_text()


LACKS = "this kernel has no /sys/kernel/mm/lru_gen/enabled: mglru cannot be set"
SKIPPED = (made("mglru-on", status="skipped", stderr=LACKS), made("mglru-off", status="skipped", stderr=LACKS),
           made(writeback.HIGH, status="skipped", stderr="limit-memory: memory.high is of cgroup v2", high="80MiB"))  # fmt: skip


def test_what_was_not_run_is_said(tmp_path):
    """Dirty limits and read-ahead have all their runs and a finding, the others name a run that is missing; a short run is named."""
    text = written(tmp_path, made(writeback.USUAL, 1.0), made(study.NONE, 3.0), made("dirty-1048576", 2.2, 5, (0.9, 0.95, 1, 1.05, 1.1)), made("ahead-128", 3.0), made("ahead-1024", 2.5), *SKIPPED)
    assert "Too short to rest on: `dirty-usual` 1.0 s." in text and text.count("Too short") == 1, "and no run of 2 s or more is"
    assert "`vm.dirty_bytes` of 1 MiB a run cannot be compared with one with the machine's: the runs are too short (2.2" in text and (tmp_path / "page" / "dirty.png").stat().st_size > 0
    assert text.count("Not tested here") == len(QUESTIONS) - 4 and "`uring-stream` has no result (it was not run)" in text


def test_what_the_kernel_lacks_is_said_once(tmp_path):
    """In the list at the end, with its runs, and in no section; what --no-system left out is nothing that Linux lacks."""
    left_out = made("folio-xfs-4KiB", status="skipped", stderr="not run with --no-system: it needs a file system", no_system=True)
    text = written(tmp_path, made(study.NONE, knobs=LINUX), *SKIPPED, left_out)
    end = text[text.index("## What this Linux cannot do"):]
    assert text.count("MGLRU") == end.count("MGLRU") == 1 and text.count(LACKS) == 1 and "Runs: `mglru-off`, `mglru-on`." in end
    assert "memory.high is of cgroup v2. Runs: `mmap-stream-none-high`." in end and "limit-memory:" not in text and "--no-system: it needs" not in end
    assert "cannot do" not in written(tmp_path / "all", made(study.NONE))


def test_sentences_that_hold_on_some_machines_alone(tmp_path):
    """Each is said where its runs or settings show it, and nowhere else."""
    s = studied(tmp_path / "some", made("fadvise-none", report={"system_us_a_mib": 100.0}), made("fadvise-willneed", report={"system_us_a_mib": 300.0}), made("folio-4KiB", report={"store_us": 1.0}),
                made("folio-1MiB", report={"store_us": 3.0}), made("zswap-random", vmstat={"zswpwb": 0}))  # fmt: skip
    machine = s.machine()
    machine.update(zswap={"max_pool_percent": "20"}, memory_bytes=10 * 2**30)
    machine["storage"]["max_request_kb"] = 4096
    assert "in one piece here" in advice.whole_said(s) and "single pages" in advice.single_said(s)
    assert folios.dearer(s) == "Why a store costs more with calls of 1 MiB was not measured. "
    assert "20 % of the machine's memory, 2.0 GiB" in compressed.pool_limit(s)
    machine["storage"]["max_request_kb"], machine["cgroup"] = 256, "v2"
    assert advice.whole_said(s) == compressed.pool_limit(s) == ""
    machine["cgroup"] = "v1"
    for written_back in ({}, {"zswpwb": 7}):
        none = studied(tmp_path / f"none{len(written_back)}", made("fadvise-none", report={"system_us_a_mib": 100.0}), made("fadvise-willneed", report={"system_us_a_mib": 120.0}), made("folio-4KiB", report={"store_us": 1.0}),
                       made("folio-1MiB", report={"store_us": 1.2}), made("zswap-random", vmstat=written_back))  # fmt: skip
        none.machine().update(zswap={"max_pool_percent": "20"}, memory_bytes=10 * 2**30)
        assert advice.single_said(none) == folios.dearer(none) == compressed.pool_limit(none) == ""


def test_how_many_intervals_the_page_has(tmp_path):
    assert "such intervals" not in written(tmp_path / "one", made(study.NONE)), "nothing is compared"
    text = written(tmp_path / "some", *aheads(2.0, 2.0))
    n = len(study.Effect.seen)
    assert n > 0 and f"The page has {n} such intervals, so one of them may differ from 1 by chance." in text


def test_which_settings_the_runs_had(tmp_path):
    text = written(tmp_path / "linux", made(study.NONE, knobs=LINUX))
    assert "read-ahead 128 KiB, `vm.page-cluster` 3, dirty data written back from 10% of the memory limit on, writers slowed from 15% on and stopped at 20%" in text and "This read-ahead is the least that Linux gives a device, and its usual default." in text and "The dirty limits are scaled" in text
    assert "dirty limits are the machine's" in written(tmp_path / "v2", made(study.NONE, knobs={k: v for k, v in LINUX.items() if "dirty" not in k}))
    assert "came with a read-ahead of 8192 KiB, which these runs did not have" in text
    assert "this machine's own settings of Linux, read-ahead 8192 KiB" in written(tmp_path / "machine", made(study.NONE))


def test_the_page_is_that_of_the_committed_runs(tmp_path):
    """docs/page-cache.md says what experiments/kernel.py makes of data/page-cache. Packed runs have no timelines, so the picture of residency is left out."""
    folder = ROOT / "data" / "page-cache"
    page.page(study.Study(folder), folder, tmp_path / "page-cache.md")
    heat = re.compile(r"!\[Residency[^\n]*\n\n" + re.escape(page.HEAT) + r"\n\n")
    committed, heats = heat.subn("", (ROOT / "docs" / "page-cache.md").read_text())
    assert heats == 1 and committed == (tmp_path / "page-cache.md").read_text()


def test_each_question_stands_once_and_is_complete():
    names = [q.name for q in QUESTIONS]
    assert len(set(names)) == len(names) == len({q.title for q in QUESTIONS})
    assert all(q.asked.endswith("?") and q.panels and q.findings and re.fullmatch(r"[a-z-]+", q.name) for q in QUESTIONS)


@pytest.mark.parametrize("scale", ["quick", "thorough", "night", "full"])
def test_every_run_that_a_question_names_is_in_the_plan(scale):
    """Those of rows that do not depend on the results; the limits of the sweep grow with Buffers, which keep their ratio to it."""
    from runner import plan
    runs = {run.id: run for run in plan.load(ROOT / "experiments" / "plans" / "kernel.toml", scale).runs}
    named = {run for q in QUESTIONS for _, run in (*(q.rows if not callable(q.rows) else ()), *q.also)} | {run for q in QUESTIONS for run in q.needs}
    assert named <= runs.keys(), named - runs.keys()
    ratios = []
    for name in (study.NONE, *(n for n in runs if re.fullmatch(f"{study.NONE}-{study.SIZE}", n))):
        words = runs[name].words
        x, y, z = (int(n) + 2 for n in words[words.index("-n") + 1:words.index("-n") + 4])
        ratios.append(x * y * z * 8 / plan.size_bytes(runs[name].limit))
    assert max(ratios) < 1.01 * min(ratios)
    limits_of = {run.limit for run in runs.values()}
    assert ({"80MiB", "320MiB"} <= limits_of) == (scale != "full") and ("5GiB" in limits_of) == (scale in ("thorough", "night"))
