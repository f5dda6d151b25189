/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/fields.h"
#include "run/frame.h"
#include "run/raw.h"

#include "grid/array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

/* ------------------------------------------------------------------ names */

static struct mx_run_field *add(struct mx_run_fields *f, const struct mx_field_of *of, const char *suffix,
                                int32_t array, int32_t index) {
    struct mx_run_field *x = &f->field[f->n++];
    *x = (struct mx_run_field){
        .dtype = of->dtype, .array = array, .index = index, .same_as = -1, .npy.fd = -1};
    snprintf(x->name, sizeof x->name, "%s%s", of->name, suffix);
    return x;
}

void mx_fields_of(const struct mx_system *s, struct mx_run_fields *out) {
    out->n = 0;
    for (int32_t i = 0; i < s->n_field[0]; i++) add(out, &s->field[0][i], "", 0, i);
    for (int32_t i = 0; i < s->n_field[1] && s->form != MX_JACOBI; i++)
        add(out, &s->field[1][i], s->form == MX_LEAPFROG ? ".old" : "", 1, i);
    for (int32_t i = 0; i < s->n_fixed; i++) add(out, &s->fixed[i], "", MX_FIELD_OF_C, i);
}

static void list_names(const struct mx_run_fields *f, bool of_c, char *text, size_t capacity) {
    size_t n = 0;
    text[0] = 0;
    for (int32_t i = 0; i < f->n; i++)
        if ((f->field[i].array == MX_FIELD_OF_C) == of_c && n < capacity)
            n += (size_t)snprintf(text + n, capacity - n, "%s%s", n > 0 ? ", " : "", f->field[i].name);
    if (text[0] == 0) snprintf(text, capacity, "none");
}

static struct mx_run_field *find(struct mx_run_fields *f, const char *name) {
    for (int32_t i = 0; i < f->n; i++)
        if (strcmp(f->field[i].name, name) == 0) return &f->field[i];
    return NULL;
}

static int32_t count_state(const struct mx_run_fields *f) {
    int32_t n = 0;
    for (int32_t i = 0; i < f->n; i++)
        n += f->field[i].array != MX_FIELD_OF_C && strchr(f->field[i].name, '.') == NULL;
    return n;
}

/* The field that a word of --OPTION is about, and the rest of it. c: fields of C are meant (1), those of the
 * state (0), either (-1). */
static int resolve(struct mx_run_fields *f, const char *option, const char *word, int c,
                   struct mx_run_field **field, const char **rest, mx_why *why) {
    char name[MX_FIELD_NAME + 4], state[200], fixed[200];
    *rest = mx_field_word(word, name);
    *field = *rest != NULL ? find(f, name) : NULL;
    if (*field == NULL && c != 1 && count_state(f) == 1 && (*rest == NULL || strchr(name, '.') != NULL)) {
        *field = &f->field[0];
        *rest = word;
    }
    list_names(f, false, state, sizeof state);
    list_names(f, true, fixed, sizeof fixed);
    if (*field == NULL)
        return mx_fail(why, -EINVAL,
                       "--%s '%.120s' names no field of the kernel; NAME=... with the state's %s, or of C %s",
                       option, word, state, fixed);
    const bool of_c = (*field)->array == MX_FIELD_OF_C;
    if (c == 1 && !of_c)
        return mx_fail(why, -EINVAL,
                       "--%s %s: %s is a field of the state; give its file with --input %s=FILE", option,
                       word, (*field)->name, (*field)->name);
    if (c == 0 && of_c)
        return mx_fail(why, -EINVAL, "--%s %s: %s is only read by the kernel%s", option, word, (*field)->name,
                       strcmp(option, "input") == 0 ? "; give its file with --field" : " and has no result");
    if ((*rest)[0] == 0)
        return mx_fail(why, -EINVAL, "--%s '%.120s' has nothing after the '='", option, word);
    return 0;
}

/* ------------------------------------------------------------------ options */

static bool has_values(const struct mx_run_field *f) {
    return f->init != NULL || f->path[0] != 0 || f->program;
}

static int twice(const struct mx_run_field *f, mx_why *why) {
    return mx_fail(why, -EINVAL, "field %s is given initial values twice; choose one", f->name);
}

