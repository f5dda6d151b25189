/* SPDX-License-Identifier: BSD-3-Clause */
/* tiled.c - temporal blocking in cache.
 *
 * Skewed coordinates. Let X = x + l*h, Y = y + l*h and Z = z + l*h for the cell (x, y, z) that level l
 * computes. What level l+1 needs of level l, and what it overwrites that level l read, lies within h cells in
 * every direction, that is 0..2h back in X, Y and Z: every dependency points backwards in X, Y, Z and l at
 * once. So boxes in (Z, X, l, Y) may be executed in any order in which no box comes before one that is
 * smaller or equal in all four coordinates, whatever the windows are.
 *
 * A slab is a range of Z, a column a range of X, a chunk a range of levels, a tile a range of Y, and a line
 * is (slab, column, chunk): flow.h has the order. A thread one tile behind the thread of the chunk before
 * finds half of that one's planes in L3. A call whose slabs lie above those of the call before, with the same
 * tiles, columns and chunks, follows it without a stop.
 *
 * What a tile reads and writes beside its own cells are its sides. Those in y the line's tile before has left
 * in L3; those in z, and the first level of a chunk, come from DRAM: kernels ask for them ahead, in small
 * portions, while they compute what is in L2 (ahead.h), where that pays (mx_tiled_asks_ahead). A column keeps
 * tiles short in x, so that they can be long in y, z and levels in the same cache. Tiles that are whole at
 * every level of a chunk are computed in place (resident.h), unless frames in y or z copy rows of them
 * (after.h).
 *
 * Columns whose tiles are computed in place are skewed by more than h: X = x + l * (cells of a vector), x
 * from 0 and not from h on, so that every level of a tile begins with a whole vector. That is a tile all the
 * same: dependencies point backwards by 0 to twice as much.
 */
#include "engine/tiled.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>

static int64_t tiled_post(mx_engine *e, const struct mx_advance *a) {
    const int64_t number = mx_flow_next(e->flow);
    struct job *j = mx_tiled_job(e, number), *before = mx_tiled_job(e, number - 1);
    j->a = *a;
    bool room = mx_tiled_cut(e, j);
    j->flow.follows = room && mx_flow_done(e->flow) < number - 1 && mx_tiled_follows(before, j);
    if (mx_tiled_has_seams(a)) {
        mx_flow_wait(e->flow, number - (j->flow.follows ? 2 : 1));
        mx_tiled_load_seams(e, a);
    }
    if (j->flow.follows) j->last_chunk = mx_max(j->last_chunk, before->last_chunk);
    if (room) room = mx_flow_post(e->flow, &j->flow) == 0;
    if (!room) {
        mx_tiled_one_line(j);
        mx_flow_post(e->flow, &j->flow);
    }
    return number;
}

static int64_t tiled_done(mx_engine *e) { return mx_flow_done(e->flow); }

static void tiled_wait(mx_engine *e, int64_t number) { mx_flow_wait(e->flow, number); }

static void tiled_free(mx_engine *e) {
    if (e == NULL) return;
    mx_flow_free(e->flow);
    mx_resident_free(&e->resident);
    for (int i = 0; i < MX_FLOW_JOBS; i++) free(e->job[i].span);
    free(e);
}

static int tiled_create(const struct mx_engine_options *options, mx_why *why, mx_engine **out) {
    const struct mx_engine_options sizes = mx_tiled_of_tile(options), *o = &sizes;
    struct mx_work work;
    int err = mx_work_make(o, why, &work);
    if (err != 0) return err;
    mx_engine *e = calloc(1, sizeof *e);
    if (e == NULL) return mx_fail(why, -ENOMEM, "no memory for the tiled engine");
    e->work = work;
    e->threads = o->threads;
    e->slab = o->slab;
    e->tile = mx_tiled_rows(o);
    e->ct = mx_tiled_chunk(o);
    e->asks_ahead = mx_tiled_asks_ahead(o);
    e->to_l2 = mx_tiled_small_l1(o);
    e->column = o->column > 0 ? o->column : mx_tiled_column(o);
    err =
        mx_tiled_in_place(o) ? mx_resident_make(o, e->tile, e->slab, mx_tiled_span(o), why, &e->resident) : 0;
    if (err == 0) err = mx_flow_create(o->threads, mx_tiled_tile, e, why, &e->flow);
    if (err != 0) {
        tiled_free(e);
        return err;
    }
    *out = e;
    return 0;
}

static void tiled_describe(const mx_engine *e, struct mx_plan *plan) {
    if (plan->slab == 0) plan->slab = e->slab;
    if (plan->tile == 0) plan->tile = e->tile;
    if (plan->ct == 0) plan->ct = e->ct;
    if (plan->column == 0) plan->column = mx_min(e->column, e->work.nx);
    if (plan->threads == 0) plan->threads = e->threads;
}

const struct mx_engine_ops mx_engine_tiled = {
    .name = "tiled",
    .summary = "temporal blocking in cache: skewed tiles, chunks of levels pipelined over the threads",
    .slab = mx_tiled_slab,
    .efficiency = mx_tiled_efficiency,
    .create = tiled_create,
    .post = tiled_post,
    .done = tiled_done,
    .wait = tiled_wait,
    .free = tiled_free,
    .describe = tiled_describe,
};
