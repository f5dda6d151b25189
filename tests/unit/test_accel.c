/* SPDX-License-Identifier: BSD-3-Clause */
/* Accelerators, each that works here: memory, copies, queues and limits are as accel.h says; a failing
 * operation ends everything after it; and a run that any of its copies or launches fails in leaves the store
 * as it was. */
#include "accel/accel.h"
#include "accel/spec.h"
#include "accel_runs.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static mx_accel *open_accel(const char *spec, uint64_t memory_bytes) {
    const struct mx_accel_options o = {.spec = spec, .memory_bytes = memory_bytes};
    mx_accel *a = NULL;
    mx_why why = {""};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    if (strcmp(spec, "opencl") == 0)
        cr_skip_test("the sanitizers take what PoCL and its compiler do for ours");
#endif
    if (mx_accel_open(&o, &why, &a) < 0) cr_skip_test("%s", why.text);
    return a;
}

static void fill(char *to, size_t bytes, unsigned seed) {
    for (size_t i = 0; i < bytes; i++) to[i] = (char)((i * 2654435761u + seed) >> 13);
}

/* What was put in pieces comes back as other pieces. */
static void round_trip(const char *spec) {
    enum { BYTES = 100000, FIRST = 12345, SECOND = 77 };
    mx_accel *a = open_accel(spec, 0);
    char *there = take(a, BYTES), *here = malloc(BYTES), *back = calloc(1, BYTES);
    fill(here, BYTES, 1);
    const struct mx_accel_span in[3] = {
        {there, here, FIRST},
        {there + FIRST, here + FIRST, SECOND},
        {there + FIRST + SECOND, here + FIRST + SECOND, BYTES - FIRST - SECOND}};
    const struct mx_accel_span out[2] = {{there + 1000, back + 1000, BYTES - 1000}, {there, back, 1000}};
    cr_assert_eq(mx_accel_put(a, in, 2), 1);
    cr_assert_eq(mx_accel_put(a, in + 2, 1), 2);
    cr_assert_eq(mx_accel_wait(a, MX_ACCEL_PUT, 2), 0);
    cr_assert(mx_accel_is_done(a, MX_ACCEL_PUT, 1));
    cr_assert_eq(mx_accel_get(a, out, 2), 1);
    cr_assert_eq(mx_accel_wait(a, MX_ACCEL_GET, 1), 0);
    cr_assert_eq(memcmp(here, back, BYTES), 0);
    cr_assert_eq(mx_accel_counters(a).put_bytes, BYTES);
    cr_assert_eq(mx_accel_counters(a).get_bytes, BYTES);
    cr_assert_eq(mx_accel_counters(a).operations, 3);
    mx_accel_release(a, there);
    mx_accel_close(a);
    free(here);
    free(back);
}

/* Pieces between two allocations, at pitches of their own and offsets that are no multiples of them. */
static void copies(const char *spec) {
    enum { PITCH = 700, OTHER = 420, N = 9, BYTES = 333, ALL = PITCH * (N + 2) };
    mx_accel *a = open_accel(spec, 0);
    char *from = take(a, ALL), *to = take(a, ALL), here[ALL], want[ALL], back[ALL];
    fill(here, ALL, 2);
    memset(want, 0x55, ALL);
    const struct mx_accel_span in[2] = {{from, here, ALL}, {to, want, ALL}};
    cr_assert_eq(mx_accel_wait(a, MX_ACCEL_PUT, mx_accel_put(a, in, 2)), 0);
    const enum mx_accel_queue queues[] = {MX_ACCEL_COPY, MX_ACCEL_WORK};
    for (int i = 0; i < 2; i++) {
        const struct mx_accel_copy c = {.to = to + 30 + i * OTHER,
                                        .from = from + 1 + 2 * i * PITCH,
                                        .to_pitch = OTHER,
                                        .from_pitch = PITCH,
                                        .bytes = BYTES,
                                        .n = N - i};
        for (int k = 0; k < c.n; k++)
            memcpy(want + 30 + (i + k) * OTHER, here + 1 + (2 * i + k) * PITCH, BYTES);
        const int64_t number = mx_accel_copy(a, queues[i], &c);
        cr_assert_eq(number, 1);
        cr_assert_eq(mx_accel_wait(a, queues[i], number), 0);
    }
    const struct mx_accel_span out = {to, back, ALL};
    cr_assert_eq(mx_accel_wait(a, MX_ACCEL_GET, mx_accel_get(a, &out, 1)), 0);
    cr_assert_eq(memcmp(want, back, ALL), 0);
    mx_accel_release(a, from);
    mx_accel_release(a, to);
    mx_accel_close(a);
}

