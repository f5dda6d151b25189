/* SPDX-License-Identifier: BSD-3-Clause */
/* From a request to a plan: every algorithm that may be used is tuned, the predicted fastest wins. */
#include "machine/clock.h"
#include "tune/search.h"
#include "tune/size_text.h"

#include "execute/execute.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef int tuner_fn(struct job *job, mx_why *why);

const struct mx_tuner mx_tuners[] = {
    {"blk", "Blk-Tune: the global optimum of CalcTrans under the constraints"},
    {"naive", "Naive-Tune: powers of two that fit, then the steps that fit"},
    {"manual", "the Block that is given, or the one that the papers choose by hand"},
    {NULL, NULL},
};
static tuner_fn *const tuner_functions[] = {mx_tune_blk, mx_tune_naive, mx_tune_manual};
enum { BLK, NAIVE, MANUAL, N_TUNERS };

/* Predictions are no better than this; among plans as near to the fastest the one that moves least wins. */
static const double prediction_tolerance = 0.02;

enum { DEFAULT_L2_BYTES = 256 << 10, DEFAULT_AHEAD = 2, MIB = 1 << 20 };

/* ------------------------------------------------------------------ the request, completed */

struct context {
    struct mx_tune_request q; /* dram_bytes, engine, rates, threads set */
    int tuner;
    uint64_t room_bytes, overhead_bytes;
};

static int find_tuner(const struct mx_tune_request *q, mx_why *why) {
    bool block = q->manual.by != 0 || q->manual.bz != 0 || q->manual.bt != 0;
    if (q->tuner == NULL) return block ? MANUAL : BLK;
    for (int i = 0; i < N_TUNERS; i++)
        if (strcmp(mx_tuners[i].name, q->tuner) == 0) {
            if (i == MANUAL || !block) return i;
            return mx_fail(why, -EINVAL,
                           "tuner %s chooses the Block itself: leave --block out, or give --tuner manual",
                           q->tuner);
        }
    return mx_fail(why, -EINVAL, "tuner '%s' is not known; it is blk, naive or manual", q->tuner);
}

/* Where nothing but a direct algorithm may be chosen, periodic sides in y and z need the engine that computes
 * one level after the other. */
static bool asks_level_by_level(const struct mx_tune_request *q) {
    const struct mx_algorithm *a = q->algorithm != NULL ? mx_algorithm_find(q->algorithm) : NULL;
    const struct mx_sides *s = &q->problem->sides;
    const bool direct = a != NULL ? a->needs_mapped : q->style == MX_TUNE_RESIDENT;
    return direct && (mx_sides_periodic(s, MX_DIM_Y) || mx_sides_periodic(s, MX_DIM_Z));
}

/* The trials of both take 128 MiB, which some L3 hold (480 MiB, of which other machines have their share):
 * iblock is measured in there as fast as it never is in a run, while tiled hardly gains by it. So a little
 * more is not enough. On such a machine iblock was found 1.1 to 1.2 times as fast as tiled, and a run with it
 * took 3.1 times as long. */
static const double iblock_is_faster = 1.25;

static const char *faster_engine(const struct mx_rates *r) {
    return r->iblock_updates_per_s > iblock_is_faster * r->tiled_updates_per_s ? "iblock" : "tiled";
}

static int find_engine(struct mx_tune_request *q, mx_why *why) {
    const bool device = q->engine != NULL && strcmp(q->engine, "device") == 0;
    if (q->accel != NULL && q->engine != NULL && !device)
        return mx_fail(
            why, -EINVAL,
            "engine %s computes in DRAM, and with --accel engine device does on the accelerator: leave "
            "one of them out",
            q->engine);
    if (q->accel == NULL && device)
        return mx_fail(
            why, -EINVAL,
            "engine device computes on an accelerator: give one with --accel, or take tiled or iblock");
    if (q->accel != NULL) return q->engine = "device", 0;
    if (q->engine == NULL && asks_level_by_level(q)) q->engine = "iblock";
    if (q->engine == NULL) q->engine = faster_engine(&q->rates);
    if (mx_engine_find(q->engine) != NULL) return 0;
    return mx_fail(why, -EINVAL, "engine '%s' is not known; it is iblock or tiled", q->engine);
}

static int check_in_place(const struct mx_tune_request *q, mx_why *why) {
    if (!q->manual.in_place || mx_reads_old(q->problem)) return 0;
    return mx_fail(
        why, -EINVAL,
        "in-place is for systems that read the old value (leapfrog, staggered): this one needs two "
        "Buffers in any case, leave it out");
}

