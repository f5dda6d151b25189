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
/* Ends a run: the store that stays knows the checksum. A result that differs is marked, so that it is neither
 * resumed nor exported. */
int mx_run_finish(struct mx_run *r);

/* ---- notes.c, hashes.c, commit.c */

int mx_run_begin_note(struct mx_run *r);  /* of a new run */
void mx_run_renew_note(struct mx_run *r); /* what a resumed run may have changed */
int mx_run_write_note(struct mx_run *r);  /* the commit itself; gives no sentence */
int mx_run_turn_note(struct mx_run *r);   /* makes the note of a store of a new cut (recut.h) */
/* -ENAMETOOLONG: a store cannot hold the paths of a new run's files. Call it before anything is touched. */
int mx_run_check_note(struct mx_run *r);

/* Turns on the checking of a Buffer of C, with the saved hashes or without any. */
int mx_run_check_fixed(struct mx_run *r, mx_buffer *buffer, int32_t field, bool saved);
int mx_run_no_hashes(struct mx_run *r, const char *buffer, int err); /* remarks that they are missing */
int mx_run_save_hashes(struct mx_run *r, mx_buffer *buffer);
int mx_run_save_fixed_hashes(struct mx_run *r); /* of C, with the first commit */

/* Commits a state. time: steps since this process began or resumed the run. Called on a thread of the
 * executor. It gives no sentence: mx_run_fail_commit does. */
int mx_run_commit(void *run, int64_t time, int32_t buffer);
/* Commits a state that was changed between steps, in place of the state from which the run resumes. */
int mx_run_commit_edit(struct mx_run *r, int32_t buffer);
int mx_run_fail_commit(struct mx_run *r, const char *which, int err);
/* For ranks of a resumed run: brings all stores to the state that they have in common. */
int mx_run_settle_state(struct mx_run *r);

/* ---- fixed.c */

/* Writes a field of C to one of its Buffers; `from` has everything except the layout. */
int mx_run_write_fixed(struct mx_run *r, int32_t field, mx_buffer *to, struct mx_fields_fill *from);
/* Writes all fields of C that the run has a copy of. */
int mx_run_write_all_fixed(struct mx_run *r);

/* ---- initial.c, former.c */

/* Returns bits of the Buffers that need the frame before a resumed run continues: those without it, if the
 * algorithm never writes it. */
uint32_t mx_run_unframed(const struct mx_run *r);
/* Reads the state and the fields of C into the new Buffers, for a run that is resumed with another number of
 * ranks. */
int mx_run_read_former(struct mx_run *r);

/* ---- edit.c: changes the state before the run resumes from it (memext.h, mx_edit) */

/* Returns the Buffer that gets the changed state. */
int32_t mx_run_edit_target(const struct mx_run *r);
/* Return the bytes that this moves, besides commits. */
int64_t mx_run_edit_read_bytes(const struct mx_run *r);
int64_t mx_run_edit_write_bytes(const struct mx_run *r);
/* -ENOMEM with a sentence if it needs more DRAM than the run has. Call it before anything is touched. */
int mx_run_check_edit_dram(struct mx_run *r);
/* Makes one pass over the state and commits it. Call it before the frames of the other Buffers are made. */
int mx_run_edit_state(struct mx_run *r);

/* ---- compute.c, timeline.c */

/* Is there anything to do with rows after a level: sources, traces, norms, sides? */
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
/* Adds up what the devices of the Buffers and of the files moved. Times are those of the slowest one. */
void mx_run_counters(const struct mx_run *r, struct mx_counters *out);

/* ---- planes.c */

/* Fills a new Buffer plane by plane, with progress. */
int mx_run_pass(struct mx_run *r, const char *label, mx_buffer *buffer, const struct mx_layout *layout,
                mx_source_fn *source, void *context);
/* Makes a pass over a Buffer of the state, which is filled (write) or read. */
int mx_run_pass_grid(struct mx_run *r, const char *label, mx_buffer *buffer, bool write, mx_source_fn *use,
                     void *context);
/* Makes the box of a plane for a sink. false = the sink gets nothing of this plane, since it wants no frame.
 */
bool mx_run_box_out(const struct mx_run *r, enum mx_dtype dtype, int64_t z, char *plane,
                    struct mx_grid_box *box);
/* With several ranks and a periodic z no rank has the frame in z, since it is another rank's interior. The
 * rank with a plane that this frame copies gives the plane to the output once more, this many planes further.
 * 0 = plane z has no copy. */
int64_t mx_run_frame_shift(const struct mx_run *r, int64_t z);
int mx_run_give_planes(struct mx_run *r, const struct mx_sink *sink, int64_t z, struct mx_grid_box *box);
/* Makes a pass over all planes of a Buffer, with progress in bytes. `use` is called for each plane, and fills
 * it (write) or reads it. */
int mx_run_pass_layout(struct mx_run *r, const char *label, mx_buffer *buffer, const struct mx_layout *layout,
                       bool write, mx_source_fn *use, void *context);

/* ---- the initial grid */

/* Fills one plane of the initial grid, with the source's frame or one that is made. context: the run. */
int mx_plain_plane(void *run, int64_t z, char *plane);
/* Planes of fields: array A (0), B (1), or MX_FIELD_OF_C and its number. */
struct mx_fields_fill mx_run_fill(struct mx_run *r, int32_t array, int32_t index,
                                  const struct mx_layout *layout);

/* Fills planes with the frames of the run's sides. z is this rank's plane; `fill` gets planes of the whole
 * grid. */
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

/* Are left_bytes enough for --verify with this plan? All ranks call it together. */
int mx_run_check_verify(struct mx_run *r, uint64_t left_bytes);
/* Verifies the result; all ranks call it together. Returns 0 also if the result differs, which the report
 * says. */
int mx_run_verify(struct mx_run *r);

#endif
