# SPDX-License-Identifier: BSD-3-Clause
"""One table of files in the formats that both the command and the Python package read: NPY, NRRD, MetaImage and HDF5. Each says which cells the file has,
or which word a refusal names, the same for both. `command`: of what Python reads and the command does not, for it takes cells as they lie in memory,
the word of its own refusal."""
import struct

import numpy as np

A = (np.arange(210, dtype="f4") * 0.5 + 1).reshape(5, 6, 7)
RAW = A.tobytes()
OTHER = {"endian", "chunk", "another type", "convert", "Fortran", "packed", "transpose it"}  # words by which the command says that cells do not lie as in memory


class Case:
    def __init__(self, name, write, right, command=None, dataset=None):
        self.name, self.write, self.right, self.command, self.dataset = name, write, right, command, dataset

    @property
    def id(self):
        return self.name if self.dataset is None else f"{self.name}-{self.dataset}"


def _bytes(*pieces):
    data = b"".join(p if isinstance(p, bytes) else p.encode() for p in pieces)
    return lambda path: path.write_bytes(data)


# ------------------------------------------------------------------ NPY

def _npy(header, cells=RAW, version=(1, 0)):
    text = header.encode() + b"\n"
    return _bytes(b"\x93NUMPY", bytes(version), struct.pack("<H" if version[0] == 1 else "<I", len(text)), text, cells)


def _head(descr="'<f4'", order="False", shape="(5, 6, 7)", more=""):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, {more}}}"


NPY = [
    Case("plain.npy", _npy(_head()), A),
    Case("double.npy", _npy(_head("'<f8'"), A.astype("f8").tobytes()), A.astype("f8")),
    Case("two.npy", _npy(_head(), version=(2, 0)), A),
    Case("three.npy", _npy(_head(), version=(3, 0)), A),
    Case("four.npy", _npy(_head(), version=(4, 0)), "version"),
    Case("odd.npy", _npy(_head(), version=(1, 7)), "version"),
    Case("longer.npy", _npy(_head(), RAW + b"more"), A),
    Case("short.npy", _npy(_head(), RAW[:-1]), "short.npy"),
    Case("flat.npy", _npy(_head(shape="(30, 7)")), A.reshape(30, 7), "2 dimensions"),
    Case("four-d.npy", _npy(_head(shape="(5, 6, 7, 1)")), "4 dimensions"),
    Case("big.npy", _npy(_head("'>f4'"), A.astype(">f4").tobytes()), A, "endian"),
    Case("turned.npy", _npy(_head(order="True", shape="(5, 6, 7)"), np.asfortranarray(A).tobytes("F")), A, "Fortran"),
    Case("long.npy", _npy(_head("'<i8'"), A.astype("i8").tobytes()), A.astype("i8"), "convert"),
    Case("objects.npy", _npy(_head("'|O'")), "objects.npy"),
    Case("records.npy", _npy(_head("[('a', '<f4')]")), "records.npy"),
    Case("lacking.npy", _npy("{'descr': '<f4', 'shape': (5, 6, 7), }"), "lacking.npy"),
    Case("negative.npy", _npy(_head(shape="(5, 6, -7)")), "an extent of -7"),
    Case("npy.dat", _npy(_head()), A),
]


# ------------------------------------------------------------------ NRRD

def _nrrd(*changes, version=4, more="", behind="\n", cells=RAW):
    """changes: (line to go, line that comes for it)."""
    text = f"NRRD000{version}\ntype: float\ndimension: 3\nsizes: 7 6 5\nencoding: raw\nendian: little\n"
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return _bytes(text, more, behind, cells)


def _with(write, name, data):
    def both(path):
        (path.parent / name).write_bytes(data)
        write(path)
    return both


def _detached(name, data=RAW, more=""):
    return _with(_nrrd(more=f"{more}data file: {name}\n", behind="", cells=b""), name, data)


