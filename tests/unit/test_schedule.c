/* SPDX-License-Identifier: BSD-3-Clause */
/* test_schedule.c - schedules by execution: an interpreter of steps, in order, on one element per x row.
 *
 * The plain loop is u_{t+1}(y,z) = f(u_t in a box of radius h around (y,z)), frame constant; of systems also
 * of the value that is replaced, and of C in a box of radius hc. For every algorithm and setting: after each
 * COMMIT at time t, Buffer == u_t bit by bit, frame included, and the other one of its pair == u_{t-1}; no
 * computed value is NaN though Blocks, unneeded Buffers and cells of C that are not there start as NaN; no
 * access leaves an array; and the rows moved times their pitch, with the spans of C, == traffic(). Sweeps end
 * at due steps, and where they are shorter than the longest nowhere else.
 */
#include "effort.h"
#include "grid/grid.h"
#include "schedule/geometry.h"
#include "schedule/schedule.h"
#include "system/sides.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PITCH = 64, PLANE_PAD = 192 };

static uint64_t seed_state;
static uint64_t draw(void) {
    seed_state ^= seed_state << 13, seed_state ^= seed_state >> 7, seed_state ^= seed_state << 17;
    return seed_state;
}
static int64_t between(int64_t lo, int64_t hi) { return lo + (int64_t)(draw() % (uint64_t)(hi - lo + 1)); }

/* ------------------------------------------------------------------ the plain loop */

struct field {
    double *v;
    int64_t rows, planes;
};

static double *cell(const struct field *f, int64_t y, int64_t z) {
    cr_assert(y >= 0 && y < f->rows && z >= 0 && z < f->planes, "(%ld,%ld) outside %ldx%ld", y, z, f->rows,
              f->planes);
    return &f->v[z * f->rows + y];
}

static struct field make_field(int64_t rows, int64_t planes) {
    struct field f = {malloc((size_t)(rows * planes + 1) * sizeof(double)), rows, planes};
    for (int64_t i = 0; i < rows * planes; i++) f.v[i] = NAN;
    return f;
}

static void copy_field(const struct field *to, const struct field *from) {
    memcpy(to->v, from->v, (size_t)(to->rows * to->planes) * sizeof(double));
}

/* The stencil touches the axes and the corners of its box, as box27 does. */
typedef double *at_fn(void *context, int64_t y, int64_t z);
static double stencil(at_fn *at, void *context, int64_t y, int64_t z, int64_t h) {
    double sum = 0.4 * *at(context, y, z);
    for (int64_t d = 1; d <= h; d++) {
        double w = 0.1 / (double)d;
        sum += w * *at(context, y - d, z) + 0.7 * w * *at(context, y + d, z);
        sum += 0.9 * w * *at(context, y, z - d) + 0.6 * w * *at(context, y, z + d);
    }
    sum += 0.011 * *at(context, y - h, z - h) + 0.013 * *at(context, y + h, z - h);
    return sum + 0.017 * *at(context, y - h, z + h) + 0.019 * *at(context, y + h, z + h);
}

static double *at_field(void *context, int64_t y, int64_t z) { return cell(context, y, z); }

/* What C adds to a cell: its box's corners and middle. */
static double of_fixed(const struct mx_problem *p, at_fn *at, void *context, int64_t y, int64_t z) {
    int64_t hc = p->system->hc;
    double sum = 0.2 * *at(context, y, z) + 0.03 * *at(context, y - hc, z - hc);
    return sum + 0.05 * *at(context, y + hc, z + hc) + 0.07 * *at(context, y + hc, z - hc);
}

/* The value of a cell before C: every level has a formula of its own. */
static double of_state(const struct mx_problem *p, double box, double old, int64_t level) {
    double value = box + 1e-3 * (double)level;
    if (mx_form(p) == MX_STAGGERED) value *= level & 1 ? 0.5 : 0.75;
    return mx_reads_old(p) ? value - 0.4 * old : value;
}

static void plain_level(const struct mx_problem *p, struct field *from, struct field *to, struct field *fixed,
                        int64_t level) {
    if (!mx_reads_old(p)) copy_field(to, from);
    for (int64_t z = p->h; z < p->nz + p->h; z++)
        for (int64_t y = p->h; y < p->ny + p->h; y++) {
            double v = of_state(p, stencil(at_field, from, y, z, p->h), *cell(to, y, z), level);
            for (int32_t i = 0; i < mx_fixed_count(p); i++) v += of_fixed(p, at_field, &fixed[i], y, z);
            *cell(to, y, z) = v;
        }
}

/* ------------------------------------------------------------------ the interpreter */

enum { HISTORY = 4096, RINGS = 3 }; /* two arrays, and C */
struct touched {                    /* by a step, of each array, as planes of the endless row */
    struct mx_planes touches[RINGS], writes[RINGS];
    int64_t group;                                    /* LOADs, STOREs: which front's */
    int64_t advances;                                 /* before it */
    int64_t loads, stores, load_groups, store_groups; /* steps before it */
};

struct sim {
    const struct mx_algorithm *algorithm;
    const struct mx_problem *p;
    const struct mx_plan *plan;
    struct mx_shape shape;
    struct field buffer[2][2], array[2]; /* [of a schedule][of a pair] */
    struct field reference[2];           /* [level & 1] */
    struct field fixed[MX_MAX_FIXED], fixed_array[MX_MAX_FIXED];
    struct mx_layout layout;
    struct field seams, side_file; /* array of seams; where the store is a file, that too */
    int64_t reference_time, committed;
    struct mx_traffic moved;
    int64_t slots[RINGS];
    int64_t load_groups, store_groups, last_store;
    int64_t used_rows, used_slots; /* largest position + 1 */
    /* read-ahead of stream */
    int64_t advances, n_loads, n_stores;
    struct touched load[HISTORY], store[HISTORY], advance[HISTORY];
    int64_t pass, n_slots, slot[HISTORY][2]; /* of seams, in this pass */
};

struct plane_view {
    struct sim *s;
    struct mx_placement at;
    int array;
};

static double *at_array(void *context, int64_t y, int64_t z) {
    const struct plane_view *v = context;
    int64_t row = y + v->at.y_offset, slot = (z + v->at.z_offset) % v->s->slots[v->array];
    cr_assert(z + v->at.z_offset >= 0);
    if (row >= v->s->used_rows) v->s->used_rows = row + 1;
    if (slot >= v->s->used_slots) v->s->used_slots = slot + 1;
    return cell(&v->s->array[v->array], row, slot);
}

struct fixed_view {
    struct sim *s;
    struct mx_placement at;
    int32_t field;
};

/* A cell of C in DRAM; mapped, in the file. */
static double *at_fixed(void *context, int64_t y, int64_t z) {
    const struct fixed_view *v = context;
    struct sim *s = v->s;
    if (s->shape.rows == 0) return cell(&s->fixed[v->field], y, z);
    cr_assert(z + v->at.z_offset >= 0);
    return cell(&s->fixed_array[v->field], y + v->at.y_offset, (z + v->at.z_offset) % s->shape.fixed_slots);
}

static void check_region(const struct sim *s, struct mx_region r) {
    cr_assert(r.y0 >= 0 && r.y0 < r.y1 && r.y1 <= s->p->ny + 2 * s->p->h);
    cr_assert(r.z0 >= 0 && r.z0 < r.z1 && r.z1 <= s->p->nz + 2 * s->p->h);
}

/* Seam slabs in whole levels between the side file and a slot of the array. */
static void transfer_seams(struct sim *s, const struct mx_step *t) {
    const struct mx_region *r = &t->region;
    int64_t level = s->shape.seam_planes * s->shape.seam_rows, slab = s->shape.max_levels * level;
    int64_t slot = r->z0 + t->at.z_offset;
    bool load = t->kind == MX_STEP_LOAD;
    cr_assert(s->shape.seams_in_file && t->array == MX_SEAMS && !t->whole_planes && t->at.y_offset == 0);
    cr_assert(r->z0 >= 0 && r->z1 == r->z0 + 1 && r->z1 <= s->shape.seam_slabs);
    cr_assert(r->y0 >= 0 && r->y0 < r->y1 && r->y1 <= slab && r->y0 % level == 0 && r->y1 % level == 0);
    cr_assert(slot >= 0 && slot < s->shape.seam_slots);
    double *file = s->side_file.v + r->z0 * slab, *dram = s->seams.v + slot * slab;
    for (int64_t i = r->y0; i < r->y1; i++) *(load ? &dram[i] : &file[i]) = load ? file[i] : dram[i];
    *(load ? &s->moved.read_bytes : &s->moved.write_bytes) += mx_region_rows(*r) * PITCH;
}

