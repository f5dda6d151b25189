/* SPDX-License-Identifier: BSD-3-Clause */
/* npy.c - NumPy's .npy format, version 1.0 to 3.0 in, 1.0 out (numpy/lib/format.py describes it). */
#include "grid/head.h"

#include "machine/file.h"
#include "system/npy_head.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char magic[6] = {(char)0x93, 'N', 'U', 'M', 'P', 'Y'};
enum { MAX_HEADER = 1 << 20 };

/* The text after 'key': in the header's dictionary, NULL if it is not there. */
static const char *value_of(const char *header, const char *key) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s'", key);
    const char *p = strstr(header, quoted);
    if (p == NULL) return NULL;
    p += strlen(quoted);
    while (*p == ' ') p++;
    if (*p != ':') return NULL;
    p++;
    while (*p == ' ') p++;
    return p;
}

/* Of mx_dtype, as NumPy calls them. */
static const char *const descr_of[MX_DTYPES] = {
    [MX_F64] = "<f8", [MX_F32] = "<f4", [MX_U8] = "|u1",  [MX_U16] = "<u2", [MX_I16] = "<i2",
    [MX_I8] = "|i1",  [MX_I32] = "<i4", [MX_U32] = "<u4", [MX_I64] = "<i8", [MX_U64] = "<u8"};

/* any: not floating point alone. */
static int parse_dtype(const char *path, const char *descr, bool any, enum mx_dtype *out, mx_why *why) {
    for (int i = 0; i < (any ? MX_DTYPES : MX_F32 + 1); i++)
        if (descr[0] == '\'' && strncmp(descr + 1, descr_of[i], 3) == 0 && descr[4] == '\'')
            return *out = (enum mx_dtype)i, 0;
    if (strncmp(descr, "'>f8'", 5) == 0 || strncmp(descr, "'>f4'", 5) == 0)
        return mx_fail(why, -EINVAL,
                       "%s is big endian (%.5s); convert it with a.astype(a.dtype.newbyteorder('<'))", path,
                       descr);
    const int n = mx_npy_type_bytes(descr);
    if (strncmp(descr, "'<c", 3) == 0 || strncmp(descr, "'>c", 3) == 0)
        return mx_fail(why, -EINVAL,
                       "%s has element type %.*s, complex numbers: save a.real and a.imag as two files", path,
                       n, descr);
    if (any)
        return mx_fail(
            why, -EINVAL,
            "%s has element type %.*s; f8, f4 and integers of 1 to 8 bytes, little endian, are supported",
            path, n, descr);
    return mx_fail(
        why, -EINVAL,
        "%s has element type %.*s; only '<f8' and '<f4' are supported: convert with a.astype('f8')", path, n,
        descr);
}

/* want: 3, or 2 for a grid of two dimensions, whose rows become planes, or MATRIX, a grid of one plane. */
enum { MATRIX = -2 };

static int parse_shape(const char *path, const char *text, int want, int64_t shape[3], mx_why *why) {
    int rank = 0;
    const int extents_wanted = want < 0 ? -want : want;
    int64_t extents[4] = {0};
    if (*text != '(') return mx_fail(why, -EINVAL, "%s: its header has no shape; the file is damaged", path);
    for (const char *p = text + 1; *p != 0 && *p != ')';) {
        char *end;
        long long v = strtoll(p, &end, 10);
        if (end == p) break;
        if (rank < 4) extents[rank] = v;
        rank++;
        for (p = end; *p == ',' || *p == ' ' || *p == 'L'; p++) {
        }
    }
    if (rank != extents_wanted)
        return mx_fail(why, -EINVAL, "%s has %d dimension%s; a %s", path, rank, rank == 1 ? "" : "s",
                       want == 3 ? "grid has 3: (nz+2h, ny+2h, nx+2h), where h is the width of the frame"
                       : want == 2
                           ? "grid of two dimensions has 2: (ny+2h, nx+2h), where h is the width of the frame"
                           : "matrix has 2: (rows+2, cols+2)");
    shape[0] = want == MATRIX ? 1 : extents[0];
    shape[1] = want == 3 ? extents[1] : want == MATRIX ? extents[0] : 1;
    shape[2] = extents[extents_wanted - 1];
    return 0;
}

