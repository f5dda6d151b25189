/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - options of the command become options of a device. */
#include "ask/device.h"

struct mx_device_options mx_asked_device(const struct mx_options *o, const char *path) {
    return (struct mx_device_options){.size = sizeof(struct mx_device_options),
                                      .backend = o->backend,
                                      .path = path,
                                      .queue_depth = (uint32_t)o->queue_depth,
                                      .max_request_bytes = (uint32_t)o->request_bytes,
                                      .workers = (uint32_t)o->workers,
                                      .advice = o->advice,
                                      .sqpoll = o->sqpoll,
                                      .iopoll = o->iopoll,
                                      .uncached = o->uncached,
                                      .no_register = o->no_register,
                                      .fault = o->fault};
}
