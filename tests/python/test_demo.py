# SPDX-License-Identifier: BSD-3-Clause
"""experiments/demo.sh with programs that only write down how they were called, and analysis/compare.py, which makes its table."""
import itertools
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT
from made_up import report

sys.path.insert(0, str(ROOT))

from analysis import compare, timeline

GIB = 2**30
PHASES = {"prepare": 9.0, "init": 0.25, "stencil": 2.0, "checksum": 0.5, "verify": 9.0, "output": 0.0, "finish": 9.0}


def made(label, backend="uring", fused=False, limit=GIB // 2, **more):
    """A report of compare.py: Buffers of 1 GiB in all."""
    phases = {name: {"seconds": 0.0 if fused and name in ("init", "checksum") else seconds} for name, seconds in PHASES.items()}
    return report(2.0, label=label, backend=backend, phases=phases, fused=dict.fromkeys(("source", "checksum"), fused or "--no-fuse"), verified=True, wait_share=0.5,
                  machine={"cgroup_limit_bytes": limit, "memory_bytes": 16 * GIB}, read_bytes=GIB, write_bytes=GIB, **more)  # fmt: skip


def recorded(path, device_write_bytes):
    """A timeline of two samples."""
    header = {"memext_timeline": 1, "columns": list(timeline.NEEDED_COLUMNS), "backend": "mmap", "bins": 0, "buffers": []}
    samples = [{"s": [t * (device_write_bytes if name == "device_write_bytes" else 1) for name in timeline.NEEDED_COLUMNS]} for t in (0, 1)]
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *samples)))
    return str(path)


def compared(folder, *reports, options=()):
    """(exit status, rows as {column: cell}, the lines below them)"""
    paths = []
    for i, a_report in enumerate(reports):
        paths.append(folder / f"{i}.json")
        paths[-1].write_text(json.dumps(a_report))
    done = subprocess.run(["/usr/bin/python3", ROOT / "analysis/compare.py", *options, *paths], check=False, capture_output=True, text=True, timeout=600)
    assert not done.stderr
    return done.returncode, *read(done.stdout)


def read(text):
    """(rows, lines below them) of a Markdown table."""
    lines = text.splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")] or [[], []]
    after = max((i for i, line in enumerate(lines) if line.startswith("|")), default=-1)
    return [dict(zip(head, row)) for row in rows], [line for line in lines[after + 1:] if line]


def test_a_fused_run_is_compared_by_the_whole_time(tmp_path):
    """The whole is initial grid, sweeps and checksum, of all runs; the notes say what fusing is, and by which column the fused run is compared."""
    status, rows, notes = compared(tmp_path, made("plain"), made("fused one", fused=True))
    assert status == 0 and [(row["run"], row["sweeps s"], row["whole s"]) for row in rows] == [("plain", "2.00", "2.75"), ("fused one", "2.00", "2.00")]
    assert "A fused run makes the initial grid inside its first sweep. It takes the checksum inside its last one." in notes
    assert "Use `whole s` to compare `fused one` with the runs that are not fused." in notes and any("`--no-fuse`" in note for note in notes)
    _, _, notes = compared(tmp_path, made("plain"), made("another"))
    assert not any("fused" in note.lower() for note in notes)


def test_storage_is_what_the_kernel_counted(tmp_path):
    """Of this process; of a mapping what the disk wrote; of swap what went to swap space. What was not counted is no 0."""
    count = {"storage_read_bytes": 3 * GIB, "storage_write_bytes": 2 * GIB, "swap_in_bytes": 5 * GIB, "swap_out_bytes": 4 * GIB}
    none = {"storage_read_bytes": -1, "storage_write_bytes": None}
    line = {"timeline": recorded(tmp_path / "line", 7 * GIB)}
    _, rows, notes = compared(
        tmp_path, made("uring", kernel=count), made("mmap", "mmap", kernel=count, **line), made("swap", "swap", kernel=count), made("unrecorded", "mmap", kernel=count),
        made("no counters", kernel=none), made("no swap", "swap"), made("roomy", "swap", limit=0), made("dram", "dram", kernel={"storage_read_bytes": 0, "storage_write_bytes": 0}),
        made("no disk", "mmap", kernel=count, timeline=recorded(tmp_path / "none", 0)),
    )  # fmt: skip
    assert {row["run"]: (row["storage read"], row["storage written"]) for row in rows} == {
        "uring": ("3.00", "2.00"), "mmap": ("3.00", "7.00"), "swap": ("5.00", "4.00"), "unrecorded": ("3.00", "not counted"), "no counters": ("not counted",) * 2,
        "no swap": ("not counted",) * 2, "roomy": ("0.00", "0.00"), "dram": ("0.00", "0.00"), "no disk": ("3.00", "not counted"),
    }  # fmt: skip
    assert all((row["read GiB"], row["written GiB"]) == ("1.00", "1.00") for row in rows)
    assert any("whole disk" in note for note in notes) and any("whole machine" in note for note in notes)


