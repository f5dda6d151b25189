/* SPDX-License-Identifier: BSD-3-Clause */
/* parse.c - a note from text: what it says must be possible, whoever wrote it. */
#include "note/note_private.h"
#include "note/reader.h"

#include "grid/grid.h"
#include "schedule/schedule.h"
#include "stencil/stencil.h"
#include "system/profile.h"
#include "tune/tune.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool truth(struct mx_note_reader *r, const json_t *object, const char *key) {
    const json_t *value = mx_note_member(r, object, key);
    if (!json_is_boolean(value)) r->ok = false;
    return json_is_true(value);
}

/* "name:type" words. */
static int32_t parse_names(struct mx_note_reader *r, const json_t *o, const char *key, int32_t most,
                           struct mx_field_of *out) {
    const json_t *list = mx_note_member(r, o, key);
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || n > (size_t)most) return r->ok = false, 0;
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(list, i)),
                   *colon = text != NULL ? strrchr(text, ':') : NULL;
        if (colon == NULL || colon == text || colon - text >= MX_FIELD_NAME ||
            !mx_dtype_find(colon + 1, &out[i].dtype)) {
            r->ok = false;
            return 0;
        }
        memcpy(out[i].name, text, (size_t)(colon - text));
        out[i].name[colon - text] = 0;
    }
    return (int32_t)n;
}

static void parse_given(struct mx_note_reader *r, const json_t *o, struct mx_note *n) {
    if (o == NULL) return;
    if (n->problem.system == NULL && n->source[0] != 0 && json_object_get(o, "u") != NULL)
        n->identity.sample = mx_note_hash(r, o, "u"), n->identity.sampled = true;
    for (int32_t i = 0; i < n->fields.n; i++) {
        struct mx_run_field *f = &n->fields.field[i];
        if (!f->program || json_object_get(o, f->name) == NULL) continue;
        f->identity.sample = mx_note_hash(r, o, f->name);
        f->identity.sampled = true;
    }
}

static void parse_values(struct mx_note_reader *r, const json_t *o, struct mx_run_field *f) {
    const json_t *v = mx_note_member(r, o, f->name), *frame;
    const char *init = json_string_value(v);
    if (json_is_true(v)) {
        f->program = true;
        return;
    }
    if (init != NULL) {
        f->init = init[0] != 0 ? mx_init_find(init) : NULL;
        if (init[0] == 0 && f->array == 1)
            f->same_as = f->index;
        else if (f->init == NULL)
            r->ok = false;
        return;
    }
    mx_note_take_file(r, v, f->path, sizeof f->path, &f->identity);
    if (json_object_get(v, "raw") != NULL) mx_note_word(r, v, "raw", f->raw, sizeof f->raw);
    const json_t *data = json_object_get(v, "data");
    if (data != NULL &&
        (!json_is_string(data) || !mx_note_unescape(json_string_value(data), f->data, sizeof f->data)))
        r->ok = false;
    const json_t *dataset = json_object_get(v, "dataset");
    if (dataset != NULL && (!json_is_string(dataset) ||
                            !mx_note_unescape(json_string_value(dataset), f->inside, sizeof f->inside)))
        r->ok = false;
    frame = json_object_get(v, "frame");
    f->frame = frame == NULL || json_is_true(frame);
    f->in_place = json_is_true(json_object_get(v, "in_place"));
    if (f->in_place && (f->array != MX_FIELD_OF_C || !f->identity.sampled)) r->ok = false;
    const json_t *alike = json_object_get(v, "alike");
    if (alike != NULL &&
        (f->array != MX_FIELD_OF_C || (f->alike = mx_alike_parse(json_string_value(alike))) == 0))
        r->ok = false;
    f->identity.whole = f->alike != 0;
    f->npy.data_offset_bytes = f->in_place ? f->identity.offset_bytes : 0;
}

