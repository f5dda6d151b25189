# SPDX-License-Identifier: BSD-3-Clause
"""The rivals and the cases: what is compared."""
import os

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(os.path.dirname(HERE))
MIB = 1 << 20
# Beside the DRAM each has what its process takes before it has seen data, and the same slack. Of Python that is measured; a program in C is given 24 MiB, as much as memext counts for itself in --dram.
PROGRAM, SLACK = 24 * MIB, 8 * MIB
CASES = {"star7": os.path.join(HERE, "star7.c"), "wave": os.path.join(ROOT, "systems", "wave.c")}
# Name: what works, how many steps a pass. In the order of the table.
RIVALS = {
    "swap": ("swap", "one", "virtual memory with swap"),
    "swap-k": ("swap", "some", "virtual memory with swap, fused steps"),
    "memmap": ("memmap", "one", "numpy.memmap"),
    "memmap-numba": ("memmap-numba", "one", "numpy.memmap + numba"),
    "h5py": ("h5py", "one", "h5py slabs"),
    "dask": ("dask", "one", "dask + zarr"),
    "umap": ("umap", "one", "UMap"),
    "memmap-k": ("memmap", "some", "numpy.memmap, fused steps"),
    "memmap-numba-k": ("memmap-numba", "some", "numpy.memmap + numba, fused steps"),
    "h5py-k": ("h5py", "some", "h5py slabs, fused steps"),
    "dask-k": ("dask", "some", "dask + zarr, fused steps"),
    "memext": ("memext", "own", "memext"),
}
