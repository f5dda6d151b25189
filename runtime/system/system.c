/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/system.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int64_t bytes;
    double lowest, highest;
} dtypes[MX_DTYPES] = {
    [MX_F64] = {"f64", 8, -DBL_MAX, DBL_MAX},    [MX_F32] = {"f32", 4, -(double)FLT_MAX, (double)FLT_MAX},
    [MX_U8] = {"u8", 1, 0, UINT8_MAX},           [MX_U16] = {"u16", 2, 0, UINT16_MAX},
    [MX_I16] = {"i16", 2, INT16_MIN, INT16_MAX}, [MX_I8] = {"i8", 1, INT8_MIN, INT8_MAX},
    [MX_I32] = {"i32", 4, INT32_MIN, INT32_MAX}, [MX_U32] = {"u32", 4, 0, UINT32_MAX},
    [MX_I64] = {"i64", 8, -0x1p53, 0x1p53},      [MX_U64] = {"u64", 8, 0, 0x1p53}};

int64_t mx_dtype_bytes(enum mx_dtype dtype) { return dtypes[dtype].bytes; }
bool mx_dtype_is_signed(enum mx_dtype dtype) { return dtypes[dtype].lowest < 0; }
double mx_dtype_lowest(enum mx_dtype dtype) { return dtypes[dtype].lowest; }
double mx_dtype_highest(enum mx_dtype dtype) { return dtypes[dtype].highest; }

/* ------------------------------------------------------------------ one cell */

#define WHOLE_TYPES(DO)                                                                                      \
    DO(MX_U8, u8, uint8_t)                                                                                   \
    DO(MX_U16, u16, uint16_t)                                                                                \
    DO(MX_I16, i16, int16_t)                                                                                 \
    DO(MX_I8, i8, int8_t)                                                                                    \
    DO(MX_I32, i32, int32_t)                                                                                 \
    DO(MX_U32, u32, uint32_t)                                                                                \
    DO(MX_I64, i64, int64_t)                                                                                 \
    DO(MX_U64, u64, uint64_t)
#define LOAD(shortly, type)                                                                                  \
    {                                                                                                        \
        type v;                                                                                              \
        memcpy(&v, (const char *)row + x * (int64_t)sizeof v, sizeof v);                                     \
        return (double)v;                                                                                    \
    }
#define STORE(type, stored)                                                                                  \
    {                                                                                                        \
        const type v = stored;                                                                               \
        memcpy((char *)row + x * (int64_t)sizeof v, &v, sizeof v);                                           \
        return;                                                                                              \
    }
double mx_cell_load(enum mx_dtype dtype, const void *row, int64_t x) {
    switch (dtype) {
#define CASE(DTYPE, shortly, type)                                                                           \
    case DTYPE:                                                                                              \
        LOAD(shortly, type)
        CASE(MX_F64, f64, double)
        CASE(MX_F32, f32, float)
        WHOLE_TYPES(CASE)
#undef CASE
    }
    return 0;
}

void mx_cell_store(enum mx_dtype dtype, void *row, int64_t x, double value) {
    switch (dtype) {
    case MX_F64:
        STORE(double, value)
    case MX_F32:
        STORE(float, (float)value)
#define CASE(DTYPE, shortly, type)                                                                           \
    case DTYPE:                                                                                              \
        STORE(type, mx_##shortly##_of_real(value))
        WHOLE_TYPES(CASE)
#undef CASE
    }
}

void mx_cell_add(enum mx_dtype dtype, void *row, int64_t x, double more) {
    switch (dtype) {
    case MX_F64:
    case MX_F32:
        mx_cell_store(dtype, row, x, mx_cell_load(dtype, row, x) + more);
        return;
#define CASE(DTYPE, shortly, type)                                                                           \
    case DTYPE: {                                                                                            \
        type cell;                                                                                           \
        memcpy(&cell, (const char *)row + x * (int64_t)sizeof cell, sizeof cell);                            \
        STORE(type, mx_##shortly##_plus(cell, more))                                                         \
    }
        WHOLE_TYPES(CASE)
#undef CASE
    }
}

int64_t mx_field_offsets(const struct mx_problem *p, int array, int64_t *offset_bytes) {
    enum { LINE_BYTES = 64, PAGE_BYTES = 4096 };
    int64_t at = 0, end = 0;
    for (int32_t f = 0; f < mx_field_count(p, array); f++) {
        const int64_t bytes = (p->nx + 2 * p->h) * mx_dtype_bytes(mx_field_dtype(p, array, f));
        int64_t pitch = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
        /* fields that begin on the same page offset would compete for the same sets of L1 */
        if (pitch % PAGE_BYTES == 0) pitch += LINE_BYTES;
        if (offset_bytes != NULL) offset_bytes[f] = at;
        end = at + bytes;
        at += pitch;
    }
    return end;
}

const char *mx_dtype_name(enum mx_dtype dtype) { return dtypes[dtype].name; }

bool mx_dtype_find(const char *name, enum mx_dtype *out) {
    for (int i = 0; i < MX_DTYPES; i++)
        if (strcmp(name, dtypes[i].name) == 0) return *out = (enum mx_dtype)i, true;
    return false;
}

/* ------------------------------------------------------------------ cells */

int64_t mx_cell_bytes(const struct mx_problem *p, int array) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < mx_field_count(p, array); i++)
        bytes += mx_dtype_bytes(mx_field_dtype(p, array, i));
    return bytes;
}

