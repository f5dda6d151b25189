# SPDX-License-Identifier: BSD-3-Clause
"""The checksum of a result is what docs/formats.md says, for every plan and form."""
import ctypes
import ctypes.util
import struct

import numpy as np
import pytest


def hasher():
    name = ctypes.util.find_library("xxhash")
    if name is None:
        pytest.skip("libxxhash is not found by its name")
    xxh3 = ctypes.CDLL(name).XXH3_64bits
    xxh3.restype, xxh3.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
    return lambda data: struct.pack(">Q", xxh3(data, len(data)))


def checksum(groups):
    """groups: lists of fields (nz, ny, nx) without a frame."""
    digest = hasher()

    def fold(items):
        total = bytes(8)
        for item in items:
            total = digest(total + item)
        return total

    return fold(fold(digest(np.ascontiguousarray(field[z, y]).tobytes()) for y in range(fields[0].shape[1]) for field in fields)
                for fields in groups for z in range(fields[0].shape[0])).hex()  # fmt: skip


@pytest.mark.parametrize("words", [["--backend", "dram"], ["--backend", "uring", "--algorithm", "stream"], ["--backend", "aio", "--plan", "stream by=7 bt=3"],
                                   ["--backend", "uring", "--algorithm", "redundant", "--block", 9, 11, 2], ["--backend", "uring", "--no-fuse"], ["--backend", "mmap"],
                                   ["--backend", "uring", "--ranks", 3, "--threads", 1], ["--backend", "uring", "--ranks", 2, "--no-fuse"]], ids=str)  # fmt: skip
def test_a_field(memext, place, tmp_path, words):
    place = [] if "dram" in words else ["-d", place]
    out = tmp_path / "out.npy"
    report = memext.run("-n", 33, 22, 40, "-t", 7, "--dtype", "f32", *words, *place, "-o", out, "--dram", "64MiB")
    cells = np.load(out)[1:-1, 1:-1, 1:-1]
    assert report["checksum"] == checksum([[cells]])


def test_fields_and_groups(memext, place, tmp_path):
    """Two fields row by row; a staggered system group by group."""
    systems = memext.program.parents[2] / "systems"
    for kernel, groups in [("gray_scott.c", [["u", "v"]]), ("fdtd.c", [["ex", "ey", "ez"], ["hx", "hy", "hz"]])]:
        if not (systems / kernel).exists():
            pytest.fail(f"{kernel} is not there")
        names = [name for group in groups for name in group]
        words = [word for name in names for word in ("-o", f"{name}={tmp_path}/{name}.npy")]
        report = memext.run("--kernel", systems / kernel, "-n", 20, 18, 16, "-t", 4, "--init", "random", *(["--init", "eps=random"] if kernel == "fdtd.c" else []), "-d", place, "--dram", "64MiB", *words, "--output-frame", "none")
        fields = {name: np.load(tmp_path / f"{name}.npy") for name in names}
        assert report["checksum"] == checksum([[fields[name] for name in group] for group in groups]), kernel
