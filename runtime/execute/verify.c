/* SPDX-License-Identifier: BSD-3-Clause */
/* verify.c - the plain recomputation. It shares nothing with schedules and engines: levels of time stand one
 * behind the other, each holds 2h+1 whole planes, and a plane of level l+1 is computed by the plain kernel,
 * or row by row by the system's row function, as soon as level l has the planes around it. What does not fit
 * in memory in one pass goes through the scratch Buffer. Where the form reads the old value, that is the same
 * plane of level l-1, which is still there then: level 0 has one before it, the other array of the start.
 *
 * Sides in z. Of mirror ends each level makes its frame planes itself, when it has the planes that they copy.
 * With periodic ones a pass of d levels begins d*h planes before the interior and ends as many behind it,
 * with planes of the other end; level l has (d-l)*h of them. So the last level has the interior alone, and
 * what stands in frames that are copies is not compared: it counts for nothing. */
#include "execute/execute.h"
#include "machine/machine.h"
#include "stencil/stencil.h"

#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LEVELS = 2048 }; /* of a pass: levels recur */

struct check {
    const struct mx_verification *v;
    mx_kernel_fn *kernel; /* NULL: the system's row functions */
    bool pairs;
    mx_block *block;
    char *planes; /* ring of 2h+1 planes for each level (pairs: from -1) to depth-1, one plane for the last */
    int64_t depth; /* levels of this pass */
    int64_t reach; /* 2h+1 */
    int64_t done;  /* levels of earlier passes */
    int64_t fixed_slots;
    mx_block *fixed_block[MX_MAX_FIXED];
    struct mx_fixed_view fixed[MX_MAX_FIXED];
    struct mx_view view;                            /* of C alone */
    struct mx_plane_stream *result[2], *scratch[2]; /* newest and the other array: the last level's planes are
                                                       compared with, or written to */
    int64_t cells;
    struct mx_sides sides;
    bool ghost; /* z is periodic */
    mx_block *kept_block;
    char *kept; /* periodic z, passes after the first: the planes that its end needs again and has overwritten
                   meanwhile, those of the other array behind them */
    int64_t deepest;
    mx_why *why;
};

static int push(struct check *c, int64_t level, int64_t z);

static char *plane_of(const struct check *c, int64_t level, int64_t z) {
    const int64_t at = mx_wrap(z, c->reach);
    int64_t i = (level + c->pairs) * c->reach + (level < c->depth ? at : 0);
    return c->planes + i * c->v->layout->plane_pitch_bytes;
}

/* Planes that level `level` of this pass computes, or has of what it begins with. */
struct extent {
    int64_t first, end;
};
static struct extent extent_of(const struct check *c, int64_t level) {
    const struct mx_problem *p = c->v->problem;
    const int64_t more = c->ghost ? (c->depth - level) * p->h : 0;
    return (struct extent){p->h - more, p->nz + p->h + more};
}

/* The plane of the grid that it is. */
static int64_t in_grid(const struct check *c, int64_t z) {
    const struct mx_problem *p = c->v->problem;
    return c->ghost ? p->h + mx_wrap(z - p->h, p->nz) : z;
}

static bool is_copy(const struct check *c, int64_t z) {
    const struct mx_problem *p = c->v->problem;
    return mx_side_source(c->sides.side[MX_DIM_Z], p->nz, p->h, z) != z;
}

/* ------------------------------------------------------------------ the last level */

static double value_of(enum mx_dtype dtype, const char *row, int64_t x) {
    return dtype == MX_F64 ? ((const double *)row)[x] : (double)((const float *)row)[x];
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
            "the result differs from the plain computation first at cell (x %lld, y %lld, z %lld)%s: %.17g, "
            "expected %.17g",
            (long long)x, (long long)y, (long long)z, of, value_of(dtype, b, x), value_of(dtype, a, x));
    return 1;
}

static int compare(struct check *c, int array, int64_t z, const char *expected, const char *found) {
    const struct mx_layout *l = c->v->layout;
    int different = 0;
    for (int64_t y = 0; y < l->rows && different == 0; y++)
        for (int32_t f = 0; f < mx_field_count(c->v->problem, array) && different == 0; f++) {
            const int64_t at = y * l->row_pitch_bytes + l->field_offset_bytes[array][f];
            different = compare_field(c, array, f, y, z, expected + at, found + at);
        }
    return different;
}

