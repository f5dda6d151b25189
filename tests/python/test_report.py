# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run: its keys, and what it says about bytes and memory."""
import json
import pathlib
import subprocess
import tempfile

import pytest
from conftest import LIMIT_MEMORY, ROOT, needs_root, thinned

GIB, MIB = 2**30, 2**20
KEYS = {"problem", "machine", "plan", "backend", "seconds", "init_seconds", "updates_per_second", "read_bytes", "write_bytes",
        "predicted_read_bytes", "predicted_write_bytes", "time", "peak_rss_bytes", "dram_budget_bytes", "major_faults",
        "checksum", "verified"}
SMALL = ["-n", 30, 29, 31, "-t", 7]


def test_keys(memext, quick_place):
    """Every key of the report, and numbers that fit together."""
    report = memext.run(*SMALL, "-d", quick_place, "--backend", "aio", "--verify").report
    assert KEYS <= set(report) and report["verified"] is True
    assert {"algorithm", "engine", "by", "bz", "bt", "iy", "iz"} <= set(report["plan"])
    assert {"buf2blk_s", "blk2buf_s", "blk2blk_s", "update_s", "wait_s"} <= set(report["time"])
    assert len(report["checksum"]) == 16 and int(report["checksum"], 16) >= 0
    assert report["updates_per_second"] == pytest.approx(30 * 29 * 31 * 7 / report["seconds"], rel=1e-6)
    assert memext.run(*SMALL, "--backend", "dram")["verified"] is None


def test_types_are_told_by_field_where_they_differ(memext):
    system = ["--dry-run", *SMALL, "--init", "random", "--kernel"]
    said = memext("run", *system, ROOT / "systems/diffusion.c", "--init", "k=random").stdout
    assert "diffusion (u f64; read-only k f32), Buffers of" in said, said
    report = memext.run("--dry-run", *SMALL, "--kernel", ROOT / "systems/diffusion.c", "--init", "random", "--init", "k=random").report
    assert report["problem"]["dtype"] == "f64" and report["problem"]["kernel"]["fixed"] == {"k": "f32"}
    said = memext("run", *system, ROOT / "systems/fdtd.c", "--init", "eps=random").stdout
    assert "fdtd f32, Buffers of" in said, said
    assert "star7 f32, Buffers of" in memext("run", "--dry-run", *SMALL, "--dtype", "f32").stdout


def test_standard_output_is_one_json_object(memext, quick_place):
    done = memext("run", *SMALL, "-d", quick_place, "--json", "-")
    assert json.loads(done.stdout)["status"] == "done" and "updates" in done.stderr


