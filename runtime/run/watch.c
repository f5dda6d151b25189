/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.c - what others see of a run while it goes on. */
#include "run/state.h"

#include "machine/clock.h"

#include <stdarg.h>
#include <stdio.h>

void mx_run_begin_phase(struct mx_run *r, const char *phase, const char *unit, int64_t total) {
    struct mx_run_progress *p = &r->progress;
    pthread_mutex_lock(&r->lock);
    p->n_phases++;
    p->done = 0;
    p->total = total;
    snprintf(p->phase, sizeof p->phase, "%s", phase);
    snprintf(p->unit, sizeof p->unit, "%s", unit);
    r->phase_begin_ns = mx_clock_ns();
    pthread_mutex_unlock(&r->lock);
}

void mx_run_progress_to(struct mx_run *r, int64_t done) {
    pthread_mutex_lock(&r->lock);
    r->progress.done = done;
    r->progress.seconds = (double)(mx_clock_ns() - r->phase_begin_ns) * 1e-9;
    pthread_mutex_unlock(&r->lock);
}

void mx_run_committed(struct mx_run *r) {
    r->committed = true;
    pthread_mutex_lock(&r->lock);
    r->progress.committed_step = r->note.time;
    pthread_mutex_unlock(&r->lock);
}

void mx_run_remark(const struct mx_run *r, const char *format, ...) {
    char sentence[1200];
    va_list args;
    if (r->remark == NULL) return;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    r->remark(r->context, sentence);
}
