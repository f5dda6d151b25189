# SPDX-License-Identifier: BSD-3-Clause
"""Random kernels in C: forms, fields, radii, types, conditions, tables, early returns, loops, reductions; and calls of their row functions."""
import ctypes as c
import random

REALS = ("float", "double")
WHOLE = ("uint8_t", "uint16_t", "int16_t", "int8_t", "int32_t", "uint32_t", "int64_t", "uint64_t")
DTYPES = {0: "f8", 1: "f4", 2: "u1", 3: "u2", 4: "i2", 6: "i1", 7: "i4", 8: "u4", 9: "i8", 10: "u8"}  # by struct mx_cell_field


class Cell:
    """Draws the body of one cell, of fields that it reads and writes."""

    def __init__(self, r, reads, writes, fixed, radius, fixed_radius, old):
        self.r, self.reads, self.writes, self.fixed, self.radius, self.fixed_radius, self.old = r, reads, writes, fixed, radius, fixed_radius, old
        self.names = []

    def at(self):
        if self.fixed and self.r.random() < 0.25:
            return f"AT({self.r.choice(self.fixed)}, {', '.join(str(self.r.randint(-self.fixed_radius, self.fixed_radius)) for _ in range(3))})"
        d = [0, 0, 0]
        for i in self.r.sample(range(3), self.r.choice((1, 1, 1, 2, 3))):
            d[i] = self.r.randint(-self.radius, self.radius)
        return f"AT({self.r.choice(self.reads)}, {', '.join(map(str, d))})"

    def leaf(self):
        k = self.r.random()
        if k < 0.6:
            return self.at()
        if k < 0.7 and self.old:
            return f"OLD({self.r.choice(self.writes)})"
        if k < 0.8 and self.names:
            return self.r.choice(self.names)
        return self.r.choice(["PARAM(a)", "PARAM(b)", "0.5", "0.25f", "2", "(double)(X % 5)", "(double)(Y & 3)", "(float)(Z - T)", "table[(Y + 2 * X) & 7]", "(X < NX / 2)"])

    def value(self, deep):
        if deep == 0:
            return self.leaf()
        v = self.value
        return self.r.choice([lambda: f"({v(deep - 1)} + {v(deep - 1)})", lambda: f"({v(deep - 1)} - {v(deep - 1)})", lambda: f"({v(deep - 1)} * {v(deep - 1)})",
                              lambda: f"({v(deep - 1)} / (2 + fabs({v(deep - 1)})))", lambda: f"({v(0)} < {v(0)} ? {v(deep - 1)} : {v(deep - 1)})",
                              lambda: f"sqrt(fabs({v(deep - 1)}))", lambda: f"({v(deep - 1)} + ({v(deep - 1)} + {v(deep - 1)}))"])()

    def lines(self):
        out = []
        for i in range(self.r.randint(0, 3)):
            out.append(f"const {self.r.choice(REALS)} w{i} = {self.value(2)};")
            self.names.append(f"w{i}")
        if self.r.random() < 0.2:
            out.append(f"double sum = 0; for (int d = -{self.radius}; d <= {self.radius}; d++) sum += AT({self.r.choice(self.reads)}, 0, d, 0);")
            self.names.append("sum")
        for name in self.writes:
            if self.r.random() < 0.15:
                out.append(f"if ({self.value(1)} > {self.value(0)}) return;")
            if self.r.random() < 0.9:
                out.append(f"{'if ((X + Y) % 3 == 0) ' if self.r.random() < 0.1 else ''}SET({name}, {self.value(3)});")
        return "\n    ".join(out)


