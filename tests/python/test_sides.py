# SPDX-License-Identifier: BSD-3-Clause
"""Sides of every kind, field by field: the bits of plain loops whose frames numpy.pad makes, by every algorithm, backend, engine, accelerator and rank."""
import json
import pathlib

import numpy as np
import pytest
from conftest import thinned
from drawn_problems import framed
from run_systems import System, interrupted, stored

FORMS = {"jacobi": "MX_JACOBI", "leapfrog": "MX_LEAPFROG", "staggered": "MX_STAGGERED"}


class Problem:
    """A kernel that reads its radius along every axis and across, as text and in numpy; fields f0, f1... and, of a staggered one, g0, g1..."""

    def __init__(self, folder, form, h, n, fields, sides, real="double", seed=1):
        self.folder, self.form, self.h, self.n, self.sides, self.real = folder, form, h, n, sides, real
        self.dtype = np.float64 if real == "double" else np.float32
        two = form == "staggered"
        self.names = [[f"f{i}" for i in range(fields[0])], [f"g{i}" for i in range(fields[1])] if two else [f"f{i}" for i in range(fields[0])]]
        rng = np.random.default_rng(seed)
        shape = tuple(m + 2 * h for m in reversed(n))
        self.known = {}
        self.begin = {f: (rng.random(shape) - 0.5).astype(self.dtype) for f in dict.fromkeys(self.names[0] + (self.names[1] if two else []))}
        if form == "leapfrog":
            self.begin.update({f"{f}.old": (rng.random(shape) - 0.5).astype(self.dtype) for f in self.names[0]})
        self.kernel = folder / f"{form}-{h}-{real}-{'-'.join(map(str, fields))}.c"
        self.kernel.write_text(self.text())
        for f, values in self.begin.items():
            np.save(folder / f"{f}.npy", values)

    def taps(self, f, g):
        """(weight, field, dx, dy, dz), in the order of the sum."""
        h = self.h
        return [(0.4, f, 0, 0, 0), (0.1, g, -h, 0, 0), (0.11, g, h, 0, 0), (0.06, g, 0, -h, 0), (-0.07, f, 0, h, 0), (0.08, f, 0, 0, -h), (0.05, g, 0, 0, h),
                (0.03, g, h, -h, h), (0.02, f, -1, 1, -1), (0.01, f, -h, -h, -h)]

    def text(self):
        number = "{!r}f".format if self.real == "float" else "{!r}".format

        def cell(read, written):
            lines = []
            for i, f in enumerate(written):
                a, b = read[i % len(read)], read[(i + 1) % len(read)]
                total = " + ".join(f"({number(w)}) * AT({g}, {x}, {y}, {z})" for w, g, x, y, z in self.taps(a, b))
                lines.append(f"    {self.real} v{i} = {total}{f' - {number(0.5)} * OLD({f})' if self.form != 'jacobi' else ''};")
            return "\n".join(lines + [f"    SET({f}, v{i});" for i, f in enumerate(written)] + ["MX_END\n"])

        def list_of(names):
            return " ".join(f"F({f}, {self.real})" for f in names)

        a, b = self.names
        head = [f'#define MX_NAME "{self.form}"', f"#define MX_RADIUS {self.h}", f"#define MX_FORM {FORMS[self.form]}", f"#define MX_STATE(F) {list_of(a)}"]
        if self.form == "staggered":
            return "\n".join([*head, f"#define MX_PARTNER(F) {list_of(b)}", "#include <memext/cell.h>", "MX_CELL_B", cell(a, b), "MX_CELL_A", cell(b, a)])
        return "\n".join([*head, "#include <memext/cell.h>", "MX_CELL", cell(a, a)])

    def kinds(self, f):
        """Of field f: what is said of it, or else of all."""
        said = {**{axis: "fixed" for axis in "xyz"}, **{w[0]: w[2:] for w in self.sides if ":" not in w},
                **{w.split(":")[1][0]: w.split("=")[1] for w in self.sides if w.startswith(f"{f}:")}}
        return [(said[axis].split(",") * 2)[:2] for axis in "xyz"]

    def framed(self, array):
        return {f: framed(a, self.h, self.kinds(f)) for f, a in array.items()}

    def level(self, read, written):
        h, out = self.h, {}
        names = list(read)
        for i, f in enumerate(written):
            total = None
            for w, g, x, y, z in self.taps(names[i % len(names)], names[(i + 1) % len(names)]):
                a = read[g]
                value = self.dtype(w) * a[h + z:a.shape[0] - h + z, h + y:a.shape[1] - h + y, h + x:a.shape[2] - h + x]
                total = value if total is None else total + value
            inner = (slice(h, -h),) * 3
            out[f] = written[f].copy()
            out[f][inner] = total - self.dtype(0.5) * written[f][inner] if self.form != "jacobi" else total
        return self.framed(out)

    def wanted(self, nt):
        if nt not in self.known:
            self.known[nt] = self.computed(nt)
        return self.known[nt]

    def computed(self, nt):
        a = self.framed({f: self.begin[f] for f in self.names[0]})
        if self.form == "staggered":
            b = self.framed({f: self.begin[f] for f in self.names[1]})
            for _ in range(nt):
                b = self.level(a, b)
                a = self.level(b, a)
            return {**a, **b}
        b = self.framed({f: self.begin[f"{f}.old"] for f in self.names[0]}) if self.form == "leapfrog" else a
        for _ in range(nt):
            a, b = self.level(a, b), a
        return {**a, **({f"{f}.old": v for f, v in b.items()} if self.form == "leapfrog" else {})}

    def words(self, nt):
        return ["--kernel", self.kernel, "-t", nt, *(w for s in self.sides for w in ("--side", s)),
                *(w for f in self.begin for w in ("--input", f"{f}={self.folder / f}.npy"))]

    def outputs(self):
        return [w for f in self.begin for w in ("--output", f"{f}={self.folder / f}.out.npy")] + ["--overwrite"]

    def check(self, nt, told):
        for f, wanted in self.wanted(nt).items():
            got = np.load(self.folder / f"{f}.out.npy")
            assert got.dtype == wanted.dtype and got.tobytes() == wanted.tobytes(), (f, told, np.argwhere(got != wanted)[:3])