/* Rows of one plane of C: what is transferred holds them, lies in the file (or its last unit) and fits where
 * it goes in DRAM. */
static int64_t fixed_bytes(const struct sim *s, const struct mx_step *t, int32_t field, int64_t z) {
    const struct mx_fixed_layout *f = &s->layout.fixed[field];
    const struct mx_region *r = &t->region;
    int64_t align = f->align_bytes, row0 = f->offset_bytes + z * f->plane_pitch_bytes;
    uint64_t offset, bytes;
    mx_fixed_span(f, z, r->y0, r->y1, &offset, &bytes);
    int64_t begin = (int64_t)offset, end = begin + (int64_t)bytes;
    cr_assert(begin % align == 0 && end % align == 0);
    cr_assert(begin >= 0 && end < f->bytes + align, "%ld..%ld of %ld", begin, end, f->bytes);
    int64_t first = row0 + r->y0 * f->row_pitch_bytes + f->lead_bytes;
    int64_t last = row0 + (r->y1 - 1) * f->row_pitch_bytes + f->lead_bytes + f->row_bytes;
    cr_assert(begin <= first && first < begin + align && last <= end && end < last + align);
    int64_t a = row0 - t->at.y_offset * f->row_pitch_bytes, shift = ((a % align) + align) % align;
    cr_assert(begin >= a - shift && end <= a - shift + mx_fixed_slot_bytes(f, s->shape.rows));
    return (int64_t)bytes;
}

static void transfer_fixed(struct sim *s, const struct mx_step *t) {
    struct fixed_view v = {s, t->at, t->array - MX_FIXED_ARRAY};
    const struct mx_region *r = &t->region;
    cr_assert(t->kind == MX_STEP_LOAD && t->buffer == t->array && t->part == 0 && !t->whole_planes);
    cr_assert(v.field < mx_fixed_count(s->p) && s->shape.rows > 0);
    check_region(s, *r);
    cr_assert(r->z1 - r->z0 <= s->shape.fixed_slots);
    for (int64_t z = r->z0; z < r->z1; z++) {
        for (int64_t y = r->y0; y < r->y1; y++) {
            double c = *cell(&s->fixed[v.field], y, z);
            cr_assert(!isnan(c), "(%ld,%ld) of C is not there", y, z);
            *at_fixed(&v, y, z) = c;
        }
        int64_t bytes = fixed_bytes(s, t, v.field, z);
        s->moved.read_bytes += bytes;
        s->moved.fixed_read_bytes += bytes;
    }
}

static void transfer(struct sim *s, const struct mx_step *t) {
    if (t->buffer == MX_SEAMS) {
        transfer_seams(s, t);
        return;
    }
    if (t->buffer >= MX_FIXED_ARRAY) {
        transfer_fixed(s, t);
        return;
    }
    cr_assert(t->part == 0 || s->shape.pairs);
    cr_assert(t->buffer == 0 || !s->shape.pairs || !s->shape.in_place);
    struct plane_view v = {s, t->at, t->array};
    const struct mx_region *r = &t->region;
    check_region(s, *r);
    cr_assert(r->z1 - r->z0 <= s->slots[t->array]);
    cr_assert_eq(t->whole_planes, s->shape.whole_planes);
    if (t->whole_planes) cr_assert(r->y0 == 0 && r->y1 == s->p->ny + 2 * s->p->h && t->at.y_offset == 0);
    for (int64_t z = r->z0; z < r->z1; z++)
        for (int64_t y = r->y0; y < r->y1; y++) {
            double *block = at_array(&v, y, z), *buffer = cell(&s->buffer[t->buffer][t->part], y, z);
            if (t->kind == MX_STEP_LOAD)
                *block = *buffer;
            else
                *buffer = *block;
        }
    int64_t plane = (s->p->ny + 2 * s->p->h) * PITCH + PLANE_PAD;
    int64_t bytes = t->whole_planes ? (r->z1 - r->z0) * plane : mx_region_rows(*r) * PITCH;
    *(t->kind == MX_STEP_LOAD ? &s->moved.read_bytes : &s->moved.write_bytes) += bytes;
}

static void copy(struct sim *s, const struct mx_step *t) {
    struct plane_view from = {s, t->at, t->array}, to = {s, t->to, t->to_array};
    const struct mx_region *r = &t->region;
    check_region(s, *r);
    double row[512];
    cr_assert(r->y1 - r->y0 <= 512);
    for (int64_t z = r->z0; z < r->z1; z++) {
        for (int64_t y = r->y0; y < r->y1; y++) row[y - r->y0] = *at_array(&from, y, z);
        for (int64_t y = r->y0; y < r->y1; y++) *at_array(&to, y, z) = row[y - r->y0];
    }
    if (t->frame)
        cr_assert(t->array != t->to_array && memcmp(&t->at, &t->to, sizeof t->at) == 0);
    else
        s->moved.copy_bytes += mx_region_rows(*r) * PITCH;
}

static struct mx_seam_planes seam_planes(const struct mx_step *t, int32_t level) {
    const struct mx_seam seam = {.front = t->front, .first_z = t->seam_z, .n_planes = t->seam_nz};
    return mx_seam_planes(&seam, level);
}

/* Level l of the seams: what the strip before left goes in, what the next one needs goes out. */
static void move_seams(struct sim *s, const struct mx_step *t, int32_t level) {
    struct plane_view v = {s, t->at, (t->parity + level) & 1};
    for (int out = 0; out < 2; out++) {
        int64_t slot = out ? t->seam_out : t->seam_in;
        if (slot < 0) continue;
        const int32_t *y0 = out ? t->seam_out_y : t->seam_in_y, *n = out ? t->seam_out_n : t->seam_in_n;
        cr_assert(slot < s->shape.seam_slots && level < s->shape.max_levels);
        const struct mx_seam_planes planes = seam_planes(t, level);
        cr_assert(planes.z1 - planes.z0 <= s->shape.seam_planes && n[level] <= s->shape.seam_rows);
        cr_assert(planes.z0 >= planes.z1 || (level >= t->first && level <= t->end));
        int64_t base = (slot * s->shape.max_levels + level) * s->shape.seam_planes;
        for (int64_t z = 0; z < planes.z1 - planes.z0; z++)
            for (int64_t y = 0; y < n[level]; y++) {
                cr_assert(planes.z0 + z >= t->region.z0 && planes.z0 + z < t->region.z1);
                double *inside = at_array(&v, y0[level] + y, planes.z0 + z);
                double *outside = cell(&s->seams, y, base + z);
                if (out) cr_assert(!isnan(*inside));
                *(out ? outside : inside) = *(out ? inside : outside);
            }
    }
}

static void compute(struct sim *s, const struct mx_step *t, int32_t l) {
    const struct mx_window window = mx_step_window(t, l), *w = &window;
    const struct mx_region *r = &t->region;
    int64_t h = s->p->h;
    struct plane_view from = {s, t->at, (t->parity + l) & 1}, to = {s, t->at, (t->parity + l + 1) & 1};
    if (w->y0 >= w->y1 || w->z0 >= w->z1) return;
    cr_assert(l >= t->first && l < t->end);
    cr_assert(w->y0 >= h && w->y1 <= s->p->ny + h && w->z0 >= h && w->z1 <= s->p->nz + h);
    cr_assert(w->y0 - h >= r->y0 && w->y1 + h <= r->y1 && w->z0 - h >= r->z0 && w->z1 + h <= r->z1);
    cr_assert(w->z0 >= t->writes[to.array].z0 && w->z1 <= t->writes[to.array].z1);
    cr_assert(w->z0 - h >= t->touches[from.array].z0 && w->z1 + h <= t->touches[from.array].z1);
    if (mx_fixed_count(s->p) > 0)
        cr_assert(w->z0 - s->p->system->hc >= t->fixed.z0 && w->z1 + s->p->system->hc <= t->fixed.z1);
    for (int64_t z = w->z0; z < w->z1; z++)
        for (int64_t y = w->y0; y < w->y1; y++) {
            double old = mx_reads_old(s->p) ? *at_array(&to, y, z) : 0;
            double value = of_state(s->p, stencil(at_array, &from, y, z, h), old, t->first_level + l);
            for (int32_t i = 0; i < mx_fixed_count(s->p); i++)
                value += of_fixed(s->p, at_fixed, &(struct fixed_view){s, t->at, i}, y, z);
            cr_assert(!isnan(value), "level %d of (%ld,%ld) reads what was never loaded", l + 1, y, z);
            *at_array(&to, y, z) = value;
        }
    s->moved.updates += (w->y1 - w->y0) * (w->z1 - w->z0) * s->p->nx;
}

