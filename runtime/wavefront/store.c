/* SPDX-License-Identifier: BSD-3-Clause */
/* store.c - the store of a wavefront run: its device, its Buffers, and what is committed. */
#include "wavefront/run_private.h"

#include "ask/device.h"
#include "core/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ------------------------------------------------------------------ device */

static struct mx_device_options device_options(const mx_wf_run *r) {
    const struct mx_options *o = &r->o;
    struct mx_device_options d = mx_asked_device(o, o->path);
    d.expect_bytes = r->resumed ? 0 : (uint64_t)mx_wf_all_bytes(mx_wf_geometry_of(r));
    d.force = o->force;
    d.resume = o->resume;
    d.read_only = r->exports;
    d.keep = o->keep;
    d.no_lock = o->no_lock;
    return d;
}

int mx_wf_ask_place(mx_wf_run *r) {
    if (!r->planned || (!r->backend->anonymous && r->o.path == NULL)) return 0;
    const struct mx_device_options d = device_options(r);
    return mx_device_ask(&d, false, &r->why);
}

/* What the run begins with may lie in the store that it would replace. */
static int check_inputs(mx_wf_run *r) {
    struct stat st;
    for (int m = 0; m < MX_WF_MATRICES; m++)
        if (r->inputs[m] != NULL && stat(r->inputs[m], &st) == 0 && mx_device_is(r->device, &st))
            return mx_fail(&r->why, -EINVAL,
                           "--input %s: %.300s lies in the store that this run would replace; name another "
                           "place with -d",
                           mx_wf_names[m], r->inputs[m]);
    return 0;
}

/* The store is locked now: is it still the one that was looked at? */
static int check_note(mx_wf_run *r) {
    char text[MX_NOTE_BYTES + 1];
    struct mx_wf_note *now = malloc(sizeof *now);
    int64_t n = mx_device_note(r->device, text, sizeof text);
    int err = now == NULL ? -ENOMEM : n > 0 ? mx_wf_note_parse(text, (size_t)n, NULL, now) : -EBUSY;
    const bool same = err == 0 && now->done == r->note.done && now->buffer == r->note.buffer &&
                      now->started_s == r->note.started_s && now->iterations == r->note.iterations;
    free(now);
    if (!same)
        return mx_fail(&r->why, -EBUSY, "another memext changed %.300s a moment ago: start again",
                       r->report.device.place);
    const uint32_t ours = r->note.geometry.align_bytes, need = r->report.device.offset_align_bytes;
    if (ours % need == 0) return 0;
    return mx_fail(&r->why, -EINVAL,
                   "the tiles in %.300s begin at multiples of %u bytes, and backend %s transfers multiples "
                   "of %u bytes: choose --backend mmap",
                   r->report.device.place, ours, r->report.device.backend, need);
}

static int open_buffer(mx_wf_run *r, const char *name, int64_t bytes, mx_buffer **out) {
    if (!r->resumed) return mx_buffer_create(r->device, name, (uint64_t)bytes, &r->why, out);
    int err = mx_buffer_open(r->device, name, &r->why, out);
    if (err == 0 && mx_buffer_bytes(*out) < (uint64_t)bytes)
        err = mx_fail(&r->why, -EIO,
                      "the store is damaged: the Buffer \"%s\" of %.300s is shorter than the description of "
                      "the store (note) says",
                      name, r->report.device.place);
    return err;
}

/* Either Buffer of the data is large enough for the scratch of a comparison. */
static int open_buffers(mx_wf_run *r) {
    const struct mx_wf_geometry *g = mx_wf_geometry_of(r);
    const int64_t scratch = mx_wf_scratch_bytes(g->rows, g->cols, g->align_bytes);
    int64_t data = mx_wf_buffer_bytes(g, MX_WF_ZA);
    if (data < scratch) data = scratch;
    int err = 0;
    for (int i = 0; i < 2 && err == 0; i++) err = open_buffer(r, mx_wf_data[i], data, &r->data[i]);
    for (int m = MX_WF_ZR; m < MX_WF_MATRICES && err == 0; m++)
        err = open_buffer(r, mx_wf_names[m], mx_wf_buffer_bytes(g, (enum mx_wf_matrix)m), &r->fixed[m]);
    return err;
}

int mx_wf_open_store(mx_wf_run *r) {
    struct mx_report *p = &r->report;
    const struct mx_device_options d = device_options(r);
    int err = mx_device_open_waiting(&d, &r->why, &r->device);
    if (err < 0) return err;
    mx_device_facts(r->device, &p->device);
    err = r->resumed ? check_note(r) : check_inputs(r);
    /* The device's alignment may be another one than it looked from outside. */
    if (err == 0 && mx_wf_alignment(r) != r->request.align_bytes) err = mx_wf_make_plan(r);
    if (err == 0) err = mx_wf_make_budget(r);
    return err < 0 ? err : open_buffers(r);
}

/* ------------------------------------------------------------------ commits */

static int write_note(mx_wf_run *r) {
    char text[MX_NOTE_BYTES];
    r->note.committed_s = (int64_t)time(NULL);
    int n = mx_wf_note_print(&r->note, text, sizeof text);
    if (n < 0)
        return mx_fail(&r->why, n,
                       "the paths of the inputs are longer than the store can hold: use shorter paths");
    int err = mx_device_commit(r->device, text, (size_t)n);
    mx_why reason = {""};
    if (err < 0) {
        mx_device_error(r->device, &reason);
        mx_fail(&r->why, err, "the commit on %.200s failed: %.250s", r->report.device.place,
                reason.text[0] != 0 ? reason.text : strerror(-err));
    }
    return err;
}

int mx_wf_commit(void *context, int64_t done, int32_t buffer) {
    mx_wf_run *r = context;
    r->note.done = r->first + done;
    r->note.buffer = buffer;
    int err = write_note(r);
    if (err == 0) r->committed = true;
    return err;
}

int mx_wf_begin_note(mx_wf_run *r) {
    struct mx_wf_note *n = &r->note;
    n->geometry = *mx_wf_geometry_of(r);
    n->iterations = r->o.wavefront.iterations;
    n->started_s = (int64_t)time(NULL);
    snprintf(n->init, sizeof n->init, "%s", r->source.init->name);
    int err = 0;
    for (int m = 0; m < MX_WF_MATRICES && err == 0; m++) {
        const struct mx_npy *f = &r->source.files[m];
        if (r->inputs[m] == NULL) continue;
        if (realpath(r->inputs[m], n->inputs[m].path) == NULL)
            return mx_fail(&r->why, -errno, "%.300s cannot be named in the store: %s", r->inputs[m],
                           strerror(errno));
        err = mx_input_look(f->fd, f->data_offset_bytes, r->inputs[m], &r->why, &n->inputs[m].identity);
    }
    return err;
}

/* A result that differs is not resumed. */
int mx_wf_finish(mx_wf_run *r) {
    const bool file = r->o.path != NULL && strcmp(r->o.path, r->report.device.place) == 0;
    int err = 0;
    if (!r->report.device.durable) return 0;
    r->note.different = r->report.verified == 0;
    memcpy(r->note.checksum, r->report.checksum, sizeof r->note.checksum);
    if (r->o.keep || file || r->note.different) err = write_note(r);
    if (err == 0 && !r->note.different) err = mx_device_finish(r->device);
    if (err < 0 && r->why.text[0] == 0)
        mx_fail(&r->why, err, "the store cannot be finished: %s", strerror(-err));
    return err;
}
