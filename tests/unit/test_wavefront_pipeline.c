/* SPDX-License-Identifier: BSD-3-Clause */
/* The wavefront: the pipeline on every backend, commits, and the plain walk that results are compared with.
 */
#include "wavefront/calctrans.h"
#include "wavefront/convert.h"
#include "wavefront/pipeline.h"
#include "wavefront/reference.h"
#include "wavefront/source.h"
#include "wavefront_tools.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <memext/backend.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rig {
    char dir[256];
    struct mx_wf_plan plan;
    struct mx_wf_source source;
    mx_device *device;
    mx_buffer *data[2], *fixed[MX_WF_MATRICES];
    struct matrices expected;
    /* commits */
    int commits, fail_at;
    int64_t done;
    int32_t buffer;
    bool check; /* look at both Buffers at each commit */
};

static void make_rig(struct rig *r, const char *backend, const char *fault, int64_t rows, int64_t cols,
                     enum mx_wf_layout layout, int64_t mb, int64_t nb) {
    const char *base = getenv("MEMEXT_TEST_DIR");
    mx_why why = {""};
    *r = (struct rig){.source = {.rows = rows, .cols = cols, .init = &mx_wf_inits[0]}, .fail_at = -1};
    for (int m = 0; m < MX_WF_MATRICES; m++) r->source.files[m].fd = -1;
    snprintf(r->dir, sizeof r->dir, "%.200s/mx-wavefront-XXXXXX", base != NULL ? base : "build");
    cr_assert(mkdtemp(r->dir) != NULL);
    const struct mx_device_options d = {.backend = backend, .path = r->dir, .fault = fault};
    cr_assert(mx_device_open(&d, &why, &r->device) == 0, "%s", why.text);
    struct mx_device_facts f = {.size = sizeof f};
    mx_device_facts(r->device, &f);
    r->plan.geometry = geometry(rows, cols, layout, mb, nb, f.offset_align_bytes);
    for (int i = 0; i < 2; i++)
        cr_assert(mx_buffer_create(r->device, i ? "za-1" : "za-0",
                                   (uint64_t)mx_wf_buffer_bytes(&r->plan.geometry, MX_WF_ZA), &why,
                                   &r->data[i]) == 0,
                  "%s", why.text);
    for (int m = MX_WF_ZR; m < MX_WF_MATRICES; m++)
        cr_assert(mx_buffer_create(r->device, mx_wf_names[m],
                                   (uint64_t)mx_wf_buffer_bytes(&r->plan.geometry, (enum mx_wf_matrix)m),
                                   &why, &r->fixed[m]) == 0,
                  "%s", why.text);
    r->expected = make_matrices(rows, cols);
}

static int fill_rig(struct rig *r) {
    int err = 0;
    for (int m = 0; m < MX_WF_MATRICES && err == 0; m++) {
        const struct mx_wf_conversion c = {.geometry = &r->plan.geometry,
                                           .matrix = (enum mx_wf_matrix)m,
                                           .device = r->device,
                                           .buffer = m == MX_WF_ZA ? r->data[0] : r->fixed[m]};
        err = mx_wf_store_matrix(&c, &r->source);
    }
    return err;
}

static void free_rig(struct rig *r) {
    char command[300];
    for (int i = 0; i < 2; i++) mx_buffer_close(r->data[i]);
    for (int m = 0; m < MX_WF_MATRICES; m++) mx_buffer_close(r->fixed[m]);
    mx_device_close(r->device);
    free_matrices(&r->expected);
    snprintf(command, sizeof command, "rm -rf '%s'", r->dir);
    cr_assert(system(command) == 0);
}

struct look {
    const struct matrices *expected;
    int64_t different;
};

static int compare(void *context, int64_t r0, int64_t n, double *rows) {
    struct look *l = context;
    const int64_t w = l->expected->width;
    for (int64_t x = 0; x < n * w; x++)
        l->different += memcmp(&rows[x], &l->expected->z[MX_WF_ZA][r0 * w + x], CELL) != 0;
    return 0;
}

