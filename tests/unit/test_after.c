/* SPDX-License-Identifier: BSD-3-Clause */
/* Sides, frames, points and norms: what happens to rows that a level has written, by any threads, in any
 * order and in pieces, against a plain transcription of the model (levels, planes, whole frames), bit by bit.
 */
#include "engine/after.h"
#include "engine/work.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <memext/backend.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t state = 11;
static uint64_t next_random(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}
static int64_t pick(int64_t from, int64_t to) {
    return from + (int64_t)(next_random() % (uint64_t)(to - from + 1));
}
static double real(void) { return (double)next_random() / 2147483648.0 - 0.5; }

enum { MOST_FIELDS = 3, MOST_STEPS = 5, POINTS = 24, CHECKS = MOST_STEPS + 1 };

/* ------------------------------------------------------------------ one cell */

/* What a cell reads: shared by the kernel's rows and the oracle, which differ in all else. */
struct cell {
    double (*at)(const void *context, int field, int dx, int dy, int dz);
    const void *context;
    double old, fixed; /* C at the cell */
    int fields, h;     /* of the array read */
    int64_t x, y, z, t;
};

static double at(const struct cell *c, int f, int dx, int dy, int dz) {
    return c->at(c->context, f % c->fields, dx, dy, dz);
}

static double new_value(const struct cell *c, int form, int f) {
    const int h = c->h, g = f + 1;
    double v = 0.4 * at(c, f, 0, 0, 0) + 0.1 * (at(c, f, -h, 0, 0) + at(c, f, h, 0, 0)) +
               0.06 * (at(c, g, 0, -h, 0) - at(c, g, 0, h, 0)) +
               0.07 * (at(c, f, 0, 0, -h) + at(c, f, 0, 0, h)) + 0.05 * at(c, g, h, -h, h) +
               0.04 * at(c, f, -1, 1, -1) + 0.03 * c->fixed +
               1e-4 * (double)(c->x + 2 * c->y + 3 * c->z + c->t);
    return form == MX_JACOBI ? v : v - 0.5 * c->old;
}

static double flux(const struct cell *c) {
    return c->fixed * (at(c, 0, c->h, 0, 0) - at(c, 0, 0, 0, 0)) + at(c, 1, 0, -c->h, 1) +
           1e-3 * (double)c->t;
}

static double rounded(enum mx_dtype dtype, double v) { return dtype == MX_F32 ? (double)(float)v : v; }

/* ------------------------------------------------------------------ a world */

struct world {
    struct mx_problem p;
    struct mx_system s;
    struct mx_layout layout;
    struct mx_sides sides;
    struct mx_sources sources;
    struct mx_points probes;
    struct mx_reduce reduce[2];
    struct mx_norms_options norms;
    bool ghost[3];
    int64_t levels;
};
static struct world w; /* row functions have no context */

static int64_t plane_cells(void) { return w.layout.rows * (w.p.nx + 2 * w.p.h); }

/* ---- the kernel */

struct row_context {
    const struct mx_row *r;
    int64_t x;
    int array; /* read */
};

static double value_in(enum mx_dtype dtype, const void *row, int64_t x) {
    return dtype == MX_F64 ? ((const double *)row)[x] : (double)((const float *)row)[x];
}

static double row_at(const void *context, int f, int dx, int dy, int dz) {
    const struct row_context *c = context;
    const char *row = c->r->in[f * (2 * w.p.h + 1) + w.p.h + dz];
    return value_in(w.s.field[c->array][f].dtype, row + dy * c->r->row_pitch, c->x + dx);
}

static struct cell cell_of_row(const struct row_context *c) {
    const struct mx_row *r = c->r;
    return (struct cell){.at = row_at,
                         .context = c,
                         .fixed = (double)((const float *)r->fixed[0])[c->x],
                         .fields = w.s.n_field[c->array],
                         .h = w.p.h,
                         .x = c->x - w.p.h,
                         .y = r->y,
                         .z = r->z,
                         .t = r->t};
}

static void compute_row(const struct mx_row *r, int to) {
    for (int f = 0; f < w.s.n_field[to]; f++)
        for (int64_t x = r->x0; x < r->x1; x++) {
            const struct row_context context = {r, x, 1 - to};
            const enum mx_dtype dtype = w.s.field[to][f].dtype;
            struct cell c = cell_of_row(&context);
            c.old = value_in(dtype, r->out[f], x);
            const double v = new_value(&c, w.s.form, f);
            if (dtype == MX_F64)
                ((double *)r->out[f])[x] = v;
            else
                ((float *)r->out[f])[x] = (float)v;
        }
}
static void row_b(const struct mx_row *r) { compute_row(r, 1); }
static void row_a(const struct mx_row *r) { compute_row(r, 0); }

/* The array that is read by the step's last level: of staggered B, else any. */
static int reduced_array(void) { return w.s.form == MX_STAGGERED ? 1 : 0; }

static void flux_of_row(const struct mx_row *r, double *value) {
    for (int64_t x = r->x0; x < r->x1; x++) {
        const struct row_context context = {r, x, reduced_array()};
        const struct cell c = cell_of_row(&context);
        value[x - r->x0] = flux(&c);
    }
}
static void size_of_flux(const struct mx_row *r, double *value) {
    flux_of_row(r, value);
    for (int64_t x = r->x0; x < r->x1; x++) value[x - r->x0] = fabs(value[x - r->x0]);
}

/* ---- what a world is */

static void make_layout(void) {
    struct mx_layout *l = &w.layout;
    memset(l, 0, sizeof *l);
    l->rows = w.p.ny + 2 * w.p.h, l->planes = w.p.nz + 2 * w.p.h;
    for (int a = 0; a < 2; a++) {
        int64_t end = 0;
        for (int f = 0; f < w.s.n_field[a]; f++) {
            l->field_offset_bytes[a][f] = (end + 63) / 64 * 64;
            end = l->field_offset_bytes[a][f] + (w.p.nx + 2 * w.p.h) * mx_dtype_bytes(w.s.field[a][f].dtype);
        }
        if (end > l->row_bytes) l->row_bytes = end;
    }
    l->row_pitch_bytes = (l->row_bytes + 63) / 64 * 64;
    l->plane_pitch_bytes = l->rows * l->row_pitch_bytes;
}

static void set_system(int form, int h, const int fields[2], const int64_t n[3], int64_t nt) {
    w.s = (struct mx_system){.form = form, .h = h, .n_field = {fields[0], fields[1]}, .n_fixed = 1};
    for (int a = 0; a < 2; a++)
        for (int f = 0; f < fields[a]; f++)
            snprintf(w.s.field[a][f].name, MX_FIELD_NAME, "%c%d", form == MX_STAGGERED ? 'a' + a : 'a', f);
    w.s.fixed[0] = (struct mx_field_of){"k", MX_F32};
    w.s.row[0] = row_b, w.s.row[1] = form == MX_STAGGERED ? row_a : row_b;
    w.p = (struct mx_problem){.nx = n[0], .ny = n[1], .nz = n[2], .nt = nt, .h = h, .system = &w.s};
    w.levels = mx_levels_of(&w.p, nt);
}

static void make_system(int form) {
    static const enum mx_dtype types[] = {MX_F64, MX_F32};
    const int h = (int)pick(1, 3);
    int fields[2] = {(int)pick(1, MOST_FIELDS), (int)pick(1, MOST_FIELDS)};
    if (form != MX_STAGGERED) fields[1] = fields[0];
    memset(&w, 0, sizeof w);
    set_system(form, h, fields, (int64_t[3]){pick(h, 22), pick(h, 12), pick(h, 10)}, pick(1, MOST_STEPS));
    for (int f = 0; f < MOST_FIELDS; f++) w.s.field[0][f].dtype = types[pick(0, 1)];
    for (int f = 0; f < MOST_FIELDS; f++)
        w.s.field[1][f].dtype = form == MX_STAGGERED ? types[pick(0, 1)] : w.s.field[0][f].dtype;
    make_layout();
}

static void make_sides(void) {
    for (int d = 0; d < 3; d++) {
        const bool periodic = pick(0, 2) == 0;
        for (int e = 0; e < 2; e++)
            w.sides.side[d][e] = periodic ? MX_SIDE_PERIODIC : (uint8_t)pick(MX_SIDE_FIXED, MX_SIDE_MIRROR);
        w.ghost[d] = d != MX_DIM_X && periodic && pick(0, 1);
    }
    cr_assert_eq(mx_sides_check(&w.sides, &w.p, NULL), 0);
}

