# SPDX-License-Identifier: BSD-3-Clause
"""Runs of the Python package: what fields begin with, refusals, going on, pickles and forks."""
import ast
import functools
import gc
import os
import re
import shutil
import threading

import numpy as np
import pytest
from package import cache, environment, mixed, mx, sh, star7, systems  # noqa: F401 (fixtures)


def test_a_built_in_stencil_without_a_device(mx, tmp_path, monkeypatch):
    """No device: a directory beside the program, which goes with the run. Backend dram: the result is in memory."""
    monkeypatch.chdir(tmp_path)
    u = np.random.default_rng(1).random((10, 12, 20))
    with mx.Run(u=u, dram="64MiB") as run:
        steps = list(run.steps(7, check=3))
        assert steps == [3, 6, 7] and np.allclose(run["u"], star7(u, 7), rtol=1e-12, atol=0)
        assert len(run.reports) == 3 and run.report["resumed_from"] == 6
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(mx.MemextError, match="has ended"):
        run["u"]
    memory = mx.Run(u=u, backend="dram").advance(7)
    assert np.allclose(memory["u"], star7(u, 7), rtol=1e-12, atol=0)
    with pytest.raises(mx.MemextError, match="keeps no state between checks"):
        list(mx.Run(u=u, backend="dram").steps(4, check=2))


def test_a_plan_touches_nothing(mx, quick_place):
    plan = mx.plan(u="random", shape=(62, 46, 78), steps=30, device=quick_place, dram="64MiB")
    assert plan["status"] == "planned" and plan["problem"]["nx"] == 78 and plan["predicted_write_bytes"] > 0
    assert list(quick_place.iterdir()) == [] and "plan" in plan._repr_html_() and "stream" in str(plan) + "stream"
    other = mx.Run(u="random", shape=(62, 46, 78), device=quick_place, dram="64MiB").plan(30, algorithm="redundant")
    assert other["plan"]["algorithm"] == "redundant"


@pytest.mark.parametrize("keywords, naming, errno_name", [
    ({"shape": (3, 3)}, "has 2 numbers: give three integers", None), ({}, "size of the grid is not known: give shape=", None), ({"shape": (3, 3, 3), "dram": "5QB"}, "not a size", "EINVAL"),
    ({"shape": (3, 3, 3), "speed": 9}, "'speed'", "EINVAL"), ({"shape": (3, 3, 3), "device": "/nonexistent/store"}, "/nonexistent", "ENOENT"),
    ({"shape": (3, 3, 3), "stencil": "star8"}, "star8", "EINVAL"), ({"u": np.zeros((4, 4))}, "2 dimensions", "EINVAL"),
    ({"u": np.zeros((2, 4, 4))}, "at least 1", "EINVAL"), ({"u": np.zeros((4, 4, 4)), "shape": (4, 4, 4)}, "frame of 1", "EINVAL"),
    ({"shape": (3, 3, 3), "params": {"q": 1}, "verify": 3}, "'verify'", "EINVAL"), ({"shape": (3, 3, 3), "reserve": "64MiB"}, "lower reserve= or raise dram=", "EINVAL")])
def test_refusals_carry_the_sentence(mx, place, monkeypatch, keywords, naming, errno_name):
    monkeypatch.chdir(place)
    with pytest.raises((mx.MemextError, ValueError)) as caught:
        run = mx.Run(**{"dram": "64MiB", **keywords})
        try:
            run.advance(1)
        finally:
            run.close()
    assert naming in str(caught.value)
    if errno_name:
        assert caught.value.errorname == errno_name and caught.value.sentence == str(caught.value)


def test_an_exception_in_a_callback_ends_the_run(mx, quick_place):
    """It is the exception that the caller sees."""
    def broken(x, y, z):
        raise ZeroDivisionError(f"plane {z}")

    with pytest.raises(ZeroDivisionError, match="plane -1"), mx.Run(u=broken, shape=(4, 4, 4), device=quick_place, dram="64MiB") as run:
        run.advance(1)


@pytest.mark.parametrize("frame", ["edge", "mirror", "periodic", 0.25])
def test_arrays_without_a_frame(mx, systems, quick_place, frame):
    """The frame that is made is numpy's pad, of the state and of what is only read."""
    rng = np.random.default_rng(8)
    u, k = rng.random((5, 6, 7)), rng.random((5, 6, 7)).astype("f4")
    mode = {"edge": {"mode": "edge"}, "mirror": {"mode": "symmetric"}, "periodic": {"mode": "wrap"}}.get(frame, {"constant_values": frame})
    with mx.Run(systems.diffusion, u=u, k=k, frame=frame, device=quick_place, dram="64MiB") as run:
        run.advance(2)
        assert run["u"][...].tobytes() == systems.diffusion.reference(2, u=np.pad(u, 1, **mode), k=np.pad(k, 1, **mode))["u"].tobytes()


