/* cmd_export.c - memext export: the committed state of a store as .npy files, a file for each field asked
 * for, whatever became of the run that made it. */
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "grid/grid.h"
#include "run/fields.h"
#include "run/output.h"
#include "run/request.h"
#include "run/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A field and its file. */
struct file {
    const char *name, *path; /* name: of the field; "" of a built-in stencil's */
    enum mx_dtype dtype;
    int part;       /* of a pair the array that holds it: A (0) or B (1) */
    int64_t offset; /* in a row, bytes */
    struct mx_output output;
    struct mx_npy npy;
};

struct export {
    struct mx_options o;
    mx_why why;
    struct mx_stored stored;
    mx_device *device;
    struct file file[MX_FIELDS_MOST];
    int32_t n_files;
    mx_buffer *buffer[2]; /* arrays A and B, if files want them */
    int part;             /* that is being read */
    struct mx_progress progress;
    bool moving;
};

static int look(struct export *e) {
    int err = mx_stored_look(e->o.place, &e->why, &e->stored);
    if (err < 0) return err;
    if (!e->stored.have_note)
        return mx_fail(&e->why, -EINVAL, "%.300s holds no state that could be exported: %.150s",
                       e->stored.facts.place, e->stored.why.text);
    if (e->stored.note.pending && !e->stored.facts.in_use)
        return mx_fail(
            &e->why, -EINVAL,
            "%.300s holds no state yet: of step 0 there is only what the run began with; go on with "
            "memext run --resume",
            e->stored.facts.place);
    if (e->stored.note.ranks > 0)
        return mx_fail(
            &e->why, -EINVAL,
            "%.300s holds planes %lld to %lld of a run of %d ranks, and not the grid: resume that run with "
            "--output FILE",
            e->stored.facts.place, (long long)e->stored.note.problem.first_plane,
            (long long)(e->stored.note.problem.first_plane + e->stored.note.problem.nz - 1),
            e->stored.note.ranks);
    if (e->stored.note.different)
        return mx_fail(
            &e->why, -EINVAL,
            "the result in %.300s was verified and differs from the plain computation: it is not exported",
            e->stored.facts.place);
    return 0;
}

static struct file *add_file(struct export *e, const char *name, const char *path, enum mx_dtype dtype) {
    struct file *f = &e->file[e->n_files++];
    *f = (struct file){.name = name, .path = path, .dtype = dtype, .output.fd = -1, .npy.fd = -1};
    return f;
}

/* Of leapfrog systems the arrays change places with every step: p is in the newest. */
static int take_files(struct export *e) {
    struct mx_note *n = &e->stored.note;
    const struct mx_system *s = n->problem.system;
    const char *path[MX_FIELDS_MOST];
    if (s == NULL) return add_file(e, "", e->o.output, n->problem.dtype), 0;
    int err = mx_fields_take_outputs(&n->fields, &e->o, &e->why, path);
    for (int32_t i = 0; i < n->fields.n && err == 0; i++) {
        const struct mx_run_field *f = &n->fields.field[i];
        if (path[i] == NULL) continue;
        const int array = s->form == MX_LEAPFROG ? f->array ^ (int)(n->time & 1) : f->array;
        struct file *file = add_file(e, f->name, path[i], f->dtype);
        file->part = mx_reads_old(&n->problem) ? array : 0;
        file->offset = n->layout.field_offset_bytes[array][f->index];
    }
    return err;
}

