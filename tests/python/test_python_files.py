# SPDX-License-Identifier: BSD-3-Clause
"""Files that the Python package reads."""
import importlib.util
import os
import re
import sys

import numpy as np
import pytest
from package import cache, check_array, environment, mx, need  # noqa: F401 (fixtures)


def test_files_are_read_as_numpy_would(mx, tmp_path):
    """.npy, raw, NRRD and MetaImage attached and detached, little and big endian, with offsets."""
    want = np.random.default_rng(9).integers(-30000, 30000, (7, 8, 9)).astype("<i2")
    np.save(tmp_path / "a.npy", want)
    check_array(mx, mx.open(tmp_path / "a.npy"), want)
    (tmp_path / "a.raw").write_bytes(b"header" + want.tobytes())
    check_array(mx, mx.open(tmp_path / "a.raw", dtype="<i2", shape=(7, 8, 9), offset=6), want)
    big = want.astype(">i2")
    (tmp_path / "big.raw").write_bytes(b"\n1234" + big.tobytes())
    header = "NRRD0005\n# words\ntype: short\ndimension: 3\nsizes: 9 8 7\nencoding: raw\n"
    (tmp_path / "b.nhdr").write_text(header + "endian: big\nline skip: 1\nbyte skip: 4\ndata file: big.raw\n")
    check_array(mx, mx.open(tmp_path / "b.nhdr"), want)
    (tmp_path / "c.nrrd").write_bytes(header.encode() + b"endian: little\n\n" + want.tobytes())
    check_array(mx, mx.open(tmp_path / "c.nrrd"), want)
    meta = "ObjectType = Image\nNDims = 3\nDimSize = 9 8 7\nElementType = MET_SHORT\n"
    for truth in "True", "true", "1":
        (tmp_path / "d.mhd").write_text(meta + f"ElementByteOrderMSB = {truth}\nHeaderSize = -1\nElementDataFile = big.raw\n")
        check_array(mx, mx.open(tmp_path / "d.mhd"), want)
    (tmp_path / "e.mha").write_bytes(meta.encode() + b"ElementDataFile = LOCAL\n" + want.tobytes())
    check_array(mx, mx.open(tmp_path / "e.mha"), want)
    for text, naming in (("encoding: gzip", "gzip"), ("sizes: 9 8", "sizes"), ("dimension: 2", "2 dimensions"), ("type: block", "block"), ("sizes: 9 8 8", "1152")):
        key = text.split(":")[0]
        (tmp_path / "bad.nhdr").write_text(re.sub(f"{key}: .*", text, header) + "endian: big\ndata file: big.raw\n")
        with pytest.raises(mx.MemextError, match=naming):
            mx.open(tmp_path / "bad.nhdr")
    for path, naming in ((tmp_path / "none.npy", "does not exist"), (tmp_path / "a.raw", "dtype= and shape=|memext store|no store|holds no"), (tmp_path, "store")):
        with pytest.raises(mx.MemextError, match=naming):
            mx.open(path)


def test_files_of_libraries(mx, tmp_path):
    """HDF5 contiguous (read without the library) and in compressed chunks, Zarr, TIFF stacks in one file and one a plane."""
    h5py, tifffile, zarr = need("h5py"), need("tifffile"), need("zarr")
    want = np.random.default_rng(10).integers(0, 60000, (7, 8, 9)).astype("u2")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["plain"] = want
        file.create_dataset("group/chunks", data=want, chunks=(2, 4, 5), compression="gzip")
    check_array(mx, mx.open(tmp_path / "a.h5", "plain"), want)
    check_array(mx, mx.open(tmp_path / "a.h5", "group/chunks"), want)
    assert type(mx.open(tmp_path / "a.h5", "plain")).__name__ == "RawArray"
    with pytest.raises(mx.MemextError, match="group/chunks, plain"):
        mx.open(tmp_path / "a.h5")
    zarr.save(str(tmp_path / "a.zarr"), want)
    check_array(mx, mx.open(tmp_path / "a.zarr"), want)
    tifffile.imwrite(tmp_path / "a.tif", want)
    check_array(mx, mx.open(tmp_path / "a.tif"), want)
    for z in range(7):
        tifffile.imwrite(tmp_path / f"slice-{z:02}.tif", want[z])
    check_array(mx, mx.open(tmp_path / "slice-*.tif"), want)


