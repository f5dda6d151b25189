/* SPDX-License-Identifier: BSD-3-Clause */
/* until.c - when a run is to stop: criteria as text, and whether norms meet them. */
#include "system/norms.h"

#include <errno.h>
#include <math.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool names_spread(const char *name, size_t length, const char *reduce) {
    static const char tail[] = "-spread";
    const size_t n = strlen(reduce);
    return length == n + sizeof tail - 1 && memcmp(name, reduce, n) == 0 &&
           memcmp(name + n, tail, sizeof tail - 1) == 0;
}

static bool find_quantity(const char *name, size_t length, int32_t n_reduce, const struct mx_reduce *reduce,
                          struct mx_until *out) {
    static const char *const own[] = {"max-change", "rms-change"};
    for (int i = 0; i < 2; i++)
        if (strlen(own[i]) == length && memcmp(own[i], name, length) == 0)
            return out->kind = (enum mx_until_kind)i, true;
    for (int32_t i = 0; i < n_reduce; i++) {
        const bool value = strlen(reduce[i].name) == length && memcmp(reduce[i].name, name, length) == 0;
        if (!value && !names_spread(name, length, reduce[i].name)) continue;
        out->kind = value ? MX_UNTIL_REDUCE : MX_UNTIL_SPREAD;
        out->reduce = i;
        return true;
    }
    return false;
}

/* "above", "below" or "floor=1e-12". */
static bool take_word(const char *word, struct mx_until *u) {
    static const char floor[] = "floor=";
    char *end = NULL;
    if (strcmp(word, "above") == 0 || strcmp(word, "below") == 0) return u->above = word[0] == 'a', true;
    if (strncmp(word, floor, sizeof floor - 1) != 0) return false;
    u->floor = strtod(word + sizeof floor - 1, &end);
    return end != word + sizeof floor - 1 && *end == 0 && u->floor > 0 && isfinite(u->floor);
}

/* What follows NAME: "=VALUE", then words between commas. */
static bool take_limit(const char *text, struct mx_until *u) {
    char words[MX_UNTIL_TEXT], *end = NULL, *rest = words;
    if (text[0] != '=' || strlen(text) >= sizeof words) return false;
    strcpy(words, text + 1);
    u->limit = strtod(words, &end);
    if (end == words || !isfinite(u->limit) || (*end != ',' && *end != 0)) return false;
    bool good = true;
    rest = *end == ',' ? end + 1 : NULL;
    for (char *word; good && (word = strsep(&rest, ",")) != NULL;) good = take_word(word, u);
    return good;
}

int mx_until_parse(const char *text, int32_t n_reduce, const struct mx_reduce *reduce, mx_why *why,
                   struct mx_until *out) {
    struct mx_until u = {0};
    const size_t length = strcspn(text, "=");
    if (!take_limit(text + length, &u))
        return mx_fail(why, -EINVAL,
                       "--until '%.200s' is not NAME=VALUE, for example max-change=1e-6. Add ,above for at "
                       "least VALUE, or ,floor=POSITIVE to a NAME-spread",
                       text);
    if (!find_quantity(text, length, n_reduce, reduce, &u))
        return mx_fail(why, -EINVAL, "--until '%s' names no norm: choose max-change or rms-change%s%s%s",
                       text,
                       n_reduce > 0     ? ", a reduction of the kernel ("
                       : reduce != NULL ? "; the kernel has no reductions (MX_REDUCES)"
                                        : "",
                       n_reduce > 0 ? reduce[0].name : "",
                       n_reduce > 1   ? ", ...) or the spread of one (NAME-spread)"
                       : n_reduce > 0 ? ") or its spread (NAME-spread)"
                                      : "");
    if (u.floor > 0 && u.kind != MX_UNTIL_SPREAD)
        return mx_fail(why, -EINVAL,
                       "--until '%s': only a NAME-spread, which is relative, can have a floor; leave it out",
                       text);
    if (u.limit < 0 && u.kind != MX_UNTIL_REDUCE)
        return mx_fail(why, -EINVAL, "--until '%s' is %s met, because a change or a spread is never negative",
                       text, u.above ? "always" : "never");
    *out = u;
    return 0;
}

double mx_until_value(const struct mx_until *u, const struct mx_norms_result *r) {
    if (u->kind == MX_UNTIL_MAX_CHANGE) return r->max_change;
    if (u->kind == MX_UNTIL_RMS_CHANGE) return r->rms_change;
    if (u->kind == MX_UNTIL_REDUCE) return r->reduce[u->reduce];
    return r->mean[u->reduce] < u->floor ? r->range[u->reduce] / u->floor : r->spread[u->reduce];
}

bool mx_until_met(const struct mx_until *u, const struct mx_norms_result *r) {
    const double value = mx_until_value(u, r);
    return u->above ? value >= u->limit : value <= u->limit;
}

/* The fewest digits that are read as the same number. */
static const char *digits(double value, char out[32]) {
    snprintf(out, 32, "%.15g", value);
    if (strtod(out, NULL) != value) snprintf(out, 32, "%.17g", value);
    return out;
}

const char *mx_until_text(const struct mx_until *u, const struct mx_reduce *reduce, char out[MX_UNTIL_TEXT]) {
    const char *name = u->kind == MX_UNTIL_MAX_CHANGE   ? "max-change"
                       : u->kind == MX_UNTIL_RMS_CHANGE ? "rms-change"
                                                        : reduce[u->reduce].name;
    char limit[32], floor[32];
    snprintf(out, MX_UNTIL_TEXT, "%s%s=%s%s%s%s", name, u->kind == MX_UNTIL_SPREAD ? "-spread" : "",
             digits(u->limit, limit), u->above ? ",above" : "", u->floor > 0 ? ",floor=" : "",
             u->floor > 0 ? digits(u->floor, floor) : "");
    return out;
}
