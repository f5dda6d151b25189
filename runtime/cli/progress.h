/* SPDX-License-Identifier: BSD-3-Clause */
/* progress.h - shows how far a phase is, its speed, and the remaining time: on a terminal one line that is
 * overwritten, in a log file a line per minute.
 */
#ifndef MX_PROGRESS_H
#define MX_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct mx_progress {
    const char *program, *label, *unit; /* unit "updates": rate in Gupdates/s */
    int64_t total;
    const char *more; /* shown at the end of the line; NULL = nothing. May be set at any time */
    uint64_t begin_ns, shown_ns;
    bool on, terminal;
};

/* label: of the phase. total: what mx_progress_update will reach, in units. quiet: nothing is shown. */
void mx_progress_begin(struct mx_progress *progress, const char *program, const char *label, const char *unit,
                       int64_t total, bool quiet);
void mx_progress_update(struct mx_progress *progress, int64_t done);
void mx_progress_end(struct mx_progress *progress);

#endif
