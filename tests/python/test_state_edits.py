# SPDX-License-Identifier: BSD-3-Clause
"""The state of a run, changed between steps: the bits are those of a run that begins with the changed state, however often the program is ended and started again."""
import itertools
import os
import random
import shutil
import subprocess

import numpy as np
import pytest
from package import EXAMPLES, cache, environment, mx  # noqa: F401 (fixtures)
from test_edits import GRID, HEAD, KERNELS, PLANS
from test_edits import kernels  # noqa: F401 (a fixture)

END = 13
MORE = {"plain": [], "ranks": ["--ranks", 2], "mmap": ["--backend", "mmap"], "aio": ["--backend", "aio"], "integrity": ["--integrity"], "three": ["--commit-every", 1], "host": ["--accel", "host"]}
SIDES = {"fixed": [], "images": ["--side", "z=mirror", "--side", "y=periodic", "--side", "x=odd,edge"], "around": ["--side", "z=periodic", "--side", "u:y=odd-node"]}


def fields_of(name):
    return {"jacobi": ["u"], "leapfrog": ["u", "u.old"], "staggered": ["e", "u"]}[name]


def export(memext, place, folder, names):
    paths = {n: folder / f"{n}-out.npy" for n in names}
    words = [w for n, p in paths.items() for w in ("-o", f"{n}={p}")]
    memext("export", place, *words, "--overwrite")
    return {n: np.load(p) for n, p in paths.items()}


def check_bytes(report):
    for name, phase in report["phases"].items():
        if phase.get("predicted_read_bytes") is not None:
            assert (name, phase["read_bytes"], phase["write_bytes"]) == (name, phase["predicted_read_bytes"], phase["predicted_write_bytes"])


@pytest.mark.parametrize(("name", "more", "sides"), [*itertools.product(KERNELS, MORE, ["images"]), *itertools.product(KERNELS, ["plain", "ranks", "integrity"], ["fixed"]), ("jacobi", "plain", "around"), ("leapfrog", "ranks", "around")])
@pytest.mark.each_value
def test_command(memext, quick_place, kernels, tmp_path, name, more, sides):  # noqa: F811
    """Cells of the file, frames that follow them, a parameter that changes with them: as a run from the state that export writes. Two changes, one without steps."""
    rng = np.random.default_rng(sum(map(ord, name + more + sides)))
    words, fields = [*MORE[more], *SIDES[sides]], fields_of(name)
    given, plans = MORE[more], PLANS if more != "host" else PLANS[:2] * 2  # others cannot compute on accelerators
    memext.run("--kernel", kernels / f"{name}.c", *GRID, *words, "-t", 5, "-d", quick_place, "--plan", "stream by=10 bt=2", "--keep")
    for step, plan, framed in ((5, plans[0], True), (9, plans[2], False)):
        state = export(memext, quick_place, tmp_path, fields)
        changed = fields[-1] if framed else fields[0]
        cells = rng.random([n - 0 if framed else n - 2 for n in state[changed].shape]).astype(state[changed].dtype)
        np.save(tmp_path / "cells.npy", cells)
        edit = ["--edit-input", f"{changed}={tmp_path}/cells.npy", "--edit-param", f"dt={0.01 * step}"]
        last = 9 if step == 5 else END
        done = memext.run("--resume", "-d", quick_place, "-t", step if framed else last, *edit, *given, "--plan", plan, "--keep")
        if more != "mmap":
            check_bytes(done)
        if framed:
            edited = export(memext, quick_place, tmp_path, fields)
            inside = (slice(1, -1),) * 3
            keep = slice(1, -1) if sides == "around" else slice(None)
            assert np.array_equal(edited[changed][inside][:, keep], cells[inside][:, keep])
            assert all(np.array_equal(edited[n], state[n]) for n in fields if n != changed)
            done = memext.run("--resume", "-d", quick_place, "-t", last, *given, "--plan", plans[1], "--keep")
        else:
            state[changed][1:-1, 1:-1, 1:-1] = cells
            edited = state
        inputs = []
        for n in fields:
            np.save(tmp_path / f"{n}-in.npy", edited[n])
            inputs += ["--input", f"{n}={tmp_path}/{n}-in.npy"]
        # A kernel that counts steps (T) begins at 0 there.
        text = (kernels / f"{name}.c").read_text().replace("* T", f"* (T + {step})")
        (tmp_path / "later.c").write_text(text)
        want = memext.run("--kernel", tmp_path / "later.c", *GRID[6:], *inputs, *SIDES[sides], "--param", f"dt={0.01 * step}", "-t", last - step, "--backend", "dram", "--algorithm", "direct")
        assert done["checksum"] == want["checksum"]
    if more != "ranks":
        assert "edited     2 times, the last time at step 9" in memext("info", quick_place).stdout


