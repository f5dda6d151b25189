# SPDX-License-Identifier: BSD-3-Clause
"""What a run leaves: checked before the work, whole or not at all, never in place of something else; stores that can be looked at
and emptied; and what is said when it fails."""
import itertools
import json
import os
import signal
import shutil
import subprocess

import numpy
import pytest
from conftest import needs_root, random_grid, unmount, wait_until
from watch import catches, committed, computing

SMALL = ["-n", 30, 29, 31, "-t", 7]
SHAPE = (33, 31, 32)


@pytest.fixture
def place(quick_place):
    return quick_place


@pytest.fixture
def out(place):
    folder = place / "out"
    folder.mkdir()
    return folder


def files(folder):
    return sorted(path.name for path in folder.iterdir())


# ------------------------------------------------------------------ outputs

def test_an_existing_output_stays(memext, place, out):
    """Without --overwrite it is refused before anything is done; with it the new file has the rights of the old one."""
    (out / "r.npy").write_text("the only copy of a thesis")
    memext.refused("run", *SMALL, "-d", place, "--output", out / "r.npy", naming=["r.npy", "--overwrite"])
    memext.refused("run", *SMALL, "-d", place, "--output", out / "r.npy", "--force", naming="--overwrite")
    assert (out / "r.npy").read_text() == "the only copy of a thesis" and files(place) == ["out"]
    os.chmod(out / "r.npy", 0o640)
    memext.run(*SMALL, "-d", place, "--output", out / "r.npy", "--overwrite")
    assert numpy.load(out / "r.npy").shape == SHAPE and (out / "r.npy").stat().st_mode & 0o777 == 0o640 and files(out) == ["r.npy"]


def test_the_input_is_never_the_output(memext, place, out):
    """By its name, another spelling, a hard or a symbolic link; the input keeps every byte."""
    numpy.save(out / "g.npy", random_grid(30, 29, 31))
    before = (out / "g.npy").read_bytes()
    os.link(out / "g.npy", out / "hard.npy")
    os.symlink("g.npy", out / "soft.npy")
    for name in ("g.npy", "../out/g.npy", "hard.npy", "soft.npy"):
        for option in ("--output", "--json", "--timeline", "--trace"):
            memext.refused("run", "--input", out / "g.npy", "-t", 3, "-d", place, option, out / name, "--overwrite", "--verify", naming="input")
    assert (out / "g.npy").read_bytes() == before and files(place) == ["out"]


def test_two_outputs_of_one_name(memext, place, out):
    memext.refused("run", *SMALL, "-d", place, "--output", out / "a", "--json", out / "a", naming=["--output", "--json"])
    memext.refused("run", *SMALL, "-d", place, "--trace", out / "a", "--timeline", out / "." / "a", naming=["--trace", "--timeline"])
    assert files(out) == []


def test_an_output_that_is_the_place(memext, place, out):
    (out / "store").touch()
    memext.refused("run", *SMALL, "-d", out / "store", "--output", out / "store", "--overwrite", naming="place of the Buffers")


@pytest.mark.parametrize("option", ["--output", "--json", "--timeline", "--trace"])
def test_outputs_are_checked_before_the_work(memext, place, out, option):
    """Missing directory, directory, link to nothing: refused, and the place was not touched."""
    os.symlink("nothing", out / "dangling")
    for path, naming in [("/nowhere/x", "/nowhere/x"), (out, "directory"), (out / "dangling", "link")]:
        memext.refused("run", *SMALL, "-d", place, option, path, naming=naming)
    assert files(place) == ["out"]


def test_reports_are_replaced_whole(memext, place, out):
    """An old report stays until the new one is there; links are followed; what is no file is written as it is."""
    (out / "real.json").write_text("old")
    os.symlink("real.json", out / "link.json")
    memext.run(*SMALL, "-d", place, "--trace", out / "t", "--timeline", out / "l")
    assert memext("run", *SMALL, "-d", place, "-q", "--json", out / "link.json").returncode == 0
    assert json.loads((out / "real.json").read_text())["status"] == "done" and (out / "link.json").is_symlink()
    assert memext("run", *SMALL, "-d", place, "-q", "--json", "/dev/null").returncode == 0
    assert files(out) == ["l", "link.json", "real.json", "t"] and json.loads((out / "t").read_text())["traceEvents"]


