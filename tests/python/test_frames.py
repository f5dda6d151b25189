# SPDX-License-Identifier: BSD-3-Clause
"""Inputs without a frame: --frame against numpy.pad, raw files, fields of kernels, sides, stores; outputs without one."""
import json

import numpy as np
import pytest
from test_systems import SYSTEMS

MODES = {"edge": {"mode": "edge"}, "mirror": {"mode": "symmetric"}, "periodic": {"mode": "wrap"}, "-2.5": {"mode": "constant", "constant_values": -2.5}}
HALO = {"star7": 1, "star19": 3}
DIRECT = ["--backend", "dram", "--algorithm", "direct"]
STREAM = ["--backend", "uring", "--algorithm", "stream"]


@pytest.fixture
def place(quick_place):
    return quick_place


def bare(nx, ny, nz, dtype="f8", seed=5):
    return np.random.default_rng(seed).random((nz, ny, nx)).astype(dtype)


def pad(grid, h, mode):
    return np.pad(grid, h, **MODES[mode])


def load(path):
    return np.load(path).tobytes()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stencil, n", [("star7", (11, 9, 13)), ("star19", (7, 8, 9)), ("star19", (2, 1, 5))])
def test_frames_are_those_of_numpy(memext, place, tmp_path, mode, stencil, n):
    """The grid of step 0, and what becomes of it; n may be less than the radius."""
    grid, h = bare(*n), HALO[stencil]
    np.save(tmp_path / "bare.npy", grid)
    np.save(tmp_path / "padded.npy", pad(grid, h, mode))
    words = ["--stencil", stencil, "-o", tmp_path / "out.npy", "--overwrite"]
    memext.run("--input", tmp_path / "bare.npy", "--frame", mode, "-t", 0, *words, *DIRECT)
    assert load(tmp_path / "out.npy") == pad(grid, h, mode).tobytes()
    wanted = memext.run("--input", tmp_path / "padded.npy", "-t", 3, *words, *DIRECT)["checksum"]
    whole = load(tmp_path / "out.npy")
    done = memext.run("--input", tmp_path / "bare.npy", "--frame", mode, "-t", 3, *words, *STREAM, "-d", place, "--verify")
    assert done["checksum"] == wanted and load(tmp_path / "out.npy") == whole and done["verified"]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_raw_inputs(memext, tmp_path, dtype):
    """With a head and a tail, with the frame and without; a comma in the name of a file that is there is one."""
    grid, out = bare(10, 7, 6, dtype.replace("32", "4").replace("64", "8")), tmp_path / "out.npy"
    (tmp_path / "bare.raw").write_bytes(b"x" * 352 + grid.tobytes() + b"tail")
    (tmp_path / "whole,f32").write_bytes(pad(grid, 1, "edge").tobytes())
    words = ["-n", 10, 7, 6, "-t", 2, *DIRECT, "-o", out, "--overwrite"]
    np.save(tmp_path / "padded.npy", pad(grid, 1, "edge"))
    memext.run("--input", tmp_path / "padded.npy", *words)
    wanted = load(out)
    for file, more in ((f"bare.raw,{dtype},offset=352", ["--frame", "edge"]), (f"whole,f32,{dtype}", [])):
        done = memext.run("--input", tmp_path / file, *more, *words)
        assert load(out) == wanted and done["problem"]["dtype"] == dtype and done["input"] == str(tmp_path / file.rsplit(f",{dtype}", 1)[0])


