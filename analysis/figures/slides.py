# SPDX-License-Identifier: BSD-3-Clause
"""The slides: bytes, the profiles of CPU and flash, before and after the optimisation."""
import numpy as np

from analysis import style
from analysis.cells import NOT_GIVEN, Drawn, cell, over, show
from analysis.measures import GIB, gib, mflops, moved_read, moved_write, seconds, wait_share
from analysis.seen import bandwidth_variation, cached_timeline, period, period_means, profiled_group


def slides_bytes(plan, published):
    methods = [m for m in ("aio", "uring", "mmap", "swap") if plan.select(method=m)]
    read = [cell(plan.one(method=m, temporal=True), gib(moved_read)) for m in methods]
    wrote = [cell(plan.one(method=m, temporal=True), gib(moved_write)) for m in methods]
    figure, ax = style.new(6.4, 3.2)
    style.bars(ax, methods, {"read": read, "write": wrote}, "GiB moved on storage, stencil phase")
    rows = []
    for i, m in enumerate(methods):
        group = plan.one(method=m, temporal=True)
        needed = group.first(lambda r: r.needed_bytes) if group and group.done else None
        given = [published.values.get(f"{m}-{way}-gib", {}).get("value") for way in ("read", "write")]
        base = published.value("aio-read-gib")
        rows.append([m, show(read[i]), show(wrote[i]), f"{needed[0] / GIB:.3f} + {needed[1] / GIB:.3f}" if needed else "", show(over(read[i], read[0])),
                     *[g if g is not None else "not in the papers" for g in given], f"{given[0] / base:.2f}" if given[0] else ""])  # fmt: skip
    notes = ["The papers' written bytes contain the initial grid, ours do not. Read: by the process (swap: swapped in); written: by the block device (swap: swapped out). "
             "mmap leaves at the end what is still dirty in the page cache; its counter stops with the stencil phase."]  # fmt: skip
    return Drawn("slides-bytes", "Slides: bytes read and written", figure,
                 ["method", "read GiB", "written GiB", "needed GiB (read + written)", "read, of aio's", "published read GiB", "published written GiB", "published read, of aio's"], rows, notes)  # fmt: skip


PROFILED = ("aio", "mmap", "swap")


def _profile(plan, draw, unit, group_of=None):
    """One panel a method, on one axis of time; with group_of, which may pick runs of different lengths, each on its own."""
    figure, axes = style.new(7.2, 5.2 if group_of is None else 6.0, rows=3, columns=1, sharex=group_of is None)
    rows = []
    for ax, m in zip(axes, PROFILED):
        group = group_of(plan, m) if group_of else plan.one(method=m, temporal=True)
        run = next((r for r in group.done if r.timeline_path), None) if group else None
        ax.set_title(m, loc="left")
        ax.set_ylabel(unit)
        if run is None:
            ax.text(0.5, 0.5, group.failure if group and group.failure else "not run", transform=ax.transAxes, ha="center")
            continue
        rows.append([m, *draw(ax, run, cached_timeline(run))])
        if group_of:
            ax.set_title(f"{m}, {run.steps} steps", loc="left")
            ax.set_xlim(0, cached_timeline(run).duration_s)
    axes[-1].set_xlabel("seconds since the start of the stencil phase")
    if group_of is None:
        axes[-1].set_xlim(0, None)
    return figure, rows


def cpu_profile(plan, published):
    cores = plan.sessions[-1]["machine"].get("cores", 1) if plan.sessions else 1

    def given(method, what, form):
        value = published.values.get(f"{method}-{what}", {}).get("value")
        return form.format(value) if value is not None else NOT_GIVEN

    def draw(ax, run, line):
        m = run.params["method"]
        t, busy = line.cpu(cores)
        ax.fill_between(t, 0, 100 * np.clip(busy, 0, 1.2), step="mid", color=style.SKY, linewidth=0).set_gid("cpu")
        ax.axhline(90, color=style.BLACK, linewidth=0.8, linestyle=":")
        ax.set_ylim(0, 110)
        group = plan.one(method=m, temporal=True)
        return [show(cell(group, seconds), "{:.2f} s"), show(cell(group, mflops), "{:.0f}"), show(cell(group, period), "{:.3f} s"), f"{100 * busy.mean():.0f} %", f"{(busy < 0.9).mean():.1%}",
                show(cell(group, lambda r: 100 * wait_share(r)), "{:.1f} %"), given(m, "seconds", "{} s"), given(m, "mflops", "{}"), given(m, "period", "{} s"), given(m, "io-share", "{:.1%}")]  # fmt: skip

    figure, rows = _profile(plan, draw, "% of all cores")
    return Drawn("cpu-profile", "Slides: CPU utilisation profile", figure,
                 ["method", "execution time", "effective Mflops", "a Block's period", "mean CPU use", "samples under 90 %", "waiting for transfers", "published time", "published Mflops", "published period",
                  "published I/O share of a period"], rows,
                 ["CPU use is that of the process, system time included: reclaim and faults of mmap and swap count as busy. The dotted line is the papers' 90 %, under which they count a time as I/O."])  # fmt: skip


