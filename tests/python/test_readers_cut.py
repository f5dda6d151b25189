# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F401, F811 - fixtures
"""Files that are cut short, or of which a part is missing: refused, or all of the cells, but never fewer planes."""
import warnings

import numpy as np
import pytest
from package import cache, environment, mx, need  # fixtures

CELLS = np.random.default_rng(1).random((24, 40, 44)).astype("f4")


def page_by_page(contiguous):
    def write(tifffile, path):
        with tifffile.TiffWriter(path) as file:
            for plane in CELLS:
                file.write(plane, metadata=None, contiguous=contiguous)
    return write


def at_once(**how):
    return lambda tifffile, path: tifffile.imwrite(path, CELLS, **how)


TIFFS = {"imagej": at_once(imagej=True), "zlib": at_once(compression="zlib"), "shaped": at_once(), "tiles": at_once(tile=(16, 16)),
         "ome": at_once(ome=True, metadata={"axes": "ZYX"}), "plain": at_once(metadata=None), "big": at_once(metadata=None, bigtiff=True),
         "big zlib": at_once(bigtiff=True, compression="zlib"), "motorola": at_once(metadata=None, byteorder=">"),
         "contiguous": page_by_page(True), "pages": page_by_page(False)}


@pytest.mark.parametrize("how", TIFFS)
def test_a_tiff_that_is_cut_short(mx, tmp_path, how):
    """At any length: all cells, or a sentence that names the file."""
    path = tmp_path / "cut.tif"
    TIFFS[how](need("tifffile"), path)
    whole = path.read_bytes()
    assert np.array_equal(mx.open(path)[...], CELLS)
    for share in (0.02, 0.1, 0.3, 0.45, 0.6, 0.7, 0.9, 0.97, 0.995, 0.999):
        path.write_bytes(whole[:int(len(whole) * share)])
        try:
            found = mx.open(path)[...]
        except mx.MemextError as error:
            assert "cut.tif" in str(error), (share, str(error))
        else:
            assert found.shape == CELLS.shape and np.array_equal(found, CELLS), (share, found.shape)


@pytest.mark.parametrize("how, said", [("imagej", b"images=24"), ("ome", b'SizeZ="24"'), ("zlib", b'"shape": [24, 40, 44]')])
def test_a_tiff_that_says_more_images_than_it_has(mx, tmp_path, how, said):
    """The description is of a longer stack, as where pages were taken out of it."""
    path = tmp_path / "fewer.tif"
    TIFFS[how](need("tifffile"), path)
    whole = path.read_bytes()
    assert whole.count(said) >= 1
    path.write_bytes(whole.replace(said, said.replace(b"24", b"36")))
    with pytest.raises(mx.MemextError, match="fewer.tif"):
        mx.open(path)[...]


def test_a_slice_that_is_cut_short_in_its_chain(mx, tmp_path):
    tifffile = need("tifffile")
    for z in range(3):
        tifffile.imwrite(tmp_path / f"{z}.tif", CELLS[z:z + 2], metadata=None)
        whole = (tmp_path / f"{z}.tif").read_bytes()
        (tmp_path / f"{z}.tif").write_bytes(whole[:int(len(whole) * 0.7)])
    with pytest.raises(mx.MemextError, match="cut short"):
        mx.open(tmp_path / "*.tif")[...]


# ------------------------------------------------------------------ virtual datasets of HDF5

def virtual(h5py, folder, boxes, fill=7.0, has=(4, 6, 8)):
    """A dataset of (8, 6, 8) cells, of which each box of planes, rows and columns comes from a file of its own."""
    layout = h5py.VirtualLayout((8, 6, 8), "f4")
    for i, box in enumerate(boxes):
        cells = np.broadcast_to(np.float32(i + 1), (8, 6, 8))[box]
        with h5py.File(folder / f"{i}.h5", "w") as file:
            file["u"] = cells[tuple(slice(0, n) for n in has)] if has is not None else cells
        layout[box] = h5py.VirtualSource(folder / f"{i}.h5", "u", cells.shape)
    with h5py.File(folder / "whole.h5", "w") as file:
        file.create_virtual_dataset("u", layout, fillvalue=fill)
    return folder / "whole.h5"


@pytest.mark.parametrize("boxes, missing", [
    ([np.s_[0:4], np.s_[4:8]], 0), ([np.s_[0:4]], 192), ([np.s_[0:4], np.s_[2:6]], 96), ([np.s_[0:5, 0:3], np.s_[3:8, 0:3], np.s_[:, 3:6]], 0),
    ([np.s_[:, 0:3], np.s_[:, 3:6, 0:4]], 96), ([np.s_[0:8:2]], 192), ([np.s_[0:8:2], np.s_[1:8:2]], 0)], ids=str)
