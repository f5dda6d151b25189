/* SPDX-License-Identifier: BSD-3-Clause */
/* run.c - runs as memext.h has them: options in, a thread, progress, a report. */
#include "run/run.h"
#include "machine/clock.h"

#include "core/device.h"
#include "machine/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ------------------------------------------------------------------ open */

int mx_run_make(const struct mx_options *options, mx_run **out) {
    struct mx_run *r = calloc(1, sizeof *r);
    pthread_condattr_t monotonic;
    if (r == NULL) return -ENOMEM;
    r->o = *options;
    r->report.verified = -1;
    r->report.device.size = sizeof r->report.device;
    r->progress.committed_step = r->progress.check_step = -1;
    r->input.npy.fd = r->output.npy.fd = r->input.output.fd = r->output.output.fd = -1;
    r->outputs.timeline.fd = r->outputs.trace.fd = r->points.fd = r->snapshots.lock_fd = -1;
    r->ranks.observed_fd[0] = r->ranks.observed_fd[1] = r->ranks.status = -1;
    r->ranks.folder_fd = r->recut.own_fd = -1;
    if (r->o.input != NULL) {
        mx_raw_split(r->o.input, r->input_path, r->input_raw);
        r->o.input = r->input_path;
        mx_grid_file_source(&r->input, r->input_path, r->input_raw, &r->source);
    }
    if (r->o.output != NULL) mx_grid_file_sink(&r->output, r->o.output, r->o.overwrite, &r->sink);
    r->begin_ns = mx_clock_ns();
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&r->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return *out = r, 0;
}

static void free_words(char **words) {
    for (char **w = words; w != NULL && *w != NULL; w++) free(*w);
    free(words);
}

/* NAME=VALUE; the value stays where it is in the word, for the options point to it. */
static int take_word(char *word, struct mx_options *o, mx_why *why) {
    char *equals = strchr(word, '=');
    if (equals != NULL) *equals = 0;
    const struct mx_option *row = mx_option_find(MX_CMD_LIBRARY, word);
    if (row == NULL)
        return mx_fail(why, -EINVAL,
                       "option '%.60s' is not known; they are named as the long options of memext run", word);
    return mx_option_take(row, equals != NULL ? equals + 1 : NULL, o, why);
}

static int take_words(const char *const *words, struct mx_options *o, mx_why *why, char ***out) {
    size_t n = 0;
    while (words != NULL && words[n] != NULL) n++;
    char **copy = calloc(n + 1, sizeof *copy);
    int err = copy == NULL ? mx_fail(why, -ENOMEM, "no memory for the options") : 0;
    for (size_t i = 0; i < n && err == 0; i++) {
        copy[i] = strdup(words[i]);
        err =
            copy[i] != NULL ? take_word(copy[i], o, why) : mx_fail(why, -ENOMEM, "no memory for the options");
    }
    if (err < 0) return free_words(copy), err;
    return *out = copy, 0;
}

/* A struct of a program, as far as both sides know it. */
static int take_struct(void *to, size_t known, const void *from, const char *what, mx_why *why) {
    uint32_t size;
    memcpy(&size, from, sizeof size);
    if (size < sizeof size || size > 4096)
        return mx_fail(why, -EINVAL, "%s says size %u: set it to sizeof of the struct", what, size);
    memset(to, 0, known);
    memcpy(to, from, size < known ? size : known);
    return 0;
}

/* Rows of a box, one by one, to or from a program that wants it so. */
static int each_row(int (*row)(void *, const struct mx_grid_box *, mx_why *), void *context,
                    const struct mx_grid_box *box, mx_why *why) {
    int err = 0;
    for (int64_t z = box->z0; z < box->z1 && err == 0; z++)
        for (int64_t y = box->y0; y < box->y1 && err == 0; y++) {
            struct mx_grid_box one = *box;
            one.y0 = y, one.y1 = y + 1, one.z0 = z, one.z1 = z + 1;
            one.data = (char *)box->data + (z - box->z0) * box->plane_pitch_bytes +
                       (y - box->y0) * box->row_pitch_bytes;
            err = row(context, &one, why);
        }
    return err;
}

