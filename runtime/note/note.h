/* SPDX-License-Identifier: BSD-3-Clause */
/* note.h - the note: a store's description of its run. It is enough to resume the run on any machine, to
 * export its state, or to refuse both with a reason. A store without a note holds no state: nothing was
 * committed, or an algorithm is rewriting the Buffers in place.
 *
 * A note is one JSON object (UTF-8 text, at most MX_NOTE_BYTES) in the superblock of the store, written with
 * every commit. A program ignores keys that it does not know. It refuses a larger number `note`, since that
 * changes the meaning of known keys.
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
 * sides of one field, or other than fixed, mirror and periodic. 8: stages, edits of the state, integers in
 * the state, read-only fields of types after i16. A note has the least number that covers its content. */
enum {
    MX_NOTE_OLDEST = 4,
    MX_NOTE_IN_PLACE = 5,
    MX_NOTE_RANKS = 6,
    MX_NOTE_SIDES = 7,
    MX_NOTE_VERSION = 8,
    MX_NOTE_MOST_BUFFERS = 3,
    MX_NOTE_MOST_RUNS = 1 << 30
};

/* The kind of the note of a wavefront run (runtime/wavefront). */
#define MX_NOTE_WAVEFRONT "memext wavefront"

enum { MX_SNAPSHOT_FIELDS = 512, MX_TIME_STEP_TEXT = 64 };

/* Snapshots of a run (snapshots.h). every 0 = none. */
struct mx_snapshots_asked {
    int64_t every, stride;
    uint64_t run;                    /* a number that only this run has; 0 = none yet */
    char directory[PATH_MAX];        /* absolute */
    char fields[MX_SNAPSHOT_FIELDS]; /* --snapshot-fields; "" = all of the state */
};

/* A parameter over time: its file, and the values that the run has used: those of steps before `steps`. */
struct mx_note_series {
    char name[MX_FIELD_NAME], path[PATH_MAX];
    int64_t steps;
    uint64_t hash; /* XXH3-64 of these doubles */
};

/* A parameter that was changed between steps. Cells that are computed from step `since` on use `value`. From
 * the previous change to then they use `before`, and at the beginning of the run `began`. sum: its values
 * added up over the steps before `since`; NAN = more than a double can hold. kept: the number of the edit of
 * the state that was committed at step `since` together with the change; 0 = none. taken: this run has
 * changed it. */
struct mx_note_edit {
    char name[MX_FIELD_NAME];
    double began, before, value, sum;
    int64_t since, kept;
    bool taken;
};

/* A run that was superseded by another one, which began with its state. */
struct mx_note_former {
    uint64_t run; /* its number */
    int64_t step; /* the step of that state */
    int32_t
        runs; /* number of runs that have followed one another in the place, this one included; 0 = none */
    int32_t n;
    struct mx_note_former_field {
        char name[MX_FIELD_NAME + 4];
        enum mx_dtype dtype;
    } field[MX_FIELDS_MOST]; /* fields of its state, and its read-only fields */
};

struct mx_note {
    struct mx_problem
        problem;         /* of a rank its part (first_plane, all_nz); the sides are those of the whole grid */
    int32_t rank, ranks; /* 0, 0 = a single process */
    uint64_t run;        /* a number that only this run has, in all its ranks; 0 = none (older versions) */
    int32_t cut;         /* the cut: the set of stores to which this one belongs (recut.h) */
    /* Of a rank, the step and the edits of the state that all ranks had committed before this one.
     * before_buffer: the Buffer that holds that state. It is kept because other ranks may not have made the
     * newest commit. */
    int64_t before_time, before_edits, before_edited;
    int32_t before_buffer;
    uint32_t before_second;
    int64_t fixed_beyond;    /* planes of C beyond an end where a neighbour's planes follow */
    struct mx_plan plan;     /* of the last run on this store; a resumed run may choose another one */
    struct mx_layout layout; /* of the Buffers in this store; never changes */
    int64_t time;            /* steps that Buffer number `buffer` holds */
    int64_t edits;           /* how often the state was changed between steps, up to `time` */
    int64_t edited;          /* the step of the last such change, */
    int64_t edits_there;     /* and the number of changes at that step */
    uint32_t
        second; /* bit i: field i of C was changed, and its values are in the second of its two Buffers */
    char time_step[MX_TIME_STEP_TEXT]; /* --time-step as given; "" = not given */
    bool timed;                        /* the simulated seconds of these steps are known, */
    double simulated_s;                /* and this is their number */
    int32_t buffer, n_buffers;
    /* true: no Buffer holds a state. The state is step 0, and the first sweep reads it from the input files
     * or formulas. sample: of each field's file (fields.h); 0 = no file. */
    bool pending;
    uint64_t sample[MX_MAX_FIELDS];
    bool keep;                     /* the store stays when the run is done */
    bool ignores_nonfinite;        /* --nonfinite ignore */
    bool different;                /* the result was verified, and differs from the plain computation */
    uint32_t framed;               /* bit i: Buffer i (of pairs both arrays) holds the frame */
    int64_t integrity_unit;        /* bytes of one hash of --integrity, a row or a plane; 0 = without */
    double commit_every;           /* seconds between commits; 0 = after every sweep */
    uint64_t dram_bytes;           /* --dram of the run that committed last; 0 = not given */
    char init[16];                 /* name of the initial grid, "" with an input or a source */
    char source[64];               /* name of a program's source of it, "" without */
    char input[PATH_MAX], raw[48]; /* raw: for a file of raw cells what follows its name */
    struct mx_input_identity identity;
    char frame[512]; /* words of --frame, separated by blanks; "" = files have their frames */
    /* With a system, problem.system points to `system`, which has no row functions. The following members say
     * where it and its fields come from; init, source and input are empty. */
    struct mx_system system;
    char kernel[PATH_MAX]; /* the kernel's file */
    int32_t n_series;
    struct mx_note_series series[MX_MAX_SERIES]; /* of `system`, whose param has 0 there */
    int32_t n_edits;
    struct mx_note_edit edit[MX_MAX_PARAMS]; /* `system` has the values for a run that is resumed at `time` */
    struct mx_run_fields fields;
    struct mx_sides sides;
    struct mx_snapshots_asked snapshots;
    uint64_t sources, probes; /* their identities, 0 = none; a resumed run must have the same ones */
    char backend[24], host[65];
    struct mx_note_former former;   /* the run in this place whose state this run began with */
    int64_t started_s, committed_s; /* seconds since 1970 */
    char checksum[17];              /* of the finished result, "" before */
    int64_t check;                  /* steps from one check to the next; 0 = no checks */
    int32_t n_until;
    char until[MX_UNTILS_MOST][MX_UNTIL_TEXT];
    int32_t n_stored;                /* reductions of the state at `time` that are known, by the kernel's */
    double stored[MX_MAX_REDUCES];   /* numbers; NAN = not. n_stored 0: none */
    struct mx_met met;               /* the criterion that ended the run at `time` */
    struct mx_norms_history history; /* up to `time`; the text has as much of it as there is room for */
};

