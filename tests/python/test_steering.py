# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F401, F811 - fixtures
"""What changes between steps cost, and what they go together with: bytes, stages of kernels, seconds of checks, a disk that is full."""
import json
import os
import shutil

import numpy as np
import pytest
from conftest import thinned
from package import cache, environment, mx  # fixtures
from test_edits import (
    GRID,
    kernels,  # a fixture
)
from test_state_edits import FIXED, check_bytes

SEGMENTS = [(6, 0.05), (9, 0.02), (13, 0.07)]


def moved(report):
    return {name: (phase["read_bytes"], phase["write_bytes"]) for name, phase in report["phases"].items() if "read_bytes" in phase}


@pytest.mark.parametrize("more", [[], ["--integrity"], ["--ranks", 2], ["--commit-every", 1]], ids=lambda m: m[0] if m else "plain")
@pytest.mark.parametrize("name", ["jacobi", "staggered"])
def test_parameters_move_no_byte(memext, quick_place, tmp_path, kernels, name, more):
    """Two runs, one of which changes a parameter at each of its segments: every phase of both reads and writes as many bytes."""
    both = []
    for changes in (False, True):
        place = quick_place / str(changes)
        place.mkdir()
        base = ["--kernel", kernels / f"{name}.c", *GRID, *more, "-t", 3, "-d", place, "--plan", "stream by=20 bt=2", "--keep"]
        found = [moved(memext.run(*base))]
        for upto, value in SEGMENTS:
            done = memext.run("--resume", "-d", place, "-t", upto, *(["--edit-param", f"dt={value}"] if changes else []), *[w for w in more if w != "--integrity"], "--keep")
            found.append(moved(done))
        both.append((found, sum(p.stat().st_size for p in place.rglob("*") if p.is_file())))
    assert both[0] == both[1]


def test_parameters_of_a_program_move_no_byte(mx, quick_place):
    """Likewise in Python, while steps yields."""

    @mx.kernel(params={"dt": 0.1})
    def heat(u, dt):
        return u + dt * (u[1, 0, 0] - u)

    both = []
    for changes in (False, True):
        with mx.Run(heat, u=np.random.default_rng(1).random((20, 30, 40)), device=quick_place / f"{changes}.memext", dram="64MiB", plan="stream by=28 bt=2") as run:
            for step in run.steps(20, check=4):
                if changes and step < 20:
                    run.params["dt"] = 0.1 / step
            both.append([moved(r) for r in run.reports])
    assert both[0] == both[1] and len(both[0]) == 5


STAGES = {"two": ["stream by=20 bt=2"], "four": ["stream by=9 bt=4", "redundant by=8 bz=9 bt=2"], "integrity": ["stream by=20 bt=2"]}


@pytest.mark.parametrize("how", STAGES)
@pytest.mark.parametrize("fields", [1, 2])
def test_stages(mx, quick_place, how, fields):
    """A kernel of two stages whose state, parameter and read-only field are changed between steps: the bits of numpy, also of a program that is started again."""

    def first(u, v, k, dt):
        return u + dt * k * v[1, 0, 0], v

    def second(u, v, k, dt):
        return u, v - dt * k * (u - u[-1, 0, 0])

    def half(u, k, dt):
        return u + 0.5 * dt * k * (u[1, 0, 0] - u)

    def other(u, k, dt):
        return u - dt * k * (u[0, 1, 0] - u[0, -1, 0])

    kernel = mx.stages(*((first, second) if fields == 2 else (half, other)), fixed=["k"], params={"dt": 0.1})
    rng, shape = np.random.default_rng(3), (22, 22, 32)
    state, k, more = {n: rng.random(shape) for n in "uv"[:fields]}, rng.random(shape), rng.random((3, *shape))
    made = {**state, "k": k, "device": quick_place, "dram": "64MiB", "keep": True, "commit_every": 0, **({"integrity": True} if how == "integrity" else {})}

    def steps(run, last):
        for step in run.steps(9, check=3):
            if step == last:
                return
            run["u"][4:7] = more[0, 4:7]
            run.apply(lambda u, k, dt, z: u + dt * k * (z % 3))
            run.params["dt"] = 0.3 / step
            if step == 3:
                run["k"] = more[1]

    now, field, dt = state, k, 0.1
    for step in (3, 6, 9):
        now = kernel.reference(3, **now, k=field, params={"dt": dt})
        u = now["u"].copy()
        u[4:7] = more[0, 4:7]
        for z in range(20):
            u[z + 1, 1:-1, 1:-1] = u[z + 1, 1:-1, 1:-1] + dt * field[z + 1, 1:-1, 1:-1] * (z % 3)
        now, dt, field = {**now, "u": u}, 0.3 / step, more[1] if step == 3 else field
    for number, last in enumerate((3, 6, None)):
        with mx.Run(kernel, **made, plan=STAGES[how][number % len(STAGES[how])]) as run:
            steps(run, last)
            for report in run.reports:
                check_bytes(report)
    store = mx.open(quick_place)
    assert {n: np.array_equal(store[n], now[n]) for n in state} == dict.fromkeys(state, True)