@needs_root
def test_an_output_that_will_not_fit(memext, place, mounted):
    """Its space is taken before the work, so a full file system is found at once."""
    directory, _ = mounted(8 << 20)
    memext.refused("run", "-n", 126, 126, 126, "-t", 3, "-d", place, "--output", directory / "r.npy", naming=["r.npy", "full"])
    assert "memext.store" not in files(place) and "r.npy" not in files(directory)


@pytest.mark.parametrize("call", ["link", "fsync"])
@pytest.mark.parametrize("algorithm, backend", [("stream", "uring"), ("redundant", "aio"), ("direct", "mmap"), ("skewed", "uring")])
def test_a_result_that_cannot_be_written_stays_in_the_store(memext, place, out, algorithm, backend, call):
    """Status 3, no output, and the sentence says how to get the result out, which then has the bits of an undisturbed run."""
    memext.run(*SMALL, "--backend", "dram", "--output", out / "good.npy")
    number = 1 if call == "link" else find_call(memext, place, out, algorithm, backend)
    done = memext("run", *SMALL, "-d", place, "--algorithm", algorithm, "--backend", backend, "--output", out / "r.npy", "--fault",
                  f"calls_from={call},call={number}", "--quiet", "--json", out / "report.json")
    assert done.returncode == 3 and ("memext export" in done.stderr or "compute the last sweep again" in done.stderr), done.stderr
    assert "r.npy" in json.loads((out / "report.json").read_text())["error"]
    if "compute the last sweep again" in done.stderr:  # a short last sweep went to the output alone
        assert algorithm == "stream"
        memext.run("--resume", "-d", place, "--output", out / "r.npy")
    else:
        assert memext("export", place, "-o", out / "r.npy").returncode == 0
    assert (out / "r.npy").read_bytes() == (out / "good.npy").read_bytes()


def find_call(memext, place, out, algorithm, backend):
    """The number of the fsync whose failure concerns the output: the store has some of its own before."""
    for number in range(1, 30):
        done = memext("run", *SMALL, "-d", place, "--algorithm", algorithm, "--backend", backend, "--output", out / "r.npy", "--fault",
                      f"calls_from=fsync,call={number}", "--quiet")
        (place / "memext.store").unlink(missing_ok=True)
        if "r.npy" in done.stderr:
            return number
        assert done.returncode in (2, 3), done.stderr
    raise AssertionError("no fsync of the output")


def test_a_result_that_differs_is_not_published(memext, place, out):
    """The bits of a complete store are changed, then verified: status 4, no output, and the store gives nothing out any more."""
    memext.run(*SMALL, "-d", place, "--keep")
    store = json.loads(memext("info", place, "--json", "-").stdout)["store"]
    extent = next(e for e in store["extents"] if e["name"] == store["buffer"])
    with open(place / "memext.store", "r+b") as file:
        file.seek(extent["offset_bytes"] + 3 * store["plane_pitch_bytes"] + 3 * store["row_pitch_bytes"] + 100)
        file.write(b"\x77")
    done = memext("run", "--resume", "-d", place, "--verify", "--output", out / "r.npy", "--quiet")
    assert done.returncode == 4 and files(out) == [], done.stderr
    memext.refused("export", place, "-o", out / "r.npy", naming="differs")
    memext.refused("run", "--resume", "-d", place, naming="differs")


# ------------------------------------------------------------------ stores

def test_info_and_export(memext, place, out):
    """What info says is what was run; export gives the bytes of --output; both leave the store as it is."""
    report = memext.run(*SMALL, "-d", place, "--keep", "--output", out / "r.npy", "--stencil", "edge19").report
    before = (place / "memext.store").read_bytes()
    store = json.loads(memext("info", place, "--json", "-").stdout)["store"]
    assert store["state"] == "done, kept" and store["step"] == 7 and store["complete"] is True
    assert store["problem"] == report["problem"] and store["checksum"] == report["checksum"]
    assert "step       7 of 7" in memext("info", place).stdout
    for backend in ("uring", "aio", "mmap"):
        done = memext("export", place, "-o", out / f"{backend}.npy", "--backend", backend)
        assert done.returncode == 0 and (out / f"{backend}.npy").read_bytes() == (out / "r.npy").read_bytes(), done.stderr
    memext.refused("export", place, "-o", out / "r.npy", naming="--overwrite")
    memext.refused("export", place, "-o", place / "memext.store", "--overwrite", naming="place of the Buffers")
    assert (place / "memext.store").read_bytes() == before