/* The slots of the last `ahead` ADVANCEs of a pass are others: their seams may still be under way. (With
 * fewer planes than the halo has, the front moves on between levels without an ADVANCE.) */
static void check_slots(struct sim *s, const struct mx_step *t) {
    int64_t ahead = s->plan->ahead > 0 ? s->plan->ahead : 2;
    if (s->pass != t->at.z_offset || s->p->nz < s->p->h) s->pass = t->at.z_offset, s->n_slots = 0;
    for (int64_t i = s->n_slots; i-- > 0 && i >= s->n_slots - ahead;)
        for (int out = 0; out < 2; out++) {
            cr_assert(t->seam_in < 0 || t->seam_in != s->slot[i][out]);
            cr_assert(t->seam_out < 0 || t->seam_out != s->slot[i][out]);
        }
    cr_assert(s->n_slots < HISTORY && (t->seam_in < 0 || t->seam_in != t->seam_out));
    s->slot[s->n_slots][0] = t->seam_in, s->slot[s->n_slots++][1] = t->seam_out;
}

static void advance(struct sim *s, const struct mx_step *t) {
    check_region(s, t->region);
    check_slots(s, t);
    cr_assert_eq(t->first_level, s->committed);
    cr_assert(mx_fixed_count(s->p) > 0 || t->fixed.z0 >= t->fixed.z1);
    cr_assert(t->levels >= 1 && t->levels <= s->shape.max_levels);
    for (int a = 0; a < 2; a++) cr_assert(t->region.z1 - t->region.z0 <= s->slots[a]);
    int64_t seam = 0;
    for (int32_t l = 0; l < t->levels && (t->seam_in >= 0 || t->seam_out >= 0); l++)
        if (seam_planes(t, l).z0 < seam_planes(t, l).z1)
            seam += s->shape.seam_planes * s->shape.seam_rows * PITCH;
    if (t->seam_in >= 0) s->moved.seam_read_bytes += seam;
    if (t->seam_out >= 0) s->moved.seam_write_bytes += seam;
    if (t->seam_in >= 0 || t->seam_out >= 0) move_seams(s, t, 0);
    for (int32_t l = 0; l < t->levels; l++) {
        compute(s, t, l);
        if (l + 1 < t->levels && (t->seam_in >= 0 || t->seam_out >= 0)) move_seams(s, t, l + 1);
    }
}

static bool is_due(const struct mx_problem *p, int64_t level) {
    const int64_t unit = mx_levels_a_step(p), step = p->done + level / unit;
    if (level % unit != 0) return false;
    return (p->due[0] > 0 && step % p->due[0] == 0) || (p->due[1] > 0 && step % p->due[1] == 0);
}

static void check_sweep(const struct sim *s, int64_t from, int64_t end) {
    const bool last = end == mx_levels_of(s->p, s->p->nt);
    for (int64_t l = from + 1; l < end; l++) cr_assert(!is_due(s->p, l), "%ld..%ld", from, end);
    cr_assert_leq(end - from, s->shape.max_levels);
    cr_assert(end - from == s->shape.max_levels || last || is_due(s->p, end), "%ld..%ld", from, end);
}

static void commit(struct sim *s, const struct mx_step *t) {
    cr_assert(t->time > s->committed && t->time <= mx_levels_of(s->p, s->p->nt));
    cr_assert(t->time % mx_levels_a_step(s->p) == 0);
    check_sweep(s, s->committed, t->time);
    s->committed = t->time;
    for (; s->reference_time < t->time; s->reference_time++) {
        int64_t from = s->reference_time & 1;
        plain_level(s->p, &s->reference[from], &s->reference[1 - from], s->fixed, s->reference_time);
    }
    int64_t last = t->time & 1;
    size_t bytes = (size_t)(s->reference[0].rows * s->reference[0].planes) * sizeof(double);
    for (int64_t part = 0; part <= s->shape.pairs; part++) {
        int64_t level = s->shape.pairs ? part : last;
        cr_assert(memcmp(s->reference[level].v, s->buffer[t->buffer][part].v, bytes) == 0,
                  "level %ld, array %ld differs", t->time, part);
    }
}

/* ------------------------------------------------------------------ read-ahead */

static void note(struct sim *s, const struct mx_step *t) {
    if (t->buffer == MX_SEAMS) return;
    bool moves = t->kind == MX_STEP_LOAD || t->kind == MX_STEP_STORE, load = t->kind == MX_STEP_LOAD;
    s->load_groups += load && t->array == 0;
    if (t->kind == MX_STEP_STORE && t->region.z0 + t->at.z_offset != s->last_store) {
        s->last_store = t->region.z0 + t->at.z_offset;
        s->store_groups++;
    }
    struct touched one = {.advances = s->advances,
                          .loads = s->n_loads,
                          .stores = s->n_stores,
                          .group = load ? s->load_groups : s->store_groups,
                          .load_groups = s->load_groups,
                          .store_groups = s->store_groups};
    for (int a = 0; a < RINGS; a++) {
        one.touches[a] = a < 2 ? t->touches[a] : t->fixed;
        if (a < 2) one.writes[a] = t->writes[a];
        if (moves && (t->array == a || (a == 2 && t->array >= MX_FIXED_ARRAY)))
            one.touches[a] = (struct mx_planes){t->region.z0, t->region.z1};
        if (load) one.writes[a] = one.touches[a];
        one.touches[a].z0 += t->at.z_offset, one.touches[a].z1 += t->at.z_offset;
        one.writes[a].z0 += t->at.z_offset, one.writes[a].z1 += t->at.z_offset;
    }
    if (load && s->n_loads < HISTORY) s->load[s->n_loads++] = one;
    if (t->kind == MX_STEP_STORE && s->n_stores < HISTORY) s->store[s->n_stores++] = one;
    if (t->kind == MX_STEP_ADVANCE && s->advances < HISTORY) s->advance[s->advances++] = one;
}

/* Must b, which follows a, wait for it? */
static bool meet(const struct sim *s, const struct touched *a, const struct touched *b) {
    for (int i = 0; i < RINGS; i++)
        for (int first = 0; first < 2; first++) {
            const struct mx_planes *w = first ? &a->writes[i] : &b->writes[i];
            const struct mx_planes *t = first ? &b->touches[i] : &a->touches[i];
            for (int64_t z = w->z0; z < w->z1 && t->z0 < t->z1; z++) {
                int64_t n = s->slots[i], d = (z - t->z0) % n;
                if ((d < 0 ? d + n : d) < t->z1 - t->z0) return true;
            }
        }
    return false;
}

/* Of the STOREs before ADVANCE `front`: those of the last `ahead` fronts. Others have ended long since,
 * though a long sweep that follows a short one stores nothing at first. */
static bool is_under_way(const struct touched *store, int64_t front, int64_t store_groups, int64_t ahead) {
    return store->group > store_groups - ahead && store->advances > front - ahead;
}

/* While an ADVANCE runs, the LOADs of the next `ahead` fronts and the STOREs of the last `ahead` may be under
 * way: none of these waits for another or for the ADVANCE, nor it for them. */
