/* SPDX-License-Identifier: BSD-3-Clause */
/* Blk-Tune: the global optimum of CalcTrans under the papers' constraints (iWAPT 2016, section V), algorithm
 * by algorithm, once over every combination and once over a reduced set that holds an optimum of the whole.
 *
 * Constraints: bx = nx; bz a multiple of iz*sockets, or nz; 2 <= bt <= nt; 2 bt h <= by, bz; the Blocks fit.
 */
#include "tune/search.h"

#include "execute/execute.h"
#include "system/sides.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ one plan */

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

static void name_seams(const struct mx_shape *shape, struct mx_plan *plan) {
    const char *place = shape->seam_slabs == 0 ? ""
                        : shape->seams_in_file ? MX_SEAMS_IN_FILE
                                               : MX_SEAMS_IN_DRAM;
    memset(plan->seams, 0, sizeof plan->seams);
    strcpy(plan->seams, place);
}

static bool shape_of(const struct job *job, struct mx_plan *plan, struct mx_shape *shape) {
    mx_job_complete(job, plan);
    if (!mx_job_can_transfer(job, plan) || job->counted->check(&job->problem, plan, NULL) < 0) return false;
    job->counted->shape(&job->problem, plan, shape);
    return true;
}

bool mx_job_measure(const struct job *job, const struct mx_plan *plan, struct option *out) {
    struct option o = {.plan = *plan};
    if (!shape_of(job, &o.plan, &o.shape)) return false;
    const struct mx_layout *layout = mx_job_layout(job, &o.plan);
    name_seams(&o.shape, &o.plan);
    job->counted->traffic(&job->problem, &o.plan, layout, &o.traffic);
    o.dram_bytes = mx_job_dram_bytes(job, &o.plan, &o.shape);
    o.device_bytes = mx_job_device_bytes(job, &o.plan, &o.shape);
    o.moved_bytes = (double)o.traffic.read_bytes + (double)o.traffic.write_bytes;
    o.cost = o.moved_bytes;
    if (mx_job_by_seconds(job)) {
        struct mx_seconds s = mx_predict(job, &o.plan, layout, &o.shape, &o.traffic);
        o.cost = fmax(fmax(s.io_s, s.compute_s) + s.lag_s, s.link_s);
    }
    if (job->by_dram) o.cost = (double)(job->request->accel != NULL ? o.device_bytes : o.dram_bytes);
    *out = o;
    return true;
}

static bool better(const struct option *a, const struct option *b) {
    if (a->cost != b->cost) return a->cost < b->cost;
    if (a->moved_bytes != b->moved_bytes) return a->moved_bytes < b->moved_bytes;
    if (a->dram_bytes != b->dram_bytes) return a->dram_bytes < b->dram_bytes;
    if (a->plan.bt != b->plan.bt) return a->plan.bt < b->plan.bt;
    if (a->plan.by != b->plan.by) return a->plan.by < b->plan.by;
    return a->plan.bz < b->plan.bz;
}

static struct mx_plan with_block(const struct job *job, int64_t by, int64_t bz, int64_t bt) {
    struct mx_plan plan = job->base;
    plan.by = by, plan.bz = bz, plan.bt = bt;
    return plan;
}

bool mx_job_fits(const struct job *job, int64_t by, int64_t bz, int64_t bt) {
    struct mx_plan plan = with_block(job, by, bz, bt);
    struct mx_shape shape;
    if (!shape_of(job, &plan, &shape) || mx_job_dram_bytes(job, &plan, &shape) >= job->room_bytes)
        return false;
    if (mx_job_device_bytes(job, &plan, &shape) > job->device_bytes) return false;
    uint64_t capacity = job->request->capacity_bytes;
    return !shape.seams_in_file || capacity == 0 ||
           mx_job_stored_bytes(mx_job_layout(job, &plan), &shape) <= capacity;
}

bool mx_job_try(struct job *job, int64_t by, int64_t bz, int64_t bt) {
    struct option o;
    job->n_evaluated++;
    if (!mx_job_fits(job, by, bz, bt)) return false;
    struct mx_plan plan = with_block(job, by, bz, bt);
    if (!mx_job_measure(job, &plan, &o)) return false;
    if (!job->found || better(&o, &job->best)) job->best = o;
    job->found = true;
    return true;
}

