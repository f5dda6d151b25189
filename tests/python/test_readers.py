# SPDX-License-Identifier: BSD-3-Clause
"""Readers of the Python package against each format's own library: packing and missing values whatever the file is, order of pages and of dimensions,
what is cut short or not there, masks, and chunks that are computed once."""
import os
import pathlib
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from conftest import drawn
from package import cache, check_array, environment, mx, need  # noqa: F401  (fixtures)

A = np.arange(210, dtype="f4").reshape(5, 6, 7)


def refused(mx, naming, path, *name):  # noqa: F811
    """The file is named, and what is wrong with it."""
    with pytest.raises(mx.MemextError, match=naming) as caught:
        np.asarray(mx.open(path, *name))
    assert os.path.basename(path) in str(caught.value), str(caught.value)


def variable(netcdf, folder, dtype, attributes=(), fill=None, upto=5, kind="NETCDF4", names="zyx", cells=A):
    path = folder / f"{len([*folder.iterdir()])}.nc"
    with netcdf.Dataset(path, "w", format=kind) as file:
        for name, n in zip(names, cells.shape):
            file.createDimension(name, n)
        v = file.createVariable("v", dtype, tuple(names), fill_value=fill)
        v.set_auto_maskandscale(False)
        for key, value in dict(attributes).items():
            v.setncattr(key, value)
        v[:upto] = cells.astype(dtype)[:upto]
    return path


@pytest.mark.parametrize("kind", ["NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA"])
def test_conventions_of_netcdf(mx, tmp_path, kind):  # noqa: F811
    """Attributes of every kind, in files of every kind: what netCDF4 masks is refused, what it unpacks has its values."""
    netcdf = need("netCDF4")
    F, S = np.float32, np.int16
    for dtype, attributes, more, naming in [
            ("f4", {"valid_min": F(10)}, {}, "10 cells without a value.*below the valid minimum 10.*plane 0"), ("f4", {"valid_max": F(208)}, {}, "1 cells.*above the valid maximum 208.*plane 4"),
            ("f4", {"valid_range": np.array([0, 200], "f4")}, {}, "9 cells"), ("i2", {"valid_min": S(1), "scale_factor": 0.5}, {}, "1 cells"),
            ("i2", {"missing_value": S(9)}, {}, "1 cells"), ("i2", {}, {"fill": 9}, "1 cells"), ("i4", {}, {"upto": 3}, "84 cells.*plane 3"), ("i2", {}, {"upto": 3}, "84 cells"),
            ("f8", {}, {"upto": 3}, "84 cells"), ("i1", {}, {"upto": 3}, "cells without a value"), ("f4", {"missing_value": np.array([1, 2], "f4")}, {}, "1 cells"),
            ("i2", {"scale_factor": "0.5"}, {}, "scale_factor.*'0.5'.*as a number"), ("i2", {"add_offset": "a"}, {}, "add_offset"),
            ("i2", {"scale_factor": np.array([0.5, 0.5])}, {}, "scale_factor.*one finite number"), ("f4", {"valid_min": "0"}, {}, "valid_min"),
            ("f4", {"valid_range": F(3)}, {}, "valid_range.*two numbers"), ("i2", {"valid_max": F(3), "scale_factor": F(2)}, {}, "valid_max.*packed type"),
            ("f4", {"_Unsigned": "true"}, {}, "_Unsigned"), ("i2", {"_Unsigned": "perhaps"}, {}, "_Unsigned")]:
        refused(mx, naming, variable(netcdf, tmp_path, dtype, attributes, kind=kind, **more), "v")
    for dtype, attributes, more in [
            ("i2", {"scale_factor": 0.5, "add_offset": F(3)}, {}), ("i2", {"scale_factor": F(0.1)}, {}), ("i4", {"scale_factor": F(0.1)}, {}), ("f4", {"valid_min": F(-1), "valid_max": F(209)}, {}),
            ("i2", {"_Unsigned": "true", "valid_max": S(-1)}, {}), ("i2", {"_Unsigned": "true", "scale_factor": 2.0}, {}), ("f4", {}, {"fill": -5})]:
        cells = A - 60 if "_Unsigned" in attributes else A
        path = variable(netcdf, tmp_path, dtype, attributes, kind=kind, cells=cells, **more)
        with netcdf.Dataset(path) as file:
            want = file["v"][:]
        assert not np.ma.getmaskarray(want).any()
        check_array(mx, mx.open(path, "v"), np.asarray(want))
    assert np.array_equal(mx.open(variable(netcdf, tmp_path, "i2", {"scale_factor": np.int16(300)}, kind=kind)), A * 300.0)  # whole numbers times whole numbers do not wrap round
    path = variable(netcdf, tmp_path, "f4", kind=kind)
    os.truncate(path, path.stat().st_size - 50)
    refused(mx, "cut short|truncated|cannot be read", path)


