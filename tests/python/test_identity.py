# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F811 - fixtures of other files
"""A run goes on with its own problem alone: the command compares what is given with --resume, a program all that it asks for. What a request that is
refused would have replaced stays as it was, and nobody's state is removed or gone on with but one's own."""
import collections
import ctypes
import decimal
import json
import os
import re
import shutil
import subprocess

import numpy as np
import pairs
import pytest
from conftest import LONG, wait_until
from package import cache, environment, mx, need  # noqa: F401 - fixtures
from test_replace import N, files  # noqa: F401

# What the run began with, and pairs of words: given with --resume it goes on with the first, and is refused with the second, which is named.
BUILT_IN = (["--input", "a.npy", "--side", "z=mirror", "--coef", "0.4,0.05", "--source", "u@1,1,1=series-a.npy"], [
    ("--input a.npy", "--input b.npy", "b.npy"), ("", "--init random", "--init random"), ("--side z=mirror", "--side z=periodic", "periodic"),
    ("--coef 0.4,0.05", "--coef 0.4,0.06", "0.06"), ("--stencil star7", "--stencil box27", "box27"), ("--dtype f64", "--dtype f32", "f32"),
    ("-n 8 7 6", "-n 8 7 7", "8 x 7 x 7"), ("", "--kernel k.c", "--kernel"), ("", "--frame edge", "edge"),
    ("", "--source u@1,1,1=series-b.npy", "sources"), ("", "--source u@1,2,1=series-a.npy", "sources")])
RAW = (["--input", "a.raw,f64,offset=64", "-n", 8, 7, 6], [
    ("--input a.raw,f64,offset=64", "--input a.raw,f64,offset=72", "a.raw"), ("", "--input b.raw,f64,offset=64", "b.raw"), ("", "--input a.npy", "a.npy")])
BARE = (["--input", "bare-a.npy", "--frame", "edge"], [
    ("--frame edge --input bare-a.npy", "--frame mirror", "mirror"), ("--input bare-a.npy", "--input bare-b.npy", "bare-b.npy"), ("", "--input a.npy", "a.npy")])
OF_KERNEL = (["--kernel", "k.c", "--input", "u=a.npy", "--init", "v=gauss", "--field", "c=a4.npy", "--param", "w=0.2"], [
    ("--input u=a.npy", "--input u=b.npy", "b.npy"), ("", "--init u=random", "u came from"), ("--init v=gauss", "--init v=random", "random"), ("", "--input v=a4.npy", "a4.npy"),
    ("--field c=a4.npy", "--field c=b4.npy", "b4.npy"), ("--param w=0.2", "--param w=0.25", "0.25"), ("--kernel k.c", "--kernel k2.c", "k2.c"), ("", "--coef 0.4,0.1", "--coef")])


@pytest.mark.parametrize("begun, pairs_of_words", [BUILT_IN, RAW, BARE, OF_KERNEL], ids=["built-in", "raw", "frame", "kernel"])
def test_the_command_goes_on_with_the_same_problem_alone(memext, quick_place, files, begun, pairs_of_words):
    """Refused, with the value, status 2 and the way out; the store is as it was then. Or the checksum of all steps at once."""
    source = [w for w in ("--source", "u@1,1,1=series-a.npy") if "--source" in begun]
    store, steps = quick_place / "memext.store", 2
    run = dict(cwd=files, timeout=900)
    whole = memext.run(*begun, "-t", 3 + len(pairs_of_words), "--backend", "dram", **run)["checksum"]
    memext.run(*begun, "-t", steps, "-d", quick_place, "--keep", **run)
    for same, other, naming in pairs_of_words:
        before = store.read_bytes()
        words = other.split() if "--source" in other else [*other.split(), *source]
        memext.refused("run", "--resume", "-d", quick_place, "-t", steps + 1, "--quiet", *words, naming=naming, **run)
        assert store.read_bytes() == before
        steps += 1
        memext.run("--resume", "-d", quick_place, "-t", steps, *same.split(), *source, **run)
    assert memext.run("--resume", "-d", quick_place, "-t", steps + 1, *source, **run)["checksum"] == whole


