/* SPDX-License-Identifier: BSD-3-Clause */
/* points.c - lists of points: sorted, indexed by plane, and told apart by a hash. */
#include "system/points_private.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for one element more. */
int mx_points_grow(void **array, int64_t n, int64_t *capacity, size_t element, mx_why *why) {
    if (n < *capacity) return 0;
    const int64_t more = *capacity > 0 ? 2 * *capacity : 16;
    void *at = realloc(*array, (size_t)more * element);
    if (at == NULL) return mx_fail(why, -ENOMEM, "no memory for %lld points", (long long)more);
    *array = at;
    *capacity = more;
    return 0;
}

static bool find_field(const struct mx_problem *p, const char *name, struct mx_point *out) {
    const struct mx_system *s = p->system;
    out->array = -1;
    out->field = 0;
    if (s == NULL) return strcmp(name, "u") == 0;
    for (int a = 0; a < mx_system_states(s); a++)
        for (int32_t f = 0; f < s->n_field[a]; f++)
            if (strcmp(name, s->field[a][f].name) == 0) {
                out->array = s->form == MX_STAGGERED ? a : -1;
                out->field = f;
                return true;
            }
    return false;
}

/* "u, v" */
static const char *fields_of(const struct mx_problem *p, char *text, size_t capacity) {
    const struct mx_system *s = p->system;
    size_t at = 0;
    snprintf(text, capacity, "u");
    if (s == NULL) return text;
    for (int a = 0; a < mx_system_states(s); a++)
        for (int32_t f = 0; f < s->n_field[a] && at < capacity; f++)
            at += (size_t)snprintf(text + at, capacity - at, "%s%s", at > 0 ? ", " : "", s->field[a][f].name);
    return text;
}

int mx_points_add(struct mx_points *points, const struct mx_problem *p, const char *what, const char *field,
                  const int64_t xyz[3], mx_why *why) {
    const int y = p->flat ? 2 : 1, z = 3 - y; /* which of xyz is y here */
    struct mx_point point = {.x = xyz[0], .y = xyz[y], .z = xyz[z], .number = points->n};
    const int64_t all[3] = {p->nx, p->ny, mx_all_planes(p)}, n[3] = {all[0], all[y], all[z]};
    char names[160];
    if (!find_field(p, field, &point))
        return mx_fail(why, -EINVAL, "%s: there is no field %s; the fields are %s", what, field,
                       fields_of(p, names, sizeof names));
    for (int d = 0; d < 3; d++)
        if (xyz[d] < 0 || xyz[d] >= n[d])
            return mx_fail(why, -EINVAL, "%s: %c = %lld is outside the grid, whose cells are 0 to %lld in %c",
                           what, 'x' + d, (long long)xyz[d], (long long)n[d] - 1, 'x' + d);
    int err = mx_points_grow((void **)&points->point, points->n, &points->capacity, sizeof point, why);
    if (err == 0) points->point[points->n++] = point;
    return err;
}

static int order(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int compare(const void *pa, const void *pb) {
    const struct mx_point *a = pa, *b = pb;
    int by = order(a->z, b->z);
    if (by == 0) by = order(a->y, b->y);
    if (by == 0) by = order(a->x, b->x);
    return by != 0 ? by : order(a->number, b->number);
}

int mx_points_index(struct mx_points *points, const struct mx_problem *p, mx_why *why) {
    const int64_t planes = mx_all_planes(p);
    int64_t *first = calloc((size_t)planes + 1, sizeof *first);
    uint64_t *near = calloc((size_t)planes, sizeof *near);
    if (first == NULL || near == NULL) {
        free(first), free(near);
        return mx_fail(why, -ENOMEM, "no memory for an index of the points of %lld %ss", (long long)planes,
                       mx_plane_word(p->flat));
    }
    if (points->n > 0) qsort(points->point, (size_t)points->n, sizeof *points->point, compare);
    for (int64_t i = 0; i < points->n; i++) first[points->point[i].z + 1]++;
    for (int64_t z = 0; z < planes; z++) first[z + 1] += first[z];
    free(points->first), free(points->near);
    points->first = first;
    points->near = near;
    points->rows = p->ny;
    for (int64_t i = 0; i < points->n; i++)
        near[points->point[i].z] |= mx_points_parts(points, points->point[i].y, points->point[i].y + 1);
    return 0;
}

void mx_points_free(struct mx_points *points) {
    free(points->point);
    free(points->first);
    free(points->near);
    *points = (struct mx_points){0};
}

/* The first point of [from, end), all of one plane, whose row is y or later. */
static int64_t first_of_row(const struct mx_points *points, int64_t from, int64_t end, int64_t y) {
    while (from < end) {
        const int64_t middle = from + (end - from) / 2;
        if (points->point[middle].y < y)
            from = middle + 1;
        else
            end = middle;
    }
    return from;
}

void mx_points_of_rows(const struct mx_points *points, int64_t z, int64_t y0, int64_t y1, int64_t *from,
                       int64_t *end) {
    const int64_t a = points->first[z], b = points->first[z + 1];
    *from = first_of_row(points, a, b, y0);
    *end = first_of_row(points, *from, b, y1);
}

uint64_t mx_points_mix(uint64_t hash, uint64_t word) {
    for (int i = 0; i < 8; i++, word >>= 8) hash = (hash ^ (word & 255)) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t mx_points_mix_point(uint64_t hash, const struct mx_point *p) {
    hash = mx_points_mix(mx_points_mix(hash, (uint64_t)p->field), (uint64_t)p->array);
    hash = mx_points_mix(mx_points_mix(hash, (uint64_t)p->x), (uint64_t)p->y);
    return mx_points_mix(mx_points_mix(hash, (uint64_t)p->z), (uint64_t)p->number);
}

uint64_t mx_points_identity(const struct mx_points *points) {
    uint64_t hash = MX_POINTS_HASH;
    for (int64_t i = 0; i < points->n; i++) hash = mx_points_mix_point(hash, &points->point[i]);
    return points->n == 0 ? 0 : hash;
}
