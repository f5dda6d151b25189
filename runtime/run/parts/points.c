/* SPDX-License-Identifier: BSD-3-Clause */
/* points.c - sources, probes, and the file of their traces. */
#include "run/parts/parts.h"

#include "engine/accel_room.h"
#include "machine/file.h"
#include "run/ranks/ranks.h"
#include "run/state.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Steps of traces that a plan is made with; longer sweeps make it grow. */
enum { USUAL_STEPS = 512 };

/* ------------------------------------------------------------------ what is asked for */

static int take(struct mx_run *r) {
    const struct mx_options *o = &r->o;
    struct mx_run_points *q = &r->parts.points;
    int err = 0;
    for (int32_t i = 0; i < o->point_sources.n && err == 0; i++)
        err = mx_sources_add(&q->sources, &o->problem, o->point_sources.word[i], &r->why);
    const int64_t given = q->sources.points.n;
    if (err == 0 && o->sources != NULL) err = mx_sources_read(&q->sources, &o->problem, o->sources, &r->why);
    if (err == 0 && o->sources != NULL && q->sources.points.n == given)
        err = mx_fail(&r->why, -EINVAL,
                      "%.300s names no source; give lines FIELD@X,Y,Z=WAVELET.npy, or leave --sources out",
                      o->sources);
    if (err == 0 && o->probes != NULL) err = mx_probes_read(&q->probes, &o->problem, o->probes, &r->why);
    if (err == 0 && o->probes != NULL && q->probes.n == 0)
        err = mx_fail(&r->why, -EINVAL,
                      "%.300s names no probe; give lines FIELD X Y Z, or leave --probes out", o->probes);
    if (err == 0 && q->sources.points.n > 0) err = mx_sources_index(&q->sources, &o->problem, &r->why);
    if (err == 0 && q->probes.n > 0) err = mx_points_index(&q->probes, &o->problem, &r->why);
    r->sources_identity = mx_sources_identity(&q->sources);
    r->probes_identity = mx_points_identity(&q->probes);
    return err;
}

/* The files of wavelets, once they were read. */
static const char *names(const struct mx_run *r, int64_t i, const char **option) {
    const struct mx_sources *s = &r->parts.points.sources;
    *option = "--source";
    return i < s->n_wavelets ? s->wavelet[i].path : NULL;
}

/* Told before anything is touched; the file itself is made when the store is ours. */
static int check_file(struct mx_run *r) {
    if (r->o.probes_out == NULL || r->resumed || r->o.overwrite || access(r->o.probes_out, F_OK) != 0)
        return r->o.probes_out != NULL ? mx_file_check(r->o.probes_out, &r->why) : 0;
    return mx_fail(&r->why, -EEXIST,
                   "the traces cannot be written to %.300s: it is there already; name another file, or give "
                   "--overwrite to replace it",
                   r->o.probes_out);
}

static int check(struct mx_run *r) {
    struct mx_run_points *q = &r->parts.points;
    const int err = check_file(r);
    const int64_t left = r->o.problem.nt - r->first_time;
    q->capacity = left < USUAL_STEPS ? left : USUAL_STEPS;
    return err;
}

static uint64_t dram_bytes(const struct mx_run *r) {
    const struct mx_run_points *q = &r->parts.points;
    const int64_t lists = mx_sources_bytes(&q->sources) +
                          (q->sources.points.n + q->probes.n > 0 ? 16 * r->o.problem.nz : 0) +
                          q->probes.capacity * (int64_t)sizeof(struct mx_point);
    return (uint64_t)(lists + (q->probes.n > 0 ? mx_traces_bytes(&q->probes, q->capacity) : 0));
}

static bool fits(struct mx_run *r) {
    const int64_t a_step = mx_levels_a_step(&r->rest),
                  sweep = (r->tuned.shape.max_levels + a_step - 1) / a_step;
    if (r->parts.points.probes.n == 0 || sweep <= r->parts.points.capacity) return true;
    r->parts.points.capacity = sweep;
    return false;
}

/* ------------------------------------------------------------------ the file of traces */

static int fail_file(struct mx_run *r, int err) {
    return mx_fail(&r->why, err, "the traces cannot be written to %.300s: %s", r->o.probes_out,
                   strerror(-err));
}

/* That of a run that has just begun may be missing. */
static int open_former_file(struct mx_run *r) {
    struct mx_run_points *q = &r->parts.points;
    q->fd = mx_retry(mx_sys->open(r->o.probes_out, O_RDWR | O_CLOEXEC, 0));
    if (q->fd == -ENOENT)
        return mx_fail(&r->why, q->fd,
                       "the file with the traces of the first %lld steps, %.300s, does not exist: give the "
                       "file that the run began with as --probes-out",
                       (long long)r->first_time, r->o.probes_out);
    if (q->fd < 0) return fail_file(r, q->fd);
    const int64_t nt = r->o.problem.nt;
    int err = mx_traces_file_check(q->fd, r->o.probes_out, nt, q->all, r->first_time, &r->why);
    if (err == 0 || r->note.met.until[0] == 0) return err;
    err = mx_traces_file_check(q->fd, r->o.probes_out, r->first_time, q->all, r->first_time, &r->why);
    if (err == 0) r->why.text[0] = 0; /* the file of a run that a criterion has ended */
    return err < 0 || r->rest.nt == 0 ? err : mx_traces_file_begin(q->fd, nt, q->all, &r->why);
}

