# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F811 - fixtures of other files
"""Files of two dimensions in Python: what is read, written, linked and drawn of three dimensions is so of two, (ny, nx)."""
import importlib
import json
import xml.etree.ElementTree

import numpy as np
import pytest
from package import cache, environment, mx  # noqa: F401 (fixtures)
from test_python_two_dimensions import NX, NY, begin, cells, heat_kernel, plain


def need(name):
    return pytest.importorskip(name)


def written_hdf5(path, u, **more):
    with need("h5py").File(path, "w") as file:
        file.create_dataset("u", data=u, **more)
        file["line"] = np.arange(3.0)


def written_zarr(path, u, **more):
    need("zarr").open(str(path), mode="w", shape=u.shape, dtype=u.dtype, **more)[...] = u


def written_netcdf(path, u, names=("y", "x"), **more):
    with need("netCDF4").Dataset(path, "w", format=more.pop("format", "NETCDF4")) as file:
        for name, n in zip(names, u.shape):
            file.createDimension(name, n)
        file.createVariable("u", u.dtype, names, **more)[...] = u


WRITERS = {
    "contiguous.h5": written_hdf5, "chunked.h5": lambda p, u: written_hdf5(p, u, chunks=(7, 9), compression="gzip"), "plain.zarr": lambda p, u: written_zarr(p, u, chunks=(8, 13)),
    "contiguous.nc": lambda p, u: written_netcdf(p, u, contiguous=True), "chunked.nc": lambda p, u: written_netcdf(p, u, zlib=True, chunksizes=(5, 11)),
    "classic.nc": lambda p, u: written_netcdf(p, u, format="NETCDF3_64BIT_OFFSET" if u.dtype != "u1" else "NETCDF4"), "page.tif": lambda p, u: need("tifffile").imwrite(p, u), "cells.npy": lambda p, u: np.save(p, u)}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("how", [{}, {"backend": "dram"}, {"plan": "redundant by=1 bz=17 bt=2"}])
@pytest.mark.each_value
def test_fields_in_files(mx, quick_place, tmp_path, name, how):
    """By their path or opened, with their frame and without: the bits of the same arrays in memory."""
    u, k, m = begin(1, "f8", "f4", "u1")
    m %= 100  # 255 has no value in NetCDF
    place = {} if how else {"device": quick_place, "dram": "64MiB"}
    place = {"device": quick_place, "dram": "64MiB", **how} if "plan" in how else {**place, **how}
    for i, cells_of in enumerate((u, k, m)):
        WRITERS[name](tmp_path / f"{i}{name}", cells_of)
    paths = [tmp_path / f"{i}{name}" for i in range(3)]
    with mx.Run(heat_kernel(mx), u=paths[0], k=str(paths[1]), m=paths[2], **place) as run:
        run.advance(4)
        assert run["u"][...].tobytes() == plain(u, k, m, 4).tobytes()
    if name.endswith("tif"):
        return
    opened = [mx.open(p) for p in paths]
    assert [a.shape for a in opened] == [u.shape] * 3 and opened[0][5, 4] == u[5, 4] and np.array_equal(opened[1][3:9:2, ::-1], k[3:9:2, ::-1])
    assert np.array_equal(np.asarray(opened[2]), m) and opened[0].ndim == 2 and "u1" not in repr(opened[0])
    with mx.Run(heat_kernel(mx), u=opened[0], k=opened[1], m=opened[2], **{**place, **({} if "backend" in how else {"resume": False, "force": True})}) as run:
        run.advance(4)
        assert run["u"][...].tobytes() == plain(u, k, m, 4).tobytes()
    WRITERS[name](tmp_path / f"bare-{name}", u[1:-1, 1:-1].copy())
    with mx.Run(heat_kernel(mx), u=mx.open(tmp_path / f"bare-{name}"), k=1.0, m=0, frame="edge", **{**place, **({} if "backend" in how else {"resume": False, "force": True})}) as run:
        run.advance(2)
        assert run["u"][...].tobytes() == plain(np.pad(u[1:-1, 1:-1], 1, mode="edge"), np.ones_like(k), np.zeros_like(m), 2).tobytes()


