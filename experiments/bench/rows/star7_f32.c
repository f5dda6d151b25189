/* SPDX-License-Identifier: BSD-3-Clause */
#define MX_NAME "star7-f32"
#define REAL float
#include "star7.h"
