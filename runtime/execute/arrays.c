/* SPDX-License-Identifier: BSD-3-Clause */
/* arrays.c - the arrays that steps work on: Blocks, memory of an accelerator, or mapped Buffers. */
#include "core/device.h"
#include "execute/executor.h"
#include "machine/minmax.h"

#include <errno.h>
#include <string.h>

static int make_block(struct executor *r, int64_t bytes, int64_t unit, mx_device *device, mx_block **out) {
    struct mx_block_options o = {.budget = r->x->budget,
                                 .lock = r->x->lock,
                                 .node_split_bytes = (uint64_t)unit,
                                 .device = r->x->mapped ? NULL : device};
    r->out->block_bytes += bytes;
    return mx_block_create(&o, (uint64_t)bytes, r->why, out);
}

/* An array: a Block, or memory of the accelerator. Poison: whatever is used without having been loaded
 * shows.
 */
static int make_array(struct executor *r, int64_t bytes, int64_t unit, const char *what, mx_device *device,
                      mx_block **block, char **base) {
    int err = mx_exec_staged(r) ? mx_staging_array(&r->staging, bytes, what, r->why, base)
                                : make_block(r, bytes, unit, device, block);
    if (err < 0) return err;
    if (mx_exec_staged(r)) r->out->block_bytes += bytes;
    if (mx_exec_staged(r)) return r->x->poison ? mx_staging_poison(&r->staging, *base, bytes, r->why) : 0;
    *base = mx_block_data(*block);
    if (r->x->poison) memset(*base, 0xff, mx_block_bytes(*block));
    return 0;
}

/* DRAM has it; an accelerator with memory of its own gets it once. */
static int open_profile(struct executor *r, int32_t field) {
    const struct mx_profile *q = &r->x->problem->system->profile[field];
    char *base = q->memory;
    int err = 0;
    if (mx_exec_staged(r) && !mx_accel_facts(r->x->accel)->here) {
        err = mx_staging_array(&r->staging, q->bytes, "a read-only field", r->why, &base);
        if (err == 0) err = mx_staging_put(&r->staging, base, q->memory, q->bytes, r->why);
    }
    r->fixed[field] = mx_view_of_profile(r->x->problem, field, base);
    r->view.fixed = r->fixed;
    return err;
}

static int open_fixed(struct executor *r, int32_t field) {
    const struct mx_fixed_layout *l = &r->x->layout->fixed[field];
    struct mx_fixed_view *v = &r->fixed[field];
    int err = 0;
    if (mx_is_profile(r->x->problem, field)) return open_profile(r, field);
    if (r->x->fixed[field] == NULL)
        return mx_fail(r->why, -EINVAL,
                       "internal error (field %s has neither a Buffer nor a file); please report it",
                       r->x->problem->system->fixed[field].name);
    *v = (struct mx_fixed_view){.slots = r->shape->rows == 0 ? r->x->layout->planes : r->shape->fixed_slots,
                                .row_pitch_bytes = l->row_pitch_bytes,
                                .offset_bytes = l->offset_bytes,
                                .file_plane_pitch_bytes = l->plane_pitch_bytes,
                                .align_bytes = mx_max(l->align_bytes, 1)};
    if (r->shape->ghost[MX_DIM_Z]) {
        v->first_plane = r->x->problem->h;
        v->period_planes = r->x->problem->nz;
    }
    r->view.fixed = r->fixed;
    if (r->shape->rows == 0) {
        void *base = NULL;
        err = mx_buffer_map(r->x->fixed[field], r->why, &base);
        if (err < 0) return err;
        v->base = (char *)base + l->offset_bytes;
        v->slot_pitch_bytes = l->plane_pitch_bytes;
        v->align_bytes = 1;
        return 0;
    }
    v->slot_pitch_bytes = mx_fixed_slot_bytes(l, r->shape->rows);
    return make_array(r, v->slots * v->slot_pitch_bytes, v->slot_pitch_bytes, "a read-only field",
                      mx_buffer_device(r->x->fixed[field]), &r->fixed_block[field], &v->base);
}

/* Pinning takes a device up to 0.17 s a GB of Buffers, and the copies through the staging memory make a sweep
 * longer where they, and not the kernel, decide. Measured on an H200 with 16 cores (1022^3, 16 levels a
 * sweep), whole processes without and with pinning: 4 sweeps 7.8 and 7.8 s, 12 sweeps 10.8 and 9.1, 24
 * sweeps 15.3 and 11.7, 48 sweeps 27.3 and 17.6. */
