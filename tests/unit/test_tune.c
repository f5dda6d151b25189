/* SPDX-License-Identifier: BSD-3-Clause */
/* Tuners against the papers' published values, the executable model and exhaustive search. */
#include "effort.h"
#include "execute/execute.h"
#include "grid/grid.h"
#include "schedule/schedule.h"
#include "tune/search.h"
#include "tune/tune.h"

#include <memext/backend.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIB = 1 << 20 };
static const uint64_t GIB = 1ull << 30;

/* ------------------------------------------------------------------ tools */

static json_t *load(const char *name) {
    char path[128];
    json_error_t error;
    snprintf(path, sizeof path, "tests/data/%s", name);
    json_t *root = json_load_file(path, 0, &error);
    cr_assert(root != NULL, "%s: %s", path, error.text);
    return root;
}

static int64_t get(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_integer(value), "no number %s", key);
    return json_integer_value(value);
}

static int64_t cell(const json_t *row, size_t i) { return json_integer_value(json_array_get(row, i)); }

static struct mx_problem make_problem(int64_t nx, int64_t ny, int64_t nz, int64_t nt, int32_t h,
                                      int64_t element) {
    return (struct mx_problem){.nx = nx,
                               .ny = ny,
                               .nz = nz,
                               .nt = nt,
                               .h = h,
                               .dtype = element == 8 ? MX_F64 : MX_F32,
                               .stencil = "star7",
                               .coef = {0.4, 0.1}};
}

/* Room for Blocks of exactly `room` bytes, bz a multiple of z_step. */
static struct mx_tune_request small_request(const struct mx_problem *p, const struct mx_machine *m,
                                            uint64_t room, int64_t z_step) {
    return (struct mx_tune_request){.problem = p,
                                    .machine = m,
                                    .dram_bytes = room + MX_TUNE_OVERHEAD_BYTES,
                                    .engine = "iblock",
                                    .manual = {.iz = z_step}};
}

static uint32_t seed = 12345;
static int64_t pick(int64_t low, int64_t high) { /* [low, high] */
    seed = seed * 1664525u + 1013904223u;
    return low + (int64_t)((uint64_t)(seed >> 4) % (uint64_t)(high - low + 1));
}

static double moved(const struct mx_tune_result *r) {
    return (double)r->traffic.read_bytes + (double)r->traffic.write_bytes;
}

/* ------------------------------------------------------------------ the papers */

/* For each row of Table II and each algorithm a of {aio3y, aio5y}: (by, bz, bt, iy, iz) = published. */
static void check_table2(const json_t *table, const char *algorithm, bool exhaustive) {
    double visible = (double)get(table, "visible_bytes_of_64_GiB") / 64;
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(table, "rows"), i, row) {
        struct mx_machine m = {.cores = (int32_t)get(row, "cores"),
                               .sockets = (int32_t)get(row, "sockets"),
                               .l2_bytes = (uint64_t)get(row, "l2_bytes"),
                               .l3_bytes = (uint64_t)get(row, "l3_mib") * MIB};
        struct mx_problem p =
            make_problem(get(row, "nx"), get(row, "ny"), get(row, "nz"), get(row, "nt"), 1, 8);
        struct mx_tune_request q = {.problem = &p,
                                    .machine = &m,
                                    .dram_bytes = (uint64_t)((double)get(row, "dram_gib") * visible),
                                    .reserve_paper = true,
                                    .algorithm = algorithm,
                                    .exhaustive = exhaustive};
        struct mx_tune_result r;
        mx_why why;
        int err = mx_tune(&q, &why, &r);
        cr_assert(err == 0, "%s", why.text);
        const struct mx_plan *x = &r.plan;
        cr_expect(x->by == get(row, "by") && x->bz == get(row, "bz") && x->bt == get(row, "bt") &&
                      x->iy == get(row, "iy") && x->iz == get(row, "iz"),
                  "row %zu %s: got by=%lld bz=%lld bt=%lld iy=%lld iz=%lld", i, algorithm, (long long)x->by,
                  (long long)x->bz, (long long)x->bt, (long long)x->iy, (long long)x->iz);
    }
    cr_expect(i == 6);
}

Test(tune, table2) {
    json_t *table = load("table2.json");
    check_table2(table, "skewed-y", false);
    check_table2(table, "skewed-min", false);
    check_table2(table, "aio3y", false);
    json_decref(table);
}

/* Every number of the log. */
Test(tune, naive_log) {
    json_t *log = load("naive_log.json"), *first = json_object_get(log, "first"),
           *final = json_object_get(log, "final");
    json_t *small = json_array_get(json_object_get(log, "iblock"), 0);
    json_t *large = json_array_get(json_object_get(log, "iblock"), 1);
    struct mx_machine m = {.cores = (int32_t)get(log, "core"),
                           .sockets = (int32_t)get(log, "socket"),
                           .l1_bytes = (uint64_t)get(log, "L1"),
                           .l2_bytes = (uint64_t)get(log, "L2"),
                           .l3_bytes = (uint64_t)get(log, "L3")};
    struct mx_problem p = make_problem(get(log, "nx"), get(log, "ny"), get(log, "nz"), get(log, "nt"), 1, 8);
    struct mx_layout layout;
    struct mx_naive_log n;
    uint64_t total = (uint64_t)get(log, "total"), reserve = mx_machine_reserve_paper(&m);
    cr_expect(reserve == (uint64_t)get(log, "reserve_size"));
    cr_expect(get(log, "reserve_size") ==
              get(log, "reserve_base_size") + m.cores * get(log, "reserve_core_size"));
    cr_assert(mx_layout_make(&p, 0, true, NULL, &layout) == 0);
    cr_expect(layout.buffer_bytes == get(log, "buf_size"));
    cr_expect(2 * layout.buffer_bytes == get(log, "buf_0_1_size"));
    cr_assert(mx_naive_tune(&p, &m, total, reserve, NULL, &n) == 0);
    cr_expect(n.usable_bytes == get(log, "usable_size"));
    cr_expect(n.b_ym == get(log, "b_ym"));
    cr_expect(n.by == get(first, "by") && n.bz == get(first, "bz"));
    cr_expect(n.block_bytes == get(first, "block_size") && 2 * n.block_bytes == get(first, "block_0_1_size"));
    cr_expect(n.remain_bytes == get(first, "remain_size"));
    cr_expect(n.max_bt == get(log, "max_bt"));
    cr_expect(n.iterations == get(log, "update_ite"));
    cr_expect(n.bt == get(log, "bt"));
    cr_expect(n.by == get(final, "by") && n.bz == get(final, "bz"));
    cr_expect(n.final_rows == get(final, "block_rows") && n.final_planes == get(final, "block_planes"));
    cr_expect(n.final_block_bytes == get(final, "block_size"));
    cr_expect(2 * n.final_block_bytes == get(final, "block_0_1_size"));
    cr_expect(n.final_remain_bytes == get(final, "remain_size"));
    cr_expect(n.cache_usable_bytes == get(log, "usable_cache_size"));
    cr_expect(n.first_iz == get(small, "iz") && n.first_iz_bytes == get(small, "bytes"));
    cr_expect(n.iz == get(large, "iz") && n.iz_bytes == get(large, "bytes"));
    cr_expect(n.cache_left_bytes == get(log, "remain_cache_size"));
    cr_expect(n.iblock_bytes == get(log, "iblock_of_a_core_bytes"));

    /* The tuner's plan for algorithm-1 is the log's. */
    struct mx_tune_request q = {.problem = &p,
                                .machine = &m,
                                .dram_bytes = total,
                                .reserve_paper = true,
                                .algorithm = "redundant",
                                .tuner = "naive"};
    struct mx_tune_result r;
    mx_why why;
    int err = mx_tune(&q, &why, &r);
    cr_assert(err == 0, "%s", why.text);
    cr_expect(r.plan.by == n.by && r.plan.bz == n.bz && r.plan.bt == n.bt && r.plan.iy == 1 &&
              r.plan.iz == n.iz);
    cr_expect(r.dram_bytes == 2 * (uint64_t)n.final_block_bytes);
    json_decref(log);
}

/* ------------------------------------------------------------------ the executable model */

static struct mx_traffic traffic_of(const char *algorithm, const struct mx_problem *p,
                                    const struct mx_plan *plan, struct mx_shape *shape) {
    const struct mx_algorithm *a = mx_algorithm_find(algorithm);
    struct mx_layout layout;
    struct mx_traffic t;
    cr_assert(mx_layout_make(p, 0, true, NULL, &layout) == 0);
    cr_assert(a->check(p, plan, NULL) == 0);
    a->shape(p, plan, shape);
    a->traffic(p, plan, &layout, &t);
    return t;
}

/* CalcTrans and Bsz_max = the model's, to the byte. */
Test(tune, calctrans_equals_model) {
    json_t *model = load("calctrans_model.json"), *row;
    size_t i;
    json_array_foreach(json_object_get(model, "traffic"), i, row) {
        struct mx_problem p = make_problem(cell(row, 0), cell(row, 1), cell(row, 2), cell(row, 3),
                                           (int32_t)cell(row, 7), cell(row, 8));
        struct mx_plan plan = {.by = cell(row, 4), .bz = cell(row, 5), .bt = cell(row, 6), .slab = 4};
        struct mx_shape s;
        struct mx_traffic y = traffic_of("skewed-y", &p, &plan, &s);
        struct mx_traffic min = traffic_of("skewed-min", &p, &plan, &s);
        cr_expect(y.read_bytes == cell(row, 9) && y.write_bytes == cell(row, 10), "row %zu skewed-y", i);
        cr_expect(min.read_bytes == cell(row, 11) && min.write_bytes == cell(row, 12), "row %zu skewed-min",
                  i);
        if (plan.bt <= p.nt)
            cr_expect((p.nx + 2 * p.h) * s.rows * s.slots[0] == cell(row, 13), "row %zu Bsz_max", i);
    }
    cr_expect(i == 400);
    json_array_foreach(json_object_get(model, "lapped"), i, row) {
        struct mx_problem p = make_problem(cell(row, 0), cell(row, 1), cell(row, 2), cell(row, 3),
                                           (int32_t)cell(row, 7), cell(row, 8));
        struct mx_plan plan = {.by = cell(row, 4), .bz = cell(row, 5), .bt = cell(row, 6), .slab = 4};
        struct mx_shape s;
        struct mx_traffic t = traffic_of("redundant", &p, &plan, &s);
        cr_expect(t.read_bytes == cell(row, 9) && t.write_bytes == cell(row, 10), "row %zu redundant", i);
    }
    cr_expect(i == 400);
    json_decref(model);
}

