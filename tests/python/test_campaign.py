# SPDX-License-Identifier: BSD-3-Clause
"""The random campaign (drawn_runs.py): problems of all features together, by all kinds of runs, compared with numpy. tests/campaign.py runs more of them."""
import collections
import os
import random
import sys

import drawn_cells
import pytest
from conftest import LONG, ROOT, drawn
from drawn_kernels import Kernel
from drawn_plans import Ways
from drawn_problems import Problem
from drawn_runs import Campaign

sys.path.insert(0, str(ROOT / "tests/mutants"))

from table import FOLDERS, MUTANTS  # noqa: E402

OF_A_KERNEL, OF_A_TEST = 10, 20


@pytest.mark.parametrize("number", drawn(0, 80 if LONG else 8))
def test_random_problems(memext, quick_place, swap_space_if_any, number):
    """Bits, traces, reductions and snapshots are those of numpy, bytes are those predicted; what is refused has a reason that is known here, and what has a
    reason is refused."""
    c = Campaign(memext.program, quick_place, "test", dict(os.environ), OF_A_KERNEL, opencl=0.05 if LONG or number % 4 == 0 else 0)
    c.run(number * OF_A_TEST, OF_A_TEST, most=1)
    assert not c.findings, "tests/campaign.py --seed test --kernel-of {} --only {}\n{}\n{}".format(OF_A_KERNEL, c.findings[0][0], c.findings[0][1], "\n".join(c.findings[0][2]))
    assert c.counts["problems"] > OF_A_TEST // 2 and c.counts["runs"] > OF_A_TEST // 2


WANTED = [f"form {form}" for form in ("jacobi", "leapfrog", "staggered")] + [f"stages {n}" for n in (1, 2, 3, 4)] + [f"radius {n}" for n in (1, 2, 3, 4)] + \
    ["2 dimensions", "3 dimensions"] + [f"state of {t}" for t in drawn_cells.TYPES.values()] + \
    [f"side {kind}" for kind in ("fixed", "mirror", "odd", "mirror-node", "odd-node", "edge", "periodic")] + \
    [f"profile alike along {axes}, {how} its frame" for axes in ("z", "y", "x", "zy", "zx", "yx", "zyx") for how in ("with", "without")] + \
    ["series of a parameter", "series of a parameter, a value for each level", "point source", "probes", "checks of reductions", "SET under a condition", "a cell that returns",
     "a side of one field", "OLD", "state without a frame, mirror"] + [f"reduction {kind}" for kind in ("MX_SUM", "MX_MAX", "MX_MIN")] + \
    [f"backend {b}" for b in ("dram", "mmap", "swap", "aio", "uring", "fault:uring")] + [f"ranks {n}" for n in (1, 2, 3)] + [f"accelerator {a}" for a in ("host", "opencl", "cuda")] + \
    [f"algorithm {a}" for a in ("stream", "redundant", "skewed", "skewed-y", "skewed-min", "direct", "direct-skewed", "direct-skewed-opt", "resident", "chosen by the tuner")] + \
    [f"run with {how}" for how in ("in-place", "integrity", "verify", "snapshot", "--no-fuse", "--commit-every", "--column", "--threads")] + ["a run that goes on"]  # fmt: skip


def test_all_features_are_drawn(tmp_path):
    """Nobody believes that something was covered which is never drawn."""
    counts, r = collections.Counter(), random.Random(1)
    for number in range(160):
        kernel = Kernel(f"drawn {number}")
        counts.update(kernel.drawn())
        problem = Problem(tmp_path, kernel, number, most_steps=2)
        counts.update(problem.counted)
        ways = Ways(problem, r)
        for i in range(8):
            counts.update(ways.draw(2, at=1 if i % 2 else None, alone=i % 2 == 0).drawn())
        counts.update(ways.fault(2).drawn())
    assert not [name for name in WANTED if not counts[name]], counts


def test_another_result_is_found(memext, quick_place, monkeypatch):
    """A model that saturates where whole numbers wrap: the campaign sees the difference."""
    kept = drawn_cells.stored
    monkeypatch.setattr(drawn_cells, "stored", lambda values, dtype: kept(values.astype("f8") if values.dtype.kind != "f" else values, dtype))
    seed = next(n for n in range(1000) if Kernel(f"wraps {n}").state["u0"] in ("i1", "u1", "i2", "u2") and "\n    SET(u0, ((" in Kernel(f"wraps {n}").text())
    c = Campaign(memext.program, quick_place, "wraps", dict(os.environ), 10, opencl=0)
    c.run(10 * seed, 10, most=1)
    assert c.findings and "other bits than numpy" in c.findings[0][1]


def test_mutants_stand_in_the_tree():
    """tests/mutants/run.py applies each to a copy; the text that it changes is there, once."""
    every = MUTANTS + FOLDERS
    assert len({m.name for m in every}) == len(every) and len(MUTANTS) >= 10
    assert len({m.file.rpartition("/")[0] for m in FOLDERS}) == len(FOLDERS) >= 12
    assert not [m.name for m in every if (ROOT / m.file).read_text().count(m.old) != 1]


def test_trials_are_alike(tmp_path):
    """The same seed draws the same problem, files and words."""
    made = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        p = Problem(tmp_path / name, Kernel("alike"), "alike")
        made.append(([str(w).replace(str(tmp_path / name), "") for w in p.words], {f: a.tobytes() for f, a in p.states[-1].items()}, p.kernel.text()))
    assert made[0] == made[1]
