/* SPDX-License-Identifier: BSD-3-Clause */
/* info.h - describes the machine for `memext info` and mx_machine_report. */
#ifndef MX_RUN_INFO_H
#define MX_RUN_INFO_H

#include "machine/machine.h"

#include <jansson.h>
#include <memext/memext.h>

/* Makes the description. path: a directory, file or block device to describe too; NULL = none. dram_bytes:
 * DRAM that a run would get; 0 = all that this process may use. */
int mx_info_json(const struct mx_machine *machine, const char *path, uint64_t dram_bytes, mx_why *why,
                 json_t **out);

#endif
