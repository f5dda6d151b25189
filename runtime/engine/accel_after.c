/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/accel_after.h"
#include "engine/accel_room.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 8, POINT_NUMBERS = 8, LEAST_BYTES = 1 << 20, PENDING = 256 };

/* Values that were gathered: probes [from, from + n) of a window, of which it has some. */
struct gathered {
    int64_t call, step, array; /* array: of the system */
    int64_t y0, y1, z0, z1;
    int64_t from, n, base;
};

struct mx_accel_after {
    mx_accel *accel;
    const struct mx_work *work;
    const struct mx_problem *problem;
    struct mx_after after;      /* but for the reach */
    int64_t n_sources, longest; /* steps of the longest wavelet */
    char *source, *amplitude, *probe, *value, *lane, *old;
    int64_t values, next; /* room for them; where the next go */
    struct gathered gathered[PENDING];
    int64_t first, end; /* of them, at i % PENDING */
    int64_t lane_bytes, old_planes;
    double *host_value, *host_lane; /* lanes: of the change, then of each reduction */
    int32_t n_reduce;
};

static bool copies_in(const struct mx_after *a, int dim) {
    return !mx_sides_fixed(&a->sides, dim) && !(a->ghost[dim] && mx_sides_periodic(&a->sides, dim));
}

/* The array of the view that level l writes, and of the system. */
static int written(const struct mx_advance *a, int32_t l) { return (a->parity + l + 1) & 1; }
static int system_array(const struct mx_advance *a, int32_t l) { return (a->first_level + l) % 2 == 0; }

static int64_t slot_of(const struct mx_view *v, int array, int64_t z) {
    return (z + v->z_offset) % v->slots[array];
}

/* ---- memory there */

static int64_t quantities(const struct mx_problem *p) { return mx_field_count(p, 0) + 1; }

static int64_t room_for_lanes(const struct mx_problem *p) {
    return mx_max(LEAST_BYTES, p->ny * quantities(p) * LANES * (int64_t)sizeof(double));
}

static int64_t room_for_values(const struct mx_points *probes) {
    return mx_max(LEAST_BYTES / (int64_t)sizeof(double), probes->n);
}

/* Planes whose old values are kept at a time. */
static int64_t planes_kept(const struct mx_problem *p, int64_t plane_pitch) {
    return mx_levels_a_step(p) < 2 ? 0 : mx_max(1, mx_min(p->nz, 4 * (int64_t)LEAST_BYTES / plane_pitch));
}

static int64_t wavelet_bytes(const struct mx_sources *s) {
    int64_t bytes = 0;
    for (int64_t i = 0; i < s->n_wavelets; i++) bytes += s->wavelet[i].n * (int64_t)sizeof(double);
    return bytes;
}

uint64_t mx_accel_extra_bytes(const struct mx_problem *p, const struct mx_sources *sources,
                              const struct mx_points *probes, bool norms) {
    const int64_t point = POINT_NUMBERS * (int64_t)sizeof(int64_t), page = 4096;
    int64_t bytes = 0;
    if (sources->points.n > 0) bytes += sources->points.n * point + wavelet_bytes(sources) + page;
    if (probes->n > 0) bytes += probes->n * point + room_for_values(probes) * (int64_t)sizeof(double);
    if (!norms) return (uint64_t)bytes;
    /* Pitches are chosen later: not wider than this. */
    const int64_t row = mx_max(mx_field_offsets(p, 0, NULL), mx_field_offsets(p, 1, NULL)) + page;
    const int64_t plane = (p->ny + 2 * p->h) * row + 4 * page;
    const int64_t kept = mx_levels_a_step(p) < 2 ? 0 : mx_max(plane, 4 * (int64_t)LEAST_BYTES);
    return (uint64_t)(bytes + room_for_lanes(p) + kept);
}

/* Waits: nothing else is under way when tables are made, and lanes are wanted at once. */
static int transfer(struct mx_accel_after *d, bool in, char *there, void *here, int64_t bytes) {
    const struct mx_accel_span span = {there, here, (uint64_t)bytes};
    mx_accel_aside(d->accel, true);
    const int64_t number = (in ? mx_accel_put : mx_accel_get)(d->accel, &span, 1);
    mx_accel_aside(d->accel, false);
    return number < 0 ? (int)number : mx_accel_wait(d->accel, in ? MX_ACCEL_PUT : MX_ACCEL_GET, number);
}

