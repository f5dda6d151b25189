/* SPDX-License-Identifier: BSD-3-Clause */
/* request.h - what `memext run` and `memext tune` ask of the tuner alike, from the same options. */
#ifndef MX_RUN_REQUEST_H
#define MX_RUN_REQUEST_H

#include "accel/accel.h"
#include "ask/table.h"
#include "engine/engine.h"
#include "grid/grid.h"
#include "system/norms.h"
#include "tune/tune.h"

#include <memext/backend.h>

/* The problem's field as sources and sinks see it, with so many cells of frame; extents 0 where the problem
 * does not know them. */
struct mx_grid mx_grid_of(const struct mx_problem *problem, int32_t frame);
/* Extents and element type of the problem are those of a grid that is there, called `name`; what else was
 * given is checked against it. -EINVAL. */
int mx_take_grid(struct mx_options *options, const char *name, const struct mx_grid *grid, mx_why *why);
/* Rows of two dimensions may be given as NX NY 1 too: they are told apart here alone. flat: the kernel, or
 * the store, has two. */
void mx_take_rows(struct mx_problem *problem, bool flat);
/* Two dimensions or three, as the kernel computes; -n must agree. -EINVAL. */
int mx_take_dimensions(struct mx_options *options, const struct mx_system *system, mx_why *why);
/* Is the machine of the plan another one, which options or a file describe? */
bool mx_machine_is_described(const struct mx_options *options);
/* This machine; or that of --topology; or what --cores, --sockets, --l2 and --l3 say, the rest as here.
 * -EINVAL.
 */
int mx_take_machine(const struct mx_options *options, mx_why *why, struct mx_machine *out);
/* --backend, or the default one. */
int mx_take_backend(const struct mx_options *options, mx_why *why, const struct mx_backend **out);
/* -d, for a backend that works in a place: is it one, or the name of a new store? Of ranks ("%r"), and of
 * --resume, the stores are looked at one by one. */
int mx_take_place(const struct mx_options *options, const struct mx_backend *backend, mx_why *why);
enum mx_tune_style mx_style_of(const struct mx_backend *backend);
/* Alignment of rows or planes and space of the place, as far as they can be known without touching it. 0 = no
 * place is named. */
uint32_t mx_place_align(const struct mx_options *options, const struct mx_backend *backend,
                        uint64_t *capacity_bytes);
/* Cached, measured (--calibrate), or given rates. */
int mx_take_rates(const struct mx_options *options, const struct mx_backend *backend,
                  const struct mx_machine *machine, uint64_t dram_bytes, mx_why *why, struct mx_rates *rates);
/* Everything else of the options that the tuner wants. */
void mx_take_request(const struct mx_options *options, const struct mx_machine *machine,
                     struct mx_tune_request *request);

/* Opens what --accel asks for, and tells the tuner of it; nothing where it was not given. place, places: as
 * in struct mx_accel_options. `there` outlives the request. */
int mx_take_accel(const struct mx_options *options, int32_t place, int32_t places, mx_why *why,
                  mx_accel **out, struct mx_tune_accel *there, struct mx_tune_request *request);

struct mx_note;
/* Opens and tries out the kernel of --kernel with --param; the problem becomes one of it. stored: the note
 * of a store, whose parameters are the defaults, or NULL. */
int mx_take_kernel(struct mx_options *o, const struct mx_note *stored, mx_why *why, struct mx_system **out);
/* Parameters over time have a value for each step. */
int mx_check_series(const struct mx_options *o, const struct mx_system *system, mx_why *why);
/* Tries it out within the grid of o->problem, once that is known; NULL: nothing. */
int mx_try_kernel(const struct mx_options *o, const struct mx_system *system, mx_why *why);

#endif
