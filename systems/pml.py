# SPDX-License-Identifier: BSD-3-Clause
"""pml.c in numpy: the same operations in the same order, all in float32. Arrays are [z][y][x] with a frame of one cell. Profiles are constant along two
axes and have extents of 1 there."""
import numpy as np


def layer(n, axis, thick=8, courant=0.5, loss=0.8, frame=1):
    """Returns the four profiles of one axis (0 for x) as a list [keep, gain, keep, gain]: first those of E, then those of H, which lies half a cell further.

    Each is float32 with n + 2 * frame cells along the axis, and extents of 1 along the others: (1, 1, n + 2 * frame) for x. n: interior cells. The layers
    are `thick` cells deep at both ends. keep is the factor of a field in a step: 1 inside, and exp(-loss) at the outermost interior cell, for E. gain is the
    factor of the differences: `courant` inside."""
    found = []
    for half in (0.0, 0.5):
        at = np.arange(-frame, n + frame) + half
        depth = np.clip(np.maximum(thick - at, at - (n - 1 - thick)) / thick, 0, None)
        sigma = loss * depth**3
        keep = np.exp(-sigma)
        gain = np.where(sigma > 0, courant * (1 - keep) / np.where(sigma > 0, sigma, 1), courant)
        found += [v.astype("f4").reshape([-1 if i == 2 - axis else 1 for i in range(3)]) for v in (keep, gain)]
    return found


def run(nt, **given):
    """Returns {name: array} of the split fields of E and H (exy to hzy) after nt steps. given: these fields with their frames, and the profiles ax to qz (see
    layer), by the names of pml.c. All are float32."""
    f = {name: value.copy() for name, value in given.items()}

    def inner(value):
        return value[tuple(slice(1, -1) if n > 1 else slice(None) for n in value.shape)]

    def at(field, axis, d):  # axis 0: x
        return field[tuple(slice(1 + d * (2 - i == axis), field.shape[i] - 1 + d * (2 - i == axis)) for i in range(3))]

    def level(what, keep, gain, read, d):
        axes, new = "xyz", {}
        for i in range(3):
            for j, sign in (((i + 1) % 3, 1), ((i + 2) % 3, -1)):
                other = 3 - i - j  # the component whose derivative along j counts
                name, a, b = what + axes[i] + axes[j], *(read + axes[other] + axes[(other + s) % 3] for s in (1, 2))
                whole = [at(f[a], j, s) + at(f[b], j, s) for s in (0, d)]
                difference = (whole[1] - whole[0] if d > 0 else whole[0] - whole[1]) * np.float32(sign * -d)
                new[name] = inner(f[keep + axes[j]]) * inner(f[name]) + inner(f[gain + axes[j]]) * difference
        for name, value in new.items():
            inner(f[name])[...] = value

    for _ in range(nt):
        level("h", "p", "q", "e", 1)
        level("e", "a", "b", "h", -1)
    return {name: value for name, value in f.items() if len(name) == 3}
