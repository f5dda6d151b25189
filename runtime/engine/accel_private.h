/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_private.h - inside engine/ only: shared by the files accel_*.c that handle rows after a level.
 * Functions return 0 or -errno; the accelerator remembers the error with its sentence. *number: the last
 * operation in the queue of the levels. */
#ifndef MX_ACCEL_PRIVATE_H
#define MX_ACCEL_PRIVATE_H

#include "engine/accel_after.h"

enum { LANES = 8, POINT_NUMBERS = 8, LEAST_BYTES = 1 << 20, PENDING = 256 };

/* Gathered values: of the probes [from, from + n) of a window. */
struct gathered {
    int64_t call, step, array; /* array: of the system */
    int64_t y0, y1, z0, z1;
    int64_t from, n, base;
};

struct mx_accel_after {
    mx_accel *accel;
    const struct mx_work *work;
    const struct mx_problem *problem;
    struct mx_after after;      /* its reach is not used */
    int64_t n_sources, longest; /* steps of the longest wavelet */
    char *source, *amplitude, *probe, *value, *lane, *old;
    char *series;         /* the engine's */
    int64_t values, next; /* room for values; where the next ones go */
    struct gathered gathered[PENDING];
    int64_t first, end; /* first and end of those pending, at i % PENDING */
    int64_t lane_bytes, old_planes;
    double *host_value, *host_lane; /* lanes: of the change, then of each reduction */
    int32_t n_reduce;
};

struct mx_accel_box {
    int64_t y0, y1, z0, z1;
};

static inline bool mx_accel_copies_in(const struct mx_after *a, int dim) {
    return !mx_sides_fixed(&a->sides, dim) && !(a->ghost[dim] && mx_sides_periodic(&a->sides, dim));
}

/* The array of the view that level l writes. */
static inline int mx_accel_written(const struct mx_advance *a, int32_t l) { return (a->parity + l + 1) & 1; }

static inline int64_t mx_accel_slot(const struct mx_view *v, int array, int64_t z) {
    return (z + v->z_offset) % v->slots[array];
}

static inline int64_t mx_accel_quantities(const struct mx_problem *p) { return mx_field_count(p, 0) + 1; }

/* ---- accel_there.c: memory there, and launches */

int mx_accel_transfer(struct mx_accel_after *d, bool in, char *there, void *here, int64_t bytes);
int mx_accel_take(struct mx_accel_after *d, int64_t bytes, const char *what, char **out);
struct mx_accel_level mx_accel_window(const struct mx_accel_after *d, const struct mx_advance *a, int32_t l,
                                      enum mx_accel_kernel kernel, int64_t y0, int64_t y1, int64_t z0,
                                      int64_t z1);
int mx_accel_launch(struct mx_accel_after *d, struct mx_accel_level *k, int64_t *number);

/* ---- accel_points.c */

int64_t mx_accel_wavelet_bytes(const struct mx_sources *s);
int64_t mx_accel_room_for_values(const struct mx_points *probes);
int mx_accel_put_sources(struct mx_accel_after *d, const struct mx_sources *s);
int mx_accel_make_probes(struct mx_accel_after *d, const struct mx_points *probes);
int mx_accel_add_sources(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t z0,
                         int64_t z1, int64_t *number);
int mx_accel_see_probes(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t call,
                        int64_t *number);

/* ---- accel_norms.c */

int64_t mx_accel_room_for_lanes(const struct mx_problem *p);
int mx_accel_make_norms(struct mx_accel_after *d, const struct mx_view *v);
int mx_accel_take_norms(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t z0,
                        int64_t z1, bool old, int64_t *number);

/* ---- accel_frames.c */

/* Sets the cells of odd-node sides to 0 (engine/after.h), in planes [z0,z1) that level l has computed. */
int mx_accel_make_zeros(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t z0,
                        int64_t z1, int64_t *number);
int mx_accel_refresh_x(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t *number);
int mx_accel_refresh_y(struct mx_accel_after *d, const struct mx_advance *a, int array,
                       const struct mx_accel_box *b, int64_t *number);
int mx_accel_refresh_z(struct mx_accel_after *d, const struct mx_advance *a, int array,
                       const struct mx_accel_box *b, int64_t *number);

#endif