def test_a_kept_store_is_not_wiped(memext, place):
    memext.run(*SMALL, "-d", place, "--keep")
    memext.refused("run", *SMALL, "-d", place, naming=["memext.store", "export", "--force"])
    memext.run(*SMALL, "-d", place, "--force")
    assert files(place) == []


def test_places_without_a_store(memext, place, out):
    memext.refused("info", place, naming=str(place))
    memext.refused("export", place, "-o", out / "r.npy", naming=str(place))
    (out / "text").write_text("no store\n" * 1000)
    memext.refused("info", out / "text", naming="text")
    memext.refused("export", out / "text", "-o", out / "r.npy", naming="text")
    assert files(out) == ["text"]


def test_a_store_in_use(memext, place, out):
    """While a run works on it info says so, and nobody else gets in."""
    process = subprocess.Popen([str(memext.program), *"run -n 94 94 126 -t 100000000 --block 94 126 4 --algorithm stream -q -d".split(), str(place)], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: committed(place / "memext.store"), "the first commit", process)
    assert json.loads(memext("info", place, "--json", "-").stdout)["store"]["state"] == "under way"
    memext.refused("export", place, "-o", out / "r.npy", naming="in use")
    memext.refused("run", *SMALL, "-d", place, naming="in use")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=900) == 5


# ------------------------------------------------------------------ failures

def test_a_mapping_that_breaks(memext, place, out):
    """The store is cut short under a run on a mapping: status 3, a sentence and a report instead of a SIGBUS."""
    for algorithm in ("direct", "redundant"):
        words = ["run", "-n", 94, 94, 126, "-t", 100000000, "-d", place, "--backend", "mmap", "--plan", f"{algorithm} bt=4", "-q", "--json",
                 out / "report.json", "--timeline", out / "timeline"]
        process = subprocess.Popen([str(memext.program), *map(str, words)], stderr=subprocess.PIPE, text=True)
        wait_until(lambda: computing(out / "timeline"), "the run computes", process)
        os.truncate(place / "memext.store", 3 << 20)
        _, error = process.communicate(timeout=900)
        report = json.loads((out / "report.json").read_text())
        assert process.returncode == 3 and "mapped file" in error and report["status"] == "failed" and "mapped file" in report["error"], error
        (place / "memext.store").unlink(missing_ok=True)
        for left in out.iterdir():
            left.unlink()


def test_an_interrupt_at_the_first_moment(memext, place, out):
    """As soon as the signal is caught at all: status 5, the report says interrupted, nothing else is left. On a machine that has much else to do the command
    may still prepare when its patience ends, and says so."""
    for _ in range(10):
        words = ["run", "-n", 62, 62, 62, "-t", 100000000, "-d", place, "-q", "--json", out / "report.json"]
        process = subprocess.Popen([str(memext.program), *map(str, words)], stderr=subprocess.PIPE, text=True)
        wait_until(lambda: catches(process, signal.SIGINT), "the handler", process)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=900)
        assert process.returncode == 5, error
        if "interrupted while it prepared" in error:
            assert not list(out.iterdir())
        else:
            assert json.loads((out / "report.json").read_text())["status"] == "interrupted"
            (out / "report.json").unlink()
        (place / "memext.store").unlink(missing_ok=True)


def test_a_refusal_is_in_the_report(memext, place, out):
    """One sentence, the same on stderr and in the JSON report."""
    done = memext("run", *SMALL, "-d", place, "--dram", "900TiB", "--json", out / "r.json")
    report = json.loads((out / "r.json").read_text())
    assert done.returncode == 2 and report["status"] == "failed" and report["error"] in done.stderr and "900 TiB" in report["error"]


