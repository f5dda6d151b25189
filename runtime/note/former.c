/* SPDX-License-Identifier: BSD-3-Clause */
/* former.c - what a note says of the run whose state it began with, in the same place. */
#include "note/note_private.h"

#include "observe/json.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void add(struct mx_note_former *out, const char *name, enum mx_dtype dtype) {
    struct mx_note_former_field *f = &out->field[out->n++];
    snprintf(f->name, sizeof f->name, "%s", name);
    f->dtype = dtype;
}

void mx_note_follow(const struct mx_note *former, struct mx_note_former *out) {
    *out = (struct mx_note_former){.run = former->run,
                                   .step = former->time,
                                   .runs = (former->former.runs > 0 ? former->former.runs : 1) + 1};
    if (out->runs > MX_NOTE_MOST_RUNS) out->runs = MX_NOTE_MOST_RUNS;
    if (former->problem.system == NULL) add(out, "u", former->problem.dtype);
    for (int32_t i = 0; i < former->fields.n; i++)
        add(out, former->fields.field[i].name, former->fields.field[i].dtype);
}

/* Of the fields "name:type". */
json_t *mx_note_print_former(const struct mx_note_former *f) {
    json_t *o = json_object(), *fields = json_array();
    char text[MX_FIELD_NAME + 16];
    mx_note_put_hash(o, "run", f->run);
    mx_json_put_whole(o, "step", f->step);
    mx_json_put_whole(o, "runs", f->runs);
    for (int32_t i = 0; i < f->n; i++) {
        snprintf(text, sizeof text, "%s:%s", f->field[i].name, mx_dtype_name(f->field[i].dtype));
        json_array_append_new(fields, json_string(text));
    }
    mx_json_put(o, "fields", fields);
    return o;
}

void mx_note_parse_former(struct mx_note_reader *r, const json_t *o, struct mx_note_former *out) {
    if (o == NULL) return;
    const json_t *fields = mx_note_member(r, o, "fields");
    out->run = mx_note_hash(r, o, "run");
    out->step = mx_note_whole(r, o, "step", 0, INT64_MAX / 4);
    out->runs = (int32_t)mx_note_whole(r, o, "runs", 2, MX_NOTE_MOST_RUNS);
    if (json_array_size(fields) > MX_FIELDS_MOST) r->ok = false;
    for (size_t i = 0; i < json_array_size(fields) && r->ok; i++) {
        const char *text = json_string_value(json_array_get(fields, i)),
                   *colon = text != NULL ? strrchr(text, ':') : NULL;
        struct mx_note_former_field *f = &out->field[out->n++];
        r->ok = colon != NULL && colon > text && (size_t)(colon - text) < sizeof f->name &&
                mx_dtype_find(colon + 1, &f->dtype);
        if (r->ok) snprintf(f->name, sizeof f->name, "%.*s", (int)(colon - text), text);
    }
}

int mx_note_reframe(const char *note, size_t bytes, uint32_t framed, char *text, size_t capacity) {
    json_t *o = json_loadb(note, bytes, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(o)) {
        json_decref(o);
        return -EINVAL;
    }
    mx_json_put(o, "frames", json_false());
    mx_json_put_whole(o, "framed", framed);
    const size_t n = json_dumpb(o, text, capacity, JSON_COMPACT);
    json_decref(o);
    if (n == 0) return -ENOMEM;
    if (n >= capacity) return -ENOSPC;
    text[n] = 0;
    return (int)n;
}
