/* SPDX-License-Identifier: BSD-3-Clause */
/* prepare.c - a run before anything is touched: what it may use, where it works, by which plan; and its
 * store. */
#include "core/device.h"
#include "engine/accel_room.h"
#include "files/field_words.h"
#include "machine/machine.h"
#include "machine/minmax.h"
#include "note/store.h"
#include "run/identity.h"
#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_ALIGN = 64, PAGE_ALIGN = 4096 };
enum { MOST_PLANS = 4 }; /* until traces have room for the steps of a sweep */

/* A commit flushes the device: some 10 to 100 ms that take a share of the transfers with them. Where sweeps
 * are shorter than SHORT_SWEEP_S that would be more than about 1 % of them, so a third Buffer keeps the
 * committed state and commits come every COMMIT_EVERY_S. */
static const double short_sweep_s = 5, commit_every_s = 30;

/* What a crash may cost, and an interrupt has to wait for: a sweep, and a step of one. Where DRAM holds most
 * of the grid the tuner would else make one sweep of a whole run. */
static const double longest_sweep_s = 600, longest_step_s = 5;

/* ------------------------------------------------------------------ limits and place */

/* Sm and Km of the run. */
static int take_limits(struct mx_run *r) {
    const struct mx_machine *m = &r->report.machine;
    uint64_t visible = mx_machine_dram_bytes(m), limit = r->o.dram_bytes > 0 ? r->o.dram_bytes : visible;
    if (r->o.dram_bytes == 0) limit /= (uint64_t)mx_ranks_here(&r->ranks);
    char a[32], b[32];
    if (limit > visible && !r->o.dry_run)
        return mx_fail(&r->why, -EINVAL,
                       "--dram %s is more than the %s that this process may use (the smaller of the "
                       "machine's memory and its cgroup's limit)",
                       mx_format_size(limit, a, sizeof a), mx_format_size(visible, b, sizeof b));
    uint64_t reserve = r->o.reserve_bytes;
    if (r->o.reserve_paper) reserve = mx_machine_reserve_paper(m);
    if (r->o.reserve_auto || (!mx_option_given(&r->o, "reserve") && r->o.dram_bytes == 0))
        reserve = mx_machine_reserve_auto(m, limit);
    if (reserve >= limit)
        return mx_fail(&r->why, -EINVAL,
                       "the reserve of %s leaves nothing of %s of DRAM; lower --reserve or raise --dram",
                       mx_format_size(reserve, a, sizeof a), mx_format_size(limit, b, sizeof b));
    r->report.dram_limit_bytes = limit;
    r->report.dram_budget_bytes = limit - reserve;
    r->request.dram_bytes = limit;
    r->request.reserve_bytes = reserve;
    r->request.reserve_paper = r->o.reserve_paper;
    return 0;
}

static bool is_uring(const struct mx_backend *b) { return strcmp(b->name, "uring") == 0; }
static bool is_paged(const struct mx_backend *b) {
    return b->face == MX_FACE_MAPPED && !(b->anonymous && !b->locks_blocks);
}
static bool is_mapped(const struct mx_backend *b) { return b->face == MX_FACE_MAPPED; }
static bool is_stored(const struct mx_backend *b) { return !b->anonymous; }

/* Options that do nothing with some backends. */
static const struct {
    const char *option;
    bool (*useful)(const struct mx_backend *backend);
    const char *why;
} backend_options[] = {
    {"sqpoll", is_uring, "it is an option of uring"},
    {"iopoll", is_uring, "it is an option of uring"},
    {"uncached", is_uring, "it is an option of uring"},
    {"no-register", is_uring, "it is an option of uring"},
    {"advice", is_paged, "it is for memory that the kernel pages: mmap and swap"},
    {"workers", is_mapped, "it counts the copying threads of mapped backends"},
    {"keep", is_stored, "its Buffers end with the process"},
    {"force", is_stored, "it has no place whose content could be in the way"},
    {"commit-every", is_stored, "its Buffers end with the process"},
};

static void say_what_the_backend_ignores(const struct mx_run *r) {
    for (size_t i = 0; i < sizeof backend_options / sizeof backend_options[0]; i++)
        if (mx_option_given(&r->o, backend_options[i].option) && !backend_options[i].useful(r->backend))
            mx_run_remark(r, "--%s has no effect on backend %s: %s", backend_options[i].option,
                          r->backend->name, backend_options[i].why);
}

static int take_place(struct mx_run *r) {
    int err = mx_take_backend(&r->o, &r->why, &r->backend);
    const bool to_be_made = mx_is_rank(&r->ranks) && r->o.dry_run; /* a directory of its own */
    if (err == 0 && !to_be_made) err = mx_take_place(&r->o, r->backend, &r->why);
    if (err < 0) return err;
    if (!r->backend->anonymous && r->o.path == NULL && !r->o.dry_run)
        return mx_fail(
            &r->why, -EINVAL,
            "backend %s needs a place for the Buffers: give a directory, file or block device with -d PATH",
            r->backend->name);
    if (r->backend->anonymous && r->o.resume)
        return mx_fail(&r->why, -ENOTSUP,
                       "the Buffers of the backend %s end with the process: nothing to resume",
                       r->backend->name);
    if (r->o.backend == NULL) r->o.backend = r->backend->name;
    r->resident = mx_style_of(r->backend) == MX_TUNE_RESIDENT;
    return 0;
}

/* What changes nothing, or nothing for the better, is told, and the run goes on. */
static void say_what_is_useless(const struct mx_run *r) {
    if (r->o.quiet || r->ranks.rank > 0) return;
    if (r->o.path != NULL && r->backend->anonymous)
        mx_run_remark(r, "-d %.200s has no effect: backend %s keeps its Buffers in memory; leave it out",
                      r->o.path, r->backend->name);
    say_what_the_backend_ignores(r);
    if (r->o.threads > r->report.machine.cores)
        mx_run_remark(r,
                      "--threads %lld: this process may use %d cores, and more threads wait for one another; "
                      "leave it out",
                      (long long)r->o.threads, r->report.machine.cores);
}

/* ------------------------------------------------------------------ --resume: what the store says */

/* Is it the store of this rank, of as many? */
static int check_rank(struct mx_run *r, const char *place) {
    const struct mx_problem *b = &r->note.problem;
    if (b->all_nz > 0 && !mx_is_rank(&r->ranks) && !r->recut.asked)
        return mx_fail(
            &r->why, -EINVAL,
            "%.300s holds planes %lld to %lld of a run of %d ranks: resume it with the -d that it began "
            "with, which has the stores of all",
            place, (long long)b->first_plane, (long long)(b->first_plane + b->nz - 1), r->note.ranks);
    if (mx_is_rank(&r->ranks) && !r->recut.asked &&
        (r->note.ranks != r->ranks.ranks || r->note.rank != r->ranks.rank))
        return mx_fail(
            &r->why, -EINVAL,
            "%.300s is the store of rank %d of %d, and this is rank %d of %d: a run goes on with another "
            "number of ranks where all of its stores are seen",
            place, r->note.rank, r->note.ranks, r->ranks.rank, r->ranks.ranks);
    return 0;
}

