# SPDX-License-Identifier: BSD-3-Clause
"""memext tune as users meet it: the papers' tables from the command line, plans that run, bytes as predicted."""
import json
import pathlib
import random
import re
import sys

import pytest
from conftest import ROOT

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
ALGORITHMS = ["redundant", "skewed", "skewed-y", "skewed-min", "stream", None]


def tune(memext, *arguments):
    done = memext("tune", *arguments, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("algorithm", ["skewed-y", "skewed-min"])
def test_table2(memext, algorithm):
    """For all six rows: (by, bz, bt, iy, iz) = published."""
    table = json.loads((DATA / "table2.json").read_text())
    for row in table["rows"]:
        dram = row["dram_gib"] * table["visible_bytes_of_64_GiB"] // 64
        report = tune(memext, "-n", row["nx"], row["ny"], row["nz"], "-t", row["nt"], "--algorithm", algorithm,
                      "--dram", dram, "--cores", row["cores"], "--sockets", row["sockets"], "--l2", row["l2_bytes"],
                      "--l3", f"{row['l3_mib']}MiB", "--reserve", "paper")
        keys = ["by", "bz", "bt", "iy", "iz"]
        assert [report["plan"][k] for k in keys] == [row[k] for k in keys], row["server"]
        assert report["dram_used_bytes"] < report["dram_budget_bytes"]


def test_naive_log(memext):
    """Every number that the report and the slides' log share is the same."""
    log = json.loads((DATA / "naive_log.json").read_text())
    report = tune(memext, "-n", log["nx"], log["ny"], log["nz"], "-t", log["nt"], "--dram", log["total"], "--cores",
                  log["core"], "--sockets", log["socket"], "--l2", log["L2"], "--l3", log["L3"], "--reserve", "paper",
                  "--tuner", "naive", "--algorithm", "redundant")["naive_log"]
    shared = set(report) & set(log)
    assert {"usable_size", "b_ym", "max_bt", "update_ite", "bt", "usable_cache_size", "remain_cache_size"} <= shared
    assert {k: report[k] for k in shared} == {k: log[k] for k in shared}
    assert report["remain_size"] == log["first"]["remain_size"] and report["by"] == log["first"]["by"]
    assert report["final_remain_size"] == log["final"]["remain_size"]
    assert (report["first_iz"], report["iz"]) == (32, 40)


def test_topology_file(memext):
    """A described machine gives the plan of the same machine given by options."""
    common = ["-n", 2048, 2048, 2048, "-t", 500, "--dram", "64GiB", "--algorithm", "skewed-min", "--engine", "iblock"]
    a = tune(memext, *common, "--cores", 16, "--sockets", 2, "--l2", "256KiB", "--l3", "20MiB")
    b = tune(memext, *common, "--topology",
             "synthetic:pack:2 [numa(memory=32GB)] l3:1(size=20971520) l2:8(size=262144) core:1 pu:1")
    assert b["machine"]["cores"] == 16 and b["machine"]["sockets"] == 2
    assert a["plan"] == b["plan"]


def test_exhaustive_agrees(memext):
    common = ["-n", 100, 120, 140, "-t", 40, "--dram", "30MiB", "--algorithm", "skewed-min"]
    fast, full = tune(memext, *common), tune(memext, *common, "--exhaustive")
    assert full["search"]["evaluated"] > 10 * fast["search"]["evaluated"]
    for key in ["predicted_read_bytes", "predicted_write_bytes", "dram_used_bytes"]:
        assert fast[key] == full[key]


@pytest.mark.parametrize("seed", range(3))
def test_predicted_bytes_are_measured_bytes(memext, place, tmp_path, seed):
    """For random problems and every tuner: bytes measured = bytes predicted, exactly, and the result is that of the
    in-core run, bit by bit."""
    rnd = random.Random(seed)
    for algorithm in ALGORITHMS:
        n = [rnd.randint(8, 500), rnd.randint(20, 70), rnd.randint(20, 70)]
        tuners = ["blk", "naive", "manual"] if algorithm not in ("stream", None) else ["blk"]
        for tuner in tuners:
            problem = ["-n", *n, "-t", rnd.randint(1, 24), "--dtype", rnd.choice(["f32", "f64"]), "--stencil",
                       rnd.choice(["star7", "box27", "star13"])]
            words = [*problem, "-d", place, "--backend", rnd.choice(["aio", "uring"]), "--dram",
                     f"{rnd.randint(28, 40)}MiB", "--tuner", tuner]
            words += ["--algorithm", algorithm] if algorithm else []
            done = memext("tune", *words)
            assert done.returncode == 0, done.stderr
            plan = tmp_path / "tune.plan"
            plan.write_text(done.stdout)  # comments and the line, as printed
            planned = tune(memext, *words)
            start = words.index("--tuner")
            run = memext.run(*words[:start], *words[start + 2 :], "--plan", plan)
            for key in ["by", "bz", "bt", "algorithm", "tuner"]:
                assert run["plan"][key] == planned["plan"][key], words
            for key in ["read_bytes", "write_bytes"]:
                assert run[key] == run["predicted_" + key] == planned["predicted_" + key], (key, words, done.stdout)
            assert planned["predicted_init_bytes"] == run["predicted_init_bytes"] and planned["fused"] == run["fused"], words
            in_core = memext.run(*problem, "--backend", "dram", "--algorithm", "direct")
            assert run["checksum"] == in_core["checksum"], words


@pytest.mark.parametrize("words", [
    [], ["--no-fuse"], ["--init", "gauss", "--keep"], ["--input", "IN"], ["--input", "IN", "-o", "OUT"], ["--input", "IN", "-o", "OUT", "--no-fuse"],
    ["-o", "OUT", "--output-frame", "none", "--algorithm", "redundant"], ["--algorithm", "stream", "--block", 20, 62, 6], ["-o", "OUT", "--verify"],
    ["--integrity"], ["--commit-every", 5], ["--backend", "mmap"], ["--check", 7, "--backend", "aio"]], ids=lambda w: "-".join(map(str, w)) or "plain")
def test_tune_predicts_what_run_predicts(memext, place, tmp_path, words):
    """With the same words, an input, outputs and whatever decides about fused sweeps among them: the same plan, bytes and phases."""
    grid = tmp_path / "in.npy"
    size = (42, 52, 62)
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {size}, }}".ljust(117) + "\n"
    grid.write_bytes(b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.encode() + bytes(8 * size[0] * size[1] * size[2]))
    words = [{"IN": grid, "OUT": tmp_path / "out.npy"}.get(w, w) for w in words]
    words = ["-n", 60, 50, 40, "-t", 20, "-d", place, "--dram", "80MiB", *words]
    planned, dry = tune(memext, *words), memext.run(*words, "--dry-run")
    for key in "plan", "fused", "phases", "commits", "predicted_read_bytes", "predicted_write_bytes", "predicted_init_bytes", "predicted_updates", "predicted_seconds":
        assert planned[key] == dry[key], key
    assert list(place.iterdir()) == [] and not (tmp_path / "out.npy").exists()