static void parse_system(struct mx_note_reader *r, const json_t *o, struct mx_note *n) {
    struct mx_system *s = &n->system;
    char text[24];
    const char *path = json_string_value(mx_note_member(r, o, "kernel"));
    if (path == NULL || !mx_note_unescape(path, n->kernel, sizeof n->kernel)) r->ok = false;
    if (strspn(mx_note_word(r, o, "identity", text, sizeof text), "0123456789abcdef") != 16) r->ok = false;
    s->identity = r->ok ? strtoull(text, NULL, 16) : 0;
    mx_note_word(r, o, "name", s->name, sizeof s->name);
    mx_note_word(r, o, "form", text, sizeof text);
    s->form = -1;
    for (int i = 0; i <= MX_STAGGERED; i++)
        if (strcmp(text, mx_note_forms[i]) == 0) s->form = i;
    if (json_object_get(o, "stages") != NULL)
        s->stages = (int32_t)mx_note_whole(r, o, "stages", 2, s->form == MX_JACOBI ? MX_MAX_STAGES : 1);
    s->h = (int32_t)mx_note_whole(r, o, "h", 1, MX_MAX_HALO);
    s->hc = (int32_t)mx_note_whole(r, o, "hc", 0, MX_MAX_HALO);
    s->flat = json_is_true(json_object_get(o, "flat"));
    if (s->flat && n->problem.ny != 1) r->ok = false;
    s->n_field[0] = parse_names(r, o, "a", MX_MAX_FIELDS, s->field[0]);
    s->n_field[1] = parse_names(r, o, "b", MX_MAX_FIELDS, s->field[1]);
    s->n_fixed = parse_names(r, o, "c", MX_MAX_FIXED, s->fixed);
    mx_note_parse_params(r, mx_note_member(r, o, "params"), n);
    if (s->form < 0 || s->hc > s->h || s->n_field[0] < 1 || s->n_field[1] < 1) r->ok = false;
    if (!r->ok) return;
    mx_fields_of(s, &n->fields);
    const json_t *values = mx_note_member(r, o, "values");
    for (int32_t i = 0; i < n->fields.n; i++) {
        const struct mx_run_field *f = &n->fields.field[i];
        parse_values(r, values, &n->fields.field[i]);
        if (f->array == MX_FIELD_OF_C) s->profile[f->index].alike = f->in_place ? f->alike : 0;
    }
    if (json_object_get(o, "source") != NULL) mx_note_word(r, o, "source", n->source, sizeof n->source);
    n->problem.system = s;
    n->problem.h = s->h;
    n->problem.flat = s->flat;
    n->problem.dtype = s->field[0][0].dtype;
}

static void parse_problem(struct mx_note_reader *r, const json_t *o, bool system, struct mx_problem *p) {
    char dtype[8];
    const json_t *n = mx_note_member(r, o, "n"), *coef = system ? NULL : mx_note_member(r, o, "coef");
    int64_t *const extents[3] = {&p->nx, &p->ny, &p->nz};
    for (size_t i = 0; i < 3; i++) {
        *extents[i] = json_integer_value(json_array_get(n, i));
        if (*extents[i] < 1 || *extents[i] > (INT64_C(1) << 40)) r->ok = false;
    }
    p->nt = mx_note_whole(r, o, "nt", 0, INT64_MAX / 4);
    if (system) return;
    for (size_t i = 0; i < 4; i++) p->coef[i] = mx_note_real(r, json_array_get(coef, i));
    const struct mx_stencil *s =
        mx_stencil_find(mx_note_word(r, o, "stencil", p->stencil, sizeof p->stencil));
    bool wide = strcmp(mx_note_word(r, o, "dtype", dtype, sizeof dtype), "f64") == 0;
    if (s == NULL || (!wide && strcmp(dtype, "f32") != 0)) r->ok = false;
    p->dtype = wide ? MX_F64 : MX_F32;
    p->h = s != NULL ? s->h : 1;
}

