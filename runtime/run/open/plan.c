/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.c - the plan of a run, from the options, the tuner and the resumed store. */
#include "run/open/open.h"

#include "machine/machine.h"
#include "machine/minmax.h"
#include "system/profile.h"

#include <math.h>
#include <string.h>

enum { LINE_ALIGN = 64, PAGE_ALIGN = 4096 };
enum { MOST_PLANS = 4 }; /* until traces have room for the steps of a sweep */

/* A commit flushes the device: some 10 to 100 ms that take a share of the transfers with them. Where sweeps
 * are shorter than SHORT_SWEEP_S that would be more than about 1 % of them, so a third Buffer keeps the
 * committed state and commits come every COMMIT_EVERY_S. */
static const double short_sweep_s = 5, commit_every_s = 30;

/* What a crash may cost, and an interrupt has to wait for: a sweep, and a step of one. Where DRAM holds most
 * of the grid the tuner would else make one sweep of a whole run. */
static const double longest_sweep_s = 600, longest_step_s = 5;

/* ------------------------------------------------------------------ what a plan is asked with */

/* What all backends that transfer can resume from, and what the opened device needs. Before it is open that
 * is as far as it can be known from outside: a guess that mx_run_open_store mends.
 * Where a machine is described and no place, rows are unpadded, as the papers reckon. */
static uint32_t alignment(const struct mx_run *r, uint64_t *capacity_bytes) {
    uint32_t align = mx_place_align(&r->o, r->backend, capacity_bytes);
    if (r->o.capacity_bytes > 0) *capacity_bytes = r->o.capacity_bytes;
    if (r->o.align_bytes > 0) return (uint32_t)r->o.align_bytes;
    if (mx_machine_is_described(&r->o)) return align;
    if (r->device != NULL && r->backend->face == MX_FACE_TRANSFER)
        return (uint32_t)mx_max(align, r->report.device.offset_align_bytes);
    if (align > 0) return align;
    return r->backend->face == MX_FACE_TRANSFER ? PAGE_ALIGN : LINE_ALIGN;
}

bool mx_run_has_hashes(const struct mx_run *r) { return r->o.integrity || r->note.integrity_unit > 0; }

/* Tables of hashes: 4 bytes for each row of each Buffer at most, and for each unit of a Buffer of C. */
static uint64_t integrity_bytes(const struct mx_run *r) {
    const struct mx_problem *p = &r->o.problem;
    const uint64_t rows = (uint64_t)(p->ny + 2 * mx_halo_y(p)), planes = (uint64_t)(p->nz + 2 * p->h);
    uint64_t bytes = (mx_reads_old(p) ? 8 : 4) * MX_BUFFERS * rows * planes + (1u << 20);
    for (int32_t i = 0; i < mx_fixed_count(p); i++) {
        const struct mx_fixed_layout *f = &r->tuned.layout.fixed[i]; /* of the last plan, if there was one */
        const uint64_t beyond = mx_is_cut(p) ? 2 * planes : 0;
        if (mx_is_profile(p, i)) continue;
        const uint64_t plane =
            f->plane_pitch_bytes > 0 && !f->user_file
                ? (uint64_t)f->plane_pitch_bytes
                : rows * (uint64_t)((p->nx + 2 * p->h) * mx_dtype_bytes(p->system->fixed[i].dtype));
        bytes += sizeof(uint32_t) * (plane / MX_FIXED_UNIT_BYTES + 1) * (planes + beyond) + 2 * PAGE_ALIGN;
    }
    return mx_run_has_hashes(r) ? bytes : 0;
}

