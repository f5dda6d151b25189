/* SPDX-License-Identifier: BSD-3-Clause */
#define MX_NAME "star-order16-f32"
#define REAL float
#define ORDER 16
#define WAVE 0
#include "star.h"