/* Cells of the data in a Buffer that are not those of the loop. */
static int64_t differences(struct rig *r, int32_t buffer, const struct matrices *expected) {
    struct look l = {expected, 0};
    const struct mx_wf_conversion c = {
        .geometry = &r->plan.geometry, .matrix = MX_WF_ZA, .device = r->device, .buffer = r->data[buffer]};
    cr_assert(mx_wf_fetch_matrix(&c, compare, &l) == 0);
    return l.different;
}

/* At a commit the Buffer that is committed holds the loop's state, and the other one still that of the commit
 * before: a crash between the two finds one or the other whole. */
static int on_commit(void *context, int64_t done, int32_t buffer) {
    struct rig *r = context;
    if (r->commits++ == r->fail_at) return -ENOSPC;
    if (r->check) {
        cr_assert(differences(r, 1 - buffer, &r->expected) == 0, "the state before %lld was overwritten",
                  (long long)done);
        iterate(&r->expected, done - r->done);
        cr_assert(differences(r, buffer, &r->expected) == 0, "what is committed is not iteration %lld",
                  (long long)done);
    }
    r->done = done;
    r->buffer = buffer;
    return 0;
}

static int execute(struct rig *r, int64_t iterations, const atomic_int *stop, struct mx_wf_executed *done) {
    struct mx_wf_execution x = {.plan = &r->plan,
                                .iterations = iterations,
                                .device = r->device,
                                .data = {r->data[0], r->data[1]},
                                .stop = stop,
                                .commit = on_commit,
                                .context = r};
    mx_why why = {""};
    memcpy(x.fixed, r->fixed, sizeof x.fixed);
    return mx_wf_execute(&x, &why, done);
}

static bool works(const char *backend) {
    const struct mx_backend *b = mx_backend_find(backend);
    return b != NULL && (b->probe == NULL || b->probe(NULL, NULL) == 0);
}

/* 25 random plans on each backend: the bits of the loop, the bytes of the prediction, the DRAM of the
 * prediction, a commit a pass. */
static void any_plan_has_the_bits_of_the_loop(const char *backend) {
    if (!works(backend)) cr_skip_test("%s does not work here", backend);
    for (int n = 0; n < 25; n++) {
        struct rig r;
        struct mx_wf_executed done;
        struct mx_wf_traffic t;
        struct mx_counters before = {.size = sizeof before}, after = {.size = sizeof after};
        const int64_t iterations = pick(0, 11);
        /* wide rows: workers follow one another within them */
        make_rig(&r, backend, NULL, pick(1, 60), n % 3 == 1 ? pick(1500, 3000) : pick(1, 200),
                 (enum mx_wf_layout)(n / 3 % 3), pick(1, 20), n % 3 == 1 ? pick(300, 3000) : pick(1, 220));
        r.plan.waves = pick(1, 6);
        r.plan.threads = (int32_t)pick(1, 4);
        r.plan.ahead = pick(1, 5);
        r.plan.behind = pick(1, 4);
        r.plan.unchained = n % 5 == 0;
        r.check = n % 2 == 0;
        cr_assert(fill_rig(&r) == 0);
        mx_device_counters(r.device, &before);
        cr_assert(execute(&r, iterations, NULL, &done) == 0);
        mx_device_counters(r.device, &after);
        mx_wf_predict(&r.plan, iterations, &t);
        cr_assert(done.done == iterations && done.updates == t.updates && r.commits == t.passes);
        if (!r.check) {
            cr_assert(after.read_bytes - before.read_bytes == (uint64_t)t.read_bytes);
            cr_assert(after.write_bytes - before.write_bytes == (uint64_t)t.write_bytes);
            iterate(&r.expected, iterations);
        }
        cr_assert(done.block_bytes == (uint64_t)mx_wf_dram_bytes(&r.plan));
        cr_assert(differences(&r, done.result, &r.expected) == 0,
                  "%s, %s, %lld x %lld, tiles %lld x %lld, %lld waves, %d threads", backend,
                  mx_wf_layouts[r.plan.geometry.layout], (long long)r.source.rows, (long long)r.source.cols,
                  (long long)r.plan.geometry.mb, (long long)r.plan.geometry.nb, (long long)r.plan.waves,
                  r.plan.threads);
        free_rig(&r);
    }
}

