# SPDX-License-Identifier: BSD-3-Clause
"""Reads TIFF, by tifffile. Planes have the order of its series: that of OME, of ImageJ, or of the pages."""
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
    """Opens a stack of pages in one file, or in the files that OME's description names."""
    if dataset is not None:
        raise refusal(f"{path} is a single array and has no datasets: leave the name {dataset} out")
    file = module("tifffile", path).TiffFile(path)
    _check_chain(file, path)
    series = _series(file, path)
    shape, axes = series.shape, series.axes
    page = series.keyframe
    cells = _cells(file, page, path)
    plane = tuple(page.shape)
    if len(plane) != 2:
        raise refusal(f"{path}: its pages have the shape {plane}, {page.axes}: give images with one number for each pixel")
    outer = math.prod(shape) // max(1, math.prod(plane))
    leading = [n for n in shape[:-2] if n > 1]
    if math.prod(shape) != outer * math.prod(plane) or len(leading) > 1:
        raise refusal(f"{path} has {len(shape)} dimensions, {axes}: write one stack of images into a file of its own")
    if (said := _images_said(file, plane)) > outer:
        raise refusal(f"{path} says that it has {said} images, but holds {outer}: it is cut short, or files with the other images are missing")
    order = order_of(axes, [None] * 3, f"{path}") if len(shape) == 3 else None
    pages = series.pages
    if len(pages) == 1 and outer > 1:  # ImageJ's way beyond 4 GiB: one page says where all of them lie, one behind the other
        if series.dataoffset is None:
            raise refusal(f"{path}: one page describes {outer} planes, but they are not contiguous in the file: write a page for each plane")
        array: Array = check_length(RawArray(path, (outer, *plane), page.dtype.newbyteorder(file.byteorder), series.dataoffset))
        if not cells.plain:
            return PagesArray(array.shape, array.dtype, lambda z: _values(cells, array.plane(z), z), path.name, path)
        if order is None:
            file.close()
    else:
        if len(pages) != outer:
            raise refusal(f"{path} has {len(pages)} pages of {outer} planes: the other planes are in other files, so give a pattern that names all of them")
        if any(p is None for p in pages):
            at = next(z for z, p in enumerate(pages) if p is None)
            raise refusal(f"{path}: its description names {outer} planes, but the file with plane {at} is missing")
        array = PagesArray((outer, *plane), page.dtype, lambda z: _page(pages[z], cells, z, path), path.name, path)
    return array if order is None else ObjectArray(Turned(array, order), path.name, path, deep=array.shape[order[0]])


def _check_chain(file: Any, path: Any) -> None:
    """Checks the chain of pages, each of which says where the next one is described. tifffile silently ends where that is beyond the end of the file."""
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
            raise refusal(f"{path}: page {len(seen) - 1} is described at byte {at}, but the file ends at byte {size}: it is cut short")


def _images_said(file: Any, plane: tuple[int, ...]) -> int:
    """The number of images that ImageJ, OME or tifffile have noted in the file; 0 if none has."""
    if file.is_imagej:
        return int((file.imagej_metadata or {}).get("images", 0))
    if file.is_ome:
        counts = [re.search(f'<(?:\\w+:)?Pixels[^>]*\\bSize{axis}="(\\d+)"', file.ome_metadata or "") for axis in "ZCT"]
        return math.prod(int(found[1]) if found else 0 for found in counts)
    shapes = [one.get("shape") for one in file.shaped_metadata or ()]
    return math.prod(shapes[0]) // max(1, math.prod(plane)) if shapes and shapes[0] else 0


def _series(file: Any, path: Any) -> Any:
    """The only series of the file; its images have one size and type."""
    if len(file.series) != 1:
        raise refusal(f"{path}: tifffile finds {len(file.series)} series in it: give images of one size with one number for each pixel")
    series = file.series[0]
    if getattr(series, "transform", None) is not None:
        raise refusal(f"{path}: tifffile computes its values from those of the pages ({series.kind}): write the computed values into a file of their own")
    return series


def _cells(file: Any, page: Any, path: Any) -> Cells:
    """Interprets tags that change the meaning of values. GDAL's NODATA marks cells without a value; scales and calibrations are refused."""
    imagej = file.imagej_metadata or {}
    if "cf" in imagej and (imagej.get("c0", 0), imagej.get("c1", 1)) != (0, 1):
        raise refusal(f"{path}: ImageJ's calibration (cf, c0 = {imagej.get('c0')}, c1 = {imagej.get('c1')}) changes its values: write the calibrated values as 32-bit numbers")
    tags = page.tags
    if _GDAL_METADATA in tags:
        for role, number in re.findall(r'role="(scale|offset)"[^>]*>([^<]*)<', str(tags[_GDAL_METADATA].value)):
            if number.strip() not in (("1", "1.0") if role == "scale" else ("0", "0.0")):
                raise refusal(f"{path}: GDAL_METADATA has a {role} of {number.strip()}, which changes its values: apply it (gdal_translate -unscale)")
    attributes = {}
    if _NODATA in tags:
        text = str(tags[_NODATA].value).strip().rstrip("\0")
        try:
            attributes["_FillValue"] = float(text) if not re.fullmatch(r"[-+]?\d+", text) else int(text)
        except ValueError:
            raise refusal(f"{path}: GDAL_NODATA is '{text}': write it as a number") from None
    return Cells(page.dtype, attributes, "NODATA" if attributes else pathlib.Path(path).name, path)


def _values(cells: Cells, plane: np.ndarray, z: int) -> np.ndarray:
    return cells.values(plane[None], z)[0]


def _page(page: Any, cells: Cells, z: int, path: Any) -> np.ndarray:
    """Reads a page. Refuses strips and tiles that are not in the file, which tifffile reads as 0."""
    size, where = page.parent.filehandle.size, page.parent.filehandle.path
    for offset, count in zip(page.dataoffsets, page.databytecounts):
        if count == 0 or offset == 0:
            raise refusal(f"{path}: plane {z} has strips or tiles that were never written: fill them in a copy")
        if offset + count > size:
            raise refusal(f"{where}: plane {z} has a strip or tile that ends at byte {offset + count}, but the file ends at byte {size}: it is cut short")
    return _values(cells, page.asarray(), z)


def tiffs(paths: list[str], path: Any) -> Array:
    """Opens files of one plane each as an array."""
    tifffile = module("tifffile", path)

    def plane(z: int) -> np.ndarray:
        with tifffile.TiffFile(paths[z]) as file:
            _check_chain(file, paths[z])
            if len(file.pages) > 1 and len(_series(file, paths[z]).pages) != 1:
                raise refusal(f"{paths[z]} has {len(file.pages)} pages: give a file with one page for each plane")
            series = _series(file, paths[z])
            page = series.keyframe
            if len(page.shape) != 2 or math.prod(series.shape) != math.prod(page.shape):
                raise refusal(f"{paths[z]} has {len(series.shape)} dimensions: give a file with one image of two dimensions for each plane")
            return _page(series.pages[0], _cells(file, page, paths[z]), z, paths[z])
    first = plane(0)
    return PagesArray((len(paths), *first.shape), first.dtype, plane, pathlib.Path(path).name, paths[0])
