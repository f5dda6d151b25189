/* SPDX-License-Identifier: BSD-3-Clause */
#include "note/store.h"

#include "ask/size.h"
#include "core/device.h"
#include "machine/size.h"
#include "observe/json.h"
#include "observe/report.h"
#include "tune/tune.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int mx_stored_look(const char *path, mx_why *why, struct mx_stored *out) {
    struct mx_stored *s = out;
    memset(s, 0, sizeof *s);
    int err = mx_store_see(path, why, &s->facts);
    if (err < 0) return err;
    if (s->facts.note_bytes == 0)
        snprintf(s->why.text, sizeof s->why.text, "nothing was committed");
    else
        err = mx_note_parse(s->facts.note, s->facts.note_bytes, &s->why, &s->note);
    s->have_note = s->facts.note_bytes > 0 && err == 0;
    s->wavefront = err == -EMEDIUMTYPE;
    return 0;
}

size_t mx_note_files(const struct mx_note *note, struct mx_file_word out[MX_NOTE_FILES]) {
    size_t n = 0;
    out[n++] = (struct mx_file_word){"the run's --input", note->input, MX_FILE_READ};
    out[n++] = (struct mx_file_word){"the run's --kernel", note->kernel, MX_FILE_READ};
    for (int32_t i = 0; i < note->fields.n; i++) {
        const struct mx_run_field *f = &note->fields.field[i];
        out[n++] = (struct mx_file_word){"a field of the run", f->path, MX_FILE_READ};
        out[n++] = (struct mx_file_word){"the data of a field", f->data, MX_FILE_READ};
    }
    for (int32_t i = 0; i < note->n_series; i++)
        out[n++] = (struct mx_file_word){"the run's --param", note->series[i].path, MX_FILE_READ};
    return n;
}

const char *mx_stored_state(const struct mx_stored *s) {
    if (s->facts.in_use) return "under way";
    if (s->wavefront) return "wavefront";
    if (!s->have_note) return s->facts.note_bytes == 0 ? "empty" : "unreadable";
    if (s->note.different) return "different";
    if (s->facts.finished == 2) return "done, kept";
    return s->facts.finished ? "done" : "interrupted";
}

/* ---- for programs */

static json_t *whole(uint64_t value) { return json_integer((json_int_t)value); }

static json_t *json_extents(const struct mx_store_facts *f) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < f->n_extents; i++) {
        json_t *o = json_object();
        mx_json_put(o, "name", json_string(f->extents[i].name));
        mx_json_put(o, "offset_bytes", whole(f->extents[i].offset_bytes));
        mx_json_put(o, "bytes", whole(f->extents[i].bytes));
        json_array_append_new(list, o);
    }
    return list;
}

/* Of a kernel: its file, and by name what its fields began with; null: the field one step later. */
static void put_fields(json_t *o, const struct mx_note *n) {
    json_t *fields = json_object();
    for (int32_t i = 0; i < n->fields.n; i++) {
        const struct mx_run_field *f = &n->fields.field[i];
        char path[MX_FIELD_PATH + MX_FIELD_INSIDE];
        snprintf(path, sizeof path, "%s%s%s", f->path, f->inside[0] != 0 ? ":" : "", f->inside);
        mx_json_put(fields, f->name,
                    f->path[0] != 0   ? json_string(path)
                    : f->init != NULL ? json_string(f->init->name)
                                      : json_null());
    }
    json_t *in_place = json_array();
    for (int32_t i = 0; i < n->fields.n; i++)
        if (n->fields.field[i].in_place)
            json_array_append_new(in_place, json_string(n->fields.field[i].name));
    mx_json_put(o, "kernel_file", json_string(n->kernel));
    mx_json_put(o, "fields", fields);
    mx_json_put(o, "fields_in_place", in_place);
}

static json_t *json_snapshots(const struct mx_snapshots_asked *s) {
    json_t *o = json_object();
    mx_json_put(o, "every", json_integer(s->every));
    mx_json_put(o, "stride", json_integer(s->stride));
    mx_json_put(o, "directory", json_string(s->directory));
    return o;
}

