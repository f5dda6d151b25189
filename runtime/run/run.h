/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h - one run, as the files of this folder see it, and the command, which prints what it holds.
 *
 *     run.c        memext.h's mx_run_*: options, thread, progress, report
 *     options.c    what can be asked for: a table
 *     request.c    what a run and `memext tune` ask of the tuner alike
 *     identity.c   is it the problem that a store holds? one place for the command and for programs
 *     prepare.c    before anything is touched: limits, place, plan, commits; what a store says on --resume
 *     phases.c     with the store open: initial grid, computation, checksum, verification, result
 *     fields.c     the fields of a system by name: first values, results
 *     fuse.c       the input read by the first sweep, the result taken from the last
 *     field_files.c  files of C that are read where they are
 *     sides.c      what the frame is on each side
 *     frame.c      the frame of inputs that have none; raw.c files of raw cells
 *     points.c     sources, probes and the file of their traces
 *     finite.c     what ends a run whose numbers are no numbers any more
 *     norms.c      checks: norms, their history, what ends a run
 *     snapshots.c  the state every so many steps, as files
 *     ranks.c      several processes, each with a range of planes
 *     recut.c      --resume with another number of them; folder.c directories that runs make
 *     info.c       what memext sees of the machine
 *     note.c       the note of a store: what a run is resumed from; store.c shows it
 *     grid_file.c  .npy files as source and sink; output.c files that appear when they are whole
 */
#ifndef MX_RUN_RUN_H
#define MX_RUN_RUN_H

#include "accel/accel.h"
#include "ask/size.h"
#include "ask/table.h"
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
#include "run/finite.h"
#include "run/fuse.h"
#include "run/norms.h"
#include "run/points.h"
#include "run/ranks.h"
#include "run/recut.h"
#include "run/request.h"
#include "run/snapshots.h"
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

enum mx_run_state { MX_RUN_OPEN, MX_RUN_READY, MX_RUN_AT_WORK, MX_RUN_ENDED };

struct mx_run {
    struct mx_options o;
    char **words; /* texts that `o` points to, of a program's options; NULL-terminated, or NULL */
    char source_name[64];
    char input_path[PATH_MAX], input_raw[MX_RAW_TEXT]; /* of --input without a kernel */
    bool plan_only; /* of memext tune: fields of a kernel may be without values, as if a program gave them */
    struct mx_frame made;           /* of a built-in stencil's grid that has none */
    char frame_text[MX_FRAME_TEXT]; /* words of the store, which o.frames points to */
    void (*remark)(void *context, const char *sentence);
    bool (*late)(void); /* mx_run_prepare is to wait no longer; NULL = as long as it takes */
    void *context;
    mx_why why;
    atomic_int stop; /* asked to end; any thread, any signal handler */

