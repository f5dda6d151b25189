/* SPDX-License-Identifier: BSD-3-Clause */
#include "words.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_WHOLE 0x1p53

static const struct word {
    const char *name;
    size_t offset; /* of a double */
    double most;   /* least is 0 */
    bool whole;    /* no fractions */
    bool of_calls;
} words[] = {
    {"seed", offsetof(struct mx_fault_settings, seed), LARGEST_WHOLE, true, false},
    {"eio", offsetof(struct mx_fault_settings, eio), 1, false, false},
    {"enospc", offsetof(struct mx_fault_settings, enospc), 1, false, false},
    {"short", offsetof(struct mx_fault_settings, short_transfer), 1, false, false},
    {"eagain", offsetof(struct mx_fault_settings, eagain), 1, false, false},
    {"refuse", offsetof(struct mx_fault_settings, refuse), 1, false, false},
    {"delay_us", offsetof(struct mx_fault_settings, delay_us), 1e9, false, false},
    {"reorder", offsetof(struct mx_fault_settings, reorder), 1, true, false},
    {"fail", offsetof(struct mx_fault_settings, fail), LARGEST_WHOLE, true, false},
    {"fail_after", offsetof(struct mx_fault_settings, fail_after), LARGEST_WHOLE, true, false},
    {"from", offsetof(struct mx_fault_settings, from), LARGEST_WHOLE, true, false},
    {"sys", offsetof(struct mx_fault_settings, sys), 1, true, false},
    {"call", offsetof(struct mx_fault_settings, call), LARGEST_WHOLE, true, true},
    {"errno", offsetof(struct mx_fault_settings, error), 4095, true, true},
    {"eintr", offsetof(struct mx_fault_settings, eintr), 0.99, false, true},
};

/* Digits, a point, an exponent: no signs, no hexadecimal, no nan, nothing behind. */
static bool read_number(const char *text, double *out) {
    char *end;
    if (strspn(text, "0123456789.eE-+") != strlen(text) || text[0] == '-' || text[0] == '+') return false;
    *out = strtod(text, &end);
    return end != text && *end == 0;
}

static int set_number(const struct word *w, const char *text, mx_why *why, struct mx_fault_settings *out) {
    double value;
    if (!read_number(text, &value) || value > w->most || (w->whole && value != (double)(uint64_t)value))
        return mx_fail(why, -EINVAL, "--fault %s=%.60s is not possible: give %s from 0 to %.15g", w->name,
                       text, w->whole ? "an integer" : "a number", w->most);
    *(double *)((char *)out + w->offset) = value;
    out->has_call_word |= w->of_calls;
    return 0;
}

static int set_word(char *text, mx_why *why, struct mx_fault_settings *out) {
    char *value = strchr(text, '=');
    if (value == NULL)
        return mx_fail(why, -EINVAL, "--fault \"%.60s\" is not a fault: give NAME=VALUE", text);
    *value++ = 0;
    if (strcmp(text, "calls_from") == 0) {
        int n = snprintf(out->calls_from, sizeof out->calls_from, "%s", value);
        out->has_call_word = true;
        return n > 0 && (size_t)n < sizeof out->calls_from
                   ? 0
                   : mx_fail(why, -EINVAL,
                             "--fault calls_from=%.60s: give the name of a system call, such as pwrite",
                             value);
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i].name) == 0) return set_number(&words[i], value, why, out);
    return mx_fail(why, -EINVAL,
                   "--fault \"%.60s\" is not known; the words are seed, eio, enospc, short, eagain, refuse, "
                   "delay_us, reorder, fail, fail_after, from, sys, call, errno, eintr and calls_from",
                   text);
}

int mx_fault_parse(const char *spec, mx_why *why, struct mx_fault_settings *out) {
    char copy[MX_FAULT_SPEC_BYTES];
    struct mx_fault_settings set = {.error = EIO};
    int n = snprintf(copy, sizeof copy, "%s", spec != NULL ? spec : ""), err = 0;
    if (n < 0 || (size_t)n >= sizeof copy)
        return mx_fail(why, -EINVAL, "--fault is longer than %zu bytes", sizeof copy - 1);
    for (char *rest, *word = strtok_r(copy, ",", &rest); word != NULL && err == 0;
         word = strtok_r(NULL, ",", &rest))
        err = set_word(word, why, &set);
    if (err == 0 && set.error == 0)
        err = mx_fail(why, -EINVAL, "--fault errno=0 is not an error; leave errno out for 5 (EIO)");
    if (err == 0) *out = set;
    return err;
}