/* Wavelets without a file; some end early. */
static void make_points(void) {
    w.sources.wavelet = calloc(POINTS, sizeof *w.sources.wavelet);
    w.sources.of = calloc(POINTS, sizeof *w.sources.of);
    for (int i = 0; i < POINTS; i++) {
        const int a = w.s.form == MX_STAGGERED ? (int)pick(0, 1) : 0;
        const char *field = w.s.field[a][pick(0, w.s.n_field[a] - 1)].name;
        /* now and then the cell of the one before: the order of additions counts */
        static int64_t xyz[3];
        if (i % 3 != 2)
            xyz[0] = pick(0, w.p.nx - 1), xyz[1] = pick(0, w.p.ny - 1), xyz[2] = pick(0, w.p.nz - 1);
        struct mx_wavelet *wave = &w.sources.wavelet[i];
        wave->n = pick(0, MOST_STEPS + 1);
        wave->amplitude = calloc(MOST_STEPS + 1, sizeof *wave->amplitude);
        for (int s = 0; s < MOST_STEPS + 1; s++) wave->amplitude[s] = real();
        w.sources.of[i] = i;
        w.sources.n_wavelets = i + 1;
        cr_assert_eq(mx_points_add(&w.sources.points, &w.p, "source", field, xyz, NULL), 0);
        xyz[0] = i % 2 == 0 ? xyz[0] : pick(0, w.p.nx - 1);
        cr_assert_eq(mx_points_add(&w.probes, &w.p, "probe", field, xyz, NULL), 0);
    }
    cr_assert_eq(mx_sources_index(&w.sources, &w.p, NULL), 0);
    cr_assert_eq(mx_points_index(&w.probes, &w.p, NULL), 0);
}

static void make_norms(void) {
    w.reduce[0] = (struct mx_reduce){"flux", MX_SUM, flux_of_row};
    w.reduce[1] = (struct mx_reduce){"top", MX_MAX, size_of_flux};
    w.norms = (struct mx_norms_options){.problem = &w.p,
                                        .every = 1,
                                        .max_change = true,
                                        .rms_change = true,
                                        .spans = w.s.form != MX_STAGGERED,
                                        .n_reduce = 2,
                                        .reduce = w.reduce};
}

static void make_world(int form) {
    make_system(form);
    make_sides();
    make_points();
    make_norms();
    w.norms.every = pick(1, 3);
}

static void free_world(void) {
    mx_sources_free(&w.sources);
    mx_points_free(&w.probes);
}

/* ------------------------------------------------------------------ the oracle */

/* Plain loops, one cell after the other; cells are f64 that their type can hold. */
struct oracle {
    double *array[2], *fixed; /* [field][z][y][x], frame included */
    double *old;              /* the state before the step */
    double trace[MOST_STEPS][POINTS];
    struct {
        double max, rms, reduce[2], plane[2][64];
    } check[MOST_STEPS + 1];
};

static double *o_cell(double *array, int f, int64_t z, int64_t y, int64_t x) {
    return array + (f * w.layout.planes + z) * plane_cells() + y * (w.p.nx + 2 * w.p.h) + x;
}

struct oracle_context {
    double *array;
    int64_t x, y, z;
};
static double oracle_at(const void *context, int f, int dx, int dy, int dz) {
    const struct oracle_context *c = context;
    return *o_cell(c->array, f, c->z + dz, c->y + dy, c->x + dx);
}

static void o_refresh_xy(double *a, int fields, int64_t z) {
    const int64_t h = w.p.h, nx = w.p.nx, ny = w.p.ny;
    for (int f = 0; f < fields; f++) {
        for (int64_t i = 0; i < h; i++)
            for (int64_t y = 0; y < w.layout.rows; y++) {
                double *r = o_cell(a, f, z, y, 0);
                if (w.sides.side[0][0] == MX_SIDE_MIRROR) r[h - 1 - i] = r[h + i];
                if (w.sides.side[0][1] == MX_SIDE_MIRROR) r[nx + h + i] = r[nx + h - 1 - i];
                if (w.sides.side[0][0] == MX_SIDE_PERIODIC) r[h - 1 - i] = r[nx + h - 1 - i];
                if (w.sides.side[0][1] == MX_SIDE_PERIODIC) r[nx + h + i] = r[h + i];
            }
        for (int64_t i = 0; i < h; i++)
            for (int64_t x = 0; x < nx + 2 * h; x++) {
                double *r = o_cell(a, f, z, 0, x);
                const int64_t p = nx + 2 * h;
                if (w.sides.side[1][0] == MX_SIDE_MIRROR) r[(h - 1 - i) * p] = r[(h + i) * p];
                if (w.sides.side[1][1] == MX_SIDE_MIRROR) r[(ny + h + i) * p] = r[(ny + h - 1 - i) * p];
                if (w.sides.side[1][0] == MX_SIDE_PERIODIC) r[(h - 1 - i) * p] = r[(ny + h - 1 - i) * p];
                if (w.sides.side[1][1] == MX_SIDE_PERIODIC) r[(ny + h + i) * p] = r[(h + i) * p];
            }
    }
}

static void o_copy_plane(double *a, int fields, int64_t to, int64_t from) {
    for (int f = 0; f < fields; f++)
        memcpy(o_cell(a, f, to, 0, 0), o_cell(a, f, from, 0, 0), (size_t)plane_cells() * sizeof *a);
}

static void o_refresh_z(double *a, int fields, int64_t z) {
    const int64_t h = w.p.h, nz = w.p.nz, i = z - h, j = nz + h - 1 - z;
    if (i < h && w.sides.side[2][0] == MX_SIDE_MIRROR) o_copy_plane(a, fields, h - 1 - i, z);
    if (i < h && w.sides.side[2][1] == MX_SIDE_PERIODIC) o_copy_plane(a, fields, nz + h + i, z);
    if (j < h && w.sides.side[2][1] == MX_SIDE_MIRROR) o_copy_plane(a, fields, nz + h + j, z);
    if (j < h && w.sides.side[2][0] == MX_SIDE_PERIODIC) o_copy_plane(a, fields, h - 1 - j, z);
}

static void o_first_frames(double *a, int fields) {
    for (int64_t z = 0; z < w.layout.planes; z++) o_refresh_xy(a, fields, z);
    for (int64_t z = w.p.h; z < w.p.nz + w.p.h; z++) o_refresh_z(a, fields, z);
}

static size_t o_bytes(int fields) {
    return (size_t)(fields * w.layout.planes * plane_cells()) * sizeof(double);
}

static void o_start(struct oracle *o) {
    memset(o, 0, sizeof *o);
    for (int a = 0; a < 2; a++) {
        o->array[a] = malloc(o_bytes(w.s.n_field[a]));
        for (int f = 0; f < w.s.n_field[a]; f++)
            for (int64_t i = 0; i < w.layout.planes * plane_cells(); i++)
                o->array[a][f * w.layout.planes * plane_cells() + i] = rounded(w.s.field[a][f].dtype, real());
    }
    if (w.s.form == MX_JACOBI) memcpy(o->array[1], o->array[0], o_bytes(w.s.n_field[0]));
    for (int a = 0; a < 2; a++) o_first_frames(o->array[a], w.s.n_field[a]);
    o->fixed = malloc(o_bytes(1));
    for (int64_t i = 0; i < w.layout.planes * plane_cells(); i++) o->fixed[i] = (float)real();
    o->old = malloc(o_bytes(w.s.n_field[0]));
}

static void o_free(struct oracle *o) {
    free(o->array[0]);
    free(o->array[1]);
    free(o->fixed);
    free(o->old);
}

static struct cell o_cell_at(const struct oracle *o, const struct oracle_context *c, int from, int64_t step) {
    return (struct cell){.at = oracle_at,
                         .context = c,
                         .fixed = *o_cell(o->fixed, 0, c->z, c->y, c->x),
                         .fields = w.s.n_field[from],
                         .h = w.p.h,
                         .x = c->x - w.p.h,
                         .y = c->y - w.p.h,
                         .z = c->z - w.p.h,
                         .t = step};
}

static void o_plane(struct oracle *o, int64_t level, int64_t z) {
    const int from = level % 2, to = 1 - from;
    const int64_t step = level / mx_levels_a_step(&w.p), h = w.p.h;
    for (int f = 0; f < w.s.n_field[to]; f++)
        for (int64_t y = h; y < w.p.ny + h; y++)
            for (int64_t x = h; x < w.p.nx + h; x++) {
                const struct oracle_context context = {o->array[from], x, y, z};
                struct cell c = o_cell_at(o, &context, from, step);
                double *cell = o_cell(o->array[to], f, z, y, x);
                c.old = *cell;
                *cell = rounded(w.s.field[to][f].dtype, new_value(&c, w.s.form, f));
            }
    for (int n = 0; n < POINTS; n++) /* in the order of the list */
        for (int i = 0; i < POINTS; i++) {
            const struct mx_point *pt = &w.sources.points.point[i];
            const struct mx_wavelet *wave = &w.sources.wavelet[n];
            if (pt->number != n || pt->z + h != z || (pt->array >= 0 && pt->array != to) || step >= wave->n)
                continue;
            double *cell = o_cell(o->array[to], pt->field, z, pt->y + h, pt->x + h);
            *cell = rounded(w.s.field[to][pt->field].dtype, *cell + wave->amplitude[step]);
        }
    o_refresh_xy(o->array[to], w.s.n_field[to], z);
    o_refresh_z(o->array[to], w.s.n_field[to], z);
}

