/* SPDX-License-Identifier: BSD-3-Clause */
/* tiled.c - temporal blocking in cache.
 *
 * Skewed coordinates. Let X = x + l*h, Y = y + l*h and Z = z + l*h for the cell (x, y, z) that level l
 * computes. What level l+1 needs of level l, and what it overwrites that level l read, lies within h cells in
 * every direction, that is 0..2h back in X, Y and Z: every dependency points backwards in X, Y, Z and l at
 * once. So boxes in (Z, X, l, Y) may be executed in any order in which no box comes before one that is
 * smaller or equal in all four coordinates, whatever the windows are.
 *
 * A slab is a range of Z, a column a range of X, a chunk a range of levels, a tile a range of Y, and a line
 * is (slab, column, chunk): flow.h has the order. A thread one tile behind the thread of the chunk before
 * finds half of that one's planes in L3. A call whose slabs lie above those of the call before, with the same
 * tiles, columns and chunks, follows it without a stop.
 *
 * What a tile reads and writes beside its own cells are its sides. Those in y the line's tile before has left
 * in L3; those in z, and the first level of a chunk, come from DRAM: kernels ask for them ahead, in small
 * portions, while they compute what is in L2 (ahead.h). A column keeps tiles short in x, so that they can be
 * long in y, z and levels in the same cache. Tiles that are whole at every level of a chunk are computed in
 * place (resident.h), unless frames in y or z copy rows of them (after.h).
 *
 * Columns whose tiles are computed in place are skewed by more than h: X = x + l * (cells of a vector), x
 * from 0 and not from h on, so that every level of a tile begins with a whole vector. That is a tile all the
 * same: dependencies point backwards by 0 to twice as much.
 */
#include "engine/after.h"
#include "engine/ahead.h"
#include "engine/flow.h"
#include "engine/resident.h"
#include "engine/work.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>

struct job {
    struct mx_advance a;
    int64_t x_origin, y_origin, z_origin; /* skewed coordinates of column 0, tile 0 and slab 0 */
    int64_t z_end;
    int64_t slab, tile, column; /* sizes */
    int64_t x_skew;             /* cells a level */
    bool in_spans;              /* columns are those of tiles in place */
    int64_t chunks;             /* of all levels, those without work in this call among them */
    int64_t last_chunk;         /* that it, or a call it follows, has */
    bool regular;               /* spans go up from chunk to chunk */
    struct mx_flow_job flow;
    struct mx_flow_span *span;
    int64_t spans; /* allocated */
};

struct mx_engine {
    struct mx_work work;
    struct mx_flow *flow;
    struct mx_resident resident;
    int32_t threads;
    int64_t slab, tile, ct, column;
    bool to_l2;                   /* what is asked for ahead */
    struct job job[MX_FLOW_JOBS]; /* job n is job[n % MX_FLOW_JOBS] */
};

static struct job *job_of(mx_engine *e, int64_t number) { return &e->job[number % MX_FLOW_JOBS]; }

/* What is done at level l: rows and planes, the seams that appear as level l+1 included. */
static struct mx_window reach(const struct mx_advance *a, int32_t l) {
    struct mx_window w = mx_window_at(a, l);
    const struct mx_seam *seams[2] = {&a->seam_in, &a->seam_out};
    const bool empty = w.y0 >= w.y1 || w.z0 >= w.z1;
    if (empty) w = (struct mx_window){INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 2; i++) {
        const struct mx_seam *f = seams[i];
        if (f->base == NULL || l + 1 >= a->levels || f->n_rows[l + 1] <= 0) continue;
        const struct mx_seam_planes z = mx_seam_planes(f, l + 1);
        if (z.z0 >= z.z1) continue;
        w.y0 = (int32_t)mx_min(w.y0, f->first_y[l + 1]);
        w.y1 = (int32_t)mx_max(w.y1, f->first_y[l + 1] + f->n_rows[l + 1]);
        w.z0 = (int32_t)mx_min(w.z0, z.z0);
        w.z1 = (int32_t)mx_max(w.z1, z.z1);
    }
    return w;
}

static bool has_seams(const struct mx_advance *a) { return a->seam_in.base || a->seam_out.base; }

static void cells_at_level(const mx_engine *e, const struct mx_advance *a, int32_t l, struct mx_box box,
                           const struct mx_ahead_list *list) {
    const struct mx_window w = mx_window_at(a, l);
    box.y0 = mx_max(box.y0, w.y0), box.y1 = mx_min(box.y1, w.y1);
    box.z0 = mx_max(box.z0, w.z0), box.z1 = mx_min(box.z1, w.z1);
    if (box.y0 >= box.y1 || box.z0 >= box.z1) return;
    const int64_t cells = (box.x1 - box.x0) * (box.y1 - box.y0) * (box.z1 - box.z0);
    struct mx_ahead ahead = mx_ahead_over(list, cells);
    mx_work_box(&e->work, a, l, box, list->runs > 0 ? &ahead : NULL);
}

