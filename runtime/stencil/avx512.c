/* SPDX-License-Identifier: BSD-3-Clause */
/* avx512.c - kernels for AVX-512 (F, VL, BW, DQ): 8 doubles or 16 floats. */
#include "stencil/kernels.h"

#if defined(__x86_64__)
#if !defined(__clang__)
#pragma GCC target("avx512f,avx512vl,avx512bw,avx512dq")
#endif
#include <immintrin.h>
#if defined(__clang__) /* has another name for it, and its intrinsics choose their target themselves */
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq"))),                  \
                             apply_to = function)
#endif

__attribute__((always_inline)) static inline uint32_t lane_mask(int64_t x, int64_t from, int64_t to,
                                                                int64_t lanes) {
    int64_t lo = from - x, hi = to - x;
    lo = lo < 0 ? 0 : lo > lanes ? lanes : lo;
    hi = hi < 0 ? 0 : hi > lanes ? lanes : hi;
    return ((1u << hi) - 1) & ~((1u << lo) - 1);
}

#define ROWS7 6
#define ROWS19 4
#define ROWS27 4

#define NAME(x) x##_f64
#define CELL double
#define DTYPE MX_F64
#define LANES 8
#define VEC __m512d
#define MASK __mmask8
#define SET1 _mm512_set1_pd
#define ADD _mm512_add_pd
#define MUL _mm512_mul_pd
#define LOAD _mm512_loadu_pd
#define STORE _mm512_storeu_pd
#define LOADM(p, m) _mm512_maskz_loadu_pd(m, p)
#define STOREM _mm512_mask_storeu_pd
#define LANES_OF(x, from, to) (MASK) lane_mask(x, from, to, LANES)
#define BLEND(m, a, b) _mm512_mask_mov_pd(a, m, b)
#define PAIR(hi, lo, n)                                                                                      \
    _mm512_castsi512_pd(_mm512_alignr_epi64(_mm512_castpd_si512(hi), _mm512_castpd_si512(lo), n))
#define LEFT(prev, cur) PAIR(cur, prev, 7)
#define RIGHT(cur, next) PAIR(next, cur, 1)
#include "simd.inc"
#undef NAME
#undef CELL
#undef DTYPE
#undef LANES
#undef VEC
#undef MASK
#undef SET1
#undef ADD
#undef MUL
#undef LOAD
#undef STORE
#undef LOADM
#undef STOREM
#undef BLEND
#undef PAIR

#define NAME(x) x##_f32
#define CELL float
#define DTYPE MX_F32
#define LANES 16
#define VEC __m512
#define MASK __mmask16
#define SET1 _mm512_set1_ps
#define ADD _mm512_add_ps
#define MUL _mm512_mul_ps
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define LOADM(p, m) _mm512_maskz_loadu_ps(m, p)
#define STOREM _mm512_mask_storeu_ps
#define BLEND(m, a, b) _mm512_mask_mov_ps(a, m, b)
#undef LEFT
#undef RIGHT
#define PAIR(hi, lo, n)                                                                                      \
    _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(hi), _mm512_castps_si512(lo), n))
#define LEFT(prev, cur) PAIR(cur, prev, 15)
#define RIGHT(cur, next) PAIR(next, cur, 1)
#include "simd.inc"

const mx_kernel_table mx_kernels_avx512 = {
    [MX_STAR] = {[MX_F64] = star_f64, [MX_F32] = star_f32},
    [MX_EDGE19] = {[MX_F64] = edge19_f64, [MX_F32] = edge19_f32},
    [MX_BOX27] = {[MX_F64] = box27_f64, [MX_F32] = box27_f32},
};

const mx_tile_table mx_tiles_avx512 = {
    [MX_STAR] = {[MX_F64] = tile_star_f64, [MX_F32] = tile_star_f32},
    [MX_EDGE19] = {[MX_F64] = tile_edge19_f64, [MX_F32] = tile_edge19_f32},
    [MX_BOX27] = {[MX_F64] = tile_box27_f64, [MX_F32] = tile_box27_f32},
};
const mx_tile_table mx_spans_avx512 = {
    [MX_STAR] = {[MX_F64] = span_star_f64, [MX_F32] = span_star_f32},
    [MX_EDGE19] = {[MX_F64] = span_edge19_f64, [MX_F32] = span_edge19_f32},
    [MX_BOX27] = {[MX_F64] = span_box27_f64, [MX_F32] = span_box27_f32},
};
mx_rows_table mx_rows_avx512 = {ROWS7, ROWS19, ROWS27};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
