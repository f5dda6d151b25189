# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F401, F811 - fixtures
"""Programs that change state, parameters and read-only fields between steps, killed at random moments of their life and started again each time: they end with
the bits of one that is not disturbed. MEMEXT_TEST_LONG: 200 times each; MEMEXT_KILLS=N: so often."""
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import LONG
from package import cache, environment, mx  # fixtures

KILLS = int(os.environ.get("MEMEXT_KILLS") or (200 if LONG else 2))
STEPS, EVERY = 60, 3

PROGRAM = """import sys
import numpy as np, memext as mx

@mx.kernel(fixed=["k"], params={"dt": 0.1})
def heat(u, k, dt):
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    return u + dt * k * (around - 6 * u)

place, words = sys.argv[1], {n: {"integrity": True, "commit_every": 1}[n] for n in sys.argv[2:]}
u, k = np.random.default_rng(1).random((40, 60, 60)), np.random.default_rng(2).random((40, 60, 60))
with mx.Run(heat, u=u, k=k, device=place, dram="64MiB", keep=True, **{"commit_every": 0, "plan": "stream by=58 bt=2", **words}) as run:
    for step in run.steps(60, check=3):
        mean = run["u"][10:30].mean()
        run["u"][5:9, :, 3] = step
        run.apply(lambda u, k, z, dt: u + dt * k * (mean - u) * (z % 2))
        if step % 2 == 0:
            run.params["dt"] = 0.1 / (1 + step % 5)
        if step % 4 == 0:
            run["k"] = np.random.default_rng(step).random((40, 60, 60))
    np.save(place + "/result.npy", run["u"][...])
"""


def step_of(u, k, dt):
    inside, new = (slice(1, -1),) * 3, u.copy()
    around = u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1] + u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1]
    new[inside] = u[inside] + dt * k[inside] * (around - 6 * u[inside])
    return new


def plain():
    """The same program in numpy."""
    u, k, dt = np.random.default_rng(1).random((40, 60, 60)), np.random.default_rng(2).random((40, 60, 60)), 0.1
    for step in range(1, STEPS + 1):
        u = step_of(u, k, dt)
        if step % EVERY == 0:
            mean = u[10:30].mean()
            u[5:9, :, 3] = step
            for z in range(38):
                u[z + 1, 1:-1, 1:-1] = u[z + 1, 1:-1, 1:-1] + dt * k[z + 1, 1:-1, 1:-1] * (mean - u[z + 1, 1:-1, 1:-1]) * (z % 2)
            if step % 2 == 0:
                dt = 0.1 / (1 + step % 5)
            if step % 4 == 0:
                k = np.random.default_rng(step).random((40, 60, 60))
    return u


def kill_often(command, rng, begin, check, seen=lambda: None):
    """Lives of a program, until it was killed KILLS times. begin(): what a life begins with; seen(): after a kill; check(): of its end."""
    times, killed, lives, most = [], 0, 0, 0
    for _ in range(2):  # the first one compiles
        begin()
        started = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        times.append(time.monotonic() - started)
        assert done.returncode == 0, done.stderr
        check()
    while killed < KILLS:
        begin()
        lives, within = lives + 1, 0
        for _ in range(400):
            program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
            try:
                enough = not LONG and killed + within >= KILLS  # what is left of this life is left alone
                _, error = program.communicate(timeout=None if enough else times[1] * (0.1 + 0.4 * rng.random()))
                assert program.returncode == 0, error
                break
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, signal.SIGKILL)
                program.communicate()
                within += 1
                seen()
        else:
            raise AssertionError("a life of the program did not come to its end")
        killed, most = killed + within, max(most, within)
        check()
    print(f"killed {killed} times in {lives} lives, up to {most} times in one")