/* Of the step that is gone on from, which all ranks have in common. */
static int check_steps(struct mx_run *r, const char *place) {
    if (!mx_option_given(&r->o, "steps") || r->o.problem.nt >= r->note.time) return 0;
    r->ranks.silent = r->ranks.rank > 0; /* all find it wrong */
    return mx_fail(&r->why, -EINVAL,
                   "%.300s holds step %lld, and only %lld steps are asked for: nothing goes back; give -t "
                   "%lld or more, or leave it out with --resume",
                   place, (long long)r->note.time, (long long)r->o.problem.nt, (long long)r->note.time);
}

/* ------------------------------------------------------------------ initial grid */

static int open_source(struct mx_run *r) {
    const struct mx_problem *p = &r->o.problem;
    if (r->source.region == NULL) return 0;
    int err = mx_frame_take(&r->o.frames, &r->why, &r->made);
    if (err < 0) return err;
    struct mx_grid grid = mx_grid_of(p, r->made.kind == MX_FRAME_INCLUDED ? p->h : 0);
    r->input.h = p->h;
    err = r->source.open != NULL ? r->source.open(r->source.context, &grid, &r->why) : 0;
    if (err != 0) return err < 0 ? err : -EIO;
    r->source_open = true;
    grid.frame = r->made.kind == MX_FRAME_INCLUDED ? p->h : 0; /* not the source's to say */
    err = mx_take_grid(&r->o, r->source.name, &grid, &r->why);
    return err == 0 ? mx_frame_check(&r->made, "the grid", p->dtype, &r->why) : err;
}

/* Files first: extents may follow from them. */
static int open_fields(struct mx_run *r, bool former) {
    int err = mx_fields_open(&r->fields, &r->o.problem, former, &r->why);
    if (err < 0 || r->source.region == NULL) return err;
    return mx_fields_open_source(&r->fields, &r->o.problem, &r->source, &r->source_open, &r->why);
}

/* Of a new run of a system. */
static int take_fields(struct mx_run *r) {
    mx_fields_of(r->system, &r->fields);
    int err = mx_fields_take(&r->fields, &r->o, r->o.source || r->plan_only, r->system, &r->why);
    return err < 0 ? err : open_fields(r, false);
}

/* Where the fields of a system go. */
static int take_sinks(struct mx_run *r) {
    const char *path[MX_FIELDS_MOST];
    int err = mx_fields_take_outputs(&r->fields, &r->o, &r->why, path);
    for (int32_t i = 0; i < r->fields.n && err == 0; i++) {
        struct mx_field_sink *s = &r->field_sink[i];
        s->path = path[i];
        if (s->path != NULL) mx_grid_file_sink(&s->file, s->path, r->o.overwrite, &s->sink);
    }
    return err;
}

/* The grid that the run began with is needed again by --verify alone. */
static int open_former_source(struct mx_run *r) {
    struct mx_input_identity now;
    int err = open_source(r);
    if (err < 0 || r->o.input == NULL) return err;
    err = mx_input_look(r->input.npy.fd, r->input.npy.data_offset_bytes, r->o.input, &r->why, &now);
    if (err < 0 || mx_input_same(&r->note.identity, &now, true)) return err;
    return mx_fail(
        &r->why, -EINVAL,
        "%.300s has changed since the run began with it: the result cannot be verified; leave --verify out",
        r->o.input);
}

/* The system of a store: its kernel must be what it was. */
static int take_stored_system(struct mx_run *r, const char *place) {
    const struct mx_system *s = &r->note.system;
    if (r->o.kernel == NULL) r->o.kernel = r->note.kernel;
    if (r->o.output != NULL) r->sink = (struct mx_sink){.size = 0}; /* the plain form: field_sink takes it */
    if (r->o.input != NULL) r->source = (struct mx_source){.size = 0}; /* likewise: the store has all */
    r->o.input = r->o.init = r->o.output = NULL;
    int err = mx_take_kernel(&r->o, r->o.same ? NULL : s, &r->why, &r->system);
    if (err == 0) err = mx_run_same_kernel(r, place);
    if (err < 0) return err;
    r->fields = r->note.fields;
    return mx_fields_take_moved(&r->fields, &r->o, &r->why);
}

static int read_note(struct mx_run *r, struct mx_store_facts *store) {
    mx_why reason = {""};
    const char *place = mx_run_noted_place(r);
    int err = mx_store_look(place, &r->why, store);
    if (err == -ENOENT)
        return mx_fail(&r->why, err, "%.300s holds no memext store: nothing to resume", place);
    if (err < 0) return err;
    if (store->note_bytes == 0)
        return mx_fail(&r->why, -EINVAL,
                       "%.300s holds no state that could be resumed: nothing was committed, or the algorithm "
                       "rewrote its Buffers in "
                       "place (redundant and stream can be resumed); start again without --resume",
                       store->place);
    err = mx_note_parse(store->note, store->note_bytes, &reason, &r->note);
    if (err < 0) return mx_fail(&r->why, err, "%.300s cannot be resumed: %.200s", store->place, reason.text);
    if (r->note.different)
        return mx_fail(
            &r->why, -EINVAL,
            "the result in %.300s was verified and differs from the plain computation: it is not resumed",
            store->place);
    return 0;
}

/* What had no frame when the run began has none when it is read again. */
static int take_stored_frames(struct mx_run *r, const char *place) {
    int err = mx_run_same_frames(r, place);
    snprintf(r->frame_text, sizeof r->frame_text, "%s", r->note.frame);
    mx_frame_words(r->frame_text, &r->o.frames);
    return err < 0 || r->system == NULL ? err
                                        : mx_fields_take_frames(&r->fields, r->system, &r->o.frames, &r->why);
}

/* Of a store that holds no state yet: what the run begins with is read once more (fuse.c says whether it is
 * what it was). */
static int open_pending(struct mx_run *r) {
    const char *path = r->note.input;
    int err = r->system == NULL ? open_former_source(r)
              : r->o.verify     ? open_fields(r, true)
                                : mx_fields_open_state(&r->fields, &r->o.problem, &r->why);
    for (int32_t i = 0; i < r->fields.n && path[0] == 0; i++) path = r->fields.field[i].path;
    if (err == -EINVAL || err == -ENOENT) {
        const mx_why reason = r->why;
        mx_fail(&r->why, err,
                "nothing was committed since this run began, and what it began with cannot be read as it "
                "was (%.600s): start again without --resume",
                reason.text[0] != 0 ? reason.text : path);
    }
    return err;
}

/* What is complete is only read: by mmap, where the backend cannot transfer its planes or its hashes. */
static void take_reader(struct mx_run *r) {
    const struct mx_backend *asked = mx_backend_find(r->o.backend != NULL ? r->o.backend : "");
    const struct mx_note *n = &r->note;
    if (!mx_run_has_store(r) || r->o.problem.nt > r->first_time || n->pending || asked == NULL ||
        asked->face != MX_FACE_TRANSFER)
        return;
    const int64_t align = mx_place_align(&r->o, asked, NULL);
    if (align == 0 || (n->layout.plane_pitch_bytes % align == 0 && n->integrity_unit % align == 0)) return;
    if (r->ranks.rank == 0)
        mx_run_remark(r,
                      "nothing is left to compute, and %s transfers multiples of %lld bytes: the store is "
                      "read by mmap",
                      asked->name, (long long)align);
    r->o.backend = "mmap";
}

