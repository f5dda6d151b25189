/* SPDX-License-Identifier: BSD-3-Clause */
/* fields.c - the fields of a system: their names, their files, and planes of what they begin with. */
#include "files/fields.h"

#include "files/frame.h"
#include "files/profile.h"
#include "files/raw.h"
#include "grid/array.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ names */

static struct mx_run_field *add(struct mx_run_fields *f, const struct mx_field_of *of, const char *suffix,
                                int32_t array, int32_t index) {
    struct mx_run_field *x = &f->field[f->n++];
    *x = (struct mx_run_field){
        .dtype = of->dtype, .array = array, .index = index, .same_as = -1, .npy.fd = -1};
    snprintf(x->name, sizeof x->name, "%s%s", of->name, suffix);
    return x;
}

void mx_fields_of(const struct mx_system *s, struct mx_run_fields *out) {
    out->n = 0;
    for (int32_t i = 0; i < s->n_field[0]; i++) add(out, &s->field[0][i], "", 0, i);
    for (int32_t i = 0; i < s->n_field[1] && s->form != MX_JACOBI; i++)
        add(out, &s->field[1][i], s->form == MX_LEAPFROG ? ".old" : "", 1, i);
    for (int32_t i = 0; i < s->n_fixed; i++) add(out, &s->fixed[i], "", MX_FIELD_OF_C, i);
}

/* ------------------------------------------------------------------ files */

/* Can its frame be made? A field of C that is read at the cell alone may lack it anyhow. */
static bool may_lack(const struct mx_run_field *f, const struct mx_problem *p) {
    return f->made.kind != MX_FRAME_INCLUDED || (f->array == MX_FIELD_OF_C && p->system->hc == 0);
}

/* Of the state either all files have the frame, or --frame makes it; a file of C says by its shape. */
static bool may_have(const struct mx_run_field *f) {
    return f->array == MX_FIELD_OF_C || f->made.kind == MX_FRAME_INCLUDED;
}

static int open_raw(struct mx_run_field *f, const struct mx_problem *p, mx_why *why) {
    char option[64];
    const struct mx_raw_want want = {.option = option,
                                     .nx = p->nx,
                                     .ny = p->ny,
                                     .nz = p->nz,
                                     .h = p->h,
                                     .flat = p->flat,
                                     .may_have = may_have(f),
                                     .may_lack = may_lack(f, p)};
    snprintf(option, sizeof option, "--%s %s", f->array == MX_FIELD_OF_C ? "field" : "input", f->name);
    return mx_raw_open(f->path, f->raw, &want, why, &f->npy, &f->frame);
}

static int open_file(struct mx_run_field *f, const struct mx_problem *p, mx_why *why) {
    if (f->raw[0] != 0) return open_raw(f, p, why);
    char data[PATH_MAX];
    int err = mx_array_open_grid(f->path, f->inside, true, p->flat, why, &f->npy, data);
    if (err < 0) return err;
    if (strlen(data) < sizeof f->data) return strcpy(f->data, data), 0;
    close(f->npy.fd);
    return mx_fail(
        why, -ENAMETOOLONG,
        "the path of the file with the cells of %.200s has more than %zu bytes: give it a shorter one",
        f->path, sizeof f->data - 1);
}

