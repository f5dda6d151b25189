# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in chunks, and memory: what is decoded, held and refused."""
import functools
import math
import os
import signal
import threading

import numpy as np
import pytest
from package import cache, environment, mx, need, sh, systems  # noqa: F401 (fixtures)


def test_large_planes_are_written_in_rows(mx, tmp_path, monkeypatch):
    """What is in hand at a time does not grow with the planes; every chunk is written by one thread, and all cells arrive."""
    from memext import pieces
    from memext.formats import zarrs
    monkeypatch.setattr(zarrs, "GROUP_BYTES", 6000)
    want = np.random.default_rng(8).random((7, 30, 41)).astype("f4")
    mx.save(want, tmp_path / "a.npy")
    array = mx.open(tmp_path / "a.npy")
    for chunks in ((1, 1), (3, 4), (7, 30), (2, 16)):
        boxes = pieces.boxes(array, chunks, 6000)
        seen = np.zeros(want.shape, "u1")
        for box in boxes:
            seen[box] += 1
            assert box[0].start % chunks[0] == 0 and box[1].start % chunks[1] == 0
            assert want[box].nbytes <= max(6000, chunks[0] * chunks[1] * 41 * 4), (chunks, box)
        assert (seen == 1).all()
    assert np.array_equal(array, want)
    for ending, name, chunks in ((".h5", "h5py", (3, 4, 10)), (".zarr", "zarr", (3, 4, 10)), (".zarr", "zarr", (2, 30, 41))):
        need(name)
        path = array.save(tmp_path / f"{chunks[0]}{ending}", "field", chunks=chunks)
        assert np.array_equal(mx.open(path, "field"), want)


@pytest.mark.parametrize("planes, most", [(1, 16), (2, 16), (8, 16), (32, 32)])
def test_what_a_zarr_holds_under_way_is_bounded(mx, tmp_path, monkeypatch, planes, most):
    """Cells that a library decodes, in chunks from an eighth of a group's bytes to four times as many: read and not yet written are two groups at most, or
    one chunk's planes where these are more. Here a thread writes only when it is waited for, as slowly as it can be."""
    from memext.formats import zarrs
    need("zarr")
    want = np.random.default_rng(8).random((64, 4, 8))
    held, peak = [0], [0]
    monkeypatch.setattr(zarrs, "GROUP_BYTES", 8 * want[0].nbytes)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(8)))

    class Chunks:
        shape, dtype, chunks = want.shape, want.dtype, (planes, 4, 8)

        def __getitem__(self, key):
            held[0] += want[key].shape[0]
            peak[0] = max(peak[0], held[0])
            return want[key].copy()

    class Later:
        def __init__(self, work):
            self.work = work

        def result(self):
            self.work()
            held[0] -= self.work.args[1].shape[0]

    class Threads:
        def __init__(self, _count):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_error):
            pass

        def submit(self, *words):
            return Later(functools.partial(*words))

        def map(self, *words):
            return map(*words)

    monkeypatch.setattr(zarrs, "ThreadPoolExecutor", Threads)
    mx.save(Chunks(), tmp_path / "a.zarr", chunks=(planes, 4, 8))
    assert held == [0] and max(4, planes) <= peak[0] <= most, peak
    assert np.array_equal(mx.open(tmp_path / "a.zarr"), want)