@pytest.mark.parametrize("words", [[], ["integrity"], ["commit_every"]], ids=["two", "integrity", "three"])
def test_program(environment, quick_place, tmp_path, words):
    """20 changes of the state, some with a parameter and a read-only field; with two and three Buffers, and hashes."""
    (tmp_path / "program.py").write_text(PROGRAM)
    want = plain()

    def begin():
        shutil.rmtree(quick_place), quick_place.mkdir()

    kill_often([str(environment), str(tmp_path / "program.py"), str(quick_place), *words], random.Random(len(words)), begin,
               lambda: np.testing.assert_array_equal(np.load(quick_place / "result.npy"), want))


KERNEL = """#define MX_NAME "steered"
#define MX_RADIUS 1
#define MX_FIXED_RADIUS 0
#define MX_PARAMS(P) P(dt, 0.1)
#define MX_STATE(F) F(u, double)
#define MX_FIXED(F) F(k, double)
#include <memext/cell.h>
MX_CELL
double s = AT(u,-1,0,0) + AT(u,1,0,0) + AT(u,0,-1,0) + AT(u,0,1,0) + AT(u,0,0,-1) + AT(u,0,0,1);
SET(u, AT(u,0,0,0) + PARAM(dt) * AT(k,0,0,0) * (s - 6 * AT(u,0,0,0)));
MX_END
"""

SCRIPT = """import json, subprocess, sys
program, place, folder, *words = sys.argv[1:]
while True:
    sets = json.loads(subprocess.run([program, "info", place, "--json", "-"], capture_output=True, text=True, check=True).stdout)["sets"]
    step, edits = sets[0]["step"], sets[0]["edits"]
    if step == 60:
        break
    edit = ["--edit-input", f"u={folder}/u{step}.npy", "--edit-param", f"dt={0.1 / (1 + step % 5)}"]
    edit += ["--edit-input", f"k={folder}/k{step}.npy"] if step % 2 == 0 else []
    edit = [] if edits > step // 3 - 1 else edit
    subprocess.run([program, "run", "--resume", "-d", place, "-t", str(step - step % 3 + 3), "--keep", "--quiet", *words, *edit], check=True, stdout=subprocess.DEVNULL)
"""


@pytest.mark.parametrize("words", [[], ["--integrity"]], ids=["two", "integrity"])
def test_ranks(memext, build, quick_place, tmp_path, words):
    """A script with 19 changes of state and a parameter, some with a read-only field, by two ranks that are all killed."""
    cells, shape = np.random.default_rng(3), (24, 22, 32)
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "steered.c").write_text(KERNEL)
    u, k, dt = cells.random(shape), cells.random(shape), 0.1
    np.save(tmp_path / "u.npy", u)
    np.save(tmp_path / "k.npy", k)
    for step in range(1, STEPS + 1):
        u = step_of(u, k, dt)
        if step % EVERY == 0 and step < STEPS:
            inside = cells.random([n - 2 for n in shape])
            np.save(tmp_path / f"u{step}.npy", inside)
            u[1:-1, 1:-1, 1:-1], dt = inside, 0.1 / (1 + step % 5)
            if step % 2 == 0:
                k = cells.random(shape)
                np.save(tmp_path / f"k{step}.npy", k)
    kept = tmp_path / "kept"
    memext.run("--kernel", tmp_path / "steered.c", "--input", tmp_path / "u.npy", "--field", f"k={tmp_path}/k.npy", "--field-copy", "--dram", "64MiB", "-t", 3,
               "--plan", "stream by=20 bt=1", "-d", quick_place, "--ranks", 2, "--keep", *words)
    shutil.copytree(quick_place, kept)

    def begin():
        shutil.rmtree(quick_place)
        shutil.copytree(kept, quick_place)

    def check():
        memext("export", quick_place, "-o", tmp_path / "found.npy", "--overwrite")
        np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), u)

    command = [sys.executable, str(tmp_path / "script.py"), str(build / "memext"), str(quick_place), str(tmp_path), "--ranks", "2"]
    kill_often(command, random.Random(3), begin, check)
