/* SPDX-License-Identifier: BSD-3-Clause */
/* halves.c - what transfers are made of: I/O between a Buffer and DRAM, the bus between DRAM and an
 * accelerator, and LOADs that are fed (feed.h). */
#include "core/device.h"
#include "execute/executor.h"
#include "machine/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What a LOAD or STORE moves, in words. */
static const char *describe(const struct executor *r, const struct mx_step *s, char *text, size_t capacity) {
    const struct mx_region g = mx_step_in_buffer(s);
    char of[64];
    if (s->buffer == MX_SEAMS) {
        snprintf(text, capacity, "face slab %lld of the side file", (long long)s->region.z0);
        return text;
    }
    if (mx_exec_is_fixed(s->buffer))
        snprintf(of, sizeof of, "field %s", r->x->problem->system->fixed[s->buffer - MX_FIXED_ARRAY].name);
    else
        snprintf(of, sizeof of, "Buffer %d%s", s->buffer, s->part ? ", its partner" : "");
    const char *word = mx_plane_word(r->x->problem->flat);
    if (r->x->problem->flat)
        snprintf(text, capacity, "%ss %lld..%lld of %s", word, (long long)g.z0, (long long)g.z1, of);
    else
        snprintf(text, capacity, "rows %lld..%lld of %ss %lld..%lld of %s", (long long)g.y0, (long long)g.y1,
                 word, (long long)g.z0, (long long)g.z1, of);
    return text;
}

static mx_buffer *buffer_of(const struct executor *r, const struct mx_step *s) {
    if (s->buffer == MX_SEAMS) return r->x->seams;
    if (mx_exec_is_fixed(s->buffer)) return r->x->fixed[s->buffer - MX_FIXED_ARRAY];
    return s->part ? r->x->partner[s->buffer] : r->x->buffer[s->buffer];
}

/* Where the byte at this offset of the file of a field of C goes, of the region's plane z (system.h,
 * mx_fixed_span). Rows from the other end stand where the ghosts are: they are whole units of the device
 * (mx_layout_make). */
static char *fixed_address(const struct executor *r, const struct mx_step *s, int64_t offset, int64_t z) {
    const int32_t field = s->array - MX_FIXED_ARRAY;
    const struct mx_fixed_view *v = &r->fixed[field];
    const int64_t first =
        v->offset_bytes + (z + s->buffer_z) * v->file_plane_pitch_bytes - s->at.y_offset * v->row_pitch_bytes;
    const int64_t shift = ((first % v->align_bytes) + v->align_bytes) % v->align_bytes;
    return v->base + mx_exec_slot(r, s->array, z, s->at.z_offset) * v->slot_pitch_bytes + offset -
           s->buffer_y * v->row_pitch_bytes - (first - shift);
}

static void fixed_spans(struct executor *r, const struct mx_step *s) {
    const struct mx_fixed_layout *l = &r->x->layout->fixed[s->array - MX_FIXED_ARRAY];
    const struct mx_region g = mx_step_in_buffer(s);
    for (int64_t z = s->region.z0; z < s->region.z1; z++) {
        struct mx_span *span = &r->spans[z - s->region.z0];
        mx_fixed_span(l, z + s->buffer_z, g.y0, g.y1, &span->offset_bytes, &span->bytes);
        span->dram = fixed_address(r, s, (int64_t)span->offset_bytes, z);
    }
}

/* Of A and B, and of seams. */
static void state_spans(struct executor *r, const struct mx_step *s) {
    const struct mx_layout *l = r->x->layout;
    const int64_t pitch = s->buffer == MX_SEAMS ? r->seam_slab_bytes : l->plane_pitch_bytes;
    for (int64_t z = s->region.z0; z < s->region.z1; z++) {
        struct mx_span *span = &r->spans[z - s->region.z0];
        int64_t y = s->whole_planes ? 0 : s->region.y0;
        span->offset_bytes = (uint64_t)((z + s->buffer_z) * pitch + (y + s->buffer_y) * l->row_pitch_bytes);
        span->bytes = (uint64_t)(s->whole_planes ? l->plane_pitch_bytes
                                                 : (s->region.y1 - s->region.y0) * l->row_pitch_bytes);
        span->dram = mx_exec_row(r, s->array, y, z, s->at);
    }
}

