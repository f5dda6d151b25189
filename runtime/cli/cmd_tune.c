/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_tune.c - memext tune: the plan of a run on this machine or a described one. A run is planned and not
 * begun: what `memext run` does with the same words is planned by the same code. Prints a file that `memext
 * run --plan` takes: comments and one plan line. */
#include "ask/size.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "machine/size.h"
#include "run/run.h"

#include <memext/backend.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tune {
    struct mx_options o;
    mx_why why;
    mx_run *run;
    json_t *report; /* of the planned run */
};

static void say(void *context, const char *sentence) {
    (void)context;
    fprintf(stderr, "memext tune: %s\n", sentence);
}

/* ------------------------------------------------------------------ text */

static void print_comment(const char *text) {
    for (const char *end; *text != 0; text = *end != 0 ? end + 1 : end) {
        end = text + strcspn(text, "\n");
        printf("#%s%.*s\n", end > text ? " " : "", (int)(end - text), text);
    }
}

static long long whole(const json_t *object, const char *key) {
    return json_integer_value(json_object_get(object, key));
}

static double number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

/* A size that was found, and the engine's own choice where it differs. */
static void print_size(const char *name, long long found, long long own, const char *end) {
    printf(" %s %lld", name, found > 0 ? found : own);
    if (found > 0 && found != own) printf(" (own choice %lld)", own);
    printf("%s", end);
}

/* What a search for sizes of the tiled engine found. */
static void print_refined(const json_t *sizes) {
    if (json_object_get(sizes, "own_slab") == NULL) {
        printf("# engine tiled: its own choice of sizes; others are tried of built-in stencils, if DRAM and "
               "rows are large enough\n");
        return;
    }
    printf("# engine tiled:");
    print_size("slab", whole(sizes, "slab"), whole(sizes, "own_slab"), ",");
    print_size("tile", whole(sizes, "tile"), whole(sizes, "own_tile"), ",");
    print_size("ct", whole(sizes, "ct"), whole(sizes, "own_ct"), "");
    if (whole(sizes, "slab") == 0)
        printf(" (own choice; %lld tried)\n", whole(sizes, "tried"));
    else
        printf(": %.2f times as fast; %lld tried\n", number(sizes, "gain"), whole(sizes, "tried"));
}

static void print_summary(const json_t *r) {
    const json_t *search = json_object_get(r, "search");
    printf("# reads %s, writes %s; %s of DRAM of %s; about %.1f s; %lld plans looked at in %.2f ms\n",
           mx_size((uint64_t)whole(r, "predicted_read_bytes")).text,
           mx_size((uint64_t)whole(r, "predicted_write_bytes")).text,
           mx_size((uint64_t)whole(r, "dram_used_bytes")).text,
           mx_size((uint64_t)whole(r, "dram_for_blocks_bytes")).text, number(r, "predicted_seconds"),
           whole(search, "evaluated"), number(search, "seconds") * 1e3);
}

static int print_text(struct tune *t) {
    const struct mx_options *o = &t->o;
    char *text = NULL;
    const int err = o->explain ? mx_run_explain(t->run, &t->why, &text) : 0;
    if (err < 0) return err;
    if (text != NULL) print_comment(text);
    if (text == NULL && !o->quiet) print_summary(t->report);
    if (o->calibrate && !(o->calibrate_s > 0) && !o->quiet)
        print_refined(json_object_get(json_object_get(t->report, "rates"), "tiled_sizes"));
    printf("%s\n", json_string_value(json_object_get(t->report, "plan_line")));
    free(text);
    return 0;
}

/* ------------------------------------------------------------------ the command */

static int plan(struct tune *t) {
    char *text = NULL;
    int err = mx_run_make(&t->o, say, t, &t->run);
    if (err < 0) return mx_fail(&t->why, err, "no memory for a run");
    err = mx_run_prepare(t->run, &t->why);
    if (err == 0) err = mx_run_report(t->run, &t->why, &text);
    if (err < 0) return err;
    t->report = json_loads(text, 0, NULL);
    free(text);
    return t->report != NULL ? 0 : mx_fail(&t->why, -ENOMEM, "no memory for the report of a plan");
}

int mx_cmd_tune(int argc, char **argv) {
    if (mx_wavefront_is_meant(argc, argv)) return mx_cmd_tune_wavefront(argc, argv);
    struct tune *t = calloc(1, sizeof *t);
    if (t == NULL) return MX_EXIT_REFUSED;
    int err = mx_options_parse(MX_CMD_TUNE, argc, argv, &t->why, &t->o);
    if (err == 1) {
        const int status = mx_options_help(MX_CMD_TUNE, t->o.topic);
        free(t);
        return status;
    }
    if (t->o.calibrate) mx_signals_patience(MX_CALIBRATE_PATIENCE_S);
    if (err == 0) err = plan(t);
    if (err == 0 && (t->o.json == NULL || strcmp(t->o.json, "-") != 0)) err = print_text(t);
    if (err == 0 && t->o.json != NULL) err = mx_write_json(json_incref(t->report), t->o.json, &t->why);
    if (err < 0) fprintf(stderr, "memext tune: %s\n", t->why.text);
    json_decref(t->report);
    mx_run_close(t->run);
    free(t);
    return mx_exit_status(err, false);
}
