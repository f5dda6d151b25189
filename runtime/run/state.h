/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - the state of a run: its options, what it has opened, how far it is. All files of run/ use it.
 *
 *     run.c, callbacks.c, release.c   memext.h's mx_run_*: options, thread, progress, report, the end
 *     open/     from a request to a plan and an open store
 *     work/     initial state, sweeps, commits, checksum, verification, result
 *     parts/    what a run may have besides: points, norms, snapshots
 *     ranks/    several processes, each with a range of planes
 *     watch.c   what others see of a run while it goes on
 *
 * Files of one line call functions of the lines below it in this list, and never of those above.
 */
#ifndef MX_RUN_STATE_H
#define MX_RUN_STATE_H

#include "accel/accel.h"
#include "ask/size.h"
#include "ask/table.h"
#include "core/store.h"
#include "engine/engine.h"
#include "execute/execute.h"
#include "files/fields.h"
#include "files/frame.h"
#include "files/grid_file.h"
#include "files/output.h"
#include "grid/grid.h"
#include "kernel/kernel.h"
#include "note/note.h"
#include "observe/report.h"
#include "observe/timeline.h"
#include "run/parts/parts.h"
#include "run/ranks/ranks.h"
#include "run/ranks/recut.h"
#include "run/work/finite.h"
#include "run/work/fuse.h"
#include "schedule/schedule.h"
#include "tune/tune.h"

#include <memext/backend.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

/* Files that the run leaves besides the result, each optional. */
struct mx_run_outputs {
    struct mx_output timeline, trace;
};

/* What one hash of --integrity is of in Buffers of C, whose transfers are widened to whole units. */
enum { MX_FIXED_UNIT_BYTES = 4096 };

/* Changes to the state before the run continues. */
struct mx_run_edit {
    struct mx_edit program;      /* planes NULL = nothing */
    struct mx_run_fields *files; /* of --edit-input: fields with an open file; NULL = none */
    char name[MX_MAX_FIXED]
             [MX_FIELD_NAME]; /* fields of C to which a program gives other values, from `values` */
    int32_t n_names;
    struct mx_source values, value_rows;
    uint32_t fixed;                  /* bit i: field i of C gets other values */
    mx_buffer *buffer[MX_MAX_FIXED]; /* the Buffer for these values */
    bool state, done; /* state: fields of the state are changed; done: everything is committed */
};

/* The store in the run's place, with whose state the run begins. It stays until the run's first commit. */
struct mx_run_superseded {
    struct mx_note note;
    uint64_t digest;                   /* of the note's text */
    struct mx_extent kept[MX_EXTENTS]; /* Buffers that hold its state */
    int32_t n;
};

enum mx_run_state { MX_RUN_OPEN, MX_RUN_READY, MX_RUN_AT_WORK, MX_RUN_ENDED };

struct mx_run {
    struct mx_options o;
    char **words; /* texts of a program's options, to which `o` points; NULL-terminated, or NULL */
    char source_name[64];
    char input_path[PATH_MAX], input_raw[MX_RAW_TEXT]; /* of --input without a kernel */
    struct mx_frame made;           /* how the frame is made for a built-in stencil's grid without one */
    char frame_text[MX_FRAME_TEXT]; /* words of the store, which o.frames points to */
    void (*remark)(void *context, const char *sentence);
    bool (*late)(void); /* true: mx_run_prepare must not wait any longer; NULL = it waits as long as needed */
    void *context;
    mx_why why;
    atomic_int stop; /* the run was asked to end, by any thread or signal handler */

    struct mx_run_ranks ranks;
    struct mx_run_recut recut;
    struct mx_run_superseded *superseded; /* NULL = none */
    struct mx_problem
        whole; /* the problem of all ranks; o.problem is this rank's part. The same for a single process */
    const struct mx_backend *backend;
    struct mx_problem rest; /* what is left to compute: the problem with the steps after `first_time` */
    uint64_t note_digest;   /* of the note of the store as it was read */
    bool fixed_saved;       /* the hashes of C are in the store */
    bool plain;             /* the resumed state has no hashes: --integrity begins with this run */
    int64_t first_time;     /* steps that the store holds already */
    struct mx_tune_request request;
    struct mx_tune_result tuned;
    mx_accel *accel; /* NULL = Blocks are in DRAM */
    struct mx_tune_accel there;
    struct mx_report report;
    struct mx_note note;
    struct mx_source source;           /* region NULL = none: the initial grid is o.init */
    struct mx_sink sink;               /* region NULL = none */
    struct mx_grid_file input, output; /* behind source and sink, if these are files */
    struct mx_source row_source;       /* behind source and sink, if the program's work row by row */
    struct mx_sink row_sink;
    bool source_open, sink_open;
    struct mx_fill fill;
    struct mx_run_edit edit;
    /* With a system: its kernel, its fields, and where each of them goes. */
    struct mx_system *system;
    struct mx_run_fields fields;
    struct mx_field_sink {
        const char *path; /* NULL = nowhere */
        struct mx_sink sink;
        struct mx_grid_file file;
        bool open;
    } field_sink[MX_FIELDS_MOST];
    struct mx_run_outputs outputs;
    struct mx_sides sides;
    struct mx_run_finite finite;
    struct mx_run_parts parts;
    uint64_t sources_identity, probes_identity;     /* of what is asked for; 0 = none */
    struct mx_after after;                          /* what follows the levels of all parts */
    const struct mx_taking *taking[MX_TAKINGS + 1]; /* of parts that get states; ends with NULL */
    uint64_t taken_plane_bytes; /* DRAM for planes, if states are read from Buffers for these parts */
    struct mx_run_fuse fuse;
    mx_budget *budget;
    mx_device *device;
    mx_buffer *buffer[MX_BUFFERS], *seams; /* seams: side file, or NULL */
    mx_buffer *partner[MX_BUFFERS];        /* array B of each pair, where Buffers are pairs */
    mx_buffer *fixed[MX_MAX_FIXED];        /* C */
    /* Files of C that are read in place: their devices, and how they lie. For fields that the run has copied:
     * NULL and row_pitch_bytes 0. */
    mx_device *file[MX_MAX_FIXED];
    struct mx_fixed_layout file_layout[MX_MAX_FIXED];
    int32_t n_buffers;
    double commit_every_s; /* 0 = after every sweep */
    const struct mx_algorithm *algorithm;
    const struct mx_engine_ops *ops;
    mx_engine *engine;
    struct mx_schedule *schedule;
    mx_timeline *timeline;
    FILE *streams[2]; /* of timeline and trace */
    struct {
        int err; /* they could not be written: said when the result is safe */
        mx_why why;
    } unobserved;
    int32_t result; /* Buffer of the result */
    bool resumed, resident;
    bool comparing;         /* mx_run_compare: nothing follows */
    bool moving;            /* Buffers exist and data moves: errors count as I/O errors */
    bool committed;         /* there is something to resume */
    bool sinks_known;       /* where a system's fields go */
    uint64_t checked_names; /* digest of the names of files that were checked last */
    bool names_unknown;     /* a list of --sources was not read yet, which may name the file of the report */
    bool same_names; /* a written file is also another file of the run: the report must not go there either */

