/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_world.c - random advances. */
#include "engine_world.h"

static uint64_t state = 7;

static uint64_t next_random(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

int32_t pick(int32_t from, int32_t to) { return from + (int32_t)(next_random() % (uint64_t)(to - from + 1)); }

int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

int32_t most(int32_t a, int32_t b) { return a > b ? a : b; }

/* ---- the oracle */

char *row_at(const struct mx_view *v, int array, int64_t y, int64_t z) {
    return v->base[array] + (z + v->z_offset) % v->slots[array] * v->plane_pitch_bytes +
           (y + v->y_offset) * v->row_pitch_bytes;
}

static void reference_seams(const struct world *w, const struct mx_advance *a, const struct mx_seam *f,
                            int32_t level, bool insert) {
    const int array = (int)((a->first_level + level) & 1);
    int64_t offset[MX_MAX_FIELDS];
    mx_field_offsets(&w->problem, array, offset);
    for (int32_t k = 0; f->base != NULL && k < f->n_planes[level]; k++)
        for (int32_t r = 0; r < f->n_rows[level]; r++) {
            char *in_seam =
                f->base + ((level * f->planes_per_level + k) * f->seam_rows + r) * a->view.row_pitch_bytes;
            char *in_array =
                row_at(&a->view, (a->parity + level) & 1, f->first_y[level] + r, f->first_z[level] + k);
            for (int32_t i = 0; i < mx_field_count(&w->problem, array); i++)
                memcpy((insert ? in_array : in_seam) + offset[i], (insert ? in_seam : in_array) + offset[i],
                       (size_t)((w->problem.nx + 2 * w->problem.h) *
                                mx_dtype_bytes(mx_field_dtype(&w->problem, array, i))));
        }
}

/* One row of a system, its x frames where they have to come from the array read. */
static void reference_row(const struct world *w, const struct mx_advance *a, int32_t l, int64_t y,
                          int64_t z) {
    const struct mx_problem *p = &w->problem;
    const struct mx_system *s = p->system;
    const int64_t level = a->first_level + l, n = 2 * p->h + 1, nc = 2 * s->hc + 1;
    const int from = (int)(level & 1), array = (a->parity + l) & 1;
    int64_t offset[2][MX_MAX_FIELDS], fixed_pitch[TEST_FIXED] = {0};
    void *out[TEST_FIELDS];
    const void *in[TEST_FIELDS * (2 * MX_MAX_HALO + 1)], *fixed[TEST_FIXED * (2 * MX_MAX_HALO + 1)];
    for (int i = 0; i < 2; i++) mx_field_offsets(p, i, offset[i]);
    for (int32_t f = 0; f < s->n_field[1 - from]; f++)
        out[f] = row_at(&a->view, 1 - array, y, z) + offset[1 - from][f];
    for (int64_t i = 0; i < n * s->n_field[from]; i++)
        in[i] = row_at(&a->view, array, y, z - p->h + i % n) + offset[from][i / n];
    for (int32_t i = 0; i < nc * s->n_fixed; i++) {
        fixed[i] = mx_view_fixed_row(&a->view, i / (int32_t)nc, y, z - s->hc + i % nc);
        fixed_pitch[i / nc] = a->view.fixed[i / nc].row_pitch_bytes;
    }
    const int64_t step = level / mx_levels_a_step(p);
    double param[MX_MAX_PARAMS];
    const struct mx_row r = {.out = out,
                             .in = in,
                             .fixed = fixed,
                             .row_pitch = a->view.row_pitch_bytes,
                             .fixed_pitch = fixed_pitch,
                             .rows = 1,
                             .param = mx_params_at(s, level, param),
                             .x0 = p->h,
                             .x1 = p->nx + p->h,
                             .y = y - p->h,
                             .z = z - p->h,
                             .t = step,
                             .nx = p->nx,
                             .ny = p->ny,
                             .nz = p->nz};
    s->row[level % mx_levels_a_step(p)](&r);
    for (int32_t f = 0; f < s->n_field[1 - from] && s->form == MX_JACOBI; f++) {
        const size_t cell = (size_t)mx_dtype_bytes(s->field[0][f].dtype), side = cell * (size_t)p->h;
        const size_t right = side + cell * (size_t)p->nx;
        memcpy(out[f], in[f * n + p->h], side);
        memcpy((char *)out[f] + right, (const char *)in[f * n + p->h] + right, side);
    }
}

void reference(const struct world *w, const struct mx_advance *a) {
    const int32_t h = w->problem.h;
    for (int32_t l = 0; l < a->levels; l++) {
        reference_seams(w, a, &a->seam_in, l, true);
        reference_seams(w, a, &a->seam_out, l, false);
        const struct mx_window win = a->window[l];
        for (int64_t z = win.z0; z < win.z1; z++)
            for (int64_t y = win.y0; y < win.y1; y++) {
                const char *src[2 * MX_MAX_HALO + 1];
                if (w->problem.system != NULL) {
                    reference_row(w, a, l, y, z);
                    continue;
                }
                for (int d = 0; d <= 2 * h; d++) src[d] = row_at(&a->view, (a->parity + l) & 1, y, z - h + d);
                struct mx_patch p = {.dst = row_at(&a->view, (a->parity + l + 1) & 1, y, z),
                                     .src = src,
                                     .row_pitch_bytes = a->view.row_pitch_bytes,
                                     .rows = 1,
                                     .h = h,
                                     .nx = w->problem.nx,
                                     .x0 = h,
                                     .x1 = w->problem.nx + h};
                mx_stencil_plain(w->stencil, w->problem.dtype)(&p, w->problem.coef);
            }
    }
}

/* ---- worlds */

void make_problem(struct world *w) {
    static const char *const names[] = {"star7", "star7", "edge19", "box27", "star13", "star25"};
    memset(w, 0, sizeof *w);
    w->stencil = mx_stencil_find(names[pick(0, 5)]);
    w->problem = (struct mx_problem){.nx = pick(1, 20),
                                     .ny = pick(1, 40),
                                     .nz = pick(1, 40),
                                     .h = w->stencil->h,
                                     .dtype = (enum mx_dtype)pick(0, 1)};
    strcpy(w->problem.stencil, w->stencil->name);
    memcpy(w->problem.coef, w->stencil->coef, sizeof w->problem.coef);
    w->machine = (struct mx_machine){.cores = 2,
                                     .sockets = 1,
                                     .l1_bytes = pick(0, 1) ? 32 << 10 : 48 << 10,
                                     .l2_bytes = 1 << 20,
                                     .l3_bytes = 32 << 20};
}

static int64_t pick64(int64_t from, int64_t to) { return pick((int32_t)from, (int32_t)to); }

void make_system_problem(struct world *w) {
    static const struct mx_stencil none = {.name = "a system"};
    memset(w, 0, sizeof *w);
    random_system(&w->rs, pick64);
    w->stencil = &none;
    w->problem = problem_of(&w->rs, pick(1, 20), pick(1, 20), pick(1, 20), 0);
    w->machine = (struct mx_machine){.cores = 2,
                                     .sockets = 1,
                                     .l1_bytes = pick(0, 1) ? 32 << 10 : 48 << 10,
                                     .l2_bytes = 1 << 20,
                                     .l3_bytes = 32 << 20};
    w->advance.first_level = pick(0, 9);
    systems_row = &w->rs;
}

void make_options(struct world *w) {
    const bool spans = w->problem.system == NULL && w->problem.h == 1 && pick(0, 2) == 0;
    if (spans) w->problem.nx = pick(17, 90);
    const int64_t a = mx_field_offsets(&w->problem, 0, NULL), b = mx_field_offsets(&w->problem, 1, NULL);
    const int64_t row = a > b ? a : b;
    w->options = (struct mx_engine_options){.problem = &w->problem,
                                            .machine = &w->machine,
                                            .row_pitch_bytes = (row + 63) / 64 * 64 + 64 * pick(0, 1),
                                            .threads = pick(1, 5),
                                            .iy = pick(0, 5),
                                            .iz = pick(0, 5),
                                            .slab = pick(0, 9),
                                            .tile = pick(0, 9),
                                            .ct = pick(0, 6),
                                            .column = pick(0, 3) * pick(1, 9),
                                            .levels = LEVELS,
                                            .rows = w->problem.ny,
                                            .planes = pick(0, 9)};
    if (!spans) return;
    w->options.slab = pick(4, 7), w->options.tile = 2 * pick(2, 4), w->options.ct = pick(2, 9);
    w->options.column =
        8 * pick(2, 5); /* of whole vectors: in place, if it leaves room for what is beside it */
}

/* y and z ranges of level l of the schedules: whole array, redundant (shrinking), skewed (moving), slab
 * (z-pipelined), strip of a slab (moving in y, too), ends that go in at random. */
static void make_windows(struct world *w, int32_t levels) {
    const int32_t h = w->problem.h, ny = (int32_t)w->problem.ny, nz = (int32_t)w->problem.nz,
                  kind = pick(0, 5);
    const int32_t a = pick(h, h + ny - 1), b = pick(a, h + ny), c = pick(h, h + nz - 1 + levels * h),
                  s = pick(1, 9);
    for (int32_t l = 0; l < levels; l++) {
        struct mx_window all = {h, h + ny, h, h + nz}, x = all;
        const int32_t d = l * h;
        if (kind == 1)
            x = (struct mx_window){most(h, a - 5 * h + d), least(h + ny, b + 5 * h - d), h + least(d, nz),
                                   h + nz};
        if (kind == 2)
            x = (struct mx_window){most(h, a - d), least(h + ny, b - d), most(h, c - d),
                                   least(h + nz, c + s - d)};
        if (kind == 3) x = (struct mx_window){h, h + ny, most(h, c - d), least(h + nz, c + s - d)};
        if (kind == 4)
            x = (struct mx_window){a == h ? h : most(h, a - d), b == h + ny ? b : most(h, b - d),
                                   most(h, c - d), least(h + nz, c + s - d)};
        if (kind == 5 && l > 0) { /* each end stays at the frame, or goes in by at least h */
            const struct mx_window p = w->window[l - 1];
            x.y0 = p.y0 == h && pick(0, 3) ? h : p.y0 + h + pick(0, 2);
            x.y1 = p.y1 == h + ny && pick(0, 3) ? p.y1 : p.y1 - h - pick(0, 2);
            x.z0 = p.z0 == h && pick(0, 3) ? h : p.z0 + h + pick(0, 2);
            x.z1 = p.z1 == h + nz && pick(0, 3) ? p.z1 : p.z1 - h - pick(0, 2);
        }
        w->window[l] = x;
    }
    w->advance.window = w->window;
    w->advance.levels = levels;
}

/* Seams of random rows at the planes of the level's window. */
static void make_seams(struct world *w) {
    struct mx_advance *a = &w->advance;
    const int32_t h = w->problem.h, rows = 2 * h, planes = (int32_t)w->problem.nz;
    w->seam_z[0] = w->window[0].z0;
    w->seam_nz[0] = most(0, w->window[0].z1 - w->window[0].z0);
    for (int32_t l = 0; l <= a->levels; l++) {
        if (l > 0) {
            w->seam_z[l] = w->window[l - 1].z0;
            w->seam_nz[l] = most(0, w->window[l - 1].z1 - w->window[l - 1].z0);
        }
        for (int i = 0; i < 2; i++) {
            w->seam_n[i][l] = pick(0, rows);
            w->seam_y[i][l] = pick(0, (int32_t)w->problem.ny + 2 * h - w->seam_n[i][l]);
        }
    }
    w->seam_bytes = (size_t)(a->levels * planes * rows) * (size_t)w->options.row_pitch_bytes;
    struct mx_seam *seams[2] = {&a->seam_in, &a->seam_out};
    for (int i = 0; i < 2; i++)
        if (pick(0, 1))
            *seams[i] = (struct mx_seam){.base = malloc(w->seam_bytes),
                                         .planes_per_level = planes,
                                         .seam_rows = rows,
                                         .first_z = w->seam_z,
                                         .n_planes = w->seam_nz,
                                         .first_y = w->seam_y[i],
                                         .n_rows = w->seam_n[i]};
}

static void fill(char *at, size_t bytes, enum mx_dtype dtype, bool poison) {
    for (size_t i = 0; i + 8 <= bytes; i += (size_t)mx_dtype_bytes(dtype)) {
        double v = poison ? NAN : (double)next_random() / 1e9;
        float s = (float)v;
        memcpy(at + i, mx_dtype_bytes(dtype) == 8 ? (void *)&v : (void *)&s, (size_t)mx_dtype_bytes(dtype));
    }
}

/* The fields' cells of a row, not what pads them. */
static void fill_row(const struct world *w, int array, char *row) {
    int64_t offset[MX_MAX_FIELDS];
    mx_field_offsets(&w->problem, array, offset);
    for (int32_t f = 0; f < mx_field_count(&w->problem, array); f++) {
        const enum mx_dtype dtype = mx_field_dtype(&w->problem, array, f);
        for (int64_t x = 0; x < w->problem.nx + 2 * w->problem.h; x++)
            store_cell(dtype, row + offset[f], x,
                       test_is_real(dtype) ? (double)next_random() / 1e9 : (double)pick(0, 100));
    }
}

/* C as in a Buffer, or as in a file that somebody made: at any offset, with any pitch. */
static void make_fixed(struct world *w, int32_t z0, int32_t z1, int32_t y0, int32_t y1) {
    struct mx_view *v = &w->advance.view;
    for (int32_t i = 0; i < mx_fixed_count(&w->problem); i++) {
        const enum mx_dtype dtype = w->problem.system->fixed[i].dtype;
        const int64_t cell = mx_dtype_bytes(dtype), row = (w->problem.nx + 2 * w->problem.h) * cell;
        struct mx_fixed_view *f = &w->fixed[i];
        const int64_t pitch = row + cell * pick(0, 9), rows = y1 + v->y_offset + pick(0, 2);
        *f = (struct mx_fixed_view){.slots = z1 - z0 + pick(0, 3),
                                    .row_pitch_bytes = pitch,
                                    .offset_bytes = cell * pick(-999, 999),
                                    .file_plane_pitch_bytes =
                                        pitch * (w->problem.ny + 2 * w->problem.h) + cell * pick(0, 9),
                                    .align_bytes = pick(0, 1) ? 512 : 1};
        f->slot_pitch_bytes = (rows * pitch + 2 * f->align_bytes - 2) / f->align_bytes * f->align_bytes;
        f->base = malloc((size_t)(f->slots * f->slot_pitch_bytes));
        memset(f->base, 0xff, (size_t)(f->slots * f->slot_pitch_bytes));
        v->fixed = w->fixed;
        for (int32_t z = z0; z < z1; z++)
            for (int32_t y = y0; y < y1; y++)
                for (int64_t x = 0; x < w->problem.nx + 2 * w->problem.h; x++) {
                    char *at = (char *)(uintptr_t)mx_view_fixed_row(v, i, y, z);
                    if (test_is_real(dtype))
                        store_cell(dtype, at, x, (double)next_random() / 1e9);
                    else
                        store_cell(dtype, at, x, pick(0, 100));
                }
    }
}

void make_arrays(struct world *w) {
    const int32_t h = w->problem.h;
    struct mx_view *v = &w->advance.view;
    int32_t z0 = INT32_MAX, z1 = 0, y0 = INT32_MAX, y1 = 0;
    for (int32_t l = 0; l < w->advance.levels; l++) {
        const struct mx_window x = w->window[l];
        const bool seams = w->advance.seam_in.base || w->advance.seam_out.base;
        if ((x.y0 >= x.y1 && !seams) || x.z0 >= x.z1) continue;
        z0 = least(z0, x.z0 - h), z1 = most(z1, x.z1 + h), y0 = least(y0, x.y0 - h), y1 = most(y1, x.y1 + h);
    }
    if (z0 > z1) z0 = y0 = 0, z1 = y1 = 1;
    if (w->advance.seam_in.base || w->advance.seam_out.base) /* whose rows lie anywhere */
        y0 = 0, y1 = (int32_t)w->problem.ny + 2 * h;
    v->row_pitch_bytes = w->options.row_pitch_bytes;
    v->y_offset = pick(0, 2) - y0;
    v->plane_pitch_bytes = (y1 + v->y_offset + pick(0, 2)) * v->row_pitch_bytes + 64 * pick(0, 3);
    for (int i = 0; i < 2; i++) v->slots[i] = z1 - z0 + pick(0, 3);
    v->z_offset = pick(0, 40);
    w->array_bytes = (size_t)(most((int32_t)v->slots[0], (int32_t)v->slots[1]) * v->plane_pitch_bytes);
    for (int i = 0; i < 2; i++) {
        v->base[i] = aligned_alloc(64, (w->array_bytes + 63) / 64 * 64);
        fill(v->base[i], w->array_bytes, w->problem.dtype, true);
        for (int32_t z = z0; z < z1; z++)
            for (int32_t y = y0; y < y1; y++) fill_row(w, i, row_at(v, i, y, z));
    }
    struct mx_seam *seams[2] = {&w->advance.seam_in, &w->advance.seam_out};
    for (int i = 0; i < 2; i++)
        if (seams[i]->base != NULL) fill(seams[i]->base, w->seam_bytes, w->problem.dtype, i == 1);
    w->advance.parity = pick(0, 1);
    if (mx_reads_old(&w->problem)) w->advance.parity = (int32_t)w->advance.first_level & 1;
    make_fixed(w, z0, z1, y0, y1);
}

void make_world(struct world *w, bool systems, bool seams) {
    if (systems)
        make_system_problem(w);
    else
        make_problem(w);
    make_options(w);
    make_windows(w, pick(1, LEVELS));
    if (seams) make_seams(w);
    make_arrays(w);
}

void free_world(struct world *w) {
    for (int i = 0; i < 2; i++) free(w->advance.view.base[i]);
    for (int i = 0; i < TEST_FIXED; i++) free(w->fixed[i].base);
    free(w->advance.seam_in.base);
    free(w->advance.seam_out.base);
}

char *copy_of(const char *from, size_t bytes) {
    char *to = from == NULL ? NULL : malloc(bytes);
    return to == NULL ? NULL : memcpy(to, from, bytes);
}

/* ---- the tests */

/* Rows of level l+1 that are used up: with all neighbours in window l+1, as no later level needs them. They
 * may differ: what stands there in order is put in their place, unless a later level has replaced them. */
static void forgive_used_up(const struct world *w, const struct mx_advance *plain) {
    const struct mx_advance *a = &w->advance;
    const int64_t h = w->problem.h;
    const size_t row_bytes = (size_t)w->options.row_pitch_bytes;
    for (int32_t l = 0; l + 1 < a->levels; l++) {
        const struct mx_window x = a->window[l], next = a->window[l + 1];
        for (int64_t z = most(x.z0, next.z0 + (int32_t)h); z < least(x.z1, next.z1 - (int32_t)h); z++)
            for (int64_t y = most(x.y0, next.y0 + (int32_t)h); y < least(x.y1, next.y1 - (int32_t)h); y++) {
                bool replaced = false;
                for (int32_t m = l + 2; m < a->levels && !replaced; m += 2)
                    replaced = y >= a->window[m].y0 && y < a->window[m].y1 && z >= a->window[m].z0 &&
                               z < a->window[m].z1;
                if (replaced) continue;
                const int array = (a->parity + l + 1) & 1;
                memcpy(row_at(&a->view, array, y, z), row_at(&plain->view, array, y, z), row_bytes);
            }
    }
}

void same_as_reference(struct world *w, const struct mx_engine_ops *ops, mx_engine *engine) {
    struct mx_advance plain = w->advance;
    for (int i = 0; i < 2; i++) plain.view.base[i] = copy_of(w->advance.view.base[i], w->array_bytes);
    plain.seam_out.base = copy_of(w->advance.seam_out.base, w->seam_bytes);
    reference(w, &plain);
    mx_engine_advance(ops, engine, &w->advance);
    if (!mx_reads_old(&w->problem)) forgive_used_up(w, &plain);
    for (int i = 0; i < 2; i++)
        cr_assert(
            memcmp(w->advance.view.base[i], plain.view.base[i], w->array_bytes) == 0,
            "%s: array %d differs: %s nx %d ny %d nz %d levels %d threads %d slab %d tile %d ct %d column %d",
            ops->name, i, w->stencil->name, (int)w->problem.nx, (int)w->problem.ny, (int)w->problem.nz,
            w->advance.levels, w->options.threads, (int)w->options.slab, (int)w->options.tile,
            (int)w->options.ct, (int)w->options.column);
    if (plain.seam_out.base != NULL)
        cr_assert(memcmp(w->advance.seam_out.base, plain.seam_out.base, w->seam_bytes) == 0,
                  "%s: face differs", ops->name);
    free(plain.view.base[0]);
    free(plain.view.base[1]);
    free(plain.seam_out.base);
}
