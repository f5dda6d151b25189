/* SPDX-License-Identifier: BSD-3-Clause */
/* rows.h - short names for what many rows of the table of options say, for the files rows_*.c. */
#ifndef MX_ASK_ROWS_H
#define MX_ASK_ROWS_H

#include "ask/table.h"
#include "ask/take.h"
#include "ask/values.h"

/* The rows of each file; each list ends with name NULL. */
extern const struct mx_option mx_rows_problem[], mx_rows_files[], mx_rows_plan[], mx_rows_place[],
    mx_rows_wavefront[];

#define FIELD(member) .offset = offsetof(struct mx_options, member)
#define LIMITS(least, most) .low = (least), .high = (most)
#define FIRST MX_CMD_RUN | MX_CMD_TUNE
enum {
    RUN = MX_CMD_RUN | MX_CMD_LIBRARY,
    TUNE = MX_CMD_TUNE,
    BOTH = RUN | MX_CMD_TUNE,
    EXPORT = MX_CMD_EXPORT,
    INFO = MX_CMD_INFO,
    LOOP = MX_CMD_WAVEFRONT,
    LOOPS = MX_CMD_WAVEFRONT | MX_CMD_TUNE_WAVEFRONT,
    EVERY = MX_CMD_RUN | TUNE | INFO | EXPORT | LOOPS
};

#endif
