# SPDX-License-Identifier: BSD-3-Clause
"""Where results come from. A Sitting, which the report calls a session, has all results measured on one machine with one program; results of several nights have several of them. A ratio compares only runs of one start
of the runner (results.Run.round; the records call such a start a session), so no ratio spans two Sittings."""
import datetime
import re
from dataclasses import dataclass, field

from analysis.measures import GIB
from analysis.seen import seen
from analysis.stats import median

DISTURBED = 0.15  # the report warns if other work takes a larger share of the CPU time


@dataclass
class Sitting:
    number: int
    machine: dict
    program: str
    commits: list = field(default_factory=list)
    runs: list = field(default_factory=list)
    plans: dict = field(default_factory=dict)  # name -> runs

    @property
    def begin(self):
        return min(r.started_unix_s for r in self.runs)

    @property
    def end(self):
        return max(r.started_unix_s + r.wall_s for r in self.runs)


def spaced(size):
    """A number and its unit, apart: "48MiB" is "48 MiB"."""
    return re.sub(r"^([\d.]+)(?=[A-Za-z])", r"\1 ", size)


def few(values, most=4):
    """Distinct values in their order, as text. If there are many, the middle ones are left out."""
    values = list(dict.fromkeys(values))
    return ", ".join(values if len(values) <= most else [*values[: most - 2], "...", values[-1]])


def other_share(run, cores):
    """Share of all cores' time that went to other work beside a run: neither to the command nor to idling."""
    return (run.other_cpu_s + run.record.get("stolen_cpu_s", 0)) / (run.wall_s * cores)


def others_share(runs, cores):
    """Median of other_share. Only runs count that leave the threads of Linux little to do."""
    quiet = [r for r in runs if r.ok and r.report.get("backend") in ("dram", "aio", "uring") and r.record.get("other_cpu_s") is not None]
    return median([other_share(r, cores) for r in quiet]) if quiet else None


def sampling_share(runs):
    """(median, largest) share of one core's time that the sampling took, over the timelines that record it; None if none does."""
    shares = [found["sampler_s"] / found["duration_s"] for found in (seen(r) for r in runs if r.ok) if "sampler_s" in found and found["duration_s"] > 0]
    return (median(shares), max(shares)) if shares else None


def active(text):
    """The word in brackets of "always [madvise] never"."""
    return text[text.find("[") + 1 : text.find("]")] if "[" in text else text or "not available"


def _setting(folio):
    """ "2048kB inherit" -> "2048kB (inherit)"."""
    size, _, word = folio.partition(" ")
    return f"{size} ({word})" if word else size


def swap_read_ahead(machine):
    """How Linux reads ahead from a swap file on this storage, in words. As long as swap on a rotational device is active, Linux never reads ahead by mapping (nr_rotate_swap of mm/swapfile.c)."""
    storage = machine.get("storage", {})
    if machine.get("swap_read_ahead") == "false":
        return "by position in the file"
    return "by position in the file, because the device counts as rotational" if storage.get("rotational") else "by address in the mapping"


def throttled(storage):
    """What the block layer does to buffered writes only, in words; "" if it was not recorded."""
    if "wbt_lat_usec" not in storage:
        return ""
    usec, options = storage["wbt_lat_usec"], storage.get("mount_options", "").split(",")
    return f", write-back throttling {'off' if usec in ('', '0') else f'at {int(usec) / 1000:g} ms'}, write cache: {storage.get('write_cache') or 'unknown'}, mounted with{'' if 'discard' in options else 'out'} discard"


def settings_of(runs):
    """The settings that replaced the machine's own during the runs, in words."""
    values = {}
    for name, value in ((k, v) for r in runs for k, v in r.knobs.items()):
        values.setdefault(name, {})[value] = None
    return "; ".join(f"{name} {', '.join(several)}" if len(several) <= 4 else f"{name}: {len(several)} values" for name, several in sorted(values.items())) or "the machine's own"


