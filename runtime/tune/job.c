/* SPDX-License-Identifier: BSD-3-Clause */
/* job.c - what a plan of an algorithm takes: its layout, DRAM, accelerator memory, space. */
#include "tune/job.h"

#include "execute/execute.h"
#include "system/sides.h"

const struct mx_layout *mx_job_layout(const struct job *job, const struct mx_plan *plan) {
    return &job->layout[job->request->offset_align_bytes == 0 || job->algorithm->cuts_y(&job->problem, plan)];
}

/* Ghost rows of C come from the other end of their planes, and so are transfers of their own: they must not
 * need to be widened (mx_fixed_span). */
static bool ghost_rows_fit(const struct job *job, const struct mx_plan *plan) {
    const struct mx_layout *l = mx_job_layout(job, plan);
    if (!mx_sides_periodic(&job->problem.sides, MX_DIM_Y) || !job->algorithm->cuts_y(&job->problem, plan))
        return true;
    for (int32_t i = 0; i < mx_fixed_count(&job->problem); i++) {
        const struct mx_fixed_layout *f = &l->fixed[i];
        const int64_t align = f->align_bytes > 0 ? f->align_bytes : 1;
        if (f->row_pitch_bytes % align != 0 || (f->offset_bytes + f->lead_bytes) % align != 0) return false;
    }
    return true;
}

bool mx_job_can_transfer(const struct job *job, const struct mx_plan *plan) {
    const struct mx_layout *l = mx_job_layout(job, plan);
    const int64_t align = job->request->offset_align_bytes;
    /* Of a state that is complete whole planes are read, and no field of C. */
    if (job->request->layout != NULL && job->request->problem->nt == 0)
        return job->request->style != MX_TUNE_TRANSFER || align == 0 || l->plane_pitch_bytes % align == 0;
    if (job->request->whole_planes && job->algorithm->cuts_y(&job->problem, plan)) return false;
    if (!ghost_rows_fit(job, plan)) return false;
    if (job->request->layout == NULL || job->request->style != MX_TUNE_TRANSFER || align == 0) return true;
    if (job->algorithm->cuts_y(&job->problem, plan) && l->row_pitch_bytes % align != 0) return false;
    return l->plane_pitch_bytes % align == 0;
}

/* What the engine is told of a plan. */
static struct mx_engine_options engine_options(const struct job *job, const struct mx_plan *plan) {
    struct mx_engine_options e =
        mx_plan_engine(plan, &job->problem, job->request->machine, mx_job_layout(job, plan)->row_pitch_bytes);
    e.levels = mx_max(1, mx_min(plan->bt, job->stretch));
    e.rows = mx_min(plan->by, job->problem.ny);
    e.planes = mx_min(plan->bz, job->problem.nz);
    const struct mx_tune_accel *a = job->request->accel;
    e.updates_per_s = a != NULL && a->updates_per_s > 0 ? a->updates_per_s : job->rates.tiled_updates_per_s;
    return e;
}

/* Refined sizes were found together: the slab goes with that tile and chunk alone. */
static bool is_refined(const struct job *job, const struct mx_plan *plan) {
    const struct mx_tiled_sizes *r = &job->refined;
    return r->slab > 0 && plan->tile == r->tile && plan->ct == r->ct && plan->column == 0;
}

void mx_job_complete(const struct job *job, struct mx_plan *plan) {
    struct mx_engine_options options = engine_options(job, plan);
    if (plan->slab != 0) return;
    plan->slab = is_refined(job, plan) ? job->refined.slab : mx_max(1, job->engine->slab(&options));
}

/* The engine reckons from its own slab; the rate was measured with the refined one, which takes its place. */
double mx_job_efficiency(const struct job *job, const struct mx_plan *plan) {
    struct mx_engine_options options = engine_options(job, plan);
    if (is_refined(job, plan)) {
        options.slab = 0;
        const int64_t own = job->engine->slab(&options);
        options.slab = mx_max(1, plan->slab * own / job->refined.slab);
    }
    return job->engine->efficiency(&options);
}

int64_t mx_job_state_buffers(const struct mx_shape *shape) {
    return shape->pairs && !shape->in_place ? 4 : 2;
}

uint64_t mx_job_stored_bytes(const struct mx_layout *layout, const struct mx_shape *shape) {
    uint64_t bytes = (uint64_t)mx_job_state_buffers(shape) * (uint64_t)layout->buffer_bytes;
    for (int i = 0; i < MX_MAX_FIXED; i++)
        if (!layout->fixed[i].user_file) bytes += (uint64_t)layout->fixed[i].bytes;
    return bytes + (uint64_t)mx_execute_seam_bytes(shape, layout);
}

uint64_t mx_job_resident_bytes(const struct mx_layout *layout, const struct mx_shape *shape) {
    uint64_t bytes = mx_job_stored_bytes(layout, shape);
    for (int i = 0; i < MX_MAX_FIXED; i++)
        if (layout->fixed[i].user_file) bytes += (uint64_t)layout->fixed[i].bytes;
    return bytes;
}

uint64_t mx_job_dram_bytes(const struct job *job, const struct mx_plan *plan, const struct mx_shape *shape) {
    const struct mx_layout *layout = mx_job_layout(job, plan);
    const struct mx_tune_accel *accel = job->request->accel;
    uint64_t blocks = (uint64_t)(accel == NULL || accel->here ? mx_execute_block_bytes(shape, layout)
                                                              : mx_execute_given_bytes(shape, layout));
    if (accel != NULL)
        blocks += MX_STAGING_PIECES * (uint64_t)mx_execute_piece_bytes(&job->problem, shape, layout, plan);
    return blocks + (job->resident ? mx_job_resident_bytes(layout, shape) : 0);
}

uint64_t mx_job_device_bytes(const struct job *job, const struct mx_plan *plan,
                             const struct mx_shape *shape) {
    if (job->request->accel == NULL) return 0;
    const struct mx_layout *layout = mx_job_layout(job, plan);
    return (uint64_t)(mx_execute_block_bytes(shape, layout) - mx_execute_given_bytes(shape, layout));
}
