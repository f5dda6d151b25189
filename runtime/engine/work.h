/* SPDX-License-Identifier: BSD-3-Clause */
/* work.h - inside engine/ only: shared by all engines: the kernel, and calls of it for rows of a view. */
#ifndef MX_WORK_H
#define MX_WORK_H

#include "engine/engine.h"
#include "machine/minmax.h"
#include "stencil/stencil.h"

/* Where the fields of an array lie in a row. */
struct mx_row_fields {
    int32_t n;
    int32_t cell_bytes[MX_MAX_FIELDS];
    int64_t offset_bytes[MX_MAX_FIELDS];
    int64_t end_bytes; /* end of the last field's cells */
};

struct mx_work {
    mx_kernel_fn *kernel; /* NULL: the system's row functions */
    double coef[4];
    int64_t nx;
    int32_t h, hy; /* halo in x and z; in y (mx_halo_y) */
    const struct mx_problem *problem;
    struct mx_row_fields fields[2]; /* of A, of B */
};

/* Returns the array of the system, A (0) or B (1), that level `level` of the run reads. */
static inline int mx_read_by(int64_t level) { return (int)(level & 1); }

/* -EINVAL for an unknown stencil, a wrong halo, extents or threads < 1, a system without row functions. */
int mx_work_make(const struct mx_engine_options *options, mx_why *why, struct mx_work *out);

static inline char *mx_view_row(const struct mx_view *view, int array, int64_t y, int64_t z) {
    int64_t slot = z + view->z_offset;
    if (slot >= view->slots[array]) slot %= view->slots[array];
    return view->base[array] + slot * view->plane_pitch_bytes + (y + view->y_offset) * view->row_pitch_bytes;
}

/* Cells in Buffer coordinates, frame counted. */
struct mx_box {
    int64_t x0, x1, y0, y1, z0, z1;
};

/* Computes the cells of a box, interior and not empty, as level l of a call: array `to` := stencil(array
 * 1-to), with to = (parity + l + 1) & 1. `ahead` may be NULL. */
void mx_work_box(const struct mx_work *work, const struct mx_advance *a, int32_t l, struct mx_box box,
                 struct mx_ahead *ahead);

/* Looks for cells that are not finite in a box that level l of a call has written, and adds them to
 * a->finding. Does nothing if the call does not end with this level's state. */
void mx_work_look(const struct mx_work *work, const struct mx_advance *a, int32_t l, struct mx_box box);

/* The bytes of field f in a row that belong to cells [x0,x1). Frame cells belong to the interior cell beside
 * them. */
struct mx_part {
    int64_t offset, bytes;
};
struct mx_part mx_row_part(const struct mx_work *work, const struct mx_row_fields *fields, int32_t f,
                           int64_t x0, int64_t x1);

/* Copy rows of level `level` (0 = loaded) from the incoming seam, or to the outgoing one, as far as they lie
 * in the box. */
void mx_seam_insert(const struct mx_work *work, const struct mx_advance *a, int32_t level, struct mx_box box);
void mx_seam_save(const struct mx_work *work, const struct mx_advance *a, int32_t level, struct mx_box box);

/* Towards minus infinity; b > 0. */
static inline int64_t mx_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static inline int64_t mx_ceil_div(int64_t a, int64_t b) { return -mx_floor_div(-a, b); }

extern const struct mx_engine_ops mx_engine_iblock, mx_engine_tiled, mx_engine_device;

#endif