@pytest.fixture
def place(quick_place):
    return quick_place


def as_predicted(report, told):
    assert report["read_bytes"] == report["predicted_read_bytes"] and report["write_bytes"] == report["predicted_write_bytes"], told


MIXED = ["z=mirror,odd", "f0:z=odd-node,edge", "f1:y=mirror-node,fixed", "y=edge,odd", "x=odd-node,mirror-node", "f2:x=fixed,odd"]
STAGGERED = ["g0:z=odd,mirror-node", "f0:z=mirror-node,odd-node", "z=edge", "g1:y=odd-node", "y=mirror,fixed", "f1:x=odd,edge"]
PROBLEMS = {
    "jacobi": ("jacobi", 1, (7, 12, 14), (3, 3), MIXED, "double"), "jacobi, radius 3": ("jacobi", 3, (6, 17, 19), (3, 3), MIXED, "float"),
    "leapfrog": ("leapfrog", 2, (5, 13, 16), (3, 3), MIXED, "double"), "staggered": ("staggered", 2, (9, 14, 15), (2, 2), STAGGERED, "float"),
    "alike": ("jacobi", 2, (6, 13, 16), (2, 2), ["z=odd-node,mirror-node", "y=mirror-node,odd-node", "x=mirror-node,odd"], "double"),
    "around y": ("leapfrog", 1, (6, 9, 15), (2, 2), ["y=periodic", "f1:z=odd-node,fixed", "z=mirror-node,odd"], "float"),
    "around z": ("staggered", 1, (4, 11, 12), (2, 1), ["z=periodic", "g0:y=odd-node", "f0:x=odd"], "double"),
}
PLANS = {
    "stream": ["--algorithm", "stream", "--block", 200, 200, 2], "strips": ["--plan", "stream by=10 bt=2 slab=3"], "iblock": ["--plan", "stream bt=2 slab=2 engine=iblock"],
    "redundant": ["--algorithm", "redundant", "--block", 7, 7, 2], "redundant, a level": ["--plan", "redundant by=8 bz=8 bt=2"],
    "direct": ["--algorithm", "direct", "--engine", "iblock"], "direct, tiled": ["--algorithm", "direct", "--engine", "tiled"],
    "skewed-y": ["--plan", "skewed-y by=11 bz=12 bt=2"], "resident": ["--plan", "resident bt=2", "--engine", "iblock"],
}
RUNS = [("uring", "stream", []), ("aio", "strips", []), ("mmap", "iblock", []), ("uring", "redundant", []), ("dram", "redundant, a level", []), ("mmap", "direct", []),
        ("dram", "direct, tiled", []), ("dram", "skewed-y", []), ("uring", "resident", []), ("uring", "stream", ["--ranks", 2]), ("uring", "strips", ["--ranks", 3]),
        ("uring", "redundant", ["--ranks", 2]), ("uring", "stream", ["--accel", "host"]), ("uring", "stream", ["--no-fuse", "--integrity"])]


