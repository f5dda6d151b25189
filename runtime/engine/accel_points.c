/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_points.c - sources and probes on an accelerator. */
#include "engine/accel_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int64_t mx_accel_wavelet_bytes(const struct mx_sources *s) {
    int64_t bytes = 0;
    for (int64_t i = 0; i < s->n_wavelets; i++) bytes += s->wavelet[i].n * (int64_t)sizeof(double);
    return bytes;
}

int64_t mx_accel_room_for_values(const struct mx_points *probes) {
    return mx_max(LEAST_BYTES / (int64_t)sizeof(double), probes->n);
}

/* points and, of sources, their wavelets: offset_of[wavelet] in the amplitudes. */
static int put_points(struct mx_accel_after *d, const struct mx_points *points, const struct mx_sources *s,
                      const int64_t *offset_of, const char *what, char **out) {
    const int64_t bytes = points->n * POINT_NUMBERS * (int64_t)sizeof(int64_t);
    int64_t *table = calloc((size_t)bytes, 1);
    if (table == NULL) return mx_accel_fail(d->accel, -EIO, "no memory for a table of points");
    for (int64_t i = 0; i < points->n; i++) {
        const struct mx_point *p = &points->point[i];
        const int64_t wavelet = s != NULL ? s->of[p->number] : 0;
        const int64_t row[POINT_NUMBERS] = {p->x,
                                            p->y,
                                            p->z,
                                            p->field,
                                            p->array,
                                            s != NULL ? offset_of[wavelet] : 0,
                                            s != NULL ? s->wavelet[wavelet].n : 0};
        memcpy(table + i * POINT_NUMBERS, row, sizeof row);
    }
    int err = mx_accel_take(d, bytes, what, out);
    if (err == 0) err = mx_accel_transfer(d, true, *out, table, bytes);
    free(table);
    return err;
}

int mx_accel_put_sources(struct mx_accel_after *d, const struct mx_sources *s) {
    const int64_t bytes = mx_accel_wavelet_bytes(s);
    int64_t *offset_of = calloc((size_t)s->n_wavelets + 1, sizeof *offset_of), at = 0;
    double *all = malloc((size_t)mx_max(bytes, 8));
    if (offset_of == NULL || all == NULL) {
        free(offset_of);
        free(all);
        return mx_accel_fail(d->accel, -EIO, "no memory for the amplitudes of sources");
    }
    for (int64_t i = 0; i < s->n_wavelets; i++) {
        const struct mx_wavelet *w = &s->wavelet[i];
        offset_of[i] = at;
        memcpy(all + at, w->amplitude, (size_t)w->n * sizeof *all);
        at += w->n;
        d->longest = mx_max(d->longest, w->n);
    }
    int err = put_points(d, &s->points, s, offset_of, "sources", &d->source);
    if (err == 0) err = mx_accel_take(d, bytes, "the amplitudes of sources", &d->amplitude);
    if (err == 0 && bytes > 0) err = mx_accel_transfer(d, true, d->amplitude, all, bytes);
    d->n_sources = s->points.n;
    free(offset_of);
    free(all);
    return err;
}

int mx_accel_make_probes(struct mx_accel_after *d, const struct mx_points *probes) {
    d->values = mx_accel_room_for_values(probes);
    const int64_t bytes = d->values * (int64_t)sizeof(double);
    d->host_value = malloc((size_t)bytes);
    if (d->host_value == NULL) return mx_accel_fail(d->accel, -EIO, "no memory for the values of probes");
    int err = put_points(d, probes, NULL, NULL, "probes", &d->probe);
    return err < 0 ? err : mx_accel_take(d, bytes, "the values of probes", &d->value);
}

static bool any(const struct mx_points *points, const struct mx_problem *p, int64_t z0, int64_t z1) {
    for (int64_t z = z0; z < z1; z++)
        if (mx_points_in_plane(points, mx_plane_of(p, z))) return true;
    return false;
}