def test_a_device_that_reads_and_writes_at_once(memext, place):
    """Where no more than the two rates are given reads and writes take turns, as they do where --mixed-bw is the rate of each; with the sum of both
    neither waits for the other."""
    rates = ["--read-bw", 1e8, "--write-bw", 1e8, "--rate", 1e12]
    words = ["run", "-n", 254, 254, 254, "-t", 2, "-d", place, "--plan", "stream bt=1", "--dram", "128MiB", *rates, "--no-fuse", "--dry-run", "--json", "-"]

    def io_s(*more):
        done = memext(*words, *more)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        return report["predicted_time"]["io_s"], report["predicted_read_bytes"], report["predicted_write_bytes"]

    in_turns, read, write = io_s()
    assert in_turns == pytest.approx((read + write) / 1e8) and io_s("--mixed-bw", 1e8)[0] == in_turns
    assert io_s("--mixed-bw", 2e8)[0] == pytest.approx(max(read, write) / 1e8)
    memext.refused(*words, "--mixed-bw", -1, naming=["--mixed-bw", "'-1'"])


def test_what_is_fused_is_said_without_a_place(memext):
    """The first sweep of a run makes the initial grid, on a described machine as on this one; --no-fuse gives the bytes that the papers count."""
    words = ["-n", 60, 50, 40, "-t", 20, "--backend", "uring", "--algorithm", "stream", "--dram", "40MiB"]
    for more in [], ["--cores", 2]:
        fused, plain = tune(memext, *words, *more), tune(memext, *words, *more, "--no-fuse")
        assert fused["predicted_read_bytes"] < plain["predicted_read_bytes"] == plain["candidates"][0]["predicted_read_bytes"]


