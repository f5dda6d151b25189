/* SPDX-License-Identifier: BSD-3-Clause */
/* cell.h - kernels of users. You write the update of one cell once. This header makes a function over rows
 * from it, and a description that the library or the command loads.
 *
 *     #define MX_NAME      "diffusion"
 *     #define MX_RADIUS    1
 *     #define MX_STATE(F)  F(u, double)      fields that are computed: floating-point numbers or integers
 *     #define MX_FIXED(F)  F(k, float)       fields that are only read; optional
 *     #define MX_PARAMS(P) P(dt, 0.1)        name and default; optional
 *     #include <memext/cell.h>
 *
 *     MX_CELL
 *         double sum = AT(u, -1, 0, 0) + AT(u, 1, 0, 0) + AT(u, 0, -1, 0) + AT(u, 0, 1, 0)
 *                    + AT(u, 0, 0, -1) + AT(u, 0, 0, 1) - 6 * AT(u, 0, 0, 0);
 *         SET(u, AT(u, 0, 0, 0) + PARAM(dt) * AT(k, 0, 0, 0) * sum);
 *     MX_END
 *
 * Define before the include:
 *   MX_NAME             text, up to 63 characters
 *   MX_RADIUS           1 to 8: how far AT of a state field may reach in x, y and z
 *   MX_RADII            x, y, z: the radius of each axis, instead of MX_RADIUS. x and y must be equal. z must
 *                       be equal to them, or 0: MX_RADII 1, 1, 0 makes a kernel for grids of two dimensions,
 *                       which have no frame in z.
 *   MX_STATE(F)         the fields of the state, up to 32, with different names of up to 23 characters. A
 *                       name must not be a word of a cell (X, T, NX ...) or the macro's argument F. For a
 *                       field F, rename the argument: MX_STATE(ITEM) ITEM(F, double). Each field has a type
 *                       of its own: double, float, or one of <stdint.h>, int8_t, uint8_t, int16_t, uint16_t,
 *                       int32_t, uint32_t, int64_t and uint64_t.
 *   MX_FORM             MX_JACOBI (default): the new state from the old one.
 *                       MX_LEAPFROG: u(t+1) from u(t), written over u(t-1), which is OLD(u).
 *                       MX_STAGGERED: a time step is two levels. MX_CELL_B computes the fields of MX_PARTNER
 *                       from those of MX_STATE. Then MX_CELL_A computes the fields of MX_STATE from those of
 *                       MX_PARTNER. OLD is the value that is replaced.
 *   MX_STAGES           MX_JACOBI only, 2 to 16; optional: a time step has this number of levels, which are
 *                       MX_CELL_1, MX_CELL_2 and so on instead of MX_CELL, see below
 *   MX_PARTNER(F)       MX_STAGGERED: the fields of the other array
 *   MX_FIXED(F)         up to 32 fields that are only read, of the same types
 *   MX_FIXED_RADIUS     how far AT of these fields may reach, 0 to MX_RADIUS (default 0)
 *   MX_PARAMS(P)        up to 64 numbers that a run may set
 *   MX_REAL             the type of PARAM: double (default) or float
 *   MX_REDUCES(R)       up to 16 reductions, see below, e.g. R(flux, MX_SUM) R(peak, MX_MAX) R(low, MX_MIN);
 *                       optional
 *
 * In a cell:
 *   AT(field, dx, dy, dz)   the value before this level, in the type of the field; in two dimensions
 *                           AT(field, dx, dy)
 *   SET(field, value)       sets the new value of a field of the array that is computed, converted to its
 *                           type as described below
 *   OLD(field)              the value that SET replaces (not with MX_JACOBI)
 *   PARAM(name)             the value of a parameter
 *   X Y Z                   index of the cell, int64_t, without the frame: 0 to NX-1, NY-1, NZ-1
 *   NX NY NZ                interior cells of the grid; in two dimensions NZ is 1 and Z is 0
 *   T                       time step that the new values are computed from, from 0
 *
 * If a cell does not SET a field, the new value of the field is AT(field, 0, 0, 0); with MX_STAGGERED it is
 * OLD(field). If a field is SET twice, the last value counts. `return` ends the cell.
 *
 * Integers: AT and OLD have the type of the field, and C's usual conversions apply: types smaller than int
 * become int. What SET stores in an integer field depends on the type of the value. An integer wraps: its
 * lowest bits are kept. A floating-point number is truncated towards 0. If it does not fit, the nearest
 * number that fits is stored, and for NaN 0. This is the same in every form of a kernel and on every
 * accelerator. If a floating-point number should wrap, write SET(u, (int)(a + 0.5)). If an integer should
 * stop at the end of its range, write SET(u, (double)(AT(u, 0, 0, 0) + 1)). Overflow of signed integers
 * within an expression wraps too (-fwrapv), in kernels whose MX_STATE or MX_PARTNER names integer types. On
 * accelerators the result of such an overflow depends on their compilers, so compute hashes in unsigned
 * types.
 *
 * Stages: for a step of a Runge-Kutta scheme, a predictor and corrector, or split operators. With #define
 * MX_STAGES n the kernel has n cells, MX_CELL_1 ... MX_END to MX_CELL_n ... MX_END, in this order. Each is
 * computed on the whole grid from the result of the one before: MX_CELL_1 reads the state, and MX_CELL_n
 * leaves the new state. To hand a value from one stage to a later one, use a field: it keeps its value in
 * stages that do not SET it. Boundary conditions hold after every stage. T is the same in all of them. Point
 * sources and probes act after the last one.
 *
 * Reductions: numbers that a run computes at its check steps (--check, --until). A reduction is the sum, the
 * maximum or the minimum of an expression over all cells, and over each plane of z (in two dimensions over
 * each row). Write it after the cells, for each name of MX_REDUCES:
 *
 *     MX_REDUCE(flux)
 *         RESULT(AT(k, 0, 0, 0) * (AT(u, 0, 0, 1) - AT(u, 0, 0, 0)));
 *     MX_END
 *
 * with AT, PARAM, X Y Z, NX NY NZ and T as in a cell, and RESULT(value), at most once. The value is converted
 * to a double, which holds integers up to 2^53 exactly. A cell without RESULT does not count (it is 0 in a
 * sum, minus infinity in a maximum, infinity in a minimum). At the check after step s, a reduction reads the
 * state at T = s - 1: what the last level of step s reads, or with stages the first one. It may read the
 * fields of MX_FIXED and those of MX_STATE; in a staggered kernel, those of MX_PARTNER instead of MX_STATE.
 * Sums are added in one fixed order (cells of a row in eight lanes, lanes, rows, planes), so their bits are
 * the same on any number of threads. A maximum or minimum is NaN if any value is NaN.
 *
 * Speed: the compiler can vectorise the loop over x only if it can turn all branches of the cell into
 * choices. Read with AT first, then choose with ?: .
 *
 * Cells are computed in any order, in pieces, by several threads, and some of them twice. So a cell must
 * depend on nothing but the above. + - * / and sqrt give the same bits on every machine. Other functions of
 * <math.h> (included here) may give different bits on different machines. A kernel may include headers of the
 * system, and headers in its own folder (#include "NAME"), whose text becomes part of it. It may have
 * functions and `static const` tables of its own, also if the file is compiled for an accelerator. A kernel
 * needs gcc or clang, C11, and -ffp-contract=off for the same bits everywhere.
 */
#ifndef MEMEXT_CELL_ABI
#define MEMEXT_CELL_ABI

#include <stddef.h>
#include <stdint.h>

#define MX_CELL_VERSION 2

/* Forms of time stepping (MX_FORM). */
enum { MX_JACOBI, MX_LEAPFROG, MX_STAGGERED };

/* What one call computes: some adjoining rows of one plane, at one level. (Functions for several planes:
 * struct mx_deep_kernel.) Pointers point to cell 0 (frame included) of the first of these rows. Pitches are
 * the bytes from row to row. A kernel for two dimensions gets its grid as planes of one row: y here is 0, and
 * the cell's Y and NY are z and nz here. */
struct mx_row {
    void *const *out; /* [fields of the array written]: contains the old values before the call */
    const void *const
        *in; /* [fields of the array read * (2h+1)]: planes z-h .. z+h of field 0, then of field 1 ... */
    const void *const
        *fixed; /* [n_fixed * (2hc+1)]: likewise of the fields that are only read; hc is MX_FIXED_RADIUS */
    int64_t row_pitch;          /* the same for all fields of the arrays A and B */
    const int64_t *fixed_pitch; /* [n_fixed] */
    const int64_t
        *fixed_step; /* [n_fixed]: bytes from cell to cell; NULL: cells adjoin (it is always NULL so far) */
    int64_t rows;    /* of this call */
    const double *param; /* [n_param] */
    int64_t x0, x1;      /* cells of this call, frame counted */
    int64_t y, z, t;     /* interior index of the first row; the step that is computed from */
    int64_t nx, ny, nz;
    const void *more[4]; /* NULL */
};

/* Types of cells. MX_CELL_OTHER is not a type any more, but keeps its number for kernels that were built
 * before. */
enum { MX_CELL_F64, MX_CELL_F32, MX_CELL_U8, MX_CELL_U16, MX_CELL_I16, MX_CELL_OTHER };
enum { MX_CELL_I8 = MX_CELL_OTHER + 1, MX_CELL_I32, MX_CELL_U32, MX_CELL_I64, MX_CELL_U64, MX_CELL_TYPES };

/* Functions that convert a value to the integer type of a cell: mx_u8_of_real(double),
 * mx_u8_of_whole(uint64_t) and so on. These lines are C, OpenCL C and CUDA C++:
 * cmake/cell_device_text.cmake puts them into cell_device.h, so that SET means the same everywhere. A
 * floating-point number is clamped before it is converted: C does not define the conversion of one that is
 * out of range, and machines differ.
 * MX_CONVERSIONS begin */
#ifndef MX_CONVERSION_
#define MX_CONVERSION_ static inline __attribute__((always_inline, unused))
#endif
#define MX_OF_WHOLE_(shortly, type)                                                                          \
    MX_CONVERSION_ type mx_##shortly##_of_whole(uint64_t v) { return (type)v; }
