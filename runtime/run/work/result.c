/* SPDX-License-Identifier: BSD-3-Clause */
/* result.c - the result, to files or to a program. */
#include "run/work/work.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int hand_over_plane(void *context, int64_t z, char *plane) {
    struct mx_run *r = context;
    struct mx_grid_box box;
    if (!mx_run_box_out(r, r->o.problem.dtype, z, plane, &box)) return 0;
    return mx_run_give_planes(r, &r->sink, z, &box);
}

/* The result is whole. */
static int close_sink(struct mx_run *r) {
    r->sink_open = false;
    int err = r->sink.close != NULL ? r->sink.close(r->sink.context, true, &r->why) : 0;
    return err > 0 ? -EIO : err;
}

/* A plane of one array, to the files of its fields, or a program's sink. */
struct fields_out {
    struct mx_run *run;
    int array;  /* the fields that are A's or B's by name */
    int stored; /* the array that holds them now: leapfrog's change places with every step */
};

static int hand_over_fields(void *context, int64_t z, char *plane) {
    const struct fields_out *o = context;
    struct mx_run *r = o->run;
    int err = 0;
    for (int32_t i = 0; i < r->fields.n && err == 0; i++) {
        const struct mx_run_field *f = &r->fields.field[i];
        const struct mx_field_sink *s = &r->field_sink[i];
        if ((!s->open && !r->sink_open) || f->array != o->array) continue;
        struct mx_grid_box box;
        char *at = plane + r->report.layout.field_offset_bytes[o->stored][f->index];
        const struct mx_sink *sink = s->open ? &s->sink : &r->sink;
        if (!mx_run_box_out(r, f->dtype, z, at, &box)) continue;
        box.field = f->name;
        err = mx_run_give_planes(r, sink, z, &box);
    }
    return err;
}

/* The last sweep may have written all of it. */
static bool is_written(const struct mx_run *r) { return r->fuse.output && r->fuse.whole; }

static int writing_failed(struct mx_run *r) {
    if (r->fuse.output_err < 0) r->why = r->fuse.output_why;
    return r->fuse.output_err;
}

static int hand_over_array(struct mx_run *r, int array) {
    const bool leapfrog = mx_form(&r->o.problem) == MX_LEAPFROG;
    struct fields_out o = {r, array, leapfrog ? array ^ mx_run_state_array(r) : array};
    bool wanted = false;
    for (int32_t i = 0; i < r->fields.n; i++)
        wanted |= (r->field_sink[i].open || r->sink_open) && r->fields.field[i].array == array;
    if (!wanted) return 0;
    return mx_run_pass_grid(r, "output", mx_run_buffer(r, r->result, o.stored), false, hand_over_fields, &o);
}

/* All files of a system are whole before the first of them appears. */
static int hand_over_system(struct mx_run *r) {
    int err = is_written(r) ? writing_failed(r) : hand_over_array(r, 0);
    if (err == 0 && !is_written(r)) err = hand_over_array(r, 1);
    if (err == 0) err = mx_run_first_waits(r);
    for (int32_t i = 0; i < r->fields.n && err == 0; i++) {
        struct mx_field_sink *s = &r->field_sink[i];
        if (!s->open) continue;
        s->open = false;
        err = s->sink.close(s->sink.context, true, &r->why);
    }
    if (err == 0 && r->sink_open) err = close_sink(r);
    return err < 0 ? err : mx_run_others_wait(r);
}

static int hand_over_grid(struct mx_run *r) {
    int err = is_written(r) ? writing_failed(r)
                            : mx_run_pass_grid(r, "output", r->buffer[r->result], false, hand_over_plane, r);
    if (err == 0) err = mx_run_first_waits(r);
    if (err == 0) err = close_sink(r);
    return err < 0 ? err : mx_run_others_wait(r);
}

/* A result that differs from the plain computation is none. */
int mx_run_hand_over_result(struct mx_run *r) {
    if ((!r->sink_open && r->system == NULL) || r->report.verified == 0) return 0;
    int err = r->system != NULL ? hand_over_system(r) : hand_over_grid(r);
    if (err < 0 && err != -EINTR && r->report.device.durable) {
        mx_why reason = r->why;
        mx_fail(&r->why, err,
                r->fuse.only
                    ? "%.300s; compute the last sweep again with memext run --resume -d %.150s --output FILE"
                    : "%.300s; the store still has the result: memext export %.150s -o FILE",
                reason.text[0] != 0 ? reason.text : strerror(-err), mx_run_committed_place(r));
    }
    return err;
}