static int check_problem(const struct mx_problem *p, mx_why *why) {
    if (p->nx >= 1 && p->ny >= 1 && p->nz >= 1 && p->nt >= 0 && p->h >= 1 && p->h <= MX_MAX_HALO) return 0;
    return mx_fail(
        why, -EINVAL,
        "grid %lld x %lld x %lld, %lld steps, halo %d: extents must be at least 1, steps at least 0, "
        "the halo 1 to %d",
        (long long)p->nx, (long long)p->ny, (long long)p->nz, (long long)p->nt, p->h, MX_MAX_HALO);
}

static int complete_request(const struct mx_tune_request *request, mx_why *why, struct context *out) {
    struct context c = {.q = *request};
    struct mx_tune_request *q = &c.q;
    int err = check_problem(q->problem, why);
    if (err == 0) err = check_in_place(q, why);
    if (err == 0) err = c.tuner = find_tuner(q, why);
    if (err < 0) return err;
    if (q->threads <= 0) q->threads = (int32_t)mx_max(1, q->machine->cores);
    mx_rates_of_system(&q->rates, q->problem, q->threads);
    mx_rates_complete(&q->rates, q->threads);
    if ((err = find_engine(q, why)) < 0) return err;
    if (q->dram_bytes == 0) q->dram_bytes = mx_machine_dram_bytes(q->machine);
    if (q->reserve_paper) q->reserve_bytes = mx_machine_reserve_paper(q->machine);
    c.overhead_bytes = q->extra_dram_bytes + (q->reserve_paper ? 0 : MX_TUNE_OVERHEAD_BYTES);
    if (q->style == MX_TUNE_MAPPED && !q->reserve_paper && q->dram_bytes > q->reserve_bytes) {
        uint64_t share = (q->dram_bytes - q->reserve_bytes) / MX_TUNE_CACHE_SHARE;
        c.overhead_bytes += share > MX_TUNE_CACHE_BYTES ? share : MX_TUNE_CACHE_BYTES;
    }
    uint64_t taken = q->reserve_bytes + c.overhead_bytes;
    c.room_bytes = taken < q->dram_bytes ? q->dram_bytes - taken : 0;
    *out = c;
    return 0;
}

/* ------------------------------------------------------------------ one algorithm */

/* Refined tile and chunk, where no size is given; the slab follows with them (mx_job_complete). */
static void refine(const struct job *job, struct mx_plan *plan) {
    bool given = plan->slab != 0 || plan->tile != 0 || plan->ct != 0 || plan->column != 0;
    if (!given) plan->tile = job->refined.tile, plan->ct = job->refined.ct;
}

static void set_base(const struct context *c, struct job *job) {
    const struct mx_plan *m = &c->q.manual;
    struct mx_plan *b = &job->base;
    int64_t sockets = mx_max(1, c->q.machine->sockets);
    uint64_t l2 = c->q.machine->l2_bytes > 0 ? c->q.machine->l2_bytes : DEFAULT_L2_BYTES;
    int64_t cell = mx_max(mx_cell_bytes(&job->problem, 0), mx_cell_bytes(&job->problem, 1));
    struct mx_iblock rule = mx_iblock_blk(job->problem.nx, cell, job->threads, l2, job->problem.ny,
                                          mx_max(1, job->problem.nz / sockets));
    snprintf(b->algorithm, sizeof b->algorithm, "%s", job->algorithm->name);
    snprintf(b->engine, sizeof b->engine, "%s", c->q.engine);
    snprintf(b->tuner, sizeof b->tuner, "%s", mx_tuners[c->tuner].name);
    if (job->strategy->blocks || strcmp(job->engine->name, "iblock") == 0) b->iy = rule.iy, b->iz = rule.iz;
    if (m->iy > 0) b->iy = m->iy;
    if (m->iz > 0) b->iz = m->iz;
    b->slab = m->slab, b->tile = m->tile, b->ct = m->ct, b->column = m->column;
    refine(job, b);
    memcpy(b->seams, m->seams, sizeof b->seams);
    b->ahead = m->ahead > 0 ? m->ahead : DEFAULT_AHEAD;
    b->threads = job->threads;
    b->in_place = m->in_place;
    job->z_step = mx_max(1, (b->iz > 0 ? b->iz : rule.iz) * sockets); /* section V-B-2a */
    /* The tiled engine shares rows and levels among threads, not planes: there bz is free, save where the
     * papers' rules are asked for, or a multiple of the slab where a finer search would cost more than it
     * gains. */
    if (c->q.reserve_paper || m->iz != 0) return;
    /* With iblock an iBlock is cut where a Block ends; what must come out even is each thread's share. */
    if (strcmp(job->engine->name, "tiled") != 0) {
        job->z_step = mx_max(1, (int64_t)job->threads * sockets);
        return;
    }
    struct mx_plan one = *b;
    one.by = one.bz = 1, one.bt = mx_job_unit(job);
    mx_job_complete(job, &one);
    job->z_step = job->strategy->by_seconds ? one.slab : 1;
}