/* Seams as rows of `level`, which exist up to the last level but one. */
static void seams_at_level(const mx_engine *e, const struct mx_advance *a, int32_t level, struct mx_box box) {
    if (level >= a->levels) return;
    mx_seam_insert(&e->work, a, level, box);
    mx_seam_save(&e->work, a, level, box);
}

/* Level 0 is new: nothing in this call has read what it replaces, and a call that this one follows, in the
 * same strip, ends below these planes. Another strip may only now be writing the seam. */
static void loaded_seams(const mx_engine *e, const struct mx_advance *a) {
    const struct mx_seam *seams[2] = {&a->seam_in, &a->seam_out};
    struct mx_box all = {0, e->work.nx + 2 * e->work.h, INT32_MIN, INT32_MAX, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 2; i++)
        if (seams[i]->base != NULL) {
            const struct mx_seam_planes z = mx_seam_planes(seams[i], 0);
            all.z0 = mx_min(all.z0, z.z0);
            all.z1 = mx_max(all.z1, z.z1);
        }
    seams_at_level(e, a, 0, all);
}

struct line {
    const struct job *job;
    int64_t slab, column;
    int32_t l0, l1; /* levels of the chunk */
};

static struct line line_of(const struct job *j, const struct mx_flow_tile *t) {
    const int64_t levels = j->a.levels, chunks = j->chunks;
    return (struct line){j, t->slab, t->column, (int32_t)(levels * t->chunk / chunks),
                         (int32_t)(levels * (t->chunk + 1) / chunks)};
}

/* Of level l; a column may begin left of the row, or right of its end. */
static int64_t first_x(const struct line *line, int32_t l) {
    const struct job *j = line->job;
    return j->x_origin + line->column * j->column - l * j->x_skew;
}

static struct mx_box box_of(const mx_engine *e, const struct line *line, int64_t tile, int32_t l) {
    const struct job *j = line->job;
    const int64_t h = e->work.h, end_x = h + e->work.nx;
    const int64_t x0 = first_x(line, l);
    const int64_t y0 = j->y_origin + tile * j->tile - l * h;
    const int64_t z0 = j->z_origin + line->slab * j->slab - l * h;
    return (struct mx_box){mx_max(x0, h), mx_min(x0 + j->column, end_x), y0, y0 + j->tile, z0, z0 + j->slab};
}

/* What level l reads: its cells and h around. */
static struct mx_window read_at_level(const struct mx_advance *a, int32_t l, int32_t h) {
    const struct mx_window w = mx_window_at(a, l);
    return (struct mx_window){w.y0 - h, w.y1 + h, w.z0 - h, w.z1 + h};
}

/* To be asked for while a tile computes level l: of its next level the 2h planes that the slab before left,
 * and, if `more`, this level's share of the planes of both arrays that the next tile's first level reads and
 * writes. */
static void list_ahead(const mx_engine *e, const struct line *line, int64_t tile, int32_t l, bool more,
                       struct mx_ahead_list *list) {
    const struct mx_advance *a = &line->job->a;
    const int64_t h = e->work.h;
    list->runs = list->bytes = 0;
    list->to_l2 = e->to_l2;
    if (l + 1 < line->l1) {
        const struct mx_window w = read_at_level(a, l + 1, e->work.h), next = mx_window_at(a, l + 1);
        struct mx_box box = box_of(e, line, tile, l + 1);
        struct mx_box fixed = box;
        box.y1 += h, box.z1 = box.z0 + h, box.z0 -= h;
        mx_ahead_add(list, &e->work, a, l + 1, box, &w);
        fixed.z1 = fixed.z0 + h;
        mx_ahead_add_fixed(list, &e->work, a, fixed, &next);
    }
    if (more) {
        const struct mx_window w = read_at_level(a, line->l0, e->work.h), first = mx_window_at(a, line->l0);
        const struct mx_box box = box_of(e, line, tile + 1, line->l0);
        const int64_t levels = line->l1 - line->l0, k = l - line->l0, read = line->job->slab + 2 * h;
        struct mx_box from = box, to = box;
        from.y0 += h, from.y1 += h;
        from.z0 = box.z0 - h + k * read / levels, from.z1 = box.z0 - h + (k + 1) * read / levels;
        to.z0 = box.z0 + k * line->job->slab / levels, to.z1 = box.z0 + (k + 1) * line->job->slab / levels;
        mx_ahead_add(list, &e->work, a, line->l0, from, &w);
        mx_ahead_add(list, &e->work, a, line->l0 + 1, to, &first);
        mx_ahead_add_fixed(list, &e->work, a, to, &first);
    }
}

static bool within(const struct mx_window *w, const struct mx_box *b) {
    return b->y0 >= w->y0 && b->y1 <= w->y1 && b->z0 >= w->z0 && b->z1 <= w->z1;
}

