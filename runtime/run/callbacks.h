/* SPDX-License-Identifier: BSD-3-Clause */
/* callbacks.h - takes over structs of a program, as far as program and library both know their fields. */
#ifndef MX_RUN_CALLBACKS_H
#define MX_RUN_CALLBACKS_H

#include "run/state.h"

/* Copies a struct of a program, whose first member is its size. -EINVAL with a sentence that calls it `what`.
 */
int mx_run_take_struct(void *to, size_t known, const void *from, const char *what, mx_why *why);
/* Take a program's source and sink; NULL = there is none. -EINVAL with a sentence. */
int mx_run_take_source(struct mx_run *r, const struct mx_source *source, mx_why *why);
/* For mx_run_edit: takes the names of read-only fields, and the source of their values. */
int mx_run_take_values(struct mx_run *r, const struct mx_edit *edit, mx_why *why);
int mx_run_take_sink(struct mx_run *r, const struct mx_sink *sink, mx_why *why);

#endif
