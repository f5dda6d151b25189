/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/work.h"
#include "engine/after.h"
#include "system/finite.h"

#include <errno.h>
#include <memext/backend.h>
#include <string.h>

static int find_kernel(const struct mx_problem *p, mx_why *why, mx_kernel_fn **out) {
    const struct mx_stencil *stencil = mx_stencil_find(p->stencil);
    if (stencil == NULL)
        return mx_fail(why, -EINVAL, "there is no stencil %s: `memext info` lists them", p->stencil);
    if (stencil->h != p->h)
        return mx_fail(
            why, -EINVAL,
            "internal error (stencil %s has radius %d, the problem a halo of %d); please report it",
            p->stencil, stencil->h, p->h);
    *out = mx_stencil_kernel(stencil, p->dtype, NULL);
    return mx_stencil_isa_check(why);
}

static int check_system(const struct mx_problem *p, mx_why *why) {
    const struct mx_system *s = p->system;
    if (s->h != p->h || s->h < 1 || s->h > MX_MAX_HALO || s->hc < 0 || s->hc > s->h)
        return mx_fail(why, -EINVAL,
                       "internal error (system %s has radius %d, its read-only fields %d, the problem a halo "
                       "of %d; 1 to %d are possible); please report it",
                       s->name, s->h, s->hc, p->h, MX_MAX_HALO);
    for (int i = 0; i < 2; i++)
        if (s->n_field[i] < 1 || s->n_field[i] > MX_MAX_FIELDS)
            return mx_fail(why, -EINVAL, "system %s has %d fields in its array %c: 1 to %d are possible",
                           s->name, s->n_field[i], 'A' + i, MX_MAX_FIELDS);
    for (int i = 0; i < mx_system_levels(s); i++)
        if (s->row[i] == NULL)
            return mx_fail(why, -EINVAL, "system %s has no row function for level %d of a step", s->name, i);
    return 0;
}

int mx_work_make(const struct mx_engine_options *o, mx_why *why, struct mx_work *out) {
    const struct mx_problem *p = o->problem;
    struct mx_work work = {.nx = p->nx, .h = p->h, .hy = mx_halo_y(p), .problem = p};
    int err = p->system != NULL ? check_system(p, why) : find_kernel(p, why, &work.kernel);
    if (err != 0) return err;
    if (p->nx < 1 || o->threads < 1)
        return mx_fail(why, -EINVAL, "nx is %lld and threads is %d: both must be at least 1",
                       (long long)p->nx, o->threads);
    for (int i = 0; i < 2; i++) {
        struct mx_row_fields *fields = &work.fields[i];
        fields->n = mx_field_count(p, i);
        fields->end_bytes = mx_field_offsets(p, i, fields->offset_bytes);
        for (int32_t f = 0; f < fields->n; f++)
            fields->cell_bytes[f] = (int32_t)mx_dtype_bytes(mx_field_dtype(p, i, f));
    }
    memcpy(work.coef, p->coef, sizeof work.coef);
    *out = work;
    return 0;
}

enum { MOST_PLANES = 64, /* of one kernel call */ ROWS_BETWEEN_ASKING = 4 };

/* Row y of planes z, z+1, ... of an array. */
static void plane_rows(const struct mx_view *view, int array, int64_t y, int64_t z, int64_t planes,
                       char **out) {
    const int64_t slots = view->slots[array], pitch = view->plane_pitch_bytes;
    char *row = mx_view_row(view, array, y, z);
    char *const end = view->base[array] + slots * pitch;
    for (int64_t i = 0; i < planes; i++, row += pitch) {
        if (row >= end) row -= slots * pitch;
        out[i] = row;
    }
}

static void stencil_box(const struct mx_work *work, const struct mx_view *view, int to, struct mx_box box,
                        struct mx_ahead *ahead) {
    const int64_t h = work->h;
    char *src[MOST_PLANES + 2 * MX_MAX_HALO], *dst[MOST_PLANES];
    struct mx_patch patch = {.src = (const char *const *)src,
                             .dst_planes = dst,
                             .row_pitch_bytes = view->row_pitch_bytes,
                             .rows = (int32_t)(box.y1 - box.y0),
                             .h = work->h,
                             .nx = work->nx,
                             .x0 = box.x0,
                             .x1 = box.x1,
                             .ahead = ahead};
    for (int64_t z = box.z0; z < box.z1; z += MOST_PLANES) {
        patch.planes = (int32_t)mx_min(box.z1 - z, MOST_PLANES);
        plane_rows(view, 1 - to, box.y0, z - h, patch.planes + 2 * h, src);
        plane_rows(view, to, box.y0, z, patch.planes, dst);
        patch.dst = dst[0];
        work->kernel(&patch, work->coef);
    }
}

