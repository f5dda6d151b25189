/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate_accel.c - a short measurement of an accelerator: the bus, both ways at once as runs use it, and
 * the kernel. */
#include "machine/clock.h"
#include "tune/job.h"
#include "tune/trial.h"

#include "accel/accel.h"
#include "execute/execute.h"

#include <memext/backend.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, PIECE_BYTES = 8 << 20, PIECES = 4, UNDER_WAY = 2, LEVELS = 8 };
enum { KERNEL_BYTES = 1 << 30 }; /* of both arrays: more than caches hold */

/* ------------------------------------------------------------------ the bus */

struct bus {
    mx_accel *accel;
    char *there[2], *host[2]; /* PIECES of piece_bytes each: to be put to, to be got from */
    uint64_t piece_bytes;
};

static struct mx_accel_span span_of(const struct bus *b, int way, int64_t i) {
    const uint64_t at = (uint64_t)(i % PIECES) * b->piece_bytes;
    return (struct mx_accel_span){b->there[way] + at, b->host[way] + at, b->piece_bytes};
}

/* Each way as many as the other, a few under way. */
static int move(const struct bus *b, double seconds, double *rate) {
    const uint64_t begin = mx_clock_ns();
    int64_t number[2] = {0, 0}, n = 0;
    while (n < 2 * UNDER_WAY || (double)(mx_clock_ns() - begin) < seconds * 1e9) {
        const struct mx_accel_span in = span_of(b, 0, n), out = span_of(b, 1, n);
        number[0] = mx_accel_put(b->accel, &in, 1);
        number[1] = mx_accel_get(b->accel, &out, 1);
        if (number[0] < 0 || number[1] < 0) return mx_accel_error(b->accel, NULL);
        n++;
        mx_accel_wait(b->accel, MX_ACCEL_PUT, number[0] - UNDER_WAY);
        mx_accel_wait(b->accel, MX_ACCEL_GET, number[1] - UNDER_WAY);
    }
    mx_accel_wait(b->accel, MX_ACCEL_PUT, number[0]);
    mx_accel_wait(b->accel, MX_ACCEL_GET, number[1]);
    *rate = (double)n * (double)b->piece_bytes / ((double)(mx_clock_ns() - begin) * 1e-9);
    return mx_accel_error(b->accel, NULL);
}

static int measure_bus(mx_accel *accel, double seconds, mx_why *why, struct mx_accel_rates *out) {
    const struct mx_accel_facts *f = mx_accel_facts(accel);
    struct bus b = {.accel = accel, .piece_bytes = PIECE_BYTES};
    double rate = 0;
    while (b.piece_bytes > PAGE && 2 * PIECES * b.piece_bytes > f->memory_bytes / 2) b.piece_bytes /= 2;
    const uint64_t bytes = PIECES * b.piece_bytes;
    char *host = aligned_alloc(PAGE, 2 * bytes);
    if (host == NULL) return mx_fail(why, -ENOMEM, "no memory to measure the bus of an accelerator");
    memset(host, 0, 2 * bytes);
    b.host[0] = host, b.host[1] = host + bytes;
    int err = mx_accel_stage(accel, host, 2 * bytes, why);
    const bool staged = err == 0;
    for (int i = 0; i < 2 && err == 0; i++)
        err = mx_accel_alloc(accel, bytes, "a measurement", why, &b.there[i]);
    if (err == 0 && (move(&b, seconds / 4, &rate) < 0 || move(&b, seconds, &rate) < 0))
        err = mx_accel_error(accel, why);
    for (int i = 0; i < 2; i++) mx_accel_release(accel, b.there[i]);
    if (staged) mx_accel_unstage(accel, host);
    free(host);
    if (err == 0) out->put_bytes_per_s = out->get_bytes_per_s = rate;
    return err;
}

/* ------------------------------------------------------------------ the kernel */

struct bench {
    mx_accel *accel;
    struct mx_trial trial;
    struct mx_view view;
    struct mx_fixed_view fixed[MX_MAX_FIXED];
    char *zero; /* a plane */
};

/* Zeros: whatever memory held might be numbers that take longer. */
static int take_zeros(struct bench *b, int64_t bytes, mx_why *why, char **out) {
    const int64_t piece = b->trial.layout.plane_pitch_bytes;
    int err = mx_accel_alloc(b->accel, (uint64_t)bytes, "a measurement", why, out);
    for (int64_t done = 0; done < bytes && err == 0; done += piece) {
        const struct mx_accel_span s = {*out + done, b->zero, (uint64_t)mx_min(piece, bytes - done)};
        const int64_t number = mx_accel_put(b->accel, &s, 1);
        if (number < 0 || mx_accel_wait(b->accel, MX_ACCEL_PUT, number) < 0)
            err = mx_accel_error(b->accel, why);
    }
    return err;
}

static int make_arrays(struct bench *b, mx_why *why) {
    const struct mx_layout *l = &b->trial.layout;
    b->zero = calloc(1, (size_t)l->plane_pitch_bytes);
    if (b->zero == NULL) return mx_fail(why, -ENOMEM, "no memory to measure the kernel of an accelerator");
    b->view = (struct mx_view){.slots = {l->planes, l->planes},
                               .plane_pitch_bytes = l->plane_pitch_bytes,
                               .row_pitch_bytes = l->row_pitch_bytes,
                               .fixed = b->fixed};
    int err = 0;
    for (int i = 0; i < 2 && err == 0; i++) err = take_zeros(b, l->buffer_bytes, why, &b->view.base[i]);
    for (int32_t i = 0; i < mx_fixed_count(&b->trial.problem) && err == 0; i++) {
        char *base = NULL;
        err = take_zeros(b, l->fixed[i].bytes, why, &base);
        b->fixed[i] = mx_trial_fixed(&b->trial, i, base);
    }
    return err;
}

