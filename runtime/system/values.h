/* SPDX-License-Identifier: BSD-3-Clause */
/* values.h - reads numbers that users type, and files with a number for each step: wavelets of point sources,
 * parameters over time. */
#ifndef MX_VALUES_H
#define MX_VALUES_H

#include <memext/memext.h>

#include <stdbool.h>

/* Reads a finite number, "0.125", or a quotient, "1/8". false = it is not one, or more text follows. */
bool mx_read_number(const char *text, double *out);
/* Does a number that is written only in digits differ from `value`, the double that was read from it? */
bool mx_number_is_rounded(const char *text, double value);

/* Reads a .npy file of one dimension, '<f8' or '<f4'. what: "a wavelet", for sentences. The caller frees
 * *value. 0; -EINVAL, -ENOMEM or -errno of the file, with a sentence. */
int mx_values_read(const char *path, const char *what, mx_why *why, int64_t *n, double **value);
/* Likewise reads a file of one dimension (a value for each step) or of two, (n, `levels`): a value for each
 * level of a step. *each: values of a step, 1 or `levels`. */
int mx_values_read_levels(const char *path, const char *what, int64_t levels, mx_why *why, int64_t *n,
                          int32_t *each, double **value);

#endif