static void check_overlap(const struct sim *s, int64_t ahead) {
    for (int64_t k = 0; k < s->advances; k++) {
        const struct touched *a = &s->advance[k];
        int64_t oldest = a->stores;
        while (oldest > 0 && is_under_way(&s->store[oldest - 1], k, a->store_groups, ahead)) oldest--;
        for (int64_t i = a->loads; i < s->n_loads && s->load[i].group <= a->load_groups + ahead; i++) {
            cr_assert(!meet(s, a, &s->load[i]), "LOAD %ld waits for ADVANCE %ld", i, k);
            for (int64_t j = oldest; j < a->stores; j++)
                cr_assert(!meet(s, &s->store[j], &s->load[i]), "LOAD %ld waits for STORE %ld", i, j);
        }
        for (int64_t j = oldest; j < a->stores; j++)
            cr_assert(!meet(s, &s->store[j], a), "ADVANCE %ld waits for STORE %ld", k, j);
    }
}

/* ------------------------------------------------------------------ one setting */

static double some_value(void) { return (double)between(-1000000, 1000000) * 1e-6; }

/* A field of C: in a Buffer of its own, aligned, or in a file of any offset, with a frame or without. */
static void make_fixed(struct sim *s, int32_t i) {
    static const uint32_t aligns[] = {1, 64, 512, 4096};
    const struct mx_problem *p = s->p;
    const bool own = draw() % 2, framed = own || p->system->hc > 0 || draw() % 2;
    const int64_t element = mx_dtype_bytes(p->system->fixed[i].dtype), h = framed ? 0 : p->h;
    const int64_t rows = p->ny + 2 * p->h, planes = p->nz + 2 * p->h;
    struct mx_fixed_layout f = {.frame = framed ? p->h : 0,
                                .align_bytes = aligns[draw() % 4],
                                .lead_bytes = h * element,
                                .user_file = !own,
                                .row_bytes = (p->nx + 2 * p->h - 2 * h) * element};
    f.row_pitch_bytes = own ? (f.row_bytes + 63) / 64 * 64 : f.row_bytes;
    f.plane_pitch_bytes = (rows - 2 * h) * f.row_pitch_bytes;
    if (own) f.plane_pitch_bytes = (f.plane_pitch_bytes + f.align_bytes - 1) / f.align_bytes * f.align_bytes;
    const int64_t data = own ? 0 : element * between(0, 300);
    f.offset_bytes = data - h * (f.plane_pitch_bytes + f.row_pitch_bytes + element);
    f.bytes = data + (planes - 2 * h) * f.plane_pitch_bytes + (own ? 0 : between(0, 100));
    s->layout.fixed[i] = f;
    s->fixed[i] = make_field(rows, planes);
    for (int64_t z = h; z < planes - h; z++)
        for (int64_t y = h; y < rows - h; y++) *cell(&s->fixed[i], y, z) = some_value();
    s->fixed_array[i] = make_field(s->shape.rows, s->shape.fixed_slots);
}

static void set_up(struct sim *s) {
    int64_t rows = s->p->ny + 2 * s->p->h, planes = s->p->nz + 2 * s->p->h, plane = rows * PITCH + PLANE_PAD;
    s->algorithm->shape(s->p, s->plan, &s->shape);
    s->last_store = -1;
    cr_assert_eq(s->shape.pairs, mx_reads_old(s->p));
    cr_assert_eq(s->shape.fixed_slots > 0, s->shape.rows > 0 && mx_fixed_count(s->p) > 0);
    s->layout = (struct mx_layout){.rows = rows,
                                   .planes = planes,
                                   .row_bytes = PITCH,
                                   .row_pitch_bytes = PITCH,
                                   .plane_pitch_bytes = plane,
                                   .buffer_bytes = planes * plane};
    for (int i = 0; i < 2; i++) {
        s->reference[i] = make_field(rows, planes);
        for (int part = 0; part < 2; part++) s->buffer[i][part] = make_field(rows, planes);
    }
    for (int part = 0; part <= s->shape.pairs; part++) {
        for (int64_t i = 0; i < rows * planes; i++) s->buffer[0][part].v[i] = some_value();
        copy_field(&s->reference[part], &s->buffer[0][part]);
        if (s->shape.init_both) copy_field(&s->buffer[1][part], &s->buffer[0][part]);
    }
    for (int i = 0; i < 2; i++) {
        s->slots[i] = s->shape.rows == 0 ? planes : s->shape.slots[i];
        if (s->shape.rows != 0)
            s->array[i] = make_field(s->shape.rows, s->slots[i]);
        else
            s->array[i] = s->shape.pairs ? s->buffer[0][i] : s->buffer[i][0];
    }
    for (int32_t i = 0; i < mx_fixed_count(s->p); i++) make_fixed(s, i);
    s->slots[2] = s->shape.fixed_slots > 0 ? s->shape.fixed_slots : 1;
    int64_t slab = s->shape.max_levels * s->shape.seam_planes;
    s->seams = make_field(s->shape.seam_rows, s->shape.seam_slots * slab);
    s->side_file = make_field(s->shape.seam_rows, s->shape.seams_in_file ? s->shape.seam_slabs * slab : 0);
}

static void tear_down(struct sim *s) {
    for (int i = 0; i < 2; i++) {
        if (s->shape.rows != 0) free(s->array[i].v);
        for (int part = 0; part < 2; part++) free(s->buffer[i][part].v);
        free(s->reference[i].v);
    }
    for (int32_t i = 0; i < mx_fixed_count(s->p); i++) {
        free(s->fixed[i].v);
        free(s->fixed_array[i].v);
    }
    free(s->seams.v);
    free(s->side_file.v);
}

/* Runs the schedule from first_time on; stops after `commits` COMMITs if that is positive. Returns the last
 * COMMIT's Buffer. */
static int32_t run(struct sim *s, int64_t first_time, int32_t first_buffer, int64_t commits) {
    struct mx_schedule *schedule = NULL;
    struct mx_step t;
    int32_t buffer = first_buffer;
    int more = s->algorithm->open(s->p, s->plan, first_time, first_buffer, &schedule);
    cr_assert_eq(more, 0);
    cr_assert_eq(schedule->shape.rows, s->shape.rows);
    cr_assert_eq(schedule->shape.slots[0], s->shape.slots[0]);
    cr_assert_eq(schedule->shape.slots[1], s->shape.slots[1]);
    while ((more = schedule->ops->next(schedule, &t)) > 0) {
        note(s, &t);
        if (t.kind == MX_STEP_LOAD || t.kind == MX_STEP_STORE) transfer(s, &t);
        if (t.kind == MX_STEP_COPY) copy(s, &t);
        if (t.kind == MX_STEP_ADVANCE) advance(s, &t);
        if (t.kind == MX_STEP_COMMIT) {
            commit(s, &t);
            buffer = t.buffer;
            if (--commits == 0) break;
        }
    }
    cr_assert_geq(more, 0);
    schedule->ops->close(schedule);
    return buffer;
}

static void check_traffic(const struct sim *s) {
    struct mx_traffic t;
    struct mx_step_counts n;
    s->algorithm->traffic(s->p, s->plan, &s->layout, &t);
    cr_assert_eq(t.read_bytes, s->moved.read_bytes, "read %ld, moved %ld", t.read_bytes, s->moved.read_bytes);
    cr_assert_eq(t.write_bytes, s->moved.write_bytes, "written %ld, moved %ld", t.write_bytes,
                 s->moved.write_bytes);
    cr_assert_eq(t.copy_bytes, s->moved.copy_bytes);
    cr_assert_eq(t.fixed_read_bytes, s->moved.fixed_read_bytes);
    int64_t updates = s->moved.updates / mx_levels_a_step(s->p);
    cr_assert_eq(t.updates, updates, "updates %ld, done %ld", t.updates, updates);
    cr_assert_eq(t.seam_read_bytes, s->moved.seam_read_bytes);
    cr_assert_eq(t.seam_write_bytes, s->moved.seam_write_bytes);
    int64_t initial = (s->shape.init_both ? 2 : 1) * (s->shape.pairs ? 2 : 1);
    cr_assert_eq(t.init_write_bytes, initial * s->layout.buffer_bytes);
    cr_assert_eq(mx_schedule_count(s->algorithm, s->p, s->plan, &n), 0);
    cr_assert_eq(n.window_rows * s->p->nx / mx_levels_a_step(s->p), t.updates);
    cr_assert_eq(n.copy_rows * PITCH, t.copy_bytes);
}

