/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/device.h"
#include "machine/minmax.h"
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

enum { PIECE_BYTES = 1 << 20, OUTPUT_BYTES = 8 << 20, LEAST_PIECE_BYTES = 64 << 10, FRAME_GROUP = 64 };
enum { FILE_THREADS = 4, HEAD_BYTES = 128, LONGEST_ROW_BYTES = 2 << 20, MADE_AGAIN_S = 30 };
/* Steps are looked at before the run, and what a step costs are the levels that its front crosses: so many of
 * them take a tenth of a second. */
enum { MOST_WINDOWS = 16 << 20 };
static const char many_windows[] = "a sweep has too many levels to be looked at";

/* ------------------------------------------------------------------ rows of files */

static int64_t file_row_bytes(const struct mx_fuse_field *f) {
    return f->row_cells * mx_dtype_bytes(f->field.dtype);
}

/* Rows [y, y + n) of a plane of the state are rows [fy, fy + n) of plane fz of the file, or, of a formula, of
 * the grid; fy -1: of the value that a frame is made of. n is 1 where rows are copies of others. */
struct rows {
    int64_t n, fy, fz;
};

static struct rows rows_at(const struct mx_run *r, const struct mx_fuse_field *f, int64_t z, int64_t y,
                           int64_t y1) {
    const struct mx_problem *p = &r->o.problem;
    const struct mx_frame *made = &f->field.made;
    const bool included = f->field.init != NULL || made->kind == MX_FRAME_INCLUDED;
    const bool as_they_are = included && mx_sides_fixed(&r->sides, MX_DIM_Y);
    const bool inside = y >= p->h && y < p->ny + p->h;
    struct rows s = {.n = 1,
                     .fy = mx_side_source(r->sides.side[MX_DIM_Y], p->ny, p->h, y),
                     .fz = mx_side_source(r->sides.side[MX_DIM_Z], p->nz, p->h, z)};
    if (as_they_are || inside) s.n = (as_they_are ? y1 : mx_min(y1, p->ny + p->h)) - y;
    if (included) return s;
    s.fy = mx_frame_source(made, p->ny, p->h, s.fy);
    s.fz = mx_frame_source(made, p->nz, p->h, s.fz);
    if (s.fz < 0) s.fy = -1;
    return s;
}

/* Of a file: no more than one transfer has. */
static struct rows piece_at(const struct mx_run *r, const struct mx_fuse_field *f, int64_t z, int64_t y,
                            int64_t y1) {
    struct rows s = rows_at(r, f, z, y, y1);
    if (f->field.init == NULL) s.n = mx_min(s.n, mx_max(PIECE_BYTES / file_row_bytes(f), 1));
    return s;
}

static struct mx_span span_of(const struct mx_fuse_field *f, const struct rows *s) {
    const int64_t row = file_row_bytes(f), align = f->align_bytes > 1 ? f->align_bytes : 1;
    const int64_t from = f->field.npy.data_offset_bytes + (s->fz * f->rows + s->fy) * row;
    const int64_t begin = from / align * align, end = (from + s->n * row + align - 1) / align * align;
    return (struct mx_span){.offset_bytes = (uint64_t)begin, .bytes = (uint64_t)(end - begin)};
}

/* What is read of files for these rows. */
static int64_t read_bytes(const struct mx_run *r, int64_t z, int64_t y0, int64_t y1) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < r->fuse.n; i++) {
        const struct mx_fuse_field *f = &r->fuse.field[i];
        struct rows s;
        for (int64_t y = y0; y < y1 && f->field.init == NULL; y += s.n) {
            s = piece_at(r, f, z, y, y1);
            if (s.fy >= 0) bytes += (int64_t)span_of(f, &s).bytes;
        }
    }
    return bytes;
}

static int read_rows(const struct mx_fuse_field *f, const struct rows *s, char *staging, const char **out,
                     mx_why *why) {
    struct mx_span span = span_of(f, s);
    const int64_t from = f->field.npy.data_offset_bytes + (s->fz * f->rows + s->fy) * file_row_bytes(f);
    mx_ticket *ticket = NULL;
    span.dram = staging;
    int err = mx_buffer_read(f->file, &span, 1, &ticket);
    if (err == 0) err = mx_wait(ticket);
    *out = staging + (from - (int64_t)span.offset_bytes);
    return err < 0 ? mx_fail(why, err, "plane %lld of %.300s cannot be read: %s", (long long)s->fz,
                             f->field.path, strerror(-err))
                   : 0;
}

