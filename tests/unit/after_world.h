/* SPDX-License-Identifier: BSD-3-Clause */
/* after_world.h - a small grid with everything that may happen to its rows, and the model of what does. */
#ifndef MX_TEST_AFTER_WORLD_H
#define MX_TEST_AFTER_WORLD_H

#include "engine/after.h"
#include "engine/work.h"
#include "random_sides.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <memext/backend.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FIELDS = 3, MOST_STEPS = 5, POINTS = 24, CHECKS = MOST_STEPS + 1 };

/* What a cell reads: shared by the kernel's rows and the oracle, which differ in all else. */
struct cell {
    double (*at)(const void *context, int field, int dx, int dy, int dz);
    const void *context;
    double old, fixed; /* C at the cell */
    int fields, h;     /* of the array read */
    int64_t x, y, z, t;
};

struct world {
    struct mx_problem p;
    struct mx_system s;
    struct mx_layout layout;
    struct mx_sides sides;
    struct mx_sources sources;
    struct mx_points probes;
    struct mx_reduce reduce[2];
    struct mx_norms_options norms;
    bool ghost[3];
    int64_t levels;
};

struct row_context {
    const struct mx_row *r;
    int64_t x;
    int array; /* read */
};

/* Plain loops, one cell after the other; cells are f64 that their type can hold. */
struct oracle {
    double *array[2], *fixed; /* [field][z][y][x], frame included */
    double *old;              /* the state before the step */
    double trace[MOST_STEPS][POINTS];
    struct {
        double max, rms, reduce[2], plane[2][64];
    } check[MOST_STEPS + 1];
};

struct oracle_context {
    double *array;
    int64_t x, y, z;
};

/* A piece of a level. */
struct unit {
    int64_t x0, x1, y0, y1, z0, z1;
};

struct trial {
    struct mx_after after;
    struct mx_view view;
    struct mx_fixed_view fixed;
    struct mx_norms *norms;
    struct mx_traces traces;
    int64_t deep[3]; /* layers of ghosts */
    struct unit *unit;
    int64_t units, again; /* of `units` pieces, so many of the last ones are computed twice: whole rows */
    _Atomic int64_t next;
    int64_t level;
};

extern uint64_t state; /* of pick */
extern struct world w; /* row functions have no context */

int64_t pick(int64_t from, int64_t to);
double real(void);
double at(const struct cell *c, int f, int dx, int dy, int dz);
double rounded(enum mx_dtype dtype, double v);
int64_t plane_cells(void);
double value_in(enum mx_dtype dtype, const void *row, int64_t x);
void make_layout(void);
void set_system(int form, int h, const int fields[2], const int64_t n[3], int64_t nt);
/* Wavelets without a file; some end early. */
void make_points(void);
void make_norms(void);
void make_world(int form);
void free_world(void);
double *o_cell(double *array, int f, int64_t z, int64_t y, int64_t x);
void o_first_frames(double *a, int array);
size_t o_bytes(int fields);
void o_start(struct oracle *o);
void o_free(struct oracle *o);
void o_level(struct oracle *o, int64_t level);
char *v_row(const struct mx_view *v, int array, int64_t y, int64_t z);
void put_row(const struct trial *t, struct oracle *o, int array, int64_t y, int64_t z, bool compare);
void make_trial(struct trial *t, struct oracle *o);
void free_trial(struct trial *t);
/* After every level: every cell of both arrays, frames included; of ghost dimensions the interior. After
 * every step probes and norms. */
void run_world(struct oracle *o, int threads);
void one_world(int form, int threads);

#endif
