/* tiled.c - temporal blocking in cache.
 *
 * Skewed coordinates. Let X = x + l*h, Y = y + l*h and Z = z + l*h for the cell (x, y, z) that level l
 * computes. What level l+1 needs of level l, and what it overwrites that level l read, lies within h cells in
 * every direction, that is 0..2h back in X, Y and Z: every dependency points backwards in X, Y, Z and l at
 * once. So boxes in (Z, X, l, Y) may be executed in any order in which no box comes before one that is
 * smaller or equal in all four coordinates, whatever the windows are.
 *
 * A slab is a range of Z, a column a range of X, a chunk a range of levels, a tile a range of Y. A line is
 * (slab, column, chunk): its tiles are done in order. Tile i of a line can be done when tile i is done in the
 * lines one slab, one column and one chunk back. After each tile a thread takes the first line, in the order
 * of slab, column, chunk, whose next tile can be done and that no other thread holds: as a rule the one it
 * holds, one tile behind the thread of the line before, of whose planes it finds half in L3. A thread that
 * has caught up does a tile of a later line meanwhile, so cores of unequal speed (others share them) do
 * unequal shares. Progress counters, no barriers; the first line that is not finished never waits, so any
 * number of threads works.
 *
 * What a tile reads and writes beside its own cells are its sides. Those in y the line's tile before has left
 * in L3; those in z, and the first level of a chunk, come from DRAM: kernels ask for them ahead, in small
 * portions, while they compute what is in L2 (ahead.h). A column keeps tiles short in x, so that they can be
 * long in y, z and levels in the same cache. Tiles that are whole at every level of a chunk are computed in
 * place (resident.h).
 */
#include "engine/ahead.h"
#include "engine/resident.h"
#include "engine/team.h"
#include "engine/work.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdatomic.h>
#include <stdlib.h>

struct job {
    const struct mx_advance *a;
    int64_t x_origin, y_origin, z_origin; /* skewed coordinates of column 0, tile 0 and slab 0 */
    int64_t slab, tile, column;           /* sizes */
    int64_t slabs, columns, chunks, tiles;
    int64_t lines;
};

/* Of a line, alone in its pair of cache lines. */
struct progress {
    _Alignas(128) _Atomic int64_t done; /* tiles */
    _Atomic bool held;                  /* by the thread that does its next tile */
};

