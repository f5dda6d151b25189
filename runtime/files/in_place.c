/* SPDX-License-Identifier: BSD-3-Clause */
/* in_place.c - how the file of a field that is only read lies, where a run reads it in place. */
#include "files/fields.h"

#include <errno.h>

int mx_field_lay_in_place(const struct mx_run_field *f, const struct mx_problem *p, uint32_t align,
                          mx_why *why, struct mx_fixed_layout *out) {
    const struct mx_fixed_file file = {.dtype = f->npy.dtype,
                                       .offset_bytes = f->npy.data_offset_bytes,
                                       .bytes = (int64_t)f->identity.bytes,
                                       .frame = f->frame,
                                       .align_bytes = align};
    return mx_layout_fixed_file(p, f->index, &file, why, out);
}

int mx_fields_check_sides(const struct mx_system *system, const struct mx_sides *s,
                          const struct mx_backend *backend, mx_why *why) {
    const bool y = mx_sides_periodic(s, MX_DIM_Y),
               any = y || mx_sides_periodic(s, MX_DIM_X) || mx_sides_periodic(s, MX_DIM_Z);
    if (any && system->hc > 0)
        return mx_fail(why, -EINVAL,
                       "the periodic sides say what its frame is, and the file may have another one");
    if (y && backend->face == MX_FACE_TRANSFER)
        return mx_fail(why, -EINVAL,
                       "y=periodic reads rows of the other end of y, and direct transfers need them aligned");
    return 0;
}