    /* run.c: the thread and what others see of it */
    pthread_t thread;
    bool joinable, prepared;
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t ended;
    enum mx_run_state state;
    int err; /* of preparing, or of the run once it has ended */
    struct mx_run_progress progress;
    uint64_t phase_begin_ns;
    uint64_t begin_ns;     /* it was opened */
    uint64_t hashed_bytes; /* of --integrity, written with commits of all phases */
};

/* ---- watch.c */

/* Begins a phase: its name, unit, and the number that mx_run_progress_to will reach. */
void mx_run_begin_phase(struct mx_run *r, const char *phase, const char *unit, int64_t total);
void mx_run_progress_to(struct mx_run *r, int64_t done);
/* Says that the note's state is durable: a resumed run would continue from it. */
void mx_run_committed(struct mx_run *r);
void mx_run_remark(const struct mx_run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- what follows from it */

/* -EINTR when the run was asked to end. */
static inline int mx_run_stopped(const struct mx_run *r) { return r->stop ? -EINTR : 0; }

/* Does the run continue in an existing store with the state? */
static inline bool mx_run_has_store(const struct mx_run *r) { return r->resumed && !r->recut.asked; }
/* Is the state changed before the run continues? */
static inline bool mx_run_edits(const struct mx_run *r) {
    return r->edit.program.planes != NULL || r->edit.n_names > 0 || r->o.edit_inputs.n > 0;
}
/* Is its frame changed too? */
static inline bool mx_run_edits_frame(const struct mx_run *r) {
    bool frame = r->edit.program.planes != NULL && r->edit.program.frame;
    for (int32_t i = 0; r->edit.files != NULL && i < r->edit.files->n; i++)
        frame |= r->edit.files->field[i].npy.fd >= 0 && r->edit.files->field[i].frame &&
                 r->edit.files->field[i].array != MX_FIELD_OF_C;
    return frame;
}
/* Will anything still be written to the Buffers? */
static inline bool mx_run_writes(const struct mx_run *r) { return r->rest.nt > 0 || mx_run_edits(r); }
/* Returns how many parts get states. */
static inline int32_t mx_run_takings(const struct mx_run *r) {
    int32_t n = 0;
    while (r->taking[n] != NULL) n++;
    return n;
}
/* Is a finished sweep a commit? */
static inline bool mx_run_resumable(const struct mx_run *r) {
    return r->algorithm->resumable && !r->tuned.shape.in_place;
}
/* May Buffers that are written only after the first commit overlap those of the superseded store? */
static inline bool mx_run_lies_late(const struct mx_run *r) {
    return r->superseded != NULL && mx_run_resumable(r);
}
/* Returns how many Buffers get the initial state: as many as the algorithm needs. */
static inline int32_t mx_run_first_count(const struct mx_run *r) {
    return r->tuned.shape.init_both && !mx_run_lies_late(r) ? r->n_buffers : 1;
}
/* Returns how many Buffers the run has; pairs count twice. */
static inline int32_t mx_run_buffers(const struct mx_run *r) {
    return r->n_buffers * (r->tuned.shape.pairs ? 2 : 1);
}
/* Returns the Buffer of array A (part 0) or B (part 1) of a state. In systems whose form reads the old value
 * each array has its own; others have one Buffer for both. */
static inline mx_buffer *mx_run_buffer(const struct mx_run *r, int32_t number, int part) {
    return part == 1 && r->tuned.shape.pairs ? r->partner[number] : r->buffer[number];
}

/* Returns the predicted bytes of layers that are sent to neighbours. The first sweep of a run that is fed
 * sends none. */
static inline int64_t mx_run_sent_bytes(const struct mx_run *r) {
    const struct mx_traffic *t = &r->tuned.traffic;
    return t->sent_bytes - (r->fuse.source ? t->first_sent_bytes : 0);
}
/* Returns how many sweeps are left, unless one of them ends the run. */
static inline int64_t mx_run_sweeps(const struct mx_run *r) {
    return mx_sweep_count(&r->rest, r->tuned.shape.max_levels);
}
/* Returns the predicted seconds of a sweep. */
static inline double mx_run_seconds_a_sweep(const struct mx_run *r) {
    const int64_t sweeps = mx_run_sweeps(r);
    return sweeps > 0 ? r->tuned.seconds.total_s / (double)sweeps : 0;
}

#endif
