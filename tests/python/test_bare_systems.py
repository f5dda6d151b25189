# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F401, F811 - fixtures
"""Systems that lack something: locks of the file system, /proc, threads, address space. The right bits, or a sentence that names it and the way out."""
import json
import os
import resource
import shutil
import subprocess
import sys

import numpy
import pytest
from conftest import IS_ROOT, ROOT, needs_root
from package import cache, environment, mx  # fixtures

GRID = ["-n", 60, 61, 62, "-t", 5, "--init", "random", "--threads", 4]
NO_LOCKS = {"ENOSYS": 38, "EOPNOTSUPP": 95, "ENOTSUPP": 524, "ENOLCK": 37}


@pytest.fixture(scope="module")
def whole(memext):
    return memext.run(*GRID, "--backend", "dram")["checksum"]


@pytest.fixture(scope="module")
def without_locks(tmp_path_factory):
    """{name of an error: environment in which every flock gives it}"""
    folder, found = tmp_path_factory.mktemp("locks"), {}
    for name, number in NO_LOCKS.items():
        source, library = folder / f"{name}.c", folder / f"{name}.so"
        source.write_text(f"#include <errno.h>\nint flock(int fd, int how) {{ (void)fd, (void)how; errno = {number}; return -1; }}\n")
        done = subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library, source], capture_output=True)
        if done.returncode != 0:
            pytest.skip("no compiler for a library that replaces flock")
        found[name] = {**os.environ, "LD_PRELOAD": str(library)}
    return found


@pytest.mark.parametrize("name", NO_LOCKS)
def test_a_file_system_without_locks_is_named_with_its_switch(memext, quick_place, tmp_path, whole, without_locks, name):
    env = without_locks[name]
    memext.refused("run", *GRID, "-d", quick_place, naming=["has no locks", "--no-lock", str(quick_place)], env=env)
    assert not list(quick_place.iterdir())
    words = ["-d", quick_place, "--no-lock", "--plan", "stream by=61 bt=1", "--commit-every", 0]
    assert memext.run(*GRID, *words, "--keep", env=env)["checksum"] == whole
    memext.refused("export", quick_place, "-o", tmp_path / "u.npy", naming=["has no locks", "--no-lock"], env=env)
    done = memext("export", quick_place, "-o", tmp_path / "u.npy", "--no-lock", env=env)
    assert done.returncode == 0 and memext("info", quick_place, env=env).returncode == 0, done.stderr
    assert memext.run("--resume", "-d", quick_place, "-t", 6, "--no-lock", "--keep", env=env)["problem"]["nt"] == 6
    if name == "ENOSYS":  # stores of another cut are removed all the same
        assert memext.run("--resume", "-d", quick_place, "-t", 7, "--no-lock", "--keep", "--ranks", 2, env=env)["problem"]["nt"] == 7
        assert {p.name for p in quick_place.iterdir()} == {"rank-0", "rank-1"}


