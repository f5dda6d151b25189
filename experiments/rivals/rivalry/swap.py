# SPDX-License-Identifier: BSD-3-Clause
"""Virtual memory with swap."""
from rivalry.counting import digest
from rivalry.job import NPY_HEADER_BYTES, flushed
from rivalry.passes import direct
from rivalry.planes import MADV_HUGEPAGE, InFile, Mapped, advise


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