/* A row function's arguments, and what it does not see. */
struct row_call {
    struct mx_row row;
    void *out[MX_MAX_FIELDS * MX_MAX_DEEP];
    const void *in[MX_MAX_FIELDS * (2 * MX_MAX_HALO + MX_MAX_DEEP)];
    const void *fixed[MX_MAX_FIXED * (2 * MX_MAX_HALO + MX_MAX_DEEP)];
    int64_t fixed_pitch[MX_MAX_FIXED];
    double param[MX_MAX_PARAMS];
};

/* Row y of all planes that the box reads and writes, and of all that it reads in C. */
struct box_planes {
    char *in[MOST_PLANES + 2 * MX_MAX_HALO], *out[MOST_PLANES];
    const char *fixed[MX_MAX_FIXED][MOST_PLANES + 2 * MX_MAX_HALO];
};

static void point_to_planes(const struct mx_work *work, const struct mx_view *view, int to, int64_t y,
                            int64_t z, int64_t planes, struct box_planes *p) {
    const struct mx_system *s = work->problem->system;
    plane_rows(view, 1 - to, y, z - work->h, planes + 2 * work->h, p->in);
    plane_rows(view, to, y, z, planes, p->out);
    for (int32_t i = 0; i < s->n_fixed; i++)
        for (int64_t d = 0; d < planes + 2 * s->hc; d++)
            p->fixed[i][d] = mx_view_fixed_row(view, i, y, z + d - s->hc);
}

/* The arguments for the rows from `row` on, counted from those of p, of `deep` planes from `plane` on. */
static void point_to_rows(const struct mx_work *work, const struct box_planes *p, int64_t level,
                          int64_t plane, int64_t deep, int64_t row, struct row_call *c) {
    const struct mx_system *s = work->problem->system;
    const int64_t planes = 2 * work->h + deep, fixed_planes = 2 * s->hc + deep, at = row * c->row.row_pitch;
    const struct mx_row_fields *read = &work->fields[mx_read_by(level)],
                               *written = &work->fields[1 - mx_read_by(level)];
    for (int32_t f = 0; f < written->n; f++)
        for (int64_t d = 0; d < deep; d++)
            c->out[f * deep + d] = p->out[plane + d] + at + written->offset_bytes[f];
    for (int64_t d = 0; d < planes; d++) {
        const char *in = p->in[plane + d] + at;
        for (int32_t f = 0; f < read->n; f++) c->in[f * planes + d] = in + read->offset_bytes[f];
    }
    for (int32_t i = 0; i < s->n_fixed; i++)
        for (int64_t d = 0; d < fixed_planes; d++)
            c->fixed[i * fixed_planes + d] = p->fixed[i][plane + d] + row * c->fixed_pitch[i];
}

/* h cells, most often one. */
static void copy_cells(char *to, const char *from, int64_t bytes) {
    if (bytes == 4)
        memcpy(to, from, 4);
    else if (bytes == 8)
        memcpy(to, from, 8);
    else
        memcpy(to, from, (size_t)bytes);
}

/* Nothing of the array written is read where the form is jacobi, so that its frame has to come from the other
 * one, which has the same fields. */
static void copy_x_frames(const struct mx_work *work, const struct row_call *c, int64_t level, int64_t deep) {
    const struct mx_row_fields *fields = &work->fields[1 - mx_read_by(level)];
    const int64_t h = work->h, planes = 2 * h + deep, pitch = c->row.row_pitch;
    if (c->row.x0 != h && c->row.x1 != work->nx + h) return;
    for (int64_t i = 0; i < fields->n * deep; i++) {
        const int64_t f = i / deep;
        const int64_t cell = fields->cell_bytes[f], right = (work->nx + h) * cell;
        char *dst = c->out[i];
        const char *src = c->in[f * planes + h + i % deep];
        for (int64_t r = 0; r < c->row.rows; r++, dst += pitch, src += pitch) {
            if (c->row.x0 == h) copy_cells(dst, src, h * cell);
            if (c->row.x1 == work->nx + h) copy_cells(dst + right, src + right, h * cell);
        }
    }
}