/* Problem, layout and origin are those of the store; backend and plan are, unless others are asked for. */
static int take_store(struct mx_run *r) {
    struct mx_store_facts *store = calloc(1, sizeof *store);
    if (store == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the note of the store");
    int err = r->o.path == NULL
                  ? mx_fail(&r->why, -EINVAL, "--resume needs the place of the store: give it with -d PATH")
                  : mx_run_name_former(r);
    if (err == 0) err = read_note(r, store);
    r->note_time = r->note.time;
    r->note_buffer = r->note.buffer;
    r->note_nt = r->note.problem.nt;
    /* Of one note all say the same, those that see it. */
    r->ranks.silent = err != -ENOENT && r->recut.asked && r->ranks.rank > 0;
    if (err == 0) err = check_rank(r, store->place);
    if (err == 0) err = mx_run_same_equation(r, store->place);
    if (err == 0) r->ranks.silent = false;
    bool kept = store->finished == 2;
    if (err == 0) err = r->recut.asked ? mx_run_take_former(r, &kept) : mx_run_agree_state(r, &kept);
    if (err == 0 && !r->comparing) err = check_steps(r, store->place);
    if (err == 0) {
        const struct mx_backend *former = mx_backend_find(r->note.backend);
        bool works =
            former != NULL && !former->anonymous && (former->probe == NULL || former->probe(NULL, NULL) == 0);
        if (r->o.backend == NULL && works) r->o.backend = former->name;
        r->o.keep |= kept || r->note.keep;
        const int64_t nt = mx_option_given(&r->o, "steps") ? r->o.problem.nt : r->note.problem.nt;
        r->o.problem = r->note.problem;
        r->o.problem.nz = mx_all_planes(&r->note.problem); /* cut again once all is known */
        r->o.problem.first_plane = r->o.problem.all_nz = 0;
        r->o.problem.nt = nt;
        if (r->note.problem.system != NULL) err = take_stored_system(r, store->place);
        if (err == 0) err = take_stored_frames(r, store->place);
        if (err == 0) err = mx_run_same_beginning(r, store->place);
        r->o.init = r->note.init[0] != 0 ? r->note.init : NULL;
        if (r->o.input == NULL && r->note.input[0] != 0) {
            r->o.input = r->note.input;
            mx_grid_file_source(&r->input, r->o.input, r->note.raw, &r->source);
        }
        r->first_time = r->note.time;
        r->resumed = true;
        mx_run_committed(r);
        r->report.resumed_from = r->note.time;
        if (err == 0 && !r->comparing) take_reader(r);
        if (err == 0) err = mx_run_check_names(r); /* the input is known now */
        if (r->comparing)
            ;
        else if (err == 0 && r->note.pending)
            err = open_pending(r);
        else if (err == 0 && r->o.verify)
            err = r->system != NULL ? open_fields(r, true) : open_former_source(r);
    }
    free(store);
    return err;
}

/* ------------------------------------------------------------------ plan */

/* Of the opened device, or as far as it can be known from outside: a guess that mx_run_open_store mends. */
static uint32_t alignment(const struct mx_run *r, uint64_t *capacity_bytes) {
    uint32_t align = mx_place_align(&r->o, r->backend, capacity_bytes);
    if (r->device != NULL && r->backend->face == MX_FACE_TRANSFER) return r->report.device.offset_align_bytes;
    if (align > 0) return align;
    return r->backend->face == MX_FACE_TRANSFER ? PAGE_ALIGN : LINE_ALIGN;
}

static bool has_hashes(const struct mx_run *r) { return r->o.integrity || r->note.integrity_unit > 0; }

/* Tables of hashes: 4 bytes for each row of each Buffer at most, and for each unit of a Buffer of C. */
static uint64_t integrity_bytes(const struct mx_run *r) {
    const struct mx_problem *p = &r->o.problem;
    const uint64_t rows = (uint64_t)(p->ny + 2 * p->h), planes = (uint64_t)(p->nz + 2 * p->h);
    uint64_t bytes = (mx_reads_old(p) ? 8 : 4) * MX_BUFFERS * rows * planes + (1u << 20);
    for (int32_t i = 0; i < mx_fixed_count(p); i++) {
        const struct mx_fixed_layout *f = &r->tuned.layout.fixed[i]; /* of the last plan, if there was one */
        const uint64_t beyond = mx_is_rank(&r->ranks) ? 2 * planes : 0;
        const uint64_t plane =
            f->plane_pitch_bytes > 0 && !f->user_file
                ? (uint64_t)f->plane_pitch_bytes
                : rows * (uint64_t)((p->nx + 2 * p->h) * mx_dtype_bytes(p->system->fixed[i].dtype));
        bytes += sizeof(uint32_t) * (plane / MX_FIXED_UNIT_BYTES + 1) * (planes + beyond) + 2 * PAGE_ALIGN;
    }
    return has_hashes(r) ? bytes : 0;
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
    return mx_fail(&r->why, -EINVAL, "--%s says %lld and the plan %lld: leave one of them out", option,
                   (long long)given, (long long)*value);
}

static int merge_word(struct mx_run *r, const char *option, const char *given, char *value, size_t capacity) {
    if (given == NULL || strcmp(given, value) == 0) return 0;
    if (value[0] == 0 && strlen(given) < capacity) return strcpy(value, given), 0;
    return mx_fail(&r->why, -EINVAL, "--%s says %.40s and the plan %.40s: leave one of them out", option,
                   given, value);
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

double mx_run_seconds_a_sweep(const struct mx_run *r) {
    int64_t sweeps = mx_sweep_count(&r->rest, r->tuned.plan.bt);
    return sweeps > 0 ? r->tuned.seconds.total_s / (double)sweeps : 0;
}

static double longest_sweep(const struct mx_run *r) {
    const struct mx_plan *p = &r->tuned.plan;
    const double steps = p->slab > 0 ? (double)r->rest.nz / (double)p->slab : 1,
                 by_steps = longest_step_s * (steps > 1 ? steps : 1);
    const double most = by_steps < longest_sweep_s ? by_steps : longest_sweep_s;
    return mx_option_given(&r->o, "commit-every") && r->o.commit_every > 0
               ? fmin(most, fmax(r->o.commit_every, 1))
               : most;
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
    const bool short_enough = !free || r->resident || sweep <= most || r->tuned.plan.bt <= 1;
    const struct mx_tune_result former = r->tuned;
    int64_t most_bt = short_enough ? 0 : (int64_t)fmax(1, (double)former.plan.bt * most / sweep);
    int err = mx_run_share_plan_limit(r, &most_bt);
    if (err < 0 || most_bt == 0) return err;
    q->most_bt = most_bt;
    err = make_plan(r);
    q->most_bt = 0;
    if (err < 0) r->tuned = former, r->ranks.silent = false; /* all ranks have failed alike */
    return 0;
}

/* A third Buffer leaves as much space again as it takes. */
static bool third_fits(const struct mx_run *r, uint64_t capacity_bytes) {
    const uint64_t buffer =
        (uint64_t)(r->tuned.shape.pairs ? 2 : 1) * (uint64_t)r->report.layout.buffer_bytes;
    return capacity_bytes / 4 >= buffer + (uint64_t)r->report.side_file_bytes / 4;
}

/* Without being asked for, a third Buffer is made where commits would cost too much, or where the run had one
 * with several ranks (`former`: its interval). */
static bool wants_third(const struct mx_run *r, double former, uint64_t capacity_bytes) {
    const bool pays =
        mx_sweep_count(&r->rest, r->tuned.plan.bt) > 2 && mx_run_seconds_a_sweep(r) < short_sweep_s;
    return (former > 0 || pays) && third_fits(r, capacity_bytes);
}

static int decide_commits(struct mx_run *r, uint64_t capacity_bytes) {
    bool possible = mx_run_resumable(r) && !r->backend->anonymous;
    const int32_t least = r->tuned.shape.pairs && r->tuned.shape.in_place ? 1 : 2;
    r->n_buffers = mx_run_has_store(r) ? r->note.n_buffers : least;
    /* A run in place that is done has one; more steps of it are taken from there to another. */
    if (mx_run_has_store(r) && r->rest.nt > 0 && r->n_buffers < least) r->n_buffers = least;
    r->commit_every_s = mx_run_has_store(r) ? r->note.commit_every : 0;
    r->ranks.silent = r->ranks.rank > 0; /* all find it wrong */
    if (!possible && !r->backend->anonymous && mx_option_given(&r->o, "commit-every"))
        return mx_fail(
            &r->why, -EINVAL,
            "%s rewrites its Buffers in place: it has nothing to commit; leave --commit-every out, or "
            "%s",
            r->algorithm->name,
            r->algorithm->resumable ? "--in-place" : "take --algorithm stream or redundant");
    r->ranks.silent = false;
    if (!possible) return mx_run_agree_commits(r);
    const bool several = r->ranks.ranks > 1;
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

/* The kernel of one that is here is the tiled engine's. */
static void report_model(struct mx_run *r) {
    static const char *const sources[] = {"default", "cached", "measured", "given"};
    struct mx_report_accel *a = &r->report.accel;
    const struct mx_seconds *s = &r->tuned.seconds;
    const bool here = r->there.here && r->there.updates_per_s == 0;
    a->put_bytes_per_s = s->put_bytes_per_s;
    a->get_bytes_per_s = s->get_bytes_per_s;
    a->updates_per_s = s->updates_per_s;
    a->bus_source = sources[r->there.bus_source];
    a->kernel_source = sources[here ? r->tuned.rates.compute_source : r->there.kernel_source];
    a->kernel_s = s->compute_s;
    a->bus_s = s->bus_s;
    a->flash_s = s->flash_s;
}

static void report_plan(struct mx_run *r) {
    struct mx_report *p = &r->report;
    p->plan = r->tuned.plan;
    p->layout = r->tuned.layout;
    p->predicted_read_bytes = r->tuned.traffic.read_bytes;
    p->predicted_write_bytes = r->tuned.traffic.write_bytes;
    p->predicted_updates = r->tuned.traffic.updates;
    const struct mx_seconds *s = &r->tuned.seconds;
    p->predicted_seconds = s->total_s;
    p->predicted_time =
        (struct mx_report_time){s->io_s, s->stall_s, s->compute_s, s->copy_s, s->cores_s, s->edge_s};
    p->block_bytes = r->tuned.dram_bytes;
    p->side_file_bytes = mx_execute_seam_bytes(&r->tuned.shape, &r->tuned.layout);
    p->moves = r->algorithm->uses_blocks;
    p->accel.used_bytes = r->tuned.device_bytes;
    p->accel.more_put_bytes = mx_traffic_put_bytes(&r->tuned.traffic) - r->tuned.traffic.read_bytes;
    if (r->accel != NULL) report_model(r);
    p->accel.staging_bytes =
        r->accel == NULL ? 0
                         : MX_STAGING_PIECES * (uint64_t)mx_execute_piece_bytes(&r->rest, &r->tuned.shape,
                                                                                &r->tuned.layout, &p->plan);
}

static void report_commits(struct mx_run *r) {
    struct mx_report *p = &r->report;
    p->buffers = mx_run_buffers(r);
    p->commits = mx_run_resumable(r) && !r->backend->anonymous;
    p->commit_every_s = r->commit_every_s;
    p->seconds_a_sweep = mx_run_seconds_a_sweep(r);
    p->integrity = r->o.integrity || r->note.integrity_unit > 0;
    p->predicted_init_bytes = mx_run_has_store(r) ? 0
                              : r->tuned.shape.init_both
                                  ? mx_run_buffers(r) * p->layout.buffer_bytes
                                  : (r->tuned.shape.pairs ? 2 : 1) * p->layout.buffer_bytes;
    if (r->note.pending && mx_run_has_store(r))
        p->predicted_init_bytes = (r->tuned.shape.init_both ? r->n_buffers : 1) * p->layout.buffer_bytes;
    if (r->fuse.source) p->predicted_init_bytes = r->fuse.init_bytes;
    p->predicted_read_bytes += r->fuse.fed_bytes - r->fuse.saved_bytes;
    p->predicted_write_bytes -= r->fuse.unstored_bytes;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem) && !mx_run_has_store(r); i++)
        p->predicted_init_bytes += p->layout.fixed[i].user_file ? 0 : p->layout.fixed[i].bytes;
}

/* What passes over the Buffers of the result an output takes. */
static int64_t output_passes(const struct mx_run *r) {
    int64_t passes = 0;
    if (r->system == NULL) return r->sink.region != NULL;
    for (int32_t array = 0; array < 2; array++) {
        bool wanted = false;
        for (int32_t i = 0; i < r->fields.n; i++)
            wanted |= r->fields.field[i].array == array &&
                      (r->field_sink[i].path != NULL || r->sink.region != NULL);
        passes += wanted;
    }
    return passes;
}

/* A resumed run whose Buffers do not all have the frame yet copies it. */
static int64_t copied_bytes(const struct mx_run *r) {
    return __builtin_popcount(mx_run_unframed(r)) * (r->tuned.shape.pairs ? 2 : 1) *
           r->report.layout.buffer_bytes;
}

static void report_phases(struct mx_run *r) {
    struct mx_report *p = &r->report;
    const struct mx_run_fuse *u = &r->fuse;
    const int64_t buffer = p->layout.buffer_bytes, copied = copied_bytes(r);
    p->fused = (struct mx_report_fused){.source = u->source,
                                        .checksum = u->checksum,
                                        .output = u->output,
                                        .no_source = u->no_source,
                                        .no_checksum = u->no_checksum,
                                        .no_output = u->no_output};
    struct mx_report_phase *init = &p->phase[MX_PHASE_INIT], *stencil = &p->phase[MX_PHASE_STENCIL],
                           *checksum = &p->phase[MX_PHASE_CHECKSUM], *output = &p->phase[MX_PHASE_OUTPUT];
    init->predicted_read_bytes = (u->source ? u->init_read_bytes : 0) + copied + mx_run_former_bytes(r);
    init->predicted_write_bytes = p->predicted_init_bytes + copied;
    stencil->predicted_read_bytes = p->predicted_read_bytes;
    stencil->predicted_write_bytes = p->predicted_write_bytes;
    checksum->predicted_read_bytes =
        u->checksum ? 0 : (mx_form(&r->o.problem) == MX_STAGGERED ? 2 : 1) * buffer;
    output->predicted_read_bytes = u->output ? u->frame_read_bytes : output_passes(r) * buffer;
    output->predicted_write_bytes = u->output ? u->output_bytes : 0;
}

/* DRAM besides Blocks, and whether what was counted of it is enough for the plan. */
static uint64_t extra_bytes(const struct mx_run *r) {
    return integrity_bytes(r) + mx_run_points_bytes(r) + mx_snapshots_bytes(&r->snapshots) +
           mx_take_norms_bytes(&r->o.problem, r->request.threads);
}

static bool extra_fits(struct mx_run *r) {
    const bool points = mx_run_points_fit(r);
    return mx_snapshots_fit(&r->snapshots, r->tuned.plan.algorithm, &r->tuned.layout) && points;
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
            return mx_fail(
                &r->why, -EINVAL,
                "the store of a rank has %lld planes of each read-only field beyond its own, and sweeps "
                "of %lld levels need %lld: take --block with a bt of %lld or less",
                (long long)beyond, (long long)r->tuned.shape.max_levels, (long long)need,
                (long long)((beyond - hc) / p->h + 2));
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
    q->extra_dram_bytes = extra_bytes(r);
    q->blocks_only = r->o.integrity || r->ranks.ranks > 1;
    /* The former stores go when the new ones hold the state. */
    q->resumable |= (r->ranks.ranks > 1 && !in_place) || r->recut.asked;
    q->fixed = r->file_layout;
    q->fixed_unit_bytes = has_hashes(r) ? MX_FIXED_UNIT_BYTES : 0;
    if (mx_run_has_store(r)) {
        for (int i = 0; i < MX_MAX_FIXED; i++) r->note.layout.fixed[i].align_bytes = q->offset_align_bytes;
        q->layout = &r->note.layout; /* of files that are read in place q->fixed */
        q->resumable = true;
        const int64_t plane = r->note.layout.plane_pitch_bytes, row = r->note.layout.row_pitch_bytes;
        q->whole_planes = r->note.integrity_unit == plane ||
                          (r->note.integrity_unit == 0 && r->o.integrity && plane % row != 0);
    }
    err = make_plan(r);
    if (err == 0) err = shorten_sweeps(r);
    for (int again = 0; again < MOST_PLANS && err == 0 && !extra_fits(r); again++) {
        q->extra_dram_bytes = extra_bytes(r);
        err = make_plan(r);
        if (err == 0) err = shorten_sweeps(r);
    }
    if (err < 0) return err;
    r->algorithm = mx_algorithm_find(r->tuned.plan.algorithm);
    if ((err = extend_fixed(r)) < 0) return err;
    report_plan(r);
    mx_run_predict_snapshots(r);
    if (r->o.integrity && !r->algorithm->uses_blocks)
        return mx_fail(&r->why, -EINVAL,
                       "--integrity checks what is loaded, and %s loads nothing: it works on mapped Buffers; "
                       "take redundant "
                       "or stream",
                       r->algorithm->name);
    err = decide_commits(r, capacity);
    if (err == 0) err = mx_run_decide_fuse(r);
    if (err == 0) report_commits(r);
    if (err == 0) report_phases(r);
    return err;
}

static int open_accel(struct mx_run *r) {
    if (!r->resident && is_mapped(r->backend))
        return mx_fail(
            &r->why, -ENOTSUP,
            "backend %s pages its Buffers, and an accelerator is filled by transfers: take --backend "
            "uring, aio or dram, or leave --accel %.40s out",
            r->backend->name, r->o.accel);
    const struct mx_run_ranks *ranks = &r->ranks;
    int err = mx_take_accel(&r->o, ranks->place, ranks->places, &r->why, &r->accel, &r->there, &r->request);
    if (err < 0) return err;
    const struct mx_accel_facts *f = mx_accel_facts(r->accel);
    struct mx_report_accel *p = &r->report.accel;
    if (!f->here) { /* points and norms have some of its memory */
        const uint64_t extra =
            mx_accel_extra_bytes(&r->o.problem, &r->points.sources, &r->points.probes, r->report.check > 0);
        if (extra >= f->memory_bytes)
            return mx_fail(
                &r->why, -ENOMEM,
                "sources, probes and norms need %.1f MiB of the accelerator's memory, which has %.1f MiB: "
                "leave some of them out, or --accel %.40s",
                (double)extra / 1048576, (double)f->memory_bytes / 1048576, r->o.accel);
        r->there.memory_bytes -= extra;
    }
    snprintf(p->name, sizeof p->name, "%s", f->name);
    snprintf(p->device, sizeof p->device, "%s", f->device);
    p->number = f->number;
    p->sharers = f->sharers;
    p->memory_bytes = f->memory_bytes;
    return 0;
}

/* Ranks find the same wrong, or some of them, whose device it is: one says so. */
static int take_accel(struct mx_run *r) {
    if (r->o.accel == NULL) return 0;
    const int err = mx_is_rank(&r->ranks) ? 0 : mx_run_find_place(r); /* of a dry run it is known now */
    return err < 0 ? err : mx_run_agree_error(r, open_accel(r));
}

int mx_run_compare_store(struct mx_run *r) {
    r->comparing = true;
    int err = take_store(r);
    if (err == 0) err = mx_run_take_sides(r);
    return err < 0 ? err : mx_run_take_points(r);
}

int mx_run_request(struct mx_run *r) {
    int err = 0;
    if (r->o.fault != NULL) err = mx_fault_calls(r->o.fault, &r->why);
    if (err == 0) err = mx_run_check_ranks(r);
    if (err == 0 && mx_is_rank(&r->ranks)) err = mx_run_find_place(r);
    if (err == 0 && r->o.kernel != NULL && !r->o.resume)
        err = mx_take_kernel(&r->o, NULL, &r->why, &r->system);
    if (err == 0 && r->system != NULL) err = take_fields(r);
    if (err == 0 && r->o.resume && r->o.backend != NULL) err = take_place(r);
    if (err == 0 && r->o.resume) err = take_store(r);
    if (err == 0) err = take_place(r);
    if (err == 0 && r->system != NULL) err = mx_run_check_names(r); /* the files of fields are known now */
    if (err == 0 && r->system != NULL) err = take_sinks(r);
    r->sinks_known = err == 0 && r->system != NULL;
    if (r->sinks_known) err = mx_run_check_names(r);
    if (err == 0 && !r->resumed && r->system == NULL) err = open_source(r);
    if (err == 0) err = mx_try_kernel(&r->o, r->system, &r->why); /* extents and steps are known now */
    if (err == 0 && r->input.data[0] != 0)
        err = mx_run_check_names(r); /* the file of its cells is known now */
    if (err == 0) err = mx_layout_check(&r->o.problem, &r->why);
    if (err == 0) err = mx_run_take_sides(r);
    if (err == 0) err = mx_run_check_frames(r);
    if (err == 0) err = mx_run_take_snapshots(r);
    if (err == 0) err = mx_run_take_points(r);
    if (err == 0) err = mx_run_take_norms(r);
    if (err == 0) mx_run_take_finite(r);
    if (err == 0 && r->system != NULL) err = mx_run_take_field_files(r);
    if (err == 0) err = mx_machine_detect(&r->why, &r->report.machine);
    if (err == 0) err = take_limits(r);
    if (err < 0) return err;
    say_what_is_useless(r);
    if (r->o.init == NULL && r->source.region == NULL && r->note.source[0] == 0 && r->system == NULL)
        r->o.init = mx_inits[0].name;
    if ((err = mx_run_cut(r)) < 0) return err;
    r->rest = r->o.problem;
    r->rest.nt = r->norms.met.until[0] != 0 ? 0 : r->rest.nt - r->first_time;
    r->rest.done = r->first_time;
    if (r->o.threads == 0 && mx_ranks_on_cores(&r->ranks) > 1)
        r->o.threads = mx_max(1, r->report.machine.cores / mx_ranks_on_cores(&r->ranks));
    mx_take_request(&r->o, &r->report.machine, &r->request);
    r->request.problem = &r->rest;
    if ((err = mx_run_measure_link(r)) < 0) return err;
    if ((err = take_accel(r)) < 0) return err;
    r->request.style = mx_style_of(r->backend);
    r->request.advised = r->o.advice == MX_ADVICE_SCHEDULE;
    r->request.anonymous = r->backend->anonymous;
    if ((err = mx_run_stopped(r)) == 0)
        err = mx_take_rates(&r->o, r->backend, &r->report.machine, r->report.dram_limit_bytes, &r->why,
                            &r->request.rates);
    if (err < 0) return err;
    /* What was not measured, and why: a raw device is not written to be measured. */
    if (r->o.calibrate && r->why.text[0] != 0 && !r->o.quiet) mx_run_remark(r, "%s", r->why.text);
    r->why.text[0] = 0;
    return mx_run_stopped(r);
}

/* ------------------------------------------------------------------ device and Buffers */

static uint64_t stored_bytes(const struct mx_run *r) {
    uint64_t bytes = (uint64_t)mx_run_buffers(r) * (uint64_t)r->report.layout.buffer_bytes +
                     (uint64_t)r->report.side_file_bytes;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem); i++)
        bytes += r->report.layout.fixed[i].user_file ? 0 : (uint64_t)r->report.layout.fixed[i].bytes;
    return bytes;
}

