/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/progress.h"
#include "execute/execute.h"
#include "machine/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BAR = 30 };
static const uint64_t bar_every_ns = 100000000, line_every_ns = UINT64_C(60000000000);

void mx_progress_begin(struct mx_progress *p, const char *program, const char *label, const char *unit,
                       int64_t total, bool quiet) {
    *p = (struct mx_progress){
        .program = program, .label = label, .unit = unit, .total = total > 0 ? total : 1};
    p->begin_ns = mx_clock_ns();
    p->terminal = isatty(STDERR_FILENO) == 1;
    p->on = !quiet;
    if (!p->terminal) p->shown_ns = p->begin_ns; /* a phase of less than a minute leaves no line */
}

static void show_bar(const struct mx_progress *p, double share) {
    char bar[BAR + 1];
    int full = (int)(share * BAR);
    memset(bar, '-', BAR);
    memset(bar, '#', (size_t)full);
    bar[BAR] = 0;
    fprintf(stderr, "\r%-8s [%s] %5.1f %%", p->label, bar, 100 * share);
}

static void show(struct mx_progress *p, int64_t done, uint64_t now) {
    double share = (double)done / (double)p->total, seconds = (double)(now - p->begin_ns) * 1e-9;
    if (share > 1) share = 1;
    const long left = share > 0 ? (long)(seconds * (1 - share) / share) : 0;
    if (p->terminal)
        show_bar(p, share);
    else
        fprintf(stderr, "%s: %s %.1f %% after %ld:%02ld", p->program, p->label, 100 * share,
                (long)seconds / 60, (long)seconds % 60);
    fprintf(stderr, "  %.3f G%s/s  %ld:%02ld left", seconds > 0 ? (double)done / seconds * 1e-9 : 0, p->unit,
            left / 60, left % 60);
    if (p->more != NULL) fprintf(stderr, "  %s", p->more);
    fputs(p->terminal ? " \033[K" : "\n", stderr);
    p->shown_ns = now;
}

void mx_progress_update(struct mx_progress *p, int64_t done) {
    if (!p->on) return;
    uint64_t now = mx_clock_ns();
    if (now - p->shown_ns >= (p->terminal ? bar_every_ns : line_every_ns)) show(p, done, now);
}

void mx_progress_end(struct mx_progress *p) {
    if (p->on && p->terminal) fprintf(stderr, "\r\033[K");
    p->on = false;
}