/* The x frame of a side that is not fixed is a copy. */
static void copy_x(const struct mx_run *r, enum mx_dtype dtype, char *row) {
    const struct mx_problem *p = &r->o.problem;
    struct mx_x_copy copy[2];
    if (mx_sides_fixed(&r->sides, MX_DIM_X)) return;
    const int n = mx_sides_x_copies(&r->sides, p->nx, p->h, (struct mx_cells){p->h, p->nx + p->h}, copy);
    mx_sides_copy_x(copy, n, mx_dtype_bytes(dtype), row);
}

static int fill_piece(struct mx_run *r, const struct mx_fuse_field *f, const struct rows *s, char *staging,
                      char *rows, int64_t pitch, mx_why *why) {
    const struct mx_problem *p = &r->o.problem;
    const struct mx_plane_field one = {.dtype = f->field.dtype, .init = f->field.init};
    const char *from = NULL;
    int err = f->field.init == NULL && s->fy >= 0 ? read_rows(f, s, staging, &from, why) : 0;
    for (int64_t i = 0; i < s->n && err == 0; i++) {
        char *row = rows + i * pitch;
        if (f->field.init != NULL)
            mx_fill_field_row(p, &one, s->fy + i, s->fz, row);
        else
            mx_frame_row(&f->field.made, p->nx, p->h, f->field.dtype,
                         from != NULL ? from + i * file_row_bytes(f) : NULL, row);
        copy_x(r, f->field.dtype, row);
    }
    return err;
}

static int feed(void *context, int32_t thread, int64_t z, int64_t y0, int64_t y1, char *rows, int64_t pitch,
                mx_why *why) {
    struct mx_run *r = context;
    char *staging = r->fuse.staging != NULL
                        ? (char *)mx_block_data(r->fuse.staging) + (uint64_t)thread * r->fuse.piece_bytes
                        : NULL;
    int err = 0;
    for (int32_t i = 0; i < r->fuse.n && err == 0; i++) {
        const struct mx_fuse_field *f = &r->fuse.field[i];
        struct rows s;
        for (int64_t y = y0; y < y1 && err == 0; y += s.n) {
            s = piece_at(r, f, z, y, y1);
            char *at = rows + (y - y0) * pitch + f->offset_bytes;
            err = fill_piece(r, f, &s, staging, at, pitch, why);
            if (err == 0 && f->field.init == NULL)
                err = mx_run_check_fed(r, i, z, y, y + s.n, at, pitch, why);
        }
    }
    return err;
}

/* ------------------------------------------------------------------ what can be done at once */

static bool from_program(const struct mx_run *r) {
    if (r->system == NULL) return r->source.region != NULL && r->o.input == NULL;
    for (int32_t i = 0; i < r->fields.n; i++)
        if (r->fields.field[i].array == 0 && r->fields.field[i].program) return true;
    return false;
}

/* Whatever asks for sweeps that can be had only in Buffers: NULL = nothing. */
static const char *hindrance(const struct mx_run *r) {
    if (mx_is_rank(&r->ranks)) return "each of several ranks has a part of the files";
    if (r->o.no_fuse) return "--no-fuse";
    if (r->backend->face != MX_FACE_TRANSFER) return "the backend maps its Buffers";
    if (r->accel != NULL) return "the sweeps are an accelerator's";
    if (!mx_run_resumable(r)) return "the algorithm rewrites its Buffers in place";
    if (r->tuned.shape.pairs) return "the kernel reads the old value";
    if (r->o.integrity || r->note.integrity_unit > 0) return "--integrity checks what is stored";
    if (r->request.reserve_paper) return "--reserve paper has no memory for it";
    return r->rest.nt == 0 ? "no step is left" : NULL;
}

static const char *source_hindrance(const struct mx_run *r) {
    const char *why = hindrance(r);
    if (why != NULL) return why;
    if (r->recut.asked) return "the state is in the stores of another number of ranks";
    if (r->resumed && !r->note.pending) return "the store holds the state";
    if (r->report.layout.row_bytes > LONGEST_ROW_BYTES) return "rows are too long";
    return from_program(r) ? "a program gives the grid" : NULL;
}

static const char *result_hindrance(const struct mx_run *r) {
    const char *why = hindrance(r);
    if (why != NULL) return why;
    if (r->norms.n_until > 0) return "--until may end the run before its last sweep";
    return r->snapshots.asked.every > 0 ? "snapshots are taken of the same sweep" : NULL;
}

