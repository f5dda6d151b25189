/* SPDX-License-Identifier: BSD-3-Clause */
#include "grid/array.h"
#include "machine/clock.h"
#include "machine/file.h"
#include "run/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { CLOCK_STEP_S = 2 }; /* times of files are as coarse as that */
enum { GATHER_BYTES = 1 << 20, WRITE_BACK_BYTES = 16 << 20, HEAD_BYTES = 128, NOTE_MOST = 1 << 16 };
static const char note_name[] = "memext.snapshots", note_kind[] = "memext snapshots";

/* A field of the state, and its file of the step that is open. */
struct mx_snapshot_file {
    char name[MX_FIELD_NAME + 4];
    enum mx_dtype dtype;
    int32_t array, index;
    struct mx_output output;
    struct mx_npy npy;
};

/* ------------------------------------------------------------------ names */

bool mx_snapshot_name(const char *name) {
    const char *dash = strrchr(name, '-');
    if (dash == NULL || dash == name) return false;
    const size_t field = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"),
                 digits = strspn(dash + 1, "0123456789");
    return name + field == dash && digits >= 6 && strcmp(dash + 1 + digits, ".npy") == 0;
}

/* What a process leaves that dies while it gives a snapshot or the note its name (output.h), or ranks that
 * die (name_joint below). */
static bool is_temporary(const char *name) {
    const char *mark = strstr(name, ".memext-"), *of_whom = mark != NULL ? mark + strlen(".memext-") : "";
    char of[256];
    const bool number = of_whom[0] != 0 && of_whom[strspn(of_whom, "0123456789")] == 0;
    if (name[0] != '.' || (!number && strcmp(of_whom, "ranks") != 0) || (size_t)(mark - name) >= sizeof of)
        return false;
    snprintf(of, sizeof of, "%.*s", (int)(mark - name - 1), name + 1);
    return mx_snapshot_name(of) || strcmp(of, note_name) == 0;
}

/* The absolute name of a path that need not be there, its directory being there. */
static int absolute(const char *path, char out[PATH_MAX]) {
    char head[PATH_MAX], whole[PATH_MAX];
    if (realpath(path, out) != NULL) return 0;
    if (errno != ENOENT) return -errno;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    if (n >= sizeof head) return -ENAMETOOLONG;
    snprintf(head, sizeof head, "%.*s", (int)n, path);
    char *slash = strrchr(head, '/');
    const char *name = slash != NULL ? slash + 1 : head;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || name[0] == 0) return -ENOENT;
    if (slash != NULL) *slash = 0;
    if (realpath(slash == NULL ? "." : slash == head ? "/" : head, whole) == NULL) return -errno;
    const int length = snprintf(out, PATH_MAX, "%s%s%s", whole, strcmp(whole, "/") == 0 ? "" : "/", name);
    return length > 0 && length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Of the option, or, of a run that goes on without it, of the store. "" = there are no snapshots. */
static int directory_of(const struct mx_run *r, char out[PATH_MAX]) {
    char word[PATH_MAX];
    out[0] = 0;
    if (r->o.snapshot_every == 0) return snprintf(out, PATH_MAX, "%s", r->snapshots.asked.directory), 0;
    if (r->o.snapshot_length >= sizeof word) return -ENAMETOOLONG;
    snprintf(word, sizeof word, "%.*s", (int)r->o.snapshot_length, r->o.snapshot_directory);
    return absolute(word, out);
}

int mx_run_check_snapshot_name(const mx_run *r, const char *option, const char *path, bool place,
                               mx_why *why) {
    char directory[PATH_MAX], whole[PATH_MAX];
    struct stat st;
    if (path == NULL || path[0] == 0 || strcmp(path, "-") == 0) return 0;
    if (directory_of(r, directory) < 0 || directory[0] == 0 || absolute(path, whole) < 0) return 0;
    const bool folder = stat(whole, &st) == 0 && S_ISDIR(st.st_mode);
    if (strcmp(whole, directory) == 0)
        return mx_fail(
            why, -EINVAL,
            place && folder
                ? "%s %.300s is to hold the store, and --snapshot its files; name a directory for them alone"
                : "%s %.300s is the directory of --snapshot; name another file",
            option, whole);
    char *slash = strrchr(whole, '/');
    *slash = 0;
    if (strcmp(whole[0] != 0 ? whole : "/", directory) != 0) return 0;
    if (!mx_snapshot_name(slash + 1) && strcmp(slash + 1, note_name) != 0 && !is_temporary(slash + 1))
        return 0;
    return mx_fail(why, -EINVAL,
                   "%s %.300s has the name of a file of --snapshot in its directory; name another file, or "
                   "another directory for the snapshots",
                   option, path);
}

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

