/* SPDX-License-Identifier: BSD-3-Clause */
/* run.c - the phases of a wavefront run. */
#include "machine/clock.h"
#include "wavefront/run_private.h"

#include "core/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

int mx_wf_run_create(const struct mx_wf_options *options, const atomic_int *stop,
                     void (*progress)(void *context, const char *label, int64_t done, int64_t total),
                     void *context, mx_why *why, mx_wf_run **out) {
    mx_wf_run *r = calloc(1, sizeof *r);
    if (r == NULL) return mx_fail(why, -ENOMEM, "no memory for a run");
    r->o = *options;
    r->stop = stop;
    r->progress = progress;
    r->context = context;
    r->begin_ns = mx_clock_ns();
    r->verified = -1;
    r->json.fd = r->timeline_file.fd = r->trace_file.fd = -1;
    for (int m = 0; m < MX_WF_MATRICES; m++) r->outputs[m].fd = r->source.files[m].fd = -1;
    *out = r;
    return 0;
}

/* ------------------------------------------------------------------ progress */

static void begin_phase(mx_wf_run *r, const char *label, int64_t total) {
    r->label = label;
    r->total = total;
    if (r->progress != NULL) r->progress(r->context, label, 0, total);
}

static void on_progress(void *context, int64_t done) {
    mx_wf_run *r = context;
    if (r->progress != NULL) r->progress(r->context, r->label, done, r->total);
    mx_timeline_updates(r->timeline, done);
}

/* ------------------------------------------------------------------ commits */

static int write_note(mx_wf_run *r) {
    char text[MX_NOTE_BYTES];
    r->note.committed_s = (int64_t)time(NULL);
    int n = mx_wf_note_print(&r->note, text, sizeof text);
    if (n < 0) return mx_fail(&r->why, n, "the names of the inputs are too long to be kept in the store");
    int err = mx_device_commit(r->device, text, (size_t)n);
    mx_why reason = {""};
    if (err < 0) {
        mx_device_error(r->device, &reason);
        mx_fail(&r->why, err, "the commit on %.200s failed: %.250s", r->device_facts.place,
                reason.text[0] != 0 ? reason.text : strerror(-err));
    }
    return err;
}

/* Called on a thread of the pipeline. */
static int commit(void *context, int64_t done, int32_t buffer) {
    mx_wf_run *r = context;
    r->note.done = r->first + done;
    r->note.buffer = buffer;
    int err = write_note(r);
    if (err == 0) r->committed = true;
    return err;
}

static int begin_note(mx_wf_run *r) {
    struct mx_wf_note *n = &r->note;
    n->geometry = *mx_wf_geometry_of(r);
    n->iterations = r->o.iterations;
    n->started_s = (int64_t)time(NULL);
    snprintf(n->init, sizeof n->init, "%s", r->source.init->name);
    for (int m = 0; m < MX_WF_MATRICES; m++) {
        struct stat st;
        if (r->o.inputs[m] == NULL) continue;
        if (realpath(r->o.inputs[m], n->inputs[m].path) == NULL || fstat(r->source.files[m].fd, &st) != 0)
            return mx_fail(&r->why, -errno, "%.300s cannot be named in the store: %s", r->o.inputs[m],
                           strerror(errno));
        n->inputs[m].bytes = (uint64_t)st.st_size;
        n->inputs[m].modified_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
    }
    return 0;
}

/* ------------------------------------------------------------------ into the layout */

static struct mx_wf_conversion conversion(mx_wf_run *r, enum mx_wf_matrix m, mx_buffer *buffer) {
    return (struct mx_wf_conversion){mx_wf_geometry_of(r), m, r->device, buffer, r->budget, r->stop, &r->why};
}