/* Least bytes and Bsz_max of blk = those of the model's tune_fast. */
Test(tune, blk_equals_model) {
    json_t *model = load("calctrans_model.json"), *row;
    struct mx_machine m = {.cores = 1, .sockets = 1, .l2_bytes = 256 << 10};
    size_t i;
    json_array_foreach(json_object_get(model, "tunes"), i, row) {
        struct mx_problem p = make_problem(cell(row, 0), cell(row, 1), cell(row, 2), cell(row, 3), 1, 8);
        struct mx_tune_request q = small_request(&p, &m, (uint64_t)cell(row, 4), cell(row, 5));
        struct mx_tune_result r;
        q.algorithm = cell(row, 6) ? "skewed-min" : "skewed-y";
        cr_assert(mx_tune(&q, NULL, &r) == 0, "row %zu", i);
        cr_expect(moved(&r) == (double)cell(row, 7), "row %zu: %.0f bytes, model %lld", i, moved(&r),
                  (long long)cell(row, 7));
        cr_expect(r.dram_bytes == 2 * 8 * 16 * (uint64_t)cell(row, 8), "row %zu: DRAM", i);
    }
    cr_expect(i == 300);
    json_decref(model);
}

Test(tune, iblock_and_naive_equal_model) {
    json_t *model = load("calctrans_model.json"), *row;
    size_t i;
    json_array_foreach(json_object_get(model, "iblocks"), i, row) {
        struct mx_iblock b =
            mx_iblock_blk(cell(row, 0), cell(row, 3), cell(row, 1), (uint64_t)cell(row, 2), 0, 0);
        cr_expect(b.iy == cell(row, 4) && b.iz == cell(row, 5), "row %zu: iy=%lld iz=%lld", i,
                  (long long)b.iy, (long long)b.iz);
    }
    json_array_foreach(json_object_get(model, "naive"), i, row) {
        struct mx_problem p = make_problem(cell(row, 0), cell(row, 1), cell(row, 2), cell(row, 3), 1, 8);
        struct mx_machine m = {
            .cores = (int32_t)cell(row, 5), .sockets = (int32_t)cell(row, 6), .l3_bytes = 20 * MIB};
        struct mx_naive_log n;
        cr_assert(mx_naive_tune(&p, &m, (uint64_t)cell(row, 4), mx_machine_reserve_paper(&m), NULL, &n) == 0);
        cr_expect(n.usable_bytes == cell(row, 7) && n.b_ym == cell(row, 8) && n.by == cell(row, 9) &&
                      n.bz == cell(row, 10) && n.max_bt == cell(row, 11) && n.iterations == cell(row, 12) &&
                      n.bt == cell(row, 13) && n.final_remain_bytes == cell(row, 14) && n.iz == cell(row, 15),
                  "row %zu", i);
    }
    json_decref(model);
}

/* An iBlock is never larger than the grid: iy <= max_iy, iz <= max(max_iz, cores), iz a multiple of cores. */
Test(tune, iblock_stays_inside) {
    for (int i = 0; i < 2000; i++) {
        int64_t cores = pick(1, 32), max_iy = pick(1, 80), max_iz = pick(1, 500), nx = pick(1, 5000);
        struct mx_iblock b = mx_iblock_blk(nx, 8, cores, 256 << 10, max_iy, max_iz);
        cr_assert(b.iy >= 1 && b.iy <= max_iy && b.iz % cores == 0 && b.iz >= cores);
        cr_assert(b.iz <= mx_max(max_iz, cores));
    }
}

/* ------------------------------------------------------------------ exact search */

struct seconds_and_bytes {
    double seconds, bytes;
    uint64_t dram;
};

static struct seconds_and_bytes key_of(const struct mx_tune_result *r, bool by_seconds) {
    double s = r->seconds.io_s > r->seconds.compute_s ? r->seconds.io_s : r->seconds.compute_s;
    return (struct seconds_and_bytes){by_seconds ? s : 0, moved(r), r->dram_bytes};
}

/* A system of one field, and the problem as one of it. */
static void make_system(struct mx_problem *p, int form, struct mx_system *system) {
    *system = (struct mx_system){
        .name = "test", .form = form, .h = p->h, .n_field = {1, 1}, .identity = 0x1234567890abcdef};
    system->field[0][0] = system->field[1][0] = (struct mx_field_of){"u", p->dtype};
    p->system = system;
}

/* For random settings: optimum of the reduced search = optimum over every combination, in (cost, DRAM); one
 * finds a plan exactly when the other does. */
static void compare_searches(const char *algorithm, const char *engine, bool by_seconds, int n, int form) {
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
        if (form != MX_JACOBI) make_system(&p, form, &system);
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

Test(tune, reduced_equals_exhaustive_skewed) { compare_searches("skewed", "iblock", false, 1500, MX_JACOBI); }
Test(tune, reduced_equals_exhaustive_skewed_y) {
    compare_searches("skewed-y", "iblock", false, 1500, MX_JACOBI);
}
Test(tune, reduced_equals_exhaustive_skewed_min) {
    compare_searches("skewed-min", "iblock", false, 1500, MX_JACOBI);
}
Test(tune, reduced_equals_exhaustive_redundant) {
    compare_searches("redundant", "iblock", true, 1500, MX_JACOBI);
}
Test(tune, reduced_equals_exhaustive_redundant_tiled) {
    compare_searches("redundant", "tiled", true, 4000, MX_JACOBI);
}
Test(tune, reduced_equals_exhaustive_stream) { compare_searches("stream", "iblock", false, 1500, MX_JACOBI); }
Test(tune, reduced_equals_exhaustive_leapfrog) {
    compare_searches("skewed-min", "iblock", false, 300, MX_LEAPFROG);
    compare_searches("redundant", "iblock", true, 300, MX_LEAPFROG);
    compare_searches("stream", "iblock", false, 300, MX_LEAPFROG);
}
Test(tune, reduced_equals_exhaustive_staggered) {
    compare_searches("skewed-y", "iblock", false, 300, MX_STAGGERED);
    compare_searches("redundant", "iblock", true, 300, MX_STAGGERED);
    compare_searches("stream", "iblock", false, 300, MX_STAGGERED);
}

/* ------------------------------------------------------------------ premises and errors */

static void expect_words(const char *text, const char *const *words) {
    for (; *words != NULL; words++) cr_expect(strstr(text, *words) != NULL, "'%s' lacks '%s'", text, *words);
}
#define EXPECT_WORDS(text, ...) expect_words(text, (const char *const[]){__VA_ARGS__, NULL})

/* The smallest DRAM that an error names does work, and a MiB less does not. */
Test(tune, smallest_dram_is_smallest) {
    const char *const algorithms[] = {"skewed", "skewed-y", "skewed-min", "redundant", "stream", "direct"};
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(4094, 4096, 2048, 100, 1, 8);
    for (size_t k = 0; k < 2 * sizeof algorithms / sizeof algorithms[0]; k++) {
        size_t i = k / 2;
        struct mx_tune_request q = {.problem = &p,
                                    .machine = &m,
                                    .dram_bytes = 25 * MIB,
                                    .algorithm = algorithms[i],
                                    .engine = k % 2 == 0 ? "tiled" : "iblock"};
        struct mx_tune_result r;
        mx_why why = {""};
        if (strcmp(algorithms[i], "direct") == 0) q.style = MX_TUNE_RESIDENT;
        int err = mx_tune(&q, &why, &r);
        cr_assert(err == -ENOMEM, "%s: %d %s", algorithms[i], err, why.text);
        const char *at = strstr(why.text, "--dram ");
        cr_assert(at != NULL, "%s", why.text);
        uint64_t mib = strtoull(at + 7, NULL, 10);
        EXPECT_WORDS(why.text, algorithms[i], "smallest DRAM that works");
        q.dram_bytes = mib * MIB;
        err = mx_tune(&q, &why, &r);
        cr_expect(err == 0, "%s: %s", algorithms[i], why.text);
        q.dram_bytes = (mib - 1) * MIB;
        cr_expect(mx_tune(&q, &why, &r) == -ENOMEM, "%s fits in %llu MiB", algorithms[i],
                  (unsigned long long)mib - 1);
    }
}

Test(tune, errors_name_values) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(510, 512, 1024, 100, 1, 8);
    struct mx_tune_request base = {.problem = &p,
                                   .machine = &m,
                                   .dram_bytes = GIB,
                                   .algorithm = "skewed-min"},
                           q;
    struct mx_tune_result r;
    mx_why why;

    q = base, q.capacity_bytes = GIB;
    cr_expect(mx_tune(&q, &why, &r) == -ENOSPC);
    EXPECT_WORDS(why.text, "1.00 GiB", "two Buffers");
    q = base, q.algorithm = "direct";
    cr_expect(mx_tune(&q, &why, &r) == -ENOTSUP);
    EXPECT_WORDS(why.text, "direct", "mmap");
    q = base, q.algorithm = "nonsense";
    cr_expect(mx_tune(&q, &why, &r) == -EINVAL);
    EXPECT_WORDS(why.text, "nonsense", "stream");
    q = base, q.tuner = "magic";
    cr_expect(mx_tune(&q, &why, &r) == -EINVAL);
    EXPECT_WORDS(why.text, "magic", "naive");
    q = base, q.engine = "steam";
    cr_expect(mx_tune(&q, &why, &r) == -EINVAL);
    EXPECT_WORDS(why.text, "steam", "tiled");
    q = base, q.manual = (struct mx_plan){.by = 128, .bz = 128, .bt = 65};
    cr_expect(mx_tune(&q, &why, &r) == -EINVAL);
    EXPECT_WORDS(why.text, "bt = 65", "by = 128", "bt <= 64", "by >= 130");
    q = base, q.manual = (struct mx_plan){.by = 600, .bz = 128, .bt = 10};
    cr_expect(mx_tune(&q, &why, &r) == -EINVAL);
    EXPECT_WORDS(why.text, "by = 600", "ny = 512");
    q = base, q.manual = (struct mx_plan){.by = 512, .bz = 1024, .bt = 101};
    cr_expect(mx_tune(&q, &why, &r) == -EINVAL);
    EXPECT_WORDS(why.text, "bt = 101", "nt = 100");
    q = base, q.manual = (struct mx_plan){.by = 200, .bz = 400, .bt = 100};
    cr_expect(mx_tune(&q, &why, &r) == -ENOMEM);
    EXPECT_WORDS(why.text, "by = 200", "GiB", "rows", "bt <= ", "--dram");
    const char *at = strstr(why.text, "bt <= ");
    q.manual.bt = at != NULL ? strtoll(at + 6, NULL, 10) : 0;
    cr_expect(mx_tune(&q, &why, &r) == 0, "the bt that was named does not fit: %s", why.text);
    q.manual.bt++;
    cr_expect(mx_tune(&q, &why, &r) == -ENOMEM);
    q = base, q.tuner = "blk", q.manual = (struct mx_plan){.by = 64, .bz = 64, .bt = 4};
    cr_expect(mx_tune(&q, &why, &r) == -EINVAL);
    q = base, q.dram_bytes = 16 * MIB;
    cr_expect(mx_tune(&q, &why, &r) == -ENOMEM);
    EXPECT_WORDS(why.text, "16.00 MiB", "24.00 MiB", "--dram 25MiB");
    q = base, q.algorithm = NULL, q.style = MX_TUNE_RESIDENT;
    cr_expect(mx_tune(&q, &why, &r) == -ENOMEM);
    EXPECT_WORDS(why.text, "direct", "both Buffers", "--dram");
    p.nx = 0;
    cr_expect(mx_tune(&base, &why, &r) == -EINVAL);
}

