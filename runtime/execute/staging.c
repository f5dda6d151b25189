/* SPDX-License-Identifier: BSD-3-Clause */
#include "execute/staging.h"

#include "core/budget.h"
#include "machine/minmax.h"

#include <memext/backend.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int mx_staging_open(struct mx_staging *s, mx_accel *accel, mx_budget *budget, char *base, int64_t piece_bytes,
                    int64_t n_spans, mx_why *why) {
    *s = (struct mx_staging){.accel = accel, .budget = budget, .base = base, .piece_bytes = piece_bytes};
    s->spans = calloc((size_t)n_spans, sizeof *s->spans);
    if (s->spans == NULL) return mx_fail(why, -ENOMEM, "no memory for the spans of a transfer");
    int err = mx_accel_stage(accel, base, (uint64_t)(MX_STAGING_PIECES * piece_bytes), why);
    s->pinned = err == 0;
    return err;
}

void mx_staging_close(struct mx_staging *s) {
    for (int32_t i = 0; i < s->arrays; i++) {
        mx_accel_release(s->accel, s->array[i].base);
        if (s->array[i].budget_bytes > 0) mx_budget_give(s->budget, s->array[i].budget_bytes);
    }
    if (s->pinned) mx_accel_unstage(s->accel, s->base);
    free(s->spans);
    s->arrays = 0;
    s->spans = NULL;
}

int mx_staging_array(struct mx_staging *s, int64_t bytes, const char *what, mx_why *why, char **base) {
    const uint64_t counted = mx_accel_facts(s->accel)->here ? (uint64_t)bytes : 0;
    assert(s->arrays < MX_STAGING_ARRAYS);
    int err = counted > 0 ? mx_budget_take(s->budget, counted, why) : 0;
    if (err < 0) return err;
    err = mx_accel_alloc(s->accel, (uint64_t)bytes, what, why, base);
    if (err < 0) {
        if (counted > 0) mx_budget_give(s->budget, counted);
        return -ENODEV; /* not a request that cannot be met: the plan was made for what the device said it has
                         */
    }
    s->array[s->arrays].base = *base;
    s->array[s->arrays++].budget_bytes = counted;
    return 0;
}

/* from: NULL = what is in the first piece already, over and over. */
static int put(struct mx_staging *s, char *base, const char *from, int64_t bytes, mx_why *why) {
    for (int64_t done = 0, n; done < bytes; done += n) {
        n = mx_min(bytes - done, s->piece_bytes);
        if (from != NULL) memcpy(s->base, from + done, (size_t)n);
        const struct mx_accel_span span = {base + done, s->base, (uint64_t)n};
        const int64_t number = mx_accel_put(s->accel, &span, 1);
        if (number < 0 || mx_accel_wait(s->accel, MX_ACCEL_PUT, number) < 0)
            return mx_accel_error(s->accel, why);
    }
    return 0;
}

int mx_staging_poison(struct mx_staging *s, char *base, int64_t bytes, mx_why *why) {
    memset(s->base, 0xff, (size_t)s->piece_bytes);
    return put(s, base, NULL, bytes, why);
}

int mx_staging_put(struct mx_staging *s, char *base, const char *from, int64_t bytes, mx_why *why) {
    return put(s, base, from, bytes, why);
}

enum { HALF = MX_STAGING_PIECES / 2 };

static uint32_t half(bool load) { return ((1u << HALF) - 1) << (load ? 0 : HALF); }

bool mx_staging_is_taken(const struct mx_staging *s, bool load) {
    return (s->taken & half(load)) == half(load);
}

int32_t mx_staging_take(struct mx_staging *s, bool load) {
    int32_t piece = load ? 0 : HALF;
    assert(!mx_staging_is_taken(s, load));
    while (s->taken >> piece & 1) piece++;
    s->taken |= 1u << piece;
    return piece;
}

void mx_staging_give(struct mx_staging *s, int32_t piece) { s->taken &= ~(1u << piece); }

void mx_staging_turn(struct mx_staging *s, int32_t piece, struct mx_span *spans, int64_t n) {
    char *at = s->base + piece * s->piece_bytes;
    for (int64_t i = 0; i < n; i++) {
        s->spans[i] = (struct mx_accel_span){spans[i].dram, at, spans[i].bytes};
        spans[i].dram = at;
        at += spans[i].bytes;
    }
    assert(at <= s->base + (piece + 1) * s->piece_bytes);
}

void mx_staging_pass_by(struct mx_staging *s, char *memory, struct mx_span *spans, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        char *at = memory + spans[i].offset_bytes;
        s->spans[i] = (struct mx_accel_span){spans[i].dram, at, spans[i].bytes};
        spans[i].dram = at;
    }
}
