# SPDX-License-Identifier: BSD-3-Clause
"""memext run with an accelerator: every system and the built-in stencils have the bits that they have without one, on host and on OpenCL (PoCL),
in rings that fit and in strips that do not, with sides, sources, probes, norms and snapshots; bytes on the bus are those predicted; a run that fails
there goes on; what was measured of an accelerator enters the model. Of CUDA a driver and a compiler that need no device stand for them (tests/fake_cuda)."""
import json
import os
import re
import signal
import subprocess

import numpy
import pytest
from conftest import ROOT, wait_until
from ranks_of_runs import check_bytes
from run_systems import STAGES, System
from test_in_place import Fields
from test_systems import CASES
from watch import newest_superblock

GRID = ["-n", 41, 37, 29, "-t", 9]
HOW = {
    "host": ["--accel", "host"],
    "strips": ["--accel", "host", "--plan", "stream by=9 bt=2 slab=2"],
    "side file": ["--accel", "host", "--plan", "stream by=9 bt=2 slab=2 faces=side-file"],
    "direct": ["--accel", "host", "--algorithm", "direct"],
    "dram": ["--accel", "host,rate=500MB/s", "--backend", "dram", "--algorithm", "stream"],
}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    monkeypatch.delenv("FAKE_CUDA", raising=False)


@pytest.fixture
def fake_cuda(build, monkeypatch):
    """Says what the fake does; from then on it is what --accel cuda finds."""
    folder = build / "fake_cuda"
    if not folder.exists():
        pytest.skip("tests/fake_cuda was not built")

    def say(words=""):
        monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
        monkeypatch.setenv("FAKE_CUDA", words)
    return say


def use(request, memext, name):
    """The accelerator, if it is there; of cuda the fake where there is no device."""
    if name == "cuda" and not works(memext, name)["works"]:
        request.getfixturevalue("fake_cuda")("late=1")
    if not works(memext, name)["works"]:
        pytest.skip(works(memext, name)["why"])


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


# By OpenCL, which compiles each for seconds, every fourth one, by CUDA every other one; the rest is there when there is time.
@pytest.mark.parametrize("name, accel", [pytest.param(name, accel, marks=[pytest.mark.long] if at % {"host": 1, "cuda": 2, "opencl": 4}[accel] else [])
                                         for at, name in enumerate(sorted(CASES)) for accel in ("host", "opencl", "cuda")])  # fmt: skip
def test_system(request, memext, place, tmp_path, name, accel):
    """Kernels of users, from the same text: the checksum of a run in DRAM."""
    use(request, memext, accel)
    system = System(name, tmp_path)
    words = [*system.words(4), "-d", place]
    expected = memext.run(*words)["checksum"]
    result = memext.run(*words, "--accel", accel, "--plan", f"stream bt={STAGES.get(name, 2)} slab=9")
    assert result["checksum"] == expected
    check_bus(result)


