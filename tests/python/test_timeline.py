# SPDX-License-Identifier: BSD-3-Clause
"""--timeline and --trace of real runs: what they say adds up to what the report says."""
import json
import sys

import pytest
from conftest import LIMIT_MEMORY, ROOT, needs_root

sys.path.insert(0, str(ROOT))

from analysis import timeline  # noqa: E402

PROBLEM = ["-n", 62, 62, 94, "-t", 10]
PAGES = ["-n", 510, 30, 254, "-t", 4]  # rows of whole pages, Buffers of 32 MiB


def observed(memext, place, *more, **options):
    """(report, timeline, trace)"""
    line, trace = place / "timeline", place / "trace"
    report = memext.run(*more, "-d", place, "--timeline", line, "--trace", trace, **options).report
    return report, timeline.read(line), json.loads(trace.read_text())["traceEvents"]


def amount(line, kind):
    return sum(e["n"] for e in line.of_kind(kind))


@pytest.mark.parametrize("backend", ["aio", "uring", "mmap"])
@pytest.mark.parametrize("algorithm", ["redundant", "stream", "skewed-min"])
def test_events_add_up(memext, quick_place, backend, algorithm):
    """Bytes of loads and stores and updates of advances are the report's; one sweep after the other up to step nt."""
    report, line, _ = observed(memext, quick_place, *PROBLEM, "--backend", backend, "--algorithm", algorithm)
    assert line.header["backend"] == backend and line.header["plan"]["algorithm"] == algorithm and line.header["interval_s"] <= 0.1
    assert (amount(line, "load"), amount(line, "store")) == (report["read_bytes"], report["write_bytes"])
    assert (amount(line, "feed") > 0) == (report["fused"]["source"] is True) and amount(line, "take") == 0
    assert amount(line, "advance") == report["updates"]
    sweeps = line.of_kind("sweep")
    assert len(sweeps) == -(-10 // report["plan"]["bt"]) and [e["n"] for e in sweeps][-1] == 10
    assert all(a["t"][1] == b["t"][0] for a, b in zip(sweeps, sweeps[1:]))
    assert len(line.of_kind("commit")) == (len(sweeps) if algorithm != "skewed-min" else 0)
    own = line.column("sampler_s")
    assert own[0] > 0 and (own[1:] > own[:-1]).all()
    assert line.total("read_bytes") == report["read_bytes"] and line.total("updates") == report["updates"]


@pytest.mark.parametrize("backend", ["aio", "uring"])
def test_the_trace_holds_the_same_events(memext, quick_place, backend):
    """Every transfer begins and ends once, under an id of its own; their bytes are the report's; the rest has a duration."""
    report, line, trace = observed(memext, quick_place, *PROBLEM, "--backend", backend, "--algorithm", "redundant", "--block", 31, 31, 5)
    begins = {(e["name"], e["id"]): e for e in trace if e["ph"] == "b"}
    ends = {(e["name"], e["id"]): e for e in trace if e["ph"] == "e"}
    assert begins.keys() == ends.keys() and len({i for _, i in begins}) == len(begins)
    assert all(begins[key]["ts"] <= ends[key]["ts"] for key in begins)
    for name, key in (("load", "read_bytes"), ("store", "write_bytes")):
        assert sum(e["args"]["bytes"] for (n, _), e in begins.items() if n == name) == report[key] > 0
    assert report["fused"]["source"] is True and any(name == "feed" for name, _ in begins)
    whole = [e for e in trace if e["ph"] == "X"]
    assert {"advance", "sweep"} <= {e["name"] for e in whole} and all(e["dur"] >= 0 for e in whole)
    assert len(begins) + len(whole) == len(line.events)


@pytest.mark.parametrize("algorithm", ["redundant", "stream"])
def test_what_goes_by_no_buffer(memext, quick_place, algorithm):
    """From the initial grid and to the output only: as many bytes as otherwise go through Buffers, under names of their own."""
    words = [*PROBLEM, "--algorithm", algorithm, "--output", quick_place / "out.npy", "--overwrite"]
    report, line, _ = observed(memext, quick_place, *words)
    whole, unfused, _ = observed(memext, quick_place, *words, "--no-fuse")
    assert amount(unfused, "feed") == amount(unfused, "take") == 0 < amount(line, "feed") and (amount(line, "take") > 0) == (algorithm == "stream")
    assert amount(line, "load") + amount(line, "feed") == amount(unfused, "load") == whole["read_bytes"]
    assert amount(line, "store") + amount(line, "take") == amount(unfused, "store") == whole["write_bytes"]
    assert (amount(line, "load"), amount(line, "store")) == (report["read_bytes"], report["write_bytes"])


def test_residency_of_what_the_page_cache_holds(memext, place):
    """mmap with memory enough: all of both Buffers is resident at the end. Explicit I/O: nothing is."""
    _, mapped, _ = observed(memext, place, *PAGES, "--backend", "mmap", "--algorithm", "direct")
    _, explicit, _ = observed(memext, place, *PAGES, "--backend", "aio", "--algorithm", "redundant", "--block", 16, 100, 4)
    assert mapped.header["residency"] in ("cachestat", "mincore") and (mapped.residency.max(axis=0) == 100).all()
    assert explicit.residency.shape == (len(explicit.samples), 2, explicit.header["bins"]) and not explicit.residency.any()


def test_a_third_buffer_has_its_residency(memext, place):
    """Commits that are far apart take turns with three Buffers; one map for each, the last of them what rests."""
    _, line, _ = observed(memext, place, *PAGES, "--backend", "mmap", "--algorithm", "redundant", "--block", 16, 100, 1, "--commit-every", 60)
    assert [b["name"] for b in line.header["buffers"]] == ["source", "target", "spare"]
    assert line.residency.shape == (len(line.samples), 3, line.header["bins"]) and line.residency.any(axis=(0, 2)).sum() >= 2


def test_of_dram_no_residency_is_kept(memext, place):
    """All of it is resident: looking would only take time."""
    _, line, _ = observed(memext, place, *PAGES, "--backend", "dram")
    assert line.header["residency"] == "none" and len(line.residency) == 0 and line.total("updates") == 510 * 30 * 254 * 4


@needs_root
def test_reclaim_is_counted(memext, place):
    """In a cgroup of half the Buffers the kernel must take back what it cached: bytes reclaimed, and memory of the cgroup."""
    _, line, _ = observed(memext, place, "-n", 510, 126, 254, "-t", 4, "--backend", "mmap", "--algorithm", "direct",
                          prefix=[LIMIT_MEMORY, "128MiB", "--keep-cache", "--"])  # fmt: skip
    assert line.total("reclaimed_bytes") > 64 << 20 and line.total("refault_bytes") > 0
    assert 0 < line.column("cache_bytes").max() <= 128 << 20


@needs_root
def test_advised_by_the_schedule_mmap_reads_what_it_needs(memext, place):
    """Parts of planes, in a third of the Buffers' memory: whatever the read-ahead of the device, storage reads no more than what the schedule
    loads and what it overwrites."""
    report = memext.run("-n", 510, 254, 126, "-t", 8, "-d", place, "--backend", "mmap", "--advice", "schedule", "--algorithm", "skewed-min",
                        "--block", 30, 40, 8, "--dram", "80MiB", prefix=[LIMIT_MEMORY, "96MiB", "--keep-cache", "--"]).report  # fmt: skip
    assert report["plan"]["by"] == 30 and 2 * report["layout"]["buffer_bytes"] >= 256 << 20
    assert report["kernel"]["storage_read_bytes"] <= report["read_bytes"] + report["write_bytes"]
