/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h - options of a run, for every device that it opens. */
#ifndef MX_ASK_DEVICE_H
#define MX_ASK_DEVICE_H

#include "ask/options.h"

#include <memext/memext.h>

/* Returns the options of a device at `path`: backend, transfers, and faults for tests. The caller sets what
 * depends on the device's use: expect_bytes, force, resume, read_only, keep and no_lock are 0. `path` and the
 * strings of the options are not copied. */
struct mx_device_options mx_asked_device(const struct mx_options *options, const char *path);

#endif