/* Planes of the next call, of which the first is z: as many as the kernel takes, if their indices adjoin. */
static int64_t planes_of_call(const struct mx_problem *p, int64_t z, int64_t left, bool ghosts) {
    const int64_t deep = mx_planes_of_call(p->system, left);
    return !ghosts || mx_plane_of(p, z + deep - 1) - mx_plane_of(p, z) == deep - 1 ? deep : 1;
}

/* Sets the coordinates that the kernel sees. Cells of a rank have those of the whole grid, and ghost cells
 * those of the cells that they stand for. Rows end where they wrap; planes of the call must not
 * (planes_of_call). */
static void name_ghosts(const struct mx_problem *p, struct mx_row *row) {
    row->y = mx_wrap(row->y, p->ny);
    row->z = mx_plane_of(p, row->z + p->h);
    row->rows = mx_min(row->rows, p->ny - row->y);
}

/* Row functions do not ask for what is listed, so they are called for a few rows at a time where there is
 * something to ask for. A call of one row is a tenth slower. */
static void system_planes(const struct mx_work *work, const struct mx_advance *a, int32_t l,
                          struct mx_box box, struct row_call *c, struct mx_ahead *ahead) {
    const struct mx_problem *p = work->problem;
    const int64_t level = a->first_level + l, planes = box.z1 - box.z0;
    const bool ghosts =
        p->all_nz > 0 || (a->after != NULL && (a->after->ghost[MX_DIM_Y] || a->after->ghost[MX_DIM_Z]));
    struct box_planes at;
    point_to_planes(work, &a->view, (a->parity + l + 1) & 1, box.y0, box.z0, planes, &at);
    for (int64_t z = 0, deep; z < planes; z += deep) {
        deep = planes_of_call(p, box.z0 + z, planes - z, ghosts);
        const int64_t rows = ahead == NULL ? box.y1 - box.y0 : mx_max(ROWS_BETWEEN_ASKING / deep, 2);
        void (*const row)(const struct mx_row *) = mx_planes_of(p->system, level, deep);
        for (int64_t y = box.y0; y < box.y1; y += c->row.rows) {
            c->row.rows = mx_min(rows, box.y1 - y);
            c->row.y = y - work->hy;
            c->row.z = box.z0 + z - p->h;
            if (ghosts) name_ghosts(p, &c->row);
            point_to_rows(work, &at, level, z, deep, y - box.y0, c);
            if (ahead != NULL) mx_ahead_ask(ahead, deep * c->row.rows * (box.x1 - box.x0));
            row(&c->row);
            if (!mx_reads_old(p)) copy_x_frames(work, c, level, deep);
        }
    }
}

static void system_box(const struct mx_work *work, const struct mx_advance *a, int32_t l, struct mx_box box,
                       struct mx_ahead *ahead) {
    const struct mx_problem *p = work->problem;
    const struct mx_system *s = p->system;
    struct row_call c;
    const int64_t t = (a->first_level + l) / mx_levels_a_step(p);
    c.row = (struct mx_row){.out = c.out,
                            .in = c.in,
                            .fixed = c.fixed,
                            .row_pitch = a->view.row_pitch_bytes,
                            .fixed_pitch = c.fixed_pitch,
                            .param = mx_params_at(s, a->first_level + l, c.param),
                            .x0 = box.x0,
                            .x1 = box.x1,
                            .t = p->trial_nt > 0 ? mx_min(t, p->trial_nt - 1) : t,
                            .nx = p->nx,
                            .ny = p->ny,
                            .nz = mx_all_planes(p)};
    for (int32_t i = 0; i < s->n_fixed; i++) c.fixed_pitch[i] = a->view.fixed[i].row_pitch_bytes;
    for (struct mx_box part = box; part.z0 < box.z1; part.z0 = part.z1) {
        part.z1 = mx_min(part.z0 + MOST_PLANES, box.z1);
        system_planes(work, a, l, part, &c, ahead);
    }
}

