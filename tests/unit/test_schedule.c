/* SPDX-License-Identifier: BSD-3-Clause */
/* test_schedule.c - schedules by execution: an interpreter of steps, in order, on one element per x row.
 *
 * The plain loop is u_{t+1}(y,z) = f(u_t in a box of radius h around (y,z)), frame constant; of systems also
 * of the value that is replaced, and of C in a box of radius hc. For every algorithm and setting: after each
 * COMMIT at time t, Buffer == u_t bit by bit, frame included, and the other one of its pair == u_{t-1}; no
 * computed value is NaN though Blocks, unneeded Buffers and cells of C that are not there start as NaN; no
 * access leaves an array; and the rows moved times their pitch, with the spans of C, == traffic(). Sweeps end
 * at due steps, and where they are shorter than the longest nowhere else.
 */
#include "schedule_sim.h"

static void check_systems(const char *name, int n, bool one_block_y, const char *seams) {
    const struct mx_algorithm *algorithm = mx_algorithm_find(name);
    seed_state = 1181783497276652981u;
    n = mx_cases(n, 2);
    for (int i = 0; i < n; i++) {
        struct mx_problem p;
        struct mx_plan plan;
        struct mx_system system;
        random_setting(&p, &plan, one_block_y);
        if (p.h > 4) continue;
        strcpy(plan.seams, seams);
        make_system(&p, &plan, i % 3, &system);
        if (system.form == MX_JACOBI && i % 2 == 0) system.stages = 2 + i / 6 % 3;
        plan.bt = (plan.bt + mx_levels_a_step(&p) - 1) / mx_levels_a_step(&p) * mx_levels_a_step(&p);
        plan.in_place = strcmp(name, "stream") == 0 && mx_reads_old(&p) && draw() % 2;
        if (getenv("MX_TEST_TRACE"))
            fprintf(stderr,
                    "%s %d: form %d stages %d h %d hc %d fixed %d ny %ld nz %ld nt %ld by %ld bz %ld bt %ld "
                    "slab %ld "
                    "ahead %ld %s%s\n",
                    name, i, system.form, system.stages, p.h, system.hc, system.n_fixed, p.ny, p.nz, p.nt,
                    plan.by, plan.bz, plan.bt, plan.slab, plan.ahead, plan.engine,
                    plan.in_place ? " in-place" : "");
        check(algorithm, &p, &plan);
    }
}

static void check_many(const char *name, int n, bool one_block_y, const char *seams) {
    const struct mx_algorithm *algorithm = mx_algorithm_find(name);
    cr_assert_not_null(algorithm);
    seed_state = 88172645463325252u;
    n = mx_cases(n, 2);
    for (int i = 0; i < n; i++) {
        struct mx_problem p;
        struct mx_plan plan;
        random_setting(&p, &plan, one_block_y);
        strcpy(plan.seams, seams);
        if (getenv("MX_TEST_TRACE"))
            fprintf(stderr, "%s %d: h %d ny %ld nz %ld nt %ld by %ld bz %ld bt %ld slab %ld ahead %ld %s\n",
                    name, i, p.h, p.ny, p.nz, p.nt, plan.by, plan.bz, plan.bt, plan.slab, plan.ahead,
                    plan.engine);
        check(algorithm, &p, &plan);
    }
}

Test(schedule, direct) { check_many("direct", 200, false, ""); }

Test(schedule, redundant) { check_many("redundant", 200, false, ""); }

Test(schedule, stream) { check_many("stream", 400, true, ""); }

Test(schedule, skewed) { check_many("skewed", 200, false, ""); }

Test(schedule, skewed_y) { check_many("skewed-y", 300, false, ""); }

Test(schedule, skewed_min) { check_many("skewed-min", 400, false, ""); }

Test(schedule, direct_skewed) { check_many("mmap1", 150, false, ""); }

Test(schedule, direct_skewed_opt) { check_many("mmap1+opt", 150, false, ""); }

Test(schedule, stream_strips) { check_many("stream", 400, false, "dram"); }

Test(schedule, stream_strips_with_a_side_file) { check_many("stream", 400, false, "side-file"); }

Test(schedule_of_systems, direct) { check_systems("direct", 150, false, ""); }

Test(schedule_of_systems, redundant) { check_systems("redundant", 120, false, ""); }

Test(schedule_of_systems, stream) { check_systems("stream", 450, true, ""); }

Test(schedule_of_systems, skewed) { check_systems("skewed", 200, false, ""); }

