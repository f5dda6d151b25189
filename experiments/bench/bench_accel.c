/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_accel - what an accelerator does by itself, as one JSON object: bytes per second to it, from it and
 * both at once, and updates per second of arrays that stay in its memory. Numbers, no verdict.
 *
 *     bench_accel SPEC [STENCIL [f64|f32 [N [LEVELS]]]]     SPEC as of --accel; a grid of N^3 cells, default
 * 384
 */
#include "accel/accel.h"
#include "engine/engine.h"
#include "execute/execute.h"
#include "grid/grid.h"
#include "machine/clock.h"
#include "machine/machine.h"
#include "stencil/stencil.h"

#include <memext/backend.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PIECE = 64 << 20, PIECES = 16, ROUNDS = 3 };

static void check(int err, const char *what, const mx_why *why) {
    if (err >= 0) return;
    fprintf(stderr, "bench_accel: %s: %s\n", what, why->text[0] != 0 ? why->text : strerror(-err));
    exit(2);
}

static char *pages(size_t bytes) {
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (p == MAP_FAILED) check(-12, "DRAM", &(mx_why){""});
    return p;
}

/* Bytes per second of one direction, with the other one busy or not; the best of some rounds. */
static void bus(mx_accel *a, double rate[3]) {
    mx_why why = {""};
    char *there[2], *host = pages(2 * (size_t)PIECE);
    for (int i = 0; i < 2; i++) check(mx_accel_alloc(a, PIECE, "a copy", &why, &there[i]), "memory", &why);
    check(mx_accel_stage(a, host, 2 * (uint64_t)PIECE, &why), "pinned memory", &why);
    const struct mx_accel_span in = {there[0], host, PIECE}, out = {there[1], host + PIECE, PIECE};
    for (int round = 0; round < 3 * ROUNDS; round++) {
        const int mode = round % 3;
        int64_t put = 0, get = 0;
        const uint64_t begin = mx_clock_ns();
        for (int i = 0; i < PIECES; i++) {
            if (mode != 1) put = mx_accel_put(a, &in, 1);
            if (mode != 0) get = mx_accel_get(a, &out, 1);
        }
        if (put > 0) mx_accel_wait(a, MX_ACCEL_PUT, put);
        if (get > 0) mx_accel_wait(a, MX_ACCEL_GET, get);
        check(mx_accel_error(a, &why), "a copy", &why);
        const double r = (double)PIECE * PIECES / ((double)(mx_clock_ns() - begin) * 1e-9);
        if (r > rate[mode]) rate[mode] = r;
    }
    mx_accel_unstage(a, host);
    for (int i = 0; i < 2; i++) mx_accel_release(a, there[i]);
    munmap(host, 2 * (size_t)PIECE);
}

static double updates(mx_accel *a, const struct mx_problem *p, int32_t levels) {
    mx_why why = {""};
    struct mx_machine machine;
    struct mx_layout l;
    mx_engine *engine;
    const struct mx_engine_ops *ops = mx_engine_find("device");
    check(mx_machine_detect(&why, &machine), "machine", &why);
    check(mx_layout_make(p, 64, false, &why, &l), "layout", &why);
    struct mx_engine_options o = {.problem = p,
                                  .machine = &machine,
                                  .row_pitch_bytes = l.row_pitch_bytes,
                                  .threads = machine.cores,
                                  .levels = levels,
                                  .rows = l.rows,
                                  .planes = p->nz,
                                  .accel = a};
    check(ops->create(&o, &why, &engine), "engine", &why);
    struct mx_view v = {.slots = {l.planes, l.planes},
                        .plane_pitch_bytes = l.plane_pitch_bytes,
                        .row_pitch_bytes = l.row_pitch_bytes};
    char *zero = pages((size_t)l.plane_pitch_bytes);
    for (int i = 0; i < 2; i++) {
        check(mx_accel_alloc(a, (uint64_t)l.buffer_bytes, "an array", &why, &v.base[i]), "memory", &why);
        for (int64_t z = 0; z < l.planes; z++) {
            const struct mx_accel_span s = {v.base[i] + z * l.plane_pitch_bytes, zero,
                                            (uint64_t)l.plane_pitch_bytes};
            mx_accel_wait(a, MX_ACCEL_PUT, mx_accel_put(a, &s, 1));
        }
    }
    struct mx_window *w = calloc((size_t)levels, sizeof *w);
    for (int32_t i = 0; i < levels; i++)
        w[i] = (struct mx_window){p->h, (int32_t)p->ny + p->h, p->h, (int32_t)p->nz + p->h};
    const struct mx_advance call = {.view = v, .levels = levels, .window = w};
    double best = 0;
    for (int round = 0; round <= ROUNDS; round++) { /* the first compiles */
        const uint64_t begin = mx_clock_ns();
        ops->wait(engine, ops->post(engine, &call));
        check(mx_accel_error(a, &why), "a launch", &why);
        const double r =
            (double)p->nx * (double)p->ny * (double)p->nz * levels / ((double)(mx_clock_ns() - begin) * 1e-9);
        if (round > 0 && r > best) best = r;
    }
    ops->free(engine);
    for (int i = 0; i < 2; i++) mx_accel_release(a, v.base[i]);
    munmap(zero, (size_t)l.plane_pitch_bytes);
    free(w);
    return best;
}

int main(int argc, char **argv) {
    mx_why why = {""};
    mx_accel *a;
    double rate[3] = {0, 0, 0};
    const struct mx_stencil *s = mx_stencil_find(argc > 2 ? argv[2] : "star7");
    const int64_t n = argc > 4 ? atoll(argv[4]) : 384;
    const int32_t levels = argc > 5 ? atoi(argv[5]) : 32;
    if (argc < 2 || s == NULL || n < 1 || levels < 1) {
        fprintf(stderr, "usage: bench_accel SPEC [STENCIL [f64|f32 [N [LEVELS]]]]\n");
        return 2;
    }
    struct mx_problem p = {.nx = n,
                           .ny = n,
                           .nz = n,
                           .nt = levels,
                           .h = s->h,
                           .dtype = argc > 3 && strcmp(argv[3], "f32") == 0 ? MX_F32 : MX_F64};
    snprintf(p.stencil, sizeof p.stencil, "%s", s->name);
    memcpy(p.coef, s->coef, sizeof p.coef);
    check(mx_accel_open(&(struct mx_accel_options){.spec = argv[1]}, &why, &a), argv[1], &why);
    bus(a, rate);
    const double u = updates(a, &p, levels);
    printf(
        "{\"accelerator\": \"%s\", \"device\": \"%s\", \"put_bytes_per_s\": %.4g, \"get_bytes_per_s\": %.4g, "
        "\"both_bytes_per_s_each\": %.4g, \"stencil\": \"%s\", \"dtype\": \"%s\", \"n\": %lld, \"levels\": "
        "%d, "
        "\"updates_per_second\": %.5g}\n",
        mx_accel_facts(a)->name, mx_accel_facts(a)->device, rate[0], rate[1], rate[2], s->name,
        mx_dtype_name(p.dtype), (long long)n, levels, u);
    mx_accel_close(a);
    return 0;
}