@pytest.mark.parametrize("accel", ["host", "opencl", "cuda"])
@pytest.mark.parametrize("plan, sides", [
    ("stream bt=3 slab=5", ["x=periodic", "y=mirror", "z=fixed,mirror"]), ("stream by=19 bt=2 slab=3", ["x=mirror", "y=mirror", "z=mirror"]),
    ("stream bt=2 slab=9", ["y=periodic", "z=periodic"]), ("resident bt=4", ["x=periodic", "y=periodic", "z=periodic"]),
])
@pytest.mark.each_value
def test_sides_points_norms_snapshots(request, memext, place, tmp_path, accel, plan, sides):
    """All that can be asked of rows that were computed: cells, traces, norms and snapshots are those of a run in DRAM."""
    use(request, memext, accel)
    rng = numpy.random.default_rng(5)
    numpy.save(tmp_path / "w.npy", rng.random(7) - 0.5)
    cells = rng.integers(0, (41, 37, 29), (60, 3))
    cells[1] = cells[0]
    (tmp_path / "sources").write_text("".join(f"u@{x},{y},{z}={tmp_path}/w.npy\n" for x, y, z in cells[:30]))
    (tmp_path / "probes").write_text("".join(f"u {x} {y} {z}\n" for x, y, z in cells[20:]))
    words = [*GRID, "-d", place, "--sources", tmp_path / "sources", "--probes", tmp_path / "probes", "--check", 4, *(w for s in sides for w in ("--side", s))]
    results = []
    for name, how in (("cpu", []), ("there", ["--accel", accel, "--plan", plan])):
        result = memext.run(*words, *how, "--probes-out", tmp_path / f"{name}.npy", "--snapshot", f"5:{tmp_path}/{name}")
        results.append((result["checksum"], result["norms"], (tmp_path / f"{name}.npy").read_bytes(), (tmp_path / name / "u-000005.npy").read_bytes()))
    assert results[0] == results[1]
    assert result["host_to_device_bytes"] == result["predicted_host_to_device_bytes"]
    assert result["device_to_host_bytes"] == result["predicted_device_to_host_bytes"]
    assert (result["read_bytes"], result["write_bytes"]) == (result["predicted_read_bytes"], result["predicted_write_bytes"])
    aside = result["accelerator"]
    assert (aside["aside_device_to_host_bytes"] > 0) == (accel != "host")


def test_direct_of_a_plan_is_resident(memext, place):
    """As --algorithm direct is: the whole grid in the accelerator's memory."""
    expected = memext.run(*GRID, "-d", place)["checksum"]
    result = memext.run(*GRID, "-d", place, "--accel", "host", "--plan", "direct bt=3")
    assert (result["checksum"], result["plan"]["algorithm"]) == (expected, "resident")
    check_bus(result)
    memext.refused("run", *GRID, "-d", place, "--accel", "host", "--plan", "redundant bt=3", naming="cannot compute on an accelerator")


AWKWARD = {
    "one plane": ["-n", 20, 15, 1, "-t", 5, "--plan", "stream bt=2 slab=1"],
    "one row, strips of one": ["-n", 20, 3, 9, "-t", 4, "--plan", "stream by=1 bt=2 slab=2"],
    "bt does not divide nt": ["-n", 20, 15, 13, "-t", 9, "--plan", "stream bt=4 slab=5"],
    "more levels than steps": ["-n", 20, 15, 13, "-t", 3, "--plan", "stream bt=3 slab=20"],
    "h = 4": ["-n", 20, 15, 13, "-t", 5, "--stencil", "star25", "--plan", "stream bt=2 slab=3"],
    "h = 4 in strips": ["-n", 20, 15, 13, "-t", 5, "--stencil", "star25", "--dtype", "f32", "--plan", "stream by=6 bt=2 slab=9"],
}


# OpenCL compiles each of them for seconds: every second one, the others when there is time.
@pytest.mark.parametrize("name, accel", [pytest.param(name, accel, marks=[pytest.mark.long] if accel == "opencl" and at % 2 == 0 else [])
                                         for at, name in enumerate(AWKWARD) for accel in ("host", "opencl", "cuda")])  # fmt: skip
@pytest.mark.each_value
def test_awkward(request, memext, place, name, accel):
    use(request, memext, accel)
    words = AWKWARD[name]
    expected = memext.run(*words[:words.index("--plan")], "-d", place)["checksum"]
    result = memext.run(*words, "-d", place, "--accel", accel)
    assert result["checksum"] == expected
    check_bus(result)