def test_datasets_steps_and_conventions(mx, quick_place, tmp_path):
    h5py, netcdf = need("h5py"), need("netCDF4")
    u = cells((9, 8))
    with h5py.File(tmp_path / "several.h5", "w") as file:
        file["a/u"], file["w"], file["cube"] = u, 2 * u, np.zeros((3, 4, 5))
    assert mx.open(tmp_path / "several.h5").shape == (3, 4, 5)  # the only one of three dimensions
    assert np.array_equal(mx.open(tmp_path / "several.h5", "a/u")[...], u) and np.array_equal(mx.open(tmp_path / "several.h5", "w")[...], 2 * u)
    kernel = mx.kernel(lambda u: 0.5 * u + 0.5 * u[1, 0], name="shift")
    for path, naming in ((tmp_path / "several.h5", "a/u, w: name one of them"), (tmp_path / "none.h5", "none.h5 has no array of two dimensions: open another")):
        if not path.exists():
            with h5py.File(path, "w") as file:
                file["line"] = np.arange(3.0)
        with pytest.raises(mx.MemextError, match=naming):
            mx.Run(kernel, u=path, device=quick_place)
    with pytest.raises(mx.MemextError, match="u has 2 dimensions: give an array of three"):
        mx.Run(u=mx.open(tmp_path / "several.h5", "w"), device=quick_place)
    with netcdf.Dataset(tmp_path / "steps.nc", "w") as file:
        for name, n in (("time", 3), ("y", 9), ("x", 8)):
            file.createDimension(name, n)
        packed = file.createVariable("p", "i2", ("time", "y", "x"), fill_value=-1)
        packed.scale_factor = 0.5
        packed[...] = np.arange(3 * 9 * 8).reshape(3, 9, 8) * 0.5
        holes = file.createVariable("h", "f4", ("y", "x"), fill_value=9e9)
        holes[:4] = 1.0
        file.createVariable("t", "f8", ("x", "y"))[...] = 1.0
    second = mx.open(tmp_path / "steps.nc", "p[1]")
    assert second.shape == (9, 8) and np.array_equal(second[...], (np.arange(72) + 72).reshape(9, 8) * 0.5)
    with pytest.raises(mx.MemextError, match="40 cells without a value .* from row 4 on"):
        mx.open(tmp_path / "steps.nc", "h")[...]
    with pytest.raises(mx.MemextError, match="has the dimensions x, y, but a grid of two dimensions has y, x: turn it"):
        mx.open(tmp_path / "steps.nc", "t")
    xarray = need("xarray")
    for value in (xarray.DataArray(u, dims=("y", "x")), xarray.DataArray(u), xarray.DataArray(u, dims=("y", "x")).chunk({"y": 4})):
        with mx.Run(kernel, u=value, backend="dram", dram="64MiB") as run:
            run.advance(0)
            assert run["u"][...].tobytes() == u.tobytes()
    with pytest.raises(mx.MemextError, match="u has the dimensions x, y"):
        mx.Run(kernel, u=xarray.DataArray(u, dims=("x", "y")), backend="dram")
    with pytest.raises(mx.MemextError, match="masked"):
        mx.Run(kernel, u=np.ma.masked_array(u, u > 0.4), backend="dram")


@pytest.fixture
def kept(mx, quick_place):
    """A run that has ended, and what it has left, without its frame."""
    u, k, m = begin(1, "f8", "f4", "u1")
    with mx.Run(heat_kernel(mx), u=u, k=k, m=m, device=quick_place / "s.memext", dram="64MiB", keep=True, field_copy=True) as run:
        run.advance(3)
    return quick_place / "s.memext", {"u": plain(u, k, m, 3), "k": k, "m": m}


def test_results_are_written(mx, kept, tmp_path):
    store, whole = mx.open(kept[0]), kept[1]
    for name, want in whole.items():
        for ending in ("npy", "h5", "zarr", "raw"):
            if ending in ("h5", "zarr"):
                need({"h5": "h5py"}.get(ending, ending))
            path = store[name].save(tmp_path / f"{name}.{ending}")
            got = mx.open(path, dtype=want.dtype, shape=want.shape) if ending == "raw" else mx.open(path)
            assert got.shape == want.shape and got[...].tobytes() == want.tobytes(), path
    assert np.load(tmp_path / "u.npy").tobytes() == whole["u"].tobytes()
    need("h5py")
    store["u"].save(tmp_path / "packed.h5", "deep/u", chunks=(6, 11), compression="gzip", shuffle=True)
    assert np.array_equal(mx.open(tmp_path / "packed.h5", "deep/u")[...], whole["u"])
    store.part("u", False).save(tmp_path / "bare.npy")
    assert np.array_equal(np.load(tmp_path / "bare.npy"), whole["u"][1:-1, 1:-1])
    mx.save(whole["u"], tmp_path / "memory.zarr", chunks=(10, 20))
    assert np.array_equal(mx.open(tmp_path / "memory.zarr")[...], whole["u"])
    with pytest.raises(mx.MemextError, match="end it with one of .npy, .h5"):
        store["u"].save(tmp_path / "u.txt")


