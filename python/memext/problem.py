# SPDX-License-Identifier: BSD-3-Clause
"""The problem of a run: its kernel or stencil, initial values and grid, and the library's options for them."""
from __future__ import annotations

import errno
import operator
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from .arrays import Array, RawArray, shape_of
from .celltypes import REALS, dtype_of
from .code import cache_folder
from .errors import MemextError
from .flat import halo_of, of_user
from .kernel import Kernel, state_type
from .profiles import Profile, three_extents, whole_shape
from .words import absolute, words_of
from .sources import INITS, Source, as_values, converted, file_option, framed_shape
from .series import Series, take
from .values import Constant, Values

RADII = {"star7": 1, "edge19": 1, "box27": 1, **{f"star{6 * h + 1}": h for h in range(2, 9)}}


class Problem:
    """state, fixed: fields of the state and read-only fields, with their types. fields: initial values. bare: read-only fields whose arrays have no frame.
    extra: the other options."""

    def __init__(self, kernel: Any, stencil: str | None, params: Mapping[str, Any], reductions: tuple, dtype: Any, shape: Any, frame: Any, directory: str,
                 given: Mapping[str, Any]):
        """directory: relative paths belong to it."""
        self.kernel, self.stencil, self.params, self.reductions, self.frame = kernel, stencil, take(params, directory), reductions, frame
        self._dtype, self._shape, self._directory, self._given = dtype, shape, directory, given
        self.code: Any = None  # of a kernel
        self.identities: dict[str, int] = {}
        self.here: dict[str, Array] = {}  # fields that lie in the run's own place, as they can be read while it begins
        self._take_kernel()
        self._take_fields()

    def _take_kernel(self) -> None:
        given = self._given
        if self.kernel is None:
            name = self.stencil or "star7"
            if name not in RADII:
                raise MemextError(f"stencil '{name}' is not known: give one of {', '.join(RADII)}", errno.EINVAL)
            self.radius, self.fixed_radius, self.flat = RADII[name], 0, False
            self.state, self.fixed = {"u": state_type("u", self._dtype)}, {}
            if self.state["u"] not in REALS:
                raise MemextError(f"dtype={self._dtype!r}: built-in stencils compute float64 or float32; for other types write a kernel (memext.kernel)", errno.EINVAL)
            self.names = ["u"]
            return
        if self.stencil is not None:
            raise MemextError("a kernel and stencil= exclude each other: leave one of them out", errno.EINVAL)
        if not isinstance(self.kernel, Kernel):
            raise MemextError(f"{self.kernel!r} is not a kernel: decorate the function with memext.kernel", errno.EINVAL)
        k = self.kernel
        unknown = [p for p in self.params if p not in k.params and not any(p in r.params for r in self.reductions)]
        if unknown:
            raise MemextError(f"{', '.join(unknown)} is not a parameter of {k.name}: it has {', '.join(k.params) or 'none'}", errno.EINVAL)
        missing = [n for n in k.state + k.partner + k.fixed if n not in given]
        if missing:
            raise MemextError(f"{k.name} needs initial values of {', '.join(missing)}: give {missing[0]}= an array, a file, a number or a function", errno.EINVAL)
        unknown = [n for n in self._dtype if n not in k.state + k.partner] if isinstance(self._dtype, Mapping) else []
        if unknown:
            raise MemextError(f"dtype names {', '.join(map(str, unknown))}, which is not in the state of {k.name}: its fields are {', '.join(k.state + k.partner)}", errno.EINVAL)
        before = [f"{n}_old" for n in k.state if f"{n}_old" in given]  # the step before, where no field of the kernel is called so
        self.flat = k.flat
        self.names = k.state + k.partner + [n for n in before if not k.has_field(n)] + k.fixed

    def _take_fields(self) -> None:
        given = dict(self._given)
        k: Kernel | None = self.kernel
        if k is None and "u" not in given:
            given["u"] = given.pop("init", "random")
        fields: dict[str, Any] = {}
        for name in self.names:
            value = given.pop(name)
            value = of_user(value, name) if self.flat and not (isinstance(value, str) and value in INITS) else value
            fields[name] = as_values(three_extents(value) if k is not None and name in k.fixed else value, name, 1)
        self.extra = {name: absolute(name.replace("_", "-"), value, self._directory) for name, value in given.items()}
        if k is not None:
            state = state_type(k.state[0], self._dtype, k._dtype)
            state = state if state in REALS else "f8"
            types = {n: _field_type(fields[n]) or (state if k._fixed[n] is None else None) for n in k.fixed}
            self.code = k.code_with(self.reductions, self._dtype, **types)
            self.radius, self.fixed_radius, self.flat = self.code.radius, self.code.fixed_radius, self.code.flat
            self.state = {n: self.code.dtypes[n] for n in k.state + k.partner}
            self.fixed = {n: self.code.dtypes[n] for n in k.fixed}
            for n in self.names:
                if not k.has_field(n):
                    if self.code.form != "leapfrog":
                        raise MemextError(f"{n}: {k.name} does not use the step before (its form is {self.code.form}, not leapfrog): leave {n}= out", errno.EINVAL)
                    self.state[n] = self.code.dtypes[n[:-4]]
        for name, value in fields.items():
            if isinstance(value, Values):
                value.begin(name, self.flat, self.radius)
            if isinstance(value, Constant):
                converted(value.value, self.dtype_of(name), name)
        self.fields = fields
        if self.frame != "included" and not any(isinstance(value, Array) for value in fields.values()):
            raise MemextError(f"frame={self.frame!r} creates the frame of arrays, and no field is an array: numbers, patterns and functions have a frame already. "
                              "Give the interior cells as an array, or leave frame= out", errno.EINVAL)
        self.shape = self._interior(fields)
        if self.code is not None:
            self.code.check(shape_of(self.shape, self.flat))
            for name, value in self.params.items():
                if isinstance(value, Series):
                    value.check(name, len(self.code.cells))

    def _interior(self, fields: dict[str, Any]) -> tuple[int, int, int]:
        """The interior cells (nz, ny, nx), from shape or the first array; all other arrays must agree."""
        halo, found, who = self.halo, None, ""
        wanted = "two integers (ny, nx)" if self.flat else "three integers (nz, ny, nx)"
        if self._shape is not None:
            try:
                found, who = tuple(operator.index(n) for n in self._shape), "shape"
            except TypeError as error:
                raise MemextError(f"shape={self._shape!r}: give {wanted}: {error}", errno.EINVAL) from None
            if len(found) != (2 if self.flat else 3):
                raise MemextError(f"shape={self._shape!r} has {len(found)} numbers: give {wanted}", errno.EINVAL)
            if self.flat:
                found = found[0], 1, found[1]
        order = sorted(self.names, key=lambda n: 0 if n in self.state else 1 + (isinstance(fields[n], Array) and 1 in shape_of(fields[n].shape, self.flat)))
        self.bare = set()
        for name in order:
            shape = framed_shape(fields[name], halo, self.frame)
            if shape is None:
                continue
            if name in self.fixed and found is not None and self._is_profile(name, fields, found):
                continue
            interior = tuple(n - 2 * h for n, h in zip(shape, halo))
            bare = name in self.fixed and self.fixed_radius == 0 and self.frame == "included"
            if found is None:
                found, who = interior, name
            elif bare and interior != found and tuple(shape) == found:
                self.bare.add(name)
            elif interior != found:
                raise MemextError(f"{name} has the shape {self.told(fields[name].shape)}; {who} says {self.told(found)} interior cells, which is "
                                  f"{self.told(self.framed(found))} with the frame of {self.radius}"
                                  + ("; an extent may be 1 if the field is constant along that axis" if name in self.fixed else ""), errno.EINVAL)
        if found is None:
            raise MemextError(f"the size of the grid is not known: give shape={'(ny, nx)' if self.flat else '(nz, ny, nx)'}, the interior cells, or an array", errno.EINVAL)
        if min(found) < 1:
            raise MemextError(f"{who} leaves {self.told(found)} interior cells within a frame of {self.radius}: every extent must be at least 1; if no array has "
                              f"all cells, give shape={'(ny, nx)' if self.flat else '(nz, ny, nx)'}, the interior cells", errno.EINVAL)
        return found  # type: ignore[return-value]

    @property
    def halo(self) -> tuple[int, int, int]:
        return halo_of(self.radius, self.flat)

    def framed(self, interior: tuple) -> tuple:
        return tuple(n + 2 * h for n, h in zip(interior, self.halo))

    def told(self, shape: tuple) -> tuple:
        """The shape as users see it, (nz, ny, nx) or (ny, nx)."""
        return shape_of(tuple(shape), self.flat)

    def _is_profile(self, name: str, fields: dict[str, Any], interior: tuple) -> bool:
        """Makes a Profile of an array with extents of 1; false if it is not such an array."""
        value, bare = fields[name], self.fixed_radius == 0
        whole = whole_shape(value.shape, interior, self.halo, self.frame, bare) if isinstance(value, Array) else None
        if whole is not None:
            sides = " ".join(words_of({"side": self.extra.get("side")}))
            around = {("y.x" if self.flat else "zyx").index(axis) for axis in re.findall(r"([xyz])=periodic", sides)}
            fields[name] = Profile(value, whole, dtype_of(self.fixed[name]), self.halo, self.frame, self.frame == "included" and whole == interior, around,
                                   cache_folder())
        return whole is not None

    def library_name(self, name: str) -> str:
        """The library's name of a field of the state; NAME.old for the step before."""
        return name if self.kernel is None or self.kernel.has_field(name) else name[:-4] + ".old"

    def stored(self) -> dict[str, str]:
        """{name: the library's name} of all fields of the state, also of the step before if it was not given."""
        names = {n: self.library_name(n) for n in self.state}
        if self.code is not None and self.code.form == "leapfrog":
            for n in self.kernel.state:
                names.setdefault(f"{n}_old" if not self.kernel.has_field(f"{n}_old") else f"{n}.old", f"{n}.old")
        return names

    def dtype_of(self, name: str) -> np.dtype:
        """The type of a field of the state, or of a read-only field."""
        types = {**self.state, **self.fixed}
        return dtype_of(types[name if name in types else name[:-4]])

    def options(self, again: bool = False) -> tuple[list[str], Source | None]:
        """The library's options, and the Source of the fields that it does not read from files. again: the run continues from its own state."""
        words = ["size=" + " ".join(str(n) for n in reversed(self.told(self.shape)))]
        framed = self.framed(self.shape)
        source_fields: dict[str, Any] = {}
        file_words: list[str] = []
        types = {**self.state, **self.fixed}
        for name in self.names:
            value = self.here.get(name, self.fields[name])
            library_name = self.library_name(name)
            if isinstance(value, str):
                file_words.append(f"init={library_name}={value}" if self.kernel is not None else f"init={value}")
                continue
            option = None
            if isinstance(value, Profile):
                if value.path is not None:
                    file_words.append(f"field={name}={value.path}")
                    continue
            npy = self._npy(name, value, framed, types[name])
            if npy is not None:
                file_words.append(f"input={library_name}={npy}" if self.kernel is not None else f"input={npy}")
                continue
            if name in self.fixed:
                option = file_option(name, value, types[name], self.halo, self.frame, self.fixed_radius == 0, framed)
            if option is not None:
                file_words.append(f"field={option}")
            else:
                source_fields[library_name] = value
                types[library_name] = types[name]
                if library_name.endswith(".old"):  # without a word it would be what the state is
                    file_words.append(f"init={library_name}=program")
        if self.kernel is None:
            words.append(f"stencil={self.stencil or 'star7'}")
            words.append(f"dtype={'f64' if self.state['u'] == 'f8' else 'f32'}")
        else:
            words.append(f"kernel={self.code.write()}")
            words += [f"param={n}={v.file(cache_folder()) if isinstance(v, Series) else repr(v)}" for n, v in self.params.items()]
        source = None
        if source_fields:
            source = Source(source_fields, {n: dtype_of(types[n]) for n in source_fields}, framed, self.halo, self.frame)
            source.bare, source.known = self.bare, self.identities
            source.here = {self.library_name(n): f"{a.name} of the store in the place of the run" for n, a in self.here.items()}
        return words + ([] if again else file_words), source

    def _npy(self, name: str, value: Any, framed: tuple[int, int, int], kind: str) -> pathlib.Path | None:
        """The .npy file of a field of the state, if the library can read it itself."""
        plain = (isinstance(value, RawArray) and value._check is None and value.path.suffix == ".npy" and value.in_place and value.shape == framed
                 and value.dtype == dtype_of(kind) and "=" not in str(value.path) and _is_behind_header(value))
        return value.path if plain and name in self.state and self.frame == "included" else None


def _is_behind_header(value: RawArray) -> bool:
    """Do the cells stand right behind the header of their .npy file, as the library reads them? A file that is gone is said to be so by the library."""
    try:
        with open(value.path, "rb") as file:
            head = file.read(12)
    except OSError:
        return True
    if len(head) < 12 or head[:6] != b"\x93NUMPY":
        return False
    return value.offset == (10 + int.from_bytes(head[8:10], "little") if head[6] == 1 else 12 + int.from_bytes(head[8:12], "little"))


def _field_type(value: Any) -> str | None:
    """The type of an array, if the library can compute with it. Arrays of other types are converted to the state's type."""
    if isinstance(value, Array) and value.dtype.str[1:] in ("f8", "f4", "u1", "u2", "i2"):
        return value.dtype.str[1:]
    if isinstance(value, Array) and value.dtype.kind == "b":
        return "u1"
    return None
