/* SPDX-License-Identifier: BSD-3-Clause */
/* edit.c - the state that a resumed run goes on from, changed by a program or by files (memext.h, mx_edit).
 *
 *     Buffer of the state --read--> plane --program, files--> plane --write--> another Buffer --> commit
 *
 * Until the commit the state is what it was, and after it what it became. Frames that are images follow the
 * interior: those in x and y with each plane, those in z when all planes are written.
 */
#include "run/work/work.h"

#include "machine/minmax.h"

#include <string.h>

/* One pass over both arrays of a state, or over the one that there is. */
struct pass {
    struct mx_run *r;
    int parts;
    mx_buffer *to[2];
    struct mx_plane_stream *in[2], *out[2];
    struct mx_nonfinite found;
};

static int parts_of(const struct mx_run *r) { return r->tuned.shape.pairs ? 2 : 1; }

int32_t mx_run_edit_target(const struct mx_run *r) {
    const bool fresh = !mx_run_has_store(r) || r->note.pending;
    return ((fresh ? 0 : r->note.buffer) + r->edit.state) % r->n_buffers;
}

/* ------------------------------------------------------------------ one plane */

/* The fields of a plane, for those that change it: box and array. Planes of another rank have none. */
static int32_t boxes_of(struct mx_run *r, int64_t z, char *const plane[2], struct mx_grid_box *box) {
    const struct mx_problem *p = &r->o.problem;
    const struct mx_layout *l = &r->report.layout;
    const bool frame = mx_run_edits_frame(r), leapfrog = mx_form(p) == MX_LEAPFROG;
    const int64_t h = p->h, less = frame ? 0 : h, less_y = frame ? 0 : mx_halo_y(p),
                  of_all = z + p->first_plane - less;
    const int odd = (int)(mx_levels_of(p, r->first_time) & 1);
    int32_t n = 0;
    if ((!frame || mx_has_neighbour(p, 0)) && z < h) return 0;
    if ((!frame || mx_has_neighbour(p, 1)) && z >= p->nz + h) return 0;
    for (int32_t i = 0; i < r->fields.n || (i == 0 && r->system == NULL); i++) {
        const struct mx_run_field *f = r->system != NULL ? &r->fields.field[i] : NULL;
        if (f != NULL && f->array == MX_FIELD_OF_C) continue;
        const int array = f == NULL ? 0 : leapfrog ? f->array ^ odd : f->array;
        const int32_t index = f != NULL ? f->index : 0;
        const int64_t cell = mx_dtype_bytes(f != NULL ? f->dtype : p->dtype);
        box[n] = (struct mx_grid_box){.size = sizeof *box,
                                      .x1 = p->nx + 2 * (h - less),
                                      .y1 = p->ny + 2 * (mx_halo_y(p) - less_y),
                                      .z0 = of_all,
                                      .z1 = of_all + 1,
                                      .row_pitch_bytes = l->row_pitch_bytes,
                                      .plane_pitch_bytes = l->plane_pitch_bytes,
                                      .data = plane[array] + l->field_offset_bytes[array][index] +
                                              less_y * l->row_pitch_bytes + less * cell,
                                      .field = f != NULL ? f->name : "u"};
        if (p->flat) box[n] = mx_box_of_users(&box[n]);
        n++;
    }
    return n;
}

/* The cells of a file into the field's box, of which a file without a frame has the interior. */
static int read_file(struct mx_run *r, const struct mx_run_field *f, const struct mx_grid_box *box) {
    const struct mx_problem *p = &r->whole;
    const struct mx_layout rows = {.row_pitch_bytes = box->row_pitch_bytes,
                                   .plane_pitch_bytes = box->plane_pitch_bytes};
    const bool inside = mx_run_edits_frame(r) && !f->frame;
    const int64_t h = inside ? p->h : 0, hy = inside ? mx_halo_y(p) : 0,
                  z = (p->flat ? box->y0 : box->z0) - h;
    char *at = (char *)box->data + hy * box->row_pitch_bytes + h * mx_dtype_bytes(f->dtype);
    return h > 0 && (z < 0 || z >= p->nz) ? 0 : mx_npy_read(&f->npy, z, 1, at, &rows, &r->why);
}

