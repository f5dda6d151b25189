/* SPDX-License-Identifier: BSD-3-Clause */
/* field_files.c - files of C that a run reads where they are: each is a device of its own, of the run's
 * backend, that is only read. */
#include "core/device.h"
#include "machine/machine.h"
#include "machine/minmax.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ how they lie */

int mx_field_lay_in_place(const struct mx_run_field *f, const struct mx_problem *p, uint32_t align,
                          mx_why *why, struct mx_fixed_layout *out) {
    const struct mx_fixed_file file = {.dtype = f->npy.dtype,
                                       .offset_bytes = f->npy.data_offset_bytes,
                                       .bytes = (int64_t)f->identity.bytes,
                                       .frame = f->frame,
                                       .align_bytes = align};
    return mx_layout_fixed_file(p, f->index, &file, why, out);
}

uint32_t mx_field_align(const struct mx_run_field *f, const struct mx_backend *backend) {
    struct mx_storage s = {.direct_offset_align_bytes = 0};
    if (backend->face == MX_FACE_MAPPED || mx_storage_facts(f->npy.fd, NULL, &s) < 0) return 1;
    return s.direct_offset_align_bytes > 0 ? s.direct_offset_align_bytes : 1;
}

/* ------------------------------------------------------------------ open */

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

static void tell(struct mx_run *r, const struct mx_run_field *f) {
    struct mx_report_file *file = &r->report.file[r->report.n_files++];
    struct mx_device_facts facts = {.size = sizeof facts};
    *file = (struct mx_report_file){
        .field = f->name, .path = f->path, .inside = f->inside, .in_place = f->in_place};
    if (r->file[f->index] == NULL) return;
    mx_device_facts(r->file[f->index], &facts);
    file->page_cache = !facts.bypasses_page_cache;
    file->align_bytes = facts.offset_align_bytes;
}

int mx_fields_check_sides(const struct mx_system *system, const struct mx_sides *s,
                          const struct mx_backend *backend, mx_why *why) {
    const bool y = mx_sides_periodic(s, MX_DIM_Y),
               any = y || mx_sides_periodic(s, MX_DIM_X) || mx_sides_periodic(s, MX_DIM_Z);
    if (any && system->hc > 0)
        return mx_fail(why, -EINVAL, "its frame is what the periodic sides say, not what the file has");
    if (y && backend->face == MX_FACE_TRANSFER)
        return mx_fail(why, -EINVAL, "y=periodic takes rows from the other end, which have to be aligned");
    return 0;
}

/* Of a new run: in place where that is possible. */
static int choose(struct mx_run *r, struct mx_run_field *f) {
    if (r->backend->anonymous || r->o.field_copy) return 0;
    if (mx_is_rank(&r->ranks) && mx_sides_periodic(&r->sides, MX_DIM_Z)) {
        if (r->ranks.rank == 0) /* one of them says it for all */
            mx_run_remark(
                r, "%.300s is copied into the stores: ranks around a periodic z cannot read it in place",
                f->path);
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
        if (r->resumed && f->in_place && needed) err = begin(r, f);
        if (err == 0) tell(r, f);
    }
    return err;
}

/* ------------------------------------------------------------------ while the run goes on */

int mx_run_field_files_unchanged(struct mx_run *r, mx_why *why) {
    int err = 0;
    for (int32_t i = 0; i < r->fields.n && err == 0; i++) {
        struct mx_run_field *f = &r->fields.field[i];
        if (f->in_place && f->npy.fd >= 0) err = mx_field_unchanged(f, why);
    }
    return err == 0 ? mx_run_fuse_unchanged(r, why) : err;
}

void mx_run_counters(const struct mx_run *r, struct mx_counters *out) {
    out->size = sizeof *out;
    mx_device_counters(r->device, out);
    for (int i = 0; i < MX_MAX_FIXED; i++) {
        struct mx_counters c = {.size = sizeof c};
        if (r->file[i] == NULL) continue;
        mx_device_counters(r->file[i], &c);
        out->read_bytes += c.read_bytes;
        out->read_requests += c.read_requests;
        out->retries += c.retries;
        out->short_transfers += c.short_transfers;
        out->read_ns = mx_max_u64(out->read_ns, c.read_ns);
        out->peak_in_flight += c.peak_in_flight;
    }
    mx_run_fuse_counters(r, out);
}
