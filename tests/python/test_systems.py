# SPDX-License-Identifier: BSD-3-Clause
"""The example systems: each kernel's row function, level by level over a whole grid, gives the bits of its reference in numpy."""
import ctypes as c
import importlib.util
import pathlib
import re

import numpy as np
import pytest

SYSTEMS = pathlib.Path(__file__).resolve().parents[2] / "systems"
TYPES = ["f8", "f4", "u1", "u2", "i2", None, "i1", "i4", "u4", "i8", "u8"]  # by struct mx_cell_field of cell.h
JACOBI, LEAPFROG, STAGGERED = range(3)


class Row(c.Structure):  # struct mx_row
    _fields_ = ([("out", c.c_void_p), ("in_", c.c_void_p), ("fixed", c.c_void_p), ("row_pitch", c.c_int64), ("fixed_pitch", c.c_void_p),
                ("fixed_step", c.c_void_p), ("rows", c.c_int64), ("param", c.c_void_p)]
                + [(name, c.c_int64) for name in "x0 x1 y z t nx ny nz".split()] + [("more", c.c_void_p * 4)])


class Field(c.Structure):
    _fields_ = [("name", c.c_char_p), ("type_name", c.c_char_p), ("type", c.c_uint32), ("bytes", c.c_uint32)]


class Param(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_double)]


class Description(c.Structure):  # struct mx_kernel
    _fields_ = ([(name, c.c_uint32) for name in "size version row_size field_size param_size reduce_size".split()]
                + [("form", c.c_int32), ("real_bytes", c.c_int32), ("radius", c.c_int32 * 3)]
                + [(name, c.c_int32) for name in "fixed_radius n_state n_partner n_fixed n_param n_reduce n_levels".split()]
                + [("flags", c.c_uint64), ("name", c.c_char_p), ("state", c.POINTER(Field)), ("partner", c.POINTER(Field)), ("fixed", c.POINTER(Field)),
                   ("param", c.POINTER(Param)), ("reduce", c.c_void_p), ("level", c.POINTER(c.CFUNCTYPE(None, c.POINTER(Row)))), ("more", c.c_void_p * 7)])


class Kernel:
    """Levels of a kernel over arrays [z][y][x], frame included."""

    def __init__(self, path):
        self.object = c.CDLL(path)
        self.d = d = Description.in_dll(self.object, "mx_kernel")
        assert d.size == c.sizeof(Description) and d.row_size == c.sizeof(Row)
        self.fields = [[d.state[i] for i in range(d.n_state)], [d.partner[i] for i in range(d.n_partner)]]
        self.fixed = [d.fixed[i] for i in range(d.n_fixed)]
        self.params = {d.param[i].name.decode(): d.param[i].value for i in range(d.n_param)}
        if d.form != STAGGERED:
            self.fields[1] = self.fields[0]

    def level(self, level, arrays, fixed, params):
        d, read, write = self.d, arrays[level % 2], arrays[1 - level % 2]
        nz, ny, nx = (n - 2 * d.radius[0] for n in read[0].shape)
        row, step = d.level[level % d.n_levels], level // d.n_levels
        values = (c.c_double * (len(params) + 1))(*(v[step] if np.ndim(v) else v for v in params.values()))

        def planes(fields, z, reach):
            address = [a.ctypes.data + (z + dz) * a.strides[0] + d.radius[0] * a.strides[1] for a in fields for dz in range(-reach, reach + 1)]
            return (c.c_void_p * (len(address) + 1))(*address)

        for z in range(d.radius[0], nz + d.radius[0]):
            out, in_, c_planes = planes(write, z, 0), planes(read, z, d.radius[0]), planes(fixed, z, d.fixed_radius)
            pitches = (c.c_int64 * (len(fixed) + 1))(*(a.strides[1] for a in fixed))
            pointers = [c.cast(p, c.c_void_p) for p in (out, in_, c_planes, pitches, values)]
            row(c.byref(Row(pointers[0], pointers[1], pointers[2], read[0].strides[1], pointers[3], None, ny, pointers[4], d.radius[0], nx + d.radius[0],
                            0, z - d.radius[0], step, nx, ny, nz)))

    def run(self, nt, a, b, fixed, params):
        """Arrays A and B (lists of fields) after nt steps, the newest state first."""
        arrays = [[f.copy() for f in a], [f.copy() for f in b]]
        levels = nt * self.d.n_levels
        for level in range(levels):
            self.level(level, arrays, fixed, params)
        return arrays[levels % 2], arrays[1 - levels % 2]