REFUSED = [
    (["v=cells.npy"], [], "the kernel has no field v"), (["small.npy"], [], "needs (20, 18, 16)"), (["single.npy"], [], "convert the file"), (["absent.npy"], [], "cannot be opened"),
    (["cells.npy", "cells.npy"], [], "twice"), (["cells.npy"], ["--verify"], "--verify"), (["cells.npy"], ["-o", "cells.npy", "--overwrite"], "--edit-input"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "more", "says"), REFUSED)
def test_refusals(memext, quick_place, tmp_path, monkeypatch, files, more, says):
    monkeypatch.chdir(tmp_path)
    for name, shape, kind in (("cells", (20, 18, 16), "f8"), ("small", (20, 18, 15), "f8"), ("single", (20, 18, 16), "f4")):
        np.save(f"{name}.npy", np.ones(shape, kind))
    memext.run("-n", 16, 18, 20, "-t", 3, "-d", quick_place, "--keep")
    before = {p: p.read_bytes() for p in quick_place.iterdir()}
    words = [w for file in files for w in ("--edit-input", file)]
    refused = memext("run", "--resume", "-d", quick_place, "-t", 9, *words, *more, check=False)
    assert refused.returncode == 2 and says in refused.stderr, refused.stderr
    assert {p: p.read_bytes() for p in quick_place.iterdir()} == before
    fresh = memext("run", "-n", 16, 18, 20, "-t", 3, "-d", quick_place, "--force", "--edit-input", "cells.npy", check=False)
    assert fresh.returncode == 2 and "needs --resume" in fresh.stderr


def test_not_finite(memext, quick_place, tmp_path):
    cells = np.ones((20, 18, 16))
    cells[3, 4, 5] = np.inf
    np.save(tmp_path / "cells.npy", cells)
    kept = memext.run("-n", 16, 18, 20, "-t", 3, "-d", quick_place, "--keep")
    refused = memext("run", "--resume", "-d", quick_place, "-t", 3, "--edit-input", tmp_path / "cells.npy", check=False)
    assert refused.returncode == 6 and "the changed state of step 3 has 1 cell that is not finite (u at x=5, y=4, z=3)" in refused.stderr
    assert memext.run("--resume", "-d", quick_place, "-t", 3, "--keep")["checksum"] == kept["checksum"]
    memext.run("--resume", "-d", quick_place, "-t", 4, "--edit-input", tmp_path / "cells.npy", "--nonfinite", "ignore")


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_commit_that_fails(memext, quick_place, kernels, tmp_path, ranks):  # noqa: F811
    """At every call that a pass makes: the state is the one before or the changed one, of the parameter too, and what goes on has the bits of either."""
    np.save(tmp_path / "cells.npy", np.random.default_rng(4).random((22, 20, 30)))
    base = ["--kernel", kernels / "jacobi.c", *GRID, "-t", 5, "-d", quick_place, "--keep", "--plan", "stream by=20 bt=2", *(["--ranks", ranks] if ranks > 1 else [])]
    edit = ["--edit-input", tmp_path / "cells.npy", "--edit-param", "dt=0.05"]
    memext.run(*base)
    kept = quick_place.parent / f"{quick_place.name}-kept"
    shutil.copytree(quick_place, kept)

    def again():
        shutil.rmtree(quick_place)
        shutil.copytree(kept, quick_place)

    sums = set()
    for words in ([], edit):
        sums.add(memext.run("--resume", "-d", quick_place, "-t", 12, *words)["checksum"])
        again()
    assert len(sums) == 2
    seen = set()
    for call in (1, 2, 3, 5, 9, 14, 20, 27, 35, 44, 54):
        failed = memext("run", "--resume", "-d", quick_place, "-t", 12, *edit, "--backend", "fault:aio", "--fault", f"seed={call},eio=0.02", check=False)
        if failed.returncode != 0:
            assert failed.returncode == 3, failed.stderr
            seen.add(memext.run("--resume", "-d", quick_place, "-t", 12, "--backend", "aio")["checksum"])
        again()
    assert seen <= sums and seen
    shutil.rmtree(kept)


