/* SPDX-License-Identifier: BSD-3-Clause */
/* field_words.c - what options say of fields: --input, --init, --field, --output. */
#include "files/field_words.h"

#include "files/frame.h"
#include "files/raw.h"
#include "grid/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mx_run_field *find(struct mx_run_fields *f, const char *name) {
    for (int32_t i = 0; i < f->n; i++)
        if (strcmp(f->field[i].name, name) == 0) return &f->field[i];
    return NULL;
}

static void list_names(const struct mx_run_fields *f, bool of_c, char *text, size_t capacity) {
    size_t n = 0;
    text[0] = 0;
    for (int32_t i = 0; i < f->n; i++)
        if ((f->field[i].array == MX_FIELD_OF_C) == of_c && n < capacity)
            n += (size_t)snprintf(text + n, capacity - n, "%s%s", n > 0 ? ", " : "", f->field[i].name);
    if (text[0] == 0) snprintf(text, capacity, "none");
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
    if (*field == NULL && *rest != NULL)
        return mx_fail(why, -EINVAL,
                       "--%s '%.120s': the kernel has no field %s; its state is %s (--input), its read-only "
                       "fields are %s (--field)",
                       option, word, name, state, fixed);
    if (*field == NULL)
        return mx_fail(why, -EINVAL,
                       "--%s '%.120s' does not say which field: write its name and '=' before the value. The "
                       "state is %s (--input), the read-only fields are %s (--field)",
                       option, word, state, fixed);
    const bool of_c = (*field)->array == MX_FIELD_OF_C;
    if (c == 1 && !of_c)
        return mx_fail(why, -EINVAL, "--%s %s: %s is a state field; give its file with --input %s=FILE",
                       option, word, (*field)->name, (*field)->name);
    if (c == 0 && of_c)
        return mx_fail(why, -EINVAL, "--%s %s: the kernel only reads %s%s", option, word, (*field)->name,
                       strcmp(option, "input") == 0 ? "; give its file with --field instead of --input"
                                                    : ", so the run has no result of it");
    if ((*rest)[0] == 0)
        return mx_fail(why, -EINVAL, "--%s '%.120s' has nothing after the '='", option, word);
    return 0;
}

/* ------------------------------------------------------------------ first values */

static bool has_values(const struct mx_run_field *f) {
    return f->init != NULL || f->path[0] != 0 || f->program;
}

static int twice(const struct mx_run_field *f, mx_why *why) {
    return mx_fail(why, -EINVAL, "field %s gets values from two options: leave one of them out", f->name);
}

static int take_path(struct mx_run_field *f, const char *path, mx_why *why) {
    char file[PATH_MAX], whole[PATH_MAX];
    const char *inside = mx_array_split(path, file);
    if (strlen(inside) >= sizeof f->inside)
        return mx_fail(why, -ENAMETOOLONG,
                       "the name of the dataset of field %s has %zu bytes; at most %zu are possible", f->name,
                       strlen(inside), sizeof f->inside - 1);
    strcpy(f->inside, inside);
    if (realpath(file, whole) == NULL)
        return mx_fail(why, -errno, "%.300s cannot be opened: %s", path, strerror(errno));
    if (strlen(whole) >= sizeof f->path)
        return mx_fail(why, -ENAMETOOLONG,
                       "the path of the file of field %s has %zu bytes; at most %zu are possible", f->name,
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
                          "there is no --init '%.100s': choose random, gauss, linear, corner or zero", rest);
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

static int take_all_files(struct mx_run_fields *fields, const struct mx_options *o, const struct mx_system *s,
                          mx_why *why) {
    int err = take_files(fields, &o->inputs, "input", 0, why);
    if (err == 0) err = take_files(fields, &o->fields, "field", 1, why);
    return err < 0 ? err : mx_fields_take_frames(fields, s, &o->frames, why);
}

int mx_fields_take_edits(struct mx_run_fields *fields, const struct mx_words *words, mx_why *why) {
    return take_files(fields, words, "edit-input", -1, why);
}

int mx_field_take_path(struct mx_run_field *f, const char *path, const char *raw, mx_why *why) {
    snprintf(f->raw, sizeof f->raw, "%s", raw);
    return take_path(f, path, why);
}

/* own: those that something was said of by name. */
static int take_words(struct mx_run_fields *fields, const struct mx_options *o, bool program,
                      const struct mx_system *s, bool own[MX_FIELDS_MOST], mx_why *why) {
    int err = take_all_files(fields, o, s, why);
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
                              "(--init NAME sets all state fields)",
                              f->name, f->name, f->name);
        }
    }
    return err;
}

/* ------------------------------------------------------------------ results, files that have moved */

int mx_fields_take_outputs(struct mx_run_fields *fields, const struct mx_options *o, mx_why *why,
                           const char *path[MX_FIELDS_MOST]) {
    int err = 0;
    for (int32_t i = 0; i < fields->n; i++) path[i] = NULL;
    for (int32_t i = 0; i < o->outputs.n && err == 0; i++) {
        struct mx_run_field *f;
        const char *rest;
        err = resolve(fields, "output", o->outputs.word[i], 0, &f, &rest, why);
        if (err == 0 && path[f - fields->field] != NULL)
            err =
                mx_fail(why, -EINVAL, "--output is given twice for field %s: leave one of them out", f->name);
        if (err == 0) path[f - fields->field] = rest;
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
