# SPDX-License-Identifier: BSD-3-Clause
"""numpy.memmap."""
from rivalry.job import flushed
from rivalry.passes import direct
from rivalry.planes import MADV_RANDOM, MADV_SEQUENTIAL, Mapped, advise


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
