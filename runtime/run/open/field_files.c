/* SPDX-License-Identifier: BSD-3-Clause */
/* field_files.c - files of C that a run reads where they are: each is a device of its own, of the run's
 * backend, that is only read. */
#include "run/open/open.h"

#include "core/device.h"
#include "files/profile.h"

static int open_device(struct mx_run *r, const struct mx_run_field *f) {
    const struct mx_device_options d = mx_run_device_options(r, f->path);
    return mx_device_open_file(f->npy.fd, &d, &r->why, &r->file[f->index]);
}

/* What a device says of itself is asked before the plan: a plan counts bytes by its alignment. */
static int begin(struct mx_run *r, struct mx_run_field *f) {
    struct mx_device_facts facts = {.size = sizeof facts};
    int err = mx_field_lay_in_place(f, &r->o.problem, 0, &r->why, &r->file_layout[f->index]);
    if (err == 0) err = open_device(r, f);
    if (err == 0) {
        mx_device_facts(r->file[f->index], &facts);
        err = mx_field_lay_in_place(f, &r->o.problem, facts.offset_align_bytes, &r->why,
                                    &r->file_layout[f->index]);
    }
    if (err == 0 && !r->resumed) err = mx_field_begin_in_place(f, &r->why);
    if (err == 0) return 0;
    r->file_layout[f->index] = (struct mx_fixed_layout){.row_pitch_bytes = 0};
    mx_device_close(r->file[f->index]);
    r->file[f->index] = NULL;
    return err;
}

/* A profile is counted now, and read when there is a plan; it belongs to the kernel, which is closed last.
 * What keeps no store has no use for its file afterwards. */
static int lay_profile(struct mx_run *r, struct mx_run_field *f) {
    mx_profile_lay(&r->o.problem, f->dtype, f->alike, &r->system->profile[f->index]);
    f->in_place |= !r->backend->anonymous;
    return 0;
}

int mx_run_read_profiles(struct mx_run *r) {
    int err = 0;
    for (int32_t i = 0; i < r->fields.n && err == 0; i++) {
        struct mx_run_field *f = &r->fields.field[i];
        if (f->array != MX_FIELD_OF_C || f->npy.fd < 0 || f->alike == 0) continue;
        if (!r->resumed) err = mx_field_take_cells(f, &r->why);
        if (r->system->profile[f->index].alike == 0) continue; /* a copy */
        if (err == 0) err = mx_field_read_profile(f, &r->whole, &r->why, &r->system->profile[f->index]);
        if (err == 0) err = mx_field_values_unchanged(f, &r->why);
    }
    return err;
}

static void tell(struct mx_run *r, const struct mx_run_field *f) {
    struct mx_report_file *file = &r->report.file[r->report.n_files++];
    struct mx_device_facts facts = {.size = sizeof facts};
    *file = (struct mx_report_file){
        .field = f->name, .path = f->path, .inside = f->inside, .in_place = f->in_place};
    if (r->system->profile[f->index].alike != 0) mx_alike_told(&r->o.problem, f->alike, file->alike);
    if (r->file[f->index] == NULL) return;
    mx_device_facts(r->file[f->index], &facts);
    file->page_cache = !facts.bypasses_page_cache;
    file->align_bytes = facts.offset_align_bytes;
}

/* Of a new run: in place where that is possible. */
static int choose(struct mx_run *r, struct mx_run_field *f) {
    if (!r->o.field_copy && mx_field_is_profile(f, r->system)) return lay_profile(r, f);
    if (r->backend->anonymous || r->o.field_copy) return 0;
    if (f->alike != 0) {
        mx_run_remark(r, "%.300s is copied into the store as a whole field: it is constant along %s", f->path,
                      f->alike == MX_ALIKE_X && r->system->text == NULL
                          ? "x alone, which works without a copy only for kernels given as FILE.c"
                          : "axes of the grid, but not in the frame");
        return 0;
    }
    if (mx_run_ranks_of(r) > 1 && mx_sides_periodic(&r->sides, MX_DIM_Z)) {
        if (mx_run_leads(r))
            mx_run_remark(r,
                          "%.300s is copied into the stores of the ranks, since it cannot be read in place "
                          "with %c=periodic",
                          f->path, mx_axis_name(&r->o.problem, MX_DIM_Z));
        return 0;
    }
    if (mx_fields_check_sides(r->system, &r->sides, r->backend, &r->why) == 0 && begin(r, f) == 0) return 0;
    mx_run_remark(r, "%.300s is copied into the store: %.300s", f->path, r->why.text);
    r->why.text[0] = 0;
    return 0;
}

int mx_run_take_field_files(struct mx_run *r) {
    /* Of a run that is done they are needed no more. */
    const bool needed =
        !mx_run_has_store(r) || r->first_time < r->o.problem.nt || r->o.verify || r->o.fields.n > 0;
    int err = 0;
    if (r->resumed && needed) err = mx_fields_open_in_place(&r->fields, &r->o.problem, &r->why);
    for (int32_t i = 0; i < r->fields.n && err == 0; i++) {
        struct mx_run_field *f = &r->fields.field[i];
        if (f->array != MX_FIELD_OF_C || f->path[0] == 0) continue;
        if (!r->resumed) err = choose(r, f);
        if (r->resumed && f->in_place && f->alike != 0)
            err = lay_profile(r, f);
        else if (r->resumed && f->in_place && needed)
            err = begin(r, f);
        if (err == 0) tell(r, f);
    }
    return err == 0 && needed ? mx_kernel_take_profiles(r->system, &r->why) : err;
}
