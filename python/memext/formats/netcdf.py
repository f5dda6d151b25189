# SPDX-License-Identifier: BSD-3-Clause
"""Reads NetCDF, by the first of netCDF4, h5netcdf and h5py that is installed. Their own conversions are turned off; cf.py interprets the cells."""
from __future__ import annotations

import errno
import pathlib
from typing import Any, NamedTuple

from ..arrays import Array, AsPlanes, RawArray, as_users_have
from ..errors import refusal
from .cf import KEYS, Cells, Decoded, array_of, order_of
from .hdf5 import attributes_of, check_sources, check_written, dimensions_of, filled, raw_dataset
from .modules import choose, module
from .netcdf3 import check_classic


class _Variable(NamedTuple):
    source: Any
    attributes: dict[str, Any]
    chunks: Any
    names: list[str]
    axes: list[Any]
    filled: bool | None  # with a value for cells that nobody wrote; None: this reader does not say


def netcdf(path: pathlib.Path, dataset: str | None = None, rank: int | None = None, **_: Any) -> Array:
    """Opens a variable of three or two dimensions, or NAME[STEP] of a variable that has one more dimension, its first. Contiguous variables of HDF5 files
    are read from the file directly."""
    try:
        file, variables = _open(path)
    except OSError as error:
        raise refusal(f"{path} cannot be read as NetCDF: {error}", error.errno if error.errno and error.errno > 0 else errno.EINVAL) from None
    try:
        return _found(file, variables, path, dataset, rank)
    except BaseException:
        file.close()  # it would stay locked
        raise


class _Chunked:
    """A variable with the dimensions y and x."""

    def __init__(self, variable: _Variable):
        self.source, self.dtype, self.shape = variable.source, variable.source.dtype, tuple(variable.source.shape)
        self.chunks = tuple(variable.chunks) if variable.chunks else None

    def __getitem__(self, key: tuple) -> Any:
        return self.source[key]


class _AtStep:
    """One step of a variable with the dimensions time, y and x."""

    def __init__(self, variable: _Variable, index: int):
        self.source, self.index, self.dtype, self.shape = variable.source, index, variable.source.dtype, tuple(variable.source.shape[1:])
        self.chunks = tuple(variable.chunks[1:]) if variable.chunks else None

    def __getitem__(self, key: tuple) -> Any:
        return self.source[(self.index, *key)]


def _found(file: Any, variables: dict[str, _Variable], path: pathlib.Path, dataset: str | None, rank: int | None) -> Array:
    wanted, index = dataset, None
    if dataset is not None and dataset not in variables and dataset.endswith("]") and "[" in dataset:
        wanted, _, step = dataset[:-1].rpartition("[")
        index = int(step) if step.isdigit() else -1
    ranks = {n: len(v.source.shape) for n, v in variables.items()}
    if wanted in ranks and ranks[wanted] == 4 and index is None:
        steps = variables[wanted].source.shape[0]
        if steps != 1:
            raise refusal(f"{path}: {wanted} has four dimensions: name one of its {steps} steps, as in open(path, '{wanted}[0]')")
        index = 0
    if index is None:
        name = choose(ranks, wanted, path, rank)
    else:
        name = choose({n: r - 1 for n, r in ranks.items()}, wanted, path, rank)
        if not 0 <= index < variables[name].source.shape[0]:
            raise refusal(f"{path}: {dataset} does not exist: {name} has the steps 0 to {variables[name].source.shape[0] - 1}")
    v = variables[name]
    cells = Cells(v.source.dtype, v.attributes, name, path, True, _is_filled(path, name) if v.filled is None else v.filled)
    count = ranks[name] - (index is not None)
    order, flat = order_of(v.names[-count:], v.axes[-count:], f"{path}: {name}"), count == 2
    cells.word = "row" if flat else "plane"
    in_file = _in_hdf5(path, name, cells, index is None)
    if in_file is not None:
        file.close()
        return as_users_have(in_file if cells.plain and order is None else array_of(Decoded(in_file, cells), cells, order, name, path), flat)
    if not flat:
        return array_of(Decoded(v.source, cells, v.chunks, index), cells, order, name, path, file)
    stored = AsPlanes(_AtStep(v, index) if index is not None else _Chunked(v))
    source = Decoded(stored, cells, stored.chunks)
    source.name = name if index is None else f"{name}[{index}]"
    return as_users_have(array_of(source, cells, None, name, path, file), True)


