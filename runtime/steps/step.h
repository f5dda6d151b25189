/* SPDX-License-Identifier: BSD-3-Clause */
/* step.h - the language between schedules and the executor: what is moved and computed, in program order.
 *
 * A schedule is an iterator of steps. Their result is that of executing them one after the other. The
 * executor overlaps them as far as the regions that they touch allow (reads ahead, writes behind). So a
 * schedule determines only the order, not the time.
 */
#ifndef MX_STEP_H
#define MX_STEP_H

#include "steps/window.h"
#include "system/system.h"

/* Rows [y0,y1) x planes [z0,z1) of a Buffer, frame included (0..ny+2h, 0..nz+2h); x rows are whole. Ghost
 * layers lie beyond these ends: at y < h and z < h, down to negative numbers, and at y >= ny+h, z >= nz+h. */
struct mx_region {
    int64_t y0, y1, z0, z1;
};
static inline int64_t mx_region_rows(struct mx_region r) {
    return r.y1 > r.y0 && r.z1 > r.z0 ? (r.y1 - r.y0) * (r.z1 - r.z0) : 0;
}

/* Planes [z0,z1); empty when z0 >= z1. */
struct mx_planes {
    int64_t z0, z1;
};

enum mx_step_kind {
    MX_STEP_LOAD,    /* Buffer -> Block array (buf2blk) */
    MX_STEP_STORE,   /* Block array -> Buffer (blk2buf) */
    MX_STEP_COPY,    /* Block array -> Block array (blk2blk); rows of a plane may overlap: as memmove */
    MX_STEP_ADVANCE, /* compute (update) */
    MX_STEP_COMMIT,  /* end of a sweep: Buffer `buffer` holds level `time` of the whole grid, and a pair also
                        level `time` - 1. The executor decides whether it is made durable */
};

/* Where Buffer coordinates lie in the Block arrays: row y at plane row y + y_offset, plane z in slot (z +
 * z_offset) mod slots. */
struct mx_placement {
    int64_t y_offset, z_offset; /* z + z_offset >= 0 for every plane that has a slot */
};

/* A schedule knows two Buffers, 0 and 1: a sweep that reads one writes the other. If the algorithm does not
 * work in place, the executor may use three Buffers (MX_BUFFERS). The schedule's number then only says
 * whether a Buffer is read or written. The executor chooses the Buffer when it takes the step from the
 * schedule. */
enum { MX_BUFFERS = 3 };

/* The number of the DRAM array of seams, and of the side file for them. Its planes are seam slabs. */
enum { MX_SEAMS = MX_BUFFERS };

/* Field i of C: the number of its DRAM array and of its Buffer is MX_FIXED_ARRAY + i. They are loaded, never
 * stored. Regions have the same coordinates as those of A and B. For a file without a frame they contain only
 * cells that exist. What such a LOAD transfers is mx_fixed_span of each of its planes (system.h). */
enum { MX_FIXED_ARRAY = MX_SEAMS + 1 };

