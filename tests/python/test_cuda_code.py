# SPDX-License-Identifier: BSD-3-Clause
"""The code that a real compiler of CUDA (NVRTC) makes of kernels, where one is installed; no device is needed. Through accel/cuda.c itself, with a driver that keeps
the code instead of loading it (tests/fake_cuda): every built-in stencil and every example system, with and without what follows a level, with two levels in one
launch, compiles for several devices; nothing is contracted, approximated or flushed to zero; nothing is spilled to slow memory, and no launch asks for more
registers or shared memory than there are."""
import ctypes.util
import os
import re
import shutil
import struct
import subprocess

import numpy
import pytest
from conftest import LONG, ROOT, thinned
from run_systems import STAGES, System
from test_accel import AWKWARD_KERNEL
from test_systems import CASES

DEVICES = [80, 90, 100]  # compute capability 8.0, 9.0, 10.0
NEWER = 149  # than any compiler knows: PTX is made for it
STENCILS = ["star7", "star13", "star19", "star25", "star31", "star37", "star43", "star49", "edge19", "box27"]
GROUP = {"mx_fused": 512}  # work items of a group; of others 256
SPILLED = {"mx_fused": 48}  # bytes: few registers, for more groups at a time, are faster all the same
CALLED = 16  # bytes of stack that are for calls: of divisions and roots the ways for odd numbers are functions


def libraries():
    """NVRTC as accel/cuda.c looks for it: of the driver's generation first."""
    return [n for n in (ctypes.util.find_library("nvrtc"), "/usr/local/cuda/lib64/libnvrtc.so") if n and (n[0] != "/" or os.path.exists(n))]


@pytest.fixture
def compiled(memext, build, quick_place, tmp_path):
    """compiled(device, words...): the file of code that a run comes by."""
    if not libraries():
        pytest.skip("no NVRTC is installed here (CUDA toolkit)")
    if not (build / "fake_cuda").exists():
        pytest.skip("tests/fake_cuda was not built")
    driver = tmp_path / "driver"  # alone: the compiler beside it is a fake too
    driver.mkdir()
    (driver / "libcuda.so.1").symlink_to(build / "fake_cuda" / "libcuda.so.1")

    def make(device, *words):
        folder = tmp_path / f"code-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), "FAKE_CUDA": f"arch={device},version=13000,keep={folder}"}
        done = memext("run", *words, "-d", quick_place, "--overwrite", "--accel", "cuda", "--quiet", env=environment)
        if "this NVRTC cannot compile for" in done.stderr:
            pytest.skip(done.stderr.strip())
        assert done.returncode == 3 and "does not load code of the NVRTC here" in done.stderr, (words, done.stderr)
        for store in quick_place.iterdir():
            store.unlink()
        (code,) = folder.iterdir()
        return code

    return make


class Code:
    """What a cubin says of its kernels: registers, stack and shared memory of a group."""
    FRAME, STACK, REGISTERS = 0x11, 0x12, 0x2f

    def __init__(self, path):
        self.path, self.bytes = path, path.read_bytes()
        assert self.bytes[:4] == b"\x7fELF"
        offset, size, count, names = struct.unpack_from("<Q", self.bytes, 40)[0], *struct.unpack_from("<HHH", self.bytes, 58)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.bytes, offset + i * size) for i in range(count)]
        self.names = [self._text(names, s[0]) for s in self.sections]
        symbols = self.names.index(".symtab")
        at, length, strings = self.sections[symbols][4], self.sections[symbols][5], self.sections[symbols][6]
        self.symbols = [self._text(strings, struct.unpack_from("<I", self.bytes, at + i)[0]) for i in range(0, length, 24)]
        self.kernels = {n[len(".text."):]: {self.FRAME: 0, self.STACK: 0, self.REGISTERS: 0} for n in self.names if n.startswith(".text.")}
        for name, section in zip(self.names, self.sections):
            if name == ".nv.info":
                self._facts(section[4], section[4] + section[5])
        self.shared = {n[len(".nv.shared."):]: s[5] for n, s in zip(self.names, self.sections) if n.startswith(".nv.shared.")}

    def _text(self, section, at):
        begin = self.sections[section][4] + at
        return self.bytes[begin:self.bytes.index(b"\0", begin)].decode()

    def _facts(self, at, end):
        while at < end:
            form, key, size = struct.unpack_from("<BBH", self.bytes, at)
            at += 4
            if form != 4:
                continue  # the value is in the same word
            if key in (self.FRAME, self.STACK, self.REGISTERS):
                symbol, value = struct.unpack_from("<II", self.bytes, at)
                if self.symbols[symbol] in self.kernels:
                    self.kernels[self.symbols[symbol]][key] = value
            at += size


