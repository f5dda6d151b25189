# SPDX-License-Identifier: BSD-3-Clause
"""Stores on other file systems than ext4: these plans have the bits of a run in DRAM, resumes included, and a full disk is said."""
import fcntl
import os
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

KINDS = {"xfs": 320 << 20, "btrfs": 128 << 20}  # the least that mkfs makes, or a little more
GRID = ["-n", 62, 46, 70]
PLANS = {
    "uring": ["--backend", "uring", "--plan", "stream bt=4 slab=3"],
    "aio": ["--backend", "aio", "--plan", "stream bt=4 slab=3"],
    "mmap": ["--backend", "mmap", "--plan", "stream bt=4 slab=3"],
    "uncached": ["--backend", "uring", "--uncached", "--plan", "stream bt=4 slab=3"],
    "faces in a file": ["--backend", "uring", "--plan", "stream by=20 bt=4 slab=3 faces=side-file"],
    "integrity": ["--backend", "uring", "--integrity", "--plan", "stream bt=4 slab=3"],
}
KERNEL = ["--kernel", Path(__file__).resolve().parents[2] / "systems" / "forced_wave.c", "--init", "random"]
FS_IOC_GETFLAGS, FS_NOCOW_FL = 0x80086601, 0x00800000


@pytest.fixture(params=KINDS)
def folder(request, mounted):
    directory, _ = mounted(KINDS[request.param], kind=request.param)
    return directory


def remove(file):
    file.unlink()
    os.sync()  # btrfs counts the room as free only then


def test_all_plans_and_resumes(memext, folder, tmp_path):
    expected = memext.run(*GRID, "-t", 20, "--backend", "dram", "-o", tmp_path / "whole.npy")["checksum"]
    store, out = folder / "run.memext", folder / "out.npy"
    for name, plan in PLANS.items():
        memext.run(*GRID, "-t", 9, "-d", store, *plan)
        done = memext.run("--resume", "-d", store, "-t", 20, "-o", out)
        assert (done["resumed_from"], done["checksum"]) == (9, expected), name
        assert np.array_equal(np.load(out), np.load(tmp_path / "whole.npy")), name
        remove(store)
        remove(out)


def test_in_place(memext, folder):
    expected = memext.run(*GRID, "-t", 9, "--backend", "dram", *KERNEL)["checksum"]
    assert memext.run(*GRID, "-t", 9, "-d", folder / "run.memext", "--backend", "uring", "--in-place", "--plan", "stream bt=4 slab=3", *KERNEL)["checksum"] == expected


def test_btrfs_rewrites_stores_in_place(memext, mounted):
    """A store that memext makes has the flag of chattr +C. A file that was there keeps its flags."""
    folder, _ = mounted(KINDS["btrfs"], kind="btrfs")
    made, given = folder / "made.memext", folder / "given.memext"
    given.touch()
    for store in (made, given):
        memext.run(*GRID, "-t", 4, "-d", store, *PLANS["uring"])
    flags = []
    for store in (made, given):
        with open(store, "rb") as file:
            flags.append(struct.unpack("l", fcntl.ioctl(file, FS_IOC_GETFLAGS, bytes(8)))[0] & FS_NOCOW_FL)
    assert flags == [FS_NOCOW_FL, 0]


def test_a_full_disk(memext, folder):
    """Buffers that do not fit are refused. An output that finds no room ends the run, and nothing of it stays."""
    memext.refused("run", "-n", 510, 510, 510, "-t", 4, "--backend", "uring", "-d", folder / "run.memext", naming="MiB")
    assert list(folder.iterdir()) == []
    filled = folder / "filled"
    with open(filled, "wb") as file:
        subprocess.run(["head", "-c", "1G", "/dev/zero"], stdout=file, stderr=subprocess.DEVNULL, check=False)
    done = memext("run", *GRID, "-t", 4, "--backend", "dram", "-o", folder / "out.npy")
    assert done.returncode in (2, 3) and ("full" in done.stderr or "free" in done.stderr), done.stderr
    assert list(folder.iterdir()) == [filled]
    remove(filled)
    memext.run(*GRID, "-t", 4, "--backend", "dram", "-o", folder / "out.npy")