def bandwidth_profile(plan, published):
    def draw(ax, run, line):
        names = line.traffic()
        for name, c, label in zip(names, (style.BLUE, style.ORANGE), ("read", "write")):
            t, rate = line.rate(name)
            ax.plot(t, rate / 1e6, color=c, label=label, linewidth=1.1, drawstyle="steps-mid")[0].set_gid(label)
        middles, means = period_means(line, period(run))
        ax.plot(middles, means / 1e6, color=style.BLACK, label="both, mean of a Block's period", linewidth=1.0)[0].set_gid("periods")
        ax.set_ylim(0, 1.3 * ax.get_ylim()[1])  # the legend stands above the curves
        ax.legend(loc="upper right", ncols=3, frameon=True, framealpha=0.8)
        flat = bandwidth_variation(line, period(run))
        both = line.rate(*names)[1]
        return [str(run.steps), f"{line.duration_s:.1f} s", f"{both.mean() / 1e6:.0f} MB/s", f"{both.max() / 1e6:.0f} MB/s", f"{period(run):.3f} s", str(len(means)), f"{flat:.2f}" if flat is not None else "too short"]

    figure, rows = _profile(plan, draw, "MB/s", profiled_group)
    return Drawn("bandwidth-profile", "Slides: flash bandwidth profile", figure,
                 ["method", "steps", "duration", "mean read + write", "largest sample", "a Block's period", "periods from 5 to 95 %", "coefficient of variation of their means"], rows,
                 ["How flat a profile is: the coefficient of variation (standard deviation / mean) of read + write bandwidth averaged over each Block's period, from 5 to 95 % of the run. It does not depend on how "
                  "many samples fall into a Block. The scales of the panels differ. The papers' curves are not given in the text; beside them stands that aio achieves almost the maximum bandwidth of the device."])  # fmt: skip


def before_after(plan, published):
    steps, backends = ["before", "after", "tiled"], ["aio", "mmap"]
    series = {s: [cell(plan.one(backend=b, step=s), seconds) for b in backends] for s in steps}
    figure, ax = style.new(6.0, 3.2)
    style.bars(ax, backends, series, "seconds", names={"tiled": "tiled engine (ours)"})
    rows = []

    def given(name, form):
        value = published.values.get(name, {}).get("value")
        return form.format(value) if value is not None else ""

    for i, b in enumerate(backends):
        for s in steps:
            group, v = plan.one(backend=b, step=s), series[s][i]
            rows.append([b, s, show(v, "{:.2f} s"), show(over(v, series["before"][i]), "{:.2f}"), show(cell(group, mflops), "{:.0f}"), show(cell(group, period), "{:.3f} s"),
                         show(cell(group, lambda r: 100 * wait_share(r)), "{:.1f} %"), *([given(f"{b}-{s}-seconds", "{} s"), given(f"{b}-{s}-relative", "{}"), given(f"{b}-{s}-mflops", "{}"),
                         given(f"{b}-{s}-period", "{} s"), given(f"{b}-{s}-io-share", "{:.1%}")] if s != "tiled" else ["not in the papers", "", "", "", ""])])  # fmt: skip
    header = ["method", "version", "time", "relative to before", "effective Mflops", "a Block's period", "waiting"]
    return Drawn("before-after", "Slides: before and after optimisation", figure, [*header, *(f"published {h}" for h in ("time", "relative period", "Mflops", "period", "I/O share"))], rows,
                 ["memext always pads rows and shares z among its threads, so `before` differs by the shape of the iBlock alone (32 x 32 rows, as the slides' first programs); the papers' before had neither."])  # fmt: skip
