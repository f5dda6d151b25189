#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/page-cache.md: what a 2026 kernel does with the papers' access patterns, from the runs of experiments/plans/kernel.toml.

usage: experiments/kernel.py [--run] [--results results/kernel] [--output docs/page-cache.md]

--run first runs what of the plan has not been run (experiments/run.py kernel, which says what it changes on the machine: about 3
minutes a round). The sentences follow from the figures: a difference is called one only where its interval of 95 % leaves 1 out, by the
same rule as in the report (analysis/effects.py). What was not run, was too short, or needs what this kernel was built without, is said to
be so.
"""
import argparse
import gzip
import os
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "experiments")]

from analysis import effects  # noqa: E402
from runner import record  # noqa: E402

MIB = 2**20
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#888888"


# ------------------------------------------------------------------ what was measured


class Missing(Exception):
    """A run that a finding needs has no result: which, and why."""


class Study:
    def __init__(self, folder):
        records = record.Store(folder).records()
        self.sessions = [r for r in records if r["kind"] == "session"]
        runs = [r for r in records if r["kind"] == "run"]
        if not runs:
            sys.exit(f"kernel.py: no runs in {folder}; experiments/kernel.py --run makes them")
        last = {r["id"]: r["key"] for r in runs}
        self.runs = {}
        for r in runs:
            if r["key"] == last[r["id"]]:
                self.runs.setdefault(r["id"], {})[r["repeat"]] = r

    def done(self, name):
        return {k: r for k, r in self.runs.get(name, {}).items() if r["status"] == "done"}

    def why_not(self, name):
        """Why there is no result."""
        found = list(self.runs.get(name, {}).values())
        return (found[-1]["stderr"].strip().splitlines() or [found[-1]["status"]])[-1] if found else "it was not run"

    def values(self, name, of):
        return [of(r) for _, r in sorted(self.done(name).items())]

    def median(self, name, of):
        if not self.done(name):
            raise Missing(f"`{name}` has no result ({self.why_not(name)})")
        return statistics.median(self.values(name, of))


def report(r):
    return r["report"]


def step_ms(r):
    """Of the stencil phase."""
    return report(r)["seconds"] / report(r)["steps_done"] * 1000


def kernel_of(name):
    return lambda r: report(r)["kernel"][name]


def read_ratio(r):
    """Bytes that the storage read, of those that the schedule loads; on the mapping, of one Buffer a step."""
    needed = report(r)["predicted_read_bytes"] or report(r)["layout"]["buffer_bytes"] * report(r)["steps_done"]
    return kernel_of("storage_read_bytes")(r) / needed


def system_ms(r):
    return kernel_of("system_s")(r) / report(r)["steps_done"] * 1000


def faults(r):
    """A MiB stored."""
    return kernel_of("minor_faults")(r) / max(1, report(r)["write_bytes"] / MIB)


class Effect:
    """How many times as much a takes as b, round by round."""

    def __init__(self, study, a, b, of=step_ms):
        first, second = study.done(a), study.done(b)
        self.ratios = sorted(of(first[k]) / of(second[k]) for k in first.keys() & second.keys())
        if not self.ratios:
            missing = a if not first else b
            raise Missing(f"`{missing}` has no result ({study.why_not(missing)})")
        self.effect = effects.Effect(tuple(self.ratios))

    @property
    def sign(self):
        """1 more, -1 less, 0 where the interval holds 1 or there are too few rounds for one."""
        low, high = self.effect.interval() or (0.0, 2.0)
        return 1 if low > 1 else -1 if high < 1 else 0

    def __str__(self):
        low, high = self.effect.interval() or (self.ratios[0], self.ratios[-1])
        return f"{self.effect.value:.2f} times [{low:.2f} to {high:.2f}, n = {self.effect.n}]"


def takes(study, a, b, than):
    """takes ... THAN."""
    effect = Effect(study, a, b)
    if effect.sign:
        return f"takes {effect} as long as {than}"
    return f"cannot be told from {than} ({effect} as long)"


def by_sign(effect, less, more, neither):
    return (neither, more, less)[effect.sign]


def several(study, names, of, form):
    return ", ".join(f"{label} {form.format(study.median(name, of))}" for label, name in names if study.done(name))


def refaulted(r):
    return kernel_of("refault_bytes")(r) / MIB


def written_ratio(r):
    return kernel_of("storage_write_bytes")(r) / report(r)["write_bytes"]


def store_us(r):
    return max(report(r)["store_us"], 0.001)  # a difference of two times: below 0 where it is lost in them


def folio_kib(r):
    """0 where it could not be seen."""
    return (report(r)["folio_bytes"] or 0) / 1024


def held(r):
    """MiB of memory that zram took, by limit-memory's last word; None where it was not zram."""
    for line in r["stderr"].splitlines():
        if "zram: at most" in line:
            return float(line.split("at most ")[1].split()[0])
    return None