/* ------------------------------------------------------------------ every tuner emits plans that hold */

/* For random problems, seams and tuners: the plan passes its algorithm's check, DRAM < room, the layout is
 * the one for the plan, and what is predicted is what the schedule says. blk moves at most what naive and
 * manual do. */
Test(tune, plans_hold) {
    const char *const tuners[] = {"blk", "naive", "manual"};
    const char *const algorithms[] = {"redundant", "skewed", "skewed-y", "skewed-min"};
    int planned = 0;
    for (int i = 0; i < 600; i++) {
        struct mx_machine m = {
            .cores = (int32_t)pick(1, 8), .sockets = 1, .l2_bytes = 256 << 10, .l3_bytes = 4 << 20};
        int32_t h = (int32_t)pick(1, 3);
        struct mx_problem p = make_problem(pick(1, 700), pick(1, 300), pick(1, 300), pick(0, 60), h, 8);
        struct mx_tune_request q = {.problem = &p,
                                    .machine = &m,
                                    .dram_bytes = MX_TUNE_OVERHEAD_BYTES + (uint64_t)pick(1, 64) * MIB,
                                    .offset_align_bytes = (uint32_t[]){0, 512, 4096}[pick(0, 2)],
                                    .algorithm = algorithms[pick(0, 3)]};
        double bytes[3] = {0};
        for (int t = 0; t < 3; t++) {
            struct mx_tune_result r;
            struct mx_traffic traffic;
            mx_why why;
            q.tuner = tuners[t];
            if (mx_tune(&q, &why, &r) != 0) continue;
            const struct mx_algorithm *a = mx_algorithm_find(r.plan.algorithm);
            planned++;
            cr_assert(a->check(&p, &r.plan, &why) == 0, "%s", why.text);
            a->traffic(&p, &r.plan, &r.layout, &traffic);
            cr_assert(traffic.read_bytes == r.traffic.read_bytes &&
                      traffic.write_bytes == r.traffic.write_bytes);
            cr_assert(r.dram_bytes < r.room_bytes && strcmp(r.plan.tuner, tuners[t]) == 0);
            cr_assert(r.plan.slab >= 1 && r.plan.ahead >= 1 && r.plan.threads >= 1 && r.plan.engine[0] != 0);
            cr_assert(q.offset_align_bytes == 0 || r.layout.row_pitch_bytes % q.offset_align_bytes == 0);
            bytes[t] = moved(&r);
        }
        for (int t = 1; t < 3 && strcmp(q.algorithm, "redundant") != 0; t++)
            cr_assert(bytes[t] == 0 || (bytes[0] > 0 && bytes[0] <= bytes[t]),
                      "%d %s: %s moves %.0f, blk %.0f (ny=%lld nz=%lld nt=%lld h=%d)", i, q.algorithm,
                      tuners[t], bytes[t], bytes[0], (long long)p.ny, (long long)p.nz, (long long)p.nt, h);
    }
    cr_expect(planned > 1200, "%d plans", planned);
}

/* The same for systems of all forms, with C in Buffers and in files: what the plan takes is what the schedule
 * and the executor say, C counted; bt is whole steps. */
Test(tune, plans_hold_for_systems) {
    const char *const tuners[] = {"blk", "naive", "manual"};
    const char *const algorithms[] = {"redundant", "skewed", "skewed-y", "skewed-min", "stream", NULL};
    int planned = 0, staggered = 0, filed = 0;
    for (int i = 0; i < 500; i++) {
        struct mx_machine m = {
            .cores = (int32_t)pick(1, 8), .sockets = 1, .l2_bytes = 256 << 10, .l3_bytes = 4 << 20};
        int32_t h = (int32_t)pick(1, 4);
        struct mx_problem p = make_problem(pick(1, 400), pick(1, 200), pick(1, 200), pick(0, 60), h, 8);
        struct mx_system system;
        struct mx_fixed_layout fixed[2] = {{0}};
        make_system(&p, i % 3, &system);
        system.n_fixed = (int32_t)pick(0, 2);
        system.hc = (int32_t)pick(0, h);
        for (int32_t k = 0; k < system.n_fixed; k++) {
            system.fixed[k].dtype = k == 0 ? MX_F32 : MX_U8;
            int64_t row = (p.nx + 2 * h) * mx_dtype_bytes(system.fixed[k].dtype);
            fixed[k] = (struct mx_fixed_layout){.row_bytes = row,
                                                .row_pitch_bytes = row,
                                                .plane_pitch_bytes = row * (p.ny + 2 * h),
                                                .bytes = 80 + row * (p.ny + 2 * h) * (p.nz + 2 * h),
                                                .offset_bytes = 80,
                                                .frame = h,
                                                .user_file = pick(0, 1),
                                                .align_bytes = 512};
        }
        const bool in_place = mx_reads_old(&p) && pick(0, 3) == 0;
        struct mx_tune_request q = {.problem = &p,
                                    .machine = &m,
                                    .fixed = fixed,
                                    .manual = {.in_place = in_place},
                                    .dram_bytes = MX_TUNE_OVERHEAD_BYTES + (uint64_t)pick(1, 64) * MIB,
                                    .offset_align_bytes = (uint32_t[]){512, 4096}[pick(0, 1)],
                                    .algorithm = algorithms[pick(0, 5)]};
        q.tuner = q.algorithm == NULL ? NULL : tuners[pick(0, 2)];
        struct mx_tune_result r, again;
        struct mx_traffic traffic;
        struct mx_shape shape;
        mx_why why;
        if (mx_tune(&q, &why, &r) != 0) continue;
        const struct mx_algorithm *a = mx_algorithm_find(r.plan.algorithm);
        planned++;
        staggered += system.form == MX_STAGGERED;
        filed += r.shape.seams_in_file;
        cr_assert(a->check(&p, &r.plan, &why) == 0, "%s", why.text);
        cr_assert(r.plan.bt % mx_levels_a_step(&p) == 0 && r.plan.in_place == in_place);
        a->traffic(&p, &r.plan, &r.layout, &traffic);
        a->shape(&p, &r.plan, &shape);
        cr_assert(memcmp(&traffic, &r.traffic, sizeof traffic) == 0);
        cr_assert((traffic.fixed_read_bytes > 0) == (system.n_fixed > 0 && p.nt > 0));
        cr_assert(r.dram_bytes < r.room_bytes);
        cr_assert_eq(r.dram_bytes, (uint64_t)mx_execute_block_bytes(&shape, &r.layout));
        uint64_t stored =
            (uint64_t)(mx_reads_old(&p) && !shape.in_place ? 4 : 2) * (uint64_t)r.layout.buffer_bytes;
        stored += (uint64_t)mx_execute_seam_bytes(&shape, &r.layout);
        struct mx_layout without = r.layout;
        memset(without.fixed, 0, sizeof without.fixed);
        uint64_t rings = r.dram_bytes - (uint64_t)mx_execute_block_bytes(&shape, &without), least = 0;
        for (int32_t k = 0; k < system.n_fixed; k++) {
            least += (uint64_t)(shape.fixed_slots * shape.rows * fixed[k].row_pitch_bytes);
            stored += fixed[k].user_file ? 0 : (uint64_t)fixed[k].bytes;
        }
        cr_assert(rings >= least && (rings > 0) == (system.n_fixed > 0));
        cr_assert_eq(mx_job_stored_bytes(&r.layout, &shape), stored);
        for (int32_t k = 0; k < system.n_fixed; k++)
            stored += fixed[k].user_file ? (uint64_t)fixed[k].bytes : 0;
        cr_assert_eq(mx_job_resident_bytes(&r.layout, &shape), stored);
        cr_assert(mx_tune_plan(&q, &r.plan, &why, &again) == 0, "%s", why.text);
        cr_assert(memcmp(&traffic, &again.traffic, sizeof traffic) == 0 && again.dram_bytes == r.dram_bytes);
        char *text = mx_tune_explain(&q, &r);
        cr_assert(text != NULL && strstr(text, "steps, test:") != NULL, "%s", text);
        free(text);
    }
    cr_expect(planned > 250 && staggered > 60 && filed > 0, "%d plans, %d staggered, %d with a side file",
              planned, staggered, filed);
}

