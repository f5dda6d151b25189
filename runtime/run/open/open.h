/* SPDX-License-Identifier: BSD-3-Clause */
/* open.h - the beginning of a run, from options to an open store. Functions that return int return 0 or
 * -errno with r->why. */
#ifndef MX_RUN_OPEN_H
#define MX_RUN_OPEN_H

#include "run/open/request.h"
#include "run/work/work.h"

/* Makes a run ready: names, request, plan, outputs, store. A dry run stops before it opens anything, once the
 * space that it needs was checked. */
int mx_run_make_ready(struct mx_run *r);
/* Finds place, source, machine and limits; with --resume reads the store's note. */
int mx_run_request(struct mx_run *r);

/* ---- names.c */

/* Checks, before any file is opened, that no output is the input, the store, or another output. */
int mx_run_check_names(struct mx_run *r);
/* With --resume, before --json is opened: a run that is refused writes its report, but not over files of the
 * stored run. */
int mx_run_check_stored_names(struct mx_run *r);

/* ---- inputs.c */

int mx_run_open_source(struct mx_run *r);
/* Opens the source of the stored run, which only --verify needs again. */
int mx_run_open_former_source(struct mx_run *r);
/* Opens the files of fields first, since extents may come from them. former: they must not have changed. */
int mx_run_open_fields(struct mx_run *r, bool former);
int mx_run_take_fields(struct mx_run *r);  /* of a new run of a system */
int mx_run_take_sinks(struct mx_run *r);   /* where the fields of a system go */
int mx_run_take_sides(struct mx_run *r);   /* --side, or the store's; r->o.problem has them then */
int mx_run_check_frames(struct mx_run *r); /* do --frame and they agree? */
/* Takes the parts of the run, as the options or the store ask for them (parts.h). */
int mx_run_ask_parts(struct mx_run *r);

/* ---- field_files.c */

/* Decides which files of C are read in place and which are copied, with a remark if the user did not ask for
 * a copy, and opens them. Call it after the request's files, and before the plan. */
int mx_run_take_field_files(struct mx_run *r);

/* ---- place.c */

int mx_run_take_limits(struct mx_run *r); /* Sm and Km of the run */
int mx_run_take_place(struct mx_run *r);  /* its backend, and where that works */
int mx_run_take_accel(struct mx_run *r);
/* Say which options have no effect, or make nothing better. The run continues. */
void mx_run_say_useless(struct mx_run *r);
void mx_run_say_planned(struct mx_run *r);
uint64_t mx_run_stored_bytes(const struct mx_run *r);
/* -EINVAL: a store cannot have that many Buffers. */
int mx_run_check_extents(struct mx_run *r);
/* For a dry run: says whether mx_run_open_outputs and mx_run_open_store would fail. Opens nothing. memext
 * tune only remarks on it, unless there is no space. */
int mx_run_ask_place(struct mx_run *r);

/* ---- supersede.c */

/* Reads the store in the place, if the run begins with its state. */
int mx_run_take_superseded(struct mx_run *r);
/* Checks, on the locked device, that this store has not changed; finds which of its Buffers hold its state.
 */
int mx_run_keep_superseded(struct mx_run *r);
/* Returns the bytes like mx_run_stored_bytes, with the Buffers of both stores. */
uint64_t mx_run_superseding_bytes(const struct mx_run *r);

/* ---- resume.c */

int mx_run_take_store(struct mx_run *r);    /* what the store says, in r->note and the options */
int mx_run_read_profiles(struct mx_run *r); /* field_files.c: into DRAM */
int mx_run_check_edits(struct mx_run *r);   /* are there steps that they change? */
int mx_run_take_edits(struct mx_run *r);    /* edits.c: parameters that were or are changed between steps */
/* edit_files.c: opens the files of --edit-input; -ENOTSUP where --verify would not know of changes. */
int mx_run_take_edit_files(struct mx_run *r);
int mx_run_check_verify_edits(struct mx_run *r);
int mx_run_compare_store(struct mx_run *r); /* is the store's problem the one asked for? */

/* ---- plan.c, predict.c */

bool mx_run_has_hashes(const struct mx_run *r);
/* Makes the plan and predictions, without the device's facts or (after the store was opened) with them. */
int mx_run_plan(struct mx_run *r);
/* Returns how many Buffers the store has, at most MX_STORE_EXTENTS: n_buffers of the state, copied fields, a
 * side file, hashes. */
int32_t mx_run_arrays(const struct mx_run *r, int32_t n_buffers);
/* Returns how many read-only fields are copied into the store. */
int32_t mx_run_copied_fields(const struct mx_run *r);
void mx_run_predict_plan(struct mx_run *r);
void mx_run_predict_commits(struct mx_run *r);
void mx_run_predict_phases(struct mx_run *r);

/* ---- sinks.c, buffers.c */

int mx_run_open_outputs(struct mx_run *r); /* sink, timeline, trace */
int mx_run_ask_outputs(struct mx_run *r);  /* would it refuse? Opens nothing */
int mx_run_open_store(struct mx_run *r);   /* device, budget, Buffers */

#endif
