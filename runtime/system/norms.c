/* SPDX-License-Identifier: BSD-3-Clause */
/* norms.c - norms of a state: rows come in any order, from any thread, and give the same sums to the bit. */
#include "system/norms.h"

#include "machine/size.h"

#include <errno.h>
#include <math.h>
#include <memext/backend.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 8 };
enum { NO_STEP = -1 };

/* One check under way. */
struct slot {
    _Atomic int64_t step; /* steps done after it; NO_STEP: free */
    _Atomic uint64_t
        most; /* greatest |change|: bits of an f64 >= 0 compare as the numbers do, and NaN is above */
    _Atomic int64_t rows;    /* that have come, again and again counted */
    _Atomic uint64_t *sum;   /* [sums * ny * nz]: of each row, bits of an f64 */
    _Atomic uint32_t *cells; /* [ny * nz]: that have come, of rows in spans; else NULL */
};

struct mx_norms {
    struct mx_norms_options o;
    struct mx_reduce reduce[MX_MAX_REDUCES];
    struct slot slot[MX_NORM_SLOTS];
    char *old;                      /* [threads * o.row_bytes] */
    _Atomic bool *old_taken;        /* [threads] */
    double *plane;                  /* [sums * planes of the grid] */
    int64_t rows;                   /* ny * nz */
    int32_t fields, squares;        /* of the state; those whose squares are summed: fields or none */
    int64_t levels_a_step, of_step; /* levels; the one of a step whose rows come */
    _Atomic int64_t clash;          /* a step whose slot another one had; NO_STEP: none */
};

static int64_t sums_of(const struct mx_norms_options *o) {
    return (o->rms_change ? mx_field_count(o->problem, 0) : 0) + o->n_reduce;
}

/* The step before is gone when the second level of a step is done. */
static bool keeps_old(const struct mx_norms_options *o) {
    return mx_states(o->problem) == 2 && (o->max_change || o->rms_change);
}

int64_t mx_norms_bytes(const struct mx_norms_options *o) {
    const int64_t rows = o->problem->ny * o->problem->nz;
    return MX_NORM_SLOTS * rows * (8 * sums_of(o) + (o->spans ? 4 : 0)) +
           8 * sums_of(o) * mx_all_planes(o->problem) + (keeps_old(o) ? o->threads * o->row_bytes : 0);
}

static bool make_old(struct mx_norms *n) {
    const size_t threads = keeps_old(&n->o) ? (size_t)n->o.threads : 0;
    n->old = malloc(threads * (size_t)n->o.row_bytes + 1);
    n->old_taken = calloc(threads + 1, sizeof *n->old_taken);
    return n->old != NULL && n->old_taken != NULL;
}

static bool make_slots(struct mx_norms *n) {
    const size_t sums = (size_t)(sums_of(&n->o) * n->rows);
    for (int i = 0; i < MX_NORM_SLOTS; i++) {
        struct slot *s = &n->slot[i];
        atomic_init(&s->step, NO_STEP);
        atomic_init(&s->most, 0);
        atomic_init(&s->rows, 0);
        s->sum = calloc(sums + 1, sizeof *s->sum);
        s->cells = n->o.spans ? calloc((size_t)n->rows, sizeof *s->cells) : NULL;
        if (s->sum == NULL || (n->o.spans && s->cells == NULL)) return false;
    }
    n->plane = calloc((size_t)(sums_of(&n->o) * mx_all_planes(n->o.problem)) + 1, sizeof *n->plane);
    return n->plane != NULL;
}

