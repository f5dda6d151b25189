# SPDX-License-Identifier: BSD-3-Clause
"""One planner: memext run, run --dry-run and tune give the same plan, bytes and refusals for the same request."""
import json
import os
import random
import shutil

import pytest

SEEDS = int(os.environ.get("MEMEXT_TEST_PLANS", "200" if "MEMEXT_TEST_LONG" in os.environ else "50"))
EACH = 25
BACKENDS = ["dram", "mmap", "aio", "uring", None]
STENCILS = ["star7", "star13", "box27"]
SAME = ["layout", "fused", "commits", "predicted_read_bytes", "predicted_write_bytes", "predicted_init_bytes", "predicted_updates", "side_file_bytes", "dram_limit_bytes",
        "dram_budget_bytes"]  # fmt: skip

CHOSEN = ["iy", "iz", "tile", "ct", "column"]  # 0 in a plan: the engine's own choice, which the report of a run names


def predicted(report):
    phases = {name: {k: v for k, v in phase.items() if k.startswith("predicted_")} for name, phase in report["phases"].items()}
    return {**{key: report[key] for key in SAME }, "phases": phases, "commits": {k: v for k, v in report["commits"].items() if k not in ("sweep_s", "hash_bytes")}}


def grid(rnd):
    n = [rnd.randint(3, 120), rnd.randint(3, 60), rnd.randint(3, 60)]
    return n if rnd.random() < 0.9 else [n[0], 1, rnd.randint(1, 9)]


def request(rnd, folder):
    """Words of a request; some are refused, which all commands do alike."""
    n, nt = grid(rnd), rnd.randint(1, 30)
    words = ["-n", *n, "-t", nt, "--dtype", rnd.choice(["f32", "f64"]), "--dram", f"{rnd.choice([26, 28, 30, 40, 80])}MiB"]
    backend = rnd.choice(BACKENDS)
    if backend:
        words += ["--backend", backend]
    if rnd.random() < 0.2:
        words += ["--kernel", folder / "diffusion.c", "--init", "u=random", "--init", "k=random", "--dtype", "f64"][:6]
    else:
        words += ["--stencil", rnd.choice(STENCILS)]
        words += rnd.choice([[], [], ["--init", rnd.choice(["random", "gauss", "linear"])]])
    if rnd.random() < 0.5:
        words += ["--algorithm", rnd.choice(["redundant", "skewed", "skewed-y", "skewed-min", "stream", "direct"])]
        if rnd.random() < 0.3:
            words += ["--tuner", rnd.choice(["blk", "naive", "manual"])]
        elif rnd.random() < 0.4:
            words += ["--block", rnd.randint(1, n[1]), rnd.randint(1, n[2]), rnd.randint(1, nt)]
    if rnd.random() < 0.2:
        words += ["--plan", rnd.choice([f"stream bt={rnd.randint(1, 9)}", f"redundant bt={rnd.randint(1, 4)} by={rnd.randint(4, 60)} bz={rnd.randint(4, 60)}"])]
    for option, chance in [("--no-fuse", 0.2), ("--integrity", 0.2), ("--keep", 0.1), ("--verify", 0.1)]:
        words += [option] if rnd.random() < chance else []
    for option, value, chance in [("-o", folder / "out.npy", 0.3), ("--threads", 1, 0.2), ("--engine", rnd.choice(["iblock", "tiled"]), 0.2), ("--check", rnd.randint(1, nt + 1), 0.2),
                                  ("--commit-every", rnd.choice([0, 5]), 0.1), ("--side", rnd.choice(["x=periodic", "y=mirror", "z=periodic"]), 0.2),
                                  ("--slab", rnd.randint(1, 8), 0.1), ("--snapshot", f"{rnd.randint(1, nt)}:{folder}/snapshots:2", 0.15)]:  # fmt: skip
        words += [option, value] if rnd.random() < chance else []
    return words