static int make_layouts(struct job *job, mx_why *why) {
    uint32_t align = job->request->offset_align_bytes;
    const struct mx_fixed_layout *fixed = job->request->fixed;
    if (job->request->layout != NULL) {
        job->layout[0] = job->layout[1] = *job->request->layout;
    } else {
        int err = mx_layout_make(&job->problem, align, false, why, &job->layout[0]);
        if (err == 0) err = mx_layout_make(&job->problem, align, true, why, &job->layout[1]);
        if (err < 0) return err;
        if (job->request->style == MX_TUNE_RESIDENT) mx_layout_in_dram(&job->layout[0]);
    }
    for (int i = 0; i < 2 && job->request->fixed_unit_bytes > 0; i++)
        mx_layout_fixed_units(&job->problem, job->request->fixed_unit_bytes, job->request->layout == NULL,
                              i == 1, &job->layout[i]);
    for (int32_t i = 0; i < mx_fixed_count(&job->problem) && fixed != NULL; i++)
        if (fixed[i].row_pitch_bytes > 0) job->layout[0].fixed[i] = job->layout[1].fixed[i] = fixed[i];
    return 0;
}

/* The engine whose sizes are looked for: an accelerator that is here computes with the tiled one. */
static const char *sized_by(const struct mx_tune_request *q) {
    return q->accel != NULL && q->accel->here ? "tiled" : q->engine;
}

enum sizes { OWN, REFINED };

static int make_job(const struct context *c, const struct mx_algorithm *algorithm, enum sizes sizes,
                    mx_why *why, struct job *out) {
    struct job job = {.request = &c->q,
                      .problem = *c->q.problem,
                      .algorithm = algorithm,
                      .counted = algorithm,
                      .strategy = mx_strategy_find(algorithm->name),
                      .engine = mx_engine_find(sized_by(&c->q)),
                      .rates = c->q.rates,
                      .room_bytes = c->room_bytes,
                      .device_bytes = c->q.accel != NULL ? c->q.accel->memory_bytes : UINT64_MAX,
                      .threads = c->q.threads,
                      .bt_min = 1};
    if (job.strategy == NULL)
        return mx_fail(why, -ENOTSUP, "%s cannot be tuned; give a whole plan", algorithm->name);
    if (job.strategy->counted != NULL) job.counted = mx_algorithm_find(job.strategy->counted);
    job.problem.nt = mx_max(1, job.problem.nt);
    job.stretch = mx_sweep_levels(&job.problem, INT64_MAX);
    /* On dram always; a mapping that DRAM does not hold is used directly only where that was asked for. */
    job.resident = c->q.style == MX_TUNE_RESIDENT ||
                   (algorithm->needs_mapped && c->q.algorithm == NULL && !job.strategy->only_by_name);
    int err = make_layouts(&job, why);
    if (err < 0) return err;
    bool refined = sizes == REFINED && strcmp(job.engine->name, "tiled") == 0 &&
                   mx_refined_for(&job.rates.refined, &job.problem);
    if (refined) job.refined = job.rates.refined.sizes;
    set_base(c, &job);
    *out = job;
    return 0;
}

/* The smallest --dram with which blk finds a plan; 0 = none at any size. */
static uint64_t smallest_dram(const struct context *c, const struct job *job, struct mx_plan *plan) {
    struct job least = *job;
    least.by_dram = true;
    least.found = false;
    least.room_bytes = UINT64_MAX;
    least.z_step = 1;
    if (job->strategy->thin_slabs && least.base.slab == 0) {
        least.base.slab = 1;
        if (job->request->manual.ahead == 0) least.base.ahead = 1;
    }
    mx_job_search(&least);
    if (mx_job_may_file(&least)) {
        strcpy(least.base.seams, MX_SEAMS_IN_FILE);
        mx_job_search(&least);
    }
    if (!least.found) return 0;
    *plan = least.best.plan;
    uint64_t bytes = least.best.dram_bytes + 1 + c->q.reserve_bytes + c->overhead_bytes;
    return (bytes + MIB - 1) / MIB * MIB;
}

static uint64_t resident_bytes(const struct job *job, const struct mx_plan *plan) {
    struct mx_shape shape;
    job->algorithm->shape(&job->problem, plan, &shape);
    return mx_job_resident_bytes(mx_job_layout(job, plan), &shape);
}