/* Least cost of any plan with this bt: one Block holds the whole grid. */
static double least_cost(const struct job *job, int64_t bt) {
    struct option o;
    struct mx_plan plan = with_block(job, job->problem.ny, job->problem.nz, bt);
    return mx_job_measure(job, &plan, &o) ? o.cost : 0;
}

/* ------------------------------------------------------------------ bt */

/* Beyond so many steps a sweep moves next to nothing for each of them, and looking at every number of them
 * takes long. */
enum { MOST_BT = 1 << 20 };

/* At least one step: sweeps are whole steps. */
static int64_t whole_steps(const struct job *job, int64_t levels) {
    return mx_max(levels / mx_job_unit(job), 1) * mx_job_unit(job);
}

/* Levels of the longest sweep that is asked for. */
static int64_t longest_sweep(const struct job *job) {
    const int64_t most = mx_min(job->stretch, MOST_BT), asked = job->request->most_bt;
    return whole_steps(job, asked > 0 ? mx_min(most, asked) : most);
}

static int64_t largest_bt(const struct job *job) {
    const struct mx_problem *p = &job->problem;
    int64_t half = mx_min(p->ny, p->nz) / (2 * p->h);
    return mx_min(longest_sweep(job), whole_steps(job, half));
}

/* Blocks of at least this length for bt levels. A single step is no temporal blocking: any length does. */
static int64_t shortest_block(const struct job *job, int64_t bt) {
    return bt == mx_job_unit(job) ? 1 : 2 * bt * job->problem.h;
}

/* The next smaller balanced bt (Fig. 15: the least bt with as many sweeps, from one due step to the next), 0
 * at the end. bt = 0 starts. */
static int64_t next_balanced(const struct job *job, int64_t bt) {
    int64_t unit = mx_job_unit(job), nt = job->stretch / unit, limit = bt == 0 ? largest_bt(job) : bt - unit;
    if (limit < job->bt_min) return 0;
    int64_t next = unit * tune_ceil_div(nt, tune_ceil_div(nt, limit / unit));
    return next >= job->bt_min ? next : 0;
}

/* ------------------------------------------------------------------ lengths of blocks, in one dimension */

static int64_t multiple_up(int64_t n, int64_t step) { return tune_ceil_div(n, step) * step; }
static int64_t multiple_down(int64_t n, int64_t step) { return n / step * step; }

/* Lengths b with exactly k blocks, k >= 2, that bt and `step` allow: [low, high], empty when low > high.
 * lead: cells before the first that the cut counts (h where it starts on the ghost row). */
struct lengths {
    int64_t low, high;
};
static struct lengths lengths_of(const struct job *job, int64_t n, int64_t lead, int64_t k, int64_t bt,
                                 int64_t step) {
    int64_t low = mx_max(shortest_block(job, bt), tune_ceil_div(n + lead, k));
    int64_t high = mx_min((n + lead - 1) / (k - 1), n - 1);
    return (struct lengths){multiple_up(low, step), multiple_down(high, step)};
}

/* Every balanced bt from the longest on. A bt whose least cost is above the best found ends it: more sweeps
 * cost more. For the smallest DRAM the shortest bt alone. */
static void over_balanced_bt(struct job *job, void (*try_bt)(struct job *, int64_t)) {
    if (job->by_dram) {
        try_bt(job, job->bt_min);
        return;
    }
    for (int64_t bt = next_balanced(job, 0); bt > 0; bt = next_balanced(job, bt)) {
        if (job->found && least_cost(job, bt) > job->best.cost) break;
        try_bt(job, bt);
    }
}

/* Most blocks that bt allows. */
static int64_t most_blocks(const struct job *job, int64_t n, int64_t lead, int64_t bt) {
    return tune_ceil_div(n + lead, shortest_block(job, bt));
}

/* ------------------------------------------------------------------ time-skewed blocks: skewed, skewed-y,
 * skewed-min
 *
 * For a number of sweeps and of blocks in y and in z, the bytes do not depend on where the cuts are: shared
 * spans are as long as bt alone says. So among such plans the least DRAM wins, and decides what fits:
 *  - bt balanced: the shortest of as many sweeps;
 *  - y has a fixed plane layout of by + bt h + h rows: the least by;
 *  - z spans are clipped at the end of the grid: with three or more blocks an inner one is the largest, so
 * the least bz; with two the lengths h + bz and nz + 2h - bz + bt h balance at bz = (nz + h + bt h) / 2. More
 * blocks in y move more bytes, so of those the fewest that fit.
 */

