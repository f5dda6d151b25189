/* SPDX-License-Identifier: BSD-3-Clause */
/* system.h - what is computed: a system of fields in a pair of arrays, and the problem that contains it.
 *
 * The pair. A system always has two arrays, A and B, and up to MX_MAX_FIXED fields C that are only read. One
 * level computes one array from the neighbourhood (radius h) of the other, from C (radius hc), and, where the
 * form says so, from the old value of the cell that it replaces. The roles alternate: level 0 reads A and
 * writes B, level 1 reads B and writes A, and so on.
 *
 *   form       a step is  array written           old value read  state after nt steps
 *   jacobi     1 level    new state               no              array nt & 1
 *              n stages                                           array n nt & 1
 *   leapfrog   1 level    u(t+1) over u(t-1)      yes             array nt & 1; in the other the step before
 *   staggered  2 levels   B from A, then A from B yes             A and B
 *
 * Levels of a step. A step of form jacobi may have several stages, each a level with a cell of its own.
 * mx_levels_a_step alone says how many levels a step has, of staggered systems too. Stages before the last
 * one are not states: states are looked at, changed and stored only at ends of steps.
 *
 * If the old value is read, both arrays are live: both are loaded and both are stored.
 *
 * Rows. Every row holds the fields of an array side by side: field 0's cells, then field 1's, each padded to
 * a cache line. Each field has a type of its own. All fields of A, B and C have frames of h cells. A built-in
 * stencil is the special case of one field, form jacobi and no C; problem.system is NULL then.
 */
#ifndef MX_SYSTEM_H
#define MX_SYSTEM_H

#include <memext/cell.h>
#include <memext/memext.h>

/* Types of cells, of fields of every kind. Built-in stencils compute only f64 and f32. */
enum mx_dtype { MX_F64, MX_F32, MX_U8, MX_U16, MX_I16, MX_I8, MX_I32, MX_U32, MX_I64, MX_U64 };
enum { MX_DTYPES = MX_U64 + 1 };
#define MX_DTYPE_NAMES "f64, f32, u8, i8, u16, i16, u32, i32, u64 or i64"
int64_t mx_dtype_bytes(enum mx_dtype dtype);
const char *mx_dtype_name(enum mx_dtype dtype); /* "f64" "f32" "u8" ... */
bool mx_dtype_find(const char *name, enum mx_dtype *out);
static inline bool mx_dtype_is_real(enum mx_dtype dtype) { return dtype == MX_F64 || dtype == MX_F32; }
bool mx_dtype_is_signed(enum mx_dtype dtype);
/* The least and the greatest integer that a cell of this type can hold and a double represents exactly; of
 * floating-point types the least and the greatest finite number. */
double mx_dtype_lowest(enum mx_dtype dtype);
double mx_dtype_highest(enum mx_dtype dtype);
/* Returns cell x of a row as a double; a 64-bit integer becomes the nearest double. A cell may lie at any
 * address. */
double mx_cell_load(enum mx_dtype dtype, const void *row, int64_t x);
/* Stores a number as SET does (cell.h): rounded in a float; in an integer truncated, or the nearest integer
 * if it does not fit, and 0 for NaN. */
void mx_cell_store(enum mx_dtype dtype, void *row, int64_t x, double value);
/* Adds a number to cell x. 64-bit integers beyond 2^53 are not rounded (cell.h). */
void mx_cell_add(enum mx_dtype dtype, void *row, int64_t x, double more);

#define MX_MAX_HALO 8
#define MX_MAX_DEEP 4 /* planes of a call of a row function */
enum { MX_MAX_FIELDS = 32, MX_MAX_FIXED = 32, MX_MAX_PARAMS = 64, MX_MAX_REDUCES = 16, MX_FIELD_NAME = 24 };
enum { MX_MAX_SERIES = 8, MX_MAX_STAGES = 16 };

struct mx_field_of {
    char name[MX_FIELD_NAME];
    enum mx_dtype dtype;
};

/* A sum, maximum or minimum of an expression over all cells (MX_REDUCE of a kernel). `value` writes its
 * values in cells [r->x0,r->x1) of one row (r->rows is 1, r->out NULL) to value[0 ..]. It reads the fields
 * that the level mx_reduced_level of a step reads. */
