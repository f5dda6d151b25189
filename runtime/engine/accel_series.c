/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_series.c - parameters over time in an accelerator's memory: one after the other, each with a value
 * for every step of the run from its beginning, or for every level. */
#include "engine/accel_private.h"
#include "engine/accel_room.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int mx_accel_put_series(mx_accel *accel, const struct mx_problem *p, char **out) {
    const int64_t steps = mx_accel_series_steps(p), bytes = (int64_t)mx_accel_series_bytes(p);
    struct mx_accel_after d = {.accel = accel};
    *out = NULL;
    if (bytes == 0) return 0;
    double *all = malloc((size_t)bytes);
    if (all == NULL) return mx_accel_fail(accel, -ENOMEM, "no memory for the parameters over time");
    for (int32_t i = 0; i < p->system->n_series; i++) {
        const struct mx_series *q = &p->system->series[i];
        const int64_t each = mx_series_each(q);
        double *to = all + mx_accel_series_at(p, i);
        for (int64_t k = 0; k < steps * each; k++) to[k] = mx_series_at(q, k / each, k % each);
    }
    int err = mx_accel_take(&d, bytes, "the parameters over time", out);
    if (err == 0) err = mx_accel_transfer(&d, true, *out, all, bytes);
    free(all);
    return err;
}
