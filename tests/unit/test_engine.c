/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines against the in-order execution of an advance by the plain kernel, bit by bit. */
#include "effort.h"
#include "engine/tiled.h"
#include "engine_world.h"

enum { SHARE = 3 }; /* one of so many cases in a short run: test_conformance draws the same engines too */

static void many_of(const char *name, bool systems, bool seams, int count) {
    const struct mx_engine_ops *ops = mx_engine_find(name);
    cr_assert_not_null(ops);
    for (int i = mx_cases(count, SHARE); i > 0; i--) {
        struct world w;
        make_world(&w, systems, seams);
        mx_engine *engine = NULL;
        mx_why why = {0};
        cr_assert_eq(ops->create(&w.options, &why, &engine), 0, "%s", why.text);
        same_as_reference(&w, ops, engine);
        w.advance.parity = !w.advance.parity; /* an engine is used many times */
        w.advance.first_level++;
        same_as_reference(&w, ops, engine);
        ops->free(engine);
        free_world(&w);
    }
}

static void many_worlds(const char *name, bool seams, int count) { many_of(name, false, seams, count); }

/* Systems of fields: every form, C of every type. */
Test(engine, iblock_does_systems) {
    many_of("iblock", true, false, 60);
    many_of("iblock", true, true, 60);
}

Test(engine, tiled_does_systems) {
    many_of("tiled", true, false, 300);
    many_of("tiled", true, true, 150);
}

Test(engine, iblock_is_in_order) { many_worlds("iblock", false, 400); }

Test(engine, tiled_is_in_order) { many_worlds("tiled", false, 1500); }

Test(engine, iblock_carries_seams) { many_worlds("iblock", true, 200); }

Test(engine, tiled_carries_seams) { many_worlds("tiled", true, 800); }

/* The engines on every instruction set that this CPU has; the tests above took the best. */
static void on_isa(const char *isa) {
    if (!mx_stencil_has_isa(isa)) cr_skip_test("this CPU has no %s: the engines are not tested with it", isa);
    setenv("MX_ISA", isa, 1);
    many_worlds("iblock", false, 100);
    many_worlds("tiled", false, 200);
    many_worlds("tiled", true, 100);
}

Test(engine, with_avx512) { on_isa("avx512"); }

Test(engine, with_avx2) { on_isa("avx2"); }

Test(engine, with_plain) { on_isa("plain"); }

Test(engine, refuses_an_instruction_set_that_is_none) {
    struct world w;
    mx_engine *engine = NULL;
    mx_why why = {0};
    make_problem(&w);
    make_options(&w);
    setenv("MX_ISA", "sse9", 1);
    cr_assert_eq(mx_engine_find("tiled")->create(&w.options, &why, &engine), -22);
    cr_assert(engine == NULL && strstr(why.text, "MX_ISA=sse9") != NULL, "%s", why.text);
}

/* Windows of all levels between two positions of a front along z. */
static void front_windows(const struct world *w, int64_t from, int64_t to, struct mx_window *out) {
    const int32_t h = w->problem.h;
    for (int32_t l = 0; l < w->advance.levels; l++) {
        out[l] = (struct mx_window){h, (int32_t)w->problem.ny + h, h, (int32_t)w->problem.nz + h};
        out[l].z0 = most(out[l].z0, (int32_t)from - (l + 1) * h);
        out[l].z1 = most(out[l].z0, least(out[l].z1, (int32_t)to - (l + 1) * h));
    }
}

static bool is_empty(struct mx_window w) { return w.y0 >= w.y1 || w.z0 >= w.z1; }

