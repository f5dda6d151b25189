# SPDX-License-Identifier: BSD-3-Clause
"""dask + zarr."""
from rivalry.job import flushed


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