def test_a_frame_around_no_array_is_refused(mx, mixed):
    """Of numbers, patterns, functions and ramps, alone and together; one array is enough."""
    for frame in (5.0, "edge"):
        for value in (1.0, "random", lambda x, y, z: x + y + z, mx.ramp("x", 0, 1)):
            with pytest.raises(mx.MemextError, match="no field is an array.*leave frame= out"):
                mx.Run(u=value, frame=frame, shape=(6, 6, 6), backend="dram")
            with pytest.raises(mx.MemextError, match="no field is an array"):
                mx.Run(mixed, u=value, c=1.0, frame=frame, shape=(6, 6, 6), backend="dram")
            assert mx.Run(mixed, u=value, c=np.ones((6, 6, 6)), frame=frame, backend="dram").shape == (6, 6, 6)


def test_values_that_fields_begin_with(mx, systems, quick_place):
    """Numbers, ramps, functions, names, files, the step before of a leapfrog kernel; after no step they are what the store holds."""
    np.save(quick_place / "v.npy", np.full((11, 12, 13), 0.5, "f4"))
    p = np.random.default_rng(4).random((11, 12, 13)).astype("f4")
    with mx.Run(systems.wave, p=p, p_old=lambda x, y, z: x + 10 * y + 100 * z, v=quick_place / "v.npy", damping=0.25, dtype="f4", device=quick_place,
                dram="64MiB") as run:
        run.advance(0)
        z, y, x = np.ogrid[-4:7, -4:8, -4:9]
        assert np.array_equal(run["p.old"], (x + 10 * y + 100 * z).astype("f4")) and np.array_equal(run["p"], p)
        assert np.array_equal(run["damping"], np.full((11, 12, 13), 0.25, "f4")) and (run["v"][...] == 0.5).all()
    for axis, shape in (("x", (1, 1, 9)), ("y", (1, 8, 1)), ("z", (7, 1, 1))):
        with mx.Run(u=mx.ramp(axis, 2, 0), shape=(5, 6, 7), device=quick_place, dram="64MiB") as run:
            run.advance(0)
            assert np.array_equal(run["u"], np.broadcast_to(np.linspace(2, 0, max(shape)).reshape(shape), (7, 8, 9)))


def test_cells_of_every_type_and_order(mx, mixed, quick_place):
    """Numbers of any type, contiguous or not, of state and of what is only read: what numpy makes of them in f8."""
    whole = np.random.default_rng(4).integers(0, 100, (12, 7, 16))
    kinds = [whole[::2, :, ::2].astype(t) for t in ("f4", "f2", "g", "i1", "u1", ">i2", "u4", "i8", "?", ">f8")]
    kinds += [np.asfortranarray(whole[:6, :, :8]), whole[5::-1, ::-1, :8], whole[:8, :, :6].T, np.broadcast_to(np.float64(3), (6, 7, 8)), np.ma.array(whole[:6, :, :8])]
    for a in kinds:
        with mx.Run(mixed, u=a, c=a[::-1], device=quick_place, dram="64MiB") as run:
            run.advance(2)
            assert run["u"][...].tobytes() == mixed.reference(2, u=a.astype("f8"), c=a[::-1].astype("f8"))["u"].tobytes(), (a.dtype, a.strides)


@pytest.mark.parametrize("given, naming", [
    (lambda: np.zeros((6, 7, 8), "c16"), "u.real and u.imag"), (lambda: np.zeros((6, 7, 8), "M8[s]"), "cells of datetime64.s. are not numbers"), (lambda: np.zeros((6, 7, 8), "O"), "object"),
    (lambda: np.ma.masked_less(np.arange(336.0).reshape(6, 7, 8), 5), r"5 cells without a value \(masked\).*filled"), (lambda: "randm", "neither a file nor.*gauss"),
    (lambda: lambda x, y, z: None, "object"), (lambda: lambda x, y, z: 1j * x, "complex"), (lambda: lambda x, y, z: np.zeros((3, 3)), r"plane of shape \(3, 3\): give planes of \(7, 8\)")])
