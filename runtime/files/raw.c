/* SPDX-License-Identifier: BSD-3-Clause */
#include "files/raw.h"

#include "machine/file.h"

#include <errno.h>
#include <fcntl.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void mx_raw_split(const char *word, char path[PATH_MAX], char raw[MX_RAW_TEXT]) {
    const char *first = NULL;
    raw[0] = 0;
    snprintf(path, PATH_MAX, "%s", word);
    if (access(path, F_OK) == 0) return;
    for (const char *c = strchr(word, ','); c != NULL; c = strchr(c + 1, ',')) {
        if (c - word >= PATH_MAX || strlen(c + 1) >= MX_RAW_TEXT) continue;
        if (first == NULL) first = c;
        snprintf(path, PATH_MAX, "%.*s", (int)(c - word), word);
        if (access(path, F_OK) != 0) continue;
        first = c;
        break;
    }
    snprintf(path, PATH_MAX, "%.*s", first != NULL ? (int)(first - word) : PATH_MAX - 1, word);
    if (first != NULL) snprintf(raw, MX_RAW_TEXT, "%s", first + 1);
}

/* TYPE[,offset=BYTES][,frame=yes|no] */
struct words {
    enum mx_dtype dtype;
    long long offset_bytes;
    int frame; /* -1: as the length says */
};

static bool parse(const char *text, struct words *out) {
    char copy[MX_RAW_TEXT], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    *out = (struct words){.frame = -1};
    char *word = strtok_r(copy, ",", &rest);
    if (word == NULL || text[0] == ',' || !mx_dtype_find(word, &out->dtype)) return false;
    while ((word = strtok_r(NULL, ",", &rest)) != NULL) {
        char *end = word;
        errno = 0;
        if (strncmp(word, "offset=", 7) == 0 && word[7] >= '0' && word[7] <= '9')
            out->offset_bytes = strtoll(word + 7, &end, 10);
        else if (strcmp(word, "frame=yes") == 0 || strcmp(word, "frame=no") == 0)
            out->frame = word[6] == 'y', end = "";
        if (end == word || *end != 0 || errno != 0) return false;
    }
    return true;
}

static int open_cells(const char *path, mx_why *why, struct stat *st) {
    const int fd = mx_file_open(path, why);
    if (fd < 0 || fstat(fd, st) == 0) return fd;
    const int err = mx_fail(why, -errno, "%.300s: %s", path, strerror(errno));
    close(fd);
    return err;
}

/* What keeps a file of so many bytes from being one with the frame or one without; NULL = nothing. */
static const char *judge(const struct mx_raw_want *w, mx_wide there, mx_wide with, mx_wide without,
                         int *frame) {
    static const char say[] = ": say which of the two it is with ,frame=yes or ,frame=no after the type";
    if (*frame == 0 && !w->may_lack)
        return ": the field needs a frame; write one into the file, or let memext make it with --frame edge, "
               "mirror, periodic or a number";
    if (*frame < 0 && w->may_have && w->may_lack && there > with) return say;
    if (*frame < 0 && !w->may_have && there >= with) return say;
    if (*frame < 0) *frame = w->may_have && (!w->may_lack || there >= with);
    if (there >= (*frame ? with : without)) return NULL;
    return *frame && there >= without && !w->may_lack
               ? ": let memext make the frame with --frame edge, mirror, periodic or a number"
               : "";
}

int mx_raw_open(const char *path, const char *raw, const struct mx_raw_want *w, mx_why *why,
                struct mx_npy *out, bool *frame) {
    struct words said;
    struct stat st;
    out->fd = -1;
    if (!parse(raw, &said))
        return mx_fail(
            why, -EINVAL,
            "%.100s=...,%s: write FILE,TYPE[,offset=BYTES][,frame=yes|no], where TYPE is " MX_DTYPE_NAMES,
            w->option, raw);
    if (w->nx == 0)
        return mx_fail(
            why, -EINVAL,
            "the file of %.100s has raw cells and does not say how large the grid is: give -n NX NY%s",
            w->option, w->flat ? "" : " NZ");
    const int fd = open_cells(path, why, &st);
    if (fd < 0) return fd;
    const int64_t h2 = 2 * (int64_t)w->h, hy2 = w->flat ? 0 : h2, cell = mx_dtype_bytes(said.dtype),
                  there = st.st_size - said.offset_bytes;
    const mx_wide with = (mx_wide)(w->nx + h2) * (w->ny + hy2) * (w->nz + h2) * cell,
                  without = (mx_wide)w->nx * w->ny * w->nz * cell;
    const char *sentence = judge(w, there, with, without, &said.frame);
    if (sentence != NULL) {
        const struct mx_problem grid = {.nx = w->nx, .ny = w->ny, .nz = w->nz, .flat = w->flat};
        char extents[MX_EXTENTS_TEXT];
        close(fd);
        return mx_fail(why, -EINVAL,
                       "%.200s has %lld bytes from byte %lld on; %s cells of %s need %lld bytes without the "
                       "frame, %lld with it%s",
                       path, (long long)(there > 0 ? there : 0), said.offset_bytes,
                       mx_extents_text(&grid, extents), mx_dtype_name(said.dtype), (long long)without,
                       (long long)with, sentence);
    }
    const int64_t more = said.frame ? h2 : 0, more_y = said.frame ? hy2 : 0;
    *out = (struct mx_npy){.fd = fd,
                           .dtype = said.dtype,
                           .shape = {w->nz + more, w->ny + more_y, w->nx + more},
                           .data_offset_bytes = said.offset_bytes};
    *frame = said.frame;
    return 0;
}
