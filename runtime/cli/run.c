/* run.c - memext run: plan, check, initialise, compute, report. */
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/request.h"
#include "engine/engine.h"
#include "execute/execute.h"
#include "grid/grid.h"
#include "machine/machine.h"
#include "observe/report.h"
#include "observe/timeline.h"
#include "schedule/schedule.h"
#include "tune/tune.h"

#include <memext/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

/* What a commit stores: enough to go on, or to refuse to. */
struct note {
    char magic[8];
    int32_t version;
    int32_t usable; /* 0: both Buffers were being rewritten in place when the run ended */
    struct mx_problem problem;
    struct mx_plan plan;
    struct mx_layout layout;
    int64_t time; /* steps that `buffer` holds */
    int32_t buffer;
    char init[16];
    char input[1024];
};
enum { NOTE_VERSION = 3, LINE_ALIGN = 64, PAGE_ALIGN = 4096 };
static const char note_magic[8] = "mx-run";

struct run {
    struct mx_options o;
    const char *program;
    mx_why why;
    const struct mx_backend *backend;
    struct mx_tune_request request;
    struct mx_tune_result tuned;
    struct mx_report report;
    struct note note;
    struct mx_npy npy;
    struct mx_fill fill;
    mx_budget *budget;
    mx_device *device;
    mx_buffer *buffer[2], *faces; /* faces: side file, or NULL */
    const struct mx_algorithm *algorithm;
    const struct mx_engine_ops *ops;
    mx_engine *engine;
    struct mx_schedule *schedule;
    struct mx_progress progress;
    mx_timeline *timeline;
    int32_t result;                    /* Buffer of the result */
    bool resumed, resident, committed; /* committed: there is something to resume */
};

static volatile int stop_flag;

static void on_signal(int number) {
    (void)number;
    stop_flag = 1;
}

