# SPDX-License-Identifier: BSD-3-Clause
"""The page: where the numbers come from, a section a question, and at the end what this Linux cannot do."""
import os
import shlex

from runner import plan

from analysis import effects, results
from analysis.origin import active, other_share, others_share, spaced, swap_read_ahead, throttled

from .pictures import figure, heat_map
from .study import MIB, Effect, Missing, report
from .table import QUESTIONS

DROPPED = ("--json", "--timeline", "--swap-dir", "--counts")  # words of a command that a reader needs no value of
INTRODUCTION = (
    "`experiments/kernel.py` wrote this page from the runs of `experiments/plans/kernel.toml`. `experiments/kernel.py --run` measures again within an hour, and writes the page for your machine. With `--scale night` the limits reach 5 GiB, and it takes about two hours. "
    "The access patterns are those of the papers: whole planes in long requests (`stream`), some rows of each plane (`skewed-min`), and plane by plane on the mapping (without Blocks). A Buffer is an array that holds a whole state of the grid. A Block is memory of the program's own that holds a piece of a Buffer. A sweep takes the whole grid some steps further. "
    "A commit makes the state on the storage complete (`fdatasync`). `--commit-every 0` makes one after each sweep of `stream` on io_uring and on the mapping. `skewed-min`, swap and runs without Blocks commit nothing. The runs on dirty limits commit once, at their end. "
    "The page cache is dropped before each run. Each run of memext also samples a timeline, which the commands below leave out.")  # fmt: skip
RULE = (
    "Each round gives a ratio. The page gives Hodges and Lehmann's estimate of these ratios, with an interval of 95 % in brackets. The page claims a difference only where the interval does not contain 1. For two equal configurations that happens "
    f"in at most 1 of 20 cases.{{chance}} Fewer than {effects.LEAST_PAIRS} rounds claim nothing. Runs of memext that count take {effects.LEAST_SECONDS:g} s or more. A measurement of faults is one pass over a file. "
    "Lists and tables of what is counted have medians, with the least and the most of the rounds in brackets where they differ. "
    "A store to an extent that was never written reads nothing. So the first sweep into each Buffer reads less. The page compares what the storage reads only between runs with the same number of sweeps. "
    "In the pictures a dot is a run, and a line is a median. An axis is logarithmic where values lie far apart.")  # fmt: skip
HEAT = ("The pages of both Buffers over the time of a run, counted by cachestat. On the left are the pages that the schedule needs, on the right the pages in the page cache. White is a page that "
        "is not needed or not in the page cache, and grey one that was not looked at.")  # fmt: skip
CANNOT = "Each line names what this Linux or this machine lacks, and the questions that need it. The plan has the runs, so a machine that can do them answers the question."
ROTATIONAL = "For such a device write-back throttling uses the threshold for disks. Direct writes bypass this throttling."


def rounds(s):
    return max(len(s.done(name)) for name in s.runs)


def too_short(s, names):
    """A sentence where a finding rests on runs that are too short for it, "" where it does not. A measurement of faults is one pass over a file, however fast."""
    timed = [(s.median(n, lambda r: report(r)["seconds"]), n) for n in names if s.done(n) and "seconds" in report(next(iter(s.done(n).values())))]
    short = [f"`{n}` {t:.1f} s" for t, n in sorted(timed) if t < effects.LEAST_SECONDS]
    return f"Too short to rest on: {', '.join(short)}." if short else ""


