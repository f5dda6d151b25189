/* SPDX-License-Identifier: BSD-3-Clause */
#include "wavefront/source.h"

#include "ask/words.h"

#include <errno.h>
#include <string.h>

/* ---- values */

static uint64_t mix(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* 0..1 in the data, 0..1/4 in the coefficients: the iteration neither grows nor dies out. */
static double random_value(enum mx_wf_matrix m, int64_t i, int64_t j) {
    const uint64_t bits = mix(mix((uint64_t)i * 8 + (uint64_t)m) + (uint64_t)j);
    return (double)(bits >> 11) * (m == MX_WF_ZA ? 0x1p-53 : 0x1p-55);
}

static double linear_value(enum mx_wf_matrix m, int64_t i, int64_t j) {
    if (m == MX_WF_ZZ) return 0;
    return m == MX_WF_ZA ? (double)i + 0.5 * (double)j : 0.25;
}

static double zero_value(enum mx_wf_matrix m, int64_t i, int64_t j) {
    (void)m, (void)i, (void)j;
    return 0;
}

const struct mx_wf_init mx_wf_inits[] = {
    {"random", "data from 0 to 1, coefficients from 0 to 1/4, both by a hash of the cell's place",
     random_value},
    {"linear", "data i + j / 2, coefficients 1/4: each cell becomes the mean of its four neighbours",
     linear_value},
    {"zero", "all zero", zero_value},
    {NULL, NULL, NULL},
};

const struct mx_wf_init *mx_wf_init_find(const char *name) {
    for (const struct mx_wf_init *i = mx_wf_inits; i->name != NULL; i++)
        if (strcmp(i->name, name) == 0) return i;
    return NULL;
}

/* ---- files */

static int take_file(const char *option, const char *word, const char **files, mx_why *why) {
    char name[MX_FIELD_NAME + 4] = "za";
    const char *file = mx_field_word(word, name);
    int m = 0;
    if (file == NULL) file = word;
    while (m < MX_WF_MATRICES && strcmp(name, mx_wf_names[m]) != 0) m++;
    if (m == MX_WF_MATRICES)
        return mx_fail(why, -EINVAL, "--%s '%.60s': there is no such matrix; choose za, zr, zb, zu, zv or zz",
                       option, word);
    if (file[0] == 0) return mx_fail(why, -EINVAL, "--%s '%.60s' names no file", option, word);
    if (files[m] != NULL) return mx_fail(why, -EINVAL, "--%s is given twice for %s", option, mx_wf_names[m]);
    files[m] = file;
    return 0;
}

int mx_wf_take_files(const char *option, const struct mx_words *words, const char *files[MX_WF_MATRICES],
                     mx_why *why) {
    int err = 0;
    for (int32_t i = 0; i < words->n && err == 0; i++) err = take_file(option, words->word[i], files, why);
    return err;
}

static int check_file(const char *path, const struct mx_npy *f, const struct mx_wf_source *s, mx_why *why) {
    const int64_t rows = f->shape[1] - 2, cols = f->shape[2] - 2;
    if (f->dtype != MX_F64)
        return mx_fail(
            why, -EINVAL,
            "%.300s has cells of type f4, and the loop computes in f64: convert with a.astype('f8')", path);
    if (rows < 1 || cols < 1)
        return mx_fail(why, -EINVAL,
                       "%.300s of shape (%lld, %lld) has no interior: no cell is left inside the border of "
                       "one cell on every side",
                       path, (long long)rows + 2, (long long)cols + 2);
    if (s->rows > 0 && (rows != s->rows || cols != s->cols))
        return mx_fail(why, -EINVAL,
                       "%.300s has an interior of %lld x %lld cells, and the run has %lld x %lld: all "
                       "matrices and -n must agree",
                       path, (long long)rows, (long long)cols, (long long)s->rows, (long long)s->cols);
    return 0;
}

int mx_wf_source_open(const char *const paths[MX_WF_MATRICES], const struct mx_wf_init *init, int64_t rows,
                      int64_t cols, mx_why *why, struct mx_wf_source *out) {
    struct mx_wf_source s = {.rows = rows, .cols = cols, .init = init};
    int err = 0;
    for (int m = 0; m < MX_WF_MATRICES; m++) s.files[m].fd = -1;
    for (int m = 0; m < MX_WF_MATRICES && err == 0; m++) {
        if (paths[m] == NULL) continue;
        err = mx_npy_open_matrix(paths[m], why, &s.files[m]);
        if (err < 0) s.files[m].fd = -1;
        if (err == 0) err = check_file(paths[m], &s.files[m], &s, why);
        if (err == 0) s.rows = s.files[m].shape[1] - 2, s.cols = s.files[m].shape[2] - 2;
    }
    if (err < 0)
        mx_wf_source_close(&s);
    else
        *out = s;
    return err;
}

void mx_wf_source_close(struct mx_wf_source *s) {
    for (int m = 0; m < MX_WF_MATRICES; m++)
        if (s->files[m].fd >= 0) mx_npy_close(&s->files[m], NULL);
}

int mx_wf_source_rows(const struct mx_wf_source *s, enum mx_wf_matrix m, int64_t r0, int64_t n, double *rows,
                      mx_why *why) {
    const int64_t width = s->cols + 2;
    const struct mx_npy *f = &s->files[m];
    if (f->fd < 0) {
        for (int64_t r = 0; r < n; r++)
            for (int64_t j = 0; j < width; j++) rows[r * width + j] = s->init->value(m, r0 + r, j);
        return 0;
    }
    int err = mx_read_all(f->fd, rows, (size_t)(n * width) * sizeof(double),
                          f->data_offset_bytes + r0 * width * (int64_t)sizeof(double));
    if (err < 0)
        mx_fail(why, err, "reading row %lld of the file of matrix %s failed: %s", (long long)r0,
                mx_wf_names[m], strerror(-err));
    return err;
}
