/* SPDX-License-Identifier: BSD-3-Clause */
/* effect.h - remarks on options that have no effect, or make nothing better. The run continues. */
#ifndef MX_ASK_EFFECT_H
#define MX_ASK_EFFECT_H

#include "ask/table.h"

#include <memext/backend.h>

typedef void mx_remark(void *context, const char *sentence);

/* If that option was given, says "--NAME has no effect SENTENCE". */
void mx_say_no_effect(const struct mx_options *options, const char *name, mx_remark *say, void *context,
                      const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Says which options the backend ignores, and whether there are more threads than cores. */
void mx_say_useless(const struct mx_options *options, const struct mx_backend *backend, int32_t cores,
                    mx_remark *say, void *context);
/* Says that there are more threads than cores. given: the user's words before the number. */
void mx_say_many_threads(const char *given, int64_t threads, int32_t cores, mx_remark *say, void *context);

#endif
