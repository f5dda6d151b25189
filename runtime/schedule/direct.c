/* SPDX-License-Identifier: BSD-3-Clause */
/* direct.c - "normal execution": all levels on the mapped Buffers, no Block layer.
 *
 * Engine iblock computes one time step after the other over the whole grid (spatial blocking only); engine
 * tiled advances slabs of planes through bt levels before it goes on (temporal blocking in core).
 */
#include "schedule/walk.h"

#include <string.h>

/* Levels of a sweep. */
static int64_t direct_bt(const struct mx_problem *problem, const struct mx_plan *plan) {
    return strcmp(plan->engine, "tiled") == 0 ? plan->bt : mx_levels_a_step(problem);
}

static void direct_begin(struct mx_walk *w) {
    const struct mx_problem *p = &w->problem;
    const int32_t h = p->h, hy = mx_halo_y(p);
    w->block = (struct mx_region){0, p->ny + 2 * hy, 0, p->nz + 2 * h};
    w->at = (struct mx_placement){0, 0};
    w->parity = mx_walk_place_parity(w);
    for (int32_t l = 0; l < w->levels; l++)
        w->whole[l] = (struct mx_window){hy, (int32_t)p->ny + hy, h, (int32_t)p->nz + h};
    if (w->levels <= mx_levels_a_step(p)) w->slab = w->block.z1 + (w->levels - 1) * h; /* one ADVANCE */
}

static const struct mx_walk_ops direct_ops = {.begin = direct_begin};

static int direct_check(const struct mx_problem *problem, const struct mx_plan *plan, mx_why *why) {
    int err = mx_check_plan(problem, plan, false, why);
    if (err == 0) err = mx_check_no_neighbours(problem, plan->algorithm, why);
    if (err < 0 || strcmp(plan->engine, "tiled") != 0) return err;
    return mx_check_not_periodic(problem, "direct with engine tiled", why);
}

static void direct_shape(const struct mx_problem *problem, const struct mx_plan *plan, struct mx_shape *out) {
    *out = (struct mx_shape){.in_place = true,
                             .init_both = true,
                             .max_levels = mx_sweep_levels(problem, direct_bt(problem, plan))};
    mx_shape_of_form(problem, out);
}

static void direct_traffic(const struct mx_problem *problem, const struct mx_plan *plan,
                           const struct mx_layout *layout, struct mx_traffic *out) {
    struct mx_shape shape;
    direct_shape(problem, plan, &shape);
    *out = (struct mx_traffic){.init_write_bytes = mx_initial_buffers(&shape) * layout->buffer_bytes,
                               .updates = mx_updates_once(problem)};
}

static bool direct_cuts_y(const struct mx_problem *problem, const struct mx_plan *plan) {
    (void)problem, (void)plan;
    return false;
}

static int direct_open(const struct mx_problem *problem, const struct mx_plan *plan, int64_t first_time,
                       int32_t first_buffer, struct mx_schedule **out) {
    struct mx_shape shape;
    direct_shape(problem, plan, &shape);
    return mx_walk_open(&direct_ops, problem, plan, &shape, 1, first_time, first_buffer, out);
}

const struct mx_algorithm mx_algorithm_direct = {
    .name = "direct",
    .aliases = "normal",
    .summary = "the whole mapped Buffers step after step, without Blocks; with engine tiled bt levels at a "
               "time; not resumable",
    .needs_mapped = true,
    .cuts_y = direct_cuts_y,
    .check = direct_check,
    .shape = direct_shape,
    .traffic = direct_traffic,
    .open = direct_open,
};
