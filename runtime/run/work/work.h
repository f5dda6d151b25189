/* SPDX-License-Identifier: BSD-3-Clause */
/* work.h - a run with its store open. All that return int: 0 or -errno with r->why. */
#ifndef MX_RUN_WORK_H
#define MX_RUN_WORK_H

#include "machine/clock.h"
#include "run/ranks/ranks.h"
#include "run/state.h"

/* From the initial grid to the result in the sink. */
int mx_run_work(struct mx_run *r);

/* ---- the phases of that */

int mx_run_initialise(struct mx_run *r);
int mx_run_make_engine(struct mx_run *r);
int mx_run_compute(struct mx_run *r);
int mx_run_take_checksum(struct mx_run *r);
int mx_run_commit_result(struct mx_run *r);
int mx_run_hand_over_result(struct mx_run *r);
/* What stays of a finished run tells its checksum; a result that differs is neither resumed nor exported. */
int mx_run_finish(struct mx_run *r);

/* ---- notes.c, hashes.c, commit.c */

int mx_run_begin_note(struct mx_run *r);  /* of a new run */
void mx_run_renew_note(struct mx_run *r); /* what a resumed run may have changed */
int mx_run_write_note(struct mx_run *r);  /* the commit itself; no sentence */
int mx_run_turn_note(struct mx_run *r);   /* of a store that another cut of the run goes on in */
/* -ENAMETOOLONG: of a new run, whose files' paths a store cannot hold. Before anything is touched. */
int mx_run_check_note(struct mx_run *r);

/* A Buffer of C is checked from now on, with the hashes that were saved or with none. */
int mx_run_check_fixed(struct mx_run *r, mx_buffer *buffer, int32_t field, bool saved);
int mx_run_no_hashes(struct mx_run *r, const char *buffer, int err); /* says so */
int mx_run_save_hashes(struct mx_run *r, mx_buffer *buffer);
int mx_run_save_fixed_hashes(struct mx_run *r); /* of C, with the first commit */

/* time: steps since the beginning of this process's part of the run. On a thread of the executor. No
 * sentence: mx_run_fail_commit says which one failed. */
int mx_run_commit(void *run, int64_t time, int32_t buffer);
/* Of a state that was changed between steps: it takes the place of the one that the run goes on from. */
int mx_run_commit_edit(struct mx_run *r, int32_t buffer);
int mx_run_fail_commit(struct mx_run *r, const char *which, int err);
/* Of ranks that go on: all are at the state that they have in common, and their stores say so. */
int mx_run_settle_state(struct mx_run *r);

/* ---- fixed.c */

/* A field of C, into one of its Buffers; `from` has all but the layout. */
int mx_run_write_fixed(struct mx_run *r, int32_t field, mx_buffer *to, struct mx_fields_fill *from);
/* All of them, as far as the run has a copy. */
int mx_run_write_all_fixed(struct mx_run *r);

/* ---- initial.c, former.c */

/* Bits of the Buffers that have to get the frame before a resumed run goes on: those of an algorithm that
 * never writes it, as far as they do not hold it. */
uint32_t mx_run_unframed(const struct mx_run *r);
/* The state and the fields of C of a run that goes on with another number of ranks, into the new Buffers. */
int mx_run_read_former(struct mx_run *r);

/* ---- edit.c: the state, changed before the run goes on from it (edits.h of open/) */

/* The Buffer that gets the changed state. */
int32_t mx_run_edit_target(const struct mx_run *r);
/* What that moves, besides commits. */
int64_t mx_run_edit_read_bytes(const struct mx_run *r);
int64_t mx_run_edit_write_bytes(const struct mx_run *r);
/* -ENOMEM with a sentence: that needs more DRAM than the run has. Before anything is touched. */
int mx_run_check_edit_dram(struct mx_run *r);
/* One pass over the state, which is committed then. Before the frames of the other Buffers are made. */
int mx_run_edit_state(struct mx_run *r);

/* ---- compute.c, timeline.c */