struct mx_reduce {
    char name[MX_FIELD_NAME];
    int32_t kind; /* MX_SUM, MX_MAX, MX_MIN of cell.h */
    void (*value)(const struct mx_row *r, double *value);
};

/* A parameter over time: PARAM is value[t] in cells that are computed from step t, or value[t * each + i] in
 * level i of that step. */
struct mx_series {
    int32_t param; /* which */
    int32_t each;  /* values of a step: 0 or 1 = one value for all its levels, else one for each level */
    int64_t n;     /* steps with values, >= the run's steps */
    double *value;
    char *path;
};

/* A read-only field (of C) that is constant along axes, and that DRAM holds whole (profile.h). */
struct mx_profile {
    uint8_t
        alike; /* 1 << MX_DIM_X and so on: the axes along which its cells are constant; 0 = not a profile */
    int64_t row_pitch_bytes, plane_pitch_bytes; /* 0 if it is constant along y, along z */
    int64_t first_bytes; /* offset of row 0 of plane 0 of the whole grid, frame counted */
    int64_t bytes;
    char *memory; /* NULL: not read (yet). Whoever opened the kernel frees it */
};

struct mx_system {
    char name[64];
    int32_t form;       /* MX_JACOBI, MX_LEAPFROG, MX_STAGGERED of cell.h */
    int32_t h, hc;      /* radius in the state, 1..MX_MAX_HALO; in C, 0..h */
    bool flat;          /* it computes grids of two dimensions (struct mx_problem) */
    int32_t n_field[2]; /* fields of A and of B; the same numbers unless staggered */
    int32_t n_fixed, n_param;
    struct mx_field_of field[2][MX_MAX_FIELDS], fixed[MX_MAX_FIXED];
    char param_name[MX_MAX_PARAMS][MX_FIELD_NAME];
    double param[MX_MAX_PARAMS]; /* the values of this run; of a series the first one */
    int32_t n_series;
    struct mx_series series[MX_MAX_SERIES]; /* freed by whoever opened the kernel */
    int32_t stages;                         /* form jacobi: levels of a step; 0 or 1 = one level */
    void (*row[MX_MAX_STAGES])(const struct mx_row *r); /* what the levels of a step compute (mx_row_of);
                                                           staggered: B from A, then A from B */
    int32_t deep_planes; /* planes of a call of a function in `deep`; 0 or 1: there are none */
    void (*deep[MX_MAX_STAGES])(const struct mx_row *r); /* like `row`, for several planes (struct
                                                            mx_deep_kernel of cell.h) */
    struct mx_profile profile[MX_MAX_FIXED]; /* of the fields of C that are profiles in this run */
    uint64_t identity;                       /* of the kernel's source text: XXH3-64 */
    double cell_ns; /* a step of a cell on one core, in tiles, measured after compilation; 0 = not measured */
    int32_t n_reduce;
    struct mx_reduce reduce[MX_MAX_REDUCES];
    const char *text; /* that source text, for the compilers of accelerators; NULL = a .so of the user */
};

/* What the frame holds at either end of every dimension (sides.h explains the kinds). All zero: fixed
 * everywhere. `some` and `field` count only at ends with MX_SIDE_SEVERAL, and are 0 elsewhere. */
struct mx_sides {
    uint8_t side[3][2]; /* [MX_DIM_X..Z][end]: enum mx_side of all fields, or MX_SIDE_SEVERAL */
    uint8_t some[3][2]; /* bit k: some field has kind k */
    uint8_t field[2][MX_MAX_FIELDS][3][2]; /* of array A (0) and B (1) */
};

struct mx_problem {
    int64_t nx, ny, nz; /* interior cells, >= 1 */
    int64_t nt;         /* time steps, >= 0, each of mx_levels_a_step levels */
    int32_t h;          /* halo = radius of the stencil, 1..MX_MAX_HALO */
    bool flat; /* two dimensions: ny is 1 and y has no frame (mx_halo_y). The user's y is z here, so that rows
                  are planes, and work plane by plane needs DRAM only for a row */
    enum mx_dtype dtype; /* type of the built-in stencil's field; in a system that of A's first field */
    char stencil[16];    /* "star7" "edge19" "box27" "star13" ...; "" with a system */
    double coef[4];      /* centre, face, edge, corner; of built-in stencils */
    const struct mx_system *system; /* NULL: a built-in stencil. Not owned: outlives the problem */
    struct mx_sides sides;
    int64_t due[2]; /* sweeps end at all multiples of these steps; 0 = none. [0]: checks, [1]: snapshots */
    int64_t done;   /* of a resumed run the steps before the first of these nt steps: multiples count from the
                       run's beginning */
    /* A rank has planes first_plane to first_plane + nz - 1 of a grid of all_nz planes. At an end of z where
     * another rank's planes follow, its side is MX_SIDE_NEIGHBOUR (sides.h). all_nz 0: the grid is whole. */
    int64_t first_plane, all_nz;
    /* On a trial (tune/trial.h) kernels see steps 0 to trial_nt - 1, however many levels are computed. 0: no
     * trial. */
    int64_t trial_nt;
    int64_t least_nz; /* planes of the rank with the fewest planes: the most that a neighbour can send */
};

