# SPDX-License-Identifier: BSD-3-Clause
"""Sources and probes of the command: the same bits by every plan and backend, the numbers of numpy, traces that survive kill -9 and --resume."""
import json
import os
import pathlib
import signal
import subprocess

import numpy
import pytest
from conftest import advance, random_grid, wait_until

NX, NY, NZ, NT = 30, 29, 31, 23
GRID = ["-n", NX, NY, NZ, "-t", NT]
PLANS = {
    "direct": ["--backend", "dram", "--algorithm", "direct", "--engine", "iblock"],
    "direct tiled": ["--backend", "mmap", "--algorithm", "direct", "--engine", "tiled"],
    "skewed": ["--backend", "mmap", "--algorithm", "direct-skewed", "--block", 13, 11, 5],
    "redundant": ["--backend", "uring", "--algorithm", "redundant", "--block", 13, 11, 3],
    "stream": ["--backend", "aio", "--algorithm", "stream", "--block", NY, NZ, 7, "--engine", "tiled"],
    "strips": ["--backend", "uring", "--algorithm", "stream", "--block", 10, NZ, 3, "--commit-every", 0],
    "side-file": ["--backend", "uring", "--plan", "stream by=10 bt=30 slab=4 faces=side-file"],
}
POINTS = 300


@pytest.fixture
def place(quick_place):
    return quick_place


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """A directory with wavelets, lists and a grid; the words that name them."""
    d, rng = tmp_path_factory.mktemp("points"), numpy.random.default_rng(3)
    numpy.save(d / "long.npy", rng.random(NT + 5) - 0.5)
    numpy.save(d / "short.npy", (rng.random(4) - 0.5).astype("f4"))
    cells = rng.integers(0, (NX, NY, NZ), (POINTS, 3))
    cells[1] = cells[0]  # two sources of one cell
    waves = rng.choice(["long", "short"], POINTS)
    (d / "sources").write_text("# a list\n\n" + "".join(f"u@{x},{y},{z}={d}/{w}.npy\n" for (x, y, z), w in zip(cells[1:], waves[1:])))
    seen = numpy.concatenate([cells[:7], rng.integers(0, (NX, NY, NZ), (POINTS, 3))])
    (d / "probes").write_text("".join(f"u {x} {y} {z}\n" for x, y, z in seen) + "# end\n")
    x, y, z = cells[0]
    words = ["--source", f"u@{x},{y},{z}={d}/{waves[0]}.npy", "--sources", d / "sources", "--probes", d / "probes"]
    return d, words, cells, waves, seen


@pytest.fixture(scope="module")
def whole(memext, points):
    d, words = points[:2]
    checksum = memext.run(*GRID, *PLANS["direct"], *words, "--probes-out", d / "whole.npy", "--verify")["checksum"]
    return checksum, (d / "whole.npy").read_bytes()