def numbered(study, prefix):
    """[(number, name)] of the runs PREFIXnumber, in order."""
    return sorted((int(name.removeprefix(prefix)), name) for name in study.runs if name.startswith(prefix))


# ------------------------------------------------------------------ figures: a dot a run, a line at the median

def dots(axis, study, rows, of, label, colour):
    for i, (_, name) in enumerate(rows):
        values = [v for v in study.values(name, of) if v is not None]
        if not values:
            axis.text(0.02, i, "not measured" if study.done(name) else "not run", color=GREY, va="center", fontsize=8, transform=axis.get_yaxis_transform())
            continue
        axis.plot(values, [i] * len(values), "o", color=colour, alpha=0.55, markersize=4.5, markeredgewidth=0)
        axis.plot([statistics.median(values)] * 2, [i - 0.3, i + 0.3], color=colour, linewidth=1.6)
    axis.set_xlabel(label)
    axis.set_xlim(left=0)
    axis.grid(axis="x", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def figure(study, path, rows, panels):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    drawn, axes = plt.subplots(1, len(panels), figsize=(8, 0.75 + 0.27 * len(rows)), sharey=True, squeeze=False, layout="constrained")
    for axis, (of, label), colour in zip(axes[0], panels, (BLUE, ORANGE, GREY)):
        dots(axis, study, rows, of, label, colour)
    axes[0][0].set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=8)
    axes[0][0].set_ylim(len(rows) - 0.5, -0.5)
    drawn.savefig(path, dpi=110)
    plt.close(drawn)


def heat_map(study, folder, path, names):
    """Residency by cachestat over the time of one run each; False where it cannot be drawn."""
    try:
        from analysis import heatmaps, timeline
    except ImportError:
        return False
    picked = []
    for label, name in names:
        run = next((r for _, r in sorted(study.done(name).items()) if r["timeline"]), None)
        if run and (folder / run["timeline"]).exists():
            with gzip.open(folder / run["timeline"], "rt") as lines:
                picked.append((label, timeline.parse(lines, run["timeline"])))
    if not picked:
        return False
    heatmaps.draw(picked).savefig(path, dpi=90)
    return True


# ------------------------------------------------------------------ the questions
#
# Each function returns its findings as paragraphs; what it asks and shows stands before it.

QUESTIONS = []


def question(title, asked, papers, rows, panels, heat=()):
    def keep(of):
        QUESTIONS.append(dict(name=of.__name__, title=title, asked=asked, papers=papers, rows=rows, panels=panels, heat=heat, findings=of))
        return of
    return keep


ADVICES = ("none", "sequential", "random", "willneed", "hugepage", "schedule")
NONE, HUGE, SCHEDULE, URING = "mmap-stream-none", "mmap-stream-hugepage", "mmap-stream-schedule", "uring-stream"