def test_variables_of_netcdf(mx, tmp_path, monkeypatch):
    """NetCDF4 by netCDF4, h5netcdf or h5py: chunked and contiguous variables, packed ones, steps of a fourth dimension, groups; cells without a value
    are refused and not read as numbers; older files by netCDF4 alone."""
    netcdf = need("netCDF4")
    rng = np.random.default_rng(12)
    want, series = rng.random((7, 8, 9)).astype("f4"), rng.random((3, 7, 8, 9))
    packed = rng.integers(-1000, 1000, (7, 8, 9)).astype("i2")
    with netcdf.Dataset(tmp_path / "a.nc", "w") as file:
        for name, n in (("t", None), ("z", 7), ("y", 8), ("x", 9)):
            file.createDimension(name, n)
        file.createVariable("u", "f4", ("z", "y", "x"), chunksizes=(2, 4, 5), zlib=True)[:] = want
        file.createVariable("plain", "u2", ("z", "y", "x"))[:] = packed.astype("u2")
        file.createVariable("bytes", "u1", ("z", "y", "x"), fill_value=False)[:] = packed.astype("u1")
        v = file.createVariable("packed", "i2", ("z", "y", "x"))
        v.set_auto_maskandscale(False)
        v.scale_factor, v.add_offset = 0.25, 10.0
        v[:] = packed
        file.createVariable("series", "f8", ("t", "z", "y", "x"))[:] = series
        holes = file.createVariable("holes", "f4", ("z", "y", "x"), fill_value=-1.0)
        holes[:] = want
        holes[4, 2, 3] = np.ma.masked
        file.createGroup("deep").createVariable("u", "f8", ("z", "y", "x"))[:] = series[0]
    with netcdf.Dataset(tmp_path / "old.nc", "w", format="NETCDF3_CLASSIC") as file:
        for name, n in zip("zyx", want.shape):
            file.createDimension(name, n)
        file.createVariable("u", "f4", ("z", "y", "x"))[:] = want
    check_array(mx, mx.open(tmp_path / "old.nc"), want)
    readers = ["netCDF4", "h5netcdf", "h5py"]
    for i, reader in enumerate(readers):
        for other in readers[:i]:
            monkeypatch.setitem(sys.modules, other, None)  # as if it were not there
        if importlib.util.find_spec(reader) is None:
            continue
        check_array(mx, mx.open(tmp_path / "a.nc", "u"), want)
        check_array(mx, mx.open(tmp_path / "a.nc", "plain"), packed.astype("u2"))
        check_array(mx, mx.open(tmp_path / "a.nc", "bytes"), packed.astype("u1"))
        assert type(mx.open(tmp_path / "a.nc", "bytes")).__name__ == "RawArray"  # bytes that are not filled have no value for cells that nobody wrote
        check_array(mx, mx.open(tmp_path / "a.nc", "packed"), packed * 0.25 + 10.0)
        check_array(mx, mx.open(tmp_path / "a.nc", "series[2]"), series[2])
        if reader != "h5netcdf":
            check_array(mx, mx.open(tmp_path / "a.nc", "deep/u"), series[0])
        holes = mx.open(tmp_path / "a.nc", "holes")
        assert np.array_equal(holes[:4], want[:4])
        with pytest.raises(mx.MemextError, match="1 cells without a value.*plane 4"):
            holes[3:6]
        for name, naming in (("series", "3 steps"), ("series[3]", "steps 0 to 2"), ("none", "holes")):
            with pytest.raises(mx.MemextError, match=naming):
                mx.open(tmp_path / "a.nc", name)
    with pytest.raises(mx.MemextError, match="netCDF4"):
        mx.open(tmp_path / "old.nc")


