/* SPDX-License-Identifier: BSD-3-Clause */
/* note.h - the note of a wavefront run: a store's description, which is enough to resume the run with another
 * backend, number of threads, DRAM or number of waves. */
#ifndef MX_WAVEFRONT_NOTE_H
#define MX_WAVEFRONT_NOTE_H

#include "files/fields.h"
#include "wavefront/layout.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>

extern const char *const mx_wf_data[2]; /* Buffers of the data matrix; the others have their matrix's name */

struct mx_wf_note {
    struct mx_wf_geometry geometry; /* fixed once the Buffers are made */
    int64_t iterations, done;
    int32_t buffer; /* of the data matrix that holds `done` of them: 0 or 1 */
    bool different; /* the result was verified, and differs */
    char init[16];  /* of the matrices without an input */
    char backend[24];
    char checksum[17]; /* of the finished result, "" before */
    int64_t started_s, committed_s;
    struct {
        char path[PATH_MAX]; /* "" = by init */
        struct mx_input_identity identity;
    } inputs[MX_WF_MATRICES];
};

/* As mx_note_print and mx_note_parse of note/note.h. */
int mx_wf_note_print(const struct mx_wf_note *note, char *text, size_t capacity_bytes);
int mx_wf_note_parse(const char *text, size_t bytes, mx_why *why, struct mx_wf_note *out);
/* Describe the run for `memext info`: as an object, and for people. place: the store's path as the user named
 * it; busy: somebody works on it. */
json_t *mx_wf_note_json(const struct mx_wf_note *note);
void mx_wf_note_show(const struct mx_wf_note *note, const char *place, bool busy, FILE *to);

#endif
