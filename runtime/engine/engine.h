/* SPDX-License-Identifier: BSD-3-Clause */
/* engine.h - engines advance regions of DRAM by k levels. An engine knows nothing of storage.
 *
 * A view is the pair of DRAM arrays of a problem, addressed in Buffer coordinates (rows 0..ny+2h,
 * planes 0..nz+2h, frame included; ghost layers lie beyond). Level l of a call reads array (parity+l)&1 and
 * writes array (parity+l+1)&1. Windows are such that a level reads, of array (parity+l)&1, only what level l
 * wrote, what was loaded as level l of an earlier call, and the frame; where the form reads the old value, of
 * the cells that it writes also what stands there: level l-2.
 *
 * After a call both arrays are as if the levels had been done one after the other, except for used-up cells.
 * A cell of a level before the last is used up if it and all its neighbours lie in the next level's window.
 * Nothing needs it any more, and an engine need not write it. If the form reads the old value, no cell is
 * used up: every level is written, except for the x frame.
 *
 * Calls are asynchronous. The result is as if they were done one after the other, in the order of posting. An
 * engine decides which part of a call can begin while earlier calls still run. It does not see that planes of
 * different z share a slot of a ring. So two calls may be under way together only if all planes that they
 * touch have slots of their own.
 */
#ifndef MX_ENGINE_H
#define MX_ENGINE_H

#include "machine/machine.h"
#include "steps/window.h"
#include "system/system.h"

/* Cell (0, y, z) of array p stands at base[p] + ((z + z_offset) mod slots[p]) * plane_pitch + (y + y_offset)
 * * row_pitch. z + z_offset >= 0 always. slots[p] planes make a ring; for a whole array slots = planes and
 * nothing wraps. */
struct mx_view {
    char *base[2];
    int64_t slots[2];
    int64_t plane_pitch_bytes, row_pitch_bytes;
    int64_t y_offset, z_offset;
    const struct mx_fixed_view *fixed; /* [mx_fixed_count]: the fields of C; NULL = none */
};

/* One read-only field (of C) in DRAM, with the view's offsets. Plane z is in slot (z + z_offset) mod slots.
 * Its row y, frame counted, begins at
 *
 *     base + slot * slot_pitch + ((offset + z*file_plane_pitch + y0*row_pitch) mod align) + (y - y0) *
 * row_pitch
 *
 * with y0 = -y_offset. Before a plane its slot may hold bytes of the file that had to be transferred with it.
 * In a Buffer of the run there are none. In a mapped Buffer slots are planes, align is 1, and slot_pitch is
 * the plane pitch of the file. */
struct mx_fixed_view {
    char *base;
    int64_t slots, slot_pitch_bytes, row_pitch_bytes;
    int64_t offset_bytes, file_plane_pitch_bytes, align_bytes; /* as in mx_fixed_layout */
    /* Ghost plane z is plane first + (z - first) mod period of the file; period 0 = no ghost planes */
    int64_t first_plane, period_planes;
};

/* A profile (system/profile.h) has slots 0. Its row y of plane z begins at
 *
 *     base + offset + z * file_plane_pitch + y * row_pitch
 *
 * Both pitches may be 0. */
static inline bool mx_view_is_profile(const struct mx_fixed_view *f) { return f->slots == 0; }
/* Returns the view of field i of C, which is a profile, for a rank's problem. base: where its memory begins.
 */
struct mx_fixed_view mx_view_of_profile(const struct mx_problem *problem, int32_t i, char *base);

static inline int64_t mx_view_fixed_plane(const struct mx_fixed_view *f, int64_t z) {
    const int64_t n = f->period_planes, i = z - f->first_plane;
    return n == 0 || (i >= 0 && i < n) ? z : f->first_plane + (i % n + n) % n;
}

