# SPDX-License-Identifier: BSD-3-Clause
"""Kernels whose step has several stages: by every plan, backend, rank, accelerator and resume they have the bits of the scheme written in numpy."""
import json
import os
import pickle
import shutil

import numpy as np
import pytest
from package import cache, environment, mx  # noqa: F401 (fixtures)
from ranks_of_runs import MPIS, under
from stages import N, SCHEMES, SHAPE, plans
from test_accel import fake_cuda, no_settings, use, works  # noqa: F401 (fixtures)
from test_systems import SYSTEMS

STEPS = 7


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Kernels and the fields that they begin with. Every kernel is compiled once."""
    folder, before = tmp_path_factory.mktemp("stages"), os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    for s in SCHEMES.values():
        (folder / f"{s.name}.c").write_text(s.text)
        for field, values in {**s.given, **s.c}.items():
            np.save(folder / f"{s.name}-{field}.npy", values)
    yield folder
    del os.environ["XDG_CACHE_HOME"]
    if before is not None:
        os.environ["XDG_CACHE_HOME"] = before


def words(folder, s, *more, kernel=None):
    given = [w for f in s.given for w in ("--input", f"{f}={folder}/{s.name}-{f}.npy")] + [w for f in s.c for w in ("--field", f"{f}={folder}/{s.name}-{f}.npy")]
    return ["--kernel", kernel or folder / f"{s.name}.c", *given, "--dram", "256MiB", *more]


def outputs(s, where):
    return ["--overwrite", *(w for f in s.given for w in ("--output", f"{f}={where}/{f}.out.npy"))]


def same(s, where, wanted, what):
    for field, values in wanted.items():
        got = np.load(where / f"{field}.out.npy")
        assert got.dtype == values.dtype and got.tobytes() == values.tobytes(), (s.name, field, what)


def at(backend, place):
    return ["--backend", backend, *([] if backend == "dram" else ["-d", place, "--force"])]


@pytest.mark.parametrize("name", SCHEMES)
def test_every_plan(memext, quick_place, folder, name):
    """Fields, frames included, after an odd and an even number of steps; predicted bytes are moved; with initial grid and output in sweeps and apart."""
    s = SCHEMES[name]
    states, _ = s.run(STEPS)
    for i, (backend, plan) in enumerate(plans(s)):
        nt = STEPS - i % 2
        for fuse in ([], ["--no-fuse"]):
            result = memext.run(*words(folder, s, "-t", nt, *at(backend, quick_place), *outputs(s, quick_place), "--plan", plan, "--threads", 2, *fuse, "--verify"))
            same(s, quick_place, states[nt], (backend, plan, fuse))
            assert result["verified"] is True and result["problem"]["kernel"]["stages"] == s.n
            if backend in ("uring", "aio"):
                assert (result["read_bytes"], result["write_bytes"]) == (result["predicted_read_bytes"], result["predicted_write_bytes"]), (backend, plan)
            assert result["updates"] == result["predicted_updates"] >= nt * N[0] * N[1] * N[2]


def test_plans_that_a_tuner_makes(memext, quick_place, folder):
    """bt is a multiple of the stages, whoever chooses it; tune, dry run and run agree."""
    s = SCHEMES["rk3"]
    states, _ = s.run(11)
    for how in ([], ["--tuner", "naive"], ["--algorithm", "redundant"], ["--algorithm", "skewed-y"], ["--check", 4], ["--commit-every", 0], ["--dram", "27MiB"]):
        result = memext.run(*words(folder, s, *how, "-t", 11, "-d", quick_place, "--force", *outputs(s, quick_place)))
        same(s, quick_place, states[11], how)
        assert result["plan"]["bt"] % 3 == 0 and result["plan"]["bt"] > 0, how
    for nt, where in ((50, ["--backend", "dram"]), (50, ["--accel", "host", "--algorithm", "direct", "--backend", "dram"]), (50, ["-d", quick_place, "--force"])):
        result = memext.run(*words(folder, s, *where, "-t", nt, *outputs(s, quick_place)))  # more levels than a tuner takes at once
        same(s, quick_place, s.run(nt)[0][nt], where)
        assert result["plan"]["bt"] % 3 == 0
    dry = memext("run", *words(folder, s, "-t", 11, "-d", quick_place, "--force", "--dry-run", "--json", "-"))
    assert json.loads(dry.stdout[dry.stdout.index("{"):])["plan"]["bt"] % 3 == 0, dry.stdout


@pytest.mark.parametrize("name", SCHEMES)
def test_ranks(memext, quick_place, folder, name):
    s = SCHEMES[name]
    states, _ = s.run(STEPS)
    for n in (1, 2, 3):
        for how in (["--plan", f"stream by={N[1]} bt={s.n}"], ["--plan", f"redundant by=9 bz=7 bt={s.n}"], ["--side", "z=periodic"]):
            wanted = s.run(STEPS, periodic=True)[0][STEPS] if how[0] == "--side" else states[STEPS]
            sides = ["--side", "x=periodic", "--side", "y=periodic"] if how[0] == "--side" else []
            if n == 1 and sides:
                continue
            result = memext.run(*words(folder, s, "-t", STEPS, "-d", quick_place, "--force", "--ranks", n, "--threads", 1, *how, *sides, *outputs(s, quick_place)))
            if sides:  # of such a frame the content is of no account
                for field, values in wanted.items():
                    inner = (slice(s.h, -s.h),) * 3
                    assert np.load(quick_place / f"{field}.out.npy")[inner].tobytes() == values[inner].tobytes(), (n, how)
            else:
                same(s, quick_place, wanted, (n, how))
            if n > 1:
                for one in result["ranks"]["each"]:
                    assert all(one[f"{kind}_bytes"] == one[f"predicted_{kind}_bytes"] for kind in ("read", "write", "sent"))


@pytest.mark.parametrize("mpi", MPIS)
def test_under_mpirun(build, memext, quick_place, folder, mpi):
    s = SCHEMES["strang"]
    memext.run(*words(folder, s, "-t", STEPS, "-d", quick_place, "--threads", 1, *outputs(s, quick_place)), **under(build, mpi, 2))
    same(s, quick_place, s.run(STEPS)[0][STEPS], mpi)


@pytest.mark.parametrize("name", SCHEMES)
def test_a_run_that_dies_goes_on(memext, quick_place, folder, name):
    """Killed by its device at any request, with a commit after every sweep of one step: it goes on from an odd or an even step by another plan, another
    number of ranks, and further than it was to go."""
    s = SCHEMES[name]
    states, _ = s.run(STEPS + 4)
    found = set()
    for number, n in enumerate(range(20, 600, 7)):
        place = quick_place / str(n)
        place.mkdir()
        done = memext("run", *words(folder, s, "-t", STEPS, "-d", place, "--plan", f"stream by={N[1]} bt={s.n} slab=4", "--backend", "fault:uring", "--fault",
                                    f"fail_after={n}", "--commit-every", 0, "--keep", "--quiet", "--no-fuse"))
        assert done.returncode in (0, 3), done.stderr
        told = memext("info", place, "--json", "-") if (place / "memext.store").exists() else None
        if told is None or told.returncode != 0:
            continue
        step = json.loads(told.stdout)["store"]["step"]
        nt = STEPS + number % 5
        result = memext.run("--resume", "-d", place, "-t", nt, *(["--ranks", 2] if number % 3 == 2 else []), *outputs(s, place), "--keep")
        assert result["resumed_from"] == step
        same(s, place, states[nt], (n, step))
        found.add(step)
        shutil.rmtree(place)
        if number >= 6 and found & {1, 3, 5} and found & {2, 4, 6}:
            break
    assert found & {1, 3, 5} and found & {2, 4, 6}, found


# OpenCL compiles each stage for seconds: all schemes when there is time.
@pytest.mark.parametrize("name, accel", [pytest.param(name, accel, marks=[pytest.mark.long] if accel == "opencl" and name != "rk3" else [])
                                         for accel in ("host", "opencl", "cuda") for name in SCHEMES])  # fmt: skip
@pytest.mark.each_value
def test_accelerators(request, memext, quick_place, folder, name, accel):
    use(request, memext, accel)
    s = SCHEMES[name]
    rng = np.random.default_rng(3)
    np.save(quick_place / "amp.npy", amp := rng.random((STEPS, s.n)))
    np.save(quick_place / "wave.npy", wave := rng.random(STEPS))
    (quick_place / "probes.txt").write_text("u 3 4 5\nu 0 0 0\n")
    states, traces = s.run(STEPS, {"amp": amp}, source=("u", (3, 4, 5), wave), probes=[("u", 3, 4, 5), ("u", 0, 0, 0)])
    more = ["-t", STEPS, "--param", f"amp={quick_place}/amp.npy", "--source", f"u@3,4,5={quick_place}/wave.npy", "--probes", quick_place / "probes.txt"]
    checks = ["--check", 3] if name == "rk3" else []
    cpu = memext.run(*words(folder, s, *more, *checks, "--backend", "dram", "--probes-out", quick_place / "cpu.npy", "--overwrite", *outputs(s, quick_place)))
    same(s, quick_place, states[STEPS], "CPU")
    for where in (["--backend", "dram"], ["-d", quick_place, "--force", "--plan", f"stream by=9 bt={s.n} slab=2"], ["-d", quick_place, "--force", "--plan", f"stream by={N[1]} bt={2 * s.n}"],
                  ["-d", quick_place, "--force", "--algorithm", "direct"]):
        result = memext.run(*words(folder, s, *more, *checks, *where, "--accel", accel, "--probes-out", quick_place / "traces.npy", *outputs(s, quick_place)))
        same(s, quick_place, states[STEPS], where)
        assert np.array_equal(np.load(quick_place / "traces.npy"), traces), where
        assert result.report.get("norms") == cpu.report.get("norms")
        assert result["host_to_device_bytes"] == result["predicted_host_to_device_bytes"] and result["device_to_host_bytes"] == result["predicted_device_to_host_bytes"]


@pytest.mark.parametrize("name", SCHEMES)
def test_points_sides_and_parameters_over_time(memext, quick_place, folder, name):
    """Sources and probes act after the last stage; PARAM is that of the step, or of the stage; periodic sides hold after every stage."""
    s = SCHEMES[name]
    rng = np.random.default_rng(11)
    wave, probes = rng.random(STEPS), [("u", 4, 0, 25), ("u", 3, 20, 6), ("u", 18, 1, 1)]
    np.save(quick_place / "wave.npy", wave)
    (quick_place / "probes.txt").write_text("".join(f"{f} {x} {y} {z}\n" for f, x, y, z in probes))
    for shape in ((STEPS + 2,), (STEPS + 2, s.n)):
        amp = rng.random(shape)
        np.save(quick_place / "amp.npy", amp)
        for periodic in (False, True):
            states, traces = s.run(STEPS, {"amp": amp}, periodic=periodic, source=("u", (4, 0, 25), wave), probes=probes)
            sides = [w for axis in "xyz" for w in ("--side", f"{axis}=periodic")] if periodic else []
            for plan in (f"stream by={N[1]} bt={2 * s.n}", f"stream by=12 bt={s.n} slab=2", f"redundant by=9 bz=9 bt={s.n}"):
                memext.run(*words(folder, s, "-t", STEPS, "-d", quick_place, "--force", "--plan", plan, *sides, "--param", f"amp={quick_place}/amp.npy", "--source",
                                  f"u@4,0,25={quick_place}/wave.npy", "--probes", quick_place / "probes.txt", "--probes-out", quick_place / "traces.npy", "--verify",
                                  *outputs(s, quick_place)))
                inner = (slice(s.h, -s.h),) * 3
                for field, values in states[STEPS].items():
                    assert np.load(quick_place / f"{field}.out.npy")[inner].tobytes() == values[inner].tobytes(), (shape, periodic, plan, field)
                assert np.array_equal(np.load(quick_place / "traces.npy"), traces), (shape, periodic, plan)


def test_snapshots_and_checks(memext, quick_place, folder):
    """Snapshots are states of whole steps. Reductions are of the state before the step, with the parameters of its first stage, by every plan alike."""
    s = SCHEMES["rk3"]
    amp = np.random.default_rng(2).random((STEPS, 3))
    np.save(quick_place / "amp.npy", amp)
    states, _ = s.run(STEPS, {"amp": amp})
    inner, reports = (slice(1, -1),) * 3, []
    for backend, plan in plans(s):
        taken = quick_place / "snapshots"
        result = memext.run(*words(folder, s, "-t", STEPS, *at(backend, quick_place), "--plan", plan, "--threads", 2, "--check", 3, "--param", f"amp={quick_place}/amp.npy",
                                   *(["--snapshot", f"2:{taken}"] if backend == "uring" else [])))
        reports.append(result["norms"])
        if backend == "uring":
            for step in (2, 4, 6):
                files = [p for p in taken.rglob("*.npy") if f"{step:06d}" in str(p) or f"{step}" in p.stem.split("-") or p.parent.name.endswith(f"{step}")]
                u = [p for p in files if "u" in p.stem.replace("step", "").split("-") or p.name == "u.npy" or p.stem.startswith("u")]
                assert u and any(np.load(p).tobytes() == states[step]["u"][inner].tobytes() or np.load(p).tobytes() == states[step]["u"].tobytes() for p in u), (step, list(taken.rglob("*")))
            shutil.rmtree(taken)
    assert all(r == reports[0] for r in reports)
    for one, step in zip(reports[0], (3, 6, 7)):
        before, p = states[step - 1]["u"], amp[step - 1][0]
        values = before[inner] + p * (step - 1)
        assert one["step"] == step and one["max_change"] is None and one["rms_change"] is None
        lanes = [np.add.accumulate(np.concatenate([np.zeros((26, 21, 1)), values[:, :, k::8]], axis=2), axis=2)[:, :, -1] for k in range(8)]
        rows = np.zeros((26, 21))
        for lane in lanes:
            rows = rows + lane
        total = 0.0
        for z in range(26):
            plane = 0.0
            for y in range(21):
                plane += rows[z, y]
            total += plane
        assert one["reductions"]["mass"]["sum"] == total
        assert one["reductions"]["top"]["max"] == (before[inner] - before[1:-1, 1:-1, 2:]).max()


def test_a_criterion_of_a_reduction_ends_a_run(memext, quick_place, folder):
    s = SCHEMES["rk3"]
    states, _ = s.run(60)
    inner = (slice(1, -1),) * 3
    tops = [(a["u"][inner] - a["u"][1:-1, 1:-1, 2:]).max() for a in states]
    limit = tops[20]
    first = next(step for step in range(3, 61, 3) if tops[step - 1] <= limit)
    for plan in (f"stream by={N[1]} bt=9", "redundant by=9 bz=7 bt=3"):
        result = memext.run(*words(folder, s, "-t", 60, "-d", quick_place, "--force", "--plan", plan, "--check", 3, "--until", f"top={float(limit)!r}", *outputs(s, quick_place)))
        same(s, quick_place, states[first], plan)


def test_a_run_grows_with_its_parameters(memext, quick_place, folder):
    """The values that were used are compared, those of all stages; -t may grow as far as the file reaches."""
    s = SCHEMES["heun"]
    amp = np.random.default_rng(9).random((STEPS, 2))
    states, _ = s.run(STEPS, {"amp": amp})
    other = amp.copy()
    other[2, 1] += 1
    for name, values in {"amp": amp, "short": amp[:4], "other": other, "flat": amp[:, 0]}.items():
        np.save(quick_place / f"{name}.npy", values)
    begun = quick_place / "begun"
    begun.mkdir()
    memext.run(*words(folder, s, "-t", 3, "-d", begun, "--keep", "--param", f"amp={quick_place}/short.npy"))
    memext.refused("run", "--resume", "-d", begun, "-t", STEPS, "-q", naming=["short.npy has 4 values", f"{STEPS} steps"])
    for name in ("other", "flat"):
        memext.refused("run", "--resume", "-d", begun, "-t", STEPS, "-q", "--param", f"amp={quick_place}/{name}.npy", naming=["other values of the parameter amp than the first 3 of"])
    memext.run("--resume", "-d", begun, "-t", STEPS, "--param", f"amp={quick_place}/amp.npy", *outputs(s, quick_place))
    same(s, quick_place, states[STEPS], "grown")


def test_series_of_both_levels_of_a_staggered_kernel(memext, quick_place, tmp_path):
    text = ('#define MX_NAME "pair"\n#define MX_RADIUS 1\n#define MX_FORM MX_STAGGERED\n#define MX_STATE(F) F(e, double)\n#define MX_PARTNER(F) F(u, double)\n'
            "#define MX_PARAMS(P) P(a, 0.5)\n#define MX_REDUCES(R) R(sum, MX_SUM)\n#include <memext/cell.h>\n%sMX_CELL_B\nSET(u, OLD(u) - %s * (AT(e,1,0,0) - AT(e,0,0,0)));\nMX_END\n"
            "MX_CELL_A\nSET(e, OLD(e) - %s * (AT(u,0,0,0) - AT(u,-1,0,0)));\nMX_END\nMX_REDUCE(sum)\nRESULT(%s * AT(u,0,0,0));\nMX_END\n")
    a = np.random.default_rng(4).random((STEPS, 2))
    np.save(tmp_path / "a.npy", a)
    (tmp_path / "short.c").write_text(text % ("", "PARAM(a)", "PARAM(a)", "PARAM(a)"))
    table = f"static const double table[{2 * STEPS}] = {{{', '.join(float(v).hex() for v in a.ravel())}}};\n"
    (tmp_path / "full.c").write_text(text % (table, "table[2 * T]", "table[2 * T + 1]", "table[2 * T + 1]"))
    grid = ["-n", 17, 16, 18, "--init", "random", "-t", STEPS, "--dram", "64MiB", "--check", 2]
    wanted = memext.run("--kernel", tmp_path / "full.c", *grid, "--backend", "dram").report
    accels = [["--accel", accel] for accel in ("host", "opencl") if works(memext, accel)["works"]]
    for how in ([], ["--plan", "stream by=16 bt=4"], ["--plan", "redundant by=9 bz=7 bt=2"], *accels):
        result = memext.run("--kernel", tmp_path / "short.c", *grid, "--param", f"a={tmp_path}/a.npy", "-d", quick_place, "--force", *how).report
        assert (result["checksum"], result["norms"]) == (wanted["checksum"], wanted["norms"]), how


# ------------------------------------------------------------------ refusals


def test_what_a_plan_cannot_be(memext, quick_place, folder):
    s = SCHEMES["rk3"]
    run = ["run", *words(folder, s, "-t", STEPS, "-d", quick_place, "-q")]
    memext.refused(*run, "--plan", f"stream by={N[1]} bt=4", naming=["bt is 4 levels", "3 stages", "multiple of 3, for example 6"])
    memext.refused(*run, "--algorithm", "redundant", "--block", 9, 7, 2, naming=["bt is 2 levels", "for example 3"])
    memext.refused(*run, "--in-place", naming=["MX_JACOBI"])
    memext.refused(*run, "--ranks", 13, naming=["ranks", "a step needs 3 of a neighbour", "8 ranks or fewer"])
    memext.refused(*run, "--until", "max-change=1e-6", naming=["--until max-change=1e-06", "3 stages", "reduction", "MX_REDUCES"])
    memext.refused(*run, "--until", "rms-change=1e-6", naming=["--until rms-change=1e-06", "reduction"])
    heun = SCHEMES["heun"]
    memext.refused("run", *words(folder, heun, "-t", STEPS, "-d", quick_place, "-q"), "--check", 5, naming=["--check 5", "2 stages", "MX_REDUCES", "leave --check out"])
    assert not list(quick_place.iterdir())


def test_parameters_of_a_wrong_shape(memext, quick_place, folder):
    s = SCHEMES["rk3"]
    run = ["run", *words(folder, s, "-t", STEPS, "-d", quick_place, "-q")]
    for name, shape in {"two": (STEPS, 2), "three": (STEPS, 3, 1), "short": (4, 3)}.items():
        np.save(folder / f"{name}.npy", np.ones(shape))
    memext.refused(*run, "--param", f"dt={folder}/two.npy", naming=["shape (7, 2)", "(steps) or (steps, 3)"])
    np.save(folder / "turned.npy", np.asfortranarray(np.random.default_rng(2).random((STEPS, 3))))
    memext.refused(*run, "--param", f"dt={folder}/turned.npy", naming=["turned.npy is in Fortran order", "numpy.ascontiguousarray"])
    memext.refused(*run, "--param", f"dt={folder}/three.npy", naming=["3 dimensions"])
    memext.refused(*run, "--param", f"dt={folder}/short.npy", naming=["4 values", "7 steps"])
    np.save(folder / "nan.npy", np.where(np.arange(21).reshape(7, 3) == 16, np.nan, 1.0))
    memext.refused(*run, "--param", f"dt={folder}/nan.npy", naming=["value 16, for step 5, is not finite"])
    np.save(folder / "dt.npy", np.full((STEPS, 3), 0.1))
    memext.refused(*run, "--param", f"dt={folder}/dt.npy", "--time-step", "dt", naming=["--time-step dt", "each stage", "`none`"])
    result = memext.run(*words(folder, s, "-t", STEPS, "--backend", "dram", "--param", f"dt={folder}/dt.npy"))
    assert result.report.get("simulated_s") is None
    assert not list(quick_place.iterdir())


@pytest.mark.parametrize("change, naming", [
    (("MX_STAGES 2", "MX_STAGES 3"), ["no part MX_CELL_3 ... MX_END"]),
    (("MX_STAGES 2", "MX_STAGES 17"), ["MX_STAGES must be 2 to 16"]),
    (("MX_STAGES 2", "MX_STAGES 1"), ["MX_STAGES must be 2 to 16", "MX_CELL"]),
    (("#define MX_STAGES 2\n", ""), ["MX_CELL_1 needs #define MX_STAGES 1, or more"]),
    (("MX_CELL_1", "MX_CELL"), ["a kernel with MX_STAGES uses MX_CELL_1, MX_CELL_2 and so on instead of MX_CELL"]),
    (("#define MX_STAGES 2\n", "#define MX_STAGES 2\n#define MX_FORM MX_LEAPFROG\n"), ["MX_STAGES needs the form MX_JACOBI"]),
    (("RATE(v)));", "RATE(v)) + OLD(u));"), ["OLD"]),
    (("AT(u, 0, 0, 0) + PARAM(dt) * RATE(u)", "AT(w, 0, 0, 0)"), ["there is no field w; the kernel has v, u"]),
])  # fmt: skip
def test_kernels_that_are_wrong(memext, folder, tmp_path, change, naming):
    text = SCHEMES["heun"].text
    assert change[0] in text
    (tmp_path / "wrong.c").write_text(text.replace(*change))
    done = memext("kernel", "check", tmp_path / "wrong.c")
    assert done.returncode == 2
    for part in naming:
        assert part in done.stderr, done.stderr


def test_what_a_kernel_says_of_itself(memext, quick_place, folder):
    assert "jacobi, 3 stages, radius 1" in memext("kernel", "show", folder / "rk3.c").stdout
    s = SCHEMES["rk3"]
    memext.run(*words(folder, s, "-t", 5, "-d", quick_place, "--keep"))
    store = json.loads(memext("info", quick_place, "--json", "-").stdout)["store"]
    assert store["step"] == 5
    assert memext("export", quick_place, "-o", f"u={quick_place}/u.npy").returncode == 0
    assert np.load(quick_place / "u.npy").tobytes() == s.run(5)[0][5]["u"].tobytes()


# ------------------------------------------------------------------ the Python package


def kernels_of(mx):
    def stage(a, b, name):
        def update(u, q, dt, amp):
            k = a * q + dt * (amp - ((u - u[-1, 0, 0]) + 0.5 * (u - u[0, -1, 0]) + 0.25 * (u - u[0, 0, -1])))
            return u + b * k, k

        update.__name__ = name
        return update

    params = {"dt": 0.4, "amp": 0.125}
    rk3 = mx.stages(stage(0.0, 1 / 3, "rk3"), stage(-5 / 9, 15 / 16, "second"), stage(-153 / 128, 8 / 15, "third"), params=params)

    def react(u, dt, amp):
        return u + 0.5 * dt * u * (amp - u)

    def diffuse(u, k, dt, x, t):
        near = (u[-2, 0, 0] + u[2, 0, 0]) + (u[0, -1, 0] + u[0, 1, 0]) + (u[0, 0, -2] + u[0, 0, 2])
        return u + dt * (0.5 * (k + k[1, 0, 0])) * (near - 6.0 * u) + 0.0001 * (x + t)

    strang = mx.stages(react, diffuse, react, fixed="k", params={"dt": 0.125, "amp": 0.5}, name="strang")
    return {"rk3": rk3, "strang": strang}


def predict(v, u, dt, amp):
    return u + dt * (amp * (u[1, 0, 0] + u[0, -1, 0] - u[0, 0, 1]) - u)


def correct(u, v, dt, amp):
    return 0.5 * (u + v + dt * (amp * (v[1, 0, 0] + v[0, -1, 0] - v[0, 0, 1]) - v))


@pytest.mark.parametrize("name", ["rk3", "strang"])
def test_in_python(mx, quick_place, name):
    """Run and reference have the bits of the scheme in numpy, with a parameter for each step and for each stage."""
    s, kernel = SCHEMES[name], kernels_of(mx)[name]
    amp = np.random.default_rng(8).random((STEPS, s.n))
    assert kernel.stages == s.n and kernel.form == "jacobi" and sorted(kernel.state) == sorted(s.given) and f"#define MX_STAGES {s.n}\n" in kernel.source
    dtype = s.given["u"].dtype.str[1:]
    for params in ({}, {"amp": amp[:, 0]}, {"amp": amp}):
        wanted = s.run(STEPS, params)[0][STEPS]
        reference = kernel.reference(STEPS, dtype=dtype, params=params, **s.given, **s.c)
        for field, values in wanted.items():
            assert reference[field].tobytes() == values.tobytes(), (field, params)
        for plan in (None, f"stream by=9 bt={s.n} slab=2", f"redundant by=9 bz=7 bt={s.n}"):
            with mx.Run(kernel, **s.given, **s.c, dtype=dtype, params=params, device=quick_place / "a.memext", dram="64MiB", force=True, resume=False, plan=plan) as run:
                run.advance(3)
                run.advance(STEPS)
                for field, values in wanted.items():
                    assert np.asarray(run[field]).tobytes() == values.tobytes(), (field, params, plan)


def test_fields_that_a_stage_does_not_compute_are_kept(mx, quick_place):
    heun = mx.stages(predict, correct, params={"dt": 0.25, "amp": 0.5}, name="heun")
    assert heun.state == ["v", "u"]
    s = SCHEMES["heun"]
    types = {"v": "f4", "u": "f8"}
    assert "SET(v" in heun.source.split("MX_CELL_2")[0] and "SET(v" not in heun.source.split("MX_CELL_2")[1]
    got = heun.reference(2, dtype=types, **s.given)
    assert got["u"].dtype == "f8" and got["v"].dtype == "f4"
    with mx.Run(heun, **s.given, dtype=types, device=quick_place, dram="64MiB") as run:
        run.advance(2)
        assert np.asarray(run["u"]).tobytes() == got["u"].tobytes() and np.asarray(run["v"]).tobytes() == got["v"].tobytes()


def test_steps_checks_and_parameters_between_steps(mx, quick_place):
    """run.steps yields whole steps; reductions with check are of the state before the step; a parameter that is changed holds for all stages from there on."""
    s, kernel = SCHEMES["rk3"], kernels_of(mx)["rk3"]

    @mx.reduce(op="max")
    def top(u):
        return u

    dt, inner = np.full(STEPS, 0.4), (slice(1, -1),) * 3
    with mx.Run(kernel, **s.given, device=quick_place / "b.memext", dram="64MiB") as run:
        run.advance(0)
        for step in run.steps(STEPS, check=2):
            dt[step:] = 0.3 / (1 + step)
            run.params["dt"] = 0.3 / (1 + step)
            states = s.run(step, {"dt": dt})[0]
            assert np.asarray(run["u"]).tobytes() == states[step]["u"].tobytes()
            assert run.reduce(top).total == states[step]["u"][inner].max()
        assert np.asarray(run["u"]).tobytes() == s.run(STEPS, {"dt": dt})[0][STEPS]["u"].tobytes()


def test_a_kernel_of_stages_is_pickled(mx):
    heun = mx.stages(predict, correct, params={"dt": 0.25, "amp": 0.5}, name="heun")
    again = pickle.loads(pickle.dumps(heun))
    assert again.source == heun.source and again.stages == 2
    one = mx.stages(lambda u: 0.5 * u, name="one")
    assert one.stages == 1 and "MX_STAGES" not in one.source and "MX_CELL\n" in one.source


def test_what_is_refused_in_python(mx, quick_place):
    def old(u, dt):
        return u + dt * u.old

    def reads(u, w):
        return u + w

    def plain(u, dt):
        return u * dt

    for functions, says in ((() , "0 functions"), ((plain,) * 17, "1 to 16"), ((old, plain), "cannot read .old"), ((reads, plain), "no stage computes w of reads")):
        with pytest.raises(mx.KernelError, match=says):
            mx.stages(*functions, params={"dt": 0.5})
    with pytest.raises(mx.KernelError, match="needs a name"):
        mx.stages(lambda u: 2 * u)
    with pytest.raises(mx.KernelError, match="a Python function for each stage"):
        mx.stages({"u": 1}, name="x")
    kernel = mx.stages(plain, plain, params={"dt": 0.5}, name="twice")
    u = np.ones(tuple(n + 2 for n in SHAPE))
    with pytest.raises(mx.MemextError, match=r"shape \(5, 3\)"):
        kernel.reference(5, u=u, params={"dt": np.ones((5, 3))})
    with pytest.raises(mx.MemextError, match=r"\(steps, 2\)"):
        mx.Run(kernel, u=u, params={"dt": np.ones((5, 3))}, device=quick_place).advance(5)
    with pytest.raises(mx.MemextError, match="MX_REDUCES"):
        mx.Run(kernel, u=u, check=2, device=quick_place).advance(5)


def test_the_example(memext, quick_place):
    """RK4 advection carries a wave once around a periodic grid: the error is that of the differences in space, and its mass stays."""
    n = 48
    phase = 2 * np.pi * np.arange(-1, n + 1) / n
    wave = np.broadcast_to(np.sin(phase) + 2, (10, 10, n + 2)).copy()
    np.save(quick_place / "u.npy", wave)
    result = memext.run("--kernel", SYSTEMS / "rk4_advection.c", "--param", "cx=0.5", "--param", "cy=0", "--param", "cz=0", "--input", f"u={quick_place}/u.npy", "--init", "v=zero", "--init",
                        "s=zero", "--side", "x=periodic", "--side", "y=periodic", "--side", "z=periodic", "-t", 2 * n, "--check", n, "-d", quick_place, "--dram", "64MiB", "--output",
                        f"u={quick_place}/out.npy")
    out = np.load(quick_place / "out.npy")[1:-1, 1:-1, 1:-1]
    assert abs(out - wave[1:-1, 1:-1, 1:-1]).max() < 0.03
    masses = [one["reductions"]["mass"]["sum"] for one in result["norms"]]
    assert abs(masses[-1] / (8 * 8 * n * 2) - 1) < 1e-12