/* Rows of level l+1 that go into a seam, or come from one, are written where others find them. */
static bool in_seam(const struct mx_advance *a, int32_t l, const struct mx_box *box) {
    const struct mx_seam *seams[2] = {&a->seam_in, &a->seam_out};
    for (int i = 0; i < 2 && l + 1 < a->levels; i++) {
        const struct mx_seam *f = seams[i];
        if (f->base != NULL && f->n_rows[l + 1] > 0 && box->y0 < f->first_y[l + 1] + f->n_rows[l + 1] &&
            box->y1 > f->first_y[l + 1])
            return true;
    }
    return false;
}

/* Whole at every level, so that its levels can be computed in place. */
static bool is_whole(const mx_engine *e, const struct line *line, int64_t tile) {
    const struct job *j = line->job;
    if (e->resident.kernel == NULL || j->in_spans != (e->resident.span > 0) ||
        (!j->in_spans && j->flow.columns > 1) || j->tile != e->resident.rows ||
        j->slab != e->resident.planes || line->l1 - line->l0 < 2)
        return false;
    for (int32_t l = line->l0; l < line->l1; l++) {
        const struct mx_box box = box_of(e, line, tile, l);
        const struct mx_window w = mx_window_at(&j->a, l);
        if (!within(&w, &box) || in_seam(&j->a, l, &box)) return false;
        if (mx_after_copies_rows(j->a.after, box.y0, box.y1, box.z0, box.z1)) return false;
    }
    return true;
}

/* What a span has beside it that the next level reads, and where it then puts what others read. */
static void list_sides(const mx_engine *e, const struct line *line, int64_t tile, int32_t l,
                       struct mx_ahead_list *list) {
    const struct mx_resident *r = &e->resident;
    const struct mx_advance *a = &line->job->a;
    if (l + 1 >= line->l1) return;
    const int64_t x = first_x(line, l + 1);
    const struct mx_box next = box_of(e, line, tile, l + 1);
    for (int i = 0; i < 2 && next.x0 < next.x1; i++) {
        const int64_t d = i == 0 ? 1 : 0; /* rows are read one further on than they are written */
        struct mx_box box = {.y0 = next.y0 + d,
                             .y1 = next.y0 + d + r->rows - 2,
                             .z0 = next.z0 + d,
                             .z1 = next.z0 + d + r->planes - 2};
        const struct mx_window all = {(int32_t)box.y0, (int32_t)box.y1, (int32_t)box.z0, (int32_t)box.z1};
        mx_resident_side(r, e->work.nx, i == 0 ? x : x + r->span - r->lanes, &box.x0, &box.x1);
        if (i == 0 || l + 2 < line->l1) mx_ahead_add(list, &e->work, a, l + 1 + i, box, &all);
    }
}

static void do_whole_tile(const mx_engine *e, int thread, const struct line *line, int64_t tile, bool more) {
    const struct mx_advance *a = &line->job->a;
    const struct mx_cells all = {e->work.h, e->work.nx + e->work.h};
    struct mx_x_copy x_copy[2];
    const int x_copies =
        a->after != NULL ? mx_sides_x_copies(&a->after->sides, e->work.nx, e->work.h, all, x_copy) : 0;
    const struct mx_norms *norms = a->after != NULL ? a->after->norms : NULL;
    const bool points = a->after != NULL && (a->after->sources != NULL || a->after->traces != NULL);
    struct mx_ahead_list list;
    for (int32_t l = line->l0; l < line->l1; l++) {
        const bool due = l == a->levels - 1 && norms != NULL && mx_norms_due(norms, a->first_level + l);
        const struct mx_resident_level level = {.points = points ? a->after : NULL,
                                                .norms = due ? a->after : NULL,
                                                .level = a->first_level + l,
                                                .box = box_of(e, line, tile, l),
                                                .from = (a->parity + l) & 1,
                                                .first = l == line->l0,
                                                .last = l == line->l1 - 1,
                                                .first_x = first_x(line, l),
                                                .x_copy = x_copy,
                                                .x_copies = x_copies};
        const int64_t cells = mx_max(0, level.box.x1 - level.box.x0);
        list_ahead(e, line, tile, l, more, &list);
        if (line->job->in_spans) list_sides(e, line, tile, l, &list);
        struct mx_ahead ahead = mx_ahead_over(&list, cells * line->job->tile * line->job->slab);
        mx_resident_level(&e->resident, &e->work, &a->view, thread, &level, list.runs > 0 ? &ahead : NULL);
        if (cells > 0) mx_work_look(&e->work, a, l, level.box);
    }
}

static void do_tile(const mx_engine *e, const struct line *line, int64_t tile, bool more) {
    const struct job *j = line->job;
    const bool seams = has_seams(&j->a);
    struct mx_ahead_list list;
    for (int32_t l = line->l0; l < line->l1; l++) {
        const struct mx_box box = box_of(e, line, tile, l);
        if (box.x0 >= box.x1) continue;
        list_ahead(e, line, tile, l, more, &list);
        cells_at_level(e, &j->a, l, box, &list);
        if (seams) seams_at_level(e, &j->a, l + 1, box);
    }
}

