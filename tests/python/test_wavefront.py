# SPDX-License-Identifier: BSD-3-Clause
"""memext wavefront end to end: the loop in numpy, inputs and outputs, kill and resume, refusals that destroy nothing."""
import json
import os
import signal
import subprocess
import sys

import numpy
import pytest
from conftest import ROOT, wait_until

NAMES = ["za", "zr", "zb", "zu", "zv", "zz"]
ROWS, COLS, K = 41, 67, 6
SIZE = ["-n", ROWS, COLS, "--iterations", K]


@pytest.fixture
def place(quick_place):
    return quick_place


def matrices(rows=ROWS, cols=COLS, seed=3):
    draw = numpy.random.default_rng(seed)
    return {name: draw.random((rows + 2, cols + 2)) * (1 if name == "za" else 0.25) for name in NAMES}


def loop(m, iterations):
    """The loop as the paper prints it, cell by cell; numpy's doubles round as C's do."""
    za = [list(map(float, row)) for row in m["za"]]
    zr, zb, zu, zv, zz = ([list(map(float, row)) for row in m[name]] for name in NAMES[1:])
    for _ in range(iterations):
        for i in range(1, len(za) - 1):
            for j in range(1, len(za[0]) - 1):
                qa = za[i][j + 1] * zr[i][j] + za[i][j - 1] * zb[i][j] + za[i + 1][j] * zu[i][j] + za[i - 1][j] * zv[i][j] + zz[i][j]
                za[i][j] += 0.175 * (qa - za[i][j])
    return numpy.array(za)


def run(memext, *words, status=0, **options):
    done = memext("wavefront", *words, "--quiet", "--json", "-", **options)
    assert done.returncode == status, f"exit status {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def whole(memext):
    return run(memext, *SIZE, "--sequential")["checksum"]


@pytest.mark.parametrize("layout", ["row", "block", "frontier"])
def test_files_in_and_out(memext, place, tmp_path, layout):
    """The result of six files equals the loop in Python bit by bit; the coefficients come back as they went in."""
    given = matrices()
    words = ["--iterations", 3, "-d", place, "--layout", layout, "--tile", 7, 20, "--waves", 2]
    for name in NAMES:
        numpy.save(tmp_path / f"{name}.npy", given[name])
        words += ["--input", f"{name}={tmp_path}/{name}.npy", "--output", f"{name}={tmp_path}/out-{name}.npy"]
    report = run(memext, *words, "--verify")
    assert report["verified"] and report["problem"]["rows"] == ROWS and report["problem"]["cols"] == COLS
    out = {name: numpy.load(tmp_path / f"out-{name}.npy") for name in NAMES}
    assert out["za"].tobytes() == loop(given, 3).tobytes()
    for name in NAMES[1:]:
        assert out[name].tobytes() == given[name].tobytes()


@pytest.mark.parametrize("backend", ["dram", "mmap", "aio", "uring"])
def test_backends_agree(memext, place, whole, backend):
    report = run(memext, *SIZE, "-d", place, "--backend", backend, "--tile", 8, 30, "--waves", 4, "--threads", 3)
    assert report["checksum"] == whole and report["backend"] == backend
    if backend in ("aio", "uring"):
        assert report["read_bytes"] == report["predicted_read_bytes"] and report["write_bytes"] == report["predicted_write_bytes"]
    assert report["plan"]["passes"] == 2 and report["updates"] == report["predicted_updates"] == ROWS * COLS * K


def test_a_block_device(memext, whole, loop, tmp_path):
    """Its blocks are known once it is open: what is predicted and said of the DRAM is of the plan for them. The store stays, for export."""
    device = loop(64 << 20)
    words = [*SIZE, "-d", device, "--backend", "aio", "--tile", 8, 30, "--waves", 2]
    report = run(memext, *words, "-o", tmp_path / "run.npy")
    assert report["checksum"] == whole and report["device"]["offset_align_bytes"] == report["plan"]["align_bytes"]
    assert report["read_bytes"] == report["predicted_read_bytes"] and report["write_bytes"] == report["predicted_write_bytes"]
    assert memext("export", device, "-o", tmp_path / "export.npy", "-q").returncode == 0
    assert (tmp_path / "export.npy").read_bytes() == (tmp_path / "run.npy").read_bytes()


