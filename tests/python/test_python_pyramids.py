# SPDX-License-Identifier: BSD-3-Clause
"""Coarse copies, and results in ParaView and napari."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
from package import cache, environment, finished, halved, mx, need, sh, systems  # noqa: F401 (fixtures)


@pytest.mark.parametrize("ending", [".h5", ".zarr"])
def test_pyramids(mx, finished, tmp_path, ending):
    """2, 4 and 8 times smaller: the means, to the bit, of the interior and of what is in a file; whole numbers are rounded once; nothing is written over."""
    need({".h5": "h5py", ".zarr": "zarr"}[ending])
    run, want = finished
    found = run.store.pyramid(tmp_path / f"p{ending}")
    for n in "uv":
        expected = [want[n][1:-1, 1:-1, 1:-1]]
        while len(expected) < 4:
            expected.append(halved(expected[-1]))
        assert [a.shape for a in found[n]] == [(6, 7, 19), (3, 4, 10), (2, 2, 5), (1, 1, 3)]
        assert all(a[...].tobytes() == e.tobytes() for a, e in zip(found[n], expected))
    with pytest.raises(mx.MemextError, match="exists already"):
        mx.pyramid(run.store, tmp_path / f"p{ending}")
    image = np.random.default_rng(3).integers(0, 256, (9, 8, 33)).astype("u1")
    np.save(tmp_path / "image.npy", image)
    levels = mx.pyramid(tmp_path / "image.npy", tmp_path / f"image{ending}", 2)["image"]
    half = halved(image.astype("f4"))
    assert np.array_equal(levels[1], np.rint(half).astype("u1")) and np.array_equal(levels[2], np.rint(halved(half)).astype("u1"))
    with pytest.raises(mx.MemextError, match="end the name with .zarr"):
        run["u"].pyramid(tmp_path / "p.npy")
    if ending == ".zarr":
        of = json.loads((tmp_path / "p.zarr/u/.zattrs").read_text())["multiscales"][0]
        assert [d["path"] for d in of["datasets"]] == ["2x", "4x", "8x"] and of["datasets"][1]["coordinateTransformations"] == [
            {"type": "scale", "scale": [4.0] * 3}, {"type": "translation", "translation": [1.5] * 3}]
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]


OME_ZARR = '''
import json
import sys
import numpy
from ome_zarr.io import parse_url
from ome_zarr.reader import Reader
nodes = list(Reader(parse_url(sys.argv[1], mode="r"))())
assert len(nodes) == 1, nodes
said = nodes[0].metadata
numpy.savez(sys.argv[2], *(numpy.asarray(level) for level in nodes[0].data))
print(json.dumps({"name": said["name"], "axes": [a["name"] for a in said["axes"]], "types": [a["type"] for a in said["axes"]],
                  "transformations": said["coordinateTransformations"]}))
'''


def test_pyramids_in_ome_zarr(finished, tmp_path):
    """ome-zarr-py, by which napari's plugin opens such files, takes a field's group for one image of three levels: axes, places and numbers."""
    need("zarr")
    python = os.environ.get("MEMEXT_OME_ZARR_PYTHON", sys.executable)
    (tmp_path / "read.py").write_text(OME_ZARR)
    if sh(python, "-c", "import ome_zarr.reader").returncode != 0:
        pytest.skip("ome-zarr is not installed: pip install ome-zarr into an environment whose python MEMEXT_OME_ZARR_PYTHON names")
    run, _ = finished
    levels = run.store.pyramid(tmp_path / "p.zarr")
    for n in "uv":
        done = sh(python, tmp_path / "read.py", tmp_path / "p.zarr" / n, tmp_path / f"{n}.npz")
        assert done.returncode == 0, done.stdout + done.stderr
        said = json.loads(done.stdout.splitlines()[-1])
        assert (said["name"], said["axes"], said["types"]) == (n, ["z", "y", "x"], ["space"] * 3)
        with np.load(tmp_path / f"{n}.npz") as found:
            assert len(found.files) == 3
            for k in (1, 2, 3):
                assert np.array_equal(found[f"arr_{k - 1}"], levels[n][k][...])
                assert said["transformations"][k - 1] == [{"type": "scale", "scale": [2.0**k] * 3}, {"type": "translation", "translation": [(2**k - 1) / 2] * 3}]


PARAVIEW = '''
import pathlib
import sys
import numpy
from paraview import servermanager
from paraview.simple import GetActiveViewOrCreate, OpenDataFile, Render, SaveScreenshot, Show, UpdatePipeline
from vtkmodules.util.numpy_support import vtk_to_numpy
out, grids = sys.argv[1], {}
for path in sys.argv[2:]:
    reader, name = OpenDataFile(path), pathlib.Path(path).stem
    UpdatePipeline(proxy=reader)
    grid = servermanager.Fetch(reader)
    while not hasattr(grid, "GetDimensions"):
        grid = grid.GetPiece(0) if hasattr(grid, "GetPiece") else grid.GetBlock(0)
    for i in range(grid.GetPointData().GetNumberOfArrays()):
        array = grid.GetPointData().GetArray(i)
        grids[f"{name}/{array.GetName()}"] = vtk_to_numpy(array).reshape(grid.GetDimensions()[::-1])
    grids[f"{name}/where"] = numpy.array([*grid.GetSpacing(), *grid.GetOrigin()])
numpy.savez(out, **grids)
print("read", flush=True)
view = GetActiveViewOrCreate("RenderView")
view.ViewSize = [320, 240]
shown = Show(reader, view)
shown.SetRepresentationType("Surface")
Render(view)
SaveScreenshot(out + ".png", view)
print("shown", flush=True)
'''


@pytest.fixture
def display():
    """For ParaView and napari, a display that nobody sees. It says its number when it is ready."""
    if os.environ.get("DISPLAY"):
        yield os.environ["DISPLAY"]
        return
    if shutil.which("Xvfb") is None:
        pytest.skip("ParaView and napari draw on a display, and there is none: tests/run.sh --paraview installs packages-paraview.txt, which has xvfb")
    server = subprocess.Popen(["Xvfb", "-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        number = server.stdout.readline().strip()
        if not number:
            pytest.skip("Xvfb cannot be started here")
        yield f":{number}"
    finally:
        server.terminate()
        server.wait()


@pytest.mark.skipif(shutil.which("pvpython") is None, reason="pvpython is not installed: tests/run.sh --paraview installs packages-paraview.txt")
def test_results_in_paraview(mx, finished, display, tmp_path):
    """ParaView, off screen, opens the file that shows the store where it lies and the pyramid: the numbers of h5py, at their places, and a picture."""
    need("h5py")
    run, want = finished
    run.store.link(tmp_path / "u.h5")
    levels = run.store.pyramid(tmp_path / "p.h5")
    (tmp_path / "look.py").write_text(PARAVIEW)
    done = sh("pvpython", "--force-offscreen-rendering", tmp_path / "look.py", tmp_path / "seen",
              *(tmp_path / f"p-{k}x.xdmf" for k in (2, 4, 8)), tmp_path / "u.xdmf", cwd=tmp_path, env={**os.environ, "DISPLAY": display})
    assert "read\n" in done.stdout, done.stdout + done.stderr
    with np.load(tmp_path / "seen.npz") as seen:
        for n in "uv":
            assert np.array_equal(seen[f"u/{n}"], want[n][1:-1, 1:-1, 1:-1])
            for k in (1, 2, 3):
                assert np.array_equal(seen[f"p-{2**k}x/{n}"], levels[n][k]), (n, k)
                assert seen[f"p-{2**k}x/where"].tolist() == [2**k] * 3 + [(2**k - 1) / 2] * 3
    assert "shown\n" in done.stdout, done.stdout + done.stderr
    import matplotlib.image
    picture = matplotlib.image.imread(tmp_path / "seen.png")
    assert picture.shape[:2] == (240, 320) and picture.std() > 0


NAPARI = """
import sys
import napari
import numpy as np
sys.path.append(sys.argv[1])
import memext as mx
store = mx.open(sys.argv[2])
whole = store["u"][1:-1, 1:-1, 1:-1]
levels = mx.pyramid(store, sys.argv[3])["u"]
viewer = napari.Viewer(show=False)
layer = viewer.add_image(levels, multiscale=True, name="u")
assert layer.multiscale and layer.level_shapes.tolist() == [list(level.shape) for level in levels]
for z in range(len(whole)):
    viewer.dims.set_point(0, z)
    assert layer.get_value((z, 2, 3))[1] == np.asarray(levels[layer.data_level])[(z, 2, 3) if layer.data_level == 0 else tuple(i >> layer.data_level for i in (z, 2, 3))]