/* On dram: the pair and C, files of the user too, are in the room; bt of engine iblock is a step. */
Test(tune, systems_resident) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20};
    struct mx_problem p = make_problem(62, 62, 62, 20, 1, 8);
    struct mx_fixed_layout fixed = {.row_bytes = 512,
                                    .row_pitch_bytes = 512,
                                    .plane_pitch_bytes = 512 * 64,
                                    .bytes = 512 * 64 * 64,
                                    .frame = 1,
                                    .user_file = true,
                                    .align_bytes = 1};
    struct mx_system system;
    struct mx_tune_result r;
    mx_why why;
    make_system(&p, MX_STAGGERED, &system);
    system.n_fixed = 1;
    struct mx_tune_request q = {.problem = &p,
                                .machine = &m,
                                .fixed = &fixed,
                                .engine = "iblock",
                                .style = MX_TUNE_RESIDENT,
                                .dram_bytes = 100 * MIB};
    cr_assert_eq(mx_tune(&q, &why, &r), 0, "%s", why.text);
    cr_expect_str_eq(r.plan.algorithm, "direct");
    cr_expect_eq(r.plan.bt, 2);
    cr_expect_eq(r.dram_bytes, 2 * (uint64_t)r.layout.buffer_bytes + (uint64_t)fixed.bytes);
    cr_expect_eq(r.traffic.init_write_bytes, 2 * r.layout.buffer_bytes);
    cr_expect_eq(r.traffic.updates, 62 * 62 * 62 * 20);
    q.dram_bytes = MX_TUNE_OVERHEAD_BYTES + 2 * (uint64_t)r.layout.buffer_bytes + MIB;
    cr_expect_eq(mx_tune(&q, &why, &r), -ENOMEM);
    EXPECT_WORDS(why.text, "C included");
}

/* Two pairs of Buffers, or one with in-place. */
Test(tune, pairs_in_place) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20};
    struct mx_problem p = make_problem(254, 254, 510, 20, 1, 8), jacobi = p;
    struct mx_system system;
    struct mx_tune_result r;
    mx_why why;
    make_system(&p, MX_LEAPFROG, &system);
    struct mx_tune_request q = {.problem = &p,
                                .machine = &m,
                                .dram_bytes = 200 * MIB,
                                .offset_align_bytes = 512,
                                .algorithm = "stream"},
                           two = q;
    cr_assert_eq(mx_tune(&q, &why, &r), 0);
    cr_assert(!r.shape.in_place && !r.plan.in_place);
    two.manual.in_place = true;
    q.capacity_bytes = two.capacity_bytes = 3 * (uint64_t)r.layout.buffer_bytes;
    cr_assert_eq(mx_tune(&q, &why, &r), -ENOSPC);
    EXPECT_WORDS(why.text, "four Buffers", "--in-place");
    cr_assert_eq(mx_tune(&two, &why, &r), 0, "%s", why.text);
    cr_assert(r.shape.in_place && r.plan.in_place);
    two.resumable = true;
    cr_assert_eq(mx_tune(&two, &why, &r), -ENOTSUP);
    two.resumable = false, two.algorithm = "redundant";
    cr_assert_eq(mx_tune(&two, &why, &r), -ENOTSUP);
    EXPECT_WORDS(why.text, "in-place", "stream");
    two.algorithm = NULL;
    cr_assert_eq(mx_tune(&two, &why, &r), 0, "%s", why.text);
    cr_assert(strcmp(r.plan.algorithm, "redundant") != 0 && r.shape.in_place);
    two.problem = &jacobi;
    cr_assert_eq(mx_tune(&two, &why, &r), -EINVAL);
    EXPECT_WORDS(why.text, "in-place", "leapfrog");
}

/* Rates of a kernel that was never measured follow from the bytes of a cell; given ones stay. */
Test(tune, rates_of_systems) {
    struct mx_problem p = make_problem(64, 64, 64, 1, 1, 8);
    struct mx_system system;
    struct mx_rates r = {.iblock_updates_per_s = 5e6};
    cr_expect(mx_rates_share(&p) == 1);
    make_system(&p, MX_JACOBI, &system);
    cr_expect(mx_rates_share(&p) == 1);
    make_system(&p, MX_LEAPFROG, &system);
    system.n_fixed = 1, system.fixed[0].dtype = MX_F64;
    cr_expect(mx_rates_share(&p) == 0.5);
    mx_rates_of_system(&r, &p, 4);
    mx_rates_complete(&r, 4);
    cr_expect(r.iblock_updates_per_s == 5e6);
    const double share = MX_DEFAULT_TILED_SHARE_OF_KERNELS;
    cr_expect_float_eq(r.tiled_updates_per_s, 2 * share * MX_DEFAULT_TILED_UPDATES_PER_S_AND_CORE, 1);
    make_system(&p, MX_STAGGERED, &system);
    cr_expect(mx_rates_share(&p) == 16.0 / 48);
}

/* With nothing named: the choice takes at most 2 % longer than any candidate; on dram it is direct; a plan
 * that is given back gives the same prediction. */
Test(tune, choice) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(510, 510, 1022, 64, 1, 8);
    struct mx_tune_request q = {
        .problem = &p, .machine = &m, .dram_bytes = 512 * MIB, .offset_align_bytes = 512};
    struct mx_tune_result r, again;
    mx_why why;
    int err = mx_tune(&q, &why, &r);
    cr_assert(err == 0, "%s", why.text);
    cr_expect(r.n_candidates == 5, "%d candidates", r.n_candidates);
    for (int i = 1; i < r.n_candidates; i++)
        if (r.candidates[i].fits) cr_expect(r.seconds.total_s <= 1.021 * r.candidates[i].seconds.total_s);
    cr_expect(strcmp(r.plan.algorithm, "stream") == 0, "%s", r.plan.algorithm);
    err = mx_tune_plan(&q, &r.plan, &why, &again);
    cr_assert(err == 0, "%s", why.text);
    cr_expect(memcmp(&r.plan, &again.plan, sizeof r.plan) == 0);
    cr_expect(memcmp(&r.traffic, &again.traffic, sizeof r.traffic) == 0);
    cr_expect(r.seconds.total_s == again.seconds.total_s && r.dram_bytes == again.dram_bytes);
    char *text = mx_tune_explain(&q, &r);
    cr_assert(text != NULL);
    EXPECT_WORDS(text, "stream", "skewed-min", "redundant", "fewest bytes", "plan ");
    free(text);
    q.dram_bytes = 6 * GIB, q.style = MX_TUNE_RESIDENT;
    err = mx_tune(&q, &why, &r);
    cr_assert(err == 0, "%s", why.text);
    cr_expect(strcmp(r.plan.algorithm, "direct") == 0);
    q.style = MX_TUNE_MAPPED;
    cr_assert(mx_tune(&q, &why, &r) == 0);
    cr_expect(strcmp(r.plan.algorithm, "direct") == 0, "both Buffers fit DRAM, but %s", r.plan.algorithm);
    q.dram_bytes = GIB;
    cr_assert(mx_tune(&q, &why, &r) == 0);
    cr_expect(strcmp(r.plan.algorithm, "direct") != 0);
    q.algorithm = "mmap1";
    cr_assert(mx_tune(&q, &why, &r) == 0);
    cr_expect(strcmp(r.plan.algorithm, "direct-skewed") == 0 && r.plan.bt >= 2 && r.shape.rows == 0);
}

/* Of iblock a little more than tiled has may be a cache's. */
Test(tune, engine_of_measured_rates) {
    static const struct {
        double iblock;
        const char *engine;
    } cases[] = {{1.9e9, "tiled"}, {2.4e9, "tiled"}, {2.6e9, "iblock"}};
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(510, 510, 1022, 64, 1, 8);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct mx_tune_request q = {
            .problem = &p, .machine = &m, .dram_bytes = 512 * MIB, .offset_align_bytes = 512};
        struct mx_tune_result r;
        mx_why why;
        q.rates = (struct mx_rates){.tiled_updates_per_s = 2e9, .iblock_updates_per_s = cases[i].iblock};
        const int err = mx_tune(&q, &why, &r);
        cr_assert(err == 0, "%s", why.text);
        cr_expect(strcmp(r.plan.engine, cases[i].engine) == 0, "iblock %g: %s", cases[i].iblock,
                  r.plan.engine);
    }
}

