# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of Python programs that differ in one thing, drawn by a seed: the second runs in the place where the first has kept its state.

pairs.py SEED COUNT prints what is wrong and counts; the package must be importable, and PAIRS_DIR names a directory of a disk."""
import enum
import os
import pathlib
import random
import shutil
import sys
import tempfile
import warnings

import numpy as np

N = (8, 9, 10)  # interior cells
SCALE = [1.0]   # of use_global


def use_global(x, y, z):
    return SCALE[0] * x + y + z


def of_closure(a):
    return lambda x, y, z: a * x + 0.5 * y + z


def of_default(a):
    def f(x, y, z, a=a):
        return x - a * y + z
    return f


class Mode(enum.Enum):
    A = 1
    B = 2


class Callable:
    def __init__(self, a):
        self.a = a

    def __call__(self, x, y, z):
        return self.a * x + y - z


def of_global(a):
    SCALE[0] = a
    return use_global


def of_generator(seed):
    generator = np.random.default_rng(int(seed))
    return lambda x, y, z: generator.random((y.size, x.size))


def kernels(mx):
    def heat(u, w): return u + w * (u[-1, 0, 0] + u[1, 0, 0] + u[0, 1, 0] + u[0, -1, 0] - 4 * u)
    def turned(u, w): return u + w * (u[-1, 0, 0] + u[1, 0, 0] + u[0, 0, 1] + u[0, 0, -1] - 4 * u)
    def coefficient(u, c): return u + c * 0.05 * (u[0, 1, 0] + u[0, -1, 0] - 2 * u)
    def wave(p): return 2 * p - p.old + 0.1 * (p[0, 0, 1] + p[0, 0, -1] - 2 * p)
    def two(u, v, f): return u * (1 - f) + 0.1 * v[1, 0, 0], v + f * u
    made = {"heat": mx.kernel(params={"w": 0.1})(heat), "turned": mx.kernel(params={"w": 0.1})(turned), "coefficient": mx.kernel(fixed="c")(coefficient),
            "wave": mx.kernel(wave), "two": mx.kernel(params={"f": 0.03})(two)}
    return {None: None, **made}


class World:
    """Draws programs and writes their files. A value is an object, or (function, arguments...) that makes one anew for each program."""

    def __init__(self, mx, folder, rng):
        self.mx, self.folder, self.rng, self.files = mx, folder, rng, 0
        self.endings = [e for e, module in ((".npy", None), (".raw", None), (".h5", "h5py"), (".zarr", "zarr"), (".tif", "tifffile")) if module is None or _has(module)]

    def array(self):
        return np.random.default_rng(self.rng.randrange(1 << 30)).random(tuple(n + 2 for n in N))

    def other(self, array):
        changed = array.copy()
        changed[tuple(self.rng.randrange(n) for n in array.shape)] += 0.25
        return changed

    def path(self, ending):
        self.files += 1
        return self.folder / f"f{self.files}{ending}"

    def write(self, path, array):
        """(mx.open, arguments)"""
        if path.suffix == ".npy":
            np.save(path, array)
        elif path.suffix == ".raw":
            path.write_bytes(b"\0" * 64 + array.tobytes() + b"\0" * 640)
            return self._raw, path, array.shape, 64
        elif path.suffix == ".h5":
            import h5py
            with h5py.File(path, "w") as file:
                file["a"], file["b"] = array, array[::-1]
            return self.mx.open, path, "a"
        elif path.suffix == ".zarr":
            import zarr
            if path.exists():
                zarr.open(str(path), mode="r+")[:] = array
            else:
                zarr.save_array(str(path), array)
        else:
            import tifffile
            tifffile.imwrite(path, array, photometric="minisblack")
        return self.mx.open, path

    def _raw(self, path, shape, offset):
        return self.mx.open(path, dtype="<f8", shape=shape, offset=offset)

    def file(self, array=None):
        return self.write(self.path(self.rng.choice(self.endings)), self.array() if array is None else array)

    def value(self, state):
        """What a field begins with, and in the second program; a function of none is called between the programs."""
        kind = self.rng.choice(["array", "view", "number", "file", "rewritten", "touched", "init", "closure", "default", "object", "global", "ramp", "generator",
                                "offset", "dataset"])
        if kind == "array":
            a = self.array()
            return a, self.other(a)
        if kind == "view":
            a = self.array()
            return a, self.rng.choice([np.asfortranarray(a), a[::-1]])
        if kind == "file":
            return self.file(), self.file()
        if kind in ("rewritten", "touched"):
            a, path = self.array(), self.path(self.rng.choice(self.endings))
            value, after = self.write(path, a), self.other(a) if kind == "rewritten" else a
            return value, lambda: self.write(path, after)
        if kind == "init" and state:
            return "random", self.rng.choice(["gauss", "linear", "corner", "zero"])
        if kind == "offset":
            value = self.write(self.path(".raw"), self.array())
            return value, (*value[:3], 72)
        if kind == "dataset" and ".h5" in self.endings:
            value = self.write(self.path(".h5"), self.array())
            return value, (*value[:2], "b")
        if kind == "ramp":
            return (self.mx.ramp, self.rng.choice("xyz"), 0.0, 1.0), (self.mx.ramp, "y", 0.0, 2.0)
        makers = {"closure": of_closure, "default": of_default, "object": Callable, "global": of_global, "generator": of_generator}
        if kind in makers:
            return (makers[kind], 2.0), (makers[kind], 3.0)
        return 0.5, self.rng.choice([0.25, -0.5, 0.5000000000000001])

    def wavelet(self, gain):
        path = self.path(".npy")
        np.save(path, np.arange(1.0, 21.0) * gain)
        return path

    def program(self):
        """(keywords of a run, {what may change: its value in the second program})"""
        r = self.rng
        form = r.choice([None, None, "heat", "coefficient", "wave", "wave from two steps", "two"])
        names = {"coefficient": ["u", "c"], "wave": ["p"], "wave from two steps": ["p", "p_old"], "two": ["u", "v"]}.get(form, ["u"])
        a, change = {"shape": N, "steps": 4, "kernel": form and form.split()[0]}, {}
        for name in names:
            a[name], change[name] = self.value(name != "c")
        if form is None:
            a.update(r.choice([{}, {"coef": (0.4, 0.05)}, {"side": {"z": "mirror"}}]))
            change["coef"] = r.choice([(0.4, 0.06), None]) if "coef" in a else (0.3, 0.11)
            change["side"] = r.choice([None, {"z": "periodic"}, {"z": "fixed,mirror"}]) if "side" in a else {r.choice("xyz"): r.choice(["periodic", "mirror"])}
            change["stencil"], change["kernel"] = r.choice(["edge19", "box27"]), "heat"
        if form == "heat":
            a.update(r.choice([{}, {"params": {"w": 0.05}}]))
            change["params"], change["kernel"] = (r.choice([None, {"w": 0.0500000000001}]) if "params" in a else {"w": 0.2}), "turned"
        if form == "two":
            change["params"] = {"f": 0.04}
        if form != "coefficient":
            change["dtype"] = "f4"
        point, wavelet = f"{names[0]}@3,3,3=", self.wavelet(2)
        change["source"] = [f"{point}{wavelet}"]
        if r.random() < 0.3:
            a["source"], change["source"] = change["source"], r.choice([None, [f"{names[0]}@3,4,3={wavelet}"], [f"{point}{self.wavelet(3)}"]])
        if all(isinstance(a[name], np.ndarray) for name in names):
            for name in names:
                a[name] = a[name][1:-1, 1:-1, 1:-1]
                del change[name]
            a["frame"], change["frame"] = 0.0, r.choice([5.0, "edge", "periodic", "mirror"])
        return a, {**change, "nothing": None, "steps": 7, "keep": True, "resume": True, "shape": (8, 9, 11)}


THE_SAME = ("nothing", "steps", "keep", "resume")  # whatever these are, it is the same problem


def _has(module):
    try:
        __import__(module)
        return True
    except ImportError:
        return False


def compute(mx, known, arguments, place, **more):
    """The state of a run, {field: array}; or the sentence that refuses it."""
    given = {n: v[0](*v[1:]) if isinstance(v, tuple) and callable(v[0]) else v for n, v in {**arguments, **more}.items()}
    steps, kernel = given.pop("steps"), known[given.pop("kernel")]
    try:
        with mx.Run(kernel, device=place, dram="64MiB", **given) as run:
            run.advance(steps)
            return {name: np.asarray(run[name]).copy() for name in run.store.fields}
    except (mx.MemextError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def alike(a, b):
    return isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys() and all(a[n].shape == b[n].shape and a[n].tobytes() == b[n].tobytes() for n in a)


def pair(mx, folder, seed):
    """(what was changed, "right", "refused" or what is wrong). Right is the result of the second program alone, or a refusal that leaves the store."""
    rng = random.Random(seed)
    world, known = World(mx, folder, rng), kernels(mx)
    first, change = world.program()
    what = rng.choice(sorted(change))
    store, alone = folder / "store", folder / "alone"
    store.mkdir()
    alone.mkdir()
    told = f"{first['kernel']}, {what}"
    before = compute(mx, known, first, store, keep=True)
    if isinstance(before, str):
        return told, f"the first program is refused: {before}"
    second, new = dict(first), change[what]
    if callable(new):
        new = new()
    if what != "nothing":
        second[what] = new
        second = {n: v for n, v in second.items() if v is not None or n == "kernel"}
    if what != "steps" and rng.random() < 0.5:
        second["steps"] += 3
    wanted = compute(mx, known, {n: v for n, v in second.items() if n != "resume"}, alone)
    left = (store / "memext.store").read_bytes()
    found = compute(mx, known, second, store)
    if isinstance(found, dict):
        return told, "right" if alike(found, wanted) else "another result than the program has alone"
    if what in THE_SAME:
        return told, f"the same problem is refused: {found}"
    if (store / "memext.store").read_bytes() != left:
        return told, f"refused, and the store has changed: {found}"
    if isinstance(wanted, dict) and "start again: resume=False and force=True" not in found:
        return told, f"refused without a way out: {found}"
    return told, "refused"


def main(seed, count):
    import memext
    warnings.simplefilter("ignore")
    counts = {}
    for number in range(count):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="pairs-", dir=os.environ.get("PAIRS_DIR", ".")))
        told, verdict = pair(memext, folder, f"{seed} {number}")
        counts[verdict if verdict in ("right", "refused") else "wrong"] = counts.get(verdict if verdict in ("right", "refused") else "wrong", 0) + 1
        if verdict not in ("right", "refused"):
            print(f"{seed} {number}: {told}: {verdict}", flush=True)
        shutil.rmtree(folder)
    print(seed, counts)
    return counts.get("wrong", 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])) > 0)
