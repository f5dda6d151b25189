/* SPDX-License-Identifier: BSD-3-Clause */
/* resident.c - the whole grid is loaded, advanced through all its levels where it is, and stored: what an
 * accelerator does whose memory holds both arrays. A sweep goes to the end of the run, or to the next due
 * step: the state is stored there, and so may be committed, and stays where it is for what follows.
 *
 * Planes come and go a slab at a time, an ADVANCE is bt levels of everything. The Buffer that is read stays
 * as it is, the other is written; pairs in place have one.
 */
#include "schedule/walk.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>
#include <string.h>

enum stage { LOADING, ADVANCING, STORING, ENDING, AT_END };

enum { QUEUE = 2 + 4 + MX_MAX_FIXED };

struct resident {
    struct mx_schedule base;
    struct mx_problem problem;
    int64_t slab, bt, first, end, time; /* levels: that was loaded, where the sweep ends, where it stands */
    int32_t buffer; /* that is read, or of later sweeps stands for what was stored before */
    enum stage stage;
    int64_t plane; /* planes below are loaded, or stored */
    struct mx_window *window;
    int64_t advances; /* so far */
    struct mx_step queue[QUEUE];
    int head, count;
};

static void push(struct resident *r, struct mx_step step) {
    step.seam_in = step.seam_out = -1;
    if (step.kind <= MX_STEP_COPY && mx_region_rows(step.region) == 0) return;
    r->queue[r->count++] = step;
}

static void move(struct resident *r, enum mx_step_kind kind, int32_t array, int32_t buffer, int64_t z0,
                 int64_t z1) {
    const struct mx_shape *s = &r->base.shape;
    push(r, (struct mx_step){.kind = kind,
                             .array = array,
                             .buffer = s->pairs && s->in_place ? 0 : buffer,
                             .part = s->pairs ? (int32_t)((r->first + array) & 1) : 0,
                             .region = {0, s->rows, z0, z1},
                             .whole_planes = true});
}

static void copy_frame(struct resident *r, struct mx_region region) {
    push(r, (struct mx_step){.kind = MX_STEP_COPY, .to_array = 1, .region = region, .frame = true});
}

static void load(struct resident *r, int64_t z0, int64_t z1) {
    const struct mx_problem *p = &r->problem;
    const int64_t h = p->h, hy = mx_halo_y(p), top = p->nz + h, end = p->ny + hy, rows = r->base.shape.rows;
    move(r, MX_STEP_LOAD, 0, r->buffer, z0, z1);
    if (r->base.shape.pairs) move(r, MX_STEP_LOAD, 1, r->buffer, z0, z1);
    for (int32_t i = 0; i < mx_fixed_count(p); i++) {
        const int64_t hc = p->system->hc, hc_y = mx_reach_y_of_fixed(p);
        if (mx_is_profile(p, i)) continue;
        push(r,
             (struct mx_step){.kind = MX_STEP_LOAD,
                              .array = MX_FIXED_ARRAY + i,
                              .buffer = MX_FIXED_ARRAY + i,
                              .region = {hy - hc_y, end + hc_y, mx_max(h - hc, z0), mx_min(top + hc, z1)}});
    }
    if (r->base.shape.pairs) return;
    const int64_t from = mx_max(z0, h), to = mx_min(z1, top);
    copy_frame(r, (struct mx_region){0, rows, z0, mx_min(z1, h)});
    copy_frame(r, (struct mx_region){0, rows, mx_max(z0, top), z1});
    copy_frame(r, (struct mx_region){0, hy, from, to});
    copy_frame(r, (struct mx_region){end, rows, from, to});
}

static void advance(struct resident *r) {
    const struct mx_problem *p = &r->problem;
    const struct mx_shape *s = &r->base.shape;
    const int32_t h = p->h, hy = mx_halo_y(p), levels = (int32_t)mx_min(r->bt, r->end - r->time);
    const int64_t hc = mx_loaded_count(p) > 0 ? p->system->hc : 0;
    const int parity = (int)((r->time - r->first) & 1);
    struct mx_step a = {.kind = MX_STEP_ADVANCE,
                        .region = {0, s->rows, 0, p->nz + 2 * h},
                        .parity = parity,
                        .levels = levels,
                        .first_level = r->time,
                        .window = r->window,
                        .pass = ++r->advances,
                        .end = levels};
    for (int32_t l = 0; l < levels; l++)
        r->window[l] = (struct mx_window){hy, (int32_t)p->ny + hy, h, (int32_t)p->nz + h};
    for (int i = 0; i < 2; i++) {
        a.touches[i] = (struct mx_planes){0, p->nz + 2 * h};
        if (levels > 1 || i != parity) a.writes[i] = a.touches[i]; /* frames of sides are written too */
    }
    if (mx_loaded_count(p) > 0) a.fixed = (struct mx_planes){h - hc, p->nz + h + hc};
    push(r, a);
    r->time += levels;
}

static void store(struct resident *r, int64_t z0, int64_t z1) {
    const int32_t last = (int32_t)((r->end - r->first) & 1);
    move(r, MX_STEP_STORE, last, 1 - r->buffer, z0, z1);
    if (r->base.shape.pairs) move(r, MX_STEP_STORE, 1 - last, 1 - r->buffer, z0, z1);
}

