/* SPDX-License-Identifier: BSD-3-Clause */
/* walk_sums.c - what the algorithms share besides the walk: shapes, and sums of bytes. */
#include "schedule/walk.h"

int64_t mx_plan_slab(const struct mx_problem *problem, const struct mx_plan *plan) {
    return mx_max(1, mx_min(plan->slab, problem->nz + 2 * problem->h));
}

int64_t mx_plan_ahead(const struct mx_plan *plan) { return plan->ahead > 0 ? plan->ahead : 2; }

void mx_shape_of_form(const struct mx_problem *problem, struct mx_shape *shape) {
    shape->pairs = mx_reads_old(problem);
    if (shape->pairs && shape->in_place) shape->init_both = false;
}

void mx_shape_of_neighbours(const struct mx_problem *p, struct mx_shape *shape) {
    for (int end = 0; end < 2; end++)
        if (mx_has_neighbour(p, end)) shape->given[end] = shape->max_levels * p->h;
}

/* Whole planes are sent, of both arrays where both are live. Before the first sweep as many are read as the
 * longest sends: what a STORE does not bring of them, fixed frames, stays as it was. */
void mx_add_neighbours(const struct mx_problem *p, const struct mx_plan *plan, const struct mx_layout *layout,
                       struct mx_traffic *t) {
    const int64_t bytes = mx_neighbours(p) * (mx_reads_old(p) ? 2 : 1) * p->h * layout->plane_pitch_bytes;
    for (struct mx_sweeps all = mx_sweeps_of(p, plan->bt); mx_sweeps_next(&all);)
        t->sent_bytes += all.count * all.levels * bytes;
    if (t->sent_bytes > 0) t->first_sent_bytes = mx_sweep_levels(p, plan->bt) * bytes;
    t->read_bytes += t->first_sent_bytes;
}

int64_t mx_initial_buffers(const struct mx_shape *shape) {
    return (shape->init_both ? 2 : 1) * (shape->pairs ? 2 : 1);
}

/* Rows or planes of C that pass j of a cut loads. */
static struct mx_range fixed_range(const struct mx_cut *c, int64_t j, mx_window_fn *window, int64_t levels,
                                   int64_t hc) {
    struct mx_range r = mx_between(window(c, j, 1, levels), window(c, j, levels, levels));
    for (int64_t l = 2; l <= levels && (c->ghost[0] || c->ghost[1]); l++)
        r = mx_hull(r, window(c, j, l, levels));
    return mx_wider(r, hc);
}

/* Bytes of the pieces of rows `y` of all of the planes `z`. */
static int64_t fixed_bytes(const struct mx_problem *p, const struct mx_fixed_layout *f, bool ghost_y,
                           bool ghost_z, struct mx_range y, struct mx_range z) {
    struct mx_piece ys[MX_PIECES], zs[MX_PIECES];
    const int ny = mx_load_pieces(p, MX_DIM_Y, ghost_y, y, ys),
              nz = mx_load_pieces(p, MX_DIM_Z, ghost_z, z, zs);
    int64_t bytes = 0;
    for (int j = 0; j < ny; j++)
        for (int k = 0; k < nz; k++)
            bytes += mx_fixed_span_sum(f, zs[k].lo + zs[k].shift, zs[k].hi + zs[k].shift,
                                       ys[j].lo + ys[j].shift, ys[j].hi + ys[j].shift);
    return bytes;
}

int64_t mx_fixed_traffic(const struct mx_problem *p, const struct mx_layout *layout, const struct mx_cut *y,
                         mx_window_fn *window_y, const struct mx_cut *z, mx_window_fn *window_z,
                         int64_t levels) {
    int64_t total = 0;
    for (int32_t i = 0; i < mx_fixed_count(p); i++) {
        const struct mx_fixed_layout *f = &layout->fixed[i];
        if (mx_is_profile(p, i)) continue;
        const int64_t hc = p->system->hc, align = mx_max(1, f->align_bytes);
        const bool alike = f->plane_pitch_bytes % align == 0; /* every plane's transfer is as long */
        const struct mx_range one = {p->h, p->h + 1};
        int64_t planes = 0;
        for (int64_t k = 0; k < z->count; k++) {
            const struct mx_range r = fixed_range(z, k, window_z, levels, hc);
            planes += mx_length(r);
            for (int64_t j = 0; j < y->count && !alike; j++)
                total += fixed_bytes(p, f, y->ghost[0], z->ghost[0] && mx_sides_periodic(&p->sides, MX_DIM_Z),
                                     fixed_range(y, j, window_y, levels, mx_reach_y_of_fixed(p)), r);
        }
        for (int64_t j = 0; j < y->count && alike; j++)
            total += planes * fixed_bytes(p, f, y->ghost[0], false,
                                          fixed_range(y, j, window_y, levels, mx_reach_y_of_fixed(p)), one);
    }
    return total;
}

int64_t mx_updates_once(const struct mx_problem *p) { return p->nx * p->ny * p->nz * p->nt; }