static const char *output_hindrance(const struct mx_run *r) {
    const char *why = result_hindrance(r);
    bool some = r->sink.region != NULL;
    if (why != NULL) return why;
    if (r->sink.region != NULL && r->sink.context != &r->output) return "a program takes the result";
    for (int32_t i = 0; i < r->fields.n; i++) some |= r->field_sink[i].path != NULL;
    return some ? NULL : "there is no output";
}

static bool say(const char *why, char out[80]) {
    snprintf(out, 80, "%s", why != NULL ? why : "");
    return why == NULL;
}

/* ------------------------------------------------------------------ fields */

static void take_fields(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    const struct mx_layout *l = &r->report.layout;
    u->n = mx_field_count(&r->o.problem, 0);
    if (r->system == NULL) {
        struct mx_run_field *f = &u->field[0].field;
        snprintf(f->name, sizeof f->name, "u");
        f->dtype = r->o.problem.dtype;
        f->init = r->source.region == NULL && r->o.init != NULL ? mx_init_find(r->o.init) : NULL;
        if (r->o.input != NULL) snprintf(f->path, sizeof f->path, "%.*s", MX_FIELD_PATH - 1, r->o.input);
        f->npy = r->input.npy;
        f->made = r->made;
        f->identity = r->note.identity;
    }
    for (int32_t i = 0; i < r->fields.n; i++) {
        const struct mx_run_field *f = &r->fields.field[i];
        if (f->array == 0) u->field[f->index].field = f->same_as >= 0 ? r->fields.field[f->same_as] : *f;
    }
    for (int32_t i = 0; i < u->n; i++) {
        struct mx_fuse_field *f = &u->field[i];
        f->offset_bytes = l->field_offset_bytes[0][i];
        if (f->field.init != NULL) continue;
        f->rows = f->field.npy.shape[1];
        f->row_cells = f->field.npy.shape[2];
    }
}

static void take_outputs(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    for (int32_t i = 0; i < u->n; i++) u->field[i].output = NULL;
    if (r->system == NULL && r->sink.region != NULL)
        u->field[0].output = &r->output.output, u->field[0].npy = &r->output.npy;
    for (int32_t i = 0; i < r->fields.n; i++) {
        struct mx_field_sink *s = &r->field_sink[i];
        const struct mx_run_field *f = &r->fields.field[i];
        if (f->array != 0 || s->path == NULL) continue;
        u->field[f->index].output = &s->file.output;
        u->field[f->index].npy = &s->file.npy;
    }
}

static int pending_changed(struct mx_run *r, const char *path) {
    return mx_fail(&r->why, -EINVAL,
                   "%.300s has changed since the run began with it, and nothing was committed before that: "
                   "start again without --resume",
                   path);
}

int mx_run_check_pending(struct mx_run *r) {
    for (int32_t i = 0; i < r->fuse.n; i++) {
        struct mx_run_field *f = &r->fuse.field[i].field;
        const struct mx_input_identity then = f->identity;
        if (f->init != NULL) continue;
        int err = mx_field_begin_in_place(f, &r->why);
        if (err < 0) return err;
        if (!mx_input_same(&then, &f->identity, true) || f->identity.sample != r->note.sample[i])
            return pending_changed(r, f->path);
    }
    return 0;
}

static int open_file(struct mx_run *r, struct mx_fuse_field *f) {
    struct mx_device_facts facts = {.size = sizeof facts};
    const struct mx_device_options d = mx_run_device_options(r, f->field.path);
    int err = mx_device_open_file(f->field.npy.fd, &d, &r->why, &f->device);
    if (err == 0) err = mx_buffer_open(f->device, MX_FILE_BUFFER, &r->why, &f->file);
    if (err < 0) return err;
    mx_device_facts(f->device, &facts);
    f->align_bytes = facts.offset_align_bytes;
    return 0;
}

/* Of a run that begins, or begins once more: identities, and devices that read the files. */
static int open_files(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    int err = 0;
    for (int32_t i = 0; i < u->n && err == 0 && !u->opened; i++) {
        struct mx_run_field *f = &u->field[i].field;
        if (f->init != NULL) continue;
        if (!r->resumed) err = mx_field_begin_in_place(f, &r->why);
        if (err == 0) err = open_file(r, &u->field[i]);
    }
    u->opened = true;
    return err;
}

/* ------------------------------------------------------------------ what the schedule says */

static bool moves_state(const struct mx_step *s, enum mx_step_kind kind) {
    return s->kind == kind && s->buffer < MX_SEAMS && mx_region_rows(s->region) > 0;
}

