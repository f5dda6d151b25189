# SPDX-License-Identifier: BSD-3-Clause
"""Coarse copies of an array, 2, 4 and 8 times smaller, for those who look at it: napari, ParaView and what reads OME-Zarr."""
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
    """Writes coarse copies of a store's fields, of an array, or of a file of one, 2, 4, ... 2**levels times smaller in x, y and z, each cell the mean
    of those that it stands for; every plane is read once, and little of it held. .zarr: a group for each field, as OME-NGFF wants it; .h5: FIELD/2x ...
    and NAME-2x.xdmf ... beside it, which ParaView opens, each at its place. frame: with the frame of a store.

    Returns {field: [all of it, 2x, 4x, ...]}: napari takes such a list as it is, add_image(levels["u"], multiscale=True)."""
    path = pathlib.Path(path)
    if not isinstance(what, (Array, Store)):
        what = as_rows_or_planes(what, "array") if hasattr(what, "shape") else open_any(what)
    if not 1 <= levels <= 16:
        raise MemextError(f"{levels} levels of a pyramid: 1 to 16", errno.EINVAL)
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
            raise MemextError(f"{name} has cells of {array.dtype}; pyramids are of real numbers", errno.EINVAL)
    format_ = WRITTEN.get(path.suffix.lower())
    if format_ is None or format_.pyramid is None:
        raise MemextError(f"{path}: the ending says how to write a pyramid: .zarr, .h5 or .hdf5", errno.EINVAL)
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
