/* SPDX-License-Identifier: BSD-3-Clause */
/* history.c - the norms that are kept: all checks, or the more thinly spread ones of many. */
#include "system/norms.h"

static void thin(struct mx_norms_history *h) {
    int32_t n = 0;
    h->stride *= 2;
    for (int32_t i = 0; i < h->n; i++)
        if (h->kept[i].number % h->stride == 0) h->kept[n++] = h->kept[i];
    h->n = n;
}

void mx_history_add(struct mx_norms_history *h, int64_t number, const struct mx_norms_result *r) {
    if (h->stride == 0) h->stride = 1;
    if (h->n > 0 && h->kept[h->n - 1].number % h->stride != 0) h->n--; /* it was the newest */
    while (h->n == MX_HISTORY_MOST) thin(h);
    h->kept[h->n++] = (struct mx_norms_kept){number, *r};
}

void mx_history_up_to(const struct mx_norms_history *h, int64_t step, int32_t most,
                      struct mx_norms_history *out) {
    *out = *h;
    while (out->n > 0 && out->kept[out->n - 1].result.step > step) out->n--;
    if (out->n == 0) return;
    const struct mx_norms_kept last = out->kept[out->n - 1];
    while (out->n > most) {
        thin(out);
        if (out->n == 0 || out->kept[out->n - 1].number != last.number) out->kept[out->n++] = last;
    }
}
