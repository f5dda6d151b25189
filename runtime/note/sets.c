/* SPDX-License-Identifier: BSD-3-Clause */
#include "note/sets.h"

#include "core/device.h"
#include "core/place.h"
#include "files/folder.h"
#include "link/link.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STORE_NAME "memext.store"

/* ------------------------------------------------------------------ places */

bool mx_is_directory(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool mx_is_base(const char *path) {
    return mx_is_directory(path) || (strstr(path, "%r") != NULL && access(path, F_OK) != 0);
}

int mx_place_of(const char *base, int32_t ranks, int32_t rank, int32_t cut, char out[PATH_MAX]) {
    const char *at = strstr(base, "%r");
    char end[32] = "";
    int n;
    if (cut > 0) snprintf(end, sizeof end, "/cut-%d", cut);
    if (at != NULL && (ranks > 1 || !mx_is_directory(base)))
        n = snprintf(out, PATH_MAX, "%.*s%d%s%s", (int)(at - base), base, rank, at + 2, end);
    else if (ranks > 1)
        n = snprintf(out, PATH_MAX, "%s/rank-%d%s", base, rank, end);
    else
        n = snprintf(out, PATH_MAX, "%s%s", base, end);
    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

enum { FILE_BYTES = MX_SET_NAME_BYTES };
_Static_assert(FILE_BYTES > PATH_MAX + (int)sizeof STORE_NAME, "room for the name of a store");

static void file_in(const char *path, char file[FILE_BYTES]) {
    snprintf(file, FILE_BYTES, "%s/%s", path, STORE_NAME);
}

static bool has_file(const char *path) {
    char file[FILE_BYTES];
    struct stat st;
    file_in(path, file);
    return lstat(file, &st) == 0 && S_ISREG(st.st_mode);
}

/* A store that was only begun is empty, or has nothing in its first bytes. */
static bool is_begun(const char *path) {
    char file[FILE_BYTES], head[4096];
    file_in(path, file);
    const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
    bool blank = n >= 0;
    for (ssize_t i = 0; i < n; i++) blank &= head[i] == 0;
    if (fd >= 0) close(fd);
    return blank;
}

/* In a directory that runs make, files that are not stores yet are listed too. */
static void see(struct mx_sight *s, const char *path, int32_t folder, bool made) {
    struct mx_stored *t = s->stored;
    const int err = mx_stored_look(path, NULL, t);
    if ((err < 0 && (!made || !has_file(path))) || (err == 0 && t->wavefront)) return;
    if (err < 0 && folder == 0 && !is_begun(path)) return;
    if (s->n == s->room) {
        struct mx_seen *more = realloc(s->seen, (size_t)(s->room + 64) * sizeof *more);
        if (more == NULL) return;
        s->seen = more;
        s->room += 64;
    }
    struct mx_seen *e = &s->seen[s->n++];
    *e = (struct mx_seen){.folder = folder, .foreign = err < 0 && !is_begun(path)};
    /* A finished one without a note was about to be removed. */
    e->begun = err < 0 ? !e->foreign
                       : !t->facts.in_use && t->facts.note_bytes == 0 && t->facts.finished != MX_RUN_KEPT;
    snprintf(e->path, sizeof e->path, "%s", path);
    if (err < 0 || !t->have_note) return;
    e->generation = t->facts.generation;
    e->finished = t->facts.finished;
    const struct mx_note *n = &t->note;
    e->ranks = n->ranks > 0 ? n->ranks : 1;
    e->rank = n->rank;
    e->cut = n->cut;
    e->run = n->run != 0 ? n->run : (uint64_t)e->ranks;
    e->time = n->time;
    e->first_plane = n->problem.first_plane;
    e->all_planes = mx_all_planes(&n->problem);
    e->before_time = n->ranks > 0 ? n->before_time : n->time;
    e->moment = mx_note_moment(n);
    e->before_moment = n->ranks > 0 ? mx_note_moment_before(n) : e->moment;
    e->pending = n->pending;
}

/* The number behind a prefix, as names of ours have it; -1 = none. */
static int32_t number_of(const char *name, const char *prefix) {
    const size_t n = strlen(prefix);
    const char *digits = name + n;
    if (strncmp(name, prefix, n) != 0 || strspn(digits, "0123456789") != strlen(digits)) return -1;
    return digits[0] == 0 || strlen(digits) > 7 ? -1 : (int32_t)atoi(digits);
}

/* made: runs make directories of this name. */
static void see_cuts(struct mx_sight *s, const char *path, bool made) {
    char inside[PATH_MAX];
    struct dirent *e;
    see(s, path, 0, made);
    DIR *d = opendir(path);
    while (d != NULL && (e = readdir(d)) != NULL) {
        const int32_t cut = number_of(e->d_name, "cut-");
        if (cut > 0 && snprintf(inside, sizeof inside, "%s/%s", path, e->d_name) < PATH_MAX)
            see(s, inside, cut, true);
    }
    if (d != NULL) closedir(d);
}

void mx_see_cuts(struct mx_sight *s, const char *path) { see_cuts(s, path, false); }

static int compare_numbers(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Places that a base with %r names, one after the other, as far as they are there: some may be missing in
 * between. */
static void each_numbered(const char *base, void (*visit)(void *context, const char *path), void *context) {
    char path[PATH_MAX], folder[PATH_MAX];
    const char *at = strstr(base, "%r"), *name = at, *rest = at + 2 + strcspn(at + 2, "/");
    int32_t number[MX_RANKS_MOST], n = 0;
    while (name > base && name[-1] != '/') name--;
    const size_t before = (size_t)(at - name), behind = (size_t)(rest - at - 2);
    if (strlen(base) >= sizeof folder) return;
    snprintf(folder, sizeof folder, "%.*s", name > base ? (int)(name - base) : 1, name > base ? base : ".");
    struct dirent *e;
    DIR *d = opendir(folder);
    while (d != NULL && (e = readdir(d)) != NULL && n < MX_RANKS_MOST) {
        const size_t length = strlen(e->d_name), digits = length - before - behind;
        if (length <= before + behind || digits > 7 || memcmp(e->d_name, name, before) != 0 ||
            memcmp(e->d_name + length - behind, at + 2, behind) != 0 ||
            strspn(e->d_name + before, "0123456789") < digits)
            continue;
        if (digits > 1 && e->d_name[before] == '0') continue; /* run-07 is a copy of somebody's, not run-7 */
        number[n++] = (int32_t)atoi(e->d_name + before);
    }
    if (d != NULL) closedir(d);
    qsort(number, (size_t)n, sizeof number[0], compare_numbers);
    for (int32_t i = 0; i < n; i++)
        if (mx_place_of(base, 2, number[i], 0, path) == 0 && access(path, F_OK) == 0) visit(context, path);
}

static void see_numbered(void *sight, const char *path) { see_cuts(sight, path, mx_folder_is_made(path)); }

int mx_see_all(const char *base, mx_why *why, struct mx_sight *s) {
    char path[PATH_MAX];
    struct dirent *e;
    *s = (struct mx_sight){.stored = calloc(1, sizeof *s->stored)};
    if (s->stored == NULL) return mx_fail(why, -ENOMEM, "no memory for the notes of stores");
    const bool numbered = strstr(base, "%r") != NULL && !mx_is_directory(base);
    if (numbered) return each_numbered(base, see_numbered, s), 0;
    mx_see_cuts(s, base);
    DIR *d = opendir(base);
    while (d != NULL && (e = readdir(d)) != NULL)
        if (number_of(e->d_name, "rank-") >= 0 &&
            snprintf(path, sizeof path, "%s/%s", base, e->d_name) < PATH_MAX)
            see_cuts(s, path, true);
    if (d != NULL) closedir(d);
    return 0;
}

void mx_forget(struct mx_sight *s) {
    free(s->seen);
    free(s->stored);
}

/* ------------------------------------------------------------------ which set */

const struct mx_seen *mx_find_rank(const struct mx_sight *s, const struct mx_seen *of, int32_t rank) {
    for (int32_t i = 0; i < s->n; i++) {
        const struct mx_seen *e = &s->seen[i];
        if (e->run == of->run && e->cut == of->cut && e->ranks == of->ranks && e->rank == rank) return e;
    }
    return NULL;
}

int64_t mx_common_moment(const struct mx_sight *s, const struct mx_seen *first) {
    int64_t least = first->moment;
    for (int32_t k = 0; k < first->ranks; k++) {
        const struct mx_seen *e = mx_find_rank(s, first, k);
        if (e == NULL) return -1;
        if (e->moment < least) least = e->moment;
    }
    for (int32_t k = 0; k < first->ranks; k++) {
        const struct mx_seen *e = mx_find_rank(s, first, k);
        if (e->moment != least && e->before_moment != least) return -1;
    }
    return least;
}

int64_t mx_common_step(const struct mx_sight *s, const struct mx_seen *first) {
    const int64_t moment = mx_common_moment(s, first);
    return moment < 0 ? -1 : first->moment == moment ? first->time : first->before_time;
}

bool mx_set_is_pending(const struct mx_sight *s, const struct mx_seen *first) {
    bool pending = false;
    for (int32_t k = 0; k < first->ranks; k++) {
        const struct mx_seen *e = mx_find_rank(s, first, k);
        pending |= e != NULL && e->pending;
    }
    return pending;
}

int32_t mx_newest_rank(const struct mx_sight *s, const struct mx_seen *of) {
    int32_t newest = 0;
    for (int32_t k = 1; k < of->ranks; k++)
        if (mx_find_rank(s, of, k)->moment > mx_find_rank(s, of, newest)->moment) newest = k;
    return newest;
}

bool mx_is_whole(const struct mx_sight *s, const struct mx_seen *e) {
    return e->run != 0 && e->rank == 0 && mx_common_step(s, e) >= 0;
}

bool mx_is_newest(const struct mx_sight *s, const struct mx_seen *e) {
    for (int32_t i = 0; i < s->n; i++)
        if (s->seen[i].run == e->run && s->seen[i].cut > e->cut && mx_is_whole(s, &s->seen[i])) return false;
    return true;
}

static int refuse_several(const char *base, const struct mx_seen *a, const struct mx_seen *b, int32_t ranks,
                          mx_why *why) {
    return mx_fail(why, -EINVAL, "%.200s holds states of two runs, one with %d %s and one with %d: %s", base,
                   a->ranks, a->ranks > 1 ? "ranks" : "rank", b->ranks,
                   ranks > 0 ? "choose one with --ranks"
                             : "continue one of them with memext run --resume --ranks and --output");
}

static bool is_wanted(const struct mx_seen *e, const char *base, int32_t ranks) {
    return ranks > 0 ? e->ranks == ranks : e->ranks == 1 && strcmp(e->path, base) == 0;
}

int mx_newest_set(const struct mx_sight *s, const char *base, int32_t ranks, mx_why *why,
                  const struct mx_seen **out) {
    const struct mx_seen *found = NULL, *other = NULL;
    for (int wanted = 1; wanted >= 0 && found == NULL; wanted--)
        for (int32_t i = 0; i < s->n; i++) {
            const struct mx_seen *e = &s->seen[i];
            if (!mx_is_whole(s, e) || !mx_is_newest(s, e) || (wanted && !is_wanted(e, base, ranks))) continue;
            if (found == NULL)
                found = e;
            else
                other = e;
        }
    if (other != NULL) return refuse_several(base, found, other, ranks, why);
    *out = found;
    return 0;
}

bool mx_set_counts(const struct mx_sight *s, const struct mx_seen *e) {
    return mx_is_whole(s, e) && mx_is_newest(s, e);
}

const char *mx_set_name(const struct mx_sight *s, const struct mx_seen *first, const char *base,
                        char name[MX_SET_NAME_BYTES]) {
    int sets = 0;
    for (int32_t i = 0; i < s->n; i++) sets += mx_set_counts(s, &s->seen[i]);
    snprintf(name, MX_SET_NAME_BYTES, "%s", base);
    if (sets < 2 || !mx_is_directory(base)) return name;
    if (first->ranks > 1)
        snprintf(name, MX_SET_NAME_BYTES, "%.4000s/rank-%%r", base);
    else if (mx_is_directory(first->path))
        file_in(first->path, name);
    return name;
}

int mx_only_set(const struct mx_sight *s, const char *base, mx_why *why, const struct mx_seen **out) {
    const struct mx_seen *found = NULL;
    char a[MX_SET_NAME_BYTES], b[MX_SET_NAME_BYTES];
    for (int32_t i = 0; i < s->n; i++) {
        const struct mx_seen *e = &s->seen[i];
        if (!mx_set_counts(s, e)) continue;
        if (found != NULL && !mx_is_directory(base)) return refuse_several(base, found, e, 0, why);
        if (found != NULL && (found->ranks > 1) == (e->ranks > 1))
            return refuse_several(base, found, e, 0, why);
        if (found != NULL)
            return mx_fail(
                why, -EINVAL,
                "%.200s holds states of two runs, one with %d %s and one with %d: name %.250s or %.250s",
                base, found->ranks, found->ranks > 1 ? "ranks" : "rank", e->ranks,
                mx_set_name(s, found, base, a), mx_set_name(s, e, base, b));
        found = e;
    }
    *out = found;
    return 0;
}

/* ------------------------------------------------------------------ the end */

/* Locked now: does the name still stand for what was seen, and does that hold the same state? */
static bool is_still(const struct mx_seen *e, int fd, const char *file) {
    struct stat named, opened;
    struct mx_sight again = {.stored = calloc(1, sizeof *again.stored)};
    bool same = lstat(file, &named) == 0 && fstat(fd, &opened) == 0 && named.st_dev == opened.st_dev &&
                named.st_ino == opened.st_ino;
    if (again.stored != NULL) see(&again, e->path, e->folder, true);
    same &= again.n == 1 && again.seen[0].run == e->run && again.seen[0].generation == e->generation &&
            !again.seen[0].foreign;
    mx_forget(&again);
    return same;
}

void mx_remove_store(const struct mx_seen *e) {
    char file[FILE_BYTES];
    file_in(e->path, file);
    const int fd =
        !e->foreign && has_file(e->path) ? open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    if (fd < 0) return;
    const int err = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : -errno;
    /* Without locks the run has begun with --no-lock. */
    if ((err == 0 || mx_place_has_no_locks(err)) && is_still(e, fd, file) && unlink(file) == 0)
        mx_sync_directory(file);
    close(fd);
    mx_folder_leave(e->path, e->folder > 0);
}

/* Directories `prefix`N in `path`. */
static void leave_each(const char *path, const char *prefix, bool ours, void (*inner)(const char *path)) {
    char inside[PATH_MAX];
    struct dirent *e;
    DIR *d = opendir(path);
    while (d != NULL && (e = readdir(d)) != NULL) {
        if (number_of(e->d_name, prefix) < 0 ||
            snprintf(inside, sizeof inside, "%s/%s", path, e->d_name) >= PATH_MAX)
            continue;
        if (inner != NULL) inner(inside);
        mx_folder_leave(inside, ours);
    }
    if (d != NULL) closedir(d);
}

static void leave_cuts(const char *path) { leave_each(path, "cut-", true, NULL); }

static void leave_numbered(void *context, const char *path) {
    (void)context;
    leave_cuts(path);
    mx_folder_leave(path, false);
}

void mx_leave_folders(const char *base) {
    if (strstr(base, "%r") != NULL && !mx_is_directory(base)) {
        each_numbered(base, leave_numbered, NULL);
        return;
    }
    leave_cuts(base);
    leave_each(base, "rank-", false, leave_cuts);
}
