# SPDX-License-Identifier: BSD-3-Clause
"""Words that name files and places: a place exists or is named as a store, what is no file or storage is refused at once by every option,
and a signal ends a command that still prepares."""
import ctypes
import os
import platform
import signal
import socket
import struct
import subprocess

import pytest
from conftest import ROOT, wait_until

GRID = ["-n", 14, 12, 10, "-t", 3]
WAVES = ["wavefront", "-n", 16, 16, "-k", 2]
KERNEL = ROOT / "systems" / "diffusion.c"


@pytest.fixture
def place(quick_place):
    return quick_place


# ------------------------------------------------------------------ places

@pytest.mark.parametrize("words", [["run", *GRID], ["run", *GRID, "--dry-run"], ["run", *GRID, "--backend", "mmap"], ["run", *GRID, "--ranks", 2], ["tune", *GRID],
                                   WAVES, [*WAVES, "--dry-run"], ["info"]], ids=lambda words: " ".join(map(str, words)))
@pytest.mark.parametrize("name", ["absent", "absent/", "absent/deep", "absent/deep.memext", "memext", ".memext"])
def test_a_place_that_is_absent(memext, place, words, name):
    """A directory that is missing does not become a file."""
    memext.refused(*words, "-d", f"{place}/{name}", naming="absent" if "absent" in name else name)
    assert os.listdir(place) == []


@pytest.mark.parametrize("words", [["run", *GRID, "-q"], ["run", *GRID, "-q", "--backend", "mmap"], [*WAVES, "-q"]], ids=lambda words: " ".join(map(str, words)))
@pytest.mark.parametrize("name", ["new.memext", "new.store", "a b.memext"])
def test_a_new_store_is_named_so(memext, place, words, name):
    assert memext(*words, "-d", place / name, "--keep").returncode == 0 and os.listdir(place) == [name]
    assert memext(*words, "-d", place / name, "--force", "--keep").returncode == 0
    os.rename(place / name, place / "renamed")
    assert memext(*words, "-d", place / "renamed", "--force").returncode == 0  # what exists has any name


def test_a_place_of_ranks(memext, place):
    """%r at the end names directories, which are made; else each is a place like any other."""
    assert memext("run", *GRID, "--ranks", 2, "-q", "-d", place / "%r.memext").returncode == 0
    assert memext("run", *GRID, "--ranks", 2, "-q", "-d", place / "own-%r").returncode == 0
    before = sorted(os.listdir(place))
    done = memext("run", *GRID, "--ranks", 2, "-q", "-d", place / "own-%r.bin")
    assert done.returncode == 2 and "no such place" in done.stderr and sorted(os.listdir(place)) == before


# ------------------------------------------------------------------ what is no file

ODD = ["pipe", "socket", "device", "terminal"]


@pytest.fixture
def odd(place, request):
    folder = place / "odd"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "socket"))
    os.symlink("/dev/zero", folder / "device")
    leader, follower = os.openpty()
    os.symlink(os.ttyname(follower), folder / "terminal")
    yield folder / request.param
    os.close(leader), os.close(follower)


@pytest.mark.parametrize("odd", ODD, indirect=True)
def test_what_is_no_file_is_refused_at_once(memext, place, odd):
    """Nobody waits for the other end of a pipe or for what a user types, whichever option names it; nothing is left."""
    own = place / "own"
    own.mkdir()
    (place / "points").write_text("u 1 1 1\n")
    (place / "field.nhdr").write_text(f"NRRD0004\ntype: double\ndimension: 3\nsizes: 16 14 12\nencoding: raw\nendian: little\ndata file: {odd}\n")
    run, kernel = ["run", *GRID, "-d", own, "-q"], ["run", "--kernel", KERNEL, *GRID, "-d", own, "-q"]
    cases = [["run", *GRID, "-d", odd], [*run, "--plan", odd], [*run, "--kernel", odd], [*run, "--sources", odd], [*run, "--source", f"u@1,1,1={odd}"],
             [*run, "--probes", odd, "--probes-out", own / "t.npy"], [*run, "--probes", place / "points", "--probes-out", odd],
             [*run, "--probes", place / "points", "--probes-out", odd, "--overwrite"], [*run[:1], "-t", 3, "-d", own, "--input", odd], [*run, "--input", f"{odd},f64"],
             ["run", "-t", 3, "-d", own, "--input", place / "field.nhdr"], [*kernel, "--input", f"u={odd}"], [*kernel, "--field", f"k={odd}"],
             [*kernel, "--field", f"k={odd},f64"], [*kernel, "--output", f"u={odd}"], [*run, "-o", odd], [*run, "-o", odd, "--overwrite"], [*run, "--json", odd],
             [*run, "--timeline", odd], [*run, "--trace", odd], [*run, "--snapshot", f"1:{odd}"], ["run", "--resume", "-d", odd],
             ["tune", *GRID, "-d", odd], ["tune", *GRID, "--json", odd], ["tune", *GRID, "--topology", odd], ["tune", "-t", 3, "--input", odd],
             ["tune", "--wavefront", *WAVES[1:], "--json", odd], ["info", odd], ["info", "-d", odd], ["info", "--json", odd],
             ["export", odd, "-o", own / "r.npy"], ["export", own, "-o", odd], ["kernel", "check", odd],
             [*WAVES, "-d", odd], [*WAVES, "-d", own, "--input", f"za={odd}"], [*WAVES, "-d", own, "--output", f"za={odd}"], [*WAVES, "-d", own, "--json", odd],
             [*WAVES, "-d", own, "--timeline", odd], [*WAVES, "-d", own, "--trace", odd]]
    noted = place / "noted"
    noted.mkdir()
    (noted / "memext.snapshots").symlink_to(odd)
    cases.append([*run, "--snapshot", f"1:{noted}"])
    for words in cases:
        done = memext(*words, timeout=60)
        assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1, (words, done)
        assert os.listdir(own) == [], words


