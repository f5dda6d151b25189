#include "cli/progress.h"
#include "execute/execute.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BAR = 30, EVERY_NS = 100000000 };

void mx_progress_begin(struct mx_progress *p, const char *label, const char *unit, int64_t total,
                       bool quiet) {
    *p = (struct mx_progress){
        .label = label, .unit = unit, .total = total > 0 ? total : 1, .begin_ns = mx_clock_ns()};
    p->on = !quiet && isatty(STDERR_FILENO) == 1;
}

static void show(struct mx_progress *p, int64_t done, uint64_t now) {
    char bar[BAR + 1];
    double share = (double)done / (double)p->total, seconds = (double)(now - p->begin_ns) * 1e-9;
    if (share > 1) share = 1;
    int full = (int)(share * BAR);
    memset(bar, '-', BAR);
    memset(bar, '#', (size_t)full);
    bar[BAR] = 0;
    double left = share > 0 ? seconds * (1 - share) / share : 0;
    fprintf(stderr, "\r%-8s [%s] %5.1f %%  %.3f G%s/s  %d:%02d left \033[K", p->label, bar, 100 * share,
            seconds > 0 ? (double)done / seconds * 1e-9 : 0, p->unit, (int)left / 60, (int)left % 60);
    p->shown_ns = now;
}

void mx_progress_update(struct mx_progress *p, int64_t done) {
    uint64_t now = p->on ? mx_clock_ns() : 0;
    if (p->on && now - p->shown_ns >= EVERY_NS) show(p, done, now);
}

void mx_progress_end(struct mx_progress *p) {
    if (p->on) fprintf(stderr, "\r\033[K");
    p->on = false;
}
