# SPDX-License-Identifier: BSD-3-Clause
"""Cuts an array into the pieces in which it is written into a file."""
from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .arrays import Array, ObjectArray, RawArray

GROUP_BYTES = 8 << 20

Box = tuple[slice, slice, slice]


def boxes(array: Array, chunks: tuple[int, int] = (1, 1), most_bytes: int = GROUP_BYTES) -> list[Box]:
    """The whole array in order, in whole planes, z beginning at multiples of chunks[0]; where cells lie in a file or in memory as they are and
    that would be much, in rows at multiples of chunks[1]: what is in hand does not grow with the planes."""
    nz, ny, nx = array.shape
    if array.size == 0:
        return []
    a_plane, (deep, rows) = max(1, array.nbytes // max(nz, 1)), chunks
    planes = max(deep, most_bytes // a_plane // deep * deep)
    if is_plain(array) and planes * a_plane > most_bytes:
        rows = min(max(rows, most_bytes // (planes * max(1, a_plane // max(ny, 1))) // rows * rows), max(ny, 1))
    else:
        rows = max(ny, 1)
    return [(slice(z, min(z + planes, nz), 1), slice(y, min(y + rows, ny), 1), slice(0, nx, 1))
            for z in range(0, nz, planes) for y in range(0, ny, rows)]


def is_plain(array: Array) -> bool:
    """Can any box of it be read at no more than its own cost, and by any thread?"""
    return isinstance(array, RawArray) or (isinstance(array, ObjectArray) and isinstance(array.source, np.ndarray))


def groups(array: Array, chunks: tuple[int, int] = (1, 1)) -> Iterator[tuple[Box, np.ndarray]]:
    """(box, cells) of a few MiB each. Where cells lie in a file as they are, the next are read while these are written; objects of
    libraries are read by the thread that writes."""
    every = boxes(array, chunks)
    if not isinstance(array, RawArray):
        yield from ((box, array.read(*box)) for box in every)
        return
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(array.read, *every[0]) if every else None
        for i, box in enumerate(every):
            cells = reading.result()  # type: ignore[union-attr]
            reading = pool.submit(array.read, *every[i + 1]) if i + 1 < len(every) else None
            yield box, cells


def _even(n: int, most: int) -> int:
    """Cells of a chunk, `most` at most, so that the last one of n cells is nearly as full as the others: chunks at the end are stored whole."""
    return -(-n // -(-n // most))


def chunks_of(array: Array) -> tuple[int, int, int]:
    """About 1 MiB each, a few planes deep, so that writing plane by plane fills them in turn."""
    ny, nx = (_even(max(n, 1), 128) for n in array.shape[1:])
    return _even(max(array.shape[0], 1), max(1, (1 << 20) // (ny * nx * array.dtype.itemsize))), ny, nx