/* ordered_sum of a value of each cell; planes[z], if it is not NULL. */
static double o_sum(double (*value)(const struct oracle *, int64_t, int64_t, int64_t, int64_t),
                    const struct oracle *o, int64_t arg, double *planes) {
    double total = 0;
    for (int64_t z = 0; z < w.p.nz; z++) {
        double of_plane = 0;
        for (int64_t y = 0; y < w.p.ny; y++) {
            double lanes[8] = {0}, of_row = 0;
            for (int64_t x = 0; x < w.p.nx; x++) lanes[x % 8] += value(o, arg, z, y, x);
            for (int k = 0; k < 8; k++) of_row += lanes[k];
            of_plane += of_row;
        }
        if (planes != NULL) planes[z] = of_plane;
        total += of_plane;
    }
    return total;
}

static int o_now; /* the array that the step's last level has written */

static double o_change(const struct oracle *o, int64_t f, int64_t z, int64_t y, int64_t x) {
    const int64_t h = w.p.h;
    const double now = *o_cell(o->array[o_now], (int)f, z + h, y + h, x + h),
                 old = *o_cell(o->old, (int)f, z + h, y + h, x + h);
    return rounded(w.s.field[0][f].dtype, now - old);
}
static double o_square(const struct oracle *o, int64_t f, int64_t z, int64_t y, int64_t x) {
    const double d = o_change(o, f, z, y, x);
    return d * d;
}
static double o_flux(const struct oracle *o, int64_t step, int64_t z, int64_t y, int64_t x) {
    const struct oracle_context context = {o->array[1 - o_now], x + w.p.h, y + w.p.h, z + w.p.h};
    const struct cell c = o_cell_at(o, &context, 1 - o_now, step);
    return flux(&c);
}

static void o_check(struct oracle *o, int64_t step) {
    double squares = 0, max = 0, top = -INFINITY;
    for (int f = 0; f < w.s.n_field[0]; f++) squares += o_sum(o_square, o, f, NULL);
    o->check[step].reduce[0] = o_sum(o_flux, o, step - 1, o->check[step].plane[0]);
    for (int64_t z = 0; z < w.p.nz; z++) {
        double of_plane = -INFINITY;
        for (int64_t y = 0; y < w.p.ny; y++)
            for (int64_t x = 0; x < w.p.nx; x++) {
                of_plane = fmax(of_plane, fabs(o_flux(o, step - 1, z, y, x)));
                for (int f = 0; f < w.s.n_field[0]; f++) max = fmax(max, fabs(o_change(o, f, z, y, x)));
            }
        o->check[step].plane[1][z] = of_plane;
        top = fmax(top, of_plane);
    }
    o->check[step].max = max;
    o->check[step].rms = pow(squares / (double)(w.s.n_field[0] * w.p.nx * w.p.ny * w.p.nz), 0.5);
    o->check[step].reduce[1] = top;
}

static void o_level(struct oracle *o, int64_t level) {
    const int64_t a_step = mx_levels_a_step(&w.p), step = level / a_step, h = w.p.h;
    const int before = w.s.form == MX_STAGGERED ? 0 : (int)(level % 2);
    if (level % a_step == 0) memcpy(o->old, o->array[before], o_bytes(w.s.n_field[0]));
    for (int64_t z = h; z < w.p.nz + h; z++) o_plane(o, level, z);
    if ((level + 1) % a_step != 0) return;
    o_now = 1 - (int)(level % 2);
    for (int i = 0; i < POINTS; i++) {
        const struct mx_point *pt = &w.probes.point[i];
        double *array = o->array[pt->array >= 0 ? pt->array : o_now];
        o->trace[step][pt->number] = *o_cell(array, pt->field, pt->z + h, pt->y + h, pt->x + h);
    }
    o_check(o, step + 1);
}

/* ------------------------------------------------------------------ rows in any order */

/* A piece of a level. */
struct unit {
    int64_t x0, x1, y0, y1, z0, z1;
};

struct trial {
    struct mx_after after;
    struct mx_view view;
    struct mx_fixed_view fixed;
    struct mx_norms *norms;
    struct mx_traces traces;
    int64_t deep[3]; /* layers of ghosts */
    struct unit *unit;
    int64_t units, again; /* of `units` pieces, so many of the last ones are computed twice: whole rows */
    _Atomic int64_t next;
    int64_t level;
};

static char *v_row(const struct mx_view *v, int array, int64_t y, int64_t z) {
    return v->base[array] + (z + v->z_offset) % v->slots[array] * v->plane_pitch_bytes +
           (y + v->y_offset) * v->row_pitch_bytes;
}

/* Row (y, z), maybe a ghost, in the oracle's arrays. */
static int64_t grid_index(int dim, int64_t i) {
    return w.ghost[dim] ? mx_wrap(i - w.p.h, mx_extent_of(&w.p, dim)) + w.p.h : i;
}

static int64_t low_end(const struct trial *t, int dim) { return w.ghost[dim] ? w.p.h - t->deep[dim] : 0; }
static int64_t high_end(const struct trial *t, int dim) {
    const int64_t n = mx_extent_of(&w.p, dim);
    return w.ghost[dim] ? n + w.p.h + t->deep[dim] : n + 2 * w.p.h;
}

static void put_row(const struct trial *t, struct oracle *o, int array, int64_t y, int64_t z, bool compare) {
    char *row = v_row(&t->view, array, y, z);
    for (int f = 0; f < w.s.n_field[array]; f++)
        for (int64_t x = 0; x < w.p.nx + 2 * w.p.h; x++) {
            const enum mx_dtype dtype = w.s.field[array][f].dtype;
            const double v = *o_cell(o->array[array], f, grid_index(2, z), grid_index(1, y), x);
            char *field = row + w.layout.field_offset_bytes[array][f];
            if (compare) {
                const double found = value_in(dtype, field, x);
                cr_assert(memcmp(&found, &v, sizeof v) == 0,
                          "array %d field %d cell %d %d %d: %.17g, expected %.17g; form %d h %d n %d %d %d",
                          array, f, (int)x, (int)y, (int)z, found, v, w.s.form, w.p.h, (int)w.p.nx,
                          (int)w.p.ny, (int)w.p.nz);
            } else if (dtype == MX_F64) {
                ((double *)field)[x] = v;
            } else {
                ((float *)field)[x] = (float)v;
            }
        }
}

static void make_trial(struct trial *t, struct oracle *o) {
    memset(t, 0, sizeof *t);
    for (int d = 1; d < 3; d++) t->deep[d] = w.ghost[d] ? w.levels * w.p.h : 0;
    const int64_t rows = high_end(t, 1) - low_end(t, 1), planes = high_end(t, 2) - low_end(t, 2);
    struct mx_view *v = &t->view;
    v->row_pitch_bytes = w.layout.row_pitch_bytes;
    v->plane_pitch_bytes = rows * v->row_pitch_bytes;
    v->y_offset = -low_end(t, 1);
    v->z_offset = -low_end(t, 2) + pick(0, 5); /* of a ring */
    v->fixed = &t->fixed;
    const int64_t slots = planes + pick(0, 2), fixed_pitch = (w.p.nx + 2 * w.p.h) * 4;
    for (int a = 0; a < 2; a++) {
        v->slots[a] = slots;
        v->base[a] = calloc((size_t)slots, (size_t)v->plane_pitch_bytes);
    }
    t->fixed = (struct mx_fixed_view){.base = calloc((size_t)slots, (size_t)(rows * fixed_pitch)),
                                      .slots = slots,
                                      .slot_pitch_bytes = rows * fixed_pitch,
                                      .row_pitch_bytes = fixed_pitch,
                                      .align_bytes = 1};
    for (int64_t z = low_end(t, 2); z < high_end(t, 2); z++)
        for (int64_t y = low_end(t, 1); y < high_end(t, 1); y++) {
            for (int a = 0; a < 2; a++) put_row(t, o, a, y, z, false);
            float *fixed = (float *)(uintptr_t)mx_view_fixed_row(v, 0, y, z);
            for (int64_t x = 0; x < w.p.nx + 2 * w.p.h; x++)
                fixed[x] = (float)*o_cell(o->fixed, 0, grid_index(2, z), grid_index(1, y), x);
        }
    cr_assert_eq(mx_norms_make(&w.norms, NULL, &t->norms), 0);
    cr_assert_eq(mx_traces_make(&w.probes, pick(1, 2), 0, NULL, &t->traces), 0);
    t->after = (struct mx_after){.problem = &w.p,
                                 .layout = &w.layout,
                                 .sides = w.sides,
                                 .ghost = {false, w.ghost[1], w.ghost[2]},
                                 .sources = &w.sources,
                                 .traces = &t->traces,
                                 .norms = t->norms};
}

