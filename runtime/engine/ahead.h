/* SPDX-License-Identifier: BSD-3-Clause */
/* ahead.h - inside engine/ only: lists what a tile will need from DRAM, for kernels to prefetch. */
#ifndef MX_AHEAD_H
#define MX_AHEAD_H

#include "engine/work.h"

/* More than a level needs with the engine's own sizes. What does not fit into a list is not prefetched. */
enum { MX_MOST_RUNS = 256 };

struct mx_ahead_list {
    struct mx_ahead_run run[MX_MOST_RUNS];
    int64_t runs, bytes;
    bool to_l2; /* mx_ahead.to_l2 */
};

/* Adds the part of a box that lies within the window, in the array of level `level` of the call. */
void mx_ahead_add(struct mx_ahead_list *list, const struct mx_work *work, const struct mx_advance *a,
                  int32_t level, struct mx_box box, const struct mx_window *window);
/* Adds likewise the cells of all read-only fields at the cells that a level computes, without the hc cells
 * around them. */
void mx_ahead_add_fixed(struct mx_ahead_list *list, const struct mx_work *work, const struct mx_advance *a,
                        struct mx_box box, const struct mx_window *window);
/* Returns the list as prefetches that are spread evenly over `cells` computed cells. */
struct mx_ahead mx_ahead_over(const struct mx_ahead_list *list, int64_t cells);

#endif