/* The smallest memory of an accelerator that would do; 0 = none. And DRAM with it. */
static uint64_t smallest_device(const struct job *job, uint64_t *dram_bytes) {
    struct job least = *job;
    least.by_dram = true;
    least.found = false;
    least.room_bytes = least.device_bytes = UINT64_MAX;
    least.z_step = 1;
    if (least.base.slab == 0) least.base.slab = 1;
    if (job->request->manual.ahead == 0) least.base.ahead = 1;
    mx_job_search(&least);
    *dram_bytes = least.best.dram_bytes;
    return least.found ? least.best.device_bytes : 0;
}

static void explain_misfit_there(const struct context *c, const struct job *job,
                                 struct mx_tune_candidate *out) {
    uint64_t dram = 0;
    const uint64_t device = smallest_device(job, &dram);
    const char *name = job->algorithm->name;
    if (device == 0)
        snprintf(out->why, sizeof out->why, "%s has no plan for this grid on an accelerator", name);
    else if (device > job->device_bytes)
        snprintf(out->why, sizeof out->why,
                 "no plan of %s fits the %s of memory of %.60s; the smallest that works is %s: raise "
                 "--device-memory, or leave --accel out",
                 name, mx_size_text(job->device_bytes).text, job->request->accel->device,
                 mx_size_text(device).text);
    else
        snprintf(
            out->why, sizeof out->why,
            "no plan of %s fits the %s of DRAM that are left beside an accelerator (%s of its memory); the "
            "smallest takes %s: raise --dram",
            name, mx_size_text(c->room_bytes).text, mx_size_text(job->device_bytes).text,
            mx_size_text(dram + 1).text);
}

static void explain_misfit(const struct context *c, const struct job *job, struct mx_tune_candidate *out) {
    struct mx_plan p;
    const char *name = job->algorithm->name;
    if (c->q.accel != NULL) {
        explain_misfit_there(c, job, out);
        return;
    }
    out->smallest_dram_bytes = smallest_dram(c, job, &p);
    if (out->smallest_dram_bytes == 0 && c->q.layout != NULL)
        snprintf(out->why, sizeof out->why, "%s has no plan for the layout of this store here", name);
    else if (out->smallest_dram_bytes == 0)
        snprintf(out->why, sizeof out->why, "%s has no plan for this grid at any size of DRAM", name);
    else if (job->resident && job->algorithm->needs_mapped)
        snprintf(out->why, sizeof out->why,
                 "%s needs %s in DRAM: %s, and %s are there; the smallest DRAM that works is %s", name,
                 mx_fixed_count(&job->problem) > 0 ? "all Buffers, C included," : "both Buffers",
                 mx_size_text(resident_bytes(job, &p)).text, mx_size_text(c->room_bytes).text,
                 mx_size_text(out->smallest_dram_bytes).text);
    else
        snprintf(
            out->why, sizeof out->why,
            "no plan of %s fits the %s that are left for Blocks; the smallest DRAM that works is %s (by=%lld "
            "bz=%lld bt=%lld)",
            name, mx_size_text(c->room_bytes).text, mx_size_text(out->smallest_dram_bytes).text,
            (long long)p.by, (long long)p.bz, (long long)p.bt);
}

/* What the algorithm itself needs and moves, with the steps as asked (0 steps move nothing). */
static void fill_candidate(struct job *job, const struct mx_plan *plan, struct mx_tune_candidate *out) {
    const struct mx_problem *asked = job->request->problem;
    struct mx_shape counted;
    struct mx_traffic traffic;
    out->plan = *plan;
    out->layout = *mx_job_layout(job, plan);
    job->algorithm->shape(asked, plan, &out->shape);
    job->algorithm->traffic(asked, plan, &out->layout, &out->traffic);
    job->counted->shape(asked, plan, &counted);
    job->counted->traffic(asked, plan, &out->layout, &traffic);
    out->seconds = mx_predict(job, plan, &out->layout, &counted, &traffic);
    out->dram_bytes = mx_job_dram_bytes(job, plan, &out->shape);
    out->device_bytes = mx_job_device_bytes(job, plan, &out->shape);
}

/* The rows of the store do not suit the device: the ways out that are left. */
static int explain_layout(const struct mx_tune_request *q, const char *what, mx_why *why) {
    const struct mx_layout *l = q->layout;
    if (q->whole_planes)
        return mx_fail(
            why, -EINVAL,
            "%s would transfer parts of planes, and --integrity keeps hashes of whole ones in this store; "
            "take --algorithm stream without strips (BY = NY)",
            what);
    bool planes = l->plane_pitch_bytes % q->offset_align_bytes == 0;
    return mx_fail(why, -EINVAL,
                   "%s cannot go on with this store by direct transfers: its rows are %lld bytes apart, its "
                   "planes %lld, and the device "
                   "transfers multiples of %u; take --backend mmap%s, or memext export and a new run",
                   what, (long long)l->row_pitch_bytes, (long long)l->plane_pitch_bytes,
                   q->offset_align_bytes, planes ? " or --algorithm stream without strips (BY = NY)" : "");
}

