/* SPDX-License-Identifier: BSD-3-Clause */
/* size_text.h - bytes as a user reads them. */
#ifndef MX_TUNE_SIZE_TEXT_H
#define MX_TUNE_SIZE_TEXT_H

#include <stdint.h>

/* "1.50 GiB" in a buffer of the caller; returns it. */
struct size_text {
    char text[24];
};
struct size_text mx_size_text(uint64_t bytes);

#endif
