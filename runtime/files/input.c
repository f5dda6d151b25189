/* SPDX-License-Identifier: BSD-3-Clause */
/* input.c - is a file still what it was when a run began with it? */
#include "files/fields.h"

#include "grid/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

static int64_t ns_of(struct timespec t) { return t.tv_sec * INT64_C(1000000000) + t.tv_nsec; }

static int identity_of(int fd, const char *path, mx_why *why, struct mx_input_identity *out) {
    struct stat st;
    if (fstat(fd, &st) != 0) return mx_fail(why, -errno, "%.300s: %s", path, strerror(errno));
    *out = (struct mx_input_identity){.inode = (uint64_t)st.st_ino,
                                      .bytes = (uint64_t)st.st_size,
                                      .modified_ns = ns_of(st.st_mtim),
                                      .changed_ns = ns_of(st.st_ctim)};
    return 0;
}

/* Reading all of a large file would take as long as a sweep. Pages lie side by side in a small one. */
enum { SAMPLE_PAGES = 64, SAMPLE_PAGE_BYTES = 4096 };

static int take_sample(int fd, const char *path, uint64_t bytes, mx_why *why, uint64_t *out) {
    enum { PAGES = SAMPLE_PAGES, PAGE_BYTES = SAMPLE_PAGE_BYTES };
    const uint64_t last = bytes > PAGE_BYTES ? bytes - PAGE_BYTES : 0;
    const size_t length = bytes < PAGE_BYTES ? (size_t)bytes : PAGE_BYTES;
    char page[PAGE_BYTES];
    XXH3_state_t *state = XXH3_createState();
    int err = state == NULL ? -ENOMEM : 0;
    if (err == 0) XXH3_64bits_reset(state);
    for (uint64_t i = 0; i < PAGES && err == 0; i++) {
        err = mx_read_all(fd, page, length,
                          (off_t)(last / (PAGES - 1) * i + last % (PAGES - 1) * i / (PAGES - 1)));
        if (err == 0) XXH3_64bits_update(state, page, length);
    }
    if (err == 0) *out = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return err < 0 ? mx_fail(why, err, "%.300s cannot be read: %s", path, strerror(-err)) : 0;
}

/* All cells, which are few. */
static int take_cells(const struct mx_run_field *f, mx_why *why, uint64_t *out) {
    enum { PIECE_BYTES = 65536 };
    const int64_t *n = f->npy.shape, bytes = n[0] * n[1] * n[2] * mx_dtype_bytes(f->npy.dtype);
    char *piece = malloc(PIECE_BYTES);
    XXH3_state_t *state = XXH3_createState();
    int err = state == NULL || piece == NULL ? -ENOMEM : 0;
    if (err == 0) XXH3_64bits_reset(state);
    for (int64_t at = 0, length; at < bytes && err == 0; at += length) {
        length = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        err = mx_read_all(f->npy.fd, piece, (size_t)length, f->npy.data_offset_bytes + at);
        if (err == 0) XXH3_64bits_update(state, piece, (size_t)length);
    }
    if (err == 0) *out = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    free(piece);
    return err < 0 ? mx_fail(why, err, "%.300s cannot be read: %s", f->path, strerror(-err)) : 0;
}

int mx_input_look(int fd, int64_t offset_bytes, const char *path, mx_why *why,
                  struct mx_input_identity *out) {
    int err = identity_of(fd, path, why, out);
    if (err == 0) err = take_sample(fd, path, out->bytes, why, &out->sample);
    out->sampled = err == 0;
    out->offset_bytes = offset_bytes;
    return err;
}

bool mx_input_same(const struct mx_input_identity *then, const struct mx_input_identity *now, bool named) {
    if (now->bytes != then->bytes) return false;
    if (then->sampled && (now->sample != then->sample || now->offset_bytes != then->offset_bytes))
        return false;
    if (then->whole && now->whole) return true;
    if (then->sampled && now->bytes <= SAMPLE_PAGES * SAMPLE_PAGE_BYTES) return true;
    return named && now->modified_ns == then->modified_ns;
}

/* ------------------------------------------------------------------ of a field */

static int changed(const struct mx_run_field *f, mx_why *why) {
    return mx_fail(why, -ESTALE,
                   "%.300s changed while the run read it in place as field %s: what was computed since the "
                   "last commit is lost. Start again; if the file may change again, give --field-copy, which "
                   "copies it at the beginning",
                   f->path, f->name);
}

static int look(const struct mx_run_field *f, mx_why *why, struct mx_input_identity *out) {
    if (f->alike == 0) return mx_input_look(f->npy.fd, f->npy.data_offset_bytes, f->path, why, out);
    int err = identity_of(f->npy.fd, f->path, why, out);
    if (err == 0) err = take_cells(f, why, &out->sample);
    out->sampled = out->whole = err == 0;
    out->offset_bytes = f->npy.data_offset_bytes;
    return err;
}

int mx_field_begin_in_place(struct mx_run_field *f, mx_why *why) {
    int err = look(f, why, &f->identity);
    f->in_place = err == 0;
    return err;
}

int mx_field_take_cells(struct mx_run_field *f, mx_why *why) {
    return f->alike != 0 ? look(f, why, &f->identity) : 0;
}

int mx_field_values_unchanged(struct mx_run_field *f, mx_why *why) {
    struct mx_input_identity now = {0};
    const int err = look(f, why, &now);
    return err < 0 || now.sample == f->identity.sample ? err : changed(f, why);
}

int mx_field_unchanged(struct mx_run_field *f, mx_why *why) {
    struct mx_input_identity now = {0}, *then = &f->identity;
    int err = identity_of(f->npy.fd, f->path, why, &now);
    if (err < 0) return err;
    if (now.bytes != then->bytes || now.modified_ns != then->modified_ns) return changed(f, why);
    if (now.changed_ns == then->changed_ns) return 0;
    err = take_sample(f->npy.fd, f->path, now.bytes, why, &now.sample);
    if (err < 0) return err;
    if (now.sample != then->sample) return changed(f, why);
    then->changed_ns = now.changed_ns;
    return 0;
}

/* A run continues with the file that it began with, even if it was moved. */
static int check_in_place(struct mx_run_field *f, mx_why *why) {
    const struct mx_input_identity then = f->identity;
    int err = look(f, why, &f->identity);
    const bool same = mx_input_same(&then, &f->identity, true);
    return err < 0 || same
               ? err
               : mx_fail(
                     why, -EINVAL,
                     "%.300s is not the file that the run reads in place as field %s: its length, time of "
                     "change or content differs. Restore the file, or give its new path with --field %s=FILE",
                     f->path, f->name, f->name);
}

int mx_field_take_identity(struct mx_run_field *f, bool former, mx_why *why) {
    struct mx_input_identity now = {0};
    if (former && f->in_place) return check_in_place(f, why);
    if (!former && f->alike != 0) return identity_of(f->npy.fd, f->path, why, &f->identity);
    int err = look(f, why, &now);
    if (err < 0) return err;
    if (former && !mx_input_same(&f->identity, &now, true))
        return mx_fail(why, -EINVAL,
                       "%.300s has changed since the run began with it, so the result cannot be verified: "
                       "leave --verify out",
                       f->path);
    f->identity = now;
    return 0;
}
