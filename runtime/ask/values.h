/* SPDX-License-Identifier: BSD-3-Clause */
/* values.h - names that are values of options, and the error for a name that is not one of them. */
#ifndef MX_ASK_VALUES_H
#define MX_ASK_VALUES_H

#include "ask/table.h"

mx_value_at mx_value_stencil, mx_value_dtype, mx_value_init, mx_value_frame, mx_value_nonfinite;
mx_value_at mx_value_output_frame, mx_value_backend, mx_value_advice, mx_value_reserve, mx_value_algorithm;
mx_value_at mx_value_tuner, mx_value_engine, mx_value_link, mx_value_accel, mx_value_side;
mx_value_at mx_value_layout, mx_value_matrix_init;

/* Is the word, `length` bytes long, one of the values? */
bool mx_is_value(mx_value_at *value_at, const char *word, size_t length);
/* Returns -EINVAL with a sentence: "--dtype 'f46' is not known; take f64 or f32; did you mean f64?" `others`:
 * what else the option accepts, such as " or a size", or "". */
int mx_no_value(const struct mx_option *row, const char *word, size_t length, const char *others,
                mx_why *why);

#endif
