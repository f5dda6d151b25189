/* SPDX-License-Identifier: BSD-3-Clause */
/* accel/cuda.c, with a driver and a compiler that need no device (tests/fake_cuda): memory, copies, queues
 * and limits as accel.h says; runs have the bits of the CPU, whether operations are done at once or as late
 * as they may be; any call of the driver may fail once, or from then on; nothing is left over, and the
 * context of the caller's thread stays what it was. */
#include "../fake_cuda/fake_cuda.h"
#include "accel/accel.h"
#include "accel_runs.h"
#include "effort.h"

#include <errno.h>
#include <unistd.h>

static mx_accel *open_cuda(const char *spec) {
    const struct mx_accel_options o = {.spec = spec};
    mx_accel *a = NULL;
    mx_why why = {""};
    cr_assert(mx_accel_open(&o, &why, &a) == 0, "%s", why.text);
    return a;
}

/* Processes of a machine take devices in turns, and those that take the same one have parts of it. */
Test(cuda, several_processes) {
    static const int32_t number[] = {0, 1, 2, 0, 1}, sharers[] = {2, 2, 1, 2, 2};
    fake_cuda_set(&(struct fake_cuda){.devices = 3});
    mx_accel *a = open_cuda("cuda");
    const uint64_t all = mx_accel_facts(a)->memory_bytes;
    cr_assert_eq(mx_accel_facts(a)->number, -1);
    cr_assert_eq(mx_accel_facts(a)->sharers, 1);
    mx_accel_close(a);
    for (int32_t i = 0; i < 5; i++) {
        struct mx_accel_options o = {.spec = "cuda,fuse=1", .place = i, .places = 5};
        mx_why why = {""};
        cr_assert_eq(mx_accel_open(&o, &why, &a), 0, "%s", why.text);
        const struct mx_accel_facts *f = mx_accel_facts(a);
        cr_assert(f->number == number[i] && f->sharers == sharers[i], "%d %d", f->number, f->sharers);
        cr_assert_eq(f->memory_bytes, all / (uint64_t)sharers[i]);
        mx_accel_close(a);
        o.memory_bytes = all / 2 + 1;
        const int err = mx_accel_open(&o, &why, &a);
        cr_assert_eq(err, sharers[i] > 1 ? -ENOMEM : 0);
        if (err == 0) mx_accel_close(a);
        if (err < 0) cr_assert(strstr(why.text, "2 ranks share") != NULL, "%s", why.text);
    }
    const struct mx_accel_options named = {.spec = "cuda,device=2", .place = 1, .places = 3};
    mx_why why = {""};
    cr_assert_eq(mx_accel_open(&named, &why, &a), 0, "%s", why.text);
    cr_assert(mx_accel_facts(a)->number == 2 && mx_accel_facts(a)->sharers == 3);
    mx_accel_close(a);
}

/* Through all four queues, more operations than a queue has events for at first, and rows at pitches beyond
 * what the device copies at once. */
Test(cuda, copies_and_queues) {
    enum { PITCH = 700, OTHER = 420, N = 9, BYTES = 333, ALL = PITCH * (N + 2), PIECES = 200 };
    for (int i = 0; i < 4; i++) {
        fake_cuda_set(&(struct fake_cuda){.late = i & 1, .max_pitch = i & 2 ? OTHER : 0});
        mx_accel *a = open_cuda("cuda");
        char *from = take(a, ALL), *to = take(a, ALL), here[ALL], want[ALL], back[ALL];
        for (int k = 0; k < ALL; k++) here[k] = (char)(k * 2654435761u >> 13);
        memset(want, 0x55, ALL);
        const struct mx_accel_span in[2] = {{from, here, ALL}, {to, want, ALL}}, out = {to, back, ALL};
        cr_assert_eq(mx_accel_wait(a, MX_ACCEL_PUT, mx_accel_put(a, in, 2)), 0);
        int64_t number = 0;
        for (int k = 0; k < PIECES; k++) {
            const struct mx_accel_copy c = {.to = to + 30,
                                            .from = from + 1 + k % 2 * PITCH,
                                            .to_pitch = OTHER,
                                            .from_pitch = PITCH,
                                            .bytes = BYTES,
                                            .n = N};
            number = mx_accel_copy(a, MX_ACCEL_COPY, &c);
            cr_assert_eq(number, k + 1);
        }
        for (int k = 0; k < N; k++)
            memcpy(want + 30 + k * OTHER, here + 1 + (k + (PIECES - 1) % 2) * PITCH, BYTES);
        while (!mx_accel_is_done(a, MX_ACCEL_COPY, number)) {
        }
        cr_assert_eq(mx_accel_wait(a, MX_ACCEL_GET, mx_accel_get(a, &out, 1)), 0);
        cr_assert_eq(mx_accel_error(a, NULL), 0);
        cr_assert_eq(memcmp(want, back, ALL), 0);
        mx_accel_close(a); /* gives back what was allocated */
        cr_assert_eq(fake_cuda_left(), 0);
    }
}