static int initialise(mx_wf_run *r) {
    const uint64_t begin = mx_clock_ns();
    int err = mx_device_take(r->device, &r->why); /* what can be refused was */
    if (err == 0 && !r->resumed) err = begin_note(r);
    snprintf(r->note.backend, sizeof r->note.backend, "%s", r->backend->name);
    begin_phase(r, "convert", MX_WF_MATRICES);
    for (int m = 0; m < MX_WF_MATRICES && err == 0 && !r->resumed; m++) {
        const struct mx_wf_conversion c =
            conversion(r, (enum mx_wf_matrix)m, m == MX_WF_ZA ? r->data[0] : r->fixed[m]);
        const uint64_t one = mx_clock_ns();
        err = mx_wf_store_matrix(&c, &r->source);
        r->converted_s[m] = mx_seconds_since(one);
        on_progress(r, m + 1);
    }
    if (err == 0 && !r->resumed && r->device_facts.durable) err = commit(r, 0, 0);
    r->init_seconds = mx_seconds_since(begin);
    return err;
}

/* ------------------------------------------------------------------ computation */

static void on_event(void *context, const struct mx_wf_event *e) {
    mx_wf_run *r = context;
    mx_timeline_event(r->timeline, e->name, e->begin_ns, e->end_ns, e->rows, e->cols, e->amount);
}

static int open_stream(mx_wf_run *r, const struct mx_output *output, FILE **out) {
    *out = output->fd >= 0 ? mx_output_stream(output) : NULL;
    if (output->fd < 0 || *out != NULL) return 0;
    return mx_fail(&r->why, -errno, "%.300s cannot be written: %s", output->path, strerror(errno));
}

/* The timeline speaks of grids: rows are y, columns z of its events. */
static int start_timeline(mx_wf_run *r) {
    const struct mx_wf_geometry *g = mx_wf_geometry_of(r);
    const struct mx_problem problem = {
        .nx = g->cols, .ny = g->rows, .nz = 1, .nt = r->o.iterations, .h = 1, .stencil = "loop23"};
    const struct mx_plan plan = {.algorithm = "wavefront",
                                 .engine = "lanes",
                                 .by = g->mb,
                                 .bz = 1,
                                 .bt = r->choice.plan.waves,
                                 .threads = r->choice.plan.threads};
    struct mx_timeline_options t = {.problem = &problem,
                                    .plan = &plan,
                                    .device = r->device,
                                    .place = r->backend->anonymous ? "" : r->device_facts.place,
                                    .n_buffers = 2,
                                    .names = {"za-0", "za-1"}};
    if (r->timeline_file.fd < 0 && r->trace_file.fd < 0) return 0;
    mx_output_show(&r->timeline_file);
    int err = open_stream(r, &r->timeline_file, &t.file);
    if (err == 0) err = open_stream(r, &r->trace_file, &t.trace);
    if (err < 0) return err;
    for (int i = 0; i < 2; i++) {
        t.buffer_bytes[i] = mx_buffer_bytes(r->data[i]);
        t.buffer_offset_bytes[i] = mx_buffer_offset(r->data[i]);
    }
    return mx_timeline_start(&t, &r->why, &r->timeline);
}

static int stop_timeline(mx_wf_run *r, int err) {
    mx_why why = {""};
    int observed = mx_timeline_stop(r->timeline, &why);
    r->timeline = NULL;
    if (observed == 0 && r->timeline_file.fd >= 0)
        observed = mx_output_publish(&r->timeline_file, "the timeline", &why);
    if (observed == 0 && r->trace_file.fd >= 0)
        observed = mx_output_publish(&r->trace_file, "the trace", &why);
    if (err == 0 && observed < 0) r->why = why;
    return err < 0 ? err : observed;
}

static struct mx_counters counters_since(mx_device *device, const struct mx_counters *s) {
    struct mx_counters n = {.size = sizeof n};
    mx_device_counters(device, &n);
    return (struct mx_counters){.size = sizeof n,
                                .read_bytes = n.read_bytes - s->read_bytes,
                                .write_bytes = n.write_bytes - s->write_bytes,
                                .read_requests = n.read_requests - s->read_requests,
                                .write_requests = n.write_requests - s->write_requests,
                                .retries = n.retries - s->retries,
                                .short_transfers = n.short_transfers - s->short_transfers,
                                .read_ns = n.read_ns - s->read_ns,
                                .write_ns = n.write_ns - s->write_ns,
                                .peak_in_flight = n.peak_in_flight};
}

