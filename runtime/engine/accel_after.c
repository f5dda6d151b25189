/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_after.c - what happens to rows that a level has written (accel_after.h): its beginning and end, and
 * the order of its parts. */
#include "engine/accel_private.h"
#include "engine/accel_room.h"

#include <errno.h>
#include <stdlib.h>

uint64_t mx_accel_extra_bytes(const struct mx_problem *p, const struct mx_sources *sources,
                              const struct mx_points *probes, bool norms) {
    const int64_t point = POINT_NUMBERS * (int64_t)sizeof(int64_t), page = 4096;
    int64_t bytes = 0;
    if (sources->points.n > 0) bytes += sources->points.n * point + mx_accel_wavelet_bytes(sources) + page;
    if (probes->n > 0)
        bytes += probes->n * point + mx_accel_room_for_values(probes) * (int64_t)sizeof(double);
    if (!norms) return (uint64_t)bytes;
    /* Pitches are chosen later: not wider than this. */
    const int64_t row = mx_max(mx_field_offsets(p, 0, NULL), mx_field_offsets(p, 1, NULL)) + page;
    const int64_t plane = (p->ny + 2 * mx_halo_y(p)) * row + 4 * page;
    const int64_t kept = mx_states(p) < 2 ? 0 : mx_max(plane, 4 * (int64_t)LEAST_BYTES);
    return (uint64_t)(bytes + mx_accel_room_for_lanes(p) + kept);
}

struct mx_accel_after *mx_accel_after_make(mx_accel *accel, const struct mx_work *work,
                                           const struct mx_view *view, const struct mx_after *after,
                                           char *series) {
    struct mx_accel_after *d = calloc(1, sizeof *d);
    if (d == NULL) {
        mx_accel_fail(accel, -EIO, "no memory for the work between levels on an accelerator");
        return NULL;
    }
    *d = (struct mx_accel_after){
        .accel = accel, .work = work, .problem = work->problem, .after = *after, .series = series};
    int err = after->sources != NULL ? mx_accel_put_sources(d, after->sources) : 0;
    if (err == 0 && after->traces != NULL && after->traces->probes->n > 0)
        err = mx_accel_make_probes(d, after->traces->probes);
    if (err == 0 && after->norms != NULL) err = mx_accel_make_norms(d, view);
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

int mx_accel_after_planes(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t z0,
                          int64_t z1, bool old, int64_t *number) {
    int err = mx_accel_add_sources(d, a, l, z0, z1, number);
    if (err == 0) err = mx_accel_make_zeros(d, a, l, z0, z1, number);
    return err < 0 ? err : mx_accel_take_norms(d, a, l, z0, z1, old, number);
}

int mx_accel_after_level(struct mx_accel_after *d, const struct mx_advance *a, int32_t l, int64_t call,
                         int64_t *number) {
    const struct mx_window at = mx_window_at(a, l), *w = &at;
    const struct mx_accel_box b = {w->y0, w->y1, w->z0, w->z1};
    int err = mx_accel_see_probes(d, a, l, call, number);
    if (err == 0) err = mx_accel_refresh_x(d, a, l, number);
    if (err == 0) err = mx_accel_refresh_y(d, a, mx_accel_written(a, l), &b, number);
    return err < 0 ? err : mx_accel_refresh_z(d, a, mx_accel_written(a, l), &b, number);
}

int mx_accel_after_inserted(struct mx_accel_after *d, const struct mx_advance *a, int32_t l,
                            int64_t *number) {
    const struct mx_seam *f = &a->seam_in;
    const struct mx_seam_planes have = mx_seam_planes(f, l);
    const struct mx_accel_box b = {f->first_y[l], f->first_y[l] + f->n_rows[l], have.z0, have.z1};
    return b.y0 < b.y1 ? mx_accel_refresh_z(d, a, (a->parity + l) & 1, &b, number) : 0;
}