/* The store is only read; it stays whatever it is. */
static int open_store(struct export *e, const char *backend) {
    const struct mx_note *n = &e->stored.note;
    struct mx_device_options d = {
        .backend = backend, .path = e->o.place, .resume = true, .read_only = true, .keep = true};
    struct mx_device_facts facts = {.size = sizeof facts};
    int err = mx_device_open(&d, &e->why, &e->device);
    if (err < 0) return err;
    mx_device_facts(e->device, &facts);
    const bool planes = n->layout.plane_pitch_bytes % facts.offset_align_bytes == 0;
    if (planes && n->integrity_unit % facts.offset_align_bytes == 0) return 0;
    mx_device_close(e->device);
    e->device = NULL;
    return mx_fail(&e->why, -EINVAL,
                   "%s %.300s keeps are in units of %lld bytes, and backend %s transfers multiples of %u; "
                   "take --backend mmap",
                   planes ? "the hashes that" : "the planes that", e->stored.facts.place,
                   (long long)(planes ? n->integrity_unit : n->layout.plane_pitch_bytes), facts.backend,
                   facts.offset_align_bytes);
}

static int open_any(struct export *e) {
    if (e->o.backend != NULL) return open_store(e, e->o.backend);
    int err = open_store(e, NULL);
    return err == -ENOTSUP || err == -EINVAL ? open_store(e, "mmap") : err;
}

static int open_buffer(struct export *e, int part) {
    const struct mx_note *n = &e->stored.note;
    mx_buffer **out = &e->buffer[part];
    const char *name = part == 1 ? mx_note_partners[n->buffer] : mx_note_buffers[n->buffer];
    int err = mx_buffer_open(e->device, name, &e->why, out);
    if (err == 0 && mx_buffer_bytes(*out) < (uint64_t)n->layout.buffer_bytes)
        err = mx_fail(&e->why, -EIO,
                      "the Buffer \"%s\" of %.300s is shorter than its note says: the store is damaged", name,
                      e->stored.facts.place);
    if (err < 0 || n->integrity_unit == 0) return err;
    err = mx_buffer_integrity(*out, (uint64_t)n->integrity_unit, NULL, &e->why);
    if (err == 0 && (err = mx_buffer_integrity_load(*out)) < 0)
        mx_fail(&e->why, err, "the hashes of %.300s cannot be read: %s", e->stored.facts.place,
                strerror(-err));
    return err;
}

/* Another memext may have gone on with the store between the look and the lock. */
static int check_unchanged(struct export *e) {
    char text[MX_NOTE_BYTES + 1];
    int64_t n = mx_device_note(e->device, text, sizeof text);
    if (n == e->stored.facts.note_bytes && memcmp(text, e->stored.facts.note, (size_t)n) == 0) return 0;
    return mx_fail(&e->why, -EBUSY, "%.300s was changed by another memext a moment ago: start again",
                   e->stored.facts.place);
}

static int check_names(struct export *e) {
    const struct mx_note *note = &e->stored.note;
    struct mx_file_word words[3 * MX_FIELDS_MOST + 3] = {{"PATH", e->o.place, MX_FILE_PLACE}};
    size_t n = 1;
    /* Files that the run began with, or reads in place. */
    words[n++] = (struct mx_file_word){"the run's --input", note->input, MX_FILE_READ};
    for (int32_t i = 0; i < note->fields.n; i++) {
        const struct mx_run_field *f = &note->fields.field[i];
        words[n++] = (struct mx_file_word){"a field of the run", f->path, MX_FILE_READ};
        words[n++] = (struct mx_file_word){"the data of a field", f->data, MX_FILE_READ};
    }
    for (int32_t i = 0; i < e->n_files; i++)
        words[n++] = (struct mx_file_word){"--output", e->file[i].path, MX_FILE_WRITTEN};
    words[n++] = (struct mx_file_word){"--json", e->o.json, MX_FILE_WRITTEN};
    return mx_output_check_names(words, n, &e->why);
}

/* Of every file: z, y, x, with the frame or without. */
static void shape_of(const struct export *e, int64_t shape[3]) {
    const struct mx_problem *p = &e->stored.note.problem;
    const int64_t h2 = e->o.bare_output ? 0 : 2 * (int64_t)p->h;
    shape[0] = p->nz + h2, shape[1] = p->ny + h2, shape[2] = p->nx + h2;
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
        if (err == 0) err = mx_npy_begin(f->output.fd, f->dtype, shape, &e->why, &f->npy);
    }
    return err;
}

