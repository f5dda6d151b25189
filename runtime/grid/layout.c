/* SPDX-License-Identifier: BSD-3-Clause */
#include "grid/grid.h"
#include "machine/minmax.h"
#include "system/sides.h"

#include <errno.h>

static int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/* What is counted of a run, bytes and updates, has to be a number of 64 bits, with room for what blocks
 * share. A step has heads of files and whole pages besides cells. */
static const mx_wide most_moved_bytes = INT64_MAX / 4;
enum { LEAST_STEP_BYTES = 8192 };
enum { LINE_BYTES = 64, PAGE_BYTES = 4096, OFF_PAGE_BYTES = 1536, LARGE_PLANE_BYTES = 128 << 10 };

/* Own Buffers of C. Their transfers are widened to whole units of the device (mx_fixed_span), so that rows
 * need no padding but for the cache: what is small, like a mask of one byte a cell, stays small. */
static void lay_fixed(const struct mx_problem *p, int64_t align, bool packed, bool cuts_y,
                      struct mx_layout *l) {
    const bool ghost_rows =
        cuts_y && mx_sides_periodic(&p->sides, MX_DIM_Y); /* each piece is transferred alone */
    for (int32_t i = 0; i < mx_fixed_count(p); i++) {
        struct mx_fixed_layout *f = &l->fixed[i];
        const int64_t row = (p->nx + 2 * p->h) * mx_dtype_bytes(p->system->fixed[i].dtype);
        if (mx_is_profile(p, i)) {
            *f = (struct mx_fixed_layout){.user_file = true};
            continue;
        }
        *f = (struct mx_fixed_layout){.row_bytes = row, .frame = p->h, .align_bytes = (uint32_t)align};
        f->row_pitch_bytes = ghost_rows ? round_up(row, align) : packed ? row : round_up(row, LINE_BYTES);
        /* Whole pages, as planes of A and B: a store of a mapped backend can be resumed with O_DIRECT. */
        const int64_t unit = packed || align > PAGE_BYTES ? align : PAGE_BYTES;
        f->plane_pitch_bytes = round_up(l->rows * f->row_pitch_bytes, unit);
        f->bytes = l->planes * f->plane_pitch_bytes;
    }
}

int mx_layout_fixed_file(const struct mx_problem *p, int32_t field, const struct mx_fixed_file *file,
                         mx_why *why, struct mx_fixed_layout *out) {
    const struct mx_field_of *f = &p->system->fixed[field];
    const int64_t cell = mx_dtype_bytes(f->dtype), frame = file->frame ? p->h : 0, beside = p->h - frame;
    if (file->dtype != f->dtype)
        return mx_fail(why, -EINVAL, "field %s is %s, but its file has %s; convert the file", f->name,
                       mx_dtype_name(f->dtype), mx_dtype_name(file->dtype));
    if (file->offset_bytes < 0 || file->offset_bytes % cell != 0)
        return mx_fail(why, -EINVAL,
                       "field %s begins at byte %lld of its file, which is not a multiple of its cell size, "
                       "%lld bytes: rewrite the file",
                       f->name, (long long)file->offset_bytes, (long long)cell);
    if (!file->frame && p->system->hc > 0)
        return mx_fail(why, -EINVAL,
                       "the kernel reads field %s up to %d cells away, but its file has no frame: give a "
                       "file with a frame of %d cells",
                       f->name, p->system->hc, p->h);
    struct mx_fixed_layout l = {.frame = (int32_t)frame,
                                .lead_bytes = beside * cell,
                                .user_file = true,
                                .bytes = file->bytes,
                                .align_bytes = file->align_bytes > 0 ? file->align_bytes : 1};
    const int64_t frame_y = file->frame ? mx_halo_y(p) : 0, beside_y = mx_halo_y(p) - frame_y;
    const mx_wide row = (mx_wide)(p->nx + 2 * frame) * cell, plane = (p->ny + 2 * frame_y) * row;
    const mx_wide need = file->offset_bytes + (p->nz + 2 * frame) * plane;
    const struct mx_problem framed = {
        .nx = p->nx + 2 * frame, .ny = p->ny + 2 * frame_y, .nz = p->nz + 2 * frame, .flat = p->flat};
    char extents[MX_EXTENTS_TEXT];
    if (need > file->bytes)
        return mx_fail(why, -EINVAL,
                       "the file of field %s is too short: %lld bytes are needed from byte %lld on, and the "
                       "file has %lld bytes (%s cells of %s %s frame)",
                       f->name, (long long)(need - file->offset_bytes), (long long)file->offset_bytes,
                       (long long)file->bytes, mx_extents_text(&framed, extents), mx_dtype_name(f->dtype),
                       file->frame ? "with the" : "without a");
    l.row_bytes = l.row_pitch_bytes = (int64_t)row;
    l.plane_pitch_bytes = (int64_t)plane;
    l.offset_bytes =
        file->offset_bytes - beside * (l.plane_pitch_bytes + cell) - beside_y * l.row_pitch_bytes;
    *out = l;
    return 0;
}

