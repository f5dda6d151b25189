/* progress.h - one line on a terminal: how far, how fast, how long still. Nothing when stderr is no terminal.
 */
#ifndef MX_PROGRESS_H
#define MX_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct mx_progress {
    const char *label, *unit; /* "updates": rate in G/s */
    int64_t total, first, shown_percent;
    uint64_t begin_ns, shown_ns;
    bool on;
};

void mx_progress_begin(struct mx_progress *progress, const char *label, const char *unit, int64_t total,
                       bool quiet);
void mx_progress_update(struct mx_progress *progress, int64_t done);
void mx_progress_end(struct mx_progress *progress);

#endif