def test_a_virtual_dataset_that_maps_a_part(mx, tmp_path, boxes, missing):
    """As chunks that were never written: a warning with their number, a refusal where the fill value is no number."""
    h5py = need("h5py")
    path = virtual(h5py, tmp_path, boxes, has=None)
    if missing == 96 and boxes[0] == np.s_[0:4]:  # they overlap, and HDF5 leaves the rest as it finds it
        with pytest.raises(mx.MemextError, match="96 of 384 cells have no source and no value"):
            mx.open(path)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cells = mx.open(path)[...]
    said = [str(w.message) for w in caught if "cells have no source" in str(w.message)]
    assert len(said) == (missing > 0) and all(f"{missing} of 384 cells" in text and "7.0" in text for text in said), (said, missing)
    assert (cells == 7).sum() == missing
    path = virtual(h5py, tmp_path, boxes, fill=np.nan, has=None)
    if missing:
        with pytest.raises(mx.MemextError, match=f"{missing} of 384 cells have no source and no value"):
            mx.open(path)
    else:
        assert np.isfinite(mx.open(path)[...]).all()


def test_a_source_that_has_fewer_cells_than_are_mapped(mx, tmp_path):
    h5py = need("h5py")
    path = virtual(h5py, tmp_path, [np.s_[0:4], np.s_[4:8]], has=(3, 6, 8))
    with pytest.raises(mx.MemextError, match=r"whole.h5: u needs 192 cells of .*0.h5:u, but that dataset has the shape \(3, 6, 8\)"):
        mx.open(path)
    with h5py.File(tmp_path / "0.h5", "w") as file:
        file["u"] = np.ones((5, 6, 8), "f4")
    layout = h5py.VirtualLayout((8, 6, 8), "f4")
    layout[0:8] = h5py.VirtualSource(tmp_path / "0.h5", "u", (9, 6, 8))[1:9]
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("u", layout)
    with pytest.raises(mx.MemextError, match=r"u needs \(9, 6, 8\) cells of .*0.h5:u, but that dataset has the shape \(5, 6, 8\)"):
        mx.open(path)


# ------------------------------------------------------------------ a file for each plane

@pytest.mark.parametrize("numbers, missing", [([0, 1, 2, 3], None), ([0, 1, 3, 4], 2), ([2, 4, 8], 6), ([3, 2, 4], None), ([10, 20, 30], None), ([8, 9, 11], 10), ([5], None)])
@pytest.mark.parametrize("digits", [1, 4])
def test_a_number_that_no_slice_has(mx, tmp_path, numbers, missing, digits):
    tifffile = need("tifffile")
    for n in numbers:
        tifffile.imwrite(tmp_path / f"slice-{n:0{digits}}-of-2026.tif", np.full((4, 5), n, "f4"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        array = mx.open(tmp_path / "*.tif")
    assert array[:, 0, 0].tolist() == sorted(numbers)
    said = [str(w.message) for w in caught if "no file has the number" in str(w.message)]
    assert len(said) == (missing is not None), said
    assert missing is None or f"the number {missing}." in said[0] and f"{len(numbers)} files" in said[0]


# ------------------------------------------------------------------ objects of other libraries

NAMED = {"Variable": lambda cells, path: need("xarray").Variable(("x", "y", "z"), cells),
         "DataArray": lambda cells, path: need("xarray").DataArray(cells, dims=("x", "y", "z")),
         "netCDF4": lambda cells, path: netcdf(cells, path), "h5py": lambda cells, path: hdf5(cells, path), "zarr": lambda cells, path: zarr(cells, path)}


def netcdf(cells, path):
    file = need("netCDF4").Dataset(path, "w")
    for name, n in zip("xyz", cells.shape):
        file.createDimension(name, n)
    file.createVariable("u", "f4", tuple("xyz"))[...] = cells
    return file["u"]


def hdf5(cells, path):
    data = need("h5py").File(path, "w").create_dataset("u", data=cells)
    for i, name in enumerate("xyz"):
        data.dims[i].label = name
    return data


def zarr(cells, path):
    array = need("zarr").open(str(path), mode="w", shape=cells.shape, dtype="f4")
    array[...] = cells
    array.attrs["_ARRAY_DIMENSIONS"] = list("xyz")
    return array


@pytest.mark.parametrize("library", NAMED)
def test_an_object_whose_dimensions_have_names_is_turned(mx, tmp_path, library):
    """As a file of it is."""
    cells = CELLS[:4, :5, :6]
    with mx.Run(u=NAMED[library](cells, tmp_path / "file"), backend="dram", dram="64MiB") as run:
        assert np.array_equal(run.advance(0)["u"], cells.transpose(2, 1, 0))


def test_a_store_where_an_array_belongs(mx, tmp_path):
    """Its directory, itself, and in a ramp: the sentence says how to name one of its fields, and that works."""
    with mx.Run(u=CELLS[:4, :5, :6], device=tmp_path, dram="64MiB", dtype="f4", keep=True) as run:
        run.advance(1)
    for value in (str(tmp_path), tmp_path, mx.open(tmp_path)):
        for make in (lambda: mx.Run(u=value, backend="dram"), lambda: mx.ramp("x", 0, 1, where=value), lambda: mx.save(value, tmp_path / "u.npy")):
            with pytest.raises(mx.MemextError, match="has the fields u: give one of them") as caught:
                make()
            way = str(caught.value).rpartition("give one of them, ")[2]
            assert eval(way, {"memext": mx}).shape == (4, 5, 6), way