/* Of the state: the step before of leapfrog is none of its own. */
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
            return mx_fail(
                why, -EINVAL,
                "--snapshot-fields: '%.60s' is no field of the state; give names with commas between "
                "them%s",
                w, p->system == NULL ? " (a built-in stencil has u)" : "");
    }
    return s->n_files > 0 ? 0 : mx_fail(why, -EINVAL, "--snapshot-fields names no field of the state");
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
        return mx_fail(why, -EINVAL,
                       "--snapshot every %lld steps of %lld: there would be none; give a number up to %lld",
                       (long long)s->asked.every, (long long)p->nt, (long long)p->nt);
    for (int i = 0; i < 3; i++) s->cells[i] = (extent[i] + s->asked.stride - 1) / s->asked.stride;
    return choose_fields(p, fields, why, s);
}

int mx_snapshots_plan(const struct mx_options *o, const struct mx_problem *p,
                      const struct mx_run_fields *fields, mx_why *why, struct mx_run_snapshots *s) {
    *s = (struct mx_run_snapshots){.asked = {.every = o->snapshot_every, .stride = o->snapshot_stride},
                                   .there = o->accel != NULL,
                                   .lock_fd = -1};
    if (o->snapshot_every == 0) return 0;
    int err = take_field_names(o, why, &s->asked);
    if (err == 0) err = count_cells(p, fields, why, s);
    if (err == 0) s->predicted_count = p->nt / s->asked.every;
    return err;
}

static int take_options(struct mx_run *r) {
    struct mx_snapshots_asked *a = &r->snapshots.asked;
    const struct mx_snapshots_asked *former = &r->note.snapshots;
    const struct mx_options *o = &r->o;
    if (r->resumed) *a = *former;
    if (o->snapshot_every == 0) return 0;
    int err = directory_of(r, a->directory);
    if (err < 0)
        return mx_fail(
            &r->why, err,
            "--snapshot %.300s: the directory cannot be had: %s; make the one that it is to lie in",
            o->snapshot_directory, strerror(-err));
    a->every = o->snapshot_every;
    a->stride = o->snapshot_stride;
    if ((err = take_field_names(o, &r->why, a)) < 0) return err;
    if (!r->resumed || former->every == 0) return 0;
    if (a->every == former->every && a->stride == former->stride && strcmp(a->fields, former->fields) == 0)
        return 0;
    return mx_fail(
        &r->why, -EINVAL,
        "%.300s holds a run with a snapshot every %lld steps of one cell of %lld%s%.100s: give the "
        "same with --resume, or leave --snapshot and --snapshot-fields out",
        o->path, (long long)former->every, (long long)former->stride, former->fields[0] != 0 ? " of " : "",
        former->fields);
}

/* ------------------------------------------------------------------ the directory */

/* What a directory holds. */
struct found {
    uint64_t run;     /* of its note; 0 = none */
    bool note;        /* there is one */
    char other[64];   /* a name in it besides the note and temporaries, "" = none; snapshots come first */
    char odd[64];     /* a snapshot's name that is no regular file */
    char strange[64]; /* the name of a snapshot to come, of a file that no run of the note has written */
    bool snapshots;
};