@pytest.mark.parametrize("kernel", [False, True])
def test_a_file_is_known_by_its_content_or_by_name_and_time(memext, quick_place, files, kernel):
    """A small file may be written again and copied; a large one is refused when it was changed, written again or is another one, and may be renamed."""
    word, more = ("u=", ["--kernel", "k.c", "--init", "v=zero", "--init", "c=zero"]) if kernel else ("", [])
    run = dict(cwd=files, timeout=900)

    def begin(name):
        for path in quick_place.iterdir():
            path.unlink()
        memext.run(*more, "--input", f"{word}{name}", "-t", 1, "-d", quick_place, "--keep", **run)

    def resume(name, refused=None):
        words = ["--resume", "-d", quick_place, "--input", f"{word}{name}"]
        if refused is None:
            memext.run(*words, **run)
        else:
            memext.refused("run", *words, "--quiet", naming=[refused, "began with other values", "u"], **run)

    begin("a.npy")
    small = np.load(files / "a.npy")
    np.save(files / "a.npy", small)
    np.save(files / "copy.npy", small)
    resume("a.npy")
    resume("copy.npy")
    small[3, 3, 3] += 1e-9
    np.save(files / "a.npy", small)
    resume("a.npy", refused="has changed")
    begin("big-a.npy")
    large, times = (files / "big-a.npy").read_bytes(), (files / "big-a.npy").stat()
    resume("big-a.npy")
    os.rename(files / "big-a.npy", files / "moved.npy")
    resume("moved.npy")
    (files / "copy.npy").write_bytes(large)
    os.utime(files / "copy.npy", ns=(times.st_atime_ns, times.st_mtime_ns))
    resume("copy.npy", refused="copy.npy")
    resume("big-b.npy", refused="big-b.npy")
    (files / "moved.npy").write_bytes(large[:200] + bytes(8) + large[208:])
    os.utime(files / "moved.npy", ns=(times.st_atime_ns, times.st_mtime_ns))
    resume("moved.npy", refused="moved.npy")
    (files / "moved.npy").write_bytes(large)
    resume("moved.npy", refused="moved.npy")


def as_before(store, name=None):
    """What the first version would have written of the same run: no samples, nothing of what a program says of its values but its name."""
    hashed = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    hashed.restype, hashed.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]

    def old(of):
        if isinstance(of, dict):
            gone = () if of.get("in_place") else ("sample", "offset_bytes", "given")
            return {key: name if key == "source" and name else old(value) for key, value in of.items() if key not in gone}
        return of
    data = bytearray(store.read_bytes())
    for at in range(0, 4 << 14, 1 << 14):
        length = int.from_bytes(data[at + 28:at + 32], "little")
        if length == 0:
            continue
        text = json.dumps(old(json.loads(data[at + 1056:at + 1056 + length]))).encode()
        data[at + 1056:at + 1056 + 14336] = text.ljust(14336, b"\0")
        data[at + 28:at + 32] = len(text).to_bytes(4, "little")
        data[at + 16376:at + 16384] = hashed(bytes(data[at:at + 16376]), 16376).to_bytes(8, "little")
    store.write_bytes(data)