#define MX_NARROW_(shortly, type, lowest, highest)                                                           \
    MX_CONVERSION_ type mx_##shortly##_of_real(double v) {                                                   \
        double w = v == v ? v : 0;                                                                           \
        w = w < (double)lowest ? (double)lowest : w;                                                         \
        w = w > (double)highest ? (double)highest : w;                                                       \
        return (type)w;                                                                                      \
    }                                                                                                        \
    MX_OF_WHOLE_(shortly, type)
/* The greatest integer of 64 bits is not a double; `beyond`, the number after it, is one. */
#define MX_WIDE_(shortly, type, lowest, beyond, highest)                                                     \
    MX_CONVERSION_ type mx_##shortly##_of_real(double v) {                                                   \
        double w = v == v ? v : 0;                                                                           \
        w = w < (double)lowest ? (double)lowest : w;                                                         \
        const int mx_above = w >= (double)beyond;                                                            \
        const type mx_fits = (type)(mx_above ? 0 : w);                                                       \
        return mx_above ? (type)highest : mx_fits;                                                           \
    }                                                                                                        \
    MX_OF_WHOLE_(shortly, type)
MX_NARROW_(i8, int8_t, -128, 127)
MX_NARROW_(u8, uint8_t, 0, 255)
MX_NARROW_(i16, int16_t, -32768, 32767)
MX_NARROW_(u16, uint16_t, 0, 65535)
MX_NARROW_(i32, int32_t, -2147483648.0, 2147483647.0)
MX_NARROW_(u32, uint32_t, 0, 4294967295.0)
MX_WIDE_(i64, int64_t, -9223372036854775808.0, 9223372036854775808.0, 0x7fffffffffffffff)
MX_WIDE_(u64, uint64_t, 0, 18446744073709551616.0, 0xffffffffffffffff)
/* The value of a cell after a floating-point number was added to it, for example by a point source: what SET
 * stores of the sum. Doubles do not have all integers of 64 bits; where they do not, the number is truncated
 * and then added exactly. */
#define MX_PLUS_(shortly, type)                                                                              \
    MX_CONVERSION_ type mx_##shortly##_plus(type cell, double more) {                                        \
        return mx_##shortly##_of_real((double)cell + more);                                                  \
    }
#define MX_WIDE_PLUS_(shortly, type, lowest, highest)                                                        \
    MX_CONVERSION_ type mx_##shortly##_plus(type cell, double more) {                                        \
        const double mx_most = 9007199254740992.0, mx_sum = (double)cell + more;                             \
        const double mx_size = more < 0 ? -more : more;                                                      \
        const int mx_small =                                                                                 \
            (double)cell > -mx_most && (double)cell < mx_most && mx_sum > -mx_most && mx_sum < mx_most;      \
        if (mx_small || more != more) return mx_##shortly##_of_real(mx_sum);                                 \
        const type mx_end = more < 0 ? (type)lowest : (type)highest;                                         \
        const uint64_t mx_cell = (uint64_t)cell;                                                             \
        const uint64_t mx_room = more < 0 ? mx_cell - (uint64_t)mx_end : (uint64_t)mx_end - mx_cell;         \
        if (mx_size >= 18446744073709551616.0 || (uint64_t)mx_size > mx_room) return mx_end;                 \
        return (type)(more < 0 ? mx_cell - (uint64_t)mx_size : mx_cell + (uint64_t)mx_size);                 \
    }
MX_PLUS_(i8, int8_t)
MX_PLUS_(u8, uint8_t)
MX_PLUS_(i16, int16_t)
MX_PLUS_(u16, uint16_t)
MX_PLUS_(i32, int32_t)
MX_PLUS_(u32, uint32_t)
MX_WIDE_PLUS_(i64, int64_t, (-0x7fffffffffffffff - 1), 0x7fffffffffffffff)
MX_WIDE_PLUS_(u64, uint64_t, 0, 0xffffffffffffffff)
/* MX_CONVERSIONS end */

/* A field of a kernel. */
struct mx_cell_field {
    const char *name, *type_name;
    uint32_t type, bytes;
};

/* A parameter of a kernel. */
struct mx_cell_param {
    const char *name;
    double value; /* its default */
};

/* How the values of a reduction are combined. */
enum { MX_SUM, MX_MAX, MX_MIN };

/* A reduction of a kernel. */
struct mx_cell_reduce {
    const char *name;
    int64_t kind;
    /* Writes the values of cells x0 .. x1-1 of one row (r->rows is 1) to value[0] and the following. */
    void (*value)(const struct mx_row *r, double *value);
};

/* A function that computes one level of some rows. */
typedef void mx_level_fn(const struct mx_row *);

/* Functions that compute several planes in a call, if a kernel has some. For each field, `out` of mx_row then
 * has `planes` pointers. `in` has 2h + planes, and `fixed` 2hc + planes. The planes adjoin, and z is the
 * index of the first. */
struct mx_deep_kernel {
    int64_t planes;            /* of a call: 2 to 4 */
    mx_level_fn *const *level; /* like those of the kernel */
};

/* The description of a kernel, which its file exports as mx_kernel. memext refuses a description of another
 * size, and one whose reserved members are not 0. */
struct mx_kernel {
    uint32_t size, version; /* of this struct; MX_CELL_VERSION */
    uint32_t row_size, field_size, param_size, reduce_size;
    int32_t form, real_bytes;
    int32_t radius[3], fixed_radius; /* of the state along x, y and z: all equal, or that of z is 0 */
    int32_t n_state, n_partner, n_fixed, n_param, n_reduce;
    int32_t n_levels; /* levels of a step: 1; staggered 2; jacobi with stages MX_STAGES */
    uint64_t flags;   /* 0 */
    const char *name;
    const struct mx_cell_field *state, *partner, *fixed;
    const struct mx_cell_param *param;
    const struct mx_cell_reduce *reduce;
    mx_level_fn *const *level;         /* [n_levels], in order; staggered: B from A, then A from B */
    const struct mx_deep_kernel *deep; /* NULL: there are none */
    const void *more[6];               /* NULL */
};

#endif

#if !defined(MX_NAME) && (defined(MX_RADIUS) || defined(MX_RADII) || defined(MX_STATE))
#error MX_NAME is not defined: a kernel defines it, MX_RADIUS and MX_STATE before it includes memext/cell.h
#endif

#if defined(MX_NAME) && !defined(MEMEXT_CELL_KERNEL)
#define MEMEXT_CELL_KERNEL

#include <math.h>

#ifdef MX_RADII
#ifdef MX_RADIUS
#error MX_RADIUS and MX_RADII are both defined: leave one of them out
#endif
#define MX_OF_RADII_(PICK, ...) PICK(__VA_ARGS__)
#define MX_RADIUS_X_(x, y, z) (x)
#define MX_RADIUS_Y_(x, y, z) (y)
#define MX_RADIUS_Z_(x, y, z) (z)
#define MX_RADIUS MX_OF_RADII_(MX_RADIUS_X_, MX_RADII)
#if MX_OF_RADII_(MX_RADIUS_Z_, MX_RADII) == 0
#define MX_FLAT_ 1 /* two dimensions */
#endif
_Static_assert(MX_OF_RADII_(MX_RADIUS_Y_, MX_RADII) == MX_RADIUS &&
                   (MX_OF_RADII_(MX_RADIUS_Z_, MX_RADII) == MX_RADIUS ||
                    MX_OF_RADII_(MX_RADIUS_Z_, MX_RADII) == 0),
               "MX_RADII x, y, z needs x = y, and z = x or z = 0; use the largest radius for all axes");
#endif
#ifndef MX_FLAT_
#define MX_FLAT_ 0
#endif
#ifndef MX_RADIUS
#error MX_RADIUS is not defined: how far the kernel reads in x, y and z, e.g. #define MX_RADIUS 1
#endif
#ifndef MX_STATE
#error MX_STATE is not defined: the fields that the kernel computes, e.g. #define MX_STATE(F) F(u, double)
#endif
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
#ifndef MX_STAGES
#define MX_STAGES 0 /* no stages: a step is MX_CELL */
#endif
#ifndef MX_REAL
#define MX_REAL double
#endif
#ifndef MX_REDUCES
#define MX_REDUCES(R)
#endif

_Static_assert(MX_STAGES == 0 || (MX_STAGES >= 2 && MX_STAGES <= 16),
               "MX_STAGES must be 2 to 16; a step of one stage uses MX_CELL and no MX_STAGES");
_Static_assert(MX_STAGES == 0 || MX_FORM == MX_JACOBI, "MX_STAGES needs the form MX_JACOBI");

#define MX_MEMBER_(name, type) char name;
struct mx_names_of_fields { /* if two fields have one name, the compiler reports a duplicate member */
    MX_STATE(MX_MEMBER_) MX_PARTNER(MX_MEMBER_) MX_FIXED(MX_MEMBER_) char mx_end_;
};
#define MX_INDEX_(name, type) mx_index_##name,
#define MX_PARAM_INDEX_(name, value) mx_param_##name,
#define MX_REACH_(name, type) mx_reach_##name = MX_RADIUS,
#define MX_FIXED_REACH_(name, type) mx_reach_##name = MX_FIXED_RADIUS,
/* Cells from one x to the next: 1, or 0 for a read-only field that has one cell for a whole row. memext
 * compiles the kernel for such a field after a line "#define MEMEXT_ALIKE_name ~, 0". */
#define MX_STEP_(name, type) mx_step_##name = 1, mx_near_step_##name = 1,
#define MX_PICK_STEP_(a, step, ...) step
#define MX_STEP_OF_(...) MX_PICK_STEP_(__VA_ARGS__)
#define MX_FIXED_STEP_(name, type)                                                                           \
    mx_step_##name = MX_STEP_OF_(MEMEXT_ALIKE_##name, 1, 0),                                                 \
    mx_near_step_##name = MX_IS_SMALL_(type) ? 1 : mx_step_##name,
#define MX_TYPEDEF_(name, type) typedef type mx_type_##name, mx_near_type_##name;
/* Small integers of read-only fields are widened before the loop over x, to the type that C gives them in an
 * expression anyway. With a field of 8 bits in the loop, gcc would compute 32 cells of every other field at
 * once, and has too few registers for that.
 */