/* Sweeps of a front, all calls posted at once or some waited for: the last level == in order. */
static void sweep_of_calls(struct world *w, const struct mx_engine_ops *ops, mx_engine *engine) {
    enum { SWEEPS = 3, MOST_CALLS = SWEEPS * 90 };
    static struct mx_window window[MOST_CALLS][LEVELS];
    const int32_t h = w->problem.h, levels = w->advance.levels;
    struct mx_advance plain = w->advance, call = w->advance;
    for (int i = 0; i < 2; i++) plain.view.base[i] = copy_of(w->advance.view.base[i], w->array_bytes);
    int64_t number = 0, step = pick(1, 9);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        const int64_t end = w->problem.nz + h + levels * h;
        for (int64_t front = 0, next; front < end; front = next) {
            if (pick(0, 9) == 0) step = pick(1, 9);
            next = end - front > MOST_CALLS / SWEEPS ? front + 9 : front + step;
            cr_assert(number < MOST_CALLS);
            const bool cut = pick(0, 1) == 0; /* or all windows, and the front that cuts them */
            front_windows(w, cut ? front : 0, cut ? next : end, window[number]);
            call.window = window[number++];
            call.front = (struct mx_front){front, next, cut ? 0 : h};
            call.first = 0, call.end = cut || pick(0, 1) == 0 ? 0 : levels;
            while (call.end > 0 && call.first + 1 < call.end && is_empty(mx_window_at(&call, call.first)))
                call.first++;
            while (call.end > call.first + 1 && is_empty(mx_window_at(&call, call.end - 1))) call.end--;
            cr_assert_eq(ops->post(engine, &call), number);
            if (pick(0, 7) == 0) ops->wait(engine, pick(1, (int32_t)number));
        }
        reference(w, &plain);
        call.parity = plain.parity = (plain.parity + levels) & 1;
        call.first_level = plain.first_level += levels;
    }
    ops->wait(engine, number);
    cr_assert_eq(ops->done(engine), number);
    const size_t row_bytes = (size_t)mx_field_offsets(&w->problem, call.first_level & 1, NULL);
    if (mx_reads_old(&w->problem))
        for (int i = 0; i < 2; i++)
            cr_assert(memcmp(call.view.base[i], plain.view.base[i], w->array_bytes) == 0,
                      "%s: array %d differs", ops->name, i);
    for (int64_t z = h; z < w->problem.nz + h; z++)
        for (int64_t y = h; y < w->problem.ny + h; y++)
            cr_assert(
                memcmp(row_at(&call.view, call.parity, y, z), row_at(&plain.view, plain.parity, y, z),
                       row_bytes) == 0,
                "%s: row %d of plane %d differs: %s nx %d ny %d nz %d levels %d threads %d slab %d tile "
                "%d ct %d column %d",
                ops->name, (int)y, (int)z, w->stencil->name, (int)w->problem.nx, (int)w->problem.ny,
                (int)w->problem.nz, levels, w->options.threads, (int)w->options.slab, (int)w->options.tile,
                (int)w->options.ct, (int)w->options.column);
    free(plain.view.base[0]);
    free(plain.view.base[1]);
}

static void many_sweeps(const char *name, bool systems, int count) {
    const struct mx_engine_ops *ops = mx_engine_find(name);
    for (int i = mx_cases(count, SHARE); i > 0; i--) {
        struct world w;
        if (systems)
            make_system_problem(&w);
        else
            make_problem(&w);
        make_options(&w);
        w.advance.levels = pick(1, LEVELS);
        w.advance.window = w.window;
        for (int32_t l = 0; l < w.advance.levels; l++)
            w.window[l] = (struct mx_window){w.problem.h, (int32_t)w.problem.ny + w.problem.h, w.problem.h,
                                             (int32_t)w.problem.nz + w.problem.h};
        make_arrays(&w);
        mx_engine *engine = NULL;
        cr_assert_eq(ops->create(&w.options, NULL, &engine), 0);
        sweep_of_calls(&w, ops, engine);
        ops->free(engine);
        free_world(&w);
    }
}

Test(engine, iblock_calls_are_in_order) { many_sweeps("iblock", false, 60); }

Test(engine, tiled_calls_follow_one_another) { many_sweeps("tiled", false, 400); }

Test(engine, calls_of_systems_follow_one_another) { many_sweeps("tiled", true, 100); }

