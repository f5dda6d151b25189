/* SPDX-License-Identifier: BSD-3-Clause */
/* seconds.c - the simulated seconds of a step, for everything that reports steps. */
#include "run/parts/parts.h"

#include "run/state.h"
#include "system/values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The parameter that holds the seconds of a step by default. */
static const char usual[] = "dt";

/* Fills in the seconds of checks before the first change of the parameter, which the note does not have. */
static void take_checks(struct mx_run *r, const struct mx_note_edit *e) {
    struct mx_norms_history *h = &r->note.history;
    for (int32_t i = 0; i < h->n; i++) {
        struct mx_norms_result *one = &h->kept[i].result;
        const bool first = one->step <= e->since && memcmp(&e->before, &e->began, sizeof e->began) == 0;
        if (isnan(one->simulated_s) && first) one->simulated_s = (double)one->step * e->began;
    }
}

static bool take_parameter(struct mx_run *r, const char *name, struct mx_simulated *out) {
    const struct mx_system *s = r->system;
    for (int32_t i = 0; s != NULL && i < s->n_param; i++) {
        if (strcmp(s->param_name[i], name) != 0) continue;
        const struct mx_note_edit *e = mx_note_edit(&r->note, name);
        if (mx_series_of(s, i) != NULL && mx_series_of(s, i)->each > 1)
            return false; /* of a stage, not a step */
        *out = (struct mx_simulated){.known = true, .step_s = s->param[i], .each = mx_series_of(s, i)};
        if (e != NULL) out->since = e->since, out->since_s = e->sum;
        if (e != NULL && out->each == NULL) take_checks(r, e);
        return true;
    }
    return false;
}

static int refuse(struct mx_run *r, const char *text) {
    const struct mx_system *s = r->system;
    for (int32_t i = 0; s != NULL && i < s->n_param; i++)
        if (strcmp(s->param_name[i], text) == 0)
            return mx_fail(
                &r->why, -EINVAL,
                "--time-step %s: this parameter has a value for each stage of a step, and a step has one "
                "length. Give a number of seconds or another parameter; `none` turns simulated seconds off",
                text);
    const bool some = s != NULL && s->n_param > 0;
    char known[256] = "";
    return mx_fail(&r->why, -EINVAL,
                   "--time-step '%.100s' is neither a number of seconds such as 1e-3 or 1/8 nor %s%s; `none` "
                   "turns simulated seconds off",
                   text,
                   some ? "a parameter of the kernel, whose parameters are "
                        : "a parameter, of which there are none",
                   some ? mx_param_names(s, known, sizeof known) : "");
}

static int take(struct mx_run *r) {
    struct mx_simulated *t = &r->report.simulated;
    const char *given = r->o.time_step;
    if (given == NULL && !r->o.same && r->note.time_step[0] != 0) given = r->note.time_step;
    *t = (struct mx_simulated){.known = false};
    if (given == NULL) return take_parameter(r, usual, t), 0;
    const size_t room = sizeof r->parts.time_step;
    if (strlen(given) >= room)
        return mx_fail(&r->why, -EINVAL, "--time-step '%.100s' is longer than %zu characters", given,
                       room - 1);
    strcpy(r->parts.time_step, given);
    if (strcmp(given, "none") == 0 || take_parameter(r, given, t)) return 0;
    t->known = mx_read_number(given, &t->step_s);
    return t->known ? 0 : refuse(r, given);
}

/* Seconds that are more than a number can hold are not known. */
static int take_finite(struct mx_run *r) {
    const int err = take(r);
    r->report.simulated.known &= isfinite(mx_simulated_s(&r->report.simulated, r->o.problem.nt));
    return err;
}

static void note(struct mx_run *r) {
    struct mx_note *n = &r->note;
    memcpy(n->time_step, r->parts.time_step, sizeof n->time_step);
    const double seconds = mx_simulated_s(&r->report.simulated, n->time);
    n->timed = isfinite(seconds);
    n->simulated_s = n->timed ? seconds : 0;
}

const struct mx_part mx_part_seconds = {.name = "seconds", .take = take_finite, .note = note};
