/* verify.c - the plain recomputation. It shares nothing with schedules and engines: levels of time stand one
 * behind the other, each holds 2h+1 whole planes, and a plane of level l+1 is computed by the plain kernel as
 * soon as level l has the planes around it. What does not fit in memory in one pass goes through the scratch
 * Buffer. */
#include "execute/execute.h"
#include "stencil/stencil.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct check {
    const struct mx_verification *v;
    mx_kernel_fn *kernel;
    mx_block *block;
    char *planes;  /* ring of 2h+1 planes for each level 0..depth-1, then one plane for the last level */
    int64_t depth; /* levels of this pass */
    int64_t reach; /* 2h+1 */
    struct mx_plane_stream *result, *scratch; /* the last level's planes are compared with, or written to */
    int64_t updates;
    mx_why *why;
};

static int push(struct check *c, int64_t level, int64_t z);

static char *plane_of(const struct check *c, int64_t level, int64_t z) {
    int64_t i = level * c->reach + (level < c->depth ? z % c->reach : 0);
    return c->planes + i * c->v->layout->plane_pitch_bytes;
}

static int compare(struct check *c, int64_t z, const char *expected, const char *found) {
    const struct mx_layout *l = c->v->layout;
    int64_t element = mx_dtype_bytes(c->v->problem->dtype);
    for (int64_t y = 0; y < l->rows; y++) {
        const char *a = expected + y * l->row_pitch_bytes, *b = found + y * l->row_pitch_bytes;
        if (memcmp(a, b, (size_t)l->row_bytes) == 0) continue;
        int64_t x = 0;
        while (memcmp(a + x * element, b + x * element, (size_t)element) == 0) x++;
        bool wide = element == 8;
        mx_fail(c->why, 1,
                "the result differs from the plain computation first at cell (x %lld, y %lld, z %lld): "
                "%.17g, expected %.17g",
                (long long)x, (long long)y, (long long)z,
                wide ? ((const double *)b)[x] : (double)((const float *)b)[x],
                wide ? ((const double *)a)[x] : (double)((const float *)a)[x]);
        return 1;
    }
    return 0;
}

/* A plane of the last level is ready. */
static int emit(struct check *c, int64_t z, const char *plane) {
    char *other;
    int err = mx_plane_stream_next(c->result != NULL ? c->result : c->scratch, &other);
    if (err == -EBADMSG) return mx_field_damaged(c->v->result, c->v->layout, "the result", c->why);
    if (err < 0)
        return mx_fail(c->why, err, "verification could not %s plane %lld: %s", c->result ? "read" : "write",
                       (long long)z, strerror(-err));
    if (c->result != NULL) return compare(c, z, plane, other);
    memcpy(other, plane, (size_t)c->v->layout->plane_pitch_bytes);
    return 0;
}

static void compute_plane(struct check *c, int64_t level, int64_t z, char *dst) {
    const struct mx_problem *p = c->v->problem;
    const struct mx_layout *l = c->v->layout;
    const char *centre = plane_of(c, level, z);
#pragma omp parallel for schedule(static)
    for (int64_t y = 0; y < l->rows; y++) {
        const char *src[2 * MX_MAX_HALO + 1];
        struct mx_patch patch = {.dst = dst + y * l->row_pitch_bytes,
                                 .src = src,
                                 .row_pitch_bytes = l->row_pitch_bytes,
                                 .rows = 1,
                                 .h = p->h,
                                 .nx = p->nx,
                                 .x0 = p->h,
                                 .x1 = p->nx + p->h};
        memcpy(patch.dst, centre + y * l->row_pitch_bytes, (size_t)l->row_pitch_bytes);
        if (y < p->h || y >= p->ny + p->h) continue;
        for (int32_t d = -p->h; d <= p->h; d++)
            src[d + p->h] = plane_of(c, level, z + d) + y * l->row_pitch_bytes;
        c->kernel(&patch, p->coef);
    }
    c->updates += p->nx * p->ny;
    if (c->v->progress != NULL) c->v->progress(c->v->context, c->updates);
}