static inline const char *mx_view_fixed_row(const struct mx_view *view, int32_t field, int64_t y, int64_t z) {
    const struct mx_fixed_view *f = &view->fixed[field];
    if (mx_view_is_profile(f))
        return f->base + f->offset_bytes + mx_view_fixed_plane(f, z) * f->file_plane_pitch_bytes +
               y * f->row_pitch_bytes;
    const int64_t slot = (z + view->z_offset) % f->slots, y0 = -view->y_offset;
    const int64_t at =
        f->offset_bytes + mx_view_fixed_plane(f, z) * f->file_plane_pitch_bytes + y0 * f->row_pitch_bytes;
    const int64_t shift = ((at % f->align_bytes) + f->align_bytes) % f->align_bytes;
    return f->base + slot * f->slot_pitch_bytes + shift + (y - y0) * f->row_pitch_bytes;
}

struct mx_after;   /* engine/after.h */
struct mx_finding; /* system/finite.h */

struct mx_advance {
    struct mx_view view;
    int64_t first_level; /* the level of the run, from 0, that this call computes first, from its own level 0.
                            The parity of a run's level selects the row function and the array whose fields
                            are read. A level belongs to step level / mx_levels_a_step */
    int32_t parity;      /* array that holds level 0 of this call */
    int32_t levels;      /* >= 1 */
    const struct mx_window
        *window; /* [levels]: what level l+1 computes. Windows of successive levels allow execution in the
                    order of levels, and shift by at most h per level towards lower z at the upper end */
    struct mx_front front; /* cuts the windows, and likewise the seams */
    int32_t first, end;    /* only windows first to end - 1 may have planes and seams; end 0: all windows */
    struct mx_seam seam_in, seam_out; /* stream with strips; zeroed otherwise */
    /* NULL, or it receives the interior cells that are not finite in the state with which the call ends: of
     * its last level (of a staggered system its last two), after `after` was done. The engine "device"
     * ignores it. */
    struct mx_finding *finding;
    const struct mx_after *after; /* what happens to rows that a level has written; its levels count like
                                     first_level; NULL = nothing */
};

static inline struct mx_window mx_window_at(const struct mx_advance *a, int32_t l) {
    return mx_front_window(&a->front, a->window, l);
}
static inline int32_t mx_advance_end(const struct mx_advance *a) { return a->end > 0 ? a->end : a->levels; }

struct mx_engine_options {
    const struct mx_problem *problem;
    const struct mx_machine *machine; /* cache sizes */
    int64_t row_pitch_bytes;
    int32_t threads;                        /* >= 1 */
    int64_t iy, iz, slab, tile, ct, column; /* as in mx_plan, 0 = choose */
    int64_t levels, rows, planes;           /* hints: the most levels, rows and planes of a call */
    double updates_per_s;   /* expected of all threads together, for efficiency(); 0 = a rate as star7's */
    struct mx_accel *accel; /* engine "device": the accelerator whose memory the views address; else NULL */
};

typedef struct mx_engine mx_engine;

struct mx_engine_ops {
    const char *name, *summary;
    /* Returns the planes by which one ADVANCE of a z-pipelined schedule should move on; pure. */
    int64_t (*slab)(const struct mx_engine_options *options);
    /* Returns the update rate with this slab and these levels as a share, 0 to 1, of the rate with the
     * engine's own slab and many levels; pure. */
    double (*efficiency)(const struct mx_engine_options *options);
    int (*create)(const struct mx_engine_options *options, mx_why *why, mx_engine **out);
    /* Hands over a call and returns its number: 1, 2, 3... The tables of windows and seams must stay valid
     * until the call is done. It blocks while too many calls are under way (some engines: until this one is
     * done). One thread posts calls and waits for them. */
    int64_t (*post)(mx_engine *engine, const struct mx_advance *advance);
    int64_t (*done)(mx_engine *engine);              /* returns how many calls are done, in order */
    void (*wait)(mx_engine *engine, int64_t number); /* waits until call `number` is done */
    void (*free)(mx_engine *engine);                 /* call it when every call is done */
    /* Fills the fields of the plan that were 0 with what the engine chose. */
    void (*describe)(const mx_engine *engine, struct mx_plan *plan);
};

static inline void mx_engine_advance(const struct mx_engine_ops *ops, mx_engine *engine,
                                     const struct mx_advance *advance) {
    ops->wait(engine, ops->post(engine, advance));
}

extern const struct mx_engine_ops *const mx_engines[]; /* NULL-terminated */
const struct mx_engine_ops *mx_engine_find(const char *name);

#endif
