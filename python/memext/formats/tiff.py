# SPDX-License-Identifier: BSD-3-Clause
"""TIFF by tifffile: planes in the order of its series, which is OME's, ImageJ's or the pages'."""
from __future__ import annotations

import math
import pathlib
import re
import struct
from typing import Any

import numpy as np

from ..arrays import Array, ObjectArray, PagesArray, RawArray, Turned
from ..errors import refusal
from .cf import Cells, order_of
from .modules import module
from .plain import check_length

_NODATA, _GDAL_METADATA = 42113, 42112


def tiff(path: pathlib.Path, dataset: str | None = None, **_: Any) -> Array:
    """A stack of pages in one file, or in those that OME's description names."""
    if dataset is not None:
        raise refusal(f"{path} is one array and has none that is called {dataset}: leave the name out")
    file = module("tifffile", path).TiffFile(path)
    _check_chain(file, path)
    series = _series(file, path)
    shape, axes = series.shape, series.axes
    page = series.keyframe
    cells = _cells(file, page, path)
    plane = tuple(page.shape)
    if len(plane) != 2:
        raise refusal(f"{path}: its pages have the shape {plane}, {page.axes}: images with one number a pixel are needed")
    outer = math.prod(shape) // max(1, math.prod(plane))
    leading = [n for n in shape[:-2] if n > 1]
    if math.prod(shape) != outer * math.prod(plane) or len(leading) > 1:
        raise refusal(f"{path} has {len(shape)} dimensions, {axes}: write one stack of images into a file of its own")
    if (said := _images_said(file, plane)) > outer:
        raise refusal(f"{path} says that it has {said} images, and {outer} are in it: it is cut short, or others are in files that are not here")
    order = order_of(axes, [None] * 3, f"{path}") if len(shape) == 3 else None
    pages = series.pages
    if len(pages) == 1 and outer > 1:  # ImageJ's way beyond 4 GiB: one page says where all of them lie, one behind the other
        if series.dataoffset is None:
            raise refusal(f"{path}: one page stands for {outer} planes, which do not lie one behind the other")
        array: Array = check_length(RawArray(path, (outer, *plane), page.dtype.newbyteorder(file.byteorder), series.dataoffset))
        if not cells.plain:
            return PagesArray(array.shape, array.dtype, lambda z: _values(cells, array.plane(z), z), path.name, path)
        if order is None:
            file.close()
    else:
        if len(pages) != outer:
            raise refusal(f"{path} has {len(pages)} pages of {outer} planes: the others are in other files")
        if any(p is None for p in pages):
            at = next(z for z, p in enumerate(pages) if p is None)
            raise refusal(f"{path}: plane {at} is in no file that is there: its description names {outer} planes")
        array = PagesArray((outer, *plane), page.dtype, lambda z: _page(pages[z], cells, z, path), path.name, path)
    return array if order is None else ObjectArray(Turned(array, order), path.name, path, deep=array.shape[order[0]])


def _check_chain(file: Any, path: Any) -> None:
    """Each page says where the next one is described. tifffile ends without a word where that is beyond the end of the file."""
    handle, form, size = file.filehandle, file.tiff, file.filehandle.size
    place, seen = 8 if form.version == 43 else 4, set()
    while True:
        handle.seek(place)
        at, = struct.unpack(form.offsetformat, handle.read(form.offsetsize).ljust(form.offsetsize, b"\0"))
        if at == 0 or at in seen:
            return
        seen.add(at)
        if at + form.tagnosize <= size:
            handle.seek(at)
            place = at + form.tagnosize + struct.unpack(form.tagnoformat, handle.read(form.tagnosize))[0] * form.tagsize
        if at + form.tagnosize > size or place + form.offsetsize > size:
            raise refusal(f"{path}: page {len(seen) - 1} is described at byte {at}, and the file ends at byte {size}: it is cut short")