def settings(s):
    """Which settings of Linux the runs had, and which are this machine's own."""
    run, own = s.usual(), s.machine()["storage"]["read_ahead_kb"]
    if run is None:
        return "No run here has a memory limit. Each has this machine's own settings of Linux, unless it says otherwise."
    set_here = run["knobs"]
    if not set_here:
        return f"The runs had this machine's own settings of Linux, read-ahead {own} KiB among them, unless a run says otherwise."
    words = [f"read-ahead {set_here['read_ahead_kb']} KiB"] if "read_ahead_kb" in set_here else []
    words += [f"`vm.page-cluster` {set_here['vm.page-cluster']}"] if "vm.page-cluster" in set_here else []
    if "vm.dirty_bytes" in set_here:
        start, most = (int(set_here[name]) for name in ("vm.dirty_background_bytes", "vm.dirty_bytes"))
        memory = plan.size_bytes(run["limit"])
        words.append(f"dirty data written back from {start / memory:.0%} of the memory limit on, writers slowed from {(start + most) / 2 / memory:.0%} on and stopped at {most / memory:.0%}")
    linux = all(set_here.get(name) == value for name, value in plan.AHEAD.items())
    text = f"Settings of the runs with a memory limit, unless a run says otherwise: {', '.join(words)}."
    text += " This read-ahead is the least that Linux gives a device, and its usual default." if linux else ""
    text += " The dirty limits are scaled: Linux takes such shares of the free memory and the page cache of the whole machine." if "vm.dirty_bytes" in set_here else " The dirty limits are the machine's."
    if "read_ahead_kb" in set_here and set_here["read_ahead_kb"] != str(own):
        storage = s.machine()["storage"]
        twice = storage.get("rotational") and storage.get("max_request_kb") and own == 2 * storage["max_request_kb"]
        text += f" This machine's device came with a read-ahead of {own} KiB, which these runs did not have." + (" Linux chose it: twice the largest request, since the device counts as rotational (`blk_apply_bdi_limits` in `block/blk-settings.c`)." if twice else "")
    return text


def device(s):
    """What this machine's storage and memory are set to, in the words of the page of results."""
    m, storage, run = s.machine(), s.machine()["storage"], s.usual()
    kind = "rotational" if storage.get("rotational") else "not rotational"
    off = ", but off during the runs with a memory limit" if m.get("damon") and run and run["knobs"].get("damon") == "off" else ""
    text = (f"The device: model {storage.get('model') or 'unknown'}, scheduler {storage.get('scheduler') or 'unknown'}, {kind}{throttled(storage)}. Transparent huge pages: {active(m.get('transparent_hugepage', ''))}. "
            f"DAMON: {m.get('damon') or 'off'}{off}. Read-ahead from a swap file: {swap_read_ahead(m)}.")  # fmt: skip
    text += " " + ROTATIONAL if storage.get("rotational") and storage.get("wbt_lat_usec", "0") not in ("", "0") else ""
    return text + (" The disk is virtual, and its hardware is not known." if m.get("virtualised", "none") != "none" and not storage.get("model") else "")


def origin(s):
    session, m = s.sessions[-1], s.machine()
    storage = m["storage"]
    commits = list(dict.fromkeys(x["commit"] for x in s.sessions))
    run = s.usual()
    others = others_share([results.Run(r, None) for runs in s.runs.values() for r in runs.values()], m["cores"])
    busy = f"; other processes took {others:.0%} of the cores in the median of the runs on io_uring" if others is not None else ""
    caches = {size for runs in s.runs.values() for r in runs.values() if (size := ((r["report"] or {}).get("machine") or {}).get("l3_bytes"))} if run else set()
    cache = f" The L3 cache has {' or '.join(f'{size / MIB:.0f}' for size in sorted(caches))} MiB." if caches else ""
    bytes_ = ((report(run) if run else None) or {}).get("layout", {}).get("buffer_bytes")
    blocks = ((report(run) if run else None) or {}).get("block_bytes")
    size = (f" Limit {spaced(run['limit'])} for Blocks and page cache together" + (f", two Buffers of {bytes_ / MIB:.0f} MiB" if bytes_ else "") + (f", Blocks of {blocks / MIB:.0f} MiB" if blocks else "") + ", where no other is named.") if run else ""
    return (f"Linux {m['kernel']} on {m['cores']} cores of {m['cpu']} ({m['virtualised']}), {storage['file_system']} on {storage['device']}. "
            f"n = {rounds(s)} rounds over all configurations, one run of each a round{busy}.{disturbed(s)}{size}{cache} Commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}, one program ({session['program']}). {device(s)}")  # fmt: skip


DISTURBED = 0.1  # of all cores' time


