# SPDX-License-Identifier: BSD-3-Clause
"""Results of the Python package in files and in place of others, tables and pictures."""
import ast
import math
import os
import re
import subprocess
import threading
import xml.etree.ElementTree

import numpy as np
import pytest
from package import cache, check_array, environment, finished, halved, mx, need, sh, systems  # noqa: F401 (fixtures)


def test_results_in_files(mx, finished, tmp_path):
    """Every format holds what the store holds; an existing file stays unless it is to be replaced."""
    run, want = finished
    for ending in (".npy", ".raw", ".h5", ".zarr"):
        if ending in (".h5", ".zarr"):
            need({".h5": "h5py", ".zarr": "zarr"}[ending])
        path = run["v"].save(tmp_path / f"v{ending}")
        raw = {"dtype": "f8", "shape": run["v"].shape} if ending == ".raw" else {}
        check_array(mx, mx.open(path, **raw), want["v"])
        with pytest.raises(mx.MemextError, match="exists already"):
            run["u"].save(path)
        run["u"].save(path, overwrite=True)
        check_array(mx, mx.open(path, **raw), want["u"])
    with pytest.raises(mx.MemextError, match="end it with one of .npy"):
        run["u"].save(tmp_path / "u.txt")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["v.h5", "v.npy", "v.raw", "v.zarr"]


def test_results_take_the_place_of_nothing_else(mx, finished, tmp_path):
    """overwrite=True replaces one file, not a folder, the store that is read or what a link leads to; nothing else is written over at all."""
    run, _want = finished
    for folder in tmp_path / "thesis.npy", tmp_path / "thesis.zarr":
        folder.mkdir()
        (folder / "chapter").write_text("mine")
        with pytest.raises(mx.MemextError, match="is a directory"):
            run["u"].save(folder, overwrite=True)
        assert (folder / "chapter").read_text() == "mine"
    need("h5py")
    place = run.store["u"].path
    before, mine = place.read_bytes(), tmp_path / "u.xdmf"
    with pytest.raises(mx.MemextError, match="the file that is read"):
        run.store.link(place, overwrite=True)
    (tmp_path / "store.raw").symlink_to(place)
    with pytest.raises(mx.MemextError, match="the file that is read"):
        run["u"].save(tmp_path / "store.raw", overwrite=True)
    mine.write_text("mine")
    for path, match in (tmp_path / "u.h5", "exists already"), (tmp_path / "v.xdmf", r"end the name with \.h5"):
        with pytest.raises(mx.MemextError, match=match):
            run.store.link(path)
    (tmp_path / "u.h5").symlink_to(mine)
    (tmp_path / "u.h5").rename(tmp_path / "link.h5")
    run.store.link(tmp_path / "link.h5", overwrite=True)
    assert place.read_bytes() == before and mine.read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.h5", "link.xdmf", "store.raw", "thesis.npy", "thesis.zarr", "u.xdmf"]


