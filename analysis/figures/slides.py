# SPDX-License-Identifier: BSD-3-Clause
"""The slides: bytes, profiles of CPU and flash, and times before and after the optimisation."""
import numpy as np

from analysis import style
from analysis.cells import METHODS, NOT_GIVEN, ONE_RUN, Drawn, Rounds, cell, ratio, show
from analysis.measures import GIB, gib, mflops, moved_read, moved_write, seconds, wait_share, written_with_both_buffers
from analysis.seen import bandwidth_variation, cached_timeline, period, period_means, seen
from analysis.timeline import USEFUL


def _of_aio(published, methods, what):
    """[(published value of a method / aio's, paper) | None]."""
    def given(m):
        return published.values.get(f"{m}-{what}", {}).get("value")

    return [(given(m) / given("aio"), published.paper(f"{m}-{what}")) if given(m) else None for m in methods]


def slides_bytes(plan, published):
    """The slides compare the bytes of the methods, so the figure draws the bytes of each method / of aio."""
    groups = {m: plan.one(method=m, temporal=True) for m in ("aio", "uring", "mmap", "swap") if plan.select(method=m)}
    others, rounds = [m for m in groups if m != "aio"], Rounds()
    ways = {"read": moved_read, "written, with the initial grid": written_with_both_buffers}
    series = {name: rounds.row(ratio(groups[m], groups.get("aio"), of) for m in others) for name, of in ways.items()}
    marks = {name: _of_aio(published, others, what) for name, what in zip(ways, ("read-gib", "write-gib"))}
    figure, ax = style.new(style.ONE, 2.4)
    style.dots(ax, [METHODS[m] for m in others], series, "bytes moved on storage / aio's", published=marks, base="aio", names={"written, with the initial grid": "written, initial grid too"})
    style.legend_above(figure, ax)
    rows = []
    for m, group in groups.items():
        read, wrote = cell(group, gib(moved_read)), cell(group, gib(moved_write))
        needed = group.first(lambda r: r.needed_bytes) if group and group.done else None
        given = [published.values.get(f"{m}-{way}-gib", {}).get("value") for way in ("read", "write")]
        rows.append([m, show(read), show(wrote), f"{needed[0] / GIB:.3f} + {needed[1] / GIB:.3f}" if needed else "", show(ratio(group, groups.get("aio"), moved_read)),
                     *[g if g is not None else "not in the papers" for g in given], f"{given[0] / published.value('aio-read-gib'):.2f}" if given[0] else ""])  # fmt: skip
    notes = ["The papers' written bytes contain the initial grid. memext's contain it in the figure, but not in the table. The process counts bytes read (swap: swapped in), and the block device counts bytes written (swap: swapped out). "
             "At the end of a run, mmap leaves dirty pages in the page cache. Its counter stops with the stencil phase, so it does not have them."]  # fmt: skip
    return rounds.finish(Drawn("slides-bytes", "Slides: bytes read and written, relative to aio", figure,
                               ["method", "read GiB", "written GiB", "needed GiB (read + written)", "read, relative to aio", "published read GiB", "published written GiB", "published read, relative to aio"], rows, notes))  # fmt: skip


PROFILED = ("aio", "mmap", "swap")
PROFILE_OF = "Each profile shows one run: the one with the median time of the n runs in its title"