/* describe() fills what was 0 and keeps what was given; slab() is the given slab, or at least 1. */
Test(engine, parameters_are_honoured_and_reported) {
    for (int i = 0; i < 100; i++) {
        struct world w;
        make_problem(&w);
        make_options(&w);
        for (const struct mx_engine_ops *const *ops = mx_engines; *ops != NULL; ops++) {
            mx_engine *engine = NULL;
            if (strcmp((*ops)->name, "device") == 0) continue; /* needs an accelerator */
            cr_assert_eq((*ops)->create(&w.options, NULL, &engine), 0);
            struct mx_plan plan = {0};
            (*ops)->describe(engine, &plan);
            cr_assert_eq(plan.threads, w.options.threads);
            if (strcmp((*ops)->name, "tiled") == 0) {
                cr_assert(w.options.slab ? plan.slab == w.options.slab : plan.slab >= 1);
                cr_assert(w.options.tile ? plan.tile == w.options.tile : plan.tile >= 1);
                cr_assert(w.options.ct ? plan.ct == w.options.ct : plan.ct >= 1);
            } else {
                cr_assert(w.options.iy ? plan.iy == w.options.iy : plan.iy >= 1);
                cr_assert(w.options.iz ? plan.iz == w.options.iz : plan.iz >= 1);
            }
            int64_t slab = (*ops)->slab(&w.options);
            cr_assert(w.options.slab ? slab == w.options.slab : slab >= 1);
            (*ops)->free(engine);
        }
    }
}

/* Of rows of 510 cells where there are kernels for tiles in place: by the caches, and the nearest number of
 * chunks of the call's levels unless `ct` is given. expected_tile 0: as many rows as the kernel does
 * together. */
Test(engine, sizes_suit_the_caches) {
    const struct mx_stencil *stencil = mx_stencil_find("star7");
    static const struct {
        int64_t l1, l2, levels, ct, expected_tile, expected_slab, expected_ct;
    } rows[] = {
        {48 << 10, 1 << 20, 128, 0, 6, 16, 16}, {48 << 10, 1 << 20, 65, 0, 6, 16, 17},
        {48 << 10, 1 << 20, 65, 16, 6, 16, 16}, {48 << 10, 1 << 20, 24, 0, 6, 16, 12},
        {48 << 10, 1 << 20, 23, 0, 6, 16, 23},  {48 << 10, 2 << 20, 128, 0, 6, 16, 32},
        {32 << 10, 1 << 20, 65, 0, 0, 16, 22},  {32 << 10, 1 << 20, 128, 0, 0, 16, 22},
        {32 << 10, 1 << 20, 0, 0, 0, 16, 22},   {32 << 10, 512 << 10, 65, 0, 6, 12, 17},
        {32 << 10, 2 << 20, 65, 0, 6, 16, 33},
    };
    if (mx_stencil_tile(stencil, MX_F64) == NULL) cr_skip_test("no kernel for tiles in place here");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mx_problem p = {.nx = 510, .ny = 510, .nz = 510, .h = 1, .nt = 128, .dtype = MX_F64};
        strcpy(p.stencil, "star7");
        const struct mx_machine m = {.cores = 1,
                                     .sockets = 1,
                                     .l1_bytes = (uint64_t)rows[i].l1,
                                     .l2_bytes = (uint64_t)rows[i].l2,
                                     .l3_bytes = 32 << 20};
        const struct mx_engine_options o = {.problem = &p,
                                            .machine = &m,
                                            .row_pitch_bytes = 4160,
                                            .threads = 1,
                                            .ct = rows[i].ct,
                                            .levels = rows[i].levels,
                                            .rows = 510};
        const struct mx_engine_ops *ops = mx_engine_find("tiled");
        struct mx_plan plan = {0};
        mx_engine *engine = NULL;
        cr_assert_eq(ops->create(&o, NULL, &engine), 0);
        ops->describe(engine, &plan);
        const int64_t together = mx_stencil_tile_rows(stencil), tile = rows[i].expected_tile;
        cr_assert_eq(plan.tile, tile > 0 ? tile : together, "row %zu: tile %lld", i, (long long)plan.tile);
        cr_assert_eq(plan.slab, rows[i].expected_slab, "row %zu: slab %lld", i, (long long)plan.slab);
        cr_assert_eq(plan.ct, rows[i].expected_ct, "row %zu: ct %lld", i, (long long)plan.ct);
        cr_assert_leq(ops->efficiency(&o), 1.0);
        ops->free(engine);
    }
}