struct mx_engine {
    struct mx_work work;
    struct mx_team *team;
    struct mx_resident resident;
    int32_t threads;
    int64_t slab, tile, ct, column;
    struct progress *line;
    int64_t lines;         /* allocated */
    _Atomic int64_t first; /* lines before it are done */
    _Atomic int32_t active;
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

static void cells_at_level(const mx_engine *e, const struct mx_advance *a, int32_t l, struct mx_box box,
                           const struct mx_ahead_list *list) {
    const struct mx_window w = a->window[l];
    box.y0 = mx_max(box.y0, w.y0), box.y1 = mx_min(box.y1, w.y1);
    box.z0 = mx_max(box.z0, w.z0), box.z1 = mx_min(box.z1, w.z1);
    if (box.y0 >= box.y1 || box.z0 >= box.z1) return;
    const int64_t cells = (box.x1 - box.x0) * (box.y1 - box.y0) * (box.z1 - box.z0);
    struct mx_ahead ahead = mx_ahead_over(list, cells);
    mx_work_box(&e->work, &a->view, (a->parity + l + 1) & 1, box, list->runs > 0 ? &ahead : NULL);
}

/* Faces as rows of `level`, which exist up to the last level but one. */
static void faces_at_level(const mx_engine *e, const struct mx_advance *a, int32_t level, struct mx_box box) {
    if (level >= a->levels) return;
    mx_face_insert(&e->work, a, level, box);
    mx_face_save(&e->work, a, level, box);
}

/* Level 0 is new: nothing in this call has read what it replaces. */
static void loaded_faces(const mx_engine *e, const struct mx_advance *a) {
    const struct mx_face *faces[2] = {&a->face_in, &a->face_out};
    struct mx_box all = {0, e->work.nx + 2 * e->work.h, INT32_MIN, INT32_MAX, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 2; i++)
        if (faces[i]->base != NULL) {
            all.z0 = mx_min(all.z0, faces[i]->first_z[0]);
            all.z1 = mx_max(all.z1, faces[i]->first_z[0] + faces[i]->n_planes[0]);
        }
    faces_at_level(e, a, 0, all);
}

struct line {
    int64_t slab, column;
    int32_t l0, l1; /* levels of the chunk */
};

static struct line line_of(const struct job *j, int64_t number) {
    const int64_t chunk = number % j->chunks, levels = j->a->levels;
    number /= j->chunks;
    return (struct line){number / j->columns, number % j->columns, (int32_t)(levels * chunk / j->chunks),
                         (int32_t)(levels * (chunk + 1) / j->chunks)};
}

static struct mx_box box_of(const mx_engine *e, const struct line *line, int64_t tile, int32_t l) {
    const struct job *j = &e->job;
    const int64_t h = e->work.h, first_x = h, end_x = h + e->work.nx;
    const int64_t x0 = j->x_origin + line->column * j->column - l * h;
    const int64_t y0 = j->y_origin + tile * j->tile - l * h;
    const int64_t z0 = j->z_origin + line->slab * j->slab - l * h;
    return (struct mx_box){mx_max(x0, first_x), mx_min(x0 + j->column, end_x), y0, y0 + j->tile, z0,
                           z0 + j->slab};
}

/* What level l reads: its cells and h around. */
static struct mx_window read_at_level(const struct mx_advance *a, int32_t l, int32_t h) {
    const struct mx_window w = a->window[l];
    return (struct mx_window){w.y0 - h, w.y1 + h, w.z0 - h, w.z1 + h};
}

/* To be asked for while a tile computes level l: of its next level the 2h planes that the slab before left,
 * and, if `more`, this level's share of the planes of both arrays that the next tile's first level reads and
 * writes. */
static void list_ahead(const mx_engine *e, const struct line *line, int64_t tile, int32_t l, bool more,
                       struct mx_ahead_list *list) {
    const struct mx_advance *a = e->job.a;
    const int64_t h = e->work.h;
    list->runs = list->bytes = 0;
    if (l + 1 < line->l1) {
        const struct mx_window w = read_at_level(a, l + 1, e->work.h);
        struct mx_box box = box_of(e, line, tile, l + 1);
        box.y1 += h, box.z1 = box.z0 + h, box.z0 -= h;
        mx_ahead_add(list, &e->work, &a->view, (a->parity + l + 1) & 1, box, &w);
    }
    if (more) {
        const struct mx_window w = read_at_level(a, line->l0, e->work.h);
        const struct mx_box box = box_of(e, line, tile + 1, line->l0);
        const int64_t levels = line->l1 - line->l0, k = l - line->l0, read = e->job.slab + 2 * h;
        struct mx_box from = box, to = box;
        from.y0 += h, from.y1 += h;
        from.z0 = box.z0 - h + k * read / levels, from.z1 = box.z0 - h + (k + 1) * read / levels;
        to.z0 = box.z0 + k * e->job.slab / levels, to.z1 = box.z0 + (k + 1) * e->job.slab / levels;
        const int array = (a->parity + line->l0) & 1;
        mx_ahead_add(list, &e->work, &a->view, array, from, &w);
        mx_ahead_add(list, &e->work, &a->view, 1 - array, to, &a->window[line->l0]);
    }
}

static bool within(const struct mx_window *w, const struct mx_box *b) {
    return b->y0 >= w->y0 && b->y1 <= w->y1 && b->z0 >= w->z0 && b->z1 <= w->z1;
}

/* Whole at every level, so that its levels can be computed in place. */
static bool is_whole(const mx_engine *e, const struct line *line, int64_t tile) {
    const struct job *j = &e->job;
    if (e->resident.kernel == NULL || j->columns > 1 || j->tile != e->resident.rows ||
        j->slab != e->resident.planes || has_faces(j->a) || line->l1 - line->l0 < 2)
        return false;
    for (int32_t l = line->l0; l < line->l1; l++) {
        const struct mx_box box = box_of(e, line, tile, l);
        if (!within(&j->a->window[l], &box)) return false;
    }
    return true;
}

static void do_whole_tile(const mx_engine *e, int thread, const struct line *line, int64_t tile, bool more) {
    const struct mx_advance *a = e->job.a;
    struct mx_ahead_list list;
    for (int32_t l = line->l0; l < line->l1; l++) {
        const struct mx_resident_level level = {.box = box_of(e, line, tile, l),
                                                .from = (a->parity + l) & 1,
                                                .first = l == line->l0,
                                                .last = l == line->l1 - 1};
        list_ahead(e, line, tile, l, more, &list);
        struct mx_ahead ahead = mx_ahead_over(&list, e->work.nx * e->job.tile * e->job.slab);
        mx_resident_level(&e->resident, &e->work, &a->view, thread, &level, list.runs > 0 ? &ahead : NULL);
    }
}

static void do_tile(const mx_engine *e, const struct line *line, int64_t tile, bool more) {
    const struct job *j = &e->job;
    const bool faces = has_faces(j->a);
    struct mx_ahead_list list;
    for (int32_t l = line->l0; l < line->l1; l++) {
        const struct mx_box box = box_of(e, line, tile, l);
        if (box.x0 >= box.x1) continue;
        list_ahead(e, line, tile, l, more, &list);
        cells_at_level(e, j->a, l, box, &list);
        if (faces) faces_at_level(e, j->a, l + 1, box);
    }
}

static int64_t tiles_done(struct progress *line) {
    return atomic_load_explicit(&line->done, memory_order_acquire);
}

/* Whether the line has a next tile that can be done now. */
static bool is_ready(const mx_engine *e, int64_t number) {
    const struct job *j = &e->job;
    const int64_t column_back = j->chunks, slab_back = j->chunks * j->columns;
    const int64_t tile = tiles_done(&e->line[number]);
    const struct line line = line_of(j, number);
    struct progress *at = &e->line[number];
    return tile < j->tiles && (line.l0 == 0 || tiles_done(at - 1) > tile) &&
           (line.column == 0 || tiles_done(at - column_back) > tile) &&
           (line.slab == 0 || tiles_done(at - slab_back) > tile);
}

static bool hold(struct progress *line) {
    return !atomic_load_explicit(&line->held, memory_order_relaxed) &&
           !atomic_exchange_explicit(&line->held, true, memory_order_acquire);
}

static void let_go(struct progress *line) { atomic_store_explicit(&line->held, false, memory_order_release); }

/* Lines before this are done. */
static int64_t first_line(mx_engine *e) {
    const int64_t known = atomic_load_explicit(&e->first, memory_order_relaxed);
    int64_t first = known;
    while (first < e->job.lines && tiles_done(&e->line[first]) == e->job.tiles) first++;
    if (first > known) atomic_store_explicit(&e->first, first, memory_order_relaxed);
    return first;
}

/* The first line that can go on, now held, within a few of the first that is not done: those further off find
 * less of what they read in L3. own: held by the caller, let go unless it is the one; NONE for none. */
enum { NONE = -1, LINES_AHEAD = 6 };
static int64_t take_line(mx_engine *e, int64_t first, int64_t own) {
    const int64_t end = mx_min(e->job.lines, first + e->threads + LINES_AHEAD);
    for (int64_t i = first; i < end; i++) {
        if (!is_ready(e, i)) continue;
        if (i == own) return own;
        if (!hold(&e->line[i])) continue;
        if (is_ready(e, i)) { /* still: its former holder may have gone on meanwhile */
            if (own != NONE) let_go(&e->line[own]);
            return i;
        }
        let_go(&e->line[i]);
    }
    if (own != NONE) let_go(&e->line[own]);
    return NONE;
}

/* A line that is at least two tiles ahead has left what this line's next tile needs of it; one that is done,
 * or nearly so, has left it in DRAM. */
static bool is_ahead(struct progress *line, int64_t tile) { return tiles_done(line) >= tile + 2; }

static void do_next_tile(mx_engine *e, int thread, int64_t number) {
    struct progress *at = &e->line[number];
    const struct line line = line_of(&e->job, number);
    const int64_t tile = tiles_done(at);
    const bool more = tile + 1 < e->job.tiles && (line.l0 == 0 || is_ahead(at - 1, tile));
    if (is_whole(e, &line, tile))
        do_whole_tile(e, thread, &line, tile, more);
    else
        do_tile(e, &line, tile, more);
    atomic_store_explicit(&at->done, tile + 1, memory_order_release);
}

/* Whether fewer lines are left than threads are there, and this one may leave. */
static bool may_leave(mx_engine *e, int64_t first) {
    int32_t active = atomic_load_explicit(&e->active, memory_order_relaxed);
    return e->job.lines - first < active &&
           atomic_compare_exchange_strong_explicit(&e->active, &active, active - 1, memory_order_relaxed,
                                                   memory_order_relaxed);
}

static void advance_part(void *arg, int thread, int threads) {
    mx_engine *e = arg;
    int64_t own = NONE;
    unsigned rounds = 0;
    (void)threads;
    for (;;) {
        const int64_t first = first_line(e);
        own = take_line(e, first, own);
        if (own != NONE) {
            do_next_tile(e, thread, own);
            rounds = 0;
        } else if (may_leave(e, first)) {
            return;
        } else {
            mx_wait_round(&rounds);
        }
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
        struct progress *line = aligned_alloc(_Alignof(struct progress), (size_t)n * sizeof *line);
        if (line == NULL) return false;
        free(e->line);
        e->line = line;
        e->lines = n;
    }
    for (int64_t i = 0; i < n; i++) {
        atomic_init(&e->line[i].done, 0);
        atomic_init(&e->line[i].held, false);
    }
    atomic_store_explicit(&e->first, 0, memory_order_relaxed);
    atomic_store_explicit(&e->active, e->threads, memory_order_relaxed);
    e->job.lines = n;
    return true;
}

static void tiled_advance(mx_engine *e, const struct mx_advance *a) {
    const int64_t h = e->work.h, wide = e->work.nx + (a->levels - 1) * h;
    int64_t y[2], z[2];
    loaded_faces(e, a);
    if (!extent(a, h, y, z)) return;
    struct job *j = &e->job;
    *j = (struct job){.a = a, .x_origin = h, .y_origin = y[0], .z_origin = z[0]};
    j->slab = e->slab, j->tile = e->tile, j->column = mx_min(e->column, wide);
    j->slabs = mx_ceil_div(z[1] - z[0], j->slab);
    j->columns = mx_ceil_div(wide, j->column);
    j->chunks = mx_min(a->levels,
                       mx_max(mx_ceil_div(a->levels, e->ct), mx_ceil_div(e->threads, j->slabs * j->columns)));
    j->tiles = mx_ceil_div(y[1] - y[0], j->tile);
    if (!lines_ready(e, j->slabs * j->columns *
                            j->chunks)) { /* one line needs no counter but the one there is */
        j->slab = z[1] - z[0], j->column = wide, j->tile = y[1] - y[0];
        j->slabs = j->columns = j->chunks = j->tiles = 1;
        lines_ready(e, 1);
    }
    mx_team_run(e->team, advance_part, e);
}

/* The defaults were measured (512^2 to 2048^2 cells a plane, 1 MiB of L2, 32 MiB of L3 shared with others).
 *
 * In place: as many rows as the kernel does together, for tiles are read and written from one strip to the
 * next; planes so that one array of the tile takes 0.4 of L2, which leaves room for its sides and for what is
 * asked for ahead.
 *
 * In two arrays: a tile takes half of L2; few rows and more planes, since the planes beside a tile come from
 * DRAM and the rows from L3. Rows of up to 6 KiB are best left whole: long runs suit the hardware's
 * prefetchers. Of longer ones what a chunk touches from one tile to the next no longer stays in L3; columns
 * of about a page do. */
enum {
    PLACE_ROWS = 6,
    PLACE_LEAST_PLANES = 12,
    PLACE_MOST_PLANES = 24,
    PLACE_ROW_BYTES = 12288,
    TILE_ROWS = 4,
    COLUMN_TILE_ROWS = 6,
    LEAST_PLANES = 8,
    MOST_PLANES = 32,
    CHUNK_LEVELS = 16,
    WHOLE_ROW_BYTES = 6144,
    COLUMN_BYTES = 4096,
    COMMON_L2_BYTES = 1 << 20
};

static bool is_in_place(const struct mx_engine_options *o) {
    const struct mx_stencil *stencil = mx_stencil_find(o->problem->stencil);
    const bool sizes =
        o->row_pitch_bytes <= PLACE_ROW_BYTES && (o->tile == 0 || mx_resident_fits(o->tile, o->slab));
    const bool whole = o->column == 0 || o->column >= o->problem->nx;
    return sizes && whole && stencil != NULL && mx_stencil_tile(stencil, o->problem->dtype) != NULL;
}

static bool has_columns(const struct mx_engine_options *o) {
    return o->row_pitch_bytes > (is_in_place(o) ? PLACE_ROW_BYTES : WHOLE_ROW_BYTES);
}

static int64_t tiled_tile(const struct mx_engine_options *o) {
    if (o->tile > 0) return o->tile;
    return is_in_place(o) ? PLACE_ROWS : has_columns(o) ? COLUMN_TILE_ROWS : TILE_ROWS;
}

static int64_t even(double planes) { return (int64_t)((planes + 1) / 2) * 2; }

static int64_t tiled_slab(const struct mx_engine_options *o) {
    if (o->slab > 0) return o->slab;
    const double l2 =
        o->machine != NULL && o->machine->l2_bytes > 0 ? (double)o->machine->l2_bytes : COMMON_L2_BYTES;
    const double row = has_columns(o) ? COLUMN_BYTES : (double)o->row_pitch_bytes;
    const double tile = row * (double)tiled_tile(o);
    if (is_in_place(o)) return mx_max(PLACE_LEAST_PLANES, mx_min(even(0.4 * l2 / tile), PLACE_MOST_PLANES));
    return mx_max(LEAST_PLANES, mx_min(even(l2 / 4 / tile), MOST_PLANES));
}

/* A tile of s planes and c levels reads, beside what it computes, 2h planes below each level and, from DRAM,
 * its first level; r rows make few tiles, and the threads share them badly; rows of whole pages compete for
 * L1. Measured on 512^2 cells a plane (s = 2 to 16; 4 to 64 levels a call; 64 to 510 rows): time per update
 * goes as (1 + 2.7 h/s) (1 + 2.4/c) (1 + 8/r), and 1.15 for such rows. */
static double tile_seconds(int64_t slab, int64_t levels, int64_t rows, int64_t h) {
    return (1 + 2.7 * (double)h / (double)slab) * (1 + 2.4 / (double)levels) * (1 + 8 / (double)rows);
}

static double tiled_efficiency(const struct mx_engine_options *o) {
    struct mx_engine_options own = *o;
    own.slab = 0;
    const int64_t ct = o->ct > 0 ? o->ct : CHUNK_LEVELS, h = o->problem->h, most = tiled_slab(&own);
    const int64_t slab = mx_min(tiled_slab(o), most), levels = mx_max(1, mx_min(o->levels, ct));
    const double best = tile_seconds(most, ct, o->problem->ny, h);
    const double given = tile_seconds(slab, levels, mx_max(1, mx_min(o->rows, o->problem->ny)), h);
    return best / given / (o->row_pitch_bytes % 4096 == 0 ? 1.15 : 1);
}

static int64_t default_column(const struct mx_engine_options *o) {
    const int64_t nx = o->problem->nx;
    if (!has_columns(o)) return INT32_MAX;
    return mx_ceil_div(nx, mx_max(1, (o->row_pitch_bytes + COLUMN_BYTES / 2) / COLUMN_BYTES));
}

static void tiled_free(mx_engine *e) {
    if (e == NULL) return;
    mx_team_free(e->team);
    mx_resident_free(&e->resident);
    free(e->line);
    free(e);
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
    e->tile = tiled_tile(o);
    e->ct = o->ct > 0 ? o->ct : CHUNK_LEVELS;
    e->column = o->column > 0 ? o->column : default_column(o);
    if (!lines_ready(e, 64))
        err = mx_fail(why, -ENOMEM, "no memory for the tiled engine");
    else
        err = is_in_place(o) ? mx_resident_make(o, e->tile, e->slab, why, &e->resident) : 0;
    if (err == 0) err = mx_team_create(o->threads, why, &e->team);
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
    if (plan->column == 0) plan->column = mx_min(e->column, e->work.nx);
    if (plan->threads == 0) plan->threads = e->threads;
}

const struct mx_engine_ops mx_engine_tiled = {
    .name = "tiled",
    .summary = "temporal blocking in cache: skewed tiles, chunks of levels pipelined over the threads",
    .slab = tiled_slab,
    .efficiency = tiled_efficiency,
    .create = tiled_create,
    .advance = tiled_advance,
    .free = tiled_free,
    .describe = tiled_describe,
};
