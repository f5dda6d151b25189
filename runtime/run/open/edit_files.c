/* SPDX-License-Identifier: BSD-3-Clause */
/* edit_files.c - fields that get other values when a run goes on: which, and from where (--edit-input,
 * mx_run_edit). */
#include "run/open/open.h"

#include "files/field_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All fields, none of which has values yet. */
static void fields_of(const struct mx_run *r, struct mx_run_fields *out) {
    out->n = 0;
    for (int32_t i = 0; i < r->fields.n || (i == 0 && r->system == NULL); i++) {
        const struct mx_run_field *from = r->system != NULL ? &r->fields.field[i] : NULL;
        struct mx_run_field *f = &out->field[out->n++];
        *f = (struct mx_run_field){.name = "u", .dtype = r->o.problem.dtype, .same_as = -1, .npy.fd = -1};
        if (from == NULL) continue;
        memcpy(f->name, from->name, sizeof f->name);
        f->dtype = from->dtype;
        f->array = from->array;
        f->index = from->index;
    }
}

/* Those whose values the program has. */
static int take_names(struct mx_run *r, struct mx_run_fields *files) {
    for (int32_t k = 0; k < r->edit.n_names; k++) {
        struct mx_run_field *f = NULL;
        for (int32_t i = 0; i < files->n; i++)
            if (files->field[i].array == MX_FIELD_OF_C && strcmp(files->field[i].name, r->edit.name[k]) == 0)
                f = &files->field[i];
        if (f == NULL)
            return mx_fail(&r->why, -EINVAL,
                           "'%s' is not a read-only field of the run, so it cannot get values",
                           r->edit.name[k]);
        f->program = true;
        f->made = (struct mx_frame){.kind = MX_FRAME_INCLUDED};
    }
    return 0;
}

static int refuse_in_place(struct mx_run *r, const struct mx_run_field *f) {
    return mx_fail(
        &r->why, -ENOTSUP,
        "the field %s cannot be changed: it is not in the store, and the run reads it from %.300s%s. Begin "
        "the run with --field-copy and a file of all cells to be able to change it",
        f->name, f->path, f->alike != 0 ? " and keeps it in DRAM" : "");
}

/* A field of C that is read around the cell needs its frame. */
static int check_frame(struct mx_run *r, const struct mx_run_field *f) {
    if (f->program || f->frame || r->system->hc == 0 || f->made.kind != MX_FRAME_INCLUDED) return 0;
    return mx_fail(&r->why, -EINVAL,
                   "%.200s has no frame, and the kernel reads neighbours of a cell in %s: give a file with a "
                   "frame of %d cells",
                   f->path, f->name, r->o.problem.h);
}

static int take_one(struct mx_run *r, struct mx_run_field *f, const struct mx_run_field *now) {
    const bool of_c = f->array == MX_FIELD_OF_C;
    if (f->path[0] == 0 && !f->program) return 0;
    if (of_c && now->in_place) return refuse_in_place(r, now);
    int err = f->path[0] != 0 ? mx_field_open_edit(f, &r->o.problem, &r->why) : 0;
    if (err == 0 && of_c) err = check_frame(r, f);
    if (of_c)
        r->edit.fixed |= UINT32_C(1) << f->index;
    else
        r->edit.state = true;
    return err;
}

int mx_run_take_edit_files(struct mx_run *r) {
    if (!mx_run_edits(r)) return 0;
    struct mx_run_fields *files = r->edit.files = calloc(1, sizeof *files);
    if (files == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the fields of a run");
    r->edit.state = r->edit.program.planes != NULL;
    fields_of(r, files);
    int err = mx_fields_take_edits(files, &r->o.edit_inputs, &r->why);
    if (err == 0 && r->system != NULL) err = mx_fields_take_frames(files, r->system, &r->o.frames, &r->why);
    if (err == 0) err = take_names(r, files);
    for (int32_t i = 0; i < files->n && err == 0; i++)
        err = take_one(r, &files->field[i], &r->fields.field[i]);
    return err;
}

/* Where all steps are computed anew, and nobody knows the changes. */
int mx_run_check_verify_edits(struct mx_run *r) {
    if (r->o.verify && r->note.former.runs > 0)
        return mx_fail(&r->why, -ENOTSUP,
                       "the run in %.300s began with a stored state that no longer exists, so its steps "
                       "cannot be computed again: leave --verify out",
                       r->o.path);
    if (!r->o.verify || (r->note.edits == 0 && !mx_run_edits(r))) return 0;
    return mx_fail(&r->why, -ENOTSUP,
                   "the run in %.300s changes its state between steps, and --verify would compute all steps "
                   "without the changes: leave --verify out",
                   r->o.path);
}
