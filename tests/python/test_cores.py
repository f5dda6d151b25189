# SPDX-License-Identifier: BSD-3-Clause
"""bench_replay: the engine's own scheduler in virtual time computes everything once and in order, whatever the number of cores; and what many threads change."""
import json
import subprocess

import pytest
from conftest import BUILD

REPLAY = BUILD / "bench_replay"
WAYS = {"in DRAM": ["--in-dram", "--nt", "32"], "planes": ["--nt", "64", "--bt", "32"], "strips": ["--nt", "16", "--bt", "8", "--by", "50"]}

pytestmark = pytest.mark.skipif(not REPLAY.exists(), reason="the benchmarks are not built")


def replay(*words):
    done = subprocess.run([REPLAY, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


@pytest.mark.parametrize("way", WAYS)
def test_every_row_of_every_level_once_and_in_order(way):
    grid = ["--nx", 254, "--ny", 118, "--nz", 150, *WAYS[way], "--check"]
    said = {cores: replay(*grid, "--cores", cores) for cores in (1, 2, 5, 24)}
    for cores, s in said.items():
        assert s["broken"] == 0 and s["computed_rows"] == 118 * 150 * s["nt"], cores
        assert 0 <= s["waiting"] < 1 and s["gups"] > 0
    assert said[1]["waiting"] < 1e-9
    assert 1 < said[2]["gups"] / said[1]["gups"] <= 2.01
    print(f"{way}: 2 cores {said[2]['gups'] / said[1]['gups']:.2f} times as fast as one, 24 cores {said[24]['gups'] / said[1]['gups']:.2f} times")


def test_the_same_twice():
    words = ["--nx", 254, "--ny", 118, "--nz", 150, "--nt", 32, "--cores", 24]
    assert replay(*words) == replay(*words)


def test_only_many_threads_move_on_by_several_slabs():
    slab = {cores: replay("--nx", 254, "--ny", 118, "--nz", 150, "--nt", 32, "--cores", cores)["slab"] for cores in (1, 2, 8, 16, 32, 64)}
    assert slab[1] == slab[2] == slab[8] and slab[16] == 2 * slab[1] and slab[32] == slab[64] == 4 * slab[1]


def test_several_slabs_a_call_give_the_same_bits(tmp_path):
    report = tmp_path / "r.json"
    subprocess.run([BUILD / "memext", "run", "-n", "62", "46", "190", "-t", "24", "-d", tmp_path, "--threads", "20", "--plan", "stream bt=24 slab=40", "--verify",
                    "--quiet", "--json", report], check=True, timeout=600)  # fmt: skip
    r = json.loads(report.read_text())
    assert r["verified"] and r["plan"]["slab"] == 40 and r["plan"]["threads"] == 20
