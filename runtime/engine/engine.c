/* SPDX-License-Identifier: BSD-3-Clause */
/* engine.c - the table of engines. */
#include "engine/work.h"
#include "system/profile.h"

#include <string.h>

const struct mx_engine_ops *const mx_engines[] = {&mx_engine_iblock, &mx_engine_tiled, &mx_engine_device,
                                                  NULL};

const struct mx_engine_ops *mx_engine_find(const char *name) {
    for (const struct mx_engine_ops *const *e = mx_engines; *e != NULL; e++)
        if (strcmp((*e)->name, name) == 0) return *e;
    return NULL;
}

/* The whole grid goes around in z, and this part of it may reach around. */
static bool goes_around(const struct mx_problem *p) {
    return mx_sides_periodic(&p->sides, MX_DIM_Z) || (mx_has_neighbour(p, 0) && p->first_plane == 0) ||
           (mx_has_neighbour(p, 1) && p->first_plane + p->nz == mx_all_planes(p));
}

struct mx_fixed_view mx_view_of_profile(const struct mx_problem *p, int32_t i, char *base) {
    const struct mx_profile *q = &p->system->profile[i];
    return (struct mx_fixed_view){.base = base,
                                  .row_pitch_bytes = q->row_pitch_bytes,
                                  .offset_bytes = q->first_bytes + p->first_plane * q->plane_pitch_bytes,
                                  .file_plane_pitch_bytes = q->plane_pitch_bytes,
                                  .align_bytes = 1,
                                  .first_plane = p->h - p->first_plane,
                                  .period_planes = goes_around(p) ? mx_all_planes(p) : 0};
}
