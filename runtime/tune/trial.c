/* SPDX-License-Identifier: BSD-3-Clause */
/* trial.c - the grid that rates are measured with. */
#include "tune/trial.h"

#include "machine/minmax.h"

enum { TRIAL_ROWS = 512, LEAST_ROWS = 16, LEAST_PLANES = 64, LINE_BYTES = 64 };

int mx_trial_make(const struct mx_problem *p, uint64_t memory_bytes, mx_why *why, struct mx_trial *t) {
    const int64_t h2 = 2 * p->h, hy = mx_halo_y(p), least = LEAST_ROWS + h2, beside = p->flat ? 1 : least,
                  state = mx_max(mx_cell_bytes(p, 0), mx_cell_bytes(p, 1));
    const int64_t cells = (int64_t)memory_bytes / (2 * state + mx_fixed_cell_bytes(p));
    t->problem = *p;
    t->problem.nx = mx_max(1, mx_min(p->nx, cells / (least * beside) - h2 - LINE_BYTES));
    const int64_t rows = cells / (t->problem.nx + h2 + LINE_BYTES);
    t->problem.ny = mx_max(1, mx_min(mx_min(p->ny, TRIAL_ROWS), rows / least - h2));
    /* A kernel sees planes of its own grid alone; calibrate_engines.c asks for more, and says which those
     * are. */
    const int64_t planes = p->system != NULL ? p->nz : mx_max(p->nz, LEAST_PLANES);
    t->problem.nz = mx_max(1, mx_min(planes, rows / (t->problem.ny + 2 * hy) - h2));
    for (int i = 0; i < MX_TRIAL_LEVELS; i++)
        t->window[i] = (struct mx_window){(int32_t)hy, (int32_t)(t->problem.ny + hy), p->h,
                                          (int32_t)t->problem.nz + p->h};
    const int err = mx_layout_make(&t->problem, LINE_BYTES, false, why, &t->layout);
    for (int32_t i = 0; i < mx_fixed_count(p) && err == 0; i++) /* one row of a profile stands for all */
        if (mx_is_profile(p, i))
            t->layout.fixed[i].bytes =
                ((t->problem.nx + h2) * mx_dtype_bytes(p->system->fixed[i].dtype) + LINE_BYTES - 1) /
                LINE_BYTES * LINE_BYTES;
    return err;
}

struct mx_fixed_view mx_trial_fixed(const struct mx_trial *t, int32_t i, char *base) {
    const struct mx_fixed_layout *f = &t->layout.fixed[i];
    if (mx_is_profile(&t->problem, i)) return (struct mx_fixed_view){.base = base, .align_bytes = 1};
    return (struct mx_fixed_view){.base = base,
                                  .slots = t->layout.planes,
                                  .slot_pitch_bytes = f->plane_pitch_bytes,
                                  .row_pitch_bytes = f->row_pitch_bytes,
                                  .file_plane_pitch_bytes = f->plane_pitch_bytes,
                                  .align_bytes = 1};
}
