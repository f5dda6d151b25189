/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/work/engine.h"

struct mx_engine_options mx_take_engine(const struct mx_problem *problem, const struct mx_machine *machine,
                                        const struct mx_plan *plan, const struct mx_layout *layout,
                                        const struct mx_shape *shape) {
    struct mx_engine_options e = mx_plan_engine(plan, problem, machine, layout->row_pitch_bytes);
    e.levels = shape->max_levels;
    e.rows = shape->rows > 0 ? shape->rows : layout->rows;
    e.planes = plan->slab;
    return e;
}
