/* SPDX-License-Identifier: BSD-3-Clause */
/* print.c - a note as text. */
#include "note/note_private.h"
#include "note/reader.h"

#include "grid/grid.h"
#include "observe/json.h"
#include "system/profile.h"
#include "tune/tune.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

static json_t *print_problem(const struct mx_problem *p) {
    json_t *o = json_object(), *n = json_array(), *coef = json_array();
    const int64_t extents[3] = {p->nx, p->ny, p->nz};
    for (int i = 0; i < 3; i++) json_array_append_new(n, json_integer(extents[i]));
    for (int i = 0; i < 4; i++) json_array_append_new(coef, json_real(p->coef[i]));
    mx_json_put(o, "n", n);
    mx_json_put_whole(o, "nt", p->nt);
    if (p->system == NULL) {
        mx_json_put(o, "stencil", json_string(p->stencil));
        mx_json_put(o, "dtype", json_string(mx_dtype_name(p->dtype)));
        mx_json_put(o, "coef", coef);
    } else {
        json_decref(coef);
    }
    return o;
}

/* One list of fields as "name:type" words. */
static json_t *print_names(const struct mx_field_of *field, int32_t n) {
    json_t *list = json_array();
    char text[MX_FIELD_NAME + 8];
    for (int32_t i = 0; i < n; i++) {
        snprintf(text, sizeof text, "%.23s:%s", field[i].name, mx_dtype_name(field[i].dtype));
        json_array_append_new(list, json_string(text));
    }
    return list;
}

/* What stands in a field at first: the name of an init, or a file as an object. */
static json_t *print_values(const struct mx_run_field *f, char path[MX_NOTE_ESCAPED_BYTES]) {
    if (f->program) return json_true();
    if (f->path[0] == 0) return json_string(f->init != NULL ? f->init->name : "");
    json_t *o = json_object();
    char alike[4];
    mx_note_put_file(o, f->path, &f->identity);
    if (f->raw[0] != 0) mx_json_put(o, "raw", json_string(f->raw));
    if (f->inside[0] != 0) {
        mx_note_escape(f->inside, path);
        mx_json_put(o, "dataset", json_string(path));
    }
    if (f->data[0] != 0) {
        mx_note_escape(f->data, path);
        mx_json_put(o, "data", json_string(path));
    }
    if (!f->frame) mx_json_put(o, "frame", json_false());
    if (f->in_place) mx_json_put(o, "in_place", json_true());
    if (f->alike != 0) mx_json_put(o, "alike", json_string(mx_alike_text(f->alike, alike)));
    return o;
}

static bool new_types(const struct mx_note *n) {
    const struct mx_system *s = n->problem.system;
    bool some = false;
    for (int array = 0; s != NULL && array < 2; array++)
        for (int32_t i = 0; i < s->n_field[array]; i++) some |= !mx_dtype_is_real(s->field[array][i].dtype);
    for (int32_t i = 0; s != NULL && i < s->n_fixed; i++) some |= s->fixed[i].dtype > MX_I16;
    return some;
}

static bool any_in_place(const struct mx_note *n) {
    for (int32_t i = 0; i < n->fields.n; i++)
        if (n->fields.field[i].in_place) return true;
    return false;
}

static json_t *print_system(const struct mx_note *n) {
    const struct mx_system *s = &n->system;
    char path[MX_NOTE_ESCAPED_BYTES], identity[17];
    json_t *o = json_object(), *values = json_object();
    mx_note_escape(n->kernel, path);
    snprintf(identity, sizeof identity, "%016llx", (unsigned long long)s->identity);
    mx_json_put(o, "kernel", json_string(path));
    mx_json_put(o, "identity", json_string(identity));
    mx_json_put(o, "name", json_string(s->name));
    mx_json_put(o, "form", json_string(mx_note_forms[s->form]));
    if (s->stages > 1) mx_json_put_whole(o, "stages", s->stages);
    mx_json_put_whole(o, "h", s->h);
    mx_json_put_whole(o, "hc", s->hc);
    if (s->flat) mx_json_put(o, "flat", json_true());
    mx_json_put(o, "a", print_names(s->field[0], s->n_field[0]));
    mx_json_put(o, "b", print_names(s->field[1], s->n_field[1]));
    mx_json_put(o, "c", print_names(s->fixed, s->n_fixed));
    mx_json_put(o, "params", mx_note_print_params(n));
    for (int32_t i = 0; i < n->fields.n; i++)
        mx_json_put(values, n->fields.field[i].name, print_values(&n->fields.field[i], path));
    mx_json_put(o, "values", values);
    if (n->source[0] != 0) mx_json_put(o, "source", json_string(n->source));
    return o;
}