def test_what_is_no_field_is_refused(mx, mixed, quick_place, given, naming):
    with pytest.raises(mx.MemextError, match=naming), mx.Run(mixed, u=given(), c=np.zeros((6, 7, 8)), device=quick_place, dram="64MiB") as run:
        run.advance(1)


@pytest.mark.parametrize("given, naming", [
    ({"u": 1e300, "dtype": "f4"}, r"1e\+300, which float32"), ({"u": np.full((6, 7, 8), 1e39), "dtype": "f4"}, "which float32"), ({"u": np.full((6, 7, 8), 2**24 + 1), "dtype": "f4"}, "16777217, which float32"),
    ({"u": np.full((6, 7, 8), 2**53 + 1)}, "9007199254740993, which float64"), ({"u": np.full((6, 7, 8), 2**64 - 1, "u8")}, "18446744073709551615"), ({"shape": (4.5, 5, 6)}, "three integers"),
    ({"shape": (4, 5)}, "three integers"), ({"shape": 5}, "three integers"), ({"frame": "banana"}, "included, edge"), ({"frame": None}, "included, edge"), ({"frame": True}, "included, edge"),
    ({"resume": "banana"}, "auto"), ({"dtype": {"v": "f4"}}, "dtype names v"), ({"reductions": [3]}, "3 is not a reduction")])
def test_arguments_that_would_compute_something_else(mx, mixed, quick_place, given, naming):
    """Numbers that a type does not hold, names of nothing: refused, not rounded, made infinite or passed over."""
    with pytest.raises(mx.MemextError, match=naming), mx.Run(mixed, **{"u": 1.0, "c": 1.0, "shape": (4, 5, 6), "device": quick_place, "dram": "64MiB", **given}) as run:
        run.advance(1)


def test_whole_numbers_that_fit_and_frames_of_fractions(mx, mixed, quick_place):
    """Large ones that a float holds, infinities that were given; a frame of 0.5 around whole numbers is 0.5."""
    for u in (np.full((6, 7, 8), 2**40, "i8"), np.full((6, 7, 8), np.inf), np.full((6, 7, 8), -(2**24), "i4")):
        with mx.Run(mixed, u=u, c=0.0, dtype="f4", device=quick_place, dram="64MiB", nonfinite="ignore") as run:
            assert np.array_equal(run.advance(0)["u"], u.astype("f4"))
    for frame in (0.5, 300, -1, 7, np.float32(0.25)):
        with mx.Run(mixed, u=np.full((4, 5, 6), 3, "u1"), c=0.0, frame=frame, device=quick_place, dram="64MiB") as run:
            assert np.array_equal(run.advance(0)["u"], np.pad(np.full((4, 5, 6), 3.0), 1, constant_values=frame))


def test_a_store_that_began_with_something_else_is_not_taken_for_ours(mx, mixed, quick_place):
    """Also where it is as far as was asked for, so that there is nothing to compute; steps that are no whole numbers; nothing computed yet."""
    u = np.random.default_rng(5).random((6, 7, 8))
    with mx.Run(mixed, u=u, c=1.0, device=quick_place, dram="64MiB") as run:
        with pytest.raises(mx.MemextError, match="nothing was computed yet"):
            run["u"]
        for steps in "4", 4.5:
            with pytest.raises(mx.MemextError, match="give integers"):
                run.advance(steps)
        run.advance(np.int64(3))
        for other in ({"u": 2 * u, "c": 1.0}, {"u": u, "c": 2.0}):
            with pytest.raises(mx.MemextError, match="began with other values"):
                mx.Run(mixed, **other, device=quick_place, dram="64MiB").advance(2)
        same = mx.Run(mixed, u=u, c=1.0, device=quick_place, dram="64MiB").advance(2)
        assert same.step == 3 and np.array_equal(same["u"], run["u"])


