/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h - what the options say of every device that a run opens. */
#ifndef MX_ASK_DEVICE_H
#define MX_ASK_DEVICE_H

#include "ask/options.h"

#include <memext/memext.h>

/* Backend, transfers and the fault of tests, with the place `path`. The caller says what the device is for:
 * expect_bytes, force, resume, read_only, keep and no_lock are 0. `path` and strings of the options are not
 * copied. */
struct mx_device_options mx_asked_device(const struct mx_options *options, const char *path);

#endif