def check_code(path, kernels, divides):
    """No stack, so nothing is spilled (but for SPILLED); registers for a group; shared memory for a group; and, where it can be disassembled, no fused multiply-add but of
    divisions and roots, which are made of them. (Those of f16 are how numbers come into registers.)"""
    if path.name == "ptx":  # a compiler older than the device
        check_ptx(path, kernels)
        return
    code = Code(path)
    assert set(code.kernels) == set(kernels), (sorted(code.kernels), kernels)
    for name, facts in code.kernels.items():
        assert max(facts[Code.FRAME], facts[Code.STACK]) <= (CALLED if divides else SPILLED.get(name, 0)), (name, facts)
        assert 0 < facts[Code.REGISTERS] <= 65536 // GROUP.get(name, 256), (name, facts)
        assert code.shared.get(name, 0) <= 48 << 10, (name, code.shared)
    if shutil.which("nvdisasm") and not divides:
        text = subprocess.run(["nvdisasm", "-c", path], capture_output=True, text=True, check=True).stdout
        assert re.search(r"\b(DMUL|FMUL|DADD|FADD)\b", text)
        assert not re.findall(r"\b[DF]FMA\S*", text), set(re.findall(r"\b[DF]FMA\S*", text))


def check_ptx(path, kernels):
    """Every operation is rounded by itself, to nearest, with denormals: the compiler of a driver may not change that either."""
    text = path.read_text()
    assert ".version" in text and set(re.findall(r"\.entry (\w+)\(", text)) == set(kernels)
    operations = re.findall(r"^\s*(?:@!?%p\d+\s+)?((?:add|sub|mul|div|sqrt|rcp|fma|mad|rsqrt|ex2|lg2|sin|cos|tanh)\.\S*f(?:16|32|64))\s", text, re.MULTILINE)
    assert operations or not re.search(r"\.f(32|64)\b", text)  # of whole numbers alone there are none
    assert {o for o in operations if not re.fullmatch(r"(add|sub|mul|div|sqrt|rcp)\.rn\.f(32|64)", o)} == set()
    assert ".ftz" not in text and ".approx" not in text
    assert not re.search(r"\bfma\.|\bmad\.\S*f(32|64)|\.local\b", text)


def after(tmp_path, field):
    """Words of a run with all that follows a level: sources, probes, norms and frames that copy."""
    numpy.save(tmp_path / "w.npy", numpy.linspace(0, 1, 3))
    (tmp_path / "probes").write_text(f"{field} 1 2 3\n")
    return ["--source", f"{field}@2,3,4={tmp_path}/w.npy", "--probes", tmp_path / "probes", "--probes-out", tmp_path / "out.npy", "--check", 2, "--side", "x=periodic",
            "--side", "y=mirror"]


def devices_of(at):
    """Of all, one in turn and the newest; all when there is time."""
    return [*(DEVICES if LONG else [DEVICES[at % len(DEVICES)]]), NEWER]


AFTER = ["mx_sources", "mx_probes", "mx_frame", "mx_image"]


# Of the stars the smallest, the middle and the largest radius, each stencil in one type in turn; all in both when there is time.
USUAL = ["star7", "star25", "star49", "edge19", "box27"]


@pytest.mark.parametrize("stencil, dtype", [pytest.param(stencil, dtype, marks=[] if stencil in USUAL and (at + of) % 2 == 0 else [pytest.mark.long])
                                            for at, stencil in enumerate(STENCILS) for of, dtype in enumerate(["f64", "f32"])])  # fmt: skip
def test_stencils(compiled, tmp_path, stencil, dtype):
    words = ["-n", 70, 40, 30, "-t", 4, "--stencil", stencil, "--dtype", dtype, "--plan", "stream bt=2 slab=9"]
    radius = {"edge19": 1, "box27": 1}.get(stencil) or (int(stencil[4:]) - 1) // 6
    fuses = 4 * radius <= 16 and (2 * radius + 2) * 32 * 16 * (8 if dtype == "f64" else 4) <= 48 << 10
    for device in devices_of(STENCILS.index(stencil)):
        check_code(compiled(device, *words), ["mx_cell", *(["mx_fused"] if fuses else [])], False)
        check_code(compiled(device, *words, *after(tmp_path, "u")), ["mx_cell", *AFTER, "mx_change"], False)


