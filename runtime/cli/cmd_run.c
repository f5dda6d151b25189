/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_run.c - memext run: options, signals, what is said while a run of the library goes on, exit status. */
#include "cli/job.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/streams.h"
#include "files/output.h"
#include "link/link.h"
#include "run/run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct command {
    const struct mx_options *o;
    const char *program;
    char name[64];
    mx_run *run;
    mx_why why;
    struct mx_output json; /* of the report */
    struct mx_progress bar;
    uint32_t n_phases; /* phase of the bar */
    bool told;         /* the plan was printed */
};

static bool on_standard_output(const struct command *c) {
    return c->o->json != NULL && strcmp(c->o->json, "-") == 0 && mx_run_rank(c->run) <= 0;
}

/* ------------------------------------------------------------------ what is said */

static void say(void *context, const char *sentence) {
    const struct command *c = context;
    fprintf(stderr, "%s: %s\n", c->program, sentence);
}

static void say_plan(struct command *c) {
    if (c->o->explain) mx_streams_begin_asked();
    mx_run_print_plan(c->run, on_standard_output(c) ? stderr : stdout);
    if (c->o->explain) mx_streams_end_asked();
    c->told = true;
    mx_streams_flush();
}

static int write_report(struct command *c, mx_why *why) {
    const bool standard = on_standard_output(c);
    char *text = NULL;
    if (!standard && c->json.fd < 0) return 0; /* none was asked for, or it was the report that was refused */
    int err = mx_run_json(c->run, why, &text);
    if (err == 0) err = mx_output_text(standard ? NULL : &c->json, "the report", text, why);
    free(text);
    mx_output_drop(&c->json);
    return err;
}

/* Whatever the end was, the report that was asked for tells it. Exit status. */
static int end(struct command *c, int err) {
    struct mx_run_end at;
    mx_why why = {""};
    err = mx_run_end_at(c->run, err, &c->why, &at);
    for (int i = 0; i < 2; i++)
        if (at.line[i][0] != 0 && mx_local_says_first(at.line[i])) say(c, at.line[i]);
    if (c->told && !c->o->dry_run && (err == 0 || err == -EINTR))
        mx_run_print_result(c->run, on_standard_output(c) ? stderr : stdout);
    const int reported = write_report(c, &why);
    if (reported < 0) say(c, why.text);
    if (at.different) return MX_EXIT_DIFFERENT;
    return mx_exit_status(err < 0 ? err : reported, at.moving);
}

/* ------------------------------------------------------------------ the run */

/* A thread has stopped at a page that cannot be read or written, so nothing can be closed in order. */
static void end_at_once(void *context, const char *sentence) {
    struct command *c = context;
    snprintf(c->why.text, sizeof c->why.text, "%.300s", sentence);
    end(c, -EIO);
    mx_run_abandon(c->run);
    _exit(MX_EXIT_IO);
}

/* A thread prepares, and waits for something that may never come. */
static void end_unprepared(struct command *c) {
    fprintf(stderr, "%s: interrupted while it prepared\n", c->program);
    mx_output_drop(&c->json);
    mx_run_abandon(c->run);
    _exit(MX_EXIT_INTERRUPTED);
}

static void show(struct command *c, const struct mx_run_progress *p) {
    if (p->n_phases != c->n_phases) {
        mx_progress_end(&c->bar);
        mx_progress_begin(&c->bar, c->program, p->phase, p->unit, p->total,
                          c->o->quiet || mx_run_rank(c->run) > 0);
        c->n_phases = p->n_phases;
    }
    c->bar.more = p->check_step >= 0 && strcmp(p->phase, "updates") == 0 ? p->check : NULL;
    if (p->total > 0) mx_progress_update(&c->bar, p->done);
}

