/* SPDX-License-Identifier: BSD-3-Clause */
/* params.c - the parameters of a kernel in a note: numbers, those over time, and those that were changed. */
#include "note/note_private.h"
#include "note/reader.h"

#include "observe/json.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ printed */

/* Written instead of a number, so that programs that know only numbers do not resume the run. */
static json_t *print_series(const struct mx_note_series *q) {
    char path[MX_NOTE_ESCAPED_BYTES], hash[17];
    json_t *o = json_object();
    mx_note_escape(q->path, path);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)q->hash);
    mx_json_put(o, "series", json_string(path));
    mx_json_put_whole(o, "steps", q->steps);
    mx_json_put(o, "hash", json_string(hash));
    return o;
}

/* Likewise. */
static json_t *print_edit(const struct mx_note_edit *e) {
    json_t *o = json_object();
    mx_json_put(o, "began", json_real(e->began));
    mx_json_put(o, "before", json_real(e->before));
    mx_json_put(o, "value", json_real(e->value));
    if (isfinite(e->sum)) mx_json_put(o, "sum", json_real(e->sum));
    mx_json_put_whole(o, "since", e->since);
    if (e->kept > 0) mx_json_put_whole(o, "kept", e->kept);
    return o;
}

json_t *mx_note_print_params(const struct mx_note *n) {
    const struct mx_system *s = &n->system;
    json_t *params = json_object();
    for (int32_t i = 0; i < s->n_param; i++) mx_json_put(params, s->param_name[i], json_real(s->param[i]));
    for (int32_t i = 0; i < n->n_series; i++)
        mx_json_put(params, n->series[i].name, print_series(&n->series[i]));
    for (int32_t i = 0; i < n->n_edits; i++) mx_json_put(params, n->edit[i].name, print_edit(&n->edit[i]));
    return params;
}

/* ------------------------------------------------------------------ parsed */

static void parse_series(struct mx_note_reader *r, const json_t *o, const char *name, struct mx_note *n) {
    char text[24];
    if (n->n_series == MX_MAX_SERIES) {
        r->ok = false;
        return;
    }
    struct mx_note_series *q = &n->series[n->n_series++];
    const char *path = json_string_value(mx_note_member(r, o, "series"));
    if (path == NULL || !mx_note_unescape(path, q->path, sizeof q->path)) r->ok = false;
    snprintf(q->name, sizeof q->name, "%s", name);
    q->steps = mx_note_whole(r, o, "steps", 0, INT64_MAX);
    if (strspn(mx_note_word(r, o, "hash", text, sizeof text), "0123456789abcdef") != 16) r->ok = false;
    q->hash = r->ok ? strtoull(text, NULL, 16) : 0;
}

static void parse_edit(struct mx_note_reader *r, const json_t *o, const char *name, struct mx_note *n) {
    struct mx_note_edit *e = &n->edit[n->n_edits++];
    const json_t *sum = json_object_get(o, "sum");
    *e = (struct mx_note_edit){.began = mx_note_real(r, json_object_get(o, "began")),
                               .before = mx_note_real(r, json_object_get(o, "before")),
                               .value = mx_note_real(r, json_object_get(o, "value")),
                               .sum = sum == NULL ? NAN : mx_note_real(r, sum),
                               .since = mx_note_whole(r, o, "since", 0, INT64_MAX / 4)};
    if (json_object_get(o, "kept") != NULL) e->kept = mx_note_whole(r, o, "kept", 1, INT64_MAX / 4);
    snprintf(e->name, sizeof e->name, "%s", name);
}

void mx_note_settle_edits(struct mx_note *n) {
    for (int32_t i = 0; i < n->n_edits; i++)
        for (int32_t k = 0; k < n->system.n_param; k++)
            if (strcmp(n->system.param_name[k], n->edit[i].name) == 0)
                n->system.param[k] =
                    mx_note_edit_holds(n, &n->edit[i]) ? n->edit[i].value : n->edit[i].before;
}

void mx_note_parse_params(struct mx_note_reader *r, const json_t *o, struct mx_note *n) {
    struct mx_system *s = &n->system;
    const char *name;
    json_t *value;
    if (!json_is_object(o) || json_object_size(o) > MX_MAX_PARAMS) {
        r->ok = false;
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)o, name, value) {
        if (strlen(name) >= MX_FIELD_NAME) r->ok = false;
        snprintf(s->param_name[s->n_param], MX_FIELD_NAME, "%s", name);
        if (json_object_get(value, "began") != NULL)
            parse_edit(r, value, name, n);
        else if (json_is_object(value))
            parse_series(r, value, name, n);
        s->param[s->n_param++] = json_is_object(value) ? 0 : mx_note_real(r, value);
    }
}