/* A run that ends after some COMMIT and goes on with fresh Blocks gives the same. */
static void check_resume(struct sim *s, int64_t commits) {
    int32_t buffer = run(s, 0, 0, commits);
    for (int64_t k = 0; k < s->seams.rows * s->seams.planes; k++) s->seams.v[k] = NAN;
    for (int64_t k = 0; k < s->side_file.rows * s->side_file.planes; k++) s->side_file.v[k] = NAN;
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < s->shape.rows * s->slots[i]; k++) s->array[i].v[k] = NAN;
    for (int32_t i = 0; i < mx_fixed_count(s->p); i++)
        for (int64_t k = 0; k < s->shape.rows * s->shape.fixed_slots; k++) s->fixed_array[i].v[k] = NAN;
    const int64_t levels = mx_levels_of(s->p, s->p->nt);
    if (s->committed < levels) run(s, s->committed, buffer, 0);
    cr_assert_eq(s->committed, levels);
}

static void check(const struct mx_algorithm *algorithm, const struct mx_problem *p,
                  const struct mx_plan *plan) {
    static struct sim s;
    memset(&s, 0, sizeof s);
    s.algorithm = algorithm;
    s.p = p;
    s.plan = plan;
    mx_why why = {{0}};
    cr_assert_eq(algorithm->check(p, plan, &why), 0, "%s", why.text);
    set_up(&s);
    int32_t buffer = run(&s, 0, 0, 0);
    cr_assert_eq(s.committed, mx_levels_of(p, p->nt));
    cr_assert_eq(buffer, mx_schedule_final_buffer(algorithm, p, plan));
    if (strcmp(algorithm->name, "stream") != 0 && p->nt > 0 && s.shape.rows > 0) {
        cr_assert_eq(s.used_slots, s.shape.slots[0]);
        cr_assert_eq(s.used_rows, s.shape.rows);
    }
    check_traffic(&s);
    /* A ring that holds the whole grid (small grids) is shorter than read-ahead and write-behind ask for. */
    bool whole = s.shape.slots[0] >= p->nz + 2 * p->h || s.shape.slots[1] >= p->nz + 2 * p->h;
    if (strcmp(algorithm->name, "stream") == 0 && plan->by >= p->ny && !whole)
        check_overlap(&s, plan->ahead > 0 ? plan->ahead : 2);
    tear_down(&s);
    if (!algorithm->resumable || s.shape.in_place) return;
    memset(&s, 0, sizeof s);
    s.algorithm = algorithm, s.p = p, s.plan = plan;
    set_up(&s);
    check_resume(&s, between(1, 3));
    tear_down(&s);
}

static void random_setting(struct mx_problem *p, struct mx_plan *plan, bool one_block_y) {
    static const int32_t halos[] = {1, 1, 1, 2, 2, 3, 4, 8};
    memset(p, 0, sizeof *p);
    memset(plan, 0, sizeof *plan);
    p->h = halos[draw() % 8];
    p->nx = 5;
    p->ny = between(1, 12 + 4 * p->h);
    p->nz = between(1, 20 + 4 * p->h);
    p->nt = between(0, 17);
    plan->bt = between(1, draw() % 8 == 0 ? 30 : 9);
    plan->by = one_block_y ? p->ny + between(0, 3) : between(1, p->ny + 2);
    plan->bz = between(1, p->nz + 2);
    plan->slab = between(1, 7);
    plan->ahead = between(0, 3);
    strcpy(plan->engine, draw() % 2 ? "tiled" : "iblock");
    p->done = draw() % 2 ? 0 : between(0, 40);
    for (int i = 0; i < 2; i++) p->due[i] = draw() % 3 > 0 ? 0 : between(1, 20);
}

/* With a system of a form, with and without C. */
static void make_system(struct mx_problem *p, struct mx_plan *plan, int form, struct mx_system *system) {
    static const enum mx_dtype types[] = {MX_F64, MX_F32, MX_U8, MX_U16, MX_I16};
    *system = (struct mx_system){.name = "test", .form = form, .h = p->h, .n_field = {1, 1}};
    system->hc = draw() % 2 ? 0 : (int32_t)between(0, p->h);
    system->n_fixed = draw() % 3 == 0 ? 0 : (int32_t)between(1, 3);
    for (int32_t i = 0; i < system->n_fixed; i++) system->fixed[i].dtype = types[draw() % 5];
    p->system = system;
    if (form == MX_STAGGERED) plan->bt += plan->bt & 1;
}

static void check_systems(const char *name, int n, bool one_block_y, const char *seams) {
    const struct mx_algorithm *algorithm = mx_algorithm_find(name);
    seed_state = 1181783497276652981u;
    n = mx_cases(n, 2);
    for (int i = 0; i < n; i++) {
        struct mx_problem p;
        struct mx_plan plan;
        struct mx_system system;
        random_setting(&p, &plan, one_block_y);
        if (p.h > 4) continue;
        strcpy(plan.seams, seams);
        make_system(&p, &plan, i % 3, &system);
        plan.in_place = strcmp(name, "stream") == 0 && mx_reads_old(&p) && draw() % 2;
        if (getenv("MX_TEST_TRACE"))
            fprintf(stderr,
                    "%s %d: form %d h %d hc %d fixed %d ny %ld nz %ld nt %ld by %ld bz %ld bt %ld slab %ld "
                    "ahead %ld %s%s\n",
                    name, i, system.form, p.h, system.hc, system.n_fixed, p.ny, p.nz, p.nt, plan.by, plan.bz,
                    plan.bt, plan.slab, plan.ahead, plan.engine, plan.in_place ? " in-place" : "");
        check(algorithm, &p, &plan);
    }
}

static void check_many(const char *name, int n, bool one_block_y, const char *seams) {
    const struct mx_algorithm *algorithm = mx_algorithm_find(name);
    cr_assert_not_null(algorithm);
    seed_state = 88172645463325252u;
    n = mx_cases(n, 2);
    for (int i = 0; i < n; i++) {
        struct mx_problem p;
        struct mx_plan plan;
        random_setting(&p, &plan, one_block_y);
        strcpy(plan.seams, seams);
        if (getenv("MX_TEST_TRACE"))
            fprintf(stderr, "%s %d: h %d ny %ld nz %ld nt %ld by %ld bz %ld bt %ld slab %ld ahead %ld %s\n",
                    name, i, p.h, p.ny, p.nz, p.nt, plan.by, plan.bz, plan.bt, plan.slab, plan.ahead,
                    plan.engine);
        check(algorithm, &p, &plan);
    }
}

Test(schedule, direct) { check_many("direct", 200, false, ""); }
Test(schedule, redundant) { check_many("redundant", 200, false, ""); }
Test(schedule, stream) { check_many("stream", 400, true, ""); }
Test(schedule, skewed) { check_many("skewed", 200, false, ""); }
Test(schedule, skewed_y) { check_many("skewed-y", 300, false, ""); }
Test(schedule, skewed_min) { check_many("skewed-min", 400, false, ""); }
Test(schedule, direct_skewed) { check_many("mmap1", 150, false, ""); }
Test(schedule, direct_skewed_opt) { check_many("mmap1+opt", 150, false, ""); }
Test(schedule, stream_strips) { check_many("stream", 400, false, "dram"); }
Test(schedule, stream_strips_with_a_side_file) { check_many("stream", 400, false, "side-file"); }

Test(schedule_of_systems, direct) { check_systems("direct", 150, false, ""); }
Test(schedule_of_systems, redundant) { check_systems("redundant", 120, false, ""); }
Test(schedule_of_systems, stream) { check_systems("stream", 450, true, ""); }
Test(schedule_of_systems, skewed) { check_systems("skewed", 200, false, ""); }
Test(schedule_of_systems, skewed_y) { check_systems("skewed-y", 300, false, ""); }
Test(schedule_of_systems, skewed_min) { check_systems("skewed-min", 300, false, ""); }
Test(schedule_of_systems, direct_skewed) { check_systems("mmap1", 120, false, ""); }
Test(schedule_of_systems, direct_skewed_opt) { check_systems("mmap1+opt", 120, false, ""); }
Test(schedule_of_systems, stream_strips) { check_systems("stream", 450, false, "dram"); }
Test(schedule_of_systems, stream_strips_with_a_side_file) {
    check_systems("stream", 450, false, "side-file");
}