/* Of C rows and planes, in turn. */
static json_t *print_layout(const struct mx_layout *l, int32_t n_fixed) {
    json_t *o = json_object(), *fixed = json_array();
    mx_json_put_whole(o, "row_pitch_bytes", l->row_pitch_bytes);
    mx_json_put_whole(o, "plane_pitch_bytes", l->plane_pitch_bytes);
    for (int32_t i = 0; i < n_fixed; i++) {
        json_array_append_new(fixed, json_integer(l->fixed[i].row_pitch_bytes));
        json_array_append_new(fixed, json_integer(l->fixed[i].plane_pitch_bytes));
    }
    if (n_fixed > 0)
        mx_json_put(o, "fixed_pitch_bytes", fixed);
    else
        json_decref(fixed);
    return o;
}

static json_t *print_input(const struct mx_note *n) {
    json_t *o = json_object();
    mx_note_put_file(o, n->input, &n->identity);
    if (n->raw[0] != 0) mx_json_put(o, "raw", json_string(n->raw));
    return o;
}

static void put_identity(json_t *o, const char *key, uint64_t identity) {
    if (identity != 0) mx_note_put_hash(o, key, identity);
}

/* What a program says of the values that it gives, by field. */
static json_t *print_given(const struct mx_note *n) {
    json_t *o = json_object();
    if (n->problem.system == NULL && n->source[0] != 0 && n->identity.sampled)
        mx_note_put_hash(o, "u", n->identity.sample);
    for (int32_t i = 0; i < n->fields.n; i++) {
        const struct mx_run_field *f = &n->fields.field[i];
        if (f->program && f->identity.sampled) mx_note_put_hash(o, f->name, f->identity.sample);
    }
    return o;
}

static json_t *print_number(double v) { return isfinite(v) ? json_real(v) : json_null(); }

/* Of each check that is kept a list: number, step, changes, and two numbers for each reduction. */
static json_t *print_history(const struct mx_norms_history *h) {
    json_t *all = json_array();
    for (int32_t i = 0; i < h->n; i++) {
        const struct mx_norms_result *r = &h->kept[i].result;
        json_t *one = json_array();
        json_array_append_new(one, json_integer(h->kept[i].number));
        json_array_append_new(one, json_integer(r->step));
        json_array_append_new(one, print_number(r->max_change));
        json_array_append_new(one, print_number(r->rms_change));
        for (int32_t k = 0; k < r->n_reduce; k++) {
            json_array_append_new(one, print_number(r->reduce[k]));
            json_array_append_new(one, print_number(r->spread[k]));
        }
        json_array_append_new(all, one);
    }
    return all;
}

/* Of these checks, where the length of a step may have been another one then; programs of before ignore it.
 */
static json_t *print_seconds(const struct mx_norms_history *h) {
    json_t *all = json_array();
    for (int32_t i = 0; i < h->n; i++)
        json_array_append_new(all, print_number(h->kept[i].result.simulated_s));
    return all;
}

static json_t *print_stored(const struct mx_note *n) {
    json_t *all = json_array();
    for (int32_t i = 0; i < n->n_stored; i++) json_array_append_new(all, print_number(n->stored[i]));
    return all;
}

