/* SPDX-License-Identifier: BSD-3-Clause */
/* cell_device.h - the counterpart of memext/cell.h for compilers of devices. From the same cell it makes a
 * kernel in which each work item computes a cell, in rows and planes of arrays in the device's memory. OpenCL
 * C 1.2 and CUDA C++.
 *
 * The text before this one (engine/accel_text.c) defines as numbers: MX_D_NX MX_D_NY MX_D_NZ;
 * MX_D_FIRST_PLANE, the plane of the whole grid that is the first interior plane of the arrays (0 without
 * ranks); MX_D_ROW_PITCH and MX_D_PLANE_PITCH of A and B; MX_D_OFFSET_name of a field in its row; for a field
 * of C MX_D_PITCH_name, MX_D_SLOT_PITCH_name, MX_D_GHOSTS_name, MX_D_ORIGIN_name, MX_D_FILE_PITCH_name and
 * MX_D_ALIGN_name (engine.h, mx_fixed_view); MX_D_VALUE_name of a parameter; with MX_D_SERIES some of these
 * are values of mx_series at step mx_t and level mx_of_step. The bits are those of the CPU: the compiler's
 * options exclude contraction and flush to zero, and make + - * / and sqrt correctly rounded.
 */
#ifndef MX_STATE
struct mx_row; /* no kernel, no text */
#elif !defined(MEMEXT_CELL_DEVICE_H)
#define MEMEXT_CELL_DEVICE_H

#ifdef MX_RADII /* cell.h */
#define MX_OF_RADII_(PICK, ...) PICK(__VA_ARGS__)
#define MX_RADIUS_X_(x, y, z) (x)
#define MX_RADIUS_Z_(x, y, z) (z)
#define MX_RADIUS MX_OF_RADII_(MX_RADIUS_X_, MX_RADII)
#if MX_OF_RADII_(MX_RADIUS_Z_, MX_RADII) == 0
#define MX_FLAT_ 1 /* two dimensions: rows of the grid are planes of the arrays */
#endif
#endif
#ifndef MX_FLAT_
#define MX_FLAT_ 0
#endif
/* Cells of frame before the first row of a plane. */
#define MX_D_RADIUS_Y (MX_FLAT_ ? 0 : MX_RADIUS)

#if defined(__OPENCL_C_VERSION__)
#pragma OPENCL FP_CONTRACT OFF
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define MX_D_KERNEL __kernel
#define MX_D_GLOBAL __global
#define MX_D_FUNCTION static inline
#define MX_D_LOCAL __local
#define MX_D_SHARED __local
#define MX_D_INLINE static inline __attribute__((always_inline))
#define MX_D_ALONE restrict
#define MX_D_BOUNDS
#define MX_D_FUSED_BOUNDS
#define MX_D_ITEM(d) ((int64_t)get_global_id(d))
#define MX_D_ITEM_OF_GROUP(d) ((int64_t)get_local_id(d))
#define MX_D_GROUP(d) ((int64_t)get_group_id(d))
#define MX_D_BARRIER barrier(CLK_LOCAL_MEM_FENCE)
typedef char int8_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef short int16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
#define MX_D_TABLE __constant
/* Words of these languages that C does not have. */
#define kernel mx_name_kernel
#define global mx_name_global
#define local mx_name_local
#define constant mx_name_constant
#define private mx_name_private
#define generic mx_name_generic
#define half mx_name_half
#define nearbyint(v) mx_math_rint(v)
#define nearbyintf(v) mx_math_rintf(v)
#else
#define MX_D_KERNEL extern "C" __global__
#define MX_D_GLOBAL
#define MX_D_FUNCTION static __device__ inline
#define MX_D_ITEM_0 ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)
#define MX_D_ITEM_1 ((int64_t)blockIdx.y * blockDim.y + threadIdx.y)
#define MX_D_ITEM_2 ((int64_t)blockIdx.z * blockDim.z + threadIdx.z)
#define MX_D_ITEM(d) MX_D_ITEM_##d
#define MX_D_LOCAL
#define MX_D_SHARED __shared__
#define MX_D_INLINE static __device__ __forceinline__
#define MX_D_ALONE __restrict__
#ifdef __CUDACC_RTC__ /* groups are no larger (accel/cuda.c, accel_text.h): a work item may have so many     \
                         more registers */
#define MX_D_BOUNDS __launch_bounds__(256)
#define MX_D_FUSED_BOUNDS __launch_bounds__(MX_D_GROUP_X *MX_D_GROUP_Y, MX_D_GROUPS)
#else
#define MX_D_BOUNDS
#define MX_D_FUSED_BOUNDS
#endif
#define MX_D_ITEM_OF_GROUP_0 ((int64_t)threadIdx.x)
#define MX_D_ITEM_OF_GROUP_1 ((int64_t)threadIdx.y)
#define MX_D_ITEM_OF_GROUP(d) MX_D_ITEM_OF_GROUP_##d
#define MX_D_GROUP_0 ((int64_t)blockIdx.x)
#define MX_D_GROUP_1 ((int64_t)blockIdx.y)
#define MX_D_GROUP_2 ((int64_t)blockIdx.z)
#define MX_D_GROUP(d) MX_D_GROUP_##d
#define MX_D_BARRIER __syncthreads()
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef short int16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
#define MX_D_TABLE static
/* What a C file may use and C++ does not have, or has in another form. */
#define restrict __restrict__
#define _Bool bool
#define _Static_assert static_assert
#define new mx_name_new
#define delete mx_name_delete
#define this mx_name_this
#define class mx_name_class
#define template mx_name_template
#define typename mx_name_typename
#define namespace mx_name_namespace
#define operator mx_name_operator
#define private mx_name_private
#define public mx_name_public
#define protected mx_name_protected
#define virtual mx_name_virtual
#define friend mx_name_friend
#define using mx_name_using
#define explicit mx_name_explicit
#define mutable mx_name_mutable
#define throw mx_name_throw
#define catch mx_name_catch
#ifndef INFINITY
#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fc00000))
#endif
#ifndef M_PI
#define M_E 2.7182818284590452354
#define M_LN2 0.69314718055994530942
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif
#endif

/* Names of functions that C does not have: a kernel may use them for its own. */
#undef min
#define min mx_name_min
#undef max
#define max mx_name_max
#undef clamp
#define clamp mx_name_clamp
#undef mix
#define mix mx_name_mix
#undef step
#define step mx_name_step
#undef smoothstep
#define smoothstep mx_name_smoothstep
#undef sign
#define sign mx_name_sign
#undef dot
#define dot mx_name_dot
#undef cross
#define cross mx_name_cross
#undef length
#define length mx_name_length
#undef distance
#define distance mx_name_distance
#undef normalize
#define normalize mx_name_normalize
#undef select
#define select mx_name_select
#undef rotate
#define rotate mx_name_rotate
#undef mad
#define mad mx_name_mad
#undef degrees
#define degrees mx_name_degrees
#undef radians
#define radians mx_name_radians
#undef any
#define any mx_name_any
#undef all
#define all mx_name_all
MX_D_FUNCTION int mx_math_abs(int a) { return a < 0 ? -a : a; }
MX_D_FUNCTION int64_t mx_math_labs(int64_t a) { return a < 0 ? -a : a; }
#undef abs
#define abs(a) mx_math_abs(a)
#define labs(a) mx_math_labs(a)
#define llabs(a) mx_math_labs(a)

/* In C the functions of <math.h> always compute in double, and those with an f in float. Compilers of devices
 * use the type of the argument. (A macro of the same name would hide one of the compiler.) */
#define MX_D_MATH(ONE, TWO)                                                                                  \
    ONE(sqrt)                                                                                                \
    ONE(fabs)                                                                                                \
    ONE(floor)                                                                                               \
    ONE(ceil)                                                                                                \
    ONE(trunc)                                                                                               \
    ONE(rint)                                                                                                \
    ONE(round)                                                                                               \
    ONE(exp)                                                                                                 \
    ONE(exp2)                                                                                                \
    ONE(expm1) ONE(log) ONE(log2) ONE(log10) ONE(log1p) ONE(sin) ONE(cos) ONE(tan) ONE(sinh) ONE(cosh)       \
        ONE(tanh) ONE(asin) ONE(acos) ONE(atan) ONE(asinh) ONE(acosh) ONE(atanh) ONE(cbrt) ONE(erf)          \
            ONE(erfc) ONE(tgamma) ONE(lgamma) ONE(logb) TWO(fmin) TWO(fmax) TWO(fmod) TWO(pow) TWO(atan2)    \
                TWO(hypot) TWO(copysign) TWO(fdim) TWO(remainder) TWO(nextafter)
#define MX_D_MATH_1(name)                                                                                    \
    MX_D_FUNCTION double mx_math_##name(double a) { return name(a); }
#define MX_D_MATH_2(name)                                                                                    \
    MX_D_FUNCTION double mx_math_##name(double a, double b) { return name(a, b); }
MX_D_MATH(MX_D_MATH_1, MX_D_MATH_2)
MX_D_FUNCTION double mx_math_fma(double a, double b, double c) { return fma(a, b, c); }
#if defined(__OPENCL_C_VERSION__)
#define MX_D_MATH_1F(name)                                                                                   \
    MX_D_FUNCTION float mx_math_##name##f(float a) { return name(a); }
