/* cmd_export.c - memext export: the committed state of a store as a .npy file, whatever became of the run
 * that made it. */
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "grid/grid.h"
#include "run/output.h"
#include "run/request.h"
#include "run/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct export {
    struct mx_options o;
    mx_why why;
    struct mx_stored stored;
    mx_device *device;
    mx_buffer *buffer;
    struct mx_output output;
    struct mx_npy npy;
    struct mx_progress progress;
    bool moving;
};

static int look(struct export *e) {
    int err = mx_stored_look(e->o.place, &e->why, &e->stored);
    if (err < 0) return err;
    if (!e->stored.have_note)
        return mx_fail(&e->why, -EINVAL, "%.300s holds no state that could be exported: %.150s",
                       e->stored.facts.place, e->stored.why.text);
    if (e->stored.note.different)
        return mx_fail(
            &e->why, -EINVAL,
            "the result in %.300s was verified and differs from the plain computation: it is not exported",
            e->stored.facts.place);
    return 0;
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

static int open_buffer(struct export *e) {
    const struct mx_note *n = &e->stored.note;
    int err = mx_buffer_open(e->device, mx_note_buffers[n->buffer], &e->why, &e->buffer);
    if (err == 0 && mx_buffer_bytes(e->buffer) < (uint64_t)n->layout.buffer_bytes)
        err = mx_fail(&e->why, -EIO,
                      "the Buffer \"%s\" of %.300s is shorter than its note says: the store is damaged",
                      mx_note_buffers[n->buffer], e->stored.facts.place);
    if (err < 0 || n->integrity_unit == 0) return err;
    err = mx_buffer_integrity(e->buffer, (uint64_t)n->integrity_unit, NULL, &e->why);
    if (err == 0 && (err = mx_buffer_integrity_load(e->buffer)) < 0)
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
    const struct mx_file_word words[] = {{"PATH", e->o.place, MX_FILE_PLACE},
                                         {"--output", e->o.output, MX_FILE_WRITTEN},
                                         {"--json", e->o.json, MX_FILE_WRITTEN}};
    return mx_output_check_names(words, sizeof words / sizeof words[0], &e->why);
}

static int write_plane(void *context, int64_t z, char *plane) {
    struct export *e = context;
    mx_progress_update(&e->progress, (z + 1) * e->stored.note.layout.plane_pitch_bytes);
    return mx_npy_write(&e->npy, z, 1, plane, &e->stored.note.layout, &e->why);
}

static int write_file(struct export *e) {
    const struct mx_note *n = &e->stored.note;
    const struct mx_layout *l = &n->layout;
    const int64_t shape[3] = {l->planes, l->rows, n->problem.nx + 2 * n->problem.h};
    const uint64_t bytes = (uint64_t)l->planes * (uint64_t)l->rows * (uint64_t)l->row_bytes + 128;
    int err = mx_output_reserve(&e->output, bytes, "the grid", &e->why);
    if (err == 0) err = mx_npy_begin(e->output.fd, n->problem.dtype, shape, &e->why, &e->npy);
    if (err < 0) return err;
    mx_progress_begin(&e->progress, "memext export", "export", "B", l->buffer_bytes, e->o.quiet);
    err = mx_field_read(e->buffer, l, NULL, &mx_stop, write_plane, e, &e->why);
    mx_progress_end(&e->progress);
    return err < 0 ? err : mx_output_publish(&e->output, "the grid", &e->why);
}

static void say(const struct export *e) {
    const struct mx_note *n = &e->stored.note;
    if (e->o.quiet || (e->o.json != NULL && strcmp(e->o.json, "-") == 0)) return;
    printf("%s: step %lld of %lld%s, shape (%lld, %lld, %lld), frame included\n", e->output.path,
           (long long)n->time, (long long)n->problem.nt, n->time == n->problem.nt ? "" : " (incomplete)",
           (long long)n->layout.planes, (long long)n->layout.rows,
           (long long)(n->problem.nx + 2 * n->problem.h));
}

static int report(struct export *e) {
    json_t *o = json_object();
    json_object_set_new(o, "memext", json_string(MX_VERSION));
    json_object_set_new(o, "output", json_string(e->output.path));
    json_object_set_new(o, "store", mx_stored_json(&e->stored));
    return mx_write_json(o, e->o.json, &e->why);
}

/* A page of a mapped store that cannot be had: nothing was published. */
static void end_at_once(void *context, const char *sentence) {
    struct export *e = context;
    fprintf(stderr, "memext export: %s\n", sentence);
    mx_output_drop(&e->output);
    _exit(MX_EXIT_IO);
}

static int work(struct export *e) {
    int err = check_names(e);
    if (err == 0) err = look(e);
    if (err == 0)
        err = mx_output_open(e->o.output, "the grid",
                             MX_OUTPUT_SEEK | (e->o.overwrite ? MX_OUTPUT_REPLACE : 0), &e->why, &e->output);
    if (err == 0) err = open_any(e);
    if (err == 0) err = check_unchanged(e);
    if (err == 0) err = open_buffer(e);
    if (err < 0) return err;
    e->moving = true;
    mx_signals_watch(end_at_once, e);
    err = write_file(e);
    mx_signals_unwatch();
    if (err == 0) say(e);
    return err == 0 && e->o.json != NULL ? report(e) : err;
}

int mx_cmd_export(int argc, char **argv) {
    struct export *e = calloc(1, sizeof *e);
    if (e == NULL) return MX_EXIT_REFUSED;
    e->output.fd = -1;
    int err = mx_options_parse(MX_CMD_EXPORT, argc, argv, &e->why, &e->o);
    if (err == 1) mx_options_help(MX_CMD_EXPORT, "memext export PLACE");
    if (err == 0) err = work(e);
    if (err == -EINTR) fprintf(stderr, "memext export: interrupted; nothing was written\n");
    if (err < 0 && err != -EINTR)
        fprintf(stderr, "memext export: %s\n", e->why.text[0] != 0 ? e->why.text : strerror(-err));
    int status = err == 1 ? MX_EXIT_OK : mx_exit_status(err, e->moving);
    mx_buffer_close(e->buffer);
    mx_device_close(e->device);
    mx_output_drop(&e->output);
    free(e);
    return status;
}