static void free_trial(struct trial *t) {
    for (int a = 0; a < 2; a++) free(t->view.base[a]);
    free(t->fixed.base);
    free(t->unit);
    mx_norms_free(t->norms);
    mx_traces_free(&t->traces);
}

/* One row of a piece by the kernel, as a schedule and an engine give it: interior coordinates of ghosts are
 * those of the cells that they stand for. */
static void kernel_row(const struct trial *t, const struct unit *u, int64_t y, int64_t z) {
    const int from = t->level % 2, to = 1 - from, h = w.p.h;
    const void *in[MOST_FIELDS * 7], *fixed[1] = {mx_view_fixed_row(&t->view, 0, y, z)};
    void *out[MOST_FIELDS];
    const int64_t fixed_pitch[1] = {t->fixed.row_pitch_bytes};
    for (int f = 0; f < w.s.n_field[from]; f++)
        for (int d = -h; d <= h; d++)
            in[f * (2 * h + 1) + h + d] =
                v_row(&t->view, from, y, z + d) + w.layout.field_offset_bytes[from][f];
    for (int f = 0; f < w.s.n_field[to]; f++)
        out[f] = v_row(&t->view, to, y, z) + w.layout.field_offset_bytes[to][f];
    const struct mx_row r = {.out = out,
                             .in = in,
                             .fixed = fixed,
                             .row_pitch = t->view.row_pitch_bytes,
                             .fixed_pitch = fixed_pitch,
                             .rows = 1,
                             .x0 = u->x0,
                             .x1 = u->x1,
                             .y = grid_index(1, y) - h,
                             .z = grid_index(2, z) - h,
                             .t = t->level / mx_levels_a_step(&w.p),
                             .nx = w.p.nx,
                             .ny = w.p.ny,
                             .nz = w.p.nz};
    w.s.row[t->level % 2](&r);
}

static void do_unit(struct trial *t, const struct unit *u) {
    const int to = 1 - (int)(t->level % 2);
    const bool keep = mx_norms_needs_old(t->norms, t->level);
    char *old = keep ? malloc((size_t)t->view.row_pitch_bytes) : NULL;
    if (keep) memcpy(old, v_row(&t->view, to, u->y0, u->z0), (size_t)t->view.row_pitch_bytes);
    for (int64_t z = u->z0; z < u->z1; z++)
        for (int64_t y = u->y0; y < u->y1; y++) kernel_row(t, u, y, z);
    if (!keep && u->y1 == u->y0 + 1 && u->z1 == u->z0 + 1)
        mx_after_row(&t->after, &t->view, to, t->level, u->y0, u->z0, u->x0, u->x1);
    else
        mx_after_box(&t->after, &t->view, to, t->level, u->x0, u->x1, u->y0, u->y1, u->z0, u->z1, old);
    free(old);
}

static void *work(void *arg) {
    struct trial *t = arg;
    for (;;) {
        const int64_t i = atomic_fetch_add(&t->next, 1);
        if (i >= t->units) return NULL;
        do_unit(t, &t->unit[i]);
    }
}

/* Boxes, rows and spans of rows, each cell once, in random order. */
static void cut(struct trial *t, const int64_t y[2], const int64_t z[2], int64_t spans) {
    const bool rows = mx_norms_needs_old(t->norms, t->level) || spans > 1 || pick(0, 1);
    const int64_t dz = rows ? 1 : pick(1, 4), dy = rows ? 1 : pick(1, 4), h = w.p.h;
    t->unit = realloc(t->unit, (size_t)((y[1] - y[0]) * (z[1] - z[0]) * spans + 1) * sizeof *t->unit);
    t->units = 0;
    for (int64_t z0 = z[0]; z0 < z[1]; z0 += dz)
        for (int64_t y0 = y[0]; y0 < y[1]; y0 += dy) {
            int64_t x = h;
            for (int64_t k = 1; k <= spans && x < w.p.nx + h; k++) {
                const int64_t end = k == spans ? w.p.nx + h : pick(x, w.p.nx + h);
                if (end == x) continue;
                t->unit[t->units++] = (struct unit){
                    x, end, y0, y0 + dy < y[1] ? y0 + dy : y[1], z0, z0 + dz < z[1] ? z0 + dz : z[1]};
                x = end;
            }
        }
    for (int64_t i = t->units; i-- > 1;) {
        const int64_t j = pick(0, i);
        const struct unit u = t->unit[i];
        t->unit[i] = t->unit[j], t->unit[j] = u;
    }
}

static void run_units(struct trial *t, int threads) {
    pthread_t thread[4];
    atomic_store(&t->next, 0);
    for (int i = 1; i < threads; i++) cr_assert_eq(pthread_create(&thread[i], NULL, work, t), 0);
    work(t);
    for (int i = 1; i < threads; i++) pthread_join(thread[i], NULL);
}

static void run_level(struct trial *t, int64_t level, int threads) {
    const int64_t h = w.p.h, left = (w.levels - level - 1) * h; /* ghost layers that later levels read */
    int64_t from[3], end[3];
    t->level = level;
    for (int d = 1; d < 3; d++) {
        from[d] = w.ghost[d] ? h - left : h;
        end[d] = mx_extent_of(&w.p, d) + h + (w.ghost[d] ? left : 0);
    }
    cut(t, &(int64_t[2]){from[1], end[1]}[0], &(int64_t[2]){from[2], end[2]}[0],
        w.norms.spans ? pick(1, 4) : 1);
    run_units(t, threads);
    if (w.s.form == MX_JACOBI && pick(0, 1)) { /* some planes again, as redundant schedules do */
        cut(t, &(int64_t[2]){from[1], end[1]}[0], &(int64_t[2]){from[2], pick(from[2], end[2])}[0],
            pick(1, 3));
        run_units(t, threads);
    }
}

/* ------------------------------------------------------------------ what is compared */

static void same_bits(double found, double expected, const char *what, int64_t step) {
    cr_assert(memcmp(&found, &expected, sizeof found) == 0, "%s after step %d: %.17g, expected %.17g", what,
              (int)step, found, expected);
}

static void compare_step(struct trial *t, const struct oracle *o, int64_t step) {
    struct mx_norms_result r;
    double rows[POINTS];
    mx_why why = {0};
    cr_assert_eq(mx_traces_take(&t->traces, step + 1, rows, &why), 0, "%s", why.text);
    for (int i = 0; i < POINTS; i++) same_bits(rows[i], o->trace[step][i], "a probe", step);
    if (!mx_norms_due(t->norms, mx_levels_of(&w.p, step + 1) - 1)) return;
    cr_assert_eq(mx_norms_take(t->norms, step + 1, &why, &r), 0, "%s", why.text);
    cr_assert_eq(r.step, step + 1);
    same_bits(r.max_change, o->check[step + 1].max, "max-change", step);
    same_bits(r.rms_change, o->check[step + 1].rms, "rms-change", step);
    for (int i = 0; i < 2; i++) {
        same_bits(r.reduce[i], o->check[step + 1].reduce[i], "a reduction", step);
        for (int64_t z = 0; z < w.p.nz; z++)
            same_bits(r.plane[i][z], o->check[step + 1].plane[i][z], "a plane", step);
    }
}

/* After every level: every cell of both arrays, frames included; of ghost dimensions the interior. After
 * every step probes and norms. */
static void run_world(struct oracle *o, int threads) {
    static struct trial t;
    o_start(o);
    make_trial(&t, o);
    for (int64_t level = 0; level < w.levels; level++) {
        o_level(o, level);
        run_level(&t, level, threads);
        const int64_t a_step = mx_levels_a_step(&w.p);
        if ((level + 1) % a_step == 0) compare_step(&t, o, level / a_step);
        const int64_t dy = w.ghost[1] ? w.p.h : 0, dz = w.ghost[2] ? w.p.h : 0;
        for (int64_t z = dz; z < w.layout.planes - dz; z++)
            for (int64_t y = dy; y < w.layout.rows - dy; y++)
                for (int a = 0; a < 2; a++) put_row(&t, o, a, y, z, true);
    }
    free_trial(&t);
}

static void one_world(int form, int threads) {
    static struct oracle o;
    make_world(form);
    run_world(&o, threads);
    o_free(&o);
    free_world();
}

Test(after, rows_in_any_order_give_the_bits_of_the_model) {
    for (int i = 0; i < 240; i++) one_world(i % 3, 1);
}

