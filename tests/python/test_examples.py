# SPDX-License-Identifier: BSD-3-Clause
"""The example programs where the machine is not as one would like: no swap, no io_uring, no path."""
import ctypes
import struct
import subprocess

import pytest
from conftest import LIMIT_MEMORY, needs_root


@pytest.fixture(scope="session")
def example(build):
    def run(name, *arguments, prefix=(), **options):
        words = [*map(str, prefix), str(build / f"example_{name}"), *map(str, arguments)]
        return subprocess.run(words, capture_output=True, text=True, timeout=900, **options)
    return run


def without_io_uring():
    """io_uring_setup fails with EPERM in this process, as container runtimes have it."""
    LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF: the syscall number decides
    ALLOW, EPERM = 0x7fff0000, 0x00050001
    program = [(LOAD, 0, 0, 0), (JUMP_EQUAL, 0, 1, 425), (RETURN, 0, 0, EPERM), (RETURN, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    filters = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, filters, 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


@needs_root
def test_jacobi_on_swap(example, place):
    limit = [LIMIT_MEMORY, "256MiB", "--keep-cache", "--swap", "64MiB", "--swap-dir", place, "--"]
    done = example("jacobi", "swap", prefix=limit)
    assert done.returncode == 0 and "equal" in done.stdout, done.stderr


def test_where_io_uring_is_forbidden_the_next_backend_is_taken(example, place):
    done = example("choose_backend", place, "uring", "aio", preexec_fn=without_io_uring)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("uring: ") and "using aio on" in done.stdout


def test_a_wrong_path_is_no_reason_to_try_the_next(example, place):
    done = example("choose_backend", place / "absent" / "deep", "uring", "aio")
    assert done.returncode == 1 and "absent" in done.stdout and "aio:" not in done.stdout


def test_nothing_stays_in_the_directory(example, place):
    assert example("fill_and_sum", place).returncode == 0
    assert list(place.iterdir()) == []