# Functions, tables and names that C allows and compilers of devices have otherwise; functions of <math.h> that compute in double what they are given as float.
AWKWARD_KERNEL = r"""
#define MX_NAME "awkward"
#define MX_RADIUS 1
#define MX_REAL float
#define MX_STATE(F) F(u, float) F(w, double)
#define MX_PARAMS(P) P(a, 0.1)
#include <math.h>
#include <stdlib.h>
#include <memext/cell.h>
static const double weights[3] = {0.25, 0.5, 0.125};
  static  const float scale = 0.5f; /* a constant */
static const double half(double v) { return v * 0.5; }
static inline float twice(float v) { return v + v; }
static double max(double a, double b) { return a > b ? a : b; }
static double third(double v) {
    return max(v / 3, -1e300) * weights[1];
}
MX_CELL
    const float c = AT(u, 0, 0, 0), kernel = fmax(c, AT(u, 1, 0, 0)), local = fabsf(AT(u, 0, 1, 0));
    double new = sqrt(c * c + 1.0f) * 0.1, this = round(c * 10) * 0.01f, class = fmod(c, 0.3f) * 0.01f;
    const double r = AT(w, 0, 0, 0) * weights[(X + 2 * Y) % 3] + half(M_PI) * 1e-3 * abs((int)(X - 5)) + (c < INFINITY ? 0 : 1);
    new += trunc(this * 7) * 1e-3 + floor(local) * 1e-4f + remainder(kernel, 0.7f) * 1e-3f;
    SET(u, (float)(new + third(twice(kernel)) * scale) + PARAM(a) * (AT(u, -1, 0, 0) + AT(u, 0, 1, 0) + AT(u, 0, -1, 0) + AT(u, 0, 0, 1)));
    SET(w, r + class + fma(r, 1e-3, 1e-4) + fmaf(c, 1e-3f, 1e-4f) + hypot(0, 0) + copysign(1e-5f, -c) - cbrt(0) + tanf(0 * c) + sinhf(0 * c) + atan2f(0 * c, 1) + log2f(1 + 0 * c));
MX_END
"""


@pytest.mark.parametrize("accel", ["host", "opencl", "cuda"])
def test_what_is_c_and_no_language_of_devices(request, memext, place, tmp_path, accel):
    use(request, memext, accel)
    (tmp_path / "awkward.c").write_text(AWKWARD_KERNEL)
    words = ["--kernel", tmp_path / "awkward.c", "-n", 40, 20, 10, "-t", 5, "--init", "random", "-d", place]
    expected = memext.run(*words)["checksum"]
    result = memext.run(*words, "--accel", accel, "--plan", "stream bt=2 slab=5")
    assert result["checksum"] == expected
    check_bus(result)


@pytest.mark.parametrize("accel", ["host", "opencl", "cuda"])
def test_files_used_in_place(request, memext, place, tmp_path, accel):
    """Read-only fields of every type, at offsets of their own in files that stay as they are."""
    use(request, memext, accel)
    f = Fields(tmp_path, 1)
    before = f.identities()
    for nt, plan in (4, "stream by=23 bt=3"), (5, "stream by=9 bt=2 slab=2"):
        done = memext.run(*f.run(nt), "-o", tmp_path / "out.npy", "--overwrite", "-d", place, "--plan", plan, "--accel", accel)
        assert numpy.load(tmp_path / "out.npy").tobytes() == f.wanted(nt) and all(v["in_place"] for v in done["files"].values())
        check_bus(done)
    assert f.identities() == before


@pytest.mark.parametrize("accel", ["host", "opencl", "cuda"])
def test_file_to_file(request, memext, place, tmp_path, accel):
    """From a file of cells to one, without and with a store that stays; an output that does not fit leaves a sentence and no part of it."""
    use(request, memext, accel)
    numpy.save(tmp_path / "in.npy", numpy.random.default_rng(3).random((15, 19, 22)))
    words = ["--input", tmp_path / "in.npy", "-t", 6, "-d", place]
    expected = memext.run(*words, "--output", tmp_path / "cpu.npy")["checksum"]
    result = memext.run(*words, "--output", tmp_path / "there.npy", "--accel", accel)
    assert result["checksum"] == expected and (tmp_path / "there.npy").read_bytes() == (tmp_path / "cpu.npy").read_bytes()


