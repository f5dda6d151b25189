# SPDX-License-Identifier: BSD-3-Clause
"""Files that users have: NRRD, MetaImage and contiguous HDF5 for fields that are only read, in place, and for initial values; what cannot be read is
refused with what would help."""
import json
import os
import pathlib

import numpy as np
import pytest
from test_in_place import COMMITS, identity, look, own, store  # noqa: F401  (fixtures)

NRRD = {"f8": "double", "f4": "float", "u1": "uchar", "u2": "ushort", "i2": "short"}
META = {"f8": "MET_DOUBLE", "f4": "MET_FLOAT", "u1": "MET_UCHAR", "u2": "MET_USHORT", "i2": "MET_SHORT"}


def sizes(a):
    return " ".join(map(str, reversed(a.shape)))


def nrrd(path, a, data=None, skip=0, more="", order="little"):
    """Attached, or with the cells in another file."""
    head = f"NRRD0004\n# by hand\ntype: {NRRD[a.dtype.str[1:]]}\ndimension: 3\nsizes: {sizes(a)}\nencoding: raw\nendian: {order}\nunits: \"mm\"\nx:=y\n{more}"
    if data is None:
        path.write_bytes(head.encode() + b"\n" + a.tobytes())
    else:
        path.write_text(head + f"byte skip: {skip}\ndata file: {data}\n")
        (path.parent / data).write_bytes(os.urandom(max(skip, 0)) + a.tobytes())
    return path


def meta(path, a, data="LOCAL", skip=0, more=""):
    head = f"ObjectType = Image\nNDims = 3\nBinaryData = True\nElementByteOrderMSB = False\n{more}DimSize = {sizes(a)}\nElementType = {META[a.dtype.str[1:]]}\n"
    if skip:
        head += f"HeaderSize = {skip}\n"
    path.write_bytes(f"{head}ElementDataFile = {data}\n".encode() + (a.tobytes() if data == "LOCAL" else b""))
    if data != "LOCAL":
        (path.parent / data).write_bytes(os.urandom(100 if skip < 0 else skip) + a.tobytes())
    return path


@pytest.fixture
def h5py(memext):
    """h5py, where memext can read HDF5 as well."""
    formats = json.loads(memext("info", "--json", "-").stdout)["formats"]
    if not next(f["built"] for f in formats if f["name"] == "hdf5"):
        pytest.skip("memext is built without HDF5")
    return pytest.importorskip("h5py")


def test_formats_are_listed(memext):
    done = memext("info")
    assert [f["name"] for f in json.loads(memext("info", "--json", "-").stdout)["formats"]] == ["npy", "nrrd", "mhd", "hdf5"]
    assert "NRRD" in done.stdout and "MetaImage" in done.stdout and "contiguous" in done.stdout


