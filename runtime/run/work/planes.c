/* SPDX-License-Identifier: BSD-3-Clause */
/* planes.c - passes over the planes of a Buffer; planes as sources and sinks see them. */
#include "run/work/work.h"

#include <string.h>

/* ------------------------------------------------------------------ passes */

void mx_run_on_progress(void *context, int64_t done) {
    struct mx_run *r = context;
    mx_run_progress_to(r, done);
    mx_timeline_updates(r->timeline, done);
}

/* A pass over all planes with progress. */
struct pass {
    struct mx_run *r;
    const struct mx_layout *layout;
    mx_source_fn *use;
    void *context;
};

static int pass_plane(void *context, int64_t z, char *plane) {
    struct pass *p = context;
    mx_run_progress_to(p->r, (z + 1) * p->layout->plane_pitch_bytes);
    return p->use(p->context, z, plane);
}

int mx_run_pass_layout(struct mx_run *r, const char *label, mx_buffer *buffer, const struct mx_layout *layout,
                       bool write, mx_source_fn *use, void *context) {
    struct pass p = {r, layout, use, context};
    mx_run_begin_phase(r, label, "B", layout->buffer_bytes);
    return (write ? mx_field_write : mx_field_read)(buffer, layout, r->budget, &r->stop, pass_plane, &p,
                                                    &r->why);
}

int mx_run_pass(struct mx_run *r, const char *label, mx_buffer *buffer, const struct mx_layout *layout,
                mx_source_fn *source, void *context) {
    return mx_run_pass_layout(r, label, buffer, layout, true, source, context);
}

int mx_run_pass_grid(struct mx_run *r, const char *label, mx_buffer *buffer, bool write, mx_source_fn *use,
                     void *context) {
    return mx_run_pass_layout(r, label, buffer, &r->report.layout, write, use, context);
}

/* ------------------------------------------------------------------ boxes */

/* A plane of the Buffer, as sources and sinks see it, with or without its frame. */
static struct mx_grid_box box_inside(const struct mx_run *r, bool frame, int64_t z, char *plane) {
    const struct mx_problem *p = &r->o.problem;
    const struct mx_layout *l = &r->report.layout;
    return (struct mx_grid_box){.size = sizeof(struct mx_grid_box),
                                .x1 = p->nx + (frame ? 2 * p->h : 0),
                                .y1 = p->ny + (frame ? 2 * mx_halo_y(p) : 0),
                                .z0 = z,
                                .z1 = z + 1,
                                .row_pitch_bytes = l->row_pitch_bytes,
                                .plane_pitch_bytes = l->plane_pitch_bytes,
                                .data = plane,
                                .field = ""};
}

static struct mx_grid_box box_of(const struct mx_run *r, bool frame, int64_t z, char *plane) {
    const struct mx_grid_box box = box_inside(r, frame, z, plane);
    return r->o.problem.flat ? mx_box_of_users(&box) : box;
}

/* A plane that a sink is to get: *box is it, or false where it gets none of it, since it wants no frame. */
bool mx_run_box_out(const struct mx_run *r, enum mx_dtype dtype, int64_t z, char *plane,
                    struct mx_grid_box *box) {
    const struct mx_problem *p = &r->o.problem;
    const int64_t of_all = z + p->first_plane;
    const int64_t h = p->h,
                  corner = mx_halo_y(p) * r->report.layout.row_pitch_bytes + h * mx_dtype_bytes(dtype);
    const bool bare = r->o.bare_output;
    if ((bare || mx_has_neighbour(p, 0)) && z < h) return false;
    if ((bare || mx_has_neighbour(p, 1)) && z >= p->nz + h) return false;
    *box = bare ? box_of(r, false, of_all - h, plane + corner) : box_of(r, true, of_all, plane);
    return true;
}

int64_t mx_run_frame_shift(const struct mx_run *r, int64_t z) {
    const struct mx_problem *p = &r->o.problem;
    const int64_t all = mx_all_planes(p), i = z - p->h + p->first_plane;
    const bool around = mx_is_cut(p) && mx_sides_periodic(&r->whole.sides, MX_DIM_Z) && !r->o.bare_output;
    return !around ? 0 : i < p->h ? all : i >= all - p->h ? -all : 0;
}