def _open(path: pathlib.Path) -> tuple[Any, dict[str, _Variable]]:
    for reader in (_by_netcdf4, _by_h5netcdf):
        try:
            return reader(path)
        except ImportError:
            pass
    h5py = module("h5py", path)
    if not h5py.is_hdf5(path):
        raise refusal(f"{path} is not a NetCDF4 file; an older one needs the package netCDF4: pip install netCDF4", errno.ENOTSUP) from None
    file = h5py.File(path, "r")
    found: dict[str, _Variable] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            found[name] = _Variable(item, attributes_of(item), item.chunks, *dimensions_of(item), filled(item))
    file.visititems(visit)
    return file, found


def _by_netcdf4(path: pathlib.Path) -> tuple[Any, dict[str, _Variable]]:
    import netCDF4
    check_classic(path)
    file = netCDF4.Dataset(path, "r")
    file.set_auto_maskandscale(False)
    found: dict[str, _Variable] = {}

    def axis(group: Any, name: str) -> Any:
        while group is not None:
            if name in group.variables:
                return getattr(group.variables[name], "axis", None)
            group = group.parent
        return None

    def fill(v: Any) -> bool | None:
        """Was the variable filled? In classic files it always was."""
        if not file.data_model.startswith("NETCDF4"):
            return True
        return v.get_fill_value() is not None if hasattr(v, "get_fill_value") else None

    def visit(group: Any, before: str) -> None:
        for name, v in group.variables.items():
            chunks = v.chunking() if file.data_model.startswith("NETCDF4") else None
            if chunks not in (None, "contiguous"):
                v.set_var_chunk_cache(1 << 20)  # chunks are read once, in groups of their own; its default is 64 MiB for each variable
            found[before + name] = _Variable(v, {k: v.getncattr(k) for k in v.ncattrs() if k in KEYS}, None if chunks in (None, "contiguous") else chunks,
                                             list(v.dimensions), [axis(group, d) for d in v.dimensions], fill(v))
        for name, inner in group.groups.items():
            visit(inner, f"{before}{name}/")
    visit(file, "")
    return file, found


def _by_h5netcdf(path: pathlib.Path) -> tuple[Any, dict[str, _Variable]]:
    import h5netcdf
    file = h5netcdf.File(path, "r")
    found: dict[str, _Variable] = {}
    for name, v in file.variables.items():
        axes = [file.variables[d].attrs.get("axis") if d in file.variables else None for d in v.dimensions]
        found[name] = _Variable(v, {k: v.attrs[k] for k in KEYS if k in v.attrs}, v.chunks, list(v.dimensions), axes, None)
    return file, found


def _is_filled(path: pathlib.Path, name: str) -> bool:
    """Was the variable filled? True if h5py, which could tell, is not installed."""
    try:
        import h5py
    except ImportError:
        return True
    with h5py.File(path, "r") as file:
        return filled(file[name])


def _in_hdf5(path: pathlib.Path, name: str, cells: Cells, in_place: bool) -> RawArray | None:
    """A variable of an HDF5 file that is read directly from its place; None if it is not one plain piece. If h5py is installed, its chunks and sources are
    checked."""
    try:
        import h5py
    except ImportError:
        return None
    if not h5py.is_hdf5(path):
        return None
    with h5py.File(path, "r") as file:
        data = file[name]
        check_sources(data, name, path)
        made = raw_dataset(data, name, path) if in_place else None
        if made is None and cells.plain:
            check_written(data, name, path, cells)
        return made
