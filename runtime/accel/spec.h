/* SPDX-License-Identifier: BSD-3-Clause */
/* spec.h - the words of --accel: NAME[,KEY=VALUE...]. */
#ifndef MX_ACCEL_SPEC_H
#define MX_ACCEL_SPEC_H

#include <memext/memext.h>

#include <stdbool.h>
#include <stddef.h>

/* -EINVAL with a sentence where a KEY of the whole spec is unknown. */
int mx_accel_check_keys(const char *spec, mx_why *why);
/* KEY=VALUE[,...]: the value of a key, cut to capacity; false where it is not there. */
bool mx_accel_key(const char *keys, const char *key, char *value, size_t capacity);
/* The value of a key as a quantity; *out stays where the key is not there. -EINVAL. */
int mx_accel_number(const char *keys, const char *key, double *out, mx_why *why);
/* "2GB/s" "512 MiB/s" "2e9" -> bytes per second; "128MiB" -> bytes. -EINVAL. */
int mx_accel_quantity(const char *text, double *out);

#endif