def test_seconds_of_earlier_checks(memext, quick_place, kernels):
    """A check before a change of dt keeps the seconds that it had, also when the run goes on in other processes."""
    base = ["--kernel", kernels / "jacobi.c", *GRID, "--check", 2, "--plan", "stream by=20 bt=2", "-d", quick_place, "--keep"]
    memext.run(*base, "-t", 4)
    memext.run("--resume", "-d", quick_place, "-t", 8, "--edit-param", "dt=0.5", "--keep")
    done = memext.run("--resume", "-d", quick_place, "-t", 10, "--edit-param", "dt=0.25", "--keep")
    want = {2: 0.2, 4: 0.4, 6: 1.4, 8: 2.4, 10: 2.9}
    assert {n["step"]: n["simulated_s"] for n in done["norms"]} == pytest.approx(want, rel=1e-14)
    again = memext.run("--resume", "-d", quick_place, "--keep")
    assert [n["simulated_s"] for n in again["norms"]] == [n["simulated_s"] for n in done["norms"]]


@pytest.fixture
def fixed(memext, tmp_path):
    """(what begins a run with a copy of a field of C, the file of its other values, the checksum of a run with these from step 4 on)"""
    rng = np.random.default_rng(8)
    (tmp_path / "fixed.c").write_text(FIXED)
    for name in ("k0", "k1"):
        np.save(tmp_path / f"{name}.npy", rng.random((24, 64, 72)).astype("f4"))
    np.save(tmp_path / "u.npy", rng.random((24, 64, 72)))
    base, plain = ["--kernel", tmp_path / "fixed.c"], ["--backend", "dram", "--algorithm", "direct"]
    memext.run(*base, "--input", tmp_path / "u.npy", "--field", f"k={tmp_path}/k0.npy", "-t", 4, *plain, "-o", tmp_path / "u4.npy")
    sums = {k: memext.run(*base, "--input", tmp_path / "u4.npy", "--field", f"k={tmp_path}/{k}.npy", "-t", 4, *plain)["checksum"] for k in ("k0", "k1")}
    begin = [*base, "--input", tmp_path / "u.npy", "--field", f"k={tmp_path}/k0.npy", "--field-copy", "-t", 4, "--plan", "stream by=62 bt=2", "--keep"]
    return begin, tmp_path / "k1.npy", sums


def test_full_disk_while_a_field_changes(memext, quick_place, tmp_path, fixed):
    """A write of the pass that gives a read-only field other values finds the disk full: status 3, and the store is as it was; with room it goes on."""
    begin, other, sums = fixed
    memext.run(*begin, "-d", quick_place)
    kept, seen = tmp_path / "kept", set()
    shutil.copytree(quick_place, kept)
    for call in range(1, 9):
        failed = memext("run", "--resume", "-d", quick_place, "-t", 8, "--edit-input", f"k={other}", "--keep", "--backend", "fault:aio", "--fault", f"seed={call},enospc=0.4",
                        "--request-size", "16KiB", check=False)
        seen.add(failed.returncode)
        if failed.returncode != 0:
            assert failed.returncode == 3 and "No space left" in failed.stderr, failed.stderr
            info = json.loads(memext("info", quick_place, "--json", "-").stdout)["store"]
            assert info["step"] < 8
            words = ["--edit-input", f"k={other}"] if info["edits"] == 0 else []
            assert memext.run("--resume", "-d", quick_place, "-t", 8, *words, "--keep", "--backend", "aio")["checksum"] == sums["k1"]
        shutil.rmtree(quick_place)
        shutil.copytree(kept, quick_place)
    assert 3 in seen
    assert memext.run("--resume", "-d", quick_place, "-t", 8, "--keep")["checksum"] == sums["k0"]


def test_no_room_for_other_values(memext, mounted, tmp_path, fixed):
    """The second Buffer of the field does not fit on the disk: refused before anything is written, and the run goes on without the change, or with room."""
    begin, other, sums = fixed
    folder, _ = mounted(24 << 20)
    memext.run(*begin, "-d", folder)
    free = os.statvfs(folder)
    with open(folder / "filler", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - (128 << 10))
    before = (folder / "memext.store").read_bytes()
    failed = memext("run", "--resume", "-d", folder, "-t", 8, "--edit-input", f"k={other}", "--keep", check=False)
    assert failed.returncode in (2, 3) and ("does not fit" in failed.stderr or "there is no room for" in failed.stderr), failed.stderr
    assert (folder / "memext.store").read_bytes()[:65536] == before[:65536]
    os.unlink(folder / "filler")
    assert memext.run("--resume", "-d", folder, "-t", 8, "--edit-input", f"k={other}", "--keep")["checksum"] == sums["k1"]