static int change_plane(struct mx_run *r, int64_t z, char *const plane[2]) {
    struct mx_grid_box box[MX_FIELDS_MOST];
    const int32_t n = boxes_of(r, z, plane, box);
    const struct mx_edit *e = &r->edit.program;
    int err = 0;
    for (int32_t i = 0; i < n && err == 0 && r->edit.files != NULL; i++)
        for (int32_t k = 0; k < r->edit.files->n && err == 0; k++) {
            const struct mx_run_field *f = &r->edit.files->field[k];
            if (f->npy.fd >= 0 && strcmp(f->name, box[i].field) == 0) err = read_file(r, f, &box[i]);
        }
    if (err == 0 && n > 0 && e->planes != NULL) err = e->planes(e->context, box, n, &r->why);
    return err > 0 ? -EIO : err;
}

static int edit_plane(struct pass *s, int64_t z) {
    struct mx_run *r = s->r;
    const struct mx_problem *p = &r->o.problem;
    const struct mx_layout *l = &r->report.layout;
    char *from, *plane[2] = {NULL, NULL};
    int err = mx_run_stopped(r);
    for (int i = 0; i < s->parts && err == 0; i++) {
        err = mx_plane_stream_next(s->in[i], &from);
        if (err == -EBADMSG)
            return mx_field_damaged(mx_run_buffer(r, r->note.buffer, i), l, "the state", &r->why);
        if (err == 1) err = mx_plane_stream_next(s->out[i], &plane[i]);
        if (err == 1) memcpy(plane[i], from, (size_t)l->plane_pitch_bytes);
        err = err == 1 ? 0 : err < 0 ? err : -EIO;
    }
    if (err == 0) err = change_plane(r, z, plane);
    for (int i = 0; i < s->parts && err == 0; i++) {
        if (!mx_sides_all_fixed(&p->sides)) mx_sides_plane(&p->sides, p, l, i, z, plane[i]);
        const struct mx_state_rows rows = mx_rows_of_plane(p, l, i, z, plane[i]);
        mx_nonfinite_rows(&rows, &s->found);
    }
    if (err == 0) mx_run_progress_to(r, (z + 1) * s->parts * l->plane_pitch_bytes);
    return err;
}

/* ------------------------------------------------------------------ planes of the frame that are images */

/* The plane that plane z of a field copies. */
static int64_t source_of(const struct mx_problem *p, int part, int32_t field, int64_t z) {
    return mx_side_source(mx_ends_of(&p->sides, part, field, MX_DIM_Z).side, p->nz, p->h, z);
}

/* Planes that are read to make plane z: itself, and what its fields copy. 0 = it is none. */
static int64_t image_reads(const struct mx_problem *p, int part, int64_t z) {
    int64_t reads = 0, last = z;
    for (int32_t f = 0; f < mx_field_count(p, part); f++) {
        const int64_t from = source_of(p, part, f, z);
        if (from == z || from == last) continue;
        reads += reads == 0 ? 2 : 1;
        last = from;
    }
    return reads;
}

static int move_plane(const struct pass *s, int part, int64_t z, char *plane, bool write) {
    const int64_t pitch = s->r->report.layout.plane_pitch_bytes;
    const struct mx_span span = {(uint64_t)(z * pitch), (uint64_t)pitch, plane};
    mx_ticket *ticket = NULL;
    const int err = (write ? mx_buffer_write : mx_buffer_read)(s->to[part], &span, 1, &ticket);
    return err == 0 ? mx_wait(ticket) : err;
}

