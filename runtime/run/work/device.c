/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - how a run opens a device. */
#include "run/work/work.h"

#include "ask/device.h"

/* Copying threads of a mapped backend, 0 = as many as it takes by itself: with an accelerator that computes
 * elsewhere all threads of the plan, which have nothing else to do, and copy what goes through its bus. */
static uint32_t workers(const struct mx_run *r) {
    const bool elsewhere = r->accel != NULL && !mx_accel_facts(r->accel)->here;
    if (r->o.workers > 0 || !elsewhere) return (uint32_t)r->o.workers;
    const int32_t threads = r->tuned.plan.threads; /* 0 = not known: as many as it takes by itself */
    return (uint32_t)(threads < 64 ? threads : 64);
}

struct mx_device_options mx_run_device_options(const struct mx_run *r, const char *path) {
    struct mx_device_options d = mx_asked_device(&r->o, path);
    d.workers = workers(r);
    return d;
}