def test_fields_of_kernels(memext, place, tmp_path):
    """A frame for each field by name, plain and raw files; fields that are only read too, where their frame counts."""
    u, v = bare(9, 8, 7), bare(9, 8, 7, seed=6)
    np.save(tmp_path / "u.npy", u)
    (tmp_path / "v.raw").write_bytes(b"head" + v.tobytes())
    np.save(tmp_path / "u1.npy", np.pad(u, 1, constant_values=1))
    np.save(tmp_path / "v1.npy", np.pad(v, 1, mode="wrap"))
    words = ["--kernel", SYSTEMS / "gray_scott.c", "-t", 3, "--output", f"u={tmp_path}/u.out", "--output", f"v={tmp_path}/v.out", "--overwrite"]
    wanted = memext.run(*words, *DIRECT, "--input", f"u={tmp_path}/u1.npy", "--input", f"v={tmp_path}/v1.npy")["checksum"]
    frames = load(tmp_path / "u.out"), load(tmp_path / "v.out")
    done = memext.run(*words, *STREAM, "-d", place, "--input", f"u={tmp_path}/u.npy", "--input", f"v={tmp_path}/v.raw,f64,offset=4", "--frame", "periodic",
                      "--frame", "u=1", "--verify")
    assert done["checksum"] == wanted and (load(tmp_path / "u.out"), load(tmp_path / "v.out")) == frames and done["verified"]
    kernel = tmp_path / "k.c"
    kernel.write_text('#define MX_NAME "k"\n#define MX_RADIUS 2\n#define MX_FIXED_RADIUS 1\n#define MX_STATE(F) F(w, double)\n#define MX_FIXED(F) F(k, float)\n'
                      "#include <memext/cell.h>\nMX_CELL\n    SET(w, AT(w, 2, 0, 0) * AT(k, -1, 0, 0) + AT(w, 0, -2, 0) * AT(k, 0, 1, 0) - AT(w, 0, 0, 2) * AT(k, 0, 0, -1));\nMX_END\n")
    k = bare(9, 8, 7, "f4")
    np.save(tmp_path / "k.npy", k)
    np.save(tmp_path / "k2.npy", pad(k, 2, "mirror"))
    np.save(tmp_path / "w2.npy", pad(u, 2, "mirror"))
    words = ["--kernel", kernel, "-t", 2, "-o", tmp_path / "w.out", "--overwrite"]
    wanted = memext.run(*words, *DIRECT, "--input", tmp_path / "w2.npy", "--field", f"k={tmp_path}/k2.npy")["checksum"]
    for field in ("k.npy", "k2.npy"):
        assert memext.run(*words, *STREAM, "-d", place, "--input", tmp_path / "u.npy", "--field", f"k={tmp_path}/{field}", "--frame", "mirror")["checksum"] == wanted
    memext.refused("run", *words, *DIRECT, "--input", tmp_path / "w2.npy", "--field", f"k={tmp_path}/k.npy", naming=["k.npy", "--frame"])
    memext.refused("tune", "--kernel", kernel, "-t", 2, "--input", tmp_path / "w2.npy", "--field", f"k={tmp_path}/k.npy", naming=["k.npy", "--frame"])
    tuned = memext("tune", "--kernel", kernel, "-t", 2, "--input", tmp_path / "u.npy", "--frame", "mirror", "--json", "-")
    assert json.loads(tuned.stdout)["problem"]["nx"] == 9, tuned.stderr


def test_with_sides(memext, tmp_path):
    """A side that is not fixed has the frame that it says, whatever was made there; what remains is made."""
    grid, out = bare(12, 11, 10), tmp_path / "out.npy"
    np.save(tmp_path / "bare.npy", grid)
    np.save(tmp_path / "padded.npy", pad(grid, 1, "-2.5"))
    words = ["-t", 4, *DIRECT, "--engine", "iblock", "-o", out, "--overwrite", "--side", "x=periodic", "--side", "z=mirror,fixed"]
    memext.run("--input", tmp_path / "padded.npy", *words)
    wanted = load(out)
    memext.run("--input", tmp_path / "bare.npy", "--frame", "-2.5", *words)
    assert load(out) == wanted
    for mode, side in (("mirror", "x=periodic"), ("periodic", "z=mirror")):
        memext.refused("run", "--input", tmp_path / "bare.npy", "--frame", mode, *words, naming=[f"--frame {mode}", side, "edge"])


def test_outputs_without_a_frame(memext, place, tmp_path):
    words = ["-n", 11, 10, 9, "-t", 2, "--stencil", "star13"]
    memext.run(*words, *DIRECT, "-o", tmp_path / "whole.npy")
    memext.run(*words, "-d", place, "--keep", "-o", tmp_path / "bare.npy", "--output-frame", "none")
    wanted = np.load(tmp_path / "whole.npy")[2:-2, 2:-2, 2:-2]
    assert np.load(tmp_path / "bare.npy").shape == (9, 10, 11) and load(tmp_path / "bare.npy") == wanted.tobytes()
    done = memext("export", place, "-o", tmp_path / "export.npy", "--output-frame", "none")
    assert done.returncode == 0 and "without the frame" in done.stdout and load(tmp_path / "export.npy") == wanted.tobytes()
    kernel = ["--kernel", SYSTEMS / "gray_scott.c", "-n", 9, 8, 7, "-t", 1, "--init", "random", *DIRECT]
    memext.run(*kernel, "-o", f"v={tmp_path}/v.npy")
    memext.run(*kernel, "-o", f"v={tmp_path}/w.npy", "--output-frame", "none")
    assert load(tmp_path / "w.npy") == np.load(tmp_path / "v.npy")[1:-1, 1:-1, 1:-1].tobytes()