/* ------------------------------------------------------------------ sweeps */

enum { MOST_LEVELS = 512 };

/* Kinds of sweeps == those found by going from end to end: bt levels, or up to the next due step. */
static void compare_sweeps(const struct mx_problem *p, int64_t bt) {
    int64_t told[MOST_LEVELS] = {0}, found[MOST_LEVELS] = {0}, longest = 1, count = 0, last = 0;
    const int64_t levels = mx_levels_of(p, p->nt);
    for (struct mx_sweeps s = mx_sweeps_of(p, bt); mx_sweeps_next(&s);) {
        cr_assert(s.levels >= 1 && s.levels <= bt && s.levels < MOST_LEVELS && s.count >= 1);
        told[s.levels] += s.count;
    }
    for (int64_t from = 0; from < levels; count++) {
        int64_t end = from + 1;
        while (end < levels && end - from < bt && !is_due(p, end)) end++;
        cr_assert_eq(mx_min(mx_sweep_end(p, from), from + bt), end);
        found[end - from]++;
        last = from;
        longest = mx_max(longest, end - from);
        from = end;
    }
    for (int64_t l = 0; l < MOST_LEVELS; l++)
        cr_assert_eq(told[l], found[l], "%ld sweeps of %ld levels, %ld told (nt %ld done %ld due %ld %ld)",
                     found[l], l, told[l], p->nt, p->done, p->due[0], p->due[1]);
    cr_assert_eq(mx_sweep_levels(p, bt), longest);
    cr_assert_eq(mx_sweep_count(p, bt), count);
    cr_assert_eq(mx_sweep_last(p, bt), last);
}

Test(schedule, sweeps) {
    static const int forms[] = {MX_JACOBI, MX_LEAPFROG, MX_STAGGERED};
    seed_state = 31;
    for (int i = 0; i < 20000; i++) {
        const struct mx_system system = {.form = forms[i % 3], .h = 1, .n_field = {1, 1}};
        struct mx_problem p = {.nx = 1, .ny = 1, .nz = 1, .h = 1, .system = &system};
        p.nt = between(0, draw() % 4 == 0 ? 200 : 30);
        p.done = draw() % 2 ? 0 : between(0, 100);
        for (int k = 0; k < 2; k++) p.due[k] = draw() % 4 == 0 ? 0 : between(1, draw() % 2 ? 12 : 60);
        int64_t bt = between(1, draw() % 4 == 0 ? MOST_LEVELS - 1 : 20);
        if (system.form == MX_STAGGERED) bt += bt & 1;
        compare_sweeps(&p, bt);
    }
}

/* Of a run of 10^15 steps that nobody could go through. */
Test(schedule, sweeps_of_long_runs) {
    const int64_t nt = 1000000000000000;
    struct mx_problem p = {.nx = 1, .ny = 1, .nz = 1, .nt = nt, .h = 1, .due = {1000, 100000}};
    cr_assert_eq(mx_sweep_count(&p, 300), nt / 1000 * 4);
    cr_assert_eq(mx_sweep_levels(&p, 5000), 1000);
    cr_assert_eq(mx_sweep_end(&p, 123456789), 123457000);
    cr_assert_eq(mx_sweep_last(&p, 300), nt - 100);
    p.due[1] = nt * 3; /* beyond the end */
    cr_assert_eq(mx_sweep_count(&p, 300), nt / 1000 * 4);
    p.due[0] = 999, p.due[1] = 1000; /* every 999000 steps: 999 + 1000 - 1 stretches */
    cr_assert_eq(mx_sweep_count(&p, nt), nt / 999 + nt / 1000 - nt / 999000);
    p.due[0] = 3, p.due[1] = nt / 2 + 1;
    cr_assert_eq(mx_sweep_count(&p, 2), nt / 3 * 2 + 1 + ((nt / 2 + 1) % 3 == 1));
}

/* ------------------------------------------------------------------ against the Python model and the papers
 */

struct golden {
    int64_t ny, nz, nt, by, bz, bt, h, rows, slots;
    int64_t moved[4][2]; /* skewed, skewed-y, skewed-min, redundant: rows read, rows written */
};
static const struct golden golden[] = {
#include "schedule_golden.inc"
};

/* For every setting: rows moved and extents of the Blocks == those of the model (make_schedule_golden.py). */
Test(schedule, python_model) {
    static const char *const names[] = {"aio2", "aio3y", "aio5y", "algorithm-1"};
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        const struct golden *g = &golden[i];
        struct mx_problem p = {.nx = 1, .ny = g->ny, .nz = g->nz, .nt = g->nt, .h = (int32_t)g->h};
        struct mx_plan plan = {.by = g->by, .bz = g->bz, .bt = g->bt, .slab = 4};
        struct mx_layout layout = {.row_pitch_bytes = 1};
        for (int a = 0; a < 4; a++) {
            const struct mx_algorithm *algorithm = mx_algorithm_find(names[a]);
            struct mx_traffic t;
            struct mx_shape shape;
            algorithm->traffic(&p, &plan, &layout, &t);
            algorithm->shape(&p, &plan, &shape);
            cr_assert_eq(t.read_bytes, g->moved[a][0], "%s %zu", names[a], i);
            cr_assert_eq(t.write_bytes, g->moved[a][1], "%s %zu", names[a], i);
            if (a == 3) continue;
            cr_assert_eq(shape.rows, g->rows);
            cr_assert_eq(shape.slots[0], g->slots);
            cr_assert_eq(shape.slots[1], g->slots);
        }
    }
}

/* The slides' run: 110.25 GiB read, 64.00 GiB written, 64.19 GiB of initial grids, to two decimals. */
Test(schedule, slides) {
    struct mx_problem p = {.nx = 2046, .ny = 2048, .nz = 1024, .nt = 256, .h = 1};
    struct mx_plan plan = {.by = 512, .bz = 512, .bt = 128, .slab = 4};
    int64_t pitch = 2048 * 8, plane = 2050 * pitch;
    struct mx_layout layout = {.rows = 2050,
                               .planes = 1026,
                               .row_bytes = pitch,
                               .row_pitch_bytes = pitch,
                               .plane_pitch_bytes = plane,
                               .buffer_bytes = 1026 * plane};
    struct mx_traffic t;
    mx_algorithm_find("redundant")->traffic(&p, &plan, &layout, &t);
    double gib = 1024.0 * 1024 * 1024;
    cr_assert(fabs((double)t.read_bytes / gib - 110.25) < 0.005);
    cr_assert(fabs((double)t.write_bytes / gib - 64.00) < 0.005);
    cr_assert(fabs((double)t.init_write_bytes / gib - 64.19) < 0.005);
}

/* stream without strips: each sweep reads and writes one Buffer, whole planes; 31.5 GiB of DRAM at bt = 500
 * for 2048^3, to 2 %. */
Test(schedule, stream_bytes) {
    struct mx_problem p = {.nx = 2048, .ny = 2048, .nz = 2048, .nt = 1500, .h = 1};
    struct mx_plan plan = {.by = 2048, .bz = 2048, .bt = 500, .slab = 4, .ahead = 2};
    int64_t pitch = 2050 * 8, plane = 2050 * pitch;
    struct mx_layout layout = {.rows = 2050,
                               .planes = 2050,
                               .row_bytes = pitch,
                               .row_pitch_bytes = pitch,
                               .plane_pitch_bytes = plane,
                               .buffer_bytes = 2050 * plane};
    const struct mx_algorithm *stream = mx_algorithm_find("stream");
    struct mx_traffic t;
    struct mx_shape shape;
    stream->traffic(&p, &plan, &layout, &t);
    stream->shape(&p, &plan, &shape);
    cr_assert_eq(t.read_bytes, 3 * layout.buffer_bytes);
    cr_assert_eq(t.write_bytes, 3 * layout.buffer_bytes);
    cr_assert_eq(t.init_write_bytes, layout.buffer_bytes);
    cr_assert(!stream->cuts_y(&p, &plan));
    cr_assert_eq(shape.slots[0], 500 + 4 + 8 + 8);
    cr_assert_eq(shape.slots[1], 500 + 4 + 4 + 1);
    double gib = (double)((shape.slots[0] + shape.slots[1]) * plane) / (1024.0 * 1024 * 1024);
    cr_assert(fabs(gib / 31.5 - 1) < 0.03);
}