@question("Advice", "Does telling the kernel what comes next bring a mapping to the speed of explicit transfers?", "The papers' mmap programs gave no advice (Linux 3.13).",
          [("uring (explicit)", URING), *((f"mmap, {a}", f"mmap-stream-{a}") for a in ADVICES),
           ("uring, parts of planes", "uring-skewed-min"), ("mmap none, parts of planes", "mmap-skewed-min-none"), ("mmap schedule, parts of planes", "mmap-skewed-min-schedule"),
           ("mmap none, no Blocks", "mmap-plain-none"), ("mmap schedule, no Blocks", "mmap-plain-schedule")],
          [(step_ms, "ms a step"), (read_ratio, "storage reads / loaded")],
          [("none", NONE), ("hugepage", HUGE), ("schedule", SCHEDULE), ("none, parts of planes", "mmap-skewed-min-none")])  # fmt: skip
def advice(s):
    yield (f"Without advice a mapping {takes(s, NONE, URING, 'io_uring with the same Blocks')}; the storage reads {s.median(NONE, read_ratio):.2f} times the bytes that the schedule loads.")
    yield (f"`MADV_WILLNEED` over the whole mapping {takes(s, 'mmap-stream-willneed', NONE, 'none')}. `MADV_SEQUENTIAL` reads {s.median('mmap-stream-sequential', read_ratio):.2f} times the bytes "
           f"loaded instead of {s.median(NONE, read_ratio):.2f}, and {takes(s, 'mmap-stream-sequential', NONE, 'none')}. `MADV_RANDOM`, which turns read-ahead off, reads "
           f"{s.median('mmap-stream-random', read_ratio):.2f} times the bytes, page by page, and {takes(s, 'mmap-stream-random', NONE, 'none')}.")  # fmt: skip
    yield (f"`MADV_HUGEPAGE` {takes(s, HUGE, NONE, 'none')}, with {s.median(HUGE, faults):.1f} faults a MiB stored instead of {s.median(NONE, faults):.0f} (see large folios). Advice by the schedule - bring in "
           f"ahead, write back and drop behind - {takes(s, SCHEDULE, NONE, 'none')}; for parts of planes it {takes(s, 'mmap-skewed-min-schedule', 'mmap-skewed-min-none', 'none')}, with "
           f"{s.median('mmap-skewed-min-schedule', read_ratio):.2f} times the bytes loaded read instead of {s.median('mmap-skewed-min-none', read_ratio):.2f}; without Blocks it "
           f"{takes(s, 'mmap-plain-schedule', 'mmap-plain-none', 'none')}.")  # fmt: skip
    yield f"Against explicit transfers, `MADV_HUGEPAGE` {takes(s, HUGE, URING, 'io_uring')}; advice by the schedule {takes(s, SCHEDULE, URING, 'io_uring')}."


@question("Read-ahead", "How far should the kernel read ahead for a stream of planes through a mapping?",
          "The papers say that mmap \"sometimes requires OS kernel tuning for page cache\" and give no sizes.",
          lambda s: [(f"{size} KiB", name) for size, name in numbered(s, "ahead-")], [(step_ms, "ms a step"), (read_ratio, "storage reads / loaded")])  # fmt: skip
def readahead(s):
    known = [(size, name) for size, name in numbered(s, "ahead-") if s.done(name)]
    if len(known) < 2:
        raise Missing("fewer than two sizes of read-ahead have results")
    (best_size, best), (largest, last) = min(known, key=lambda x: s.median(x[1], step_ms)), known[-1]
    yield f"Of these sizes the fastest is {best_size} KiB. Bytes that the storage reads, of those loaded: {several(s, [(f'{n} KiB', name) for n, name in known], read_ratio, '{:.2f}')}."
    if last != best:
        yield (f"{largest} KiB {takes(s, last, best, f'{best_size} KiB')} and reads {Effect(s, last, best, kernel_of('storage_read_bytes'))} as many bytes: {s.median(last, refaulted):.0f} MiB of what was "
               f"read had been in the page cache before and was reclaimed, {s.median(best, refaulted):.0f} with {best_size} KiB.")  # fmt: skip
    yield "More than 1 remains at any size: a page that is stored to is read first, unless its extent has never been written. So a store that goes through a mapping costs the storage a read as well."