def test_a_store_remembers(memext, place, tmp_path):
    """What was made is made again to verify a resumed run; info says so; another frame is refused."""
    np.save(tmp_path / "bare.npy", bare(12, 11, 10))
    (tmp_path / "bare.raw").write_bytes(bare(12, 11, 10).tobytes())
    for file, more in (("bare.npy", []), ("bare.raw,f64", ["-n", 12, 11, 10])):
        run = ["--input", tmp_path / file, *more, "--frame", "edge", "-t", 3]
        wanted = memext.run(*run, "-d", place, "--keep", "--force")["checksum"]
        assert "made: edge" in memext("info", place).stdout
        memext.refused("run", "--resume", "-d", place, "--frame", "mirror", naming=["edge", "--frame"])
        done = memext.run("--resume", "-d", place, "--verify", "--keep")
        assert done["verified"] and done["checksum"] == wanted
    words = ["--kernel", SYSTEMS / "gray_scott.c", "-t", 2, "--input", f"u={tmp_path}/bare.npy", "--init", "v=zero", "--frame", "u=0.5"]
    memext.run(*words, "-d", place, "--keep", "--force")
    assert memext.run("--resume", "-d", place, "--verify", "--keep")["verified"]


@pytest.mark.parametrize("words, naming", [
    (["-n", 4, 4, 4, "--frame", "edge"], ["--frame needs a file", "--input"]),
    (["--input", "bare.npy", "--frame", "reflect"], ["'reflect'", "periodic"]),
    (["--input", "bare.npy", "--frame", "v=edge"], ["v=edge", "u"]),
    (["--input", "bare32.npy", "--frame", "1e39"], ["e+38", "f32"]),
    (["--input", "bare.npy", "-n", 3, 4, 5], ["--frame", "leave -n out"]),
    (["--input", "padded.npy", "-n", 3, 4, 5, "--frame", "edge"], ["3 4 5", "5 6 7"]),
    (["--input", "bare.raw,f64", "--frame", "edge"], ["raw", "-n NX NY NZ"]),
    (["--input", "bare.raw,f64", "-n", 3, 4, 5], ["480 bytes", "1680", "--frame"]),
    (["--input", "bare.raw,f64", "-n", 3, 4, 6, "--frame", "edge"], ["480 bytes", "576"]),
    (["--input", "padded.raw,f64", "-n", 3, 4, 5, "--frame", "edge"], ["frame=no"]),
    (["--input", "padded.raw,f64,frame=yes", "-n", 3, 4, 5, "--frame", "edge"], ["frame=yes", "--frame"]),
    (["--input", "bare.raw,f64,frame=no", "-n", 3, 4, 5], ["--frame"]),
    (["--input", "bare.raw,f16", "-n", 3, 4, 5], ["f16", "offset"]),
    (["--input", "bare.raw,u8,frame=no", "-n", 3, 4, 5, "--frame", "edge"], ["u8", "f64"]),
    (["--input", "bare.raw,f64,offset=8", "-n", 3, 4, 5, "--frame", "edge"], ["472 bytes", "byte 8"]),
    (["-n", 4, 4, 4, "--output-frame", "none"], ["--output-frame", "--output"]),
    (["-n", 4, 4, 4, "--output-frame", "no", "-o", "x.npy"], ["'no'", "included"]),
    (["--input", "bare.raw,f64", "-n", 3, 4, 5, "--frame", "edge", "-o", "bare.raw", "--overwrite"], ["bare.raw", "never written"]),
])
def test_refusals(memext, tmp_path, words, naming):
    grid = bare(3, 4, 5)
    np.save(tmp_path / "bare.npy", grid)
    np.save(tmp_path / "bare32.npy", grid.astype("f4"))
    np.save(tmp_path / "padded.npy", pad(grid, 1, "edge"))
    (tmp_path / "bare.raw").write_bytes(grid.tobytes())
    (tmp_path / "padded.raw").write_bytes(pad(grid, 1, "edge").tobytes())
    memext.refused("run", *words, "-t", 1, *DIRECT, naming=naming, cwd=tmp_path)