/* The least by of k blocks, 0 if there is none. */
static int64_t least_by(const struct job *job, int64_t k, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    if (k == 1) return p->ny;
    int64_t by = mx_max(shortest_block(job, bt), tune_ceil_div(p->ny + p->h, k));
    return by <= p->ny ? by : 0;
}

/* Fewest blocks k in [2, most] with fits(least_by(k)), most + 1 if none. Planes shrink with k. */
static int64_t fewest_blocks(const struct job *job, int64_t most, int64_t bz, int64_t bt) {
    int64_t low = 2, high = most + 1;
    while (low < high) {
        int64_t k = low + (high - low) / 2, by = least_by(job, k, bt);
        if (by > 0 && mx_job_fits(job, by, bz, bt))
            high = k;
        else
            low = k + 1;
    }
    return low;
}

static void try_skewed_bz(struct job *job, int64_t bz, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    if (mx_job_try(job, p->ny, bz, bt) && !job->by_dram) return;
    int64_t most = most_blocks(job, p->ny, p->h, bt);
    int64_t k = job->by_dram ? most : fewest_blocks(job, most, bz, bt);
    if (k <= most && least_by(job, k, bt) > 0) mx_job_try(job, least_by(job, k, bt), bz, bt);
}

static void try_skewed_two(struct job *job, struct lengths z, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    int64_t even = multiple_down((p->nz + p->h + bt * p->h) / 2, job->z_step);
    int64_t first = mx_min(mx_max(even, z.low), z.high);
    int64_t second = mx_min(mx_max(even + job->z_step, z.low), z.high);
    try_skewed_bz(job, first, bt);
    if (second != first) try_skewed_bz(job, second, bt);
}

static void try_skewed_bt(struct job *job, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    try_skewed_bz(job, p->nz, bt);
    int64_t most = most_blocks(job, p->nz, p->h, bt);
    for (int64_t k = 2; k <= most; k++) {
        struct lengths z = lengths_of(job, p->nz, p->h, k, bt, job->z_step);
        if (z.low > z.high) continue;
        if (k == 2)
            try_skewed_two(job, z, bt);
        else
            try_skewed_bz(job, z.low, bt);
    }
}

static void reduced_skewed(struct job *job) { over_balanced_bt(job, try_skewed_bt); }

/* Every bz of the constraints: multiples of z_step, and nz. */
static int64_t next_bz(const struct job *job, int64_t bz) {
    int64_t nz = job->problem.nz;
    return bz >= nz ? 0 : mx_min(multiple_down(bz, job->z_step) + job->z_step, nz);
}

static void every_block(struct job *job, int64_t bt) {
    int64_t shortest = shortest_block(job, bt);
    for (int64_t bz = next_bz(job, 0); bz > 0; bz = next_bz(job, bz)) {
        if (bz < mx_min(shortest, job->problem.nz)) continue;
        for (int64_t by = mx_min(shortest, job->problem.ny); by <= job->problem.ny; by++)
            mx_job_try(job, by, bz, bt);
    }
}

static void exhaustive_skewed(struct job *job) {
    for (int64_t bt = job->bt_min; bt <= largest_bt(job); bt += mx_job_unit(job)) every_block(job, bt);
}

/* ------------------------------------------------------------------ overlapped blocks: redundant
 *
 * Cost is predicted seconds: redundant rows are read and computed. bt is balanced in both searches, as Fig.
 * 15 of the paper has it. With 2 bt h <= b only the last block and the one before it are clipped at the end
 * of the grid, so for k blocks in a dimension, reads and updates are flat in b up to (n + h - bt h) / (k - 1)
 * and fall beyond (the last block gets shorter than its halo), while DRAM grows with b, but for k = 3, where
 * it falls beyond that point. An engine may compute faster the longer b is in y, never slower. So: in y the
 * greatest b that fits, or the least that costs as little; in z the least, and all beyond. More blocks cost
 * more, so of those in y the fewest that fit.
 */

/* The greatest by of k blocks that fits, 0 = none. DRAM grows with by; for k = 3 it falls again beyond
 * `peak`, where the greatest is the best and has been looked at first. */