def test_what_is_no_file_of_its_kind_is_refused(mx, tmp_path):
    """Empty files, noise, headers without cells: a sentence that names the file, whatever the library of the format raises."""
    for ending in (".npy", ".nhdr", ".mhd", ".h5", ".nc", ".tif", ".sgy", ".zarr", ".raw"):
        if ending in (need_of := {".h5": "h5py", ".nc": "netCDF4", ".tif": "tifffile", ".sgy": "segyio", ".zarr": "zarr"}) and not importlib.util.find_spec(need_of[ending]):
            continue
        for data in b"", np.random.default_rng(3).bytes(5000):
            (tmp_path / f"odd{ending}").write_bytes(data)
            with pytest.raises(mx.MemextError, match=rf"odd\{ending}"):
                mx.open(tmp_path / f"odd{ending}")
    meta = "NDims = 3\nDimSize = 3 3 3\nElementType = MET_FLOAT\n"
    nrrd = "NRRD0004\ntype: float\ndimension: 3\nsizes: 3 3 3\nencoding: raw\nendian: little\n"
    for name, text, naming in (("a.mhd", meta + "ElementDataFile = none.raw\n", "No such file"), ("a.mhd", meta, "lacks ElementDataFile"), ("a.mhd", meta + "ElementDataFile = LIST\n", "several"),
                               ("a.mhd", meta + "HeaderSize = x\nElementDataFile = a.mhd\n", "'x'"), ("a.nhdr", nrrd + "data file: none.raw\n", "No such file"),
                               ("a.nhdr", nrrd + "byte skip: abc\ndata file: a.nhdr\n", "'abc'")):
        (tmp_path / name).write_text(text)
        with pytest.raises(mx.MemextError, match=naming):
            mx.open(tmp_path / name)
    np.save(tmp_path / "flat.npy", np.zeros((3, 4)))
    assert mx.open(tmp_path / "flat.npy").shape == (3, 4)
    with pytest.raises(mx.MemextError, match="has 2 dimensions: give an array of three"):
        mx.Run(u=tmp_path / "flat.npy", backend="dram")
    for shape in ((3,), (1, 2, 3, 4)):
        np.save(tmp_path / "other.npy", np.zeros(shape))
        with pytest.raises(mx.MemextError, match=f"{len(shape)} dimension"):
            mx.open(tmp_path / "other.npy")
    cells = tmp_path / "cells.bin"
    cells.write_bytes(bytes(64))
    for more, naming in (({"dtype": "O"}, "Python objects"), ({"dtype": "banana"}, "banana"), ({"shape": (1,)}, "nz, ny, nx"), ({"shape": (1.5, 1, 1)}, "float"),
                         ({"shape": (-1, -1, 1)}, r"shape=\(-1, -1, 1\).*give shape="), ({"offset": -8}, "offset=-8.*0 or more"), ({"shape": (1, 8, 9)}, "64 bytes")):
        with pytest.raises(mx.MemextError, match=naming):
            mx.open(cells, **{"dtype": "u1", "shape": (1, 1, 1), **more})
    assert mx.open(os.fsencode(cells), dtype="u1", shape=(4, 4, 4))[...].sum() == 0
    with pytest.raises(ValueError, match="without a copy"):
        mx.open(cells, dtype="u1", shape=(4, 4, 4)).__array__(copy=False)


def test_stacks_of_tiff(mx, tmp_path):
    """One page that stands for all planes, as ImageJ writes beyond 4 GiB; numbers in names without zeros before them; channels, pages and files of
    another size or type are refused, not cut, repeated or converted."""
    tifffile = need("tifffile")
    want = np.random.default_rng(14).random((12, 9, 7)).astype("f4")
    for name, more in (("whole.tif", {"imagej": True}), ("one.tif", {"imagej": True, "truncate": True}), ("shaped.tif", {"truncate": True}), ("big.tif", {"byteorder": ">"}),
                       ("tiles.tif", {"tile": (16, 16), "compression": "zlib", "photometric": "minisblack"})):
        tifffile.imwrite(tmp_path / name, want, **more)
        check_array(mx, mx.open(tmp_path / name), want)
    tifffile.imwrite(tmp_path / "channels.tif", np.zeros((4, 2, 9, 7), "u2"), imagej=True)
    with pytest.raises(mx.MemextError, match="4 dimensions"):
        mx.open(tmp_path / "channels.tif")
    for odd in (lambda a: a[:1], lambda a: a.astype("f8")):
        with tifffile.TiffWriter(tmp_path / "odd.tif") as file:
            for z in range(5):
                file.write(odd(want[z]) if z == 2 else want[z], contiguous=False, photometric="minisblack")
        with pytest.raises(mx.MemextError, match="give images of one size"):
            mx.open(tmp_path / "odd.tif")
    for z in range(12):
        tifffile.imwrite(tmp_path / f"slice-{z}.tif", want[z])
    check_array(mx, mx.open(tmp_path / "slice-*.tif"), want)
    for odd in (want[5][:1], want[5].astype("f8")):
        tifffile.imwrite(tmp_path / "slice-5.tif", odd)
        with pytest.raises(mx.MemextError, match="plane 5 has"):
            mx.open(tmp_path / "slice-*.tif")[...]