static int run_to_its_end(struct command *c) {
    const double look_s = 0.1;
    struct mx_run_progress p = {.size = sizeof p};
    mx_signals_watch(end_at_once, c);
    int err = mx_run_start(c->run, &c->why), ended = err;
    while (ended == 0)
        if ((ended = mx_run_wait(c->run, look_s, &c->why, &p)) == 0) show(c, &p);
    mx_progress_end(&c->bar);
    mx_signals_unwatch();
    return err < 0 ? err : ended < 0 ? ended : 0;
}

static int open_report(struct command *c) {
    if (!mx_run_may_write_json(c->run) || on_standard_output(c)) return 0;
    return mx_output_open(c->o->json, "the report", MX_OUTPUT_REPLACE, &c->why, &c->json);
}

static int plan_and_run(struct command *c) {
    int err = mx_run_check_json_path(c->run, &c->why);
    if (err == 0) err = open_report(c);
    if (err < 0) return err;
    err = mx_run_prepare(c->run, &c->why);
    if (err < 0 && mx_signals_late()) end_unprepared(c);
    mx_signals_prepared();
    if (!mx_run_may_write_json(c->run)) mx_output_drop(&c->json);
    if (err < 0) return err;
    say_plan(c);
    return c->o->dry_run ? 0 : run_to_its_end(c);
}

/* --ranks P, by itself: this process becomes P of them. A launcher may have started it, if --link local says
 * so: shells of batch systems have the variables of one. */
static bool wants_processes(const struct mx_options *o) {
    const struct mx_link_ops *ops = mx_link_of_process();
    const bool local = o->link != NULL && strcmp(o->link, "local") == 0;
    const bool launched = ops != NULL && strcmp(ops->name, "local") != 0;
    return o->ranks > 1 && !o->dry_run && (ops == NULL ? o->link == NULL || local : launched && local);
}

/* Whatever a rank says, says which. */
static void name_rank(struct command *c) {
    snprintf(c->name, sizeof c->name, "%.40s: rank %d", c->program, mx_run_rank(c->run));
    c->program = c->name;
}

static int run(struct command *c, const struct mx_options *options, int err) {
    c->o = options;
    if (mx_run_make(options, say, c, &c->run) < 0) return MX_EXIT_REFUSED;
    if (options->calibrate) mx_signals_patience(MX_CALIBRATE_PATIENCE_S);
    mx_signals_stop(c->run);
    if (err == 0) err = mx_run_begin(c->run, mx_signals_late, &c->why);
    if (err == 0 && mx_run_rank(c->run) >= 0) name_rank(c);
    if (err == 0) err = plan_and_run(c);
    const int status = end(c, err);
    mx_run_set_status(c->run, status);
    mx_signals_stop(NULL);
    mx_output_drop(&c->json);
    mx_run_close(c->run);
    return status;
}

/* Only a file is written; nothing runs. */
static int write_job(const struct command *c, const struct mx_asked *asked,
                     const struct mx_options *options) {
    mx_why why = {""};
    const int err = mx_job_write(asked, options, &why);
    if (err < 0) fprintf(stderr, "%s: %s\n", c->program, why.text);
    return mx_exit_status(err, false);
}

int mx_cmd_run(int argc, char **argv) {
    /* hwloc opens its plugins to see what they are: libxml2 and ICU for a format that no run reads, 10 ms. */
    setenv("HWLOC_PLUGINS_PATH", "", 0);
    struct mx_options options;
    struct mx_asked asked = {.n = 0};
    const char *slash = strrchr(argv[0], '/');
    struct command c = {.json.fd = -1};
    c.program = strcmp(argv[0], "run") == 0 ? "memext run" : slash != NULL ? slash + 1 : argv[0];
    int status = MX_EXIT_REFUSED, err = mx_job_options(argc, argv, &c.why, &asked, &options);
    if (err == 1)
        status = mx_options_help(MX_CMD_RUN, options.topic);
    else if (err == 0 && options.write_job != NULL)
        status = write_job(&c, &asked, &options);
    else if (err < 0 || !wants_processes(&options) ||
             (err = mx_local_fork((int)options.ranks, &c.why, &status)) != 1)
        status = run(&c, &options, err);
    mx_asked_free(&asked);
    return status;
}