static void count_load(struct mx_run *r, const struct mx_step *s) {
    struct mx_run_fuse *u = &r->fuse;
    const struct mx_layout *l = &r->report.layout;
    const struct mx_region g = mx_step_in_buffer(s);
    const int64_t planes = g.z1 - g.z0;
    u->saved_bytes += planes * (s->whole_planes ? l->plane_pitch_bytes : (g.y1 - g.y0) * l->row_pitch_bytes);
    for (int64_t z = g.z0; z < g.z1; z++) u->fed_bytes += read_bytes(r, z, g.y0, g.y1);
}

/* The interior of a region; whether there is any. */
static bool clip(const struct mx_problem *p, struct mx_region *g) {
    g->y0 = mx_max(g->y0, p->h), g->y1 = mx_min(g->y1, p->ny + p->h);
    g->z0 = mx_max(g->z0, p->h), g->z1 = mx_min(g->z1, p->nz + p->h);
    return mx_region_rows(*g) > 0;
}

/* Along the last sweep: the plane that comes next if all comes in order. */
struct order {
    int64_t z, interior_z, rows;
    bool file, interior;
    int64_t bytes; /* in Buffers */
};

static void follow_store(const struct mx_run *r, const struct mx_step *s, struct order *o) {
    const struct mx_problem *p = &r->o.problem;
    const struct mx_region all = mx_step_in_buffer(s);
    const bool copy = s->buffer_y != 0 || s->buffer_z != 0;
    struct mx_region g = all;
    o->bytes += (all.z1 - all.z0) * (s->whole_planes ? r->report.layout.plane_pitch_bytes
                                                     : (all.y1 - all.y0) * r->report.layout.row_pitch_bytes);
    if (!r->o.bare_output) {
        o->rows += mx_region_rows(all);
        o->file &= !copy && all.y0 == 0 && all.y1 == p->ny + 2 * p->h && all.z0 == o->z;
        o->z = all.z1;
    }
    if (copy || !clip(p, &g)) return;
    if (r->o.bare_output) o->rows += mx_region_rows(g);
    o->interior &= g.y0 == p->h && g.y1 == p->ny + p->h && g.z0 == o->interior_z;
    o->interior_z = g.z1;
}

static int open_schedule(struct mx_run *r, int64_t level, struct mx_schedule **out) {
    const int err = r->algorithm->open(&r->rest, &r->report.plan, level, 0, out);
    return err < 0 ? mx_fail(&r->why, err, "the schedule of %s could not be opened: %s",
                             r->report.plan.algorithm, strerror(-err))
                   : 0;
}

static int64_t windows(const struct mx_step *s) {
    return 1 + (s->kind == MX_STEP_ADVANCE ? s->end - s->first : 0);
}

/* 1: there is too much to look at. */
static int follow_first(struct mx_run *r) {
    struct mx_schedule *schedule;
    struct mx_step s;
    int64_t n = 0;
    int more, err = open_schedule(r, 0, &schedule);
    if (err < 0) return err;
    while ((more = schedule->ops->next(schedule, &s)) == 1 && s.kind != MX_STEP_COMMIT &&
           (n += windows(&s)) <= MOST_WINDOWS)
        if (moves_state(&s, MX_STEP_LOAD)) count_load(r, &s);
    schedule->ops->close(schedule);
    return more < 0 ? mx_fail(&r->why, more, "the schedule failed: %s", strerror(-more)) : n > MOST_WINDOWS;
}

/* 1: there is too much to look at. */
static int follow_last(struct mx_run *r, struct order *o) {
    struct mx_schedule *schedule;
    struct mx_step s;
    int64_t n = 0;
    int more, err = open_schedule(r, mx_sweep_last(&r->rest, r->tuned.shape.max_levels), &schedule);
    if (err < 0) return err;
    while ((more = schedule->ops->next(schedule, &s)) == 1 && (n += windows(&s)) <= MOST_WINDOWS)
        if (moves_state(&s, MX_STEP_STORE)) follow_store(r, &s, o);
    schedule->ops->close(schedule);
    return more < 0 ? mx_fail(&r->why, more, "the schedule failed: %s", strerror(-more)) : n > MOST_WINDOWS;
}

/* ------------------------------------------------------------------ the last sweep */