@question("Dirty limits", "Does it help to write back sooner?", "No counterpart in the papers.",
          lambda s: [*((f"{size // MIB} MiB", name) for size, name in numbered(s, "dirty-")), ("default", NONE)], [(step_ms, "ms a step"), (written_ratio, "storage writes / stored")])  # fmt: skip
def dirty(s):
    limits = [(size, name) for size, name in numbered(s, "dirty-") if s.done(name)]
    if not limits:
        raise Missing("no limit has results")
    for size, name in limits:
        yield (f"With `vm.dirty_bytes` of {size // MIB} MiB a run {takes(s, name, NONE, 'with the default')}; the storage writes {Effect(s, name, NONE, kernel_of('storage_write_bytes'))} as many bytes.")
    if s.sessions[-1]["machine"]["cgroup"] == "v1":
        yield "The limits count the dirty pages of the whole machine: a memory cgroup of version 1, as here, has none of its own, and its reclaim meets dirty pages whatever they are."


FOLIOS = [(size, f"folio-{size}") for size in ("4KiB", "64KiB", "1MiB", "2MiB")]


@question("Large folios", "Do large folios make stores through a mapping cheap?", "The papers' kernels had pages of 4 KiB in the page cache; ext4 has large folios since Linux 6.16.", FOLIOS,
          [(store_us, "us a page, first store"), (lambda r: report(r)["read_us"], "us a page, first read")])  # fmt: skip
def folios(s):
    seen = [f"{s.median(name, folio_kib):.0f}" for _, name in FOLIOS if s.done(name) and s.median(name, folio_kib)]
    yield ("A file written by calls of 4 KiB, 64 KiB, 1 MiB and 2 MiB" + (f" was kept in folios of {', '.join(seen)} KiB in the mean (`/proc/kpageflags`)" if seen else "") +
           f". The first store to each page of it through a mapping costs, a page: {several(s, FOLIOS, store_us, '{:.2f} us')}.")  # fmt: skip
    middle, whole = Effect(s, "folio-1MiB", "folio-4KiB", store_us), Effect(s, "folio-2MiB", "folio-4KiB", store_us)
    yield by_sign(middle, f"With folios of 1 MiB the fault takes {middle} as long as with pages of 4 KiB.",
                  f"With folios of 1 MiB the fault of a page takes {middle} as long as with pages of 4 KiB: there is a fault for each page all the same, and the work of each grows with the folio.",
                  f"Folios of 1 MiB cannot be told from pages of 4 KiB ({middle} as long).") + (
        f" A folio of 2 MiB has one entry in the page table, so that 512 pages take one fault: {whole}.")  # fmt: skip
    yield (f"In a run: {s.median(NONE, system_ms):.1f} ms of system time a step without advice, {s.median(HUGE, system_ms):.1f} with `MADV_HUGEPAGE`, {s.median(URING, system_ms):.1f} with io_uring.")


@question("RWF_DONTCACHE", "Is uncached buffered I/O (Linux 6.14) a replacement for O_DIRECT?", "The papers' aio is libaio with O_DIRECT.",
          [("uring, O_DIRECT", URING), ("uring, RWF_DONTCACHE", "uring-uncached"), ("mmap, schedule", SCHEDULE)], [(step_ms, "ms a step"), (system_ms, "system ms a step")])  # fmt: skip
def dontcache(s):
    system = Effect(s, "uring-uncached", URING, system_ms)
    yield (f"A run with it {takes(s, 'uring-uncached', URING, 'with O_DIRECT')} and {takes(s, 'uring-uncached', SCHEDULE, 'a mapping that the schedule advises')}. The storage reads "
           f"{s.median('uring-uncached', read_ratio):.2f} times the bytes loaded.")  # fmt: skip
    yield by_sign(system, f"It takes {system} the system time.", f"It takes {system} the system time of O_DIRECT: every page is allocated, copied and freed. Where O_DIRECT is refused it keeps the page cache "
                  "empty; where it is not refused, it costs cores.", f"System time: {system} that of O_DIRECT.")  # fmt: skip


