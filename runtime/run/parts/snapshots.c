/* SPDX-License-Identifier: BSD-3-Clause */
/* snapshots.c - what is asked for, what it takes, and what a commit waits for. */
#include "run/parts/parts.h"

#include "run/parts/snapshots_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ what is asked for */

static bool is_chosen(const char *fields, const char *name) {
    const size_t n = strlen(name);
    if (fields[0] == 0) return true;
    for (const char *f = fields; f != NULL; f = strchr(f, ',')) {
        if (*f == ',') f++;
        if (strncmp(f, name, n) == 0 && (f[n] == 0 || f[n] == ',')) return true;
    }
    return false;
}

static void add_file(struct mx_run_snapshots *s, const char *name, enum mx_dtype dtype, int32_t array,
                     int32_t index) {
    struct mx_snapshot_file *f = &s->file[s->n_files++];
    *f = (struct mx_snapshot_file){
        .dtype = dtype, .array = array, .index = index, .output.fd = -1, .npy.fd = -1};
    snprintf(f->name, sizeof f->name, "%s", name);
}

/* Chooses the fields of the state. The step before, of a leapfrog kernel, does not count as a field of its
 * own.
 */
static int choose_fields(const struct mx_problem *p, const struct mx_run_fields *fields, mx_why *why,
                         struct mx_run_snapshots *s) {
    char left[MX_SNAPSHOT_FIELDS], *rest;
    s->file = calloc((size_t)(fields->n > 0 ? fields->n : 1), sizeof *s->file);
    if (s->file == NULL) return mx_fail(why, -ENOMEM, "no memory for the names of snapshots");
    if (p->system == NULL && is_chosen(s->asked.fields, "u")) add_file(s, "u", p->dtype, 0, 0);
    for (int32_t i = 0; i < fields->n; i++) {
        const struct mx_run_field *f = &fields->field[i];
        if (f->array != MX_FIELD_OF_C && strchr(f->name, '.') == NULL && is_chosen(s->asked.fields, f->name))
            add_file(s, f->name, f->dtype, f->array, f->index);
    }
    snprintf(left, sizeof left, "%s", s->asked.fields);
    for (char *w = strtok_r(left, ",", &rest); w != NULL; w = strtok_r(NULL, ",", &rest)) {
        bool found = false;
        for (int32_t i = 0; i < s->n_files; i++) found |= strcmp(s->file[i].name, w) == 0;
        if (!found)
            return mx_fail(why, -EINVAL,
                           "--snapshot-fields: '%.60s' is not a state field; give names of state fields with "
                           "commas between them%s",
                           w, p->system == NULL ? " (a built-in stencil has u)" : "");
    }
    return s->n_files > 0 ? 0 : mx_fail(why, -EINVAL, "--snapshot-fields names no state field");
}

static int take_field_names(const struct mx_options *o, mx_why *why, struct mx_snapshots_asked *a) {
    if (o->snapshot_fields != NULL &&
        (size_t)snprintf(a->fields, sizeof a->fields, "%s", o->snapshot_fields) >= sizeof a->fields)
        return mx_fail(why, -EINVAL, "--snapshot-fields has more than %zu bytes", sizeof a->fields - 1);
    return 0;
}

/* Extents and files, once the problem is known. */
static int count_cells(const struct mx_problem *p, const struct mx_run_fields *fields, mx_why *why,
                       struct mx_run_snapshots *s) {
    const int64_t extent[3] = {p->nz, p->ny, p->nx};
    if (s->asked.every > p->nt)
        return mx_fail(
            why, -EINVAL,
            "--snapshot every %lld steps makes no snapshot in %lld steps: give a number up to %lld",
            (long long)s->asked.every, (long long)p->nt, (long long)p->nt);
    for (int i = 0; i < 3; i++) s->cells[i] = (extent[i] + s->asked.stride - 1) / s->asked.stride;
    return choose_fields(p, fields, why, s);
}