static void one_tile(void *arg, int thread, const struct mx_flow_tile *t) {
    mx_engine *e = arg;
    const struct line line = line_of(job_of(e, t->job), t);
    if (is_whole(e, &line, t->tile))
        do_whole_tile(e, thread, &line, t->tile, t->more);
    else
        do_tile(e, &line, t->tile, t->more);
}

/* Levels with work, and planes of it in skewed coordinates; false if there is none. */
static bool extent(const struct mx_advance *a, int64_t h, int32_t l[2], int64_t z[2]) {
    l[0] = INT32_MAX, l[1] = 0;
    z[0] = INT64_MAX, z[1] = INT64_MIN;
    for (int32_t k = a->first; k < mx_advance_end(a); k++) {
        const struct mx_window w = reach(a, k);
        if (w.y0 >= w.y1 || w.z0 >= w.z1) continue;
        l[0] = l[0] < k ? l[0] : k;
        l[1] = k;
        z[0] = mx_min(z[0], w.z0 + k * h);
        z[1] = mx_max(z[1], w.z1 + k * h);
    }
    return z[0] < z[1];
}

static void add_rows(int64_t y[2], int64_t y0, int64_t y1, int64_t skew) {
    if (y0 >= y1) return;
    y[0] = mx_min(y[0], y0 + skew);
    y[1] = mx_max(y[1], y1 + skew);
}

/* Tiles of a chunk: rows of all its levels and their seams, whether they have planes in this call or not, so
 * that calls along z cut them alike. */
static struct mx_flow_span span_of(const struct job *j, int64_t h, int64_t chunk) {
    const struct mx_advance *a = &j->a;
    const struct mx_seam *seams[2] = {&a->seam_in, &a->seam_out};
    int64_t y[2] = {INT64_MAX, INT64_MIN};
    for (int64_t l = a->levels * chunk / j->chunks; l < a->levels * (chunk + 1) / j->chunks; l++) {
        add_rows(y, a->window[l].y0, a->window[l].y1, l * h);
        for (int i = 0; i < 2 && l + 1 < a->levels; i++)
            if (seams[i]->base != NULL)
                add_rows(y, seams[i]->first_y[l + 1], seams[i]->first_y[l + 1] + seams[i]->n_rows[l + 1],
                         l * h);
    }
    if (y[0] >= y[1]) return (struct mx_flow_span){0, 0};
    return (struct mx_flow_span){mx_floor_div(y[0] - j->y_origin, j->tile),
                                 mx_ceil_div(y[1] - j->y_origin, j->tile)};
}

static bool room_for_spans(struct job *j, int64_t n) {
    if (n <= j->spans) return true;
    struct mx_flow_span *span = realloc(j->span, (size_t)n * sizeof *span);
    if (span == NULL) return false;
    j->span = span;
    j->spans = n;
    return true;
}

/* A tile that two chunks have, but not one between them, would not wait for the first of the two. The spans
 * of a schedule go up from chunk to chunk; others become one and the same. */
static bool make_regular(struct mx_flow_span *span, int64_t n) {
    struct mx_flow_span all = {INT64_MAX, INT64_MIN};
    bool regular = true;
    for (int64_t c = 0; c < n; c++) {
        const bool empty = span[c].first >= span[c].end;
        regular = regular && !empty &&
                  (c == 0 || (span[c - 1].first <= span[c].first && span[c - 1].end <= span[c].end));
        if (empty) continue;
        all.first = mx_min(all.first, span[c].first);
        all.end = mx_max(all.end, span[c].end);
    }
    for (int64_t c = 0; c < n && !regular; c++) span[c] = all;
    return regular;
}

/* Frames in x that copy cells of the row, which another column may not have yet; norms that compare a row
 * with what it replaces. */
static bool whole_rows(const struct mx_advance *a) {
    const struct mx_after *after = a->after;
    if (after == NULL) return false;
    return !mx_sides_fixed(&after->sides, MX_DIM_X) ||
           (after->norms != NULL && mx_norms_needs_old(after->norms, a->first_level + a->levels - 1));
}

/* Sources, probes and norms look at whole rows. */
static bool looked_at(const struct mx_advance *a) {
    const struct mx_after *after = a->after;
    return after != NULL &&
           (after->sources != NULL || after->traces != NULL ||
            (after->norms != NULL && mx_norms_due(after->norms, a->first_level + a->levels - 1)));
}

/* Columns: of spans of the whole row from cell 0 on, or of its interior. */
static int64_t cut_x(const mx_engine *e, struct job *j) {
    const struct mx_advance *a = &j->a;
    const int64_t h = e->work.h, nx = e->work.nx;
    j->in_spans = e->resident.span > 0 && !whole_rows(a) && !looked_at(a);
    j->x_origin = j->in_spans ? 0 : h;
    j->x_skew = j->in_spans ? e->resident.lanes : h;
    const int64_t wide = (j->in_spans ? nx + 2 * h : nx) + (a->levels - 1) * j->x_skew;
    j->column = j->in_spans ? e->resident.span : whole_rows(a) ? wide : mx_min(e->column, wide);
    return mx_ceil_div(wide, j->column);
}