static void refill(struct resident *r) {
    const int64_t planes = r->problem.nz + 2 * r->problem.h, upto = mx_min(r->plane + r->slab, planes);
    r->head = r->count = 0;
    if (r->stage == LOADING || r->stage == STORING) {
        (r->stage == LOADING ? load : store)(r, r->plane, upto);
        r->plane = upto;
        if (upto == planes) r->stage++, r->plane = 0;
    } else if (r->stage == ADVANCING) {
        advance(r);
        if (r->time == r->end) r->stage++;
    } else {
        const bool one = r->base.shape.pairs && r->base.shape.in_place;
        push(r, (struct mx_step){.kind = MX_STEP_COMMIT, .buffer = one ? 0 : 1 - r->buffer, .time = r->end});
        if (r->end == mx_levels_of(&r->problem, r->problem.nt)) {
            r->stage++;
            return;
        }
        r->end = mx_sweep_end(&r->problem, r->end);
        r->buffer = one ? 0 : 1 - r->buffer;
        r->stage = ADVANCING;
    }
}

static int resident_next(struct mx_schedule *schedule, struct mx_step *step) {
    struct resident *r = (struct resident *)schedule;
    while (r->head == r->count) {
        if (r->stage == AT_END) return 0;
        refill(r);
    }
    *step = r->queue[r->head++];
    return 1;
}

static void resident_close(struct mx_schedule *schedule) { free(schedule); }

static int resident_check(const struct mx_problem *problem, const struct mx_plan *plan, mx_why *why) {
    int err = mx_check_plan(problem, plan, true, why);
    if (err == 0) err = mx_check_no_neighbours(problem, plan->algorithm, why);
    if (err < 0 || strcmp(plan->engine, "iblock") == 0 || strcmp(plan->engine, "device") == 0) return err;
    return mx_check_not_periodic(problem, "resident but with engine iblock or device", why);
}

static void resident_shape(const struct mx_problem *p, const struct mx_plan *plan, struct mx_shape *out) {
    const int64_t planes = p->nz + 2 * p->h;
    *out = (struct mx_shape){.rows = p->ny + 2 * mx_halo_y(p),
                             .slots = {planes, planes},
                             .fixed_slots = mx_loaded_count(p) > 0 ? planes : 0,
                             .whole_planes = true,
                             .in_place = plan->in_place,
                             .max_levels = mx_sweep_levels(p, INT64_MAX)};
    mx_shape_of_form(p, out);
}

static void resident_traffic(const struct mx_problem *p, const struct mx_plan *plan,
                             const struct mx_layout *layout, struct mx_traffic *out) {
    const int64_t arrays = mx_reads_old(p) ? 2 : 1, h = p->h;
    const int64_t hc = mx_fixed_count(p) > 0 ? p->system->hc : 0;
    const int64_t beside_y = mx_halo_y(p) - mx_reach_y_of_fixed(p), rows = p->ny + 2 * mx_halo_y(p);
    struct mx_traffic t = {.init_write_bytes = arrays * layout->buffer_bytes, .updates = mx_updates_once(p)};
    (void)plan;
    for (int32_t i = 0; i < mx_fixed_count(p) && p->nt > 0; i++)
        t.fixed_read_bytes +=
            mx_fixed_span_sum(&layout->fixed[i], h - hc, p->nz + h + hc, beside_y, rows - beside_y);
    if (p->nt > 0) {
        t.read_bytes = arrays * layout->buffer_bytes + t.fixed_read_bytes;
        t.write_bytes = mx_sweep_count(p, INT64_MAX) * arrays * layout->buffer_bytes;
    }
    *out = t;
}

static bool resident_cuts_y(const struct mx_problem *problem, const struct mx_plan *plan) {
    (void)problem, (void)plan;
    return false;
}

static int resident_open(const struct mx_problem *problem, const struct mx_plan *plan, int64_t first_time,
                         int32_t first_buffer, struct mx_schedule **out) {
    static const struct mx_schedule_ops ops = {resident_next, resident_close};
    const int64_t bt = mx_sweep_levels(problem, plan->bt);
    struct resident *r = calloc(1, sizeof *r + (size_t)bt * sizeof(struct mx_window));
    if (r == NULL) return -ENOMEM;
    r->base.ops = &ops;
    resident_shape(problem, plan, &r->base.shape);
    r->problem = *problem;
    r->slab = mx_plan_slab(problem, plan);
    r->bt = bt;
    r->first = r->time = first_time;
    const int64_t all = mx_levels_of(problem, problem->nt);
    r->end = first_time < all ? mx_sweep_end(problem, first_time) : all;
    r->buffer = r->base.shape.pairs && r->base.shape.in_place ? 0 : first_buffer;
    r->stage = first_time < r->end ? LOADING : AT_END;
    r->window = (struct mx_window *)(r + 1);
    *out = &r->base;
    return 0;
}

const struct mx_algorithm mx_algorithm_resident = {
    .name = "resident",
    .aliases = "",
    .summary =
        "the whole grid is loaded, advanced in memory that holds both arrays, and stored; direct becomes "
        "resident with an accelerator; resumable",
    .uses_blocks = true,
    .resumable = true,
    .cuts_y = resident_cuts_y,
    .check = resident_check,
    .shape = resident_shape,
    .traffic = resident_traffic,
    .open = resident_open,
};