@pytest.mark.parametrize("odd", ["pipe"], indirect=True)
def test_a_kernel_that_is_a_pipe(memext, place, odd):
    """With the right end of its name, behind a link or not."""
    for name in "k.c", "k.so":
        os.symlink(odd, place / name)
        memext.refused("kernel", "check", place / name, naming="pipe")
        memext.refused("run", *GRID, "-d", place, "--kernel", place / name, naming="pipe")


# ------------------------------------------------------------------ signals

def test_signals_end_what_still_prepares(memext, place, tmp_path):
    """A compiler that never ends stands for whatever a command can wait for: one signal ends each of them, with 5, and leaves nothing in the place."""
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\ntouch "$STARTED-$$"\nexec tail --pid=$PPID -f /dev/null\n')
    compiler.chmod(0o755)
    run = [*GRID, "--kernel", KERNEL]
    commands = [["run", *run, "-d", place], ["run", *run, "-d", place, "--json", tmp_path / "r.json"], ["run", *run, "-d", place, "--ranks", 2],
                ["tune", *run, "-d", place], ["tune", *run], ["kernel", "build", KERNEL]]
    started = []
    for number, (words, wish) in enumerate((words, wish) for words in commands for wish in (signal.SIGTERM, signal.SIGINT)):
        own = {**os.environ, "CC": str(compiler), "XDG_CACHE_HOME": str(tmp_path / f"cache-{number}"), "STARTED": str(tmp_path / f"started-{number}")}
        process = subprocess.Popen([memext.program, *map(str, words)], env=own, stderr=subprocess.PIPE, text=True)
        ranks = 2 if "--ranks" in words else 1
        started.append((words, wish, process, lambda number=number, ranks=ranks: len(list(tmp_path.glob(f"started-{number}-*"))) >= ranks))
    for words, wish, process, waits in started:
        wait_until(waits, "the compiler", process)
        process.send_signal(wish)
    for words, wish, process, _ in started:
        _, said = process.communicate(timeout=600)
        assert process.returncode == 5 and "interrupted" in said, (words, wish, process.returncode, said)
    assert [name for name in os.listdir(place) if not name.startswith("rank-")] == [] and not (tmp_path / "r.json").exists()


def forbid(number):
    """In the child: the system call fails with EPERM, as a filter of a container lets it."""
    filters = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
    code = b"".join(struct.pack("HBBI", *f) for f in filters)
    libc, text = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(filters), ctypes.addressof(text)))

    def before(kept=text):
        if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.byref(program), 0, 0) != 0:
            os._exit(77)
    return before


def test_a_question_that_is_forbidden(memext, place):
    """hwloc asks on which cores it may run until it is told: it is not asked where the system does not tell."""
    number = {"x86_64": 204, "aarch64": 123}.get(platform.machine())
    if number is None:
        pytest.skip(f"the number of sched_getaffinity on {platform.machine()} is not known here")
    for words in (["run", *GRID, "-d", place], ["run", *GRID, "-d", place, "--dry-run"], ["tune", *GRID], ["info"], [*WAVES, "-d", place], ["tune", "--wavefront", *WAVES[1:]]):
        done = memext(*words, preexec_fn=forbid(number), timeout=60)
        if done.returncode == 77:
            pytest.skip("no filter of system calls can be set here")
        if "AddressSanitizer: CHECK failed" in done.stderr:
            pytest.skip("AddressSanitizer itself cannot do without this system call")
        assert done.returncode == 2 and "sched_getaffinity" in done.stderr and os.listdir(place) == [], (words, done)