@pytest.mark.parametrize("begun", [BUILT_IN[0], OF_KERNEL[0]], ids=["built-in", "kernel"])
def test_stores_of_before_go_on(memext, mx, quick_place, files, begun):
    """Files are compared by length, time and name then. What a program gave is gone on with by the command, and refused by Python."""
    run = dict(cwd=files, timeout=900)
    source, word = [w for w in ("--source", "u@1,1,1=series-a.npy") if "--source" in begun], "u=" if "--kernel" in begun else ""
    whole = memext.run(*begun, "-t", 4, "--backend", "dram", **run)["checksum"]
    memext.run(*begun, "-t", 2, "-d", quick_place, "--keep", **run)
    as_before(quick_place / "memext.store")
    memext.refused("run", "--resume", "-d", quick_place, "-t", 3, "--input", f"{word}b.npy", *source, "--quiet", naming="b.npy", **run)
    memext.run("--resume", "-d", quick_place, "-t", 3, "--input", f"{word}a.npy", *source, **run)
    os.utime(files / "a.npy", (1, 1))
    memext.refused("run", "--resume", "-d", quick_place, "-t", 4, "--input", f"{word}a.npy", *source, "--quiet", naming="has changed", **run)
    assert memext.run("--resume", "-d", quick_place, "-t", 4, *source, **run)["checksum"] == whole
    u = np.load(files / "a.npy")
    with mx.Run(u=u, device=quick_place, dram="64MiB", resume=False, force=True, keep=True) as kept:
        kept.advance(2)
    as_before(quick_place / "memext.store", "python 0123456789abcdef")
    with pytest.raises(mx.MemextError, match="python 0123456789abcdef, not from python"):
        mx.Run(u=u, device=quick_place, dram="64MiB").advance(3)
    assert memext.run("--resume", "-d", quick_place, "-t", 3)["resumed_from"] == 2


# ------------------------------------------------------------------ Python

def test_pairs_of_programs(mx, quick_place, recwarn):
    """One thing changes between two programs: the result of the second alone, or a refusal that leaves the store and says the way out."""
    seed, count = os.environ.get("MEMEXT_PAIRS", "7"), 300 if LONG else 14
    counts = {"right": 0, "refused": 0}
    for number in range(count):
        folder = quick_place / str(number)
        folder.mkdir()
        told, verdict = pairs.pair(mx, folder, f"{seed} {number}")
        assert verdict in counts, f"{seed} {number}: {told}: {verdict}"
        counts[verdict] += 1
        shutil.rmtree(folder)
    assert min(counts.values()) > 0


def changes(mx, files):
    """(keywords, those of another problem, what the sentence names)"""
    a = np.random.default_rng(2).random((8, 9, 10))
    b = a.copy()
    b[4, 4, 4] += 1e-12

    def of(value):
        return lambda x, y, z: value * x + y
    big = np.random.default_rng(3).random((260, 200, 180))  # more than was hashed of large arrays
    changed = big.copy()
    changed[1, 5, 5] += 1
    open_raw = lambda offset: mx.open(files / "a.raw", dtype="f8", shape=(8, 9, 10), offset=offset)  # noqa: E731
    return [
        ({"u": "random"}, {"u": "gauss"}, "gauss"), ({"u": "random", "coef": (0.3, 0.11)}, {"u": "random"}, "0.3,0.11"), ({"u": "random", "side": {"x": "mirror"}}, {"u": "random"}, "mirror"),
        ({"u": "random"}, {"u": "random", "stencil": "box27"}, "box27"), ({"u": "random"}, {"u": "random", "dtype": "f4"}, "f32"), ({"u": "random"}, {"u": "random", "shape": (6, 7, 9)}, "9 x 7 x 6"),
        ({"u": a}, {"u": b}, "u had other values"), ({"u": a[1:-1, 1:-1, 1:-1], "frame": 0.0}, {"u": a[1:-1, 1:-1, 1:-1], "frame": 5.0}, "frame=5.0"), ({"u": 1.0}, {"u": 2.0}, "u had"),
        ({"u": of(0.5)}, {"u": of(0.25)}, "u had"), ({"u": mx.ramp("x", 0, 1)}, {"u": mx.ramp("x", 0, 2)}, "u had"), ({"u": str(files / "a.npy")}, {"u": str(files / "b.npy")}, "b.npy"),
        ({"u": open_raw(64)}, {"u": open_raw(72)}, "u had"), ({"u": big, "shape": None}, {"u": changed, "shape": None}, "u had"),
        ({"u": "random", "source": [f"u@1,1,1={files}/series-a.npy"]}, {"u": "random"}, "other sources"), ({"u": a}, {"u": "random"}, "--init random")]


