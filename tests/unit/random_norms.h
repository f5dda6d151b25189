/* SPDX-License-Identifier: BSD-3-Clause */
/* random_norms.h - norms of random systems: what a run takes at check steps, and a plain loop over all cells
 * that has the same numbers to the bit. For tests that have a random_system.h. */
#ifndef RANDOM_NORMS_H
#define RANDOM_NORMS_H

#include "random_system.h"

#include "engine/after.h"

#include <criterion/criterion.h>
#include <math.h>

enum { TEST_NORMS_STEPS = 16, TEST_REDUCES = 3 };

struct norms_numbers {
    double max_change, rms_change, reduce[TEST_REDUCES], spread[TEST_REDUCES];
};

struct random_norms {
    struct mx_norms_options o;
    struct mx_norms *norms; /* NULL: none are asked for */
    int64_t checks, wrong;
};

/* A reduction: what the last level of a step gives its first field, without the old value, and of stages the
 * first one. */
static void value_of_row(const struct mx_row *r, double *value) {
    const struct random_system *rs = systems_row;
    const struct mx_system *s = &rs->system;
    const int32_t h = s->h, hc = s->hc, read = s->form == MX_STAGGERED;
    const struct update *u = &rs->update[read][0];
    cr_assert(r->rows == 1 && r->out == NULL);
    for (int64_t x = r->x0; x < r->x1; x++) {
        double sum = place_and_time(x - h, r->y, r->z, r->t, r->param[0]);
        for (int32_t i = 0; i < u->taps; i++) {
            const struct tap *t = &u->tap[i];
            const char *at =
                t->fixed ? (const char *)r->fixed[t->field * (2 * hc + 1) + t->dz + hc] +
                               t->dy * r->fixed_pitch[t->field]
                         : (const char *)r->in[t->field * (2 * h + 1) + t->dz + h] + t->dy * r->row_pitch;
            sum = sum +
                  t->weight * load_cell(t->fixed ? s->fixed[t->field].dtype : s->field[read][t->field].dtype,
                                        at, x + t->dx);
        }
        value[x - r->x0] = sum;
    }
}

static void value_of_cells(const struct mx_row *r, double *value) {
    value_of_row(r, value);
    for (int64_t x = r->x0; x < r->x1; x++) value[x - r->x0] = fabs(value[x - r->x0] - 0.01);
}

static const struct mx_reduce test_reduces[TEST_REDUCES] = {
    {"flux", MX_SUM, value_of_row}, {"top", MX_MAX, value_of_cells}, {"low", MX_MIN, value_of_row}};

/* Lanes, rows, planes: the only order. */
static double in_order(const struct mx_problem *p, double (*value)(void *, int64_t, int64_t, int64_t),
                       void *context, double *planes) {
    double total = 0;
    for (int64_t z = 0; z < p->nz; z++) {
        double of_plane = 0;
        for (int64_t y = 0; y < p->ny; y++) {
            double lane[8] = {0}, of_row = 0;
            for (int64_t x = 0; x < p->nx; x++) lane[x % 8] += value(context, x, y, z);
            for (int i = 0; i < 8; i++) of_row += lane[i];
            of_plane += of_row;
        }
        if (planes != NULL) planes[z] = of_plane;
        total += of_plane;
    }
    return total;
}

static double spread_of(const double *plane, int64_t n) {
    const int64_t from = n > 2 && plane[0] == 0, end = n - from > 2 && plane[n - 1] == 0 ? n - 1 : n;
    double least = plane[from], most = plane[from], sum = 0;
    for (int64_t i = from; i < end; i++) {
        least = fmin(least, plane[i]), most = fmax(most, plane[i]);
        sum += plane[i];
    }
    sum = fabs(sum / (double)(end - from));
    return sum == 0 ? INFINITY : (most - least) / sum;
}

/* threads: of the engine. column: rows may come in spans. */
static void make_norms(struct random_norms *n, const struct mx_problem *p, const struct mx_layout *l,
                       int32_t threads, pick_fn *any) {
    *n = (struct random_norms){.o = {.problem = p,
                                     .every = p->due[0],
                                     .max_change = any(0, 3) > 0 && !mx_has_stages(p),
                                     .rms_change = any(0, 1) && !mx_has_stages(p),
                                     .spans = mx_levels_a_step(p) == 1,
                                     .threads = threads,
                                     .row_bytes = l->row_pitch_bytes,
                                     .n_reduce = (int32_t)any(0, TEST_REDUCES),
                                     .reduce = test_reduces}};
    mx_why why = {""};
    cr_assert(mx_norms_make(&n->o, &why, &n->norms) == 0, "%s", why.text);
}

static void compare_norms(struct random_norms *n, const struct mx_norms_result *r,
                          const struct norms_numbers *e) {
    n->checks++;
    if (n->o.max_change) n->wrong += memcmp(&r->max_change, &e->max_change, sizeof e->max_change) != 0;
    if (n->o.rms_change) n->wrong += memcmp(&r->rms_change, &e->rms_change, sizeof e->rms_change) != 0;
    for (int32_t i = 0; i < n->o.n_reduce; i++)
        n->wrong += memcmp(&r->reduce[i], &e->reduce[i], sizeof(double)) != 0 ||
                    memcmp(&r->spread[i], &e->spread[i], sizeof(double)) != 0;
}

#endif
