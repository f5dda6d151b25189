/* SPDX-License-Identifier: BSD-3-Clause */
/* rules.c - checks that options agree, and fills in what follows from them. */
#include "ask/table.h"
#include "ask/words.h"
#include "grid/grid.h"
#include "stencil/stencil.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MOST_CALIBRATE_S = 60 };

/* The words of a list that are separated by blanks: the next one, NULL behind the last. */
static const char *next_word(const char **list, char word[32]) {
    const size_t n = strcspn(*list, " ");
    if (n == 0) return NULL;
    snprintf(word, 32, "%.*s", (int)n, *list);
    *list += n + ((*list)[n] == ' ');
    return word;
}

static int check_excludes(const struct mx_option *row, const struct mx_options *o, mx_why *why) {
    char word[32];
    if (o->kernel != NULL && strcmp(row->name, "init") == 0) return 0; /* of different fields */
    for (const char *list = row->excludes; next_word(&list, word) != NULL;)
        if (mx_option_given(o, word))
            return mx_fail(why, -EINVAL, "--%s and --%s exclude each other: %s; choose one", row->name, word,
                           row->because);
    return 0;
}

static int check_needs(enum mx_command command, const struct mx_option *row, const struct mx_options *o,
                       mx_why *why) {
    char word[32], names[120] = "";
    for (const char *list = row->needs; next_word(&list, word) != NULL;) {
        const struct mx_option *other = mx_option_find(command, word);
        if (other == NULL) continue;
        const char *argument = other->argument != NULL ? other->argument : "";
        const size_t n = strlen(names);
        if (mx_option_given(o, word)) return 0;
        snprintf(names + n, sizeof names - n, "%s--%s%s%s", n > 0 ? " or " : "", word,
                 argument[0] != 0 ? " " : "", argument);
    }
    if (names[0] == 0) return 0; /* the command is it: tune is a dry run */
    return mx_fail(why, -EINVAL, "--%s needs %s: give it, or leave --%s out", row->name, names, row->name);
}

/* Options that exclude each other, and those that mean nothing without another. */
static int check_rows(enum mx_command command, const struct mx_options *o, mx_why *why) {
    const struct mx_option *row;
    int err = 0;
    for (int i = 0; err == 0 && (row = mx_option_at(i)) != NULL; i++) {
        if (!(row->commands & command) || !mx_option_given(o, row->name)) continue;
        if (row->excludes != NULL) err = check_excludes(row, o, why);
        if (err == 0 && row->needs != NULL) err = check_needs(command, row, o, why);
    }
    return err;
}

/* Of which field a word is: "" where it names none. */
static void field_of_word(const char *word, char name[MX_FIELD_NAME + 4]) {
    name[0] = 0;
    mx_field_word(word, name);
}

/* Nobody knows which of two is meant. Without a kernel there is one field, whatever a '=' in a file's name
 * says. */
static int check_repeated(const struct mx_options *o, mx_why *why) {
    const struct {
        const char *option;
        const struct mx_words *words;
    } lists[] = {{"input", &o->inputs},           {"init", &o->inits},
                 {"output", &o->outputs},         {"field", &o->fields},
                 {"edit-input", &o->edit_inputs}, {"frame", &o->frames}};
    const bool one_field = o->kernel == NULL && !o->resume && o->place == NULL;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (int32_t k = 1; k < lists[i].words->n; k++)
            for (int32_t j = 0; j < k; j++) {
                char a[MX_FIELD_NAME + 4], b[MX_FIELD_NAME + 4];
                field_of_word(lists[i].words->word[j], a);
                field_of_word(lists[i].words->word[k], b);
                if (!one_field && strcmp(a, b) != 0) continue;
                return mx_fail(why, -EINVAL,
                               "--%s is given twice%s%s, as '%.100s' and as '%.100s': leave one of them out",
                               lists[i].option, one_field || a[0] == 0 ? "" : " for ", one_field ? "" : a,
                               lists[i].words->word[j], lists[i].words->word[k]);
            }
    return 0;
}

int mx_check_built_in_words(const struct mx_options *o, mx_why *why) {
    const char *const option[] = {"input", "init", "output"};
    const char *const word[] = {o->input, o->init, o->output};
    for (int i = 0; i < 3; i++)
        if (word[i] != NULL && mx_field_word(word[i], NULL) != NULL)
            return mx_fail(why, -EINVAL, "--%s %.300s: a built-in stencil has one field, %s%s%.300s",
                           option[i], word[i], MX_BUILT_IN_FIELD,
                           word[i] == o->init ? "" : "; for a file of this name give ./",
                           word[i] == o->init ? "" : word[i]);
    return 0;
}

