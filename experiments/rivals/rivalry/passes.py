# SPDX-License-Identifier: BSD-3-Clause
"""The two ways to go over the grid: one step a pass, or several that are fused."""
from rivalry.planes import MADV_PAGEOUT, MADV_WILLNEED, advise


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
