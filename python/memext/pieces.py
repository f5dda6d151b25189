# SPDX-License-Identifier: BSD-3-Clause
"""Cuts an array into the pieces that are written into a file one after the other."""
from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .arrays import Array, ObjectArray, RawArray

GROUP_BYTES = 8 << 20

Box = tuple[slice, slice, slice]


def boxes(array: Array, chunks: tuple[int, int] = (1, 1), most_bytes: int = GROUP_BYTES) -> list[Box]:
    """The boxes of the whole array, in order. They are whole planes that begin at multiples of chunks[0]. If planes are large, and cells lie as they are
    in a file or in memory, boxes are rows that begin at multiples of chunks[1]. So memory does not grow with the planes."""
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
    """Can any thread read any box of the array at the cost of that box alone?"""
    return isinstance(array, RawArray) or (isinstance(array, ObjectArray) and isinstance(array.source, np.ndarray))


def groups(array: Array, chunks: tuple[int, int] = (1, 1)) -> Iterator[tuple[Box, np.ndarray]]:
    """Pairs (box, cells) of a few MiB each. If cells lie in a file as they are, a thread reads the next group while this one is written. The writing thread
    itself reads the objects of libraries."""
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
    """The extent of a chunk, at most `most`, along n cells. The last chunk is nearly as full as the others, because it is stored whole."""
    return -(-n // -(-n // most))


def chunks_of(array: Array) -> tuple[int, int, int]:
    """The shape of chunks of about 1 MiB, a few planes deep, so that planes written in order fill one chunk after the other."""
    ny, nx = (_even(max(n, 1), 128) for n in array.shape[1:])
    return _even(max(array.shape[0], 1), max(1, (1 << 20) // (ny * nx * array.dtype.itemsize))), ny, nx