/* Writes the names of the parameters, separated by commas, to out; "..." stands for those without room.
 * Returns out. */
const char *mx_param_names(const struct mx_system *s, char *out, size_t capacity);
/* Returns the series of a parameter; NULL = the parameter is one number. */
static inline const struct mx_series *mx_series_of(const struct mx_system *s, int32_t param) {
    for (int32_t i = 0; i < s->n_series; i++)
        if (s->series[i].param == param) return &s->series[i];
    return NULL;
}

/* Levels of a step. */
static inline int64_t mx_system_levels(const struct mx_system *s) {
    return s->form == MX_STAGGERED ? 2 : s->stages > 1 ? s->stages : 1;
}
/* Returns how many arrays hold the state at the end of a step. */
static inline int mx_system_states(const struct mx_system *s) { return s->form == MX_STAGGERED ? 2 : 1; }
/* Returns the row function of level `level` of the run. */
static inline void (*mx_row_of(const struct mx_system *s, int64_t level))(const struct mx_row *) {
    return s->row[level % mx_system_levels(s)];
}
/* Returns the function that computes `planes` planes of level `level` in a call: 1, or deep_planes. */
static inline void (*mx_planes_of(const struct mx_system *s, int64_t level,
                                  int64_t planes))(const struct mx_row *) {
    return planes > 1 ? s->deep[level % mx_system_levels(s)] : mx_row_of(s, level);
}
/* Returns how many planes the next call computes, if `left` planes are left. */
static inline int64_t mx_planes_of_call(const struct mx_system *s, int64_t left) {
    return s->deep_planes > 1 && left >= s->deep_planes ? s->deep_planes : 1;
}
/* Returns the level of a step that reads what reductions read; of several stages the first one. */
static inline int64_t mx_reduced_level(const struct mx_system *s) { return s->form == MX_STAGGERED; }

/* Values of a step; and the value for level `of_step` of step `step`. */
static inline int64_t mx_series_each(const struct mx_series *q) { return q->each > 1 ? q->each : 1; }
static inline double mx_series_at(const struct mx_series *q, int64_t step, int64_t of_step) {
    return q->value[(step < q->n ? step : q->n - 1) * mx_series_each(q) + (q->each > 1 ? of_step : 0)];
}

/* Returns the parameters of the cells that level `level` of the run computes: those of the system, or `room`
 * [MX_MAX_PARAMS], filled with the values of that time if some parameters are given over time. */
static inline const double *mx_params_at(const struct mx_system *s, int64_t level, double *room) {
    if (s->n_series == 0) return s->param;
    const int64_t levels = mx_system_levels(s);
    for (int32_t i = 0; i < s->n_param; i++) room[i] = s->param[i];
    for (int32_t i = 0; i < s->n_series; i++)
        room[s->series[i].param] = mx_series_at(&s->series[i], level / levels, level % levels);
    return room;
}

/* Returns the cells of the frame at either end of y. Those of x and z are p->h. */
static inline int32_t mx_halo_y(const struct mx_problem *p) { return p->flat ? 0 : p->h; }
/* Returns how far a row reads fields of C in y. */
static inline int32_t mx_reach_y_of_fixed(const struct mx_problem *p) {
    return p->flat || p->system == NULL ? 0 : p->system->hc;
}

/* Returns the user's word for a plane: in two dimensions it is a row. */
static inline const char *mx_plane_word(bool flat) { return flat ? "row" : "plane"; }

/* Writes the extents of the whole grid as the user has them: "nx x ny x nz", in two dimensions "nx x ny".
 * Returns text. */
