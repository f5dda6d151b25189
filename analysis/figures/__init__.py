# SPDX-License-Identifier: BSD-3-Clause
"""The figures: first those of the papers, in the papers' order, then memext's own, then side results of the papers.
A function reads results and returns one Drawn or several. The table below names the plan that it needs."""
from analysis.figures.beside import devices, divisions, enough, hhrt, ktable, largest, layout
from analysis.figures.cache import advice, amplification_figure, dirty, heat, heat_dirty, heat_readahead, heat_share, readahead, share
from analysis.figures.methods import fig05
from analysis.figures.sizes import fig06, fig07, fig08, fig09
from analysis.figures.slides import bandwidth_profile, before_after, cpu_profile, slides_bytes
from analysis.figures.transfers import queue, uring
from analysis.figures.tuners import fig19, fig20, fig21, fig22, fig22_components, fig24, table2
from analysis.figures.versions import fig12
from analysis.figures.wavefront import fig4w, fig7a, fig7b

# Figure -> the plan whose results it reads, and the published values that it shows.
FIGURES = (
    (fig05, "fig05", "fig05"), (slides_bytes, "fig05", "profiles"), (cpu_profile, "fig05", "profiles"), (bandwidth_profile, "fig05", "profiles"),
    (before_after, "before-after", "before-after"), (fig06, "fig06", "fig06"), (fig07, "fig07", "fig07"), (fig08, "fig07", "fig07"), (fig09, "fig07", "fig07"),
    (fig12, "fig12", "fig12"), (fig19, "fig19", "fig19"), (fig20, "fig19", "fig19"), (fig21, "fig19", "fig19"), (table2, "table2", "table2"), (fig22, "fig22", "fig22"),
    (fig22_components, "fig22", "fig22"), (fig24, "fig24", "fig24"), (uring, "uring", None), (queue, "queue", None), (advice, "advice", None),
    (amplification_figure, "advice", None), (heat, "advice", None), (readahead, "readahead", None), (heat_readahead, "readahead", None),
    (dirty, "dirty", None), (heat_dirty, "dirty", None), (share, "share", None), (heat_share, "share", None),
)  # fmt: skip
# Figures at a second scale, and side results of the papers.
MORE = (
    (fig05, "fig05-large", "fig05"), (fig07, "fig07-large", "fig07"),
    (divisions, "divisions", None), (enough, "enough", None), (largest, "largest", None), (layout, "layout", None), (devices, "devices", None), (hhrt, "hhrt", "hhrt"),
    (ktable, "ktable", "ktable"),
    (fig4w, "fig4w", "fig4w"), (fig7a, "fig7a", "fig7a"), (fig7b, "fig7b", "fig7b"),
)  # fmt: skip
