# SPDX-License-Identifier: BSD-3-Clause
"""Stencil computations on grids several times larger than memory, which lie on a flash drive. See memext.Run, memext.kernel and memext.open."""
from __future__ import annotations

from . import _core
from .arrays import ACTIONS as _ACTIONS
from .arrays import Array, Store
from .errors import KernelError, MemextError, MemoryRefused, NotFinite
from .formats import open
from .kernel import Kernel, Reduced, Reduction, kernel, reduce, stages, staggered
from .looking import array_html as _array_html
from .looking import store_html as _store_html
from .looking import view
from .pyramids import pyramid
from .report import Plan, Report, timeline
from .run import Run, plan
from .saving import link, save
from .sources import ramp
from .translate import maximum, minimum, sqrt, where

_ACTIONS.update(save=save, pyramid=pyramid, link=link, array_html=_array_html, store_html=_store_html)
__version__ = _core.version()
__all__ = ["Array", "Kernel", "KernelError", "MemextError", "MemoryRefused", "NotFinite", "Plan", "Reduced", "Reduction", "Report", "Run", "Store", "info",
           "kernel", "link", "maximum", "minimum", "open", "plan", "pyramid", "ramp", "reduce", "save", "sqrt", "stages", "staggered", "timeline", "view",
           "where"]


def info(path: object = None) -> dict:
    """Returns a dict of what memext finds on this machine: processor, caches, DRAM, backends, algorithms, stencils; sizes in bytes.

    path: a directory, file or block device that is described too. Raises MemextError if it does not exist or cannot be read."""
    return _core.machine(path)  # type: ignore[arg-type]
