/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_room.h - memory that the engine needs on an accelerator, beside the arrays. */
#ifndef MX_ACCEL_ROOM_H
#define MX_ACCEL_ROOM_H

#include "system/points.h"

/* Returns the most bytes that it needs on a device that is not `here`: tables of points, and room for
 * gathered values before they are transferred. The plan must leave this memory free. */
uint64_t mx_accel_extra_bytes(const struct mx_problem *problem, const struct mx_sources *sources,
                              const struct mx_points *probes, bool norms);

/* Steps whose values of parameters over time are on the device: all from the run's beginning. */
static inline int64_t mx_accel_series_steps(const struct mx_problem *p) {
    return p->done + p->nt > 1 ? p->done + p->nt : 1;
}
/* Number of values before those of the parameter over time number `series`. */
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
