# SPDX-License-Identifier: BSD-3-Clause
"""Parameters that are changed between steps: the bits are those of the same values given over time, however often the program is ended and started again."""
import functools
import itertools
import os
import random
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from conftest import thinned
from package import cache, environment, mx  # noqa: F401 (fixtures)
from test_accel import works

GRID = ["-n", 30, 20, 22, "--init", "random", "--dram", "64MiB"]
HEAD = '#define MX_NAME "edited"\n#define MX_RADIUS 1\n#define MX_PARAMS(P) P(dt, 0.1) P(c, 0.25)\n'
NEAR = "double s = AT(u,1,0,0) + AT(u,-1,0,0) + AT(u,0,1,0) + AT(u,0,-1,0) + AT(u,0,0,1) + AT(u,0,0,-1) - 6 * AT(u,0,0,0);\n"
KERNELS = {
    "jacobi": HEAD + "#define MX_STATE(F) F(u, double)\n#include <memext/cell.h>\nMX_CELL\n" + NEAR + "SET(u, AT(u,0,0,0) + PARAM(dt) * s + PARAM(c) * T);\nMX_END\n",
    "leapfrog": HEAD + "#define MX_FORM MX_LEAPFROG\n#define MX_STATE(F) F(u, double)\n#include <memext/cell.h>\nMX_CELL\n" + NEAR + "SET(u, PARAM(dt) * s - 0.5 * OLD(u) + PARAM(c));\nMX_END\n",
    "staggered": HEAD + "#define MX_FORM MX_STAGGERED\n#define MX_STATE(F) F(e, double)\n#define MX_PARTNER(F) F(u, float)\n#include <memext/cell.h>\n"
    "MX_CELL_B\nSET(u, OLD(u) - (float)(PARAM(dt) * (AT(e,1,0,0) - AT(e,0,0,0))));\nMX_END\nMX_CELL_A\nSET(e, OLD(e) - PARAM(dt) * (AT(u,0,0,0) - AT(u,-1,0,0)) + PARAM(c));\nMX_END\n",
}  # fmt: skip
CHANGES = [(5, {"dt": 0.05}), (9, {"dt": 0.02, "c": 0.125}), (10, {"c": 0.5}), (12, {"dt": 0.07})]
END = 15


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("edits")
    for name, text in KERNELS.items():
        (folder / f"{name}.c").write_text(text)
    for name, value in (("dt", 0.1), ("c", 0.25)):
        values = []
        for step in range(END):
            value = dict(CHANGES).get(step, {}).get(name, value)
            values.append(value)
        np.save(folder / f"{name}.npy", values)
    return folder


@functools.cache
def wanted(memext, kernels, name):
    given = ["--param", f"dt={kernels}/dt.npy", "--param", f"c={kernels}/c.npy"]
    return memext.run("--kernel", kernels / f"{name}.c", *GRID, *given, "-t", END, "--backend", "dram", "--algorithm", "direct")


def words_of(changes):
    return [w for name, value in changes.items() for w in ("--edit-param", f"{name}={value}")]


PLANS = ["stream by=20 bt=4", "stream by=10 bt=2", "redundant by=9 bz=7 bt=2"]


MORE = [[], ["--ranks", 2], ["--accel", "host"], ["--accel", "opencl"], ["--backend", "mmap"], ["--integrity"]]


