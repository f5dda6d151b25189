# SPDX-License-Identifier: BSD-3-Clause
"""--nonfinite: a state with cells that are NaN or infinite ends the run with status 6, is neither committed nor handed out, and the store ends with the
last finite commit; by every plan, of several fields and both arrays, on accelerators, by ranks, from the initial grid on. ignore counts them and goes on."""
import itertools
import json
import math

import numpy as np
import pytest
from conftest import random_grid, thinned
from package import cache, environment, mx  # noqa: F401
from run_systems import System
from test_accel import fake_cuda, use  # noqa: F401

NX, NY, NZ, NT = 24, 21, 22, 24
COEF = ["--coef", "4,1"]
HOT = (9, 8, 13)  # z, y, x: it grows first
PLANS = {  # those that store every row of a sweep once, and those that rewrite their Buffers in place
    "stream": ["--backend", "aio", "--algorithm", "stream", "--block", NY, NZ, 3],
    "strips": ["--backend", "uring", "--algorithm", "stream", "--block", 7, NZ, 3, "--commit-every", 0],
    "side-file": ["--backend", "mmap", "--plan", "stream by=7 bt=3 slab=2 faces=side-file"],
    "iblock": ["--backend", "uring", "--algorithm", "stream", "--engine", "iblock", "--block", NY, NZ, 3, "--commit-every", 100],
    "redundant": ["--backend", "uring", "--algorithm", "redundant", "--block", 10, 9, 3],
    "resident": ["--backend", "aio", "--algorithm", "resident", "--block", NY, NZ, 3],
    "stream dram": ["--backend", "dram", "--algorithm", "stream", "--block", NY, NZ, 3],
    "direct": ["--backend", "dram", "--algorithm", "direct", "--engine", "iblock"],
    "direct tiled": ["--backend", "mmap", "--algorithm", "direct", "--engine", "tiled"],
    "direct-skewed": ["--backend", "mmap", "--algorithm", "direct-skewed", "--block", 10, 9, 3],
    "direct-skewed-opt": ["--backend", "mmap", "--algorithm", "direct-skewed-opt", "--block", 10, 9, 3],
    "skewed": ["--backend", "uring", "--algorithm", "skewed", "--block", 10, 9, 3],
    "skewed-y": ["--backend", "uring", "--algorithm", "skewed-y", "--block", 10, 9, 3],
    "skewed-min": ["--backend", "mmap", "--algorithm", "skewed-min", "--block", 10, 9, 3],
}
COMMITS = ["stream", "strips", "side-file", "iblock", "redundant"]  # after sweeps of 3 steps: each is looked at


