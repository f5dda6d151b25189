/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_export.c - memext export: the committed state of a store, or of the stores of all ranks of a run, as
 * .npy files, a file for each field asked for, whatever became of the run that made it; likewise the matrices
 * of a wavefront. */
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "files/field_words.h"
#include "files/output.h"
#include "grid/grid.h"
#include "note/sets.h"
#include "run/open/request.h"
#include "system/sides.h"
#include "wavefront/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A field and its file. */
struct file {
    const char *name, *path; /* name: of the field; "" of a built-in stencil's */
    enum mx_dtype dtype;
    int part;             /* of a pair the array that holds it: A (0) or B (1) */
    int32_t array, index; /* where its layout says the offset of the field in a row; array -1 = 0 */
    struct mx_output output;
    struct mx_npy npy;
};

/* A store that planes are read from: the one, or that of a rank. */
struct piece {
    char path[PATH_MAX];
    int64_t first_plane, planes;
    struct mx_layout layout;
    int64_t integrity_unit;
    int32_t number; /* of the Buffer with the state */
    mx_device *device;
    mx_buffer *buffer[2]; /* arrays A and B, if files want them */
};

struct export {
    struct mx_options o;
    mx_why why;
    struct mx_stored stored; /* of rank 0, where there are several: problem.nz is that of all */
    struct piece *piece;
    int32_t n_pieces;
    struct file file[MX_FIELDS_MOST];
    int32_t n_files;
    int part;   /* that is being read, */
    int32_t at; /* of which piece */
    struct mx_progress progress;
    bool moving;
    mx_wf_run *wavefront; /* of a store of such a run, whose matrices it writes */
};

static int add_pieces(struct export *e, int32_t n) {
    e->n_pieces = n;
    e->piece = calloc((size_t)n, sizeof *e->piece);
    return e->piece != NULL ? 0 : mx_fail(&e->why, -ENOMEM, "no memory for %d stores", n);
}

static int look_at_one(struct export *e) {
    int err = mx_stored_look(e->o.place, &e->why, &e->stored);
    if (err == 0) err = add_pieces(e, 1);
    if (err == 0) snprintf(e->piece[0].path, sizeof e->piece[0].path, "%.4095s", e->o.place);
    if (err == 0 && e->stored.have_note && e->stored.note.ranks > 0)
        return mx_fail(
            &e->why, -EINVAL,
            "%.300s holds only %ss %lld to %lld of a run of %d ranks: name the directory, or the path with "
            "%%r, that the run had with -d",
            e->stored.facts.place, mx_plane_word(e->stored.note.problem.flat),
            (long long)e->stored.note.problem.first_plane,
            (long long)(e->stored.note.problem.first_plane + e->stored.note.problem.nz - 1),
            e->stored.note.ranks);
    return err;
}

/* The stores of one state, and the step that they have in common. */
static int look_at_set(struct export *e, const struct mx_sight *s) {
    const struct mx_seen *first = NULL;
    struct mx_note *n = &e->stored.note;
    int err = mx_only_set(s, e->o.place, &e->why, &first);
    if (err == 0 && first == NULL)
        err = mx_fail(&e->why, -EINVAL,
                      "the stores in %.300s hold no whole state: memext info %.300s lists what is there",
                      e->o.place, e->o.place);
    if (err == 0)
        err = mx_stored_look(mx_find_rank(s, first, mx_newest_rank(s, first))->path, &e->why, &e->stored);
    if (err == 0) err = add_pieces(e, first->ranks);
    if (err < 0) return err;
    for (int32_t k = 0; k < first->ranks; k++) strcpy(e->piece[k].path, mx_find_rank(s, first, k)->path);
    if (mx_note_moment(n) != mx_common_moment(s, first)) {
        n->met = (struct mx_met){.step = 0};
        mx_note_go_back(n);
    }
    n->pending = mx_set_is_pending(s, first);
    n->problem.nz = first->all_planes;
    n->problem.first_plane = 0;
    return 0;
}

