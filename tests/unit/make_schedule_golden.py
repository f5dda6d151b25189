#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes tests/unit/schedule_golden.inc: row counts and Block extents of random settings by the Python model.

usage: make_schedule_golden.py MODELS_DIRECTORY > tests/unit/schedule_golden.inc
MODELS_DIRECTORY holds calctrans.py, a model of CalcTrans that is not part of this repository: the tests need only what it gave."""
import random
import sys

sys.path.insert(0, sys.argv[1])
import calctrans as model


def plain(ny, nz, nt, by, bz, bt, h):
    """Rows moved each way by algorithm-2: both arrays, whole spans."""
    rows = 0
    for levels in [bt] * (nt // bt) + ([nt % bt] if nt % bt else []):
        rows += 2 * model.zsum(ny, by, levels, h) * model.zsum(nz, bz, levels, h)
    return rows


def setting(rnd, large):
    h = rnd.choice([1, 1, 1, 2, 3, 4, 8])
    most = 4096 if large else 60
    ny, nz = rnd.randint(4 * h, most), rnd.randint(4 * h, most)
    by, bz = rnd.randint(2 * h, ny), rnd.randint(2 * h, nz)
    if rnd.random() < 0.25:
        by = max(2 * h, ny // rnd.randint(1, 4))
    if rnd.random() < 0.25:
        bz = max(2 * h, nz // rnd.randint(1, 4))
    nt = rnd.randint(1, 1000 if large else 30)
    bt = rnd.randint(1, max(1, min(nt, by // (2 * h), bz // (2 * h))))
    return ny, nz, nt, by, bz, bt, h


def main():
    rnd = random.Random(20)
    print("/* SPDX-License-Identifier: BSD-3-Clause */\n/* made by make_schedule_golden.py */")
    for i in range(600):
        ny, nz, nt, by, bz, bt, h = s = setting(rnd, i % 2)
        both = [plain(*s)] * 2
        for name in ("3y", "5y"):
            # one element of x, one byte each: rows
            both += [v // (1 + 2 * h) for v in model.calctrans(name, 1, ny, nz, nt, by, bz, bt, 1, h, 1)]
        both += [v // (1 + 2 * h) for v in model.alg1_traffic(1, ny, nz, nt, by, bz, bt, h, 1, False)]
        extents = [model.ysize(ny, by, bt, h), model.zmax(nz, bz, bt, h)]
        pairs = ", ".join("{%d, %d}" % pair for pair in zip(both[::2], both[1::2]))
        print("{%s, {%s}}," % (", ".join(str(v) for v in list(s) + extents), pairs))


main()
