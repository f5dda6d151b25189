/* SPDX-License-Identifier: BSD-3-Clause */
/* tiled_job.c - a call of the tiled engine, cut into lines and tiles. */
#include "engine/after.h"
#include "engine/tiled.h"

#include <stdlib.h>

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
static struct mx_flow_span span_of(const struct job *j, int64_t hy, int64_t chunk) {
    const struct mx_advance *a = &j->a;
    const struct mx_seam *seams[2] = {&a->seam_in, &a->seam_out};
    int64_t y[2] = {INT64_MAX, INT64_MIN};
    for (int64_t l = a->levels * chunk / j->chunks; l < a->levels * (chunk + 1) / j->chunks; l++) {
        add_rows(y, a->window[l].y0, a->window[l].y1, l * hy);
        for (int i = 0; i < 2 && l + 1 < a->levels; i++)
            if (seams[i]->base != NULL)
                add_rows(y, seams[i]->first_y[l + 1], seams[i]->first_y[l + 1] + seams[i]->n_rows[l + 1],
                         l * hy);
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
           (after->norms != NULL && mx_norms_in_whole_rows(after->norms, a->first_level + a->levels));
}

/* Sources, probes and norms look at whole rows. */
static bool looked_at(const struct mx_advance *a) {
    const struct mx_after *after = a->after;
    return after != NULL &&
           (after->sources != NULL || after->traces != NULL ||
            (after->norms != NULL && mx_norms_is_check(after->norms, (a->first_level + a->levels) /
                                                                         mx_levels_a_step(after->problem))));
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
bool mx_tiled_cut(const mx_engine *e, struct job *j) {
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
    for (int64_t c = 0; c < j->flow.chunks; c++) j->span[c] = span_of(j, e->work.hy, first + c);
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
bool mx_tiled_follows(const struct job *before, const struct job *j) {
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
void mx_tiled_one_line(struct job *j) {
    static const struct mx_flow_span one = {0, 1};
    const int64_t far = INT64_MAX / 8;
    j->x_origin = j->y_origin = j->z_origin = -far;
    j->slab = j->tile = j->column = 2 * far;
    j->x_skew = 0;
    j->in_spans = false;
    j->chunks = 1;
    j->flow = (struct mx_flow_job){.slabs = 1, .columns = 1, .chunks = 1, .span = &one};
}
