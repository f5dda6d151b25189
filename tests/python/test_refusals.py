# SPDX-License-Identifier: BSD-3-Clause
"""What cannot be done is refused before anything is touched: exit status 2 and a sentence that names the value."""
import os
import re
import resource
import shutil
import signal
import subprocess

import numpy
import pytest
from conftest import ROOT, needs_root, random_grid, sh, wait_until
from watch import committed

MIB = 2**20
SMALL = ["-n", 30, 29, 31, "-t", 7]
LARGE = ["-n", 126, 126, 510, "-t", 7]  # two Buffers of 64 MiB


@pytest.fixture
def place(quick_place):
    return quick_place


# ------------------------------------------------------------------ words that would pass unheard

KERNEL = ["--kernel", ROOT / "systems" / "diffusion.c", "-n", 6, 7, 8, "-t", 1]


@pytest.mark.parametrize("words, naming", [
    ([*SMALL, "--input", "a.npy", "--input", "b.npy"], ["--input", "a.npy", "b.npy", "twice"]), ([*SMALL, "--init", "zero", "--init", "random"], ["--init", "twice"]),
    ([*SMALL, "-o", "a.npy", "--output", "b.npy"], ["--output", "twice"]), ([*SMALL, "--input", "u=a.npy", "--input", "v=b.npy"], ["--input", "twice"]),
    ([*KERNEL, "--input", "u=a.npy", "--input", "u=b.npy"], ["--input", "twice", "for u"]), ([*KERNEL, "--field", "k=a.npy", "--field", "k=a.npy"], ["--field", "for k"]),
    ([*KERNEL, "--init", "u=zero", "--init", "u=random"], ["--init", "for u"]), ([*KERNEL, "-o", "u=a.npy", "-o", "u=b.npy"], ["--output", "for u"]),
    ([*KERNEL, "--frame", "k=edge", "--frame", "k=mirror", "--field", "k=a.npy"], ["--frame", "for k"]),
    ([*KERNEL, "--init", "zero", "--input", "u=a.npy", "--init", "random"], ["--init", "twice"]),
    ([*SMALL, "--snapshot", "1:a", "--snapshot", "2:b"], ["--snapshot", "1:a"[2:], "2:b"])], ids=lambda words: " ".join(map(str, words[-4:])))
def test_an_option_that_is_given_twice_for_a_field(memext, place, words, naming):
    for command in (["run", "-d", place], ["run", "-d", place, "--dry-run"], ["tune"]):
        memext.refused(command[0], *words, *command[1:], naming=naming, cwd=place)
    assert list(place.iterdir()) == []


def test_an_option_that_has_two_values(memext, place):
    """A line on stderr names both and says that the last one is used; the same value twice, and what stands beside a job's file, are no question."""
    twice = {"-d": ["a.store", "b.store"], "--dram": ["64MiB", "65MiB"], "--backend": ["mmap", "dram"], "--json": ["a.json", "b.json"], "--threads": [1, 2]}
    for option, (one, other) in twice.items():
        place_words = [] if option in ("-d", "--backend") else ["-d", "c.store"]
        words = [*SMALL, *place_words, option, one, option, other]
        for command in ["run", *words, "--dry-run"], ["tune", *words]:
            done = memext(*command, cwd=place)
            name = {"-d": "device"}.get(option, option[2:])
            said = [line for line in done.stderr.splitlines() if "is given twice" in line]
            assert done.returncode == 0 and len(said) == 1 and f"--{name} is given twice, as " in said[0] and f"as {other}: the last one is used" in said[0], done
        assert "twice" not in memext("run", *words, "--dry-run", "-q", cwd=place).stderr
    done = memext("run", *SMALL, "-n", 9, 9, 8, "--backend", "dram", "--dry-run", cwd=place)
    assert "--size is given twice" in done.stderr and "as 9 9 8: the last one is used" in done.stderr and "9 x 9 x 8" in done.stdout, done
    assert "given twice" in memext("wavefront", "-n", 9, 9, "-k", 1, "-k", 2, "--backend", "dram", cwd=place).stderr
    assert memext("run", *SMALL, *SMALL, "--backend", "dram", "--backend", "dram", "--dry-run").stderr == ""
    assert memext("run", *SMALL, "--backend", "dram", "--threads", 1, "--write-job", "job.json", cwd=place).returncode == 0
    assert memext("run", "job.json", "--threads", 2, "--dry-run", cwd=place).stderr == ""


