/* SPDX-License-Identifier: BSD-3-Clause */
/* array.c - the table of formats: opens an array of whatever format, and the cells that a header names. */
#include "grid/array.h"
#include "grid/head.h"

#include "machine/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 16, MOST_TEXT_BYTES = 1 << 20 };

/* ------------------------------------------------------------------ headers of text */

/* A relative name starts from the directory of the header. */
static bool join(const char *path, const char *name, char out[PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    const int prefix = name[0] == '/' || slash == NULL ? 0 : (int)(slash - path) + 1;
    const int n = snprintf(out, PATH_MAX, "%.*s%s", prefix, path, name);
    if (n >= 0 && n < PATH_MAX) return true;
    errno = ENAMETOOLONG;
    return false;
}

/* Cells in a file beside the header. */
static int open_data(const char *path, const char *name, mx_why *why, char out[PATH_MAX], int *fd) {
    char joined[PATH_MAX];
    struct stat st;
    if (!join(path, name, joined) || realpath(joined, out) == NULL)
        return mx_fail(why, -errno, "%.200s says that its cells are in %.200s: %s", path, name,
                       strerror(errno));
    /* No device is opened to find out what it is. */
    if (stat(out, &st) != 0 || !S_ISREG(st.st_mode))
        return mx_fail(why, -EINVAL, "%.200s says that its cells are in %.200s, which is not a regular file",
                       path, name);
    *fd = mx_retry(mx_sys->open(out, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0));
    return *fd >= 0 ? 0 : mx_fail(why, *fd, "cannot open %.300s: %s", out, strerror(-*fd));
}

/* Where the line after so many begins. */
static int skip_lines(const char *path, int fd, int64_t lines, mx_why *why, int64_t *at) {
    char piece[4096];
    while (lines > 0) {
        const ssize_t n = mx_retry(mx_sys->pread(fd, piece, sizeof piece, *at));
        if (n < 0) return mx_fail(why, (int)n, "%.300s cannot be read: %s", path, strerror((int)-n));
        if (n == 0)
            return mx_fail(why, -EINVAL,
                           "%.300s has fewer lines than its header says to skip", path);
        const char *p = piece, *end = piece + n;
        while (lines > 0 && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) p++, lines--;
        *at += p != NULL ? p - piece : n;
    }
    return 0;
}

static int find_cells(const char *path, const struct mx_array_head *head, mx_why *why, struct mx_npy *npy) {
    struct stat st;
    mx_wide bytes = mx_dtype_bytes(npy->dtype);
    int64_t at = head->data[0] != 0 ? 0 : head->begin;
    int err = skip_lines(path, npy->fd, head->skip_lines, why, &at);
    if (err < 0) return err;
    for (int i = 0; i < 3 && bytes < INT64_MAX; i++) bytes *= npy->shape[i];
    if (head->skip_bytes >= 0) {
        if (__builtin_add_overflow(at, head->skip_bytes, &npy->data_offset_bytes))
            npy->data_offset_bytes = INT64_MAX;
        return 0;
    }
    if (fstat(npy->fd, &st) != 0) return mx_fail(why, -errno, "%.300s: %s", path, strerror(errno));
    if (st.st_size - at < bytes)
        return mx_fail(why, -EINVAL,
                       "%.300s is truncated: it has %lld bytes of cells, fewer than its header promises",
                       path, (long long)(st.st_size - at));
    npy->data_offset_bytes = st.st_size - (int64_t)bytes;
    return 0;
}

static int take_head(int fd, const char *path, const struct mx_array_head *head, bool any, mx_why *why,
                     struct mx_npy *out, char data[PATH_MAX]) {
    char elsewhere[PATH_MAX] = "";
    struct mx_npy npy = {
        .fd = fd, .dtype = head->dtype, .shape = {head->size[2], head->size[1], head->size[0]}};
    if (head->rank == 2) npy.shape[0] = head->size[1], npy.shape[1] = 1;
    int err = mx_array_check_type(path, head->dtype, any, why);
    if (err == 0 && head->big_endian && mx_dtype_bytes(head->dtype) > 1)
        err = mx_fail(why, -EINVAL,
                      "%.300s is big endian; convert it (numpy: a.astype(a.dtype.newbyteorder('<')))", path);
    if (err < 0) return err;
    if (head->data[0] != 0) {
        err = open_data(path, head->data, why, elsewhere, &npy.fd);
        if (err < 0) return err;
    }
    const char *cells = elsewhere[0] != 0 ? elsewhere : path;
    err = find_cells(cells, head, why, &npy);
    if (err == 0) err = mx_array_check_length(cells, &npy, why);
    if (npy.fd != fd) close(err < 0 ? npy.fd : fd);
    if (err < 0) return err;
    if (data != NULL) strcpy(data, elsewhere);
    *out = npy;
    return 0;
}

typedef int parse_fn(const char *path, const char *text, size_t bytes, mx_why *why,
                     struct mx_array_head *out);

static int open_text(int fd, const char *path, parse_fn *parse, bool any, int rank, mx_why *why,
                     struct mx_npy *out, char data[PATH_MAX]) {
    struct mx_array_head *head = calloc(1, sizeof *head);
    char *text = malloc(MOST_TEXT_BYTES);
    size_t n = 0;
    int err =
        head == NULL || text == NULL ? mx_fail(why, -ENOMEM, "no memory for the header of %.300s", path) : 0;
    while (err == 0 && n < MOST_TEXT_BYTES) {
        const ssize_t got = mx_retry(mx_sys->pread(fd, text + n, MOST_TEXT_BYTES - n, (off_t)n));
        if (got < 0) err = mx_fail(why, (int)got, "%.300s cannot be read: %s", path, strerror((int)-got));
        if (got <= 0) break;
        n += (size_t)got;
    }
    if (err == 0) head->rank = rank, err = parse(path, text, n, why, head);
    if (err == 0) err = take_head(fd, path, head, any, why, out, data);
    if (err < 0) close(fd);
    free(text);
    free(head);
    return err;
}

/* ------------------------------------------------------------------ the table */

static bool is_npy(const char *head, size_t bytes) { return bytes >= 6 && memcmp(head, "\x93NUMPY", 6) == 0; }

static int open_npy(int fd, const char *path, const char *inside, bool any, int rank, mx_why *why,
                    struct mx_npy *out, char data[PATH_MAX]) {
    (void)inside, (void)data;
    return mx_npy_open_fd(fd, path, any, rank, why, out);
}

static bool is_nrrd(const char *head, size_t bytes) { return bytes >= 8 && memcmp(head, "NRRD000", 7) == 0; }

static int open_nrrd(int fd, const char *path, const char *inside, bool any, int rank, mx_why *why,
                     struct mx_npy *out, char data[PATH_MAX]) {
    (void)inside;
    return open_text(fd, path, mx_nrrd_parse, any, rank, why, out, data);
}

/* It has no number at its beginning: one of these words is its first. */
static bool is_metaimage(const char *head, size_t bytes) {
    static const char *const words[] = {"ObjectType", "NDims", "Comment"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t n = strlen(words[i]);
        if (bytes > n && memcmp(head, words[i], n) == 0 && (head[n] == ' ' || head[n] == '=')) return true;
    }
    return false;
}

/* As it is called, where a header begins otherwise: ITK's readers go by the name. */
static bool is_called_metaimage(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot != NULL && (strcasecmp(dot, ".mhd") == 0 || strcasecmp(dot, ".mha") == 0);
}

static int open_metaimage(int fd, const char *path, const char *inside, bool any, int rank, mx_why *why,
                          struct mx_npy *out, char data[PATH_MAX]) {
    (void)inside;
    return open_text(fd, path, mx_metaimage_parse, any, rank, why, out, data);
}

static bool is_hdf5(const char *head, size_t bytes) {
    return bytes >= 8 && memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0;
}

#ifdef MX_HDF5
enum { WITH_HDF5 = 1 };
#else
enum { WITH_HDF5 = 0 };

int mx_hdf5_open(int fd, const char *path, const char *inside, bool any, int rank, mx_why *why,
                 struct mx_npy *out, char data[PATH_MAX]) {
    (void)inside, (void)any, (void)rank, (void)out, (void)data;
    close(fd);
    return mx_fail(
        why, -ENOTSUP,
        "%.300s is an HDF5 file, and this memext was built without HDF5 (memext info). Build it where "
        "libhdf5-dev is installed, or give the file's cells as raw cells: FILE,TYPE,offset=BYTES",
        path);
}
#endif

const struct mx_array_format mx_array_formats[] = {
    {"npy", "NumPy, C order", true, is_npy, open_npy},
    {"nrrd", "NRRD (.nrrd, .nhdr), encoding raw", true, is_nrrd, open_nrrd},
    {"mhd", "MetaImage (.mhd, .mha), not compressed", true, is_metaimage, open_metaimage},
    {"hdf5", "HDF5 (FILE.h5:/DATASET), contiguous datasets", WITH_HDF5, is_hdf5, mx_hdf5_open},
    {.name = NULL},
};

const char *mx_array_split(const char *word, char file[PATH_MAX]) {
    struct stat st;
    snprintf(file, PATH_MAX, "%s", word);
    if (stat(file, &st) == 0) return "";
    for (const char *colon = strstr(word, ":/"); colon != NULL; colon = strstr(colon + 1, ":/")) {
        const int n = snprintf(file, PATH_MAX, "%.*s", (int)(colon - word), word);
        if (n > 0 && n < PATH_MAX && stat(file, &st) == 0 && S_ISREG(st.st_mode)) return colon + 1;
    }
    snprintf(file, PATH_MAX, "%s", word);
    return "";
}

int mx_array_real(const char *word, char out[PATH_MAX]) {
    char file[PATH_MAX];
    const char *inside = mx_array_split(word, file);
    if (realpath(file, out) == NULL) return -errno;
    const size_t n = strlen(out);
    if (inside[0] == 0) return 0;
    return (size_t)snprintf(out + n, PATH_MAX - n, ":%s", inside) < PATH_MAX - n ? 0 : -ENAMETOOLONG;
}

/* The name in a header, of which nothing else has to be right. */
static bool find_data(const char *text, size_t bytes, char name[PATH_MAX]) {
    const bool nrrd = is_nrrd(text, bytes);
    char key[64], value[PATH_MAX];
    struct mx_line line;
    size_t at = 0;
    name[0] = 0;
    while ((nrrd || name[0] == 0) && mx_array_line(text, bytes, &at, &line) && (!nrrd || line.bytes > 0)) {
        if (!mx_array_pair(line, nrrd ? ":" : "=", key, value)) continue;
        if (strcasecmp(key, nrrd ? "data file" : "ElementDataFile") == 0 ||
            (nrrd && strcasecmp(key, "datafile") == 0))
            strcpy(name, value);
    }
    return name[0] != 0 && (nrrd || !mx_metaimage_local(name));
}

bool mx_array_data(const char *path, char out[PATH_MAX]) {
    char head[HEAD_BYTES], name[PATH_MAX], joined[PATH_MAX];
    bool found = false;
    const int fd = mx_file_open(path, NULL);
    if (fd < 0) return false;
    ssize_t n = pread(fd, head, sizeof head, 0);
    if (n > 0 && (is_nrrd(head, (size_t)n) || is_metaimage(head, (size_t)n) || is_called_metaimage(path))) {
        char *text = malloc(MOST_TEXT_BYTES);
        n = text != NULL ? pread(fd, text, MOST_TEXT_BYTES, 0) : 0;
        found = n > 0 && find_data(text, (size_t)n, name) && join(path, name, joined);
        free(text);
    }
    close(fd);
    if (found && realpath(joined, out) == NULL) strcpy(out, joined);
    return found;
}

/* A dataset says that it is HDF5, whose files may begin with something else. */
static int format_of(int fd, const char *path, const char *inside, const struct mx_array_format **out) {
    char head[HEAD_BYTES];
    const ssize_t n = mx_retry(mx_sys->pread(fd, head, sizeof head, 0));
    if (n < 0) return (int)n;
    for (const struct mx_array_format *f = mx_array_formats; f->name != NULL && *out == NULL; f++)
        if (inside[0] != 0 ? f->open == mx_hdf5_open : f->is(head, (size_t)n)) *out = f;
    for (const struct mx_array_format *f = mx_array_formats; f->name != NULL && *out == NULL; f++)
        if (f->open == open_metaimage && is_called_metaimage(path)) *out = f;
    return 0;
}

int mx_array_open(const char *path, const char *inside, bool any, mx_why *why, struct mx_npy *out,
                  char data[PATH_MAX]) {
    return mx_array_open_grid(path, inside, any, false, why, out, data);
}

int mx_array_open_grid(const char *path, const char *inside, bool any, bool flat, mx_why *why,
                       struct mx_npy *out, char data[PATH_MAX]) {
    if (data != NULL) data[0] = 0;
    const int fd = mx_file_open(path, why);
    if (fd < 0) return fd;
    const struct mx_array_format *f = NULL;
    const int err = format_of(fd, path, inside, &f);
    if (f != NULL) return f->open(fd, path, inside, any, flat ? 2 : 3, why, out, data);
    close(fd);
    if (err < 0) return mx_fail(why, err, "%.300s cannot be read: %s", path, strerror(-err));
    return mx_fail(why, -EINVAL,
                   "%.300s is not a .npy, .nrrd, .mhd or HDF5 file: write it with numpy.save, or give it as "
                   "raw cells: FILE,TYPE,offset=BYTES",
                   path);
}
