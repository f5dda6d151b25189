/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/values.h"

#include "machine/file.h"
#include "system/npy_head.h"

#include <errno.h>
#include <math.h>
#include <memext/backend.h>
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

static int read_open(int fd, const char *path, const char *what, mx_why *why, int64_t *n, double **value) {
    int64_t at = 0, element = 0, shape[2] = {0};
    struct stat st;
    const int dimensions = mx_npy_head(fd, path, &at, &element, shape, why);
    if (dimensions < 0) return dimensions;
    if (dimensions != 1)
        return mx_fail(why, -EINVAL, "%s has %d dimensions%s; %s has one: a value for each step", path,
                       dimensions, dimensions > 2 ? " or more" : "", what);
    if (fstat(fd, &st) < 0) return mx_fail(why, -errno, "%s: %s", path, strerror(errno));
    if (shape[0] < 0 || shape[0] > (st.st_size - at) / element)
        return mx_fail(why, -EINVAL, "%s is truncated: its head promises %lld values, %lld are there", path,
                       (long long)shape[0], (long long)((st.st_size - at) / element));
    *n = shape[0];
    *value = calloc((size_t)*n + 1, sizeof **value);
    if (*value == NULL)
        return mx_fail(why, -ENOMEM, "no memory for the %lld values of %s", (long long)*n, path);
    return read_cells(fd, path, at, element, *n, *value, why);
}

int mx_values_read(const char *path, const char *what, mx_why *why, int64_t *n, double **out) {
    double *value = NULL;
    const int fd = mx_file_open(path, why);
    if (fd < 0) return fd;
    const int err = read_open(fd, path, what, why, n, &value);
    mx_sys->close(fd);
    if (err < 0) free(value);
    return err < 0 ? err : (*out = value, 0);
}