/* Whole rows of a staggered system whose change is asked for: each is kept while it is replaced. */
static void box_by_rows(const struct mx_work *work, const struct mx_advance *a, int32_t l,
                        struct mx_box box) {
    const int to = (a->parity + l + 1) & 1;
    const int64_t level = a->first_level + l;
    const struct mx_row_fields *fields = &work->fields[1 - mx_read_by(level)];
    char *old = mx_norms_old_take(a->after->norms);
    struct mx_box row = box;
    for (row.z0 = box.z0; row.z0 < box.z1; row.z0++)
        for (row.y0 = box.y0; row.y0 < box.y1; row.y0++) {
            row.z1 = row.z0 + 1, row.y1 = row.y0 + 1;
            memcpy(old, mx_view_row(&a->view, to, row.y0, row.z0), (size_t)fields->end_bytes);
            system_box(work, a, l, row, NULL);
            mx_after_box(a->after, &a->view, to, level, row.x0, row.x1, row.y0, row.y1, row.z0, row.z1, old);
        }
    mx_norms_old_give(a->after->norms, old);
}

/* Cells [x0,x1) of a row of all fields. */
static void look_at_row(const struct mx_work *work, int array, const char *row, int64_t y, int64_t z,
                        const struct mx_box *box, struct mx_nonfinite *found) {
    const struct mx_row_fields *fields = &work->fields[array];
    const struct mx_problem *p = work->problem;
    for (int32_t f = 0; f < fields->n; f++) {
        const struct mx_nonfinite at = {.array = array,
                                        .field = f,
                                        .x = box->x0 - work->h,
                                        .y = y - work->hy,
                                        .z = z - work->h + p->first_plane};
        mx_nonfinite_cells(row + fields->offset_bytes[f] + box->x0 * fields->cell_bytes[f], box->x1 - box->x0,
                           mx_field_dtype(p, array, f), &at, found);
    }
}

void mx_work_look(const struct mx_work *work, const struct mx_advance *a, int32_t l, struct mx_box box) {
    const struct mx_problem *p = work->problem;
    const int64_t h = work->h, y1 = mx_min(box.y1, p->ny + work->hy), z1 = mx_min(box.z1, p->nz + h);
    const int to = (a->parity + l + 1) & 1, array = 1 - mx_read_by(a->first_level + l);
    struct mx_nonfinite found = {.cells = 0};
    if (a->finding == NULL || l < a->levels - mx_states(p)) return;
    box.y0 = mx_max(box.y0, work->hy); /* there may be ghosts */
    for (int64_t z = mx_max(box.z0, h); z < z1 && box.y0 < y1; z++) {
        const char *row = mx_view_row(&a->view, to, box.y0, z);
        for (int64_t y = box.y0; y < y1; y++, row += a->view.row_pitch_bytes)
            look_at_row(work, array, row, y, z, &box, &found);
    }
    if (found.cells == 0) return;
    pthread_mutex_lock(&a->finding->lock);
    mx_nonfinite_add(&a->finding->found, &found);
    pthread_mutex_unlock(&a->finding->lock);
}

static void work_box(const struct mx_work *work, const struct mx_advance *a, int32_t l, struct mx_box box,
                     struct mx_ahead *ahead) {
    const struct mx_norms *norms = a->after != NULL ? a->after->norms : NULL;
    if (norms != NULL && mx_norms_needs_old(norms, a->first_level + l)) {
        box_by_rows(work, a, l, box);
        return;
    }
    if (work->kernel != NULL)
        stencil_box(work, &a->view, (a->parity + l + 1) & 1, box, ahead);
    else
        system_box(work, a, l, box, ahead);
    if (a->after != NULL)
        mx_after_box(a->after, &a->view, (a->parity + l + 1) & 1, a->first_level + l, box.x0, box.x1, box.y0,
                     box.y1, box.z0, box.z1, NULL);
}

void mx_work_box(const struct mx_work *work, const struct mx_advance *a, int32_t l, struct mx_box box,
                 struct mx_ahead *ahead) {
    work_box(work, a, l, box, ahead);
    if (a->finding != NULL) mx_work_look(work, a, l, box);
}

