/* SPDX-License-Identifier: BSD-3-Clause */
/* The reduced searches against exhaustive ones. */
#include "effort.h"
#include "tune_tools.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

struct seconds_and_bytes {
    double seconds, bytes;
    uint64_t dram;
};

static struct seconds_and_bytes key_of(const struct mx_tune_result *r, bool by_seconds) {
    double s = r->seconds.io_s > r->seconds.compute_s ? r->seconds.io_s : r->seconds.compute_s;
    return (struct seconds_and_bytes){by_seconds ? s : 0, moved(r), r->dram_bytes};
}

/* For random settings: optimum of the reduced search = optimum over every combination, in (cost, DRAM); one
 * finds a plan exactly when the other does. */
static void compare_searches(const char *algorithm, const char *engine, bool by_seconds, int n, int form,
                             int stages) {
    const bool tiled = strcmp(engine, "tiled") == 0;
    int none = 0, cut = 0, filed = 0;
    n = mx_cases(n, n > 1000 ? 3 : 1); /* fewer say nothing of how often a plan is cut */
    for (int i = 0; i < n; i++) {
        int32_t h = (int32_t)(const int[]){1, 1, 1, 2, 3}[pick(0, 4)];
        /* Long rows: some fill whole pages, which makes the tiled engine slower. */
        int64_t nx = tiled ? (const int64_t[]){14, 100, 510, 512 - 2 * h}[pick(0, 3)] : 14;
        struct mx_problem p = make_problem(nx, pick(8, 60), pick(8, 60), pick(1, 30), h, pick(0, 1) ? 8 : 4);
        struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 256 << 10};
        struct mx_system system;
        if (form != MX_JACOBI || stages > 0) make_system(&p, form, &system);
        system.stages = stages;
        double share = (double)pick(2, 110) / 100;
        uint64_t both = (uint64_t)(p.ny * p.nz * (nx + 2 * h) * 2) * (uint64_t)mx_dtype_bytes(p.dtype);
        struct mx_tune_request q = small_request(&p, &m, 1 + (uint64_t)(share * (double)both), pick(1, 8));
        struct mx_tune_result fast, full;
        q.algorithm = algorithm;
        q.engine = engine;
        q.manual.slab = pick(1, 6);
        q.manual.ahead = pick(1, 3);
        q.offset_align_bytes = pick(0, 1) ? 512 : 0;
        if (tiled) {
            if (pick(0, 1)) q.manual.slab = 0; /* the engine's own */
            if (pick(0, 1)) q.manual.iz = 0;   /* bz a multiple of the slab */
            if (pick(0, 1))
                q.style = MX_TUNE_MAPPED, q.dram_bytes = q.dram_bytes * 4 / 3 + MX_TUNE_CACHE_BYTES;
        }
        if (q.offset_align_bytes > 0) q.dram_bytes += (uint64_t)(share * (double)both) * 3;
        q.rates = (struct mx_rates){.read_bytes_per_s = (double)pick(1, 40) * 1e8,
                                    .write_bytes_per_s = (double)pick(1, 40) * 1e8,
                                    .iblock_updates_per_s = (double)pick(1, 40) * 1e8,
                                    .slab_updates_per_s = (double)pick(1, 40) * 1e8,
                                    .tiled_updates_per_s = (double)pick(1, 40) * 1e8};
        int a = mx_tune(&q, NULL, &fast);
        q.exhaustive = true;
        int b = mx_tune(&q, NULL, &full);
        cr_assert(a == b, "%s %d: reduced %d, exhaustive %d", algorithm, i, a, b);
        none += a != 0;
        if (a != 0) continue;
        struct seconds_and_bytes x = key_of(&fast, by_seconds), y = key_of(&full, by_seconds);
        char line[2][MX_PLAN_LINE_BYTES];
        cr_assert(x.seconds == y.seconds && x.bytes == y.bytes && x.dram == y.dram,
                  "%s %d (ny=%lld nz=%lld nt=%lld h=%d room=%llu step=%lld): %s moves %.0f in %llu, %s %.0f "
                  "in %llu",
                  algorithm, i, (long long)p.ny, (long long)p.nz, (long long)p.nt, h,
                  (unsigned long long)fast.room_bytes, (long long)fast.z_step,
                  mx_plan_print(&fast.plan, line[0], sizeof line[0]), x.bytes, (unsigned long long)x.dram,
                  mx_plan_print(&full.plan, line[1], sizeof line[1]), y.bytes, (unsigned long long)y.dram);
        cr_assert(fast.dram_bytes < fast.room_bytes);
        cut += fast.plan.by < p.ny || fast.plan.bz < p.nz;
        cr_assert(strcmp(fast.plan.seams, full.plan.seams) == 0 &&
                  fast.seconds.total_s == full.seconds.total_s);
        filed += strcmp(fast.plan.seams, MX_SEAMS_IN_FILE) == 0;
    }
    cr_expect(none < n / 2 && (cut > n / 8 || strcmp(algorithm, "stream") == 0),
              "%s: %d without a plan, %d with cuts", algorithm, none, cut);
    cr_expect((filed > n / 20) == (strcmp(algorithm, "stream") == 0), "%s: %d with a side file", algorithm,
              filed);
}

