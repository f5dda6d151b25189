/* SPDX-License-Identifier: BSD-3-Clause */
/* Conway's Life, in every plane of z by itself: cells are 0 or 1, one byte each. A cell lives on with two or three of its eight neighbours alive, and
 * comes alive with three. `alive` counts them. Begin with --init random, and take periodic sides or a frame of 0. */
#define MX_NAME "life"
#define MX_RADIUS 1
#define MX_STATE(F) F(u, uint8_t)
#define MX_REDUCES(R) R(alive, MX_SUM)
#include <memext/cell.h>

#define BESIDE(dy) (AT(u, -1, dy, 0) + AT(u, 1, dy, 0))

MX_CELL
    const int around = BESIDE(-1) + AT(u, 0, -1, 0) + BESIDE(0) + BESIDE(1) + AT(u, 0, 1, 0);
    SET(u, (around == 3) | ((around == 2) & (AT(u, 0, 0, 0) == 1)));
MX_END

MX_REDUCE(alive)
    RESULT(AT(u, 0, 0, 0));
MX_END