@pytest.mark.parametrize("accel", ["host", "opencl", "cuda"])
def test_interrupted(request, memext, place, accel):
    """Ctrl-C when sweeps are committed: status 5, and what follows ends with the undisturbed run's bits, there or without an accelerator."""
    use(request, memext, accel)
    words = ["-n", 61, 53, 47, "-t", 400, "-d", place]
    expected = memext.run(*words)["checksum"]
    process = subprocess.Popen([str(w) for w in (memext.program, "run", *words, "--quiet", "--commit-every", 0, "--plan", "stream bt=2", "--accel", accel)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: newest_superblock(place / "memext.store")[0] > 3, "it has committed", process)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=900)[1]
    assert process.returncode == 5 and "--resume" in error, error
    assert memext.run("-d", place, "--resume", *(["--accel", accel] if accel == "host" else []))["checksum"] == expected


@pytest.mark.parametrize("accel", ["host", "opencl"])
def test_until(memext, place, accel):
    """A run that a criterion ends ends at the same step, with the same state."""
    if not works(memext, accel)["works"]:
        pytest.skip(works(memext, accel)["why"])
    words = ["-n", 23, 19, 17, "-t", 60, "-d", place, "--check", 5, "--until", "rms-change=0.02"]
    expected, result = memext.run(*words), memext.run(*words, "--accel", accel, "--plan", "stream bt=3 slab=4")
    assert 0 < result["steps_done"] < 60
    assert (result["checksum"], result["steps_done"], result["norms"]) == (expected["checksum"], expected["steps_done"], expected["norms"])


