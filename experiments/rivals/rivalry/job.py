# SPDX-License-Identifier: BSD-3-Clause
"""One run: its files, kernel, settings and phases."""
import contextlib
import os
import time

from rivalry.kernel import Kernel, NumbaKernel
from rivalry.passes import fused

NPY_HEADER_BYTES = 128


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