def test_chunks_larger_than_the_dram_are_refused(mx, quick_place, tmp_path):
    """A chunk is decoded as a whole: the DRAM would not be kept."""
    h5py = need("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        data = file.create_dataset("u", shape=(130, 256, 256), dtype="f8", chunks=(130, 256, 256))
        data[0] = 1.0
    with pytest.raises(mx.MemextError, match=r"chunks of 65.00 MiB.*64.00 MiB of DRAM"), mx.Run(u=tmp_path / "a.h5", device=quick_place, dram="64MiB") as run:
        run.advance(0)


def test_fields_from_chunked_files(mx, systems, quick_place, tmp_path):
    """A run whose fields come from HDF5 chunks and a TIFF stack, plane by plane: the bits of a run from memory; the sources are as they were."""
    h5py, tifffile = need("h5py"), need("tifffile")
    u, k = np.random.default_rng(1).random((8, 9, 10)), np.random.default_rng(2).random((8, 9, 10)).astype("f4")
    with h5py.File(tmp_path / "u.h5", "w") as file:
        file.create_dataset("u", data=u, chunks=True, compression="gzip")
    tifffile.imwrite(tmp_path / "k.tif", k)
    before = [(tmp_path / n).read_bytes() for n in ("u.h5", "k.tif")]
    with mx.Run(systems.diffusion, u=tmp_path / "u.h5", k=mx.open(tmp_path / "k.tif"), device=quick_place, dram="64MiB") as run:
        run.advance(3)
        assert run["u"][...].tobytes() == systems.diffusion.reference(3, u=u, k=k)["u"].tobytes()
    assert before == [(tmp_path / n).read_bytes() for n in ("u.h5", "k.tif")]


def test_chunks_are_decoded_once_and_ahead(mx):
    """Planes in order: every group once, the next one begun while one is used if both have room; an error comes with its planes; given up in between."""
    want = np.random.default_rng(3).random((10, 4, 4))

    class Chunks:
        shape, dtype, chunks = want.shape, want.dtype, (4, 2, 4)

        def __init__(self, broken=None):
            self.asked, self.broken = [], broken

        def __getitem__(self, key):
            self.asked.append((key[0].start, key[0].stop))
            if key[0].start == self.broken:
                raise OSError("a chunk is damaged")
            return want[key]

    source = Chunks()
    array = mx.arrays.ObjectArray(source)
    array.group_bytes = 2 * 4 * want[0].nbytes
    assert np.array_equal(array.plane(1), want[1])
    array._next[1].result(600)
    assert source.asked == [(0, 4), (4, 8)]
    assert np.array_equal(np.stack([array.plane(z) for z in range(10)]), want) and source.asked == [(0, 4), (4, 8), (8, 10)]
    array.plane(0)
    array.release()
    assert array._held is None and array._next is None and np.array_equal(array.plane(7), want[7])
    source = Chunks()
    array = mx.arrays.ObjectArray(source)
    array.group_bytes = 2 * 4 * want[0].nbytes - 1
    array.plane(1)
    assert array._next is None and source.asked == [(0, 4)]
    array = mx.arrays.ObjectArray(Chunks(broken=4))
    assert np.array_equal(array.plane(3), want[3])
    with pytest.raises(OSError, match="damaged"):
        array.plane(4)


def test_a_child_of_fork_does_not_wait_for_what_its_parent_decodes(mx):
    """Planes are being decoded ahead while the process forks: the child decodes them itself, and gives an array up."""
    want = np.random.default_rng(3).random((8, 4, 4))
    parent, begun, go_on = os.getpid(), threading.Event(), threading.Event()

    class Chunks:
        shape, dtype, chunks = want.shape, want.dtype, (4, 2, 4)

        def __getitem__(self, key):
            if key[0].start == 4 and os.getpid() == parent:
                begun.set()
                assert go_on.wait(600)
            return want[key]

    array = mx.arrays.ObjectArray(Chunks())
    try:
        assert np.array_equal(array.plane(0), want[0]) and begun.wait(600)
        for what in (lambda: np.array_equal(array.plane(5), want[5])), (lambda: array.release() is None and array._next is None):
            child = os.fork()
            if child == 0:
                try:
                    signal.signal(signal.SIGALRM, signal.SIG_DFL)
                    signal.alarm(600)
                    os._exit(0 if what() else 1)
                finally:
                    os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        go_on.set()
    assert np.array_equal(array.plane(5), want[5])


IN_AND_OUT = '''
import gc, hashlib, importlib.util, pathlib, sys
import numpy as np
import memext as mx
folder, n = pathlib.Path(sys.argv[1]), 320  # 125 MiB of cells
BUDGET = 48 << 20
def status(key):
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith(key))
def digest(path):
    h = hashlib.sha256()
    for p in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if p.is_file():
            with open(p, "rb") as file:
                while piece := file.read(1 << 20):
                    h.update(piece)
    return h.hexdigest()
def planes():
    for z in range(n):
        yield np.full((n, n), z, "f4") + np.arange(n, dtype="f4") / 512
def npy(path):
    out = np.lib.format.open_memmap(path, "w+", "f4", (n, n, n))
    for z, plane in enumerate(planes()): out[z] = plane
def h5(path):
    import h5py
    with h5py.File(path, "w") as file:
        data = file.create_dataset("u", (n, n, n), "f4", chunks=(16, 160, 160), compression="gzip", compression_opts=1)
        for z in range(0, n, 16): data[z:z + 16] = np.stack([np.full((n, n), i, "f4") + np.arange(n, dtype="f4") / 512 for i in range(z, z + 16)])
def nc(path):
    import netCDF4
    with netCDF4.Dataset(path, "w") as file:
        for name in "zyx": file.createDimension(name, n)
        data = file.createVariable("u", "f4", ("z", "y", "x"), chunksizes=(4, 160, 160))
        for z, plane in enumerate(planes()): data[z] = plane
def zarr(path):
    import zarr
    data = zarr.open(str(path), mode="w", shape=(n, n, n), dtype="f4", chunks=(16, 160, 160))
    for z in range(0, n, 16): data[z:z + 16] = np.stack([np.full((n, n), i, "f4") + np.arange(n, dtype="f4") / 512 for i in range(z, z + 16)])
def tif(path):
    import tifffile
    with tifffile.TiffWriter(path) as file:
        for plane in planes(): file.write(plane, contiguous=True)
def sgy(path):
    import segyio
    spec = segyio.spec()
    spec.ilines, spec.xlines, spec.samples, spec.sorting, spec.format = range(n), range(n), range(n), 2, 5
    with segyio.create(str(path), spec) as file:
        for z, plane in enumerate(planes()):
            for y in range(n):
                file.header[z * n + y] = {segyio.TraceField.INLINE_3D: z, segyio.TraceField.CROSSLINE_3D: y}
                file.trace[z * n + y] = plane[y]
for ending, write, module in (("npy", npy, "numpy"), ("h5", h5, "h5py"), ("nc", nc, "netCDF4"), ("zarr", zarr, "zarr"), ("tif", tif, "tifffile"),
                              ("sgy", sgy, "segyio")):
    if importlib.util.find_spec(module) is None:
        print(ending, "without")
        continue
    path = folder / f"source.{ending}"
    write(path)
    before = digest(path)
    def measured(call):
        gc.collect()
        open("/proc/self/clear_refs", "w").write("5")
        rss = status("VmRSS")
        call()
        return (status("VmHWM") - rss) / BUDGET
    mx.open(path)[0, 0, 0]  # what libraries load when they are first used
    with mx.Run(u=path, dtype="f4", device=folder / "store", dram=BUDGET) as run:
        shares = [measured(lambda: run.advance(0))]
        assert run["u"][n - 1, 5, 256] == n - 1 + 0.5 and run["u"][3, 7, 0] == 3
        if ending in ("npy", "h5", "zarr"):
            out = folder / f"result.{ending}"
            out_options = {} if ending == "npy" else {"chunks": (16, 160, 160)}
            small = mx.save(np.zeros((2, 2, 2), "f4"), folder / f"small.{ending}")
            mx.pyramid(small, folder / f"small-coarse.{ending if ending != 'npy' else 'h5'}", overwrite=True)
            shares.append(measured(lambda: run["u"].save(out, **out_options)))
            shares.append(measured(lambda: mx.pyramid(run.store, folder / f"coarse.{ending if ending != 'npy' else 'h5'}", 3, overwrite=True)))
            assert mx.open(out)[n - 1, 5, 256] == n - 1 + 0.5
    print(ending, "same" if digest(path) == before else "CHANGED", *(f"{s:.2f}" for s in shares), flush=True)
'''


def test_files_in_and_out_within_the_budget(mx, environment, place, tmp_path):
    """125 MiB in and out of every format, 48 MiB of DRAM for each: the resident set grows by less, whatever chunks there are, and the sources are as they were."""
    need("h5py")
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("this kernel keeps no peak that can be reset: /proc/self/clear_refs")
    (tmp_path / "in_and_out.py").write_text(IN_AND_OUT)
    (place / "store").mkdir()
    done = sh(environment, tmp_path / "in_and_out.py", place)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert lines["npy"].startswith("same") and lines["h5"].startswith("same"), done.stdout
    for found in lines.values():
        if found != "without":
            what, *shares = found.split()
            assert what == "same" and all(0 <= float(s) < 1 for s in shares), done.stdout


def test_what_does_not_fit_into_dram_is_refused(mx, tmp_path, monkeypatch):
    """4 TiB that take no space: slices are read, all of it is refused with the sizes."""
    with open(tmp_path / "large.raw", "wb") as file:
        file.truncate(1 << 42)
    array = mx.open(tmp_path / "large.raw", dtype="f4", shape=(1 << 14, 1 << 13, 1 << 13))
    assert array[9000, 5, 7:9].tolist() == [0, 0]
    with pytest.raises(MemoryError, match="4.00 TiB.*DRAM") as caught:
        np.asarray(array)
    assert isinstance(caught.value, mx.MemextError)


@pytest.mark.parametrize("shape", [(130, 130, 130), (1, 129, 5), (9, 257, 128), (700, 3, 2)])
def test_chunks_of_results_are_full(mx, tmp_path, shape):
    """Whatever the extents, a file of HDF5 has hardly more bytes than its cells; chunks are no larger than 1 MiB."""
    need("h5py")
    path = mx.save(np.ones(shape, "f4"), tmp_path / "u.h5")
    cells = 4 * math.prod(shape)
    assert cells < path.stat().st_size < 1.1 * cells + 20_000
    chunks = mx.pieces.chunks_of(mx.arrays.Array(shape, "f4"))
    assert 4 * math.prod(chunks) <= 1 << 20 and all(c <= max(n, 1) for c, n in zip(chunks, shape))


@pytest.mark.parametrize("how", [{"backend": "mmap"}, {"backend": "dram"}, {"plan": "redundant by=10 bz=10 bt=2"}, {"plan": "stream by=10 bt=2"}, {"no_fuse": True},
                                 {"plan": "redundant by=10 bz=10 bt=2", "commit_every": 5}, {"plan": "redundant by=10 bz=10 bt=2", "integrity": True}])
def test_a_chunk_of_dask_is_computed_twice_at_most(mx, systems, quick_place, how):
    """For its identity and for its cells, however many Buffers begin with them; what is read back is as predicted, and the bits are those of an array in
    memory. So with two arrays of a leapfrog kernel."""
    da = need("dask.array")
    cells, calls = np.random.default_rng(1).random((20, 42, 44)).astype("f4"), []

    def counted(block):
        calls.append(block.shape)
        return block * 1

    def lazy():
        calls.clear()
        return da.from_array(cells, chunks=(7, 42, 44)).map_blocks(counted, dtype="f4", meta=np.empty((0, 0, 0), "f4"))
    for kernel, fields, times in ((None, {"u": lazy}, 2), (systems.wave, {"p": lazy, "p_old": lambda: cells, "v": lambda: 0.5, "damping": lambda: 0.25}, 2)):
        found = []
        for value in (lambda: cells, lazy):
            made = {n: value() if v is lazy else v() for n, v in fields.items()}
            place = {} if how.get("backend") == "dram" else {"device": quick_place, "resume": False, "force": True}
            with mx.Run(kernel, **made, dtype="f4", dram="64MiB", **place, **how) as run:
                run.advance(4)
                found.append(run[next(iter(fields))][...].tobytes())
                init = run.report["phases"]["init"]
                assert init["read_bytes"] == init["predicted_read_bytes"] and init["write_bytes"] == init["predicted_write_bytes"], init
        assert found[0] == found[1] and 0 < len(calls) <= 3 * times, (kernel, len(calls))