@pytest.mark.parametrize("plan", [["--algorithm", "stream"], ["--block", 20, 20, 2, "--algorithm", "redundant"], ["--algorithm", "skewed-min"]])
def test_snapshots_are_planned_for(memext, place, plan):
    """With --snapshot tune gives the plan of run, adds the bytes that run adds, and has less DRAM for Blocks than without; a step, and a field, that are not there
    are refused as run refuses them."""
    words = ["-n", 200, 60, 70, "-t", 40, "-d", place, "--backend", "aio", "--dram", "30MiB", *plan]
    snapshot = ["--snapshot", f"9:{place.parent}/never-made:2"]
    a, without = tune(memext, *words, *snapshot), tune(memext, *words)
    b, plain = memext.run(*words, *snapshot, "--dry-run"), memext.run(*words, "--dry-run")
    assert a["plan"] == b["plan"]
    for k in "predicted_read_bytes", "predicted_write_bytes", "fused", "phases":
        assert (a[k], without[k]) == (b[k], plain[k])
    assert a["dram_for_blocks_bytes"] + (1 << 20) <= without["dram_for_blocks_bytes"]
    assert a["predicted_read_bytes"] > without["predicted_read_bytes"] or a["plan"] != without["plan"]
    memext.refused("tune", *words, "--snapshot", "41:no", naming=["41", "40"])
    memext.refused("tune", *words, "--snapshot", "4:no", "--snapshot-fields", "w", naming="'w'")


def test_a_side_is_said_once(memext):
    """The same of one dimension twice is no harm; two things of it are refused, by tune and by run, and neither wins unseen."""
    words = ["-n", 40, 30, 20, "-t", 4, "--backend", "dram", "--side", "x=mirror"]
    for command in "tune", "run":
        memext.refused(command, *words, "--side", "x=periodic", naming=["x=mirror", "x=periodic", "twice"])
    tune(memext, *words, "--side", "x=mirror,mirror")


def test_refusals_name_values(memext, place):
    grid = ["-n", 510, 510, 1022, "-t", 64]
    memext.refused("tune", *grid, "--dram", "20MiB", naming=["smallest DRAM", "--dram"])
    memext.refused("tune", *grid, "--dram", "256MiB", "--capacity", "1GiB", naming=["1 GiB", "two Buffers"])
    memext.refused("tune", *grid, "--dram", "256MiB", "--algorithm", "skewed-y", "--block", 64, 64, 40,
                   naming=["BT = 40", "BY = 64", "BT <= 32"])
    memext.refused("tune", *grid, "--dram", "256MiB", "--backend", "dram", naming=["both Buffers", "--dram"])
    memext.refused("tune", *grid, "--cores", 64, "--calibrate", naming="--calibrate")
    memext.refused("tune", *grid, "--calibrate-seconds", 0, naming="--calibrate-seconds")


def test_a_block_that_is_given_takes_the_slabs_that_fit(memext, place):
    """Neither --block nor a plan line says how thick slabs are, or how many are read ahead: where the engine's own do not fit, thinner ones do. What is said stays, and is refused if it does not fit."""
    words = ["-n", 126, 126, 126, "-t", 24, "-d", place, "--dram", "40MiB", "--backend", "uring"]
    ways = ["--algorithm", "stream", "--block", 126, 126, 24], ["--plan", "stream by=126 bt=24"]
    plans = [json.loads(memext("run", *words, *way, "--dry-run", "--json", "-").stdout)["plan"] for way in ways]
    own = json.loads(memext("run", *words, *ways[1], "--dram", "1GiB", "--dry-run", "--json", "-").stdout)["plan"]
    for plan in plans:
        assert (plan["by"], plan["bt"]) == (126, 24) and (plan["slab"], plan["ahead"]) < (own["slab"], own["ahead"])
    assert plans[0]["slab"] == plans[1]["slab"] and plans[0]["ahead"] == plans[1]["ahead"]
    assert memext.run(*words, *ways[0])["checksum"] == memext.run(*words, "--algorithm", "redundant")["checksum"]
    memext.refused("run", *words, *ways[0], "--slab", own["slab"], naming=["BT = 24", "is free"])
    memext.refused("run", *words, "--plan", f"stream by=126 bt=24 slab={own['slab']}", naming=["raise --dram"])