# OpenCL compiles each for seconds.
@pytest.mark.parametrize("name, more", thinned(itertools.product(KERNELS, MORE), lambda name, more: "opencl" not in more or name == "staggered"), ids=lambda m: m if isinstance(m, str) else str(m[-1]) if m else "plain")
def test_command(memext, quick_place, kernels, name, more):
    """The same checksum and the same seconds as parameters over time have; info tells what a parameter was and is; no byte more is moved than predicted."""
    if "--accel" in more and not works(memext, more[1])["works"]:
        pytest.skip(works(memext, more[1])["why"])
    if "opencl" in more and name != "jacobi":
        pytest.skip("one kernel of several that opencl compiles for seconds")
    want = wanted(memext, kernels, name)
    steps = [s for s, _ in CHANGES] + [END]
    memext.run("--kernel", kernels / f"{name}.c", *GRID, *(more if "opencl" not in more else []), "-t", steps[0], "-d", quick_place, "--plan", "stream by=10 bt=2", "--keep")
    for (_, changes), upto in zip(CHANGES, steps[1:]):
        plain = [w for w in more if w != "--integrity" and ("opencl" not in more or upto in steps[1:3])]  # each value is compiled, which takes seconds
        done = memext.run("--resume", "-d", quick_place, "-t", upto, *words_of(changes), *plain, "--plan", PLANS[upto % len(PLANS)], "--keep")
        if "mmap" not in more:
            assert (done["read_bytes"], done["write_bytes"]) == (done["predicted_read_bytes"], done["predicted_write_bytes"])
    assert done["checksum"] == want["checksum"] and np.isclose(done["simulated_s"], want["simulated_s"], rtol=1e-14, atol=0)
    if "--ranks" not in more:
        assert "dt=0.07 (0.1 at the beginning)" in memext("info", quick_place).stdout
    memext.run("--resume", "-d", quick_place, "-t", END + 1, "--param", "dt=0.1", "--keep")
    other = memext("run", "--resume", "-d", quick_place, "-t", END + 2, "--param", "dt=0.3", check=False)
    assert other.returncode == 2 and "dt=0.1, not 0.3" in other.stderr


@pytest.mark.parametrize(("words", "says"), [(["-t", 5, "--edit-param", "dt=0.3"], "would change nothing"), (["--edit-param", "dx=0.3"], "its parameters: dt, c"), (["--edit-param", "dt=x"], "finite number"),
    (["--edit-param", "dt"], "NAME=VALUE"), (["--edit-param", "dt=1", "--edit-param", "dt=2"], "twice"), (["--edit-param", "dt=inf"], "finite number")])  # fmt: skip
def test_refusals(memext, quick_place, kernels, words, says):
    memext.run("--kernel", kernels / "jacobi.c", *GRID, "-t", 5, "-d", quick_place, "--keep")
    before = {p: p.read_bytes() for p in quick_place.iterdir()}
    refused = memext("run", "--resume", "-d", quick_place, *(["-t", 9] if "-t" not in words else []), *words, check=False)
    assert refused.returncode == 2 and says in refused.stderr
    assert {p: p.read_bytes() for p in quick_place.iterdir()} == before


def test_sums_that_are_not_finite(memext, quick_place, kernels):
    """The seconds of a run are not known then; the store stays readable."""
    memext.run("--kernel", kernels / "jacobi.c", *GRID, "-t", 5, "-d", quick_place, "--keep", "--param", "c=0", "--plan", "stream by=20 bt=1")
    for upto, value in ((6, "1e308"), (7, "-1e308"), (8, 0.25)):
        memext.run("--resume", "-d", quick_place, "-t", upto, "--edit-param", f"c={value}", "--keep", "--nonfinite", "ignore")
    assert "step       8 of 8" in memext("info", quick_place).stdout
    memext.run("--resume", "-d", quick_place, "-t", 9, "--nonfinite", "ignore")


def test_a_run_that_met_its_criterion(memext, quick_place, kernels):
    base = ["--kernel", kernels / "jacobi.c", *GRID, "-t", 50, "-d", quick_place, "--keep", "--check", 5, "--until", "max-change=100"]
    assert memext.run(*base).report["met"]["step"] == 5
    for more in ([], ["-t", 50]):
        refused = memext("run", "--resume", "-d", quick_place, "--edit-param", "dt=0.01", *more, check=False)
        assert refused.returncode == 2 and "would change nothing" in refused.stderr
    assert "beginning" not in memext("info", quick_place).stdout


def test_the_value_that_it_has(memext, quick_place, kernels):
    """Is no change: such a run is verified."""
    memext.run("--kernel", kernels / "jacobi.c", *GRID, "-t", 5, "-d", quick_place, "--keep")
    assert memext.run("--resume", "-d", quick_place, "-t", 8, "--edit-param", "dt=0.1", "--verify")["verified"] is True


