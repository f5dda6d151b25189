/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/field_rows.h"

bool mx_next_field_row(const struct mx_state_rows *s, struct mx_field_row *row) {
    const struct mx_problem *p = s->problem;
    const int64_t h = p->h, hy = mx_halo_y(p);
    const int32_t first = s->layout != NULL ? 0 : s->field,
                  last = s->layout != NULL ? mx_field_count(p, s->array) - 1 : s->field;
    int32_t field = row->field + 1;
    int64_t y = row->y + hy;
    if (row->n == 0 || field > last) {
        y = row->n > 0 ? y + 1 : s->y0 > hy ? s->y0 : hy;
        field = first;
    }
    if (y >= s->y1 || y >= p->ny + hy || s->z < h || s->z >= p->nz + h) return false;
    *row = (struct mx_field_row){.array = s->array,
                                 .field = field,
                                 .dtype = mx_field_dtype(p, s->array, field),
                                 .y = y - hy,
                                 .z = s->z - h + p->first_plane,
                                 .n = p->nx};
    row->cells = s->rows + (y - s->y0) * s->row_pitch_bytes + h * mx_dtype_bytes(row->dtype);
    if (s->layout != NULL)
        row->cells = (const char *)row->cells + s->layout->field_offset_bytes[s->array][field];
    return true;
}