static const struct mx_store_extent *extent_of(const struct mx_store_facts *f, const char *name) {
    for (uint32_t i = 0; i < f->n_extents; i++)
        if (strcmp(f->extents[i].name, name) == 0) return &f->extents[i];
    return NULL;
}

/* `low` and `high` planes of a frame are below and above the store's own. */
static void add_array(json_t *list, const struct mx_note *n, const char *name, enum mx_dtype dtype,
                      const struct mx_store_extent *extent, int64_t offset_bytes, int64_t row_pitch_bytes,
                      int64_t plane_pitch_bytes, int32_t low, int32_t high) {
    if (extent == NULL) return;
    offset_bytes += (n->problem.h - low) * plane_pitch_bytes;
    json_t *o = json_object();
    mx_json_put(o, "name", json_string(name));
    mx_json_put(o, "dtype", json_string(mx_dtype_name(dtype)));
    mx_json_put(o, "buffer", json_string(extent->name));
    mx_json_put(o, "offset_bytes", json_integer((json_int_t)extent->offset_bytes + offset_bytes));
    mx_json_put(o, "row_pitch_bytes", json_integer(row_pitch_bytes));
    mx_json_put(o, "plane_pitch_bytes", json_integer(plane_pitch_bytes));
    mx_json_put(o, "planes", json_integer(n->problem.nz + low + high));
    mx_json_put(o, "frame_low", json_integer(low));
    mx_json_put(o, "frame_high", json_integer(high));
    json_array_append_new(list, o);
}

/* Where the cells of the committed state lie in the file, for programs that read them there: of leapfrog
 * systems the arrays change places with every step. Fields that are read in files of the user are not here.
 * In the store of a rank, planes of the state beyond its own are stale: they are the neighbour's to compute.
 */
static json_t *json_arrays(const struct mx_stored *s) {
    const struct mx_note *n = &s->note;
    const struct mx_layout *l = &n->layout;
    const bool pairs = mx_reads_old(&n->problem), leapfrog = mx_form(&n->problem) == MX_LEAPFROG;
    const int32_t h = n->problem.h, low = mx_note_has_neighbour(n, 0) ? 0 : h,
                  high = mx_note_has_neighbour(n, 1) ? 0 : h;
    json_t *list = json_array();
    if (n->pending) return list;
    if (n->problem.system == NULL)
        add_array(list, n, "u", n->problem.dtype, extent_of(&s->facts, mx_note_buffers[n->buffer]), 0,
                  l->row_pitch_bytes, l->plane_pitch_bytes, low, high);
    for (int32_t i = 0; i < n->fields.n; i++) {
        const struct mx_run_field *f = &n->fields.field[i];
        char name[16];
        if (f->array == MX_FIELD_OF_C) {
            const struct mx_fixed_layout *c = &l->fixed[f->index];
            if (!c->user_file)
                add_array(list, n, f->name, f->dtype,
                          extent_of(&s->facts, mx_note_fixed(n->second, f->index, name)), c->offset_bytes,
                          c->row_pitch_bytes, c->plane_pitch_bytes, h, h);
            continue;
        }
        const int array = leapfrog ? f->array ^ (int)(n->time & 1) : f->array;
        const char *buffer = pairs && array == 1 ? mx_note_partners[n->buffer] : mx_note_buffers[n->buffer];
        add_array(list, n, f->name, f->dtype, extent_of(&s->facts, buffer),
                  l->field_offset_bytes[array][f->index], l->row_pitch_bytes, l->plane_pitch_bytes, low,
                  high);
    }
    return list;
}

/* The newest check: its step, and the reductions of the state before it, in the kernel's order. */
static json_t *json_last_check(const struct mx_note *n) {
    const struct mx_norms_history *h = &n->history;
    if (h->n == 0) return json_null();
    const struct mx_norms_result *last = &h->kept[h->n - 1].result;
    json_t *o = json_object(), *values = json_array();
    mx_json_put(o, "step", json_integer(last->step));
    for (int32_t i = 0; i < last->n_reduce; i++)
        json_array_append_new(values, mx_json_number(last->reduce[i]));
    mx_json_put(o, "reductions", values);
    json_t *stored = json_array();
    for (int32_t i = 0; i < n->n_stored; i++) json_array_append_new(stored, mx_json_number(n->stored[i]));
    mx_json_put(o, "stored", stored);
    return o;
}

