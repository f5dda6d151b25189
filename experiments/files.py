#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How fast does the Python package import and export files, how much DRAM does it need, and do the sources stay unchanged?

Needs the installed package (`pip install .`) with h5py, netCDF4, zarr, tifffile and segyio; formats whose library is missing are left out. For each
format a volume of float32 is written, read into a store by memext.Run, and the store's field is written again:

    decode, encode   MB of cells a second of the format's library alone, from and to memory (tmpfs)
    device           of the place alone: the same bytes read by read() and written by write() and fsync, the page cache left out
    import, export   of memext (import: until the store holds the state; the run then reads it once for its checksum), files on the place, the page cache dropped before and all data on the device afterwards
    share            of the slower of both: the time that it takes alone / the time that memext takes. Reads and writes of one device are added up,
                     and an import whose decoder and device share the cores cannot reach 1
    rss              peak resident set of this process while it imports or exports, less what it had before, in MiB
    same             the source's SHA-256 is what it was

usage: experiments/files.py -d DIRECTORY [--cells 400] [--dram 64MiB] [--repeat 3] [--formats npy,h5,...] [--json FILE]
"""
import argparse
import gc
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
import time

import memext as mx
import numpy as np

WRITE_PIECE = 8 << 20


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-d", "--device", default=".", type=pathlib.Path, metavar="DIRECTORY", help="directory on the storage to measure (default: .)")
    p.add_argument("--cells", type=int, default=400, help="cells of an edge of the volume (default: 400)")
    p.add_argument("--dram", default="64MiB", help="DRAM of each import (default: 64MiB)")
    p.add_argument("--repeat", type=int, default=3, help="how often each time is measured; the smallest one counts (default: 3)")
    p.add_argument("--formats", default=",".join(FORMATS), help="formats to measure, separated by commas: " + ", ".join(FORMATS))
    p.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the results to FILE")
    return p.parse_args()


# ------------------------------------------------------------------ formats

def volume(n):
    """Smooth, with noise in the last bits, so that compression has something to do and no easy game."""
    z, y, x = np.ogrid[:n, :n, :n]
    a = np.sin(x / 17).astype("f4") * np.cos(y / 23).astype("f4") + (z / n).astype("f4")
    return a + np.random.default_rng(1).random(a.shape, "f4") * np.float32(1e-3)


def write_npy(path, a):
    np.save(path, a)


def write_nrrd(path, a):
    with open(path, "wb") as file:
        nz, ny, nx = a.shape
        file.write(f"NRRD0004\ntype: float\ndimension: 3\nsizes: {nx} {ny} {nz}\nendian: little\nencoding: raw\n\n".encode())
        a.tofile(file)


def write_h5(path, a, **more):
    import h5py
    with h5py.File(path, "w") as file:
        file.create_dataset("u", data=a, **more)


def write_nc(path, a):
    import netCDF4
    with netCDF4.Dataset(path, "w") as file:
        for name, n in zip("zyx", a.shape):
            file.createDimension(name, n)
        file.createVariable("u", "f4", ("z", "y", "x"), chunksizes=(8, 128, 128), zlib=True, complevel=1)[:] = a


def write_zarr(path, a):
    mx.save(a, path)


def write_tiff(path, a):
    import tifffile
    tifffile.imwrite(path, a, photometric="minisblack", bigtiff=True)


def write_segy(path, a):
    import segyio
    segyio.tools.from_array3D(str(path), a, format=segyio.SegySampleFormat.IEEE_FLOAT_4_BYTE)


FORMATS = {  # ending, module, how it is written, how memext exports it (None: it does not)
    "npy": (".npy", None, write_npy, {}),
    "nrrd": (".nrrd", None, write_nrrd, None),
    "h5": (".h5", "h5py", write_h5, {"chunks": None}),
    "h5-chunks": (".h5", "h5py", lambda path, a: write_h5(path, a, chunks=(8, 128, 128)), {"chunks": (8, 128, 128)}),
    "h5-gzip": (".h5", "h5py", lambda path, a: write_h5(path, a, chunks=(8, 128, 128), compression="gzip", compression_opts=1),
                {"chunks": (8, 128, 128), "compression": "gzip", "compression_opts": 1}),
    "netcdf4": (".nc", "netCDF4", write_nc, None),
    "zarr": (".zarr", "zarr", write_zarr, {}),
    "tiff": (".tif", "tifffile", write_tiff, None),
    "segy": (".sgy", "segyio", write_segy, None),
}


# ------------------------------------------------------------------ what is measured

def files_of(path):
    return sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def size_of(path):
    return sum(p.stat().st_size for p in files_of(path))


def sync(path):
    for p in files_of(path):
        with open(p, "rb") as file:
            os.fsync(file.fileno())


def drop(path):
    sync(path)
    for p in files_of(path):
        with open(p, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def digest(path):
    h = hashlib.sha256()
    for p in files_of(path):
        h.update(str(p.relative_to(path)).encode())
        with open(p, "rb") as file:
            while piece := file.read(1 << 20):
                h.update(piece)
    return h.hexdigest()


def timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def read_all(path):
    buffer = bytearray(WRITE_PIECE)
    for p in files_of(path):
        with open(p, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def read_planes(array):
    """Where a field lies in its store, frame and padding included."""
    buffer, at, end = bytearray(WRITE_PIECE), array.offset, array.offset + array.plane_pitch * array.shape[0]
    with open(array.path, "rb", buffering=0) as file:
        while at < end:
            at += os.preadv(file.fileno(), [memoryview(buffer)[:min(len(buffer), end - at)]], at)


def device_seconds(place, path, written):
    """To read the file from the device and to write so many bytes to it, each alone; both, for they share it."""
    drop(path)
    seconds = timed(lambda: read_all(path)) if path.exists() else 0
    return seconds + write_seconds(place, written)


def write_seconds(place, count):
    name, piece = place / "device.bin", os.urandom(1 << 20) * 8

    def write():
        with open(name, "wb", buffering=0) as file:
            for _ in range(0, count, len(piece)):
                file.write(piece)
            os.fsync(file.fileno())
    seconds = timed(write) / (-(-count // len(piece)) * len(piece)) * count
    name.unlink()
    return seconds


def peak_reset():
    gc.collect()
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def rss(key):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1024
    return 0


def decode(path):
    """The library alone: every plane once, in the order and the groups that its chunks want, into memory that is there."""
    array = mx.open(path)
    for z in range(array.shape[0]):
        array.plane(z)


class Measured:
    """One import: the store's field begins with the file; no steps."""

    def __init__(self, path, place, dram):
        before = rss("VmRSS")
        peak_reset()
        begin = time.perf_counter()
        self.run = mx.Run(u=path, dtype="f4", device=place, dram=dram, keep=True, force=True, resume=False)
        self.run.advance(0)
        sync(place)
        # Afterwards the run reads the store once for its checksum: that is no import.
        self.whole, self.rss = time.perf_counter() - begin, rss("VmHWM") - before
        self.seconds = self.run.report["init_seconds"]
        self.written = self.run.report["predicted_init_bytes"]