@pytest.fixture
def heat(mx):  # noqa: F811
    @mx.kernel(fixed="k", params={"dt": 0.1})
    def heat(u, k, dt):
        return u + dt * k * (u[1, 0, 0] - 2 * u + u[-1, 0, 0])

    return heat


def test_python_assignments(mx, quick_place, heat):  # noqa: F811
    """What numpy does with the same words, read back before and after it is committed."""
    rng = np.random.default_rng(5)
    u, k = rng.random((12, 11, 10)), rng.random((10, 9, 8))
    b = rng.random((12, 11, 10))
    changes = [(slice(2, 7), b[2:7]), ((..., 3), b[..., 3]), ((5, slice(None, None, -1), slice(8, 2, -2)), b[5, :, :3]), ((slice(None, None, 3),), 7), ((0, 0, 0), -1.5), (slice(4, 4), 3), ((slice(1, -1),) * 3, b[1:-1, 1:-1, 1:-1]),
               ((slice(2, 9), 4), b[1, 0, :]), (slice(9, 3, -2), b[:3])]  # fmt: skip
    with mx.Run(heat, u=u, k=k, device=quick_place, dram="64MiB") as run:
        now = heat.reference(2, u=u, k=k)["u"]
        for step, (key, value) in zip(run.steps(2 + len(changes) - 1, check=1), [(None, None), *changes]):
            if key is None:
                continue
            assert np.array_equal(run["u"][...], now)
            now = now.copy()
            now[key] = value
            run["u"][key] = value
            assert np.array_equal(run["u"][...], now) and np.array_equal(run["u"][3, ::2, -4:], now[3, ::2, -4:])
            now = heat.reference(1, u=now, k=k)["u"]
        before = run["u"]
        np.save(quick_place / "b.npy", b)
        run["u"][...] = mx.open(quick_place / "b.npy")
        assert np.array_equal(before[2], b[2])
        run.advance(run.step + 1)
        assert np.array_equal(run["u"][...], heat.reference(1, u=b, k=k)["u"])
        with pytest.raises(mx.MemextError, match="has changed since it was opened"):
            before[2] = 0
        for value, says in ((np.ones((4, 5)), "cannot be assigned to a part of shape"), (1j, "real numbers")):
            with pytest.raises(mx.MemextError, match=says):
                run["u"][3] = value
        with pytest.raises(mx.MemextError, match="is read-only"):
            run["k"][3] = 1


def test_python_apply(mx, quick_place, heat):  # noqa: F811
    rng = np.random.default_rng(6)
    u, k = rng.random((12, 11, 10)), rng.random((10, 9, 8))
    with mx.Run(heat, u=u, k=k, device=quick_place, dram="64MiB", params={"dt": np.linspace(0.1, 0.2, 9)}) as run:
        with pytest.raises(mx.MemextError, match="the run has no state yet"):
            run.apply(lambda u: 2 * u)
        run.advance(2)
        run.apply(lambda u, k, x, y, z, t, dt: u + k * x - y * z + t * dt)
        want = run.store["u"][...]
        z, y, x = np.meshgrid(*map(np.arange, (10, 9, 8)), indexing="ij")
        want[1:-1, 1:-1, 1:-1] += k * x
        want[1:-1, 1:-1, 1:-1] -= y * z - 2 * np.linspace(0.1, 0.2, 9)[2]
        assert np.allclose(run["u"][...], want, rtol=1e-14, atol=1e-14)

        def twice(u):
            u *= 2

        run.apply(twice, frame=True)
        assert np.allclose(run["u"][...], 2 * want, rtol=1e-14, atol=1e-14)
        state = run["u"][...]
        run.advance(2)
        assert np.array_equal(run["u"][...], state) and run.store.info["edits"] == 1
        run.advance(3)
        for wrong, says in ((lambda v: v, "must be fields of the state"), (lambda k: k, "must be fields of the state"), (lambda: 0, "has the arguments none")):
            with pytest.raises(mx.MemextError, match=says):
                run.apply(wrong)

        run.apply(lambda u: u[1:])
        with pytest.raises(mx.MemextError, match="returns a plane of"):
            run["u"][3]
        run.withdraw()

        def broken(u, z):
            if z == 5:
                raise ValueError("at five")
            return u

        state = run["u"][...]
        run.apply(broken)
        with pytest.raises(ValueError, match="at five"):
            run.advance(4)
        assert run.step == 3 and np.array_equal(run.store["u"][...], state)
    with mx.Run(heat, u=u, k=k, backend="dram") as run:
        run.advance(2)
        with pytest.raises(mx.MemextError, match="leave backend= out"):
            run.apply(lambda u: 2 * u)


