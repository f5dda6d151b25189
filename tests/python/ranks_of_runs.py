# SPDX-License-Identifier: BSD-3-Clause
"""Runs of several ranks: how they are started and ended, and what their tests compare with."""
import contextlib
import json
import os
import shutil
import signal

import pytest

NX, NY, NZ, NT = 21, 18, 53, 17
GRID = ["-n", NX, NY, NZ, "-t", NT]
PLANS = {
    "stream": ["--algorithm", "stream", "--block", NY, NZ, 4],
    "strips": ["--algorithm", "stream", "--block", 7, NZ, 4],
    "side-file": ["--plan", "stream by=7 bt=3 slab=2 faces=side-file"],
    "iblock": ["--algorithm", "stream", "--engine", "iblock", "--block", NY, NZ, 3],
    "redundant": ["--algorithm", "redundant", "--block", 7, 5, 4],
}
EACH = ["--threads", 1, "--dram", "64MiB"]
MPIS = [mpi for mpi in ["openmpi", "mpich"] if shutil.which(f"mpirun.{mpi}")]


def under(build, mpi, n):
    """For memext and memext.run: n ranks of an mpirun."""
    if not (build / f"memext-{mpi}.so").exists():
        pytest.skip(f"memext was built without {mpi}")
    more = ["--oversubscribe", "--bind-to", "none"] if mpi == "openmpi" else []
    return {"prefix": [f"mpirun.{mpi}", "-n", n, *more], "env": {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}}


def kill(rank):
    """Kills a rank that may have ended, and that its run has waited for then."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(rank, signal.SIGKILL)


def end_of(run, victim):
    """Kills a rank of a run that may have ended (0: none). True with what was said if that ended all; False if the run was done before."""
    if victim and run.poll() is None:
        kill(victim)
    err = run.communicate(timeout=600)[1]
    assert run.returncode in (0, 128 + signal.SIGKILL), err
    return run.returncode != 0, err


def ranks(memext, place, n, *words, **more):
    return memext.run("-d", place, "--ranks", n, *EACH, *words, **more)


def alone(memext, *words):
    return memext.run(*words, "--backend", "dram", "--algorithm", "direct", "--engine", "iblock", "--threads", 1)


def check_bytes(result, n):
    """What was read, written and sent by each rank is what its plan says."""
    each = result["ranks"]["each"]
    assert [one["rank"] for one in each] == list(range(n))
    assert sum(one["planes"] for one in each) == result["problem"]["nz"]
    for one in each:
        for kind in ["read", "write", "sent"]:
            assert one[f"{kind}_bytes"] == one[f"predicted_{kind}_bytes"], (one, kind)
    assert sum(one["sent_bytes"] for one in each) == sum(one["received_bytes"] for one in each) > 0


@pytest.fixture
def place(quick_place):
    return quick_place


@pytest.fixture(scope="module")
def whole(memext):
    return alone(memext, *GRID)["checksum"]


def files_of(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name.endswith(".npy")}


def steps_of(memext, place, n):
    """Committed steps of the stores of the ranks; -1: there is none, or it has no note."""
    found = []
    for i in range(n):
        done = memext("info", place / f"rank-{i}", "--json", "-")
        found.append(json.loads(done.stdout)["store"]["step"] if done.returncode == 0 else -1)
    return found


def children(pid):
    path = f"/proc/{pid}/task/{pid}/children"
    try:
        with open(path) as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return []
