# SPDX-License-Identifier: BSD-3-Clause
"""The result of a run does not depend on how it was computed, and is what numpy computes."""
import shutil

import numpy
import pytest
from conftest import advance, needs_root, random_grid

NX, NY, NZ, NT = 30, 29, 31, 7
PROBLEM = ["-n", NX, NY, NZ, "-t", NT]
BACKENDS = ["dram", "swap", "mmap", "aio", "uring"]
BLOCKED = ["redundant", "skewed", "skewed-y", "skewed-min", "stream"]
DIRECT = ["direct", "direct-skewed", "direct-skewed-opt"]
STENCILS = ["star7", "edge19", "box27"]


@pytest.fixture
def place(quick_place):
    return quick_place


def where(backend, place):
    return ["-d", place, "--backend", backend]


@pytest.fixture(scope="module")
def plain(memext):
    """Checksum of the plain run: in DRAM, one thread, spatial blocking only, verified."""
    known = {}

    def checksum(*problem):
        if problem not in known:
            result = memext.run(*problem, "--backend", "dram", "--algorithm", "direct", "--engine", "iblock",
                                "--threads", 1, "--verify")
            assert result["verified"] is True
            known[problem] = result["checksum"]
        return known[problem]
    return checksum


@pytest.mark.parametrize("stencil", STENCILS)
@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_same_bits_on_every_backend(memext, plain, place, swap_space, stencil, dtype):
    """checksum(backend, redundant) == checksum(plain)."""
    problem = [*PROBLEM, "--stencil", stencil, "--dtype", dtype]
    expected = plain(*problem)
    for backend in BACKENDS:
        result = memext.run(*problem, *where(backend, place), "--algorithm", "redundant", "--block", 13, 11, 3)
        assert result["backend"] == backend and result["checksum"] == expected, backend


@pytest.mark.parametrize("by, bt", [(1, 7), (10, 3), (28, 4)])
def test_same_bits_with_a_side_file(memext, plain, place, swap_space, by, bt):
    """checksum(backend, stream in strips) == checksum(plain), with the faces in DRAM or in a side file."""
    for backend in BACKENDS:
        for faces in ["dram", "side-file"]:
            result = memext.run(*PROBLEM, *where(backend, place), "--plan", f"stream by={by} bt={bt} slab=4 faces={faces}")
            assert result["checksum"] == plain(*PROBLEM) and result["plan"]["faces"] == faces, backend
            assert (result["side_file_bytes"] > 0) == (faces == "side-file")


@pytest.mark.parametrize("sizes", ["by=50 bt=40 slab=12", "by=75 bt=20 slab=8", "by=40 bt=39 slab=4", "by=24 bt=16 slab=4 tile=6", "by=25 bt=16 slab=4 tile=6"])
def test_same_bits_of_whole_tiles_in_strips(memext, plain, place, sizes):
    """checksum(strips whose tiles are for the most part computed in place, call after call) == checksum(plain)."""
    problem = ["-n", 126, 150, 70, "-t", 40]
    for threads in 1, 3:
        for faces in "dram", "side-file":
            result = memext.run(*problem, *where("uring", place), "--threads", threads, "--plan", f"stream engine=tiled {sizes} faces={faces}")
            assert result["checksum"] == plain(*problem)


@pytest.mark.parametrize("engine", ["iblock", "tiled"])
@pytest.mark.parametrize("algorithm", BLOCKED + DIRECT)
def test_same_bits_of_every_algorithm(memext, plain, place, algorithm, engine):
    """checksum(algorithm, engine, backend) == checksum(plain) on every backend that can carry the algorithm."""
    for backend in ["dram", "mmap"] if algorithm in DIRECT else ["mmap", "aio", "uring"]:
        result = memext.run(*PROBLEM, *where(backend, place), "--algorithm", algorithm, "--engine", engine)
        assert result["checksum"] == plain(*PROBLEM), backend
        assert result["plan"]["algorithm"] == algorithm and result["plan"]["engine"] == engine


@pytest.mark.parametrize("block", [(29, 31, 7), (29, 31, 1), (1, 1, 1), (7, 5, 2), (28, 30, 4), (10, 31, 3), (64, 64, 9),
                                   (29, 31, 100), (15, 14, 7)])
def test_same_bits_of_every_block_size(memext, plain, place, block):
    """Blocks of one cell, of the whole grid, of more than it; bt that does not divide nt, bt > nt."""
    result = memext.run(*PROBLEM, "-d", place, "--algorithm", "redundant", "--block", *block)
    assert result["checksum"] == plain(*PROBLEM)


@pytest.mark.parametrize("backend", ["dram", "uring"])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_same_bits_of_every_number_of_threads(memext, plain, place, backend, threads):
    result = memext.run(*PROBLEM, "-d", place, "--backend", backend, "--threads", threads)
    assert result["checksum"] == plain(*PROBLEM) and result["plan"]["threads"] == threads


@pytest.mark.parametrize("advice", ["none", "sequential", "random", "willneed", "hugepage", "schedule"])
def test_same_bits_under_every_advice(memext, plain, place, advice):
    for algorithm in ("direct", "redundant"):
        result = memext.run(*PROBLEM, "-d", place, "--backend", "mmap", "--algorithm", algorithm, "--advice", advice)
        assert result["checksum"] == plain(*PROBLEM)


@pytest.mark.parametrize("options", [["--sqpoll"], ["--uncached"], ["--no-register"], ["--queue-depth", 1],
                                     ["--request-size", "4KiB"], ["--queue-depth", 1, "--request-size", 4096, "--no-register"]])
