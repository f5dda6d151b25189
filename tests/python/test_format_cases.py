# SPDX-License-Identifier: BSD-3-Clause
"""The table of format_cases.py: the command and the Python package read the same cells of a file, or refuse it for the same reason."""
import json
import re

import numpy as np
import pytest
from format_cases import CASES, HDF5, OTHER, WHOLE, A
from package import cache, environment, mx, need  # noqa: F401  (fixtures)

KERNEL = """#define MX_NAME "copy"
#define MX_RADIUS 1
#define MX_STATE(F) F(u, double)
#define MX_FIXED(F) F(k, TYPE)
#include <memext/cell.h>
MX_CELL
    SET(u, AT(k, 0, 0, 0) + 0 * AT(u, 0, 0, 0));
MX_END
"""
TYPES = {"u1": "uint8_t", "u2": "uint16_t", "i2": "int16_t"}


def wants(case, build):
    """Skips a case whose package is not there; says what the command cannot read here."""
    if case.name.endswith(".h5") or case.dataset:
        need("h5py")
        if not build("hdf5"):
            pytest.skip("memext is built without HDF5")


@pytest.fixture(scope="session")
def built(memext):
    formats = json.loads(memext("info", "--json", "-").stdout)["formats"]
    return lambda name: next(f["built"] for f in formats if f["name"] == name)


def word(case, path):
    return str(path) if case.dataset is None else f"{path}:/{case.dataset}"


def check_python(mx, case, path):
    if isinstance(case.right, str):
        with pytest.raises(mx.MemextError, match=re.escape(case.right)) as caught:
            np.asarray(mx.open(path, case.dataset))
        assert case.name in str(caught.value) or "cells.raw" in str(caught.value), str(caught.value)
        return
    got = np.asarray(mx.open(path, case.dataset))
    assert got.dtype.newbyteorder("=") == case.right.dtype and np.array_equal(got, case.right)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_both_read_the_same(memext, mx, built, tmp_path, case):  # noqa: F811
    """Pass: cells equal those of the table for both, or both refuse in a sentence with its word; where the command alone refuses, with a word that
    says how cells lie."""
    wants(case, built)
    path = tmp_path / case.name
    case.write(path)
    check_python(mx, case, path)
    out = tmp_path / "out.npy"
    words = ["run", "--input", word(case, path), "-t", 0, "--backend", "dram", "-o", out, "--quiet"]
    refusal = case.command or (case.right if isinstance(case.right, str) else None)
    if refusal is None:
        done = memext(*words)
        assert done.returncode == 0, done.stderr
        got = np.load(out)
        assert got.dtype == case.right.dtype and np.array_equal(got, case.right)
    else:
        memext.refused(*words, naming=refusal)
        assert not out.exists()


@pytest.mark.parametrize("case", WHOLE, ids=lambda c: c.id)
def test_both_read_the_same_whole_numbers(memext, mx, built, tmp_path, case):  # noqa: F811
    """Fields that are only read: a kernel copies one into the state."""
    wants(case, built)
    path = tmp_path / case.name
    case.write(path)
    check_python(mx, case, path)
    kind = "u1" if "byte" in case.id else "i2" if "unsigned" in case.id or isinstance(case.right, str) and "ushort" not in case.id else "u2" if "ushort" in case.id else case.right.dtype.str[1:]
    (tmp_path / "copy.c").write_text(KERNEL.replace("TYPE", TYPES[kind]))
    np.save(tmp_path / "u.npy", np.zeros(A.shape))
    words = ["run", "--kernel", tmp_path / "copy.c", "--input", tmp_path / "u.npy", "--field", f"k={word(case, path)}", "-t", 1, "--backend", "dram", "-o", tmp_path / "out.npy", "--quiet"]
    refusal = case.command or (case.right if isinstance(case.right, str) else None)
    if refusal is not None:
        memext.refused(*words, naming=refusal)
        return
    done = memext(*words)
    assert done.returncode == 0, done.stderr
    inner = (slice(1, -1),) * 3
    assert np.array_equal(np.load(tmp_path / "out.npy")[inner], case.right[inner])


def test_the_table():
    """What the command alone refuses is how cells lie, not what a header means. Names are used once."""
    assert all(case.command is None or case.command in OTHER | {"other files", "virtual", "2 dimensions"} for case in (*CASES, *WHOLE))
    assert len({case.id for case in CASES}) == len(CASES) > 120 and len(HDF5) > 30