/* The array that level `level` of this pass is in. */
static int array_of(const struct check *c, int64_t level) { return (int)((c->done + level) & 1); }

/* The Buffer that holds the newest array after so many levels (i = 0), or the other one: of a pair. */
static mx_buffer *buffer_of(const struct check *c, bool scratch, int64_t levels, int i) {
    const struct mx_verification *v = c->v;
    const bool partner = c->pairs && ((levels - i) & 1) != 0;
    if (scratch) return partner ? v->scratch_partner : v->scratch;
    return partner ? v->partner : v->result;
}

/* Frames of the last level that are copies of planes that are not there, or not yet. */
static int skip(struct check *c, int i) {
    char *other;
    return mx_plane_stream_next(c->result[i] != NULL ? c->result[i] : c->scratch[i], &other) < 0 ? -EIO : 0;
}

/* A plane of the last level, or (pairs, i = 1) of the one before it, is ready. */
static int emit(struct check *c, int i, int64_t z) {
    const char *plane = plane_of(c, c->depth - i, z);
    char *other;
    if (is_copy(c, z)) return skip(c, i);
    int err = mx_plane_stream_next(c->result[i] != NULL ? c->result[i] : c->scratch[i], &other);
    if (err == -EBADMSG)
        return mx_field_damaged(buffer_of(c, c->result[i] == NULL, c->done + c->depth, i), c->v->layout,
                                "the result", c->why);
    if (err < 0)
        return mx_fail(c->why, err, "verification could not %s plane %lld: %s",
                       c->result[i] ? "read" : "write", (long long)z, strerror(-err));
    if (c->result[i] != NULL) return compare(c, array_of(c, c->depth - i), z, plane, other);
    memcpy(other, plane, (size_t)c->v->layout->plane_pitch_bytes);
    return 0;
}

/* ------------------------------------------------------------------ one plane of one level */

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
        src[d + p->h] = plane_of(c, level, z + d) + y * l->row_pitch_bytes;
    c->kernel(&patch, p->coef);
}

static void system_row(const struct check *c, int64_t level, int64_t y, int64_t z, char *dst) {
    const struct mx_problem *p = c->v->problem;
    const struct mx_layout *l = c->v->layout;
    const struct mx_system *s = p->system;
    const int read = array_of(c, level), written = 1 - read;
    const int64_t n = 2 * p->h + 1, nc = 2 * s->hc + 1;
    void *out[MX_MAX_FIELDS];
    const void *in[MX_MAX_FIELDS * (2 * MX_MAX_HALO + 1)], *fixed[MX_MAX_FIXED * (2 * MX_MAX_HALO + 1)];
    int64_t fixed_pitch[MX_MAX_FIXED];
    for (int32_t f = 0; f < s->n_field[written]; f++) out[f] = dst + l->field_offset_bytes[written][f];
    for (int64_t i = 0; i < n * s->n_field[read]; i++)
        in[i] = plane_of(c, level, z - p->h + i % n) + y * l->row_pitch_bytes +
                l->field_offset_bytes[read][i / n];
    for (int64_t i = 0; i < nc * s->n_fixed; i++)
        fixed[i] = mx_view_fixed_row(&c->view, (int32_t)(i / nc), y, z - s->hc + i % nc);
    for (int32_t i = 0; i < s->n_fixed; i++) fixed_pitch[i] = l->fixed[i].row_pitch_bytes;
    const struct mx_row row = {.out = out,
                               .in = in,
                               .fixed = fixed,
                               .row_pitch = l->row_pitch_bytes,
                               .fixed_pitch = fixed_pitch,
                               .rows = 1,
                               .param = s->param,
                               .x0 = p->h,
                               .x1 = p->nx + p->h,
                               .y = y - p->h,
                               .z = in_grid(c, z) - p->h,
                               .t = (c->done + level) / mx_levels_a_step(p),
                               .nx = p->nx,
                               .ny = p->ny,
                               .nz = p->nz};
    s->row[read](&row);
}

