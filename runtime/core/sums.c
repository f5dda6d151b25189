/* SPDX-License-Identifier: BSD-3-Clause */
/* sums.c - the sums of what is written to a Buffer, compared with what is read. */
#include "core/integrity_private.h"

#include <errno.h>
#include <stdlib.h>
#ifdef __x86_64__
#include <xxh_x86dispatch.h> /* the same sums, by the widest vectors that the processor has */
#else
#include <xxhash.h>
#endif

uint32_t mx_sum_of(const void *unit, uint64_t bytes) {
    const uint32_t sum = (uint32_t)XXH3_64bits(unit, bytes);
    return sum != 0 ? sum : 1;
}

int mx_integrity_fits(const struct mx_integrity *t, const struct mx_span *spans, size_t n) {
    for (size_t i = 0; t != NULL && i < n; i++) {
        const uint64_t end = spans[i].offset_bytes + spans[i].bytes;
        if (spans[i].offset_bytes % t->unit_bytes != 0) return -EINVAL;
        if (end % t->unit_bytes != 0 && end != t->bytes) return -EINVAL;
    }
    return 0;
}

/* Calls with every unit of a span: its number, where it is in DRAM, and its length. */
struct unit {
    uint64_t number, bytes;
    const char *dram;
};

static bool next_unit(const struct mx_integrity *t, const struct mx_span *s, uint64_t *at, struct unit *out) {
    if (*at >= s->bytes) return false;
    const uint64_t left = s->bytes - *at;
    *out = (struct unit){(s->offset_bytes + *at) / t->unit_bytes, left < t->unit_bytes ? left : t->unit_bytes,
                         (const char *)s->dram + *at};
    *at += out->bytes;
    return true;
}

void mx_integrity_take(struct mx_integrity *t, const struct mx_span *spans, size_t n) {
    struct unit u;
    for (size_t i = 0; t != NULL && i < n; i++)
        for (uint64_t at = 0; next_unit(t, &spans[i], &at, &u);)
            __atomic_store_n(&t->sums[u.number], mx_sum_of(u.dram, u.bytes), __ATOMIC_RELAXED);
}

int mx_integrity_check(struct mx_integrity *t, const struct mx_span *spans, size_t n) {
    struct unit u;
    for (size_t i = 0; t != NULL && i < n; i++)
        for (uint64_t at = 0; next_unit(t, &spans[i], &at, &u);) {
            const uint32_t known = __atomic_load_n(&t->sums[u.number], __ATOMIC_RELAXED);
            const uint32_t found = mx_sum_of(u.dram, u.bytes);
            int64_t none = -1;
            if (known == 0) __atomic_store_n(&t->sums[u.number], found, __ATOMIC_RELAXED);
            if (known == 0 || known == found) continue;
            atomic_compare_exchange_strong(&t->damage, &none, (int64_t)(u.number * t->unit_bytes));
            return -EBADMSG;
        }
    return 0;
}

int64_t mx_integrity_damage(const struct mx_integrity *t) {
    return t == NULL ? -1 : atomic_load(&((struct mx_integrity *)t)->damage);
}

mx_buffer *mx_integrity_free(struct mx_integrity *t) {
    if (t == NULL) return NULL;
    mx_buffer *extent = t->extent;
    mx_block_free(t->block);
    free(t);
    return extent;
}