@pytest.mark.parametrize("ending", [".npy", ".h5", ".zarr"])
def test_exports_over_others(mx, tmp_path, monkeypatch, ending):
    """What stands there stays until what replaces it is whole and has its name, also where an interrupt comes between; several threads and what appears
    meanwhile; nothing else is left."""
    if ending != ".npy":
        need({".h5": "h5py", ".zarr": "zarr"}[ending])
    old, new, path = np.zeros((3, 4, 5)), np.ones((30, 40, 50)), tmp_path / f"u{ending}"
    mx.save(old, path)

    def interrupted(*_words):
        raise KeyboardInterrupt
    rename = os.rename
    monkeypatch.setattr(os, "replace", interrupted)
    monkeypatch.setattr(os, "rename", lambda a, b: rename(a, b) if b != path or "-1." in a.name else interrupted())
    monkeypatch.setattr(mx.replacing, "_numbers", iter([0, 1]))
    with pytest.raises(KeyboardInterrupt):
        mx.save(new, path, overwrite=True)
    monkeypatch.undo()
    assert np.array_equal(mx.open(path), old) and [p.name for p in tmp_path.iterdir()] == [path.name]
    threads = [threading.Thread(target=mx.save, args=(new, path), kwargs={"overwrite": True}) for _ in range(5)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert np.array_equal(mx.open(path), new) and [p.name for p in tmp_path.iterdir()] == [path.name]
    late = tmp_path / f"late{ending}"
    monkeypatch.setattr(mx.saving, "sync", lambda _path: late.write_text("mine"))
    with pytest.raises(mx.MemextError, match="exists now"):
        mx.save(new, late)
    assert late.read_text() == "mine" and len(list(tmp_path.iterdir())) == 2
    monkeypatch.undo()
    mx.save(old, late, overwrite=True)
    assert np.array_equal(mx.open(late), old)
    if ending != ".zarr":
        with pytest.raises(mx.MemextError, match="are free there") as caught:
            mx.save(np.broadcast_to(1.0, (1 << 14, 1 << 15, 1 << 15)), tmp_path / f"huge{ending}")
        assert caught.value.errorname == "ENOSPC" and len(list(tmp_path.iterdir())) == 2


def test_arrays_of_no_cells_and_of_no_numbers(mx, tmp_path):
    for shape in (0, 3, 4), (3, 0, 4), (3, 4, 0):
        for ending in (".npy", ".raw", ".h5", ".zarr"):
            if ending in (".h5", ".zarr"):
                need({".h5": "h5py", ".zarr": "zarr"}[ending])
            path = mx.save(np.zeros(shape), tmp_path / f"none{ending}", overwrite=True)
            raw = {"dtype": "f8", "shape": shape} if ending == ".raw" else {}
            assert mx.open(path, **raw)[...].shape == shape
            mx.open(path, **raw)._repr_html_()
    for cells in np.array([[[{}]]]), np.zeros((1, 1, 1), "S3"), np.zeros((1, 1, 1), "M8[s]"), np.zeros((1, 1, 1), [("a", "f4")]):
        for ending in (".npy", ".raw", ".h5", ".zarr"):
            with pytest.raises(mx.MemextError, match="numbers"):
                mx.save(cells, tmp_path / f"odd{ending}")
    need("matplotlib")
    most = np.finfo(float).max
    for cells in (np.zeros((3, 4, 5)) > 1, np.full((3, 4, 5), most), np.full((3, 4, 5), np.nan), 1e300 + 1e285 * np.arange(60).reshape(3, 4, 5)):
        assert mx.view(cells, tmp_path / "a.png").stat().st_size > 5000
    for cells in np.zeros((0, 4, 5)), np.zeros((3, 4, 5), "c8"):
        with pytest.raises(mx.MemextError, match="real numbers"):
            mx.view(cells, tmp_path / "b.png")
    truth = np.random.default_rng(17).random((5, 6, 7)) > 0.5
    for ending in ".h5", ".zarr":
        levels = mx.pyramid(truth, tmp_path / f"truth{ending}")["array"]
        assert np.array_equal(levels[1], np.rint(halved(truth.astype("f4"))).astype("u1"))


def test_results_where_they_lie(mx, finished, tmp_path):
    """The linked HDF5 file is small and shows the fields, without padding, with or without the frame, to h5py and to HDF5's own tools."""
    h5py = need("h5py")
    run, want = finished
    for frame in (False, True):
        path = run.store.link(tmp_path / "link.h5", frame=frame, overwrite=True)
        assert path.stat().st_size < 20000
        with h5py.File(path) as file:
            for n in "uv":
                assert np.array_equal(file[n][:], want[n] if frame else want[n][1:-1, 1:-1, 1:-1]) and file[n].attrs["step"] == 3
    text = (tmp_path / "link.xdmf").read_text()
    assert "link.h5:/u" in text and 'Dimensions="8 9 21"' in text


@pytest.mark.parametrize("ending", [".npy", ".h5", ".zarr"])
def test_what_killed_saves_leave(mx, tmp_path, ending):
    """The next save of the same file removes it; what living processes write, what was moved away, and other files stay."""
    need({".npy": "numpy", ".h5": "h5py", ".zarr": "zarr"}[ending])
    path = tmp_path / f"u{ending}"
    dead = subprocess.Popen(["true"])
    dead.wait()
    beside = mx.replacing.name_beside(path).name
    own, other = re.sub(rf"-{os.getpid()}-\d+", f"-{dead.pid}-7", beside), re.sub(r"memext-[0-9a-f]+", "memext-00000000", beside)
    names = [own, beside, other, own.replace("memext-", "memext-former-"), own.replace(".u.", ".v."), own + "x"]
    for name in names:
        (tmp_path / name).mkdir() if ending == ".zarr" else (tmp_path / name).write_text("left")
    assert own != beside and len(set(names)) == 6
    for _ in range(2):
        mx.save(np.ones((3, 4, 5)), path, overwrite=True)
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*names[1:], path.name])