Test(wavefront, on_dram) { any_plan_has_the_bits_of_the_loop("dram"); }
Test(wavefront, on_mmap) { any_plan_has_the_bits_of_the_loop("mmap"); }
Test(wavefront, on_aio) { any_plan_has_the_bits_of_the_loop("aio"); }
Test(wavefront, on_uring) { any_plan_has_the_bits_of_the_loop("uring"); }

static struct rig small_rig(const char *backend, const char *fault) {
    struct rig r;
    make_rig(&r, backend, fault, 40, 70, MX_WF_FRONTIER, 8, 30);
    r.plan.waves = 2, r.plan.threads = 3, r.plan.ahead = 2, r.plan.behind = 2;
    return r;
}

/* A transfer that fails ends the run with its error, from any moment on: no thread hangs, and what was
 * committed before is whole. */
Test(wavefront, a_failing_device_ends_the_run) {
    int failed = 0;
    for (int after = 12; after < 400; after += 23) {
        char fault[64];
        struct mx_wf_executed done;
        snprintf(fault, sizeof fault, "fail_after=%d", after);
        struct rig r = small_rig("fault:aio", fault);
        int err = fill_rig(&r);
        if (err == 0) err = execute(&r, 9, NULL, &done);
        cr_assert(err == 0 || err == -EIO || err == -ENODEV || err == -ENXIO, "%d", err);
        failed += err < 0;
        free_rig(&r);
    }
    cr_assert(failed > 5, "%d runs failed", failed);
}

Test(wavefront, a_failing_commit_ends_the_run) {
    for (int at = 0; at < 4; at++) {
        struct rig r = small_rig("dram", NULL);
        struct mx_wf_executed done;
        r.fail_at = at;
        cr_assert(fill_rig(&r) == 0);
        cr_assert(execute(&r, 8, NULL, &done) == -ENOSPC);
        cr_assert(done.done == 2 * at && done.result == at % 2);
        iterate(&r.expected, 2 * at);
        cr_assert(differences(&r, done.result, &r.expected) == 0);
        free_rig(&r);
    }
}

/* A run that is told to stop before it begins does nothing; the state it began with stays. */
Test(wavefront, stops_when_told) {
    struct rig r = small_rig("dram", NULL);
    struct mx_wf_executed done;
    const atomic_int stop = 1;
    cr_assert(fill_rig(&r) == 0);
    cr_assert(execute(&r, 8, &stop, &done) == -EINTR);
    cr_assert(done.done == 0 && differences(&r, done.result, &r.expected) == 0);
    free_rig(&r);
}

/* ------------------------------------------------------------------ the comparison itself */

/* Rows of the walk = the loop, with DRAM for all waves at once and with so little that there are many walks.
 */
Test(wavefront, the_walk_has_the_bits_of_the_loop) {
    for (int64_t rows = 3; rows < 40; rows += 18)
        for (int little = 0; little < 2; little++) {
            struct rig r;
            struct mx_wf_walk *walk;
            mx_buffer *scratch;
            mx_why why = {""};
            make_rig(&r, "dram", NULL, rows, 21, MX_WF_ROW, 5, 8);
            cr_assert(mx_buffer_create(r.device, "scratch", (uint64_t)mx_wf_scratch_bytes(rows, 21, 1), &why,
                                       &scratch) == 0);
            const struct mx_wf_walk_options o = {.source = &r.source,
                                                 .iterations = 7,
                                                 .dram_bytes = little ? 6 * 4 * 192 : 1 << 20,
                                                 .device = r.device,
                                                 .scratch = scratch,
                                                 .align_bytes = 1,
                                                 .why = &why};
            cr_assert(mx_wf_walk_open(&o, &walk) == 0, "%s", why.text);
            iterate(&r.expected, 7);
            for (int64_t i = 0; i < rows + 2; i++) {
                const double *row;
                cr_assert(mx_wf_walk_next(walk, &row) == 0);
                cr_assert(memcmp(row, r.expected.z[MX_WF_ZA] + i * r.expected.width,
                                 (size_t)r.expected.width * CELL) == 0);
            }
            mx_wf_walk_close(walk);
            mx_buffer_close(scratch);
            free_rig(&r);
        }
}
