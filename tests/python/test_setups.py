# SPDX-License-Identifier: BSD-3-Clause
"""analysis/setups.py: what a plan ran, beside what the paper ran; and the L3 cache of a session."""
import sys
from pathlib import Path

import test_verdicts as made
from made_up import group, plan

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from analysis import origin, published, report, results, setups, verdicts  # noqa: E402

KNOWN = published.read_all()


def slowed(rate="370MiB"):
    """Two configurations of Fig. 19, 2 GiB of Buffers in 128 MiB; one behind limit-bandwidth."""
    around = ("experiments/limit-bandwidth", rate, "/data", "--") if rate else ()
    groups = [group({"algorithm": a, "tuner": "blk"}, limit="128MiB", layout={"buffer_bytes": 1 << 30}, block_bytes=100 << 20, command=(*around, "memext", "run")) for a in ("skewed-min", "skewed-y")]
    return plan("fig19", *groups)["fig19"]


def test_a_plan_says_its_size_its_limits_and_its_sweeps():
    """Size against the paper's, DRAM, Blocks, steps in sweeps, and the rate that the device was limited to."""
    said = setups.line(slowed(), KNOWN)
    assert said.startswith("fig19: 2 GiB of Buffers; grids of 510 x 510 x 254; DRAM limited to 128 MiB; Blocks of 100 MiB; iBlocks of 1 x 8 rows and planes; 10 steps in 2 sweeps; device limited to 370 MiB a second each way. Published: ")
    assert said.endswith("32 GiB of DRAM, crest4 (64 times larger).")
    assert "device not limited" in setups.line(slowed(""), KNOWN)
    assert "device limited to 200 MB a second each way" in setups.line(slowed("200000000"), KNOWN)


def test_a_plan_says_its_accelerator():
    """Name, memory and bus, as the commands give them: they decide what a model of a GPU is worth."""
    run = group({"gib": 16}, command=("experiments/limit-bandwidth 220MiB /data -- memext run --accel host,rate=800MB/s --device-memory 48MiB",))
    assert "; accelerator `host` with 48 MiB of memory behind a bus of 800 MB/s; device limited to 220 MiB" in setups.line(plan("ktable", run)["ktable"], KNOWN)
    other = group({"gib": 16}, command=("memext", "run", "--accel", "cuda,pin=1,rate=2GB/s"))
    assert "; accelerator `cuda` behind a bus of 2 GB/s; device not" in setups.line(plan("ktable", other)["ktable"], KNOWN)
    assert "; accelerator `auto`; device not" in setups.line(plan("ktable", group({"gib": 16}, command=("memext", "run", "--accel", "auto")))["ktable"], KNOWN)


def test_steps_on_the_mapping_are_sweeps():
    direct = group({"run": 1}, plan={"algorithm": "direct", "bt": 1})
    assert setups.sweeps(direct.runs[0]) == 10 and setups.sweeps(group({"run": 1}).runs[0]) == 2


def test_the_same_iblocks_are_named_once():
    groups = [group({"run": k}, plan={"engine": engine, "iy": 1, "iz": 16}) for k, engine in enumerate(("iblock", "iblock", "tiled"))]
    assert "; iBlocks of 1 x 16 rows and planes; " in setups.line(plan("fig19", *groups)["fig19"], KNOWN)
    assert "iBlocks" not in setups.line(plan("fig19", groups[2])["fig19"], KNOWN)


def test_plans_without_a_paper_say_so():
    assert setups.line(plan("queue", group({"run": 1}))["queue"], KNOWN).endswith(". Published: no counterpart in the papers.")
    assert "computed nothing" in setups.line(made.table2()["table2"], KNOWN) and setups.line(plan("fig05")["fig05"], KNOWN) == ""
    assert "(64 times larger)" in setups.line(plan("fig05-large", group({"run": 1}))["fig05-large"], KNOWN), "the same problem, another size"


def test_a_wavefront_counts_its_six_matrices():
    run = group({"run": 1}, command=("memext", "wavefront"), problem={"rows": 16384, "cols": 16384}, plan={"layout": "block"})
    said = setups.line(plan("fig4w", run)["fig4w"], KNOWN)
    assert "12 GiB of matrices" in said and said.endswith("(the same size).")
    larger = group({"run": 1}, command=("memext", "wavefront"), problem={"rows": 20480, "cols": 20480}, plan={"layout": "block"})
    assert setups.line(plan("fig4w", larger)["fig4w"], KNOWN).endswith("(1.56 times smaller).")


def test_the_page_has_a_line_for_each_plan_and_the_cache():
    """Both pages; a machine that was planned for has no cache here."""
    found = {**made.fig05(), **made.table2()}
    for p, size in zip(found.values(), (480, 20)):
        for r in p.runs:
            r.record["report"].setdefault("machine", {})["l3_bytes"] = size << 20
    for r in found["table2"].runs:
        r.record["report"]["seconds"] = 0
    text = report.markdown(found, verdicts.all_verdicts(found, KNOWN))
    assert all(f"- {line}" in text for line in setups.lines(found, KNOWN)) and len(setups.lines(found, KNOWN)) == 2
    assert "| L3 cache | 480 MiB |" in text and "compare order and ratio" in text
    assert not any(row[0] == "L3 cache" for one in origin.sittings(made.table2()) for row in origin.rows(one))


def test_every_plan_of_the_committed_results_has_its_line():
    found = results.read_all(ROOT / "data" / "results")
    page = (ROOT / "docs" / "results.md").read_text()
    assert all(f"- {setups.line(p, KNOWN)}" in page for p in found.values())