/* Every name and alias finds its algorithm; what cannot be is refused with a sentence. */
Test(schedule, names_and_refusals) {
    cr_assert_null(mx_algorithm_find("nothing"));
    cr_assert_null(mx_algorithm_find(""));
    cr_assert_null(mx_algorithm_find("aio"));
    cr_assert_str_eq(mx_algorithm_find("3y")->name, "skewed-y");
    cr_assert_str_eq(mx_algorithm_find("mmap5y")->name, "skewed-min");
    cr_assert_str_eq(mx_algorithm_find("algorithm-1")->name, "redundant");
    for (int i = 0; mx_algorithms[i] != NULL; i++) {
        const struct mx_algorithm *a = mx_algorithms[i];
        struct mx_problem good = {.nx = 1, .ny = 9, .nz = 9, .nt = 4, .h = 1}, p;
        struct mx_plan plan = {.by = 3, .bz = 3, .bt = 2, .slab = 1}, q;
        mx_why why;
        cr_assert_eq(mx_algorithm_find(a->name), a);
        cr_assert_eq(a->check(&good, &plan, &why), 0);
        p = good, p.h = 9;
        cr_assert_eq(a->check(&p, &plan, &why), -EINVAL);
        p = good, p.nz = 0;
        cr_assert_eq(a->check(&p, &plan, &why), -EINVAL);
        p = good, p.ny = (int64_t)1 << 40;
        cr_assert_eq(a->check(&p, &plan, &why), -EINVAL);
        q = plan, q.bt = 0;
        cr_assert_eq(a->check(&good, &q, &why), -EINVAL);
        cr_assert(strstr(why.text, "bt is 0") != NULL);
        q = plan, q.by = 0;
        if (a->uses_blocks) cr_assert_eq(a->check(&good, &q, &why), -EINVAL);
    }
}

/* bt counts levels; in place is for what keeps both arrays, and not for overlapped blocks. */
Test(schedule_of_systems, refusals) {
    struct mx_system system = {.h = 1, .n_field = {1, 1}};
    for (int i = 0; mx_algorithms[i] != NULL; i++) {
        const struct mx_algorithm *a = mx_algorithms[i];
        struct mx_problem p = {.nx = 1, .ny = 9, .nz = 9, .nt = 4, .h = 1, .system = &system};
        struct mx_plan odd = {.by = 3, .bz = 3, .bt = 3, .slab = 1};
        struct mx_plan in_place = {.by = 3, .bz = 3, .bt = 2, .slab = 1, .in_place = true};
        mx_why why;
        system.form = MX_LEAPFROG;
        const bool overlaps = strcmp(a->name, "redundant") == 0;
        cr_assert_eq(a->check(&p, &odd, &why), 0);
        cr_assert_eq(a->check(&p, &in_place, &why), overlaps ? -EINVAL : 0);
        system.form = MX_STAGGERED;
        cr_assert_eq(a->check(&p, &odd, &why), -EINVAL);
        cr_assert(strstr(why.text, "even bt, 4") != NULL, "%s", why.text);
        system.form = MX_JACOBI;
        cr_assert_eq(a->check(&p, &odd, &why), 0);
        cr_assert_eq(a->check(&p, &in_place, &why), -EINVAL);
    }
}

/* The overlapped blocks' sums and maxima in closed form == those by going through all blocks. */
Test(schedule, overlapped_sums) {
    seed_state = 7;
    for (int i = 0; i < 20000; i++) {
        int64_t h = between(1, 8), n = between(1, 60), levels = between(1, 12), level = between(1, levels);
        struct mx_cut c = mx_lap_cut(n, between(1, 70), h);
        int64_t spans = 0, windows = 0, most = 0;
        for (int64_t j = 0; j < c.count; j++) {
            int64_t span = mx_length(mx_lap_span(&c, j, levels));
            spans += span;
            most = mx_max(most, span);
            windows += mx_length(mx_lap_window(&c, j, level, levels));
        }
        cr_assert_eq(mx_lap_span_sum(&c, levels), spans);
        cr_assert_eq(mx_lap_window_sum(&c, level, levels), windows);
        cr_assert_eq(mx_lap_span_max(&c, levels), most);
    }
}

/* ---- ranks: neighbours at one end of z, or both */

static void count_given(const struct mx_algorithm *a, const struct mx_problem *p, const struct mx_plan *plan,
                        const struct mx_traffic *t, const struct mx_layout *layout) {
    struct mx_schedule *schedule = NULL;
    struct mx_step s;
    int64_t read = 0, write = 0, fixed = 0, last[2] = {0, 0}, sweeps = 0, updates = 0, depth = 0, sent = 0,
            given = 0;
    const int64_t arrays = mx_reads_old(p) ? 2 : 1, h = p->h, plane = layout->plane_pitch_bytes;
    const int ends = (p->sides.side[2][0] == MX_SIDE_NEIGHBOUR) + (p->sides.side[2][1] == MX_SIDE_NEIGHBOUR);
    cr_assert_eq(a->open(p, plan, 0, 0, &schedule), 0);
    depth = schedule->first_given;
    while (schedule->ops->next(schedule, &s) > 0) {
        const struct mx_region r = mx_step_in_buffer(&s);
        const int64_t bytes =
            s.whole_planes ? (r.z1 - r.z0) * plane : mx_region_rows(r) * layout->row_pitch_bytes;
        const bool state = s.array < MX_SEAMS && (s.kind == MX_STEP_LOAD || s.kind == MX_STEP_STORE);
        if (s.kind == MX_STEP_COMMIT) {
            sweeps++;
            sent += depth * ends * arrays * plane;
            depth = s.next_given;
            for (int e = 0; e < 2; e++) /* one LOAD at each end is the last of its sweep */
                cr_assert_eq(last[e], p->sides.side[2][e] == MX_SIDE_NEIGHBOUR ? sweeps : 0);
        }
        if (s.kind == MX_STEP_LOAD && s.array >= MX_FIXED_ARRAY)
            for (int64_t z = r.z0; z < r.z1; z++) {
                uint64_t offset, n;
                mx_fixed_span(&layout->fixed[s.array - MX_FIXED_ARRAY], z, r.y0, r.y1, &offset, &n);
                fixed += (int64_t)n;
            }
        if (s.kind == MX_STEP_LOAD && state && s.neighbour > 0) {
            /* of the neighbour are planes beyond the end, no deeper than it has sent */
            if (s.neighbour == 1) cr_assert(r.z0 >= h - depth && r.z1 <= h);
            if (s.neighbour == 2) cr_assert(r.z0 >= p->nz + h && r.z1 <= p->nz + h + depth);
            cr_assert(p->sides.side[2][s.neighbour - 1] == MX_SIDE_NEIGHBOUR);
            last[s.neighbour - 1] += s.last_given;
            given += mx_region_rows(r) * layout->row_pitch_bytes;
        } else if (state) {
            /* the Buffer has no more than the interior there */
            if (p->sides.side[2][0] == MX_SIDE_NEIGHBOUR) cr_assert(r.z0 >= h);
            if (p->sides.side[2][1] == MX_SIDE_NEIGHBOUR) cr_assert(r.z1 <= p->nz + h);
            *(s.kind == MX_STEP_LOAD ? &read : &write) += bytes;
        }
        for (int32_t l = 0; s.kind == MX_STEP_ADVANCE && l < s.levels; l++) {
            const struct mx_window w = mx_step_window(&s, l);
            if (w.y0 < w.y1 && w.z0 < w.z1) updates += (int64_t)(w.y1 - w.y0) * (w.z1 - w.z0) * p->nx;
        }
    }
    schedule->ops->close(schedule);
    const int64_t first = sent > 0 ? ends * arrays * plane * h * mx_sweep_levels(p, plan->bt) : 0;
    read += first; /* message 0 */
    cr_assert_eq(t->read_bytes - t->seam_read_bytes * (strcmp(plan->seams, "side-file") == 0), read + fixed,
                 "read %ld, moved %ld and %ld", t->read_bytes, read, fixed);
    cr_assert_eq(t->write_bytes - t->seam_write_bytes * (strcmp(plan->seams, "side-file") == 0), write);
    cr_assert_eq(t->sent_bytes, sent);
    if (strcmp(a->name, "stream") == 0) cr_assert_eq(t->given_bytes, given);
    cr_assert_eq(mx_traffic_put_bytes(t), t->read_bytes - first + t->given_bytes);
    cr_assert_eq(t->fixed_read_bytes, fixed);
    cr_assert_eq(t->updates, updates / mx_levels_a_step(p));
}

