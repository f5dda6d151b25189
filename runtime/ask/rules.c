/* SPDX-License-Identifier: BSD-3-Clause */
/* rules.c - what options say together. */
#include "ask/table.h"
#include "ask/words.h"
#include "grid/grid.h"
#include "stencil/stencil.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MOST_CALIBRATE_S = 60 };

/* Options that exclude each other, and what the second of them would contradict. */
static const struct {
    const char *option, *others, *why;
} exclusive[] = {
    {"dry-run", "resume calibrate", "a dry run touches nothing"},
    {"force", "resume", "--force starts anew and --resume goes on"},
    {"field-copy", "resume", "fields stay where the run has them since it began"},
    {"init", "input", "the initial grid is the one or the other"},
    {"kernel", "stencil coef dtype", "the kernel says what is computed and with which types"},
};

static int check_exclusive(const struct mx_options *o, mx_why *why) {
    for (size_t i = 0; i < sizeof exclusive / sizeof exclusive[0]; i++) {
        char words[128], *rest;
        if (!mx_option_given(o, exclusive[i].option)) continue;
        if (o->kernel != NULL && strcmp(exclusive[i].option, "init") == 0) continue; /* of different fields */
        snprintf(words, sizeof words, "%s", exclusive[i].others);
        for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
            if (mx_option_given(o, word))
                return mx_fail(why, -EINVAL, "--%s and --%s exclude each other: %s; choose one",
                               exclusive[i].option, word, exclusive[i].why);
    }
    return 0;
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
    } lists[] = {{"input", &o->inputs},
                 {"init", &o->inits},
                 {"output", &o->outputs},
                 {"field", &o->fields},
                 {"frame", &o->frames}};
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

static int complete_export(const struct mx_options *o, mx_why *why) {
    if (o->place == NULL)
        return mx_fail(why, -EINVAL, "export which store? Give its directory, file or block device");
    if (o->output == NULL) return mx_fail(why, -EINVAL, "export to which file? Give it with -o GRID.npy");
    return 0;
}

/* What is computed, what the grid is: of a kernel that is known when it has been opened. */
static int complete_system(struct mx_options *o, mx_why *why) {
    static const char *const of_kernels[] = {"param", "field", "field-copy", "in-place"};
    for (size_t i = 0; i < sizeof of_kernels / sizeof *of_kernels; i++)
        if (o->kernel == NULL && !o->resume && mx_option_given(o, of_kernels[i]))
            return mx_fail(why, -EINVAL, "--%s is for kernels: give one with --kernel FILE.c", of_kernels[i]);
    o->problem.due[0] = o->check; /* of a run once more, when its store is known */
    if (o->kernel == NULL) return 0;
    o->input = o->init = o->output = NULL;
    return 0;
}

int mx_options_complete(enum mx_command command, struct mx_options *o, mx_why *why) {
    int err = check_exclusive(o, why);
    if (err == 0) err = check_repeated(o, why);
    if (err < 0 || command == MX_CMD_INFO) return err;
    if (command == MX_CMD_EXPORT) return complete_export(o, why);
    if (o->frames.n > 0 && o->inputs.n + o->fields.n == 0 && !o->source && !o->resume)
        return mx_fail(
            why, -EINVAL,
            "--frame is about files that have none, and there is no file: give one with --input, or "
            "leave --frame out");
    if (command != MX_CMD_LIBRARY && mx_option_given(o, "output-frame") && o->outputs.n == 0)
        return mx_fail(why, -EINVAL, "--output-frame is for --output FILE: give one, or leave it out");
    if ((err = complete_system(o, why)) < 0) return err;
    if (o->problem.stencil[0] == 0 && o->kernel == NULL) strcpy(o->problem.stencil, "star7");
    if (o->kernel == NULL) {
        const struct mx_stencil *s = mx_stencil_find(o->problem.stencil);
        o->problem.h = s->h;
        if (!mx_option_given(o, "coef")) memcpy(o->problem.coef, s->coef, sizeof o->problem.coef);
    }
    if (!mx_option_given(o, "size") && o->inputs.n == 0 && !o->source && !o->resume)
        return mx_fail(why, -EINVAL,
                       "no grid: give its size with -n NX NY NZ or a file with --input GRID.npy");
    if ((o->probes != NULL) != (o->probes_out != NULL))
        return mx_fail(
            why, -EINVAL, "--%s needs --%s: a file that names the probes, and one for their traces",
            o->probes != NULL ? "probes" : "probes-out", o->probes != NULL ? "probes-out" : "probes");
    if (o->snapshot_fields != NULL && o->snapshot_every == 0)
        return mx_fail(why, -EINVAL,
                       "--snapshot-fields is for --snapshot EVERY:DIR: give it, or leave this out");
    if (o->same && !o->resume)
        return mx_fail(why, -EINVAL,
                       "--same compares the problem with the store's that --resume goes on with: give both");
    if (!mx_option_given(o, "steps") && !o->resume)
        return mx_fail(why, -EINVAL, "no time steps: give them with -t NT");
    const bool of_store =
        o->resume && o->init != NULL && strchr(o->init, '=') != NULL; /* which may have a kernel */
    if (o->init != NULL && !of_store && mx_init_find(o->init) == NULL)
        return mx_fail(why, -EINVAL, "--init '%s' is not known; it is random, gauss, linear, corner or zero",
                       o->init);
    if (o->calibrate_s > MOST_CALIBRATE_S)
        return mx_fail(why, -EINVAL,
                       "--calibrate-seconds %g is too long: %d at most, of which the rates get no better",
                       o->calibrate_s, MOST_CALIBRATE_S);
    o->calibrate |= o->calibrate_s > 0;
    if (o->device_memory > 0 && o->accel == NULL)
        return mx_fail(why, -EINVAL, "--device-memory is that of an accelerator: give one with --accel");
    if (o->engine != NULL && strcmp(o->engine, "iblock") != 0 && strcmp(o->engine, "tiled") != 0 &&
        !(o->accel != NULL && strcmp(o->engine, "device") == 0))
        return mx_fail(why, -EINVAL,
                       "--engine '%s' is not known; it is iblock or tiled, or with --accel device",
                       o->engine);
    return 0;
}