def test_dimensions_by_their_names(mx, tmp_path):  # noqa: F811
    """x, y, z in another order are turned; axis of a coordinate says it as well; what has half of the names is refused; other names say nothing."""
    netcdf = need("netCDF4")
    for names, order in (("xyz", (2, 1, 0)), ("ZXY", (0, 2, 1)), ("yzx", (1, 0, 2)), ("abc", (0, 1, 2)), ("tyx", (0, 1, 2)), ("zyx", (0, 1, 2))):
        for dtype in "f4", "i2":
            check_array(mx, mx.open(variable(netcdf, tmp_path, dtype, names=names)), A.astype(dtype).transpose(order))
    path = variable(netcdf, tmp_path, "f4", names="abc")
    with netcdf.Dataset(path, "a") as file:
        for name, axis in zip("abc", "XYZ"):
            file.createVariable(name, "f8", (name,)).axis = axis
    check_array(mx, mx.open(path, "v"), A.transpose(2, 1, 0))
    refused(mx, "dimensions t, x, y", variable(netcdf, tmp_path, "f4", names="txy"))


def test_zarr_of_both_formats(mx, tmp_path):  # noqa: F811
    """Packed by xarray's conventions, dimensions named, chunks that are not there or cut short."""
    zarr = need("zarr")
    formats = (2, 3) if hasattr(zarr, "config") else (2,)
    for form in formats:
        def make(name, attributes=(), names=None, dtype="i2", cells=A, upto=5, form=form, **more):
            path = tmp_path / f"{name}-{form}.zarr"
            if hasattr(zarr, "config"):
                named = {"dimension_names": tuple(names)} if names and form == 3 else {}
                data = zarr.create_array(str(path), shape=A.shape, chunks=(2, 3, 4), dtype=dtype, zarr_format=form, overwrite=True, **named, **more)
            else:
                data = zarr.open(str(path), mode="w", shape=A.shape, chunks=(2, 3, 4), dtype=dtype, **more)
            if names and form == 2:
                data.attrs["_ARRAY_DIMENSIONS"] = list(names)
            for key, value in dict(attributes).items():
                data.attrs[key] = value
            data[:upto] = cells.astype(dtype)[:upto]
            return path
        check_array(mx, mx.open(make("packed", {"scale_factor": 0.5, "add_offset": 10})), A.astype("f8") * 0.5 + 10.0)
        refused(mx, "scale_factor", make("text", {"scale_factor": "0.5"}))
        refused(mx, "1 cells without a value", make("missing", {"missing_value": 7}))
        refused(mx, "10 cells", make("min", {"valid_min": 10}))
        check_array(mx, mx.open(make("turned", names="xyz", fill_value=-1)), A.astype("i2").transpose(2, 1, 0))
        refused(mx, "chunk 2.0.0.*never written.*no value", make("hole", dtype="f4", upto=3, fill_value=float("nan")))
        with pytest.warns(UserWarning, match="chunk 2.0.0 and 3 more were never written, so their cells have the fill value 7"):
            got = np.asarray(mx.open(make("sevens", upto=3, fill_value=7)))
        assert np.array_equal(got[:3], A[:3]) and (got[4:] == 7).all()
        path = make("cut", dtype="f4")
        file = max((f for f in path.rglob("*") if f.is_file() and not f.name.startswith(".z") and f.name != "zarr.json"), key=lambda f: f.stat().st_size)
        file.write_bytes(file.read_bytes()[:-3])
        refused(mx, "cannot be read", path)
        if form == 2:  # what xarray takes for the fill value
            refused(mx, "1 cells", make("fill", names="zyx", fill_value=7))
            check_array(mx, mx.open(make("plain", fill_value=7)), A.astype("i2"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        path = mx.save(np.zeros((4, 40, 40)), tmp_path / "zeros.zarr", chunks=(2, 40, 40))
        assert not np.asarray(mx.open(path)).any()  # zeros are written, so that one that is lost is seen


SHARDS = """
import pathlib, sys, warnings
import numpy as np, zarr
from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec, ZstdCodec
sys.path.insert(0, sys.argv[1])
import memext as mx
A = np.arange(1, 8 * 6 * 7 + 1, dtype="f4").reshape(8, 6, 7)
folder, inner, shard = pathlib.Path(sys.argv[2]), (1, 2, 4), (4, 4, 8)
for number, (place, index) in enumerate([("end", [BytesCodec(), Crc32cCodec()]), ("start", [BytesCodec(), Crc32cCodec()]), ("end", [BytesCodec()])]):
    for fill in (0, 7.5, float("nan")):
        for hole in (False, True):
            path = folder / f"{number}-{fill}-{hole}.zarr"
            codecs = [ShardingCodec(chunk_shape=inner, codecs=[BytesCodec(), ZstdCodec()], index_codecs=index, index_location=place)]
            data = zarr.create_array(str(path), shape=A.shape, chunks=shard, dtype="f4", fill_value=fill, filters=None, compressors=None,
                                     serializer=codecs[0])
            data[:] = A
            if hole:  # one chunk of a shard that is there
                data[5, 2:4, :4] = fill
            want = zarr.open(str(path))[...]
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                array = mx.open(path)
                assert np.array_equal(array[:4], A[:4]) and np.array_equal(array[5, 4:], A[5, 4:]) and not heard
                try:
                    got = np.asarray(array)
                except mx.MemextError as error:
                    assert hole and fill != fill and "chunk 5.1.0 were never written, and their cells have no value" in str(error), str(error)
                    continue
            assert np.array_equal(got, want) and not (hole and fill != fill)
            assert [str(w.message).partition(".zarr: ")[2] for w in heard] == (
                [f"{path.name}: chunk 5.1.0 were never written: their cells are the fill value {float(fill)}"] if hole else []), heard
file = next(f for f in (folder / "0-0-False.zarr").rglob("*") if f.is_file() and f.name != "zarr.json")
file.write_bytes(file.read_bytes()[:40])
try:
    np.asarray(mx.open(folder / "0-0-False.zarr"))
except mx.MemextError as error:
    assert "cannot be read" in str(error)
else:
    raise AssertionError("a shard that is cut short was read")
print("read")
"""


def test_chunks_that_a_shard_lacks(mx, tmp_path):  # noqa: F811
    """They are as those that lack in a directory: the fill value, as zarr reads it, and a warning; NaN is no value. Wherever the index stands."""
    python = os.environ.get("MEMEXT_ZARR3_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import zarr; zarr.config, zarr.codecs.ShardingCodec; import cffi"], capture_output=True).returncode != 0:
        pytest.skip("zarr 3 is not installed: pip install zarr cffi into an environment whose python MEMEXT_ZARR3_PYTHON names")
    (tmp_path / "shards.py").write_text(SHARDS)
    done = subprocess.run([python, tmp_path / "shards.py", pathlib.Path(mx.__file__).parents[1], tmp_path], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "read\n", done.stderr


def test_files_that_xarray_writes(mx, tmp_path):  # noqa: F811
    xarray = need("xarray")
    data = xarray.Dataset({"v": (("z", "y", "x"), A), "w": (("x", "y", "z"), A.transpose(2, 1, 0) + 0.25)})
    encoding = {"v": {"dtype": "i2", "scale_factor": 0.5, "add_offset": 10.0, "_FillValue": -999}, "w": {"_FillValue": -5.0}}
    written = []
    if importlib_has("netCDF4"):
        data.to_netcdf(tmp_path / "a.nc", encoding=encoding)
        written.append(tmp_path / "a.nc")
    if importlib_has("zarr"):
        import zarr
        for form in (2, 3) if hasattr(zarr, "config") else (2,):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                data.to_zarr(tmp_path / f"a{form}.zarr", encoding=encoding, **({"zarr_format": form} if hasattr(zarr, "config") else {}))
            written.append(tmp_path / f"a{form}.zarr")
    assert written
    for path in written:
        check_array(mx, mx.open(path, "v"), A.astype("f8"))
        check_array(mx, mx.open(path, "w"), A + 0.25)
    holes = data.copy(deep=True)
    holes["v"][3, 2, 1] = np.nan
    holes["w"][5, 2, 1] = np.nan
    written = [path.rename(path.with_stem(path.stem + "h")) if path.suffix == ".zarr" else path.with_stem("h") for path in written]
    for path in written:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            more = {"zarr_format": int(path.stem[1])} if path.suffix == ".zarr" and hasattr(zarr, "config") else {}
            holes.to_netcdf(path, encoding=encoding) if path.suffix == ".nc" else holes.to_zarr(path, mode="w", encoding=encoding, **more)
        for name in "vw":
            refused(mx, "1 cells without a value", path, name)


def importlib_has(name):
    import importlib.util
    return importlib.util.find_spec(name) is not None


def test_arrays_of_xarray(mx):  # noqa: F811
    """In memory: dimensions by their names, what xarray did not decode, cells that it left without a value."""
    xarray = need("xarray")
    as_array = mx.formats.as_array
    assert np.array_equal(as_array(xarray.DataArray(A, dims=("z", "y", "x")), "u"), A)
    assert np.array_equal(as_array(xarray.DataArray(A, dims=("x", "y", "z")), "u"), A.transpose(2, 1, 0))
    assert np.array_equal(as_array(xarray.DataArray(A.astype("i2"), dims=("x", "z", "y"), attrs={"scale_factor": 0.5}), "u"), A.transpose(1, 2, 0) * 0.5)
    for value, naming in ((xarray.DataArray(A, dims=("y", "x", "t")), "dimensions y, x, t"), (xarray.DataArray(A, dims=tuple("abc"), attrs={"missing_value": 3}), "1 cells"),
                          (xarray.Dataset({"v": (("z", "y", "x"), A)}), "dataset with the variables v"), (xarray.DataArray(A[0]), "2 dimensions")):
        with pytest.raises(mx.MemextError, match=naming):
            as_array(value, "u")[...]
    holes = xarray.DataArray(A.copy(), dims=tuple("abc"))
    assert np.array_equal(as_array(holes, "u"), A)
    holes.encoding["_FillValue"] = -999.0
    holes[1, 1, 1] = np.nan
    with pytest.raises(mx.MemextError, match="1 cells without a value"):
        as_array(holes, "u")[...]


def test_dask_chunks_are_computed_once(mx, quick_place, tmp_path):  # noqa: F811
    """A run asks for each chunk twice at most: once for the identity of the field, once for its cells; whatever is written, once."""
    dask = need("dask.array")
    want = np.random.default_rng(5).random((43, 10, 12))
    for chunks in ((15, 15, 13), (10,), (12,)), ((1, 2, 30, 10), (4, 6), (5, 7)):
        calls, lock = [], threading.Lock()

        def block(block_info=None, calls=calls, lock=lock):
            where = block_info[None]["array-location"]
            with lock:
                calls.append(tuple(where))
            return want[tuple(slice(*w) for w in where)]
        array = dask.map_blocks(block, chunks=chunks, dtype="f8")
        count = np.prod([len(c) for c in chunks])
        calls.clear()
        with mx.Run(u=array, device=quick_place, dram="64MiB") as run:
            run.advance(0)
            assert np.array_equal(run["u"], want)
        assert len(calls) <= 2 * count and len(set(calls)) == count
        for ending in (".npy", ".raw"):
            calls.clear()
            mx.save(array, tmp_path / f"a{ending}", overwrite=True)
            assert len(calls) == count, ending
    field = mx.formats.as_array(array, "field")
    field.group_bytes = 4 * want[0].nbytes
    calls.clear()
    with pytest.warns(UserWarning, match="chunks are 30 planes deep, but only 4 fit into memory, so each chunk is computed 8 times"):
        assert all(np.array_equal(field.plane(z), want[z]) for z in range(43))


def test_masks_and_what_dask_promises(mx):  # noqa: F811
    dask = need("dask.array")
    as_array = mx.formats.as_array
    array = dask.ma.masked_equal(dask.from_array(A, chunks=(2, 6, 7)), 100)
    with pytest.raises(mx.MemextError, match="1 cells without a value .masked. from plane 2"):
        as_array(array, "k")[...]
    assert np.array_equal(as_array(dask.ma.masked_equal(dask.from_array(A, chunks=3), -1), "k"), A)
    lies = dask.from_array(A, chunks=3).map_blocks(lambda b: b.astype("f8"), dtype="f4")
    with pytest.raises(mx.MemextError, match="returned float64 cells.*but float32"):
        as_array(lies, "k")[...]
    with pytest.raises(mx.MemextError, match="not known yet"):
        as_array(dask.from_array(A, chunks=3)[dask.from_array(A[:, 0, 0], chunks=3) > 5], "k")

    def fails(_block):
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):  # what the user's own code raises
        mx.save(dask.from_array(A, chunks=3).map_blocks(fails, dtype="f4", meta=np.empty((0, 0, 0), "f4")), "/tmp/never.npy")


def ome(tifffile, path, order, planes):
    """Pages in the order of `order`, whose places in the stack OME's description says."""
    data = "".join(f'<TiffData IFD="{i}" FirstZ="{z}" FirstC="0" FirstT="0" PlaneCount="1"/>' for i, z in enumerate(order))
    text = ('<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0"><Pixels ID="Pixels:0" '
            f'DimensionOrder="XYZCT" Type="float" SizeX="7" SizeY="6" SizeZ="{planes}" SizeC="1" SizeT="1">{data}</Pixels></Image></OME>')
    with tifffile.TiffWriter(path) as file:
        for i, z in enumerate(order):
            file.write(A[z], photometric="minisblack", contiguous=False, metadata=None, description=text if i == 0 else None)
    return path


def test_tiff_as_its_series_says(mx, tmp_path):  # noqa: F811
    """OME's order of planes, axes in another order, NODATA, calibrations, strips that are not there or cut short."""
    tifffile = need("tifffile")
    path = ome(tifffile, tmp_path / "a.ome.tif", [3, 0, 4, 1, 2], 5)
    assert np.array_equal(tifffile.imread(path), A)
    check_array(mx, mx.open(path), A)
    refused(mx, "plane|planes", ome(tifffile, tmp_path / "lost.ome.tif", [3, 0, 1, 2], 5))
    tifffile.imwrite(tmp_path / "x.tif", A, photometric="minisblack", metadata={"axes": "XYZ"})
    check_array(mx, mx.open(tmp_path / "x.tif"), A.transpose(2, 1, 0))
    for name, nodata, naming in (("no.tif", "7", "1 cells without a value"), ("text.tif", "seven", "GDAL_NODATA")):
        tifffile.imwrite(tmp_path / name, A, photometric="minisblack", metadata=None, extratags=[(42113, "s", 0, nodata, False)])
        refused(mx, naming, tmp_path / name)
    tifffile.imwrite(tmp_path / "yes.tif", A, photometric="minisblack", metadata=None, extratags=[(42113, "s", 0, "-9999", False)])
    check_array(mx, mx.open(tmp_path / "yes.tif"), A)
    gdal = '<GDALMetadata><Item name="SCALE" sample="0" role="scale">0.5</Item></GDALMetadata>'
    tifffile.imwrite(tmp_path / "scaled.tif", A, photometric="minisblack", metadata=None, extratags=[(42112, "s", 0, gdal, False)])
    refused(mx, "GDAL_METADATA.*scale of 0.5", tmp_path / "scaled.tif")
    tifffile.imwrite(tmp_path / "signed.tif", A.astype("u2"), imagej=True, metadata={"cf": 0, "c0": -32768.0, "c1": 1.0})
    refused(mx, "calibration.*c0", tmp_path / "signed.tif")
    with tifffile.TiffWriter(tmp_path / "cut.tif") as file:
        for z in range(5):
            file.write(A[z], photometric="minisblack", contiguous=False, metadata=None)
    with tifffile.TiffFile(tmp_path / "cut.tif") as file:
        offset = file.pages[4].dataoffsets[0]
        tag = file.pages[2].tags["StripByteCounts"].valueoffset
    whole = (tmp_path / "cut.tif").read_bytes()
    (tmp_path / "cut.tif").write_bytes(whole[:offset + 50])
    refused(mx, "plane 4.*cut short", tmp_path / "cut.tif")
    (tmp_path / "sparse.tif").write_bytes(whole[:tag] + bytes(4) + whole[tag + 4:])
    refused(mx, "plane 2.*never written", tmp_path / "sparse.tif")


def test_hdf5_chunks_and_sources_that_are_not_there(mx, tmp_path):  # noqa: F811
    h5py = need("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, fill in (("sevens", 7), ("none", np.nan)):
            file.create_dataset(name, shape=A.shape, dtype="f4", chunks=(2, 6, 7), fillvalue=fill)[:3] = A[:3]
    with pytest.warns(UserWarning, match="1 of 3 chunks were never written, so their cells have the fill value 7"):
        got = np.asarray(mx.open(tmp_path / "a.h5", "sevens"))
    assert np.array_equal(got[:3], A[:3]) and (got[4] == 7).all()
    refused(mx, "1 of 3 chunks.*no value", tmp_path / "a.h5", "none")
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file["u"] = A
    for k, (source, name) in enumerate((("source.h5", "u"), (str(tmp_path / "source.h5"), "u"), ("gone.h5", "u"), ("source.h5", "gone"))):
        layout = h5py.VirtualLayout(A.shape, "f4")
        layout[...] = h5py.VirtualSource(source, name, A.shape)
        with h5py.File(tmp_path / f"v{k}.h5", "w", libver="latest") as file:
            file.create_virtual_dataset("v", layout, fillvalue=-1)
        if k < 2:
            check_array(mx, mx.open(tmp_path / f"v{k}.h5"), A)
        else:
            refused(mx, "gone", tmp_path / f"v{k}.h5")


def test_what_libraries_raise_becomes_a_sentence(mx, quick_place, tmp_path):  # noqa: F811
    """While a file is opened, read by slices, by a run, and written: the file and the cause."""
    h5py = need("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("u", data=A, chunks=(1, 6, 7), compression="gzip")
        where = [file["u"].id.get_chunk_info(i).byte_offset for i in (3,)]
    data = bytearray((tmp_path / "a.h5").read_bytes())
    data[where[0]:where[0] + 20] = bytes(20)
    (tmp_path / "a.h5").write_bytes(data)
    array = mx.open(tmp_path / "a.h5")
    assert np.array_equal(array[:3], A[:3])
    for read in (lambda: array[3:], lambda: array.plane(3), lambda: mx.save(array, tmp_path / "b.npy"), lambda: mx.Run(u=array, device=quick_place, dram="64MiB").advance(0)):
        with pytest.raises(mx.MemextError, match="a.h5: u, planes .* cannot be read: ") as caught:
            read()
        assert caught.value.__cause__ is not None or caught.value.errno
    for path, options, naming in (("c.h5", {"compression": "nope"}, "c.h5 cannot be written.*nope"), ("c.npy", {"compression": "gzip"}, "have no options"), ("c.raw", {"chunks": 3}, "have no options")):
        with pytest.raises(mx.MemextError, match=naming):
            mx.save(A, tmp_path / path, **options)
        assert not (tmp_path / path).exists()
    with pytest.raises(mx.MemextError, match="field is not an array"):
        mx.formats.as_array([[1, 2], [3]], "field")


def random_attributes(rng, dtype):
    """CF attributes of a variable, near and beyond its cells of 0 to 9."""
    kind = np.dtype(dtype).type
    some = {"scale_factor": rng.choice([0.5, 0.1, 2.0]), "add_offset": rng.choice([np.float32(3), np.float32(-0.25)]), "_FillValue": kind(rng.integers(7, 20)),
            "missing_value": kind(rng.integers(7, 20)), "valid_min": kind(rng.integers(0, 2)), "valid_max": kind(rng.integers(7, 20)),
            "valid_range": np.array([rng.integers(0, 2), rng.integers(7, 20)], dtype), "_Unsigned": "true"}
    chosen = {key: value for key, value in some.items() if rng.random() < (0.12 if key.startswith("valid") else 0.3)}
    if "valid_range" in chosen:
        chosen.pop("valid_min", None), chosen.pop("valid_max", None)
    if np.dtype(dtype).kind != "i":
        chosen.pop("_Unsigned", None)
    return chosen


def test_random_attributes_in_every_container(mx, tmp_path):  # noqa: F811
    """Random cells and attributes of CF in NetCDF 3 and 4, HDF5 and Zarr: all of them are read as netCDF4 reads its own file, or refused where it masks."""
    netcdf, h5py, zarr = need("netCDF4"), need("h5py"), need("zarr")
    seeds = drawn(20, 24)
    rng = np.random.default_rng(seeds[0])
    formats = ({"zarr_format": 2}, {"zarr_format": 3}) if hasattr(zarr, "config") else ({},)
    verdicts = {"read": 0, "refused": 0}
    for case in range(len(seeds)):
        dtype = str(rng.choice(["f4", "f8", "i1", "i2", "i4"]))
        cells = rng.integers(0, 9, rng.integers(2, 5, 3)).astype(dtype)
        attributes = random_attributes(rng, dtype)
        paths = []
        for kind in "NETCDF4", "NETCDF3_CLASSIC":
            paths.append(tmp_path / f"{case}-{kind}.nc")
            with netcdf.Dataset(paths[-1], "w", format=kind) as file:
                for name, n in zip("abc", cells.shape):
                    file.createDimension(name, n)
                v = file.createVariable("v", dtype, tuple("abc"), fill_value=attributes.get("_FillValue"))
                v.set_auto_maskandscale(False)
                v.setncatts({k: a for k, a in attributes.items() if k != "_FillValue"})
                v[:] = cells
        with netcdf.Dataset(paths[0]) as file:
            want = file["v"][:]
        paths.append(tmp_path / f"{case}.h5")
        with h5py.File(paths[-1], "w") as file:
            file.create_dataset("v", data=cells, chunks=True if case % 2 else None).attrs.update(attributes)
        for more in formats:
            paths.append(tmp_path / f"{case}-{more.get('zarr_format', 2)}.zarr")
            data = zarr.open(str(paths[-1]), mode="w", shape=cells.shape, dtype=dtype, chunks=(2, 2, 2), fill_value=0, **more)
            data[:] = cells
            data.attrs.update({k: np.asarray(a).tolist() for k, a in attributes.items()})
        masked = np.ma.getmaskarray(want).any()
        verdicts["refused" if masked else "read"] += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # chunks of 0 have no file
            for path in paths:
                if masked:
                    refused(mx, "without a value", path)
                else:
                    got = np.asarray(mx.open(path))
                    exact = path.suffix != ".zarr" and got.dtype == want.dtype  # numpy 1 keeps float32 beside a scale in float64, and memext does not
                    assert np.array_equal(got, np.asarray(want)) if exact else np.allclose(got, np.asarray(want), rtol=1e-6, atol=1e-6), (path, attributes)
    assert min(verdicts.values()) >= len(seeds) // 8, verdicts