static bool plan_is_asked_for(const struct mx_options *o) {
    static const char *const names[] = {"algorithm", "tuner", "block",  "iblock", "engine",
                                        "slab",      "tile",  "column", "ahead"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (mx_option_given(o, names[i])) return true;
    return false;
}

/* A plan that was given by hand stays; one of a tuner is made anew for this machine, with its algorithm if
 * that is possible here. */
static int plan_as_before(struct mx_run *r) {
    struct mx_tune_request *q = &r->request;
    struct mx_plan plan = r->note.plan;
    int err = -EINVAL;
    if (strcmp(plan.tuner, "manual") == 0) {
        plan.threads = q->threads;
        plan.in_place = false; /* the state that there is outlives the run that goes on from it */
        if (r->recut.asked && plan.bz >= r->note.problem.nz) plan.bz = r->rest.nz;
        const int64_t levels = mx_levels_of(&r->rest, r->rest.nt);
        if (plan.bt > levels && levels > 0) plan.bt = levels;
        err = mx_tune_plan(q, &plan, &r->why, &r->tuned);
    }
    if (err < 0) {
        q->algorithm = plan.algorithm;
        err = mx_tune(q, &r->why, &r->tuned);
        q->algorithm = NULL;
    }
    return err < 0 ? mx_tune(q, &r->why, &r->tuned) : 0;
}

/* A number of a plan that an option says as well: where the plan leaves it open the option decides. */
static int merge_number(struct mx_run *r, const char *option, int64_t given, int64_t *value) {
    if (!mx_option_given(&r->o, option) || given == 0 || *value == given) return 0;
    if (*value == 0) return *value = given, 0;
    return mx_fail(&r->why, -EINVAL, "--%s gives %lld and the plan gives %lld: leave one of them out", option,
                   (long long)given, (long long)*value);
}

static int merge_word(struct mx_run *r, const char *option, const char *given, char *value, size_t capacity) {
    if (given == NULL || strcmp(given, value) == 0) return 0;
    if (value[0] == 0 && strlen(given) < capacity) return strcpy(value, given), 0;
    return mx_fail(&r->why, -EINVAL, "--%s gives %.40s and the plan gives %.40s: leave one of them out",
                   option, given, value);
}

/* Options besides --plan fill in what the plan leaves open, and must not contradict it. */
static int merge_options(struct mx_run *r, struct mx_plan *plan) {
    const struct mx_plan *m = &r->request.manual;
    const struct mx_algorithm *a = r->o.algorithm != NULL ? mx_algorithm_find(r->o.algorithm) : NULL;
    int64_t threads = plan->threads;
    int err = merge_word(r, "algorithm", a != NULL ? a->name : r->o.algorithm, plan->algorithm,
                         sizeof plan->algorithm);
    if (err == 0) err = merge_word(r, "engine", r->o.engine, plan->engine, sizeof plan->engine);
    if (err == 0) err = merge_word(r, "tuner", r->o.tuner, plan->tuner, sizeof plan->tuner);
    if (err == 0) err = merge_number(r, "block", m->by, &plan->by);
    if (err == 0) err = merge_number(r, "block", m->bz, &plan->bz);
    if (err == 0) err = merge_number(r, "block", m->bt, &plan->bt);
    if (err == 0) err = merge_number(r, "iblock", m->iy, &plan->iy);
    if (err == 0) err = merge_number(r, "iblock", m->iz, &plan->iz);
    if (err == 0) err = merge_number(r, "slab", m->slab, &plan->slab);
    if (err == 0) err = merge_number(r, "tile", m->tile, &plan->tile);
    if (err == 0) err = merge_number(r, "tile", m->ct, &plan->ct);
    if (err == 0) err = merge_number(r, "column", m->column, &plan->column);
    if (err == 0) err = merge_number(r, "ahead", m->ahead, &plan->ahead);
    if (err == 0) err = merge_number(r, "threads", r->o.threads, &threads);
    plan->threads = (int32_t)threads;
    plan->in_place |= m->in_place;
    return err;
}

/* Levels of a sweep that the planes of read-only fields in the store of a rank are enough for; 0 = any. */
static int64_t most_stored_levels(const struct mx_run *r) {
    const struct mx_problem *p = &r->rest;
    const bool neighbour = mx_has_neighbour(p, 0) || mx_has_neighbour(p, 1);
    bool copied = false;
    for (int32_t i = 0; i < mx_fixed_count(p); i++) copied |= !r->note.layout.fixed[i].user_file;
    if (!mx_run_has_store(r) || !neighbour || !copied) return 0;
    return (r->note.fixed_beyond - p->system->hc) / p->h + 2;
}

static int plan_alone(struct mx_run *r) {
    struct mx_tune_request *q = &r->request;
    struct mx_plan given;
    if (r->resumed && r->o.plan == NULL && !plan_is_asked_for(&r->o)) return plan_as_before(r);
    if (r->o.plan == NULL) return mx_tune(q, &r->why, &r->tuned);
    int err = mx_plan_read(r->o.plan, &r->why, &given);
    if (err == 0) err = merge_options(r, &given);
    return err < 0 ? err : mx_tune_plan(q, &given, &r->why, &r->tuned);
}

/* One that is given is the user's to change. */
static int plan_within_store(struct mx_run *r) {
    struct mx_tune_request *q = &r->request;
    const int64_t asked = q->most_bt, most = most_stored_levels(r);
    if (most > 0 && (asked == 0 || most < asked)) q->most_bt = most;
    const int err = plan_alone(r);
    q->most_bt = asked;
    return err;
}

/* ------------------------------------------------------------------ how long a sweep may take */

/* A sweep that commits nothing costs a crash no less when it is short: the papers' algorithms have the plan
 * that their tuner found, however long its sweeps are. */
static bool commits(const struct mx_run *r) {
    return mx_algorithm_find(r->tuned.plan.algorithm)->resumable && !r->tuned.shape.in_place;
}

static double longest_sweep(const struct mx_run *r) {
    const struct mx_plan *p = &r->tuned.plan;
    const double steps = p->slab > 0 ? (double)r->rest.nz / (double)p->slab : 1,
                 by_steps = longest_step_s * (steps > 1 ? steps : 1), most = fmin(by_steps, longest_sweep_s);
    const double every = mx_option_given(&r->o, "commit-every") ? r->o.commit_every
                         : mx_run_has_store(r)                  ? r->note.commit_every
                                                                : 0;
    return every > 0 ? fmin(most, fmax(every, 1)) : most;
}

static int make_plan(struct mx_run *r) { return mx_run_agree_plan(r, plan_within_store); }

/* Seconds of the longest sweep: due steps leave sweeps of very different lengths. */
static double longest_of_plan(const struct mx_run *r) {
    const double levels = (double)mx_levels_of(&r->rest, r->rest.nt);
    if (r->rest.due[0] == 0 && r->rest.due[1] == 0) return mx_run_seconds_a_sweep(r);
    return levels > 0 ? r->tuned.seconds.total_s * (double)r->tuned.shape.max_levels / levels : 0;
}

/* Of a plan that the tuner chose by itself: sweeps that are too long are cut into several. Of ranks the one
 * that plans for all says so. */
static int shorten_sweeps(struct mx_run *r) {
    struct mx_tune_request *q = &r->request;
    const double sweep = longest_of_plan(r), most = longest_sweep(r);
    const bool free = r->o.plan == NULL && r->o.bt == 0 && strcmp(r->tuned.plan.tuner, "blk") == 0;
    const bool short_enough = !free || !commits(r) || r->resident || sweep <= most ||
                              r->tuned.plan.bt <= mx_levels_a_step(&r->rest);
    const struct mx_tune_result former = r->tuned;
    int64_t most_bt = short_enough ? 0 : (int64_t)fmax(1, (double)former.plan.bt * most / sweep);
    int err = mx_run_share_plan_limit(r, &most_bt);
    if (err < 0 || most_bt == 0) return err;
    q->most_bt = most_bt;
    err = make_plan(r);
    q->most_bt = 0;
    if (err < 0) r->tuned = former, mx_run_each_says(r); /* all ranks have failed alike */
    return 0;
}

/* ------------------------------------------------------------------ commits */

int32_t mx_run_copied_fields(const struct mx_run *r) {
    int32_t n = 0;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem); i++) n += !r->report.layout.fixed[i].user_file;
    return n;
}

