/* SPDX-License-Identifier: BSD-3-Clause */
/* note.h - what a store says of its run: enough to go on with it anywhere, to export its state, or to refuse
 * both with a reason. A store without a note holds no state: nothing was committed, or an algorithm is
 * rewriting the Buffers in place.
 *
 * A note is one JSON object (UTF-8 text, at most MX_NOTE_BYTES) in the superblock of the store, written with
 * every commit. Keys that a program does not know are ignored; a larger `note` number is refused, since it
 * changes the meaning of what is known.
 */
#ifndef MX_NOTE_H
#define MX_NOTE_H

#include "files/fields.h"
#include "system/norms.h"
#include "system/sides.h"
#include "system/system.h"

#include <memext/backend.h>

#include <limits.h>
#include <string.h>

/* 5: fields of C may be files that are read in place. 6: `pending`, and the store of one rank of several. 7:
 * sides of one field, or other than fixed, mirror and periodic. 8: stages, edits of the state, whole
 * numbers in the state, read-only fields of types after i16. A note has the least that says all of it. */
enum {
    MX_NOTE_OLDEST = 4,
    MX_NOTE_IN_PLACE = 5,
    MX_NOTE_RANKS = 6,
    MX_NOTE_SIDES = 7,
    MX_NOTE_VERSION = 8,
    MX_NOTE_MOST_BUFFERS = 3,
    MX_NOTE_MOST_RUNS = 1 << 30
};

/* What the note of a wavefront run (runtime/wavefront) calls itself. */
#define MX_NOTE_WAVEFRONT "memext wavefront"

enum { MX_SNAPSHOT_FIELDS = 512, MX_TIME_STEP_TEXT = 64 };

/* Snapshots of a run (snapshots.h). every 0 = none. */
struct mx_snapshots_asked {
    int64_t every, stride;
    uint64_t run;                    /* a number of this run alone; 0 = none yet */
    char directory[PATH_MAX];        /* absolute */
    char fields[MX_SNAPSHOT_FIELDS]; /* --snapshot-fields; "" = all of the state */
};

/* A parameter over time: its file, and the values that the run has used, those of the steps before `steps`.
 */
struct mx_note_series {
    char name[MX_FIELD_NAME], path[PATH_MAX];
    int64_t steps;
    uint64_t hash; /* XXH3-64 of these doubles */
};

/* A parameter that was changed between steps: cells that are computed from step `since` on have `value`,
 * those since the change before it `before`, the first ones `began`. sum: of its values over the steps before
 * `since`, added up; NAN = more than a number can hold. kept: the number of the edit of the state that was
 * committed at step `since` together with the change; 0 = none. taken: this run has changed it. */
struct mx_note_edit {
    char name[MX_FIELD_NAME];
    double began, before, value, sum;
    int64_t since, kept;
    bool taken;
};

/* A run that another one has superseded, which began with its state. */
struct mx_note_former {
    uint64_t run; /* its number */
    int64_t step; /* which it had come to */
    int32_t runs; /* so many have followed one another in the place, this one among them; 0 = none */
    int32_t n;
    struct mx_note_former_field {
        char name[MX_FIELD_NAME + 4];
        enum mx_dtype dtype;
    } field[MX_FIELDS_MOST]; /* of its state, and those it only read */
};