/* Copying threads of a mapped backend, 0 = as many as it takes by itself: with an accelerator that computes
 * elsewhere all threads of the plan, which have nothing else to do, and copy what goes through its bus. */
static uint32_t workers(const struct mx_run *r) {
    const bool elsewhere = r->accel != NULL && !mx_accel_facts(r->accel)->here;
    if (r->o.workers > 0 || !elsewhere) return (uint32_t)r->o.workers;
    const int32_t threads = r->tuned.plan.threads; /* 0 = not known: as many as it takes by itself */
    return (uint32_t)(threads < 64 ? threads : 64);
}

/* Of one rank's directory of several, which is yet to be made, nothing is known. */
int mx_run_check_room(struct mx_run *r) {
    const struct mx_options *o = &r->o;
    const struct mx_device_options d = {
        .size = sizeof d, .backend = o->backend, .path = o->path, .expect_bytes = stored_bytes(r)};
    const bool known = r->backend->anonymous || (o->path != NULL && !mx_is_rank(&r->ranks));
    return known ? mx_device_check_room(&d, &r->why) : 0;
}

struct mx_device_options mx_run_device_options(const struct mx_run *r, const char *path) {
    const struct mx_options *o = &r->o;
    return (struct mx_device_options){.size = sizeof(struct mx_device_options),
                                      .backend = o->backend,
                                      .path = path,
                                      .queue_depth = (uint32_t)o->queue_depth,
                                      .max_request_bytes = (uint32_t)o->request_bytes,
                                      .workers = workers(r),
                                      .advice = o->advice,
                                      .sqpoll = o->sqpoll,
                                      .iopoll = o->iopoll,
                                      .uncached = o->uncached,
                                      .no_register = o->no_register,
                                      .fault = o->fault};
}

