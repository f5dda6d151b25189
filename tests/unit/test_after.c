/* Sides, frames, points and norms: what happens to rows that a level has written, by any threads, in any order
 * and in pieces, against a plain transcription of the model (levels, planes, whole frames), bit by bit. */
#include "engine/after.h"

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
               0.06 * (at(c, g, 0, -h, 0) - at(c, g, 0, h, 0)) + 0.07 * (at(c, f, 0, 0, -h) + at(c, f, 0, 0, h)) +
               0.05 * at(c, g, h, -h, h) + 0.04 * at(c, f, -1, 1, -1) + 0.03 * c->fixed +
               1e-4 * (double)(c->x + 2 * c->y + 3 * c->z + c->t);
    return form == MX_JACOBI ? v : v - 0.5 * c->old;
}

static double flux(const struct cell *c) {
    return c->fixed * (at(c, 0, c->h, 0, 0) - at(c, 0, 0, 0, 0)) + at(c, 1, 0, -c->h, 1) + 1e-3 * (double)c->t;
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

static void reduce_sum(const struct mx_row *r, double lane[8]) {
    for (int64_t x = r->x0; x < r->x1; x++) {
        const struct row_context context = {r, x, reduced_array()};
        const struct cell c = cell_of_row(&context);
        lane[(x - w.p.h) % 8] += flux(&c);
    }
}
static void reduce_max(const struct mx_row *r, double lane[8]) {
    for (int64_t x = r->x0; x < r->x1; x++) {
        const struct row_context context = {r, x, reduced_array()};
        const struct cell c = cell_of_row(&context);
        const double v = fabs(flux(&c));
        if (v > lane[(x - w.p.h) % 8]) lane[(x - w.p.h) % 8] = v;
    }
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
            end = l->field_offset_bytes[a][f] +
                  (w.p.nx + 2 * w.p.h) * mx_dtype_bytes(w.s.field[a][f].dtype);
        }
        if (end > l->row_bytes) l->row_bytes = end;
    }
    l->row_pitch_bytes = (l->row_bytes + 63) / 64 * 64;
    l->plane_pitch_bytes = l->rows * l->row_pitch_bytes;
}

static void make_system(int form) {
    static const enum mx_dtype types[] = {MX_F64, MX_F32};
    const int h = (int)pick(1, 3);
    memset(&w, 0, sizeof w);
    w.s = (struct mx_system){
        .form = form, .h = h, .n_field = {(int32_t)pick(1, MOST_FIELDS), (int32_t)pick(1, MOST_FIELDS)}, .n_fixed = 1};
    if (form != MX_STAGGERED) w.s.n_field[1] = w.s.n_field[0];
    for (int a = 0; a < 2; a++)
        for (int f = 0; f < w.s.n_field[a]; f++) {
            const bool same = a == 1 && form != MX_STAGGERED;
            w.s.field[a][f].dtype = same ? w.s.field[0][f].dtype : types[pick(0, 1)];
            snprintf(w.s.field[a][f].name, MX_FIELD_NAME, "%c%d", same ? 'a' : 'a' + a, f);
        }
    w.s.fixed[0] = (struct mx_field_of){"k", MX_F32};
    w.s.row[0] = row_b, w.s.row[1] = form == MX_STAGGERED ? row_a : row_b;
    w.p = (struct mx_problem){.nx = pick(h, 22),
                              .ny = pick(h, 12),
                              .nz = pick(h, 10),
                              .nt = pick(1, MOST_STEPS),
                              .h = h,
                              .dtype = w.s.field[0][0].dtype,
                              .system = &w.s};
    w.levels = mx_levels_of(&w.p, w.p.nt);
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
        if (i % 3 != 2) xyz[0] = pick(0, w.p.nx - 1), xyz[1] = pick(0, w.p.ny - 1), xyz[2] = pick(0, w.p.nz - 1);
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

static void make_world(int form) {
    make_system(form);
    make_sides();
    make_points();
    w.reduce[0] = (struct mx_reduce){"flux", MX_REDUCE_SUM, reduce_sum};
    w.reduce[1] = (struct mx_reduce){"top", MX_REDUCE_MAX, reduce_max};
    w.norms = (struct mx_norms_options){.problem = &w.p,
                                        .every = pick(1, 3),
                                        .max_change = true,
                                        .rms_change = true,
                                        .spans = form != MX_STAGGERED,
                                        .n_reduce = 2,
                                        .reduce = w.reduce};
}

static void free_world(void) {
    mx_sources_free(&w.sources);
    mx_points_free(&w.probes);
}

/* ------------------------------------------------------------------ the oracle */

/* pair_systems.py, word by word; cells are f64 that their type can hold. */
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

static size_t o_bytes(int fields) { return (size_t)(fields * w.layout.planes * plane_cells()) * sizeof(double); }

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
            if (pt->number != n || pt->z + h != z || (pt->array >= 0 && pt->array != to) || step >= wave->n) continue;
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
                          "array %d field %d cell %d %d %d: %.17g, expected %.17g; form %d h %d n %d %d %d", array, f,
                          (int)x, (int)y, (int)z, found, v, w.s.form, w.p.h, (int)w.p.nx, (int)w.p.ny, (int)w.p.nz);
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
            in[f * (2 * h + 1) + h + d] = v_row(&t->view, from, y, z + d) + w.layout.field_offset_bytes[from][f];
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
                t->unit[t->units++] = (struct unit){x,  end,
                                                    y0, y0 + dy < y[1] ? y0 + dy : y[1],
                                                    z0, z0 + dz < z[1] ? z0 + dz : z[1]};
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
        cut(t, &(int64_t[2]){from[1], end[1]}[0], &(int64_t[2]){from[2], pick(from[2], end[2])}[0], pick(1, 3));
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

/* After every level: every cell of both arrays, frames included; of ghost dimensions the interior. After every
 * step probes and norms. */
static void one_world(int form, int threads) {
    static struct oracle o;
    static struct trial t;
    make_world(form);
    o_start(&o);
    make_trial(&t, &o);
    for (int64_t level = 0; level < w.levels; level++) {
        o_level(&o, level);
        run_level(&t, level, threads);
        const int64_t a_step = mx_levels_a_step(&w.p);
        if ((level + 1) % a_step == 0) compare_step(&t, &o, level / a_step);
        const int64_t dy = w.ghost[1] ? w.p.h : 0, dz = w.ghost[2] ? w.p.h : 0;
        for (int64_t z = dz; z < w.layout.planes - dz; z++)
            for (int64_t y = dy; y < w.layout.rows - dy; y++)
                for (int a = 0; a < 2; a++) put_row(&t, &o, a, y, z, true);
    }
    free_trial(&t);
    o_free(&o);
    free_world();
}

Test(after, rows_in_any_order_give_the_bits_of_the_model) {
    for (int i = 0; i < 240; i++) one_world(i % 3, 1);
}

Test(after, rows_of_several_threads_give_the_bits_of_the_model) {
    for (int i = 0; i < 60; i++) one_world(i % 3, 2 + i % 2);
}