/* NULL: there is none. */
static json_t *read_note(const char *directory) {
    char path[PATH_MAX + sizeof note_name];
    snprintf(path, sizeof path, "%s/%s", directory, note_name);
    json_t *o = mx_file_check(path, NULL) == 0 ? json_load_file(path, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const char *kind = json_string_value(json_object_get(o, "kind"));
    if (kind != NULL && strcmp(kind, note_kind) == 0 && json_is_string(json_object_get(o, "run"))) return o;
    json_decref(o);
    return NULL;
}

static uint64_t run_of(const json_t *note) {
    return note != NULL ? strtoull(json_string_value(json_object_get(note, "run")), NULL, 16) : 0;
}

/* ---- whose is a file? */

/* The step of FIELD-000100.npy, written as a run writes it, where it is one of these fields; -1 = it is none.
 */
static int64_t step_of(const char *name, const char *field) {
    char again[2 * MX_FIELD_NAME + 32];
    const size_t n = strlen(field);
    if (!mx_snapshot_name(name) || strncmp(name, field, n) != 0 || name[n] != '-') return -1;
    const int64_t step = strtoll(name + n + 1, NULL, 10);
    snprintf(again, sizeof again, "%s-%06lld.npy", field, (long long)step);
    return strcmp(name, again) == 0 ? step : -1;
}

static int64_t whole_of(const json_t *note, const char *key, int64_t otherwise) {
    const json_t *value = json_object_get(note, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

/* Does it hold what a run of this note has written: its cells, since it began? */
static bool has_cells_of(const json_t *note, size_t field, int directory, const char *name) {
    const json_t *shape = json_object_get(note, "shape"),
                 *type = json_array_get(json_object_get(note, "types"), field);
    struct mx_npy npy;
    struct stat st;
    const int fd =
        mx_retry(openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    if (fd < 0) return false;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return close(fd), false;
    if (mx_npy_open_fd(fd, name, true, 3, NULL, &npy) < 0) return false; /* closed */
    bool same = npy.data_offset_bytes == HEAD_BYTES &&
                st.st_mtim.tv_sec >= whole_of(note, "begun_unix_s", 0) - CLOCK_STEP_S;
    if (json_is_string(type)) same &= strcmp(json_string_value(type), mx_dtype_name(npy.dtype)) == 0;
    for (size_t i = 0; i < 3; i++) same &= json_integer_value(json_array_get(shape, i)) == npy.shape[i];
    same &= st.st_size == HEAD_BYTES + npy.shape[0] * npy.shape[1] * npy.shape[2] * mx_dtype_bytes(npy.dtype);
    close(fd);
    return same;
}

/* Is it a file that the run of this note has written: one of its fields, at one of its steps, with its cells?
 * Others may have names that look like it, and stay. */
static bool is_of(const json_t *note, int directory, const char *name) {
    const json_t *fields = json_object_get(note, "fields");
    const int64_t every = whole_of(note, "every", 0), first = whole_of(note, "first", 0),
                  last = whole_of(note, "last", INT64_MAX);
    for (size_t i = 0; i < json_array_size(fields) && every > 0; i++) {
        const char *field = json_string_value(json_array_get(fields, i));
        const int64_t step = field != NULL ? step_of(name, field) : -1;
        if (step > first && step <= last && step % every == 0) return has_cells_of(note, i, directory, name);
    }
    return false;
}

/* A file that this run is going to write. */
static bool is_to_come(const struct mx_run *r, const char *name) {
    const struct mx_run_snapshots *s = &r->snapshots;
    for (int32_t i = 0; i < s->n_files; i++) {
        const int64_t step = step_of(name, s->file[i].name);
        if (step > r->first_time && step <= r->o.problem.nt && step % s->asked.every == 0) return true;
    }
    return false;
}

static int look(const struct mx_run *r, const char *directory, struct found *f) {
    struct dirent *e;
    struct stat st;
    DIR *d = opendir(directory);
    *f = (struct found){.run = 0};
    if (d == NULL) return -errno;
    json_t *note = read_note(directory);
    f->note = note != NULL;
    f->run = run_of(note);
    while ((e = readdir(d)) != NULL) {
        const bool mine = mx_snapshot_name(e->d_name);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            strcmp(e->d_name, "lost+found") == 0 || (f->note && strcmp(e->d_name, note_name) == 0) ||
            is_temporary(e->d_name))
            continue;
        if (mine || !f->snapshots) snprintf(f->other, sizeof f->other, "%.63s", e->d_name);
        f->snapshots |= mine;
        if (mine && (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)))
            snprintf(f->odd, sizeof f->odd, "%.63s", e->d_name);
        if (mine && is_to_come(r, e->d_name) && !is_of(note, dirfd(d), e->d_name))
            snprintf(f->strange, sizeof f->strange, "%.63s", e->d_name);
    }
    json_decref(note);
    closedir(d);
    return 0;
}

static bool is_ours(const struct mx_run *r, const struct found *f) {
    return r->resumed && f->note && f->run != 0 && f->run == r->note.snapshots.run;
}

/* Is it there, can it be written, and is it nobody else's? *f: what it holds; nothing where it is not there.
 */
static int check_directory(struct mx_run *r, struct found *f) {
    const char *directory = r->snapshots.asked.directory;
    struct stat st;
    *f = (struct found){.run = 0};
    int err = stat(directory, &st) == 0 ? 0 : -errno;
    if (err == -ENOENT) return 0; /* its own directory is there: absolute() has seen it */
    if (err == 0 && !S_ISDIR(st.st_mode)) err = -ENOTDIR;
    if (err == 0 && access(directory, W_OK | X_OK) != 0) err = -errno;
    if (err == 0) err = look(r, directory, f);
    if (err < 0)
        return mx_fail(&r->why, err, "the snapshots cannot be written to %.300s: %s; name another directory",
                       directory, strerror(-err));
    if (f->odd[0] != 0)
        return mx_fail(&r->why, -EEXIST, "%.300s/%s is no regular file; remove it or name another directory",
                       directory, f->odd);
    if (is_ours(r, f) || f->other[0] == 0) return 0;
    if (r->o.overwrite && f->strange[0] != 0)
        return mx_fail(
            &r->why, -EEXIST,
            "%.300s/%s is no file of the snapshots that the directory's note tells of, and this run would "
            "write one of that name: remove it, or name another directory",
            directory, f->strange);
    if (r->o.overwrite) return 0;
    return mx_fail(
        &r->why, -EEXIST,
        f->snapshots && f->note
            ? "%.300s holds snapshots of another run (%s); name another directory, or give "
              "--overwrite to remove them"
            : "%.300s is not empty (%s); name a directory for the snapshots alone, or give --overwrite",
        directory, f->other);
}

static int64_t bytes_of_step(const struct mx_run_snapshots *s) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < s->n_files; i++)
        bytes += HEAD_BYTES + s->cells[0] * s->cells[1] * s->cells[2] * mx_dtype_bytes(s->file[i].dtype);
    return bytes;
}

