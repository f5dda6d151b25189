/* SPDX-License-Identifier: BSD-3-Clause */
/* after_world.c - random worlds, their kernel, and the model. */
#include "after_world.h"

uint64_t state = 11;

static uint64_t next_random(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

int64_t pick(int64_t from, int64_t to) { return from + (int64_t)(next_random() % (uint64_t)(to - from + 1)); }

double real(void) { return (double)next_random() / 2147483648.0 - 0.5; }

/* ------------------------------------------------------------------ one cell */

double at(const struct cell *c, int f, int dx, int dy, int dz) {
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

double rounded(enum mx_dtype dtype, double v) { return dtype == MX_F32 ? (double)(float)v : v; }

/* ------------------------------------------------------------------ a world */

struct world w; /* row functions have no context */

int64_t plane_cells(void) { return w.layout.rows * (w.p.nx + 2 * w.p.h); }

/* ---- the kernel */

double value_in(enum mx_dtype dtype, const void *row, int64_t x) {
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

void make_layout(void) {
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

void set_system(int form, int h, const int fields[2], const int64_t n[3], int64_t nt) {
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
    test_sides(&w.p, 3, pick, &w.sides);
    for (int d = 0; d < 3; d++) w.ghost[d] = d != MX_DIM_X && mx_sides_periodic(&w.sides, d) && pick(0, 1);
}

void make_points(void) {
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

void make_norms(void) {
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

void make_world(int form) {
    make_system(form);
    make_sides();
    make_points();
    make_norms();
    w.norms.every = pick(1, 3);
}

void free_world(void) {
    mx_sources_free(&w.sources);
    mx_points_free(&w.probes);
}

/* ------------------------------------------------------------------ the oracle */

double *o_cell(double *array, int f, int64_t z, int64_t y, int64_t x) {
    return array + (f * w.layout.planes + z) * plane_cells() + y * (w.p.nx + 2 * w.p.h) + x;
}

static double oracle_at(const void *context, int f, int dx, int dy, int dz) {
    const struct oracle_context *c = context;
    return *o_cell(c->array, f, c->z + dz, c->y + dy, c->x + dx);
}

static void o_image(double *a, int array, int f, int d, const int64_t to[3]) {
    const struct mx_ends ends = mx_ends_of(&w.sides, array, f, d);
    int64_t from[3] = {to[0], to[1], to[2]};
    bool minus;
    from[d] = test_image(ends.side[to[d] >= w.p.h], mx_extent_of(&w.p, d), w.p.h, to[d], &minus);
    if (from[d] == to[d]) return;
    const double v = *o_cell(a, f, from[2], from[1], from[0]);
    *o_cell(a, f, to[2], to[1], to[0]) = minus ? -v : v;
}

static void o_zeros(double *a, int array, int64_t z) {
    const int64_t h = w.p.h;
    for (int f = 0; f < w.s.n_field[array]; f++)
        for (int64_t y = 0; y < w.p.ny; y++)
            for (int64_t x = 0; x < w.p.nx; x++)
                if (test_zero(&w.sides, &w.p, array, f, (int64_t[3]){x, y, z - h}))
                    *o_cell(a, f, z, y + h, x + h) = 0;
}

static void o_refresh_xy(double *a, int array, int64_t z) {
    for (int d = MX_DIM_X; d <= MX_DIM_Y; d++)
        for (int f = 0; f < w.s.n_field[array]; f++)
            for (int64_t y = 0; y < w.layout.rows; y++)
                for (int64_t x = 0; x < w.p.nx + 2 * w.p.h; x++)
                    o_image(a, array, f, d, (const int64_t[3]){x, y, z});
}

/* Of all planes: which of them plane z makes right does not matter, for nobody reads them before the level
 * has all planes. */
static void o_refresh_z(double *a, int array) {
    for (int f = 0; f < w.s.n_field[array]; f++)
        for (int64_t z = 0; z < w.layout.planes; z++)
            for (int64_t y = 0; y < w.layout.rows; y++)
                for (int64_t x = 0; x < w.p.nx + 2 * w.p.h; x++)
                    o_image(a, array, f, MX_DIM_Z, (const int64_t[3]){x, y, z});
}

void o_first_frames(double *a, int array) {
    for (int64_t z = 0; z < w.layout.planes; z++) o_refresh_xy(a, array, z);
    o_refresh_z(a, array);
}

size_t o_bytes(int fields) { return (size_t)(fields * w.layout.planes * plane_cells()) * sizeof(double); }

void o_start(struct oracle *o) {
    memset(o, 0, sizeof *o);
    for (int a = 0; a < 2; a++) {
        o->array[a] = malloc(o_bytes(w.s.n_field[a]));
        for (int f = 0; f < w.s.n_field[a]; f++)
            for (int64_t i = 0; i < w.layout.planes * plane_cells(); i++)
                o->array[a][f * w.layout.planes * plane_cells() + i] = rounded(w.s.field[a][f].dtype, real());
    }
    if (w.s.form == MX_JACOBI) memcpy(o->array[1], o->array[0], o_bytes(w.s.n_field[0]));
    for (int a = 0; a < 2; a++) {
        for (int64_t z = w.p.h; z < w.p.nz + w.p.h; z++) o_zeros(o->array[a], a, z);
        o_first_frames(o->array[a], a);
    }
    o->fixed = malloc(o_bytes(1));
    for (int64_t i = 0; i < w.layout.planes * plane_cells(); i++) o->fixed[i] = (float)real();
    o->old = malloc(o_bytes(w.s.n_field[0]));
}

void o_free(struct oracle *o) {
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
    o_zeros(o->array[to], to, z);
    o_refresh_xy(o->array[to], to, z);
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

int o_now; /* the array that the step's last level has written */

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

void o_level(struct oracle *o, int64_t level) {
    const int64_t a_step = mx_levels_a_step(&w.p), step = level / a_step, h = w.p.h;
    const int before = w.s.form == MX_STAGGERED ? 0 : (int)(level % 2);
    if (level % a_step == 0) memcpy(o->old, o->array[before], o_bytes(w.s.n_field[0]));
    for (int64_t z = h; z < w.p.nz + h; z++) o_plane(o, level, z);
    o_refresh_z(o->array[1 - level % 2], (int)(1 - level % 2));
    if ((level + 1) % a_step != 0) return;
    o_now = 1 - (int)(level % 2);
    for (int i = 0; i < POINTS; i++) {
        const struct mx_point *pt = &w.probes.point[i];
        double *array = o->array[pt->array >= 0 ? pt->array : o_now];
        o->trace[step][pt->number] = *o_cell(array, pt->field, pt->z + h, pt->y + h, pt->x + h);
    }
    o_check(o, step + 1);
}
