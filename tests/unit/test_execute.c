/* SPDX-License-Identifier: BSD-3-Clause */
/* The executor on real devices: for random awkward problems every algorithm on every backend that can carry
 * it gives, to the bit, the grid of the plain loop, and moves exactly the bytes that CalcTrans predicts.
 * Blocks start as NaN: whatever is used without having been loaded would show. */
#include "execute_setting.h"

/* Backends without a swap file or privileges; swap is anonymous memory like dram and has its own end-to-end
 * test. */
static const char *random_backend(const struct mx_algorithm *a) {
    static const char *const blocks[] = {"uring", "aio", "mmap", "uring", "aio", "dram"};
    static const char *const direct[] = {"mmap", "dram"};
    return a->needs_mapped ? direct[pick(0, 1)] : blocks[pick(0, 5)];
}

/* Of a few kinds, some that the algorithm can do with; more often in x alone, so that there are tiles of
 * which nothing else is asked. */
static void random_sides(const struct mx_algorithm *algorithm, struct setting *s) {
    const bool x_alone = pick(0, 1);
    for (int i = 0; i < 40; i++) {
        test_sides(&s->problem, x_alone || i > 30 ? 1 : 3, pick, &s->problem.sides);
        if (algorithm->check(&s->problem, &s->plan, NULL) == 0) return;
        if (i % 2 == 1) random_plan(s);
    }
}

enum asked { NOTHING, POINTS, SIDES };

static void run_many(const struct mx_algorithm *algorithm, int settings, uint64_t seed, enum asked asked) {
    char dir[256];
    int ran = 0;
    settings = mx_cases(settings, 2);
    make_dir(dir, sizeof dir);
    state = seed;
    for (int i = 0; i < settings; i++) {
        struct setting s = {.algorithm = algorithm, .backend = random_backend(algorithm)};
        if (strcmp(s.backend, "mmap") == 0) s.advice = (enum mx_advice)pick(0, 5);
        random_problem(&s.problem);
        random_plan(&s);
        s.integrity = i % 3 == 0 && !algorithm->needs_mapped;
        struct random_points rp;
        if (asked == SIDES) random_sides(algorithm, &s);
        if (asked == POINTS) make_points(s.points = &rp, &s.problem, pick);
        ran += run(&s, dir, NULL, NULL).ran;
        if (asked == POINTS) free_points(&rp);
    }
    rmdir(dir);
    cr_expect(ran > settings / 8, "%s: only %d of %d settings were allowed", algorithm->name, ran, settings);
}

Test(execute, every_algorithm_is_bit_identical_and_moves_what_was_predicted) {
    for (int i = 0; mx_algorithms[i] != NULL; i++)
        run_many(mx_algorithms[i], 60, 1000 + (uint64_t)i, NOTHING);
}

/* Sources are added and probes recorded, also by tiles that are else computed in place. */
Test(execute, points_are_those_of_the_plain_loop) {
    for (int i = 0; mx_algorithms[i] != NULL; i++) run_many(mx_algorithms[i], 30, 2000 + (uint64_t)i, POINTS);
}

/* Frames are made and ghost layers read, also by tiles that are computed in place. */
Test(execute, sides_are_those_of_the_plain_loop) {
    for (int i = 0; mx_algorithms[i] != NULL; i++) run_many(mx_algorithms[i], 40, 3000 + (uint64_t)i, SIDES);
}

/* Strips whose seams are in a side file, with sizes that divide nothing: run() compares grid, bytes and DRAM.
 * The seams of DRAM and file are the same; only their bytes are moved besides. */
static const struct {
    const char *stencil;
    int64_t ny, nz, nt, by, bt, slab, ahead;
} side_files[] = {
    {"star7", 37, 41, 13, 5, 4, 3, 2},  {"star7", 11, 7, 9, 1, 9, 1, 1},   {"box27", 2, 40, 11, 1, 3, 9, 4},
    {"star7", 23, 31, 12, 22, 5, 2, 2}, {"star13", 29, 23, 7, 7, 3, 5, 3}, {"star13", 19, 13, 11, 1, 4, 3, 1},
    {"star25", 31, 37, 5, 13, 2, 4, 1}, {"star25", 17, 3, 6, 1, 5, 2, 2},
};

struct setting side_file_setting(size_t i, const char *backend, const char *engine) {
    struct setting s = {.algorithm = mx_algorithm_find("stream"), .backend = backend};
    const struct mx_stencil *st = mx_stencil_find(side_files[i].stencil);
    s.problem = (struct mx_problem){.nx = 13,
                                    .ny = side_files[i].ny,
                                    .nz = side_files[i].nz,
                                    .nt = side_files[i].nt,
                                    .h = st->h,
                                    .dtype = MX_F64};
    strcpy(s.problem.stencil, st->name);
    memcpy(s.problem.coef, st->coef, sizeof s.problem.coef);
    s.plan = (struct mx_plan){.algorithm = "stream",
                              .tuner = "manual",
                              .by = side_files[i].by,
                              .bz = side_files[i].nz,
                              .bt = side_files[i].bt,
                              .slab = side_files[i].slab,
                              .ahead = side_files[i].ahead,
                              .seams = MX_SEAMS_IN_FILE,
                              .threads = 2};
    strcpy(s.plan.engine, engine);
    return s;
}

Test(execute, seams_in_a_side_file) {
    static const char *const backends[] = {"uring", "aio", "mmap", "dram", "fault:aio"};
    static const char *const engines[] = {"tiled", "iblock"};
    char dir[256];
    make_dir(dir, sizeof dir);
    const int n = 2 * sizeof side_files / sizeof side_files[0],
              n_backends = sizeof backends / sizeof backends[0];
    for (int k = 0; k < n * n_backends; k += mx_case_step()) {
        const int i = k / n_backends;
        struct setting s = side_file_setting((size_t)i / 2, backends[k % n_backends], engines[i % 2]);
        struct mx_layout layout;
        struct mx_traffic filed, kept;
        cr_expect(run(&s, dir, NULL, NULL).ran);
        cr_assert(mx_layout_make(&s.problem, 512, true, NULL, &layout) == 0);
        s.algorithm->traffic(&s.problem, &s.plan, &layout, &filed);
        strcpy(s.plan.seams, MX_SEAMS_IN_DRAM);
        s.algorithm->traffic(&s.problem, &s.plan, &layout, &kept);
        cr_expect(filed.seam_read_bytes > 0 && filed.read_bytes == kept.read_bytes + kept.seam_read_bytes);
        cr_expect(filed.write_bytes == kept.write_bytes + kept.seam_write_bytes);
    }
    rmdir(dir);
}

/* Short transfers in random order, delays: the right grid. */
Test(execute, a_side_file_under_disorder) {
    char dir[256];
    make_dir(dir, sizeof dir);
    for (size_t i = 0; i < sizeof side_files / sizeof side_files[0]; i++) {
        struct setting s = side_file_setting(i, i % 2 ? "fault:aio" : "fault:uring", "tiled");
        s.fault = "seed=5,short=0.3,reorder=1,delay_us=300";
        s.integrity = i % 2 == 0;
        cr_expect(run(&s, dir, NULL, NULL).err == 0);
    }
    rmdir(dir);
}