/* What happens at steps and planes besides the computation: sources, traces, norms, sides? */
bool mx_run_asks(const struct mx_run *r);
void mx_run_on_progress(void *run, int64_t updates_done);
void mx_run_on_event(void *run, const struct mx_event *event);
int mx_run_start_timeline(struct mx_run *r);
int mx_run_stop_timeline(struct mx_run *r, int err);

/* ---- checksum.c */

/* The array that holds the state, of staggered systems the first of both. */
int mx_run_state_array(const struct mx_run *r);

/* ---- device.c, files.c */

/* How the run opens a device at a path: its store, or a file of a user. */
struct mx_device_options mx_run_device_options(const struct mx_run *r, const char *path);
/* -ESTALE with a sentence: a file that is read in place, or that the run began with, is not what it was. */
int mx_run_field_files_unchanged(struct mx_run *r, mx_why *why);
/* What the device of the Buffers moved, and those of the files. Times are those of whichever took longest. */
void mx_run_counters(const struct mx_run *r, struct mx_counters *out);

/* ---- planes.c */

/* Fills a new Buffer plane by plane, with progress. */
int mx_run_pass(struct mx_run *r, const char *label, mx_buffer *buffer, const struct mx_layout *layout,
                mx_source_fn *source, void *context);
/* A Buffer of the state: is filled (write), or read. */
int mx_run_pass_grid(struct mx_run *r, const char *label, mx_buffer *buffer, bool write, mx_source_fn *use,
                     void *context);
/* A plane that a sink is to get: *box is it, or false where it gets none of it, since it wants no frame. */
bool mx_run_box_out(const struct mx_run *r, enum mx_dtype dtype, int64_t z, char *plane,
                    struct mx_grid_box *box);
/* Where ranks go on around a periodic z no rank has the frame there, for it is somebody's interior: whoever
 * has a plane that it copies gives it once more, so many planes further. 0: plane z has no copy. */
int64_t mx_run_frame_shift(const struct mx_run *r, int64_t z);
int mx_run_give_planes(struct mx_run *r, const struct mx_sink *sink, int64_t z, struct mx_grid_box *box);
/* A pass over all planes of a Buffer with progress in bytes: `use` is called for each of them, and fills it
 * (write), or reads it. */
int mx_run_pass_layout(struct mx_run *r, const char *label, mx_buffer *buffer, const struct mx_layout *layout,
                       bool write, mx_source_fn *use, void *context);

/* ---- the initial grid */

/* One plane of it, its frame as the source has it, or as it is made. context: the run. */
int mx_plain_plane(void *run, int64_t z, char *plane);
/* Planes of fields: array A (0), B (1), or MX_FIELD_OF_C and its number. */
struct mx_fields_fill mx_run_fill(struct mx_run *r, int32_t array, int32_t index,
                                  const struct mx_layout *layout);

/* Planes with the frames that the run's sides ask for. z is this rank's, `fill` is asked for planes of the
 * whole grid. */
struct mx_sided {
    struct mx_run *r;
    int array;
    mx_source_fn *fill;
    void *context;
};

int mx_fill_sided(void *sided, int64_t z, char *plane);

/* Planes of a field that a kernel only reads. At periodic sides its frame is what stands at the other end,
 * like the ghost layers that some plans read there; at others it is the file's. */
struct mx_sided_field {
    const struct mx_run *run;
    const struct mx_layout *layout;
    enum mx_dtype dtype;
    struct mx_fields_fill *fill;
    int64_t before; /* planes of the Buffer that stand before the rank's own frame */
};

int mx_fill_sided_field(void *sided_field, int64_t z, char *plane);

/* ---- verify.c */

/* Of a plan: are so many bytes enough for --verify? Of ranks all together. */
int mx_run_check_verify(struct mx_run *r, uint64_t left_bytes);
/* Of all ranks together. 0 also where the result differs: the report says it. */
int mx_run_verify(struct mx_run *r);

#endif