/* One has to fit; that others are taken away meanwhile is possible. */
static int check_space(struct mx_run *r) {
    const struct mx_run_snapshots *s = &r->snapshots;
    char parent[PATH_MAX], a[32], b[32];
    struct statvfs fs;
    snprintf(parent, sizeof parent, "%s", s->asked.directory);
    if (access(parent, F_OK) != 0) *strrchr(parent, '/') = 0;
    if (statvfs(parent[0] != 0 ? parent : "/", &fs) != 0) return 0;
    const uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize, one = (uint64_t)bytes_of_step(s);
    if (one > free_bytes)
        return mx_fail(
            &r->why, -ENOSPC,
            "a snapshot takes %s, and %.300s has %s free; name another directory, or a larger STRIDE",
            mx_format_size(one, a, sizeof a), s->asked.directory, mx_format_size(free_bytes, b, sizeof b));
    if ((uint64_t)s->predicted_bytes > free_bytes && !r->o.quiet)
        mx_run_remark(
            r,
            "the snapshots take %s, and %.300s has %s free: the run ends when it is full, and can be "
            "resumed",
            mx_format_size((uint64_t)s->predicted_bytes, a, sizeof a), s->asked.directory,
            mx_format_size(free_bytes, b, sizeof b));
    return 0;
}

int mx_run_take_snapshots(struct mx_run *r) {
    struct mx_run_snapshots *s = &r->snapshots;
    const struct mx_problem *p = &r->o.problem;
    struct found found;
    int err = take_options(r);
    if (err < 0 || s->asked.every == 0) return err;
    err = count_cells(p, &r->fields, &r->why, s);
    if (err < 0) return err;
    s->predicted_count = p->nt / s->asked.every - r->first_time / s->asked.every;
    s->predicted_bytes = s->predicted_count * bytes_of_step(s);
    s->published = r->first_time;
    s->there = r->o.accel != NULL;
    if ((err = mx_run_agree_number(r, &s->asked.run)) < 0) return err;
    r->o.problem.due[1] = s->asked.every;
    if (s->predicted_count == 0) return 0;
    err = mx_run_check_names(r);
    if (err == 0) err = check_directory(r, &found);
    return err == 0 ? check_space(r) : err;
}