static int parse_header(const char *path, const char *header, bool any, int rank, struct mx_npy *npy,
                        mx_why *why) {
    const char *descr = value_of(header, "descr"), *order = value_of(header, "fortran_order"),
               *shape = value_of(header, "shape");
    if (descr == NULL || order == NULL || shape == NULL)
        return mx_fail(why, -EINVAL,
                       "%s: its header lacks descr, fortran_order or shape; the file is damaged", path);
    int err = parse_dtype(path, descr, any, &npy->dtype, why);
    if (err < 0) return err;
    if (strncmp(order, "False", 5) != 0)
        return mx_fail(why, -EINVAL, "%s is in Fortran order; save it with numpy.ascontiguousarray(a)", path);
    return parse_shape(path, shape, rank, npy->shape, why);
}

/* Errors of a device are not those of a file that is too short (-ENODATA), which is the user's. */
static int fail_read(const char *path, int err, mx_why *why) {
    return mx_fail(why, err, "%s cannot be read: %s", path, strerror(-err));
}

int mx_npy_open_fd(int fd, const char *path, bool any, int rank, mx_why *why, struct mx_npy *out) {
    struct mx_npy npy = {.fd = fd};
    unsigned char head[12];
    char *header = NULL;
    int err = mx_read_all(npy.fd, head, sizeof head, 0);
    if (err < 0 && err != -ENODATA) {
        fail_read(path, err, why);
        goto fail;
    }
    if (err < 0 || memcmp(head, magic, sizeof magic) != 0) {
        err = mx_fail(why, -EINVAL, "%s is not a .npy file; write it with numpy.save", path);
        goto fail;
    }
    if (head[6] < 1 || head[6] > 3 || head[7] != 0) {
        err = mx_fail(why, -EINVAL, "%s has version %d.%d of the .npy format; 1.0, 2.0 and 3.0 can be read",
                      path, head[6], head[7]);
        goto fail;
    }
    bool wide = head[6] >= 2;
    uint32_t length = wide ? head[8] | head[9] << 8 | head[10] << 16 | (uint32_t)head[11] << 24
                           : (uint32_t)(head[8] | head[9] << 8);
    npy.data_offset_bytes = (wide ? 12 : 10) + (int64_t)length;
    header = length <= MAX_HEADER ? calloc(length + 1, 1) : NULL;
    err = header == NULL ? -ENODATA : mx_read_all(npy.fd, header, length, wide ? 12 : 10);
    if (err < 0) {
        err = err == -ENODATA
                  ? mx_fail(why, -EINVAL, "%s is truncated inside its header of %u bytes", path, length)
                  : fail_read(path, err, why);
        goto fail;
    }
    if ((err = parse_header(path, header, any, rank, &npy, why)) < 0 ||
        (err = mx_array_check_length(path, &npy, why)) < 0)
        goto fail;
    free(header);
    *out = npy;
    return 0;
fail:
    free(header);
    close(npy.fd);
    return err;
}

static int open_any(const char *path, bool any, int rank, mx_why *why, struct mx_npy *out) {
    const int fd = mx_file_open(path, why);
    return fd < 0 ? fd : mx_npy_open_fd(fd, path, any, rank, why, out);
}

int mx_npy_open(const char *path, mx_why *why, struct mx_npy *out) {
    return open_any(path, false, 3, why, out);
}

int mx_npy_open_field(const char *path, mx_why *why, struct mx_npy *out) {
    return open_any(path, true, 3, why, out);
}

int mx_npy_open_matrix(const char *path, mx_why *why, struct mx_npy *out) {
    return open_any(path, false, MATRIX, why, out);
}

static int begin(int fd, enum mx_dtype dtype, const int64_t shape[3], const char *extents, mx_why *why,
                 struct mx_npy *out) {
    enum { HEAD_BYTES = 128, TEXT_AT = 10 };
    char head[HEAD_BYTES], text[HEAD_BYTES];
    int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                     descr_of[dtype], extents);
    if (n < 0 || n >= HEAD_BYTES - TEXT_AT)
        return mx_fail(why, -EINVAL, "the extents of the grid are too large for a .npy file");
    memset(head, ' ', sizeof head);
    memcpy(head, magic, sizeof magic);
    head[6] = 1, head[7] = 0, head[8] = HEAD_BYTES - TEXT_AT, head[9] = 0;
    memcpy(head + TEXT_AT, text, (size_t)n);
    head[HEAD_BYTES - 1] = '\n';
    int err = mx_write_all(fd, head, sizeof head, 0);
    if (err < 0) return mx_fail(why, err, "the head of the .npy file cannot be written: %s", strerror(-err));
    *out = (struct mx_npy){
        .fd = fd, .dtype = dtype, .shape = {shape[0], shape[1], shape[2]}, .data_offset_bytes = HEAD_BYTES};
    return 0;
}

