/* SPDX-License-Identifier: BSD-3-Clause */
/* edits.c - parameters that a run changes between steps (--edit-param).
 *
 *     step    0 ........ since ........ time ->
 *     value     before          value
 *
 * The note says since when a parameter has its value, and the one before. If the store is still at the step
 * `since`, the change is dropped: a program that was ended before the first commit after it makes it again.
 * Earlier changes are in the state already; nothing is compared with them. */
#include "run/open/open.h"

#include "machine/minmax.h"
#include "system/values.h"

#include <stdio.h>
#include <string.h>

static int32_t find(const struct mx_system *s, const char *name, size_t length) {
    for (int32_t i = 0; i < s->n_param; i++)
        if (strlen(s->param_name[i]) == length && memcmp(s->param_name[i], name, length) == 0) return i;
    return -1;
}

static struct mx_note_edit *entry(struct mx_note *n, const char *name, double value) {
    for (int32_t i = 0; i < n->n_edits; i++)
        if (strcmp(n->edit[i].name, name) == 0) return &n->edit[i];
    struct mx_note_edit *e = &n->edit[n->n_edits++];
    *e = (struct mx_note_edit){.began = value, .before = value, .value = value};
    snprintf(e->name, sizeof e->name, "%s", name);
    return e;
}

static void set(struct mx_run *r, const char *name, double value) {
    struct mx_system *const both[2] = {r->system, &r->note.system};
    for (int k = 0; k < 2; k++) {
        const int32_t i = find(both[k], name, strlen(name));
        if (i >= 0) both[k]->param[i] = value;
    }
}

static int read_word(struct mx_run *r, const char *word, int32_t *param, double *value) {
    const struct mx_system *s = r->system;
    const char *equals = strchr(word, '=');
    const size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);
    char known[256];
    if (equals == NULL || !mx_read_number(equals + 1, value))
        return mx_fail(
            &r->why, -EINVAL,
            "--edit-param '%.100s' is not NAME=VALUE with a finite number, or a quotient such as 1/8", word);
    if (mx_number_is_rounded(equals + 1, *value))
        return mx_fail(&r->why, -EINVAL,
                       "--edit-param '%.100s': a double cannot hold this integer above 2^53; give %.0f.0 to "
                       "accept the nearest one",
                       word, *value);
    *param = find(s, word, length);
    if (*param < 0)
        return mx_fail(&r->why, -EINVAL,
                       "--edit-param: the kernel \"%s\" has no parameter '%.*s'; its parameters: %s%s",
                       s->name, (int)mx_min((int64_t)length, 100), word, s->n_param == 0 ? "none" : "",
                       mx_param_names(s, known, sizeof known));
    if (mx_series_of(s, *param) == NULL) return 0;
    return mx_fail(&r->why, -EINVAL,
                   "--edit-param %.100s: this parameter has a value for each step. Write a file with other "
                   "values from step %lld on, and give it with --param %s=FILE.npy",
                   word, (long long)r->note.time, s->param_name[*param]);
}

static int edit(struct mx_run *r, const char *word) {
    struct mx_note *n = &r->note;
    const int64_t now = n->time;
    int32_t param;
    double value;
    int err = read_word(r, word, &param, &value);
    if (err < 0) return err;
    const char *name = r->system->param_name[param];
    if (mx_note_edit(n, name) == NULL && memcmp(&value, &r->system->param[param], sizeof value) == 0)
        return 0; /* 0.0 and -0.0 differ */
    struct mx_note_edit *e = entry(n, name, r->system->param[param]);
    if (e->taken)
        return mx_fail(&r->why, -EINVAL,
                       "--edit-param gives %s twice, the second time as '%.100s': leave one of them out",
                       name, word);
    e->taken = true;
    e->sum += (double)(now - e->since) * e->value;
    e->before = e->value;
    e->since = now;
    e->value = value;
    e->kept = mx_run_edits(r) ? n->edits + 1 : 0;
    set(r, name, value);
    return 0;
}

int mx_run_take_edits(struct mx_run *r) {
    struct mx_note *n = &r->note;
    const struct mx_words *words = &r->o.edit_params;
    int err = 0;
    for (int32_t i = 0; i < n->n_edits; i++) {
        if (!mx_note_edit_holds(n, &n->edit[i])) n->edit[i].value = n->edit[i].before;
        set(r, n->edit[i].name, n->edit[i].value);
    }
    if (words->n > 0 && !mx_run_edits(r) && r->o.problem.nt <= n->time)
        return mx_fail(&r->why, -EINVAL,
                       "--edit-param %.100s would change nothing: the run ends at step %lld, and the state "
                       "in %.300s is there already; give more steps with -t",
                       words->word[0], (long long)n->time, r->o.path);
    for (int32_t i = 0; i < words->n && err == 0; i++) err = edit(r, words->word[i]);
    if (err < 0 || !r->o.verify || n->n_edits == 0) return err;
    return mx_fail(&r->why, -ENOTSUP,
                   "the run in %.300s changed its parameter %s between steps, and --verify would compute all "
                   "steps with one value: leave --verify out",
                   r->o.path, n->edit[0].name);
}

int mx_run_check_edits(struct mx_run *r) {
    if (r->o.edit_params.n > 0 && r->rest.nt == 0 && !mx_run_edits(r))
        return mx_fail(&r->why, -EINVAL,
                       "--edit-param %.100s would change nothing: the criterion of the run in %.300s has "
                       "ended it at step %lld; give another --until",
                       r->o.edit_params.word[0], r->o.path, (long long)r->first_time);
    return 0;
}