def test_python_old_and_several(mx, quick_place):  # noqa: F811
    """The step before of a leapfrog kernel, at odd and even steps; two fields of a staggered one."""

    @mx.kernel
    def wave(u):
        return 2 * u - u.old + 0.1 * (u[1, 0, 0] - 2 * u + u[-1, 0, 0])

    rng = np.random.default_rng(8)
    now, old, inside = rng.random((9, 10, 11)), rng.random((9, 10, 11)), (slice(1, -1),) * 3
    new = now.copy()  # both arrays have the same frame
    new[inside] = old[inside]
    old = new
    with mx.Run(wave, u=now, u_old=old, device=quick_place, dram="64MiB") as run:
        for step in run.steps(5, check=1):
            new = wave.reference(1, u=now, u_old=old)["u"]
            old, now = now.copy(), new.copy()
            assert np.array_equal(run["u"][...], now) and np.array_equal(run["u_old"][...], old)
            if step % 3 == 0:
                run["u_old"][3, 1:-1, 1:-1] = old[3, 1:-1, 1:-1] = step
            else:
                run.apply(lambda u, u_old: (u_old, u))
                now[inside], old[inside] = old[inside].copy(), now[inside].copy()

    def magnetic(h, e):
        return h.old - 0.5 * (e[1, 0, 0] - e)

    def electric(e, h):
        return e.old - 0.5 * (h - h[-1, 0, 0])

    yee = mx.staggered(magnetic, electric)
    state = {"e": rng.random((9, 10, 11)), "h": rng.random((9, 10, 11))}
    with mx.Run(yee, **state, device=quick_place, dram="64MiB", force=True, resume=False) as run:
        for step in run.steps(4, check=1):
            state = {n: a.copy() for n, a in yee.reference(1, **state).items()}
            assert all(np.array_equal(run[n][...], state[n]) for n in "eh")
            run["h"][step] = state["h"][step] = step / 7


def test_python_goes_on(mx, quick_place, heat):  # noqa: F811
    """A program that is started again makes no change twice; what it does at a step whose changes are committed is ignored, with a word."""
    rng = np.random.default_rng(7)
    u, k = rng.random((12, 11, 10)), rng.random((10, 9, 8))
    made = {"u": u, "k": k, "device": quick_place, "dram": "64MiB", "keep": True}
    with mx.Run(heat, **made) as run:
        for step in run.steps(6, check=3):
            run["u"][4] = step
            run.params["dt"] = 0.05
    state = mx.open(quick_place)["u"][...]
    assert (state[4] == 6).all()
    with mx.Run(heat, **made) as run:
        assert list(run.steps(6, check=3)) == [6]
        with pytest.warns(RuntimeWarning, match="an earlier process has already changed step"):
            run["u"][4] = 7
        assert np.array_equal(run["u"][...], state)
        run.advance(7)
        assert np.array_equal(run["u"][...], heat.reference(1, u=state, k=k, params={"dt": 0.05})["u"])
        run["u"][4] = 8
        run.close(keep=True)
    assert (mx.open(quick_place)["u"][4] == 8).all() and mx.open(quick_place).step == 7
    with pytest.raises(RuntimeError), mx.Run(heat, **made) as run:
        run.advance(8)
        run["u"][4] = 9
        raise RuntimeError
    assert not (mx.open(quick_place)["u"][4] == 9).all() and mx.open(quick_place).step == 8