/* Cuts a call into lines and tiles; false when memory is short. */
static bool plan_job(const mx_engine *e, struct job *j) {
    const struct mx_advance *a = &j->a;
    const int64_t h = e->work.h;
    int64_t z[2];
    int32_t l[2];
    j->flow = (struct mx_flow_job){0};
    if (!extent(a, h, l, z)) return true;
    j->y_origin = a->window[0].y0, j->z_origin = z[0], j->z_end = z[1];
    j->slab = e->slab, j->tile = e->tile;
    const int64_t slabs = mx_ceil_div(z[1] - z[0], j->slab), columns = cut_x(e, j);
    j->chunks =
        mx_min(a->levels, mx_max(mx_ceil_div(a->levels, e->ct), mx_ceil_div(e->threads, slabs * columns)));
    /* Chunk c begins at level floor(levels c / chunks). */
    const int64_t first = ((l[0] + 1) * j->chunks - 1) / a->levels;
    const int64_t last = ((l[1] + 1) * j->chunks - 1) / a->levels;
    j->flow = (struct mx_flow_job){
        .slabs = slabs, .columns = columns, .first_chunk = first, .chunks = last - first + 1};
    j->last_chunk = last;
    if (!room_for_spans(j, j->flow.chunks)) return false;
    for (int64_t c = 0; c < j->flow.chunks; c++) j->span[c] = span_of(j, h, first + c);
    j->regular = make_regular(j->span, j->flow.chunks);
    j->flow.span = j->span;
    return true;
}

static bool same_view(const struct mx_view *a, const struct mx_view *b) {
    for (int i = 0; i < 2; i++)
        if (a->base[i] != b->base[i] || a->slots[i] != b->slots[i]) return false;
    return a->plane_pitch_bytes == b->plane_pitch_bytes && a->row_pitch_bytes == b->row_pitch_bytes &&
           a->y_offset == b->y_offset && a->z_offset == b->z_offset && a->fixed == b->fixed;
}

static bool same_rows(const struct mx_advance *a, const struct mx_advance *b) {
    if (a->window == b->window) return true;
    for (int32_t l = 0; l < a->levels; l++)
        if (a->window[l].y0 != b->window[l].y0 || a->window[l].y1 != b->window[l].y1) return false;
    return true;
}

/* Of one strip: the same tables, whichever slabs of seams they are. */
static bool same_seams(const struct mx_seam *a, const struct mx_seam *b) {
    if (a->base == NULL || b->base == NULL) return a->base == b->base;
    return a->first_y == b->first_y && a->n_rows == b->n_rows && a->first_z == b->first_z &&
           a->n_planes == b->n_planes;
}

/* Whether every box of `j` comes after, and is cut like, those of `before` (flow.h). */
static bool follows(const struct job *before, const struct job *j) {
    const struct mx_flow_job *m = &before->flow, *n = &j->flow;
    const int64_t their_last = m->first_chunk + m->chunks - 1;
    return m->slabs > 0 && n->slabs > 0 && before->regular && j->regular && m->columns == n->columns &&
           before->chunks == j->chunks && before->column == j->column && before->x_skew == j->x_skew &&
           before->tile == j->tile && before->z_end <= j->z_origin && m->first_chunk <= n->first_chunk &&
           n->first_chunk <= their_last && before->last_chunk == their_last &&
           before->a.levels == j->a.levels && before->a.parity == j->a.parity &&
           before->a.first_level == j->a.first_level && before->a.after == j->a.after &&
           same_seams(&before->a.seam_in, &j->a.seam_in) && same_seams(&before->a.seam_out, &j->a.seam_out) &&
           same_view(&before->a.view, &j->a.view) && same_rows(&before->a, &j->a);
}

/* All in one line, which always has room. */
static void one_line(struct job *j) {
    static const struct mx_flow_span one = {0, 1};
    const int64_t far = INT64_MAX / 8;
    j->x_origin = j->y_origin = j->z_origin = -far;
    j->slab = j->tile = j->column = 2 * far;
    j->x_skew = 0;
    j->in_spans = false;
    j->chunks = 1;
    j->flow = (struct mx_flow_job){.slabs = 1, .columns = 1, .chunks = 1, .span = &one};
}

static int64_t tiled_post(mx_engine *e, const struct mx_advance *a) {
    const int64_t number = mx_flow_next(e->flow);
    struct job *j = job_of(e, number), *before = job_of(e, number - 1);
    j->a = *a;
    bool room = plan_job(e, j);
    j->flow.follows = room && mx_flow_done(e->flow) < number - 1 && follows(before, j);
    if (has_seams(a)) {
        mx_flow_wait(e->flow, number - (j->flow.follows ? 2 : 1));
        loaded_seams(e, a);
    }
    if (j->flow.follows) j->last_chunk = mx_max(j->last_chunk, before->last_chunk);
    if (room) room = mx_flow_post(e->flow, &j->flow) == 0;
    if (!room) {
        one_line(j);
        mx_flow_post(e->flow, &j->flow);
    }
    return number;
}

