/* cell_device.h - what memext/cell.h is to a compiler of devices: the same cell becomes a kernel that computes one
 * cell a work item, of rows and planes of arrays in the device's memory. OpenCL C 1.2 and CUDA C++.
 *
 * The text before this one (engine/device_text.c) says, as numbers: MX_D_NX MX_D_NY MX_D_NZ; MX_D_FIRST_PLANE, the plane
 * of these that the first of the arrays' interior is (of a rank of several, else 0); MX_D_ROW_PITCH and
 * MX_D_PLANE_PITCH of A and B; MX_D_OFFSET_name of a field in its row; for a field of C MX_D_PITCH_name,
 * MX_D_SLOT_PITCH_name, MX_D_GHOSTS_name, MX_D_ORIGIN_name, MX_D_FILE_PITCH_name and MX_D_ALIGN_name (engine.h, mx_fixed_view);
 * MX_D_VALUE_name of a parameter. Bits are the CPU's: no contraction, no flush to zero, and + - * / and sqrt
 * correctly rounded, which the options of the compiler see to.
 */
#ifndef MX_STATE
struct mx_row; /* no kernel, no text */
#elif !defined(MEMEXT_CELL_DEVICE_H)
#define MEMEXT_CELL_DEVICE_H

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
#define MX_D_ITEM(d) ((int64_t)get_global_id(d))
#define MX_D_ITEM_OF_GROUP(d) ((int64_t)get_local_id(d))
#define MX_D_GROUP(d) ((int64_t)get_group_id(d))
#define MX_D_BARRIER barrier(CLK_LOCAL_MEM_FENCE)
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
/* (A macro of the same name would hide that of a compiler which has one itself.) */
MX_D_FUNCTION double mx_sqrt(double v) { return sqrt(v); }
MX_D_FUNCTION double mx_fabs(double v) { return fabs(v); }
MX_D_FUNCTION double mx_floor(double v) { return floor(v); }
MX_D_FUNCTION double mx_ceil(double v) { return ceil(v); }
MX_D_FUNCTION double mx_exp(double v) { return exp(v); }
MX_D_FUNCTION double mx_log(double v) { return log(v); }
MX_D_FUNCTION double mx_sin(double v) { return sin(v); }
MX_D_FUNCTION double mx_cos(double v) { return cos(v); }
MX_D_FUNCTION double mx_tanh(double v) { return tanh(v); }
MX_D_FUNCTION double mx_fmin(double a, double b) { return fmin(a, b); }
MX_D_FUNCTION double mx_fmax(double a, double b) { return fmax(a, b); }
MX_D_FUNCTION double mx_pow(double a, double b) { return pow(a, b); }
#undef sqrt
#define sqrt(v) mx_sqrt(v)
#undef fabs
#define fabs(v) mx_fabs(v)
#undef floor
#define floor(v) mx_floor(v)
#undef ceil
#define ceil(v) mx_ceil(v)
#undef exp
#define exp(v) mx_exp(v)
#undef log
#define log(v) mx_log(v)
#undef sin
#define sin(v) mx_sin(v)
#undef cos
#define cos(v) mx_cos(v)
#undef tanh
#define tanh(v) mx_tanh(v)
#undef fmin
#define fmin(a, b) mx_fmin(a, b)
#undef fmax
#define fmax(a, b) mx_fmax(a, b)
#undef pow
#define pow(a, b) mx_pow(a, b)
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
#define MX_D_ITEM_OF_GROUP_0 ((int64_t)threadIdx.x)
#define MX_D_ITEM_OF_GROUP_1 ((int64_t)threadIdx.y)
#define MX_D_ITEM_OF_GROUP(d) MX_D_ITEM_OF_GROUP_##d
#define MX_D_GROUP_0 ((int64_t)blockIdx.x)
#define MX_D_GROUP_1 ((int64_t)blockIdx.y)
#define MX_D_GROUP_2 ((int64_t)blockIdx.z)
#define MX_D_GROUP(d) MX_D_GROUP_##d
#define MX_D_BARRIER __syncthreads()
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef short int16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
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

/* Ghost layers are the cells that they stand for; they go around the grid at most once. */
MX_D_FUNCTION int64_t mx_inside(int64_t i, int64_t n) { return i < 0 ? i + n : i >= n ? i - n : i; }