@question("MGLRU", "Does the multi-generation LRU keep the right pages of a sweep?", "The papers: performance \"depends on the degree of matching between the operating system (OS) kernel page replacement "
          "policy in the page cache and memory access patterns\".", [("MGLRU on", "mglru-on"), ("MGLRU off", "mglru-off")], [(step_ms, "ms a step"), (read_ratio, "storage reads / loaded")])  # fmt: skip
def mglru(s):
    yield f"With MGLRU a run {takes(s, 'mglru-on', 'mglru-off', 'without')}; the storage reads {Effect(s, 'mglru-on', 'mglru-off', kernel_of('storage_read_bytes'))} as many bytes."


@question("zswap and zram", "Is compressed memory a tier for simulation data?", "The papers' swap is to flash; HHRT swaps GPU processes to host memory and flash.",
          [("swap file", "swap-file"), ("zswap, noise", "zswap-random"), ("zswap, mostly zeros", "zswap-corner"), ("zram, noise", "zram-random"), ("zram, mostly zeros", "zram-corner")],
          [(step_ms, "ms a step"), (held, "MiB of memory, zram")])  # fmt: skip
def compressed(s):
    buffers = 2 * s.median("zram-random", lambda r: report(r)["layout"]["buffer_bytes"]) / MIB
    yield (f"Noise: of Buffers of {buffers:.0f} MiB zram held {s.median('zram-random', held):.0f} MiB of memory, which no limit counts. It {takes(s, 'zram-random', 'swap-file', 'a swap file')}, and "
           f"{takes(s, 'zram-random', URING, 'io_uring from the disk')}. Mostly zeros: {s.median('zram-corner', held):.0f} MiB, and it {takes(s, 'zram-corner', 'swap-file', 'a swap file')}.")  # fmt: skip
    yield (f"zswap before the same swap file: for noise it {takes(s, 'zswap-random', 'swap-file', 'without')}, for mostly zeros it {takes(s, 'zswap-corner', 'swap-file', 'without (with noise)')}. The storage read "
           f"{s.median('zswap-random', kernel_of('storage_read_bytes')) / MIB:.0f} MiB instead of {s.median('swap-file', kernel_of('storage_read_bytes')) / MIB:.0f}. What its pool held was not measured.")  # fmt: skip
    best = Effect(s, "zram-corner", URING)
    yield by_sign(best, f"Even so the best of them takes {best} as long as io_uring.", f"Even data that are compressed to next to nothing take {best} as long as long requests to the disk: the "
                  f"faults remain, {s.median('zram-corner', faults):.0f} a MiB stored (swap file {s.median('swap-file', faults):.0f}, io_uring {s.median(URING, faults):.0f}).", f"The best of them cannot be told from io_uring ({best}).")  # fmt: skip


# ------------------------------------------------------------------ the page

def rounds(s):
    return max(len(s.done(name)) for name in s.runs)


def too_short(s, names):
    """A sentence where a finding rests on runs that are too short for it, "" where it does not. A measurement of faults is one pass over a file, however fast."""
    timed = [(s.median(n, lambda r: report(r)["seconds"]), n) for n in names if s.done(n) and "store_us" not in report(next(iter(s.done(n).values())))]
    short = [f"`{n}` {t:.1f} s" for t, n in sorted(timed) if t < effects.LEAST_SECONDS]
    return f"Too short to rest on: {', '.join(short)}." if short else ""


def origin(s):
    session = s.sessions[-1]
    m, storage = session["machine"], session["machine"]["storage"]
    commits = list(dict.fromkeys(x["commit"] for x in s.sessions))
    run = next(r for name in s.runs for r in s.done(name).values() if r["limit"])
    others = statistics.median(r["other_cpu_s"] / max(r["wall_s"], 0.1) / m["cores"] for runs in s.runs.values() for r in runs.values() if r["status"] == "done")
    return (f"Linux {m['kernel']} on {m['cores']} cores of {m['cpu']} ({m['virtualised']}), {storage['file_system']} on {storage['device']}, read-ahead {storage['read_ahead_kb']} KiB. "
            f"n = {rounds(s)} rounds over all configurations, one run of each a round; other processes took {others:.0%} of the cores in the median. Limit {run['limit']} for Blocks and page cache together, "
            f"two Buffers of {report(run)['layout']['buffer_bytes'] / MIB:.0f} MiB. Commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}, one program ({session['program']}).")  # fmt: skip


