/* SPDX-License-Identifier: BSD-3-Clause */
/* frames.c - frames that no sweep stores: before the first sweep into Buffers, after the last into files. */
#include "run/work/fuse_private.h"

#include "machine/minmax.h"

#include <stdlib.h>
#include <string.h>

enum { FRAME_GROUP = 64 };

/* Rows of a plane that are frame: all, or h at both ends of y. */
static int64_t frame_rows(const struct mx_problem *p, int64_t z) {
    return z < p->h || z >= p->nz + p->h ? p->ny + 2 * mx_halo_y(p) : 2 * mx_halo_y(p);
}
int64_t mx_fuse_frame_rows(const struct mx_problem *p) {
    const int64_t planes = mx_fuse_end_own(p) - mx_fuse_first_own(p) - p->nz;
    return planes * (p->ny + 2 * mx_halo_y(p)) + p->nz * 2 * mx_halo_y(p);
}

int64_t mx_fuse_frame_rows_out(const struct mx_run *r) {
    const struct mx_problem *p = &r->o.problem;
    int64_t rows = 0;
    for (int64_t z = mx_fuse_first_own(p); z < mx_fuse_end_own(p); z++)
        rows += frame_rows(p, z) * mx_fuse_places(r, z);
    return rows;
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
        err = mx_run_feed(r, 0, g->z[i], g->y[i], g->y[i] + g->rows[i], g->span[i].dram,
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
            mx_fuse_put_row(r, g->z[i], g->y[i] + y,
                            (char *)g->span[i].dram + y * r->report.layout.row_pitch_bytes);
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
        r->fuse.init_read_bytes += mx_fuse_read_bytes(r, g->z[i], g->y[i], g->y[i] + g->rows[i]);
    return 0;
}

static int use_frames(struct mx_run *r, frame_use *use) {
    const struct mx_problem *p = &r->o.problem;
    const int64_t pitch = r->report.layout.row_pitch_bytes, all = p->ny + 2 * mx_halo_y(p);
    struct frame_group *g = calloc(1, sizeof *g);
    if (g == NULL) return mx_fail(&r->why, -ENOMEM, "no memory for the frame of the grid");
    g->capacity = mx_max(MX_FUSE_PIECE_BYTES / pitch, p->h);
    const struct mx_block_options o = {.budget = r->budget};
    int err =
        use != count_group ? mx_block_create(&o, (uint64_t)(g->capacity * pitch), &r->why, &g->block) : 0;
    for (int64_t z = mx_fuse_first_own(p); z < mx_fuse_end_own(p) && err == 0; z++) {
        const int64_t end = frame_rows(p, z) == all ? all : mx_halo_y(p);
        for (int64_t y = 0, n; y < all && err == 0; y += n) {
            if (y == end) y = p->ny + mx_halo_y(p); /* of planes inside */
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

int mx_fuse_count_frames(struct mx_run *r) { return use_frames(r, count_group); }

int mx_fuse_output_frames(struct mx_run *r) { return use_frames(r, output_group); }