static json_t *json_former(const struct mx_note_former *f) {
    if (f->runs == 0) return json_null();
    json_t *o = json_object(), *fields = json_array();
    char run[17];
    snprintf(run, sizeof run, "%016llx", (unsigned long long)f->run);
    mx_json_put(o, "run", json_string(run));
    mx_json_put(o, "step", json_integer(f->step));
    mx_json_put(o, "runs", json_integer(f->runs));
    for (int32_t i = 0; i < f->n; i++) {
        json_t *one = json_object();
        mx_json_put(one, "name", json_string(f->field[i].name));
        mx_json_put(one, "dtype", json_string(mx_dtype_name(f->field[i].dtype)));
        json_array_append_new(fields, one);
    }
    mx_json_put(o, "fields", fields);
    return o;
}

static void put_note(json_t *o, const struct mx_note *n) {
    char line[MX_PLAN_LINE_BYTES], sides[MX_SIDES_TEXT];
    mx_json_put(o, "problem", mx_json_problem(&n->problem));
    mx_json_put(o, "plan", mx_json_plan(&n->plan));
    mx_json_put(o, "plan_line", json_string(mx_plan_print(&n->plan, line, sizeof line)));
    mx_json_put(o, "step", json_integer(n->time));
    mx_json_put(o, "edits", json_integer(n->edits));
    mx_json_put(o, "edited_step", n->edits > 0 ? json_integer(n->edited) : json_null());
    mx_json_put(o, "edits_there", json_integer(n->edits > 0 ? n->edits_there : 0));
    mx_json_put(o, "sides", json_string(mx_sides_text(&n->sides, &n->problem, sides)));
    mx_json_put(o, "simulated_s", n->timed ? mx_json_number(n->simulated_s) : json_null());
    mx_json_put(o, "complete", json_boolean(mx_note_complete(n)));
    mx_json_put(o, "last_check", json_last_check(n));
    mx_json_put(o, "met", n->met.until[0] != 0 ? json_string(n->met.until) : json_null());
    mx_json_put(o, "buffer", n->pending ? json_null() : json_string(mx_note_buffers[n->buffer]));
    if (n->ranks > 0) {
        mx_json_put(o, "rank", json_integer(n->rank));
        mx_json_put(o, "ranks", json_integer(n->ranks));
        mx_json_put(o, "first_plane", json_integer(n->problem.first_plane));
        mx_json_put(o, "before_step", json_integer(n->before_time));
    }
    char run[17];
    snprintf(run, sizeof run, "%016llx", (unsigned long long)n->run);
    mx_json_put(o, "run", json_string(run));
    mx_json_put(o, "cut", json_integer(n->cut));
    mx_json_put(o, "former", json_former(&n->former));
    mx_json_put(o, "backend", json_string(n->backend));
    mx_json_put(o, "host", json_string(n->host));
    mx_json_put(o, "started_unix_s", json_integer(n->started_s));
    mx_json_put(o, "committed_unix_s", json_integer(n->committed_s));
    mx_json_put(o, "commit_every_s", json_real(n->commit_every));
    mx_json_put(o, "integrity_unit_bytes", json_integer(n->integrity_unit));
    mx_json_put(o, "row_pitch_bytes", json_integer(n->layout.row_pitch_bytes));
    mx_json_put(o, "plane_pitch_bytes", json_integer(n->layout.plane_pitch_bytes));
    mx_json_put(o, "checksum", n->checksum[0] != 0 ? json_string(n->checksum) : json_null());
    if (n->snapshots.every > 0) mx_json_put(o, "snapshots", json_snapshots(&n->snapshots));
    if (n->frame[0] != 0) mx_json_put(o, "made_frame", json_string(n->frame));
    if (n->problem.system != NULL && n->source[0] != 0) mx_json_put(o, "source", json_string(n->source));
    if (n->problem.system != NULL)
        put_fields(o, n);
    else if (n->input[0] != 0)
        mx_json_put(o, "input", json_string(n->input));
    else if (n->source[0] != 0)
        mx_json_put(o, "source", json_string(n->source));
    else
        mx_json_put(o, "init", json_string(n->init));
}