void mx_layout_fixed_units(const struct mx_problem *p, int64_t unit, bool pad, bool cuts_y,
                           struct mx_layout *l) {
    const bool ghost_rows = cuts_y && mx_sides_periodic(&p->sides, MX_DIM_Y);
    for (int32_t i = 0; i < mx_fixed_count(p); i++) {
        struct mx_fixed_layout *f = &l->fixed[i];
        if (f->user_file) continue;
        if (pad && ghost_rows) f->row_pitch_bytes = round_up(f->row_pitch_bytes, unit);
        if (pad) f->plane_pitch_bytes = round_up(l->rows * f->row_pitch_bytes, unit);
        if (pad) f->bytes = l->planes * f->plane_pitch_bytes;
        if (f->plane_pitch_bytes % unit == 0 && (int64_t)f->align_bytes < unit)
            f->align_bytes = (uint32_t)unit;
    }
}

void mx_layout_of_fixed(const struct mx_layout *layout, int32_t field, struct mx_layout *out) {
    const struct mx_fixed_layout *f = &layout->fixed[field];
    *out = (struct mx_layout){.rows = layout->rows,
                              .planes = layout->planes,
                              .row_bytes = f->row_bytes,
                              .row_pitch_bytes = f->row_pitch_bytes,
                              .plane_pitch_bytes = f->plane_pitch_bytes,
                              .buffer_bytes = f->bytes,
                              .packed = layout->packed};
}

static int refuse_steps(const struct mx_problem *p, mx_why *why) {
    char extents[MX_EXTENTS_TEXT];
    return mx_fail(
        why, -EOVERFLOW,
        "a grid of %s over %lld step%s moves more than 2^61 bytes, which memext cannot count: give "
        "%s",
        mx_extents_text(p, extents), (long long)p->nt, p->nt == 1 ? "" : "s",
        p->nt > 1 ? "fewer steps or a smaller grid" : "a smaller grid");
}

int mx_layout_check(const struct mx_problem *p, mx_why *why) {
    char extents[MX_EXTENTS_TEXT];
    if (p->nx < 1 || p->ny < 1 || p->nz < 1)
        return mx_fail(why, -EINVAL, "the grid is %s: every extent must be at least 1",
                       mx_extents_text(p, extents));
    if (p->nx > (INT64_C(1) << 40) || p->ny > (INT64_C(1) << 30) || p->nz > (INT64_C(1) << 30))
        return mx_fail(why, -EOVERFLOW, "grid %s is too large: nx may be up to 2^40, ny%s up to 2^30",
                       mx_extents_text(p, extents), p->flat ? "" : " and nz");
    if (p->nt > MX_MOST_STEPS)
        return mx_fail(why, -EOVERFLOW, "%lld steps are too many: at most %lld are possible",
                       (long long)p->nt, (long long)MX_MOST_STEPS);
    const int64_t levels = mx_levels_of(p, p->nt), h2 = 2 * (int64_t)p->h;
    const mx_wide cells = (mx_wide)(p->nx + h2) * (p->ny + 2 * mx_halo_y(p)) * (p->nz + h2),
                  state = mx_reads_old(p) ? mx_cell_bytes(p, 0) + mx_cell_bytes(p, 1)
                                          : mx_max(mx_cell_bytes(p, 0), mx_cell_bytes(p, 1)),
                  cell = state + mx_fixed_cell_bytes(p);
    if (levels <= 0 || cells * cell + LEAST_STEP_BYTES <= most_moved_bytes / levels) return 0;
    return refuse_steps(p, why);
}

