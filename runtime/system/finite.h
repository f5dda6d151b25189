/* SPDX-License-Identifier: BSD-3-Clause */
/* finite.h - counts cells that are not finite: NaN or an infinity. execute.h says when rows are looked at,
 * and run/work/finite.h what follows.
 *
 * Only computed cells count. The frame does not count, so that it may hold a mask. Nor do copies of it and
 * read-only fields.
 */
#ifndef MX_FINITE_H
#define MX_FINITE_H

#include "system/field_rows.h"
#include "system/system.h"

#include <pthread.h>

/* What was found in rows of a state. */
struct mx_nonfinite {
    int64_t cells; /* number of cells, of all fields; 0 = the other members mean nothing */
    /* The first of these cells in the order z, y, x: its field, and its interior coordinates in the whole
     * grid. */
    int32_t array, field; /* array A (0) or B (1) of the system */
    int64_t x, y, z;
};

/* What several threads have found together. */
struct mx_finding {
    pthread_mutex_t lock;
    struct mx_nonfinite found;
};

/* Returns how many of n cells are not finite; 0 for integers. */
int64_t mx_count_nonfinite(const void *cells, int64_t n, enum mx_dtype dtype);

/* Adds the cells of the interior of these rows. */
void mx_nonfinite_rows(const struct mx_state_rows *rows, struct mx_nonfinite *found);
/* The same for n cells of a row; `where` has the field and the coordinates of the first. */
void mx_nonfinite_cells(const void *cells, int64_t n, enum mx_dtype dtype, const struct mx_nonfinite *where,
                        struct mx_nonfinite *found);
/* Adds what was found elsewhere. */
void mx_nonfinite_add(struct mx_nonfinite *found, const struct mx_nonfinite *more);

#endif
