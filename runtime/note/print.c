/* SPDX-License-Identifier: BSD-3-Clause */
/* print.c - a note as text. */
#include "note/note_private.h"

#include "grid/grid.h"
#include "tune/tune.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

static void put(json_t *object, const char *key, json_t *value) { json_object_set_new(object, key, value); }
static void put_whole(json_t *object, const char *key, int64_t value) {
    put(object, key, json_integer(value));
}

static json_t *print_problem(const struct mx_problem *p) {
    json_t *o = json_object(), *n = json_array(), *coef = json_array();
    const int64_t extents[3] = {p->nx, p->ny, p->nz};
    for (int i = 0; i < 3; i++) json_array_append_new(n, json_integer(extents[i]));
    for (int i = 0; i < 4; i++) json_array_append_new(coef, json_real(p->coef[i]));
    put(o, "n", n);
    put_whole(o, "nt", p->nt);
    if (p->system == NULL) {
        put(o, "stencil", json_string(p->stencil));
        put(o, "dtype", json_string(mx_dtype_name(p->dtype)));
        put(o, "coef", coef);
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

static void put_hash(json_t *o, const char *key, uint64_t hash) {
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    put(o, key, json_string(text));
}

static void put_sample(json_t *o, const struct mx_input_identity *i) {
    put_whole(o, "offset_bytes", i->offset_bytes);
    put_hash(o, "sample", i->sample);
}

/* What stands in a field at first: the name of an init, or a file as an object. */
static json_t *print_values(const struct mx_run_field *f, char path[MX_NOTE_ESCAPED_BYTES]) {
    if (f->program) return json_true();
    if (f->path[0] == 0) return json_string(f->init != NULL ? f->init->name : "");
    json_t *o = json_object();
    mx_note_escape(f->path, path);
    put(o, "path", json_string(path));
    if (f->raw[0] != 0) put(o, "raw", json_string(f->raw));
    if (f->inside[0] != 0) {
        mx_note_escape(f->inside, path);
        put(o, "dataset", json_string(path));
    }
    if (f->data[0] != 0) {
        mx_note_escape(f->data, path);
        put(o, "data", json_string(path));
    }
    if (!f->frame) put(o, "frame", json_false());
    put_whole(o, "inode", (int64_t)f->identity.inode);
    put_whole(o, "bytes", (int64_t)f->identity.bytes);
    put_whole(o, "modified_ns", f->identity.modified_ns);
    if (f->in_place) put(o, "in_place", json_true());
    if (f->in_place || f->identity.sampled) put_sample(o, &f->identity);
    return o;
}

static bool any_in_place(const struct mx_note *n) {
    for (int32_t i = 0; i < n->fields.n; i++)
        if (n->fields.field[i].in_place) return true;
    return false;
}

static json_t *print_system(const struct mx_note *n) {
    const struct mx_system *s = &n->system;
    char path[MX_NOTE_ESCAPED_BYTES], identity[17];
    json_t *o = json_object(), *params = json_object(), *values = json_object();
    mx_note_escape(n->kernel, path);
    snprintf(identity, sizeof identity, "%016llx", (unsigned long long)s->identity);
    put(o, "kernel", json_string(path));
    put(o, "identity", json_string(identity));
    put(o, "name", json_string(s->name));
    put(o, "form", json_string(mx_note_forms[s->form]));
    put_whole(o, "h", s->h);
    put_whole(o, "hc", s->hc);
    put(o, "a", print_names(s->field[0], s->n_field[0]));
    put(o, "b", print_names(s->field[1], s->n_field[1]));
    put(o, "c", print_names(s->fixed, s->n_fixed));
    for (int32_t i = 0; i < s->n_param; i++) put(params, s->param_name[i], json_real(s->param[i]));
    put(o, "params", params);
    for (int32_t i = 0; i < n->fields.n; i++)
        put(values, n->fields.field[i].name, print_values(&n->fields.field[i], path));
    put(o, "values", values);
    if (n->source[0] != 0) put(o, "source", json_string(n->source));
    return o;
}

/* Of C rows and planes, in turn. */
static json_t *print_layout(const struct mx_layout *l, int32_t n_fixed) {
    json_t *o = json_object(), *fixed = json_array();
    put_whole(o, "row_pitch_bytes", l->row_pitch_bytes);
    put_whole(o, "plane_pitch_bytes", l->plane_pitch_bytes);
    for (int32_t i = 0; i < n_fixed; i++) {
        json_array_append_new(fixed, json_integer(l->fixed[i].row_pitch_bytes));
        json_array_append_new(fixed, json_integer(l->fixed[i].plane_pitch_bytes));
    }
    if (n_fixed > 0)
        put(o, "fixed_pitch_bytes", fixed);
    else
        json_decref(fixed);
    return o;
}

static json_t *print_input(const struct mx_note *n) {
    char path[MX_NOTE_ESCAPED_BYTES];
    json_t *o = json_object();
    mx_note_escape(n->input, path);
    put(o, "path", json_string(path));
    if (n->raw[0] != 0) put(o, "raw", json_string(n->raw));
    put_whole(o, "inode", (int64_t)n->identity.inode);
    put_whole(o, "bytes", (int64_t)n->identity.bytes);
    put_whole(o, "modified_ns", n->identity.modified_ns);
    if (n->identity.sampled) put_sample(o, &n->identity);
    return o;
}

static void put_identity(json_t *o, const char *key, uint64_t identity) {
    if (identity != 0) put_hash(o, key, identity);
}

/* What a program says of the values that it gives, by field. */
static json_t *print_given(const struct mx_note *n) {
    json_t *o = json_object();
    if (n->problem.system == NULL && n->source[0] != 0 && n->identity.sampled)
        put_hash(o, "u", n->identity.sample);
    for (int32_t i = 0; i < n->fields.n; i++) {
        const struct mx_run_field *f = &n->fields.field[i];
        if (f->program && f->identity.sampled) put_hash(o, f->name, f->identity.sample);
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

/* kept: of the history at most. */
static json_t *print_checks(const struct mx_note *n, int32_t kept) {
    json_t *o = json_object(), *until = json_array();
    struct mx_norms_history history = {.n = 0};
    put_whole(o, "every", n->check);
    for (int32_t i = 0; i < n->n_until; i++) json_array_append_new(until, json_string(n->until[i]));
    put(o, "until", until);
    if (kept > 0) mx_history_up_to(&n->history, n->time, kept, &history);
    put_whole(o, "stride", history.stride);
    put(o, "norms", print_history(&history));
    if (n->met.until[0] == 0) return o;
    put(o, "met", json_string(n->met.until));
    put(o, "met_value", print_number(n->met.value));
    return o;
}

static json_t *print_snapshots(const struct mx_snapshots_asked *s) {
    char path[MX_NOTE_ESCAPED_BYTES];
    json_t *o = json_object();
    mx_note_escape(s->directory, path);
    put_whole(o, "every", s->every);
    put_whole(o, "stride", s->stride);
    put(o, "directory", json_string(path));
    put_identity(o, "run", s->run);
    if (s->fields[0] != 0) put(o, "fields", json_string(s->fields));
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
    put_whole(o, "rank", n->rank);
    put_whole(o, "ranks", n->ranks);
    put_whole(o, "first_plane", n->problem.first_plane);
    put_whole(o, "planes", n->problem.all_nz);
    put_whole(o, "before_step", n->before_time);
    put_whole(o, "before_buffer", n->before_buffer);
    put_whole(o, "fixed_beyond", n->fixed_beyond);
    return o;
}

static json_t *print_all(const struct mx_note *n, int32_t kept) {
    char line[MX_PLAN_LINE_BYTES], sides[MX_SIDES_TEXT];
    json_t *o = json_object();
    put(o, "kind", json_string(MX_NOTE_KIND));
    put_whole(o, "note",
              n->pending || n->ranks > 0 ? MX_NOTE_VERSION
              : any_in_place(n)          ? MX_NOTE_IN_PLACE
                                         : MX_NOTE_OLDEST);
    put(o, "memext", json_string(MX_VERSION));
    put(o, "problem", print_problem(&n->problem));
    put(o, "plan", json_string(mx_plan_print(&n->plan, line, sizeof line)));
    put(o, "layout", print_layout(&n->layout, mx_fixed_count(&n->problem)));
    put_whole(o, "step", n->time);
    put_whole(o, "buffer", n->buffer);
    if (n->ranks > 0) put(o, "ranks", print_ranks(n));
    put_identity(o, "run", n->run);
    if (n->cut > 0) put_whole(o, "cut", n->cut);
    put_whole(o, "buffers", n->n_buffers);
    if (n->pending) put(o, "pending", print_samples(n));
    if (n->keep) put(o, "keep", json_true());
    if (n->ignores_nonfinite) put(o, "nonfinite", json_string("ignore"));
    if (n->different) put(o, "different", json_true());
    put(o, "frames", json_boolean(n->framed == mx_note_all_buffers(n))); /* what older programs read */
    put_whole(o, "framed", n->framed);
    put_whole(o, "integrity_unit_bytes", n->integrity_unit);
    put(o, "commit_every_s", json_real(n->commit_every));
    if (n->dram_bytes > 0 && n->dram_bytes <= INT64_MAX) put_whole(o, "dram_bytes", (int64_t)n->dram_bytes);
    put(o, "backend", json_string(n->backend));
    put(o, "host", json_string(n->host));
    put_whole(o, "started_s", n->started_s);
    put_whole(o, "committed_s", n->committed_s);
    if (n->checksum[0] != 0) put(o, "checksum", json_string(n->checksum));
    if (!mx_sides_all_fixed(&n->sides)) put(o, "sides", json_string(mx_sides_text(&n->sides, sides)));
    if (n->frame[0] != 0) put(o, "made_frame", json_string(n->frame));
    put_identity(o, "sources", n->sources);
    put_identity(o, "probes", n->probes);
    json_t *given = print_given(n);
    if (json_object_size(given) > 0)
        put(o, "given", given);
    else
        json_decref(given);
    if (n->check > 0) put(o, "checks", print_checks(n, kept));
    if (n->snapshots.every > 0) put(o, "snapshots", print_snapshots(&n->snapshots));
    if (n->problem.system != NULL)
        put(o, "system", print_system(n));
    else if (n->input[0] != 0)
        put(o, "input", print_input(n));
    else if (n->source[0] != 0)
        put(o, "source", json_string(n->source));
    else
        put(o, "init", json_string(n->init));
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
