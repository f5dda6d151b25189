/* SPDX-License-Identifier: BSD-3-Clause */
/* The 7-point star of the papers, with the sums in the order of the built-in kernel: one text for memext and all rivals. */
#define MX_NAME "star7"
#define MX_RADIUS 1
#define MX_STATE(F) F(u, double)
#include <memext/cell.h>

MX_CELL
    SET(u, 0.4 * AT(u, 0, 0, 0) + 0.1 * ((AT(u, -1, 0, 0) + AT(u, 1, 0, 0)) + ((AT(u, 0, -1, 0) + AT(u, 0, 1, 0)) + (AT(u, 0, 0, -1) + AT(u, 0, 0, 1)))));
MX_END