@pytest.fixture
def steered(mx, monkeypatch):  # noqa: F811
    """The example programs, and the same as loops of numpy."""
    import importlib

    monkeypatch.syspath_prepend(str(EXAMPLES / "steered"))
    return importlib.import_module


@pytest.mark.parametrize(("name", "plain"), [("adaptive_dt", "burgers"), ("volume_preserving", "allen_cahn"), ("coupled_pipe", "pipe"), ("nudging", "tracer")])
def test_examples(steered, quick_place, name, plain):
    assert len((EXAMPLES / "steered" / f"{name}.py").read_text().splitlines()) <= 40
    found, want = steered(name).compute(quick_place), getattr(steered("reference"), plain)()
    for a, b in zip(found, want) if isinstance(want, tuple) else ((found, want),):
        assert np.array_equal(a, b)


def test_taken_along(mx, quick_place):  # noqa: F811
    """What a sweep has taken of the state before its last step; the same of a program that is started again; refused where there is none."""

    @mx.kernel
    def half(u):
        return 0.5 * u

    @mx.reduce(op="max")
    def largest(u):
        return u

    @mx.reduce(per="z")
    def planes(u):
        return u

    made = {"u": np.random.default_rng(9).random((9, 9, 9)), "device": quick_place, "dram": "64MiB", "keep": True, "reductions": [planes, largest]}
    seen = []
    with mx.Run(half, **made) as run:
        run.advance(0)
        with pytest.raises(mx.MemextError, match="no check has computed largest at step 0"):
            run.reduce(largest, taken=True)
        for step in run.steps(12, check=4):
            seen.append(run.reduce(largest, taken=True).total)
            assert seen[-1] == 2 * run.reduce(largest).total
            if step == 8:
                break
        with pytest.raises(mx.KernelError, match="the reduction without per="):
            run.reduce(planes, taken=True)
    with mx.Run(half, **made) as run:
        for step in run.steps(12, check=4):
            assert step != 8 or run.reduce(largest, taken=True).total == seen[-1]


def test_python_read_only_fields(mx, quick_place, heat):  # noqa: F811
    """Other values of a field that the kernel only reads: from that step on, also for a program that is started again, and for functions that change the state."""
    rng = np.random.default_rng(10)
    u, k, more = rng.random((12, 11, 10)), rng.random((10, 9, 8)), rng.random((3, 10, 9, 8))
    inside = (slice(1, -1),) * 3
    made = {"u": u, "k": k, "device": quick_place, "dram": "64MiB", "keep": True, "integrity": True}

    now = heat.reference(2, u=u, k=k)["u"]
    now[inside] += more[0] - k
    now[inside] *= more[0]
    for value in (more[0], more[1], np.full_like(k, 0.25)):
        now = heat.reference(2, u=now, k=value)["u"]

    def steps(run, last):
        for step in run.steps(8, check=2):
            if step == 2:
                run.apply(lambda u, k, z: u + (more[0][z] - k))
                run["k"] = more[0]
                assert np.array_equal(run["k"][inside], more[0])
                run.apply(lambda u, k: u * k)
            if step == 4:
                run["k"] = more[2]
                run["k"] = more[1]
            if step == last:
                break
            if step == 6:
                run.apply(lambda u, k, z: u + (k - more[1][z]))
                run["k"] = 0.25

    with mx.Run(heat, **{**made, "keep": False}) as run:
        steps(run, None)
        assert np.array_equal(run["u"][...], now) and run.store.info["edits"] == 3
    for last in (2, 4, 6, None):  # what was changed where the loop was left is committed at the end
        with mx.Run(heat, **made) as run:
            steps(run, last)
            if last is None:
                assert np.array_equal(run["u"][...], now) and np.array_equal(run["k"][inside], np.full_like(k, 0.25))
    with mx.Run(heat, **{**made, "force": True, "resume": False}) as run:
        run.advance(2)
        for name, value, says in (("u", u, "change it with run"), ("v", u, "the kernel's are k"), ("k", u[:5], "give shape"), ("k", "random", "an array, a number")):
            with pytest.raises(mx.MemextError, match=says):
                run[name] = value
    np.save(quick_place / "k.npy", np.pad(k, 1))
    with mx.Run(heat, **{**made, "k": quick_place / "k.npy", "force": True, "resume": False, "integrity": False}) as run:
        run.advance(2)
        with pytest.raises(mx.MemextError, match="field_copy=True"):
            run["k"] = k


