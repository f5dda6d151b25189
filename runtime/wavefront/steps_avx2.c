/* SPDX-License-Identifier: BSD-3-Clause */
/* steps_avx2.c - for AVX2: half a record in a register. Elsewhere it stands for the plain one. */
#if defined(__x86_64__) || defined(__i386__)
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif
#endif
#define STEPS mx_wf_steps_avx2
#include "wavefront/steps.inc"
#if defined(__clang__) && (defined(__x86_64__) || defined(__i386__))
#pragma clang attribute pop
#endif
