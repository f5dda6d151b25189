/* SPDX-License-Identifier: BSD-3-Clause */
/* refine.c - sizes of the tiled engine (planes of a slab, rows of a tile, levels of a chunk) by a short
 * search.
 *
 * What is measured is what a run does: a ring of planes, too large for cache, through which the front of
 * `stream` moves on by a slab, all levels at each move. The search is a coordinate descent from the engine's
 * own choice. Whatever else the machine does meanwhile must not decide: a candidate takes turns with the best
 * so far, the ratios of neighbouring runs are compared, and it must win by more than their noise. The winner
 * meets the engine's own choice once more at the end.
 */
#include "machine/clock.h"
#include "tune/calibrate.h"
#include "tune/job.h"
#include "tune/trial.h"

#include "execute/execute.h"
#include "stencil/stencil.h"

#include <memext/backend.h>

#include <stdlib.h>

enum {
    DEPTH_PLANES = 64,               /* that the last level is behind the first */
    MOST_SLAB = MX_TILE_MOST_PLANES, /* where a call moves on by one slab */
    LEAST_SLAB = 4,
    USUAL_SLAB = 16,
    LEAST_ROWS = 24, /* of a plane: fewer make too few tiles to tell anything */
    USUAL_ROWS = 64,
    LINE_BYTES = 64,
    PAGE_BYTES = 4096,
    MOST_PAIRS = 5,
    MOST_TRIED = 64,
};
static const uint64_t default_memory_bytes = UINT64_C(256) << 20, run_ns = 50000000;
static const double default_seconds = 3, final_share = 0.2; /* of the time, for the last comparison */
static const double least_gain = 1.03;
static const double out_of_cache = 1.5; /* both arrays, in sizes of L3 */
static const double advance_seconds = 0.04;

/* ------------------------------------------------------------------ the ring */

struct ring {
    struct mx_problem problem; /* nz: planes of the ring */
    struct mx_layout layout;
    const struct mx_engine_ops *ops;
    const struct mx_machine *machine;
    mx_block *block;
    int32_t threads, levels;
    int64_t most_slab; /* planes that the front moves on by at once */
    int64_t front;
};

static struct mx_engine_options options_of(const struct ring *r, struct mx_tiled_sizes s) {
    return (struct mx_engine_options){.problem = &r->problem,
                                      .machine = r->machine,
                                      .row_pitch_bytes = r->layout.row_pitch_bytes,
                                      .threads = r->threads,
                                      .slab = s.slab,
                                      .tile = s.tile,
                                      .ct = s.ct,
                                      .levels = r->levels,
                                      .rows = r->layout.rows,
                                      .planes = s.slab};
}

/* Rows of a plane: as many as the problem has, memory holds and time allows; 0 = a ring in cache. */
static int64_t ring_rows(const struct ring *r, int64_t ny, uint64_t memory_bytes, double updates_per_s) {
    const int64_t h2 = 2 * r->problem.h, planes = r->problem.nz + h2;
    const int64_t row = (r->problem.nx + h2) * mx_dtype_bytes(r->problem.dtype) + 2 * LINE_BYTES;
    const int64_t most = ((int64_t)(memory_bytes / 2) / planes - 3 * PAGE_BYTES) / row - h2;
    const int64_t least = (int64_t)(out_of_cache * (double)r->machine->l3_bytes / 2) / planes / row + 1;
    const double level = (double)(USUAL_SLAB * r->problem.nx) * r->levels;
    const int64_t quick = mx_max(USUAL_ROWS, (int64_t)(updates_per_s * advance_seconds / level));
    const int64_t rows = mx_min(mx_min(ny, most), updates_per_s > 0 ? mx_max(quick, least) : most);
    return rows >= mx_max(least, LEAST_ROWS) ? rows : 0;
}

/* Many threads move on by several slabs at once (the engine's slab() says how many planes), of which one is
 * what a single thread would do. */
static int64_t slabs_a_call(const struct ring *r) {
    struct mx_engine_options o = options_of(r, (struct mx_tiled_sizes){0});
    const int64_t all = r->ops->slab(&o);
    o.threads = 1;
    return mx_max(1, all / mx_max(1, r->ops->slab(&o)));
}

/* Without a block where there is nothing to be measured. */
static int make_ring(const struct mx_problem *p, uint64_t memory_bytes, double updates_per_s, mx_why *why,
                     struct ring *r) {
    const struct mx_block_options none = {0};
    r->levels = (int32_t)mx_max(1, DEPTH_PLANES / p->h);
    r->front = (r->levels + 1) * (int64_t)p->h;
    r->problem = *p;
    int err = mx_layout_make(&r->problem, LINE_BYTES, false, why, &r->layout); /* the length of a row */
    if (err < 0) return err;
    r->most_slab = MOST_SLAB * slabs_a_call(r);
    r->problem.nz = r->levels * (int64_t)p->h + r->most_slab;
    r->problem.ny = ring_rows(r, p->ny, memory_bytes, updates_per_s);
    if (r->problem.ny == 0) return 0;
    err = mx_layout_make(&r->problem, LINE_BYTES, false, why, &r->layout);
    if (err < 0) return err;
    mx_layout_in_dram(&r->layout);
    return mx_block_create(&none, 2 * (uint64_t)r->layout.buffer_bytes, why, &r->block);
}

