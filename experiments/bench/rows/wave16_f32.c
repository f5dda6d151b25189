/* SPDX-License-Identifier: BSD-3-Clause */
#define MX_NAME "wave-order16-f32"
#define REAL float
#define ORDER 16
#define WAVE 1
#include "star.h"