/* The field that is number i of C. */
static const struct mx_run_field *field_of_c(const struct mx_run_fields *fields, int32_t i) {
    for (int32_t k = 0; k < fields->n; k++)
        if (fields->field[k].array == MX_FIELD_OF_C && fields->field[k].index == i) return &fields->field[k];
    return NULL;
}

static bool lay_in_place(const struct mx_problem *p, int32_t i, const struct mx_run_field *f,
                         struct mx_fixed_layout *out) {
    const struct mx_fixed_file file = {.dtype = f->dtype,
                                       .offset_bytes = f->npy.data_offset_bytes,
                                       .bytes = (int64_t)f->identity.bytes,
                                       .frame = f->frame};
    return mx_layout_fixed_file(p, i, &file, NULL, out) == 0;
}

static void parse_layout(struct mx_note_reader *r, const json_t *o, const struct mx_problem *p,
                         const struct mx_run_fields *fields, struct mx_layout *l) {
    const int64_t most = INT64_MAX / 4;
    if (!r->ok) return;
    l->rows = p->ny + 2 * mx_halo_y(p);
    l->planes = p->nz + 2 * p->h;
    l->row_bytes = 0;
    for (int array = 0; array < 2; array++) {
        const int64_t bytes = mx_field_offsets(p, array, l->field_offset_bytes[array]);
        if (bytes > l->row_bytes) l->row_bytes = bytes;
    }
    l->row_pitch_bytes = mx_note_whole(r, o, "row_pitch_bytes", l->row_bytes, most);
    if (!r->ok || (mx_wide)l->rows * l->row_pitch_bytes > most) {
        r->ok = false;
        return;
    }
    l->plane_pitch_bytes = mx_note_whole(r, o, "plane_pitch_bytes", l->rows * l->row_pitch_bytes, most);
    if (!r->ok || (mx_wide)l->planes * l->plane_pitch_bytes > most) {
        r->ok = false;
        return;
    }
    l->buffer_bytes = l->planes * l->plane_pitch_bytes;
    const json_t *fixed = mx_fixed_count(p) > 0 ? mx_note_member(r, o, "fixed_pitch_bytes") : NULL;
    for (int32_t i = 0; i < mx_fixed_count(p); i++) {
        struct mx_fixed_layout *f = &l->fixed[i];
        const struct mx_run_field *field = field_of_c(fields, i);
        if (mx_is_profile(p, i)) {
            *f = (struct mx_fixed_layout){.user_file = true};
            continue;
        }
        if (field != NULL && field->in_place) {
            r->ok &= lay_in_place(p, i, field, f);
            continue;
        }
        *f = (struct mx_fixed_layout){
            .row_bytes = (p->nx + 2 * p->h) * mx_dtype_bytes(p->system->fixed[i].dtype),
            .row_pitch_bytes = json_integer_value(json_array_get(fixed, 2 * (size_t)i)),
            .plane_pitch_bytes = json_integer_value(json_array_get(fixed, 2 * (size_t)i + 1)),
            .frame = p->h,
            .align_bytes = 1};
        if (f->row_pitch_bytes < f->row_bytes || f->row_pitch_bytes > most ||
            (mx_wide)l->rows * f->row_pitch_bytes > f->plane_pitch_bytes || f->plane_pitch_bytes > most ||
            (mx_wide)l->planes * f->plane_pitch_bytes > most)
            r->ok = false;
        else
            f->bytes = l->planes * f->plane_pitch_bytes;
    }
}

