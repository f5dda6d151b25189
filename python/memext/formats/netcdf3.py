# SPDX-License-Identifier: BSD-3-Clause
"""Computes the length of a NetCDF 3 file from its header (CDF-1, 2 and 5). netCDF4 silently reads cells behind the end of the file as 0.
https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html"""
from __future__ import annotations

import errno
import math
import pathlib
import struct
from typing import Any, BinaryIO

from ..errors import refusal

_TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}


class _Header:
    def __init__(self, file: BinaryIO, version: int):
        self.file, self.count = file, ">Q" if version == 5 else ">I"
        self.offset = ">I" if version == 1 else ">Q"

    def number(self, form: str = ">I") -> int:
        size = struct.calcsize(form)
        return struct.unpack(form, self.file.read(size))[0]

    def skip(self, n: int) -> None:
        self.file.seek(n + -n % 4, 1)  # what is named or listed is padded

    def entries(self) -> range:
        self.number()  # what the list is of
        return range(self.number(self.count))

    def attributes(self) -> None:
        for _ in self.entries():
            self.skip(self.number(self.count))
            kind = self.number()
            self.skip(_TYPE_BYTES[kind] * self.number(self.count))

    def end(self) -> int:
        """The position of the byte behind the last cell."""
        records = self.number(self.count)
        extents = []
        for _ in self.entries():
            self.skip(self.number(self.count))
            extents.append(self.number(self.count))
        self.attributes()
        fixed, of_records = [0], []
        for _ in self.entries():
            self.skip(self.number(self.count))
            dims = [extents[self.number(self.count)] for _ in range(self.number(self.count))]
            self.attributes()
            size = _TYPE_BYTES[self.number()]
            self.number(self.count)  # its size, which is cut where it is large
            begin = self.number(self.offset)
            in_records = bool(dims) and dims[0] == 0
            (of_records if in_records else fixed).append((begin, size * math.prod(dims[1:] if in_records else dims)) if in_records else
                                                         begin + size * math.prod(dims))
        if not of_records or records in (0, 2**32 - 1, 2**64 - 1):
            return max(fixed)
        record = of_records[0][1] if len(of_records) == 1 else sum(n + -n % 4 for _, n in of_records)
        return max(*fixed, *(begin + (records - 1) * record + n for begin, n in of_records))


def check_classic(path: pathlib.Path) -> None:
    """Refuses a classic file that is cut short. The libraries of other formats do so themselves."""
    with path.open("rb") as file:
        head = file.read(4)
        if head[:3] != b"CDF" or head[3:] not in (b"\1", b"\2", b"\5"):
            return
        end: Any = _Header(file, head[3]).end()
    there = path.stat().st_size
    if there < end:
        raise refusal(f"{path} has {there} bytes, but its header says {end}: the file is cut short", errno.EIO)
