# SPDX-License-Identifier: BSD-3-Clause
"""What the applications share: options, files that are larger than memory, runs of memext, checks, pictures.

Each of them is a script that does two things. At a small size it checks its kernel against results that owe nothing to memext: a plain
program, a formula. At full size, several times the DRAM that it may use, it makes its data plane by plane, runs memext on them, checks
what can be checked there, and draws a picture. Exit status: 0 done, 1 a check failed, 2 a request that cannot be met, else memext's.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
SLACK = 64 << 20  # what a process may take beside --dram
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def bytes_of(text):
    found = re.fullmatch(r"([0-9.]+)(KiB|MiB|GiB|TiB)?", text)
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is no size; 256MiB is one")
    return int(float(found[1]) * UNITS.get(found[2], 1))


def find_memext():
    """The command of this source tree if it is built, else the one that is installed."""
    built = HERE.parents[1] / "build" / "release" / "memext"
    return str(built) if built.exists() else shutil.which("memext") or "memext"


def parser(doc, name, size, dram, small):
    """Options that every application has. size: (nx, ny, nz) of the full run; small: of the check."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-n", "--size", nargs=3, type=int, default=size, metavar=("NX", "NY", "NZ"), help=f"cells of the full run (default {size})")
    p.add_argument("--dram", default=dram, help=f"DRAM of the full run (default {dram})")
    p.add_argument("-d", "--device", default=".", metavar="DIRECTORY", help="where the files of the run lie meanwhile (default: here)")
    p.add_argument("--threads", type=int, help="default: memext's")
    p.add_argument("--picture", default=f"{name}.png", metavar="FILE.png", help=f"default {name}.png")
    p.add_argument("--only", choices=["check", "run"], help="the check at small size, or the full run, alone")
    p.add_argument("--small", nargs=3, type=int, default=small, metavar=("NX", "NY", "NZ"), help=f"cells of the check (default {small})")
    p.add_argument("--kernel", default=str(HERE / f"{name}.c"), metavar="FILE.c", help="the kernel, if not the one beside this script")
    p.add_argument("--memext", default=find_memext(), help="the command (default: that of this source tree, else the installed one)")
    p.add_argument("--words", default="", help="more words for memext in the full run, such as '--backend aio --verify'")
    p.add_argument("--json", metavar="FILE", help="all figures as one object")
    return p


class Application:
    """One call of a script: where its files are, the figures it found, the checks that failed."""

    def __init__(self, options):
        self.o, self.figures, self.failed, self.folder = options, {}, [], None

    # ------------------------------------------------------------------ runs

    def memext(self, *words, shown=False):
        """The report of a run; ends the script where memext fails, which says why itself."""
        report = self.folder / "report.json"
        command = [self.o.memext, "run", "--kernel", self.o.kernel, *map(str, words), "--json", str(report)]
        if self.o.threads:
            command += ["--threads", str(self.o.threads)]
        if not shown:
            command += ["--quiet"]
        try:
            done = subprocess.run(command)
        except OSError as error:
            stop(f"{self.o.memext}: {error.strerror}; --memext says where the command is", 2)
        if done.returncode != 0:
            stop(f"memext ended with exit status {done.returncode}", done.returncode if done.returncode > 0 else 1)
        return json.loads(report.read_text())

    def full(self, *words):
        """The full run: within --dram, on the disk; what it was goes into the figures."""
        more = [word for word in self.o.words.split() if word]
        begin = time.monotonic()
        report = self.memext(*words, "-d", self.folder, "--dram", self.o.dram, *more, shown=sys.stderr.isatty())
        problem, plan, dram = report["problem"], report["plan"], bytes_of(self.o.dram)
        kept = ("seconds", "init_seconds", "updates_per_second", "read_bytes", "write_bytes", "predicted_read_bytes", "predicted_write_bytes",
                "peak_rss_bytes", "checksum")
        self.figures["run"] = {"n": [problem["nx"], problem["ny"], problem["nz"]], "steps": report["steps_done"], "dram_bytes": dram,
                               "backend": report["backend"], "plan": plan, "met": report.get("met"), "memext_seconds": time.monotonic() - begin,
                               **{key: report[key] for key in kept}}
        return report

    def check_run(self, report, bytes_a_cell):
        """What every full run must have kept. bytes_a_cell: of the arrays that change, which --dram is compared with."""
        run = self.figures["run"]
        buffers = bytes_a_cell * np.prod(run["n"], dtype="i8")
        run["buffer_bytes"], run["times_dram"] = int(buffers), float(buffers / run["dram_bytes"])
        moved = abs(report["read_bytes"] - report["predicted_read_bytes"]) + abs(report["write_bytes"] - report["predicted_write_bytes"])
        if report["backend"] in ("aio", "uring") and not report.get("met"):  # a run that --until ended was predicted to go on
            self.at_most("bytes moved that were not predicted", moved, 0)
        self.at_most("peak memory of memext beyond --dram, MiB", (report["peak_rss_bytes"] - run["dram_bytes"]) / 2**20, SLACK >> 20)

    # ------------------------------------------------------------------ checks and figures

    def note(self, **figures):
        self.figures.update(figures)

    def hold(self, name, good, found):
        self.figures.setdefault("checks", {})[name] = {"found": found, "good": bool(good)}
        print(f"{'ok    ' if good else 'FAILED'} {name}: {found}", flush=True)
        if not good:
            self.failed.append(name)

    def at_most(self, name, value, limit):
        self.hold(name, value <= limit, f"{value:.3g} (at most {limit:.3g})")
        self.figures["checks"][name]["value"] = float(value)

    def at_least(self, name, value, limit):
        self.hold(name, value >= limit, f"{value:.3g} (at least {limit:.3g})")
        self.figures["checks"][name]["value"] = float(value)

    def same_bits(self, name, got, wanted):
        same = got.dtype == wanted.dtype and got.shape == wanted.shape and got.tobytes() == wanted.tobytes()
        self.hold(name, same, f"{got.size} numbers alike" if same else f"{np.count_nonzero(got != wanted) if got.shape == wanted.shape else 'all'} of {wanted.size} differ")

    def say(self, text):
        print(text, flush=True)


