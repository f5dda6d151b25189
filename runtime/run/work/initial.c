/* SPDX-License-Identifier: BSD-3-Clause */
/* initial.c - the state that a run begins with, in its Buffers. */
#include "run/work/work.h"

#include "core/device.h"

#include <string.h>

/* ------------------------------------------------------------------ frames */

/* The source of a Buffer that is to hold the same as another one. */
struct copy {
    struct mx_run *r;
    mx_buffer *buffer;
    struct mx_plane_stream *from;
    const struct mx_layout *layout;
};

static int copy_plane(void *context, int64_t z, char *plane) {
    struct copy *c = context;
    char *from;
    (void)z;
    int err = mx_plane_stream_next(c->from, &from);
    if (err == -EBADMSG) return mx_field_damaged(c->buffer, c->layout, "the grid", &c->r->why);
    if (err != 1) return err < 0 ? err : -EIO;
    memcpy(plane, from, (size_t)c->layout->plane_pitch_bytes);
    return 0;
}

static int copy_buffer(struct mx_run *r, mx_buffer *from, mx_buffer *to) {
    struct copy c = {r, from, NULL, &r->report.layout};
    int err = mx_plane_stream_open(from, c.layout, r->budget, false, &r->why, &c.from);
    if (err == 0) err = mx_run_pass_grid(r, "frames", to, true, copy_plane, &c);
    return mx_plane_stream_close(c.from, err);
}

uint32_t mx_run_unframed(const struct mx_run *r) {
    const bool fresh = !mx_run_has_store(r) || r->note.pending, edits = mx_run_edits(r) && !r->edit.done;
    const uint32_t all = (UINT32_C(1) << r->n_buffers) - 1,
                   state = UINT32_C(1) << (edits ? mx_run_edit_target(r) : r->note.buffer);
    if (!r->tuned.shape.init_both || r->rest.nt == 0) return 0;
    if (fresh && mx_run_lies_late(r)) return all & ~UINT32_C(1);
    if (fresh && !mx_run_edits(r)) return 0;
    /* Hashes are kept of the newest state alone: with --integrity the frames of the others are made anew. */
    if (r->note.integrity_unit > 0 || r->o.integrity) return all & ~state;
    if (!edits) return all & ~r->note.framed;
    return mx_run_edits_frame(r) ? all & ~state : fresh ? 0 : all & ~(r->note.framed | state);
}

/* An algorithm that never writes the frame finds it in every Buffer, and in both arrays of pairs. */
static int copy_frames(struct mx_run *r) {
    const uint32_t missing = mx_run_unframed(r);
    int err = 0;
    for (int32_t i = 0; i < mx_run_buffers(r) && err == 0; i++) {
        const int32_t number = i % r->n_buffers, part = i / r->n_buffers;
        if ((missing >> number & 1) != 0)
            err = copy_buffer(r, mx_run_buffer(r, r->note.buffer, part), mx_run_buffer(r, number, part));
    }
    if (err == 0) r->note.framed |= missing;
    return err;
}

/* ------------------------------------------------------------------ the initial grid */

static uint32_t first_buffers(const struct mx_run *r) { return (UINT32_C(1) << mx_run_first_count(r)) - 1; }

static int turn(struct mx_run *r) {
    int err = mx_run_turn_note(r);
    if (err == 0) err = mx_run_read_former(r);
    if (err == 0 && !r->note.pending) r->note.framed = first_buffers(r);
    r->report.phase[MX_PHASE_INIT].read_bytes += (int64_t)r->recut.read_bytes;
    return err;
}

/* Of several Buffers that get the same the first is counted. A program is asked once: what it computes may be
 * dearer than to read it back. */
static int write_counted(struct mx_run *r, int32_t number, int part, struct mx_sided *sided,
                         struct mx_nonfinite *found) {
    struct mx_counted_fill counted = {r, part, mx_fill_sided, sided, found};
    mx_buffer *buffer = mx_run_buffer(r, number, part);
    if (number > 0 && r->o.source) return copy_buffer(r, mx_run_buffer(r, 0, part), buffer);
    return number == 0 ? mx_run_pass_grid(r, "initial", buffer, true, mx_fill_counted, &counted)
                       : mx_run_pass_grid(r, "initial", buffer, true, mx_fill_sided, sided);
}

