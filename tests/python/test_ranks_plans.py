# SPDX-License-Identifier: BSD-3-Clause
"""Several ranks: plans, weights and links, planned and simulated; what is refused."""
import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT
from ranks_of_runs import EACH, GRID, NT, NX, NY, NZ, PLANS, alone, check_bytes, place, ranks, whole  # noqa: F401 (fixtures)


def test_weights(memext, place, whole):
    """Unequal ranks: the same bits, planes in proportion; a run that is resumed keeps its cut, or gets the one that is asked for."""
    plans = {"stream": ["--algorithm", "stream", "--block", NY, NZ, 2], "redundant": ["--algorithm", "redundant", "--block", 7, 5, 2]}
    for plan in plans.values():
        result = ranks(memext, place, 3, *GRID, *plan, "--check", 4, "--rank-weights", "4,1,2.5")
        assert result["checksum"] == whole and [one["planes"] for one in result["ranks"]["each"]] == [28, 7, 18]
        assert result["norms"] == alone(memext, *GRID, "--check", 4)["norms"]
        check_bytes(result, 3)

    def resumed(steps, n, *more):
        result = memext.run("--resume", "-d", place, "--ranks", n, *EACH, "--keep", "-t", steps, *more)
        return result["checksum"], [one["planes"] for one in result["ranks"]["each"]]

    ranks(memext, place, 3, *GRID, "-t", 3, *plans["stream"], "--rank-weights", "4,1,2.5", "--keep")
    assert resumed(5, 3)[1] == [28, 7, 18]
    assert resumed(7, 3, "--rank-weights", "1,1,1")[1] == [18, 17, 18]
    assert resumed(9, 3, "--rank-weights", "1,1,1")[1] == [18, 17, 18] and not (place / "rank-0" / "cut-2").exists()
    assert resumed(NT, 2, "--rank-weights", "1,3") == (whole, [13, 40])
    for weights, n in [("1,2", 3), ("1,0", 2), ("1,2,3", 2), ("a,b", 2), ("1;2", 2)]:
        memext.refused("run", *GRID, "--ranks", n, "--dry-run", "--rank-weights", weights, naming=["positive number"])
    memext.refused("run", *GRID, "--ranks", 2, "--dry-run", "--rank-weights", "1,1000", naming=["the smallest rank has"])
    memext.refused("run", *GRID, "-d", place, "--rank-weights", "1", naming=["several ranks"])


def test_refusals(memext, place, tmp_path):
    """What ranks cannot do is said in a sentence, before anything is done."""
    words = [*GRID, "-d", place, "--ranks"]
    memext.refused(*("run", *words, 6, *EACH, "--algorithm", "stream", "--block", NY, NZ, 9), naming=["bt = 8 or less"])
    memext.refused(*("run", *words, 64, *EACH), naming=["53 ranks or fewer"])
    done = memext("run", *words, 2, *EACH, "--algorithm", "skewed", "--block", 9, 9, 2)
    assert done.returncode == 2 and "stream" in done.stderr, done.stderr


def test_plans(memext, place, whole):
    """A dry run says what a rank sends; the tuner finds a plan that all ranks take."""
    dry = memext.run(*GRID, "--ranks", 4, "--dry-run", *PLANS["stream"])
    result = ranks(memext, place, 4, *GRID, *PLANS["stream"])
    assert dry["ranks"]["predicted_sent_bytes"] == result["ranks"]["each"][1]["sent_bytes"]
    assert ranks(memext, place, 4, *GRID)["checksum"] == whole
    done = memext("tune", "-n", 1022, 1022, 8192, "-t", 1000, "--ranks", 64, "--dram", "4GiB", "--cores", 16, "--sockets", 1, "--l2", "1MiB", "--l3",
                  "32MiB", "--json", "-")
    assert done.returncode == 0, done.stderr
    tuned = json.loads(done.stdout)
    assert tuned["predicted_sent_bytes"] > 0 and tuned["plan"]["bt"] <= 128