/* A run that is resumed from its beginning may have left a file: one of its own kind alone is used again. */
static int open_new_file(struct mx_run *r) {
    struct mx_run_points *q = &r->parts.points;
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | (r->o.overwrite ? O_TRUNC : O_EXCL);
    q->fd = mx_retry(mx_sys->open(r->o.probes_out, flags, 0666));
    if (q->fd != -EEXIST || !r->resumed) return q->fd < 0 ? fail_file(r, q->fd) : 0;
    q->fd = mx_retry(mx_sys->open(r->o.probes_out, O_RDWR | O_CLOEXEC, 0));
    if (q->fd < 0) return fail_file(r, q->fd);
    return mx_traces_file_check(q->fd, r->o.probes_out, r->o.problem.nt, q->all, 0, &r->why);
}

static int begin_file(struct mx_run *r) {
    struct mx_run_points *q = &r->parts.points;
    int err = open_new_file(r);
    if (err < 0) return err;
    err = mx_traces_file_begin(q->fd, r->o.problem.nt, q->all, &r->why);
    if (err < 0) return err;
    err = mx_retry(mx_sys->fsync(q->fd));
    if (err == 0) err = mx_sync_directory(r->o.probes_out);
    return err < 0 ? fail_file(r, err) : 0;
}

/* Rows of the steps before the one that is gone on from are there. */
static bool has_file(const struct mx_run *r) { return r->resumed && r->first_time > 0; }

static int open_points(struct mx_run *r) {
    struct mx_run_points *q = &r->parts.points;
    int err = 0;
    if (q->sources.points.n > 0) r->after.sources = &q->sources;
    r->note.sources = r->sources_identity;
    r->note.probes = r->probes_identity;
    r->report.sources = q->sources.points.n;
    r->report.probes = q->probes.n;
    if (q->probes.n == 0) return 0;
    q->all = q->probes.n;
    if ((err = mx_run_split_probes(r)) < 0) return err;
    err = mx_traces_make(&q->probes, q->capacity, r->first_time, &r->why, &q->traces);
    if (err < 0) return err;
    r->after.traces = &q->traces;
    if (!mx_run_leads(r)) return 0; /* which has the file */
    return has_file(r) ? open_former_file(r) : 0;
}

static int begin(struct mx_run *r) {
    return r->parts.points.all > 0 && mx_run_leads(r) && !has_file(r) ? begin_file(r) : 0;
}

static int swept(struct mx_run *r, int64_t steps, mx_why *why) {
    return r->parts.points.all > 0 ? mx_run_write_traces(r, steps, why) : 0;
}

static int prepare(struct mx_run *r, int64_t step) {
    (void)step;
    return r->parts.points.fd < 0 ? 0 : mx_retry(mx_sys->fdatasync(r->parts.points.fd));
}

/* The file of a run that ended before its last step has the rows of those that were done. */
static int cut_file(struct mx_run *r) {
    const int64_t steps = r->report.steps_done;
    if (r->parts.points.fd < 0 || steps == r->o.problem.nt) return 0;
    return mx_traces_file_begin(r->parts.points.fd, steps, r->parts.points.all, &r->why);
}

static int finish(struct mx_run *r) {
    int err = cut_file(r);
    if (err == 0 && (err = prepare(r, r->report.steps_done)) < 0)
        mx_fail(&r->why, err, "the traces in %.300s could not be written to the device: %s", r->o.probes_out,
                strerror(-err));
    return err;
}

static void close_points(struct mx_run *r) {
    struct mx_run_points *q = &r->parts.points;
    if (q->fd >= 0) mx_sys->close(q->fd);
    q->fd = -1;
    mx_traces_free(&q->traces);
    mx_sources_free(&q->sources);
    mx_points_free(&q->probes);
    free(q->column);
    q->column = NULL;
}

/* ------------------------------------------------------------------ the part */

static void make(struct mx_run *r) { r->parts.points.fd = -1; }

static uint64_t accel_bytes(const struct mx_run *r) {
    return mx_accel_extra_bytes(&r->o.problem, &r->parts.points.sources, &r->parts.points.probes, false);
}

static int64_t most_ahead(const struct mx_run *r) {
    return r->report.probes > 0 ? mx_levels_of(&r->rest, r->parts.points.capacity) : 0;
}

const struct mx_part mx_part_points = {
    .name = "points",
    .make = make,
    .take = take,
    .names = names,
    .check = check,
    .dram_bytes = dram_bytes,
    .fits = fits,
    .accel_bytes = accel_bytes,
    .open = open_points,
    .begin = begin,
    .most_ahead = most_ahead,
    .swept = swept,
    .prepare = prepare,
    .finish = finish,
    .close = close_points,
};