/* State 0; of pairs in both arrays. */
static int write_initial_grid(struct mx_run *r) {
    const int32_t n = mx_run_first_count(r), parts = r->tuned.shape.pairs ? 2 : 1;
    struct mx_nonfinite found = {.cells = 0};
    int err = r->recut.asked ? turn(r) : r->resumed ? 0 : mx_run_begin_note(r);
    if (r->recut.asked && !r->note.pending) return err;
    if (err == 0 && r->system == NULL) {
        struct mx_sided sided = {r, 0, mx_plain_plane, r};
        for (int32_t i = 0; i < n && err == 0; i++) err = write_counted(r, i, 0, &sided, &found);
        if (err == 0) r->note.framed |= first_buffers(r);
        return err < 0 ? err : mx_run_check_initial(r, &found);
    }
    for (int32_t i = 0; i < n * parts && err == 0; i++) {
        struct mx_fields_fill fill = mx_run_fill(r, i / n, 0, &r->report.layout);
        struct mx_sided sided = {r, i / n, mx_fields_fill_plane, &fill};
        err = write_counted(r, i % n, i / n, &sided, &found);
    }
    if (err == 0) r->note.framed |= first_buffers(r);
    if (err == 0) err = mx_run_check_initial(r, &found);
    return err < 0 || r->resumed ? err : mx_run_write_all_fixed(r);
}

/* The first sweep reads what the run begins with, and no Buffer holds it. */
static int begin_fused(struct mx_run *r) {
    int err = r->resumed ? 0 : mx_run_begin_note(r);
    for (int32_t i = 0; i < r->fuse.n; i++) r->note.sample[i] = r->fuse.field[i].field.identity.sample;
    if (err == 0 && r->tuned.shape.init_both) {
        mx_run_begin_phase(r, "initial", "B", r->report.predicted_init_bytes);
        err = mx_run_fuse_frames(r);
        if (err == 0) r->note.framed |= first_buffers(r);
    }
    return err < 0 || r->resumed ? err : mx_run_write_all_fixed(r);
}

/* All that can be refused was: what is in the way goes now, and not before. */
static int take_places(struct mx_run *r) {
    int err = mx_device_take(r->device, &r->why);
    if (err == 0 && r->o.force) mx_run_discard_former(r);
    if (err == 0) mx_run_sweep_left(r);
    return err < 0 ? err : mx_parts_begin(r);
}

/* A run that resumes from the superseded store finds one Buffer with its frame: the others are overwritten
 * from now on. */
static int renew_former(struct mx_run *r) {
    const struct mx_run_superseded *s = r->superseded;
    char was[MX_NOTE_BYTES + 1], text[MX_NOTE_BYTES];
    if (s == NULL || s->note.framed == UINT32_C(1) << s->note.buffer) return 0;
    int64_t n = mx_device_former_note(r->device, was, sizeof was);
    if (n > 0) n = mx_note_reframe(was, (size_t)n, UINT32_C(1) << s->note.buffer, text, sizeof text);
    const int err = n < 0 ? (int)n : mx_device_renew_former(r->device, text, (size_t)n);
    return err < 0 ? mx_run_fail_commit(r, "first", err) : 0;
}

int mx_run_initialise(struct mx_run *r) {
    uint64_t begin = mx_clock_ns();
    const bool fresh = !mx_run_has_store(r) || r->note.pending;
    int err = take_places(r);
    if (err == 0) err = renew_former(r);
    if (err == 0) err = mx_run_begin_fuse(r);
    r->fill =
        (struct mx_fill){.problem = &r->whole, .layout = &r->report.layout, .threads = r->tuned.plan.threads};
    if (r->o.init != NULL) r->fill.init = mx_init_find(r->o.init);
    if (err == 0 && fresh) err = r->fuse.source ? begin_fused(r) : write_initial_grid(r);
    mx_run_renew_note(r);
    if (err == 0) err = mx_run_settle_state(r);
    /* In place nothing can be resumed once the computation has begun: such a store gets its note at the end.
     */
    bool commits = r->report.device.durable && mx_run_resumable(r);
    if (err == 0 && fresh && commits && (err = mx_run_commit(r, 0, 0)) < 0)
        mx_run_fail_commit(r, "first", err);
    if (err == 0) err = mx_run_edit_state(r);
    if (err == 0 && (!fresh || mx_run_edits(r) || mx_run_lies_late(r))) err = copy_frames(r);
    if (err == 0 && r->resumed) mx_run_remove_former(r);
    r->report.init_seconds = mx_seconds_since(begin);
    return err;
}