/* Where row y of plane z is in the output; false: it is not. */
static bool place_in_file(const struct mx_run *r, int64_t z, int64_t y, int64_t *row) {
    const struct mx_problem *p = &r->o.problem;
    const bool inside = z >= p->h && z < p->nz + p->h && y >= p->h && y < p->ny + p->h;
    if (!r->o.bare_output) return *row = z * (p->ny + 2 * p->h) + y, true;
    *row = (z - p->h) * p->ny + y - p->h;
    return inside;
}

static void put_row(struct mx_run *r, int64_t z, int64_t y, const char *row) {
    const struct mx_problem *p = &r->o.problem;
    int64_t number;
    if (!place_in_file(r, z, y, &number)) return;
    for (int32_t i = 0; i < r->fuse.n; i++) {
        const struct mx_fuse_field *f = &r->fuse.field[i];
        const int64_t e = mx_dtype_bytes(f->field.dtype);
        const int64_t bytes = (p->nx + (r->o.bare_output ? 0 : 2 * (int64_t)p->h)) * e;
        if (f->writer == NULL) continue;
        mx_writer_put(f->writer, (uint64_t)(f->npy->data_offset_bytes + number * bytes),
                      row + f->offset_bytes + (r->o.bare_output ? p->h * e : 0), (uint64_t)bytes);
    }
}

static void hash_row(const struct mx_run *r, const char *row) {
    const struct mx_problem *p = &r->o.problem;
    for (int32_t i = 0; i < r->fuse.n; i++) {
        const struct mx_fuse_field *f = &r->fuse.field[i];
        const int64_t e = mx_dtype_bytes(f->field.dtype);
        XXH3_64bits_update(r->fuse.hash, row + f->offset_bytes + p->h * e, (size_t)(p->nx * e));
    }
}

static const char *row_of(const struct mx_taken_box *box, int64_t y, int64_t z) {
    const struct mx_view *v = &box->view;
    return v->base[box->array] + (z + v->z_offset) % v->slots[box->array] * v->plane_pitch_bytes +
           (y + v->y_offset) * v->row_pitch_bytes;
}

static int take_box(void *context, const struct mx_taken_box *box, mx_why *why) {
    struct mx_run *r = context;
    const struct mx_problem *p = &r->o.problem;
    const struct mx_region g = box->region;
    const bool copy = box->buffer_y != 0 || box->buffer_z != 0;
    (void)why;
    for (int64_t z = g.z0; z < g.z1; z++)
        for (int64_t y = g.y0; y < g.y1; y++) {
            const char *row = row_of(box, y, z);
            const bool inside = z >= p->h && z < p->nz + p->h && y >= p->h && y < p->ny + p->h;
            if (r->fuse.checksum && inside && !copy) hash_row(r, row);
            if (r->fuse.output && !(copy && r->o.bare_output))
                put_row(r, z + box->buffer_z, y + box->buffer_y, row);
        }
    return 0;
}

static int take_whole(void *context, int64_t step, mx_why *why) {
    struct mx_run *r = context;
    (void)step, (void)why;
    r->fuse.whole = true;
    return 0;
}

/* ------------------------------------------------------------------ frames that no sweep stores */

/* Rows of a plane that are frame: all, or h at both ends of y. */
static int64_t frame_rows(const struct mx_problem *p, int64_t z) {
    return z < p->h || z >= p->nz + p->h ? p->ny + 2 * p->h : 2 * p->h;
}
static int64_t all_frame_rows(const struct mx_problem *p) {
    return 2 * p->h * (p->ny + 2 * p->h) + p->nz * 2 * p->h;
}

/* Rows of the frame of a few planes, in DRAM one after the other, and where they are in a Buffer. */
struct frame_group {
    mx_block *block;
    struct mx_span span[2 * FRAME_GROUP];
    size_t n;
    int64_t z[2 * FRAME_GROUP], y[2 * FRAME_GROUP], rows[2 * FRAME_GROUP];
    int64_t used, capacity; /* rows of the block */
};

static bool add_rows(const struct mx_run *r, struct frame_group *g, int64_t z, int64_t y, int64_t n) {
    const struct mx_layout *l = &r->report.layout;
    if (g->n == 2 * FRAME_GROUP || g->used + n > g->capacity) return false;
    g->z[g->n] = z, g->y[g->n] = y, g->rows[g->n] = n;
    g->span[g->n++] = (struct mx_span){
        .offset_bytes = (uint64_t)(z * l->plane_pitch_bytes + y * l->row_pitch_bytes),
        .bytes = (uint64_t)(n * l->row_pitch_bytes),
        .dram = g->block != NULL ? (char *)mx_block_data(g->block) + g->used * l->row_pitch_bytes : NULL};
    g->used += n;
    return true;
}