@pytest.mark.parametrize("name", thinned(sorted(CASES), lambda name: name in ("fdtd", "gray_scott", "lattice_boltzmann", "life", "rk4_advection")))
def test_systems(compiled, tmp_path, name):
    system = System(name, tmp_path)
    stages = STAGES.get(name, 0)
    words = [*system.words(4), "--plan", f"stream bt={stages or 2} slab=9"]
    field = "ex" if name == "fdtd" else "f1" if name == "lattice_boltzmann" else next(iter(system.state))
    cells = ["mx_cell_b", "mx_cell_a"] if name in ("fdtd", "elastic", "pml") else [f"mx_cell_{i + 1}" for i in range(stages)] or ["mx_cell"]
    reductions = [f"mx_reduce_{r}" for r in {"rk4_advection": ["mass"], "life": ["alive"], "ising": ["spin", "bonds"]}.get(name, [])]
    follows = [k + tail for k in AFTER for tail in (["_b", "_a"] if name in ("fdtd", "elastic", "pml") else [""])]
    fused = ["mx_fused"] if name in ("diffusion", "gray_scott", "life") else []
    for device in devices_of(sorted(CASES).index(name)):
        check_code(compiled(device, *words), cells + fused, True)
        check_code(compiled(device, *words, *after(tmp_path, field)), [*cells, *follows, "mx_change", *reductions], True)


@pytest.mark.parametrize("name", ["pore_diffusivity", "denoising"])
def test_reductions(compiled, tmp_path, name):
    """Kernels with reductions of their own, which are kernels there too."""
    kernel = ROOT / "systems" / "applications" / f"{name}.c"
    frame = 2 * int(re.search(r"#define MX_RADIUS (\d)", kernel.read_text())[1])
    fields = re.findall(r"F\((\w+), (\w+)\)", re.search(r"#define MX_FIXED\(F\) (.*)", kernel.read_text())[1])
    words = ["--kernel", kernel, "-n", 23, 21, 19, "-t", 4, "--init", "random", "--plan", "stream bt=2 slab=9"]
    for field, kind in fields:
        numpy.save(tmp_path / f"{field}.npy", numpy.ones([n + frame for n in (19, 21, 23)], {"uint8_t": "u1", "float": "f4", "double": "f8", "uint16_t": "u2", "int16_t": "i2"}[kind]))
        words += ["--field", f"{field}={tmp_path}/{field}.npy"]
    reductions = re.findall(r"R\((\w+), \w+\)", re.search(r"#define MX_REDUCES\(R\) (.*)", kernel.read_text())[1])
    for device in devices_of(len(name)):
        check_code(compiled(device, *words, "--check", 2), ["mx_cell", *AFTER, "mx_change", *(f"mx_reduce_{r}" for r in reductions)], True)


def test_what_is_c_and_not_cuda(compiled, tmp_path):
    """Functions, tables and names of a file of C; roots of floats are computed in double, as in C."""
    (tmp_path / "awkward.c").write_text(AWKWARD_KERNEL)
    words = ["--kernel", tmp_path / "awkward.c", "-n", 40, 20, 10, "-t", 4, "--init", "random", "--plan", "stream bt=2 slab=5"]
    for device in devices_of(0)[:-1]:
        compiled(device, *words)
    text = compiled(NEWER, *words).read_text()
    assert "sqrt.rn.f64" in text and "sqrt.rn.f32" not in text
    assert set(re.findall(r"fma\.\S+", text)) <= {"fma.rn.f64", "fma.rn.f32"}  # those that it asks for


def test_driver_of_the_toolkit(memext, place, tmp_path):
    """The library that programs are linked with where there is no driver has all functions, and says that it is none."""
    stubs = [p for p in ("/usr/local/cuda/lib64/stubs/libcuda.so", "/usr/lib/x86_64-linux-gnu/stubs/libcuda.so") if os.path.exists(p)]
    if not stubs or not libraries():
        pytest.skip("no CUDA toolkit is installed here")
    (tmp_path / "libcuda.so.1").symlink_to(stubs[0])
    done = memext("run", "-n", 20, 20, 20, "-t", 4, "-d", place, "--accel", "cuda", "--quiet", env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    assert done.returncode == 3 and "CUDA error 34, the library loaded is only the toolkit's stub" in done.stderr, done.stderr
    assert list(place.iterdir()) == []