def test_the_plan_comes_before_the_run(memext, place):
    """A run that dies on the way has told its plan, its predictions and how it commits."""
    done = memext("run", *SMALL, "-d", place, "--backend", "fault:aio", "--fault", "fail_after=3", "--explain")
    assert done.returncode == 3 and "predicted" in done.stdout and "commits" in done.stdout and "search    tuner" in done.stderr
    assert "checksum" not in done.stdout


def test_the_field_of_a_built_in_stencil(memext, place, out):
    """u=FILE is FILE for --output, --input, --init and export; another name is refused, also of a store that is resumed or exported."""
    work, store = out / "work", place / "a.store"
    work.mkdir()
    memext.run(*SMALL, "-d", store, "--init", "u=gauss", "-o", "u=a.npy", "--keep", cwd=work)
    memext.run("-t", 7, "-d", place / "b.store", "--input", "u=a.npy", "-o", "./v=b.npy", cwd=work)
    assert memext("export", store, "-o", "u=c.npy", cwd=work).returncode == 0
    assert files(work) == ["a.npy", "c.npy", "v=b.npy"] and numpy.array_equal(numpy.load(work / "a.npy"), numpy.load(work / "c.npy"))
    memext.refused("export", store, "-o", "v=d.npy", cwd=work, naming="one field, u")
    memext.refused("run", "--resume", "-d", store, "-t", 9, "-o", "v=d.npy", cwd=work, naming="one field, u")
    memext.run("--resume", "-d", store, "-t", 9, "-o", "u=d.npy", cwd=work)
    assert files(work) == ["a.npy", "c.npy", "d.npy", "v=b.npy"]


def test_a_plan_file_is_named(memext, place, out):
    (out / "plan.txt").write_text("hello world\n")
    memext.refused("run", *SMALL, "-d", place, "--plan", out / "plan.txt", naming=[str(out / "plan.txt"), "'hello' is not an algorithm"])


def test_after_a_run_that_committed_nothing(memext, place, out):
    """The store that is left says so, and each sentence leads to --force, which works."""
    grid, store = random_grid(30, 29, 31), place / "a.store"
    grid[5, 6, 7] = numpy.nan
    numpy.save(out / "grid.npy", grid)
    words = ["run", "-t", 4, "--input", out / "grid.npy", "-d", store]
    assert "--force" in memext(*words).stderr
    shown = memext("info", store).stdout
    assert "nothing is committed yet" in shown and "committed 2" not in shown
    grid[5, 6, 7] = 1
    numpy.save(out / "grid.npy", grid)
    memext.refused(*words, naming="--force")
    memext.refused("run", "--resume", "-d", store, naming=["grid.npy has changed", "start again with --force instead of --resume"])
    assert memext(*words, "--force", "-q").returncode == 0


# ------------------------------------------------------------------ options

@pytest.mark.parametrize("words, naming", [
    (["info", "--threads", 2], "belongs to other commands"),
    (["info", "--backend", "aio"], "belongs to other commands"),
    (["tune", *SMALL, "--resume"], "belongs to other commands"),
    (["run", *SMALL, "--co", 3], ["--coef", "--column", "--commit-every"]),
    (["run", *SMALL, "--verify=3"], "no value"),
    (["run", *SMALL, "--algorithm", "skewed", "--commit-every", 3], "in place"),
    (["run", *SMALL, "--backend", "mmap", "--algorithm", "direct", "--integrity"], "loads nothing"),
    (["run", *SMALL, "--commit-every", -1], "-1"),
    (["run", *SMALL, "--commit-every", "nan"], "nan"),
    (["run", *SMALL, "--plan", "stream bt=3", "--algorithm", "redundant"], ["redundant", "stream"]),
    (["run", *SMALL, "--plan", "stream bt=3 by=29", "--block", 29, 31, 4], ["3", "4"]),
    (["run", *SMALL, "--plan", "stream bt=3 threads=2", "--threads", 1], "threads"),
    (["run", *SMALL, "-o", "-"], ["--output -", "./-"]),
    (["run", *SMALL, "--timeline", "-"], ["--timeline -", "./-"]),
    (["run", *SMALL, "-o", "v=o.npy"], ["one field, u", "./v=o.npy"]),
    (["run", *SMALL, "--init", "v=gauss"], "one field, u"),
    (["run", "-t", 3, "--input", "v=o.npy"], ["one field, u", "./v=o.npy"]),
    (["tune", "-t", 3, "--input", "v=o.npy"], "one field, u"),
    (["run", *SMALL, "--plan", "nofile.txt"], "neither a file nor an algorithm"),
    (["export"], "which store"),
    (["export", "x"], "-o GRID.npy"),
    (["export", "x", "y", "-o", "z"], "y"),
])
def test_options_that_contradict_or_do_nothing(memext, place, words, naming):
    memext.refused(*words, *(["-d", place] if words[0] == "run" else []), naming=naming)
    assert files(place) == []


