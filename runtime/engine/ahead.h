/* SPDX-License-Identifier: BSD-3-Clause */
/* ahead.h - inside engine/ only: what a tile will need from DRAM, listed for the kernels to ask for. */
#ifndef MX_AHEAD_H
#define MX_AHEAD_H

#include "engine/work.h"

/* More than a level has with the engine's own sizes; what a list has no room for is not asked for. */
enum { MX_MOST_RUNS = 256 };

struct mx_ahead_list {
    struct mx_ahead_run run[MX_MOST_RUNS];
    int64_t runs, bytes;
    bool to_l2; /* mx_ahead.to_l2 */
};

/* Adds what lies of a box, in the array of level `level` of the call, within the window. */
void mx_ahead_add(struct mx_ahead_list *list, const struct mx_work *work, const struct mx_advance *a,
                  int32_t level, struct mx_box box, const struct mx_window *window);
/* The same of all fields of C, for cells that a level computes; hc around them is left to others. */
void mx_ahead_add_fixed(struct mx_ahead_list *list, const struct mx_work *work, const struct mx_advance *a,
                        struct mx_box box, const struct mx_window *window);
/* The list, to be asked for evenly while `cells` cells are computed. */
struct mx_ahead mx_ahead_over(const struct mx_ahead_list *list, int64_t cells);

#endif