def stop(why, status):
    print(f"{pathlib.Path(sys.argv[0]).name}: {why}", file=sys.stderr)
    sys.exit(status)


def run(options, check, full, draw):
    """A whole script: check(a), full(a), draw(a, figure's path), each where it is wanted, in a folder that is gone afterwards."""
    if not os.path.isdir(options.device):
        stop(f"{options.device} is no directory; --device names one on the disk to use", 2)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that the folder goes
    a, begin = Application(options), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="memext-application-", dir=options.device) as folder:
        a.folder = pathlib.Path(folder)
        if options.only != "run":
            check(a)
        if options.only != "check":
            full(a)
            draw(a, options.picture)
            a.say(f"picture: {options.picture}")
    a.figures["wall_seconds"] = time.monotonic() - begin
    summary(a)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(a.figures, indent=1) + "\n")
    if a.failed:
        stop(f"{len(a.failed)} of {len(a.figures['checks'])} checks failed", 1)


def summary(a):
    if "run" in a.figures:
        r = a.figures["run"]
        a.say(f"{' x '.join(map(str, r['n']))} cells, {r['steps']} steps, Buffers of {r['buffer_bytes'] / 2**20:.0f} MiB, {r['times_dram']:.1f} times the DRAM: "
              f"{r['seconds']:.1f} s, {r['updates_per_second'] / 1e9:.3f} Gupdates/s, {r['read_bytes'] / 2**30:.1f} GiB read, {r['write_bytes'] / 2**30:.1f} GiB written")
    a.say(f"{a.figures['wall_seconds']:.1f} s in all")


def history(report, name):
    """[(step, value), ...] of a reduction of the kernel, which is a sum, or of its spread (NAME-spread), at the checks of a run."""
    what, key = (name[: -len("-spread")], "spread") if name.endswith("-spread") else (name, "sum")
    return [(check["step"], check["reductions"][what][key]) for check in report["norms"]]


# ---------------------------------------------------------------------- files

def write_planes(path, shape, dtype, planes):
    """A .npy file of shape (nz, ny, nx), one plane in memory at a time."""
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": np.dtype(dtype).newbyteorder("<").str, "fortran_order": False, "shape": tuple(map(int, shape))})
        count = 0
        for plane in planes:
            np.ascontiguousarray(plane, dtype).tofile(file)
            count += 1
    if count != shape[0]:
        raise ValueError(f"{count} planes for {path} of {shape[0]}")
    return path


def planes_of(path):
    """The planes of such a file, read one by one; not mapped, which would leave the file in this process's memory."""
    with open(path, "rb") as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        for _ in range(shape[0]):
            yield np.fromfile(file, dtype, shape[1] * shape[2]).reshape(shape[1:])


# ---------------------------------------------------------------------- pictures

@contextlib.contextmanager
def picture(path, width, height, **mosaic):
    """Axes of a figure in the style of all three, by the letters of mosaic['layout']; written when the block ends."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.titlesize": 10, "axes.titlelocation": "left", "legend.frameon": False, "legend.fontsize": 8, "savefig.dpi": 130,
                         "xtick.labelsize": 8, "ytick.labelsize": 8, "lines.linewidth": 1.3})
    layout = mosaic.pop("layout")
    figure, axes = plt.subplot_mosaic(layout, figsize=(width, height), layout="constrained", **mosaic)
    yield figure, axes
    target = pathlib.Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    figure.savefig(beside, format="png")
    os.replace(beside, target)
    plt.close(figure)