NRRD = [
    Case("plain.nrrd", _nrrd(), A),
    *[Case(f"version-{v}.nrrd", _nrrd(version=v), A if 1 <= v <= 5 else "version 1 to 5") for v in (0, 1, 5, 6, 9)],
    Case("no-endian.nrrd", _nrrd(("endian: little\n", "")), "byte order"),
    Case("odd-endian.nrrd", _nrrd(("little", "middle")), "byte order"),
    Case("upper.nrrd", _nrrd(("type: float", "Type: FLOAT"), ("encoding: raw", "encoding: RAW"), ("little", "Little")), A),
    Case("big.nrrd", _nrrd(("little", "big"), cells=A.astype(">f4").tobytes()), A, "endian"),
    Case("int.nrrd", _nrrd(("float", "int"), cells=A.astype("i4").tobytes()), A.astype("i4"), "convert"),
    Case("comment.nrrd", _nrrd(more="# type: short\nx:=y\nunits: \"mm\" \"mm\" \"mm\"\nkinds: domain domain domain\n"), A),
    Case("no-blank.nrrd", _nrrd(("type: float", "type:float"), more="byte skip:4\n", cells=b"1234" + RAW), A),
    Case("pair.nrrd", _nrrd(more="byte skip:=4\n"), "byte skip:="),
    Case("pair-type.nrrd", _nrrd(more="type:=double\n"), "type:="),
    Case("twice.nrrd", _nrrd(more="type: short\n"), "twice"),
    Case("twice-skip.nrrd", _nrrd(more="byte skip: 4\nbyteskip: 0\n", cells=b"1234" + RAW), "twice"),
    Case("twice-units.nrrd", _nrrd(more="sample units: a\nsampleunits: b\n"), A),
    Case("unknown.nrrd", _nrrd(more="byte  skip: 4\n"), "field of NRRD"),
    Case("no-colon.nrrd", _nrrd(more="wombat\n"), "field of NRRD"),
    Case("long-content.nrrd", _nrrd(more="content: " + "a" * 6000 + "\n"), A),
    Case("gzip.nrrd", _nrrd(("raw", "gzip")), "gzip"),
    Case("no-type.nrrd", _nrrd(("type: float\n", "")), "lacks the type"),
    Case("block.nrrd", _nrrd(("float", "block")), "block"),
    Case("four.nrrd", _nrrd(("dimension: 3", "dimension: 4")), "4 dimensions"),
    Case("sizes.nrrd", _nrrd(("7 6 5", "7 6")), "the sizes"),
    Case("zero.nrrd", _nrrd(("7 6 5", "7 0 5")), "the sizes"),
    Case("words.nrrd", _nrrd(("7 6 5", "7 6 x")), "the sizes"),
    Case("short.nrrd", _nrrd(cells=RAW[:-4]), "short.nrrd"),
    Case("longer.nrrd", _nrrd(cells=RAW + b"12"), A),
    Case("skips.nrrd", _nrrd(more="line skip: 2\nbyte skip: 3\n", cells=b"a\nbc\nxyz" + RAW), A),
    Case("from-the-end.nrrd", _nrrd(more="byte skip: -1\n", cells=b"abc" + RAW), A),
    Case("far-from-the-end.nrrd", _nrrd(more="byte skip: -2\n", cells=RAW + b"a"), "byte skip"),
    Case("lines.nrrd", _nrrd(more="line skip: 99999\n"), "fewer lines"),
    Case("line-word.nrrd", _nrrd(more="line skip: one\n"), "line skip"),
    Case("crlf.nrrd", _nrrd(("\n", "\r\n"), behind="\r\n"), A),
    Case("labels.nrrd", _nrrd(more='labels: "x" "y" "z"\n'), A),
    Case("named.nrrd", _nrrd(more='labels: "lon" "lat" "depth"\n'), A),
    Case("turned.nrrd", _nrrd(more='labels: "z" "y" "x"\n'), A.transpose(2, 1, 0), "transpose it"),
    Case("half-named.nrrd", _nrrd(more='labels: "y" "x" "t"\n'), "labels"),
    Case("detached.nhdr", _detached("cells.raw"), A),
    Case("percent.nhdr", _detached("a 77%.raw"), A),
    Case("percent-d.nhdr", _detached("b%d.raw"), A),
    Case("pattern.nhdr", _detached("b%03d.raw 1 4 1"), "several files"),
    Case("list.nhdr", _detached("LIST"), "several files"),
    Case("blank-behind.nhdr", _with(_nrrd(more="datafile: cells.raw\n", cells=b"junk"), "cells.raw", RAW), A),
    Case("gone.nhdr", _nrrd(more="data file: none.raw\n", behind="", cells=b""), "No such file"),
    Case("unended.nhdr", _nrrd(behind="", cells=b""), "empty line"),
    Case("nrrd.dat", _nrrd(), A),
]


