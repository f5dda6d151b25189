# SPDX-License-Identifier: BSD-3-Clause
"""memext export of the stores of a wavefront: the bits of --output, of runs that ended, that were cut off, and that went on."""
import json

import numpy
import pytest
from test_wavefront import COLS, NAMES, ROWS, SIZE, dying, matrices, run

TILED = ["--tile", 8, 30, "--waves", 2]


@pytest.fixture
def place(quick_place):
    return quick_place


def outputs(directory, end):
    return [word for name in NAMES for word in ("-o", f"{name}={directory / name}{end}.npy")]


@pytest.mark.parametrize("layout", ["row", "block", "frontier"])
def test_export_gives_what_output_gave(memext, place, tmp_path, layout):
    """All six matrices, byte for byte, files of .npy included; without the border the interior of them."""
    run(memext, *SIZE, "-d", place, "--layout", layout, *TILED, "--keep", *outputs(tmp_path, "-run"))
    done = memext("export", place, *outputs(tmp_path, ""), "--json", "-", "-q")
    assert done.returncode == 0, done.stderr
    for name in NAMES:
        assert (tmp_path / f"{name}.npy").read_bytes() == (tmp_path / f"{name}-run.npy").read_bytes()
    report = json.loads(done.stdout)
    assert report["outputs"]["zb"] == str(tmp_path / "zb.npy") and report["store"]["wavefront"]["iterations_done"] == 6
    done = memext("export", place, "-o", tmp_path / "bare.npy", "-o", f"zz={tmp_path}/bare-zz.npy", "--output-frame", "none")
    assert done.returncode == 0 and f"iteration 6 of 6, shape ({ROWS}, {COLS}), without the border" in done.stdout, done.stderr
    for bare, name in [("bare", "za"), ("bare-zz", "zz")]:
        assert numpy.array_equal(numpy.load(tmp_path / f"{bare}.npy"), numpy.load(tmp_path / f"{name}.npy")[1:-1, 1:-1])


@pytest.mark.parametrize("backend", ["mmap", "aio"])
def test_a_run_that_was_cut_off_and_went_on(memext, place, tmp_path, backend):
    """Of the store of a run that died the state of its last commit, which is that of a run of so many iterations; then the result."""
    za = tmp_path / "in.npy"
    numpy.save(za, matrices()["za"])
    dying(memext, place, "--input", za)
    store = (place / "memext.store").read_bytes()
    done = memext("export", place, "-o", tmp_path / "part.npy", "--backend", backend)
    made = int(done.stdout.split("iteration ")[1].split()[0])
    assert done.returncode == 0 and "(incomplete)" in done.stdout and 0 < made < 6, done.stderr
    assert (place / "memext.store").read_bytes() == store
    run(memext, "--input", za, "--iterations", made, "--sequential", "-o", tmp_path / "part-run.npy")
    assert (tmp_path / "part.npy").read_bytes() == (tmp_path / "part-run.npy").read_bytes()
    run(memext, "--resume", "-d", place, "--keep", "-o", tmp_path / "run.npy")
    assert memext("export", place, "-o", tmp_path / "whole.npy").returncode == 0
    assert (tmp_path / "whole.npy").read_bytes() == (tmp_path / "run.npy").read_bytes()


def test_names_that_are_no_text(memext, place, tmp_path):
    """Bytes that are no UTF-8 are null in reports; the store knows the file all the same, and it is not written over."""
    za, out = tmp_path / "in\udcff%.npy", tmp_path / "out\udcfe.npy"
    numpy.save(za, matrices()["za"])
    report = run(memext, "--input", za, "--iterations", 2, "-d", place, "--keep", "-o", tmp_path / "run.npy")
    assert report["inputs"] == {"za": None}
    done = memext("export", place, "-o", out, "--json", "-", "-q")
    assert json.loads(done.stdout)["outputs"] == {"za": None} and out.read_bytes() == (tmp_path / "run.npy").read_bytes()
    memext.refused("export", place, "-o", za, "--overwrite", naming=["never written"], errors="surrogateescape")


def test_what_export_refuses(memext, place, tmp_path):
    """Nothing committed, names of no matrix, files that are there, inputs of the run, other formats: with a sentence, and nothing is touched."""
    out, za = tmp_path / "out.npy", tmp_path / "in.npy"
    numpy.save(za, matrices()["za"])
    given = za.read_bytes()
    memext.refused("export", place, "-o", out, naming=["memext.store"])
    died = memext("wavefront", *SIZE, "-d", place / "early.store", "--backend", "fault:aio", "--fault", "fail_after=3", "-q")
    assert died.returncode == 3 and "--resume" not in died.stderr
    memext.refused("export", place / "early.store", "-o", out, naming=["nothing was committed"])
    dying(memext, place, "--input", za)
    memext.refused("export", place, "-o", f"zq={out}", naming=["za, zr, zb"])
    memext.refused("export", place, "-o", out, "-o", f"za={tmp_path}/b.npy", naming=["twice for za"])
    memext.refused("export", place, "-o", tmp_path / "out.h5", naming=["written as a .npy file"])
    memext.refused("export", place, "-o", za, "--overwrite", naming=["never written"])
    memext.refused("export", place, "-o", out, "--json", za, naming=["never written"])
    memext.refused("export", place, "-o", place / "memext.store", "--overwrite", naming=["place of the Buffers"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.npy"] and za.read_bytes() == given
    out.write_bytes(b"mine")
    memext.refused("export", place, "-o", out, naming=["--overwrite"])
    assert out.read_bytes() == b"mine"
    assert memext("export", place, "-o", out, "--overwrite", "-q").returncode == 0 and numpy.load(out).shape == (ROWS + 2, COLS + 2)
