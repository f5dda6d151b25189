/* SPDX-License-Identifier: BSD-3-Clause */
/* rows.c - what every kernel does with its rows besides computing them: copies their frame cells, and
 * prefetches memory. */
#include "stencil/rows.h"

#include <string.h>

/* h cells, most often one. */
static inline void copy_frame(char *dst, const char *src, size_t bytes) {
    if (bytes == 8)
        memcpy(dst, src, 8);
    else if (bytes == 4)
        memcpy(dst, src, 4);
    else
        memcpy(dst, src, bytes);
}

static void frame_plane(char *dst, const char *src, const struct mx_patch *p, int64_t cell_bytes) {
    const size_t bytes = (size_t)(p->h * cell_bytes);
    const int64_t right = (p->nx + p->h) * cell_bytes;
    const bool at_left = p->x0 == p->h, at_right = p->x1 == p->nx + p->h;
    for (int64_t row = 0; row < p->rows; row++) {
        if (at_left) copy_frame(dst, src, bytes);
        if (at_right) copy_frame(dst + right, src + right, bytes);
        dst += p->row_pitch_bytes;
        src += p->row_pitch_bytes;
    }
}

void mx_stencil_x_frame(const struct mx_patch *p, enum mx_dtype dtype) {
    if (p->x0 != p->h && p->x1 != p->nx + p->h) return;
    for (int64_t plane = 0; plane < mx_patch_planes(p); plane++)
        frame_plane(mx_patch_dst(p, plane), p->src[plane + p->h], p, mx_dtype_bytes(dtype));
}

enum { LINE = 64 };

static void ask(const char *from, int64_t bytes, bool to_l2) {
    if (to_l2)
        for (int64_t i = 0; i < bytes; i += LINE) __builtin_prefetch(from + i, 0, 2);
    else
        for (int64_t i = 0; i < bytes; i += LINE) __builtin_prefetch(from + i, 0, 3);
}

void mx_ahead_ask(struct mx_ahead *ahead, int64_t cells) {
    ahead->due += ahead->bytes_per_cell * (double)cells;
    while (ahead->due > 0 && ahead->run < ahead->end) {
        const char *from = ahead->run->from + ahead->done;
        int64_t bytes = ahead->run->bytes - ahead->done;
        if ((double)bytes > ahead->due) bytes = ((int64_t)ahead->due + LINE) / LINE * LINE;
        ask(from, bytes, ahead->to_l2);
        ahead->due -= (double)bytes;
        ahead->done += bytes;
        if (ahead->done >= ahead->run->bytes) ahead->run++, ahead->done = 0;
    }
}
