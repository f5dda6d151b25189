/* SPDX-License-Identifier: BSD-3-Clause */
/* papers.c - the tuners with which the papers compare Blk-Tune: Naive-Tune (CCGrid 2015 and the slides' log;
 * iWAPT 2016, section VI-B) and manual choice, given by the user or simulated as section VI describes it. */
#include "machine/minmax.h"
#include "machine/size.h"
#include "tune/search.h"

#include <memext/backend.h>

#include <errno.h>
#include <string.h>

enum { BUFFERS = 2, CACHE_SPARE_BYTES = 1024 };

static int64_t floor_sqrt(int64_t n) {
    int64_t root = 0;
    for (int64_t bit = INT64_C(1) << 31; bit > 0; bit >>= 1)
        if ((root + bit) * (root + bit) <= n) root += bit;
    return root;
}

static int64_t power_of_two_below(int64_t n) { /* the largest <= n; n >= 1 */
    int64_t b = 1;
    while (b <= n / 2) b *= 2;
    return b;
}

/* ------------------------------------------------------------------ Naive-Tune */

/* Steps whose halo of overlapped blocks ("typical" size, equation 2f') still fits, within 2 bt h <= by, bz.
 */
static int64_t naive_max_bt(const struct mx_problem *p, int64_t by, int64_t bz, int64_t columns) {
    const int64_t cut = p->flat ? bz : mx_min(by, bz), hy = mx_halo_y(p); /* of two dimensions rows alone */
    int64_t limit = mx_min(mx_max(1, p->nt), mx_max(1, cut / (2 * p->h))), bt = 0;
    while (bt < limit && (by + 2 * (bt + 1) * hy) * (bz + 2 * (bt + 1) * p->h) <= columns) bt++;
    return bt;
}

/* iz as large as L3 allows and the Block has planes: first a power of two, then in steps of the cores of a
 * socket. The papers' caches hold less than a Block (40 of 512 planes in the log); a cache that holds more
 * leaves bz, of which iz is a part (section V-B-2a). */
static void naive_iblock(const struct mx_problem *p, const struct mx_machine *m, struct mx_naive_log *log) {
    int64_t element = mx_max(mx_cell_bytes(p, 0), mx_cell_bytes(p, 1)),
            cores = mx_max(1, m->cores / mx_max(1, m->sockets));
    int64_t l3 = (int64_t)(m->l3_bytes > 0 ? m->l3_bytes : m->l2_bytes * (uint64_t)cores);
    int64_t plane = p->nx * BUFFERS * element * cores; /* one plane of every core's iBlock */
    log->cache_usable_bytes = l3 - CACHE_SPARE_BYTES;
    int64_t most = mx_max(1, mx_min(log->cache_usable_bytes / plane, log->bz));
    log->first_iz = power_of_two_below(most);
    log->first_iz_bytes = log->first_iz * plane;
    log->iz = most >= cores ? most / cores * cores : most;
    log->iz_bytes = log->iz * plane;
    log->iblock_bytes = log->iz_bytes / cores;
    log->cache_left_bytes = l3 - log->iz_bytes;
}

/* Temporal blocking: two steps at least, where the grid has room for them. */
static int64_t least_steps(const struct mx_problem *p) {
    return mx_max(1, mx_min(mx_min(2, p->nt), (p->flat ? p->nz : mx_min(p->ny, p->nz)) / (2 * p->h)));
}

/* Squares of a power of two, one doubling of y, smaller where no room for two steps remains. */
static int64_t naive_block(const struct mx_problem *p, int64_t columns, struct mx_naive_log *log) {
    log->b_ym = floor_sqrt(columns);
    if (columns < 1) return 0;
    for (int64_t b = power_of_two_below(log->b_ym); b > 0; b /= 2)
        for (int64_t wide = 2; wide > 0; wide--) {
            log->by = mx_min(wide * b, p->ny);
            log->bz = mx_min(b, p->nz);
            if (log->by * log->bz > columns) continue;
            int64_t bt = naive_max_bt(p, log->by, log->bz, columns);
            if (bt >= least_steps(p)) return bt;
        }
    return 0;
}

