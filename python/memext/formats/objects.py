# SPDX-License-Identifier: BSD-3-Clause
"""Makes Arrays of the arrays of other libraries: numpy, dask, xarray, and any object with shape, dtype and slices."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import exact
from ..arrays import Array, AsPlanes, ObjectArray, Rows, Store, as_users_have, check_mask
from ..errors import refusal
from .cf import KEYS, Cells, Decoded, array_of, order_of
from .hdf5 import dimensions_of


def of_object(value: Any, name: str) -> Array:
    """Any array of three or two dimensions, as an Array."""
    if isinstance(value, Array):
        return value
    if isinstance(value, Store):
        given = str(value.place_given)
        if not value.fields:
            raise refusal(f"{name}: the store {given} holds no state, so it has no fields: give another array")
        raise refusal(f"{name}: the store {given} has the fields {', '.join(value.fields)}: give one of them, memext.open({given!r})[{value.fields[0]!r}]")
    if hasattr(value, "data_vars"):
        raise refusal(f"{name} is a dataset with the variables {', '.join(map(str, value.data_vars))}: give one of them, dataset[NAME]")
    if not hasattr(value, "shape") or not isinstance(getattr(value, "dtype", None), np.dtype):  # lists; tensors, whose types are not numpy's
        try:
            value = exact.array_of(value, name)
        except (ValueError, TypeError) as error:
            raise refusal(f"{name} is not an array: {error}") from error
    flat = len(value.shape) == 2
    if isinstance(value, np.ma.MaskedArray) and value.ndim in (2, 3):
        check_mask(value, name, slice(0, len(value), 1), "row" if flat else "plane")
        value = value.data
    if len(value.shape) not in (2, 3):
        raise refusal(f"{name} has {len(value.shape)} dimensions: give an array of three, z, y, x, or of two, y, x")
    if any(n != n for n in value.shape):
        raise refusal(f"{name} has an extent that is not known yet: compute the sizes of its chunks (dask: a.compute_chunk_sizes())")
    if isinstance(getattr(value, "dims", None), tuple) and hasattr(value, "attrs") and hasattr(value, "encoding"):
        return _of_xarray(value, name)
    order = order_of(*_dimensions(value), name)
    if flat:
        return Rows(ObjectArray(value.reshape(len(value), 1, -1) if isinstance(value, np.ndarray) and value.size else AsPlanes(value), name))
    return ObjectArray(value, name) if order is None else array_of(value, Cells(value.dtype, {}, name, name), order, name, None)


def _dimensions(value: Any) -> tuple[list[Any], list[Any]]:
    """The names of the dimensions of a dataset of netCDF4, h5netcdf, h5py or zarr, and their attributes `axis`."""
    if type(value).__module__.partition(".")[0] == "h5py":
        return dimensions_of(value)
    names = getattr(value, "dimensions", None)
    if names is None and type(value).__module__.partition(".")[0] == "zarr":
        names = getattr(getattr(value, "metadata", None), "dimension_names", None) or dict(value.attrs).get("_ARRAY_DIMENSIONS")
    rank = len(value.shape)
    named = isinstance(names, (tuple, list)) and len(names) == rank
    return list(names) if named else [""] * rank, [None] * rank


class _Labelled:
    """The cells of a DataArray or a Variable. Only the cells that are asked for are read from its file."""

    def __init__(self, value: Any):
        self.variable, self.shape, self.dtype, self.chunks = getattr(value, "variable", value), value.shape, value.dtype, value.chunks
        self.computed = value.chunks is not None

    def __getitem__(self, key: Any) -> Any:
        found = self.variable[key].data
        return found.compute() if hasattr(found, "compute") else found


def _of_xarray(value: Any, name: str) -> Array:
    """An array of xarray. Its dimensions are ordered by their names. Attributes of the CF conventions that xarray left apply, and NaN means a cell without
    a value if xarray has replaced fill values by it."""
    attributes = {key: value.attrs[key] for key in KEYS if key in value.attrs}
    if value.dtype.kind == "f" and any(key in value.encoding for key in ("_FillValue", "missing_value")):
        attributes.setdefault("_FillValue", np.nan)
    coords = getattr(value, "coords", {})  # a Variable has none, and no name
    cells = Cells(value.dtype, attributes, str(getattr(value, "name", None) or name), name)
    axes = [coords[d].attrs.get("axis") if d in coords else None for d in value.dims]
    order, flat = order_of(value.dims, axes, name), len(value.shape) == 2
    cells.word = "row" if flat else "plane"
    source = AsPlanes(_Labelled(value)) if flat else _Labelled(value)
    return as_users_have(array_of(source if cells.plain else Decoded(source, cells, source.chunks), cells, order, name, None), flat)
