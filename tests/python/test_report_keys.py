# SPDX-License-Identifier: BSD-3-Clause
"""docs/report.md: every key of a report is listed there with its type, and every key that is listed occurs.

A row of its tables has keys between backticks, types with commas between them, units and words. A part of a key in capitals stands for any name. A row
`KEY.*` whose type is "as `OTHER.*`" has the keys of OTHER.
"""
import importlib.util
import re

import numpy
import pytest
from conftest import ROOT
from test_accel import fake_cuda  # noqa: F401

KINDS = {bool: "boolean", int: "integer", float: "number", str: "text", type(None): "null", list: "array", dict: "object"}
GRID = ["-n", 30, 30, 30, "-t", 8]
# Keys that no run below writes: a search for sizes takes seconds and a machine of its own (test_tune_command.py); what is not built, or not here.
SELDOM = {f"rates.tiled_sizes.{key}" for key in ("own_slab", "own_tile", "own_ct", "tried", "gain")}


def listed(text):
    """{key: its types}"""
    keys, copies = {}, {}
    for names, types in re.findall(r"^\| (`.*?) \| (.*?) \|", text, re.MULTILINE):
        for name in re.findall(r"`([^`]+)`", names):
            assert name not in keys, f"{name} is listed twice"
            if name.endswith(".*"):
                copies[name.removesuffix("*")] = re.fullmatch(r"as `(.*)\*`", types)[1]
            else:
                keys[name] = set(types.split(", "))
    for to, of in copies.items():
        keys |= {to + name.removeprefix(of): types for name, types in keys.items() if name.startswith(of)}
    assert not {kind for types in keys.values() for kind in types} - set(KINDS.values())
    return keys


def found(value, key=""):
    """(key, type) of everything in a report."""
    yield key, KINDS[type(value)]
    if isinstance(value, dict):
        for name, one in value.items():
            yield from found(one, f"{key}.{name}" if key else name)
    if isinstance(value, list):
        for one in value:
            yield from found(one, f"{key}[]")


def pattern(key):
    """Capitals stand for any name."""
    return re.compile(r"\.".join("[^.]+" if part.isupper() else re.escape(part) for part in key.split(".")))