static int compute(mx_wf_run *r) {
    struct mx_wf_execution x = {.plan = &r->choice.plan,
                                .iterations = r->o.iterations - r->first,
                                .device = r->device,
                                .data = {r->data[0], r->data[1]},
                                .source = r->note.buffer,
                                .budget = r->budget,
                                .lock = r->backend->locks_blocks,
                                .stop = r->stop,
                                .commit = r->device_facts.durable ? commit : NULL,
                                .progress = on_progress,
                                .context = r};
    struct mx_counters before = {.size = sizeof before};
    memcpy(x.fixed, r->fixed, sizeof x.fixed);
    r->executed.result = r->note.buffer;
    if (x.iterations == 0) return 0;
    int err = start_timeline(r);
    if (err < 0) return err;
    if (r->timeline != NULL) x.event = on_event;
    begin_phase(r, "updates", r->choice.traffic.updates);
    mx_device_counters(r->device, &before);
    struct mx_usage_files files = mx_usage_open();
    const struct mx_usage usage = mx_usage_now(&files);
    err = mx_wf_execute(&x, &r->why, &r->executed);
    r->usage = mx_usage_since(&files, &usage);
    mx_usage_close(&files);
    r->counters = counters_since(r->device, &before);
    return stop_timeline(r, err);
}

/* ------------------------------------------------------------------ result */

struct digest {
    mx_wf_run *run;
    XXH3_state_t *state;
};

/* The interior, rows from above, columns from the left. */
static int digest_rows(void *context, int64_t r0, int64_t n, double *rows) {
    struct digest *d = context;
    const int64_t width = d->run->source.cols + 2;
    for (int64_t r = 0; r < n; r++)
        if (r0 + r >= 1 && r0 + r <= d->run->source.rows)
            XXH3_64bits_update(d->state, rows + r * width + 1, (size_t)(width - 2) * sizeof(double));
    return 0;
}

