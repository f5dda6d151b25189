/* SPDX-License-Identifier: BSD-3-Clause */
/* compute.c - ADVANCEs, and COPYs. */
#include "execute/executor.h"
#include "machine/clock.h"
#include "machine/machine.h"
#include "machine/minmax.h"

#include <string.h>

static void copy_plane(const struct executor *r, const struct mx_step *s, int64_t z) {
    memmove(mx_exec_row(r, s->to_array, s->region.y0, z, s->to),
            mx_exec_row(r, s->array, s->region.y0, z, s->at),
            (size_t)((s->region.y1 - s->region.y0) * r->view.row_pitch_bytes));
}

/* In memory of the accelerator: as many planes at a time as follow one another in both rings. */
int mx_exec_start_copy(struct executor *r, struct entry *e) {
    const struct mx_step *s = &e->step;
    const int64_t pitch = r->view.plane_pitch_bytes;
    e->begin_ns = mx_clock_ns();
    e->state = RUNNING;
    e->number = 0;
    for (int64_t z = s->region.z0, n; z < s->region.z1 && mx_region_rows(s->region) > 0; z += n) {
        n = mx_min(s->region.z1 - z,
                   mx_min(mx_exec_slots(r, s->array) - mx_exec_slot(r, s->array, z, s->at.z_offset),
                          mx_exec_slots(r, s->to_array) - mx_exec_slot(r, s->to_array, z, s->to.z_offset)));
        const struct mx_accel_copy c = {.to = mx_exec_row(r, s->to_array, s->region.y0, z, s->to),
                                        .from = mx_exec_row(r, s->array, s->region.y0, z, s->at),
                                        .to_pitch = pitch,
                                        .from_pitch = pitch,
                                        .bytes = (s->region.y1 - s->region.y0) * r->view.row_pitch_bytes,
                                        .n = n};
        const int64_t number = mx_accel_copy(r->x->accel, MX_ACCEL_COPY, &c);
        if (number < 0) return mx_accel_error(r->x->accel, r->why);
        e->number = number;
    }
    return 0;
}

int mx_exec_finish_copy(struct executor *r, struct entry *e) {
    const int err = mx_accel_wait(r->x->accel, MX_ACCEL_COPY, e->number);
    const uint64_t end = mx_clock_ns();
    e->state = DONE;
    r->out->copy_ns += end - e->begin_ns;
    mx_exec_report(r, &e->step, false, e->begin_ns, end, mx_exec_moved_bytes(r, &e->step));
    return err < 0 ? mx_accel_error(r->x->accel, r->why) : 0;
}

void mx_exec_do_copy(struct executor *r, struct entry *e) {
    const struct mx_step *s = &e->step;
    uint64_t begin = mx_clock_ns();
    if (mx_region_rows(s->region) > 0) {
        /* Frames are a few rows; only the hand-over of y overlaps is worth a team of threads. */
        bool large = mx_exec_moved_bytes(r, s) > (1u << 20) && r->x->plan->threads > 1;
        if (large) {
#pragma omp parallel for schedule(static) num_threads(mx_loop_threads(r->x->plan->threads))
            for (int64_t z = s->region.z0; z < s->region.z1; z++) copy_plane(r, s, z);
        } else {
            for (int64_t z = s->region.z0; z < s->region.z1; z++) copy_plane(r, s, z);
        }
    }
    uint64_t end = mx_clock_ns();
    r->out->copy_ns += end - begin;
    e->state = DONE;
    mx_exec_report(r, s, false, begin, end, mx_exec_moved_bytes(r, s));
}

static int64_t window_cells(const struct executor *r, const struct mx_step *s) {
    int64_t rows = 0;
    for (int32_t l = s->first; l < s->end; l++) {
        const struct mx_window w = mx_step_window(s, l);
        if (w.y1 > w.y0 && w.z1 > w.z0) rows += (int64_t)(w.y1 - w.y0) * (w.z1 - w.z0);
    }
    return rows * r->x->problem->nx;
}

static void seam_of(const struct executor *r, const struct mx_step *s, int64_t slot, const int32_t *y,
                    const int32_t *n, struct mx_seam *seam) {
    if (slot < 0 || r->seam_base == NULL) return;
    *seam = (struct mx_seam){.base = r->seam_base + slot * r->seam_slab_bytes,
                             .planes_per_level = r->shape->seam_planes,
                             .seam_rows = r->shape->seam_rows,
                             .front = s->front,
                             .first_z = s->seam_z,
                             .n_planes = s->seam_nz,
                             .first_y = y,
                             .n_rows = n};
}