Test(tune, reduced_equals_exhaustive_skewed) {
    compare_searches("skewed", "iblock", false, 1500, MX_JACOBI, 0);
}
Test(tune, reduced_equals_exhaustive_skewed_y) {
    compare_searches("skewed-y", "iblock", false, 1500, MX_JACOBI, 0);
}
Test(tune, reduced_equals_exhaustive_skewed_min) {
    compare_searches("skewed-min", "iblock", false, 1500, MX_JACOBI, 0);
}
Test(tune, reduced_equals_exhaustive_redundant) {
    compare_searches("redundant", "iblock", true, 1500, MX_JACOBI, 0);
}
Test(tune, reduced_equals_exhaustive_redundant_tiled) {
    compare_searches("redundant", "tiled", true, 4000, MX_JACOBI, 0);
}
Test(tune, reduced_equals_exhaustive_stream) {
    compare_searches("stream", "iblock", false, 1500, MX_JACOBI, 0);
}
Test(tune, reduced_equals_exhaustive_leapfrog) {
    compare_searches("skewed-min", "iblock", false, 300, MX_LEAPFROG, 0);
    compare_searches("redundant", "iblock", true, 300, MX_LEAPFROG, 0);
    compare_searches("stream", "iblock", false, 300, MX_LEAPFROG, 0);
}
Test(tune, reduced_equals_exhaustive_staggered) {
    compare_searches("skewed-y", "iblock", false, 300, MX_STAGGERED, 0);
    compare_searches("redundant", "iblock", true, 300, MX_STAGGERED, 0);
    compare_searches("stream", "iblock", false, 300, MX_STAGGERED, 0);
}
Test(tune, reduced_equals_exhaustive_stages) {
    compare_searches("skewed-y", "iblock", false, 300, MX_JACOBI, 3);
    compare_searches("skewed-min", "iblock", false, 300, MX_JACOBI, 2);
    compare_searches("redundant", "iblock", true, 300, MX_JACOBI, 4);
    compare_searches("stream", "iblock", false, 300, MX_JACOBI, 3);
}

/* Cases that a search once missed: few cells, so that one Block more or less decides. */
static void compare_one(int64_t ny, int64_t nz, int64_t nt, int h, int bytes, uint64_t room, int64_t z_step,
                        int64_t slab, int stages) {
    struct mx_problem p = make_problem(14, ny, nz, nt, h, bytes);
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 256 << 10};
    struct mx_system system;
    struct mx_tune_result fast, full;
    mx_why why = {""};
    if (stages > 0) make_system(&p, MX_JACOBI, &system), system.stages = stages;
    struct mx_tune_request q = small_request(&p, &m, room, z_step);
    q.algorithm = "stream";
    q.manual.slab = slab;
    q.manual.ahead = 3;
    cr_assert_eq(mx_tune(&q, &why, &fast), 0, "%s", why.text);
    q.exhaustive = true;
    cr_assert_eq(mx_tune(&q, &why, &full), 0, "%s", why.text);
    cr_expect(moved(&fast) == moved(&full), "bt %lld by %lld moves %.0f, bt %lld by %lld %.0f",
              (long long)fast.plan.bt, (long long)fast.plan.by, moved(&fast), (long long)full.plan.bt,
              (long long)full.plan.by, moved(&full));
}

/* 19 steps: sweeps of 7, 7 and 5 levels leave all results in one array, those of 5, 5, 5 and 4 do not. */
Test(tune, sweeps_that_end_in_one_array) { compare_one(11, 59, 19, 1, 4, 58982, 2, 6, 0); }

/* Steps of three stages and radius 3: strips shorter than 9 rows. */
Test(tune, strips_shorter_than_the_skew) {
    compare_one(30, 18, 8, 3, 8, 172801, 1, 2, 3);
    compare_one(30, 18, 8, 3, 4, 172801, 1, 2, 3);
}
