/* SPDX-License-Identifier: BSD-3-Clause */
#define MX_NAME "star-order8-f64"
#define REAL double
#define ORDER 8
#define WAVE 0
#include "star.h"
