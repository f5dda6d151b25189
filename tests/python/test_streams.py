# SPDX-License-Identifier: BSD-3-Clause
"""What a command prints arrives, or the command ends with 3 and says so: a full disk, a closed descriptor, a reader that leaves."""
import os
import subprocess

import pytest
from conftest import ROOT

GRID = ["-n", 14, 12, 10, "-t", 3]
KERNEL = ROOT / "systems" / "diffusion.c"
HELP = [[], ["run"], ["tune"], ["tune", "--wavefront"], ["info"], ["export"], ["kernel"], ["wavefront"]]
WORDS = [[*command, "--help"] for command in HELP] + [
    ["--version"], ["help"], ["info"], ["info", "--json", "-"], ["info", "STORE"], ["info", "STORE", "--json", "-"], ["info", "-d", "."],
    ["tune", *GRID], ["tune", *GRID, "--json", "-"], ["tune", *GRID, "-d", "."], ["tune", *GRID, "--explain"],
    ["run", *GRID, "-d", "."], ["run", *GRID, "-d", ".", "--dry-run"], ["run", *GRID, "-d", ".", "--json", "-", "-q"], ["run", *GRID, "--ranks", 2, "-d", "."],
    ["run", *GRID, "-d", ".", "--dry-run", "--json", "-"], ["run", *GRID, "--write-job", "-"],
    ["export", "STORE", "-o", "r.npy", "--overwrite"], ["export", "STORE", "-o", "r.npy", "--overwrite", "--json", "-"],
    ["kernel", "show", KERNEL], ["kernel", "build", KERNEL], ["kernel", "check", KERNEL],
    ["wavefront", "-n", 16, 16, "-k", 2, "-d", "."], ["wavefront", "-n", 16, 16, "-k", 2, "-d", ".", "--json", "-"],
    ["tune", "--wavefront", "-n", 16, 16, "-k", 2], ["tune", "--wavefront", "-n", 16, 16, "-k", 2, "--json", "-"]]


@pytest.fixture(scope="module")
def store(memext, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store", numbered=True)
    backend = [] if memext("run", *GRID, "-d", folder, "--dry-run").returncode == 0 else ["--backend", "mmap"]
    assert memext("run", *GRID, "-d", folder, "--keep", "-q", *backend).returncode == 0
    return folder


def words_of(words, store):
    return [str(store) if word == "STORE" else str(word) for word in words]


def name_of(words):
    return " ".join(str(word).rpartition("/")[2] for word in words)


@pytest.mark.parametrize("words", WORDS, ids=name_of)
def test_what_cannot_be_printed(memext, store, quick_place, words):
    """Right: 3, with one sentence about the standard output; 0 where it can be written, so that nothing else is to blame."""
    own = words_of(words, store)
    assert memext(*own, cwd=quick_place).returncode == 0
    with open("/dev/full", "w") as full:
        done = subprocess.run([memext.program, *own], stdout=full, stderr=subprocess.PIPE, text=True, cwd=quick_place)
    assert done.returncode == 3 and "standard output" in done.stderr and "No space left" in done.stderr, done
    done = subprocess.run(["sh", "-c", '"$0" "$@" >&-', memext.program, *own], stderr=subprocess.PIPE, text=True, cwd=quick_place)
    assert done.returncode == 3 and "standard output" in done.stderr, done
    assert sorted(os.listdir(quick_place)) in ([], ["r.npy"], ["rank-0", "rank-1"])


@pytest.mark.parametrize("more", [[], ["--dry-run"], ["--json", "-"], ["-q"], ["--ranks", 2]], ids=name_of)
def test_what_is_explained_on_standard_error(memext, quick_place, more):
    """--explain asks for that text: 3 where it is lost. Without it nobody asked for what stands there; what else was asked for is made."""
    words = [memext.program, "run", *GRID, "-d", ".", "--force", *more]
    for explained in ([], ["--explain"]):
        for lost in ("2>/dev/full", "2>&-", "2>/dev/null"):
            done = subprocess.run(["sh", "-c", f'"$0" "$@" {lost}', *map(str, words), *explained], stdout=subprocess.PIPE, text=True, cwd=quick_place)
            assert done.returncode == (3 if explained and lost != "2>/dev/null" else 0), (explained, lost, done)
            assert done.stdout or "-q" in more


def test_a_job_that_cannot_be_printed_is_called_a_job(memext):
    with open("/dev/full", "w") as full:
        done = subprocess.run([memext.program, "run", *map(str, GRID), "--write-job", "-"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3 and "the job cannot be written to the standard output: No space left" in done.stderr, done


def test_a_closed_standard_output_is_no_file_of_the_run(memext, quick_place):
    """The next file that is opened does not take its place: the result is right, whatever is closed."""
    for closed in ("<&-", "2>&-", "<&- >&- 2>&-"):
        done = subprocess.run(["sh", "-c", f'"$0" "$@" {closed}', memext.program, "run", *map(str, GRID), "-q", "-d", ".", "-o", "r.npy", "--overwrite"],
                              cwd=quick_place)
        assert done.returncode == 0  # nothing was to be said
    assert (quick_place / "r.npy").stat().st_size == 128 + 8 * 16 * 14 * 12


@pytest.mark.parametrize("words", [["run", *GRID, "-d", "."], ["run", *GRID, "-d", ".", "--dry-run"], ["tune", *GRID], ["info"], ["info", "STORE"],
                                   ["export", "STORE", "-o", "r.npy", "--overwrite"], ["wavefront", "-n", 16, 16, "-k", 2, "-d", "."]], ids=name_of)
def test_what_cannot_be_written_to_its_file(memext, store, quick_place, words):
    done = memext(*words_of(words, store), "--json", "/dev/full", cwd=quick_place)
    assert done.returncode == 3 and "No space left" in done.stderr, done
    if "run" in words and "--dry-run" not in words:
        for option in ("--timeline", "--trace"):
            done = memext(*words_of(words, store), option, "/dev/full", "--force", cwd=quick_place)
            assert done.returncode == 3 and option[2:] in done.stderr, done


def test_a_reader_that_leaves(memext, quick_place):
    """A run whose output nobody reads any more is closed in order: its store is gone, and the status tells."""
    run = subprocess.Popen([memext.program, "run", *map(str, GRID), "-d", quick_place], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    run.stdout.close()
    assert run.stderr.read() == "" and run.wait() == 3 and os.listdir(quick_place) == []
