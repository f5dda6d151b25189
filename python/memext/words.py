# SPDX-License-Identifier: BSD-3-Clause
"""Turns the keywords of a run into the library's words NAME=VALUE."""
from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import Any

from . import _core
from .errors import MemextError


def _word(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return " ".join(map(_word, value))
    return os.fspath(value) if isinstance(value, os.PathLike) else repr(float(value)) if isinstance(value, float) else str(value)


def _criterion(name: str, value: Any) -> str:
    """The library's word for a criterion: 0.01, {"below": 0.01, "floor": 1e-12} or {"above": 5.0}."""
    if not isinstance(value, Mapping):
        return _word(value)
    limits = [k for k in ("below", "above") if k in value]
    unknown = [str(k) for k in value if k not in ("below", "above", "floor")]
    if len(limits) != 1 or unknown:
        raise MemextError(f"until={{{name!r}: {dict(value)!r}}}: give 'below' or 'above', and 'floor' if you need one", errno.EINVAL)
    words = [_word(value[limits[0]]), *(["above"] if limits[0] == "above" else [])]
    return ",".join(words + ([f"floor={_word(value['floor'])}"] if value.get("floor") else []))


def _side(key: Any, value: Any) -> list[str]:
    """The library's words for sides: {"z": "mirror"} or {"z": ("fixed", "mirror")}; for one field {"vx:z": "odd"} or {"vx": {"z": "odd"}}."""
    if isinstance(value, Mapping):
        return [word for axis, kinds in value.items() for word in _side(f"{key}:{axis}", kinds)]
    return [f"side={key}={','.join(map(_word, value)) if isinstance(value, (tuple, list)) else _word(value)}"]


_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def size_of(value: Any) -> int:
    """The bytes of "16GiB" or a number. The library refuses other values."""
    text = str(value).strip().lower().replace("ib", "")
    number = text.rstrip("bkmgt ")
    try:
        return int(float(number) * _UNITS[text[len(number):].strip()])
    except (KeyError, ValueError):
        return _core.dram_bytes()


_PATHS = ("sources", "probes", "timeline", "trace", "json", "calibration", "probes-out", "topology")
_NAMED_PATHS = ("source", "input", "output", "field")  # NAME=FILE, or a FILE alone


def absolute(name: str, value: Any, directory: str) -> Any:
    """The option's value with an absolute path, which counts from the directory in which the run was made. Values without a path stay as they are."""
    if isinstance(value, bytes) or isinstance(value, os.PathLike):
        value = os.fsdecode(value)
    if name in _NAMED_PATHS and isinstance(value, Mapping):
        return {k: absolute(name, v, directory) for k, v in value.items()}
    if name in _NAMED_PATHS and isinstance(value, (list, tuple)):
        return [absolute(name, v, directory) for v in value]
    if not isinstance(value, str) or not value:
        return value
    if name in _PATHS and value != "-" or name == "plan" and os.path.isfile(os.path.join(directory, value)):
        return os.path.join(directory, value)
    if name in _NAMED_PATHS and value != "-":
        field, equals, file = value.partition("=")
        return f"{field}={os.path.join(directory, file)}" if equals and "/" not in field else os.path.join(directory, value)
    every, colon, rest = value.partition(":")
    return f"{every}:{os.path.join(directory, rest)}" if name == "snapshot" and colon else value


def words_of(given: Mapping[str, Any]) -> list[str]:
    """The library's words for keywords: commit_every=30, verify=True, block=(64, 64, 8), side={"x": "periodic", "vx": {"z": "odd"}}, source=[...]."""
    out = []
    for key, value in given.items():
        name = key.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            out.append(name)
        elif name == "until" and isinstance(value, Mapping):
            out += [f"until={k}={_criterion(k, v)}" for k, v in value.items()]
        elif name == "side" and isinstance(value, Mapping):
            out += [word for k, v in value.items() for word in _side(k, v)]
        elif isinstance(value, Mapping):
            out += [f"{name}={k}={_word(v)}" for k, v in value.items()]
        elif name == "coef":
            out.append(f"{name}={','.join(map(_word, value)) if isinstance(value, (tuple, list)) else value}")
        elif isinstance(value, (tuple, list)) and name in ("source", "side", "param", "field", "input", "init", "output", "reduce-stored"):
            out += [f"{name}={_word(v)}" for v in value]
        else:
            out.append(f"{name}={_word(value)}")
    return out
