/* SPDX-License-Identifier: BSD-3-Clause */
/* former.c - reads the state of a run that is resumed with another number of ranks from the former stores. */
#include "run/work/work.h"

#include "core/device.h"
#include "core/store.h"
#include "run/ranks/recut_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Planes of one array of the state, or of a field of C, from where they are. */
struct reader {
    struct mx_run *r;
    const struct mx_layout *to;
    int part;       /* array A or B */
    int32_t fixed;  /* the field of C; -1 = of the state */
    int64_t before; /* planes of the Buffer that stand before the rank's own frame */
    int32_t open;   /* the store; -1 = none */
    mx_device *device;
    mx_buffer *buffer;
    mx_block *block;
};

static void close_store(struct reader *e) {
    mx_block_free(e->block);
    mx_buffer_close(e->buffer);
    mx_device_close(e->device);
    e->block = NULL, e->buffer = NULL, e->device = NULL;
    e->open = -1;
}

static int64_t pitch_of(const struct reader *e, const struct mx_former *f) {
    return e->fixed < 0 ? f->layout.plane_pitch_bytes : f->layout.fixed[e->fixed].plane_pitch_bytes;
}

/* Another memext may have gone on with the store between the look and the lock. */
static int check_unchanged(struct reader *e, const struct mx_former *f) {
    struct mx_store_facts *now = calloc(1, sizeof *now);
    if (now == NULL) return mx_fail(&e->r->why, -ENOMEM, "no memory for the note of a store");
    now->size = sizeof *now;
    int err = mx_store_see(f->path, &e->r->why, now);
    if (err == 0 && now->generation != f->generation)
        err = mx_fail(&e->r->why, -EBUSY, "another memext changed %.300s a moment ago: start again", f->path);
    free(now);
    return err;
}

static int open_device(struct reader *e, const struct mx_former *f, const char *backend) {
    const struct mx_options *o = &e->r->o;
    const struct mx_device_options d = {.size = sizeof d,
                                        .backend = backend,
                                        .path = f->path,
                                        .queue_depth = (uint32_t)o->queue_depth,
                                        .max_request_bytes = (uint32_t)o->request_bytes,
                                        .fault = backend == o->backend ? o->fault : NULL,
                                        .resume = true,
                                        .read_only = true,
                                        .no_lock = o->no_lock,
                                        .keep = true};
    struct mx_device_facts facts = {.size = sizeof facts};
    int err = mx_device_open(&d, &e->r->why, &e->device);
    if (err == 0 && (err = check_unchanged(e, f)) < 0) close_store(e);
    if (err < 0) return err;
    mx_device_facts(e->device, &facts);
    if (pitch_of(e, f) % facts.offset_align_bytes == 0 && f->integrity_unit % facts.offset_align_bytes == 0)
        return 0;
    close_store(e);
    return -ENOTSUP; /* planes are not transferred one by one there */
}

/* A store of an older memext has none of C, and none are made in it. */
static int open_hashes_of_fixed(struct reader *e, const struct mx_former *f) {
    char field[16], name[24];
    mx_buffer *sums = NULL;
    snprintf(name, sizeof name, "%s.sum", mx_note_fixed(f->second, e->fixed, field));
    if (pitch_of(e, f) % MX_FIXED_UNIT_BYTES != 0 || mx_buffer_open(e->device, name, NULL, &sums) < 0)
        return 0;
    mx_buffer_close(sums);
    return mx_run_check_fixed(e->r, e->buffer, e->fixed, true);
}

static int open_buffer(struct reader *e, const struct mx_former *f) {
    char field[16];
    const char *name = e->fixed >= 0  ? mx_note_fixed(f->second, e->fixed, field)
                       : e->part == 1 ? mx_note_partners[f->buffer]
                                      : mx_note_buffers[f->buffer];
    mx_why *why = &e->r->why;
    int err = mx_buffer_open(e->device, name, why, &e->buffer);
    if (err < 0 || f->integrity_unit == 0) return err;
    if (e->fixed >= 0) return open_hashes_of_fixed(e, f);
    err = mx_buffer_integrity(e->buffer, (uint64_t)f->integrity_unit, e->r->budget, why);
    if (err == 0 && (err = mx_buffer_integrity_load(e->buffer)) < 0)
        mx_fail(why, err, "the hashes of %.300s cannot be read: %s", f->path, strerror(-err));
    return err;
}

