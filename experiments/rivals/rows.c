/* SPDX-License-Identifier: BSD-3-Clause */
/* rows.c - what the rivals compute with: the row function that memext itself calls, of the same kernel file, over a box of
 * an array in memory (or mapped there). Built as memext builds kernels:
 *
 *     cc -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp -std=gnu17 -shared -fPIC
 *        -I runtime/include -DKERNEL='"systems/wave.c"' experiments/rivals/rows.c -o wave.so
 *
 * Kernels of one field, MX_JACOBI or MX_LEAPFROG, that do not ask where a cell is. Arrays are [z][y][x] without padding. */
#include KERNEL

#include <string.h>

_Static_assert(mx_n_state == 1 && mx_n_partner == 0 && MX_FIXED_RADIUS == 0, "one field, and no neighbours of what is only read");
enum { H = MX_RADIUS, ROWS = 16 }; /* rows of a call: as many planes' rows stay in the L2 cache */

/* {radius, leapfrog, bytes of a cell, fields of C, bytes of a cell of C (0 without)} */
void rival_facts(int64_t facts[5]) {
    const int64_t all[5] = {H, MX_FORM == MX_LEAPFROG, mx_state_[0].bytes, mx_n_fixed, mx_n_fixed ? mx_fixed_[0].bytes : 0};
    memcpy(facts, all, sizeof all);
}

/* Rows y0 .. y1-1 of plane z. */
static void some_rows(char *out, const char *in, const char *const *fixed, const int64_t n[3], int64_t x0, int64_t x1, int64_t y0,
                      int64_t y1, int64_t z) {
    const int64_t bytes = mx_state_[0].bytes, pitch = n[0] * bytes, plane = pitch * n[1];
    double param[mx_n_param + 1];
    for (int i = 0; i < mx_n_param; i++) param[i] = mx_param_[i].value;
    void *const to = out + z * plane + y0 * pitch;
    const void *from[2 * H + 1], *c[mx_n_fixed + 1];
    int64_t c_pitch[mx_n_fixed + 1];
    for (int i = 0; i < 2 * H + 1; i++) from[i] = in + (z + i - H) * plane + y0 * pitch;
    for (int i = 0; i < mx_n_fixed; i++) {
        c_pitch[i] = n[0] * mx_fixed_[i].bytes;
        c[i] = fixed[i] + (z * n[1] + y0) * c_pitch[i];
    }
    const struct mx_row r = {.out = &to, .in = from, .fixed = c, .row_pitch = pitch, .fixed_pitch = c_pitch, .rows = y1 - y0, .param = param,
                             .x0 = x0, .x1 = x1, .y = y0 - H, .z = z - H, .nx = n[0] - 2 * H, .ny = n[1] - 2 * H, .nz = n[2] - 2 * H};
    mx_row_(&r);
}

/* One level of the cells box = {x0, x1, y0, y1, z0, z1} (frames counted) of arrays of n = {x, y, z} cells. */
void rival_level(void *out, const void *in, const void *const *fixed, const int64_t n[3], const int64_t box[6], int64_t threads) {
    const int64_t pieces = (box[3] - box[2] + ROWS - 1) / ROWS, planes = box[5] - box[4];
    if (pieces <= 0 || planes <= 0 || box[1] <= box[0]) return;
#pragma omp parallel for schedule(static) num_threads((int)threads) if (threads > 1)
    for (int64_t i = 0; i < pieces * planes; i++) {
        const int64_t y0 = box[2] + i % pieces * ROWS, y1 = y0 + ROWS < box[3] ? y0 + ROWS : box[3];
        some_rows(out, in, (const char *const *)fixed, n, box[0], box[1], y0, y1, box[4] + i / pieces);
    }
}

/* Copies the frame of planes z0 .. z1-1; before and behind: leading and trailing planes of the array that are frame as a whole. */
void rival_frame(void *out, const void *in, const int64_t n[3], int64_t z0, int64_t z1, int64_t before, int64_t behind) {
    const int64_t bytes = mx_state_[0].bytes, pitch = n[0] * bytes, plane = pitch * n[1];
    for (int64_t z = z0; z < z1; z++) {
        char *to = (char *)out + z * plane;
        const char *from = (const char *)in + z * plane;
        if (z < before || z >= n[2] - behind) {
            memcpy(to, from, (size_t)plane);
            continue;
        }
        memcpy(to, from, (size_t)(H * pitch));
        memcpy(to + plane - H * pitch, from + plane - H * pitch, (size_t)(H * pitch));
        for (int64_t y = H; y < n[1] - H; y++) {
            memcpy(to + y * pitch, from + y * pitch, (size_t)(H * bytes));
            memcpy(to + (y + 1) * pitch - H * bytes, from + (y + 1) * pitch - H * bytes, (size_t)(H * bytes));
        }
    }
}
