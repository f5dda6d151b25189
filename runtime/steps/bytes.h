/* SPDX-License-Identifier: BSD-3-Clause */
/* bytes.h - counts the memory that a schedule's shape needs. The executor allocates exactly this, and tuners
 * make plans that fit. */
#ifndef MX_BYTES_H
#define MX_BYTES_H

#include "steps/step.h"

/* Returns the DRAM that mx_execute allocates for a shape: both Block arrays, those of C, the seams (or their
 * part in DRAM if there is a side file), and the room for messages of neighbours. */
int64_t mx_execute_block_bytes(const struct mx_shape *shape, const struct mx_layout *layout);
int64_t mx_execute_given_bytes(const struct mx_shape *shape,
                               const struct mx_layout *layout); /* of that room */
/* With an accelerator its memory holds all of that, except for that room. DRAM has MX_STAGING_PIECES pieces
 * of the bytes that this returns: the largest LOAD or STORE, of up to plan->slab planes, and 2h more if
 * frames are copies. */
int64_t mx_execute_piece_bytes(const struct mx_problem *problem, const struct mx_shape *shape,
                               const struct mx_layout *layout, const struct mx_plan *plan);
/* Returns the bytes of the side file of seams; 0 = none. */
int64_t mx_execute_seam_bytes(const struct mx_shape *shape, const struct mx_layout *layout);

/* Return the bytes of a plane of the Block arrays, and from one plane to the next. */
int64_t mx_block_plane_bytes(const struct mx_shape *shape, const struct mx_layout *layout);
int64_t mx_block_plane_pitch(const struct mx_shape *shape, const struct mx_layout *layout);
int64_t mx_seam_slab_bytes(const struct mx_shape *shape, const struct mx_layout *layout);
/* Returns how many messages can be received at an end of z (execute/exchange.h). There is one more room to
 * send from. */
static inline int64_t mx_given_rooms(int end) { return end == 0 ? 1 : 2; }

#endif
