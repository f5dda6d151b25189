/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines against the in-order execution of an advance by the plain kernel, bit by bit. */
#include "engine/engine.h"
#include "random_system.h"
#include "stencil/stencil.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 7;
static uint64_t next_random(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}
static int32_t pick(int32_t from, int32_t to) {
    return from + (int32_t)(next_random() % (uint64_t)(to - from + 1));
}
static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }
static int32_t most(int32_t a, int32_t b) { return a > b ? a : b; }

enum { LEVELS = 13 };

/* One advance with everything it works on. */
struct world {
    struct mx_problem problem;
    struct mx_machine machine;
    const struct mx_stencil *stencil;
    struct mx_engine_options options;
    struct mx_window window[LEVELS];
    struct mx_advance advance;
    int32_t seam_z[LEVELS + 1], seam_nz[LEVELS + 1], seam_y[2][LEVELS + 1], seam_n[2][LEVELS + 1];
    size_t array_bytes, seam_bytes;
    struct random_system rs; /* problem.system, or not used */
    struct mx_fixed_view fixed[TEST_FIXED];
};

/* ---- the oracle */

static char *row_at(const struct mx_view *v, int array, int64_t y, int64_t z) {
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
    const struct mx_row r = {.out = out,
                             .in = in,
                             .fixed = fixed,
                             .row_pitch = a->view.row_pitch_bytes,
                             .fixed_pitch = fixed_pitch,
                             .rows = 1,
                             .param = s->param,
                             .x0 = p->h,
                             .x1 = p->nx + p->h,
                             .y = y - p->h,
                             .z = z - p->h,
                             .t = level / mx_levels_a_step(p),
                             .nx = p->nx,
                             .ny = p->ny,
                             .nz = p->nz};
    s->row[from](&r);
    for (int32_t f = 0; f < s->n_field[1 - from] && s->form == MX_JACOBI; f++) {
        const size_t cell = (size_t)mx_dtype_bytes(s->field[0][f].dtype), side = cell * (size_t)p->h;
        const size_t right = side + cell * (size_t)p->nx;
        memcpy(out[f], in[f * n + p->h], side);
        memcpy((char *)out[f] + right, (const char *)in[f * n + p->h] + right, side);
    }
}

/* For l = 0, 1, ...: seams of level l, then array (parity+l+1)&1 := stencil(array (parity+l)&1) on window[l].
 */