    struct mx_run_ranks ranks;
    struct mx_run_recut recut;
    struct mx_problem whole; /* o.problem is the part of this rank, this is all of it; the same where a run is
                                by itself */
    const struct mx_backend *backend;
    struct mx_problem rest; /* what is left to compute: the problem with the steps after `first_time` */
    /* What the store says of itself: of ranks an older state may be what is gone on from, and other steps. */
    int64_t note_time, note_nt;
    int32_t note_buffer;
    bool fixed_saved; /* the hashes of C are in the store */
    bool plain; /* no hashes are kept of the state that is gone on from: --integrity begins with this run */
    int64_t first_time; /* steps that the store holds already */
    struct mx_tune_request request;
    struct mx_tune_result tuned;
    mx_accel *accel; /* NULL = Blocks are in DRAM */
    struct mx_tune_accel there;
    struct mx_report report;
    struct mx_note note;
    struct mx_source source;           /* region NULL = none: the initial grid is o.init */
    struct mx_sink sink;               /* region NULL = none */
    struct mx_grid_file input, output; /* behind source and sink where they are files */
    struct mx_source row_source;       /* behind source and sink where the program's go row by row */
    struct mx_sink row_sink;
    bool source_open, sink_open;
    struct mx_fill fill;
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
    struct mx_run_points points;
    struct mx_run_norms norms;
    struct mx_run_finite finite;
    struct mx_run_snapshots snapshots;
    struct mx_run_fuse fuse;
    mx_budget *budget;
    mx_device *device;
    mx_buffer *buffer[MX_BUFFERS], *seams; /* seams: side file, or NULL */
    mx_buffer *partner[MX_BUFFERS];        /* array B of each pair, where Buffers are pairs */
    mx_buffer *fixed[MX_MAX_FIXED];        /* C */
    /* Files of C that are read in place: their devices, and how they lie; NULL and row_pitch_bytes 0 of what
     * the run has a copy of. */
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
    int32_t result;   /* Buffer of the result */
    bool resumed, resident;
    bool comparing;   /* mx_run_compare: nothing follows */
    bool moving;      /* Buffers are there and data moves: errors are those of I/O */
    bool committed;   /* there is something to resume */
    bool sinks_known; /* where a system's fields go */
    bool same_names;  /* a file that is written is another one that is used: no report goes there either */

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

/* run.c */

/* A run of options that were read; takes nothing of them but texts. -ENOMEM. */
int mx_run_make(const struct mx_options *options, mx_run **out);
/* Fills in what the report says of the end, err. */
void mx_run_close_report(struct mx_run *r, int err);
/* The report as text; free() it. */
int mx_run_json(const struct mx_run *r, mx_why *why, char **out);
/* For a process that must end at once, since memory that Buffers are mapped to cannot be had, and the run's
 * thread stands still in it: what was committed is kept, nothing is waited for. */
void mx_run_abandon(struct mx_run *r);
/* A phase begins: its name, and what mx_run_progress_to will reach. */
void mx_run_begin_phase(struct mx_run *r, const char *phase, const char *unit, int64_t total);
void mx_run_progress_to(struct mx_run *r, int64_t done);
/* What the note says is durable: from there a resumed run would go on. */
void mx_run_committed(struct mx_run *r);
void mx_run_remark(const struct mx_run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* -EINTR when the run was asked to end. */
static inline int mx_run_stopped(const struct mx_run *r) { return r->stop ? -EINTR : 0; }

/* prepare.c. All: 0 or -errno with r->why. */
int mx_run_compare_store(struct mx_run *r); /* of --resume: is the store's problem the one asked for? */
int mx_run_request(struct mx_run *r);       /* place, source, machine, limits; on --resume the store's note */
int mx_run_plan(
    struct mx_run *r); /* plan and predictions, without or (after the store) with the device's own facts */
int mx_run_open_store(struct mx_run *r);   /* device, budget, Buffers */
int mx_run_check_verify(struct mx_run *r); /* with the store open: is there memory for --verify? (verify.c) */
/* A Buffer of C is checked from now on, with the hashes that were saved or with none. */
int mx_run_check_fixed(struct mx_run *r, mx_buffer *buffer, int32_t field, bool saved);
int mx_run_check_names(struct mx_run *r); /* no output may be the input, the store, or another output: before
                                             any is opened */
/* Of --resume, before --json is opened: a run that is refused leaves its report, but not where the files of
 * the stored run are. */
int mx_run_check_stored_names(struct mx_run *r);
int mx_run_open_outputs(struct mx_run *r); /* sink, timeline, trace */
double mx_run_seconds_a_sweep(const struct mx_run *r);

/* field_files.c. Which files of C are read in place, or copied, with a remark where that was not asked for;
 * opens them. After mx_run_request's files, before the plan. 0 or -errno with r->why. */
int mx_run_take_field_files(struct mx_run *r);
/* -ESTALE with a sentence: one of them is not what it was. */
int mx_run_field_files_unchanged(struct mx_run *r, mx_why *why);
/* Of a dry run: is there room for the Buffers, which mx_run_open_store would refuse to be without? */
int mx_run_check_room(struct mx_run *r);
/* How the run opens a device at a path: its store, or a file of a user. */
struct mx_device_options mx_run_device_options(const struct mx_run *r, const char *path);
/* What the device of the Buffers moved, and those of the files. Times are those of whichever took longest. */
void mx_run_counters(const struct mx_run *r, struct mx_counters *out);
int mx_run_take_sides(struct mx_run *r);   /* --side, or the store's; r->o.problem has them then */
int mx_run_check_frames(struct mx_run *r); /* do --frame and they agree? */

/* The store is there already, with the state in it. */
static inline bool mx_run_has_store(const struct mx_run *r) { return r->resumed && !r->recut.asked; }
/* A finished sweep is a commit. */
static inline bool mx_run_resumable(const struct mx_run *r) {
    return r->algorithm->resumable && !r->tuned.shape.in_place;
}
/* Buffers that the run has: pairs count twice. */
static inline int32_t mx_run_buffers(const struct mx_run *r) {
    return r->n_buffers * (r->tuned.shape.pairs ? 2 : 1);
}
/* The Buffer of array A (part 0) or B (part 1) of a state: of systems whose form reads the old value each has
 * one, others have one for both. */
static inline mx_buffer *mx_run_buffer(const struct mx_run *r, int32_t number, int part) {
    return part == 1 && r->tuned.shape.pairs ? r->partner[number] : r->buffer[number];
}

/* phases.c */
int mx_run_check_note(
    struct mx_run *r); /* -ENAMETOOLONG: of a new run, whose files' paths a store cannot hold */
/* Bits of the Buffers that have to get the frame before a resumed run goes on: those of an algorithm that
 * never writes it, as far as they do not hold it. */
uint32_t mx_run_unframed(const struct mx_run *r);
int mx_run_work(struct mx_run *r); /* from the initial grid to the result in the sink */
/* Fills a new Buffer plane by plane, with progress. */
int mx_run_pass(struct mx_run *r, const char *label, mx_buffer *buffer, const struct mx_layout *layout,
                mx_source_fn *source, void *context);
void mx_run_release(struct mx_run *r);

#endif
