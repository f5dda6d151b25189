/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate_engines.c - measures both engines, and copies in DRAM, on a grid with the rows of the problem. */
#include "tune/calibrate.h"
#include "tune/trial.h"
#include "tune/tune.h"

#include "execute/execute.h"
#include "machine/clock.h"
#include "machine/machine.h"
#include "machine/minmax.h"

#include <memext/backend.h>

#include <errno.h>
#include <string.h>

struct bench {
    struct mx_trial trial;
    mx_block *block;
    struct mx_fixed_view fixed[MX_MAX_FIXED];
};

/* Planes of a Block have rather these rows than 512: a slab of eight in both arrays is 8 MiB of 4 KiB rows,
 * which an L3 holds from level to level, and not 33. */
enum { SLAB_ROWS = 128 };

static uint64_t fixed_bytes(const struct bench *b) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < mx_fixed_count(&b->trial.problem); i++)
        bytes += (uint64_t)b->trial.layout.fixed[i].bytes;
    return bytes;
}

/* The fields of C stand behind the two arrays. */
static void place_fixed(struct bench *b) {
    char *at = (char *)mx_block_data(b->block) + 2 * b->trial.layout.buffer_bytes;
    for (int32_t i = 0; i < mx_fixed_count(&b->trial.problem); i++) {
        b->fixed[i] = mx_trial_fixed(&b->trial, i, at);
        at += b->trial.layout.fixed[i].bytes;
    }
}

static int plan_bench(const struct mx_problem *p, uint64_t memory_bytes, mx_why *why, struct bench *b,
                      uint64_t *bytes) {
    int err = mx_trial_make(p, memory_bytes, why, &b->trial);
    if (err < 0) return err;
    mx_layout_in_dram(&b->trial.layout);
    *bytes = 2 * (uint64_t)b->trial.layout.buffer_bytes + fixed_bytes(b);
    return 0;
}

/* Two grids in the same memory: whole planes, and narrow ones. The block is the first one's. Both have as
 * many planes as there is room for, since a cache may hold all of a small problem, and its rates would then
 * stand for those of larger ones with rows of that length. */
static int make_bench(const struct mx_problem *p, uint64_t memory_bytes, mx_why *why, struct bench *b,
                      struct bench *narrow) {
    const struct mx_block_options none = {0};
    struct mx_problem high = *p, part;
    uint64_t bytes, narrow_bytes;
    high.nz = INT32_MAX;
    if (p->system != NULL) /* a kernel sees planes and steps of its own problem alone */
        high.all_nz = mx_all_planes(p), high.trial_nt = mx_max(p->nt, 1);
    part = high;
    part.ny = mx_min(p->ny, SLAB_ROWS);
    int err = plan_bench(&high, memory_bytes, why, b, &bytes);
    if (err == 0) err = plan_bench(&part, memory_bytes, why, narrow, &narrow_bytes);
    if (err == 0) err = mx_block_create(&none, bytes > narrow_bytes ? bytes : narrow_bytes, why, &b->block);
    if (err < 0) return err;
    place_fixed(b);
    narrow->block = b->block;
    place_fixed(narrow);
    return 0;
}

static struct mx_advance whole_grid(const struct bench *b, int32_t levels) {
    char *base = mx_block_data(b->block);
    return (struct mx_advance){.view = {.base = {base, base + b->trial.layout.buffer_bytes},
                                        .slots = {b->trial.layout.planes, b->trial.layout.planes},
                                        .plane_pitch_bytes = b->trial.layout.plane_pitch_bytes,
                                        .row_pitch_bytes = b->trial.layout.row_pitch_bytes,
                                        .fixed = b->fixed},
                               .levels = levels,
                               .window = b->trial.window};
}

static int engine_rate(const char *name, const struct bench *b, const struct mx_machine *machine,
                       int32_t threads, int32_t levels, bool cold, double seconds, mx_why *why,
                       double *rate) {
    const struct mx_engine_ops *ops = mx_engine_find(name);
    struct mx_engine_options o = {.problem = &b->trial.problem,
                                  .machine = machine,
                                  .row_pitch_bytes = b->trial.layout.row_pitch_bytes,
                                  .threads = threads,
                                  .levels = levels,
                                  .rows = b->trial.layout.rows,
                                  .planes = b->trial.layout.planes};
    mx_engine *engine = NULL;
    int err =
        ops == NULL ? mx_fail(why, -EINVAL, "there is no engine %s", name) : ops->create(&o, why, &engine);
    if (err < 0) return err;
    struct mx_advance a = whole_grid(b, levels);
    double cells = (double)b->trial.problem.nx * (double)b->trial.problem.ny * (double)b->trial.problem.nz *
                   levels,
           done = 0;
    if (cold) mx_engine_advance(ops, engine, &a); /* warms caches and pages */
    uint64_t begin = mx_clock_ns(), spent;
    do {
        mx_engine_advance(ops, engine, &a);
        done += cells;
        spent = mx_clock_ns() - begin;
    } while ((double)spent < seconds * 1e9);
    ops->free(engine);
    *rate = done / (double)mx_levels_a_step(&b->trial.problem) / ((double)spent * 1e-9);
    return 0;
}

/* One pass of a Block as schedules walk through it (schedule/walk.h): every ADVANCE moves a front by a slab
 * of planes, level t staying t*h planes behind it. Returns the cells that it computes. */