def test_same_bits_with_every_option_of_uring(memext, plain, place, options):
    """A fallback is taken, and announced in the report, where the kernel lacks a feature."""
    result = memext.run(*PROBLEM, "-d", place, "--backend", "uring", *options)
    assert result["checksum"] == plain(*PROBLEM)


def test_same_bits_on_a_block_device(memext, plain, loop):
    for backend in ("mmap", "aio", "uring"):
        device = loop(64 << 20)
        result = memext.run(*PROBLEM, "-d", device, "--backend", backend, "--algorithm", "redundant", "--verify")
        assert result["checksum"] == plain(*PROBLEM) and result["verified"] is True


def test_same_bits_in_a_file(memext, plain, place):
    """A path that does not exist yet, in a directory that does, becomes a store."""
    result = memext.run(*PROBLEM, "-d", place / "grid.store", "--backend", "aio")
    assert result["checksum"] == plain(*PROBLEM)


@needs_root
@pytest.mark.parametrize("backend", ["mmap", "aio", "uring"])
def test_a_store_used_again(memext, plain, mounted, backend):
    """A file system with room for one store: the file of the former run counts as room; what a smaller problem leaves over is given back."""
    directory, _ = mounted(80 << 20)
    store, large, small = directory / "grid.store", ["-n", 126, 126, 200, "-t", 5], ["-n", 31, 37, 41, "-t", 5]
    sizes = []
    for problem in (large, large, small, large):
        result = memext.run(*problem, "-d", store, "--backend", backend, "--algorithm", "stream", "--verify")
        assert result["checksum"] == plain(*problem) and result["verified"] is True
        assert store.stat().st_blocks * 512 > shutil.disk_usage(directory).free or problem is small
        sizes.append(store.stat().st_size)
    assert sizes[0] == sizes[1] == sizes[3] > 50 << 20 and sizes[2] < 10 << 20


@pytest.mark.parametrize("size", [(1, 1, 1), (1, 1, 17), (1, 17, 1), (17, 1, 1), (2, 3, 5), (13, 1, 37), (101, 3, 2), (31, 37, 41)])
@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.each_value
def test_sizes_that_hurt(memext, plain, place, size, steps):
    """Extents of 1, primes; no step, one, more steps than cells: verified, and equal on every algorithm."""
    problem = ["-n", *size, "-t", steps]
    expected = plain(*problem)
    for algorithm in BLOCKED:
        result = memext.run(*problem, "-d", place, "--algorithm", algorithm, "--verify")
        assert result["checksum"] == expected and result["verified"] is True, algorithm
    assert memext.run(*problem, "-d", place, "--backend", "mmap", "--algorithm", "direct")["checksum"] == expected


# ------------------------------------------------------------------ against numpy

TOLERANCE = {"f8": 1e-12, "f4": 2e-5}  # relative, after 6 steps of sums of up to 27 terms in another order


def frame(grid):
    """Every cell but the interior."""
    outside = numpy.ones(grid.shape, dtype=bool)
    outside[1:-1, 1:-1, 1:-1] = False
    return grid[outside]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("stencil", STENCILS)
@pytest.mark.parametrize("backend, algorithm", [("dram", "direct"), ("mmap", "direct"), ("mmap", "redundant"),
                                                ("aio", "redundant"), ("uring", "redundant"), ("uring", "stream")])
def test_against_numpy(memext, place, backend, algorithm, stencil, dtype):
    """|cell - numpy's| <= tolerance * numpy's for every cell; the frame is that of the input, to the bit."""
    grid = random_grid(19, 23, 17, dtype)
    numpy.save(place / "in.npy", grid)
    memext.run("--input", place / "in.npy", "--output", place / "out.npy", "-t", 6, "-d", place, "--backend", backend,
               "--algorithm", algorithm, "--stencil", stencil, "--verify")
    result, expected = numpy.load(place / "out.npy"), advance(grid, stencil, 6)
    assert result.dtype == grid.dtype and result.shape == grid.shape
    numpy.testing.assert_allclose(result, expected, rtol=TOLERANCE[dtype], atol=0)
    assert frame(result).tobytes() == frame(grid).tobytes()


def test_no_step_returns_the_input(memext, place):
    grid = random_grid(5, 6, 7)
    numpy.save(place / "in.npy", grid)
    memext.run("--input", place / "in.npy", "--output", place / "out.npy", "-t", 0, "-d", place)
    assert numpy.load(place / "out.npy").tobytes() == grid.tobytes()


def test_coefficients_given(memext, place):
    """--coef 0,1/6 on a linear ramp keeps it: the mean of six neighbours of a linear function is its value."""
    z, y, x = numpy.mgrid[0:8, 0:9, 0:10]
    grid = x + 10.0 * y + 100.0 * z
    numpy.save(place / "in.npy", grid)
    memext.run("--input", place / "in.npy", "--output", place / "out.npy", "-t", 3, "-d", place, "--coef", f"0,{1 / 6}")
    numpy.testing.assert_allclose(numpy.load(place / "out.npy"), grid, rtol=1e-13)


def test_numpy_versions_of_the_file_format(memext, place):
    """Formats 1.0, 2.0 and 3.0 of .npy hold the same grid."""
    grid, checksums = random_grid(9, 9, 9), set()
    for version in ((1, 0), (2, 0), (3, 0)):
        with open(place / "in.npy", "wb") as file:
            numpy.lib.format.write_array(file, grid, version=version)
        checksums.add(memext.run("--input", place / "in.npy", "-t", 2, "-d", place)["checksum"])
    assert len(checksums) == 1
