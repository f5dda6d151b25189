# SPDX-License-Identifier: BSD-3-Clause
"""The input read by the first sweep, checksum and output taken from the last: the same bits as in passes of their own, bytes as predicted,
and nothing lost where a run ends before its first commit or in its last sweep."""
import json
import os
import random
import signal
import subprocess
import time

import numpy
import pytest
from conftest import ROOT, random_grid, wait_until

PHASES = ["init", "stencil", "checksum", "output"]


@pytest.fixture
def place(quick_place):
    return quick_place


def as_predicted(report):
    """Every phase moved what was predicted, and the phases are all of the time."""
    for name in PHASES:
        phase = report["phases"][name]
        for way in "read_bytes", "write_bytes":
            assert phase[way] == phase[f"predicted_{way}"], (name, way, phase)
    assert report["read_bytes"] == report["predicted_read_bytes"] and report["write_bytes"] == report["predicted_write_bytes"]
    assert sum(phase["seconds"] for phase in report["phases"].values()) <= report["wall_seconds"] * 1.001


def both(memext, place, *words, **more):
    """The run as it is and with --no-fuse: (reports, outputs)."""
    reports, outputs = [], []
    for extra in [], ["--no-fuse"]:
        output = place / f"result{len(extra)}.npy"
        reports.append(memext.run(*words, *extra, "-d", place, "--output", output, "--overwrite", **more).report)
        outputs.append(output.read_bytes())
        as_predicted(reports[-1])
    assert reports[1]["fused"] == {"source": "--no-fuse", "checksum": "--no-fuse", "output": "--no-fuse"}
    assert reports[0]["checksum"] == reports[1]["checksum"]
    assert outputs[0] == outputs[1]
    return reports


def setting(seed, place):
    """Words of a run, and whether its input, checksum and output are fused."""
    pick = random.Random(seed)
    nx, ny, nz = pick.randint(5, 70), pick.randint(8, 33), pick.randint(9, 40)
    steps, bt = pick.randint(1, 9), pick.randint(1, 3)
    dtype, stencil = pick.choice(["f8", "f4"]), pick.choice(["star7", "edge19", "box27"])
    words = ["-t", steps, "--stencil", stencil, "--backend", pick.choice(["aio", "uring"]), "--threads", pick.choice([1, 2])]
    algorithm = pick.choice(["stream", "strips", "redundant", "redundant-y"])
    by = {"stream": ny, "strips": pick.randint(4, ny - 1), "redundant": ny, "redundant-y": pick.randint(4, ny - 1)}[algorithm]
    words += ["--algorithm", algorithm.split("-")[0].replace("strips", "stream")]
    words += ["--block", by, nz if "stream" in words else pick.randint(3, nz), bt]
    sides = pick.choice([[], [], ["z=periodic"], ["y=periodic"], ["x=mirror"], ["z=mirror,fixed", "x=periodic"], ["z=odd-node,mirror-node", "x=odd,edge"], ["y=odd-node,edge"]])
    if by < ny and any(side.startswith("y") for side in sides):
        sides = []
    for side in sides:
        words += ["--side", side]
    bare = pick.random() < 0.4
    origin = pick.choice(["init", "npy", "raw", "made"])
    grid = random_grid(nx, ny, nz, dtype, seed)
    file = place / f"input-{seed}"
    if origin == "init":
        words += ["-n", nx, ny, nz, "--init", pick.choice(["random", "gauss", "linear"]), "--dtype", {"f8": "f64", "f4": "f32"}[dtype]]
    elif origin == "npy":
        numpy.save(place / f"{file.name}.npy", grid)
        words += ["--input", f"{file}.npy"]
    elif origin == "raw":
        offset = 8 * pick.randint(0, 600)
        file.write_bytes(b"\1" * offset + grid.tobytes() + b"\2" * pick.randint(0, 5000))
        words += ["-n", nx, ny, nz, "--input", f"{file},{dict(f8='f64', f4='f32')[dtype]},offset={offset},frame=yes"]
    else:
        frame = pick.choice(["edge", "mirror", "periodic", "0.25"]) if not sides else "edge"
        numpy.save(place / f"{file.name}.npy", numpy.ascontiguousarray(grid[1:-1, 1:-1, 1:-1]))
        words += ["--input", f"{file}.npy", "--frame", frame]
    return words + (["--output-frame", "none"] if bare else [])


