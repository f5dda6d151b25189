/* run.c - memext run: the command from its options to its exit status. */
#include "cli/run.h"

#include "core/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool on_standard_output(const struct mx_run *r) {
    return r->o.json != NULL && strcmp(r->o.json, "-") == 0;
}

/* ------------------------------------------------------------------ what is said */

static void say_explanation(const struct mx_run *r) {
    char *text = r->o.explain ? mx_tune_explain(&r->request, &r->tuned) : NULL;
    if (text != NULL) fputs(text, stderr);
    free(text);
}

static void say_plan(struct mx_run *r) {
    FILE *to = on_standard_output(r) ? stderr : stdout;
    say_explanation(r);
    r->report.problem = r->o.problem;
    r->told = true;
    if (r->o.quiet) return;
    mx_report_print_plan(&r->report, to);
    fflush(to);
}

static void say_interrupted(const struct mx_run *r) {
    if (r->committed)
        fprintf(stderr, "%s: interrupted after step %lld of %lld; go on with --resume\n", r->program,
                (long long)r->note.time, (long long)r->o.problem.nt);
    else if (r->algorithm != NULL && !r->algorithm->resumable && r->report.seconds > 0)
        fprintf(stderr, "%s: interrupted; %s rewrites the Buffers in place and cannot be resumed\n",
                r->program, r->algorithm->name);
    else
        fprintf(stderr, "%s: interrupted before the first commit: there is nothing to go on with\n",
                r->program);
}

static void say_failed(struct mx_run *r, int err) {
    if (r->why.text[0] == 0) mx_fail(&r->why, err, "%s", strerror(-err));
    fprintf(stderr, "%s: %s\n", r->program, r->why.text);
    if (err < 0 && r->moving && r->committed)
        fprintf(stderr, "%s: step %lld of %lld is committed in %s; go on with --resume\n", r->program,
                (long long)r->note.time, (long long)r->o.problem.nt, r->report.device.place);
}

static const char *status_of(const struct mx_run *r, int err) {
    if (err == -EINTR) return "interrupted";
    if (err < 0) return "failed";
    if (r->o.dry_run) return "planned";
    return r->report.verified == 0 ? "different" : "done";
}

static int write_report(struct mx_run *r, mx_why *why) {
    FILE *stream = on_standard_output(r)     ? stdout
                   : r->outputs.json.fd >= 0 ? mx_output_stream(&r->outputs.json)
                                             : NULL;
    if (r->o.json == NULL || (stream == NULL && r->outputs.json.fd < 0)) return 0;
    if (stream == NULL) return mx_fail(why, -errno, "the report cannot be written: %s", strerror(errno));
    int err = mx_json_write(mx_report_json(&r->report), stream, why);
    if (stream != stdout && fclose(stream) != 0 && err == 0)
        err = mx_fail(why, -EIO, "the report cannot be written: %s", strerror(errno));
    if (err == 0 && stream != stdout) err = mx_output_publish(&r->outputs.json, "the report", why);
    mx_output_drop(&r->outputs.json);
    return err;
}

/* Whatever the end was, the report that was asked for tells it. */
static int report(struct mx_run *r, int err) {
    mx_why why = {""};
    struct mx_report *p = &r->report;
    p->problem = r->o.problem;
    p->status = status_of(r, err);
    p->error = (err < 0 && err != -EINTR) || p->verified == 0 ? r->why.text : NULL;
    p->peak_rss_bytes = mx_usage_peak_rss_bytes();
    p->init = r->o.init;
    p->input = r->o.input;
    p->fault_calls = r->o.fault != NULL ? (int64_t)mx_fault_calls_made() : 0;
    if (p->device.backend[0] == 0 && r->backend != NULL)
        snprintf(p->device.backend, sizeof p->device.backend, "%s", r->backend->name);
    if (!r->o.quiet && r->told && !r->o.dry_run && (err == 0 || err == -EINTR))
        mx_report_print_result(p, on_standard_output(r) ? stderr : stdout);
    int e = write_report(r, &why);
    if (e < 0) fprintf(stderr, "%s: %s\n", r->program, why.text);
    return e;
}

/* ------------------------------------------------------------------ the run */

/* A thread stands still in a page that cannot be had, so nothing can be closed in order: what was committed
 * is kept, the rest is not waited for. */
static void end_at_once(void *context, const char *sentence) {
    struct mx_run *r = context;
    mx_fail(&r->why, -EIO, "%.300s", sentence);
    say_failed(r, -EIO);
    report(r, -EIO);
    mx_output_drop(&r->outputs.result);
    mx_output_drop(&r->outputs.trace);
    mx_output_drop(&r->outputs.timeline);
    if (r->device != NULL) mx_device_abandon(r->device);
    _exit(MX_EXIT_IO);
}

static int plan_and_work(struct mx_run *r) {
    int err = mx_run_prepare(r);
    if (err == 0) err = mx_run_plan(r);
    if (err == 0 && !r->o.dry_run) err = mx_run_open_outputs(r);
    if (err == 0) err = mx_stopped();
    if (err < 0) return err;
    if (r->o.dry_run) return say_plan(r), 0;
    err = mx_run_open(r);
    if (err < 0) return err;
    say_plan(r);
    r->moving = true;
    mx_signals_watch(end_at_once, r);
    err = mx_run_work(r);
    mx_signals_unwatch();
    return err;
}

static int open_report(struct mx_run *r) {
    if (r->o.json == NULL || on_standard_output(r)) return 0;
    return mx_output_open(r->o.json, "the report", MX_OUTPUT_REPLACE, &r->why, &r->outputs.json);
}

static int end(struct mx_run *r, int err) {
    const bool different = err == 0 && r->report.verified == 0;
    if (err == -EINTR) say_interrupted(r);
    if ((err < 0 && err != -EINTR) || different) say_failed(r, err);
    int reported = report(r, err);
    if (different) return MX_EXIT_DIFFERENT;
    return mx_exit_status(err < 0 ? err : reported, r->moving);
}

int mx_cmd_run(int argc, char **argv) {
    struct mx_run *r = calloc(1, sizeof *r);
    if (r == NULL) return MX_EXIT_REFUSED;
    const char *slash = strrchr(argv[0], '/');
    r->program = strcmp(argv[0], "run") == 0 ? "memext run" : slash != NULL ? slash + 1 : argv[0];
    r->npy.fd = -1;
    r->report.verified = -1;
    r->outputs.result.fd = r->outputs.json.fd = r->outputs.timeline.fd = r->outputs.trace.fd = -1;
    int err = mx_options_parse(MX_CMD_RUN, argc, argv, &r->why, &r->o);
    if (err == 1) {
        mx_options_help(MX_CMD_RUN, r->program);
        free(r);
        return MX_EXIT_OK;
    }
    if (err == 0) err = mx_run_check_names(r);
    if (err == 0) err = open_report(r);
    if (err == 0) err = plan_and_work(r);
    int status = end(r, err);
    mx_run_close(r);
    free(r);
    return status;
}