/* What is done with a group of them. */
typedef int frame_use(struct mx_run *r, const struct frame_group *g);

static int move_group(struct mx_buffer *buffer, const struct frame_group *g, bool write) {
    mx_ticket *ticket = NULL;
    int err = (write ? mx_buffer_write : mx_buffer_read)(buffer, g->span, g->n, &ticket);
    return err == 0 ? mx_wait(ticket) : err;
}

static int fill_group(struct mx_run *r, const struct frame_group *g) {
    int err = 0;
    for (size_t i = 0; i < g->n && err == 0; i++)
        err = feed(r, 0, g->z[i], g->y[i], g->y[i] + g->rows[i], g->span[i].dram,
                   r->report.layout.row_pitch_bytes, &r->why);
    for (int32_t i = 0; i < r->n_buffers && err == 0; i++)
        if ((err = move_group(r->buffer[i], g, true)) < 0)
            mx_fail(&r->why, err, "writing the frame of the grid failed: %s", strerror(-err));
    return err;
}

static int output_group(struct mx_run *r, const struct frame_group *g) {
    const int err = move_group(r->buffer[r->result], g, false);
    for (size_t i = 0; i < g->n && err == 0; i++)
        for (int64_t y = 0; y < g->rows[i]; y++)
            put_row(r, g->z[i], g->y[i] + y, (char *)g->span[i].dram + y * r->report.layout.row_pitch_bytes);
    return err < 0 ? mx_fail(&r->why, err, "reading the frame of the result failed: %s", strerror(-err)) : 0;
}

static int use_group(struct mx_run *r, struct frame_group *g, frame_use *use) {
    int err = mx_run_stopped(r);
    if (err == 0 && g->n > 0) err = use(r, g);
    g->n = 0, g->used = 0;
    return err;
}

/* Before there is any memory: what will be read. */
static int count_group(struct mx_run *r, const struct frame_group *g) {
    for (size_t i = 0; i < g->n; i++)
        r->fuse.init_read_bytes += read_bytes(r, g->z[i], g->y[i], g->y[i] + g->rows[i]);
    return 0;
}