struct mx_step {
    enum mx_step_kind kind;
    int32_t array; /* LOAD: to (0, 1, MX_SEAMS or MX_FIXED_ARRAY + i), STORE: from (0, 1 or MX_SEAMS), COPY:
                      from (0 or 1) */
    int32_t to_array; /* COPY */
    int32_t buffer;   /* LOAD, STORE: 0, 1, MX_SEAMS or MX_FIXED_ARRAY + i; COMMIT: 0 or 1. In the executor
                         0..2,   MX_SEAMS or MX_FIXED_ARRAY + i */
    int32_t part; /* LOAD, STORE with shape.pairs: Buffer `buffer` is a pair of Buffers; part 0 holds array A
                     (even levels of the run), part 1 array B. Block array 0 may be filled from either part,
                     which changes from sweep to sweep. In place `buffer` is 0. Without pairs `part` is 0 */
    struct mx_region region; /* LOAD, STORE, COPY. ADVANCE: everything it may touch (read or write), z range
                                exact, frames that copy what it writes included (engine/after.h) */
    struct mx_region block;  /* ADVANCE: the region that the Block arrays hold; all zero: mapped Buffers */
    /* LOAD, STORE: row y and plane z of the region are row y + buffer_y and plane z + buffer_z of the Buffer.
     * They are not 0 for ghost layers, which are read from the other end, and for frames that are stored as
     * copies of the other end (schedule/ends.h) */
    int64_t buffer_y, buffer_z;
    /* LOAD of A or B: 0, or for ghost layers that a neighbour has sent 1 = the neighbour at end 0 of z, 2 =
     * at end 1. last_given: this is the last LOAD of that message in this sweep. */
    int32_t neighbour;
    bool last_given;
    /* STORE, COMMIT: planes at each end of the state at the end of this sweep that a neighbour's next sweep
     * needs; 0 = none */
    int64_t next_given;
    struct mx_placement at; /* LOAD, STORE, ADVANCE; COPY: from */
    struct mx_placement to; /* COPY */
    bool frame; /* COPY: constant frame for the other array, same placement; not a hand-over between Blocks */
    bool whole_planes; /* LOAD, STORE: the region has all rows, and the transfer covers plane_pitch of every
                          plane, padding included */
    /* ADVANCE. Per array: planes that are written, and planes that are read or written (seams included).
     * Other planes of `region` are not touched: a STORE of planes that were just finished need not end first.
     */
    struct mx_planes writes[2], touches[2];
    struct mx_planes
        fixed; /* ADVANCE: planes of C that are read, the same for every field; empty without C */
    int32_t parity, levels;
    int64_t first_level; /* ADVANCE: as in mx_advance */
    /* [levels]; owned by the schedule, valid until the next call of `next`. Steps of the same `pass` (from 1)
     * have the same windows, and the same tables of seams; the front selects what this step computes. */
    const struct mx_window *window;
    int64_t pass;
    struct mx_front front;
    int32_t first, end; /* as in mx_advance, but end is never 0 */
    /* stream with strips: slots of the array of seams that are read / written; -1 = none. A seam slab holds
     * shape.max_levels * shape.seam_planes * shape.seam_rows rows, and slot f starts at row f times that
     * number. The first levels * seam_planes * seam_rows rows of it count. The layout is that of struct
     * mx_seam with the tables below: [levels + 1], same lifetime as window, planes before the front cuts
     * them. */
    int64_t seam_in, seam_out;
    const int32_t *seam_z, *seam_nz, *seam_in_y, *seam_in_n, *seam_out_y, *seam_out_n;
    /* COMMIT: the levels done, a multiple of mx_levels_a_step. STORE of a sweep that may store before its
     * first ADVANCE (if slabs are not deeper than the frame): the levels that will be done when the sweep
     * ends. Else 0. */
    int64_t time;
};

/* Returns what an ADVANCE computes as level l+1 of its levels. */
static inline struct mx_window mx_step_window(const struct mx_step *s, int32_t l) {
    return mx_front_window(&s->front, s->window, l);
}

/* Returns the part of the Buffer that a LOAD or STORE transfers. */
static inline struct mx_region mx_step_in_buffer(const struct mx_step *s) {
    return (struct mx_region){s->region.y0 + s->buffer_y, s->region.y1 + s->buffer_y,
                              s->region.z0 + s->buffer_z, s->region.z1 + s->buffer_z};
}

/* What a schedule needs and moves. rows: the Block arrays' rows per plane; slots: planes of each array. */
struct mx_shape {
    int64_t rows, slots[2]; /* 0 rows: works on the mapped Buffers, no Block arrays */
    int64_t fixed_slots;    /* planes of the DRAM array of every field of C, `rows` rows each
                               (mx_fixed_slot_bytes); 0 = no C, or mapped */
    bool pairs;             /* a Buffer is a pair of Buffers: the form reads the old value */
    bool ghost[3];      /* [MX_DIM_Y], [MX_DIM_Z]: the periodic dimension has ghost layers, so that nothing
                           copies its frame in DRAM (mx_after.ghost) */
    bool whole_planes;  /* transfers are whole planes: planes need the device's alignment, rows do not */
    bool in_place;      /* both Buffers, or the one pair, are rewritten in place: an interrupted run cannot be
                           resumed */
    bool init_both;     /* every Buffer (or pair, with both arrays) must hold the initial grid; else only the
                           first source */
    int64_t max_levels; /* largest levels of an ADVANCE */
    bool by_twos; /* an engine may compute two levels at a time, from either array to the other: it then reads
                     2h planes around a window */
    int64_t seam_slabs, seam_rows, seam_planes; /* stream with strips; see struct mx_step. seam_planes: per
                                                   level. 0 = no seams */
    int64_t given[2];   /* planes of each live array that are exchanged with the neighbour at this end of z
                           before the longest sweep; DRAM has room for them. 0 = there is no neighbour */
    int64_t seam_slots; /* slabs of the array of seams: seam_slabs; with a side file (of seam_slabs slabs)
                           only those in use, read ahead and written behind */
    bool seams_in_file;
};

struct mx_schedule; /* an open iterator */
struct mx_schedule_ops {
    /* 1 = *step is the next step, 0 = end, -errno. */
    int (*next)(struct mx_schedule *schedule, struct mx_step *step);
    void (*close)(struct mx_schedule *schedule);
};
struct mx_schedule {
    const struct mx_schedule_ops *ops;
    struct mx_shape shape;
    int64_t first_given; /* next_given of the state that the first sweep begins with */
};

#endif
