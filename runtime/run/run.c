/* SPDX-License-Identifier: BSD-3-Clause */
/* run.c - runs as memext.h has them: options in, a thread, progress, a report. */
#include "run/run.h"

#include "machine/machine.h"
#include "run/callbacks.h"
#include "run/open/open.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ------------------------------------------------------------------ open */

int mx_run_make(const struct mx_options *options, void (*remark)(void *context, const char *sentence),
                void *context, mx_run **out) {
    struct mx_run *r = calloc(1, sizeof *r);
    pthread_condattr_t monotonic;
    if (r == NULL) return -ENOMEM;
    r->o = *options;
    r->remark = remark;
    r->context = context;
    r->report.verified = -1;
    r->report.device.size = sizeof r->report.device;
    r->progress.committed_step = r->progress.check_step = -1;
    r->input.npy.fd = r->output.npy.fd = r->input.output.fd = r->output.output.fd = -1;
    r->outputs.timeline.fd = r->outputs.trace.fd = -1;
    mx_parts_make(r);
    mx_run_make_ranks(r);
    r->recut.own_fd = -1;
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
        return mx_no_option(MX_CMD_LIBRARY, word, strlen(word), "",
                            "they have the names of the long options of memext run", why);
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

static int open_run(const struct mx_run_options *options, mx_why *why, mx_run **out) {
    struct mx_run_options given = {.size = 0};
    struct mx_options o = {.json = NULL};
    struct mx_run *r = NULL;
    char **words = NULL;
    int err = mx_run_take_struct(&given, sizeof given, options, "mx_run_options", why);
    if (err == 0) err = take_words(given.options, &o, why, &words);
    o.source = given.source != NULL;
    if (err == 0) err = mx_options_complete(MX_CMD_LIBRARY, &o, why);
    if (err == 0 && (err = mx_run_make(&o, given.remark, given.context, &r)) < 0)
        mx_fail(why, err, "no memory for a run");
    if (err < 0) return free_words(words), err;
    r->words = words;
    err = mx_run_take_source(r, given.source, why);
    if (err == 0) err = mx_run_take_sink(r, given.sink, why);
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

static void end(struct mx_run *r, int err) {
    if (err < 0 || r->moving) mx_run_close_ends(r);
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
    end(r, mx_run_make_ready(r));
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
    int err = r->prepared ? 0 : mx_run_make_ready(r);
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
    int err = fresh ? 0 : mx_fail(why, -EALREADY, "this run has already been started");
    if (err == 0 && work == run && r->o.dry_run)
        err = mx_fail(why, -EINVAL, "a dry run cannot be started: leave the option dry-run out");
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
        if (r->late()) return mx_fail(why, -EINTR, "interrupted during preparation");
    join(r);
    r->prepared = r->err == 0;
    err = mx_run_poll(r, why, NULL);
    return err;
}

int mx_run_compare(mx_run *r, mx_why *why) {
    if (!r->o.resume || !r->o.same)
        return mx_fail(why, -EINVAL, "to compare a run, give both options, resume and same");
    const int err = start(r, compare_alone, why);
    if (err < 0) return err;
    join(r);
    return mx_run_poll(r, why, NULL);
}

int mx_run_edit(mx_run *r, const struct mx_edit *edit, mx_why *why) {
    struct mx_edit given = {.size = 0};
    int err = mx_run_take_struct(&given, sizeof given, edit, "mx_edit", why);
    if (err == 0 && !r->o.resume)
        err = mx_fail(why, -EINVAL, "a new run has no state to change: give the option resume");
    if (err == 0 && given.planes == NULL && given.fields == NULL)
        err = mx_fail(why, -EINVAL, "mx_edit needs a function `planes`, or `fields`");
    if (err == 0 && given.fields != NULL) err = mx_run_take_values(r, &given, why);
    if (err < 0) return err;
    pthread_mutex_lock(&r->lock);
    if (r->state != MX_RUN_OPEN)
        err = mx_fail(why, -EALREADY, "this run has already been prepared: change its state before that");
    else
        r->edit.program = given;
    pthread_mutex_unlock(&r->lock);
    return err;
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
    mx_parts_report(r);
    p->fault_calls = r->o.fault != NULL ? (int64_t)mx_fault_calls_made() : 0;
    if (p->device.backend[0] == 0 && r->backend != NULL)
        snprintf(p->device.backend, sizeof p->device.backend, "%s", r->backend->name);
}

int mx_run_json(const struct mx_run *r, mx_why *why, char **out) {
    json_t *object = mx_report_json(&r->report);
    mx_run_add_ranks(r, object);
    mx_run_add_planned(r, object);
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
    if (busy) return mx_fail(why, -EBUSY, "the run has not ended yet, and its report is there when it has");
    const locale_t before = mx_numbers_begin();
    const int err = mx_run_json(r, why, out);
    mx_numbers_end(before);
    return err;
}

void mx_run_close(mx_run *r) {
    if (r == NULL) return;
    mx_run_stop(r);
    join(r);
    mx_run_close_ends(r);
    mx_run_release(r);
    pthread_cond_destroy(&r->ended);
    pthread_mutex_destroy(&r->lock);
    free_words(r->words);
    free(r);
}