static int complete_export(const struct mx_options *o, mx_why *why) {
    if (o->place == NULL)
        return mx_fail(why, -EINVAL, "export which store? Give its directory, file or block device");
    if (o->output == NULL) return mx_fail(why, -EINVAL, "export to which file? Give it with -o GRID.npy");
    return 0;
}

/* What is computed, what the grid is: of a kernel that is known when it has been opened. */
static void complete_system(struct mx_options *o) {
    o->problem.due[0] = o->check; /* of a run once more, when its store is known */
    if (o->kernel == NULL) {
        const struct mx_stencil *s;
        if (o->problem.stencil[0] == 0) strcpy(o->problem.stencil, "star7");
        s = mx_stencil_find(o->problem.stencil);
        o->problem.h = s->h;
        if (!mx_option_given(o, "coef")) memcpy(o->problem.coef, s->coef, sizeof o->problem.coef);
    } else
        o->input = o->init = o->output = NULL;
}

/* What is said of a grid, of steps and of files agrees. */
static int check_problem(enum mx_command command, const struct mx_options *o, mx_why *why) {
    if (o->frames.n > 0 && o->inputs.n + o->fields.n == 0 && !o->source && !o->resume)
        return mx_fail(why, -EINVAL,
                       "--frame needs a file: give one with --input or --field, or leave --frame out");
    if (command != MX_CMD_LIBRARY && mx_option_given(o, "output-frame") && o->outputs.n == 0)
        return mx_fail(why, -EINVAL,
                       "--output-frame needs --output FILE: give it, or leave --output-frame out");
    if (!mx_option_given(o, "size") && o->inputs.n == 0 && !o->source && !o->resume)
        return mx_fail(why, -EINVAL,
                       "the size of the grid is missing: give -n NX NY NZ, or a file with --input GRID.npy");
    if (o->problem.flat && o->kernel == NULL && !o->resume)
        return mx_fail(
            why, -EINVAL,
            "-n %lld %lld is a grid of two dimensions, and built-in stencils compute three: give -n NX NY "
            "NZ, or a kernel with #define MX_RADII r, r, 0 (--kernel)",
            (long long)o->problem.nx, (long long)o->problem.nz);
    if (!mx_option_given(o, "steps") && !o->resume)
        return mx_fail(why, -EINVAL, "the number of time steps is missing: give -t NT");
    if (!o->resume && o->kernel == NULL && mx_check_built_in_words(o, why) < 0) return -EINVAL;
    const bool of_store =
        o->resume && o->init != NULL && strchr(o->init, '=') != NULL; /* which may have a kernel */
    if (o->init != NULL && !of_store && mx_init_find(o->init) == NULL)
        return mx_fail(why, -EINVAL, "--init '%s' is not known; choose random, gauss, linear, corner or zero",
                       o->init);
    return 0;
}

static int check_plan(const struct mx_options *o, mx_why *why) {
    if (o->calibrate_s > MOST_CALIBRATE_S)
        return mx_fail(
            why, -EINVAL,
            "--calibrate-seconds %g is above the limit of %d s: a longer measurement does not improve "
            "the rates",
            o->calibrate_s, MOST_CALIBRATE_S);
    if (o->engine != NULL && strcmp(o->engine, "device") == 0 && o->accel == NULL)
        return mx_fail(why, -EINVAL,
                       "--engine device computes on an accelerator: give one with --accel, or choose iblock "
                       "or tiled");
    return 0;
}

int mx_options_complete(enum mx_command command, struct mx_options *o, mx_why *why) {
    const bool exports = command == MX_CMD_EXPORT;
    if (command & (MX_CMD_WAVEFRONT | MX_CMD_TUNE_WAVEFRONT)) return check_rows(command, o, why);
    if (!exports && !(command & (MX_CMD_RUN | MX_CMD_LIBRARY | MX_CMD_TUNE))) return 0;
    int err = exports ? 0 : check_rows(command, o, why);
    if (err == 0) err = check_repeated(o, why);
    if (err < 0) return err;
    if (exports) return complete_export(o, why);
    complete_system(o);
    if (command == MX_CMD_TUNE) o->dry_run = o->plan_only = true;
    if ((err = check_problem(command, o, why)) < 0 || (err = check_plan(o, why)) < 0) return err;
    o->calibrate |= o->calibrate_s > 0;
    return 0;
}