static int64_t tiled_done(mx_engine *e) { return mx_flow_done(e->flow); }

static void tiled_wait(mx_engine *e, int64_t number) { mx_flow_wait(e->flow, number); }

/* The defaults were measured (512^2 to 2048^2 cells a plane, 1 MiB of L2, 32 MiB of L3 shared with others).
 *
 * In place: as many rows as the kernel does together, for tiles are read and written from one strip to the
 * next; planes so that one array of the tile takes 0.4 of L2, which leaves room for its sides and for what is
 * asked for ahead. Rows above 12 KiB in spans of COLUMN_BYTES (256 and 1024 cells of f64 are slower than
 * 512). An L2 of 2 MiB (Sapphire Rapids) has room for chunks of twice the levels, over which a tile moves on
 * by twice as many rows: planes that take 0.2 of it then, 1.1 to 1.5 times as fast there as 16 levels and
 * 0.4. An L1 of 32 KiB beside 1 MiB of L2 (Zen 4) does better with no more rows than the kernel does
 * together (star7: AVX2 4, AVX-512 6), 16 planes, and chunks of more levels that make up for them: rows of up
 * to 6 KiB so, of 22 levels, 1.0 to 1.2 times as fast as 6 x 16 x 16. Of longer rows such chunks no longer
 * stay in L3.
 *
 * In two arrays: a tile takes half of L2; few rows and more planes, since the planes beside a tile come from
 * DRAM and the rows from L3. Rows of up to 6 KiB are best left whole: long runs suit the hardware's
 * prefetchers. Of longer ones what a chunk touches from one tile to the next no longer stays in L3; columns
 * of about a page do.
 *
 * Systems (runtime/system) are done in two arrays. A cell's row is then the rows of all fields, and half of
 * what it takes in C; columns are wide enough for the rows of each field to be more than a few lines. With
 * h > 1 what a tile reads beside its own cells outweighs L2, which need hold no more than the 2h+1 planes
 * that are read together: tiles lie in L3, and of 16 levels the tiles of two threads would fill it. */
enum {
    PLACE_ROWS = 6,
    PLACE_LEAST_PLANES = 12,
    PLACE_MOST_PLANES = 24,
    PLACE_ROW_BYTES = 12288,
    PLACE_LARGE_CHUNK_LEVELS = 32,
    PLACE_FLAT_MOST_PLANES = 16,
    PLACE_FLAT_CHUNK_LEVELS = 22,
    TILE_ROWS = 4,
    COLUMN_TILE_ROWS = 6,
    LEAST_PLANES = 8,
    MOST_PLANES = 32,
    CHUNK_LEVELS = 16,
    WHOLE_ROW_BYTES = 6144,
    COLUMN_BYTES = 4096,
    SPAN_SIDE_BYTES = 64,
    COLUMN_FIELD_BYTES = 512,
    HIGH_TILE_ROWS = 4, /* for each h */
    HIGH_LEAST_PLANES = 12,
    HIGH_MOST_PLANES = 24,
    HIGH_CHUNK_LEVELS = 8,
    SMALL_L1_BYTES = 32 << 10,
    COMMON_L2_BYTES = 1 << 20,
    LARGE_L2_BYTES = 2 << 20
};

/* Of the row of all fields. */
static int64_t column_bytes(const struct mx_problem *p) {
    const int64_t fields = mx_max(mx_field_count(p, 0), mx_field_count(p, 1));
    return fields == 1 ? COLUMN_BYTES : mx_max(COLUMN_BYTES, fields * COLUMN_FIELD_BYTES);
}

/* Cells of a span of tiles in place; 0: whole rows, or no tiles in place. */
static int64_t span_cells(const struct mx_engine_options *o) {
    const bool given = o->column > 0 && o->column < o->problem->nx;
    if (!given && (o->column > 0 || o->row_pitch_bytes <= PLACE_ROW_BYTES)) return 0;
    const int64_t span = given ? o->column : column_bytes(o->problem) / mx_dtype_bytes(o->problem->dtype);
    return mx_resident_fits_span(o, span) ? span : 0;
}

static bool is_in_place(const struct mx_engine_options *o) {
    if (o->problem->system != NULL) return false;
    const struct mx_stencil *stencil = mx_stencil_find(o->problem->stencil);
    if (o->tile != 0 && !mx_resident_fits(o->tile, o->slab)) return false;
    if (span_cells(o) > 0) return true;
    const bool whole = o->column == 0 || o->column >= o->problem->nx;
    return o->row_pitch_bytes <= PLACE_ROW_BYTES && whole && stencil != NULL &&
           mx_stencil_tile(stencil, o->problem->dtype) != NULL;
}

static bool has_columns(const struct mx_engine_options *o) {
    if (is_in_place(o)) return span_cells(o) > 0;
    return o->row_pitch_bytes > WHOLE_ROW_BYTES + column_bytes(o->problem) - COLUMN_BYTES;
}

