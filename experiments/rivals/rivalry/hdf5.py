# SPDX-License-Identifier: BSD-3-Clause
"""Slabs of HDF5 files, by h5py."""
from rivalry.job import NPY_HEADER_BYTES, flushed
from rivalry.planes import InFile, InHdf5


def h5py(job):
    in_file = lambda i: InFile(job.inputs[i], job.shapes[i], job.dtypes[i], NPY_HEADER_BYTES)
    job.new_output()
    work = job.work_arrays(lambda name: InHdf5(job.file(name + ".h5"), job.shape, job.dtype))
    job.run_fused(in_file(0), work, InFile(job.output, job.shape, job.dtype, NPY_HEADER_BYTES), [in_file(i) for i in range(1, len(job.inputs))])
    with job.phase("export_s"):
        flushed(job.output)
