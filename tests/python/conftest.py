# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the end-to-end tests: the command, places to store on, grids, and the same stencils in numpy."""
import collections
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MEMEXT_BUILD", ROOT / "build" / "release")).resolve()
LIMIT_MEMORY = ROOT / "experiments" / "limit-memory"
sys.path.insert(0, str(ROOT / "experiments"))  # watch.py: the states that tests wait for
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # a thread that waits must not take a core from whom it waits for
# Kernels are compiled once, in the form whose rows share most, not in what is measured to be the fastest (test_row_forms.py has the others).
os.environ.setdefault("MEMEXT_ROWS", "2n")
IS_ROOT = os.geteuid() == 0
# Started in the background by a script SIGINT is ignored, started by nohup SIGHUP, and children inherit that: commands could not be interrupted.
signal.signal(signal.SIGINT, signal.default_int_handler)
for ignored in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(ignored, signal.SIG_DFL)
needs_root = pytest.mark.skipif(not IS_ROOT, reason="needs root")
LONG = bool(os.environ.get("MEMEXT_TEST_LONG"))


def drawn(first, count):
    """Seeds of a test with random cases: `count` of them, from `first` on. MEMEXT_TEST_SEED and MEMEXT_TEST_CASES draw others, and as many as they say."""
    first = int(os.environ.get("MEMEXT_TEST_SEED", first))
    return range(first, first + int(os.environ.get("MEMEXT_TEST_CASES", count)))


def thinned(cases, keep):
    """Parameters: those with keep(*case) in every run, the others when there is time."""
    tuples = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=[] if keep(*case) else [pytest.mark.long]) for case in tuples]


def pytest_configure(config):
    config.addinivalue_line("markers", "machine: changes or counts what all programs on this machine share; such tests run one after another")
    config.addinivalue_line("markers", "each_value: of its cases a short run makes those with a value, of one of its parameters, that no case before them has; the others are long")
    config.addinivalue_line("markers", "long(why): left out unless MEMEXT_TEST_LONG is set (tests/run.sh --long)")


def pytest_generate_tests(metafunc):
    """MEMEXT_TEST_TIMES=N: each test N times (tests/repeat.sh)."""
    times = int(os.environ.get("MEMEXT_TEST_TIMES", "1"))
    if times > 1:
        metafunc.fixturenames.append("repetition")
        metafunc.parametrize("repetition", range(times), ids=lambda number: f"repetition{number}")


def values_of(item):
    """The values of its parameters, and where each stands where it cannot be told from others."""
    parameters = [(name, value) for name, value in item.callspec.params.items() if name != "repetition"] if hasattr(item, "callspec") else ()
    return {(name, repr(value) if isinstance(value, (str, int, float, tuple, list, dict, type(None))) else item.callspec.indices[name]) for name, value in parameters}


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(items):
    """What is long is skipped by name. Under pytest-xdist tests of the machine are one group, which begins first."""
    seen = collections.defaultdict(set)
    for item in items:
        if item.get_closest_marker("each_value") and not item.get_closest_marker("long"):
            before = seen[item.function, item.callspec.params.get("repetition")]
            new = values_of(item) - before
            before |= new
            if not new:
                item.add_marker("long")
        if item.get_closest_marker("long") and not LONG:
            item.add_marker(pytest.mark.skip(reason="long: tests/run.sh --long runs it"))
        if item.get_closest_marker("machine"):
            item.add_marker(pytest.mark.xdist_group("machine"))
    items.sort(key=lambda item: item.get_closest_marker("machine") is None)


