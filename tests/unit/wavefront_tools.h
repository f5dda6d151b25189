/* SPDX-License-Identifier: BSD-3-Clause */
/* wavefront_tools.h - what tests of the wavefront share: geometries, random numbers, and the loop itself. */
#ifndef MX_WAVEFRONT_TOOLS_H
#define MX_WAVEFRONT_TOOLS_H

#include "wavefront/calctrans.h"
#include "wavefront/source.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { CELL = 8 };

static uint64_t seed = 1;
static inline int64_t pick(int64_t low, int64_t high) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (int64_t)((seed >> 33) % (uint64_t)(high - low + 1));
}

static inline struct mx_wf_geometry geometry(int64_t rows, int64_t cols, enum mx_wf_layout l, int64_t mb,
                                             int64_t nb, uint32_t align) {
    struct mx_wf_geometry g;
    cr_assert(mx_wf_geometry(rows, cols, l, mb, nb, align, NULL, &g) == 0);
    return g;
}

static inline struct mx_wf_geometry any_geometry(void) {
    static const uint32_t aligns[] = {1, 8, 512, 4096};
    return geometry(pick(1, 40), pick(1, 1200), (enum mx_wf_layout)pick(0, 2), pick(1, 44), pick(1, 1300),
                    aligns[pick(0, 3)]);
}

struct matrices {
    int64_t rows, cols, width;
    double *z[MX_WF_MATRICES];
};

static inline struct matrices make_matrices(int64_t rows, int64_t cols) {
    struct matrices a = {rows, cols, cols + 2, {NULL}};
    for (int m = 0; m < MX_WF_MATRICES; m++) {
        a.z[m] = malloc((size_t)((rows + 2) * a.width) * CELL);
        for (int64_t i = 0; i < rows + 2; i++)
            for (int64_t j = 0; j < a.width; j++)
                a.z[m][i * a.width + j] = mx_wf_inits[0].value((enum mx_wf_matrix)m, i, j);
    }
    return a;
}

static inline void free_matrices(struct matrices *a) {
    for (int m = 0; m < MX_WF_MATRICES; m++) free(a->z[m]);
}

static inline void iterate(struct matrices *a, int64_t times) {
    double *za = a->z[MX_WF_ZA];
    const double *zr = a->z[MX_WF_ZR], *zb = a->z[MX_WF_ZB], *zu = a->z[MX_WF_ZU], *zv = a->z[MX_WF_ZV],
                 *zz = a->z[MX_WF_ZZ];
    const int64_t w = a->width;
    for (int64_t k = 0; k < times; k++)
        for (int64_t i = 1; i <= a->rows; i++)
            for (int64_t j = 1; j <= a->cols; j++) {
                const int64_t x = i * w + j;
                double qa =
                    za[x + 1] * zr[x] + za[x - 1] * zb[x] + za[x + w] * zu[x] + za[x - w] * zv[x] + zz[x];
                za[x] += 0.175 * (qa - za[x]);
            }
}

#endif