int32_t mx_run_arrays(const struct mx_run *r, int32_t n_buffers) {
    const int32_t n = n_buffers * (r->tuned.shape.pairs ? 2 : 1) + (r->report.side_file_bytes > 0);
    const int32_t seconds = __builtin_popcount(r->edit.fixed | r->note.second | r->note.before_second);
    return (n + seconds + mx_run_copied_fields(r)) * (mx_run_has_hashes(r) ? 2 : 1);
}

/* A third Buffer leaves as much space again as it takes. */
static bool third_fits(const struct mx_run *r, uint64_t capacity_bytes) {
    const uint64_t buffer =
        (uint64_t)(r->tuned.shape.pairs ? 2 : 1) * (uint64_t)r->report.layout.buffer_bytes;
    return capacity_bytes / 4 >= buffer + (uint64_t)r->report.side_file_bytes / 4 &&
           mx_run_arrays(r, MX_BUFFERS) <= MX_STORE_EXTENTS;
}

/* Without being asked for, a third Buffer is made where commits would cost too much, or where the run had one
 * with several ranks (`former`: its interval). */
static bool wants_third(const struct mx_run *r, double former, uint64_t capacity_bytes) {
    const bool pays = mx_run_sweeps(r) > 2 && mx_run_seconds_a_sweep(r) < short_sweep_s;
    return (former > 0 || pays) && third_fits(r, capacity_bytes);
}

