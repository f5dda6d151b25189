# SPDX-License-Identifier: BSD-3-Clause
"""Calls of the row functions of a compiled kernel, over made-up memory."""
import ctypes as c

DTYPES = {0: "f8", 1: "f4", 2: "u1", 3: "u2", 4: "i2", 6: "i1", 7: "i4", 8: "u4", 9: "i8", 10: "u8"}  # by struct mx_cell_field


class Row(c.Structure):
    _fields_ = [("out", c.POINTER(c.c_void_p)), ("in_", c.POINTER(c.c_void_p)), ("fixed", c.POINTER(c.c_void_p)), ("row_pitch", c.c_int64), ("fixed_pitch", c.POINTER(c.c_int64)),
                ("fixed_step", c.c_void_p), ("rows", c.c_int64), ("param", c.POINTER(c.c_double)), *[(n, c.c_int64) for n in ("x0", "x1", "y", "z", "t", "nx", "ny", "nz")],
                ("more", c.c_void_p * 4)]


class Field(c.Structure):
    _fields_ = [("name", c.c_char_p), ("type_name", c.c_char_p), ("type", c.c_uint32), ("bytes", c.c_uint32)]


class Param(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_double)]


class Reduce(c.Structure):
    _fields_ = [("name", c.c_char_p), ("kind", c.c_int64), ("value", c.CFUNCTYPE(None, c.POINTER(Row), c.c_void_p))]


class DeepKernel(c.Structure):
    """struct mx_deep_kernel of cell.h."""
    _fields_ = [("planes", c.c_int64), ("level", c.POINTER(c.CFUNCTYPE(None, c.POINTER(Row))))]


class Kernel(c.Structure):
    """struct mx_kernel of cell.h."""
    _fields_ = [*[(n, c.c_uint32) for n in ("size", "version", "row_size", "field_size", "param_size", "reduce_size")], ("form", c.c_int32), ("real_bytes", c.c_int32),
                ("radius", c.c_int32 * 3), ("fixed_radius", c.c_int32), *[(n, c.c_int32) for n in ("n_state", "n_partner", "n_fixed", "n_param", "n_reduce", "n_levels")],
                ("flags", c.c_uint64), ("name", c.c_char_p), *[(n, c.POINTER(Field)) for n in ("state", "partner", "fixed")], ("param", c.POINTER(Param)),
                ("reduce", c.POINTER(Reduce)), ("level", c.POINTER(c.CFUNCTYPE(None, c.POINTER(Row)))), ("deep", c.POINTER(DeepKernel)), ("more", c.c_void_p * 6)]


class Rows:
    """The row functions of an object, called over made-up memory: what they leave in all of it."""
    CELLS, ROWS, PLANES = 176, 9, 4

    def __init__(self, path):
        self.library = c.CDLL(str(path))
        self.kernel = Kernel.in_dll(self.library, "mx_kernel")
        assert self.kernel.size == c.sizeof(Kernel) and self.kernel.row_size == c.sizeof(Row)

    def memory(self, fields, planes, halo, seed):
        """[field][plane] of bytes, aligned to lines: whole rows of cells that differ, and the pitch of rows."""
        import numpy as np
        rng, cells, rows = np.random.default_rng(seed), self.CELLS + 2 * halo, self.ROWS + 2 * halo
        pitch = (cells * 8 + 63) // 64 * 64
        made = []
        for f in fields:
            for _ in range(planes):
                block = np.zeros(rows * pitch + 64, "u1")
                block = block[-block.ctypes.data % 64:][:rows * pitch]
                dtype = np.dtype(DTYPES[f.type])
                values = rng.uniform(-2, 2, (rows, pitch // dtype.itemsize)) if f.type < 2 else rng.integers(0, 3, (rows, pitch // dtype.itemsize))
                block.reshape(rows, pitch)[:] = values.astype(dtype).view("u1").reshape(rows, -1)[:, :pitch]
                made.append(block)
        return made, pitch

    def call(self, level, seed, rows, x0, x1):
        """All bytes of the array written after calls for PLANES planes, with the functions for several planes if there are some; with `level` None, the values of the reduction."""
        import numpy as np
        k = self.kernel
        h, hc, staggered = k.radius[0], k.fixed_radius, k.form == 2
        of = [k.state[:k.n_state], (k.partner if staggered else k.state)[:k.n_partner if staggered else k.n_state]]
        read = int(staggered) if level is None else level % 2
        inside, pitch = self.memory(of[read], 2 * h + self.PLANES, h, seed)
        fixed, fixed_pitch = self.memory(k.fixed[:k.n_fixed], 2 * hc + self.PLANES, h, seed + 1)
        out, _ = self.memory(of[1 - read], self.PLANES, h, seed + 2)
        deep = 1 if level is None or not k.deep else k.deep.contents.planes

        def pointers(blocks, p, halo, z):
            """Of a call that computes planes z to z + deep - 1."""
            fields = [blocks[at:at + 2 * halo + self.PLANES] for at in range(0, len(blocks), 2 * halo + self.PLANES)]
            at = [b.ctypes.data + h * p for f in fields for b in f[z:z + 2 * halo + deep]]
            return (c.c_void_p * (len(at) + 1))(*at)
        row = Row(row_pitch=pitch,
                  fixed_pitch=(c.c_int64 * (k.n_fixed + 1))(*[fixed_pitch] * k.n_fixed), rows=1 if level is None else rows,
                  param=(c.c_double * (k.n_param + 1))(*[k.param[i].value for i in range(k.n_param)]), x0=h + x0, x1=h + x1, y=seed % 5, t=seed % 4, nx=self.CELLS, ny=40, nz=30)
        call = k.level if deep == 1 else k.deep.contents.level
        for z in range(0, self.PLANES, deep):
            row.out, row.in_, row.fixed, row.z = pointers(out, pitch, 0, z), pointers(inside, pitch, h, z), pointers(fixed, fixed_pitch, hc, z), seed % 3 + z
            if level is not None:
                call[level](c.byref(row))
        if level is None:
            values = np.zeros(self.CELLS)
            k.reduce[0].value(c.byref(row), values.ctypes.data)
            return values.tobytes()
        return b"".join(b.tobytes() for b in out + inside + fixed)
