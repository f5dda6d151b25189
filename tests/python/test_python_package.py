# SPDX-License-Identifier: BSD-3-Clause
"""The Python package as it is installed; programs that use it, examples, and what ends them."""
import errno
import importlib.util
import math
import os
import pathlib
import re
import signal
import subprocess
import threading

import numpy as np
import pytest
from conftest import ROOT, wait_until
from package import EXAMPLES, cache, environment, function_of, mx, need, sh, star7  # noqa: F401 (fixtures)


def test_run_documents_its_options(mx):
    """help(memext.Run) ends with every option of the library (tests/python/test_options.py compares them with the table)."""
    from memext.options import OPTIONS, documented
    assert mx.Run.__doc__.endswith("Options:\n" + documented()) and len(OPTIONS) > 60


def test_the_version_is_the_librarys_and_the_licence_is_inside(environment, mx):
    """The version of the distribution, of the module and of memext.h are one; the licence is installed with it."""
    header = (ROOT / "runtime/include/memext/memext.h").read_text()
    version = re.search(r'MX_VERSION "(.*)"', header).group(1)
    site = pathlib.Path(mx.__file__).parents[1]
    folder = site / f"memext-{version}.dist-info"
    metadata = (folder / "METADATA").read_text()
    assert f"\nVersion: {version}\n" in metadata and mx.__version__ == version and "\nLicense-Expression: BSD-3-Clause\n" in metadata
    assert (folder / "licenses" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_types_and_info(mx, quick_place):
    assert (pathlib.Path(mx.__file__).parent / "py.typed").exists()
    info = mx.info(quick_place)
    assert info["machine"]["cores"] >= 1 and any(b["name"] == "dram" and b["works"] for b in info["backends"])
    assert info["device"]["path"] == str(quick_place)
    with pytest.raises(mx.MemextError, match="nonexistent"):
        mx.info("/nonexistent")


def test_the_lock_of_python_is_free_while_it_computes(mx, quick_place):
    """A thread stops a run that the main thread waits for within the library; with the lock held this would end with the run alone."""
    from memext import _core
    from memext.job import Job
    job = Job(["size=62 62 94", "steps=4000", "init=random", f"device={quick_place}", "dram=128MiB", "block=62 94 2", "algorithm=redundant",
                "backend=fault:aio", "fault=delay_us=20000"])
    job.start()
    while _core.ffi.string(job.progress.phase) != b"updates":
        assert job.wait(0.01)[0] == 0  # a run that refuses its options never computes
    about_to_wait = threading.Event()
    stopper = threading.Thread(target=lambda: (about_to_wait.wait(), _core.lib.mx_run_stop(job.run)))
    stopper.start()
    about_to_wait.set()
    code, why = job.wait(-1)
    stopper.join()
    assert code == -errno.EINTR, _core.sentence(why)
    assert job.report()["status"] == "interrupted"
    job.close()


PROGRAM = '''
import sys
import numpy as np
import memext as mx
def show(step, steps, phase):
    if phase == "updates" and step > 5:
        print("computing", flush=True)
u = lambda x, y, z: ((31 * x + 17 * y + 7 * z) % 101) / 101.0
slow = {"backend": "fault:aio", "fault": "delay_us=100000"} if sys.argv[2] == "slow" else {}
with mx.Run(u=u, shape=(78, 46, 62), device=sys.argv[1], dram="64MiB", block=(46, 78, 2), algorithm="redundant", commit_every=0, **slow) as run:
    for step in run.steps(30, check=20, progress=show):
        print("step", step, flush=True)
    print("resumed from", run.reports[0]["resumed_from"])
    run["u"].save(sys.argv[3])
'''


def test_ctrl_c_stops_at_a_commit_and_the_same_program_goes_on(mx, environment, quick_place, tmp_path):
    """SIGINT while it computes: KeyboardInterrupt, with the step that is committed; again: from that step, with the result of an uninterrupted run."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = [str(environment), str(program), str(quick_place), "slow", str(tmp_path / "no.npy")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "computing\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=900)
    assert "KeyboardInterrupt" in err and process.returncode != 0, err
    step = int(re.search(r"step (\d+) is committed", err).group(1))
    assert 0 < step < 20 and not (tmp_path / "no.npy").exists()
    done = sh(environment, program, quick_place, "fast", tmp_path / "u.npy")
    assert done.returncode == 0, done.stderr
    assert f"resumed from {step}\n" in done.stdout and "step 20\nstep 30\n" in done.stdout.replace("computing\n", "")
    z, y, x = np.ogrid[-1:79, -1:47, -1:63]
    assert np.allclose(np.load(tmp_path / "u.npy"), star7(((31 * x + 17 * y + 7 * z) % 101) / 101.0, 30), rtol=1e-12, atol=0)
    assert list(quick_place.iterdir()) == []


def rock(folder, n):
    """An image of open neighbours, 0 in the rock, with its frame: sides closed, inlet and outlet open; as a .nhdr of raw cells."""
    pore = np.random.default_rng(1).random((n + 2,) * 3) < 0.85
    pore[:, 0] = pore[:, -1] = pore[:, :, 0] = pore[:, :, -1] = False
    padded = np.pad(pore, 1)
    count = sum(np.roll(padded, d, axis)[1:-1, 1:-1, 1:-1] for axis in range(3) for d in (-1, 1)).astype("u1") * pore
    count[0], count[-1] = pore[0], pore[-1]
    (folder / "rock.raw").write_bytes(count.tobytes())
    (folder / "rock.nhdr").write_text(f"NRRD0004\ntype: uchar\ndimension: 3\nsizes: {n + 2} {n + 2} {n + 2}\nencoding: raw\ndata file: rock.raw\n")
    return count


def test_the_program_of_the_readme(mx, environment, place):
    """As it is written there, with a smaller rock and less DRAM: its result is that of the kernel in numpy at the step where it stopped."""
    h5py = need("h5py")
    text = (ROOT / "python/README.md").read_text()
    program = re.search(r"^    import memext as mx\n(?:    .*\n|\n)+", text, re.M).group()
    program = "\n".join(line[4:] for line in program.splitlines())
    assert "/scratch" in program and "16GiB" in program
    program = program.replace('"/scratch"', '"store"').replace("16GiB", "64MiB") + "\nprint('stopped at', step)\n"
    (place / "program.py").write_text(program)
    (place / "store").mkdir()
    count = rock(place, 40)
    before = (place / "rock.raw").read_bytes()
    done = sh(environment, "program.py", cwd=place)
    assert done.returncode == 0, done.stderr
    step = int(re.search(r"stopped at (\d+)", done.stdout).group(1))
    spec = importlib.util.spec_from_file_location("program", place / "program.py")
    assert step % 100 == 0 and spec is not None
    with h5py.File(place / "u.h5") as file:
        found = file["u"][:]
    kernel = mx.kernel(fixed="c", params={"w": 1.9})(function_of(place, program))
    u = np.where(count > 0, np.linspace(1, 0, 42)[:, None, None], 0).astype("f4")
    assert found.tobytes() == kernel.reference(step, u=u, c=count)["u"].tobytes()
    assert (place / "rock.raw").read_bytes() == before and list((place / "store").iterdir()) == []


HANGS = """
import memext as mx, sys
@mx.kernel
def heat(u): return u + 0.05 * (u[1, 0, 0] - u)
getattr(mx.Run(heat, u="random", shape=(4, 4, 4), device=sys.argv[2], dram="64MiB"), sys.argv[1])(1)
"""


def test_ctrl_c_ends_what_still_prepares(environment, tmp_path):
    """A compiler that never ends stands for whatever a run can wait for: KeyboardInterrupt, as in any program, and nothing in the place."""
    (tmp_path / "cc").write_text('#!/bin/sh\ntouch "$STARTED"\nexec tail --pid=$PPID -f /dev/null\n')
    (tmp_path / "cc").chmod(0o755)
    (tmp_path / "place").mkdir()
    (tmp_path / "hangs.py").write_text(HANGS)
    started = {}
    for verb in ("advance", "plan"):
        own = {**os.environ, "CC": str(tmp_path / "cc"), "XDG_CACHE_HOME": str(tmp_path / f"cache-{verb}"), "STARTED": str(tmp_path / verb)}
        started[verb] = subprocess.Popen([str(environment), str(tmp_path / "hangs.py"), verb, str(tmp_path / "place")], env=own, stderr=subprocess.PIPE, text=True)
    for verb, process in started.items():
        wait_until((tmp_path / verb).exists, "the compiler", process)
        process.send_signal(signal.SIGINT)
    for verb, process in started.items():
        _, said = process.communicate(timeout=600)
        assert process.returncode == -signal.SIGINT and "KeyboardInterrupt" in said, (verb, process.returncode, said)
    assert os.listdir(tmp_path / "place") == []


@pytest.mark.parametrize("how", [">/dev/full", ">&-"])
def test_a_standard_output_that_cannot_be_written(environment, how):
    """python -m memext ends as the command does."""
    done = sh("sh", "-c", f'"$0" -m memext info {how}', environment)
    assert done.returncode == 3 and done.stderr.startswith("memext: the standard output cannot be written"), done


@pytest.mark.parametrize("path, bytes_a_cell", [  # two Buffers of the state, and what is only read
    ("python/examples/effective_diffusivity.py", 2 * 4 + 1), ("examples/antenna.py", 6 * 4 + 2), ("examples/rock_flow.py", 2 * 19 * 4 + 1),
    ("systems/applications/seismic_shot.py", 2 * 4 + 3)])
def test_examples_are_larger_than_the_dram_they_get(path, bytes_a_cell):
    """With what they take if nothing is said: at least 3 times; each is in the list of examples and leaves a picture."""
    text = (ROOT / path).read_text()
    if found := re.search(r"common.parser\(.*?\[(\d+), (\d+), (\d+)\], \"(\d+)MiB\"", text, re.S):
        *n, dram = map(int, found.groups())
    else:
        n = 3 * [int(re.search(r'"--cells", type=int, default=(\d+)', text).group(1))]
        dram = int(re.search(r'"--dram", default="(\d+)MiB"', text).group(1))
    assert math.prod(n) * bytes_a_cell > 3 * dram * 2**20
    assert "--picture" in text and os.path.relpath(ROOT / path, ROOT / "examples") in (ROOT / "examples/README.md").read_text()


@pytest.mark.parametrize("name, words, said", [
    ("antenna", ["--cells", 64, "--wave", 12, "--picture", "antenna.png"], r"within 0\.0\d+ of the thin half-wave dipole's"),
    ("rock_flow", ["--check", "--steps", 2000], r"0\.\d+% apart"), ("rock_flow", ["--cells", 16, "--steps", 100, "--picture", "flow.png"], r"permeability 0\.\d*[1-9]")])
def test_the_other_examples(mx, environment, place, name, words, said):
    """The antenna's pattern and the flow between plates are those of their formulas; the rock lets something through; pictures."""
    need("matplotlib"), need("scipy")
    done = sh(environment, ROOT / "examples" / f"{name}.py", "--device", ".", "--dram", "64MiB", *words, cwd=place)
    assert done.returncode == 0 and re.search(said, done.stdout), done.stdout + done.stderr
    assert [p.suffix for p in place.iterdir()] == [".png"] * ("--picture" in words)


def test_the_example(mx, environment, place):
    """The effective diffusivity of a made-up rock: between nothing and the porosity, and a picture."""
    need("matplotlib")
    done = sh(environment, EXAMPLES / "effective_diffusivity.py", "--cells", 32, "--device", place, "--dram", "64MiB", "--picture", place / "rock.png")
    assert done.returncode == 0, done.stderr
    porosity, diffusivity = map(float, re.search(r"porosity ([\d.]+), effective diffusivity ([\d.]+)", done.stdout).groups())
    assert 0 < diffusivity < porosity and (place / "rock.png").stat().st_size > 10000