static int row_source_open(void *context, struct mx_grid *grid, mx_why *why) {
    const struct mx_source *s = context;
    return s->open(s->context, grid, why);
}
static int row_source_region(void *context, const struct mx_grid_box *box, mx_why *why) {
    const struct mx_source *s = context;
    return each_row(s->row, s->context, box, why);
}
static int row_source_identity(void *context, const char *field, uint64_t *out, mx_why *why) {
    const struct mx_source *s = context;
    return s->identity(s->context, field, out, why);
}
static void row_source_close(void *context) {
    const struct mx_source *s = context;
    s->close(s->context);
}
static int row_sink_open(void *context, const struct mx_grid *grid, mx_why *why) {
    const struct mx_sink *s = context;
    return s->open(s->context, grid, why);
}
static int row_sink_region(void *context, const struct mx_grid_box *box, mx_why *why) {
    const struct mx_sink *s = context;
    return each_row(s->row, s->context, box, why);
}
static int row_sink_close(void *context, bool whole, mx_why *why) {
    const struct mx_sink *s = context;
    return s->close(s->context, whole, why);
}

/* Whoever has one or the other: what the rest of the library sees has a function `region`. */
static void source_of_rows(struct mx_source *source, struct mx_source *rows) {
    if (source->region != NULL || source->row == NULL) return;
    *rows = *source;
    source->context = rows;
    source->region = row_source_region;
    if (rows->open != NULL) source->open = row_source_open;
    if (rows->close != NULL) source->close = row_source_close;
    if (rows->identity != NULL) source->identity = row_source_identity;
}
static void sink_of_rows(struct mx_sink *sink, struct mx_sink *rows) {
    if (sink->region != NULL || sink->row == NULL) return;
    *rows = *sink;
    sink->context = rows;
    sink->region = row_sink_region;
    if (rows->open != NULL) sink->open = row_sink_open;
    if (rows->close != NULL) sink->close = row_sink_close;
}

static int take_source(struct mx_run *r, const struct mx_source *source, mx_why *why) {
    if (source == NULL) return 0;
    if (r->o.input != NULL || r->o.init != NULL)
        return mx_fail(
            why, -EINVAL,
            "a source and the option %s exclude each other: the initial grid is the one or the other",
            r->o.input != NULL ? "input" : "init");
    int err = take_struct(&r->source, sizeof r->source, source, "mx_source", why);
    if (err < 0) return err;
    source_of_rows(&r->source, &r->row_source);
    const char *name = r->source.name;
    bool plain = name != NULL && name[0] != 0 && strlen(name) < sizeof r->source_name;
    for (const char *c = name; plain && *c != 0; c++) plain = *c >= 0x20 && *c < 0x7f;
    if (!plain || r->source.region == NULL)
        return mx_fail(
            why, -EINVAL,
            "a source needs a function `region` or `row`, and a name of 1 to 63 printable ASCII characters");
    if (r->source.open == NULL && !r->o.resume && !mx_option_given(&r->o, "size"))
        return mx_fail(why, -EINVAL, "no grid: the source %s does not say its extents: give size=NX NY NZ",
                       name);
    r->source.name = strcpy(r->source_name, name);
    return 0;
}

static int take_sink(struct mx_run *r, const struct mx_sink *sink, mx_why *why) {
    if (sink == NULL) return 0;
    if (r->o.outputs.n > 0)
        return mx_fail(why, -EINVAL, "a sink and the option output exclude each other: name one place");
    int err = take_struct(&r->sink, sizeof r->sink, sink, "mx_sink", why);
    if (err < 0) return err;
    sink_of_rows(&r->sink, &r->row_sink);
    if (r->sink.region == NULL) err = mx_fail(why, -EINVAL, "a sink needs a function `region` or `row`");
    return err;
}

