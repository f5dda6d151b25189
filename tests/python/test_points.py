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
                      "--quiet", "--force", "--overwrite")
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
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    numpy.save(tmp_path / "w.npy", numpy.sin(numpy.arange(12.0)))
    (tmp_path / "p").write_text("ez 8 8 8\nhx 8 7 8\n")
    shown = memext("kernel", "show", system, env=environment)
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
        done = memext.run(*words, *plan, "--probes-out", tmp_path / f"{i}.npy", env=environment)
        got.append((done["checksum"], (tmp_path / f"{i}.npy").read_bytes()))
    assert got[0] == got[1] == got[2]
    traces = numpy.load(tmp_path / "0.npy")
    assert traces.shape == (11, 2) and traces[1, 0] != 0 and abs(traces[:, 1]).max() > 0


SIDES = {
    "x": (["x=mirror,fixed"], {"edge": ((0, 0), (0, 0), (1, 0))}),
    "xy": (["x=periodic", "y=fixed,mirror"], {"wrap": ((0, 0), (0, 0), (1, 1)), "edge": ((0, 0), (0, 1), (0, 0))}),
    "xyz": (["x=mirror", "y=mirror", "z=mirror,fixed"], {"edge": ((1, 0), (1, 1), (1, 1))}),
    "round": (["x=periodic", "y=periodic", "z=periodic"], {"wrap": ((1, 1), (1, 1), (1, 1))}),
}


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
    """Grid, frame included, as numpy has it; every plan that can do it gives the same bits, verified where that can be done; others are refused."""
    sides, pads = SIDES[name]
    side = [w for s in sides for w in ("--side", s)]
    grid, nt = random_grid(NX, NY, NZ), 11
    numpy.save(tmp_path / "in.npy", grid)
    words = ["--input", tmp_path / "in.npy", "-t", nt, *side, *points[1], "-d", place]
    cells, waves = points[2:4]
    wave = {w: numpy.load(points[0] / f"{w}.npy").astype("f8") for w in ("long", "short")}
    grid = sided(grid.copy(), pads)
    for t in range(nt):
        grid = advance(grid, "star7", 1)
        for (x, y, z), w in zip(cells, waves):
            grid[z + 1, y + 1, x + 1] += wave[w][t] if t < len(wave[w]) else 0
        grid = sided(grid, pads)
    can = {"x": list(PLANS), "xy": ["stream", "direct", "direct tiled"], "xyz": ["direct", "direct tiled"], "round": ["direct"]}[name]
    got = set()
    for plan in PLANS:
        out = ["--probes-out", tmp_path / f"{plan}.npy"]
        run = [*words, *(["--verify"] if name in ("x", "xy") else []), *out, "-o", tmp_path / f"{plan}-grid.npy"]
        if plan == "direct":
            run = [w for i, w in enumerate(run) if w != "-d" and run[i - 1] != "-d"]
        if plan not in can:
            memext.refused("run", *run, *PLANS[plan], "--quiet", naming=["side", "direct"])
            continue
        checksum = memext.run(*run, *PLANS[plan])["checksum"]
        found = numpy.load(tmp_path / f"{plan}-grid.npy")
        numpy.testing.assert_allclose(found, grid, rtol=1e-11, atol=1e-12)
        got.add((checksum, found.tobytes(), (tmp_path / f"{plan}.npy").read_bytes()))
    assert len(got) == 1


def test_a_run_with_sides_is_resumed_with_them(memext, place, points, tmp_path):
    words = [*GRID, "--side", "x=periodic", "--side", "y=mirror", *points[1]]
    whole = memext.run(*words, *PLANS["direct"], "--probes-out", tmp_path / "whole.npy")["checksum"]
    step, fail_after = 0, 20
    while step == 0:
        memext("run", *words, "--algorithm", "stream", "--block", NY, NZ, 3, "-d", place, "--backend", "fault:aio", "--fault", f"fail_after={fail_after}",
               "--commit-every", 0, "--quiet", "--force", "--probes-out", tmp_path / "t.npy", "--overwrite")
        looked = memext("info", place, "--json", "-")
        step = json.loads(looked.stdout)["store"]["step"] if looked.returncode == 0 and (place / "memext.store").exists() else 0
        fail_after += max(2, fail_after // 3)
    more = [*points[1], "--probes-out", tmp_path / "t.npy"]
    memext.refused("run", "--resume", "-d", place, *more, "--side", "x=mirror", "--quiet", naming=["x=periodic y=mirror", "--side"])
    done = memext.run("--resume", "-d", place, *more, "--verify")
    assert done["checksum"] == whole and (tmp_path / "t.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes() and done["resumed_from"] == step


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
        memext.refused("run", "--resume", "-d", place, *probes, "--probes-out", mine, "--quiet", naming=["mine.npy", "no file of traces of this run"])
        assert mine.read_bytes() == before
    memext.run("--resume", "-d", place, *probes, "--probes-out", tmp_path / "t.npy")