def tuned(memext, *words):
    done = memext("tune", "-n", 1022, 1022, 8192, "-t", 1000, "--ranks", 64, "--dram", "64GiB", "--cores", 16, "--sockets", 1, "--l2", "1MiB", "--l3",
                  "32MiB", *words, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("n", [2, 3])
def test_what_ranks_share(memext, place, n):
    """A dry run of ranks gives each of them its part of this machine's cores and memory, as the run does; ranks of another link have a machine each."""
    result, dry = (memext.run(*GRID, "--ranks", n, "-d", place, *more) for more in ([], ["--dry-run"]))
    assert [dry["plan"]["threads"], dry["dram_limit_bytes"]] == [result["plan"]["threads"], result["dram_limit_bytes"]]
    one = memext.run(*GRID, "--dry-run")
    assert dry["dram_limit_bytes"] == one["dram_limit_bytes"] // n and dry["plan"]["threads"] == max(1, one["plan"]["threads"] // n)
    many = memext.run(*GRID, "--ranks", n, "--dry-run", "--link", "mpi,10Gbit")
    assert [many["plan"]["threads"], many["dram_limit_bytes"]] == [one["plan"]["threads"], one["dram_limit_bytes"]]


def test_link_rates(memext, place):
    """A link is measured, or is what --link says: predicted seconds know it, and where every message costs much fewer go, from deeper ends."""
    fast, slow = tuned(memext, "--link", "100Gbit"), tuned(memext, "--link", "mpi,10Mbit")
    assert slow["link"] == {"ranks": 64, "bytes_per_s": 1.25e6, "latency_s": 2e-5, "source": "given"}
    for one in [fast, slow]:
        time, link = one["predicted_time"], one["link"]
        assert time["link_s"] >= one["predicted_sent_bytes"] / link["bytes_per_s"]
        assert one["predicted_seconds"] >= max(time["link_s"], time["compute_s"], time["io_s"])
    assert slow["predicted_seconds"] > 10 * fast["predicted_seconds"]
    computing = ["--read-bw", 1e11, "--write-bw", 1e11, "--rate", 1e8]  # deep ends cost most
    near, far = [tuned(memext, *computing, "--link", link)["plan"]["bt"] for link in ("100Gbit", "100Gbit,40s")]
    assert near < far
    given = memext.run(*GRID, "--ranks", 4, "--dry-run", *PLANS["stream"], "--link", "1GB,5us")["ranks"]
    assert given["link_source"] == "given" and (given["link_bytes_per_s"], given["link_latency_s"]) == pytest.approx((1e9, 5e-6))
    measured = ranks(memext, place, 3, *GRID, *PLANS["stream"])["ranks"]
    assert measured["link_source"] == "measured" and measured["link_bytes_per_s"] > 1e6 and 0 < measured["link_latency_s"] < 1
    for word in ["pigeon", "10", "10Gbit,5", "local,", "-1Gbit", "mpi,1Gbit,1us,1"]:
        memext.refused("run", *GRID, "--ranks", 2, "-d", place, "--link", word, naming=["RATE"])


def test_lag(memext):
    """Predicted seconds have what is left of a message when the rank below ends its sweep (docs/ranks.md)."""
    for link in ["1Gbit,20us", "10Gbit,20us", "100Gbit,20us", "100Gbit,100ms"]:
        one = tuned(memext, "--no-fuse", "--link", link, "--read-bw", 2e10, "--write-bw", 2e10, "--rate", 1e10)
        time, link, bt, ranks, planes = one["predicted_time"], one["link"], one["plan"]["bt"], 64, 128
        sweeps = -(-1000 // bt)
        passes = sweeps * (planes + bt - 1)  # of a plane through a sweep
        on_link = one["predicted_sent_bytes"] / (2 * sweeps * bt * link["bytes_per_s"])
        moving, computing = time["io_s"] + time["stall_s"], time["compute_s"] + time["copy_s"] + time["cores_s"]
        assert one["plan"]["algorithm"] == "stream" and min(moving, computing) > 0.1 * max(moving, computing), "the norm would differ too little from the longer one"
        swept = (moving**3 + computing**3) ** (1 / 3) / passes
        lag = max(0, link["latency_s"] + on_link + (bt - 1) * max(0, on_link - swept) - bt * time["compute_s"] / passes / 4)
        around = (sweeps - 1) * ((ranks - 1) * lag - bt * time["compute_s"] / passes / 2) / ranks
        wanted = link["latency_s"] + bt * on_link + max(lag * min(ranks - 1, sweeps - 1), around)
        assert time["lag_s"] == pytest.approx(wanted, rel=1e-6), (link, bt)


def test_simulation():
    """Messages in pieces never lose against whole ones, nor anything where the link is as fast as a sweep; predicted seconds are those of the replay."""
    import importlib.util
    spec = importlib.util.spec_from_file_location("weak_scaling", ROOT / "experiments" / "weak_scaling.py")
    weak_scaling = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(weak_scaling)
    for n in [1, 2, 3, 8, 40]:
        for rate in [1.25e9, 3.125e9, 12.5e9]:
            given = (n, 512, 1022**2, 640, 32, 1e10, rate, 2e-5)
            pieces, committed = weak_scaling.simulate_pieces(*given), weak_scaling.simulate_pieces(*given, commits=True)
            assert pieces <= 1.001 * weak_scaling.simulate(*given) and pieces <= committed
            assert weak_scaling.closed_form(*given) == pytest.approx(pieces, rel=0.02)
            assert weak_scaling.closed_form(*given, commits=True) == pytest.approx(committed, rel=0.02)
            if rate > 3e9:
                assert pieces == pytest.approx(weak_scaling.simulate(1, *given[1:]) * (1 + min(n - 1, 2) * 31 / 1024), rel=0.003)


def test_strong_scaling(build, tmp_path):
    """The experiment compares with one rank, named or not."""
    words = ["--strong-ranks", "2", "--size", NX, NY, NZ, "--steps", 4, "--bt", 2, "--pairs", 1, "--backend", "dram", "--json", tmp_path / "results.json"]
    command = [sys.executable, ROOT / "experiments" / "weak_scaling.py", *words, "--place", tmp_path]
    done = subprocess.run(list(map(str, command)), env={**os.environ, "MEMEXT_BUILD": str(build)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [row["ranks"] for row in json.loads((tmp_path / "results.json").read_text())[0]["strong"]] == [1, 2]
