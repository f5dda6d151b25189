/* SPDX-License-Identifier: BSD-3-Clause */
#define MX_NAME "wave-order8-f64"
#define REAL double
#define ORDER 8
#define WAVE 1
#include "star.h"