def test_a_plan_with_more_threads_than_cores_is_told(memext, place):
    """As --threads is; once."""
    for words in (["-d", place], ["--backend", "dram"]):
        for more in ([], ["--threads", 400]):
            done = memext("run", *SMALL, *words, *more, "--plan", "stream by=4 bt=1 threads=400" if "-d" in words else "resident by=4 bz=4 bt=1 threads=400", "--dry-run")
            assert done.returncode == 0 and len(done.stderr.splitlines()) == 1 and "400: this process may use" in done.stderr, done


@pytest.mark.parametrize("end", ["h5", "NC", "tif", "raw", "bin", "dat", "txt", "mat", "png", "zip", "vtu", "h5.gz", "npy.zst"])
def test_a_result_of_another_format(memext, place, end):
    """The command writes .npy: a file whose name says something else would not be what it says."""
    (place / "probes").write_text("u 1 1 1\n")
    file = place / f"r.{end}"
    memext.run(*SMALL, "-d", place / "kept.store", "--keep")
    for words in (["run", *SMALL, "-d", place, "-o", file], ["run", *SMALL, "-d", place, "-o", file, "--dry-run"], ["export", place / "kept.store", "-o", file],
                  ["run", *SMALL, "-d", place, "--probes", place / "probes", "--probes-out", file], ["wavefront", "-n", 9, 9, "-k", 1, "-d", place, "-o", file],
                  ["run", *KERNEL, "-d", place, "--init", "k=zero", "-o", f"u={file}"]):
        memext.refused(*words, naming=[file.name, ".npy"])
    assert sorted(path.name for path in place.iterdir()) == ["kept.store", "probes"]
    for name in ("r", "r.npy", "r.v2"):
        assert memext("run", *SMALL, "-d", place, "-o", place / name, "-q").returncode == 0


def test_options_without_effect_are_told(memext, place):
    """A line on stderr, and the run goes on."""
    for words, naming in ((["--backend", "dram", "-d", place], "-d "), (["-d", place, "--threads", 400], "--threads 400")):
        for more in [], ["--dry-run"]:
            done = memext("run", *SMALL, *words, *more)
            assert done.returncode == 0 and len(done.stderr.splitlines()) == 1 and naming in done.stderr, done
        for more in [], ["--dry-run"]:
            done = memext("wavefront", "-n", 20, 20, "-k", 2, *words, *more)
            assert done.returncode == 0 and len(done.stderr.splitlines()) == 1 and naming in done.stderr, done
    assert memext("run", *SMALL, "--backend", "dram", "--threads", 1).stderr == "" and list(place.iterdir()) == []


# ------------------------------------------------------------------ places

def test_no_place(memext):
    memext.refused("run", *SMALL, "--backend", "aio", naming="-d PATH")


def test_a_path_that_does_not_exist(memext, place):
    for backend in ("mmap", "aio", "uring"):
        memext.refused("run", *SMALL, "-d", place / "absent" / "deep", "--backend", backend, naming="absent/deep")


def test_a_path_that_is_no_place(memext):
    memext.refused("run", *SMALL, "-d", "/dev/null", naming="/dev/null")


@needs_root
def test_a_read_only_file_system(memext, mounted):
    directory, _ = mounted(16 * MIB, options="ro")
    for backend in ("mmap", "aio", "uring"):
        memext.refused("run", *SMALL, "-d", directory, "--backend", backend, naming=[str(directory), "ead-only"])


@needs_root
def test_a_full_file_system(memext, mounted):
    """Buffers of 128 MiB do not go where 64 MiB are: refused with both figures, and nothing is left there."""
    directory, _ = mounted(64 * MIB)
    before = shutil.disk_usage(directory).free
    for backend in ("mmap", "aio", "uring"):
        memext.refused("run", *LARGE, "-d", directory, "--backend", backend, naming=[str(directory), "MiB"])
    assert shutil.disk_usage(directory).free == before


@needs_root
def test_a_device_that_is_too_small(memext, loop):
    device = loop(64 * MIB)
    memext.refused("run", *LARGE, "-d", device, naming=[device, "MiB"])