/* The spans of a step, between its Buffer and what `dram` points to: a Block array, or with an accelerator
 * the piece of staging memory that stands between them. Returns how many. */
int64_t mx_exec_spans(struct executor *r, const struct entry *e) {
    const struct mx_step *s = &e->step;
    const int64_t n = s->region.z1 - s->region.z0;
    assert(n <= r->n_spans);
    (mx_exec_is_fixed(s->array) ? fixed_spans : state_spans)(r, s);
    if (mx_exec_direct(r, e) != NULL)
        mx_staging_pass_by(&r->staging, mx_exec_direct(r, e), r->spans, n);
    else if (mx_exec_staged(r))
        mx_staging_turn(&r->staging, e->piece, r->spans, n);
    return n;
}

int mx_exec_start_io(struct executor *r, struct entry *e, int64_t n) {
    const struct mx_step *s = &e->step;
    const bool load = s->kind == MX_STEP_LOAD;
    char what[160];
    int err = (load ? mx_buffer_read : mx_buffer_write)(buffer_of(r, s), r->spans, (size_t)n, &e->ticket);
    if (err < 0)
        return mx_fail(r->why, err, "%s %s could not be started: %s", load ? "reading" : "writing",
                       describe(r, s, what, sizeof what), strerror(-err));
    return 0;
}

/* Between the accelerator and the staging memory, or the Buffer. */
int mx_exec_start_bus(struct executor *r, struct entry *e, int64_t n) {
    const bool load = e->step.kind == MX_STEP_LOAD;
    e->number = (load ? mx_accel_put : mx_accel_get)(r->x->accel, r->staging.spans, (size_t)n);
    if (e->number < 0) return mx_accel_error(r->x->accel, r->why);
    if (mx_exec_direct(r, e) != NULL) mx_buffer_move_begins(buffer_of(r, &e->step), !load);
    return 0;
}

int mx_exec_start_feed(struct executor *r, struct entry *e) {
    struct mx_view view = r->view;
    view.y_offset = e->step.at.y_offset;
    view.z_offset = e->step.at.z_offset;
    e->begin_ns = mx_clock_ns();
    e->feed = mx_feeder_post(r->feeder, &e->step, &view);
    if (e->feed == NULL) return mx_fail(r->why, -ENOMEM, "no memory to feed the first sweep");
    e->state = RUNNING;
    return 0;
}

int mx_exec_finish_feed(struct executor *r, struct entry *e) {
    mx_why why = {""};
    const int err = mx_feeder_finish(r->feeder, e->feed, &why);
    e->feed = NULL;
    return err < 0 ? mx_fail(r->why, err, "%s", why.text) : 0;
}

static int damaged(const struct executor *r, const struct mx_step *s) {
    const bool state = s->buffer != MX_SEAMS && !mx_exec_is_fixed(s->buffer);
    char what[160];
    return mx_field_damaged(buffer_of(r, s), state ? r->x->layout : NULL, describe(r, s, what, sizeof what),
                            r->why);
}

int mx_exec_finish_io(struct executor *r, struct entry *e) {
    int err = mx_wait(e->ticket);
    char what[160];
    mx_why taking = {""};
    const int taken = mx_taker_finish(r->taker, e->take, &taking);
    e->ticket = NULL;
    e->take = NULL;
    if (err == 0) return taken < 0 ? mx_fail(r->why, taken, "%s", taking.text) : 0;
    if (err == -EBADMSG) return damaged(r, &e->step);
    return mx_fail(r->why, err, "%s %s failed: %s", e->step.kind == MX_STEP_LOAD ? "reading" : "writing",
                   describe(r, &e->step, what, sizeof what),
                   err == -EAGAIN ? mx_no_thread(err).text : strerror(-err));
}

int mx_exec_finish_bus(struct executor *r, struct entry *e) {
    const bool load = e->step.kind == MX_STEP_LOAD;
    const int err = mx_accel_wait(r->x->accel, load ? MX_ACCEL_PUT : MX_ACCEL_GET, e->number);
    if (mx_exec_direct(r, e) != NULL)
        mx_buffer_move_ends(buffer_of(r, &e->step), !load, err < 0 ? 0 : mx_exec_moved_bytes(r, &e->step));
    return err < 0 ? mx_accel_error(r->x->accel, r->why) : 0;
}
