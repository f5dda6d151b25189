/* SPDX-License-Identifier: BSD-3-Clause */
/* values.h - numbers as they are typed, and files of numbers, one for each step: wavelets of point sources,
 * parameters over time. */
#ifndef MX_VALUES_H
#define MX_VALUES_H

#include <memext/memext.h>

#include <stdbool.h>

/* "0.125", or a quotient, "1/8": a finite number, and nothing behind it. */
bool mx_read_number(const char *text, double *out);
/* Is a number in digits alone another one than the double that was read of it? */
bool mx_number_is_rounded(const char *text, double value);

/* Reads a .npy file of one dimension, '<f8' or '<f4'. what: "a wavelet", for sentences. *value is the
 * caller's to free. 0; -EINVAL, -ENOMEM or -errno of the file, with a sentence. */
int mx_values_read(const char *path, const char *what, mx_why *why, int64_t *n, double **value);
/* Likewise of one dimension or of two, (n, `levels`): a value for each step, or one for each of its levels.
 * *each: values of a step, 1 or levels. */
int mx_values_read_levels(const char *path, const char *what, int64_t levels, mx_why *why, int64_t *n,
                          int32_t *each, double **value);

#endif
