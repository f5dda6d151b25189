/* SPDX-License-Identifier: BSD-3-Clause */
/* engine.h - the engine of a plan. */
#ifndef MX_RUN_ENGINE_H
#define MX_RUN_ENGINE_H

#include "engine/engine.h"
#include "grid/grid.h"
#include "tune/tune.h"

/* The engine of a plan, for its layout and shape. */
struct mx_engine_options mx_take_engine(const struct mx_problem *problem, const struct mx_machine *machine,
                                        const struct mx_plan *plan, const struct mx_layout *layout,
                                        const struct mx_shape *shape);

#endif