/* Level's plane z is known: brings level + 1 up to date. */
static int raise(struct check *c, int64_t level, int64_t z, bool frame) {
    char *dst = plane_of(c, level + 1, z);
    if (c->v->stop != NULL && *c->v->stop) return -EINTR;
    if (frame)
        memcpy(dst, plane_of(c, level, z), (size_t)c->v->layout->plane_pitch_bytes);
    else
        compute_plane(c, level, z, dst);
    return push(c, level + 1, z);
}

static int push(struct check *c, int64_t level, int64_t z) {
    const struct mx_problem *p = c->v->problem;
    int64_t last = p->nz + 2 * p->h - 1;
    int err = 0;
    if (level == c->depth) return emit(c, z, plane_of(c, level, z));
    if (z < p->h) return raise(c, level, z, true);
    if (z >= 2 * p->h) err = raise(c, level, z - p->h, false);
    for (int64_t f = p->nz + p->h; z == last && f <= last && err == 0; f++) err = raise(c, level, f, true);
    return err;
}

static int pass(struct check *c, bool first, struct mx_plane_stream *input) {
    const struct mx_verification *v = c->v;
    int err = 0;
    for (int64_t z = 0; z < v->layout->planes && err == 0; z++) {
        char *to = plane_of(c, 0, z), *from;
        if (first) {
            err = v->source(v->source_context, z, to);
        } else if ((err = mx_plane_stream_next(input, &from)) == 1) {
            memcpy(to, from, (size_t)v->layout->plane_pitch_bytes);
            err = 0;
        }
        if (err == 0) err = push(c, 0, z);
    }
    return err;
}

static int sweeps(struct check *c, int64_t deepest) {
    const struct mx_verification *v = c->v;
    int64_t left = v->problem->nt;
    int err = 0;
    for (bool first = true; err == 0 && (first || left > 0); first = false) {
        struct mx_plane_stream *input = NULL;
        c->depth = left < deepest ? left : deepest;
        left -= c->depth;
        c->result = c->scratch = NULL;
        if (!first) err = mx_plane_stream_open(v->scratch, v->layout, v->budget, false, c->why, &input);
        if (err == 0)
            err = left == 0
                      ? mx_plane_stream_open(v->result, v->layout, v->budget, false, c->why, &c->result)
                      : mx_plane_stream_open(v->scratch, v->layout, v->budget, true, c->why, &c->scratch);
        if (err == 0) err = pass(c, first, input);
        err = mx_plane_stream_close(input, err);
        err = mx_plane_stream_close(c->result, err);
        err = mx_plane_stream_close(c->scratch, err);
    }
    return err;
}

int mx_verify(const struct mx_verification *v, mx_why *why) {
    struct check c = {.v = v, .reach = 2 * v->problem->h + 1, .why = why};
    const struct mx_layout *l = v->layout;
    int64_t half = l->plane_pitch_bytes > MX_PLANE_GROUP_BYTES ? l->plane_pitch_bytes : MX_PLANE_GROUP_BYTES;
    int64_t streams = 4 * half; /* two streams of two halves */
    int64_t level_bytes = c.reach * l->plane_pitch_bytes;
    int64_t deepest = ((int64_t)v->memory_bytes - streams - l->plane_pitch_bytes) / level_bytes;
    if (deepest > 2048) deepest = 2048; /* the recursion's depth */
    if (deepest > v->problem->nt) deepest = v->problem->nt;
    if (deepest < 1 && v->problem->nt > 0)
        return mx_fail(why, -ENOMEM, "verification needs %lld bytes of DRAM, %llu are left; raise --dram",
                       (long long)(streams + level_bytes), (unsigned long long)v->memory_bytes);
    c.kernel = mx_stencil_plain(mx_stencil_find(v->problem->stencil), v->problem->dtype);
    struct mx_block_options options = {.budget = v->budget};
    int err = mx_block_create(&options, (uint64_t)((deepest * c.reach + c.reach) * l->plane_pitch_bytes), why,
                              &c.block);
    if (err < 0) return err;
    c.planes = mx_block_data(c.block);
    err = sweeps(&c, deepest);
    mx_block_free(c.block);
    return err;
}
