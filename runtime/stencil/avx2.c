/* SPDX-License-Identifier: BSD-3-Clause */
/* avx2.c - kernels for AVX2: 4 doubles or 8 floats. */
#include "stencil/kernels.h"

#if defined(__x86_64__)
#if !defined(__clang__)
#pragma GCC target("avx2")
#endif
#include <immintrin.h>
#if defined(__clang__) /* has another name for it, and its intrinsics choose their target themselves */
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#endif

/* Lanes with from <= x + i < to. */
__attribute__((always_inline)) static inline __m256i lanes64(int64_t x, int64_t from, int64_t to) {
    const __m256i cell = _mm256_add_epi64(_mm256_set1_epi64x(x), _mm256_setr_epi64x(0, 1, 2, 3));
    const __m256i below = _mm256_cmpgt_epi64(_mm256_set1_epi64x(from), cell);
    return _mm256_andnot_si256(below, _mm256_cmpgt_epi64(_mm256_set1_epi64x(to), cell));
}

__attribute__((always_inline)) static inline int near(int64_t d) {
    return (int)(d < -16 ? -16 : d > 16 ? 16 : d);
}

__attribute__((always_inline)) static inline __m256i lanes32(int64_t x, int64_t from, int64_t to) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32(near(from - x)), lane);
    return _mm256_andnot_si256(below, _mm256_cmpgt_epi32(_mm256_set1_epi32(near(to - x)), lane));
}

__attribute__((always_inline)) static inline __m256d left_pd(__m256d prev, __m256d cur) {
    return _mm256_shuffle_pd(_mm256_permute2f128_pd(prev, cur, 0x21), cur, 5);
}
__attribute__((always_inline)) static inline __m256d right_pd(__m256d cur, __m256d next) {
    return _mm256_shuffle_pd(cur, _mm256_permute2f128_pd(cur, next, 0x21), 5);
}
__attribute__((always_inline)) static inline __m256 left_ps(__m256 prev, __m256 cur) {
    const __m256i mid = _mm256_castps_si256(_mm256_permute2f128_ps(prev, cur, 0x21));
    return _mm256_castsi256_ps(_mm256_alignr_epi8(_mm256_castps_si256(cur), mid, 12));
}
__attribute__((always_inline)) static inline __m256 right_ps(__m256 cur, __m256 next) {
    const __m256i mid = _mm256_castps_si256(_mm256_permute2f128_ps(cur, next, 0x21));
    return _mm256_castsi256_ps(_mm256_alignr_epi8(mid, _mm256_castps_si256(cur), 4));
}

#define ROWS7 4
#define ROWS19 2
#define ROWS27 2
#define MASK __m256i
#define SLOW_MASKS /* a masked store takes 12 cycles and more on AMD's CPUs, a whole one takes one */

#define NAME(x) x##_f64
#define CELL double
#define DTYPE MX_F64
#define LANES 4
#define VEC __m256d
#define SET1 _mm256_set1_pd
#define ADD _mm256_add_pd
#define MUL _mm256_mul_pd
#define LOAD _mm256_loadu_pd
#define STORE _mm256_storeu_pd
#define LOADM _mm256_maskload_pd
#define STOREM _mm256_maskstore_pd
#define BLEND(m, a, b) _mm256_blendv_pd(a, b, _mm256_castsi256_pd(m))
#define LANES_OF lanes64
#define LEFT left_pd
#define RIGHT right_pd
#include "simd.inc"
#undef NAME
#undef CELL
#undef DTYPE
#undef LANES
#undef VEC
#undef SET1
#undef ADD
#undef MUL
#undef LOAD
#undef STORE
#undef LOADM
#undef STOREM
#undef BLEND
#undef LANES_OF
#undef LEFT
#undef RIGHT

#define NAME(x) x##_f32
#define CELL float
#define DTYPE MX_F32
#define LANES 8
#define VEC __m256
#define SET1 _mm256_set1_ps
#define ADD _mm256_add_ps
#define MUL _mm256_mul_ps
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define LOADM _mm256_maskload_ps
#define STOREM _mm256_maskstore_ps
#define BLEND(m, a, b) _mm256_blendv_ps(a, b, _mm256_castsi256_ps(m))
#define LANES_OF lanes32
#define LEFT left_ps
#define RIGHT right_ps
#include "simd.inc"

const mx_kernel_table mx_kernels_avx2 = {
    [MX_STAR] = {[MX_F64] = star_f64, [MX_F32] = star_f32},
    [MX_EDGE19] = {[MX_F64] = edge19_f64, [MX_F32] = edge19_f32},
    [MX_BOX27] = {[MX_F64] = box27_f64, [MX_F32] = box27_f32},
};

const mx_tile_table mx_tiles_avx2 = {
    [MX_STAR] = {[MX_F64] = tile_star_f64, [MX_F32] = tile_star_f32},
    [MX_EDGE19] = {[MX_F64] = tile_edge19_f64, [MX_F32] = tile_edge19_f32},
    [MX_BOX27] = {[MX_F64] = tile_box27_f64, [MX_F32] = tile_box27_f32},
};
const mx_tile_table mx_spans_avx2 = {
    [MX_STAR] = {[MX_F64] = span_star_f64, [MX_F32] = span_star_f32},
    [MX_EDGE19] = {[MX_F64] = span_edge19_f64, [MX_F32] = span_edge19_f32},
    [MX_BOX27] = {[MX_F64] = span_box27_f64, [MX_F32] = span_box27_f32},
};
mx_rows_table mx_rows_avx2 = {ROWS7, ROWS19, ROWS27};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
