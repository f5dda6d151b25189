/* SPDX-License-Identifier: BSD-3-Clause */
/* stencil.c - the table of stencils, the expression that defines their bits, and the choice of a kernel.
 *
 * With p the array read, at column x (row y, plane z understood), in the arithmetic of the cell type:
 *
 *   Z[y] = p[z-1][y] + p[z+1][y]
 *   C1   = (p[y-1] + p[y+1]) + Z[y]                  the four face neighbours of the column
 *   C2   = Z[y-1] + Z[y+1]                           its four corner neighbours
 *   F    = (p[x-1] + p[x+1]) + C1[x]                 sum of the 6 faces
 *   E    = (C1[x-1] + C1[x+1]) + C2[x]               sum of the 12 edges
 *   K    = C2[x-1] + C2[x+1]                         sum of the 8 corners
 *   star7 = c*p + f*F      edge19 = star7 + e*E      box27 = edge19 + k*K
 *
 * A star of radius h adds, for d = 1..h in this order, (f/d) * F_d, where F_d is F with neighbours at
 * distance d; f/d is divided in double. For f32 every coefficient is then rounded to float and every
 * operation is float. No fused multiply-add. The sums over columns serve three cells of a row each, and Z
 * serves three rows: a kernel may reuse them, since the bits do not depend on who computed them.
 */
#include "stencil/stencil.h"
#include "stencil/kernels.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>
#include <string.h>

#define STAR(h_, name_, harmonic)                                                                            \
    {                                                                                                        \
        .name = name_, .summary = "star of radius " #h_ ", weight f/d at distance d", .h = h_,               \
        .points = 6 * h_ + 1, .coef = {0.4, 0.1 / (harmonic), 0, 0}, .n_coef = 2, .flops = 1 + 7 * h_        \
    }

/* f of the larger stars: 0.1 / (1 + 1/2 + ... + 1/h), so that the weights sum to 1. */
#define H2 (1.0 + 1.0 / 2)
#define H3 (H2 + 1.0 / 3)
#define H4 (H3 + 1.0 / 4)
#define H5 (H4 + 1.0 / 5)
#define H6 (H5 + 1.0 / 6)
#define H7 (H6 + 1.0 / 7)
#define H8 (H7 + 1.0 / 8)

const struct mx_stencil mx_stencils[] = {
    {"star7", "6 faces (7 points), the papers' 7-point stencil", 1, 7, {0.4, 0.1}, 2, 8},
    {"edge19", "6 faces, 12 edges (19 points)", 1, 19, {0.28, 0.06, 0.03}, 3, 18},
    {"box27", "6 faces, 12 edges, 8 corners (27 points)", 1, 27, {0.2, 0.05, 0.03, 0.0175}, 4, 22},
    STAR(2, "star13", H2),
    STAR(3, "star19", H3),
    STAR(4, "star25", H4),
    STAR(5, "star31", H5),
    STAR(6, "star37", H6),
    STAR(7, "star43", H7),
    STAR(8, "star49", H8),
    {0},
};

const struct mx_stencil *mx_stencil_find(const char *name) {
    for (const struct mx_stencil *s = mx_stencils; s->name != NULL; s++)
        if (strcmp(s->name, name) == 0) return s;
    return NULL;
}

static enum mx_shape_kind shape_of(const struct mx_stencil *stencil) {
    return stencil->n_coef == 4 ? MX_BOX27 : stencil->n_coef == 3 ? MX_EDGE19 : MX_STAR;
}

static bool always(void) { return true; }
#if defined(__x86_64__)
static bool has_avx2(void) { return __builtin_cpu_supports("avx2"); }
static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
}
#endif

/* Best first. */
static const struct {
    const char *isa;
    bool (*works)(void);
    const mx_kernel_table *kernels;
    const mx_tile_table *tiles, *spans;
    const mx_rows_table *rows;
    int64_t vector_bytes; /* of both */
} isas[] = {
#if defined(__x86_64__)
    {"avx512", has_avx512, &mx_kernels_avx512, &mx_tiles_avx512, &mx_spans_avx512, &mx_rows_avx512, 64},
    {"avx2", has_avx2, &mx_kernels_avx2, &mx_tiles_avx2, &mx_spans_avx2, &mx_rows_avx2, 32},
#endif
    {"plain", always, &mx_kernels_plain, NULL, NULL, NULL, 0},
};
enum { ISAS = sizeof isas / sizeof isas[0] };