/* The same Block on a device that reads slowly: explicit transfers take read / rate, a mapping (read +
 * stored) / rate, since a page is read before it is stored to, save in the second Buffer the first time, and
 * cores copy and take faults besides; nothing is transferred where what the Blocks leave holds both Buffers.
 */
Test(tune, mapped_blocks_read_what_they_store) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(510, 510, 254, 64, 1, 8);
    struct mx_tune_request q = {
        .problem = &p,
        .machine = &m,
        .dram_bytes = 512 * MIB,
        .algorithm = "redundant",
        .manual = {.by = 128, .bz = 128, .bt = 32},
        .rates = {.read_bytes_per_s = 1e6, .write_bytes_per_s = 1e12, .mixed_bytes_per_s = 1e12}};
    struct mx_tune_result explicit, mapped;
    mx_why why = {""};
    cr_assert(mx_tune(&q, &why, &explicit) == 0, "%s", why.text);
    q.style = MX_TUNE_MAPPED, q.advised = true;
    cr_assert(mx_tune(&q, &why, &mapped) == 0, "%s", why.text);
    const double read = (double)mapped.traffic.read_bytes, written = (double)mapped.traffic.write_bytes;
    cr_assert(mapped.traffic.read_bytes == explicit.traffic.read_bytes && read > written && written > 0);
    cr_expect(explicit.seconds.io_s == read / 1e6);
    const double stored = written - (double)mapped.layout.buffer_bytes;
    cr_assert(stored > 0);
    cr_expect(mapped.seconds.io_s == (read + stored) / 1e6 && mapped.seconds.cores_s == 0);
    const double paged = mapped.seconds.io_s / 0.55; /* slower than explicit transfers */
    cr_expect_float_eq(mapped.seconds.io_s + mapped.seconds.stall_s, paged, 1e-6);
    /* The kernel's read-ahead, which nobody tells what is wanted, brings in the whole of each plane. */
    struct mx_tune_result other;
    q.advised = false;
    cr_assert(mx_tune(&q, &why, &other) == 0, "%s", why.text);
    cr_expect_float_eq(other.seconds.io_s + other.seconds.stall_s, paged * 512 / (128 + 2 * 32), 1e-6);
    q.anonymous = true; /* swap space is read in clusters, slowly */
    cr_assert(mx_tune(&q, &why, &other) == 0, "%s", why.text);
    cr_expect_float_eq(other.seconds.io_s + other.seconds.stall_s, paged * 0.55 / 0.18, 1e-6);
    q.anonymous = false;
    cr_expect(mapped.seconds.copy_s >
              explicit.seconds.copy_s + (read + written) / mapped.rates.copy_bytes_per_s);
    q.dram_bytes = 8 * GIB;
    cr_assert(mx_tune(&q, &why, &mapped) == 0, "%s", why.text);
    cr_expect(mapped.seconds.io_s == 0 && mapped.seconds.stall_s == 0 &&
              mapped.seconds.copy_s > explicit.seconds.copy_s);
}

/* Explicit transfers take more than their bytes: a request each for the rows of a Block in a plane; reading
 * and writing in turns as far as levels and two slabs are of a Block's planes, where Block follows Block,
 * less half of what is computed then; cores that the computation has not then. What decides is the longer of
 * both sums. */
Test(tune, transfers_stall) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(510, 510, 254, 64, 1, 8);
    struct mx_tune_request q = {.problem = &p,
                                .machine = &m,
                                .dram_bytes = 512 * MIB,
                                .algorithm = "redundant",
                                .manual = {.by = 128, .bz = 100, .bt = 16, .slab = 8},
                                .threads = 2,
                                .rates = {.read_bytes_per_s = 1e8,
                                          .write_bytes_per_s = 1e8,
                                          .mixed_bytes_per_s = 2e8,
                                          .request_s = 1e-3,
                                          .byte_core_s = 1e-9}};
    struct mx_tune_result r;
    mx_why why = {""};
    cr_assert(mx_tune(&q, &why, &r) == 0, "%s", why.text);
    const double bytes = (double)(r.traffic.read_bytes + r.traffic.write_bytes);
    const double span = (128 + 2 * 16) * (double)r.layout.row_pitch_bytes;
    const double planes = 100 + 2 * 16, between = 16 + 2 * 8;
    cr_assert(span < 1048576 && r.shape.slots[0] == (int64_t)planes && r.seconds.io_s > 0);
    const double turns = r.seconds.io_s - (r.seconds.compute_s + r.seconds.copy_s) / 2;
    cr_expect_float_eq(r.seconds.stall_s, turns * between / planes + bytes / span * 1e-3, 1e-6);
    cr_expect_float_eq(r.seconds.cores_s, bytes * 1e-9 / 2, 1e-9);
    cr_assert(r.seconds.io_s > r.seconds.compute_s + r.seconds.copy_s + r.seconds.cores_s);
    cr_expect_float_eq(r.seconds.total_s, r.seconds.io_s + r.seconds.stall_s + r.seconds.edge_s, 1e-9);
    q.rates.read_bytes_per_s = q.rates.write_bytes_per_s = q.rates.mixed_bytes_per_s = 1e12;
    q.rates.request_s = 1e-9;
    cr_assert(mx_tune(&q, &why, &r) == 0, "%s", why.text);
    cr_expect_float_eq(r.seconds.total_s,
                       r.seconds.compute_s + r.seconds.copy_s + r.seconds.cores_s + r.seconds.edge_s, 1e-9);
    /* A ring takes no turns; whole planes are moved a slab at a time, in requests of 1 MiB at most. */
    q.rates.request_s = 1e-3;
    q.algorithm = "stream", q.manual = (struct mx_plan){.by = 510, .bz = 254, .bt = 16, .slab = 8};
    cr_assert(mx_tune(&q, &why, &r) == 0, "%s", why.text);
    const double slab = 8 * (double)r.layout.plane_pitch_bytes;
    cr_assert(r.shape.whole_planes);
    cr_expect_float_eq(
        r.seconds.stall_s,
        (double)(r.traffic.read_bytes + r.traffic.write_bytes) / slab * ceil(slab / 1048576) * 1e-3, 1e-6);
}

/* Overlaps that are handed over beside a computation that goes on cost it more than between two of its steps.
 */
Test(tune, copies_beside_the_computation) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(510, 510, 254, 64, 1, 8);
    struct mx_tune_request q = {.problem = &p,
                                .machine = &m,
                                .dram_bytes = 512 * MIB,
                                .algorithm = "skewed-y",
                                .engine = "iblock",
                                .manual = {.by = 128, .bz = 100, .bt = 16},
                                .rates = {.copy_bytes_per_s = 1e9}};
    struct mx_tune_result between, beside;
    mx_why why = {""};
    cr_assert(mx_tune(&q, &why, &between) == 0, "%s", why.text);
    q.engine = "tiled";
    cr_assert(mx_tune(&q, &why, &beside) == 0, "%s", why.text);
    cr_assert(between.traffic.copy_bytes > 0 && beside.traffic.copy_bytes == between.traffic.copy_bytes);
    cr_expect_float_eq(between.seconds.copy_s, (double)between.traffic.copy_bytes / 1e9, 1e-9);
    cr_expect_float_eq(beside.seconds.copy_s, 3 * between.seconds.copy_s, 1e-9);
}

static struct mx_tune_result tuned(const struct mx_tune_request *q, const char *seams) {
    struct mx_tune_request asked = *q;
    struct mx_tune_result r;
    mx_why why = {""};
    strcpy(asked.manual.seams, seams);
    int err = mx_tune(&asked, &why, &r);
    cr_assert(err == 0, "%s", why.text);
    return r;
}

/* Planes so large that DRAM holds few: the seams of strips go to a side file, since that takes less time than
 * with all seams in DRAM; the bytes include them; the device must have room for them. With ample DRAM they
 * stay there. The plan is the same when it is given back. */
