/* SPDX-License-Identifier: BSD-3-Clause */
#include "wavefront/kernel.h"
#include "machine/minmax.h"

#include <string.h>

/* ---- the plain loop, and one record by it */

static inline double cell(double east, double zr, double west, double zb, double south, double zu,
                          double north, double zv, double zz, double own) {
    const double qa = east * zr + west * zb + south * zu + north * zv + zz;
    return own + 0.175 * (qa - own);
}

void mx_wf_plain_row(const struct mx_wf_plain *p, int64_t cols) {
    double *za = p->za;
    for (int64_t j = 1; j <= cols; j++) {
        const double qa = za[j + 1] * p->zr[j] + za[j - 1] * p->zb[j] + p->south[j] * p->zu[j] +
                          p->north[j] * p->zv[j] + p->zz[j];
        za[j] += 0.175 * (qa - za[j]);
    }
}

/* Where the first or last columns are in some lanes only: a lane after the other, from below, since the lane
 * above has its new value in the record before and the one below its old value in the record after. */
static void edge_step(const struct mx_wf_group *g, int64_t t) {
    struct mx_wf_record *r = g->at + t;
    double now[MX_WF_LANES];
    memcpy(now, r->za, sizeof now);
    for (int64_t k = 0; k <= g->last; k++) {
        const int64_t c = t - k;
        if (c < 1 || c > g->cols) continue;
        const double north = k > 0 ? r[-1].za[k - 1] : g->north[c * g->north_step];
        const double south = k < g->last ? r[1].za[k + 1] : g->south[c * g->south_step];
        now[k] = cell(r[1].za[k], r->zr[k], r[-1].za[k], r->zb[k], south, r->zu[k], north, r->zv[k], r->zz[k],
                      r->za[k]);
    }
    memcpy(r->za, now, sizeof now);
}

/* ---- dispatch */

static bool has_avx2(void) {
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

const char *mx_wf_isa(void) { return has_avx2() ? "avx2" : "plain"; }

static void one_group(mx_wf_steps_fn *steps, const struct mx_wf_group *g, int64_t t0, int64_t t1) {
    int64_t t = mx_max(t0, 1);
    const int64_t end = mx_min(t1, g->cols + MX_WF_LANES), full = mx_min(end, g->cols + 1);
    for (; t < end && t < MX_WF_LANES; t++) edge_step(g, t);
    if (t < full) {
        steps(g, 1, t, full);
        t = full;
    }
    for (; t < end; t++) edge_step(g, t);
}

/* Two groups: together where both are full, one after the other where they are not. */
static void two_groups(mx_wf_steps_fn *steps, const struct mx_wf_group *g, int64_t t0, int64_t t1) {
    const int64_t from = mx_min(mx_max(t0, MX_WF_LANES + MX_WF_LAG), t1);
    const int64_t upto = mx_max(mx_min(t1, g->cols + 1), from);
    one_group(steps, &g[0], t0, from);
    one_group(steps, &g[1], t0 - MX_WF_LAG, from - MX_WF_LAG);
    if (from < upto) steps(g, 2, from, upto);
    one_group(steps, &g[0], upto, t1);
    one_group(steps, &g[1], upto - MX_WF_LAG, t1 - MX_WF_LAG);
}

void mx_wf_advance(const struct mx_wf_group *groups, int64_t n, int64_t t0, int64_t t1) {
    mx_wf_steps_fn *steps = has_avx2() ? mx_wf_steps_avx2 : mx_wf_steps_plain;
    for (int64_t g = 0; g < n; g += 2) {
        const int64_t back = g * MX_WF_LAG;
        if (g + 1 < n)
            two_groups(steps, &groups[g], t0 - back, t1 - back);
        else
            one_group(steps, &groups[g], t0 - back, t1 - back);
    }
}
