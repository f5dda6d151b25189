# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are needed: compilers, interpreters, UMap."""
import os
import shutil
import subprocess
import sys

from rivalry.table import HERE


class Failed(Exception):
    """One sentence."""


class OutOfTime(Exception):
    """--minutes are over."""


def say(text):
    print(f"rivals: {text}", file=sys.stderr, flush=True)


def command(words, **more):
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, **more)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, words))}: {(done.stdout.strip().splitlines() or ['no message'])[-1]} (exit status {done.returncode})")
    return done.stdout


def python_of(o):
    """The interpreter of the rivals, in an environment of its own with the versions of requirements.txt."""
    if o.python:
        return o.python
    folder, wanted = os.path.join(o.tools, "venv"), os.path.join(HERE, "requirements.txt")
    found, ready = os.path.join(folder, "bin", "python"), os.path.join(folder, "requirements.txt")
    same = os.path.exists(ready) and open(ready).read() == open(wanted).read()
    if not same:
        say(f"making a virtual environment in {folder}")
        shutil.rmtree(folder, ignore_errors=True)
        try:
            command([sys.executable, "-m", "venv", folder])
            command([found, "-m", "pip", "install", "--disable-pip-version-check", "-q", "-r", wanted])
        except Failed as error:
            say(f"{error}; {sys.executable} is used with what it has")
            return sys.executable
        shutil.copy(wanted, ready)
    return found


def umap_library(prefix):
    """The folder of libumap.so below PREFIX, where UMap is installed, or Failed."""
    if not os.path.exists(os.path.join(prefix, "include", "umap", "umap.h")):
        raise Failed(f"{prefix} holds no include/umap/umap.h: give the prefix that UMap was installed in")
    for name in ("lib", "lib64"):
        if os.path.exists(os.path.join(prefix, name, "libumap.so")):
            return os.path.join(prefix, name)
    raise Failed(f"{prefix} holds neither lib/libumap.so nor lib64/libumap.so: give the prefix that UMap was installed in")
