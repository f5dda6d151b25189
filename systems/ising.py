# SPDX-License-Identifier: BSD-3-Clause
"""ising.c in numpy, with the same random numbers. Arrays are [z][y][x] with a frame of one cell."""
import numpy as np

INNER = (slice(1, -1),) * 3


def mixed(h):
    """Mixes the bits of 32-bit numbers, which are held in uint64."""
    h = (h ^ (h >> 16)) * 0x7FEB352D & 0xFFFFFFFF
    h = (h ^ (h >> 15)) * 0x846CA68B & 0xFFFFFFFF
    return h ^ (h >> 16)


def run(nt, s, w=0.41204, seed=1, periodic=False):
    """Returns {"s": s after nt steps}. s: spins -1 and 1 (0 counts as -1), int8, with the frame. w: exp(-4 J / kT). periodic: before every half step the
    frame copies the other end; otherwise it keeps its values."""
    s = s.copy()
    z, y, x = np.indices([n - 2 for n in s.shape], dtype=np.uint64)
    for t in range(nt):
        h = mixed(np.full((1, 1, 1), t + int(seed), np.uint64))
        for i in (z, y, x):
            h = mixed((i + h) & 0xFFFFFFFF)
        for colour in (0, 1):
            if periodic:
                s = np.pad(s[INNER], 1, mode="wrap")
            spin = np.where(s > 0, 1, -1)
            around = sum(np.roll(spin, d, axis)[INNER] for axis in range(3) for d in (-1, 1))
            bonds = spin[INNER] * around
            chance = np.select([bonds <= 0, bonds == 2, bonds == 4], [1.0, w, w * w], w * w * w)
            turned = (h * 2.0**-32 < chance) & ((x + y + z) % 2 == colour)
            s[INNER] = np.where(turned, -spin[INNER], spin[INNER])
    return {"s": np.pad(s[INNER], 1, mode="wrap") if periodic else s}
