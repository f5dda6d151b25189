# SPDX-License-Identifier: BSD-3-Clause
"""Norms, reductions of kernels and stopping by the command: the model's numbers to the bit by every plan, ends of runs, --resume."""
import json
import pathlib

import numpy
import pytest
from conftest import random_grid

NX, NY, NZ, NT, EVERY = 30, 29, 31, 23, 5
GRID = ["-n", NX, NY, NZ, "-t", NT]
PLANS = {
    "direct": ["--backend", "dram", "--algorithm", "direct", "--engine", "iblock"],
    "direct tiled": ["--backend", "mmap", "--algorithm", "direct", "--engine", "tiled", "--tile", 6, 4, "--slab", 12],
    "columns": ["--backend", "dram", "--algorithm", "direct", "--engine", "tiled", "--column", 7, "--threads", 3],
    "direct-skewed": ["--backend", "mmap", "--algorithm", "direct-skewed", "--block", 13, 11, 4],
    "skewed-min": ["--backend", "uring", "--algorithm", "skewed-min", "--block", 13, 11, 4],
    "redundant": ["--backend", "uring", "--algorithm", "redundant", "--block", 13, 11, 3],
    "stream": ["--backend", "aio", "--algorithm", "stream", "--block", NY, NZ, 7, "--engine", "tiled", "--threads", 2],
    "strips": ["--backend", "uring", "--algorithm", "stream", "--block", 10, NZ, 3, "--commit-every", 0],
    "side-file": ["--backend", "uring", "--plan", "stream by=10 bt=30 slab=4 faces=side-file"],
}
CHECK = ["--check", EVERY]


@pytest.fixture
def place(quick_place):
    return quick_place


def where(plan, place):
    return [] if "dram" in PLANS[plan] else ["-d", place]


def ordered_sum(values):
    """Of [z][y][x], in the only order there is: cells of a row in eight lanes, lanes, rows, planes."""
    total = 0.0
    for plane in values:
        of_plane = 0.0
        for row in plane:
            lanes = [0.0] * 8
            for x, v in enumerate(row):
                lanes[x % 8] += float(v)
            of_row = 0.0
            for lane in lanes:
                of_row += lane
            of_plane += of_row
        total += of_plane
    return total


def change(new, old):
    d = (new - old)[1:-1, 1:-1, 1:-1].astype("f8")
    return float(abs(d).max()), (ordered_sum(d * d) / d.size) ** 0.5


@pytest.fixture(scope="module")
def whole(memext):
    done = memext.run(*GRID, *PLANS["direct"], *CHECK)
    return done["checksum"], done["norms"]


def test_the_numbers_are_those_of_the_model(memext, whole, tmp_path):
    state = {}
    for t in (4, 5, 22, 23):
        memext.run("-n", NX, NY, NZ, "-t", t, *PLANS["direct"], "-o", tmp_path / f"{t}.npy")
        state[t] = numpy.load(tmp_path / f"{t}.npy")
    norms = whole[1]
    assert [n["step"] for n in norms] == [5, 10, 15, 20, 23]
    for n in norms[0], norms[-1]:
        assert (n["max_change"], n["rms_change"]) == change(state[n["step"]], state[n["step"] - 1])


@pytest.mark.parametrize("plan", [p for p in PLANS if p != "direct"])
def test_every_plan_gives_the_same_bits(memext, place, whole, plan):
    done = memext.run(*GRID, *PLANS[plan], *CHECK, *where(plan, place), "--verify")
    assert (done["checksum"], done["norms"]) == whole and done["verified"] and done["met"] is None and done["until"] == []
    if plan not in ("direct tiled", "columns", "direct-skewed"):
        assert (done["read_bytes"], done["write_bytes"]) == (done["predicted_read_bytes"], done["predicted_write_bytes"])


@pytest.mark.parametrize("plan", ["columns", "skewed-min", "redundant", "stream", "strips"])
def test_a_run_ends_where_a_criterion_is_met(memext, place, whole, tmp_path, plan):
    """State, traces, checksum and verification are those of a run of so many steps."""
    norms = whole[1]
    limit = norms[2]["max_change"]
    words = ["-n", NX, NY, NZ, *PLANS[plan], *where(plan, place)]
    (tmp_path / "p").write_text("u 3 4 5\nu 29 28 30\n")
    until = ["--until", "rms-change=0", "--until", f"max-change={limit!r}", "--check", EVERY]
    for name, steps, more in ("short", 15, []), ("long", NT, until):
        done = memext.run(*words, "-t", steps, *more, "--probes", tmp_path / "p", "--probes-out", tmp_path / f"{name}-p.npy", "-o", tmp_path / f"{name}.npy",
                          "--verify")
        if name == "short":
            checksum = done["checksum"]
    assert done["checksum"] == checksum and done["verified"] and done["steps_done"] == 15 and done["status"] == "done"
    assert done["met"]["step"] == 15 and done["met"]["value"] == limit and done["met"]["until"].startswith("max-change=") and done["norms"] == norms[:3]
    for kind in "", "-p":
        assert (tmp_path / f"short{kind}.npy").read_bytes() == (tmp_path / f"long{kind}.npy").read_bytes()