static int look(struct export *e) {
    struct mx_sight s = {.seen = NULL};
    int err = mx_is_base(e->o.place) ? mx_see_all(e->o.place, &e->why, &s) : 0;
    if (err == 0) err = mx_are_sets(&s, e->o.place) ? look_at_set(e, &s) : look_at_one(e);
    mx_forget(&s);
    if (err < 0 || e->stored.wavefront) return err;
    if (!e->stored.have_note)
        return mx_fail(&e->why, -EINVAL, "%.300s holds no state that could be exported: %.150s",
                       e->stored.facts.place, e->stored.why.text);
    if (e->stored.note.pending && !e->stored.facts.in_use)
        return mx_fail(&e->why, -EINVAL,
                       "%.300s holds no state yet: the run has committed nothing, and step 0 is only in its "
                       "input. Continue it with memext run --resume, or begin it again with --force",
                       e->stored.facts.place);
    if (e->stored.note.different)
        return mx_fail(
            &e->why, -EINVAL,
            "--verify found that the result in %.300s differs from the plain computation, so it cannot be "
            "exported: run it again with --force",
            e->stored.facts.place);
    return 0;
}

static struct file *add_file(struct export *e, const char *name, const char *path, enum mx_dtype dtype) {
    struct file *f = &e->file[e->n_files++];
    *f =
        (struct file){.name = name, .path = path, .dtype = dtype, .array = -1, .output.fd = -1, .npy.fd = -1};
    return f;
}

/* Of leapfrog systems the arrays change places with every step: p is in the newest. */
static int take_files(struct export *e) {
    struct mx_note *n = &e->stored.note;
    const struct mx_system *s = n->problem.system;
    const char *path[MX_FIELDS_MOST];
    int err = s == NULL ? mx_check_built_in_words(&e->o, &e->why) : 0;
    if (err < 0) return err;
    if (s == NULL) return add_file(e, "", e->o.output, n->problem.dtype), 0;
    err = mx_fields_take_outputs(&n->fields, &e->o, &e->why, path);
    for (int32_t i = 0; i < n->fields.n && err == 0; i++) {
        const struct mx_run_field *f = &n->fields.field[i];
        if (path[i] == NULL) continue;
        const int array = s->form == MX_LEAPFROG ? f->array ^ (int)(n->time & 1) : f->array;
        struct file *file = add_file(e, f->name, path[i], f->dtype);
        file->part = mx_reads_old(&n->problem) ? array : 0;
        file->array = array;
        file->index = f->index;
    }
    return err;
}

/* The store is only read; it stays whatever it is. */
static int open_store(struct export *e, struct piece *p, const char *backend) {
    const struct mx_note *n = &e->stored.note;
    struct mx_device_options d = {.size = sizeof d,
                                  .backend = backend,
                                  .path = p->path,
                                  .resume = true,
                                  .read_only = true,
                                  .keep = true,
                                  .no_lock = e->o.no_lock};
    struct mx_device_facts facts = {.size = sizeof facts};
    int err = mx_device_open(&d, &e->why, &p->device);
    if (err < 0) return err;
    mx_device_facts(p->device, &facts);
    const bool planes = n->layout.plane_pitch_bytes % facts.offset_align_bytes == 0;
    if (planes && n->integrity_unit % facts.offset_align_bytes == 0) return 0;
    mx_device_close(p->device);
    p->device = NULL;
    return mx_fail(&e->why, -EINVAL,
                   "the %s%s in %.300s have %lld bytes each, and backend %s transfers multiples of %u bytes; "
                   "use --backend mmap",
                   planes ? "units of hashes" : mx_plane_word(n->problem.flat), planes ? "" : "s", p->path,
                   (long long)(planes ? n->integrity_unit : n->layout.plane_pitch_bytes), facts.backend,
                   facts.offset_align_bytes);
}

static int open_any(struct export *e, struct piece *p) {
    if (e->o.backend != NULL) return open_store(e, p, e->o.backend);
    int err = open_store(e, p, NULL);
    return err == -ENOTSUP || err == -EINVAL ? open_store(e, p, "mmap") : err;
}

static int open_buffer(struct export *e, struct piece *p, int part) {
    mx_buffer **out = &p->buffer[part];
    const char *name = part == 1 ? mx_note_partners[p->number] : mx_note_buffers[p->number];
    int err = mx_buffer_open(p->device, name, &e->why, out);
    if (err == 0 && mx_buffer_bytes(*out) < (uint64_t)p->layout.buffer_bytes)
        err = mx_fail(&e->why, -EIO,
                      "the Buffer \"%s\" of %.300s is shorter than its note says: the store is damaged", name,
                      p->path);
    if (err < 0 || p->integrity_unit == 0) return err;
    err = mx_buffer_integrity(*out, (uint64_t)p->integrity_unit, NULL, &e->why);
    if (err == 0 && (err = mx_buffer_integrity_load(*out)) < 0)
        mx_fail(&e->why, err, "the hashes of %.300s cannot be read: %s", p->path, strerror(-err));
    return err;
}

