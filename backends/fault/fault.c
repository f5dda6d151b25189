/* SPDX-License-Identifier: BSD-3-Clause */
/* fault - wraps another backend ("fault:NAME") and makes errors on purpose, the same ones for the same seed.
 * Tests only.
 *
 * Options, separated by commas: seed=N; eio=P, enospc=P (writes), short=P, eagain=P, refuse=P (submit starts
 * fewer requests) with probabilities P from 0 to 1; delay_us=N (delays a completion by up to N microseconds);
 * reorder=1 (completions come in random order); fail=N (only the N-th request gives EIO); fail_after=N (the
 * N-th request and all later ones give EIO: a device that dies); from=N (only requests from byte N of the
 * place on are counted and get errors); sys=1 (bytes are moved by pread and pwrite of mx_sys on the place,
 * not by the wrapped backend, so that a table of calls sees them). Words for system calls (calls.c) are
 * ignored here.
 *
 * The style is always the transfer style. A mapped backend is wrapped by copying to and from windows of its
 * mapping.
 */
#include "words.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WINDOW_BYTES (UINT64_C(64) << 20)

struct held {
    struct mx_completion completion;
    uint64_t ready_ns;
};

struct fault_state {
    const struct mx_backend *inner;
    void *state;
    struct mx_fault_settings set;
    int fd; /* sys=1: of the place; else negative */
    uint64_t random, n_requests;
    uint32_t align_bytes;
    uint32_t depth, n_taken; /* taken and not given back */
    uint32_t n_inner;        /* of these, with the inner backend */
    struct held *held;       /* [depth] */
    uint32_t n_held;
    struct mx_completion *inner_done; /* [depth] */
    char **windows;                   /* of a mapped inner backend, mapped when first used */
    uint64_t n_windows;
};

/* ---- chance and time */