def test_the_numbers_are_those_of_numpy(memext, points, tmp_path):
    d, words, cells, waves, seen = points
    grid, out, nt = random_grid(NX, NY, NZ), tmp_path / "t.npy", 9
    numpy.save(tmp_path / "in.npy", grid)
    memext.run("--input", tmp_path / "in.npy", "-t", nt, *PLANS["direct tiled"], "-d", tmp_path, *words, "--probes-out", out, "-o", tmp_path / "out.npy",
               "--verify")
    wave, traces = {w: numpy.load(d / f"{w}.npy").astype("f8") for w in ("long", "short")}, numpy.load(out)
    assert traces.shape == (nt, len(seen)) and traces.dtype == "f8"
    for t in range(nt):
        grid = advance(grid, "star7", 1)
        for (x, y, z), w in zip(cells, waves):
            grid[z + 1, y + 1, x + 1] += wave[w][t] if t < len(wave[w]) else 0
        numpy.testing.assert_allclose(traces[t], [grid[z + 1, y + 1, x + 1] for x, y, z in seen], rtol=1e-12, atol=1e-13)
    numpy.testing.assert_allclose(numpy.load(tmp_path / "out.npy"), grid, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("plan", [p for p in PLANS if p != "direct"])
def test_every_plan_gives_the_same_bits(memext, place, points, whole, tmp_path, plan):
    done = memext.run(*GRID, *PLANS[plan], "-d", place, *points[1], "--probes-out", tmp_path / "t.npy", "--verify")
    assert (done["checksum"], (tmp_path / "t.npy").read_bytes()) == whole
    assert done["verified"] and done["sources"] == POINTS and done["probes"] == POINTS + 7
    if plan not in ("direct tiled", "skewed"):
        assert (done["read_bytes"], done["write_bytes"]) == (done["predicted_read_bytes"], done["predicted_write_bytes"])


@pytest.mark.parametrize("plan", ["redundant", "stream", "strips"])
def test_a_run_whose_device_died_goes_on(memext, place, points, whole, tmp_path, plan):
    """What was written behind the last commit does not count: it is overwritten before the resumed run, and made again."""
    d, words = points[:2]
    out, fail_after, step = tmp_path / "t.npy", 20, 0
    words = [*words, "--probes-out", out]
    plain = [w for w in PLANS[plan] if w not in ("--backend", "uring", "aio", "--commit-every", 0)]
    while step == 0:
        done = memext("run", *GRID, *plain, "-d", place, "--backend", "fault:uring", "--fault", f"fail_after={fail_after}", *words, "--commit-every", 0,
                      "--quiet", "--force", "--overwrite", "--no-fuse")
        assert done.returncode == 3, done.stderr
        looked = memext("info", place, "--json", "-")
        step = json.loads(looked.stdout)["store"]["step"] if looked.returncode == 0 and (place / "memext.store").exists() else 0
        fail_after += max(2, fail_after // 3)
    rows = numpy.load(out)
    rows[step:] = 7
    numpy.save(out, rows)
    memext.refused("run", "--resume", "-d", place, "--quiet", naming=["other sources", "--sources"])
    memext.refused("run", "--resume", "-d", place, "--quiet", *words[:4], naming=["other probes", "--probes-out"])
    memext.refused("run", "--resume", "-d", place, "--quiet", *words[:-1], tmp_path / "other.npy", naming=["other.npy", f"first {step} steps"])
    assert not (tmp_path / "other.npy").exists()
    done = memext.run("--resume", "-d", place, "--verify", *words)
    assert (done["checksum"], out.read_bytes()) == whole and done["resumed_from"] == step


def test_a_run_that_was_killed_goes_on(memext, place, points, tmp_path):
    d, words = points[:2]
    grid = ["-n", NX, NY, NZ, "-t", 1200]
    plain, out = tmp_path / "plain.npy", tmp_path / "t.npy"
    checksum = memext.run(*grid, *PLANS["direct"], *words, "--probes-out", plain)["checksum"]
    with subprocess.Popen([str(w) for w in (memext.program, "run", *grid, *PLANS["strips"], "-d", place, *words, "--probes-out", out, "--quiet")]) as run:
        def committed():
            looked = memext("info", place, "--json", "-") if (place / "memext.store").exists() else None
            return looked and looked.returncode == 0 and json.loads(looked.stdout).get("store", {}).get("step", 0) > 0
        assert wait_until(committed, "a commit", run)
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
    assert run.returncode == -signal.SIGKILL
    done = memext.run("--resume", "-d", place, *words, "--probes-out", out)
    assert 0 < done["resumed_from"] < 1200
    assert done["checksum"] == checksum and out.read_bytes() == plain.read_bytes()


def test_what_cannot_be_met_is_refused(memext, points, tmp_path):
    """Before anything is touched, in a sentence; a file of traces that is there stays as it is."""
    d, words = points[:2]
    out = tmp_path / "t.npy"
    run = ["run", *GRID, *PLANS["direct"], "--quiet"]
    memext.refused(*run, "--probes", d / "probes", naming=["--probes needs --probes-out"])
    memext.refused(*run, "--probes-out", out, naming=["--probes-out needs --probes"])
    memext.refused(*run, "--source", f"u@{NX},0,0={d}/long.npy", naming=["source u@30,0,0"])
    memext.refused(*run, "--source", f"w@0,0,0={d}/long.npy", naming=["w"])
    memext.refused(*run, "--source", "u@0,0,0", naming=["FIELD@X,Y,Z=wavelet.npy"])
    memext.refused(*run, "--source", f"u@0,0,0={d}/none.npy", naming=["none.npy"])
    (tmp_path / "empty").write_text("# nothing\n")
    memext.refused(*run, "--probes", tmp_path / "empty", "--probes-out", out, naming=["names no probe"])
    memext.refused(*run, "--sources", tmp_path / "empty", naming=["names no source", "FIELD@X,Y,Z"])
    memext.refused(*run, "--probes", d / "probes", "--probes-out", d / "probes", "--overwrite", naming=["--probes"])
    assert not out.exists()
    out.write_text("mine")
    memext.refused(*run, "--probes", d / "probes", "--probes-out", out, naming=["--overwrite"])
    assert out.read_text() == "mine"
    memext.run(*GRID, *PLANS["direct"], "--probes", d / "probes", "--probes-out", out, "--overwrite")
    assert numpy.load(out).shape == (NT, POINTS + 7)


def test_points_of_a_kernel(memext, place, tmp_path):
    """A staggered system: fields of both arrays by name."""
    system = pathlib.Path(__file__).resolve().parents[2] / "systems" / "fdtd.c"
    numpy.save(tmp_path / "w.npy", numpy.sin(numpy.arange(12.0)))
    (tmp_path / "p").write_text("ez 8 8 8\nhx 8 7 8\n")
    shown = memext("kernel", "show", system)
    assert shown.returncode == 0 and "ez" in shown.stdout and "hx" in shown.stdout, shown.stdout
    fields = [w for f in ("ex", "ey", "ez", "hx", "hy", "hz") for w in ("--init", f"{f}=zero")]
    numpy.save(tmp_path / "eps.npy", numpy.ones((22, 22, 22), "f4"))
    words = ["--kernel", system, *fields, "--field", f"eps={tmp_path}/eps.npy", "-n", 20, 20, 20, "-t", 11, "--source", f"ez@8,8,8={tmp_path}/w.npy",
             "--probes", tmp_path / "p", "--verify"]
    plans = [["--backend", "dram", "--algorithm", "direct", "--engine", "iblock"],
             ["--backend", "uring", "--algorithm", "stream", "--block", 7, 20, 4, "-d", place],
             ["--backend", "uring", "--algorithm", "redundant", "--block", 7, 9, 2, "-d", place]]
    got = []
    for i, plan in enumerate(plans):
        done = memext.run(*words, *plan, "--probes-out", tmp_path / f"{i}.npy")
        got.append((done["checksum"], (tmp_path / f"{i}.npy").read_bytes()))
    assert got[0] == got[1] == got[2]
    traces = numpy.load(tmp_path / "0.npy")
    assert traces.shape == (11, 2) and traces[1, 0] != 0 and abs(traces[:, 1]).max() > 0


SIDES = {
    "x": (["x=mirror,fixed"], {"edge": ((0, 0), (0, 0), (1, 0))}, []),
    "xy": (["x=periodic", "y=fixed,mirror"], {"wrap": ((0, 0), (0, 0), (1, 1)), "edge": ((0, 0), (0, 1), (0, 0))}, []),
    "xyz": (["x=mirror", "y=mirror", "z=mirror,fixed"], {"edge": ((1, 0), (1, 1), (1, 1))}, []),
    "z": (["y=periodic", "z=mirror"], {"wrap": ((0, 0), (1, 1), (0, 0)), "edge": ((1, 1), (0, 0), (0, 0))}, ["direct tiled", "skewed"]),
    "round": (["x=periodic", "y=periodic", "z=periodic"], {"wrap": ((1, 1), (1, 1), (1, 1))}, ["direct tiled", "skewed"]),
}
SIDED_PLANS = {**PLANS, "side-file": ["--backend", "uring", "--plan", "stream by=13 bt=30 slab=4 faces=side-file"],
               "whole planes": ["--backend", "uring", "--algorithm", "stream", "--block", NY, NZ, 4, "--engine", "iblock"],
               "tuned": ["--backend", "uring"]}


def sided(grid, pads):
    """The frame again, x before y before z: one radius, so that pad of the interior does it, where a frame is not fixed."""
    for axis in (2, 1, 0):
        for mode, widths in pads.items():
            before, behind = widths[axis]
            grid = numpy.moveaxis(grid, axis, 0)
            if before:
                grid[0] = grid[1] if mode == "edge" else grid[-2]
            if behind:
                grid[-1] = grid[-2] if mode == "edge" else grid[1]
            grid = numpy.moveaxis(grid, 0, axis)
    return grid


@pytest.mark.parametrize("name", SIDES)
def test_sides(memext, place, points, tmp_path, name):
    """Grid, frame included, as numpy has it; every plan that can do it gives the same bits, verified, and moves the bytes that were predicted, ghost layers
    among them; others are refused with the way out."""
    sides, pads, cannot = SIDES[name]
    side = [w for s in sides for w in ("--side", s)]
    grid, nt = random_grid(NX, NY, NZ), 11
    numpy.save(tmp_path / "in.npy", grid)
    words = ["--input", tmp_path / "in.npy", "-t", nt, *side, *points[1], "--verify"]
    cells, waves = points[2:4]
    wave = {w: numpy.load(points[0] / f"{w}.npy").astype("f8") for w in ("long", "short")}
    grid = sided(grid.copy(), pads)
    for t in range(nt):
        grid = advance(grid, "star7", 1)
        for (x, y, z), w in zip(cells, waves):
            grid[z + 1, y + 1, x + 1] += wave[w][t] if t < len(wave[w]) else 0
        grid = sided(grid, pads)
    got = set()
    for plan, asked in SIDED_PLANS.items():
        run = [*words, *asked, *([] if "dram" in asked else ["-d", place]), "--probes-out", tmp_path / f"{plan}.npy", "-o", tmp_path / f"{plan}-grid.npy"]
        if plan in cannot:
            memext.refused("run", *run, "--quiet", naming=["=periodic", "stream", "redundant"])
            continue
        done = memext.run(*run)
        found = numpy.load(tmp_path / f"{plan}-grid.npy")
        numpy.testing.assert_allclose(found, grid, rtol=1e-11, atol=1e-12)
        got.add((done["checksum"], found.tobytes(), (tmp_path / f"{plan}.npy").read_bytes()))
        assert done["verified"]
        if {"aio", "uring"} & set(asked):
            assert (done["read_bytes"], done["write_bytes"]) == (done["predicted_read_bytes"], done["predicted_write_bytes"]), plan
    assert len(got) == 1


WAVE = """#define MX_NAME "wave"
#define MX_FORM MX_LEAPFROG
#define MX_RADIUS 2
#define MX_STATE(F) F(p, double)
#define MX_FIXED(F) F(k, float)
#include <memext/cell.h>
MX_CELL
    double sum = AT(p, 2, 0, 0) + AT(p, -1, 0, 0);
    sum = sum + AT(p, 0, 2, -1);
    sum = sum - AT(p, 0, -2, 0);
    sum = sum + AT(p, 0, 0, 2);
    sum = sum - AT(p, 0, 1, -2);
    SET(p, 0.3 * AT(p, 0, 0, 0) - 0.25 * OLD(p) + 0.125 * AT(k, 0, 0, 0) * sum + 0.001 * (X + 2 * Y + 3 * Z + T));
MX_END
"""


def wave_by_numpy(p, k, sides, steps):
    """A loop over steps: the cell, then frames of x, y and z. Returns the last two states."""
    h, old = 2, p

    def frames(a):
        for axis, name in ((2, "x"), (1, "y"), (0, "z")):
            b, n = numpy.moveaxis(a, axis, 0), a.shape[axis] - 2 * h
            for i in range(h):
                if sides[name] == "mirror":
                    b[h - 1 - i], b[n + h + i] = b[h + i], b[n + h - 1 - i]
                if sides[name] == "periodic":
                    b[h - 1 - i], b[n + h + i] = b[n + h - 1 - i], b[h + i]
        return a

    p = frames(p.copy())
    old = p.copy()
    z, y, x = numpy.indices([n - 2 * h for n in p.shape])
    for t in range(steps):
        def at(a, dx, dy, dz):
            return a[h + dz:a.shape[0] - h + dz, h + dy:a.shape[1] - h + dy, h + dx:a.shape[2] - h + dx]
        total = at(p, 2, 0, 0) + at(p, -1, 0, 0)
        total = total + at(p, 0, 2, -1)
        total = total - at(p, 0, -2, 0)
        total = total + at(p, 0, 0, 2)
        total = total - at(p, 0, 1, -2)
        new = p.copy()
        at(new, 0, 0, 0)[...] = (0.3 * at(p, 0, 0, 0) - 0.25 * at(old, 0, 0, 0) + 0.125 * at(k, 0, 0, 0).astype("f8") * total
                                 + 0.001 * (x + 2 * y + 3 * z + t))
        p, old = frames(new), p
    return p, old


def test_sides_of_a_wave_of_two_steps(memext, place, tmp_path):
    """Radius 2, the old value, a read-only field: every bit of both arrays as numpy computes it, by blocks and strips with ghost layers and mirrors."""
    rng, n, steps = numpy.random.default_rng(7), (26, 23, 24), 9
    (tmp_path / "wave.c").write_text(WAVE)
    numpy.save(tmp_path / "p.npy", rng.random([c + 4 for c in n]))
    numpy.save(tmp_path / "k.npy", rng.random([c + 4 for c in n]).astype("f4"))
    plans = [["redundant", "--block", 9, 8, 2], ["stream", "--block", 23, 26, 3, "--engine", "tiled"], ["stream", "--block", 12, 26, 4]]
    for sides in ({"x": "mirror", "y": "periodic", "z": "periodic"}, {"x": "periodic", "y": "mirror", "z": "mirror"}):
        expected = wave_by_numpy(numpy.load(tmp_path / "p.npy"), numpy.load(tmp_path / "k.npy"), sides, steps)
        for plan in plans:
            done = memext.run("--kernel", tmp_path / "wave.c", "--input", f"p={tmp_path}/p.npy", "--field", f"k={tmp_path}/k.npy", "-t", steps, "-d", place,
                              *(w for d, s in sides.items() for w in ("--side", f"{d}={s}")), "--backend", "aio", "--algorithm", *plan, "--verify", "-o",
                              f"p={tmp_path}/new.npy", "-o", f"p.old={tmp_path}/old.npy", "--overwrite")
            assert done["verified"] and (done["read_bytes"], done["write_bytes"]) == (done["predicted_read_bytes"], done["predicted_write_bytes"])
            for name, array in zip(("new", "old"), expected):
                assert numpy.array_equal(numpy.load(tmp_path / f"{name}.npy"), array), (sides, plan, name)


def test_a_verification_in_passes_has_ghosts_too(memext, place):
    """More levels than one period of the grid holds: what a pass has written is read out of order, and compared with its hashes."""
    for threads in 1, 3:
        done = memext.run("-n", 20, 20, 8, "-t", 50, "--side", "z=periodic", "-d", place, "--integrity", "--verify", "--threads", threads)
        assert done["verified"] is True


def test_a_run_with_sides_is_resumed_with_them(memext, place, points, tmp_path):
    """By another plan: ghost layers of strips, then of blocks."""
    sides = ["--side", "x=periodic", "--side", "y=mirror", "--side", "z=periodic"]
    words = [*GRID, *sides, *points[1]]
    whole = memext.run(*words, *PLANS["direct"], "--probes-out", tmp_path / "whole.npy")["checksum"]
    step, fail_after = 0, 20
    while step == 0:
        memext("run", *words, "--algorithm", "stream", "--block", 10, NZ, 3, "-d", place, "--backend", "fault:aio", "--fault", f"fail_after={fail_after}",
               "--commit-every", 0, "--quiet", "--force", "--probes-out", tmp_path / "t.npy", "--overwrite")
        looked = memext("info", place, "--json", "-")
        step = json.loads(looked.stdout)["store"]["step"] if looked.returncode == 0 and (place / "memext.store").exists() else 0
        fail_after += max(2, fail_after // 3)
    more = [*points[1], "--probes-out", tmp_path / "t.npy"]
    memext.refused("run", "--resume", "-d", place, *more, "--side", "x=mirror", "--quiet", naming=["x=periodic y=mirror z=periodic", "--side"])
    done = memext.run("--resume", "-d", place, *more, "--verify", "--algorithm", "redundant", "--block", 13, 11, 2)
    assert done["checksum"] == whole and (tmp_path / "t.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes() and done["resumed_from"] == step


def test_what_sides_ask_of_a_plan(memext, place):
    """Said before anything is touched, with the number that would do."""
    run = ["run", *GRID, "--backend", "aio", "-d", place, "--quiet"]
    deep = ["--algorithm", "stream", "--block", NY, NZ]
    memext.refused("run", "-n", 20, 30, 6, "-t", 20, "--side", "z=periodic", *run[7:], "--algorithm", "stream", "--block", 30, 6, 9,
                   naming=["z=periodic: a sweep of 9 levels", "bt = 6 or less"])
    memext.refused(*run, "--side", "y=mirror", "--algorithm", "stream", "--block", 5, NZ, 6, naming=["y=mirror", "= 7 rows and has 5", "all 29"])
    memext.refused(*run, "--side", "z=periodic", "--algorithm", "skewed", naming=["z=periodic", "skewed", "stream or redundant"])
    memext.refused(*run, "--side", "x=mirror", "--column", 8, *deep, 3, naming=["--column"])
    memext.refused("run", "-n", 5, 1, 3, "-t", 3, "--side", "z=mirror", "--backend", "mmap", "-d", place, "--quiet", "--algorithm", "direct-skewed-opt", "--block", 1, 1, 1,
                   naming=["z=mirror", "= 2 planes and has 1"])
    assert not (place / "memext.store").exists()


def test_plans_of_systems_with_periodic_sides(memext, place, tmp_path):
    """Tune knows which fields are copied, and moves what the run moves; a step of two levels that reaches around the grid is refused with what can do it."""
    systems = pathlib.Path(__file__).resolve().parents[2] / "systems"
    numpy.save(tmp_path / "k.npy", numpy.ones((22, 13, 32), "f4"))
    words = ["--kernel", systems / "diffusion.c", "--field", f"k={tmp_path}/k.npy", "-n", 30, 11, 20, "-t", 6, "--side", "y=periodic", "-d", place, "--threads", 2]
    for backend in "mmap", "aio":
        tuned = json.loads(memext("tune", *words, "--backend", backend, "--algorithm", "stream", "--json", "-", "--quiet").stdout)
        done = memext.run(*words, "--init", "random", "--backend", backend, "--plan", tuned["plan_line"], "--no-fuse")
        assert done["read_bytes"] == done["predicted_read_bytes"] == tuned["predicted_read_bytes"]
    numpy.save(tmp_path / "eps.npy", numpy.ones((22, 3, 32), "f4"))
    words = ["--kernel", systems / "fdtd.c", "--init", "random", "--field", f"eps={tmp_path}/eps.npy", "-n", 30, 1, 20, "-t", 6, "--side", "y=periodic", "-d", place]
    memext.refused("run", *words, "--backend", "mmap", "--algorithm", "stream", "--block", 1, 20, 2, "--quiet",
                   naming=["a step needs 2 rows", "direct with --engine iblock"])
    memext.run(*words, "--backend", "mmap", "--algorithm", "direct", "--engine", "iblock")


def test_tune_knows_sides(memext):
    """The plan of `tune` is one that the run takes; ghost layers are counted, and mirror ends cost nothing."""
    def tuned(*words):
        done = memext("tune", "-n", 256, 256, 512, "-t", 64, "--dram", "64MiB", "--cores", 4, "--json", "-", *words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    plain, mirrored, around = tuned(), tuned("--side", "z=mirror"), tuned("--side", "z=periodic")
    assert mirrored["predicted_updates"] == plain["predicted_updates"]
    assert around["predicted_updates"] > plain["predicted_updates"] and around["plan"]["algorithm"] in ("stream", "redundant")
    refused = [c for c in around["candidates"] if not c["fits"]]
    assert {c["algorithm"] for c in refused} == {"skewed", "skewed-y", "skewed-min"} and all("z=periodic" in c["why"] for c in refused)
    words = ["run", "-n", 256, 256, 512, "-t", 64, "--dram", "64MiB", "--side", "z=periodic", "--dry-run", "--json", "-", "--backend", "uring",
             "--plan", around["plan_line"]]
    assert json.loads(memext(*words).stdout)["predicted_updates"] == around["predicted_updates"]


@pytest.mark.parametrize("words", [["--json"], ["--timeline"], ["--trace"], ["-o"], ["--probes", None, "--probes-out"]])
@pytest.mark.parametrize("listed", [False, True])
def test_a_wavelet_is_never_written(memext, points, tmp_path, words, listed):
    """Whatever would be written to the file of a wavelet is refused, also where a list names it; the file stays as it was."""
    wave = tmp_path / "wave.npy"
    numpy.save(wave, numpy.ones(5))
    before = wave.read_bytes()
    (tmp_path / "list").write_text(f"u@1,1,1={wave}\n")
    source = ["--sources", tmp_path / "list"] if listed else ["--source", f"u@1,1,1={wave}"]
    words = [points[0] / "probes" if w is None else w for w in words]
    memext.refused("run", *GRID, *PLANS["direct"], *source, *words, wave, "--overwrite", "--quiet", naming=["wave.npy", "never written"])
    assert wave.read_bytes() == before
    if words == ["--json"]:  # and of a request that is refused for something else
        (tmp_path / "list").write_text(f"u@999,1,1={wave}\n")
        source = source if listed else ["--source", f"u@999,1,1={wave}"]
        memext.refused("run", *GRID, *PLANS["direct"], *source, "--json", wave, "--quiet", naming=["wave.npy"] if not listed else ["999"])
        assert wave.read_bytes() == before


def test_a_file_that_is_not_of_the_run_stays(memext, place, points, tmp_path):
    """Resumed from step 0 a run makes its file of traces anew; another file of that name is refused and stays."""
    d = points[0]
    probes = ["--probes", d / "probes"]
    fail_after, step = 2, None
    while step != 0:  # the commit of the initial state, and then the device dies
        done = memext("run", *GRID, "--algorithm", "stream", "--block", NY, NZ, NT, "-d", place, "--backend", "fault:uring", "--fault",
                      f"fail_after={fail_after}", *probes, "--probes-out", tmp_path / "t.npy", "--quiet", "--force", "--overwrite")
        assert done.returncode == 3, done.stderr
        looked = memext("info", place, "--json", "-") if (place / "memext.store").exists() else None
        step = json.loads(looked.stdout)["store"]["step"] if looked and looked.returncode == 0 else None
        fail_after += 1
    mine = tmp_path / "mine.npy"
    for shape in ((NT, 3), (NT + 1, POINTS + 7), (10, 10)):
        numpy.save(mine, numpy.zeros(shape))
        before = mine.read_bytes()
        memext.refused("run", "--resume", "-d", place, *probes, "--probes-out", mine, "--quiet", naming=["mine.npy", "not the file of traces of this run"])
        assert mine.read_bytes() == before
    memext.run("--resume", "-d", place, *probes, "--probes-out", tmp_path / "t.npy")