Test(after, rows_of_several_threads_give_the_bits_of_the_model) {
    for (int i = 0; i < 60; i++) one_world(i % 3, 2 + i % 2);
}

/* ------------------------------------------------------------------ the model itself */

static const struct golden {
    int form, h;
    int64_t n[3];
    int fields[2];
    int64_t nt;
    int narrow;
    uint64_t seed;
    uint8_t side[3][2];
    uint64_t digest;
} golden[] = {
#include "after_golden.inc"
};

static uint64_t digest_of(uint64_t digest, const void *data, size_t bytes) {
    for (const uint8_t *p = data; bytes-- > 0; p++) digest = (digest ^ *p) * UINT64_C(0x100000001b3);
    return digest;
}

/* All cells of both arrays, traces and norms of small systems that the Python model has computed: the oracle
 * of these tests is right, and so is what agrees with it. */
Test(after, systems_come_to_what_the_model_says) {
    static struct oracle o;
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        const struct golden *g = &golden[i];
        memset(&w, 0, sizeof w);
        set_system(g->form, g->h, g->fields, g->n, g->nt);
        for (int f = 0; f < 2 * MX_MAX_FIELDS; f++)
            w.s.field[f / MX_MAX_FIELDS][f % MX_MAX_FIELDS].dtype = g->narrow ? MX_F32 : MX_F64;
        make_layout();
        memcpy(w.sides.side, g->side, sizeof g->side);
        state = g->seed;
        make_points();
        make_norms();
        run_world(&o, 1);
        uint64_t digest = UINT64_C(0xcbf29ce484222325);
        for (int a = 0; a < 2; a++) digest = digest_of(digest, o.array[a], o_bytes(w.s.n_field[a]));
        for (int64_t s = 0; s < g->nt; s++) digest = digest_of(digest, o.trace[s], sizeof o.trace[s]);
        for (int64_t s = 1; s <= g->nt; s++) {
            const double norms[3] = {o.check[s].max, o.check[s].rms, o.check[s].reduce[0]};
            digest = digest_of(digest, norms, sizeof norms);
        }
        cr_assert_eq(digest, g->digest, "system %d of after_golden.inc", (int)i);
        o_free(&o);
        free_world();
    }
}

/* ------------------------------------------------------------------ rows that were not computed here */

/* Interior rows overwritten behind the back of everything, in pieces of any region; the frames must be what
 * the model makes of them, corners and fixed frames included. */
Test(after, rows_that_come_from_elsewhere_refresh_what_copies_them) {
    for (int trial = 0; trial < 60; trial++) {
        static struct oracle o;
        static struct trial t;
        make_world(trial % 3);
        memset(w.ghost, 0, sizeof w.ghost);
        o_start(&o);
        make_trial(&t, &o);
        const int array = (int)pick(0, 1), rows = (int)w.layout.rows, planes = (int)w.layout.planes;
        for (int f = 0; f < w.s.n_field[array]; f++)
            for (int64_t i = 0; i < planes * plane_cells(); i++)
                o.array[array][f * planes * plane_cells() + i] = rounded(w.s.field[array][f].dtype, real());
        /* as a LOAD brings them: also what stands in frames that count for nothing */
        for (int64_t z = 0; z < planes; z++)
            for (int64_t y = 0; y < rows; y++) put_row(&t, &o, array, y, z, false);
        o_first_frames(o.array[array], w.s.n_field[array]);
        for (int64_t z = 0; z < planes;) {
            const int64_t deep = pick(1, 4), end = z + deep < planes ? z + deep : planes;
            for (int64_t y = 0; y < rows;) {
                const int64_t high = pick(1, 5), y1 = y + high < rows ? y + high : rows;
                mx_after_refresh(&t.after, &t.view, array, array, w.p.h, w.p.nx + w.p.h, y, y1, z, end);
                y = y1;
            }
            z = end;
        }
        for (int64_t z = 0; z < planes; z++)
            for (int64_t y = 0; y < rows; y++) put_row(&t, &o, array, y, z, true);
        free_trial(&t);
        o_free(&o);
        free_world();
    }
}

/* What lies outside the reach of a call stays as it is; what lies within is refreshed. */
Test(after, copies_outside_the_reach_are_left_out) {
    static struct oracle o;
    static struct trial t;
    do {
        free_world();
        make_world(MX_JACOBI);
    } while (w.p.h != 2 || w.p.ny < 8 || w.p.nz < 8);
    memset(w.ghost, 0, sizeof w.ghost);
    memset(&w.sides, MX_SIDE_MIRROR, sizeof w.sides);
    o_start(&o);
    make_trial(&t, &o);
    for (int a = 0; a < 2; a++)
        memset(t.view.base[a], 0, (size_t)(t.view.slots[a] * t.view.plane_pitch_bytes));
    t.after.reach = (struct mx_reach){.y0 = 1, .y1 = w.p.ny + 3, .z0 = {4, 1}, .z1 = {5, w.p.nz + 3}};
    /* rows 2 and 3 are copied by 1 and 0, planes 2 and 3 by planes 1 and 0: 0 is out of reach */
    for (int64_t z = 2; z < 4; z++)
        for (int64_t y = 2; y < 4; y++) {
            memset(v_row(&t.view, 1, y, z), 0x11, (size_t)w.layout.row_bytes);
            mx_after_refresh(&t.after, &t.view, 1, 1, 2, w.p.nx + 2, y, y + 1, z, z + 1);
        }
    for (int64_t z = 0; z < 4; z++)
        for (int64_t y = 0; y < 4; y++)
            cr_assert_eq(*(uint8_t *)v_row(&t.view, 1, y, z), y == 0 || z == 0 ? 0 : 0x11,
                         "row %d of plane %d", (int)y, (int)z);
    free_trial(&t);
    o_free(&o);
    free_world();
}

/* Row y of plane z as mx_after_points and copies in x leave it. */
static void points_and_copies(const struct trial *t, int64_t y, int64_t z, char *row) {
    const struct mx_cells all = {w.p.h, w.p.nx + w.p.h};
    struct mx_x_copy copy[2];
    const int n = mx_sides_x_copies(&t->after.sides, w.p.nx, w.p.h, all, copy);
    mx_after_points(&t->after, 0, y, y + 1, z, row, t->view.row_pitch_bytes);
    for (int32_t f = 0; f < mx_field_count(&w.p, 1); f++)
        mx_sides_copy_x(copy, n, mx_dtype_bytes(mx_field_dtype(&w.p, 1, f)),
                        row + t->after.layout->field_offset_bytes[1][f]);
}

/* Of rows that no frame in y or z copies mx_after_box leaves what sources, probes and copies in x make of
 * them, and every other byte as it was. */
Test(after, rows_without_copies_have_points_alone) {
    int64_t idle = 0, points = 0;
    for (int trial = 0; trial < 40; trial++) {
        static struct oracle o;
        static struct trial t;
        make_world(trial % 3);
        w.norms.every = 1000;
        o_start(&o);
        make_trial(&t, &o);
        if (trial % 2 == 0) memset(w.sides.side[MX_DIM_X], 0, 2);
        t.after.sides = w.sides;
        for (int64_t z = w.p.h; z < w.p.nz + w.p.h; z++)
            for (int64_t y = w.p.h; y < w.p.ny + w.p.h; y++) {
                const size_t bytes = (size_t)(t.view.slots[1] * t.view.plane_pitch_bytes);
                const size_t row_bytes = (size_t)t.view.row_pitch_bytes;
                if (w.levels == 1 || mx_after_copies_rows(&t.after, y, y + 1, z, z + 1)) continue;
                idle++;
                char *before = malloc(bytes), *row = malloc(row_bytes),
                     *there = mx_view_row(&t.view, 1, y, z);
                memcpy(before, t.view.base[1], bytes);
                memcpy(row, there, row_bytes);
                mx_after_row(&t.after, &t.view, 1, 0, y, z, w.p.h, w.p.nx + w.p.h);
                points_and_copies(&t, y, z, row);
                cr_assert_eq(memcmp(row, there, row_bytes), 0);
                points += memcmp(row, before + (there - t.view.base[1]), row_bytes) != 0;
                memcpy(there, before + (there - t.view.base[1]), row_bytes);
                cr_assert_eq(memcmp(before, t.view.base[1], bytes), 0);
                free(before);
                free(row);
            }
        free_trial(&t);
        o_free(&o);
        free_world();
    }
    cr_assert_gt(idle, 100);
    cr_assert_gt(points, 10);
}