static uint64_t next_random(struct fault_state *s) { /* splitmix64 (Steele, Lea, Flood 2014) */
    uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool chance(struct fault_state *s, double probability) {
    return (double)(next_random(s) >> 11) * 0x1p-53 < probability;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static const struct mx_backend *find_inner(const struct mx_place *place) {
    const char *colon = strchr(place->options->backend, ':');
    return colon != NULL ? mx_backend_find(colon + 1) : NULL;
}

/* ---- open and close */

static int fault_probe(const struct mx_place *place, mx_why *why) {
    const struct mx_backend *inner = place != NULL ? find_inner(place) : NULL;
    if (inner == NULL)
        return mx_fail(why, -ENOTSUP, "the backend fault wraps another one: give --backend fault:NAME");
    return inner->probe != NULL ? inner->probe(place, why) : 0;
}

static void fault_close(void *state) {
    struct fault_state *s = state;
    for (uint64_t i = 0; s->windows != NULL && i < s->n_windows; i++)
        if (s->windows[i] != NULL) s->inner->unmap(s->state, s->windows[i], WINDOW_BYTES);
    if (s->inner != NULL && s->inner->close != NULL) s->inner->close(s->state);
    free(s->windows);
    free(s->inner_done);
    free(s->held);
    free(s);
}

static int allocate(struct fault_state *s, const struct mx_place *place, mx_why *why) {
    /* The place may grow up to what the file system holds: the table covers 64 TiB sparsely. */
    s->n_windows = s->inner->face == MX_FACE_MAPPED ? (UINT64_C(64) << 40) / WINDOW_BYTES : 0;
    s->depth = place->options->queue_depth;
    s->held = calloc(s->depth, sizeof *s->held);
    s->inner_done = calloc(s->depth, sizeof *s->inner_done);
    s->windows = s->n_windows > 0 ? calloc(s->n_windows, sizeof *s->windows) : NULL;
    bool ok = s->held != NULL && s->inner_done != NULL && (s->n_windows == 0 || s->windows != NULL);
    return ok ? 0 : mx_fail(why, -ENOMEM, "no memory for the backend fault");
}

static int fault_open(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts,
                      void **state) {
    struct fault_state *s = calloc(1, sizeof *s);
    if (s == NULL) return mx_fail(why, -ENOMEM, "no memory for the backend fault");
    const struct mx_backend *inner = find_inner(place);
    int err = mx_fault_parse(place->options->fault, why, &s->set);
    if (err == 0 && s->set.sys > 0 && place->fd < 0)
        err = mx_fail(why, -EINVAL, "--fault sys=1 needs a file or device, and backend %s has none",
                      inner->name);
    if (err == 0) err = inner->open(place, why, facts, &s->state);
    if (err != 0) {
        free(s);
        return err;
    }
    s->inner = inner;
    s->random = (uint64_t)s->set.seed;
    s->align_bytes = facts->offset_align_bytes;
    s->fd = s->set.sys > 0 ? place->fd : -1;
    if (s->fd >= 0) facts->bypasses_page_cache = false;
    err = allocate(s, place, why);
    if (err != 0) {
        fault_close(s);
        return err;
    }
    *state = s;
    return 0;
}

/* ---- submit */

static void hold(struct fault_state *s, struct mx_completion completion) {
    uint64_t delay = s->set.delay_us > 0 ? next_random(s) % (uint64_t)(s->set.delay_us * 1000 + 1) : 0;
    s->held[s->n_held++] = (struct held){completion, delay > 0 ? now_ns() + delay : 0};
}

static int copy_window(struct fault_state *s, const struct mx_request *r) {
    uint64_t at = r->offset_bytes;
    char *dram = r->dram;
    for (uint64_t left = r->bytes; left > 0;) {
        uint64_t w = at / WINDOW_BYTES, inside = at % WINDOW_BYTES;
        uint64_t n = WINDOW_BYTES - inside < left ? WINDOW_BYTES - inside : left;
        if (w >= s->n_windows) return -EINVAL;
        void *base = s->windows[w];
        int err = base == NULL ? s->inner->map(s->state, w * WINDOW_BYTES, WINDOW_BYTES, NULL, &base) : 0;
        if (err != 0) return err;
        s->windows[w] = base;
        memcpy(r->write ? s->windows[w] + inside : dram, r->write ? dram : s->windows[w] + inside, n);
        at += n, dram += n, left -= n;
    }
    return 0;
}

static int move_by_call(struct fault_state *s, const struct mx_request *r) {
    ssize_t n = r->write ? mx_sys->pwrite(s->fd, r->dram, r->bytes, (off_t)r->offset_bytes)
                         : mx_sys->pread(s->fd, r->dram, r->bytes, (off_t)r->offset_bytes);
    hold(s, (struct mx_completion){r->tag, n});
    return 1;
}

static int forward(struct fault_state *s, const struct mx_request *r) {
    if (s->fd >= 0) return move_by_call(s, r);
    if (s->inner->move != NULL) {
        hold(s, (struct mx_completion){r->tag, s->inner->move(s->state, r)});
        return 1;
    }
    if (s->inner->face == MX_FACE_TRANSFER) {
        int taken = s->inner->submit(s->state, r, 1);
        if (taken > 0) s->n_inner++;
        return taken;
    }
    int err = copy_window(s, r);
    hold(s, (struct mx_completion){r->tag, err != 0 ? err : (int64_t)r->bytes});
    return 1;
}

/* The error that this request is to have, or 0. */
static int draw_error(struct fault_state *s, const struct mx_request *r) {
    if ((double)r->offset_bytes < s->set.from) return 0;
    s->n_requests++;
    if (s->set.fail > 0 && (double)s->n_requests == s->set.fail) return -EIO;
    if (s->set.fail_after > 0 && (double)s->n_requests >= s->set.fail_after) return -EIO;
    if (chance(s, s->set.eio)) return -EIO;
    if (chance(s, s->set.enospc) && r->write) return -ENOSPC;
    return chance(s, s->set.eagain) ? -EAGAIN : 0;
}

static int submit_one(struct fault_state *s, const struct mx_request *request) {
    struct mx_request r = *request;
    int err = draw_error(s, &r);
    uint32_t units = r.bytes / s->align_bytes;
    if (err != 0) {
        hold(s, (struct mx_completion){r.tag, err});
        return 1;
    }
    if (units > 1 && chance(s, s->set.short_transfer))
        r.bytes = (uint32_t)(1 + next_random(s) % (units - 1)) * s->align_bytes;
    return forward(s, &r);
}

static int fault_submit(void *state, const struct mx_request *requests, unsigned n) {
    struct fault_state *s = state;
    unsigned taken = 0;
    int last = 1;
    while (taken < n && s->n_taken < s->depth && !chance(s, s->set.refuse)) {
        last = submit_one(s, &requests[taken]);
        if (last <= 0) break;
        taken++;
        s->n_taken++;
    }
    return taken > 0 || last > 0 ? (int)taken : last;
}

/* ---- reap */

static int collect(struct fault_state *s, unsigned min) {
    if (s->n_inner == 0) return 0;
    int n = s->inner->reap(s->state, min, s->n_inner, s->inner_done);
    for (int i = 0; i < n; i++) hold(s, s->inner_done[i]);
    if (n > 0) s->n_inner -= (uint32_t)n;
    return n < 0 ? n : 0;
}

/* Gives back what is ready: in the order of arrival, or drawn at random. */
static unsigned give_back(struct fault_state *s, unsigned max, struct mx_completion *out) {
    unsigned n = 0;
    uint64_t now = now_ns();
    uint32_t start = s->set.reorder > 0 && s->n_held > 0 ? (uint32_t)(next_random(s) % s->n_held) : 0;
    for (uint32_t i = 0, looked = 0, all = s->n_held; looked < all && n < max; looked++) {
        if (i == 0 && looked == 0) i = start;
        if (i >= s->n_held) i = 0;
        if (s->held[i].ready_ns > now) {
            i++;
            continue;
        }
        out[n++] = s->held[i].completion;
        memmove(&s->held[i], &s->held[i + 1], (--s->n_held - i) * sizeof s->held[0]);
    }
    s->n_taken -= n;
    return n;
}

static void sleep_for_held(const struct fault_state *s) {
    uint64_t when = UINT64_MAX, now = now_ns();
    for (uint32_t i = 0; i < s->n_held; i++)
        if (s->held[i].ready_ns < when) when = s->held[i].ready_ns;
    if (s->n_held == 0 || when <= now) return;
    struct timespec t = {(time_t)((when - now) / 1000000000u), (long)((when - now) % 1000000000u)};
    nanosleep(&t, NULL);
}

static int fault_reap(void *state, unsigned min, unsigned max, struct mx_completion *out) {
    struct fault_state *s = state;
    unsigned n = 0;
    for (;;) {
        int err = collect(s, n < min && s->n_held == 0 ? 1 : 0);
        if (err < 0) return n > 0 ? (int)n : err;
        n += give_back(s, max - n, out + n);
        if (n >= min) return (int)n;
        sleep_for_held(s);
    }
}

/* ---- passed on */

static int fault_flush(void *state) {
    struct fault_state *s = state;
    if (s->inner->flush != NULL) return s->inner->flush(s->state);
    return -ENOSYS; /* core calls fdatasync */
}

static int fault_drain(void *state) {
    struct fault_state *s = state;
    return s->inner->drain != NULL ? s->inner->drain(s->state) : 0;
}

static int fault_register_memory(void *state, void *base, uint64_t bytes) {
    struct fault_state *s = state;
    return s->inner->register_memory != NULL ? s->inner->register_memory(s->state, base, bytes) : -ENOTSUP;
}

static void fault_unregister_memory(void *state, void *base) {
    struct fault_state *s = state;
    if (s->inner->unregister_memory != NULL) s->inner->unregister_memory(s->state, base);
}

static const struct mx_backend fault = {
    .name = "fault",
    .summary = "wraps another backend and makes its transfers fail on purpose (tests)",
    .face = MX_FACE_TRANSFER,
    .probe = fault_probe,
    .open = fault_open,
    .close = fault_close,
    .submit = fault_submit,
    .reap = fault_reap,
    .drain = fault_drain,
    .flush = fault_flush,
    .register_memory = fault_register_memory,
    .unregister_memory = fault_unregister_memory,
};

const struct mx_backend *const mx_backend_fault = &fault;