struct mx_note {
    struct mx_problem
        problem;         /* of a rank its part: first_plane and all_nz say which; sides are the whole's */
    int32_t rank, ranks; /* 0, 0 = by itself */
    uint64_t run;        /* a number of this run alone, of all its ranks; 0 = none (older memext) */
    int32_t cut;         /* which set of its stores this is one of (recut.h) */
    /* Of a rank, the step and the edits of the state that all ranks had committed before this one.
     * before_buffer: the Buffer that holds that state. It is kept because other ranks may not have made the
     * newest commit. */
    int64_t before_time, before_edits, before_edited;
    int32_t before_buffer;
    uint32_t before_second;
    int64_t fixed_beyond;    /* planes that the fields of C have beyond where a neighbour goes on */
    struct mx_plan plan;     /* of the last run on this store; a resumed run may choose another one */
    struct mx_layout layout; /* of the Buffers, as they lie in this store: fixed once they are made */
    int64_t time;            /* steps that Buffer number `buffer` holds */
    int64_t edits;           /* how often a program has changed the state between steps, up to there */
    int64_t edited;          /* the step at which it did so last, */
    int64_t edits_there;     /* and how often there */
    uint32_t
        second; /* bit i: field i of C has got other values, which are in the second of its two Buffers */
    char time_step[MX_TIME_STEP_TEXT]; /* --time-step as it was given; "" = it was not */
    bool timed;                        /* the seconds of these steps are known, */
    double simulated_s;                /* and so many */
    int32_t buffer, n_buffers;
    /* No Buffer holds a state: step 0 is what the run begins with, the first sweep reads it there. sample: of
     * each field's file (fields.h), 0 = it has none. */
    bool pending;
    uint64_t sample[MX_MAX_FIELDS];
    bool keep;                     /* the store stays when all is done */
    bool ignores_nonfinite;        /* --nonfinite ignore */
    bool different;                /* the result was verified, and differs from the plain computation */
    uint32_t framed;               /* bit i: Buffer i (of pairs both arrays) holds the frame */
    int64_t integrity_unit;        /* bytes of one hash of --integrity, a row or a plane; 0 = without */
    double commit_every;           /* seconds between commits; 0 = after every sweep */
    uint64_t dram_bytes;           /* --dram of the run that committed last; 0 = not given */
    char init[16];                 /* name of the initial grid, "" with an input or a source */
    char source[64];               /* name of a program's source of it, "" without */
    char input[PATH_MAX], raw[48]; /* raw: of a file of raw cells what follows its name */
    struct mx_input_identity identity;
    char frame[512]; /* words of --frame, blanks between them; "": files have their frames */
    /* With a system problem.system points to `system`, which has no row functions, and what follows says
     * where it and its fields come from; init, source and input are empty. */
    struct mx_system system;
    char kernel[PATH_MAX]; /* the kernel's file */
    int32_t n_series;
    struct mx_note_series series[MX_MAX_SERIES]; /* of `system`, whose param has 0 there */
    int32_t n_edits;
    struct mx_note_edit edit[MX_MAX_PARAMS]; /* `system` has what holds for a run that goes on at `time` */
    struct mx_run_fields fields;
    struct mx_sides sides;
    struct mx_snapshots_asked snapshots;
    uint64_t sources, probes; /* identities of them, 0 = none: a resumed run has the same */
    char backend[24], host[65];
    struct mx_note_former former;   /* in this place, whose state the run began with */
    int64_t started_s, committed_s; /* seconds since 1970 */
    char checksum[17];              /* of the finished result, "" before */
    int64_t check;                  /* norms every so many steps; 0 = none */
    int32_t n_until;
    char until[MX_UNTILS_MOST][MX_UNTIL_TEXT];
    int32_t n_stored;                /* reductions of the state at `time` that are known, by the kernel's */
    double stored[MX_MAX_REDUCES];   /* numbers; NAN = not. n_stored 0: none */
    struct mx_met met;               /* the criterion that ended the run at `time` */
    struct mx_norms_history history; /* up to `time`; of it the text has what there is room for */
};

/* All steps are done, or a criterion has ended the run before. */
static inline bool mx_note_complete(const struct mx_note *n) {
    return n->time == n->problem.nt || n->met.until[0] != 0;
}

/* Which of two states of one run is the later one: every commit makes more steps, or one more edit. The
 * numbers are equal where the states are the same. */