/* Another memext may have gone on with the stores between the look and the lock. */
static int changed(struct export *e, const struct piece *p) {
    return mx_fail(&e->why, -EBUSY, "another memext has just changed %.300s: start the export again",
                   p->path);
}

/* Where the state of the step that is asked for is in a store. */
static int take_note(struct export *e, int32_t k, const struct mx_note *n) {
    const struct mx_note *first = &e->stored.note;
    struct piece *p = &e->piece[k];
    const int64_t next = k == 0 ? 0 : p[-1].first_plane + p[-1].planes;
    const bool newest = mx_note_moment(n) == mx_note_moment(first);
    if ((!newest && (n->ranks == 0 || mx_note_moment_before(n) != mx_note_moment(first))) ||
        n->run != first->run || n->cut != first->cut || n->ranks != first->ranks || n->rank != k ||
        n->problem.first_plane != next)
        return changed(e, p);
    p->first_plane = next;
    p->planes = n->problem.nz;
    p->layout = n->layout;
    p->integrity_unit = n->integrity_unit;
    p->number = newest ? n->buffer : n->before_buffer;
    return k + 1 < e->n_pieces || next + p->planes == first->problem.nz ? 0 : changed(e, p);
}

static int open_piece(struct export *e, int32_t k) {
    struct piece *p = &e->piece[k];
    struct mx_note *n = calloc(1, sizeof *n);
    char text[MX_NOTE_BYTES + 1];
    int err = n == NULL ? mx_fail(&e->why, -ENOMEM, "no memory for the note of a store") : open_any(e, p);
    if (err == 0) {
        const int64_t bytes = mx_device_note(p->device, text, sizeof text);
        if (bytes <= 0 || mx_note_parse(text, (size_t)bytes, NULL, n) < 0) err = changed(e, p);
    }
    if (err == 0) err = take_note(e, k, n);
    free(n);
    for (int32_t i = 0; i < e->n_files && err == 0; i++)
        if (p->buffer[e->file[i].part] == NULL) err = open_buffer(e, p, e->file[i].part);
    return err;
}

static int open_pieces(struct export *e) {
    int err = 0;
    for (int32_t k = 0; k < e->n_pieces && err == 0; k++) err = open_piece(e, k);
    return err;
}

static int check_names(struct export *e) {
    const struct mx_note *note = &e->stored.note;
    struct mx_file_word words[MX_NOTE_FILES + MX_FIELDS_MOST + 2] = {{"PATH", e->o.place, MX_FILE_PLACE}};
    size_t n = 1 + mx_note_files(note, words + 1);
    for (int32_t i = 0; i < e->n_files; i++)
        words[n++] = (struct mx_file_word){"--output", e->file[i].path, MX_FILE_NPY};
    words[n++] = (struct mx_file_word){"--json", e->o.json, MX_FILE_WRITTEN};
    return mx_output_check_names(words, n, &e->why);
}

/* Of every file: z, y, x, with the frame or without. */
static void shape_of(const struct export *e, int64_t shape[3]) {
    const struct mx_problem *p = &e->stored.note.problem;
    const int64_t h2 = e->o.bare_output ? 0 : 2 * (int64_t)p->h;
    shape[0] = p->nz + h2, shape[1] = p->ny + (h2 > 0 ? 2 * mx_halo_y(p) : 0), shape[2] = p->nx + h2;
}

static int open_files(struct export *e) {
    const unsigned flags = MX_OUTPUT_SEEK | (e->o.overwrite ? MX_OUTPUT_REPLACE : 0);
    int err = 0;
    for (int32_t i = 0; i < e->n_files && err == 0; i++)
        err = mx_output_open(e->file[i].path, "the grid", flags, &e->why, &e->file[i].output);
    return err;
}

