/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates: the cache, calibration, refining. */
#include "grid/grid.h"
#include "tune_tools.h"

#include <memext/backend.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Engines are measured in more memory than caches hold, whatever DRAM a plan is for, but in no more than the
 * caller allows or a quarter of what the process sees. */
Test(tune, memory_of_a_calibration) {
    struct mx_machine m = {.cores = 2, .sockets = 2, .l3_bytes = 32 * MIB, .memory_bytes = 1024 * MIB};
    cr_expect_eq(mx_calibration_bytes(&m, UINT64_MAX), 192 * MIB);
    cr_expect_eq(mx_calibration_bytes(&m, 104 * MIB), 104 * MIB);
    m.sockets = 1;
    cr_expect_eq(mx_calibration_bytes(&m, UINT64_MAX), 128 * MIB);
    m.cgroup_limit_bytes = 256 * MIB;
    cr_expect_eq(mx_calibration_bytes(&m, UINT64_MAX), 64 * MIB);
    m.memory_bytes = m.cgroup_limit_bytes = 0; /* not known */
    cr_expect_eq(mx_calibration_bytes(&m, UINT64_MAX), 128 * MIB);
    cr_expect(mx_calibration_leaves_caches(&m, 64 * MIB) && !mx_calibration_leaves_caches(&m, 63 * MIB));
}

/* Rates that are those of a cache serve one plan: they are not stored, and a sentence says so. */
Test(tune, rates_of_a_cache_are_not_kept) {
    char folder[] = "/var/tmp/memext-calibrate-XXXXXX", path[256], own[256];
    struct mx_machine m = {
        .cores = 2, .sockets = 1, .l1_bytes = 32 << 10, .l2_bytes = 1 << 20, .memory_bytes = 64 * MIB};
    struct mx_problem p = make_problem(60, 60, 60, 4, 1, 8);
    cr_assert(mkdtemp(folder) != NULL && setenv("XDG_CACHE_HOME", folder, 1) == 0);
    snprintf(path, sizeof path, "%s/memext/rates.json", folder);
    snprintf(own, sizeof own, "%s/memext", folder);
    for (int small = 1; small >= 0; small--) {
        struct mx_rates r = {0};
        mx_why why = {""};
        m.l3_bytes = (small ? 9 : 8) * MIB;
        cr_assert_eq(mx_rates_renew(NULL, &p, &m, 2, UINT64_MAX, 0.05, &why, &r), 0, "%s", why.text);
        cr_expect(r.tiled_updates_per_s > 0 && r.compute_source == MX_RATES_MEASURED);
        cr_expect_eq(access(path, F_OK) == 0, !small);
        if (small) EXPECT_WORDS(why.text, "16 MiB", "9 MiB", "--calibrate", "72 MiB");
        if (!small) cr_expect_str_empty(why.text);
    }
    cr_expect(unlink(path) == 0 && rmdir(own) == 0 && rmdir(folder) == 0);
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
    cr_expect(strstr(why.text, "only reading of") != NULL, "%s", why.text);
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
