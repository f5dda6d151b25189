# SPDX-License-Identifier: BSD-3-Clause
"""The row function of a kernel file, in C (rows.c) or compiled by numba."""
import ctypes


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
