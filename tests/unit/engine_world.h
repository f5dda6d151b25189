/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_world.h - one advance with everything it works on, and what it gives by the plain kernel in order.
 */
#ifndef MX_TEST_ENGINE_WORLD_H
#define MX_TEST_ENGINE_WORLD_H

#include "engine/engine.h"
#include "random_system.h"
#include "stencil/stencil.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS = 13 };

/* One advance with everything it works on. */
struct world {
    struct mx_problem problem;
    struct mx_machine machine;
    const struct mx_stencil *stencil;
    struct mx_engine_options options;
    struct mx_window window[LEVELS];
    struct mx_advance advance;
    int32_t seam_z[LEVELS + 1], seam_nz[LEVELS + 1], seam_y[2][LEVELS + 1], seam_n[2][LEVELS + 1];
    size_t array_bytes, seam_bytes;
    struct random_system rs; /* problem.system, or not used */
    struct mx_fixed_view fixed[TEST_FIXED];
};

int32_t pick(int32_t from, int32_t to);
int32_t least(int32_t a, int32_t b);
int32_t most(int32_t a, int32_t b);
char *row_at(const struct mx_view *v, int array, int64_t y, int64_t z);
/* For l = 0, 1, ...: seams of level l, then array (parity+l+1)&1 := stencil(array (parity+l)&1) on window[l].
 */
void reference(const struct world *w, const struct mx_advance *a);
void make_problem(struct world *w);
void make_system_problem(struct world *w);
/* Parameters are explicit or left to the engine, threads may outnumber cores and chunks. Some worlds have
 * rows that are cut into spans of tiles in place. */
void make_options(struct world *w);
/* A ring that holds the planes the windows reach and `spare` more; values where a window reaches, NaN
 * elsewhere (spare planes, rows and x padding that nobody may read). */
void make_arrays(struct world *w);
void make_world(struct world *w, bool systems, bool seams);
void free_world(struct world *w);
char *copy_of(const char *from, size_t bytes);
/* Both arrays and the outgoing seam, every byte that is not used up: engine == in order. */
void same_as_reference(struct world *w, const struct mx_engine_ops *ops, mx_engine *engine);

#endif
