# SPDX-License-Identifier: BSD-3-Clause
"""Seconds besides steps (--time-step, a kernel's dt): in reports, notes, snapshots, Python, and through resumes and ranks; never a bit of the result."""
import json
import re

import numpy as np
import pytest
from package import cache, environment, mx  # noqa: F401 (fixtures)

STEPS = 13
GRID = ["-n", 33, 28, 30, "--init", "random", "--dram", "90MiB"]
TEXT = """#define MX_NAME "heat"
#define MX_RADIUS 1
#define MX_PARAMS(P) P(%s, 0.125) P(k, 0.5)
#define MX_STATE(F) F(u, double)
#include <memext/cell.h>
MX_CELL
    SET(u, AT(u,0,0,0) + PARAM(%s) * PARAM(k) * (AT(u,1,0,0) + AT(u,-1,0,0) - 2 * AT(u,0,0,0)));
MX_END
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """(folder, a kernel with dt, one without)"""
    folder = tmp_path_factory.mktemp("seconds")
    (folder / "dt.c").write_text(TEXT % ("dt", "dt"))
    (folder / "tau.c").write_text(TEXT % ("tau", "tau"))
    np.save(folder / "lengths.npy", np.random.default_rng(1).random(STEPS))
    return folder, folder / "dt.c", folder / "tau.c"


def added(values):
    """In their order, as the runtime adds."""
    total = 0.0
    for value in values:
        total += float(value)
    return total


@pytest.mark.parametrize("words, seconds", [
    (["dt.c"], 0.125), (["dt.c", "--param", "dt=1/16"], 1 / 16), (["dt.c", "--time-step", "k"], 0.5), (["dt.c", "--time-step", "3e-3"], 3e-3),
    (["tau.c", "--time-step", "tau"], 0.125), (["tau.c", "--time-step", "1/3"], 1 / 3), (["tau.c"], None), (["dt.c", "--time-step", "none"], None)])  # fmt: skip
def test_how_long_a_step_is(memext, quick_place, kernels, words, seconds):
    kernel = ["--kernel", kernels[0] / words[0], *words[1:], *GRID, "-d", quick_place]
    result = memext.run(*kernel, "-t", STEPS, "--check", 5, "--keep")
    times = [None if seconds is None else step * seconds for step in (1, 5, 10, STEPS)]
    assert [result["time_step_s"], *(n["simulated_s"] for n in result["norms"])] == times
    assert result["simulated_s"] == result["predicted_simulated_s"] == times[-1]
    plan = memext.run(*kernel, "-t", STEPS, "--dry-run", "--force")
    assert (plan["time_step_s"], plan["predicted_simulated_s"]) == (times[0], times[-1]) and "simulated_s" not in plan.report
    again = memext.run("--resume", "-d", quick_place, "-t", 2 * STEPS)  # the store remembers what was given
    assert again["simulated_s"] == (None if seconds is None else 2 * STEPS * seconds)
    plain = memext.run("--kernel", kernels[2], *GRID, "-t", STEPS, "--backend", "dram")
    assert (result["checksum"] == plain["checksum"]) is ("dt=1/16" not in words), "a bit depends on it"


def test_what_people_read(memext, build, quick_place, kernels):
    words = ["--kernel", kernels[1], *GRID, "-d", quick_place, "-t", 40, "--until", "max-change=1e9", "--check", 8, "--keep"]
    text = memext("run", *words).stdout
    assert re.search(r"^simulated +5 s, steps of 0.125 s$", text, re.MULTILINE), text
    assert re.search(r"^norms +after step 8 \(1 s\): ", text, re.MULTILINE) and re.search(r"^ended +at step 8 of 40 \(1 s\) by --until ", text, re.MULTILINE), text
    assert re.search(r"^step +8 of 40 \(complete\), 1 s, in Buffer ", memext("info", quick_place).stdout, re.MULTILINE)
    store = json.loads(memext("info", quick_place, "--json", "-").stdout)["store"]
    assert (store["step"], store["simulated_s"]) == (8, 1.0)
    assert memext.run("--resume", "-d", quick_place)["met"]["simulated_s"] == 1.0


def test_a_length_for_each_step(memext, quick_place, kernels, tmp_path):
    """--param dt=FILE.npy; on ranks too, through a resume with another number of them."""
    lengths = np.load(kernels[0] / "lengths.npy")
    words = ["--kernel", kernels[1], "--param", f"dt={kernels[0]}/lengths.npy", *GRID, "-d", quick_place]
    result = memext.run(*words, "-t", 6, "--ranks", 2, "--keep", "--snapshot", f"2:{tmp_path}/saved")
    assert result["time_step_s"] is None and result["simulated_s"] == added(lengths[:6])
    note = json.loads((tmp_path / "saved/memext.snapshots").read_text())
    assert note["simulated_s"] == [added(lengths[:n]) for n in (2, 4, 6)] and "time_step_s" not in note
    assert json.loads(memext("info", quick_place / "rank-1", "--json", "-").stdout)["store"]["simulated_s"] == added(lengths[:6])
    result = memext.run("--resume", "-d", quick_place, "-t", STEPS, "--ranks", 3, "--check", 4)
    assert [n["simulated_s"] for n in result["norms"]] == [added(lengths[:n]) for n in (8, 12, STEPS)]


def test_a_builtin_stencil(memext, quick_place):
    words = [*GRID, "-d", quick_place, "-t", 4]
    assert memext.run(*words)["simulated_s"] is None
    assert memext.run(*words, "--time-step", "0.1", "--force")["simulated_s"] == 4 * 0.1


@pytest.mark.parametrize("step, said", [("fast", "a parameter of the kernel, whose parameters are tau, k"), ("1/0", "neither a number"), ("nan", "neither a number"), ("x" * 70, "longer than 63"), ("1/1e400", "neither a number")])
def test_refused(memext, quick_place, kernels, step, said):
    done = memext("run", "--kernel", kernels[2], *GRID, "-d", quick_place, "-t", 3, "--time-step", step, check=False)
    assert done.returncode == 2 and said in done.stderr and list(quick_place.iterdir()) == []


def test_more_than_a_double(memext, quick_place, kernels):
    """Seconds that are no finite number are not known, and the store can be read."""
    words = ["--kernel", kernels[2], *GRID, "-d", quick_place, "--time-step", "1e308"]
    assert "inf" not in memext("run", *words, "-t", 4, "--check", 2, "--dry-run").stdout
    assert memext.run(*words, "-t", 1, "--keep")["simulated_s"] == 1e308
    assert memext.run("--resume", "-t", 4, "-d", quick_place, "--keep")["simulated_s"] is None
    assert json.loads(memext("info", quick_place, "--json", "-").stdout)["store"]["simulated_s"] is None


def test_python(mx, quick_place, kernels, tmp_path):  # noqa: F811
    @mx.kernel(params={"dt": 0.125})
    def heat(u, dt):
        return u + dt * (u[1, 0, 0] + u[-1, 0, 0] - 2 * u)

    lengths = np.load(kernels[0] / "lengths.npy")
    seen = []
    with mx.Run(heat, u="random", shape=(12, 11, 10), device=quick_place, dram="64MiB", keep=True, snapshot=f"4:{tmp_path}/saved") as run:
        assert run.time is None
        for step in run.steps(8, check=4):
            seen.append((step, run.time))
    store = mx.open(quick_place)
    assert seen == [(4, 0.5), (8, 1.0)] and (store.step, store.time) == (8, 1.0)
    newest = mx.looking.newest_snapshot(tmp_path / "saved")
    assert (newest.step, newest.time) == (8, 1.0) and "8 (1 s)" in store._repr_html_()
    with mx.Run(heat, u="random", shape=(12, 11, 10), device=tmp_path, dram="64MiB", params={"dt": lengths}) as run:
        assert run.advance(5).time == added(lengths[:5])
    with mx.Run(u="random", shape=(12, 11, 10), backend="dram", time_step=0.25) as run:
        assert run.advance(3).time == 0.75


def test_viewers_get_seconds(mx, quick_place, tmp_path):  # noqa: F811
    h5py = pytest.importorskip("h5py")
    for words, time in (({"time_step": 0.25}, "0.75"), ({}, "3")):
        with mx.Run(u="random", shape=(12, 11, 10), device=quick_place, dram="64MiB", keep=True, resume=False, force=True, **words) as run:
            run.advance(3)
        mx.open(quick_place).link(tmp_path / "u.h5", overwrite=True)
        assert f'<Time Value="{time}"/>' in (tmp_path / "u.xdmf").read_text()
        with h5py.File(tmp_path / "u.h5") as file:
            assert dict(file["u"].attrs) == {"step": 3, **({"time": 0.75} if words else {})}


def test_many_names(memext, quick_place, tmp_path):
    """Both messages that list parameters end the list at a whole name, and say that there are more."""
    params = " ".join(f"P(parameter_{i}, 1)" for i in range(60))
    (tmp_path / "k.c").write_text((TEXT % ("dt", "dt")).replace("P(dt, 0.125) P(k, 0.5)", f"P(dt, 1) P(k, 1) {params}"))
    for words in (["--time-step", "fast"], ["--param", "fast=1"]):
        done = memext("run", "--kernel", tmp_path / "k.c", *GRID, "-d", quick_place, "-t", 3, *words, check=False)
        assert done.returncode == 2 and re.search(r"parameters are dt, k, (parameter_\d+, ){5,}\.\.\.", done.stderr), done.stderr