static bool has_high_tiles(const struct mx_engine_options *o) {
    return o->problem->system != NULL && o->problem->h > 1;
}

static int64_t l2_bytes(const struct mx_engine_options *o) {
    return o->machine != NULL && o->machine->l2_bytes > 0 ? (int64_t)o->machine->l2_bytes : COMMON_L2_BYTES;
}

static bool has_large_l2(const struct mx_engine_options *o) { return l2_bytes(o) >= LARGE_L2_BYTES; }

/* What is asked for ahead is needed a level later, when as many bytes as L1 has were computed several times
 * over. Into an L1 of 32 KiB it would push out rows that the kernel still reads: on Zen 4 prefetches for L2
 * alone are 1.0 to 1.3 times as fast (docs/performance.md). Of those Zen 5, with 48 KiB, drops a quarter,
 * where of prefetches for L1 it drops few. */
static bool has_small_l1(const struct mx_engine_options *o) {
    return o->machine != NULL && o->machine->l1_bytes > 0 && o->machine->l1_bytes <= SMALL_L1_BYTES;
}

/* That a kernel does together, 4 at least; of f32, 4 were found to be better than the 6 of AVX-512
 * (1.11, 1.18). */
static int64_t flat_rows(const struct mx_engine_options *o) {
    const struct mx_stencil *stencil = mx_stencil_find(o->problem->stencil);
    return stencil != NULL && o->problem->dtype == MX_F64 ? mx_max(4, mx_stencil_tile_rows(stencil)) : 4;
}

/* In place, where L1 is small and L2 is not. */
static bool has_flat_tiles(const struct mx_engine_options *o) {
    return has_small_l1(o) && l2_bytes(o) >= COMMON_L2_BYTES && !has_large_l2(o) && is_in_place(o) &&
           span_cells(o) == 0 && o->row_pitch_bytes <= WHOLE_ROW_BYTES &&
           (o->tile == 0 || o->tile == flat_rows(o));
}

static int64_t tiled_tile(const struct mx_engine_options *o) {
    if (o->tile > 0) return o->tile;
    if (has_flat_tiles(o)) return flat_rows(o);
    if (has_high_tiles(o)) return HIGH_TILE_ROWS * (int64_t)o->problem->h;
    return is_in_place(o) ? PLACE_ROWS : has_columns(o) ? COLUMN_TILE_ROWS : TILE_ROWS;
}

/* Of a call with many of them. */
static int64_t common_chunk(const struct mx_engine_options *o) {
    if (o->ct > 0) return o->ct;
    if (has_flat_tiles(o)) return PLACE_FLAT_CHUNK_LEVELS;
    if (is_in_place(o) && has_large_l2(o)) return PLACE_LARGE_CHUNK_LEVELS;
    return has_high_tiles(o) ? HIGH_CHUNK_LEVELS : CHUNK_LEVELS;
}

/* Four chunks of 16 and 17 levels rather than five of 13: half as many again in a chunk cost little, the
 * first level of one more costs as much as three. */
static int64_t tiled_chunk(const struct mx_engine_options *o) {
    const int64_t ct = common_chunk(o);
    if (o->ct > 0 || o->levels <= ct) return ct;
    return mx_ceil_div(o->levels, (o->levels + ct / 2) / ct);
}

static int64_t even(double planes) { return (int64_t)((planes + 1) / 2) * 2; }

/* The engine's own choice. */
static int64_t own_planes(const struct mx_engine_options *o) {
    const double l2 = (double)l2_bytes(o), place = has_large_l2(o) ? 0.2 : 0.4;
    const int64_t most = has_flat_tiles(o) ? PLACE_FLAT_MOST_PLANES : PLACE_MOST_PLANES;
    const double state = is_in_place(o) && span_cells(o) > 0
                             ? (double)(span_cells(o) * mx_dtype_bytes(o->problem->dtype) + SPAN_SIDE_BYTES)
                         : has_columns(o) ? (double)column_bytes(o->problem)
                                          : (double)o->row_pitch_bytes;
    const double fixed_row =
        (double)(mx_fixed_cell_bytes(o->problem) * (o->problem->nx + 2 * (int64_t)o->problem->h));
    const double fixed = fixed_row / 2 * state / (double)o->row_pitch_bytes;
    const double tile = (state + fixed) * (double)tiled_tile(o);
    if (is_in_place(o)) return mx_max(PLACE_LEAST_PLANES, mx_min(even(place * l2 / tile), most));
    if (has_high_tiles(o)) return mx_max(HIGH_LEAST_PLANES, mx_min(even(1.6 * l2 / tile), HIGH_MOST_PLANES));
    return mx_max(LEAST_PLANES, mx_min(even(l2 / 4 / tile), MOST_PLANES));
}

/* A call has a line for each thread at least, and where it has one slab its chunks are cut for that: of 32
 * levels 32 threads would have one each, and nothing of a tile would stay in L2. So a call of many threads
 * moves on by several slabs. In simulation (docs/performance.md, "More cores") 2 slabs for 16 threads, 4 for
 * 32 and 64 are 1.2 to 2.2 times as fast as one. */
