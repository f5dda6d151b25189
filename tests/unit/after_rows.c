/* SPDX-License-Identifier: BSD-3-Clause */
/* after_rows.c - rows in any order, as engines do them, compared with the model. */
#include "after_world.h"

char *v_row(const struct mx_view *v, int array, int64_t y, int64_t z) {
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

void put_row(const struct trial *t, struct oracle *o, int array, int64_t y, int64_t z, bool compare) {
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

void make_trial(struct trial *t, struct oracle *o) {
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

void free_trial(struct trial *t) {
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
    if (!mx_norms_is_check(t->norms, step + 1)) return;
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

void run_world(struct oracle *o, int threads) {
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

void one_world(int form, int threads) {
    static struct oracle o;
    make_world(form);
    run_world(&o, threads);
    o_free(&o);
    free_world();
}

/* Numbers in digits are exact, also where doubles leave some out. */
Test(sides, frames_of_64_bits) {
    static const struct {
        const char *text;
        uint64_t bits;
        bool fits[2]; /* an int64_t, a uint64_t */
    } cases[] = {{"9007199254740993", (UINT64_C(1) << 53) + 1, {true, true}},
                 {"-9223372036854775808", UINT64_C(1) << 63, {true, false}},
                 {"18446744073709551615", UINT64_MAX, {false, true}},
                 {"18446744073709551616", 0, {false, false}},
                 {"-9223372036854775809", 0, {false, false}},
                 {"9007199254740994.0", 0, {false, false}},
                 {"1e6", 1000000, {true, true}},
                 {"0.5", 0, {false, false}},
                 {"nan", 0, {false, false}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int k = 0; k < 2; k++) {
            struct mx_frame f;
            struct mx_why why;
            uint64_t row[3];
            const enum mx_dtype dtype = k == 0 ? MX_I64 : MX_U64;
            cr_assert_eq(mx_frame_parse(cases[i].text, &why, &f), 0);
            cr_assert_eq(mx_frame_check(&f, "n", dtype, &why) == 0, cases[i].fits[k], "%s %d", cases[i].text,
                         k);
            if (!cases[i].fits[k]) continue;
            mx_frame_row(&f, 1, 1, dtype, NULL, (char *)row);
            cr_assert(row[0] == cases[i].bits && row[2] == cases[i].bits, "%s %d", cases[i].text, k);
        }
}