static bool can_be_on_device(const struct mx_algorithm *a) {
    return strcmp(a->name, "stream") == 0 || strcmp(a->name, "resident") == 0;
}

static int check_seam(const struct mx_tune_request *q, const struct mx_algorithm *a, mx_why *why) {
    if (q->accel != NULL && !can_be_on_device(a))
        return mx_fail(
            why, -ENOTSUP,
            "%s cannot compute on an accelerator; take stream, or direct where everything fits there, or "
            "leave --accel out",
            a->name);
    if (q->resumable && q->manual.in_place)
        return mx_fail(
            why, -ENOTSUP,
            "in-place rewrites the Buffers, so a run that was committed cannot go on with it; leave it "
            "out");
    if (q->manual.in_place && strcmp(a->name, "redundant") == 0)
        return mx_fail(
            why, -ENOTSUP,
            "redundant cannot work in-place: overlapped blocks read what others have written; take "
            "stream or skewed-y");
    if (q->resumable && !a->resumable)
        return mx_fail(why, -ENOTSUP,
                       "%s rewrites the Buffers in place, so a run that was committed cannot go on with it; "
                       "take redundant or stream",
                       a->name);
    if (!a->needs_mapped || q->style != MX_TUNE_TRANSFER) return 0;
    return mx_fail(why, -ENOTSUP,
                   "%s works on mapped Buffers; use backend mmap, swap or dram, or another algorithm",
                   a->name);
}

static int check_capacity(const struct mx_tune_request *q, const struct mx_tune_candidate *x, mx_why *why) {
    uint64_t bytes = mx_job_stored_bytes(&x->layout, &x->shape);
    char side_file[80] = "", fixed[60] = "";
    const int64_t buffers = mx_job_state_buffers(&x->shape);
    uint64_t seams = (uint64_t)mx_execute_seam_bytes(&x->shape, &x->layout);
    uint64_t others = bytes - seams - (uint64_t)buffers * (uint64_t)x->layout.buffer_bytes;
    if (q->capacity_bytes == 0 || q->style == MX_TUNE_RESIDENT || bytes <= q->capacity_bytes) return 0;
    if (x->shape.seams_in_file)
        snprintf(side_file, sizeof side_file, " and %s for faces", mx_size_text(seams).text);
    if (others > 0) snprintf(fixed, sizeof fixed, ", %s of read-only fields", mx_size_text(others).text);
    return mx_fail(
        why, -ENOSPC,
        "the device holds %s, the problem needs %s (%s Buffers of %s%s%s): use a larger device or a smaller "
        "grid%s",
        mx_size_text(q->capacity_bytes).text, mx_size_text(bytes).text, buffers == 4 ? "four" : "two",
        mx_size_text((uint64_t)x->layout.buffer_bytes).text, fixed, side_file,
        buffers == 4 ? ", or half the Buffers with --in-place, which cannot be resumed" : "");
}

/* Sides that the algorithm cannot do with in any Block: what it says of one that is the whole grid. */
static int check_sides(const struct job *job, mx_why *why) {
    if (mx_sides_all_fixed(&job->problem.sides)) return 0;
    struct mx_plan whole = job->base;
    whole.by = job->problem.ny, whole.bz = job->problem.nz, whole.bt = mx_job_unit(job);
    return job->algorithm->check(&job->problem, &whole, why);
}

static int run_tuner(const struct context *c, struct job *job, mx_why *why) {
    bool choice = job->strategy->blocks || (c->tuner == MANUAL && job->algorithm->uses_blocks);
    return (choice ? tuner_functions[c->tuner] : mx_tune_blk)(job, why);
}

/* Refined sizes are there to gain speed: a plan that only they keep from fitting is made without them. */
static int tune_sizes(const struct context *c, struct job *job, mx_why *why) {
    int err = run_tuner(c, job, why);
    bool misfit = err == -ENOMEM || (err == 0 && !job->found);
    if (job->refined.slab == 0 || !misfit) return err;
    err = make_job(c, job->algorithm, OWN, why, job);
    return err < 0 ? err : run_tuner(c, job, why);
}

