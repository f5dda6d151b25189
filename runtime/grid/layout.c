#include "grid/grid.h"

#include <errno.h>

static int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

enum { LINE_BYTES = 64, PAGE_BYTES = 4096, OFF_PAGE_BYTES = 1536, LARGE_PLANE_BYTES = 128 << 10 };

int mx_layout_make(const struct mx_problem *p, uint32_t offset_align_bytes, bool cuts_y, mx_why *why,
                   struct mx_layout *out) {
    struct mx_layout l = {.packed = offset_align_bytes == 0};
    int64_t align = offset_align_bytes > 0 ? offset_align_bytes : 1;
    mx_wide total;
    if (p->nx < 1 || p->ny < 1 || p->nz < 1)
        return mx_fail(why, -EINVAL, "grid %lld x %lld x %lld: every extent must be at least 1",
                       (long long)p->nx, (long long)p->ny, (long long)p->nz);
    if (p->nx > (INT64_C(1) << 40) || p->ny > (INT64_C(1) << 30) || p->nz > (INT64_C(1) << 30))
        return mx_fail(why, -EOVERFLOW,
                       "grid %lld x %lld x %lld is too large: nx up to 2^40, ny and nz up to 2^30",
                       (long long)p->nx, (long long)p->ny, (long long)p->nz);
    l.rows = p->ny + 2 * p->h;
    l.planes = p->nz + 2 * p->h;
    l.row_bytes = (p->nx + 2 * p->h) * mx_dtype_bytes(p->dtype);
    if (cuts_y) {
        l.row_pitch_bytes = round_up(l.row_bytes, align);
        total = (mx_wide)l.rows * l.row_pitch_bytes;
    } else {
        /* Rows that start on the same page offset compete for the same L1 sets, and loads alias with earlier
         * stores: one line more breaks that. */
        l.row_pitch_bytes = round_up(l.row_bytes, LINE_BYTES);
        if (l.row_pitch_bytes % PAGE_BYTES == 0) l.row_pitch_bytes += LINE_BYTES;
        total = (mx_wide)l.rows * l.row_pitch_bytes;
        int64_t unit = align > PAGE_BYTES ? align : PAGE_BYTES;
        total = (total + unit - 1) / unit * unit;
    }
    if (total * l.planes > INT64_MAX / 4)
        return mx_fail(why, -EOVERFLOW, "grid %lld x %lld x %lld needs more than 2^61 bytes",
                       (long long)p->nx, (long long)p->ny, (long long)p->nz);
    l.plane_pitch_bytes = (int64_t)total;
    l.buffer_bytes = l.plane_pitch_bytes * l.planes;
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