static double walk_through(const struct mx_engine_ops *ops, mx_engine *engine, const struct bench *b,
                           int32_t levels, int64_t slab) {
    const int64_t h = b->trial.problem.h, top = b->trial.problem.nz + h;
    struct mx_window window[MX_TRIAL_LEVELS];
    double cells = 0;
    for (int64_t from = h; from < top + levels * h; from += slab) {
        struct mx_advance a = whole_grid(b, levels);
        for (int32_t l = 0; l < levels; l++) {
            const int64_t z0 = mx_max(h, from - l * h), z1 = mx_min(top, from + slab - l * h);
            window[l] = b->trial.window[l];
            window[l].z0 = (int32_t)mx_min(z0, top);
            window[l].z1 = (int32_t)mx_max(z1, window[l].z0);
            cells += (double)(window[l].z1 - window[l].z0);
        }
        a.window = window;
        mx_engine_advance(ops, engine, &a);
    }
    return cells * (double)b->trial.problem.nx * (double)b->trial.problem.ny;
}

static int slab_rate(const struct bench *b, const struct mx_machine *machine, int32_t threads, double seconds,
                     mx_why *why, double *rate) {
    const struct mx_engine_ops *ops = mx_engine_find("iblock");
    const int32_t a_step = (int32_t)mx_levels_a_step(&b->trial.problem),
                  levels = a_step * (int32_t)mx_max(1, MX_TRIAL_LEVELS / 2 / mx_max(a_step, 2));
    const struct mx_engine_options o = {.problem = &b->trial.problem,
                                        .machine = machine,
                                        .row_pitch_bytes = b->trial.layout.row_pitch_bytes,
                                        .threads = threads,
                                        .levels = levels,
                                        .rows = b->trial.layout.rows,
                                        .planes = b->trial.layout.planes};
    mx_engine *engine = NULL;
    const int err = ops->create(&o, why, &engine);
    if (err < 0) return err;
    const int64_t slab = ops->slab(&o);
    double done = 0;
    uint64_t spent, begin = mx_clock_ns();
    do {
        done += walk_through(ops, engine, b, levels, slab);
        spent = mx_clock_ns() - begin;
    } while ((double)spent < seconds * 1e9);
    ops->free(engine);
    *rate = done / (double)mx_levels_a_step(&b->trial.problem) / ((double)spent * 1e-9);
    return 0;
}

static double copy_rate(const struct bench *b, int32_t threads) {
    char *base = mx_block_data(b->block);
    int64_t pitch = b->trial.layout.plane_pitch_bytes, planes = b->trial.layout.planes;
    uint64_t begin = mx_clock_ns();
#pragma omp parallel for schedule(static) num_threads(mx_loop_threads(threads))
    for (int64_t z = 0; z < planes; z++)
        memcpy(base + b->trial.layout.buffer_bytes + z * pitch, base + z * pitch, (size_t)pitch);
    return (double)b->trial.layout.buffer_bytes / ((double)(mx_clock_ns() - begin + 1) * 1e-9);
}

/* What is measured of the computation, in turns. */
enum { TILED, IBLOCK, SLAB, COPY, N_OF_COMPUTE };

static int one_turn(const struct bench *b, const struct bench *narrow, const struct mx_machine *machine,
                    int32_t threads, bool cold, double seconds, mx_why *why, double rate[N_OF_COMPUTE]) {
    int err =
        engine_rate("tiled", b, machine, threads, MX_TRIAL_LEVELS / 2, cold, seconds, why, &rate[TILED]);
    if (err == 0) err = engine_rate("iblock", b, machine, threads, 1, cold, seconds, why, &rate[IBLOCK]);
    if (err == 0) err = slab_rate(narrow, machine, threads, seconds, why, &rate[SLAB]);
    if (err == 0) rate[COPY] = copy_rate(b, threads);
    return err;
}

int mx_calibrate_compute(const struct mx_problem *problem, const struct mx_machine *machine, int32_t threads,
                         double seconds, uint64_t memory_bytes, mx_why *why, struct mx_rates *rates) {
    struct bench b = {.block = NULL}, narrow = {.block = NULL};
    double found[N_OF_COMPUTE][TURNS], rate[N_OF_COMPUTE] = {0};
    if (!(seconds > 0)) seconds = 2;
    int err = make_bench(problem, memory_bytes > 0 ? memory_bytes : DEFAULT_MEMORY_BYTES, why, &b, &narrow);
    for (int turn = 0; turn < TURNS && err == 0; turn++) {
        err = one_turn(&b, &narrow, machine, threads, turn == 0, seconds / (3 * TURNS), why, rate);
        for (int i = 0; i < N_OF_COMPUTE; i++) found[i][turn] = rate[i];
    }
    if (err == 0) {
        rates->tiled_updates_per_s = mx_median(found[TILED], TURNS);
        rates->iblock_updates_per_s = mx_median(found[IBLOCK], TURNS);
        rates->slab_updates_per_s = mx_median(found[SLAB], TURNS);
        rates->copy_bytes_per_s = mx_median(found[COPY], TURNS);
        rates->compute_source = MX_RATES_MEASURED;
    }
    mx_block_free(b.block);
    return err;
}
