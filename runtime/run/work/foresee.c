/* SPDX-License-Identifier: BSD-3-Clause */
/* foresee.c - the first and the last sweep as the schedule has them: what fusing saves and moves. */
#include "run/work/fuse_private.h"

#include "machine/minmax.h"

#include <string.h>
#include <unistd.h>

/* Steps are looked at before the run, and what a step costs are the levels that its front crosses: so many of
 * them take a tenth of a second. */
enum { MOST_WINDOWS = 16 << 20 };

static bool moves_state(const struct mx_step *s, enum mx_step_kind kind) {
    return s->kind == kind && s->buffer < MX_SEAMS && mx_region_rows(s->region) > 0;
}

static void count_load(struct mx_run *r, const struct mx_step *s) {
    struct mx_run_fuse *u = &r->fuse;
    const struct mx_layout *l = &r->report.layout;
    const struct mx_region g = mx_step_in_buffer(s);
    const int64_t planes = g.z1 - g.z0;
    if (s->neighbour == 0) /* others would be sent, the first of them read before the sweep */
        u->saved_bytes +=
            planes * (s->whole_planes ? l->plane_pitch_bytes : (g.y1 - g.y0) * l->row_pitch_bytes);
    for (int64_t z = g.z0; z < g.z1; z++) u->fed_bytes += mx_fuse_read_bytes(r, z, g.y0, g.y1);
}

/* The interior of a region; whether there is any. */
static bool clip(const struct mx_problem *p, struct mx_region *g) {
    g->y0 = mx_max(g->y0, mx_halo_y(p)), g->y1 = mx_min(g->y1, p->ny + mx_halo_y(p));
    g->z0 = mx_max(g->z0, p->h), g->z1 = mx_min(g->z1, p->nz + p->h);
    return mx_region_rows(*g) > 0;
}

/* Do the rows of each plane come one after the other? */
static bool follow_planes(const struct mx_problem *p, const struct mx_region *g, int64_t *next) {
    bool in_order = true;
    for (int64_t z = g->z0; z < g->z1; z++) {
        in_order &= next[z - p->h] == g->y0 - mx_halo_y(p);
        next[z - p->h] = g->y1 - mx_halo_y(p);
    }
    return in_order;
}

/* Rows that the output gets of a region. */
static int64_t rows_out(const struct mx_run *r, struct mx_region g) {
    const struct mx_problem *p = &r->o.problem;
    int64_t rows = 0;
    g.z0 = mx_max(g.z0, mx_fuse_first_own(p)), g.z1 = mx_min(g.z1, mx_fuse_end_own(p));
    for (int64_t z = g.z0; z < g.z1; z++) rows += (g.y1 - g.y0) * mx_fuse_places(r, z);
    return rows;
}

static void follow_store(const struct mx_run *r, const struct mx_step *s, struct mx_fuse_order *o) {
    const struct mx_problem *p = &r->o.problem;
    const struct mx_region all = mx_step_in_buffer(s);
    const bool copy = s->buffer_y != 0 || s->buffer_z != 0;
    struct mx_region g = all;
    o->bytes += (all.z1 - all.z0) * (s->whole_planes ? r->report.layout.plane_pitch_bytes
                                                     : (all.y1 - all.y0) * r->report.layout.row_pitch_bytes);
    if (!r->o.bare_output) {
        o->rows += rows_out(r, all);
        o->file &= !copy && all.y0 == 0 && all.y1 == p->ny + 2 * mx_halo_y(p) && all.z0 == o->z;
        o->z = all.z1;
    }
    if (copy || !clip(p, &g)) return;
    if (r->o.bare_output) o->rows += mx_region_rows(g);
    o->interior &= g.y0 == mx_halo_y(p) && g.y1 == p->ny + mx_halo_y(p) && g.z0 == o->interior_z;
    o->interior_z = g.z1;
    o->planes &= follow_planes(p, &g, o->next);
}

static int open_schedule(struct mx_run *r, int64_t level, struct mx_schedule **out) {
    const int err = r->algorithm->open(&r->rest, &r->report.plan, level, 0, out);
    return err < 0 ? mx_fail(&r->why, err, "the schedule of %s could not be opened: %s",
                             r->report.plan.algorithm, strerror(-err))
                   : 0;
}

static int64_t windows(const struct mx_step *s) {
    return 1 + (s->kind == MX_STEP_ADVANCE ? s->end - s->first : 0);
}

/* Frames of the planes that neighbours will get, which an algorithm that never writes them is fed at the
 * start. */
static void count_given_frames(struct mx_run *r) {
    const struct mx_problem *p = &r->o.problem;
    const struct mx_shape *s = &r->tuned.shape;
    for (int end = 0; end < 2 && s->init_both; end++)
        for (int64_t i = 0; i < s->given[end]; i++) {
            const int64_t z = end == 0 ? p->h + i : p->nz + p->h - s->given[end] + i;
            r->fuse.fed_bytes += mx_fuse_read_bytes(r, z, 0, mx_halo_y(p));
            r->fuse.fed_bytes += mx_fuse_read_bytes(r, z, p->ny + mx_halo_y(p), p->ny + 2 * mx_halo_y(p));
        }
}

/* 1: there is too much to look at. */
int mx_fuse_follow_first(struct mx_run *r) {
    struct mx_schedule *schedule;
    struct mx_step s;
    int64_t n = 0;
    int more, err = open_schedule(r, 0, &schedule);
    if (err < 0) return err;
    r->fuse.saved_bytes += r->tuned.traffic.first_sent_bytes;
    count_given_frames(r);
    while ((more = schedule->ops->next(schedule, &s)) == 1 && s.kind != MX_STEP_COMMIT &&
           (n += windows(&s)) <= MOST_WINDOWS)
        if (moves_state(&s, MX_STEP_LOAD)) count_load(r, &s);
    schedule->ops->close(schedule);
    return more < 0 ? mx_fail(&r->why, more, "the schedule failed: %s", strerror(-more)) : n > MOST_WINDOWS;
}

/* 1: there is too much to look at. */
int mx_fuse_follow_last(struct mx_run *r, struct mx_fuse_order *o) {
    struct mx_schedule *schedule;
    struct mx_step s;
    int64_t n = 0;
    int more, err = open_schedule(r, mx_sweep_last(&r->rest, r->tuned.shape.max_levels), &schedule);
    if (err < 0) return err;
    while ((more = schedule->ops->next(schedule, &s)) == 1 && (n += windows(&s)) <= MOST_WINDOWS)
        if (moves_state(&s, MX_STEP_STORE)) follow_store(r, &s, o);
    schedule->ops->close(schedule);
    return more < 0 ? mx_fail(&r->why, more, "the schedule failed: %s", strerror(-more)) : n > MOST_WINDOWS;
}