def test_swap_agrees(memext, whole, swap_space):
    assert run(memext, *SIZE, "--backend", "swap", "--tile", 8, 30)["checksum"] == whole


@pytest.mark.parametrize("tile", [(1, 1), (100, 100), (41, 5)])
def test_awkward_sizes(memext, place, tile):
    for rows, cols in [(1, 1), (1, 97), (97, 1), (2, 3)]:
        report = run(memext, "-n", rows, cols, "--iterations", 5, "-d", place, "--tile", *tile, "--verify")
        assert report["verified"] is True


def test_dram_is_kept(memext, place):
    """Predicted DRAM within --dram, and the process within it and 64 MiB."""
    dram = 12 << 20
    report = run(memext, "-n", 700, 900, "--iterations", 20, "-d", place, "--dram", dram, "--verify")
    assert report["block_bytes"] <= dram and report["peak_rss_bytes"] <= dram + (64 << 20)
    assert report["space"]["matrix_bytes"] * 6 > dram


REQUESTS = {}  # after which a pass is committed: found once


def dying(memext, place, *words):
    """A store with at least one pass committed, whose device then died."""
    fail_after = REQUESTS.get(words, 8)
    while True:
        done = memext("wavefront", *SIZE, "-d", place, "--backend", "fault:aio", "--fault", f"fail_after={fail_after}", "--waves", 1,
                      "--tile", 8, 30, "--force", "--quiet", *words)  # fmt: skip
        assert done.returncode == 3, done.stderr
        if "resume the run with --resume" in done.stderr and "iteration 0 of" not in done.stderr:
            REQUESTS[words] = fail_after
            return
        fail_after += 12


@pytest.mark.parametrize("how", [["--backend", "mmap"], ["--backend", "uring", "--waves", 3], ["--threads", 5, "--verify"]])
def test_resume(memext, place, whole, how):
    """A run goes on from its last commit, on another backend, with other waves and workers; and after the end nothing is left."""
    dying(memext, place)
    report = run(memext, "--resume", "-d", place, *how)
    assert report["checksum"] == whole and 0 < report["resumed_from"] < K
    assert report["steps_done"] == K and not (place / "memext.store").exists()


