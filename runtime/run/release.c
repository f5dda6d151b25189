/* SPDX-License-Identifier: BSD-3-Clause */
/* release.c - what a run leaves behind, however it ends. */
#include "core/device.h"
#include "run/run.h"
#include "run/state.h"

#include <stdlib.h>
#include <unistd.h>

/* Closes what is still open if the run did not end well: the sink learns that there is no result. */
void mx_run_close_ends(struct mx_run *r) {
    if (r->source_open && r->source.close != NULL) r->source.close(r->source.context);
    if (r->sink_open && r->sink.close != NULL) r->sink.close(r->sink.context, false, NULL);
    r->source_open = r->sink_open = false;
    for (int32_t i = 0; i < r->fields.n; i++) {
        struct mx_field_sink *s = &r->field_sink[i];
        if (s->open) s->sink.close(s->sink.context, false, NULL);
        s->open = false;
    }
}

void mx_run_abandon(struct mx_run *r) {
    mx_output_drop(&r->output.output);
    for (int32_t i = 0; i < r->fields.n; i++)
        if (r->field_sink[i].open) mx_output_drop(&r->field_sink[i].file.output);
    mx_output_drop(&r->outputs.trace);
    mx_output_drop(&r->outputs.timeline);
    mx_parts_abandon(r);
    if (r->device != NULL) mx_device_abandon(r->device);
}

static void clean(struct mx_run *r) {
    mx_run_abandon(r);
    mx_run_close_former(r);
    mx_run_leave_folders(r);
}

void mx_run_release(struct mx_run *r) {
    mx_run_leave_ranks(r, clean);
    if (r->schedule != NULL) r->schedule->ops->close(r->schedule);
    if (r->engine != NULL) r->ops->free(r->engine);
    mx_run_release_fuse(r);
    mx_run_close_ranks(r);
    mx_accel_close(r->accel);
    for (int i = 0; i < MX_BUFFERS; i++) {
        mx_buffer_close(r->buffer[i]);
        mx_buffer_close(r->partner[i]);
    }
    for (int i = 0; i < MX_MAX_FIXED; i++) {
        mx_buffer_close(r->fixed[i]);
        mx_buffer_close(r->edit.buffer[i]);
    }
    mx_buffer_close(r->seams);
    mx_parts_close(r);
    for (int i = 0; i < MX_MAX_FIXED; i++) mx_device_close(r->file[i]);
    mx_fields_close(&r->fields);
    if (r->edit.files != NULL) mx_fields_close(r->edit.files);
    free(r->edit.files);
    free(r->superseded);
    mx_kernel_close(r->system);
    mx_device_close(r->device);
    mx_run_close_former(r);
    mx_run_leave_folders(r);
    mx_budget_free(r->budget);
    mx_output_drop(&r->outputs.timeline);
    mx_output_drop(&r->outputs.trace);
}