static int take_path(struct mx_run_field *f, const char *path, mx_why *why) {
    char file[PATH_MAX], whole[PATH_MAX];
    const char *inside = mx_array_split(path, file);
    if (strlen(inside) >= sizeof f->inside)
        return mx_fail(why, -ENAMETOOLONG, "the name of the dataset of field %s has %zu bytes: %zu at most",
                       f->name, strlen(inside), sizeof f->inside - 1);
    strcpy(f->inside, inside);
    if (realpath(file, whole) == NULL)
        return mx_fail(why, -errno, "%.300s cannot be opened: %s", path, strerror(errno));
    if (strlen(whole) >= sizeof f->path)
        return mx_fail(why, -ENAMETOOLONG, "the path of field %s has %zu bytes: %zu at most", f->name,
                       strlen(whole), sizeof f->path - 1);
    strcpy(f->path, whole);
    return 0;
}

/* "FILE.npy", or of raw cells "FILE,TYPE[,offset=N][,frame=yes|no]". */
static int take_file(struct mx_run_field *f, const char *word, mx_why *why) {
    char path[PATH_MAX];
    f->raw[0] = 0;
    if (mx_array_split(word, path)[0] != 0) return take_path(f, word, why); /* commas are the dataset's */
    mx_raw_split(word, path, f->raw);
    return take_path(f, path, why);
}

static int take_files(struct mx_run_fields *fields, const struct mx_words *words, const char *option, int c,
                      mx_why *why) {
    int err = 0;
    for (int32_t i = 0; i < words->n && err == 0; i++) {
        struct mx_run_field *f;
        const char *rest;
        err = resolve(fields, option, words->word[i], c, &f, &rest, why);
        if (err == 0 && has_values(f)) err = twice(f, why);
        if (err == 0) err = take_file(f, rest, why);
    }
    return err;
}

/* A program that gives the step before of a leapfrog kernel says so: p.old=program. */
static int take_inits(struct mx_run_fields *fields, const struct mx_words *words, bool program, mx_why *why) {
    const struct mx_init *all = NULL;
    int err = 0;
    for (int32_t i = 0; i < words->n && err == 0; i++) {
        struct mx_run_field *f = NULL;
        const char *rest = words->word[i];
        const bool named = mx_field_word(rest, NULL) != NULL;
        if (named) err = resolve(fields, "init", words->word[i], -1, &f, &rest, why);
        if (err < 0) break;
        if (program && named && strcmp(rest, "program") == 0) {
            f->program = true;
            continue;
        }
        const struct mx_init *init = mx_init_find(rest);
        if (init == NULL)
            err = mx_fail(why, -EINVAL,
                          "--init '%.100s' is not known; it is random, gauss, linear, corner or zero", rest);
        else if (!named)
            all = init;
        else if (has_values(f))
            err = twice(f, why);
        else
            f->init = init;
    }
    for (int32_t i = 0; i < fields->n && err == 0 && all != NULL; i++)
        if (!has_values(&fields->field[i]) && fields->field[i].array != MX_FIELD_OF_C)
            fields->field[i].init = all;
    return err;
}

int mx_fields_take_files(struct mx_run_fields *fields, const struct mx_options *o, const struct mx_system *s,
                         mx_why *why) {
    int err = take_files(fields, &o->inputs, "input", 0, why);
    if (err == 0) err = take_files(fields, &o->fields, "field", 1, why);
    return err < 0 ? err : mx_fields_take_frames(fields, s, &o->frames, why);
}

int mx_field_take_path(struct mx_run_field *f, const char *path, const char *raw, mx_why *why) {
    snprintf(f->raw, sizeof f->raw, "%s", raw);
    return take_path(f, path, why);
}

/* own: those that something was said of by name. */
static int take_words(struct mx_run_fields *fields, const struct mx_options *o, bool program,
                      const struct mx_system *s, bool own[MX_FIELDS_MOST], mx_why *why) {
    int err = mx_fields_take_files(fields, o, s, why);
    /* p.old is p where nothing else is said of it: before --init without a name fills what is left. */
    for (int32_t i = 0; i < fields->n; i++) own[i] = has_values(&fields->field[i]);
    for (int32_t i = 0; i < o->inits.n && err == 0; i++) {
        char name[MX_FIELD_NAME + 4];
        if (mx_field_word(o->inits.word[i], name) == NULL) continue;
        for (int32_t k = 0; k < fields->n; k++) own[k] |= strcmp(fields->field[k].name, name) == 0;
    }
    if (err == 0) err = take_inits(fields, &o->inits, program, why);
    for (int32_t i = 0; i < fields->n; i++)
        if (s->form == MX_LEAPFROG && fields->field[i].array == 1 && !own[i]) fields->field[i].init = NULL;
    return err;
}

