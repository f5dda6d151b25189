# SPDX-License-Identifier: BSD-3-Clause
"""The commands that memext info prints work as they are printed, in a shell."""
import os
import pathlib
import re
import shlex
import subprocess

import numpy
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STOPPED = ["--backend", "fault:uring", "--commit-every", 0, "--quiet"]


def ways(memext, place, *more):
    """{"resume": command, "export": command} of info."""
    done = memext("info", place, *more)
    assert done.returncode == 0, done.stderr
    return {line[:11].strip(): line[11:] for line in done.stdout.splitlines() if line[:11].strip() in ("resume", "export")}


def shell(memext, command, folder):
    environment = {**os.environ, "PATH": f"{pathlib.Path(memext.program).parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (command, done.stderr)


def interrupt(memext, *words):
    """A run that ends with an error of a transfer once it has committed."""
    for calls in range(60, 500, 10):  # plan and ranks decide how many calls there are from the first commit to the end
        done = memext("run", *words, *STOPPED, "--fault", f"fail_after={calls}", "--force")
        assert done.returncode in (0, 3), done.stderr
        if done.returncode == 3 and re.search(r"step [1-9]\d* of \d+ is committed", done.stderr):
            return
    pytest.fail("no run was interrupted after a commit")


@pytest.fixture
def diffusion(tmp_path):
    for name, dtype in ("u", "f8"), ("k", "f4"):
        numpy.save(tmp_path / f"{name}.npy", numpy.random.default_rng(3).random((66, 34, 34)).astype(dtype))
    return ["--kernel", ROOT / "systems" / "diffusion.c", "--input", f"u={tmp_path}/u.npy", "--field", f"k={tmp_path}/k.npy", "-t", 60]


@pytest.mark.parametrize("name", ["plain", "a b", "it's $HOME; `x`", "*"])
@pytest.mark.parametrize("kernel", [False, True])
def test_one_store(memext, quick_place, tmp_path, diffusion, name, kernel):
    """Whatever its directory is called; the export is the state that was committed, and the resumed run leaves no store."""
    place = quick_place / name
    place.mkdir()
    interrupt(memext, *(diffusion if kernel else ["-n", 32, 32, 64, "-t", 60]), "--dram", "28MiB", "--plan", "stream by=32 bt=2", "-d", place)
    said = ways(memext, place)
    assert said["resume"].endswith(" --dram 28MiB") and ways(memext, place, "--dram", "10001KiB")["resume"].endswith(" --dram 10001KiB")
    (tmp_path / "out").mkdir()
    shell(memext, said["export"], tmp_path / "out")
    assert numpy.load(tmp_path / "out" / ("u.npy" if kernel else "FILE.npy")).shape == (66, 34, 34)
    shell(memext, said["resume"] + " --quiet", tmp_path)
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("dram", [[], ["--dram", "400MiB"]])
def test_ranks_with_fields(memext, quick_place, tmp_path, diffusion, dram):
    """They go on with more DRAM too: sweeps stay as long as the planes of C in their stores allow."""
    interrupt(memext, *diffusion, "--field-copy", "--dram", "27MiB", "--ranks", 2, "-d", quick_place)
    said = ways(memext, quick_place, *dram)
    assert said["resume"].endswith(" --dram 400MiB" if dram else " --dram 27MiB") and " --ranks 2 " in said["resume"]
    (tmp_path / "out").mkdir()
    shell(memext, said["export"], tmp_path / "out")
    shell(memext, said["resume"] + " --quiet --output out/end.npy", tmp_path)
    wanted = memext.run(*diffusion, "--backend", "dram", "--output", tmp_path / "wanted.npy")
    assert wanted["status"] == "done" and (tmp_path / "out" / "end.npy").read_bytes() == (tmp_path / "wanted.npy").read_bytes()
    assert list(quick_place.iterdir()) == []


def test_quoting(memext, quick_place):
    """A word is quoted where a shell would read it otherwise, and only there."""
    place = quick_place / "a'b"
    place.mkdir()
    assert memext("run", "-n", 10, 10, 10, "-t", 2, "-d", place, "--keep", "--quiet").returncode == 0
    words = shlex.split(ways(memext, place)["export"])
    assert words == ["memext", "export", str(place), "-o", "FILE.npy"]
