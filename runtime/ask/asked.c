/* SPDX-License-Identifier: BSD-3-Clause */
#include "ask/asked.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mx_asked_add(struct mx_asked *a, const struct mx_option *row, const char *value, char *own, mx_why *why) {
    if (a->n == a->room) {
        const int32_t room = a->room > 0 ? 2 * a->room : 32;
        struct mx_asked_option *more = realloc(a->option, (size_t)room * sizeof *more);
        if (more == NULL) {
            free(own);
            return mx_fail(why, -ENOMEM, "no memory for the options");
        }
        a->option = more;
        a->room = room;
    }
    a->option[a->n++] = (struct mx_asked_option){row, value, own};
    return 0;
}

void mx_asked_say_twice(const struct mx_asked *a, mx_remark *say, void *context) {
    char sentence[600];
    for (int32_t i = 0; i < a->n; i++) {
        const struct mx_asked_option *before = &a->option[i], *now = NULL;
        for (int32_t j = i + 1; j < a->n && now == NULL && !before->row->repeats; j++)
            if (a->option[j].row == before->row) now = &a->option[j];
        if (now == NULL || before->value == NULL || now->value == NULL ||
            strcmp(before->value, now->value) == 0)
            continue;
        snprintf(sentence, sizeof sentence,
                 "--%s is given twice, as %.200s and as %.200s: the last one is used", now->row->name,
                 before->value, now->value);
        say(context, sentence);
    }
}

int mx_asked_take(const struct mx_asked *a, struct mx_options *o, mx_why *why) {
    int err = 0;
    for (int32_t i = 0; i < a->n && err == 0; i++)
        err = mx_option_take(a->option[i].row, a->option[i].value, o, why);
    if (err == 0 && a->extra != NULL)
        err = mx_fail(why, -EINVAL, "'%s' is not an option; --help all lists the options", a->extra);
    return err;
}

static bool has(const struct mx_asked *a, const struct mx_option *row) {
    for (int32_t i = 0; i < a->n; i++)
        if (a->option[i].row == row) return true;
    return false;
}

static int move(struct mx_asked *to, struct mx_asked_option *o, mx_why *why) {
    char *own = o->own;
    o->own = NULL;
    return mx_asked_add(to, o->row, o->value, own, why);
}

int mx_asked_before(struct mx_asked *line, struct mx_asked *job, mx_why *why) {
    struct mx_asked both = {.n_plain = line->n_plain};
    int err = 0;
    for (int32_t i = 0; i < job->n && err == 0; i++)
        if (!has(line, job->option[i].row)) err = move(&both, &job->option[i], why);
    for (int32_t i = 0; i < line->n && err == 0; i++) err = move(&both, &line->option[i], why);
    memcpy(both.plain, line->plain, sizeof both.plain);
    both.extra = line->extra;
    mx_asked_free(job);
    mx_asked_free(line);
    *line = both;
    return err;
}

void mx_asked_free(struct mx_asked *a) {
    for (int32_t i = 0; i < a->n; i++) free(a->option[i].own);
    free(a->option);
    *a = (struct mx_asked){.n = 0};
}