static int begin_files(struct export *e) {
    int64_t shape[3];
    int err = 0;
    shape_of(e, shape);
    for (int32_t i = 0; i < e->n_files && err == 0; i++) {
        struct file *f = &e->file[i];
        const int64_t bytes = shape[0] * shape[1] * shape[2] * mx_dtype_bytes(f->dtype) + 128;
        err = mx_output_reserve(&f->output, (uint64_t)bytes, "the grid", &e->why);
        if (err == 0)
            err = mx_npy_begin_grid(f->output.fd, f->dtype, e->stored.note.problem.flat, shape, &e->why,
                                    &f->npy);
    }
    return err;
}

static int write_plane_to(const struct export *e, struct file *f, int64_t of_all, const char *plane,
                          const struct mx_layout *l, mx_why *why) {
    const int64_t h = e->o.bare_output ? e->stored.note.problem.h : 0,
                  hy = e->o.bare_output ? mx_halo_y(&e->stored.note.problem) : 0;
    const int64_t offset = f->array < 0 ? 0 : l->field_offset_bytes[f->array][f->index];
    return mx_npy_write(&f->npy, of_all - h, 1,
                        plane + offset + hy * l->row_pitch_bytes + h * mx_dtype_bytes(f->dtype), l, why);
}

/* z: of the piece, its frame counted. Where ranks go on around a periodic z none has the frame there: whoever
 * has a plane that it copies gives it once more. */
static int write_plane(void *context, int64_t z, char *plane) {
    struct export *e = context;
    const struct mx_problem *p = &e->stored.note.problem;
    const struct piece *from = &e->piece[e->at];
    const bool ring = e->n_pieces > 1 && mx_sides_periodic(&e->stored.note.sides, MX_DIM_Z);
    const bool bare = e->o.bare_output, below = ring || e->at > 0, above = ring || e->at + 1 < e->n_pieces;
    const int64_t h = p->h, i = z - h + from->first_plane; /* the plane of all, without the frame */
    int64_t again = -1;
    int err = 0;
    mx_progress_update(&e->progress, (from->first_plane + z + 1) * from->layout.plane_pitch_bytes);
    if ((z < h && (bare || below)) || (z >= from->planes + h && (bare || above))) return 0;
    if (ring && !bare && i < h) again = i + p->nz + h;
    if (ring && !bare && i >= p->nz - h) again = i - p->nz + h;
    for (int32_t k = 0; k < e->n_files && err == 0; k++) {
        struct file *f = &e->file[k];
        if (f->part != e->part) continue;
        err = write_plane_to(e, f, i + h, plane, &from->layout, &e->why);
        if (err == 0 && again >= 0) err = write_plane_to(e, f, again, plane, &from->layout, &e->why);
    }
    return err;
}

static int write_part(struct export *e, int part) {
    const struct mx_layout *l = &e->stored.note.layout;
    const int64_t planes = e->stored.note.problem.nz + 2 * e->stored.note.problem.h;
    int err = 0;
    if (e->piece[0].buffer[part] == NULL) return 0;
    e->part = part;
    mx_progress_begin(&e->progress, "memext export", "export", "B", planes * l->plane_pitch_bytes,
                      e->o.quiet);
    for (e->at = 0; e->at < e->n_pieces && err == 0; e->at++)
        err = mx_field_read(e->piece[e->at].buffer[part], &e->piece[e->at].layout, NULL, &mx_stop,
                            write_plane, e, &e->why);
    mx_progress_end(&e->progress);
    return err;
}

/* All files are whole before the first of them appears. */
static int write_files(struct export *e) {
    int err = begin_files(e);
    for (int part = 0; part < 2 && err == 0; part++) err = write_part(e, part);
    for (int32_t i = 0; i < e->n_files && err == 0; i++)
        err = mx_output_publish(&e->file[i].output, "the grid", &e->why);
    return err;
}

static void say(const struct export *e) {
    const struct mx_note *n = &e->stored.note;
    if (e->o.quiet || (e->o.json != NULL && strcmp(e->o.json, "-") == 0)) return;
    if (e->wavefront != NULL) mx_wf_run_say_exported(e->wavefront, stdout);
    int64_t shape[3];
    char text[MX_SHAPE_TEXT];
    shape_of(e, shape);
    for (int32_t i = 0; i < e->n_files; i++)
        printf("%s: %s%sstep %lld of %lld%s, shape %s, %s\n", e->file[i].output.path, e->file[i].name,
               e->file[i].name[0] != 0 ? ", " : "", (long long)n->time, (long long)n->problem.nt,
               mx_note_complete(n) ? "" : " (incomplete)", mx_shape_text(shape, n->problem.flat, text),
               e->o.bare_output ? "without the frame" : "frame included");
}