Test(cuda, limits) {
    fake_cuda_set(&(struct fake_cuda){.bytes = 1 << 20, .devices = 3});
    mx_accel *a = open_cuda("cuda,device=2");
    mx_why why = {""};
    char *address = NULL;
    const struct mx_accel_facts *f = mx_accel_facts(a);
    cr_assert(strcmp(f->device, "fake device 2") == 0 && !f->here, "%s", f->device);
    cr_assert(f->memory_bytes < 1 << 20 && f->memory_bytes > 1 << 19); /* the driver needs some itself */
    cr_assert_eq(mx_accel_alloc(a, f->memory_bytes + 1, "a ring", &why, &address), -ENOMEM);
    cr_assert_eq(mx_accel_alloc(a, f->memory_bytes, "a ring", &why, &address), 0);
    mx_accel_close(a);
    const struct mx_accel_options o = {.spec = "cuda,device=3"};
    cr_assert_eq(mx_accel_open(&o, &why, &a), -EINVAL);
    cr_assert(strstr(why.text, "0 to 2") != NULL, "%s", why.text);
    cr_assert_eq(fake_cuda_left(), 0);
}

/* What a run asks of a device: a ring with strips and seams, sources and probes and norms and frames,
 * everything there at once with two levels a launch. */
static const char *const strips[] = {"size=9 8 7", "steps=4", "plan=stream by=5 bt=2 slab=3", "overwrite",
                                     NULL};
static const char *const whole[] = {"size=75 9 6", "steps=5", "plan=resident bt=5", "overwrite", NULL};
static const char *const around[] = {"size=12 9 11",  "steps=5",         "plan=stream bt=2 slab=4",
                                     "overwrite",     "side=x=periodic", "side=z=mirror",
                                     "side=y=mirror", "check=2",         NULL};
static void same_bits(const char *spec, const char *stencil, const char *dtype, const char *const *asked) {
    char dir[256];
    make_dir(dir, sizeof dir);
    for (int late = 0; late < 2; late++) {
        fake_cuda_set(&(struct fake_cuda){.late = late != 0, .max_planes = late ? 3 : 0});
        const struct ended cpu = run_asking(NULL, dir, stencil, dtype, false, asked),
                           there = run_asking(spec, dir, stencil, dtype, false, asked);
        cr_assert_eq(there.err, 1, "%s: %s", stencil, there.why.text);
        cr_assert_str_eq(cpu.checksum, there.checksum, "%s %s, %d", stencil, dtype, late);
        cr_assert_gt(fake_cuda_launches(), 0);
        cr_assert_eq(fake_cuda_left(), 0, "%ld", (long)fake_cuda_left());
    }
    cr_assert_eq(rmdir(dir), 0);
}

Test(cuda, strips_have_the_bits_of_the_cpu) {
    same_bits("cuda", "star7", "f64", strips);
    same_bits("cuda", "box27", "f32", strips);
}
Test(cuda, what_follows_a_level_has_the_bits_of_the_cpu) { same_bits("cuda", "star13", "f64", around); }
Test(cuda, levels_one_by_one_have_the_bits_of_the_cpu) { same_bits("cuda,fuse=1", "star7", "f64", whole); }
Test(cuda, fused_levels_have_the_bits_of_the_cpu) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    cr_skip_test("work items have stacks of their own, which sanitizers do not follow");
#endif
    same_bits("cuda,fuse=2", "star7", "f64", whole);
}

/* What a failed run has left goes on without the accelerator; a run that failed before it had a store has
 * left nothing. */
static void go_on(const char *dir, const char *checksum, const char *what) {
    char store[300];
    snprintf(store, sizeof store, "%s/memext.store", dir);
    if (access(store, F_OK) != 0) return;
    const struct ended e = run_asking(NULL, dir, "", "", true, NULL);
    cr_assert_eq(e.err, 1, "%s: %s", what, e.why.text);
    if (checksum != NULL) cr_assert_str_eq(e.checksum, checksum, "%s", what);
}

