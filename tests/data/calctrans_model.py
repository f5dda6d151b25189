#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes calctrans_model.json: CalcTrans, Bsz_max and the tuners' choices of the executable model, for random
settings. usage: calctrans_model.py MODELS_DIR > calctrans_model.json"""
import json
import random
import sys

sys.path.insert(0, sys.argv[1])
import calctrans as model  # noqa: E402

rnd = random.Random(2016)
traffic, tunes, lapped, iblocks, naive = [], [], [], [], []
for _ in range(400):
    h, esz = rnd.choice([1, 1, 2, 3]), rnd.choice([4, 8])
    nx, ny, nz = (rnd.randint(8 * h, 300) for _ in range(3))
    nt = rnd.randint(1, 60)
    by, bz = rnd.randint(2 * h, ny), rnd.randint(2 * h, nz)
    bt = rnd.randint(1, max(1, min(nt, by // (2 * h), bz // (2 * h))))
    args = [nx, ny, nz, nt, by, bz, bt, h, esz]
    y3 = model.calctrans("3y", nx, ny, nz, nt, by, bz, bt, 1, h, esz)
    y5 = model.calctrans("5y", nx, ny, nz, nt, by, bz, bt, 1, h, esz)
    traffic.append(args + list(y3) + list(y5) + [model.bszmax(nx, ny, nz, by, bz, bt, h)])
    r, w = model.alg1_traffic(nx, ny, nz, nt, by, bz, bt, h, esz, init=False)
    lapped.append(args + [r, w])
while len(tunes) < 300:
    nx, ny, nz, nt = 14, rnd.randint(8, 90), rnd.randint(8, 90), rnd.randint(2, 50)
    step, alg = rnd.choice([1, 2, 3, 4, 6, 8]), rnd.choice(["3y", "5y"])
    room = int(rnd.uniform(0.05, 1.1) * ny * nz * 16 * 16)
    best, _ = model.tune_fast(alg, nx, ny, nz, nt, room, step, 1)
    if best:
        tunes.append([nx, ny, nz, nt, room, step, int(alg == "5y"), best[0], best[1]])
for _ in range(200):
    nx, nc, esz = rnd.randint(64, 9000), rnd.choice([1, 2, 4, 8, 16, 20, 64]), rnd.choice([4, 8])
    l2 = rnd.choice([256, 512, 1024, 1280, 2048]) * 1024
    iblocks.append([nx, nc, l2, esz] + list(model.iblock(nx, nc, l2, esz)[1:]))
for _ in range(60):
    nx, ny, nz, nt = rnd.randint(1000, 4094), 8192, 8192, rnd.randint(50, 1000)
    nc, ns, sm = rnd.choice([8, 16, 20]), rnd.choice([1, 2]), rnd.randint(16 << 30, 128 << 30)
    try:
        log = model.naive_tune(nx, ny, nz, nt, sm, nc, ns, 20971520)
    except ZeroDivisionError:
        continue
    if log["max_bt"] < 2 or 2 * log["max_bt"] > log["bz"]:  # the model does not look at 2 bt <= bz
        continue
    naive.append([nx, ny, nz, nt, sm, nc, ns] + [log[k] for k in ("usable", "b_ym", "by", "bz", "max_bt", "ite", "bt", "remain")] + [log["iblock8"][2] or log["iblock"][2]])
columns = {
    "traffic": "nx ny nz nt by bz bt h element | skewed-y read write | skewed-min read write | Bsz_max cells",
    "lapped": "nx ny nz nt by bz bt h element | redundant read write (without initialisation)",
    "tunes": "nx ny nz nt room z_step skewed-min? | least read + write, Bsz_max in x columns",
    "iblocks": "nx cores L2 element | iy iz",
    "naive": "nx ny nz nt Sm cores sockets | usable b_ym by bz max_bt ite bt remain iz",
}
out = {"columns": columns, "traffic": traffic, "lapped": lapped, "tunes": tunes, "iblocks": iblocks, "naive": naive}
print("{" + ",\n".join('"%s": %s' % (k, json.dumps(v) if k == "columns" else "[\n" + ",\n".join(map(json.dumps, v)) + "]") for k, v in out.items()) + "}")