def test_runs_without_a_result_have_no_row(tmp_path):
    """Their sentences stand below; with no result at all the status is 1."""
    failed = {"label": "b", "status": "failed", "error": "no disk", "seconds": 0.0}
    absent = {"label": "c", "skipped": "no root"}
    status, rows, notes = compared(tmp_path, made("a"), failed, absent, options=["--note", "One more.", "--note", "And one."])
    assert status == 0 and [row["run"] for row in rows] == ["a"] and notes[:2] == ["b: failed: no disk", "c: not run: no root"] and notes[-2:] == ["One more.", "And one."]
    assert compared(tmp_path, failed, absent) == (1, [], ["b: failed: no disk", "c: not run: no root"])


def test_the_picture_is_drawn(tmp_path):
    assert compared(tmp_path, made("a"), made("b", "mmap"), made("c", "swap"), options=["--picture", str(tmp_path / "p")])[0] == 0
    assert (tmp_path / "p.png").stat().st_size > 0 and "writes not counted" in (tmp_path / "p.svg").read_text()


# Its reports and its timeline lie beside it.
MEMEXT = """#!/usr/bin/python3 -IS
import json, os, pathlib, shutil, sys
here = pathlib.Path(sys.argv[0]).parent
words = sys.argv[1:]
value = dict(zip(words, words[1:]))
with open(os.environ["LOG"], "a") as log:
    print(json.dumps([os.environ.get("AROUND", "").split(), words]), file=log)
shutil.copy(here / "timeline", value["--timeline"])
shutil.copy(here / f"{value['--backend']}-{'--no-fuse' not in words}.json", value["--json"])
"""
# Of with-settings: the disk of this machine has 4096 KiB. COMMAND runs with what was asked for.
WITH_SETTINGS = """#!/bin/bash
if [ "$2" = read_ahead_kb ]; then echo "${AHEAD:-4096}"; exit; fi
[ -z "$REFUSED" ] || [ "$4" != --no-wait ] || { echo "with-settings: another program is at work" >&2; exit 2; }
export AHEAD=${2#read_ahead_kb=} AROUND="$AROUND $2"
while [ "$1" != -- ]; do shift; done
exec "${@:2}"
"""
LIMIT_MEMORY = """#!/bin/bash
export AROUND="$AROUND $1"
while [ "$1" != -- ]; do shift; done
exec "${@:2}"
"""


