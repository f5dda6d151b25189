/* SPDX-License-Identifier: BSD-3-Clause */
/* commit.c - when a state is durable, and when it is the result. */
#include "run/work/work.h"

#include "core/device.h"

#include <string.h>

static void count_edit(struct mx_run *r) {
    struct mx_note *n = &r->note;
    n->edits_there = n->edits > 0 && n->edited == n->time ? n->edits_there + 1 : 1;
    n->edits++;
    n->edited = n->time;
    n->second ^= r->edit.fixed;
}

static int commit(struct mx_run *r, int64_t time, int32_t buffer, bool edited) {
    int err = mx_run_agree_finite(r, MX_CHANNEL_COMMIT, r->first_time + time);
    if (err == 0) err = mx_run_field_files_unchanged(r, NULL);
    if (err == 0 && r->note.integrity_unit > 0) err = mx_run_save_hashes(r, r->buffer[buffer]);
    if (err == 0 && r->note.integrity_unit > 0 && r->tuned.shape.pairs)
        err = mx_run_save_hashes(r, r->partner[buffer]);
    if (err == 0 && r->note.integrity_unit > 0) err = mx_run_save_fixed_hashes(r);
    if (err == 0) err = mx_parts_prepare(r, r->first_time + time);
    if (err < 0) return err;
    struct mx_note *n = &r->note;
    const int64_t former = n->time, former_edits = n->edits, former_edited = n->edited;
    mx_note_step_on(n);
    n->time = r->first_time + time;
    n->buffer = buffer;
    if (edited) count_edit(r);
    /* Another state than the one that a former run ended with: finish() gives this one's. */
    if (edited || n->time != former) n->checksum[0] = 0;
    if (r->tuned.shape.in_place) mx_note_step_on(n);
    mx_parts_note(r);
    n->pending = r->fuse.source && n->time == 0;
    if (r->tuned.shape.in_place && !r->tuned.shape.init_both) n->framed = 0; /* it goes over all */
    if (!n->pending) n->framed |= UINT32_C(1) << buffer;
    err = mx_run_write_note(r);
    if (err == 0) r->fuse.unfinished = r->note.pending;
    /* What was committed before may be overwritten when no rank can need it any more. */
    if (err == 0) err = mx_run_meet_to_commit(r);
    if (err == 0) mx_run_committed(r);
    /* Which is what there is to go on from. */
    if (err < 0)
        n->time = former, n->edits = former_edits, n->edited = former_edited, n->second = n->before_second;
    r->recut.turned |= err == 0;
    return err;
}

/* time: steps since the beginning of this process's part of the run. Called on a thread of the executor. */
int mx_run_commit(void *run, int64_t time, int32_t buffer) { return commit(run, time, buffer, false); }

int mx_run_commit_edit(struct mx_run *r, int32_t buffer) { return commit(r, 0, buffer, true); }

int mx_run_fail_commit(struct mx_run *r, const char *which, int err) {
    mx_why reason = {""};
    mx_device_error(r->device, &reason);
    return mx_fail(&r->why, err, "the %s commit on %.300s failed: %s", which, r->report.device.place,
                   reason.text[0] != 0 ? reason.text : strerror(-err));
}

/* --integrity that begins with this run has no hashes of the state that it goes on from, and a rank may have
 * to come back to it once the notes have that there are hashes: a table is kept in which none is known. */
static int save_no_hashes(struct mx_run *r) {
    const int32_t buffer = r->note.buffer;
    if (!r->plain || r->note.integrity_unit == 0) return 0;
    int err = mx_run_save_hashes(r, r->buffer[buffer]);
    if (err == 0 && r->tuned.shape.pairs) err = mx_run_save_hashes(r, r->partner[buffer]);
    if (err == 0) err = mx_run_save_fixed_hashes(r);
    r->fixed_saved = false; /* those of C are not known yet either: the next commit saves them again */
    return err < 0 ? mx_run_fail_commit(r, "first", err) : 0;
}

static int write_first_note(struct mx_run *r) {
    const int err = mx_run_write_note(r);
    return err < 0 ? mx_run_fail_commit(r, "first", err) : 0;
}

int mx_run_settle_state(struct mx_run *r) { return mx_run_settle(r, save_no_hashes, write_first_note); }

/* Where nothing is committed parts have no other moment: snapshots of ranks get their names now. */
static int publish_result(struct mx_run *r) {
    const int err = mx_parts_prepare(r, r->report.steps_done);
    if (err == 0) return 0;
    const char *why = mx_parts_failed(r);
    if (why != NULL) return mx_fail(&r->why, err, "%s", why);
    return mx_fail(&r->why, err, "the other files of the run (snapshots, traces) could not be completed: %s",
                   strerror(-err));
}

/* The Buffers of an algorithm in place hold a state again: from here on it can be exported, verified and
 * published like any other. */
int mx_run_commit_result(struct mx_run *r) {
    const int odd = mx_run_settle_finite(r);
    if (odd < 0) return odd;
    if (!r->report.device.durable) return publish_result(r);
    if (mx_run_resumable(r)) return 0;
    int err = mx_run_commit(r, r->report.steps_done - r->first_time, r->result);
    return err < 0 ? mx_run_fail_commit(r, "last", err) : 0;
}

/* What stays of a finished run tells its checksum; a result that differs is neither resumed nor exported. */
int mx_run_finish(struct mx_run *r) {
    bool file = r->o.path != NULL && strcmp(r->o.path, r->report.device.place) == 0;
    int err = 0;
    if (!r->report.device.durable) return 0;
    r->note.different = r->report.verified == 0;
    memcpy(r->note.checksum, r->report.checksum, sizeof r->note.checksum);
    if (r->o.keep || file || r->note.different) err = mx_run_write_note(r);
    if (err == 0 && !r->note.different) err = mx_device_finish(r->device);
    return err < 0 ? mx_run_fail_commit(r, "last", err) : 0;
}