/* A device that the compiler does not know gets PTX of the newest that it does. */
Test(cuda, a_device_newer_than_the_compiler) {
    char dir[256];
    make_dir(dir, sizeof dir);
    for (int arch = 120; arch > 0; arch -= 80) {
        fake_cuda_set(&(struct fake_cuda){.arch = arch});
        const struct ended e = run_asking("cuda", dir, "star7", "f64", false, strips);
        if (arch > 52)
            cr_assert_eq(e.err, 1, "%s", e.why.text);
        else
            cr_assert(e.err == -ENOTSUP && strstr(e.why.text, "compute capability 4.0") != NULL, "%s",
                      e.why.text);
        go_on(dir, NULL, "an architecture that is too old");
    }
    cr_assert_eq(rmdir(dir), 0);
}

/* Calls that may fail without anybody being the worse for it: memory stays unpinned, a name unknown, what is
 * given back is not. */
static bool may_fail(const char *name) {
    static const char *const names[] = {"cuDeviceGetName",
                                        "cuCtxPopCurrent_v2",
                                        "cuMemHostRegister_v2",
                                        "cuMemHostUnregister",
                                        "cuMemFree_v2",
                                        "cuStreamDestroy_v2",
                                        "cuEventDestroy_v2",
                                        "cuModuleUnload",
                                        "cuDeviceGetAttribute",
                                        "nvrtcDestroyProgram",
                                        "cuDevicePrimaryCtxRelease_v2",
                                        "cuStreamSynchronize",
                                        "cuCtxPushCurrent_v2"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* The k-th call of a run fails, alone or with all that follow it: a sentence, and a store that goes on. */
static void fail_call(int64_t k, bool sticky, const char *dir, const char *checksum,
                      const char *const *asked) {
    fake_cuda_set(&(struct fake_cuda){.fail = k, .sticky = sticky});
    const struct ended e = run_asking("cuda", dir, "star7", "f64", false, asked);
    const char *name = fake_cuda_failed();
    if (name == NULL) { /* how often somebody asks whether something is done is not the same each time */
        cr_assert_eq(e.err, 1, "call %ld: %s", (long)k, e.why.text);
        return;
    }
    if (!sticky && !may_fail(name)) cr_assert_eq(fake_cuda_left(), 0, "%s, call %ld", name, (long)k);
    if (e.err == 1) {
        cr_assert(may_fail(name), "%s, call %ld: nobody saw it fail", name, (long)k);
        cr_assert_str_eq(e.checksum, checksum, "%s, call %ld", name, (long)k);
        return;
    }
    const bool compiler = strncmp(name, "nvrtc", 5) == 0 || strstr(e.why.text, "compute capability") != NULL;
    cr_assert(e.err == -EIO || e.err == -ENODEV || (e.err == -ENOTSUP && compiler), "%s, call %ld: %d %s",
              name, (long)k, e.err, e.why.text);
    cr_assert_gt(strlen(e.why.text), 20, "%s, call %ld: '%s'", name, (long)k, e.why.text);
    go_on(dir, checksum, name);
}

Test(cuda, every_call_may_fail, .timeout = 900) {
    char dir[256];
    make_dir(dir, sizeof dir);
    fake_cuda_set(&(struct fake_cuda){.devices = 1});
    const struct ended cpu = run_asking(NULL, dir, "star7", "f64", false, strips),
                       there = run_asking("cuda", dir, "star7", "f64", false, strips);
    const int64_t calls = fake_cuda_calls();
    cr_assert_eq(there.err, 1, "%s", there.why.text);
    cr_assert_str_eq(cpu.checksum, there.checksum);
    cr_assert_gt(calls, 200);
    const int64_t step = calls / mx_cases((int)calls, 3);
    for (int64_t k = 1; k <= calls; k += step) fail_call(k, k / step % 2, dir, cpu.checksum, strips);
    fake_cuda_set(
        &(struct fake_cuda){.devices = 1}); /* the last one may be still to come, with all after it */
    const struct ended again = run_asking("cuda", dir, "star7", "f64", false, strips);
    cr_assert_eq(again.err, 1, "%s", again.why.text);
    cr_assert_str_eq(cpu.checksum, again.checksum);
    cr_assert_eq(rmdir(dir), 0);
}
