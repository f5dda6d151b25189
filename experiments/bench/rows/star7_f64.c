/* SPDX-License-Identifier: BSD-3-Clause */
#define MX_NAME "star7-f64"
#define REAL double
#include "star7.h"
