/* SPDX-License-Identifier: BSD-3-Clause */
/* bytes.h - what a schedule's shape asks for, counted: its executor allocates just that, and tuners fit plans
 * into it. */
#ifndef MX_BYTES_H
#define MX_BYTES_H

#include "steps/step.h"

/* DRAM that mx_execute allocates for a shape: both Block arrays, those of C, the seams or what a side file
 * leaves of them in DRAM, and the room for what neighbours exchange. */
int64_t mx_execute_block_bytes(const struct mx_shape *shape, const struct mx_layout *layout);
int64_t mx_execute_given_bytes(const struct mx_shape *shape, const struct mx_layout *layout); /* that room */
/* With an accelerator that is what its memory holds, but for that room, and DRAM has MX_STAGING_PIECES of so
 * many bytes: the largest LOAD or STORE, of up to plan->slab planes, and where their frames are copies 2h
 * more. */
int64_t mx_execute_piece_bytes(const struct mx_problem *problem, const struct mx_shape *shape,
                               const struct mx_layout *layout, const struct mx_plan *plan);
/* The side file of seams that a shape needs; 0 = none. */
int64_t mx_execute_seam_bytes(const struct mx_shape *shape, const struct mx_layout *layout);

/* A plane of the Block arrays, and from one to the next. */
int64_t mx_block_plane_bytes(const struct mx_shape *shape, const struct mx_layout *layout);
int64_t mx_block_plane_pitch(const struct mx_shape *shape, const struct mx_layout *layout);
int64_t mx_seam_slab_bytes(const struct mx_shape *shape, const struct mx_layout *layout);
/* Messages of a neighbour that there is room for at an end of z (execute/exchange.h); one more is sent. */
static inline int64_t mx_given_rooms(int end) { return end == 0 ? 1 : 2; }

#endif