/* The first call compiles. */
static int run_kernel(struct bench *b, const struct mx_machine *machine, int32_t threads, double seconds,
                      mx_why *why, double *rate) {
    const struct mx_engine_ops *ops = mx_engine_find("device");
    /* A kernel sees the steps of its own run alone. */
    const struct mx_problem *whole = &b->trial.problem;
    const int32_t levels =
        whole->system != NULL ? (int32_t)mx_max(1, mx_min(LEVELS, mx_levels_of(whole, whole->nt))) : LEVELS;
    const struct mx_engine_options o = {.problem = &b->trial.problem,
                                        .machine = machine,
                                        .row_pitch_bytes = b->trial.layout.row_pitch_bytes,
                                        .threads = threads,
                                        .levels = levels,
                                        .rows = b->trial.layout.rows,
                                        .planes = b->trial.problem.nz,
                                        .accel = b->accel};
    mx_engine *engine = NULL;
    int err = ops->create(&o, why, &engine);
    if (err < 0) return err;
    const struct mx_advance a = {.view = b->view, .levels = levels, .window = b->trial.window};
    double done = 0;
    uint64_t begin = 0, spent = 0;
    for (int i = 0; (i < 2 || (double)spent < seconds * 1e9) && err == 0; i++) {
        mx_engine_advance(ops, engine, &a);
        err = mx_accel_error(b->accel, why);
        if (i == 0)
            begin = mx_clock_ns();
        else
            done += levels;
        spent = mx_clock_ns() - begin;
    }
    ops->free(engine);
    const struct mx_problem *p = &b->trial.problem;
    if (err == 0)
        *rate = done / (double)mx_levels_a_step(p) * (double)p->nx * (double)p->ny * (double)p->nz /
                ((double)spent * 1e-9);
    return err;
}

static int measure_kernel(const struct mx_problem *p, const struct mx_machine *machine, int32_t threads,
                          mx_accel *accel, double seconds, mx_why *why, double *rate) {
    const uint64_t memory = mx_accel_facts(accel)->memory_bytes / 2;
    struct bench b = {.accel = accel};
    int err = mx_trial_make(p, memory < KERNEL_BYTES ? memory : KERNEL_BYTES, why, &b.trial);
    if (err == 0) err = make_arrays(&b, why);
    if (err == 0) err = run_kernel(&b, machine, threads, seconds, why, rate);
    for (int i = 0; i < MX_MAX_FIXED; i++) mx_accel_release(accel, b.fixed[i].base);
    for (int i = 0; i < 2; i++) mx_accel_release(accel, b.view.base[i]);
    free(b.zero);
    return err;
}

/* ------------------------------------------------------------------ both, kept */

int mx_calibrate_accel(const struct mx_problem *problem, const struct mx_machine *machine, int32_t threads,
                       mx_accel *accel, double seconds, mx_why *why, struct mx_accel_rates *out) {
    struct mx_accel_rates r = {0};
    if (!(seconds > 0)) seconds = 0.6;
    int err = measure_bus(accel, seconds / 2, why, &r);
    if (err == 0 && !mx_accel_facts(accel)->here)
        err = measure_kernel(problem, machine, threads, accel, seconds / 2, why, &r.updates_per_s);
    if (err == 0) *out = r;
    return err;
}

void mx_accel_rates_keys(const struct mx_machine *machine, const struct mx_problem *problem, int32_t threads,
                         const struct mx_accel_facts *f, struct mx_accel_keys *out) {
    char compute[512];
    mx_rates_compute_key(machine, problem, threads, compute, sizeof compute);
    snprintf(out->bus, sizeof out->bus, "%s %s", f->name, f->device);
    snprintf(out->kernel, sizeof out->kernel, "%s %s: %s", f->name, f->device, compute);
}

int mx_accel_rates_take(const struct mx_problem *problem, const struct mx_machine *machine, int32_t threads,
                        mx_accel *accel, bool measure, mx_why *why, struct mx_accel_rates *out) {
    struct mx_accel_keys keys;
    char cache[PATH_MAX] = "";
    mx_rates_path(cache, sizeof cache, NULL);
    mx_accel_rates_keys(machine, problem, threads, mx_accel_facts(accel), &keys);
    *out = (struct mx_accel_rates){0};
    if (cache[0] != 0) mx_accel_rates_load(cache, &keys, out);
    out->source = out->put_bytes_per_s > 0 || out->updates_per_s > 0 ? MX_RATES_CACHED : MX_RATES_DEFAULT;
    if (!measure) return 0;
    const int err = mx_calibrate_accel(problem, machine, threads, accel, 0, why, out);
    if (err < 0) return err;
    out->source = MX_RATES_MEASURED;
    const struct mx_accel_facts *f = mx_accel_facts(accel);
    if (f->here && f->put_bytes_per_s > 0) return 0; /* a rate that was set is none of this machine's */
    if (cache[0] != 0) mx_accel_rates_store(cache, &keys, out);
    return 0;
}