/* A bt of the plan's algorithm is found by the caller; here as the log has it. */
static int naive_log(const struct mx_problem *p, const struct mx_machine *machine, uint64_t dram,
                     int64_t usable, int64_t row_bytes, mx_why *why, struct mx_naive_log *out) {
    struct mx_naive_log log = {.usable_bytes = usable};
    int64_t bt = usable > 0 ? naive_block(p, usable / (BUFFERS * row_bytes), &log) : 0;
    if (bt < 1)
        return mx_fail(why, -ENOMEM,
                       "the tuner naive found no Block (powers of two, at least two time steps) that fits %s "
                       "of usable DRAM: raise --dram, or choose --tuner blk",
                       mx_size((uint64_t)mx_max(0, usable)).text);
    log.block_bytes = row_bytes * log.by * log.bz;
    log.remain_bytes = (int64_t)dram - BUFFERS * log.block_bytes;
    log.max_bt = bt;
    log.iterations = tune_ceil_div(mx_max(1, p->nt), bt);
    log.bt = tune_ceil_div(mx_max(1, p->nt), log.iterations);
    log.final_rows = log.by + 2 * log.bt * p->h;
    log.final_planes = log.bz + 2 * log.bt * p->h;
    log.final_block_bytes = row_bytes * log.final_rows * log.final_planes;
    log.final_remain_bytes = (int64_t)dram - BUFFERS * log.final_block_bytes;
    naive_iblock(p, machine, &log);
    *out = log;
    return 0;
}

int mx_naive_tune(const struct mx_problem *p, const struct mx_machine *machine, uint64_t dram_bytes,
                  uint64_t reserve_bytes, mx_why *why, struct mx_naive_log *out) {
    int64_t row = (p->nx + 2 * p->h) * mx_max(mx_cell_bytes(p, 0), mx_cell_bytes(p, 1));
    return naive_log(p, machine, dram_bytes, (int64_t)dram_bytes - (int64_t)reserve_bytes, row, why, out);
}

/* Both reckon with typical sizes; where rows are padded the exact one may still be too large. Sweeps of whole
 * steps. */
static void try_shorter(struct job *job, int64_t by, int64_t bz, int64_t bt) {
    const int64_t unit = mx_job_unit(job);
    int64_t steps = mx_max(bt / unit, bt > 0);
    while (steps > 0 && !mx_job_try(job, by, bz, steps * unit)) {
        const int64_t all = job->stretch / unit;
        int64_t sweeps = steps > 1 ? tune_ceil_div(all, steps - 1) : 0;
        steps = sweeps > 0 ? tune_ceil_div(all, sweeps) : 0;
    }
}

/* The problem with levels for steps, those of the longest stretch between due steps: what both tuners count.
 */
static struct mx_problem in_levels(const struct job *job) {
    struct mx_problem p = job->problem;
    p.nt = job->stretch;
    return p;
}

static int64_t row_pitch(const struct job *job) {
    struct mx_plan cut = job->base;
    cut.by = cut.bz = cut.bt = 1;
    return mx_job_layout(job, &cut)->row_pitch_bytes;
}

int mx_tune_naive(struct job *job, mx_why *why) {
    struct mx_naive_log log;
    const struct mx_tune_request *q = job->request;
    const struct mx_problem p = in_levels(job);
    int err = naive_log(&p, q->machine, q->dram_bytes, (int64_t)job->room_bytes, row_pitch(job), why, &log);
    if (err < 0) return err;
    if (q->manual.iy == 0) job->base.iy = 1;
    if (q->manual.iz == 0) job->base.iz = log.iz;
    try_shorter(job, log.by, log.bz, log.bt);
    return 0;
}

/* ------------------------------------------------------------------ manual */

/* A divisor of nt, or where nt has none that fits, a power of two. */
static int64_t modest_bt(const struct mx_problem *p, int64_t limit) {
    for (int64_t bt = limit; bt > 1; bt--)
        if (p->nt % bt == 0) return bt;
    return limit >= 1 ? power_of_two_below(limit) : 0;
}

/* Steps that the typical Block size allows: equation 2f' for overlapped blocks, 2g' otherwise. */
static int64_t typical_bt(const struct job *job, int64_t by, int64_t bz, int64_t columns) {
    const struct mx_problem *p = &job->problem;
    int64_t grow = (job->strategy->halo_twice ? 2 : 1) * p->h, h2 = 2 * p->h;
    int64_t low = 0, high = mx_min(job->stretch, mx_max(1, mx_min(by, bz) / h2)) + 1;
    while (low + 1 < high) {
        int64_t bt = low + (high - low) / 2;
        if ((mx_wide)(by + h2 + grow * bt) * (bz + h2 + grow * bt) < columns)
            low = bt;
        else
            high = bt;
    }
    return low;
}