int mx_fields_take_some(struct mx_run_fields *fields, const struct mx_options *o, bool program,
                        const struct mx_system *s, mx_why *why) {
    bool own[MX_FIELDS_MOST] = {false};
    return take_words(fields, o, program, s, own, why);
}

int mx_fields_take(struct mx_run_fields *fields, const struct mx_options *o, bool program,
                   const struct mx_system *s, mx_why *why) {
    bool own[MX_FIELDS_MOST] = {false};
    int err = take_words(fields, o, program, s, own, why);
    for (int32_t i = 0; i < fields->n && err == 0; i++) {
        struct mx_run_field *f = &fields->field[i];
        if (s->form == MX_LEAPFROG && f->array == 1 && !own[i]) {
            f->same_as = f->index;
        } else if (!has_values(f) && program) {
            f->program = true;
        } else if (!has_values(f)) {
            err =
                f->array == MX_FIELD_OF_C
                    ? mx_fail(
                          why, -EINVAL,
                          "field %s has no values: give its file with --field %s=FILE.npy, or --init %s=NAME",
                          f->name, f->name, f->name)
                    : mx_fail(why, -EINVAL,
                              "field %s has no initial values: give --input %s=FILE.npy or --init %s=NAME "
                              "(--init NAME: "
                              "all fields of the state)",
                              f->name, f->name, f->name);
        }
    }
    return err;
}

int mx_fields_take_outputs(struct mx_run_fields *fields, const struct mx_options *o, mx_why *why,
                           const char *path[MX_FIELDS_MOST]) {
    int err = 0;
    for (int32_t i = 0; i < fields->n; i++) path[i] = NULL;
    for (int32_t i = 0; i < o->outputs.n && err == 0; i++) {
        struct mx_run_field *f;
        const char *rest;
        err = resolve(fields, "output", o->outputs.word[i], 0, &f, &rest, why);
        if (err == 0 && path[f - fields->field] != NULL)
            err = mx_fail(why, -EINVAL, "--output is given twice for field %s; choose one", f->name);
        if (err == 0) path[f - fields->field] = rest;
    }
    return err;
}

/* ------------------------------------------------------------------ files */

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

static int changed(const struct mx_run_field *f, mx_why *why) {
    return mx_fail(
        why, -ESTALE,
        "%.300s has changed while it was read in place as field %s: what was computed since the last "
        "commit is lost; start again, or with --field-copy, which reads a file once",
        f->path, f->name);
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
    if (then->sampled && now->bytes <= SAMPLE_PAGES * SAMPLE_PAGE_BYTES) return true;
    return named && now->modified_ns == then->modified_ns;
}

static int look(const struct mx_run_field *f, mx_why *why, struct mx_input_identity *out) {
    return mx_input_look(f->npy.fd, f->npy.data_offset_bytes, f->path, why, out);
}