Test(tune, seams_in_a_side_file) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(4094, 8190, 2046, 200, 1, 8);
    struct mx_tune_request q = {.problem = &p,
                                .machine = &m,
                                .dram_bytes = 8 * GIB,
                                .algorithm = "stream",
                                .offset_align_bytes = 4096};
    struct mx_tune_result r = tuned(&q, ""), dram = tuned(&q, MX_SEAMS_IN_DRAM), again;
    struct mx_traffic filed, kept;
    mx_why why = {""};
    cr_expect(strcmp(r.plan.seams, MX_SEAMS_IN_FILE) == 0 && r.plan.by < p.ny && r.plan.bt > dram.plan.bt);
    cr_expect(r.seconds.total_s < 0.95 * dram.seconds.total_s && r.dram_bytes < r.room_bytes);
    cr_expect(strcmp(dram.plan.seams, MX_SEAMS_IN_FILE) != 0);
    struct mx_plan plan = r.plan;
    const struct mx_algorithm *stream = mx_algorithm_find("stream");
    stream->traffic(&p, &plan, &r.layout, &filed);
    strcpy(plan.seams, MX_SEAMS_IN_DRAM);
    stream->traffic(&p, &plan, &r.layout, &kept);
    cr_expect(filed.seam_read_bytes > 0 && filed.seam_read_bytes == kept.seam_read_bytes);
    cr_expect(filed.read_bytes == kept.read_bytes + kept.seam_read_bytes);
    cr_expect(filed.write_bytes == kept.write_bytes + kept.seam_write_bytes);
    cr_expect(mx_tune_plan(&q, &plan, &why, &again) == -ENOMEM, "faces fit into DRAM");
    for (int i = 0; i < 2; i++) { /* with the word, and without: they do not fit into DRAM */
        plan = r.plan;
        if (i == 1) memset(plan.seams, 0, sizeof plan.seams);
        cr_assert(mx_tune_plan(&q, &plan, &why, &again) == 0, "%s", why.text);
        cr_expect(memcmp(&again.plan, &r.plan, sizeof r.plan) == 0);
        cr_expect(memcmp(&again.traffic, &r.traffic, sizeof r.traffic) == 0);
    }
    char *text = mx_tune_explain(&q, &r);
    cr_assert(text != NULL);
    EXPECT_WORDS(text, "faces     between strips", "a side file", "faces=side-file");
    free(text);
    q.capacity_bytes = 2 * (uint64_t)r.layout.buffer_bytes + GIB;
    cr_expect(strcmp(tuned(&q, "").plan.seams, MX_SEAMS_IN_FILE) != 0);
    q.capacity_bytes = 0;
    q.manual = (struct mx_plan){.by = 2048, .bz = 2046, .bt = 24, .slab = 10};
    cr_expect(strcmp(tuned(&q, "").plan.seams, MX_SEAMS_IN_FILE) == 0);
    q.dram_bytes = 64 * GIB;
    cr_expect(strcmp(tuned(&q, "").plan.seams, MX_SEAMS_IN_DRAM) == 0);
    cr_expect(strcmp(tuned(&q, MX_SEAMS_IN_FILE).plan.seams, MX_SEAMS_IN_FILE) == 0);
    const char *const none[] = {"skewed by=2048 bz=1024 bt=20 faces=dram", "stream bt=20 faces=side-file"};
    for (int i = 0; i < 2; i++) {
        cr_assert(mx_plan_parse(none[i], &why, &plan) == 0, "%s", why.text);
        cr_expect(mx_tune_plan(&q, &plan, &why, &again) == -EINVAL);
        EXPECT_WORDS(why.text, "faces=", "by < ny");
    }
}

/* The predictions follow the rates: a device twice as slow never makes a plan faster, and when I/O decides,
 * redundant takes longer sweeps as the device gets slower. */
Test(tune, redundant_trades_compute_for_io) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(510, 510, 1022, 200, 1, 8);
    double before = 0;
    int64_t bt_before = 0;
    for (double speed = 64e9; speed > 1e7; speed /= 4) {
        struct mx_tune_request q = {
            .problem = &p, .machine = &m, .dram_bytes = 400 * MIB, .algorithm = "redundant"};
        struct mx_tune_result r;
        q.rates = (struct mx_rates){
            .read_bytes_per_s = speed, .write_bytes_per_s = speed, .tiled_updates_per_s = 2e9};
        cr_assert(mx_tune(&q, NULL, &r) == 0);
        cr_expect(r.seconds.total_s >= before && r.plan.bt >= bt_before, "at %.0f: bt=%lld", speed,
                  (long long)r.plan.bt);
        before = r.seconds.total_s;
        bt_before = r.plan.bt;
    }
    cr_expect(bt_before > 2);
}

/* ------------------------------------------------------------------ refined sizes */

static bool has_sizes(const struct mx_plan *p, int64_t slab, int64_t tile, int64_t ct) {
    return p->slab == slab && p->tile == tile && p->ct == ct;
}

static struct mx_plan refined_plan(const struct mx_tune_request *q) {
    struct mx_tune_result r;
    mx_why why = {""};
    cr_assert(mx_tune(q, &why, &r) == 0, "%s", why.text);
    return r.plan;
}

/* Refined sizes are those of every plan of the tiled engine for rows of about that length; where one size is
 * given it stays, and the others are the engine's own; iblock has none. */
Test(tune, refined_sizes_are_used) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(510, 510, 1022, 64, 1, 8);
    struct mx_tune_request q = {.problem = &p, .machine = &m, .dram_bytes = 2 * GIB, .engine = "tiled"};
    const char *const algorithms[] = {NULL, "stream", "skewed-min", "redundant"};
    int64_t own[4];
    for (int i = 0; i < 4; i++) {
        q.algorithm = algorithms[i];
        q.rates.refined = (struct mx_refined){.nx = 0};
        struct mx_plan plan = refined_plan(&q);
        own[i] = plan.slab;
        cr_expect(plan.slab != 20 && plan.tile == 0 && plan.ct == 0);
        q.rates.refined = (struct mx_refined){.sizes = {20, 8, 24}, .nx = 470};
        plan = refined_plan(&q);
        cr_expect(has_sizes(&plan, 20, 8, 24), "%d: slab %lld, tile %lld, ct %lld", i, (long long)plan.slab,
                  (long long)plan.tile, (long long)plan.ct);
    }
    q.algorithm = "stream";
    int64_t *const sizes[] = {&q.manual.slab, &q.manual.tile, &q.manual.ct, &q.manual.column};
    for (int i = 0; i < 4; i++) {
        *sizes[i] = 14;
        struct mx_plan plan = refined_plan(&q);
        cr_expect(i == 1 || i == 3 ? plan.slab != 20 : plan.slab == (i == 0 ? 14 : own[1]), "%d: slab %lld",
                  i, (long long)plan.slab);
        cr_expect(plan.tile == (i == 1 ? 14 : 0) && plan.ct == (i == 2 ? 14 : 0), "%d", i);
        *sizes[i] = 0;
    }
    q.rates.refined.nx = 256;
    struct mx_plan plan = refined_plan(&q);
    cr_expect(has_sizes(&plan, own[1], 0, 0));
    q.rates.refined.nx = 510;
    q.engine = "iblock";
    plan = refined_plan(&q);
    cr_expect(plan.slab != 20 && plan.tile == 0 && plan.ct == 0);
}

/* A refined slab is made thinner where DRAM asks for it, and a Block or a plan that only it keeps from
 * fitting gets the engine's own sizes. A plan's own sizes are kept; without any it gets the refined ones. */
Test(tune, refined_sizes_give_way) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(510, 510, 1022, 64, 1, 8);
    struct mx_tune_request q = {.problem = &p, .machine = &m, .dram_bytes = 2 * GIB, .algorithm = "stream"};
    struct mx_tune_result r;
    struct mx_plan plan, given;
    mx_why why = {""};
    q.engine = "tiled";
    q.manual = (struct mx_plan){.by = p.ny, .bz = p.nz, .bt = 64};
    cr_assert(mx_tune(&q, &why, &r) == 0, "%s", why.text);
    const int64_t own = r.plan.slab;
    q.dram_bytes = r.dram_bytes + MX_TUNE_OVERHEAD_BYTES + 1; /* just enough for that */
    q.rates.refined = (struct mx_refined){.sizes = {32, 6, 24}, .nx = 510};
    plan = refined_plan(&q);
    cr_expect(has_sizes(&plan, own, 0, 0), "slab %lld", (long long)plan.slab);
    cr_assert(mx_plan_parse("stream engine=tiled bt=64", &why, &given) == 0);
    cr_assert(mx_tune_plan(&q, &given, &why, &r) == 0, "%s", why.text);
    cr_expect(has_sizes(&r.plan, own, 0, 0), "slab %lld", (long long)r.plan.slab);
    q.manual = (struct mx_plan){.bt = 0};
    plan = refined_plan(&q);
    cr_expect(plan.slab > 0 && plan.slab < 32 && plan.tile == 6 && plan.ct == 24, "slab %lld",
              (long long)plan.slab);
    q.dram_bytes = 2 * GIB;
    cr_assert(mx_tune_plan(&q, &given, &why, &r) == 0, "%s", why.text);
    cr_expect(has_sizes(&r.plan, 32, 6, 24));
    cr_assert(mx_plan_parse("stream engine=tiled bt=64 slab=10 ct=8", &why, &given) == 0);
    cr_assert(mx_tune_plan(&q, &given, &why, &r) == 0, "%s", why.text);
    cr_expect(has_sizes(&r.plan, 10, 0, 8));
}

/* The prediction of a plan with the refined slab is no worse than with a thinner one, and its rate is the
 * measured one where all else is the engine's own. */
Test(tune, refined_sizes_are_what_the_rate_is_for) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(510, 510, 1022, 64, 1, 8);
    struct mx_tune_request q = {.problem = &p, .machine = &m, .dram_bytes = 2 * GIB, .algorithm = "stream"};
    struct mx_tune_result own, refined, thin;
    struct mx_plan plan;
    q.engine = "tiled";
    cr_assert(mx_tune(&q, NULL, &own) == 0 && own.plan.slab > 10);
    q.rates.refined = (struct mx_refined){.sizes = {10, 6, 16}, .nx = 510};
    cr_assert(mx_tune(&q, NULL, &refined) == 0 && refined.plan.slab == 10);
    cr_expect(refined.plan.bt == own.plan.bt && refined.seconds.compute_s == own.seconds.compute_s);
    plan = refined.plan;
    plan.slab = 6;
    cr_assert(mx_tune_plan(&q, &plan, NULL, &thin) == 0);
    cr_expect(thin.seconds.compute_s > refined.seconds.compute_s);
}

/* ------------------------------------------------------------------ plans as text */