/* Do extents with the frame, or where that is allowed without, agree with the problem's? */
static int check_shape(struct mx_run_field *f, struct mx_problem *p, mx_why *why) {
    const int64_t *shape = f->npy.shape, h2 = 2 * (int64_t)p->h, hy2 = 2 * (int64_t)mx_halo_y(p);
    const int64_t bare_shape[3] = {p->nz, p->ny, p->nx}, framed[3] = {p->nz + h2, p->ny + hy2, p->nx + h2};
    char text[MX_SHAPE_TEXT], want[MX_SHAPE_TEXT];
    mx_shape_text(shape, p->flat, text);
    const bool made = f->made.kind != MX_FRAME_INCLUDED;
    if (f->npy.dtype != f->dtype)
        return mx_fail(why, -EINVAL,
                       "%.200s has cells of type %s; field %s of the kernel is %s: convert the file", f->path,
                       mx_dtype_name(f->npy.dtype), f->name, mx_dtype_name(f->dtype));
    f->alike = 0;
    if (p->nx == 0 && f->array == MX_FIELD_OF_C &&
        (shape[0] == 1 || (shape[1] == 1 && !p->flat) || shape[2] == 1))
        return mx_fail(why, -EINVAL,
                       "an extent of %.200s is 1 (shape %s), so the file does not say how large the grid is: "
                       "give its size with -n NX NY%s",
                       f->path, text, p->flat ? "" : " NZ");
    if (p->nx == 0) {
        const int64_t less = made ? 0 : h2;
        p->nx = shape[2] - less, p->ny = shape[1] - (made ? 0 : hy2), p->nz = shape[0] - less;
    }
    if (p->nx < 1 || p->ny < 1 || p->nz < 1)
        return mx_fail(
            why, -EINVAL,
            "%.200s of shape %s has no interior: no cell is left inside a frame of %d cells on every side. "
            "If the file has no frame, let memext make one: --frame edge, mirror, periodic or a number",
            f->path, text, p->h);
    f->frame = shape[2] == p->nx + h2 && shape[1] == p->ny + hy2 && shape[0] == p->nz + h2;
    bool bare = shape[2] == p->nx && shape[1] == p->ny && shape[0] == p->nz;
    if (f->array == MX_FIELD_OF_C && mx_field_is_alike(shape, p, made, &f->frame, &f->alike))
        bare = !f->frame;
    if ((f->frame && (may_have(f) || f->raw[0] != 0)) || (bare && may_lack(f, p))) return 0;
    if (f->frame)
        return mx_fail(why, -EINVAL,
                       "%.200s has the shape %s, which is that of field %s with its frame of %d cells: leave "
                       "--frame out, or give --frame %s=included",
                       f->path, text, f->name, p->h, f->name);
    if (made && f->array != MX_FIELD_OF_C)
        return mx_fail(why, -EINVAL, "%.200s has the shape %s; field %s needs %s, without a frame", f->path,
                       text, f->name, mx_shape_text(bare_shape, p->flat, want));
    return mx_fail(why, -EINVAL, "%.200s has the shape %s; field %s needs %s, with the frame of %d cells%s%s",
                   f->path, text, f->name, mx_shape_text(framed, p->flat, want), p->h,
                   may_lack(f, p) ? ", or without it"
                   : bare         ? ", or --frame edge, mirror, periodic or a number"
                                  : "",
                   f->array == MX_FIELD_OF_C ? "; an extent may be 1 if the field is constant along that axis"
                                             : "");
}

static int open_field(struct mx_run_field *f, struct mx_problem *p, bool former, mx_why *why) {
    const int64_t offset = f->npy.data_offset_bytes;
    const bool frame = f->frame;
    const uint8_t alike = f->alike;
    int err = open_file(f, p, why);
    if (err < 0) {
        f->npy.fd = -1;
        return err;
    }
    err = check_shape(f, p, why);
    if (err == 0 && former && f->in_place && f->alike != alike) {
        char then[4], now[4], text[MX_SHAPE_TEXT];
        return mx_fail(why, -EINVAL,
                       "%.200s of shape %s is constant along the axes '%s'. The run began with a file that "
                       "gives field %s constant along '%s': give that file with --field %s=FILE",
                       f->path, mx_shape_text(f->npy.shape, p->flat, text), mx_alike_told(p, f->alike, now),
                       f->name, mx_alike_told(p, alike, then), f->name);
    }
    if (err == 0 && former && f->in_place && (f->npy.data_offset_bytes != offset || f->frame != frame))
        err = mx_fail(
            why, -EINVAL,
            "in %.200s the cells begin at byte %lld and come %s a frame. The run began with a file of field "
            "%s whose cells begin at byte %lld and come %s a frame: give that file with --field %s=FILE",
            f->path, (long long)f->npy.data_offset_bytes, f->frame ? "with" : "without", f->name,
            (long long)offset, frame ? "with" : "without", f->name);
    return err < 0 ? err : mx_field_take_identity(f, former, why);
}