bool mx_stencil_has_isa(const char *isa) {
    for (int i = 0; i < ISAS; i++)
        if (strcmp(isas[i].isa, isa) == 0) return isas[i].works();
    return false;
}

int mx_stencil_isa_check(mx_why *why) {
    const char *wanted = getenv("MX_ISA");
    if (wanted == NULL || mx_stencil_has_isa(wanted)) return 0;
    return mx_fail(why, -EINVAL, "MX_ISA=%.40s: this CPU has no such kernels; choose one of%s%s plain",
                   wanted, mx_stencil_has_isa("avx512") ? " avx512" : "",
                   mx_stencil_has_isa("avx2") ? " avx2" : "");
}

/* Where the search for the best begins. */
static int best_allowed(void) {
    const char *wanted = getenv("MX_ISA");
    for (int i = 0; wanted != NULL && i < ISAS; i++)
        if (strcmp(isas[i].isa, wanted) == 0) return i;
    return 0;
}

mx_kernel_fn *mx_stencil_kernel_isa(const struct mx_stencil *stencil, enum mx_dtype dtype, const char *isa) {
    for (int i = 0; i < ISAS; i++)
        if (strcmp(isas[i].isa, isa) == 0 && isas[i].works())
            return (*isas[i].kernels)[shape_of(stencil)][dtype];
    return NULL;
}

mx_kernel_fn *mx_stencil_plain(const struct mx_stencil *stencil, enum mx_dtype dtype) {
    return mx_kernels_plain[shape_of(stencil)][dtype];
}

mx_kernel_fn *mx_stencil_kernel(const struct mx_stencil *stencil, enum mx_dtype dtype, const char **isa) {
    for (int i = best_allowed(); i < ISAS; i++) {
        mx_kernel_fn *kernel = (*isas[i].kernels)[shape_of(stencil)][dtype];
        if (kernel == NULL || !isas[i].works()) continue;
        if (isa != NULL) *isa = isas[i].isa;
        return kernel;
    }
    return NULL; /* not reached: plain fills every slot */
}

mx_tile_fn *mx_stencil_tile_isa(const struct mx_stencil *stencil, enum mx_dtype dtype, const char *isa) {
    for (int i = 0; i < ISAS; i++)
        if (strcmp(isas[i].isa, isa) == 0 && isas[i].works() && isas[i].tiles != NULL && stencil->h == 1)
            return (*isas[i].tiles)[shape_of(stencil)][dtype];
    return NULL;
}

mx_tile_fn *mx_stencil_tile(const struct mx_stencil *stencil, enum mx_dtype dtype) {
    const char *isa;
    mx_stencil_kernel(stencil, dtype, &isa);
    return mx_stencil_tile_isa(stencil, dtype, isa);
}

int32_t mx_stencil_tile_rows(const struct mx_stencil *stencil) {
    const char *isa;
    mx_stencil_kernel(stencil, MX_F64, &isa);
    for (int i = 0; i < ISAS; i++)
        if (strcmp(isas[i].isa, isa) == 0 && isas[i].rows != NULL && stencil->h == 1)
            return (*isas[i].rows)[shape_of(stencil)];
    return 0;
}

mx_tile_fn *mx_stencil_span_isa(const struct mx_stencil *stencil, enum mx_dtype dtype, const char *isa,
                                int64_t *lanes) {
    for (int i = 0; i < ISAS; i++)
        if (strcmp(isas[i].isa, isa) == 0 && isas[i].works() && isas[i].spans != NULL && stencil->h == 1) {
            *lanes = isas[i].vector_bytes / mx_dtype_bytes(dtype);
            return (*isas[i].spans)[shape_of(stencil)][dtype];
        }
    return NULL;
}

mx_tile_fn *mx_stencil_span(const struct mx_stencil *stencil, enum mx_dtype dtype, int64_t *lanes) {
    const char *isa;
    mx_stencil_kernel(stencil, dtype, &isa);
    return mx_stencil_span_isa(stencil, dtype, isa, lanes);
}