def test_options_that_a_plan_leaves_open(memext, place):
    plan = memext.run(*SMALL, "-d", place, "--plan", "stream bt=3", "--algorithm", "stream", "--slab", 2, "--threads", 1)["plan"]
    assert (plan["bt"], plan["slab"], plan["threads"]) == (3, 2, 1)


# ------------------------------------------------------------------ other people's files

def test_the_place_is_never_the_input(memext, out):
    numpy.save(out / "g.npy", random_grid(9, 8, 7))
    before = (out / "g.npy").read_bytes()
    for more in ([], ["--force"]):
        memext.refused("run", "--input", out / "g.npy", "-d", out / "g.npy", "-t", 3, *more, naming="g.npy")
    assert (out / "g.npy").read_bytes() == before


def test_no_command_writes_its_report_over_what_it_reads(memext, place, out):
    """Plan, topology, input, store and grid keep every byte."""
    memext.run(*SMALL, "-d", out / "a.store", "--keep")
    (out / "plan").write_text("stream bt=3\n")
    numpy.save(out / "g.npy", random_grid(9, 8, 7))
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    for words in (["run", *SMALL, "-d", place, "--plan", out / "plan", "--json", out / "plan"],
                  ["tune", "--input", out / "g.npy", "-t", 3, "--json", out / "g.npy"],
                  ["tune", *SMALL, "--topology", out / "plan", "--json", out / "plan"],
                  ["info", out / "a.store", "--json", out / "a.store"],
                  ["export", out / "a.store", "-o", out / "new.npy", "--json", out / "a.store"],
                  ["export", out / "a.store", "-o", out / "new.npy", "--json", out / "new.npy"]):
        assert memext(*words).returncode == 2, words
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_block_device_is_no_output(memext, place, loop):
    """Not even of a report, which is replaced without being asked for."""
    device = loop(8 << 20)
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    before = open(device, "rb").read()
    for option in ("--output", "--json", "--timeline", "--trace"):
        memext.refused("run", *SMALL, "-d", place, option, device, "--overwrite", naming=["block device"])
    assert open(device, "rb").read() == before


def test_a_finished_store_in_a_directory_stays_until_a_resumed_run_is_done(memext, place, out):
    """A store that was left between its end and its removal, whose result cannot be written this time."""
    memext.run(*SMALL, "-d", place / "memext.store")
    done = memext("run", "--resume", "-d", place, "-o", out / "r.npy", "-q", "--fault", "calls_from=link,call=1")
    assert done.returncode == 3 and "memext export" in done.stderr and (place / "memext.store").exists()
    assert memext("export", place, "-o", out / "r.npy").returncode == 0
    memext.run("--resume", "-d", place)
    assert not (place / "memext.store").exists()


def test_integrity_is_not_switched_on_for_a_finished_store(memext, place, out):
    for algorithm in ("stream", "skewed"):
        store = place / f"{algorithm}.store"
        memext.run(*SMALL, "-d", store, "--algorithm", algorithm, "--keep")
        memext.run("--resume", "--integrity", "-d", store)
        assert memext("export", store, "-o", out / f"{algorithm}.npy").returncode == 0


def test_a_finished_store_in_a_file_goes_with_a_word(memext, place):
    memext.run(*SMALL, "-d", place / "a.store")
    done = memext("run", *SMALL, "-d", place / "a.store", "-q")
    assert done.returncode == 0 and "finished run" in done.stderr