static inline int64_t mx_note_moment(const struct mx_note *n) { return n->time + n->edits; }
/* Likewise of the state before it. */
static inline int64_t mx_note_moment_before(const struct mx_note *n) {
    return n->before_time + n->before_edits;
}
/* The newest state becomes the one before the next. */
static inline void mx_note_step_on(struct mx_note *n) {
    n->before_time = n->time;
    n->before_edits = n->edits;
    n->before_edited = n->edited;
    n->before_buffer = n->buffer;
    n->before_second = n->second;
}
/* The store of a rank goes back to the state before its newest one. */
static inline void mx_note_go_back(struct mx_note *n) {
    n->time = n->before_time;
    n->edits = n->before_edits;
    /* What a rank of several says of one step alone is not kept for the state before. */
    n->edits_there = n->edited == n->before_edited && n->edits_there > 1 ? n->edits_there - 1 : 1;
    n->edited = n->before_edited;
    n->buffer = n->before_buffer;
    n->second = n->before_second;
}

/* Does the state rest on this change of a parameter? Else it is dropped: the program makes it again. */
static inline bool mx_note_edit_holds(const struct mx_note *n, const struct mx_note_edit *e) {
    return n->time > e->since || (e->kept > 0 && e->kept <= n->edits);
}

/* NULL = the parameter was never changed. */
static inline const struct mx_note_edit *mx_note_edit(const struct mx_note *n, const char *param) {
    for (int32_t i = 0; i < n->n_edits; i++)
        if (strcmp(n->edit[i].name, param) == 0) return &n->edit[i];
    return NULL;
}

/* What a note has of a parameter that was given over time; NULL = it is one number. */
static inline const struct mx_note_series *mx_note_series(const struct mx_note *n, const char *param) {
    for (int32_t i = 0; i < n->n_series; i++)
        if (strcmp(n->series[i].name, param) == 0) return &n->series[i];
    return NULL;
}

/* A run that begins with the state of this one, in its place. */
void mx_note_follow(const struct mx_note *former, struct mx_note_former *out);

/* The bits of all Buffers that are there. */
static inline uint32_t mx_note_all_buffers(const struct mx_note *n) {
    return (UINT32_C(1) << n->n_buffers) - 1;
}

/* Of the store of a rank: do the planes of another one follow below (end 0) or above (1) its own? */
bool mx_note_has_neighbour(const struct mx_note *n, int end);

/* Paths are bytes, JSON is UTF-8: what is not plain ASCII is written as %XX. `out` of escape has room for
 * MX_NOTE_ESCAPED_BYTES; unescape is false where the text is too long or was not written by it. */
enum { MX_NOTE_ESCAPED_BYTES = 3 * PATH_MAX + 1 };
void mx_note_escape(const char *path, char *out);
bool mx_note_unescape(const char *text, char *out, size_t capacity_bytes);

/* Names of the Buffers in a store, by number. */
extern const char *const mx_note_buffers[MX_NOTE_MOST_BUFFERS];
/* Of array B, where a Buffer is a pair; and of the fields of C ("field-0", ...) that the run has a copy of.
 * second: as in struct mx_note, for "field-0-b". */
extern const char *const mx_note_partners[MX_NOTE_MOST_BUFFERS];
const char *mx_note_fixed(uint32_t second, int32_t field, char name[16]);

/* Writes the text and a closing 0. Its length, or -ENOSPC where capacity is too small (paths of several
 * thousand bytes), -ENOMEM. */
int mx_note_print(const struct mx_note *note, char *text, size_t capacity_bytes);
/* The text of a note with another `framed`, and else as it was, whatever it says. As mx_note_print; -EINVAL:
 * no note. */
int mx_note_reframe(const char *note, size_t bytes, uint32_t framed, char *text, size_t capacity_bytes);
/* -EMEDIUMTYPE with a sentence: the note of a wavefront run. -EINVAL with one: not a note, one of a newer
 * version, or one whose numbers contradict each other.
 * The text needs no closing 0. */
int mx_note_parse(const char *text, size_t bytes, mx_why *why, struct mx_note *out);

#endif
