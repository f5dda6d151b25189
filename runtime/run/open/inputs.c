/* SPDX-License-Identifier: BSD-3-Clause */
/* inputs.c - what a run begins with, and where the fields of a system go. */
#include "run/open/open.h"

#include "files/field_words.h"
#include "run/open/identity.h"

int mx_run_open_source(struct mx_run *r) {
    const struct mx_problem *p = &r->o.problem;
    if (r->source.region == NULL) return 0;
    int err = mx_frame_take(&r->o.frames, &r->why, &r->made);
    if (err < 0) return err;
    struct mx_grid grid = mx_grid_of(p, r->made.kind == MX_FRAME_INCLUDED ? p->h : 0);
    r->input.h = p->h;
    err = r->source.open != NULL ? r->source.open(r->source.context, &grid, &r->why) : 0;
    if (err != 0) return err < 0 ? err : -EIO;
    r->source_open = true;
    grid.frame = r->made.kind == MX_FRAME_INCLUDED ? p->h : 0; /* not the source's to say */
    err = mx_take_grid(&r->o, r->source.name, &grid, &r->why);
    return err == 0 ? mx_frame_check(&r->made, "the grid", p->dtype, &r->why) : err;
}

/* Files first: extents may follow from them. */
int mx_run_open_fields(struct mx_run *r, bool former) {
    int err = mx_fields_open(&r->fields, &r->o.problem, former, &r->why);
    if (err < 0 || r->source.region == NULL) return err;
    return mx_fields_open_source(&r->fields, &r->o.problem, &r->source, &r->source_open, &r->why);
}

/* Of a new run of a system. */
int mx_run_take_fields(struct mx_run *r) {
    mx_fields_of(r->system, &r->fields);
    int err = mx_fields_take(&r->fields, &r->o, r->o.source || r->o.plan_only, r->system, &r->why);
    return err < 0 ? err : mx_run_open_fields(r, false);
}

/* Where the fields of a system go. */
int mx_run_take_sinks(struct mx_run *r) {
    const char *path[MX_FIELDS_MOST];
    int err = mx_fields_take_outputs(&r->fields, &r->o, &r->why, path);
    for (int32_t i = 0; i < r->fields.n && err == 0; i++) {
        struct mx_field_sink *s = &r->field_sink[i];
        s->path = path[i];
        if (s->path != NULL) mx_grid_file_sink(&s->file, s->path, r->o.overwrite, &s->sink);
    }
    return err;
}

/* The grid that the run began with is needed again by --verify alone. */
int mx_run_open_former_source(struct mx_run *r) {
    struct mx_input_identity now;
    int err = mx_run_open_source(r);
    if (err < 0 || r->o.input == NULL) return err;
    err = mx_input_look(r->input.npy.fd, r->input.npy.data_offset_bytes, r->o.input, &r->why, &now);
    if (err < 0 || mx_input_same(&r->note.identity, &now, true)) return err;
    return mx_fail(&r->why, -EINVAL, "%.300s has changed since the run began with it%s", r->o.input,
                   r->note.pending ? "" : ", so the result cannot be verified: leave --verify out");
}

int mx_run_ask_parts(struct mx_run *r) {
    int err = mx_parts_take(r);
    r->names_unknown &= err < 0;
    if (err == 0) err = mx_run_check_names(r); /* all that they read is known now */
    if (err == 0 && r->resumed) err = mx_run_same_points(r);
    return err < 0 ? err : mx_parts_check(r);
}
