/* SPDX-License-Identifier: BSD-3-Clause */
/* head.c - reads lines and numbers of headers of text, and checks what a header of any format says. */
#include "grid/head.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ------------------------------------------------------------------ text */

bool mx_array_line(const char *text, size_t bytes, size_t *at, struct mx_line *out) {
    if (*at >= bytes) return false;
    const char *begin = text + *at, *end = memchr(begin, '\n', bytes - *at);
    size_t n = end != NULL ? (size_t)(end - begin) : bytes - *at;
    *at += n + (end != NULL);
    if (n > 0 && begin[n - 1] == '\r') n--;
    *out = (struct mx_line){begin, n};
    return true;
}

static bool copy_trimmed(const char *from, size_t n, char *to, size_t capacity) {
    while (n > 0 && (*from == ' ' || *from == '\t')) from++, n--;
    while (n > 0 && (from[n - 1] == ' ' || from[n - 1] == '\t')) n--;
    if (n >= capacity || memchr(from, 0, n) != NULL) return false;
    memcpy(to, from, n);
    to[n] = 0;
    return true;
}

bool mx_array_pair(struct mx_line line, const char *separator, char key[64], char value[PATH_MAX]) {
    const size_t length = strlen(separator);
    const char *at = memmem(line.text, line.bytes, separator, length);
    if (at == NULL) return false;
    const size_t before = (size_t)(at - line.text);
    return copy_trimmed(line.text, before, key, 64) &&
           copy_trimmed(at + length, line.bytes - before - length, value, PATH_MAX);
}

bool mx_array_whole(const char *text, int64_t low, int64_t *out) {
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end != 0 || errno != 0 || value < low) return false;
    return *out = value, true;
}

bool mx_array_has_rank(const struct mx_array_head *head, const char *text) {
    return text[0] == '0' + head->rank && text[1] == 0;
}

bool mx_array_sizes(const char *text, int rank, int64_t size[3]) {
    const char *p = text;
    for (int i = 0; i < rank; i++) {
        char *end;
        errno = 0;
        const long long value = strtoll(p, &end, 10);
        if (end == p || errno != 0 || value < 1 || (*end != 0 && *end != ' ' && *end != '\t')) return false;
        size[i] = value;
        p = end;
    }
    return p[strspn(p, " \t")] == 0;
}

/* Counts the words that are integers, from the end. */
static int numbers_at_end(const char *text) {
    const char *end = text + strlen(text);
    int n = 0;
    for (;; n++) {
        const char *last = end;
        while (last > text && last[-1] >= '0' && last[-1] <= '9') last--;
        if (last == end) return n;
        if (last > text && (last[-1] == '-' || last[-1] == '+')) last--;
        if (last == text || (last[-1] != ' ' && last[-1] != '\t')) return n;
        while (last > text && (last[-1] == ' ' || last[-1] == '\t')) last--;
        end = last;
    }
}

bool mx_array_several(const char *name) {
    for (const char *p = name; (p = strchr(p, '%')) != NULL;) {
        p++;
        p += strspn(p, "0123456789");
        if (*p == 'd') return numbers_at_end(p) >= 2;
    }
    return false;
}

static char letter(const char *name) {
    const char *slash = strrchr(name, '/');
    if (slash != NULL) name = slash + 1;
    name += strspn(name, " \t");
    const char c = (char)(*name | 0x20);
    return c >= 'x' && c <= 'z' && name[1 + strspn(name + 1, " \t")] == 0 ? c : 0;
}

bool mx_array_turned(const char *const names[3]) {
    bool turned = false;
    char found[3];
    for (int i = 0; i < 3; i++) {
        found[i] = letter(names[i]);
        turned |= found[i] != 0 && found[i] != "zyx"[i];
        for (int j = 0; j < i; j++)
            if (found[i] != 0 && found[i] == found[j]) return false;
    }
    return turned;
}

bool mx_array_rows_turned(const char *const names[2]) {
    const char slow = letter(names[0]), fast = letter(names[1]);
    return slow == 'x' || fast == 'z' || (fast == 'y' && slow != 'z');
}

/* ------------------------------------------------------------------ checks */

int mx_array_check_type(const char *path, enum mx_dtype dtype, bool any, mx_why *why) {
    if (any || dtype == MX_F64 || dtype == MX_F32) return 0;
    return mx_fail(why, -EINVAL,
                   "%.300s has cells of type %s, and built-in stencils need f64 or f32: convert it, or give "
                   "a kernel (--kernel), whose state may have any type",
                   path, mx_dtype_name(dtype));
}

/* Bytes before and of the cells; INT64_MAX stands for anything beyond: three extents of 63 bits fit into no
 * type.
 */
static int64_t promised_bytes(const struct mx_npy *npy) {
    mx_wide bytes = mx_dtype_bytes(npy->dtype);
    for (int i = 0; i < 3 && bytes < INT64_MAX; i++) bytes *= npy->shape[i];
    bytes += npy->data_offset_bytes;
    return bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX;
}

int mx_array_check_length(const char *path, const struct mx_npy *npy, mx_why *why) {
    struct stat st;
    for (int i = 0; i < 3; i++)
        if (npy->shape[i] < 1)
            return mx_fail(why, -EINVAL, "%.300s has an extent of %lld; every extent must be at least 1",
                           path, (long long)npy->shape[i]);
    const int64_t need = promised_bytes(npy);
    if (fstat(npy->fd, &st) < 0) return mx_fail(why, -errno, "%.300s: %s", path, strerror(errno));
    if (st.st_size < need)
        return mx_fail(why, -EINVAL, "%.300s is truncated: it has %lld bytes, and its header promises %lld%s",
                       path, (long long)st.st_size, (long long)need, need == INT64_MAX ? " or more" : "");
    return 0;
}
