/* SPDX-License-Identifier: BSD-3-Clause */
/* random_points.h - sources and probes at random cells, what a plain loop has to do about them, and what an
 * execution is given. The values of probes that the plain loop finds are compared with those recorded. */
#ifndef RANDOM_POINTS_H
#define RANDOM_POINTS_H

#include "engine/after.h"
#include "execute/execute.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEST_POINTS = 12, TEST_POINTS_STEPS = 16 };

struct test_point {
    int32_t field, array; /* array: as of a staggered system, else -1 */
    int64_t x, y, z;      /* of the interior */
};

struct random_points {
    const struct mx_problem *problem;
    struct test_point source[TEST_POINTS], probe[TEST_POINTS];
    int64_t steps[TEST_POINTS]; /* that the source's wavelet has */
    double amplitude[TEST_POINTS][TEST_POINTS_STEPS];
    double expected[TEST_POINTS_STEPS][TEST_POINTS], found[TEST_POINTS_STEPS][TEST_POINTS];
    struct mx_sources sources;
    struct mx_points probes;
    struct mx_traces traces;
    struct mx_after after;
};

/* What source i adds at this level (of the run): false = nothing. */
static inline bool source_adds(const struct random_points *rp, int i, int64_t level, double *amplitude) {
    const int64_t a_step = mx_levels_a_step(rp->problem), step = level / a_step;
    if (mx_form(rp->problem) == MX_JACOBI && level % a_step != a_step - 1) return false;
    if (rp->source[i].array >= 0 && rp->source[i].array != (level % 2 == 0)) return false;
    if (step >= rp->steps[i]) return false;
    *amplitude = rp->amplitude[i][step];
    return true;
}

/* Whether probe i is in the array that this level writes, and it is no stage but the last. */
static inline bool probe_sees(const struct random_points *rp, int i, int64_t level) {
    const int64_t a_step = mx_levels_a_step(rp->problem);
    if (mx_form(rp->problem) == MX_JACOBI && level % a_step != a_step - 1) return false;
    return rp->probe[i].array < 0 || rp->probe[i].array == (level % 2 == 0);
}

static inline struct test_point random_point(const struct mx_problem *p, int64_t (*pick)(int64_t, int64_t),
                                             const struct test_point *near) {
    const bool staggered = mx_form(p) == MX_STAGGERED;
    struct test_point t = {.array = staggered ? (int32_t)pick(0, 1) : -1};
    t.field = (int32_t)pick(0, mx_field_count(p, staggered ? t.array : 0) - 1);
    t.x = pick(0, p->nx - 1), t.y = pick(0, p->ny - 1), t.z = pick(0, p->nz - 1);
    if (near != NULL && pick(0, 2) == 0) t = *near;
    return t;
}

static inline const char *point_name(const struct mx_problem *p, const struct test_point *t, char name[8]) {
    if (p->system == NULL) return "u";
    snprintf(name, 8, "%c%d", t->array == 1 ? 'b' : 'a', t->field);
    return name;
}

static inline void make_points(struct random_points *rp, const struct mx_problem *p,
                               int64_t (*pick)(int64_t, int64_t)) {
    memset(rp, 0, sizeof *rp);
    rp->problem = p;
    cr_assert(p->nt <= TEST_POINTS_STEPS);
    rp->sources.wavelet = calloc(TEST_POINTS, sizeof *rp->sources.wavelet);
    rp->sources.of = calloc(TEST_POINTS, sizeof *rp->sources.of);
    rp->sources.n_wavelets = TEST_POINTS;
    for (int i = 0; i < TEST_POINTS; i++) {
        struct test_point *s = &rp->source[i], *q = &rp->probe[i];
        char name[8];
        *s = random_point(p, pick, i > 0 ? s - 1 : NULL); /* sources of one cell: their order counts */
        *q = random_point(p, pick, s);
        rp->steps[i] = pick(0, TEST_POINTS_STEPS);
        rp->sources.of[i] = i;
        rp->sources.wavelet[i].n = rp->steps[i];
        rp->sources.wavelet[i].amplitude = malloc(sizeof rp->amplitude[i]);
        for (int k = 0; k < TEST_POINTS_STEPS; k++) rp->amplitude[i][k] = (double)pick(-999, 999) / 700;
        memcpy(rp->sources.wavelet[i].amplitude, rp->amplitude[i], sizeof rp->amplitude[i]);
        cr_assert(mx_points_add(&rp->sources.points, p, "source", point_name(p, s, name),
                                (int64_t[3]){s->x, p->flat ? s->z : s->y, p->flat ? 0 : s->z}, NULL) == 0);
        cr_assert(mx_points_add(&rp->probes, p, "probe", point_name(p, q, name),
                                (int64_t[3]){q->x, p->flat ? q->z : q->y, p->flat ? 0 : q->z}, NULL) == 0);
    }
    cr_assert(mx_sources_index(&rp->sources, p, NULL) == 0 && mx_points_index(&rp->probes, p, NULL) == 0);
}

static inline int take_points(struct random_points *rp, int64_t steps, mx_why *why) {
    return mx_traces_take(&rp->traces, steps, &rp->found[rp->traces.taken][0], why);
}

/* The ring has room for the steps of a sweep, and as many more as chance has it. */
static inline void ask_for_points(struct random_points *rp, const struct mx_layout *layout,
                                  const struct mx_sides *sides, int64_t max_levels, int64_t more,
                                  struct mx_execution *x) {
    const int64_t a_step = mx_levels_a_step(rp->problem), steps = (max_levels + a_step - 1) / a_step + more;
    cr_assert(mx_traces_make(&rp->probes, steps, 0, NULL, &rp->traces) == 0);
    rp->after = (struct mx_after){.problem = rp->problem,
                                  .layout = layout,
                                  .sides = *sides,
                                  .sources = &rp->sources,
                                  .traces = &rp->traces};
    x->after = &rp->after;
    x->most_ahead = steps * a_step;
}

static inline int64_t wrong_traces(const struct random_points *rp, int64_t steps) {
    int64_t wrong = 0;
    for (int64_t t = 0; t < steps; t++)
        for (int i = 0; i < TEST_POINTS; i++)
            wrong += memcmp(&rp->expected[t][i], &rp->found[t][i], sizeof(double)) != 0;
    return wrong;
}

static inline void free_points(struct random_points *rp) {
    mx_sources_free(&rp->sources);
    mx_points_free(&rp->probes);
    mx_traces_free(&rp->traces);
}

#endif
