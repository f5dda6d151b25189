/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_wavefront.c - memext wavefront, and memext tune --wavefront: options in, exit status out. */
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "wavefront/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct command {
    const char *program;
    struct mx_options o;
    mx_wf_run *run;
    struct mx_progress progress;
    const char *label;
    mx_why why;
};

/* ------------------------------------------------------------------ what is said */

static void on_progress(void *context, const char *label, const char *unit, int64_t done, int64_t total) {
    struct command *c = context;
    if (c->label != label) {
        mx_progress_end(&c->progress);
        mx_progress_begin(&c->progress, c->program, label, unit, total, c->o.quiet);
        c->label = label;
    }
    mx_progress_update(&c->progress, done);
}

static void on_remark(void *context, const char *sentence) {
    const struct command *c = context;
    fprintf(stderr, "%s: %s\n", c->program, sentence);
}

static FILE *summary(const struct command *c) {
    if (c->o.quiet) return NULL;
    return c->o.json != NULL && strcmp(c->o.json, "-") == 0 ? stderr : stdout;
}

static void say(struct command *c, int err) {
    char text[512];
    const char *sentence = c->run != NULL ? mx_wf_run_sentence(c->run) : c->why.text;
    const char *way_on = c->run != NULL ? mx_wf_run_way_on(c->run, text, sizeof text) : "";
    const bool different = err == 0 && c->run != NULL && mx_wf_run_verified(c->run) == 0;
    if (err == -EINTR)
        fprintf(stderr, "%s: interrupted%s%s\n", c->program, way_on[0] != 0 ? "; " : "", way_on);
    else if (err < 0 || different)
        fprintf(stderr, "%s: %s\n", c->program, sentence[0] != 0 ? sentence : strerror(-err));
    if (err < 0 && err != -EINTR && way_on[0] != 0 && mx_wf_run_moving(c->run))
        fprintf(stderr, "%s: %s\n", c->program, way_on);
}

/* ------------------------------------------------------------------ the run */

/* A page of a mapping cannot be read or written, so nothing can be closed in order. */
static void end_at_once(void *context, const char *sentence) {
    struct command *c = context;
    mx_why why;
    fprintf(stderr, "%s: %s\n", c->program, sentence);
    mx_wf_run_abandon(c->run);
    mx_wf_run_report(c->run, -EIO, NULL, &why);
    _exit(MX_EXIT_IO);
}

static int run(struct command *c) {
    mx_signals_watch(end_at_once, c);
    int err = mx_wf_run_work(c->run, summary(c));
    mx_signals_unwatch();
    mx_progress_end(&c->progress);
    say(c, err);
    int reported = mx_wf_run_report(c->run, err, summary(c), &c->why);
    if (reported < 0) fprintf(stderr, "%s: %s\n", c->program, c->why.text);
    if (err == 0 && mx_wf_run_verified(c->run) == 0) return MX_EXIT_DIFFERENT;
    return mx_exit_status(err < 0 ? err : reported, mx_wf_run_moving(c->run));
}

static int begin(struct command *c, enum mx_command command, int argc, char **argv) {
    const struct mx_wf_caller caller = {
        .stop = &mx_stop, .progress = on_progress, .remark = on_remark, .context = c};
    int err = mx_options_parse(command, argc, argv, &c->why, &c->o);
    if (err == 1) return mx_options_help(command, c->o.topic);
    if (command == MX_CMD_TUNE_WAVEFRONT) { /* a dry run, on the usual kind of backend */
        c->o.dry_run = true;
        c->o.backend = "uring";
    }
    if (err == 0) err = mx_wf_run_create(&c->o, &caller, &c->why, &c->run);
    if (err < 0) return say(c, err), MX_EXIT_REFUSED;
    const int status = run(c);
    mx_wf_run_close(c->run);
    return status;
}

int mx_cmd_wavefront(int argc, char **argv) {
    struct command c = {.program = "memext wavefront"};
    return begin(&c, MX_CMD_WAVEFRONT, argc, argv);
}

/* ------------------------------------------------------------------ memext tune --wavefront */

bool mx_wavefront_is_meant(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--wavefront") == 0) return true;
    return false;
}

int mx_cmd_tune_wavefront(int argc, char **argv) {
    struct command c = {.program = "memext tune"};
    return begin(&c, MX_CMD_TUNE_WAVEFRONT, argc, argv);
}
