/* SPDX-License-Identifier: BSD-3-Clause */
/* random_system.h - systems of fields as users write them, but made at random: forms, fields, radii, types
 * and the cells that an update reads. One row function serves them all; the plain loop that tests compare
 * with is written over arrays of its own. */
#ifndef RANDOM_SYSTEM_H
#define RANDOM_SYSTEM_H

#include "system/system.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TAPS = 9, TEST_FIELDS = 6, TEST_FIXED = 3, TEST_STAGES = 4 };

/* weight * the value of field `field` of what is read (or, from `fixed` on, of C) at a distance. */
struct tap {
    int32_t field;
    int32_t dx, dy, dz;
    bool fixed;
    double weight;
};

struct update {
    int32_t taps;
    struct tap tap[MOST_TAPS];
    int32_t old_field; /* of the array written */
    double old_weight; /* 0 where the form has no old value */
    double scale;      /* of the sum, so that fields of whole numbers have many of them */
    bool whole;        /* SET is given a whole number */
};

struct random_system {
    struct mx_system system;
    struct update update[TEST_STAGES][TEST_FIELDS]; /* of the levels of a step */
};

/* A row function knows its own system; this is the one that tests are at. */
static const struct random_system *systems_row;

/* Types by what C says of them, not by the library's tables. */
static const struct test_type {
    const char *c;
    int bytes, is_signed;
    double unit; /* what a tap's value is multiplied by to be about 1 */
} test_types[MX_DTYPES] = {
    [MX_F64] = {"double", 8, 1, 1},        [MX_F32] = {"float", 4, 1, 1},
    [MX_U8] = {"uint8_t", 1, 0, 0x1p-8},   [MX_U16] = {"uint16_t", 2, 0, 0x1p-15},
    [MX_I16] = {"int16_t", 2, 1, 0x1p-15}, [MX_I8] = {"int8_t", 1, 1, 0x1p-7},
    [MX_I32] = {"int32_t", 4, 1, 0x1p-31}, [MX_U32] = {"uint32_t", 4, 0, 0x1p-32},
    [MX_I64] = {"int64_t", 8, 1, 0x1p-40}, [MX_U64] = {"uint64_t", 8, 0, 0x1p-40},
};
static inline bool test_is_real(enum mx_dtype dtype) { return dtype == MX_F64 || dtype == MX_F32; }

/* A cell of whole numbers, little endian, wherever it lies: a user's file may have it anywhere. */
static inline double load_cell(enum mx_dtype dtype, const void *row, int64_t x) {
    const struct test_type *t = &test_types[dtype];
    uint64_t v = 0;
    if (dtype == MX_F64) return ((const double *)row)[x];
    if (dtype == MX_F32) return (double)((const float *)row)[x];
    memcpy(&v, (const char *)row + t->bytes * x, (size_t)t->bytes);
    if (!t->is_signed) return (double)v;
    return (double)((int64_t)(v << (64 - 8 * t->bytes)) >> (64 - 8 * t->bytes));
}

/* The lowest bits. */
static inline void store_whole(enum mx_dtype dtype, void *row, int64_t x, int64_t value) {
    memcpy((char *)row + test_types[dtype].bytes * x, &value, (size_t)test_types[dtype].bytes);
}

/* SET of a real: truncated, the nearest that there is, NaN as 0. */
static inline void store_cell(enum mx_dtype dtype, void *row, int64_t x, double value) {
    const int bits = 8 * test_types[dtype].bytes - test_types[dtype].is_signed;
    const long double most = ldexpl(1, bits), /* what is beyond the greatest */
        least = test_types[dtype].is_signed ? -most : 0;
    if (dtype == MX_F64) {
        ((double *)row)[x] = value;
    } else if (dtype == MX_F32) {
        ((float *)row)[x] = (float)value;
    } else {
        long double v = value != value ? 0 : (long double)value;
        v = v < least ? least : v > most - 1 ? most - 1 : v;
        store_whole(dtype, row, x, v < 0 ? (int64_t)v : (int64_t)(uint64_t)v);
    }
}

/* What a field has after SET of an update's sum. */
static inline void store_sum(enum mx_dtype dtype, const struct update *u, void *row, int64_t x, double sum) {
    if (test_is_real(dtype))
        store_cell(dtype, row, x, sum);
    else if (u->whole)
        store_whole(dtype, row, x, (int64_t)fmod(sum * u->scale, 1e15));
    else
        store_cell(dtype, row, x, sum * u->scale);
}

