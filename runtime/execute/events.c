/* SPDX-License-Identifier: BSD-3-Clause */
/* events.c - events of steps, for traces. */
#include "execute/executor.h"
#include "machine/clock.h"

void mx_exec_report_transfer(const struct executor *r, const struct mx_step *s, bool waiting, bool file,
                             uint64_t begin_ns, uint64_t end_ns, uint64_t amount) {
    if (r->x->event == NULL) return;
    struct mx_event e = {.kind = s->kind,
                         .waiting = waiting,
                         .begin_ns = begin_ns,
                         .end_ns = end_ns,
                         .amount = amount,
                         .region = mx_exec_moves(s) ? mx_step_in_buffer(s) : s->region,
                         .seams = s->buffer == MX_SEAMS,
                         .file = file};
    r->x->event(r->x->context, &e);
}

void mx_exec_report(const struct executor *r, const struct mx_step *s, bool waiting, uint64_t begin_ns,
                    uint64_t end_ns, uint64_t amount) {
    mx_exec_report_transfer(r, s, waiting, false, begin_ns, end_ns, amount);
}

void mx_exec_report_sweep(struct executor *r, const struct mx_step *s) {
    uint64_t now = mx_clock_ns();
    struct mx_event e = {.kind = MX_STEP_COMMIT,
                         .sweep = true,
                         .begin_ns = r->sweep_ns,
                         .end_ns = now,
                         .amount = (uint64_t)mx_exec_steps(r, s->time),
                         .region = {0, r->x->layout->rows, 0, r->x->layout->planes}};
    r->sweep_ns = now;
    if (r->x->event != NULL) r->x->event(r->x->context, &e);
}

uint64_t mx_exec_moved_bytes(const struct executor *r, const struct mx_step *s) {
    const struct mx_region g = mx_step_in_buffer(s);
    if (mx_exec_is_fixed(s->array))
        return (uint64_t)mx_fixed_span_sum(&r->x->layout->fixed[s->array - MX_FIXED_ARRAY], g.z0, g.z1, g.y0,
                                           g.y1);
    if (s->whole_planes) return (uint64_t)((s->region.z1 - s->region.z0) * r->x->layout->plane_pitch_bytes);
    return (uint64_t)(mx_region_rows(s->region) * r->view.row_pitch_bytes);
}