uint64_t mx_snapshots_bytes(const struct mx_run_snapshots *s) {
    if (s->predicted_count == 0) return 0;
    return GATHER_BYTES + (uint64_t)(s->n_files * (int64_t)sizeof *s->file) + s->plane_bytes;
}

/* Those of algorithms that rewrite their Buffers in place are read from them, a plane at a time, and so are
 * those of an accelerator. */
static bool are_read(const struct mx_run_snapshots *s, const char *algorithm) {
    const struct mx_algorithm *a = mx_algorithm_find(algorithm);
    return a->uses_blocks && (!a->resumable || s->there);
}

static int64_t own_planes(const struct mx_run_snapshots *s, const struct mx_problem *p) {
    const int64_t stride = s->asked.stride;
    return (p->first_plane + p->nz + stride - 1) / stride - (p->first_plane + stride - 1) / stride;
}

int64_t mx_snapshots_read_bytes(const struct mx_run_snapshots *s, const struct mx_problem *p,
                                const char *algorithm, const struct mx_layout *layout) {
    if (s->predicted_count == 0 || !are_read(s, algorithm)) return 0;
    return s->predicted_count * own_planes(s, p) * layout->plane_pitch_bytes *
           (mx_form(p) == MX_STAGGERED ? 2 : 1);
}

bool mx_snapshots_fit(struct mx_run_snapshots *s, const char *algorithm, const struct mx_layout *layout) {
    const uint64_t plane = are_read(s, algorithm) ? (uint64_t)layout->plane_pitch_bytes : 0;
    if (s->predicted_count == 0 || plane <= s->plane_bytes) return true;
    s->plane_bytes = plane;
    return false;
}

/* Of the planes of this rank, and rank 0 writes the heads. */
static int64_t own_bytes_of_step(const struct mx_run *r) {
    const struct mx_run_snapshots *s = &r->snapshots;
    const struct mx_problem *p = &r->o.problem;
    const int64_t planes = own_planes(s, p);
    int64_t bytes = 0;
    for (int32_t i = 0; i < s->n_files; i++)
        bytes += (r->ranks.rank == 0 ? HEAD_BYTES : 0) +
                 planes * s->cells[1] * s->cells[2] * mx_dtype_bytes(s->file[i].dtype);
    return bytes;
}

void mx_run_predict_snapshots(struct mx_run *r) {
    struct mx_run_snapshots *s = &r->snapshots;
    if (s->predicted_count > 0) s->predicted_bytes = s->predicted_count * own_bytes_of_step(r);
    struct mx_report *p = &r->report;
    p->snapshots = (struct mx_report_snapshots){.every = s->asked.every,
                                                .stride = s->asked.stride,
                                                .directory = s->asked.directory,
                                                .predicted_count = s->predicted_count,
                                                .predicted_bytes = s->predicted_bytes};
    const int64_t read = mx_snapshots_read_bytes(s, &r->o.problem, r->algorithm->name, &p->layout);
    p->predicted_read_bytes += read;
    p->accel.more_put_bytes -= read;
}

/* ------------------------------------------------------------------ begin */

/* Temporaries of dead processes; and with --overwrite what a former run of snapshots has left. */
static int clean(struct mx_run *r, const struct found *f) {
    const struct mx_run_snapshots *s = &r->snapshots;
    char path[PATH_MAX + 256];
    struct dirent *e;
    int err = 0;
    DIR *d = opendir(s->asked.directory);
    if (d == NULL)
        return mx_fail(&r->why, -errno, "%.300s cannot be read: %s", s->asked.directory, strerror(errno));
    json_t *former = f->note && !is_ours(r, f) ? read_note(s->asked.directory) : NULL;
    while (err == 0 && (e = readdir(d)) != NULL) {
        if (!is_temporary(e->d_name) && !is_of(former, dirfd(d), e->d_name)) continue;
        snprintf(path, sizeof path, "%s/%s", s->asked.directory, e->d_name);
        if ((err = mx_retry(mx_sys->unlink(path))) == -ENOENT) err = 0;
        if (err < 0) mx_fail(&r->why, err, "%.300s cannot be removed: %s", path, strerror(-err));
    }
    json_decref(former);
    closedir(d);
    return err;
}