/* What place and time add: a kernel is told X, Y, Z and T. */
static inline double place_and_time(int64_t x, int64_t y, int64_t z, int64_t t, double scale) {
    return scale * (double)(x + 3 * y + 7 * z + 11 * t);
}

static inline void random_row(const struct mx_row *r, int level) {
    const struct random_system *rs = systems_row;
    const struct mx_system *s = &rs->system;
    const int32_t h = s->h, hc = s->hc, read = level & 1, written = 1 - read;
    for (int64_t row = 0; row < r->rows; row++)
        for (int64_t x = r->x0; x < r->x1; x++) {
            double value[TEST_FIELDS];
            for (int32_t f = 0; f < s->n_field[written]; f++) {
                const struct update *u = &rs->update[level][f];
                double sum = place_and_time(x - h, r->y + row, r->z, r->t, r->param[0]);
                for (int32_t i = 0; i < u->taps; i++) {
                    const struct tap *t = &u->tap[i];
                    const char *at = t->fixed ? (const char *)r->fixed[t->field * (2 * hc + 1) + t->dz + hc] +
                                                    (row + t->dy) * r->fixed_pitch[t->field]
                                              : (const char *)r->in[t->field * (2 * h + 1) + t->dz + h] +
                                                    (row + t->dy) * r->row_pitch;
                    const enum mx_dtype dtype =
                        t->fixed ? s->fixed[t->field].dtype : s->field[read][t->field].dtype;
                    sum = sum + t->weight * load_cell(dtype, at, x + t->dx);
                }
                if (u->old_weight != 0)
                    sum =
                        sum + u->old_weight * load_cell(s->field[written][u->old_field].dtype,
                                                        (char *)r->out[u->old_field] + row * r->row_pitch, x);
                value[f] = sum;
            }
            for (int32_t f = 0; f < s->n_field[written]; f++)
                store_sum(s->field[written][f].dtype, &rs->update[level][f],
                          (char *)r->out[f] + row * r->row_pitch, x, value[f]);
        }
}

static inline void random_row_1(const struct mx_row *r) { random_row(r, 0); }
static inline void random_row_2(const struct mx_row *r) { random_row(r, 1); }
static inline void random_row_3(const struct mx_row *r) { random_row(r, 2); }
static inline void random_row_4(const struct mx_row *r) { random_row(r, 3); }

typedef int64_t pick_fn(int64_t low, int64_t high);

static inline void random_update(struct random_system *rs, int level, int32_t f, pick_fn *any) {
    const struct mx_system *s = &rs->system;
    struct update *u = &rs->update[level][f];
    u->taps = (int32_t)any(2, MOST_TAPS);
    for (int32_t i = 0; i < u->taps; i++) {
        struct tap *t = &u->tap[i];
        t->fixed = s->n_fixed > 0 && any(0, 3) == 0;
        const int64_t reach = t->fixed ? s->hc : s->h;
        t->field = (int32_t)any(0, (t->fixed ? s->n_fixed : s->n_field[level & 1]) - 1);
        int32_t *to[3] = {&t->dx, &t->dy, &t->dz};
        for (int k = 0; k < 3; k++) /* the corners of the radius rather than its middle */
            *to[k] = (int32_t)(any(0, 1) ? any(0, 1) * 2 * reach - reach : any(-reach, reach));
        const enum mx_dtype dtype = t->fixed ? s->fixed[t->field].dtype : s->field[level & 1][t->field].dtype;
        t->weight = test_types[dtype].unit * (double)any(-900, 900) / 1000 / MOST_TAPS;
    }
    if (s->form != MX_JACOBI) {
        u->old_field = (int32_t)any(0, s->n_field[1 - (level & 1)] - 1);
        u->old_weight = (double)any(1, 9) / 10 * (any(0, 1) ? 1 : -1) *
                        test_types[s->field[1 - (level & 1)][u->old_field].dtype].unit;
    }
    const enum mx_dtype to = s->field[1 - (level & 1)][f].dtype;
    if (test_is_real(to)) return;
    u->whole =
        any(0, 2) == 0; /* beyond the ends now and then, but of 64 bits, of which doubles tell no more */
    u->scale = (test_types[to].bytes == 8 ? 1 : u->whole ? 9 : 3) / test_types[to].unit;
    u->whole &= to != MX_U64;
}

static inline void random_types(struct mx_field_of *field, int32_t n, enum mx_dtype most, const char *prefix,
                                pick_fn *any) {
    for (int32_t i = 0; i < n; i++) {
        field[i].dtype = (enum mx_dtype)any(0, (int64_t)most);
        snprintf(field[i].name, sizeof field[i].name, "%s%d", prefix, i);
    }
}

