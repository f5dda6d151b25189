"""memext run with an accelerator: every system and the built-in stencils have the bits that they have without one, on host and on OpenCL (PoCL),
in rings that fit and in strips that do not; bytes on the bus are those predicted; what cannot be done is refused; a run that fails there goes on."""
import json

import pytest
from test_run_systems import System
from test_systems import CASES

GRID = ["-n", 41, 37, 29, "-t", 9]
HOW = {
    "host": ["--accel", "host"],
    "strips": ["--accel", "host", "--plan", "stream by=9 bt=2 slab=2"],
    "side file": ["--accel", "host", "--plan", "stream by=9 bt=2 slab=2 faces=side-file"],
    "direct": ["--accel", "host", "--algorithm", "direct"],
    "dram": ["--accel", "host,rate=500MB/s", "--backend", "dram", "--algorithm", "stream"],
}


def works(memext, name):
    listed = json.loads(memext("info", "--quiet", "--json", "-").stdout)["accelerators"]
    found = {a["name"]: a for a in listed}
    assert set(found) == {"host", "opencl", "cuda"} and found["host"]["works"]
    assert all(a["works"] or a["why"] for a in listed)
    return found[name]


def check_bus(result):
    assert result["host_to_device_bytes"] == result["predicted_host_to_device_bytes"] == result["read_bytes"] > 0
    assert result["device_to_host_bytes"] == result["predicted_device_to_host_bytes"] == result["write_bytes"] > 0


@pytest.mark.parametrize("how", HOW)
def test_stencil(memext, place, how):
    """The checksum of a run in DRAM; bytes on the bus exactly as predicted."""
    expected = memext.run(*GRID, "-d", place)["checksum"]
    result = memext.run(*GRID, *([] if "dram" in HOW[how] else ["-d", place]), *HOW[how])
    assert result["checksum"] == expected
    assert result["plan"]["engine"] == "device"
    check_bus(result)


def test_ring_as_large_as_it_may_be(memext, place):
    """Less memory there means fewer steps a sweep, not another result; and none that is too small is taken."""
    words = ["-n", 60, 50, 40, "-t", 12, "-d", place]
    expected = memext.run(*words)["checksum"]
    bt = []
    for size in ("2MiB", "600KiB", "300KiB"):
        result = memext.run(*words, "--accel", "host", "--device-memory", size)
        assert result["checksum"] == expected
        assert result["accelerator"]["used_bytes"] <= result["accelerator"]["memory_bytes"]
        check_bus(result)
        bt.append(result["plan"]["bt"])
    assert bt[0] > bt[1] > bt[2]
    memext.refused("run", *words, "--accel", "host", "--device-memory", "64KiB", naming="--device-memory")


@pytest.mark.parametrize("accel", ["host", "opencl"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_system(memext, place, tmp_path, name, accel):
    """Kernels of users, from the same text: the checksum of a run in DRAM."""
    if not works(memext, accel)["works"]:
        pytest.skip(works(memext, accel)["why"])
    system = System(name, tmp_path)
    words = [*system.words(4), "-d", place]
    expected = memext.run(*words)["checksum"]
    result = memext.run(*words, "--accel", accel, "--plan", "stream bt=2 slab=9")
    assert result["checksum"] == expected
    check_bus(result)


@pytest.mark.parametrize("word", ["fault=7", "late=12"])
def test_fault_and_resume(memext, place, word):
    """An operation that fails ends the run with status 3 and a sentence; the store goes on without the accelerator, or with it."""
    expected = memext.run(*GRID, "-d", place)["checksum"]
    plan = ["--plan", "stream bt=3 slab=9"]
    failed = memext.run(*GRID, "-d", place, *plan, "--accel", f"host,{word}", status=3)
    assert "the accelerator host" in failed["error"] and "fault" in failed["error"]
    for accel in ([], ["--accel", "host"])["late" in word:][:1]:
        assert memext.run("-d", place, "--resume", *accel)["checksum"] == expected


@pytest.mark.parametrize("words, naming", [
    (["--accel", "host,device=0"], ["device=0", "nothing"]), (["--accel", "opencl,memory=1MiB"], ["--device-memory 1MiB"]),
    (["--accel", "host,memory=99999999999999999999"], ["no size"]), (["--accel", "host,rate=inf"], ["no rate"]),
    (["--accel", "nothing"], "host, opencl, cuda or auto"),
    (["--accel", "host,speed=3"], "rate="),
    (["--accel", "host,rate=fast"], "rate=fast"),
    (["--accel", "host", "--algorithm", "redundant"], "leave --accel out"),
    (["--accel", "host", "--engine", "tiled"], "engine device"),
    (["--accel", "host", "--side", "z=mirror"], "--side"),
    (["--accel", "host,memory=1MiB", "--device-memory", "2MiB"], "ask for less"),
    (["--accel", "host", "--backend", "mmap"], "backend mmap"),
    (["--device-memory", "1MiB"], "--accel"),
    (["--plan", "stream engine=device bt=2"], "--accel"),
])
def test_refusals(memext, place, words, naming):
    memext.refused("run", *GRID, "-d", place, *words, naming=naming)


def test_tune(memext):
    """A plan for an accelerator without one being touched by a run: what is there, what is used of it, and the bus in the prediction."""
    done = memext("tune", "-n", 512, 512, 512, "-t", 100, "--accel", "host,rate=2GB/s", "--device-memory", "128MiB", "--quiet", "--json", "-")
    plan = json.loads(done.stdout)
    assert plan["plan"]["engine"] == "device" and plan["device_used_bytes"] <= plan["device_memory_bytes"] == 128 << 20
    assert plan["predicted_time"]["bus_s"] == pytest.approx(plan["predicted_read_bytes"] / 2e9)
    assert plan["predicted_time"]["total_s"] >= plan["predicted_time"]["bus_s"]