/* Memory is counted, given back, and refused with the figures where there is no more. */
static void limits(const char *spec) {
    enum { MEMORY = 1 << 20 };
    mx_accel *a = open_accel(spec, MEMORY);
    mx_why why = {""};
    char *more = NULL, *first = take(a, MEMORY - 4096);
    cr_assert_eq(mx_accel_used_bytes(a), MEMORY - 4096);
    cr_assert_eq(mx_accel_alloc(a, 8192, "a second ring", &why, &more), -ENOMEM);
    cr_assert(strstr(why.text, "a second ring") != NULL && strstr(why.text, "1.0 of 1.0 MiB") != NULL, "%s",
              why.text);
    cr_assert_null(more);
    mx_accel_release(a, first);
    cr_assert_eq(mx_accel_used_bytes(a), 0);
    mx_accel_release(a, take(a, MEMORY));
    mx_accel_close(a);
}

/* Operation 2 of three fails, at once or when it is done: the error is remembered, with its sentence, and
 * nothing is done any more. */
static void faults(const char *spec, bool late) {
    char text[64], here[64] = "x";
    mx_why why = {""};
    snprintf(text, sizeof text, "%s,%s=2", spec, late ? "late" : "fault");
    mx_accel *a = open_accel(text, 0);
    char *there = take(a, sizeof here);
    const struct mx_accel_span span = {there, here, sizeof here};
    cr_assert_eq(mx_accel_wait(a, MX_ACCEL_PUT, mx_accel_put(a, &span, 1)), 0);
    cr_assert_eq(mx_accel_error(a, &why), 0);
    const int64_t second = mx_accel_get(a, &span, 1);
    cr_assert_eq(second, late ? 1 : -EIO);
    if (late) cr_assert_eq(mx_accel_wait(a, MX_ACCEL_GET, second), -EIO);
    cr_assert_eq(mx_accel_error(a, &why), -EIO);
    cr_assert(strstr(why.text, "a copy from it") != NULL, "%s", why.text);
    cr_assert_eq(mx_accel_put(a, &span, 1), -EIO);
    cr_assert(mx_accel_is_done(a, MX_ACCEL_PUT, 7)); /* nobody waits for what will not come */
    mx_accel_release(a, there);
    mx_accel_close(a);
}

static void conform(const char *spec) {
    round_trip(spec);
    copies(spec);
    limits(spec);
    faults(spec, false);
    faults(spec, true);
}

Test(accel, host) { conform("host"); }
Test(accel, host_with_a_rate) { round_trip("host,rate=200MB/s"); }
Test(accel, opencl) { conform("opencl"); }
Test(accel, cuda) { conform("cuda"); }

Test(accel, quantities_and_keys) {
    double v = 0;
    char text[16];
    cr_assert(mx_accel_quantity("2GB/s", &v) == 0 && v == 2e9);
    cr_assert(mx_accel_quantity("1.5 MiB/s", &v) == 0 && v == 1.5 * 1048576);
    cr_assert(mx_accel_quantity("7", &v) == 0 && v == 7);
    cr_assert_eq(mx_accel_quantity("2 lightyears", &v), -EINVAL);
    cr_assert_eq(mx_accel_quantity("-1", &v), -EINVAL);
    cr_assert(mx_accel_key("a=1,bc=2", "bc", text, sizeof text) && strcmp(text, "2") == 0);
    cr_assert(!mx_accel_key("abc=2", "bc", text, sizeof text));
}

