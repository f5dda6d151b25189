/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule_sim.c - the plain loop, and an interpreter of steps that overlap as an executor may overlap them.
 */
#include "schedule_sim.h"

uint64_t seed_state;

uint64_t draw(void) {
    seed_state ^= seed_state << 13, seed_state ^= seed_state >> 7, seed_state ^= seed_state << 17;
    return seed_state;
}

int64_t between(int64_t lo, int64_t hi) { return lo + (int64_t)(draw() % (uint64_t)(hi - lo + 1)); }

double *cell(const struct field *f, int64_t y, int64_t z) {
    cr_assert(y >= 0 && y < f->rows && z >= 0 && z < f->planes, "(%ld,%ld) outside %ldx%ld", y, z, f->rows,
              f->planes);
    return &f->v[z * f->rows + y];
}

struct field make_field(int64_t rows, int64_t planes) {
    struct field f = {malloc((size_t)(rows * planes + 1) * sizeof(double)), rows, planes};
    for (int64_t i = 0; i < rows * planes; i++) f.v[i] = NAN;
    return f;
}

void copy_field(const struct field *to, const struct field *from) {
    memcpy(to->v, from->v, (size_t)(to->rows * to->planes) * sizeof(double));
}

double stencil(at_fn *at, void *context, int64_t y, int64_t z, int64_t h) {
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

static double *at_array(void *context, int64_t y, int64_t z) {
    const struct plane_view *v = context;
    int64_t row = y + v->at.y_offset, slot = (z + v->at.z_offset) % v->s->slots[v->array];
    cr_assert(z + v->at.z_offset >= 0);
    if (row >= v->s->used_rows) v->s->used_rows = row + 1;
    if (slot >= v->s->used_slots) v->s->used_slots = slot + 1;
    return cell(&v->s->array[v->array], row, slot);
}

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

void transfer(struct sim *s, const struct mx_step *t) {
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

void copy(struct sim *s, const struct mx_step *t) {
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

struct mx_seam_planes seam_planes(const struct mx_step *t, int32_t level) {
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

void advance(struct sim *s, const struct mx_step *t) {
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

bool is_due(const struct mx_problem *p, int64_t level) {
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

void commit(struct sim *s, const struct mx_step *t) {
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

void note(struct sim *s, const struct mx_step *t) {
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

void check_overlap(const struct sim *s, int64_t ahead) {
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