def others_of(r, cores):
    """other_share of a run; None if it was not counted. What writes back for a mapping counts as other work, so nothing is said beside mappings."""
    if r["status"] != "done" or (r["report"] or {}).get("backend") not in ("dram", "aio", "uring", "swap") or r.get("other_cpu_s") is None:
        return None
    return other_share(results.Run(r, None), cores)


def disturbed(s):
    """A sentence on the runs beside which other processes took much; "" if there are none."""
    shares = {name: [x for r in runs.values() if (x := others_of(r, s.machine()["cores"])) is not None and x > DISTURBED] for name, runs in s.runs.items()}
    told = [f"`{name}` ({', '.join(f'{x:.0%}' for x in sorted(found))})" for name, found in sorted(shares.items()) if found]
    return f" They took more than {DISTURBED:.0%} in single runs of {', '.join(told)}." if told else ""


def command(s, name):
    r = s.latest(name)
    words = [os.path.basename(w) if w.endswith(("/memext", "limit-memory", "python3", ".py")) else "DATA" if "/run-" in w and "memext-run" not in w else w for w in r["command"]]
    drop = [i for i, w in enumerate(words) if w in DROPPED]
    kept = [w for i, w in enumerate(words) if i not in drop and i - 1 not in drop and w != "--quiet"]
    place = f"on {r['file_system']}: " if r.get("file_system") else ""
    return place + "".join(f"{k}={v} " for k, v in sorted(r["knobs"].items())) + shlex.join(kept)


def findings(q, s):
    """(lines, whether they are findings)"""
    try:
        return ["*Finding.* " + "\n\n".join(q.findings(s)), ""], True
    except Missing as why:
        return [f"*Finding.* Not tested here: {why}.", ""], False


def section(q, s, folder, out):
    pictures, rows = out.parent / out.stem, q.runs(s)
    said, found = findings(q, s)
    lines = [f"## {q.title}", "", f"*Question.* {q.asked} {q.papers}", "", *said]
    short = too_short(s, [name for _, name in rows]) if found else ""
    lines += [f"**{short}**", ""] if short else []
    if any(s.done(name) for _, name in rows):
        figure(s, pictures / f"{q.name}.png", rows, q.panels)
        lines += [f"![{q.title}]({out.stem}/{q.name}.png)", ""]
    if q.heat and heat_map(s, folder, pictures / f"{q.name}-heat.png", q.heat):
        lines += [f"![Residency of both Buffers by cachestat]({out.stem}/{q.name}-heat.png)", "", HEAT, ""]
    lines += ["<details><summary>Runs</summary>", ""]
    lines += [f"- `{run}`: `{command(s, run)}`" for _, run in (*rows, *q.also) if run in s.runs] or ["None."]
    return [*lines, "", "</details>", ""]


def cannot(s, unanswered):
    """Once for each reason: the questions that are not answered for it, and the runs that were not possible."""
    reasons = {}
    for q, reason in unanswered:
        reasons.setdefault(reason, ([], []))[0].append(f"**{q.title}** ({q.asked})")
    for name in s.runs:
        if s.lacks(name):
            reasons.setdefault(s.lacks(name), ([], []))[1].append(f"`{name}`")
    if not reasons:
        return []
    lines = [f"- {' and '.join(titles) + ': ' if titles else ''}{reason}" + (f". Runs: {', '.join(runs)}." if runs else ".") for reason, (titles, runs) in reasons.items()]
    return ["## What this Linux cannot do", "", CANNOT, "", *lines, ""]


def page(s, folder, out):
    (out.parent / out.stem).mkdir(parents=True, exist_ok=True)
    lines, unanswered = [], []
    Effect.seen.clear()
    for q in QUESTIONS:
        lacks = next(filter(None, map(s.lacks, q.needs)), "")
        if lacks:
            unanswered.append((q, lacks))
        else:
            lines += section(q, s, folder, out)
    n = len(Effect.seen)
    rule = RULE.format(chance=f" The page has {n} such intervals, so {f'about {round(n / 20)}' if n >= 30 else 'one'} of them may differ from 1 by chance." if n else "")
    head = ["# What Linux does with these access patterns", "", INTRODUCTION, "", origin(s), "", settings(s), "", rule, ""]
    out.write_text("\n".join([*head, *lines, *cannot(s, unanswered)]))
