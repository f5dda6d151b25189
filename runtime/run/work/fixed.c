/* SPDX-License-Identifier: BSD-3-Clause */
/* fixed.c - fields that a kernel only reads, written into the store. */
#include "run/work/work.h"

int mx_run_write_fixed(struct mx_run *r, int32_t i, mx_buffer *to, struct mx_fields_fill *from) {
    struct mx_layout layout;
    mx_layout_of_fixed(&r->report.layout, i, &layout);
    const int64_t pitch = layout.plane_pitch_bytes;
    struct mx_sided_field sided = {r, &layout, r->system->fixed[i].dtype, from,
                                   r->report.layout.fixed[i].offset_bytes / pitch};
    layout.planes = layout.buffer_bytes / pitch;
    from->layout = &layout;
    return mx_run_pass_layout(r, "fields", to, &layout, true, mx_fill_sided_field, &sided);
}

int mx_run_write_all_fixed(struct mx_run *r) {
    int err = 0;
    for (int32_t i = 0; i < mx_fixed_count(&r->o.problem) && err == 0; i++) {
        if (r->file[i] != NULL || mx_is_profile(&r->o.problem, i)) continue;
        struct mx_fields_fill fill = mx_run_fill(r, MX_FIELD_OF_C, i, NULL);
        err = mx_run_write_fixed(r, i, r->fixed[i], &fill);
    }
    return err;
}