/* The rows of [y0,y1) that the seam has for this level and plane: where they are in it, how many. */
static int64_t seam_rows(const struct mx_seam *seam, int64_t pitch, int32_t level, int64_t y0, int64_t y1,
                         int64_t z, int64_t *y, char **at) {
    if (seam->base == NULL) return 0;
    const struct mx_seam_planes have = mx_seam_planes(seam, level);
    if (z < have.z0 || z >= have.z1) return 0;
    const int64_t first = seam->first_y[level];
    const int64_t from = mx_max(y0, first), to = mx_min(y1, first + seam->n_rows[level]);
    const int64_t plane = level * seam->planes_per_level + (z - have.z0);
    *y = from;
    *at = seam->base + (plane * seam->seam_rows + (from - first)) * pitch;
    return to - from;
}

struct mx_part mx_row_part(const struct mx_work *work, const struct mx_row_fields *fields, int32_t f,
                           int64_t x0, int64_t x1) {
    const int64_t from = x0 <= work->h ? 0 : x0, cell = fields->cell_bytes[f];
    const int64_t to = x1 >= work->nx + work->h ? work->nx + 2 * work->h : x1;
    return (struct mx_part){fields->offset_bytes[f] + from * cell, (to - from) * cell};
}

static void copy_rows(char *to, const char *from, int64_t rows, int64_t pitch, struct mx_part part) {
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + r * pitch + part.offset, from + r * pitch + part.offset, (size_t)part.bytes);
}

enum way { FROM_SEAM, TO_SEAM };

static void copy_seam(const struct mx_work *work, const struct mx_advance *a, const struct mx_seam *seam,
                      enum way way, int32_t level, struct mx_box box) {
    const int64_t pitch = a->view.row_pitch_bytes;
    const struct mx_row_fields *fields = &work->fields[mx_read_by(a->first_level + level)];
    for (int64_t z = box.z0; z < box.z1; z++) {
        int64_t y;
        char *kept;
        int64_t rows = seam_rows(seam, pitch, level, box.y0, box.y1, z, &y, &kept);
        if (rows <= 0) continue;
        char *row = mx_view_row(&a->view, (a->parity + level) & 1, y, z);
        for (int32_t f = 0; f < fields->n; f++)
            copy_rows(way == TO_SEAM ? kept : row, way == TO_SEAM ? row : kept, rows, pitch,
                      mx_row_part(work, fields, f, box.x0, box.x1));
    }
}

/* Inserted rows are what the strip itself would have computed, and so are the frame planes that copy them.
 * Those of level 0 were loaded whole. */
static void refresh_planes(const struct mx_work *work, const struct mx_advance *a, int32_t level,
                           struct mx_box box) {
    const struct mx_after *after = a->after;
    const struct mx_seam *f = &a->seam_in;
    const int64_t h = work->h, nz = work->problem->nz;
    if (after == NULL || level == 0 || after->ghost[MX_DIM_Z] || mx_sides_fixed(&after->sides, MX_DIM_Z))
        return;
    const struct mx_seam_planes have = mx_seam_planes(f, level);
    const int64_t z0 = mx_max(box.z0, have.z0), z1 = mx_min(box.z1, have.z1);
    const int64_t y0 = mx_max(box.y0, f->first_y[level]),
                  y1 = mx_min(box.y1, f->first_y[level] + f->n_rows[level]);
    const int64_t x0 = mx_max(box.x0, h), x1 = mx_min(box.x1, work->nx + h);
    if (y0 >= y1 || x0 >= x1) return;
    const int64_t low = h + mx_sides_sources(&after->sides, MX_DIM_Z, 0, work->h),
                  high = nz + h - mx_sides_sources(&after->sides, MX_DIM_Z, 1, work->h);
    for (int64_t z = z0; z < z1; z++)
        if (z < low || z >= high)
            mx_after_refresh(after, &a->view, (a->parity + level) & 1, mx_read_by(a->first_level + level), x0,
                             x1, y0, y1, z, z + 1);
}

void mx_seam_insert(const struct mx_work *work, const struct mx_advance *a, int32_t level,
                    struct mx_box box) {
    copy_seam(work, a, &a->seam_in, FROM_SEAM, level, box);
    if (a->seam_in.base != NULL) refresh_planes(work, a, level, box);
}

void mx_seam_save(const struct mx_work *work, const struct mx_advance *a, int32_t level, struct mx_box box) {
    copy_seam(work, a, &a->seam_out, TO_SEAM, level, box);
}