static int open_device(struct mx_run *r) {
    const struct mx_options *o = &r->o;
    struct mx_device_options d = mx_run_device_options(r, o->path);
    d.expect_bytes = mx_run_has_store(r) ? 0 : stored_bytes(r);
    d.force = o->force;
    d.resume = mx_run_has_store(r);
    d.keep = o->keep;
    d.no_lock = o->no_lock;
    int err = mx_device_open_waiting(&d, &r->why, &r->device);
    if (err == 0) mx_device_facts(r->device, &r->report.device);
    /* Also of a quiet run: nobody's result goes without a word. */
    if (err == 0 && strstr(r->report.device.note, "finished run") != NULL)
        mx_run_remark(r, "%s: %s", r->report.device.place, r->report.device.note);
    return err;
}

/* What the run begins with may lie in the store that it would replace. */
static int check_inputs(struct mx_run *r) {
    struct stat st;
    for (int32_t i = -1; i < r->fields.n; i++) {
        const int fd = i < 0 ? r->input.npy.fd : r->fields.field[i].npy.fd;
        const char *path = i < 0 ? r->o.input : r->fields.field[i].path;
        if (fd >= 0 && fstat(fd, &st) == 0 && mx_device_is(r->device, &st))
            return mx_fail(&r->why, -EINVAL,
                           "%.300s lies in the store that this run would replace: copy the field out of it "
                           "(memext export), or name another place with -d",
                           path);
    }
    return 0;
}

