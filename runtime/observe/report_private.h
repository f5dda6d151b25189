/* SPDX-License-Identifier: BSD-3-Clause */
/* report_private.h - what a report says both as JSON and as text. */
#ifndef MX_REPORT_PRIVATE_H
#define MX_REPORT_PRIVATE_H

#include "observe/report.h"

/* Updates a second. */
static inline double mx_report_rate(const struct mx_report *r) {
    const struct mx_problem *p = &r->problem;
    double cells = (double)p->nx * (double)p->ny * (double)p->nz * (double)(r->steps_done - r->resumed_from);
    return r->seconds > 0 ? cells / r->seconds : 0;
}

/* What takes longest, by prediction. */
static inline const char *mx_report_slowest(const struct mx_report_accel *a) {
    if (a->kernel_s >= a->bus_s && a->kernel_s >= a->flash_s) return "kernel";
    return a->bus_s >= a->flash_s ? "bus" : "flash";
}

#endif
