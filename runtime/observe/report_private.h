/* SPDX-License-Identifier: BSD-3-Clause */
/* report_private.h - parts of a report that both JSON and text have. */
#ifndef MX_REPORT_PRIVATE_H
#define MX_REPORT_PRIVATE_H

#include "observe/report.h"

/* Returns what is predicted to take longest. */
static inline const char *mx_report_slowest(const struct mx_report_accel *a) {
    if (a->kernel_s >= a->bus_s && a->kernel_s >= a->flash_s) return "kernel";
    return a->bus_s >= a->flash_s ? "bus" : "flash";
}

#endif
