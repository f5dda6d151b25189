/* SPDX-License-Identifier: BSD-3-Clause */
/* nrrd.c - headers of NRRD files (teem's format, versions 1 to 5), attached or detached:
 * https://teem.sourceforge.net/nrrd/format.html. */
#include "grid/head.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* What such a file calls the types. */
static const struct {
    const char *name;
    enum mx_dtype dtype;
} types[] = {
    {"double", MX_F64},
    {"float", MX_F32},
    {"uchar", MX_U8},
    {"unsigned char", MX_U8},
    {"uint8", MX_U8},
    {"uint8_t", MX_U8},
    {"ushort", MX_U16},
    {"unsigned short", MX_U16},
    {"unsigned short int", MX_U16},
    {"uint16", MX_U16},
    {"uint16_t", MX_U16},
    {"short", MX_I16},
    {"short int", MX_I16},
    {"signed short", MX_I16},
    {"signed short int", MX_I16},
    {"int16", MX_I16},
    {"int16_t", MX_I16},
    {"signed char", MX_I8},
    {"int8", MX_I8},
    {"int8_t", MX_I8},
    {"int", MX_I32},
    {"signed int", MX_I32},
    {"int32", MX_I32},
    {"int32_t", MX_I32},
    {"uint", MX_U32},
    {"unsigned int", MX_U32},
    {"uint32", MX_U32},
    {"uint32_t", MX_U32},
    {"longlong", MX_I64},
    {"long long", MX_I64},
    {"long long int", MX_I64},
    {"signed long long", MX_I64},
    {"signed long long int", MX_I64},
    {"int64", MX_I64},
    {"int64_t", MX_I64},
    {"ulonglong", MX_U64},
    {"unsigned long long", MX_U64},
    {"unsigned long long int", MX_U64},
    {"uint64", MX_U64},
    {"uint64_t", MX_U64},
};

struct reader {
    const char *path;
    mx_why *why;
    struct mx_array_head *out;
    bool typed, sized, encoded, ordered, attached;
    unsigned seen; /* rows of keys */
};

static int take_type(struct reader *r, const char *value) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcasecmp(value, types[i].name) == 0) {
            r->out->dtype = types[i].dtype;
            r->typed = true;
            return 0;
        }
    return mx_fail(r->why, -EINVAL,
                   "%.300s has cells of type %.40s; double, float and integers (uchar, short, int ...) are "
                   "supported: convert it",
                   r->path, value);
}

static int take_dimension(struct reader *r, const char *value) {
    if (mx_array_has_rank(r->out, value)) return 0;
    return mx_fail(r->why, -EINVAL, "%.300s has %.20s dimensions; a grid%s has %d", r->path, value,
                   r->out->rank == 2 ? " of a kernel of two dimensions" : "", r->out->rank);
}

static int take_sizes(struct reader *r, const char *value) {
    r->sized = mx_array_sizes(value, r->out->rank, r->out->size);
    if (r->sized) return 0;
    return mx_fail(r->why, -EINVAL, "%.300s has the sizes %.80s; a grid needs %s, each at least 1", r->path,
                   value, r->out->rank == 2 ? "two" : "three");
}

