# SPDX-License-Identifier: BSD-3-Clause
"""Grids of two dimensions: kernels with MX_RADII r, r, 0 have the bits of numpy by every plan, backend, rank, accelerator and resume. Their files have two
dimensions, and their rows have no frame above and below that would be moved."""
import importlib.util
import json
import os
import shutil

import numpy as np
import pytest
from flat import NAMES, NX, NY, SCHEMES, sided
from test_systems import SYSTEMS
from test_accel import fake_cuda, no_settings, use, works  # noqa: F401 (fixtures)

STEPS = 9
SIDES = [("fixed", "fixed"), ("periodic", "periodic"), ("odd", "mirror"), ("fixed", "periodic"), ("periodic", "odd")]
PLANS = ["stream by=1 bt=4 slab=5", "stream by=1 bt=2 slab=3 ahead=1", "redundant by=1 bz=17 bt=2", "skewed-min by=1 bz=13 bt=4", "skewed-y by=1 bz=41 bt=2", "skewed by=1 bz=20 bt=4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Kernels and the fields that they begin with. Every kernel is compiled once."""
    folder, before = tmp_path_factory.mktemp("flat"), os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    for s in SCHEMES:
        (folder / f"{s.name}.c").write_text(s.text)
        state, fixed = s.begin()
        for name, values in {**state, **fixed}.items():
            np.save(folder / f"{s.name}-{name}.npy", values)
            np.save(folder / f"{s.name}-{name}-bare.npy", values[s.h:-s.h, s.h:-s.h])
    yield folder
    del os.environ["XDG_CACHE_HOME"]
    if before is not None:
        os.environ["XDG_CACHE_HOME"] = before


def fields(s):
    return [*s.state, *s.old.values()]


def words(folder, s, *more, bare=""):
    given = [w for f in fields(s) for w in ("--input", f"{f}={folder}/{s.name}-{f}{bare}.npy")] + [w for f in s.fixed for w in ("--field", f"{f}={folder}/{s.name}-{f}{bare}.npy")]
    return ["--kernel", folder / f"{s.name}.c", *given, "--dram", "64MiB", *more]


def outputs(s, where):
    return ["--overwrite", *(w for f in fields(s) for w in ("--output", f"{f}={where}/{f}.out.npy"))]


def same(s, where, wanted, what):
    for f in fields(s):
        got = np.load(where / f"{f}.out.npy")
        assert got.shape == wanted[f].shape and got.tobytes() == wanted[f].tobytes(), (s.name, f, what, got.shape)


def on(sides):
    return [w for axis, side in zip("xy", sides) for w in ("--side", f"{axis}={side}")]


@pytest.mark.parametrize("name", NAMES)
def test_every_plan(memext, quick_place, folder, name):
    """Fields with their frames by every algorithm, with all kinds of sides; predicted bytes are moved, and no bytes of frames above and below rows."""
    s = SCHEMES[NAMES.index(name)]
    for i, sides in enumerate(SIDES):
        c = {f: sided(a, s.h, tuple(x if x == "periodic" else "fixed" for x in sides)) for f, a in s.begin()[1].items()}
        wanted = s.run(STEPS, sides, c)[STEPS]
        for k, plan in enumerate(PLANS):
            if (i + k) % 3 > 0 or (sides[1] == "periodic" and plan[:4] == "skew"):
                continue
            result = memext.run(*words(folder, s, "-t", STEPS, "-d", quick_place, "--force", "--backend", ["uring", "aio"][(i + k) % 2], *outputs(s, quick_place), "--plan", plan,
                                       "--threads", 1 + (i + k) % 3, *on(sides), *[[], ["--no-fuse"], ["--integrity"], ["--verify"]][(i + k) % 4]))
            same(s, quick_place, wanted, (sides, plan))
            assert (result["read_bytes"], result["write_bytes"]) == (result["predicted_read_bytes"], result["predicted_write_bytes"]), (sides, plan)
            p = result["problem"]
            assert (p["nx"], p["ny"], p["nz"], p["dimensions"]) == (NX, NY, 1, 2)
        where = [["--backend", "dram"], ["--backend", "mmap", "-d", quick_place, "--force", "--algorithm", "direct", "--engine", "iblock"], ["-d", quick_place, "--force", "--engine", "iblock"]][i % 3]
        memext.run(*words(folder, s, "-t", STEPS, *where, *outputs(s, quick_place), *on(sides), "--verify"))
        same(s, quick_place, wanted, (sides, where))


def test_columns_of_rows_that_are_cut(memext, quick_place, folder):
    """Threads share what is along x: columns and slabs of every size."""
    s = SCHEMES[0]
    wanted = s.run(STEPS)[STEPS]
    for column, slab, threads in ((1, 1, 3), (7, 3, 2), (20, 16, 3), (64, 50, 1)):
        memext.run(*words(folder, s, "-t", STEPS, "-d", quick_place, "--force", *outputs(s, quick_place), "--column", column, "--slab", slab, "--threads", threads))
        same(s, quick_place, wanted, (column, slab, threads))


def test_a_store_has_no_frame_above_and_below_rows(memext, quick_place, folder):
    """Rows are planes of one row: so many as the grid has rows, and its frame."""
    s = SCHEMES[0]
    memext.run(*words(folder, s, "-t", 4, "-d", quick_place / "s.memext", "--keep", "--force"))
    store = json.loads(memext("info", quick_place / "s.memext", "--json", "-").stdout)["store"]
    one = store["arrays"][0]
    assert one["planes"] == NY + 2 and one["plane_pitch_bytes"] == 4096 and (store["problem"]["ny"], store["problem"]["nz"]) == (NY, 1)
    shown = memext("info", quick_place / "s.memext").stdout
    assert f"{NX} x {NY}, 4 steps" in shown, shown
    memext("export", quick_place / "s.memext", "-o", f"u={quick_place}/u.out.npy", "--overwrite")
    same(s, quick_place, s.run(4)[4], "export")
    memext("export", quick_place / "s.memext", "-o", f"u={quick_place}/bare.npy", "--overwrite", "--output-frame", "none")
    assert np.load(quick_place / "bare.npy").tobytes() == s.run(4)[4]["u"][1:-1, 1:-1].tobytes()


def test_files_without_a_frame_raw_and_profiles(memext, quick_place, folder):
    s = SCHEMES[0]
    state, c = s.begin()
    for kind, mode in (("edge", "edge"), ("mirror", "symmetric"), ("periodic", "wrap"), ("0.25", None)):
        pad = {"mode": mode} if mode else {"mode": "constant", "constant_values": 0.25}
        begin = {"u": np.pad(state["u"][1:-1, 1:-1], 1, **pad)}
        wanted = begin
        for t in range(5):
            wanted = s.step({"u": wanted["u"].copy()}, c, t, ("fixed", "fixed"))
        memext.run(*words(folder, s, "-t", 5, "--backend", "dram", "--frame", kind, *outputs(s, quick_place), bare="-bare"))
        same(s, quick_place, wanted, kind)
    (quick_place / "u.raw").write_bytes(b"head" * 2 + state["u"].tobytes())
    (quick_place / "k.raw").write_bytes(c["k"][1:-1, 1:-1].tobytes())
    memext.run("--kernel", folder / "heat.c", "-n", NX, NY, "-t", 5, "--input", f"u={quick_place}/u.raw,f64,offset=8", "--field", f"k={quick_place}/k.raw,f32,frame=no",
               "--field", f"m={folder}/heat-m.npy", "--backend", "dram", *outputs(s, quick_place))
    same(s, quick_place, s.run(5)[5], "raw")
    for shape in ((1, NX), (NY, 1), (1, 1), (1, NX + 2), (NY + 2, 1)):
        values = np.random.default_rng(2).random(shape).astype("f4")
        np.save(quick_place / "k.npy", values)
        full = dict(c, k=np.broadcast_to(values if shape[0] > NY or shape[1] > NX else np.pad(np.broadcast_to(values, (NY, NX)), 1), c["k"].shape))
        memext.run("--kernel", folder / "heat.c", "-n", NX, NY, "-t", 5, "--input", f"u={folder}/heat-u.npy", "--field", f"k={quick_place}/k.npy", "--field", f"m={folder}/heat-m.npy",
                   "-d", quick_place, "--force", *outputs(s, quick_place))
        same(s, quick_place, s.run(5, fixed=full)[5], shape)


def test_dimensions_of_files_have_names(memext, quick_place, folder):
    """NRRD and HDF5 are read where they lie; x before y is refused, as z, y, x in another order is."""
    s = SCHEMES[0]
    u = s.begin()[0]["u"]
    run = ["--kernel", folder / "heat.c", "-t", 5, "--field", f"k={folder}/heat-k.npy", "--field", f"m={folder}/heat-m.npy", "--backend", "dram", *outputs(s, quick_place)]
    named = {"named.nrrd": 'labels: "x" "y"\n', "plain.nrrd": "", "other.nrrd": 'labels: "lon" "lat"\n', "turned.nrrd": 'labels: "y" "x"\n'}
    for name, labels in named.items():
        head = f"NRRD0005\ntype: double\ndimension: 2\nsizes: {NX + 2} {NY + 2}\nencoding: raw\nendian: little\n{labels}\n"
        (quick_place / name).write_bytes(head.encode() + u.tobytes())
    if importlib.util.find_spec("h5py") and "hdf5" in memext("info").stdout:
        import h5py
        for name, labels in (("named.h5", "yx"), ("plain.h5", ""), ("slice.h5", "zx"), ("slice-x.h5", "zy"), ("turned.h5", "xy"), ("scales.h5", None)):
            named[f"{name}:/u"] = labels
            with h5py.File(quick_place / name, "w") as file:
                file["u"] = u
                for i, label in enumerate(labels or ""):
                    file["u"].dims[i].label = label
                for i, label in enumerate("xy" if labels is None else ""):
                    file[label] = np.arange(u.shape[i])
                    file[label].make_scale(label)
                    file["u"].dims[i].attach_scale(file[label])
    for name in named:
        given = ["--input", f"u={quick_place}/{name}"]
        if name.startswith(("turned", "scales")):
            memext.refused("run", *run, *given, naming=["two", "transpose it"])
            continue
        memext.run(*run, *given)
        same(s, quick_place, s.run(5)[5], name)


def test_points_norms_and_snapshots(memext, quick_place, folder):
    s = SCHEMES[0]
    wavelet = np.random.default_rng(4).random(6)
    np.save(quick_place / "w.npy", wavelet)
    (quick_place / "probes").write_text("u 3 40\nu 52 0 # the last of row 0\n")
    c, u, states = s.begin()[1], {"u": s.begin()[0]["u"]}, []
    for t in range(STEPS):
        u = s.step({"u": u["u"].copy()}, c, t, ("fixed", "fixed"))
        if t < len(wavelet):
            u["u"][1 + 7, 1 + 5] += wavelet[t]
        states.append(u["u"].copy())
    result = memext.run(*words(folder, s, "-t", STEPS, "-d", quick_place, "--force", "--source", f"u@5,7={quick_place}/w.npy", "--probes", quick_place / "probes", "--probes-out",
                               quick_place / "traces.npy", "--snapshot", f"4:{quick_place}/shots:3", "--check", 3, *outputs(s, quick_place), "--overwrite"))
    same(s, quick_place, {"u": states[-1]}, "points")
    traces = np.load(quick_place / "traces.npy")
    assert (traces == [[a[41, 4], a[1, 53]] for a in states]).all()
    for step in (4, 8):
        assert (np.load(quick_place / f"shots/u-{step:06}.npy") == states[step - 1][1:-1:3, 1:-1:3]).all()
    assert json.loads((quick_place / "shots/memext.snapshots").read_text())["shape"] == [(NY + 2) // 3, (NX + 2) // 3]
    last, before = result["norms"][-1], states[-2]
    assert last["max_change"] == abs(states[-1] - before)[1:-1, 1:-1].max() and last["reductions"]["top"]["max"] == before[2:, 2:].max()
    sums = (before[1:-1, 1:-1] * (np.arange(NY)[:, None] + NY + 1)).sum(axis=1)  # of every row, of which the spread is
    assert last["reductions"]["sum"]["sum"] == pytest.approx(sums.sum()) and last["reductions"]["sum"]["spread"] == pytest.approx((sums.max() - sums.min()) / abs(sums.mean()))


@pytest.mark.parametrize("name", NAMES)
def test_ranks_and_resumes(memext, quick_place, folder, name):
    s = SCHEMES[NAMES.index(name)]
    states = s.run(STEPS + 4)
    for n in (2, 3):
        result = memext.run(*words(folder, s, "-t", STEPS, "-d", quick_place, "--force", "--ranks", n, "--threads", 1, *outputs(s, quick_place)))
        same(s, quick_place, states[STEPS], n)
        for one in result["ranks"]["each"]:
            assert all(one[f"{kind}_bytes"] == one[f"predicted_{kind}_bytes"] for kind in ("read", "write", "sent"))
    for n in (4, 9, 16):
        place = quick_place / f"r{n}"
        place.mkdir()
        died = memext(*("run", *words(folder, s, "-t", STEPS, "-d", place, "--commit-every", 0, "--plan", "stream by=1 bt=2 slab=4", "--backend", "fault:uring,errno=5", "--fault", f"error_after={n}")))
        if died.returncode == 3:
            memext.run("--resume", "-d", place, "-t", STEPS + 4, *outputs(s, quick_place), "--backend", "aio")
            same(s, quick_place, states[STEPS + 4], n)
        shutil.rmtree(place)


def test_resumes_of_runs_with_integrity(memext, quick_place, folder):
    """What began with redundant goes on with it. Rows that begin on pages have hashes of all their bytes: stream goes on with those, and is named."""
    s, place = SCHEMES[0], quick_place / "s.memext"
    begin = words(folder, s, "-t", 4, "-d", place, "--force", "--keep", "--integrity")
    for first, then in (("redundant", "redundant"), ("redundant", "stream"), ("stream", "stream")):
        memext.run(*begin, "--algorithm", first)
        result = memext.run("--resume", "-d", place, "-t", STEPS, "--keep", "--algorithm", then, *outputs(s, quick_place), "--verify")
        same(s, quick_place, s.run(STEPS)[STEPS], (first, then))
        assert (result["read_bytes"], result["write_bytes"]) == (result["predicted_read_bytes"], result["predicted_write_bytes"]), (first, then)
    for how in (["--algorithm", "redundant"], ["--plan", "redundant by=1 bz=17 bt=2"]):
        said = memext.refused("run", "--resume", "-d", place, "-t", STEPS + 1, *how, naming=["redundant", "rows", "whole ones", "choose --algorithm stream"])
        assert "BY" not in said.stderr and "planes" not in said.stderr, said.stderr


def test_messages_say_rows(memext, quick_place, folder):
    """What is a plane of three dimensions is a row of theirs to users, wherever it is named."""
    s, place, one = SCHEMES[0], quick_place / "ranks", quick_place / "one.memext"
    run, heun = words(folder, s, "-t", 60, "-d", place, "--force"), ["--kernel", folder / "heun.c", "--init", "random", "--dry-run", "-t", 8, "--dram", "64MiB"]
    place.mkdir()
    memext.run(*run, "--keep", "--ranks", 2, "--threads", 1)
    assert "rank 0     rows 0 to 20, step 60" in memext("info", place).stdout and "rank 1     rows 21 to 40" in memext("info", place).stdout
    for naming, words_of in [
        (["holds only rows 21 to 40"], ["export", place / "rank-1", "-o", f"u={quick_place}/none.npy"]),
        (["holds rows 21 to 40", "resume with the -d"], ["run", "--resume", "-d", place / "rank-1", "-t", 90]),
        (["41 rows among 64 ranks", "41 ranks or fewer"], ["run", *run, "--ranks", 64, "--threads", 1]),
        (["lower end of y copies 2 rows", "rank 0 has 1"], ["run", *run, "--ranks", 41, "--threads", 1, "--side", "y=mirror-node"]),
        (["rows of a neighbour", "bt = 20 or less"], ["run", *run, "--ranks", 2, "--threads", 1, "--plan", "stream by=1 bt=30"]),
        (["two Blocks of 4002 rows"], ["run", *heun, "-n", 4000, 4000, "-d", quick_place, "--algorithm", "redundant", "--block", 1, 4000, 4]),
        (["grid 8 x 2147483648 is too large", "ny up to 2^30"], ["run", *heun, "-n", 8, 2**31, "-d", quick_place, "--plan", "stream by=1 bt=2"]),
    ]:
        assert "plane" not in memext.refused(*words_of, naming=naming).stderr, words_of
    said = memext("run", *heun, "-n", NX, NY, "-d", quick_place, "--snapshot", f"4:{quick_place}/shots:3").stdout
    assert "one cell of 3 in x and y," in said, said
    memext.run(*words(folder, s, "-t", 4, "-d", one, "--force", "--keep", "--integrity"))
    stored = bytearray(one.read_bytes())
    stored[stored.find(s.run(4)[4]["u"][20].tobytes()) + 99] ^= 1
    one.write_bytes(stored)
    damaged = memext("export", one, "-o", f"u={quick_place}/none.npy")
    assert damaged.returncode == 3 and "(row 20)" in damaged.stderr and "plane" not in damaged.stderr, damaged.stderr


def test_edits(memext, quick_place, folder):
    """A field is replaced when the run goes on, with its frame or without."""
    s = SCHEMES[0]
    new = np.random.default_rng(6).random((NY, NX))
    memext.run(*words(folder, s, "-t", 4, "-d", quick_place / "e.memext", "--keep", "--force"))
    np.save(quick_place / "new.npy", new)
    memext.run("--resume", "-d", quick_place / "e.memext", "-t", 9, "--edit-input", f"u={quick_place}/new.npy", *outputs(s, quick_place))
    u = {"u": s.run(4)[4]["u"]}
    u["u"][1:-1, 1:-1] = new
    for t in range(4, 9):
        u = s.step({"u": u["u"].copy()}, s.begin()[1], t, ("fixed", "fixed"))
    same(s, quick_place, u, "edit")


@pytest.mark.parametrize("accel, name", [("host", "wave"), ("host", "heun"), ("opencl", "heat"), ("cuda", "water"), ("cuda", "wave")])
def test_accelerators(memext, quick_place, folder, fake_cuda, request, accel, name):  # noqa: F811
    s = SCHEMES[NAMES.index(name)]
    use(request, memext, accel)
    for algorithm, kinds in (("stream", [SIDES[2], SIDES[3]]), ("direct", [SIDES[1]])):
        for sides in kinds[:1] if accel == "opencl" else kinds:
            c = {f: sided(a, s.h, tuple(x if x == "periodic" else "fixed" for x in sides)) for f, a in s.begin()[1].items()}
            memext.run(*words(folder, s, "-t", STEPS, "-d", quick_place, "--force", "--accel", accel, "--algorithm", algorithm, *on(sides), *outputs(s, quick_place)))
            same(s, quick_place, s.run(STEPS, sides, c)[STEPS], (accel, algorithm, sides))


def test_shallow_water(memext, quick_place):
    """systems/shallow_water.c with islands has the bits of its reference in numpy, and loses no water."""
    found = importlib.util.spec_from_file_location("shallow_water", SYSTEMS / "shallow_water.py")
    reference = importlib.util.module_from_spec(found)
    found.loader.exec_module(reference)
    rng = np.random.default_rng(8)
    depth = np.where(rng.random((60, 72)) < 0.2, 0, 20 + 80 * rng.random((60, 72))).astype("f4")
    depth[0] = depth[-1] = depth[:, 0] = depth[:, -1] = 0
    fields = {"u": np.zeros(depth.shape), "v": np.zeros(depth.shape), "z": np.where(depth > 0, rng.random(depth.shape), 0)}
    for name, values in {**fields, "depth": depth}.items():
        np.save(quick_place / f"{name}.npy", values)
    words = [w for f in fields for w in ("--input", f"{f}={quick_place}/{f}.npy", "-o", f"{f}={quick_place}/{f}.out.npy")]
    memext.run("--kernel", SYSTEMS / "shallow_water.c", *words, "--field", f"depth={quick_place}/depth.npy", "-t", 40, "-d", quick_place, "--force", "--dram", "64MiB", "--param", "dt=4")
    u, v, z = fields.values()
    for _ in range(40):
        u, v, z = reference.step(u, v, z, depth, dt=4)
    for name, values in (("u", u), ("v", v), ("z", z)):
        assert np.load(quick_place / f"{name}.out.npy").tobytes() == values.tobytes(), name
    assert abs(u).max() > 1e-3 and z.sum() == pytest.approx(fields["z"].sum())


ODD = """#define MX_NAME "odd"
#define MX_RADII 2, 2, 0
#define MX_STATE(F) F(u, double)
#define MX_PARAMS(P) P(px, 0) P(py, 0)
#include <memext/cell.h>
MX_CELL
    SET(u, AT(u, 0, 0) + (X == PARAM(px) && Y == PARAM(py) && T == 1 ? sqrt(-1.0) : 0.0));
MX_END
"""


def test_cells_that_are_not_finite(memext, quick_place):
    """Wherever they are, by sweeps, accelerators, ranks, edits and in what a run begins with; the frame does not count."""
    (quick_place / "place").mkdir()
    (quick_place / "odd.c").write_text(ODD)
    base, place = ["--kernel", quick_place / "odd.c", "--dram", "64MiB"], ["-d", quick_place / "place", "--force"]
    for x, y in ((0, 0), (6, 0), (6, 9), (0, 9), (3, 8), (6, 4)):
        for how in ([], ["--accel", "host"], ["--ranks", 2, "--accel", "host"]):
            done = memext("run", *base, "-n", 7, 10, "-t", 3, "--init", "random", *place, *how, "--param", f"px={x}", "--param", f"py={y}")
            assert done.returncode == 6 and f"x={x}, y={y}" in done.stderr, (x, y, how, done.stderr)
    plain = ["--param", "px=-9", "-t", 3]
    for at, inside in (((2, 2), True), ((11, 8), True), ((0, 4), False), ((13, 4), False), ((5, 0), False), ((5, 10), False)):
        cells = np.zeros((14, 11))
        np.save(quick_place / "begin.npy", cells)
        cells[at] = np.nan
        np.save(quick_place / "u.npy", cells)
        for how in (["--backend", "dram"], place, [*place, "--no-fuse"], [*place, "--accel", "host"]):
            done = memext("run", *base, *plain, "--input", f"u={quick_place}/u.npy", *how)
            assert done.returncode == (6 if inside else 0), (at, how, done.stderr)
            assert not inside or (f"x={at[1] - 2}, y={at[0] - 2}" in done.stderr and "initial grid" in done.stderr), (at, how, done.stderr)
        memext.run(*base, *plain, "--input", f"u={quick_place}/begin.npy", *place, "--keep")
        done = memext("run", "--resume", "-d", quick_place / "place", "-t", 5, "--edit-input", f"u={quick_place}/u.npy")
        assert done.returncode == (6 if inside else 0), (at, done.stderr)


def test_plans_of_the_papers_and_extents_that_are_told_again(memext, quick_place, folder):
    s = SCHEMES[0]
    result = memext.run(*words(folder, s, "-t", STEPS, "-d", quick_place / "s.memext", "--keep", "--force", "--tuner", "naive", *outputs(s, quick_place)))
    assert result["plan"]["tuner"] == "naive" and result["plan"]["bt"] >= 2
    same(s, quick_place, s.run(STEPS)[STEPS], "naive")
    memext.run("--resume", "-d", quick_place / "s.memext", "-n", NX, NY, 1, "-t", STEPS, "--keep")
    for size in ((NX, NY), (NX, NY, 1)):
        memext.run(*words(folder, s, "-n", *size, "-t", STEPS, "--backend", "dram", *outputs(s, quick_place)))
        same(s, quick_place, s.run(STEPS)[STEPS], size)
    for size in ((NX, NY, 2), (NX, 1, NY), (NY, NX)):
        memext.refused("run", "--resume", "-d", quick_place / "s.memext", "-n", *size, "-t", STEPS, naming="-n gives another size")


def test_refusals(memext, quick_place, folder):
    """What does not fit is refused with the way out, before anything is touched."""
    s = SCHEMES[0]
    own = words(folder, s, "-t", 3, "--backend", "dram")
    np.save(quick_place / "cube.npy", np.zeros((4, 5, 6)))
    (quick_place / "odd.c").write_text(s.text.replace("MX_RADII 1, 1, 0", "MX_RADII 1, 2, 0"))
    (quick_place / "away.c").write_text(s.text.replace("AT(u, 0, 1, 0)", "AT(u, 0, 1, 1)"))
    (quick_place / "far.c").write_text(s.text.replace("AT(u, 0, -1)", "AT(u, 0, -2)"))
    (quick_place / "probes").write_text("u 1 2 3\n")
    np.save(quick_place / "w.npy", [1.0])
    kernel = ["--kernel", folder / "heat.c", "--backend", "dram", "-t", 3, "--init", "random", "--field", f"k={folder}/heat-k.npy", "--field", f"m={folder}/heat-m.npy"]
    for refused, naming in [
        (["-n", 30, 40, "-t", 3, "--backend", "dram"], ["-n 30 40", "two dimensions", "-n NX NY NZ", "--kernel"]),
        ([*kernel, "-n", 30, 40, 5], ["-n 30 40 5", "three dimensions", "-n NX NY"]),
        ([*own, "-n", 30, 40], ["needs (42, 32)"]),
        ([*own, "--side", "z=mirror"], ["z=mirror", "two dimensions"]),
        ([*own, "--side", "y=magic"], ["magic"]),
        ([*kernel, "--input", f"u={quick_place}/cube.npy"], ["3 dimensions", "(ny+2h, nx+2h)"]),
        ([*own, "--probes", quick_place / "probes", "--probes-out", quick_place / "t.npy"], ["u 1 2 3", "FIELD X Y,"]),
        ([*own, "--source", f"u@1,99={quick_place}/w.npy"], ["y = 99", "0 to 40"]),
        (["--kernel", quick_place / "odd.c", *kernel[2:], "-n", NX, NY], ["MX_RADII", "x = y"]),
        (["--kernel", quick_place / "away.c", *kernel[2:], "-n", NX, NY], ["AT(u", "two dimensions"]),
        (["--kernel", quick_place / "far.c", *kernel[2:], "-n", NX, NY], ["AT(u", "reads farther away"]),
    ]:
        memext.refused("run", *refused, naming=naming)
    shown = memext("kernel", "show", folder / "heat.c").stdout
    assert "two dimensions" in shown
    assert memext("kernel", "check", folder / "heat.c", "-n", NX, NY).returncode == 0 and memext("kernel", "check", folder / "wave.c").returncode == 0