/* The store is locked now: is it still the one that was looked at? */
static int check_note(struct mx_run *r) {
    char text[MX_NOTE_BYTES + 1];
    struct mx_note now;
    int64_t n = mx_device_note(r->device, text, sizeof text);
    int err = n > 0 ? mx_note_parse(text, (size_t)n, NULL, &now) : -EBUSY;
    bool same = err == 0 && now.time == r->note_time && now.buffer == r->note_buffer &&
                now.started_s == r->note.started_s &&
                now.layout.buffer_bytes == r->note.layout.buffer_bytes && now.problem.nt == r->note_nt;
    return same ? 0
                : mx_fail(&r->why, -EBUSY, "%.300s was changed by another memext a moment ago: start again",
                          r->report.device.place);
}

/* A run that ended before its first commit may have left a Buffer that the note does not know of yet: noted
 * says whether it has to be there. */
static int open_extent(struct mx_run *r, const char *name, int64_t size, bool noted, bool unused,
                       mx_buffer **out) {
    const uint64_t bytes = (uint64_t)size;
    int err = mx_run_has_store(r) ? mx_buffer_open(r->device, name, &r->why, out) : -ENOENT;
    if (err == -ENOENT && !noted)
        return (unused ? mx_buffer_create_unused : mx_buffer_create)(r->device, name, bytes, &r->why, out);
    if (err == 0 && r->rest.nt > 0) err = mx_buffer_allocate(*out, &r->why);
    if (err == 0 && mx_buffer_bytes(*out) < bytes)
        err = mx_fail(&r->why, -EIO,
                      "the Buffer \"%s\" of %.300s is shorter than its note says: the store is damaged", name,
                      r->report.device.place);
    return err;
}

static int open_buffer(struct mx_run *r, int32_t i) {
    const int64_t bytes = r->report.layout.buffer_bytes;
    const bool noted = mx_run_has_store(r) && i < r->note.n_buffers;
    int err = open_extent(r, mx_note_buffers[i], bytes, noted, i < r->fuse.unused_buffers, &r->buffer[i]);
    if (err == 0 && r->tuned.shape.pairs)
        err = open_extent(r, mx_note_partners[i], bytes, noted, false, &r->partner[i]);
    return err;
}