FIXED = """#define MX_NAME "fixed"
#define MX_RADIUS 1
#define MX_FIXED_RADIUS 1
#define MX_STATE(F) F(u, double)
#define MX_FIXED(F) F(k, float)
#include <memext/cell.h>
MX_CELL
SET(u, AT(u, 0, 0, 0) + 0.1 * AT(k, 0, 0, 1) * (AT(u, 0, 1, 0) - AT(u, 0, 0, 0)));
MX_END
"""


@pytest.mark.parametrize(("ranks", "more"), [(1, []), (1, ["--integrity"]), (2, []), (2, ["--integrity"]), (3, [])])
def test_command_read_only(memext, quick_place, tmp_path, ranks, more):
    """Twice other values of a read-only field, with a field of the state and alone; the run goes on with another number of ranks; a failed commit leaves the former values."""
    rng = np.random.default_rng(ranks)
    (tmp_path / "fixed.c").write_text(FIXED)
    k = [rng.random((24, 14, 12)).astype("f4") for _ in range(3)]
    for i, cells in enumerate(k):
        np.save(tmp_path / f"k{i}.npy", cells)
    np.save(tmp_path / "u.npy", rng.random((24, 14, 12)))
    several = ["--ranks", ranks] if ranks > 1 else []
    base = ["--kernel", tmp_path / "fixed.c"]
    memext.run(*base, "--input", tmp_path / "u.npy", "--field", f"k={tmp_path}/k0.npy", "--field-copy", "-t", 4, "-d", quick_place, "--plan", "stream by=6 bt=2", "--keep", *several, *more)
    failed = memext("run", "--resume", "-d", quick_place, "-t", 6, "--edit-input", f"k={tmp_path}/k2.npy", "--keep", *several, "--backend", "fault:aio", "--fault", "seed=1,eio=1", check=False)
    assert failed.returncode == 3, failed.stderr
    first = memext.run("--resume", "-d", quick_place, "-t", 6, "--edit-input", f"k={tmp_path}/k1.npy", "--keep", "--backend", "aio", *several)
    check_bytes(first)
    both = ["--edit-input", f"k={tmp_path}/k2.npy", "--edit-input", f"u={tmp_path}/u.npy"]
    check_bytes(memext.run("--resume", "-d", quick_place, "-t", 8, *both, "--keep", *several))
    done = memext.run("--resume", "-d", quick_place, "-t", 10, *(["--ranks", 2] if ranks != 2 else []), "--keep")
    plain = ["--backend", "dram", "--algorithm", "direct"]
    middle = memext.run(*base, "--input", tmp_path / "u.npy", "--field", f"k={tmp_path}/k0.npy", "-t", 4, *plain, "-o", tmp_path / "u4.npy")
    middle = memext.run(*base, "--input", tmp_path / "u4.npy", "--field", f"k={tmp_path}/k1.npy", "-t", 2, *plain)
    assert first["checksum"] == middle["checksum"]
    want = memext.run(*base, "--input", tmp_path / "u.npy", "--field", f"k={tmp_path}/k2.npy", "-t", 4, *plain)
    assert done["checksum"] == want["checksum"]


def test_read_only_in_place(memext, quick_place, tmp_path):
    (tmp_path / "fixed.c").write_text(FIXED)
    np.save(tmp_path / "k.npy", np.ones((24, 14, 12), "f4"))
    np.save(tmp_path / "bare.npy", np.ones((22, 12, 10), "f4"))
    memext.run("--kernel", tmp_path / "fixed.c", "-n", 10, 12, 22, "--init", "random", "--field", f"k={tmp_path}/k.npy", "-t", 4, "-d", quick_place, "--keep")
    refused = memext("run", "--resume", "-d", quick_place, "-t", 6, "--edit-input", f"k={tmp_path}/k.npy", check=False)
    assert refused.returncode == 2 and "--field-copy" in refused.stderr
    memext.run("--kernel", tmp_path / "fixed.c", "-n", 10, 12, 22, "--init", "random", "--field", f"k={tmp_path}/k.npy", "--field-copy", "-t", 4, "-d", quick_place, "--keep", "--force")
    refused = memext("run", "--resume", "-d", quick_place, "-t", 6, "--edit-input", f"k={tmp_path}/bare.npy", check=False)
    assert refused.returncode == 2 and "give a file with a frame" in refused.stderr


