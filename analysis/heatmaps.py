# SPDX-License-Identifier: BSD-3-Clause
"""Residency of the Buffers in the page cache over time and file offset, beside what the schedule needed at that moment."""
import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.patches import Patch, Rectangle

from analysis import style
from analysis.timeline import is_whole

GIB = 1 << 30
LAYERS = (("advance", style.GREEN, 0.35), ("load", style.BLUE, 0.85), ("store", style.ORANGE, 0.85), ("feed", style.SKY, 0.85), ("take", style.PINK, 0.85))
RARE = ("feed", "take")  # in the legend only where a run has them


def rectangles(timeline, kind, buffer_gib):
    """(x, y, width, height) of the events of a kind: seconds, GiB of file offset."""
    planes = timeline.planes()
    least = max(timeline.duration_s / 900, 1e-6)  # thinner ones would vanish
    found = []
    for e in timeline.of_kind(kind):
        (b, t), (z0, z1) = e["t"], e["z"]
        if z1 > z0 and not is_whole(timeline, e):
            found.append((b, z0 / planes * buffer_gib, max(t - b, least), (z1 - z0) / planes * buffer_gib))
    return found


def shares(timeline, buffer_gib):
    """Of steps that compute the whole grid: ((begin s, end s), (from GiB, to GiB)) of every thread's way through its planes."""
    threads = max(1, timeline.header["plan"].get("threads", 1))
    for e in timeline.of_kind("advance"):
        if is_whole(timeline, e):
            for k in range(threads):
                yield e["t"], (k / threads * buffer_gib, (k + 1) / threads * buffer_gib)


def draw(picked):
    """picked: [(label, Timeline), ...]. A row each, of three panels: needed, source, target."""
    figure, axes = style.new(7.4, 0.55 + 1.45 * len(picked), rows=len(picked), columns=3, squeeze=False)
    mesh = None
    for row, (label, timeline) in zip(axes, picked):
        mesh = _draw_row(row, label, timeline)
    for ax, title in zip(axes[0], ("needed by the schedule", "resident: source", "resident: target")):
        ax.set_title(title, loc="left")
    for ax in axes[-1]:
        ax.set_xlabel("seconds")
    handles = [Patch(color=c, alpha=a, label=k) for k, c, a in LAYERS if k not in RARE or any(line.of_kind(k) for _, line in picked)]
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - 0.3 / figure.get_figheight()))
    figure.legend(handles=handles, loc="upper left", ncols=3)
    figure.colorbar(mesh, ax=axes, shrink=min(0.9, 2.5 / figure.get_figheight()), pad=0.01, label="% resident")
    return figure


def _draw_row(axes, label, timeline):
    gib = timeline.header["buffers"][0]["bytes"] / GIB
    end = max(timeline.duration_s, 1e-3)
    needed, *maps = axes
    for kind, colour, alpha in LAYERS:
        patches = [Rectangle((x, y), w, h) for x, y, w, h in rectangles(timeline, kind, gib)]
        collection = PatchCollection(patches, facecolor=colour, edgecolor="none", alpha=alpha, rasterized=len(patches) > 1000)
        collection.set_gid(kind)
        needed.add_collection(collection)
    for t, y in shares(timeline, gib):
        needed.plot(t, y, color=style.GREEN, linewidth=2).pop().set_gid("share")
    edges = np.linspace(0, gib, timeline.residency.shape[2] + 1)
    t = timeline.t
    times = np.concatenate([t, [max(end, t[-1] + 1e-3)]])
    mesh = None
    for b, ax in enumerate(maps):
        mesh = ax.pcolormesh(times, edges, timeline.residency[:, b, :].T, cmap=style.RESIDENCY, vmin=0, vmax=100, rasterized=True)
        mesh.set_gid(timeline.header["buffers"][b]["name"])
        ax.tick_params(labelleft=False)
        if not timeline.residency[:, b, :].any():
            ax.text(0.5, 0.5, "nothing", transform=ax.transAxes, ha="center", color=style.GREY)
    for ax in axes:
        ax.grid(False)
        ax.set_xlim(0, end)
        ax.set_ylim(0, gib)
        ax.tick_params(labelsize=7)
    needed.set_ylabel(f"{label}\noffset, GiB", fontsize=8)
    return mesh