static void parse_ranks(struct mx_note_reader *r, const json_t *o, struct mx_note *n) {
    struct mx_problem *p = &n->problem;
    n->ranks = (int32_t)mx_note_whole(r, o, "ranks", 2, 1 << 20);
    n->rank = (int32_t)mx_note_whole(r, o, "rank", 0, n->ranks - 1);
    p->all_nz = mx_note_whole(r, o, "planes", p->nz, INT64_C(1) << 40);
    p->first_plane = mx_note_whole(r, o, "first_plane", 0, p->all_nz - p->nz);
    n->before_time = mx_note_whole(r, o, "before_step", 0, n->time);
    if (n->edits > 0) {
        n->before_edits = mx_note_whole(r, o, "before_edits", 0, n->edits);
        n->before_edited = mx_note_whole(r, o, "before_edited", 0, n->before_time);
        n->before_second = (uint32_t)mx_note_whole(r, o, "before_second", 0, UINT32_MAX);
    }
    n->before_buffer = (int32_t)mx_note_whole(r, o, "before_buffer", 0, n->n_buffers - 1);
    n->fixed_beyond = mx_note_whole(r, o, "fixed_beyond", 0, p->all_nz);
}

bool mx_note_has_neighbour(const struct mx_note *n, int end) {
    const bool last = n->rank == (end == 0 ? 0 : n->ranks - 1);
    return n->ranks > 0 && (!last || mx_sides_periodic(&n->sides, MX_DIM_Z));
}

/* Copies of the fields of C in the store of a rank reach beyond its planes. */
static void lay_beyond(struct mx_note_reader *r, const struct mx_note *n, struct mx_layout *l) {
    const bool low = mx_note_has_neighbour(n, 0), high = mx_note_has_neighbour(n, 1);
    const int64_t planes = l->planes + (low + high) * n->fixed_beyond;
    for (int32_t i = 0; i < mx_fixed_count(&n->problem); i++) {
        struct mx_fixed_layout *f = &l->fixed[i];
        if (f->user_file) continue;
        r->ok &= (mx_wide)planes * f->plane_pitch_bytes <= INT64_MAX / 4;
        if (!r->ok) return;
        f->offset_bytes = low ? n->fixed_beyond * f->plane_pitch_bytes : 0;
        f->bytes = planes * f->plane_pitch_bytes;
    }
}

static void parse_origin(struct mx_note_reader *r, const json_t *o, struct mx_note *n) {
    const json_t *input = json_object_get(o, "input");
    if (input == NULL && json_object_get(o, "source") != NULL) {
        if (mx_note_word(r, o, "source", n->source, sizeof n->source)[0] == 0) r->ok = false;
        return;
    }
    if (input == NULL) {
        if (mx_init_find(mx_note_word(r, o, "init", n->init, sizeof n->init)) == NULL) r->ok = false;
        return;
    }
    mx_note_take_file(r, input, n->input, sizeof n->input, &n->identity);
    if (json_object_get(input, "raw") != NULL) mx_note_word(r, input, "raw", n->raw, sizeof n->raw);
}

static void parse_checksum(struct mx_note_reader *r, const json_t *o, char out[17]) {
    if (json_object_get(o, "checksum") == NULL) return;
    if (strspn(mx_note_word(r, o, "checksum", out, 17), "0123456789abcdef") != 16) r->ok = false;
}

static void parse_pending(struct mx_note_reader *r, const json_t *o, struct mx_note *n) {
    const json_t *all = json_object_get(o, "pending");
    n->pending = all != NULL;
    if (all == NULL) return;
    if (json_array_size(all) != (size_t)mx_field_count(&n->problem, 0) || n->time != 0) r->ok = false;
    for (size_t i = 0; i < json_array_size(all) && r->ok; i++) {
        const char *text = json_string_value(json_array_get(all, i));
        r->ok = text != NULL && strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16;
        if (r->ok) n->sample[i] = strtoull(text, NULL, 16);
    }
}

static uint64_t parse_identity(struct mx_note_reader *r, const json_t *o, const char *key) {
    return json_object_get(o, key) == NULL ? 0 : mx_note_hash(r, o, key);
}