static int64_t greatest_by(const struct job *job, struct lengths y, int64_t k, int64_t bz, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    if (y.low > y.high) return 0;
    if (mx_job_fits(job, y.high, bz, bt)) return y.high;
    int64_t peak = k == 3 ? (p->ny + p->h - bt * p->h) / 2 : y.high;
    int64_t low = y.low - 1, high = mx_max(y.low, mx_min(y.high, peak)) + 1;
    while (low + 1 < high) {
        int64_t b = low + (high - low) / 2;
        if (mx_job_fits(job, b, bz, bt))
            low = b;
        else
            high = b;
    }
    return low >= y.low ? low : 0;
}

/* Beyond this length k blocks cost less the longer they are. */
static int64_t flat_end(int64_t n, int64_t h, int64_t k, int64_t bt) { return (n + h - bt * h) / (k - 1); }

static double cost_of(const struct job *job, int64_t by, int64_t bz, int64_t bt) {
    struct option o;
    struct mx_plan plan = with_block(job, by, bz, bt);
    return mx_job_measure(job, &plan, &o) ? o.cost : HUGE_VAL;
}

/* The least by in [low, great] that costs no more than the greatest: an engine may be faster on longer
 * Blocks, which counts only until transfers decide. */
static int64_t least_of_cost(const struct job *job, int64_t low, int64_t great, int64_t bz, int64_t bt) {
    const double cost = cost_of(job, great, bz, bt);
    if (cost_of(job, low, bz, bt) <= cost) return low;
    while (low + 1 < great) {
        int64_t b = low + (great - low) / 2;
        if (cost_of(job, b, bz, bt) <= cost)
            great = b;
        else
            low = b;
    }
    return great;
}

static bool try_lapped_k(struct job *job, int64_t k, int64_t bz, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    struct lengths y = lengths_of(job, p->ny, 0, k, bt, 1);
    int64_t great = greatest_by(job, y, k, bz, bt);
    if (great == 0) return false;
    if (job->by_dram) return mx_job_try(job, y.low, bz, bt);
    bool flat = great <= flat_end(p->ny, p->h, k, bt);
    return mx_job_try(job, flat ? least_of_cost(job, y.low, great, bz, bt) : great, bz, bt);
}

/* Fewest blocks, at least four, whose least by fits; most + 1 if none. From four on planes shrink with k. */
static int64_t fewest_lapped(const struct job *job, int64_t most, int64_t bz, int64_t bt) {
    int64_t low = 4, high = mx_max(4, most + 1);
    while (low < high) {
        int64_t k = low + (high - low) / 2;
        int64_t by = mx_max(shortest_block(job, bt), tune_ceil_div(job->problem.ny, k));
        if (mx_job_fits(job, by, bz, bt))
            high = k;
        else
            low = k + 1;
    }
    return low;
}

static void try_lapped_bz(struct job *job, int64_t bz, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    bool first = !job->by_dram;
    if (mx_job_try(job, p->ny, bz, bt) && first) return;
    int64_t most = most_blocks(job, p->ny, 0, bt);
    for (int64_t k = 2; k <= most; k++) {
        if (k == 4 && first) k = fewest_lapped(job, most, bz, bt);
        if (k <= most && try_lapped_k(job, k, bz, bt) && first) return;
    }
}

static void try_lapped_bt(struct job *job, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    try_lapped_bz(job, p->nz, bt);
    int64_t most = most_blocks(job, p->nz, 0, bt);
    for (int64_t k = 2; k <= most; k++) {
        struct lengths z = lengths_of(job, p->nz, 0, k, bt, job->z_step);
        if (z.low > z.high) continue;
        try_lapped_bz(job, z.low, bt);
        int64_t falls = flat_end(p->nz, p->h, k, bt);
        for (int64_t bz = mx_max(z.low + job->z_step, multiple_up(falls, job->z_step)); bz <= z.high;
             bz += job->z_step)
            try_lapped_bz(job, bz, bt);
    }
}

static void reduced_lapped(struct job *job) { over_balanced_bt(job, try_lapped_bt); }

static void exhaustive_lapped(struct job *job) {
    for (int64_t bt = next_balanced(job, 0); bt > 0; bt = next_balanced(job, bt)) every_block(job, bt);
}