def test_a_built_in_stencil(memext, quick_place):
    memext.run(*GRID, "-t", 5, "-d", quick_place, "--keep")
    refused = memext("run", "--resume", "-d", quick_place, "-t", 9, "--edit-param", "dt=0.2", check=False)
    assert refused.returncode == 2 and "of the built-in star7" in refused.stderr and "--edit-param" in refused.stderr


def test_what_cannot_be(memext, quick_place, kernels):
    """--verify of a run that was changed; a change of a parameter over time; of a run that begins."""
    memext.run("--kernel", kernels / "jacobi.c", *GRID, "-t", 5, "-d", quick_place, "--keep")
    refused = memext("run", "--resume", "-d", quick_place, "-t", 9, "--edit-param", "dt=0.2", "--verify", check=False)
    assert refused.returncode == 2 and "--verify" in refused.stderr
    memext.run("--kernel", kernels / "jacobi.c", *GRID, "-t", 5, "-d", quick_place, "--keep", "--force", "--param", f"dt={kernels}/dt.npy")
    refused = memext("run", "--resume", "-d", quick_place, "-t", 9, "--edit-param", "dt=0.2", check=False)
    assert refused.returncode == 2 and "--param dt=FILE.npy" in refused.stderr
    refused = memext("run", "--kernel", kernels / "jacobi.c", *GRID, "-t", 5, "-d", quick_place, "--force", "--edit-param", "dt=0.2", check=False)
    assert refused.returncode == 2 and "needs --resume" in refused.stderr


@pytest.mark.parametrize("ranks", [1, 2])
def test_before_the_first_commit(memext, quick_place, kernels, ranks):
    """A run that ends by an error before it commits leaves the state without the change: what goes on without it gives the unchanged bits, and with it the changed ones."""
    base = ["--kernel", kernels / "jacobi.c", *GRID, "-t", 5, "-d", quick_place, "--keep", "--plan", "stream by=20 bt=2", *(["--ranks", ranks] if ranks > 1 else [])]
    memext.run(*base)
    kept = quick_place.parent / f"{quick_place.name}-kept"
    shutil.copytree(quick_place, kept)
    sums = {}
    for name, words in (("plain", []), ("changed", ["--edit-param", "dt=0.05"])):
        sums[name] = memext.run("--resume", "-d", quick_place, "-t", 12, *words)["checksum"]
        shutil.rmtree(quick_place)
        shutil.copytree(kept, quick_place)
    assert sums["plain"] != sums["changed"]
    for name, words in (("plain", []), ("changed", ["--edit-param", "dt=0.05"])):
        failed = memext("run", "--resume", "-d", quick_place, "-t", 12, "--edit-param", "dt=0.05", "--backend", "fault:aio", "--fault", "seed=1,eio=1", check=False)
        assert failed.returncode == 3, failed.stderr
        assert memext.run("--resume", "-d", quick_place, "-t", 12, *words, "--backend", "aio")["checksum"] == sums[name]
        shutil.rmtree(quick_place)
        shutil.copytree(kept, quick_place)
    shutil.rmtree(kept)


PROGRAM = """import sys
import numpy as np, memext as mx

@mx.kernel(params={"dt": 0.1, "c": 0.0})
def heat(u, dt, c):
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    return u + dt * (around - 6 * u) + c

@mx.reduce(op="max")
def largest(u, dt):
    return abs(u) + dt

place, mode = sys.argv[1:3]
u = np.random.default_rng(1).random((40, 60, 60))
words = {"commit_every": 0, "plan": "stream by=58 bt=2"}
with mx.Run(heat, u=u, device=place, dram="64MiB", keep=True, params={"dt": 0.12}, **words) as run:
    run.params["c"] = 0.01
    run.advance(7)
    run.params["c"] = 0.02
    for step in run.steps(60, check=6):
        run.params["dt"] = 0.1 / (1 + step % 5) / run.reduce(largest).total
        if step == 30:
            run.params["c"] = 1 / step
    print(run.step, run.time, dict(run.params), hash(run["u"][...].tobytes()) if mode == "hash" else "", flush=True)
    np.save(place + "/result.npy", run["u"][...])
    np.save(place + "/params.npy", [run.time, run.params["dt"], run.params["c"]])
"""