@pytest.mark.parametrize("seed", range(16))
def test_the_same_bits(memext, place, seed):
    """checksum and every byte of the output == those of --no-fuse; bytes of each phase == predicted."""
    words = setting(seed, place)
    fused, apart = both(memext, place, *words)
    assert fused["fused"] == {"source": True, "checksum": True, "output": True}
    assert fused["phases"]["checksum"]["read_bytes"] == 0 < apart["phases"]["checksum"]["read_bytes"]


def test_a_generated_grid_costs_no_transfer(memext, place):
    """One sweep that is the first and the last: nothing is read, each plane is written once, and the result is right."""
    report = memext.run("-n", 40, 30, 50, "-t", 4, "--block", 30, 50, 4, "--algorithm", "stream", "-d", place, "--verify").report
    as_predicted(report)
    assert report["verified"] and report["read_bytes"] == 0 and report["phases"]["init"]["write_bytes"] == 0
    assert report["write_bytes"] == report["layout"]["buffer_bytes"] and report["phases"]["checksum"]["read_bytes"] == 0


@pytest.mark.parametrize("more, buffers", [([], 0), (["--keep"], 1)])
def test_one_sweep_from_file_to_file(memext, place, more, buffers):
    """Without --keep no Buffer is touched: what is read is the file, what is written the file. With it the result is also in the store."""
    grid = random_grid(40, 30, 50)
    numpy.save(place / "in.npy", grid)
    report = memext.run("--input", place / "in.npy", "--output", place / "out.npy", "-t", 4, "--block", 30, 50, 4, "--algorithm", "stream",
                        "-d", place, *more).report
    as_predicted(report)
    assert report["write_bytes"] == buffers * report["layout"]["buffer_bytes"]
    assert report["phases"]["output"]["write_bytes"] == (place / "out.npy").stat().st_size
    assert report["read_bytes"] >= grid.nbytes and report["read_bytes"] < grid.nbytes + 8192 * 52
    if buffers:
        assert memext("export", place, "-o", place / "again.npy", "-q").returncode == 0
        assert (place / "again.npy").read_bytes() == (place / "out.npy").read_bytes()


@pytest.mark.parametrize("stencil, slab", [("star7", 1), ("star13", 1), ("star13", 2)])
@pytest.mark.parametrize("sides", [[], ["--side", "y=mirror"], ["--side", "z=mirror"], ["--side", "z=odd-node,mirror-node", "--side", "y=mirror-node"], ["--side", "z=edge,odd"]])
def test_slabs_no_deeper_than_the_frame(memext, place, stencil, slab, sides):
    """The first planes are stored before anything is computed: they are the output's as well."""
    for nt in (1, 2, 5):
        reports = both(memext, place, "-n", 8, 9, 21, "-t", nt, "--stencil", stencil, *sides, "--plan", f"stream by=9 bt=2 slab={slab}")
        assert reports[0]["fused"]["output"] is True
        memext.run("-n", 8, 9, 21, "-t", nt, "--stencil", stencil, *sides, "--backend", "dram", "--algorithm", "direct", "--output", place / "direct.npy", "--overwrite")
        assert (place / "direct.npy").read_bytes() == (place / "result0.npy").read_bytes()


def test_several_fields(memext, place):
    """A kernel with two fields, one from a file and one from a formula, each to a file of its own."""
    numpy.save(place / "u.npy", random_grid(21, 18, 33, seed=3))
    results = []
    for extra in [], ["--no-fuse"]:
        report = memext.run("--kernel", ROOT / "systems" / "gray_scott.c", "--input", f"u={place / 'u.npy'}", "--init", "v=gauss", "-t", 7,
                            "--algorithm", "stream", "--block", 18, 33, 3, "-d", place, "--overwrite", *extra,
                            "--output", f"u={place / 'ru.npy'}", "--output", f"v={place / 'rv.npy'}").report
        as_predicted(report)
        results.append((report["checksum"], (place / "ru.npy").read_bytes(), (place / "rv.npy").read_bytes()))
        assert report["fused"]["source"] is not bool(extra)
    assert results[0] == results[1]


