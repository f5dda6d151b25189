/* SPDX-License-Identifier: BSD-3-Clause */
/* resume.c - takes the description of a resumed run from its store. */
#include "run/open/open.h"

#include "core/device.h"
#include "files/field_words.h"
#include "note/store.h"
#include "run/open/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

/* Of the step that is gone on from, which all ranks have in common. */
static int check_steps(struct mx_run *r, const char *place) {
    if (!mx_option_given(&r->o, "steps") || r->o.problem.nt >= r->note.time) return 0;
    mx_run_one_says(r);
    return mx_fail(&r->why, -EINVAL,
                   "%.300s holds step %lld, and -t asks for %lld: a run cannot go back. Give -t %lld or "
                   "more, or leave -t out with --resume",
                   place, (long long)r->note.time, (long long)r->o.problem.nt, (long long)r->note.time);
}

/* The system of a store: its kernel must be what it was. */
static int take_stored_system(struct mx_run *r, const char *place) {
    if (r->o.kernel == NULL) r->o.kernel = r->note.kernel;
    if (r->o.output != NULL) r->sink = (struct mx_sink){.size = 0}; /* the plain form: field_sink takes it */
    if (r->o.input != NULL) r->source = (struct mx_source){.size = 0}; /* likewise: the store has all */
    r->o.input = r->o.init = r->o.output = NULL;
    int err = mx_take_kernel(&r->o, r->o.same ? NULL : &r->note, &r->stop, &r->why, &r->system);
    if (err == 0) err = mx_run_same_kernel(r, place);
    if (err == 0) err = mx_run_take_edits(r);
    if (err < 0) return err;
    r->fields = r->note.fields;
    return mx_fields_take_moved(&r->fields, &r->o, &r->why);
}

static int read_note(struct mx_run *r, struct mx_store_facts *store) {
    mx_why reason = {""};
    const char *place = mx_run_noted_place(r);
    int err = mx_store_see(place, &r->why, store);
    if (err == -ENOENT)
        return mx_fail(&r->why, err, "%.300s holds no memext store, so there is nothing to resume", place);
    if (err < 0) return err;
    if (store->note_bytes == 0)
        return mx_fail(
            &r->why, -EINVAL,
            "%.300s holds no state to resume: nothing was committed, or the algorithm rewrote its "
            "Buffers in place (redundant, stream and resident can be resumed). Start again with --force "
            "instead of --resume",
            store->place);
    err = mx_note_parse(store->note, store->note_bytes, &reason, &r->note);
    if (err < 0) return mx_fail(&r->why, err, "%.300s cannot be resumed: %.200s", store->place, reason.text);
    if (r->note.different)
        return mx_fail(&r->why, -EINVAL,
                       "the result in %.300s differs from the plain computation (--verify), so the run "
                       "cannot be resumed",
                       store->place);
    return 0;
}

/* What had no frame when the run began has none when it is read again. */
static int take_stored_frames(struct mx_run *r, const char *place) {
    int err = mx_run_same_frames(r, place);
    snprintf(r->frame_text, sizeof r->frame_text, "%s", r->note.frame);
    mx_frame_words(r->frame_text, &r->o.frames);
    return err < 0 || r->system == NULL ? err
                                        : mx_fields_take_frames(&r->fields, r->system, &r->o.frames, &r->why);
}

/* Of a store that holds no state yet: what the run begins with is read once more (fuse.c says whether it is
 * what it was). */
static int open_pending(struct mx_run *r) {
    const char *path = r->note.input;
    int err = r->system == NULL ? mx_run_open_former_source(r)
              : r->o.verify     ? mx_run_open_fields(r, true)
                                : mx_fields_open_state(&r->fields, &r->o.problem, &r->why);
    for (int32_t i = 0; i < r->fields.n && path[0] == 0; i++) path = r->fields.field[i].path;
    if (err == -EINVAL || err == -ENOENT) {
        const mx_why reason = r->why;
        mx_fail(&r->why, err,
                "this run has committed nothing yet, and its initial values have changed since it began "
                "(%.600s): start again with --force instead of --resume",
                reason.text[0] != 0 ? reason.text : path);
    }
    return err;
}