/* What stands in the array written before, its frame above all: of pairs the plane two levels back. */
static const char *before(const struct check *c, int64_t level, int64_t z) {
    return plane_of(c, c->pairs ? level - 1 : level, z);
}

/* Sources are added to a plane that was computed, and its frames in x and y made. The plane is a view of one
 * slot. */
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
    memset(after.sides.side[MX_DIM_Z], MX_SIDE_FIXED, sizeof after.sides.side[MX_DIM_Z]); /* see copy_plane */
    mx_after_box(&after, &view, 0, c->done + level, p->h, p->nx + p->h, p->h, p->ny + p->h, z, z + 1, NULL);
}

static void compute_plane(struct check *c, int64_t level, int64_t z, char *dst) {
    const struct mx_problem *p = c->v->problem;
    const struct mx_layout *l = c->v->layout;
    const char *old = before(c, level, z);
#pragma omp parallel for schedule(static) num_threads(mx_loop_threads(omp_get_max_threads()))
    for (int64_t y = 0; y < l->rows; y++) {
        char *row = dst + y * l->row_pitch_bytes;
        memcpy(row, old + y * l->row_pitch_bytes, (size_t)l->row_pitch_bytes);
        if (y < p->h || y >= p->ny + p->h) continue;
        (c->kernel != NULL ? stencil_row : system_row)(c, level, y, z, row);
    }
    finish_plane(c, level, z, dst);
    c->cells += p->nx * p->ny;
    if (c->v->progress != NULL) c->v->progress(c->v->context, c->cells / mx_levels_a_step(p));
}

static void copy_plane(const struct check *c, int64_t level, int64_t to, int64_t from) {
    memcpy(plane_of(c, level, to), plane_of(c, level, from), (size_t)c->v->layout->plane_pitch_bytes);
}

/* Plane z of a level has come. The mirror before the first planes is made when they come; that behind the
 * last when it should come itself. */
static void mirror(const struct check *c, int64_t level, int64_t z) {
    const struct mx_problem *p = c->v->problem;
    const int64_t h = p->h;
    if (c->ghost || level == c->depth) return;
    if (c->sides.side[MX_DIM_Z][0] == MX_SIDE_MIRROR && z >= h && z < 2 * h)
        copy_plane(c, level, 2 * h - 1 - z, z);
    if (c->sides.side[MX_DIM_Z][1] == MX_SIDE_MIRROR && z >= p->nz + h)
        copy_plane(c, level, z, 2 * (p->nz + h) - 1 - z);
}

/* Level's plane z is known: brings level + 1 up to date. */
static int raise(struct check *c, int64_t level, int64_t z, bool frame) {
    char *dst = plane_of(c, level + 1, z);
    if (c->v->stop != NULL && *c->v->stop) return -EINTR;
    if (frame)
        memcpy(dst, before(c, level, z), (size_t)c->v->layout->plane_pitch_bytes);
    else
        compute_plane(c, level, z, dst);
    mirror(c, level + 1, z);
    return push(c, level + 1, z);
}

static int push(struct check *c, int64_t level, int64_t z) {
    const struct mx_problem *p = c->v->problem;
    int64_t last = p->nz + 2 * p->h - 1;
    int err = 0;
    if (level == c->depth) {
        err = emit(c, 0, z);
        return err == 0 && c->pairs ? emit(c, 1, z) : err;
    }
    if (c->ghost) {
        const struct extent next = extent_of(c, level + 1);
        z -= p->h;
        return z >= next.first && z < next.end ? raise(c, level, z, false) : 0;
    }
    if (z < p->h) return raise(c, level, z, true);
    if (z >= 2 * p->h) err = raise(c, level, z - p->h, false);
    for (int64_t f = p->nz + p->h; z == last && f <= last && err == 0; f++) err = raise(c, level, f, true);
    return err;
}

/* ------------------------------------------------------------------ passes */