def test_calibrated(memext, tmp_path, monkeypatch):
    """What was measured of an accelerator is known to later runs, and a rate that is given is not kept as the machine's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = ["-n", 64, 48, 40, "-t", 20, "--quiet"]

    def model(*more):
        return json.loads(memext("run", *words, "--backend", "dram", "--dry-run", "--json", "-", *more).stdout)["accelerator"]["model"]

    assert model("--accel", "host")["bus_source"] == "default"
    memext("tune", *words, "--calibrate-seconds", 0.1, "--accel", "host,rate=100MB/s")
    assert model("--accel", "host")["bus_source"] == "default"
    memext("tune", *words, "--calibrate-seconds", 0.1, "--accel", "host")
    known = json.loads((tmp_path / "memext" / "rates.json").read_text())["accel"]
    assert model("--accel", "host")["put_bytes_per_s"] == known["host host (DRAM of this machine)"]["put_bytes_per_s"] > 0
    assert model("--accel", "host")["bus_source"] == model("--accel", "host")["kernel_source"] == "cached"
    given = model("--accel", "host,rate=2GB/s,updates=1e6")
    assert (given["bus_source"], given["kernel_source"], given["put_bytes_per_s"]) == ("given", "given", 2e9)
    assert given["decides"] == "kernel" and model("--accel", "host,rate=1kB/s")["decides"] == "bus"


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
    (["--accel", "host,device=0"], ["device=0", "single device"]), (["--accel", "opencl,memory=1MiB"], ["--device-memory 1MiB"]),
    (["--accel", "host,memory=99999999999999999999"], ["not a size", "like 128MiB"]), (["--accel", "host,rate=inf"], ["not a rate", "like 2GB/s"]),
    (["--accel", "nothing"], "auto, cuda, opencl or host"),
    (["--accel", "host,speed=3"], "rate="), (["--accel", "host,pin=2"], "neither 0 nor 1"), (["--accel", "host,pin=1,rate=1GB/s,pin=0"], "pin twice"), (["--accel", "opencl,pin=1"], "leave pin=1 out"),
    (["--accel", "host,rate=fast"], "rate=fast"),
    (["--accel", "host", "--algorithm", "redundant"], "leave --accel out"),
    (["--accel", "host", "--engine", "tiled"], "engine device"),
    (["--accel", "host,memory=1MiB", "--device-memory", "2MiB"], "ask for less"),
    (["--accel", "host", "--backend", "mmap"], "backend mmap"),
    (["--device-memory", "1MiB"], "--accel"),
    (["--plan", "stream engine=device bt=2"], "--accel"),
])
def test_refusals(memext, place, words, naming):
    memext.refused("run", *GRID, "-d", place, *words, naming=naming)


def test_every_key_is_in_the_manual(memext, place):
    keys = re.findall(r"(\w+)=", memext.refused("run", *GRID, "-d", place, "--accel", "host,speed=3", naming="speed").stderr.split("; give ")[1])
    manual = (ROOT / "docs" / "memext.1").read_text()
    assert {"device", "rate", "fuse", "fault", "late"} <= set(keys)
    assert [k for k in keys if f"fB{k}=" not in manual] == []


def test_tune(memext):
    """A plan for an accelerator without one being touched by a run: what is there, what is used of it, and the bus in the prediction."""
    done = memext("tune", "-n", 512, 512, 512, "-t", 100, "--accel", "host,rate=2GB/s", "--device-memory", "128MiB", "--quiet", "--json", "-")
    plan = json.loads(done.stdout)
    assert plan["plan"]["engine"] == "device" and plan["device_used_bytes"] <= plan["device_memory_bytes"] == 128 << 20
    assert plan["predicted_time"]["bus_s"] == pytest.approx(plan["predicted_read_bytes"] / 2e9)
    assert plan["predicted_time"]["total_s"] >= plan["predicted_time"]["bus_s"]


# ------------------------------------------------------------------ devices that cannot be used, or are lost

def why_not(memext, name):
    found = works(memext, name)
    assert not found["works"]
    return found["why"]


def test_why_opencl_cannot_be_used(memext, place, tmp_path, monkeypatch):
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    why = why_not(memext, "opencl")
    assert "no platform" in why or "cannot be loaded" in why
    memext.refused("run", *GRID, "-d", place, "--accel", "opencl", naming=why[:40])
    assert list(place.iterdir()) == []


def test_why_cuda_cannot_be_used(memext, place, tmp_path, build, fake_cuda, monkeypatch):
    """No driver, one that is too old, no compiler, one that is too old, no device, a driver that does not work: each has its sentence, in info and in a run;
    what there is and does not work ends in status 3, what there is not in status 2."""
    (tmp_path / "old.c").write_text("int cuInit(unsigned flags) { return 0; }\n")
    for folder, library in (("old driver", "libcuda.so.1"), ("no compiler", None), ("old compiler", "libnvrtc.so.12")):
        (tmp_path / folder).mkdir()
        if library:
            subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / folder / library, tmp_path / "old.c"], check=True)
        if library != "libcuda.so.1":
            (tmp_path / folder / "libcuda.so.1").symlink_to(build / "fake_cuda" / "libcuda.so.1")
    for folder, words, status, naming in (("old driver", "", 3, "install a newer driver"), ("no compiler", "", 2, "libnvrtc.so cannot be loaded"),
                                          ("old compiler", "", 3, "older than CUDA 11.2"), (None, "devices=0", 2, "no device"),
                                          (None, "fail=1,name=cuInit,error=803", 3, "CUDA error 803"),
                                          (None, "fail=1,name=cuDeviceGetCount,error=999", 3, "CUDA error 999")):
        fake_cuda(words)
        if folder:
            monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / folder))
            if folder == "no compiler" and works(memext, "cuda")["works"]:
                continue  # this machine has one of its own
        assert naming in why_not(memext, "cuda"), folder or words
        done = memext("run", *GRID, "-d", place, "--accel", "cuda", "--quiet")
        assert done.returncode == status and naming in done.stderr, (folder or words, done.returncode, done.stderr)
        assert list(place.iterdir()) == []


def test_lost_device(memext, place, fake_cuda):
    """A device that is gone while it computes, one that has less memory than it says, one whose driver does not load the kernel: a sentence and status 3,
    and the store goes on without it."""
    expected = memext.run(*GRID, "-d", place)["checksum"]
    for words, naming in (("late=1,fail=9,name=cuLaunchKernel,error=700,sticky=1", "illegal memory access"), ("fail=1,name=cuMemAlloc_v2,error=2", "out of memory"),
                          ("fail=1,name=cuModuleLoadData,error=222", "the NVRTC of the driver's version"), ("fail=5,name=cuEventQuery,error=719,sticky=1", "launch failure"),
                          ("fail=3,name=cuMemcpyDtoHAsync_v2,error=999,sticky=1", "in a copy from it")):
        fake_cuda(words)
        failed = memext.run(*GRID, "-d", place, "--accel", "cuda", "--plan", "stream bt=3 slab=9", status=3)
        assert naming in failed["error"], (words, failed["error"])
        assert memext.run("-d", place, "--resume")["checksum"] == expected, words


def test_memory_that_cannot_be_pinned(memext, place, fake_cuda):
    """Copies are slower then and as right; the report says so."""
    expected = memext.run(*GRID, "-d", place)["checksum"]
    for words, pinned in (("late=1", True), ("fail=1,name=cuMemHostRegister_v2,error=801", False)):
        fake_cuda(words)
        result = memext.run(*GRID, "-d", place, "--accel", "cuda", "--plan", "stream bt=3 slab=9")
        assert (result["checksum"], result["accelerator"]["pinned"]) == (expected, pinned)


# ------------------------------------------------------------------ scripts that measure

# A machine that drifts: every run takes a second longer than the one before; host is a tenth slower, a bus doubles the time.
FAKE = """#!/usr/bin/python3
import json, pathlib, sys
words = " ".join(sys.argv[1:])
count = pathlib.Path(__file__).with_suffix(".count")
n = int(count.read_text()) if count.exists() else 0
count.write_text(str(n + 1))
if "few" in words or "-t 99" in words:
    sys.exit("fake: no such run")