/* What a step has to look at does not grow with the levels of a sweep: those that a move of the front
 * crosses, one of each h planes of the Block and of the slab, a few at the ends. */
static void check_crossed(const char *name, const char *seams, int64_t by, bool periodic) {
    const struct mx_problem p = {.nx = 4,
                                 .ny = 24,
                                 .nz = 15,
                                 .nt = 6000,
                                 .h = 1,
                                 .stencil = "star7",
                                 .coef = {0.4, 0.1},
                                 .sides.side = {[2] = {periodic ? MX_SIDE_PERIODIC : MX_SIDE_FIXED,
                                                       periodic ? MX_SIDE_PERIODIC : MX_SIDE_FIXED}}};
    struct mx_plan plan = {.by = by, .bz = 8, .bt = periodic ? 15 : 6000, .slab = 3, .engine = "tiled"};
    const struct mx_algorithm *algorithm = mx_algorithm_find(name);
    struct mx_schedule *schedule;
    struct mx_step s;
    mx_why why = {""};
    int64_t windows = 0, pass = 0;
    snprintf(plan.seams, sizeof plan.seams, "%s", seams);
    cr_assert_eq(algorithm->check(&p, &plan, &why), 0, "%s: %s", name, why.text);
    cr_assert_eq(algorithm->open(&p, &plan, 0, 0, &schedule), 0);
    while (schedule->ops->next(schedule, &s) == 1) {
        if (s.kind != MX_STEP_ADVANCE) continue;
        cr_assert(s.first < s.end && s.end <= s.levels && s.end - s.first <= 2 * (p.nz + plan.slab) + 2,
                  "%s: %d to %d", name, s.first, s.end);
        windows += s.end - s.first;
        cr_assert(s.pass >= pass);
        pass = s.pass;
    }
    schedule->ops->close(schedule);
    cr_assert_geq(windows, p.nt, "%s", name);
}

Test(schedule, looks_only_at_the_levels_that_the_front_crosses) {
    check_crossed("stream", "", 24, false);
    check_crossed("stream", "", 24, true);
    check_crossed("stream", "dram", 7, false);
    check_crossed("stream", "side-file", 7, false);
    check_crossed("skewed-min", "", 7, false);
}

/* An engine that takes two levels at a time reads h planes more below a window, of either array, and none
 * that are loaded later: it would wait for them. */
Test(schedule, two_levels_at_a_time_reach_downwards) {
    const struct mx_algorithm *stream = mx_algorithm_find("stream");
    for (int64_t i = 0; i < 60; i++) {
        struct mx_problem p = {.nx = 4, .ny = 24, .nz = 15 + i, .nt = 23, .h = 1 + i % 2, .coef = {0.4, 0.1}};
        struct mx_plan plan = {.by = 24, .bz = p.nz, .bt = 1 + i % 9, .slab = 1 + i % 7, .ahead = 1 + i % 3};
        struct mx_schedule *schedule[2];
        struct mx_step s[2];
        int more[2];
        strcpy(p.stencil, p.h == 1 ? "star7" : "star13");
        for (int k = 0; k < 2; k++) {
            strcpy(plan.engine, k == 0 ? "tiled" : "device");
            cr_assert_eq(stream->open(&p, &plan, 0, 0, &schedule[k]), 0);
        }
        cr_assert_eq(schedule[1]->shape.by_twos, plan.bt >= 4);
        for (;;) {
            for (int k = 0; k < 2; k++) more[k] = schedule[k]->ops->next(schedule[k], &s[k]);
            cr_assert_eq(more[0], more[1]);
            if (more[0] <= 0) break;
            cr_assert_eq(s[0].kind, s[1].kind);
            if (s[0].kind != MX_STEP_ADVANCE) continue;
            const struct mx_planes *one = s[0].touches, *two = s[1].touches;
            const int64_t low = mx_min(one[0].z0, one[1].z0), high = mx_max(one[0].z1, one[1].z1);
            for (int array = 0; array < 2 && plan.bt >= 4; array++) {
                cr_assert_eq(two[array].z0, low - p.h);
                cr_assert_eq(two[array].z1, high);
                cr_assert_leq(two[array].z1 - two[array].z0, schedule[1]->shape.slots[array] + 2 * p.h);
            }
        }
        for (int k = 0; k < 2; k++) schedule[k]->ops->close(schedule[k]);
    }
}

/* Bytes as they are counted by going through the steps: of own Buffers, of C, to neighbours. */
static void check_ranks(const char *name, int n, bool one_block_y, const char *seams) {
    static const uint8_t others[] = {MX_SIDE_FIXED, MX_SIDE_MIRROR, MX_SIDE_NEIGHBOUR};
    const struct mx_algorithm *algorithm = mx_algorithm_find(name);
    int done = 0;
    seed_state = 6364136223846793005u;
    n = mx_cases(n, 2);
    for (int i = 0; i < n; i++) {
        struct mx_problem p;
        struct mx_plan plan;
        struct mx_system system;
        struct mx_layout layout;
        struct mx_traffic t;
        mx_why why = {""};
        random_setting(&p, &plan, one_block_y);
        strcpy(plan.seams, seams);
        if (i % 4 > 0)
            make_system(&p, &plan, i % 4 - 1, &system);
        else
            strcpy(p.stencil, "star7");
        p.nz += 3 * p.h;
        p.all_nz = 3 * p.nz;
        p.least_nz = p.nz;
        p.first_plane = p.nz;
        p.sides.side[2][i % 2] = MX_SIDE_NEIGHBOUR;
        p.sides.side[2][1 - i % 2] = others[draw() % 3];
        if (algorithm->check(&p, &plan, &why) < 0) continue;
        cr_assert_eq(mx_layout_make(&p, 512, algorithm->cuts_y(&p, &plan), &why, &layout), 0);
        for (int32_t k = 0; k < mx_fixed_count(&p); k++) /* C has what lies beyond itself */
            layout.fixed[k].offset_bytes = 1000 * layout.fixed[k].plane_pitch_bytes;
        algorithm->traffic(&p, &plan, &layout, &t);
        count_given(algorithm, &p, &plan, &t, &layout);
        done++;
    }
    cr_assert_gt(done, n / 3);
}

Test(schedule_of_ranks, stream) { check_ranks("stream", 400, true, ""); }
Test(schedule_of_ranks, stream_strips) { check_ranks("stream", 400, false, "dram"); }
Test(schedule_of_ranks, stream_strips_with_a_side_file) { check_ranks("stream", 300, false, "side-file"); }
Test(schedule_of_ranks, redundant) { check_ranks("redundant", 400, false, ""); }
Test(schedule_of_ranks, refusals) {
    struct mx_problem p = {.nx = 8, .ny = 8, .nz = 8, .nt = 9, .h = 1, .all_nz = 16, .least_nz = 8};
    struct mx_plan plan = {.by = 8, .bz = 8, .bt = 9, .slab = 2};
    mx_why why = {""};
    p.sides.side[2][1] = MX_SIDE_NEIGHBOUR;
    cr_assert_eq(mx_algorithm_find("stream")->check(&p, &plan, &why), -EINVAL);
    cr_assert(strstr(why.text, "bt = 8 or less") != NULL, "%s", why.text);
    cr_assert_eq(mx_algorithm_find("skewed")->check(&p, &plan, &why), -ENOTSUP);
    plan.bt = 8;
    cr_assert_eq(mx_algorithm_find("stream")->check(&p, &plan, &why), 0);
}
