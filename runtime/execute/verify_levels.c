/* SPDX-License-Identifier: BSD-3-Clause */
/* verify_levels.c - a plane of one level after the other, and what becomes of the planes of the last one. */
#include "execute/check.h"
#include "machine/machine.h"
#include "system/sides.h"

#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

/* Plane z of a field is a copy. */
static bool is_copy(const struct check *c, int array, int32_t f, int64_t z) {
    const struct mx_problem *p = c->v->problem;
    const struct mx_ends ends = mx_ends_of(&c->sides, array, f, MX_DIM_Z);
    return mx_side_source(ends.side, p->nz, p->h, z) != z;
}

static bool all_copies(const struct check *c, int array, int64_t z) {
    for (int32_t f = 0; f < mx_field_count(c->v->problem, array); f++)
        if (!is_copy(c, array, f, z)) return false;
    return true;
}

static int compare_field(struct check *c, int array, int32_t f, int64_t y, int64_t z, const char *a,
                         const char *b) {
    const struct mx_problem *p = c->v->problem;
    const enum mx_dtype dtype = mx_field_dtype(p, array, f);
    const int64_t element = mx_dtype_bytes(dtype), cells = p->nx + 2 * p->h;
    char of[MX_FIELD_NAME + 16] = "";
    int64_t x = 0;
    if (memcmp(a, b, (size_t)(cells * element)) == 0) return 0;
    while (memcmp(a + x * element, b + x * element, (size_t)element) == 0) x++;
    if (p->system != NULL) snprintf(of, sizeof of, " of field %s", p->system->field[array][f].name);
    mx_fail(c->why, 1,
            "the result differs from the plain computation; the first cell that differs is (x %lld, y %lld, "
            "z %lld)%s: %.17g, expected %.17g",
            (long long)x, (long long)y, (long long)z, of, mx_cell_load(dtype, b, x),
            mx_cell_load(dtype, a, x));
    return 1;
}

static int compare(struct check *c, int array, int64_t z, const char *expected, const char *found) {
    const struct mx_layout *l = c->v->layout;
    int different = 0;
    for (int64_t y = 0; y < l->rows && different == 0; y++)
        for (int32_t f = 0; f < mx_field_count(c->v->problem, array) && different == 0; f++) {
            const int64_t at = y * l->row_pitch_bytes + l->field_offset_bytes[array][f];
            if (is_copy(c, array, f, z)) continue;
            different = compare_field(c, array, f, y, z, expected + at, found + at);
        }
    return different;
}

/* Frames of the last level that are copies of planes that are not there, or not yet. */
int mx_check_skip(struct check *c, int i) {
    char *other;
    return mx_plane_stream_next(c->result[i] != NULL ? c->result[i] : c->scratch[i], &other) < 0 ? -EIO : 0;
}

/* A plane of the last level, or (pairs, i = 1) of the one before it, is ready. */
static int emit(struct check *c, int i, int64_t z) {
    const char *plane = mx_check_plane(c, c->depth - i, z);
    char *other;
    if (all_copies(c, mx_check_array(c, c->depth - i), z)) return mx_check_skip(c, i);
    int err = mx_plane_stream_next(c->result[i] != NULL ? c->result[i] : c->scratch[i], &other);
    if (err == -EBADMSG)
        return mx_field_damaged(mx_check_buffer(c, c->result[i] == NULL, c->done + c->depth, i), c->v->layout,
                                "the result", c->why);
    if (err < 0)
        return mx_fail(c->why, err, "verification could not %s %s %lld: %s", c->result[i] ? "read" : "write",
                       mx_plane_word(c->v->problem->flat), (long long)z, strerror(-err));
    if (c->result[i] != NULL) return compare(c, mx_check_array(c, c->depth - i), z, plane, other);
    memcpy(other, plane, (size_t)c->v->layout->plane_pitch_bytes);
    return 0;
}

