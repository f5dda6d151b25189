# SPDX-License-Identifier: BSD-3-Clause
"""A line for each plan: what was run here and what the paper ran. It gives size, DRAM, Blocks, steps and limits of the device. So a reader sees that a finding may fail here and still hold at the paper's size."""
import math

from analysis.measures import GIB
from analysis.origin import few, spaced
from analysis.results import plan_of
from analysis.stats import median

# Plan -> the published figure that it measures again, if its name differs from the plan's.
FIGURE_OF = {"baseline": "fig05", "fig05-large": "fig05", "fig07-large": "fig07", "largest": "fig07", "enough": "fig12", "devices": "fig22", "layout": "before-after"}
COUNTED = "memext planned the runs and counted bytes, and computed nothing"
OFFLINE = {"table2": COUNTED, "table1w": COUNTED, "divisions": COUNTED, "fig24": "memext planned the runs and timed its searches, and computed nothing"}
# What a paper says about the subject of a plan that none of its figures shows.
RELATED = {
    "share": "no figure of its own; iwapt2016, section II-C, gives the reason of Fig. 9",
    "advice": "no figure; iwapt2016, section I, says that advice to Linux helps mmap to a limited degree",
}  # fmt: skip
SAME = 1.1  # sizes whose ratio is smaller count as the same


def _words(run):
    """The words of a command and of the programs around it."""
    return [w for word in run.command for w in word.split()]


def throttle(run):
    """The rate that experiments/limit-bandwidth allows, "" if the run has no such limit."""
    words = _words(run)
    rate = next((words[k + 1] for k, w in enumerate(words[:-1]) if w.endswith("limit-bandwidth")), "")
    return f"{int(rate) / 1e6:g} MB" if rate.isdigit() else rate


def accelerator(run):
    """Name, bus and memory of the accelerator that a run was given, in words; "" without one."""
    words = _words(run)
    option = {name: words[k + 1] for k, name in enumerate(words[:-1]) if name in ("--accel", "--device-memory")}
    if "--accel" not in option:
        return ""
    name, *more = option["--accel"].split(",")
    rate = next((m.removeprefix("rate=") for m in more if m.startswith("rate=")), "")
    memory = f" with {spaced(option['--device-memory'])} of memory" if "--device-memory" in option else ""
    return f"accelerator `{name}`{memory}" + (f" behind a bus of {spaced(rate)}" if rate else "")


def buffers_bytes(run):
    """Bytes of both Buffers, or of the six matrices of a wavefront; 0 if nothing is stored."""
    r, p = run.report, run.report.get("problem") or {}
    if "wavefront" in run.command:
        return 6 * 8 * p["rows"] * p["cols"] if {"rows", "cols"} <= set(p) else 0
    return 2 * r["layout"]["buffer_bytes"] if "layout" in r and "buffer_bytes" in r["layout"] else 0


def sweeps(run):
    """Passes of a run over its Buffers; 0 if it has no steps."""
    r, p = run.report, run.report.get("plan") or {}
    if "wavefront" in run.command or not r.get("steps_done"):
        return 0
    return r["steps_done"] if p.get("algorithm") == "direct" else math.ceil(r["steps_done"] / max(1, p.get("bt") or 1))


def either(values):
    """Values as text, "a, b or c"."""
    first, _, last = few(values).rpartition(", ")
    return f"{first} or {last}" if first else last


def sizes(values, form="{:.3g}"):
    """Distinct positive numbers in their order, as text."""
    return either(form.format(v) for v in sorted({v for v in values if v}))