/* Where a plane of a field begins: of A and B, and of C, whose planes stand at the offset that they have in
 * their file modulo its alignment. */
#define MX_D_STATE_PLANE(name, type)                                                                         \
    MX_D_FUNCTION int64_t mx_plane_##name(int64_t slot, int64_t slots, int64_t z, int64_t y_offset) {        \
        return mx_wrap(slot, slots) * MX_D_PLANE_PITCH + 0 * (z + y_offset);                                 \
    }
#define MX_D_FIXED_PLANE(name, type)                                                                         \
    MX_D_FUNCTION int64_t mx_plane_##name(int64_t slot, int64_t slots, int64_t z, int64_t y_offset) {        \
        const int64_t plane = MX_D_GHOSTS_##name ? MX_RADIUS + mx_inside(z - MX_RADIUS, MX_D_NZ) : z;        \
        const int64_t at = MX_D_ORIGIN_##name + plane * MX_D_FILE_PITCH_##name - y_offset * MX_D_PITCH_##name; \
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
#define MX_D_ARRAYS                                                                                          \
    MX_D_GLOBAL const char *mx_from, MX_D_GLOBAL char *mx_to MX_FIXED(MX_D_ARGUMENT)
#define MX_D_NUMBERS                                                                                         \
    int64_t mx_y0, int64_t mx_z0, int64_t mx_rows, int64_t mx_planes, int64_t mx_from_first,                 \
        int64_t mx_from_slots, int64_t mx_to_first, int64_t mx_to_slots, int64_t mx_c_first,                 \
        int64_t mx_c_slots, int64_t mx_y_offset, int64_t mx_t
