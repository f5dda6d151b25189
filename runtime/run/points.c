#include "run/run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Steps of traces that a plan is made with; longer sweeps make it grow. */
enum { USUAL_STEPS = 512 };

/* ------------------------------------------------------------------ what is asked for */

static int read_points(struct mx_run *r) {
    const struct mx_options *o = &r->o;
    struct mx_run_points *q = &r->points;
    int err = 0;
    for (int32_t i = 0; i < o->point_sources.n && err == 0; i++)
        err = mx_sources_add(&q->sources, &o->problem, o->point_sources.word[i], &r->why);
    if (err == 0 && o->sources != NULL) err = mx_sources_read(&q->sources, &o->problem, o->sources, &r->why);
    if (err == 0 && o->probes != NULL) err = mx_probes_read(&q->probes, &o->problem, o->probes, &r->why);
    if (err == 0 && o->probes != NULL && q->probes.n == 0)
        err = mx_fail(&r->why, -EINVAL,
                      "%.300s names no probe; give lines FIELD X Y Z, or leave --probes out", o->probes);
    if (err == 0 && q->sources.points.n > 0) err = mx_sources_index(&q->sources, &o->problem, &r->why);
    if (err == 0 && q->probes.n > 0) err = mx_points_index(&q->probes, &o->problem, &r->why);
    return err == 0 ? mx_run_check_names(r) : err; /* the wavelets are known now */
}

static int check_former(struct mx_run *r) {
    const struct mx_run_points *q = &r->points;
    if (mx_sources_identity(&q->sources) != r->note.sources)
        return mx_fail(&r->why, -EINVAL,
                       r->note.sources == 0
                           ? "%.300s holds a run without sources; leave --source and --sources out with "
                             "--resume"
                           : "%.300s holds a run with other sources: give the same --source and --sources "
                             "with --resume",
                       r->o.path);
    if (mx_points_identity(&q->probes) != r->note.probes)
        return mx_fail(&r->why, -EINVAL,
                       r->note.probes == 0
                           ? "%.300s holds a run without probes; leave --probes out with --resume"
                           : "%.300s holds a run with other probes: give the same --probes and --probes-out "
                             "with --resume",
                       r->o.path);
    return 0;
}

/* Told before anything is touched; the file itself is made when the store is ours. */
static int check_file(struct mx_run *r) {
    if (r->o.probes_out == NULL || r->resumed || r->o.overwrite || access(r->o.probes_out, F_OK) != 0)
        return 0;
    return mx_fail(&r->why, -EEXIST,
                   "the traces cannot be written to %.300s: it is there already; name another file, or give "
                   "--overwrite to replace it",
                   r->o.probes_out);
}

int mx_run_take_points(struct mx_run *r) {
    struct mx_run_points *q = &r->points;
    int err = read_points(r);
    if (err == 0 && r->resumed) err = check_former(r);
    if (err == 0) err = check_file(r);
    const int64_t left = r->o.problem.nt - r->first_time;
    q->capacity = left < USUAL_STEPS ? left : USUAL_STEPS;
    return err;
}

uint64_t mx_run_points_bytes(const struct mx_run *r) {
    const struct mx_run_points *q = &r->points;
    const int64_t lists = mx_sources_bytes(&q->sources) +
                          (q->sources.points.n + q->probes.n > 0 ? 16 * r->o.problem.nz : 0) +
                          q->probes.capacity * (int64_t)sizeof(struct mx_point);
    return (uint64_t)(lists + (q->probes.n > 0 ? mx_traces_bytes(&q->probes, q->capacity) : 0));
}

bool mx_run_points_fit(struct mx_run *r) {
    const int64_t a_step = mx_levels_a_step(&r->rest),
                  sweep = (r->tuned.shape.max_levels + a_step - 1) / a_step;
    if (r->points.probes.n == 0 || sweep <= r->points.capacity) return true;
    r->points.capacity = sweep;
    return false;
}

/* ------------------------------------------------------------------ the file of traces */

static int fail_file(struct mx_run *r, int err) {
    return mx_fail(&r->why, err, "the traces cannot be written to %.300s: %s", r->o.probes_out,
                   strerror(-err));
}

