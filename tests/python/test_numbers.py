# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that are too large: refused with the limit before anything is made, or counted; nothing goes on for ever."""
import json
import os

import pytest

GRID = ["-n", 14, 12, 10]
MOST = 2**53


@pytest.fixture
def place(quick_place):
    return quick_place


@pytest.mark.parametrize("algorithm", ["stream", "redundant", "skewed"])
@pytest.mark.parametrize("steps", [10**9, 3 * 10**12])
def test_a_run_of_more_steps_than_anybody_waits_for_is_planned(memext, place, algorithm, steps):
    """In an instant, with the bytes of that many sweeps."""
    done = memext("run", *GRID, "-t", steps, "-d", place, "--algorithm", algorithm, "--block", 12, 10, 100, "--dry-run", "--json", "-", timeout=60)
    report = json.loads(done.stdout)
    few = json.loads(memext("run", *GRID, "-t", 100 * 1000, "-d", place, "--algorithm", algorithm, "--block", 12, 10, 100, "--no-fuse", "--dry-run", "--json", "-").stdout)
    assert done.returncode == 0 and abs(report["predicted_write_bytes"] / (few["predicted_write_bytes"] * (steps / 10**5)) - 1) < 1e-3
    assert memext("tune", *GRID, "-t", steps, "--check", 7, "--snapshot", "10:snaps", timeout=60).returncode == 0


@pytest.mark.parametrize("words, naming", [
    (["-t", 2**63 - 1], ["steps", str(2**63 - 1), "2^53"]), (["-t", 2**63], ["steps", str(2**63)]), (["-t", MOST + 1], ["2^53"]), (["-t", MOST], ["2^61"]),
    (["-t", 3, "--block", 2**40 + 1, 1, 1], ["--block", "2^40"]), (["-t", 3, "--tile", 1, 2**62], ["--tile", "2^40"]), (["-t", 3, "--iblock", 2**41, 1], ["--iblock"]),
    (["-t", 3, "--check", MOST + 1], ["--check", "2^53"]), (["-t", 3, "--slab", 2**20 + 1], ["--slab", str(2**20)]), (["-t", 3, "--ahead", 4097], ["4096"]),
    (["-t", 3, "--threads", 1025], ["1024"]), (["-t", 10**6, "--size", 10**6, 10**6, 10**4], ["2^61"])])
def test_limits_of_options(memext, place, words, naming):
    for command in ["run", "-d", place], ["run", "-d", place, "--dry-run"], ["tune"]:
        memext.refused(command[0], *GRID, *words, *command[1:], naming=naming, timeout=60)
    assert os.listdir(place) == []


@pytest.mark.parametrize("plan, naming", [
    ("stream by=3 bt=4 faces=side-file slab=4611686018427387904", ["slab", str(2**20)]), ("stream bt=4 threads=2147483647", ["threads", "1024"]),
    ("stream bt=4 threads=1025", ["1024"]), ("stream bt=4 ahead=4097", ["ahead", "4096"]), ("stream bt=4 column=2147483648", ["column", "2147483647"]),
    ("skewed by=1099511627777 bz=1 bt=1", ["by", "2^40"]), ("stream bt=9223372036854775807", ["bt"]), ("stream bt=4 tile=1099511627777", ["tile"])])
def test_a_plan_has_the_limits_of_its_options(memext, place, plan, naming):
    (place / "plan").write_text(plan + "\n")
    for given in plan, place / "plan":
        memext.refused("run", *GRID, "-t", 4, "-d", place, "--plan", given, naming=naming, timeout=60)
    assert os.listdir(place) == ["plan"]


@pytest.mark.parametrize("plan", [
    "stream by=12 bz=10 bt=4 engine=tiled tile=1099511627776 ct=1099511627776 slab=1048576 ahead=4096 column=2147483647",
    "stream by=3 bz=10 bt=4 engine=iblock iy=1099511627776 iz=1099511627776 slab=1048576 faces=side-file", "stream by=3 bz=10 bt=4 slab=1048576 faces=dram ahead=4096",
    "redundant engine=iblock by=1099511627776 bz=1099511627776 bt=1099511627776 iy=1099511627776 iz=1099511627776", "redundant by=1 bz=1 bt=9",
    "skewed-min by=1099511627776 bz=1 bt=1099511627776", "skewed-y by=1 bz=1099511627776 bt=9"])
def test_the_largest_numbers_give_the_same_bits(memext, place, plan):
    """A Block beyond the grid is the grid. What a plan needs may be refused, with a sentence and nothing left."""
    done = memext("run", *GRID, "-t", 9, "-d", place, "--plan", plan, "--dram", "100MiB", "--verify", "-q", "--json", place / "r.json", timeout=120)
    assert done.returncode in (0, 2) and set(os.listdir(place)) <= {"r.json"}, done
    assert json.loads((place / "r.json").read_text())["status"] == ("done" if done.returncode == 0 else "failed")
