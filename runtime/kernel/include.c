/* SPDX-License-Identifier: BSD-3-Clause */
/* include.c - headers of the user. A header in the folder of a kernel, or of one of its headers, is put into
 * the kernel's text. So one text is compiled for every processor and accelerator, and hashed. */
#include "kernel/private.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

enum { MOST_DEPTH = 16, MOST_BYTES = 16 << 20, MOST_ONCE = 256 };

struct joined {
    struct mx_text out;
    size_t room;
    XXH3_state_t *state; /* of the identity: names and places of files are none of it */
    int32_t n_once;      /* files that say `#pragma once` */
    struct {
        dev_t device;
        ino_t inode;
    } once[MOST_ONCE];
    mx_why *why;
};

static int append(struct joined *j, const char *data, size_t bytes) {
    if (j->out.bytes + bytes + 1 > j->room) {
        const size_t room = 2 * (j->out.bytes + bytes) + 4096;
        if (room > MOST_BYTES)
            return mx_fail(j->why, -EINVAL,
                           "the kernel and its headers have more than %d MiB together: shorten them",
                           MOST_BYTES >> 21);
        char *more = realloc(j->out.data, room);
        if (more == NULL)
            return mx_fail(j->why, -ENOMEM, "no memory for the text of a kernel and its headers");
        j->out.data = more, j->room = room;
    }
    memcpy(j->out.data + j->out.bytes, data, bytes);
    j->out.bytes += bytes;
    j->out.data[j->out.bytes] = 0;
    return 0;
}

/* What compilers say of the lines that follow has this file and line. */
static int append_place(struct joined *j, int64_t line, const char *path) {
    char text[2 * PATH_MAX + 40];
    int n = snprintf(text, sizeof text, "#line %lld \"", (long long)line);
    for (const char *p = path; *p != 0 && n < (int)sizeof text - 4; p++) {
        if (*p == '"' || *p == '\\') text[n++] = '\\';
        text[n++] = *p == '\n' ? ' ' : *p;
    }
    text[n++] = '"', text[n++] = '\n';
    return append(j, text, (size_t)n);
}

/* What stands behind the word of a line `#WORD`; NULL: it is another line. */
static const char *behind_word(const char *line, const char *word) {
    const char *at = line + strspn(line, " \t");
    if (*at++ != '#') return NULL;
    at += strspn(at, " \t");
    if (strncmp(at, word, strlen(word)) != 0) return NULL;
    at += strlen(word);
    return at + strspn(at, " \t");
}

/* The name in a line `#include "NAME"`; false: it is another line. */
static bool included_name(const char *line, size_t bytes, char name[PATH_MAX]) {
    const char *from = behind_word(line, "include");
    if (from == NULL || *from++ != '"') return false;
    const char *end = from < line + bytes ? memchr(from, '"', (size_t)(line + bytes - from)) : NULL;
    if (end == NULL || end - from >= PATH_MAX) return false;
    return snprintf(name, PATH_MAX, "%.*s", (int)(end - from), from) > 0;
}

/* The compiler sees one text, where `#pragma once` says nothing of the files that it was put together from.
 */
static bool says_once(const char *line) {
    const char *from = behind_word(line, "pragma");
    return from != NULL && strncmp(from, "once", 4) == 0 && strchr(" \t\r\n/", from[4]) != NULL;
}

static bool was_once(const struct joined *j, const struct stat *st) {
    for (int32_t i = 0; i < j->n_once; i++)
        if (j->once[i].device == st->st_dev && j->once[i].inode == st->st_ino) return true;
    return false;
}

static int take_once(struct joined *j, const char *path) {
    struct stat st;
    if (stat(path, &st) != 0 || was_once(j, &st)) return 0;
    if (j->n_once == MOST_ONCE)
        return mx_fail(j->why, -EINVAL, "a kernel has more than %d headers with #pragma once", MOST_ONCE);
    j->once[j->n_once].device = st.st_dev;
    j->once[j->n_once++].inode = st.st_ino;
    return 0;
}

/* Is the end of this line within a comment of several? Strings of a kernel have no such marks. */
static bool ends_in_comment(const char *line, size_t bytes, bool inside) {
    for (size_t i = 0; i + 1 < bytes; i++) {
        if (!inside && line[i] == '/' && line[i + 1] == '/') return false;
        if (!inside && line[i] == '/' && line[i + 1] == '*')
            inside = true, i++;
        else if (inside && line[i] == '*' && line[i + 1] == '/')
            inside = false, i++;
    }
    return inside;
}

static int join(struct joined *j, const char *path, const struct mx_text *text, int depth);

/* A header beside the file that includes it; 1: there is none, which is the compiler's business. */
static int join_header(struct joined *j, const char *from, const char *name, int depth) {
    char path[PATH_MAX];
    struct mx_text text;
    struct stat st;
    const char *slash = strrchr(from, '/');
    const int length = name[0] == '/' || slash == NULL ? 0 : (int)(slash + 1 - from);
    if (strcmp(name, "memext/cell.h") == 0 ||
        snprintf(path, sizeof path, "%.*s%s", length, from, name) >= PATH_MAX)
        return 1;
    if (stat(path, &st) != 0) return 1;
    if (was_once(j, &st)) return 0;
    if (depth == MOST_DEPTH)
        return mx_fail(j->why, -EINVAL,
                       "%.300s includes headers more than %d deep: perhaps a header includes itself", from,
                       MOST_DEPTH);
    int err = mx_text_read(path, "the kernel's header", j->why, &text);
    if (err < 0) return err;
    err = append_place(j, 1, path);
    if (err == 0) err = join(j, path, &text, depth + 1);
    free(text.data);
    return err;
}

static int join(struct joined *j, const char *path, const struct mx_text *text, int depth) {
    char name[PATH_MAX];
    bool comment = false;
    int64_t number = 0;
    int err = 0;
    XXH3_64bits_update(j->state, text->data, text->bytes);
    for (const char *line = text->data, *next; *line != 0 && err == 0; line = next) {
        const char *end = strchr(line, '\n');
        const size_t bytes = end != NULL ? (size_t)(end - line) : strlen(line);
        next = line + bytes + (end != NULL);
        number++;
        int there = 1;
        const bool once = !comment && says_once(line);
        if (once && (err = take_once(j, path)) < 0) return err;
        if (!comment && included_name(line, bytes, name)) there = join_header(j, path, name, depth);
        comment = ends_in_comment(line, bytes, comment);
        if (there < 0) return there;
        if (there == 1 && !once) err = append(j, line, bytes);
        if (err == 0) err = append(j, "\n", 1);
        if (err == 0 && there == 0) err = append_place(j, number + 1, path);
    }
    return err;
}

int mx_kernel_include(const char *path, mx_why *why, struct mx_text *text, uint64_t *identity) {
    struct joined j = {.state = XXH3_createState(), .why = why};
    if (j.state == NULL) return mx_fail(why, -ENOMEM, "no memory for the identity of a kernel");
    XXH3_64bits_reset(j.state);
    const int err = join(&j, path, text, 0);
    *identity = XXH3_64bits_digest(j.state);
    XXH3_freeState(j.state);
    /* Of an empty file nothing was put together. */
    const bool alone = err == 0 && (j.out.data == NULL || strstr(j.out.data, "#line ") == NULL);
    if (err < 0 || alone) {
        free(j.out.data);
        return err;
    }
    free(text->data);
    *text = j.out;
    return 0;
}