/* Fills out, found or not. Negative: the request itself is wrong for this algorithm. */
static int tune_one(const struct context *c, const struct mx_algorithm *algorithm, mx_why *why,
                    struct mx_tune_candidate *out, struct job *job) {
    struct mx_tune_candidate candidate = {0};
    snprintf(candidate.algorithm, sizeof candidate.algorithm, "%s", algorithm->name);
    int err = check_seam(&c->q, algorithm, why);
    if (err == 0) err = make_job(c, algorithm, REFINED, why, job);
    if (err == 0) err = check_sides(job, why);
    if (err < 0) return err;
    err = tune_sizes(c, job, why);
    candidate.n_evaluated = job->n_evaluated;
    /* Strips that were asked for, of rows that cannot be transferred. */
    const struct mx_tune_request *q = &c->q;
    if (err == 0 && !job->found && q->layout != NULL && q->manual.by > 0 && q->style == MX_TUNE_TRANSFER &&
        (q->whole_planes || q->layout->row_pitch_bytes % q->offset_align_bytes != 0))
        return explain_layout(q, algorithm->name, why);
    if (err == 0 && !job->found) explain_misfit(c, job, &candidate);
    if (err == 0 && job->found) {
        fill_candidate(job, &job->best.plan, &candidate);
        candidate.fits = true;
        err = check_capacity(&c->q, &candidate, why);
    }
    *out = candidate;
    return err;
}

/* ------------------------------------------------------------------ the choice */

/* May it be chosen without being named? */
static bool allowed(const struct context *c, const struct mx_algorithm *a) {
    const struct strategy *s = mx_strategy_find(a->name);
    if (c->q.accel != NULL) return can_be_on_device(a);
    if (s == NULL || s->only_by_name || (c->q.resumable && !a->resumable)) return false;
    if (c->q.blocks_only && !a->uses_blocks) return false;
    if (a->needs_mapped) return c->q.style != MX_TUNE_TRANSFER;
    /* Blocks beside Buffers that are in DRAM: only where direct cannot be, of several ranks. */
    if (c->q.style == MX_TUNE_RESIDENT && !c->q.blocks_only) return false;
    bool given = c->q.manual.by != 0;
    return c->tuner == BLK || s->blocks || (given && c->q.manual.bz >= c->q.problem->nz);
}

static double moved(const struct mx_tune_candidate *c) {
    return (double)c->traffic.read_bytes + (double)c->traffic.write_bytes;
}

static int compare(const void *a, const void *b) {
    const struct mx_tune_candidate *x = a, *y = b;
    if (x->fits != y->fits) return x->fits ? -1 : 1;
    if (x->seconds.total_s != y->seconds.total_s) return x->seconds.total_s < y->seconds.total_s ? -1 : 1;
    if (moved(x) != moved(y)) return moved(x) < moved(y) ? -1 : 1;
    return strcmp(x->algorithm, y->algorithm);
}

/* Sorted by seconds; the winner is brought to the front. */
static void choose(struct mx_tune_result *r) {
    struct mx_tune_candidate *c = r->candidates, winner;
    qsort(c, (size_t)r->n_candidates, sizeof *c, compare);
    double limit = c[0].seconds.total_s * (1 + prediction_tolerance);
    int best = 0;
    for (int i = 1; i < r->n_candidates && c[i].fits && c[i].seconds.total_s <= limit; i++)
        if (moved(&c[i]) < moved(&c[best])) best = i;
    winner = c[best];
    memmove(c + 1, c, (size_t)best * sizeof *c);
    c[0] = winner;
}

static void take_winner(const struct context *c, struct mx_tune_result *r) {
    const struct mx_tune_candidate *w = &r->candidates[0];
    r->plan = w->plan;
    r->layout = w->layout;
    r->shape = w->shape;
    r->traffic = w->traffic;
    r->seconds = w->seconds;
    r->dram_bytes = w->dram_bytes;
    r->device_bytes = w->device_bytes;
    snprintf(r->tuner, sizeof r->tuner, "%s", mx_tuners[c->tuner].name);
}

static void take_context(const struct context *c, struct mx_tune_result *r) {
    r->room_bytes = c->room_bytes;
    r->visible_bytes = c->q.dram_bytes;
    r->reserve_bytes = c->q.reserve_bytes;
    r->overhead_bytes = c->overhead_bytes;
    r->rates = c->q.rates;
}

