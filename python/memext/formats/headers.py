# SPDX-License-Identifier: BSD-3-Clause
"""Reads NRRD and MetaImage, whose text headers say where raw cells are. The rules are those of runtime/grid/nrrd.c and metaimage.c, and the same cases test
them."""
from __future__ import annotations

import pathlib
import re
from typing import Any

import numpy as np

from ..arrays import Array, RawArray
from ..errors import refusal
from .cf import Cells, array_of, order_of
from .plain import check_length

_NRRD_TYPES = {"signed char": "i1", "int8": "i1", "int8_t": "i1", "uchar": "u1", "unsigned char": "u1", "uint8": "u1", "uint8_t": "u1",
               "short": "i2", "short int": "i2", "signed short": "i2", "signed short int": "i2", "int16": "i2", "int16_t": "i2", "ushort": "u2",
               "unsigned short": "u2", "unsigned short int": "u2", "uint16": "u2", "uint16_t": "u2", "int": "i4", "signed int": "i4",
               "int32": "i4", "int32_t": "i4", "uint": "u4", "unsigned int": "u4", "uint32": "u4", "uint32_t": "u4", "longlong": "i8",
               "long long": "i8", "long long int": "i8", "signed long long": "i8", "signed long long int": "i8", "int64": "i8", "int64_t": "i8",
               "ulonglong": "u8", "unsigned long long": "u8", "unsigned long long int": "u8", "uint64": "u8", "uint64_t": "u8", "float": "f4",
               "double": "f8"}
_NRRD_FIELDS = {"type", "dimension", "sizes", "encoding", "endian", "data file", "line skip", "byte skip", "labels"}  # that are honoured
_NRRD_OTHERS = {"content", "number", "block size", "space", "space dimension", "spacings", "thicknesses", "axis mins", "axis maxs", "centers", "centerings",
                "units", "kinds", "min", "max", "old min", "old max", "sample units", "space units", "space origin", "space directions",
                "measurement frame"}  # that say nothing of where cells are and what they are
_SHORT = {name.replace(" ", ""): name for name in _NRRD_FIELDS | _NRRD_OTHERS if " " in name and not name.startswith(("space ", "measurement"))}

_META_TYPES = {"MET_CHAR": "i1", "MET_UCHAR": "u1", "MET_SHORT": "i2", "MET_USHORT": "u2", "MET_INT": "i4", "MET_UINT": "u4", "MET_LONG": "i4",
               "MET_ULONG": "u4", "MET_LONG_LONG": "i8", "MET_ULONG_LONG": "u8", "MET_FLOAT": "f4", "MET_DOUBLE": "f8"}
_META_KEYS = {"NDims", "DimSize", "ElementType", "BinaryData", "BinaryDataByteOrderMSB", "ElementByteOrderMSB", "HeaderSize", "CompressedData",
              "ElementNumberOfChannels", "ElementDataFile"}

_MOST_LINE_BYTES = 1 << 20
# A pattern of names as teem and MetaIO write it: b%03d.raw 1 4 1
_SEVERAL = re.compile(r"%[0-9]*d.*[ \t][-+]?[0-9]+[ \t]+[-+]?[0-9]+([ \t]+[-+]?[0-9]+)*$")


def _extents(words: str, what: str, path: pathlib.Path) -> tuple[int, ...]:
    numbers = [int(word) for word in words.split()] if re.fullmatch(r"[0-9+\- \t]+", words) and re.fullmatch(r"([-+]?[0-9]+[ \t]*)+", words) else []
    if len(numbers) != 3 or min(numbers, default=0) < 1:
        raise refusal(f"{path}: {what} '{words}' are not 3 positive integers: give an array of 3 dimensions")
    return tuple(numbers[::-1])


def _whole(header: dict[str, str], key: str, least: int, path: pathlib.Path) -> int:
    text = header.get(key, "0")
    if not re.fullmatch(r"[-+]?[0-9]+", text) or int(text) < least:
        raise refusal(f"{path}: {key} '{text}' is not an integer of at least {least}")
    return int(text)


def _take(header: dict[str, str], key: str, value: str, path: pathlib.Path) -> None:
    if key in header:
        raise refusal(f"{path}: its header says '{key}' twice: leave one of them out")
    header[key] = value


