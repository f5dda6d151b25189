/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_text.h - inside engine/ only: kernels as text for compilers of devices (memext/cell_device.h). */
#ifndef MX_ACCEL_TEXT_H
#define MX_ACCEL_TEXT_H

#include "engine/work.h"

struct mx_after;

/* Makes the whole text for a problem whose arrays lie as in this view; the caller frees *out. With `after` it
 * also has the kernels for rows that a level has written. -ENOMEM; -ENOTSUP with a sentence if the kernel's
 * source is not known (a .so of the user). */
int mx_accel_text(const struct mx_work *work, const struct mx_view *view, const struct mx_after *after,
                  bool fused, mx_why *why, char **out);

/* The kernels of the text. MX_ACCEL_REDUCE + i: reduction i of the norms of the run. */
enum mx_accel_kernel {
    MX_ACCEL_CELL,
    MX_ACCEL_SOURCES,
    MX_ACCEL_PROBES,
    MX_ACCEL_FRAME,
    MX_ACCEL_IMAGE,
    MX_ACCEL_CHANGE,
    MX_ACCEL_REDUCE
};
/* Planes that a work item of a cell's kernel computes one after the other: what it reads for one plane is
 * still in cache or registers for the next. */
enum { MX_ACCEL_DEEP = 16 };
/* For two levels in one launch: the work items of a group, the planes that it computes, and the kernel's
 * number in a text without `after`. */
enum { MX_ACCEL_GROUP_X = 32, MX_ACCEL_GROUP_Y = 16, MX_ACCEL_TILE_Z = 64, MX_ACCEL_FUSED = 1 };
/* Can there be such a kernel? It needs the form jacobi with one stage, and a group's memory must hold its
 * planes. */
bool mx_accel_fuses(const struct mx_problem *problem);

enum { MX_ACCEL_TEXT_KERNELS = MX_MAX_STAGES + 10 + MX_MAX_REDUCES };
struct mx_accel_names {
    char text[MX_ACCEL_TEXT_KERNELS][48];
    const char *name[MX_ACCEL_TEXT_KERNELS];
    int32_t n;
};
void mx_accel_names(const struct mx_problem *problem, const struct mx_after *after, bool fused,
                    struct mx_accel_names *out);
/* Returns the number of a kernel in these names; if the levels of a step differ, of the kernel for this
 * level. */
int32_t mx_accel_kernel(const struct mx_problem *problem, enum mx_accel_kernel kernel, int64_t level);

#endif
