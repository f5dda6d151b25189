/* SPDX-License-Identifier: BSD-3-Clause */
/* metaimage.c - headers of MetaImage (ITK's .mhd with a file of cells, .mha with the cells behind it):
 * https://itk.org/Wiki/ITK/MetaIO/Documentation. */
#include "grid/head.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    enum mx_dtype dtype;
} types[] = {{"MET_DOUBLE", MX_F64},    {"MET_FLOAT", MX_F32}, {"MET_UCHAR", MX_U8},
             {"MET_USHORT", MX_U16},    {"MET_SHORT", MX_I16}, {"MET_CHAR", MX_I8},
             {"MET_INT", MX_I32},       {"MET_UINT", MX_U32},  {"MET_LONG_LONG", MX_I64},
             {"MET_ULONG_LONG", MX_U64}};

struct reader {
    const char *path;
    mx_why *why;
    struct mx_array_head *out;
    bool typed, sized, ended, local, ordered;
    unsigned seen; /* rows of keys */
};

static int take_type(struct reader *r, const char *value) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(value, types[i].name) == 0) {
            r->out->dtype = types[i].dtype;
            r->typed = true;
            return 0;
        }
    return mx_fail(r->why, -EINVAL,
                   "%.300s has elements of type %.40s; MET_DOUBLE, MET_FLOAT and integers (MET_UCHAR, "
                   "MET_INT ...) are supported: convert it",
                   r->path, value);
}

static int take_dimensions(struct reader *r, const char *value) {
    if (mx_array_has_rank(r->out, value)) return 0;
    return mx_fail(r->why, -EINVAL, "%.300s has %.20s dimensions; a grid%s has %d", r->path, value,
                   r->out->rank == 2 ? " of a kernel of two dimensions" : "", r->out->rank);
}

static int take_sizes(struct reader *r, const char *value) {
    r->sized = mx_array_sizes(value, r->out->rank, r->out->size);
    if (r->sized) return 0;
    return mx_fail(r->why, -EINVAL, "%.300s has the DimSize %.80s; a grid needs %s, each at least 1", r->path,
                   value, r->out->rank == 2 ? "two" : "three");
}

static int take_truth(struct reader *r, const char *key, const char *value, bool *out) {
    *out = strcasecmp(value, "true") == 0 || strcmp(value, "1") == 0;
    if (*out || strcasecmp(value, "false") == 0 || strcmp(value, "0") == 0) return 0;
    return mx_fail(r->why, -EINVAL, "%.300s: %s is neither True nor False", r->path, key);
}

/* Of the two names of it one wins, which one depends on the reader. */
static int take_order(struct reader *r, const char *value) {
    const bool before = r->out->big_endian, twice = r->ordered;
    const int err = take_truth(r, "its byte order", value, &r->out->big_endian);
    r->ordered = true;
    if (err < 0 || !twice || before == r->out->big_endian) return err;
    return mx_fail(
        r->why, -EINVAL,
        "%.300s: BinaryDataByteOrderMSB and ElementByteOrderMSB give different byte orders: leave one of them out",
        r->path);
}

static int take_binary(struct reader *r, const char *value) {
    bool binary;
    int err = take_truth(r, "BinaryData", value, &binary);
    if (err == 0 && !binary)
        err = mx_fail(r->why, -EINVAL, "%.300s has its cells as text; write them as binary data", r->path);
    return err;
}

static int take_compressed(struct reader *r, const char *value) {
    bool compressed;
    int err = take_truth(r, "CompressedData", value, &compressed);
    if (err == 0 && compressed)
        err = mx_fail(r->why, -EINVAL,
                      "%.300s is compressed; write it without compression (ITK: SetUseCompression(False))",
                      r->path);
    return err;
}

static int take_channels(struct reader *r, const char *value) {
    if (strcmp(value, "1") == 0) return 0;
    return mx_fail(r->why, -EINVAL,
                   "%.300s has %.20s numbers a cell; write each component to a file of its own", r->path,
                   value);
}

static int take_bytes(struct reader *r, const char *value) {
    if (mx_array_whole(value, -1, &r->out->skip_bytes)) return 0;
    return mx_fail(r->why, -EINVAL, "%.300s: HeaderSize is '%.40s'; it must be an integer, -1 or more",
                   r->path, value);
}

bool mx_metaimage_local(const char *value) {
    return strcmp(value, "LOCAL") == 0 || strcmp(value, "Local") == 0 || strcmp(value, "local") == 0;
}

/* The last line of a header. */
static int take_data(struct reader *r, const char *value) {
    r->ended = true;
    r->local = mx_metaimage_local(value);
    if (r->local) return 0;
    if (value[0] == 0 || strncasecmp(value, "LIST", 4) == 0 || mx_array_several(value))
        return mx_fail(r->why, -EINVAL, "%.300s has its cells in several files (%.80s); merge them into one",
                       r->path, value);
    strcpy(r->out->data, value);
    return 0;
}

static const struct {
    const char *key;
    int (*take)(struct reader *r, const char *value);
} keys[] = {
    {"NDims", take_dimensions},     {"DimSize", take_sizes},
    {"ElementType", take_type},     {"ElementByteOrderMSB", take_order},
    {"BinaryData", take_binary},    {"BinaryDataByteOrderMSB", take_order},
    {"HeaderSize", take_bytes},     {"CompressedData", take_compressed},
    {"ElementDataFile", take_data}, {"ElementNumberOfChannels", take_channels},
};

/* Names are taken as they are written, as ITK does; others are the user's. */
static int take_line(struct reader *r, struct mx_line line) {
    char key[64], value[PATH_MAX];
    const char *equals = memchr(line.text, '=', line.bytes);
    const size_t before = equals != NULL ? (size_t)(equals - line.text) : 0;
    if (equals == NULL || memchr(line.text, ':', before) != NULL)
        return mx_fail(r->why, -EINVAL, "%.300s is not a MetaImage file: a line of its header has no '='",
                       r->path);
    if (!mx_array_pair((struct mx_line){line.text, before + 1}, "=", key, value)) return 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(key, keys[i].key) != 0) continue;
        if (!mx_array_pair(line, "=", key, value))
            return mx_fail(r->why, -EINVAL, "%.300s: the value of %s is too long", r->path, keys[i].key);
        if (r->seen >> i & 1)
            return mx_fail(r->why, -EINVAL, "%.300s: its header says '%s' twice: leave one of them out",
                           r->path, keys[i].key);
        r->seen |= 1u << i;
        return keys[i].take(r, value);
    }
    return 0;
}

int mx_metaimage_parse(const char *path, const char *text, size_t bytes, mx_why *why,
                       struct mx_array_head *out) {
    struct reader r = {.path = path, .why = why, .out = out};
    struct mx_line line;
    size_t at = 0;
    int err = 0;
    *out = (struct mx_array_head){.rank = out->rank};
    while (err == 0 && !r.ended && mx_array_line(text, bytes, &at, &line))
        if (line.bytes > 0) err = take_line(&r, line);
    if (err < 0) return err;
    out->begin = (int64_t)at;
    if (r.local && out->skip_bytes > 0)
        return mx_fail(why, -EINVAL,
                       "%.300s: HeaderSize is %lld, but the cells follow the header in the same file. "
                       "Readers disagree where they begin: leave HeaderSize out",
                       path, (long long)out->skip_bytes);
    if (r.typed && r.sized && r.ended) return 0;
    return mx_fail(why, -EINVAL, "%.300s: its header lacks %s", path,
                   !r.typed   ? "ElementType"
                   : !r.sized ? "DimSize"
                              : "ElementDataFile");
}