Test(schedule_of_systems, skewed_y) { check_systems("skewed-y", 300, false, ""); }

Test(schedule_of_systems, skewed_min) { check_systems("skewed-min", 300, false, ""); }

Test(schedule_of_systems, direct_skewed) { check_systems("mmap1", 120, false, ""); }

Test(schedule_of_systems, direct_skewed_opt) { check_systems("mmap1+opt", 120, false, ""); }

Test(schedule_of_systems, stream_strips) { check_systems("stream", 450, false, "dram"); }

Test(schedule_of_systems, stream_strips_with_a_side_file) {
    check_systems("stream", 450, false, "side-file");
}

/* ------------------------------------------------------------------ sweeps */

enum { MOST_LEVELS = 512 };

/* Kinds of sweeps == those found by going from end to end: bt levels, or up to the next due step. */
static void compare_sweeps(const struct mx_problem *p, int64_t bt) {
    int64_t told[MOST_LEVELS] = {0}, found[MOST_LEVELS] = {0}, longest = 1, count = 0, last = 0;
    const int64_t levels = mx_levels_of(p, p->nt);
    for (struct mx_sweeps s = mx_sweeps_of(p, bt); mx_sweeps_next(&s);) {
        cr_assert(s.levels >= 1 && s.levels <= bt && s.levels < MOST_LEVELS && s.count >= 1);
        told[s.levels] += s.count;
    }
    for (int64_t from = 0; from < levels; count++) {
        int64_t end = from + 1;
        while (end < levels && end - from < bt && !is_due(p, end)) end++;
        cr_assert_eq(mx_min(mx_sweep_end(p, from), from + bt), end);
        found[end - from]++;
        last = from;
        longest = mx_max(longest, end - from);
        from = end;
    }
    for (int64_t l = 0; l < MOST_LEVELS; l++)
        cr_assert_eq(told[l], found[l], "%ld sweeps of %ld levels, %ld told (nt %ld done %ld due %ld %ld)",
                     found[l], l, told[l], p->nt, p->done, p->due[0], p->due[1]);
    cr_assert_eq(mx_sweep_levels(p, bt), longest);
    cr_assert_eq(mx_sweep_count(p, bt), count);
    cr_assert_eq(mx_sweep_last(p, bt), last);
}

Test(schedule, sweeps) {
    static const int forms[] = {MX_JACOBI, MX_LEAPFROG, MX_STAGGERED, MX_JACOBI};
    seed_state = 31;
    for (int i = 0; i < 20000; i++) {
        const struct mx_system system = {
            .form = forms[i % 4], .stages = i % 4 == 3 ? 2 + i / 4 % 4 : 0, .h = 1, .n_field = {1, 1}};
        struct mx_problem p = {.nx = 1, .ny = 1, .nz = 1, .h = 1, .system = &system};
        p.nt = between(0, draw() % 4 == 0 ? 200 : 30);
        p.done = draw() % 2 ? 0 : between(0, 100);
        for (int k = 0; k < 2; k++) p.due[k] = draw() % 4 == 0 ? 0 : between(1, draw() % 2 ? 12 : 60);
        int64_t bt = between(1, draw() % 4 == 0 ? MOST_LEVELS - 1 : 20);
        bt = (bt + mx_levels_a_step(&p) - 1) / mx_levels_a_step(&p) * mx_levels_a_step(&p);
        if (bt >= MOST_LEVELS) bt = mx_levels_a_step(&p);
        compare_sweeps(&p, bt);
    }
}

/* Of a run of 10^15 steps that nobody could go through. */
Test(schedule, sweeps_of_long_runs) {
    const int64_t nt = 1000000000000000;
    struct mx_problem p = {.nx = 1, .ny = 1, .nz = 1, .nt = nt, .h = 1, .due = {1000, 100000}};
    cr_assert_eq(mx_sweep_count(&p, 300), nt / 1000 * 4);
    cr_assert_eq(mx_sweep_levels(&p, 5000), 1000);
    cr_assert_eq(mx_sweep_end(&p, 123456789), 123457000);
    cr_assert_eq(mx_sweep_last(&p, 300), nt - 100);
    p.due[1] = nt * 3; /* beyond the end */
    cr_assert_eq(mx_sweep_count(&p, 300), nt / 1000 * 4);
    p.due[0] = 999, p.due[1] = 1000; /* every 999000 steps: 999 + 1000 - 1 stretches */
    cr_assert_eq(mx_sweep_count(&p, nt), nt / 999 + nt / 1000 - nt / 999000);
    p.due[0] = 3, p.due[1] = nt / 2 + 1;
    cr_assert_eq(mx_sweep_count(&p, 2), nt / 3 * 2 + 1 + ((nt / 2 + 1) % 3 == 1));
}