int mx_field_open_edit(struct mx_run_field *f, const struct mx_problem *p, mx_why *why) {
    struct mx_problem problem = *p;
    const int64_t *shape = f->npy.shape, h2 = 2 * (int64_t)p->h, hy2 = 2 * (int64_t)mx_halo_y(p);
    const int64_t bare[3] = {p->nz, p->ny, p->nx}, framed[3] = {p->nz + h2, p->ny + hy2, p->nx + h2};
    char text[3][MX_SHAPE_TEXT];
    int err = open_file(f, &problem, why);
    if (err < 0) return f->npy.fd = -1, err;
    if (f->npy.dtype != f->dtype)
        return mx_fail(why, -EINVAL,
                       "%.200s has cells of type %s; field %s of the state is %s: convert the file", f->path,
                       mx_dtype_name(f->npy.dtype), f->name, mx_dtype_name(f->dtype));
    f->frame = shape[2] == p->nx + h2 && shape[1] == p->ny + hy2 && shape[0] == p->nz + h2;
    if (f->frame || (shape[2] == p->nx && shape[1] == p->ny && shape[0] == p->nz)) return 0;
    return mx_fail(why, -EINVAL, "%.200s has the shape %s; field %s needs %s, or with the frame %s", f->path,
                   mx_shape_text(shape, p->flat, text[0]), f->name, mx_shape_text(bare, p->flat, text[1]),
                   mx_shape_text(framed, p->flat, text[2]));
}

int mx_field_look(struct mx_run_field *f, struct mx_problem *p, mx_why *why) {
    int err = open_field(f, p, false, why);
    if (err == 0) err = mx_field_take_cells(f, why);
    if (f->npy.fd >= 0) close(f->npy.fd);
    f->npy.fd = -1;
    return err;
}

int mx_fields_open_in_place(struct mx_run_fields *fields, struct mx_problem *p, mx_why *why) {
    int err = 0;
    for (int32_t i = 0; i < fields->n && err == 0; i++) {
        struct mx_run_field *f = &fields->field[i];
        if (f->in_place && f->npy.fd < 0) err = open_field(f, p, true, why);
    }
    return err;
}

int mx_fields_open_state(struct mx_run_fields *fields, struct mx_problem *p, mx_why *why) {
    int err = 0;
    for (int32_t i = 0; i < fields->n && err == 0; i++) {
        struct mx_run_field *f = &fields->field[i];
        if (f->array != MX_FIELD_OF_C && f->path[0] != 0) err = open_field(f, p, true, why);
    }
    return err;
}

int mx_fields_open(struct mx_run_fields *fields, struct mx_problem *p, bool former, mx_why *why) {
    int err = 0;
    /* State fields first: they have the frame, so extents follow from them. */
    for (int c = 0; c < 2; c++)
        for (int32_t i = 0; i < fields->n && err == 0; i++) {
            struct mx_run_field *f = &fields->field[i];
            if (f->path[0] == 0 || (f->array == MX_FIELD_OF_C) != (c == 1)) continue;
            err = open_field(f, p, former, why);
        }
    bool program = false;
    for (int32_t i = 0; i < fields->n; i++) program |= fields->field[i].program;
    if (err == 0 && p->nx == 0 && !program)
        err = mx_fail(
            why, -EINVAL,
            "the run has no grid: give its size with -n NX NY NZ, or a file with --input NAME=GRID.npy");
    return err;
}

