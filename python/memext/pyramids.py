# SPDX-License-Identifier: BSD-3-Clause
"""Coarse copies of an array, 2, 4 and 8 times smaller, for viewers: napari, ParaView and readers of OME-Zarr."""
from __future__ import annotations

import errno
import pathlib
from typing import Any

from .arrays import Array, Store, as_users_have, planes_of, shape_of
from .coarse import coarse_type, shapes
from .errors import MemextError
from .formats import WRITTEN, as_rows_or_planes
from .formats import open as open_any
from .replacing import check_free, name_beside, remove, replace, sync, writing
from .saving import time_of, xdmf


def pyramid(what: Any, path: Any, levels: int = 3, *, frame: bool = False, overwrite: bool = False) -> dict[str, list[Array]]:
    """Writes coarse copies, 2, 4, ... 2**levels times smaller in every dimension. Each cell is the mean of the cells that it covers. Every plane is read once.

    what: a Store (all its fields), an array, or the path of one of them. path: NAME.zarr gets a group for each field, in the form of OME-NGFF 0.4. NAME.h5
    gets the datasets FIELD/2x and so on, and files NAME-2x.xdmf for ParaView in the same directory. frame: copies of a store include its frame.
    overwrite: replaces files that exist.

    Returns {field: [the whole array, 2x, 4x, ...]}; napari shows such a list: add_image(levels["u"], multiscale=True). Raises MemextError."""
    path = pathlib.Path(path)
    if not isinstance(what, (Array, Store)):
        what = as_rows_or_planes(what, "array") if hasattr(what, "shape") else open_any(what)
    if not 1 <= levels <= 16:
        raise MemextError(f"levels={levels}: give 1 to 16", errno.EINVAL)
    if isinstance(what, Store):
        whole = {n: what.part(n, frame) for n in what.fields}
    else:
        whole = {pathlib.PurePath(what.name).stem or "array": what}
    if not whole:
        raise MemextError(f"{what.path} holds no state: {what.info['why']}")
    flat = any(array.ndim == 2 for array in whole.values())
    whole = {n: planes_of(array) for n, array in whole.items()}
    for name, array in whole.items():
        if array.dtype.kind not in "biuf":
            raise MemextError(f"{name} has cells of {array.dtype}: a pyramid needs real numbers", errno.EINVAL)
    format_ = WRITTEN.get(path.suffix.lower())
    if format_ is None or format_.pyramid is None:
        raise MemextError(f"{path}: a pyramid cannot be written in this format: end the name with .zarr, .h5 or .hdf5", errno.EINVAL)
    drawn = [] if format_.is_own_folder else [path.with_name(f"{path.stem}-{2**k}x.xdmf") for k in range(1, levels + 1)]
    for file in (path, *drawn):
        check_free(file, overwrite, next(iter(whole.values())).path)
        if file.is_dir() and not file.is_symlink() and (format_.is_own_folder is None or not format_.is_own_folder(file)):
            raise MemextError(f"{file} is a directory: name another file", errno.EISDIR)
    beside, time = name_beside(path), time_of(what) if isinstance(what, Store) else 0
    try:
        with writing(path, whole.values()):
            format_.pyramid(beside, whole, levels, flat)
            sync(beside)
        replace(beside, path, overwrite)
        for k, (file, shape) in enumerate(zip(drawn, shapes(next(iter(whole.values())), levels)), 1):
            drawn_beside = name_beside(file)
            fields = {n: (f"{n}/{2**k}x", shape_of(shape, flat), coarse_type(a)) for n, a in whole.items()}
            xdmf(drawn_beside, path.name, f"{2**k}x", 2**k, (2**k - 1) / 2, time, fields)
            replace(drawn_beside, file, overwrite)
    finally:
        remove(beside)
    return {n: [as_users_have(a, flat), *(open_any(path, f"{n}/{2**k}x") for k in range(1, levels + 1))] for n, a in whole.items()}
