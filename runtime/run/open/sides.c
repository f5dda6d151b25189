/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/open/open.h"

#include "run/open/identity.h"

static int read_sides(struct mx_run *r, struct mx_sides *out) {
    int err = mx_sides_read(r->o.sides.word, r->o.sides.n, &r->o.problem, &r->why, out);
    return err < 0 ? err : mx_sides_check(out, &r->o.problem, &r->why);
}

int mx_run_take_sides(struct mx_run *r) {
    struct mx_sides given = {0};
    int err = read_sides(r, &given);
    if (err < 0) return err;
    r->sides = r->resumed ? r->note.sides : given;
    r->o.problem.sides = r->sides;
    if (r->resumed && (err = mx_run_same_sides(r, &given)) < 0) return err;
    if (!mx_sides_fixed(&r->sides, MX_DIM_X) && mx_option_given(&r->o, "column"))
        return mx_fail(
            &r->why, -EINVAL,
            "--column cuts rows, and sides in x other than fixed need whole rows: leave --column out");
    return 0;
}

int mx_run_check_frames(struct mx_run *r) {
    int err = mx_frame_check_sides(&r->made, &r->sides, &r->o.problem, 0, 0, &r->why);
    for (int32_t i = 0; i < r->fields.n && err == 0; i++) {
        const struct mx_run_field *f = &r->fields.field[i];
        if (f->array != MX_FIELD_OF_C && f->init == NULL)
            err = mx_frame_check_sides(&f->made, &r->sides, &r->o.problem, f->array, f->index, &r->why);
    }
    return err;
}