/* output: of a built-in stencil; outputs: of a kernel's fields, by name. */
static int report(struct export *e) {
    json_t *o = json_object(), *outputs = json_object();
    json_object_set_new(o, "memext", json_string(MX_VERSION));
    for (int32_t i = 0; i < e->n_files; i++)
        json_object_set_new(e->file[i].name[0] != 0 ? outputs : o,
                            e->file[i].name[0] != 0 ? e->file[i].name : "output",
                            json_string(e->file[i].output.path));
    if (json_object_size(outputs) > 0) json_object_set(o, "outputs", outputs);
    json_decref(outputs);
    json_t *store = mx_stored_json(&e->stored);
    if (e->wavefront != NULL) mx_wf_run_put_exported(e->wavefront, o, store);
    json_object_set_new(o, "store", store);
    json_object_set_new(o, "stores", json_integer(e->n_pieces));
    return mx_write_json(o, e->o.json, &e->why);
}

static void drop_files(struct export *e) {
    for (int32_t i = 0; i < e->n_files; i++) mx_output_drop(&e->file[i].output);
}

/* A page of a mapped store cannot be read: nothing was published. */
static void end_at_once(void *context, const char *sentence) {
    struct export *e = context;
    fprintf(stderr, "memext export: %s\n", sentence);
    drop_files(e);
    if (e->wavefront != NULL) mx_wf_run_abandon(e->wavefront);
    _exit(MX_EXIT_IO);
}

static void on_progress(void *context, const char *label, const char *unit, int64_t done, int64_t total) {
    struct export *e = context;
    if (done == 0) mx_progress_begin(&e->progress, "memext export", label, unit, total, e->o.quiet);
    mx_progress_update(&e->progress, done);
}

static int write_matrices(struct export *e) {
    const struct mx_wf_caller caller = {.stop = &mx_stop, .progress = on_progress, .context = e};
    int err = mx_wf_run_create(&e->o, &caller, &e->why, &e->wavefront);
    if (err < 0) return err;
    mx_signals_watch(end_at_once, e);
    err = mx_wf_run_export(e->wavefront);
    mx_signals_unwatch();
    mx_progress_end(&e->progress);
    e->moving = mx_wf_run_moving(e->wavefront);
    return err < 0 ? mx_fail(&e->why, err, "%s", mx_wf_run_sentence(e->wavefront)) : 0;
}

static int write_fields(struct export *e) {
    int err = take_files(e);
    if (err == 0) err = check_names(e);
    if (err == 0) err = open_files(e);
    if (err == 0) err = open_pieces(e);
    if (err < 0) return err;
    e->moving = true;
    mx_signals_watch(end_at_once, e);
    err = write_files(e);
    mx_signals_unwatch();
    return err;
}

static int work(struct export *e) {
    int err = look(e);
    if (err == 0) err = e->stored.wavefront ? write_matrices(e) : write_fields(e);
    if (err == 0) say(e);
    return err == 0 && e->o.json != NULL ? report(e) : err;
}

int mx_cmd_export(int argc, char **argv) {
    struct export *e = calloc(1, sizeof *e);
    if (e == NULL) return MX_EXIT_REFUSED;
    int err = mx_options_parse(MX_CMD_EXPORT, argc, argv, &e->why, &e->o);
    if (err == 0) err = work(e);
    if (err == -EINTR) fprintf(stderr, "memext export: interrupted; nothing was written\n");
    if (err < 0 && err != -EINTR)
        fprintf(stderr, "memext export: %s\n", e->why.text[0] != 0 ? e->why.text : strerror(-err));
    int status = err == 1 ? mx_options_help(MX_CMD_EXPORT, e->o.topic) : mx_exit_status(err, e->moving);
    for (int32_t k = 0; k < e->n_pieces && e->piece != NULL; k++) {
        mx_buffer_close(e->piece[k].buffer[0]);
        mx_buffer_close(e->piece[k].buffer[1]);
        mx_device_close(e->piece[k].device);
    }
    free(e->piece);
    mx_wf_run_close(e->wavefront);
    drop_files(e);
    free(e);
    return status;
}