/* Plane z of a field of C into its slot; a file without a frame has fewer planes and rows. */
static int load_fixed(struct check *c, int32_t i, int64_t z) {
    const struct mx_problem *p = c->v->problem;
    const struct mx_fixed_layout *l = &c->v->layout->fixed[i];
    const struct mx_fixed_view *f = &c->fixed[i];
    const int64_t beside = p->h - l->frame, from = in_grid(c, z);
    struct mx_span span;
    mx_ticket *ticket = NULL;
    if (from < beside || from >= p->nz + 2 * p->h - beside) return 0;
    mx_fixed_span(l, from, beside, p->ny + 2 * p->h - beside, &span.offset_bytes, &span.bytes);
    const int64_t first = l->offset_bytes + from * l->plane_pitch_bytes;
    const int64_t shift = ((first % f->align_bytes) + f->align_bytes) % f->align_bytes;
    span.dram = f->base + (z + c->view.z_offset) % f->slots * f->slot_pitch_bytes +
                (int64_t)span.offset_bytes - (first - shift);
    int err = mx_buffer_read(c->v->fixed[i], &span, 1, &ticket);
    if (err == 0) err = mx_wait(ticket);
    if (err == -EBADMSG) return mx_field_damaged(c->v->fixed[i], NULL, p->system->fixed[i].name, c->why);
    if (err < 0)
        return mx_fail(c->why, err, "verification could not read plane %lld of field %s: %s", (long long)z,
                       p->system->fixed[i].name, strerror(-err));
    return 0;
}

/* Of what the pass before has written, out of order. */
static int read_plane(struct check *c, int i, int64_t z, char *to) {
    mx_buffer *buffer = buffer_of(c, true, c->done, i);
    const uint64_t bytes = (uint64_t)c->v->layout->plane_pitch_bytes;
    const struct mx_span span = {(uint64_t)z * bytes, bytes, to};
    mx_ticket *ticket = NULL;
    int err = mx_buffer_read(buffer, &span, 1, &ticket);
    if (err == 0) err = mx_wait(ticket);
    if (err == -EBADMSG) return mx_field_damaged(buffer, c->v->layout, "the grid", c->why);
    if (err < 0)
        return mx_fail(c->why, err, "verification could not read plane %lld: %s", (long long)z,
                       strerror(-err));
    return 0;
}

/* The first planes of the interior stand behind the last as well: they are kept. */
static int take_again(struct check *c, int i, int64_t z, char *to) {
    const struct mx_problem *p = c->v->problem;
    const int64_t pitch = c->v->layout->plane_pitch_bytes, at = in_grid(c, z) - p->h;
    char *kept = c->kept + (i * c->deepest * p->h + at) * pitch;
    if (z >= p->nz + p->h) return memcpy(to, kept, (size_t)pitch), 0;
    int err = read_plane(c, i, in_grid(c, z), to);
    if (err == 0 && z >= p->h && at < c->depth * p->h) memcpy(kept, to, (size_t)pitch);
    return err;
}

/* Nothing is known of the frame at a periodic end. */
static int skip_all(struct check *c) {
    int err = skip(c, 0);
    return err == 0 && c->pairs ? skip(c, 1) : err;
}

/* Plane z of level 0, or (pairs, i = 1) of the array before it, of the first pass or a later one. */
static int take_plane(struct check *c, int i, bool first, struct mx_plane_stream *input, int64_t z) {
    const struct mx_verification *v = c->v;
    char *to = plane_of(c, -i, z), *from;
    if (first && array_of(c, -i) == 0) return v->source(v->source_context, in_grid(c, z), to);
    if (first) return v->partner_source(v->partner_context, in_grid(c, z), to);
    if (c->ghost) return take_again(c, i, z, to);
    int err = mx_plane_stream_next(input, &from);
    if (err == 1) memcpy(to, from, (size_t)v->layout->plane_pitch_bytes);
    if (err == 1 && i == 0) mirror(c, 0, z);
    return err < 0 ? err : 0;
}