/* Words as those of --side. */
static void parse_sides(struct mx_note_reader *r, const json_t *o, const struct mx_problem *p,
                        struct mx_sides *out) {
    enum { MOST = 3 * 2 * MX_MAX_FIELDS + 3 };
    char text[MX_SIDES_TEXT], *rest;
    const char *word[MOST];
    int32_t n = 0;
    if (json_object_get(o, "sides") == NULL) return;
    mx_note_word(r, o, "sides", text, sizeof text);
    for (char *w = strtok_r(text, " ", &rest); w != NULL && n < MOST; w = strtok_r(NULL, " ", &rest))
        word[n++] = w;
    if (r->ok && mx_sides_read(word, n, p, NULL, out) < 0) r->ok = false;
    if (r->ok && mx_sides_check(out, p, NULL) < 0) r->ok = false;
}

static double parse_number(struct mx_note_reader *r, const json_t *list, size_t i) {
    const json_t *v = json_array_get(list, i);
    if (json_is_null(v)) return NAN;
    if (!json_is_number(v)) r->ok = false;
    return json_number_value(v);
}

static void parse_check(struct mx_note_reader *r, const json_t *list, struct mx_norms_kept *out) {
    const size_t n = json_array_size(list), first = 4;
    if (n < first || (n - first) % 2 != 0 || n > first + 2 * MX_MAX_REDUCES ||
        !json_is_integer(json_array_get(list, 0)) || !json_is_integer(json_array_get(list, 1))) {
        r->ok = false;
        return;
    }
    out->number = json_integer_value(json_array_get(list, 0));
    out->result = (struct mx_norms_result){.step = json_integer_value(json_array_get(list, 1)),
                                           .max_change = parse_number(r, list, 2),
                                           .rms_change = parse_number(r, list, 3),
                                           .n_reduce = (int32_t)((n - first) / 2)};
    for (size_t i = first; i < n; i += 2) {
        out->result.reduce[(i - first) / 2] = parse_number(r, list, i);
        out->result.spread[(i - first) / 2] = parse_number(r, list, i + 1);
    }
}

static void parse_checks(struct mx_note_reader *r, const json_t *o, struct mx_note *n) {
    if (o == NULL) return;
    const json_t *until = mx_note_member(r, o, "until"), *norms = mx_note_member(r, o, "norms"),
                 *seconds = json_object_get(o, "seconds");
    const int64_t most = INT64_C(1) << 40;
    n->check = mx_note_whole(r, o, "every", 1, INT64_MAX / 4);
    n->history.stride = mx_note_whole(r, o, "stride", 0, most);
    if (json_array_size(until) > MX_UNTILS_MOST || json_array_size(norms) > MX_HISTORY_MOST) r->ok = false;
    if (json_array_size(norms) > 0 && n->history.stride == 0) r->ok = false;
    for (size_t i = 0; i < json_array_size(until) && r->ok; i++) {
        const char *text = json_string_value(json_array_get(until, i));
        if (text == NULL || text[0] == 0 || strlen(text) >= MX_UNTIL_TEXT) r->ok = false;
        if (r->ok) strcpy(n->until[n->n_until++], text);
    }
    for (size_t i = 0; i < json_array_size(norms) && r->ok; i++) {
        parse_check(r, json_array_get(norms, i), &n->history.kept[n->history.n++]);
        n->history.kept[i].result.simulated_s = seconds != NULL ? parse_number(r, seconds, i) : NAN;
        const int64_t step = n->history.kept[i].result.step;
        if (step < 1 || step > n->time || (i > 0 && step <= n->history.kept[i - 1].result.step) ||
            n->history.kept[i].number < 1 || n->history.kept[i].number > most)
            r->ok = false;
    }
    const json_t *stored = json_object_get(o, "stored");
    if (json_array_size(stored) > MX_MAX_REDUCES) r->ok = false;
    for (size_t i = 0; i < json_array_size(stored) && r->ok; i++)
        n->stored[n->n_stored++] = parse_number(r, stored, i);
    if (!r->ok || json_object_get(o, "met") == NULL) return;
    mx_note_word(r, o, "met", n->met.until, sizeof n->met.until);
    const json_t *value = mx_note_member(r, o, "met_value");
    n->met.value = json_is_null(value) ? NAN : mx_note_real(r, value);
    n->met.step = n->time;
}