/* Rows of whole pages compete for places in L1: less beside an L2 of 2 MiB, whose processors have an L1 of 12
 * ways. */
Test(engine, rows_of_whole_pages_cost_what_was_measured) {
    static const struct {
        int64_t l2;
        double cost;
    } rows[] = {{1 << 20, 1.15}, {2 << 20, 1.03}};
    struct mx_problem p = {.nx = 510, .ny = 510, .nz = 510, .h = 1, .nt = 128, .dtype = MX_F64};
    strcpy(p.stencil, "star7");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct mx_machine m = {
            .cores = 1, .sockets = 1, .l1_bytes = 48 << 10, .l2_bytes = (uint64_t)rows[i].l2};
        struct mx_engine_options o = {
            .problem = &p, .machine = &m, .row_pitch_bytes = 4160, .threads = 1, .levels = 64, .rows = 510};
        const double apart = mx_engine_tiled.efficiency(&o);
        o.row_pitch_bytes = 4096;
        cr_expect_float_eq(apart / mx_engine_tiled.efficiency(&o), rows[i].cost, 0.001);
    }
}

/* What a tile reads beside its cells is a smaller share of a kernel that computes longer for each byte.
 * Without a rate it costs as much as star7 in f64, which computes 32 bytes in a nanosecond. */