json_t *mx_stored_json(const struct mx_stored *s) {
    json_t *o = json_object();
    mx_json_put(o, "place", json_string(s->facts.place));
    mx_json_put(o, "state", json_string(mx_stored_state(s)));
    mx_json_put(o, "in_use", json_boolean(s->facts.in_use));
    mx_json_put(o, "block_device", json_boolean(s->facts.block_device));
    mx_json_put(o, "bytes", whole(s->facts.file_bytes));
    mx_json_put(o, "generation", whole(s->facts.generation));
    mx_json_put(o, "extents", json_extents(&s->facts));
    mx_json_put(o, "step", json_integer(-1));
    mx_json_put(o, "simulated_s", json_null());
    mx_json_put(o, "complete", json_false());
    mx_json_put(o, "why", json_string(s->why.text));
    if (s->have_note) put_note(o, &s->note);
    if (s->have_note) mx_json_put(o, "arrays", json_arrays(s));
    return o;
}

int mx_store_report(const char *path, mx_why *why, char **out) {
    struct mx_stored *s = calloc(1, sizeof *s);
    char *text = NULL;
    const locale_t before = mx_numbers_begin();
    int err =
        s != NULL ? mx_stored_look(path, why, s) : mx_fail(why, -ENOMEM, "no memory for a store's note");
    if (err == 0) {
        json_t *o = mx_stored_json(s);
        text = json_dumps(o, JSON_INDENT(2));
        json_decref(o);
        if (text == NULL) err = mx_fail(why, -ENOMEM, "no memory for the description of a store");
    }
    free(s);
    mx_numbers_end(before);
    if (err < 0) return err;
    return *out = text, 0;
}

/* ---- its end */

/* The default backend may be forbidden here. */
static int open_store(const char *path, bool no_lock, mx_why *why, mx_device **out) {
    struct mx_device_options o = {.size = sizeof o, .path = path, .resume = true, .no_lock = no_lock};
    const int err = mx_device_open(&o, why, out);
    if (err == 0 || err == -ENOENT || err == -EBUSY) return err;
    o.backend = "mmap";
    return mx_device_open(&o, why, out);
}

/* Locked now: nobody else changes it. */
static int check_same(mx_device *device, const char *path, uint64_t generation, uint64_t run, mx_why *why) {
    struct mx_stored *s = calloc(1, sizeof *s);
    uint64_t now = 0;
    if (s == NULL) return mx_fail(why, -ENOMEM, "no memory for a store's note");
    const int64_t n = mx_device_note(device, s->facts.note, sizeof s->facts.note);
    if (n > 0 && mx_note_parse(s->facts.note, (size_t)n, NULL, &s->note) == 0) now = s->note.run;
    free(s);
    if (generation == 0 || (generation == mx_device_generation(device) && run == now)) return 0;
    return mx_fail(why, -ESTALE,
                   "the store in %.300s has changed since it was read: a run has gone on with it, or another "
                   "run replaced it. Look at it again",
                   path);
}

int mx_store_discard(const char *path, uint64_t generation, uint64_t run, bool no_lock, mx_why *why) {
    mx_device *device;
    int err = open_store(path, no_lock, why, &device);
    if (err < 0) return err;
    err = check_same(device, path, generation, run, why);
    if (err == 0 && (err = mx_device_finish(device)) < 0) mx_device_error(device, why);
    mx_device_close(device);
    return err;
}

/* ---- for people */

static const char *when(int64_t unix_s, char *text, size_t capacity) {
    time_t t = (time_t)unix_s;
    struct tm local;
    if (localtime_r(&t, &local) == NULL || strftime(text, capacity, "%Y-%m-%d %H:%M:%S", &local) == 0)
        snprintf(text, capacity, "an unknown time");
    return text;
}