# ------------------------------------------------------------------ MetaImage

def _meta(*changes, more="", data="LOCAL", cells=RAW):
    text = "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n" + more + "DimSize = 7 6 5\nElementType = MET_FLOAT\n"
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return _bytes(text, f"ElementDataFile = {data}\n", cells if data in ("LOCAL", "Local", "local", "lOcAl") else b"")


def _beside(name, data=RAW, **more):
    return _with(_meta(data=name, **more), name, data)


META = [
    Case("plain.mha", _meta(), A),
    *[Case(f"{word}.mha", _meta(data=word), A) for word in ("Local", "local")],
    Case("lOcAl.mha", _meta(data="lOcAl"), "No such file"),
    Case("text.mha", _meta(("BinaryData = True", "BinaryData = False"), cells=b" ".join(b"%g" % v for v in A.ravel())), "text"),
    Case("unsaid.mha", _meta(("BinaryData = True\n", "")), A),
    Case("yes.mha", _meta(("BinaryData = True", "BinaryData = yes")), "neither True nor False"),
    Case("one.mha", _meta(("BinaryData = True", "BinaryData = 1"), ("MSB = False", "MSB = 0")), A),
    Case("big.mha", _meta(("MSB = False", "MSB = True"), cells=A.astype(">f4").tobytes()), A, "endian"),
    Case("order.mha", _meta(("BinaryDataByteOrderMSB", "ElementByteOrderMSB")), A),
    Case("orders.mha", _meta(more="ElementByteOrderMSB = True\n"), "different byte orders"),
    Case("same-orders.mha", _meta(more="ElementByteOrderMSB = False\n"), A),
    Case("lower.mha", _meta(more="headersize = 4\nelementbyteordermsb = True\n"), A),
    Case("compressed.mha", _meta(more="CompressedData = True\n"), "compressed"),
    Case("channels.mha", _meta(more="ElementNumberOfChannels = 3\n"), "3 numbers"),
    Case("one-channel.mha", _meta(more="ElementNumberOfChannels = 1\nElementSpacing = 1 1 2\nOffset = 0 0 0\nmine = yes\n"), A),
    Case("header-size.mha", _meta(more="HeaderSize = 8\n", cells=b"12345678" + RAW), "HeaderSize"),
    Case("from-the-end.mha", _meta(more="HeaderSize = -1\n", cells=b"12345678" + RAW), A),
    Case("far-from-the-end.mha", _meta(more="HeaderSize = -2\n"), "HeaderSize"),
    Case("colon.mha", _meta(("BinaryData = True", "BinaryData : True")), "no '='"),
    Case("colon-first.mha", _meta(("BinaryData = True", "BinaryData : True = 1")), "no '='"),
    Case("twice.mha", _meta(more="ElementType = MET_SHORT\n"), "twice"),
    Case("two-d.mha", _meta(("NDims = 3", "NDims = 2")), "2 dimensions"),
    Case("sizes.mha", _meta(("7 6 5", "7 6 5 1")), "DimSize"),
    Case("long.mha", _meta(("MET_FLOAT", "MET_INT"), cells=A.astype("i4").tobytes()), A.astype("i4"), "convert"),
    Case("unknown.mha", _meta(("MET_FLOAT", "MET_FLOAT_ARRAY")), "MET_FLOAT_ARRAY"),
    Case("early.mhd", _with(_bytes("ObjectType = Image\nNDims = 3\nElementDataFile = cells.raw\nDimSize = 7 6 5\nElementType = MET_FLOAT\n"), "cells.raw", RAW), "lacks"),
    Case("short.mha", _meta(cells=RAW[:-1]), "short.mha"),
    Case("blank.mha", _meta(more="\n\n"), A),
    Case("crlf.mha", _bytes("ObjectType = Image\r\nNDims = 3\r\nDimSize = 7 6 5\r\nElementType = MET_FLOAT\r\nElementDataFile = LOCAL\r\n", RAW), A),
    Case("first.mha", _bytes("BinaryData = True\nNDims = 3\nDimSize = 7 6 5\nElementType = MET_FLOAT\nElementDataFile = LOCAL\n", RAW), A),
    Case("detached.mhd", _beside("cells.raw"), A),
    Case("behind.mhd", _beside("cells.raw", b"12345678" + RAW, more="HeaderSize = 8\n"), A),
    Case("at-the-end.mhd", _beside("cells.raw", b"123" + RAW, more="HeaderSize = -1\n"), A),
    Case("percent.mhd", _beside("a 77%.raw"), A),
    Case("pattern.mhd", _beside("b%03d.raw 1 4 1"), "several files"),
    Case("list.mhd", _meta(data="LIST 2D"), "several files"),
    Case("gone.mhd", _meta(data="none.raw"), "No such file"),
    Case("short.mhd", _beside("cells.raw", RAW[:-1]), "cells.raw"),
    Case("meta.dat", _meta(), A),
]