def test_headers_of_text(memext, own, store, tmp_path):
    """Attached and detached, with lines and bytes to skip, from the end, with and without a frame; names relative and absolute."""
    d, v = own.folder, own.values
    (d / "cells").mkdir()
    nrrd(d / "a.nhdr", v("a", False), "cells/a.raw", 8 * 3)
    nrrd(d / "b.nrrd", v("b", True))
    meta(d / "c.mha", v("c", True))
    meta(d / "d.mhd", v("d", False), "d.raw", -1)
    nrrd(d / "e.nhdr", v("e", True), "e.raw", 2)
    (d / "e.raw").write_bytes(b"a line\nof 9 bytes\n" + (d / "e.raw").read_bytes())
    (d / "e.nhdr").write_text((d / "e.nhdr").read_text().replace("data file: e.raw", f"datafile: {d}/e.raw\nlineskip: 2"))
    # cells that begin at an odd byte would be copied: a longer comment moves them on
    text = (d / "b.nrrd").read_bytes()
    (d / "b.nrrd").write_bytes(text.replace(b"# by hand", b"# by hand" + b"!" * (-(text.index(b"\n\n") + 2) % 4), 1))
    words = {f: f"{f}={d / n}" for f, n in {"a": "a.nhdr", "b": "b.nrrd", "c": "c.mha", "d": "d.mhd", "e": "e.nhdr"}.items()}
    files = [p for p in d.iterdir() if p.is_file()]
    before = {p: identity(p) for p in files}
    for backend in "uring", "aio", "mmap", "dram":
        place = ["-d", store] if backend != "dram" else []
        done = memext.run(*own.run(3, words), *place, "--backend", backend, "--verify", "-o", tmp_path / "u.npy", "--overwrite")
        assert np.load(tmp_path / "u.npy").tobytes() == own.wanted(3), backend
        assert all(v["in_place"] == (backend != "dram") for v in done["files"].values()), done.err
        assert backend not in ("uring", "aio") or done["read_bytes"] == done["predicted_read_bytes"]
    for data in d / "cells" / "a.raw", d / "e.raw":
        memext.refused("run", *own.run(3, words), "-d", store, "-o", data, "--overwrite", naming=["never written"])
        memext.refused("run", *own.run(3, words), "-d", store, "--json", data, naming=["never written"])
    memext.run(*own.run(3, words), "-d", store, "--keep")
    memext.refused("run", "--resume", "-d", store, "-o", d / "e.raw", "--overwrite", naming=["raw", ".npy"])
    memext.refused("export", store, "-o", d / "e.raw", "--overwrite", naming=["never written"])
    for file in d / "e.raw", d / "e.nhdr":
        memext.refused("run", "--resume", "-d", store, "--dtype", "f32", "--json", file, naming=["never written"])
    memext.refused("run", "--resume", "-d", store, "--init", "zero", naming=["other values", "--init zero"])
    # a request that is refused before the headers are read leaves a report, but not there
    memext.refused("run", *own.run(3, words), "--frame", "none=edge", "-d", store, "--json", d / "e.raw", naming=["never written"])
    assert {p: identity(p) for p in files} == before


def test_hdf5(memext, own, store, tmp_path, h5py):
    """Contiguous datasets of one file, with groups, attributes and a block of the user's before it; and for the state."""
    d = own.folder
    with h5py.File(d / "all.h5", "w", userblock_size=1024, alignment_threshold=1, alignment_interval=8) as file:
        for f in "abcde":
            group = file.create_group(f"/rock {f}/:deep")
            group.attrs["made"] = "by hand"
            group.create_dataset(f, data=own.values(f, f in "ce"))
        file.create_dataset("u", data=own.u)
    words = {f: f"{f}={d}/all.h5:/rock {f}/:deep/{f}" for f in "abcde"}
    before = identity(d / "all.h5")
    plain = own.run(3, words)
    plain[plain.index(d / "u.npy")] = f"u={d}/all.h5:/u"
    for backend in "uring", "mmap", "dram":
        place = ["-d", store] if backend != "dram" else []
        done = memext.run(*plain, *place, "--backend", backend, "--verify", "-o", tmp_path / "u.npy", "--overwrite")
        assert np.load(tmp_path / "u.npy").tobytes() == own.wanted(3), backend
        assert done["files"]["a"]["dataset"] == "/rock a/:deep/a" and done["files"]["e"]["in_place"] == (backend != "dram")
    # a store names them, and goes on with them
    memext("run", *own.run(9, words), "-d", store, "--backend", "fault:uring", "--fault", "fail_after=150", "--quiet", *COMMITS)
    at = look(memext, store)["step"]
    assert 0 < at < 9 and look(memext, store)["fields"]["b"] == f"{d}/all.h5:/rock b/:deep/b" and f"{d}/all.h5:/rock b/:deep/b" in memext("info", store).stdout
    done = memext.run("--resume", "-d", store, "--verify", "-o", tmp_path / "u.npy", "--overwrite")
    assert np.load(tmp_path / "u.npy").tobytes() == own.wanted(9) and done["resumed_from"] == at
    assert identity(d / "all.h5") == before
    memext.refused("run", *own.run(3, words), "-d", store, "-o", d / "all.h5", "--overwrite", naming=["never written"])


