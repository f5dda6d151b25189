/* SPDX-License-Identifier: BSD-3-Clause */
/* notes.c - what the note of a run says. */
#include "run/work/work.h"

#include "core/device.h"
#include "grid/array.h"
#include "machine/minmax.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

/* What a program says of the values that it gives. */
static int name_given(struct mx_run *r) {
    struct mx_note *n = &r->note;
    int err = 0;
    if (r->source.identity == NULL) return 0;
    if (r->system == NULL) {
        err = r->source.identity(r->source.context, "", &n->identity.sample, &r->why);
        n->identity.sampled = err == 0;
    }
    for (int32_t i = 0; i < n->fields.n && err == 0; i++) {
        struct mx_run_field *f = &n->fields.field[i];
        if (!f->program) continue;
        err = r->source.identity(r->source.context, f->name, &f->identity.sample, &r->why);
        f->identity.sampled = err == 0;
    }
    return err > 0 ? -EIO : err;
}

/* The values that the state rests on: they are the same when the run goes on. */
static void note_series(struct mx_run *r) {
    struct mx_note *n = &r->note;
    if (r->system == NULL) return;
    n->n_series = r->system->n_series;
    for (int32_t i = 0; i < n->n_series; i++) {
        const struct mx_series *q = &r->system->series[i];
        struct mx_note_series *to = &n->series[i];
        const int64_t steps = mx_min(mx_max(n->time, n->before_time), q->n);
        snprintf(to->name, sizeof to->name, "%s", r->system->param_name[q->param]);
        snprintf(to->path, sizeof to->path, "%s", q->path);
        to->steps = steps;
        to->hash = XXH3_64bits(q->value, (size_t)(steps * mx_series_each(q)) * sizeof *q->value);
    }
}

int mx_run_begin_note(struct mx_run *r) {
    struct mx_note *n = &r->note;
    n->problem = r->o.problem;
    n->layout = r->report.layout;
    n->sides = r->whole.sides;
    mx_run_number(r, &n->rank, &n->ranks);
    n->started_s = (int64_t)time(NULL);
    n->framed = 0;
    if (r->superseded != NULL) mx_note_follow(&r->superseded->note, &n->former);
    const int numbered = mx_run_agree_number(r, &n->run);
    if (numbered < 0) return numbered;
    if (r->system != NULL) {
        n->system = *r->system;
        n->system.n_series = 0; /* they end with the kernel, and so do values of profiles */
        for (int32_t i = 0; i < n->system.n_fixed; i++) n->system.profile[i].memory = NULL;
        n->problem.system = &n->system;
        note_series(r);
        n->fields = r->fields;
        for (int i = 0; i < n->fields.n; i++) n->fields.field[i].npy.fd = -1;
        if (realpath(r->o.kernel, n->kernel) == NULL)
            return mx_fail(&r->why, -errno, "%.300s cannot be named in the store: %s", r->o.kernel,
                           strerror(errno));
    }
    if (r->o.init != NULL) snprintf(n->init, sizeof n->init, "%s", r->o.init);
    int err = mx_frame_print(&r->o.frames, n->frame, &r->why);
    if (err < 0) return err;
    snprintf(n->raw, sizeof n->raw, "%s", r->input_raw);
    if (r->o.source) {
        snprintf(n->source, sizeof n->source, "%s", r->source.name);
        return name_given(r);
    }
    if (r->o.input == NULL) return 0;
    err = mx_array_real(r->o.input, n->input);
    if (err < 0)
        return mx_fail(&r->why, err, "%.300s cannot be named in the store: %s", r->o.input, strerror(-err));
    return mx_input_look(r->input.npy.fd, r->input.npy.data_offset_bytes, r->o.input, &r->why, &n->identity);
}

/* What a resumed run may have changed. */
void mx_run_renew_note(struct mx_run *r) {
    struct mx_note *n = &r->note;
    n->keep = r->o.keep;
    n->ignores_nonfinite = r->finite.ignored;
    n->dram_bytes = r->o.dram_bytes;
    n->plan = r->report.plan;
    mx_parts_note(r);
    n->n_buffers = r->n_buffers;
    n->commit_every = r->commit_every_s;
    for (int32_t i = 0; i < r->fields.n; i++) {
        struct mx_run_field *f = &n->fields.field[i];
        if (!r->fields.field[i].in_place) continue;
        *f = r->fields.field[i]; /* it may be elsewhere now */
        f->npy.fd = -1;
    }
    snprintf(n->backend, sizeof n->backend, "%s", r->backend->name);
    gethostname(n->host, sizeof n->host - 1);
    for (char *c = n->host; *c != 0; c++)
        if (*c < 0x20 || *c > 0x7e) *c = '?';
}

/* Before anything is touched: paths may be longer than a note. */
int mx_run_check_note(struct mx_run *r) {
    enum { MORE_BYTES = 512 }; /* of numbers, a checksum, another plan */
    char text[MX_NOTE_BYTES];
    if (r->resumed && r->o.edit_params.n > 0 &&
        mx_note_print(&r->note, text, sizeof text - MORE_BYTES) == -ENOSPC)
        return mx_fail(&r->why, -ENAMETOOLONG,
                       "a store describes its run in at most %d bytes, and the values of --edit-param do not "
                       "fit: change fewer parameters",
                       (int)sizeof text - MORE_BYTES);
    if (r->resumed || r->backend->anonymous) return 0;
    int err = mx_run_begin_note(r);
    if (err < 0) return err;
    mx_run_renew_note(r);
    r->note.pending = r->fuse.source;
    if (mx_note_print(&r->note, text, sizeof text - MORE_BYTES) != -ENOSPC) return 0;
    return mx_fail(&r->why, -ENAMETOOLONG,
                   "the input paths are longer than the store can hold (its description of the run has at "
                   "most %d bytes): use shorter paths",
                   (int)sizeof text - MORE_BYTES);
}

int mx_run_write_note(struct mx_run *r) {
    char text[MX_NOTE_BYTES];
    r->note.committed_s = (int64_t)time(NULL);
    note_series(r);
    int n = mx_note_print(&r->note, text, sizeof text);
    return n < 0 ? n : mx_device_commit(r->device, text, (size_t)n);
}

/* Makes the note of a store of a new cut, with which the run continues. */
int mx_run_turn_note(struct mx_run *r) {
    struct mx_note *n = &r->note;
    n->problem = r->o.problem;
    if (r->system != NULL) n->problem.system = &n->system;
    n->layout = r->report.layout;
    mx_run_number(r, &n->rank, &n->ranks);
    n->cut = r->recut.to;
    n->framed = 0;
    return mx_run_agree_number(r, &n->run);
}