def written(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def tree(place, monkeypatch):
    """A source tree with the demo, in which nothing is built, installed, limited or set."""
    shutil.copytree(ROOT / "experiments/runner", place / "experiments/runner")
    for name in ("demo.sh", "lib.sh"):
        shutil.copy(ROOT / "experiments" / name, place / "experiments")
    shutil.copytree(ROOT / "analysis", place / "analysis")
    shutil.copy(ROOT / "packages.txt", place)
    written(place / "build/release/memext", MEMEXT)
    recorded(place / "build/release/timeline", GIB)
    for backend, fused in itertools.product(("dram", "swap", "mmap", "aio", "uring"), (False, True)):
        a_report = made("", backend, fused=fused)
        del a_report["label"]
        (place / f"build/release/{backend}-{fused}.json").write_text(json.dumps(a_report))
    written(place / "experiments/with-settings", WITH_SETTINGS)
    written(place / "experiments/limit-memory", LIMIT_MEMORY)
    written(place / "tools/cmake", "#!/bin/sh\n")
    written(place / "tools/dpkg-query", "#!/bin/sh\necho installed\n")
    monkeypatch.setenv("PATH", f"{place / 'tools'}:{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(place / "log"))
    monkeypatch.setenv("MEMEXT_STATE", str(place / "state"))
    return place


def demo(tree, *words, **environment):
    """(what the demo said, rows, notes, [(what was around memext, its words)])"""
    done = subprocess.run([tree / "experiments/demo.sh", "--size", "62 62 62", "--steps", "4", "--dram", "64MiB", *words], check=False, capture_output=True, text=True, timeout=600,
                          stdin=subprocess.DEVNULL, env={**os.environ, **environment})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tree / "build/demo/demo.txt").read_text() in done.stdout
    return done.stderr, *read((tree / "build/demo/demo.txt").read_text()), [json.loads(line) for line in (tree / "log").read_text().splitlines()]


LABELS = ["dram", "swap", "mmap", "aio", "uring", "uring", "uring, fused"]


def test_one_run_of_the_demo_is_fused(tree):
    """Six runs have --no-fuse. The seventh is the sixth without it, with a label and a note that say so. All are verified and recorded."""
    _, rows, notes, calls = demo(tree)
    words = [call[1] for call in calls]
    assert [row["run"] for row in rows] == LABELS and all(row["verified"] == "yes" for row in rows)
    assert ["--no-fuse" in call for call in words] == [True] * 6 + [False]
    assert all("--verify" in call and "--timeline" in call for call in words)
    several = [[word for word in call if word != "--no-fuse" and "/build/demo/" not in word] for call in words]
    assert several[6] == several[5] != several[4]
    assert rows[6]["whole s"] == "2.00" and {row["whole s"] for row in rows[:6]} == {"2.75"} and "Use `whole s` to compare `uring, fused` with the runs that are not fused." in notes
    assert (rows[2]["storage written"], rows[1]["storage written"]) == ("1.00", "not counted")


def test_the_demo_compares_mmap_with_the_read_ahead_of_linux(tree):
    """128 KiB around mmap alone, said before it is changed and below the table."""
    said, _, notes, calls = demo(tree)
    assert [around for around, _ in calls] == [[], ["64MiB"], ["read_ahead_kb=128", "64MiB"], ["64MiB"], ["64MiB"], ["64MiB"], ["64MiB"]]
    assert notes[-1] == "The read-ahead of the disk was 128 KiB while mmap ran, which is the usual default of Linux. Otherwise it was 4096 KiB."
    assert os.geteuid() != 0 or "sets a read-ahead of 128 KiB for mmap" in said


def test_the_demo_says_which_read_ahead_stayed(tree):
    """Where it cannot be set, with the reason; mmap runs all the same."""
    _, rows, notes, calls = demo(tree, REFUSED="1")
    assert calls[2][0] == ["64MiB"] and [row["run"] for row in rows] == LABELS
    assert notes[-1] == "The read-ahead of the disk was 4096 KiB: another program is at work."


def test_the_demo_changes_nothing_with_no_system(tree):
    """No limit and no setting; the table has the runs that need none, and what the disk's read-ahead is."""
    said, rows, notes, calls = demo(tree, "--no-system")
    assert "with --no-system this changes only files on this machine" in said and [around for around, _ in calls] == [[]] * 5
    assert [row["run"] for row in rows] == [label for label in LABELS if label not in ("swap", "mmap")]
    assert sum("not run: no memory limit" in note for note in notes) == 2 and notes[-1] == "The read-ahead of the disk was 4096 KiB: --no-system changes nothing."


def test_the_table_of_the_first_page_is_the_demos():
    """The columns that compare.py makes, and a row for each run of the demo."""
    rows, _ = read("\n".join(re.findall(r"^\|.*", (ROOT / "README.md").read_text(), re.MULTILINE)))
    assert list(rows[0]) == compare.COLUMNS and [row["run"] for row in rows] == LABELS and all(row["verified"] == "yes" for row in rows)