static int make_image(const struct pass *s, int part, int64_t z, char *plane, char *other) {
    const struct mx_problem *p = &s->r->o.problem;
    const struct mx_layout *l = &s->r->report.layout;
    int64_t last = z;
    int err = move_plane(s, part, z, plane, false);
    for (int32_t f = 0; f < mx_field_count(p, part) && err == 0; f++) {
        const int64_t from = source_of(p, part, f, z), at = l->field_offset_bytes[part][f],
                      bytes = (p->nx + 2 * p->h) * mx_dtype_bytes(mx_field_dtype(p, part, f));
        if (from == z) continue;
        if (from != last) err = move_plane(s, part, from, other, false);
        last = from;
        for (int64_t y = 0; y < l->rows && err == 0; y++)
            memcpy(plane + y * l->row_pitch_bytes + at, other + y * l->row_pitch_bytes + at, (size_t)bytes);
    }
    if (err < 0) return err;
    mx_sides_plane(&p->sides, p, l, part, z, plane);
    return move_plane(s, part, z, plane, true);
}

static int make_images(const struct pass *s) {
    const struct mx_problem *p = &s->r->o.problem;
    const struct mx_block_options o = {.size = sizeof o, .budget = s->r->budget, .device = s->r->device};
    const uint64_t pitch = (uint64_t)s->r->report.layout.plane_pitch_bytes;
    mx_block *block = NULL;
    int err = 0;
    for (int part = 0; part < s->parts && err == 0; part++)
        for (int64_t i = 0; i < 2 * p->h && err == 0; i++) {
            const int64_t z = i < p->h ? i : p->nz + i;
            if (image_reads(p, part, z) == 0) continue;
            if (block == NULL) err = mx_block_create(&o, 2 * pitch, &s->r->why, &block);
            char *plane = err == 0 ? mx_block_data(block) : NULL;
            if (err == 0 && (err = make_image(s, part, z, plane, plane + pitch)) < 0)
                mx_fail(&s->r->why, err, "the frame of the changed state cannot be made: %s", strerror(-err));
        }
    mx_block_free(block);
    return err;
}

/* ------------------------------------------------------------------ all of it */

static int64_t bytes_of_images(const struct mx_run *r, bool write) {
    const struct mx_problem *p = &r->o.problem;
    int64_t planes = 0;
    for (int part = 0; part < parts_of(r); part++)
        for (int64_t i = 0; i < 2 * p->h; i++) {
            const int64_t reads = image_reads(p, part, i < p->h ? i : p->nz + i);
            planes += write ? reads > 0 : reads;
        }
    return planes * r->report.layout.plane_pitch_bytes;
}

static int64_t bytes_of(const struct mx_run *r, bool write) {
    const int64_t state = parts_of(r) * r->report.layout.buffer_bytes;
    int64_t fixed = 0;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem); i++)
        if (write && (r->edit.fixed >> i & 1) != 0) fixed += r->report.layout.fixed[i].bytes;
    return fixed + (r->edit.state ? state + bytes_of_images(r, write) : 0);
}
int64_t mx_run_edit_read_bytes(const struct mx_run *r) { return bytes_of(r, false); }
int64_t mx_run_edit_write_bytes(const struct mx_run *r) { return bytes_of(r, true); }

/* Each stream has two halves of one plane at least. */
static int64_t least_bytes(const struct mx_run *r) {
    return 2 * 2 * parts_of(r) * r->report.layout.plane_pitch_bytes;
}

int mx_run_check_edit_dram(struct mx_run *r) {
    const uint64_t least = (uint64_t)least_bytes(r), there = r->report.dram_budget_bytes;
    if (!r->edit.state || least <= there) return 0;
    return mx_fail(&r->why, -ENOMEM,
                   "to change the state, the run must hold %d %ss of %.1f MiB each in DRAM, and %.1f MiB are "
                   "free: raise --dram by %.1f MiB",
                   4 * parts_of(r), mx_plane_word(r->o.problem.flat),
                   (double)r->report.layout.plane_pitch_bytes / 1048576, (double)there / 1048576,
                   (double)(least - there) / 1048576 + 0.1);
}

