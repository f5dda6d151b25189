# SPDX-License-Identifier: BSD-3-Clause
"""Heat maps: residency of the Buffers in the page cache over time and file offset, and what the schedule needed at that moment.

The runtime looks at the residency from time to time, at most as often as it takes samples. If there are many looks, each is drawn until the next one, for HELD median distances at most. If there are few,
nobody knows what was resident between them, and each look is a column of dots at its time."""
import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.colors import Normalize
from matplotlib.patches import Patch, Rectangle

from analysis import style
from analysis.timeline import is_whole

GIB = 1 << 30
LEAST_LOOKS = 40  # a run with fewer looks is not drawn as a filled map
HELD = 3  # a look is drawn for at most this many median distances of two looks
UNSEEN = "#e8e8e8"  # times without a look
LAYERS = (("advance", style.GREEN, 0.35), ("load", style.BLUE, 0.85), ("store", style.ORANGE, 0.85), ("feed", style.SKY, 0.85), ("take", style.PINK, 0.85))
WORDS = {"advance": "computed (advance)", "load": "read (load)", "store": "written (store)", "feed": "from the initial grid (feed)", "take": "to the output (take)"}
RARE = ("feed", "take")  # in the legend only if a run has them


def rectangles(timeline, kind, buffer_gib):
    """Rectangles (x, y, width, height) of the events of a kind, in seconds and GiB of file offset."""
    planes = timeline.planes()
    least = max(timeline.duration_s / 900, 1e-6)  # thinner ones would vanish
    found = []
    for e in timeline.of_kind(kind):
        (b, t), (z0, z1) = e["t"], e["z"]
        if z1 > z0 and not is_whole(timeline, e):
            found.append((b, z0 / planes * buffer_gib, max(t - b, least), (z1 - z0) / planes * buffer_gib))
    return found


def shares(timeline, buffer_gib):
    """For steps that compute the whole grid: each thread's way through its planes, as ((begin s, end s), (from GiB, to GiB))."""
    threads = max(1, timeline.header["plan"].get("threads", 1))
    for e in timeline.of_kind("advance"):
        if is_whole(timeline, e):
            for k in range(threads):
                yield e["t"], (k / threads * buffer_gib, (k + 1) / threads * buffer_gib)


def strips(timeline, end):
    """(edges of time intervals, the number of the look that is drawn in each interval; -1: none)."""
    t = timeline.t[timeline.looks]
    held = HELD * float(np.median(np.diff(t)))
    edges, which = [t[0]], []
    for k, (begin, until) in enumerate(zip(t, [*t[1:], max(end, t[-1] + 1e-3)])):
        edges.append(min(until, begin + held))
        which.append(k)
        if until > begin + held:
            edges.append(until)
            which.append(-1)
    return np.array(edges), np.array(which)


def draw(picked):
    """picked: [(label, Timeline), ...]. Draws a row of three panels for each: needed, source, target."""
    figure, axes = style.new(style.TWO, 0.7 + 1.15 * len(picked), rows=len(picked), columns=3, squeeze=False)
    mesh = None
    for row, (label, timeline) in zip(axes, picked):
        mesh = _draw_row(row, label, timeline)
    for ax, title in zip(axes[0], ("needed by the schedule", "resident: source", "resident: target")):
        ax.set_title(title, loc="left")
    for ax in axes[-1]:
        ax.set_xlabel("seconds")
    handles = [Patch(color=c, alpha=a, label=WORDS[k]) for k, c, a in LAYERS if k not in RARE or any(line.of_kind(k) for _, line in picked)]
    handles.append(Patch(color=UNSEEN, label="not looked at"))
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - 0.25 / figure.get_figheight()))
    figure.legend(handles=handles, loc="upper left", ncols=len(handles), columnspacing=1.0, handletextpad=0.4)
    figure.colorbar(mesh, ax=axes, shrink=min(0.9, 2.5 / figure.get_figheight()), pad=0.01, label="% resident")
    return figure


def _draw_needed(ax, timeline, gib):
    for kind, colour, alpha in LAYERS:
        patches = [Rectangle((x, y), w, h) for x, y, w, h in rectangles(timeline, kind, gib)]
        collection = PatchCollection(patches, facecolor=colour, edgecolor="none", alpha=alpha, rasterized=len(patches) > 1000)
        collection.set_gid(kind)
        ax.add_collection(collection)
    for t, y in shares(timeline, gib):
        ax.plot(t, y, color=style.GREEN, linewidth=1.6).pop().set_gid("share")


def _draw_resident(ax, timeline, b, gib, end):
    """Draws one Buffer: a map if there are many looks, dots if there are few."""
    seen = timeline.residency[timeline.looks, b, :]
    edges = np.linspace(0, gib, seen.shape[1] + 1)
    name, colours = timeline.header["buffers"][b]["name"], {"cmap": style.RESIDENCY, "norm": Normalize(0, 100), "rasterized": True}
    ax.set_facecolor(UNSEEN)
    if len(seen) >= LEAST_LOOKS:
        times, which = strips(timeline, end)
        values = np.ma.masked_array(seen[which], mask=np.repeat((which < 0)[:, None], seen.shape[1], axis=1))
        found = ax.pcolormesh(times, edges, values.T, **colours)
    else:
        t, middles = np.meshgrid(timeline.t[timeline.looks], 0.5 * (edges[1:] + edges[:-1]), indexing="ij")
        found = ax.scatter(t.ravel(), middles.ravel(), c=seen.ravel(), s=2.5, marker="o", linewidths=0, **colours)
    found.set_gid(name)
    if not len(seen) or not seen.any():
        ax.text(0.5, 0.5, "nothing resident" if len(seen) else "never looked at", transform=ax.transAxes, ha="center", color=style.GREY)
    return found


def _draw_row(axes, label, timeline):
    gib = timeline.header["buffers"][0]["bytes"] / GIB
    end = max(timeline.duration_s, 1e-3)
    needed, *maps = axes
    _draw_needed(needed, timeline, gib)
    mesh = None
    for b, ax in enumerate(maps):
        mesh = _draw_resident(ax, timeline, b, gib, end)
        ax.tick_params(labelleft=False)
    for ax in axes:
        ax.grid(False)
        ax.set_xlim(0, end)
        ax.set_ylim(0, gib)
    needed.set_ylabel(f"{label}\n{int(timeline.looks.sum())} looks\noffset (GiB)", fontsize=7)
    return mesh