#define MX_D_ARGUMENTS MX_D_ARRAYS, MX_D_NUMBERS

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
#define MX_D_AT(name, dx, dy, dz)                                                                            \
    (((MX_D_GLOBAL const mx_type_##name *)(mx_at_##name +                                                    \
                                           mx_plane_##name(mx_wrap(mx_slot_##name, mx_slots_##name) + (dz),  \
                                                           mx_slots_##name, mx_z + (dz), mx_y_offset) +      \
                                           (dy) * mx_pitch_##name()))[mx_x + (dx)])
#ifdef MX_D_FUSED
/* Cells are functions that are called for level l (FIRST: results stay in the group's memory), for level l+1
 * (SECOND: that is where AT reads state), and for one level alone (ONLY). */
enum { MX_D_FIRST, MX_D_SECOND, MX_D_ONLY };
enum { MX_D_RING = 2 * MX_RADIUS + 1, MX_D_WIDE = MX_D_TILE_X + 2 * MX_RADIUS, MX_D_HIGH = MX_D_TILE_Y + 2 * MX_RADIUS };
#define MX_D_IS_STATE(name, type) enum { mx_is_state_##name = 1 };
#define MX_D_IS_FIXED(name, type) enum { mx_is_state_##name = 0 };
MX_STATE(MX_D_IS_STATE) MX_FIXED(MX_D_IS_FIXED)
#define MX_D_NO_STAGE                                                                                        \
    const int mx_stage = MX_D_ONLY, mx_ring = 0;                                                             \
    MX_D_REDUCED(MX_D_NOWHERE) MX_FIXED(MX_D_NOWHERE)
#define MX_D_NOWHERE(name, type) MX_D_LOCAL const mx_type_##name *const mx_in_##name = 0;
MX_D_INLINE int mx_around(int slot) { return slot < 0 ? slot + MX_D_RING : slot >= MX_D_RING ? slot - MX_D_RING : slot; }
#define AT(name, dx, dy, dz)                                                                                 \
    (mx_is_state_##name && mx_stage == MX_D_SECOND                                                           \
         ? mx_in_##name[(mx_around(mx_ring + (dz)) * MX_D_HIGH + (dy)) * MX_D_WIDE + (dx)]                   \
         : MX_D_AT(name, dx, dy, dz))
#define SET(name, value)                                                                                     \
    ((void)(mx_stage == MX_D_FIRST ? (*mx_in_##name = (mx_type_##name)(value))                               \
                                   : (mx_out_##name[mx_x] = (mx_type_##name)(value))))
#else
#define MX_D_NO_STAGE
#define AT(name, dx, dy, dz) MX_D_AT(name, dx, dy, dz)
#define SET(name, value) ((void)(mx_out_##name[mx_x] = (value)))
#endif
#define OLD(name) mx_old_##name
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

#ifdef MX_D_FUSED
/* Two levels in one launch, where the window is the interior: a group has MX_D_TILE_X x MX_D_TILE_Y cells of
 * planes that it goes through, and keeps level l of the 2 radius + 1 planes around one, with the cells around
 * its own, in its memory. Reads one array, writes the other. */
#define MX_D_IN(name, type) , MX_D_LOCAL mx_type_##name *mx_in_##name
#define MX_D_PASS(name, type) , mx_in_##name
#define MX_D_PASS_FIXED(name, type) , mx_c_##name
#define MX_D_CALL(stage, ring, x, row, plane, t, PASS)                                                       \
    mx_body(stage, ring, x, row, plane MX_STATE(PASS), mx_from, mx_to MX_FIXED(MX_D_PASS_FIXED), mx_y0, mx_z0, \
            mx_rows, mx_planes, mx_from_first, mx_from_slots, mx_to_first, mx_to_slots, mx_c_first, mx_c_slots, \
            mx_y_offset, t)
#define MX_CELL                                                                                              \
    MX_D_INLINE void mx_body(const int mx_stage, const int mx_ring, const int64_t mx_x, const int64_t mx_row, \
                             const int64_t mx_plane MX_STATE(MX_D_IN), MX_D_ARGUMENTS) {                     \
        const int64_t mx_y = mx_y0 + mx_row, mx_z = mx_z0 + mx_plane;                                        \
        MX_STATE(MX_D_READ) MX_FIXED(MX_D_READ_FIXED) MX_STATE(MX_D_WRITE) MX_FIXED(MX_D_NOWHERE) {

#define MX_D_NULL(name, type) , 0
#define MX_D_LEVEL_ONE(name, type) MX_D_SHARED mx_type_##name mx_one_##name[MX_D_RING * MX_D_HIGH * MX_D_WIDE];
#define MX_D_HERE(name, type) , mx_one_##name + mx_in
#define MX_D_KEEP(name, type) mx_one_##name[mx_in] = MX_D_AT(name, 0, 0, 0);
#define MX_D_COPY_FRAME(name, type) mx_out_##name[mx_x] = MX_D_AT(name, 0, 0, 0);
#define MX_D_KERNELS                                                                                         \
    MX_D_INLINE void mx_copy_frame(const int64_t mx_x, const int64_t mx_row, const int64_t mx_plane, MX_D_ARGUMENTS) { \
        const int64_t mx_y = mx_y0 + mx_row, mx_z = mx_z0 + mx_plane;                                        \
        MX_STATE(MX_D_READ) MX_STATE(MX_D_WRITE) MX_STATE(MX_D_COPY_FRAME)                                   \
    }                                                                                                        \
    MX_D_KERNEL void mx_cell(MX_D_ARGUMENTS) {                                                               \
        const int64_t mx_x = MX_D_ITEM(0), mx_row = MX_D_ITEM(1), mx_plane = MX_D_ITEM(2);                   \
        if (mx_x >= MX_D_NX + 2 * MX_RADIUS || mx_row >= mx_rows || mx_plane >= mx_planes) return;           \
        if (mx_x < MX_RADIUS || mx_x >= MX_D_NX + MX_RADIUS)                                                 \
            mx_copy_frame(mx_x, mx_row, mx_plane, mx_from, mx_to MX_FIXED(MX_D_PASS_FIXED), mx_y0, mx_z0, mx_rows, \
                          mx_planes, mx_from_first, mx_from_slots, mx_to_first, mx_to_slots, mx_c_first, mx_c_slots, \
                          mx_y_offset, mx_t);                                                                \
        else                                                                                                 \
            MX_D_CALL(MX_D_ONLY, 0, mx_x, mx_row, mx_plane, mx_t, MX_D_NULL);                                \
    }                                                                                                        \
    MX_D_KERNEL void mx_fused(MX_D_ARGUMENTS) {                                                              \
        MX_STATE(MX_D_LEVEL_ONE)                                                                             \
        const int64_t mx_i = MX_D_ITEM_OF_GROUP(0), mx_j = MX_D_ITEM_OF_GROUP(1);                            \
        const int64_t mx_x0 = MX_RADIUS + MX_D_GROUP(0) * MX_D_TILE_X, mx_r0 = MX_D_GROUP(1) * MX_D_TILE_Y;  \
        const int64_t mx_p0 = MX_D_GROUP(2) * MX_D_TILE_Z;                                                   \
        const int64_t mx_p1 = mx_p0 + MX_D_TILE_Z < mx_planes ? mx_p0 + MX_D_TILE_Z : mx_planes;             \
        int mx_slot = 0; /* of the plane of level l that is computed */                                      \
        for (int64_t mx_p = mx_p0 - MX_RADIUS; mx_p < mx_p1 + MX_RADIUS; mx_p++) {                           \
            for (int64_t mx_k = mx_j * MX_D_TILE_X + mx_i; mx_k < MX_D_HIGH * MX_D_WIDE;                     \
                 mx_k += MX_D_TILE_X * MX_D_TILE_Y) {                                                        \
                const int64_t mx_x = mx_x0 - MX_RADIUS + mx_k % MX_D_WIDE, mx_row = mx_r0 - MX_RADIUS + mx_k / MX_D_WIDE; \
                const int64_t mx_in = mx_slot * (MX_D_HIGH * MX_D_WIDE) + mx_k;                              \
                const int64_t mx_plane = mx_p, mx_y = mx_y0 + mx_row, mx_z = mx_z0 + mx_p;                   \
                if (mx_x >= MX_D_NX + 2 * MX_RADIUS || mx_row >= mx_rows + MX_RADIUS) continue;              \
                if (mx_x >= MX_RADIUS && mx_x < MX_D_NX + MX_RADIUS && mx_row >= 0 && mx_row < mx_rows && mx_p >= 0 && \
                    mx_p < mx_planes) {                                                                      \
                    MX_D_CALL(MX_D_FIRST, 0, mx_x, mx_row, mx_p, mx_t, MX_D_HERE);                           \
                } else {                                                                                     \
                    MX_STATE(MX_D_READ) MX_STATE(MX_D_KEEP)                                                  \
                }                                                                                            \
            }                                                                                                \
            MX_D_BARRIER;                                                                                    \
            if (mx_p - MX_RADIUS >= mx_p0 && mx_r0 + mx_j < mx_rows) {                                       \
                const int64_t mx_in = (mx_j + MX_RADIUS) * MX_D_WIDE + mx_i + MX_RADIUS;                     \
                if (mx_x0 + mx_i < MX_D_NX + MX_RADIUS)                                                      \
                    MX_D_CALL(MX_D_SECOND, mx_around(mx_slot - MX_RADIUS), mx_x0 + mx_i, mx_r0 + mx_j,       \
                              mx_p - MX_RADIUS, mx_t + 1, MX_D_HERE);                                        \
                for (int64_t mx_f = mx_i; mx_f < 2 * MX_RADIUS && MX_D_GROUP(0) == 0; mx_f += MX_D_TILE_X)   \
                    mx_copy_frame(mx_f < MX_RADIUS ? mx_f : MX_D_NX + mx_f, mx_r0 + mx_j, mx_p - MX_RADIUS, mx_from, \
                                  mx_to MX_FIXED(MX_D_PASS_FIXED), mx_y0, mx_z0, mx_rows, mx_planes, mx_from_first, \
                                  mx_from_slots, mx_to_first, mx_to_slots, mx_c_first, mx_c_slots, mx_y_offset, mx_t); \
            }                                                                                                \
            MX_D_BARRIER;                                                                                    \
            mx_slot = mx_slot + 1 < MX_D_RING ? mx_slot + 1 : 0;                                             \
        }                                                                                                    \
    }
#else
#define MX_D_KERNELS
#define MX_CELL MX_D_CELL(mx_cell, MX_STATE, MX_STATE)
#endif
#define MX_CELL_B MX_D_CELL(mx_cell_b, MX_STATE, MX_PARTNER)
#define MX_CELL_A MX_D_CELL(mx_cell_a, MX_PARTNER, MX_STATE)
#define MX_END                                                                                               \
    }                                                                                                        \
    }

/* ---- what happens to rows that a level has written (engine/after.h), each by a kernel of its own. Only runs that ask
 * for it have the text: MX_D_AFTER, and MX_D_INDEX_name, the number of a field of A or B. */

/* A reduction: a work item has a lane of a row, cell x of which is lane x mod 8 (system/norms.h). Results are
 * [plane][row][lane]. */
enum { MX_SUM, MX_MAX };
#ifndef MX_REDUCES
#define MX_REDUCES(R)
#endif
#define MX_D_REDUCE_KIND(name, kind) enum { mx_reduce_kind_##name = kind };
MX_REDUCES(MX_D_REDUCE_KIND)
#if MX_FORM == MX_STAGGERED
#define MX_D_REDUCED MX_PARTNER
#else
#define MX_D_REDUCED MX_STATE
#endif
#if defined(__OPENCL_C_VERSION__)
#define MX_D_LEAST (-(double)INFINITY)
#else
#define MX_D_LEAST (__longlong_as_double((long long)0xfff0000000000000ULL))
#endif
MX_D_FUNCTION double mx_d_most(double a, double b) { return b > a || b != b ? b : a; }

#define MX_D_LANES                                                                                           \
    const int64_t mx_lane = MX_D_ITEM(0) % 8, mx_row = MX_D_ITEM(0) / 8, mx_plane = MX_D_ITEM(1);            \
    const int64_t mx_y = mx_y0 + mx_row, mx_z = mx_z0 + mx_plane;                                            \
    if (mx_row >= mx_rows || mx_plane >= mx_planes) return;

#ifdef MX_D_AFTER
#define MX_REDUCE(name)                                                                                      \
    MX_D_KERNEL void mx_reduce_##name(MX_D_ARRAYS, MX_D_GLOBAL double *mx_result, MX_D_NUMBERS) {            \
        MX_D_LANES                                                                                           \
        MX_D_REDUCED(MX_D_READ) MX_FIXED(MX_D_READ_FIXED)                                                    \
        const int mx_sums = mx_reduce_kind_##name == MX_SUM;                                                 \
        MX_D_GLOBAL double *const mx_taken = mx_result + (mx_plane * mx_rows + mx_row) * 8 + mx_lane;        \
        *mx_taken = mx_sums ? 0 : MX_D_LEAST;                                                                \
        for (int64_t mx_x = MX_RADIUS + mx_lane; mx_x < MX_D_NX + MX_RADIUS; mx_x += 8) {
#else /* it is read as a function that nobody calls, and costs a compiler nothing */
#define MX_REDUCE(name)                                                                                      \
    MX_D_FUNCTION void mx_reduce_##name(MX_D_ARRAYS, MX_D_GLOBAL double *mx_result, MX_D_NUMBERS) {          \
        const int64_t mx_row = 0, mx_plane = 0, mx_y = mx_y0, mx_z = mx_z0;                                  \
        MX_D_REDUCED(MX_D_READ) MX_FIXED(MX_D_READ_FIXED)                                                    \
        const int mx_sums = 0;                                                                               \
        MX_D_NO_STAGE                                                                                        \
        MX_D_GLOBAL double *const mx_taken = mx_result;                                                      \
        for (int64_t mx_x = MX_RADIUS; mx_x < MX_D_NX; mx_x += 8) {
#endif
#define RESULT(value)                                                                                        \
    do {                                                                                                     \
        const double mx_value = (double)(value);                                                             \
        *mx_taken = mx_sums ? *mx_taken + mx_value : mx_d_most(*mx_taken, mx_value);                         \
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
        MX_D_CELL_OF(mx_at, name, mx_x) = (type)((double)MX_D_CELL_OF(mx_at, name, mx_x) + mx_amplitude[mx_q[5] + mx_t]);
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
            const int64_t mx_y = mx_p[1] + MX_RADIUS + (mx_k % 3 - 1) * MX_D_NY - mx_y0;                     \
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
    if (mx_p[3] == MX_D_INDEX_##name) mx_result[mx_base + mx_i] = (double)MX_D_CELL_OF(mx_at, name, mx_p[0] + MX_RADIUS);
#define MX_D_PROBES(kernel_name, ARRAY, WRITES)                                                              \
    MX_D_KERNEL void kernel_name(MX_D_GLOBAL char *mx_to, MX_D_GLOBAL const int64_t *mx_table,               \
                                 MX_D_GLOBAL double *mx_result, int64_t mx_y0, int64_t mx_z0,                \
                                 int64_t mx_rows, int64_t mx_planes, int64_t mx_first, int64_t mx_slots,     \
                                 int64_t mx_y_offset, int64_t mx_from, int64_t mx_points, int64_t mx_base,   \
                                 int64_t mx_n10, int64_t mx_n11) {                                           \
        const int64_t mx_i = MX_D_ITEM(0);                                                                   \
        if (mx_i >= mx_points || MX_D_ITEM(1) > 0) return;                                                   \
        MX_D_GLOBAL const int64_t *mx_p = mx_table + 8 * (mx_from + mx_i);                                   \
        const int64_t mx_y = mx_p[1] + MX_RADIUS - mx_y0, mx_z = mx_p[2] + MX_RADIUS - MX_D_FIRST_PLANE - mx_z0; \
        if (mx_y < 0 || mx_y >= mx_rows || mx_z < 0 || mx_z >= mx_planes) return;                            \
        if (mx_p[4] >= 0 && mx_p[4] != ARRAY) return;                                                        \
        MX_D_GLOBAL char *const mx_at = MX_D_ROW_AT(mx_to, mx_first, mx_slots, mx_z, mx_y0 + mx_y);          \
        WRITES(MX_D_SEE)                                                                                     \
    }

/* The x frame: 1 mirror, 2 periodic, else fixed (enum mx_side). */
#define MX_D_REFRESH(name, type) MX_D_CELL_OF(mx_at, name, mx_x) = MX_D_CELL_OF(mx_at, name, mx_of);
#define MX_D_FRAME_X(kernel_name, WRITES)                                                                    \
    MX_D_KERNEL void kernel_name(MX_D_GLOBAL char *mx_to, int64_t mx_y0, int64_t mx_z0, int64_t mx_rows,     \
                                 int64_t mx_planes, int64_t mx_first, int64_t mx_slots, int64_t mx_y_offset, \
                                 int64_t mx_low, int64_t mx_high, int64_t mx_n9, int64_t mx_n10,             \
                                 int64_t mx_n11) {                                                           \
        const int64_t mx_row = MX_D_ITEM(1), mx_plane = MX_D_ITEM(2), mx_high_end = MX_D_ITEM(0) >= MX_RADIUS; \
        const int64_t mx_i = MX_D_ITEM(0) - mx_high_end * MX_RADIUS, mx_side = mx_high_end ? mx_high : mx_low; \
        if (mx_i >= MX_RADIUS || mx_row >= mx_rows || mx_plane >= mx_planes || mx_side == 0) return;         \
        MX_D_GLOBAL char *const mx_at = MX_D_ROW_AT(mx_to, mx_first, mx_slots, mx_plane, mx_y0 + mx_row);    \
        const int64_t mx_x = mx_high_end ? MX_D_NX + MX_RADIUS + mx_i : MX_RADIUS - 1 - mx_i;                \
        const int64_t mx_of = (mx_side == 1) != mx_high_end ? MX_RADIUS + mx_i : MX_D_NX + MX_RADIUS - 1 - mx_i; \
        WRITES(MX_D_REFRESH)                                                                                 \
    }

/* The change of A: of each field the sum of squares, and of all the greatest, [plane][row][quantity][lane]. */
#define MX_D_ONE(name, type) +1
#define MX_D_SQUARES(name, type)                                                                             \
    {                                                                                                        \
        double mx_sum = 0;                                                                                   \
        for (int64_t mx_x = MX_RADIUS + mx_lane; mx_x < MX_D_NX + MX_RADIUS; mx_x += 8) {                    \
            const type mx_step = MX_D_CELL_OF(mx_at, name, mx_x) - MX_D_CELL_OF(mx_before, name, mx_x);      \
            const double mx_d = (double)mx_step, mx_size = mx_d < 0 ? -mx_d : mx_d;                          \
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
#else
MX_D_SOURCES(mx_sources, mx_p[4], MX_STATE)
MX_D_PROBES(mx_probes, mx_p[4], MX_STATE)
MX_D_FRAME_X(mx_frame, MX_STATE)
#endif
#endif

#define X (mx_x - MX_RADIUS)
#define Y mx_inside(mx_y - MX_RADIUS, MX_D_NY)
#define Z mx_inside(mx_z - MX_RADIUS + MX_D_FIRST_PLANE, MX_D_NZ)
#define T mx_t
#define NX ((int64_t)MX_D_NX)
#define NY ((int64_t)MX_D_NY)
#define NZ ((int64_t)MX_D_NZ)

#endif
