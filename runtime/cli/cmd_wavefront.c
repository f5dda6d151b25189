/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_wavefront.c - memext wavefront, and memext tune --wavefront: options in, exit status out. */
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "files/output.h"
#include "machine/machine.h"
#include "observe/report.h"
#include "wavefront/run.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct command {
    const char *program;
    struct mx_wf_options o;
    mx_wf_run *run;
    struct mx_progress progress;
    const char *label;
    mx_why why;
};

/* ------------------------------------------------------------------ options */

/* NAME=FILE; a word without a matrix's name before a '=' is the file of za. */
static int take_matrix(const char *option, const char *word, const char **files, mx_why *why) {
    const char *file = word;
    int m = MX_WF_ZA;
    const char *equal = strchr(word, '=');
    if (equal != NULL && memchr(word, '/', (size_t)(equal - word)) == NULL) {
        for (m = 0; m < MX_WF_MATRICES; m++)
            if (strlen(mx_wf_names[m]) == (size_t)(equal - word) &&
                strncmp(mx_wf_names[m], word, (size_t)(equal - word)) == 0)
                break;
        if (m == MX_WF_MATRICES)
            return mx_fail(why, -EINVAL, "--%s '%.60s': a matrix is za, zr, zb, zu, zv or zz", option, word);
        file = equal + 1;
    }
    if (file[0] == 0) return mx_fail(why, -EINVAL, "--%s '%.60s' names no file", option, word);
    if (files[m] != NULL) return mx_fail(why, -EINVAL, "--%s is given twice for %s", option, mx_wf_names[m]);
    files[m] = file;
    return 0;
}

static int take_matrices(const char *option, const struct mx_words *words, const char **files, mx_why *why) {
    int err = 0;
    for (int32_t i = 0; i < words->n && err == 0; i++) err = take_matrix(option, words->word[i], files, why);
    return err;
}

/* mmap is advised by the schedule unless something else is asked for. */
static int take_advice(const struct mx_options *o, mx_why *why, enum mx_advice *out) {
    const char *backend = o->backend != NULL ? o->backend : "";
    const bool mapped = strstr(backend, "mmap") != NULL, given = mx_option_given(o, "advice");
    if (given && !mapped && strcmp(backend, "swap") != 0)
        return mx_fail(why, -EINVAL,
                       "--advice is for memory that the kernel pages: mmap and swap; leave it out");
    *out = mapped && !given ? MX_ADVICE_SCHEDULE : o->advice;
    return 0;
}

static int take(struct command *c, const struct mx_options *o) {
    c->o =
        (struct mx_wf_options){.rows = o->wavefront.rows,
                               .cols = o->wavefront.cols,
                               .iterations = mx_option_given(o, "iterations") ? o->wavefront.iterations : -1,
                               .layout = o->wavefront.layout,
                               .mb = o->wavefront.mb,
                               .nb = o->wavefront.nb,
                               .waves = o->wavefront.waves,
                               .ahead = o->wavefront.ahead,
                               .threads = (int32_t)o->threads,
                               .path = o->path,
                               .backend = o->backend,
                               .init = o->init,
                               .json = o->json,
                               .timeline = o->timeline,
                               .trace = o->trace,
                               .dram_bytes = o->dram_bytes,
                               .unchained = o->wavefront.unchained,
                               .sequential = o->wavefront.sequential,
                               .verify = o->verify,
                               .resume = o->resume,
                               .keep = o->keep,
                               .force = o->force,
                               .no_lock = o->no_lock,
                               .overwrite = o->overwrite,
                               .dry_run = o->dry_run,
                               .quiet = o->quiet,
                               .queue_depth = (uint32_t)o->queue_depth,
                               .request_bytes = (uint32_t)o->request_bytes,
                               .workers = (uint32_t)o->workers,
                               .fault = o->fault,
                               .read_bw = o->read_bw,
                               .write_bw = o->write_bw,
                               .rate = o->rate};
    int err = take_matrices("input", &o->inputs, c->o.inputs, &c->why);
    return err == 0 ? take_matrices("output", &o->outputs, c->o.outputs, &c->why) : err;
}

/* 0, 1 = help was printed, with `status`, or an error. */
static int parse(struct command *c, enum mx_command command, int argc, char **argv, int *status) {
    struct mx_options o;
    int err = mx_options_parse(command, argc, argv, &c->why, &o);
    if (err == 1) return *status = mx_options_help(command, o.topic), 1;
    if (err == 0) err = take(c, &o);
    return err == 0 && command == MX_CMD_WAVEFRONT ? take_advice(&o, &c->why, &c->o.advice) : err;
}

/* ------------------------------------------------------------------ the run */

