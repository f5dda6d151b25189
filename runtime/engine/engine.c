/* SPDX-License-Identifier: BSD-3-Clause */
/* engine.c - the table of engines. */
#include "engine/work.h"

#include <string.h>

const struct mx_engine_ops *const mx_engines[] = {&mx_engine_iblock, &mx_engine_tiled, &mx_engine_device,
                                                  NULL};

const struct mx_engine_ops *mx_engine_find(const char *name) {
    for (const struct mx_engine_ops *const *e = mx_engines; *e != NULL; e++)
        if (strcmp((*e)->name, name) == 0) return *e;
    return NULL;
}