#define MX_D_MATH_2F(name)                                                                                   \
    MX_D_FUNCTION float mx_math_##name##f(float a, float b) { return name(a, b); }
MX_D_MATH(MX_D_MATH_1F, MX_D_MATH_2F)
MX_D_FUNCTION float mx_math_fmaf(float a, float b, float c) { return fma(a, b, c); }
#endif
#undef sqrt
#define sqrt(a) mx_math_sqrt(a)
#undef fabs
#define fabs(a) mx_math_fabs(a)
#undef floor
#define floor(a) mx_math_floor(a)
#undef ceil
#define ceil(a) mx_math_ceil(a)
#undef trunc
#define trunc(a) mx_math_trunc(a)
#undef rint
#define rint(a) mx_math_rint(a)
#undef round
#define round(a) mx_math_round(a)
#undef exp
#define exp(a) mx_math_exp(a)
#undef exp2
#define exp2(a) mx_math_exp2(a)
#undef expm1
#define expm1(a) mx_math_expm1(a)
#undef log
#define log(a) mx_math_log(a)
#undef log2
#define log2(a) mx_math_log2(a)
#undef log10
#define log10(a) mx_math_log10(a)
#undef log1p
#define log1p(a) mx_math_log1p(a)
#undef sin
#define sin(a) mx_math_sin(a)
#undef cos
#define cos(a) mx_math_cos(a)
#undef tan
#define tan(a) mx_math_tan(a)
#undef sinh
#define sinh(a) mx_math_sinh(a)
#undef cosh
#define cosh(a) mx_math_cosh(a)
#undef tanh
#define tanh(a) mx_math_tanh(a)
#undef asin
#define asin(a) mx_math_asin(a)
#undef acos
#define acos(a) mx_math_acos(a)
#undef atan
#define atan(a) mx_math_atan(a)
#undef asinh
#define asinh(a) mx_math_asinh(a)
#undef acosh
#define acosh(a) mx_math_acosh(a)
#undef atanh
#define atanh(a) mx_math_atanh(a)
#undef cbrt
#define cbrt(a) mx_math_cbrt(a)
#undef erf
#define erf(a) mx_math_erf(a)
#undef erfc
#define erfc(a) mx_math_erfc(a)
#undef tgamma
#define tgamma(a) mx_math_tgamma(a)
#undef lgamma
#define lgamma(a) mx_math_lgamma(a)
#undef logb
#define logb(a) mx_math_logb(a)
#undef fmin
#define fmin(a, b) mx_math_fmin(a, b)
#undef fmax
#define fmax(a, b) mx_math_fmax(a, b)
#undef fmod
#define fmod(a, b) mx_math_fmod(a, b)
#undef pow
#define pow(a, b) mx_math_pow(a, b)
#undef atan2
#define atan2(a, b) mx_math_atan2(a, b)
#undef hypot
#define hypot(a, b) mx_math_hypot(a, b)
#undef copysign
#define copysign(a, b) mx_math_copysign(a, b)
#undef fdim
#define fdim(a, b) mx_math_fdim(a, b)
#undef remainder
#define remainder(a, b) mx_math_remainder(a, b)
#undef nextafter
#define nextafter(a, b) mx_math_nextafter(a, b)
#undef fma
#define fma(a, b, c) mx_math_fma(a, b, c)
#if defined(__OPENCL_C_VERSION__)
#define sqrtf(a) mx_math_sqrtf(a)
#define fabsf(a) mx_math_fabsf(a)
#define floorf(a) mx_math_floorf(a)
#define ceilf(a) mx_math_ceilf(a)
#define truncf(a) mx_math_truncf(a)
#define rintf(a) mx_math_rintf(a)
#define roundf(a) mx_math_roundf(a)
#define expf(a) mx_math_expf(a)
#define exp2f(a) mx_math_exp2f(a)
#define expm1f(a) mx_math_expm1f(a)
#define logf(a) mx_math_logf(a)
#define log2f(a) mx_math_log2f(a)
#define log10f(a) mx_math_log10f(a)
#define log1pf(a) mx_math_log1pf(a)
#define sinf(a) mx_math_sinf(a)
#define cosf(a) mx_math_cosf(a)
#define tanf(a) mx_math_tanf(a)
#define sinhf(a) mx_math_sinhf(a)
#define coshf(a) mx_math_coshf(a)
#define tanhf(a) mx_math_tanhf(a)
#define asinf(a) mx_math_asinf(a)
#define acosf(a) mx_math_acosf(a)
#define atanf(a) mx_math_atanf(a)
#define asinhf(a) mx_math_asinhf(a)
#define acoshf(a) mx_math_acoshf(a)
#define atanhf(a) mx_math_atanhf(a)
#define cbrtf(a) mx_math_cbrtf(a)
#define erff(a) mx_math_erff(a)
#define erfcf(a) mx_math_erfcf(a)
#define tgammaf(a) mx_math_tgammaf(a)
#define lgammaf(a) mx_math_lgammaf(a)
#define logbf(a) mx_math_logbf(a)
#define fminf(a, b) mx_math_fminf(a, b)
#define fmaxf(a, b) mx_math_fmaxf(a, b)
#define fmodf(a, b) mx_math_fmodf(a, b)
#define powf(a, b) mx_math_powf(a, b)
#define atan2f(a, b) mx_math_atan2f(a, b)
#define hypotf(a, b) mx_math_hypotf(a, b)
#define copysignf(a, b) mx_math_copysignf(a, b)
#define fdimf(a, b) mx_math_fdimf(a, b)
#define remainderf(a, b) mx_math_remainderf(a, b)
#define nextafterf(a, b) mx_math_nextafterf(a, b)
#define fmaf(a, b, c) mx_math_fmaf(a, b, c)
#endif

/* Types of <stdint.h>. */
#ifndef INT64_C
#define INT64_C(v) v##L
#define UINT64_C(v) v##UL
#endif
#ifndef INT64_MAX
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295U
#define INT64_MIN (-0x7fffffffffffffffL - 1)
#define INT64_MAX 0x7fffffffffffffffL
#define UINT64_MAX 0xffffffffffffffffUL
#endif

#define MX_D_UNROLL _Pragma("unroll")
#if defined(__OPENCL_C_VERSION__) /* OpenCL's compilers decide better themselves */
#define MX_D_UNROLL_4
#else
#define MX_D_UNROLL_4 _Pragma("unroll 4")
#endif
#ifdef __CUDACC_RTC__ /* values that move on from plane to plane are renamed instead */
#define MX_D_UNROLL_PLANES _Pragma("unroll MX_D_PLANES_AT_ONCE")
#else
#define MX_D_UNROLL_PLANES
#endif
/* A number that is kept in a register, and not computed again at each use. */
#ifdef __CUDACC_RTC__
#define MX_D_FIX(v) asm volatile("" : "+r"(v))
#else
#define MX_D_FIX(v) ((void)0)
#endif

#define MX_JACOBI 0
#define MX_LEAPFROG 1
#define MX_STAGGERED 2

#ifndef MX_PARTNER
#define MX_PARTNER(F)
#endif
#ifndef MX_FIXED
#define MX_FIXED(F)
#endif
#ifndef MX_PARAMS
#define MX_PARAMS(P)
#endif
#ifndef MX_FIXED_RADIUS
#define MX_FIXED_RADIUS 0
#endif
#ifndef MX_FORM
#define MX_FORM MX_JACOBI
#endif
#ifndef MX_REAL
#define MX_REAL double
#endif

#define MX_CONVERSION_ MX_D_INLINE
/* MX_CONVERSIONS of cell.h stand here: mx_u8_of_real and so on. mx_d_store stores a number as SET does,
 * depending on the types of the cell and of the number; other types are first converted to one of these
 * without loss. */
#if defined(__OPENCL_C_VERSION__)
#define MX_D_OVERLOAD static inline __attribute__((always_inline, overloadable))
#else
#define MX_D_OVERLOAD MX_D_INLINE
#endif
#define MX_D_LONG_LONG(DO, shortly, type) /* 1ull has a type that is not uint64_t */                         \
    DO(shortly, type, long long)                                                                             \
    DO(shortly, type, unsigned long long)