/* kept: of the history at most. */
static json_t *print_checks(const struct mx_note *n, int32_t kept) {
    json_t *o = json_object(), *until = json_array();
    struct mx_norms_history history = {.n = 0};
    mx_json_put_whole(o, "every", n->check);
    for (int32_t i = 0; i < n->n_until; i++) json_array_append_new(until, json_string(n->until[i]));
    mx_json_put(o, "until", until);
    if (kept > 0) mx_history_up_to(&n->history, n->time, kept, &history);
    mx_json_put_whole(o, "stride", history.stride);
    mx_json_put(o, "norms", print_history(&history));
    if (n->n_edits > 0 && history.n > 0) mx_json_put(o, "seconds", print_seconds(&history));
    if (n->n_stored > 0) mx_json_put(o, "stored", print_stored(n));
    if (n->met.until[0] == 0) return o;
    mx_json_put(o, "met", json_string(n->met.until));
    mx_json_put(o, "met_value", print_number(n->met.value));
    return o;
}

static json_t *print_snapshots(const struct mx_snapshots_asked *s) {
    char path[MX_NOTE_ESCAPED_BYTES];
    json_t *o = json_object();
    mx_note_escape(s->directory, path);
    mx_json_put_whole(o, "every", s->every);
    mx_json_put_whole(o, "stride", s->stride);
    mx_json_put(o, "directory", json_string(path));
    put_identity(o, "run", s->run);
    if (s->fields[0] != 0) mx_json_put(o, "fields", json_string(s->fields));
    return o;
}

static json_t *print_samples(const struct mx_note *n) {
    json_t *all = json_array();
    char text[17];
    for (int32_t i = 0; i < mx_field_count(&n->problem, 0); i++) {
        snprintf(text, sizeof text, "%016llx", (unsigned long long)n->sample[i]);
        json_array_append_new(all, json_string(text));
    }
    return all;
}

static json_t *print_ranks(const struct mx_note *n) {
    json_t *o = json_object();
    mx_json_put_whole(o, "rank", n->rank);
    mx_json_put_whole(o, "ranks", n->ranks);
    mx_json_put_whole(o, "first_plane", n->problem.first_plane);
    mx_json_put_whole(o, "planes", n->problem.all_nz);
    mx_json_put_whole(o, "before_step", n->before_time);
    if (n->edits > 0) mx_json_put_whole(o, "before_edits", n->before_edits);
    if (n->edits > 0) mx_json_put_whole(o, "before_edited", n->before_edited);
    if (n->edits > 0) mx_json_put_whole(o, "before_second", n->before_second);
    mx_json_put_whole(o, "before_buffer", n->before_buffer);
    mx_json_put_whole(o, "fixed_beyond", n->fixed_beyond);
    return o;
}

static void put_time_and_edits(json_t *o, const struct mx_note *n) {
    if (n->time_step[0] != 0) mx_json_put(o, "time_step", json_string(n->time_step));
    if (n->timed) mx_json_put(o, "simulated_s", json_real(n->simulated_s));
    if (n->edits == 0) return;
    mx_json_put_whole(o, "edits", n->edits);
    mx_json_put_whole(o, "edited", n->edited);
    mx_json_put_whole(o, "edits_there", n->edits_there);
    if (n->second != 0) mx_json_put_whole(o, "second", n->second);
}

/* Sides that note 6 has no words for. */
static bool new_sides(const struct mx_sides *s) {
    const int old = 1 << MX_SIDE_FIXED | 1 << MX_SIDE_MIRROR | 1 << MX_SIDE_PERIODIC;
    for (int i = 0; i < 6; i++)
        if (s->side[i / 2][i % 2] == MX_SIDE_SEVERAL || (old >> s->side[i / 2][i % 2] & 1) == 0) return true;
    return false;
}

/* The oldest version of the note that has what this one says. */
static int version_of(const struct mx_note *n) {
    if (n->edits > 0 || mx_has_stages(&n->problem) || n->problem.flat || new_types(n)) return MX_NOTE_VERSION;
    if (new_sides(&n->sides)) return MX_NOTE_SIDES;
    if (n->pending || n->ranks > 0) return MX_NOTE_RANKS;
    return any_in_place(n) ? MX_NOTE_IN_PLACE : MX_NOTE_OLDEST;
}

