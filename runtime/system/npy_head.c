/* SPDX-License-Identifier: BSD-3-Clause */
/* npy_head.c - reads the head of a .npy file of floating-point numbers. */
#include "system/npy_head.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>
#include <string.h>

/* The text after 'key': in the head of a .npy file. */
static const char *value_of(const char *head, const char *key) {
    const char *p = strstr(head, key);
    if (p == NULL || *(p += strlen(key)) != ':') return NULL;
    p++;
    while (*p == ' ') p++;
    return p;
}

int mx_npy_type_bytes(const char *descr) {
    const char *end = descr[0] == '\'' ? strchr(descr + 1, '\'') : NULL;
    return end != NULL && end - descr < 12 ? (int)(end - descr) + 1 : 12;
}

/* Head of a .npy file: at most 64 KiB of it. Extents in shape[0..1], 1 where there are fewer; the number of
 * them is the result, or an error. */
int mx_npy_head(int fd, const char *path, int64_t *data_at, int64_t *element, int64_t shape[2], mx_why *why) {
    unsigned char start[12];
    const int read = mx_read_all(fd, start, sizeof start, 0);
    if (read < 0 && read != -ENODATA)
        return mx_fail(why, read, "%s cannot be read: %s", path, strerror(-read));
    if (read < 0 || memcmp(start, "\x93NUMPY", 6) != 0)
        return mx_fail(why, -EINVAL, "%s is not a .npy file; write it with numpy.save", path);
    const bool wide = start[6] >= 2;
    const uint32_t low = start[8] | (uint32_t)start[9] << 8;
    const uint32_t length = wide ? low | (uint32_t)start[10] << 16 | (uint32_t)start[11] << 24 : low;
    if (length > UINT16_MAX)
        return mx_fail(why, -EINVAL, "%s has a header of %u bytes; at most 65535 can be read", path, length);
    char *head = calloc((size_t)length + 1, 1);
    if (head == NULL) return mx_fail(why, -ENOMEM, "no memory for the head of %s", path);
    int rank = mx_read_all(fd, head, length, wide ? 12 : 10);
    if (rank < 0) {
        rank = rank == -ENODATA ? mx_fail(why, -EINVAL, "%s is truncated inside its header", path)
                                : mx_fail(why, rank, "%s cannot be read: %s", path, strerror(-rank));
        goto out;
    }
    const char *descr = value_of(head, "'descr'"), *order = value_of(head, "'fortran_order'"),
               *extents = value_of(head, "'shape'");
    if (descr == NULL || order == NULL || extents == NULL || *extents != '(') {
        rank = mx_fail(why, -EINVAL,
                       "%s: its header lacks descr, fortran_order or shape; the file is damaged", path);
        goto out;
    }
    *element = strncmp(descr, "'<f8'", 5) == 0 ? 8 : strncmp(descr, "'<f4'", 5) == 0 ? 4 : 0;
    if (*element == 0) {
        rank = mx_fail(why, -EINVAL,
                       "%s has element type %.*s; '<f8' and '<f4' are supported: convert with "
                       "a.astype('f8')",
                       path, mx_npy_type_bytes(descr), descr);
        goto out;
    }
    *data_at = (wide ? 12 : 10) + (int64_t)length;
    shape[0] = shape[1] = 1;
    rank = 0;
    for (extents++; rank < 3; rank++) {
        char *end;
        const int64_t v = strtoll(extents, &end, 10);
        if (end == extents) break;
        if (rank < 2) shape[rank] = v;
        for (extents = end; *extents == ',' || *extents == ' ' || *extents == 'L'; extents++) {
        }
    }
    if (rank > 1 && strncmp(order, "False", 5) != 0)
        rank = mx_fail(why, -EINVAL, "%s is in Fortran order; save it with numpy.ascontiguousarray(a)", path);
out:
    free(head);
    return rank;
}