/* What is free, in halves of all streams. */
static int64_t half_bytes(const struct pass *s) {
    struct mx_budget_facts facts = {.size = sizeof facts};
    mx_budget_facts(s->r->budget, &facts);
    const uint64_t taken = facts.reserve_bytes + facts.used_bytes,
                   left = facts.limit_bytes > taken ? facts.limit_bytes - taken : 0;
    return (int64_t)mx_min((int64_t)(left / (uint64_t)(4 * s->parts)), (int64_t)MX_PLANE_GROUP_BYTES);
}

static int open_streams(struct pass *s) {
    struct mx_run *r = s->r;
    const struct mx_layout *l = &r->report.layout;
    const int64_t half = half_bytes(s);
    int err = 0;
    for (int i = 0; i < s->parts && err == 0; i++) {
        mx_buffer *from = mx_run_buffer(r, r->note.buffer, i);
        err = mx_plane_stream_open_small(from, l, r->budget, half, false, &r->why, &s->in[i]);
        if (err == 0)
            err = mx_plane_stream_open_small(s->to[i], l, r->budget, half, true, &r->why, &s->out[i]);
    }
    return err;
}

static int go_over(struct pass *s) {
    const struct mx_layout *l = &s->r->report.layout;
    mx_run_begin_phase(s->r, "edit", "B", s->parts * l->buffer_bytes);
    int err = open_streams(s);
    for (int64_t z = 0; z < l->planes && err == 0; z++) err = edit_plane(s, z);
    for (int i = 0; i < s->parts; i++) {
        err = mx_plane_stream_close(s->in[i], err);
        err = mx_plane_stream_close(s->out[i], err);
    }
    if (err == 0) err = make_images(s);
    if (err < 0 && err != -EINTR && s->r->why.text[0] == 0)
        mx_fail(&s->r->why, err, "changing the state failed: %s", strerror(-err));
    return err;
}

static int change_state(struct mx_run *r, int32_t target) {
    struct pass s = {.r = r, .parts = parts_of(r)};
    for (int i = 0; i < s.parts; i++) s.to[i] = mx_run_buffer(r, target, i);
    r->why.text[0] = 0;
    r->note.framed &= ~(UINT32_C(1) << target);
    int err = go_over(&s);
    if (err == 0) err = mx_run_check_edited(r, &s.found);
    if (err == 0 && mx_run_edits_frame(r)) r->note.framed = 0;
    return err;
}

/* Fields of C, into the other of their two Buffers, which the run reads from here on. */
static int change_fixed(struct mx_run *r, int32_t i) {
    struct mx_fields_fill from = mx_run_fill(r, MX_FIELD_OF_C, i, NULL);
    from.fields = r->edit.files;
    from.source = &r->edit.values;
    int err = r->note.integrity_unit > 0 ? mx_run_check_fixed(r, r->edit.buffer[i], i, false) : 0;
    if (err == 0) err = mx_run_write_fixed(r, i, r->edit.buffer[i], &from);
    if (err < 0) return err;
    mx_buffer_close(r->fixed[i]);
    r->fixed[i] = r->edit.buffer[i];
    r->edit.buffer[i] = NULL;
    r->fixed_saved = false;
    return 0;
}

int mx_run_edit_state(struct mx_run *r) {
    const int32_t target = mx_run_edit_target(r);
    int err = 0;
    if (!mx_run_edits(r)) return 0;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem) && err == 0; i++)
        if ((r->edit.fixed >> i & 1) != 0) err = change_fixed(r, i);
    if (err == 0 && r->edit.state) err = change_state(r, target);
    if (err == 0 && (err = mx_run_commit_edit(r, target)) < 0) mx_run_fail_commit(r, "first", err);
    r->edit.done = err == 0;
    return err;
}
