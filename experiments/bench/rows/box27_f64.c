/* SPDX-License-Identifier: BSD-3-Clause */
#define MX_NAME "box27-f64"
#define REAL double
#include "box27.h"