enum { MX_EXTENTS_TEXT = 72 };
const char *mx_extents_text(const struct mx_problem *problem, char text[MX_EXTENTS_TEXT]);
/* Writes "4 rows by 5 planes", in two dimensions "5 rows". Returns text. */
enum { MX_BLOCK_TEXT = 64 };
const char *mx_block_text(const struct mx_problem *problem, int64_t rows, int64_t planes,
                          char text[MX_BLOCK_TEXT]);

static inline bool mx_is_cut(const struct mx_problem *p) { return p->all_nz > 0; }
static inline int64_t mx_all_planes(const struct mx_problem *p) { return p->all_nz > 0 ? p->all_nz : p->nz; }

static inline int mx_form(const struct mx_problem *p) {
    return p->system != NULL ? p->system->form : MX_JACOBI;
}
/* Is the old value of a replaced cell read, so that both arrays are live? */
static inline bool mx_reads_old(const struct mx_problem *p) { return mx_form(p) != MX_JACOBI; }
static inline int64_t mx_levels_a_step(const struct mx_problem *p) {
    return p->system != NULL ? mx_system_levels(p->system) : 1;
}
static inline int mx_states(const struct mx_problem *p) {
    return p->system != NULL ? mx_system_states(p->system) : 1;
}
/* Does a step have levels that are not states? */
static inline bool mx_has_stages(const struct mx_problem *p) { return mx_levels_a_step(p) > mx_states(p); }
/* May two levels be computed at once? They must have the same function and read no old values. Grids of two
 * dimensions do not use this. */
static inline bool mx_takes_two_levels(const struct mx_problem *p) {
    return mx_form(p) == MX_JACOBI && !mx_has_stages(p) && !p->flat;
}
/* Returns the levels of `steps` steps. Everything below the run library (schedules, engines, bt) counts
 * levels. */
static inline int64_t mx_levels_of(const struct mx_problem *p, int64_t steps) {
    return steps * mx_levels_a_step(p);
}
static inline int32_t mx_fixed_count(const struct mx_problem *p) {
    return p->system != NULL ? p->system->n_fixed : 0;
}
/* Is a field of C a profile? DRAM holds a profile whole from the beginning, so no Buffer or Block has it. */
static inline bool mx_is_profile(const struct mx_problem *p, int32_t field) {
    return p->system->profile[field].alike != 0;
}
/* Returns how many fields of C are loaded: those that are not profiles. */
int32_t mx_loaded_count(const struct mx_problem *problem);
/* Fields of array A (0) or B (1), and the type of one. */
static inline int32_t mx_field_count(const struct mx_problem *p, int array) {
    return p->system != NULL ? p->system->n_field[array] : 1;
}
static inline enum mx_dtype mx_field_dtype(const struct mx_problem *p, int array, int32_t field) {
    return p->system != NULL ? p->system->field[array][field].dtype : p->dtype;
}

/* Computes where the fields of array A (0) or B (1) begin in a row. Each field takes its cells, frame
 * counted, padded to a cache line, and one line more if that were a multiple of a page. Returns the bytes up
 * to the end of the last field's cells. offset_bytes: [mx_field_count], may be NULL. */
int64_t mx_field_offsets(const struct mx_problem *problem, int array, int64_t *offset_bytes);

/* How one field of C lies in a Buffer of its own, or in a file of the user (read in place). For a profile
 * everything except user_file is 0. Row y of plane z, frame counted, begins with cell 0 of the frame at
 * offset_bytes + z * plane_pitch_bytes + y * row_pitch_bytes. For a file without a frame, offset_bytes is
 * less by the bytes of the missing frame, and only interior cells exist. */
struct mx_fixed_layout {
    int64_t row_bytes; /* (nx+2h) * element, or nx * element without a frame */
    int64_t row_pitch_bytes, plane_pitch_bytes;
    int64_t offset_bytes;
    int64_t bytes;        /* of the Buffer or file */
    int64_t lead_bytes;   /* of a row before its first cell that exists: 0; h * element without a frame */
    int32_t frame;        /* cells of the frame that exist: h or 0 */
    bool user_file;       /* a file of the user, read in place: needs no space on the run's device */
    uint32_t align_bytes; /* alignment of transfers; a plane in DRAM begins at its file offset modulo this */
};