REDUCED = {"stream": {"plan": "stream by=20 bt=2"}, "pieces": {"plan": "redundant by=9 bz=8 bt=3"}, "integrity": {"plan": "stream by=20 bt=4", "integrity": True},
           "mmap": {"plan": "stream by=10 bt=2", "backend": "mmap"}, "three": {"plan": "stream by=20 bt=2", "commit_every": 1000}}


@pytest.mark.parametrize(("form", "how"), [*(("jacobi", h) for h in ("pieces", "integrity", "three")), ("leapfrog", "stream"), ("stages", "stream"),
                                           *thinned([("jacobi", "stream"), ("jacobi", "mmap"), ("leapfrog", "pieces")], lambda *case: False)])
def test_reductions_of_stored_states(mx, quick_place, monkeypatch, form, how):
    """Declared reductions at every check: the bits of a pass, and no pass; not a byte more is moved than by a run without them."""
    def jacobi(u, v, k):
        return u + 0.1 * k * (v[1, 0, 0] - u), v - 0.1 * (u - v[0, 1, 0])

    def leapfrog(u, v, k):
        return 2 * u - u.old + 0.01 * k * (v[1, 0, 0] - u), v.old - 0.1 * (u - v[0, 1, 0])

    def first(u, v, k):
        return u + 0.1 * k * (v[1, 0, 0] - u)

    def second(v, u):
        return v - 0.1 * (u - v[0, 1, 0])

    kernel = mx.stages(first, second, fixed=["k"], name="stages") if form == "stages" else mx.kernel({"jacobi": jacobi, "leapfrog": leapfrog}[form], fixed=["k"])

    def largest(u, v):
        return abs(u - v) * 2

    def total(u, v, x, z, t):
        return u * v + 0.001 * x * z + t

    def least(v):
        return v

    def near(u):
        return u[1, 0, 0] - u

    def with_k(u, k):
        return u * k

    operations = {largest: "max", total: "sum", least: "min", near: "sum", with_k: "sum"}
    declared, passes = ([mx.reduce(f, op=op) for f, op in operations.items()] for _ in range(2))
    rng, shape = np.random.default_rng(2), (22, 22, 32)
    made = {n: rng.random(shape) for n in "uvk"} | {"device": quick_place, "dram": "64MiB", "keep": True, **REDUCED[how]}
    import memext.run
    by_pass = memext.run.reduce_store
    bytes_of, called = [], []

    def counted(run, reduction, *more):
        called.append(reduction)
        return by_pass(run, reduction, *more)

    monkeypatch.setattr(memext.run, "reduce_store", counted)
    for reductions in ([], declared):
        with mx.Run(kernel, **made, reductions=reductions, resume=False, force=True) as run:
            for step in run.steps(13, check=4):
                values = [run.reduce(r).total for r in passes]
                called.clear()
                assert [run.reduce(r).total for r in reductions] == values[:len(reductions)]
                assert {r.name for r in called} == ({"near", "with_k"} if reductions and step < 13 else {r.name for r in reductions})
            bytes_of.append([moved(r) for r in run.reports])
    assert bytes_of[0] == bytes_of[1] and len(bytes_of[0]) == 4


def test_stored_reductions_and_changes(mx, quick_place):
    """Of a changed state nothing is known of before, also when the change is committed; a program that is started again finds the value in the store."""

    @mx.kernel
    def half(u):
        return 0.5 * u

    @mx.reduce(op="max")
    def largest(u):
        return u

    made = {"u": np.random.default_rng(9).random((9, 9, 9)), "device": quick_place, "dram": "64MiB", "keep": True, "reductions": [largest]}
    with mx.Run(half, **made) as run:
        for step in run.steps(8, check=4):
            value = run.reduce(largest).total
            assert value == np.asarray(run["u"])[1:-1, 1:-1, 1:-1].max()
            if step == 4:
                break
    with mx.Run(half, **made) as run:
        for step in run.steps(8, check=4):
            if step == 4:
                assert mx.open(quick_place).info["last_check"]["stored"] == [value] == [run.reduce(largest).total]
                run["u"][3, 3, 3] = 7.0
                assert run.reduce(largest).total == 7.0
                break
    assert mx.open(quick_place).info["edits"] == 1
    with mx.Run(half, **made) as run:
        run.advance(4)
        assert mx.open(quick_place).info["last_check"] is None and run.reduce(largest).total == 7.0
        assert run.advance(8).reduce(largest).total == 7.0 / 16