static void on_progress(void *context, const char *label, int64_t done, int64_t total) {
    struct command *c = context;
    if (c->label != label) {
        mx_progress_end(&c->progress);
        mx_progress_begin(&c->progress, c->program, label, "updates", total, c->o.quiet);
        c->label = label;
    }
    mx_progress_update(&c->progress, done);
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

/* A page of a mapping that cannot be had: nothing can be closed in order. */
static void end_at_once(void *context, const char *sentence) {
    struct command *c = context;
    mx_why why;
    fprintf(stderr, "%s: %s\n", c->program, sentence);
    mx_wf_run_abandon(c->run);
    mx_wf_run_report(c->run, -EIO, NULL, &why);
    _exit(MX_EXIT_IO);
}

static int run(struct command *c) {
    int err = mx_wf_run_create(&c->o, &mx_stop, on_progress, c, &c->why, &c->run);
    if (err < 0) return say(c, err), MX_EXIT_REFUSED;
    mx_signals_watch(end_at_once, c);
    err = mx_wf_run_work(c->run, summary(c));
    mx_signals_unwatch();
    mx_progress_end(&c->progress);
    say(c, err);
    int reported = mx_wf_run_report(c->run, err, summary(c), &c->why);
    if (reported < 0) fprintf(stderr, "%s: %s\n", c->program, c->why.text);
    const bool different = err == 0 && mx_wf_run_verified(c->run) == 0;
    const int status =
        different ? MX_EXIT_DIFFERENT : mx_exit_status(err < 0 ? err : reported, mx_wf_run_moving(c->run));
    mx_wf_run_close(c->run);
    return status;
}

int mx_cmd_wavefront(int argc, char **argv) {
    struct command c = {.program = "memext wavefront"};
    int status = MX_EXIT_OK, err = parse(&c, MX_CMD_WAVEFRONT, argc, argv, &status);
    if (err == 1) return status;
    if (err < 0) return say(&c, err), MX_EXIT_REFUSED;
    return run(&c);
}

/* ------------------------------------------------------------------ memext tune --wavefront */

static int make_request(struct command *c, struct mx_wf_request *q) {
    const struct mx_wf_options *o = &c->o;
    struct mx_machine machine;
    int layout = MX_WF_FRONTIER, err = mx_machine_detect(&c->why, &machine);
    if (err < 0) return err;
    if (o->layout != NULL)
        for (layout = 0; layout < MX_WF_LAYOUTS && strcmp(o->layout, mx_wf_layouts[layout]) != 0; layout++) {
        }
    if (layout == MX_WF_LAYOUTS)
        return mx_fail(&c->why, -EINVAL, "--layout '%s' is not known; it is row, block or frontier",
                       o->layout);
    if (o->rows == 0 || o->iterations < 0)
        return mx_fail(&c->why, -EINVAL, "say what to plan for: -n ROWS COLS --iterations K");
    const uint64_t visible = mx_machine_dram_bytes(&machine);
    *q = (struct mx_wf_request){.rows = o->rows,
                                .cols = o->cols,
                                .iterations = o->iterations,
                                .layout = (enum mx_wf_layout)layout,
                                .align_bytes = 4096,
                                .dram_bytes = o->dram_bytes > 0
                                                  ? o->dram_bytes
                                                  : visible - mx_machine_reserve_auto(&machine, visible),
                                .threads = o->threads > 0 ? o->threads : machine.cores,
                                .mb = o->mb,
                                .nb = o->nb,
                                .waves = o->waves,
                                .ahead = o->ahead,
                                .unchained = o->unchained,
                                .read_bytes_per_s = o->read_bw,
                                .write_bytes_per_s = o->write_bw,
                                .updates_per_s = o->rate};
    return 0;
}

bool mx_wavefront_is_meant(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--wavefront") == 0) return true;
    return false;
}

/* The word --wavefront itself is left out before the others are read. */
int mx_cmd_tune_wavefront(int argc, char **argv) {
    struct command c = {.program = "memext tune"};
    struct mx_wf_request q;
    struct mx_wf_choice choice;
    char **words = calloc((size_t)argc + 1, sizeof *words);
    int n = 0;
    if (words == NULL) return MX_EXIT_REFUSED;
    for (int i = 0; i < argc; i++)
        if (i == 0 || strcmp(argv[i], "--wavefront") != 0) words[n++] = argv[i];
    int status = MX_EXIT_OK, err = parse(&c, MX_CMD_TUNE_WAVEFRONT, n, words, &status);
    if (err == 0) err = make_request(&c, &q);
    if (err == 0) err = mx_wf_tune(&q, &c.why, &choice);
    if (err == 0 && summary(&c) != NULL) mx_wf_print_choice(&q, &choice, summary(&c));
    if (err == 0 && c.o.json != NULL) err = mx_write_json(mx_wf_json_choice(&q, &choice), c.o.json, &c.why);
    if (err < 0) say(&c, err);
    free(words);
    return err == 1 ? status : mx_exit_status(err, false);
}