/* ------------------------------------------------------------------ against the Python model and the papers
 */

struct golden {
    int64_t ny, nz, nt, by, bz, bt, h, rows, slots;
    int64_t moved[4][2]; /* skewed, skewed-y, skewed-min, redundant: rows read, rows written */
};

static const struct golden golden[] = {
#include "schedule_golden.inc"
};

/* For every setting: rows moved and extents of the Blocks == those of the model (make_schedule_golden.py). */
Test(schedule, python_model) {
    static const char *const names[] = {"aio2", "aio3y", "aio5y", "algorithm-1"};
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        const struct golden *g = &golden[i];
        struct mx_problem p = {.nx = 1, .ny = g->ny, .nz = g->nz, .nt = g->nt, .h = (int32_t)g->h};
        struct mx_plan plan = {.by = g->by, .bz = g->bz, .bt = g->bt, .slab = 4};
        struct mx_layout layout = {.row_pitch_bytes = 1};
        for (int a = 0; a < 4; a++) {
            const struct mx_algorithm *algorithm = mx_algorithm_find(names[a]);
            struct mx_traffic t;
            struct mx_shape shape;
            algorithm->traffic(&p, &plan, &layout, &t);
            algorithm->shape(&p, &plan, &shape);
            cr_assert_eq(t.read_bytes, g->moved[a][0], "%s %zu", names[a], i);
            cr_assert_eq(t.write_bytes, g->moved[a][1], "%s %zu", names[a], i);
            if (a == 3) continue;
            cr_assert_eq(shape.rows, g->rows);
            cr_assert_eq(shape.slots[0], g->slots);
            cr_assert_eq(shape.slots[1], g->slots);
        }
    }
}

/* The slides' run: 110.25 GiB read, 64.00 GiB written, 64.19 GiB of initial grids, to two decimals. */
Test(schedule, slides) {
    struct mx_problem p = {.nx = 2046, .ny = 2048, .nz = 1024, .nt = 256, .h = 1};
    struct mx_plan plan = {.by = 512, .bz = 512, .bt = 128, .slab = 4};
    int64_t pitch = 2048 * 8, plane = 2050 * pitch;
    struct mx_layout layout = {.rows = 2050,
                               .planes = 1026,
                               .row_bytes = pitch,
                               .row_pitch_bytes = pitch,
                               .plane_pitch_bytes = plane,
                               .buffer_bytes = 1026 * plane};
    struct mx_traffic t;
    mx_algorithm_find("redundant")->traffic(&p, &plan, &layout, &t);
    double gib = 1024.0 * 1024 * 1024;
    cr_assert(fabs((double)t.read_bytes / gib - 110.25) < 0.005);
    cr_assert(fabs((double)t.write_bytes / gib - 64.00) < 0.005);
    cr_assert(fabs((double)t.init_write_bytes / gib - 64.19) < 0.005);
}

/* stream without strips: each sweep reads and writes one Buffer, whole planes; 31.5 GiB of DRAM at bt = 500
 * for 2048^3, to 2 %. */
Test(schedule, stream_bytes) {
    struct mx_problem p = {.nx = 2048, .ny = 2048, .nz = 2048, .nt = 1500, .h = 1};
    struct mx_plan plan = {.by = 2048, .bz = 2048, .bt = 500, .slab = 4, .ahead = 2};
    int64_t pitch = 2050 * 8, plane = 2050 * pitch;
    struct mx_layout layout = {.rows = 2050,
                               .planes = 2050,
                               .row_bytes = pitch,
                               .row_pitch_bytes = pitch,
                               .plane_pitch_bytes = plane,
                               .buffer_bytes = 2050 * plane};
    const struct mx_algorithm *stream = mx_algorithm_find("stream");
    struct mx_traffic t;
    struct mx_shape shape;
    stream->traffic(&p, &plan, &layout, &t);
    stream->shape(&p, &plan, &shape);
    cr_assert_eq(t.read_bytes, 3 * layout.buffer_bytes);
    cr_assert_eq(t.write_bytes, 3 * layout.buffer_bytes);
    cr_assert_eq(t.init_write_bytes, layout.buffer_bytes);
    cr_assert(!stream->cuts_y(&p, &plan));
    cr_assert_eq(shape.slots[0], 500 + 4 + 8 + 8);
    cr_assert_eq(shape.slots[1], 500 + 4 + 4 + 1);
    double gib = (double)((shape.slots[0] + shape.slots[1]) * plane) / (1024.0 * 1024 * 1024);
    cr_assert(fabs(gib / 31.5 - 1) < 0.03);
}