# ------------------------------------------------------------------ HDF5, where the package h5py is there

def _hdf5(write, **more):
    def make(path):
        import h5py
        with h5py.File(path, "w", **more) as file:
            write(file, h5py)
    return make


def _attributes(**attributes):
    def write(file, h5py):
        file["v"] = A
        for name, value in attributes.items():
            file["v"].attrs[name] = value
    return _hdf5(write)


def _dimensions(names, scales=False, axes=None):
    def write(file, h5py):
        file["v"] = A
        for i, name in enumerate(names):
            if scales:
                file[name] = np.arange(A.shape[i], dtype="f8")
                file[name].make_scale(name)
                file["v"].dims[i].attach_scale(file[name])
                if axes:
                    file[name].attrs["axis"] = axes[i]
            else:
                file["v"].dims[i].label = name
    return _hdf5(write)


def _netcdf(value):
    """As NetCDF writes it: cells that nobody wrote have its default fill value."""
    def write(file, h5py):
        file.attrs["_NCProperties"] = "version=2"
        file["v"] = np.where(A == 50, np.float32(value), A)
    return _hdf5(write)


def _empty(file, h5py):
    file.create_dataset("v", shape=A.shape, dtype="f4", fillvalue=7)


def _narrow(file, h5py):
    """12 bits of 16, shifted: h5py reads the number, the bytes are others."""
    kind = h5py.h5t.STD_U16LE.copy()
    kind.set_precision(12)
    kind.set_offset(4)
    h5py.h5d.create(file.id, b"v", kind, h5py.h5s.create_simple(A.shape))
    file["v"][...] = A.astype("u2")


def _outside(cells):
    def make(path):
        import h5py
        (path.parent / "outside.raw").write_bytes(cells)
        with h5py.File(path, "w") as file:
            file.create_dataset("v", shape=A.shape, dtype="f4", external=[(str(path.parent / "outside.raw"), 0, A.nbytes)])
    return make


