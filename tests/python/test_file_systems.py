# SPDX-License-Identifier: BSD-3-Clause
"""Stores on other file systems than ext4: every backend and plan has the same bits, resumes included, and a full disk is said."""
import subprocess

import numpy as np
import pytest

KINDS = {"xfs": 320 << 20, "btrfs": 128 << 20}  # the least that mkfs makes, or a little more
GRID = ["-n", 62, 46, 70]
PLANS = {
    "uring": ["--backend", "uring", "--plan", "stream bt=4 slab=3"],
    "aio": ["--backend", "aio", "--plan", "stream bt=4 slab=3"],
    "mmap": ["--backend", "mmap", "--plan", "stream bt=4 slab=3"],
    "uncached": ["--backend", "uring", "--uncached", "--plan", "stream bt=4 slab=3"],
    "faces in a file": ["--backend", "uring", "--plan", "stream by=20 bt=4 slab=3 faces=file"],
    "in place": ["--backend", "uring", "--in-place", "--plan", "stream bt=4 slab=3"],
    "integrity": ["--backend", "uring", "--integrity", "--plan", "stream bt=4 slab=3"],
}


@pytest.fixture(params=KINDS)
def folder(request, mounted):
    directory, _ = mounted(KINDS[request.param], kind=request.param)
    return directory


def test_all_plans_and_resumes(memext, folder, tmp_path):
    expected = memext.run(*GRID, "-t", 20, "--backend", "dram", "-o", tmp_path / "whole.npy")["checksum"]
    for name, plan in PLANS.items():
        store, out = folder / "run.memext", folder / "out.npy"
        memext.run(*GRID, "-t", 9, "-d", store, *plan)
        done = memext.run("--resume", "-d", store, "-t", 20, "-o", out)
        assert (done["resumed_from"], done["checksum"]) == (9, expected), name
        assert np.array_equal(np.load(out), np.load(tmp_path / "whole.npy")), name
        store.unlink()
        out.unlink()


def test_a_full_disk(memext, folder):
    """Buffers that do not fit are refused. An output that finds no room ends the run, and nothing of it stays."""
    memext.refused("run", "-n", 510, 510, 510, "-t", 4, "--backend", "uring", "-d", folder / "run.memext", naming="MiB")
    assert not (folder / "run.memext").exists() or not list((folder / "run.memext").iterdir())
    filled = folder / "filled"
    with open(filled, "wb") as file:
        subprocess.run(["head", "-c", "1G", "/dev/zero"], stdout=file, stderr=subprocess.DEVNULL, check=False)
    done = memext("run", *GRID, "-t", 4, "--backend", "dram", "-o", folder / "out.npy")
    assert done.returncode in (2, 3) and ("full" in done.stderr or "free" in done.stderr), done.stderr
    assert [p.name for p in folder.iterdir()] == ["filled"]
    filled.unlink()
    memext.run(*GRID, "-t", 4, "--backend", "dram", "-o", folder / "out.npy")
