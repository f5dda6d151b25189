/* SPDX-License-Identifier: BSD-3-Clause */
/* fuse.c - what is done while sweeps go on: decided, begun, ended. */
#include "run/work/fuse_private.h"

#include "core/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LONGEST_ROW_BYTES = 2 << 20, MADE_AGAIN_S = 30 };
static const char many_windows[] = "a sweep has too many levels for this analysis";

/* ------------------------------------------------------------------ what can be done at once */

static bool from_program(const struct mx_run *r) {
    if (r->system == NULL) return r->source.region != NULL && r->o.input == NULL;
    for (int32_t i = 0; i < r->fields.n; i++)
        if (r->fields.field[i].array == 0 && r->fields.field[i].program) return true;
    return false;
}

/* Whatever asks for sweeps that can be had only in Buffers: NULL = nothing. */
static const char *hindrance(const struct mx_run *r) {
    if (r->o.no_fuse) return "--no-fuse";
    if (r->backend->face != MX_FACE_TRANSFER) return "the backend maps its Buffers";
    if (r->accel != NULL) return "an accelerator computes the sweeps";
    if (!mx_run_resumable(r)) return "the algorithm rewrites its Buffers in place";
    if (r->tuned.shape.pairs) return "the kernel reads the old value of a cell";
    if (r->o.integrity || r->note.integrity_unit > 0) return "--integrity checks what is stored";
    if (r->request.reserve_paper) return "--reserve paper leaves no memory for it";
    return r->rest.nt == 0 ? "no step is left" : NULL;
}

static const char *source_hindrance(const struct mx_run *r) {
    const char *why = hindrance(r);
    if (why != NULL) return why;
    if (r->superseded != NULL) return "the run begins with the state of another store";
    if (r->recut.asked) return "the state must be divided among the ranks first";
    if (r->resumed && !r->note.pending) return "the run resumes from a stored state";
    if (mx_run_edits(r)) return "the run changes its state first";
    if (r->report.layout.row_bytes > LONGEST_ROW_BYTES) return "rows are longer than 2 MiB";
    return from_program(r) ? "a program gives the grid" : NULL;
}

static const char *result_hindrance(const struct mx_run *r) {
    const char *why = hindrance(r);
    if (why != NULL) return why;
    return mx_parts_hinder(r);
}

static const char *output_hindrance(const struct mx_run *r) {
    const char *why = result_hindrance(r);
    bool some = r->sink.region != NULL;
    if (why != NULL) return why;
    if (r->sink.region != NULL && r->sink.context != &r->output) return "a program takes the result";
    for (int32_t i = 0; i < r->fields.n; i++) some |= r->field_sink[i].path != NULL;
    return some ? NULL : "there is no output";
}

static bool say(const char *why, char out[80]) {
    snprintf(out, 80, "%s", why != NULL ? why : "");
    return why == NULL;
}

/* ------------------------------------------------------------------ fields */

static void take_fields(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    const struct mx_layout *l = &r->report.layout;
    u->n = mx_field_count(&r->o.problem, 0);
    if (r->system == NULL) {
        struct mx_run_field *f = &u->field[0].field;
        snprintf(f->name, sizeof f->name, "u");
        f->dtype = r->o.problem.dtype;
        f->init = r->source.region == NULL && r->o.init != NULL ? mx_init_find(r->o.init) : NULL;
        if (r->o.input != NULL) snprintf(f->path, sizeof f->path, "%.*s", MX_FIELD_PATH - 1, r->o.input);
        f->npy = r->input.npy;
        f->made = r->made;
        f->identity = r->note.identity;
    }
    for (int32_t i = 0; i < r->fields.n; i++) {
        const struct mx_run_field *f = &r->fields.field[i];
        if (f->array == 0) u->field[f->index].field = f->same_as >= 0 ? r->fields.field[f->same_as] : *f;
    }
    for (int32_t i = 0; i < u->n; i++) {
        struct mx_fuse_field *f = &u->field[i];
        f->offset_bytes = l->field_offset_bytes[0][i];
        if (f->field.init != NULL) continue;
        f->rows = f->field.npy.shape[1];
        f->row_cells = f->field.npy.shape[2];
    }
}

