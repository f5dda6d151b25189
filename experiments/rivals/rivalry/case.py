# SPDX-License-Identifier: BSD-3-Clause
"""A case: its kernel, its library, its input files and the hashes of its results."""
import os

import numpy as np

from rivalry.counting import digest
from rivalry.kernel import Kernel
from rivalry.programs import command
from rivalry.table import CASES, HERE, MIB, ROOT

COMPILE = ["-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fopenmp", "-std=gnu17"]


class Case:
    """A kernel, its library, its input files and the hashes of its results."""

    def __init__(self, o, name, place):
        self.o, self.name, self.place, self.kernel = o, name, place, CASES[name]
        self.library = os.path.join(place, f"{name}.so")
        include = [f"-I{os.path.join(ROOT, 'runtime', 'include')}", f'-DKERNEL="{self.kernel}"']
        command(["cc", *COMPILE, "-shared", "-fPIC", *include, os.path.join(HERE, "rows.c"), "-lm", "-o", self.library])
        k = Kernel(self.library)
        self.h, self.leapfrog, self.n_fixed = k.h, bool(k.leapfrog), k.n_fixed
        self.include = include
        self.dtypes = [np.dtype(f"f{k.cell_bytes}")] + [np.dtype(f"f{k.fixed_bytes}") for _ in range(k.n_fixed)]
        self.shape = tuple(o.shape)
        self.plane_bytes = self.shape[1] * self.shape[2] * self.dtypes[0].itemsize
        self.fields = 2 + self.n_fixed  # arrays that a step goes through
        self.data_bytes = self.fields * self.plane_bytes * self.shape[0]
        self.cells = int(np.prod([n - 2 * self.h for n in self.shape]))
        self.inputs = [os.path.join(place, f"{name}-{i}.npy") for i in range(1 + self.n_fixed)]

    def make_inputs(self):
        """Where something is to be run: a table that is complete needs none."""
        for i, path in enumerate(self.inputs):
            if not os.path.exists(path):
                self.make(i, path)

    def make(self, i, path):
        nz, ny, nx = self.shape
        y, x = np.arange(ny)[:, None], np.arange(nx)[None, :]
        inner = np.minimum(np.minimum(y, ny - 1 - y), np.minimum(x, nx - 1 - x))
        with open(path, "wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": self.dtypes[i].str, "fortran_order": False, "shape": self.shape})
            for z in range(nz):
                depth = np.minimum(inner, min(z, nz - 1 - z))
                plane = [lambda: (z * 7 + y * 13 + x * 29) % 101 * 0.01, lambda: 1500 + (z * 3 + y * 5 + x * 7) % 97 * 30.0,
                         lambda: 0.1 * np.maximum(0, 12 - depth) / 12][i]()  # fmt: skip
                np.ascontiguousarray(plane, self.dtypes[i]).tofile(file)
            file.flush()
            os.fsync(file.fileno())

    def hash_of(self, path):
        """Of the cells of a result, which must have the right shape."""
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            shape, fortran, dtype = (np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0)(file)
            if (tuple(shape), fortran, dtype) != (self.shape, False, self.dtypes[0]):
                return f"a file of {shape} {dtype}"
            return digest(iter(lambda: file.read(4 * MIB), b""))