#define MX_IS_SMALL_(type) (sizeof(type) < sizeof(int32_t) && MX_FIXED_RADIUS <= 1)
#define MX_FIXED_TYPEDEF_(name, type)                                                                        \
    typedef type mx_type_##name;                                                                             \
    typedef __typeof__(__builtin_choose_expr(MX_IS_SMALL_(type), (int32_t)0, (type)0)) mx_near_type_##name;
enum { MX_STATE(MX_INDEX_) mx_n_state };
enum { MX_PARTNER(MX_INDEX_) mx_n_partner };
enum { MX_FIXED(MX_INDEX_) mx_n_fixed };
enum { MX_PARAMS(MX_PARAM_INDEX_) mx_n_param };
enum { MX_STATE(MX_REACH_) MX_PARTNER(MX_REACH_) MX_FIXED(MX_FIXED_REACH_) mx_no_reach };
enum { MX_STATE(MX_STEP_) MX_PARTNER(MX_STEP_) MX_FIXED(MX_FIXED_STEP_) mx_no_step };
MX_STATE(MX_TYPEDEF_) MX_PARTNER(MX_TYPEDEF_) MX_FIXED(MX_FIXED_TYPEDEF_) typedef MX_REAL mx_real;

/* Bytes of a vector. */
#if defined(__AVX512F__)
#define MX_VECTOR_ 64
#elif defined(__AVX__)
#define MX_VECTOR_ 32
#else
#define MX_VECTOR_ 16
#endif

/* With MEMEXT_BLOCKS a row is computed in blocks of as many cells as a vector has of the widest field. A
 * block's neighbours come from whole vectors, three in a row, which stay in registers:
 *
 *      previous          current           next
 *     | a b c d e f g h | i j k l m n o p | q r s t u v w x |
 *                    `-----------------'                        neighbours at dx = -1: h i j k l m n o
 *
 * They are put into an array mx_lane_NAME[plane][row][dx][cell of the block], from which AT reads. Its
 * indices are constants after the cell's function is inlined and vectorised, so the compiler drops the array
 * and what nobody reads, and shuffles registers instead. Without blocks each vector of neighbours in x is a
 * load that crosses a cache line. Offsets of more than 1 in y or z are read from memory. */
#ifdef MEMEXT_BLOCKS
#ifdef MEMEXT_ROWS
#define MX_MOST_ROWS_ MEMEXT_ROWS
#else
#define MX_MOST_ROWS_ 1
#endif
#ifdef MEMEXT_PLANES
#define MX_MOST_PLANES_ MEMEXT_PLANES
#else
#define MX_MOST_PLANES_ 1
#endif
#define MX_MEMBER_OF_TYPE_(name, type) type name;
enum {
    mx_lanes = MX_VECTOR_ / sizeof(union { MX_STATE(MX_MEMBER_OF_TYPE_) MX_PARTNER(MX_MEMBER_OF_TYPE_)
                                               MX_FIXED(MX_MEMBER_OF_TYPE_) char mx_none; })
};
_Static_assert(mx_lanes >= 2 && mx_lanes <= 16, "no blocks for cells of this size");
/* If vectors hold different numbers of cells of two fields, compilers use narrow ones for both. */
#define MX_IS_WIDEST_(name, type) &&sizeof(type) * mx_lanes == MX_VECTOR_
_Static_assert(1 MX_STATE(MX_IS_WIDEST_) MX_PARTNER(MX_IS_WIDEST_) MX_FIXED(MX_IS_WIDEST_),
               "no blocks for fields of different sizes");
