# SPDX-License-Identifier: BSD-3-Clause
"""Runs as a library: tests/examples/own_grid.c and short_run.c, compiled against what `cmake --install` delivers and nothing else."""
import importlib.util
import json
import os
import re
import subprocess

import numpy
import pytest
from conftest import ROOT, advance

SIZE, STEPS = (62, 46, 78), 30  # nx ny nz
PROBLEM = ["size={} {} {}".format(*SIZE), f"steps={STEPS}", "block=46 78 2", "algorithm=redundant", "commit-every=0"]
QUARTER = SIZE[0] * SIZE[1] * SIZE[2] * STEPS // 4  # updates: more than two sweeps of two steps, so that one is committed
SLOW = ["backend=fault:aio", "fault=delay_us=100000"]  # what is left after a quarter takes seconds: it cannot end before it is stopped


@pytest.fixture(scope="module")
def example(build, tmp_path_factory):
    """example(name, *words) -> the finished program, its environment that of the installed library."""
    prefix = tmp_path_factory.mktemp("prefix")
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, capture_output=True)
    library = next(prefix.rglob("libmemext.so")).parent
    for name in ("own_grid", "own_system", "short_run"):
        subprocess.run(["gcc", "-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{prefix}/include", ROOT / f"tests/examples/{name}.c",
                        f"-L{library}", "-lmemext", "-o", prefix / name], check=True)

    def run(name, *words):
        return subprocess.run([str(prefix / name), *map(str, words)], capture_output=True, text=True, timeout=600,
                              env={**os.environ, "LD_LIBRARY_PATH": str(library)})
    return run


def sum_of(grid):
    """What own_grid prints: cells added one after the other, x fastest, frame included."""
    return f"sum {numpy.cumsum(grid.ravel())[-1]:.17g}"


@pytest.fixture(scope="module")
def expected(memext, tmp_path_factory):
    """The same grid through files."""
    folder = tmp_path_factory.mktemp("expected")
    nx, ny, nz = (n + 2 for n in SIZE)
    z, y, x = numpy.ogrid[:nz, :ny, :nx]
    grid = 0.25 * ((31 * x + 17 * y + 7 * z) % 101)
    numpy.save(folder / "grid.npy", grid)
    memext.run("--input", folder / "grid.npy", "-t", STEPS, "-o", folder / "result.npy", "--backend", "dram")
    result = numpy.load(folder / "result.npy")
    assert numpy.allclose(result, advance(grid, "star7", STEPS), rtol=1e-12, atol=0)
    return sum_of(result)


def last_line(done):
    return done.stdout.strip().splitlines()[-1]


def test_source_and_sink_of_a_program(example, expected, quick_place):
    """The result that the sink got is that of the grid that the source gave, and verified against it."""
    done = example("own_grid", 0, *PROBLEM, f"device={quick_place}", "verify")
    assert done.returncode == 0 and last_line(done) == expected, done.stdout
    assert list(quick_place.iterdir()) == []


def test_a_program_without_frames(example, memext, quick_place, tmp_path):
    """The source gives cells without a frame, the sink gets none, and snapshots are an option as for the command."""
    nx, ny, nz = SIZE
    z, y, x = numpy.ogrid[:nz, :ny, :nx]
    numpy.save(tmp_path / "grid.npy", numpy.pad(0.25 * ((31 * x + 17 * y + 7 * z) % 101), 1, mode="edge"))
    memext.run("--input", tmp_path / "grid.npy", "-t", STEPS, "-o", tmp_path / "result.npy", "--backend", "dram", "--output-frame", "none")
    result = numpy.load(tmp_path / "result.npy")
    done = example("own_grid", 0, *PROBLEM, f"device={quick_place}", "frame=edge", "output-frame=none", f"snapshot=10:{tmp_path}/s:2", "verify")
    assert done.returncode == 0 and last_line(done) == sum_of(result), done.stdout
    assert sorted(path.name for path in (tmp_path / "s").glob("*.npy")) == ["u-000010.npy", "u-000020.npy", "u-000030.npy"]
    assert numpy.load(tmp_path / "s" / "u-000030.npy").tobytes() == result[::2, ::2, ::2].tobytes()