int64_t mx_fixed_cell_bytes(const struct mx_problem *p) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < mx_fixed_count(p); i++)
        if (!mx_is_profile(p, i)) bytes += mx_dtype_bytes(p->system->fixed[i].dtype);
    return bytes;
}

int64_t mx_step_bytes(const struct mx_problem *p) {
    const int64_t both = mx_cell_bytes(p, 0) + mx_cell_bytes(p, 1), old = mx_reads_old(p) ? 2 : 1;
    return mx_levels_a_step(p) * (mx_fixed_cell_bytes(p) + both / 2 * (1 + old));
}

int32_t mx_loaded_count(const struct mx_problem *p) {
    int32_t n = 0;
    for (int32_t i = 0; i < mx_fixed_count(p); i++) n += !mx_is_profile(p, i);
    return n;
}

/* ------------------------------------------------------------------ bytes of C */

static int64_t alignment(const struct mx_fixed_layout *f) { return f->align_bytes > 0 ? f->align_bytes : 1; }

/* Of plane 0: the first byte of row y0 that is there, and where the last of row y1-1 ends. Either may be
 * negative, where plane 0 is not there. */
static int64_t rows_begin(const struct mx_fixed_layout *f, int64_t y0) {
    return f->offset_bytes + y0 * f->row_pitch_bytes + f->lead_bytes;
}
static int64_t rows_end(const struct mx_fixed_layout *f, int64_t y1) {
    return rows_begin(f, y1 - 1) + f->row_bytes;
}

void mx_fixed_span(const struct mx_fixed_layout *f, int64_t z, int64_t y0, int64_t y1, uint64_t *offset,
                   uint64_t *bytes) {
    const int64_t align = alignment(f), plane = z * f->plane_pitch_bytes;
    const int64_t begin = (rows_begin(f, y0) + plane) / align * align;
    const int64_t end = (rows_end(f, y1) + plane + align - 1) / align * align;
    *offset = (uint64_t)begin;
    *bytes = (uint64_t)(end - begin);
}

/* Euclid's algorithm. */
int64_t mx_floor_sum(int64_t n, int64_t m, int64_t a, int64_t b) {
    int64_t sum = 0;
    for (;;) {
        sum += n * (n - 1) / 2 * (a / m) + n * (b / m);
        a %= m, b %= m;
        const int64_t most = a * n + b;
        if (most < m) return sum;
        n = most / m, b = most % m;
        const int64_t old = m;
        m = a, a = old;
    }
}

int64_t mx_fixed_span_sum(const struct mx_fixed_layout *f, int64_t z0, int64_t z1, int64_t y0, int64_t y1) {
    const int64_t align = alignment(f), n = z1 - z0, plane = f->plane_pitch_bytes;
    if (n <= 0 || y0 >= y1) return 0;
    const int64_t begin = rows_begin(f, y0) + z0 * plane, end = rows_end(f, y1) + z0 * plane;
    if (plane % align == 0) return n * ((end + align - 1) / align - begin / align) * align;
    /* Whole planes' multiples cancel out: small numbers for the sums. */
    const int64_t base = begin / align * align;
    return align * (mx_floor_sum(n, align, plane % align, end - base + align - 1) -
                    mx_floor_sum(n, align, plane % align, begin - base));
}

int64_t mx_fixed_slot_bytes(const struct mx_fixed_layout *f, int64_t rows) {
    const int64_t align = alignment(f);
    if (f->row_pitch_bytes == 0) return 0;
    const int64_t bytes = rows * f->row_pitch_bytes + f->lead_bytes;
    if ((f->offset_bytes + f->lead_bytes) % align == 0 && f->plane_pitch_bytes % align == 0 &&
        f->row_pitch_bytes % align == 0)
        return (bytes + align - 1) / align * align; /* nothing is ever widened */
    return (bytes + 2 * (align - 1)) / align * align;
}

const char *mx_param_names(const struct mx_system *s, char *out, size_t capacity) {
    bool room = true;
    out[0] = 0;
    for (int32_t i = 0; i < s->n_param && room; i++) {
        const size_t used = strlen(out);
        room = used + MX_FIELD_NAME + sizeof ", ..." < capacity;
        snprintf(out + used, capacity - used, "%s%s", i > 0 ? ", " : "", room ? s->param_name[i] : "...");
    }
    return out;
}

const char *mx_extents_text(const struct mx_problem *p, char text[MX_EXTENTS_TEXT]) {
    const long long nx = p->nx, ny = p->ny, nz = mx_all_planes(p);
    if (p->flat)
        snprintf(text, MX_EXTENTS_TEXT, "%lld x %lld", nx, nz);
    else
        snprintf(text, MX_EXTENTS_TEXT, "%lld x %lld x %lld", nx, ny, nz);
    return text;
}

const char *mx_block_text(const struct mx_problem *p, int64_t rows, int64_t planes,
                          char text[MX_BLOCK_TEXT]) {
    const char *word = mx_plane_word(p->flat);
    if (p->flat)
        snprintf(text, MX_BLOCK_TEXT, "%lld %ss", (long long)planes, word);
    else
        snprintf(text, MX_BLOCK_TEXT, "%lld rows by %lld %ss", (long long)rows, (long long)planes, word);
    return text;
}