static void take_outputs(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    for (int32_t i = 0; i < u->n; i++) u->field[i].output = NULL;
    if (r->system == NULL && r->sink.region != NULL)
        u->field[0].output = &r->output.output, u->field[0].npy = &r->output.npy;
    for (int32_t i = 0; i < r->fields.n; i++) {
        struct mx_field_sink *s = &r->field_sink[i];
        const struct mx_run_field *f = &r->fields.field[i];
        if (f->array != 0 || s->path == NULL) continue;
        u->field[f->index].output = &s->file.output;
        u->field[f->index].npy = &s->file.npy;
    }
}

static int pending_changed(struct mx_run *r, const char *path) {
    return mx_fail(&r->why, -EINVAL,
                   "%.300s has changed since the run began with it, and nothing was committed before: start "
                   "again with --force instead of --resume",
                   path);
}

int mx_run_check_pending(struct mx_run *r) {
    for (int32_t i = 0; i < r->fuse.n; i++) {
        struct mx_run_field *f = &r->fuse.field[i].field;
        const struct mx_input_identity then = f->identity;
        if (f->init != NULL) continue;
        int err = mx_field_begin_in_place(f, &r->why);
        if (err < 0) return err;
        if (!mx_input_same(&then, &f->identity, true) || f->identity.sample != r->note.sample[i])
            return pending_changed(r, f->path);
    }
    return 0;
}

/* ------------------------------------------------------------------ decision */

static void leave_source(struct mx_run_fuse *u, const char *why) {
    u->source = say(why, u->no_source);
    u->saved_bytes = u->fed_bytes = u->init_bytes = u->init_read_bytes = 0;
}

static int decide_source(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    int err = mx_fuse_open_files(r);
    if (err == 0) err = mx_fuse_follow_first(r);
    if (err > 0) return leave_source(u, many_windows), 0;
    if (err < 0 || !r->tuned.shape.init_both) return err;
    u->init_bytes = r->n_buffers * mx_fuse_frame_rows(&r->o.problem) * r->report.layout.row_pitch_bytes;
    return mx_fuse_count_frames(r);
}

/* No store is kept, nobody reads the result from a Buffer, and making the last sweep again, should the output
 * not be had in the end, costs no more than what may be lost between two commits. */