def test_changes_while_the_run_is_under_way(mx, quick_place, heat):  # noqa: F811
    """Are refused, from a progress function and from a function that changes the state; nothing of them is committed."""
    k = np.ones((58, 18, 18))
    with mx.Run(heat, u=np.zeros((60, 20, 20)), k=k, device=quick_place, dram="64MiB") as run:
        run.advance(1)
        said = []

        def late(*_):
            try:
                run.apply(lambda u: u + 1000, frame=True)
            except mx.MemextError as error:
                said.append(str(error))

        def more(u):
            late()
            return u + 1

        run.apply(more)
        run.advance(1, progress=late)
        assert (run["u"][1:-1, 1:-1, 1:-1] == 1).all() and (run["u"][0] == 0).all() and all("the run is computing" in s for s in said) and len(said) >= 58
        assert run.store.info["edits"] == 1
        run.advance(2)
        assert run.store.info["edits"] == 1


def test_what_a_function_keeps(mx, quick_place, heat):  # noqa: F811
    kept = []
    with mx.Run(heat, u=np.ones((12, 200, 200)), k=1.0, device=quick_place, dram="64MiB") as run:
        run.advance(1)
        run.apply(lambda u: kept.append(u))
        run.advance(2)
        assert sum(p.sum() for p in kept) == 10 * 198 * 198


def test_reduce_calls_functions_one_after_the_other(mx, quick_place):  # noqa: F811
    @mx.kernel
    def still(u):
        return u

    @mx.reduce(op="sum")
    def total(u):
        return u

    scratch = np.empty((120, 120))

    def twice(u, z):
        np.multiply(u, 2, out=scratch)
        np.add(scratch, z, out=scratch)
        return scratch

    with mx.Run(still, u=np.random.default_rng(0).random((102, 122, 122)), device=quick_place, dram="256MiB") as run:
        run.advance(1)
        run.apply(twice)
        before = {run.reduce(total).total for _ in range(3)}
        run.advance(1)
        assert before == {run.reduce(total).total}


@pytest.mark.parametrize("sides", [{"x": "odd-node,mirror"}, {"z": "odd-node", "y": "mirror-node,odd"}, {"x": "periodic", "y": "edge", "z": "mirror,odd-node"}, {"z": "periodic"}], ids=str)
def test_images_are_seen_at_once(mx, quick_place, sides):  # noqa: F811
    """What run[NAME] shows before the commit is what is committed: frames that are images, and the nodes of odd ones, of fields with different sides."""

    @mx.kernel
    def two(u, v):
        return 0.5 * (u[1, 0, 0] + v), v[0, 0, 1] - 0.25 * u

    rng = np.random.default_rng(11)
    state = {"u": rng.random((12, 11, 10)) - 0.5, "v": rng.random((12, 11, 10)) - 0.5}
    words = [f"{a}={k}" for a, k in sides.items()] + ([] if "periodic" in str(sides) else ["v:z=mirror-node", "v:x=odd"])
    with mx.Run(two, **state, device=quick_place, dram="64MiB", side=words) as run:
        run.advance(1)
        run["u"][5] = 50.0
        run["v"][...] = rng.random((12, 11, 10)) - 0.5
        run.apply(lambda u, v, z: (v + z, u))
        seen = {n: run[n][...] for n in "uv"}
        run.advance(1)
        for n in "uv":
            assert np.array_equal(run.store[n][...], seen[n])


def test_criterion_and_changes(mx, quick_place, heat):  # noqa: F811
    """The step that has met the criterion is the end, also of the program that is started again after it has changed the state there."""
    made = {"u": np.random.default_rng(0).random((12, 11, 10)), "k": 1.0, "device": quick_place, "dram": "64MiB", "keep": True, "check": 5, "until": {"max-change": 0.05}}
    ends = []
    for _ in range(3):
        with mx.Run(heat, **made) as run:
            for _ in run.steps(200, check=10):
                run["u"][3, 3, 3] = 1.0
            ends.append((run.step, run["u"][...].tobytes()))
    assert len(set(ends)) == 1 and ends[0][0] < 200


