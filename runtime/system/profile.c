/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/profile.h"

#include <string.h>

enum { LINE_BYTES = 64, PAGE_BYTES = 4096 };

struct mx_profile_range mx_profile_rows(const struct mx_problem *p, uint8_t alike) {
    if ((alike & MX_ALIKE_Y) != 0) return (struct mx_profile_range){0, 1};
    if (mx_sides_periodic(&p->sides, MX_DIM_Y))
        return (struct mx_profile_range){mx_halo_y(p) - p->ny, mx_halo_y(p) + 2 * p->ny};
    return (struct mx_profile_range){0, p->ny + 2 * mx_halo_y(p)};
}

struct mx_profile_range mx_profile_planes(const struct mx_problem *p, uint8_t alike) {
    return (struct mx_profile_range){0, (alike & MX_ALIKE_Z) != 0 ? 1 : p->nz + 2 * p->h};
}

static int64_t lines(int64_t bytes) { return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES; }

void mx_profile_lay(const struct mx_problem *p, enum mx_dtype dtype, uint8_t alike, struct mx_profile *out) {
    const struct mx_profile_range rows = mx_profile_rows(p, alike), planes = mx_profile_planes(p, alike);
    const int64_t cells = (p->nx + 2 * p->h) * mx_dtype_bytes(dtype);
    int64_t row = alike == MX_ALIKE_X ? mx_dtype_bytes(dtype) : lines(cells);
    if (row % PAGE_BYTES == 0) row += LINE_BYTES; /* as rows of a Buffer (mx_layout_make) */
    const int64_t plane = (rows.end - rows.first) * row;
    *out = (struct mx_profile){.alike = alike,
                               .row_pitch_bytes = (alike & MX_ALIKE_Y) != 0 ? 0 : row,
                               .plane_pitch_bytes = (alike & MX_ALIKE_Z) != 0 ? 0 : plane,
                               .first_bytes = -rows.first * row,
                               .bytes = lines(planes.end * plane)};
}

int64_t mx_profile_source(const struct mx_problem *p, int dim, int64_t i) {
    return mx_sides_periodic(&p->sides, dim)
               ? mx_halo_of(p, dim) + mx_wrap(i - mx_halo_of(p, dim), mx_extent_of(p, dim))
               : i;
}

uint64_t mx_profile_bytes(const struct mx_problem *p) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < mx_fixed_count(p); i++)
        if (mx_is_profile(p, i)) bytes += (uint64_t)p->system->profile[i].bytes;
    return bytes;
}

const char *mx_alike_text(uint8_t alike, char text[4]) {
    int n = 0;
    for (int dim = 0; dim < 3; dim++)
        if ((alike >> dim & 1) != 0) text[n++] = (char)('x' + dim);
    text[n] = 0;
    return text;
}

const char *mx_alike_told(const struct mx_problem *p, uint8_t alike, char text[4]) {
    mx_alike_text(alike, text);
    for (char *c = text; *c != 0; c++) *c = mx_axis_name(p, *c - 'x');
    return text;
}

uint8_t mx_alike_parse(const char *text) {
    uint8_t alike = 0;
    char same[4];
    for (const char *c = text; c != NULL && *c >= 'x' && *c <= 'z'; c++) alike |= (uint8_t)(1 << (*c - 'x'));
    return text != NULL && strcmp(mx_alike_text(alike, same), text) == 0 ? alike : 0;
}
