/* SPDX-License-Identifier: BSD-3-Clause */
/* reader.h - reads and writes values in the JSON of notes, of all kinds of runs. */
#ifndef MX_NOTE_READER_H
#define MX_NOTE_READER_H

#include "files/fields.h"

#include <jansson.h>

/* A missing value, or one of another type, makes the note invalid: `ok` becomes false. */
struct mx_note_reader {
    bool ok;
};

const json_t *mx_note_member(struct mx_note_reader *reader, const json_t *object, const char *key);
int64_t mx_note_whole(struct mx_note_reader *reader, const json_t *object, const char *key, int64_t low,
                      int64_t high);
const char *mx_note_word(struct mx_note_reader *reader, const json_t *object, const char *key, char *out,
                         size_t capacity);
double mx_note_real(struct mx_note_reader *reader, const json_t *value); /* finite */
/* 16 hexadecimal digits. */
uint64_t mx_note_hash(struct mx_note_reader *reader, const json_t *object, const char *key);
void mx_note_put_hash(json_t *object, const char *key, uint64_t hash);

/* A file that the run began with: its path, and its identity then. */
void mx_note_take_file(struct mx_note_reader *reader, const json_t *object, char *path, size_t capacity,
                       struct mx_input_identity *identity);
void mx_note_put_file(json_t *object, const char *path, const struct mx_input_identity *identity);

#endif
