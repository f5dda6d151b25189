/* SPDX-License-Identifier: BSD-3-Clause */
#define MX_NAME "star-order8-f32"
#define REAL float
#define ORDER 8
#define WAVE 0
#include "star.h"