def text(seed):
    r = random.Random(seed)
    form, radius = r.choice(("MX_JACOBI", "MX_LEAPFROG", "MX_STAGGERED")), r.choice((1, 1, 2, 4, 8))
    fixed_radius = r.randint(0, min(radius, 2))
    state = [(f"u{i}", r.choice(REALS * 6 + WHOLE)) for i in range(r.randint(1, 3))]
    partner = [(f"p{i}", r.choice(REALS * 6 + WHOLE)) for i in range(r.randint(1, 3))] if form == "MX_STAGGERED" else []
    fixed = [(f"k{i}", r.choice(REALS * 2 + WHOLE)) for i in range(r.randint(0, 2))]
    head = [f'#define MX_NAME "random"\n#define MX_RADIUS {radius}\n#define MX_FORM {form}\n#define MX_REAL {r.choice(REALS)}\n#define MX_PARAMS(P) P(a, 0.75) P(b, -0.3)']
    for macro, fields in (("MX_STATE", state), ("MX_PARTNER", partner), ("MX_FIXED", fixed)):
        if fields:
            head.append(f"#define {macro}(F) {' '.join(f'F({n}, {t})' for n, t in fields)}")
    head.append(f"#define MX_FIXED_RADIUS {fixed_radius}\n#define MX_REDUCES(R) R(total, MX_SUM)\n#include <memext/cell.h>\nstatic const double table[8] = {{1, -0.5, 0.25, 2, 0.125, -1, 0.5, 3}};")
    names = [n for n, _ in state], [n for n, _ in partner], [n for n, _ in fixed]
    stages = 2 + seed % 3 if form == "MX_JACOBI" and seed % 2 else 0
    if stages:
        head.insert(0, f"#define MX_STAGES {stages}")
    cells = [(f"MX_CELL_{i + 1}", names[0], names[0]) for i in range(stages)] if stages else [("MX_CELL", names[0], names[0])] if not partner else [("MX_CELL_B", names[0], names[1]), ("MX_CELL_A", names[1], names[0])]
    for macro, reads, writes in cells:
        head.append(f"{macro}\n    {Cell(r, reads, writes, names[2], radius, fixed_radius, form != 'MX_JACOBI').lines()}\nMX_END")
    last = Cell(r, cells[-1][1], [], names[2], radius, fixed_radius, False)
    head.append(f"MX_REDUCE(total)\n    RESULT({last.value(2)});\nMX_END\n")
    return "\n".join(head)


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


class Kernel(c.Structure):
    """struct mx_kernel of cell.h."""
    _fields_ = [*[(n, c.c_uint32) for n in ("size", "version", "row_size", "field_size", "param_size", "reduce_size")], ("form", c.c_int32), ("real_bytes", c.c_int32),
                ("radius", c.c_int32 * 3), ("fixed_radius", c.c_int32), *[(n, c.c_int32) for n in ("n_state", "n_partner", "n_fixed", "n_param", "n_reduce", "n_levels")],
                ("flags", c.c_uint64), ("name", c.c_char_p), *[(n, c.POINTER(Field)) for n in ("state", "partner", "fixed")], ("param", c.POINTER(Param)),
                ("reduce", c.POINTER(Reduce)), ("level", c.POINTER(c.CFUNCTYPE(None, c.POINTER(Row)))), ("more", c.c_void_p * 7)]


class Rows:
    """The row functions of an object, called over made-up memory: what they leave in all of it."""
    CELLS, ROWS = 112, 9

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
        """All bytes of the array written after a call; with `level` None, the values of the reduction."""
        import numpy as np
        k = self.kernel
        h, hc, staggered = k.radius[0], k.fixed_radius, k.form == 2
        of = [k.state[:k.n_state], (k.partner if staggered else k.state)[:k.n_partner if staggered else k.n_state]]
        read = int(staggered) if level is None else level % 2
        inside, pitch = self.memory(of[read], 2 * h + 1, h, seed)
        fixed, fixed_pitch = self.memory(k.fixed[:k.n_fixed], 2 * hc + 1, h, seed + 1)
        out, _ = self.memory(of[1 - read], 1, h, seed + 2)
        def pointers(blocks, p):
            return (c.c_void_p * (len(blocks) + 1))(*[b.ctypes.data + h * p for b in blocks])
        row = Row(out=pointers(out, pitch), in_=pointers(inside, pitch), fixed=pointers(fixed, fixed_pitch), row_pitch=pitch,
                  fixed_pitch=(c.c_int64 * (k.n_fixed + 1))(*[fixed_pitch] * k.n_fixed), rows=1 if level is None else rows,
                  param=(c.c_double * (k.n_param + 1))(*[k.param[i].value for i in range(k.n_param)]), x0=h + x0, x1=h + x1, y=seed % 5, z=seed % 3, t=seed % 4, nx=self.CELLS, ny=40, nz=30)
        if level is None:
            values = np.zeros(self.CELLS)
            k.reduce[0].value(c.byref(row), values.ctypes.data)
            return values.tobytes()
        k.level[level](c.byref(row))
        return b"".join(b.tobytes() for b in out + inside + fixed)
