# SPDX-License-Identifier: BSD-3-Clause
"""Processes that a campaign starts; they end with the campaign."""
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
