/* SPDX-License-Identifier: BSD-3-Clause */
/* sweeps.c - how a run is cut into sweeps: at due steps, and between them every bt levels. */
#include "schedule/geometry.h"
#include "schedule/schedule.h"

static int64_t greatest_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* Steps, counted from the run's first one. Between multiples of the larger number lie a stretch up to the
 * first multiple of the smaller one, stretches from one of these to the next, and one that is left. The same
 * ones come again after `period` multiples of the larger one. */
struct mx_sweeps mx_sweeps_of(const struct mx_problem *p, int64_t bt) {
    struct mx_sweeps s = {.bt = mx_max(bt, 1), .unit = mx_levels_a_step(p), .part = MX_SWEEP_PARTS};
    s.small = mx_min(p->due[0], p->due[1]);
    s.large = mx_max(p->due[0], p->due[1]);
    if (s.small == 0) s.small = s.large, s.large = 0;
    s.first = p->done;
    s.end = p->done + p->nt;
    s.period = s.large > 0 ? s.small / greatest_divisor(s.large, s.small) : 1;
    s.pieces = s.first < s.end;
    if (s.large > 0 && s.pieces > 0) s.pieces += (s.end - 1) / s.large - s.first / s.large;
    return s;
}

/* The next piece between multiples of the larger number, for all that are like it. */
static void next_piece(struct mx_sweeps *s) {
    const int64_t i = s->piece, inner = s->pieces - 2, base = s->large > 0 ? s->first / s->large : 0;
    const int64_t from = i == 0 ? s->first : (base + i) * s->large;
    const int64_t end = i == s->pieces - 1 ? s->end : (base + i + 1) * s->large;
    const bool alike = i > 0 && i <= inner;
    const int64_t count = alike ? (inner - i) / s->period + 1 : 1;
    int64_t head = end - from, middle = 0;
    if (s->small > 0) head = mx_min(head, (s->small - from % s->small) % s->small);
    if (s->small > 0) middle = (end - from - head) / s->small;
    s->stretch[0] = head, s->stretches[0] = count;
    s->stretch[1] = s->small, s->stretches[1] = count * middle;
    s->stretch[2] = end - from - head - middle * s->small, s->stretches[2] = count;
    s->piece = alike && i == mx_min(inner, s->period) ? s->pieces - 1 : i + 1;
    s->part = 0;
}

bool mx_sweeps_next(struct mx_sweeps *s) {
    for (;;) {
        while (s->part < MX_SWEEP_PARTS) {
            const int64_t levels = s->stretch[s->part] * s->unit, count = s->stretches[s->part];
            s->part++;
            s->full += levels / s->bt * count;
            s->levels = levels % s->bt;
            s->count = count;
            if (s->levels > 0 && count > 0) return true;
        }
        if (s->piece == s->pieces) break;
        next_piece(s);
    }
    s->levels = s->bt;
    s->count = s->full;
    s->full = 0;
    return s->count > 0;
}

int64_t mx_sweep_levels(const struct mx_problem *p, int64_t bt) {
    struct mx_sweeps s = mx_sweeps_of(p, bt);
    int64_t longest = 1;
    while (mx_sweeps_next(&s)) longest = mx_max(longest, s.levels);
    return longest;
}

int64_t mx_sweep_count(const struct mx_problem *p, int64_t bt) {
    struct mx_sweeps s = mx_sweeps_of(p, bt);
    int64_t count = 0;
    while (mx_sweeps_next(&s)) count += s.count;
    return count;
}

/* Behind the last due step that the run passes sweeps of bt levels follow one another. */
int64_t mx_sweep_last(const struct mx_problem *p, int64_t bt) {
    const int64_t unit = mx_levels_a_step(p), end = p->done + p->nt;
    int64_t due = p->done;
    for (int i = 0; i < 2; i++)
        if (p->due[i] > 0 && end > 0) due = mx_max(due, (end - 1) / p->due[i] * p->due[i]);
    const int64_t begin = (due - p->done) * unit, levels = (end - due) * unit;
    return levels > 0 ? begin + (levels - 1) / mx_max(bt, 1) * mx_max(bt, 1) : begin;
}

int64_t mx_sweep_end(const struct mx_problem *p, int64_t time) {
    const int64_t unit = mx_levels_a_step(p), step = p->done + time / unit;
    int64_t end = p->done + p->nt;
    for (int i = 0; i < 2; i++)
        if (p->due[i] > 0 && p->due[i] <= end) end = mx_min(end, (step / p->due[i] + 1) * p->due[i]);
    return (end - p->done) * unit;
}
