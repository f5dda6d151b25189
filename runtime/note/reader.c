/* SPDX-License-Identifier: BSD-3-Clause */
#include "note/reader.h"

#include "note/note.h"
#include "observe/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const json_t *mx_note_member(struct mx_note_reader *r, const json_t *o, const char *key) {
    const json_t *value = json_object_get(o, key);
    if (value == NULL) r->ok = false;
    return value;
}

int64_t mx_note_whole(struct mx_note_reader *r, const json_t *o, const char *key, int64_t low, int64_t high) {
    const json_t *value = mx_note_member(r, o, key);
    const int64_t n = json_integer_value(value);
    if (!json_is_integer(value) || n < low || n > high) r->ok = false;
    return n;
}

const char *mx_note_word(struct mx_note_reader *r, const json_t *o, const char *key, char *out,
                         size_t capacity) {
    const char *text = json_string_value(mx_note_member(r, o, key));
    if (text == NULL || strlen(text) >= capacity) return r->ok = false, "";
    return strcpy(out, text);
}

double mx_note_real(struct mx_note_reader *r, const json_t *value) {
    if (!json_is_number(value) || !isfinite(json_number_value(value))) r->ok = false;
    return json_number_value(value);
}

uint64_t mx_note_hash(struct mx_note_reader *r, const json_t *o, const char *key) {
    char text[17];
    if (strspn(mx_note_word(r, o, key, text, sizeof text), "0123456789abcdef") == 16)
        return strtoull(text, NULL, 16);
    r->ok = false;
    return 0;
}

void mx_note_put_hash(json_t *o, const char *key, uint64_t hash) {
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    mx_json_put(o, key, json_string(text));
}

/* Older notes have no samples, and those of wavefronts had no inodes. */
void mx_note_take_file(struct mx_note_reader *r, const json_t *o, char *path, size_t capacity,
                       struct mx_input_identity *i) {
    const char *text = json_string_value(mx_note_member(r, o, "path"));
    if (text == NULL || text[0] == 0 || !mx_note_unescape(text, path, capacity)) r->ok = false;
    if (json_object_get(o, "inode") != NULL)
        i->inode = (uint64_t)mx_note_whole(r, o, "inode", INT64_MIN, INT64_MAX);
    i->bytes = (uint64_t)mx_note_whole(r, o, "bytes", 0, INT64_MAX);
    i->modified_ns = mx_note_whole(r, o, "modified_ns", INT64_MIN, INT64_MAX);
    if (json_object_get(o, "sample") == NULL) return;
    i->offset_bytes = mx_note_whole(r, o, "offset_bytes", 0, INT64_MAX / 4);
    i->sample = mx_note_hash(r, o, "sample");
    i->sampled = true;
}

void mx_note_put_file(json_t *o, const char *path, const struct mx_input_identity *i) {
    char text[MX_NOTE_ESCAPED_BYTES];
    mx_note_escape(path, text);
    mx_json_put(o, "path", json_string(text));
    mx_json_put_whole(o, "inode", (int64_t)i->inode);
    mx_json_put_whole(o, "bytes", (int64_t)i->bytes);
    mx_json_put_whole(o, "modified_ns", i->modified_ns);
    if (!i->sampled) return;
    mx_json_put_whole(o, "offset_bytes", i->offset_bytes);
    mx_note_put_hash(o, "sample", i->sample);
}
