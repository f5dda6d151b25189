/* SPDX-License-Identifier: BSD-3-Clause */
/* missing.c - cells of a file that stand for no value (CF conventions, section 2.5.1). */
#include "grid/head.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PIECE_BYTES = 1 << 20, REMEMBERED = 16 };

/* Returns a value as a cell of the type holds it. A number that is too large for f32 stays as it is: no cell
 * equals it. */
static long double in_type(enum mx_dtype dtype, long double value) {
    if (dtype == MX_F32) return fabsl(value) <= FLT_MAX ? (long double)(float)value : value;
    return dtype == MX_F64 ? (long double)(double)value : value;
}

/* Cell x, exactly. */
static long double load(enum mx_dtype dtype, const char *row, int64_t x) {
    if (dtype == MX_I64) {
        int64_t v;
        memcpy(&v, row + x * (int64_t)sizeof v, sizeof v);
        return v;
    }
    if (dtype == MX_U64) {
        uint64_t v;
        memcpy(&v, row + x * (int64_t)sizeof v, sizeof v);
        return v;
    }
    return mx_cell_load(dtype, row, x);
}

static bool is_missing(const struct mx_array_missing *m, long double cell) {
    for (int i = 0; i < m->n_fills; i++)
        if (cell == m->fill[i] || (isnan(cell) && isnan(m->fill[i]))) return true;
    return (m->has_low && cell < m->low) || (m->has_high && cell > m->high);
}

/* May there be any? Loops that the compiler makes vectors of: of 64 bits doubles are near the number alone.
 */
#define ANY(name, type)                                                                                      \
    static bool any_##name(const struct mx_array_missing *m, const void *cells, size_t n) {                  \
        const type *c = cells;                                                                               \
        const double low = m->has_low ? (double)m->low : -INFINITY;                                          \
        const double high = m->has_high ? (double)m->high : INFINITY;                                        \
        const int near = sizeof(type) == 8 && (type)0.5 == 0;                                                \
        int bad = 0;                                                                                         \
        for (size_t i = 0; i < n; i++) bad |= ((double)c[i] < low) | ((double)c[i] > high);                  \
        for (size_t i = 0; i < n && near; i++) bad |= ((double)c[i] == low) | ((double)c[i] == high);        \
        for (int k = 0; k < m->n_fills; k++) {                                                               \
            const double fill = (double)m->fill[k];                                                          \
            const int none = isnan(fill);                                                                    \
            for (size_t i = 0; i < n; i++)                                                                   \
                bad |= ((double)c[i] == fill) | (none & ((double)c[i] != (double)c[i]));                     \
        }                                                                                                    \
        return bad != 0;                                                                                     \
    }
ANY(f64, double)
ANY(f32, float)
ANY(u8, uint8_t)
ANY(u16, uint16_t)
ANY(i16, int16_t)
ANY(i8, int8_t)
ANY(i32, int32_t)
ANY(u32, uint32_t)
ANY(i64, int64_t)
ANY(u64, uint64_t)

static bool (*const any[MX_DTYPES])(const struct mx_array_missing *, const void *, size_t) = {
    [MX_F64] = any_f64, [MX_F32] = any_f32, [MX_U8] = any_u8,   [MX_U16] = any_u16, [MX_I16] = any_i16,
    [MX_I8] = any_i8,   [MX_I32] = any_i32, [MX_U32] = any_u32, [MX_I64] = any_i64, [MX_U64] = any_u64};

/* ---- files that were looked at */

struct seen {
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec modified, changed;
    int64_t offset;
    struct mx_array_missing missing;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct seen remembered[REMEMBERED];
static unsigned next;

/* Unused bytes are 0, so that memcmp compares. */
static bool identify(const struct mx_npy *npy, const struct mx_array_missing *missing, struct seen *out) {
    struct stat st;
    memset(out, 0, sizeof *out);
    if (fstat(npy->fd, &st) != 0) return false;
    out->device = st.st_dev, out->inode = st.st_ino, out->bytes = st.st_size;
    out->modified = st.st_mtim, out->changed = st.st_ctim, out->offset = npy->data_offset_bytes;
    memcpy(&out->missing, missing, sizeof *missing);
    return true;
}

static bool was_seen(const struct seen *file) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < REMEMBERED && !found; i++) found = memcmp(&remembered[i], file, sizeof *file) == 0;
    pthread_mutex_unlock(&lock);
    return found;
}

static void remember(const struct seen *file) {
    pthread_mutex_lock(&lock);
    memcpy(&remembered[next++ % REMEMBERED], file, sizeof *file);
    pthread_mutex_unlock(&lock);
}

/* ---- */

static int look(const char *word, const struct mx_npy *npy, int rank, const struct mx_array_missing *m,
                void *piece, mx_why *why) {
    const int64_t cell = mx_dtype_bytes(npy->dtype), plane = npy->shape[1] * npy->shape[2],
                  all = plane * npy->shape[0];
    int64_t missing = 0, first = 0;
    long double example = 0;
    for (int64_t at = 0; at < all; at += PIECE_BYTES / cell) {
        const int64_t n = all - at < PIECE_BYTES / cell ? all - at : PIECE_BYTES / cell;
        const int err = mx_read_all(npy->fd, piece, (size_t)(n * cell), npy->data_offset_bytes + at * cell);
        if (err < 0) return mx_fail(why, err, "%.300s cannot be read: %s", word, strerror(-err));
        if (!any[npy->dtype](m, piece, (size_t)n)) continue;
        for (int64_t i = 0; i < n; i++) {
            const long double value = load(npy->dtype, piece, i);
            if (!is_missing(m, value)) continue;
            if (missing++ == 0) first = at + i, example = value;
        }
    }
    if (missing == 0) return 0;
    return mx_fail(why, -EINVAL,
                   "%.300s has %lld cells without a value (they hold %.9Lg) from %s %lld on: fill them in a "
                   "copy of the file",
                   word, (long long)missing, example, mx_plane_word(rank == 2), (long long)(first / plane));
}

int mx_array_check_values(const char *word, const struct mx_npy *npy, int rank,
                          const struct mx_array_missing *missing, mx_why *why) {
    struct mx_array_missing m = *missing;
    struct seen file;
    for (int i = 0; i < m.n_fills; i++) m.fill[i] = in_type(npy->dtype, m.fill[i]);
    m.low = in_type(npy->dtype, m.low), m.high = in_type(npy->dtype, m.high);
    const bool known = identify(npy, missing, &file);
    if (known && was_seen(&file)) return 0;
    void *piece = malloc(PIECE_BYTES);
    int err = piece != NULL ? look(word, npy, rank, &m, piece, why)
                            : mx_fail(why, -ENOMEM, "no memory to look at the cells of %.300s", word);
    free(piece);
    if (err == 0 && known) remember(&file);
    return err;
}