/* The largest by*bz of powers of two with by = bz or by = 2 bz (or the whole ny, nz where a power is beyond)
 * that leaves room for two steps. */
static void simulate(struct job *job) {
    const struct mx_problem levels = in_levels(job), *p = &levels;
    int64_t columns = (int64_t)(job->room_bytes / (uint64_t)(BUFFERS * row_pitch(job)));
    if (columns < 1) return;
    for (int64_t b = power_of_two_below(mx_max(1, floor_sqrt(columns))); b > 0 && !job->found; b /= 2)
        for (int64_t wide = 2; wide > 0 && !job->found; wide--) {
            int64_t by = mx_min(wide * b, p->ny), bz = mx_min(b, p->nz);
            int64_t limit = typical_bt(job, by, bz, columns);
            if (limit < least_steps(p)) continue;
            try_shorter(job, by, bz, modest_bt(p, limit));
        }
}

/* Of a Block that is cut: one level is always possible, of a step of two levels none less. */
static int too_many_levels(const struct job *job, const char *cut, int64_t block, int64_t n, mx_why *why) {
    const struct mx_problem *p = &job->problem;
    const int64_t unit = mx_job_unit(job), bt = job->request->manual.bt;
    const int64_t most = unit == 1 ? mx_max(1, block / (2 * p->h)) : block / (2 * p->h) / unit * unit;
    char fewer[48] = "";
    if (most > 0) snprintf(fewer, sizeof fewer, "BT <= %lld or ", (long long)most);
    return mx_fail(
        why, -EINVAL,
        "--block: BT = %lld is too large, because twice BT times the radius (%d) may be at most %s = %lld: "
        "give %s%s >= %lld",
        (long long)bt, p->h, cut, (long long)block, fewer, cut, (long long)mx_min(n, 2 * bt * p->h));
}

/* The papers' constraints on a given Block, each with a way out. DRAM is the caller's. */
static int check_given(const struct job *job, mx_why *why) {
    const struct mx_plan *m = &job->request->manual;
    const struct mx_problem *p = &job->problem;
    const int64_t levels = mx_job_levels(job);
    const struct {
        const char *name, *total;
        int64_t block, n;
    } cuts[] = {{"BY", "NY", m->by, p->ny}, {"BZ", "NZ", m->bz, p->nz}};
    if (m->bt > levels)
        return mx_fail(why, -EINVAL, "--block: BT = %lld is above %s %lld: give a BT of %lld to %lld",
                       (long long)m->bt,
                       mx_job_unit(job) > 1 ? "the run's levels," : "NT =", (long long)levels,
                       (long long)mx_job_unit(job), (long long)levels);
    for (int i = 0; i < 2; i++) {
        int64_t b = cuts[i].block, n = cuts[i].n;
        if (b < 1 || b > n)
            return mx_fail(why, -EINVAL,
                           "--block: %s = %lld is outside 1 to %s = %lld: give %lld for one Block",
                           cuts[i].name, (long long)b, cuts[i].total, (long long)n, (long long)n);
        /* Overlapped blocks recompute their halo, however deep: the constraint is that of the others. */
        bool bound = job->strategy->blocks && !job->strategy->halo_twice;
        if (b < n && bound && m->bt > 1 && 2 * m->bt * p->h > b)
            return too_many_levels(job, cuts[i].name, b, n, why);
    }
    if (!job->strategy->blocks && m->bz < p->nz)
        return mx_fail(why, -EINVAL,
                       "--block: BZ = %lld is not possible, because %s does not cut z: give BZ = NZ = %lld",
                       (long long)m->bz, job->algorithm->name, (long long)p->nz);
    return 0;
}

static bool fits_with(const struct job *open, const struct job *filed, int64_t bt) {
    const struct mx_plan *m = &open->request->manual;
    return mx_job_fits(open, m->by, m->bz, bt) || mx_job_fits(filed, m->by, m->bz, bt);
}

/* Returns the most time levels of whole steps, up to `most`, for which there is room; 0 = none. Even and odd
 * numbers may differ: the last few are looked at one by one. */