Test(after, touched_ranges_contain_every_copy) {
    for (int trial = 0; trial < 2000; trial++) {
        const int32_t h = (int32_t)pick(1, 4);
        const int64_t n = pick(h, 12);
        const bool periodic = pick(0, 2) == 0;
        const uint8_t side[2] = {periodic ? MX_SIDE_PERIODIC : (uint8_t)pick(0, 1),
                                 periodic ? MX_SIDE_PERIODIC : (uint8_t)pick(0, 1)};
        const int64_t from = pick(h, n + h - 1), end = pick(from, n + h);
        int64_t a = from, b = end, lo = from, hi = end;
        for (int64_t i = 0; i < n + 2 * h; i++) { /* by the definition: of whom each frame cell is a copy */
            const int64_t of = mx_side_source(side, n, h, i);
            if (of == i || of < from || of >= end) continue;
            lo = i < lo ? i : lo, hi = i + 1 > hi ? i + 1 : hi;
        }
        mx_side_extend(side, n, h, &a, &b);
        cr_assert(a == lo && b == hi, "[%d,%d) of n %d h %d: [%d,%d), expected [%d,%d)", (int)from, (int)end,
                  (int)n, h, (int)a, (int)b, (int)lo, (int)hi);
    }
}

/* ------------------------------------------------------------------ words */

static struct mx_problem plain = {.nx = 20, .ny = 10, .nz = 5, .nt = 7, .h = 2, .dtype = MX_F64};

static void refused(int err, const mx_why *why, int expected, const char *part) {
    cr_assert_eq(err, expected, "%d: %s", err, why->text);
    cr_assert_not_null(strstr(why->text, part), "'%s' does not say '%s'", why->text, part);
}

Test(sides, words) {
    struct mx_sides s = {0};
    struct mx_why why;
    char text[MX_SIDES_TEXT];
    cr_assert_str_empty(mx_sides_text(&s, text));
    cr_assert_eq(mx_sides_parse("x=periodic", &why, &s), 0);
    cr_assert_eq(mx_sides_parse("z=fixed,mirror", &why, &s), 0);
    cr_assert_str_eq(mx_sides_text(&s, text), "x=periodic z=fixed,mirror");
    cr_assert_eq(mx_sides_parse("x=mirror", &why, &s), 0);
    cr_assert_eq(mx_sides_parse("y=mirror,fixed", &why, &s), 0);
    cr_assert_str_eq(mx_sides_text(&s, text), "x=mirror y=mirror,fixed z=fixed,mirror");
    struct mx_sides longest = {0};
    for (const char *word[] = {"x=periodic", "y=mirror,fixed", "z=mirror,fixed", NULL}, **p = word;
         *p != NULL; p++)
        cr_assert_eq(mx_sides_parse(*p, &why, &longest), 0);
    cr_assert_lt(strlen(mx_sides_text(&longest, text)), MX_SIDES_TEXT - 1);
    const struct mx_sides before = s;
    refused(mx_sides_parse("y=periodic,mirror", &why, &s), &why, -EINVAL, "both ends");
    refused(mx_sides_parse("w=fixed", &why, &s), &why, -EINVAL, "'w=fixed'");
    refused(mx_sides_parse("", &why, &s), &why, -EINVAL, "no dimension");
    refused(mx_sides_parse("y=reflect", &why, &s), &why, -EINVAL, "'reflect'");
    refused(mx_sides_parse("y=mirror,", &why, &s), &why, -EINVAL, "z=fixed,mirror");
    refused(mx_sides_parse("y=mirror,fixed,fixed", &why, &s), &why, -EINVAL, "'fixed,fixed'");
    cr_assert_eq(memcmp(&before, &s, sizeof s), 0);
    /* A side that is named twice is one side, or refused. */
    static const char *const twice[] = {"x=mirror", "z=fixed,mirror", "x=mirror,mirror", "x=fixed"};
    cr_assert_eq(mx_sides_read(twice, 3, &why, &s), 0, "%s", why.text);
    refused(mx_sides_read(twice, 4, &why, &s), &why, -EINVAL, "'x=mirror,mirror' and as 'x=fixed'");
    cr_assert_eq(memcmp(&before, &s, sizeof s), 0);
    struct mx_problem small = plain;
    small.ny = 1;
    refused(mx_sides_check(&s, &small, &why), &why, -EINVAL, "1 cells in y, and a mirror side copies the 2");
    cr_assert_eq(mx_sides_check(&s, &plain, &why), 0);
}

/* numpy.pad(range(n), h, mode): by its definition, a walk to and fro. */
static int64_t padded(enum mx_frame_kind kind, int64_t n, int64_t at) {
    int64_t i = 0, step = 1;
    if (kind == MX_FRAME_EDGE) return at < 0 ? 0 : at >= n ? n - 1 : at;
    for (int64_t k = 0; k < llabs(at < 0 ? at + 1 : at); k++) { /* from cell 0, or before it, outwards */
        if (kind == MX_FRAME_PERIODIC) {
            i = (i + 1) % n;
        } else if (i + step < 0 || i + step >= n) {
            step = -step; /* the edge's own cell again */
        } else {
            i += step;
        }
    }
    return kind == MX_FRAME_PERIODIC && at < 0 ? n - 1 - i : i;
}

Test(sides, frames_of_inputs_without_one) {
    static const char *const words[] = {"included", "edge", "mirror", "periodic"};
    struct mx_frame f;
    struct mx_why why;
    for (int kind = 1; kind < 4; kind++)
        for (int32_t h = 1; h <= 8; h++)
            for (int64_t n = 1; n < 12; n++) {
                double file[12], row[12 + 16];
                cr_assert_eq(mx_frame_parse(words[kind], &why, &f), 0);
                for (int64_t x = 0; x < n; x++) file[x] = (double)x;
                mx_frame_row(&f, n, h, MX_F64, (const char *)file, (char *)row);
                for (int64_t i = 0; i < n + 2 * h; i++) {
                    cr_assert_eq(mx_frame_source(&f, n, h, i), padded(f.kind, n, i - h), "%s n %d h %d at %d",
                                 words[kind], (int)n, h, (int)i);
                    cr_assert_eq(row[i], (double)padded(f.kind, n, i - h));
                }
            }
    cr_assert_eq(mx_frame_parse("-2.5", &why, &f), 0);
    float row[9], file[5] = {1, 2, 3, 4, 5};
    mx_frame_row(&f, 5, 2, MX_F32, (const char *)file, (char *)row);
    cr_assert(row[0] == -2.5f && row[1] == -2.5f && row[2] == 1 && row[6] == 5 && row[7] == -2.5f &&
              row[8] == -2.5f);
    mx_frame_row(&f, 5, 2, MX_F32, NULL, (char *)row);
    cr_assert(row[0] == -2.5f && row[4] == -2.5f && row[8] == -2.5f);
    cr_assert(mx_frame_source(&f, 5, 2, 1) == -1 && mx_frame_source(&f, 5, 2, 7) == -1 &&
              mx_frame_source(&f, 5, 2, 6) == 4);
    refused(mx_frame_check(&f, "image", MX_U8, &why), &why, -EINVAL,
            "image, which are u8: whole numbers from 0 to 255");
    cr_assert_eq(mx_frame_check(&f, "image", MX_F32, &why), 0);
    f.value = 300;
    refused(mx_frame_check(&f, "image", MX_U8, &why), &why, -EINVAL, "300");
    cr_assert_eq(mx_frame_check(&f, "image", MX_U16, &why), 0);
    f.value = 1e300;
    refused(mx_frame_check(&f, "v", MX_F32, &why), &why, -EINVAL, "beyond");
    refused(mx_frame_parse("reflect", &why, &f), &why, -EINVAL, "'reflect'");
    refused(mx_frame_parse("1.5x", &why, &f), &why, -EINVAL, "'1.5x'");
    refused(mx_frame_parse("", &why, &f), &why, -EINVAL, "included");
}