enum { SWEEPS_WORTH_PINNING = 12 };

static bool pins(const struct executor *r) {
    const int32_t asked = mx_accel_facts(r->x->accel)->pin;
    if (asked >= 0) return asked == 1;
    return mx_levels_of(r->x->problem, r->x->problem->nt) / mx_max(r->shape->max_levels, 1) >=
           SWEEPS_WORTH_PINNING;
}

/* Their pages must be there, for a device brings them in one by one. */
static void pin_buffers(struct executor *r) {
    const bool here = mx_accel_facts(r->x->accel)->here;
    if (!pins(r)) return;
    for (int part = 0; part < 2; part++)
        for (int i = 0; i < MX_BUFFERS; i++) {
            const mx_buffer *b = part ? r->x->partner[i] : r->x->buffer[i];
            char *memory = b != NULL ? mx_buffer_memory(b) : NULL;
            if (memory != NULL && !here) mx_memory_touch(memory, mx_buffer_bytes(b));
            if (memory != NULL && mx_accel_pin(r->x->accel, memory, mx_buffer_bytes(b)))
                r->direct[part][i] = memory;
        }
}

static int open_staging(struct executor *r) {
    const int64_t piece = mx_execute_piece_bytes(r->x->problem, r->shape, r->x->layout, r->x->plan);
    if (r->shape->rows == 0)
        return mx_fail(r->why, -EINVAL,
                       "an algorithm on mapped Buffers cannot use an accelerator: choose --algorithm stream, "
                       "or leave --accel out");
    int err = make_block(r, MX_STAGING_PIECES * piece, piece, r->x->device, &r->staging_block);
    if (err < 0) return err;
    r->out->block_bytes -= MX_STAGING_PIECES * piece;
    pin_buffers(r);
    return mx_staging_open(&r->staging, r->x->accel, r->x->budget, mx_block_data(r->staging_block), piece,
                           r->n_spans, r->why);
}

int mx_exec_open_arrays(struct executor *r) {
    const struct mx_layout *l = r->x->layout;
    int err = mx_exec_staged(r) ? open_staging(r) : 0;
    if (err < 0) return err;
    r->view.row_pitch_bytes = l->row_pitch_bytes;
    for (int32_t i = 0; i < mx_fixed_count(r->x->problem) && err == 0; i++) err = open_fixed(r, i);
    if (r->shape->rows == 0) {
        r->view.plane_pitch_bytes = l->plane_pitch_bytes;
        for (int i = 0; i < 2 && err == 0; i++) {
            void *base = NULL;
            err = mx_buffer_map(mx_exec_mapped(r, i), r->why, &base);
            r->view.base[i] = base;
            r->view.slots[i] = l->planes;
        }
        return err;
    }
    r->view.plane_pitch_bytes = mx_block_plane_pitch(r->shape, l);
    if (!r->x->mapped) {
        struct mx_device_facts facts = {
            .size = sizeof facts}; /* memory_align is 4 to 512 on all but rare devices */
        mx_device_facts(r->x->device, &facts);
        if (r->view.plane_pitch_bytes % facts.memory_align_bytes != 0)
            r->view.plane_pitch_bytes = mx_block_plane_bytes(r->shape, l);
    }
    for (int i = 0; i < 2 && err == 0; i++) {
        r->view.slots[i] = r->shape->slots[i];
        err = make_array(r, r->shape->slots[i] * r->view.plane_pitch_bytes, r->view.plane_pitch_bytes,
                         i == 0 ? "the first ring of planes" : "the second ring of planes", r->x->device,
                         &r->block[i], &r->view.base[i]);
    }
    r->seam_slab_bytes = mx_seam_slab_bytes(r->shape, l);
    if (err == 0 && r->shape->seams_in_file && r->x->seams == NULL)
        err = mx_fail(r->why, -EINVAL,
                      "internal error (the plan keeps faces in a side file, and no side file is open); "
                      "please report it");
    if (err == 0 && r->seam_slab_bytes > 0)
        err = make_array(r, r->shape->seam_slots * r->seam_slab_bytes, r->seam_slab_bytes, "faces",
                         r->x->device, &r->seam_block, &r->seam_base);
    return err;
}