def test_stopped_and_resumed(example, expected, memext, quick_place):
    """Stopped in the middle: a step between the first and the last is committed, and there is no result; the command says whose
    source it was and cannot verify it; resumed, the result is the same."""
    done = example("own_grid", QUARTER, *PROBLEM, f"device={quick_place}", *SLOW)
    assert done.returncode == 1 and "updates " in done.stdout and last_line(done).startswith("the run was stopped"), done.stdout
    step = int(re.search(r"step (\d+) is committed", last_line(done)).group(1))
    assert 0 < step < STEPS and "sum" not in done.stdout
    assert "from the source ramp" in memext("info", quick_place).stdout
    refused = memext("run", "--resume", "-d", quick_place, "--verify")
    assert refused.returncode == 2 and "source ramp" in refused.stderr
    done = example("own_grid", 0, "resume", f"device={quick_place}", "verify")
    assert done.returncode == 0 and last_line(done) == expected, done.stdout


def test_a_kernels_fields_are_a_programs(example, quick_place):
    """Source and sink with a kernel: the fields by name, the read-only one too; stopped, resumed and verified; the sum is that of the
    numpy reference."""
    kernel = ROOT / "systems/diffusion.c"
    nx, ny, nz = (n + 2 for n in SIZE)
    z, y, x = numpy.ogrid[:nz, :ny, :nx]
    u = ((31 * x + 17 * y + 7 * z) % 101).astype("f8")
    k = numpy.where((x + y + z) % 2 == 0, 1, 0.25).astype("f4")
    spec = importlib.util.spec_from_file_location("diffusion", ROOT / "systems/diffusion.py")
    diffusion = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(diffusion)
    u = diffusion.run(STEPS, u, k)["u"]
    done = example("own_system", QUARTER, *PROBLEM, f"kernel={kernel}", f"device={quick_place}", *SLOW)
    assert done.returncode == 1 and last_line(done).startswith("the run was stopped"), done.stdout
    done = example("own_system", 0, "resume", f"device={quick_place}", "verify")
    assert done.returncode == 0 and last_line(done) == sum_of(u), done.stdout


def test_resumed_by_the_command(example, expected, memext, quick_place):
    """A store of a program is one like any other: the command goes on with it, and the result is the plain one."""
    done = example("own_grid", QUARTER, *PROBLEM, f"device={quick_place}", *SLOW)
    assert done.returncode == 1
    result = quick_place / "result.npy"
    report = memext.run("--resume", "-d", quick_place, "-o", result).report
    assert report["input"] == "ramp" and report["resumed_from"] > 0
    assert sum_of(numpy.load(result)) == expected


def test_the_report_is_the_commands(example, memext, quick_place):
    """The same keys, and the same result."""
    ours = json.loads(example("short_run", quick_place).stdout)
    theirs = memext.run("-n", 62, 62, 94, "-t", 10, "--dram", "64MiB", "--verify", "-d", quick_place).report
    assert ours.keys() == theirs.keys() and ours["status"] == "done" and ours["verified"] is True
    for key in ("problem", "plan", "checksum", "read_bytes", "write_bytes", "predicted_read_bytes"):
        assert ours[key] == theirs[key], key


@pytest.mark.parametrize("words, naming", [
    (["size=3 3", "steps=1"], ["two dimensions", "NX NY NZ"]), (["size=3", "steps=1"], ["2 or 3 numbers", "1 given"]),
    (["size=3 3 3 3", "steps=1"], ["3 numbers"]),
    (["size=3 3 3"], ["number of time steps is missing"]),
    (["steps=1"], ["no grid"]),
    (["size=3 3 3", "steps=1", "speed=9"], ["'speed'", "not known"]),
    (["size=3 3 3", "steps=1", "json=-"], ["'json'"]),
    (["size=3 3 3", "steps=1", "verify=yes"], ["'verify'", "no value"]),
    (["size=3 3 3", "steps=1", "dram"], ["'dram'", "needs a value"]),
    (["size=3 3 3", "steps=1", "init=gauss"], ["init", "exclude"]),
    (["size=3 3 3", "steps=1", "output=a.npy"], ["output", "exclude"]),
    (["size=3 3 3", "steps=1", "stencil=star8"], ["star8"]),
    (["size=3 3 3", "steps=1", "backend=dram", "dry-run"], ["dry"]),
    (["resume", "device=/nonexistent"], ["/nonexistent", "no memext store"]),
])
def test_refusals_are_sentences(example, words, naming):
    done = example("own_grid", 0, *words)
    assert done.returncode == 1
    for text in naming:
        assert text in last_line(done), done.stdout