int mx_accel_add_sources(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t z0,
                         int64_t z1, int64_t *number) {
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    const int64_t step = (a->first_level + l) / mx_levels_a_step(d->problem);
    if (d->n_sources == 0 || step >= d->longest || !mx_points_act(d->problem, a->first_level + l) ||
        !any(&d->after.sources->points, d->problem, z0, z1))
        return 0;
    struct mx_accel_level k = mx_accel_window(d, a, l, MX_ACCEL_SOURCES, w->y0, w->y1, z0, z1);
    k.array[k.arrays++] = d->source;
    k.array[k.arrays++] = d->amplitude;
    k.number[7] = step;
    k.number[8] = d->n_sources;
    k.size[0] = d->n_sources, k.size[1] = k.size[2] = 1;
    return mx_accel_launch(d, &k, number);
}

static bool is_in(const struct gathered *g, const struct mx_point *pt, const struct mx_problem *p) {
    const int64_t y = pt->y + mx_halo_y(p), z = pt->z - p->first_plane + p->h;
    return y >= g->y0 && y < g->y1 && z >= g->z0 && z < g->z1 && (pt->array < 0 || pt->array == g->array);
}

static void record(const struct mx_accel_after *d, const struct gathered *g) {
    const struct mx_points *probes = d->after.traces->probes;
    for (int64_t i = 0; i < g->n; i++)
        if (is_in(g, &probes->point[g->from + i], d->problem))
            mx_traces_record(d->after.traces, g->step, g->from + i, d->host_value[g->base + i]);
}

/* One get for each call, so that how many there are does not depend on when somebody looks. */
static int get_call(struct mx_accel_after *d) {
    const struct gathered *first = &d->gathered[d->first % PENDING], *last = first;
    int64_t end = d->first;
    for (; end < d->end && d->gathered[end % PENDING].call == first->call; end++)
        last = &d->gathered[end % PENDING];
    const int64_t n = last->base + last->n - first->base, cell = (int64_t)sizeof(double);
    const int err =
        mx_accel_transfer(d, false, d->value + first->base * cell, d->host_value + first->base, n * cell);
    for (; d->first < end && err == 0; d->first++) record(d, &d->gathered[d->first % PENDING]);
    if (d->first == d->end) d->next = 0;
    return err;
}

void mx_accel_after_done(struct mx_accel_after *d, int64_t call) {
    if (d == NULL || mx_accel_error(d->accel, NULL) < 0) return;
    while (d->first < d->end && d->gathered[d->first % PENDING].call <= call)
        if (get_call(d) < 0) return;
}

/* Room for n values more: where there is none what was gathered is waited for. */
static int make_room(struct mx_accel_after *d, int64_t n, int64_t number) {
    if (d->next + n <= d->values && d->end - d->first < PENDING) return 0;
    const int err = mx_accel_wait(d->accel, MX_ACCEL_WORK, number);
    if (err == 0) mx_accel_after_done(d, INT64_MAX);
    return err < 0 ? err : mx_accel_error(d->accel, NULL);
}

/* Of the system, that level l writes. */
static int system_array(const struct mx_advance *a, int32_t l) { return (a->first_level + l) % 2 == 0; }

int mx_accel_see_probes(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t call,
                        int64_t *number) {
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    const struct mx_problem *p = d->problem;
    if (d->probe == NULL || !mx_points_act(p, a->first_level + l)) return 0;
    const struct mx_points *probes = d->after.traces->probes;
    const int64_t z0 = mx_max(w->z0, p->h), z1 = mx_min(w->z1, p->nz + p->h);
    const int64_t shift = p->first_plane - p->h; /* tables are of the whole grid */
    const int64_t from = z0 < z1 ? probes->first[z0 + shift] : 0,
                  n = z0 < z1 ? probes->first[z1 + shift] - from : 0;
    if (n == 0) return 0;
    int err = make_room(d, n, *number);
    if (err < 0) return err;
    struct mx_accel_level k = mx_accel_window(d, a, l, MX_ACCEL_PROBES, w->y0, w->y1, z0, z1);
    k.array[k.arrays++] = d->probe;
    k.array[k.arrays++] = d->value;
    k.number[7] = from, k.number[8] = n, k.number[9] = d->next;
    k.size[0] = n, k.size[1] = k.size[2] = 1;
    d->gathered[d->end++ % PENDING] = (struct gathered){
        call,   (a->first_level + l) / mx_levels_a_step(p), system_array(a, l), w->y0, w->y1, z0, z1, from, n,
        d->next};
    d->next += n;
    return mx_accel_launch(d, &k, number);
}