@contextlib.contextmanager
def made_once(tmp_path_factory, name):
    """(directory that all workers of pytest-xdist share, whether it was made before): whoever comes first makes what is in it, the others wait."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if worker else base) / name
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder, (folder / "made").exists()
        (folder / "made").touch()


@pytest.fixture(scope="session", autouse=True)
def caches(tmp_path_factory):
    """Caches that begin empty and that all workers share: whatever test comes first compiles a kernel, for the CPU, by PoCL or by the fake of CUDA. Those of
    ccache and pip, which would be beside them, stay where they are."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    with made_once(tmp_path_factory, "caches") as (folder, _):
        for name in ("memext/kernels", "pocl", "fake_cuda", "matplotlib"):
            (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = {"CCACHE_DIR": said("ccache", "--get-config", "cache_dir")[0] if shutil.which("ccache") else None, "PIP_CACHE_DIR": f"{home}/pip"}
    own = {"XDG_CACHE_HOME": folder, "POCL_CACHE_DIR": folder / "pocl", "FAKE_CUDA_CACHE": folder / "fake_cuda", "MPLCONFIGDIR": folder / "matplotlib"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**kept, **own}.items():
            if value is not None and (name in own or name not in os.environ):
                patch.setenv(name, str(value))
        yield folder


@pytest.fixture(scope="session")
def own_cache(caches):
    """own_cache(folder): a cache of rates, profiles and reports of its own, whose compiled kernels are those of all tests."""
    def make(folder):
        kernels = folder / "memext" / "kernels"
        kernels.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not kernels.exists():
            kernels.symlink_to(caches / "memext" / "kernels")
        return folder

    return make


@pytest.fixture(scope="session")
def build():
    """The build directory; without one nothing end to end can be tested (tests/run.sh makes it)."""
    if not (BUILD / "memext").exists():
        if "MEMEXT_BUILD" in os.environ:
            pytest.fail(f"{BUILD}/memext does not exist")
        pytest.skip(f"{BUILD}/memext is not built")
    return BUILD


class Result:
    def __init__(self, done, report):
        self.status, self.out, self.err, self.report = done.returncode, done.stdout, done.stderr, report

    def __getitem__(self, key):
        return self.report[key]


class Command:
    """Runs memext; `run` demands exit status 0 and a report, `refused` status 2 and one sentence."""

    def __init__(self, build):
        self.program = build / "memext"

    def __call__(self, *arguments, prefix=(), program=None, timeout=900, **options):
        words = [*map(str, prefix), str(program or self.program), *map(str, arguments)]
        return subprocess.run(words, capture_output=True, text=True, timeout=timeout, **options)

    def run(self, *arguments, status=0, **options):
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            done = self("run", *arguments, "--quiet", "--json", file.name, **options)
            text = pathlib.Path(file.name).read_text()
        assert done.returncode == status, f"exit status {done.returncode}: {done.stderr}"
        return Result(done, json.loads(text) if text else None)

    def refused(self, *arguments, naming, **options):
        """Exit status 2, nothing on stdout, and a sentence on stderr that names every given text."""
        done = self(*arguments, **options)
        assert done.returncode == 2, f"exit status {done.returncode}: {done.stderr}"
        assert "Traceback" not in done.stderr and len(done.stderr.strip().splitlines()) <= 2, done.stderr
        for text in [naming] if isinstance(naming, str) else naming:
            assert text in done.stderr, f"'{text}' is not named: {done.stderr}"
        return done


@pytest.fixture(scope="session")
def memext(build):
    return Command(build)


@pytest.fixture
def place():
    """An empty directory on storage: /tmp may be memory, the build tree is not."""
    (ROOT / "build").mkdir(exist_ok=True)
    path = pathlib.Path(tempfile.mkdtemp(prefix="test-store-", dir=ROOT / "build"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def open_place():
    """A directory that other users may enter, for programs that run as one of them: the tree itself may be closed to them."""
    with tempfile.TemporaryDirectory(prefix="memext-test-", dir="/tmp") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


def sh(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout.strip()


def unmount(directory):
    """The kernel holds files of a killed process until its last requests have ended, and a loop device until no other process's mount namespace has
    its file system: until then they keep the mount busy."""
    wait_until(lambda: subprocess.run(["umount", directory], capture_output=True).returncode == 0, f"umount of {directory}")


MEMORIES = "memext-test-disk-{}"  # directories of RAM disks, with the process that made it


def said(*words):
    """Lines of a command whose failure does not matter, for others do the same at the same time."""
    return subprocess.run([str(word) for word in words], capture_output=True, text=True).stdout.splitlines()


def take_down(device):
    """A loop device, with what is mounted from it and with loop devices upon files there."""
    for target in reversed(said("findmnt", "--noheadings", "--list", "--output", "TARGET", "--source", device)):
        for line in said("losetup", "--noheadings", "--list", "--output", "NAME,BACK-FILE"):
            upon, _, file = line.partition(" ")
            if file.strip().startswith(f"{target}/"):
                take_down(upon)
        said("umount", target)
    said("losetup", "--detach", device)


def remove_ram_disks_of_the_dead(memory):
    """Those that killed sessions have left behind."""
    for folder in memory.glob(MEMORIES.format("*")):
        if not pathlib.Path("/proc", folder.name.rpartition("-")[2]).exists():
            for device in said("losetup", "--noheadings", "--output", "NAME", "--associated", folder / "image"):
                take_down(device.strip())
            said("umount", folder)
            with contextlib.suppress(OSError):
                folder.rmdir()


@pytest.fixture(scope="session")
def ram_disk(tmp_path_factory):
    """A directory for hundreds of small runs: ext4 on a loop device in memory, whose fdatasync costs nothing; on the disk where that cannot be had.
    That memory is never swapped (Linux 6.4): tests make swap space on the RAM disk, and a page of the disk that had to go there would wait for itself."""
    memory, mount, device = pathlib.Path("/dev/shm"), tmp_path_factory.mktemp("ram-disk"), None
    folder = memory / MEMORIES.format(os.getpid())
    image = folder / "image"
    try:
        if not IS_ROOT or shutil.disk_usage(memory).free < 2**30:
            raise OSError
        with open(memory / "memext-test.lock", "w") as lock:  # else one takes down the device that another has just got
            fcntl.flock(lock, fcntl.LOCK_EX)
            remove_ram_disks_of_the_dead(memory)
            folder.mkdir()
            sh("mount", "-t", "tmpfs", "-o", "noswap,size=1200m", "memext-test", folder)
            image.touch()
            os.truncate(image, 2**30)
            device = sh("losetup", "--find", "--show", image)
            sh("mkfs.ext4", "-q", "-m", "0", device)
            sh("mount", device, mount)
    except (OSError, subprocess.CalledProcessError):
        mount = pathlib.Path(tempfile.mkdtemp(prefix="test-store-", dir=ROOT / "build"))
        yield mount
        shutil.rmtree(mount)
    else:
        yield mount
        unmount(mount)
    finally:
        if device:
            sh("losetup", "--detach", device)
        if folder.exists():
            image.unlink(missing_ok=True)
            if folder.is_mount():
                unmount(folder)
            folder.rmdir()


@pytest.fixture
def quick_place(ram_disk):
    """An empty directory of the RAM disk."""
    path = pathlib.Path(tempfile.mkdtemp(dir=ram_disk))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def folders(quick_place):
    """(place of the store, folder of the outputs)"""
    for name in ("store", "out"):
        (quick_place / name).mkdir()
    return quick_place / "store", quick_place / "out"


@pytest.fixture(scope="session")
def swap_space_if_any():
    """Active swap space, held by a limit-memory that does nothing else, or a reason why there is none; other workers have theirs, and end it when they end."""
    if not IS_ROOT:
        yield "swap space needs root"
        return
    (ROOT / "build").mkdir(exist_ok=True)
    holder = subprocess.Popen([LIMIT_MEMORY, "64MiB", "--keep-cache", "--swap", "256MiB", "--swap-dir", ROOT / "build", "--",
                               "sh", "-c", "echo ready; exec sleep infinity"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
    if holder.stdout.readline() != "ready\n":
        yield f"no swap space can be had: {holder.communicate()[1].strip()}"
        return
    yield None
    holder.terminate()
    holder.communicate(timeout=900)


@pytest.fixture
def swap_space(swap_space_if_any):
    """As swap_space_if_any; a test that cannot do without is skipped."""
    if swap_space_if_any:
        pytest.skip(swap_space_if_any)


@pytest.fixture
def loop(place):
    """loop(bytes) -> an unused block device of that size."""
    if not IS_ROOT:
        pytest.skip("loop devices need root")
    devices = []

    def make(count, file=None):
        file = file or place / f"loop-{len(devices)}.img"
        if not file.exists():
            file.touch()
            os.truncate(file, count)
        try:
            devices.append(sh("losetup", "--find", "--show", file))
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            pytest.skip(f"no loop device can be had: {getattr(error, 'stderr', error)}")
        return devices[-1]

    yield make
    for device in devices:
        sh("losetup", "--detach", device)


@pytest.fixture
def mounted(place, loop):
    """mounted(bytes) -> (directory of a fresh file system of that size, its device). Its kind is ext4, or another one that has its mkfs here."""
    directories = []

    def make(count, options="rw", kind="ext4"):
        mkfs = shutil.which(f"mkfs.{kind}", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        if mkfs is None:
            pytest.skip(f"mkfs.{kind} is not installed (packages-tests.txt)")
        device = loop(count)
        sh(mkfs, "-q", *(["-m", "0"] if kind == "ext4" else []), device)
        directory = place / f"mount-{len(directories)}"
        directory.mkdir()
        done = subprocess.run(["mount", "-t", kind, "-o", options, device, directory], capture_output=True, text=True)  # loads the kind's module
        if done.returncode and kind not in pathlib.Path("/proc/filesystems").read_text().split():
            pytest.skip(f"this Linux has no {kind}: {done.stderr.strip()}")
        assert done.returncode == 0, done.stderr
        directories.append(directory)
        return directory, device

    yield make
    for directory in directories:
        unmount(directory)


# ------------------------------------------------------------------ states to wait for before a signal

def wait_until(condition, what, process=None, seconds=600):
    """Whether condition() came true; not if `process` ended first. Fails the test when neither comes about in time."""
    deadline = time.monotonic() + seconds
    while not (reached := condition()) and (process is None or process.poll() is None):
        assert time.monotonic() < deadline, f"{what}: not after {seconds} s"
        time.sleep(0.001)
    return bool(reached)


# ------------------------------------------------------------------ the same, in numpy

HALO = {"star7": 1, "edge19": 1, "box27": 1}
COEF = {"star7": (0.4, 0.1, 0, 0), "edge19": (0.28, 0.06, 0.03, 0), "box27": (0.2, 0.05, 0.03, 0.0175)}
REACH = {"star7": 1, "edge19": 2, "box27": 3}  # how many coordinates of a neighbour may differ


def advance(grid, stencil, steps):
    """steps Jacobi steps: weighted sums of the 7, 19 or 27 cells around; the frame keeps its values."""
    coef = numpy.array(COEF[stencil], dtype=grid.dtype)
    nz, ny, nx = (extent - 2 for extent in grid.shape)
    for _ in range(steps):
        total = numpy.zeros((nz, ny, nx), dtype=grid.dtype)
        for dz, dy, dx in numpy.ndindex(3, 3, 3):
            distance = abs(dz - 1) + abs(dy - 1) + abs(dx - 1)
            if distance <= REACH[stencil]:
                total += coef[distance] * grid[dz:dz + nz, dy:dy + ny, dx:dx + nx]
        grid = grid.copy()
        grid[1:-1, 1:-1, 1:-1] = total
    return grid


def random_grid(nx, ny, nz, dtype="f8", seed=7):
    return numpy.random.default_rng(seed).random((nz + 2, ny + 2, nx + 2)).astype("<" + dtype)