static int take(struct mx_accel_after *d, int64_t bytes, const char *what, char **out) {
    mx_why why = {""};
    const int err = mx_accel_alloc(d->accel, (uint64_t)mx_max(bytes, 8), what, &why, out);
    return err < 0 ? mx_accel_fail(d->accel, -EIO, why.text) : 0;
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
    int err = take(d, bytes, what, out);
    if (err == 0) err = transfer(d, true, *out, table, bytes);
    free(table);
    return err;
}

static int put_sources(struct mx_accel_after *d, const struct mx_sources *s) {
    const int64_t bytes = wavelet_bytes(s);
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
    if (err == 0) err = take(d, bytes, "the amplitudes of sources", &d->amplitude);
    if (err == 0 && bytes > 0) err = transfer(d, true, d->amplitude, all, bytes);
    d->n_sources = s->points.n;
    free(offset_of);
    free(all);
    return err;
}

static int make_probes(struct mx_accel_after *d, const struct mx_points *probes) {
    d->values = room_for_values(probes);
    const int64_t bytes = d->values * (int64_t)sizeof(double);
    d->host_value = malloc((size_t)bytes);
    if (d->host_value == NULL) return mx_accel_fail(d->accel, -EIO, "no memory for the values of probes");
    int err = put_points(d, probes, NULL, NULL, "probes", &d->probe);
    return err < 0 ? err : take(d, bytes, "the values of probes", &d->value);
}

static int make_norms(struct mx_accel_after *d, const struct mx_view *v) {
    const struct mx_problem *p = d->problem;
    const struct mx_norms_options *o = mx_norms_asked(d->after.norms);
    d->n_reduce = o->n_reduce;
    d->lane_bytes = room_for_lanes(p);
    d->old_planes = planes_kept(p, v->plane_pitch_bytes);
    d->host_lane = malloc((size_t)(d->lane_bytes * (1 + d->n_reduce)));
    if (d->host_lane == NULL) return mx_accel_fail(d->accel, -EIO, "no memory for the lanes of norms");
    int err = take(d, d->lane_bytes, "the lanes of norms", &d->lane);
    if (err < 0 || d->old_planes == 0) return err;
    return take(d, d->old_planes * v->plane_pitch_bytes, "planes before a step", &d->old);
}

struct mx_accel_after *mx_accel_after_make(mx_accel *accel, const struct mx_work *work,
                                           const struct mx_view *view, const struct mx_after *after) {
    struct mx_accel_after *d = calloc(1, sizeof *d);
    if (d == NULL) {
        mx_accel_fail(accel, -EIO, "no memory for what follows the levels on an accelerator");
        return NULL;
    }
    *d = (struct mx_accel_after){.accel = accel, .work = work, .problem = work->problem, .after = *after};
    int err = after->sources != NULL ? put_sources(d, after->sources) : 0;
    if (err == 0 && after->traces != NULL && after->traces->probes->n > 0)
        err = make_probes(d, after->traces->probes);
    if (err == 0 && after->norms != NULL) err = make_norms(d, view);
    if (err == 0) return d;
    mx_accel_after_free(d);
    return NULL;
}

void mx_accel_after_free(struct mx_accel_after *d) {
    if (d == NULL) return;
    char *const all[] = {d->source, d->amplitude, d->probe, d->value, d->lane, d->old};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) mx_accel_release(d->accel, all[i]);
    free(d->host_value);
    free(d->host_lane);
    free(d);
}

/* ---- launches: arrays, then the window and where it is */

static struct mx_accel_level window_of(const struct mx_accel_after *d, const struct mx_advance *a, int32_t l,
                                       enum mx_accel_kernel kernel, int64_t y0, int64_t y1, int64_t z0,
                                       int64_t z1) {
    const int to = written(a, l);
    const struct mx_view *v = &a->view;
    return (struct mx_accel_level){
        .kernel = mx_accel_kernel(d->problem, kernel, a->first_level + l),
        .arrays = 1,
        .array = {v->base[to]},
        .number = {y0, z0, y1 - y0, z1 - z0, slot_of(v, to, z0), v->slots[to], v->y_offset}};
}

static int launch(struct mx_accel_after *d, struct mx_accel_level *k, int64_t *number) {
    const int64_t n = mx_accel_level(d->accel, k);
    return n < 0 ? (int)n : (*number = n, 0);
}

static bool any(const struct mx_points *points, const struct mx_problem *p, int64_t z0, int64_t z1) {
    for (int64_t z = z0; z < z1; z++)
        if (mx_points_in_plane(points, mx_plane_of(p, z))) return true;
    return false;
}

