# SPDX-License-Identifier: BSD-3-Clause
"""experiments/girih.py: the ratios are those of one round, and of the fastest Girih in it."""

import json
import os
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Every program is half as fast as the one before in the next round; AVX2 is a tenth slower.
FAKE = """#!/usr/bin/python3
import json, os, pathlib, sys
me = pathlib.Path(__file__)
count = me.with_suffix(".count")
n = int(count.read_text()) if count.exists() else 0
count.write_text(str(n + 1))
share = 0.9 if os.environ.get("MX_ISA") == "avx2" else 1
if me.name.startswith("girih"):
    rate = (1000 if me.name == "girih1" else 2000) / 2**n
    print("nothing" if "--t-dim 3" in " ".join(sys.argv) else f"Total RANK0 MStencil/s MAX: {rate}")
elif me.name == "bench_engine":
    print(json.dumps({"peak_l2": 8 * share / 2 ** (n // 2)}))
else:
    print(json.dumps({"updates_per_second": (5e9 if "dram" in sys.argv else 4e9) * share / 2 ** (n // 4)}))
"""


def girih(folder, *words, programs=("girih1", "girih2")):
    for name in ("girih1", "girih2", "bench_engine", "memext"):
        (folder / name).write_text(FAKE)
        (folder / name).chmod(0o755)
        (folder / name).with_suffix(".count").unlink(missing_ok=True)
    named = [word for name in programs for word in ("--girih", str(folder / name))]
    return subprocess.run([str(ROOT / "experiments" / "girih.py"), *named, *words], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "MEMEXT_BUILD": str(folder)})  # fmt: skip


def test_ratios_are_of_one_round(tmp_path):
    done = girih(tmp_path, "--rounds", "3", "-d", str(tmp_path), "--json", str(tmp_path / "out.json"))
    assert done.returncode == 0, done.stderr
    rounds = json.loads((tmp_path / "out.json").read_text())
    assert [r["Girih"] for r in rounds] == [2.0, 1.0, 0.5]
    rows = {line.split(" | ")[0].strip("| "): line.strip("|").split("|") for line in done.stdout.splitlines()[2:]}
    assert len(rows) == len(rounds[0]) == 7
    for what, share, part in (("avx512: tiled in DRAM", 2.5, 0.62), ("avx2: stream at 8 times the DRAM", 1.8, 0.50)):
        ratio = statistics.median(r[what] / r["Girih"] for r in rounds)
        assert ratio == share and rows[what][2].split()[0] == f"{share:.2f}" and rows[what][3].split()[0] == f"{part:.2f}", done.stdout


def test_a_girih_that_prints_no_rate(tmp_path):
    done = girih(tmp_path, "--diamond", "3")
    assert done.returncode == 1 and "girih1 printed no rate" in done.stderr


def test_without_girih_the_others_are_measured(tmp_path):
    done = girih(tmp_path, "--rounds", "2", "--json", str(tmp_path / "out.json"), programs=())
    assert done.returncode == 0 and "Girih is not measured: --girih PROGRAM" in done.stderr, done.stderr
    rounds = json.loads((tmp_path / "out.json").read_text())
    assert len(rounds) == 2 and set(rounds[0]) == {f"{isa}: {what}" for isa in ("avx512", "avx2") for what in ("peak, L2", "tiled in DRAM")}
    assert "avx2: tiled in DRAM" in done.stdout


def test_a_girih_that_is_not_there(tmp_path):
    done = girih(tmp_path, programs=("girih1", "girih3"))
    assert done.returncode == 2 and f"--girih {tmp_path / 'girih3'}: there is no such program" in done.stderr