/* Values of the parameter over time: of the steps that there are, and no more. */
enum { SERIES_STEPS = 64 };
static inline void random_series(struct mx_system *s, bool of_levels) {
    static double values[SERIES_STEPS * TEST_STAGES];
    for (int t = 0; t < SERIES_STEPS * TEST_STAGES; t++) values[t] = 1e-4 * (1 + t * 7 % 5);
    const int32_t each = of_levels ? (int32_t)mx_system_levels(s) : 1;
    s->series[0] = (struct mx_series){.param = 0, .each = each, .n = SERIES_STEPS, .value = values};
    s->n_series = 1;
    s->param[0] = values[0];
}

/* 1 to 6 fields, h 1 to 4, up to 3 fields of C; some of stages; of some the parameter is one over time. */
static inline void random_system(struct random_system *rs, pick_fn *any) {
    memset(rs, 0, sizeof *rs);
    struct mx_system *s = &rs->system;
    s->form = (int32_t)any(MX_JACOBI, MX_STAGGERED);
    snprintf(s->name, sizeof s->name, "random-%d", s->form);
    s->h = (int32_t)(any(0, 1) ? 1 : any(1, 4));
    s->hc = (int32_t)any(0, s->h);
    s->n_fixed = (int32_t)(any(0, 2) ? any(1, TEST_FIXED) : 0);
    s->n_field[0] = (int32_t)(any(0, 1) ? any(1, 2) : any(1, TEST_FIELDS));
    s->n_field[1] = s->form == MX_STAGGERED ? (int32_t)any(1, TEST_FIELDS) : s->n_field[0];
    const enum mx_dtype most = any(0, 1) ? MX_F32 : MX_U64;
    random_types(s->field[0], s->n_field[0], most, "a", any);
    random_types(s->field[1], s->n_field[1], most, "b", any);
    if (s->form != MX_STAGGERED) memcpy(s->field[1], s->field[0], sizeof s->field[0]);
    random_types(s->fixed, s->n_fixed, MX_U64, "c", any);
    s->n_param = 1;
    strcpy(s->param_name[0], "scale");
    s->param[0] = 1e-4;
    if (s->form == MX_JACOBI && any(0, 1)) s->stages = (int32_t)any(2, TEST_STAGES);
    static void (*const row[TEST_STAGES])(const struct mx_row *) = {random_row_1, random_row_2, random_row_3,
                                                                    random_row_4};
    for (int level = 0; level < mx_system_levels(s); level++) {
        s->row[level] = row[level];
        for (int32_t f = 0; f < s->n_field[1 - (level & 1)]; f++) random_update(rs, level, f, any);
    }
    if (any(0, 2) == 0) random_series(s, any(0, 1));
}

/* Of two dimensions: nothing beside the row is read, and rows are planes. */
static inline void make_flat(struct random_system *rs) {
    rs->system.flat = true;
    for (int level = 0; level < TEST_STAGES; level++)
        for (int f = 0; f < TEST_FIELDS; f++)
            for (int i = 0; i < MOST_TAPS; i++) rs->update[level][f].tap[i].dy = 0;
}

/* ---- the same as a cell that users write, for compilers of devices; to be freed. What is z here, users call
 * y in two dimensions. */

static inline const char *text_of_place(const struct mx_system *s) {
    return s->flat ? "PARAM(scale) * (double)(X + 7 * Y + 11 * T)"
                   : "PARAM(scale) * (double)(X + 3 * Y + 7 * Z + 11 * T)";
}

static inline void text_of_tap(FILE *f, const struct mx_system *s, int read, const struct tap *t) {
    const char *field = (t->fixed ? s->fixed : s->field[read])[t->field].name;
    if (s->flat)
        fprintf(f, "(%.17e) * (double)AT(%s, %d, %d);\n", t->weight, field, t->dx, t->dz);
    else
        fprintf(f, "(%.17e) * (double)AT(%s, %d, %d, %d);\n", t->weight, field, t->dx, t->dy, t->dz);
}

static inline void text_of_fields(FILE *f, const char *macro, const struct mx_field_of *field, int32_t n) {
    if (n == 0) return;
    fprintf(f, "#define %s(F)", macro);
    for (int32_t i = 0; i < n; i++) fprintf(f, " F(%s, %s)", field[i].name, test_types[field[i].dtype].c);
    fprintf(f, "\n");
}

