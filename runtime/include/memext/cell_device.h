/* cell_device.h - what memext/cell.h is to a compiler of devices: the same cell becomes a kernel that computes one
 * cell a work item, of rows and planes of arrays in the device's memory. OpenCL C 1.2 and CUDA C++.
 *
 * The text before this one (engine/device_text.c) says, as numbers: MX_D_NX MX_D_NY MX_D_NZ; MX_D_ROW_PITCH and
 * MX_D_PLANE_PITCH of A and B; MX_D_OFFSET_name of a field in its row; for a field of C MX_D_PITCH_name,
 * MX_D_SLOT_PITCH_name, MX_D_ORIGIN_name, MX_D_FILE_PITCH_name and MX_D_ALIGN_name (engine.h, mx_fixed_view);
 * MX_D_VALUE_name of a parameter. Bits are the CPU's: no contraction, no flush to zero, and + - * / and sqrt
 * correctly rounded, which the options of the compiler see to.
 */
#ifndef MEMEXT_CELL_DEVICE_H
#define MEMEXT_CELL_DEVICE_H

#if defined(__OPENCL_C_VERSION__)
#pragma OPENCL FP_CONTRACT OFF
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define MX_D_KERNEL __kernel
#define MX_D_GLOBAL __global
#define MX_D_FUNCTION static inline
#define MX_D_ITEM(d) ((int64_t)get_global_id(d))
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef short int16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
/* In C the functions of <math.h> compute in double, those with an f in float. */
MX_D_FUNCTION float mx_sqrtf(float v) { return sqrt(v); }
MX_D_FUNCTION float mx_fabsf(float v) { return fabs(v); }
MX_D_FUNCTION float mx_fminf(float a, float b) { return fmin(a, b); }
MX_D_FUNCTION float mx_fmaxf(float a, float b) { return fmax(a, b); }
MX_D_FUNCTION float mx_floorf(float v) { return floor(v); }
MX_D_FUNCTION float mx_ceilf(float v) { return ceil(v); }
MX_D_FUNCTION float mx_expf(float v) { return exp(v); }
MX_D_FUNCTION float mx_logf(float v) { return log(v); }
MX_D_FUNCTION float mx_sinf(float v) { return sin(v); }
MX_D_FUNCTION float mx_cosf(float v) { return cos(v); }
MX_D_FUNCTION float mx_tanhf(float v) { return tanh(v); }
MX_D_FUNCTION float mx_powf(float a, float b) { return pow(a, b); }
#define sqrtf(v) mx_sqrtf(v)
#define fabsf(v) mx_fabsf(v)
#define fminf(a, b) mx_fminf(a, b)
#define fmaxf(a, b) mx_fmaxf(a, b)
#define floorf(v) mx_floorf(v)
#define ceilf(v) mx_ceilf(v)
#define expf(v) mx_expf(v)
#define logf(v) mx_logf(v)
#define sinf(v) mx_sinf(v)
#define cosf(v) mx_cosf(v)
#define tanhf(v) mx_tanhf(v)
#define powf(a, b) mx_powf(a, b)
#define sqrt(v) sqrt((double)(v))
#define fabs(v) fabs((double)(v))
#define fmin(a, b) fmin((double)(a), (double)(b))
#define fmax(a, b) fmax((double)(a), (double)(b))
#define floor(v) floor((double)(v))
#define ceil(v) ceil((double)(v))
#define exp(v) exp((double)(v))
#define log(v) log((double)(v))
#define sin(v) sin((double)(v))
#define cos(v) cos((double)(v))
#define tanh(v) tanh((double)(v))
#define pow(a, b) pow((double)(a), (double)(b))
#else
#define MX_D_KERNEL extern "C" __global__
#define MX_D_GLOBAL
#define MX_D_FUNCTION static __device__ inline
#define MX_D_ITEM_0 ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)
#define MX_D_ITEM_1 ((int64_t)blockIdx.y * blockDim.y + threadIdx.y)
#define MX_D_ITEM_2 ((int64_t)blockIdx.z * blockDim.z + threadIdx.z)
#define MX_D_ITEM(d) MX_D_ITEM_##d
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef short int16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
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

#define MX_D_TYPEDEF(name, type) typedef type mx_type_##name;
MX_STATE(MX_D_TYPEDEF) MX_PARTNER(MX_D_TYPEDEF) MX_FIXED(MX_D_TYPEDEF)
typedef MX_REAL mx_real;

/* Slots of a ring follow one another; none is farther away than the ring is long. */
MX_D_FUNCTION int64_t mx_wrap(int64_t slot, int64_t slots) {
    return slot < 0 ? slot + slots : slot >= slots ? slot - slots : slot;
}

/* Where a plane of a field begins: of A and B, and of C, whose planes stand at the offset that they have in
 * their file modulo its alignment. */
#define MX_D_STATE_PLANE(name, type)                                                                         \
    MX_D_FUNCTION int64_t mx_plane_##name(int64_t slot, int64_t slots, int64_t z, int64_t y_offset) {        \
        return mx_wrap(slot, slots) * MX_D_PLANE_PITCH + 0 * (z + y_offset);                                 \
    }
#define MX_D_FIXED_PLANE(name, type)                                                                         \
    MX_D_FUNCTION int64_t mx_plane_##name(int64_t slot, int64_t slots, int64_t z, int64_t y_offset) {        \
        const int64_t at = MX_D_ORIGIN_##name + z * MX_D_FILE_PITCH_##name - y_offset * MX_D_PITCH_##name;   \
        return mx_wrap(slot, slots) * MX_D_SLOT_PITCH_##name +                                               \
               (at % MX_D_ALIGN_##name + MX_D_ALIGN_##name) % MX_D_ALIGN_##name;                             \
    }
