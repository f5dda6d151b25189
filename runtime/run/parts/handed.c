/* SPDX-License-Identifier: BSD-3-Clause */
/* handed.c - parts that are handed states: who they are, and what Buffers are read for all of them together.
 */
#include "run/parts/parts.h"

#include "run/state.h"

int mx_parts_hand_out(struct mx_run *r, const struct mx_taking *taking) {
    const int32_t n = mx_run_takings(r);
    if (n + 1 == MX_TAKINGS) /* one is left for the last sweep's checksum and output */
        return mx_fail(&r->why, -EINVAL,
                       "more than %d parts of a run ask for its states: leave some of them out",
                       MX_TAKINGS - 1);
    r->taking[n] = taking;
    return 0;
}

/* From the Buffers of an algorithm that rewrites them in place, and those of an accelerator, a plane at a
 * time. */
static bool reads_buffers(const struct mx_run *r, const char *algorithm) {
    const struct mx_algorithm *a = mx_algorithm_find(algorithm);
    return r->taking[0] != NULL && a->uses_blocks && (!a->resumable || r->o.accel != NULL);
}

static int64_t common_multiple(int64_t a, int64_t b) {
    int64_t x = a, y = b;
    while (y != 0) {
        const int64_t rest = x % y;
        x = y, y = rest;
    }
    const mx_wide all = (mx_wide)(a / x) * b;
    return all < INT64_MAX ? (int64_t)all : INT64_MAX;
}

/* Both are numbers of steps, or 0 for the end of each sweep. The other one's steps end sweeps. */
static int64_t common_steps(int64_t a, int64_t b) { return a == 0 ? b : b == 0 ? a : common_multiple(a, b); }

/* With sweeps of so many levels: planes at steps that some of them want: of each alone, less those that two
 * want, and so on. */
static int64_t planes_taken(const struct mx_run *r, int64_t levels) {
    const struct mx_problem *p = &r->o.problem;
    const int32_t n = mx_run_takings(r);
    int64_t all = 0;
    for (uint32_t set = 1; set < UINT32_C(1) << n; set++) {
        int64_t every = 0, stride = 1;
        for (int32_t i = 0; i < n; i++)
            if (set >> i & 1)
                every = common_steps(every, r->taking[i]->every),
                stride = common_multiple(stride, r->taking[i]->stride);
        const int64_t steps =
            every > 0 ? p->nt / every - r->first_time / every : mx_sweep_count(&r->rest, levels);
        const int64_t before = p->first_plane / stride + (p->first_plane % stride > 0),
                      end = (p->first_plane + p->nz) / stride + ((p->first_plane + p->nz) % stride > 0);
        all += (__builtin_popcount(set) & 1 ? 1 : -1) * steps * (end - before);
    }
    return all;
}

int64_t mx_parts_read_bytes(const struct mx_run *r, const char *algorithm, const struct mx_shape *shape,
                            const struct mx_layout *layout) {
    if (!reads_buffers(r, algorithm)) return 0;
    return planes_taken(r, shape->max_levels) * layout->plane_pitch_bytes * mx_states(&r->o.problem);
}

bool mx_parts_have_planes(struct mx_run *r) {
    const uint64_t plane =
        reads_buffers(r, r->tuned.plan.algorithm) ? (uint64_t)r->tuned.layout.plane_pitch_bytes : 0;
    if (plane <= r->taken_plane_bytes) return true;
    r->taken_plane_bytes = plane;
    return false;
}