int mx_npy_begin(int fd, enum mx_dtype dtype, const int64_t shape[3], mx_why *why, struct mx_npy *out) {
    char extents[96];
    snprintf(extents, sizeof extents, "%lld, %lld, %lld", (long long)shape[0], (long long)shape[1],
             (long long)shape[2]);
    return begin(fd, dtype, shape, extents, why, out);
}

const char *mx_shape_text(const int64_t shape[3], bool flat, char text[MX_SHAPE_TEXT]) {
    if (flat)
        snprintf(text, MX_SHAPE_TEXT, "(%lld, %lld)", (long long)shape[0], (long long)shape[2]);
    else
        snprintf(text, MX_SHAPE_TEXT, "(%lld, %lld, %lld)", (long long)shape[0], (long long)shape[1],
                 (long long)shape[2]);
    return text;
}

int mx_npy_begin_grid(int fd, enum mx_dtype dtype, bool flat, const int64_t shape[3], mx_why *why,
                      struct mx_npy *out) {
    char extents[96];
    if (!flat) return mx_npy_begin(fd, dtype, shape, why, out);
    snprintf(extents, sizeof extents, "%lld, %lld", (long long)shape[0], (long long)shape[2]);
    return begin(fd, dtype, shape, extents, why, out);
}

int mx_npy_begin_matrix(int fd, enum mx_dtype dtype, int64_t rows, int64_t cols, mx_why *why,
                        struct mx_npy *out) {
    char extents[96];
    snprintf(extents, sizeof extents, "%lld, %lld", (long long)rows, (long long)cols);
    return begin(fd, dtype, (int64_t[3]){1, rows, cols}, extents, why, out);
}

int mx_npy_close(struct mx_npy *npy, mx_why *why) {
    int err = npy->fd >= 0 && close(npy->fd) < 0 ? -errno : 0;
    npy->fd = -1;
    return err < 0 ? mx_fail(why, err, "the .npy file could not be closed: %s", strerror(-err)) : 0;
}

/* Dense plane in the file <-> padded plane in DRAM, through one dense plane of scratch. */
static int move_planes(const struct mx_npy *npy, int64_t z0, int64_t n, char *dram,
                       const struct mx_layout *layout, bool write, mx_why *why) {
    size_t row = (size_t)(npy->shape[2] * mx_dtype_bytes(npy->dtype)), plane = row * (size_t)npy->shape[1];
    char *dense = malloc(plane);
    int err = dense == NULL
                  ? mx_fail(why, -ENOMEM, "no memory for a plane of %zu bytes of the .npy file", plane)
                  : 0;
    for (int64_t z = 0; z < n && err == 0; z++) {
        char *to = dram + z * layout->plane_pitch_bytes;
        int64_t at = npy->data_offset_bytes + (z0 + z) * (int64_t)plane;
        if (!write) err = mx_read_all(npy->fd, dense, plane, at);
        for (int64_t y = 0; y < npy->shape[1] && err == 0; y++) {
            char *padded = to + y * layout->row_pitch_bytes, *flat = dense + (size_t)y * row;
            memcpy(write ? flat : padded, write ? padded : flat, row);
        }
        if (write && err == 0) err = mx_write_all(npy->fd, dense, plane, at);
        if (err < 0)
            mx_fail(why, err, "%s of plane %lld of the .npy file failed: %s", write ? "writing" : "reading",
                    (long long)(z0 + z), strerror(-err));
    }
    free(dense);
    return err;
}

int mx_npy_read(const struct mx_npy *npy, int64_t z0, int64_t n, void *dram, const struct mx_layout *layout,
                mx_why *why) {
    return move_planes(npy, z0, n, dram, layout, false, why);
}

int mx_npy_write(const struct mx_npy *npy, int64_t z0, int64_t n, const void *dram,
                 const struct mx_layout *layout, mx_why *why) {
    return move_planes(npy, z0, n, (char *)(uintptr_t)dram, layout, true, why);
}