static int open_run(const struct mx_run_options *options, mx_why *why, mx_run **out) {
    struct mx_run_options given = {.size = 0};
    struct mx_options o = {.json = NULL};
    struct mx_run *r = NULL;
    char **words = NULL;
    int err = take_struct(&given, sizeof given, options, "mx_run_options", why);
    if (err == 0) err = take_words(given.options, &o, why, &words);
    o.source = given.source != NULL;
    if (err == 0) err = mx_options_complete(MX_CMD_LIBRARY, &o, why);
    if (err == 0 && (err = mx_run_make(&o, &r)) < 0) mx_fail(why, err, "no memory for a run");
    if (err < 0) return free_words(words), err;
    r->words = words;
    r->remark = given.remark;
    r->context = given.context;
    err = take_source(r, given.source, why);
    if (err == 0) err = take_sink(r, given.sink, why);
    if (err < 0) return mx_run_close(r), err;
    return *out = r, 0;
}

int mx_run_open(const struct mx_run_options *options, mx_why *why, mx_run **out) {
    const locale_t before = mx_numbers_begin();
    const int err = open_run(options, why, out);
    mx_numbers_end(before);
    return err;
}

/* ------------------------------------------------------------------ what others see while it runs */

void mx_run_begin_phase(struct mx_run *r, const char *phase, const char *unit, int64_t total) {
    struct mx_run_progress *p = &r->progress;
    pthread_mutex_lock(&r->lock);
    p->n_phases++;
    p->done = 0;
    p->total = total;
    snprintf(p->phase, sizeof p->phase, "%s", phase);
    snprintf(p->unit, sizeof p->unit, "%s", unit);
    r->phase_begin_ns = mx_clock_ns();
    pthread_mutex_unlock(&r->lock);
}

void mx_run_progress_to(struct mx_run *r, int64_t done) {
    pthread_mutex_lock(&r->lock);
    r->progress.done = done;
    r->progress.seconds = (double)(mx_clock_ns() - r->phase_begin_ns) * 1e-9;
    pthread_mutex_unlock(&r->lock);
}

void mx_run_committed(struct mx_run *r) {
    r->committed = true;
    pthread_mutex_lock(&r->lock);
    r->progress.committed_step = r->note.time;
    pthread_mutex_unlock(&r->lock);
}

void mx_run_remark(const struct mx_run *r, const char *format, ...) {
    char sentence[1200];
    va_list args;
    if (r->remark == NULL) return;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    r->remark(r->context, sentence);
}

/* Lock held. */
static void tell(const struct mx_run *r, struct mx_run_progress *out) {
    struct mx_run_progress p = r->progress;
    const uint32_t size = out->size;
    if (size < sizeof size) return;
    if (r->state == MX_RUN_AT_WORK && p.n_phases > 0)
        p.seconds = (double)(mx_clock_ns() - r->phase_begin_ns) * 1e-9;
    p.rate = p.seconds > 0 ? (double)p.done / p.seconds : 0;
    p.size = size;
    memcpy(out, &p, size < sizeof p ? size : sizeof p);
}

/* Lock held. */
static int outcome(const struct mx_run *r, mx_why *why) {
    /* What a run has found, and r->why, are its thread's own until it has ended. */
    if (r->err == 0 && r->state != MX_RUN_ENDED) return 0;
    const bool different = r->err == 0 && r->report.verified == 0;
    if (r->err == 0 && !different) return 1;
    if (why != NULL) *why = r->why;
    if (why != NULL && why->text[0] == 0)
        mx_fail(why, 0, "%s", r->err == -EINTR ? "the run was stopped" : strerror(-r->err));
    return different ? -EUCLEAN : r->err;
}

int mx_run_poll(mx_run *r, mx_why *why, struct mx_run_progress *progress) {
    return mx_run_wait(r, 0, why, progress);
}