/* parse(print(plan)) = plan for random plans. */
Test(tune, plan_round_trip) {
    const char *const engines[] = {"iblock", "tiled", ""}, *const tuners[] = {"blk", "naive", "manual", ""};
    const char *const seams[] = {"", MX_SEAMS_IN_DRAM, MX_SEAMS_IN_FILE};
    for (int i = 0; i < 5000; i++) {
        struct mx_plan p, back;
        char line[MX_PLAN_LINE_BYTES];
        mx_why why;
        memset(&p, 0, sizeof p);
        strcpy(p.algorithm, mx_algorithms[pick(0, 7)]->name);
        strcpy(p.engine, engines[pick(0, 2)]);
        strcpy(p.tuner, tuners[pick(0, 3)]);
        strcpy(p.seams, seams[pick(0, 2)]);
        int64_t *numbers[] = {&p.by,   &p.bz,   &p.bt, &p.iy,     &p.iz,
                              &p.slab, &p.tile, &p.ct, &p.column, &p.ahead};
        for (int k = 0; k < 10; k++)
            *numbers[k] = pick(0, 2) == 0 ? 0 : pick(0, 1) ? pick(1, 5000) : INT64_MAX;
        p.threads = (int32_t)pick(0, 64);
        p.in_place = pick(0, 1);
        int err = mx_plan_parse(mx_plan_print(&p, line, sizeof line), &why, &back);
        cr_assert(err == 0, "%s: %s", line, why.text);
        cr_assert(memcmp(&p, &back, sizeof p) == 0, "%s", line);
    }
}

Test(tune, plan_parse_names_the_bad_word) {
    static const struct {
        const char *line, *word;
    } bad[] = {{"", "empty"},
               {"stram by=1", "'stram'"},
               {"stream by=0 bt=4", "'by=0'"},
               {"stream by=-3", "'by=-3'"},
               {"stream by=12x", "'by=12x'"},
               {"stream by=99999999999999999999", "'by=99999999999999999999'"},
               {"stream height=4", "'height=4'"},
               {"stream by=4 by=5", "given twice"},
               {"stream bt", "'bt'"},
               {"stream in-place=1", "'in-place=1'"},
               {"stream in-place bt=4 in-place", "given twice"},
               {"stream engine=steam", "engine=steam"},
               {"stream engine=", "'engine='"},
               {"stream faces=disk", "'faces=disk'"},
               {"stream faces=", "'faces='"},
               {"stream threads=3000000000", "'threads=3000000000'"},
               {"stream tuner=abcdefghijklmnop", "'tuner=abcdefghijklmnop'"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct mx_plan p;
        mx_why why = {""};
        errno = 0;
        cr_expect(mx_plan_parse(bad[i].line, &why, &p) == -EINVAL, "'%s'", bad[i].line);
        cr_expect(strstr(why.text, bad[i].word) != NULL, "'%s': %s", bad[i].line, why.text);
        cr_expect(errno == 0);
    }
}

Test(tune, plan_from_file_and_alias) {
    char path[] = "/tmp/memext-plan-XXXXXX";
    int fd = mkstemp(path);
    const char text[] = "# made by memext tune\n\n  aio5y engine=iblock by=1025 bz=1280 bt=500\n";
    struct mx_plan p;
    mx_why why;
    cr_assert(fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)(sizeof text - 1));
    close(fd);
    int err = mx_plan_read(path, &why, &p);
    cr_expect(err == 0, "%s", why.text);
    cr_expect(strcmp(p.algorithm, "skewed-min") == 0 && p.by == 1025 && p.bz == 1280 && p.bt == 500 &&
              p.iy == 0);
    cr_expect(mx_plan_read("stream bt=4", &why, &p) == 0 && p.bt == 4);
    cr_expect(mx_plan_read("/nowhere/plan", &why, &p) == -EINVAL &&
              strstr(why.text, "/nowhere/plan") != NULL);
    cr_assert(truncate(path, 10) == 0);
    cr_expect(mx_plan_read(path, &why, &p) == -EINVAL && strstr(why.text, path) != NULL);
    unlink(path);
}

/* ------------------------------------------------------------------ rates */

/* load(store(rates)) = rates under the same keys, nothing under others; several keys live side by side; a
 * damaged cache reads as empty and is replaced. */
Test(tune, rates_cache) {
    char folder[] = "/tmp/memext-rates-XXXXXX", path[128];
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/deep/er/rates.json", folder);
    struct mx_rates a = {.read_bytes_per_s = 1e9,
                         .write_bytes_per_s = 2e9,
                         .mixed_bytes_per_s = 1.5e9,
                         .request_s = 2e-5,
                         .byte_core_s = 1e-10,
                         .copy_bytes_per_s = 8e9,
                         .iblock_updates_per_s = 3e8,
                         .tiled_updates_per_s = 1.25e9,
                         .slab_updates_per_s = 5e8,
                         .device_source = MX_RATES_MEASURED,
                         .compute_source = MX_RATES_MEASURED},
                    b = a, out = {0};
    b.read_bytes_per_s = 7e9;
    mx_why why = {""};
    cr_expect(mx_rates_load(path, "d1", "c1", &out) == 0 && out.read_bytes_per_s == 0);
    cr_assert(mx_rates_store(path, "d1", "c1", &a, &why) == 0, "%s", why.text);
    cr_assert(mx_rates_store(path, "d2", NULL, &b, &why) == 0, "%s", why.text);
    cr_expect(mx_rates_load(path, "d1", "c1", &out) == 0);
    cr_expect(out.read_bytes_per_s == 1e9 && out.write_bytes_per_s == 2e9 && out.mixed_bytes_per_s == 1.5e9);
    cr_expect(out.request_s == 2e-5 && out.byte_core_s == 1e-10);
    cr_expect(out.copy_bytes_per_s == 8e9 && out.iblock_updates_per_s == 3e8 &&
              out.slab_updates_per_s == 5e8 && out.tiled_updates_per_s == 1.25e9);
    cr_expect(out.device_source == MX_RATES_CACHED && out.compute_source == MX_RATES_CACHED);
    out = (struct mx_rates){0};
    cr_expect(mx_rates_load(path, "d2", "c2", &out) == 0 && out.read_bytes_per_s == 7e9);
    cr_expect(out.tiled_updates_per_s == 0 && out.compute_source == MX_RATES_DEFAULT);
    cr_assert(truncate(path, 20) == 0);
    out = (struct mx_rates){0};
    cr_expect(mx_rates_load(path, "d1", "c1", &out) == 0 && out.read_bytes_per_s == 0);
    cr_assert(mx_rates_store(path, "d1", "c1", &a, &why) == 0);
    cr_expect(mx_rates_load(path, "d1", "c1", &out) == 0 && out.read_bytes_per_s == 1e9);
    cr_expect(unlink(path) == 0);
    for (int i = 0; i < 3; i++) {
        *strrchr(path, '/') = 0;
        cr_expect(rmdir(path) == 0, "%s", path);
    }
    mx_rates_complete(&out, 2);
    struct mx_rates none = {0};
    mx_rates_complete(&none, 4);
    cr_expect(none.read_bytes_per_s == MX_DEFAULT_READ_BYTES_PER_S && none.mixed_bytes_per_s > 0);
    cr_expect(none.tiled_updates_per_s == 4 * MX_DEFAULT_TILED_UPDATES_PER_S_AND_CORE);
}

static bool are_sizes(const struct mx_refined *r, int64_t slab, int64_t tile, int64_t ct, int64_t nx) {
    return r->sizes.slab == slab && r->sizes.tile == tile && r->sizes.ct == ct && r->nx == nx;
}

/* Refined sizes are kept under the compute key, all or none of them: rates without them, values that are no
 * sizes, and one that is missing read as none; storing rates without them forgets them. */
Test(tune, rates_cache_keeps_refined_sizes) {
    char folder[] = "/tmp/memext-sizes-XXXXXX", path[128];
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/rates.json", folder);
    struct mx_rates plain = {.tiled_updates_per_s = 2e9}, refined = plain, out = {0};
    refined.refined = (struct mx_refined){.sizes = {20, 8, 24}, .nx = 510, .tried = 3, .gain = 1.5};
    cr_assert(mx_rates_store(path, "d", "fast", &refined, NULL) == 0);
    cr_assert(mx_rates_store(path, NULL, "plain", &plain, NULL) == 0);
    cr_expect(mx_rates_load(path, "d", "plain", &out) == 0 && are_sizes(&out.refined, 0, 0, 0, 0));
    cr_expect(mx_rates_load(path, "d", "fast", &out) == 0 && are_sizes(&out.refined, 20, 8, 24, 510));
    cr_expect(out.refined.tried == 0 && out.refined.own.slab == 0);
    const char *const damage[] = {"\"tiled_slab\": 0, \"tiled_tile\": 8", "\"tiled_slab\": 20",
                                  "\"tiled_slab\": \"20\", \"tiled_tile\": 8",
                                  "\"tiled_slab\": 20, \"tiled_tile\": 1e9"};
    for (int i = 0; i < 4; i++) {
        FILE *f = fopen(path, "w");
        cr_assert(f != NULL);
        fprintf(f, "{\"compute\": {\"fast\": {%s, \"tiled_ct\": 24, \"tiled_nx\": 510}}}", damage[i]);
        fclose(f);
        out = (struct mx_rates){0};
        cr_expect(mx_rates_load(path, NULL, "fast", &out) == 0 && are_sizes(&out.refined, 0, 0, 0, 0), "%s",
                  damage[i]);
    }
    cr_assert(mx_rates_store(path, NULL, "fast", &refined, NULL) == 0);
    cr_assert(mx_rates_store(path, NULL, "fast", &plain, NULL) == 0);
    out = (struct mx_rates){0};
    cr_expect(mx_rates_load(path, NULL, "fast", &out) == 0 && are_sizes(&out.refined, 0, 0, 0, 0));
    cr_expect(unlink(path) == 0 && rmdir(folder) == 0);
}