static int use_frames(struct mx_run *r, frame_use *use) {
    const struct mx_problem *p = &r->o.problem;
    const int64_t pitch = r->report.layout.row_pitch_bytes, all = p->ny + 2 * p->h;
    struct frame_group *g = calloc(1, sizeof *g);
    if (g == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the frame of the grid");
    g->capacity = mx_max(PIECE_BYTES / pitch, p->h);
    const struct mx_block_options o = {.budget = r->budget};
    int err =
        use != count_group ? mx_block_create(&o, (uint64_t)(g->capacity * pitch), &r->why, &g->block) : 0;
    for (int64_t z = 0; z < p->nz + 2 * p->h && err == 0; z++) {
        const int64_t end = frame_rows(p, z) == all ? all : p->h;
        for (int64_t y = 0, n; y < all && err == 0; y += n) {
            if (y == end) y = p->ny + p->h; /* of planes inside */
            n = mx_min((y < end ? end : all) - y, g->capacity);
            if (!add_rows(r, g, z, y, n)) {
                err = use_group(r, g, use);
                add_rows(r, g, z, y, n);
            }
        }
    }
    if (err == 0) err = use_group(r, g, use);
    mx_block_free(g->block);
    free(g);
    return err;
}

int mx_run_fuse_frames(struct mx_run *r) { return use_frames(r, fill_group); }

/* ------------------------------------------------------------------ decision */

static int decide_source(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    int err = open_files(r);
    if (err == 0) err = follow_first(r);
    if (err > 0) {
        u->source = say(many_windows, u->no_source);
        u->saved_bytes = u->fed_bytes = 0;
        return 0;
    }
    if (err < 0 || !r->tuned.shape.init_both) return err;
    u->init_bytes = r->n_buffers * all_frame_rows(&r->o.problem) * r->report.layout.row_pitch_bytes;
    return use_frames(r, count_group);
}

/* No store is kept, nobody reads the result from a Buffer, and making the last sweep again, should the output
 * not be had in the end, costs no more than what may be lost between two commits. */
static bool leaves_nothing_else(const struct mx_run *r) {
    struct stat st;
    return mx_run_seconds_a_sweep(r) < MADE_AGAIN_S && !r->o.verify && !r->o.keep &&
           r->o.probes_out == NULL && r->o.path != NULL && stat(r->o.path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int decide_result(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    const struct mx_problem *p = &r->o.problem;
    const int64_t h2 = 2 * (int64_t)p->h, rows = (p->ny + h2) * (p->nz + h2);
    struct order o = {.interior_z = p->h, .file = true, .interior = true};
    int err = follow_last(r, &o);
    if (err < 0) return err;
    if (err > 0) {
        u->checksum = u->checksum && say(many_windows, u->no_checksum);
        u->output = u->output && say(many_windows, u->no_output);
        return 0;
    }
    o.interior &= o.interior_z == p->nz + p->h;
    if (u->checksum) u->checksum = say(o.interior ? NULL : "rows are not stored in order", u->no_checksum);
    u->in_order = r->o.bare_output ? o.interior : o.file && o.rows == rows;
    u->add_frame = !r->o.bare_output && o.rows < rows;
    u->output_bytes = u->frame_read_bytes = 0;
    u->only = u->output && u->checksum && !u->add_frame && leaves_nothing_else(r);
    u->unstored_bytes = u->only ? o.bytes : 0;
    if (u->output && u->add_frame) {
        u->frame_read_bytes = all_frame_rows(p) * r->report.layout.row_pitch_bytes;
        o.rows += all_frame_rows(p);
    }
    for (int32_t i = 0; i < u->n && u->output; i++)
        if (u->field[i].output != NULL)
            u->output_bytes += HEAD_BYTES + o.rows * (p->nx + (r->o.bare_output ? 0 : h2)) *
                                                mx_dtype_bytes(u->field[i].field.dtype);
    return 0;
}

/* Two Buffers take turns, and the first sweep is said to read the first of them and writes the second. */
static int32_t unused_buffers(const struct mx_run *r) {
    const int64_t sweeps = mx_sweep_count(&r->rest, r->report.plan.bt);
    return sweeps == 1 ? 2 : sweeps == 2 ? 1 : 0;
}

int mx_run_decide_fuse(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    const bool again = r->resumed && r->note.pending;
    u->source = say(source_hindrance(r), u->no_source);
    u->checksum = say(result_hindrance(r), u->no_checksum);
    u->output = say(output_hindrance(r), u->no_output);
    u->only = false;
    u->unstored_bytes = u->saved_bytes = u->fed_bytes = u->init_bytes = u->init_read_bytes = u->output_bytes =
        0;
    if (!u->opened) take_fields(r);
    int err = again && !u->opened ? mx_run_check_pending(r) : 0;
    take_outputs(r);
    if (err == 0 && u->source) err = decide_source(r);
    if (err == 0 && (u->checksum || u->output)) err = decide_result(r);
    const bool empty = u->source && u->only && r->n_buffers == 2 && !r->tuned.shape.init_both;
    u->unused_buffers = empty ? unused_buffers(r) : 0;
    return err;
}

/* ------------------------------------------------------------------ begin */

static int open_staging(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    mx_device *device = NULL;
    for (int32_t i = 0; i < u->n; i++) {
        const struct mx_fuse_field *f = &u->field[i];
        if (f->device == NULL) continue;
        const int64_t row = file_row_bytes(f), align = mx_max(f->align_bytes, 4096);
        const int64_t most = mx_max(PIECE_BYTES / row, 1) * row + 2 * align;
        u->piece_bytes = (uint64_t)mx_max((int64_t)u->piece_bytes, (most + 4095) / 4096 * 4096);
        device = f->device;
    }
    u->feeding = (struct mx_feeding){.rows = feed, .context = r, .threads = FILE_THREADS};
    if (device == NULL) {
        const int32_t threads = r->report.plan.threads;
        u->feeding.threads = threads < 1 ? 1 : threads < MX_FUSE_THREADS ? threads : MX_FUSE_THREADS;
        return 0;
    }
    const struct mx_block_options o = {.budget = r->budget, .device = device};
    return mx_block_create(&o, FILE_THREADS * u->piece_bytes, &r->why, &u->staging);
}

/* The header was written when the file was opened; a file that bypasses the page cache is written anew from
 * its first byte on. */
static int put_head(struct mx_run *r, const struct mx_fuse_field *f) {
    char head[HEAD_BYTES];
    const int err = mx_read_all(f->output->fd, head, sizeof head, 0);
    if (err < 0)
        return mx_fail(&r->why, err, "the head of %.300s cannot be read: %s", f->output->path,
                       strerror(-err));
    mx_writer_put(f->writer, 0, head, sizeof head);
    return 0;
}

static int open_writers(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    int32_t n = 0;
    for (int32_t i = 0; i < u->n; i++) n += u->field[i].output != NULL;
    const int64_t units = OUTPUT_BYTES / MX_WRITER_PIECES / (n > 0 ? n : 1) / LEAST_PIECE_BYTES;
    int err = 0;
    for (int32_t i = 0; i < u->n && err == 0; i++) {
        struct mx_fuse_field *f = &u->field[i];
        if (f->output == NULL) continue;
        err = mx_writer_open(f->output->fd, u->in_order && !f->output->direct,
                             (uint64_t)mx_max(units, 1) * LEAST_PIECE_BYTES, r->budget, &r->why, &f->writer);
        if (err == 0) err = put_head(r, f);
    }
    return err;
}

int mx_run_begin_fuse(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    int err = u->source ? open_staging(r) : 0;
    u->unfinished = u->source;
    if (err == 0 && u->checksum) {
        u->hash = XXH3_createState();
        if (u->hash == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the checksum");
        XXH3_64bits_reset(u->hash);
    }
    if (err == 0 && u->output) err = open_writers(r);
    u->taking = (struct mx_taking){.every = r->o.problem.nt,
                                   .stride = 1,
                                   .from_stores = true,
                                   .box = take_box,
                                   .only = u->only,
                                   .whole = take_whole,
                                   .context = r};
    return err;
}

/* ------------------------------------------------------------------ end */

int mx_run_fuse_unchanged(struct mx_run *r, mx_why *why) {
    int err = 0;
    for (int32_t i = 0; i < r->fuse.n && err == 0 && r->fuse.unfinished; i++) {
        struct mx_run_field *f = &r->fuse.field[i].field;
        if (f->init != NULL) continue;
        err = mx_field_unchanged(f, why);
        if (err == -ESTALE)
            mx_fail(why, err,
                    "%.300s has changed while it was read, and nothing was committed before that: start "
                    "again, or with --no-fuse, which reads it before the work",
                    f->path);
    }
    return err;
}

uint64_t mx_run_fuse_checksum(const struct mx_run *r) { return XXH3_64bits_digest(r->fuse.hash); }

static int end_output(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    int err = u->add_frame ? use_frames(r, output_group) : 0;
    for (int32_t i = 0; i < u->n; i++) {
        struct mx_fuse_field *f = &u->field[i];
        if (f->writer == NULL) continue;
        u->written_bytes += (int64_t)mx_writer_bytes(f->writer);
        const int closed = mx_writer_close(f->writer, err == 0);
        f->writer = NULL;
        if (err == 0 && closed < 0)
            err = mx_fail(&r->why, closed, "the result cannot be written to %.300s: %s", f->output->path,
                          strerror(-closed));
    }
    return err;
}

int mx_run_end_fuse(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    mx_block_free(u->staging);
    u->staging = NULL;
    if (!u->output || !u->whole) return 0;
    const int err = end_output(r);
    if (err == 0 || err == -EINTR) return err;
    u->output_err = err;
    u->output_why = r->why;
    r->why.text[0] = 0;
    return 0;
}

void mx_run_fuse_counters(const struct mx_run *r, struct mx_counters *out) {
    for (int32_t i = 0; i < r->fuse.n; i++) {
        struct mx_counters c = {.size = sizeof c};
        if (r->fuse.field[i].device == NULL) continue;
        mx_device_counters(r->fuse.field[i].device, &c);
        out->read_bytes += c.read_bytes;
        out->read_requests += c.read_requests;
        out->retries += c.retries;
        out->short_transfers += c.short_transfers;
        if (c.read_ns > out->read_ns) out->read_ns = c.read_ns;
        out->peak_in_flight += c.peak_in_flight;
    }
}

void mx_run_drop_fuse(struct mx_run *r) {
    for (int32_t i = 0; i < r->fuse.n; i++) {
        mx_writer_close(r->fuse.field[i].writer, false);
        r->fuse.field[i].writer = NULL;
    }
}

void mx_run_release_fuse(struct mx_run *r) {
    struct mx_run_fuse *u = &r->fuse;
    mx_run_drop_fuse(r);
    mx_block_free(u->staging);
    u->staging = NULL;
    for (int32_t i = 0; i < u->n; i++) {
        struct mx_fuse_field *f = &u->field[i];
        mx_buffer_close(f->file);
        mx_device_close(f->device);
        f->file = NULL, f->device = NULL;
    }
    if (u->hash != NULL) XXH3_freeState(u->hash);
    u->hash = NULL;
}