int mx_field_begin_in_place(struct mx_run_field *f, mx_why *why) {
    int err = look(f, why, &f->identity);
    f->in_place = err == 0;
    return err;
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

/* A run goes on with the file that it began with, wherever that is now. */
static int check_in_place(struct mx_run_field *f, mx_why *why) {
    const struct mx_input_identity then = f->identity;
    int err = look(f, why, &f->identity);
    const bool same = mx_input_same(&then, &f->identity, true);
    return err < 0 || same
               ? err
               : mx_fail(
                     why, -EINVAL,
                     "%.300s is not, or no longer, the file that the run reads in place as field %s (bytes, "
                     "time of change, content); give it back as it was, or where it is now with --field "
                     "%s=FILE",
                     f->path, f->name, f->name);
}

static int take_identity(struct mx_run_field *f, bool former, mx_why *why) {
    struct mx_input_identity now = {0};
    if (former && f->in_place) return check_in_place(f, why);
    int err = look(f, why, &now);
    if (err < 0) return err;
    if (former && !mx_input_same(&f->identity, &now, true))
        return mx_fail(why, -EINVAL,
                       "%.300s has changed since the run began with it: the result cannot be verified; leave "
                       "--verify out",
                       f->path);
    f->identity = now;
    return 0;
}

/* Can its frame be made? A field of C that is read at the cell alone may lack it anyhow. */
static bool may_lack(const struct mx_run_field *f, const struct mx_problem *p) {
    return f->made.kind != MX_FRAME_INCLUDED || (f->array == MX_FIELD_OF_C && p->system->hc == 0);
}

/* Of the state either all files have the frame, or --frame makes it; a file of C says by its shape. */
static bool may_have(const struct mx_run_field *f) {
    return f->array == MX_FIELD_OF_C || f->made.kind == MX_FRAME_INCLUDED;
}

static int open_raw(struct mx_run_field *f, const struct mx_problem *p, mx_why *why) {
    char option[64];
    const struct mx_raw_want want = {.option = option,
                                     .nx = p->nx,
                                     .ny = p->ny,
                                     .nz = p->nz,
                                     .h = p->h,
                                     .may_have = may_have(f),
                                     .may_lack = may_lack(f, p)};
    snprintf(option, sizeof option, "--%s %s", f->array == MX_FIELD_OF_C ? "field" : "input", f->name);
    return mx_raw_open(f->path, f->raw, &want, why, &f->npy, &f->frame);
}

static int open_file(struct mx_run_field *f, const struct mx_problem *p, mx_why *why) {
    if (f->raw[0] != 0) return open_raw(f, p, why);
    char data[PATH_MAX];
    int err = mx_array_open(f->path, f->inside, true, why, &f->npy, data);
    if (err < 0) return err;
    if (strlen(data) < sizeof f->data) return strcpy(f->data, data), 0;
    close(f->npy.fd);
    return mx_fail(why, -ENAMETOOLONG, "the path of the cells of %.200s has more than %zu bytes", f->path,
                   sizeof f->data - 1);
}

/* Do extents with the frame, or where that is allowed without, agree with the problem's? */
static int check_shape(struct mx_run_field *f, struct mx_problem *p, mx_why *why) {
    const int64_t *shape = f->npy.shape, h2 = 2 * (int64_t)p->h;
    const bool made = f->made.kind != MX_FRAME_INCLUDED;
    if (f->npy.dtype != f->dtype)
        return mx_fail(why, -EINVAL,
                       "%.200s has cells of type %s; field %s of the kernel is %s: convert the file", f->path,
                       mx_dtype_name(f->npy.dtype), f->name, mx_dtype_name(f->dtype));
    if (p->nx == 0) {
        const int64_t less = made ? 0 : h2;
        p->nx = shape[2] - less, p->ny = shape[1] - less, p->nz = shape[0] - less;
    }
    if (p->nx < 1 || p->ny < 1 || p->nz < 1)
        return mx_fail(why, -EINVAL,
                       "%.200s of shape (%lld, %lld, %lld) has no interior: it needs a frame of %d cells on "
                       "every side, or "
                       "one that is made: --frame edge, mirror, periodic or a number",
                       f->path, (long long)shape[0], (long long)shape[1], (long long)shape[2], p->h);
    f->frame = shape[2] == p->nx + h2 && shape[1] == p->ny + h2 && shape[0] == p->nz + h2;
    const bool bare = shape[2] == p->nx && shape[1] == p->ny && shape[0] == p->nz;
    if ((f->frame && (may_have(f) || f->raw[0] != 0)) || (bare && may_lack(f, p))) return 0;
    if (f->frame)
        return mx_fail(why, -EINVAL,
                       "%.200s has the shape (%lld, %lld, %lld), which is that of field %s with the frame of "
                       "%d cells; leave --frame out, or say --frame %s=included",
                       f->path, (long long)shape[0], (long long)shape[1], (long long)shape[2], f->name, p->h,
                       f->name);
    if (made && f->array != MX_FIELD_OF_C)
        return mx_fail(
            why, -EINVAL,
            "%.200s has the shape (%lld, %lld, %lld); field %s needs (%lld, %lld, %lld), without a "
            "frame",
            f->path, (long long)shape[0], (long long)shape[1], (long long)shape[2], f->name, (long long)p->nz,
            (long long)p->ny, (long long)p->nx);
    return mx_fail(why, -EINVAL,
                   "%.200s has the shape (%lld, %lld, %lld); field %s needs (%lld, %lld, %lld), with the "
                   "frame of %d cells%s",
                   f->path, (long long)shape[0], (long long)shape[1], (long long)shape[2], f->name,
                   (long long)(p->nz + h2), (long long)(p->ny + h2), (long long)(p->nx + h2), p->h,
                   may_lack(f, p) ? ", or without it"
                   : bare         ? ", or --frame edge, mirror, periodic or a number"
                                  : "");
}

static int open_field(struct mx_run_field *f, struct mx_problem *p, bool former, mx_why *why) {
    const int64_t offset = f->npy.data_offset_bytes;
    const bool frame = f->frame;
    int err = open_file(f, p, why);
    if (err < 0) {
        f->npy.fd = -1;
        return err;
    }
    err = check_shape(f, p, why);
    if (err == 0 && former && f->in_place && (f->npy.data_offset_bytes != offset || f->frame != frame))
        err = mx_fail(
            why, -EINVAL,
            "the cells of %.300s begin elsewhere, or have another frame, than those that the run reads in "
            "place as field %s",
            f->path, f->name);
    return err < 0 ? err : take_identity(f, former, why);
}

int mx_field_look(struct mx_run_field *f, struct mx_problem *p, mx_why *why) {
    const int err = open_field(f, p, false, why);
    if (f->npy.fd >= 0) close(f->npy.fd);
    f->npy.fd = -1;
    return err;
}

int mx_fields_open_in_place(struct mx_run_fields *fields, struct mx_problem *p, mx_why *why) {
    int err = 0;
    for (int32_t i = 0; i < fields->n && err == 0; i++) {
        struct mx_run_field *f = &fields->field[i];
        if (f->in_place && f->npy.fd < 0) err = open_field(f, p, true, why);
    }
    return err;
}

int mx_fields_open_state(struct mx_run_fields *fields, struct mx_problem *p, mx_why *why) {
    int err = 0;
    for (int32_t i = 0; i < fields->n && err == 0; i++) {
        struct mx_run_field *f = &fields->field[i];
        if (f->array != MX_FIELD_OF_C && f->path[0] != 0) err = open_field(f, p, true, why);
    }
    return err;
}

int mx_fields_take_moved(struct mx_run_fields *fields, const struct mx_options *o, mx_why *why) {
    int err = 0;
    for (int32_t i = 0; i < o->fields.n && err == 0; i++) {
        struct mx_run_field *f;
        const char *rest;
        err = resolve(fields, "field", o->fields.word[i], 1, &f, &rest, why);
        if (err < 0) break;
        if (!f->in_place) continue; /* the store has a copy */
        f->raw[0] = f->data[0] = 0;
        err = take_file(f, rest, why);
    }
    return err;
}

int mx_fields_open(struct mx_run_fields *fields, struct mx_problem *p, bool former, mx_why *why) {
    int err = 0;
    /* State fields first: they have the frame, so extents follow from them. */
    for (int c = 0; c < 2; c++)
        for (int32_t i = 0; i < fields->n && err == 0; i++) {
            struct mx_run_field *f = &fields->field[i];
            if (f->path[0] == 0 || (f->array == MX_FIELD_OF_C) != (c == 1)) continue;
            err = open_field(f, p, former, why);
        }
    bool program = false;
    for (int32_t i = 0; i < fields->n; i++) program |= fields->field[i].program;
    if (err == 0 && p->nx == 0 && !program)
        err = mx_fail(why, -EINVAL,
                      "no grid: give its size with -n NX NY NZ or a file with --input NAME=GRID.npy");
    return err;
}

int mx_fields_open_source(const struct mx_run_fields *fields, struct mx_problem *p,
                          const struct mx_source *source, bool *opened, mx_why *why) {
    for (int32_t i = 0; i < fields->n; i++) {
        const struct mx_run_field *f = &fields->field[i];
        const int32_t frame = f->made.kind == MX_FRAME_INCLUDED ? p->h : 0;
        const int64_t h2 = 2 * (int64_t)frame;
        struct mx_grid grid = {.size = sizeof grid, .frame = frame};
        if (!f->program) continue;
        if (p->nx > 0) grid.nx = p->nx + h2, grid.ny = p->ny + h2, grid.nz = p->nz + h2;
        snprintf(grid.dtype, sizeof grid.dtype, "%s", mx_dtype_name(f->dtype));
        snprintf(grid.field, sizeof grid.field, "%s", f->name);
        int err = source->open != NULL ? source->open(source->context, &grid, why) : 0;
        if (err != 0) return err < 0 ? err : -EIO;
        *opened = true;
        if (p->nx == 0) p->nx = grid.nx - h2, p->ny = grid.ny - h2, p->nz = grid.nz - h2;
        if (p->nx < 1 || p->ny < 1 || p->nz < 1 || grid.nx != p->nx + h2 || grid.ny != p->ny + h2 ||
            grid.nz != p->nz + h2)
            return mx_fail(why, -EINVAL,
                           "%s gives field %s as %lld x %lld x %lld cells; the grid has %lld x %lld x %lld, "
                           "with its frame "
                           "of %d cells",
                           source->name, f->name, (long long)grid.nx, (long long)grid.ny, (long long)grid.nz,
                           (long long)(p->nx + h2), (long long)(p->ny + h2), (long long)(p->nz + h2), frame);
        if (strcmp(grid.dtype, mx_dtype_name(f->dtype)) != 0)
            return mx_fail(why, -EINVAL, "%s gives field %s as %.7s; the kernel has %s", source->name,
                           f->name, grid.dtype, mx_dtype_name(f->dtype));
    }
    return 0;
}

void mx_fields_close(struct mx_run_fields *fields) {
    for (int32_t i = 0; i < fields->n; i++) {
        struct mx_run_field *f = &fields->field[i];
        if (f->npy.fd >= 0) close(f->npy.fd);
        f->npy.fd = -1;
    }
}

/* ------------------------------------------------------------------ planes */

/* Rows of whole cells of one field, where they go. */
static struct mx_layout rows_of(const struct mx_fields_fill *x) {
    return (struct mx_layout){.row_pitch_bytes = x->layout->row_pitch_bytes,
                              .plane_pitch_bytes = x->layout->plane_pitch_bytes};
}

/* A plane of a field that the program gives, with the frame or without. */
static int ask_program(const struct mx_fields_fill *x, const struct mx_run_field *f, int64_t z, char *at) {
    const struct mx_problem *p = x->problem;
    const int64_t h2 = f->made.kind == MX_FRAME_INCLUDED ? 2 * (int64_t)p->h : 0;
    const struct mx_grid_box box = {.size = sizeof box,
                                    .x1 = p->nx + h2,
                                    .y1 = p->ny + h2,
                                    .z0 = z,
                                    .z1 = z + 1,
                                    .row_pitch_bytes = x->layout->row_pitch_bytes,
                                    .plane_pitch_bytes = x->layout->plane_pitch_bytes,
                                    .data = at,
                                    .field = f->name};
    int err = x->source->region(x->source->context, &box, x->why);
    return err > 0 ? -EIO : err;
}

struct asked {
    const struct mx_fields_fill *fill;
    const struct mx_run_field *field;
};

/* A plane as the field's file or program has it. */
static int ask_plane(void *context, int64_t z, char *at) {
    const struct asked *a = context;
    const struct mx_layout rows = rows_of(a->fill);
    if (a->field->program) return ask_program(a->fill, a->field, z, at);
    return mx_npy_read(&a->field->npy, z, 1, at, &rows, a->fill->why);
}

static int read_plane(const struct mx_fields_fill *x, const struct mx_run_field *f, int64_t z, char *at) {
    const struct mx_problem *p = x->problem;
    const int64_t h = p->h, cell = mx_dtype_bytes(f->dtype), pitch = x->layout->row_pitch_bytes;
    struct asked asked = {x, f};
    const bool whole = f->program ? f->made.kind == MX_FRAME_INCLUDED : f->frame;
    if (whole) return ask_plane(&asked, z, at);
    if (f->array != MX_FIELD_OF_C || p->system->hc > 0)
        return mx_frame_fill(&f->made, p, f->dtype, pitch, z, at, ask_plane, &asked);
    for (int64_t y = 0; y < x->layout->rows; y++) /* a frame of C that nobody reads */
        memset(at + y * pitch, 0, (size_t)((p->nx + 2 * h) * cell));
    return z < h || z >= p->nz + h ? 0 : ask_plane(&asked, z - h, at + h * pitch + h * cell);
}

int mx_fields_fill_plane(void *context, int64_t z, char *plane) {
    const struct mx_fields_fill *x = context;
    const int64_t pitch = x->layout->row_pitch_bytes;
    int err = 0;
    memset(plane, 0, (size_t)(x->layout->rows * pitch));
    for (int32_t i = 0; i < x->fields->n && err == 0; i++) {
        const struct mx_run_field *f = &x->fields->field[i],
                                  *from = f->same_as >= 0 ? &x->fields->field[f->same_as] : f;
        if (f->array != x->array || (f->array == MX_FIELD_OF_C && f->index != x->index)) continue;
        const int64_t offset =
            f->array == MX_FIELD_OF_C ? 0 : x->layout->field_offset_bytes[f->array][f->index];
        if (from->program || from->init == NULL) {
            err = read_plane(x, from, z, plane + offset);
        } else {
            const struct mx_plane_field one = {.dtype = f->dtype, .init = from->init};
            mx_fill_field_plane(x->problem, x->layout, &one, x->threads, z, plane + offset);
        }
    }
    return err;
}
