/* SPDX-License-Identifier: BSD-3-Clause */
/* Which plan is chosen, by rates, seams, copies and refined sizes. */
#include "execute/execute.h"
#include "schedule/schedule.h"
#include "tune/search.h"
#include "tune_tools.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rates of a kernel that was never measured follow from the bytes of a cell; given ones stay. */
Test(tune, rates_of_kernels) {
    struct mx_problem p = make_problem(64, 64, 64, 1, 1, 8);
    struct mx_system system;
    struct mx_rates r = {.iblock_updates_per_s = 5e6};
    cr_expect(mx_rates_share(&p) == 1);
    make_system(&p, MX_JACOBI, &system);
    cr_expect(mx_rates_share(&p) == 1);
    make_system(&p, MX_LEAPFROG, &system);
    system.n_fixed = 1, system.fixed[0].dtype = MX_F64;
    cr_expect(mx_rates_share(&p) == 0.5);
    mx_rates_of_problem(&r, &p, 4, 0);
    mx_rates_complete(&r, 4);
    cr_expect(r.iblock_updates_per_s == 5e6);
    const double share = MX_DEFAULT_TILED_SHARE;
    cr_expect_float_eq(r.tiled_updates_per_s, 2 * share * MX_DEFAULT_TILED_UPDATES_PER_S_AND_CORE, 1);
    make_system(&p, MX_STAGGERED, &system);
    cr_expect(mx_rates_share(&p) == 16.0 / 48);
}

/* A kernel that was timed on tiles has the rate of these: of engine iblock too, where that is less than what
 * its bytes suggest. Rates that were measured or given stay. */
Test(tune, rates_of_timed_kernels) {
    static const double times[] = {0.2, 1, 30, 30};
    for (int i = 0; i < 4; i++) {
        struct mx_problem p = make_problem(64, 64, 64, 1, i == 3 ? 2 : 1, 8);
        struct mx_system system;
        make_system(&p, MX_JACOBI, &system);
        struct mx_rates r = {0}, given = {.tiled_updates_per_s = 7e8, .compute_source = MX_RATES_GIVEN};
        mx_rates_of_problem(&r, &p, 4, times[i]);
        const double ns = times[i] * (i == 3 ? MX_TIMED_WIDE_FACTOR : 1) + 16 * MX_TIMED_BYTE_NS,
                     tiled = 4e9 / ns, iblock = 4 * MX_DEFAULT_IBLOCK_UPDATES_PER_S_AND_CORE;
        cr_expect_float_eq(r.tiled_updates_per_s, tiled, 1);
        cr_expect_float_eq(r.iblock_updates_per_s, fmin(tiled, iblock), 1);
        cr_expect_str_eq(mx_rates_source_name(r.compute_source), "timed");
        mx_rates_of_problem(&given, &p, 4, times[i]);
        cr_expect(given.tiled_updates_per_s == 7e8 && given.compute_source == MX_RATES_GIVEN);
    }
}