/* ------------------------------------------------------------------ runs */

/* Every copy and every launch of a run fails, at once and when it is done: an error of I/O with a sentence,
 * and what was committed goes on, with an accelerator or without one, to the result that the run without a
 * fault has. The run has `least` operations or more. */
static void fail_each(const char *accel, const char *dir, const char *const *asked,
                      const char *const *again_asked, int least) {
    char spec[64];
    const struct ended plain = run_asking(NULL, dir, "star7", "f64", false, asked),
                       whole = run_asking(accel, dir, "star7", "f64", false, asked);
    cr_assert_eq(whole.err, 1, "%s", whole.why.text);
    cr_assert_str_eq(plain.checksum, whole.checksum);
    const int operations = atoi(whole.operations);
    cr_assert(operations >= least, "%d", operations);
    for (int i = 2; i <= 2 * operations + 1; i++) {
        snprintf(spec, sizeof spec, "%s,%s=%d", accel, i % 2 ? "fault" : "late", i / 2);
        const struct ended failed = run_asking(spec, dir, "star7", "f64", false, asked);
        cr_assert_eq(failed.err, -EIO, "%s of %d: %d %s", spec, operations, failed.err, failed.why.text);
        cr_assert(strstr(failed.why.text, "the fault that was asked for") != NULL, "%s: %s", spec,
                  failed.why.text);
        const struct ended again = run_asking(i % 10 == 3 ? accel : NULL, dir, "", "", true, again_asked);
        cr_assert_eq(again.err, 1, "%s: %s", spec, again.why.text);
        cr_assert_str_eq(again.checksum, plain.checksum, "%s", spec);
    }
}

Test(accel, every_operation_may_fail) {
    char dir[256];
    make_dir(dir, sizeof dir);
    fail_each("host", dir, NULL, NULL, 31);
    cr_assert_eq(rmdir(dir), 0);
}

/* The same where levels, seams, sources, probes, norms and frames are kernels and copies there, and where two
 * levels are one launch. */
static void every_operation_may_fail(const char *accel) {
    char dir[256], path[2][300], word[2][400], fused[32];
    mx_accel_close(open_accel(accel, 0));
    snprintf(fused, sizeof fused, "%s,fuse=2", accel);
    make_dir(dir, sizeof dir);
    snprintf(path[0], sizeof path[0], "%s.probes", dir);
    snprintf(path[1], sizeof path[1], "%s.traces.npy", dir);
    FILE *f = fopen(path[0], "w");
    cr_assert(f != NULL);
    for (int i = 0; i < 5; i++) fprintf(f, "u %d %d %d\n", i, i % 4, i);
    fclose(f);
    snprintf(word[0], sizeof word[0], "probes=%s", path[0]);
    snprintf(word[1], sizeof word[1], "probes-out=%s", path[1]);
    const char *const strips[] = {"size=6 7 5", "steps=3", "plan=stream by=4 bt=2 slab=9", "overwrite", NULL};
    const char *const asked[] = {"size=6 4 5", "steps=3",   "plan=stream bt=2 slab=9", word[0],
                                 word[1],      "overwrite", "side=x=periodic",         "side=y=mirror",
                                 "check=2",    NULL},
                      *const again_asked[] = {word[0], word[1], NULL};
    const char *const whole[] = {"size=34 9 6", "steps=9", "plan=resident bt=5", "overwrite", NULL};
    fail_each(accel, dir, strips, NULL, 31);
    fail_each(accel, dir, asked, again_asked, 31);
    fail_each(fused, dir, whole, NULL, 11);
    for (int i = 0; i < 2; i++) cr_assert_eq(unlink(path[i]), 0);
    cr_assert_eq(rmdir(dir), 0);
}