@pytest.mark.parametrize("plan", ["redundant", "strips", "skewed-min"])
def test_a_store_knows_what_has_ended_its_run(memext, place, whole, tmp_path, plan):
    """It is complete, and goes on where other criteria are asked for: the rest, its norms and its traces are those of a run that never stopped."""
    checksum, norms = whole
    (tmp_path / "p").write_text("u 3 4 5\n")
    probes = ["--probes", tmp_path / "p", "--probes-out"]
    until = ["--until", f"max-change={norms[1]['max_change']!r}"]
    done = memext.run(*GRID, *PLANS[plan], "-d", place, *CHECK, *until, "--keep", *probes, tmp_path / "t.npy")
    assert done["met"]["step"] == 10
    said = memext("info", place)
    store = json.loads(memext("info", place, "--json", "-").stdout)["store"]
    assert "step       10 of 23 (complete)" in said.stdout and "ended      by the criterion max-change=" in said.stdout and "go on" not in said.stdout
    assert store["complete"] and store["met"].startswith("max-change=") and store["step"] == 10
    for more in [], until, ["--check", 7]:
        again = memext.run("--resume", "-d", place, *more, *probes, tmp_path / "t.npy", "-o", tmp_path / "state.npy", "--overwrite", "--verify")
        assert (again["checksum"], again["updates"], again["met"]["step"]) == (done["checksum"], 0, 10) and again["norms"] == norms[:2]
    if plan == "skewed-min":
        return
    assert numpy.load(tmp_path / "t.npy").shape == (10, 1)
    last = memext.run("--resume", "-d", place, "--until", "none", *CHECK, *probes, tmp_path / "t.npy", "--verify")
    assert (last["checksum"], last["norms"], last["met"], last["resumed_from"]) == (checksum, norms, None, 10)
    memext.run(*GRID, *PLANS["direct"], *probes, tmp_path / "whole.npy")
    assert (tmp_path / "t.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_more_steps_go_on_to_the_next_check(memext, place, whole):
    until = ["--until", "max-change=1000"]
    first = memext.run(*GRID, *PLANS["redundant"], "-d", place, *CHECK, *until, "--keep")
    more = memext.run("--resume", "-d", place, "-t", 40)
    assert first["met"]["step"] == 5 and more["met"]["step"] == 10 and more["resumed_from"] == 5 and more["norms"] == whole[1][:2]


@pytest.mark.parametrize("plan", ["redundant", "stream"])
def test_a_run_whose_device_died_goes_on(memext, place, whole, plan):
    """By another plan, up to the same criterion; what was taken before is still there."""
    norms, fail_after, step = whole[1], 20, 0
    until = ["--until", f"rms-change={norms[3]['rms_change']!r}"]
    plain = [w for w in PLANS[plan] if w not in ("--backend", "uring", "aio")]
    while step == 0:
        done = memext("run", *GRID, *plain, "-d", place, "--backend", "fault:uring", "--fault", f"fail_after={fail_after}", *CHECK, *until,
                      "--commit-every", 0, "--quiet", "--force")
        assert done.returncode == 3, done.stderr
        looked = memext("info", place, "--json", "-")
        step = json.loads(looked.stdout)["store"]["step"] if looked.returncode == 0 and (place / "memext.store").exists() else 0
        fail_after += max(2, fail_after // 3)
    other = "stream by=9 bt=4 slab=3" if plan == "redundant" else f"stream by={NY} bt=4 slab=3"
    done = memext.run("--resume", "-d", place, "--plan", other, "--backend", "aio", "--verify")
    assert done["resumed_from"] == step and done["norms"] == norms[:4] and done["met"]["step"] == 20 and done["steps_done"] == 20
    assert done["until"] == [done["met"]["until"]]


KERNEL = """
#define MX_NAME "flow"
#define MX_RADIUS 1
#define MX_STATE(F) F(u, double) F(w, float)
#define MX_FIXED(F) F(k, float)
#define MX_PARAMS(P) P(dt, 0.1)
#define MX_REDUCES(R) R(flux, MX_SUM) R(top, MX_MAX) R(low, MX_MIN)
#include <memext/cell.h>
MX_CELL
    double sum = AT(u, -1, 0, 0) + AT(u, 1, 0, 0) + AT(u, 0, -1, 0) + AT(u, 0, 1, 0) + AT(u, 0, 0, -1) + AT(u, 0, 0, 1);
    SET(u, AT(u, 0, 0, 0) + PARAM(dt) * AT(k, 0, 0, 0) * (sum - 6 * AT(u, 0, 0, 0)));
    SET(w, 0.5f * AT(w, 0, 0, 0));
MX_END
MX_REDUCE(flux)
    double gradient = AT(u, 0, 0, 1) - AT(u, 0, 0, 0);
    RESULT(AT(k, 0, 0, 0) * gradient + PARAM(dt) * T);
MX_END
MX_REDUCE(top)
    RESULT(AT(u, 0, 0, 0) + AT(w, 0, 0, 0) + 1e-3 * (X + 2 * Y + 3 * Z));
MX_END
MX_REDUCE(low)
    if (X % 2) RESULT(AT(u, 0, 0, 0) - AT(w, 0, 0, 0));
MX_END
"""


@pytest.fixture
def flow(tmp_path):
    """Words of a run of a kernel with two reductions."""
    (tmp_path / "flow.c").write_text(KERNEL)
    rng = numpy.random.default_rng(1)
    shape = (NZ + 2, NY + 2, NX + 2)
    u, w, k = random_grid(NX, NY, NZ), rng.random(shape).astype("f4"), (1 + rng.random(shape)).astype("f4")
    for name, values in ("u", u), ("w", w), ("k", k):
        numpy.save(tmp_path / f"{name}.npy", values)
    words = ["--kernel", tmp_path / "flow.c", "--input", f"u={tmp_path}/u.npy", "--input", f"w={tmp_path}/w.npy", "--field", f"k={tmp_path}/k.npy"]
    return words


def test_reductions_of_a_kernel(memext, place, flow, tmp_path):
    """Sums in the fixed order and maxima of the state that the step is computed from, of all cells and of planes; what a run ends by."""
    words = flow
    memext.run(*words, "-t", 3, *PLANS["direct"], *[x for f in "uw" for x in ("-o", f"{f}={tmp_path}/{f}3.npy")])
    u, w, k = (numpy.load(tmp_path / f"{f}.npy") for f in ("u3", "w3", "k"))
    inner = (slice(1, -1),) * 3
    z, y, x = numpy.meshgrid(*(numpy.arange(n) for n in (NZ, NY, NX)), indexing="ij")
    flux = k[inner] * (u[2:, 1:-1, 1:-1] - u[inner]) + 0.1 * 3
    top, low = u[inner] + w[inner] + 1e-3 * (x + 2 * y + 3 * z), u[inner] - w[inner]
    planes = [ordered_sum(p[None]) for p in flux]
    mean = 0.0
    for p in planes:
        mean += p
    expected = {"flux": {"sum": ordered_sum(flux), "spread": (max(planes) - min(planes)) / abs(mean / NZ)}, "top": {"max": float(top.max())}}
    first = None
    for plan in ("direct", "columns", "direct tiled", "redundant", "strips", "skewed-min"):
        done = memext.run(*words, "-t", 14, "--check", 4, *PLANS[plan], *where(plan, place))
        first = first or done["norms"]
        assert done["norms"] == first
    got = first[0]["reductions"]
    assert got["flux"] == expected["flux"] and got["top"]["max"] == expected["top"]["max"] and got["low"]["min"] == float(low[:, :, 1::2].min()) and [n["step"] for n in first] == [4, 8, 12, 14]
    limit = first[2]["reductions"]["flux"]["spread"]
    steps = [n["step"] for n in first if n["reductions"]["flux"]["spread"] <= limit]
    done = memext.run(*words, "-t", 14, "--check", 4, "--until", f"flux-spread={limit!r}", *PLANS["strips"], "-d", place)
    assert done["met"]["step"] == steps[0] and done["norms"] == [n for n in first if n["step"] <= steps[0]]
    memext.refused("run", *words, "-t", 3, "--until", "flow=1", *PLANS["direct"], naming=["flow=1", "flux"])


def test_criteria_above_and_below_of_sums_and_minima(memext, place, flow):
    """Each ends the run at the first check whose numbers, taken by a run without criteria, meet it; the store tells which, and goes on with it."""
    words = flow
    every = memext.run(*words, "-t", 14, "--check", 2, *PLANS["strips"], "-d", place)["norms"]
    sums, lows = [n["reductions"]["flux"]["sum"] for n in every], [n["reductions"]["low"]["min"] for n in every]
    for name, values in ("flux", sums), ("low", lows), ("max-change", [n["max_change"] for n in every]):
        for above in False, True:
            limit = sorted(values)[len(values) // 2]
            met = [n["step"] for n, v in zip(every, values) if (v >= limit if above else v <= limit)]
            text = f"{name}={limit:.17g}" + (",above" if above else "")
            done = memext.run(*words, "-t", 14, "--check", 2, "--until", text, *PLANS["strips"], "-d", place, "--keep", "--force")
            assert done["met"]["step"] == met[0] and done["met"]["value"] == values[met[0] // 2 - 1] and done["met"]["until"].endswith(",above") == above
            again = memext.run("--resume", "-d", place)
            assert again["met"] == done["met"] and again["updates"] == 0
            for left in place.iterdir():
                left.unlink()


DYING = """
#define MX_NAME "dying"
#define MX_RADIUS 1
#define MX_STATE(F) F(u, double)
#define MX_REDUCES(R) R(flux, MX_SUM)
#include <memext/cell.h>
MX_CELL
    SET(u, 0.01 * AT(u, 0, 0, 0));
MX_END
MX_REDUCE(flux)
    RESULT(Z == 0 || Z == NZ - 1 ? 0 : (1 + Z % 2) * AT(u, 0, 0, 0));
MX_END
"""


def test_a_spread_with_a_floor_can_be_met(memext, place, tmp_path):
    """A flux that dies away keeps its spread. The planes at the ends, which are exactly 0, are left out. With a floor the criterion is met where
    the range falls to limit times floor; without one the run says why it goes on, once."""
    (tmp_path / "k.c").write_text(DYING)
    numpy.save(tmp_path / "u.npy", numpy.ones((12, 8, 8)))
    words = ["--kernel", tmp_path / "k.c", "--input", tmp_path / "u.npy", "-t", 20, "--check", 1, "--dram", "64MiB", "-d", place, "--force"]
    done = memext.run(*words, "--until", "flux-spread=0.01")
    spreads = [n["reductions"]["flux"]["spread"] for n in done["norms"]]
    assert done["met"] is None and all(abs(s - 2 / 3) < 1e-12 for s in spreads)
    said = memext("run", *words, "--until", "flux-spread=0.01", "--quiet")
    assert said.returncode == 0 and said.stderr.count("give a floor") == 1, said.stderr
    done = memext.run(*words, "--until", "flux-spread=0.01,floor=1e-6")
    # the mean of the state after s steps is 54 * 0.01 ** s: at the check of step s + 1 its range, 36 * 0.01 ** s, is at most 1e-8
    assert done["met"]["step"] == 6 and done["met"]["value"] == pytest.approx(36e-10 / 1e-6) and done["until"] == ["flux-spread=0.01,floor=1e-06"]
    assert "give a floor" not in memext("run", *words, "--until", "flux-spread=0.01,floor=1e-6", "--quiet").stderr
    memext.refused("run", *words, "--until", "max-change=1,floor=1", naming=["can have a floor"])


def test_reductions_of_a_staggered_kernel(memext, place, tmp_path):
    """They read the partner; the change is that of the state, of which a row is gone when it is replaced."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "systems" / "fdtd.c").read_text()
    text = text.replace("#include", "#define MX_REDUCES(R) R(energy, MX_SUM)\n#include")
    (tmp_path / "k.c").write_text(text + "MX_REDUCE(energy)\n RESULT((double)AT(hx, 0, 0, 0) * AT(hx, 0, 0, 0) + AT(hz, -1, 0, 0));\nMX_END\n")
    numpy.save(tmp_path / "eps.npy", numpy.ones((22, 22, 22), "f4"))
    numpy.save(tmp_path / "w.npy", numpy.sin(numpy.arange(12.0)))
    fields = [w for f in ("ex", "ey", "ez", "hx", "hy", "hz") for w in ("--init", f"{f}=random")]
    words = ["--kernel", tmp_path / "k.c", *fields, "--field", f"eps={tmp_path}/eps.npy", "-n", 20, 20, 20, "-t", 11, "--check", 2, "--verify",
             "--source", f"ez@8,8,8={tmp_path}/w.npy"]
    plans = [["--backend", "dram", "--algorithm", "direct", "--engine", "iblock"],
             ["--backend", "dram", "--algorithm", "direct", "--engine", "tiled", "--column", 6, "--threads", 2],
             ["--backend", "uring", "--algorithm", "stream", "--block", 7, 20, 4, "--engine", "tiled", "-d", place],
             ["--backend", "uring", "--algorithm", "redundant", "--block", 7, 9, 2, "-d", place],
             ["--backend", "aio", "--algorithm", "skewed-y", "--block", 7, 9, 2, "-d", place]]
    got = [memext.run(*words, *plan) for plan in plans]
    assert all(g["norms"] == got[0]["norms"] and g["checksum"] == got[0]["checksum"] for g in got)
    state = {}
    for t in (3, 4):
        short = [w if words[i - 1] != "-t" else t for i, w in enumerate(words)]
        out = [w for f in ("ex", "ey", "ez") for w in ("-o", f"{f}={tmp_path}/{f}.npy")]
        memext.run(*short, *plans[0], *out, "--overwrite")
        state[t] = [numpy.load(tmp_path / f"{f}.npy") for f in ("ex", "ey", "ez")]
    n, pairs = got[0]["norms"][1], list(zip(state[4], state[3]))
    squares = 0.0
    for new, old in pairs:
        d = (new - old)[1:-1, 1:-1, 1:-1].astype("f8")
        squares += ordered_sum(d * d)
    assert n["step"] == 4 and n["max_change"] == max(change(*p)[0] for p in pairs) and n["rms_change"] == (squares / (3 * 20**3)) ** 0.5


BROKEN = {
    "farther away": ("AT(u, 0, 0, 1) - AT(u, 0, 0, 0);", "AT(u, 1 + (int)(X >= 0), 0, 0);"),
    "how x is cut": ("RESULT(AT(u, 0, 0, 0) +", "RESULT(AT(u, 0, 0, 0) + (mx_x == mx_x0) +"),
    "computes a top that is NaN": ("RESULT(AT(u, 0, 0, 0) +", "RESULT(sqrt(-1 - AT(u, 0, 0, 0) * AT(u, 0, 0, 0)) +"),
    "no part MX_REDUCE(deep)": ("R(top, MX_MAX)", "R(top, MX_MAX) R(deep, MX_SUM)"),
    "must be MX_SUM, MX_MAX or MX_MIN": ("MX_MAX", "7"),
    "nothing": None,
}


@pytest.mark.parametrize("naming", BROKEN)
def test_kernel_check_tries_out_reductions(memext, tmp_path, naming):
    if BROKEN[naming] is None:
        (tmp_path / "k.c").write_text(KERNEL)
        shown = memext("kernel", "show", tmp_path / "k.c")
        assert "reduces   flux (sum), top (maximum), low (minimum)" in shown.stdout
        checked = memext("kernel", "check", tmp_path / "k.c")
        assert checked.returncode == 0 and "nothing wrong" in checked.stdout, checked.stderr
        return
    old, new = BROKEN[naming]
    assert old in KERNEL
    (tmp_path / "k.c").write_text(KERNEL.replace(old, new))
    memext.refused("kernel", "check", tmp_path / "k.c", naming=[naming])


def test_what_is_asked_for_is_planned(memext, place, tmp_path):
    """Sweeps end at checks, in predictions too; nonsense is refused in a sentence before anything is touched."""
    size = ["-n", 254, 254, 254, "-t", 200, "--dram", "64MiB", "-d", place, "--quiet"]
    plans = {}
    for every in 20, 200:
        done = memext("tune", *size, "--check", every, "--json", "-")
        plans[every] = json.loads(done.stdout)["plan"]["bt"]
    assert 20 % plans[20] == 0 and plans[20] <= 20 < plans[200]
    dry = memext.run(*size[:-1], "--check", 20, "--until", "max-change=1", "--dry-run")
    assert dry["check_every"] == 20 and dry["until"] == ["max-change=1"] and dry["norms"] == [] and dry["plan"]["bt"] == plans[20]
    run = ["run", *GRID, *PLANS["direct"], "--quiet"]
    memext.refused(*run, "--check", 0, naming=["--check '0'"])
    memext.refused(*run, "--until", "max-change", naming=["NAME=VALUE"])
    memext.refused(*run, "--until", "max-change=-1", naming=["never met"])
    memext.refused(*run, "--until", "flux=1", naming=["names no norm: choose max-change or rms-change"])
    assert memext.run(*GRID, *PLANS["direct"], "--until", "max-change=0")["check_every"] == 100
