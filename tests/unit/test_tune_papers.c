/* SPDX-License-Identifier: BSD-3-Clause */
/* Tuners against the papers' published values and the executable model. */
#include "effort.h"
#include "schedule/schedule.h"
#include "tune/search.h"
#include "tune_tools.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static int64_t get(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_integer(value), "no number %s", key);
    return json_integer_value(value);
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

/* The iBlock of Naive-Tune is a part of its Block, however much L3 there is; where L3 holds less than the
 * Block's planes it is what L3 holds. */
Test(tune, naive_iblock_stays_inside_its_block) {
    int bounded = 0;
    for (int i = 0; i < 500; i++) {
        struct mx_machine m = {.cores = (int32_t)pick(1, 16),
                               .sockets = 1,
                               .l2_bytes = 256 << 10,
                               .l3_bytes = (uint64_t)MIB << pick(0, 9)};
        struct mx_problem p = make_problem(pick(10, 2000), pick(10, 500), pick(10, 500), pick(2, 60), 1, 8);
        struct mx_naive_log n;
        if (mx_naive_tune(&p, &m, (uint64_t)pick(8, 512) * MIB, 0, NULL, &n) != 0) continue;
        const int64_t plane = p.nx * 2 * 8 * m.cores, in_cache = mx_max(1, n.cache_usable_bytes / plane);
        const int64_t most = mx_min(in_cache, n.bz);
        cr_assert(n.first_iz <= n.bz && n.iz >= 1 && n.iz <= n.bz, "iz = %lld of %lld planes",
                  (long long)n.iz, (long long)n.bz);
        cr_assert(n.iz == (most < m.cores ? most : most / m.cores * m.cores));
        cr_assert(n.iz_bytes == n.iz * plane && n.cache_left_bytes == (int64_t)m.l3_bytes - n.iz_bytes);
        bounded += in_cache > n.bz;
    }
    cr_expect(bounded > 50 && bounded < 450, "%d Blocks have fewer planes than L3 holds", bounded);
}

static bool may_have(const struct mx_plan *plan, const struct mx_problem *p, int64_t iz, int32_t sockets) {
    return plan->bz == p->nz || plan->bz % (iz * sockets) == 0;
}

/* With every tuner a given iBlock is the plan's. naive and manual choose the Block that they choose without
 * it; blk too, where that Block is cut as section V-B-2a asks for, and else the best that is. */
Test(tune, an_iblock_is_given_beside_a_tuner) {
    const char *const tuners[] = {"blk", "naive", "manual"};
    const char *const algorithms[] = {"redundant", "skewed", "skewed-y", "skewed-min"};
    int same = 0, other = 0;
    for (int i = 0; i < 600; i++) {
        struct mx_machine m = {
            .cores = 4, .sockets = (int32_t)pick(1, 2), .l2_bytes = 256 << 10, .l3_bytes = 4 << 20};
        struct mx_problem p = make_problem(pick(50, 400), pick(40, 300), pick(40, 300), pick(2, 60), 1, 8);
        struct mx_tune_request q = {.problem = &p,
                                    .machine = &m,
                                    .dram_bytes = MX_TUNE_OVERHEAD_BYTES + (uint64_t)pick(4, 64) * MIB,
                                    .algorithm = algorithms[pick(0, 3)],
                                    .tuner = tuners[i % 3],
                                    .engine = "iblock"};
        struct mx_tune_result free, given;
        const int64_t iy = pick(1, 4), iz = pick(1, 8) * m.cores;
        if (mx_tune(&q, NULL, &free) != 0) continue;
        q.manual.iy = iy, q.manual.iz = iz;
        if (mx_tune(&q, NULL, &given) != 0) continue;
        const struct mx_plan *a = &free.plan, *b = &given.plan;
        cr_assert(b->iy == iy && b->iz == iz && strcmp(b->tuner, q.tuner) == 0);
        const bool bound = i % 3 == 0, equal = a->by == b->by && a->bz == b->bz && a->bt == b->bt;
        if (bound) cr_assert(may_have(b, &p, iz, m.sockets), "bz = %lld", (long long)b->bz);
        if (!bound || may_have(a, &p, iz, m.sockets))
            cr_assert(equal, "%s %s: %lld %lld %lld, without iBlock %lld %lld %lld", q.tuner, q.algorithm,
                      (long long)b->by, (long long)b->bz, (long long)b->bt, (long long)a->by,
                      (long long)a->bz, (long long)a->bt);
        same += equal, other += !equal;
    }
    cr_expect(same > 300 && other > 10, "%d same, %d other", same, other);
}