def plain(place):
    """The same program in numpy."""
    u = np.random.default_rng(1).random((40, 60, 60))
    dt, c, now = 0.12, 0.01, 0.0
    inside = (slice(1, -1),) * 3
    for step in range(60):
        if step == 7:
            c = 0.02
        if step > 7 and step % 6 == 0:
            dt = 0.1 / (1 + step % 5) / (np.abs(u[inside]) + dt).max()
            if step == 30:
                c = 1 / step
        new = u.copy()
        around = u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1] + u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1]
        new[inside] = u[inside] + dt * (around - 6 * u[inside]) + c
        u, now = new, now + dt
    return u, now


KILLS = 200 if os.environ.get("MEMEXT_TEST_LONG") else 4


def test_program_that_is_killed(environment, mx, quick_place, tmp_path):  # noqa: F811
    """A program with a change at every check, killed at any moment and started again each time, ends with the bits of numpy."""
    (tmp_path / "program.py").write_text(PROGRAM)
    want, seconds = plain(quick_place)
    rng, ended = random.Random(3), 0
    words = [str(environment), str(tmp_path / "program.py"), str(quick_place), "-"]
    for _ in range(2):  # the first one compiles
        shutil.rmtree(quick_place), quick_place.mkdir()
        begin = time.monotonic()
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        whole = time.monotonic() - begin
        assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(quick_place / "result.npy"), want), done.stdout
    assert np.isclose(np.load(quick_place / "params.npy")[0], seconds, rtol=1e-13, atol=0)
    while ended < KILLS:
        shutil.rmtree(quick_place), quick_place.mkdir()
        for at in range(51):  # the last time it may take as long as it likes
            program = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                _, error = program.communicate(timeout=whole * (0.1 + 0.6 * rng.random()) if at < 50 else None)
                assert program.returncode == 0, error
                break
            except subprocess.TimeoutExpired:
                program.send_signal(signal.SIGKILL)
                program.communicate()
                ended += 1
        assert np.array_equal(np.load(quick_place / "result.npy"), want)


def test_python_parameters(mx, quick_place):  # noqa: F811
    """What run.params takes and refuses."""

    @mx.kernel(params={"dt": 0.1, "drive": 0.0})
    def heat(u, dt, drive):
        return u + dt * (u[1, 0, 0] - u) + drive

    u = np.random.default_rng(2).random((12, 12, 12))
    for _ in range(2):
        with mx.Run(heat, u=u, device=quick_place, dram="64MiB", keep=True) as run:
            run.advance(0)
            run.params["dt"] = 0.3
            run.advance(2)
            assert np.array_equal(run["u"][...], heat.reference(2, params={"dt": 0.3}, u=u)["u"]) and run.params["dt"] == 0.3
            with pytest.raises(AttributeError):
                run.params.dt = 1
    with mx.Run(heat, u=u, device=quick_place, dram="64MiB", force=True, resume=False, params={"drive": np.zeros(9)}) as run:
        assert run.params["dt"] == 0.1 and set(run.params) == {"dt", "drive"} and np.array_equal(run.params["drive"], np.zeros(9))
        run.params["dt"] = 0.2
        run.advance(3)
        assert np.array_equal(run["u"][...], heat.reference(3, params={"dt": 0.2}, u=u)["u"])
        run.params["dt"] = 0.3
        run.params["dt"] = 0.25
        run.advance(5)
        assert np.array_equal(run["u"][...], heat.reference(2, params={"dt": 0.25}, u=heat.reference(3, params={"dt": 0.2}, u=u)["u"])["u"]) and run.params["dt"] == 0.25
        for name, value, says in (("dx", 1, "dx is not a parameter"), ("dt", float("nan"), "finite"), ("dt", "fast", "finite"), ("dt", 10**400, "finite"), ("dt", True, "finite"), ("drive", 1.0, "each step")):
            with pytest.raises(mx.MemextError, match=says):
                run.params[name] = value
        with pytest.raises(mx.MemextError, match="cannot be deleted: give it another value"):
            del run.params["dt"]
    with pytest.raises(mx.MemextError, match="has ended"):
        run.params["dt"] = 1
    with mx.Run(heat, u=u, backend="dram") as run:
        run.params["dt"] = 0.2
        run.advance(3)
        assert np.array_equal(run["u"][...], heat.reference(3, params={"dt": 0.2}, u=u)["u"])
        with pytest.raises(mx.MemextError, match="keeps no state between steps.*leave backend= out"):
            run.params["dt"] = 0.3