static void parse_snapshots(struct mx_note_reader *r, const json_t *o, struct mx_snapshots_asked *s) {
    const json_t *of = json_object_get(o, "snapshots");
    if (of == NULL) return;
    const char *path = json_string_value(mx_note_member(r, of, "directory"));
    if (path == NULL || path[0] != '/' || !mx_note_unescape(path, s->directory, sizeof s->directory))
        r->ok = false;
    s->every = mx_note_whole(r, of, "every", 1, INT64_C(1) << 40);
    s->stride = mx_note_whole(r, of, "stride", 1, INT64_C(1) << 40);
    s->run = parse_identity(r, of, "run");
    if (json_object_get(of, "fields") != NULL) mx_note_word(r, of, "fields", s->fields, sizeof s->fields);
}

/* Older notes have one word for all Buffers, which may be wrong: of theirs the newest state alone is known to
 * have its frame. */
static void parse_framed(struct mx_note_reader *r, const json_t *o, struct mx_note *n) {
    if (json_object_get(o, "framed") != NULL)
        n->framed = (uint32_t)mx_note_whole(r, o, "framed", 0, INT64_C(1) << MX_NOTE_MOST_BUFFERS);
    if (!n->pending && r->ok) n->framed |= UINT32_C(1) << n->buffer;
    if (r->ok) n->framed &= mx_note_all_buffers(n);
}

static bool parse_nonfinite(struct mx_note_reader *r, const json_t *o) {
    const char *text = json_string_value(o);
    if (o != NULL && (text == NULL || strcmp(text, "ignore") != 0)) r->ok = false;
    return o != NULL;
}

static void parse_seconds(struct mx_note_reader *r, const json_t *o, struct mx_note *n) {
    if (json_object_get(o, "time_step") != NULL)
        mx_note_word(r, o, "time_step", n->time_step, sizeof n->time_step);
    n->timed = json_object_get(o, "simulated_s") != NULL;
    if (n->timed) n->simulated_s = mx_note_real(r, json_object_get(o, "simulated_s"));
}

static void parse_edits(struct mx_note_reader *r, const json_t *o, struct mx_note *n) {
    if (json_object_get(o, "edits") == NULL) return;
    n->edits = mx_note_whole(r, o, "edits", 1, INT64_MAX / 4);
    n->edited = mx_note_whole(r, o, "edited", 0, n->time);
    n->edits_there = mx_note_whole(r, o, "edits_there", 1, n->edits);
    if (json_object_get(o, "second") != NULL)
        n->second = (uint32_t)mx_note_whole(r, o, "second", 1, UINT32_MAX);
}