@pytest.mark.parametrize("why, words", [
    ("maps", ["--backend", "mmap"]),
    ("in place", ["--algorithm", "skewed-y"]),
    ("--integrity", ["--integrity"]),
])
def test_what_is_not_fused_says_why(memext, place, why, words):
    numpy.save(place / "in.npy", random_grid(20, 20, 20))
    report = memext.run("--input", place / "in.npy", "-t", 4, "-d", place, *words).report
    assert all(why in report["fused"][part] for part in ("source", "checksum", "output"))
    as_predicted(report)


def test_what_asks_for_states_between(memext, place):
    """--until: the input is fused, the result is not. Snapshots are taken of the same sweep as checksum and output, which are as they are without."""
    grid = ["-n", 24, 20, 22, "-t", 6, "--algorithm", "stream", "--block", 20, 22, 2, "-d", place]
    report = memext.run(*grid, "--until", "max-change=1e-30", "--check", 2).report
    assert report["fused"]["source"] is True and "--until" in report["fused"]["checksum"] and "--until" in report["fused"]["output"]
    plain = memext.run(*grid, "-o", place / "plain.npy").report
    for every in 3, 4:
        for ranks in 1, 2:
            shots = place / f"shots-{every}-{ranks}"
            report = memext.run(*grid, "--ranks", ranks, "--threads", 1, "-o", place / "out.npy", "--snapshot", f"{every}:{shots}").report
            assert report["fused"] == {"source": True, "checksum": True, "output": True} and report["checksum"] == plain["checksum"]
            assert (place / "out.npy").read_bytes() == (place / "plain.npy").read_bytes()
            assert sorted(p.name for p in shots.glob("*.npy")) == [f"u-{step:06d}.npy" for step in range(every, 7, every)]
            if every == 3:
                assert numpy.array_equal(numpy.load(shots / "u-000006.npy"), numpy.load(place / "plain.npy")[1:-1, 1:-1, 1:-1])
            (place / "out.npy").unlink()


# ------------------------------------------------------------------ runs that end before

STEPS = ["-t", 14]
SMALL = [*STEPS, "--commit-every", 0]
PLANS = {"stream": ["--algorithm", "stream", "--block", 26, 30, 2, "--slab", 4], "redundant": ["--algorithm", "redundant", "--block", 26, 11, 2]}