def test_killed_at_any_time(memext, place):
    """kill -9 at the commits that are seen, again and again, until the run is over: the checksum of one run."""
    size = ["-n", 400, 500, "--iterations", 30]
    expected = run(memext, *size, "--sequential")["checksum"]
    store, words, kills = place / "memext.store", [*size, "-d", place, "--waves", 1, "--tile", 16, 100], 0
    seen = 0
    while kills < 6:
        process = subprocess.Popen([str(memext.program), "wavefront", *map(str, words), "-q"], stderr=subprocess.PIPE, text=True)
        wait_until(lambda: store.exists() and generation(memext, place) > seen, "a commit", process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if not store.exists():
            break  # it was faster
        seen, kills = generation(memext, place), kills + 1
        words = ["--resume", "-d", place]
    if store.exists():
        assert run(memext, "--resume", "-d", place)["checksum"] == expected
    else:
        assert run(memext, *size, "-d", place)["checksum"] == expected


def generation(memext, place):
    """Commits and whatever else was written to the superblock; 0 before the first commit."""
    done = memext("info", place, "--json", "-")
    store = json.loads(done.stdout)["store"] if done.returncode == 0 else {"why": "nothing was committed"}
    return 0 if store["why"] == "nothing was committed" else store["generation"]


def test_interrupted(memext, place):
    """SIGINT: status 5, the report says so, and the run can be resumed once something is committed."""
    report = place / "report.json"
    process = subprocess.Popen([str(memext.program), "wavefront", "-n", "600", "700", "--iterations", "100000", "-d", str(place), "--waves", "5",
                                "--json", str(report), "-q"], stderr=subprocess.PIPE, text=True)  # fmt: skip
    first = []

    def passes_are_committed():
        now = generation(memext, place) if (place / "memext.store").exists() else 0
        if now and not first:
            first.append(now)
        return first and now > first[0] + 1

    assert wait_until(passes_are_committed, "commits of passes", process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 5 and "--resume" in err
    told = json.loads(report.read_text())
    assert told["status"] == "interrupted" and told["steps_done"] % 5 == 0 and told["steps_done"] > 0
    assert memext("info", place).returncode == 0


def test_a_full_disk(memext, mounted, tmp_path):
    """No room for the Buffers: status 2 before work. No room for the output: status 2, and nothing of either stays."""
    small, _ = mounted(24 << 20)
    memext.refused("wavefront", "-n", 1000, 1000, "--iterations", 2, "-d", small, naming="MiB")
    memext.refused("wavefront", "-n", 1800, 1800, "--iterations", 2, "-d", tmp_path, "-o", small / "out.npy", naming="full")
    assert [p.name for p in small.iterdir() if p.name != "lost+found"] == []
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_destroyed(memext, place, tmp_path):
    """Existing outputs, inputs, stores of runs that are not done: refused, and as they were."""
    given, out = tmp_path / "za.npy", tmp_path / "out.npy"
    numpy.save(given, matrices()["za"])
    before = given.read_bytes()
    out.write_bytes(b"mine")
    memext.refused("wavefront", "--iterations", 1, "-d", place, "--input", f"za={given}", "-o", out, naming="--overwrite")
    memext.refused("wavefront", "--iterations", 1, "-d", place, "--input", f"za={given}", "-o", given, "--overwrite", naming="never written")
    assert out.read_bytes() == b"mine" and given.read_bytes() == before
    run(memext, "--iterations", 1, "-d", place, "--input", f"za={given}", "-o", out, "--overwrite")
    assert numpy.load(out).shape == (ROWS + 2, COLS + 2)
    dying(memext, place)
    store = (place / "memext.store").read_bytes()
    memext.refused("wavefront", *SIZE, "-d", place, naming="--force")
    memext.refused("run", "--resume", "-d", place, naming="memext wavefront")
    assert (place / "memext.store").read_bytes() == store
    memext.run("-n", 20, 20, 20, "-t", 2, "-d", place, "--keep", "--force")
    memext.refused("wavefront", "--resume", "-d", place, naming="wavefront")


@pytest.mark.parametrize("words,naming", [
    ([], "--iterations"),
    (["--iterations", 1], "-n ROWS COLS"),
    (["-n", 0, 5, "--iterations", 1], "0 is below the smallest value allowed, 1"),
    ([*SIZE, "--layout", "heap"], "frontier"),
    ([*SIZE, "--init", "warm"], "random"),
    ([*SIZE, "--backend", "tape"], "uring"),
    ([*SIZE, "--input", "zq=x.npy"], "za, zr"),
    ([*SIZE, "--tile", 8], "needs 2 numbers, 1 given"),
    ([*SIZE, "--dram", "1MiB", "--tile", 40, 67, "--waves", 6, "--threads", 64], "--dram"),
    ([*SIZE, "--sequential", "--verify"], "--sequential"),
    ([*SIZE, "--colour"], "not known"),
    ([*SIZE[:3], "--iterations", 1 << 61], "can count"),
    ([*SIZE, "--dram", "1MiB"], "raise --dram"),
    ([*SIZE, "--ahead", 1 << 20], "--ahead"),
    (["--resume"], "no memext store"),
    (["-n", 5000, 5000, "--iterations", 1, "--backend", "dram", "--dram", "64MiB"], "smaller problem"),
])  # fmt: skip
def test_refusals(memext, place, words, naming):
    memext.refused("wavefront", *words, "-d", place, naming=naming)
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("words,naming", [
    (["--sequential", "--tile", 4, 4], "--tile"),
    (["--sequential", "--timeline", "t.jsonl"], "--timeline"),
    (["--resume", "--force"], "--force"),
    (["--resume", "--dry-run"], "--resume"),
    (["--resume", "--init", "zero"], "--init"),
    (["--resume", "--input", "za.npy"], "--input"),
])  # fmt: skip
def test_contradictory_options_are_refused(memext, words, naming):
    memext.refused("wavefront", *SIZE, *words, naming=[naming, "exclude each other", "choose one"])


@pytest.mark.parametrize("words,naming", [
    (["--advice", "random", "--workers", 2], ["--advice", "--workers"]),
    (["--backend", "dram", "--keep", "--force"], ["--keep", "--force", "-d "]),
    (["--threads", 500], ["--threads 500"]),
    (["--overwrite", "--unchained"], ["--overwrite", "--unchained"]),
])  # fmt: skip
def test_options_without_effect_get_a_line(memext, place, whole, words, naming):
    done = memext("wavefront", *SIZE, "-d", place, *words, "--json", "-")
    said = [line for line in done.stderr.splitlines() if line.startswith("memext wavefront: ")]
    assert done.returncode == 0 and json.loads(done.stdout)["checksum"] == whole
    assert len(said) == len(naming) and all(any(name in line for line in said) for name in naming), said
    assert "no effect" not in memext("wavefront", *SIZE, "-d", place, *words, "-q").stderr


def test_options_of_stores_without_effect_on_the_plain_loop(memext, whole):
    done = memext("wavefront", *SIZE, "--sequential", "--backend", "uring", "--keep", "--threads", 2, "--json", "-")
    assert done.returncode == 0 and json.loads(done.stdout)["checksum"] == whole
    assert [name for name in ("--backend", "--keep", "--threads") if f"{name} has no effect with --sequential" in done.stderr] == ["--backend", "--keep", "--threads"]


def test_a_dry_run_refuses_what_a_run_would(memext, place, tmp_path):
    """Outputs that are there, a place with another run's store: nothing is made or changed."""
    out = tmp_path / "out.npy"
    out.write_bytes(b"mine")
    memext.refused("wavefront", *SIZE, "-d", place, "--dry-run", "-o", out, naming="--overwrite")
    memext.refused("wavefront", *SIZE, "-d", place, "--dry-run", "--timeline", tmp_path / "none" / "t", naming="its directory")
    assert run(memext, *SIZE, "-d", place, "--dry-run", "-o", out, "--overwrite")["status"] == "planned"
    assert out.read_bytes() == b"mine" and list(place.iterdir()) == []
    dying(memext, place)
    memext.refused("wavefront", *SIZE, "-d", place, "--dry-run", naming="--force")


def test_inputs_that_do_not_fit(memext, place, tmp_path):
    a, b, c = tmp_path / "a.npy", tmp_path / "b.npy", tmp_path / "c.npy"
    numpy.save(a, numpy.zeros((5, 6)))
    numpy.save(b, numpy.zeros((5, 7)))
    numpy.save(c, numpy.zeros((5, 6), dtype="f4"))
    for words, naming in [((f"za={a}", f"zr={b}"), "agree"), ((f"za={c}",), "f8"), ((f"za={tmp_path}/none.npy",), "none.npy")]:
        inputs = [word for one in words for word in ("--input", one)]
        memext.refused("wavefront", "--iterations", 1, "-d", place, *inputs, naming=naming)
    numpy.save(a, numpy.zeros((5, 6, 7)))
    memext.refused("wavefront", "--iterations", 1, "-d", place, "--input", f"za={a}", naming="2: (rows+2, cols+2)")


def test_tune(memext):
    """The plan that tune prints is the one that a run has, and its predictions are those of the run."""
    words = ["-n", 3000, 3000, "--iterations", 50, "--dram", "40MiB", "--threads", 2]
    tuned = json.loads(memext("tune", "--wavefront", *words, "--json", "-").stdout)
    planned = run(memext, *words, "--dry-run")
    for key in ("mb", "nb", "layout", "threads"):
        assert tuned["plan"][key] == planned["plan"][key]
    assert tuned["plan"]["waves"] > 1 and tuned["block_bytes"] <= 40 << 20
    more = json.loads(memext("tune", "--wavefront", *words, "--dram", "160MiB", "--json", "-").stdout)
    assert more["predicted_read_bytes"] < tuned["predicted_read_bytes"]


def test_timeline(memext, place):
    timeline, trace = place / "timeline.jsonl", place / "trace.json"
    run(memext, *SIZE, "-d", place, "--timeline", timeline, "--trace", trace, "--waves", 2)
    lines = [json.loads(line) for line in timeline.read_text().splitlines()]
    events = {line["e"] for line in lines if "e" in line}
    assert {"load", "store", "advance", "commit"} <= events
    assert sum(line["n"] for line in lines if line.get("e") == "advance") == ROWS * COLS * K
    json.loads(trace.read_text())


def test_claims_are_decided_by_records():
    """A claim is confirmed by records that bear it out, does not hold by those that do not, and is undecided without them or with fewer than five repeats."""
    sys.path.insert(0, str(ROOT))
    from analysis.wavefront import claims

    def records(name, seconds, n=5, **params):
        return [{"id": name, "params": params, "repeat": k, "report": {"seconds_per_wave": seconds * (1 + 0.002 * (k % 3))}} for k in range(n)]

    def states(runs):
        return {c["name"]: c["state"] for c in claims(runs)}

    assert set(states([]).values()) == {"undecided"}
    line, out = records("sequential", 2.0, figure="line"), records("fig7b-8", 1.5, figure="7b")
    assert states([*line, *out])["sequential"] == "confirmed"
    assert states([*line, *records("fig7b-8", 1.5, 4, figure="7b")])["sequential"] == "undecided"
    assert states([*line, *records("fig7b-8", 2.5, figure="7b")])["sequential"] == "does not hold here"
    block = records("fig7a-uring-block-64", 1.3, figure="7a", backend="uring", layout="block", tile="64")
    for seconds, state in [(1.0, "confirmed"), (1.25, "does not hold here")]:
        frontier = records("fig7a-uring-frontier-64", seconds, figure="7a", backend="uring", layout="frontier", tile="64")
        assert states([*block, *frontier])["frontier-uring"] == state
    assert {c["state"] for c in claims([*line, *out, *block]) if c["name"] == "frontier-uring"} == {"undecided"}


def test_a_report_is_not_written_over_a_stored_input(memext, place, tmp_path):
    """The inputs of the stored run are known only after --json was opened: refused all the same, and the file stays."""
    za = tmp_path / "za.npy"
    rows, cols = SIZE[SIZE.index("-n") + 1:][:2]
    numpy.save(za, numpy.random.default_rng(1).random((rows + 2, cols + 2)))
    before = za.read_bytes()
    dying(memext, place, "--input", za)
    memext.refused("wavefront", "--resume", "-d", place, "--json", za, naming=["za.npy", "never written"])
    memext.refused("wavefront", "--resume", "--iterations", 9, "-d", place, "--json", za, naming=["za.npy", "never written"])
    assert za.read_bytes() == before


def test_an_input_that_changed_is_not_verified_with(memext, place, tmp_path):
    """Its content alone changes, not its length nor its time: without --verify the run goes on, for the store has its matrices."""
    za = tmp_path / "za.npy"
    numpy.save(za, matrices()["za"])
    dying(memext, place, "--input", za)
    before, content = za.stat(), bytearray(za.read_bytes())
    content[-1] ^= 1
    za.write_bytes(content)
    os.utime(za, ns=(before.st_atime_ns, before.st_mtime_ns))
    memext.refused("wavefront", "--resume", "-d", place, "--verify", naming=["za.npy", "--verify out"])
    za.unlink()
    memext.refused("wavefront", "--resume", "-d", place, "--verify", naming=["za.npy", "--verify out"])
    assert run(memext, "--resume", "-d", place)["steps_done"] == K


def test_info_and_other_commands_know_its_store(memext, place):
    """info says what it holds, and how to get it; run refuses it and names the commands that take it."""
    report = memext("wavefront", *SIZE, "-d", place, "--keep", "--json", "-", "-q")
    assert report.returncode == 0, report.stderr
    shown = memext("info", place)
    assert shown.returncode == 0 and "wavefront" in shown.stdout and "unreadable" not in shown.stdout
    store = json.loads(memext("info", place, "--json", "-").stdout)["store"]
    assert store["state"] == "wavefront" and store["wavefront"]["checksum"] == json.loads(report.stdout)["checksum"]
    assert store["wavefront"]["iterations_done"] == store["wavefront"]["iterations"]
    assert "memext export" in shown.stdout
    memext.refused("run", "--resume", "-d", place, naming="memext wavefront --resume")
    memext.refused("run", "-n", 9, 9, 9, "-t", 2, "-d", place, naming="memext export")