/* ------------------------------------------------------------------ one set of sizes */

struct racer {
    struct mx_tiled_sizes sizes; /* complete */
    mx_engine *engine;
};

static bool same(struct mx_tiled_sizes a, struct mx_tiled_sizes b) {
    return a.slab == b.slab && a.tile == b.tile && a.ct == b.ct;
}

/* Sizes that are 0 become the engine's choice: the slab as it is in a plan, by which a call moves on. */
static int enter(const struct ring *r, struct mx_tiled_sizes sizes, mx_why *why, struct racer *out) {
    struct mx_engine_options o = options_of(r, sizes);
    o.slab = sizes.slab = r->ops->slab(&o);
    struct mx_plan plan = {.slab = sizes.slab, .tile = sizes.tile, .ct = sizes.ct};
    int err = r->ops->create(&o, why, &out->engine);
    if (err < 0) return err;
    r->ops->describe(out->engine, &plan);
    out->sizes = (struct mx_tiled_sizes){plan.slab, plan.tile, plan.ct};
    return 0;
}

static void leave(const struct ring *r, struct racer *x) {
    if (x->engine != NULL) r->ops->free(x->engine);
    x->engine = NULL;
}

/* The front moves on by a slab: every level computes that many planes, h further back than the one before. */
static void advance(struct ring *r, const struct racer *x) {
    const int32_t h = r->problem.h, rows = (int32_t)r->problem.ny;
    const int64_t start = (r->levels + 1) * (int64_t)h;
    struct mx_window window[DEPTH_PLANES];
    char *base = mx_block_data(r->block);
    r->front = r->front > INT32_MAX / 2 ? start : r->front + x->sizes.slab;
    r->front = mx_max(r->front, start + x->sizes.slab);
    for (int32_t l = 0; l < r->levels; l++) {
        const int32_t end = (int32_t)(r->front - (int64_t)l * h);
        window[l] = (struct mx_window){h, rows + h, end - (int32_t)x->sizes.slab, end};
    }
    const struct mx_advance a = {.view = {.base = {base, base + r->layout.buffer_bytes},
                                          .slots = {r->layout.planes, r->layout.planes},
                                          .plane_pitch_bytes = r->layout.plane_pitch_bytes,
                                          .row_pitch_bytes = r->layout.row_pitch_bytes},
                                 .levels = r->levels,
                                 .window = window};
    mx_engine_advance(r->ops, x->engine, &a);
}

/* Planes of a level per nanosecond. */
static double rate(struct ring *r, const struct racer *x) {
    const uint64_t begin = mx_clock_ns();
    uint64_t spent;
    double planes = 0;
    do {
        advance(r, x);
        planes += (double)x->sizes.slab * r->levels;
        spent = mx_clock_ns() - begin;
    } while (spent < run_ns);
    return planes / (double)spent;
}

/* How many times as fast as the other, for sure: the lesser of two measures that noise spoils differently,
 * the median ratio of `pairs` runs in turns (of fewer where so many are below least_gain that the median will
 * be) and the ratio of the fastest runs. */
static double times_as_fast(struct ring *r, const struct racer *x, const struct racer *other, int pairs) {
    double ratio[MOST_PAIRS], fastest[2] = {0, 0};
    int n = 0, below = 0;
    while (n < pairs && 2 * below <= pairs) {
        double now[2];
        now[n % 2] = rate(r, n % 2 == 0 ? x : other);
        now[1 - n % 2] = rate(r, n % 2 == 0 ? other : x);
        for (int i = 0; i < 2; i++) fastest[i] = now[i] > fastest[i] ? now[i] : fastest[i];
        ratio[n] = now[0] / now[1];
        below += ratio[n] < least_gain;
        n++;
    }
    mx_sort_values(ratio, (size_t)n);
    const double best = fastest[0] / fastest[1];
    return best < ratio[(n - 1) / 2] ? best : ratio[(n - 1) / 2];
}

/* ------------------------------------------------------------------ the search */

struct search {
    struct ring *ring;
    uint64_t end_ns;
    struct racer best;
    struct mx_tiled_sizes tried[MOST_TRIED]; /* the first is the engine's own choice */
    int32_t n_tried;
};

static bool is_new(const struct search *s, struct mx_tiled_sizes sizes) {
    for (int i = 0; i < s->n_tried; i++)
        if (same(s->tried[i], sizes)) return false;
    return s->n_tried < MOST_TRIED;
}

