# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that lie somewhere else: in stores and files, read as far as they are asked for. memext.formats opens files as such arrays."""
from __future__ import annotations

from .base import ACTIONS, Array
from .objects import ObjectArray, PagesArray, Turned, check_mask
from .raw import RawArray, Superseded, Unchanged, moment_of, noted, recorded
from .store import FormerArray, Store

__all__ = ["ACTIONS", "Array", "FormerArray", "ObjectArray", "PagesArray", "RawArray", "Store", "Superseded", "Turned", "Unchanged", "check_mask", "moment_of", "noted",
           "recorded"]