def _images_said(file: Any, plane: tuple[int, ...]) -> int:
    """As many as ImageJ, OME or tifffile have written down; 0 where none has."""
    if file.is_imagej:
        return int((file.imagej_metadata or {}).get("images", 0))
    if file.is_ome:
        counts = [re.search(f'<(?:\\w+:)?Pixels[^>]*\\bSize{axis}="(\\d+)"', file.ome_metadata or "") for axis in "ZCT"]
        return math.prod(int(found[1]) if found else 0 for found in counts)
    shapes = [one.get("shape") for one in file.shaped_metadata or ()]
    return math.prod(shapes[0]) // max(1, math.prod(plane)) if shapes and shapes[0] else 0


def _series(file: Any, path: Any) -> Any:
    """The only one, of images of one size and type."""
    if len(file.series) != 1:
        raise refusal(f"{path}: its pages are not images of one size with one number a pixel: tifffile finds {len(file.series)} series in it")
    series = file.series[0]
    if getattr(series, "transform", None) is not None:
        raise refusal(f"{path}: tifffile computes its values from those of the pages ({series.kind}): write them into a file of their own")
    return series


def _cells(file: Any, page: Any, path: Any) -> Cells:
    """What tags say of values: GDAL's NODATA is honoured, and what turns numbers into others is refused."""
    imagej = file.imagej_metadata or {}
    if "cf" in imagej and (imagej.get("c0", 0), imagej.get("c1", 1)) != (0, 1):
        raise refusal(f"{path}: ImageJ's calibration (cf, c0 = {imagej.get('c0')}, c1 = {imagej.get('c1')}) makes other values of its numbers: write them as 32 bits")
    tags = page.tags
    if _GDAL_METADATA in tags:
        for role, number in re.findall(r'role="(scale|offset)"[^>]*>([^<]*)<', str(tags[_GDAL_METADATA].value)):
            if number.strip() not in (("1", "1.0") if role == "scale" else ("0", "0.0")):
                raise refusal(f"{path}: GDAL_METADATA has a {role} of {number.strip()}, which makes other values of its numbers: apply it (gdal_translate -unscale)")
    attributes = {}
    if _NODATA in tags:
        text = str(tags[_NODATA].value).strip().rstrip("\0")
        try:
            attributes["_FillValue"] = float(text) if not re.fullmatch(r"[-+]?\d+", text) else int(text)
        except ValueError:
            raise refusal(f"{path}: GDAL_NODATA is '{text}', which is no number") from None
    return Cells(page.dtype, attributes, "NODATA" if attributes else pathlib.Path(path).name, path)


def _values(cells: Cells, plane: np.ndarray, z: int) -> np.ndarray:
    return cells.values(plane[None], z)[0]


def _page(page: Any, cells: Cells, z: int, path: Any) -> np.ndarray:
    """Strips and tiles that are not in the file read as 0."""
    size, where = page.parent.filehandle.size, page.parent.filehandle.path
    for offset, count in zip(page.dataoffsets, page.databytecounts):
        if count == 0 or offset == 0:
            raise refusal(f"{path}: plane {z} has strips or tiles that were never written: fill them in a copy")
        if offset + count > size:
            raise refusal(f"{where}: plane {z} has a strip or tile that ends at byte {offset + count}, and the file ends at byte {size}: it is cut short")
    return _values(cells, page.asarray(), z)


def tiffs(paths: list[str], path: Any) -> Array:
    """A file for every plane."""
    tifffile = module("tifffile", path)

    def plane(z: int) -> np.ndarray:
        with tifffile.TiffFile(paths[z]) as file:
            _check_chain(file, paths[z])
            if len(file.pages) > 1 and len(_series(file, paths[z]).pages) != 1:
                raise refusal(f"{paths[z]} has {len(file.pages)} pages: a file for each plane is needed")
            series = _series(file, paths[z])
            page = series.keyframe
            if len(page.shape) != 2 or math.prod(series.shape) != math.prod(page.shape):
                raise refusal(f"{paths[z]} has {len(series.shape)} dimensions: a file for each plane is needed")
            return _page(series.pages[0], _cells(file, page, paths[z]), z, paths[z])
    first = plane(0)
    return PagesArray((len(paths), *first.shape), first.dtype, plane, pathlib.Path(path).name, paths[0])
