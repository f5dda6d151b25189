/* SPDX-License-Identifier: BSD-3-Clause */
/* buffer.h - a Buffer as core's own files see it. */
#ifndef MX_BUFFER_H
#define MX_BUFFER_H

#include "core/device.h"

struct mx_buffer {
    mx_device *device;
    char name[16];
    uint64_t offset_bytes, bytes;
    uint64_t span_bytes;            /* bytes, rounded up to the alignment: transfers may end there */
    char *base;                     /* mapped style */
    struct mx_integrity *integrity; /* NULL: data is not checked */
};

#endif
