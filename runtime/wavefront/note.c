/* SPDX-License-Identifier: BSD-3-Clause */
#include "wavefront/note.h"

#include "note/note.h"
#include "note/reader.h"
#include "note/store.h"
#include "observe/json.h"

#include <memext/backend.h>

#include <errno.h>
#include <string.h>

const char *const mx_wf_data[2] = {"za-0", "za-1"};
static const char kind[] = MX_NOTE_WAVEFRONT;
enum { VERSION = 1 };

static json_t *print_inputs(const struct mx_wf_note *n) {
    json_t *inputs = json_object();
    for (int m = 0; m < MX_WF_MATRICES; m++) {
        if (n->inputs[m].path[0] == 0) continue;
        json_t *o = json_object();
        mx_note_put_file(o, n->inputs[m].path, &n->inputs[m].identity);
        mx_json_put(inputs, mx_wf_names[m], o);
    }
    return inputs;
}

int mx_wf_note_print(const struct mx_wf_note *n, char *text, size_t capacity) {
    const struct mx_wf_geometry *g = &n->geometry;
    json_t *o = json_object();
    mx_json_put(o, "kind", json_string(kind));
    mx_json_put_whole(o, "note", VERSION);
    mx_json_put(o, "memext", json_string(MX_VERSION));
    mx_json_put_whole(o, "rows", g->rows);
    mx_json_put_whole(o, "cols", g->cols);
    mx_json_put(o, "layout", json_string(mx_wf_layouts[g->layout]));
    mx_json_put_whole(o, "mb", g->mb);
    mx_json_put_whole(o, "nb", g->nb);
    mx_json_put_whole(o, "align_bytes", g->align_bytes);
    mx_json_put_whole(o, "iterations", n->iterations);
    mx_json_put_whole(o, "done", n->done);
    mx_json_put_whole(o, "buffer", n->buffer);
    if (n->different) mx_json_put(o, "different", json_true());
    mx_json_put(o, "init", json_string(n->init));
    mx_json_put(o, "inputs", print_inputs(n));
    mx_json_put(o, "backend", json_string(n->backend));
    mx_json_put_whole(o, "started_s", n->started_s);
    mx_json_put_whole(o, "committed_s", n->committed_s);
    if (n->checksum[0] != 0) mx_json_put(o, "checksum", json_string(n->checksum));
    size_t bytes = json_dumpb(o, text, capacity, JSON_COMPACT);
    json_decref(o);
    if (bytes == 0) return -ENOMEM;
    if (bytes >= capacity) return -ENOSPC;
    text[bytes] = 0;
    return (int)bytes;
}

/* ---- in */

static void parse_geometry(struct mx_note_reader *r, const json_t *o, struct mx_wf_geometry *g) {
    char name[16] = "";
    const int64_t most = MX_WF_MOST_EXTENT;
    const int64_t rows = mx_note_whole(r, o, "rows", 1, most), cols = mx_note_whole(r, o, "cols", 1, most);
    const int64_t mb = mx_note_whole(r, o, "mb", 1, most), nb = mx_note_whole(r, o, "nb", 1, most);
    const int64_t align = mx_note_whole(r, o, "align_bytes", 1, 1 << 20);
    int layout = 0;
    mx_note_word(r, o, "layout", name, sizeof name);
    while (layout < MX_WF_LAYOUTS && strcmp(name, mx_wf_layouts[layout]) != 0) layout++;
    if (layout == MX_WF_LAYOUTS || (align & (align - 1)) != 0) r->ok = false;
    if (!r->ok ||
        mx_wf_geometry(rows, cols, (enum mx_wf_layout)layout, mb, nb, (uint32_t)align, NULL, g) < 0 ||
        g->mb != mb || (g->nb != nb && g->tile_cols > 1))
        r->ok = false;
}