/* A directory of this test's own. */
static char folder[64];
static void make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/test_after_XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}
static void remove_folder(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    cr_assert_eq(system(command), 0);
}
static const char *in_folder(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *in_folder(const char *name, const char *format, ...) {
    static char path[4][128];
    static int next;
    char *to = path[next++ % 4];
    va_list args;
    snprintf(to, sizeof path[0], "%s/%s", folder, name);
    if (format == NULL) return to;
    FILE *file = fopen(to, "w");
    cr_assert_not_null(file);
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    fclose(file);
    return to;
}

static const char *wavelet(const char *name, const char *descr, const char *shape, const void *data,
                           size_t bytes) {
    const char *path = in_folder(name, NULL);
    char head[128];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01", 7);
    head[7] = 0, head[8] = 118, head[9] = 0;
    const int n =
        snprintf(head + 10, 118, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    head[10 + n] = ' ', head[127] = '\n';
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fwrite(head, 1, sizeof head, file);
    fwrite(data, 1, bytes, file);
    fclose(file);
    return path;
}

Test(points, words, .init = make_folder, .fini = remove_folder) {
    const double wave[3] = {1.5, -2, 0.25};
    const float narrow[2] = {0.1f, 3};
    struct mx_sources s = {0};
    struct mx_points probes = {0};
    struct mx_why why;
    char a[128], b[128], text[256];
    double v;
    strcpy(a, wavelet("a.npy", "<f8", "(3,)", wave, sizeof wave));
    strcpy(b, wavelet("b.npy", "<f4", "(2,)", narrow, sizeof narrow));
    const char *list =
        in_folder("list", "# all of them\n\n u@19,9,4=%s  # a corner\nu@0,0,0=%s\nu@0,0,0=%s\n", a, b, a);
    cr_assert_eq(mx_sources_identity(&s), 0);
    cr_assert_eq(mx_sources_read(&s, &plain, list, &why), 0, "%s", why.text);
    cr_assert_eq(mx_sources_index(&s, &plain, &why), 0);
    cr_assert(s.points.n == 3 && s.n_wavelets == 2 && s.points.point[0].number == 1 &&
              s.points.point[1].number == 2 && s.points.point[2].number == 0);
    cr_assert(mx_source_amplitude(&s, 0, 0, &v) && v == (double)0.1f);
    cr_assert(!mx_source_amplitude(&s, 0, 2, &v), "a wavelet of two values ends after step 1");
    cr_assert(mx_source_amplitude(&s, 2, 2, &v) && v == 0.25);
    const uint64_t identity = mx_sources_identity(&s);
    s.wavelet[0].amplitude[0] = 1.25;
    cr_assert(identity != 0 && identity != mx_sources_identity(&s));
    struct {
        const char *point, *file, *says;
        int err;
    } bad[] = {
        {"u@20,0,0", a, "x = 20 is outside the grid, whose cells are 0 to 19", -EINVAL},
        {"u@0,-1,0", a, "y = -1", -EINVAL},
        {"v@0,0,0", a, "no field v; there is u", -EINVAL},
        {"u@0,0", a, "FIELD@X,Y,Z=wavelet.npy", -EINVAL},
        {"u@0,0,0.5", a, "FIELD@X,Y,Z", -EINVAL},
        {"u@0, 1,0", a, "FIELD@X,Y,Z", -EINVAL},
        {"u@0,0,0", "/nowhere.npy", "/nowhere.npy", -ENOENT},
        {"u@0,0,0", list, "no .npy file", -EINVAL},
        {"u@0,0,0", wavelet("c.npy", "<f8", "(4,)", wave, sizeof wave), "promises 4 values, 3", -EINVAL},
        {"u@0,0,0", wavelet("d.npy", "<i4", "(3,)", wave, sizeof wave), "<i4", -EINVAL},
        {"u@0,0,0", wavelet("e.npy", "<f8", "(3, 1)", wave, sizeof wave), "2 dimensions", -EINVAL}};
    const int64_t n = s.points.n;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(text, sizeof text, "%s=%s", bad[i].point, bad[i].file);
        refused(mx_sources_add(&s, &plain, text, &why), &why, bad[i].err, bad[i].says);
        cr_assert_eq(s.points.n, n);
    }
    refused(mx_sources_read(&s, &plain, in_folder("bad", "\nu@1,1,1=%s\nu@1,1\n", a), &why), &why, -EINVAL,
            "line 3");
    refused(mx_probes_read(&probes, &plain, in_folder("q", "u 1 2 3\nu 1 2 5\n"), &why), &why, -EINVAL,
            "line 2: probe u 1 2 5: z = 5");
    refused(mx_probes_read(&probes, &plain, in_folder("q", "u 1 2\n"), &why), &why, -EINVAL, "FIELD X Y Z");
    refused(mx_probes_read(&probes, &plain, in_folder("q", "u 1 2 3 4\n"), &why), &why, -EINVAL,
            "FIELD X Y Z");
    refused(mx_probes_read(&probes, &plain, in_folder("none", NULL), &why), &why, -ENOENT, "none");
    mx_points_free(&probes);
    mx_sources_free(&s);
}

/* Every range of rows of every plane of some thousands of points, against a plain scan. */
Test(points, thousands_are_found_by_row) {
    struct mx_points points = {0};
    enum { MANY = 3000 };
    for (int i = 0; i < MANY; i++) {
        const int64_t xyz[3] = {pick(0, 19), pick(0, 9), pick(0, 4)};
        cr_assert_eq(mx_points_add(&points, &plain, "probe", "u", xyz, NULL), 0);
    }
    cr_assert_eq(mx_points_index(&points, &plain, NULL), 0);
    for (int64_t z = 0; z < 5; z++)
        for (int64_t y0 = 0; y0 < 10; y0++)
            for (int64_t y1 = y0; y1 <= 10; y1++) {
                int64_t from, end, first = 0, n = 0;
                mx_points_of_rows(&points, z, y0, y1, &from, &end);
                for (int i = 0; i < MANY; i++) {
                    const struct mx_point *p = &points.point[i];
                    first += p->z < z || (p->z == z && p->y < y0);
                    n += p->z == z && p->y >= y0 && p->y < y1;
                }
                cr_assert(from == first && end - from == n);
            }
    for (int i = 1; i < MANY; i++) {
        const struct mx_point *p = &points.point[i - 1], *q = &points.point[i];
        const bool same = p->z == q->z && p->y == q->y && p->x == q->x;
        cr_assert(!same || p->number < q->number);
    }
    mx_points_free(&points);
}

/* Traces go to a file step by step; a run that ends after some of them goes on with the rest, and the file is
 * that of a run that never ended. Recording twice, ahead, and of steps that are known does no harm. */
Test(points, traces_go_on_where_they_were_committed, .init = make_folder, .fini = remove_folder) {
    enum { STEPS = 9, PROBES = 70, FIRST = 4 };
    struct mx_points probes = {0};
    struct mx_traces t;
    struct mx_why why;
    double value[STEPS][PROBES], row[STEPS * PROBES];
    struct mx_problem p = plain;
    p.nt = STEPS;
    for (int i = 0; i < PROBES; i++) {
        const int64_t xyz[3] = {pick(0, 19), pick(0, 9), pick(0, 4)};
        cr_assert_eq(mx_points_add(&probes, &p, "probe", "u", xyz, NULL), 0);
    }
    cr_assert_eq(mx_points_index(&probes, &p, NULL), 0);
    for (int s = 0; s < STEPS; s++)
        for (int i = 0; i < PROBES; i++) value[s][i] = real();
    const char *path = in_folder("traces.npy", NULL);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    cr_assert_eq(mx_traces_file_begin(fd, STEPS, PROBES, &why), 0);
    for (int session = 0; session < 2; session++) {
        const int from = session == 0 ? 0 : FIRST, end = session == 0 ? FIRST : STEPS;
        cr_assert_eq(mx_traces_make(&probes, 6, from, &why, &t), 0);
        for (int s = session == 0 ? 0 : FIRST - 1; s < end; s++)
            for (int i = 0; i < PROBES; i++) {
                const double v = s < from ? -1 : value[s][probes.point[i].number];
                mx_traces_record(&t, s, i, v);
                if (i % 3 == 0) mx_traces_record(&t, s, i, v);
            }
        if (session == 0) { /* a step that was begun when the run was killed */
            for (int i = 0; i < PROBES / 2; i++)
                mx_traces_record(&t, FIRST, i, value[FIRST][probes.point[i].number]);
            refused(mx_traces_take(&t, FIRST + 1, row, &why), &why, -EIO, "no value at step 4");
        }
        cr_assert_eq(mx_traces_file_write(fd, &t, end, &why), 0, "%s", why.text);
        mx_traces_free(&t);
        if (session == 0)
            cr_assert_eq(mx_traces_file_check(fd, path, STEPS, PROBES, FIRST, &why), 0, "%s", why.text);
    }
    cr_assert_eq(pread(fd, row, sizeof row, 128), (ssize_t)sizeof row);
    cr_assert_eq(memcmp(row, value, sizeof value), 0);
    refused(mx_traces_file_check(fd, path, STEPS, PROBES + 1, FIRST, &why), &why, -EINVAL, "71 probes");
    refused(mx_traces_file_check(fd, path, STEPS + 1, PROBES, FIRST, &why), &why, -EINVAL,
            "no file of traces");
    cr_assert_eq(ftruncate(fd, 128 + (off_t)sizeof value + 1), 0);
    refused(mx_traces_file_check(fd, path, STEPS, PROBES, FIRST, &why), &why, -EINVAL, "longer");
    cr_assert_eq(ftruncate(fd, 500), 0);
    refused(mx_traces_file_check(fd, path, STEPS, PROBES, FIRST, &why), &why, -EINVAL, "truncated");
    close(fd);
    /* no room: said, not overwritten */
    cr_assert_eq(mx_traces_make(&probes, 2, 0, &why, &t), 0);
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < PROBES; i++) mx_traces_record(&t, s, i, value[s][i]);
    refused(mx_traces_take(&t, 1, row, &why), &why, -EIO, "no room for step 2");
    mx_traces_free(&t);
    mx_points_free(&probes);
}