/* ------------------------------------------------------------------ stream
 *
 * Whole planes move 2 N bytes a sweep whatever bt is, so the fewest sweeps win, then the least DRAM: which of
 * the bt with as many sweeps that is depends on which array the last level of the last sweep is in, so all
 * are tried; where DRAM alone counts, the shortest and the next longer bt. Strips (by < ny) are as
 * time-skewed blocks in y, with 2 bt h <= by; two of them need one store of seams, more need two. In a side
 * file seams take the same DRAM however many strips there are, and each further one moves more of them: the
 * fewest that fit win there too.
 */

/* As many strips as can always have the same length to h rows: (k - 1) (k + h) <= ny. Up to there the largest
 * span shrinks with every further one. */
static int64_t most_even_strips(const struct mx_problem *p) {
    int64_t k = 2;
    while (k * (k + 1 + p->h) <= p->ny) k++;
    return k;
}

/* Three strips or more: the fewest that fit, then the least DRAM. */
static void try_even_or_short_strips(struct job *job, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    int64_t most = mx_min(most_even_strips(p), most_blocks(job, p->ny, p->h, bt));
    /* Fewer strips of the shortest length than were asked for are not even. */
    while (most > 3 && tune_ceil_div(p->ny + p->h, most) < shortest_block(job, bt)) most--;
    int64_t low = 3, high = mx_max(low, most + 1), strips = 0;
    while (low < high) {
        int64_t k = low + (high - low) / 2;
        if (mx_job_fits(job, least_by(job, k, bt), p->nz, bt))
            high = k;
        else
            low = k + 1;
    }
    if (low <= most) {
        mx_job_try(job, least_by(job, low, bt), p->nz, bt);
        return;
    }
    for (int64_t by = tune_ceil_div(p->ny, most) - 1; by >= shortest_block(job, bt); by--) {
        int64_t k = tune_ceil_div(p->ny, by);
        if (strips != 0 && k != strips) break;
        if (mx_job_try(job, by, p->nz, bt)) strips = k;
    }
}

/* The shortest strip may leave up to h rows more to the last one than a longer one. */
static void try_shortest_strips(struct job *job, int64_t bt) {
    int64_t shortest = shortest_block(job, bt), end = mx_min(shortest + job->problem.h, job->problem.ny - 1);
    for (int64_t by = shortest; by <= end; by++) mx_job_try(job, by, job->problem.nz, bt);
}

static void try_strips(struct job *job, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    if (shortest_block(job, bt) > p->ny) return;
    struct lengths two = lengths_of(job, p->ny, p->h, 2, bt, 1);
    int64_t even = (p->ny + p->h + bt * p->h) / 2;
    int64_t first = mx_min(mx_max(even, two.low), two.high);
    int64_t second = mx_min(mx_max(even + 1, two.low), two.high);
    bool fits = two.low <= two.high && mx_job_try(job, first, p->nz, bt);
    if (two.low <= two.high && second != first) fits |= mx_job_try(job, second, p->nz, bt);
    if (job->by_dram)
        try_shortest_strips(job, bt);
    else if (!fits)
        try_even_or_short_strips(job, bt);
}

/* Whole planes of bt levels fit, or of one more: which array the last level is in makes a difference of a
 * slab. */
static bool planes_fit(const struct job *job, int64_t bt) {
    const struct mx_problem *p = &job->problem;
    return mx_job_fits(job, p->ny, p->nz, bt) || mx_job_fits(job, p->ny, p->nz, bt + mx_job_unit(job));
}

/* Beyond so many levels neither whole planes fit nor do strips have their shortest length: DRAM grows with
 * the levels. */
static int64_t bound_of_levels(const struct job *job, int64_t longest) {
    const int64_t unit = mx_job_unit(job);
    int64_t low = 0, high = longest / unit + 1; /* steps: low fits, high does not */
    if (job->by_dram || planes_fit(job, longest)) return longest;
    while (low + 1 < high) {
        int64_t steps = low + (high - low) / 2;
        if (planes_fit(job, steps * unit))
            low = steps;
        else
            high = steps;
    }
    const int64_t strips = whole_steps(job, job->problem.ny / (2 * job->problem.h)) + unit;
    return mx_min(longest, mx_max((low + 2) * unit, strips));
}

/* With ghost layers longer sweeps compute more, and the cost of one more level has no single course. */
static const double uneven = 1.25;