@pytest.fixture(scope="module")
def open_kernel(memext):
    def open_kernel(name):
        path = SYSTEMS / f"{name}.c"
        done = memext("kernel", "check", path, timeout=600)
        assert done.returncode == 0 and "nothing wrong found\n" in done.stdout and done.stderr == "", (done.stdout, done.stderr)
        done = memext("kernel", "build", path, timeout=600)
        return Kernel(re.search(r"(/\S*\.so)$", done.stdout.strip()).group(1))

    return open_kernel


def reference(name):
    spec = importlib.util.spec_from_file_location(name, SYSTEMS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Values of fields that make sense (others are between 0 and 1), and parameters that are not the kernel's own: numbers, or one for each step.
CASES = {
    "forced_wave": ({"u": (-1, 1), "u_old": (-1, 1)}, {"courant": 0.5, "drive": np.sin(np.arange(64.0))}),
    "diffusion": ({}, {"dt": 0.15}),
    "rk4_advection": ({"u": (-1, 1)}, {"cx": 0.8, "cy": -0.4}),
    "wave": ({"v": (1000, 4000), "damping": (0, 0.1)}, {"dt": 0.0012}),
    "fdtd": ({"eps": (1, 4)}, {"courant": 0.4}),
    "pml": ({name: (-1, 1) if len(name) == 3 else (0, 0.5) if name[0] in "bq" else (0.5, 1) for name in "exy exz eyz eyx ezx ezy hxy hxz hyz hyx hzx hzy ax ay az bx by bz px py pz qx qy qz".split()}, {}),
    "elastic": ({"lam": (0.5, 1), "mu": (0.5, 1)}, {"dt": 0.25}),
    "gray_scott": ({}, {"feed": 0.04, "dt": 0.5}),
    "life": ({"u": (0, 2)}, {}),
    "ising": ({"s": (-1.99, 2)}, {"w": 0.3, "seed": 5}),
    "lattice_boltzmann": ({"wall": (0, 2), **{f"f{i}": (0.8 * w, 1.2 * w) for i in range(19) for w in [1 / 3 if i == 0 else 1 / 18 if i < 7 else 1 / 36]}},
                          {"omega": 1.5, "push": 1e-3}),
}


FLAT = {"shallow_water"}  # of two dimensions: test_two_dimensions.py


def test_every_system_is_a_case():
    assert {p.stem for p in SYSTEMS.glob("*.c")} == {p.stem for p in SYSTEMS.glob("*.py")} == {*CASES, *FLAT}
    for path in SYSTEMS.glob("*.c"):
        assert 10 <= len(path.read_text().splitlines()) <= 60, path


@pytest.mark.parametrize("name", CASES)
def test_systems_give_the_bits_of_their_reference(open_kernel, name):
    """Same bits in every field, frames included, after an even and an odd number of steps; what was computed is finite and has changed."""
    kernel, module, (ranges, some) = open_kernel(name), reference(name), CASES[name]
    d, rng = kernel.d, np.random.default_rng(7)
    shape = tuple(n + 2 * d.radius[0] for n in (5, 6, 37))

    def make(field):
        low, high = ranges.get(field.name.decode(), (0, 1))
        values = low + (high - low) * rng.random(shape)
        return values.astype(TYPES[field.type])

    a = [make(f) for f in kernel.fields[0]]
    b = [make(f) for f in kernel.fields[1]] if d.form != JACOBI else [f.copy() for f in a]
    fixed, params = [make(f) for f in kernel.fixed], {**kernel.params, **some}
    assert set(some) <= set(kernel.params)
    names = [[f.name.decode() for f in fields] for fields in kernel.fields]
    if d.form == LEAPFROG:
        names[1] = [n + "_old" for n in names[1]]
    given = dict(zip(names[0] + (names[1] if d.form != JACOBI else []), a + (b if d.form != JACOBI else [])))
    given.update({f.name.decode(): v for f, v in zip(kernel.fixed, fixed)})
    for nt in (0, 1, 4):
        wanted = module.run(nt, **given, **some)
        newest, other = kernel.run(nt, a, b, fixed, params)
        got = dict(zip(names[0] + (names[1] if d.form != JACOBI else []), newest + (other if d.form != JACOBI else [])))
        assert set(got) == set(wanted)
        for field, value in got.items():
            assert value.dtype == wanted[field].dtype and value.tobytes() == wanted[field].tobytes(), (nt, field)
            assert np.isfinite(value).all() and (nt == 0 or value.tobytes() != given[field].tobytes()), (nt, field)
