# SPDX-License-Identifier: BSD-3-Clause
"""Objects in the cache of kernels: who makes them, which headers they are of, and caches that keep nothing."""
import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import needs_root, unmount, wait_until
from small_kernels import GOOD, jacobi


def command_lines():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_text()


def test_one_compiles_for_all(memext, tmp_path):
    """Ranks need the same kernel at the same time: one compiles it, and the others wait. They end when they are asked to, and nothing is left."""
    compiler, log, go, cache = tmp_path / "compiler", tmp_path / "log", tmp_path / "go", tmp_path / "cache"
    compiler.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec cc --version\ncase "$*" in *" -M "*) exec cc "$@" ;; esac\necho x >>{log}\nwhile [ ! -e {go} ]; do sleep 0.01; done\nexec cc "$@"\n')
    compiler.chmod(0o755)
    (tmp_path / "kernel.c").write_text(GOOD)
    cache.mkdir()
    env = {**os.environ, "CC": str(compiler), "XDG_CACHE_HOME": str(cache), "MEMEXT_ROWS": "2n"}
    words = [str(w) for w in [memext.program, "run", "--kernel", tmp_path / "kernel.c", "--init", "random", "-n", 9, 9, 20, "-t", 3, "--ranks", 3,
                              "--backend", "dram", "--dram", "64MiB", "--threads", 1, "--quiet"]]
    run = subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_until(lambda: log.exists() and log.read_text() == "x\n", "a compilation", run)
    os.killpg(run.pid, signal.SIGINT)
    err = run.communicate(timeout=600)[1]
    assert run.returncode == 5 and "interrupted" in err, err
    wait_until(lambda: not any(str(compiler) in line for line in command_lines()), "the compiler's end")
    assert list((cache / "memext" / "kernels").iterdir()) == []
    go.touch(), log.unlink()
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and log.read_text() == "x\n", (done.stderr, log.read_text())
    assert [path.suffix for path in (cache / "memext" / "kernels").iterdir()] == [".so"]


@pytest.mark.parametrize("how", ["C_INCLUDE_PATH", "CPATH", "-isystem DIR", "-isystemDIR", "-idirafter DIR", "-IDIR"])
def test_an_object_does_not_outlive_a_header(memext, tmp_path, how):
    """A header that is not beside the kernel is refused, or the kernel is compiled again where it has changed, or is another one."""
    (tmp_path / "k.c").write_text("#include <rock.h>\n" + jacobi("SET(u, ROCK * AT(u, 0, 0, 0));"))

    def build(folder):
        own = {how: str(tmp_path / folder)} if how.endswith("PATH") else {"CC": "cc " + how.replace("DIR", str(tmp_path / folder))}
        return memext("kernel", "build", tmp_path / "k.c", env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), **own})

    for folder in ("first", "second of two" if how == "C_INCLUDE_PATH" else "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rock.h").write_text("#define ROCK 0.5\n")
        done = build(folder)
        if how in ("CPATH", "-IDIR"):
            assert done.returncode == 2 and "includes" in done.stderr and "rock.h" in done.stderr, done.stderr
            continue
        assert "compiled by" in done.stdout and "compiled by" not in build(folder).stdout, done.stderr
        (tmp_path / folder / "rock.h").write_text("#define ROCK 0.25\n")
        assert "compiled by" in build(folder).stdout and "compiled by" not in build(folder).stdout


def test_a_header_that_changes_during_a_compilation(memext, tmp_path):
    """The compiler may have read either text, so the kernel is refused, and nothing is kept. So it is if another header of the same text is found first now."""
    (tmp_path / "k.c").write_text("#include <rock.h>\n" + jacobi("SET(u, ROCK * AT(u, 0, 0, 0));"))
    header, changes = tmp_path / "inc" / "rock.h", tmp_path / "changes"
    header.parent.mkdir()
    header.write_text("#define ROCK 0.5\n")
    compiler = tmp_path / "cc"
    first = tmp_path / "first" / "rock.h"
    first.parent.mkdir()
    compiler.write_text(f'#!/bin/sh\ncc -isystem "{first.parent}" -isystem "{header.parent}" "$@" || exit 1\ncase "$*" in *-MMD*) if [ -e "{changes}" ]; then sh "{changes}"; fi ;; esac\n')
    compiler.chmod(0o700)

    def build():
        return memext("kernel", "build", tmp_path / "k.c", env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "CC": str(compiler)})

    for change in (f'echo "#define ROCK 0.25" > "{header}"', f'cp "{header}" "{first}"', f'rm "{header}"'):
        changes.write_text(change)
        done = build()
        assert done.returncode == 2 and "has changed while it was compiled: start again" in done.stderr, done.stderr
        assert list((tmp_path / "cache" / "memext" / "kernels").iterdir()) == []
        changes.unlink()
        first.unlink(missing_ok=True)
        header.write_text("#define ROCK 0.5\n")
    assert "compiled by" in build().stdout and "compiled by" not in build().stdout


def test_headers_of_relative_directories(memext, tmp_path):
    """They are those of the directory that the command is in; a name may have what make would take for something else."""
    (tmp_path / "k.c").write_text("#include <rock$1:2.h>\n" + jacobi("SET(u, ROCK * AT(u, 0, 0, 0));"))

    def compiles(folder):
        done = subprocess.run([memext.program, "kernel", "build", tmp_path / "k.c"], cwd=tmp_path / folder, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "CC": "cc -isystem inc"},
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return "compiled by" in done.stdout

    for folder in ("first", "second"):
        (tmp_path / folder / "inc").mkdir(parents=True)
        (tmp_path / folder / "inc" / "rock$1:2.h").write_text("#define ROCK 0.5\n")
        assert compiles(folder) and not compiles(folder)
        (tmp_path / folder / "inc" / "rock$1:2.h").write_text("#define ROCK 0.25\n")
        assert compiles(folder) and not compiles(folder)


def test_objects_are_found_again_whatever_the_umask(memext, tmp_path):
    """umask 002 is a usual one: directories and objects that others could write to are refused, so memext must not make them."""
    (tmp_path / "k.c").write_text(GOOD)
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def said(*words):
        done = subprocess.run(["sh", "-c", 'umask 002; exec "$0" "$@"', memext.program, *map(str, words)], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    said("tune", "-n", 30, 30, 30, "-t", 4, "-d", tmp_path, "--calibrate-seconds", 0.05)  # which makes the directory above the kernels
    assert "compiled by" in said("kernel", "build", tmp_path / "k.c") and "compiled by" not in said("kernel", "build", tmp_path / "k.c")


@needs_root
def test_a_full_cache_keeps_nothing(memext, tmp_path):
    (tmp_path / "k.c").write_text(GOOD)
    (tmp_path / "small").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "memext-test", tmp_path / "small"], check=True)
    try:
        done = memext("kernel", "build", tmp_path / "k.c", env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "small")})
        assert done.returncode == 0 and "compiled by" in done.stdout, done.stderr
    finally:
        unmount(tmp_path / "small")