/* Keys differ where the figures may. */
Test(tune, rates_keys) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .cpu = "A CPU"};
    struct mx_problem p = make_problem(510, 510, 510, 4, 1, 8), f = make_problem(510, 510, 510, 4, 1, 4);
    char a[512], b[512];
    mx_rates_compute_key(&m, &p, 2, a, sizeof a);
    mx_rates_compute_key(&m, &p, 1, b, sizeof b);
    cr_expect(strcmp(a, b) != 0);
    mx_rates_compute_key(&m, &f, 2, b, sizeof b);
    cr_expect(strcmp(a, b) != 0);
    struct mx_system system;
    make_system(&p, MX_LEAPFROG, &system);
    mx_rates_compute_key(&m, &p, 2, a, sizeof a);
    cr_expect(strstr(a, "test 1234567890abcdef") != NULL, "%s", a);
    system.identity++;
    mx_rates_compute_key(&m, &p, 2, b, sizeof b);
    cr_expect(strcmp(a, b) != 0);
    cr_expect(mx_rates_device_key("uring", "/tmp/a-file-to-be", a, sizeof a, NULL) == 0);
    cr_expect(mx_rates_device_key("uring", "/tmp", b, sizeof b, NULL) == 0 && strcmp(a, b) == 0);
    cr_expect(mx_rates_device_key("aio", "/tmp", b, sizeof b, NULL) == 0 && strcmp(a, b) != 0);
    cr_expect(mx_rates_device_key("aio", "/nowhere/at/all", b, sizeof b, NULL) == -ENOENT);
}

/* Calibration fills every rate with a positive number and leaves nothing behind. */
Test(tune, calibration) {
    char folder[] = "/var/tmp/memext-calibrate-XXXXXX";
    struct mx_machine m = {
        .cores = 2, .sockets = 1, .l1_bytes = 32 << 10, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(200, 200, 200, 4, 1, 8);
    struct mx_rates r = {0};
    mx_why why = {""};
    cr_assert(mkdtemp(folder) != NULL);
    struct mx_device_options o = {.path = folder};
    int err = mx_calibrate_device(&o, 0.15, 32 * MIB, &why, &r);
    cr_expect(err == 0 || err == -ENOTSUP, "%s", why.text);
    if (err == 0) cr_expect(r.read_bytes_per_s > 0 && r.write_bytes_per_s > 0 && r.mixed_bytes_per_s > 0);
    cr_expect(rmdir(folder) == 0, "files were left in %s", folder);
    o = (struct mx_device_options){.backend = "dram"};
    cr_expect(mx_calibrate_device(&o, 0.1, 32 * MIB, &why, &r) == -ENOTSUP);
    err = mx_calibrate_compute(&p, &m, 2, 0.1, 16 * MIB, &why, &r);
    cr_expect(err == 0, "%s", why.text);
    cr_expect(r.tiled_updates_per_s > 0 && r.iblock_updates_per_s > 0 && r.slab_updates_per_s > 0 &&
              r.copy_bytes_per_s > 0);
    cr_expect(r.compute_source == MX_RATES_MEASURED);
}

static uint64_t sum_of(const char *path) {
    uint64_t sum = 14695981039346656037u;
    FILE *file = fopen(path, "r");
    for (int c; (c = fgetc(file)) != EOF;) sum = (sum ^ (uint64_t)c) * 1099511628211u;
    fclose(file);
    return sum;
}

/* A block device is measured without a byte of it being written: the file behind it is the same afterwards.
 * The read rate is measured, the write rate is what it was, and a sentence says so. */
Test(tune, calibration_of_a_block_device) {
    if (geteuid() != 0) cr_skip_test("needs root for a loop device");
    char file[] = "/var/tmp/memext-calibrate-XXXXXX", loop[64] = "", command[256];
    int fd = mkstemp(file);
    cr_assert(fd >= 0);
    for (uint64_t i = 0; i < 2 * MIB; i++) cr_assert(write(fd, &i, sizeof i) == sizeof i);
    close(fd);
    snprintf(command, sizeof command, "losetup --find --show %s 2>/dev/null", file);
    FILE *pipe = popen(command, "r");
    bool got = fgets(loop, sizeof loop, pipe) != NULL;
    pclose(pipe);
    if (!got) {
        unlink(file);
        cr_skip_test("no loop device can be set up here");
    }
    loop[strcspn(loop, "\n")] = 0;
    uint64_t before = sum_of(file);
    struct mx_rates r = {.write_bytes_per_s = 123};
    struct mx_device_options o = {.path = loop, .force = true};
    mx_why why = {""};
    int err = mx_calibrate_device(&o, 0.15, 8 * MIB, &why, &r);
    snprintf(command, sizeof command, "losetup -d %s && udevadm settle 2>/dev/null; sync %s", loop, file);
    int detached = system(command);
    uint64_t after = sum_of(file);
    unlink(file);
    cr_expect(err == 0, "%s", why.text);
    cr_expect(r.read_bytes_per_s > 0 && r.write_bytes_per_s == 123);
    cr_expect(strstr(why.text, "only reading was measured") != NULL, "%s", why.text);
    cr_expect(before == after && detached == 0);
}

/* A search ends with the engine's own choice, or with sizes that the engine takes and the plan accepts, and
 * says how many it tried. Nothing is tried where a ring out of cache does not fit. */
Test(tune, refining) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .l3_bytes = 8 << 20};
    mx_why why = {""};
    for (int i = 0; i < 4; i++) {
        struct mx_problem p = make_problem(i < 2 ? 200 : 60, 200, 200, 4, 1, i % 2 ? 4 : 8);
        struct mx_rates r = {.tiled_updates_per_s = 2e9};
        int err = mx_refine_tiled(&p, &m, 2, 0.4, 32 * MIB, &why, &r);
        cr_assert(err == 0, "%s", why.text);
        struct mx_refined *x = &r.refined;
        cr_expect(x->tried > 0 && x->own.slab > 0 && x->own.tile > 0 && x->own.ct > 0 && x->gain >= 1);
        cr_expect((x->gain > 1) == (x->sizes.slab > 0) && r.tiled_updates_per_s == 2e9 * x->gain);
        cr_expect(mx_refined_for(x, &p) == (x->sizes.slab > 0));
        if (x->sizes.slab == 0) x->sizes = (struct mx_tiled_sizes){20, 8, 12}, x->nx = p.nx;
        cr_expect(x->nx == p.nx && x->sizes.slab >= 4 && x->sizes.slab % 2 == 0 && x->sizes.tile > 0 &&
                  x->sizes.ct > 0);
        p.nz = 4096, p.nt = 64; /* else a thinner slab starts sooner, and is predicted to pay */
        struct mx_tune_request q = {
            .problem = &p, .machine = &m, .dram_bytes = GIB, .engine = "tiled", .rates = r};
        struct mx_plan plan = refined_plan(&q);
        cr_expect(has_sizes(&plan, x->sizes.slab, x->sizes.tile, x->sizes.ct));
    }
    struct mx_problem p = make_problem(200, 200, 200, 4, 1, 8);
    struct mx_rates r = {.refined = {.sizes = {20, 6, 16}, .nx = 200}};
    cr_assert(mx_refine_tiled(&p, &m, 2, 0.1, 4 * MIB, &why, &r) == 0, "%s", why.text);
    cr_expect(r.refined.own.slab == 0 && r.refined.tried == 0 && r.refined.sizes.slab == 0);
}

/* More than 8 threads move on by several slabs a call, and so does what is measured. */
Test(tune, refining_moves_on_by_as_many_slabs_as_a_run) {
    struct mx_machine m = {.cores = 16, .sockets = 1, .l2_bytes = 512 << 10, .l3_bytes = 4 << 20};
    struct mx_problem p = make_problem(200, 64, 200, 4, 1, 8);
    struct mx_rates r[2];
    mx_why why = {""};
    memset(r, 0, sizeof r);
    for (int i = 0; i < 2; i++)
        cr_assert(mx_refine_tiled(&p, &m, i == 0 ? 8 : 16, 0.05, 64 * MIB, &why, &r[i]) == 0, "%s", why.text);
    const int64_t one = r[0].refined.own.slab, two = r[1].refined.own.slab;
    cr_assert(one > 0 && two == 2 * one, "%lld and %lld planes", (long long)one, (long long)two);
    cr_expect(r[0].refined.tried > 0 && r[1].refined.tried > 0);
}

static void add_up_row(const struct mx_row *r) {
    for (int64_t row = 0; row < r->rows; row++) {
        double *out = (double *)((char *)r->out[0] + row * r->row_pitch);
        const double *in = (const double *)((const char *)r->in[1] + row * r->row_pitch);
        const float *c = (const float *)((const char *)r->fixed[0] + row * r->fixed_pitch[0]);
        for (int64_t x = r->x0; x < r->x1; x++) out[x] += in[x - 1] + in[x + 1] + (double)c[x];
    }
}

/* Calibration runs kernels of users too: both engines have a rate afterwards, steps and not levels counted.
 */
Test(tune, kernels_are_calibrated) {
    struct mx_problem p = make_problem(40, 20, 30, 4, 1, 8);
    struct mx_system system;
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 256 << 10, .l3_bytes = 4 << 20};
    for (int form = MX_LEAPFROG; form <= MX_STAGGERED; form++) {
        struct mx_rates r = {0};
        mx_why why = {""};
        make_system(&p, form, &system);
        system.row[0] = system.row[1] = add_up_row;
        system.n_fixed = 1;
        system.fixed[0] = (struct mx_field_of){"c", MX_F32};
        cr_assert_eq(mx_calibrate_compute(&p, &m, 2, 0.02, 4 << 20, &why, &r), 0, "%s", why.text);
        cr_expect(r.tiled_updates_per_s > 0 && r.iblock_updates_per_s > 0 &&
                  r.compute_source == MX_RATES_MEASURED);
        cr_assert_eq(mx_refine_tiled(&p, &m, 2, 0.02, 4 << 20, &why, &r), 0, "%s", why.text);
        cr_expect_eq(r.refined.own.tile, 0, "nothing is tried");
    }
}
