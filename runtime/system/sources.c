/* SPDX-License-Identifier: BSD-3-Clause */
/* sources.c - sources: points, and the wavelets that are added there. */
#include "system/points_private.h"
#include "system/values.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>
#include <string.h>

/* ---- wavelets */

static int read_wavelet(const char *path, struct mx_wavelet *out, mx_why *why) {
    struct mx_wavelet w = {.path = strdup(path)};
    if (w.path == NULL) return mx_fail(why, -ENOMEM, "no memory for the name of %s", path);
    const int err = mx_values_read(path, "a wavelet", why, &w.n, &w.amplitude);
    if (err < 0) return free(w.path), err;
    *out = w;
    return 0;
}

/* The number of the wavelet of this file; read once. */
int mx_sources_wavelet(struct mx_sources *s, const char *path, int64_t *out, mx_why *why) {
    for (int64_t i = s->n_wavelets; i-- > 0;) /* lists name the same one again and again */
        if (strcmp(s->wavelet[i].path, path) == 0) return *out = i, 0;
    struct mx_wavelet *all = realloc(s->wavelet, ((size_t)s->n_wavelets + 1) * sizeof *all);
    if (all == NULL)
        return mx_fail(why, -ENOMEM, "no memory for %lld wavelets", (long long)s->n_wavelets + 1);
    s->wavelet = all;
    int err = read_wavelet(path, &all[s->n_wavelets], why);
    if (err == 0) *out = s->n_wavelets++;
    return err;
}

/* ---- sources */

int mx_sources_index(struct mx_sources *sources, const struct mx_problem *p, mx_why *why) {
    return mx_points_index(&sources->points, p, why);
}

void mx_sources_free(struct mx_sources *s) {
    for (int64_t i = 0; i < s->n_wavelets; i++) {
        free(s->wavelet[i].path);
        free(s->wavelet[i].amplitude);
    }
    free(s->wavelet);
    free(s->of);
    mx_points_free(&s->points);
    *s = (struct mx_sources){0};
}

int64_t mx_sources_bytes(const struct mx_sources *s) {
    int64_t bytes = s->points.capacity * (int64_t)sizeof(struct mx_point) + s->of_capacity * 8;
    for (int64_t i = 0; i < s->n_wavelets; i++) bytes += 8 * s->wavelet[i].n;
    return bytes;
}

uint64_t mx_sources_identity(const struct mx_sources *s) {
    uint64_t hash = MX_POINTS_HASH;
    for (int64_t i = 0; i < s->points.n; i++) {
        const struct mx_point *p = &s->points.point[i];
        hash = mx_points_mix(mx_points_mix_point(hash, p), (uint64_t)s->of[p->number]);
    }
    for (int64_t w = 0; w < s->n_wavelets; w++)
        for (int64_t i = 0; i < s->wavelet[w].n; i++) {
            uint64_t bits;
            memcpy(&bits, &s->wavelet[w].amplitude[i], sizeof bits);
            hash = mx_points_mix(hash, bits);
        }
    return s->points.n == 0 ? 0 : hash;
}