enum { FEW_THREADS = 8, MOST_SLABS = 4 };

static int64_t slabs_a_call(const struct mx_engine_options *o) {
    return mx_max(1, mx_min(mx_ceil_div(o->threads, FEW_THREADS), MOST_SLABS));
}

static int64_t tiled_slab(const struct mx_engine_options *o) {
    return o->slab > 0 ? o->slab : own_planes(o) * slabs_a_call(o);
}

/* With the planes of a tile in the place of those of a call. Few threads take what they are given as one
 * slab. */
static struct mx_engine_options of_tile(const struct mx_engine_options *o) {
    struct mx_engine_options own = *o;
    own.slab = 0;
    const int64_t planes = own_planes(&own);
    own.slab = o->slab > 0 ? o->slab : planes;
    if (o->threads > FEW_THREADS && o->slab > planes)
        own.slab = mx_ceil_div(o->slab, mx_ceil_div(o->slab, planes));
    return own;
}

/* A tile of s planes and c levels reads, beside what it computes, 2h planes below each level and, from DRAM,
 * its first level; r rows make few tiles, and the threads share them badly; rows of whole pages compete for
 * L1. Measured on 512^2 cells a plane (s = 2 to 16; 4 to 64 levels a call; 64 to 510 rows): time per update
 * goes as (1 + 2.7 h/s) (1 + 2.4/c) (1 + 8/r), and 1.15 for such rows. High tiles, which lie in L3 and do
 * more for each line, lose less with few planes: 1 + 0.8 h/s (wave of order 8, s = 12 to 24). */
static double tile_seconds(const struct mx_engine_options *o, int64_t slab, int64_t levels, int64_t rows) {
    const double planes = has_high_tiles(o) ? 0.8 : 2.7;
    return (1 + planes * (double)o->problem->h / (double)slab) * (1 + 2.4 / (double)levels) *
           (1 + 8 / (double)rows);
}

/* Levels of a chunk, of as many chunks as the threads of a call need lines (plan_job). */
static int64_t levels_of_chunk(const struct mx_engine_options *o, int64_t slab) {
    const int64_t all = mx_max(1, o->levels);
    const int64_t levels = mx_min(all / mx_ceil_div(all, tiled_chunk(o)), common_chunk(o));
    if (o->threads <= FEW_THREADS) return levels;
    const int64_t lines = mx_ceil_div(o->threads, mx_max(1, mx_ceil_div(tiled_slab(o), slab)));
    return mx_max(1, mx_min(levels, o->levels / lines));
}

static double tiled_efficiency(const struct mx_engine_options *o) {
    struct mx_engine_options own = *o;
    own.slab = 0;
    const int64_t ct = common_chunk(o), most = own_planes(&own);
    const int64_t slab = mx_min(of_tile(o).slab, most), levels = levels_of_chunk(o, slab);
    const double best = tile_seconds(o, most, ct, o->problem->ny);
    const double given = tile_seconds(o, slab, levels, mx_max(1, mx_min(o->rows, o->problem->ny)));
    return best / given / (o->row_pitch_bytes % 4096 == 0 ? 1.15 : 1);
}

static int64_t default_column(const struct mx_engine_options *o) {
    const int64_t nx = o->problem->nx;
    if (!has_columns(o)) return INT32_MAX;
    if (is_in_place(o)) return span_cells(o);
    const int64_t bytes = column_bytes(o->problem);
    return mx_ceil_div(nx, mx_max(1, (o->row_pitch_bytes + bytes / 2) / bytes));
}

static void tiled_free(mx_engine *e) {
    if (e == NULL) return;
    mx_flow_free(e->flow);
    mx_resident_free(&e->resident);
    for (int i = 0; i < MX_FLOW_JOBS; i++) free(e->job[i].span);
    free(e);
}

static int tiled_create(const struct mx_engine_options *options, mx_why *why, mx_engine **out) {
    const struct mx_engine_options sizes = of_tile(options), *o = &sizes;
    struct mx_work work;
    int err = mx_work_make(o, why, &work);
    if (err != 0) return err;
    mx_engine *e = calloc(1, sizeof *e);
    if (e == NULL) return mx_fail(why, -ENOMEM, "no memory for the tiled engine");
    e->work = work;
    e->threads = o->threads;
    e->slab = o->slab;
    e->tile = tiled_tile(o);
    e->ct = tiled_chunk(o);
    e->to_l2 = has_small_l1(o);
    e->column = o->column > 0 ? o->column : default_column(o);
    err = is_in_place(o) ? mx_resident_make(o, e->tile, e->slab, span_cells(o), why, &e->resident) : 0;
    if (err == 0) err = mx_flow_create(o->threads, one_tile, e, why, &e->flow);
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
    .post = tiled_post,
    .done = tiled_done,
    .wait = tiled_wait,
    .free = tiled_free,
    .describe = tiled_describe,
};