/* Rows begin at multiples of it, so that cells of every type do. */
static int64_t widest_cell(const struct mx_problem *p) {
    int64_t bytes = 1;
    for (int array = 0; array < 2; array++)
        for (int32_t f = 0; f < mx_field_count(p, array); f++)
            bytes = mx_max(bytes, mx_dtype_bytes(mx_field_dtype(p, array, f)));
    return bytes;
}

int mx_layout_make(const struct mx_problem *p, uint32_t offset_align_bytes, bool cuts_y, mx_why *why,
                   struct mx_layout *out) {
    struct mx_layout l = {.packed = offset_align_bytes == 0};
    int64_t align = offset_align_bytes > 0 ? offset_align_bytes : 1;
    char extents[MX_EXTENTS_TEXT];
    mx_wide total;
    const int err = mx_layout_check(p, why);
    if (err < 0) return err;
    l.rows = p->ny + 2 * mx_halo_y(p);
    l.planes = p->nz + 2 * p->h;
    for (int i = 0; i < 2; i++) {
        const int64_t bytes = mx_field_offsets(p, i, l.field_offset_bytes[i]);
        if (bytes > l.row_bytes) l.row_bytes = bytes;
    }
    if (cuts_y) {
        l.row_pitch_bytes = round_up(l.row_bytes, mx_max(align, widest_cell(p)));
        total = (mx_wide)l.rows * l.row_pitch_bytes;
    } else {
        /* Rows that start on the same page offset compete for the same L1 sets, and loads alias with earlier
         * stores: one line more breaks that. */
        l.row_pitch_bytes = round_up(l.row_bytes, LINE_BYTES);
        if (l.row_pitch_bytes % PAGE_BYTES == 0 && l.rows > 1) l.row_pitch_bytes += LINE_BYTES;
        total = (mx_wide)l.rows * l.row_pitch_bytes;
        int64_t unit = align > PAGE_BYTES ? align : PAGE_BYTES;
        total = (total + unit - 1) / unit * unit;
    }
    if (total * l.planes > INT64_MAX / 4)
        return mx_fail(why, -EOVERFLOW, "a grid of %s needs more than 2^61 bytes: choose a smaller one",
                       mx_extents_text(p, extents));
    if (p->nt > 0 && (mx_reads_old(p) ? 2 : 1) * total * l.planes > most_moved_bytes / mx_levels_of(p, p->nt))
        return refuse_steps(p, why);
    l.plane_pitch_bytes = (int64_t)total;
    l.buffer_bytes = l.plane_pitch_bytes * l.planes;
    lay_fixed(p, align, l.packed, cuts_y, &l);
    *out = l;
    return 0;
}

int64_t mx_plane_pitch_in_dram(int64_t plane_bytes) {
    if (plane_bytes < LARGE_PLANE_BYTES) return plane_bytes; /* better transferred several at a time */
    int64_t page = plane_bytes / PAGE_BYTES * PAGE_BYTES + OFF_PAGE_BYTES;
    return page >= plane_bytes ? page : page + PAGE_BYTES;
}

void mx_layout_in_dram(struct mx_layout *layout) {
    layout->plane_pitch_bytes = mx_plane_pitch_in_dram(layout->plane_pitch_bytes);
    layout->buffer_bytes = layout->plane_pitch_bytes * layout->planes;
}