static int decide_commits(struct mx_run *r, uint64_t capacity_bytes) {
    bool possible = mx_run_resumable(r) && !r->backend->anonymous;
    const int32_t least = r->tuned.shape.pairs && r->tuned.shape.in_place ? 1 : 2;
    r->n_buffers = mx_run_has_store(r) ? r->note.n_buffers : least;
    /* A run in place that is done has one; more steps of it are taken from there to another. */
    if (mx_run_has_store(r) && mx_run_writes(r) && r->n_buffers < least) r->n_buffers = least;
    r->commit_every_s = mx_run_has_store(r) ? r->note.commit_every : 0;
    mx_run_one_says(r);
    if (!possible && !r->backend->anonymous && mx_option_given(&r->o, "commit-every"))
        return mx_fail(
            &r->why, -EINVAL,
            "%s rewrites its Buffers in place, so it can commit nothing: leave --commit-every out, or %s",
            r->algorithm->name,
            r->algorithm->resumable ? "--in-place" : "choose --algorithm stream or redundant");
    mx_run_each_says(r);
    if (!possible) return mx_run_agree_commits(r);
    const bool several = mx_is_cut(&r->o.problem);
    const double former = r->recut.asked ? r->note.commit_every : 0;
    if (mx_option_given(&r->o, "commit-every")) {
        r->commit_every_s = r->o.commit_every;
        if (r->commit_every_s > 0) r->n_buffers = MX_BUFFERS;
    } else if (!mx_run_has_store(r) && (several ? former > 0 : wants_third(r, former, capacity_bytes))) {
        r->commit_every_s = former > 0 ? former : commit_every_s;
        r->n_buffers = MX_BUFFERS;
    }
    return mx_run_agree_commits(r);
}

/* ------------------------------------------------------------------ the plan */

/* DRAM besides Blocks: parameters over time, and profiles. */
static uint64_t series_bytes(const struct mx_run *r) {
    uint64_t bytes = mx_profile_bytes(&r->o.problem);
    for (int32_t i = 0; r->system != NULL && i < r->system->n_series; i++)
        bytes += (uint64_t)(r->system->series[i].n * mx_series_each(&r->system->series[i])) * sizeof(double);
    return bytes;
}

static uint64_t extra_bytes(const struct mx_run *r) {
    return integrity_bytes(r) + series_bytes(r) + mx_parts_dram_bytes(r);
}

/* DRAM that --verify may use when the run has computed: Blocks are given back then. */
static uint64_t left_to_verify(const struct mx_run *r) {
    const struct mx_report *p = &r->report;
    const uint64_t resident =
        r->resident ? (uint64_t)mx_run_buffers(r) * (uint64_t)p->layout.buffer_bytes : 0;
    const uint64_t taken = MX_TUNE_OVERHEAD_BYTES + extra_bytes(r) + resident;
    return p->dram_budget_bytes > taken ? p->dram_budget_bytes - taken : 0;
}

