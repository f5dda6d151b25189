# SPDX-License-Identifier: BSD-3-Clause
"""The applications: their checks at small sizes, full runs of small grids that leave pictures, and that the checks see a kernel that is wrong."""
import json
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import thinned

APPLICATIONS = pathlib.Path(__file__).resolve().parents[2] / "systems" / "applications"

# What is broken in each kernel, and the checks that must not bear it.
BROKEN = {
    "seismic_shot": {"W(8.0 / 315)": ("W(8.0 / 316)", "bit by bit"), "(float)AT(v, 0, 0, 0) *": ("1.02f * (float)AT(v, 0, 0, 0) *", "error of the traces"),
                     "(PARAM(damping) / 255)": ("0", "echo of the sides")},
    "pore_diffusivity": {"open > 0 ? open : 1": ("6.0", "D/D0"), "+ Z + T)": ("+ Z)", "bit by bit")},
    "denoising": {"here + INVERSE(dx, dy, dz)": ("2 * here", "images apart"), "0.5 * squares": ("squares", "energy of the step before")},
}
SMALL = {"seismic_shot": ["--small", 56, 54, 60], "pore_diffusivity": ["--small", 18, 17, 20], "denoising": ["--small", 14, 12, 13]}
FULL = {
    "seismic_shot": ["-n", 160, 64, 160, "-t", 260, "--frequency", 18, "--dram", "29MiB"],
    "pore_diffusivity": ["-n", 136, 64, 96, "--radius", 9, "--spread", 5e-3, "--dram", "28MiB"],
    "denoising": ["-n", 140, 64, 90, "-t", 150, "--change", 0, "--check", 10, "--dram", "27MiB"],
}
PROGRAM = 24 << 20  # what memext takes of --dram before it has any Blocks


@pytest.fixture(scope="module")
def script(memext):
    def script(name, folder, *words, status=0):
        """Its figures and what it said."""
        command = [sys.executable, APPLICATIONS / f"{name}.py", "--memext", memext.program, "-d", folder, "--json", folder / "figures.json",
                   "--picture", folder / "picture.png", "--threads", 2, *words]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=900)
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        assert sorted(p.name for p in folder.iterdir() if p.is_dir()) == [], "a folder is left"
        return json.loads((folder / "figures.json").read_text()) if (folder / "figures.json").exists() else None, done.stdout + done.stderr

    return script


@pytest.mark.parametrize("name", SMALL)
def test_checks(script, tmp_path, name):
    """Every check of the script holds, and there are some."""
    figures, said = script(name, tmp_path, "--only", "check", *SMALL[name])
    checks = figures["checks"]
    assert len(checks) >= 5 and all(check["good"] for check in checks.values())
    assert any("bit by bit" in check for check in checks) and said.count("ok ") == len(checks)
    assert not (tmp_path / "picture.png").exists()


@pytest.mark.parametrize("name", BROKEN)
def test_a_kernel_that_is_wrong_is_seen(script, tmp_path, name):
    kernel = (APPLICATIONS / f"{name}.c").read_text()
    for text, (instead, _) in BROKEN[name].items():
        assert text in kernel
        kernel = kernel.replace(text, instead)
    (tmp_path / "broken.c").write_text(kernel)
    figures, said = script(name, tmp_path, "--only", "check", *SMALL[name], "--kernel", tmp_path / "broken.c", status=1)
    failed = [found for found, what in figures["checks"].items() if not what["good"]]
    for _, check in BROKEN[name].values():
        assert any(check in found for found in failed), (check, failed)
    assert re.search(rf"{len(failed)} of {len(figures['checks'])} checks failed", said)


@pytest.mark.parametrize("name", thinned(FULL, lambda name: name == "pore_diffusivity"))
def test_full_run(script, tmp_path, name):
    """Out of core at a small size: several times the DRAM, bytes as predicted, its checks, a picture."""
    figures, _ = script(name, tmp_path, "--only", "run", *FULL[name])
    run = figures["run"]
    assert run["buffer_bytes"] > 2 * (run["dram_bytes"] - PROGRAM) and run["n"] == FULL[name][1:4] and run["plan"]["algorithm"] != "direct"
    if run["met"] is None:  # what is predicted is for all steps
        assert (run["read_bytes"], run["write_bytes"]) == (run["predicted_read_bytes"], run["predicted_write_bytes"])
    assert (run["met"] is None) == (name != "pore_diffusivity")
    assert all(check["good"] for check in figures["checks"].values()) and len(figures["checks"]) >= 3
    picture = (tmp_path / "picture.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 20_000


def test_what_cannot_be_met(script, tmp_path):
    """memext's own sentence and status; a folder that is not there."""
    _, said = script("seismic_shot", tmp_path, "--only", "run", "-n", 60, 60, 60, "-t", 10, "--dram", "1KiB", status=2)
    assert "memext" in said and "Traceback" not in said
    _, said = script("seismic_shot", tmp_path, "-d", tmp_path / "none", status=2)
    assert "is no directory" in said and "--device" in said
