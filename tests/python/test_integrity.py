# SPDX-License-Identifier: BSD-3-Clause
"""--integrity: a bit that flips anywhere in a store, while nobody looks, gives the right result or exit status 3, never another result."""
import json
import random
import shutil

import numpy
import pytest
from conftest import ROOT, thinned

NX, NY, NZ, NT = 60, 30, 20, 12
PLANS = {"stream": "stream by=30 bt=2", "strips": "stream by=10 bt=2 faces=side-file slab=2", "redundant": "redundant by=12 bz=9 bt=2"}
SYSTEMS = {"diffusion": (1, {"k": (0.2, 1)}), "wave": (4, {"v": (1000, 4000), "damping": (0, 0.1)})}


@pytest.fixture(scope="module")
def fields(tmp_path_factory):
    """Words of every system: its kernel, and files of what it only reads."""
    folder, words = tmp_path_factory.mktemp("fields"), {}
    for name, (h, fields) in SYSTEMS.items():
        words[name] = ["--kernel", ROOT / "systems" / f"{name}.c", "-n", NX, NY, NZ, "--init", "random", "--field-copy", "--dram", "200MiB"]
        for number, (field, (low, high)) in enumerate(fields.items()):
            values = numpy.random.default_rng(number).random((NZ + 2 * h, NY + 2 * h, NX + 2 * h)) * (high - low) + low
            numpy.save(folder / f"{field}.npy", values.astype("f4"))
            words[name] += ["--field", f"{field}={folder}/{field}.npy"]
    return words


def extents(memext, path):
    """Of the store in this directory: name, first byte and bytes; the superblocks are what lies before all of them."""
    store = json.loads(memext("info", path, "--json", "-").stdout)["store"]
    found = {e["name"]: (e["offset_bytes"], e["bytes"]) for e in store["extents"]}
    return {"superblocks": (0, min(begin for begin, _ in found.values())), **found}


def flip(store, at):
    with open(store, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0x40]))


@pytest.mark.parametrize("system, plan, before, after, backend", [
    ("diffusion", "strips", 1, 1, "uring"), ("wave", "redundant", 1, 1, "aio"), ("diffusion", "redundant", 2, 1, "uring"), ("wave", "stream", 1, 2, "aio"), *thinned([
        ("diffusion", "stream", 1, 1, "uring"), ("wave", "stream", 1, 1, "mmap"), ("diffusion", "stream", 2, 2, "uring"), ("diffusion", "strips", 1, 1, "mmap")], lambda *case: False)])
def test_a_flipped_bit(memext, quick_place, fields, system, plan, before, after, backend):
    """A finished run that is kept goes on, of as many ranks or of others. Every byte of C is read: a flip in it is always found."""
    whole = memext.run(*fields[system], "-t", NT, "--backend", "dram", "--algorithm", "direct")["checksum"]
    kept, work = quick_place / "kept", quick_place / "work"
    kept.mkdir()
    ranks = [["--ranks", n] if n > 1 else [] for n in (before, after)]
    memext.run(*fields[system], "-t", NT // 2, "--integrity", "--keep", "-d", kept, "--plan", PLANS[plan], "--backend", backend, *ranks[0])
    pick, seen = random.Random(f"{system} {plan}"), set()
    part = "rank-0" if before > 1 else ""
    for name, (begin, size) in extents(memext, kept / part).items():
        for _ in range(3 if name.startswith("field") else 1):
            if work.exists():
                shutil.rmtree(work)
            shutil.copytree(kept, work)
            at = begin + pick.randrange(min(size, 1 << 20))
            flip(work / part / "memext.store", at)
            done = memext("run", "--resume", "-d", work, "-t", NT, "--quiet", "--json", quick_place / "report.json", *ranks[1])
            seen.add((name.split("-")[0], done.returncode))
            assert done.returncode in (0, 2, 3), done.stderr
            if done.returncode == 0:
                assert json.loads((quick_place / "report.json").read_text())["checksum"] == whole, (name, at)
    assert ("field", 3) in seen, seen


@pytest.mark.parametrize("plan", PLANS)
def test_checked_from_the_first_look_on(memext, quick_place, fields, plan):
    """--integrity that begins with a resumed run takes the hashes of C as it reads them; the run after that finds what has changed since."""
    words = ["-d", quick_place, "--keep", "--quiet", "--backend", "uring"]
    assert memext("run", *fields["diffusion"], "-t", 4, "--plan", PLANS[plan], *words).returncode == 0
    assert memext("run", "--resume", "-t", 8, "--integrity", *words).returncode == 0
    begin, size = extents(memext, quick_place)["field-0"]
    flip(quick_place / "memext.store", begin + size // 2)
    done = memext("run", "--resume", "-t", 12, *words)
    assert done.returncode == 3 and "field k gave other data than was written" in done.stderr, done.stderr
    flip(quick_place / "memext.store", begin + size // 2)
    assert memext("run", "--resume", "-t", 12, *words).returncode == 0


@pytest.mark.parametrize("commits", [[], ["--commit-every", 1e-6]], ids=["two", "three"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_frames_of_other_buffers(memext, quick_place, fields, system, commits):
    """redundant reads the frame in every Buffer, and hashes are kept of the newest state alone: a frame that was changed in the others is made anew."""
    h, words = SYSTEMS[system][0], ["-d", quick_place, "--keep", "--plan", PLANS["redundant"], "--backend", "uring", *commits]
    whole = memext.run(*fields[system], "-t", NT, "--backend", "dram", "--algorithm", "direct")["checksum"]
    memext.run(*fields[system], "-t", NT // 2, "--integrity", *words)
    store, flipped = json.loads(memext("info", quick_place, "--json", "-").stdout)["store"], 0
    newest, cell = {a["buffer"] for a in store["arrays"]}, {"diffusion": 8, "wave": 4}[system]
    for e in store["extents"]:
        if e["name"] in newest or e["name"].startswith(("field", "faces")) or e["name"].endswith(".sum"):
            continue
        for plane, row, x in (h - 1, h + 4, h + 7), (h + 4, h - 1, h + 7), (h + 4, h + 4, h - 1):
            flip(quick_place / "memext.store", e["offset_bytes"] + plane * store["plane_pitch_bytes"] + row * store["row_pitch_bytes"] + (x + 1) * cell - 2)
            flipped += 1
    assert flipped >= 3
    assert memext.run("--resume", "-t", NT, *words)["checksum"] == whole
