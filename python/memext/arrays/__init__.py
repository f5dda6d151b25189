# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that lie in stores and files. Only the parts that a program asks for are read. memext.formats opens files as such arrays."""
from __future__ import annotations

from .base import ACTIONS, Array
from .objects import ObjectArray, PagesArray, Turned, check_mask
from .raw import RawArray, Superseded, Unchanged, moment_of, noted, recorded
from .rows import AsPlanes, Onto, Rows, as_users_have, planes_of, shape_of
from .store import FormerArray, Store

__all__ = ["ACTIONS", "Array", "AsPlanes", "FormerArray", "ObjectArray", "Onto", "PagesArray", "RawArray", "Rows", "Store", "Superseded", "Turned", "Unchanged",
           "as_users_have", "check_mask", "moment_of", "noted", "planes_of", "recorded", "shape_of"]