/* Every name and alias finds its algorithm; what cannot be is refused with a sentence. */
Test(schedule, names_and_refusals) {
    cr_assert_null(mx_algorithm_find("nothing"));
    cr_assert_null(mx_algorithm_find(""));
    cr_assert_null(mx_algorithm_find("aio"));
    cr_assert_str_eq(mx_algorithm_find("3y")->name, "skewed-y");
    cr_assert_str_eq(mx_algorithm_find("mmap5y")->name, "skewed-min");
    cr_assert_str_eq(mx_algorithm_find("algorithm-1")->name, "redundant");
    for (int i = 0; mx_algorithms[i] != NULL; i++) {
        const struct mx_algorithm *a = mx_algorithms[i];
        struct mx_problem good = {.nx = 1, .ny = 9, .nz = 9, .nt = 4, .h = 1}, p;
        struct mx_plan plan = {.by = 3, .bz = 3, .bt = 2, .slab = 1}, q;
        mx_why why;
        cr_assert_eq(mx_algorithm_find(a->name), a);
        cr_assert_eq(a->check(&good, &plan, &why), 0);
        p = good, p.h = 9;
        cr_assert_eq(a->check(&p, &plan, &why), -EINVAL);
        p = good, p.nz = 0;
        cr_assert_eq(a->check(&p, &plan, &why), -EINVAL);
        p = good, p.ny = (int64_t)1 << 40;
        cr_assert_eq(a->check(&p, &plan, &why), -EINVAL);
        q = plan, q.bt = 0;
        cr_assert_eq(a->check(&good, &q, &why), -EINVAL);
        cr_assert(strstr(why.text, "bt is 0") != NULL);
        q = plan, q.by = 0;
        if (a->uses_blocks) cr_assert_eq(a->check(&good, &q, &why), -EINVAL);
    }
}

/* bt counts levels; in place is for what keeps both arrays, and not for overlapped blocks. */
Test(schedule_of_systems, refusals) {
    struct mx_system system = {.h = 1, .n_field = {1, 1}};
    for (int i = 0; mx_algorithms[i] != NULL; i++) {
        const struct mx_algorithm *a = mx_algorithms[i];
        struct mx_problem p = {.nx = 1, .ny = 9, .nz = 9, .nt = 4, .h = 1, .system = &system};
        struct mx_plan odd = {.by = 3, .bz = 3, .bt = 3, .slab = 1};
        struct mx_plan in_place = {.by = 3, .bz = 3, .bt = 2, .slab = 1, .in_place = true};
        mx_why why;
        system.form = MX_LEAPFROG;
        const bool overlaps = strcmp(a->name, "redundant") == 0;
        cr_assert_eq(a->check(&p, &odd, &why), 0);
        cr_assert_eq(a->check(&p, &in_place, &why), overlaps ? -EINVAL : 0);
        system.form = MX_STAGGERED;
        cr_assert_eq(a->check(&p, &odd, &why), -EINVAL);
        cr_assert(strstr(why.text, "even bt, for example 4") != NULL, "%s", why.text);
        system.form = MX_JACOBI;
        cr_assert_eq(a->check(&p, &odd, &why), 0);
        cr_assert_eq(a->check(&p, &in_place, &why), -EINVAL);
    }
}

/* The overlapped blocks' sums and maxima in closed form == those by going through all blocks. */
Test(schedule, overlapped_sums) {
    seed_state = 7;
    for (int i = 0; i < 20000; i++) {
        int64_t h = between(1, 8), n = between(1, 60), levels = between(1, 12), level = between(1, levels);
        struct mx_cut c = mx_lap_cut(n, between(1, 70), h);
        int64_t spans = 0, windows = 0, most = 0;
        for (int64_t j = 0; j < c.count; j++) {
            int64_t span = mx_length(mx_lap_span(&c, j, levels));
            spans += span;
            most = mx_max(most, span);
            windows += mx_length(mx_lap_window(&c, j, level, levels));
        }
        cr_assert_eq(mx_lap_span_sum(&c, levels), spans);
        cr_assert_eq(mx_lap_window_sum(&c, level, levels), windows);
        cr_assert_eq(mx_lap_span_max(&c, levels), most);
    }
}
