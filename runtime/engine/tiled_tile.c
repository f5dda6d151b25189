/* SPDX-License-Identifier: BSD-3-Clause */
/* tiled_tile.c - a tile of the tiled engine: its levels, one after the other. */
#include "engine/after.h"
#include "engine/ahead.h"
#include "engine/tiled.h"

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
void mx_tiled_load_seams(const mx_engine *e, const struct mx_advance *a) {
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
    const int64_t y0 = j->y_origin + tile * j->tile - l * e->work.hy;
    const int64_t z0 = j->z_origin + line->slab * j->slab - l * h;
    return (struct mx_box){mx_max(x0, h), mx_min(x0 + j->column, end_x), y0, y0 + j->tile, z0, z0 + j->slab};
}

/* What level l reads: its cells and h around. */
static struct mx_window read_at_level(const struct mx_advance *a, int32_t l, const struct mx_work *work) {
    const struct mx_window w = mx_window_at(a, l);
    return (struct mx_window){w.y0 - work->hy, w.y1 + work->hy, w.z0 - work->h, w.z1 + work->h};
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
    if (!e->asks_ahead) return;
    if (l + 1 < line->l1) {
        const struct mx_window w = read_at_level(a, l + 1, &e->work), next = mx_window_at(a, l + 1);
        struct mx_box box = box_of(e, line, tile, l + 1);
        struct mx_box fixed = box;
        box.y1 += e->work.hy, box.z1 = box.z0 + h, box.z0 -= h;
        mx_ahead_add(list, &e->work, a, l + 1, box, &w);
        fixed.z1 = fixed.z0 + h;
        mx_ahead_add_fixed(list, &e->work, a, fixed, &next);
    }
    if (more) {
        const struct mx_window w = read_at_level(a, line->l0, &e->work), first = mx_window_at(a, line->l0);
        const struct mx_box box = box_of(e, line, tile + 1, line->l0);
        const int64_t levels = line->l1 - line->l0, k = l - line->l0, read = line->job->slab + 2 * h;
        struct mx_box from = box, to = box;
        from.y0 += e->work.hy, from.y1 += e->work.hy;
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
    struct mx_x_copy x_copy[2]; /* no minus: mx_after_copies_rows */
    const struct mx_ends x =
        a->after != NULL ? mx_ends_of(&a->after->sides, 0, 0, MX_DIM_X) : (struct mx_ends){{0, 0}};
    const int x_copies = mx_side_x_copies(x.side, e->work.nx, e->work.h, all, x_copy);
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
    const bool seams = mx_tiled_has_seams(&j->a);
    struct mx_ahead_list list;
    for (int32_t l = line->l0; l < line->l1; l++) {
        const struct mx_box box = box_of(e, line, tile, l);
        if (box.x0 >= box.x1) continue;
        list_ahead(e, line, tile, l, more, &list);
        cells_at_level(e, &j->a, l, box, &list);
        if (seams) seams_at_level(e, &j->a, l + 1, box);
    }
}

void mx_tiled_tile(void *arg, int thread, const struct mx_flow_tile *t) {
    mx_engine *e = arg;
    const struct line line = line_of(mx_tiled_job(e, t->job), t);
    if (is_whole(e, &line, t->tile))
        do_whole_tile(e, thread, &line, t->tile, t->more);
    else
        do_tile(e, &line, t->tile, t->more);
}
