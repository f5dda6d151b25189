/* SPDX-License-Identifier: BSD-3-Clause */
/* checksum.c - the digest of the interior cells of a result (digest.h). */
#include "run/work/work.h"

#include "run/work/digest.h"

#include <stdio.h>
#include <stdlib.h>

struct digest {
    const struct mx_run *run;
    struct mx_nonfinite *found; /* NULL = the state was counted before */
    uint64_t *plane;            /* of this rank's interior planes */
    int array;                  /* whose fields: A (0) or B (1) */
};

static int digest_plane(void *context, int64_t z, char *plane) {
    struct digest *d = context;
    const struct mx_problem *p = &d->run->o.problem;
    const struct mx_layout *l = &d->run->report.layout;
    if (z < p->h || z >= p->nz + p->h) return 0;
    const struct mx_state_rows rows = mx_rows_of_plane(p, l, d->array, z, plane);
    struct mx_field_row row = {0};
    while (mx_next_field_row(&rows, &row))
        mx_digest_row(&d->plane[z - p->h], row.cells, (size_t)(row.n * mx_dtype_bytes(row.dtype)));
    if (d->found != NULL) mx_nonfinite_rows(&rows, d->found);
    return 0;
}

/* The array that holds the state, of staggered systems the first of both. */
int mx_run_state_array(const struct mx_run *r) {
    return (int)(mx_levels_of(&r->o.problem, r->report.steps_done) & 1);
}

static int32_t arrays_of(const struct mx_run *r) { return mx_states(&r->o.problem); }

/* Plane by plane, from the Buffers. */
static int read_planes(struct mx_run *r, uint64_t *plane) {
    struct mx_nonfinite found = {.cells = 0};
    struct digest d = {r, mx_run_is_counted(r) ? NULL : &found, plane, mx_run_state_array(r)};
    int err = 0;
    for (int32_t i = 0; i < arrays_of(r) && err == 0; i++) {
        if (i > 0) d.array = 1, d.plane += r->o.problem.nz;
        err = mx_run_pass_grid(r, "checksum", mx_run_buffer(r, r->result, d.array), false, digest_plane, &d);
    }
    if (err < 0 || d.found == NULL) return err;
    return mx_run_finite_state(r, r->report.steps_done - r->first_time, &found, &r->why);
}

int mx_run_take_checksum(struct mx_run *r) {
    const int64_t all = r->whole.nz * arrays_of(r);
    uint64_t *own = calloc((size_t)(r->o.problem.nz * arrays_of(r)), sizeof *own),
             *plane = calloc((size_t)all, sizeof *plane), sum = 0;
    int err = own == NULL || plane == NULL ? mx_fail(&r->why, -ENOMEM, "no memory for the checksum") : 0;
    const uint64_t *known = mx_run_fuse_digests(r);
    if (err == 0 && known == NULL) err = read_planes(r, own);
    if (err == 0) err = mx_run_gather_planes(r, arrays_of(r), known != NULL ? known : own, plane);
    for (int64_t i = 0; i < all && err == 0; i++) sum = mx_digest_fold(sum, plane[i]);
    if (err == 0) snprintf(r->report.checksum, sizeof r->report.checksum, "%016llx", (unsigned long long)sum);
    free(own);
    free(plane);
    return err;
}
