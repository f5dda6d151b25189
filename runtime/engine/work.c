#include "engine/work.h"

#include <errno.h>
#include <memext/backend.h>
#include <string.h>

int mx_work_make(const struct mx_engine_options *o, mx_why *why, struct mx_work *out) {
    const struct mx_problem *p = o->problem;
    const struct mx_stencil *stencil = mx_stencil_find(p->stencil);
    if (stencil == NULL)
        return mx_fail(why, -EINVAL, "stencil %s is not known; see `memext info`", p->stencil);
    if (stencil->h != p->h)
        return mx_fail(why, -EINVAL, "stencil %s has radius %d, but the problem's halo is %d", p->stencil,
                       stencil->h, p->h);
    if (p->nx < 1 || o->threads < 1)
        return mx_fail(why, -EINVAL, "nx = %lld and threads = %d must be at least 1", (long long)p->nx,
                       o->threads);
    *out = (struct mx_work){.kernel = mx_stencil_kernel(stencil, p->dtype, NULL),
                            .nx = p->nx,
                            .h = p->h,
                            .cell_bytes = mx_dtype_bytes(p->dtype)};
    memcpy(out->coef, p->coef, sizeof out->coef);
    return 0;
}

void mx_work_rows(const struct mx_work *work, const struct mx_view *view, int to, int64_t y0, int64_t y1,
                  int64_t z, int64_t x0, int64_t x1) {
    const char *src[2 * MX_MAX_HALO + 1];
    for (int d = 0; d <= 2 * work->h; d++) src[d] = mx_view_row(view, 1 - to, y0, z - work->h + d);
    struct mx_patch patch = {.dst = mx_view_row(view, to, y0, z),
                             .src = src,
                             .row_pitch_bytes = view->row_pitch_bytes,
                             .rows = (int32_t)(y1 - y0),
                             .h = work->h,
                             .nx = work->nx,
                             .x0 = x0,
                             .x1 = x1};
    work->kernel(&patch, work->coef);
}

/* The rows of [y0,y1) that the face has for this level and plane: where they are in it, how many. */
static int64_t face_rows(const struct mx_face *face, int64_t pitch, int32_t level, int64_t y0, int64_t y1,
                         int64_t z, int64_t *y, char **at) {
    if (face->base == NULL || z < face->first_z[level] || z >= face->first_z[level] + face->n_planes[level])
        return 0;
    const int64_t first = face->first_y[level];
    const int64_t from = mx_max(y0, first), to = mx_min(y1, first + face->n_rows[level]);
    const int64_t plane = level * face->planes_per_level + (z - face->first_z[level]);
    *y = from;
    *at = face->base + (plane * face->face_rows + (from - first)) * pitch;
    return to - from;
}

static void copy_rows(char *to, const char *from, int64_t rows, int64_t pitch, int64_t row_bytes) {
    for (int64_t r = 0; r < rows; r++) memcpy(to + r * pitch, from + r * pitch, (size_t)row_bytes);
}

void mx_face_insert(const struct mx_advance *a, int32_t level, int64_t y0, int64_t y1, int64_t z,
                    int64_t row_bytes) {
    int64_t y, pitch = a->view.row_pitch_bytes;
    char *face;
    int64_t rows = face_rows(&a->face_in, pitch, level, y0, y1, z, &y, &face);
    if (rows > 0)
        copy_rows(mx_view_row(&a->view, (a->parity + level) & 1, y, z), face, rows, pitch, row_bytes);
}

void mx_face_save(const struct mx_advance *a, int32_t level, int64_t y0, int64_t y1, int64_t z,
                  int64_t row_bytes) {
    int64_t y, pitch = a->view.row_pitch_bytes;
    char *face;
    int64_t rows = face_rows(&a->face_out, pitch, level, y0, y1, z, &y, &face);
    if (rows > 0)
        copy_rows(face, mx_view_row(&a->view, (a->parity + level) & 1, y, z), rows, pitch, row_bytes);
}