def sittings(found):
    """The Sittings of these results, in the order of time."""
    machines = {s["session"]: s["machine"] for p in found.values() for s in p.sessions}
    seen_there = {}
    for name, p in found.items():
        for r in p.runs:
            m = machines.get(r.session, {})
            key = m.get("node"), m.get("cpu"), m.get("kernel"), r.program
            one = seen_there.setdefault(key, Sitting(0, m, r.program))
            one.runs.append(r)
            one.commits = list(dict.fromkeys([*one.commits, r.commit]))
            one.plans[name] = one.plans.get(name, 0) + 1
    ordered = sorted(seen_there.values(), key=lambda s: s.begin)
    for k, one in enumerate(ordered, 1):
        one.number = k
    return ordered


def runs_of(found, plans):
    """The runs that a finding rests on, "fig05: 45 runs of session 1". If the finding names no plan, all runs count."""
    told = []
    for one in sittings(found):
        counts = {name: n for name, n in one.plans.items() if name in plans} if plans else {"all": len(one.runs)}
        told += [f"{name}: {n} run{'s' if n != 1 else ''} of session {one.number}" for name, n in counts.items()]
    return "; ".join(told)


def third_level(runs):
    """The size of the L3 cache, which Blocks may fit into, in words; "" if no report has it. Only machines that ran something count, not those that runs were planned for."""
    sizes = {size for r in runs if r.report.get("seconds") and (size := (r.report.get("machine") or {}).get("l3_bytes"))}
    return f"{' or '.join(f'{size / 2**20:.0f}' for size in sorted(sizes))} MiB" if sizes else ""


def damon_took(machine, runs):
    """How much memory DAMON reclaimed during the runs in which it was on, in words; "" if it is off."""
    took = [r.record["damon_bytes"] for r in runs if r.record.get("damon_bytes") is not None]
    return f" (its schemes were applied to {sum(took) / GIB:.2f} GiB during {len(took)} runs)" if took else " (its reclaim was not counted)" if machine.get("damon") else ""


RATES = (("reads", "read_bytes_per_s"), ("writes", "write_bytes_per_s"), ("both at once", "mixed_bytes_per_s"))


def storage_rates(runs):
    """The storage's measured rates, in words: the median with its extremes; "" if none was measured. Runs with a limited device do not count."""
    probes = [r.record["near"]["rates"] for r in runs if (r.record.get("near") or {}).get("rates") and not any("limit-bandwidth" in word for word in r.command)]
    told = []
    for what, name in RATES:
        if values := [p[name] / 1e9 for p in probes if p.get(name)]:
            told.append(f"{what} {median(values):.2f} GB/s ({min(values):.2f} to {max(values):.2f})")
    return f"{', '.join(told)}, measured right before {len(probes)} runs" if told else ""


FAR = 2.0  # cores count as moved if a line takes more than so many times the first quartile of the same session


