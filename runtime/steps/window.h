/* SPDX-License-Identifier: BSD-3-Clause */
/* window.h - the types by which schedules tell engines what to compute: windows of levels, and the rows that
 * strips hand to one another (seams). */
#ifndef MX_WINDOW_H
#define MX_WINDOW_H

#include <stdint.h>

/* Cells that one level computes: rows [y0,y1), planes [z0,z1) in Buffer coordinates, interior only; empty
 * when y0 >= y1 or z0 >= z1. In x a window is always the whole interior. Kernels also copy the x frame cells
 * of every row that they write, so the x frame of the second array needs no step of its own. */
struct mx_window {
    int32_t y0, y1, z0, z1; /* may be negative in ghost layers */
};

/* One move of a front along z: it produces planes [from - l*h, to - l*h) of level l (0 = loaded planes). h =
 * 0: there is no front, and windows and seams count as they are. A schedule with very many levels has tables
 * of all levels of a Block, and moves the front through them: at each move only few levels have planes. */
struct mx_front {
    int64_t from, to;
    int32_t h;
};

/* Cuts planes [z0,z1) of level l to those between the two positions of the front; empty when z0 >= z1. */
static inline void mx_front_cut(const struct mx_front *f, int64_t level, int64_t *z0, int64_t *z1) {
    const int64_t behind = level * f->h;
    if (f->h == 0) return;
    if (*z0 < f->from - behind) *z0 = f->from - behind;
    if (*z1 > f->to - behind) *z1 = f->to - behind;
    if (*z1 < *z0) *z1 = *z0;
}

/* Returns window l, which computes level l+1, cut by the front. */
static inline struct mx_window mx_front_window(const struct mx_front *f, const struct mx_window *window,
                                               int32_t l) {
    struct mx_window w = window[l];
    int64_t z0 = w.z0, z1 = w.z1;
    mx_front_cut(f, (int64_t)l + 1, &z0, &z1);
    if (z0 >= z1) z0 = z1 = w.z0;
    w.z0 = (int32_t)z0, w.z1 = (int32_t)z1;
    return w;
}

/* The seams of a y-strip (stream): for level l (0 = the loaded data) and plane z, the 2h rows just left of
 * what this strip owns at that level. Rows are row_pitch apart; plane z of level l starts at base + (l *
 * planes_per_level + (z - z0)) * seam_rows * row_pitch, z0 the first plane that the call has of the level.
 * See schedule/stream.c. NULL base = none. */
struct mx_seam {
    char *base;
    int64_t planes_per_level;
    int64_t seam_rows;
    struct mx_front front;
    const int32_t *first_z;  /* per level 0..levels */
    const int32_t *n_planes; /* per level: the planes from first_z on that this call inserts or saves, before
                                the front cuts them. For level 0 these are the planes loaded for this call,
                                for higher levels those of the level's window. 0 = none */
    const int32_t *first_y;  /* per level 0..levels: Buffer row of seam row 0 */
    const int32_t *n_rows;   /* per level: rows that count, <= seam_rows */
};

/* The planes of a level's seam that a call has. */
struct mx_seam_planes {
    int64_t z0, z1;
};
static inline struct mx_seam_planes mx_seam_planes(const struct mx_seam *f, int32_t level) {
    struct mx_seam_planes p = {f->first_z[level], f->first_z[level] + (int64_t)f->n_planes[level]};
    mx_front_cut(&f->front, level, &p.z0, &p.z1);
    return p;
}

#endif
