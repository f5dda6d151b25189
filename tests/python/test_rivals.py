# SPDX-License-Identifier: BSD-3-Clause
"""experiments/rivals: every way of going over the grid has the bits of the plain loop, runs are complete and go on, nothing is left, and the table says what was measured."""
import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest
from conftest import ROOT, needs_root

RIVALS = ROOT / "experiments" / "rivals"
# An interpreter that has the packages of requirements.txt; the system's has some of them.
PYTHON = os.environ.get("MEMEXT_RIVALS_PYTHON", sys.executable)
KERNELS = {"star7": RIVALS / "star7.c", "wave": ROOT / "systems" / "wave.c"}

sys.path.insert(0, str(ROOT))


def load(name):
    spec = importlib.util.spec_from_file_location(f"rivals_{name}", RIVALS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


path = list(sys.path)
run = load("run")
from rivalry.kernel import Kernel  # noqa: E402
from rivalry.passes import direct, fused  # noqa: E402
from rivalry.planes import Mapped  # noqa: E402
from rivalry.settings import settings_of  # noqa: E402
from rivalry import table as run_table  # noqa: E402
from rivalry.tasks import advance_block  # noqa: E402
from runner import removing  # noqa: E402

sys.path[:] = path  # which it changes; experiments/ has another run.py


@pytest.fixture(scope="module", params=KERNELS)
def kernel(request, tmp_path_factory):
    """The rows of a kernel as a library, and its name."""
    library = tmp_path_factory.mktemp("rows") / f"{request.param}.so"
    words = ["cc", "-O2", "-ffp-contract=off", "-fopenmp", "-std=gnu17", "-shared", "-fPIC", f"-I{ROOT / 'runtime' / 'include'}", f'-DKERNEL="{KERNELS[request.param]}"', RIVALS / "rows.c", "-lm", "-o", library]
    subprocess.run([str(w) for w in words], check=True)
    return Kernel(str(library)), request.param, library


def arrays(kernel, shape, seed=1):
    """State, fields of C."""
    r = np.random.default_rng(seed)
    state = r.random(shape).astype(f"f{kernel.cell_bytes}")
    return state, [(1500 + 3000 * r.random(shape)).astype("f4"), (0.1 * r.random(shape)).astype("f4")][:kernel.n_fixed]


def in_numpy(name, state, fixed, steps):
    """Owes nothing to rows.c. star7 in numpy; the wave is systems/wave.py, which its own tests compare with the C kernel."""
    if name == "wave":
        spec = importlib.util.spec_from_file_location("wave_in_numpy", ROOT / "systems" / "wave.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.run(steps, state, state, *fixed)["p"]
    a, b, i = state.copy(), state.copy(), (slice(1, -1),) * 3
    at = lambda z, y, x: a[tuple(slice(1 + d, n - 1 + d) for d, n in zip((z, y, x), a.shape))]
    for _ in range(steps):
        b[i] = 0.4 * a[i] + 0.1 * ((at(0, 0, -1) + at(0, 0, 1)) + ((at(0, -1, 0) + at(0, 1, 0)) + (at(-1, 0, 0) + at(1, 0, 0))))
        a, b = b, a
    return a


def test_a_step_a_pass_is_the_reference(kernel):
    k, name, _ = kernel
    state, fixed = arrays(k, (21, 18, 23))
    for steps in (1, 2, 5):
        wanted = in_numpy(name, state, fixed, steps)
        for slab, alternate, with_last in ((1, True, True), (4, False, True), (50, True, False)):
            work, last = [np.zeros_like(state) for _ in range(2)], np.zeros_like(state) if with_last else None
            got = direct(k, state, work, last, fixed, {"slab": slab, "alternate": alternate, "threads": 2}, steps)
            assert (got is last) == with_last and got.tobytes() == wanted.tobytes(), (steps, slab)


def test_fused_steps_are_the_reference(kernel):
    """Any k, slab and number of steps, with and without keeping overlaps: the bits of single steps, and nothing written outside the grid."""
    k, name, _ = kernel
    r, state_count = random.Random(7), 2 if k.leapfrog else 1
    for trial in range(25):
        shape = r.randint(2 * k.h + 1, 40), r.randint(2 * k.h + 1, 2 * k.h + 9), r.randint(2 * k.h + 1, 2 * k.h + 12)
        steps, o = r.randint(1, 9), {"k": r.randint(1, 5), "slab": r.randint(1, 24), "keep": r.random() < 0.5, "ahead": True, "threads": 1}
        state, fixed = arrays(k, shape, trial)
        before = state.copy()
        work = [[Mapped(np.full_like(state, np.nan)) for _ in range(state_count)] for _ in range(2)]
        last = Mapped(np.full_like(state, np.nan))
        fused(k, Mapped(state), work, last, [Mapped(f) for f in fixed], shape, [state.dtype, *(f.dtype for f in fixed)], o, steps)
        assert last.array.tobytes() == in_numpy(name, state, fixed, steps).tobytes(), (shape, steps, o)
        assert state.tobytes() == before.tobytes()


def test_blocks_with_their_halo_are_the_reference(kernel):
    """What a task of dask does, at an edge of the grid and within it."""
    k, name, _ = kernel
    state, fixed = arrays(k, (44, 14, 15))
    for steps, lo, hi in ((2, 0, 12), (3, 14, 20), (2, 30, 44)):
        wanted = in_numpy(name, state, fixed, steps)[lo:hi]
        begin, end = max(0, lo - steps * k.h), min(44, hi + steps * k.h)
        x, _ = advance_block(k, state[begin:end].copy(), state[begin:end].copy() if k.leapfrog else None, [np.ascontiguousarray(f[begin:end]) for f in fixed],
                                    [(begin == 0, end == 44), (True, True), (True, True)], steps)  # fmt: skip
        assert x[lo - begin:hi - begin].tobytes() == wanted.tobytes(), (steps, lo)


def command(place, out, *more):
    return [sys.executable, RIVALS / "run.py", "--quick", "--python", PYTHON, "--data", place, "--tools", out / "tools", "--output", out, "--keep-cache",
            "--settings", 2, "--factors", 4, "--repeats", 1, "--read-ahead", "machine", *more]  # fmt: skip


def sh(words, build, **more):
    return subprocess.run([str(w) for w in words] + ["--build", str(build)], capture_output=True, text=True, timeout=900, **more)


def records(out):
    return json.loads((out / "rivals.json").read_text())


@needs_root
@pytest.mark.long
def test_every_rival_that_is_installed(build, quick_place, tmp_path):
    """Two settings each, under the limit: whole runs with the bits of the plain loop. After a search nothing but whole runs is left to do, a second time nothing at all."""
    words = command(quick_place, tmp_path, "--cases", "star7", "--edge", 112, "--steps", 5, "--rivals", "swap,memmap,memmap-numba,h5py-k,dask-k,umap,memext")
    looked = sh([*words, "--search"], build)
    assert looked.returncode == 0, looked.stdout + looked.stderr
    searched = records(tmp_path)
    assert {r["kind"] for r in searched["records"]} == {"search", "reference"}
    done = sh(words, build)
    assert done.returncode == 0, done.stdout + done.stderr
    found = records(tmp_path)
    assert found["records"][:len(searched["records"])] == searched["records"] and found["bases"] == searched["bases"] != {}
    assert {r["kind"] for r in found["records"][len(searched["records"]):]} == {"plain", "whole"}
    for rival, why in found["absent"].items():
        print(f"not compared here: {rival}: {why}")
    assert "umap" in found["absent"] and "memext" not in found["absent"]
    whole = {r["rival"]: r for r in found["records"] if r["kind"] == "whole"}
    assert sorted(whole) == sorted({"swap", "memmap", "memmap-numba", "h5py-k", "dask-k", "memext"} - set(found["absent"])), done.stderr
    for name, r in whole.items():
        assert not r.get("failure") and r["same"] and r["seconds"] > 0, (name, r)
        assert r["dram_bytes"] * 4 <= r["data_bytes"] < r["limit_bytes"] * 4, name
    table = (tmp_path / "rivals.md").read_text()
    assert table.strip() in done.stdout and "fastest other tool" in table and "UMap is not installed here; name its prefix with --umap PREFIX" in table
    again = sh(words, build)
    assert again.returncode == 0 and records(tmp_path)["records"] == found["records"]
    assert list(quick_place.iterdir()) == []


# What umap.c needs of an installed UMap, by mmap: its runs are those of a user, its speed is not UMap's.
UMAP_HEADER = """#include <stddef.h>
#include <stdint.h>
#define UMAP_PRIVATE 2
#define UMAP_FAILED ((void *)-1)
void *umap(void *at, size_t length, int protection, int flags, int fd, long offset);
uint64_t umapcfg_get_umap_page_size(void);
"""
UMAP_LIBRARY = """#include <stdlib.h>
#include <sys/mman.h>
#include <umap/umap.h>
void *umap(void *at, size_t length, int protection, int flags, int fd, long offset) { return mmap(at, length, protection, flags, fd, offset); }
uint64_t umapcfg_get_umap_page_size(void) { return strtoull(getenv("UMAP_PAGESIZE"), NULL, 10); }
"""


def test_umap_where_it_is_installed(build, quick_place, tmp_path):
    """--umap PREFIX: umap.c is built against what stands there, and its result has the bits of the plain loop. A prefix without UMap is refused."""
    prefix = tmp_path / "prefix"
    words = command(quick_place, tmp_path, "--cases", "star7", "--edge", 48, "--steps", 4, "--rivals", "umap", "--no-system", "--umap", prefix)
    for missing in ("include/umap/umap.h", "lib/libumap.so"):
        refused = sh(words, build)
        assert refused.returncode == 2 and f"--umap: {prefix} holds" in refused.stderr and missing in refused.stderr, refused.stderr
        if missing.endswith(".h"):
            (prefix / "include" / "umap").mkdir(parents=True)
            (prefix / missing).write_text(UMAP_HEADER)
    (prefix / "lib").mkdir()
    (tmp_path / "umap.c").write_text(UMAP_LIBRARY)
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{prefix / 'include'}", tmp_path / "umap.c", "-o", prefix / "lib" / "libumap.so"], check=True)
    done = sh(words, build)
    assert done.returncode == 0, done.stderr
    whole = [r for r in records(tmp_path)["records"] if r["rival"] == "umap" and r["kind"] == "whole"]
    assert len(whole) == 1 and whole[0]["same"] and not whole[0].get("failure"), done.stderr


@needs_root
def test_a_signal_leaves_nothing(build, quick_place, tmp_path):
    """Ended in the midst of runs: no files, no cgroup, no swap space of it; what was complete is kept."""
    words = command(quick_place, tmp_path, "--cases", "star7", "--edge", 112, "--steps", 1000, "--most", 10000, "--rivals", "swap")
    process = subprocess.Popen([str(w) for w in words] + ["--build", str(build)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 600
    while "swap" not in (open("/proc/swaps").read() if any(quick_place.glob("*/memext-swap-*")) else ""):  # a run with swap space is under way
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=600)
    assert process.returncode != 0 and "interrupted" in err, err
    assert list(quick_place.iterdir()) == [] and str(quick_place) not in open("/proc/swaps").read()
    assert all(not r.get("failure") for r in records(tmp_path)["records"])


def test_a_wrong_result_is_no_result(build, quick_place, tmp_path, monkeypatch):
    """With a kernel of other bits in the hands of the rivals alone every one of their runs fails, and the table has no number for it."""
    folder = tmp_path / "tree"
    shutil.copytree(ROOT / "experiments", folder / "experiments")
    for name in ("analysis", "runtime", "systems"):
        (folder / name).symlink_to(ROOT / name)
    path = folder / "experiments" / "rivals" / "rivalry" / "passes.py"
    text = path.read_text()
    assert text.count("kernel.level(y, x, [f[:m]") == 1
    path.write_text(text.replace("kernel.level(y, x, [f[:m]", "kernel.level(y, x * 1.0000001, [f[:m]"))
    words = command(quick_place, tmp_path, "--cases", "star7", "--edge", 64, "--steps", 4, "--rivals", "memmap-k", "--no-system")
    words[1] = path.parents[1] / "run.py"
    done = sh(words, build)
    assert done.returncode == 0, done.stderr
    failed = {r["rival"]: r.get("failure", "") for r in records(tmp_path)["records"]}
    assert set(failed) == {"memory", "memmap-k"} and failed["memory"] == "" and "the result differs from that of the plain loop" in failed["memmap-k"]
    assert "all 2 settings failed: the result differs" in (tmp_path / "rivals.md").read_text()


def test_the_disk_reads_ahead_as_linux_does(tmp_path, monkeypatch):
    """While the runs last, whatever the disk came with; what it is then is told. `machine` and a place on no disk leave it alone."""
    disk = tmp_path / "disk"
    disk.write_text("8192\n")
    monkeypatch.setenv("MEMEXT_STATE", str(tmp_path / "state"))
    monkeypatch.setitem(run.knobs.FILES, "read_ahead_kb", str(tmp_path / "{device}"))
    monkeypatch.setattr(removing, "SETTING_PLACES", (str(tmp_path) + "/.*",))
    with run.registry.Owner("test") as owner:
        for words, device, wanted in (([], "disk", 128), (["--read-ahead", "512"], "disk", 512), (["--read-ahead", "machine"], "disk", 8192), (["--no-system"], "disk", 8192), ([], "", None)):
            monkeypatch.setattr(run.host, "device_of", lambda path, device=device: device)
            o = run.options(["--quick", *words])
            with run.read_ahead(o, owner):
                assert o.read_ahead_kb == wanted and int(disk.read_text()) == (wanted or 8192)
            assert disk.read_text().strip() == "8192"
    with pytest.raises(SystemExit):
        run.options(["--quick", "--read-ahead", "much"])


def test_runs_of_another_program_are_made_again(tmp_path, monkeypatch):
    """One table has the runs of one build of memext and of UMap, and of one version of each package. Tools that are not asked for, or not here, keep theirs, and so does a copy of the file."""
    runs_module, versions = sys.modules[run.Runs.__module__], {"numpy": "1"}
    monkeypatch.setattr(runs_module, "command", lambda *_, **__: json.dumps({"rivals": {}, "versions": versions}))
    prefix = tmp_path / "umap"
    for name in ("include/umap/umap.h", "lib/libumap.so"):
        (prefix / name).parent.mkdir(parents=True)
        (prefix / name).write_text("old")

    def called(rivals, umap=None):
        """What goes on, of a call that saves at once."""
        o = types.SimpleNamespace(output=str(tmp_path), build=str(tmp_path), rivals=rivals, umap=umap, retry_failed=False, no_system=False, scale="quick", data=str(tmp_path), steps=4, read_ahead_kb=128)
        found = run.Runs(o, tmp_path, "python")
        names = [r["rival"] for r in found.records]
        found.records += [{"rival": r, "program": found.identity(r)} for r in rivals if r not in names and r not in found.absent]
        found.save()
        return names

    everything = ["memory", "memext", "dask", "umap"]
    (tmp_path / "memext").write_text("old")
    assert called(everything, prefix) == [] and called(everything, prefix) == everything
    (tmp_path / "memext").write_text("new")
    assert called(["memory", "dask", "umap"]) == everything and not list(tmp_path.glob("rivals.json.*")), "neither asked for nor here"
    assert sorted(called(everything, prefix)) == ["dask", "memory", "umap"] and len(list(tmp_path.glob("rivals.json.*"))) == 1
    (prefix / "lib" / "libumap.so").write_text("new")
    assert sorted(called(everything, prefix)) == ["dask", "memext", "memory"]
    versions["numpy"] = "2"
    assert sorted(called(everything, prefix)) == ["memext", "memory", "umap"] and sorted(called(everything, prefix)) == sorted(everything)
    assert len(json.loads((tmp_path / "rivals.json.1").read_text())["records"]) == 4


def test_each_has_the_same_slack():
    """What a process takes before it has seen data is its own; beside that the limits are equal."""
    runs = types.SimpleNamespace(bases={"star7 memmap": 32 * run_table.MIB})
    case = types.SimpleNamespace(name="star7")
    assert run.Runs.base(runs, case, "memmap") == 32 * run_table.MIB and run.Runs.base(runs, case, "memext") == run.Runs.base(runs, case, "umap") == run_table.PROGRAM


def test_patience():
    """A setting is ended when it has taken twice what the best so far would have, starting included; without one, and where that is longer, at --limit; swap gets three times it."""
    patience = lambda *words: run.Runs.patience(types.SimpleNamespace(o=types.SimpleNamespace(limit=10.0)), *words)
    best = {"start_s": 1.0, "import_s": 0.25, "export_s": 0.5, "step_s": 0.125}
    seconds, why = patience("memmap", 6, best)
    assert seconds == 5.0 and why == "stopped after 5.0 s, because another setting takes less than half of that time"
    assert [patience(work, 6, beat)[0] for work, beat in (("memmap", None), ("swap", None), ("memext", None), ("swap", best))] == [10.0, 30.0, 10.0, 5.0]
    assert patience("memmap", 60, best) == (10.0, "stopped after 10 s, the time limit of a run that tries settings (--limit)") and patience("swap", 60, best)[0] == 18.5


@pytest.mark.parametrize("factor", (4, 8))
@pytest.mark.parametrize("h, fields, cell_bytes", ((1, 2, 8), (4, 4, 4)))
def test_five_settings_of_each(h, fields, cell_bytes, factor):
    """Of every rival, with those that are made from the best, in the sizes of the documents; none twice to begin with."""
    case = types.SimpleNamespace(h=h, fields=fields, plane_bytes=256 * 256 * cell_bytes, shape=(256,) * 3, leapfrog=fields > 2)
    for rival in run.RIVALS:
        first, more = settings_of(rival, case, fields * case.plane_bytes * 256 // factor, 2)
        for best in first:
            every = {json.dumps(s, sort_keys=True) for s in [*first, *more(best)]}
            assert len(every) >= 5, (rival, every)
        assert len({json.dumps(s, sort_keys=True) for s in first}) == len(first), (rival, first)


def made_up():
    """A record with all that a table has to show."""
    common = {"case": "star7", "shape": [10, 10, 10], "factor": 4.0, "cells": 512, "data_bytes": 16000, "dram_bytes": 4000, "limit_bytes": 5000, "import_s": 1.0, "export_s": 2.0, "read_bytes": 800, "write_bytes": 800,
              "same": True, "hash": "0", "repeat": 0}  # fmt: skip
    run = lambda rival, kind, steps, step_s, **more: {**common, "rival": rival, "kind": kind, "steps": steps, "step_s": step_s, "seconds": 3 + steps * step_s, "settings": {"slab": 8}, **more}
    rows = [run("memmap", "search", 4, 9.0), run("memmap", "whole", 10, 1.0), run("memmap-k", "whole", 100, 0.12), run("memext", "whole", 100, 0.0), run("memext", "whole", 100, 0.01, repeat=1),
            run("memext", "whole", 100, 0.02, repeat=2), {**run("h5py", "search", 4, 1.0), "failure": "out of memory"}]  # fmt: skip
    return {"records": rows, "absent": {"umap": "UMap is not installed here"}, "rivals": {n: n for n in ("memmap", "h5py", "umap", "memmap-k", "memext")}, "steps": 100, "commit": "abc", "kernel": "6",
            "machine": {"cpu": "a CPU", "cores": 2}, "versions": {"numpy": "2"}, "command": "run.py --quick"}  # fmt: skip


def test_the_table(tmp_path):
    """Seconds of all steps from those measured, ratios to memext's median, reasons in place of numbers."""
    from analysis import rivals

    record = made_up()
    rows = {r["name"]: r for r in rivals.summary(record, rivals.groups(record)[0])}
    assert rows["memmap"]["seconds"] == pytest.approx(103) and not rows["memmap"]["whole"] and rows["memext"]["seconds"] == pytest.approx(4) and rows["memext"]["n"] == 3
    assert rows["memmap"]["ratio"] == pytest.approx(103 / 4) and rows["memmap-k"]["ratio"] == pytest.approx(15 / 4) and rows["memmap"]["moved"] == 160
    assert rows["h5py"]["why"] == "all 1 settings failed: out of memory (trials of 4 steps)" and "not installed" in rows["umap"]["why"]
    failed = [{"failure": "out of memory", "steps": k} for k in (4, 32, 8)]
    assert rivals.why_not(record, "h5py", failed) == "all 3 settings failed: out of memory (trials of 4 to 32 steps)"
    assert rivals.why_not(record, "h5py", [*failed, {"steps": 4}]) == "the runs only looked for settings"
    said = rivals.findings(list(rows.values()))
    assert "memmap-k, takes 3.8 times" in said[0] and "memmap, takes 25.8 times" in said[1] and "(single runs; the goal is at least 3 times)" in said[0] and "(single runs, extrapolated from 10 steps; the goal is at least 20" in said[1]
    record["records"] += [{**r, "repeat": k, "seconds": r["seconds"] * k, "step_s": r["step_s"] * k} for r in record["records"] if r["rival"] == "memmap-k" for k in (2, 4)]
    three = rivals.findings(rivals.summary(record, rivals.groups(record)[0]))
    assert "takes 6.8 times as long as memext (3.0 to 17.0 in 3 runs of each; the goal is at least 3 times)" in three[0]
    record["records"] = record["records"][:-2]
    (tmp_path / "rivals").mkdir()
    (tmp_path / "rivals" / "rivals.json").write_text(json.dumps(record))
    assert rivals.main([str(tmp_path / "rivals" / "rivals.json")]) == 0
    text = (tmp_path / "rivals" / "rivals.md").read_text()
    assert "10, the rest extrapolated" in text and "| umap | UMap is not installed" in text
    page = rivals.section(tmp_path, tmp_path / "figures")
    assert "<img" in page and "25.8" in page and (tmp_path / "figures" / "rivals.png").stat().st_size > 5000
    assert "Not run" in rivals.section(tmp_path / "nothing", tmp_path / "figures")