TWICE = """import os, sys
import numpy as np, memext as mx

@mx.kernel(params={"dt": 0.1})
def heat(u, dt):
    return u + dt * (u[1, 0, 0] - 2 * u + u[-1, 0, 0])

with mx.Run(heat, u=np.ones((12, 11, 10)), device=sys.argv[1], dram="64MiB", keep=True) as run:
    for step in run.steps(10, check=5):
        run["u"][3] = step
    if sys.argv[2] == "0":
        os._exit(0)
    run.params["dt"] = 0.05
    run["u"][4] = 99.0
    run.advance(10)
    if sys.argv[2] == "1":
        os._exit(0)
    run["u"][5] = 98.0
    for step in run.steps(20, check=5):
        run["u"][5] = step
    print(run["u"][...].sum())
"""


def test_several_transactions_at_a_step(environment, quick_place, tmp_path):  # noqa: F811
    """Killed between them, the program does again what is not in the store, and nothing else."""
    (tmp_path / "twice.py").write_text(TWICE)
    sums = []
    for stops in (["-"], ["0", "-"], ["0", "1", "-"], ["1", "0", "1", "-"]):
        for stop in stops:
            done = subprocess.run([environment, "-W", "ignore", tmp_path / "twice.py", quick_place, stop], capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
        sums.append(done.stdout)
        shutil.rmtree(quick_place), quick_place.mkdir()
    assert len(set(sums)) == 1 and sums[0]


def test_values_of_other_arrays(mx, quick_place, tmp_path, heat):  # noqa: F811
    """Of the run itself, of another run with changes of its own, of a file that changes meanwhile."""
    rng = np.random.default_rng(12)
    u, k = rng.random((12, 11, 10)), np.ones((10, 9, 8))
    with mx.Run(heat, u=u, k=k, device=quick_place / "a.memext", dram="64MiB") as a, mx.Run(heat, u=u + 1, k=k, device=quick_place / "b.memext", dram="64MiB") as b:
        a.advance(0), b.advance(0)
        b["u"][2] = 7.0
        a["u"][...] = b["u"]
        b["u"][...] = 5.0
        changed = u + 1
        changed[2] = 7.0
        assert np.array_equal(a["u"][...], changed)
        a["u"][1:3] = a["u"][2:4]
        changed[1:3] = changed[2:4].copy()
        a.advance(1)
        assert np.array_equal(a["u"][...], heat.reference(1, u=changed, k=k)["u"])
        np.save(tmp_path / "w.npy", u)
        a["u"][...] = mx.open(tmp_path / "w.npy")
        np.save(tmp_path / "w.npy", u + 2)
        with pytest.raises(mx.MemextError, match="has changed since"):
            a.advance(2)
        a.withdraw()
        u = a["u"][...]
        a["u"][...] = a["u"]
        a.advance(2)
        assert np.array_equal(a["u"][...], heat.reference(1, u=u, k=k)["u"])
        with pytest.raises(mx.MemextError, match="the arguments of .* have no names"):
            a.apply(np.add)
        with pytest.raises(mx.MemextError, match="is read-only"):
            mx.open(tmp_path / "w.npy")[3] = 1


def test_dram_of_a_change(memext, quick_place, tmp_path):
    """The planes that a change holds are counted before anything is touched."""
    kernel = tmp_path / "leapfrog.c"
    kernel.write_text(KERNELS["leapfrog"])
    memext.run("--kernel", kernel, "-n", 1000, 1000, 8, "--init", "random", "-d", quick_place, "--keep", "-t", 2, "--algorithm", "redundant")
    np.save(tmp_path / "c.npy", np.ones((8, 1000, 1000)))
    go_on = ["--resume", "-d", quick_place, "--algorithm", "redundant", "--keep"]
    refused = memext("run", *go_on, "-t", 4, "--dram", "60MiB", "--edit-input", f"u={tmp_path}/c.npy", check=False)
    assert refused.returncode == 2 and "the run must hold 8 planes" in refused.stderr, refused.stderr
    memext.run(*go_on, "-t", 4, "--dram", "66MiB", "--edit-input", f"u={tmp_path}/c.npy")