static json_t *print_all(const struct mx_note *n, int32_t kept) {
    char line[MX_PLAN_LINE_BYTES], sides[MX_SIDES_TEXT];
    json_t *o = json_object();
    mx_json_put(o, "kind", json_string(MX_NOTE_KIND));
    mx_json_put_whole(o, "note", version_of(n));
    mx_json_put(o, "memext", json_string(MX_VERSION));
    mx_json_put(o, "problem", print_problem(&n->problem));
    mx_json_put(o, "plan", json_string(mx_plan_print(&n->plan, line, sizeof line)));
    mx_json_put(o, "layout", print_layout(&n->layout, mx_fixed_count(&n->problem)));
    mx_json_put_whole(o, "step", n->time);
    mx_json_put_whole(o, "buffer", n->buffer);
    put_time_and_edits(o, n);
    if (n->ranks > 0) mx_json_put(o, "ranks", print_ranks(n));
    put_identity(o, "run", n->run);
    if (n->former.runs > 0) mx_json_put(o, "former", mx_note_print_former(&n->former));
    if (n->cut > 0) mx_json_put_whole(o, "cut", n->cut);
    mx_json_put_whole(o, "buffers", n->n_buffers);
    if (n->pending) mx_json_put(o, "pending", print_samples(n));
    if (n->keep) mx_json_put(o, "keep", json_true());
    if (n->ignores_nonfinite) mx_json_put(o, "nonfinite", json_string("ignore"));
    if (n->different) mx_json_put(o, "different", json_true());
    mx_json_put(o, "frames",
                json_boolean(n->framed == mx_note_all_buffers(n))); /* what older programs read */
    mx_json_put_whole(o, "framed", n->framed);
    mx_json_put_whole(o, "integrity_unit_bytes", n->integrity_unit);
    mx_json_put(o, "commit_every_s", json_real(n->commit_every));
    if (n->dram_bytes > 0 && n->dram_bytes <= INT64_MAX)
        mx_json_put_whole(o, "dram_bytes", (int64_t)n->dram_bytes);
    mx_json_put(o, "backend", json_string(n->backend));
    mx_json_put(o, "host", json_string(n->host));
    mx_json_put_whole(o, "started_s", n->started_s);
    mx_json_put_whole(o, "committed_s", n->committed_s);
    if (n->checksum[0] != 0) mx_json_put(o, "checksum", json_string(n->checksum));
    if (!mx_sides_all_fixed(&n->sides))
        mx_json_put(o, "sides", json_string(mx_sides_text(&n->sides, &n->problem, sides)));
    if (n->frame[0] != 0) mx_json_put(o, "made_frame", json_string(n->frame));
    put_identity(o, "sources", n->sources);
    put_identity(o, "probes", n->probes);
    json_t *given = print_given(n);
    if (json_object_size(given) > 0)
        mx_json_put(o, "given", given);
    else
        json_decref(given);
    if (n->check > 0) mx_json_put(o, "checks", print_checks(n, kept));
    if (n->snapshots.every > 0) mx_json_put(o, "snapshots", print_snapshots(&n->snapshots));
    if (n->problem.system != NULL)
        mx_json_put(o, "system", print_system(n));
    else if (n->input[0] != 0)
        mx_json_put(o, "input", print_input(n));
    else if (n->source[0] != 0)
        mx_json_put(o, "source", json_string(n->source));
    else
        mx_json_put(o, "init", json_string(n->init));
    return o;
}

int mx_note_print(const struct mx_note *note, char *text, size_t capacity) {
    size_t n = capacity;
    for (int32_t kept = note->history.n; n >= capacity && kept >= 0; kept = kept > 0 ? kept / 2 : -1) {
        json_t *o = print_all(note, kept);
        n = o != NULL ? json_dumpb(o, text, capacity, JSON_COMPACT) : 0;
        json_decref(o);
    }
    if (n == 0) return -ENOMEM;
    if (n >= capacity) return -ENOSPC;
    text[n] = 0;
    return (int)n;
}