/* Nothing fits: which algorithm would need the least DRAM? */
static int fail_all(const struct context *c, const struct mx_tune_result *r, mx_why *why) {
    const struct mx_tune_candidate *least = NULL;
    for (int i = 0; i < r->n_candidates && c->q.accel != NULL; i++)
        if (strcmp(r->candidates[i].algorithm, "stream") == 0 || i + 1 == r->n_candidates)
            return mx_fail(why, -ENOMEM, "%s", r->candidates[i].why);
    for (int i = 0; i < r->n_candidates; i++) {
        const struct mx_tune_candidate *x = &r->candidates[i];
        if (x->smallest_dram_bytes == 0) continue;
        if (least == NULL || x->smallest_dram_bytes < least->smallest_dram_bytes) least = x;
    }
    if (least == NULL && c->q.layout != NULL && (c->q.whole_planes || c->q.style == MX_TUNE_TRANSFER))
        return explain_layout(&c->q, c->q.algorithm != NULL ? c->q.algorithm : "a run", why);
    if (least == NULL)
        return mx_fail(why, -EINVAL, "no algorithm has a plan for this grid and these options");
    return mx_fail(
        why, -ENOMEM, "%s; %s of DRAM less %s reserve and %s for the program: give --dram %lluMiB or more%s",
        least->why, mx_size_text(c->q.dram_bytes).text, mx_size_text(c->q.reserve_bytes).text,
        mx_size_text(c->overhead_bytes).text, (unsigned long long)(least->smallest_dram_bytes / MIB),
        c->q.style == MX_TUNE_RESIDENT ? ", or a backend with storage" : "");
}

static int tune_named(const struct context *c, mx_why *why, struct mx_tune_result *r) {
    struct job job;
    const struct mx_algorithm *a = mx_algorithm_find(c->q.algorithm);
    if (a == NULL)
        return mx_fail(why, -EINVAL,
                       "algorithm '%s' is not known; it is one of direct, redundant, skewed, skewed-y, "
                       "skewed-min, stream, resident, or a name of the papers (aio3y, aio5y, ...)",
                       c->q.algorithm);
    int err = tune_one(c, a, why, &r->candidates[0], &job);
    r->n_candidates = 1;
    r->z_step = err < 0 ? 0 : job.z_step;
    return err;
}

static int tune_all(const struct context *c, mx_why *why, struct mx_tune_result *r) {
    struct job job;
    mx_why reason;
    int refused = 0;
    for (int i = 0; mx_algorithms[i] != NULL && r->n_candidates < MX_TUNE_MAX_CANDIDATES; i++) {
        struct mx_tune_candidate *out = &r->candidates[r->n_candidates];
        if (!allowed(c, mx_algorithms[i])) continue;
        int err = tune_one(c, mx_algorithms[i], &reason, out, &job);
        r->z_step = mx_max(r->z_step, job.z_step);
        r->n_candidates++;
        if (err == 0) continue;
        out->fits = false;
        snprintf(out->why, sizeof out->why, "%.*s", (int)sizeof out->why - 1, reason.text);
        snprintf(out->algorithm, sizeof out->algorithm, "%s", mx_algorithms[i]->name);
        if (refused == 0 && why != NULL) *why = reason;
        if (refused == 0) refused = err;
    }
    for (int i = 0; i < r->n_candidates; i++)
        if (r->candidates[i].fits || r->candidates[i].smallest_dram_bytes > 0) return 0;
    return refused;
}

int mx_tune(const struct mx_tune_request *request, mx_why *why, struct mx_tune_result *out) {
    struct context c;
    struct mx_tune_result *r = calloc(1, sizeof *r);
    if (r == NULL) return mx_fail(why, -ENOMEM, "no memory for a tuner");
    uint64_t begin = mx_clock_ns();
    int err = complete_request(request, why, &c);
    if (err < 0) goto end;
    take_context(&c, r);
    err = (c.q.algorithm != NULL ? tune_named : tune_all)(&c, why, r);
    if (err < 0) goto end;
    for (int i = 0; i < r->n_candidates; i++) r->n_evaluated += r->candidates[i].n_evaluated;
    if (r->n_candidates == 0) {
        err = mx_fail(why, -ENOTSUP, "no algorithm can be chosen here; name one with --algorithm");
        goto end;
    }
    choose(r);
    if (!r->candidates[0].fits) {
        err = fail_all(&c, r, why);
        goto end;
    }
    take_winner(&c, r);
    r->search_ns = mx_clock_ns() - begin;
    *out = *r;
end:
    free(r);
    return err;
}

/* ------------------------------------------------------------------ a given plan */

/* In DRAM where they fit, if the plan does not say. */
static int place_seams(const struct job *job, struct mx_plan *p, mx_why *why) {
    struct option o;
    bool given = p->seams[0] != 0;
    if (!mx_job_measure(job, p, &o)) return 0; /* the check says why */
    if (given && o.plan.seams[0] == 0)
        return mx_fail(why, -EINVAL,
                       "plan: 'faces=%s', but it has none: only stream with strips (by < ny) does", p->seams);
    memcpy(p->seams, o.plan.seams, sizeof p->seams);
    bool file = !given && p->seams[0] != 0 && !job->resident &&
                (o.dram_bytes >= job->room_bytes || o.device_bytes > job->device_bytes);
    if (file) strcpy(p->seams, MX_SEAMS_IN_FILE);
    return 0;
}

