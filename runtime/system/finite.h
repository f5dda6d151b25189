/* SPDX-License-Identifier: BSD-3-Clause */
/* finite.h - cells that hold no number: NaN, or an infinity. This file alone says which they are; where rows
 * are looked at, and what follows, say execute.h and run/finite.h.
 *
 * Only cells that are computed count. The frame does not, so that a mask may stand there, nor do copies of
 * it, nor fields that a kernel only reads.
 */
#ifndef MX_FINITE_H
#define MX_FINITE_H

#include "system/system.h"

#include <pthread.h>

/* What was found in rows of a state. */
struct mx_nonfinite {
    int64_t cells; /* a number for each field; 0: the rest says nothing */
    /* The first of them in the order z, y, x: its field, and its interior coordinates in the whole grid. */
    int32_t array, field; /* array A (0) or B (1) of the system */
    int64_t x, y, z;
};

/* What several threads find together. */
struct mx_finding {
    pthread_mutex_t lock;
    struct mx_nonfinite found;
};

/* How many of n numbers are not finite; of integers none. */
int64_t mx_count_nonfinite(const void *cells, int64_t n, enum mx_dtype dtype);

/* Adds what rows [y0,y1) of plane z have, frame counted in all of them: cell 0 of row y0 is at `rows`, that
 * of the next `row_pitch_bytes` behind. Rows and planes of the frame are passed over. */
void mx_nonfinite_rows(const struct mx_problem *problem, const struct mx_layout *layout, int array, int64_t z,
                       int64_t y0, int64_t y1, const char *rows, int64_t row_pitch_bytes,
                       struct mx_nonfinite *found);
/* The same of one field alone, whose cell 0 of row y0 is at `rows`. */
void mx_nonfinite_field(const struct mx_problem *problem, int array, int32_t field, int64_t z, int64_t y0,
                        int64_t y1, const char *rows, int64_t row_pitch_bytes, struct mx_nonfinite *found);
/* The same of n cells of a row, of which `where` says what the first of them is. */
void mx_nonfinite_cells(const void *cells, int64_t n, enum mx_dtype dtype, const struct mx_nonfinite *where,
                        struct mx_nonfinite *found);
/* Adds what was found elsewhere. */
void mx_nonfinite_add(struct mx_nonfinite *found, const struct mx_nonfinite *more);

#endif
