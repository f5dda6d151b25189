/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/after.h"
#include "engine/work.h"

#include <string.h>

/* Where one call works. */
struct here {
    const struct mx_after *a;
    const struct mx_problem *p;
    const struct mx_view *view;
    int array, fields; /* of the view; of the system: A 0, B 1 */
    int64_t x0, x1;
};

/* ------------------------------------------------------------------ frames */

static bool copies_in(const struct mx_after *a, int dim) {
    const uint8_t *side = a->sides.side[dim];
    return (mx_side_is_copy(side[0]) || mx_side_is_copy(side[1])) &&
           !(a->ghost[dim] && mx_sides_periodic(&a->sides, dim));
}

static int copies_of(const struct mx_after *a, int dim, const struct mx_ends *ends, int64_t i,
                     int64_t out[MX_SIDE_COPIES]) {
    return mx_side_copies(ends->side, mx_extent_of(a->problem, dim), mx_halo_of(a->problem, dim), i, out);
}

static bool minus(const struct mx_after *a, int dim, const struct mx_ends *ends, int64_t i) {
    return mx_side_minus(ends->side, mx_extent_of(a->problem, dim), mx_halo_of(a->problem, dim), i);
}

/* Cells from..end of a dimension have copies. */
static bool has_copies(const struct mx_after *a, int dim, int64_t from, int64_t end) {
    const int64_t n = mx_extent_of(a->problem, dim), h = mx_halo_of(a->problem, dim);
    return copies_in(a, dim) && from < end &&
           (from < h + mx_sides_sources(&a->sides, dim, 0, (int32_t)h) ||
            end > n + h - mx_sides_sources(&a->sides, dim, 1, (int32_t)h));
}

static bool in_reach(const struct here *w, int64_t y, int64_t z) {
    const struct mx_reach *r = &w->a->reach;
    return r->y1 == 0 || (y >= r->y0 && y < r->y1 && z >= r->z0[w->array] && z < r->z1[w->array]);
}

/* Bytes of a row that go into others together: all of the call's cells with the frame cells that go with
 * them, of all fields, or of one where fields differ or signs change. */
struct part {
    struct mx_ends y, z;
    int from, end; /* of struct spans.of */
    enum mx_dtype dtype;
};

/* Of every row of a call, found once. */
struct spans {
    int fields, parts, n;
    bool x_copied;
    struct {
        int64_t offset, element;
        enum mx_dtype dtype;
        int x_first, x_copies; /* of x_copy */
    } field[MX_MAX_FIELDS];
    struct mx_x_copy x_copy[2 * MX_MAX_FIELDS];
    struct part part[MX_MAX_FIELDS];
    struct {
        int64_t offset, bytes;
    } of[3 * MX_MAX_FIELDS];
};

static void add_span(struct spans *s, int64_t offset, int64_t bytes) {
    s->of[s->n].offset = offset;
    s->of[s->n++].bytes = bytes;
}

/* What of field f's row belongs to the cells of the call. */
static void add_field(const struct here *w, struct spans *s, int32_t f) {
    const struct mx_problem *p = w->p;
    const struct mx_cells span = {w->x0, w->x1};
    const int64_t offset = s->field[f].offset, element = s->field[f].element;
    if (w->x0 == p->h && w->x1 == p->nx + p->h) {
        add_span(s, offset, (p->nx + 2 * p->h) * element);
        return;
    }
    const struct mx_ends x = mx_ends_of(&w->a->sides, w->fields, f, MX_DIM_X);
    struct mx_cells c[3] = {{0, 0}, span, {0, 0}}, frame[2];
    mx_side_x_frame(x.side, p->nx, p->h, span, frame);
    c[0] = frame[0], c[2] = frame[1];
    for (int i = 0; i < 3; i++)
        if (c[i].x0 < c[i].x1) add_span(s, offset + c[i].x0 * element, (c[i].x1 - c[i].x0) * element);
}

static bool differs(const struct mx_sides *s, int dim) {
    return mx_sides_any(s, dim, MX_SIDES_MINUS) || s->side[dim][0] == MX_SIDE_SEVERAL ||
           s->side[dim][1] == MX_SIDE_SEVERAL;
}

