# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F401, F811 - fixtures
"""Runs that begin with the state of a store in its own place: the bits of a run in another place, and the store is whole until their first commit."""
import os
import random
import shutil

import numpy as np
import pytest
from conftest import wait_until
from package import cache, environment, load, mx  # fixtures
from test_state_kills import KILLS, kill_often

KERNELS = """import memext as mx


@mx.kernel(fixed=["k"], params={"dt": 0.1})
def heat(u, k, dt):
    return u + dt * k * (u[1, 0, 0] + u[-1, 0, 0] + u[0, 1, 0] + u[0, -1, 0] + u[0, 0, 1] + u[0, 0, -1] - 6 * u)


@mx.kernel(fixed=["c"], params={"a": 0.5})
def moved(v, w, c, a):
    return v + a * c * (v[1, 0, 0] - v), w + a * (v - w)


@mx.kernel(params={"dt": 0.2})
def wave(p, dt):
    return 2 * p - p.old + dt * dt * (p[1, 0, 0] + p[-1, 0, 0] + p[0, 1, 0] + p[0, -1, 0] + p[0, 0, 1] + p[0, 0, -1] - 6 * p)


@mx.kernel(params={"dt": 0.2})
def wide(v, dt):
    return v + dt * (v[0, 0, 2] + v[0, 0, -2] - 2 * v)
"""
LONG = bool(os.environ.get("MEMEXT_TEST_LONG"))
SHAPE = (22, 20, 30)
OPTIONS = {"dram": "64MiB", "keep": True}
PLANS = {"stream": {"plan": "stream by=20 bt=2"}, "pieces": {"plan": "redundant by=9 bz=8 bt=3"}, "three": {"plan": "stream by=20 bt=2", "commit_every": 1000}}
MORE = {"plain": {}, "mmap": {"backend": "mmap"}, "aio": {"backend": "aio"}, "integrity": {"integrity": True}, "accel": {"accel": "host"}, "in place": {"in_place": True, "plan": "stream by=20 bt=5"}}
CASES = [("heat", "stream", "integrity"), ("heat", "three", "integrity"), ("moved", "stream", "plain"), ("moved", "pieces", "aio"), ("wave", "stream", "plain"),
         ("wave", "stream", "integrity"), ("wave", "three", "mmap"), ("swapped", "pieces", "plain"), ("built-in", "pieces", "mmap"), ("built-in", "three", "plain"),
         ("heat", "stream", "accel"), ("wave", "stream", "in place")]