static int add_sources(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t z0,
                       int64_t z1, int64_t *number) {
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    const int64_t step = (a->first_level + l) / mx_levels_a_step(d->problem);
    if (d->n_sources == 0 || step >= d->longest || !any(&d->after.sources->points, d->problem, z0, z1))
        return 0;
    struct mx_accel_level k = window_of(d, a, l, MX_ACCEL_SOURCES, w->y0, w->y1, z0, z1);
    k.array[k.arrays++] = d->source;
    k.array[k.arrays++] = d->amplitude;
    k.number[7] = step;
    k.number[8] = d->n_sources;
    k.size[0] = d->n_sources, k.size[1] = k.size[2] = 1;
    return launch(d, &k, number);
}

/* ---- probes */

static bool is_in(const struct gathered *g, const struct mx_point *pt, const struct mx_problem *p) {
    const int64_t y = pt->y + p->h, z = pt->z - p->first_plane + p->h;
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
    const int err = transfer(d, false, d->value + first->base * cell, d->host_value + first->base, n * cell);
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

static int see_probes(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t call,
                      int64_t *number) {
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    const struct mx_problem *p = d->problem;
    if (d->probe == NULL) return 0;
    const struct mx_points *probes = d->after.traces->probes;
    const int64_t z0 = mx_max(w->z0, p->h), z1 = mx_min(w->z1, p->nz + p->h);
    const int64_t shift = p->first_plane - p->h; /* tables are of the whole grid */
    const int64_t from = z0 < z1 ? probes->first[z0 + shift] : 0,
                  n = z0 < z1 ? probes->first[z1 + shift] - from : 0;
    if (n == 0) return 0;
    int err = make_room(d, n, *number);
    if (err < 0) return err;
    struct mx_accel_level k = window_of(d, a, l, MX_ACCEL_PROBES, w->y0, w->y1, z0, z1);
    k.array[k.arrays++] = d->probe;
    k.array[k.arrays++] = d->value;
    k.number[7] = from, k.number[8] = n, k.number[9] = d->next;
    k.size[0] = n, k.size[1] = k.size[2] = 1;
    d->gathered[d->end++ % PENDING] = (struct gathered){
        call,   (a->first_level + l) / mx_levels_a_step(p), system_array(a, l), w->y0, w->y1, z0, z1, from, n,
        d->next};
    d->next += n;
    return launch(d, &k, number);
}

/* ---- norms */

int64_t mx_accel_after_kept(const struct mx_accel_after *d, const struct mx_advance *a, int32_t l) {
    return d != NULL && d->after.norms != NULL && mx_norms_needs_old(d->after.norms, a->first_level + l)
               ? d->old_planes
               : 0;
}

int mx_accel_after_keep(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t z0,
                        int64_t z1, int64_t *number) {
    const struct mx_view *v = &a->view;
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    const int to = written(a, l);
    for (int64_t z = z0, n; z < z1; z += n) {
        n = mx_min(z1 - z, v->slots[to] - slot_of(v, to, z));
        const struct mx_accel_copy c = {.to = d->old + (z - z0) * v->plane_pitch_bytes +
                                              (w->y0 + v->y_offset) * v->row_pitch_bytes,
                                        .from = mx_view_row(v, to, w->y0, z),
                                        .to_pitch = v->plane_pitch_bytes,
                                        .from_pitch = v->plane_pitch_bytes,
                                        .bytes = (w->y1 - w->y0) * v->row_pitch_bytes,
                                        .n = n};
        const int64_t done = mx_accel_copy(d->accel, MX_ACCEL_WORK, &c);
        if (done < 0) return (int)done;
        *number = done;
    }
    return 0;
}

struct box {
    int64_t y0, y1, z0, z1;
};

/* The lanes of a kernel, of `of_row` of them a row. */
static int get_lanes(struct mx_accel_after *d, struct mx_accel_level *k, const struct box *b, int64_t of_row,
                     double *out, int64_t *number) {
    const int64_t rows = b->y1 - b->y0, planes = b->z1 - b->z0;
    k->size[0] = rows * LANES, k->size[1] = planes, k->size[2] = 1;
    int err = launch(d, k, number);
    if (err == 0) err = mx_accel_wait(d->accel, MX_ACCEL_WORK, *number);
    return err < 0 ? err : transfer(d, false, d->lane, out, rows * planes * of_row * (int64_t)sizeof(double));
}

static int change_lanes(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, const struct box *b,
                        int64_t kept, int64_t *number) {
    const struct mx_view *v = &a->view;
    const int from = 1 - written(a, l);
    struct mx_accel_level k = window_of(d, a, l, MX_ACCEL_CHANGE, b->y0, b->y1, b->z0, b->z1);
    k.array[k.arrays++] = kept >= 0 ? d->old : v->base[from];
    k.number[7] = kept >= 0 ? kept : slot_of(v, from, b->z0);
    k.number[8] = kept >= 0 ? d->old_planes : v->slots[from];
    k.array[k.arrays++] = d->lane;
    return get_lanes(d, &k, b, quantities(d->problem) * LANES, d->host_lane, number);
}

static int reduce_lanes(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, const struct box *b,
                        int32_t i, int64_t *number) {
    struct mx_accel_level k = mx_accel_level_of(d->problem, a, l, b->y0, b->y1, b->z0, b->z1);
    k.kernel = mx_accel_kernel(d->problem, (enum mx_accel_kernel)(MX_ACCEL_REDUCE + i), a->first_level + l);
    k.array[k.arrays++] = d->lane;
    return get_lanes(d, &k, b, LANES, d->host_lane + (1 + i) * d->lane_bytes / (int64_t)sizeof(double),
                     number);
}

static void hand_over(const struct mx_accel_after *d, int64_t level, const struct box *b) {
    const int64_t h = d->problem->h, q = quantities(d->problem) * LANES, rows = b->y1 - b->y0;
    for (int64_t z = b->z0; z < b->z1; z++)
        for (int64_t y = b->y0; y < b->y1; y++) {
            const int64_t i = (z - b->z0) * rows + y - b->y0;
            struct mx_norm_lanes n = {.level = level,
                                      .y = y - h,
                                      .z = z - h,
                                      .squares = d->host_lane + i * q,
                                      .most = d->host_lane + (i + 1) * q - LANES};
            for (int32_t k = 0; k < d->n_reduce; k++)
                n.reduce[k] = d->host_lane + (1 + k) * d->lane_bytes / (int64_t)sizeof(double) + i * LANES;
            mx_norms_lanes(d->after.norms, &n);
        }
}

/* Of planes [z0,z1) the interior, as much at a time as there is room for. */
static int take_norms(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t z0, int64_t z1,
                      bool old, int64_t *number) {
    const struct mx_problem *p = d->problem;
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    const int64_t level = a->first_level + l, h = p->h, y0 = mx_max(w->y0, h), y1 = mx_min(w->y1, p->ny + h);
    if (d->after.norms == NULL || !mx_norms_due(d->after.norms, level) || y0 >= y1) return 0;
    const struct mx_norms_options *o = mx_norms_asked(d->after.norms);
    const int64_t plane = (y1 - y0) * quantities(p) * LANES * (int64_t)sizeof(double),
                  most = d->lane_bytes / plane;
    int err = 0;
    for (int64_t z = mx_max(z0, h), n; z < mx_min(z1, p->nz + h) && err == 0; z += n) {
        n = mx_min(mx_min(z1, p->nz + h) - z, most);
        const struct box b = {y0, y1, z, z + n};
        if (o->max_change || o->rms_change) err = change_lanes(d, a, l, &b, old ? z - z0 : -1, number);
        for (int32_t i = 0; i < d->n_reduce && err == 0; i++) err = reduce_lanes(d, a, l, &b, i, number);
        if (err == 0) hand_over(d, level, &b);
    }
    return err;
}

/* ---- frames */

static int refresh_x(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t *number) {
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    if (!copies_in(&d->after, MX_DIM_X)) return 0;
    int err = 0;
    for (int64_t z = w->z0, n; z < w->z1 && err == 0; z += n) {
        n = mx_min(w->z1 - z, mx_accel_most_planes(d->accel));
        struct mx_accel_level k = window_of(d, a, l, MX_ACCEL_FRAME, w->y0, w->y1, z, z + n);
        k.number[7] = d->after.sides.side[MX_DIM_X][0];
        k.number[8] = d->after.sides.side[MX_DIM_X][1];
        k.size[0] = 2 * d->problem->h, k.size[1] = w->y1 - w->y0, k.size[2] = n;
        err = launch(d, &k, number);
    }
    return err;
}

static bool in_reach(const struct mx_advance *a, int array, int64_t y, int64_t z) {
    const struct mx_reach *r = &a->after->reach;
    return r->y1 == 0 || (y >= r->y0 && y < r->y1 && z >= r->z0[array] && z < r->z1[array]);
}

/* Rows [y, y + rows) of plane z become rows from `y_to` on of plane z_to; so do those of the planes after
 * them, as many as n. */
static int copy_rows(struct mx_accel_after *d, const struct mx_advance *a, int array, int64_t y, int64_t rows,
                     int64_t y_to, int64_t z, int64_t z_to, int64_t n, int64_t *number) {
    const struct mx_view *v = &a->view;
    const struct mx_accel_copy c = {.to = mx_view_row(v, array, y_to, z_to),
                                    .from = mx_view_row(v, array, y, z),
                                    .to_pitch = v->plane_pitch_bytes,
                                    .from_pitch = v->plane_pitch_bytes,
                                    .bytes = rows * v->row_pitch_bytes,
                                    .n = n};
    const int64_t done = mx_accel_copy(d->accel, MX_ACCEL_WORK, &c);
    return done < 0 ? (int)done : (*number = done, 0);
}

static int copies_of(const struct mx_accel_after *d, int dim, int64_t i, int64_t out[2]) {
    if (!copies_in(&d->after, dim)) return 0;
    return mx_side_copies(d->after.sides.side[dim], mx_extent_of(d->problem, dim), d->problem->h, i, out);
}

/* Rows [y0,y1) of planes [z0,z1): the rows that copy them. */
static int refresh_y(struct mx_accel_after *d, const struct mx_advance *a, int array, const struct box *b,
                     int64_t *number) {
    const struct mx_view *v = &a->view;
    int err = 0;
    for (int64_t y = b->y0; y < b->y1 && err == 0; y++) {
        int64_t copy[2];
        const int copies = copies_of(d, MX_DIM_Y, y, copy);
        for (int i = 0; i < copies; i++)
            for (int64_t z = b->z0, n; z < b->z1 && err == 0 && in_reach(a, array, copy[i], z); z += n) {
                n = mx_min(b->z1 - z, v->slots[array] - slot_of(v, array, z));
                err = copy_rows(d, a, array, y, 1, copy[i], z, z, n, number);
            }
    }
    return err;
}

/* And the planes, with the rows that copy rows. */
static int refresh_z(struct mx_accel_after *d, const struct mx_advance *a, int array, const struct box *b,
                     int64_t *number) {
    int err = 0;
    for (int64_t z = b->z0; z < b->z1 && err == 0; z++) {
        int64_t plane[2], row[2];
        const int planes = copies_of(d, MX_DIM_Z, z, plane);
        for (int k = 0; k < planes && err == 0; k++) {
            if (!in_reach(a, array, b->y0, plane[k])) continue;
            err = copy_rows(d, a, array, b->y0, b->y1 - b->y0, b->y0, z, plane[k], 1, number);
            for (int64_t y = b->y0; y < b->y1; y++) {
                const int rows = copies_of(d, MX_DIM_Y, y, row);
                for (int i = 0; i < rows && err == 0; i++)
                    if (in_reach(a, array, row[i], plane[k]))
                        err = copy_rows(d, a, array, y, 1, row[i], z, plane[k], 1, number);
            }
        }
    }
    return err;
}

/* ---- all of it */

int mx_accel_after_planes(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t z0,
                          int64_t z1, bool old, int64_t *number) {
    const int err = add_sources(d, a, l, z0, z1, number);
    return err < 0 ? err : take_norms(d, a, l, z0, z1, old, number);
}

int mx_accel_after_level(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t call,
                         int64_t *number) {
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    const struct box b = {w->y0, w->y1, w->z0, w->z1};
    int err = see_probes(d, a, l, call, number);
    if (err == 0) err = refresh_x(d, a, l, number);
    if (err == 0) err = refresh_y(d, a, written(a, l), &b, number);
    return err < 0 ? err : refresh_z(d, a, written(a, l), &b, number);
}

int mx_accel_after_inserted(struct mx_accel_after *d, const struct mx_advance *a, int32_t l,
                            int64_t *number) {
    const struct mx_seam *f = &a->seam_in;
    const struct mx_seam_planes have = mx_seam_planes(f, l);
    const struct box b = {f->first_y[l], f->first_y[l] + f->n_rows[l], have.z0, have.z1};
    return b.y0 < b.y1 ? refresh_z(d, a, (a->parity + l) & 1, &b, number) : 0;
}
