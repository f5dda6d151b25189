/* SPDX-License-Identifier: BSD-3-Clause */
#include "files/output.h"

#include "core/store.h"
#include "grid/array.h"
#include "machine/file.h"

#include <memext/memext.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* ---- names */

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* "" for the current directory. */
static int directory_length(const char *path) { return (int)(name_of(path) - path); }

/* .NAME.memext- and a number, beside the file; long names are cut, for a name has 255 bytes. */
static int begin_temporary(const char *path, char out[PATH_MAX]) {
    int n = snprintf(out, PATH_MAX, "%.*s.%.200s.memext-", directory_length(path), path, name_of(path));
    return n > 0 && n < PATH_MAX - 24 ? 0 : -ENAMETOOLONG;
}

/* The number is that of the process, and that of the output in it. Processes of other machines or containers
 * may have the same: their file is locked, and stays. */
static int name_temporary(const char *path, char out[PATH_MAX]) {
    static atomic_uint outputs;
    const int err = begin_temporary(path, out);
    if (err == 0)
        snprintf(out + strlen(out), 24, "%ld%04u", (long)getpid(), atomic_fetch_add(&outputs, 1) % 10000);
    return err;
}

/* Does the name still mean this file? */
static bool is_named(int fd, const char *path) {
    struct stat itself, named;
    return fstat(fd, &itself) == 0 && lstat(path, &named) == 0 && itself.st_ino == named.st_ino &&
           itself.st_dev == named.st_dev;
}

/* Without a lock its process has ended. File systems that know no locks keep what there is. */
static void remove_left(const char *path) {
    struct stat st;
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0 && is_named(fd, path))
        mx_retry(mx_sys->unlink(path));
    close(fd);
}

/* What processes that were killed have left of this output. */
static void sweep(const char *path) {
    char begin[PATH_MAX], left[PATH_MAX + 256];
    struct dirent *e;
    const int n = directory_length(path);
    if (begin_temporary(path, begin) < 0) return;
    snprintf(left, sizeof left, "%.*s", n > 0 ? n : 1, n > 0 ? path : ".");
    DIR *d = opendir(left);
    const char *name = begin + n;
    while (d != NULL && (e = readdir(d)) != NULL) {
        const char *digits = e->d_name + strlen(name);
        if (strncmp(e->d_name, name, strlen(name)) != 0 || digits[0] == 0 ||
            strspn(digits, "0123456789") != strlen(digits))
            continue;
        snprintf(left, sizeof left, "%.*s%s", n, path, e->d_name);
        remove_left(left);
    }
    if (d != NULL) closedir(d);
}

/* What is there now. A link is followed to what it names: that is what will be replaced. */
static int look(struct mx_output *o, const char *path, struct stat *st) {
    char *whole = realpath(path, NULL);
    int n = snprintf(o->path, sizeof o->path, "%s", whole != NULL ? whole : path);
    free(whole);
    if (n < 0 || (size_t)n >= sizeof o->path) return -ENAMETOOLONG;
    if (stat(o->path, st) == 0) return 0;
    if (errno == ENOENT && lstat(o->path, st) == 0) return -ELOOP; /* a link to nothing */
    return -errno;
}

static int refuse(const char *what, const char *path, int err, mx_why *why) {
    static const struct {
        int err;
        const char *text;
    } reasons[] = {
        {-EEXIST, "it is there already; name another file, or give --overwrite to replace it"},
        {-EISDIR, "it is a directory; name a file in it"},
        {-ELOOP, "it is a link whose target does not exist; name the file itself"},
        {-ENOENT, "its directory is not there; make it first"},
        {-ENOTDIR, "a part of this path is not a directory"},
        {-EACCES, "no permission to write there; name another place"},
        {-EROFS, "the file system is read-only; name another place"},
        {-ENAMETOOLONG, "the path is too long"},
        {-ENOTBLK, "it is a block device; name a file"},
        {-ENOTUNIQ,
         "another program has removed its temporary file; leave files whose names begin with a dot alone"},
        {-ENOSPC, "the file system is full; free space or name another place"},
        {-EDQUOT, "the disk quota is used up; free space or name another place"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].err == err)
            return mx_fail(why, err, "%s cannot be written to %.300s: %s", what, path, reasons[i].text);
    return mx_fail(why, err, "%s cannot be written to %.300s: %s", what, path, strerror(-err));
}