@pytest.mark.parametrize("first", range(0, SEEDS, EACH))
def test_random_requests(memext, place, tmp_path, first):
    """What is planned is what is run: plan, bytes of every phase, commits; and what a run refuses the others refuse, with the same sentence."""
    shutil.copy(memext.program.parents[2] / "systems" / "diffusion.c", tmp_path)
    refused = 0
    for seed in range(first, first + EACH):
        words = [*request(random.Random(seed), tmp_path), "-d", place]
        dry, tuned, run = (memext(*command, *words, "--json", "-") for command in (["run", "--dry-run"], ["tune"], ["run", "--quiet"]))
        shutil.rmtree(tmp_path / "snapshots", ignore_errors=True)
        (tmp_path / "out.npy").unlink(missing_ok=True)
        for left in place.iterdir():
            left.unlink()
        assert dry.returncode == tuned.returncode == run.returncode, (words, dry.stderr, tuned.stderr, run.stderr)
        if run.returncode != 0:
            refused += 1
            why = {done.stderr.strip().splitlines()[-1].split(": ", 1)[1] for done in (dry, tuned, run)}
            assert run.returncode == 2 and len(why) == 1, (words, why)
            continue
        reports = [json.loads(done.stdout) for done in (dry, tuned, run)]
        for key, number in reports[2]["plan"].items():
            assert number == reports[0]["plan"][key] or (key in CHOSEN and reports[0]["plan"][key] == 0), (words, key, number)
        assert reports[0]["plan"] == reports[1]["plan"] and reports[0]["candidates"] == reports[1]["candidates"], words
        predictions = [predicted(report) for report in reports]
        differing = {key: [p[key] for p in predictions] for key in predictions[0] if not predictions[0][key] == predictions[1][key] == predictions[2][key]}
        assert differing == {}, (words, differing)
        assert [reports[2][k] for k in ("read_bytes", "write_bytes")] == [reports[0][f"predicted_{k}"] for k in ("read_bytes", "write_bytes")] or "mmap" in words or "dram" in words
    assert refused < EACH * 4 // 5, "most requests are to be possible"


@pytest.mark.parametrize("words", [[], ["--ranks", 3], ["--ranks", 2, "--link", "10Gbit"], ["--cores", 16, "--sockets", 2], ["--align", 512], ["--accel", "host"]], ids=lambda w: w[0] if w else "alone")
def test_requests_that_are_not_run(memext, words):
    """Without a place, of ranks, of machines that are described: tune says what a dry run says."""
    for seed in range(1000, 1006):
        rnd = random.Random(seed)
        request = ["-n", rnd.randint(20, 500), rnd.randint(20, 300), rnd.randint(30, 300), "-t", rnd.randint(1, 60), "--dram", "120MiB", "--backend", "uring", *words]
        reports = [json.loads(memext(*command, *request, "--json", "-").stdout) for command in (["run", "--dry-run"], ["tune"])]
        assert predicted(reports[0]) == predicted(reports[1]) and reports[0]["plan"] == reports[1]["plan"], request
        assert reports[0]["candidates"] == reports[1]["candidates"] and reports[0]["plan_line"] == reports[1]["plan_line"]


@pytest.mark.parametrize("tuner", ["blk", "naive", "manual"])
def test_an_iblock_beside_a_tuner(memext, place, tuner):
    """The tuner chooses the Block, and what is given is the iBlock of the plan and of the run, whose result is right."""
    grid = ["-n", 120, 110, 90, "-t", 20]
    words = [*grid, "-d", place, "--dram", "30MiB", "--backend", "aio", "--algorithm", "skewed-min", "--engine", "iblock", "--tuner", tuner, "--iblock", 3, 32]
    reports = [json.loads(memext(*command, *words, "--json", "-").stdout) for command in (["run", "--dry-run"], ["tune"], ["run", "--quiet"])]
    assert [(r["plan"]["iy"], r["plan"]["iz"], r["plan"]["tuner"]) for r in reports] == [(3, 32, tuner)] * 3
    assert reports[0]["plan"] == reports[1]["plan"] and reports[2]["plan"]["by"] < 110
    assert reports[2]["checksum"] == memext.run(*grid, "--backend", "dram")["checksum"]