def test_quiet_says_nothing(memext, quick_place):
    done = memext("run", *SMALL, "-d", quick_place, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_nothing_stays_in_the_directory(memext, quick_place):
    memext.run(*SMALL, "-d", quick_place)
    assert list(quick_place.iterdir()) == []


@pytest.mark.parametrize("backend", ["aio", "uring"])
@pytest.mark.parametrize("algorithm", ["redundant", "skewed", "skewed-y", "skewed-min", "stream"])
def test_predicted_bytes_are_moved(memext, quick_place, backend, algorithm):
    """read == predicted read and write == predicted write, to the byte; the kernel counts the same reads."""
    blocks = [[], ["--block", 20, 20, 3], ["--block", 29, 20, 5]]
    if algorithm == "stream":
        blocks = [[], ["--block", 29, 31, 3], ["--block", 10, 31, 3], ["--plan", "stream by=10 bt=3 faces=side-file"],
                  ["--plan", "stream by=1 bt=5 slab=2 faces=side-file"]]
    for block in blocks:
        report = memext.run(*SMALL, "-d", quick_place, "--backend", backend, "--algorithm", algorithm, *block, "--verify", "--no-fuse").report
        assert report["verified"] is True
        assert report["read_bytes"] == report["predicted_read_bytes"] > 0
        assert report["write_bytes"] == report["predicted_write_bytes"] > 0
        # More only where pages of the program itself were read again, since something else emptied the page cache.
        more = report["kernel"]["storage_read_bytes"] - report["read_bytes"]
        assert more == 0 or (more > 0 and report["major_faults"] > 0)


def test_the_slides_problem(memext):
    """110.25 GiB read, 64.00 GiB written, 64.19 GiB initialised, as measured in the slides; no place is needed."""
    done = memext("run", "-n", 2046, 2048, 1024, "-t", 256, "--block", 512, 512, 128, "--algorithm", "redundant",
                  "--dram", "64GiB", "--dry-run", "--no-fuse", "--json", "-")
    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert [round(report[f"predicted_{what}_bytes"] / GIB, 2) for what in ("read", "write", "init")] == [110.25, 64.00, 64.19]


@pytest.mark.parametrize("program, stencil", [("stencil7p", "star7"), ("stencil19p", "edge19"), ("stencil27p", "box27")])
def test_the_papers_programs(memext, build, quick_place, program, stencil):
    done = memext(*SMALL, "-d", quick_place, "--json", "-", program=build / program)
    plain = memext.run(*SMALL, "-d", quick_place, "--stencil", stencil)
    report = json.loads(done.stdout)
    assert report["problem"]["stencil"] == stencil and report["checksum"] == plain["checksum"]


@pytest.mark.parametrize("command", ["run", "tune", "info"])
def test_help(memext, command):
    done = memext(command, "--help")
    assert done.returncode == 0 and "--dram" in done.stdout and done.stderr == ""


def test_info(memext, quick_place):
    done = memext("info", "-d", quick_place, "--json", "-")
    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert {b["name"] for b in report["backends"]} >= {"dram", "swap", "mmap", "aio", "uring"}


# ------------------------------------------------------------------ memory

MEDIUM = ["-n", 126, 126, 798, "-t", 4]  # two Buffers of 100 MiB
LARGE = ["-n", 254, 254, 382, "-t", 8]  # two Buffers of 199 MiB


@pytest.mark.parametrize("algorithm, backend", [("redundant", "uring"), ("stream", "aio"), *thinned([("redundant", "aio"), ("stream", "uring")], lambda *case: False)])
def test_dram_is_kept(memext, quick_place, backend, algorithm):
    """Peak RSS is at most --dram + 64 MiB. It is VmHWM, which begins anew with exec; ru_maxrss would be that of this
    interpreter, which a child inherits."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = ["run", *LARGE, "-d", quick_place, "--backend", backend, "--algorithm", algorithm, "--dram", "96MiB", "--verify",
                 "--quiet", "--json", file.name]
        process = subprocess.run([memext.program, *map(str, words)])
        report = json.loads(pathlib.Path(file.name).read_text())  # the file that was there was replaced
    assert process.returncode == 0 and report["verified"] is True
    assert 0 < report["peak_rss_bytes"] <= 160 * MIB
    assert report["dram_budget_bytes"] <= 96 * MIB


def test_dram_is_kept_with_a_side_file(memext, quick_place):
    """By itself the tuner keeps the faces in a side file where DRAM is a tenth of the Buffers and the device slow, and stays within it."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = ["run", "-n", 510, 510, 126, "-t", 24, "-d", quick_place, "--algorithm", "stream", "--dram", "56MiB", "--read-bw",
                 1e8, "--write-bw", 1e8, "--verify", "--quiet", "--json", file.name]
        process = subprocess.run([memext.program, *map(str, words)])
        report = json.loads(pathlib.Path(file.name).read_text())  # the file that was there was replaced
    assert process.returncode == 0 and report["verified"] is True and report["plan"]["faces"] == "side-file"
    assert report["read_bytes"] == report["predicted_read_bytes"] and report["write_bytes"] == report["predicted_write_bytes"]
    assert report["block_bytes"] <= 32 * MIB and report["peak_rss_bytes"] <= 120 * MIB


@needs_root
@pytest.mark.parametrize("backend", ["mmap", "swap", "aio", "uring"])
def test_inside_a_memory_limit_half_the_problem(memext, place, backend):
    """Every backend finishes, verified, where anonymous memory and page cache together are half of the Buffers."""
    swap = ["--swap", "256MiB", "--swap-dir", place] if backend == "swap" else []
    report = memext.run(*MEDIUM, "-d", place, "--backend", backend, "--dram", "72MiB", "--algorithm", "redundant", "--verify",
                        prefix=[LIMIT_MEMORY, "96MiB", "--keep-cache", *swap, "--"]).report
    assert report["verified"] is True and report["machine"]["cgroup_limit_bytes"] == 96 * MIB
    assert 2 * report["layout"]["buffer_bytes"] >= 192 * MIB
    assert backend != "swap" or min(report["kernel"]["swap_in_bytes"], report["kernel"]["swap_out_bytes"]) > 16 * MIB  # the machine's: at least the run's


@needs_root
@pytest.mark.parametrize("backend", ["aio", "uring"])
def test_the_limit_of_the_cgroup_is_the_default(memext, quick_place, backend):
    """Without --dram a run inside a cgroup plans for its limit and is not killed."""
    report = memext.run(*LARGE, "-d", quick_place, "--backend", backend, prefix=[LIMIT_MEMORY, "256MiB", "--keep-cache", "--"]).report
    assert report["dram_limit_bytes"] == 256 * MIB and report["dram_budget_bytes"] < 256 * MIB