Test(engine, thin_slabs_and_few_levels_cost_a_share_of_the_bytes) {
    const struct mx_machine m = {
        .cores = 2, .sockets = 1, .l1_bytes = 32 << 10, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = {.nx = 510, .ny = 510, .nz = 510, .h = 1, .nt = 128, .dtype = MX_F64};
    strcpy(p.stencil, "star7");
    static const int sizes[][2] = {{2, 64}, {0, 2}, {2, 4}};
    for (int i = 0; i < 3; i++) {
        struct mx_engine_options o = {.problem = &p,
                                      .machine = &m,
                                      .row_pitch_bytes = 4160,
                                      .threads = 2,
                                      .slab = sizes[i][0],
                                      .levels = sizes[i][1],
                                      .rows = 510};
        const double star7 = mx_engine_tiled.efficiency(&o);
        double before = 1, fast = 0;
        for (double rate = 0.25e9; rate <= 4e9; rate *= 2) {
            o.updates_per_s = rate;
            const double now = mx_engine_tiled.efficiency(&o);
            cr_expect(now < before, "at %g: %g after %g", rate, now, before);
            cr_expect_float_eq(1 / now - 1, rate / 4e9 * (1 / star7 - 1), 1e-9);
            before = now;
        }
        cr_expect_float_eq(before, star7, 1e-9);
        for (double rate = 1e9; rate <= 1e13; rate *= 2) {
            o.updates_per_s = rate;
            const double now = rate * mx_engine_tiled.efficiency(&o);
            cr_expect(now > fast, "at %g: %g after %g", rate, now, fast);
            fast = now;
        }
    }
}

static void no_row(const struct mx_row *r) { (void)r; }

/* Of 254 cells a row, in two arrays. h 0: the built-in star13. An L2 of 2 MiB has larger tiles, unless rows
 * are so long that few planes fit; of h >= 4 only for few threads, and where L3 has room for their tiles.
 * There they have as many rows as let L2 hold what a pass reads and writes, but 8 at least. */
Test(engine, sizes_in_two_arrays_suit_the_caches) {
    static const struct {
        int64_t l2, l3, threads, h, fields, pitch, expected_tile, expected_slab, expected_ct;
        bool asks_ahead;
    } rows[] = {
        {1 << 20, 480 << 20, 2, 0, 1, 2048, 4, 32, 16, true},
        {2 << 20, 480 << 20, 2, 0, 1, 2048, 8, 26, 32, true},
        {1 << 20, 480 << 20, 2, 1, 1, 2048, 4, 32, 16, true},
        {2 << 20, 480 << 20, 2, 1, 1, 2048, 8, 26, 32, false},
        {2 << 20, 480 << 20, 2, 1, 3, 6144, 8, 8, 32, false},
        {2 << 20, 480 << 20, 2, 1, 19, 9728, 4, 10, 32, false},
        {2 << 20, 480 << 20, 2, 3, 1, 2048, 8, 26, 32, false},
        {1 << 20, 480 << 20, 2, 4, 1, 2048, 16, 24, 8, true},
        {2 << 20, 480 << 20, 2, 4, 1, 2048, 32, 64, 8, false},
        {2 << 20, 480 << 20, 8, 4, 1, 2048, 32, 64, 8, false},
        {2 << 20, 480 << 20, 9, 4, 1, 2048, 16, 24, 8, false},
        {2 << 20, 36 << 20, 2, 4, 1, 2048, 32, 64, 8, false},
        {2 << 20, 35 << 20, 2, 4, 1, 2048, 16, 24, 8, false},
        {2 << 20, 480 << 20, 2, 8, 1, 1024, 60, 64, 8, false},
        {2 << 20, 480 << 20, 2, 8, 1, 2048, 28, 64, 8, false},
        {2 << 20, 480 << 20, 2, 8, 3, 6144, 8, 64, 8, false},
        {2 << 20, 480 << 20, 2, 4, 1, 4096, 24, 64, 8, false},
        {2 << 20, 480 << 20, 2, 8, 16, 32768, 8, 64, 8, false}, /* L2 would hold 7 */
        {2 << 20, 480 << 20, 2, 8, 1, 8192, 12, 64, 8, false}, /* columns */
        {1 << 20, 480 << 20, 2, 8, 1, 2048, 32, 24, 8, true},
        {1 << 20, 480 << 20, 2, 3, 9, 6144, 12, 22, 8, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mx_system s = {.name = "any",
                              .h = (int32_t)rows[i].h,
                              .n_field = {(int32_t)rows[i].fields, (int32_t)rows[i].fields},
                              .row = {no_row}};
        struct mx_problem p = {.nx = 254, .ny = 254, .nz = 254, .h = 2, .nt = 128, .dtype = MX_F64};
        if (rows[i].h > 0)
            p.system = &s, p.h = s.h;
        else
            strcpy(p.stencil, "star13");
        const struct mx_machine m = {.cores = 2,
                                     .sockets = 1,
                                     .l1_bytes = 48 << 10,
                                     .l2_bytes = (uint64_t)rows[i].l2,
                                     .l3_bytes = (uint64_t)rows[i].l3};
        struct mx_engine_options o = {.problem = &p,
                                      .machine = &m,
                                      .row_pitch_bytes = rows[i].pitch,
                                      .threads = (int32_t)rows[i].threads,
                                      .levels = 128,
                                      .rows = 254};
        o = mx_tiled_of_tile(&o);
        cr_assert_eq(mx_tiled_rows(&o), rows[i].expected_tile, "row %zu: tile %lld", i,
                     (long long)mx_tiled_rows(&o));
        cr_assert_eq(o.slab, rows[i].expected_slab, "row %zu: slab %lld", i, (long long)o.slab);
        cr_assert_eq(mx_tiled_chunk(&o), rows[i].expected_ct, "row %zu: ct %lld", i,
                     (long long)mx_tiled_chunk(&o));
        cr_assert_eq(mx_tiled_asks_ahead(&o), rows[i].asks_ahead, "row %zu", i);
    }
}

Test(engine, refuses_what_it_cannot_do) {
    struct world w;
    make_problem(&w);
    make_options(&w);
    mx_engine *engine = NULL;
    mx_why why = {0};
    strcpy(w.problem.stencil, "star8");
    cr_assert_eq(mx_engine_find("tiled")->create(&w.options, &why, &engine), -22);
    cr_assert(strlen(why.text) > 0 && engine == NULL);
    cr_assert_null(mx_engine_find("none"));
}