static inline void text_of_cell(FILE *f, const struct random_system *rs, int level, const char *macro) {
    const struct mx_system *s = &rs->system;
    const int read = level & 1, written = 1 - read;
    fprintf(f, "%s\n", macro);
    for (int32_t i = 0; i < s->n_field[written]; i++) {
        const struct update *u = &rs->update[level][i];
        fprintf(f, "    double v%d = %s;\n", i, text_of_place(s));
        for (int32_t k = 0; k < u->taps; k++) {
            fprintf(f, "    v%d = v%d + ", i, i);
            text_of_tap(f, s, read, &u->tap[k]);
        }
        if (u->old_weight != 0)
            fprintf(f, "    v%d = v%d + (%.17e) * (double)OLD(%s);\n", i, i, u->old_weight,
                    s->field[written][u->old_field].name);
    }
    for (int32_t i = 0; i < s->n_field[written]; i++) {
        const struct update *u = &rs->update[level][i];
        const bool real = test_is_real(s->field[written][i].dtype);
        fprintf(f, "    SET(%s, ", s->field[written][i].name);
        if (real) fprintf(f, "v%d);\n", i);
        if (!real && !u->whole) fprintf(f, "v%d * %.17e);\n", i, u->scale);
        if (!real && u->whole) fprintf(f, "(int64_t)fmod(v%d * %.17e, 1e15));\n", i, u->scale);
    }
    fprintf(f, "MX_END\n");
}

/* The reductions of random_norms.h. */
static inline void text_of_reduce(FILE *f, const struct random_system *rs, const char *name,
                                  const char *form) {
    const struct mx_system *s = &rs->system;
    const int read = s->form == MX_STAGGERED;
    const struct update *u = &rs->update[read][0];
    fprintf(f, "MX_REDUCE(%s)\n    double v = %s;\n", name, text_of_place(s));
    for (int32_t k = 0; k < u->taps; k++) {
        fprintf(f, "    v = v + ");
        text_of_tap(f, s, read, &u->tap[k]);
    }
    fprintf(f, "    RESULT(%s);\nMX_END\n", form);
}

static inline char *text_of_system(const struct random_system *rs) {
    static const char *const forms[] = {"MX_JACOBI", "MX_LEAPFROG", "MX_STAGGERED"};
    const struct mx_system *s = &rs->system;
    const bool two = s->form == MX_STAGGERED;
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    if (f == NULL) return NULL;
    fprintf(f, "#define MX_NAME \"random\"\n#define MX_FIXED_RADIUS %d\n", s->hc);
    if (s->flat)
        fprintf(f, "#define MX_RADII %d, %d, 0\n", s->h, s->h);
    else
        fprintf(f, "#define MX_RADIUS %d\n", s->h);
    if (s->stages > 1) fprintf(f, "#define MX_STAGES %d\n", s->stages);
    fprintf(f, "#define MX_FORM %s\n#define MX_PARAMS(P) P(scale, 0)\n", forms[s->form]);
    text_of_fields(f, "MX_STATE", s->field[0], s->n_field[0]);
    if (two) text_of_fields(f, "MX_PARTNER", s->field[1], s->n_field[1]);
    text_of_fields(f, "MX_FIXED", s->fixed, s->n_fixed);
    fprintf(
        f, "#define MX_REDUCES(R) R(flux, MX_SUM) R(top, MX_MAX) R(low, MX_MIN)\n#include <memext/cell.h>\n");
    for (int level = 0; level < mx_system_levels(s); level++) {
        char macro[24];
        snprintf(macro, sizeof macro, "MX_CELL_%d", level + 1);
        text_of_cell(f, rs, level,
                     two             ? (level == 0 ? "MX_CELL_B" : "MX_CELL_A")
                     : s->stages > 1 ? macro
                                     : "MX_CELL");
    }
    text_of_reduce(f, rs, "flux", "v");
    text_of_reduce(f, rs, "top", "fabs(v - 0.01)");
    text_of_reduce(f, rs, "low", "v");
    fclose(f);
    return text;
}

static inline struct mx_problem problem_of(const struct random_system *rs, int64_t nx, int64_t ny, int64_t nz,
                                           int64_t nt) {
    return (struct mx_problem){.nx = nx,
                               .ny = ny,
                               .nz = nz,
                               .nt = nt,
                               .h = rs->system.h,
                               .flat = rs->system.flat,
                               .dtype = rs->system.field[0][0].dtype,
                               .system = &rs->system};
}

#endif