@pytest.mark.parametrize("name", PROBLEMS)
def test_runs_give_the_bits_of_numpy(memext, place, tmp_path, name):
    """Every algorithm, backend, engine and number of ranks that takes the sides: same bits in all fields, frames included, bytes as predicted, verified. What is
    refused names a side."""
    p, nt, refused = Problem(tmp_path, *PROBLEMS[name][:4], PROBLEMS[name][4], PROBLEMS[name][5]), 5, []
    for backend, plan, more in RUNS:
        words = [*p.words(nt), *PLANS[plan], "--backend", backend, *(["-d", place, "--force"] if backend != "dram" else []), *more, "--verify", "--threads", 2]
        done = memext("run", *words, *p.outputs(), "--json", tmp_path / "j.json")
        if done.returncode == 2:
            assert "periodic" in done.stderr or "the frame at " in done.stderr or "side" in done.stderr or "in-place" in done.stderr, (plan, done.stderr)
            refused.append(plan)
            continue
        assert done.returncode == 0, (plan, more, done.stderr)
        report = json.loads((tmp_path / "j.json").read_text())
        assert report["verified"]
        if backend != "mmap":  # whose pages the kernel writes when it likes
            as_predicted(report, (plan, more))
        p.check(nt, (backend, plan, more))
    assert len(refused) <= 5 and not {"stream", "iblock"} & set(refused), refused


def test_too_few_cells(memext, tmp_path):
    for sides, n, h, naming in ((["x=odd"], (1, 4, 4), 2, ["1 cells in x", "odd", "2 cells or more"]), (["z=mirror-node"], (4, 4, 2), 2, ["2 cells in z", "3 cells or more"]),
                                (["f1:y=odd-node"], (4, 2, 4), 2, ["2 cells in y", "odd-node"])):
        p = Problem(tmp_path, "jacobi", h, n, (2, 2), sides)
        memext.refused("run", *p.words(2), "--backend", "dram", naming=naming)


def test_blocks_that_are_too_short(memext, place, tmp_path):
    """Blocks and strips must hold what a frame copies: one cell more about a node, at either end."""
    plans = {"mirror": ["skewed-y by=6 bz=12 bt=2", "redundant by=3 bz=12 bt=2", "stream by=3 bt=2"],
             "mirror-node": ["skewed-y by=7 bz=12 bt=2", "redundant by=5 bz=12 bt=2", "stream by=4 bt=2"]}
    for kind in plans:
        p = Problem(tmp_path, "jacobi", 1, (5, 12 if kind == "mirror" else 13, 12), (2, 2), [f"f1:y={kind}"])
        for plan in plans[kind]:
            memext.run(*p.words(2), "-d", place, "--force", "--plan", plan, *p.outputs())
            p.check(2, plan)
    p = Problem(tmp_path, "jacobi", 1, (5, 12, 12), (2, 2), ["f1:y=mirror-node"])
    for plan, which in (("skewed-y by=6 bz=12 bt=2", "last Block"), ("stream by=3 bt=2", "first Block or strip"), ("redundant by=11 bz=12 bt=2", "last Block has only 1")):
        memext.refused("run", *p.words(2), "-d", place, "--force", "--plan", plan, naming=["y=mirror-node", which])


@pytest.mark.parametrize("words, naming", [
    (["g:z=odd"], ["'g:z=odd'", "f0, f1"]), (["f0:z=odd", "f0:z=edge"], ["given twice", "'f0:z=odd'", "'f0:z=edge'"]), (["f0:z=periodic"], ["periodic for all fields or none"]),
    (["z=periodic", "f1:z=odd"], ["not for f1"]), (["z=odd,periodic"], ["one end only"]), (["f0:w=odd"], ["names no axis"]), (["z=od"], ["odd"]), (["f0=odd"], ["names no axis"]),
])
def test_words_that_are_refused(memext, tmp_path, words, naming):
    p = Problem(tmp_path, "jacobi", 1, (6, 5, 4), (2, 2), [])
    memext.refused("run", *p.words(2), *(w for s in words for w in ("--side", s)), "--backend", "dram", naming=naming)