def _here(plan):
    """What was run, in words."""
    firsts = [g.done[0] for g in plan.groups.values() if g.done and g.done[0].report]
    parts = []
    if text := sizes(buffers_bytes(r) / GIB for r in firsts):
        parts.append(f"{text} GiB " + ("of matrices" if "wavefront" in firsts[0].command else "of Buffers"))
    problems = [r.report["problem"] for r in firsts if "nx" in (r.report.get("problem") or {})]
    if problems:
        parts.append("grids of " + either(f"{p['nx']} x {p['ny']} x {p['nz']}" for p in problems))
    limits = either(spaced(r.limit) for r in firsts if r.limit)
    parts.append(f"DRAM limited to {limits}" if limits else "DRAM not limited")
    if text := sizes((r.report.get("block_bytes", 0) / (1 << 20) for r in firsts), "{:.0f}"):
        parts.append(f"Blocks of {text} MiB")
    shapes = dict.fromkeys((p["iy"], p["iz"]) for r in firsts if (p := r.report.get("plan") or {}).get("engine") == "iblock" and p.get("iy") and p.get("iz"))
    if shapes:
        parts.append("iBlocks of " + either(f"{iy} x {iz}" for iy, iz in shapes) + " rows and planes")
    short = [r for r in firsts if r.limit] or firsts  # short of DRAM; a run that fits has no sweeps to compare
    if text := sizes((r.report.get("steps_done", 0) for r in short if sweeps(r)), "{:d}"):
        parts.append(f"{text} steps in {sizes((sweeps(r) for r in short), '{:d}')} sweeps")
    if text := either(t for r in firsts if (t := accelerator(r))):
        parts.append(text)
    slow = either(spaced(t) for r in firsts if (t := throttle(r)))
    free = " or not limited" if any(not throttle(r) for r in firsts) else ""
    parts.append(f"device limited to {slow} a second each way{free}" if slow else "device not limited")
    return "; ".join(parts)


def rounded(times):
    return f"{times:.0f}" if times >= 100 else f"{times:.3g}"


def _there(plan, known):
    """What the paper ran, and how many times larger that was than the largest problem here."""
    name, _ = plan_of(plan.name)
    values = known.get(FIGURE_OF.get(name, name))
    if values is None:
        return RELATED.get(name, "no counterpart in the papers")
    ours = max((buffers_bytes(g.done[0]) for g in plan.groups.values() if g.done and g.done[0].report), default=0)
    times = values.buffers_gib * GIB / ours if values.buffers_gib and ours else 0
    if not times:
        return values.conditions
    if 1 / SAME <= times <= SAME:
        return f"{values.conditions} (the same size)"
    return f"{values.conditions} ({rounded(times)} times larger)" if times > 1 else f"{values.conditions} ({rounded(1 / times)} times smaller)"


def line(plan, known):
    """A line on a plan; "" if none of its runs completed."""
    if not any(g.done for g in plan.groups.values()):
        return ""
    return f"{plan.name}: " + (OFFLINE[plan.name] if plan.name in OFFLINE else f"{_here(plan)}. Published: {_there(plan, known)}") + "."


COLUMNS = ("configuration", "grid", "DRAM", "algorithm", "Block", "bt", "steps", "runs", "seconds")


def configuration(group):
    """The cells of a configuration, in the order of COLUMNS. Block: rows x planes; seconds: median (least to most)."""
    first = group.done[0]
    p, q = first.report.get("problem") or {}, first.report.get("plan") or {}
    grid = f"{p['nx']} x {p['ny']} x {p['nz']}" if "nx" in p else f"{p['rows']} x {p['cols']}" if {"rows", "cols"} <= set(p) else ""
    seconds = sorted(r.seconds for r in group.done if r.report.get("seconds"))
    took = f"{median(seconds):.3g} ({seconds[0]:.3g} to {seconds[-1]:.3g})" if seconds else ""
    block = f"{q['by']} x {q['bz']}" if q.get("by") and q.get("bz") and q.get("algorithm") != "direct" else ""
    algorithm = ", ".join(q[name] for name in ("algorithm", "layout") if q.get(name))
    return [group.id, grid, spaced(first.limit) or "not limited", algorithm, block, str(q.get("bt") or ""), str(first.report.get("steps_done") or ""), str(len(group.done)), took]


def configurations(plan):
    """The rows of a plan's configurations that have results; [] for a plan that computed nothing."""
    return [] if plan.name in OFFLINE else [configuration(g) for g in plan.groups.values() if g.done]


def lines(found, known):
    return [said for plan in found.values() if (said := line(plan, known))]
