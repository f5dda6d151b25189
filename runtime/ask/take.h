/* SPDX-License-Identifier: BSD-3-Clause */
/* take.h - how the text of an option becomes a value: the functions that rows of the table name. Each reads
 * `value` (NULL for an option without) into the row's field. 0, 1 = help was asked for, -EINVAL. */
#ifndef MX_ASK_TAKE_H
#define MX_ASK_TAKE_H

#include "ask/table.h"

typedef int mx_take(const struct mx_option *row, const char *value, struct mx_options *options, mx_why *why);

mx_take mx_ask_advice, mx_ask_coef, mx_ask_commit_every, mx_ask_count, mx_ask_counts;
mx_take mx_ask_dtype, mx_ask_flag, mx_ask_help, mx_ask_init, mx_ask_input;
mx_take mx_ask_link, mx_ask_nonfinite, mx_ask_output, mx_ask_output_frame, mx_ask_real;
mx_take mx_ask_reserve, mx_ask_size, mx_ask_snapshot, mx_ask_stencil, mx_ask_text;
mx_take mx_ask_words;

#endif
