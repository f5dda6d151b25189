/* SPDX-License-Identifier: BSD-3-Clause */
/* sinks.c - files that the result, the timeline and the trace go to. */
#include "run/open/open.h"

#include <stdio.h>

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
        err = mx_run_open_joint(r, &s->file, &s->sink, &grid);
        s->open = err == 0;
    }
    return err;
}

static int open_sink(struct mx_run *r) {
    const struct mx_problem *p = &r->whole;
    if (r->system != NULL) return open_field_sinks(r);
    struct mx_grid grid = mx_grid_of(p, r->o.bare_output ? 0 : p->h);
    if (r->sink.region == NULL) return 0;
    int err = r->sink.open != NULL ? mx_run_open_joint(r, &r->output, &r->sink, &grid) : 0;
    if (err != 0) return err < 0 ? err : -EIO;
    r->sink_open = true;
    return 0;
}

/* The file of an output, or NULL: number i; 0 is that of a built-in stencil, others are of fields. */
static const char *output_path(const struct mx_run *r, int32_t i) {
    if (i > 0) return r->system != NULL ? r->field_sink[i - 1].path : NULL;
    return r->system == NULL && r->sink.region != NULL ? r->output.path : NULL;
}

int mx_run_ask_outputs(struct mx_run *r) {
    const unsigned how = MX_OUTPUT_SEEK | (r->o.overwrite ? MX_OUTPUT_REPLACE : 0);
    const struct mx_options *o = &r->o;
    int err = 0;
    for (int32_t i = 0; i <= r->fields.n && err == 0; i++)
        if (output_path(r, i) != NULL) err = mx_output_ask(output_path(r, i), "the result", how, &r->why);
    if (err == 0 && o->probes_out != NULL && !r->resumed)
        err = mx_output_ask(o->probes_out, "the traces", r->o.overwrite ? MX_OUTPUT_REPLACE : 0, &r->why);
    if (err == 0 && o->timeline != NULL)
        err = mx_output_ask(o->timeline, "the timeline", MX_OUTPUT_REPLACE, &r->why);
    return err == 0 && o->trace != NULL ? mx_output_ask(o->trace, "the trace", MX_OUTPUT_REPLACE, &r->why)
                                        : err;
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
