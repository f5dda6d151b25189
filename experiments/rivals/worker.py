# SPDX-License-Identifier: BSD-3-Clause
"""One run of one rival, in a process of its own: `worker.py JSON`, see `Job`. Prints one line of JSON.

Each computes `steps` steps of a problem whose fields lie in .npy files and leaves the result as another .npy file, flushed to disk. Where a
way of storing the grid allows it, the first pass reads the file that was given and the last one writes the file that is wanted, so that import
and export cost nothing but what they have to. Time runs from before the input is opened until the output is on disk; starting Python,
importing libraries and compiling do not count.
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from rivalry.counting import counters, peak_rss_bytes  # noqa: E402
from rivalry.hdf5 import h5py  # noqa: E402
from rivalry.job import Job  # noqa: E402
from rivalry.memmap import memmap  # noqa: E402
from rivalry.program import program  # noqa: E402
from rivalry.swap import swap  # noqa: E402
from rivalry.tasks import dask  # noqa: E402

RIVALS = {"memory": swap, "swap": swap, "memmap": memmap, "memmap-numba": memmap, "h5py": h5py, "dask": dask, "umap": program, "memext": program}
NEEDS = {"memmap-numba": ["numba"], "h5py": ["h5py"], "dask": ["dask.array", "zarr"]}


def probe():
    """{rival: "" or why it cannot be run} of the rivals in Python, and versions of packages."""
    import importlib

    said, versions = {}, {"python": sys.version.split()[0]}
    for rival in RIVALS:
        said[rival] = ""
        for name in ["numpy", *NEEDS.get(rival, [])]:
            try:
                importlib.import_module(name)
                package = name.split(".")[0]
                versions[package] = getattr(sys.modules[package], "__version__", "?")
            except Exception as error:  # noqa: BLE001 - reported, of any kind
                said[rival] = f"{name} cannot be imported: {error}"
    if said["dask"] == "" and not hasattr(sys.modules["zarr"], "create_array"):
        said["dask"] = f"zarr {versions['zarr']} is older than version 3; install zarr 3 or newer"
    return {"rivals": said, "versions": versions}


def main(words):
    if words == ["--probe"]:
        return probe()
    job = Job(json.loads(words[0]))
    if job.rival not in ("memext", "umap"):
        job.load()
        for name in NEEDS.get(job.rival, []):
            __import__(name)
    if job.steps == 0:  # what the process takes before it has seen any data
        return {"base_bytes": peak_rss_bytes()}
    before, begin = counters(job.work), time.monotonic()
    said = RIVALS[job.rival](job) or {}
    seconds, after = time.monotonic() - begin, counters(job.work)
    return {"seconds": seconds, **job.phases, **{name: after[name] - before[name] for name in after}, "peak_rss_bytes": peak_rss_bytes(), **said}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])), flush=True)
