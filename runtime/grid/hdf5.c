/* SPDX-License-Identifier: BSD-3-Clause */
/* hdf5.c - contiguous datasets of HDF5 files. libhdf5 tells their type and where they lie. It reads only
 * attributes that say what cells mean.
 *
 * If it is a shared library (MX_HDF5_LIBRARY, its name for the loader), it is loaded with the first file that
 * needs it. It loads 30 others, which would delay the start of a program by 10 to 20 ms. */
#ifdef MX_HDF5
#include "grid/head.h"

#include <dlfcn.h>
#include <errno.h>
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The library may be built without threads in mind. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#if H5_VERSION_GE(1, 10, 7) && !(H5_VERSION_GE(1, 12, 0) && !H5_VERSION_GE(1, 12, 1))
#define LOCKING(F) F(H5Pset_file_locking)
#else
#define LOCKING(F)
#endif

/* What is used of it: functions, and the identifiers that its macros stand for once H5open was called. */
#define SYMBOLS(F)                                                                                           \
    F(H5open)                                                                                                \
    F(H5Aclose)                                                                                              \
    F(H5Aexists)                                                                                             \
    F(H5Aget_space)                                                                                          \
    F(H5Aget_type)                                                                                           \
    F(H5Aopen)                                                                                               \
    F(H5Aread)                                                                                               \
    F(H5Dvlen_reclaim)                                                                                       \
    F(H5Dclose)                                                                                              \
    F(H5Dget_create_plist)                                                                                   \
    F(H5Dget_offset)                                                                                         \
    F(H5Dget_space)                                                                                          \
    F(H5Dget_space_status)                                                                                   \
    F(H5Dget_type)                                                                                           \
    F(H5Dopen2)                                                                                              \
    F(H5Eget_auto2)                                                                                          \
    F(H5Eset_auto2)                                                                                          \
    F(H5Iget_name)                                                                                           \
    F(H5Oclose)                                                                                              \
    F(H5Rdereference2)                                                                                       \
    F(H5Fclose)                                                                                              \
    F(H5Fget_name)                                                                                           \
    F(H5Fopen)                                                                                               \
    F(H5Pclose)                                                                                              \
    F(H5Pcreate)                                                                                             \
    F(H5Pfill_value_defined)                                                                                 \
    F(H5Pget_external_count)                                                                                 \
    F(H5Pget_layout)                                                                                         \
    F(H5Pget_nfilters)                                                                                       \
    F(H5Sclose)                                                                                              \
    F(H5Sget_simple_extent_dims)                                                                             \
    F(H5Sget_simple_extent_npoints)                                                                          \
    F(H5Tclose)                                                                                              \
    F(H5Tequal)                                                                                              \
    F(H5Tget_class)                                                                                          \
    F(H5Tget_order)                                                                                          \
    F(H5Tget_size)                                                                                           \
    F(H5Tget_super)                                                                                          \
    F(H5Tis_variable_str)                                                                                    \
    F(H5P_CLS_FILE_ACCESS_ID_g)                                                                              \
    F(H5T_IEEE_F64LE_g)                                                                                      \
    F(H5T_NATIVE_LDOUBLE_g)                                                                                  \
    F(H5T_IEEE_F32LE_g)                                                                                      \
    F(H5T_STD_U8LE_g)                                                                                        \
    F(H5T_STD_U16LE_g)                                                                                       \
    F(H5T_STD_I16LE_g)                                                                                       \
    F(H5T_STD_I8LE_g)                                                                                        \
    F(H5T_STD_I32LE_g)                                                                                       \
    F(H5T_STD_U32LE_g)                                                                                       \
    F(H5T_STD_I64LE_g)                                                                                       \
    F(H5T_STD_U64LE_g)                                                                                       \
    LOCKING(F)

enum { READ_ONLY = 0 }; /* H5F_ACC_RDONLY, whose macro calls functions besides */

static struct {
#define MEMBER(name) __typeof__(name) *name;
    SYMBOLS(MEMBER)
} h5;