MX_STATE(MX_D_STATE_PLANE) MX_PARTNER(MX_D_STATE_PLANE) MX_FIXED(MX_D_FIXED_PLANE)
#define MX_D_STATE_PITCH(name, type) MX_D_FUNCTION int64_t mx_pitch_##name(void) { return MX_D_ROW_PITCH; }
#define MX_D_FIXED_PITCH(name, type) MX_D_FUNCTION int64_t mx_pitch_##name(void) { return MX_D_PITCH_##name; }
MX_STATE(MX_D_STATE_PITCH) MX_PARTNER(MX_D_STATE_PITCH) MX_FIXED(MX_D_FIXED_PITCH)

#define MX_D_ARGUMENT(name, type) , MX_D_GLOBAL const char *mx_c_##name
/* The window's first row and plane, its rows and planes; of the arrays read and written and of C the slot of that
 * plane, and the slots of the ring; what rows are moved by; the step. */
#define MX_D_ARGUMENTS                                                                                       \
    MX_D_GLOBAL const char *mx_from, MX_D_GLOBAL char *mx_to MX_FIXED(MX_D_ARGUMENT), int64_t mx_y0,         \
        int64_t mx_z0, int64_t mx_rows, int64_t mx_planes, int64_t mx_from_first, int64_t mx_from_slots,     \
        int64_t mx_to_first, int64_t mx_to_slots, int64_t mx_c_first, int64_t mx_c_slots,                    \
        int64_t mx_y_offset, int64_t mx_t

#define MX_D_READ(name, type)                                                                                \
    MX_D_GLOBAL const char *const mx_at_##name =                                                             \
        mx_from + (mx_y + mx_y_offset) * MX_D_ROW_PITCH + MX_D_OFFSET_##name;                                \
    const int64_t mx_slot_##name = mx_from_first + mx_plane, mx_slots_##name = mx_from_slots;
#define MX_D_READ_FIXED(name, type)                                                                          \
    MX_D_GLOBAL const char *const mx_at_##name = mx_c_##name + (mx_y + mx_y_offset) * MX_D_PITCH_##name;     \
    const int64_t mx_slot_##name = mx_c_first + mx_plane, mx_slots_##name = mx_c_slots;
#define MX_D_WRITE(name, type)                                                                               \
    MX_D_GLOBAL mx_type_##name *const mx_out_##name =                                                        \
        (MX_D_GLOBAL mx_type_##name *)(mx_to + mx_wrap(mx_to_first + mx_plane, mx_to_slots) * MX_D_PLANE_PITCH + \
                                       (mx_y + mx_y_offset) * MX_D_ROW_PITCH + MX_D_OFFSET_##name);
#define MX_D_OLD(name, type) const mx_type_##name mx_old_##name = mx_out_##name[mx_x];
#define MX_D_COPY(name, type) SET(name, AT(name, 0, 0, 0));

/* Slots are first + plane of the window, which may be beyond the ring once; AT goes on from there. */
#define AT(name, dx, dy, dz)                                                                                 \
    (((MX_D_GLOBAL const mx_type_##name *)(mx_at_##name +                                                    \
                                           mx_plane_##name(mx_wrap(mx_slot_##name, mx_slots_##name) + (dz),  \
                                                           mx_slots_##name, mx_z + (dz), mx_y_offset) +      \
                                           (dy) * mx_pitch_##name()))[mx_x + (dx)])
#define OLD(name) mx_old_##name
#define SET(name, value) ((void)(mx_out_##name[mx_x] = (value)))
#define PARAM(name) ((mx_real)(MX_D_VALUE_##name))

/* Jacobi: the x frame of every row that is written comes from the other array. */
#if MX_FORM == MX_JACOBI
#define MX_D_FRAME MX_STATE(MX_D_COPY)
#define MX_D_OLDS(WRITES)
#else
#define MX_D_FRAME
#define MX_D_OLDS(WRITES) WRITES(MX_D_OLD)
#endif

#define MX_D_CELL(kernel_name, READS, WRITES)                                                                \
    MX_D_KERNEL void kernel_name(MX_D_ARGUMENTS) {                                                           \
        const int64_t mx_x = MX_D_ITEM(0), mx_row = MX_D_ITEM(1), mx_plane = MX_D_ITEM(2);                   \
        const int64_t mx_y = mx_y0 + mx_row, mx_z = mx_z0 + mx_plane;                                        \
        if (mx_x >= MX_D_NX + 2 * MX_RADIUS || mx_row >= mx_rows || mx_plane >= mx_planes) return;           \
        READS(MX_D_READ) MX_FIXED(MX_D_READ_FIXED) WRITES(MX_D_WRITE)                                        \
        if (mx_x < MX_RADIUS || mx_x >= MX_D_NX + MX_RADIUS) {                                               \
            MX_D_FRAME return;                                                                               \
        }                                                                                                    \
        MX_D_OLDS(WRITES) {

#define MX_CELL MX_D_CELL(mx_cell, MX_STATE, MX_STATE)
#define MX_CELL_B MX_D_CELL(mx_cell_b, MX_STATE, MX_PARTNER)
#define MX_CELL_A MX_D_CELL(mx_cell_a, MX_PARTNER, MX_STATE)
#define MX_END                                                                                               \
    }                                                                                                        \
    }

#define X (mx_x - MX_RADIUS)
#define Y (mx_y - MX_RADIUS)
#define Z (mx_z - MX_RADIUS)
#define T mx_t
#define NX ((int64_t)MX_D_NX)
#define NY ((int64_t)MX_D_NY)
#define NZ ((int64_t)MX_D_NZ)

#endif