/* The first signal ends the run cleanly, the second one at once. */
static void catch_signals(void) {
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

static double seconds_since(uint64_t begin_ns) { return (double)(mx_clock_ns() - begin_ns) * 1e-9; }

/* ------------------------------------------------------------------ before anything is touched */

/* Sm and Km of the run. */
static int take_limits(struct run *r) {
    const struct mx_machine *m = &r->report.machine;
    uint64_t visible = mx_machine_dram_bytes(m), limit = r->o.dram_bytes > 0 ? r->o.dram_bytes : visible;
    char a[32], b[32];
    if (limit > visible && !r->o.dry_run)
        return mx_fail(&r->why, -EINVAL,
                       "--dram %s is more than the %s that this process may use (the smaller of the "
                       "machine's memory and its cgroup's limit)",
                       mx_format_size(limit, a, sizeof a), mx_format_size(visible, b, sizeof b));
    uint64_t reserve = r->o.reserve_bytes;
    if (r->o.reserve_paper) reserve = mx_machine_reserve_paper(m);
    if (r->o.reserve_auto || (!r->o.have_reserve && r->o.dram_bytes == 0))
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

static int plan(struct run *r, uint32_t align) {
    struct mx_plan given;
    struct mx_tune_request *q = &r->request;
    q->offset_align_bytes = align;
    int err = 0;
    if (r->resumed)
        err = mx_tune_plan(q, &r->note.plan, &r->why, &r->tuned);
    else if (r->o.plan == NULL)
        err = mx_tune(q, &r->why, &r->tuned);
    else if ((err = mx_plan_read(r->o.plan, &r->why, &given)) == 0)
        err = mx_tune_plan(q, &given, &r->why, &r->tuned);
    if (err < 0) return err;
    r->algorithm = mx_algorithm_find(r->tuned.plan.algorithm);
    r->report.plan = r->tuned.plan;
    r->report.layout = r->tuned.layout;
    r->report.predicted_read_bytes = r->tuned.traffic.read_bytes;
    r->report.predicted_write_bytes = r->tuned.traffic.write_bytes;
    r->report.predicted_init_bytes = r->tuned.traffic.init_write_bytes;
    r->report.predicted_updates = r->tuned.traffic.updates;
    r->report.predicted_seconds = r->tuned.seconds.total_s;
    r->report.block_bytes = r->tuned.dram_bytes;
    r->report.side_file_bytes = mx_execute_face_bytes(&r->tuned.shape, &r->tuned.layout);
    r->report.moves = r->algorithm->uses_blocks;
    return 0;
}

static int take_place(struct run *r) {
    int err = mx_take_backend(&r->o, &r->why, &r->backend);
    if (err < 0) return err;
    if (!r->backend->anonymous && r->o.path == NULL && !r->o.dry_run)
        return mx_fail(
            &r->why, -EINVAL,
            "backend %s needs a place for the Buffers: give a directory, file or block device with -d PATH",
            r->backend->name);
    if (r->o.backend == NULL) r->o.backend = r->backend->name;
    r->resident = mx_face_of(r->backend) == MX_TUNE_RESIDENT;
    return 0;
}

static int prepare(struct run *r) {
    int err = take_place(r);
    if (err == 0) err = mx_take_input(&r->o, &r->why, &r->npy);
    if (err == 0) err = mx_machine_detect(&r->why, &r->report.machine);
    if (err == 0) err = take_limits(r);
    if (err < 0) return err;
    mx_take_request(&r->o, &r->report.machine, &r->request);
    r->request.face = mx_face_of(r->backend);
    return 0;
}

/* ------------------------------------------------------------------ device and Buffers */

static int open_device(struct run *r) {
    const struct mx_options *o = &r->o;
    struct mx_device_options d = {.backend = o->backend,
                                  .path = o->path,
                                  .expect_bytes = r->resumed || o->resume
                                                      ? 0
                                                      : 2 * (uint64_t)r->report.layout.buffer_bytes +
                                                            (uint64_t)r->report.side_file_bytes,
                                  .queue_depth = (uint32_t)o->queue_depth,
                                  .max_request_bytes = (uint32_t)o->request_bytes,
                                  .workers = (uint32_t)o->workers,
                                  .advice = o->advice,
                                  .sqpoll = o->sqpoll,
                                  .iopoll = o->iopoll,
                                  .uncached = o->uncached,
                                  .no_register = o->no_register,
                                  .force = o->force,
                                  .resume = o->resume,
                                  .keep = o->keep,
                                  .fault = o->fault};
    int err = mx_device_open(&d, &r->why, &r->device);
    if (err == 0) mx_device_facts(r->device, &r->report.device);
    return err;
}

static int open_buffer(struct run *r, const char *name, int64_t bytes, mx_buffer **out) {
    if (r->resumed) return mx_buffer_open(r->device, name, &r->why, out);
    return mx_buffer_create(r->device, name, (uint64_t)bytes, &r->why, out);
}

static int open_buffers(struct run *r) {
    int64_t bytes = r->report.layout.buffer_bytes, faces = r->report.side_file_bytes;
    int err = open_buffer(r, "source", bytes, &r->buffer[0]);
    if (err == 0) err = open_buffer(r, "target", bytes, &r->buffer[1]);
    if (err == 0 && faces > 0) err = open_buffer(r, "faces", faces, &r->faces);
    return err;
}

/* The device's alignment may turn out larger than it looked from outside. */
static int check_align(struct run *r) {
    uint32_t align = r->report.device.offset_align_bytes;
    if (r->backend->face == MX_FACE_MAPPED || align == r->request.offset_align_bytes) return 0;
    return plan(r, align);
}

/* --resume: problem and plan are those of the store. */
static int take_note(struct run *r) {
    struct note *n = &r->note;
    int64_t bytes = mx_device_note(r->device, n, sizeof *n);
    if (bytes != (int64_t)sizeof *n || memcmp(n->magic, note_magic, sizeof note_magic) != 0 ||
        n->version != NOTE_VERSION)
        return mx_fail(&r->why, -EINVAL, "%s holds no run that could be resumed; start one without --resume",
                       r->report.device.place);
    if (!n->usable)
        return mx_fail(&r->why, -EINVAL,
                       "%s cannot be resumed: %s rewrites both Buffers in place and was interrupted inside a "
                       "sweep; start again without --resume (redundant and stream can be resumed)",
                       r->report.device.place, n->plan.algorithm);
    const struct mx_problem *a = &r->o.problem, *b = &n->problem;
    if ((r->o.have_n && (a->nx != b->nx || a->ny != b->ny || a->nz != b->nz)) ||
        (r->o.have_t && a->nt != b->nt))
        return mx_fail(&r->why, -EINVAL,
                       "%s holds a run of %lld x %lld x %lld, %lld steps, not of the size asked for; leave "
                       "-n and -t out with --resume",
                       r->report.device.place, (long long)b->nx, (long long)b->ny, (long long)b->nz,
                       (long long)b->nt);
    r->o.problem = n->problem;
    r->o.init = n->input[0] == 0 ? n->init : NULL;
    r->o.input = n->input[0] != 0 ? n->input : NULL;
    r->o.algorithm = NULL;
    r->resumed = true;
    r->report.resumed_from = n->time;
    if (r->o.input != NULL && r->o.verify && r->npy.fd < 0) return mx_npy_open(r->o.input, &r->why, &r->npy);
    return 0;
}

static void fill_note(struct run *r) {
    struct note *n = &r->note;
    memset(n, 0, sizeof *n);
    memcpy(n->magic, note_magic, sizeof note_magic);
    n->version = NOTE_VERSION;
    n->usable = r->algorithm->resumable;
    n->problem = r->o.problem;
    n->plan = r->report.plan;
    n->layout = r->report.layout;
    if (r->o.init != NULL) snprintf(n->init, sizeof n->init, "%s", r->o.init);
    if (r->o.input != NULL && realpath(r->o.input, n->input) == NULL)
        snprintf(n->input, sizeof n->input, "%s", r->o.input);
}

static int commit(void *context, int64_t time, int32_t buffer) {
    struct run *r = context;
    r->note.time = time;
    r->note.buffer = buffer;
    int err = mx_device_commit(r->device, &r->note, sizeof r->note);
    r->committed |= err == 0 && r->note.usable;
    return err;
}

/* ------------------------------------------------------------------ phases */

static void on_progress(void *context, int64_t done) {
    struct run *r = context;
    mx_progress_update(&r->progress, done);
    mx_timeline_updates(r->timeline, done);
}

static const char *event_name(const struct mx_event *e) {
    static const char *const names[] = {"load", "store", "copy", "advance", "commit"};
    static const char *const face_names[] = {"load-faces", "store-faces"};
    if (e->waiting) return "wait";
    if (e->sweep) return "sweep";
    return e->faces ? face_names[e->kind] : names[e->kind];
}

static void on_event(void *context, const struct mx_event *e) {
    const struct run *r = context;
    mx_timeline_event(r->timeline, event_name(e), e->begin_ns, e->end_ns,
                      (int64_t[2]){e->region.y0, e->region.y1}, (int64_t[2]){e->region.z0, e->region.z1},
                      e->amount);
}

static int start_timeline(struct run *r) {
    const struct mx_report *p = &r->report;
    struct mx_timeline_options t = {.path = r->o.timeline,
                                    .trace_path = r->o.trace,
                                    .problem = &r->o.problem,
                                    .plan = &p->plan,
                                    .device = r->device,
                                    .place = r->backend->anonymous ? "" : p->device.place};
    if (r->o.timeline == NULL && r->o.trace == NULL) return 0;
    for (int i = 0; i < 2; i++) {
        t.buffer_bytes[i] = (uint64_t)p->layout.buffer_bytes;
        t.buffer_offset_bytes[i] = mx_buffer_offset(r->buffer[i]);
        /* What is resident by its backend's word needs no looking at. */
        if (r->backend->anonymous && !r->resident) mx_buffer_map(r->buffer[i], NULL, &t.mapped[i]);
    }
    return mx_timeline_start(&t, &r->why, &r->timeline);
}

static int initialise(struct run *r) {
    uint64_t begin = mx_clock_ns();
    int err = 0;
    r->fill = (struct mx_fill){.problem = &r->o.problem,
                               .layout = &r->report.layout,
                               .npy = &r->npy,
                               .why = &r->why,
                               .init = r->o.input != NULL ? NULL : mx_init_find(r->o.init)};
    for (int i = 0; i < (r->tuned.shape.init_both ? 2 : 1) && err == 0 && !r->resumed; i++)
        err = mx_field_write(r->buffer[i], &r->report.layout, r->budget, &stop_flag, mx_fill_plane, &r->fill,
                             &r->why);
    if (err == 0 && !r->resumed) {
        fill_note(r);
        if (r->report.device.durable && (err = commit(r, 0, 0)) < 0)
            mx_fail(&r->why, err, "the first commit on %s failed: %s", r->report.device.place,
                    strerror(-err));
        /* In place nothing can be resumed: the next run may overwrite the store, and --resume says why not.
         */
        if (err == 0 && r->report.device.durable && !r->algorithm->resumable)
            err = mx_device_finish(r->device);
    }
    r->report.init_seconds = seconds_since(begin);
    return err;
}

static int make_engine(struct run *r) {
    const struct mx_plan *p = &r->report.plan;
    struct mx_engine_options e =
        mx_take_engine(&r->o.problem, &r->report.machine, p, &r->report.layout, &r->tuned.shape);
    r->ops = mx_engine_find(p->engine);
    int err = r->ops->create(&e, &r->why, &r->engine);
    if (err == 0) r->ops->describe(r->engine, &r->report.plan);
    return err;
}

static struct mx_counters counters_since(mx_device *device, const struct mx_counters *s) {
    struct mx_counters n;
    mx_device_counters(device, &n);
    return (struct mx_counters){n.read_bytes - s->read_bytes,
                                n.write_bytes - s->write_bytes,
                                n.read_requests - s->read_requests,
                                n.write_requests - s->write_requests,
                                n.retries - s->retries,
                                n.short_transfers - s->short_transfers,
                                n.read_ns - s->read_ns,
                                n.write_ns - s->write_ns,
                                n.peak_in_flight};
}

/* On a mapping the kernel moved the data: its own counters. */
static void take_kernel_bytes(struct run *r) {
    struct mx_report *p = &r->report;
    if (p->moves || r->resident) return;
    p->counters.read_bytes = r->backend->anonymous ? p->usage.swap_in_bytes : p->usage.storage_read_bytes;
    p->counters.write_bytes = r->backend->anonymous ? p->usage.swap_out_bytes : p->usage.storage_write_bytes;
}

static int compute(struct run *r) {
    struct mx_report *p = &r->report;
    struct mx_executed done;
    struct mx_counters before;
    struct mx_execution x = {.problem = &r->o.problem,
                             .plan = &p->plan,
                             .layout = &p->layout,
                             .device = r->device,
                             .buffer = {r->buffer[0], r->buffer[1]},
                             .n_buffers = 2,
                             .source = r->note.buffer,
                             .committed = r->note.buffer,
                             .faces = r->faces,
                             .budget = r->budget,
                             .mapped = p->device.mapped,
                             .advise = r->o.advice == MX_ADVICE_SCHEDULE,
                             .lock = r->o.lock || r->backend->locks_blocks,
                             .stop = &stop_flag,
                             .progress = on_progress,
                             .context = r,
                             .commit = r->algorithm->resumable && p->device.durable ? commit : NULL};
    int err = r->algorithm->open(&r->o.problem, &p->plan, r->note.time, 0, &r->schedule);
    if (err < 0)
        return mx_fail(&r->why, err, "the schedule of %s could not be opened: %s", p->plan.algorithm,
                       strerror(-err));
    if ((err = start_timeline(r)) < 0) return err;
    if (r->timeline != NULL) x.event = on_event;
    mx_progress_begin(&r->progress, "updates", "updates", r->tuned.traffic.updates, r->o.quiet);
    mx_device_counters(r->device, &before);
    struct mx_usage_files files = mx_usage_open();
    struct mx_usage usage = mx_usage_now(&files);
    err = mx_execute(&x, r->schedule, r->ops, r->engine, &r->why, &done);
    p->usage = mx_usage_since(&files, &usage);
    mx_usage_close(&files);
    p->counters = counters_since(r->device, &before);
    mx_progress_end(&r->progress);
    int observed = mx_timeline_stop(r->timeline, err == 0 ? &r->why : NULL);
    r->timeline = NULL;
    if (err == 0) err = observed;
    take_kernel_bytes(r);
    p->seconds = (double)done.total_ns * 1e-9;
    p->update_s = (double)done.update_ns * 1e-9;
    p->blk2blk_s = (double)done.copy_ns * 1e-9;
    p->wait_s = (double)done.wait_ns * 1e-9;
    p->updates = done.updates;
    p->block_bytes = (uint64_t)done.block_bytes;
    p->steps_done = err == 0                         ? r->o.problem.nt
                    : done.steps_done > r->note.time ? done.steps_done
                                                     : r->note.time;
    r->result = done.result;
    return err;
}

struct digest {
    const struct run *run;
    XXH3_state_t *state;
};

static int digest_plane(void *context, int64_t z, char *plane) {
    struct digest *d = context;
    const struct mx_problem *p = &d->run->o.problem;
    const struct mx_layout *l = &d->run->report.layout;
    int64_t element = mx_dtype_bytes(p->dtype);
    if (z < p->h || z >= p->nz + p->h) return 0;
    for (int64_t y = p->h; y < p->ny + p->h; y++)
        XXH3_64bits_update(d->state, plane + y * l->row_pitch_bytes + p->h * element,
                           (size_t)(p->nx * element));
    return 0;
}

static int take_checksum(struct run *r) {
    struct digest d = {r, XXH3_createState()};
    if (d.state == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the checksum");
    XXH3_64bits_reset(d.state);
    int err = mx_field_read(r->buffer[r->result], &r->report.layout, r->budget, &stop_flag, digest_plane, &d,
                            &r->why);
    if (err == 0)
        snprintf(r->report.checksum, sizeof r->report.checksum, "%016llx",
                 (unsigned long long)XXH3_64bits_digest(d.state));
    XXH3_freeState(d.state);
    return err;
}

struct output {
    struct run *run;
    struct mx_npy npy;
};

static int write_plane(void *context, int64_t z, char *plane) {
    struct output *o = context;
    return mx_npy_write(&o->npy, z, 1, plane, &o->run->report.layout, &o->run->why);
}

static int write_output(struct run *r) {
    struct output o = {.run = r};
    const struct mx_layout *l = &r->report.layout;
    int64_t shape[3] = {l->planes, l->rows, r->o.problem.nx + 2 * r->o.problem.h};
    int err = mx_npy_create(r->o.output, r->o.problem.dtype, shape, &r->why, &o.npy);
    if (err < 0) return err;
    err = mx_field_read(r->buffer[r->result], l, r->budget, &stop_flag, write_plane, &o, &r->why);
    int closed = mx_npy_close(&o.npy, err == 0 ? &r->why : NULL);
    return err < 0 ? err : closed;
}

static int verify(struct run *r) {
    struct mx_budget_facts b = mx_budget_facts(r->budget);
    uint64_t taken = b.reserve_bytes + b.used_bytes + MX_TUNE_OVERHEAD_BYTES +
                     (r->resident ? 2 * (uint64_t)r->report.layout.buffer_bytes : 0);
    struct mx_verification v = {.problem = &r->o.problem,
                                .layout = &r->report.layout,
                                .source = mx_fill_plane,
                                .source_context = &r->fill,
                                .device = r->device,
                                .result = r->buffer[r->result],
                                .scratch = r->buffer[1 - r->result],
                                .budget = r->budget,
                                .memory_bytes = b.limit_bytes > taken ? b.limit_bytes - taken : 0,
                                .stop = &stop_flag,
                                .progress = on_progress,
                                .context = r};
    const struct mx_problem *p = &r->o.problem;
    uint64_t begin = mx_clock_ns();
    mx_progress_begin(&r->progress, "verify", "updates", p->nx * p->ny * p->nz * p->nt, r->o.quiet);
    int err = mx_verify(&v, &r->why);
    mx_progress_end(&r->progress);
    r->report.verify_seconds = seconds_since(begin);
    if (err < 0) return err;
    r->report.verified = err == 0;
    return 0;
}

/* ------------------------------------------------------------------ the whole */

static int work(struct run *r) {
    int err = initialise(r);
    if (err == 0) err = make_engine(r);
    if (err == 0) err = compute(r);
    if (err == 0) err = take_checksum(r);
    if (err == 0 && r->o.output != NULL) err = write_output(r);
    if (err == 0 && r->o.verify) err = verify(r);
    if (err == 0 && r->report.device.durable) err = mx_device_finish(r->device);
    return err;
}

/* Of the opened device, or as far as it can be known from outside: a guess that check_align mends. */
static uint32_t first_align(const struct run *r) {
    uint32_t align = mx_place_align(&r->o, r->backend, NULL);
    if (r->device != NULL && r->backend->face == MX_FACE_TRANSFER) return r->report.device.offset_align_bytes;
    if (align > 0) return align;
    return r->backend->face == MX_FACE_TRANSFER ? PAGE_ALIGN : LINE_ALIGN;
}

static int plan_and_work(struct run *r) {
    int err = prepare(r);
    if (err == 0 && r->o.resume) {
        err = r->o.dry_run ? mx_fail(&r->why, -EINVAL, "--dry-run and --resume exclude each other")
                           : open_device(r);
        if (err == 0) err = take_note(r);
    }
    if (err < 0) return err;
    if (r->o.init == NULL && r->o.input == NULL) r->o.init = mx_inits[0].name;
    err = mx_take_rates(&r->o, r->backend, &r->report.machine, r->report.dram_limit_bytes, &r->why,
                        &r->request.rates);
    if (err == 0) err = plan(r, first_align(r));
    if (err < 0 || r->o.dry_run) return err;
    if (r->device == NULL && (err = open_device(r)) == 0) err = check_align(r);
    if (err == 0)
        err = mx_budget_create(r->report.dram_limit_bytes, r->request.reserve_bytes, &r->why, &r->budget);
    if (err == 0) err = open_buffers(r);
    if (err == 0) err = work(r);
    return err;
}

static void close_run(struct run *r) {
    if (r->schedule != NULL) r->schedule->ops->close(r->schedule);
    if (r->engine != NULL) r->ops->free(r->engine);
    for (int i = 0; i < 2; i++) mx_buffer_close(r->buffer[i]);
    mx_buffer_close(r->faces);
    mx_device_close(r->device);
    mx_budget_free(r->budget);
    if (r->npy.fd >= 0) close(r->npy.fd);
}

static const char *status_of(const struct run *r, int err) {
    if (err == -EINTR) return "interrupted";
    if (err < 0) return "failed";
    if (r->o.dry_run) return "planned";
    return r->report.verified == 0 ? "different" : "done";
}

static void say_interrupted(const struct run *r) {
    if (r->committed || r->resumed)
        fprintf(stderr, "%s: interrupted after step %lld of %lld; go on with --resume\n", r->program,
                (long long)r->note.time, (long long)r->o.problem.nt);
    else if (r->algorithm != NULL && !r->algorithm->resumable && r->report.seconds > 0)
        fprintf(stderr, "%s: interrupted; %s rewrites the Buffers in place and cannot be resumed\n",
                r->program, r->algorithm->name);
    else
        fprintf(stderr, "%s: interrupted before the first commit: there is nothing to go on with\n",
                r->program);
}

static int report(struct run *r, int err) {
    mx_why why = {""};
    struct mx_report *p = &r->report;
    p->problem = r->o.problem;
    p->status = status_of(r, err);
    p->peak_rss_bytes = mx_usage_peak_rss_bytes();
    p->init = r->o.init;
    p->input = r->o.input;
    if (p->device.backend[0] == 0 && r->backend != NULL)
        snprintf(p->device.backend, sizeof p->device.backend, "%s", r->backend->name);
    if (r->o.explain && err == 0) {
        char *text = mx_tune_explain(&r->request, &r->tuned);
        if (text != NULL) fputs(text, stderr);
        free(text);
    }
    bool standard = r->o.json != NULL && strcmp(r->o.json, "-") == 0;
    if (!r->o.quiet && (err == 0 || err == -EINTR)) mx_report_print(p, standard ? stderr : stdout);
    if (r->o.json == NULL || (err < 0 && r->algorithm == NULL)) return 0;
    int e = mx_json_write(mx_report_json(p), r->o.json, &why);
    if (e < 0) fprintf(stderr, "%s: %s\n", r->program, why.text);
    return e;
}

int mx_cmd_run(int argc, char **argv) {
    struct run *r = calloc(1, sizeof *r);
    if (r == NULL) return MX_EXIT_REFUSED;
    const char *slash = strrchr(argv[0], '/');
    r->program = strcmp(argv[0], "run") == 0 ? "memext run" : slash != NULL ? slash + 1 : argv[0];
    r->npy.fd = -1;
    r->report.verified = -1;
    int err = mx_options_parse(MX_CMD_RUN, argc, argv, &r->why, &r->o);
    if (err == 1) {
        mx_options_help(MX_CMD_RUN, r->program);
        free(r);
        return MX_EXIT_OK;
    }
    if (err == 0) {
        catch_signals();
        err = plan_and_work(r);
        if (err == -EINTR) say_interrupted(r);
    }
    if (err < 0 && err != -EINTR)
        fprintf(stderr, "%s: %s\n", r->program, r->why.text[0] != 0 ? r->why.text : strerror(-err));
    bool different = err == 0 && r->report.verified == 0;
    if (different) fprintf(stderr, "%s: %s\n", r->program, r->why.text);
    int reported = report(r, err);
    close_run(r);
    free(r);
    if (different) return MX_EXIT_DIFFERENT;
    return mx_exit_status(err < 0 ? err : reported);
}