static bool leaves_nothing_else(const struct mx_run *r) {
    struct stat st;
    return mx_run_seconds_a_sweep(r) < MADE_AGAIN_S && mx_run_takings(r) == 0 && !r->o.verify && !r->o.keep &&
           r->o.probes_out == NULL && r->o.path != NULL && stat(r->o.path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Rows that this rank writes of an output with its frame, twice where they have a copy. */
static int64_t rows_of_output(const struct mx_run *r) {
    const struct mx_problem *p = &r->o.problem;
    int64_t planes = 0;
    for (int64_t z = mx_fuse_first_own(p); z < mx_fuse_end_own(p); z++) planes += mx_fuse_places(r, z);
    return planes * (p->ny + 2 * mx_halo_y(p));
}

static int decide_result(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    const struct mx_problem *p = &r->o.problem;
    const int64_t h2 = 2 * (int64_t)p->h, rows = rows_of_output(r);
    struct mx_fuse_order o = {.interior_z = p->h, .file = true, .interior = true, .planes = true};
    o.next = calloc((size_t)p->nz, sizeof *o.next);
    if (o.next == NULL) return mx_fail(&r->why, -ENOMEM, "no memory to look at the last sweep");
    int err = mx_fuse_follow_last(r, &o);
    for (int64_t z = 0; z < p->nz; z++) o.planes &= o.next[z] == p->ny;
    free(o.next);
    if (err < 0) return err;
    if (err > 0) {
        u->checksum = u->checksum && say(many_windows, u->no_checksum);
        u->output = u->output && say(many_windows, u->no_output);
        return 0;
    }
    o.interior &= o.interior_z == p->nz + p->h;
    if (u->checksum) u->checksum = say(o.planes ? NULL : "rows are not stored in order", u->no_checksum);
    u->in_order = r->o.bare_output ? o.interior : o.file && o.rows == rows;
    u->add_frame = !r->o.bare_output && o.rows < rows;
    u->output_bytes = u->frame_read_bytes = 0;
    u->only = u->output && u->checksum && !u->add_frame && leaves_nothing_else(r);
    u->unstored_bytes = u->only ? o.bytes : 0;
    if (u->output && u->add_frame) {
        u->frame_read_bytes = mx_fuse_frame_rows(p) * r->report.layout.row_pitch_bytes;
        o.rows += mx_fuse_frame_rows_out(r);
    }
    for (int32_t i = 0; i < u->n && u->output; i++)
        if (u->field[i].output != NULL)
            u->output_bytes +=
                (mx_run_leads(r) ? MX_FUSE_HEAD_BYTES : 0) +
                o.rows * (p->nx + (r->o.bare_output ? 0 : h2)) * mx_dtype_bytes(u->field[i].field.dtype);
    return 0;
}

/* Two Buffers take turns, and the first sweep is said to read the first of them and writes the second. */
static int32_t unused_buffers(const struct mx_run *r) {
    const int64_t sweeps = mx_run_sweeps(r);
    return sweeps == 1 ? 2 : sweeps == 2 ? 1 : 0;
}

/* Ranks begin alike, and leave alike what a run could go on from. */
static int decide_together(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    bool reads = !u->source, stores = !u->only;
    int err = mx_run_agree_any(r, &reads);
    if (err == 0) err = mx_run_agree_any(r, &stores);
    if (err == 0 && reads && u->source) leave_source(u, "another rank cannot do it");
    if (err == 0 && stores && u->only) u->only = false, u->unstored_bytes = 0;
    return err;
}

int mx_run_decide_fuse(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    const bool again = r->resumed && r->note.pending;
    u->source = say(source_hindrance(r), u->no_source);
    u->checksum = say(result_hindrance(r), u->no_checksum);
    u->output = say(output_hindrance(r), u->no_output);
    u->only = false;
    u->unstored_bytes = u->saved_bytes = u->fed_bytes = u->init_bytes = u->init_read_bytes = u->output_bytes =
        0;
    if (!u->opened) take_fields(r);
    int err = again && !u->opened ? mx_run_check_pending(r) : 0;
    take_outputs(r);
    if (err == 0 && u->source) err = decide_source(r);
    if (err == 0 && (u->checksum || u->output)) err = decide_result(r);
    if (err == 0) err = decide_together(r);
    const bool empty = u->source && u->only && r->n_buffers == 2 && !r->tuned.shape.init_both;
    u->unused_buffers = empty ? unused_buffers(r) : 0;
    return err;
}

/* ------------------------------------------------------------------ begin and end */

int mx_run_begin_fuse(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    int err = u->source ? mx_fuse_open_staging(r) : 0;
    u->unfinished = u->source;
    if (err == 0 && u->checksum) {
        u->digest = calloc((size_t)r->o.problem.nz, sizeof *u->digest);
        if (u->digest == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the checksum");
    }
    if (err == 0 && u->output) err = mx_fuse_open_writers(r);
    u->taking = (struct mx_taking){.every = r->o.problem.nt,
                                   .stride = 1,
                                   .box = mx_fuse_take_box,
                                   .only = u->only,
                                   .whole = mx_fuse_take_whole,
                                   .context = r};
    return err;
}

const uint64_t *mx_run_fuse_digests(const struct mx_run *r) {
    return r->fuse.checksum && r->fuse.whole ? r->fuse.digest : NULL;
}

static int end_output(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    int err = u->add_frame ? mx_fuse_output_frames(r) : 0;
    for (int32_t i = 0; i < u->n; i++) {
        struct mx_fuse_field *f = &u->field[i];
        if (f->writer == NULL) continue;
        u->written_bytes += (int64_t)mx_writer_bytes(f->writer);
        const int closed = mx_writer_close(f->writer, err == 0);
        f->writer = NULL;
        if (err == 0 && closed < 0)
            err = mx_fail(&r->why, closed, "the result cannot be written to %.300s: %s", f->output->path,
                          strerror(-closed));
    }
    return err;
}

int mx_run_end_fuse(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    mx_block_free(u->staging);
    u->staging = NULL;
    if (!u->output || !u->whole) return 0;
    const int err = end_output(r);
    if (err == 0 || err == -EINTR) return err;
    u->output_err = err;
    u->output_why = r->why;
    r->why.text[0] = 0;
    return 0;
}

void mx_run_drop_fuse(struct mx_run *r) {
    for (int32_t i = 0; i < r->fuse.n; i++) {
        mx_writer_close(r->fuse.field[i].writer, false);
        r->fuse.field[i].writer = NULL;
    }
}

void mx_run_release_fuse(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    mx_run_drop_fuse(r);
    mx_block_free(u->staging);
    u->staging = NULL;
    for (int32_t i = 0; i < u->n; i++) {
        struct mx_fuse_field *f = &u->field[i];
        mx_buffer_close(f->file);
        mx_device_close(f->device);
        f->file = NULL, f->device = NULL;
    }
    free(u->digest);
    u->digest = NULL;
}
