# SPDX-License-Identifier: BSD-3-Clause
"""One run of one rival, in a process of its own: `worker.py JSON`, see `Job`. Prints one line of JSON.

Each computes `steps` steps of a problem whose fields lie in .npy files and leaves the result as another .npy file, flushed to disk. Where a
way of storing the grid allows it, the first pass reads the file that was given and the last one writes the file that is wanted, so that import
and export cost nothing but what they have to. Time runs from before the input is opened until the output is on disk; starting Python,
importing libraries and compiling do not count.
"""
import contextlib
import ctypes
import hashlib
import json
import os
import resource
import subprocess
import sys
import time

PAGE = 4096
NPY_HEADER_BYTES = 128


# ------------------------------------------------------------------ what a process has moved

def counters(place):
    """Bytes that this process, its threads and the children that have ended moved; swap of the machine; the device of `place`."""
    with open("/proc/self/io") as file:
        own = dict(line.split(": ") for line in file.read().splitlines())
    with open("/proc/vmstat") as file:
        pages = dict(line.split() for line in file.read().splitlines())
    found = {"read_bytes": int(own["read_bytes"]), "write_bytes": int(own["write_bytes"]) - int(own["cancelled_write_bytes"]),
             "swapped_in_bytes": int(pages["pswpin"]) * PAGE, "swapped_out_bytes": int(pages["pswpout"]) * PAGE}  # fmt: skip
    number = os.stat(place).st_dev
    with contextlib.suppress(OSError), open(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat") as file:
        sectors = file.read().split()
        found |= {"device_read_bytes": int(sectors[2]) * 512, "device_write_bytes": int(sectors[6]) * 512}
    return found


def digest(cells):
    """Of the bytes of an array or a file's blocks: by it results are compared."""
    found = hashlib.blake2b(digest_size=12)
    for piece in cells:
        found.update(piece)
    return found.hexdigest()


def peak_rss_bytes():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


# ------------------------------------------------------------------ the kernel

class Kernel:
    """The row function of the kernel file (rows.c), over arrays of numpy."""

    def __init__(self, library):
        self.lib = ctypes.CDLL(library)
        facts = (ctypes.c_int64 * 5)()
        self.lib.rival_facts(facts)
        self.h, self.leapfrog, self.cell_bytes, self.n_fixed, self.fixed_bytes = facts
        self.lib.rival_level.restype = self.lib.rival_frame.restype = None

    def level(self, out, src, fixed, z0, z1, box=None, threads=1):
        """Planes z0 .. z1-1 of `out`, or of them the part box = (y0, y1, x0, x1)."""
        nz, ny, nx = src.shape
        y0, y1, x0, x1 = box or (self.h, ny - self.h, self.h, nx - self.h)
        c = (ctypes.c_void_p * max(1, len(fixed)))(*(f.ctypes.data for f in fixed))
        self.lib.rival_level(ctypes.c_void_p(out.ctypes.data), ctypes.c_void_p(src.ctypes.data), c, (ctypes.c_int64 * 3)(nx, ny, nz),
                             (ctypes.c_int64 * 6)(x0, x1, y0, y1, z0, z1), ctypes.c_int64(threads))  # fmt: skip

    def frame(self, out, src, z0, z1, before, behind):
        nz, ny, nx = src.shape
        self.lib.rival_frame(ctypes.c_void_p(out.ctypes.data), ctypes.c_void_p(src.ctypes.data), (ctypes.c_int64 * 3)(nx, ny, nz),
                             *(ctypes.c_int64(v) for v in (z0, z1, before, behind)))  # fmt: skip

    def warm_up(self):
        pass


class NumbaKernel(Kernel):
    """The same operations in the same order, compiled by numba. Without fastmath it neither contracts nor reorders, so the bits are the same."""

    def __init__(self, library, threads):
        super().__init__(library)
        import numba
        import numba_kernels

        numba.set_num_threads(threads)
        self.compiled = numba_kernels.wave if self.leapfrog else numba_kernels.star7

    def level(self, out, src, fixed, z0, z1, box=None, threads=1):
        self.compiled(out, src, *fixed, z0, z1)

    def warm_up(self):
        import numpy as np

        side = 2 * self.h + 1
        a, b = (np.zeros((side,) * 3, f"f{self.cell_bytes}") for _ in range(2))
        c = [np.zeros((side,) * 3, f"f{self.fixed_bytes}") for _ in range(self.n_fixed)]
        self.level(b, a, c, self.h, self.h + 1)
        for x in (a, *c):
            x.flags.writeable = False  # a type of its own: what is mapped to be read only
        self.level(b, a, c, self.h, self.h + 1)


# ------------------------------------------------------------------ places where planes are

class Mapped:
    """Planes of an array in memory or mapped there."""

    def __init__(self, array):
        self.array, self.plane_bytes = array, array[0].nbytes

    def read(self, lo, hi, out):
        out[:] = self.array[lo:hi]

    def write(self, lo, data):
        self.array[lo:lo + len(data)] = data

    def will_need(self, lo, hi):
        advise(self.array, lo, hi, MADV_WILLNEED)

    def done_with(self, lo, hi):
        advise(self.array, lo, hi, MADV_PAGEOUT)


class InFile:
    """Planes of a file, read and written by system calls."""

    def __init__(self, path, shape, dtype, offset=0):
        self.fd, self.offset = os.open(path, os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY), offset
        self.plane_bytes = shape[1] * shape[2] * dtype.itemsize

    def read(self, lo, hi, out):
        view, at = memoryview(out).cast("B"), self.offset + lo * self.plane_bytes
        while view:
            got = os.preadv(self.fd, [view], at)
            if got == 0:
                raise OSError("the file ends too early")
            view, at = view[got:], at + got

    def write(self, lo, data):
        view, at = memoryview(data).cast("B"), self.offset + lo * self.plane_bytes
        while view:
            done = os.pwritev(self.fd, [view], at)
            view, at = view[done:], at + done

    def will_need(self, lo, hi):
        os.posix_fadvise(self.fd, self.offset + lo * self.plane_bytes, (hi - lo) * self.plane_bytes, os.POSIX_FADV_WILLNEED)

    def done_with(self, lo, hi):
        at, length = self.offset + lo * self.plane_bytes, (hi - lo) * self.plane_bytes
        write_back(self.fd, at, length)
        os.posix_fadvise(self.fd, at, length, os.POSIX_FADV_DONTNEED)


class InHdf5(InFile):
    """Planes of a contiguous dataset: h5py moves them, advice goes to the file below."""

    def __init__(self, path, shape, dtype):
        import h5py

        self.file = h5py.File(path, "w")
        self.data = self.file.create_dataset("u", shape, dtype)
        self.data[0, 0, 0] = 0  # space is given at the first write
        self.file.flush()
        super().__init__(path, shape, dtype, self.data.id.get_offset())

    def read(self, lo, hi, out):
        self.data.read_direct(out, source_sel=slice_of(lo, hi))

    def write(self, lo, data):
        self.data.write_direct(data, dest_sel=slice_of(lo, lo + len(data)))


def slice_of(lo, hi):
    return (slice(lo, hi), slice(None), slice(None))


MADV_WILLNEED, MADV_HUGEPAGE, MADV_PAGEOUT, MADV_SEQUENTIAL, MADV_RANDOM = 3, 14, 21, 2, 1
libc = ctypes.CDLL(None, use_errno=True)
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.sync_file_range.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]