static int open_store(struct reader *e, int32_t k) {
    const struct mx_former *f = &e->r->recut.former[k];
    close_store(e);
    const char *backend = e->r->backend->anonymous ? NULL : e->r->o.backend;
    int err = open_device(e, f, backend);
    if (err == -ENOTSUP) err = open_device(e, f, "mmap");
    if (err == 0) err = open_buffer(e, f);
    const struct mx_block_options o = {.size = sizeof o, .budget = e->r->budget, .device = e->device};
    if (err == 0) err = mx_block_create(&o, (uint64_t)pitch_of(e, f), &e->r->why, &e->block);
    if (err < 0) return err;
    e->open = k;
    return 0;
}

/* The rank that had plane z of the whole grid, frame counted; frames are of those at the ends. */
static int32_t owner_of(const struct mx_run *r, int64_t z) {
    const struct mx_run_recut *c = &r->recut;
    int32_t k = 0;
    while (k + 1 < c->ranks && z - r->whole.h >= c->former[k + 1].first_plane) k++;
    return k;
}

static int read_plane(struct reader *e, const struct mx_former *f, int64_t z) {
    const int64_t pitch = pitch_of(e, f), offset = e->fixed < 0 ? 0 : f->layout.fixed[e->fixed].offset_bytes;
    const struct mx_span span = {(uint64_t)(offset + (z - f->first_plane) * pitch), (uint64_t)pitch,
                                 mx_block_data(e->block)};
    mx_ticket *ticket = NULL;
    if (span.offset_bytes + span.bytes > mx_buffer_bytes(e->buffer))
        return mx_fail(&e->r->why, -EIO,
                       "the store is damaged: %.300s is shorter than its description (note) says", f->path);
    int err = mx_buffer_read(e->buffer, &span, 1, &ticket);
    if (err == 0) err = mx_wait(ticket);
    e->r->recut.read_bytes += span.bytes;
    if (err == -EBADMSG) return mx_field_damaged(e->buffer, &f->layout, "the state", &e->r->why);
    return err < 0 ? mx_fail(&e->r->why, err, "%s %lld of %.300s cannot be read: %s",
                             mx_plane_word(f->layout.rows == 1), (long long)(z - f->first_plane), f->path,
                             strerror(-err))
                   : 0;
}

static int former_plane(void *context, int64_t z, char *plane) {
    struct reader *e = context;
    const struct mx_run *r = e->r;
    const struct mx_problem *p = &r->whole;
    z += r->o.problem.first_plane - e->before;
    if (mx_sides_periodic(&p->sides, MX_DIM_Z)) z = p->h + mx_wrap(z - p->h, p->nz);
    const int32_t k = owner_of(r, z);
    const struct mx_former *f = &r->recut.former[k];
    int err = mx_run_stopped(r);
    if (err == 0 && e->open != k) err = open_store(e, k);
    if (err == 0) err = read_plane(e, f, z);
    const int64_t from_pitch =
        e->fixed < 0 ? f->layout.row_pitch_bytes : f->layout.fixed[e->fixed].row_pitch_bytes;
    const char *from = err == 0 ? mx_block_data(e->block) : NULL;
    for (int64_t y = 0; y < e->to->rows && err == 0; y++)
        memcpy(plane + y * e->to->row_pitch_bytes, from + y * from_pitch, (size_t)e->to->row_bytes);
    return err;
}

static int read_state(struct mx_run *r) {
    const int32_t n = r->tuned.shape.init_both ? r->n_buffers : 1, parts = r->tuned.shape.pairs ? 2 : 1;
    int err = 0;
    for (int32_t i = 0; i < n * parts && err == 0; i++) {
        struct reader e = {.r = r, .to = &r->report.layout, .part = i / n, .fixed = -1, .open = -1};
        err = mx_run_pass(r, "state", mx_run_buffer(r, i % n, i / n), e.to, former_plane, &e);
        close_store(&e);
    }
    return err;
}

static int read_fixed(struct mx_run *r) {
    int err = 0;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem) && err == 0; i++) {
        struct mx_layout layout;
        if (r->file[i] != NULL || r->report.layout.fixed[i].user_file) continue;
        mx_layout_of_fixed(&r->report.layout, i, &layout);
        layout.planes = layout.buffer_bytes / layout.plane_pitch_bytes;
        struct reader e = {.r = r,
                           .to = &layout,
                           .fixed = i,
                           .before = r->report.layout.fixed[i].offset_bytes / layout.plane_pitch_bytes,
                           .open = -1};
        err = mx_run_pass(r, "fields", r->fixed[i], &layout, former_plane, &e);
        close_store(&e);
    }
    return err;
}

int mx_run_read_former(struct mx_run *r) {
    int err = r->note.pending ? 0 : read_state(r);
    return err == 0 ? read_fixed(r) : err;
}
