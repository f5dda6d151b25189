/* SPDX-License-Identifier: BSD-3-Clause */
/* Sides, frames, points and norms: what happens to rows that a level has written, by any threads, in any
 * order and in pieces, against a plain transcription of the model (levels, planes, whole frames), bit by bit.
 */
#include "after_world.h"

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
        o_first_frames(o.array[array], array);
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
    mx_after_points(&t->after, 0, y, y + 1, z, row, t->view.row_pitch_bytes);
    for (int32_t f = 0; f < mx_field_count(&w.p, 1); f++) {
        const struct mx_ends x = mx_ends_of(&t->after.sides, 1, f, MX_DIM_X);
        struct mx_x_copy copy[2];
        const int n = mx_side_x_copies(x.side, w.p.nx, w.p.h, all, copy);
        mx_sides_copy_x(copy, n, mx_field_dtype(&w.p, 1, f), row + t->after.layout->field_offset_bytes[1][f]);
    }
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

/* Exactly: of every kind at either end, and of kinds that fields have side by side. */
Test(after, touched_ranges_contain_every_copy) {
    static struct mx_system system = {.form = MX_JACOBI, .n_field = {3, 3}};
    for (int f = 0; f < 6; f++) snprintf(system.field[f / 3][f % 3].name, MX_FIELD_NAME, "f%d", f % 3);
    for (int trial = 0; trial < 4000; trial++) {
        const int32_t h = (int32_t)pick(1, 4);
        const int64_t n = pick(1, 14);
        const struct mx_problem p = {.nx = n, .ny = n, .nz = n, .h = h, .system = &system};
        struct mx_sides sides;
        test_sides(&p, 3, pick, &sides);
        const int64_t from = pick(h, n + h - 1), end = pick(from, n + h);
        int64_t a = from, b = end, lo = from, hi = end;
        for (int f = 0; f < 3; f++)
            for (int64_t i = 0; i < n + 2 * h;
                 i++) { /* by the definition: of whom each frame cell is a copy */
                bool minus;
                const int64_t of =
                    test_image(mx_ends_of(&sides, 0, f, MX_DIM_Z).side[i >= h], n, h, i, &minus);
                cr_assert_eq(mx_side_source(mx_ends_of(&sides, 0, f, MX_DIM_Z).side, n, h, i), of);
                if (of == i || of < from || of >= end) continue;
                lo = i < lo ? i : lo, hi = i + 1 > hi ? i + 1 : hi;
                cr_assert(of < h + mx_sides_sources(&sides, MX_DIM_Z, 0, h) ||
                          of >= n + h - mx_sides_sources(&sides, MX_DIM_Z, 1, h));
            }
        mx_sides_extend(&sides, MX_DIM_Z, n, h, &a, &b);
        cr_assert(a == lo && b == hi, "[%d,%d) of n %d h %d: [%d,%d), expected [%d,%d)", (int)from, (int)end,
                  (int)n, h, (int)a, (int)b, (int)lo, (int)hi);
    }
}
