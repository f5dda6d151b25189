/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_room.h - what the engine of accelerators needs there beside the arrays. */
#ifndef MX_ACCEL_ROOM_H
#define MX_ACCEL_ROOM_H

#include "system/points.h"

/* Of a device that is not here, at most: tables of points, and room for what is gathered before it is got.
 * Such memory is to be left to it. */
uint64_t mx_accel_extra_bytes(const struct mx_problem *problem, const struct mx_sources *sources,
                              const struct mx_points *probes, bool norms);

/* Likewise of parameters over time, which have a value for every step from the run's beginning. */
static inline int64_t mx_accel_series_steps(const struct mx_problem *p) {
    return p->done + p->nt > 1 ? p->done + p->nt : 1;
}
/* Values before those of parameter `series` of them. */
static inline int64_t mx_accel_series_at(const struct mx_problem *p, int32_t series) {
    int64_t n = 0;
    for (int32_t i = 0; i < series; i++)
        n += mx_accel_series_steps(p) * mx_series_each(&p->system->series[i]);
    return n;
}
static inline uint64_t mx_accel_series_bytes(const struct mx_problem *p) {
    const int32_t n = p->system != NULL ? p->system->n_series : 0;
    return (uint64_t)mx_accel_series_at(p, n) * sizeof(double);
}

#endif