def test_python_moments(mx, quick_place):  # noqa: F811
    """Changes after an interrupted part, from a progress function, and after a part that was not finite hold from the step that the state is at."""

    @mx.kernel(params={"dt": 0.1})
    def grow(u, dt):
        return u + dt * u

    @mx.reduce(params={"eps": 2.0})
    def raised(u, eps):
        return u + eps

    u = np.ones((12, 62, 62))
    made = {"u": u, "device": quick_place, "dram": "64MiB", "commit_every": 0, "plan": "stream by=60 bt=2", "reductions": [raised]}

    def value(*parts):
        cell = 1.0
        for steps, dt in parts:
            for _ in range(steps):
                cell = cell + dt * cell
        return cell

    def stop(step, steps, phase):
        if step > 6:
            raise KeyboardInterrupt

    with mx.Run(grow, **made) as run:
        run.advance(4)
        with pytest.raises(KeyboardInterrupt):
            run.advance(100000, progress=stop)
        at = run.step
        assert at >= 4
        run.params["dt"] = 0.0
        run.params["eps"] = 3.0
        run.advance(at + 3)
        assert run["u"][5, 5, 5] == value((at, 0.1)) and run.params["dt"] == 0
        assert np.isclose(run.reduce(raised).total, (10 * 60 * 60) * (value((at, 0.1)) + 3))

    def change(step, steps, phase):
        if step > 3:
            run.params["dt"] = 0.5

    with mx.Run(grow, **made) as run:
        run.advance(2)
        run.advance(1000, progress=change)
        changed = run.params["dt"]
        run.advance(1004)
        assert run["u"][5, 5, 5] == value((1000, 0.1), (4, changed))
    with mx.Run(grow, **{**made, "params": {"dt": 1e40}}) as run:
        with pytest.raises(mx.NotFinite):
            run.advance(40)
        at = run.step
        run.params["dt"] = 0.0
        run.advance(40)
        assert run["u"][5, 5, 5] == value((at, 1e40))
    with pytest.raises(mx.MemextError, match="run.params"):
        mx.Run(grow, edit_param={"dt": 1}, **made)
    with mx.Run(grow, **{**made, "keep": True, "check": 5, "until": {"max-change": 0.3}}) as run:
        assert list(run.steps(40, check=10)) == [10] or run.report["met"] is not None
        ended = run.step
    with mx.Run(grow, **{**made, "check": 5, "until": {"max-change": 0.3}}) as run:
        assert list(run.steps(40, check=10)) == [ended] and run.step == ended


def test_checks_are_yielded_again(mx, quick_place):  # noqa: F811
    """A run that goes on yields the committed step once more if it is a check, and only if the program had not come past it."""

    @mx.kernel
    def half(u):
        return 0.5 * u

    made = {"u": np.ones((9, 9, 9)), "device": quick_place, "dram": "64MiB", "keep": True}
    with mx.Run(half, **made) as run:
        seen = []
        for step in run.steps(20, check=4):
            seen.append(step)
            if step == 8:
                break
        assert seen == [4, 8]
    with mx.Run(half, **made) as run:
        assert list(run.steps(20, check=4))[:2] == [8, 12]
    with mx.Run(half, **made) as run:
        assert list(run.steps(20, check=4)) == [20]
    with mx.Run(half, **{**made, "force": True, "resume": False}) as run:
        run.advance(8)
        assert list(run.steps(16, check=4)) == [12, 16]