def test_initial_grids(memext, store, tmp_path, request):
    """Of built-in stencils: --input of every format gives what the .npy gives, and a store verifies with it."""
    a = np.random.default_rng(5).random((13, 14, 15)).astype("f4")
    np.save(tmp_path / "a.npy", a)
    inputs = [nrrd(tmp_path / "a.nrrd", a), nrrd(tmp_path / "a.nhdr", a, "a.raw", 5), meta(tmp_path / "a.mhd", a, "b.raw"), meta(tmp_path / "a.mha", a)]
    if pathlib.Path("/usr/lib/python3/dist-packages/h5py").exists():
        h5py = request.getfixturevalue("h5py")
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["x/y"] = a
        inputs.append(f"{tmp_path}/a.h5:/x/y")
    wanted = memext.run("--input", tmp_path / "a.npy", "-t", 4, "--backend", "dram")["checksum"]
    for word in inputs:
        done = memext.run("--input", word, "-t", 4, "-d", store, "--keep", "--force", "--verify")
        assert done["checksum"] == wanted and done["problem"]["dtype"] == "f32", word
        again = memext.run("--resume", "-d", store, "--verify")
        assert again["checksum"] == wanted and again["verified"] is True
        report = memext("tune", "--input", word, "-t", 4, "--json", "-")
        assert json.loads(report.stdout)["problem"]["nx"] == 13
    for word in inputs[-1], inputs[1]:
        data = tmp_path / "a.raw" if str(word).endswith("nhdr") else pathlib.Path(str(word).split(":/")[0])
        memext.refused("run", "--input", word, "-t", 4, "-d", store, "-o", data, "--overwrite", "--force", naming=["never written"])
    header, data = inputs[1], tmp_path / "a.raw"
    before = identity(data)
    for more in ("--stencil", "star49"), ("-n", 9, 9, 9):
        memext.refused("run", "--input", header, "-t", 4, "-d", store, "--json", data, *more, naming=["never written"])
    memext.refused("tune", "--input", header, "-t", 4, "--json", data, naming=["never written"])
    memext.run("--input", header, "-t", 4, "-d", store, "--keep", "--force")
    memext.refused("run", "--resume", "-t", 5, "-d", store, "-o", data, "--overwrite", naming=["raw", ".npy"])
    for more, why in ([], "never written"), (["-n", 9, 9, 9], "never written"), (["--backend", "none"], "not known"):
        memext.refused("run", "--resume", "-t", 5, "-d", store, "--json", data, *more, naming=[why])
    memext.refused("export", store, "-o", data, "--overwrite", naming=["never written"])
    assert identity(data) == before


@pytest.mark.parametrize("change, naming", [
    (("NRRD0004", "NRRD0009"), ["version 1 to 5"]), (("type: float", "type: block"), ["block", "convert"]), (("type: float\n", ""), ["lacks the type"]),
    (("dimension: 3", "dimension: 4"), ["4 dimensions"]), (("sizes: 21 25 23", "sizes: 21 25"), ["sizes"]), (("sizes: 21 25 23", "sizes: 21 0 23"), ["sizes"]),
    (("encoding: raw", "encoding: gzip"), ["gzip", "unu save -e raw"]), (("encoding: raw\n", ""), ["lacks the encoding"]),
    (("endian: little", "endian: big"), ["big endian", "newbyteorder"]), (("endian: little\n", ""), ["byte order"]), (("data file: b.raw\n", ""), ["empty line"]),
    (("data file: b.raw", "data file: no.raw"), ["no.raw", "No such file"]), (("data file: b.raw", "data file: LIST"), ["several files"]),
    (("data file: b.raw", "data file: b%d.raw 1 4 1"), ["several files"]), (("data file: b.raw", "data file: /dev"), ["not a regular file"]),
    (("byte skip: 0", "byte skip: 9"), ["truncated"]), (("byte skip: 0", "byte skip: x"), ["byte skip"]), (("byte skip: 0", "line skip: 99999"), ["fewer lines"]),
    (("type: float", "type: ushort"), ["u16", "f32"]), (("sizes: 21 25 23", "sizes: 21 25 22"), ["shape"]),
    (("sizes: 21 25 23", "sizes: 3000000000 3000000000 3000000000"), ["truncated"]),
])
def test_refusals_of_nrrd(memext, own, store, change, naming):
    path = nrrd(own.folder / "b.nhdr", own.fixed["b"], "b.raw")
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    memext.refused("run", *own.run(3, {**own.words, "b": f"b={path}"}), "-d", store, naming=naming)
    assert not [*store.iterdir()]