@pytest.fixture
def kernels(mx, tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    return load(tmp_path / "kernels.py")


def begin(mx, kernels, place, steps=4, **more):
    """A store with u and k, the state of the run in it: {name: cells}"""
    rng = np.random.default_rng(5)
    with mx.Run(kernels.heat, u=rng.random(SHAPE), k=rng.random(SHAPE), device=place, resume=False, force=True, **{**OPTIONS, **PLANS["stream"], **more}) as run:
        run.advance(steps)
    return {n: np.asarray(mx.open(place)[n]) for n in "uk"}


def check_bytes(run, backend=None):
    for name, phase in run.report["phases"].items():
        if phase.get("predicted_read_bytes") is not None and backend != "mmap":
            assert (name, phase["read_bytes"], phase["write_bytes"]) == (name, phase["predicted_read_bytes"], phase["predicted_write_bytes"])


def values(mx, place, of):
    """What each kernel begins with: fields of the store, arrays and numbers, and the same as arrays."""
    store, w = mx.open(place), np.random.default_rng(9).random(SHAPE)
    return {"heat": {"u": store["u"], "k": store["k"]}, "moved": {"v": store["u"], "w": w, "c": store["k"]}, "wave": {"p": store["k"], "p_old": store["u"]},
            "swapped": {"v": store["k"], "w": store["u"], "c": 0.25}, "built-in": {"u": store["u"]}}[of]


@pytest.mark.parametrize(("of", "plan", "more"), CASES)
def test_bits(mx, quick_place, tmp_path, kernels, of, plan, more):
    """As from arrays in memory in another place, also where a second run follows; the store takes no more than it needs."""
    words = {**OPTIONS, **PLANS[plan], **MORE[more]}
    begin(mx, kernels, quick_place, **({} if more in ("accel", "in place") else MORE[more]))
    kernel = {"swapped": kernels.moved, "built-in": None}.get(of) or getattr(kernels, of, None)
    here = values(mx, quick_place, of)
    arrays = {n: np.asarray(v) if hasattr(v, "shape") else v for n, v in here.items()}
    with mx.Run(kernel, **arrays, device=tmp_path / "other.memext", **words) as run:
        run.advance(5)
        want = {n: np.asarray(run[n]) for n in arrays if n in run.store}
    with mx.Run(kernel, **here, device=quick_place, **words) as run:
        run.advance(5)
        check_bytes(run, words.get("backend"))
        assert any("begins with step 4 of the run in" in r for r in run.remarks)
        assert {n: np.asarray(run[n]).tobytes() for n in want} == {n: a.tobytes() for n, a in want.items()}
    info = mx.open(quick_place).info
    assert (info["former"]["step"], info["former"]["runs"], [f["name"] for f in info["former"]["fields"]]) == (4, 2, ["u", "k"])
    extents = info["extents"]
    assert all(a["offset_bytes"] + a["bytes"] <= b["offset_bytes"] or b["offset_bytes"] + b["bytes"] <= a["offset_bytes"]
               for a in extents for b in extents if a["name"] != b["name"])


def test_space(mx, quick_place, kernels):
    """Runs that follow one another in a place: its Buffers lie where the former one has no state, so that the file stops growing."""
    begin(mx, kernels, quick_place)
    sizes = []
    for number in range(6):
        with mx.Run(kernels.heat, u=mx.open(quick_place)["u"], k=mx.open(quick_place)["k"], device=quick_place, resume=False, **OPTIONS, **PLANS["stream"]) as run:
            run.params["dt"] = 0.1 / (1 + number)
            plan = run.plan(4)
            run.advance(4)
        sizes.append(os.stat(quick_place / "memext.store").st_size)
        assert mx.open(quick_place).info["former"]["runs"] == number + 2 and plan["phases"]["init"]["predicted_write_bytes"] > 0
    assert max(sizes) == max(sizes[:2]) and sizes[0] == sizes[2] == sizes[4]


@pytest.mark.parametrize("words", [{}, {"integrity": True}], ids=["plain", "integrity"])
def test_calls_that_fail(mx, quick_place, tmp_path, kernels, words):
    """At each call that fails the place holds the whole former store, which can be read and gone on with, or a commit of the new one; the same program
    started again ends with the same bits."""
    former = begin(mx, kernels, quick_place, **{**words, **PLANS["pieces"], "commit_every": 0})  # whose algorithm finds the frame in both Buffers
    shutil.copytree(quick_place, tmp_path / "kept")
    arguments = dict(w=np.random.default_rng(9).random(SHAPE), device=quick_place, **OPTIONS, **{**PLANS["stream"], **words})
    with mx.Run(kernels.heat, u=former["u"], k=former["k"], device=tmp_path / "after.memext", **OPTIONS) as run:
        after = np.asarray(run.advance(6)["u"])

    def fields():
        store = mx.open(quick_place)
        return {"v": store["u"], "c": store["k"]}

    def goes_on():
        shutil.rmtree(tmp_path / "other", ignore_errors=True)
        shutil.copytree(quick_place, tmp_path / "other")
        rng = np.random.default_rng(5)
        with mx.Run(kernels.heat, u=rng.random(SHAPE), k=rng.random(SHAPE), device=tmp_path / "other", **OPTIONS, **PLANS["pieces"], commit_every=0) as run:
            return np.array_equal(np.asarray(run.advance(10)["u"]), after)

    with mx.Run(kernels.moved, **fields(), **arguments) as run:
        want = np.asarray(run.advance(5)["v"]).tobytes()
    stood = set()
    for call in (range(1, 12) if LONG else (1, 2, 3, 5)):
        shutil.rmtree(quick_place)
        shutil.copytree(tmp_path / "kept", quick_place)
        try:
            with mx.Run(kernels.moved, **fields(), **arguments, backend="fault:aio", fault=f"call={call},calls_from=pwrite,errno=5") as run:
                run.advance(5)
        except mx.MemextError:
            pass
        mx.Run(shape=SHAPE, device=tmp_path, backend="fault:aio", fault="call=1000000000").plan(1)  # no call fails from here on
        store = mx.open(quick_place)
        stood.add(store.info["former"] is None)
        if store.info["former"] is None:
            assert store.step == 4 and all(np.array_equal(np.asarray(store[n]), a) for n, a in former.items()) and goes_on()
        with mx.Run(kernels.moved, **fields(), **arguments, resume="auto" if store.info["former"] is None else True) as run:
            assert np.asarray(run.advance(5)["v"]).tobytes() == want
    assert stood == {True, False}


PROGRAM = """import sys
import numpy as np, memext as mx
sys.path.insert(0, sys.argv[2])
from kernels import moved
place, words = sys.argv[1], {w: (True if w == "integrity" else 1000) for w in sys.argv[3:]}
store = mx.open(place)
with mx.Run(moved, v=store["u"], c=store["k"], w=np.random.default_rng(9).random((22, 100, 150)), device=place, dram="64MiB", keep=True,
            **{"commit_every": 0, "plan": "stream by=98 bt=2", **words}) as run:
    for step in run.steps(12, check=3):
        run["w"][5:9] = run["v"][3, 4, 5]
    np.save(place + "/result.npy", run["v"][...])
"""


@pytest.mark.parametrize("words", [[], ["integrity"], ["commit_every"]], ids=["two", "integrity", "three"])
def test_program_that_is_killed(environment, mx, quick_place, tmp_path, kernels, words):
    """At any moment, and started again each time: the store is the former one, whole, or one of the new run; the bits in the end are always the same."""
    (tmp_path / "program.py").write_text(PROGRAM)
    given = {w: True if w == "integrity" else 1000 for w in words}
    u, k = (np.random.default_rng(i).random((22, 100, 150)) for i in (1, 2))
    with mx.Run(kernels.heat, u=u, k=k, device=quick_place, resume=False, force=True, **OPTIONS, plan="stream by=98 bt=2", **given) as run:
        former = np.asarray(run.advance(4)["u"])
    shutil.copytree(quick_place, tmp_path / "kept")
    stood = set()

    def begin():
        shutil.rmtree(quick_place)
        shutil.copytree(tmp_path / "kept", quick_place)

    def seen():
        wait_until(lambda: not mx.open(quick_place).info["in_use"], "the end of the lock of a killed process")
        store = mx.open(quick_place)
        stood.add(store.info["former"] is None)
        assert store.info["former"] is not None or np.array_equal(np.asarray(store["u"]), former)

    results = []
    kill_often([str(environment), str(tmp_path / "program.py"), str(quick_place), str(tmp_path), *words], random.Random(len(words)), begin,
               lambda: results.append(np.load(quick_place / "result.npy").tobytes()), seen)
    assert len(set(results)) == 1 and (stood == {True, False} or KILLS < 20)


def test_started_again(mx, quick_place, kernels):
    """What decides whether a run goes on or begins: the run in the store, not its state. Nothing begins with a state that it was not meant for."""
    begin(mx, kernels, quick_place)

    def run(kernel=kernels.moved, **more):
        store = mx.open(quick_place)
        fields = {"v": store["u"], "c": store["k"], "w": 0.5} if kernel is kernels.moved else {"u": store["v"], "k": store["c"]}
        return mx.Run(kernel, **{**fields, **more}, device=quick_place, **OPTIONS)

    def another_process():
        import memext.replaced
        memext.replaced.known.clear()
        memext.replaced.ended.clear()

    with pytest.raises(ZeroDivisionError), run() as first:
        for _ in first.steps(6, check=2):
            first["w"][3] = 1 / (4 - _)
    another_process()
    with run() as again:  # u and k are gone, and named once more
        steps = list(again.steps(6, check=2))
    assert steps == [4, 6] and mx.open(quick_place).info["former"]["step"] == 4
    with pytest.raises(mx.MemextError, match="u of the former store in .* no longer exists: the run that is there now began with it"):
        np.asarray(mx.open(quick_place)["u"])
    assert mx.open(quick_place).part("u", frame=False).shape == tuple(n - 2 for n in SHAPE)
    with pytest.raises(mx.MemextError, match="holds step 6 of this run, which this program has already ended: resume=True resumes it, resume=False begins"), run() as same:
        same.advance(6)
    with run(resume=True) as same:
        assert same.advance(8).step == 8
    another_process()
    with pytest.raises(mx.MemextError, match="with the parameter a=0.5, not 0.25; .* give resume=False"), run(params={"a": 0.25}) as other:
        other.advance(2)
    assert mx.open(quick_place).step == 8
    state = {n: np.asarray(mx.open(quick_place)[n]) for n in ("v", "c")}
    with run(kernels.heat) as third:  # another kernel is another run
        assert third.advance(0).step == 0 and np.array_equal(np.asarray(third["u"]), state["v"]) and np.array_equal(np.asarray(third["k"]), state["c"])
    assert mx.open(quick_place).info["former"]["runs"] == 3
    with mx.Run(kernels.heat, u=mx.open(quick_place)["u"], k=2.0, device=quick_place, **OPTIONS) as known:  # of the same program
        known.advance(2)
    assert mx.open(quick_place).info["former"]["runs"] == 4


def test_refused(mx, quick_place, tmp_path, kernels):
    """Before anything is lost, with the way out."""
    former = begin(mx, kernels, quick_place)

    def stands():
        return all(np.array_equal(np.asarray(mx.open(quick_place)[n]), a) for n, a in former.items())

    u, k = (mx.open(quick_place)[n] for n in "uk")
    cases = [({"frame": "edge", "k": 1.0}, r"holds a grid of 28 x 18 x 20 interior cells, and the run .* has 30 x 20 x 22: give the same size, or another place"),
             ({"k": 1.0, "verify": True}, "supersede"),
             ({"k": 1.0, "shape": (9, 9, 9)}, "9, 9, 9"),
             ({"k": lambda x, y, z: u[z + 1, 1:-1, 1:-1]}, "k is read from the store in .*memext.open")]
    for words, match in cases:
        with pytest.raises(mx.MemextError, match=match), mx.Run(kernels.heat, u=u, **words, device=quick_place, **OPTIONS) as run:
            run.advance(2)
        assert stands()
    run = mx.Run(kernels.heat, u=u, k=k, device=quick_place, resume=False, **OPTIONS)
    with mx.Run(kernels.heat, u=np.random.default_rng(5).random(SHAPE), k=k, device=quick_place, resume=False, force=True, **OPTIONS) as other:
        other.advance(1)
    with pytest.raises(mx.MemextError, match="has changed since it was opened"):
        run.advance(2)


def test_interrupted(memext, mx, quick_place, kernels):
    """A store whose run is not done is begun with where force says so."""
    memext.run("-n", 28, 18, 20, "-t", 40, "--plan", "stream by=18 bt=2", "-d", quick_place, "--commit-every", 0, "--keep", "--backend", "fault:aio", "--fault", "fail_after=25", status=3, check=False)
    store = mx.open(quick_place)
    assert store.state == "interrupted" and 0 < store.step < 40
    state = np.asarray(store["u"])
    with pytest.raises(mx.MemextError, match="holds a run of the built-in star7"), mx.Run(kernels.heat, u=store["u"], k=1.0, device=quick_place, **OPTIONS) as run:
        run.advance(1)
    with pytest.raises(mx.MemextError, match="holds an interrupted run"), mx.Run(kernels.heat, u=store["u"], k=1.0, device=quick_place, resume=False, **OPTIONS) as run:
        run.advance(1)
    with mx.Run(kernels.heat, u=store["u"], k=1.0, device=quick_place, resume=False, force=True, **OPTIONS) as run:
        assert np.array_equal(np.asarray(run.advance(0)["u"]), state)


def test_killed_at_its_last_step(mx, quick_place, kernels):
    """A program whose first run was killed with its last step committed, and not yet done: started again, it goes on with the second."""
    random = np.random.default_rng(5)
    given = {"u": random.random(SHAPE), "k": random.random(SHAPE), "device": quick_place, "commit_every": 0, **OPTIONS, **PLANS["stream"]}
    with pytest.raises(mx.MemextError), mx.Run(kernels.heat, **given, backend="fault:aio", fault="fail_after=300", resume=False, force=True) as run:
        run.advance(400)
    store = mx.open(quick_place)
    assert store.state == "interrupted" and 0 < store.step < 400
    step, state = store.step, np.asarray(store["u"])
    with mx.Run(kernels.heat, **given) as run:
        assert list(run.steps(step)) == [step] and run.step == step
    assert mx.open(quick_place).state == "done, kept" and np.array_equal(np.asarray(mx.open(quick_place)["u"]), state)
    with mx.Run(kernels.wide, v=mx.open(quick_place).part("u", frame=False), frame="edge", device=quick_place, **OPTIONS) as run:
        run.advance(2)


def test_no_room(mx, loop, tmp_path, kernels):
    """A device that holds the former store, and not that of the run that would begin with it: the plan and the run are refused, and the store stands."""
    device = loop(2 * (2 << 20) + 3 * (2 << 20))
    u = np.random.default_rng(1).random((40, 60, 60))
    with mx.Run(u=u, device=device, resume=False, **OPTIONS) as run:
        former = np.asarray(run.advance(2)["u"])
    with mx.Run(kernels.wide, v=mx.open(device)["u"], frame="edge", device=tmp_path / "other.memext", **OPTIONS) as run:
        run.advance(1)
    for words in ({"w": 0.0, "c": mx.open(device)["u"]}, {"w": 0.0, "c": u}):
        run = mx.Run(kernels.moved, v=mx.open(device)["u"], **words, device=device, **OPTIONS)
        for call in (run.plan, run.advance):
            with pytest.raises(mx.MemextError, match="need|does not fit"):
                call(2)
        assert np.array_equal(np.asarray(mx.open(device)["u"]), former)
    with mx.Run(kernels.wide, v=mx.open(device).part("u", frame=False), frame="edge", device=device, **OPTIONS) as run:
        run.advance(1)