static int pass(struct check *c, bool first, struct mx_plane_stream *const input[2]) {
    const struct mx_verification *v = c->v;
    const int64_t h = v->problem->h;
    const struct extent all = c->ghost ? extent_of(c, 0) : (struct extent){0, v->layout->planes};
    int err = 0;
    for (int64_t z = 0; z < h && err == 0 && c->ghost; z++) err = skip_all(c);
    for (int64_t z = all.first; z < all.end && err == 0; z++) {
        for (int32_t i = 0; i < mx_fixed_count(v->problem) && err == 0; i++) err = load_fixed(c, i, z);
        if (err == 0 && c->pairs) err = take_plane(c, 1, first, input[1], z);
        if (err == 0) err = take_plane(c, 0, first, input[0], z);
        if (err == 0) err = push(c, 0, z);
    }
    for (int64_t z = 0; z < h && err == 0 && c->ghost; z++) err = skip_all(c);
    return err;
}

static int open_stream(struct check *c, bool scratch, int64_t levels, int i, bool write,
                       struct mx_plane_stream **out) {
    return mx_plane_stream_open(buffer_of(c, scratch, levels, i), c->v->layout, c->v->budget, write, c->why,
                                out);
}

static int sweeps(struct check *c, int64_t deepest) {
    int64_t left = mx_levels_of(c->v->problem, c->v->problem->nt);
    int err = 0;
    for (bool first = true; err == 0 && (first || left > 0); first = false) {
        struct mx_plane_stream *input[2] = {NULL, NULL};
        c->depth = left < deepest ? left : deepest;
        left -= c->depth;
        c->view.z_offset = c->ghost ? c->depth * c->v->problem->h : 0;
        for (int i = 0; i < 1 + c->pairs; i++) {
            c->result[i] = c->scratch[i] = NULL;
            /* Ghosts are read out of order, see take_again. A stream would read ahead what the pass writes.
             */
            if (!first && !c->ghost && err == 0) err = open_stream(c, true, c->done, i, false, &input[i]);
            if (err == 0)
                err = left == 0 ? open_stream(c, false, c->done + c->depth, i, false, &c->result[i])
                                : open_stream(c, true, c->done + c->depth, i, true, &c->scratch[i]);
        }
        if (err == 0) err = pass(c, first, input);
        for (int i = 0; i < 1 + c->pairs; i++) {
            err = mx_plane_stream_close(input[i], err);
            err = mx_plane_stream_close(c->result[i], err);
            err = mx_plane_stream_close(c->scratch[i], err);
        }
        c->done += c->depth;
    }
    return err;
}

static int64_t fixed_plane_bytes(const struct mx_verification *v) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < mx_fixed_count(v->problem); i++)
        bytes += mx_fixed_slot_bytes(&v->layout->fixed[i], v->layout->rows);
    return bytes;
}

static int open_fixed(struct check *c) {
    const struct mx_layout *l = c->v->layout;
    struct mx_block_options options = {.budget = c->v->budget};
    int err = 0;
    c->view.fixed = c->fixed;
    for (int32_t i = 0; i < mx_fixed_count(c->v->problem) && err == 0; i++) {
        const struct mx_fixed_layout *f = &l->fixed[i];
        c->fixed[i] = (struct mx_fixed_view){.slots = c->fixed_slots,
                                             .slot_pitch_bytes = mx_fixed_slot_bytes(f, l->rows),
                                             .row_pitch_bytes = f->row_pitch_bytes,
                                             .offset_bytes = f->offset_bytes,
                                             .file_plane_pitch_bytes = f->plane_pitch_bytes,
                                             .align_bytes = f->align_bytes > 0 ? f->align_bytes : 1};
        if (c->ghost) {
            c->fixed[i].first_plane = c->v->problem->h;
            c->fixed[i].period_planes = c->v->problem->nz;
        }
        err = mx_block_create(&options, (uint64_t)(c->fixed_slots * c->fixed[i].slot_pitch_bytes), c->why,
                              &c->fixed_block[i]);
        if (err == 0) c->fixed[i].base = mx_block_data(c->fixed_block[i]);
    }
    return err;
}

static struct check check_of(const struct mx_verification *v, mx_why *why) {
    struct check c = {.v = v, .reach = 2 * v->problem->h + 1, .pairs = mx_reads_old(v->problem), .why = why};
    if (v->after != NULL) c.sides = v->after->sides;
    c.ghost = mx_sides_periodic(&c.sides, MX_DIM_Z);
    return c;
}