static int take_encoding(struct reader *r, const char *value) {
    r->encoded = strcasecmp(value, "raw") == 0;
    if (r->encoded) return 0;
    return mx_fail(
        r->why, -EINVAL,
        "%.300s is encoded as %.40s; only raw cells can be read: convert it with unu save -e raw, or with "
        "pynrrd",
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
    if (value[0] == 0 || strncmp(value, "LIST", 4) == 0 || mx_array_several(value))
        return mx_fail(r->why, -EINVAL, "%.300s has its cells in several files (%.80s); merge them into one",
                       r->path, value);
    strcpy(r->out->data, value);
    return 0;
}

static int take_lines(struct reader *r, const char *value) {
    if (mx_array_whole(value, 0, &r->out->skip_lines)) return 0;
    return mx_fail(r->why, -EINVAL, "%.300s: line skip is '%.40s'; it must be an integer, 0 or more", r->path,
                   value);
}

static int take_bytes(struct reader *r, const char *value) {
    if (mx_array_whole(value, -1, &r->out->skip_bytes)) return 0;
    return mx_fail(r->why, -EINVAL, "%.300s: byte skip is '%.40s'; it must be an integer, -1 or more",
                   r->path, value);
}

/* Up to three names in quotation marks, x first. */
static int take_labels(struct reader *r, const char *value) {
    char name[3][8] = {"", "", ""};
    int n = 0;
    for (const char *p = value; (p = strchr(p, '"')) != NULL; n++) {
        const char *begin = ++p;
        while (*p != 0 && *p != '"') p += p[0] == '\\' && p[1] != 0 ? 2 : 1;
        if (*p == 0) break;
        if (n < 3 && (size_t)(p - begin) < sizeof name[0]) memcpy(name[n], begin, (size_t)(p - begin));
        p++;
    }
    const char *const names[3] = {name[2], name[1], name[0]};
    if (r->out->rank == 2 && n == 2 && mx_array_rows_turned(names + 1))
        return mx_fail(
            r->why, -EINVAL,
            "%.300s has the labels %.80s; a grid of two dimensions needs x, y: transpose it (unu permute)",
            r->path, value);
    if (r->out->rank == 2 || n != 3 || !mx_array_turned(names)) return 0;
    return mx_fail(r->why, -EINVAL,
                   "%.300s has the labels %.80s; a grid needs x, y, z: transpose it (unu permute), or read "
                   "it through Python",
                   r->path, value);
}

static const struct {
    const char *key, *other; /* how it may be written as well */
    int (*take)(struct reader *r, const char *value);
} keys[] = {
    {"type", NULL, take_type},
    {"dimension", NULL, take_dimension},
    {"sizes", NULL, take_sizes},
    {"encoding", NULL, take_encoding},
    {"endian", NULL, take_endian},
    {"data file", "datafile", take_data},
    {"line skip", "lineskip", take_lines},
    {"byte skip", "byteskip", take_bytes},
    {"labels", NULL, take_labels},
};

/* They say nothing of where cells are and what they are. */
static const char *const others[] = {"content",
                                     "number",
                                     "block size",
                                     "blocksize",
                                     "space",
                                     "space dimension",
                                     "spacings",
                                     "thicknesses",
                                     "axis mins",
                                     "axismins",
                                     "axis maxs",
                                     "axismaxs",
                                     "centers",
                                     "centerings",
                                     "units",
                                     "kinds",
                                     "min",
                                     "max",
                                     "old min",
                                     "oldmin",
                                     "old max",
                                     "oldmax",
                                     "sample units",
                                     "sampleunits",
                                     "space units",
                                     "space origin",
                                     "space directions",
                                     "measurement frame"};

enum { KEYS = sizeof keys / sizeof keys[0] };

static int find_key(const char *key) {
    int at = 0;
    while (at < KEYS && strcasecmp(key, keys[at].key) != 0 &&
           (keys[at].other == NULL || strcasecmp(key, keys[at].other) != 0))
        at++;
    return at;
}

static bool is_other(const char *key) {
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcasecmp(key, others[i]) == 0) return true;
    return false;
}

/* "key:=value" is the user's own; one that has the name of a field is read differently by different readers.
 */
static int take_pair(struct reader *r, struct mx_line line) {
    char key[64], value[PATH_MAX];
    const int at = mx_array_pair(line, ":=", key, value) ? find_key(key) : KEYS;
    if (at == KEYS || keys[at].take == take_labels) return 0;
    return mx_fail(r->why, -EINVAL,
                   "%.300s: its header has the pair '%s:=', which some readers take for the field '%s:'. "
                   "That field says how cells are read: write '%s: ...'",
                   r->path, keys[at].key, keys[at].key, keys[at].key);
}

/* How much of it a sentence can show: cells may have been taken for a line. */
static int printable(struct mx_line line) {
    int n = 0;
    while (n < 80 && (size_t)n < line.bytes && line.text[n] >= ' ' && line.text[n] <= '~') n++;
    return n;
}

static int take_line(struct reader *r, struct mx_line line) {
    char key[64], value[PATH_MAX];
    if (line.bytes > 0 && line.text[0] == '#') return 0;
    const char *colon = memchr(line.text, ':', line.bytes);
    const size_t before = colon != NULL ? (size_t)(colon - line.text) : line.bytes;
    if (before + 1 < line.bytes && colon[1] == '=') return take_pair(r, line);
    const bool whole = mx_array_pair(line, ":", key, value);
    /* Values of other fields may be of any length. */
    const bool named =
        whole || (colon != NULL && mx_array_pair((struct mx_line){line.text, before + 1}, ":", key, value));
    const int at = whole ? find_key(key) : KEYS;
    if (named && is_other(key)) return 0;
    if (at == KEYS)
        return mx_fail(r->why, -EINVAL,
                       "%.300s: the line '%.*s' of its header is not a field of NRRD: 'field: value' or "
                       "'key:=value' is needed",
                       r->path, printable(line), line.text);
    if (r->seen >> at & 1)
        return mx_fail(r->why, -EINVAL, "%.300s: its header says '%s' twice: leave one of them out", r->path,
                       keys[at].key);
    r->seen |= 1u << at;
    return keys[at].take(r, value);
}

int mx_nrrd_parse(const char *path, const char *text, size_t bytes, mx_why *why, struct mx_array_head *out) {
    struct reader r = {.path = path, .why = why, .out = out};
    struct mx_line line;
    size_t at = 0;
    *out = (struct mx_array_head){.rank = out->rank};
    if (!mx_array_line(text, bytes, &at, &line) || line.bytes != 8 || memcmp(line.text, "NRRD000", 7) != 0 ||
        line.text[7] < '1' || line.text[7] > '5')
        return mx_fail(why, -EINVAL, "%.300s is not an NRRD file of version 1 to 5", path);
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
            "%.300s: its header must end with an empty line before the cells, or name the file of the cells",
            path);
    return 0;
}