int mx_run_wait(mx_run *r, double seconds, mx_why *why, struct mx_run_progress *progress) {
    const double most = 1e9; /* 30 years */
    struct timespec until;
    if (!(seconds >= 0 && seconds < most)) seconds = most;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const int64_t ns = until.tv_nsec + (int64_t)((seconds - (double)(int64_t)seconds) * 1e9);
    until.tv_sec += (time_t)seconds + (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_mutex_lock(&r->lock);
    while (seconds > 0 && r->state == MX_RUN_AT_WORK &&
           pthread_cond_timedwait(&r->ended, &r->lock, &until) == 0) {
    }
    if (progress != NULL) tell(r, progress);
    int result = outcome(r, why);
    pthread_mutex_unlock(&r->lock);
    return result;
}

void mx_run_stop(mx_run *r) {
    if (r != NULL) r->stop = 1;
}

/* ------------------------------------------------------------------ the thread */

static int prepare(struct mx_run *r) {
    mx_run_begin_phase(r, "prepare", "", 0);
    int err = mx_run_check_names(r);
    if (err == 0) err = mx_run_request(r);
    if (err == 0) err = mx_run_plan(r);
    if (err == 0) err = mx_run_check_note(r);
    if (err == 0 && r->o.dry_run) err = mx_run_check_room(r);
    if (err == 0 && !r->o.dry_run) err = mx_run_open_outputs(r);
    if (err == 0) err = mx_run_stopped(r);
    if (err == 0 && !r->o.dry_run) err = mx_run_open_store(r);
    /* Nobody begins before all can: what one refuses is refused by all. */
    return err == 0 && !r->o.dry_run ? mx_run_meet(r) : err;
}

/* What was not closed at the end of a run that was good: the sink learns that there is no result. */
static void close_ends(struct mx_run *r) {
    if (r->source_open && r->source.close != NULL) r->source.close(r->source.context);
    if (r->sink_open && r->sink.close != NULL) r->sink.close(r->sink.context, false, NULL);
    r->source_open = r->sink_open = false;
    for (int32_t i = 0; i < r->fields.n; i++) {
        struct mx_field_sink *s = &r->field_sink[i];
        if (s->open) s->sink.close(s->sink.context, false, NULL);
        s->open = false;
    }
}

static void end(struct mx_run *r, int err) {
    if (err < 0 || r->moving) close_ends(r);
    if (err < 0 && r->why.text[0] == 0 && err != -EINTR) mx_fail(&r->why, err, "%s", strerror(-err));
    mx_run_close_report(r, err);
    pthread_mutex_lock(&r->lock);
    r->err = err;
    r->state = err < 0 || r->moving ? MX_RUN_ENDED : MX_RUN_READY;
    if (r->progress.n_phases > 0) r->progress.seconds = (double)(mx_clock_ns() - r->phase_begin_ns) * 1e-9;
    pthread_cond_broadcast(&r->ended);
    pthread_mutex_unlock(&r->lock);
}

static void *prepare_alone(void *argument) {
    struct mx_run *r = argument;
    end(r, prepare(r));
    return NULL;
}

static void *compare_alone(void *argument) {
    struct mx_run *r = argument;
    int err = mx_run_compare_store(r);
    r->o.dry_run = true; /* it cannot be started any more */
    end(r, err);
    return NULL;
}

static void *run(void *argument) {
    struct mx_run *r = argument;
    int err = r->prepared ? 0 : prepare(r);
    r->report.phase[MX_PHASE_PREPARE].seconds = (double)(mx_clock_ns() - r->begin_ns) * 1e-9;
    if (err == 0) {
        r->moving = true;
        err = mx_run_work(r);
    }
    end(r, err);
    return NULL;
}

static int start(struct mx_run *r, void *(*work)(void *), mx_why *why) {
    pthread_mutex_lock(&r->lock);
    const bool fresh = r->state == MX_RUN_OPEN || (work == run && r->state == MX_RUN_READY);
    int err = fresh ? 0 : mx_fail(why, -EALREADY, "this run was started already");
    if (err == 0 && work == run && r->o.dry_run)
        err = mx_fail(why, -EINVAL, "a dry run is not started: leave dry-run out");
    if (err == 0 && (err = mx_thread_start(&r->thread, work, r)) < 0)
        mx_fail(why, err, "the thread of the run cannot be started: %s", mx_no_thread(err).text);
    if (err == 0) r->joinable = true, r->state = MX_RUN_AT_WORK;
    pthread_mutex_unlock(&r->lock);
    return err;
}

/* After a short while. */
static bool is_at_work(struct mx_run *r) {
    const double look_s = 0.1;
    mx_run_wait(r, look_s, NULL, NULL);
    pthread_mutex_lock(&r->lock);
    const bool at_work = r->state == MX_RUN_AT_WORK;
    pthread_mutex_unlock(&r->lock);
    return at_work;
}

static void join(struct mx_run *r) {
    if (r->joinable) pthread_join(r->thread, NULL);
    r->joinable = false;
}

int mx_run_prepare(mx_run *r, mx_why *why) {
    int err = start(r, prepare_alone, why);
    if (err < 0) return err;
    while (r->late != NULL && is_at_work(r))
        if (r->late()) return mx_fail(why, -EINTR, "interrupted while it prepared");
    join(r);
    r->prepared = r->err == 0;
    err = mx_run_poll(r, why, NULL);
    return err;
}

int mx_run_compare(mx_run *r, mx_why *why) {
    if (!r->o.resume || !r->o.same)
        return mx_fail(why, -EINVAL, "a run is compared with the options resume and same: give both");
    const int err = start(r, compare_alone, why);
    if (err < 0) return err;
    join(r);
    return mx_run_poll(r, why, NULL);
}

int mx_run_start(mx_run *r, mx_why *why) { return start(r, run, why); }

/* ------------------------------------------------------------------ the end */

static const char *status_of(const struct mx_run *r, int err) {
    if (err == -EINTR) return "interrupted";
    if (mx_run_is_nonfinite(r, err)) return "nonfinite";
    if (err < 0) return "failed";
    if (!r->moving) return "planned";
    return r->report.verified == 0 ? "different" : "done";
}

void mx_run_close_report(struct mx_run *r, int err) {
    struct mx_report *p = &r->report;
    p->problem = r->whole.nx > 0 ? r->whole : r->o.problem;
    p->wall_seconds = (double)(mx_clock_ns() - r->begin_ns) * 1e-9;
    p->status = status_of(r, err);
    p->error = (err < 0 && err != -EINTR) || p->verified == 0 ? r->why.text : NULL;
    p->peak_rss_bytes = mx_usage_peak_rss_bytes();
    p->init = r->o.init;
    p->nonfinite_cells = r->finite.cells;
    p->input = r->o.source ? r->source.name : r->note.source[0] != 0 ? r->note.source : r->o.input;
    mx_run_report_snapshots(r);
    p->fault_calls = r->o.fault != NULL ? (int64_t)mx_fault_calls_made() : 0;
    if (p->device.backend[0] == 0 && r->backend != NULL)
        snprintf(p->device.backend, sizeof p->device.backend, "%s", r->backend->name);
}

int mx_run_json(const struct mx_run *r, mx_why *why, char **out) {
    json_t *object = mx_report_json(&r->report);
    mx_run_add_ranks(r, object);
    char *text = json_dumps(object, JSON_INDENT(2));
    json_decref(object);
    if (text == NULL) return mx_fail(why, -ENOMEM, "no memory for the report");
    return *out = text, 0;
}

int mx_run_report(mx_run *r, mx_why *why, char **out) {
    pthread_mutex_lock(&r->lock);
    const bool busy = r->state == MX_RUN_AT_WORK;
    if (!busy && !r->moving) mx_run_close_report(r, r->err);
    pthread_mutex_unlock(&r->lock);
    if (busy) return mx_fail(why, -EBUSY, "the run is under way: its report is there when it has ended");
    const locale_t before = mx_numbers_begin();
    const int err = mx_run_json(r, why, out);
    mx_numbers_end(before);
    return err;
}

void mx_run_abandon(struct mx_run *r) {
    mx_output_drop(&r->output.output);
    for (int32_t i = 0; i < r->fields.n; i++)
        if (r->field_sink[i].open) mx_output_drop(&r->field_sink[i].file.output);
    mx_output_drop(&r->outputs.trace);
    mx_output_drop(&r->outputs.timeline);
    mx_run_abandon_snapshots(r);
    if (r->device != NULL) mx_device_abandon(r->device);
}

void mx_run_close(mx_run *r) {
    if (r == NULL) return;
    mx_run_stop(r);
    join(r);
    close_ends(r);
    mx_run_release(r);
    pthread_cond_destroy(&r->ended);
    pthread_mutex_destroy(&r->lock);
    free_words(r->words);
    free(r);
}