def command(s, name):
    r = list(s.runs[name].values())[-1]
    words = [os.path.basename(w) if w.endswith(("/memext", "limit-memory", "python3", ".py")) else "DATA" if "/run-" in w and "memext-run" not in w else w for w in r["command"]]
    drop = [i for i, w in enumerate(words) if w in ("--json", "--timeline", "--swap-dir")]
    kept = [w for i, w in enumerate(words) if i not in drop and i - 1 not in drop and w != "--quiet"]
    return "".join(f"{k}={v} " for k, v in r["knobs"].items()) + shlex.join(kept)


def page(s, folder, out):
    pictures = out.parent / out.stem
    pictures.mkdir(parents=True, exist_ok=True)
    lines = ["# What a 2026 kernel does with these access patterns", "",
             "Written by `experiments/kernel.py` from the runs of `experiments/plans/kernel.toml`; `experiments/kernel.py --run` measures again, in minutes, and writes this page for another machine. "
             "The patterns are the papers': whole planes in long runs (`stream`), runs of rows in each plane (`skewed-min`), and plane by plane on the mapping (no Blocks).", "",
             origin(s), "",
             f"A ratio is that of the rounds' own ratios (Hodges and Lehmann's estimate), with an interval of 95 % in brackets. A difference is claimed where the interval leaves 1 out: between equals that happens "
             f"in at most 1 of 20 cases, so of the many sentences below one may be chance; `--thorough` has 9 rounds. Runs that count take {effects.LEAST_SECONDS:g} s or more. Dots are runs, lines medians.", ""]  # fmt: skip
    for q in QUESTIONS:
        rows = q["rows"](s) if callable(q["rows"]) else q["rows"]
        lines += [f"## {q['title']}", "", f"*Question.* {q['asked']} {q['papers']}", ""]
        try:
            lines += ["*Finding.* " + "\n\n".join(q["findings"](s)), ""]
            short = too_short(s, [name for _, name in rows])
            lines += [f"**{short}**", ""] if short else []
        except Missing as why:
            lines += [f"*Finding.* Not tested here: {why}.", ""]
        if any(s.done(name) for _, name in rows):
            figure(s, pictures / f"{q['name']}.png", rows, q["panels"])
            lines += [f"![{q['title']}]({out.stem}/{q['name']}.png)", ""]
        if q["heat"] and heat_map(s, folder, pictures / f"{q['name']}-heat.png", q["heat"]):
            lines += [f"![Residency of both Buffers by cachestat]({out.stem}/{q['name']}-heat.png)", "",
                      "Residency of both Buffers over the time of one run each, by cachestat: left what the schedule needs, right what the page cache holds. A third Buffer takes turns with "
                      "the target, since the state committed last is kept, and is not shown.", ""]  # fmt: skip
        lines += ["<details><summary>Runs</summary>", ""]
        lines += [f"- `{run}`: `{command(s, run)}`" for _, run in rows if run in s.runs] or ["None."]
        lines += ["", "</details>", ""]
    out.write_text("\n".join(lines))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--run", action="store_true")
    p.add_argument("--results", type=Path, default=ROOT / "results" / "kernel", help="as run.py has it; the plan's folder is in it")
    p.add_argument("--output", type=Path, default=ROOT / "docs" / "page-cache.md")
    o = p.parse_args()
    if o.run:
        done = subprocess.run([sys.executable, str(ROOT / "experiments" / "run.py"), "kernel", "--results", str(o.results)])
        if done.returncode != 0:
            return done.returncode
    folder = o.results / "kernel"
    if not (folder / "raw.jsonl").exists():
        sys.exit(f"kernel.py: {folder} holds no runs; experiments/kernel.py --run makes them")
    page(Study(folder), folder, o.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