def test_hdf5_links_and_cells_that_nobody_wrote(mx, tmp_path):
    """Behind a block of the user's too; soft links and those to other files; names that begin with a slash. A dataset of which nothing was ever written
    has no cells, as the command says."""
    h5py = need("h5py")
    want = np.random.default_rng(15).random((4, 5, 6))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["u"] = 2 * want
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=512) as file:
        file["u"] = want
        file.create_dataset("never", shape=want.shape, dtype="f8", fillvalue=7)
        file["soft"], file["far"] = h5py.SoftLink("/u"), h5py.ExternalLink("other.h5", "/u")
        file.create_dataset("text", shape=(2, 2, 2), dtype=h5py.string_dtype())
    for name, cells in (("u", want), ("/u", want), ("soft", want), ("far", 2 * want)):
        assert np.array_equal(mx.open(tmp_path / "a.h5", name), cells), name
    for name, naming in (("text", "Python objects"), ("never", "nothing was ever written")):
        with pytest.raises(mx.MemextError, match=naming):
            mx.open(tmp_path / "a.h5", name)


def test_segy_of_several_offsets_and_of_whole_numbers(mx, tmp_path):
    segyio = need("segyio")
    cube = (np.random.default_rng(16).random((5, 6, 7)) * 2**30).astype("i4")
    segyio.tools.from_array3D(str(tmp_path / "whole.sgy"), cube, format=segyio.SegySampleFormat.SIGNED_INTEGER_4_BYTE)
    check_array(mx, mx.open(tmp_path / "whole.sgy"), cube)
    segyio.tools.from_array4D(str(tmp_path / "offsets.sgy"), np.zeros((5, 6, 2, 7), "f4"))
    with pytest.raises(mx.MemextError, match="2 offsets"):
        mx.open(tmp_path / "offsets.sgy")


def test_a_zarr_of_one_array_has_no_names(mx, tmp_path):
    zarr = need("zarr")
    zarr.save(str(tmp_path / "a.zarr"), np.zeros((3, 4, 5)))
    with pytest.raises(mx.MemextError, match="leave the name u out"):
        mx.open(tmp_path / "a.zarr", "u")


def test_what_is_no_file_is_refused_at_once(mx, tmp_path):
    """Nobody waits for the other end of a pipe, and a directory that is missing does not become a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "a.nhdr").write_text("NRRD0004\ntype: double\ndimension: 3\nsizes: 4 4 4\nencoding: raw\nendian: little\nline skip: 2\ndata file: pipe\n")
    calls = {"open": lambda: mx.open(pipe), "info": lambda: mx.info(pipe), "timeline": lambda: mx.timeline(pipe), "header": lambda: mx.open(tmp_path / "a.nhdr"),
             "view": lambda: mx.view(np.zeros((4, 4, 4)), pipe), "run": lambda: mx.Run(u=pipe, device=tmp_path), "raw": lambda: mx.open(pipe, dtype="f8", shape=(4, 4, 4)),
             "device": lambda: mx.Run(u="random", shape=(4, 4, 4), device=pipe, dram="64MiB").advance(1),
             "absent": lambda: mx.Run(u="random", shape=(4, 4, 4), device=tmp_path / "absent", dram="64MiB").advance(1)}
    for name, call in calls.items():
        with pytest.raises(mx.MemextError, match="pipe|absent|bytes"):
            call()
    assert sorted(os.listdir(tmp_path)) == ["a.nhdr", "pipe"]


def test_cells_behind_others_in_a_npy_file(mx, tmp_path):
    """Two arrays in one file: what is read is what the array shows."""
    rng = np.random.default_rng(5)
    a, b = rng.random((8, 9, 10)), rng.random((8, 9, 10))
    with open(tmp_path / "two.npy", "wb") as file:
        np.save(file, a)
        at = file.tell()
        np.save(file, b)
    second = mx.open(tmp_path / "two.npy", dtype="<f8", shape=b.shape, offset=at + 128)
    assert np.array_equal(second[...], b)
    with mx.Run(u=second, backend="dram", dram="64MiB") as run:
        assert np.array_equal(run.advance(0)["u"][...], b)


def test_planes_that_a_program_changes_are_its_own(mx, tmp_path):
    u = np.random.default_rng(6).random((8, 9, 10))
    np.save(tmp_path / "f.npy", np.asfortranarray(u))
    array = mx.open(tmp_path / "f.npy")
    for plane in array:
        plane *= 2
    assert np.array_equal(array.plane(-1), u[-1]) and np.array_equal(np.stack(list(array)), u)
