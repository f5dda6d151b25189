/* tiled.c - temporal blocking in cache.
 *
 * Skewed coordinates. Let Y = y + l*h and Z = z + l*h for the cell (y, z) that level l computes. What level
 * l+1 needs of level l, and what it overwrites that level l read, lies within h cells in y and z, that is
 * 0..2h back in Y and Z: every dependency points backwards in Y, Z and l at once. So boxes in (Z, l, Y) may
 * be executed in any order in which no box comes before one that is smaller or equal in all three
 * coordinates, whatever the windows are.
 *
 * A slab is a range of Z, a chunk a range of levels, a tile a range of Y. A line is (slab, chunk): its tiles
 * are done in order by one thread. Tile i of line (s, c) starts when tile i is done in lines (s, c-1) and
 * (s-1, c). Lines are taken in the order of s, then c, by whichever thread is free: a thread follows its
 * predecessor one tile behind and finds its data in L3. Progress counters, no barriers; the first line that
 * is not finished never waits, so any number of threads works.
 */
#include "engine/team.h"
#include "engine/work.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>

struct job {
    const struct mx_advance *a;
    int64_t y_origin, z_origin; /* skewed coordinates of tile 0 and slab 0 */
    int64_t slab, tile, tiles;
    int64_t slabs, chunks;
};

struct mx_engine {
    struct mx_work work;
    struct mx_team *team;
    int32_t threads;
    int64_t slab, tile, ct;
    struct mx_progress *line; /* tiles done */
    int64_t lines;            /* allocated */
    _Atomic int64_t next_line;
    struct job job;
};

/* What is done at level l: rows and planes, the faces that appear as level l+1 included. */
static struct mx_window reach(const struct mx_advance *a, int32_t l) {
    struct mx_window w = a->window[l];
    const struct mx_face *faces[2] = {&a->face_in, &a->face_out};
    const bool empty = w.y0 >= w.y1 || w.z0 >= w.z1;
    if (empty) w = (struct mx_window){INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 2; i++) {
        const struct mx_face *f = faces[i];
        if (f->base == NULL || l + 1 >= a->levels || f->n_planes[l + 1] <= 0 || f->n_rows[l + 1] <= 0)
            continue;
        w.y0 = (int32_t)mx_min(w.y0, f->first_y[l + 1]);
        w.y1 = (int32_t)mx_max(w.y1, f->first_y[l + 1] + f->n_rows[l + 1]);
        w.z0 = (int32_t)mx_min(w.z0, f->first_z[l + 1]);
        w.z1 = (int32_t)mx_max(w.z1, f->first_z[l + 1] + f->n_planes[l + 1]);
    }
    return w;
}

static bool has_faces(const struct mx_advance *a) { return a->face_in.base || a->face_out.base; }

static void rows_at_level(const mx_engine *e, const struct mx_advance *a, int32_t l, int64_t y0, int64_t y1,
                          int64_t z0, int64_t z1) {
    const struct mx_window w = a->window[l];
    const int64_t wy0 = mx_max(w.y0, y0), wy1 = mx_min(w.y1, y1);
    if (wy0 >= wy1) return;
    const int64_t h = e->work.h;
    for (int64_t z = mx_max(w.z0, z0); z < mx_min(w.z1, z1); z++)
        mx_work_rows(&e->work, &a->view, (a->parity + l + 1) & 1, wy0, wy1, z, h, e->work.nx + h);
}

/* Faces as rows of `level`, which exist up to the last level but one. */
static void faces_at_level(const mx_engine *e, const struct mx_advance *a, int32_t level, int64_t y0,
                           int64_t y1, int64_t z0, int64_t z1) {
    const int64_t row_bytes = (e->work.nx + 2 * e->work.h) * e->work.cell_bytes;
    if (level >= a->levels) return;
    for (int64_t z = z0; z < z1; z++) {
        mx_face_insert(a, level, y0, y1, z, row_bytes);
        mx_face_save(a, level, y0, y1, z, row_bytes);
    }
}

/* Level 0 is new: nothing in this call has read what it replaces. */
static void loaded_faces(const mx_engine *e, const struct mx_advance *a) {
    const struct mx_face *faces[2] = {&a->face_in, &a->face_out};
    int64_t z0 = INT64_MAX, z1 = INT64_MIN;
    for (int i = 0; i < 2; i++)
        if (faces[i]->base != NULL) {
            z0 = mx_min(z0, faces[i]->first_z[0]);
            z1 = mx_max(z1, faces[i]->first_z[0] + faces[i]->n_planes[0]);
        }
    faces_at_level(e, a, 0, INT32_MIN, INT32_MAX, z0, z1);
}

static void do_tile(const mx_engine *e, int64_t slab, int64_t chunk, int64_t tile) {
    const struct job *j = &e->job;
    const struct mx_advance *a = j->a;
    const int64_t h = e->work.h;
    const int32_t l0 = (int32_t)(a->levels * chunk / j->chunks);
    const int32_t l1 = (int32_t)(a->levels * (chunk + 1) / j->chunks);
    for (int32_t l = l0; l < l1; l++) {
        const int64_t y0 = j->y_origin + tile * j->tile - l * h, z0 = j->z_origin + slab * j->slab - l * h;
        rows_at_level(e, a, l, y0, y0 + j->tile, z0, z0 + j->slab);
        if (has_faces(a)) faces_at_level(e, a, l + 1, y0, y0 + j->tile, z0, z0 + j->slab);
    }
}