static bool parse(const json_t *o, struct mx_wf_note *n) {
    struct mx_note_reader r = {true};
    parse_geometry(&r, o, &n->geometry);
    n->iterations = mx_note_whole(&r, o, "iterations", 0, INT64_MAX / 2);
    n->done = mx_note_whole(&r, o, "done", 0, n->iterations);
    n->buffer = (int32_t)mx_note_whole(&r, o, "buffer", 0, 1);
    n->different = json_is_true(json_object_get(o, "different"));
    mx_note_word(&r, o, "init", n->init, sizeof n->init);
    mx_note_word(&r, o, "backend", n->backend, sizeof n->backend);
    n->started_s = mx_note_whole(&r, o, "started_s", 0, INT64_MAX);
    n->committed_s = mx_note_whole(&r, o, "committed_s", 0, INT64_MAX);
    if (json_object_get(o, "checksum") != NULL)
        mx_note_word(&r, o, "checksum", n->checksum, sizeof n->checksum);
    const json_t *inputs = mx_note_member(&r, o, "inputs"), *file;
    if (!json_is_object(inputs)) r.ok = false;
    for (int m = 0; m < MX_WF_MATRICES; m++)
        if ((file = json_object_get(inputs, mx_wf_names[m])) != NULL)
            mx_note_take_file(&r, file, n->inputs[m].path, sizeof n->inputs[m].path, &n->inputs[m].identity);
    return r.ok;
}

int mx_wf_note_parse(const char *text, size_t bytes, mx_why *why, struct mx_wf_note *out) {
    json_t *o = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    const char *found = json_string_value(json_object_get(o, "kind"));
    const json_t *version = json_object_get(o, "note");
    int err = 0;
    memset(out, 0, sizeof *out);
    if (found == NULL || strcmp(found, kind) != 0)
        err = mx_fail(why, -EINVAL, "the description in it (its note) does not belong to a wavefront run");
    else if (json_integer_value(version) != VERSION)
        err = mx_fail(why, -EINVAL,
                      "its description (note) has version %lld, and this memext (%s) reads version %d: use "
                      "the memext that made it",
                      (long long)json_integer_value(version), MX_VERSION, VERSION);
    else if (!parse(o, out))
        err = mx_fail(why, -EINVAL,
                      "its description (note) is damaged: an entry is missing or contradicts another. Start "
                      "again with --force");
    json_decref(o);
    return err;
}

/* ---- for info */

json_t *mx_wf_note_json(const struct mx_wf_note *n) {
    json_t *o = json_object();
    mx_json_put_whole(o, "rows", n->geometry.rows);
    mx_json_put_whole(o, "cols", n->geometry.cols);
    mx_json_put(o, "layout", json_string(mx_wf_layouts[n->geometry.layout]));
    mx_json_put_whole(o, "mb", n->geometry.mb);
    mx_json_put_whole(o, "nb", n->geometry.nb);
    mx_json_put_whole(o, "iterations", n->iterations);
    mx_json_put_whole(o, "iterations_done", n->done);
    mx_json_put(o, "checksum", n->checksum[0] != 0 ? json_string(n->checksum) : json_null());
    return o;
}

void mx_wf_note_show(const struct mx_wf_note *n, const char *place, bool busy, FILE *to) {
    char word[MX_SHELL_WORD];
    const struct mx_wf_geometry *g = &n->geometry;
    fprintf(to, "wavefront  %lld x %lld cells, layout %s, tiles of %lld x %lld\n", (long long)g->rows,
            (long long)g->cols, mx_wf_layouts[g->layout], (long long)g->mb, (long long)g->nb);
    fprintf(to, "iteration  %lld of %lld%s\n", (long long)n->done, (long long)n->iterations,
            n->different ? ", verified and DIFFERENT" : "");
    if (n->checksum[0] != 0) fprintf(to, "checksum   %s\n", n->checksum);
    if (busy || n->different) return;
    mx_shell_word(place, word);
    if (n->done < n->iterations) fprintf(to, "resume     memext wavefront --resume -d %s\n", word);
    fprintf(to, "export     memext export %s -o za=FILE.npy\n", word);
}
