# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F401, F811 - fixtures
"""A run with force replaces what is in its place, but never the store that its own fields are read from."""
import os

import numpy as np
import pytest
from package import cache, environment, mixed, mx, need  # fixtures

NEW = {"resume": False, "force": True, "dram": "64MiB", "keep": True}


class Wrapped:
    """Somebody's own array around one of ours."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, key):
        return self.array[key]


def of_dask(make):
    return lambda u, place: make(need("dask.array"), need("dask.array").from_array(u, chunks=4))


def of_xarray(make):
    return lambda u, place: make(need("xarray"), need("dask.array").from_array(u, chunks=4) * 2)


def late(u, place):
    """Reads beyond the planes that are tried."""
    return lambda x, y, z: np.asarray(u[z + 1, 1:-1, 1:-1]).mean() + 0 * x * y if z > 3 else 0 * x * y


def by_name(u, place):
    import memext
    return lambda x, y, z: np.asarray(memext.open(place)["u"][z + 1]) if 0 <= z < 6 else 0 * x * y


READING = {
    "dask": of_dask(lambda da, a: a),
    "dask, computed": of_dask(lambda da, a: a * 2 + 1),
    "dask, behind another": of_dask(lambda da, a: da.concatenate([da.zeros((4, 9, 10)), a[4:]])),
    "xarray": of_xarray(lambda xr, a: xr.DataArray(a, dims=("z", "y", "x"))),
    "xarray, turned": of_xarray(lambda xr, a: xr.DataArray(a.transpose(2, 1, 0), dims=("x", "y", "z"))),
    "object": lambda u, place: Wrapped(u),
    "ramp": lambda u, place: __import__("memext").ramp("x", 0, 1, where=Wrapped(u)),
    "function": lambda u, place: lambda x, y, z: np.asarray(u[1]) + 0 * x * y,
    "function, late": late,
    "function, by name": by_name,
    "function, mapped": lambda u, place: (lambda cells: lambda x, y, z: cells[0] + 0 * x * y if z > 3 else 0 * x * y)(np.memmap(place / "memext.store", "u1", "r")),
}


@pytest.fixture
def kept(mx, quick_place):
    """(place, the bytes of the store in it)"""
    with mx.Run(u=np.random.default_rng(1).random((8, 9, 10)), device=quick_place, dram="64MiB", keep=True) as run:
        run.advance(2)
    return quick_place, (quick_place / "memext.store").read_bytes()


def is_as(place, before):
    return (place / "memext.store").read_bytes() == before  # not in an assertion, which would show what differs


@pytest.mark.parametrize("how", READING)
def test_whatever_reads_the_store_is_seen_before_it_goes(mx, mixed, kept, how):
    """As the state and as a read-only field: the request is refused, and every byte of the store is what it was."""
    place, before = kept
    for wish in ({}, {"kernel": mixed}):
        value = READING[how](mx.open(place)["u"], place)
        fields = {"u": 1.0, "c": value} if wish else {"u": value}
        with pytest.raises(mx.MemextError, match=f"^{list(fields)[-1]} is read from the store in .*: save it to a file first"):
            mx.Run(**wish, **fields, shape=(6, 7, 8), device=place, **NEW).advance(1)
        assert is_as(place, before)


def test_planes_that_are_not_tried_are_found_in_the_graph(mx, kept):
    """One plane alone is tried of an array whose planes are as large as the whole sample."""
    place, before = kept
    da = need("dask.array")
    behind = da.pad(da.from_array(mx.open(place)["u"], chunks=4), [(0, 0), (0, 3000), (0, 2990)])
    value = da.concatenate([da.zeros((2, 3009, 3000), chunks=(1, 3009, 3000)), behind.rechunk((1, 3009, 3000))])
    with pytest.raises(mx.MemextError, match="u is read from the store"):
        mx.Run(u=value, device=place, **{**NEW, "dram": "512MiB"}).advance(1)
    assert is_as(place, before)


def test_what_fails_in_the_first_planes_destroys_nothing(mx, kept):
    place, before = kept

    def failing(x, y, z):
        raise ValueError("no table for this cell")
    with pytest.raises(ValueError, match="no table"):
        mx.Run(u=failing, shape=(6, 7, 8), device=place, **NEW).advance(1)
    assert is_as(place, before)


def test_a_function_is_not_called_more_often_over_a_former_store(mx, kept, tmp_path):
    """One that draws from a generator gives the bits that it gives in an empty place."""
    place, _ = kept
    found = []
    for where in (tmp_path, place):
        drawn = np.random.default_rng(7)
        with mx.Run(u=lambda x, y, z, drawn=drawn: drawn.random((9, 10)), shape=(6, 7, 8), device=where, plan="stream by=7 bt=1 threads=1", **NEW) as run:
            found.append(run.advance(2)["u"][...].tobytes())
    assert found[0] == found[1]


def test_other_stores_and_files_are_read_as_ever(mx, kept, tmp_path):
    """Another place; and the same place where what is read lies beside the store."""
    place, _ = kept
    u = np.asarray(mx.open(place)["u"])
    with mx.Run(u=Wrapped(mx.open(place)["u"]), device=tmp_path, **NEW) as run:
        other = run.advance(2)["u"][...]
    np.save(place / "u.npy", u)
    array = np.load(place / "u.npy", mmap_mode="r")
    with mx.Run(u=lambda x, y, z: array[z + 1], shape=(6, 7, 8), device=place, **NEW) as run:
        assert run.advance(2)["u"][...].tobytes() == other.tobytes()
    assert os.path.exists(place / "memext.store")
