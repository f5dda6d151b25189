/* SPDX-License-Identifier: BSD-3-Clause */
#include <memext/backend.h>

#include <stdarg.h>
#include <stdio.h>

int mx_fail(mx_why *why, int err, const char *format, ...) {
    if (why != NULL) {
        va_list args;
        va_start(args, format);
        vsnprintf(why->text, sizeof why->text, format, args);
        va_end(args);
    }
    return err;
}