static void stencil_row(const struct check *c, int64_t level, int64_t y, int64_t z, char *dst) {
    const struct mx_problem *p = c->v->problem;
    const struct mx_layout *l = c->v->layout;
    const char *src[2 * MX_MAX_HALO + 1];
    struct mx_patch patch = {.dst = dst,
                             .src = src,
                             .row_pitch_bytes = l->row_pitch_bytes,
                             .rows = 1,
                             .h = p->h,
                             .nx = p->nx,
                             .x0 = p->h,
                             .x1 = p->nx + p->h};
    for (int32_t d = -p->h; d <= p->h; d++)
        src[d + p->h] = mx_check_plane(c, level, z + d) + y * l->row_pitch_bytes;
    c->kernel(&patch, p->coef);
}

static void system_row(const struct check *c, int64_t level, int64_t y, int64_t z, char *dst) {
    const struct mx_problem *p = c->v->problem;
    const struct mx_layout *l = c->v->layout;
    const struct mx_system *s = p->system;
    const int read = mx_check_array(c, level), written = 1 - read;
    const int64_t n = 2 * p->h + 1, nc = 2 * s->hc + 1;
    void *out[MX_MAX_FIELDS];
    const void *in[MX_MAX_FIELDS * (2 * MX_MAX_HALO + 1)], *fixed[MX_MAX_FIXED * (2 * MX_MAX_HALO + 1)];
    int64_t fixed_pitch[MX_MAX_FIXED];
    for (int32_t f = 0; f < s->n_field[written]; f++) out[f] = dst + l->field_offset_bytes[written][f];
    for (int64_t i = 0; i < n * s->n_field[read]; i++)
        in[i] = mx_check_plane(c, level, z - p->h + i % n) + y * l->row_pitch_bytes +
                l->field_offset_bytes[read][i / n];
    for (int64_t i = 0; i < nc * s->n_fixed; i++)
        fixed[i] = mx_view_fixed_row(&c->view, (int32_t)(i / nc), y, z - s->hc + i % nc);
    for (int32_t i = 0; i < s->n_fixed; i++) fixed_pitch[i] = c->view.fixed[i].row_pitch_bytes;
    const int64_t t = (c->done + level) / mx_levels_a_step(p);
    double param[MX_MAX_PARAMS];
    const struct mx_row row = {.out = out,
                               .in = in,
                               .fixed = fixed,
                               .row_pitch = l->row_pitch_bytes,
                               .fixed_pitch = fixed_pitch,
                               .rows = 1,
                               .param = mx_params_at(s, c->done + level, param),
                               .x0 = p->h,
                               .x1 = p->nx + p->h,
                               .y = y - mx_halo_y(p),
                               .z = mx_check_in_grid(c, z) - p->h,
                               .t = t,
                               .nx = p->nx,
                               .ny = p->ny,
                               .nz = p->nz};
    mx_row_of(s, c->done + level)(&row);
}

/* What stands in the array written before, its frame above all: of pairs the plane two levels back. */
static const char *before(const struct check *c, int64_t level, int64_t z) {
    return mx_check_plane(c, c->pairs ? level - 1 : level, z);
}

/* Sources are added to a plane that was computed, zeros put in, and its frames in x and y made. The plane is
 * a view of one slot, and what copies it in z comes later (see copy_plane). */
static void finish_plane(const struct check *c, int64_t level, int64_t z, char *dst) {
    const struct mx_problem *p = c->v->problem;
    const struct mx_layout *l = c->v->layout;
    const struct mx_view view = {.base = {dst, dst},
                                 .slots = {1, 1},
                                 .plane_pitch_bytes = l->plane_pitch_bytes,
                                 .row_pitch_bytes = l->row_pitch_bytes,
                                 .z_offset = -z};
    if (c->v->after == NULL) return;
    struct mx_after after = *c->v->after;
    after.traces = NULL;
    after.norms = NULL;
    memset(after.ghost, 0, sizeof after.ghost);
    after.ghost[MX_DIM_Z] = true;
    after.reach = (struct mx_reach){.y1 = l->rows, .z0 = {z, z}, .z1 = {z + 1, z + 1}};
    mx_after_box(&after, &view, 0, c->done + level, p->h, p->nx + p->h, mx_halo_y(p), p->ny + mx_halo_y(p), z,
                 z + 1, NULL);
}