/* Of two dimensions nz is told where it is wrong alone. */
static const char *cells_text(const struct mx_grid *g, bool flat, char text[MX_EXTENTS_TEXT]) {
    const bool two = flat && g->nz == 1;
    const struct mx_problem p = {.nx = g->nx, .ny = two ? 1 : g->ny, .nz = two ? g->ny : g->nz, .flat = two};
    return mx_extents_text(&p, text);
}

int mx_fields_open_source(const struct mx_run_fields *fields, struct mx_problem *p,
                          const struct mx_source *source, bool *opened, mx_why *why) {
    for (int32_t i = 0; i < fields->n; i++) {
        const struct mx_run_field *f = &fields->field[i];
        const int32_t frame = f->made.kind == MX_FRAME_INCLUDED ? p->h : 0;
        const int64_t h2 = 2 * (int64_t)frame, z2 = p->flat ? 0 : h2;
        int64_t *const ny = p->flat ? &p->nz : &p->ny, *const nz = p->flat ? &p->ny : &p->nz; /* users' */
        struct mx_grid grid = {.size = sizeof grid, .frame = frame, .flat = p->flat};
        char text[2][MX_EXTENTS_TEXT];
        if (!f->program) continue;
        if (p->nx > 0) grid.nx = p->nx + h2, grid.ny = *ny + h2, grid.nz = *nz + z2;
        snprintf(grid.dtype, sizeof grid.dtype, "%s", mx_dtype_name(f->dtype));
        snprintf(grid.field, sizeof grid.field, "%s", f->name);
        int err = source->open != NULL ? source->open(source->context, &grid, why) : 0;
        if (err != 0) return err < 0 ? err : -EIO;
        *opened = true;
        if (p->nx == 0) p->nx = grid.nx - h2, *ny = grid.ny - h2, *nz = grid.nz - z2;
        if (p->nx < 1 || *ny < 1 || *nz < 1 || (p->flat && *nz != 1) || grid.nx != p->nx + h2 ||
            grid.ny != *ny + h2 || grid.nz != *nz + z2)
            return mx_fail(why, -EINVAL,
                           "%s gives field %s as %s cells; the grid has %s, including its frame of %d cells",
                           source->name, f->name, cells_text(&grid, p->flat, text[0]),
                           cells_text(&(struct mx_grid){.nx = p->nx + h2, .ny = *ny + h2, .nz = *nz + z2},
                                      p->flat, text[1]),
                           frame);
        if (strcmp(grid.dtype, mx_dtype_name(f->dtype)) != 0)
            return mx_fail(why, -EINVAL, "%s gives field %s as %.7s; in the kernel it is %s", source->name,
                           f->name, grid.dtype, mx_dtype_name(f->dtype));
    }
    return 0;
}

void mx_fields_close(struct mx_run_fields *fields) {
    for (int32_t i = 0; i < fields->n; i++) {
        struct mx_run_field *f = &fields->field[i];
        if (f->npy.fd >= 0) close(f->npy.fd);
        f->npy.fd = -1;
    }
}

/* ------------------------------------------------------------------ planes */

/* Rows of whole cells of one field, where they go. */
static struct mx_layout rows_of(const struct mx_fields_fill *x) {
    return (struct mx_layout){.row_pitch_bytes = x->layout->row_pitch_bytes,
                              .plane_pitch_bytes = x->layout->plane_pitch_bytes};
}

/* A plane of a field that the program gives, with the frame or without. */
static int ask_program(const struct mx_fields_fill *x, const struct mx_run_field *f, int64_t z, char *at) {
    const struct mx_problem *p = x->problem;
    const bool frame = f->made.kind == MX_FRAME_INCLUDED;
    const int64_t h2 = frame ? 2 * (int64_t)p->h : 0, hy2 = frame ? 2 * (int64_t)mx_halo_y(p) : 0;
    struct mx_grid_box box = {.size = sizeof box,
                              .x1 = p->nx + h2,
                              .y1 = p->ny + hy2,
                              .z0 = z,
                              .z1 = z + 1,
                              .row_pitch_bytes = x->layout->row_pitch_bytes,
                              .plane_pitch_bytes = x->layout->plane_pitch_bytes,
                              .data = at,
                              .field = f->name};
    if (p->flat) box = mx_box_of_users(&box);
    int err = x->source->region(x->source->context, &box, x->why);
    return err > 0 ? -EIO : err;
}

