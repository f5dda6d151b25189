/* request.h - what `memext run` and `memext tune` ask of the tuner alike, from the same options. */
#ifndef MX_REQUEST_H
#define MX_REQUEST_H

#include "cli/options.h"
#include "engine/engine.h"
#include "grid/grid.h"
#include "tune/tune.h"

#include <jansson.h>
#include <memext/backend.h>

/* --input: extents and element type of the problem are the file's; what else was given is checked against it.
 * The file stays open in *npy (fd -1 without --input). */
int mx_take_input(struct mx_options *options, mx_why *why, struct mx_npy *npy);
/* --backend, or the default one. */
int mx_take_backend(const struct mx_options *options, mx_why *why, const struct mx_backend **out);
enum mx_tune_face mx_face_of(const struct mx_backend *backend);
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

/* The engine of a plan, for its layout and shape. */
struct mx_engine_options mx_take_engine(const struct mx_problem *problem, const struct mx_machine *machine,
                                        const struct mx_plan *plan, const struct mx_layout *layout,
                                        const struct mx_shape *shape);

/* Writes one object to `path` ("-" = stdout), which is replaced when all of it is there, and drops the
 * reference. */
int mx_write_json(json_t *object, const char *path, mx_why *why);

#endif