@needs_root
def test_export_from_a_read_only_file_system(memext, out, mounted):
    directory, device = mounted(64 << 20)
    memext.run(*SMALL, "-d", directory, "--keep", "--integrity")
    subprocess.run(["mount", "-o", "remount,ro", directory], check=True)
    for backend in ("uring", "aio", "mmap"):
        done = memext("export", directory, "-o", out / f"{backend}.npy", "--backend", backend)
        assert done.returncode == 0, done.stderr
    assert memext("export", directory, "-o", out / "default.npy").returncode == 0


def test_a_pipe_takes_no_grid(memext, place):
    done = memext("run", *SMALL, "-d", place, "-q", "--output", "/dev/stdout")
    assert done.returncode == 2 and "pipe" in done.stderr and files(place) == []


def test_closed_standard_streams(memext, place, out):
    """What is said to a stream that is closed does not land in a file. With -q nothing was to be said, and nothing is lost."""
    for quiet, status in ([], 3), (["-q"], 0):
        words = ["exec", memext.program, "run", *SMALL, *quiet, "-d", place, "--json", out / "r.json", ">&-", "2>&-", "<&-"]
        assert subprocess.run(["sh", "-c", " ".join(map(str, words))]).returncode == status
        assert json.loads((out / "r.json").read_text())["status"] == "done"


def test_one_wish_that_comes_twice(memext, place, out):
    """Batch systems signal a process and then its group: two signals at once are an interrupt, not a death."""
    for _ in range(5):
        words = ["run", "-n", 94, 94, 126, "-t", 100000000, "-d", place, "-q", "--json", out / "report.json"]
        process = subprocess.Popen([str(memext.program), *map(str, words)], stderr=subprocess.PIPE, text=True)
        wait_until(lambda: catches(process, signal.SIGTERM), "the handler", process)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=900) == 5 and json.loads((out / "report.json").read_text())["status"] == "interrupted"
        (place / "memext.store").unlink(missing_ok=True)


def test_export_never_writes_over_what_the_run_began_with(memext, place, out):
    grid = out / "g.npy"
    memext.run(*SMALL, "-d", out, "-o", grid)
    before = grid.read_bytes()
    memext.run("--input", grid, "-t", 3, "-d", place, "--keep")
    memext.refused("export", place, "-o", grid, "--overwrite", naming=["g.npy", "never written"])
    assert grid.read_bytes() == before


@needs_root
def test_a_timeline_that_cannot_be_written_costs_no_result(memext, out, tmp_path):
    """The result of a run without commits is there before the full disk is said. A run with commits ends, and its store stays."""
    (tmp_path / "small").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "memext-test", tmp_path / "small"], check=True)
    try:
        for k, (option, plan) in enumerate(itertools.product(("--timeline", "--trace"), (["--algorithm", "direct", "--block", 60, 1, 1], ["--plan", "stream by=60 bt=1"]))):
            words = ["-n", 60, 60, 60, "-t", 600, "--backend", "dram", *plan]
            wanted = memext.run(*words, "-o", out / f"wanted{k}.npy")
            assert wanted["status"] == "done"
            done = memext("run", *words, "-o", out / f"{k}.npy", "-q", option, tmp_path / "small" / "t")
            assert done.returncode == 3 and done.stderr.strip(), done.stderr
            assert (out / f"{k}.npy").read_bytes() == (out / f"wanted{k}.npy").read_bytes() and files(tmp_path / "small") == []
            assert "--resume" not in done.stderr
        place = out.parent / "store.memext"
        done = memext("run", "-n", 60, 60, 60, "-t", 600, "-d", place, "--plan", "stream by=60 bt=1", "-q", "--timeline", tmp_path / "small" / "t")
        assert done.returncode == 3 and memext.run("--resume", "-d", place, "-t", 600)["status"] == "done", done.stderr
    finally:
        unmount(tmp_path / "small")


@needs_root
def test_results_in_a_directory_that_cannot_be_read(build, open_place):
    """It may be written, by a user who is not root: the result is there, and the exit status says so."""
    folder = open_place / "out"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    folder.chmod(0o300)
    words = [shutil.copy(build / "memext", open_place), "run", *SMALL, "--backend", "dram", "-o", folder / "u.npy", "-q"]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, user=65534, group=65534, extra_groups=[], cwd="/")
    assert done.returncode == 0, done.stderr
    assert numpy.load(folder / "u.npy").shape == SHAPE