KERNEL = """#define MX_NAME "mean"
#define MX_RADIUS 1
#define MX_STATE(F) F(u, double)
#define MX_REDUCES(R) R(heat, MX_SUM) R(peak, MX_MAX)
#include <memext/cell.h>

MX_CELL
    SET(u, sin(AT(u, -1, 0, 0) + AT(u, 1, 0, 0)));
MX_END

MX_REDUCE(heat)
    RESULT(AT(u, 0, 0, 0));
MX_END

MX_REDUCE(peak)
    RESULT(AT(u, 0, 0, 0));
MX_END
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    place = tmp_path_factory.mktemp("inputs")
    cells = numpy.ones((32, 32, 32))
    numpy.save(place / "u.npy", cells)
    numpy.save(place / "k.npy", cells.astype("f4"))
    numpy.save(place / "layers.npy", cells[:, :1, :1].astype("f4"))
    numpy.save(place / "wavelet.npy", numpy.sin(numpy.arange(10)))
    (place / "probes.txt").write_text("u 1 1 1\n")
    (place / "mean.c").write_text(KERNEL)
    return place


def everything(memext, place, inputs):
    """The report of each run. The first is kept, and goes on in the second."""
    words, kept, failed = [*GRID, "--dram", "64MiB", "-d", place], place / "kept", place / "failed"
    kept.mkdir(), failed.mkdir()
    yield memext.run(*words, "-d", kept, "--keep", "--verify", "--integrity")
    yield memext.run("--resume", "-t", 16, "--dram", "64MiB", "-d", kept)
    yield memext.run(*words, "--input", inputs / "u.npy", "-o", place / "out.npy")
    yield memext.run(*words, "--source", f"u@1,1,1={inputs / 'wavelet.npy'}", "--probes", inputs / "probes.txt", "--probes-out", place / "traces.npy")
    yield memext.run(*words, "--check", 2, "--until", "max-change=1", "--snapshot", f"2:{place / 'frames'}:2")
    yield memext.run(*words, "--plan", "stream by=10 bt=4 slab=4 faces=dram")
    yield memext.run(*words, "--fault", "call=1000000")
    yield memext.run(*words, "-d", failed, "--backend", "fault:aio", "--fault", "seed=1,eio=1", status=3)
    yield memext.run(*words, "--accel", "host,memory=16MiB")
    yield memext.run(*words, "--ranks", 2, "--accel", "host")
    yield memext.run(*words, "--kernel", ROOT / "systems/diffusion.c", "--init", "u=gauss", "--field", f"k={inputs / 'k.npy'}")
    yield memext.run(*words, "--kernel", ROOT / "systems/diffusion.c", "--init", "u=gauss", "--field", f"k={inputs / 'layers.npy'}")
    yield memext.run(*words, "--kernel", ROOT / "systems/fdtd.c", "--init", "random", "--init", "eps=random")
    yield memext.run(*words, "--kernel", inputs / "mean.c", "--init", "random", "--check", 4)
    yield memext.run(*words, "--kernel", ROOT / "systems/rk4_advection.c", "--init", "random", "--check", 4)
    yield memext.run(*words, "--dry-run")
    yield memext.run(*words, "--dry-run", "--tuner", "naive", "--algorithm", "redundant")
    yield memext.run(*words, "--dry-run", "--side", "z=periodic")
    yield memext.run(*words, "--dry-run", "--ranks", 2)
    yield memext.run(*words, "--dry-run", "--accel", "host,memory=16MiB")


def test_every_key_is_listed(request, memext, build, place, inputs):
    """{keys of reports, with their types} == {keys of docs/report.md}, but for those that need what is not built or not here."""
    keys = listed((ROOT / "docs/report.md").read_text())
    patterns = {key: pattern(key) for key in keys}
    reports = [result.report for result in everything(memext, place, inputs)]
    seldom = set(SELDOM)
    if importlib.util.find_spec("h5py") and "hdf5" in memext("info").stdout:
        import h5py
        with h5py.File(inputs / "k.h5", "w") as file:
            file["k"] = numpy.load(inputs / "k.npy")
        reports.append(memext.run(*GRID, "-d", place, "--kernel", ROOT / "systems/diffusion.c", "--init", "u=gauss", "--field", f"k={inputs / 'k.h5'}:/k").report)
    else:
        seldom.add("files.FIELD.dataset")
    if (build / "fake_cuda").exists():
        request.getfixturevalue("fake_cuda")("devices=2")
        reports.append(memext.run(*GRID, "-d", place, "--accel", "cuda", "--ranks", 2, "--dram", "64MiB").report)
        reports.append(memext.run(*GRID, "-d", place, "--accel", "cuda", "--dram", "64MiB").report)
    else:
        seldom |= {"accelerator.device_number", "ranks.each[].device_number"}
    occurred, unknown = {}, set()
    for report in reports:
        for key, kind in found(report):
            names = [name for name, one in patterns.items() if one.fullmatch(key)]
            for name in names:
                occurred.setdefault(name, set()).add(kind)
            if not names and kind not in ("object", "array"):
                unknown.add((key, kind))
    assert unknown == set(), "docs/report.md does not have these keys"
    assert {name: kinds for name, kinds in occurred.items() if not kinds <= keys[name]} == {}, "docs/report.md says other types"
    assert keys.keys() - occurred.keys() <= seldom, f"no report has {sorted(keys.keys() - occurred.keys() - seldom)}"


def test_a_page_is_read():
    keys = listed("| `a`, `b[].c` | integer, null | | |\n| `d.a` | text | | |\n| `e.*` | as `d.*` | | |\n| `f.NAME` | number | | |\n")
    assert keys == {"a": {"integer", "null"}, "b[].c": {"integer", "null"}, "d.a": {"text"}, "e.a": {"text"}, "f.NAME": {"number"}}
    assert pattern("f.NAME").fullmatch("f.x") and not pattern("f.NAME").fullmatch("f.x.y") and pattern("b[].c").fullmatch("b[].c")
    assert ("a[].b", "null") in list(found({"a": [{"b": None}]}))