/* What a field began with. */
static void print_beginning(const struct mx_note *n, const struct mx_run_field *f, FILE *to) {
    const char *kind = "init", *name = "unknown";
    if (f->path[0] != 0)
        kind = "the file", name = f->path;
    else if (f->program)
        kind = "the source", name = n->source;
    else if (f->init != NULL)
        name = f->init->name;
    else if (f->same_as >= 0)
        kind = "the values of", name = n->fields.field[f->same_as].name;
    fprintf(to, "%s %s%s%s%s\n", kind, name, f->inside[0] != 0 ? ":" : "", f->inside,
            !f->in_place    ? ""
            : f->alike != 0 ? ", held in DRAM"
                            : ", read in place");
}

static void print_system(const struct mx_note *n, FILE *to) {
    const struct mx_system *s = n->problem.system;
    fprintf(to, "kernel     %s of %s\n", s->name, n->kernel);
    for (int32_t i = 0; i < s->n_param; i++) {
        const struct mx_note_series *q = mx_note_series(n, s->param_name[i]);
        fprintf(to, "%s %s=", i == 0 ? "parameters" : "", s->param_name[i]);
        if (q != NULL)
            fprintf(to, "%s", q->path);
        else
            fprintf(to, "%.15g", s->param[i]);
        if (mx_note_edit(n, s->param_name[i]) != NULL)
            fprintf(to, " (%.15g at the beginning)", mx_note_edit(n, s->param_name[i])->began);
    }
    if (s->n_param > 0) fputc('\n', to);
    for (int32_t i = 0; i < n->fields.n; i++) {
        const struct mx_run_field *f = &n->fields.field[i];
        fprintf(to, "%-10s %s %s from ", i == 0 ? "fields" : "", f->name, mx_dtype_name(f->dtype));
        print_beginning(n, f, to);
    }
}

static void print_problem(const struct mx_note *n, FILE *to) {
    const struct mx_problem *p = &n->problem;
    char extents[MX_EXTENTS_TEXT];
    fprintf(to, "problem    %s, %lld steps", mx_extents_text(p, extents), (long long)p->nt);
    if (p->system != NULL) {
        fputc('\n', to);
        print_system(n, to);
        return;
    }
    fprintf(to, ", %s %s, from %s %s\n", p->stencil, mx_dtype_name(p->dtype),
            n->input[0] != 0    ? "the file"
            : n->source[0] != 0 ? "the source"
                                : "init",
            n->input[0] != 0    ? n->input
            : n->source[0] != 0 ? n->source
                                : n->init);
}

void mx_note_show(const struct mx_note *n, FILE *to) {
    char line[MX_PLAN_LINE_BYTES], begun[32], committed[32], sides[MX_SIDES_TEXT];
    const struct mx_problem *p = &n->problem;
    print_problem(n, to);
    if (!mx_sides_all_fixed(&n->sides)) fprintf(to, "sides      %s\n", mx_sides_text(&n->sides, p, sides));
    if (n->frame[0] != 0) fprintf(to, "frame      made: %s\n", n->frame);
    const struct mx_size_text size = mx_size((uint64_t)n->layout.buffer_bytes);
    char at[32] = "";
    if (n->timed) snprintf(at, sizeof at, ", %.6g s", n->simulated_s);
    if (n->pending)
        fprintf(to, "step       0 of %lld, nothing is committed yet; Buffers of %s\n", (long long)p->nt,
                size.text);
    else
        fprintf(to, "step       %lld of %lld (%s)%s, in Buffer \"%s\" of %s\n", (long long)n->time,
                (long long)p->nt, mx_note_complete(n) ? "complete" : "incomplete", at,
                mx_note_buffers[n->buffer], size.text);
    if (n->edits > 0)
        fprintf(to, "edited     %lld time%s, the last time at step %lld\n", (long long)n->edits,
                n->edits == 1 ? "" : "s", (long long)n->edited);
    if (n->former.runs > 0)
        fprintf(to, "began      with step %lld of an earlier run, as run number %d in this place\n",
                (long long)n->former.step, n->former.runs);
    fprintf(to, "when       begun %s%s%s, on %s with %s\n", when(n->started_s, begun, sizeof begun),
            n->pending ? "" : ", committed ",
            n->pending ? "" : when(n->committed_s, committed, sizeof committed), n->host, n->backend);
    if (n->snapshots.every > 0)
        fprintf(to, "snapshots  every %lld steps, one cell of %lld in x, y and z, in %s\n",
                (long long)n->snapshots.every, (long long)n->snapshots.stride, n->snapshots.directory);
    fprintf(to, "plan       %s\n", mx_plan_print(&n->plan, line, sizeof line));
    if (n->check > 0) fprintf(to, "checks     every %lld steps", (long long)n->check);
    for (int32_t i = 0; i < n->n_until; i++) fprintf(to, "%s %s", i == 0 ? ", until" : " or", n->until[i]);
    if (n->check > 0) fputc('\n', to);
    if (n->met.until[0] != 0)
        fprintf(to, "ended      by the criterion %s, whose value was %.6g\n", n->met.until, n->met.value);
    if (n->checksum[0] != 0) fprintf(to, "checksum   %s\n", n->checksum);
}