struct asked {
    const struct mx_fields_fill *fill;
    const struct mx_run_field *field;
};

/* A plane as the field's file or program has it. */
static int ask_plane(void *context, int64_t z, char *at) {
    const struct asked *a = context;
    const struct mx_layout rows = rows_of(a->fill);
    const struct mx_run_field *f = a->field;
    const struct mx_problem *p = a->fill->problem;
    const int64_t h2 = f->frame ? 2 * (int64_t)p->h : 0, hy2 = f->frame ? 2 * (int64_t)mx_halo_y(p) : 0;
    if (f->program) return ask_program(a->fill, f, z, at);
    const int err = mx_npy_read(&f->npy, (f->alike & MX_ALIKE_Z) != 0 ? 0 : z, 1, at, &rows, a->fill->why);
    if (err == 0 && f->alike != 0)
        mx_field_spread(f->alike, mx_dtype_bytes(f->dtype), p->nx + h2, p->ny + hy2, rows.row_pitch_bytes,
                        at);
    return err;
}

static int read_plane(const struct mx_fields_fill *x, const struct mx_run_field *f, int64_t z, char *at) {
    const struct mx_problem *p = x->problem;
    const int64_t h = p->h, cell = mx_dtype_bytes(f->dtype), pitch = x->layout->row_pitch_bytes;
    struct asked asked = {x, f};
    const bool whole = f->program ? f->made.kind == MX_FRAME_INCLUDED : f->frame;
    if (whole) return ask_plane(&asked, z, at);
    if (f->array != MX_FIELD_OF_C || p->system->hc > 0)
        return mx_frame_fill(&f->made, p, f->dtype, pitch, z, at, ask_plane, &asked);
    for (int64_t y = 0; y < x->layout->rows; y++) /* a frame of C that nobody reads */
        memset(at + y * pitch, 0, (size_t)((p->nx + 2 * h) * cell));
    return z < h || z >= p->nz + h ? 0 : ask_plane(&asked, z - h, at + mx_halo_y(p) * pitch + h * cell);
}

/* The plane that plane z of a field copies. */
static int64_t copied_plane(const struct mx_fields_fill *x, const struct mx_run_field *f, int64_t z) {
    const struct mx_ends ends = mx_ends_of(&x->problem->sides, f->array, f->index, MX_DIM_Z);
    return mx_side_source(ends.side, x->problem->nz, x->problem->h, z);
}

int mx_fields_fill_plane(void *context, int64_t z, char *plane) {
    const struct mx_fields_fill *x = context;
    const int64_t pitch = x->layout->row_pitch_bytes;
    const int64_t asked = z;
    int err = 0;
    memset(plane, 0, (size_t)(x->layout->rows * pitch));
    for (int32_t i = 0; i < x->fields->n && err == 0; i++) {
        const struct mx_run_field *f = &x->fields->field[i],
                                  *from = f->same_as >= 0 ? &x->fields->field[f->same_as] : f;
        if (f->array != x->array || (f->array == MX_FIELD_OF_C && f->index != x->index)) continue;
        const int64_t offset =
            f->array == MX_FIELD_OF_C ? 0 : x->layout->field_offset_bytes[f->array][f->index];
        z = f->array == MX_FIELD_OF_C ? asked : copied_plane(x, f, asked);
        if (from->program || from->init == NULL) {
            err = read_plane(x, from, z, plane + offset);
        } else {
            const struct mx_plane_field one = {.dtype = f->dtype, .init = from->init};
            mx_fill_field_plane(x->problem, x->layout, &one, x->threads, z, plane + offset);
        }
    }
    return err;
}
