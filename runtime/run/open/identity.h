/* SPDX-License-Identifier: BSD-3-Clause */
/* identity.h - compares the problem of the options with that of a store.
 *
 * The note has everything that determines the bits of a result: extents, stencil and weights or the kernel's
 * text and parameters, types, sides, frames, point sources, and the initial values of every field. --resume
 * compares given options with it; for others the store's values hold. With the option `same`, which the
 * Python package sets, the options describe the whole problem: an option that is not given has its default,
 * which is compared too. The number of steps may grow, and plans, places and outputs may change.
 *
 * A file is the same if its size, the offset of its cells and a sample of its content are the same. If the
 * sample does not cover the whole file, the time of its change and its name or inode must be the same too
 * (mx_input_same). A program's source is the same if the program says so (struct mx_source, identity). A
 * refusal names the difference and the way out.
 */
#ifndef MX_RUN_IDENTITY_H
#define MX_RUN_IDENTITY_H

#include <memext/memext.h>

struct mx_run;

/* The end of a refusal to a run with the option `same`. */
#define MX_SAME_WAY                                                                                          \
    "give the values that it began with, or start again with the option force and without resume"

/* All: 0, or -EINVAL (with `same` -EEXIST) with a sentence in r->why. place: of the store, for sentences. */

/* Extents, stencil, weights, type; is there a kernel where there was one? Before the store's are taken. */
int mx_run_same_equation(struct mx_run *r, const char *place);
/* The kernel, which is open now, and its parameters. */
int mx_run_same_kernel(struct mx_run *r, const char *place);
/* --frame. */
int mx_run_same_frames(struct mx_run *r, const char *place);
/* Compares what each field begins with, once extents, kernel and frames are the store's. */
int mx_run_same_beginning(struct mx_run *r, const char *place);
/* Compares --side; `given`: what was read of it. */
struct mx_sides;
int mx_run_same_sides(struct mx_run *r, const struct mx_sides *given);
/* Compares --source and --sources, which were read, and --probes, whose traces a resumed run continues. */
int mx_run_same_points(struct mx_run *r);

#endif