@needs_root
def test_a_device_that_is_too_small_for_the_faces(memext, loop):
    """Both Buffers fit, the side file does not: refused before anything is written; with the faces in DRAM it runs."""
    problem, plan = ["-n", 126, 62, 126, "-t", 16], "stream by=16 bt=8 slab=8 faces="
    ample = loop(256 * MIB)
    planned = memext.run(*problem, "--plan", plan + "side-file", "-d", ample, "--dry-run")
    buffers = 2 * -(-planned["layout"]["buffer_bytes"] // (2 * MIB)) * 2 * MIB
    device = loop(2 * MIB + buffers + planned["side_file_bytes"] // 2 // 4096 * 4096)
    memext.refused("run", *problem, "--plan", plan + "side-file", "-d", device, naming=[device, "MiB"])
    with open(device, "rb") as file:
        assert file.read(4096) == bytes(4096)
    assert memext.run(*problem, "--plan", plan + "dram", "-d", device, "--verify")["verified"] is True
    assert memext.run(*problem, "--plan", plan + "side-file", "-d", ample, "--verify")["verified"] is True


def test_memory_is_no_storage(memext):
    """Refused where O_DIRECT would pretend to reach a disk; a mapping works, and the report says what it is of."""
    for backend in ("aio", "uring"):
        memext.refused("run", *SMALL, "-d", "/dev/shm", "--backend", backend, naming="tmpfs")
    assert "tmpfs" in memext.run(*SMALL, "-d", "/dev/shm", "--backend", "mmap")["device"]["note"]


@pytest.mark.parametrize("backend", ["mmap", "aio", "uring"])
def test_a_foreign_file(memext, place, backend):
    """Left as it was without --force, used with it."""
    file = place / "thesis.txt"
    file.write_text("three years of work\n" * 1000)
    memext.refused("run", *SMALL, "-d", file, "--backend", backend, naming=["thesis.txt", "--force"])
    assert file.read_text() == "three years of work\n" * 1000
    memext.run(*SMALL, "-d", file, "--backend", backend, "--force")


@needs_root
def test_a_mounted_device(memext, mounted):
    directory, device = mounted(64 * MIB)
    (directory / "kept").write_text("kept")
    for backend in ("mmap", "aio", "uring"):
        memext.refused("run", *SMALL, "-d", device, "--backend", backend, naming=[device, "mounted"])
    sh("umount", directory)
    sh("mount", device, directory)
    assert (directory / "kept").read_text() == "kept"


@needs_root
@pytest.mark.parametrize("make, signature", [(["mkfs.ext4", "-q"], "ext4"), (["mkswap"], "swap")])
def test_a_device_with_a_signature(memext, loop, make, signature):
    device = loop(64 * MIB)
    sh(*make, device)
    memext.refused("run", *SMALL, "-d", device, naming=[device, signature, "--force"])
    assert sh("blkid", "-p", "-s", "TYPE", "-o", "value", device) == signature
    memext.run(*SMALL, "-d", device, "--force")


def test_a_store_in_use(memext, place):
    """The second of two memexts on one store is refused while the first runs: it holds the store when it commits to it."""
    first = subprocess.Popen([str(memext.program), "run", "-n", "126", "126", "126", "-t", "100000", "-d", str(place), "-q"])
    assert wait_until(lambda: committed(place / "memext.store"), "the first run commits", first)
    try:
        memext.refused("run", *SMALL, "-d", place, naming="memext.store")
    finally:
        first.send_signal(signal.SIGTERM)
        assert first.wait(timeout=900) == 5


# ------------------------------------------------------------------ memory

def test_blocks_that_exceed_the_budget(memext, place):
    memext.refused("run", *LARGE, "-d", place, "--dram", "32MiB", "--algorithm", "redundant", "--block", 126, 510, 7,
                   naming=["BY = 126, BZ = 510, BT = 7", "--dram"])


def test_a_grid_that_does_not_fit_in_dram(memext):
    memext.refused("run", *LARGE, "--backend", "dram", "--dram", "96MiB", naming="96 MiB")


def test_more_dram_than_there_is(memext, place):
    memext.refused("run", *SMALL, "-d", place, "--dram", "900TiB", naming="900 TiB")


def test_a_reserve_that_leaves_nothing(memext, place):
    memext.refused("run", *SMALL, "-d", place, "--dram", "64MiB", "--reserve", "64MiB", naming="64 MiB")


@needs_root
def test_locked_memory_beyond_the_limit(memext, build, open_place):
    """As a user without CAP_IPC_LOCK and 64 KiB of RLIMIT_MEMLOCK."""
    limits = lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
    options = dict(program=shutil.copy(build / "memext", open_place), user=65534, group=65534, extra_groups=[], preexec_fn=limits, cwd="/")
    memext.refused("run", *SMALL, "--backend", "dram", "--algorithm", "redundant", "--lock", naming="RLIMIT_MEMLOCK allows 64 KiB", **options)


# ------------------------------------------------------------------ .npy files

def fortran(grid):
    return numpy.asfortranarray(grid)


BAD_GRIDS = [
    ("order", fortran, "Fortran"),
    ("rank 2", lambda grid: grid[0], "dimension"),
    ("rank 4", lambda grid: grid[None], "dimension"),
    ("big endian", lambda grid: grid.astype(">f8"), ">f8"),
    ("integers", lambda grid: grid.astype("<i8"), "<i8"),
    ("half precision", lambda grid: grid.astype("<f2"), "<f2"),
    ("complex", lambda grid: grid.astype("<c16"), "<c16"),
    ("no interior", lambda grid: grid[:, :2, :], "no interior"),
]


@pytest.mark.parametrize("change, naming", [case[1:] for case in BAD_GRIDS], ids=[case[0] for case in BAD_GRIDS])
def test_grids_of_another_kind(memext, place, change, naming):
    numpy.save(place / "bad.npy", change(random_grid(5, 6, 7)))
    memext.refused("run", "--input", place / "bad.npy", "-t", 1, "-d", place, naming=["bad.npy", naming])


@pytest.mark.parametrize("keep", [0, 5, 60, 128, 1000])
def test_truncated_grids(memext, place, keep):
    numpy.save(place / "whole.npy", random_grid(5, 6, 7))
    (place / "cut.npy").write_bytes((place / "whole.npy").read_bytes()[:keep])
    memext.refused("run", "--input", place / "cut.npy", "-t", 1, "-d", place, naming="cut.npy")


def test_other_files_as_grids(memext, place):
    (place / "text.npy").write_text("not a grid\n" * 100)
    memext.refused("run", "--input", place / "text.npy", "-t", 1, "-d", place, naming="text.npy")
    memext.refused("run", "--input", place / "absent.npy", "-t", 1, "-d", place, naming="absent.npy")
    memext.refused("run", "--input", place, "-t", 1, "-d", place, naming=str(place))


def test_a_size_that_is_not_the_files(memext, place):
    numpy.save(place / "in.npy", random_grid(5, 6, 7))
    memext.refused("run", "--input", place / "in.npy", "-n", 7, 6, 5, "-t", 1, "-d", place, naming=["7 6 5", "5 6 7"])
    memext.refused("run", "--input", place / "in.npy", "--dtype", "f32", "-t", 1, "-d", place, naming="f32")


def test_an_output_that_cannot_be_written(memext, place):
    memext.refused("run", *SMALL, "-d", place, "--output", "/nowhere/out.npy", naming="/nowhere/out.npy")
    memext.refused("run", *SMALL, "-d", place, "--quiet", "--json", "/nowhere/report.json", naming="/nowhere/report.json")


# ------------------------------------------------------------------ options

@pytest.mark.parametrize("arguments, naming", [
    (["-n", 0, 5, 5, "-t", 1], "0"),
    (["-n", 5, "-t", 1], "needs 2 or 3 numbers, 1 given"),
    (["-n", 5, 5, "-t", 1], "-n 5 5"),
    (["-n", 5, 5, "five", "-t", 1], "five"),
    (["-n", 2**40, 2**40, 2**40, "-t", 1], str(2**40)),
    (["-t", 1], "-n"),
    (["-n", 5, 5, 5], "-t"),
    ([*SMALL[:5], -1], "-1"),
    ([*SMALL, "--backend", "tape"], "tape"),
    ([*SMALL, "--algorithm", "magic"], "magic"),
    ([*SMALL, "--tuner", "guess"], "guess"),
    ([*SMALL, "--engine", "steam"], "steam"),
    ([*SMALL, "--stencil", "star8"], "star8"),
    ([*SMALL, "--dtype", "f16"], "f16"),
    ([*SMALL, "--coef", "a,b"], "a,b"),
    ([*SMALL, "--init", "warm"], "warm"),
    ([*SMALL, "--advice", "wise"], "wise"),
    ([*SMALL, "--dram", "many"], "many"),
    ([*SMALL, "--dram", "-1GiB"], "-1GiB"),
    ([*SMALL, "--threads", 0], "0"),
    ([*SMALL, "--queue-depth", 5000], "5000"),
    ([*SMALL, "--block", 0, 5, 1], "0"),
    ([*SMALL, "--block", 5, 5], "block"),
    ([*SMALL, "--algorithm", "skewed", "--block", 4, 4, 7], "BT = 7"),
    ([*SMALL, "--plan", "nonsense"], "nonsense"),
    ([*SMALL, "--no-such-option"], "--no-such-option"),
    ([*SMALL, "stray"], "stray"),
    ([*SMALL, "--backend", "aio", "--algorithm", "direct"], "direct"),
    ([*SMALL, "--backend", "uring", "--algorithm", "direct-skewed"], "direct-skewed"),
])
def test_options(memext, place, arguments, naming):
    memext.refused("run", "-d", place, *arguments, naming=naming)
    assert list(place.iterdir()) == []


def test_commands(memext):
    memext.refused("fly", naming="fly")
    assert memext().returncode == 2


def test_what_cannot_be_resumed(memext, place):
    memext.refused("run", "--resume", "-d", place, naming=str(place))
    memext.refused("run", "--resume", "--backend", "dram", naming="dram")


def test_memory_for_a_verification(memext, place, tmp_path):
    """Known before the work; and one pass has so many levels, whatever memory there is."""
    numpy.save(tmp_path / "eps.npy", numpy.ones((12, 12, 12), "f4"))
    words = ["run", "--kernel", ROOT / "systems" / "fdtd.c", "--init", "random", "--field", f"eps={tmp_path}/eps.npy", "-n", 10, 10, 10, "-d", place, "--backend", "aio",
             "--verify", "--algorithm", "stream", "--quiet"]
    memext.refused(*words, "-t", 12, "--dram", "28MiB", naming=["verification needs", "--dram"])
    memext.refused(*words, "-t", 2000, "--in-place", naming=["2048", "4000", "--in-place or --verify"])
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("backend", ["uring", "mmap"])
def test_dry_run_refuses_what_does_not_fit(memext, place, backend):
    """A grid that the file system has no room for: the sentence of the run, and nothing is made."""
    free = shutil.disk_usage(place).free
    n = int((free / 8) ** (1 / 3)) + 100  # one Buffer would be as large as what is free; there are two
    side = int((free / 8) ** 0.5)  # of the wavefront's matrices, of which there are seven
    for words in ["run", "-n", n, n, n, "-t", 4, "--algorithm", "stream"], ["wavefront", "-n", side, side, "--iterations", 2]:
        said = [memext(*words, "-d", place, "--backend", backend, *more) for more in (["--dry-run"], [])]
        assert [done.returncode for done in said] == [2, 2] and "the Buffers need" in said[0].stderr
        first, second = (re.sub(r"has [0-9.]+ \w+ for them", "", done.stderr) for done in said)  # other programs write meanwhile
        assert first == second and list(place.iterdir()) == []


@pytest.mark.parametrize("backend, option", [
    ("dram", ["--force"]), ("dram", ["--keep"]), ("dram", ["--sqpoll"]), ("dram", ["--no-register"]), ("dram", ["--advice", "schedule"]), ("dram", ["--commit-every", 5]),
    ("aio", ["--sqpoll"]), ("uring", ["--advice", "random"]), ("aio", ["--workers", 2]), ("uring", ["--workers", 2])])  # fmt: skip
def test_option_without_effect_is_told_and_ignored(memext, place, backend, option):
    """So that a script can vary the backend."""
    words = ["run", *SMALL, "--backend", backend, *([] if backend == "dram" else ["-d", place])]
    done = memext(*words, *option)
    assert done.returncode == 0 and f"{option[0]} has no effect on backend {backend}" in done.stderr
    assert memext(*words, *option, "--quiet").stderr == ""


@pytest.mark.parametrize("option, engine, why", [
    (["--tile", 4, 2], "iblock", "with engine iblock: it is for engine tiled"), (["--column", 16], "iblock", "with engine iblock: it is for engine tiled"),
    (["--link", "10Gbit"], "tiled", "in a run of one process: it is for several ranks")])  # fmt: skip
def test_option_without_effect_in_the_plan(memext, place, option, engine, why):
    for words in (["run", *SMALL], ["tune", *SMALL]):
        words += ["-d", place, "--engine", engine]
        done = memext(*words, *option)
        assert done.returncode == 0 and f"{option[0]} has no effect {why}" in done.stderr, done.stderr
        assert "has no effect" not in memext(*words).stderr


@pytest.mark.parametrize("words", [["--engine", "tiled", "--tile", 4, 2], ["--engine", "tiled", "--column", 16], ["--ranks", 2, "--link", "10Gbit"], ["--accel", "host", "--tile", 4, 2]])
def test_options_that_have_an_effect_in_the_plan(memext, place, words):
    for done in (memext("tune", *SMALL, *words), memext("run", *SMALL, "-d", place, *words, "--dry-run")):
        assert done.returncode == 0 and "no effect" not in done.stderr, done.stderr


# ------------------------------------------------------------------ sentences

TABLE = '''#define MX_NAME "table"
#define MX_RADIUS 1
#define MX_STATE(F) F(u, double)
#include <memext/cell.h>
static const double weights[40] = {1, 2, 3};
static int behind; /* as what lies there may be: another value each time */
MX_CELL
SET(u, AT(u,0,0,0) * (X < 40 ? weights[X] : behind++));
MX_END
'''


def test_a_kernel_that_is_wrong_where_no_run_of_the_user_is(memext, tmp_path):
    """Without -n the coordinates that were tried stand behind what was found; with it, or where nothing was tried, they do not."""
    (tmp_path / "table.c").write_text(TABLE)
    done = memext.refused("kernel", "check", tmp_path / "table.c", naming=["X from 0 to 66, Y to 10 and Z to 8", "-n NX NY NZ"])
    assert len(done.stderr.splitlines()) == 1
    assert memext("kernel", "check", tmp_path / "table.c", "-n", 40, 9, 9).returncode == 0
    done = memext.refused("kernel", "check", tmp_path / "table.c", "-n", 50, 9, 9, naming="X = 4")
    assert "-n NX" not in done.stderr
    assert "-n NX" not in memext.refused("kernel", "check", tmp_path / "nothing.c", naming="nothing.c").stderr


@pytest.mark.parametrize("words, naming", [
    (["--plan", "stream by=-3"], "by must be an integer from 1 to 2^40"), (["--plan", "stream bt=0"], "bt must be an integer from 1 to 2^40"),
    (["--plan", "stream bt=99999999999999999999"], "bt must be an integer from 1 to 2^40"), (["--plan", "stream threads=0"], "threads must be an integer from 1 to"),
    (["--snapshot", "9223372036854775807:snap"], "a number of steps, from 1 to 2^40"), (["--snapshot", "1:snap:9223372036854775807"], "a number from 1 to 2^40")])
def test_the_limit_that_is_named_is_the_one_that_holds(memext, words, naming):
    done = memext.refused("run", *SMALL, "--backend", "dram", *words, naming=naming)
    assert "9223372036854775807" not in done.stderr.replace(" ".join(map(str, words)), "").replace(str(words[1]), "")


def test_a_way_out_is_one(memext, place):
    """The Python package reads no encoded cells either: the sentence names what does."""
    (place / "a.nrrd").write_bytes(b"NRRD0004\ntype: float\ndimension: 3\nsizes: 3 4 5\nencoding: gzip\nendian: little\n\n")
    done = memext.refused("run", "--input", place / "a.nrrd", "-t", 1, "-d", place, naming=["gzip", "unu save -e raw", "pynrrd"])
    assert "Python" not in done.stderr


def test_requests_that_no_transfer_can_have(memext, quick_place):
    for words in ([], ["--dry-run"], ["--backend", "dram"]):
        memext.refused("run", *SMALL, *(["-d", quick_place] if "--backend" not in words else []), *words, "--request-size", 512, naming=["--request-size 512", "4 KiB"])


def test_a_file_size_limit_is_an_error_and_no_signal(memext, quick_place):
    done = subprocess.run(["bash", "-c", 'ulimit -f 100; exec "$0" "$@"', memext.program, *map(str, ["run", "-n", 100, 100, 100, "-t", 3, "-d", quick_place])], capture_output=True, text=True)
    assert done.returncode in (2, 3) and "File too large" in done.stderr, done
    assert list(quick_place.iterdir()) == []


def test_what_calibration_cannot_do_is_said(memext, quick_place, tmp_path):
    """Rates that cannot be kept; --calibrate of a run that continues."""
    (tmp_path / "memext").touch()  # no directory
    done = memext("tune", *SMALL, "-d", quick_place, "--calibrate-seconds", 0.05, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert done.returncode == 0 and "not kept for later plans" in done.stderr, done.stderr
    memext.run(*SMALL, "-d", quick_place, "--keep")
    assert "--calibrate has no effect with --resume" in memext("run", "--resume", "-d", quick_place, "-t", 30, "--calibrate").stderr