#define MX_D_FROM_REAL(shortly, type, from)                                                                  \
    MX_D_OVERLOAD void mx_d_store(type *cell, from v) { *cell = mx_##shortly##_of_real((double)v); }
#define MX_D_FROM_WHOLE(shortly, type, from)                                                                 \
    MX_D_OVERLOAD void mx_d_store(type *cell, from v) { *cell = mx_##shortly##_of_whole((uint64_t)v); }
#define MX_D_TO_REAL(shortly, type, from)                                                                    \
    MX_D_OVERLOAD void mx_d_store(type *cell, from v) { *cell = (type)v; }
#define MX_D_ALL_WHOLE(DO, shortly, type)                                                                    \
    DO(shortly, type, int)                                                                                   \
    DO(shortly, type, uint32_t)                                                                              \
    DO(shortly, type, int64_t)                                                                               \
    DO(shortly, type, uint64_t)                                                                              \
    MX_D_LONG_LONG(DO, shortly, type)
#define MX_D_STORES_REAL(type)                                                                               \
    MX_D_TO_REAL(real, type, float)                                                                          \
    MX_D_TO_REAL(real, type, double)                                                                         \
    MX_D_ALL_WHOLE(MX_D_TO_REAL, real, type)
#define MX_D_STORES_WHOLE(shortly, type)                                                                     \
    MX_D_FROM_REAL(shortly, type, float)                                                                     \
    MX_D_FROM_REAL(shortly, type, double)                                                                    \
    MX_D_ALL_WHOLE(MX_D_FROM_WHOLE, shortly, type)
/* Adds a floating-point number to a cell. */
#define MX_D_PLUS(shortly, type)                                                                             \
    MX_D_OVERLOAD type mx_d_plus(type cell, double more) { return mx_##shortly##_plus(cell, more); }
#define MX_D_PLUS_REAL(type)                                                                                 \
    MX_D_OVERLOAD type mx_d_plus(type cell, double more) { return (type)((double)cell + more); }
MX_D_PLUS_REAL(float)
MX_D_PLUS_REAL(double)
MX_D_PLUS(i8, int8_t)
MX_D_PLUS(u8, uint8_t)
MX_D_PLUS(i16, int16_t)
MX_D_PLUS(u16, uint16_t)
MX_D_PLUS(i32, int32_t)
MX_D_PLUS(u32, uint32_t)
MX_D_PLUS(i64, int64_t)
MX_D_PLUS(u64, uint64_t)
MX_D_STORES_REAL(float)
MX_D_STORES_REAL(double)
MX_D_STORES_WHOLE(i8, int8_t)
MX_D_STORES_WHOLE(u8, uint8_t)
MX_D_STORES_WHOLE(i16, int16_t)
MX_D_STORES_WHOLE(u16, uint16_t)
MX_D_STORES_WHOLE(i32, int32_t)
MX_D_STORES_WHOLE(u32, uint32_t)
MX_D_STORES_WHOLE(i64, int64_t)
MX_D_STORES_WHOLE(u64, uint64_t)

#define MX_D_TYPEDEF(name, type) typedef type mx_type_##name;
MX_STATE(MX_D_TYPEDEF) MX_PARTNER(MX_D_TYPEDEF) MX_FIXED(MX_D_TYPEDEF) typedef MX_REAL mx_real;

/* Slots of a ring follow one another; none is farther away than the ring is long. */
MX_D_FUNCTION int64_t mx_wrap(int64_t slot, int64_t slots) {
    return slot < 0 ? slot + slots : slot >= slots ? slot - slots : slot;
}

MX_D_FUNCTION int mx_slot_of(int64_t first, int64_t plane, int64_t more, int64_t slots) {
    return (int)mx_wrap(mx_wrap(first + plane, slots) + more, slots);
}
MX_D_FUNCTION int mx_next(int slot, int slots) { return slot + 1 < slots ? slot + 1 : 0; }

/* Maps ghost layers to the cells that they stand for; they go around the grid at most once. */
MX_D_FUNCTION int64_t mx_inside(int64_t i, int64_t n) { return i < 0 ? i + n : i >= n ? i - n : i; }

/* Where a plane of a read-only field (of C) begins. Its offset in the slot is its offset in the file, modulo
 * the alignment. */
#define MX_D_FIXED_PLANE(name, type)                                                                         \
    MX_D_FUNCTION int64_t mx_plane_##name(int64_t slot, int64_t slots, int64_t z, int64_t y_offset) {        \
        const int64_t first = MX_RADIUS - MX_D_FIRST_PLANE,                                                  \
                      plane = MX_D_GHOSTS_##name ? first + mx_inside(z - first, MX_D_NZ) : z;                \
        const int64_t at =                                                                                   \
            MX_D_ORIGIN_##name + plane * MX_D_FILE_PITCH_##name - y_offset * MX_D_PITCH_##name;              \
        if (MX_D_PROFILE_##name) return at;                                                                  \
        return mx_wrap(slot, slots) * MX_D_SLOT_PITCH_##name +                                               \
               (at % MX_D_ALIGN_##name + MX_D_ALIGN_##name) % MX_D_ALIGN_##name;                             \
    }
MX_FIXED(MX_D_FIXED_PLANE)
/* For each field: the pitch of its rows, where it begins in a row, how far AT reaches, and the cells from one
 * x to the next (0 for a field of C with one cell for a whole row). */
#define MX_D_STATE_FACTS(name, type)                                                                         \
    MX_D_FUNCTION int64_t mx_pitch_##name(void) { return MX_D_ROW_PITCH; }                                   \
    MX_D_FUNCTION int64_t mx_offset_##name(void) { return MX_D_OFFSET_##name; }                              \
    enum { mx_reach_##name = MX_RADIUS, mx_step_##name = 1 };
#define MX_D_FIXED_FACTS(name, type)                                                                         \
    MX_D_FUNCTION int64_t mx_pitch_##name(void) { return MX_D_PITCH_##name; }                                \
    MX_D_FUNCTION int64_t mx_offset_##name(void) { return 0; }                                               \
    enum { mx_reach_##name = MX_FIXED_RADIUS, mx_step_##name = MX_D_STEP_##name };
MX_STATE(MX_D_STATE_FACTS)
MX_PARTNER(MX_D_STATE_FACTS)
MX_FIXED(MX_D_FIXED_FACTS)

#define MX_D_ARGUMENT(name, type) , MX_D_GLOBAL const char *MX_D_ALONE mx_c_##name
/* Parameters over time, passed to every function that may use PARAM. */
#ifdef MX_D_SERIES
#define MX_D_TIMES , MX_D_GLOBAL const double *MX_D_ALONE mx_series
#define MX_D_PASS_TIMES , mx_series
#else
#define MX_D_TIMES
#define MX_D_PASS_TIMES
#endif
/* The window's first row and plane, its rows and planes; of the arrays read and written and of C the slot of
 * that plane, and the slots of the ring; what rows are moved by; the step. */
#define MX_D_ARRAYS                                                                                          \
    MX_D_GLOBAL const char *MX_D_ALONE mx_from,                                                              \
        MX_D_GLOBAL char *MX_D_ALONE mx_to MX_FIXED(MX_D_ARGUMENT) MX_D_TIMES
#define MX_D_NUMBERS                                                                                         \
    int64_t mx_y0, int64_t mx_z0, int64_t mx_rows, int64_t mx_planes, int64_t mx_from_first,                 \
        int64_t mx_from_slots, int64_t mx_to_first, int64_t mx_to_slots, int64_t mx_c_first,                 \
        int64_t mx_c_slots, int64_t mx_y_offset, int64_t mx_t
#define MX_D_ARGUMENTS MX_D_ARRAYS, MX_D_NUMBERS

/* A work item goes through planes one after the other, and keeps where the planes around one begin: of the
 * array read those from -MX_RADIUS to MX_RADIUS, of C those that its reach needs, and where two levels are
 * computed at a time those of the level behind as well. MX_D_OPEN makes ready for `plane`, MX_D_NEXT moves on
 * to it, and so from plane to plane: what one reads a plane ahead the next finds in the same registers, and
 * nothing is multiplied or wrapped but for the plane to come. Slots are first + plane of the window, which
 * may be beyond the ring once. */
#ifdef MX_D_FUSED
enum { MX_D_BEHIND = MX_RADIUS };
#else
enum { MX_D_BEHIND = 0 };
#endif
enum { MX_D_C_PLANES = MX_D_BEHIND + 2 * MX_FIXED_RADIUS + 1 };
#define MX_D_OPEN(plane)                                                                                     \
    MX_D_GLOBAL const char *mx_f[2 * MX_RADIUS + 1];                                                         \
    int mx_f_slot = mx_slot_of(mx_from_first, plane, -MX_RADIUS, mx_from_slots);                             \
    MX_D_UNROLL                                                                                              \
    for (int mx_k = 1; mx_k <= 2 * MX_RADIUS; mx_k++) {                                                      \
        mx_f[mx_k] = mx_from + mx_f_slot * MX_D_PLANE_PITCH;                                                 \
        mx_f_slot = mx_next(mx_f_slot, (int)mx_from_slots);                                                  \
    }                                                                                                        \
    MX_FIXED(MX_D_OPEN_FIXED)
#define MX_D_NEXT(plane)                                                                                     \
    MX_D_UNROLL                                                                                              \
    for (int mx_k = 0; mx_k < 2 * MX_RADIUS; mx_k++) mx_f[mx_k] = mx_f[mx_k + 1];                            \
    mx_f[2 * MX_RADIUS] = mx_from + mx_f_slot * MX_D_PLANE_PITCH;                                            \
    mx_f_slot = mx_next(mx_f_slot, (int)mx_from_slots);                                                      \
    const int64_t mx_next_c = (plane) + MX_FIXED_RADIUS;                                                     \
    MX_FIXED(MX_D_NEXT_FIXED)
#define MX_D_C_PLANE(name, plane)                                                                            \
    (mx_c_##name + mx_plane_##name(mx_slot_of(mx_c_first, mx_plane0, (plane)-mx_plane0, mx_c_slots),         \
                                   mx_c_slots, mx_z0 + (plane), mx_y_offset))
#define MX_D_OPEN_FIXED(name, type)                                                                          \
    MX_D_GLOBAL const char *mx_g_##name[MX_D_C_PLANES];                                                      \
    MX_D_UNROLL                                                                                              \
    for (int mx_k = 1; mx_k < MX_D_C_PLANES; mx_k++)                                                         \
        mx_g_##name[mx_k] = MX_D_C_PLANE(name, mx_plane0 + mx_k - 1 - MX_D_BEHIND - MX_FIXED_RADIUS);
#define MX_D_NEXT_FIXED(name, type)                                                                          \
    MX_D_UNROLL                                                                                              \
    for (int mx_k = 0; mx_k < MX_D_C_PLANES - 1; mx_k++) mx_g_##name[mx_k] = mx_g_##name[mx_k + 1];          \
    mx_g_##name[MX_D_C_PLANES - 1] = MX_D_C_PLANE(name, mx_next_c);
#define MX_D_ONE_PLANE(plane)                                                                                \
    const int64_t mx_plane0 = (plane);                                                                       \
    MX_D_OPEN(mx_plane0)                                                                                     \
    MX_D_NEXT(mx_plane0)
#define MX_D_LINE(name, type)                                                                                \
    const int64_t mx_line_##name = (int)(mx_y + mx_y_offset) * mx_pitch_##name() + mx_offset_##name();
#define MX_D_READ(name, type)                                                                                \
    MX_D_GLOBAL const char **const mx_at_##name = mx_f;                                                      \
    MX_D_LINE(name, type)
#define MX_D_READ_FIXED(name, type)                                                                          \
    MX_D_GLOBAL const char **const mx_at_##name = mx_g_##name + MX_D_BEHIND;                                 \
    MX_D_LINE(name, type)
#define MX_D_WRITE(name, type)                                                                               \
    MX_D_GLOBAL mx_type_##name *const mx_out_##name =                                                        \
        (MX_D_GLOBAL mx_type_##name *)(mx_out + (int)(mx_y + mx_y_offset) * MX_D_ROW_PITCH +                 \
                                       MX_D_OFFSET_##name);
#define MX_D_COPY(name, type) mx_out_##name[mx_x] = AT(name, 0, 0, 0);
/* The value that a cell keeps if it does not SET the field (cell.h), and the value that is replaced. Both are
 * passed to the cell's function, which is inlined, and the new value is stored after it. */
#if MX_FORM == MX_JACOBI
#define MX_D_BEGIN(name, type)                                                                               \
    const mx_type_##name mx_old_##name = 0;                                                                  \
    mx_type_##name mx_set_##name = AT(name, 0, 0, 0);
#elif MX_FORM == MX_LEAPFROG
#define MX_D_BEGIN(name, type)                                                                               \
    const mx_type_##name mx_old_##name = mx_out_##name[mx_x];                                                \
    mx_type_##name mx_set_##name = AT(name, 0, 0, 0);
#else
#define MX_D_BEGIN(name, type)                                                                               \
    const mx_type_##name mx_old_##name = mx_out_##name[mx_x];                                                \
    mx_type_##name mx_set_##name = mx_old_##name;
#endif
#define MX_D_NEW(name, type) , const mx_type_##name mx_old_##name, mx_type_##name *mx_new_##name
#define MX_D_GIVE(name, type) , mx_old_##name, &mx_set_##name
#define MX_D_STORE(name, type) mx_out_##name[mx_x] = mx_set_##name;
#define MX_D_PLANES_OF(name, type) , MX_D_GLOBAL const char **mx_at_##name
#define MX_D_PLANES(name, type) , mx_at_##name
#define SET(name, value) mx_d_store(mx_new_##name, value)

#define MX_D_AT(name, dx, dy, dz)                                                                            \
    (((MX_D_GLOBAL const mx_type_##name *)(mx_at_##name[(dz) + mx_reach_##name] + mx_line_##name +           \
                                           (dy)*mx_pitch_##name()))[(mx_x + (dx)) * mx_step_##name])
#ifdef MX_D_FUSED
/* Cells are functions that are called for level l (FIRST), for level l+1 (SECOND), and for one level alone
 * (ONLY). Of the state AT reads what stands in a work item's own column from its registers (mx_own_name), and
 * of level l what stands beside that from the group's memory (mx_in_name). */
enum { MX_D_FIRST, MX_D_SECOND, MX_D_ONLY };
enum {
    MX_D_ACROSS = MX_D_GROUP_X,
    MX_D_DOWN = MX_D_GROUP_Y, /* work items of a group, each with a cell of level l */
    MX_D_TILE_X = MX_D_ACROSS - 2 * MX_RADIUS,
    MX_D_TILE_Y = MX_D_DOWN - 2 * MX_RADIUS, /* cells of level l+1 */
    MX_D_RING = 2 * MX_RADIUS + 2 /* one more than are read: it is written while others still read */
};
enum { MX_D_DO_READ = 1, MX_D_DO_ONE = 2, MX_D_DO_TWO = 4, MX_D_DO_FRAME = 8 };
#define MX_D_IS_STATE(name, type) enum { mx_is_state_##name = 1 };
#define MX_D_IS_FIXED(name, type) enum { mx_is_state_##name = 0 };
MX_STATE(MX_D_IS_STATE)
MX_FIXED(MX_D_IS_FIXED)
#define MX_D_NO_STAGE                                                                                        \
    const int mx_stage = MX_D_ONLY;                                                                          \
    const int *const mx_r = 0;                                                                               \
    MX_D_REDUCED(MX_D_NOWHERE) MX_FIXED(MX_D_NOWHERE)
#define MX_D_NOWHERE(name, type)                                                                             \
    MX_D_LOCAL const mx_type_##name *const mx_in_##name = 0;                                                 \
    const mx_type_##name *const mx_own_##name = 0;
#define AT(name, dx, dy, dz)                                                                                 \
    (mx_is_state_##name && mx_stage != MX_D_ONLY && (dx) == 0 && (dy) == 0                                   \
         ? mx_own_##name[(dz) + mx_reach_##name]                                                             \
     : mx_is_state_##name && mx_stage == MX_D_SECOND                                                         \
         ? mx_in_##name[mx_r[(dz) + mx_reach_##name] + (int)(dy)*MX_D_ACROSS + (int)(dx)]                    \
         : MX_D_AT(name, dx, dy, dz))
#define MX_D_STORE_STAGE(name, type)                                                                         \
    if (mx_stage == MX_D_FIRST)                                                                              \
        *mx_put_##name = mx_set_##name;                                                                      \
    else                                                                                                     \
        mx_out_##name[mx_x] = mx_set_##name;
#else
#define MX_D_NO_STAGE
#if MX_FLAT_
#define MX_D_AT_3(name, dx, dy, dz) MX_D_AT(name, dx, dz, dy)
#define MX_D_AT_2(name, dx, dy) MX_D_AT(name, dx, 0, dy)
#define MX_D_PICK_AT(name, a, b, c, which, ...) which
#define AT(...) MX_D_PICK_AT(__VA_ARGS__, MX_D_AT_3, MX_D_AT_2, MX_D_AT_2)(__VA_ARGS__)
#else
#define AT(name, dx, dy, dz) MX_D_AT(name, dx, dy, dz)
#endif
#endif
#define OLD(name) mx_old_##name
#define PARAM(name) ((mx_real)(MX_D_VALUE_##name))

/* Jacobi: copies the x frame of every row that is written from the other array. */
#if MX_FORM == MX_JACOBI
#define MX_D_FRAME MX_STATE(MX_D_COPY)
#else
#define MX_D_FRAME
#endif

#define MX_D_CELL_BODY(cell_name, WRITES)                                                                    \
    MX_D_INLINE void cell_name(                                                                              \
        MX_D_GLOBAL const char **mx_f, const int mx_x, const int mx_y, const int64_t mx_z,                   \
        const int64_t mx_t, const int64_t mx_y_offset MX_D_TIMES MX_FIXED(MX_D_PLANES_OF) WRITES(MX_D_NEW))
#define MX_D_CELL(kernel_name, cell_name, level, READS, WRITES)                                              \
    MX_D_CELL_BODY(cell_name, WRITES);                                                                       \
    MX_D_KERNEL void MX_D_BOUNDS kernel_name(MX_D_ARGUMENTS) {                                               \
        const int mx_x = (int)MX_D_ITEM(0), mx_row = (int)MX_D_ITEM(1), mx_y = (int)mx_y0 + mx_row;          \
        const int mx_plane0 = (int)(MX_D_ITEM(2) * MX_D_DEEP),                                               \
                  mx_end = (int)(mx_plane0 + MX_D_DEEP < mx_planes ? mx_plane0 + MX_D_DEEP : mx_planes);     \
        if (mx_x >= MX_D_NX + 2 * MX_RADIUS || mx_row >= mx_rows) return;                                    \
        int mx_to_slot = mx_slot_of(mx_to_first, mx_plane0, 0, mx_to_slots);                                 \
        MX_D_OPEN(mx_plane0)                                                                                 \
        READS(MX_D_READ)                                                                                     \
        MX_FIXED(MX_D_READ_FIXED)                                                                            \
        MX_D_UNROLL_4 for (int mx_plane = mx_plane0; mx_plane < mx_end; mx_plane++) {                        \
            MX_D_NEXT(mx_plane)                                                                              \
            MX_D_GLOBAL char *const mx_out = mx_to + mx_to_slot * MX_D_PLANE_PITCH;                          \
            const int64_t mx_z = mx_z0 + mx_plane;                                                           \
            mx_to_slot = mx_next(mx_to_slot, (int)mx_to_slots);                                              \
            WRITES(MX_D_WRITE)                                                                               \
            if (mx_x < MX_RADIUS || mx_x >= MX_D_NX + MX_RADIUS) {                                           \
                MX_D_FRAME continue;                                                                         \
            }                                                                                                \
            WRITES(MX_D_BEGIN)                                                                               \
            cell_name(mx_f, mx_x, mx_y, mx_z, mx_t,                                                          \
                      mx_y_offset MX_D_PASS_TIMES MX_FIXED(MX_D_PLANES) WRITES(MX_D_GIVE));                  \
            WRITES(MX_D_STORE)                                                                               \
        }                                                                                                    \
    }                                                                                                        \
    MX_D_CELL_BODY(cell_name, WRITES) {                                                                      \
        enum { mx_of_step = level };                                                                         \
        READS(MX_D_READ) MX_FIXED(MX_D_LINE) {

#ifdef MX_D_FUSED
/* Two levels in one launch: the window is that of level l+1. A group goes through planes. Each of its work
 * items has a column, of which it computes level l where that is the grid's and keeps it where it is the
 * frame's; those that are not at the group's rim then compute level l+1, 2 radius planes behind what was read
 * last. Of the array read the column's 2 radius + 1 planes are in registers; of level l as well, and in the
 * group's memory for others.
 *
 *     plane of a group, radius 1            planes of a column
 *     r r r r r r r r   r: level l alone    p + 1  read
 *     r . . . . . . r   .: both levels      p      level l
 *     r . . . . . . r                       p - 1  level l + 1, stored
 *     r r r r r r r r                       p - 2
 *
 * Reads one array, writes the other. */
#define MX_D_IN(name, type)                                                                                  \
    , MX_D_LOCAL const mx_type_##name *mx_in_##name, const mx_type_##name *mx_own_##name
#define MX_D_PASS_IN(name, type) , mx_in_##name, mx_own_##name
#define MX_D_PUT(name, type) , mx_type_##name *mx_put_##name
/* The user's cell, with macros that distinguish the stages. */
#define MX_D_SET_OF                                                                                          \
    MX_D_INLINE void mx_set(const int mx_stage, MX_D_GLOBAL const char **mx_f, const int *mx_r,              \
                            const int mx_x, const int mx_y, const int64_t mx_z, const int64_t mx_t,          \
                            const int64_t mx_y_offset MX_D_TIMES MX_STATE(MX_D_IN) MX_FIXED(MX_D_PLANES_OF)  \
                                MX_STATE(MX_D_NEW))
#define MX_CELL                                                                                              \
    MX_D_SET_OF;                                                                                             \
    MX_D_INLINE void mx_body(const int mx_stage, MX_D_GLOBAL const char **mx_f, const int *mx_r,             \
                             MX_D_GLOBAL char *mx_out, const int mx_x, const int mx_y, const int64_t mx_z,   \
                             const int64_t mx_t,                                                             \
                             const int64_t mx_y_offset MX_D_TIMES MX_STATE(MX_D_IN) MX_STATE(MX_D_PUT)       \
                                 MX_FIXED(MX_D_PLANES_OF)) {                                                 \
        MX_STATE(MX_D_READ)                                                                                  \
        MX_FIXED(MX_D_LINE)                                                                                  \
        MX_STATE(MX_D_WRITE)                                                                                 \
        MX_FIXED(MX_D_NOWHERE)                                                                               \
        MX_STATE(MX_D_BEGIN)                                                                                 \
        mx_set(mx_stage, mx_f, mx_r, mx_x, mx_y, mx_z, mx_t,                                                 \
               mx_y_offset MX_D_PASS_TIMES MX_STATE(MX_D_PASS_IN) MX_FIXED(MX_D_PLANES)                      \
                   MX_STATE(MX_D_GIVE));                                                                     \
        MX_STATE(MX_D_STORE_STAGE)                                                                           \
    }                                                                                                        \
    MX_D_SET_OF {                                                                                            \
        MX_STATE(MX_D_READ) MX_FIXED(MX_D_LINE) MX_FIXED(MX_D_NOWHERE) {

#define MX_D_NULL_IN(name, type) , 0, 0
#define MX_D_NULL(name, type) , 0
#define MX_D_LEVEL_ONE(name, type)                                                                           \
    MX_D_SHARED mx_type_##name mx_one_##name[MX_D_RING * MX_D_DOWN * MX_D_ACROSS];                           \
    mx_type_##name mx_q_##name[2 * MX_RADIUS + 1], mx_l_##name[2 * MX_RADIUS + 1];
#define MX_D_OF(array, type, name)                                                                           \
    (((MX_D_GLOBAL type *)((array) + (int)(mx_y + mx_y_offset) * MX_D_ROW_PITCH + MX_D_OFFSET_##name))[mx_x])
#define MX_D_TAKE(name, type)                                                                                \
    mx_q_##name[mx_k] = mx_does ? MX_D_OF(mx_f[mx_k], const mx_type_##name, name) : 0;
#define MX_D_NONE(name, type) mx_l_##name[mx_k] = 0;
#define MX_D_SHIFT(name, type)                                                                               \
    mx_q_##name[mx_k] = mx_q_##name[mx_k + 1], mx_l_##name[mx_k] = mx_l_##name[mx_k + 1];
#define MX_D_KEEP(name, type) mx_l_##name[2 * MX_RADIUS] = mx_q_##name[MX_RADIUS];
#define MX_D_SHOW(name, type) mx_one_##name[mx_r[2 * MX_RADIUS] + mx_in] = mx_l_##name[2 * MX_RADIUS];
#define MX_D_IN_FIRST(name, type) , 0, mx_q_##name
#define MX_D_IN_SECOND(name, type) , mx_one_##name + mx_in, mx_l_##name
#define MX_D_PUT_FIRST(name, type) , &mx_l_##name[2 * MX_RADIUS]
#define MX_D_C_HERE(name, type) , mx_g_##name + MX_D_BEHIND
#define MX_D_C_BEHIND(name, type) , mx_g_##name
#define MX_D_COPY_FRAME(name, type)                                                                          \
    MX_D_OF(mx_out, mx_type_##name, name) = MX_D_OF(mx_of, const mx_type_##name, name);
#define MX_D_STORE_FRAME(name, type) MX_D_OF(mx_out, mx_type_##name, name) = mx_q_##name[0];
#define MX_D_KERNELS                                                                                         \
    MX_D_INLINE void mx_copy_frame(MX_D_GLOBAL const char *mx_of, MX_D_GLOBAL char *mx_out, const int mx_x,  \
                                   const int mx_y, const int64_t mx_y_offset){                               \
        MX_STATE(MX_D_COPY_FRAME)} MX_D_KERNEL void MX_D_BOUNDS                                              \
    mx_cell(MX_D_ARGUMENTS) {                                                                                \
        const int mx_x = (int)MX_D_ITEM(0), mx_row = (int)MX_D_ITEM(1), mx_y = (int)mx_y0 + mx_row;          \
        const int mx_plane0 = (int)(MX_D_ITEM(2) * MX_D_DEEP),                                               \
                  mx_end = (int)(mx_plane0 + MX_D_DEEP < mx_planes ? mx_plane0 + MX_D_DEEP : mx_planes);     \
        if (mx_x >= MX_D_NX + 2 * MX_RADIUS || mx_row >= mx_rows) return;                                    \
        int mx_to_slot = mx_slot_of(mx_to_first, mx_plane0, 0, mx_to_slots);                                 \
        MX_D_OPEN(mx_plane0)                                                                                 \
        MX_D_UNROLL_4                                                                                        \
        for (int mx_plane = mx_plane0; mx_plane < mx_end; mx_plane++) {                                      \
            MX_D_NEXT(mx_plane)                                                                              \
            MX_D_GLOBAL char *const mx_out = mx_to + mx_to_slot * MX_D_PLANE_PITCH;                          \
            mx_to_slot = mx_next(mx_to_slot, (int)mx_to_slots);                                              \
            if (mx_x < MX_RADIUS || mx_x >= MX_D_NX + MX_RADIUS)                                             \
                mx_copy_frame(mx_f[MX_RADIUS], mx_out, mx_x, mx_y, mx_y_offset);                             \
            else                                                                                             \
                mx_body(MX_D_ONLY, mx_f, 0, mx_out, mx_x, mx_y, mx_z0 + mx_plane, mx_t,                      \
                        mx_y_offset MX_D_PASS_TIMES MX_STATE(MX_D_NULL_IN) MX_STATE(MX_D_NULL)               \
                            MX_FIXED(MX_D_C_HERE));                                                          \
        }                                                                                                    \
    }                                                                                                        \
    MX_D_KERNEL void MX_D_FUSED_BOUNDS mx_fused(MX_D_ARGUMENTS) {                                            \
        MX_STATE(MX_D_LEVEL_ONE)                                                                             \
        const int mx_i = (int)MX_D_ITEM_OF_GROUP(0), mx_j = (int)MX_D_ITEM_OF_GROUP(1),                      \
                  mx_in = mx_j * MX_D_ACROSS + mx_i;                                                         \
        const int mx_p0 = (int)(MX_D_GROUP(2) * MX_D_TILE_Z), mx_plane0 = mx_p0 - MX_RADIUS;                 \
        const int mx_p1 = (int)(mx_p0 + MX_D_TILE_Z < mx_planes ? mx_p0 + MX_D_TILE_Z : mx_planes);          \
        /* Planes of the grid, counted from the window's first. */                                           \
        const int mx_low = (int)(MX_RADIUS - mx_z0), mx_high = (int)(MX_D_NZ + MX_RADIUS - mx_z0);           \
        const int mx_row = (int)(MX_D_GROUP(1) * MX_D_TILE_Y) - MX_RADIUS + mx_j,                            \
                  mx_y = (int)mx_y0 + mx_row;                                                                \
        const int mx_x = (int)(MX_D_GROUP(0) * MX_D_TILE_X) + mx_i;                                          \
        const int mx_computed = mx_x >= MX_RADIUS && mx_x < MX_D_NX + MX_RADIUS,                             \
                  mx_ours = mx_row >= 0 && mx_row < mx_rows;                                                 \
        const int mx_rim = mx_j < MX_RADIUS || mx_j >= MX_D_DOWN - MX_RADIUS || !mx_ours;                    \
        /* What a work item does: reads; computes level l; then level l+1; or stores its column of the frame \
         * in x, of which the first group has one end and the last the other. */                             \
        int mx_does = mx_x >= MX_D_NX + 2 * MX_RADIUS || mx_row >= mx_rows + MX_RADIUS ? 0                   \
                      : mx_computed && mx_ours ? MX_D_DO_READ | MX_D_DO_ONE                                  \
                                               : MX_D_DO_READ;                                               \
        if ((mx_does & MX_D_DO_ONE) && !mx_rim && mx_i >= MX_RADIUS && mx_i < MX_D_ACROSS - MX_RADIUS)       \
            mx_does |= MX_D_DO_TWO;                                                                          \
        if (mx_does == MX_D_DO_READ && !mx_rim &&                                                            \
            (mx_x < MX_RADIUS || MX_D_GROUP(0) == (MX_D_NX - 1) / MX_D_TILE_X))                              \
            mx_does |= MX_D_DO_FRAME;                                                                        \
        MX_D_FIX(mx_does);                                                                                   \
        int mx_r[2 * MX_RADIUS + 1]; /* in the group's memory planes of level l around that of level l+1 */  \
        int mx_new = 0, mx_to_slot = mx_slot_of(mx_to_first, mx_p0, 0, mx_to_slots);                         \
        MX_D_OPEN(mx_plane0)                                                                                 \
        MX_D_UNROLL                                                                                          \
        for (int mx_k = 0; mx_k <= 2 * MX_RADIUS; mx_k++) {                                                  \
            mx_r[mx_k] = 0;                                                                                  \
            MX_STATE(MX_D_NONE)                                                                              \
        }                                                                                                    \
        MX_D_UNROLL                                                                                          \
        for (int mx_k = 1; mx_k <= 2 * MX_RADIUS; mx_k++) {                                                  \
            MX_STATE(MX_D_TAKE)                                                                              \
        }                                                                                                    \
        MX_D_UNROLL_PLANES                                                                                   \
        for (int mx_p = mx_plane0; mx_p < mx_p1 + MX_RADIUS; mx_p++) {                                       \
            MX_D_NEXT(mx_p)                                                                                  \
            MX_D_UNROLL                                                                                      \
            for (int mx_k = 0; mx_k < 2 * MX_RADIUS; mx_k++) {                                               \
                mx_r[mx_k] = mx_r[mx_k + 1];                                                                 \
                MX_STATE(MX_D_SHIFT)                                                                         \
            }                                                                                                \
            mx_r[2 * MX_RADIUS] = mx_new * (MX_D_DOWN * MX_D_ACROSS);                                        \
            mx_new = mx_next(mx_new, MX_D_RING);                                                             \
            {                                                                                                \
                const int mx_k = 2 * MX_RADIUS;                                                              \
                MX_STATE(MX_D_TAKE)                                                                          \
            }                                                                                                \
            MX_STATE(MX_D_KEEP)                                                                              \
            if ((mx_does & MX_D_DO_ONE) && mx_p >= mx_low && mx_p < mx_high)                                 \
                mx_body(MX_D_FIRST, mx_f, 0, 0, mx_x, mx_y, mx_z0 + mx_p, mx_t,                              \
                        mx_y_offset MX_D_PASS_TIMES MX_STATE(MX_D_IN_FIRST) MX_STATE(MX_D_PUT_FIRST)         \
                            MX_FIXED(MX_D_C_HERE));                                                          \
            MX_STATE(MX_D_SHOW)                                                                              \
            MX_D_BARRIER;                                                                                    \
            if (mx_p - MX_RADIUS >= mx_p0) {                                                                 \
                MX_D_GLOBAL char *const mx_out = mx_to + mx_to_slot * MX_D_PLANE_PITCH;                      \
                mx_to_slot = mx_next(mx_to_slot, (int)mx_to_slots);                                          \
                if (mx_does & MX_D_DO_TWO)                                                                   \
                    mx_body(MX_D_SECOND, mx_f, mx_r, mx_out, mx_x, mx_y, mx_z0 + mx_p - MX_RADIUS, mx_t + 1, \
                            mx_y_offset MX_D_PASS_TIMES MX_STATE(MX_D_IN_SECOND) MX_STATE(MX_D_NULL)         \
                                MX_FIXED(MX_D_C_BEHIND));                                                    \
                if (mx_does & MX_D_DO_FRAME) {                                                               \
                    MX_STATE(MX_D_STORE_FRAME)                                                               \
                }                                                                                            \
            }                                                                                                \
        }                                                                                                    \
    }
#else
#define MX_D_KERNELS
#define MX_CELL MX_D_CELL(mx_cell, mx_cell_of, 0, MX_STATE, MX_STATE)
#endif
#define MX_CELL_B MX_D_CELL(mx_cell_b, mx_cell_b_of, 0, MX_STATE, MX_PARTNER)
#define MX_CELL_A MX_D_CELL(mx_cell_a, mx_cell_a_of, 1, MX_PARTNER, MX_STATE)
#define MX_D_STAGE(i) MX_D_CELL(mx_cell_##i, mx_cell_##i##_of, i - 1, MX_STATE, MX_STATE)
#define MX_CELL_1 MX_D_STAGE(1)
#define MX_CELL_2 MX_D_STAGE(2)
#define MX_CELL_3 MX_D_STAGE(3)
#define MX_CELL_4 MX_D_STAGE(4)
#define MX_CELL_5 MX_D_STAGE(5)
#define MX_CELL_6 MX_D_STAGE(6)
#define MX_CELL_7 MX_D_STAGE(7)
#define MX_CELL_8 MX_D_STAGE(8)
#define MX_CELL_9 MX_D_STAGE(9)
#define MX_CELL_10 MX_D_STAGE(10)
#define MX_CELL_11 MX_D_STAGE(11)
#define MX_CELL_12 MX_D_STAGE(12)
#define MX_CELL_13 MX_D_STAGE(13)
#define MX_CELL_14 MX_D_STAGE(14)
#define MX_CELL_15 MX_D_STAGE(15)
#define MX_CELL_16 MX_D_STAGE(16)
#define MX_END                                                                                               \
    }                                                                                                        \
    }

/* ---- what happens to rows that a level has written (engine/after.h), each by a kernel of its own. Only
 * runs that ask for it have the text: MX_D_AFTER, and MX_D_INDEX_name, the number of a field of A or B.
 */

/* A reduction: a work item has a lane of a row, cell x of which is lane x mod 8 (system/norms.h). Results
 * are [plane][row][lane]. */
enum { MX_SUM, MX_MAX, MX_MIN };
#ifndef MX_REDUCES
#define MX_REDUCES(R)
#endif
#define MX_D_REDUCE_KIND(name, kind) enum { mx_reduce_kind_##name = kind };
MX_REDUCES(MX_D_REDUCE_KIND)
#if MX_FORM == MX_STAGGERED
#define MX_D_REDUCED MX_PARTNER
enum { mx_of_step = 1 }; /* the level of a step that they are taken with */
#else
#define MX_D_REDUCED MX_STATE
enum { mx_of_step = 0 };
#endif
#if defined(__OPENCL_C_VERSION__)
#define MX_D_INFINITY ((double)INFINITY)
#else
#define MX_D_INFINITY (__longlong_as_double((long long)0x7ff0000000000000ULL))
#endif
MX_D_FUNCTION double mx_d_most(double a, double b) { return b > a || b != b ? b : a; }
MX_D_FUNCTION double mx_d_least(double a, double b) { return b < a || b != b ? b : a; }

#define MX_D_LANES                                                                                           \
    const int64_t mx_lane = MX_D_ITEM(0) % 8, mx_row = MX_D_ITEM(0) / 8, mx_plane = MX_D_ITEM(1);            \
    const int64_t mx_y = mx_y0 + mx_row, mx_z = mx_z0 + mx_plane;                                            \
    if (mx_row >= mx_rows || mx_plane >= mx_planes) return;

#ifdef MX_D_AFTER
#define MX_REDUCE(name)                                                                                      \
    MX_D_KERNEL void mx_reduce_##name(MX_D_ARRAYS, MX_D_GLOBAL double *mx_result, MX_D_NUMBERS) {            \
        MX_D_LANES                                                                                           \
        MX_D_ONE_PLANE(mx_plane)                                                                             \
        MX_D_REDUCED(MX_D_READ) MX_FIXED(MX_D_READ_FIXED) const int mx_kind = mx_reduce_kind_##name;         \
        MX_D_GLOBAL double *const mx_taken = mx_result + (mx_plane * mx_rows + mx_row) * 8 + mx_lane;        \
        *mx_taken = mx_kind == MX_SUM ? 0 : mx_kind == MX_MAX ? -MX_D_INFINITY : MX_D_INFINITY;              \
        for (int64_t mx_x = MX_RADIUS + mx_lane; mx_x < MX_D_NX + MX_RADIUS; mx_x += 8) {
#else /* it becomes a function that nobody calls, and costs the compiler nothing */
#define MX_REDUCE(name)                                                                                      \
    MX_D_FUNCTION void mx_reduce_##name(MX_D_ARRAYS, MX_D_GLOBAL double *mx_result, MX_D_NUMBERS) {          \
        const int64_t mx_row = 0, mx_plane = 0, mx_y = mx_y0, mx_z = mx_z0;                                  \
        MX_D_ONE_PLANE(mx_plane)                                                                             \
        MX_D_REDUCED(MX_D_READ) MX_FIXED(MX_D_READ_FIXED) const int mx_kind = MX_SUM;                        \
        MX_D_NO_STAGE                                                                                        \
        MX_D_GLOBAL double *const mx_taken = mx_result;                                                      \
        for (int64_t mx_x = MX_RADIUS; mx_x < MX_D_NX; mx_x += 8) {
#endif
#define RESULT(value)                                                                                        \
    do {                                                                                                     \
        const double mx_value = (double)(value);                                                             \
        *mx_taken = mx_kind == MX_SUM   ? *mx_taken + mx_value                                               \
                    : mx_kind == MX_MAX ? mx_d_most(*mx_taken, mx_value)                                     \
                                        : mx_d_least(*mx_taken, mx_value);                                   \
    } while (0)

#ifdef MX_D_AFTER

/* The row at y of plane z, a window's plane being `plane` slots after `first`. */
#define MX_D_ROW_AT(array, first, slots, plane, y)                                                           \
    ((array) + mx_wrap((first) + (plane), slots) * MX_D_PLANE_PITCH + ((y) + mx_y_offset) * MX_D_ROW_PITCH)
#define MX_D_CELL_OF(row, name, x) (((MX_D_GLOBAL mx_type_##name *)((row) + MX_D_OFFSET_##name))[x])

/* Points: 8 numbers each, x y z field array, where the amplitudes begin, how many there are; sorted by (z, y,
 * x), so that those of one cell follow one another in their order. Cells of the window alone, ghosts too. */
#define MX_D_ADD(name, type)                                                                                 \
    if (mx_q[3] == MX_D_INDEX_##name)                                                                        \
        MX_D_CELL_OF(mx_at, name, mx_x) =                                                                    \
            mx_d_plus(MX_D_CELL_OF(mx_at, name, mx_x), mx_amplitude[mx_q[5] + mx_t]);
#define MX_D_SAME_CELL(a, b) ((a)[0] == (b)[0] && (a)[1] == (b)[1] && (a)[2] == (b)[2])
#define MX_D_SOURCES(kernel_name, ARRAY, WRITES)                                                             \
    MX_D_KERNEL void kernel_name(MX_D_GLOBAL char *mx_to, MX_D_GLOBAL const int64_t *mx_table,               \
                                 MX_D_GLOBAL const double *mx_amplitude, int64_t mx_y0, int64_t mx_z0,       \
                                 int64_t mx_rows, int64_t mx_planes, int64_t mx_first, int64_t mx_slots,     \
                                 int64_t mx_y_offset, int64_t mx_t, int64_t mx_points, int64_t mx_n9,        \
                                 int64_t mx_n10, int64_t mx_n11) {                                           \
        const int64_t mx_i = MX_D_ITEM(0);                                                                   \
        if (mx_i >= mx_points || MX_D_ITEM(1) > 0) return; /* groups have several rows */                    \
        MX_D_GLOBAL const int64_t *mx_p = mx_table + 8 * mx_i;                                               \
        if (mx_i > 0 && MX_D_SAME_CELL(mx_p, mx_p - 8)) return;                                              \
        const int64_t mx_x = mx_p[0] + MX_RADIUS;                                                            \
        for (int64_t mx_k = 0; mx_k < 9; mx_k++) {                                                           \
            const int64_t mx_y = mx_p[1] + MX_D_RADIUS_Y + (mx_k % 3 - 1) * MX_D_NY - mx_y0;                 \
            const int64_t mx_z = mx_p[2] + MX_RADIUS - MX_D_FIRST_PLANE + (mx_k / 3 - 1) * MX_D_NZ - mx_z0;  \
            if (mx_y < 0 || mx_y >= mx_rows || mx_z < 0 || mx_z >= mx_planes) continue;                      \
            MX_D_GLOBAL char *const mx_at = MX_D_ROW_AT(mx_to, mx_first, mx_slots, mx_z, mx_y0 + mx_y);      \
            for (int64_t mx_j = mx_i; mx_j < mx_points; mx_j++) {                                            \
                MX_D_GLOBAL const int64_t *mx_q = mx_table + 8 * mx_j;                                       \
                if (!MX_D_SAME_CELL(mx_p, mx_q)) break;                                                      \
                if ((mx_q[4] >= 0 && mx_q[4] != ARRAY) || mx_t >= mx_q[6]) continue;                         \
                WRITES(MX_D_ADD)                                                                             \
            }                                                                                                \
        }                                                                                                    \
    }

#define MX_D_SEE(name, type)                                                                                 \
    if (mx_p[3] == MX_D_INDEX_##name)                                                                        \
        mx_result[mx_base + mx_i] = (double)MX_D_CELL_OF(mx_at, name, mx_p[0] + MX_RADIUS);
#define MX_D_PROBES(kernel_name, ARRAY, WRITES)                                                              \
    MX_D_KERNEL void kernel_name(MX_D_GLOBAL char *mx_to, MX_D_GLOBAL const int64_t *mx_table,               \
                                 MX_D_GLOBAL double *mx_result, int64_t mx_y0, int64_t mx_z0,                \
                                 int64_t mx_rows, int64_t mx_planes, int64_t mx_first, int64_t mx_slots,     \
                                 int64_t mx_y_offset, int64_t mx_from, int64_t mx_points, int64_t mx_base,   \
                                 int64_t mx_n10, int64_t mx_n11) {                                           \
        const int64_t mx_i = MX_D_ITEM(0);                                                                   \
        if (mx_i >= mx_points || MX_D_ITEM(1) > 0) return;                                                   \
        MX_D_GLOBAL const int64_t *mx_p = mx_table + 8 * (mx_from + mx_i);                                   \
        const int64_t mx_y = mx_p[1] + MX_D_RADIUS_Y - mx_y0,                                                \
                      mx_z = mx_p[2] + MX_RADIUS - MX_D_FIRST_PLANE - mx_z0;                                 \
        if (mx_y < 0 || mx_y >= mx_rows || mx_z < 0 || mx_z >= mx_planes) return;                            \
        if (mx_p[4] >= 0 && mx_p[4] != ARRAY) return;                                                        \
        MX_D_GLOBAL char *const mx_at = MX_D_ROW_AT(mx_to, mx_first, mx_slots, mx_z, mx_y0 + mx_y);          \
        WRITES(MX_D_SEE)                                                                                     \
    }

/* Is a type a floating-point type? */
#define MX_D_IS_REAL(type) ((type)0.5 != 0)
/* Copies a cell of a row to cell x, or minus that cell (floating-point numbers: the other sign bit). */
#define MX_D_BITS_OF(bits, row, name, x) (((MX_D_GLOBAL bits *)((row) + MX_D_OFFSET_##name))[x])
#define MX_D_BECOMES(to, to_x, from, from_x, name, minus)                                                    \
    {                                                                                                        \
        if (!MX_D_IS_REAL(mx_type_##name)) {                                                                 \
            const mx_type_##name mx_c = MX_D_CELL_OF(from, name, from_x);                                    \
            MX_D_CELL_OF(to, name, to_x) =                                                                   \
                (mx_type_##name)((minus) ? (uint64_t)0 - (uint64_t)mx_c : (uint64_t)mx_c);                   \
        } else if (sizeof(mx_type_##name) == 8)                                                              \
            MX_D_BITS_OF(uint64_t, to, name, to_x) =                                                         \
                MX_D_BITS_OF(uint64_t, from, name, from_x) ^ ((uint64_t)(minus) << 63);                      \
        else                                                                                                 \
            MX_D_BITS_OF(uint32_t, to, name, to_x) =                                                         \
                MX_D_BITS_OF(uint32_t, from, name, from_x) ^ ((uint32_t)(minus) << 31);                      \
    }

/* The x frame of field mx_field, or of all (-1), by enum mx_side. */
enum { MX_D_FIXED, MX_D_MIRROR, MX_D_PERIODIC, MX_D_ODD = 4, MX_D_MIRROR_NODE, MX_D_ODD_NODE, MX_D_EDGE };
#define MX_D_REFRESH(name, type)                                                                             \
    if (mx_field < 0 || mx_field == MX_D_INDEX_##name)                                                       \
    MX_D_BECOMES(mx_at, mx_x, mx_at, mx_of, name, mx_side == MX_D_ODD || mx_side == MX_D_ODD_NODE)
#define MX_D_FRAME_X(kernel_name, WRITES)                                                                    \
    MX_D_KERNEL void kernel_name(MX_D_GLOBAL char *mx_to, int64_t mx_y0, int64_t mx_z0, int64_t mx_rows,     \
                                 int64_t mx_planes, int64_t mx_first, int64_t mx_slots, int64_t mx_y_offset, \
                                 int64_t mx_low, int64_t mx_high, int64_t mx_field, int64_t mx_n10,          \
                                 int64_t mx_n11) {                                                           \
        const int64_t mx_row = MX_D_ITEM(1), mx_plane = MX_D_ITEM(2),                                        \
                      mx_high_end = MX_D_ITEM(0) >= MX_RADIUS;                                               \
        const int64_t mx_i = MX_D_ITEM(0) - mx_high_end * MX_RADIUS,                                         \
                      mx_side = mx_high_end ? mx_high : mx_low;                                              \
        if (mx_i >= MX_RADIUS || mx_row >= mx_rows || mx_plane >= mx_planes || mx_side == MX_D_FIXED)        \
            return;                                                                                          \
        MX_D_GLOBAL char *const mx_at = MX_D_ROW_AT(mx_to, mx_first, mx_slots, mx_plane, mx_y0 + mx_row);    \
        const int64_t mx_x = mx_high_end ? MX_D_NX + MX_RADIUS + mx_i : MX_RADIUS - 1 - mx_i;                \
        const int64_t mx_inward = mx_side == MX_D_EDGE       ? 0                                             \
                                  : mx_side == MX_D_PERIODIC ? MX_D_NX - 1 - mx_i                            \
                                  : mx_side == MX_D_MIRROR_NODE || mx_side == MX_D_ODD_NODE ? mx_i + 1       \
                                                                                            : mx_i;          \
        const int64_t mx_of = mx_high_end ? MX_D_NX + MX_RADIUS - 1 - mx_inward : MX_RADIUS + mx_inward;     \
        WRITES(MX_D_REFRESH)                                                                                 \
    }

/* Cells [mx_x0,mx_x1) of field mx_what / 4 in the rows of a window become 0 (mx_what % 4 = 0), those of rows
 * mx_dy further on and planes mx_shift slots further on (1), or minus those (2). */
#define MX_D_MAKE_IMAGE(name, type)                                                                          \
    if (mx_what / 4 == MX_D_INDEX_##name) {                                                                  \
        if (mx_what % 4 == 0)                                                                                \
            MX_D_CELL_OF(mx_at, name, mx_x) = 0;                                                             \
        else                                                                                                 \
            MX_D_BECOMES(mx_at, mx_x, mx_from, mx_x, name, mx_what % 4 == 2)                                 \
    }
#define MX_D_IMAGE(kernel_name, WRITES)                                                                      \
    MX_D_KERNEL void kernel_name(MX_D_GLOBAL char *mx_to, int64_t mx_y0, int64_t mx_z0, int64_t mx_rows,     \
                                 int64_t mx_planes, int64_t mx_first, int64_t mx_slots, int64_t mx_y_offset, \
                                 int64_t mx_what, int64_t mx_x0, int64_t mx_x1, int64_t mx_dy,               \
                                 int64_t mx_shift) {                                                         \
        const int64_t mx_row = MX_D_ITEM(1), mx_plane = MX_D_ITEM(2), mx_x = mx_x0 + MX_D_ITEM(0);           \
        if (mx_x >= mx_x1 || mx_row >= mx_rows || mx_plane >= mx_planes) return;                             \
        MX_D_GLOBAL char *const mx_at = MX_D_ROW_AT(mx_to, mx_first, mx_slots, mx_plane, mx_y0 + mx_row);    \
        MX_D_GLOBAL char *const mx_from = MX_D_ROW_AT(mx_to, (mx_first + mx_shift) % mx_slots, mx_slots,     \
                                                      mx_plane, mx_y0 + mx_dy + mx_row);                     \
        WRITES(MX_D_MAKE_IMAGE)                                                                              \
    }

/* The change of A: of each field the sum of squares, and of all the greatest, [plane][row][quantity][lane].
 */
#define MX_D_ONE(name, type) +1
#define MX_D_SQUARES(name, type)                                                                             \
    {                                                                                                        \
        double mx_sum = 0;                                                                                   \
        for (int64_t mx_x = MX_RADIUS + mx_lane; mx_x < MX_D_NX + MX_RADIUS; mx_x += 8) {                    \
            const mx_type_##name mx_now = MX_D_CELL_OF(mx_at, name, mx_x),                                   \
                                 mx_then = MX_D_CELL_OF(mx_before, name, mx_x);                              \
            const double mx_d = MX_D_IS_REAL(mx_type_##name) ? (double)(mx_type_##name)(mx_now - mx_then)    \
                                                             : (double)mx_now - (double)mx_then,             \
                         mx_size = mx_d < 0 ? -mx_d : mx_d;                                                  \
            mx_sum += mx_d * mx_d;                                                                           \
            mx_greatest = mx_d_most(mx_greatest, mx_size);                                                   \
        }                                                                                                    \
        *mx_taken = mx_sum;                                                                                  \
        mx_taken += 8;                                                                                       \
    }
MX_D_KERNEL void mx_change(MX_D_GLOBAL char *mx_to, MX_D_GLOBAL char *mx_old, MX_D_GLOBAL double *mx_result,
                           int64_t mx_y0, int64_t mx_z0, int64_t mx_rows, int64_t mx_planes, int64_t mx_first,
                           int64_t mx_slots, int64_t mx_y_offset, int64_t mx_old_first, int64_t mx_old_slots,
                           int64_t mx_n9, int64_t mx_n10, int64_t mx_n11) {
    const int64_t mx_fields = 0 MX_STATE(MX_D_ONE);
    MX_D_LANES
    MX_D_GLOBAL char *const mx_at = MX_D_ROW_AT(mx_to, mx_first, mx_slots, mx_plane, mx_y);
    MX_D_GLOBAL char *const mx_before = MX_D_ROW_AT(mx_old, mx_old_first, mx_old_slots, mx_plane, mx_y);
    MX_D_GLOBAL double *mx_taken = mx_result + (mx_plane * mx_rows + mx_row) * (mx_fields + 1) * 8 + mx_lane;
    double mx_greatest = 0;
    MX_STATE(MX_D_SQUARES)
    *mx_taken = mx_greatest;
}

#if MX_FORM == MX_STAGGERED
MX_D_SOURCES(mx_sources_b, 1, MX_PARTNER)
MX_D_SOURCES(mx_sources_a, 0, MX_STATE)
MX_D_PROBES(mx_probes_b, 1, MX_PARTNER)
MX_D_PROBES(mx_probes_a, 0, MX_STATE)
MX_D_FRAME_X(mx_frame_b, MX_PARTNER)
MX_D_FRAME_X(mx_frame_a, MX_STATE)
MX_D_IMAGE(mx_image_b, MX_PARTNER)
MX_D_IMAGE(mx_image_a, MX_STATE)
#else
MX_D_SOURCES(mx_sources, mx_p[4], MX_STATE)
MX_D_PROBES(mx_probes, mx_p[4], MX_STATE)
MX_D_FRAME_X(mx_frame, MX_STATE)
MX_D_IMAGE(mx_image, MX_STATE)
#endif
#endif

#define X ((int64_t)mx_x - MX_RADIUS)
#if MX_FLAT_
#define Y mx_inside(mx_z - MX_RADIUS + MX_D_FIRST_PLANE, MX_D_NZ)
#define Z ((int64_t)0)
#define NY ((int64_t)MX_D_NZ)
#define NZ ((int64_t)1)
#else
#define Y mx_inside(mx_y - MX_RADIUS, MX_D_NY)
#define Z mx_inside(mx_z - MX_RADIUS + MX_D_FIRST_PLANE, MX_D_NZ)
#define NY ((int64_t)MX_D_NY)
#define NZ ((int64_t)MX_D_NZ)
#endif
#define T mx_t
#define NX ((int64_t)MX_D_NX)

#endif