static int open_fixed(struct mx_run *r) {
    int err = 0;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem) && err == 0; i++) {
        char name[16];
        if (r->file[i] != NULL)
            err = mx_buffer_open(r->file[i], MX_FILE_BUFFER, &r->why, &r->fixed[i]);
        else if (!r->report.layout.fixed[i].user_file) /* of a run that is done no file is opened */
            err = open_extent(r, mx_note_fixed(i, name), r->report.layout.fixed[i].bytes, mx_run_has_store(r),
                              false, &r->fixed[i]);
    }
    return err;
}

/* Seams are of no use to a later run, so any extent of seams that is long enough will do, or a new one. */
static int open_seams(struct mx_run *r) {
    uint64_t bytes = (uint64_t)r->report.side_file_bytes;
    int err = -ENOENT;
    if (bytes == 0 || (mx_run_has_store(r) && r->rest.nt == 0)) return 0;
    for (int i = 1; r->seams == NULL; i++) {
        char name[16];
        snprintf(name, sizeof name, i == 1 ? "faces" : "faces-%d", i);
        err = mx_run_has_store(r) ? mx_buffer_open(r->device, name, &r->why, &r->seams) : -ENOENT;
        if (err == -ENOENT) return mx_buffer_create(r->device, name, bytes, &r->why, &r->seams);
        if (err < 0) return err;
        if (mx_buffer_bytes(r->seams) >= bytes) return 0;
        mx_buffer_close(r->seams);
        r->seams = NULL;
    }
    return err;
}

static int no_hashes(struct mx_run *r, const char *buffer, int err) {
    return mx_fail(
        &r->why, err,
        "the hashes of the Buffer \"%s\" of %.300s %s%s: the store is damaged, start again without --resume",
        buffer, r->report.device.place,
        err == -EBADMSG ? "have changed" : "cannot be read: ", err == -EBADMSG ? "" : strerror(-err));
}

int mx_run_check_fixed(struct mx_run *r, mx_buffer *buffer, int32_t field, bool saved) {
    char name[16];
    int err = mx_buffer_integrity(buffer, MX_FIXED_UNIT_BYTES, r->budget, &r->why);
    if (err == 0 && saved) err = mx_buffer_integrity_load(buffer);
    if (err == -ENODATA)
        err = 0; /* of an older memext, which kept none: they are taken with the first look */
    return err == 0 || r->why.text[0] != 0 ? err : no_hashes(r, mx_note_fixed(field, name), err);
}

static int take_integrity(struct mx_run *r) {
    const struct mx_layout *l = &r->report.layout;
    int64_t unit = r->note.integrity_unit;
    int err = 0;
    const bool stored = unit != 0;
    if (!stored &&
        (!r->o.integrity ||
         (mx_run_has_store(r) && r->rest.nt == 0))) { /* of a complete result nothing is stored any more */
        r->report.integrity = false;
        return 0;
    }
    if (!stored)
        unit = r->algorithm->cuts_y(&r->rest, &r->report.plan) ? l->row_pitch_bytes : l->plane_pitch_bytes;
    if (stored && unit % r->report.device.offset_align_bytes != 0)
        return mx_fail(&r->why, -EINVAL,
                       "the hashes of this store are of %lld bytes each, and the device transfers multiples "
                       "of %u; take --backend mmap",
                       (long long)unit, r->report.device.offset_align_bytes);
    r->note.integrity_unit = unit;
    r->plain |= !stored;
    for (int32_t i = 0; i < mx_run_buffers(r) && err == 0; i++) {
        const int32_t number = i % r->n_buffers;
        mx_buffer *buffer = mx_run_buffer(r, number, i / r->n_buffers);
        err = mx_buffer_integrity(buffer, (uint64_t)unit, r->budget, &r->why);
        if (err == 0 && !r->plain && number == r->note.buffer && (err = mx_buffer_integrity_load(buffer)) < 0)
            no_hashes(r, mx_note_buffers[number], err);
    }
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem) && err == 0; i++)
        if (r->file[i] == NULL && r->fixed[i] != NULL)
            err = mx_run_check_fixed(r, r->fixed[i], i, mx_run_has_store(r) && !r->plain);
    if (err == 0 && r->seams != NULL)
        err = mx_buffer_integrity(r->seams, (uint64_t)l->row_pitch_bytes, r->budget, &r->why);
    return err;
}

int mx_run_open_store(struct mx_run *r) {
    int err = open_device(r);
    if (err == 0) err = mx_run_has_store(r) ? check_note(r) : check_inputs(r);
    if (r->resumed) r->note.problem.nt = r->o.problem.nt; /* from the next commit on */
    /* The device's alignment may turn out larger than it looked from outside. */
    bool same = r->backend->face == MX_FACE_MAPPED ||
                r->report.device.offset_align_bytes == r->request.offset_align_bytes;
    bool again = !same;
    if (err == 0) err = mx_run_agree_any(r, &again);
    if (err == 0 && again) err = mx_run_plan(r);
    if (err == 0)
        err = mx_budget_create(r->report.dram_limit_bytes, r->request.reserve_bytes, &r->why, &r->budget);
    for (int32_t i = 0; i < r->n_buffers && err == 0; i++) err = open_buffer(r, i);
    if (err == 0) err = open_fixed(r);
    if (err == 0) err = open_seams(r);
    if (err == 0) err = take_integrity(r);
    if (err == 0) err = mx_run_open_points(r);
    if (err == 0) err = mx_run_open_norms(r);
    if (err == 0) err = mx_run_check_verify(r);
    return err < 0 ? err : mx_run_open_snapshots(r);
}

/* ------------------------------------------------------------------ outputs */

enum { MOST_NAMES = 13 + 3 * MX_WORDS_MOST + 3 * MX_FIELDS_MOST };

struct names {
    size_t n, n_text;
    char text[3 * MX_WORDS_MOST][PATH_MAX];
    struct mx_file_word word[]; /* MOST_NAMES and one for each wavelet */
};

static void add_name(struct names *s, const char *option, const char *path, enum mx_file_use use) {
    s->word[s->n++] = (struct mx_file_word){option, path, use};
}

/* Files of fields: what stands behind "NAME=", without what is said of raw ones. */
static void add_words(struct names *s, const char *option, const struct mx_words *words, bool raw,
                      enum mx_file_use use) {
    for (int32_t i = 0; i < words->n; i++) {
        const char *rest = mx_field_word(words->word[i], NULL), *path = rest != NULL ? rest : words->word[i];
        char *text = s->text[s->n_text++], behind[MX_RAW_TEXT];
        if (raw)
            mx_raw_split(path, text, behind);
        else
            snprintf(text, PATH_MAX, "%s", path);
        add_name(s, option, text, use);
    }
}