/* Computes what a LOAD of rows [y0,y1) of plane z of a field of C transfers, and CalcTrans counts: from the
 * first existing cell of row y0 to the last one of row y1-1, widened to multiples of align_bytes. Every plane
 * is a transfer of its own, even if the next one follows without a gap. In DRAM, the byte at offset o of the
 * file is at o - (a - a mod align) of the plane's slot. There a = offset_bytes + z * plane_pitch_bytes + r *
 * row_pitch_bytes, and r is the Buffer row in row 0 of the slot (it may be negative). */
void mx_fixed_span(const struct mx_fixed_layout *fixed, int64_t z, int64_t y0, int64_t y1,
                   uint64_t *offset_bytes, uint64_t *bytes);
/* Returns the sum of these bytes over planes [z0,z1), in O(log) time; 0 if the range is empty. */
int64_t mx_fixed_span_sum(const struct mx_fixed_layout *fixed, int64_t z0, int64_t z1, int64_t y0,
                          int64_t y1);
/* Returns the bytes of a slot in DRAM with room for `rows` rows of any plane, a multiple of align_bytes. 0 if
 * the layout has no such field (row_pitch_bytes 0). */
int64_t mx_fixed_slot_bytes(const struct mx_fixed_layout *fixed, int64_t rows);

/* Return the bytes of one cell, of all fields: of array A (0) or B (1); of C without profiles. */
int64_t mx_cell_bytes(const struct mx_problem *problem, int array);
int64_t mx_fixed_cell_bytes(const struct mx_problem *problem);
/* Returns the bytes that a step of one cell reads and writes: each level reads one array, writes the other,
 * reads C, and reads what it writes if the form says so. 16 for a built-in stencil in f64. */
int64_t mx_step_bytes(const struct mx_problem *problem);

/* floor((a*i + b) / m) summed over i = 0..n-1; n, a, b >= 0, m > 0. O(log). */
int64_t mx_floor_sum(int64_t n, int64_t m, int64_t a, int64_t b);

/* How a Buffer lies on the device: rows of x at a fixed pitch, planes of y rows at a fixed pitch, frame
 * included. A and B have the same pitches: the longer one's. */
struct mx_layout {
    int64_t rows, planes; /* ny+2h, of two dimensions 1; nz+2h */
    int64_t row_bytes;    /* of the array with longer rows: end of its last field; with one field: (nx+2h) *
                             element */
    int64_t row_pitch_bytes;   /* >= row_bytes */
    int64_t plane_pitch_bytes; /* >= rows * row_pitch_bytes */
    int64_t buffer_bytes;      /* planes * plane_pitch_bytes */
    bool packed;               /* planes of Blocks follow one another without a gap, as the papers count */
    int64_t field_offset_bytes[2][MX_MAX_FIELDS]; /* of cell 0 of each field in a row of A, of B */
    struct mx_fixed_layout fixed[MX_MAX_FIXED];   /* [mx_fixed_count] */
};

struct mx_plan {
    char algorithm[20]; /* a name of the algorithm table */
    char engine[12];    /* "iblock", "tiled" or "device" */
    char tuner[12];     /* what made it: "manual" "naive" "blk" */
    int64_t by, bz, bt; /* Block size in rows, planes, levels (bx = nx). stream: by = strip height (ny = no
                           strips), bz = nz. bt is a multiple of mx_levels_a_step */
    int64_t iy, iz;     /* iBlock size in rows and planes (ix = nx); 0 = the engine's choice */
    int64_t slab;       /* planes that one ADVANCE step moves on; 0 = the engine's choice */
    int64_t tile, ct;   /* tiled engine: rows of a tile, levels of a chunk; 0 = the engine's choice */
    int64_t column; /* tiled engine: cells in x of a tile, nx or more = whole rows; 0 = the engine's choice */
    int64_t ahead;  /* slabs that are read ahead (and written behind); 0 = 2 */
    char seams[12]; /* stream with strips: where the seams between strips are kept, "dram" or "side-file" (a
                       third Buffer). "" = no strips, or the tuner chooses; a schedule treats "" as "dram" */
    int32_t threads; /* 0 = all cores allowed to the process */
    bool in_place;   /* forms that read the old value: one pair of Buffers, not resumable. stream only; the
                        skewed and direct algorithms rewrite their Buffers anyway */
};

#endif