int mx_norms_make(const struct mx_norms_options *o, mx_why *why, struct mx_norms **out) {
    if (o->every < 1)
        return mx_fail(why, -EINVAL, "norms every %lld steps are not possible: give 1 or more",
                       (long long)o->every);
    if (o->n_reduce < 0 || o->n_reduce > MX_MAX_REDUCES)
        return mx_fail(why, -EINVAL, "the kernel has %d reductions; up to %d are possible", o->n_reduce,
                       MX_MAX_REDUCES);
    if (mx_has_stages(o->problem) && (o->max_change || o->rms_change))
        return mx_fail(why, -EINVAL,
                       "max-change and rms-change compare a step with the one before it, which a step of "
                       "%lld stages does not keep: name a reduction of the kernel",
                       (long long)mx_levels_a_step(o->problem));
    if (o->spans && mx_has_stages(o->problem))
        return mx_fail(why, -EINVAL,
                       "with steps of %lld stages, norms need whole rows of %lld cells, and --column cuts "
                       "rows: leave --column out",
                       (long long)mx_levels_a_step(o->problem), (long long)o->problem->nx);
    if (o->spans && mx_form(o->problem) == MX_STAGGERED && (o->max_change || o->rms_change))
        return mx_fail(why, -EINVAL,
                       "with a staggered kernel, max-change and rms-change need whole rows of %lld cells, "
                       "and --column cuts rows: leave --column out",
                       (long long)o->problem->nx);
    struct mx_norms *n = calloc(1, sizeof *n);
    if (n == NULL) return mx_fail(why, -ENOMEM, "no memory for norms");
    n->o = *o;
    n->rows = o->problem->ny * o->problem->nz;
    n->fields = mx_field_count(o->problem, 0);
    n->squares = o->rms_change ? n->fields : 0;
    n->levels_a_step = mx_levels_a_step(o->problem);
    n->of_step = mx_has_stages(o->problem) ? 0 : n->levels_a_step - 1;
    atomic_init(&n->clash, NO_STEP);
    if (o->n_reduce > 0) memcpy(n->reduce, o->reduce, (size_t)o->n_reduce * sizeof *o->reduce);
    n->o.reduce = n->reduce;
    if (!make_slots(n) || !make_old(n)) {
        mx_norms_free(n);
        return mx_fail(
            why, -ENOMEM,
            "norms of %lld rows need %s, and there is no memory for that; max-change alone needs none",
            (long long)(o->problem->ny * o->problem->nz), mx_size((uint64_t)mx_norms_bytes(o)).text);
    }
    *out = n;
    return 0;
}

void mx_norms_free(struct mx_norms *n) {
    if (n == NULL) return;
    for (int i = 0; i < MX_NORM_SLOTS; i++) {
        free((void *)n->slot[i].sum);
        free((void *)n->slot[i].cells);
    }
    free(n->plane);
    free(n->old);
    free((void *)n->old_taken);
    free(n);
}

bool mx_norms_is_check(const struct mx_norms *n, int64_t step) {
    return step % n->o.every == 0 || step == n->o.problem->nt;
}

/* The step that a level belongs to, counted by what is done after it. */
static int64_t step_of(const struct mx_norms *n, int64_t level) { return level / n->levels_a_step + 1; }

bool mx_norms_due(const struct mx_norms *n, int64_t level) {
    return level % n->levels_a_step == n->of_step && mx_norms_is_check(n, step_of(n, level));
}

bool mx_norms_in_whole_rows(const struct mx_norms *n, int64_t levels) {
    return (keeps_old(&n->o) || n->of_step != n->levels_a_step - 1) &&
           mx_norms_is_check(n, levels / n->levels_a_step);
}

bool mx_norms_needs_old(const struct mx_norms *n, int64_t level) {
    return keeps_old(&n->o) && mx_norms_due(n, level);
}

bool mx_norms_reduces(const struct mx_norms *n) { return n->o.n_reduce > 0; }

char *mx_norms_old_take(struct mx_norms *n) {
    for (int32_t i = 0;; i = i + 1 < n->o.threads ? i + 1 : 0)
        if (!atomic_exchange_explicit(&n->old_taken[i], true, memory_order_acquire))
            return n->old + i * n->o.row_bytes;
}