static void parts_of(const struct here *w, struct spans *s) {
    const struct mx_sides *sides = &w->a->sides;
    const bool whole = w->x0 == w->p->h && w->x1 == w->p->nx + w->p->h;
    const bool apart = differs(sides, MX_DIM_Y) || differs(sides, MX_DIM_Z);
    const int last = s->fields - 1;
    s->parts = apart ? s->fields : 1;
    s->n = 0;
    for (int i = 0; i < s->parts; i++) {
        struct part *part = &s->part[i];
        *part = (struct part){mx_ends_of(sides, w->fields, i, MX_DIM_Y),
                              mx_ends_of(sides, w->fields, i, MX_DIM_Z), s->n, 0, s->field[i].dtype};
        if (!apart && whole) /* at once */
            add_span(s, s->field[0].offset,
                     s->field[last].offset + (w->p->nx + 2 * w->p->h) * s->field[last].element -
                         s->field[0].offset);
        else
            for (int f = apart ? i : 0; f <= (apart ? i : last); f++) add_field(w, s, f);
        part->end = s->n;
    }
}

static void spans_of(const struct here *w, struct spans *s) {
    const struct mx_problem *p = w->p;
    const struct mx_sides *sides = &w->a->sides;
    const struct mx_cells span = {w->x0, w->x1};
    const bool apart =
        sides->side[MX_DIM_X][0] == MX_SIDE_SEVERAL || sides->side[MX_DIM_X][1] == MX_SIDE_SEVERAL;
    int n = 0;
    s->fields = mx_field_count(p, w->fields);
    for (int32_t f = 0; f < s->fields; f++) {
        s->field[f].offset = w->a->layout->field_offset_bytes[w->fields][f];
        s->field[f].dtype = mx_field_dtype(p, w->fields, f);
        s->field[f].element = mx_dtype_bytes(s->field[f].dtype);
        if (f == 0 || apart) {
            const struct mx_ends x = mx_ends_of(sides, w->fields, f, MX_DIM_X);
            s->field[f].x_first = n;
            s->field[f].x_copies = mx_side_x_copies(x.side, p->nx, p->h, span, s->x_copy + n);
            n += s->field[f].x_copies;
        } else {
            s->field[f].x_first = 0, s->field[f].x_copies = n;
        }
    }
    s->x_copied = n > 0;
    parts_of(w, s);
}

static void copy_row(const struct here *w, const struct spans *s, const struct part *part, const char *row,
                     int64_t y, int64_t z, bool negate) {
    if (!in_reach(w, y, z)) return;
    char *to = mx_view_row(w->view, w->array, y, z);
    for (int i = part->from; i < part->end; i++)
        mx_side_copy(to + s->of[i].offset, row + s->of[i].offset, s->of[i].bytes, part->dtype, negate);
}

static void refresh_x(const struct spans *s, char *row) {
    for (int f = 0; f < s->fields && s->x_copied; f++)
        mx_sides_copy_x(s->x_copy + s->field[f].x_first, s->field[f].x_copies, s->field[f].dtype,
                        row + s->field[f].offset);
}

/* All that copies this part of row y of plane z: rows of the plane, and of planes. */
static void refresh_part(const struct here *w, const struct spans *s, const struct part *part,
                         const char *row, int64_t y, int64_t z) {
    int64_t ys[1 + MX_SIDE_COPIES] = {y}, zs[1 + MX_SIDE_COPIES] = {z};
    const int n_y = 1 + (copies_in(w->a, MX_DIM_Y) ? copies_of(w->a, MX_DIM_Y, &part->y, y, ys + 1) : 0);
    const int n_z = 1 + (copies_in(w->a, MX_DIM_Z) ? copies_of(w->a, MX_DIM_Z, &part->z, z, zs + 1) : 0);
    for (int k = 0; k < n_z; k++) {
        const bool minus_z = k > 0 && minus(w->a, MX_DIM_Z, &part->z, zs[k]);
        for (int i = k == 0; i < n_y; i++)
            copy_row(w, s, part, row, ys[i], zs[k],
                     minus_z != (i > 0 && minus(w->a, MX_DIM_Y, &part->y, ys[i])));
    }
}

static void refresh_row(const struct here *w, const struct spans *s, int64_t y, int64_t z) {
    char *row = mx_view_row(w->view, w->array, y, z);
    refresh_x(s, row);
    for (int i = 0; i < s->parts; i++) refresh_part(w, s, &s->part[i], row, y, z);
}

/* Rows [y0,y1) of plane z, which may be ghosts. But for their x frame only rows near either end are copied,
 * unless the plane is. */