static void do_line(mx_engine *e, int64_t number) {
    const struct job *j = &e->job;
    const int64_t slab = number / j->chunks, chunk = number % j->chunks;
    struct mx_progress *line = &e->line[number];
    for (int64_t tile = 0; tile < j->tiles; tile++) {
        if (chunk > 0) mx_wait_at_least(line - 1, tile + 1);
        if (slab > 0) mx_wait_at_least(line - j->chunks, tile + 1);
        do_tile(e, slab, chunk, tile);
        atomic_store_explicit(&line->value, tile + 1, memory_order_release);
    }
}

static void advance_part(void *arg, int thread, int threads) {
    mx_engine *e = arg;
    (void)thread, (void)threads;
    const int64_t lines = e->job.slabs * e->job.chunks;
    for (;;) {
        int64_t number = atomic_fetch_add_explicit(&e->next_line, 1, memory_order_relaxed);
        if (number >= lines) return;
        do_line(e, number);
    }
}

/* The box of all work in skewed coordinates; false if there is none. */
static bool extent(const struct mx_advance *a, int64_t h, int64_t y[2], int64_t z[2]) {
    y[0] = z[0] = INT64_MAX;
    y[1] = z[1] = INT64_MIN;
    for (int32_t l = 0; l < a->levels; l++) {
        struct mx_window w = reach(a, l);
        if (w.y0 >= w.y1 || w.z0 >= w.z1) continue;
        y[0] = mx_min(y[0], w.y0 + l * h);
        y[1] = mx_max(y[1], w.y1 + l * h);
        z[0] = mx_min(z[0], w.z0 + l * h);
        z[1] = mx_max(z[1], w.z1 + l * h);
    }
    return y[0] < y[1];
}

/* Zeroed counters for n lines; false when memory is short. */
static bool lines_ready(mx_engine *e, int64_t n) {
    if (n > e->lines) {
        struct mx_progress *line = aligned_alloc(_Alignof(struct mx_progress), (size_t)n * sizeof *line);
        if (line == NULL) return false;
        free(e->line);
        e->line = line;
        e->lines = n;
    }
    for (int64_t i = 0; i < n; i++) atomic_init(&e->line[i].value, 0);
    atomic_store_explicit(&e->next_line, 0, memory_order_relaxed);
    return true;
}

static void tiled_advance(mx_engine *e, const struct mx_advance *a) {
    const int64_t h = e->work.h;
    int64_t y[2], z[2];
    loaded_faces(e, a);
    if (!extent(a, h, y, z)) return;
    struct job *j = &e->job;
    *j = (struct job){.a = a, .y_origin = y[0], .z_origin = z[0], .slab = e->slab, .tile = e->tile};
    j->slabs = mx_ceil_div(z[1] - z[0], j->slab);
    j->tiles = mx_ceil_div(y[1] - y[0], j->tile);
    j->chunks = mx_min(mx_ceil_div(a->levels, e->ct), a->levels);
    if (!lines_ready(e, j->slabs * j->chunks)) { /* one line needs no counter but the one there is */
        *j = (struct job){.a = a, .y_origin = y[0], .z_origin = z[0]};
        j->slab = z[1] - z[0];
        j->tile = y[1] - y[0];
        j->slabs = j->tiles = j->chunks = 1;
        lines_ready(e, 1);
    }
    mx_team_run(e->team, advance_part, e);
}

static int64_t tiled_slab(const struct mx_engine_options *o) { return o->slab > 0 ? o->slab : 16; }

static void tiled_free(mx_engine *e) {
    if (e == NULL) return;
    mx_team_free(e->team);
    free(e->line);
    free(e);
}

/* Measured: rows of up to two pages do best four at a time, longer ones eight. */
static int64_t default_tile(const struct mx_engine_options *o) {
    return o->row_pitch_bytes <= 8192 + 64 ? 4 : 8;
}

static int tiled_create(const struct mx_engine_options *o, mx_why *why, mx_engine **out) {
    struct mx_work work;
    int err = mx_work_make(o, why, &work);
    if (err != 0) return err;
    mx_engine *e = calloc(1, sizeof *e);
    if (e == NULL) return mx_fail(why, -ENOMEM, "no memory for the tiled engine");
    e->work = work;
    e->threads = o->threads;
    e->slab = tiled_slab(o);
    e->tile = o->tile > 0 ? o->tile : default_tile(o);
    e->ct = o->ct > 0 ? o->ct : 16;
    if (!lines_ready(e, 64))
        err = mx_fail(why, -ENOMEM, "no memory for the tiled engine");
    else
        err = mx_team_create(o->threads, why, &e->team);
    if (err != 0) {
        tiled_free(e);
        return err;
    }
    *out = e;
    return 0;
}

static void tiled_describe(const mx_engine *e, struct mx_plan *plan) {
    if (plan->slab == 0) plan->slab = e->slab;
    if (plan->tile == 0) plan->tile = e->tile;
    if (plan->ct == 0) plan->ct = e->ct;
    if (plan->threads == 0) plan->threads = e->threads;
}

const struct mx_engine_ops mx_engine_tiled = {
    .name = "tiled",
    .summary = "temporal blocking in cache: skewed tiles, chunks of levels pipelined over the threads",
    .slab = tiled_slab,
    .create = tiled_create,
    .advance = tiled_advance,
    .free = tiled_free,
    .describe = tiled_describe,
};