def test_a_described_machine_is_for_a_dry_run(memext, place):
    grid = ["-n", 60, 50, 40, "-t", 20]
    memext.refused("run", *grid, "-d", place, "--cores", 64, naming=["--cores", "--dry-run"])
    memext.refused("run", *grid, "-d", place, "--align", 512, naming=["--align", "--dry-run"])
    memext.refused("tune", *grid, "--cores", 64, "--calibrate", naming=["--cores", "--calibrate"])
    memext.refused("tune", *grid, "--cores", 2, "--sockets", 4, naming=["4 sockets", "2 cores"])
    report = memext.run(*grid, "--dry-run", "--cores", 64, "--l3", "64MiB")
    assert report["machine"]["cores"] == 64 and report["machine"]["l3_bytes"] == 64 << 20 and report["plan"]["threads"] == 64
    assert list(place.iterdir()) == []


def test_more_dram_than_there_is(memext, place):
    """A run refuses it; a plan is made, with a line that says so; of a machine that is described there is nothing to say."""
    words = ["-n", 60, 50, 40, "-t", 20, "-d", place, "--dram", "900TiB"]
    memext.refused("run", *words, naming="900 TiB")
    for command in ["run", "--dry-run"], ["tune"]:
        done = memext(*command, *words)
        assert done.returncode == 0 and "900 TiB" in done.stderr and "refused" in done.stderr
    assert memext("tune", *words, "--cores", 8).stderr == ""


def refusals(memext, words):
    """What a run, a dry run and tune say of the same words: the first sentence of each; only a plan is made where a place is in the way."""
    run, dry, tuned = (memext(*command, *words) for command in (["run", "--quiet"], ["run", "--dry-run"], ["tune"]))
    assert run.returncode == dry.returncode == 2 and tuned.returncode == 0 and "the run would be refused now" in tuned.stderr, (run.stderr, dry.stderr, tuned.stderr)
    return [done.stderr.strip().splitlines()[0].split(": ", 1)[1] for done in (run, dry, tuned)]


def test_a_dry_run_refuses_what_is_in_the_way(memext, place, tmp_path):
    """A store, a file of others, a result that is there, a directory that is not; nothing is made, and --force and --overwrite let all of them pass."""
    words = ["-n", 30, 29, 31, "-t", 7]
    strange, there = place / "strange.memext", tmp_path / "there.npy"
    strange.write_bytes(b"mine" * 3000)
    there.write_bytes(b"mine")
    store = place / "kept"
    store.mkdir()
    memext.run(*words, "-d", store, "--keep")
    before = {path: path.read_bytes() for path in [strange, there, store / "memext.store"]}
    for more, naming in [(["-d", store], "a finished run that was kept"), (["-d", strange], "not made by memext"), (["-d", place, "-o", there], "is there already"),
                         (["-d", place, "-o", tmp_path / "none" / "x.npy"], "its directory is not there"), (["-d", place, "--kernel", "K", "-o", f"u={there}"], "is there already")]:  # fmt: skip
        if "K" in more:
            more = [memext.program.parents[2] / "systems" / "diffusion.c" if w == "K" else w for w in more] + ["--init", "u=random", "--init", "k=random"]
        said = refusals(memext, [*words, *more])
        assert said[0] == said[1] and said[0] in said[2] and naming in said[0], said
    assert {path: path.read_bytes() for path in before} == before and sorted(os.listdir(place)) == ["kept", "strange.memext"]
    for more in (["-d", store, "--force"], ["-d", strange, "--force"], ["-d", place, "-o", there, "--overwrite"]):
        assert memext("run", "--dry-run", *words, *more).returncode == 0
    assert {path: path.read_bytes() for path in before} == before


def test_a_dry_run_refuses_what_is_no_storage(memext, place):
    if not os.path.ismount("/dev/shm"):
        pytest.skip("/dev/shm is no memory of its own here")
    for words in (["-d", "/dev/shm", "--backend", "uring"], ["-d", "/proc"], ["-d", "/dev/null"]):
        for command in ["run"], ["run", "--dry-run"]:
            memext.refused(*command, "-n", 30, 29, 31, "-t", 7, *words, naming=words[1])