#define MX_LEAST_(a, b) ((a) < (b) ? (a) : (b))
#define MX_LANES_(name, type)                                                                                \
    enum {                                                                                                   \
        mx_in_lanes_##name = mx_reach_##name >= 1 && mx_step_##name == 1,                                    \
        mx_shifts_##name = MX_LEAST_(mx_reach_##name, mx_lanes)                                              \
    };                                                                                                       \
    typedef mx_near_type_##name mx_lanes_##name[MX_MOST_PLANES_ + 2][MX_MOST_ROWS_ + 2]                      \
                                               [2 * mx_reach_##name + 1][mx_lanes];                          \
    typedef mx_near_type_##name mx_block_##name                                                              \
        __attribute__((vector_size(mx_lanes * sizeof(mx_near_type_##name)), may_alias,                       \
                       aligned(sizeof(mx_near_type_##name))));
MX_STATE(MX_LANES_) MX_PARTNER(MX_LANES_) MX_FIXED(MX_LANES_)
/* Compilers take seconds for many arrays of lanes, though most of them are dropped. */
#define MX_COUNT_LANES_(name, type) +mx_in_lanes_##name *mx_shifts_##name
_Static_assert(0 MX_STATE(MX_COUNT_LANES_) MX_PARTNER(MX_COUNT_LANES_) MX_FIXED(MX_COUNT_LANES_) <= 32,
               "no blocks for so many neighbours");
enum {
    /* cells that may be read beside those that are computed */
    mx_beside = MX_LEAST_((0 MX_FIXED(MX_COUNT_LANES_)) > 0 ? MX_FIXED_RADIUS : MX_RADIUS, (int)mx_lanes),
    mx_least_cells = 4 * mx_lanes /* of a row that is computed in blocks */
};
#endif

#define MX_CELL_TYPE_(type)                                                                                  \
    _Generic((type *)0, double *: MX_CELL_F64, float *: MX_CELL_F32, uint8_t *: MX_CELL_U8,                  \
             uint16_t *: MX_CELL_U16, int16_t *: MX_CELL_I16, int8_t *: MX_CELL_I8, int32_t *: MX_CELL_I32,  \
             uint32_t *: MX_CELL_U32, int64_t *: MX_CELL_I64, uint64_t *: MX_CELL_U64,                       \
             default: MX_CELL_OTHER)
#define MX_DESCRIBE_(name, type) {#name, #type, MX_CELL_TYPE_(type), sizeof(type)},
#define MX_DESCRIBE_PARAM_(name, value) {#name, (double)(value)},
static const struct mx_cell_field mx_state_[] = {MX_STATE(MX_DESCRIBE_){0, 0, 0, 0}};
static const struct mx_cell_field mx_partner_[] = {MX_PARTNER(MX_DESCRIBE_){0, 0, 0, 0}};
static const struct mx_cell_field mx_fixed_[] = {MX_FIXED(MX_DESCRIBE_){0, 0, 0, 0}};
static const struct mx_cell_param mx_param_[] = {MX_PARAMS(MX_DESCRIBE_PARAM_){0, 0}};

/* Weak: the library sees which of them the file has, and reports what is missing. */
#define MX_WEAK_ __attribute__((weak, visibility("hidden")))
MX_WEAK_ void mx_row_(const struct mx_row *);
MX_WEAK_ void mx_row_b_(const struct mx_row *);
MX_WEAK_ void mx_row_a_(const struct mx_row *);
#define MX_DECLARE_ROW_(i) MX_WEAK_ void mx_row_##i##_(const struct mx_row *);
#define MX_ALL_STAGES_(DO)                                                                                   \
    DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15) DO(16)
MX_ALL_STAGES_(MX_DECLARE_ROW_)
#define MX_DECLARE_REDUCE_(name, kind) MX_WEAK_ void mx_reduce_##name(const struct mx_row *, double *);
#define MX_REDUCE_INDEX_(name, kind) mx_reduce_index_##name,
#define MX_DESCRIBE_REDUCE_(name, kind) {#name, kind, mx_reduce_##name},
MX_REDUCES(MX_DECLARE_REDUCE_)
enum { MX_REDUCES(MX_REDUCE_INDEX_) mx_n_reduce };
static const struct mx_cell_reduce mx_reduce_[] = {MX_REDUCES(MX_DESCRIBE_REDUCE_){0, 0, 0}};

#define MX_STAGE_ROW_(i) mx_row_##i##_,
static mx_level_fn *const mx_stage_[] = {MX_ALL_STAGES_(MX_STAGE_ROW_)};
static mx_level_fn *const mx_level_[] = {MX_FORM == MX_STAGGERED ? mx_row_b_ : mx_row_, mx_row_a_};
#ifdef MEMEXT_PLANES
MX_WEAK_ void mx_row_deep_(const struct mx_row *);
MX_WEAK_ void mx_row_b_deep_(const struct mx_row *);
MX_WEAK_ void mx_row_a_deep_(const struct mx_row *);
#define MX_DECLARE_DEEP_(i) MX_WEAK_ void mx_row_##i##_deep_(const struct mx_row *);
MX_ALL_STAGES_(MX_DECLARE_DEEP_)
#define MX_DEEP_STAGE_(i) mx_row_##i##_deep_,
static mx_level_fn *const mx_deep_stage_[] = {MX_ALL_STAGES_(MX_DEEP_STAGE_)};
static mx_level_fn *const mx_deep_level_[] = {MX_FORM == MX_STAGGERED ? mx_row_b_deep_ : mx_row_deep_,
                                              mx_row_a_deep_};
static const struct mx_deep_kernel mx_deep_kernel_ = {
    .planes = MEMEXT_PLANES, .level = MX_STAGES > 0 ? mx_deep_stage_ : mx_deep_level_};
#endif

__attribute__((visibility("default"))) extern const struct mx_kernel mx_kernel;
const struct mx_kernel mx_kernel = {.size = sizeof(struct mx_kernel),
                                    .version = MX_CELL_VERSION,
                                    .row_size = sizeof(struct mx_row),
                                    .field_size = sizeof(struct mx_cell_field),
                                    .param_size = sizeof(struct mx_cell_param),
                                    .reduce_size = sizeof(struct mx_cell_reduce),
                                    .form = MX_FORM,
                                    .real_bytes = sizeof(mx_real),
                                    .radius = {MX_RADIUS, MX_RADIUS, MX_FLAT_ ? 0 : MX_RADIUS},
                                    .fixed_radius = MX_FIXED_RADIUS,
                                    .n_state = mx_n_state,
                                    .n_partner = mx_n_partner,
                                    .n_fixed = mx_n_fixed,
                                    .n_param = mx_n_param,
                                    .n_reduce = mx_n_reduce,
                                    .n_levels = MX_STAGES > 0             ? MX_STAGES
                                                : MX_FORM == MX_STAGGERED ? 2
                                                                          : 1,
                                    .name = MX_NAME,
                                    .state = mx_state_,
                                    .partner = mx_partner_,
                                    .fixed = mx_fixed_,
                                    .param = mx_param_,
                                    .reduce = mx_reduce_,
                                    .level = MX_STAGES > 0 ? mx_stage_ : mx_level_,
#ifdef MEMEXT_PLANES
                                    .deep = &mx_deep_kernel_
#endif
};

/* Is d an integer constant? (In gcc and clang the type of the conditional tells.) Only constant offsets are
 * checked here. Others are checked when the kernel runs over poisoned rows (kernel/check.c). */
#define MX_CONSTANT_(d) (sizeof(int) == sizeof(*(8 ? ((void *)((long)(d)*0l)) : (int *)8)))
#define MX_REACHES_(d, name)                                                                                 \
    _Static_assert(                                                                                          \
        __builtin_choose_expr(MX_CONSTANT_(d), (d) >= -mx_reach_##name && (d) <= mx_reach_##name, 1),        \
        "AT(" #name ", ...) reads farther away than MX_RADIUS (for fields of MX_FIXED: MX_FIXED_RADIUS) "    \
        "allows: raise it")
#if MX_FLAT_
#define MX_REACHES_Z_(d, name)                                                                               \
    _Static_assert(__builtin_choose_expr(MX_CONSTANT_(d), (d) == 0, 1),                                      \
                   "AT(" #name ", ...) reads outside the plane, but MX_RADII gives the grid two dimensions")
#else
#define MX_REACHES_Z_(d, name) MX_REACHES_(d, name)
#endif
#define MX_ALLOWED_(dx, dy, dz, name)                                                                        \
    (0 * (int64_t)sizeof(struct {                                                                            \
         MX_REACHES_(dx, name);                                                                              \
         MX_REACHES_(dy, name);                                                                              \
         MX_REACHES_Z_(dz, name);                                                                            \
         char mx_nothing;                                                                                    \
     }))
#define MX_HAS_OLD_                                                                                          \
    (0 * (int)sizeof(struct {                                                                                \
         _Static_assert(MX_FORM != MX_JACOBI, "OLD needs #define MX_FORM MX_LEAPFROG or MX_STAGGERED");      \
         char mx_nothing;                                                                                    \
     }))

/* AT reads the widened copy only at constant offsets: the copy reaches no farther than MX_FIXED_RADIUS. */
#define MX_FROM_(type, at, pitch, dy)                                                                        \
    ((const type *)((const char *)(at) + (mx_row + (mx_among + (dy))) * (pitch)))
#define MX_CONSTANTS_(dx, dy, dz) (MX_CONSTANT_(dx) && MX_CONSTANT_(dy) && MX_CONSTANT_(dz))
#define MX_IN_MEMORY_(name, dx, dy, dz, row, plane)                                                          \
    (__builtin_choose_expr(                                                                                  \
        MX_CONSTANTS_(dx, dy, dz),                                                                           \
        MX_FROM_(mx_near_type_##name, mx_near_##name[mx_deep + (plane) + mx_reach_##name],                   \
                 mx_near_pitch_##name, row),                                                                 \
        MX_FROM_(mx_type_##name, mx_at_##name[mx_deep + (plane) + mx_reach_##name], mx_pitch_##name,         \
                 row))[(mx_x + (dx)) * (MX_CONSTANTS_(dx, dy, dz) ? mx_near_step_##name : mx_step_##name) +  \
                       MX_ALLOWED_(dx, dy, dz, name)])
#ifdef MEMEXT_BLOCKS
/* Is the cell in lanes? In the planes beside those of a pass, a row's own vector is read where it is needed.
 */
#define MX_IS_ONE_(d) ((d) >= -1 && (d) <= 1)
#define MX_IS_OF_PASS_(plane) (mx_deep + (plane) >= 0 && mx_deep + (plane) < MX_MOST_PLANES_)
#define MX_ONE_(d) (MX_IS_ONE_(d) ? (d) + 1 : 1)
#define MX_IN_LANES_(name, dx, dy, dz, row, plane)                                                           \
    (mx_blocked && mx_in_lanes_##name && MX_CONSTANTS_(dx, dy, dz) && MX_IS_ONE_(row) &&                     \
     MX_IS_ONE_(plane) && (dx) >= -mx_lanes && (dx) <= mx_lanes && ((dx) != 0 || MX_IS_OF_PASS_(plane)))
#define MX_AT_(name, dx, dy, dz, row, plane)                                                                 \
    (*(MX_IN_LANES_(name, dx, dy, dz, row, plane)                                                            \
           ? &(*mx_lane_##name)[mx_deep + MX_ONE_(plane)][mx_among + MX_ONE_(row)][(dx) + mx_reach_##name]   \
                               [mx_lane]                                                                     \
           : &MX_IN_MEMORY_(name, dx, dy, dz, row, plane)))
#else
#define MX_AT_ MX_IN_MEMORY_
#endif
#if MX_FLAT_ /* two dimensions: rows are planes of the arrays, and dz may be left out */
#define MX_AT_3_(name, dx, dy, dz) MX_AT_(name, dx, dy, dz, dz, dy)
#define MX_AT_2_(name, dx, dy) MX_AT_(name, dx, dy, 0, 0, dy)
#define MX_PICK_AT_(name, a, b, c, which, ...) which
#define AT(...) MX_PICK_AT_(__VA_ARGS__, MX_AT_3_, MX_AT_2_, MX_AT_2_)(__VA_ARGS__)
#else
#define AT(name, dx, dy, dz) MX_AT_(name, dx, dy, dz, dy, dz)
#endif
#define OLD(name) (MX_HAS_OLD_ ? mx_old_##name : mx_old_##name)
/* Is a value a floating-point number? (By the compilers' number of that class of types.) */
#define MX_IS_REAL_(v) (__builtin_classify_type(v) == 8)
#define MX_AS_(shortly, v)                                                                                   \
    __builtin_choose_expr(MX_IS_REAL_(v), mx_##shortly##_of_real, mx_##shortly##_of_whole)(v)
#define MX_STORED_(cell, v)                                                                                  \
    _Generic((cell), int8_t                                                                                  \
             : MX_AS_(i8, v), uint8_t                                                                        \
             : MX_AS_(u8, v), int16_t                                                                        \
             : MX_AS_(i16, v), uint16_t                                                                      \
             : MX_AS_(u16, v), int32_t                                                                       \
             : MX_AS_(i32, v), uint32_t                                                                      \
             : MX_AS_(u32, v), int64_t                                                                       \
             : MX_AS_(i64, v), uint64_t                                                                      \
             : MX_AS_(u64, v), default                                                                       \
             : (v))
#define SET(name, value)                                                                                     \
    ((void)__extension__({                                                                                   \
        const __auto_type mx_v = (value);                                                                    \
        mx_out_##name[MX_TO_] = MX_STORED_(mx_out_##name[MX_TO_], mx_v);                                     \
    }))
#define PARAM(name) (mx_value_##name)
#define X (mx_x - MX_RADIUS)
#if MX_FLAT_
#define Y (mx_r->z + mx_deep)
#define Z ((int64_t)0)
#define NY (mx_r->nz)
#define NZ ((int64_t)1)
#else
#define Y (mx_r->y + (mx_row + mx_among))
#define Z (mx_r->z + mx_deep)
#define NY (mx_r->ny)
#define NZ (mx_r->nz)
#endif
#define T (mx_r->t)
#define NX (mx_r->nx)

/* Declarations before the loop over x: of a field that is read, a read-only field, a parameter, and a field
 * that is written. */
#define MX_SIDE_(reach) (2 * (reach) + mx_planes) /* planes that a call reads */
#define MX_ROW_SIDE_(reach) (2 * (reach) + mx_together)
#define MX_READ_(name, type)                                                                                 \
    const void *const *const mx_at_##name = mx_r->in + mx_index_##name * MX_SIDE_(MX_RADIUS);                \
    const void *const *const mx_near_##name = mx_at_##name;                                                  \
    const int64_t mx_pitch_##name = mx_r->row_pitch, mx_near_pitch_##name = mx_pitch_##name;                 \
    MX_NO_LANES_(name)                                                                                       \
    (void)mx_at_##name, (void)mx_pitch_##name, (void)mx_near_##name, (void)mx_near_pitch_##name;
#define MX_COPIED_(type, n) (MX_IS_SMALL_(type) ? (n) : 1)
#define MX_FIXED_ROWS_ (MX_FLAT_ ? 0 : MX_FIXED_RADIUS) /* rows that are read above and below */
#define MX_READ_FIXED_(name, type)                                                                           \
    const void *const *const mx_at_##name = mx_r->fixed + mx_index_##name * MX_SIDE_(MX_FIXED_RADIUS);       \
    const int64_t mx_pitch_##name = mx_r->fixed_pitch[mx_index_##name];                                      \
    const void *mx_near_##name[MX_SIDE_(MX_FIXED_RADIUS)];                                                   \
    int32_t mx_copy_##name[MX_COPIED_(type, MX_SIDE_(MX_FIXED_RADIUS))][MX_COPIED_(                          \
        type, MX_ROW_SIDE_(MX_FIXED_ROWS_))][MX_COPIED_(type, MX_MOST_COPIED_ + 2 * MX_FIXED_RADIUS)];       \
    const int64_t mx_near_pitch_##name =                                                                     \
        MX_IS_SMALL_(type) ? (int64_t)sizeof mx_copy_##name[0][0] : mx_pitch_##name;                         \
    for (int mx_i = 0; mx_i < MX_SIDE_(MX_FIXED_RADIUS); mx_i++) {                                           \
        mx_near_##name[mx_i] = mx_at_##name[mx_i];                                                           \
        for (int mx_j = 0; MX_IS_SMALL_(type) && mx_j < MX_ROW_SIDE_(MX_FIXED_ROWS_); mx_j++) {              \
            const type *mx_from =                                                                            \
                MX_FROM_(type, mx_at_##name[mx_i], mx_pitch_##name, mx_j - MX_FIXED_ROWS_) +                 \
                (mx_x0 - MX_FIXED_RADIUS) * mx_step_##name;                                                  \
            for (int64_t mx_k = 0; mx_k < mx_x1 - mx_x0 + 2 * MX_FIXED_RADIUS; mx_k++)                       \
                mx_copy_##name[mx_i][mx_j][mx_k] = (int32_t)mx_from[mx_k * mx_step_##name];                  \
        }                                                                                                    \
        if (MX_IS_SMALL_(type))                                                                              \
            mx_near_##name[mx_i] =                                                                           \
                (const char *)&mx_copy_##name[mx_i][MX_COPIED_(type, MX_FIXED_ROWS_ + 1) - 1]                \
                                             [MX_FIXED_RADIUS] -                                             \
                mx_x0 * (int64_t)sizeof(int32_t) - mx_row * mx_near_pitch_##name;                            \
    }                                                                                                        \
    MX_NO_LANES_(name)                                                                                       \
    (void)mx_at_##name, (void)mx_pitch_##name, (void)mx_near_##name, (void)mx_near_pitch_##name,             \
        (void)mx_copy_##name;
/* A value, not a load: vectorisers give up on a load of a single number in a branch. */
#define MX_PARAM_VALUE_(name, value)                                                                         \
    const mx_real mx_value_##name = mx_p[mx_param_##name];                                                   \
    (void)mx_value_##name;
/* Each row of a pass has a pointer of its own, since gcc 12 mixes up stores through one pointer and a pitch.
 */
#define MX_OUT_PARAMETER_0_(name, type) type *restrict const mx_out_0_##name,
#define MX_OUT_PARAMETER_1_(name, type) type *restrict const mx_out_1_##name,
#define MX_OUT_PARAMETER_2_(name, type) type *restrict const mx_out_2_##name,
#define MX_OUT_PARAMETER_3_(name, type) type *restrict const mx_out_3_##name,
#define MX_OUT_ROW_(name, type, row)                                                                         \
    (type *)((char *)mx_r->out[mx_index_##name * mx_planes + (row) / mx_together] +                          \
             (mx_row + (row) % mx_together) * mx_r->row_pitch),
#define MX_OUT_ARGUMENT_0_(name, type) MX_OUT_ROW_(name, type, 0)
#define MX_OUT_ARGUMENT_1_(name, type) MX_OUT_ROW_(name, type, 1)
#define MX_OUT_ARGUMENT_2_(name, type) MX_OUT_ROW_(name, type, 2)
#define MX_OUT_ARGUMENT_3_(name, type) MX_OUT_ROW_(name, type, 3)
#define MX_OF_ROWS_1_(WRITES, what) WRITES(what##_0_)
#define MX_OF_ROWS_2_(WRITES, what) WRITES(what##_0_) WRITES(what##_1_)
#define MX_OF_ROWS_4_(WRITES, what) WRITES(what##_0_) WRITES(what##_1_) WRITES(what##_2_) WRITES(what##_3_)
/* Rows x planes. */
#define MX_OF_ROWS_1x2_ MX_OF_ROWS_2_
#define MX_OF_ROWS_1x4_ MX_OF_ROWS_4_
#define MX_OF_ROWS_2x2_ MX_OF_ROWS_4_
#define MX_ROWS_IN_1_ 1
#define MX_ROWS_IN_2_ 2
#define MX_ROWS_IN_4_ 4
#define MX_ROWS_IN_1x2_ 1
#define MX_ROWS_IN_1x4_ 1
#define MX_ROWS_IN_2x2_ 2
#define MX_PLANES_IN_1_ 1
#define MX_PLANES_IN_2_ 1
#define MX_PLANES_IN_4_ 1
#define MX_PLANES_IN_1x2_ 2
#define MX_PLANES_IN_1x4_ 4
#define MX_PLANES_IN_2x2_ 2
#define MX_PASS_IS_(n) mx_together = MX_ROWS_IN_##n##_, mx_planes = MX_PLANES_IN_##n##_

/* What a block adds to a cell: whether AT reads from lanes, which of them, and the index of the new value. */
#ifdef MEMEXT_BLOCKS
#define MX_TO_ mx_to
#define MX_PLACE_PARAMETERS_                                                                                 \
    , const int mx_blocked MX_UNUSED_, const int64_t mx_lane MX_UNUSED_, const int64_t mx_to MX_UNUSED_
#define MX_PLACE_ARGUMENTS_ , mx_blocked, mx_lane, mx_to
#define MX_LANES_PARAMETER_(name) , mx_lanes_##name *const mx_lane_##name MX_UNUSED_
#define MX_LANES_ARGUMENT_(name) , mx_lane_##name
#define MX_NO_LANES_(name)                                                                                   \
    mx_lanes_##name *const mx_lane_##name = 0;                                                               \
    (void)mx_lane_##name;
#define MX_NO_BLOCKS_ , mx_blocked = 0, mx_lane = 0
#define MX_TO_IS_(index) const int64_t mx_to = index;
#else
#define MX_TO_ mx_x
#define MX_PLACE_PARAMETERS_
#define MX_PLACE_ARGUMENTS_
#define MX_LANES_PARAMETER_(name)
#define MX_LANES_ARGUMENT_(name)
#define MX_NO_LANES_(name)
#define MX_NO_BLOCKS_
#define MX_TO_IS_(index)
#endif

/* The parameters of the cell's function for a field that is read, a read-only field, a parameter, and a field
 * that is written; then the arguments for them. */
#define MX_UNUSED_ __attribute__((unused))
#define MX_READ_PARAMETER_(name, type)                                                                       \
    , const void *const *const mx_at_##name MX_UNUSED_, const void *const *const mx_near_##name MX_UNUSED_,  \
        const int64_t mx_pitch_##name MX_UNUSED_,                                                            \
        const int64_t mx_near_pitch_##name MX_UNUSED_ MX_LANES_PARAMETER_(name)
#define MX_READ_ARGUMENT_(name, type)                                                                        \
    , mx_at_##name, mx_near_##name, mx_pitch_##name, mx_near_pitch_##name MX_LANES_ARGUMENT_(name)
#define MX_VALUE_PARAMETER_(name, value) , const mx_real mx_value_##name MX_UNUSED_
#define MX_VALUE_ARGUMENT_(name, value) , mx_value_##name
#define MX_NEW_PARAMETER_(name, type)                                                                        \
    , const type mx_old_##name MX_UNUSED_, type *const mx_out_##name MX_UNUSED_
#define MX_NEW_ARGUMENT_(name, type) , mx_old_##name, mx_out_##name
#ifdef MEMEXT_BLOCKS
#define MX_TO_PARAMETER_(name, type) , type *const mx_out_##name, const type *const mx_was_##name
#define MX_TO_ARGUMENT_0_(name, type) , mx_out_0_##name, mx_was_0_##name
#define MX_TO_ARGUMENT_1_(name, type) , mx_out_1_##name, mx_was_1_##name
#define MX_TO_ARGUMENT_2_(name, type) , mx_out_2_##name, mx_was_2_##name
#define MX_TO_ARGUMENT_3_(name, type) , mx_out_3_##name, mx_was_3_##name
#define MX_WAS_(name) mx_was_##name[mx_x]
#else
#define MX_TO_PARAMETER_(name, type) , type *const mx_out_##name
#define MX_TO_ARGUMENT_0_(name, type) , mx_out_0_##name
#define MX_TO_ARGUMENT_1_(name, type) , mx_out_1_##name
#define MX_TO_ARGUMENT_2_(name, type) , mx_out_2_##name
#define MX_TO_ARGUMENT_3_(name, type) , mx_out_3_##name
#define MX_WAS_(name) mx_out_##name[mx_x]
#endif
/* In the loop over x: the value that is replaced, and the value that a cell keeps without SET, which is
 * stored first. Compilers drop that store if SET always follows. Otherwise they make one choice and one store
 * of the two.
 */
#define MX_OLD_OF_MX_JACOBI(name) 0
#define MX_OLD_OF_MX_LEAPFROG(name) MX_WAS_(name)
#define MX_OLD_OF_MX_STAGGERED(name) MX_WAS_(name)
#define MX_KEPT_OF_MX_JACOBI(name) AT(name, 0, 0, 0)
#define MX_KEPT_OF_MX_LEAPFROG(name) AT(name, 0, 0, 0)
#define MX_KEPT_OF_MX_STAGGERED(name) mx_old_##name
#define MX_JOIN_(a, b) a##b
#define MX_OF_(what, form) MX_JOIN_(what, form)
#define MX_BEGIN_(name, type)                                                                                \
    const type mx_old_##name = MX_OF_(MX_OLD_OF_, MX_FORM)(name);                                            \
    mx_out_##name[MX_TO_] = MX_OF_(MX_KEPT_OF_, MX_FORM)(name);

/* Without blocks: the number of cells before the first one that begins a vector in the array written, since
 * vectors that cross a cache line take twice as long. */
#define MX_OUT_BEFORE_(name, type)                                                                           \
    mx_before = (int64_t)(-((uintptr_t)mx_r->out[mx_index_##name] + (uintptr_t)mx_r->x0 * sizeof(type)) %    \
                          MX_VECTOR_ / sizeof(type));
#define MX_COPIES_(name, type) | MX_IS_SMALL_(type)
enum { mx_copies = 0 MX_FIXED(MX_COPIES_), MX_MOST_COPIED_ = 128 };

/* The user's cell is a function that is inlined into the loop over x: once for one row, and with MEMEXT_ROWS
 * 2 or 4 once for each of so many rows, which share what they read. The loop is a function of its own. Its
 * `restrict` tells the vectoriser that nothing that is written is read in another way. It is called for
 * pieces of a row: the cells before the first whole vector, then the rest, at most as many at once as there
 * is room to copy. */
#if defined(MEMEXT_ROWS) && MEMEXT_ROWS == 2
#define MX_PAIRS_(DO, ...) DO(__VA_ARGS__, 2)
#elif defined(MEMEXT_ROWS) && MEMEXT_ROWS == 4
#define MX_PAIRS_(DO, ...) DO(__VA_ARGS__, 4)
#else
#define MX_PAIRS_(...)
#endif
#define MX_CELL_PARAMETERS_(READS)                                                                           \
    const struct mx_row *const mx_r MX_UNUSED_, const int64_t mx_row MX_UNUSED_,                             \
        const int64_t mx_among MX_UNUSED_, const int64_t mx_deep MX_UNUSED_,                                 \
        const int64_t mx_x MX_UNUSED_ MX_PLACE_PARAMETERS_ READS(MX_READ_PARAMETER_)                         \
            MX_FIXED(MX_READ_PARAMETER_) MX_PARAMS(MX_VALUE_PARAMETER_)
#define MX_CELL_ARGUMENTS_(READS, among, deep)                                                               \
    mx_r, mx_row, among, deep,                                                                               \
        mx_x MX_PLACE_ARGUMENTS_ READS(MX_READ_ARGUMENT_) MX_FIXED(MX_READ_ARGUMENT_)                        \
            MX_PARAMS(MX_VALUE_ARGUMENT_)
#define MX_AMONG_(cell_name, READS, WRITES, among, deep, row)                                                \
    cell_name##among_(MX_CELL_ARGUMENTS_(READS, among, deep) WRITES(MX_TO_ARGUMENT_##row##_));
#define MX_PASS_1_(...) MX_AMONG_(__VA_ARGS__, 0, 0, 0)
#define MX_PASS_2_(...) MX_PASS_1_(__VA_ARGS__) MX_AMONG_(__VA_ARGS__, 1, 0, 1)
#define MX_PASS_4_(...)                                                                                      \
    MX_PASS_2_(__VA_ARGS__) MX_AMONG_(__VA_ARGS__, 2, 0, 2) MX_AMONG_(__VA_ARGS__, 3, 0, 3)
#define MX_PASS_1x2_(...) MX_PASS_1_(__VA_ARGS__) MX_AMONG_(__VA_ARGS__, 0, 1, 1)
#define MX_PASS_1x4_(...)                                                                                    \
    MX_PASS_1x2_(__VA_ARGS__) MX_AMONG_(__VA_ARGS__, 0, 2, 2) MX_AMONG_(__VA_ARGS__, 0, 3, 3)
#define MX_PASS_2x2_(...)                                                                                    \
    MX_PASS_2_(__VA_ARGS__) MX_AMONG_(__VA_ARGS__, 0, 1, 2) MX_AMONG_(__VA_ARGS__, 1, 1, 3)
#define MX_SPAN_(span_name, cell_name, READS, WRITES, n)                                                     \
    __attribute__((noinline)) static void span_name##n(                                                      \
        MX_OF_ROWS_##n##_(WRITES, MX_OUT_PARAMETER) const struct mx_row *restrict mx_r,                      \
        const mx_real *restrict mx_p, int64_t mx_row, int64_t mx_x0, int64_t mx_x1) {                        \
        enum { MX_PASS_IS_(n), mx_among = 0, mx_deep = 0 MX_NO_BLOCKS_ };                                    \
        READS(MX_READ_) MX_FIXED(MX_READ_FIXED_) MX_PARAMS(MX_PARAM_VALUE_)(void) mx_p, (void)mx_row;        \
        MX_OF_ROWS_##n##_(WRITES, MX_SAME) /* the old values are where the new ones go */                    \
            _Pragma("omp simd") for (int64_t mx_x = mx_x0; mx_x < mx_x1; mx_x++) {                           \
            MX_TO_IS_(mx_x)                                                                                  \
            MX_PASS_##n##_(cell_name, READS, WRITES)                                                         \
        }                                                                                                    \
    }
#ifdef MEMEXT_BLOCKS
#define MX_SAME_0_(name, type) const type *const mx_was_0_##name = mx_out_0_##name;
#define MX_SAME_1_(name, type) const type *const mx_was_1_##name = mx_out_1_##name;
#define MX_SAME_2_(name, type) const type *const mx_was_2_##name = mx_out_2_##name;
#define MX_SAME_3_(name, type) const type *const mx_was_3_##name = mx_out_3_##name;
/* Rows in blocks, n cells in a pass (rows x planes). Whole vectors of the array written are computed from
 * lanes. At both ends of a row, blocks begin anywhere, overlap the others, and read from memory. Of them only
 * the cells beside the whole vectors are stored: the others may be computed from new values in place of old
 * ones.
 *
 *      x0         begin                       end         x1
 *     | e e e e e | b b b b b b b b b b b b b | e e e e e |
 */
#define MX_WAS_PARAMETER_0_(name, type) type *restrict const mx_was_0_##name,
#define MX_WAS_PARAMETER_1_(name, type) type *restrict const mx_was_1_##name,
#define MX_WAS_PARAMETER_2_(name, type) type *restrict const mx_was_2_##name,
#define MX_WAS_PARAMETER_3_(name, type) type *restrict const mx_was_3_##name,
#define MX_THERE_0_(name, type) type *const mx_out_0_##name = mx_was_0_##name;
#define MX_THERE_1_(name, type) type *const mx_out_1_##name = mx_was_1_##name;
#define MX_THERE_2_(name, type) type *const mx_out_2_##name = mx_was_2_##name;
#define MX_THERE_3_(name, type) type *const mx_out_3_##name = mx_was_3_##name;
#define MX_NEW_BLOCK_0_(name, type) type mx_out_0_##name[mx_lanes];
#define MX_NEW_BLOCK_1_(name, type) type mx_out_1_##name[mx_lanes];
#define MX_NEW_BLOCK_2_(name, type) type mx_out_2_##name[mx_lanes];
#define MX_NEW_BLOCK_3_(name, type) type mx_out_3_##name[mx_lanes];
#define MX_STORE_(name, row)                                                                                 \
    _Pragma("omp simd") for (int64_t mx_i = 0; mx_i < mx_lanes;                                              \
                             mx_i++) if (mx_at + mx_i >= mx_from && mx_at + mx_i < mx_to_)                   \
        mx_was_##row##_##name[mx_at + mx_i] = mx_out_##row##_##name[mx_i];
#define MX_STORE_0_(name, type) MX_STORE_(name, 0)
#define MX_STORE_1_(name, type) MX_STORE_(name, 1)
#define MX_STORE_2_(name, type) MX_STORE_(name, 2)
#define MX_STORE_3_(name, type) MX_STORE_(name, 3)
#define MX_FIRST_VECTOR_(name, type)                                                                         \
    mx_begin = mx_inner + (int64_t)(-((uintptr_t)mx_was_0_##name + (uintptr_t)mx_inner * sizeof(type)) %     \
                                    (mx_lanes * sizeof(type)) / sizeof(type));
#define MX_FIRST_LANES_(name, type)                                                                          \
    const mx_near_type_##name *mx_from_##name[mx_planes + 2][mx_together + 2];                               \
    mx_block_##name mx_previous_##name[mx_planes + 2][mx_together + 2],                                      \
        mx_current_##name[mx_planes + 2][mx_together + 2];                                                   \
    _Pragma("GCC unroll 6") for (int mx_z = 0; mx_z < mx_planes + 2; mx_z++)                                 \
        _Pragma("GCC unroll 6") for (int mx_y = 0; mx_y < mx_together + 2; mx_y++) {                         \
        if (!mx_in_lanes_##name || (MX_FLAT_ && (mx_y == 0 || mx_y > mx_together))) continue;                \
        const mx_near_type_##name *const mx_from =                                                           \
            (const mx_near_type_##name *)((const char *)mx_at_##name[mx_reach_##name + mx_z - 1] +           \
                                          (mx_row + mx_y - 1) * mx_pitch_##name);                            \
        mx_from_##name[mx_z][mx_y] = mx_from;                                                                \
        mx_previous_##name[mx_z][mx_y] = *(const mx_block_##name *)(mx_from + mx_begin - mx_lanes);          \
        mx_current_##name[mx_z][mx_y] = *(const mx_block_##name *)(mx_from + mx_begin);                      \
    }
/* Cells k .. k + lanes - 1 of two vectors in a row. gcc 12 shuffles registers of 64 bytes by an index in a
 * third one, unless it is told how to shift them. These instructions shift by less than a vector: of a larger
 * k they take the lowest bits. */
#if MX_VECTOR_ == 64 && !defined(__clang__)
typedef int mx_block_32 __attribute__((vector_size(64)));
typedef long long mx_block_64 __attribute__((vector_size(64)));
#define MX_SHIFTED_(name, low, high, k)                                                                      \
    ((k) == mx_lanes ? (high)                                                                                \
     : mx_lanes == 8                                                                                         \
         ? (mx_block_##name)__builtin_ia32_alignq512_mask((mx_block_64)(high), (mx_block_64)(low), (k) % 8,  \
                                                          (mx_block_64){0}, (unsigned char)-1)               \
         : (mx_block_##name)__builtin_ia32_alignd512_mask((mx_block_32)(high), (mx_block_32)(low), (k) % 16, \
                                                          (mx_block_32){0}, (unsigned short)-1))
_Static_assert(mx_lanes == 8 || mx_lanes == 16, "no blocks for cells of this size");
#else
#define MX_OF_TWO_(i) ((i) & (2 * mx_lanes - 1))
#define MX_2_OF_(k) MX_OF_TWO_(k), MX_OF_TWO_((k) + 1)
#define MX_4_OF_(k) MX_2_OF_(k), MX_2_OF_((k) + 2)
#define MX_8_OF_(k) MX_4_OF_(k), MX_4_OF_((k) + 4)
#define MX_16_OF_(k) MX_8_OF_(k), MX_8_OF_((k) + 8)
#define MX_SHIFTED_(name, low, high, k)                                                                      \
    __builtin_choose_expr(                                                                                   \
        mx_lanes == 2, __builtin_shufflevector(low, high, MX_2_OF_(k)),                                      \
        __builtin_choose_expr(mx_lanes == 4, __builtin_shufflevector(low, high, MX_4_OF_(k)),                \
                              __builtin_choose_expr(mx_lanes == 8,                                           \
                                                    __builtin_shufflevector(low, high, MX_8_OF_(k)),         \
                                                    __builtin_shufflevector(low, high, MX_16_OF_(k)))))
#endif
#define MX_SHIFT_(name, k)                                                                                   \
    if (k <= mx_shifts_##name) {                                                                             \
        enum { mx_up = k <= mx_shifts_##name ? k : 0, mx_down = mx_lanes - mx_up };                          \
        *(mx_block_##name *)mx_array_##name[mx_z][mx_y][mx_reach_##name - mx_up] =                           \
            MX_SHIFTED_(name, mx_previous, mx_current, mx_down);                                             \
        *(mx_block_##name *)mx_array_##name[mx_z][mx_y][mx_reach_##name + mx_up] =                           \
            MX_SHIFTED_(name, mx_current, mx_next, mx_up);                                                   \
    }
#define MX_NEXT_LANES_(name, type)                                                                           \
    mx_lanes_##name mx_array_##name __attribute__((aligned(MX_VECTOR_)));                                    \
    mx_lanes_##name *const mx_lane_##name = &mx_array_##name;                                                \
    (void)mx_lane_##name;                                                                                    \
    _Pragma("GCC unroll 6") for (int mx_z = 0; mx_z < mx_planes + 2; mx_z++)                                 \
        _Pragma("GCC unroll 6") for (int mx_y = 0; mx_y < mx_together + 2; mx_y++) {                         \
        if (!mx_in_lanes_##name || (MX_FLAT_ && (mx_y == 0 || mx_y > mx_together))) continue;                \
        const mx_block_##name mx_previous = mx_previous_##name[mx_z][mx_y],                                  \
                              mx_current = mx_current_##name[mx_z][mx_y],                                    \
                              mx_next =                                                                      \
                                  *(const mx_block_##name *)(mx_from_##name[mx_z][mx_y] + mx_at + mx_lanes); \
        *(mx_block_##name *)mx_array_##name[mx_z][mx_y][mx_reach_##name] = mx_current;                       \
        MX_SHIFT_(name, 1)                                                                                   \
        MX_SHIFT_(name, 2)                                                                                   \
        MX_SHIFT_(name, 3)                                                                                   \
        MX_SHIFT_(name, 4)                                                                                   \
        MX_SHIFT_(name, 5)                                                                                   \
        MX_SHIFT_(name, 6)                                                                                   \
        MX_SHIFT_(name, 7)                                                                                   \
        MX_SHIFT_(name, 8)                                                                                   \
        mx_previous_##name[mx_z][mx_y] = mx_current, mx_current_##name[mx_z][mx_y] = mx_next;                \
    }
#define MX_ENDS_(cell_name, READS, WRITES, n, part)                                                          \
    for (int mx_k = 0; mx_k < 2; mx_k++) {                                                                   \
        enum { mx_blocked = 0 };                                                                             \
        const int64_t mx_at = part[mx_k][0], mx_from = part[mx_k][1], mx_to_ = part[mx_k][2];                \
        if (mx_from >= mx_to_) continue;                                                                     \
        MX_OF_ROWS_##n##_(WRITES, MX_NEW_BLOCK)                                                              \
            _Pragma("omp simd") for (int64_t mx_lane = 0; mx_lane < mx_lanes; mx_lane++) {                   \
            const int64_t mx_x = mx_at + mx_lane, mx_to = mx_lane;                                           \
            MX_PASS_##n##_(cell_name, READS, WRITES)                                                         \
        }                                                                                                    \
        MX_OF_ROWS_##n##_(WRITES, MX_STORE)                                                                  \
    }
/* Tiles of wide stencils lie in L3 (engine/tiled_sizes.c). From there a row comes late, since hardware
 * prefetchers begin anew with each row. So each block prefetches into L2 what the first row of the next pass
 * needs at the same x: the last planes of the fields that are read, those of MX_FIXED, and the planes that
 * are written. */
#define MX_ASKS_ (MX_RADIUS >= 4 && !MX_FLAT_)
#define MX_ASK_(name, type, planes, pitch)                                                                   \
    _Pragma("GCC unroll 4") for (int mx_i = 0; mx_i < mx_planes; mx_i++)                                     \
        __builtin_prefetch((const char *)(planes)[mx_i] + (mx_row + mx_together) * (pitch) +                 \
                               mx_at * mx_step_##name * (int64_t)sizeof(type),                               \
                           0, 2);
#define MX_ASK_READ_(name, type) MX_ASK_(name, type, mx_at_##name + 2 * MX_RADIUS, mx_pitch_##name)
#define MX_ASK_FIXED_(name, type) MX_ASK_(name, type, mx_at_##name + 2 * MX_FIXED_RADIUS, mx_pitch_##name)
#define MX_ASK_WRITE_(name, type)                                                                            \
    MX_ASK_(name, type, mx_r->out + mx_index_##name * mx_planes, mx_r->row_pitch)
#define MX_ASK_AHEAD_(READS, WRITES)                                                                         \
    if (MX_ASKS_) {                                                                                          \
        READS(MX_ASK_READ_) MX_FIXED(MX_ASK_FIXED_) WRITES(MX_ASK_WRITE_)                                    \
    }
#define MX_BLOCKS_(...) MX_SPAN_(__VA_ARGS__) MX_PASSES_(__VA_ARGS__)
#define MX_PASSES_(span_name, cell_name, READS, WRITES, n)                                                   \
    __attribute__((noinline)) static void span_name##n##_blocks_(                                            \
        MX_OF_ROWS_##n##_(WRITES, MX_WAS_PARAMETER) const struct mx_row *restrict mx_r,                      \
        const mx_real *restrict mx_p, int64_t mx_row, int64_t mx_x0, int64_t mx_x1) {                        \
        enum { MX_PASS_IS_(n), mx_among = 0, mx_deep = 0 };                                                  \
        READS(MX_READ_) MX_FIXED(MX_READ_FIXED_) MX_PARAMS(MX_PARAM_VALUE_)(void) mx_p, (void)mx_row;        \
        const int64_t mx_inner = mx_x0 + mx_lanes - mx_beside;                                               \
        int64_t mx_begin = mx_inner;                                                                         \
        WRITES(MX_FIRST_VECTOR_)                                                                             \
        const int64_t mx_end = mx_begin + (mx_x1 + mx_beside - mx_lanes - mx_begin) / mx_lanes * mx_lanes;   \
        const int64_t mx_last = mx_x1 - mx_lanes, mx_second = mx_x0 + mx_lanes;                              \
        const int64_t mx_left[2][3] = {{mx_x0, mx_x0, mx_second < mx_begin ? mx_second : mx_begin},          \
                                       {mx_begin - mx_lanes, mx_second, mx_begin}};                          \
        const int64_t mx_right[2][3] = {{mx_end, mx_end, mx_last},                                           \
                                        {mx_last, mx_end > mx_last ? mx_end : mx_last, mx_x1}};              \
        MX_ENDS_(cell_name, READS, WRITES, n, mx_left) {                                                     \
            MX_OF_ROWS_##n##_(WRITES, MX_THERE) READS(MX_FIRST_LANES_) MX_FIXED(                             \
                MX_FIRST_LANES_) for (int64_t mx_at = mx_begin; mx_at < mx_end; mx_at += mx_lanes) {         \
                enum { mx_blocked = 1 };                                                                     \
                READS(MX_NEXT_LANES_)                                                                        \
                MX_FIXED(MX_NEXT_LANES_)                                                                     \
                MX_ASK_AHEAD_(READS, WRITES)                                                                 \
                _Pragma("omp simd") for (int64_t mx_lane = 0; mx_lane < mx_lanes; mx_lane++) {               \
                    const int64_t mx_x = mx_at + mx_lane, mx_to = mx_x;                                      \
                    MX_PASS_##n##_(cell_name, READS, WRITES)                                                 \
                }                                                                                            \
            }                                                                                                \
        }                                                                                                    \
        MX_ENDS_(cell_name, READS, WRITES, n, mx_right)                                                      \
    }
#define MX_ROWS_(span_name, WRITES, n)                                                                       \
    for (; mx_row + n <= mx_r->rows; mx_row += n) {                                                          \
        enum { MX_PASS_IS_(n) };                                                                             \
        if (mx_r->x1 - mx_r->x0 >= mx_least_cells)                                                           \
            span_name##n##_blocks_(MX_OF_ROWS_##n##_(WRITES, MX_OUT_ARGUMENT) mx_r, mx_p, mx_row, mx_r->x0,  \
                                   mx_r->x1);                                                                \
        else                                                                                                 \
            span_name##n(MX_OF_ROWS_##n##_(WRITES, MX_OUT_ARGUMENT) mx_r, mx_p, mx_row, mx_r->x0, mx_r->x1); \
    }                                                                                                        \
    (void)mx_before;
_Static_assert(!mx_copies, "no blocks for read-only fields of small integers");
#else
#define MX_BLOCKS_ MX_SPAN_
#define MX_SAME_0_(name, type)
#define MX_SAME_1_(name, type)
#define MX_SAME_2_(name, type)
#define MX_SAME_3_(name, type)
#define MX_ROWS_(span_name, WRITES, n)                                                                       \
    for (; mx_row + n <= mx_r->rows; mx_row += n)                                                            \
        for (int64_t mx_x = mx_r->x0, mx_end; mx_x < mx_r->x1; mx_x = mx_end) {                              \
            enum { MX_PASS_IS_(n) };                                                                         \
            mx_end = mx_x + (mx_x == mx_r->x0 && mx_before > 0 ? mx_before                                   \
                             : mx_copies                       ? MX_MOST_COPIED_                             \
                                                               : mx_r->x1);                                  \
            if (mx_end > mx_r->x1) mx_end = mx_r->x1;                                                        \
            span_name##n(MX_OF_ROWS_##n##_(WRITES, MX_OUT_ARGUMENT) mx_r, mx_p, mx_row, mx_x, mx_end);       \
        }
#endif
/* With MEMEXT_PLANES a pass goes through rows of several planes, which share what they read in z. What such
 * passes cannot compute, the function for one plane does. */
#ifdef MEMEXT_PLANES
#ifndef MEMEXT_BLOCKS
#error MEMEXT_PLANES needs MEMEXT_BLOCKS
#endif
#if MX_MOST_ROWS_ == 1 && MEMEXT_PLANES == 2
#define MX_DEEP_(DO, ...) DO(__VA_ARGS__, 1x2)
#elif MX_MOST_ROWS_ == 1 && MEMEXT_PLANES == 4
#define MX_DEEP_(DO, ...) DO(__VA_ARGS__, 1x4)
#elif MX_MOST_ROWS_ == 2 && MEMEXT_PLANES == 2
#define MX_DEEP_(DO, ...) DO(__VA_ARGS__, 2x2)
#else
#error no form of row functions has MEMEXT_ROWS rows of MEMEXT_PLANES planes
#endif
/* Of n fields, each with pointers to 2 reach + MEMEXT_PLANES planes: those that one plane needs. */
static inline void mx_planes_of_(const void *const *from, int n, int reach, int plane, int64_t bytes,
                                 const void **to) {
    for (int i = 0; i < n; i++)
        for (int d = 0; d <= 2 * reach; d++)
            to[i * (2 * reach + 1) + d] =
                (const char *)from[i * (2 * reach + MEMEXT_PLANES) + plane + d] + bytes;
}
/* Computes the rows from `first` on, plane by plane. */
static void mx_plane_by_plane_(const struct mx_row *r, mx_level_fn *one, int64_t first, int reads,
                               int writes) {
    const void *in[32 * (2 * MX_RADIUS + 1)], *fixed[mx_n_fixed * (2 * MX_FIXED_RADIUS + 1) + 1];
    void *out[32];
    for (int plane = 0; plane < MEMEXT_PLANES; plane++) {
        struct mx_row c = *r;
        const int64_t bytes = first * r->row_pitch;
        mx_planes_of_(r->in, reads, MX_RADIUS, plane, bytes, in);
        for (int i = 0; i < mx_n_fixed; i++)
            mx_planes_of_(r->fixed + i * (2 * MX_FIXED_RADIUS + MEMEXT_PLANES), 1, MX_FIXED_RADIUS, plane,
                          first * r->fixed_pitch[i], fixed + i * (2 * MX_FIXED_RADIUS + 1));
        for (int i = 0; i < writes; i++) out[i] = (char *)r->out[i * MEMEXT_PLANES + plane] + bytes;
        c.in = in, c.fixed = fixed, c.out = out;
        c.rows -= first, c.y += first, c.z += plane;
        one(&c);
    }
}
#define MX_COUNT_(name, type) +1
#define MX_DEEP_ROWS_(span_name, WRITES, n)                                                                  \
    enum { MX_PASS_IS_(n) };                                                                                 \
    if (mx_r->x1 - mx_r->x0 >= mx_least_cells)                                                               \
        for (; mx_row + mx_together <= mx_r->rows; mx_row += mx_together)                                    \
            span_name##n##_blocks_(MX_OF_ROWS_##n##_(WRITES, MX_OUT_ARGUMENT) mx_r, mx_p, mx_row, mx_r->x0,  \
                                   mx_r->x1);
#define MX_DEEP_CELLS_(row_name, span_name, cell_name, READS, WRITES)                                        \
    MX_DEEP_(MX_PASSES_, span_name, cell_name, READS, WRITES)                                                \
    void row_name##deep_(const struct mx_row *mx_r) {                                                        \
        mx_real mx_p[mx_n_param + 1];                                                                        \
        int64_t mx_row = 0;                                                                                  \
        for (int mx_i = 0; mx_i < mx_n_param; mx_i++) mx_p[mx_i] = (mx_real)mx_r->param[mx_i];               \
        MX_DEEP_(MX_DEEP_ROWS_, span_name, WRITES)                                                           \
        if (mx_row < mx_r->rows)                                                                             \
            mx_plane_by_plane_(mx_r, row_name, mx_row, 0 READS(MX_COUNT_), 0 WRITES(MX_COUNT_));             \
    }
#else
#define MX_DEEP_CELLS_(...)
#endif
#define MX_CELLS_(row_name, span_name, cell_name, READS, WRITES)                                             \
    __attribute__((always_inline)) static inline void cell_name(MX_CELL_PARAMETERS_(READS)                   \
                                                                    WRITES(MX_NEW_PARAMETER_));              \
    __attribute__((always_inline)) static inline void cell_name##among_(MX_CELL_PARAMETERS_(READS)           \
                                                                            WRITES(MX_TO_PARAMETER_)) {      \
        WRITES(MX_BEGIN_)                                                                                    \
        cell_name(MX_CELL_ARGUMENTS_(READS, mx_among, mx_deep) WRITES(MX_NEW_ARGUMENT_));                    \
    }                                                                                                        \
    MX_BLOCKS_(span_name, cell_name, READS, WRITES, 1)                                                       \
    MX_PAIRS_(MX_BLOCKS_, span_name, cell_name, READS, WRITES)                                               \
    void row_name(const struct mx_row *mx_r) {                                                               \
        mx_real mx_p[mx_n_param + 1];                                                                        \
        int64_t mx_before = 0, mx_row = 0;                                                                   \
        WRITES(MX_OUT_BEFORE_)                                                                               \
        for (int mx_i = 0; mx_i < mx_n_param; mx_i++) mx_p[mx_i] = (mx_real)mx_r->param[mx_i];               \
        MX_PAIRS_(MX_ROWS_, span_name, WRITES)                                                               \
        MX_ROWS_(span_name, WRITES, 1)                                                                       \
    }                                                                                                        \
    MX_DEEP_CELLS_(row_name, span_name, cell_name, READS, WRITES)                                            \
    __attribute__((always_inline)) static inline void cell_name(MX_CELL_PARAMETERS_(READS)                   \
                                                                    WRITES(MX_NEW_PARAMETER_)) {             \
        {

#define MX_CELL                                                                                              \
    _Static_assert(MX_FORM != MX_STAGGERED,                                                                  \
                   "the form MX_STAGGERED uses MX_CELL_B and MX_CELL_A instead of MX_CELL");                 \
    _Static_assert(MX_STAGES == 0,                                                                           \
                   "a kernel with MX_STAGES uses MX_CELL_1, MX_CELL_2 and so on instead of MX_CELL");        \
    MX_CELLS_(mx_row_, mx_span_, mx_cell_, MX_STATE, MX_STATE)
#define MX_CELL_B                                                                                            \
    _Static_assert(MX_FORM == MX_STAGGERED, "MX_CELL_B needs #define MX_FORM MX_STAGGERED");                 \
    MX_CELLS_(mx_row_b_, mx_span_b_, mx_cell_b_, MX_STATE, MX_PARTNER)
#define MX_CELL_A                                                                                            \
    _Static_assert(MX_FORM == MX_STAGGERED, "MX_CELL_A needs #define MX_FORM MX_STAGGERED");                 \
    MX_CELLS_(mx_row_a_, mx_span_a_, mx_cell_a_, MX_PARTNER, MX_STATE)
#define MX_STAGE_(i)                                                                                         \
    _Static_assert(MX_STAGES >= i, "MX_CELL_" #i " needs #define MX_STAGES " #i ", or more");                \
    MX_CELLS_(mx_row_##i##_, mx_span_##i##_, mx_cell_##i##_, MX_STATE, MX_STATE)
#define MX_CELL_1 MX_STAGE_(1)
#define MX_CELL_2 MX_STAGE_(2)
#define MX_CELL_3 MX_STAGE_(3)
#define MX_CELL_4 MX_STAGE_(4)
#define MX_CELL_5 MX_STAGE_(5)
#define MX_CELL_6 MX_STAGE_(6)
#define MX_CELL_7 MX_STAGE_(7)
#define MX_CELL_8 MX_STAGE_(8)
#define MX_CELL_9 MX_STAGE_(9)
#define MX_CELL_10 MX_STAGE_(10)
#define MX_CELL_11 MX_STAGE_(11)
#define MX_CELL_12 MX_STAGE_(12)
#define MX_CELL_13 MX_STAGE_(13)
#define MX_CELL_14 MX_STAGE_(14)
#define MX_CELL_15 MX_STAGE_(15)
#define MX_CELL_16 MX_STAGE_(16)
#define MX_END                                                                                               \
    }                                                                                                        \
    }

/* A reduction is a loop over x of its own, which computes a value for each cell. */
#define MX_REDUCE_(name, READS)                                                                              \
    _Static_assert(mx_reduce_index_##name >= 0,                                                              \
                   "MX_REDUCE(name) needs an entry of that name in MX_REDUCES");                             \
    __attribute__((noinline)) static void mx_values_##name(const struct mx_row *restrict mx_r,               \
                                                           const mx_real *restrict mx_p, int64_t mx_x0,      \
                                                           int64_t mx_x1, double *restrict mx_result);       \
    void mx_reduce_##name(const struct mx_row *mx_r, double *mx_result) {                                    \
        mx_real mx_p[mx_n_param + 1];                                                                        \
        for (int mx_i = 0; mx_i < mx_n_param; mx_i++) mx_p[mx_i] = (mx_real)mx_r->param[mx_i];               \
        for (int64_t mx_x = mx_r->x0, mx_end; mx_x < mx_r->x1; mx_x = mx_end) {                              \
            mx_end = mx_copies && mx_r->x1 - mx_x > MX_MOST_COPIED_ ? mx_x + MX_MOST_COPIED_ : mx_r->x1;     \
            mx_values_##name(mx_r, mx_p, mx_x, mx_end, mx_result + (mx_x - mx_r->x0));                       \
        }                                                                                                    \
    }                                                                                                        \
    __attribute__((noinline)) static void mx_values_##name(const struct mx_row *restrict mx_r,               \
                                                           const mx_real *restrict mx_p, int64_t mx_x0,      \
                                                           int64_t mx_x1, double *restrict mx_result) {      \
        enum { MX_PASS_IS_(1), mx_among = 0, mx_deep = 0 MX_NO_BLOCKS_ };                                    \
        const int64_t mx_row = 0;                                                                            \
        READS(MX_READ_) MX_FIXED(MX_READ_FIXED_) MX_PARAMS(MX_PARAM_VALUE_)(void) mx_p, (void)mx_row;        \
        _Pragma("omp simd") for (int64_t mx_x = mx_x0; mx_x < mx_x1; mx_x++) {                               \
            mx_result[mx_x - mx_x0] = mx_reduce_[mx_reduce_index_##name].kind == MX_SUM   ? 0                \
                                      : mx_reduce_[mx_reduce_index_##name].kind == MX_MAX ? -HUGE_VAL        \
                                                                                          : HUGE_VAL;
/* The fields that the last level of a step reads; all stages read the same fields. */
#define MX_READS_OF_MX_JACOBI MX_STATE
#define MX_READS_OF_MX_LEAPFROG MX_STATE
#define MX_READS_OF_MX_STAGGERED MX_PARTNER
#define MX_REDUCE(name) MX_REDUCE_(name, MX_OF_(MX_READS_OF_, MX_FORM))
#define RESULT(value) ((void)(mx_result[mx_x - mx_x0] = (double)(value)))

#endif