static void reference(const struct world *w, const struct mx_advance *a) {
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

static void make_problem(struct world *w) {
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

static void make_system_problem(struct world *w) {
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

/* Parameters are explicit or left to the engine, threads may outnumber cores and chunks. Some worlds have
 * rows that are cut into spans of tiles in place. */
static void make_options(struct world *w) {
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
        memcpy(at + i, dtype == MX_F64 ? (void *)&v : (void *)&s, (size_t)mx_dtype_bytes(dtype));
    }
}

/* The fields' cells of a row, not what pads them. */
static void fill_row(const struct world *w, int array, char *row) {
    int64_t offset[MX_MAX_FIELDS];
    mx_field_offsets(&w->problem, array, offset);
    for (int32_t f = 0; f < mx_field_count(&w->problem, array); f++) {
        const enum mx_dtype dtype = mx_field_dtype(&w->problem, array, f);
        for (int64_t x = 0; x < w->problem.nx + 2 * w->problem.h; x++)
            store_cell(dtype, row + offset[f], x, (double)next_random() / 1e9);
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
                    if (dtype == MX_F64 || dtype == MX_F32)
                        store_cell(dtype, at, x, (double)next_random() / 1e9);
                    else
                        store_cell(dtype, at, x, pick(0, 100));
                }
    }
}

/* A ring that holds the planes the windows reach and `spare` more; values where a window reaches, NaN
 * elsewhere (spare planes, rows and x padding that nobody may read). */
static void make_arrays(struct world *w) {
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

static void make_world(struct world *w, bool systems, bool seams) {
    if (systems)
        make_system_problem(w);
    else
        make_problem(w);
    make_options(w);
    make_windows(w, pick(1, LEVELS));
    if (seams) make_seams(w);
    make_arrays(w);
}

static void free_world(struct world *w) {
    for (int i = 0; i < 2; i++) free(w->advance.view.base[i]);
    for (int i = 0; i < TEST_FIXED; i++) free(w->fixed[i].base);
    free(w->advance.seam_in.base);
    free(w->advance.seam_out.base);
}

static char *copy_of(const char *from, size_t bytes) {
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

/* Both arrays and the outgoing seam, every byte that is not used up: engine == in order. */
static void same_as_reference(struct world *w, const struct mx_engine_ops *ops, mx_engine *engine) {
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

#if defined(__SANITIZE_THREAD__) /* which takes twenty times as long */
enum { FEWER = 10 };
#else
enum { FEWER = 1 };
#endif

static void many_of(const char *name, bool systems, bool seams, int count) {
    const struct mx_engine_ops *ops = mx_engine_find(name);
    cr_assert_not_null(ops);
    for (int i = 0; i < count / FEWER; i++) {
        struct world w;
        make_world(&w, systems, seams);
        mx_engine *engine = NULL;
        mx_why why = {0};
        cr_assert_eq(ops->create(&w.options, &why, &engine), 0, "%s", why.text);
        same_as_reference(&w, ops, engine);
        w.advance.parity = !w.advance.parity; /* an engine is used many times */
        w.advance.first_level++;
        same_as_reference(&w, ops, engine);
        ops->free(engine);
        free_world(&w);
    }
}

static void many_worlds(const char *name, bool seams, int count) { many_of(name, false, seams, count); }

/* Systems of fields: every form, C of every type. */
Test(engine, iblock_does_systems) {
    many_of("iblock", true, false, 60);
    many_of("iblock", true, true, 60);
}
Test(engine, tiled_does_systems) {
    many_of("tiled", true, false, 300);
    many_of("tiled", true, true, 150);
}

Test(engine, iblock_is_in_order) { many_worlds("iblock", false, 400); }
Test(engine, tiled_is_in_order) { many_worlds("tiled", false, 1500); }
Test(engine, iblock_carries_seams) { many_worlds("iblock", true, 200); }
Test(engine, tiled_carries_seams) { many_worlds("tiled", true, 800); }

/* The engines on every instruction set that this CPU has; the tests above took the best. */
static void on_isa(const char *isa) {
    if (!mx_stencil_has_isa(isa)) cr_skip_test("this CPU has no %s: the engines are not tested with it", isa);
    setenv("MX_ISA", isa, 1);
    many_worlds("iblock", false, 100);
    many_worlds("tiled", false, 200);
    many_worlds("tiled", true, 100);
}

Test(engine, with_avx512) { on_isa("avx512"); }
Test(engine, with_avx2) { on_isa("avx2"); }
Test(engine, with_plain) { on_isa("plain"); }

Test(engine, refuses_an_instruction_set_that_is_none) {
    struct world w;
    mx_engine *engine = NULL;
    mx_why why = {0};
    make_problem(&w);
    make_options(&w);
    setenv("MX_ISA", "sse9", 1);
    cr_assert_eq(mx_engine_find("tiled")->create(&w.options, &why, &engine), -22);
    cr_assert(engine == NULL && strstr(why.text, "MX_ISA=sse9") != NULL, "%s", why.text);
}

/* Windows of all levels between two positions of a front along z. */
static void front_windows(const struct world *w, int64_t from, int64_t to, struct mx_window *out) {
    const int32_t h = w->problem.h;
    for (int32_t l = 0; l < w->advance.levels; l++) {
        out[l] = (struct mx_window){h, (int32_t)w->problem.ny + h, h, (int32_t)w->problem.nz + h};
        out[l].z0 = most(out[l].z0, (int32_t)from - (l + 1) * h);
        out[l].z1 = most(out[l].z0, least(out[l].z1, (int32_t)to - (l + 1) * h));
    }
}

static bool is_empty(struct mx_window w) { return w.y0 >= w.y1 || w.z0 >= w.z1; }

/* Sweeps of a front, all calls posted at once or some waited for: the last level == in order. */
static void sweep_of_calls(struct world *w, const struct mx_engine_ops *ops, mx_engine *engine) {
    enum { SWEEPS = 3, MOST_CALLS = SWEEPS * 90 };
    static struct mx_window window[MOST_CALLS][LEVELS];
    const int32_t h = w->problem.h, levels = w->advance.levels;
    struct mx_advance plain = w->advance, call = w->advance;
    for (int i = 0; i < 2; i++) plain.view.base[i] = copy_of(w->advance.view.base[i], w->array_bytes);
    int64_t number = 0, step = pick(1, 9);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        const int64_t end = w->problem.nz + h + levels * h;
        for (int64_t front = 0, next; front < end; front = next) {
            if (pick(0, 9) == 0) step = pick(1, 9);
            next = end - front > MOST_CALLS / SWEEPS ? front + 9 : front + step;
            cr_assert(number < MOST_CALLS);
            const bool cut = pick(0, 1) == 0; /* or all windows, and the front that cuts them */
            front_windows(w, cut ? front : 0, cut ? next : end, window[number]);
            call.window = window[number++];
            call.front = (struct mx_front){front, next, cut ? 0 : h};
            call.first = 0, call.end = cut || pick(0, 1) == 0 ? 0 : levels;
            while (call.end > 0 && call.first + 1 < call.end && is_empty(mx_window_at(&call, call.first)))
                call.first++;
            while (call.end > call.first + 1 && is_empty(mx_window_at(&call, call.end - 1))) call.end--;
            cr_assert_eq(ops->post(engine, &call), number);
            if (pick(0, 7) == 0) ops->wait(engine, pick(1, (int32_t)number));
        }
        reference(w, &plain);
        call.parity = plain.parity = (plain.parity + levels) & 1;
        call.first_level = plain.first_level += levels;
    }
    ops->wait(engine, number);
    cr_assert_eq(ops->done(engine), number);
    const size_t row_bytes = (size_t)mx_field_offsets(&w->problem, call.first_level & 1, NULL);
    if (mx_reads_old(&w->problem))
        for (int i = 0; i < 2; i++)
            cr_assert(memcmp(call.view.base[i], plain.view.base[i], w->array_bytes) == 0,
                      "%s: array %d differs", ops->name, i);
    for (int64_t z = h; z < w->problem.nz + h; z++)
        for (int64_t y = h; y < w->problem.ny + h; y++)
            cr_assert(
                memcmp(row_at(&call.view, call.parity, y, z), row_at(&plain.view, plain.parity, y, z),
                       row_bytes) == 0,
                "%s: row %d of plane %d differs: %s nx %d ny %d nz %d levels %d threads %d slab %d tile "
                "%d ct %d column %d",
                ops->name, (int)y, (int)z, w->stencil->name, (int)w->problem.nx, (int)w->problem.ny,
                (int)w->problem.nz, levels, w->options.threads, (int)w->options.slab, (int)w->options.tile,
                (int)w->options.ct, (int)w->options.column);
    free(plain.view.base[0]);
    free(plain.view.base[1]);
}

static void many_sweeps(const char *name, bool systems, int count) {
    const struct mx_engine_ops *ops = mx_engine_find(name);
    for (int i = 0; i < count / FEWER; i++) {
        struct world w;
        if (systems)
            make_system_problem(&w);
        else
            make_problem(&w);
        make_options(&w);
        w.advance.levels = pick(1, LEVELS);
        w.advance.window = w.window;
        for (int32_t l = 0; l < w.advance.levels; l++)
            w.window[l] = (struct mx_window){w.problem.h, (int32_t)w.problem.ny + w.problem.h, w.problem.h,
                                             (int32_t)w.problem.nz + w.problem.h};
        make_arrays(&w);
        mx_engine *engine = NULL;
        cr_assert_eq(ops->create(&w.options, NULL, &engine), 0);
        sweep_of_calls(&w, ops, engine);
        ops->free(engine);
        free_world(&w);
    }
}

Test(engine, iblock_calls_are_in_order) { many_sweeps("iblock", false, 60); }
Test(engine, tiled_calls_follow_one_another) { many_sweeps("tiled", false, 400); }
Test(engine, calls_of_systems_follow_one_another) { many_sweeps("tiled", true, 100); }

/* describe() fills what was 0 and keeps what was given; slab() is the given slab, or at least 1. */
Test(engine, parameters_are_honoured_and_reported) {
    for (int i = 0; i < 100; i++) {
        struct world w;
        make_problem(&w);
        make_options(&w);
        for (const struct mx_engine_ops *const *ops = mx_engines; *ops != NULL; ops++) {
            mx_engine *engine = NULL;
            if (strcmp((*ops)->name, "device") == 0) continue; /* needs an accelerator */
            cr_assert_eq((*ops)->create(&w.options, NULL, &engine), 0);
            struct mx_plan plan = {0};
            (*ops)->describe(engine, &plan);
            cr_assert_eq(plan.threads, w.options.threads);
            if (strcmp((*ops)->name, "tiled") == 0) {
                cr_assert(w.options.slab ? plan.slab == w.options.slab : plan.slab >= 1);
                cr_assert(w.options.tile ? plan.tile == w.options.tile : plan.tile >= 1);
                cr_assert(w.options.ct ? plan.ct == w.options.ct : plan.ct >= 1);
            } else {
                cr_assert(w.options.iy ? plan.iy == w.options.iy : plan.iy >= 1);
                cr_assert(w.options.iz ? plan.iz == w.options.iz : plan.iz >= 1);
            }
            int64_t slab = (*ops)->slab(&w.options);
            cr_assert(w.options.slab ? slab == w.options.slab : slab >= 1);
            (*ops)->free(engine);
        }
    }
}

/* Of rows of 510 cells where there are kernels for tiles in place: by the caches, and the nearest number of
 * chunks of the call's levels unless `ct` is given. expected_tile 0: as many rows as the kernel does
 * together. */
Test(engine, sizes_suit_the_caches) {
    const struct mx_stencil *stencil = mx_stencil_find("star7");
    static const struct {
        int64_t l1, l2, levels, ct, expected_tile, expected_slab, expected_ct;
    } rows[] = {
        {48 << 10, 1 << 20, 128, 0, 6, 16, 16}, {48 << 10, 1 << 20, 65, 0, 6, 16, 17},
        {48 << 10, 1 << 20, 65, 16, 6, 16, 16}, {48 << 10, 1 << 20, 24, 0, 6, 16, 12},
        {48 << 10, 1 << 20, 23, 0, 6, 16, 23},  {48 << 10, 2 << 20, 128, 0, 6, 16, 32},
        {32 << 10, 1 << 20, 65, 0, 0, 16, 22},  {32 << 10, 1 << 20, 128, 0, 0, 16, 22},
        {32 << 10, 1 << 20, 0, 0, 0, 16, 22},   {32 << 10, 512 << 10, 65, 0, 6, 12, 17},
        {32 << 10, 2 << 20, 65, 0, 6, 16, 33},
    };
    if (mx_stencil_tile(stencil, MX_F64) == NULL) cr_skip_test("no kernel for tiles in place here");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mx_problem p = {.nx = 510, .ny = 510, .nz = 510, .h = 1, .nt = 128, .dtype = MX_F64};
        strcpy(p.stencil, "star7");
        const struct mx_machine m = {.cores = 1,
                                     .sockets = 1,
                                     .l1_bytes = (uint64_t)rows[i].l1,
                                     .l2_bytes = (uint64_t)rows[i].l2,
                                     .l3_bytes = 32 << 20};
        const struct mx_engine_options o = {.problem = &p,
                                            .machine = &m,
                                            .row_pitch_bytes = 4160,
                                            .threads = 1,
                                            .ct = rows[i].ct,
                                            .levels = rows[i].levels,
                                            .rows = 510};
        const struct mx_engine_ops *ops = mx_engine_find("tiled");
        struct mx_plan plan = {0};
        mx_engine *engine = NULL;
        cr_assert_eq(ops->create(&o, NULL, &engine), 0);
        ops->describe(engine, &plan);
        const int64_t together = mx_stencil_tile_rows(stencil), tile = rows[i].expected_tile;
        cr_assert_eq(plan.tile, tile > 0 ? tile : together, "row %zu: tile %lld", i, (long long)plan.tile);
        cr_assert_eq(plan.slab, rows[i].expected_slab, "row %zu: slab %lld", i, (long long)plan.slab);
        cr_assert_eq(plan.ct, rows[i].expected_ct, "row %zu: ct %lld", i, (long long)plan.ct);
        cr_assert_leq(ops->efficiency(&o), 1.0);
        ops->free(engine);
    }
}

Test(engine, refuses_what_it_cannot_do) {
    struct world w;
    make_problem(&w);
    make_options(&w);
    mx_engine *engine = NULL;
    mx_why why = {0};
    strcpy(w.problem.stencil, "star8");
    cr_assert_eq(mx_engine_find("tiled")->create(&w.options, &why, &engine), -22);
    cr_assert(strlen(why.text) > 0 && engine == NULL);
    cr_assert_null(mx_engine_find("none"));
}