def _cells(path: pathlib.Path, data: pathlib.Path, begin: int, shape: tuple[int, ...], dtype: np.dtype, skip: int, lines: int = 0) -> RawArray:
    if not data.exists():
        raise refusal(f"{path} says that its cells are in {data}: No such file or directory")
    if not data.is_file():
        raise refusal(f"{path} says that its cells are in {data}, which is not a regular file")
    if lines > 0:
        begin = _behind(data, begin, lines)
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    begin = max(begin, data.stat().st_size - size) if skip == -1 else begin + skip
    return check_length(RawArray(data, shape, dtype, begin, name=path.name))


def _behind(data: pathlib.Path, at: int, lines: int) -> int:
    with data.open("rb") as file:
        while lines > 0:
            file.seek(at)
            piece = file.read(1 << 16)
            if not piece:
                raise refusal(f"{data} has fewer lines than its header skips")
            end = 0
            while lines > 0 and (found := piece.find(b"\n", end)) >= 0:
                end, lines = found + 1, lines - 1
            at += end if lines == 0 else len(piece)
    return at


def nrrd(path: pathlib.Path, dataset: str | None = None, **_: Any) -> Array:
    """Opens a NRRD file with raw cells, attached (.nrrd) or detached (.nhdr). x is the first axis of the header."""
    header: dict[str, str] = {}
    pairs: set[str] = set()
    with path.open("rb") as file:
        first = file.readline(64).rstrip(b"\r\n")
        if not re.fullmatch(rb"NRRD000[1-5]", first):
            raise refusal(f"{path} is not a NRRD file of version 1 to 5")
        line = b""
        while (line := file.readline(_MOST_LINE_BYTES)) not in (b"", b"\n", b"\r\n"):
            _nrrd_line(line.decode("latin1").rstrip("\r\n"), header, pairs, path)
        begin, attached = file.tell(), line != b""
    for key in pairs & (_NRRD_FIELDS - {"labels"}):
        raise refusal(f"{path}: its header has the pair '{key}:=', but the field '{key}:' of that name says how cells are read, and readers differ over "
                      f"which one counts: write '{key}: ...'")
    _only_one(path, dataset)
    for key in ("type", "sizes", "encoding"):
        if key not in header:
            raise refusal(f"{path}: its header lacks the {key}")
    if header["encoding"].lower() != "raw":
        raise refusal(f"{path} is encoded as '{header['encoding']}': only raw cells can be read in place; convert it (unu save -e raw)")
    if header.get("dimension", "3") != "3":
        raise refusal(f"{path} has {header['dimension']} dimensions: give an array of 3")
    kind = _NRRD_TYPES.get(header["type"].lower())
    if kind is None:
        raise refusal(f"{path}: the type '{header['type']}' is not known: convert it")
    shape = _extents(header["sizes"], "the sizes", path)
    order = header.get("endian", "").lower()
    if order not in ("little", "big") and ("endian" in header or np.dtype(kind).itemsize > 1):
        raise refusal(f"{path}: its byte order '{order}' is neither little nor big" if order else
                      f"{path}: its header does not say the byte order (endian: little)")
    detached = header.get("data file")
    if detached is not None and (not detached or detached.startswith("LIST") or _SEVERAL.search(detached)):
        raise refusal(f"{path} has its cells in several files ({detached}): put them into one")
    if detached is None and not attached:
        raise refusal(f"{path}: its header neither ends with an empty line before the cells, nor names their file (data file: NAME)")
    lines, skip = _whole(header, "line skip", 0, path), _whole(header, "byte skip", -1, path)
    array = _cells(path, path.parent / detached if detached else path, 0 if detached else begin, shape,
                   np.dtype((">" if order == "big" else "<") + kind), skip, lines)
    return _turned(array, header.get("labels", ""), path)