def _virtual(gone):
    def make(path):
        import h5py
        with h5py.File(path.parent / "source.h5", "w") as file:
            file["u"] = A
        layout = h5py.VirtualLayout(A.shape, "f4")
        layout[...] = h5py.VirtualSource("source.h5", "u", A.shape)
        with h5py.File(path, "w", libver="latest") as file:
            file.create_virtual_dataset("v", layout, fillvalue=-1)
        if gone == "file":
            (path.parent / "source.h5").unlink()
        elif gone:
            with h5py.File(path.parent / "source.h5", "a") as file:
                del file["u"]
    return make


F = np.float32
HDF5 = [
    Case("plain.h5", _attributes(), A, dataset="v"),
    Case("units.h5", _attributes(units="m", long_name="velocity"), A, dataset="v"),
    Case("none-missing.h5", _attributes(_FillValue=F(-1)), A, dataset="v"),
    Case("fill.h5", _attributes(_FillValue=F(50)), "without a value", dataset="v"),
    Case("vector-fill.h5", _attributes(_FillValue=np.array([50], "f4")), "without a value", dataset="v"),
    Case("nan-fill.h5", _attributes(_FillValue=F("nan")), A, dataset="v"),
    Case("missing.h5", _attributes(missing_value=50), "without a value", dataset="v"),
    Case("missings.h5", _attributes(missing_value=np.array([-1.0, 50.0])), "without a value", dataset="v"),
    Case("none-missings.h5", _attributes(missing_value=np.array([-1.0, -2.0])), A, dataset="v"),
    Case("text-fill.h5", _attributes(_FillValue="none"), "_FillValue", dataset="v"),
    Case("min.h5", _attributes(valid_min=F(2)), "without a value", dataset="v"),
    Case("max.h5", _attributes(valid_max=F(100)), "without a value", dataset="v"),
    Case("range.h5", _attributes(valid_range=np.array([2, 1000], "f4")), "without a value", dataset="v"),
    Case("within.h5", _attributes(valid_range=np.array([1, 1000], "f4"), valid_min=F(1), valid_max=F(105.5)), A, dataset="v"),
    Case("three-range.h5", _attributes(valid_range=np.array([1, 2, 3], "f4")), "valid_range", dataset="v"),
    Case("two-min.h5", _attributes(valid_min=np.array([1, 2], "f4")), "valid_min", dataset="v"),
    Case("text-max.h5", _attributes(valid_max="100"), "valid_max", dataset="v"),
    Case("packed.h5", _attributes(scale_factor=2.0, add_offset=1.0), A.astype("f8") * 2.0 + 1.0, "packed", dataset="v"),
    Case("text-scale.h5", _attributes(scale_factor="0.5"), "scale_factor", dataset="v"),
    Case("two-scale.h5", _attributes(scale_factor=np.array([0.5, 0.5])), "scale_factor", dataset="v"),
    Case("netcdf.h5", _netcdf(50), A, dataset="v"),
    Case("unwritten.h5", _netcdf(9.969209968386869e36), "without a value", dataset="v"),
    Case("empty.h5", _hdf5(_empty), "nothing was ever written", dataset="v"),
    Case("labels.h5", _dimensions("zyx"), A, dataset="v"),
    Case("turned.h5", _dimensions("xyz"), A.transpose(2, 1, 0), "transpose it", dataset="v"),
    Case("swapped.h5", _dimensions("yzx", scales=True), A.transpose(1, 0, 2), "transpose it", dataset="v"),
    Case("scales.h5", _dimensions(["a", "b", "c"], scales=True), A, dataset="v"),
    Case("axes.h5", _dimensions(["a", "b", "c"], scales=True, axes="XYZ"), A.transpose(2, 1, 0), "transpose it", dataset="v"),
    Case("half.h5", _dimensions(["t", "x", "y"]), "the dimensions t, x, y", dataset="v"),
    Case("time.h5", _dimensions(["time", "y", "x"]), A, dataset="v"),
    Case("chunked.h5", _hdf5(lambda file, h5py: file.create_dataset("v", data=A, chunks=(2, 3, 4), compression="gzip")), A, "chunk", dataset="v"),
    Case("big.h5", _hdf5(lambda file, h5py: file.create_dataset("v", data=A.astype(">f4"))), A, "endian", dataset="v"),
    Case("narrow.h5", _hdf5(_narrow), A.astype("u2"), "another type", dataset="v"),
    Case("half-type.h5", _hdf5(lambda file, h5py: file.create_dataset("v", data=A.astype("f2"))), A.astype("f2"), "another type", dataset="v"),
    Case("flat.h5", _hdf5(lambda file, h5py: file.create_dataset("v", data=A[0])), A[0], "2 dimensions", dataset="v"),
    Case("none.h5", _attributes(), "none.h5", dataset="w"),
    Case("outside.h5", _outside(RAW), A, "other files", dataset="v"),
    Case("outside-short.h5", _outside(RAW[:-4]), "outside", dataset="v"),
    Case("virtual.h5", _virtual(None), A, "virtual", dataset="v"),
    Case("virtual-gone.h5", _virtual("file"), "v", dataset="v"),
    Case("virtual-lost.h5", _virtual("dataset"), "v", dataset="v"),
    Case("block.h5", _hdf5(lambda file, h5py: file.create_dataset("v", data=A), userblock_size=512), A, dataset="v"),
    Case("hdf5.dat", _attributes(), A, dataset="v"),
]

