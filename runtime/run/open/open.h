/* SPDX-License-Identifier: BSD-3-Clause */
/* open.h - a run before anything is touched, up to its open store. All: 0 or -errno with r->why. */
#ifndef MX_RUN_OPEN_H
#define MX_RUN_OPEN_H

#include "run/open/request.h"
#include "run/work/work.h"

/* From options to a run that may begin: names, request, plan, outputs, store. Of a dry run up to the room
 * that it would take. */
int mx_run_make_ready(struct mx_run *r);
/* Place, source, machine, limits; on --resume the store's note. */
int mx_run_request(struct mx_run *r);

/* ---- names.c */

/* No output may be the input, the store, or another output: before any is opened. */
int mx_run_check_names(struct mx_run *r);
/* Of --resume, before --json is opened: a run that is refused leaves its report, but not where the files of
 * the stored run are. */
int mx_run_check_stored_names(struct mx_run *r);

/* ---- inputs.c */

int mx_run_open_source(struct mx_run *r);
/* The grid that the run began with is needed again by --verify alone. */
int mx_run_open_former_source(struct mx_run *r);
/* Files first: extents may follow from them. former: they have to be what they were. */
int mx_run_open_fields(struct mx_run *r, bool former);
int mx_run_take_fields(struct mx_run *r);  /* of a new run of a system */
int mx_run_take_sinks(struct mx_run *r);   /* where the fields of a system go */
int mx_run_take_sides(struct mx_run *r);   /* --side, or the store's; r->o.problem has them then */
int mx_run_check_frames(struct mx_run *r); /* do --frame and they agree? */
/* What the run has besides, as it is asked for or as the store has it (parts.h). */
int mx_run_ask_parts(struct mx_run *r);

/* ---- field_files.c */

/* Which files of C are read in place, or copied, with a remark where that was not asked for; opens them.
 * After the request's files, before the plan. */
int mx_run_take_field_files(struct mx_run *r);

/* ---- place.c */

int mx_run_take_limits(struct mx_run *r); /* Sm and Km of the run */
int mx_run_take_place(struct mx_run *r);  /* its backend, and where that works */
int mx_run_take_accel(struct mx_run *r);
/* What changes nothing, or nothing for the better, is told, and the run goes on. */
void mx_run_say_useless(struct mx_run *r);
void mx_run_say_planned(struct mx_run *r);
uint64_t mx_run_stored_bytes(const struct mx_run *r);
/* -EINVAL: a store has no room for so many. */
int mx_run_check_extents(struct mx_run *r);
/* Of a dry run: would mx_run_open_outputs and mx_run_open_store refuse? Opens nothing. tune only says so,
 * unless there is no room. */
int mx_run_ask_place(struct mx_run *r);

/* ---- supersede.c */

/* What the store in the place holds, where the run begins with that. */
int mx_run_take_superseded(struct mx_run *r);
/* Is it on the locked device what it was? Says which of its Buffers hold its state. */
int mx_run_keep_superseded(struct mx_run *r);
/* As mx_run_stored_bytes: with the Buffers of both, as they lie. */
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
/* Plan and predictions, without or (after the store) with the device's own facts. */
int mx_run_plan(struct mx_run *r);
/* Of its store, which has room for MX_STORE_EXTENTS: so many Buffers, copied fields, a side file, hashes. */
int32_t mx_run_arrays(const struct mx_run *r, int32_t n_buffers);
/* Of its read-only fields those that are copied into the store. */
int32_t mx_run_copied_fields(const struct mx_run *r);
void mx_run_predict_plan(struct mx_run *r);
void mx_run_predict_commits(struct mx_run *r);
void mx_run_predict_phases(struct mx_run *r);

/* ---- sinks.c, buffers.c */

int mx_run_open_outputs(struct mx_run *r); /* sink, timeline, trace */
int mx_run_ask_outputs(struct mx_run *r);  /* would it refuse? Opens nothing */
int mx_run_open_store(struct mx_run *r);   /* device, budget, Buffers */

#endif