def advise(array, lo, hi, advice):
    """For the whole pages of planes lo .. hi-1. Advice may be refused; it changes no bits."""
    begin = -(-(array.ctypes.data + lo * array[0].nbytes) // PAGE) * PAGE
    end = (array.ctypes.data + hi * array[0].nbytes) // PAGE * PAGE
    if end > begin:
        libc.madvise(begin, end - begin, advice)


def write_back(fd, at, length):
    """Begins to write what is dirty there, and waits for what was begun before: pages can go then."""
    WAIT_BEFORE, WRITE = 1, 2
    libc.sync_file_range(fd, at, length, WAIT_BEFORE | WRITE)


# ------------------------------------------------------------------ the two ways to go over the grid

def direct(kernel, first, work, last, fixed, o, steps, after=lambda step, now: None):
    """A step a pass over arrays that are memory (or mapped): each cell is read and written where it is. `last` (or None) takes the last step.
    Returns the array with the result. after: is called with the steps done and the state. Settings: slab (planes of a call), alternate (every other
    pass goes back), ahead, behind."""
    h, nz = kernel.h, first.shape[0]
    cur, old, fresh = first, first, {id(a) for a in (*work, last) if a is not first}
    for t in range(steps):
        dst = last if last is not None and t == steps - 1 else work[t % 2]
        slabs = [(z, min(z + o["slab"], nz - h)) for z in range(h, nz - h, o["slab"])]
        for z0, z1 in reversed(slabs) if o.get("alternate") and t % 2 else slabs:
            lo, hi = 0 if z0 == h else z0, nz if z1 == nz - h else z1
            if o.get("ahead"):
                for a in (cur, dst, *fixed):
                    advise(a, z1 + h, min(nz, z1 + h + o["slab"]), MADV_WILLNEED)
            if id(dst) in fresh and kernel.leapfrog:
                dst[lo:hi] = old[lo:hi]
            elif id(dst) in fresh:
                kernel.frame(dst, cur, lo, hi, h, h)
            kernel.level(dst, cur, fixed, z0, z1, threads=o["threads"])
            if o.get("behind"):  # planes that this pass does not need again go now, and not when there is no page left
                for a in (cur, dst, *fixed):
                    advise(a, max(0, z0 - h - o["slab"]), z0 - h, MADV_PAGEOUT)
        fresh.discard(id(dst))
        cur, old = dst, cur
        after(t + 1, cur)
    return cur


def fused_bytes(planes_bytes, fields, h, k, slab, keep):
    """Memory of fused(): planes of all fields (arrays of state and of C) with their halo, and what is kept for the next slab."""
    state = 2 if fields > 2 else 1
    return planes_bytes * ((fields) * (slab + 2 * k * h) + keep * (fields - 2 + state) * 2 * k * h)


def fused(kernel, first, work, last, fixed, shape, dtypes, o, steps):
    """k steps a pass: a slab is read with k halos on either side and advanced k steps, in each of which the part that is right becomes
    smaller. first, last: places to read from and to write to; work: two lists of places; of the state one array, or with leapfrog two (now,
    before). Settings: k, slab, keep (the overlap of slabs stays in memory instead of being read again), ahead, behind."""
    import numpy as np

    h, (nz, ny, nx), slab = kernel.h, shape, o["slab"]
    state, deepest = 2 if kernel.leapfrog else 1, min(o["k"], steps)
    most = min(nz, slab + 2 * deepest * h)
    a, b = (np.empty((most, ny, nx), dtypes[0]) for _ in range(2))
    c = [np.empty((most, ny, nx), d) for d in dtypes[1:]]
    loaded = ([a, b] if state == 2 else [a]) + c
    kept = [np.empty((min(nz, 2 * deepest * h), ny, nx), x.dtype) for x in loaded] if o.get("keep") else []
    source, target, done = [first] * state, 0, 0
    while done < steps:
        k = min(o["k"], steps - done)
        final = done + k == steps
        sinks = [last] if final else work[target]
        held = 0, 0  # planes that `kept` has
        for z0 in range(h, nz - h, slab):
            z1 = min(z0 + slab, nz - h)
            lo, hi = max(0, z0 - k * h), min(nz, z1 + k * h)
            m, have = hi - lo, max(0, held[1] - lo) if held[0] <= lo else 0
            for i, (x, place) in enumerate(zip(loaded, [*source, *fixed])):
                if have:
                    x[:have] = kept[i][lo - held[0]:lo - held[0] + have]
                if have < m:  # of a last slab all may have been kept
                    place.read(lo + have, hi, x[have:m])
                if o.get("ahead"):
                    place.will_need(hi, min(nz, hi + slab))
            if kept:
                begin = max(0, min(nz, z1 - k * h) if z1 < nz - h else nz)
                held = begin, hi
                for keep, x in zip(kept, loaded):
                    keep[:hi - begin] = x[begin - lo:m]
            if state == 1:
                kernel.frame(b[:m], a[:m], 0, m, h if lo == 0 else 0, h if hi == nz else 0)
            x, y = a[:m], b[:m]
            for s in range(1, k + 1):
                kernel.level(y, x, [f[:m] for f in c], h if lo == 0 else s * h, m - (h if hi == nz else s * h), threads=o["threads"])
                x, y = y, x
            first_plane, behind = 0 if z0 == h else z0, nz if z1 == nz - h else z1
            for sink, data in zip(sinks, (x, y)):
                sink.write(first_plane, data[first_plane - lo:behind - lo])
                if o.get("behind"):
                    sink.done_with(first_plane, behind)
        source, target, done = sinks, 1 - target, done + k


# ------------------------------------------------------------------ rivals

class Job:
    """{rival, library, inputs: [.npy of the state, then of C], output: .npy, work: folder, steps, threads, settings: {...},
    marks: [steps after which the plain loop's state is hashed]}"""

    def __init__(self, words):
        self.__dict__.update(words)
        self.o = {"threads": self.threads, **self.settings}
        self.phases = {"import_s": 0.0, "export_s": 0.0}
        self.marks = words.get("marks", [])

    def load(self):
        """What only some rivals need is imported by them."""
        import numpy as np

        self.np = np
        numba = "numba" in self.rival
        self.kernel = NumbaKernel(self.library, self.threads) if numba else Kernel(self.library)
        self.kernel.warm_up()
        self.shapes, self.dtypes = zip(*(header(np, path) for path in self.inputs))
        self.shape, self.dtype = self.shapes[0], self.dtypes[0]

    def input(self, i=0):
        return self.np.load(self.inputs[i], mmap_mode="r")

    def fixed_inputs(self):
        return [self.input(i) for i in range(1, len(self.inputs))]

    def new_output(self):
        """An empty .npy file of the right size."""
        with open(self.output, "wb") as file:
            self.np.lib.format.write_array_header_1_0(file, {"descr": self.dtype.str, "fortran_order": False, "shape": self.shape})
            if file.tell() != NPY_HEADER_BYTES:
                raise OSError("numpy wrote a header of another length")
            file.truncate(NPY_HEADER_BYTES + self.grid_bytes())

    def grid_bytes(self):
        return self.shape[0] * self.shape[1] * self.shape[2] * self.dtype.itemsize

    def output_map(self):
        self.new_output()
        return self.np.load(self.output, mmap_mode="r+")

    def file(self, name):
        return os.path.join(self.work, name)

    @contextlib.contextmanager
    def phase(self, name):
        begin = time.monotonic()
        yield
        self.phases[name] += time.monotonic() - begin

    def work_arrays(self, make):
        """Two lists of places for fused()."""
        per = 2 if self.kernel.leapfrog else 1
        return [[make(f"work-{i}-{j}") for j in range(per)] for i in range(2)]

    def run_fused(self, first, work, last, fixed):
        fused(self.kernel, first, work, last, fixed, self.shape, self.dtypes, self.o, self.steps)


def header(np, path):
    a = np.load(path, mmap_mode="r")
    if not a.flags.c_contiguous or a.offset != NPY_HEADER_BYTES:
        raise OSError(f"{path} is no file of this experiment")
    return a.shape, a.dtype


def flushed(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def anonymous(job, shape, dtype):
    """Memory of its own mapping."""
    import mmap

    np = job.np
    size = int(np.prod(shape)) * dtype.itemsize
    a = np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), dtype).reshape(shape)
    if job.o.get("huge"):
        advise(a, 0, shape[0], MADV_HUGEPAGE)
    return a