IDENTITIES = """
import functools
import gc
import numpy as np
from memext.computed import Function
from memext.sources import Source
class Callable:
    def __init__(self, a=1): self.a = a
    def __call__(self, x, y, z): return self.a * x
    def method(self, x, y, z): return self.a * y
def scaled(x, y, z, *words, by=1, **more): return by * (x + y + z)
def nested(x, y, z): return sum(map(lambda a: (lambda b: b * 3)(a), (x, y, z)))
def of_strings(x, y, z): return x * 1.0 if "x" in {"x", "yy", "zzz", "w"} else y
itself = []
itself.append(itself)
SAME = [lambda x, y, z: x * 0.5, nested, of_strings, functools.partial(scaled, by=2), functools.partial(scaled, by=nested), functools.partial(scaled, by=np.arange(3.0)),
        functools.partial(functools.partial(scaled, by=2), w=Callable()), np.vectorize(scaled), np.vectorize(lambda x, y, z: (lambda: x)()), Callable(), Callable().method,
        functools.lru_cache(scaled), functools.partial(scaled, s={"a", "b", "c"}, d={"b": 1, "a": (2,)}, i=itself, o=np.array([Callable()], "O"), e=...), np.hypot, max, Callable]
OTHERS = [functools.partial(scaled, by=3), functools.partial(nested, by=2), np.vectorize(lambda x, y, z: (lambda: y)()), lambda x, y, z: (lambda b: b * 4)(x),
          lambda x, y, z: (lambda b: b * 5)(x), functools.partial(scaled, by=np.arange(3.0) + 1), functools.lru_cache(nested), np.arctan2, min]
print([Function(f).identity() for f in SAME + OTHERS])
"""


def test_identities_of_functions_are_those_of_other_processes(mx, environment, mixed, quick_place, tmp_path):
    """Partial functions, nested ones, vectorized ones, objects: the same text in every process, free of addresses, and others where it can be told;
    a store that is finished is taken for ours."""
    (tmp_path / "identities.py").write_text(IDENTITIES)
    seen = []
    for seed in 1, 2:
        done = sh(environment, tmp_path / "identities.py", env={**os.environ, "PYTHONHASHSEED": str(seed)})
        assert done.returncode == 0, done.stderr
        seen.append(ast.literal_eval(done.stdout))
    one, two = seen
    assert one == two and not any(re.search(r"\b0x[0-9a-f]{6}| at 0x", text) for text in one)
    assert len(set(one)) == len(one)

    calls = []
    for weight in (lambda: functools.partial(lambda x, y, z, seen, by: seen.append(z) or by * (x + y + z), seen=calls, by=0.5),
                   lambda: np.vectorize(lambda x, y, z: (lambda: x + 0.5 * y)())):
        with mx.Run(mixed, u=weight(), c=1.0, shape=(6, 7, 8), device=quick_place, dram="64MiB") as run:
            list(run.steps(3, check=1))
            calls.clear()
            assert mx.Run(mixed, u=weight(), c=1.0, shape=(6, 7, 8), device=quick_place, dram="64MiB").advance(3).step == 3


def test_an_exception_while_it_computes_is_what_the_caller_sees(mx, quick_place):
    """Of a progress function: the run is stopped and ended first, and the store can be gone on with."""
    def broken(step, steps, phase):
        if phase == "updates":
            raise RuntimeError("mine")

    slow = {"backend": "fault:aio", "fault": "delay_us=20000", "block": (62, 94, 2), "algorithm": "redundant"}
    with pytest.raises(RuntimeError, match="mine"), mx.Run(u="random", shape=(62, 62, 94), device=quick_place, dram="64MiB", **slow) as run:
        run.advance(4000, progress=broken)
    assert run.reports[-1]["status"] == "interrupted" and mx.open(quick_place).info["in_use"] is False


IN_GERMAN = """
import locale, sys
import numpy as np
import memext as mx
@mx.kernel(params={"w": 1.5})
def scaled(u, w): return u * w
u = np.random.default_rng(1).random((6, 7, 8))
assert locale.setlocale(locale.LC_ALL, sys.argv[2]) and locale.str(1.5) == "1,5"
run = mx.Run(scaled, u=u, params={"w": 0.3}, device=sys.argv[1], dram="0.0625GiB", commit_every=0.5, keep=True).advance(2)
assert mx.open(sys.argv[1]).info["problem"]["kernel"]["params"]["w"] == 0.3 and run.report["seconds"] < 100 and mx.info()["machine"]["cores"] > 0
assert locale.str(1.5) == "1,5"
locale.setlocale(locale.LC_ALL, "C")
run = mx.Run(scaled, u=u, params={"w": 0.3}, device=sys.argv[1], dram="64MiB").advance(4)
assert np.array_equal(run["u"], scaled.reference(4, u=u, params={"w": 0.3})["u"])
run.close()
"""


def test_numbers_have_a_point_where_the_program_writes_commas(environment, quick_place, tmp_path, cache):
    """In a program that set a locale, as those with windows do: numbers go to the library and back, and what a store says is read anywhere."""
    if sh("localedef", "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8").returncode != 0:
        pytest.skip("localedef cannot make a locale: the package locales is not installed")
    (tmp_path / "german.py").write_text(IN_GERMAN)
    done = sh(environment, tmp_path / "german.py", quick_place, "de_DE.UTF-8", env={**os.environ, "LOCPATH": str(tmp_path), "XDG_CACHE_HOME": str(cache)})
    assert done.returncode == 0, done.stderr


