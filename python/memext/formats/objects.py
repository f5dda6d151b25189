# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of other libraries as ours: numpy's, dask's, xarray's, and whatever has shape, dtype and slices."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array, ObjectArray, check_mask
from ..errors import refusal
from .cf import KEYS, Cells, Decoded, array_of, order_of


def of_object(value: Any, name: str) -> Array:
    """Any three-dimensional array as one of ours."""
    if isinstance(value, Array):
        return value
    if hasattr(value, "data_vars"):
        raise refusal(f"{name} is a dataset of {', '.join(map(str, value.data_vars))}: name one of them")
    if not hasattr(value, "shape") or not isinstance(getattr(value, "dtype", None), np.dtype):  # lists; tensors, whose types are not numpy's
        try:
            value = np.asarray(value)
        except (ValueError, TypeError) as error:
            raise refusal(f"{name} is no array: {error}") from error
    if isinstance(value, np.ma.MaskedArray) and value.ndim == 3:
        check_mask(value, name, slice(0, len(value), 1))
        value = value.data
    if len(value.shape) != 3:
        raise refusal(f"{name} has {len(value.shape)} dimensions: a grid has three, z, y, x")
    if any(n != n for n in value.shape):
        raise refusal(f"{name} has an extent that is not known yet: compute its chunks' sizes (dask: a.compute_chunk_sizes())")
    return _of_xarray(value, name) if hasattr(value, "dims") and hasattr(value, "variable") else ObjectArray(value, name)


class _Labelled:
    """A DataArray's cells; what lies in a file is read as far as it is asked for."""

    def __init__(self, value: Any):
        self.variable, self.shape, self.dtype, self.chunks = value.variable, value.shape, value.dtype, value.chunks
        self.computed = value.chunks is not None

    def __getitem__(self, key: Any) -> Any:
        found = self.variable[key].data
        return found.compute() if hasattr(found, "compute") else found


def _of_xarray(value: Any, name: str) -> Array:
    """Its dimensions by their names; what of the CF conventions its attributes still say, and cells that xarray left without a value."""
    attributes = {key: value.attrs[key] for key in KEYS if key in value.attrs}
    if value.dtype.kind == "f" and any(key in value.encoding for key in ("_FillValue", "missing_value")):
        attributes.setdefault("_FillValue", np.nan)
    cells = Cells(value.dtype, attributes, str(value.name or name), name)
    axes = [value.coords[d].attrs.get("axis") if d in value.coords else None for d in value.dims]
    order = order_of(value.dims, axes, name)
    source = _Labelled(value)
    return array_of(source if cells.plain else Decoded(source, cells, value.chunks), cells, order, name, None)
