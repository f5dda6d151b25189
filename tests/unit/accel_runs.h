/* SPDX-License-Identifier: BSD-3-Clause */
/* accel_runs.h - memory of an accelerator, and small runs with one, or without, through the library; of the
 * unit tests alone. */
#ifndef ACCEL_RUNS_H
#define ACCEL_RUNS_H

#include "accel/accel.h"

#include <memext/memext.h>

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline char *take(mx_accel *a, uint64_t bytes) {
    char *address = NULL;
    mx_why why = {""};
    cr_assert(mx_accel_alloc(a, bytes, "a test", &why, &address) == 0, "%s", why.text);
    return address;
}

static inline char *report_of(mx_run *run) {
    char *json = NULL;
    mx_why why = {""};
    cr_assert(mx_run_report(run, &why, &json) == 0, "%s", why.text);
    return json;
}

/* The value of a key, as text, "" where there is none. Of the last one of this name: those of objects inside
 * the report come first. */
static inline void value_of(const char *json, const char *key, char *value, size_t capacity) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = NULL;
    for (const char *next = json; (next = strstr(next, quoted)) != NULL; next++) at = next;
    value[0] = 0;
    if (at == NULL) return; /* the run did not come so far */
    at += strlen(quoted);
    at += *at == '"';
    snprintf(value, capacity, "%.*s", (int)strcspn(at, "\",\n"), at);
}

struct ended {
    int err;
    char checksum[32], operations[32];
    mx_why why;
};

/* more: words of a run beside these, up to NULL; or NULL. */
static inline struct ended run_asking(const char *accel, const char *place, const char *stencil,
                                      const char *dtype, bool resume, const char *const *more) {
    char word[8][320];
    const char *words[20], *const fixed[] = {"size=22 17 11", "steps=4", "plan=stream bt=2 slab=13 by=9"};
    const bool own = more != NULL && strncmp(*more, "size=", 5) == 0;
    struct ended e = {0};
    mx_run *run = NULL;
    int n = 0;
    snprintf(word[0], sizeof word[0], "device=%s", place);
    words[n++] = word[0];
    for (int i = 0; i < 3 && !resume && !own; i++) words[n++] = fixed[i];
    if (resume) words[n++] = "resume";
    snprintf(word[1], sizeof word[1], "stencil=%s", stencil);
    if (!resume) words[n++] = word[1];
    snprintf(word[2], sizeof word[2], "dtype=%s", dtype);
    if (!resume) words[n++] = word[2];
    snprintf(word[3], sizeof word[3], "accel=%s", accel != NULL ? accel : "");
    if (accel != NULL) words[n++] = word[3];
    for (; more != NULL && *more != NULL; more++) words[n++] = *more;
    words[n] = NULL;
    const struct mx_run_options o = {.size = sizeof o, .options = words};
    cr_assert(mx_run_open(&o, &e.why, &run) == 0, "%s", e.why.text);
    e.err = mx_run_start(run, &e.why);
    if (e.err == 0) e.err = mx_run_wait(run, -1, &e.why, NULL);
    char *json = report_of(run);
    value_of(json, "checksum", e.checksum, sizeof e.checksum);
    if (accel != NULL) value_of(json, "operations", e.operations, sizeof e.operations);
    free(json);
    mx_run_close(run);
    return e;
}

static inline struct ended run_with(const char *accel, const char *place, const char *stencil,
                                    const char *dtype, bool resume) {
    return run_asking(accel, place, stencil, dtype, resume, NULL);
}

static inline void make_dir(char *dir, size_t capacity) {
    const char *base = getenv("MEMEXT_TEST_DIR");
    snprintf(dir, capacity, "%s/mx-accel-XXXXXX", base != NULL ? base : "build");
    cr_assert(mkdtemp(dir) != NULL);
}

#endif