/* One that cannot be entered is none. */
static void try_sizes(struct search *s, struct mx_tiled_sizes sizes) {
    struct racer x = {.engine = NULL};
    const bool late = s->n_tried > 1 && mx_clock_ns() >= s->end_ns; /* one is tried however slow */
    if (late || enter(s->ring, sizes, NULL, &x) < 0) return;
    if (is_new(s, x.sizes) && x.sizes.slab <= s->ring->most_slab) {
        s->tried[s->n_tried++] = x.sizes;
        if (times_as_fast(s->ring, &x, &s->best, 3) >= least_gain) {
            struct racer slower = s->best;
            s->best = x;
            x = slower;
        }
    }
    leave(s->ring, &x);
}

/* Each with the slab that the engine chooses for it, for a tile is to fill its part of L2. */
static void try_tiles(struct search *s) {
    static const int64_t rows[] = {4, 6, 8, 12};
    bool usual = false;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) usual |= rows[i] == s->best.sizes.tile;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && usual; i++)
        if (rows[i] != s->best.sizes.tile)
            try_sizes(s, (struct mx_tiled_sizes){0, rows[i], s->best.sizes.ct});
}

static void try_slabs(struct search *s) {
    static const int64_t quarters[] = {4, 5, 3, 6, 2, 8};
    const struct mx_engine_options o =
        options_of(s->ring, (struct mx_tiled_sizes){0, s->best.sizes.tile, s->best.sizes.ct});
    const int64_t own = s->ring->ops->slab(&o);
    for (size_t i = 0; i < sizeof quarters / sizeof quarters[0]; i++) {
        struct mx_tiled_sizes sizes = s->best.sizes;
        sizes.slab = mx_max(LEAST_SLAB, (own * quarters[i] + 4) / 8 * 2);
        if (sizes.slab <= s->ring->most_slab) try_sizes(s, sizes);
    }
}

static void try_levels(struct search *s) {
    static const int64_t levels[] = {8, 12, 16, 24, 32};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        struct mx_tiled_sizes sizes = s->best.sizes;
        sizes.ct = levels[i];
        if (sizes.ct <= s->ring->levels) try_sizes(s, sizes);
    }
}

static void descend(struct search *s) {
    struct mx_tiled_sizes before;
    do {
        before = s->best.sizes;
        try_slabs(s);
        try_tiles(s);
        try_levels(s);
    } while (!same(before, s->best.sizes) && mx_clock_ns() < s->end_ns);
}

static int run_search(struct ring *r, double seconds, mx_why *why, struct mx_refined *out) {
    struct search s = {.ring = r};
    struct racer own = {.engine = NULL};
    int err = enter(r, (struct mx_tiled_sizes){0}, why, &s.best);
    if (err < 0) return err;
    s.tried[s.n_tried++] = s.best.sizes;
    rate(r, &s.best); /* clocks and caches as they will be */
    s.end_ns = mx_clock_ns() + (uint64_t)(seconds * (1 - final_share) * 1e9);
    descend(&s);
    *out = (struct mx_refined){.own = s.tried[0], .tried = s.n_tried - 1, .gain = 1};
    if (!same(s.best.sizes, out->own) && enter(r, out->own, NULL, &own) == 0) {
        double gain = times_as_fast(r, &s.best, &own, MOST_PAIRS);
        if (gain >= least_gain) {
            out->sizes = s.best.sizes;
            out->nx = r->problem.nx;
            out->gain = out->raised = gain;
        }
    }
    leave(r, &own);
    leave(r, &s.best);
    return 0;
}

int mx_refine_tiled(const struct mx_problem *problem, const struct mx_machine *machine, int32_t threads,
                    double seconds, uint64_t memory_bytes, mx_why *why, struct mx_rates *rates) {
    struct ring r = {.ops = mx_engine_find("tiled"), .machine = machine, .threads = threads};
    struct mx_refined refined = {.gain = 0};
    uint64_t most = default_memory_bytes;
    if (most < 2 * machine->l3_bytes) most = 2 * machine->l3_bytes;
    if (memory_bytes == 0 || memory_bytes > most) memory_bytes = most;
    if (problem->system != NULL) { /* tiles in two arrays, by the rules of engine/tiled_sizes.c */
        rates->refined = refined;
        return 0;
    }
    int err = make_ring(problem, memory_bytes, rates->tiled_updates_per_s, why, &r);
    if (err == 0 && r.block != NULL)
        err = run_search(&r, seconds > 0 ? seconds : default_seconds, why, &refined);
    if (err == 0) {
        rates->refined = refined;
        if (refined.gain > 1) rates->tiled_updates_per_s *= refined.gain;
    }
    mx_block_free(r.block);
    return err;
}

/* Sizes are for rows of about the length they were measured on: the cache holds so many bytes of a tile. */
bool mx_refined_for(const struct mx_refined *refined, const struct mx_problem *problem) {
    const int64_t apart = refined->nx > problem->nx ? refined->nx - problem->nx : problem->nx - refined->nx;
    return refined->sizes.slab > 0 && apart <= problem->nx / 8;
}