/* Fields of C that a rank has a copy of reach as far beyond it as its sweeps do. */
static int extend_fixed(struct mx_run *r) {
    const struct mx_problem *p = &r->rest;
    const int64_t hc = p->system != NULL ? p->system->hc : 0,
                  need = mx_max((r->tuned.shape.max_levels - 2) * p->h + hc, 0);
    const bool low = mx_has_neighbour(p, 0), high = mx_has_neighbour(p, 1);
    int64_t beyond = mx_run_has_store(r) ? r->note.fixed_beyond : need;
    if ((!low && !high) || mx_fixed_count(p) == 0) return 0;
    for (int32_t i = 0; i < mx_fixed_count(p); i++) {
        struct mx_fixed_layout *f = &r->tuned.layout.fixed[i];
        if (f->user_file) continue;
        if (need > beyond)
            return mx_fail(&r->why, -EINVAL,
                           "the store of a rank keeps %lld %ss of each read-only field beyond its own part, "
                           "and sweeps of %lld levels need %lld: choose a BT of %lld or less with --block",
                           (long long)beyond, mx_plane_word(p->flat), (long long)r->tuned.shape.max_levels,
                           (long long)need, (long long)((beyond - hc) / p->h + 2));
        f->offset_bytes = low ? beyond * f->plane_pitch_bytes : 0;
        f->bytes = (r->tuned.layout.planes + (low + high) * beyond) * f->plane_pitch_bytes;
    }
    r->note.fixed_beyond = beyond;
    return 0;
}

/* One pair of Buffers, which sweeps rewrite: nothing is committed before the end. */
static int asks_in_place(struct mx_run *r, bool *asked) {
    struct mx_plan given = {.in_place = false};
    const int err = r->o.plan != NULL ? mx_plan_read(r->o.plan, &r->why, &given) : 0;
    *asked = r->o.in_place || given.in_place;
    return err;
}

int mx_run_plan(struct mx_run *r) {
    struct mx_tune_request *q = &r->request;
    uint64_t capacity = 0;
    bool in_place;
    int err = asks_in_place(r, &in_place);
    if (err < 0) return err;
    q->offset_align_bytes = alignment(r, &capacity);
    q->capacity_bytes = r->o.capacity_bytes;
    q->extra_dram_bytes = extra_bytes(r);
    q->blocks_only = r->o.integrity || mx_is_cut(&r->o.problem);
    /* The former stores go when the new ones hold the state. */
    q->resumable |= (mx_is_cut(&r->o.problem) && !in_place) || r->recut.asked;
    q->fixed = r->file_layout;
    q->fixed_unit_bytes = mx_run_has_hashes(r) ? MX_FIXED_UNIT_BYTES : 0;
    if (mx_run_has_store(r)) {
        for (int i = 0; i < MX_MAX_FIXED; i++) r->note.layout.fixed[i].align_bytes = q->offset_align_bytes;
        q->layout = &r->note.layout; /* of files that are read in place q->fixed */
        q->resumable = true;
        const int64_t plane = r->note.layout.plane_pitch_bytes, row = r->note.layout.row_pitch_bytes;
        /* Where a plane is a row, which two dimensions may have, a hash of one is a hash of the other. */
        q->whole_planes =
            plane != row && (r->note.integrity_unit == plane ||
                             (r->note.integrity_unit == 0 && r->o.integrity && plane % row != 0));
    }
    err = make_plan(r);
    if (err == 0) err = shorten_sweeps(r);
    for (int again = 0; again < MOST_PLANS && err == 0 && !mx_parts_fit(r); again++) {
        q->extra_dram_bytes = extra_bytes(r);
        err = make_plan(r);
        if (err == 0) err = shorten_sweeps(r);
    }
    if (err < 0) return err;
    r->algorithm = mx_algorithm_find(r->tuned.plan.algorithm);
    if ((err = extend_fixed(r)) < 0) return err;
    mx_run_predict_plan(r);
    mx_parts_predict(r);
    if (r->o.integrity && !r->algorithm->uses_blocks)
        return mx_fail(&r->why, -EINVAL,
                       "--integrity checks data when it is loaded, and %s works on mapped Buffers and loads "
                       "nothing: choose --algorithm redundant or stream",
                       r->algorithm->name);
    err = decide_commits(r, capacity);
    if (err == 0) err = mx_run_decide_fuse(r);
    if (err == 0) mx_run_predict_commits(r);
    if (err == 0) mx_run_predict_phases(r);
    return err == 0 ? mx_run_check_verify(r, left_to_verify(r)) : err;
}
