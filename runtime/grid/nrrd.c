/* SPDX-License-Identifier: BSD-3-Clause */
/* nrrd.c - headers of NRRD files (teem's format, versions 1 to 5), attached or detached:
 * https://teem.sourceforge.net/nrrd/format.html. */
#include "grid/array.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* What such a file calls the types. */
static const struct {
    const char *name;
    enum mx_dtype dtype;
} types[] = {
    {"double", MX_F64},       {"float", MX_F32},          {"uchar", MX_U8},
    {"unsigned char", MX_U8}, {"uint8", MX_U8},           {"uint8_t", MX_U8},
    {"ushort", MX_U16},       {"unsigned short", MX_U16}, {"unsigned short int", MX_U16},
    {"uint16", MX_U16},       {"uint16_t", MX_U16},       {"short", MX_I16},
    {"short int", MX_I16},    {"signed short", MX_I16},   {"signed short int", MX_I16},
    {"int16", MX_I16},        {"int16_t", MX_I16},
};

struct reader {
    const char *path;
    mx_why *why;
    struct mx_array_head *out;
    bool typed, sized, encoded, ordered, attached;
};

static int take_type(struct reader *r, const char *value) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcasecmp(value, types[i].name) == 0) {
            r->out->dtype = types[i].dtype;
            r->typed = true;
            return 0;
        }
    return mx_fail(
        r->why, -EINVAL,
        "%.300s has cells of type %.40s; double, float, uchar, ushort and short are supported: convert it",
        r->path, value);
}

static int take_dimension(struct reader *r, const char *value) {
    if (strcmp(value, "3") == 0) return 0;
    return mx_fail(r->why, -EINVAL, "%.300s has %.20s dimensions; a grid has 3", r->path, value);
}

static int take_sizes(struct reader *r, const char *value) {
    r->sized = mx_array_sizes(value, r->out->size);
    if (r->sized) return 0;
    return mx_fail(r->why, -EINVAL, "%.300s has the sizes %.80s; a grid has three, from 1 on", r->path,
                   value);
}

static int take_encoding(struct reader *r, const char *value) {
    r->encoded = strcasecmp(value, "raw") == 0;
    if (r->encoded) return 0;
    return mx_fail(r->why, -EINVAL,
                   "%.300s is encoded as %.40s; only raw cells can be read: unu save -e raw, or Python",
                   r->path, value);
}

static int take_endian(struct reader *r, const char *value) {
    r->out->big_endian = strcasecmp(value, "big") == 0;
    r->ordered = r->out->big_endian || strcasecmp(value, "little") == 0;
    if (r->ordered) return 0;
    return mx_fail(r->why, -EINVAL, "%.300s: its byte order '%.40s' is neither little nor big", r->path,
                   value);
}

/* A list, or a pattern with numbers, is several files. */
static int take_data(struct reader *r, const char *value) {
    if (value[0] == 0 || strncmp(value, "LIST", 4) == 0 ||
        (strchr(value, '%') != NULL && strchr(value, ' ') != NULL))
        return mx_fail(r->why, -EINVAL, "%.300s has its cells in several files (%.80s); put them into one",
                       r->path, value);
    strcpy(r->out->data, value);
    return 0;
}

static int take_lines(struct reader *r, const char *value) {
    if (mx_array_whole(value, 0, &r->out->skip_lines)) return 0;
    return mx_fail(r->why, -EINVAL, "%.300s: line skip '%.40s' is no whole number from 0 on", r->path, value);
}

static int take_bytes(struct reader *r, const char *value) {
    if (mx_array_whole(value, -1, &r->out->skip_bytes)) return 0;
    return mx_fail(r->why, -EINVAL, "%.300s: byte skip '%.40s' is no whole number from -1 on", r->path,
                   value);
}

static const struct {
    const char *key;
    int (*take)(struct reader *r, const char *value);
} keys[] = {
    {"type", take_type},         {"dimension", take_dimension}, {"sizes", take_sizes},
    {"encoding", take_encoding}, {"endian", take_endian},       {"data file", take_data},
    {"datafile", take_data},     {"line skip", take_lines},     {"lineskip", take_lines},
    {"byte skip", take_bytes},   {"byteskip", take_bytes},
};

/* "key:=value" is the user's own, and other keys (axes, units) say nothing of where cells are. */
static int take_line(struct reader *r, struct mx_line line) {
    char key[64], value[PATH_MAX];
    if (line.bytes > 0 && line.text[0] == '#') return 0;
    if (memmem(line.text, line.bytes, ":=", 2) != NULL || !mx_array_pair(line, ": ", key, value)) return 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcasecmp(key, keys[i].key) == 0) return keys[i].take(r, value);
    return 0;
}

int mx_nrrd_parse(const char *path, const char *text, size_t bytes, mx_why *why, struct mx_array_head *out) {
    struct reader r = {.path = path, .why = why, .out = out};
    struct mx_line line;
    size_t at = 0;
    *out = (struct mx_array_head){.begin = 0};
    if (!mx_array_line(text, bytes, &at, &line) || line.bytes != 8 || memcmp(line.text, "NRRD000", 7) != 0 ||
        line.text[7] < '1' || line.text[7] > '5')
        return mx_fail(why, -EINVAL, "%.300s is no NRRD file of version 1 to 5", path);
    while (!r.attached && mx_array_line(text, bytes, &at, &line)) {
        r.attached = line.bytes == 0;
        const int err = r.attached ? 0 : take_line(&r, line);
        if (err < 0) return err;
    }
    out->begin = (int64_t)at;
    if (!r.typed || !r.sized || !r.encoded)
        return mx_fail(why, -EINVAL, "%.300s: its header lacks %s", path,
                       !r.typed   ? "the type"
                       : !r.sized ? "the sizes"
                                  : "the encoding");
    if (!r.ordered && mx_dtype_bytes(out->dtype) > 1)
        return mx_fail(why, -EINVAL, "%.300s: its header does not say the byte order (endian: little)", path);
    if (!r.attached && out->data[0] == 0)
        return mx_fail(
            why, -EINVAL,
            "%.300s: its header neither ends with an empty line, with cells behind, nor names their file",
            path);
    return 0;
}