static void compute_plane(struct check *c, int64_t level, int64_t z, char *dst) {
    const struct mx_problem *p = c->v->problem;
    const struct mx_layout *l = c->v->layout;
    const char *old = before(c, level, z);
#pragma omp parallel for schedule(static) num_threads(mx_loop_threads(omp_get_max_threads()))
    for (int64_t y = 0; y < l->rows; y++) {
        char *row = dst + y * l->row_pitch_bytes;
        memcpy(row, old + y * l->row_pitch_bytes, (size_t)l->row_pitch_bytes);
        if (y < mx_halo_y(p) || y >= p->ny + mx_halo_y(p)) continue;
        (c->kernel != NULL ? stencil_row : system_row)(c, level, y, z, row);
    }
    finish_plane(c, level, z, dst);
    c->cells += p->nx * p->ny;
    if (c->v->progress != NULL) c->v->progress(c->v->context, c->cells / mx_levels_a_step(p));
}

static void copy_plane(const struct check *c, int64_t level, int32_t f, int64_t to, int64_t from) {
    const struct mx_problem *p = c->v->problem;
    const struct mx_layout *l = c->v->layout;
    const int array = mx_check_array(c, level);
    const struct mx_ends ends = mx_ends_of(&c->sides, array, f, MX_DIM_Z);
    const enum mx_dtype dtype = mx_field_dtype(p, array, f);
    const int64_t bytes = (p->nx + 2 * p->h) * mx_dtype_bytes(dtype);
    for (int64_t y = 0; y < l->rows; y++) {
        const int64_t at = y * l->row_pitch_bytes + l->field_offset_bytes[array][f];
        mx_side_copy(mx_check_plane(c, level, to) + at, mx_check_plane(c, level, from) + at, bytes, dtype,
                     mx_side_minus(ends.side, p->nz, p->h, to));
    }
}

/* Plane z of a level has come. The frame before the first planes is made when they come; that behind the
 * last when it should come itself. */
void mx_check_mirror(const struct check *c, int64_t level, int64_t z) {
    const struct mx_problem *p = c->v->problem;
    const int array = mx_check_array(c, level);
    if (c->ghost || level == c->depth) return;
    for (int32_t f = 0; f < mx_field_count(p, array); f++) {
        const struct mx_ends ends = mx_ends_of(&c->sides, array, f, MX_DIM_Z);
        const int64_t from = mx_side_source(ends.side, p->nz, p->h, z);
        int64_t copy[MX_SIDE_COPIES];
        for (int k = mx_side_copies(ends.side, p->nz, p->h, z, copy); k-- > 0;)
            if (copy[k] < p->h) copy_plane(c, level, f, copy[k], z);
        if (z >= p->nz + p->h && from != z) copy_plane(c, level, f, z, from);
    }
}

/* Level's plane z is known: brings level + 1 up to date. */
static int raise(struct check *c, int64_t level, int64_t z, bool frame) {
    char *dst = mx_check_plane(c, level + 1, z);
    if (c->v->stop != NULL && *c->v->stop) return -EINTR;
    if (frame)
        memcpy(dst, before(c, level, z), (size_t)c->v->layout->plane_pitch_bytes);
    else
        compute_plane(c, level, z, dst);
    mx_check_mirror(c, level + 1, z);
    return mx_check_push(c, level + 1, z);
}

int mx_check_push(struct check *c, int64_t level, int64_t z) {
    const struct mx_problem *p = c->v->problem;
    int64_t last = p->nz + 2 * p->h - 1;
    int err = 0;
    if (level == c->depth) {
        err = emit(c, 0, z);
        return err == 0 && c->pairs ? emit(c, 1, z) : err;
    }
    if (c->ghost) {
        const struct extent next = mx_check_extent(c, level + 1);
        z -= p->h;
        return z >= next.first && z < next.end ? raise(c, level, z, false) : 0;
    }
    if (z < p->h) return raise(c, level, z, true);
    if (z >= 2 * p->h) err = raise(c, level, z - p->h, false);
    for (int64_t f = p->nz + p->h; z == last && f <= last && err == 0; f++) err = raise(c, level, f, true);
    return err;
}