static int take_options(struct mx_run *r) {
    struct mx_snapshots_asked *a = &r->parts.snapshots.asked;
    const struct mx_snapshots_asked *former = &r->note.snapshots;
    const struct mx_options *o = &r->o;
    if (r->resumed) *a = *former;
    if (o->snapshot_every == 0) return 0;
    int err = mx_snapshots_directory(r, a->directory);
    if (err < 0)
        return mx_fail(&r->why, err,
                       "--snapshot %.300s: the directory cannot be used: %s; create the directory above it",
                       o->snapshot_directory, strerror(-err));
    a->every = o->snapshot_every;
    a->stride = o->snapshot_stride;
    if ((err = take_field_names(o, &r->why, a)) < 0) return err;
    if (!r->resumed || former->every == 0) return 0;
    if (a->every == former->every && a->stride == former->stride && strcmp(a->fields, former->fields) == 0)
        return 0;
    return mx_fail(&r->why, -EINVAL,
                   "%.300s holds a run with a snapshot every %lld steps of one cell of %lld%s%.100s: give "
                   "the same values with --resume, or leave --snapshot and --snapshot-fields out",
                   o->path, (long long)former->every, (long long)former->stride,
                   former->fields[0] != 0 ? " of " : "", former->fields);
}

static int take(struct mx_run *r) {
    struct mx_run_snapshots *s = &r->parts.snapshots;
    const struct mx_problem *p = &r->o.problem;
    int err = take_options(r);
    if (err < 0 || s->asked.every == 0) return err;
    err = count_cells(p, &r->fields, &r->why, s);
    if (err < 0) return err;
    s->predicted_count = p->nt / s->asked.every - r->first_time / s->asked.every;
    s->predicted_bytes = s->predicted_count * mx_snapshot_bytes_of_step(s);
    s->published = r->first_time;
    if ((err = mx_run_agree_number(r, &s->asked.run)) < 0) return err;
    r->o.problem.due[1] = s->asked.every;
    s->taking = (struct mx_taking){.every = s->asked.every,
                                   .stride = s->asked.stride,
                                   .rows = mx_snapshot_rows,
                                   .whole = mx_snapshot_whole,
                                   .context = r};
    return s->predicted_count > 0 ? mx_parts_hand_out(r, &s->taking) : 0;
}

static int check(struct mx_run *r) {
    struct mx_snapshots_found found;
    if (r->parts.snapshots.predicted_count == 0) return 0;
    const int err = mx_snapshots_check(r, &found);
    return err == 0 ? mx_snapshots_check_space(r) : err;
}

/* ------------------------------------------------------------------ what they take */

static uint64_t dram_bytes(const struct mx_run *r) {
    const struct mx_run_snapshots *s = &r->parts.snapshots;
    if (s->predicted_count == 0) return 0;
    return MX_SNAPSHOT_GATHER_BYTES + (uint64_t)(s->n_files * (int64_t)sizeof *s->file);
}

static int64_t own_planes(const struct mx_run_snapshots *s, const struct mx_problem *p) {
    const int64_t stride = s->asked.stride;
    return (p->first_plane + p->nz + stride - 1) / stride - (p->first_plane + stride - 1) / stride;
}

/* Of the planes of this rank, and rank 0 writes the heads. */
static int64_t own_bytes_of_step(const struct mx_run *r) {
    const struct mx_run_snapshots *s = &r->parts.snapshots;
    const struct mx_problem *p = &r->o.problem;
    const int64_t planes = own_planes(s, p);
    int64_t bytes = 0;
    for (int32_t i = 0; i < s->n_files; i++)
        bytes += (mx_run_leads(r) ? MX_SNAPSHOT_HEAD_BYTES : 0) +
                 planes * s->cells[1] * s->cells[2] * mx_dtype_bytes(s->file[i].dtype);
    return bytes;
}

static void predict(struct mx_run *r) {
    struct mx_run_snapshots *s = &r->parts.snapshots;
    if (s->predicted_count > 0) s->predicted_bytes = s->predicted_count * own_bytes_of_step(r);
    struct mx_report *p = &r->report;
    p->snapshots = (struct mx_report_snapshots){.every = s->asked.every,
                                                .stride = s->asked.stride,
                                                .directory = s->asked.directory,
                                                .predicted_count = s->predicted_count,
                                                .predicted_bytes = s->predicted_bytes};
}

/* ------------------------------------------------------------------ begin */

static int hold(struct mx_run *r) {
    struct mx_run_snapshots *s = &r->parts.snapshots;
    struct mx_block_options options = {.size = sizeof options, .budget = r->budget};
    struct mx_snapshots_found found;
    if (s->predicted_count == 0) return 0;
    const bool first = mx_run_leads(r);
    int err = first ? mx_snapshots_lock(r) : 0;
    if (err == 0 && first)
        err = mx_snapshots_check(r, &found); /* it is locked now: is it still what it was? */
    const int64_t row = s->cells[2] * (int64_t)sizeof(double);
    if (err == 0)
        err = mx_block_create(&options,
                              (uint64_t)(row > MX_SNAPSHOT_GATHER_BYTES ? row : MX_SNAPSHOT_GATHER_BYTES),
                              &r->why, &s->block);
    if (err < 0) return err;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->made = true;
    return 0;
}