@pytest.mark.parametrize("number", range(16))
def test_what_differs_is_named(mx, quick_place, files, number):
    """Also where the store is far enough, so that there would be nothing to compute; the same program goes on."""
    cases = changes(mx, files)
    assert len(cases) == 16
    one, other, naming = cases[number]
    common = {"shape": N, "device": quick_place, "dram": "128MiB"}
    with mx.Run(**{**common, **one}, keep=True) as run:
        run.advance(1)
    for steps in 1, 2:
        with pytest.raises(mx.MemextError) as caught:
            mx.Run(**{**common, **other}).advance(steps)
        assert naming in str(caught.value) and "resume=False and force=True" in str(caught.value) and caught.value.errorname == "EEXIST"
        with pytest.raises(mx.MemextError, match="start again"):
            mx.Run(**{**common, **other}, resume=True, force=True).advance(steps)
    with mx.Run(**{**common, **one}) as run:
        assert run.advance(2).report["resumed_from"] == 1
    with mx.Run(**{**common, **other}) as run:
        run.advance(1)


@pytest.mark.parametrize("kind", ["NETCDF4", "NETCDF3_CLASSIC"])
@pytest.mark.parametrize("turned", [False, True], ids=["zyx", "xyz"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_steps_of_a_netcdf_variable_are_other_fields(mx, quick_place, tmp_path, kind, turned, packed):
    """Another step, another variable or another file is refused, however its cells lie; the same step goes on, also from a copy of the file."""
    netcdf = need("netCDF4")
    shape = (8, 9, 10)[::-1] if turned else (8, 9, 10)

    def write(path, seed):
        with netcdf.Dataset(path, "w", format=kind) as file:
            for name, n in zip("txyz" if turned else "tzyx", (2, *shape)):
                file.createDimension(name, n)
            for number, name in enumerate("vw"):
                v = file.createVariable(name, "i2" if packed else "f8", ("t", *("xyz" if turned else "zyx")))
                if packed:
                    v.scale_factor = 0.5
                v[:] = np.random.default_rng(seed + number).integers(1, 99, (2, *shape))
        return path
    path, other = write(tmp_path / "a.nc", 1), write(tmp_path / "b.nc", 5)
    shutil.copy(path, tmp_path / "c.nc")
    common = {"device": quick_place, "dram": "64MiB"}
    with mx.Run(u=mx.open(path, "v[0]"), keep=True, **common) as run:
        run.advance(1)
    for file, name in (path, "v[1]"), (path, "w[0]"), (other, "v[0]"):
        assert not np.array_equal(mx.open(file, name), mx.open(path, "v[0]"))
        with pytest.raises(mx.MemextError, match="u had other values"):
            mx.Run(u=mx.open(file, name), **common).advance(2)
    for steps, file in (2, path), (3, tmp_path / "c.nc"):
        with mx.Run(u=mx.open(file, "v[0]"), keep=True, **common) as run:
            assert run.advance(steps).report["resumed_from"] == steps - 1


def test_the_step_before_comes_from_memory_and_is_compared(mx, quick_place):
    """NAME_old of a leapfrog kernel: no file of it is left, other values are refused, the same go on to the bits of the reference."""
    @mx.kernel
    def wave(p):
        return 2 * p - p.old + 0.1 * (p[0, 0, 1] + p[0, 0, -1] - 2 * p)
    p, old = (np.random.default_rng(i).random((8, 9, 10)) for i in range(2))
    common = {"device": quick_place, "dram": "64MiB"}
    with mx.Run(wave, p=p, p_old=old, keep=True, **common) as run:
        run.advance(2)
    assert [path.name for path in quick_place.iterdir()] == ["memext.store"]
    for other in {"p_old": p}, {}:
        with pytest.raises(mx.MemextError, match="p.old"):
            mx.Run(wave, **{"p": p, **other, **common}).advance(2)
    with mx.Run(wave, p=p, p_old=old, **common) as run:
        assert run.advance(3).report["resumed_from"] == 2
        assert run["p"][...].tobytes() == wave.reference(3, p=p, p_old=old)["p"].tobytes()


def test_what_a_run_began_with_is_needed_once(mx, quick_place, files):
    """A run that has left a state goes on without its files, and with copies of them; a new one does not."""
    @mx.kernel(fixed="c")
    def slow(u, c):
        return u + c * 0.05 * (u[0, 1, 0] - u)
    a, b = (shutil.copy(files / f"{n}.npy", files / f"gone-{n}.npy") for n in "ab")
    common = {"device": quick_place, "dram": "64MiB", "field_copy": True}
    with mx.Run(slow, u=a, c=b, keep=True, **common) as run:
        run.advance(1)
        os.unlink(a)
        os.unlink(b)
        assert list(run.steps(3, check=1)) == [2, 3]
    with mx.Run(slow, u=str(files / "a.npy"), c=str(files / "b.npy"), **common) as run:  # small: their content counts
        assert run.advance(4).report["resumed_from"] == 3
        assert run["u"][...].tobytes() == slow.reference(4, u=np.load(files / "a.npy"), c=np.load(files / "b.npy"))["u"].tobytes()


def test_functions_are_known_by_what_they_use(mx, tmp_path, monkeypatch):
    """Globals, closures, defaults, attributes, methods, modules of the program's own, generators; not what installed packages have within."""
    function = mx.computed.Function
    (tmp_path / "of_mine.py").write_text("def f(x): return 2 * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import of_mine

    def text(f):
        return function(f).identity()
    seen = [text(pairs.of_closure(a)) for a in (1, 2)] + [text(pairs.of_default(a)) for a in (1, 2)] + [text(pairs.Callable(a)) for a in (1, 2)]
    seen += [text(pairs.of_global(a)) for a in (1.0, 2.0)] + [text(pairs.of_generator(a)) for a in (1, 2)] + [text(lambda x, y, z: of_mine.f(x))]
    of_mine.f = lambda x: 3 * x
    seen += [text(lambda x, y, z: of_mine.f(x)), text(lambda x, y, z: np.linspace(0, 1, 3)[0] * x)]
    one, other = pairs.Callable(1), pairs.Callable(2)
    for values in ([one, other, one], [one, other, other], [pairs.Mode.A, pairs.Mode.B], [pairs.Mode.A, pairs.Mode.A], range(10), range(11), decimal.Decimal("0.1"), decimal.Decimal("0.2"),
                   collections.deque([1, 2]), collections.deque([1, 3]), re.compile("a"), re.compile("b"), bytearray(b"a"), bytearray(b"b"), np.dtype("f4"), np.dtype("f8")):
        seen.append(text(lambda x, y, z, values=values: x))
    assert len(set(seen)) == len(seen)
    assert text(pairs.of_closure(1)) == seen[0] and text(pairs.of_generator(1)) == seen[8] and max(map(len, seen)) < 3000


# ------------------------------------------------------------------ stores that are in the way

def test_a_store_is_not_replaced_by_what_lies_in_it(mx, memext, quick_place, tmp_path):
    """Arrays of the store itself, also through a file that shows them and in a ramp: refused; too little DRAM; a run that was prepared and not started."""
    u = np.random.default_rng(1).random((8, 9, 10))
    common = {"device": quick_place, "dram": "64MiB", "keep": True}
    with mx.Run(u=u, **common) as run:
        run.advance(2)
    kept, wanted = (quick_place / "memext.store").read_bytes(), np.asarray(mx.open(quick_place)["u"])
    inside = [lambda: mx.ramp("x", 0, 1, where=mx.open(quick_place)["u"])]
    try:
        import h5py  # noqa: F401
        mx.open(quick_place).link(tmp_path / "shown.h5", frame=True)
        inside.append(lambda: mx.open(tmp_path / "shown.h5", "u"))
    except ImportError:
        pass
    for value in inside:
        with pytest.raises(mx.MemextError, match="u is read from the store"):
            mx.Run(u=value(), shape=(6, 7, 8), resume=False, force=True, **common).advance(1)
    with pytest.raises(mx.MemextError, match="DRAM"):
        mx.Run(u=u, resume=False, force=True, **{**common, "dram": "2MiB"}).advance(1)
    other = mx.Run(u=2 * u, resume=False, force=True, **common)
    words, source = other._problem.options()
    job = mx.job.Job([*words, "steps=1", f"device={quick_place}", "dram=64MiB", "force"], source)
    job.prepare()
    job.close()
    assert (quick_place / "memext.store").read_bytes() == kept
    with pytest.raises(mx.MemextError, match="is a store of memext"):
        mx.save(u, shutil.copy(quick_place / "memext.store", tmp_path / "store.raw"), overwrite=True)
    with mx.Run(u=mx.open(quick_place)["u"], dram="64MiB", backend="dram") as run:  # what is read only may lie there
        assert run.advance(0)["u"][...].tobytes() == wanted.tobytes()


# ------------------------------------------------------------------ a run and the store of another one

def test_a_run_removes_and_shows_its_own_state_alone(mx, quick_place):
    """Another run has replaced the store, or gone on with it: it is not shown as this run's, not gone on with, and stays when this run is closed."""
    u = np.random.default_rng(1).random((8, 9, 10))
    common = {"device": quick_place, "dram": "64MiB"}
    for other in ({"u": 2 * u, "resume": False, "force": True}, {"u": u}):
        a = mx.Run(u=u, **common)
        a.advance(3)
        with mx.Run(**other, **common, keep=True) as b:
            b.advance(5)
        assert b.step == 5
        for use in (lambda: a["u"], lambda: a.store, lambda: a.advance(6), lambda: list(a.steps(7, check=1))):
            with pytest.raises(mx.MemextError, match="another state") as caught:
                use()
            assert caught.value.errorname == "ESTALE"
        a.close()
        assert mx.open(quick_place).step == 5 and np.array_equal(b.store["u"][...], mx.open(quick_place)["u"][...])
        opened = mx.open(quick_place)
        with mx.Run(**{**other, "resume": "auto", "force": False}, **common, keep=True) as c:
            c.advance(6)
        with pytest.raises(mx.MemextError, match="has changed since it was read"):
            opened.discard()
        mx.open(quick_place).discard()
        assert list(quick_place.iterdir()) == []
    a = mx.Run(u=u, **common).advance(3)
    (quick_place / "memext.store").unlink()
    with pytest.raises(mx.MemextError, match="no longer holds the state"):
        a.advance(4)
    a.close()


def test_of_two_runs_the_second_waits_and_the_first_leaves_it(mx, memext, environment, quick_place, tmp_path):
    """close() while another process works on the store: it stays, and nothing is raised."""
    program = tmp_path / "program.py"
    program.write_text("import sys, numpy as np, memext as mx\nrun = mx.Run(u='random', shape=(6, 7, 8), device=sys.argv[1], dram='64MiB', keep=True)\n"
                       "def show(*_):\n    print('at work', flush=True)\n    sys.stdin.readline()\nrun.advance(4, progress=show)\n")
    a = mx.Run(u="random", shape=(6, 7, 8), device=quick_place, dram="64MiB").advance(2)
    process = subprocess.Popen([str(environment), str(program), str(quick_place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "at work\n"

    def in_use():
        return json.loads(memext("info", quick_place, "--json", "-").stdout)["store"]["in_use"]

    # It tells of its progress from the beginning, and may not have opened the store yet. It ends when it is told to.
    assert wait_until(in_use, "the second run has the store", process)
    a.close()
    process.communicate("\n" * 100, timeout=900)
    assert process.returncode == 0 and mx.open(quick_place).step == 4


def test_arrays_of_other_libraries_count_by_all_their_cells(mx, tmp_path):
    """One cell of 128 MiB differs: in memory, computed, and in memory although it came from a file."""
    xarray, dask = need("xarray"), need("dask.array")
    u = np.zeros((16, 1024, 1024), "f8")
    for make in (lambda: xarray.DataArray(u, dims=("z", "y", "x")), lambda: dask.from_array(u, chunks=(4, -1, -1)), lambda: xarray.DataArray(dask.from_array(u, chunks=(4, -1, -1)), dims=("z", "y", "x"))):
        u[...] = 0
        before = mx.identity.identity_of(make())
        assert mx.identity.identity_of(make()) == before
        u[3, 5, 7] = 1
        assert mx.identity.identity_of(make()) != before


def test_a_run_that_has_not_begun_shows_no_other_state(mx, quick_place):
    u = np.ones((8, 9, 10))
    with mx.Run(u=u, device=quick_place, dram="64MiB", keep=True) as run:
        run.advance(2)
    other = mx.Run(u=2 * u, device=quick_place, dram="64MiB", resume=False, force=True)
    for use in (lambda: other["u"], lambda: other.store):
        with pytest.raises(mx.MemextError, match="nothing was computed yet"):
            use()
    with pytest.raises(mx.MemextError, match="other values|another"):
        mx.Run(u=2 * u, device=quick_place, dram="64MiB")["u"]
    same = mx.Run(u=u, device=quick_place, dram="64MiB", keep=True)
    assert np.array_equal(same["u"][...], mx.open(quick_place)["u"][...])
    assert mx.Run(u=u, device=quick_place, dram="64MiB", keep=True).advance(3).step == 3 and mx.open(quick_place).step == 3
    assert same["u"].shape == (8, 9, 10)  # it is compared again, and would go on from there
    same.close(keep=False)  # which has computed nothing, and removes nothing
    assert mx.open(quick_place).step == 3
    with pytest.raises(mx.MemextError, match="call advance"):
        late = mx.Run(u=u, device=quick_place, dram="64MiB", keep=True)
        late["u"][5] = 1


def test_a_run_that_only_reads_removes_nothing(mx, quick_place):
    @mx.kernel
    def mean(u):
        return u[0, 0, 0]

    total = mx.reduce(lambda u: u)
    for read in (True, False):
        with mx.Run(mean, u=np.ones((8, 9, 10)), device=quick_place, dram="64MiB", keep=read) as run:
            assert (run.advance(2).step == 2) if read else (run.reduce(total).total == 6 * 7 * 8)
    assert mx.open(quick_place).step == 2


def test_buffers_of_whatever_order_and_type(mx):
    """Those that have padding or addresses have no identity of their own; no type of them fails."""
    import array
    import ctypes

    class Pair(ctypes.Structure):
        _fields_ = (("a", ctypes.c_char), ("b", ctypes.c_double))

    def of(buffer):
        return mx.identity.Texts().of(buffer)

    assert of(array.array("d", [1, 2])) == of(array.array("d", [1, 2])) != of(array.array("d", [1, 3]))
    cells = np.arange(6.0).reshape(2, 3)
    assert of(memoryview(cells.T)) == of(memoryview(np.arange(6.0).reshape(2, 3).T)) != of(memoryview(np.zeros((2, 3)).T))
    for odd in (Pair(b"a", 1.0), (ctypes.c_void_p * 2)(1, 2), memoryview(np.zeros(2, "i1,f8"))):
        assert isinstance(of(odd), str)


def test_lists_are_arrays(mx, quick_place):
    """Of three and two dimensions, for a run and for a file; what is no array says why."""
    cells = np.arange(6.0 * 7 * 8).reshape(6, 7, 8)
    with mx.Run(u=cells.tolist(), device=quick_place, dram="64MiB") as run:
        assert np.array_equal(run.advance(0)["u"][...], cells)
    for given in (cells.tolist(), cells[0].tolist()):
        assert np.array_equal(np.load(mx.save(given, quick_place / "u.npy", overwrite=True)), given)
    for odd in ([[[1.0], [2.0, 3.0]]], [[["a"]]], object()):
        with pytest.raises(mx.MemextError, match="array|numbers"):
            mx.save(odd, quick_place / "u.npy", overwrite=True)
    assert np.array_equal(np.load(quick_place / "u.npy"), cells[0])