static void parse_rest(struct mx_note_reader *r, const json_t *o, struct mx_note *n) {
    char line[MX_PLAN_LINE_BYTES];
    const json_t *system = json_object_get(o, "system");
    parse_problem(r, mx_note_member(r, o, "problem"), system != NULL, &n->problem);
    if (system != NULL) parse_system(r, system, n);
    parse_layout(r, mx_note_member(r, o, "layout"), &n->problem, &n->fields, &n->layout);
    if (mx_plan_parse(mx_note_word(r, o, "plan", line, sizeof line), NULL, &n->plan) < 0) r->ok = false;
    n->time = mx_note_whole(r, o, "step", 0, n->problem.nt);
    parse_edits(r, o, n);
    mx_note_settle_edits(n);
    n->n_buffers = (int32_t)mx_note_whole(r, o, "buffers", 1, MX_NOTE_MOST_BUFFERS);
    n->buffer = (int32_t)mx_note_whole(r, o, "buffer", 0, n->n_buffers - 1);
    parse_pending(r, o, n);
    parse_seconds(r, o, n);
    if (json_object_get(o, "ranks") != NULL) parse_ranks(r, json_object_get(o, "ranks"), n);
    n->run = parse_identity(r, o, "run");
    if (json_object_get(o, "cut") != NULL) n->cut = (int32_t)mx_note_whole(r, o, "cut", 1, 1 << 24);
    mx_note_parse_former(r, json_object_get(o, "former"), &n->former);
    n->keep = json_is_true(json_object_get(o, "keep"));
    n->ignores_nonfinite = parse_nonfinite(r, json_object_get(o, "nonfinite"));
    n->different = json_is_true(json_object_get(o, "different"));
    truth(r, o, "frames");
    parse_framed(r, o, n);
    n->integrity_unit = mx_note_whole(r, o, "integrity_unit_bytes", 0, n->layout.plane_pitch_bytes);
    if (n->integrity_unit != 0 && n->integrity_unit != n->layout.row_pitch_bytes &&
        n->integrity_unit != n->layout.plane_pitch_bytes)
        r->ok = false;
    n->commit_every = mx_note_real(r, mx_note_member(r, o, "commit_every_s"));
    if (!(n->commit_every >= 0)) r->ok = false;
    if (json_object_get(o, "dram_bytes") != NULL)
        n->dram_bytes = (uint64_t)mx_note_whole(r, o, "dram_bytes", 1, INT64_MAX);
    mx_note_word(r, o, "backend", n->backend, sizeof n->backend);
    mx_note_word(r, o, "host", n->host, sizeof n->host);
    n->started_s = mx_note_whole(r, o, "started_s", 0, INT64_MAX);
    n->committed_s = mx_note_whole(r, o, "committed_s", 0, INT64_MAX);
    parse_checksum(r, o, n->checksum);
    parse_sides(r, o, &n->problem, &n->sides);
    if (r->ok) lay_beyond(r, n, &n->layout);
    if (json_object_get(o, "made_frame") != NULL) mx_note_word(r, o, "made_frame", n->frame, sizeof n->frame);
    n->sources = parse_identity(r, o, "sources");
    n->probes = parse_identity(r, o, "probes");
    parse_checks(r, json_object_get(o, "checks"), n);
    parse_snapshots(r, o, &n->snapshots);
    if (system == NULL) parse_origin(r, o, n);
    parse_given(r, json_object_get(o, "given"), n);
}

int mx_note_parse(const char *text, size_t bytes, mx_why *why, struct mx_note *out) {
    struct mx_note n = {.time = 0};
    struct mx_note_reader r = {true};
    char found[24];
    json_t *o = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    int err = 0;
    if (strcmp(mx_note_word(&r, o, "kind", found, sizeof found), MX_NOTE_KIND) != 0)
        err = strcmp(found, MX_NOTE_WAVEFRONT) == 0
                  ? mx_fail(why, -EMEDIUMTYPE,
                            "it belongs to a wavefront run: memext wavefront --resume continues that run, "
                            "memext export writes its matrices")
                  : mx_fail(why, -EINVAL, "the description in it (its note) does not belong to a memext run");
    const json_t *version = json_object_get(o, "note");
    const int64_t number = json_integer_value(version);
    if (err == 0 && json_is_integer(version) && (number < MX_NOTE_OLDEST || number > MX_NOTE_VERSION))
        err = mx_fail(why, -EINVAL,
                      "its description (note) has version %lld, and this memext (%s) reads versions %d to "
                      "%d: use the memext that made it",
                      (long long)number, MX_VERSION, MX_NOTE_OLDEST, MX_NOTE_VERSION);
    if (err == 0) {
        mx_note_whole(&r, o, "note", MX_NOTE_OLDEST, MX_NOTE_VERSION);
        parse_rest(&r, o, &n);
        if (!r.ok)
            err = mx_fail(why, -EINVAL,
                          "its description (note) is damaged: an entry is missing or contradicts another");
    }
    json_decref(o);
    if (err == 0) {
        *out = n;
        if (n.problem.system != NULL) out->problem.system = &out->system;
    }
    return err;
}
