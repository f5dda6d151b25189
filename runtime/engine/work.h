/* work.h - inside engine/ only: what both engines share: the kernel, and rows of a view given to it. */
#ifndef MX_WORK_H
#define MX_WORK_H

#include "engine/engine.h"
#include "stencil/stencil.h"

struct mx_work {
    mx_kernel_fn *kernel;
    double coef[4];
    int64_t nx;
    int32_t h;
    int64_t cell_bytes;
};

/* -EINVAL for an unknown stencil, a wrong halo, extents or threads < 1. */
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

/* Cells of a box, interior and not empty: array `to` := stencil(array 1-to). `ahead` may be NULL. */
void mx_work_box(const struct mx_work *work, const struct mx_view *view, int to, struct mx_box box,
                 struct mx_ahead *ahead);

/* Faces, which come and go as rows of level `level` (0 = loaded); what a box has of them. */
void mx_face_insert(const struct mx_work *work, const struct mx_advance *a, int32_t level, struct mx_box box);
void mx_face_save(const struct mx_work *work, const struct mx_advance *a, int32_t level, struct mx_box box);

static inline int64_t mx_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t mx_max(int64_t a, int64_t b) { return a > b ? a : b; }
/* Towards minus infinity; b > 0. */
static inline int64_t mx_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static inline int64_t mx_ceil_div(int64_t a, int64_t b) { return -mx_floor_div(-a, b); }

extern const struct mx_engine_ops mx_engine_iblock, mx_engine_tiled;

#endif