def _nrrd_line(text: str, header: dict[str, str], pairs: set[str], path: pathlib.Path) -> None:
    """Reads a line `field: value`. A line `key:=value` is the user's own."""
    if text.startswith("#"):
        return
    key, colon, value = text.partition(":")
    key = key.strip(" \t").lower()
    key = _SHORT.get(key, key)
    if colon and value.startswith("="):
        pairs.add(key)
        return
    if not colon or key not in _NRRD_FIELDS | _NRRD_OTHERS:
        shown = re.match("[ -~]{0,80}", text)[0]  # type: ignore[index]  # cells may have been taken for a line
        raise refusal(f"{path}: its header has the line '{shown}', which is not a field of NRRD: write 'field: value' or 'key:=value'")
    if key in _NRRD_FIELDS:
        _take(header, key, value.strip(" \t"), path)


def _turned(array: RawArray, labels: str, path: pathlib.Path) -> Array:
    names = re.findall(r'"((?:[^"\\]|\\.)*)"', labels)
    order = order_of(names[::-1], [None] * len(names), f"{path} (labels)")
    if order is None:
        return array
    turned = array_of(array, Cells(array.dtype, {}, path.name, path), order, path.name, array.path)
    return turned


def metaimage(path: pathlib.Path, dataset: str | None = None, **_: Any) -> Array:
    """Opens a MetaImage file with raw cells, attached (.mha) or detached (.mhd)."""
    header: dict[str, str] = {}
    with path.open("rb") as file:
        while "ElementDataFile" not in header and (line := file.readline(_MOST_LINE_BYTES)):
            text = line.decode("latin1").rstrip("\r\n")
            key, equals, value = text.partition("=")
            key = key.strip(" \t")
            if text and (not equals or ":" in key):
                raise refusal(f"{path} is not a MetaImage file: a line of its header has no '='")
            if key in _META_KEYS:
                _take(header, key, value.strip(" \t"), path)
        begin = file.tell()
    _only_one(path, dataset)
    for key, means in (("CompressedData", "is compressed: only raw cells can be read in place; convert it"), ("BinaryData", "has its cells as text: write them as binary data")):
        if _truth(header, key, "False" if key == "CompressedData" else "True", path) == (key == "CompressedData"):
            raise refusal(f"{path} {means} ({key} = {header[key]})")
    for key in ("ElementDataFile", "ElementType", "DimSize"):
        if key not in header:
            raise refusal(f"{path}: its header lacks {key}: add a line '{key} = ...'")
    if header.get("NDims", "3") != "3":
        raise refusal(f"{path} has {header['NDims']} dimensions: give an array of 3")
    if header.get("ElementNumberOfChannels", "1") != "1":
        raise refusal(f"{path} has {header['ElementNumberOfChannels']} numbers for each cell (ElementNumberOfChannels): write each to a file of its own")
    kind = _META_TYPES.get(header["ElementType"])
    if kind is None:
        raise refusal(f"{path} has the ElementType {header['ElementType']}, and memext reads {', '.join(_META_TYPES)}: convert it")
    orders = {_truth(header, key, "False", path) for key in ("BinaryDataByteOrderMSB", "ElementByteOrderMSB") if key in header}
    if len(orders) > 1:
        raise refusal(f"{path}: BinaryDataByteOrderMSB and ElementByteOrderMSB say different byte orders: leave one of them out")
    name, skip = header["ElementDataFile"], _whole(header, "HeaderSize", -1, path)
    if not name or name.upper().startswith("LIST") or _SEVERAL.search(name):
        raise refusal(f"{path} has its cells in several files ({name}): put them into one")
    local = name in ("LOCAL", "Local", "local")
    if local and skip > 0:
        raise refusal(f"{path} has HeaderSize = {skip}, but its cells follow the header: readers disagree what this means, so leave HeaderSize out")
    return _cells(path, path if local else path.parent / name, begin if local else 0, _extents(header["DimSize"], "the sizes (DimSize)", path),
                  np.dtype((">" if True in orders else "<") + kind), skip)


def _truth(header: dict[str, str], key: str, default: str, path: pathlib.Path) -> bool:
    text = header.get(key, default).lower()
    if text not in ("true", "1", "false", "0"):
        raise refusal(f"{path}: {key} = {header[key]} is neither True nor False")
    return text in ("true", "1")


def _only_one(path: pathlib.Path, dataset: str | None) -> None:
    if dataset is not None:
        raise refusal(f"{path} is a single array and has no datasets: leave the name {dataset} out")
