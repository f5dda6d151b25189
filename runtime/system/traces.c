/* SPDX-License-Identifier: BSD-3-Clause */
/* traces.c - what probes record: a ring of steps, and the file that steps are written to. */
#include "system/npy_head.h"
#include "system/points.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEAD_BYTES = 128, TEXT_AT = 10, MOST_PART_BYTES = 1 << 20 };

/* ---- the ring */

static int64_t words_of(int64_t n) { return (n + 63) / 64; }

int64_t mx_traces_bytes(const struct mx_points *probes, int64_t capacity) {
    return capacity * 8 * (probes->n + words_of(probes->n));
}

int mx_traces_make(const struct mx_points *probes, int64_t capacity, int64_t first_step, mx_why *why,
                   struct mx_traces *out) {
    struct mx_traces t = {.probes = probes,
                          .n = probes->n,
                          .words = words_of(probes->n),
                          .capacity = capacity > 0 ? capacity : 1};
    t.value = calloc((size_t)(t.capacity * t.n) + 1, sizeof *t.value);
    t.bit = calloc((size_t)(t.capacity * t.words) + 1, sizeof *t.bit);
    atomic_init(&t.taken, first_step);
    atomic_init(&t.lost, -1);
    if (t.value == NULL || t.bit == NULL) {
        mx_traces_free(&t);
        return mx_fail(why, -ENOMEM, "no memory for the traces of %lld probes over %lld steps",
                       (long long)probes->n, (long long)capacity);
    }
    *out = t;
    return 0;
}

void mx_traces_free(struct mx_traces *t) {
    free((void *)t->value);
    free((void *)t->bit);
    t->value = t->bit = NULL;
}

/* Probe without a value at the slot's step; -1 = none. */
static int64_t missing(const struct mx_traces *t, int64_t slot) {
    for (int64_t w = 0; w < t->words; w++) {
        const int64_t here = t->n - 64 * w;
        const uint64_t all = here >= 64 ? UINT64_MAX : (UINT64_C(1) << here) - 1;
        const uint64_t bits = atomic_load_explicit(&t->bit[slot * t->words + w], memory_order_acquire);
        if (bits != all) return 64 * w + __builtin_ctzll(all & ~bits);
    }
    return -1;
}

int mx_traces_take(struct mx_traces *t, int64_t end, double *rows, mx_why *why) {
    const int64_t lost = atomic_load(&t->lost), from = atomic_load(&t->taken);
    if (lost >= 0)
        return mx_fail(why, -EIO,
                       "internal error (there was no room for the probes of step %lld: only %lld steps after "
                       "step %lld are kept at once); please report it",
                       (long long)lost, (long long)t->capacity, (long long)from);
    for (int64_t s = from; s < end; s++) {
        const int64_t slot = s % t->capacity, probe = missing(t, slot);
        if (probe >= 0 || s - from >= t->capacity)
            return mx_fail(
                why, -EIO,
                "internal error (probe %lld, counted from 0, has no value at step %lld); please report it",
                (long long)probe, (long long)s);
    }
    for (int64_t s = from; s < end; s++) {
        const int64_t slot = s % t->capacity;
        for (int64_t i = 0; i < t->n; i++) {
            const uint64_t bits = atomic_load_explicit(&t->value[slot * t->n + i], memory_order_relaxed);
            memcpy(&rows[(s - from) * t->n + i], &bits, sizeof bits);
        }
        for (int64_t w = 0; w < t->words; w++)
            atomic_store_explicit(&t->bit[slot * t->words + w], 0, memory_order_relaxed);
    }
    if (end > from) atomic_store_explicit(&t->taken, end, memory_order_release);
    return 0;
}

/* ---- the file */

int mx_traces_file_begin(int fd, int64_t nt, int64_t probes, mx_why *why) {
    char head[HEAD_BYTES], text[HEAD_BYTES];
    const int n =
        snprintf(text, sizeof text, "{'descr': '<f8', 'fortran_order': False, 'shape': (%lld, %lld), }",
                 (long long)nt, (long long)probes);
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01", 7);
    head[7] = 0, head[8] = HEAD_BYTES - TEXT_AT, head[9] = 0;
    memcpy(head + TEXT_AT, text, (size_t)n);
    head[HEAD_BYTES - 1] = '\n';
    int err = mx_write_all(fd, head, sizeof head, 0);
    if (err == 0) err = mx_retry(mx_sys->ftruncate(fd, HEAD_BYTES + 8 * nt * probes));
    return err < 0 ? mx_fail(why, err,
                             "the file of traces, with %lld steps of %lld probes, cannot be written: %s",
                             (long long)nt, (long long)probes, strerror(-err))
                   : 0;
}

int mx_traces_file_write(int fd, struct mx_traces *t, int64_t end, mx_why *why) {
    const int64_t most = t->n > 0 ? MOST_PART_BYTES / (8 * t->n) + 1 : end;
    double *rows = malloc((size_t)(most * t->n) * sizeof *rows + 1);
    int err = rows == NULL ? mx_fail(why, -ENOMEM, "no memory for %lld rows of traces", (long long)most) : 0;
    while (err == 0) {
        const int64_t from = atomic_load(&t->taken), to = from + most < end ? from + most : end;
        if (from >= end) break;
        err = mx_traces_take(t, to, rows, why);
        if (err < 0) break;
        err =
            mx_write_all(fd, rows, (size_t)((to - from) * t->n) * sizeof *rows, HEAD_BYTES + 8 * from * t->n);
        if (err < 0)
            mx_fail(why, err, "traces of steps %lld to %lld could not be written: %s", (long long)from,
                    (long long)to - 1, strerror(-err));
    }
    free(rows);
    return err;
}

int mx_traces_file_check(int fd, const char *path, int64_t nt, int64_t probes, int64_t steps, mx_why *why) {
    int64_t at = 0, element = 0, shape[2] = {0};
    struct stat st;
    const int rank = mx_npy_head(fd, path, &at, &element, shape, why);
    if (rank < 0) return rank;
    if (rank != 2 || element != 8 || at != HEAD_BYTES || shape[1] != probes || shape[0] != nt)
        return mx_fail(why, -EINVAL,
                       "%s is not the file of traces of this run: it has %lld rows of %lld numbers, and the "
                       "run has %lld steps and %lld probes",
                       path, (long long)shape[0], (long long)shape[1], (long long)nt, (long long)probes);
    if (fstat(fd, &st) < 0) return mx_fail(why, -errno, "%s: %s", path, strerror(errno));
    if (st.st_size < HEAD_BYTES + 8 * steps * probes)
        return mx_fail(why, -EINVAL,
                       "%s is truncated: it has %lld bytes, and %lld steps of %lld probes need %lld bytes",
                       path, (long long)st.st_size, (long long)steps, (long long)probes,
                       (long long)(HEAD_BYTES + 8 * steps * probes));
    if (st.st_size > HEAD_BYTES + 8 * nt * probes)
        return mx_fail(why, -EINVAL,
                       "%s is not the file of traces of this run: it is longer than all its traces", path);
    return 0;
}