def distance_of_cores(runs):
    """How long a cache line went from core to core around the runs, in words; "" if it was not measured."""
    found = [c for r in runs if (c := r.record.get("cores")) and c.get("before_ns") is not None and c.get("after_ns") is not None]
    if not found:
        return ""
    before, after = [c["before_ns"] for c in found], [c["after_ns"] for c in found]
    far = FAR * sorted(before + after)[len(found) // 2]  # the first quartile: the least value may be a wrong one
    told = f"a cache line took {median(before):.0f} ns ({min(before):.0f} to {max(before):.0f}) from core to core right before {len(found)} runs; right before or after {sum(max(b, a) > far for b, a in zip(before, after))} of them more than {FAR:g} times the first quartile"
    if limits := sorted({c["limit_ns"] for c in found if c["limit_ns"] is not None}):
        again = [len(c["again"]) for c in found]
        most = f"{limits[0]:g}" if len(limits) == 1 else f"{limits[0]:.0f} to {limits[-1]:.0f}"
        told += f". A run waited until a cache line took at most {most} ns, or its patience ended ({sum(c['waited_s'] for c in found) / 60:.1f} minutes of waiting in all). {sum(n > 0 for n in again)} runs were made again ({sum(again)} times in all), because the cores moved"
    return told


def rows(one):
    """The rows (what, value) of a Sitting."""
    m, storage = one.machine, one.machine.get("storage", {})
    stamp = lambda t: datetime.datetime.fromtimestamp(t, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")  # noqa: E731
    pages = f"transparent huge pages: {active(m.get('transparent_hugepage', ''))}; other sizes of large folios: {', '.join(_setting(f) for f in (m.get('folios') or 'none').split(', '))}; zswap: {', '.join(f'{k} = {v}' for k, v in m.get('zswap', {}).items()) or 'none'}"
    pages += f"; read-ahead from a swap file: {swap_read_ahead(m)}; DAMON: {m.get('damon') or 'off'}{damon_took(m, one.runs)}"
    told = [
        ["commit", ", ".join(one.commits)],
        ["program (sha256)", one.program],
        ["machine", f"{m.get('cpu')}, {m.get('cores')} cores, {m.get('memory_bytes', 0) / GIB:.1f} GiB of DRAM, {'virtual (' + m['virtualised'] + ')' if m.get('virtualised', 'none') != 'none' else 'virtualisation not detected'}"],
        ["system", f"{m.get('system')}, Linux {m.get('kernel')}, cgroup {m.get('cgroup')}"],
        ["storage", f"{storage.get('path')} on {storage.get('file_system')}, {' '.join(str(w) for w in (storage.get('device'), storage.get('model')) if w)}, {storage.get('bytes', 0) / GIB:.0f} GiB, scheduler {storage.get('scheduler')}, {'rotational' if storage.get('rotational') else 'not rotational'}, read-ahead {storage.get('read_ahead_kb')} KiB{throttled(storage)}"],
        ["memory settings (vm)", ", ".join(f"{k} = {v}" for k, v in m.get("vm", {}).items())],
        ["pages of memory", pages],
        ["settings during the runs", settings_of(one.runs)],
        ["plans", few((f"{name} ({n} runs)" for name, n in one.plans.items()), 40)],
        ["scale", few(r.scale for r in one.runs)],
        ["measured", f"from {stamp(one.begin)} to {stamp(one.end)}; {len(one.runs)} runs took {sum(r.wall_s for r in one.runs) / 60:.1f} minutes; {sum(not r.ok and not r.skipped for r in one.runs)} of them failed"],
    ]
    l3 = third_level(one.runs)
    told[3:3] = [["L3 cache", l3]] if l3 else []
    if rates := storage_rates(one.runs):
        virtual = ". The disk is virtual, and its hardware is not known" if m.get("virtualised", "none") != "none" and not storage.get("model") else ""
        told.insert(1 + next(k for k, r in enumerate(told) if r[0] == "storage"), ["the storage's rates", rates + virtual])
    noise = others_share(one.runs, m.get("cores", 1))
    if noise is not None:
        told.append(["other work on the machine", f"{noise:.0%} of its CPU time, in the median of the runs on dram, aio and uring" + (": it disturbed these timings" if noise > DISTURBED else "")])
    if cores := distance_of_cores(one.runs):
        told.append(["distance of the cores", cores])
    looking = sampling_share(one.runs)
    if looking is not None:
        told.append(["cost of the timelines", f"{looking[0]:.2%} of one core's time, in the median of the runs with a timeline; {looking[1]:.2%} at most"])
    return told


def mixed(plan):
    """A sentence if a plan's runs come from several commits, else "": its figures then show results of different programs side by side."""
    commits, programs = (list(dict.fromkeys(getattr(r, name) for r in plan.runs if not r.skipped)) for name in ("commit", "program"))
    if len(commits) < 2:
        return ""
    return f"Mixed: these runs come from {len(commits)} commits ({few(commits)})" + (", but from the same program." if len(programs) == 1 else f" and {len(programs)} programs; the programs may cause differences between them.")