def swap(job):
    """Everything in anonymous memory. Also what the plain program in enough DRAM is."""
    work = [anonymous(job, job.shape, job.dtype) for _ in range(2)]
    fixed = [anonymous(job, s, d) for s, d in zip(job.shapes[1:], job.dtypes[1:])]
    with job.phase("import_s"):
        for i, a in enumerate((work[0], *fixed)):
            place = InFile(job.inputs[i], a.shape, a.dtype, NPY_HEADER_BYTES)
            for z in range(a.shape[0]):
                place.read(z, z + 1, a[z:z + 1])
    if job.o.get("k", 1) == 1:
        hashes = {}

        def after(step, now):
            if step in job.marks:
                hashes[str(step)] = digest(now)

        result = direct(job.kernel, work[0], [work[1], work[0]], None, fixed, job.o, job.steps, after)
        with job.phase("export_s"):
            job.new_output()
            out = InFile(job.output, job.shape, job.dtype, NPY_HEADER_BYTES)
            for z in range(job.shape[0]):
                out.write(z, result[z:z + 1])
            flushed(job.output)
        return {"hashes": hashes} if hashes else {}
    again = [work[0], work[1]]
    if job.kernel.leapfrog:
        again = [work[0], anonymous(job, job.shape, job.dtype), work[1], anonymous(job, job.shape, job.dtype)]
    half = len(again) // 2
    job.new_output()
    places = [Mapped(a) for a in again]
    job.run_fused(places[0], [places[half:], places[:half]], InFile(job.output, job.shape, job.dtype, NPY_HEADER_BYTES), [Mapped(f) for f in fixed])
    flushed(job.output)
    return {}