void mx_norms_old_give(struct mx_norms *n, char *row) {
    atomic_store_explicit(&n->old_taken[(row - n->old) / n->o.row_bytes], false, memory_order_release);
}

/* A sweep that ends at step s begins when all up to s - 2 * every + 1 are taken: of three checks the first is
 * then taken before the last begins, or, where that is the run's last step, of four. */
int64_t mx_norms_most_ahead(const struct mx_norms *n) { return (2 * n->o.every - 1) * n->levels_a_step; }

/* ------------------------------------------------------------------ one row */

struct change {
    double lane[LANES], most[LANES];
};

/* Adds one cell. The difference of floating-point numbers is computed in the field's type, as NumPy does;
 * that of integers in f64, where it does not wrap. */
static inline void change_of_cell(struct change *c, int k, double d) {
    const double size = fabs(d);
    c->lane[k] += d * d;
    c->most[k] = size > c->most[k] || size != size ? size : c->most[k];
}

/* The same for four cells side by side: gcc makes scalar code of eight lanes in a struct, five times as slow.
 */
enum { SIDE = 4, SIDES = LANES / SIDE };
typedef double side __attribute__((vector_size(32)));
typedef int64_t side_bits __attribute__((vector_size(32)));
typedef double double_cells __attribute__((vector_size(32)));
typedef float float_cells __attribute__((vector_size(16)));

#define CHANGE_OF(type)                                                                                      \
    static inline __attribute__((always_inline)) void change_##type(const type *now, const type *old,        \
                                                                    int64_t n, struct change *c) {           \
        side lane[SIDES], most[SIDES];                                                                       \
        int64_t x = 0;                                                                                       \
        memcpy(lane, c->lane, sizeof lane);                                                                  \
        memcpy(most, c->most, sizeof most);                                                                  \
        for (; x + LANES <= n; x += LANES)                                                                   \
            for (int i = 0; i < SIDES; i++) {                                                                \
                type##_cells a, b;                                                                           \
                memcpy(&a, now + x + i * SIDE, sizeof a);                                                    \
                memcpy(&b, old + x + i * SIDE, sizeof b);                                                    \
                const side d = __builtin_convertvector(a - b, side);                                         \
                const side size = (side)((side_bits)d & INT64_MAX);                                          \
                const side_bits take = (size > most[i]) | (size != size);                                    \
                lane[i] += d * d;                                                                            \
                most[i] = (side)((take & (side_bits)size) | (~take & (side_bits)most[i]));                   \
            }                                                                                                \
        memcpy(c->lane, lane, sizeof lane);                                                                  \
        memcpy(c->most, most, sizeof most);                                                                  \
        for (int k = 0; x + k < n; k++) change_of_cell(c, k, (double)(type)(now[x + k] - old[x + k]));       \
    }
CHANGE_OF(double)
CHANGE_OF(float)

static void change_whole(enum mx_dtype dtype, const void *now, const void *old, int64_t n, struct change *c) {
    for (int64_t x = 0; x < n; x++)
        change_of_cell(c, (int)(x % LANES), mx_cell_load(dtype, now, x) - mx_cell_load(dtype, old, x));
}

static void change_plain(bool wide, const void *now, const void *old, int64_t n, struct change *c) {
    wide ? change_double(now, old, n, c) : change_float(now, old, n, c);
}

#if defined(__x86_64__)
/* The same additions in the same order, on wider registers. */
__attribute__((target("avx2"))) static void change_avx2(bool wide, const void *now, const void *old,
                                                        int64_t n, struct change *c) {
    wide ? change_double(now, old, n, c) : change_float(now, old, n, c);
}
static void change_of_row(bool wide, const void *now, const void *old, int64_t n, struct change *c) {
    if (__builtin_cpu_supports("avx2"))
        change_avx2(wide, now, old, n, c);
    else
        change_plain(wide, now, old, n, c);
}
#else
static void change_of_row(bool wide, const void *now, const void *old, int64_t n, struct change *c) {
    change_plain(wide, now, old, n, c);
}
#endif