/* Is the run complete? All steps are done, or a criterion has ended it before. */
static inline bool mx_note_complete(const struct mx_note *n) {
    return n->time == n->problem.nt || n->met.until[0] != 0;
}

/* Returns a number that orders the states of one run, since every commit adds steps or one edit. Equal
 * numbers mean the same state. */
static inline int64_t mx_note_moment(const struct mx_note *n) { return n->time + n->edits; }
/* The same for the state before it. */
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
    /* The number of changes at one step is not known for the state before. */
    n->edits_there = n->edited == n->before_edited && n->edits_there > 1 ? n->edits_there - 1 : 1;
    n->edited = n->before_edited;
    n->buffer = n->before_buffer;
    n->second = n->before_second;
}

/* Does the state include this change of a parameter? Otherwise the change is dropped, and the program makes
 * it again. */
static inline bool mx_note_edit_holds(const struct mx_note *n, const struct mx_note_edit *e) {
    return n->time > e->since || (e->kept > 0 && e->kept <= n->edits);
}

/* Returns the change of a parameter; NULL = it was never changed. */
static inline const struct mx_note_edit *mx_note_edit(const struct mx_note *n, const char *param) {
    for (int32_t i = 0; i < n->n_edits; i++)
        if (strcmp(n->edit[i].name, param) == 0) return &n->edit[i];
    return NULL;
}

/* Returns the entry of a parameter over time; NULL = it is one number. */
static inline const struct mx_note_series *mx_note_series(const struct mx_note *n, const char *param) {
    for (int32_t i = 0; i < n->n_series; i++)
        if (strcmp(n->series[i].name, param) == 0) return &n->series[i];
    return NULL;
}

/* Fills the description of a superseded run, for a run that begins with its state in its place. */
void mx_note_follow(const struct mx_note *former, struct mx_note_former *out);

/* Returns the bits of all Buffers. */
static inline uint32_t mx_note_all_buffers(const struct mx_note *n) {
    return (UINT32_C(1) << n->n_buffers) - 1;
}

/* For the store of a rank: do another rank's planes follow below (end 0) or above (end 1) its own? */
bool mx_note_has_neighbour(const struct mx_note *n, int end);

/* Convert paths, which are bytes, to JSON text, which is UTF-8, and back: bytes that are not plain ASCII
 * become %XX. `out` of escape has room for MX_NOTE_ESCAPED_BYTES. unescape is false if the text is too long
 * or was not written by escape. */
enum { MX_NOTE_ESCAPED_BYTES = 3 * PATH_MAX + 1 };
void mx_note_escape(const char *path, char *out);
bool mx_note_unescape(const char *text, char *out, size_t capacity_bytes);

/* Names of the Buffers in a store, by number. */
extern const char *const mx_note_buffers[MX_NOTE_MOST_BUFFERS];
/* Names of array B, if a Buffer is a pair; and of the copied fields of C ("field-0", ...). second: as in
 * struct mx_note, for "field-0-b". */
extern const char *const mx_note_partners[MX_NOTE_MOST_BUFFERS];
const char *mx_note_fixed(uint32_t second, int32_t field, char name[16]);

/* Writes a note as text with a closing 0. Returns its length, or -ENOSPC if capacity is too small (paths of
 * several thousand bytes), -ENOMEM. */
int mx_note_print(const struct mx_note *note, char *text, size_t capacity_bytes);
/* Writes the text of a note with another `framed`, and all other keys unchanged. Returns what mx_note_print
 * returns; -EINVAL: it is not a note. */
int mx_note_reframe(const char *note, size_t bytes, uint32_t framed, char *text, size_t capacity_bytes);
/* Reads a note from text, which needs no closing 0. -EMEDIUMTYPE with a sentence: the note of a wavefront
 * run. -EINVAL with a sentence: not a note, a newer version, or numbers that contradict each other. */
int mx_note_parse(const char *text, size_t bytes, mx_why *why, struct mx_note *out);

#endif
