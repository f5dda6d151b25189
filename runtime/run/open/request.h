/* SPDX-License-Identifier: BSD-3-Clause */
/* request.h - makes the tuner's request from options, for `memext run` and `memext tune`. */
#ifndef MX_RUN_REQUEST_H
#define MX_RUN_REQUEST_H

#include "accel/accel.h"
#include "ask/table.h"
#include "engine/engine.h"
#include "grid/grid.h"
#include "system/norms.h"
#include "tune/tune.h"

#include <memext/backend.h>

#include <stdatomic.h>

/* Returns the problem's field as sources and sinks see it, with a frame of `frame` cells; extents that the
 * problem does not know are 0. */
struct mx_grid mx_grid_of(const struct mx_problem *problem, int32_t frame);
/* Takes extents and element type from an existing grid, called `name`; given ones must agree. -EINVAL. */
int mx_take_grid(struct mx_options *options, const char *name, const struct mx_grid *grid, mx_why *why);
/* Converts extents of two dimensions, which may also be given as NX NY 1. flat: the kernel or the store has
 * two dimensions. */
void mx_take_rows(struct mx_problem *problem, bool flat);
/* Takes two or three dimensions, as the kernel has them; -n must agree. -EINVAL. */
int mx_take_dimensions(struct mx_options *options, const struct mx_system *system, mx_why *why);
/* Is the plan for another machine, which options or a file describe? */
bool mx_machine_is_described(const struct mx_options *options);
/* Describes the machine of the plan: this one, that of --topology, or this one with other values of --cores,
 * --sockets, --l2 and --l3. -EINVAL.
 */
int mx_take_machine(const struct mx_options *options, mx_why *why, struct mx_machine *out);
/* --backend, or the default one. */
int mx_take_backend(const struct mx_options *options, mx_why *why, const struct mx_backend **out);
/* Checks -d, for a backend that works in a place: it must be a place or the name of a new store. For ranks
 * ("%r") and --resume the stores are looked at later, one by one. */
int mx_take_place(const struct mx_options *options, const struct mx_backend *backend, mx_why *why);
enum mx_tune_style mx_style_of(const struct mx_backend *backend);
/* Returns the alignment of rows or planes, and the space of the place, as far as they can be known without
 * touching it. 0 = no place is named. */
uint32_t mx_place_align(const struct mx_options *options, const struct mx_backend *backend,
                        uint64_t *capacity_bytes);
/* Takes rates: cached, measured (--calibrate), or given ones. */
int mx_take_rates(const struct mx_options *options, const struct mx_backend *backend,
                  const struct mx_machine *machine, uint64_t dram_bytes, mx_why *why, struct mx_rates *rates);
/* Takes all other options that the tuner needs. */
void mx_take_request(const struct mx_options *options, const struct mx_machine *machine,
                     struct mx_tune_request *request);

/* Opens the accelerator of --accel, and tells the tuner of it; does nothing without --accel. place, places:
 * as in struct mx_accel_options. `there` must stay valid as long as the request. */
int mx_take_accel(const struct mx_options *options, int32_t place, int32_t places, mx_why *why,
                  mx_accel **out, struct mx_tune_accel *there, struct mx_tune_request *request);

struct mx_note;
/* Opens and tries out the kernel of --kernel with --param, and makes it the problem's system. stored: the
 * note of a store, whose parameters are the defaults, or NULL. stop: as in mx_kernel_options. */
int mx_take_kernel(struct mx_options *o, const struct mx_note *stored, const atomic_int *stop, mx_why *why,
                   struct mx_system **out);
/* Checks that parameters over time have a value for each step. */
int mx_check_series(const struct mx_options *o, const struct mx_system *system, mx_why *why);
/* Tries the kernel out within the grid of o->problem, once that is known. system NULL: does nothing. */
int mx_try_kernel(const struct mx_options *o, const struct mx_system *system, mx_why *why);

#endif
