/* SPDX-License-Identifier: BSD-3-Clause */
/* check_plan.c - checks of a plan that every algorithm needs. */
#include "schedule/walk.h"

#include <errno.h>
#include <memext/backend.h>

/* Returns an upper bound of the rows or planes that all blocks of a dimension of n cells have in a sweep,
 * shared ones counted for each. block 0 = one block.
 */
static double shared_extent(int64_t n, int64_t block, int64_t skew, int64_t h) {
    const double whole = (double)(n + 2 * h), own = (double)block + 2 * (double)(skew + h);
    if (block < 1 || block >= n) return whole;
    return (double)mx_ceil_div64(n + h, block) * (own < whole ? own : whole);
}

/* Are the counts of a plan 64-bit numbers? Blocks that are small compared with what they share compute and
 * move it many times. */
static bool is_countable(const struct mx_problem *p, const struct mx_plan *plan) {
    const double most = 0x1p62, cells = (double)(p->nx + 2 * p->h), padding = 3 * 8192,
                 levels = (double)mx_levels_of(p, p->nt), sweeps = (double)mx_sweep_count(p, plan->bt);
    const int64_t skew = mx_sweep_levels(p, plan->bt) * p->h;
    const double rows =
        shared_extent(p->ny, plan->by, skew, mx_halo_y(p)) * shared_extent(p->nz, plan->bz, skew, p->h);
    const double whole = (double)(p->ny + 2 * mx_halo_y(p)) * (double)(p->nz + 2 * p->h);
    const double cell = (double)(mx_cell_bytes(p, 0) + mx_cell_bytes(p, 1) + mx_fixed_cell_bytes(p));
    if (rows * cells * levels >= most) return false;
    /* No more than a sweep a level would move, which the layout has looked at. */
    return rows * sweeps <= whole * levels || rows * (cells * cell + padding) * sweeps < most;
}

static const int64_t limit = INT32_MAX - 4 * MX_MAX_HALO; /* rows or planes */

static int check_problem(const struct mx_problem *p, mx_why *why) {
    char extents[MX_EXTENTS_TEXT];
    if (p->nx < 1 || p->ny < 1 || p->nz < 1 || p->nt < 0)
        return mx_fail(
            why, -EINVAL,
            "the grid is %s with %lld steps: every extent must be at least 1, and the steps at least 0",
            mx_extents_text(p, extents), (long long)p->nt);
    if (p->flat && p->nz > limit)
        return mx_fail(why, -EINVAL,
                       "ny is %lld: at most %lld %ss are possible; choose axes so that x is the longest",
                       (long long)p->nz, (long long)limit, mx_plane_word(p->flat));
    if (p->ny > limit || p->nz > limit)
        return mx_fail(why, -EINVAL,
                       "ny is %lld and nz is %lld: at most %lld rows or planes are possible; choose axes so "
                       "that x is the longest",
                       (long long)p->ny, (long long)p->nz, (long long)limit);
    if (p->h < 1 || p->h > MX_MAX_HALO)
        return mx_fail(why, -EINVAL, "the halo is %d cells: it must be 1 to %d", p->h, MX_MAX_HALO);
    if (p->due[0] < 0 || p->due[1] < 0 || p->done < 0)
        return mx_fail(why, -EINVAL,
                       "internal error (sweeps would end every %lld and %lld steps from step %lld on, and "
                       "none of these may be negative); please report it",
                       (long long)p->due[0], (long long)p->due[1], (long long)p->done);
    return 0;
}

static int check_levels(const struct mx_problem *p, const struct mx_plan *plan, mx_why *why) {
    if (plan->bt < 1)
        return mx_fail(why, -EINVAL, "bt is %lld: a sweep needs a bt of at least 1", (long long)plan->bt);
    if (mx_sweep_levels(p, plan->bt) * p->h > limit / 2)
        return mx_fail(why, -EINVAL,
                       "bt is %lld: with a halo of %d, skewed sweeps have at most %lld cells of skew; choose "
                       "a smaller bt",
                       (long long)plan->bt, p->h, (long long)(limit / 2));
    const int64_t a_step = mx_levels_a_step(p);
    if (plan->bt % a_step != 0 && mx_has_stages(p))
        return mx_fail(why, -EINVAL,
                       "bt is %lld levels: a step of this kernel has %lld stages, each of which is a level; "
                       "choose a multiple of %lld, for example %lld",
                       (long long)plan->bt, (long long)a_step, (long long)a_step,
                       (long long)(mx_ceil_div64(plan->bt, a_step) * a_step));
    if (plan->bt % a_step != 0)
        return mx_fail(why, -EINVAL,
                       "bt is %lld levels: a step of a staggered kernel has two levels; choose an even bt, "
                       "for example %lld",
                       (long long)plan->bt, (long long)plan->bt + 1);
    if (plan->in_place && !mx_reads_old(p))
        return mx_fail(why, -EINVAL,
                       "--in-place needs a kernel that reads the old value (MX_LEAPFROG, MX_STAGGERED); this "
                       "one needs two Buffers: leave --in-place out");
    return 0;
}

int mx_check_plan(const struct mx_problem *p, const struct mx_plan *plan, bool blocks, mx_why *why) {
    int err = check_problem(p, why);
    if (err == 0) err = check_levels(p, plan, why);
    if (err < 0) return err;
    if (blocks && (plan->by < 1 || plan->bz < 1))
        return mx_fail(why, -EINVAL,
                       "the Block is by = %lld rows and bz = %lld %ss: both must be at least 1 (%lld and "
                       "%lld give one Block)",
                       (long long)plan->by, (long long)plan->bz, mx_plane_word(p->flat), (long long)p->ny,
                       (long long)p->nz);
    if (plan->slab < 0 || plan->ahead < 0)
        return mx_fail(why, -EINVAL,
                       "slab is %lld and ahead is %lld: neither may be negative (0 lets memext choose)",
                       (long long)plan->slab, (long long)plan->ahead);
    if (is_countable(p, plan)) return 0;
    char block[MX_BLOCK_TEXT];
    return mx_fail(why, -EINVAL,
                   "Blocks of %s overlap so much over %lld levels that %lld steps make more than 2^62 "
                   "updates or bytes: choose larger Blocks, or fewer steps",
                   mx_block_text(p, plan->by, plan->bz, block), (long long)plan->bt, (long long)p->nt);
}