static const struct mx_step *next_advance(const struct executor *r, uint64_t i) {
    while (++i < r->end)
        if (mx_exec_at(r, i)->step.kind == MX_STEP_ADVANCE) return &mx_exec_at(r, i)->step;
    return NULL;
}

static void advise_planes(const struct executor *r, int64_t z0, int64_t z1, enum mx_advice advice) {
    int64_t pitch = r->x->layout->plane_pitch_bytes;
    if (z0 >= z1) return;
    for (int i = 0; i < 2; i++)
        mx_buffer_advise(mx_exec_mapped(r, i), (uint64_t)(z0 * pitch), (uint64_t)((z1 - z0) * pitch), advice);
    for (int32_t i = 0; i < mx_fixed_count(r->x->problem); i++) {
        const struct mx_fixed_layout *f = &r->x->layout->fixed[i];
        if (mx_is_profile(r->x->problem, i)) continue;
        const int64_t from = mx_max(f->offset_bytes + z0 * f->plane_pitch_bytes, 0);
        const int64_t to = mx_min(f->offset_bytes + z1 * f->plane_pitch_bytes, f->bytes);
        if (from < to) mx_buffer_advise(r->x->fixed[i], (uint64_t)from, (uint64_t)(to - from), advice);
    }
}

/* Mapped Buffers that a schedule works on directly: while ADVANCE i computes, the planes that the next
 * one adds are read; planes that the next one has left behind are given up. */
static void advise_around(const struct executor *r, uint64_t i, bool before) {
    const struct mx_step *s = &mx_exec_at(r, i)->step, *next = next_advance(r, i);
    if (!r->x->advise || r->shape->rows != 0 || next == NULL) return;
    if (before)
        advise_planes(
            r, next->region.z0 > s->region.z0 ? mx_max(s->region.z1, next->region.z0) : next->region.z0,
            next->region.z1, MX_ADVICE_WILLNEED);
    else if (next->region.z0 > s->region.z0)
        advise_planes(r, s->region.z0, mx_min(next->region.z0, s->region.z1), MX_ADVICE_DROP);
}

/* What is asked of the rows of an ADVANCE: as of the one before, if that is in the same Block, so that
 * engines see that calls belong together. */
static const struct mx_after *after_of(struct executor *r, const struct mx_region *block) {
    const struct mx_reach reach = {block->y0, block->y1, {block->z0, block->z0}, {block->z1, block->z1}};
    if (r->x->after == NULL || block->y1 == 0) return r->x->after;
    struct mx_after *last = &r->after[r->reaches % REACHES];
    if (r->reaches > 0 && memcmp(&last->reach, &reach, sizeof reach) == 0) return last;
    last = &r->after[++r->reaches % REACHES];
    *last = *r->x->after;
    last->reach = reach;
    return last;
}

void mx_exec_start_advance(struct executor *r, uint64_t i) {
    struct entry *e = mx_exec_at(r, i);
    const struct mx_step *s = &e->step;
    struct mx_advance a = {.view = r->view,
                           .first_level = r->x->first_level + s->first_level,
                           .parity = s->parity,
                           .levels = s->levels,
                           .window = s->window,
                           .front = s->front,
                           .first = s->first,
                           .end = s->end,
                           .after = after_of(r, &s->block)};
    a.view.y_offset = s->at.y_offset;
    a.view.z_offset = s->at.z_offset;
    seam_of(r, s, s->seam_in, s->seam_in_y, s->seam_in_n, &a.seam_in);
    seam_of(r, s, s->seam_out, s->seam_out_y, s->seam_out_n, &a.seam_out);
    e->cells = window_cells(r, s);
    if (e->looked_at) a.finding = &e->finding;
    e->begin_ns = mx_clock_ns();
    e->call = r->ops->post(r->engine, &a);
    e->state = RUNNING;
    r->advances--;
    r->under_way++;
    advise_around(r, i, true);
}

/* Its time is what the one before left of it. */
void mx_exec_finish_advance(struct executor *r, uint64_t i) {
    struct entry *e = mx_exec_at(r, i);
    const uint64_t begin = e->begin_ns > r->advanced_ns ? e->begin_ns : r->advanced_ns, end = mx_clock_ns();
    if (e->looked_at) mx_exec_add_look(r, e, e->step.first_level + e->step.levels, &e->finding.found);
    r->out->update_ns += end - begin;
    r->cells += e->cells;
    const int64_t before = r->out->updates;
    r->out->updates = mx_exec_steps(r, r->cells);
    r->advanced_ns = end;
    r->under_way--;
    e->state = DONE;
    mx_exec_report(r, &e->step, false, begin, end, (uint64_t)(r->out->updates - before));
    advise_around(r, i, false);
    if (r->x->progress != NULL) r->x->progress(r->x->context, r->out->updates);
}