seconds = (2 if "rate=" in words else 1.1 if "--accel" in words else 1) * (1 + n // 5)
report = {"seconds": seconds, "predicted_seconds": seconds / 1.05, "updates_per_second": 1e9 / seconds, "plan": {"bt": 2}, "accelerator": {"model": {"decides": "bus"}}}
pathlib.Path(sys.argv[sys.argv.index("--json") + 1]).write_text(json.dumps(report))
"""


def test_accel_host_compares_runs_of_a_round(tmp_path):
    fake = tmp_path / "fake"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    script = [str(ROOT / "experiments" / "accel_host.py"), "--memext", str(fake)]
    done = subprocess.run([*script, "--rounds", "4", "--json", str(tmp_path / "out.json")], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("median 1.05") == 2 and "2 levels a sweep, bus decides" in done.stdout
    runs = json.loads((tmp_path / "out.json").read_text())["runs"]
    expected = [d[0] / h[0] for d, h in zip(runs["DRAM"], runs["host"])]
    assert [f"{r:.2f}" for r in expected] == done.stdout.splitlines()[0].split(": ")[1].split(";")[0].split()
    assert subprocess.run([*script, "-t", "99"], capture_output=True, text=True, timeout=900).returncode == 1
    assert "--rounds" in subprocess.run([*script, "--rounds", "0"], capture_output=True, text=True, timeout=900).stderr


def test_device_script(build, tmp_path):
    """Its steps run without a device, by host, also of a pack that is all there is; the summary has each aim beside what was measured, and the bytes of the bus as predicted."""
    script = ROOT / "experiments" / "device.sh"
    nvrtc = build / "fake_cuda" / "libnvrtc.so.12"
    packed = subprocess.run([str(script), "pack"], env={**os.environ, "MEMEXT_BUILD": str(build), "DEVICE_OUT": str(tmp_path), "DEVICE_NVRTC": str(nvrtc) if nvrtc.exists() else ""},
                            capture_output=True, text=True, timeout=900)
    assert packed.returncode == 0 and "needs glibc 2." in packed.stdout, packed.stderr
    assert not [p.name for p in (tmp_path / "device" / "lib").iterdir() if p.name.startswith("libc.")]
    assert (tmp_path / "device" / "lib" / nvrtc.name).exists() == nvrtc.exists()
    out, brought = tmp_path / "results", tmp_path / "out"
    brought.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OUT": str(brought), "DEVICE_OUT": str(out), "DEVICE_DIR": str(tmp_path), "DEVICE_N": "62", "DEVICE_NZ": "94", "DEVICE_NT": "8",
           "DEVICE_CAP": "2MiB", "DEVICE_K_N": "30", "DEVICE_K_CAP": "1MiB"}
    for steps in ("inside,host", "ktable", "summary"):
        done = subprocess.run([str(tmp_path / "device" / "device.sh"), steps, "host"], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr
        assert "host " not in done.stdout or "% of the run inside (aim at least 85 %: " in done.stdout, done.stdout
    check_bus(json.loads((out / "host.json").read_text()))
    rows = [json.loads(line) for line in (out / "ktable.jsonl").read_text().splitlines()]
    assert len(rows) == 25 and all((r["result"]["updates_per_second"] or 0) > 0 for r in rows if r["k"] <= 8), rows
    assert all(r["result"]["status"] == "done" or "--device-memory" in r["result"]["error"] for r in rows)
    assert sorted(p.name for p in out.iterdir()) == sorted(p.name for p in brought.iterdir()) == ["host.json", "inside.json", "ktable.jsonl", "summary.txt"]
    assert "flash      not run" in done.stdout and "12 times the memory" in done.stdout and "bytes over the bus, as predicted" in done.stdout
    # A run that is told from aims: these figures are made up.
    told = {"accelerator": "cuda", "device": "a device", "put_bytes_per_s": 5e10, "get_bytes_per_s": 5e10, "both_bytes_per_s_each": 4e10, "stencil": "star7", "dtype": "f64"}
    (out / "bus.json").write_text(json.dumps({**told, "updates_per_second": 1.61e11}))
    (out / "fuse.jsonl").write_text(json.dumps({**told, "updates_per_second": 1.6e11}) + "\n" + json.dumps({**told, "updates_per_second": 2.99e11}) + "\n")
    flash = json.loads((out / "host.json").read_text())
    (out / "flash.json").write_text(json.dumps({**flash, "seconds": 1.16, "predicted_seconds": 1.0}))
    text = subprocess.run([str(script), "summary"], env={**env, "MEMEXT_BUILD": str(build)}, capture_output=True, text=True, timeout=900).stdout
    assert "161.00 Gupdates/s in its memory, star7 f64 (aim at least 160: met)" in text and "299.00 Gupdates/s with 2 levels a launch (aim at least 300: not met)" in text, text
    assert "1.16 times the predicted 1.00 s (aim 0.85 to 1.15: not met)" in text, text
    for words in ([], ["bus,nothing"]):
        assert subprocess.run([str(script), *words], env={**env, "MEMEXT_BUILD": str(build)}, capture_output=True, text=True, timeout=900).returncode == 2


DIRECT = [
    ("star7", ["--plan", "stream bt=3 slab=5"]), ("star7", ["--plan", "stream by=9 bt=2 slab=2"]), ("star7", ["--plan", "stream by=19 bt=2 slab=3", "--side", "z=periodic", "--side", "y=mirror"]),
    ("star7", ["--algorithm", "direct"]), ("wave", ["--in-place", "--plan", "stream bt=3 slab=5"]), ("star7", ["--ranks", 2, "--plan", "stream bt=2 slab=4"]),
    ("box27", ["--plan", "stream bt=4 slab=3", "--check", 3, "--dtype", "f32"]), ("star25", ["--plan", "stream bt=2 slab=9"]), ("wave", ["--plan", "stream bt=2 slab=9"]),
    ("wave", ["--plan", "stream by=9 bt=2 slab=3 faces=side-file"]), ("fdtd", ["--plan", "stream bt=2 slab=3"]), ("diffusion", ["--algorithm", "direct"]),
]


CUDA = ["cuda,pin=1", "cuda,pin=0", "cuda,pin=1 all but the first"]


# Every problem there by host and by one of three ways of cuda, in turn; by the others when there is time.
@pytest.mark.parametrize("name, how, accel", [pytest.param(*problem, accel, marks=[] if accel in ("host,pin=1", CUDA[at % 3]) else [pytest.mark.long])
                                              for at, problem in enumerate(DIRECT) for accel in ("host,pin=1", *CUDA)])  # fmt: skip
@pytest.mark.each_value
def test_buffers_in_dram(request, memext, tmp_path, name, how, accel):
    """Planes go from Buffers in DRAM to the device and back without a copy in between, where their memory can be pinned: bits and bytes are the same."""
    words = ["--backend", "dram", *(System(name, tmp_path).words(7) if name in CASES else [*GRID, "--stencil", name])]
    plain = [w for w in how if str(w).startswith(("z=", "y=")) or w in ("--side", "--dtype", "f32")]
    expected = memext.run(*words, *plain)["checksum"]
    if "cuda" in accel:
        use(request, memext, "cuda")
    if "first" in accel:
        request.getfixturevalue("fake_cuda")("fail=1,name=cuMemHostRegister_v2,error=801")
    result = memext.run(*words, *how, "--accel", accel.split()[0])
    assert result["checksum"] == expected
    assert result["host_to_device_bytes"] == result["predicted_host_to_device_bytes"] and result["device_to_host_bytes"] == result["predicted_device_to_host_bytes"]
    assert result["accelerator"]["direct"] == accel.endswith("pin=1")
    assert result["time"]["buf2blk_s"] > 0 and result["time"]["blk2buf_s"] > 0
    if "--ranks" in how:
        check_bytes(result, 2)
    else:
        assert (result["read_bytes"], result["write_bytes"]) == (result["predicted_read_bytes"], result["predicted_write_bytes"])


def test_pin_of_no_use(memext, place):
    done = memext("run", *GRID, "-d", place, "--accel", "host,pin=1")
    assert done.returncode == 0 and "pin=1 of --accel has no effect on backend" in done.stdout + done.stderr


def test_many_sweeps_pin(memext):
    """Many sweeps pay for what pinning takes."""
    for nt, direct in ((12, True), (11, False)):
        result = memext.run("-n", 20, 20, 20, "-t", nt, "--backend", "dram", "--accel", "host", "--plan", "stream bt=1 slab=5")
        assert result["accelerator"]["direct"] == direct


def test_kernels_with_many_stages_and_reductions(memext, tmp_path):
    """A program of more than 32 device kernels; helpers that stand before the include have the bits of the CPU."""
    n, cells = 12, "".join(f"MX_CELL_{k + 1}\n    SET(u, between(AT(u, -1, 0, 0), AT(u, 1, 0, 0)) + weight[{k % 3}] * AT(u, 0, 0, 1));\nMX_END\n" for k in range(16))
    reductions = "".join(f"MX_REDUCE(r{k})\n    RESULT(AT(u, 0, 0, 0) * {k + 1});\nMX_END\n" for k in range(n))
    (tmp_path / "many.c").write_text('static const double weight[3] = {0.01, 0.02, 0.03};\nstatic inline double between(double a, double b) { return a * 0.3 + b * 0.7; }\n'
                                     '#define MX_NAME "many"\n#define MX_RADIUS 1\n#define MX_STAGES 16\n#define MX_STATE(F) F(u, double)\n'
                                     f"#define MX_REDUCES(R) {' '.join(f'R(r{k}, MX_SUM)' for k in range(n))}\n#include <memext/cell.h>\n{cells}{reductions}")
    words = ["--kernel", tmp_path / "many.c", "-n", 20, 17, 18, "-t", 2, "--check", 1, "--init", "random", "--backend", "dram", "--dram", "64MiB"]
    wanted = memext.run(*words).report
    for accel in ("host", "opencl"):
        if works(memext, accel)["works"]:
            found = memext.run(*words, "--accel", accel).report
            assert (found["checksum"], found["norms"]) == (wanted["checksum"], wanted["norms"]), accel
