/* SPDX-License-Identifier: BSD-3-Clause */
/* snapshot_directory.c - whose are the files in the directory of snapshots? */
#include "run/parts/snapshots_private.h"

#include "grid/array.h"
#include "machine/file.h"
#include "machine/size.h"
#include "observe/json.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { CLOCK_STEP_S = 2 }; /* times of files are as coarse as that */
static const char note_name[] = "memext.snapshots", note_kind[] = "memext snapshots";

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
    char head[PATH_MAX], mx_snapshot_whole[PATH_MAX];
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
    if (realpath(slash == NULL ? "." : slash == head ? "/" : head, mx_snapshot_whole) == NULL) return -errno;
    const int length = snprintf(out, PATH_MAX, "%s%s%s", mx_snapshot_whole,
                                strcmp(mx_snapshot_whole, "/") == 0 ? "" : "/", name);
    return length > 0 && length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Gives the directory of the option, or else that of the resumed store. "" = there are no snapshots. */
int mx_snapshots_directory(const struct mx_run *r, char out[PATH_MAX]) {
    char word[PATH_MAX];
    out[0] = 0;
    if (r->o.snapshot_every == 0) return snprintf(out, PATH_MAX, "%s", r->parts.snapshots.asked.directory), 0;
    if (r->o.snapshot_length >= sizeof word) return -ENAMETOOLONG;
    snprintf(word, sizeof word, "%.*s", (int)r->o.snapshot_length, r->o.snapshot_directory);
    return absolute(word, out);
}

int mx_run_check_snapshot_name(const mx_run *r, const char *option, const char *path, bool place,
                               mx_why *why) {
    char directory[PATH_MAX], mx_snapshot_whole[PATH_MAX];
    struct stat st;
    if (path == NULL || path[0] == 0 || strcmp(path, "-") == 0) return 0;
    if (mx_snapshots_directory(r, directory) < 0 || directory[0] == 0 ||
        absolute(path, mx_snapshot_whole) < 0)
        return 0;
    const bool folder = stat(mx_snapshot_whole, &st) == 0 && S_ISDIR(st.st_mode);
    if (strcmp(mx_snapshot_whole, directory) == 0)
        return mx_fail(why, -EINVAL,
                       place && folder ? "%s %.300s would hold both the store and the snapshots: name "
                                         "another directory for --snapshot"
                                       : "%s %.300s is the directory of --snapshot; name another file",
                       option, mx_snapshot_whole);
    char *slash = strrchr(mx_snapshot_whole, '/');
    *slash = 0;
    if (strcmp(mx_snapshot_whole[0] != 0 ? mx_snapshot_whole : "/", directory) != 0) return 0;
    if (!mx_snapshot_name(slash + 1) && strcmp(slash + 1, note_name) != 0 && !is_temporary(slash + 1))
        return 0;
    return mx_fail(why, -EINVAL,
                   "%s %.300s has the name of a snapshot file, in the directory of --snapshot: name another "
                   "file, or another directory for the snapshots",
                   option, path);
}

/* ------------------------------------------------------------------ what it holds */

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

/* ------------------------------------------------------------------ whose is a file? */

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
    const size_t n = json_array_size(shape);
    struct mx_npy npy;
    struct stat st;
    const int fd =
        mx_retry(openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    if (fd < 0) return false;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return close(fd), false;
    if (mx_npy_open_fd(fd, name, true, n == 2 ? 2 : 3, NULL, &npy) < 0) return false; /* closed */
    bool same = npy.data_offset_bytes == MX_SNAPSHOT_HEAD_BYTES &&
                st.st_mtim.tv_sec >= whole_of(note, "begun_unix_s", 0) - CLOCK_STEP_S;
    if (json_is_string(type)) same &= strcmp(json_string_value(type), mx_dtype_name(npy.dtype)) == 0;
    for (size_t i = 0; i < n; i++)
        same &= json_integer_value(json_array_get(shape, i)) == npy.shape[i == n - 1 ? 2 : i];
    same &= st.st_size ==
            MX_SNAPSHOT_HEAD_BYTES + npy.shape[0] * npy.shape[1] * npy.shape[2] * mx_dtype_bytes(npy.dtype);
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
    const struct mx_run_snapshots *s = &r->parts.snapshots;
    for (int32_t i = 0; i < s->n_files; i++) {
        const int64_t step = step_of(name, s->file[i].name);
        if (step > r->first_time && step <= r->o.problem.nt && step % s->asked.every == 0) return true;
    }
    return false;
}

