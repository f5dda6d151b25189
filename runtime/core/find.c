/* SPDX-License-Identifier: BSD-3-Clause */
/* find.c - finds a backend by its name. It is a file of its own, since it needs the table of backends, and
 * backends need help.c. */
#include <memext/backend.h>

#include <string.h>

const struct mx_backend *mx_backend_find(const char *name) {
    for (const struct mx_backend *const *b = mx_backends; *b != NULL; b++)
        if (strcmp((*b)->name, name) == 0) return *b;
    return strcmp(mx_backend_skeleton->name, name) == 0 ? mx_backend_skeleton : NULL;
}
