/* SPDX-License-Identifier: BSD-3-Clause */
/* simulated.h - the simulated time after a number of steps. It changes no bit of a result. */
#ifndef MX_SIMULATED_H
#define MX_SIMULATED_H

#include "system/system.h"

#include <math.h>
#include <stdio.h>

struct mx_simulated {
    bool known;
    double step_s;                /* seconds of every step; with a series those of the first */
    const struct mx_series *each; /* NULL, or the parameter over time that holds the seconds of each step */
    int64_t since;                /* steps are this long since step `since`, */
    double since_s;               /* and these are the seconds before it */
};

/* Returns the seconds after `steps` steps; NAN = not known. The values of a series are added in order; its
 * last value holds for all steps after its end. */
static inline double mx_simulated_s(const struct mx_simulated *t, int64_t steps) {
    if (!t->known) return NAN;
    if (t->each == NULL && steps < t->since) return NAN;
    if (t->each == NULL) return t->since_s + (double)(steps - t->since) * t->step_s;
    double sum = 0;
    const int64_t n = steps < t->each->n ? steps : t->each->n;
    for (int64_t i = 0; i < n; i++) sum += t->each->value[i];
    return sum + (double)(steps - n) * t->each->value[t->each->n - 1];
}

enum { MX_SIMULATED_TEXT = 32 };
/* Writes " (0.064 s)", or "" if the time is not known. */
static inline const char *mx_simulated_text(const struct mx_simulated *t, int64_t steps,
                                            char out[MX_SIMULATED_TEXT]) {
    out[0] = 0;
    if (t->known) snprintf(out, MX_SIMULATED_TEXT, " (%.6g s)", mx_simulated_s(t, steps));
    return out;
}

#endif
