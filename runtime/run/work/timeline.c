/* SPDX-License-Identifier: BSD-3-Clause */
/* timeline.c - the timeline and the trace of a run. */
#include "run/work/work.h"

#include <stdio.h>
#include <string.h>

static const char *event_name(const struct mx_event *e) {
    static const char *const names[] = {"load", "store", "copy", "advance", "commit"};
    static const char *const seam_names[] = {"load-faces", "store-faces"};
    if (e->waiting) return "wait";
    if (e->sweep) return "sweep";
    if (e->file) return e->kind == MX_STEP_LOAD ? "feed" : "take";
    return e->seams ? seam_names[e->kind] : names[e->kind];
}

void mx_run_on_event(void *context, const struct mx_event *e) {
    const struct mx_run *r = context;
    mx_timeline_event(r->timeline, event_name(e), e->begin_ns, e->end_ns,
                      (int64_t[2]){e->region.y0, e->region.y1}, (int64_t[2]){e->region.z0, e->region.z1},
                      e->amount);
}

static int open_stream(struct mx_run *r, const struct mx_output *output, FILE **out) {
    *out = output->fd >= 0 ? mx_output_stream(output) : NULL;
    if (output->fd < 0 || *out != NULL) return 0;
    return mx_fail(&r->why, -errno, "%.300s cannot be written: %s", output->path, strerror(errno));
}

int mx_run_start_timeline(struct mx_run *r) {
    const struct mx_report *p = &r->report;
    FILE *of_rank[2];
    int err = mx_run_begin_observed(r, of_rank);
    if (err < 0) return err;
    if (r->outputs.timeline.fd < 0 && r->outputs.trace.fd < 0 && of_rank[0] == NULL && of_rank[1] == NULL)
        return 0;
    mx_output_show(&r->outputs.timeline);
    err = open_stream(r, &r->outputs.timeline, &r->streams[0]);
    if (err == 0) err = open_stream(r, &r->outputs.trace, &r->streams[1]);
    for (int i = 0; i < 2 && err < 0; i++)
        if (of_rank[i] != NULL) fclose(of_rank[i]);
    if (err < 0) return err;
    for (int i = 0; i < 2; i++)
        if (of_rank[i] != NULL) r->streams[i] = of_rank[i];
    struct mx_timeline_options t = {.file = r->streams[0],
                                    .trace = r->streams[1],
                                    .problem = &r->o.problem,
                                    .plan = &p->plan,
                                    .device = r->device,
                                    .files = r->file,
                                    .n_files = MX_MAX_FIXED,
                                    .place = r->backend->anonymous ? "" : p->device.place,
                                    .n_buffers = r->n_buffers};
    mx_run_number(r, &t.rank, &t.ranks);
    for (int32_t i = 0; i < r->n_buffers; i++) {
        t.names[i] = mx_note_buffers[i];
        t.buffer_bytes[i] = (uint64_t)p->layout.buffer_bytes;
        t.buffer_offset_bytes[i] = mx_buffer_offset(r->buffer[i]);
        /* What is resident by its backend's word needs no looking at. */
        if (r->backend->anonymous && !r->resident) mx_buffer_map(r->buffer[i], NULL, &t.mapped[i]);
    }
    return mx_timeline_start(&t, &r->why, &r->timeline);
}

/* Streams are closed by the timeline. What was seen of a run that failed is published too. */
int mx_run_stop_timeline(struct mx_run *r, int err) {
    mx_why why = {""};
    int observed = mx_timeline_stop(r->timeline, &why);
    r->timeline = NULL;
    if (observed == 0 && err == 0) observed = mx_run_join_observed(r, &why);
    if (observed == 0 && r->outputs.timeline.fd >= 0)
        observed = mx_output_publish(&r->outputs.timeline, "the timeline", &why);
    if (observed == 0 && r->outputs.trace.fd >= 0)
        observed = mx_output_publish(&r->outputs.trace, "the trace", &why);
    if (err < 0 || observed == 0) return err;
    /* A run whose store can be resumed ends here, and loses nothing. */
    if (mx_run_alone(r) && !(mx_run_resumable(r) && r->report.device.durable && !r->fuse.output))
        return r->unobserved.err = observed, r->unobserved.why = why, 0;
    r->why = why;
    return observed;
}