const char *mx_shell_word(const char *word, char out[MX_SHELL_WORD]) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./%+,:@=";
    size_t n = 0;
    if (word[0] != 0 && word[strspn(word, plain)] == 0) return strcpy(out, word);
    out[n++] = '\'';
    for (const char *c = word; *c != 0 && n + 6 < MX_SHELL_WORD; c++)
        if (*c == '\'')
            n += (size_t)snprintf(out + n, MX_SHELL_WORD - n, "'\\''");
        else
            out[n++] = *c;
    out[n++] = '\'';
    out[n] = 0;
    return out;
}

/* As --dram takes it, to the byte. */
static const char *dram_option(uint64_t bytes, char out[40]) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    out[0] = 0;
    if (bytes == 0) return out;
    while (unit < 4 && bytes % 1024 == 0) bytes /= 1024, unit++;
    snprintf(out, 40, " --dram %llu%s", (unsigned long long)bytes, units[unit]);
    return out;
}

void mx_note_show_ways(const struct mx_note *n, int32_t ranks, const char *place, const char *from,
                       uint64_t dram_bytes, FILE *to) {
    char word[MX_SHELL_WORD], dram[40], several[32] = "", name[MX_FIELD_NAME] = "";
    const bool program = n->pending && n->source[0] != 0;
    if (ranks > 1) snprintf(several, sizeof several, " --ranks %d", ranks);
    if (program)
        fprintf(to, "resume     start the program of this run again: the run has committed nothing yet\n");
    else if (!mx_note_complete(n))
        fprintf(to, "resume     memext run --resume%s -d %s%s\n", several, mx_shell_word(place, word),
                dram_option(dram_bytes > 0 ? dram_bytes : n->dram_bytes, dram));
    if (n->pending) return;
    if (n->problem.system != NULL) snprintf(name, sizeof name, "%s", n->problem.system->field[0][0].name);
    fprintf(to, "export     memext export %s -o %s%s%s.npy\n", mx_shell_word(from, word), name,
            name[0] != 0 ? "=" : "", name[0] != 0 ? name : "FILE");
}

static void print_way_on(const struct mx_stored *s, const char *place, uint64_t dram_bytes, FILE *to) {
    if (!s->have_note || s->facts.in_use || s->note.different) return;
    if (s->note.ranks > 0) {
        fprintf(to,
                "part       one of the stores of %d ranks: run memext info on the directory of all stores "
                "(-d of the run)\n",
                s->note.ranks);
        return;
    }
    mx_note_show_ways(&s->note, 1, place, place, dram_bytes, to);
}

void mx_stored_print(const struct mx_stored *s, const char *asked, uint64_t dram_bytes, FILE *to) {
    fprintf(to, "store      %s, %s, %s", s->facts.place, mx_size(s->facts.file_bytes).text,
            mx_stored_state(s));
    fprintf(to, s->why.text[0] != 0 ? " (%s)\n" : "%s\n", s->why.text);
    if (s->have_note) mx_note_show(&s->note, to);
    print_way_on(s, asked, dram_bytes, to);
}
