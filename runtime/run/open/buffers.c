/* SPDX-License-Identifier: BSD-3-Clause */
/* buffers.c - the store of a run: its device and its Buffers. */
#include "run/open/open.h"

#include "core/device.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

static int open_device(struct mx_run *r) {
    const struct mx_options *o = &r->o;
    struct mx_device_options d = mx_run_device_options(r, o->path);
    d.expect_bytes = mx_run_has_store(r) ? 0 : mx_run_stored_bytes(r);
    d.force = o->force || r->recut.left;
    d.resume = mx_run_has_store(r);
    d.keep = o->keep;
    d.no_lock = o->no_lock;
    int err =
        (r->superseded != NULL ? mx_device_open_beside : mx_device_open_waiting)(&d, &r->why, &r->device);
    if (err == 0) mx_device_facts(r->device, &r->report.device);
    /* Also of a quiet run: nobody's result goes without a word. */
    if (err == 0 && strstr(r->report.device.note, "finished run") != NULL)
        mx_run_remark(r, "%s: %s", r->report.device.place, r->report.device.note);
    return err;
}

/* What the run begins with may lie in the store that it would replace. */
static int check_inputs(struct mx_run *r) {
    struct stat st;
    for (int32_t i = -1; i < r->fields.n; i++) {
        const int fd = i < 0 ? r->input.npy.fd : r->fields.field[i].npy.fd;
        const char *path = i < 0 ? r->o.input : r->fields.field[i].path;
        if (fd >= 0 && fstat(fd, &st) == 0 && mx_device_is(r->device, &st))
            return mx_fail(&r->why, -EINVAL,
                           "%.300s lies in the store that this run would replace: copy the field out of the "
                           "store (memext export), or name another place with -d",
                           path);
    }
    return 0;
}

/* The store is locked now: is it still the one that was looked at? */
static int check_note(struct mx_run *r) {
    char text[MX_NOTE_BYTES + 1];
    const int64_t n = mx_device_note(r->device, text, sizeof text);
    const bool same = n > 0 && XXH3_64bits(text, (size_t)n) == r->note_digest;
    return same ? 0
                : mx_fail(&r->why, -EBUSY, "another memext changed %.300s a moment ago: start again",
                          r->report.device.place);
}

/* A run that ended before its first commit may have left a Buffer that the note does not know of yet: noted
 * says whether it has to be there. */
static int open_extent(struct mx_run *r, const char *name, int64_t size, bool noted, bool unused,
                       mx_buffer **out) {
    const uint64_t bytes = (uint64_t)size;
    int err = mx_run_has_store(r) ? mx_buffer_open(r->device, name, &r->why, out) : -ENOENT;
    if (err == -ENOENT && !noted)
        return (unused ? mx_buffer_create_unused : mx_buffer_create)(r->device, name, bytes, &r->why, out);
    if (err == 0 && mx_run_writes(r)) err = mx_buffer_allocate(*out, &r->why);
    if (err == 0 && mx_buffer_bytes(*out) < bytes)
        err = mx_fail(&r->why, -EIO,
                      "the store is damaged: the Buffer \"%s\" of %.300s is shorter than the description of "
                      "the store (note) says",
                      name, r->report.device.place);
    return err;
}

static int open_buffer(struct mx_run *r, int32_t i) {
    const int64_t bytes = r->report.layout.buffer_bytes;
    const bool noted = mx_run_has_store(r) && i < r->note.n_buffers;
    mx_device_make_late(r->device, mx_run_lies_late(r) && i > 0);
    int err = open_extent(r, mx_note_buffers[i], bytes, noted, i < r->fuse.unused_buffers, &r->buffer[i]);
    if (err == 0 && r->tuned.shape.pairs)
        err = open_extent(r, mx_note_partners[i], bytes, noted, false, &r->partner[i]);
    return err;
}

static int open_fixed(struct mx_run *r) {
    int err = 0;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem) && err == 0; i++) {
        char name[16];
        if (r->file[i] != NULL)
            err = mx_buffer_open(r->file[i], MX_FILE_BUFFER, &r->why, &r->fixed[i]);
        else if (!r->report.layout.fixed[i].user_file) /* of a run that is done no file is opened */
            err = open_extent(r, mx_note_fixed(r->note.second, i, name), r->report.layout.fixed[i].bytes,
                              mx_run_has_store(r), false, &r->fixed[i]);
    }
    return err;
}

/* Fields of C that get other values have them in the other of their two Buffers. */
static int open_changed(struct mx_run *r) {
    int err = 0;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem) && err == 0; i++) {
        char name[16];
        if ((r->edit.fixed >> i & 1) == 0) continue;
        err = open_extent(r, mx_note_fixed(~r->note.second, i, name), r->report.layout.fixed[i].bytes, false,
                          false, &r->edit.buffer[i]);
    }
    return err;
}

