/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/points.h"

#include "machine/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LINE_BYTES = 8192, HEAD_BYTES = 128, TEXT_AT = 10, MOST_PART_BYTES = 1 << 20 };

/* Room for one element more. */
static int grow(void **array, int64_t n, int64_t *capacity, size_t element, mx_why *why) {
    if (n < *capacity) return 0;
    const int64_t more = *capacity > 0 ? 2 * *capacity : 16;
    void *at = realloc(*array, (size_t)more * element);
    if (at == NULL) return mx_fail(why, -ENOMEM, "no memory for %lld points", (long long)more);
    *array = at;
    *capacity = more;
    return 0;
}

/* ------------------------------------------------------------------ points */

static bool find_field(const struct mx_problem *p, const char *name, struct mx_point *out) {
    const struct mx_system *s = p->system;
    out->array = -1;
    out->field = 0;
    if (s == NULL) return strcmp(name, "u") == 0;
    for (int a = 0; a < (s->form == MX_STAGGERED ? 2 : 1); a++)
        for (int32_t f = 0; f < s->n_field[a]; f++)
            if (strcmp(name, s->field[a][f].name) == 0) {
                out->array = s->form == MX_STAGGERED ? a : -1;
                out->field = f;
                return true;
            }
    return false;
}

/* "u, v" */
static const char *fields_of(const struct mx_problem *p, char *text, size_t capacity) {
    const struct mx_system *s = p->system;
    size_t at = 0;
    snprintf(text, capacity, "u");
    if (s == NULL) return text;
    for (int a = 0; a < (s->form == MX_STAGGERED ? 2 : 1); a++)
        for (int32_t f = 0; f < s->n_field[a] && at < capacity; f++)
            at += (size_t)snprintf(text + at, capacity - at, "%s%s", at > 0 ? ", " : "", s->field[a][f].name);
    return text;
}

int mx_points_add(struct mx_points *points, const struct mx_problem *p, const char *what, const char *field,
                  const int64_t xyz[3], mx_why *why) {
    struct mx_point point = {.x = xyz[0], .y = xyz[1], .z = xyz[2], .number = points->n};
    const int64_t n[3] = {p->nx, p->ny, mx_all_planes(p)};
    char names[160];
    if (!find_field(p, field, &point))
        return mx_fail(why, -EINVAL, "%s: there is no field %s; there is %s", what, field,
                       fields_of(p, names, sizeof names));
    for (int d = 0; d < 3; d++)
        if (xyz[d] < 0 || xyz[d] >= n[d])
            return mx_fail(why, -EINVAL, "%s: %c = %lld is outside the grid, whose cells are 0 to %lld in %c",
                           what, 'x' + d, (long long)xyz[d], (long long)n[d] - 1, 'x' + d);
    int err = grow((void **)&points->point, points->n, &points->capacity, sizeof point, why);
    if (err == 0) points->point[points->n++] = point;
    return err;
}

