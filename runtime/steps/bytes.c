/* SPDX-License-Identifier: BSD-3-Clause */
#include "steps/bytes.h"
#include "grid/grid.h"
#include "machine/minmax.h"
#include "system/sides.h"

int64_t mx_block_plane_bytes(const struct mx_shape *shape, const struct mx_layout *layout) {
    return shape->whole_planes ? layout->plane_pitch_bytes : shape->rows * layout->row_pitch_bytes;
}

int64_t mx_block_plane_pitch(const struct mx_shape *shape, const struct mx_layout *layout) {
    const int64_t bytes = mx_block_plane_bytes(shape, layout);
    return layout->packed ? bytes : mx_plane_pitch_in_dram(bytes);
}

/* No machine has this much. What a plan of millions of levels asks for is told as this, and refused as too
 * large, rather than computed with numbers that overflow. */
static int64_t counted(mx_wide bytes) {
    const mx_wide most = INT64_C(1) << 60;
    return (int64_t)(bytes < most ? bytes : most);
}

int64_t mx_seam_slab_bytes(const struct mx_shape *s, const struct mx_layout *layout) {
    if (s->seam_slabs == 0) return 0;
    return counted((mx_wide)s->max_levels * s->seam_planes * s->seam_rows * layout->row_pitch_bytes);
}

int64_t mx_execute_given_bytes(const struct mx_shape *shape, const struct mx_layout *layout) {
    int64_t rooms = 0;
    for (int end = 0; end < 2; end++) rooms += (1 + mx_given_rooms(end)) * shape->given[end];
    return shape->rows == 0 ? 0 : rooms * (shape->pairs ? 2 : 1) * layout->plane_pitch_bytes;
}

int64_t mx_execute_block_bytes(const struct mx_shape *shape, const struct mx_layout *layout) {
    mx_wide bytes = (mx_wide)(shape->slots[0] + shape->slots[1]) * mx_block_plane_pitch(shape, layout);
    for (int i = 0; i < MX_MAX_FIXED; i++)
        bytes += (mx_wide)shape->fixed_slots * mx_fixed_slot_bytes(&layout->fixed[i], shape->rows);
    bytes += mx_execute_given_bytes(shape, layout);
    bytes += (mx_wide)shape->seam_slots * mx_seam_slab_bytes(shape, layout);
    return shape->rows == 0 ? 0 : counted(bytes);
}

/* A frame that copies planes comes with the last of them, and goes with the first. */
int64_t mx_execute_piece_bytes(const struct mx_problem *problem, const struct mx_shape *shape,
                               const struct mx_layout *layout, const struct mx_plan *plan) {
    const struct mx_sides *s = &problem->sides;
    const int64_t more =
        mx_sides_fixed(s, MX_DIM_Z) ? 0 : 2 * problem->h + mx_sides_any(s, MX_DIM_Z, MX_SIDES_NODE);
    const int64_t planes = mx_min(mx_max(plan->slab, 1) + more, layout->planes), page = 4096;
    int64_t bytes = mx_block_plane_bytes(shape, layout);
    for (int i = 0; i < MX_MAX_FIXED; i++)
        bytes = mx_max(bytes, mx_fixed_slot_bytes(&layout->fixed[i], shape->rows));
    bytes = counted((mx_wide)bytes * planes);
    if (shape->seams_in_file) bytes = mx_max(bytes, mx_seam_slab_bytes(shape, layout));
    return (bytes + page - 1) / page * page;
}

int64_t mx_execute_seam_bytes(const struct mx_shape *shape, const struct mx_layout *layout) {
    return shape->seams_in_file ? counted((mx_wide)shape->seam_slabs * mx_seam_slab_bytes(shape, layout)) : 0;
}