/* ------------------------------------------------------------------ norms */

Test(norms, words) {
    const struct mx_reduce reduce[2] = {{.name = "flux"}, {.name = "peak"}};
    struct mx_until u, again;
    char text[MX_UNTIL_TEXT];
    struct mx_why why;
    struct mx_norms_result r = {.max_change = 1,
                                .rms_change = 2,
                                .reduce = {3, -4},
                                .spread = {5, 6},
                                .range = {2.5, 12},
                                .mean = {0.5, 2}};
    const struct {
        const char *text;
        double value;
    } good[] = {{"max-change=1e-6", 1},
                {"rms-change=2", 2},
                {"flux=0", 3},
                {"peak=-5", -4},
                {"peak-spread=6", 6},
                {"max-change=1,above", 1},
                {"flux=2.5,above", 3},
                {"peak=-3.5,above", -4},
                {"peak=-3.5,below", -4},
                {"flux-spread=5,floor=0.25", 5},
                {"flux-spread=1,floor=10", 0.25},
                {"flux-spread=0.25,floor=10,above", 0.25}};
    static const bool met[] = {false, true, false, false, true, true, true, false, true, true, true, true};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        cr_assert_eq(mx_until_parse(good[i].text, 2, reduce, &why, &u), 0, "%s", why.text);
        cr_assert_eq(mx_until_value(&u, &r), good[i].value);
        cr_assert_eq(mx_until_parse(mx_until_text(&u, reduce, text), 2, reduce, &why, &again), 0);
        cr_assert(again.kind == u.kind && again.reduce == u.reduce && again.limit == u.limit &&
                  again.floor == u.floor && again.above == u.above);
        cr_assert_eq(mx_until_met(&u, &r), met[i], "%s", good[i].text);
    }
    r.max_change = NAN;
    cr_assert_eq(mx_until_parse("max-change=1e300", 0, NULL, &why, &u), 0);
    cr_assert(!mx_until_met(&u, &r));
    refused(mx_until_parse("max-change", 2, reduce, &why, &u), &why, -EINVAL, "NAME=VALUE");
    refused(mx_until_parse("max-change=", 2, reduce, &why, &u), &why, -EINVAL, "NAME=VALUE");
    refused(mx_until_parse("max-change=1x", 2, reduce, &why, &u), &why, -EINVAL, "NAME=VALUE");
    refused(mx_until_parse("max-change=-1", 2, reduce, &why, &u), &why, -EINVAL, "never met");
    refused(mx_until_parse("max-change=-1,above", 2, reduce, &why, &u), &why, -EINVAL, "always met");
    refused(mx_until_parse("flux=1,floor=1", 2, reduce, &why, &u), &why, -EINVAL, "a floor is for");
    static const char *const words[] = {"flux-spread=1,floor=0", "flux-spread=1,floor=-1",
                                        "flux-spread=1,floor=",  "flux-spread=1,floor=inf",
                                        "flux=1,over",           "flux=1,",
                                        "flux=1,,above",         "flux=1,above,",
                                        "flux=1;above"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        refused(mx_until_parse(words[i], 2, reduce, &why, &u), &why, -EINVAL, "NAME=VALUE");
    /* The longest there is keeps all its digits. */
    const struct mx_reduce longest = {.name = "abcdefghijklmnopqrstuvw"};
    static const char all[] =
        "abcdefghijklmnopqrstuvw-spread=1.2345678901234567e-100,above,floor=1.2345678901234568e-300";
    cr_assert_eq(mx_until_parse(all, 1, &longest, &why, &u), 0, "%s", why.text);
    cr_assert_str_eq(mx_until_text(&u, &longest, text), all);
    refused(mx_until_parse("flow=1", 2, reduce, &why, &u), &why, -EINVAL, "flux");
    refused(mx_until_parse("flux=1", 0, NULL, &why, &u), &why, -EINVAL, "no MX_REDUCE");
    struct mx_norms_options o = {.problem = &plain};
    struct mx_norms *n;
    refused(mx_norms_make(&o, &why, &n), &why, -EINVAL, "every 0 steps");
}

/* NaN and infinity are seen wherever they stand; rows that are missing, and checks that meet, are said. */
Test(norms, what_is_wrong_is_seen) {
    struct mx_why why;
    struct mx_norms *n;
    struct mx_norms_result r;
    struct mx_problem p = {.nx = 11, .ny = 3, .nz = 2, .nt = 9, .h = 1, .dtype = MX_F64};
    const int64_t offset[1] = {0};
    const struct mx_norms_options o = {.problem = &p, .every = 2, .max_change = true, .rms_change = true};
    for (int bad = 0; bad < 3; bad++) {
        cr_assert_eq(mx_norms_make(&o, &why, &n), 0);
        cr_assert(!mx_norms_due(n, 0) && mx_norms_due(n, 1) && mx_norms_due(n, 7) && mx_norms_due(n, 8));
        for (int64_t z = 0; z < 2; z++)
            for (int64_t y = 0; y < 3; y++) {
                double now[13] = {0}, old[13] = {0};
                for (int x = 1; x < 12; x++) now[x] = x == 4 ? -3 : 1;
                now[0] = now[12] = 1e9; /* the frame does not count */
                if (bad == 1 && y == 1 && z == 1) now[7] = NAN;
                if (bad == 2 && y == 0 && z == 1) now[11] = -INFINITY;
                const struct mx_norm_row row = {.level = 1,
                                                .y = y,
                                                .z = z,
                                                .x0 = 1,
                                                .x1 = 12,
                                                .now = (char *)now,
                                                .old = (char *)old,
                                                .field_offset_bytes = offset};
                if (y + z == 0) refused(mx_norms_take(n, 2, &why, &r), &why, -EIO, "0 of 6 rows");
                mx_norms_row(n, &row);
                if (y + z == 0) refused(mx_norms_take(n, 2, &why, &r), &why, -EIO, "1 of 6 rows");
            }
        cr_assert_eq(mx_norms_take(n, 2, &why, &r), 0, "%s", why.text);
        if (bad == 0)
            cr_assert(r.max_change == 3 && r.rms_change == sqrt(19.0 / 11));
        else if (bad == 1)
            cr_assert(isnan(r.max_change) && isnan(r.rms_change));
        else
            cr_assert(isinf(r.max_change) && isinf(r.rms_change));
        const double zero[13] = {0};
        struct mx_norm_row row = {.x0 = 1,
                                  .x1 = 12,
                                  .now = (char *)(uintptr_t)zero,
                                  .old = (char *)(uintptr_t)zero,
                                  .field_offset_bytes = offset};
        for (row.level = 1; row.level <= 7; row.level += 2) mx_norms_row(n, &row);
        refused(mx_norms_take(n, 2, &why, &r), &why, -EIO, "another check");
        mx_norms_free(n);
    }
}

/* However many checks there are: at most so many are kept, evenly spaced, and always the newest; what was
 * kept up to a step is what it was then, and can be made shorter in the same way. */
Test(norms, history_is_bounded) {
    static struct mx_norms_history all, part;
    memset(&all, 0, sizeof all);
    for (int64_t number = 1; number <= 5000; number++) {
        const struct mx_norms_result r = {.step = 10 * number, .max_change = 1.0 / (double)number};
        mx_history_add(&all, number, &r);
        cr_assert(all.n >= 1 && all.n <= MX_HISTORY_MOST);
        cr_assert(number < MX_HISTORY_MOST ? all.n == number : all.n >= MX_HISTORY_MOST / 2 - 1);
        for (int32_t i = 0; i < all.n; i++) {
            const struct mx_norms_kept *k = &all.kept[i];
            cr_assert(k->number % all.stride == 0 || (i == all.n - 1 && k->number == number));
            cr_assert(k->result.step == 10 * k->number && k->result.max_change == 1.0 / (double)k->number);
            cr_assert(i == 0 || k->number > all.kept[i - 1].number);
        }
        cr_assert_eq(all.kept[all.n - 1].number, number);
        if (number % 7 != 0) continue;
        const int32_t most = (int32_t)pick(1, MX_HISTORY_MOST);
        mx_history_up_to(&all, 10 * number, most, &part);
        cr_assert(part.n >= 1 && part.n <= most && part.kept[part.n - 1].number == number);
        for (int32_t i = 0; i + 1 < part.n; i++) cr_assert_eq(part.kept[i].number % part.stride, 0);
        mx_history_up_to(&all, 5 * number, most, &part);
        cr_assert(part.n <= most && (part.n == 0 || part.kept[part.n - 1].result.step <= 5 * number));
        mx_history_up_to(&all, 9, most, &part);
        cr_assert_eq(part.n, 0);
    }
}
