/* SPDX-License-Identifier: BSD-3-Clause */
/* take.h - the functions that read the text of an option; rows of the table name them. Each reads `value`
 * (NULL if the option has no value) into the row's field. 0, 1 = help was asked for, -EINVAL. */
#ifndef MX_ASK_TAKE_H
#define MX_ASK_TAKE_H

#include "ask/table.h"

mx_take mx_ask_accel, mx_ask_advice, mx_ask_algorithm, mx_ask_backend, mx_ask_coef, mx_ask_commit_every;
mx_take mx_ask_count, mx_ask_counts, mx_ask_dtype, mx_ask_extents, mx_ask_flag, mx_ask_frame, mx_ask_help;
mx_take mx_ask_init, mx_ask_input, mx_ask_link, mx_ask_nonfinite, mx_ask_nothing, mx_ask_output;
mx_take mx_ask_output_frame, mx_ask_real, mx_ask_reserve, mx_ask_side, mx_ask_size, mx_ask_snapshot;
mx_take mx_ask_stencil, mx_ask_text, mx_ask_words;

#endif