static uint64_t bits_of(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static double of_bits(uint64_t bits) {
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static double sum_of_lanes(const double lane[LANES]) {
    double sum = 0;
    for (int k = 0; k < LANES; k++) sum += lane[k];
    return sum;
}

/* NaN, once there, stays. */
static double most_of(double a, double b) { return b > a || b != b ? b : a; }
static double least_of(double a, double b) { return b < a || b != b ? b : a; }

/* Of values of a reduction: what there is before the first, and with one more. */
static double none_of(int32_t kind) { return kind == MX_SUM ? 0 : kind == MX_MAX ? -INFINITY : INFINITY; }
static double with(int32_t kind, double all, double value) {
    return kind == MX_SUM ? all + value : kind == MX_MAX ? most_of(all, value) : least_of(all, value);
}

static void raise_to(_Atomic uint64_t *most, double value) {
    const uint64_t mine = bits_of(value);
    uint64_t there = atomic_load_explicit(most, memory_order_relaxed);
    while (mine > there && !atomic_compare_exchange_weak_explicit(most, &there, mine, memory_order_relaxed,
                                                                  memory_order_relaxed)) {
    }
}

static void change_row(struct mx_norms *n, struct slot *s, const struct mx_norm_row *row, int64_t at) {
    const struct mx_problem *p = n->o.problem;
    double most = 0;
    for (int32_t f = 0; f < n->fields; f++) {
        const enum mx_dtype dtype = mx_field_dtype(p, 0, f);
        const int64_t offset = row->field_offset_bytes[f] + p->h * mx_dtype_bytes(dtype);
        struct change c = {0};
        if (mx_dtype_is_real(dtype))
            change_of_row(dtype == MX_F64, row->now + offset, row->old + offset, p->nx, &c);
        else
            change_whole(dtype, row->now + offset, row->old + offset, p->nx, &c);
        for (int k = 0; k < LANES; k++) most = most_of(most, c.most[k]);
        if (f < n->squares)
            atomic_store_explicit(&s->sum[f * n->rows + at], bits_of(sum_of_lanes(c.lane)),
                                  memory_order_relaxed);
    }
    if (n->o.max_change) raise_to(&s->most, fabs(most));
}

/* Cells of a row, the first of them one of lane 0. */
static void reduce_cells(int32_t kind, const double *value, int64_t n, double lane[LANES]) {
    int64_t x = 0;
    if (kind == MX_SUM) {
        for (; x + LANES <= n; x += LANES)
            for (int k = 0; k < LANES; k++) lane[k] += value[x + k];
        for (int k = 0; x + k < n; k++) lane[k] += value[x + k];
    } else if (kind == MX_MAX) {
        for (; x < n; x++) lane[x % LANES] = most_of(lane[x % LANES], value[x]);
    } else {
        for (; x < n; x++) lane[x % LANES] = least_of(lane[x % LANES], value[x]);
    }
}

/* Sum, maximum or minimum of a row's lanes, kept as that of quantity i. */
static void keep_reduce(struct mx_norms *n, struct slot *s, int32_t i, int64_t at, const double lane[LANES]) {
    const int32_t kind = n->reduce[i].kind;
    double value = none_of(kind);
    for (int k = 0; k < LANES; k++) value = with(kind, value, lane[k]);
    atomic_store_explicit(&s->sum[(n->squares + i) * n->rows + at], bits_of(value), memory_order_relaxed);
}

static void reduce_row(struct mx_norms *n, struct slot *s, const struct mx_norm_row *row, int64_t at) {
    enum { CELLS = 64 * LANES };
    for (int32_t i = 0; i < n->o.n_reduce; i++) {
        const int32_t kind = n->reduce[i].kind;
        double lane[LANES], of_cell[CELLS];
        struct mx_row r = *row->r;
        for (int k = 0; k < LANES; k++) lane[k] = none_of(kind);
        for (; r.x0 < row->r->x1; r.x0 = r.x1) {
            r.x1 = r.x0 + CELLS < row->r->x1 ? r.x0 + CELLS : row->r->x1;
            n->reduce[i].value(&r, of_cell);
            reduce_cells(kind, of_cell, r.x1 - r.x0, lane);
        }
        keep_reduce(n, s, i, at, lane);
    }
}

/* The slot of a check, which the first row of it takes. NULL: another check has it still. */
static struct slot *slot_of(struct mx_norms *n, int64_t step) {
    struct slot *s = &n->slot[mx_check_number(step, n->o.every) % MX_NORM_SLOTS];
    int64_t there = atomic_load_explicit(&s->step, memory_order_acquire);
    if (there == step) return s;
    if (there == NO_STEP && atomic_compare_exchange_strong(&s->step, &there, step)) return s;
    if (there == step) return s;
    atomic_store(&n->clash, step);
    return NULL;
}

/* Whether these cells make the row whole. What other threads wrote of it is seen then. */
static bool is_whole(const struct mx_norms *n, struct slot *s, const struct mx_norm_row *row, int64_t at) {
    const int64_t nx = n->o.problem->nx, cells = row->x1 - row->x0;
    if (cells == nx || s->cells == NULL) return true;
    const uint32_t before = atomic_fetch_add_explicit(&s->cells[at], (uint32_t)cells, memory_order_acq_rel);
    return (uint32_t)(before + cells) % (uint32_t)nx == 0;
}

void mx_norms_row(struct mx_norms *n, const struct mx_norm_row *row) {
    const int64_t step = step_of(n, row->level), at = row->z * n->o.problem->ny + row->y;
    struct slot *s = slot_of(n, step);
    if (s == NULL || !is_whole(n, s, row, at)) return;
    if (n->o.max_change || n->o.rms_change) change_row(n, s, row, at);
    if (n->o.n_reduce > 0) reduce_row(n, s, row, at);
    atomic_fetch_add_explicit(&s->rows, 1, memory_order_release);
}

const struct mx_norms_options *mx_norms_asked(const struct mx_norms *n) { return &n->o; }

void mx_norms_lanes(struct mx_norms *n, const struct mx_norm_lanes *row) {
    const int64_t step = step_of(n, row->level), at = row->z * n->o.problem->ny + row->y;
    struct slot *s = slot_of(n, step);
    if (s == NULL) return;
    for (int32_t f = 0; f < n->squares; f++)
        atomic_store_explicit(&s->sum[f * n->rows + at], bits_of(sum_of_lanes(row->squares + f * LANES)),
                              memory_order_relaxed);
    double most = 0;
    for (int k = 0; k < LANES && n->o.max_change; k++) most = most_of(most, row->most[k]);
    if (n->o.max_change) raise_to(&s->most, fabs(most));
    for (int32_t i = 0; i < n->o.n_reduce; i++) keep_reduce(n, s, i, at, row->reduce[i]);
    atomic_fetch_add_explicit(&s->rows, 1, memory_order_release);
}

/* ------------------------------------------------------------------ the end of a check */

/* Rows of a plane, in order. */
static double plane_of(const struct mx_norms *n, const struct slot *s, int64_t sum, int64_t z) {
    const int64_t ny = n->o.problem->ny;
    const int32_t kind = sum < n->squares ? MX_SUM : n->reduce[sum - n->squares].kind;
    double value = none_of(kind);
    for (int64_t y = 0; y < ny; y++) {
        const double row =
            of_bits(atomic_load_explicit(&s->sum[sum * n->rows + z * ny + y], memory_order_relaxed));
        value = with(kind, value, row);
    }
    return value;
}

/* The planes of every sum: squares first, then reductions. */
static int take_planes(struct mx_norms *n, const struct slot *s, uint64_t *most, mx_why *why) {
    const struct mx_problem *p = n->o.problem;
    const int64_t sums = n->squares + n->o.n_reduce, all = mx_all_planes(p);
    for (int64_t i = 0; i < sums; i++)
        for (int64_t z = 0; z < p->nz; z++) n->plane[i * all + p->first_plane + z] = plane_of(n, s, i, z);
    return n->o.join != NULL ? n->o.join(n->o.context, sums, n->plane, most, why) : 0;
}

static double divide(double range, double mean) {
    return mean == 0 && !isnan(range) ? INFINITY : range / mean;
}

/* Of planes that are exactly 0 at an end nothing may count there; in between they are numbers as all are. */
static void take_spread(const double *plane, int64_t nz, int32_t i, struct mx_norms_result *out) {
    int64_t first = 0, end = nz;
    double sum = 0, least = INFINITY, most = -INFINITY;
    if (end - first > 2 && plane[first] == 0) first++;
    if (end - first > 2 && plane[end - 1] == 0) end--;
    for (int64_t z = first; z < end; z++) {
        sum += plane[z];
        least = least_of(least, plane[z]);
        most = most_of(most, plane[z]);
    }
    out->range[i] = most - least;
    out->mean[i] = fabs(sum / (double)(end - first));
    out->spread[i] = divide(out->range[i], out->mean[i]);
}

static void take_reduce(const struct mx_norms *n, int32_t i, struct mx_norms_result *out) {
    const int32_t kind = n->reduce[i].kind;
    const int64_t nz = mx_all_planes(n->o.problem);
    const double *plane = n->plane + (n->squares + i) * nz;
    double all = none_of(kind);
    for (int64_t z = 0; z < nz; z++) all = with(kind, all, plane[z]);
    out->reduce[i] = all;
    out->plane[i] = plane;
    take_spread(plane, nz, i, out);
}

static void clear(struct mx_norms *n, struct slot *s) {
    if (s->cells != NULL) memset((void *)s->cells, 0, (size_t)n->rows * sizeof *s->cells);
    atomic_store(&s->most, 0);
    atomic_store(&s->rows, 0);
    atomic_store_explicit(&s->step, NO_STEP, memory_order_release);
}

int mx_norms_take(struct mx_norms *n, int64_t step, mx_why *why, struct mx_norms_result *out) {
    const struct mx_problem *p = n->o.problem;
    struct slot *s = NULL;
    for (int i = 0; i < MX_NORM_SLOTS; i++)
        if (atomic_load_explicit(&n->slot[i].step, memory_order_acquire) == step) s = &n->slot[i];
    const int64_t rows = s != NULL ? atomic_load_explicit(&s->rows, memory_order_acquire) : 0;
    const int64_t clash = atomic_load(&n->clash);
    if (rows < n->rows || clash != NO_STEP)
        return mx_fail(why, -EIO,
                       "internal error (the norms of step %lld have %lld of %lld rows%s); please report it",
                       (long long)step, (long long)rows, (long long)n->rows,
                       clash != NO_STEP ? ", and another check overlapped them" : "");
    struct mx_norms_result r = {.step = step, .n_reduce = n->o.n_reduce};
    const int64_t planes = mx_all_planes(p);
    uint64_t most = atomic_load(&s->most);
    const int err = take_planes(n, s, &most, why);
    if (err < 0) return err;
    r.max_change = n->o.max_change ? of_bits(most) : NAN;
    double squares = 0;
    for (int32_t f = 0; f < n->squares; f++) {
        double field = 0;
        for (int64_t z = 0; z < planes; z++) field += n->plane[f * planes + z];
        squares += field;
    }
    /* pow, not sqrt: these are the bits of Python's ** 0.5 */
    const double cells = (double)n->fields * (double)p->nx * (double)p->ny * (double)planes;
    r.rms_change = n->o.rms_change ? pow(squares / cells, 0.5) : NAN;
    for (int32_t i = 0; i < n->o.n_reduce; i++) take_reduce(n, i, &r);
    clear(n, s);
    *out = r;
    return 0;
}