def memmap(job):
    np = job.np
    first, fixed, last = job.input(), job.fixed_inputs(), job.output_map()
    new = lambda name: np.memmap(job.file(name), job.dtype, "w+", shape=job.shape)
    advice = {"sequential": MADV_SEQUENTIAL, "random": MADV_RANDOM, "normal": 0}[job.o.get("advice", "normal")]
    if job.o.get("k", 1) == 1:
        work = [new("work-0"), new("work-1")]
        for a in (first, *fixed, *work, last):
            advise(a, 0, len(a), advice)
        arrays = {id(a): np.asarray(a) for a in (first, *fixed, *work, last)}  # plain arrays: slices of them cost less
        plain = lambda a: arrays[id(a)]
        direct(job.kernel, plain(first), [plain(w) for w in work], plain(last), [plain(f) for f in fixed], job.o, job.steps)
    else:
        work = job.work_arrays(lambda name: Mapped(new(name)))
        job.run_fused(Mapped(first), work, Mapped(last), [Mapped(f) for f in fixed])
    with job.phase("export_s"):
        last.flush()
        flushed(job.output)


def h5py(job):
    in_file = lambda i: InFile(job.inputs[i], job.shapes[i], job.dtypes[i], NPY_HEADER_BYTES)
    job.new_output()
    work = job.work_arrays(lambda name: InHdf5(job.file(name + ".h5"), job.shape, job.dtype))
    job.run_fused(in_file(0), work, InFile(job.output, job.shape, job.dtype, NPY_HEADER_BYTES), [in_file(i) for i in range(1, len(job.inputs))])
    with job.phase("export_s"):
        flushed(job.output)


