/* SPDX-License-Identifier: BSD-3-Clause */
#define MX_NAME "box27-f32"
#define REAL float
#include "box27.h"
