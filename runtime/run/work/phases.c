/* SPDX-License-Identifier: BSD-3-Clause */
/* phases.c - a run with its store open, phase by phase. */
#include "run/work/work.h"

#include <string.h>

/* As soon as it is known whether it is finite: with the last sweep, or else when its checksum was taken. */
static int commit_counted(struct mx_run *r) {
    r->finite.committed = mx_run_is_counted(r);
    return r->finite.committed ? mx_run_commit_result(r) : 0;
}
static int commit_uncounted(struct mx_run *r) { return r->finite.committed ? 0 : mx_run_commit_result(r); }

/* A result that was computed from a file that has changed is not valid. */
static int check_files(struct mx_run *r) { return mx_run_field_files_unchanged(r, &r->why); }

/* Whatever failed: if a file changed, that is why, or reason enough. */
static int explain(struct mx_run *r, int err) {
    mx_why why = {""};
    if (err == 0 || err == -EINTR || mx_run_field_files_unchanged(r, &why) != -ESTALE) return err;
    r->why = why;
    return -ESTALE;
}

/* One phase of the report: how long it takes, and what it moves. */
static int timed(struct mx_run *r, enum mx_report_phases phase, int (*work)(struct mx_run *)) {
    struct mx_report_phase *p = &r->report.phase[phase];
    const uint64_t begin = mx_clock_ns(), hashed = r->hashed_bytes;
    struct mx_counters before, after;
    mx_run_counters(r, &before);
    const int err = work(r);
    mx_run_counters(r, &after);
    p->seconds += mx_seconds_since(begin);
    p->read_bytes += (int64_t)(after.read_bytes - before.read_bytes);
    p->write_bytes += (int64_t)(after.write_bytes - before.write_bytes - (r->hashed_bytes - hashed));
    return err;
}

int mx_run_work(struct mx_run *r) {
    static const struct {
        enum mx_report_phases phase;
        int (*work)(struct mx_run *);
    } steps[] = {{MX_PHASE_INIT, mx_run_initialise},        {MX_PHASE_PREPARE, mx_run_make_engine},
                 {MX_PHASE_STENCIL, mx_run_compute},        {MX_PHASE_FINISH, check_files},
                 {MX_PHASE_FINISH, commit_counted},         {MX_PHASE_OUTPUT, mx_run_end_fuse},
                 {MX_PHASE_CHECKSUM, mx_run_take_checksum}, {MX_PHASE_FINISH, commit_uncounted}};
    int err = 0;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && err == 0; i++) {
        err = mx_run_stopped(r);
        if (err == 0) err = timed(r, steps[i].phase, steps[i].work);
    }
    if (err == 0 && r->o.verify) err = timed(r, MX_PHASE_VERIFY, mx_run_verify);
    err = explain(r, mx_run_why_ended(r, err));
    if (mx_run_is_nonfinite(r, err)) mx_run_say_nonfinite(r);
    if (err == 0) err = mx_run_stopped(r);
    if (err == 0) err = timed(r, MX_PHASE_OUTPUT, mx_run_hand_over_result);
    r->report.phase[MX_PHASE_OUTPUT].write_bytes += r->fuse.written_bytes;
    mx_run_drop_fuse(r);
    if (err == 0) err = timed(r, MX_PHASE_FINISH, mx_parts_finish);
    mx_parts_report(r);
    if (err == 0) err = mx_run_end_together(r);
    if (err == 0) err = timed(r, MX_PHASE_FINISH, mx_run_finish);
    if (err == 0 && r->unobserved.err < 0 && r->report.verified != 0)
        r->why = r->unobserved.why, err = r->unobserved.err;
    return err;
}
