# SPDX-License-Identifier: BSD-3-Clause
"""experiments/plans: at night a problem is smaller than the paper's, and nothing else about a comparison differs."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments"))

from runner import plan  # noqa: E402


def loaded(name, scale="night"):
    return plan.load(plan.PLANS / f"{name}.toml", scale).runs


def after(words, option):
    return words[words.index(option) + 1]


def bytes_of(memext, run):
    """Predicted bytes of a run, both ways, as a dry run says."""
    words = list(run.words[run.words.index("{memext}") + 1 :])
    for option in ("-d", "--json", "--timeline"):
        if option in words:
            del words[words.index(option) : words.index(option) + 2]
    done = subprocess.run([memext.program, *words, "--dry-run", "--json", "-"], capture_output=True, text=True)
    assert done.returncode == 0, (run.id, done.stderr)
    report = json.loads(done.stdout)
    return report["predicted_read_bytes"] + report["predicted_write_bytes"]


def shares(memext, runs, key):
    """{configuration: bytes of a tuner's choice / Blk-Tune's}."""
    counted = {(key(r), r.params["tuner"]): bytes_of(memext, r) for r in runs}
    return {(where, tuner): count / counted[where, "blk"] for (where, tuner), count in counted.items()}


@pytest.mark.parametrize("name, key", [("fig19", lambda r: r.params["algorithm"]), ("fig22", lambda r: (r.params["machine"], r.params["algorithm"], r.params["size"].replace("128GiB", "1GiB").replace("256GiB", "2GiB")))], ids=["fig19", "fig22"])
def test_tuners_move_bytes_in_the_ratios_of_the_papers_size(memext, name, key):
    """Within 3 %: a problem whose Blocks are cut otherwise than the paper's would decide the comparison beforehand. The third size of Fig. 22 is run at full scale alone."""
    night, full = (shares(memext, [r for r in loaded(name, scale) if r.params.get("size") != "512GiB"], key) for scale in ("night", "full"))
    assert night.keys() <= full.keys() and {k: (v, full[k]) for k, v in night.items() if abs(v / full[k] - 1) > 0.03} == {}


@pytest.mark.parametrize("name, same", [("fig07", ("size", "stencil")), ("fig07-large", ("size", "stencil")), ("fig12", ("room",)), ("fig19", ()), ("fig22", ("size",)), ("fig06", ("size",))])
@pytest.mark.parametrize("scale", ["quick", "night", "full"])
def test_what_is_compared_makes_the_same_steps(name, same, scale):
    """A sweep more or less would weigh what differs in the first one."""
    if not plan.has(plan.PLANS / f"{name}.toml", scale):
        pytest.skip(f"{name} has no {scale}")
    steps = {}
    for r in loaded(name, scale):
        steps.setdefault(tuple(r.params[k] for k in same), set()).add(after(r.words, "-t"))
    assert all(len(s) == 1 for s in steps.values()), steps


@pytest.mark.parametrize("name, scale", [("fig07", "night"), ("fig07-large", "night"), ("fig12", "night"), ("hhrt", "night"), ("hhrt", "quick")])
def test_blocks_are_swept_three_times_at_least(name, scale):
    """Where the steps of a sweep are given."""
    for r in loaded(name, scale):
        if "--block" in r.words:
            bt = int(r.words[r.words.index("--block") + 3])
            assert int(after(r.words, "-t")) >= 3 * bt, r.id


def test_the_methods_of_fig05_make_the_same_sweeps():
    for name in ("fig05", "fig05-large", "before-after"):
        swept = [r for r in loaded(name) if r.params.get("temporal", r.params.get("backend") != "dram") and "--block" in r.words]
        assert len(swept) >= 3 and len({(after(r.words, "-t"), *r.words[r.words.index("--block") + 1 :][:3]) for r in swept}) == 1


def test_values_of_before_stand_beside_the_iblock_of_before():
    """The slides' profiles and their times relative to normal execution are of "Inner Loop block 32x32x32"."""
    assert all(r.words[r.words.index("--iblock") + 1 :][:2] == ("32", "32") for r in loaded("fig05-large"))
    before = [r for r in loaded("before-after") if r.params["step"] == "before"]
    assert before and all("--iblock" in r.words for r in before) and not any("--iblock" in r.words for r in loaded("before-after") if r.params["step"] == "after")