static int write_plane(void *context, int64_t z, char *plane) {
    struct export *e = context;
    const struct mx_problem *p = &e->stored.note.problem;
    const struct mx_layout *l = &e->stored.note.layout;
    const int64_t h = e->o.bare_output ? p->h : 0;
    int err = 0;
    mx_progress_update(&e->progress, (z + 1) * l->plane_pitch_bytes);
    if (z < h || z >= l->planes - h) return 0;
    for (int32_t i = 0; i < e->n_files && err == 0; i++) {
        const struct file *f = &e->file[i];
        const int64_t corner = f->offset + h * (l->row_pitch_bytes + mx_dtype_bytes(f->dtype));
        if (f->part == e->part) err = mx_npy_write(&f->npy, z - h, 1, plane + corner, l, &e->why);
    }
    return err;
}

static int write_part(struct export *e, int part) {
    const struct mx_layout *l = &e->stored.note.layout;
    if (e->buffer[part] == NULL) return 0;
    e->part = part;
    mx_progress_begin(&e->progress, "memext export", "export", "B", l->buffer_bytes, e->o.quiet);
    int err = mx_field_read(e->buffer[part], l, NULL, &mx_stop, write_plane, e, &e->why);
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
    int64_t shape[3];
    shape_of(e, shape);
    for (int32_t i = 0; i < e->n_files; i++)
        printf("%s: %s%sstep %lld of %lld%s, shape (%lld, %lld, %lld), %s\n", e->file[i].output.path,
               e->file[i].name, e->file[i].name[0] != 0 ? ", " : "", (long long)n->time,
               (long long)n->problem.nt, mx_note_complete(n) ? "" : " (incomplete)", (long long)shape[0],
               (long long)shape[1], (long long)shape[2],
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
    json_object_set_new(o, "store", mx_stored_json(&e->stored));
    return mx_write_json(o, e->o.json, &e->why);
}

static void drop_files(struct export *e) {
    for (int32_t i = 0; i < e->n_files; i++) mx_output_drop(&e->file[i].output);
}

/* A page of a mapped store that cannot be had: nothing was published. */
static void end_at_once(void *context, const char *sentence) {
    struct export *e = context;
    fprintf(stderr, "memext export: %s\n", sentence);
    drop_files(e);
    _exit(MX_EXIT_IO);
}

static int work(struct export *e) {
    int err = look(e);
    if (err == 0) err = take_files(e);
    if (err == 0) err = check_names(e);
    if (err == 0) err = open_files(e);
    if (err == 0) err = open_any(e);
    if (err == 0) err = check_unchanged(e);
    for (int32_t i = 0; i < e->n_files && err == 0; i++)
        if (e->buffer[e->file[i].part] == NULL) err = open_buffer(e, e->file[i].part);
    if (err < 0) return err;
    e->moving = true;
    mx_signals_watch(end_at_once, e);
    err = write_files(e);
    mx_signals_unwatch();
    if (err == 0) say(e);
    return err == 0 && e->o.json != NULL ? report(e) : err;
}

int mx_cmd_export(int argc, char **argv) {
    struct export *e = calloc(1, sizeof *e);
    if (e == NULL) return MX_EXIT_REFUSED;
    int err = mx_options_parse(MX_CMD_EXPORT, argc, argv, &e->why, &e->o);
    if (err == 1) mx_options_help(MX_CMD_EXPORT, "memext export PLACE");
    if (err == 0) err = work(e);
    if (err == -EINTR) fprintf(stderr, "memext export: interrupted; nothing was written\n");
    if (err < 0 && err != -EINTR)
        fprintf(stderr, "memext export: %s\n", e->why.text[0] != 0 ? e->why.text : strerror(-err));
    int status = err == 1 ? MX_EXIT_OK : mx_exit_status(err, e->moving);
    mx_buffer_close(e->buffer[0]);
    mx_buffer_close(e->buffer[1]);
    mx_device_close(e->device);
    drop_files(e);
    free(e);
    return status;
}