def test_links_show_the_store(mx, kept, tmp_path):
    h5py = need("h5py")
    store, whole = mx.open(kept[0]), kept[1]
    for frame in (False, True):
        path = store.link(tmp_path / f"link-{frame}.h5", frame=frame)
        with h5py.File(path, "r") as file:
            for name, want in whole.items():
                assert np.array_equal(file[name][...], want if frame else want[1:-1, 1:-1]), (name, frame)
        drawn = xml.etree.ElementTree.parse(path.with_suffix(".xdmf"))
        topology = drawn.find(".//Topology").attrib
        assert topology == {"TopologyType": "2DCORECTMesh", "Dimensions": f"{NY + 2 * frame} {NX + 2 * frame}"}
        assert drawn.find(".//Geometry").attrib["GeometryType"] == "ORIGIN_DXDY" and len(drawn.findall(".//Attribute")) == 3


@pytest.mark.parametrize("ending", ["h5", "zarr"])
def test_pyramids_have_coarse_rows(mx, kept, tmp_path, ending):
    need({"h5": "h5py"}.get(ending, ending))
    store, want = mx.open(kept[0]), kept[1]["u"][1:-1, 1:-1]
    levels = store.pyramid(tmp_path / f"p.{ending}", 2)
    assert [a.shape for a in levels["u"]] == [(NY, NX), (-(-NY // 2), -(-NX // 2)), (-(-NY // 4), -(-NX // 4))]
    padded = np.pad(want, ((0, NY % 2), (0, NX % 2)), mode="edge")
    halved = padded.reshape(padded.shape[0] // 2, 2, padded.shape[1] // 2, 2).mean(axis=(1, 3))
    assert np.allclose(levels["u"][1][...], halved, rtol=1e-14) and np.array_equal(levels["u"][0][...], want)
    if ending == "zarr":
        said = json.loads((tmp_path / "p.zarr/u/.zattrs").read_text())["multiscales"][0]
        assert [a["name"] for a in said["axes"]] == ["y", "x"] and said["datasets"][1]["coordinateTransformations"][0]["scale"] == [4.0, 4.0]
    else:
        assert xml.etree.ElementTree.parse(tmp_path / "p-2x.xdmf").find(".//Topology").attrib["Dimensions"] == f"{-(-NY // 2)} {-(-NX // 2)}"
    again = mx.pyramid(np.arange(12.0).reshape(3, 4), tmp_path / f"q.{ending}", 1)
    assert np.array_equal(next(iter(again.values()))[1][...], [[2.5, 4.5], [8.5, 10.5]])


def test_pictures(mx, kept, tmp_path):
    need("matplotlib")
    store = mx.open(kept[0])
    for what in (store, store["u"], kept[1]["u"], kept[0]):
        path = mx.view(what, tmp_path / "p.png")
        assert path.read_bytes().startswith(b"\x89PNG")
    for shown in (store, store["u"]):
        assert "data:image/png" in shown._repr_html_() and "in this picture" in shown._repr_html_()
    assert importlib.import_module("memext.__main__").main(["view", str(kept[0]), "-o", str(tmp_path / "v.png")]) == 0


def test_damage_is_told_by_row(mx, quick_place):
    u, k, m = begin(1, "f8", "f4", "u1")
    place = quick_place / "d.memext"
    with mx.Run(heat_kernel(mx), u=u, k=k, m=m, device=place, dram="64MiB", integrity=True, keep=True) as run:
        run.advance(3)
    stored = bytearray(place.read_bytes())
    stored[stored.find(plain(u, k, m, 3)[20].tobytes()) + 99] ^= 1
    place.write_bytes(stored)
    field = mx.open(place)["u"]
    with pytest.raises(mx.MemextError, match="u, row 20, differs from what was written"):
        field[...]
    assert field[21, 5] == plain(u, k, m, 3)[21, 5]
