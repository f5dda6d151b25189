/* SPDX-License-Identifier: BSD-3-Clause */
#include "ask/size.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *suffix;
    double factor;
} units[] = {{"", 1},
             {"B", 1},
             {"KiB", 1024.0},
             {"MiB", 1048576.0},
             {"GiB", 1073741824.0},
             {"TiB", 1099511627776.0},
             {"K", 1024.0},
             {"M", 1048576.0},
             {"G", 1073741824.0},
             {"T", 1099511627776.0},
             {"KB", 1e3},
             {"MB", 1e6},
             {"GB", 1e9},
             {"TB", 1e12}};

int mx_parse_size(const char *text, uint64_t *out) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || !isfinite(value) || value < 0) return -EINVAL;
    while (isspace((unsigned char)*end)) end++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcasecmp(end, units[i].suffix) != 0) continue;
        double bytes = value * units[i].factor;
        if (bytes >= 9.2e18) return -EINVAL;
        *out = (uint64_t)bytes;
        return 0;
    }
    return -EINVAL;
}
