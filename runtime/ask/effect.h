/* SPDX-License-Identifier: BSD-3-Clause */
/* effect.h - options that were given and change nothing, or nothing for the better: the run goes on, and says
 * so in a line for each. */
#ifndef MX_ASK_EFFECT_H
#define MX_ASK_EFFECT_H

#include "ask/table.h"

#include <memext/backend.h>

typedef void mx_remark(void *context, const char *sentence);

/* "--NAME has no effect SENTENCE", if that option was given. */
void mx_say_no_effect(const struct mx_options *options, const char *name, mx_remark *say, void *context,
                      const char *format, ...) __attribute__((format(printf, 5, 6)));
/* What the backend ignores; more threads than cores. */
void mx_say_useless(const struct mx_options *options, const struct mx_backend *backend, int32_t cores,
                    mx_remark *say, void *context);
/* given: what stands before the number, in the words of the user. */
void mx_say_many_threads(const char *given, int64_t threads, int32_t cores, mx_remark *say, void *context);

#endif