static void refresh_rows(const struct here *w, const struct spans *s, int64_t y0, int64_t y1, int64_t z) {
    const struct mx_problem *p = w->p;
    const struct mx_sides *sides = &w->a->sides;
    const int32_t hy = mx_halo_y(p);
    const bool rows = copies_in(w->a, MX_DIM_Y), plane = has_copies(w->a, MX_DIM_Z, z, z + 1);
    const int64_t low = rows ? hy + mx_sides_sources(sides, MX_DIM_Y, 0, hy) : INT64_MIN,
                  high = rows ? p->ny + hy - mx_sides_sources(sides, MX_DIM_Y, 1, hy) : INT64_MAX;
    if (!s->x_copied && !plane && !rows) return;
    char *row = mx_view_row(w->view, w->array, y0, z);
    for (int64_t y = y0; y < y1; y++, row += w->view->row_pitch_bytes) {
        if (y < low || y >= high || plane)
            refresh_row(w, s, y, z);
        else if (s->x_copied)
            refresh_x(s, row);
        else
            y = mx_min(y1, high) - 1, row = mx_view_row(w->view, w->array, y, z);
    }
}

static bool copies(const struct mx_after *a) {
    return copies_in(a, MX_DIM_X) || copies_in(a, MX_DIM_Y) || copies_in(a, MX_DIM_Z);
}

/* The part of row y of plane z is a copy itself. */
static bool is_copy(const struct mx_after *a, const struct part *part, int64_t y, int64_t z) {
    const struct mx_problem *p = a->problem;
    return (copies_in(a, MX_DIM_Y) && mx_side_source(part->y.side, p->ny, mx_halo_y(p), y) != y) ||
           (copies_in(a, MX_DIM_Z) && mx_side_source(part->z.side, p->nz, p->h, z) != z);
}

void mx_after_refresh(const struct mx_after *a, const struct mx_view *view, int array, int fields, int64_t x0,
                      int64_t x1, int64_t y0, int64_t y1, int64_t z0, int64_t z1) {
    if (a == NULL || !copies(a)) return;
    const struct here w = {a, a->problem, view, array, fields, x0, x1};
    struct spans s;
    spans_of(&w, &s);
    for (int64_t z = z0; z < z1; z++)
        for (int64_t y = y0; y < y1; y++) {
            char *row = mx_view_row(view, array, y, z);
            refresh_x(&s, row);
            for (int i = 0; i < s.parts; i++)
                if (!is_copy(a, &s.part[i], y, z)) refresh_part(&w, &s, &s.part[i], row, y, z);
        }
}

/* ------------------------------------------------------------------ zeros */

/* Cells of sides about a node that are 0, of rows [y0,y1) of plane z, ghosts too. */
static void zeros_of_plane(const struct here *w, int64_t y0, int64_t y1, int64_t z) {
    const struct mx_problem *p = w->p;
    const struct mx_sides *s = &w->a->sides;
    for (int32_t f = 0; f < mx_field_count(p, w->fields); f++) {
        const struct mx_ends x = mx_ends_of(s, w->fields, f, MX_DIM_X),
                             ey = mx_ends_of(s, w->fields, f, MX_DIM_Y),
                             ez = mx_ends_of(s, w->fields, f, MX_DIM_Z);
        const int64_t element = mx_dtype_bytes(mx_field_dtype(p, w->fields, f));
        const bool plane = mx_side_zero(ez.side, p->nz, p->h, z);
        for (int64_t y = y0; y < y1; y++) {
            char *row = mx_view_row(w->view, w->array, y, z) + w->a->layout->field_offset_bytes[w->fields][f];
            if (plane || mx_side_zero(ey.side, p->ny, mx_halo_y(p), y))
                memset(row + w->x0 * element, 0, (size_t)((w->x1 - w->x0) * element));
            else
                mx_side_zero_x(x.side, p->nx, p->h, (struct mx_cells){w->x0, w->x1}, element, row);
        }
    }
}

static bool has_zeros(const struct mx_after *a) {
    const int node = 1 << MX_SIDE_ODD_NODE;
    return mx_sides_any(&a->sides, MX_DIM_X, node) || mx_sides_any(&a->sides, MX_DIM_Y, node) ||
           mx_sides_any(&a->sides, MX_DIM_Z, node);
}

/* ------------------------------------------------------------------ points */

/* The cell of a point that this call has written, in row y of the view; NULL: it has not. */
static char *cell_of(const struct here *w, const struct mx_point *pt, int64_t y, int64_t z,
                     enum mx_dtype *dtype) {
    const int64_t x = pt->x + w->p->h;
    if ((pt->array >= 0 && pt->array != w->fields) || x < w->x0 || x >= w->x1) return NULL;
    *dtype = mx_field_dtype(w->p, w->fields, pt->field);
    return mx_view_row(w->view, w->array, y, z) + w->a->layout->field_offset_bytes[w->fields][pt->field] +
           x * mx_dtype_bytes(*dtype);
}