/* What is complete is only read: by mmap, where the backend cannot transfer its planes or its hashes. */
static void take_reader(struct mx_run *r) {
    const struct mx_backend *asked = mx_backend_find(r->o.backend != NULL ? r->o.backend : "");
    const struct mx_note *n = &r->note;
    if (!mx_run_has_store(r) || r->o.problem.nt > r->first_time || mx_run_edits(r) || n->pending ||
        asked == NULL || asked->face != MX_FACE_TRANSFER)
        return;
    const int64_t align = mx_place_align(&r->o, asked, NULL);
    if (align == 0 || (n->layout.plane_pitch_bytes % align == 0 && n->integrity_unit % align == 0)) return;
    if (mx_run_leads(r))
        mx_run_remark(r,
                      "no step is left, and %s transfers multiples of %lld bytes, which this store does not "
                      "match: mmap reads the store",
                      asked->name, (long long)align);
    r->o.backend = "mmap";
}

/* Problem, layout and origin are those of the store; backend and plan are, unless others are asked for. */
int mx_run_take_store(struct mx_run *r) {
    struct mx_store_facts *store = calloc(1, sizeof *store);
    if (store == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the note of the store");
    int err = r->o.path == NULL
                  ? mx_fail(&r->why, -EINVAL, "--resume needs the place of the store: give it with -d PATH")
                  : mx_run_name_former(r);
    if (err == 0) err = read_note(r, store);
    r->note_digest = XXH3_64bits(store->note, store->note_bytes);
    /* Of one note all say the same, those that see it. */
    (err != -ENOENT && r->recut.asked ? mx_run_one_says : mx_run_each_says)(r);
    if (err == 0) err = mx_run_check_rank(r, store->place);
    if (err == 0) err = mx_run_same_equation(r, store->place);
    if (err == 0) mx_run_each_says(r);
    bool kept = store->finished == 2;
    if (err == 0) err = r->recut.asked ? mx_run_take_former(r, &kept) : mx_run_agree_state(r, &kept);
    if (err == 0 && !r->comparing) err = check_steps(r, store->place);
    if (err == 0) {
        const struct mx_backend *former = mx_backend_find(r->note.backend);
        bool works =
            former != NULL && !former->anonymous && (former->probe == NULL || former->probe(NULL, NULL) == 0);
        if (r->o.backend == NULL && works) r->o.backend = former->name;
        r->o.keep |= kept || r->note.keep;
        if (r->o.dram_bytes == 0 && !r->recut.asked) r->o.dram_bytes = r->note.dram_bytes;
        const int64_t nt = mx_option_given(&r->o, "steps") ? r->o.problem.nt : r->note.problem.nt;
        r->o.problem = r->note.problem;
        r->o.problem.nz = mx_all_planes(&r->note.problem); /* cut again once all is known */
        r->o.problem.first_plane = r->o.problem.all_nz = 0;
        r->o.problem.nt = nt;
        err = r->note.problem.system != NULL ? take_stored_system(r, store->place)
                                             : mx_check_built_in_words(&r->o, &r->why);
        if (err == 0) err = take_stored_frames(r, store->place);
        if (err == 0) err = mx_run_same_beginning(r, store->place);
        r->o.init = r->note.init[0] != 0 ? r->note.init : NULL;
        if (r->o.input == NULL && r->note.input[0] != 0) {
            r->o.input = r->note.input;
            mx_grid_file_source(&r->input, r->o.input, r->note.raw, &r->source);
        }
        r->first_time = r->note.time;
        r->resumed = true;
        mx_run_committed(r);
        r->report.resumed_from = r->note.time;
        if (err == 0) err = mx_run_check_verify_edits(r);
        if (err == 0 && !r->comparing) err = mx_run_take_edit_files(r);
        if (err == 0 && !r->comparing) take_reader(r);
        if (err == 0) err = mx_run_check_names(r); /* the input is known now */
        if (r->comparing)
            ;
        else if (err == 0 && r->note.pending)
            err = open_pending(r);
        else if (err == 0 && r->o.verify)
            err = r->system != NULL ? mx_run_open_fields(r, true) : mx_run_open_former_source(r);
    }
    free(store);
    return err;
}

int mx_run_compare_store(struct mx_run *r) {
    r->comparing = true;
    int err = mx_run_take_store(r);
    if (err == 0) err = mx_run_take_sides(r);
    return err < 0 ? err : mx_run_ask_parts(r);
}