/* Nothing is refused any more: what is in the way goes. */
static int begin(struct mx_run *r) {
    struct mx_snapshots_found found;
    const bool first = mx_run_leads(r);
    if (r->parts.snapshots.predicted_count == 0) return 0;
    int err = first ? mx_snapshots_check(r, &found) : 0;
    if (err == 0 && first) err = mx_snapshots_clean(r, &found);
    if (err == 0 && first) err = mx_snapshots_write_note(r, &found);
    return err < 0 ? err : mx_run_meet(r);
}

/* ------------------------------------------------------------------ end */

static int wait_for(struct mx_run *r, int64_t step) {
    struct mx_run_snapshots *s = &r->parts.snapshots;
    if (!s->made) return 0;
    const int64_t needed = step / s->asked.every * s->asked.every;
    pthread_mutex_lock(&s->lock);
    while (s->published < needed && s->err == 0) pthread_cond_wait(&s->changed, &s->lock);
    const int err = s->published < needed ? s->err : 0;
    pthread_mutex_unlock(&s->lock);
    return err;
}

/* last: all are to be durable now. */
static int publish_step(const struct mx_run_snapshots *s, int64_t step, bool last) {
    char from[PATH_MAX + 64], to[PATH_MAX + 64];
    int err = 0;
    for (int32_t i = 0; i < s->n_files && err == 0; i++) {
        mx_snapshot_joint_name(s, &s->file[i], step, from);
        snprintf(to, sizeof to, "%s/%s-%06lld.npy", s->asked.directory, s->file[i].name, (long long)step);
        err = mx_retry(mx_sys->rename(from, to));
        if (err == 0 && last && i + 1 == s->n_files) err = mx_sync_directory(to);
    }
    return err;
}

static int publish(struct mx_run *r, int64_t step) {
    const struct mx_run_snapshots *s = &r->parts.snapshots;
    const int64_t every = s->asked.every, committed = r->note.time;
    int err = 0;
    if (mx_run_alone(r) || every == 0 || step / every == committed / every) return 0;
    err = mx_run_meet_to_commit(r);
    for (int64_t t = (committed / every + 1) * every; t <= step && err == 0 && mx_run_leads(r); t += every)
        err = publish_step(s, t, t + every > step);
    return err;
}

static const char *failed(const struct mx_run *r) {
    const struct mx_run_snapshots *s = &r->parts.snapshots;
    return s->made && s->err < 0 ? s->why.text : NULL;
}

static void report(struct mx_run *r) {
    struct mx_report_snapshots *p = &r->report.snapshots;
    p->count = r->parts.snapshots.count;
    p->bytes = r->parts.snapshots.bytes;
    p->seconds = (double)r->parts.snapshots.ns * 1e-9;
}

static void abandon(struct mx_run *r) {
    for (int32_t i = 0; i < r->parts.snapshots.n_files; i++)
        mx_output_drop(&r->parts.snapshots.file[i].output);
}

static void close_snapshots(struct mx_run *r) {
    struct mx_run_snapshots *s = &r->parts.snapshots;
    abandon(r);
    if (s->lock_fd >= 0) mx_sys->close(s->lock_fd);
    s->lock_fd = -1;
    mx_block_free(s->block);
    if (s->made) pthread_cond_destroy(&s->changed), pthread_mutex_destroy(&s->lock);
    s->made = false;
    free(s->file);
    s->file = NULL;
    s->n_files = 0;
}

/* ------------------------------------------------------------------ the part */

static void make(struct mx_run *r) { r->parts.snapshots.lock_fd = -1; }

/* Those of a step that is committed are durable, and have their names. */
static int prepare(struct mx_run *r, int64_t step) {
    const int err = wait_for(r, step);
    return err < 0 ? err : publish(r, step);
}

static void note(struct mx_run *r) { r->note.snapshots = r->parts.snapshots.asked; }

const struct mx_part mx_part_snapshots = {
    .name = "snapshots",
    .make = make,
    .take = take,
    .check = check,
    .dram_bytes = dram_bytes,
    .predict = predict,
    .hold = hold,
    .begin = begin,
    .prepare = prepare,
    .note = note,
    .failed = failed,
    .report = report,
    .abandon = abandon,
    .close = close_snapshots,
};
