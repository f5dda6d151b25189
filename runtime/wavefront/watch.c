/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.c - what others see of a run of the wavefront while it goes on. */
#include "wavefront/run_private.h"

void mx_wf_on_progress(void *context, int64_t done) {
    mx_wf_run *r = context;
    if (r->caller.progress != NULL) r->caller.progress(r->caller.context, r->label, r->unit, done, r->total);
    mx_timeline_updates(r->timeline, done);
}

void mx_wf_begin_phase(mx_wf_run *r, const char *label, const char *unit, int64_t total) {
    r->label = label;
    r->unit = unit;
    r->total = total;
    r->bytes_done = 0;
    mx_wf_on_progress(r, 0);
}

void mx_wf_on_bytes(mx_wf_run *r, int64_t more) { mx_wf_on_progress(r, r->bytes_done += more); }
