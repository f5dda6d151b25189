/* SPDX-License-Identifier: BSD-3-Clause */
/* spec.c - reads the words of --accel: NAME[,KEY=VALUE...]. */
#include "accel/spec.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char all_keys[] =
    "device=N, rate=BYTES/S, updates=N/S, memory=SIZE, fuse=1|2, pin=0|1, fault=N or late=N";

bool mx_accel_key(const char *keys, const char *key, char *value, size_t capacity) {
    const size_t n = strlen(key);
    for (const char *at = keys; at != NULL && *at != 0;) {
        const size_t length = strcspn(at, ",");
        if (length > n && strncmp(at, key, n) == 0 && at[n] == '=') {
            snprintf(value, capacity, "%.*s", (int)(length - n - 1), at + n + 1);
            return true;
        }
        at += length;
        at += *at == ',';
    }
    return false;
}

int mx_accel_quantity(const char *text, double *out) {
    static const struct {
        const char *unit;
        double factor;
    } units[] = {
        {"", 1},      {"B", 1},        {"kB", 1e3},        {"MB", 1e6},           {"GB", 1e9},
        {"TB", 1e12}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
    char *end;
    const double value = strtod(text, &end);
    if (end == text || !(value > 0)) return -EINVAL;
    end += strspn(end, " ");
    size_t n = strlen(end);
    if (n >= 2 && strcmp(end + n - 2, "/s") == 0) n -= 2;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strlen(units[i].unit) == n && strncmp(end, units[i].unit, n) == 0) {
            *out = value * units[i].factor;
            return *out < (double)INT64_MAX ? 0 : -EINVAL;
        }
    return -EINVAL;
}

int mx_accel_check_keys(const char *spec, mx_why *why) {
    static const char *const known[] = {"device", "rate", "updates", "memory",
                                        "fuse",   "pin",  "fault",   "late"};
    for (const char *at = strchr(spec, ','); at != NULL; at = strchr(at, ',')) {
        const size_t n = strcspn(++at, "=,");
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            found |= strlen(known[i]) == n && strncmp(known[i], at, n) == 0 && at[n] == '=';
        char twice[32], again[64];
        snprintf(twice, sizeof twice, "%.*s", (int)(n < 30 ? n : 30), at);
        if (found && mx_accel_key(at + strcspn(at, ","), twice, again, sizeof again))
            return mx_fail(why, -EINVAL, "--accel '%.100s' has %s twice: leave one out", spec, twice);
        if (!found)
            return mx_fail(why, -EINVAL,
                           "--accel '%.100s': '%.*s' is not known; give %s (man memext, --accel)", spec,
                           (int)strcspn(at, ","), at, all_keys);
    }
    return 0;
}

int mx_accel_number(const char *keys, const char *key, double *out, mx_why *why) {
    char text[64];
    if (!mx_accel_key(keys, key, text, sizeof text)) return 0;
    if (mx_accel_quantity(text, out) == 0) return 0;
    return mx_fail(why, -EINVAL,
                   "--accel: %s=%.40s is not a quantity above 0: write it like 128MiB, 2GB/s or 1e9", key,
                   text);
}