static int64_t fitting_levels(const struct job *open, const struct job *filed, int64_t most) {
    enum { ONE_BY_ONE = 64 };
    const int64_t unit = mx_job_unit(open);
    int64_t low = 0, high = most / unit;
    while (high - low > ONE_BY_ONE) {
        const int64_t middle = low + (high - low) / 2;
        if (fits_with(open, filed, middle * unit))
            low = middle;
        else
            high = middle;
    }
    int64_t k = mx_min(high + ONE_BY_ONE, most / unit);
    while (k > 0 && !fits_with(open, filed, k * unit)) k--;
    return k * unit;
}

/* Says what the Block needs at least, with slabs of one plane if they are open: with seams in DRAM, and where
 * they may be in a side file. */
static int too_large(struct job open, struct job filed, mx_why *why) {
    const struct mx_tune_request *q = open.request;
    const struct mx_plan *m = &q->manual;
    struct option o;
    mx_job_thinnest(&open);
    mx_job_thinnest(&filed);
    const struct mx_plan plan = mx_job_with_block(&filed, m->by, m->bz, m->bt);
    const int64_t bt = fitting_levels(&open, &filed, m->bt);
    mx_job_measure(&filed, &plan, &o);
    char way[80] = "no BT fits with this BY and BZ: lower BY or BZ", block[MX_BLOCK_TEXT], asked[100];
    if (bt > 0) snprintf(way, sizeof way, "with this BY and BZ, BT <= %lld fits", (long long)bt);
    snprintf(asked, sizeof asked, "--block: BY = %lld, BZ = %lld, BT = %lld", (long long)m->by,
             (long long)m->bz, (long long)m->bt);
    if (o.device_bytes > open.device_bytes)
        return mx_fail(why, -ENOMEM,
                       "%s needs %s of memory of %.60s, and %s is free: %s, or raise --device-memory%s",
                       asked, mx_size(o.device_bytes).text, q->accel->device, mx_size(open.device_bytes).text,
                       way, q->accel->here ? " or memory= of --accel host" : "");
    if (o.dram_bytes < open.room_bytes)
        return mx_fail(why, -ENOMEM,
                       "%s needs a side file and so a store of %s, and the device has %s: %s, or raise "
                       "--dram, which leaves room without a side file",
                       asked, mx_size(mx_job_stored_bytes(mx_job_layout(&filed, &plan), &o.shape)).text,
                       mx_size(q->capacity_bytes).text, way);
    mx_block_text(&open.problem, o.shape.rows, o.shape.slots[0], block);
    return mx_fail(why, -ENOMEM,
                   "%s needs %s of DRAM for two Blocks of %s, and %s is free for them: %s, or raise --dram",
                   asked, mx_size(o.dram_bytes).text, block, mx_size(open.room_bytes).text, way);
}

/* The Block in thinner slabs than the engine would choose, if the user leaves them open. `base` says where
 * seams are. */
static bool try_thinner(struct job *job, const struct mx_plan *base) {
    const struct mx_plan *m = &job->request->manual;
    struct job other = *job;
    other.base = *base;
    struct mx_plan plan = mx_job_with_block(&other, m->by, m->bz, m->bt);
    plan.ahead = m->ahead;
    if (!mx_job_thin(&other, &plan)) return false;
    other.base.slab = plan.slab, other.base.ahead = plan.ahead;
    if (!mx_job_try(&other, m->by, m->bz, m->bt)) return false;
    *job = other;
    return true;
}

int mx_tune_manual(struct job *job, mx_why *why) {
    const struct mx_plan *m = &job->request->manual;
    struct option o;
    if (m->by == 0 && m->bz == 0 && m->bt == 0) {
        simulate(job);
        return 0;
    }
    int err = check_given(job, why);
    if (err < 0) return err;
    const struct job open = *job;
    if (mx_job_try(job, m->by, m->bz, m->bt)) return 0;
    if (mx_job_may_file(job)) {
        strcpy(job->base.seams, MX_SEAMS_IN_FILE);
        if (mx_job_try(job, m->by, m->bz, m->bt)) return 0;
    }
    if (try_thinner(job, &open.base) || try_thinner(job, &job->base)) return 0;
    struct mx_plan plan = mx_job_with_block(job, m->by, m->bz, m->bt);
    if (mx_job_measure(job, &plan, &o)) return too_large(open, *job, why);
    mx_job_complete(job, &plan);
    err = job->algorithm->check(&job->problem, &plan, why);
    return err < 0 ? err : job->counted->check(&job->problem, &plan, why);
}