def stored(memext, place):
    done = memext("info", place, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["store"]


def step_of(memext, place):
    """-1: there is no store yet, or no note in it."""
    done = memext("info", place, "--json", "-")
    return json.loads(done.stdout)["store"]["step"] if done.returncode == 0 else -1


def resumed(memext, place, *words, status=0):
    done = memext("run", "--resume", "-d", place, "--quiet", "--json", "-", *words)
    assert done.returncode == status, done.stderr
    return (json.loads(done.stdout), done) if done.stdout else (None, done)


@pytest.mark.parametrize("plan", PLANS)
def test_a_device_that_dies_at_any_request(memext, place, plan):
    """From the first sweep to the last: what is resumed ends with the result of the whole run, from step 0 with the input read once more."""
    numpy.save(place / "in.npy", random_grid(33, 26, 30))
    words = ["--input", place / "in.npy", *SMALL, *PLANS[plan], "-d", place, "--force", "--overwrite", "--quiet"]
    whole = memext.run(*words, "--output", place / "whole.npy")["checksum"]
    begun, failed, fail_after = set(), True, 1
    while failed:
        done = memext("run", *words, "--backend", "fault:aio", "--fault", f"fail_after={fail_after}", "--output", place / "part.npy")
        failed = done.returncode == 3
        assert failed or done.returncode == 0, done.stderr
        fail_after += 1 + fail_after // 6
        if not failed or not (place / "memext.store").exists():
            continue
        assert not (place / "part.npy").exists()
        store = stored(memext, place)
        begun.add(store["step"])
        if store["step"] == 0:
            memext.refused("export", place, "-o", place / "none.npy", naming=["no state yet", "--resume"])
        report, _ = resumed(memext, place, "--output", place / "part.npy")
        as_predicted(report)
        assert report["checksum"] == whole and report["resumed_from"] == store["step"]
        assert report["fused"]["source"] == {0: True, 14: "no step is left"}.get(store["step"], "the run resumes from a stored state")
        assert (place / "part.npy").read_bytes() == (place / "whole.npy").read_bytes()
        (place / "part.npy").unlink()
    assert 0 in begun and len(begun) > 1


def pending(memext, place, *words):
    """A store whose run ended in its first sweep."""
    fail_after = 2
    while True:
        done = memext("run", *words, *SMALL, *PLANS["stream"], "-d", place, "--force", "--quiet", "--backend", "fault:aio",
                      "--fault", f"fail_after={fail_after}")
        assert done.returncode == 3, done.stderr
        if (place / "memext.store").exists():
            assert stored(memext, place)["step"] == 0 and stored(memext, place)["arrays"] == []
            return
        fail_after += 1


def test_an_input_that_changed_is_refused(memext, place):
    """Bytes, time of change, content: whatever differs; nothing was computed that could be gone on with."""
    file = place / "in.npy"
    numpy.save(file, random_grid(33, 26, 30))
    pending(memext, place, "--input", file)
    times, content = file.stat(), file.read_bytes()
    for change in (lambda: file.write_bytes(content[:-8] + bytes(8)), lambda: file.write_bytes(content + b"more"), file.unlink):
        change()
        if file.exists() and file.stat().st_size == times.st_size:
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # only the content tells
        _, done = resumed(memext, place, status=2)
        assert "start again with --force instead of --resume" in done.stderr
    file.write_bytes(content)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    report, _ = resumed(memext, place)
    assert report["checksum"] == memext.run("--input", file, *STEPS, "--backend", "dram", "--algorithm", "direct")["checksum"]


def test_elsewhere(memext, place):
    """What was begun fused goes on with a backend that maps: the grid is written then, like that of a run that begins."""
    numpy.save(place / "in.npy", random_grid(33, 26, 30))
    pending(memext, place, "--input", place / "in.npy")
    report, _ = resumed(memext, place, "--backend", "mmap")
    assert "maps" in report["fused"]["source"] and report["resumed_from"] == 0
    assert report["checksum"] == memext.run("--input", place / "in.npy", *STEPS, "--backend", "dram", "--algorithm", "direct")["checksum"]


def test_a_file_that_changes_while_it_is_read(memext, place):
    """The first commit looks at it once more: no result of a file that is half one and half another."""
    file, delay = place / "in.npy", 20000
    while True:
        numpy.save(file, random_grid(33, 26, 30))
        with subprocess.Popen([str(memext.program), "run", "--input", str(file), *map(str, SMALL + PLANS["stream"]),
                               "-d", str(place), "--force", "--quiet", "--backend", "fault:aio", "--fault", f"delay_us={delay}"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
            begun = wait_until(lambda: step_of(memext, place) == 0, "the first commit", run)
            if begun:
                with open(file, "r+b") as stream:
                    stream.seek(5000)
                    stream.write(b"changed!")
            _, err = run.communicate(timeout=900)
        if run.returncode != 0 or delay > 2_000_000:
            break
        delay *= 4  # it was faster
    assert run.returncode != 0 and "changed while the run read it" in err, err
    assert stored(memext, place)["step"] == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_ended_by_a_signal(memext, place, number):
    """At whatever moment: no output appears, and the store goes on to the same result."""
    file = place / "in.npy"
    numpy.save(file, random_grid(33, 26, 30))
    words = ["--input", file, *SMALL, *PLANS["stream"], "--quiet"]
    whole = memext.run(*words, "-d", place, "--output", place / "whole.npy")["checksum"]
    seen = set()
    for step in 0, 4, 8:
        output = place / f"part-{step}.npy"
        with subprocess.Popen([str(memext.program), "run", *map(str, words), "-d", str(place), "--force", "--output", str(output),
                               "--backend", "fault:aio", "--fault", "delay_us=40000"], stderr=subprocess.DEVNULL) as run:
            if wait_until(lambda: step_of(memext, place) >= step, f"step {step}", run):
                run.send_signal(number)
            run.wait(timeout=900)
        if run.returncode == 0:
            continue
        assert not output.exists() and run.returncode in (-9, 5)
        wait_until(lambda: not stored(memext, place)["in_use"], "the end of its requests")
        seen.add(stored(memext, place)["step"])
        assert resumed(memext, place, "--output", output)[0]["checksum"] == whole
        assert output.read_bytes() == (place / "whole.npy").read_bytes()
    assert seen