def test_a_lock_that_is_held_is_no_lack_of_locks(memext, quick_place):
    """--no-lock does not pass over a lock."""
    import fcntl
    with open(quick_place / "memext.store", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        memext.refused("run", *GRID, "-d", quick_place, "--no-lock", naming="in use by another memext")


def test_python_without_locks(mx, environment, quick_place, without_locks):
    program = """
import sys, memext as mx
for words, expected in (({}, "no_lock=True"), ({"no_lock": True}, None)):
    try:
        with mx.Run(u="random", shape=(8, 8, 8), device=sys.argv[1], dram="64MiB", **words) as run:
            run.advance(1)
    except mx.MemextError as error:
        assert expected and expected in str(error), error
    else:
        assert expected is None
"""
    done = subprocess.run([environment, "-c", program, quick_place], capture_output=True, text=True, timeout=600, env=without_locks["EOPNOTSUPP"])
    assert done.returncode == 0 and not list(quick_place.iterdir()), done.stderr


@needs_root
def test_without_proc(memext, quick_place, tmp_path, whole):
    """The same bits, outputs and stores: what /proc would have given is found otherwise."""
    script = f"mount -t tmpfs none /proc 2>/dev/null || exit 77; cd {tmp_path}; exec \"$@\""

    def bare(*words):
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", str(memext.program), *map(str, words)], capture_output=True, text=True, timeout=900)
        if done.returncode in (1, 77) and "memext" not in done.stderr:
            pytest.skip(f"no namespace without /proc can be had: {done.stderr.strip()}")
        assert done.returncode == 0, done.stderr
        return done.stdout
    for backend in ("uring", "aio", "mmap"):
        words = ["--backend", backend, "-d", quick_place, "--output", f"{backend}.npy", "--json", f"{backend}.json", "--quiet", "--snapshot", f"2:{backend}"]
        bare("run", *GRID, *words, "--verify")
        report = json.loads((tmp_path / f"{backend}.json").read_text())
        assert report["checksum"] in (whole, None) and report["verified"] and (tmp_path / backend / "u-000004.npy").exists()
    bare("run", *GRID, "-d", quick_place, "--keep", "--quiet", "--integrity")
    bare("run", "--resume", "-d", quick_place, "-t", 7, "--quiet")
    bare("export", quick_place, "-o", "u.npy")
    first = numpy.load(tmp_path / "uring.npy")
    assert all(numpy.array_equal(numpy.load(tmp_path / f"{b}.npy"), first) for b in ("aio", "mmap")) and numpy.load(tmp_path / "u.npy").shape == first.shape
    assert "done, kept" in bare("info", quick_place)


@needs_root
@pytest.mark.parametrize("backend, user", [("uring", 65531), ("mmap", 65532)])  # each its own: the limit counts all processes of a user
def test_too_few_processes_are_named(memext, open_place, backend, user, whole):
    """ulimit -u from too few on: each time the sentence says which limit; nothing ends without one, no library by itself."""
    place, failed, program = open_place / "place", 0, shutil.copy(memext.program, open_place)  # the tree may be closed to others
    place.mkdir()
    place.chmod(0o777)
    for most in (1, 2, 3, 4, 6, 8, 10, 12, 13, 14, 16, 18, 24):
        for path in place.iterdir():
            path.unlink()
        done = subprocess.run(["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", "prlimit", f"--nproc={most}",
                               program, "run",
                               *map(str, [*GRID, "-d", place, "--backend", backend, "--verify", "--quiet"])], capture_output=True, text=True, timeout=900)
        assert done.returncode in (0, 2, 3), (most, done.stderr)
        assert done.returncode == 0 or f"{most} processes and threads; raise the limit (ulimit -u)" in done.stderr, (most, done.stderr)
        failed += done.returncode != 0
    assert failed > 4 and done.returncode == 0


def test_a_full_address_space_is_named(memext, quick_place):
    """ulimit -v: a run, or a sentence with the limit or with what did not fit."""
    named = 0
    for mib in (40, 50, 60, 80, 100, 140, 180, 200, 240, 300, 400):
        for path in quick_place.iterdir():
            path.unlink()

        def limit(mib=mib):
            resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))
        done = memext("run", *GRID, "-d", quick_place, "--quiet", preexec_fn=limit)
        assert done.returncode in (0, 2, 3, 127), (mib, done.stderr)
        if done.returncode in (2, 3):
            assert "ulimit -v" in done.stderr or "memory" in done.stderr, (mib, done.stderr)
            named += "ulimit -v" in done.stderr
    assert named > 0


@needs_root
def test_kernel_of_another_processor(build, tmp_path):
    """A compiled kernel is not taken by a processor of the same name that has fewer instructions."""
    cpu = open("/proc/cpuinfo").read()
    word = "flags" if "\nflags" in cpu else "Features"
    (tmp_path / "less").write_text("".join(line.replace(" ssse3", "").replace(" asimd", "") if line.startswith(word) else line for line in cpu.splitlines(keepends=True)))
    assert (tmp_path / "less").read_text() != cpu
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = f"{build}/memext kernel build {ROOT}/systems/wave.c"
    for words in ([], ["unshare", "-m", "sh", "-c", f"mount --bind {tmp_path}/less /proc/cpuinfo && {command}"], ["sh", "-c", command]):
        done = subprocess.run(words or ["sh", "-c", command], env=environment, capture_output=True, text=True, timeout=600)
        if done.returncode != 0 and "mount" in done.stderr:
            pytest.skip(f"no mounts here: {done.stderr.strip()}")
        assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "cache").rglob("*.so"))) == 2