int mx_run_give_planes(struct mx_run *r, const struct mx_sink *sink, int64_t z, struct mx_grid_box *box) {
    int err = sink->region(sink->context, box, &r->why);
    const int64_t shift = mx_run_frame_shift(r, z);
    if (err == 0 && shift != 0) {
        if (r->o.problem.flat)
            box->y0 += shift, box->y1 += shift;
        else
            box->z0 += shift, box->z1 += shift;
        err = sink->region(sink->context, box, &r->why);
    }
    return err > 0 ? -EIO : err;
}

/* ------------------------------------------------------------------ first values */

/* A plane as the source has it, with its frame or without. */
static int ask_source(void *context, int64_t z, char *at) {
    struct mx_run *r = context;
    const struct mx_grid_box box = box_of(r, r->made.kind == MX_FRAME_INCLUDED, z, at);
    int err = r->source.region(r->source.context, &box, &r->why);
    return err > 0 ? -EIO : err;
}

int mx_plain_plane(void *context, int64_t z, char *plane) {
    struct mx_run *r = context;
    const struct mx_problem *p = &r->whole;
    z = mx_side_source(mx_ends_of(&p->sides, 0, 0, MX_DIM_Z).side, p->nz, p->h, z);
    if (r->source.region == NULL) return mx_fill_plane(&r->fill, z, plane);
    if (r->made.kind == MX_FRAME_INCLUDED) return ask_source(r, z, plane);
    return mx_frame_fill(&r->made, p, p->dtype, r->report.layout.row_pitch_bytes, z, plane, ask_source, r);
}

int mx_fill_sided(void *context, int64_t z, char *plane) {
    const struct mx_sided *s = context;
    const struct mx_run *r = s->r;
    const struct mx_problem *p = &r->whole;
    z += r->o.problem.first_plane;
    if (mx_sides_all_fixed(&p->sides)) return s->fill(s->context, z, plane);
    int err = s->fill(s->context, z, plane);
    if (err == 0) mx_sides_plane(&p->sides, p, &r->report.layout, s->array, z, plane);
    return err;
}

struct mx_fields_fill mx_run_fill(struct mx_run *r, int32_t array, int32_t index,
                                  const struct mx_layout *layout) {
    return (struct mx_fields_fill){.fields = &r->fields,
                                   .problem = &r->whole,
                                   .layout = layout,
                                   .threads = r->tuned.plan.threads,
                                   .array = array,
                                   .index = index,
                                   .source = &r->source,
                                   .why = &r->why};
}

static int64_t periodic_source(const struct mx_problem *p, int dim, int64_t i) {
    const int64_t n = mx_extent_of(p, dim);
    return mx_sides_periodic(&p->sides, dim) ? mx_halo_of(p, dim) + mx_wrap(i - mx_halo_of(p, dim), n) : i;
}

int mx_fill_sided_field(void *context, int64_t z, char *plane) {
    const struct mx_sided_field *s = context;
    const struct mx_problem *p = &s->run->whole;
    z += s->run->o.problem.first_plane - s->before;
    const int64_t e = mx_dtype_bytes(s->dtype), pitch = s->layout->row_pitch_bytes, all = p->nx + 2 * p->h;
    int err = mx_fields_fill_plane(s->fill, periodic_source(p, MX_DIM_Z, z), plane);
    for (int64_t y = 0; y < s->layout->rows && err == 0 && mx_sides_periodic(&p->sides, MX_DIM_X); y++)
        for (int64_t x = 0; x < all; x = x + 1 == p->h ? p->nx + p->h : x + 1)
            memcpy(plane + y * pitch + x * e, plane + y * pitch + periodic_source(p, MX_DIM_X, x) * e,
                   (size_t)e);
    for (int64_t y = 0; y < s->layout->rows && err == 0; y++) {
        const int64_t from = periodic_source(p, MX_DIM_Y, y);
        if (from != y) memcpy(plane + y * pitch, plane + from * pitch, (size_t)s->layout->row_bytes);
    }
    return err;
}