/* Planes that each level of a pass keeps for its end. */
static int64_t kept_planes(const struct check *c) {
    return c->ghost && c->v->scratch != NULL ? c->v->problem->h * (1 + c->pairs) : 0;
}

/* How many levels a pass may have. */
static int find_deepest(struct check *c) {
    const struct mx_verification *v = c->v;
    const struct mx_problem *p = v->problem;
    const struct mx_layout *l = v->layout;
    int64_t half = l->plane_pitch_bytes > MX_PLANE_GROUP_BYTES ? l->plane_pitch_bytes : MX_PLANE_GROUP_BYTES;
    /* Two streams of two halves for each array; planes of the last level, and of the one before the first; of
     * C what a level reads around its plane. */
    int64_t streams = 4 * half * (1 + c->pairs), fixed = fixed_plane_bytes(v);
    int64_t ends = l->plane_pitch_bytes * (1 + (c->pairs ? c->reach : 0)) +
                   (p->system != NULL ? (p->system->hc + 1) * fixed : 0);
    const int64_t kept = kept_planes(c);
    int64_t level_bytes = (c->reach + kept) * l->plane_pitch_bytes + p->h * fixed;
    int64_t deepest = ((int64_t)v->memory_bytes - streams - ends) / level_bytes;
    const int64_t levels = mx_levels_of(p, p->nt);
    if (deepest > MOST_LEVELS) deepest = MOST_LEVELS;
    if (kept > 0 && deepest > p->nz / p->h) deepest = p->nz / p->h; /* ghosts of one period */
    if (deepest > levels || levels == 0) deepest = levels;
    if (deepest < 1 && levels > 0)
        return mx_fail(c->why, -ENOMEM, "verification needs %lld bytes of DRAM, %llu are left; raise --dram",
                       (long long)(streams + level_bytes), (unsigned long long)v->memory_bytes);
    if (v->scratch == NULL && levels > MOST_LEVELS)
        return mx_fail(
            c->why, -ENOTSUP,
            "with one pair of Buffers verification is one pass, of %d time levels at most, and this "
            "run has %lld: leave --in-place or --verify out",
            MOST_LEVELS, (long long)levels);
    if (v->scratch == NULL && deepest < levels)
        return mx_fail(
            c->why, -ENOMEM,
            "with one pair of Buffers verification is one pass, which needs %lld bytes of DRAM; %llu "
            "are left: raise --dram, or leave --in-place or --verify out",
            (long long)(streams + ends + levels * level_bytes), (unsigned long long)v->memory_bytes);
    c->deepest = deepest;
    return 0;
}

int mx_verify_fits(const struct mx_verification *v, mx_why *why) {
    struct check c = check_of(v, why);
    return find_deepest(&c);
}

int mx_verify(const struct mx_verification *v, mx_why *why) {
    const struct mx_problem *p = v->problem;
    const struct mx_layout *l = v->layout;
    struct check c = check_of(v, why);
    int err = find_deepest(&c);
    if (err < 0) return err;
    const int64_t deepest = c.deepest, kept = kept_planes(&c);
    if (p->system == NULL) c.kernel = mx_stencil_plain(mx_stencil_find(p->stencil), p->dtype);
    if (p->system != NULL) c.fixed_slots = deepest * p->h + p->system->hc + 1;
    struct mx_block_options options = {.budget = v->budget};
    err = mx_block_create(&options,
                          (uint64_t)((deepest * c.reach + c.reach * (1 + c.pairs)) * l->plane_pitch_bytes),
                          why, &c.block);
    if (err == 0 && kept > 0 && deepest > 0)
        err =
            mx_block_create(&options, (uint64_t)(deepest * kept * l->plane_pitch_bytes), why, &c.kept_block);
    if (c.kept_block != NULL) c.kept = mx_block_data(c.kept_block);
    if (err == 0) err = open_fixed(&c);
    if (err == 0) {
        c.planes = mx_block_data(c.block);
        err = sweeps(&c, deepest);
    }
    for (int i = 0; i < MX_MAX_FIXED; i++) mx_block_free(c.fixed_block[i]);
    mx_block_free(c.kept_block);
    mx_block_free(c.block);
    return err;
}