/* What is read comes first: whatever is written is compared with what was named before it. */
int mx_run_check_names(struct mx_run *r) {
    const struct mx_options *o = &r->o;
    const bool system = o->kernel != NULL || r->note.problem.system != NULL;
    const size_t most = MOST_NAMES + (size_t)r->points.sources.n_wavelets;
    struct names *s = malloc(sizeof *s + most * sizeof s->word[0]);
    if (s == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the names of files");
    s->n = s->n_text = 0;
    add_name(s, "--input", o->input, MX_FILE_READ);
    add_name(s, "--plan", o->plan, MX_FILE_READ);
    add_name(s, "--kernel", o->kernel, MX_FILE_READ);
    if (system) add_words(s, "--input", &o->inputs, true, MX_FILE_READ);
    if (system) add_words(s, "--field", &o->fields, true, MX_FILE_READ);
    for (int32_t i = 0; i < r->fields.n; i++) /* once they are known: those of a stored run too */
        add_name(s, r->fields.field[i].array == MX_FIELD_OF_C ? "--field" : "--input",
                 r->fields.field[i].path, MX_FILE_READ);
    for (int32_t i = 0; i < r->fields.n; i++)
        if (r->fields.field[i].data[0] != 0)
            add_name(s, "the data of a field", r->fields.field[i].data, MX_FILE_READ);
    if (r->input.data[0] != 0) add_name(s, "the data of --input", r->input.data, MX_FILE_READ);
    add_name(s, "--sources", o->sources, MX_FILE_READ);
    add_name(s, "--probes", o->probes, MX_FILE_READ);
    for (int64_t i = 0; i < r->points.sources.n_wavelets; i++) /* once they were read */
        add_name(s, "--source", r->points.sources.wavelet[i].path, MX_FILE_READ);
    add_name(s, "-d", o->path, MX_FILE_PLACE);
    add_name(s, "--output", o->output, MX_FILE_NPY);
    if (system && !r->sinks_known) add_words(s, "--output", &o->outputs, false, MX_FILE_NPY);
    for (int32_t i = 0; i < r->fields.n; i++)
        if (r->field_sink[i].path != NULL) add_name(s, "--output", r->field_sink[i].path, MX_FILE_NPY);
    add_name(s, "--json", o->json, MX_FILE_WRITTEN);
    add_name(s, "--timeline", o->timeline, MX_FILE_WRITTEN);
    add_name(s, "--trace", o->trace, MX_FILE_WRITTEN);
    add_name(s, "--probes-out", o->probes_out, MX_FILE_NPY);
    int err = mx_output_check_names(s->word, s->n, &r->why);
    for (size_t i = 0; i < s->n && err == 0; i++)
        err = mx_run_check_snapshot_name(r, s->word[i].option, s->word[i].path,
                                         s->word[i].use == MX_FILE_PLACE, &r->why);
    r->same_names |= err < 0;
    free(s);
    return err;
}

int mx_run_check_stored_names(struct mx_run *r) {
    struct mx_file_word words[2 * MX_FIELDS_MOST + 2];
    size_t n = 0;
    mx_why none;
    if (!r->o.resume || r->o.path == NULL || r->o.json == NULL) return 0;
    struct mx_stored *stored = calloc(1, sizeof *stored);
    if (stored == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the note of the store");
    int err = 0;
    if (mx_stored_look(r->o.path, &none, stored) == 0 && stored->have_note) {
        const struct mx_note *note = &stored->note;
        words[n++] = (struct mx_file_word){"the run's --input", note->input, MX_FILE_READ};
        for (int32_t i = 0; i < note->fields.n; i++) {
            words[n++] =
                (struct mx_file_word){"a field of the run", note->fields.field[i].path, MX_FILE_READ};
            words[n++] =
                (struct mx_file_word){"the data of a field", note->fields.field[i].data, MX_FILE_READ};
        }
        words[n++] = (struct mx_file_word){"--json", r->o.json, MX_FILE_WRITTEN};
        err = mx_output_check_names(words, n, &r->why);
    }
    free(stored);
    return err;
}

/* Of ranks: all open the file that rank 0 has made. *all: each of them has. */
static int join_file(struct mx_run *r, struct mx_grid_file *file, const struct mx_grid *grid, bool named,
                     bool *all) {
    struct mx_grid_file_place place = {.path = ""};
    const bool first = r->ranks.rank == 0;
    if (first) mx_grid_file_find(file, named, &place);
    int err = mx_run_share_bytes(r, &place, sizeof place);
    if (err < 0) return err;
    if (named && place.path[0] == 0)
        return mx_fail(
            &r->why, -ENOTSUP,
            "ranks write to one file, and %.300s has no place in a directory beside which it could grow",
            file->path);
    err = first || place.path[0] == 0 ? 0 : mx_grid_file_join(file, &place, grid, &r->why);
    bool lacks = err < 0 || place.path[0] == 0;
    *all = !lacks;
    if (named) return err;
    r->why.text[0] = 0;
    err = mx_run_agree_any(r, &lacks);
    if (lacks) mx_grid_file_part(file);
    return *all = !lacks, err;
}

/* A sink; of ranks a file that rank 0 makes and all write to. On one machine they need no name for it. */
static int open_file(struct mx_run *r, struct mx_grid_file *file, struct mx_sink *sink,
                     struct mx_grid *grid) {
    bool all = false;
    if (!mx_is_rank(&r->ranks)) return sink->open(sink->context, grid, &r->why);
    int err = r->ranks.rank == 0 ? sink->open(sink->context, grid, &r->why) : 0;
    if (err != 0) return err;
    if (r->ranks.places == r->ranks.ranks) err = join_file(r, file, grid, false, &all);
    if (err == 0 && !all) err = join_file(r, file, grid, true, &all);
    return err < 0 ? err : mx_run_meet(r); /* a rank that ends from here on takes the file from nobody */
}

static int open_field_sinks(struct mx_run *r) {
    const struct mx_problem *p = &r->whole;
    const bool program = r->sink.region != NULL;
    int err = 0;
    for (int32_t i = 0; i < r->fields.n && err == 0; i++) {
        struct mx_field_sink *s = &r->field_sink[i];
        struct mx_grid grid = mx_grid_of(p, r->o.bare_output ? 0 : p->h);
        if (r->fields.field[i].array == MX_FIELD_OF_C || (s->path == NULL && !program)) continue;
        snprintf(grid.dtype, sizeof grid.dtype, "%s", mx_dtype_name(r->fields.field[i].dtype));
        snprintf(grid.field, sizeof grid.field, "%s", r->fields.field[i].name);
        if (program) {
            err = r->sink.open != NULL ? r->sink.open(r->sink.context, &grid, &r->why) : 0;
            if (err != 0) return err < 0 ? err : -EIO;
            r->sink_open = true;
            continue;
        }
        err = open_file(r, &s->file, &s->sink, &grid);
        s->open = err == 0;
    }
    return err;
}

static int open_sink(struct mx_run *r) {
    const struct mx_problem *p = &r->whole;
    if (r->system != NULL) return open_field_sinks(r);
    struct mx_grid grid = mx_grid_of(p, r->o.bare_output ? 0 : p->h);
    if (r->sink.region == NULL) return 0;
    int err = r->sink.open != NULL ? open_file(r, &r->output, &r->sink, &grid) : 0;
    if (err != 0) return err < 0 ? err : -EIO;
    r->sink_open = true;
    return 0;
}

int mx_run_open_outputs(struct mx_run *r) {
    const struct mx_options *o = &r->o;
    struct mx_run_outputs *out = &r->outputs;
    int err = open_sink(r);
    if (err == 0 && o->timeline != NULL)
        err = mx_output_open(o->timeline, "the timeline", MX_OUTPUT_REPLACE, &r->why, &out->timeline);
    if (err == 0 && o->trace != NULL)
        err = mx_output_open(o->trace, "the trace", MX_OUTPUT_REPLACE, &r->why, &out->trace);
    return err;
}
