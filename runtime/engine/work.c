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
    int err = mx_stencil_isa_check(why);
    if (err != 0) return err;
    *out = (struct mx_work){.kernel = mx_stencil_kernel(stencil, p->dtype, NULL),
                            .nx = p->nx,
                            .h = p->h,
                            .cell_bytes = mx_dtype_bytes(p->dtype)};
    memcpy(out->coef, p->coef, sizeof out->coef);
    return 0;
}

enum { MOST_PLANES = 64 }; /* of one kernel call */

/* Row y of planes z, z+1, ... of an array. */
static void plane_rows(const struct mx_view *view, int array, int64_t y, int64_t z, int64_t planes,
                       char **out) {
    const int64_t slots = view->slots[array], pitch = view->plane_pitch_bytes;
    char *row = mx_view_row(view, array, y, z);
    char *const end = view->base[array] + slots * pitch;
    for (int64_t i = 0; i < planes; i++, row += pitch) {
        if (row >= end) row -= slots * pitch;
        out[i] = row;
    }
}

void mx_work_box(const struct mx_work *work, const struct mx_view *view, int to, struct mx_box box,
                 struct mx_ahead *ahead) {
    const int64_t h = work->h;
    char *src[MOST_PLANES + 2 * MX_MAX_HALO], *dst[MOST_PLANES];
    struct mx_patch patch = {.src = (const char *const *)src,
                             .dst_planes = dst,
                             .row_pitch_bytes = view->row_pitch_bytes,
                             .rows = (int32_t)(box.y1 - box.y0),
                             .h = work->h,
                             .nx = work->nx,
                             .x0 = box.x0,
                             .x1 = box.x1,
                             .ahead = ahead};
    for (int64_t z = box.z0; z < box.z1; z += MOST_PLANES) {
        patch.planes = (int32_t)mx_min(box.z1 - z, MOST_PLANES);
        plane_rows(view, 1 - to, box.y0, z - h, patch.planes + 2 * h, src);
        plane_rows(view, to, box.y0, z, patch.planes, dst);
        patch.dst = dst[0];
        work->kernel(&patch, work->coef);
    }
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

/* Bytes of a row that belong to cells [x0,x1): the frame goes with its neighbour. */
struct part {
    int64_t offset, bytes;
};

static struct part row_part(const struct mx_work *work, int64_t x0, int64_t x1) {
    const int64_t from = x0 <= work->h ? 0 : x0;
    const int64_t to = x1 >= work->nx + work->h ? work->nx + 2 * work->h : x1;
    return (struct part){from * work->cell_bytes, (to - from) * work->cell_bytes};
}

static void copy_rows(char *to, const char *from, int64_t rows, int64_t pitch, struct part part) {
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + r * pitch + part.offset, from + r * pitch + part.offset, (size_t)part.bytes);
}

enum way { FROM_FACE, TO_FACE };

static void copy_face(const struct mx_work *work, const struct mx_advance *a, const struct mx_face *face,
                      enum way way, int32_t level, struct mx_box box) {
    const int64_t pitch = a->view.row_pitch_bytes;
    const struct part part = row_part(work, box.x0, box.x1);
    for (int64_t z = box.z0; z < box.z1; z++) {
        int64_t y;
        char *kept;
        int64_t rows = face_rows(face, pitch, level, box.y0, box.y1, z, &y, &kept);
        if (rows <= 0) continue;
        char *row = mx_view_row(&a->view, (a->parity + level) & 1, y, z);
        copy_rows(way == TO_FACE ? kept : row, way == TO_FACE ? row : kept, rows, pitch, part);
    }
}

void mx_face_insert(const struct mx_work *work, const struct mx_advance *a, int32_t level,
                    struct mx_box box) {
    copy_face(work, a, &a->face_in, FROM_FACE, level, box);
}

void mx_face_save(const struct mx_work *work, const struct mx_advance *a, int32_t level, struct mx_box box) {
    copy_face(work, a, &a->face_out, TO_FACE, level, box);
}