static void reduced_stream(struct job *job) {
    const struct mx_problem *p = &job->problem;
    int64_t longest = job->by_dram ? mx_min(job->stretch, job->bt_min + mx_job_unit(job))
                                   : bound_of_levels(job, longest_sweep(job));
    for (int64_t bt = longest; bt >= job->bt_min; bt -= mx_job_unit(job)) {
        double most = job->found ? job->best.cost : job->most_cost;
        const double least = most > 0 && !job->by_dram ? least_cost(job, bt) : 0;
        if (least > (mx_job_by_seconds(job) ? uneven * most : most)) break;
        bool whole = !job->only_strips && mx_job_try(job, p->ny, p->nz, bt);
        if (!whole || job->by_dram) try_strips(job, bt);
    }
}

static void exhaustive_stream(struct job *job) {
    const struct mx_problem *p = &job->problem;
    for (int64_t bt = job->bt_min; bt <= longest_sweep(job); bt += mx_job_unit(job)) {
        for (int64_t by = shortest_block(job, bt); by < p->ny; by++) mx_job_try(job, by, p->nz, bt);
        mx_job_try(job, p->ny, p->nz, bt);
    }
}

/* ------------------------------------------------------------------ direct: nothing to choose but levels */

/* Levels that the tiled engine gets at once: enough for its chunks, little enough to report progress. */
enum { DIRECT_LEVELS = 64 };

static void only_direct(struct job *job) {
    bool levels = strcmp(job->engine->name, "tiled") == 0;
    mx_job_try(job, job->problem.ny, job->problem.nz,
               levels ? mx_min(job->stretch, DIRECT_LEVELS) : mx_job_unit(job));
}

/* The same in an accelerator's memory, a few levels at a time so that an interrupt finds an end. */
enum { RESIDENT_LEVELS = 16 };

static void only_resident(struct job *job) {
    mx_job_try(job, job->problem.ny, job->problem.nz, mx_min(mx_job_levels(job), RESIDENT_LEVELS));
}

/* ------------------------------------------------------------------ the table */

static const struct strategy strategies[] = {
    {.algorithm = "direct", .reduced = only_direct, .exhaustive = only_direct},
    {.algorithm = "direct-skewed",
     .counted = "skewed",
     .reduced = reduced_skewed,
     .exhaustive = exhaustive_skewed,
     .blocks = true,
     .only_by_name = true},
    {.algorithm = "direct-skewed-opt",
     .counted = "skewed",
     .reduced = reduced_skewed,
     .exhaustive = exhaustive_skewed,
     .blocks = true,
     .only_by_name = true},
    {.algorithm = "redundant",
     .reduced = reduced_lapped,
     .exhaustive = exhaustive_lapped,
     .by_seconds = true,
     .blocks = true,
     .halo_twice = true},
    {.algorithm = "skewed", .reduced = reduced_skewed, .exhaustive = exhaustive_skewed, .blocks = true},
    {.algorithm = "skewed-y", .reduced = reduced_skewed, .exhaustive = exhaustive_skewed, .blocks = true},
    {.algorithm = "skewed-min", .reduced = reduced_skewed, .exhaustive = exhaustive_skewed, .blocks = true},
    {.algorithm = "stream",
     .reduced = reduced_stream,
     .exhaustive = exhaustive_stream,
     .side_file = true,
     .thin_slabs = true},
    {.algorithm = "resident",
     .reduced = only_resident,
     .exhaustive = only_resident,
     .thin_slabs = true,
     .only_by_name = true},
};

const struct strategy *mx_strategy_find(const char *algorithm) {
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++)
        if (strcmp(strategies[i].algorithm, algorithm) == 0) return &strategies[i];
    return NULL;
}

/* ------------------------------------------------------------------ the tuner */

void mx_job_search(struct job *job) {
    job->bt_min = mx_min(2, largest_bt(job));
    if (job->request->exhaustive && !job->by_dram)
        job->strategy->exhaustive(job);
    else
        job->strategy->reduced(job);
}

/* As the paper has it; where nothing fits, the "preferable" condition on bz is given up. */
static void search_relaxing(struct job *job) {
    const int64_t steps[] = {job->z_step, job->threads, 1};
    for (int i = 0; i < 3 && !job->found; i++) {
        if (i > 0 && steps[i] >= job->z_step) continue;
        job->z_step = steps[i];
        job->relaxed = i > 0;
        mx_job_search(job);
    }
}