/* Rows [from, from + rows) of interior plane zi stand at y, in plane z of the view. */
static bool add_sources(const struct here *w, int64_t zi, int64_t from, int64_t rows, int64_t y, int64_t z,
                        int64_t step) {
    const struct mx_points *points = &w->a->sources->points;
    int64_t i, end;
    mx_points_of_rows(points, zi, from, from + rows, &i, &end);
    const bool any = i < end;
    for (; i < end; i++) {
        enum mx_dtype dtype;
        double amplitude;
        char *cell = cell_of(w, &points->point[i], y + points->point[i].y - from, z, &dtype);
        if (cell != NULL && mx_source_amplitude(w->a->sources, i, step, &amplitude))
            mx_cell_add(dtype, cell, 0, amplitude);
    }
    return any;
}

/* Ghost rows are those of the cells that they stand for: in pieces that do not wrap. Whether there are any.
 */
static bool sources_of_plane(const struct here *w, int64_t y0, int64_t y1, int64_t z, int64_t step) {
    const struct mx_problem *p = w->p;
    const int64_t zi = mx_plane_of(p, z);
    bool any = false;
    if (!mx_points_in_plane(&w->a->sources->points, zi)) return false;
    for (int64_t y = y0; y < y1;) {
        const int64_t from = mx_wrap(y - mx_halo_y(p), p->ny), rows = mx_min(y1 - y, p->ny - from);
        any |= add_sources(w, zi, from, rows, y, z, step);
        y += rows;
    }
    return any;
}

static void probes_of_plane(const struct here *w, int64_t y0, int64_t y1, int64_t z, int64_t step) {
    const int32_t h = mx_halo_y(w->p);
    const struct mx_points *points = w->a->traces->probes;
    const int64_t zi = mx_plane_of(w->p, z);
    int64_t i, end;
    if (!mx_points_in_plane(points, zi)) return;
    mx_points_of_rows(points, zi, y0 - h, y1 - h, &i, &end);
    for (; i < end; i++) {
        enum mx_dtype dtype;
        const char *cell = cell_of(w, &points->point[i], points->point[i].y + h, z, &dtype);
        if (cell != NULL) mx_traces_record(w->a->traces, step, i, mx_cell_load(dtype, cell, 0));
    }
}

/* ------------------------------------------------------------------ norms */

/* A row as a kernel gets it, without what it writes. */
struct kernel_row {
    const void *in[MX_MAX_FIELDS * (2 * MX_MAX_HALO + 1)], *fixed[MX_MAX_FIXED * (2 * MX_MAX_HALO + 1)];
    int64_t fixed_pitch[MX_MAX_FIXED];
    double param[MX_MAX_PARAMS];
    struct mx_row r;
};

static const struct mx_row *kernel_row(const struct here *w, int64_t y, int64_t z, int64_t level,
                                       struct kernel_row *k) {
    const struct mx_problem *p = w->p;
    const struct mx_system *s = p->system;
    const int from = 1 - w->fields; /* the array of the system that is read */
    int n = 0;
    if (s == NULL) return NULL;
    for (int32_t f = 0; f < s->n_field[from]; f++)
        for (int64_t d = -s->h; d <= s->h; d++)
            k->in[n++] =
                mx_view_row(w->view, 1 - w->array, y, z + d) + w->a->layout->field_offset_bytes[from][f];
    n = 0;
    for (int32_t f = 0; f < s->n_fixed; f++) {
        for (int64_t d = -s->hc; d <= s->hc; d++) k->fixed[n++] = mx_view_fixed_row(w->view, f, y, z + d);
        k->fixed_pitch[f] = w->view->fixed[f].row_pitch_bytes;
    }
    k->r = (struct mx_row){.in = k->in,
                           .fixed = k->fixed,
                           .row_pitch = w->view->row_pitch_bytes,
                           .fixed_pitch = k->fixed_pitch,
                           .rows = 1,
                           .param = mx_params_at(s, level, k->param),
                           .x0 = p->h,
                           .x1 = p->nx + p->h,
                           .y = y - mx_halo_y(p),
                           .z = mx_plane_of(p, z),
                           .t = level / mx_levels_a_step(p),
                           .nx = p->nx,
                           .ny = p->ny,
                           .nz = mx_all_planes(p)};
    return &k->r;
}