/* That of a run that has just begun may be missing. */
static int open_former_file(struct mx_run *r) {
    struct mx_run_points *q = &r->points;
    q->fd = mx_retry(mx_sys->open(r->o.probes_out, O_RDWR | O_CLOEXEC, 0));
    if (q->fd == -ENOENT)
        return mx_fail(&r->why, q->fd,
                       "the traces of the first %lld steps are not in %.300s: name the file that the run "
                       "began with as --probes-out",
                       (long long)r->first_time, r->o.probes_out);
    if (q->fd < 0) return fail_file(r, q->fd);
    const int64_t nt = r->o.problem.nt;
    int err = mx_traces_file_check(q->fd, r->o.probes_out, nt, q->probes.n, r->first_time, &r->why);
    if (err == 0 || r->note.met.until[0] == 0) return err;
    err = mx_traces_file_check(q->fd, r->o.probes_out, r->first_time, q->probes.n, r->first_time, &r->why);
    if (err == 0) r->why.text[0] = 0; /* the file of a run that a criterion has ended */
    return err < 0 || r->rest.nt == 0 ? err : mx_traces_file_begin(q->fd, nt, q->probes.n, &r->why);
}

/* A run that is resumed from its beginning may have left a file: one of its own kind alone is used again. */
static int open_new_file(struct mx_run *r) {
    struct mx_run_points *q = &r->points;
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | (r->o.overwrite ? O_TRUNC : O_EXCL);
    q->fd = mx_retry(mx_sys->open(r->o.probes_out, flags, 0666));
    if (q->fd != -EEXIST || !r->resumed) return q->fd < 0 ? fail_file(r, q->fd) : 0;
    q->fd = mx_retry(mx_sys->open(r->o.probes_out, O_RDWR | O_CLOEXEC, 0));
    if (q->fd < 0) return fail_file(r, q->fd);
    return mx_traces_file_check(q->fd, r->o.probes_out, r->o.problem.nt, q->probes.n, 0, &r->why);
}

static int begin_file(struct mx_run *r) {
    struct mx_run_points *q = &r->points;
    int err = open_new_file(r);
    if (err < 0) return err;
    err = mx_traces_file_begin(q->fd, r->o.problem.nt, q->probes.n, &r->why);
    if (err < 0) return err;
    err = mx_retry(mx_sys->fsync(q->fd));
    if (err == 0) err = mx_sync_directory(r->o.probes_out);
    return err < 0 ? fail_file(r, err) : 0;
}

int mx_run_open_points(struct mx_run *r) {
    struct mx_run_points *q = &r->points;
    int err = 0;
    q->after = (struct mx_after){.problem = &r->o.problem, .layout = &r->report.layout, .sides = r->sides};
    memcpy(q->after.ghost, r->tuned.shape.ghost, sizeof q->after.ghost);
    if (q->sources.points.n > 0) q->after.sources = &q->sources;
    r->note.sources = mx_sources_identity(&q->sources);
    r->note.probes = mx_points_identity(&q->probes);
    r->report.sources = q->sources.points.n;
    r->report.probes = q->probes.n;
    if (q->probes.n == 0) return 0;
    err = mx_traces_make(&q->probes, q->capacity, r->first_time, &r->why, &q->traces);
    if (err < 0) return err;
    q->after.traces = &q->traces;
    return r->resumed && r->first_time > 0 ? open_former_file(r) : begin_file(r);
}

int mx_run_write_traces(struct mx_run *r, int64_t steps, mx_why *why) {
    struct mx_run_points *q = &r->points;
    return q->fd < 0 ? 0 : mx_traces_file_write(q->fd, &q->traces, steps, why);
}

/* The file of a run that ended before its last step has the rows of those that were done. */
int mx_run_end_traces(struct mx_run *r) {
    const int64_t steps = r->report.steps_done;
    if (r->points.fd < 0 || steps == r->o.problem.nt) return 0;
    return mx_traces_file_begin(r->points.fd, steps, r->points.probes.n, &r->why);
}

int mx_run_sync_traces(struct mx_run *r) {
    return r->points.fd < 0 ? 0 : mx_retry(mx_sys->fdatasync(r->points.fd));
}

void mx_run_close_points(struct mx_run *r) {
    struct mx_run_points *q = &r->points;
    if (q->fd >= 0) mx_sys->close(q->fd);
    q->fd = -1;
    mx_traces_free(&q->traces);
    mx_sources_free(&q->sources);
    mx_points_free(&q->probes);
}