static int lock_directory(struct mx_run *r) {
    struct mx_run_snapshots *s = &r->snapshots;
    const char *directory = s->asked.directory;
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return mx_fail(&r->why, -errno, "the directory %.300s cannot be made: %s", directory,
                       strerror(errno));
    s->lock_fd = mx_retry(mx_sys->open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
    if (s->lock_fd < 0)
        return mx_fail(&r->why, s->lock_fd, "%.300s cannot be opened: %s", directory, strerror(-s->lock_fd));
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return mx_fail(&r->why, -EBUSY,
                       "%.300s is in use by the snapshots of another memext; name another directory",
                       directory);
    return 0;
}

static int write_directory_note(struct mx_run *r, const struct found *f) {
    const struct mx_run_snapshots *s = &r->snapshots;
    char path[PATH_MAX + sizeof note_name], run[17];
    struct mx_output output;
    json_t *former = is_ours(r, f) ? read_note(s->asked.directory) : NULL;
    json_t *o = json_object(), *cells = json_array(), *fields = json_array(), *types = json_array();
    for (int i = 0; i < 3; i++) json_array_append_new(cells, json_integer(s->cells[i]));
    for (int32_t i = 0; i < s->n_files; i++) json_array_append_new(fields, json_string(s->file[i].name));
    for (int32_t i = 0; i < s->n_files; i++)
        json_array_append_new(types, json_string(mx_dtype_name(s->file[i].dtype)));
    snprintf(run, sizeof run, "%016llx", (unsigned long long)s->asked.run);
    json_object_set_new(o, "kind", json_string(note_kind));
    json_object_set_new(o, "memext", json_string(MX_VERSION));
    json_object_set_new(o, "run", json_string(run));
    json_object_set_new(o, "every", json_integer(s->asked.every));
    json_object_set_new(o, "stride", json_integer(s->asked.stride));
    json_object_set_new(o, "shape", cells);
    json_object_set_new(o, "fields", fields);
    json_object_set_new(o, "types", types);
    /* Which files are its own: those of these steps, since then. */
    json_object_set_new(o, "first",
                        json_integer(whole_of(former, "first", former != NULL ? 0 : r->first_time)));
    json_object_set_new(o, "last", json_integer(r->o.problem.nt));
    json_object_set_new(o, "begun_unix_s",
                        json_integer(whole_of(former, "begun_unix_s", former != NULL ? 0 : time(NULL))));
    json_decref(former);
    char *text = json_dumps(o, JSON_INDENT(2));
    json_decref(o);
    snprintf(path, sizeof path, "%s/%s", s->asked.directory, note_name);
    int err = text == NULL ? mx_fail(&r->why, -ENOMEM, "no memory for a note of the snapshots") : 0;
    if (err == 0)
        err = mx_output_open(path, "the note of the snapshots", MX_OUTPUT_REPLACE, &r->why, &output);
    if (err == 0) {
        err = mx_write_all(output.fd, text, strlen(text), 0);
        if (err < 0) mx_fail(&r->why, err, "%.300s cannot be written: %s", path, strerror(-err));
        if (err == 0) err = mx_output_publish(&output, "the note of the snapshots", &r->why);
        mx_output_drop(&output);
    }
    free(text);
    return err;
}

static int rows(void *context, int64_t step, int array, int64_t z, int64_t y0, int64_t y1, const char *from,
                int64_t pitch, mx_why *why);
static int whole(void *context, int64_t step, mx_why *why);

int mx_run_open_snapshots(struct mx_run *r) {
    struct mx_run_snapshots *s = &r->snapshots;
    struct mx_block_options options = {.size = sizeof options, .budget = r->budget};
    struct found found;
    if (s->predicted_count == 0) return 0;
    const bool first = r->ranks.rank == 0;
    int err = first ? lock_directory(r) : 0;
    if (err == 0 && first) err = check_directory(r, &found); /* it is locked now: is it still what it was? */
    const int64_t row = s->cells[2] * (int64_t)sizeof(double);
    if (err == 0)
        err = mx_block_create(&options, (uint64_t)(row > GATHER_BYTES ? row : GATHER_BYTES), &r->why,
                              &s->block);
    if (err < 0) return err;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->made = true;
    s->taking = (struct mx_taking){.every = s->asked.every,
                                   .stride = s->asked.stride,
                                   .from_stores = r->algorithm->resumable && r->o.accel == NULL,
                                   .rows = rows,
                                   .whole = whole,
                                   .context = r};
    return 0;
}

/* Nothing is refused any more: what is in the way goes. */
int mx_run_begin_snapshots(struct mx_run *r) {
    struct found found;
    const bool first = r->ranks.rank == 0;
    if (r->snapshots.predicted_count == 0) return 0;
    int err = first ? check_directory(r, &found) : 0;
    if (err == 0 && first) err = clean(r, &found);
    if (err == 0 && first) err = write_directory_note(r, &found);
    return err < 0 ? err : mx_run_meet(r);
}

/* ------------------------------------------------------------------ rows */

static int fail_file(const struct mx_snapshot_file *f, int err, mx_why *why) {
    return mx_fail(why, err, "the snapshot %.300s cannot be written: %s%s", f->output.path, strerror(-err),
                   err == -ENOSPC || err == -EDQUOT ? "; free space and go on with --resume" : "");
}

/* The file of a step that all ranks write to, until it has its name; what a killed run has left of it is a
 * temporary for the next. */
static void name_joint(const struct mx_run_snapshots *s, const struct mx_snapshot_file *f, int64_t step,
                       char path[PATH_MAX + 64]) {
    snprintf(path, PATH_MAX + 64, "%s/.%s-%06lld.npy.memext-ranks", s->asked.directory, f->name,
             (long long)step);
}

/* Whoever comes first makes it. */
static int open_joint(struct mx_run *r, struct mx_snapshot_file *f, int64_t step, mx_why *why) {
    struct mx_run_snapshots *s = &r->snapshots;
    char path[PATH_MAX + 64];
    const int64_t bytes = HEAD_BYTES + s->cells[0] * s->cells[1] * s->cells[2] * mx_dtype_bytes(f->dtype);
    name_joint(s, f, step, path);
    f->output = (struct mx_output){.fd = -1};
    snprintf(f->output.path, sizeof f->output.path, "%.4095s", path);
    const int fd = mx_retry(mx_sys->open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (fd < 0) return mx_fail(why, fd, "the snapshot %.300s cannot be written: %s", path, strerror(-fd));
    f->output.fd = fd;
    if (r->ranks.rank > 0) return 0;
    int err = mx_output_reserve(&f->output, (uint64_t)bytes, "the snapshot", why);
    if (err == 0) err = mx_npy_begin(fd, f->dtype, s->cells, why, &f->npy);
    if (err == 0) s->bytes += HEAD_BYTES;
    return err;
}

static int begin_step(struct mx_run *r, int64_t step, mx_why *why) {
    struct mx_run_snapshots *s = &r->snapshots;
    int err = 0;
    s->open_step = step;
    for (int32_t i = 0; i < s->n_files && err == 0; i++) {
        struct mx_snapshot_file *f = &s->file[i];
        char path[PATH_MAX + 64];
        if (mx_is_rank(&r->ranks)) {
            err = open_joint(r, f, step, why);
            continue;
        }
        const int64_t bytes = HEAD_BYTES + s->cells[0] * s->cells[1] * s->cells[2] * mx_dtype_bytes(f->dtype);
        snprintf(path, sizeof path, "%s/%s-%06lld.npy", s->asked.directory, f->name, (long long)step);
        err = mx_output_open(path, "the snapshot",
                             MX_OUTPUT_SWEPT | (r->resumed || r->o.overwrite ? MX_OUTPUT_REPLACE : 0), why,
                             &f->output);
        if (err == 0) err = mx_output_reserve(&f->output, (uint64_t)bytes, "the snapshot", why);
        if (err == 0) err = mx_npy_begin(f->output.fd, f->dtype, s->cells, why, &f->npy);
        if (err == 0) s->bytes += HEAD_BYTES;
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
    else
        for (int64_t x = 0; x < n; x++) ((uint32_t *)to)[x] = ((const uint32_t *)from)[x * stride];
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
                           HEAD_BYTES + (zi * s->cells[1] + yi) * row);
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

static int rows(void *context, int64_t step, int array, int64_t z, int64_t y0, int64_t y1, const char *from,
                int64_t pitch, mx_why *why) {
    struct mx_run *r = context;
    struct mx_run_snapshots *s = &r->snapshots;
    const uint64_t begin = mx_clock_ns();
    const int64_t h = r->o.problem.h, stride = s->asked.stride,
                  zi = (z - h + r->o.problem.first_plane) / stride, yi = (y0 - h + stride - 1) / stride,
                  end = (y1 - h + stride - 1) / stride;
    const bool staggered = mx_form(&r->o.problem) == MX_STAGGERED;
    int err = s->open_step == step ? 0 : begin_step(r, step, why);
    for (int32_t i = 0; i < s->n_files && err == 0; i++) {
        const struct mx_snapshot_file *f = &s->file[i];
        const int64_t offset =
            r->report.layout.field_offset_bytes[array][f->index] + h * mx_dtype_bytes(f->dtype);
        if (staggered && f->array != array) continue;
        err = write_rows(s, f, zi, yi, end - yi, from + (yi * stride + h - y0) * pitch + offset, pitch, why);
    }
    return settle(s, 0, err, why, begin);
}

/* All files of a step are on the disk before the first of them appears. */
static int whole(void *context, int64_t step, mx_why *why) {
    struct mx_run *r = context;
    struct mx_run_snapshots *s = &r->snapshots;
    const uint64_t begin = mx_clock_ns();
    int err = s->open_step == step ? 0 : begin_step(r, step, why);
    for (int32_t i = 0; i < s->n_files && err == 0; i++) {
        err = mx_retry(mx_sys->fdatasync(s->file[i].output.fd));
        if (err < 0) fail_file(&s->file[i], err, why);
        posix_fadvise(s->file[i].output.fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    for (int32_t i = 0; i < s->n_files && err == 0; i++)
        if (mx_is_rank(&r->ranks))
            mx_output_drop(&s->file[i].output); /* it stays, see mx_run_publish_snapshots */
        else
            err = mx_output_publish(&s->file[i].output, "the snapshot", why);
    s->open_step = 0;
    return settle(s, err == 0 ? step : 0, err, why, begin);
}

/* ------------------------------------------------------------------ end */

int mx_run_sync_snapshots(struct mx_run *r, int64_t step) {
    struct mx_run_snapshots *s = &r->snapshots;
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
        name_joint(s, &s->file[i], step, from);
        snprintf(to, sizeof to, "%s/%s-%06lld.npy", s->asked.directory, s->file[i].name, (long long)step);
        err = mx_retry(mx_sys->rename(from, to));
        if (err == 0 && last && i + 1 == s->n_files) err = mx_sync_directory(to);
    }
    return err;
}

int mx_run_publish_snapshots(struct mx_run *r, int64_t step) {
    const struct mx_run_snapshots *s = &r->snapshots;
    const int64_t every = s->asked.every, committed = r->note.time;
    int err = 0;
    if (!mx_is_rank(&r->ranks) || every == 0 || step / every == committed / every) return 0;
    err = mx_link_meet(r->ranks.link, MX_CHANNEL_COMMIT, NULL);
    for (int64_t t = (committed / every + 1) * every; t <= step && err == 0 && r->ranks.rank == 0; t += every)
        err = publish_step(s, t, t + every > step);
    return err;
}

const char *mx_run_snapshots_failed(struct mx_run *r) {
    const struct mx_run_snapshots *s = &r->snapshots;
    return s->made && s->err < 0 ? s->why.text : NULL;
}

void mx_run_report_snapshots(struct mx_run *r) {
    struct mx_report_snapshots *p = &r->report.snapshots;
    p->count = r->snapshots.count;
    p->bytes = r->snapshots.bytes;
    p->seconds = (double)r->snapshots.ns * 1e-9;
}

void mx_run_abandon_snapshots(struct mx_run *r) {
    for (int32_t i = 0; i < r->snapshots.n_files; i++) mx_output_drop(&r->snapshots.file[i].output);
}

void mx_snapshots_forget(struct mx_run_snapshots *s) {
    free(s->file);
    s->file = NULL;
    s->n_files = 0;
}

void mx_run_close_snapshots(struct mx_run *r) {
    struct mx_run_snapshots *s = &r->snapshots;
    mx_run_abandon_snapshots(r);
    if (s->lock_fd >= 0) mx_sys->close(s->lock_fd);
    s->lock_fd = -1;
    mx_block_free(s->block);
    if (s->made) pthread_cond_destroy(&s->changed), pthread_mutex_destroy(&s->lock);
    s->made = false;
    mx_snapshots_forget(s);
}