def measure(name, a, o, place, memory):
    ending, _module, write, export = FORMATS[name]
    path = place / f"source{ending}"
    write(path, a)
    sync(path)
    before, cells = digest(path), a.nbytes
    store = place / "store"
    store.mkdir(exist_ok=True)
    near = memory / f"source{ending}"
    (shutil.copytree if path.is_dir() else shutil.copy)(path, near)
    out = {"format": name, "file_bytes": size_of(path), "cells_bytes": cells}
    decoding, device, importing, peaks = [], [], [], []
    for _ in range(o.repeat):
        decoding.append(timed(lambda: decode(near)))
        drop(path)
        m = Measured(path, store, o.dram)
        importing.append(m.seconds)
        peaks.append(m.rss)
        device.append(device_seconds(place, path, m.written))
    out["import"] = result(cells, decoding, device, importing, max(peaks))
    (shutil.rmtree if near.is_dir() else os.unlink)(near)
    if export is not None:
        out["export"] = measure_export(m.run["u"], a, ending, export, o, place, memory)
    out["same"] = digest(path) == before
    m.run.close(keep=False)
    (shutil.rmtree if path.is_dir() else os.unlink)(path)
    return out


def measure_export(field, a, ending, more, o, place, memory):
    path, near = place / f"result{ending}", memory / f"result{ending}"
    encoding, device, exporting, peaks = [], [], [], []
    for _ in range(o.repeat):
        encoding.append(timed(lambda: mx.save(a, near, "u", **more)))
        (shutil.rmtree if near.is_dir() else os.unlink)(near)
        drop(field.path)
        before = rss("VmRSS")
        peak_reset()
        exporting.append(timed(lambda: field.save(path, "u", **more)))  # which ends with fsync of all files
        peaks.append(rss("VmHWM") - before)
        count = size_of(path)
        (shutil.rmtree if path.is_dir() else os.unlink)(path)
        drop(field.path)
        device.append(timed(lambda: read_planes(field)) + write_seconds(place, count))
    return result(a.nbytes, encoding, device, exporting, max(peaks))


def result(cells, alone, device, ours, peak):
    alone, device, ours = min(alone), min(device), min(ours)
    rate = lambda seconds: round(cells / seconds / 1e6, 1)
    return {"library_MB_s": rate(alone), "device_MB_s": rate(device), "memext_MB_s": rate(ours), "share": round(max(alone, device) / ours, 3),
            "rss_MiB": round(peak, 1)}


def row(found, what):
    r = found[what]
    return (f"| {found['format']} | {what} | {found['file_bytes'] / 1e6:.0f} | {r['library_MB_s']:.0f} | {r['device_MB_s']:.0f} | {r['memext_MB_s']:.0f} | "
            f"{r['share']:.2f} | {r['rss_MiB']:.0f} | {'yes' if found['same'] else 'NO'} |")


def main():
    o = options()
    found = []
    with tempfile.TemporaryDirectory(dir=o.device, prefix="memext-files-") as place, tempfile.TemporaryDirectory(dir="/dev/shm", prefix="memext-files-") as memory:
        a = volume(o.cells)
        print("| format | what | file MB | library MB/s | device MB/s | memext MB/s | share | rss MiB | same |\n|---|---|---|---|---|---|---|---|---|", flush=True)
        for name in o.formats.split(","):
            try:
                FORMATS[name][1] and __import__(FORMATS[name][1])
            except ImportError as error:
                print(f"{name} is left out: {error}", flush=True)
                continue
            found.append(measure(name, a, o, pathlib.Path(place), pathlib.Path(memory)))
            for what in ("import", "export"):
                if what in found[-1]:
                    print(row(found[-1], what), flush=True)
    if o.json:
        o.json.write_text(json.dumps({"cells": o.cells, "dram": o.dram, "device": str(o.device), "results": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