def look(plan, bad):
    """The step of the first bad state that is looked at."""
    return -(-bad // 3) * 3 if plan in COMMITS else NT


def grow(grid, steps):
    """Steps of star7 with COEF, for what is finite: the order of additions is of no account."""
    inside = (slice(1, -1),) * 3
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(steps):
            total = grid.dtype.type(4) * grid[inside]
            for axis in range(3):
                for shift in 1, -1:
                    total += np.roll(grid, shift, axis)[inside]
            grid = grid.copy()
            grid[inside] = total
    return grid


def odd(grid):
    return int(np.count_nonzero(~np.isfinite(grid[1:-1, 1:-1, 1:-1])))


def first(grid):
    z, y, x = np.argwhere(~np.isfinite(grid[1:-1, 1:-1, 1:-1]))[0]
    return f"x={x}, y={y}, z={z}"


class Growing:
    """A file of which one cell grows until it is infinite, and its neighbours after it. states[n]: after n steps; bad: the first step with such cells."""

    def __init__(self, folder, dtype):
        self.path = folder / f"{dtype}.npy"
        grid = random_grid(NX, NY, NZ, dtype)
        grid[tuple(i + 1 for i in HOT)] = 1e300 if dtype == "f8" else 1e30
        np.save(self.path, grid)
        self.states = [grid]
        while len(self.states) <= NT:
            self.states.append(grow(self.states[-1], 1))
        self.bad = next(n for n, g in enumerate(self.states) if odd(g))
        self.words = ["--input", self.path, "-t", NT, *COEF, "--dram", "64MiB"]

    def last_good(self, bt):
        return (self.bad - 1) // bt * bt


@pytest.fixture(scope="module", params=["f8", "f4"])
def growing(request, tmp_path_factory):
    made = Growing(tmp_path_factory.mktemp("growing"), request.param)
    assert 3 < made.bad < NT and odd(made.states[NT]) > odd(made.states[made.bad])
    return made


@pytest.fixture
def place(quick_place):
    (quick_place / "store").mkdir()
    return quick_place


def where(plan, place):
    return [*PLANS[plan], *([] if "dram" in PLANS[plan] else ["-d", place / "store"])]


def ends(memext, *words, **more):
    """A run that ends so: (its result, its sentence)"""
    result = memext.run(*words, status=6, **more)
    lines = result.err.strip().splitlines()
    assert result["status"] == "nonfinite" and result["checksum"] is None and result["nonfinite_cells"] > 0
    assert len(lines) == 1 and result["error"] in lines[0] and result["error"].count(". ") == 0, result.err
    return result, lines[0]


def has(place):
    return any((place / "store").iterdir())


@pytest.mark.parametrize("plan", PLANS)
def test_every_plan_ends_the_run(memext, place, growing, plan):
    """Status 6, the number of cells and the first of them. Where sweeps are committed: at the first that is not finite; the store has the one before.
    Else at the next look, and no store is left. Nothing of an output is left, and what was there stays."""
    (place / "old.npy").write_text("precious")
    result, said = ends(memext, *growing.words, *where(plan, place), "--output", place / "old.npy", "--overwrite")
    assert (place / "old.npy").read_text() == "precious" and sorted(p.name for p in place.iterdir()) == ["old.npy", "store"]
    good, step = growing.last_good(3) if plan in COMMITS else 0, look(plan, growing.bad)
    assert result["nonfinite_cells"] == odd(growing.states[step])
    assert f"steps {good + 1} to {step} " in said and f" {odd(growing.states[step])} cell" in said and first(growing.states[step]) in said and " u at " in said
    assert "--nonfinite ignore" in said and "--coef" in said
    if plan in COMMITS:
        assert result["steps_done"] == good and f"the last commit is step {good}" in said and "--resume" in said
        assert memext("export", place / "store", "-o", place / "good.npy").returncode == 0
        assert np.load(place / "good.npy").tobytes() == memext_state(memext, growing, place, good).tobytes()
    elif plan == "resident":
        assert "nothing is committed yet" in said and "--force" in said and has(place)
    else:
        assert ("rewrites its Buffers in place" in said or "dram keeps no commit" in said) and not has(place)


@pytest.mark.parametrize("plan", ["direct", "direct tiled", "direct-skewed", "skewed", "stream dram"])
def test_runs_without_commits_do_not_go_on_to_their_end(memext, place, growing, plan):
    """64 levels or more lie between two looks, so that they cost next to nothing."""
    result, said = ends(memext, *growing.words[:2], "-t", 1000, *COEF, "--dram", "64MiB", *where(plan, place))
    step = 64 if plan in ("direct", "direct tiled") else 66
    assert f"steps 1 to {step} " in said and result["nonfinite_cells"] == odd(grow(growing.states[NT], step - NT))


def memext_state(memext, growing, place, step):
    memext.run(*growing.words[:2], "-t", step, *COEF, "--backend", "dram", "--output", place / "state.npy")
    return np.load(place / "state.npy")


@pytest.mark.parametrize("plan", PLANS)
def test_ignored_cells_are_counted(memext, place, growing, plan):
    """The run is done, with the bits that it has by any plan, and the number of cells is that of the output."""
    done = memext.run(*growing.words, *where(plan, place), "--output", place / "out.npy", "--nonfinite", "ignore")
    assert done["status"] == "done" and done["nonfinite_cells"] == odd(np.load(place / "out.npy")) == odd(growing.states[NT]) > 0
    for key in "read_bytes", "write_bytes":
        assert "direct" in plan or done[key] == done[f"predicted_{key}"]
    finite = memext.run(*growing.words[:2], "-t", growing.bad - 1, *COEF, *where(plan, place), "--force" if "dram" not in PLANS[plan] else "--quiet")
    assert finite["status"] == "done" and finite["nonfinite_cells"] == 0


@pytest.mark.parametrize("plan", COMMITS)
def test_resumed_runs_end_the_same_way_or_go_past_it(memext, place, growing, plan):
    """The option goes on with the run, and may change."""
    words = [*growing.words, *where(plan, place), "--keep"]
    ends(memext, *words)
    again, said = ends(memext, "-d", place / "store", "--resume")
    good = growing.last_good(3)
    assert again["resumed_from"] == again["steps_done"] == good and f"steps {good + 1} to " in said
    done = memext.run("-d", place / "store", "--resume", "--nonfinite", "ignore", "-t", NT - 1)
    assert done["resumed_from"] == good and done["nonfinite_cells"] == odd(growing.states[NT - 1])
    assert memext.run("-d", place / "store", "--resume", "-t", NT)["nonfinite_cells"] == odd(growing.states[NT])
    assert memext.run("-d", place / "store", "--resume")["nonfinite_cells"] == odd(growing.states[NT])
    result, said = ends(memext, "-d", place / "store", "--resume", "--nonfinite", "end")
    assert f"step {NT} has {odd(growing.states[NT])} cells" in said
    result, said = ends(memext, "-d", place / "store", "--resume", "--nonfinite", "end", "-t", NT + 1)
    assert result["resumed_from"] == NT


@pytest.mark.parametrize("plan", ["stream", "redundant", "resident", "direct", "skewed", "accel"])
@pytest.mark.parametrize("sides", [["--side", "z=periodic"], ["--side", "y=mirror", "--side", "x=periodic"], ["--side", "z=mirror,fixed", "--side", "y=periodic"]],
                         ids=lambda sides: " ".join(sides[1::2]))
def test_copies_of_cells_do_not_count(memext, place, growing, plan, sides):
    """Frames that are stored, or are ghosts, stand for cells that count already."""
    if plan in ("resident", "skewed") and ("z=periodic" in sides or "y=periodic" in sides):
        return  # they are refused
    grid = growing.states[0].copy()
    grid[1, 1, 1], grid[-2, -2, -2], grid[-2, 2, 5] = np.inf, np.inf, np.nan
    np.save(place / "in.npy", grid)
    how = where(plan, place) if plan != "accel" else ["--accel", "host", "--algorithm", "stream", "--block", NY, NZ, 2, "-d", place / "store"]
    done = memext.run("--input", place / "in.npy", "-t", 2, *COEF, *sides, *how, "--dram", "64MiB", "--nonfinite", "ignore", "--output", place / "out.npy")
    assert done["nonfinite_cells"] == odd(np.load(place / "out.npy")) > 20


@pytest.mark.parametrize("n", [(50, 40, 90), (1700, 20, 40)], ids=["rows", "spans"])
def test_tiles_that_are_computed_in_place_count_their_cells_too(memext, place, n):
    """Large enough for tiles that are whole at every level, of whole rows, and of rows in spans."""
    nx, ny, nz = n
    grid = random_grid(nx, ny, nz)
    for seed in range(6):
        z, y, x = np.random.default_rng(seed).integers((1, 1, 1), (nz + 1, ny + 1, nx + 1))
        grid[z, y, x] = np.nan
    np.save(place / "in.npy", grid)
    words = ["--input", place / "in.npy", "--nonfinite", "ignore", "--engine", "tiled", "--output", place / "out.npy", "--overwrite"]
    for how in ["--backend", "dram", "--algorithm", "direct"], ["-d", place / "store", "--algorithm", "stream", "--block", ny, nz, 4]:
        assert memext.run(*words, *how, "-t", 4)["nonfinite_cells"] == odd(np.load(place / "out.npy")) > 500


def test_a_sweep_that_was_not_committed_before_is_when_the_next_is_bad(memext, place, growing):
    """With a third Buffer and commits far apart the newest finite sweep is made durable at the end."""
    result, said = ends(memext, *growing.words, *where("iblock", place))
    assert f"the last commit is step {growing.last_good(3)}" in said


@pytest.mark.parametrize("more", [[], ["--no-fuse"], ["--keep"], ["--integrity"], ["--check", 2], ["--until", "max-change=1e-30", "--check", 3], ["--verify"]],
                         ids=lambda more: " ".join(map(str, more)) or "plain")
def test_whatever_else_is_asked_for(memext, place, growing, more):
    result, said = ends(memext, *growing.words, *where("strips", place), *more, "--output", place / "out.npy")
    step = min(s for s in range(growing.bad, NT + 1) if f" to {s} " in said)
    assert result["nonfinite_cells"] == odd(growing.states[step]) and not (place / "out.npy").exists()
    assert all(math.isfinite(one["max_change"]) for one in result.report.get("norms", []))


@pytest.mark.parametrize("plan", ["direct tiled", "skewed", "direct"])
def test_a_criterion_ends_no_run_well_with_such_a_state(memext, place, growing, plan):
    """Its state is that of no sweep that was looked at: it is before it is committed."""
    result, said = ends(memext, *growing.words, *where(plan, place), "--check", growing.bad, "--until", "max-change=1e30,above")
    assert f"steps 1 to {growing.bad} " in said and result["nonfinite_cells"] == odd(growing.states[growing.bad]) and not has(place)


@pytest.mark.parametrize("plan", ["stream", "direct tiled", "skewed", "direct"])
def test_no_snapshot_of_such_a_state_appears(memext, place, growing, plan):
    """Whatever is handed out is looked at before."""
    every = 2
    result, said = ends(memext, *growing.words, *where(plan, place), "--snapshot", f"{every}:{place / 'snaps'}")
    bad = -(-growing.bad // every) * every
    assert sorted(p.name for p in (place / "snaps").glob("*.npy")) == [f"u-{s:06d}.npy" for s in range(every, bad, every)]
    assert f" to {bad} " in said and result["nonfinite_cells"] == odd(growing.states[bad])
    assert not list((place / "snaps").glob(".*"))


# ---------------------------------------------------------------- the initial grid


STILL = """
#define MX_NAME "still"
#define MX_RADIUS 1
#define MX_STATE(F) F(u, double)
#define MX_FIXED(F) F(k, float)
#include <memext/cell.h>
MX_CELL
    SET(u, 0.5 * AT(u, 0, 0, 0));
MX_END
"""


@pytest.mark.parametrize("how", [["-d"], ["-d", "--no-fuse"], ["-d", "--algorithm", "redundant", "--block", 7, 8, 2], ["-d", "--backend", "mmap"], ["dram"],
                                 ["-d", "--ranks", 2, "--threads", 1], ["-d", "--accel", "host"]], ids=lambda how: " ".join(map(str, how)))
def test_an_initial_grid_with_such_cells_is_refused(memext, place, how):
    """Where it is, before a step is committed; what stands in the frame is not looked at. With ignore it is taken as it is."""
    grid = random_grid(9, 8, 15)
    grid[12, 3, 4], grid[13, 2, 2] = np.nan, -np.inf
    np.save(place / "bad.npy", grid)
    words = ["--input", place / "bad.npy", "-t", 4, "--dram", "64MiB", *(["--backend", "dram"] if how == ["dram"] else ["-d", place / "store", *how[1:]])]
    result, said = ends(memext, *words)
    fused = "--no-fuse" not in how and how != ["dram"] and "mmap" not in how and "--accel" not in how
    assert "the initial grid has" in said and "--nonfinite ignore" in said and result["steps_done"] == 0
    assert ("u at x=3, y=2, z=11" in said or "u at x=1, y=1, z=12" in said) if fused else ("2 cells" in said and "the first: u at x=3, y=2, z=11" in said)
    assert fused or not list((place / "store").rglob("memext.store"))
    done = memext.run(*words, "--nonfinite", "ignore", *(["--force"] if fused else []))
    assert done["nonfinite_cells"] > 2


def test_frames_and_read_only_fields_are_not_looked_at(memext, place):
    u, k = random_grid(9, 8, 15), np.full((17, 10, 11), np.nan, "f4")
    u[0], u[:, :, -1], u[3, 0, 2] = np.nan, np.inf, -np.inf
    np.save(place / "u.npy", u), np.save(place / "k.npy", k)
    (place / "still.c").write_text(STILL)
    words = ["--kernel", place / "still.c", "--input", f"u={place}/u.npy", "--field", f"k={place}/k.npy", "-t", 6, "--dram", "32MiB"]
    for how in ["-d", place / "store"], ["-d", place / "store", "--no-fuse"], ["--backend", "dram"], ["-d", place / "store", "--ranks", 2, "--threads", 1]:
        assert memext.run(*words, *how)["nonfinite_cells"] == 0


# ---------------------------------------------------------------- systems


SYSTEM_PLANS = {"stream": ["--algorithm", "stream", "--block", 200, 200, 4], "strips": ["--plan", "stream by=9 bt=2 slab=2"],
                "redundant": ["--algorithm", "redundant", "--block", 7, 8, 2], "skewed": ["--algorithm", "skewed", "--block", 17, 16, 2],
                "direct": ["--backend", "mmap", "--algorithm", "direct", "--block", 6, 5, 2], "resident": ["--algorithm", "resident", "--block", 200, 200, 2],
                "accel": ["--accel", "host", "--algorithm", "stream", "--block", 200, 200, 2],
                "ranks": ["--ranks", 2, "--threads", 1, "--algorithm", "stream", "--block", 200, 200, 2]}


def poison(name, folder):
    """A system of which one cell of the last field is infinite."""
    system = System(name, folder)
    field = [f for f in system.state if not f.endswith(".old")][-1]
    system.state[field][tuple(i // 2 for i in system.state[field].shape)] = np.inf
    np.save(system.path(field), system.state[field])
    return system


def newest_odd(system, folder):
    h = system.h
    return sum(int(np.count_nonzero(~np.isfinite(np.load(folder / f"{f}.out.npy")[h:-h, h:-h, h:-h]))) for f in system.state if not f.endswith(".old"))


@pytest.mark.parametrize("name, plan", [(n, p) for n in ["wave", "fdtd", "gray_scott"] for p in SYSTEM_PLANS if n != "wave" or p not in ("skewed", "redundant")])
@pytest.mark.each_value
def test_cells_of_all_fields_count(memext, place, name, plan):
    """Fields of both arrays of a staggered system, all fields of others, of leapfrog the newest step."""
    system = poison(name, place)
    words = [*system.words(4), *SYSTEM_PLANS[plan], "-d", place / "store", "--dram", "64MiB", *system.outputs(place)]
    done = memext.run(*words, "--nonfinite", "ignore")
    assert done["nonfinite_cells"] == newest_odd(system, place) > 10
    for f in system.state:
        (place / f"{f}.out.npy").unlink()
    result, said = ends(memext, *words, "--force")
    assert "the initial grid has" in said and not list(place.glob("*.out.npy"))


@pytest.mark.parametrize("more", [[], ["--in-place"], ["--ranks", 2, "--threads", 1], ["--ranks", 2, "--threads", 1, "--in-place"], ["--accel", "host"]],
                         ids=lambda more: " ".join(map(str, more)) or "plain")
def test_a_leapfrog_that_blows_up(memext, place, more):
    """In place no state is left, and that is said."""
    system = System("wave", place)
    system.params["dt"] = 0.02
    words = [*system.words(120), "-d", place / "store", "--dram", "64MiB", "--algorithm", "stream", "--block", 200, 200, 4, *more]
    result, said = ends(memext, *words)
    assert " p at x=" in said and result["steps_done"] < 120
    if "--in-place" in more:
        assert "--in-place with stream rewrites its Buffers in place" in said and "--resume" not in said and not list(place.rglob("memext.store"))
    else:
        assert "the last commit is step" in said and ends(memext, "-d", place / "store", "--resume", *more)[0]["steps_done"] == result["steps_done"]


# ---------------------------------------------------------------- ranks, accelerators


@pytest.mark.parametrize("n, more", [(2, []), (3, ["--commit-every", 100]), (3, ["--backend", "dram"]), (2, ["--side", "z=periodic"])],
                         ids=lambda x: " ".join(map(str, x)) if isinstance(x, list) else x)
@pytest.mark.each_value
def test_ranks_end_together(memext, place, growing, n, more):
    """The cells are those of one rank; all say status 6 and one says why; their stores hold the same step, and one rank goes on from there."""
    words = [*growing.words, "--threads", 1, "--algorithm", "stream", "--block", NY, NZ, 3, *more, *([] if "dram" in more else ["-d", place / "store"])]
    result, said = ends(memext, *words, "--ranks", n)
    good, step = growing.last_good(3), look("stream dram" if "dram" in more else "stream", growing.bad)
    assert f" to {step} " in said and "rank 0: " in said
    if "--side" not in more:
        assert result["nonfinite_cells"] == odd(growing.states[step]) and first(growing.states[step]) in said
    ignored = memext.run(*words, "--ranks", n, "--nonfinite", "ignore", *([] if "dram" in more else ["--force"]))
    assert ignored["nonfinite_cells"] == odd(growing.states[NT]) or "--side" in more
    if "dram" in more:
        return
    result, said = ends(memext, *words, "--ranks", n, "--force")
    step = 0 if "nothing is committed yet" in said else int(said.split("the last commit is step ")[1].split(":")[0])
    assert step == good or ("--commit-every" in more and step <= good)
    assert ends(memext, "-d", place / "store", "--resume", "--ranks", n, "--threads", 1, "--dram", "64MiB")[0]["resumed_from"] == step
    done = memext.run("-d", place / "store", "--resume", "--nonfinite", "ignore")
    assert done["resumed_from"] == step and done["nonfinite_cells"] == ignored["nonfinite_cells"] and done["checksum"] == ignored["checksum"]


def test_ranks_give_no_such_snapshot_its_name(memext, place, growing):
    ends(memext, *growing.words, "-d", place / "store", "--ranks", 2, "--threads", 1, "--snapshot", f"3:{place / 'snaps'}")
    assert sorted(p.name for p in (place / "snaps").glob("u-*.npy")) == [f"u-{s:06d}.npy" for s in range(3, growing.last_good(3) + 1, 3)]


@pytest.mark.parametrize("plan, accel", thinned(itertools.product(["stream", "strips", "direct", "strips in DRAM"], ["host", "opencl"]), lambda plan, accel: accel == "host" or plan == "strips"))
def test_rows_that_come_back_from_an_accelerator(memext, place, request, growing, accel, plan):
    use(request, memext, accel)
    how = {"stream": ["--algorithm", "stream", "--block", NY, NZ, 3], "strips": ["--plan", "stream by=7 bt=3 slab=2"], "direct": ["--algorithm", "direct"]}
    where = ["--backend", "dram", "--dram", "64MiB"] if "DRAM" in plan else ["-d", place / "store"]
    words = [*growing.words, *where, "--accel", accel, *how[plan.split()[0]]]
    result, said = ends(memext, *words)
    step = NT if plan == "direct" else growing.last_good(3) + 3
    assert f" to {step} " in said and result["nonfinite_cells"] == odd(growing.states[step]) and first(growing.states[step]) in said
    words += ["--nonfinite", "ignore"] if "DRAM" in plan else ["--force", "--nonfinite", "ignore"]
    assert memext.run(*words)["nonfinite_cells"] == odd(growing.states[NT])


# ---------------------------------------------------------------- what is asked for


def test_the_option(memext, place):
    memext.refused("run", "-n", 9, 9, 9, "-t", 1, "--backend", "dram", "--nonfinite", "never", naming=["--nonfinite 'never'", "end or ignore"])
    assert "--nonfinite end|ignore" in memext("run", "--help", "all").stdout
    assert memext.run("-n", 9, 9, 9, "-t", 1, "--backend", "dram", "--nonfinite", "end")["nonfinite_cells"] == 0
    np.save(place / "bad.npy", np.where(random_grid(9, 9, 9) > 0.5, np.nan, 1))
    still = memext.run("--input", place / "bad.npy", "-t", 0, "--backend", "dram", "--nonfinite", "ignore")
    assert still["nonfinite_cells"] == odd(np.load(place / "bad.npy")) > 0
    report = json.loads(memext("tune", "-n", 9, 9, 9, "-t", 1, "--nonfinite", "ignore", "--quiet", "--json", "-").stdout)
    assert "plan" in report


def test_in_python(mx, place):  # noqa: F811
    """NotFinite, with the sentence, status and errno; the store has the last finite state; ignore as a keyword; the count in the report."""
    grid = random_grid(NX, NY, NZ)
    grid[5, 5, 5] = 1e300
    options = dict(u=grid, coef="4,1", algorithm="stream", block=(NY, NZ, 3), dram="64MiB")
    with pytest.raises(mx.NotFinite, match="cells? that (is|are) not finite") as caught:
        with mx.Run(device=place / "store", **options) as run:
            run.advance(NT)
    assert caught.value.status == 6 and caught.value.errorname == "EDOM" and isinstance(caught.value, (mx.MemextError, ArithmeticError))
    assert run.reports[-1]["status"] == "nonfinite" and run.reports[-1]["nonfinite_cells"] > 0
    store = mx.open(place / "store")
    assert store.info["step"] > 0 and np.isfinite(np.asarray(store["u"])).all()
    with pytest.raises(mx.NotFinite):
        with mx.Run(device=place / "store", **options) as run:
            run.advance(NT)
    with mx.Run(device=place / "store", nonfinite="ignore", **options) as run:
        run.advance(NT)
        assert run.report["resumed_from"] == store.info["step"] and run.report["nonfinite_cells"] == odd(np.asarray(run["u"]))
    grid[5, 5, 5] = np.nan
    with pytest.raises(mx.NotFinite, match="the initial grid has 1 cell that is not finite \\(u at x=4, y=4, z=4\\)"):
        mx.Run(backend="dram", **{**options, "u": grid, "algorithm": "direct", "block": None}).advance(2)