@pytest.mark.parametrize("change, naming", [
    (("MET_FLOAT", "MET_LONG"), ["MET_LONG"]), (("NDims = 3", "NDims = 2"), ["2 dimensions"]), (("DimSize = 21 25 23", "DimSize = 21 25 x"), ["DimSize"]),
    (("ElementByteOrderMSB = False", "BinaryDataByteOrderMSB = True"), ["big endian"]), (("ElementByteOrderMSB = False", "CompressedData = True"), ["compress"]),
    (("ElementByteOrderMSB = False", "ElementNumberOfChannels = 3"), ["3 numbers a cell"]), (("BinaryData = True", "BinaryData = False"), ["text"]),
    (("BinaryData = True", "BinaryData is true"), ["no '='"]), (("ElementDataFile = b.raw", "ElementDataFile = LIST"), ["several files"]),
    (("ElementDataFile = b.raw", ""), ["lacks ElementDataFile"]), (("ElementDataFile = b.raw", "ElementDataFile = c.raw.gz"), ["c.raw.gz"]),
])
def test_refusals_of_metaimage(memext, own, store, change, naming):
    path = meta(own.folder / "b.mhd", own.fixed["b"], "b.raw")
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    memext.refused("run", *own.run(3, {**own.words, "b": f"b={path}"}), "-d", store, naming=naming)


def test_refusals_of_hdf5(memext, own, store, h5py):
    d, b = own.folder, own.fixed["b"]
    with h5py.File(d / "b.h5", "w") as file:
        file.create_dataset("chunked", data=b, chunks=True)
        file.create_dataset("packed", data=b, compression="gzip")
        file.create_dataset("big", data=b.astype(">f4"))
        file.create_dataset("whole", data=b.astype("i4"))
        file.create_dataset("half", data=b.astype("f2"))
        file.create_dataset("flat", data=b[0])
        file.create_dataset("empty", shape=b.shape, dtype="f4")
        file.create_dataset("outside", shape=b.shape, dtype="f4", external=[(str(d / "b.raw"), 0, b.nbytes)])
        file.create_dataset("other", data=own.fixed["a"])
        file["elsewhere"] = h5py.ExternalLink(str(d / "elsewhere.h5"), "/x")
        with h5py.File(d / "elsewhere.h5", "w") as other:
            other["x"] = b
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        h5py.h5d.create(file.id, b"compact", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((2, 2, 2)), compact)
    with h5py.File(d / "block.h5", "w", userblock_size=512) as file:
        file.create_dataset("empty", shape=b.shape, dtype="f4")
    (d / "torn.h5").write_bytes((d / "b.h5").read_bytes()[:3000])
    for word, naming in [("b.h5:/chunked", ["chunked", "h5repack", "Python"]), ("b.h5:/packed", ["chunked"]), ("b.h5:/big", ["big endian"]), ("b.h5:/whole", ["i32", "f32"]), ("b.h5:/half", ["another type"]),
                         ("b.h5:/flat", ["2 dimensions"]), ("b.h5:/empty", ["no cells"]), ("block.h5:/empty", ["no cells"]), ("b.h5:/outside", ["other files"]), ("b.h5:/elsewhere", ["another file", "elsewhere.h5"]), ("b.h5:/compact", ["compact"]),
                         ("b.h5:/none", ["no dataset"]), ("b.h5", ["FILE.h5:/NAME"]), ("b.h5:/", ["no dataset"]), ("b.h5:/other", ["f64", "f32"]), ("torn.h5:/big", ["damaged"]),
                         ("a.npy:/x", ["HDF5"]), ("no.h5:/x", ["No such file"])]:
        memext.refused("run", *own.run(3, {**own.words, "b": f"b={d}/{word}"}), "-d", store, naming=naming)
    assert not [*store.iterdir()]


def test_a_file_of_no_format(memext, own, store):
    (own.folder / "x").write_bytes(b"P5 2 2 255 abcd")
    memext.refused("run", *own.run(3, {**own.words, "b": f"b={own.folder}/x"}), "-d", store, naming=["not a .npy", "TYPE,offset=BYTES"])
