# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of a few lines, for tests of what memext does with their text."""
HEAD = """#define MX_NAME "broken"
#define MX_RADIUS 1
#define MX_STATE(F) F(u, double)
"""
CELL = """#include <memext/cell.h>
MX_CELL
    %s
MX_END
"""
GOOD = HEAD + "#define MX_PARAMS(P) P(c, 0.5) P(f, 0.1)\n" + CELL % "SET(u, PARAM(c) * AT(u, 0, 0, 0) + PARAM(f) * AT(u, 1, 0, 0));"


def jacobi(body, more=""):
    return HEAD + more + CELL % body