static int look(const struct mx_run *r, const char *directory, struct mx_snapshots_found *f) {
    struct dirent *e;
    struct stat st;
    DIR *d = opendir(directory);
    *f = (struct mx_snapshots_found){.run = 0};
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

static bool is_ours(const struct mx_run *r, const struct mx_snapshots_found *f) {
    return r->resumed && f->note && f->run != 0 && f->run == r->note.snapshots.run;
}

/* Is it there, can it be written, and is it nobody else's? *f: what it holds; nothing where it is not there.
 */
int mx_snapshots_check(struct mx_run *r, struct mx_snapshots_found *f) {
    const char *directory = r->parts.snapshots.asked.directory;
    struct stat st;
    *f = (struct mx_snapshots_found){.run = 0};
    int err = stat(directory, &st) == 0 ? 0 : -errno;
    if (err == -ENOENT) return 0; /* its own directory is there: absolute() has seen it */
    if (err == 0 && !S_ISDIR(st.st_mode)) err = -ENOTDIR;
    if (err == 0 && access(directory, W_OK | X_OK) != 0) err = -errno;
    if (err == 0) err = look(r, directory, f);
    if (err < 0)
        return mx_fail(&r->why, err, "the snapshots cannot be written to %.300s: %s; name another directory",
                       directory, strerror(-err));
    if (f->odd[0] != 0)
        return mx_fail(&r->why, -EEXIST,
                       "%.300s/%s is not a regular file; remove it or name another directory", directory,
                       f->odd);
    if (is_ours(r, f) || f->other[0] == 0) return 0;
    if (r->o.overwrite && f->strange[0] != 0)
        return mx_fail(&r->why, -EEXIST,
                       "%.300s/%s is in the way: this run would write a snapshot of that name, and the "
                       "directory's description does not list the file. Remove it, or name another directory",
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

int64_t mx_snapshot_bytes_of_step(const struct mx_run_snapshots *s) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < s->n_files; i++)
        bytes += MX_SNAPSHOT_HEAD_BYTES +
                 s->cells[0] * s->cells[1] * s->cells[2] * mx_dtype_bytes(s->file[i].dtype);
    return bytes;
}

/* One has to fit; that others are taken away meanwhile is possible. */
int mx_snapshots_check_space(struct mx_run *r) {
    const struct mx_run_snapshots *s = &r->parts.snapshots;
    char parent[PATH_MAX];
    struct statvfs fs;
    snprintf(parent, sizeof parent, "%s", s->asked.directory);
    if (access(parent, F_OK) != 0) *strrchr(parent, '/') = 0;
    if (statvfs(parent[0] != 0 ? parent : "/", &fs) != 0) return 0;
    const uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize,
                   one = (uint64_t)mx_snapshot_bytes_of_step(s);
    if (one > free_bytes)
        return mx_fail(
            &r->why, -ENOSPC,
            "a snapshot needs %s, and %.300s has %s free; name another directory, or give a larger STRIDE",
            mx_size(one).text, s->asked.directory, mx_size(free_bytes).text);
    if ((uint64_t)s->predicted_bytes > free_bytes && !r->o.quiet)
        mx_run_remark(r,
                      "the snapshots need %s, and %.300s has %s free: the run stops when the file system is "
                      "full, and can be resumed",
                      mx_size((uint64_t)s->predicted_bytes).text, s->asked.directory,
                      mx_size(free_bytes).text);
    return 0;
}

/* ------------------------------------------------------------------ begin */

/* Temporaries of dead processes; and with --overwrite what a former run of snapshots has left. */
int mx_snapshots_clean(struct mx_run *r, const struct mx_snapshots_found *f) {
    const struct mx_run_snapshots *s = &r->parts.snapshots;
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

int mx_snapshots_lock(struct mx_run *r) {
    struct mx_run_snapshots *s = &r->parts.snapshots;
    const char *directory = s->asked.directory;
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return mx_fail(&r->why, -errno, "the directory %.300s cannot be created: %s", directory,
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

/* Of all steps that are saved, from the first on. */
static void put_seconds(const struct mx_run *r, json_t *o) {
    const struct mx_simulated *t = &r->report.simulated;
    const int64_t every = r->parts.snapshots.asked.every;
    if (!t->known) return;
    if (t->each == NULL) {
        json_object_set_new(o, "time_step_s", json_real(t->step_s));
        return;
    }
    json_t *all = json_array();
    double seconds = 0;
    for (int64_t step = 1; step <= r->o.problem.nt; step++) {
        seconds += t->each->value[step <= t->each->n ? step - 1 : t->each->n - 1];
        if (step % every == 0) json_array_append_new(all, mx_json_number(seconds));
    }
    json_object_set_new(o, "simulated_s", all);
}

int mx_snapshots_write_note(struct mx_run *r, const struct mx_snapshots_found *f) {
    const struct mx_run_snapshots *s = &r->parts.snapshots;
    char path[PATH_MAX + sizeof note_name], run[17];
    struct mx_output output;
    json_t *former = is_ours(r, f) ? read_note(s->asked.directory) : NULL;
    json_t *o = json_object(), *cells = json_array(), *fields = json_array(), *types = json_array();
    for (int i = 0; i < 3; i++)
        if (i != 1 || !r->whole.flat) json_array_append_new(cells, json_integer(s->cells[i]));
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
    put_seconds(r, o);
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
