/* SPDX-License-Identifier: BSD-3-Clause */
/* iblock.c - the papers' engine: one level after the other, spatial blocks ix x iy x iz with ix = nx, planes
 * of a block shared among the threads (Midorikawa & Tan, "iBlock").
 *
 * Each thread keeps the same share of the planes at every level (the work-share of their Fig. 4), and walks
 * its share in blocks of iy rows and iz / threads planes, so that a plane read for z + 1 is still in L2 when
 * z + 1 and z + 2 are computed. A window with fewer planes than threads is shared by rows.
 */
#include "engine/team.h"
#include "engine/work.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>

struct mx_engine {
    struct mx_work work;
    struct mx_team *team;
    int32_t threads;
    int64_t iy, iz;
    const struct mx_advance *job;
    int64_t calls;
};

struct range {
    int64_t from, to;
};

static struct range share(int64_t from, int64_t to, int64_t i, int64_t n) {
    const int64_t all = mx_max(to - from, 0);
    return (struct range){from + all * i / n, from + all * (i + 1) / n};
}

/* This thread's part of one level. */
static void level_part(const mx_engine *e, const struct mx_advance *a, int32_t level, int thread) {
    const struct mx_window w = mx_window_at(a, level);
    if (w.y0 >= w.y1) return;
    const bool by_planes = w.z1 - w.z0 >= e->threads;
    const struct range z = by_planes ? share(w.z0, w.z1, thread, e->threads) : (struct range){w.z0, w.z1};
    const struct range y = by_planes ? (struct range){w.y0, w.y1} : share(w.y0, w.y1, thread, e->threads);
    const int64_t dz = mx_max(e->iz / e->threads, 1);
    struct mx_box box = {.x0 = e->work.h, .x1 = e->work.nx + e->work.h};
    for (box.z0 = z.from; box.z0 < z.to; box.z0 += dz)
        for (box.y0 = y.from; box.y0 < y.to; box.y0 += e->iy) {
            box.z1 = mx_min(box.z0 + dz, z.to);
            box.y1 = mx_min(box.y0 + e->iy, y.to);
            mx_work_box(&e->work, a, level, box, NULL);
        }
}

/* All seam rows of a level; few, so one thread does them. */
static void level_seams(const mx_engine *e, const struct mx_advance *a, int32_t level) {
    struct mx_box box = {0, e->work.nx + 2 * e->work.h, INT32_MIN, INT32_MAX, 0, 0};
    const struct mx_seam *in = &a->seam_in, *out = &a->seam_out;
    if (in->base != NULL) {
        const struct mx_seam_planes z = mx_seam_planes(in, level);
        box.z0 = z.z0, box.z1 = z.z1;
        mx_seam_insert(&e->work, a, level, box);
    }
    if (out->base != NULL) {
        const struct mx_seam_planes z = mx_seam_planes(out, level);
        box.z0 = z.z0, box.z1 = z.z1;
        mx_seam_save(&e->work, a, level, box);
    }
}

static void advance_part(void *arg, int thread, int threads) {
    mx_engine *e = arg;
    (void)threads;
    const struct mx_advance *a = e->job;
    const bool seams = a->seam_in.base != NULL || a->seam_out.base != NULL;
    for (int32_t level = a->first; level < mx_advance_end(a); level++) {
        if (seams) {
            if (thread == 0) level_seams(e, a, level);
            mx_team_barrier(e->team);
        }
        level_part(e, a, level, thread);
        mx_team_barrier(e->team);
    }
}

/* Every level is a barrier anyway: a call is done when it has been posted. */
static int64_t iblock_post(mx_engine *e, const struct mx_advance *advance) {
    e->job = advance;
    mx_team_run(e->team, advance_part, e);
    return ++e->calls;
}

static int64_t iblock_done(mx_engine *e) { return e->calls; }

static void iblock_wait(mx_engine *e, int64_t number) { (void)e, (void)number; }

static int64_t iblock_slab(const struct mx_engine_options *options) {
    return options->slab > 0 ? options->slab : 4 * (int64_t)options->threads;
}

/* Four planes (three read, one written) of iy + 2h rows take half of L2; of C those that are read with them.
 */
static int64_t choose_iy(const struct mx_engine_options *o) {
    const int64_t h = o->problem->h, planes = 2 * h + 2;
    const int64_t fixed_planes = o->problem->system != NULL ? 2 * o->problem->system->hc + 1 : 0;
    const int64_t row_bytes = planes * o->row_pitch_bytes +
                              fixed_planes * mx_fixed_cell_bytes(o->problem) * (o->problem->nx + 2 * h);
    const int64_t rows = (int64_t)o->machine->l2_bytes / 2 / row_bytes - 2 * mx_halo_y(o->problem);
    return mx_min(mx_max(rows, 4), mx_max(o->problem->ny, 1));
}

/* Level by level: neither slab nor levels matter as long as planes outnumber threads. */
static double iblock_efficiency(const struct mx_engine_options *options) {
    (void)options;
    return 1;
}

static void iblock_free(mx_engine *e) {
    if (e == NULL) return;
    mx_team_free(e->team);
    free(e);
}

static int iblock_create(const struct mx_engine_options *o, mx_why *why, mx_engine **out) {
    struct mx_work work;
    int err = mx_work_make(o, why, &work);
    if (err != 0) return err;
    mx_engine *e = calloc(1, sizeof *e);
    if (e == NULL) return mx_fail(why, -ENOMEM, "no memory for the iblock engine");
    e->work = work;
    e->threads = o->threads;
    e->iy = o->iy > 0 ? o->iy : choose_iy(o);
    e->iz = o->iz > 0 ? o->iz : 32 * (int64_t)o->threads;
    err = mx_team_create(o->threads, why, &e->team);
    if (err != 0) {
        iblock_free(e);
        return err;
    }
    *out = e;
    return 0;
}

static void iblock_describe(const mx_engine *e, struct mx_plan *plan) {
    if (plan->iy == 0) plan->iy = e->iy;
    if (plan->iz == 0) plan->iz = e->iz;
    if (plan->threads == 0) plan->threads = e->threads;
}

const struct mx_engine_ops mx_engine_iblock = {
    .name = "iblock",
    .summary = "spatial blocks only, level by level (the papers' iBlock)",
    .slab = iblock_slab,
    .efficiency = iblock_efficiency,
    .create = iblock_create,
    .post = iblock_post,
    .done = iblock_done,
    .wait = iblock_wait,
    .free = iblock_free,
    .describe = iblock_describe,
};