static void norms_of_plane(const struct here *w, int64_t level, int64_t y0, int64_t y1, int64_t z,
                           const char *old) {
    const bool reduces = mx_norms_reduces(w->a->norms);
    struct kernel_row k;
    for (int64_t y = y0; y < y1; y++) {
        const struct mx_norm_row row = {.level = level,
                                        .y = y - mx_halo_y(w->p),
                                        .z = z - w->p->h,
                                        .x0 = w->x0,
                                        .x1 = w->x1,
                                        .now = mx_view_row(w->view, w->array, y, z),
                                        .old = old != NULL ? old : mx_view_row(w->view, 1 - w->array, y, z),
                                        .field_offset_bytes = w->a->layout->field_offset_bytes[w->fields],
                                        .r = reduces ? kernel_row(w, y, z, level, &k) : NULL};
        mx_norms_row(w->a->norms, &row);
    }
}

/* ------------------------------------------------------------------ all of it */

static bool in_grid(const struct mx_problem *p, int64_t z) { return z >= p->h && z < p->nz + p->h; }

void mx_after_box(const struct mx_after *a, const struct mx_view *view, int array, int64_t level, int64_t x0,
                  int64_t x1, int64_t y0, int64_t y1, int64_t z0, int64_t z1, const char *old) {
    if (a == NULL) return;
    const struct mx_problem *p = a->problem;
    const struct here w = {a, p, view, array, level % 2 == 0, x0, x1};
    const int64_t step = level / mx_levels_a_step(p);
    const int64_t in0 = mx_max(y0, mx_halo_y(p)),
                  in1 = mx_min(y1, p->ny + mx_halo_y(p)); /* rows of the interior */
    const bool refresh = copies(a), zeros = has_zeros(a);
    const bool norms = a->norms != NULL && mx_norms_due(a->norms, level), act = mx_points_act(p, level);
    const bool sources = a->sources != NULL && act, traces = a->traces != NULL && act;
    struct spans s;
    if (!refresh && !norms && !sources && !traces) return;
    if (refresh) spans_of(&w, &s);
    for (int64_t z = z0; z < z1; z++) {
        const bool interior = in_grid(p, z) && in0 < in1;
        if (sources) sources_of_plane(&w, y0, y1, z, step);
        if (zeros) zeros_of_plane(&w, y0, y1, z);
        if (traces && interior) probes_of_plane(&w, in0, in1, z, step);
        if (norms && interior) norms_of_plane(&w, level, in0, in1, z, old);
        if (refresh) refresh_rows(&w, &s, y0, y1, z);
    }
}

bool mx_after_points(const struct mx_after *a, int64_t level, int64_t y0, int64_t y1, int64_t z, char *rows,
                     int64_t row_pitch_bytes) {
    const struct mx_problem *p = a->problem;
    const struct mx_view view = {.base = {rows, rows},
                                 .slots = {1, 1},
                                 .row_pitch_bytes = row_pitch_bytes,
                                 .y_offset = -y0,
                                 .z_offset = -z};
    const struct here w = {a, p, &view, 0, level % 2 == 0, p->h, p->nx + p->h};
    const int64_t step = level / mx_levels_a_step(p);
    const int64_t in0 = mx_max(y0, mx_halo_y(p)), in1 = mx_min(y1, p->ny + mx_halo_y(p));
    const bool added = a->sources != NULL && sources_of_plane(&w, y0, y1, z, step);
    if (a->traces != NULL && in_grid(p, z) && in0 < in1) probes_of_plane(&w, in0, in1, z, step);
    return added;
}

uint64_t mx_after_planes_with_points(const struct mx_after *a, int64_t y0, int64_t y1, int64_t z0,
                                     int64_t planes) {
    const struct mx_points *list[2] = {a->sources != NULL ? &a->sources->points : NULL,
                                       a->traces != NULL ? a->traces->probes : NULL};
    const struct mx_problem *p = a->problem;
    uint64_t some = 0;
    for (int k = 0; k < 2; k++) {
        if (list[k] == NULL) continue;
        const uint64_t parts = mx_points_parts(list[k], y0 - mx_halo_y(p), y1 - mx_halo_y(p));
        for (int64_t i = 0; i < planes; i++)
            some |= (uint64_t)((list[k]->near[mx_plane_of(p, z0 + i)] & parts) != 0) << i;
    }
    return some;
}

bool mx_after_copies_rows(const struct mx_after *a, int64_t y0, int64_t y1, int64_t z0, int64_t z1) {
    if (a == NULL || y0 >= y1 || z0 >= z1) return false;
    return mx_sides_any(&a->sides, MX_DIM_X, MX_SIDES_MINUS) || has_copies(a, MX_DIM_Y, y0, y1) ||
           has_copies(a, MX_DIM_Z, z0, z1);
}
