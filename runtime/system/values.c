/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/values.h"

#include "machine/file.h"
#include "system/npy_head.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool mx_read_number(const char *text, double *out) {
    char *end;
    double value = strtod(text, &end);
    if (end == text) return false;
    if (*end == '/') {
        const char *below = end + 1;
        const double divisor = strtod(below, &end);
        if (end == below || !isfinite(divisor)) return false;
        value /= divisor;
    }
    return *out = value, *end == 0 && isfinite(value);
}

bool mx_number_is_rounded(const char *text, double value) {
    enum { MOST = DBL_MAX_10_EXP + 3 }; /* characters of the longest double that is written out */
    char exact[MOST + 1];
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    if (digits[0] == 0 || digits[strspn(digits, "0123456789")] != 0) return false;
    digits += strspn(digits, "0");
    snprintf(exact, sizeof exact, "%.0f", fabs(value));
    return strcmp(digits[0] != 0 ? digits : "0", exact) != 0;
}

static int read_cells(int fd, const char *path, int64_t at, int64_t element, int64_t n, double *value,
                      mx_why *why) {
    int err = mx_read_all(fd, value, (size_t)(n * element), at);
    if (err < 0) return mx_fail(why, err, "%s could not be read: %s", path, strerror(-err));
    if (element == 4)
        for (int64_t i = n; i-- > 0;) {
            float f;
            memcpy(&f, (const char *)value + 4 * i, sizeof f);
            value[i] = f;
        }
    return 0;
}

/* Are these the extents of a file of so many levels a step? levels 1: it has one dimension. */
static int check_extents(const char *path, const char *what, int dimensions, const int64_t shape[2],
                         int64_t levels, mx_why *why) {
    if (dimensions == 1 || (dimensions == 2 && levels > 1 && shape[1] == levels)) return 0;
    if (dimensions == 2 && levels > 1)
        return mx_fail(why, -EINVAL,
                       "%s has the shape (%lld, %lld); %s needs the shape (steps) or (steps, %lld): a value "
                       "for each step, or for each of its %lld levels",
                       path, (long long)shape[0], (long long)shape[1], what, (long long)levels,
                       (long long)levels);
    return mx_fail(why, -EINVAL, "%s has %d dimensions%s; %s needs one dimension: a value for each step",
                   path, dimensions, dimensions > 2 ? " or more" : "", what);
}

static int read_open(int fd, const char *path, const char *what, int64_t levels, mx_why *why, int64_t *n,
                     int32_t *each, double **value) {
    int64_t at = 0, element = 0, shape[2] = {0};
    struct stat st;
    const int dimensions = mx_npy_head(fd, path, &at, &element, shape, why);
    if (dimensions < 0) return dimensions;
    int err = check_extents(path, what, dimensions, shape, levels, why);
    if (err < 0) return err;
    *each = dimensions == 2 ? (int32_t)levels : 1;
    if (fstat(fd, &st) < 0) return mx_fail(why, -errno, "%s: %s", path, strerror(errno));
    const int64_t there = (st.st_size - at) / element;
    if (shape[0] < 0 || shape[0] > there / *each)
        return mx_fail(why, -EINVAL, "%s is truncated: its header promises %lld values, and it has %lld",
                       path, (long long)shape[0] * *each, (long long)there);
    *n = shape[0];
    *value = calloc((size_t)(*n * *each) + 1, sizeof **value);
    if (*value == NULL)
        return mx_fail(why, -ENOMEM, "no memory for the %lld values of %s", (long long)(*n * *each), path);
    return read_cells(fd, path, at, element, *n * *each, *value, why);
}

int mx_values_read(const char *path, const char *what, mx_why *why, int64_t *n, double **out) {
    int32_t each;
    return mx_values_read_levels(path, what, 1, why, n, &each, out);
}

int mx_values_read_levels(const char *path, const char *what, int64_t levels, mx_why *why, int64_t *n,
                          int32_t *each, double **out) {
    double *value = NULL;
    const int fd = mx_file_open(path, why);
    if (fd < 0) return fd;
    const int err = read_open(fd, path, what, levels, why, n, each, &value);
    mx_sys->close(fd);
    if (err < 0) free(value);
    return err < 0 ? err : (*out = value, 0);
}
