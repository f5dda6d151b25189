/* SPDX-License-Identifier: BSD-3-Clause */
/* recut_private.h - the stores from which a run with another number of ranks is resumed. */
#ifndef MX_RUN_RECUT_PRIVATE_H
#define MX_RUN_RECUT_PRIVATE_H

#include "run/ranks/ranks.h"
#include "run/state.h"

/* A store that planes are read from. */
struct mx_former {
    char path[PATH_MAX];
    int64_t first_plane, planes;
    int32_t buffer;
    uint32_t second; /* of its note */
    struct mx_layout layout;
    int64_t integrity_unit;
    uint64_t generation; /* of the store when its note was read */
};

#endif
