/* SPDX-License-Identifier: BSD-3-Clause */
/* store.h - describes a store for people and programs: `memext info PATH`, `memext export PATH`. */
#ifndef MX_NOTE_STORE_H
#define MX_NOTE_STORE_H

#include "files/output.h"
#include "note/note.h"

#include <jansson.h>
#include <memext/memext.h>
#include <stdio.h>

struct mx_stored {
    struct mx_store_facts facts;
    struct mx_note note;       /* if have_note */
    bool have_note, wavefront; /* wavefront: its note is of such a run; runtime/wavefront reads it */
    mx_why why;                /* why the note cannot be read */
};

/* Looks at the store at a directory, file or block device; the error of mx_store_look. A note that is missing
 * or unreadable is no error here. */
int mx_stored_look(const char *path, mx_why *why, struct mx_stored *out);
/* The files that a run has read, or reads: of its input, its fields, its kernel, its parameters over time.
 * Words for mx_output_check_names, whose texts are those of the note. Returns how many. */
enum { MX_NOTE_FILES = 2 + 2 * MX_FIELDS_MOST + MX_MAX_SERIES };
size_t mx_note_files(const struct mx_note *note, struct mx_file_word out[MX_NOTE_FILES]);
/* "done", "done, kept", "under way" (somebody works on it), "interrupted", "empty", "different",
 * "unreadable", "wavefront" */
const char *mx_stored_state(const struct mx_stored *stored);
json_t *mx_stored_json(const struct mx_stored *stored);
/* asked: the place as it was named, which the commands that it shows name too. dram_bytes: --dram of these
 * commands; 0 = that of the run. */
void mx_stored_print(const struct mx_stored *stored, const char *asked, uint64_t dram_bytes, FILE *to);
/* A word of a command line, quoted for a shell where it needs to be. Returns out. */
enum { MX_SHELL_WORD = 4 * PATH_MAX };
const char *mx_shell_word(const char *word, char out[MX_SHELL_WORD]);
/* Prints commands that can be run as they are: to resume a run of `ranks` in `place`, and to export its state
 * from `from`. */
void mx_note_show_ways(const struct mx_note *note, int32_t ranks, const char *place, const char *from,
                       uint64_t dram_bytes, FILE *to);
void mx_note_show(const struct mx_note *note, FILE *to); /* a part of that */

#endif