Test(accel, every_operation_of_opencl_may_fail, .timeout = 900) { every_operation_may_fail("opencl"); }
Test(accel, every_operation_of_cuda_may_fail, .timeout = 900) { every_operation_may_fail("cuda"); }

/* Stencils that are built in are cells of text to a device. */
static void stencils_have_the_bits_of_the_cpu(const char *accel) {
    static const char *const runs[][2] = {{"box27", "f32"}, {"star19", "f64"}};
    char dir[256];
    mx_accel_close(open_accel(accel, 0));
    make_dir(dir, sizeof dir);
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        const struct ended cpu = run_with(NULL, dir, runs[i][0], runs[i][1], false),
                           there = run_with(accel, dir, runs[i][0], runs[i][1], false);
        cr_assert_eq(there.err, 1, "%s: %s", runs[i][0], there.why.text);
        cr_assert_str_eq(cpu.checksum, there.checksum, "%s %s", runs[i][0], runs[i][1]);
    }
    cr_assert_eq(rmdir(dir), 0);
}

Test(accel, stencils_of_opencl) { stencils_have_the_bits_of_the_cpu("opencl"); }
Test(accel, stencils_of_cuda) { stencils_have_the_bits_of_the_cpu("cuda"); }

/* Two levels in one launch, of grids that are no multiple of a group's cells, with levels left over; of whole
 * grids and of slabs that follow one another, with sweeps of any number of levels. */
static void fused_levels_have_the_bits_of_the_cpu(const char *accel) {
    static const struct {
        const char *stencil, *dtype, *steps, *plan;
        bool spares; /* launches, and that is counted */
    } runs[] = {{"star7", "f64", "steps=7", "plan=resident bt=7", true},
                {"box27", "f32", "steps=7", "plan=resident bt=7", true},
                {"star13", "f64", "steps=7", "plan=resident bt=7", true},
                {"star7", "f64", "steps=17", "plan=stream bt=8 slab=13", true},
                {"star7", "f64", "steps=13", "plan=stream bt=5 slab=3", true},
                {"box27", "f64", "steps=14", "plan=stream bt=6 slab=2 ahead=1", true},
                {"star13", "f32", "steps=11", "plan=stream bt=7 slab=5", true},
                {"star7", "f32", "steps=23", "plan=stream bt=23 slab=1", true},
                {"star7", "f64", "steps=9", "plan=stream bt=4 slab=90", true},
                {"star7", "f64", "steps=9", "plan=stream by=9 bt=4 slab=9", false}};
    char dir[256];
    mx_accel_close(open_accel(accel, 0));
    make_dir(dir, sizeof dir);
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        const char *const asked[] = {"size=75 21 70", runs[i].steps, runs[i].plan, NULL};
        int operations[3] = {0};
        const struct ended cpu = run_asking(NULL, dir, runs[i].stencil, runs[i].dtype, false, asked);
        for (int fuse = 0; fuse <= 2; fuse++) {
            char spec[32];
            snprintf(spec, sizeof spec, fuse > 0 ? "%s,fuse=%d" : "%s", accel, fuse);
            const struct ended there = run_asking(spec, dir, runs[i].stencil, runs[i].dtype, false, asked);
            cr_assert_eq(there.err, 1, "%s: %s", runs[i].plan, there.why.text);
            cr_assert_str_eq(cpu.checksum, there.checksum, "%s %s %s, %d", runs[i].stencil, runs[i].dtype,
                             runs[i].plan, fuse);
            operations[fuse] = atoi(there.operations);
        }
        cr_assert((operations[2] < operations[1]) == runs[i].spares, "%s: %d and %d", runs[i].plan,
                  operations[2], operations[1]);
    }
    cr_assert_eq(rmdir(dir), 0);
}

Test(accel, fused_levels_of_opencl) { fused_levels_have_the_bits_of_the_cpu("opencl"); }
Test(accel, fused_levels_of_cuda) { fused_levels_have_the_bits_of_the_cpu("cuda"); }
