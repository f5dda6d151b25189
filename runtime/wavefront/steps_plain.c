/* SPDX-License-Identifier: BSD-3-Clause */
/* steps_plain.c - for any machine. */
#define STEPS mx_wf_steps_plain
#include "wavefront/steps.inc"