/* Who writes to a pipe waits for its reader, and to other devices may do anything. */
static int refuse_odd(const char *what, const char *path, const struct stat *st, mx_why *why) {
    return mx_fail(why, -ESPIPE, "%s cannot be written to %.300s: it is %s; name a file", what, path,
                   mx_file_kind(st->st_mode));
}

/* /dev/null and /dev/full: neither waits. */
static bool takes_all(const struct stat *st) {
    return S_ISCHR(st->st_mode) && (st->st_rdev == makedev(1, 3) || st->st_rdev == makedev(1, 7));
}

/* ---- open */

/* A file without a name gets one through /proc. */
static int open_nameless(const struct mx_output *o) {
    if (access("/proc/self/fd", X_OK) != 0) return -EOPNOTSUPP;
    char directory[PATH_MAX];
    int n = directory_length(o->path);
    snprintf(directory, sizeof directory, "%.*s", n > 0 ? n : 1, n > 0 ? o->path : ".");
    return mx_retry(mx_sys->open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666));
}

/* Somebody who opens the same output may take it for one that was left, until it is locked: then again. */
static int open_named(struct mx_output *o) {
    enum { TRIES = 10 };
    int fd = -EBUSY;
    for (int i = 0; i < TRIES; i++) {
        if ((fd = name_temporary(o->path, o->temporary)) < 0) break;
        fd = mx_retry(mx_sys->open(o->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
        if (fd == -EEXIST) continue;
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            if (fd < 0 || is_named(fd, o->temporary)) break;
        mx_sys->close(fd);
        fd = -EBUSY;
    }
    if (fd < 0) o->temporary[0] = 0;
    return fd;
}

/* What is there, in *st: 1; 0 = nothing is. Refuses what may not be replaced. */
static int examine(struct mx_output *o, const char *path, const char *what, unsigned flags, mx_why *why,
                   struct stat *st) {
    *o = (struct mx_output){.fd = -1, .replace = flags & MX_OUTPUT_REPLACE};
    const int there = look(o, path, st);
    if (there == -ENOENT) return 0;
    if (there < 0) return refuse(what, path, there, why);
    if (S_ISDIR(st->st_mode)) return refuse(what, path, -EISDIR, why);
    if (S_ISBLK(st->st_mode)) return refuse(what, path, -ENOTBLK, why);
    if (!S_ISREG(st->st_mode))
        return (flags & MX_OUTPUT_SEEK) || !takes_all(st) ? refuse_odd(what, path, st, why) : 1;
    if (!o->replace) return refuse(what, path, -EEXIST, why);
    return access(o->path, W_OK) == 0 ? 1 : refuse(what, path, -EACCES, why);
}

int mx_output_ask(const char *path, const char *what, unsigned flags, mx_why *why) {
    struct mx_output o;
    struct stat st;
    char directory[PATH_MAX];
    const int there = examine(&o, path, what, flags, why, &st), n = directory_length(o.path);
    if (there < 0) return there;
    snprintf(directory, sizeof directory, "%.*s", n > 0 ? n : 1, n > 0 ? o.path : ".");
    const bool plain = there == 0 || S_ISREG(st.st_mode);
    return plain && access(directory, W_OK | X_OK) != 0 ? refuse(what, path, -errno, why) : 0;
}

int mx_output_open(const char *path, const char *what, unsigned flags, mx_why *why, struct mx_output *out) {
    struct mx_output *o = out;
    struct stat st;
    const int there = examine(o, path, what, flags, why, &st);
    if (there < 0) return there;
    if (there == 1 && !S_ISREG(st.st_mode)) {
        o->direct = true;
        o->fd = mx_retry(mx_sys->open(o->path, O_WRONLY | O_CLOEXEC, 0));
        return o->fd >= 0 ? 0 : refuse(what, path, o->fd, why);
    }
    if (there == 1) o->mode = st.st_mode & 07777;
    if (!(flags & MX_OUTPUT_SWEPT)) sweep(o->path);
    int fd = open_nameless(o);
    if (fd == -EOPNOTSUPP || fd == -EISDIR || fd == -EINVAL) fd = open_named(o);
    o->fd = fd < 0 ? -1 : fd;
    return fd >= 0 ? 0 : refuse(what, path, fd, why);
}

int mx_output_reserve(struct mx_output *o, uint64_t bytes, const char *what, mx_why *why) {
    if (o->direct) return 0;
    int err = mx_retry(mx_sys->fallocate(o->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes));
    return err == -ENOSPC || err == -EDQUOT ? refuse(what, o->path, err, why) : 0;
}

/* ---- publish */

/* Links the nameless file to a temporary name. */
static int link_temporary(struct mx_output *o) {
    enum { TRIES = 10 };
    char name[PATH_MAX];
    int err = -EEXIST;
    flock(o->fd, LOCK_EX | LOCK_NB); /* before it has a name: nobody takes it for one that was left */
    for (int i = 0; i < TRIES && err == -EEXIST; i++) {
        err = name_temporary(o->path, name);
        if (err == 0) err = mx_retry(mx_sys->link(o->fd, name));
    }
    if (err == 0) strcpy(o->temporary, name);
    return err;
}

bool mx_output_path(const struct mx_output *o, char out[PATH_MAX]) {
    snprintf(out, PATH_MAX, "/proc/%ld/fd/%d", (long)getpid(), o->fd);
    return o->fd >= 0 && access(out, W_OK) == 0;
}

void mx_output_show(struct mx_output *o) {
    if (!o->direct && o->temporary[0] == 0) link_temporary(o);
}

/* A nameless file that replaces nothing gets its name at once: should one have come there meanwhile, that one
 * stays. */
static int give_name(struct mx_output *o) {
    struct stat st;
    if (o->mode != 0 && fchmod(o->fd, o->mode) != 0) return -errno;
    if (o->temporary[0] == 0 && !o->replace) return mx_retry(mx_sys->link(o->fd, o->path));
    int err = o->temporary[0] == 0 ? link_temporary(o) : 0;
    if (err < 0) return err;
    if (!o->replace && lstat(o->path, &st) == 0) return -EEXIST;
    if (!is_named(o->fd, o->temporary)) return -ENOTUNIQ; /* somebody has removed it, or taken its name */
    err = mx_retry(mx_sys->rename(o->temporary, o->path));
    if (err == 0) o->temporary[0] = 0;
    return err;
}

int mx_output_publish(struct mx_output *o, const char *what, mx_why *why) {
    int err = o->direct ? 0 : mx_retry(mx_sys->fsync(o->fd));
    if (err == 0 && !o->direct) err = give_name(o);
    if (err == 0 && !o->direct) err = mx_sync_directory(o->path);
    if (err < 0) refuse(what, o->path, err, why);
    mx_output_drop(o);
    return err;
}

void mx_output_drop(struct mx_output *o) {
    if (o->temporary[0] != 0 && is_named(o->fd, o->temporary)) mx_retry(mx_sys->unlink(o->temporary));
    if (o->fd >= 0) mx_sys->close(o->fd);
    o->fd = -1;
    o->temporary[0] = 0;
}

FILE *mx_output_stream(const struct mx_output *o) {
    int fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 3);
    FILE *stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (stream == NULL && fd >= 0) close(fd);
    return stream;
}

int mx_output_text(struct mx_output *o, const char *what, const char *text, mx_why *why) {
    FILE *stream = o != NULL ? mx_output_stream(o) : stdout;
    bool whole = stream != NULL && fprintf(stream, "%s\n", text) >= 0 && fflush(stream) == 0;
    int err = whole ? 0 : errno;
    if (stream != NULL && o != NULL && fclose(stream) != 0 && whole) whole = false, err = errno;
    if (!whole && o != NULL) mx_output_drop(o);
    if (!whole)
        return mx_fail(why, -EIO, "%s cannot be written to %.300s: %s", what,
                       o != NULL ? o->path : "the standard output", strerror(err != 0 ? err : EIO));
    return o == NULL || mx_output_publish(o, what, why) == 0 ? 0 : -EIO;
}

/* ---- names */

/* The file that a word names, or would. */
struct named {
    const struct mx_file_word *word;
    char path[PATH_MAX + 16];
    struct stat st;
    bool there;
};

/* A name that is not there yet, below its directory that is. */
static void resolve_new(const char *path, struct named *out) {
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int n = slash == NULL || slash == path ? 1 : (int)(slash - path);
    snprintf(directory, sizeof directory, "%.*s", n, slash == NULL ? "." : path);
    if (realpath(directory, out->path) == NULL) snprintf(out->path, sizeof out->path, "%s", directory);
    n = (int)strlen(out->path);
    snprintf(out->path + n, sizeof out->path - (size_t)n, "%s%s", n > 0 && out->path[n - 1] == '/' ? "" : "/",
             name_of(path));
}

static void resolve(const struct mx_file_word *word, struct named *out) {
    char file[PATH_MAX];
    out->word = word;
    if (word->use == MX_FILE_READ)
        mx_array_split(word->path, file); /* a dataset is not written over either */
    else
        snprintf(file, sizeof file, "%s", word->path);
    if (realpath(file, out->path) == NULL) resolve_new(file, out);
    out->there = stat(out->path, &out->st) == 0;
    if (word->use != MX_FILE_PLACE || !out->there || !S_ISDIR(out->st.st_mode)) return;
    size_t n = strlen(out->path);
    snprintf(out->path + n, sizeof out->path - n, "/memext.store");
    out->there = stat(out->path, &out->st) == 0;
}

/* The file that a header names for its cells is an input as well. Its name may be followed by what raw files
 * need, and then is none. */
static bool resolve_data(const struct mx_file_word *word, struct named *out) {
    char data[PATH_MAX];
    if (!mx_array_data(word->path, data)) return false;
    out->word = word;
    if (realpath(data, out->path) == NULL) resolve_new(data, out);
    out->there = stat(out->path, &out->st) == 0;
    return true;
}

/* Not inlined: gcc 12 then takes the paths for empty, and warns. */
__attribute__((noinline)) static bool same_file(const struct named *a, const struct named *b) {
    if (a->there && b->there) return a->st.st_ino == b->st.st_ino && a->st.st_dev == b->st.st_dev;
    return strcmp(a->path, b->path) == 0;
}

static bool is_file(const struct named *n) {
    return !n->there || S_ISREG(n->st.st_mode) || S_ISBLK(n->st.st_mode);
}

static bool is_written(const struct named *n) {
    return n->word->use == MX_FILE_WRITTEN || n->word->use == MX_FILE_NPY;
}

/* Before anything is opened, for what opens a pipe may wait for ever. A directory is refused by whoever wants
 * a file: a place may be one. */
static int refuse_odd_word(const struct named *n, mx_why *why) {
    const bool storage = S_ISREG(n->st.st_mode) || S_ISDIR(n->st.st_mode);
    if (!n->there || storage || (is_written(n) && (S_ISBLK(n->st.st_mode) || takes_all(&n->st)))) return 0;
    if (n->word->use != MX_FILE_PLACE)
        return mx_fail(why, -EINVAL, "%s %.300s is not a regular file but %s; name a file%s", n->word->option,
                       n->word->path, mx_file_kind(n->st.st_mode),
                       n->word->use == MX_FILE_READ ? " (for cells, for example, a .npy file)" : "");
    if (S_ISBLK(n->st.st_mode)) return 0;
    return mx_fail(why, -ENOTBLK,
                   "%s %.300s is not storage but %s; name a directory, a file or a block device",
                   n->word->option, n->word->path, mx_file_kind(n->st.st_mode));
}

/* Other programs go by the end of a name. */
static int refuse_other_format(const struct named *n, mx_why *why) {
    static const char *const ends[] = {
        ".h5",   ".hdf5", ".hdf", ".nc",  ".nc4",  ".cdf", ".nrrd", ".nhdr", ".mhd",  ".mha", ".tif", ".tiff",
        ".zarr", ".vti",  ".vtu", ".vtr", ".vts",  ".vtp", ".vtk",  ".pvd",  ".xdmf", ".npz", ".mat", ".raw",
        ".bin",  ".dat",  ".txt", ".csv", ".json", ".sgy", ".segy", ".fits", ".pkl",  ".png", ".jpg", ".jpeg",
        ".gif",  ".bmp",  ".pdf", ".svg", ".zip",  ".tar", ".gz",   ".bz2",  ".xz",   ".zst", ".lz4", ".7z"};
    const char *dot = strrchr(name_of(n->word->path), '.');
    for (size_t i = 0; n->word->use == MX_FILE_NPY && dot != NULL && i < sizeof ends / sizeof ends[0]; i++)
        if (strcasecmp(dot, ends[i]) == 0)
            return mx_fail(why, -EINVAL,
                           "%s %.300s is written as a .npy file: end its name in .npy, or save another "
                           "format from Python (memext.save: raw cells, HDF5, Zarr)",
                           n->word->option, n->word->path);
    return 0;
}

/* a was named before b. */
static int refuse_pair(const struct named *a, const struct named *b, mx_why *why) {
    if (a->word->use == MX_FILE_READ)
        return mx_fail(why, -EINVAL,
                       "%s %.300s is also the file of %s, and an input is never written: name another file",
                       b->word->option, b->path, a->word->option);
    if (a->word->use == MX_FILE_PLACE)
        return mx_fail(why, -EINVAL, "%s %.300s is the place of the Buffers (-d): name another file",
                       b->word->option, b->path);
    return mx_fail(why, -EINVAL, "%s and %s name the same file, %.300s: name two different files",
                   a->word->option, b->word->option, b->path);
}

/* Of any run: it may be all that there is of a state. One that was only begun has nothing in it but its name.
 */
static int refuse_store(const struct named *n, mx_why *why) {
    if (!is_written(n) || !n->there || !S_ISREG(n->st.st_mode)) return 0;
    struct mx_store_facts *facts = calloc(1, sizeof *facts);
    if (facts == NULL) return mx_fail(why, -ENOMEM, "no memory for the names of files");
    facts->size = sizeof *facts;
    mx_why none;
    const int err =
        mx_store_see(n->path, &none, facts); /* damaged, or of another format, it is one as well */
    free(facts);
    if ((err < 0 && err != -EIO && err != -ENOTSUP) && strcmp(name_of(n->path), "memext.store") != 0)
        return 0;
    return mx_fail(why, -EINVAL, "%s %.300s is a memext store, which is not overwritten: name another file",
                   n->word->option, n->path);
}

/* Of reports it is standard output, which whoever writes them knows. */
static int check_standard(const struct mx_file_word *word, mx_why *why) {
    const bool report = strcmp(word->option, "--json") == 0 || word->use == MX_FILE_READ;
    if (report || word->use == MX_FILE_PLACE) return 0;
    return mx_fail(
        why, -EINVAL,
        "%s - would be standard output, where this is not written: name a file (./- for a file named -)",
        word->option);
}

int mx_output_check_names(const struct mx_file_word *words, size_t n, mx_why *why) {
    struct named *names = calloc(2 * n, sizeof *names); /* a header may name another file */
    size_t used = 0;
    int err = names == NULL ? mx_fail(why, -ENOMEM, "no memory for the names of files") : 0;
    for (size_t i = 0; i < n && err == 0; i++) {
        if (words[i].path == NULL || words[i].path[0] == 0) continue;
        if (strcmp(words[i].path, "-") == 0) {
            err = check_standard(&words[i], why);
            continue;
        }
        resolve(&words[i], &names[used]);
        err = refuse_odd_word(&names[used], why);
        for (size_t j = 0; j < used && err == 0 && words[i].use != MX_FILE_READ && is_file(&names[used]); j++)
            if (same_file(&names[j], &names[used])) err = refuse_pair(&names[j], &names[used], why);
        if (err == 0) err = refuse_store(&names[used], why);
        if (err == 0) err = refuse_other_format(&names[used], why);
        used++;
        if (words[i].use == MX_FILE_READ) used += resolve_data(&words[i], &names[used]);
    }
    free(names);
    return err;
}