static struct mx_seconds seconds_of(const struct job *job) {
    const struct option *o = &job->best;
    return mx_predict(job, &o->plan, mx_job_layout(job, &o->plan), &o->shape, &o->traffic);
}

static double predicted(const struct job *job) { return seconds_of(job).total_s; }

/* One slab ahead rides out fewer hiccups of the device than two: it has to pay. In seconds, or, where those
 * are the same because computing hides the transfers, by a quarter of the bytes: they take cores and
 * bandwidth from the computation (510 x 510 x 1022 in 507 MiB: one sweep of 64 steps 1.25 times as fast as
 * two). */
static const double one_ahead_gain = 0.97, same_seconds = 1.02, fewer_bytes = 0.75;

static bool is_better(const struct job *other, const struct job *job, double gain) {
    const double before = predicted(job), now = predicted(other);
    return now < gain * before ||
           (now <= same_seconds * before && other->best.cost <= fewer_bytes * job->best.cost);
}

static void search_slab(struct job *job, int64_t slab, int64_t ahead, double gain) {
    struct job other = *job;
    other.base.slab = slab;
    other.base.ahead = ahead;
    other.found = false;
    search_relaxing(&other);
    job->n_evaluated = other.n_evaluated;
    if (!other.found || (job->found && !is_better(&other, job, gain))) return;
    job->found = true;
    job->best = other.best;
}

/* The engine's slab is the best for computing; thinner ones leave more DRAM to the levels. */
static void search_thinner(struct job *job) {
    static const int64_t twelfths[] = {10, 8, 6, 4, 3, 2, 1, 0};
    struct mx_plan plan = with_block(job, job->problem.ny, job->problem.nz, 1);
    mx_job_complete(job, &plan);
    int64_t last = plan.slab;
    if (job->request->manual.ahead == 0 && job->base.ahead > 1) search_slab(job, last, 1, one_ahead_gain);
    for (size_t i = 0; i < sizeof twelfths / sizeof twelfths[0] && last > 1; i++) {
        const int64_t slab = mx_max(1, plan.slab * twelfths[i] / 12);
        if (slab == last) continue;
        last = slab;
        search_slab(job, slab, job->base.ahead, 1);
        if (job->request->manual.ahead == 0 && job->base.ahead > 1) search_slab(job, slab, 1, one_ahead_gain);
    }
}

static void search_slabs(struct job *job) {
    search_relaxing(job);
    if (job->strategy->thin_slabs && job->base.slab == 0) search_thinner(job);
}

bool mx_job_may_file(const struct job *job) {
    return job->strategy->side_file && !job->resident && job->base.seams[0] == 0;
}

/* Seams in DRAM cost no transfers: a side file, which leaves more DRAM to the levels, has to pay. In seconds,
 * or, where those are the same, by half the bytes. */
static const double side_file_gain = 0.95, side_file_saving = 0.5;

/* What a side file may move at most to pay, 0 = anything: where computing decides it saves no seconds, for as
 * many cells are computed by any plan. */
static double most_that_pays(const struct job *job) {
    if (!job->found) return 0;
    struct mx_seconds s = seconds_of(job);
    return s.compute_s > side_file_gain * s.total_s ? side_file_saving * job->best.cost : job->best.cost;
}

static bool pays(const struct job *filed, const struct job *job) {
    if (!filed->found || !job->found) return filed->found;
    if (filed->best.cost >= job->best.cost) return false;
    double before = predicted(job), now = predicted(filed);
    return now <= side_file_gain * before ||
           (now <= same_seconds * before && filed->best.cost <= side_file_saving * job->best.cost);
}

static void search_side_file(struct job *job, const struct job *start) {
    struct job filed = *start;
    strcpy(filed.base.seams, MX_SEAMS_IN_FILE);
    filed.n_evaluated = job->n_evaluated;
    filed.most_cost = most_that_pays(job);
    filed.only_strips = true; /* whole planes have no seams: they have been looked at */
    search_slabs(&filed);
    job->n_evaluated = filed.n_evaluated;
    if (!pays(&filed, job)) return;
    job->found = true;
    job->best = filed.best;
}

int mx_tune_blk(struct job *job, mx_why *why) {
    struct job start = *job;
    (void)why;
    search_slabs(job);
    if (mx_job_may_file(job)) search_side_file(job, &start);
    return 0;
}
