#include "run/run.h"

#include <string.h>

static int read_sides(struct mx_run *r, struct mx_sides *out) {
    int err = 0;
    for (int32_t i = 0; i < r->o.sides.n && err == 0; i++)
        err = mx_sides_parse(r->o.sides.word[i], &r->why, out);
    return err < 0 ? err : mx_sides_check(out, &r->o.problem, &r->why);
}

int mx_run_take_sides(struct mx_run *r) {
    struct mx_sides given = {0};
    char text[MX_SIDES_TEXT];
    int err = read_sides(r, &given);
    if (err < 0) return err;
    r->sides = r->resumed ? r->note.sides : given;
    if (r->resumed && r->o.sides.n > 0 && memcmp(&given, &r->note.sides, sizeof given) != 0)
        return mx_fail(&r->why, -EINVAL,
                       "%.300s holds a run with the sides '%s'; leave --side out with --resume", r->o.path,
                       mx_sides_all_fixed(&r->sides) ? "fixed" : mx_sides_text(&r->sides, text));
    if (!mx_sides_fixed(&r->sides, MX_DIM_X) && mx_option_given(&r->o, "column"))
        return mx_fail(&r->why, -EINVAL,
                       "--column cuts rows, and sides in x that are not fixed need whole ones; leave it out");
    if (!mx_sides_fixed(&r->sides, MX_DIM_Z) && r->o.verify)
        return mx_fail(
            &r->why, -ENOTSUP,
            "--verify recomputes planes from the first to the last and knows fixed sides in z alone; "
            "leave --verify out, or compare two plans by their checksums");
    return 0;
}

int mx_run_check_frames(struct mx_run *r) {
    int err = mx_frame_check_sides(&r->made, &r->sides, &r->why);
    for (int32_t i = 0; i < r->fields.n && err == 0; i++)
        if (r->fields.field[i].array != MX_FIELD_OF_C && r->fields.field[i].init == NULL)
            err = mx_frame_check_sides(&r->fields.field[i].made, &r->sides, &r->why);
    return err;
}

/* Of a dimension that is cut what a frame copies may be elsewhere. */
int mx_run_check_sides(struct mx_run *r) {
    const struct mx_plan *p = &r->tuned.plan;
    const bool direct = strcmp(r->algorithm->name, "direct") == 0, iblock = strcmp(p->engine, "iblock") == 0;
    for (int d = MX_DIM_Y; d <= MX_DIM_Z; d++) {
        if (mx_sides_fixed(&r->sides, d)) continue;
        if (mx_sides_periodic(&r->sides, d) && !(direct && iblock))
            return mx_fail(
                &r->why, -ENOTSUP,
                "the side %c=periodic is for --algorithm direct --engine iblock on --backend mmap or "
                "dram: %s with engine %s computes one end of the grid long before the other; take "
                "these, or mirror",
                'x' + d, r->algorithm->name, p->engine);
        if (d == MX_DIM_Z && !direct)
            return mx_fail(
                &r->why, -ENOTSUP,
                "sides in z that are not fixed are for --algorithm direct on --backend mmap or dram, "
                "not for %s; take that, or turn the grid so that the side is in x or y",
                r->algorithm->name);
        if (d == MX_DIM_Y && !direct && strcmp(r->algorithm->name, "stream") != 0)
            return mx_fail(&r->why, -ENOTSUP,
                           "sides in y that are not fixed are for --algorithm stream or direct, not for %s",
                           r->algorithm->name);
        if (d == MX_DIM_Y && r->algorithm->cuts_y(&r->rest, p))
            return mx_fail(
                &r->why, -ENOTSUP,
                "sides in y that are not fixed need whole planes, and the plan cuts y into strips of "
                "%lld rows; take --block %lld %lld %lld, or a smaller last number where that needs too "
                "much DRAM",
                (long long)p->by, (long long)r->rest.ny, (long long)r->rest.nz, (long long)p->bt);
    }
    return 0;
}

int mx_run_fail_plan(struct mx_run *r, int err) {
    const mx_why reason = r->why;
    if (mx_sides_fixed(&r->sides, MX_DIM_Y)) return err;
    return mx_fail(
        &r->why, err,
        "%.400s; sides in y that are not fixed are for plans that do not cut y: --algorithm stream "
        "with --block %lld %lld BT, or direct",
        reason.text, (long long)r->rest.ny, (long long)r->rest.nz);
}