static int order(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int compare(const void *pa, const void *pb) {
    const struct mx_point *a = pa, *b = pb;
    int by = order(a->z, b->z);
    if (by == 0) by = order(a->y, b->y);
    if (by == 0) by = order(a->x, b->x);
    return by != 0 ? by : order(a->number, b->number);
}

int mx_points_index(struct mx_points *points, const struct mx_problem *p, mx_why *why) {
    const int64_t planes = mx_all_planes(p);
    int64_t *first = calloc((size_t)planes + 1, sizeof *first);
    uint64_t *near = calloc((size_t)planes, sizeof *near);
    if (first == NULL || near == NULL) {
        free(first), free(near);
        return mx_fail(why, -ENOMEM, "no memory for an index of the points of %lld planes",
                       (long long)planes);
    }
    if (points->n > 0) qsort(points->point, (size_t)points->n, sizeof *points->point, compare);
    for (int64_t i = 0; i < points->n; i++) first[points->point[i].z + 1]++;
    for (int64_t z = 0; z < planes; z++) first[z + 1] += first[z];
    free(points->first), free(points->near);
    points->first = first;
    points->near = near;
    points->rows = p->ny;
    for (int64_t i = 0; i < points->n; i++)
        near[points->point[i].z] |= mx_points_parts(points, points->point[i].y, points->point[i].y + 1);
    return 0;
}

void mx_points_free(struct mx_points *points) {
    free(points->point);
    free(points->first);
    free(points->near);
    *points = (struct mx_points){0};
}

/* The first point of [from, end), all of one plane, whose row is y or later. */
static int64_t first_of_row(const struct mx_points *points, int64_t from, int64_t end, int64_t y) {
    while (from < end) {
        const int64_t middle = from + (end - from) / 2;
        if (points->point[middle].y < y)
            from = middle + 1;
        else
            end = middle;
    }
    return from;
}

void mx_points_of_rows(const struct mx_points *points, int64_t z, int64_t y0, int64_t y1, int64_t *from,
                       int64_t *end) {
    const int64_t a = points->first[z], b = points->first[z + 1];
    *from = first_of_row(points, a, b, y0);
    *end = first_of_row(points, *from, b, y1);
}

/* FNV-1a, 64 bits, over words. */
static uint64_t mix(uint64_t hash, uint64_t word) {
    for (int i = 0; i < 8; i++, word >>= 8) hash = (hash ^ (word & 255)) * UINT64_C(0x100000001b3);
    return hash;
}
static const uint64_t hash_of_nothing = UINT64_C(0xcbf29ce484222325);

static uint64_t mix_point(uint64_t hash, const struct mx_point *p) {
    hash = mix(mix(hash, (uint64_t)p->field), (uint64_t)p->array);
    hash = mix(mix(hash, (uint64_t)p->x), (uint64_t)p->y);
    return mix(mix(hash, (uint64_t)p->z), (uint64_t)p->number);
}

uint64_t mx_points_identity(const struct mx_points *points) {
    uint64_t hash = hash_of_nothing;
    for (int64_t i = 0; i < points->n; i++) hash = mix_point(hash, &points->point[i]);
    return points->n == 0 ? 0 : hash;
}

/* ------------------------------------------------------------------ lists in text */

/* A number that ends where *text stands then. */
static bool number(const char **text, int64_t *out) {
    char *end;
    errno = 0;
    const long long v = strtoll(*text, &end, 10);
    if (end == *text || errno != 0 || isspace((unsigned char)**text)) return false;
    *text = end;
    *out = v;
    return true;
}

/* A name up to one of `ends`; what was there instead of a name: false. */
static bool name_up_to(const char **text, const char *ends, char name[MX_FIELD_NAME]) {
    const size_t n = strcspn(*text, ends);
    if (n == 0 || n >= MX_FIELD_NAME || (*text)[n] == 0) return false;
    memcpy(name, *text, n);
    name[n] = 0;
    *text += n;
    return true;
}

typedef int line_fn(void *list, const struct mx_problem *problem, const char *line, mx_why *why);

static char *trimmed(char *line) {
    line[strcspn(line, "#\r\n")] = 0;
    size_t n = strlen(line);
    while (n > 0 && isspace((unsigned char)line[n - 1])) line[--n] = 0;
    while (isspace((unsigned char)*line)) line++;
    return line;
}

static int read_lines(const char *path, line_fn *each, void *list, const struct mx_problem *p, mx_why *why) {
    char line[LINE_BYTES];
    int err;
    FILE *file = mx_file_stream(path, why, &err);
    if (file == NULL) return err;
    for (int64_t n = 1; err == 0 && fgets(line, sizeof line, file) != NULL; n++) {
        mx_why of_line = {0};
        if (strchr(line, '\n') == NULL && !feof(file)) {
            err = mx_fail(why, -EINVAL, "%s, line %lld: longer than %d bytes; is it a list of points?", path,
                          (long long)n, LINE_BYTES - 2);
            break;
        }
        const char *text = trimmed(line);
        err = *text == 0 ? 0 : each(list, p, text, &of_line);
        if (err < 0) mx_fail(why, err, "%s, line %lld: %s", path, (long long)n, of_line.text);
    }
    if (err == 0 && ferror(file)) err = mx_fail(why, -EIO, "%s could not be read: %s", path, strerror(EIO));
    fclose(file);
    return err;
}

/* ------------------------------------------------------------------ wavelets */

/* The text after 'key': in the head of a .npy file. */
static const char *value_of(const char *head, const char *key) {
    const char *p = strstr(head, key);
    if (p == NULL || *(p += strlen(key)) != ':') return NULL;
    p++;
    while (*p == ' ') p++;
    return p;
}

/* Head of a .npy file: at most 64 KiB of it. Extents in shape[0..1], 1 where there are fewer; the number of
 * them is the result, or an error. */
static int npy_head(int fd, const char *path, int64_t *data_at, int64_t *element, int64_t shape[2],
                    mx_why *why) {
    unsigned char start[12];
    const int read = mx_read_all(fd, start, sizeof start, 0);
    if (read < 0 && read != -ENODATA)
        return mx_fail(why, read, "%s cannot be read: %s", path, strerror(-read));
    if (read < 0 || memcmp(start, "\x93NUMPY", 6) != 0)
        return mx_fail(why, -EINVAL, "%s is no .npy file; write it with numpy.save", path);
    const bool wide = start[6] >= 2;
    const uint32_t low = start[8] | (uint32_t)start[9] << 8;
    const uint32_t length = wide ? low | (uint32_t)start[10] << 16 | (uint32_t)start[11] << 24 : low;
    if (length > UINT16_MAX)
        return mx_fail(why, -EINVAL, "%s has a head of %u bytes; up to 65535 are read", path, length);
    char *head = calloc((size_t)length + 1, 1);
    if (head == NULL) return mx_fail(why, -ENOMEM, "no memory for the head of %s", path);
    int rank = mx_read_all(fd, head, length, wide ? 12 : 10);
    if (rank < 0) {
        rank = rank == -ENODATA ? mx_fail(why, -EINVAL, "%s is truncated inside its head", path)
                                : mx_fail(why, rank, "%s cannot be read: %s", path, strerror(-rank));
        goto out;
    }
    const char *descr = value_of(head, "'descr'"), *extents = value_of(head, "'shape'");
    if (descr == NULL || extents == NULL || *extents != '(') {
        rank = mx_fail(why, -EINVAL, "%s: its head lacks descr or shape; the file is damaged", path);
        goto out;
    }
    *element = strncmp(descr, "'<f8'", 5) == 0 ? 8 : strncmp(descr, "'<f4'", 5) == 0 ? 4 : 0;
    if (*element == 0) {
        rank = mx_fail(why, -EINVAL,
                       "%s has element type %.12s; '<f8' and '<f4' are supported: convert with "
                       "a.astype('f8')",
                       path, descr);
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
out:
    free(head);
    return rank;
}

static int read_amplitudes(int fd, const char *path, int64_t at, int64_t element, struct mx_wavelet *w,
                           mx_why *why) {
    int err = mx_read_all(fd, w->amplitude, (size_t)(w->n * element), at);
    if (err < 0) return mx_fail(why, err, "%s could not be read: %s", path, strerror(-err));
    if (element == 4)
        for (int64_t i = w->n; i-- > 0;) {
            float f;
            memcpy(&f, (const char *)w->amplitude + 4 * i, sizeof f);
            w->amplitude[i] = f;
        }
    return 0;
}

static int read_wavelet(const char *path, struct mx_wavelet *out, mx_why *why) {
    struct mx_wavelet w = {0};
    int64_t at = 0, element = 0, shape[2] = {0};
    struct stat st;
    const int fd = mx_file_open(path, why);
    if (fd < 0) return fd;
    int err = npy_head(fd, path, &at, &element, shape, why);
    if (err >= 0 && err != 1) {
        err = mx_fail(why, -EINVAL, "%s has %d dimensions%s; a wavelet has one: a value for each step", path,
                      err, err > 2 ? " or more" : "");
        goto out;
    }
    if (err < 0) goto out;
    w.n = shape[0];
    if (fstat(fd, &st) < 0) {
        err = mx_fail(why, -errno, "%s: %s", path, strerror(errno));
        goto out;
    }
    if (w.n < 0 || w.n > (st.st_size - at) / element) {
        err = mx_fail(why, -EINVAL, "%s is truncated: its head promises %lld values, %lld are there", path,
                      (long long)w.n, (long long)((st.st_size - at) / element));
        goto out;
    }
    w.path = strdup(path);
    w.amplitude = calloc((size_t)w.n + 1, sizeof *w.amplitude);
    err = w.path == NULL || w.amplitude == NULL
              ? mx_fail(why, -ENOMEM, "no memory for the %lld values of %s", (long long)w.n, path)
              : read_amplitudes(fd, path, at, element, &w, why);
out:
    mx_sys->close(fd);
    if (err < 0) {
        free(w.path);
        free(w.amplitude);
        return err;
    }
    *out = w;
    return 0;
}

/* The number of the wavelet of this file; read once. */
static int wavelet_of(struct mx_sources *s, const char *path, int64_t *out, mx_why *why) {
    for (int64_t i = s->n_wavelets; i-- > 0;) /* lists name the same one again and again */
        if (strcmp(s->wavelet[i].path, path) == 0) return *out = i, 0;
    struct mx_wavelet *all = realloc(s->wavelet, ((size_t)s->n_wavelets + 1) * sizeof *all);
    if (all == NULL)
        return mx_fail(why, -ENOMEM, "no memory for %lld wavelets", (long long)s->n_wavelets + 1);
    s->wavelet = all;
    int err = read_wavelet(path, &all[s->n_wavelets], why);
    if (err == 0) *out = s->n_wavelets++;
    return err;
}

/* ------------------------------------------------------------------ sources */

int mx_sources_add(struct mx_sources *s, const struct mx_problem *p, const char *text, mx_why *why) {
    const char *at = text;
    char name[MX_FIELD_NAME], what[200];
    int64_t xyz[3], wavelet = 0;
    bool good = name_up_to(&at, "@", name);
    for (int d = 0; d < 3 && good; d++) {
        good = *at == (d == 0 ? '@' : ',');
        at += good;
        good = good && number(&at, &xyz[d]);
    }
    if (!good || *at != '=' || at[1] == 0)
        return mx_fail(why, -EINVAL,
                       "source '%s' is not FIELD@X,Y,Z=wavelet.npy, for example u@64,64,0=ricker.npy", text);
    snprintf(what, sizeof what, "source %.*s", (int)(at - text), text);
    int err = grow((void **)&s->of, s->points.n, &s->of_capacity, sizeof *s->of, why);
    if (err == 0) err = wavelet_of(s, at + 1, &wavelet, why);
    if (err == 0) err = mx_points_add(&s->points, p, what, name, xyz, why);
    if (err == 0) s->of[s->points.n - 1] = wavelet;
    return err;
}

static int add_source(void *list, const struct mx_problem *p, const char *line, mx_why *why) {
    return mx_sources_add(list, p, line, why);
}

int mx_sources_read(struct mx_sources *sources, const struct mx_problem *p, const char *path, mx_why *why) {
    return read_lines(path, add_source, sources, p, why);
}

int mx_sources_index(struct mx_sources *sources, const struct mx_problem *p, mx_why *why) {
    return mx_points_index(&sources->points, p, why);
}

void mx_sources_free(struct mx_sources *s) {
    for (int64_t i = 0; i < s->n_wavelets; i++) {
        free(s->wavelet[i].path);
        free(s->wavelet[i].amplitude);
    }
    free(s->wavelet);
    free(s->of);
    mx_points_free(&s->points);
    *s = (struct mx_sources){0};
}

int64_t mx_sources_bytes(const struct mx_sources *s) {
    int64_t bytes = s->points.capacity * (int64_t)sizeof(struct mx_point) + s->of_capacity * 8;
    for (int64_t i = 0; i < s->n_wavelets; i++) bytes += 8 * s->wavelet[i].n;
    return bytes;
}

uint64_t mx_sources_identity(const struct mx_sources *s) {
    uint64_t hash = hash_of_nothing;
    for (int64_t i = 0; i < s->points.n; i++) {
        const struct mx_point *p = &s->points.point[i];
        hash = mix(mix_point(hash, p), (uint64_t)s->of[p->number]);
    }
    for (int64_t w = 0; w < s->n_wavelets; w++)
        for (int64_t i = 0; i < s->wavelet[w].n; i++) {
            uint64_t bits;
            memcpy(&bits, &s->wavelet[w].amplitude[i], sizeof bits);
            hash = mix(hash, bits);
        }
    return s->points.n == 0 ? 0 : hash;
}

/* ------------------------------------------------------------------ probes and traces */

static int add_probe(void *list, const struct mx_problem *p, const char *line, mx_why *why) {
    const char *at = line;
    char name[MX_FIELD_NAME], what[200];
    int64_t xyz[3];
    bool good = name_up_to(&at, " \t,", name);
    for (int d = 0; d < 3 && good; d++) {
        const size_t gap = strspn(at, " \t,");
        at += gap;
        good = gap > 0 && number(&at, &xyz[d]);
    }
    if (!good || *at != 0)
        return mx_fail(why, -EINVAL, "probe '%s' is not FIELD X Y Z, for example u 64 64 0", line);
    snprintf(what, sizeof what, "probe %s", line);
    return mx_points_add(list, p, what, name, xyz, why);
}

int mx_probes_read(struct mx_points *probes, const struct mx_problem *p, const char *path, mx_why *why) {
    return read_lines(path, add_probe, probes, p, why);
}

static int64_t words_of(int64_t n) { return (n + 63) / 64; }

int64_t mx_traces_bytes(const struct mx_points *probes, int64_t capacity) {
    return capacity * 8 * (probes->n + words_of(probes->n));
}

int mx_traces_make(const struct mx_points *probes, int64_t capacity, int64_t first_step, mx_why *why,
                   struct mx_traces *out) {
    struct mx_traces t = {.probes = probes,
                          .n = probes->n,
                          .words = words_of(probes->n),
                          .capacity = capacity > 0 ? capacity : 1};
    t.value = calloc((size_t)(t.capacity * t.n) + 1, sizeof *t.value);
    t.bit = calloc((size_t)(t.capacity * t.words) + 1, sizeof *t.bit);
    atomic_init(&t.taken, first_step);
    atomic_init(&t.lost, -1);
    if (t.value == NULL || t.bit == NULL) {
        mx_traces_free(&t);
        return mx_fail(why, -ENOMEM, "no memory for the traces of %lld probes over %lld steps",
                       (long long)probes->n, (long long)capacity);
    }
    *out = t;
    return 0;
}

void mx_traces_free(struct mx_traces *t) {
    free((void *)t->value);
    free((void *)t->bit);
    t->value = t->bit = NULL;
}

/* Probe without a value at the slot's step; -1 = none. */
static int64_t missing(const struct mx_traces *t, int64_t slot) {
    for (int64_t w = 0; w < t->words; w++) {
        const int64_t here = t->n - 64 * w;
        const uint64_t all = here >= 64 ? UINT64_MAX : (UINT64_C(1) << here) - 1;
        const uint64_t bits = atomic_load_explicit(&t->bit[slot * t->words + w], memory_order_acquire);
        if (bits != all) return 64 * w + __builtin_ctzll(all & ~bits);
    }
    return -1;
}

int mx_traces_take(struct mx_traces *t, int64_t end, double *rows, mx_why *why) {
    const int64_t lost = atomic_load(&t->lost), from = atomic_load(&t->taken);
    if (lost >= 0)
        return mx_fail(why, -EIO,
                       "probes had no room for step %lld: only %lld steps after %lld are kept at once",
                       (long long)lost, (long long)t->capacity, (long long)from);
    for (int64_t s = from; s < end; s++) {
        const int64_t slot = s % t->capacity, probe = missing(t, slot);
        if (probe >= 0 || s - from >= t->capacity)
            return mx_fail(why, -EIO,
                           "probe %lld (from 0) has no value at step %lld; this is a fault of memext",
                           (long long)probe, (long long)s);
    }
    for (int64_t s = from; s < end; s++) {
        const int64_t slot = s % t->capacity;
        for (int64_t i = 0; i < t->n; i++) {
            const uint64_t bits = atomic_load_explicit(&t->value[slot * t->n + i], memory_order_relaxed);
            memcpy(&rows[(s - from) * t->n + i], &bits, sizeof bits);
        }
        for (int64_t w = 0; w < t->words; w++)
            atomic_store_explicit(&t->bit[slot * t->words + w], 0, memory_order_relaxed);
    }
    if (end > from) atomic_store_explicit(&t->taken, end, memory_order_release);
    return 0;
}

/* ------------------------------------------------------------------ the file of traces */

int mx_traces_file_begin(int fd, int64_t nt, int64_t probes, mx_why *why) {
    char head[HEAD_BYTES], text[HEAD_BYTES];
    const int n =
        snprintf(text, sizeof text, "{'descr': '<f8', 'fortran_order': False, 'shape': (%lld, %lld), }",
                 (long long)nt, (long long)probes);
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01", 7);
    head[7] = 0, head[8] = HEAD_BYTES - TEXT_AT, head[9] = 0;
    memcpy(head + TEXT_AT, text, (size_t)n);
    head[HEAD_BYTES - 1] = '\n';
    int err = mx_write_all(fd, head, sizeof head, 0);
    if (err == 0) err = mx_retry(mx_sys->ftruncate(fd, HEAD_BYTES + 8 * nt * probes));
    return err < 0 ? mx_fail(why, err, "the file of traces, %lld steps of %lld probes, cannot be written: %s",
                             (long long)nt, (long long)probes, strerror(-err))
                   : 0;
}

int mx_traces_file_write(int fd, struct mx_traces *t, int64_t end, mx_why *why) {
    const int64_t most = t->n > 0 ? MOST_PART_BYTES / (8 * t->n) + 1 : end;
    double *rows = malloc((size_t)(most * t->n) * sizeof *rows + 1);
    int err = rows == NULL ? mx_fail(why, -ENOMEM, "no memory for %lld rows of traces", (long long)most) : 0;
    while (err == 0) {
        const int64_t from = atomic_load(&t->taken), to = from + most < end ? from + most : end;
        if (from >= end) break;
        err = mx_traces_take(t, to, rows, why);
        if (err < 0) break;
        err =
            mx_write_all(fd, rows, (size_t)((to - from) * t->n) * sizeof *rows, HEAD_BYTES + 8 * from * t->n);
        if (err < 0)
            mx_fail(why, err, "traces of steps %lld to %lld could not be written: %s", (long long)from,
                    (long long)to - 1, strerror(-err));
    }
    free(rows);
    return err;
}

int mx_traces_file_check(int fd, const char *path, int64_t nt, int64_t probes, int64_t steps, mx_why *why) {
    int64_t at = 0, element = 0, shape[2] = {0};
    struct stat st;
    const int rank = npy_head(fd, path, &at, &element, shape, why);
    if (rank < 0) return rank;
    if (rank != 2 || element != 8 || at != HEAD_BYTES || shape[1] != probes || shape[0] != nt)
        return mx_fail(why, -EINVAL,
                       "%s is no file of traces of this run: it has %lld rows of %lld numbers, and the run "
                       "%lld steps and %lld probes",
                       path, (long long)shape[0], (long long)shape[1], (long long)nt, (long long)probes);
    if (fstat(fd, &st) < 0) return mx_fail(why, -errno, "%s: %s", path, strerror(errno));
    if (st.st_size < HEAD_BYTES + 8 * steps * probes)
        return mx_fail(why, -EINVAL, "%s is truncated: %lld bytes, and %lld steps of %lld probes are %lld",
                       path, (long long)st.st_size, (long long)steps, (long long)probes,
                       (long long)(HEAD_BYTES + 8 * steps * probes));
    if (st.st_size > HEAD_BYTES + 8 * nt * probes)
        return mx_fail(why, -EINVAL, "%s is no file of traces of this run: it is longer than they can be",
                       path);
    return 0;
}
