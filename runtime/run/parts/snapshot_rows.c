/* SPDX-License-Identifier: BSD-3-Clause */
/* snapshot_rows.c - rows of the state, to the files of a step. */
#include "run/parts/snapshots_private.h"

#include "grid/array.h"
#include "machine/clock.h"
#include "machine/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WRITE_BACK_BYTES = 16 << 20 };

static int fail_file(const struct mx_snapshot_file *f, int err, mx_why *why) {
    return mx_fail(why, err, "the snapshot %.300s cannot be written: %s%s", f->output.path, strerror(-err),
                   err == -ENOSPC || err == -EDQUOT ? "; free space and resume the run with --resume" : "");
}

/* The file of a step that all ranks write to, until it has its name; what a killed run has left of it is a
 * temporary for the next. */
void mx_snapshot_joint_name(const struct mx_run_snapshots *s, const struct mx_snapshot_file *f, int64_t step,
                            char path[PATH_MAX + 64]) {
    snprintf(path, PATH_MAX + 64, "%s/.%s-%06lld.npy.memext-ranks", s->asked.directory, f->name,
             (long long)step);
}

/* Whoever comes first makes it. */
static int open_joint(struct mx_run *r, struct mx_snapshot_file *f, int64_t step, mx_why *why) {
    struct mx_run_snapshots *s = &r->parts.snapshots;
    char path[PATH_MAX + 64];
    const int64_t bytes =
        MX_SNAPSHOT_HEAD_BYTES + s->cells[0] * s->cells[1] * s->cells[2] * mx_dtype_bytes(f->dtype);
    mx_snapshot_joint_name(s, f, step, path);
    f->output = (struct mx_output){.fd = -1};
    snprintf(f->output.path, sizeof f->output.path, "%.4095s", path);
    const int fd = mx_retry(mx_sys->open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (fd < 0) return mx_fail(why, fd, "the snapshot %.300s cannot be written: %s", path, strerror(-fd));
    f->output.fd = fd;
    if (!mx_run_leads(r)) return 0;
    int err = mx_output_reserve(&f->output, (uint64_t)bytes, "the snapshot", why);
    if (err == 0) err = mx_npy_begin_grid(fd, f->dtype, r->whole.flat, s->cells, why, &f->npy);
    if (err == 0) s->bytes += MX_SNAPSHOT_HEAD_BYTES;
    return err;
}

static int begin_step(struct mx_run *r, int64_t step, mx_why *why) {
    struct mx_run_snapshots *s = &r->parts.snapshots;
    int err = 0;
    s->open_step = step;
    for (int32_t i = 0; i < s->n_files && err == 0; i++) {
        struct mx_snapshot_file *f = &s->file[i];
        char path[PATH_MAX + 64];
        if (!mx_run_alone(r)) {
            err = open_joint(r, f, step, why);
            continue;
        }
        const int64_t bytes =
            MX_SNAPSHOT_HEAD_BYTES + s->cells[0] * s->cells[1] * s->cells[2] * mx_dtype_bytes(f->dtype);
        snprintf(path, sizeof path, "%s/%s-%06lld.npy", s->asked.directory, f->name, (long long)step);
        err = mx_output_open(path, "the snapshot",
                             MX_OUTPUT_SWEPT | (r->resumed || r->o.overwrite ? MX_OUTPUT_REPLACE : 0), why,
                             &f->output);
        if (err == 0) err = mx_output_reserve(&f->output, (uint64_t)bytes, "the snapshot", why);
        if (err == 0) err = mx_npy_begin_grid(f->output.fd, f->dtype, r->whole.flat, s->cells, why, &f->npy);
        if (err == 0) s->bytes += MX_SNAPSHOT_HEAD_BYTES;
    }
    return err;
}

/* Starts write-back of what was written, and gives up what has been: the pages are of no more use. */
static void write_back(struct mx_run_snapshots *s, int64_t bytes) {
    s->bytes += bytes;
    s->unwritten += bytes;
    if (s->unwritten < WRITE_BACK_BYTES) return;
    s->unwritten = 0;
    for (int32_t i = 0; i < s->n_files; i++) {
        mx_sys->sync_file_range(s->file[i].output.fd, 0, 0, SYNC_FILE_RANGE_WRITE);
        posix_fadvise(s->file[i].output.fd, 0, 0, POSIX_FADV_DONTNEED);
    }
}

static void gather_row(const char *from, int64_t n, int64_t stride, int64_t element, char *to) {
    if (stride == 1)
        memcpy(to, from, (size_t)(n * element));
    else if (element == 8)
        for (int64_t x = 0; x < n; x++) ((uint64_t *)to)[x] = ((const uint64_t *)from)[x * stride];
    else if (element == 4)
        for (int64_t x = 0; x < n; x++) ((uint32_t *)to)[x] = ((const uint32_t *)from)[x * stride];
    else if (element == 2)
        for (int64_t x = 0; x < n; x++) ((uint16_t *)to)[x] = ((const uint16_t *)from)[x * stride];
    else
        for (int64_t x = 0; x < n; x++) to[x] = from[x * stride];
}

/* Rows y, y + stride, ... before y1 of plane zi of the file, which lie behind one another there. */
static int write_rows(struct mx_run_snapshots *s, const struct mx_snapshot_file *f, int64_t zi, int64_t yi,
                      int64_t n, const char *from, int64_t pitch, mx_why *why) {
    const int64_t element = mx_dtype_bytes(f->dtype), row = s->cells[2] * element,
                  most = (int64_t)mx_block_bytes(s->block) / row;
    char *block = mx_block_data(s->block);
    int err = 0;
    while (n > 0 && err == 0) {
        const int64_t count = n < most ? n : most;
        for (int64_t i = 0; i < count; i++)
            gather_row(from + i * s->asked.stride * pitch, s->cells[2], s->asked.stride, element,
                       block + i * row);
        err = mx_write_all(f->output.fd, block, (size_t)(count * row),
                           MX_SNAPSHOT_HEAD_BYTES + (zi * s->cells[1] + yi) * row);
        if (err < 0) return fail_file(f, err, why);
        write_back(s, count * row);
        from += count * s->asked.stride * pitch;
        yi += count;
        n -= count;
    }
    return err;
}

/* Keeps the first error for those who wait. */
static int settle(struct mx_run_snapshots *s, int64_t published, int err, const mx_why *why,
                  uint64_t begin_ns) {
    pthread_mutex_lock(&s->lock);
    s->ns += mx_clock_ns() - begin_ns;
    if (published > 0) s->published = published, s->count++;
    if (err < 0 && s->err == 0) s->err = err, s->why = *why;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return err;
}

int mx_snapshot_rows(void *context, int64_t step, const struct mx_state_rows *rows, mx_why *why) {
    struct mx_run *r = context;
    struct mx_run_snapshots *s = &r->parts.snapshots;
    const uint64_t begin = mx_clock_ns();
    const int64_t h = r->o.problem.h, hy = mx_halo_y(&r->o.problem), stride = s->asked.stride,
                  zi = (rows->z - h + r->o.problem.first_plane) / stride,
                  yi = (rows->y0 - hy + stride - 1) / stride, end = (rows->y1 - hy + stride - 1) / stride;
    const char *from = rows->rows + (yi * stride + hy - rows->y0) * rows->row_pitch_bytes;
    const bool staggered = mx_form(&r->o.problem) == MX_STAGGERED;
    int err = s->open_step == step ? 0 : begin_step(r, step, why);
    for (int32_t i = 0; i < s->n_files && err == 0; i++) {
        const struct mx_snapshot_file *f = &s->file[i];
        const int64_t offset =
            rows->layout->field_offset_bytes[rows->array][f->index] + h * mx_dtype_bytes(f->dtype);
        if (staggered && f->array != rows->array) continue;
        err = write_rows(s, f, zi, yi, end - yi, from + offset, rows->row_pitch_bytes, why);
    }
    return settle(s, 0, err, why, begin);
}

/* All files of a step are on the disk before the first of them appears. */
int mx_snapshot_whole(void *context, int64_t step, mx_why *why) {
    struct mx_run *r = context;
    struct mx_run_snapshots *s = &r->parts.snapshots;
    const uint64_t begin = mx_clock_ns();
    int err = s->open_step == step ? 0 : begin_step(r, step, why);
    for (int32_t i = 0; i < s->n_files && err == 0; i++) {
        err = mx_retry(mx_sys->fdatasync(s->file[i].output.fd));
        if (err < 0) fail_file(&s->file[i], err, why);
        posix_fadvise(s->file[i].output.fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    for (int32_t i = 0; i < s->n_files && err == 0; i++)
        if (!mx_run_alone(r))
            mx_output_drop(
                &s->file[i].output); /* the file stays: the commit gives it its name (snapshots.c, publish) */
        else
            err = mx_output_publish(&s->file[i].output, "the snapshot", why);
    s->open_step = 0;
    return settle(s, err == 0 ? step : 0, err, why, begin);
}