static int find_library(mx_why *why) {
    if (h5.H5open != NULL) return 0;
#ifdef MX_HDF5_LIBRARY
    const char *missing = NULL;
    void *library = dlopen(MX_HDF5_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return mx_fail(why, -ENOENT,
                       "reading HDF5 files needs " MX_HDF5_LIBRARY
                       ", the library that this memext was built with: %.200s",
                       dlerror());
#define FIND(name)                                                                                           \
    if ((*(void **)&h5.name = dlsym(library, #name)) == NULL) missing = #name;
    SYMBOLS(FIND)
    if (missing == NULL) return 0;
    memset(&h5, 0, sizeof h5);
    dlclose(library);
    return mx_fail(why, -ENOENT,
                   MX_HDF5_LIBRARY
                   " has no function %s: this library is not the version that this memext was built with",
                   missing);
#else
    (void)why;
#define IS(name) h5.name = &name;
    SYMBOLS(IS)
    return 0;
#endif
}

static int check_type(hid_t set, const char *word, bool any, mx_why *why, enum mx_dtype *out) {
    const hid_t type = h5.H5Dget_type(set);
    const H5T_class_t class = type >= 0 ? h5.H5Tget_class(type) : H5T_NO_CLASS;
    const size_t bytes = type >= 0 ? h5.H5Tget_size(type) : 0;
    int err = -EINVAL;
    /* Of any byte order: which one it is follows. */
    for (int i = 0; i < MX_DTYPES; i++) {
        const hid_t plain[MX_DTYPES] = {
            [MX_F64] = *h5.H5T_IEEE_F64LE_g, [MX_F32] = *h5.H5T_IEEE_F32LE_g, [MX_U8] = *h5.H5T_STD_U8LE_g,
            [MX_U16] = *h5.H5T_STD_U16LE_g,  [MX_I16] = *h5.H5T_STD_I16LE_g,  [MX_I8] = *h5.H5T_STD_I8LE_g,
            [MX_I32] = *h5.H5T_STD_I32LE_g,  [MX_U32] = *h5.H5T_STD_U32LE_g,  [MX_I64] = *h5.H5T_STD_I64LE_g,
            [MX_U64] = *h5.H5T_STD_U64LE_g};
        if (type >= 0 && h5.H5Tequal(type, plain[i]) > 0) *out = (enum mx_dtype)i, err = 0;
    }
    if (err == 0) {
        err = mx_array_check_type(word, *out, any, why);
    } else if (bytes > 1 && (class == H5T_FLOAT || class == H5T_INTEGER) &&
               h5.H5Tget_order(type) == H5T_ORDER_BE) {
        mx_fail(why, err, "%.300s is big endian; convert it to little endian", word);
    } else {
        mx_fail(why, err,
                "%.300s has elements of another type than " MX_DTYPE_NAMES ", little endian: convert them",
                word);
    }
    if (type >= 0) h5.H5Tclose(type);
    return err;
}

static int check_shape(hid_t set, const char *word, int wanted, mx_why *why, int64_t shape[3]) {
    hsize_t extents[H5S_MAX_RANK] = {0};
    const hid_t space = h5.H5Dget_space(set);
    const int rank = space >= 0 ? h5.H5Sget_simple_extent_dims(space, extents, NULL) : -1;
    if (space >= 0) h5.H5Sclose(space);
    for (int i = 0; i < 3; i++) shape[i] = (int64_t)extents[i];
    if (wanted == 2) shape[1] = 1, shape[2] = (int64_t)extents[1];
    if (rank == wanted) return 0;
    return mx_fail(
        why, -EINVAL, "%.300s has %d dimension%s; a grid %s", word, rank > 0 ? rank : 0, rank == 1 ? "" : "s",
        wanted == 3 ? "has 3: z, y, x. Write the cells as such a dataset"
                    : "of a kernel of two dimensions has 2: y, x. Write the cells as such a dataset");
}

/* As it is in memory, in this file. */
static int check_layout(hid_t set, const char *word, mx_why *why, int64_t *offset) {
    const hid_t list = h5.H5Dget_create_plist(set);
    const H5D_layout_t layout = list >= 0 ? h5.H5Pget_layout(list) : H5D_LAYOUT_ERROR;
    const int filters = list >= 0 ? h5.H5Pget_nfilters(list) : 0,
              external = list >= 0 ? h5.H5Pget_external_count(list) : 0;
    if (list >= 0) h5.H5Pclose(list);
    if (layout != H5D_CONTIGUOUS || filters > 0)
        return mx_fail(
            why, -EINVAL,
            "%.300s is %s, not contiguous; rewrite it (h5repack -l CONTI -f NONE OLD.h5 NEW.h5), or read it "
            "through Python",
            word,
            layout == H5D_CHUNKED   ? "chunked"
            : layout == H5D_COMPACT ? "compact"
                                    : "virtual");
    if (external > 0)
        return mx_fail(
            why, -EINVAL,
            "%.300s keeps its cells in other files; name one of those as raw cells: FILE,TYPE,offset=BYTES",
            word);
    /* Behind a block of the user's, cells that are nowhere have an offset too: that block's length less 1. */
    H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
    const haddr_t at = h5.H5Dget_offset(set);
    if (h5.H5Dget_space_status(set, &status) < 0 || status != H5D_SPACE_STATUS_ALLOCATED ||
        at == HADDR_UNDEF || at > INT64_MAX / 4)
        return mx_fail(why, -EINVAL,
                       "%.300s has no cells: the dataset was created, but nothing was ever written to it",
                       word);
    *offset = (int64_t)at;
    return 0;
}

/* Does a link on the way lead to another file? Offsets there say nothing of this one. */
static int check_file(hid_t file, hid_t set, const char *word, mx_why *why) {
    char here[PATH_MAX] = "", there[PATH_MAX] = "";
    const ssize_t n = h5.H5Fget_name(file, here, sizeof here), m = h5.H5Fget_name(set, there, sizeof there);
    if (n > 0 && n == m && strcmp(here, there) == 0) return 0;
    return mx_fail(why, -EINVAL,
                   "%.300s is a link to a dataset of another file, %.200s: name that file and its dataset",
                   word, there);
}

/* ---- what attributes say of the cells: CF conventions 1.11, as the Python package reads them (cf.py) */

enum { MOST_NUMBERS = 8 };

struct attribute {
    hid_t id, type, space;
    H5T_class_t class;
    int64_t count;
};

/* false: there is none. */
static bool open_attribute(hid_t object, const char *name, struct attribute *out) {
    if (h5.H5Aexists(object, name) <= 0) return false;
    *out = (struct attribute){.id = h5.H5Aopen(object, name, H5P_DEFAULT)};
    if (out->id < 0) return false;
    out->type = h5.H5Aget_type(out->id), out->space = h5.H5Aget_space(out->id);
    out->class = out->type >= 0 ? h5.H5Tget_class(out->type) : H5T_NO_CLASS;
    out->count = out->space >= 0 ? h5.H5Sget_simple_extent_npoints(out->space) : -1;
    return true;
}

static void close_attribute(const struct attribute *a) {
    if (a->space >= 0) h5.H5Sclose(a->space);
    if (a->type >= 0) h5.H5Tclose(a->type);
    h5.H5Aclose(a->id);
}

/* *n: 0 if there is no such attribute. want: how many numbers it has, 0 = any. */
static int take_numbers(hid_t set, const char *word, const char *name, int want, mx_why *why,
                        long double out[MOST_NUMBERS], int *n) {
    struct attribute a;
    *n = 0;
    if (!open_attribute(set, name, &a)) return 0;
    int err = -EINVAL;
    if (a.class != H5T_INTEGER && a.class != H5T_FLOAT)
        mx_fail(why, err, "the attribute %s of %.300s is text, not a number: write it as a number", name,
                word);
    else if (a.count < 1 || a.count > MOST_NUMBERS || (want > 0 && a.count != want))
        mx_fail(why, err, "the attribute %s of %.300s has %lld numbers: it needs %s", name, word,
                (long long)a.count,
                want == 1   ? "one"
                : want == 2 ? "two"
                            : "1 to 8");
    else if (h5.H5Aread(a.id, *h5.H5T_NATIVE_LDOUBLE_g, out) < 0)
        mx_fail(why, err, "the attribute %s of %.300s cannot be read", name, word);
    else
        *n = (int)a.count, err = 0;
    close_attribute(&a);
    return err;
}

/* Cells that are other numbers than what is stored are not read in place. */
static int check_packing(hid_t set, const char *word, mx_why *why) {
    static const char *const names[] = {"scale_factor", "add_offset", "_Unsigned"};
    for (int i = 0; i < 3; i++)
        if (h5.H5Aexists(set, names[i]) > 0)
            return mx_fail(why, -EINVAL,
                           "%.300s has the attribute %s, so its cells are packed: unpack them, or read the "
                           "file through Python",
                           word, names[i]);
    return 0;
}

static int take_fills(hid_t set, const char *word, mx_why *why, struct mx_array_missing *m) {
    static const char *const names[] = {"_FillValue", "missing_value"};
    int err = 0;
    for (int i = 0; i < 2 && err == 0; i++) {
        int n;
        err = take_numbers(set, word, names[i], 0, why, m->fill + m->n_fills, &n);
        m->n_fills += n;
    }
    return err;
}

static int take_limits(hid_t set, const char *word, mx_why *why, struct mx_array_missing *m) {
    static const struct {
        const char *name;
        int count;
        bool low, high;
    } limits[] = {
        {"valid_min", 1, true, false}, {"valid_max", 1, false, true}, {"valid_range", 2, true, true}};
    for (int i = 0; i < 3; i++) {
        long double number[MOST_NUMBERS];
        int n;
        const int err = take_numbers(set, word, limits[i].name, limits[i].count, why, number, &n);
        if (err < 0) return err;
        for (int k = 0; k < n; k++)
            if (number[k] != number[k])
                return mx_fail(why, -EINVAL, "the attribute %s of %.300s is NaN: write a number",
                               limits[i].name, word);
        if (n > 0 && limits[i].low && (!m->has_low || number[0] > m->low))
            m->has_low = true, m->low = number[0];
        if (n > 0 && limits[i].high && (!m->has_high || number[n - 1] < m->high))
            m->has_high = true, m->high = number[n - 1];
    }
    return 0;
}

/* Was the dataset given a value for cells that nobody wrote? */
static bool is_filled(hid_t set) {
    H5D_fill_value_t fill = H5D_FILL_VALUE_UNDEFINED;
    const hid_t list = h5.H5Dget_create_plist(set);
    if (list >= 0) h5.H5Pfill_value_defined(list, &fill), h5.H5Pclose(list);
    return fill == H5D_FILL_VALUE_USER_DEFINED;
}

/* Cells of NetCDF that nobody wrote (NC_FILL_* of netcdf.h). Of bytes all values may be in use: they have one
 * only where they were filled, as netCDF4 reads them. */
static void add_default_fill(hid_t file, hid_t set, enum mx_dtype dtype, struct mx_array_missing *m) {
    static const long double fills[MX_DTYPES] = {[MX_F64] = 9.9692099683868690e+36,
                                                 [MX_F32] = 9.9692099683868690e+36f,
                                                 [MX_U8] = 255,
                                                 [MX_U16] = 65535,
                                                 [MX_I16] = -32767,
                                                 [MX_I8] = -127,
                                                 [MX_I32] = -2147483647.0,
                                                 [MX_U32] = 4294967295.0,
                                                 [MX_I64] = -9223372036854775806.0L,
                                                 [MX_U64] = 18446744073709551614.0L};
    if (h5.H5Aexists(file, "_NCProperties") <= 0 || h5.H5Aexists(set, "_FillValue") > 0 ||
        (mx_dtype_bytes(dtype) == 1 && !is_filled(set)))
        return;
    m->fill[m->n_fills++] = fills[dtype];
}

static int take_missing(hid_t file, hid_t set, const char *word, enum mx_dtype dtype, mx_why *why,
                        struct mx_array_missing *m) {
    memset(m, 0, sizeof *m); /* all of it is compared */
    int err = check_packing(set, word, why);
    if (err == 0) err = take_fills(set, word, why, m);
    if (err == 0) err = take_limits(set, word, why, m);
    if (err == 0) add_default_fill(file, set, dtype, m);
    return err;
}

/* ---- names of dimensions */

enum { NAME_BYTES = 64 };

/* A text, or the first of several of which `at` is wanted. */
static void take_text(hid_t object, const char *attribute, int at, int of, char out[NAME_BYTES]) {
    struct attribute a;
    char *texts[3] = {NULL}, *fixed = NULL;
    if (!open_attribute(object, attribute, &a)) return;
    const bool wanted = a.class == H5T_STRING && a.count == of && of <= 3;
    const size_t bytes = wanted ? h5.H5Tget_size(a.type) : 0;
    if (wanted && h5.H5Tis_variable_str(a.type) > 0) {
        if (h5.H5Aread(a.id, a.type, texts) >= 0) {
            if (texts[at] != NULL) snprintf(out, NAME_BYTES, "%s", texts[at]);
            h5.H5Dvlen_reclaim(a.type, a.space, H5P_DEFAULT, texts);
        }
    } else if (bytes > 0 && bytes < 4096 && (fixed = calloc((size_t)of, bytes + 1)) != NULL) {
        if (h5.H5Aread(a.id, a.type, fixed) >= 0)
            snprintf(out, NAME_BYTES, "%.*s", (int)bytes, fixed + (size_t)at * bytes);
    }
    free(fixed);
    close_attribute(&a);
}

/* The first scale of each dimension: its name, or what its attribute `axis` says. */
static void take_scales(hid_t set, int rank, char name[3][NAME_BYTES]) {
    struct attribute a;
    hvl_t lists[3] = {{0, NULL}};
    if (!open_attribute(set, "DIMENSION_LIST", &a)) return;
    const hid_t item = a.class == H5T_VLEN ? h5.H5Tget_super(a.type) : -1;
    const bool usable =
        item >= 0 && h5.H5Tget_class(item) == H5T_REFERENCE && h5.H5Tget_size(item) == sizeof(hobj_ref_t);
    if (item >= 0) h5.H5Tclose(item);
    if (usable && a.count == rank && h5.H5Aread(a.id, a.type, lists) >= 0) {
        for (int i = 0; i < rank; i++) {
            const hid_t scale =
                lists[i].len > 0 ? h5.H5Rdereference2(set, H5P_DEFAULT, H5R_OBJECT, lists[i].p) : -1;
            char path[PATH_MAX] = "";
            if (scale < 0) continue;
            if (name[i][0] == 0 && h5.H5Iget_name(scale, path, sizeof path) > 0) {
                const char *slash = strrchr(path, '/');
                snprintf(name[i], NAME_BYTES, "%.*s", NAME_BYTES - 1, slash != NULL ? slash + 1 : path);
            }
            char axis[NAME_BYTES] = "";
            take_text(scale, "axis", 0, 1, axis);
            if (axis[0] != 0 && strchr("xyzXYZ", axis[0]) != NULL && axis[1] == 0) strcpy(name[i], axis);
            h5.H5Oclose(scale);
        }
        h5.H5Dvlen_reclaim(a.type, a.space, H5P_DEFAULT, lists);
    }
    close_attribute(&a);
}

static int check_order(hid_t set, const char *word, int rank, mx_why *why) {
    char name[3][NAME_BYTES] = {"", "", ""};
    for (int i = 0; i < rank; i++) take_text(set, "DIMENSION_LABELS", i, rank, name[i]);
    take_scales(set, rank, name);
    if (rank == 2 && mx_array_rows_turned((const char *const[]){name[0], name[1]}))
        return mx_fail(why, -EINVAL,
                       "%.300s has the dimensions %s, %s; a grid of two dimensions needs y, x: transpose it",
                       word, name[0], name[1]);
    if (rank == 2 || !mx_array_turned((const char *const[]){name[0], name[1], name[2]})) return 0;
    return mx_fail(
        why, -EINVAL,
        "%.300s has the dimensions %s, %s, %s; a grid needs z, y, x: transpose it, or read it through Python",
        word, name[0], name[1], name[2]);
}

/* ---- */

static int look(hid_t file, const char *word, const char *inside, bool any, int rank, mx_why *why,
                struct mx_npy *npy, struct mx_array_missing *missing) {
    if (inside[0] == 0)
        return mx_fail(why, -EINVAL, "%.300s is an HDF5 file: name its dataset as FILE.h5:/NAME", word);
    const hid_t set = h5.H5Dopen2(file, inside, H5P_DEFAULT);
    if (set < 0) return mx_fail(why, -EINVAL, "there is no dataset %.300s", word);
    int err = check_file(file, set, word, why);
    if (err == 0) err = check_type(set, word, any, why, &npy->dtype);
    if (err == 0) err = check_shape(set, word, rank, why, npy->shape);
    if (err == 0) err = take_missing(file, set, word, npy->dtype, why, missing);
    if (err == 0) err = check_order(set, word, rank, why);
    if (err == 0) err = check_layout(set, word, why, &npy->data_offset_bytes);
    h5.H5Dclose(set);
    return err;
}

/* Without the library's own lock, which would be one on the user's file. */
static hid_t open_file(const char *path) {
    const hid_t access = h5.H5Pcreate(*h5.H5P_CLS_FILE_ACCESS_ID_g);
    if (access < 0) return access;
#if H5_VERSION_GE(1, 10, 7) && !(H5_VERSION_GE(1, 12, 0) && !H5_VERSION_GE(1, 12, 1))
    h5.H5Pset_file_locking(access, false, true);
#endif
    const hid_t file = h5.H5Fopen(path, READ_ONLY, access);
    h5.H5Pclose(access);
    return file;
}

static int look_quietly(int fd, const char *path, const char *word, const char *inside, bool any, int rank,
                        mx_why *why, struct mx_npy *npy, struct mx_array_missing *missing) {
    H5E_auto2_t print;
    void *context;
    char same[64];
    h5.H5open();
    h5.H5Eget_auto2(H5E_DEFAULT, &print, &context);
    h5.H5Eset_auto2(H5E_DEFAULT, NULL, NULL);            /* it would print */
    snprintf(same, sizeof same, "/proc/self/fd/%d", fd); /* what was opened, whatever has its name now */
    const hid_t file = open_file(access(same, F_OK) == 0 ? same : path); /* without /proc */
    const int err = file >= 0 ? look(file, word, inside, any, rank, why, npy, missing)
                              : mx_fail(why, -EINVAL, "%.300s is not an HDF5 file, or it is damaged", path);
    if (file >= 0) h5.H5Fclose(file);
    h5.H5Eset_auto2(H5E_DEFAULT, print, context);
    return err;
}

int mx_hdf5_open(int fd, const char *path, const char *inside, bool any, int rank, mx_why *why,
                 struct mx_npy *out, char data[PATH_MAX]) {
    char word[2 * PATH_MAX];
    struct mx_npy npy = {.fd = fd};
    struct mx_array_missing missing;
    (void)data;
    snprintf(word, sizeof word, "%s%s%s", path, inside[0] != 0 ? ":" : "", inside);
    pthread_mutex_lock(&lock);
    int err = find_library(why);
    if (err == 0) err = look_quietly(fd, path, word, inside, any, rank, why, &npy, &missing);
    pthread_mutex_unlock(&lock);
    if (err == 0) err = mx_array_check_length(word, &npy, why);
    if (err == 0 && (missing.n_fills > 0 || missing.has_low || missing.has_high))
        err = mx_array_check_values(word, &npy, rank, &missing, why);
    if (err < 0) close(fd);
    if (err == 0) *out = npy;
    return err;
}
#else
typedef int mx_hdf5_is_not_built;
#endif