@pytest.mark.parametrize("options, by, naming", [
    (["--dram", "32MiB"], 126, "of DRAM for two Blocks"), (["--dram", "40MiB"], 63, "of DRAM for two Blocks"),
    (["--dram", "60MiB", "--capacity", "130MiB"], 63, "side file"), (["--accel", "host,memory=4MiB"], 126, "--device-memory"),
])  # fmt: skip
def test_the_most_levels_of_a_block_are_said_exactly(memext, options, by, naming):
    """The way out of a Block that does not fit: with so many levels it fits, with one more it does not. The sentence names what is short: DRAM, the device, or an accelerator's memory."""
    words = ["tune", "-n", 126, 126, 126, "-t", 99, *options, "--algorithm", "stream", "--block", by, 126]
    said = memext.refused(*words, by // 2 if by < 126 else 99, naming=["BT <= ", naming]).stderr
    most = int(re.search(r"BT <= (\d+) fits", said).group(1))
    assert [memext(*words, bt).returncode for bt in (most, most + 1)] == [0, 2]


@pytest.mark.parametrize("options", [["--dram", "40MiB"], ["--dram", "1GiB", "--accel", "host,memory=8MiB"], ["--dram", "1GiB", "--accel", "host,memory=10MiB"]])
def test_block_and_plan_line_find_the_same_slabs(memext, place, options):
    words = ["run", "--dry-run", "--json", "-", "-n", 126, 126, 126, "-t", 24, "-d", place, *options]
    a, b = (json.loads(memext(*words, *way).stdout)["plan"] for way in (["--algorithm", "stream", "--block", 126, 126, 24], ["--plan", "stream by=126 bt=24"]))
    assert a == b and a["slab"] < 18


def test_more_dram_makes_slabs_no_thinner(memext, place):
    """Two slabs ahead are kept where they fit."""
    words = ["run", "--dry-run", "--json", "-", "-n", 126, 126, 126, "-t", 24, "-d", place, "--plan", "stream by=126 bt=24"]
    plans = [json.loads(memext(*words, "--dram", f"{dram}MiB").stdout)["plan"] for dram in range(31, 60)]
    slabs = [p["slab"] for p in plans]
    assert slabs == sorted(slabs) and len(set(slabs)) > 2 and {1, 2} == {p["ahead"] for p in plans}, [(p["slab"], p["ahead"]) for p in plans]


@pytest.mark.parametrize("n, nt, dram, plan", [(254, 64, 80, "stream by=254 bt=64"), (126, 24, 40, "stream by=63 bt=24")])
def test_a_plan_that_is_given_has_the_room_that_it_needs(memext, place, n, nt, dram, plan):
    """The sentence says how much it needs: with so much more --dram it is taken, with 2 MiB less it is not."""
    words = ["run", "--dry-run", "-n", n, n, n, "-t", nt, "-d", place, "--plan", plan, "--quiet"]
    needs, room = map(float, re.search(r"needs ([\d.]+) MiB of DRAM, and ([\d.]+) MiB is free", memext(*words, "--dram", f"{dram}MiB").stderr).groups())
    assert room < needs < 2 * room
    enough = int(dram + needs - room + 1)
    assert memext(*words, "--dram", f"{enough}MiB").returncode == 0
    assert memext(*words, "--dram", f"{enough - 2}MiB").returncode == 2


@pytest.fixture
def rates_are_kept(memext):
    """Rates are kept only if a quarter of the memory is twice the L3 caches or more."""
    machine = tune(memext, "-n", 8, 8, 8, "-t", 1)["machine"]
    share, caches = min(machine["memory_bytes"], machine["cgroup_limit_bytes"] or 1 << 62) // 4, machine["l3_bytes"] * machine["sockets"]
    if share < 2 * caches:
        pytest.skip(f"a quarter of the memory, {share >> 20} MiB, is less than twice the L3 caches of {caches >> 20} MiB, so no rates are kept")


def test_calibrate_is_kept(memext, rates_are_kept, place, tmp_path):
    """--calibrate measures and stores; the next call finds it; the place is left empty."""
    import os
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    words = ["tune", "-n", 200, 200, 200, "-t", 8, "-d", place, "--dram", "256MiB", "--json", "-"]
    first = json.loads(memext(*words, "--calibrate", env=environment).stdout)["rates"]
    second = json.loads(memext(*words, env=environment).stdout)["rates"]
    assert first["device_source"] == first["compute_source"] == "measured"
    assert second["device_source"] == second["compute_source"] == "cached"
    assert {k: v for k, v in first.items() if "_per_s" in k} == {k: v for k, v in second.items() if "_per_s" in k}
    assert list(place.iterdir()) == []


def test_rates_are_those_of_the_machine_whatever_the_dram(build, place, tmp_path):
    """memext tune measures the engines in more memory than caches hold, even for a plan with little DRAM, and for a small grid. In 8 MiB they would be as fast as in a cache, and such rates would choose plans for all later runs."""
    import os
    import subprocess
    words = ["tune", "-n", "200", "200", "8", "-t", "8", "-d", str(place), "--calibrate-seconds", "0.1", "--quiet", "--json", "-"]
    code = ("import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True, text=True); "
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); print(done.stdout)")  # fmt: skip
    for dram in ("64MiB", "2GiB"):
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / dram)}
        done = subprocess.run([sys.executable, "-c", code, str(build / "memext"), *words, "--dram", dram], capture_output=True, text=True, env=environment, check=True, timeout=600)
        held, report = done.stdout.split("\n", 1)
        machine = json.loads(report)["machine"]
        sees = min(x for x in (machine["memory_bytes"], machine["cgroup_limit_bytes"] or 1 << 62))
        assert int(held) << 10 > 0.7 * min(max(128 << 20, 3 * machine["l3_bytes"] * machine["sockets"]), sees // 4), dram


def test_a_run_that_calibrates_keeps_its_dram(memext, place, tmp_path):
    import os
    report = memext.run("-n", 200, 200, 200, "-t", 8, "-d", place, "--dram", "48MiB", "--calibrate", env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert report["peak_rss_bytes"] <= (48 + 64) << 20


def test_short_calibration_keeps_sizes(memext, rates_are_kept, place, tmp_path):
    """--calibrate-seconds measures every rate, and keeps the sizes of the tiled engine that the cache has, with what they raise its rate by."""
    import os
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    words = ["tune", "-n", 200, 150, 100, "-t", 8, "-d", place, "--dram", "256MiB", "--calibrate-seconds", 0.1]
    said = memext(*words, env=environment).stdout
    assert "# engine tiled:" not in said, "nothing was searched for"
    cache = tmp_path / "memext" / "rates.json"
    kept = json.loads(cache.read_text())
    sizes = {"tiled_slab": 10, "tiled_tile": 8, "tiled_ct": 12, "tiled_nx": 200, "tiled_raised": 90.0}
    (own,) = kept["compute"].values()
    assert not sizes.keys() & own.keys() and len(kept["device"]) == 1
    own_rate = own["tiled_updates_per_s"]
    own.update(sizes, tiled_updates_per_s=1.0, copy_bytes_per_s=1.0)
    cache.write_text(json.dumps(kept))
    report = json.loads(memext(*words, "--json", "-", env=environment).stdout)
    assert report["rates"]["device_source"] == report["rates"]["compute_source"] == "measured"
    assert [report["rates"]["tiled_sizes"][k] for k in ("slab", "tile", "ct")] == [10, 8, 12]
    (own,) = json.loads(cache.read_text())["compute"].values()
    assert sizes.items() <= own.items() and own["copy_bytes_per_s"] > 1.0
    assert own["tiled_updates_per_s"] > 5 * own_rate, "raised 90 times, whatever else the machine does"
    assert list(place.iterdir()) == []


def test_refined_sizes_are_kept_and_used(memext, rates_are_kept, place, tmp_path):
    """--calibrate says what its search for sizes of the tiled engine found, in words and in JSON. Sizes in the cache are those
    of later plans of that engine, unless some are given; runs with them are right and move the predicted bytes."""
    import os
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    problem = ["-n", 254, 150, 100, "-t", 40, "-d", place, "--dram", "1GiB"]
    text = memext("tune", *problem, "--calibrate", env=environment).stdout
    said = [line for line in text.splitlines() if line.startswith("# engine tiled: ")]
    assert len(said) == 1, text
    assert "# engine tiled:" not in memext("tune", *problem, env=environment).stdout
    report = json.loads(memext("tune", *problem, "--calibrate", "--json", "-", env=environment).stdout)
    sizes = report["rates"]["tiled_sizes"]
    searched = "own_slab" in sizes
    assert searched == said[0].startswith("# engine tiled: slab ")
    assert searched or report["machine"]["l3_bytes"] > 40 << 20 # a ring of this grid would stay in such a cache
    if searched:
        assert sizes["own_slab"] > 0 and sizes["own_tile"] > 0 and sizes["own_ct"] > 0 and sizes["tried"] > 0
        assert (sizes["slab"] > 0) == (sizes["gain"] > 1)

    cache = tmp_path / "memext" / "rates.json"
    kept = json.loads(cache.read_text())
    assert len(kept["compute"]) == 1
    for rates in kept["compute"].values():
        assert rates.get("tiled_slab", 0) == sizes["slab"]
        rates.update(tiled_slab=10, tiled_tile=8, tiled_ct=12, tiled_nx=254)
    cache.write_text(json.dumps(kept))
    problem[-1] = "64MiB"
    for words in [["--engine", "tiled"], ["--engine", "tiled", "--slab", 7], ["--engine", "iblock"]]:
        run = memext.run(*problem, *words, "--verify", env=environment)
        plan = run["plan"]
        assert run["verified"] is True
        assert ((plan["tile"], plan["ct"]) == (8, 12)) == (words == ["--engine", "tiled"]), plan
        assert words != ["--engine", "tiled"] or plan["slab"] <= 10, plan # fewer where DRAM is short
        assert plan["slab"] == 7 or "--slab" not in words
        for key in ["read_bytes", "write_bytes"]:
            assert run[key] == run["predicted_" + key], words


@pytest.mark.parametrize("n", [(94, 94, 126), (510, 510, 1022), (30, 29, 31)])
def test_no_sweep_of_a_long_run_lasts_for_days(memext, place, n):
    """Where DRAM would hold all levels of a run of months, its sweeps, which are what a crash costs and what a signal waits for,
    take ten minutes at most by prediction; a Block that is given stays."""
    words = ["run", "-n", *n, "-t", 10**9, "-d", place, "--dry-run", "--json", "-"]
    report = json.loads(memext(*words).stdout)
    assert report["plan"]["bt"] < 10**8 and 0 < report["commits"]["sweep_s"] <= 660
    given = json.loads(memext(*words, "--algorithm", "stream", "--block", n[1], n[2], 50000).stdout)
    assert given["plan"]["bt"] == 50000


def test_plans_of_very_many_steps(memext):
    """The number of steps looked at does not grow with the number asked for."""
    report = json.loads(memext("tune", "-n", 30, 30, 40, "-t", 4 * 10**9, "--json", "-").stdout)
    assert report["search"]["evaluated"] < 10**7
    report = json.loads(memext("tune", "-n", 510, 510, 20000, "-t", 10**7, "--dram", "1GiB", "--json", "-").stdout)
    assert report["search"]["evaluated"] < 10**6


def test_the_papers_plans(memext, tmp_path):
    """Table II, Naive-Tune's log and the bytes of the slides, as the plan table2 asks memext for them: as published."""
    sys.path[:0] = [str(ROOT), str(ROOT / "experiments")]
    from runner import plan

    from analysis import published

    known = published.read_all()["table2"].values
    runs = {run.id: run for run in plan.load(plan.PLANS / "table2.toml", "quick").runs}
    assert set(runs) == set(known)
    for name, run in runs.items():
        words = [str(tmp_path / "plan.json") if word == "{json}" else word for word in run.words[1:]]
        assert memext(*words).returncode == 0, name
        report = json.loads((tmp_path / "plan.json").read_text())
        if name == "slides-bytes":
            assert abs(report["predicted_read_bytes"] / 2**30 - known[name]["value"]) < 0.005
        else:
            assert [report["plan"][k] for k in ("by", "bz", "bt", "iy", "iz")] == known[name]["value"], name
