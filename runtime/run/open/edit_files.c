/* SPDX-License-Identifier: BSD-3-Clause */
/* edit_files.c - files that replace fields of the state when a run goes on (--edit-input). */
#include "run/open/open.h"

#include "files/field_words.h"

#include <stdio.h>
#include <stdlib.h>

/* The fields of the state, none of which has a file yet. */
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

int mx_run_take_edit_files(struct mx_run *r) {
    if (r->o.edit_inputs.n == 0) return 0;
    struct mx_run_fields *files = r->edit.files = calloc(1, sizeof *files);
    if (files == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the fields of a run");
    fields_of(r, files);
    int err = mx_fields_take_edits(files, &r->o.edit_inputs, &r->why);
    for (int32_t i = 0; i < files->n && err == 0; i++)
        if (files->field[i].path[0] != 0) err = mx_field_open_edit(&files->field[i], &r->o.problem, &r->why);
    return err;
}

/* Where all steps are computed anew, and nobody knows the changes. */
int mx_run_check_verify_edits(struct mx_run *r) {
    if (!r->o.verify || (r->note.edits == 0 && !mx_run_edits(r))) return 0;
    return mx_fail(&r->why, -ENOTSUP,
                   "the state of the run in %.300s is changed between steps, and --verify computes all steps "
                   "without that: leave --verify out",
                   r->o.path);
}
