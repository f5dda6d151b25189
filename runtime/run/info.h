/* SPDX-License-Identifier: BSD-3-Clause */
/* info.h - what memext sees of the machine: `memext info`, mx_machine_report. */
#ifndef MX_RUN_INFO_H
#define MX_RUN_INFO_H

#include "machine/machine.h"

#include <jansson.h>
#include <memext/memext.h>

/* path: a directory, file or block device to look at besides; NULL = none. dram_bytes: what a run would be
 * given, 0 = all that this process may use. */
int mx_info_json(const struct mx_machine *machine, const char *path, uint64_t dram_bytes, mx_why *why,
                 json_t **out);

#endif
