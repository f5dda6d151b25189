# SPDX-License-Identifier: BSD-3-Clause
"""Processes that a campaign starts; they end with the campaign."""
import contextlib
import ctypes
import dataclasses
import glob
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT_MEMORY = ROOT / "experiments" / "limit-memory"
POLL_S = 0.0005


class Wrong(Exception):
    """A sentence that says what a run did and must not do."""


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """The first signal ends the campaign; nothing disturbs the clearing up."""

    def __init__(self):
        self.came, self.depth = None, 0

    def take(self):
        for number in ENDING:  # SIGINT is ignored by what a script starts in the background, and children inherit that
            signal.signal(number, self.leave)

    def leave(self, number, _):
        for other in ENDING:
            signal.signal(other, signal.SIG_IGN)
        self.came = number
        if not self.depth:
            sys.exit(128 + number)

    @contextlib.contextmanager
    def wait(self):
        """A signal that comes meanwhile ends the campaign afterwards: what is made here is noted for removal, or not made."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            if self.came and not self.depth:
                sys.exit(128 + self.came)


SIGNALS = Signals()


def make(stack, words, undoing, *what):
    """Runs a tool that makes something and notes the tool that takes it away, as one step; returns what the first one said."""
    with SIGNALS.wait():
        said = tool(*words)
        stack.callback(undoing, *(what or [said]))
    return said


def tool(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{shlex.join(map(str, words))}: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


CAMPAIGN = os.getpid()


def dies_with_parent():
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != CAMPAIGN:  # it died before the call
        os._exit(2)


def undo(*words):
    """A tool that takes away what was made. The kernel may hold it a moment longer than the run that used it."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return tool(*words)
        except OSError as error:
            if time.monotonic() > deadline:
                return print(f"crash.py: {error}", file=sys.stderr)
            time.sleep(0.1)


def file_of(device):
    """What a loop device is made of; None if it is detached."""
    try:
        return (Path("/sys/block") / Path(device).name / "loop" / "backing_file").read_text().removesuffix(" (deleted)\n").strip()
    except OSError:
        return None


def detach(*devices, between=lambda: None):
    """Detaches loop devices and waits until they are gone; between() unmounts what is on them.

    The kernel detaches a device when its last user closes it. Its file system may live on in another process's mount namespace.
    """
    files = {device: file_of(device) for device in devices}
    for device in devices:
        undo("losetup", "--detach", device)
    between()
    deadline = time.monotonic() + 20
    for device, file in files.items():
        while file and file_of(device) == file:
            if time.monotonic() > deadline:
                print(f"crash.py: {device} is detached, but another process still uses it after 20 s", file=sys.stderr)
                break
            time.sleep(0.02)


def start(words, folder):
    """In a session of its own, so that an interrupt of the campaign is no interrupt of the run; its words go to files."""
    with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
        return subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                start_new_session=True, preexec_fn=dies_with_parent)


def stacks(process):
    """Where every thread is, by gdb if it is there, else as the kernel tells."""
    if shutil.which("gdb"):
        done = subprocess.run(["gdb", "-p", str(process.pid), "-batch", "-ex", "thread apply all bt"], capture_output=True,
                              text=True, timeout=60)
        return done.stdout[-6000:]
    return "\n".join(f"{path}: {Path(path).read_text().strip()}" for path in glob.glob(f"/proc/{process.pid}/task/*/wchan"))


def end_of(process, patience):
    """Waits for the end. A run that does not end is a failure, reported with its stacks."""
    try:
        return process.wait(timeout=patience)
    except subprocess.TimeoutExpired:
        where = stacks(process)
        process.kill()
        process.wait()
        raise Wrong(f"hang: the run did not end within {patience:g} s (--patience)\n{where}") from None


@dataclasses.dataclass
class End:
    status: int
    error: str
    sent: int = 0         # the signal that was sent to it last
    caught: bool = False  # it had a handler then
    seconds: float = 0
    report: dict = None
