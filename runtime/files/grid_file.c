/* SPDX-License-Identifier: BSD-3-Clause */
#include "files/grid_file.h"

#include "grid/array.h"

#include <errno.h>
#include <fcntl.h>
#include <memext/backend.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The planes of a box, which are whole ones: all that a run asks for. */
static struct mx_layout pitches(const struct mx_grid_box *box) {
    return (struct mx_layout){.row_pitch_bytes = box->row_pitch_bytes,
                              .plane_pitch_bytes = box->plane_pitch_bytes};
}

/* ---- source */

/* Raw cells: the frame is there, or, where one is to be made (grid->frame 0), is not. */
static int open_raw(struct mx_grid_file *f, const struct mx_grid *grid, mx_why *why) {
    const int64_t h2 = 2 * (int64_t)grid->frame;
    const struct mx_raw_want want = {.option = "--input",
                                     .nx = grid->nx > 0 ? grid->nx - h2 : 0,
                                     .ny = grid->ny - h2,
                                     .nz = grid->nz - h2,
                                     .h = f->h,
                                     .may_have = grid->frame > 0,
                                     .may_lack = grid->frame == 0};
    bool frame;
    int err = mx_raw_open(f->path, f->raw, &want, why, &f->npy, &frame);
    if (err < 0 || frame == want.may_have) return err;
    close(f->npy.fd);
    return mx_fail(why, -EINVAL, "%.300s,%s says frame=yes, and --frame makes a frame: leave one of them out",
                   f->path, f->raw);
}

static int open_array(struct mx_grid_file *f, mx_why *why) {
    char file[PATH_MAX];
    const char *inside = mx_array_split(f->path, file);
    return mx_array_open(file, inside, false, why, &f->npy, f->data);
}

static int source_open(void *context, struct mx_grid *grid, mx_why *why) {
    struct mx_grid_file *f = context;
    int err = f->raw[0] != 0 ? open_raw(f, grid, why) : open_array(f, why);
    if (err < 0) return f->npy.fd = -1, err;
    grid->nx = f->npy.shape[2], grid->ny = f->npy.shape[1], grid->nz = f->npy.shape[0];
    snprintf(grid->dtype, sizeof grid->dtype, "%s", mx_dtype_name(f->npy.dtype));
    return 0;
}

static int source_region(void *context, const struct mx_grid_box *box, mx_why *why) {
    const struct mx_grid_file *f = context;
    const struct mx_layout layout = pitches(box);
    return mx_npy_read(&f->npy, box->z0, box->z1 - box->z0, box->data, &layout, why);
}

static void source_close(void *context) {
    struct mx_grid_file *f = context;
    if (f->npy.fd >= 0) close(f->npy.fd);
    f->npy.fd = -1;
}

void mx_grid_file_source(struct mx_grid_file *file, const char *path, const char *raw,
                         struct mx_source *out) {
    *file = (struct mx_grid_file){.path = path, .raw = raw, .npy.fd = -1, .output.fd = -1};
    *out = (struct mx_source){.size = sizeof *out,
                              .context = file,
                              .name = path,
                              .open = source_open,
                              .region = source_region,
                              .close = source_close};
}

/* ---- sink */

enum { HEAD_BYTES = 128 };

static int sink_open(void *context, const struct mx_grid *grid, mx_why *why) {
    struct mx_grid_file *f = context;
    const int64_t shape[3] = {grid->nz, grid->ny, grid->nx}, rows[3] = {grid->ny, 1, grid->nx};
    enum mx_dtype dtype = MX_F64;
    mx_dtype_find(grid->dtype, &dtype);
    const int64_t bytes = grid->nz * grid->ny * grid->nx * mx_dtype_bytes(dtype) + HEAD_BYTES;
    int err = mx_output_open(f->path, "the result", MX_OUTPUT_SEEK | (f->replace ? MX_OUTPUT_REPLACE : 0),
                             why, &f->output);
    if (err < 0) return err;
    err = mx_output_reserve(&f->output, (uint64_t)bytes, "the result", why);
    if (err == 0)
        err = mx_npy_begin_grid(f->output.fd, dtype, grid->flat, grid->flat ? rows : shape, why, &f->npy);
    if (err < 0) mx_output_drop(&f->output);
    f->flat = grid->flat;
    return err;
}

static int sink_region(void *context, const struct mx_grid_box *box, mx_why *why) {
    const struct mx_grid_file *f = context;
    const struct mx_grid_box planes = f->flat ? mx_box_of_users(box) : *box;
    const struct mx_layout layout = pitches(&planes);
    return mx_npy_write(&f->npy, planes.z0, planes.z1 - planes.z0, planes.data, &layout, why);
}

void mx_grid_file_find(struct mx_grid_file *f, bool named, struct mx_grid_file_place *out) {
    struct stat st = {0};
    *out = (struct mx_grid_file_place){.path = ""};
    if (named) mx_output_show(&f->output);
    if (fstat(f->output.fd, &st) != 0) return;
    if (named)
        snprintf(out->path, sizeof out->path, "%s", f->output.temporary);
    else if (mx_output_path(&f->output, out->path))
        out->device = st.st_dev, out->inode = st.st_ino;
    else
        out->path[0] = 0;
}

int mx_grid_file_join(struct mx_grid_file *f, const struct mx_grid_file_place *place,
                      const struct mx_grid *grid, mx_why *why) {
    struct mx_npy *n = &f->npy;
    struct stat st;
    int fd = mx_retry(mx_sys->open(place->path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0));
    if (fd >= 0 && place->inode != 0 &&
        (fstat(fd, &st) != 0 || st.st_ino != place->inode || st.st_dev != place->device)) {
        mx_sys->close(fd);
        fd = -ESTALE;
    }
    if (fd < 0)
        return mx_fail(why, fd,
                       "all ranks write the result to %.300s, which cannot be opened: %s; it must be on a "
                       "file system that all ranks share",
                       place->path, strerror(-fd));
    *n = (struct mx_npy){.fd = fd, .shape = {grid->nz, grid->ny, grid->nx}, .data_offset_bytes = HEAD_BYTES};
    if (grid->flat) n->shape[0] = grid->ny, n->shape[1] = 1;
    f->flat = grid->flat;
    mx_dtype_find(grid->dtype, &n->dtype);
    f->output = (struct mx_output){.fd = fd};
    snprintf(f->output.path, sizeof f->output.path, "%s", f->path);
    f->joined = true;
    return 0;
}

void mx_grid_file_part(struct mx_grid_file *f) {
    if (!f->joined) return;
    mx_output_drop(&f->output);
    f->joined = false;
    f->npy.fd = -1;
}

static int close_joined(struct mx_grid_file *f, mx_why *why) {
    const int err = mx_retry(mx_sys->fsync(f->output.fd));
    mx_output_drop(&f->output);
    return err < 0 ? mx_fail(why, err, "the result cannot be written: %s", strerror(-err)) : 0;
}

static int sink_close(void *context, bool whole, mx_why *why) {
    struct mx_grid_file *f = context;
    if (whole && f->joined) return close_joined(f, why);
    if (whole) return mx_output_publish(&f->output, "the result", why);
    mx_output_drop(&f->output);
    return 0;
}

void mx_grid_file_sink(struct mx_grid_file *file, const char *path, bool replace, struct mx_sink *out) {
    *file = (struct mx_grid_file){.path = path, .replace = replace, .npy.fd = -1, .output.fd = -1};
    *out = (struct mx_sink){
        .size = sizeof *out, .context = file, .open = sink_open, .region = sink_region, .close = sink_close};
}