def test_xdmf_files(mx, finished, tmp_path):
    """Beside links and pyramids: well-formed XML whatever the file is called, with a time, which is the step (pyvista asks for one), and items that
    name data of their type and shape. pyvista reads them, where it is there (MEMEXT_PYVISTA_PYTHON)."""
    h5py = need("h5py")
    run, want = finished
    run.store.link(tmp_path / "a & <b>.h5")
    run.store.pyramid(tmp_path / "p.h5", 1)
    for dtype in "u1", "i1", "u2", "i8", "f4":
        mx.pyramid(np.ones((4, 5, 6), dtype), tmp_path / f"{dtype}.h5", 1)
    names = {"u1": ("UChar", 1), "i1": ("Char", 1), "u2": ("UInt", 2), "i8": ("Int", 8), "f4": ("Float", 4), "f8": ("Float", 8)}
    drawn = sorted(tmp_path.glob("*.xdmf"))
    assert len(drawn) == 7
    for path in drawn:
        grid = xml.etree.ElementTree.parse(path).getroot().find("Domain/Grid")
        assert float(grid.find("Time").get("Value")) == (run.time if path.name[0] in "ap" else 0)
        for item in grid.findall("Attribute/DataItem"):
            file, dataset = item.text.split(":/")
            with h5py.File(path.parent / file) as whole:
                cells = whole[dataset]
                assert (item.get("NumberType"), int(item.get("Precision"))) == names[cells.dtype.str[1:]]
                assert tuple(map(int, item.get("Dimensions").split())) == cells.shape
    python = os.environ.get("MEMEXT_PYVISTA_PYTHON")
    if not python:
        pytest.skip("pyvista is not there: pip install pyvista into an environment whose python MEMEXT_PYVISTA_PYTHON names")
    done = sh(python, "-c", "import sys, pyvista\nfor path in sys.argv[1:]:\n    m = pyvista.read(path); print(m.dimensions, m.array_names, float(m['u'].sum()))",
              tmp_path / "a & <b>.xdmf", tmp_path / "p-2x.xdmf")
    u = [want["u"][1:-1, 1:-1, 1:-1], np.asarray(mx.open(tmp_path / "p.h5", "u/2x"))]
    read = [ast.literal_eval(f"[{line.replace(') [', '), [').replace('] ', '], ')}]") for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(read) == 2, done.stdout + done.stderr
    for (shape, fields, total), cells in zip(read, u):
        assert shape == cells.shape[::-1] and fields == ["u", "v"] and math.isclose(total, cells.sum(), rel_tol=1e-6)


def test_a_store_that_went_on_is_not_read_by_mistake(mx, systems, quick_place):
    u = np.ones((6, 6, 6))
    with mx.Run(systems.gray_scott, u=u, v=u, device=quick_place, dram="64MiB") as run:
        run.advance(1)
        old = run["u"]
        assert old[2, 2, 2] != 1
        run.advance(2)
        with pytest.raises(mx.MemextError, match="has changed since it was opened") as caught:
            old[0]
        assert caught.value.errorname == "ESTALE"
        store = mx.open(quick_place)
        assert store.step == 2 and store.fields == ["u", "v"] and store.frame == 1 and "u" in store and len(store) == 2
        with pytest.raises(KeyError, match="it has u, v"):
            store["w"]


def test_tables(mx, finished, quick_place):
    need("pandas")
    run, _ = finished
    row = run.report.frame()
    assert len(row) == 1 and row["plan.bt"][0] == run.report["plan"]["bt"]
    samples, events = mx.timeline(quick_place / "timeline.jsonl")
    assert len(samples) >= 1 and {"advance", "load", "store"} <= set(events["what"]) and (events["end_s"] >= events["begin_s"]).all()


def test_pictures(mx, environment, build, finished, quick_place, tmp_path):
    """Notebooks get a plan and three slices; the command writes a PNG."""
    plt = need("matplotlib.pyplot")
    run, want = finished
    text = run._repr_html_()
    assert text.count("data:image/png;base64,") == 3 and "plan" in text and f"{want['u'][:, 4].max():.3g}"[:3] in text + "0.9"
    done = sh(environment, "-m", "memext", "view", quick_place, "--dataset", "v", "-o", tmp_path / "u.png")
    assert done.returncode == 0, done.stderr
    assert plt.imread(tmp_path / "u.png").shape[:2] == (400, 1600)
    path = f"{environment.parent}:{os.environ['PATH']}"
    done = sh(build / "memext", "view", quick_place, "--dataset", "u", "-o", tmp_path / "u2.png", env={**os.environ, "PATH": path})
    assert done.returncode == 0 and (tmp_path / "u2.png").stat().st_size > 1000, done.stderr
    absent = sh(build / "memext", "view", quick_place, env={**os.environ, "PATH": "/nonexistent"})
    assert absent.returncode == 2 and "Python package" in absent.stderr
    with mx.Run(u="random", shape=(6, 7, 8), device=tmp_path, snapshot=f"2:{tmp_path / 'snaps'}", dram="64MiB") as other:
        other.advance(5)
        (newest,) = mx.looking.newest_snapshot(tmp_path / "snaps").arrays
        assert newest.name == "u-000004.npy" and newest.shape == (6, 7, 8)
    done = sh(environment, "-m", "memext", "view", tmp_path / "snaps", "-o", tmp_path / "snaps.png")
    assert done.returncode == 0 and plt.imread(tmp_path / "snaps.png").shape[:2] == (400, 1600), done.stderr
    (tmp_path / "snaps.png").unlink()
    (tmp_path / "own").mkdir()
    (tmp_path / "own/snaps.png").write_bytes(b"the user's own")
    refused = sh(environment, "-m", "memext", "view", tmp_path / "snaps", cwd=tmp_path / "own")
    assert refused.returncode == 2 and "snaps.png exists" in refused.stderr and (tmp_path / "own/snaps.png").read_bytes() == b"the user's own"
    (tmp_path / "own/snaps.png").unlink()
    for _ in range(2):  # its own picture is drawn anew
        assert sh(environment, "-m", "memext", "view", tmp_path / "snaps", cwd=tmp_path / "own").returncode == 0
    assert [p.name for p in (tmp_path / "own").iterdir()] == ["snaps.png"]
    refused = sh(environment, "-m", "memext", "view", tmp_path)
    assert refused.returncode == 2 and "store" in refused.stderr and "Traceback" not in refused.stderr