def _median_run(group):
    """The run of median time, among those with a timeline."""
    runs = sorted((r for r in group.done if r.timeline_path), key=seconds) if group else []
    return runs[(len(runs) - 1) // 2] if runs else None


def _lacks(group):
    """Why there is no profile; "" if there is one."""
    if group is None or not group.done:
        return group.failure if group and group.failure else "not run"
    return f"not drawn: {ONE_RUN}" if len(group.done) < 2 else "no timeline" if _median_run(group) is None else ""


def _profiles(axes, groups, draw, unit, top=None):
    """Draws a panel for each method, all with the same axes. Returns how many methods have a single run."""
    longest, highest = 0.0, 0.0
    for ax, (m, group) in zip(axes, groups.items()):
        ax.set_ylabel(unit)
        why = _lacks(group)
        took = group.stat(seconds) if group else None
        spread = f" ({took.low:.1f} to {took.high:.1f}, n = {took.n})" if took and took.n > 1 else ""
        ax.set_title(f"{m}: {_median_run(group).steps} steps in {took.median:.1f} s{spread}" if not why else m, loc="left")
        if why:
            ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center")
            continue
        line = cached_timeline(_median_run(group))
        highest, longest = max(highest, draw(ax, _median_run(group), line)), max(longest, line.duration_s)
    for ax in axes:
        ax.set_xlim(0, longest or 1.0)
        ax.set_ylim(0, top or 1.05 * highest or 1.0)
        ax.tick_params(labelbottom=ax is axes[-1])
    axes[-1].set_xlabel("seconds since the start of the stencil phase")
    return sum(len(g.done) == 1 for g in groups.values() if g)


def _finish(rounds, drawn, single, drawn_profiles):
    """Rounds.finish for profiles, which are curves of one run and have their n in their titles."""
    rounds.single += single
    if not drawn_profiles and not rounds.counts:
        return rounds.finish(drawn)
    rounds.failures += 1  # there are profiles, even if the panels beside them are empty
    return rounds.finish(drawn, PROFILE_OF)


def _cpu_rows(plan, published, groups, cores):
    def given(method, what, form):
        value = published.values.get(f"{method}-{what}", {}).get("value")
        return form.format(value) if value is not None else NOT_GIVEN

    for m, group in groups.items():
        run = _median_run(group)
        if run is not None:
            busy = cached_timeline(run).cpu(cores)[1]
            yield [m, show(cell(group, seconds), "{:.2f} s"), show(cell(group, mflops), "{:.0f}"), show(cell(group, period), "{:.3f} s"), f"{100 * busy.mean():.0f} %", f"{(busy < 0.9).mean():.1%}",
                   show(cell(group, lambda r: 100 * wait_share(r)), "{:.1f} %"), given(m, "seconds", "{} s"), given(m, "mflops", "{}"), given(m, "period", "{} s"), given(m, "io-share", "{:.1%}")]  # fmt: skip


def cpu_profile(plan, published):
    """The profiles, and beside them what the slides read from their profiles: time relative to aio, and the share of time with idle cores."""
    cores = plan.sessions[-1]["machine"].get("cores", 1) if plan.sessions else 1
    groups, rounds = {m: plan.one(method=m, temporal=True) for m in PROFILED}, Rounds()

    def draw(ax, run, line):
        t, busy = line.cpu(cores)
        ax.fill_between(t, 0, 100 * np.clip(busy, 0, 1.2), step="mid", color=style.SKY, linewidth=0).set_gid("cpu")
        ax.axhline(90, color=style.BLACK, linewidth=0.8, linestyle=":")
        return 100.0

    figure = style.plt.figure(figsize=(style.TWO, 3.9), layout="constrained")
    grid = figure.add_gridspec(1, 2, width_ratios=(2.0, 1))
    axes = grid[0, 0].subgridspec(3, 1).subplots()
    single = _profiles(axes, groups, draw, "% of all cores", 110)
    times, shares = grid[0, 1].subgridspec(2, 1).subplots()
    style.dots(times, PROFILED[1:], {"time": rounds.row(ratio(groups[m], groups["aio"], seconds) for m in PROFILED[1:])}, "time / aio's", published={"time": _of_aio(published, PROFILED[1:], "seconds")}, names={"time": "measured here"})
    io = [cell(plan.one(method=m, temporal=True), lambda r: 100 * v if (v := seen(r).get("io_share")) is not None else None) for m in PROFILED]
    given = [(100 * published.value(f"{m}-io-share"), published.paper(f"{m}-io-share")) for m in PROFILED]
    style.dots(shares, PROFILED, {"time": rounds.row(io)}, "% of the time under\n90 % of the cores", published={"time": given}, value_format="{:.0f}", names={"time": "measured here"})
    style.legend_above(figure, times, shares)
    drawn = Drawn("cpu-profile", "Slides: CPU utilisation profile", figure,
                  ["method", "execution time", "effective Mflops", "a Block's period", "mean CPU use", "samples under 90 %", "waiting for transfers", "published time", "published Mflops", "published period",
                   "published I/O share of a period"], list(_cpu_rows(plan, published, groups, cores)),
                  ["CPU use is that of the process, system time included: reclaim and faults of mmap and swap count as busy. The dotted line is at 90 %. The papers count the time below this line as I/O.",
                   "The published values are those of the slides' first programs, with an iBlock of 32 x 32 rows. These runs have the tuned iBlock. The findings compare the published values with runs that have an iBlock of 32 x 32 rows (fig05-large).", f"{PROFILE_OF}."])  # fmt: skip
    return _finish(rounds, drawn, single, any(not _lacks(g) for g in groups.values()))


def bandwidth_profile(plan, published):
    groups, rounds = {m: plan.one(method=m, temporal=True) for m in PROFILED}, Rounds()

    def draw(ax, run, line):
        highest = 0.0
        for name, c, label in zip(line.traffic(), (style.BLUE, style.ORANGE), ("read", "written")):
            t, rate = line.rate(name)
            ax.plot(t, rate / 1e6, color=c, label=label, linewidth=0.9, drawstyle="steps-mid")[0].set_gid(label)
            highest = max(highest, *(rate / 1e6))
        middles, means = period_means(line, period(run))
        ax.plot(middles, means / 1e6, color=style.BLACK, label="useful bytes both ways, by Block's period", linewidth=1.0)[0].set_gid("periods")
        return max(highest, *(means / 1e6)) if len(means) else highest

    figure, axes = style.new(style.TWO, 3.9, rows=3)
    single = _profiles(axes, groups, draw, "MB/s")
    style.legend_above(figure, *axes)
    rows = []
    for m, group in groups.items():
        run = _median_run(group)
        if run is not None:
            line = cached_timeline(run)
            means = [f"{line.rate(*names)[1].mean() / 1e6:.0f} MB/s" for names in (*((name,) for name in line.traffic()), USEFUL)]
            flat = cell(group, lambda r: bandwidth_variation(cached_timeline(r), period(r)) if r.timeline_path else None)
            rows.append([m, str(run.steps), f"{line.duration_s:.1f} s", *means, f"{line.rate(*line.traffic())[1].max() / 1e6:.0f} MB/s", f"{period(run):.3f} s", str(len(period_means(line, period(run))[1])), show(flat, "{:.2f}") if not isinstance(flat, style.Gap) else "too short"])
    drawn = Drawn("bandwidth-profile", "Slides: flash bandwidth profile", figure,
                  ["method", "steps", "duration", "mean, read", "mean, written", "mean, useful bytes", "largest sample, read + written", "a Block's period", "periods from 5 to 95 %", "coefficient of variation of their means"], rows,
                  ["Useful bytes go into Blocks and out of them. What Linux reads without need is not among them. The last column says how flat a profile is. It is the coefficient of variation (standard deviation / mean) of the useful bandwidth, both ways, averaged over each Block's period, from 5 to 95 % of the run. It does not depend on how "
                   "many samples fall into a Block. The slides draw their curves without numbers, and say that aio achieves almost the maximum bandwidth of the device.", f"{PROFILE_OF}."])  # fmt: skip
    return _finish(rounds, drawn, single, any(not _lacks(g) for g in groups.values()))


VERSIONS = {"after": "after", "tiled": "tiled engine (memext)"}


def before_after(plan, published):
    backends, rounds = ["aio", "mmap"], Rounds()

    def given(name, form):
        value = published.values.get(name, {}).get("value")
        return form.format(value) if value is not None else ""

    series = {s: rounds.row(ratio(plan.one(backend=b, step=s), plan.one(backend=b, step="before"), seconds) for b in backends) for s in VERSIONS}
    marks = {"after": [(published.value(f"{b}-after-relative"), published.paper(f"{b}-after-relative")) for b in backends]}
    figure, ax = style.new(style.ONE, 2.3)
    style.dots(ax, backends, series, "time / time before", names=VERSIONS, published=marks, base="before the optimisation")
    style.legend_above(figure, ax)
    rows = []
    for b in backends:
        for s in ("before", *VERSIONS):
            group = plan.one(backend=b, step=s)
            rows.append([b, s, show(cell(group, seconds), "{:.2f} s"), show(ratio(group, plan.one(backend=b, step="before"), seconds), "{:.2f}"), show(cell(group, mflops), "{:.0f}"), show(cell(group, period), "{:.3f} s"),
                         show(cell(group, lambda r: 100 * wait_share(r)), "{:.1f} %"), *([given(f"{b}-{s}-seconds", "{} s"), given(f"{b}-{s}-relative", "{}"), given(f"{b}-{s}-mflops", "{}"),
                         given(f"{b}-{s}-period", "{} s"), given(f"{b}-{s}-io-share", "{:.1%}")] if s != "tiled" else ["not in the papers", "", "", "", ""])])  # fmt: skip
    header = ["method", "version", "time", "relative to before", "effective Mflops", "a Block's period", "waiting"]
    return rounds.finish(Drawn("before-after", "Slides: time after the optimisation, relative to before", figure, [*header, *(f"published {h}" for h in ("time", "relative period", "Mflops", "period", "I/O share"))], rows,
                               ["memext always pads rows and shares z among its threads. So `before` differs from `after` by the shape of the iBlock alone (32 x 32 rows, as in the slides' first programs). The papers' programs before the optimisation neither padded rows nor shared z."]))  # fmt: skip