@pytest.mark.parametrize("name", thinned(["jacobi", "staggered", "leapfrog", "around z"], lambda name: name == "staggered"))
def test_on_a_device(memext, place, tmp_path, name):
    """OpenCL, on the CPU where PoCL is: the same bits, norms and probes as in DRAM, in a ring, in strips and resident."""
    if "opencl" in [line.split()[0] for line in memext("info").stdout.splitlines() if "does not work here" in line and line.strip().startswith("opencl")]:
        pytest.skip("there is no device of OpenCL")
    p, nt = Problem(tmp_path, *PROBLEMS[name][:4], PROBLEMS[name][4], PROBLEMS[name][5]), 3
    (tmp_path / "probes").write_text("".join(f"{f} {x} 1 2\n" for f in p.names[0] for x in (0, 2)))
    more = ["--probes", tmp_path / "probes", "--check", 1]
    wanted = memext.run(*p.words(nt), "--backend", "dram", *more, "--probes-out", tmp_path / "host.npy", *p.outputs())
    p.check(nt, "dram")
    for plan in (["--plan", "stream bt=2 slab=3"], ["--plan", "stream by=10 bt=2 slab=3"], ["--plan", "resident bt=2"]):
        if name == "around z" and "resident bt=2" in plan:
            plan = [*plan, "--engine", "device"]
        report = memext.run(*p.words(nt), "-d", place, "--accel", "opencl", *plan, *more, "--probes-out", tmp_path / "there.npy", *p.outputs(), "--force")
        p.check(nt, plan)
        as_predicted(report, plan)
        assert report["norms"] == wanted["norms"] and (tmp_path / "there.npy").read_bytes() == (tmp_path / "host.npy").read_bytes(), plan


@pytest.mark.parametrize("name", ["jacobi", "leapfrog", "staggered"])
def test_interrupted(memext, place, tmp_path, name):
    """A run whose device dies between two commits, gone on with, by one process and then by three ranks: the bits of numpy. Other sides are refused by what they are."""
    p, nt = Problem(tmp_path, *PROBLEMS[name][:4], PROBLEMS[name][4], PROBLEMS[name][5]), 9
    interrupted(memext, p, place, nt, "--plan", "stream bt=2 slab=2", "--commit-every", 0)
    memext.refused("run", "--resume", "-d", place, "--side", "z=edge", naming=["'z=edge'", ":z=", "leave --side out"])
    memext.run("--resume", "-d", place, *p.outputs(), "--keep", "--verify")
    p.check(nt, "resumed")
    memext.run("--resume", "-d", place, "-t", nt + 2, *(w for s in reversed(p.sides) for w in ("--side", s)), *p.outputs(), "--keep")
    p.check(nt + 2, "resumed with its own sides in another order")
    assert stored(memext, place)["step"] == nt + 2


def test_ranks_go_on_with_other_ranks(memext, place, tmp_path):
    p = Problem(tmp_path, *PROBLEMS["staggered"][:4], STAGGERED, "float")
    memext.run(*p.words(2), "-d", place, "--ranks", 2, "--keep", "--force")
    memext.run("--resume", "-d", place, "-t", 5, "--ranks", 3, "--keep", *p.outputs())
    p.check(5, "two ranks, then three")


def test_ends_of_ranks(memext, place, tmp_path):
    """A rank at an end needs one plane more than the radius where sides are about a node."""
    p = Problem(tmp_path, "jacobi", 2, (4, 5, 6), (2, 2), ["f1:z=odd-node,fixed"])
    memext.refused("run", *p.words(2), "-d", place, "--ranks", 3, naming=["lower end of z copies 3 planes", "rank 0 has 2"])


def test_older_programs_refuse_new_sides(memext, place, tmp_path):
    """The note of a store has a version that older programs read only if they know the sides."""
    for sides, version in ((["z=mirror", "x=periodic"], 4), (["z=odd"], 7), (["f0:z=mirror"], 7)):
        p = Problem(tmp_path, "jacobi", 1, (6, 5, 4), (2, 2), sides)
        memext.run(*p.words(2), "-d", place, "--keep", "--force")
        assert f'"note":{version},'.encode() in (place / "memext.store").read_bytes(), sides


