/* SPDX-License-Identifier: BSD-3-Clause */
/* forms.h - inside kernel/ only: the forms in which a row function is compiled, of which the fastest is kept.
 *
 * A form is a number of rows that one pass over x computes, so that they share what they read, and a width of
 * vectors. All have the same operations in the same order, and so the same bits; which is fastest depends on
 * the kernel, the compiler and the processor, and is measured.
 */
#ifndef MX_KERNEL_FORMS_H
#define MX_KERNEL_FORMS_H

#include "kernel/private.h"

/* For tests and benchmarks: the name of the only form to compile. Unset or empty: the fastest. */
#define MX_FORM_VARIABLE "MEMEXT_ROWS"

enum { MX_FORMS = 5, MX_FORM_FLAGS = 2 };
struct mx_form {
    const char *name, *text; /* of the variable, and in words */
    int32_t rows;            /* of a pass */
    bool avx512;             /* only where vectors of 64 bytes are: elsewhere it is as another form */
    double below; /* taken where it needs less than so much of the time of the first one. Several rows have to
                     gain more: their reads are more streams. */
    const char *flags[MX_FORM_FLAGS];
};
/* The first one is one row, and the vectors that the compiler prefers. */
extern const struct mx_form mx_forms[MX_FORMS];

/* Those to compile for this processor: numbers of mx_forms, the first one first. -EINVAL with
 * a sentence: the variable has no form's name. */
int mx_forms_wanted(mx_why *why, int32_t number[MX_FORMS], int32_t *n);

/* The fastest of some objects of one kernel, in forms of these numbers, measured for some milliseconds in a
 * child process. 0, the first, unless another one is clearly faster; also if one of them cannot be loaded,
 * crashes or does not end. */
int32_t mx_forms_fastest(const char *const *path, const int32_t *number, int32_t n);

#endif