def advance_block(kernel, block, before, fixed, edges, k):
    """k steps of one block with its halo, by one thread. before: the step before, or None; edges: for each axis whether its low and its high
    side are the grid's. The block now and before (or None)."""
    x, h = block, kernel.h
    y = before if before is not None else block.copy()
    for s in range(1, k + 1):
        box = [(h if low else s * h, n - (h if high else s * h)) for n, (low, high) in zip(x.shape, edges)]
        kernel.level(y, x, fixed, *box[0], (*box[1], *box[2]))
        x, y = y, x
    return x, y


def dask(job):
    """dask + zarr. Settings: k, block (planes of a chunk of dask), chunk (planes of one of zarr), overlap (map_overlap; else each task reads its
    block with the halo itself)."""
    import dask
    import dask.array as da
    import zarr

    np, kernel, o, nz = job.np, job.kernel, job.o, job.shape[0]
    zarr.config.set({"array.write_empty_chunks": True})
    many = kernel.leapfrog
    full = ((2,) if many else ()) + job.shape
    chunks = ((2,) if many else ()) + (o["chunk"], *job.shape[1:])
    stores = [zarr.create_array(job.file(f"work-{i}.zarr"), shape=full, chunks=chunks, dtype=job.dtype, compressors=None) for i in range(2)]
    first, fixed, last = job.input(), job.fixed_inputs(), job.output_map()

    def now_and_before(u):
        """Of what was read: arrays that may be changed."""
        return (np.array(u[0], order="C"), np.array(u[1], order="C")) if u.ndim == 4 else (np.array(u, order="C"), np.array(u, order="C") if many else None)

    def sides(low, high):
        return [(low, high), (True, True), (True, True)]

    def joined(x, y, final):
        return x if final or not many else np.stack([x, y])

    def overlapped(u, *c, block_info=None, k=1, final=False):
        at, count = block_info[0]["chunk-location"][-3], block_info[0]["num-chunks"][-3]
        x, y = advance_block(kernel, *now_and_before(u), [np.ascontiguousarray(f) for f in c], sides(at == 0, at == count - 1), k)
        return joined(x, y, final)

    def own(block_info=None, source=None, k=1, final=False):
        lo, hi = block_info[None]["array-location"][-3]
        begin, end = max(0, lo - k * kernel.h), min(nz, hi + k * kernel.h)
        u = source[..., begin:end, :, :]
        x, y = advance_block(kernel, *now_and_before(u), [np.ascontiguousarray(f[begin:end]) for f in fixed], sides(begin == 0, end == nz), k)
        return joined(x[lo - begin:hi - begin], y[lo - begin:hi - begin] if many else None, final)

    blocks = (o["block"], *job.shape[1:])
    source = first
    with dask.config.set(scheduler="threads", num_workers=job.threads):
        done = 0
        while done < job.steps:
            k = min(o["k"], job.steps - done)
            final, target = done + k == job.steps, stores[done // o["k"] % 2]
            if o["overlap"]:
                u = da.from_array(source, chunks=blocks if source.ndim == 3 else (2, *blocks), name=f"state-{done}")
                c = [da.from_array(f, chunks=blocks, name=f"fixed-{i}") for i, f in enumerate(fixed)]
                if many and source.ndim == 3:
                    u = da.stack([u, u]).rechunk((2, *blocks))
                depth = lambda ndim: {ndim - 3: k * kernel.h}
                every = [u, *c]
                more = {"drop_axis": 0} if many and final else {}
                r = da.map_overlap(overlapped, *every, depth=[depth(x.ndim) for x in every], boundary="none", dtype=job.dtype, meta=np.empty((0,) * (3 if final else u.ndim), job.dtype),
                                   k=k, final=final, allow_rechunk=False, align_arrays=False, trim=False, token=f"pass-{done}", **more)  # fmt: skip
                r = da.overlap.trim_internal(r, depth(r.ndim), boundary={i: "none" for i in range(r.ndim)})
            else:
                shape = job.shape if final or not many else full
                r = da.map_blocks(own, chunks=da.core.normalize_chunks(blocks if len(shape) == 3 else (2, *blocks), shape), dtype=job.dtype,
                                  meta=np.empty((0,) * len(shape), job.dtype), source=source, k=k, final=final, token=f"pass-{done}")  # fmt: skip
            da.store(r, last if final else target, lock=False)
            source, done = target, done + k
    with job.phase("export_s"):
        last.flush()
        flushed(job.output)


def program(job):
    """A command that does it all: memext, or the program that uses UMap. `command` is it; what it says on stdout is its report."""
    done = subprocess.run(job.command, env={**os.environ, **job.o.get("environment", {})}, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise OSError(f"{os.path.basename(job.command[0])} ended with exit status {done.returncode}")
    flushed(job.output)
    most = {"peak_rss_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024}
    return {**most, "report": json.loads(done.stdout)} if done.stdout.strip() else most


RIVALS = {"memory": swap, "swap": swap, "memmap": memmap, "memmap-numba": memmap, "h5py": h5py, "dask": dask, "umap": program, "memext": program}
NEEDS = {"memmap-numba": ["numba"], "h5py": ["h5py"], "dask": ["dask.array", "zarr"]}


def probe():
    """{rival: "" or why it cannot be run}, of those that are Python; and the versions."""
    import importlib

    said, versions = {}, {"python": sys.version.split()[0]}
    for rival in RIVALS:
        said[rival] = ""
        for name in ["numpy", *NEEDS.get(rival, [])]:
            try:
                importlib.import_module(name)
                package = name.split(".")[0]
                versions[package] = getattr(sys.modules[package], "__version__", "?")
            except Exception as error:  # noqa: BLE001 - of whatever kind: it is said
                said[rival] = f"{name} cannot be imported: {error}"
    if said["dask"] == "" and not hasattr(sys.modules["zarr"], "create_array"):
        said["dask"] = f"zarr {versions['zarr']} is of before version 3"
    return {"rivals": said, "versions": versions}


def main(words):
    if words == ["--probe"]:
        return probe()
    job = Job(json.loads(words[0]))
    if job.rival not in ("memext", "umap"):
        job.load()
        for name in NEEDS.get(job.rival, []):
            __import__(name)
    if job.steps == 0:  # what the process takes before it has seen any data
        return {"base_bytes": peak_rss_bytes()}
    before, begin = counters(job.work), time.monotonic()
    said = RIVALS[job.rival](job) or {}
    seconds, after = time.monotonic() - begin, counters(job.work)
    return {"seconds": seconds, **job.phases, **{name: after[name] - before[name] for name in after}, "peak_rss_bytes": peak_rss_bytes(), **said}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])), flush=True)