static int take_checksum(mx_wf_run *r) {
    struct digest d = {r, XXH3_createState()};
    if (d.state == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the checksum");
    XXH3_64bits_reset(d.state);
    int err = 0;
    if (r->matrices != NULL) {
        digest_rows(&d, 0, r->source.rows + 2, mx_block_data(r->matrices));
    } else {
        const struct mx_wf_conversion c = conversion(r, MX_WF_ZA, r->data[r->executed.result]);
        err = mx_wf_fetch_matrix(&c, digest_rows, &d);
    }
    if (err == 0)
        snprintf(r->checksum, sizeof r->checksum, "%016llx", (unsigned long long)XXH3_64bits_digest(d.state));
    XXH3_freeState(d.state);
    return err;
}

struct comparison {
    mx_wf_run *run;
    struct mx_wf_walk *walk;
    bool different;
};

static int compare_rows(void *context, int64_t r0, int64_t n, double *rows) {
    struct comparison *c = context;
    const int64_t width = c->run->source.cols + 2;
    int err = 0;
    (void)r0;
    for (int64_t r = 0; r < n && err == 0; r++) {
        const double *expected;
        err = mx_wf_walk_next(c->walk, &expected);
        if (err == 0 && memcmp(expected, rows + r * width, (size_t)width * sizeof(double)) != 0)
            c->different = true;
    }
    return err;
}

static uint64_t room_for_walk(const mx_wf_run *r) {
    struct mx_budget_facts b = {.size = sizeof b};
    mx_budget_facts(r->budget, &b);
    const uint64_t taken =
        b.reserve_bytes + b.used_bytes + (uint64_t)mx_wf_conversion_bytes(mx_wf_geometry_of(r)) + (1u << 20);
    uint64_t resident = 0;
    if (r->backend->anonymous && !r->backend->locks_blocks) {
        for (int i = 0; i < 2; i++) resident += mx_buffer_bytes(r->data[i]);
        for (int m = MX_WF_ZR; m < MX_WF_MATRICES; m++) resident += mx_buffer_bytes(r->fixed[m]);
    }
    return b.limit_bytes > taken + resident ? b.limit_bytes - taken - resident : 0;
}

static int verify(mx_wf_run *r) {
    struct comparison v = {.run = r};
    const struct mx_wf_walk_options o = {.source = &r->source,
                                         .iterations = r->o.iterations,
                                         .budget = r->budget,
                                         .dram_bytes = room_for_walk(r),
                                         .device = r->device,
                                         .scratch = r->data[1 - r->executed.result],
                                         .align_bytes = mx_wf_geometry_of(r)->align_bytes,
                                         .stop = r->stop,
                                         .progress = on_progress,
                                         .context = r,
                                         .why = &r->why};
    const uint64_t begin = mx_clock_ns();
    begin_phase(r, "verify", r->o.iterations * r->source.rows * r->source.cols);
    const struct mx_wf_conversion c = conversion(r, MX_WF_ZA, r->data[r->executed.result]);
    int err = mx_wf_walk_open(&o, &v.walk);
    if (err == 0) err = mx_wf_fetch_matrix(&c, compare_rows, &v);
    mx_wf_walk_close(v.walk);
    r->verify_seconds = mx_seconds_since(begin);
    if (err < 0) return err;
    r->verified = !v.different;
    if (v.different)
        mx_fail(&r->why, -EILSEQ, "the result differs from that of the sequential loop: it is not published");
    return 0;
}

/* ------------------------------------------------------------------ out of the layout */

struct writer {
    mx_wf_run *run;
    struct mx_npy npy;
    int64_t width;
};

static int write_rows(void *context, int64_t r0, int64_t n, double *rows) {
    struct writer *w = context;
    const int64_t bytes = w->width * (int64_t)sizeof(double);
    int err = mx_write_all(w->npy.fd, rows, (size_t)(n * bytes), w->npy.data_offset_bytes + r0 * bytes);
    if (err < 0) mx_fail(&w->run->why, err, "writing the result failed: %s", strerror(-err));
    return err;
}

static int write_matrix(mx_wf_run *r, enum mx_wf_matrix m) {
    struct writer w = {.run = r, .width = r->source.cols + 2};
    int err = mx_npy_begin_matrix(r->outputs[m].fd, MX_F64, r->source.rows + 2, w.width, &r->why, &w.npy);
    if (err < 0) return err;
    if (r->matrices != NULL) {
        const int64_t cells = (r->source.rows + 2) * w.width;
        return write_rows(&w, 0, r->source.rows + 2, (double *)mx_block_data(r->matrices) + m * cells);
    }
    const struct mx_wf_conversion c =
        conversion(r, m, m == MX_WF_ZA ? r->data[r->executed.result] : r->fixed[m]);
    return mx_wf_fetch_matrix(&c, write_rows, &w);
}

/* All are written before the first gets its name. */
static int publish(mx_wf_run *r) {
    const uint64_t begin = mx_clock_ns();
    int err = 0;
    if (r->verified == 0) return 0;
    begin_phase(r, "output", MX_WF_MATRICES);
    for (int m = 0; m < MX_WF_MATRICES && err == 0; m++) {
        const uint64_t one = mx_clock_ns();
        if (r->outputs[m].fd >= 0) err = write_matrix(r, (enum mx_wf_matrix)m);
        if (r->outputs[m].fd >= 0) r->written_s[m] = mx_seconds_since(one);
        on_progress(r, m + 1);
    }
    for (int m = 0; m < MX_WF_MATRICES && err == 0; m++)
        if (r->outputs[m].fd >= 0) err = mx_output_publish(&r->outputs[m], "the result", &r->why);
    r->post_seconds = mx_seconds_since(begin);
    return err;
}

/* What stays of a finished run tells its checksum; a result that differs is not resumed. */
static int finish(mx_wf_run *r) {
    const bool file = r->o.path != NULL && strcmp(r->o.path, r->device_facts.place) == 0;
    int err = 0;
    if (!r->device_facts.durable) return 0;
    r->note.different = r->verified == 0;
    memcpy(r->note.checksum, r->checksum, sizeof r->note.checksum);
    if (r->o.keep || file || r->note.different) err = write_note(r);
    if (err == 0 && !r->note.different) err = mx_device_finish(r->device);
    if (err < 0 && r->why.text[0] == 0)
        mx_fail(&r->why, err, "the store cannot be finished: %s", strerror(-err));
    return err;
}

/* ------------------------------------------------------------------ the whole */

static int run_sequential(mx_wf_run *r) {
    struct mx_wf_sequential s = {.source = &r->source,
                                 .iterations = r->o.iterations,
                                 .stop = r->stop,
                                 .progress = on_progress,
                                 .context = r,
                                 .why = &r->why};
    int err = mx_budget_create(r->dram_limit_bytes, r->reserve_bytes, &r->why, &r->budget);
    if (err < 0) return err;
    s.budget = r->budget;
    begin_phase(r, "updates", r->o.iterations * r->source.rows * r->source.cols);
    err = mx_wf_run_sequential(&s);
    r->matrices = s.block;
    r->init_seconds = (double)s.fill_ns * 1e-9;
    r->sequential_seconds = (double)s.loop_ns * 1e-9;
    if (err == 0) r->executed.done = r->o.iterations;
    return err;
}

/* The plan, and what was asked for and changes nothing, or nothing for the better. */
static void print_plan(const mx_wf_run *r, FILE *to) {
    if (to == NULL) return;
    if (r->planned) mx_wf_print_choice(&r->request, &r->choice, to);
    if (r->backend->anonymous && r->o.path != NULL)
        fprintf(to, "note       -d %.200s has no effect: backend %s keeps its Buffers in memory\n", r->o.path,
                r->backend->name);
    if (r->o.threads > r->machine.cores)
        fprintf(
            to,
            "note       --threads %d: this process may use %d cores, and more threads wait for one another\n",
            (int)r->o.threads, r->machine.cores);
}

int mx_wf_run_work(mx_wf_run *r, FILE *to) {
    static int (*const phases[])(mx_wf_run *) = {initialise, compute, take_checksum};
    static int (*const plain[])(mx_wf_run *) = {run_sequential, take_checksum};
    int err = mx_wf_prepare(r);
    if (err == 0 && r->o.dry_run) err = mx_wf_check_room(r);
    if (err == 0 && !r->o.dry_run) err = mx_wf_open_outputs(r);
    if (err < 0) return err;
    if (r->o.dry_run) {
        print_plan(r, to);
        return 0;
    }
    const bool sequential = r->o.sequential;
    if (!sequential) err = mx_wf_open_store(r);
    if (err < 0) return err;
    print_plan(r, to);
    r->moving = true;
    const size_t n = sequential ? sizeof plain / sizeof plain[0] : sizeof phases / sizeof phases[0];
    for (size_t i = 0; i < n && err == 0; i++) {
        err = mx_wf_stopped(r);
        if (err == 0) err = (sequential ? plain : phases)[i](r);
    }
    if (err == 0 && r->o.verify) err = verify(r);
    if (err == 0) err = mx_wf_stopped(r);
    if (err == 0) err = publish(r);
    return err < 0 || sequential ? err : finish(r);
}

bool mx_wf_run_moving(const mx_wf_run *r) { return r->moving; }
int mx_wf_run_verified(const mx_wf_run *r) { return r->verified; }
const char *mx_wf_run_sentence(const mx_wf_run *r) { return r->why.text; }

const char *mx_wf_run_way_on(const mx_wf_run *r, char *text, size_t capacity) {
    text[0] = 0;
    if (r->committed && !r->note.different)
        snprintf(text, capacity, "iteration %lld of %lld is committed in %.300s; go on with --resume",
                 (long long)r->note.done, (long long)r->o.iterations,
                 r->device_facts.place[0] != 0 ? r->device_facts.place : r->o.path);
    return text;
}

static void drop_outputs(mx_wf_run *r) {
    for (int m = 0; m < MX_WF_MATRICES; m++) mx_output_drop(&r->outputs[m]);
    mx_output_drop(&r->json);
    mx_output_drop(&r->timeline_file);
    mx_output_drop(&r->trace_file);
}

void mx_wf_run_close(mx_wf_run *r) {
    if (r == NULL) return;
    mx_block_free(r->matrices);
    for (int i = 0; i < 2; i++) mx_buffer_close(r->data[i]);
    for (int m = 0; m < MX_WF_MATRICES; m++) mx_buffer_close(r->fixed[m]);
    mx_device_close(r->device);
    mx_budget_free(r->budget);
    mx_wf_source_close(&r->source);
    drop_outputs(r);
    free(r);
}