def test_pickles_forks_and_threads(mx, mixed, quick_place, tmp_path, monkeypatch):
    """Kernels, errors, arrays of stores and reports are pickled, runs are not; a child of fork has a run of its own and leaves the parent's store; runs in two
    threads; a run that nobody closed leaves nothing."""
    import gc
    import pickle
    u = np.random.default_rng(6).random((6, 7, 8))
    want = mixed.reference(3, u=u, c=np.ones(u.shape))["u"]
    with mx.Run(mixed, u=u, c=1.0, device=quick_place, dram="64MiB") as run:
        run.advance(3)
        assert pickle.loads(pickle.dumps(mixed)) is mixed
        assert np.array_equal(pickle.loads(pickle.dumps(run["u"])), want) and pickle.loads(pickle.dumps(run.report))["status"] == "done"
        with pytest.raises(TypeError, match="belongs to its store"):
            pickle.dumps(run)
        child = os.fork()
        if child == 0:
            try:
                run.close()
                with mx.Run(mixed, u=u, c=1.0, device=tmp_path, dram="64MiB") as own:
                    own.advance(3)
                    os._exit(0 if np.array_equal(own["u"], want) else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and np.array_equal(run["u"], want)
    with pytest.raises(mx.MemextError) as caught:
        mx.open(tmp_path / "nothing.npy")
    assert pickle.loads(pickle.dumps(caught.value)).errno == caught.value.errno != 0
    found = {}

    def one(i):
        (tmp_path / f"{i}").mkdir()
        with mx.Run(mixed, u=u * i, c=1.0, device=tmp_path / f"{i}", dram="64MiB") as own:
            for _ in range(10):
                own.plan(3)  # each loads the kernel, after a child process has tried to
            found[i] = own.advance(3)["u"][...]
    threads = [threading.Thread(target=one, args=(i,)) for i in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert all(np.array_equal(found[i], mixed.reference(3, u=u * i, c=np.ones(u.shape))["u"]) for i in range(4))
    monkeypatch.chdir(quick_place)
    left = mx.Run(mixed, u=u, c=1.0, dram="64MiB").advance(1)
    assert len(list(quick_place.iterdir())) == 1
    del left
    gc.collect()
    assert list(quick_place.iterdir()) == []


@pytest.fixture
def few_objects():
    """A collection looks at what the test makes alone: other tests have left millions of objects."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def test_a_directory_without_a_name_stays_while_it_is_read(mx, mixed, quick_place, monkeypatch, few_objects):
    """Nobody closes these runs: arrays and stores, what is made of them, their copies hold the directory, and pickles do not; keep is looked at last."""
    import copy
    import pickle
    monkeypatch.chdir(quick_place)
    u = np.random.default_rng(6).random((6, 7, 8))
    want = mixed.reference(9, u=u, c=np.ones(u.shape))["u"]

    def new():
        return mx.Run(mixed, u=u, c=1.0, dram="64MiB").advance(9)

    def there():
        gc.collect()
        return len(list(quick_place.iterdir()))
    for held in (lambda run: run["u"], lambda run: run.store, lambda run: iter(run["u"]), lambda run: copy.copy(run["u"]), lambda run: copy.deepcopy(run.store),
                 lambda run: run.store.part("u", False), lambda run: mx.ramp("x", 0, 1, where=run["u"]), lambda run: mx.Run(mixed, u=run["u"], c=0.0)):
        found = held(new())
        assert there() == 1, found
        cells = found["u"] if isinstance(found, mx.Store) else next(found) if not hasattr(found, "shape") else found
        if isinstance(cells, mx.Array):
            assert np.array_equal(cells, want if cells.shape == want.shape else want[1:-1, 1:-1, 1:-1])
        del found, cells
        assert there() == 0
    array = new()["u"]
    pickled = pickle.loads(pickle.dumps(array))
    assert np.array_equal(pickled, want)
    del array
    assert there() == 0
    with pytest.raises(mx.MemextError):
        pickled[0]
    run = new()
    run.keep = True
    del run
    assert there() == 1
    shutil.rmtree(next(quick_place.iterdir()))
    run = new()
    run.close(keep=True)
    del run
    assert there() == 1
