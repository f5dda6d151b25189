# SPDX-License-Identifier: BSD-3-Clause
"""What a run replaces goes when all that can be refused was checked: store, traces and snapshots of before are there after a request that is refused."""
import json

import numpy as np
import pytest
from conftest import LONG

KERNEL = """#define MX_NAME "k"
#define MX_RADIUS 1
#define MX_STATE(F) F(u, double) F(v, float)
#define MX_FIXED(F) F(c, float)
#define MX_PARAMS(P) P(w, 0.1)
#include <memext/cell.h>
MX_CELL
    SET(u, AT(u,0,0,0) + PARAM(w) * AT(c,0,0,0) * (AT(u,1,0,0) - AT(u,0,0,0)));
    SET(v, AT(v,0,0,0) * 0.5f + AT(v,0,1,0) * 0.25f);
MX_END
"""
N = (6, 7, 8)


@pytest.fixture
def files(tmp_path):
    """Pairs of files with the frame, a.npy and other.npy of each kind; 300 KiB, so that a sample is not all of them: big-a.npy, big-b.npy."""
    rng = np.random.default_rng(1)
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", rng.random(tuple(n + 2 for n in N)))
        np.save(tmp_path / f"{name}4.npy", rng.random(tuple(n + 2 for n in N)).astype("f4"))
        np.save(tmp_path / f"bare-{name}.npy", rng.random(N))
        np.save(tmp_path / f"series-{name}.npy", rng.random(9))
        (tmp_path / f"{name}.raw").write_bytes(bytes(64) + rng.random(tuple(n + 2 for n in N)).tobytes() + bytes(64))
        np.save(tmp_path / f"big-{name}.npy", rng.random((34, 36, 38)))
    (tmp_path / "k.c").write_text(KERNEL)
    (tmp_path / "k2.c").write_text(KERNEL.replace("0.25f", "0.125f"))
    return tmp_path


def state(memext, place, tmp_path):
    memext("export", place, "-o", tmp_path / "state.npy", "--overwrite")
    return (tmp_path / "state.npy").read_bytes()


REFUSED = ["-n 30 30 30 -t 3 --dram 1MiB", "-n 200 200 200 -t 3 --dram 28MiB --verify", "-n 30 30 30 -t 3 --snapshot 1:full", "-n 30 30 30 -t 3 --probes probes --probes-out a.npy",
           "-n 30 30 30 -t 3 --plan nonsense", "--kernel broken.c -n 30 30 30 -t 3 --init random", "-n 30 30 30 -t 3 -o a.npy", "-n 30 30 30 -t 3 --timeline nodir/x",
           "-n 9 8 7 -t 3 --input STORE,f64,offset=2097152", "--kernel k.c -n 9 8 7 -t 3 --init u=zero --init v=zero --field c=STORE,f32,offset=2097152",
           "-n 30 30 30 -t 3 --integrity --backend mmap --algorithm direct", "-n 200 200 200 -t 3 --overwrite --probes probes --probes-out traces.npy --verify --dram 28MiB --snapshot 1:old"]


@pytest.mark.parametrize("words", REFUSED)
def test_a_refused_run_leaves_what_it_would_replace(memext, quick_place, files, words):
    """--force, and something else that is wrong: store, traces and snapshots are those of before, byte by byte."""
    (files / "full").mkdir()
    (files / "full" / "x").touch()
    (files / "probes").write_text("u 3 3 3\n")
    (files / "broken.c").write_text("#error no\n")
    run = dict(cwd=files, timeout=900)
    memext.run("-n", 12, 12, 12, "-t", 3, "-d", quick_place, "--keep", "--snapshot", "1:old", "--probes", "probes", "--probes-out", "traces.npy", **run)
    kept = [quick_place / "memext.store", files / "traces.npy", *sorted((files / "old").iterdir())]
    before = [path.read_bytes() for path in kept]
    done = memext("run", "-d", quick_place, "--force", "--quiet", *words.replace("STORE", str(quick_place / "memext.store")).split(), **run)
    assert done.returncode == 2 and done.stderr.strip(), done.stderr
    assert [path.read_bytes() for path in kept] == before


def test_an_old_note_never_stands_for_new_data(memext, quick_place, tmp_path):
    """Calls of a run with --force fail, one in each run: the state of before, or none; not half of each."""
    memext.run("-n", 22, 21, 23, "-t", 3, "--init", "gauss", "-d", quick_place, "--keep")
    kept = (quick_place / "memext.store").read_bytes()
    old, there = state(memext, quick_place, tmp_path), 0
    for call in range(1, 60, 1 if LONG else 4):
        done = memext("run", "-n", 22, 21, 23, "-t", 9, "-d", quick_place, "--force", "--keep", "--quiet", "--backend", "aio", "--fault", f"call={call}")
        assert done.returncode in (0, 2, 3), done.stderr
        (tmp_path / "state.npy").unlink(missing_ok=True)
        exported = memext("export", quick_place, "-o", tmp_path / "state.npy")
        if exported.returncode == 0 and json.loads(memext("info", quick_place, "--json", "-").stdout)["store"]["problem"]["nt"] == 3:
            assert (tmp_path / "state.npy").read_bytes() == old, call
            there += 1
        (quick_place / "memext.store").write_bytes(kept)
    assert there > 1


def test_ranks_replace_their_stores_when_all_can(memext, quick_place, tmp_path):
    """What one rank refuses leaves the stores of all."""
    memext.run("-n", 12, 12, 24, "-t", 3, "-d", quick_place, "--ranks", 2, "--keep")
    stores = sorted(quick_place.rglob("memext.store"))
    before = [path.read_bytes() for path in stores]
    memext.refused("run", "-n", 200, 200, 200, "-t", 3, "-d", quick_place, "--ranks", 2, "--force", "--quiet", "--verify", "--dram", "28MiB", naming=["DRAM"])
    assert len(stores) == 2 and [path.read_bytes() for path in stores] == before


def test_a_refused_wavefront_run_leaves_what_it_would_replace(memext, quick_place, tmp_path):
    memext.run("-n", 12, 12, 12, "-t", 3, "-d", quick_place, "--keep")
    before = (quick_place / "memext.store").read_bytes()
    matrix = tmp_path / "za.npy"
    np.save(matrix, np.zeros((34, 34)))
    done = memext("wavefront", "-n", 32, 32, "-t", 3, "-d", quick_place, "--force", "--quiet", "--output", f"za={matrix}")
    assert done.returncode == 2 and (quick_place / "memext.store").read_bytes() == before, done.stderr


@pytest.mark.parametrize("fault", ["call=2,calls_from=pwrite", "call=2,calls_from=fallocate"])
def test_a_run_that_fails_before_it_takes_the_place_leaves_a_longer_store(memext, quick_place, tmp_path, fault):
    """A run of one sweep that writes to a file needs no space for its Buffers: it makes the file of a store longer at most. The faults meet the first writes to the store."""
    memext.run("-n", 60, 60, 60, "-t", 3, "-d", quick_place, "--keep")
    kept = (quick_place / "memext.store").read_bytes()
    done = memext("run", "-n", 12, 12, 12, "-t", 1, "-d", quick_place, "--force", "-o", tmp_path / "o.npy", "-q", "--fault", fault)
    assert done.returncode == 3 and "memext.store cannot be written" in done.stderr, done.stderr
    assert (quick_place / "memext.store").read_bytes() == kept