static int merge_plan(const struct mx_plan *given, struct job *job, mx_why *why, struct mx_plan *out) {
    struct mx_plan p = *given;
    if (p.bt == 0) return mx_fail(why, -EINVAL, "the plan has no bt: how many steps a sweep takes");
    if (p.by == 0) p.by = job->problem.ny;
    if (p.bz == 0) p.bz = job->problem.nz;
    if (p.threads == 0) p.threads = job->threads;
    if (p.ahead == 0) p.ahead = DEFAULT_AHEAD;
    if (p.tuner[0] == 0) strcpy(p.tuner, "manual");
    memcpy(p.algorithm, job->base.algorithm, sizeof p.algorithm);
    memcpy(p.engine, job->base.engine, sizeof p.engine);
    refine(job, &p);
    mx_job_complete(job, &p);
    int err = place_seams(job, &p, why);
    if (err < 0) return err;
    *out = p;
    return job->algorithm->check(&job->problem, &p, why);
}

static int check_room(const struct context *c, const struct mx_tune_candidate *x, mx_why *why) {
    if (c->q.accel != NULL && x->device_bytes > c->q.accel->memory_bytes)
        return mx_fail(
            why, -ENOMEM,
            "the plan needs %s of memory of %.60s, and %s are there: raise --device-memory or lower by "
            "or bt",
            mx_size_text(x->device_bytes).text, c->q.accel->device,
            mx_size_text(c->q.accel->memory_bytes).text);
    if (x->dram_bytes < c->room_bytes) return 0;
    return mx_fail(
        why, -ENOMEM,
        "the plan needs %s of DRAM, and %s are there for it (%s less %s reserve and %s for the program): "
        "raise --dram or lower by, bz or bt",
        mx_size_text(x->dram_bytes).text, mx_size_text(c->room_bytes).text,
        mx_size_text(c->q.dram_bytes).text, mx_size_text(c->q.reserve_bytes).text,
        mx_size_text(c->overhead_bytes).text);
}

static int measure_given(const struct context *c, const struct mx_plan *given, enum sizes sizes, mx_why *why,
                         struct mx_tune_result *r) {
    struct job job;
    struct mx_plan plan;
    struct mx_tune_candidate *x = &r->candidates[0];
    int err = make_job(c, mx_algorithm_find(given->algorithm), sizes, why, &job);
    if (err == 0) err = merge_plan(given, &job, why, &plan);
    if (err < 0) return err;
    if (!mx_job_can_transfer(&job, &plan)) return explain_layout(&c->q, job.algorithm->name, why);
    snprintf(x->algorithm, sizeof x->algorithm, "%s", job.algorithm->name);
    x->fits = true;
    x->n_evaluated = 1;
    fill_candidate(&job, &plan, x);
    r->n_candidates = 1;
    r->n_evaluated = 1;
    r->z_step = job.z_step;
    err = check_capacity(&c->q, x, why);
    return err < 0 ? err : check_room(c, x, why);
}

static int tune_given(struct context *c, const struct mx_plan *given, mx_why *why, struct mx_tune_result *r) {
    const struct mx_algorithm *a = mx_algorithm_find(given->algorithm);
    if (a == NULL) return mx_fail(why, -EINVAL, "the plan's algorithm '%s' is not known", given->algorithm);
    c->q.algorithm = a->name;
    int err = check_seam(&c->q, a, why);
    if (err == 0) err = measure_given(c, given, REFINED, why, r);
    return err == -ENOMEM ? measure_given(c, given, OWN, why, r) : err;
}

int mx_tune_plan(const struct mx_tune_request *request, const struct mx_plan *plan, mx_why *why,
                 struct mx_tune_result *out) {
    struct context c;
    struct mx_tune_request q = *request;
    q.tuner = "manual";
    if (plan->engine[0] != 0) q.engine = plan->engine;
    if (plan->threads != 0) q.threads = plan->threads;
    struct mx_tune_result *r = calloc(1, sizeof *r);
    if (r == NULL) return mx_fail(why, -ENOMEM, "no memory for a tuner");
    uint64_t begin = mx_clock_ns();
    int err = mx_plan_check(plan, why);
    if (err == 0) err = complete_request(&q, why, &c);
    if (err == 0) err = tune_given(&c, plan, why, r);
    if (err == 0) {
        take_context(&c, r);
        take_winner(&c, r);
        snprintf(r->tuner, sizeof r->tuner, "%s", r->plan.tuner);
        r->search_ns = mx_clock_ns() - begin;
        *out = *r;
    }
    free(r);
    return err;
}
