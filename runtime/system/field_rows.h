/* SPDX-License-Identifier: BSD-3-Clause */
/* field_rows.h - goes through rows of a state, field by field. */
#ifndef MX_FIELD_ROWS_H
#define MX_FIELD_ROWS_H

#include "system/system.h"

/* Rows [y0,y1) of plane z, frame counted, of array A (0) or B (1). Cell 0 of row y0 is at `rows`, that of
 * each next row row_pitch_bytes later. */
struct mx_state_rows {
    const struct mx_problem *problem;
    const struct mx_layout *layout; /* where the fields lie in a row; NULL = the rows are of `field` alone */
    int array;
    int32_t field; /* without a layout */
    int64_t z, y0, y1;
    const char *rows;
    int64_t row_pitch_bytes;
};

/* All rows of a plane of a Buffer. */
static inline struct mx_state_rows mx_rows_of_plane(const struct mx_problem *problem,
                                                    const struct mx_layout *layout, int array, int64_t z,
                                                    const char *plane) {
    return (struct mx_state_rows){.problem = problem,
                                  .layout = layout,
                                  .array = array,
                                  .z = z,
                                  .y1 = layout->rows,
                                  .rows = plane,
                                  .row_pitch_bytes = layout->row_pitch_bytes};
}

/* The interior of a row of one field. */
struct mx_field_row {
    int32_t array, field;
    enum mx_dtype dtype;
    int64_t y, z;      /* interior coordinates in the whole grid */
    const void *cells; /* [n]; mx_cell_load (system.h) gives each as a double */
    int64_t n;
};

/* Goes on to the next row of a field, or to the first if *row is zeroed: all fields of a row, and then the
 * next row. Rows and planes of the frame are skipped. false = there are no more.
 *
 *     struct mx_field_row row = {0};
 *     while (mx_next_field_row(&rows, &row))
 *         for (int64_t x = 0; x < row.n; x++) sum += mx_cell_load(row.dtype, row.cells, x);
 */
bool mx_next_field_row(const struct mx_state_rows *rows, struct mx_field_row *row);

#endif
