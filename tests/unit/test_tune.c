/* SPDX-License-Identifier: BSD-3-Clause */
/* What is refused, and that every tuner emits plans that hold. */
#include "effort.h"
#include "execute/execute.h"
#include "schedule/schedule.h"
#include "tune/search.h"
#include "tune_tools.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    EXPECT_WORDS(why.text, "1 GiB", "two Buffers");
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
    EXPECT_WORDS(why.text, "BT = 65", "BY = 128", "BT <= 64", "BY >= 130");
    q = base, q.manual = (struct mx_plan){.by = 600, .bz = 128, .bt = 10};
    cr_expect(mx_tune(&q, &why, &r) == -EINVAL);
    EXPECT_WORDS(why.text, "BY = 600", "NY = 512");
    q = base, q.manual = (struct mx_plan){.by = 512, .bz = 1024, .bt = 101};
    cr_expect(mx_tune(&q, &why, &r) == -EINVAL);
    EXPECT_WORDS(why.text, "BT = 101", "NT = 100");
    q = base, q.manual = (struct mx_plan){.by = 200, .bz = 400, .bt = 100};
    cr_expect(mx_tune(&q, &why, &r) == -ENOMEM);
    EXPECT_WORDS(why.text, "BY = 200", "GiB", "rows", "BT <= ", "--dram");
    const char *at = strstr(why.text, "BT <= ");
    q.manual.bt = at != NULL ? strtoll(at + 6, NULL, 10) : 0;
    cr_expect(mx_tune(&q, &why, &r) == 0, "the bt that was named does not fit: %s", why.text);
    q.manual.bt++;
    cr_expect(mx_tune(&q, &why, &r) == -ENOMEM);
    q = base, q.tuner = "blk", q.manual = (struct mx_plan){.by = 64, .bz = 64, .bt = 4};
    cr_expect(mx_tune(&q, &why, &r) == -EINVAL);
    q = base, q.dram_bytes = 16 * MIB;
    cr_expect(mx_tune(&q, &why, &r) == -ENOMEM);
    EXPECT_WORDS(why.text, "16 MiB", "24 MiB", "--dram 25MiB");
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
    int planned = 0, staggered = 0, staged = 0, filed = 0;
    for (int i = 0; i < 500; i++) {
        struct mx_machine m = {
            .cores = (int32_t)pick(1, 8), .sockets = 1, .l2_bytes = 256 << 10, .l3_bytes = 4 << 20};
        int32_t h = (int32_t)pick(1, 4);
        struct mx_problem p = make_problem(pick(1, 400), pick(1, 200), pick(1, 200), pick(0, 60), h, 8);
        struct mx_system system;
        struct mx_fixed_layout fixed[2] = {{0}};
        make_system(&p, i % 3, &system);
        if (i % 3 == MX_JACOBI && i % 2 == 0) system.stages = 2 + i / 6 % 5;
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
        staged += system.stages > 1;
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
    cr_expect(planned > 250 && staggered > 60 && staged > 30 && filed > 0,
              "%d plans, %d staggered, %d of stages, %d with a side file", planned, staggered, staged, filed);
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
    EXPECT_WORDS(why.text, "read-only fields included");
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
    EXPECT_WORDS(why.text, "in-place", "MX_LEAPFROG");
}