/* Seams are of no use to a later run, so any extent of seams that is long enough will do, or a new one. */
static int open_seams(struct mx_run *r) {
    uint64_t bytes = (uint64_t)r->report.side_file_bytes;
    int err = -ENOENT;
    if (bytes == 0 || (mx_run_has_store(r) && r->rest.nt == 0)) return 0;
    for (int i = 1; r->seams == NULL; i++) {
        char name[16];
        snprintf(name, sizeof name, i == 1 ? "faces" : "faces-%d", i);
        err = mx_run_has_store(r) ? mx_buffer_open(r->device, name, &r->why, &r->seams) : -ENOENT;
        if (err == -ENOENT) return mx_buffer_create(r->device, name, bytes, &r->why, &r->seams);
        if (err < 0) return err;
        if (mx_buffer_bytes(r->seams) >= bytes) return 0;
        mx_buffer_close(r->seams);
        r->seams = NULL;
    }
    return err;
}

static int take_integrity(struct mx_run *r) {
    const struct mx_layout *l = &r->report.layout;
    int64_t unit = r->note.integrity_unit;
    int err = 0;
    const bool stored = unit != 0;
    if (!stored &&
        (!r->o.integrity ||
         (mx_run_has_store(r) && !mx_run_writes(r)))) { /* of a complete result nothing is stored any more */
        r->report.integrity = false;
        return 0;
    }
    if (!stored)
        unit = r->algorithm->cuts_y(&r->rest, &r->report.plan) ? l->row_pitch_bytes : l->plane_pitch_bytes;
    if (stored && unit % r->report.device.offset_align_bytes != 0)
        return mx_fail(&r->why, -EINVAL,
                       "each hash of this store covers %lld bytes, and the device transfers multiples of %u "
                       "bytes: choose --backend mmap",
                       (long long)unit, r->report.device.offset_align_bytes);
    r->note.integrity_unit = unit;
    r->plain |= !stored;
    for (int32_t i = 0; i < mx_run_buffers(r) && err == 0; i++) {
        const int32_t number = i % r->n_buffers;
        mx_buffer *buffer = mx_run_buffer(r, number, i / r->n_buffers);
        err = mx_buffer_integrity(buffer, (uint64_t)unit, r->budget, &r->why);
        if (err == 0 && !r->plain && number == r->note.buffer && (err = mx_buffer_integrity_load(buffer)) < 0)
            mx_run_no_hashes(r, mx_note_buffers[number], err);
    }
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem) && err == 0; i++)
        if (r->file[i] == NULL && r->fixed[i] != NULL)
            err = mx_run_check_fixed(r, r->fixed[i], i, mx_run_has_store(r) && !r->plain);
    if (err == 0 && r->seams != NULL)
        err = mx_buffer_integrity(r->seams, (uint64_t)l->row_pitch_bytes, r->budget, &r->why);
    return err;
}

/* What follows the levels: the sides, and what parts add to that. */
static int begin_after(struct mx_run *r) {
    r->after = (struct mx_after){.problem = &r->o.problem, .layout = &r->report.layout, .sides = r->sides};
    memcpy(r->after.ghost, r->tuned.shape.ghost, sizeof r->after.ghost);
    return mx_parts_open(r);
}

int mx_run_open_store(struct mx_run *r) {
    int err = open_device(r);
    if (err == 0) err = mx_run_has_store(r) ? check_note(r) : check_inputs(r);
    if (err == 0 && r->superseded != NULL) err = mx_run_keep_superseded(r);
    if (r->resumed) r->note.problem.nt = r->o.problem.nt; /* from the next commit on */
    /* The device's alignment may turn out larger than it looked from outside. */
    bool same = r->backend->face == MX_FACE_MAPPED ||
                r->report.device.offset_align_bytes == r->request.offset_align_bytes;
    bool again = !same;
    if (err == 0) err = mx_run_agree_any(r, &again);
    if (err == 0 && again) err = mx_run_plan(r);
    if (err == 0)
        err = mx_budget_create(r->report.dram_limit_bytes, r->request.reserve_bytes, &r->why, &r->budget);
    for (int32_t i = 0; i < r->n_buffers && err == 0; i++) err = open_buffer(r, i);
    if (err == 0) mx_device_make_late(r->device, false);
    if (err == 0) err = open_fixed(r);
    if (err == 0) err = open_changed(r);
    if (err == 0) mx_device_make_late(r->device, mx_run_lies_late(r));
    if (err == 0) err = open_seams(r);
    if (r->device != NULL) mx_device_make_late(r->device, false);
    if (err == 0) err = take_integrity(r);
    if (err == 0) err = begin_after(r);
    return err < 0 ? err : mx_parts_hold(r);
}