def test_signs(memext, tmp_path):
    """Minus changes the sign bit alone: of 0, and of what is not a number."""
    p = Problem(tmp_path, "jacobi", 1, (5, 4, 3), (1, 1), ["x=odd", "z=odd-node"])
    a = p.begin["f0"]
    a[2, 2, 1], a[2, 3, 1], a[2, 2, 5] = 0.0, -0.0, np.nan
    np.save(tmp_path / "f0.npy", a)
    memext.run(*p.words(0), "--backend", "dram", "--nonfinite", "ignore", *p.outputs())
    got = np.load(tmp_path / "f0.out.npy")
    assert got.tobytes() == p.wanted(0)["f0"].tobytes()
    assert [np.signbit(got[2, 2, 0]), np.signbit(got[2, 3, 0])] == [True, False] and np.isnan(got[2, 2, 6]) and np.signbit(got[2, 2, 6]) != np.signbit(got[2, 2, 5])
    assert not got[1, 1:-1, 1:-1].any() and not np.signbit(got[1, 1:-1, 1:-1]).any()


def test_zeros_are_what_everybody_sees(memext, place, tmp_path):
    """Cells of a node that would not be finite, or that a source adds to, are 0: to probes, norms, counts and outputs, with every engine."""
    sides = ["f0:x=odd-node,fixed", "z=odd-node"]
    p, nt = Problem(tmp_path, "jacobi", 1, (6, 5, 4), (1, 1), sides), 3
    p.begin["f0"][1, 2, 3] = np.inf
    np.save(tmp_path / "f0.npy", p.begin["f0"])
    np.save(tmp_path / "w.npy", np.ones(4))
    (tmp_path / "probes").write_text("f0 0 2 2\nf0 3 3 0\nf0 3 3 1\n")
    for words in (["--backend", "dram", "--engine", "iblock"], ["--backend", "dram", "--engine", "tiled"], ["-d", place, "--force"], ["-d", place, "--force", "--no-fuse"],
                  ["-d", place, "--force", "--accel", "host"], ["-d", place, "--force", "--ranks", 2]):
        memext.run(*p.words(nt), *words, "--source", f"f0@0,2,2={tmp_path}/w.npy", "--probes", tmp_path / "probes", "--probes-out", tmp_path / "traces.npy",
                   "--check", 1, *p.outputs())
        p.check(nt, words)
        traces = np.load(tmp_path / "traces.npy")
        assert not traces[:, :2].any() and traces[:, 2].all(), words


@pytest.mark.parametrize("backend, plan, more", [("uring", "stream", []), ("aio", "redundant", []), ("uring", "strips", ["--ranks", 2]), ("uring", "stream", ["--accel", "host"])])
def test_free_surface(memext, place, tmp_path, backend, plan, more):
    """systems/elastic.c with the sides that its text names: the bits of its reference."""
    s, nt = System("elastic", tmp_path), 6
    text = (pathlib.Path(__file__).resolve().parents[2] / "systems" / "elastic.c").read_text()
    sides = [w for w in text.split("*/")[1].replace("*", " ").split() if w == "--side" or "z=" in w]
    assert sides.count("--side") == 5
    s.params["surface"] = True
    wanted = s.wanted(nt)
    del s.params["surface"]
    memext.run(*s.words(nt), *sides, *PLANS[plan], "--backend", backend, "-d", place, "--force", *more, *s.outputs(tmp_path), "--overwrite")
    s.check(tmp_path, nt)
    assert not np.load(tmp_path / "szz.out.npy")[1, 1:-1, 1:-1].any() and wanted["vx"][1].any()


def test_info_tells_the_sides(memext, quick_place):
    """In the words of the option, also of one field."""
    memext.run("-n", 20, 20, 20, "-t", 4, "--side", "z=mirror,odd", "--side", "x=periodic", "-d", quick_place, "--keep", "--dram", "64MiB")
    assert "sides      x=periodic z=mirror,odd\n" in memext("info", quick_place).stdout
    assert json.loads(memext("info", quick_place, "--json", "-").stdout)["store"]["sides"] == "x=periodic z=mirror,odd"