/* A built-in stencil of radius 2 and more has tiles in two arrays, so that it is guessed to be slower. */
Test(tune, rates_of_stencils) {
    static const struct {
        int32_t h;
        double share;
    } rows[] = {{1, 1}, {2, MX_DEFAULT_TILED_SHARE}, {8, MX_DEFAULT_TILED_SHARE}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mx_problem p = make_problem(64, 64, 64, 1, rows[i].h, 8);
        struct mx_rates r = {0}, given = {.tiled_updates_per_s = 7e8};
        mx_rates_of_problem(&r, &p, 4, 0);
        mx_rates_complete(&r, 4);
        cr_expect_float_eq(r.tiled_updates_per_s, 4 * rows[i].share * MX_DEFAULT_TILED_UPDATES_PER_S_AND_CORE,
                           1);
        cr_expect_float_eq(r.iblock_updates_per_s, 4 * MX_DEFAULT_IBLOCK_UPDATES_PER_S_AND_CORE, 1);
        mx_rates_of_problem(&given, &p, 4, 0);
        cr_expect(given.tiled_updates_per_s == 7e8);
    }
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

/* Where computing decides a side file pays as well, if it leaves DRAM to slabs that are not thin: whole
 * planes of 43 levels have room for slabs of 5. */
Test(tune, a_side_file_makes_slabs_thicker) {
    struct mx_machine m = {
        .cores = 2, .sockets = 1, .l1_bytes = 48 << 10, .l2_bytes = 2 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(510, 510, 510, 128, 1, 8);
    const struct mx_tune_request q = {
        .problem = &p,
        .machine = &m,
        .dram_bytes = 256 * MIB,
        .offset_align_bytes = 512,
        .rates = {.read_bytes_per_s = 8e9, .write_bytes_per_s = 8e9, .mixed_bytes_per_s = 1.3e9}};
    const struct mx_tune_result r = tuned(&q, ""), dram = tuned(&q, MX_SEAMS_IN_DRAM);
    cr_expect(dram.plan.slab < 8 && dram.seconds.compute_s > dram.seconds.io_s + dram.seconds.stall_s,
              "slab %d, %g and %g s", (int)dram.plan.slab, dram.seconds.compute_s, dram.seconds.io_s);
    cr_expect(strcmp(r.plan.seams, MX_SEAMS_IN_FILE) == 0, "faces in '%s'", r.plan.seams);
    cr_expect(r.plan.slab > dram.plan.slab && r.seconds.total_s < 0.95 * dram.seconds.total_s);
}

/* Transfers and computing of like length hinder each other in stream: the cube root of a sum of cubes. The
 * other algorithms take as long as the longer of the two. */
Test(tune, transfers_beside_computing) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(510, 510, 510, 96, 1, 8);
    for (int i = 0; i < 8; i++) {
        struct mx_tune_request q = {.problem = &p,
                                    .machine = &m,
                                    .dram_bytes = 256 * MIB,
                                    .offset_align_bytes = 512,
                                    .algorithm = i % 2 == 0 ? "stream" : "skewed-min",
                                    .rates = {.read_bytes_per_s = 9e9, .write_bytes_per_s = 9e9}};
        q.rates.mixed_bytes_per_s = 0.4e9 * (1 << i);
        const struct mx_tune_result r = tuned(&q, "");
        const struct mx_seconds s = r.seconds;
        const double io = s.io_s + s.stall_s, compute = s.compute_s + s.copy_s + s.cores_s,
                     longer = fmax(io, compute), both = s.total_s - s.edge_s,
                     norm = cbrt(pow(io, 3) + pow(compute, 3));
        cr_expect(fabs(both / (i % 2 == 0 ? norm : longer) - 1) < 1e-9, "%d: %g and %g s, in all %g", i, io,
                  compute, both);
        cr_expect(longer <= both && both <= 1.26 * longer);
        char *text = mx_tune_explain(&q, &r);
        cr_assert(text != NULL);
        cr_expect((strstr(text, "because they hinder each other") != NULL) == (both - longer >= 0.05), "%s",
                  text);
        free(text);
    }
}

/* Levels of a periodic grid trade transfers for cells that are computed twice. From a slow device to a fast
 * one no other number of levels takes less time by the same prediction. */
Test(tune, levels_of_periodic_grids) {
    struct mx_machine m = {.cores = 2, .sockets = 1, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
    struct mx_problem p = make_problem(126, 126, 254, 60, 1, 8);
    p.sides.side[MX_DIM_Z][0] = p.sides.side[MX_DIM_Z][1] = MX_SIDE_PERIODIC;
    int64_t before = 0;
    for (double speed = 16e9; speed > 1e8; speed /= 1.5) {
        struct mx_tune_request q = {.problem = &p,
                                    .machine = &m,
                                    .dram_bytes = 96 * MIB,
                                    .offset_align_bytes = 512,
                                    .algorithm = "stream",
                                    .rates = {.read_bytes_per_s = speed, .write_bytes_per_s = speed}};
        const struct mx_tune_result r = tuned(&q, "");
        cr_expect(r.plan.bt >= before, "at %g: bt=%lld after %lld", speed, (long long)r.plan.bt,
                  (long long)before);
        before = r.plan.bt;
        for (int64_t bt = 2; bt <= 60; bt++) {
            struct mx_tune_result other;
            q.manual = (struct mx_plan){.by = p.ny, .bz = p.nz, .bt = bt, .slab = r.plan.slab};
            if (mx_tune(&q, NULL, &other) < 0) continue;
            cr_expect(other.seconds.total_s > 0.98 * r.seconds.total_s,
                      "at %g: bt=%lld takes %g s, and bt=%lld %g s", speed, (long long)r.plan.bt,
                      r.seconds.total_s, (long long)bt, other.seconds.total_s);
        }
    }
}

/* Of plans that take as long by prediction and move as much, the one that computes faster wins: the device
 * may be faster than was assumed. */
Test(tune, thicker_slabs_win_where_the_rest_is_the_same) {
    struct mx_machine m = {
        .cores = 2, .sockets = 1, .l1_bytes = 48 << 10, .l2_bytes = 2 << 20, .l3_bytes = 480 << 20};
    struct mx_problem p = make_problem(1022, 1022, 1022, 32, 1, 8);
    struct mx_tune_request q = {.problem = &p, .machine = &m, .dram_bytes = GIB, .offset_align_bytes = 512};
    const struct mx_tune_result r = tuned(&q, "");
    q.manual = (struct mx_plan){.slab = 6};
    const struct mx_tune_result thin = tuned(&q, "");
    cr_expect(r.seconds.io_s > r.seconds.compute_s && r.plan.bt == 32 && thin.plan.bt == 32);
    cr_expect(r.plan.slab > 6 && r.seconds.compute_s < 0.97 * thin.seconds.compute_s,
              "slab %d, %g and %g s of computing", (int)r.plan.slab, r.seconds.compute_s,
              thin.seconds.compute_s);
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
