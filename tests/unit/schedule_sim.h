/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule_sim.h - schedules interpreted, step by step, and compared with the plain loop. */
#ifndef MX_TEST_SCHEDULE_SIM_H
#define MX_TEST_SCHEDULE_SIM_H

#include "effort.h"
#include "grid/grid.h"
#include "schedule/geometry.h"
#include "schedule/schedule.h"
#include "system/sides.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PITCH = 64, PLANE_PAD = 192 };

struct field {
    double *v;
    int64_t rows, planes;
};

/* The stencil touches the axes and the corners of its box, as box27 does. */
typedef double *at_fn(void *context, int64_t y, int64_t z);

enum { HISTORY = 4096, RINGS = 3 }; /* two arrays, and C */

struct touched { /* by a step, of each array, as planes of the endless row */
    struct mx_planes touches[RINGS], writes[RINGS];
    int64_t group;                                    /* LOADs, STOREs: which front's */
    int64_t advances;                                 /* before it */
    int64_t loads, stores, load_groups, store_groups; /* steps before it */
};

struct sim {
    const struct mx_algorithm *algorithm;
    const struct mx_problem *p;
    const struct mx_plan *plan;
    struct mx_shape shape;
    struct field buffer[2][2], array[2]; /* [of a schedule][of a pair] */
    struct field reference[2];           /* [level & 1] */
    struct field fixed[MX_MAX_FIXED], fixed_array[MX_MAX_FIXED];
    struct mx_layout layout;
    struct field seams, side_file; /* array of seams; where the store is a file, that too */
    int64_t reference_time, committed;
    struct mx_traffic moved;
    int64_t slots[RINGS];
    int64_t load_groups, store_groups, last_store;
    int64_t used_rows, used_slots; /* largest position + 1 */
    /* read-ahead of stream */
    int64_t advances, n_loads, n_stores;
    struct touched load[HISTORY], store[HISTORY], advance[HISTORY];
    int64_t pass, n_slots, slot[HISTORY][2]; /* of seams, in this pass */
};

struct plane_view {
    struct sim *s;
    struct mx_placement at;
    int array;
};

struct fixed_view {
    struct sim *s;
    struct mx_placement at;
    int32_t field;
};

extern uint64_t seed_state; /* of draw */
uint64_t draw(void);
int64_t between(int64_t lo, int64_t hi);
double *cell(const struct field *f, int64_t y, int64_t z);
struct field make_field(int64_t rows, int64_t planes);
void copy_field(const struct field *to, const struct field *from);
double stencil(at_fn *at, void *context, int64_t y, int64_t z, int64_t h);
void transfer(struct sim *s, const struct mx_step *t);
void copy(struct sim *s, const struct mx_step *t);
struct mx_seam_planes seam_planes(const struct mx_step *t, int32_t level);
void advance(struct sim *s, const struct mx_step *t);
bool is_due(const struct mx_problem *p, int64_t level);
void commit(struct sim *s, const struct mx_step *t);
void note(struct sim *s, const struct mx_step *t);
/* While an ADVANCE runs, the LOADs of the next `ahead` fronts and the STOREs of the last `ahead` may be under
 * way: none of these waits for another or for the ADVANCE, nor it for them. */
void check_overlap(const struct sim *s, int64_t ahead);
void check(const struct mx_algorithm *algorithm, const struct mx_problem *p, const struct mx_plan *plan);
void random_setting(struct mx_problem *p, struct mx_plan *plan, bool one_block_y);
/* With a system of a form, with and without C. */
void make_system(struct mx_problem *p, struct mx_plan *plan, int form, struct mx_system *system);

#endif