assert np.array_equal(layer.data[0][3], whole[3])
shot = viewer.screenshot(canvas_only=True, flash=False)
viewer.dims.ndisplay = 3
assert layer.data_level == len(levels) - 1
print("seen", shot.std() > 0)
viewer.close()
"""


@pytest.mark.skipif("MEMEXT_NAPARI_PYTHON" not in os.environ, reason="MEMEXT_NAPARI_PYTHON names no Python that has napari (0.9 GB), PyQt5, cffi and zarr")
def test_pyramids_in_napari(mx, finished, display, tmp_path):
    """napari shows the levels as one image, with the numbers of the store, and takes the coarsest in three dimensions."""
    (tmp_path / "seen.py").write_text(NAPARI)
    run, _want = finished
    done = sh(os.environ["MEMEXT_NAPARI_PYTHON"], tmp_path / "seen.py", pathlib.Path(mx.__file__).parents[1], run.store.path, tmp_path / "p.zarr",
              env={**os.environ, "DISPLAY": display, "QT_QPA_PLATFORM": "xcb", "PYTHONPATH": ""})
    assert done.returncode == 0 and "seen True\n" in done.stdout, done.stdout + done.stderr


def test_coarse_copies_of_the_largest_numbers(mx):
    from itertools import chain
    coarse = mx.coarse
    for kind in ("f4", "f8", "i8", "u8", "i4", "u1"):
        ends = np.finfo(kind) if kind[0] == "f" else np.iinfo(kind)
        for value in (ends.max, ends.min):
            plane = np.full((4, 4), value, kind).astype("f4" if kind == "f4" else "f8")
            half = coarse._pairs(coarse._pairs(plane, 1), 0)
            found = coarse._rounded(half, np.dtype(kind)) if kind[0] in "iu" else half.astype(kind)
            assert set(chain(*found.tolist())) == {np.array(value, kind).item()}, (kind, value)
