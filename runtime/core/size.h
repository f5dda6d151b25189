/* SPDX-License-Identifier: BSD-3-Clause */
/* size.h - sizes: rounding. */
#ifndef MX_SIZE_H
#define MX_SIZE_H

#include "machine/size.h"

#include <stdint.h>

#define MX_MIB (UINT64_C(1) << 20)

static inline uint64_t mx_round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
static inline uint64_t mx_round_down(uint64_t value, uint64_t unit) { return value / unit * unit; }

#endif