CASES = [*NPY, *NRRD, *META, *HDF5]

# Cells of the types that fields which are only read may have besides reals: (case, type of the kernel's field).
B = (np.arange(210) % 251).astype("u1").reshape(5, 6, 7)


def _whole(dtype, **attributes):
    def write(file, h5py):
        file.attrs["_NCProperties"] = "version=2"
        file["v"] = B.astype(dtype)
        for name, value in attributes.items():
            file["v"].attrs[name] = value
    return _hdf5(write)


WHOLE = [
    Case("bytes.nrrd", _nrrd(("float", "uchar"), ("endian: little\n", ""), cells=B.tobytes()), B),
    Case("bytes.mha", _meta(("MET_FLOAT", "MET_UCHAR"), cells=B.tobytes()), B),
    Case("shorts.h5", _whole("i2"), B.astype("i2"), dataset="v"),
    Case("short-fill.h5", _whole("i2", _FillValue=np.int16(7)), "without a value", dataset="v"),
    Case("short-default.h5", _hdf5(lambda file, h5py: [file.attrs.update(_NCProperties="version=2"), file.create_dataset("v", data=np.where(B == 3, -32767, B).astype("i2"))]),
         "without a value", dataset="v"),
    Case("byte-255.h5", _hdf5(lambda file, h5py: [file.attrs.update(_NCProperties="version=2"), file.create_dataset("v", data=B + np.uint8(46))]), B + np.uint8(46), dataset="v"),
    Case("byte-filled.h5", _hdf5(lambda file, h5py: [file.attrs.update(_NCProperties="version=2"), file.create_dataset("v", data=B + np.uint8(46), fillvalue=255)]),
         "without a value", dataset="v"),
    Case("ushort-max.h5", _whole("u2", valid_max=np.uint16(200)), "without a value", dataset="v"),
    Case("ushort-default.h5", _hdf5(lambda file, h5py: [file.attrs.update(_NCProperties="version=2"), file.create_dataset("v", data=np.where(B == 3, 65535, B).astype("u2"))]),
         "without a value", dataset="v"),
    Case("unsigned.h5", _whole("i2", _Unsigned="true"), B.astype("u2"), "packed", dataset="v"),
]
