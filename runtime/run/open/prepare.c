/* SPDX-License-Identifier: BSD-3-Clause */
/* prepare.c - a run before anything is touched: from options to a store that is open. */
#include "run/open/open.h"

#include "machine/machine.h"
#include "machine/minmax.h"
#include "run/open/identity.h"

int mx_run_request(struct mx_run *r) {
    int err = 0;
    if (r->o.fault != NULL) err = mx_fault_calls(r->o.fault, &r->why);
    if (err == 0) err = mx_run_check_ranks(r);
    if (err == 0) err = mx_run_find_place(r);
    if (err == 0 && r->o.kernel != NULL && !r->o.resume)
        err = mx_take_kernel(&r->o, NULL, &r->stop, &r->why, &r->system);
    if (err == 0 && r->system != NULL) err = mx_run_take_fields(r);
    if (err == 0 && r->o.resume && r->o.backend != NULL) err = mx_run_take_place(r);
    if (err == 0 && r->o.resume) err = mx_run_take_store(r);
    if (err == 0) err = mx_run_take_place(r);
    if (err == 0 && r->system != NULL) err = mx_run_check_names(r); /* the files of fields are known now */
    if (err == 0 && r->system != NULL) err = mx_run_take_sinks(r);
    r->sinks_known = err == 0 && r->system != NULL;
    if (r->sinks_known) err = mx_run_check_names(r);
    if (err == 0 && !r->resumed && r->system == NULL) err = mx_run_open_source(r);
    if (err == 0) err = mx_check_series(&r->o, r->system, &r->why);
    if (err == 0) err = mx_try_kernel(&r->o, r->system, &r->why); /* extents and steps are known now */
    if (err == 0 && r->input.data[0] != 0)
        err = mx_run_check_names(r); /* the file of its cells is known now */
    if (err == 0 && r->system != NULL) r->report.calls = mx_kernel_facts(r->system).functions;
    if (err == 0) err = mx_layout_check(&r->o.problem, &r->why);
    if (err == 0) err = mx_run_take_superseded(r);
    if (err == 0) err = mx_run_take_sides(r);
    if (err == 0) err = mx_run_check_frames(r);
    if (err == 0) err = mx_run_ask_parts(r);
    if (err == 0) mx_run_take_finite(r);
    if (err == 0 && r->system != NULL) err = mx_run_take_field_files(r);
    if (err == 0) err = mx_take_machine(&r->o, &r->why, &r->report.machine);
    if (err == 0) err = mx_run_take_limits(r);
    if (err < 0) return err;
    mx_run_say_useless(r);
    if (r->o.init == NULL && r->source.region == NULL && r->note.source[0] == 0 && r->system == NULL)
        r->o.init = mx_inits[0].name;
    if ((err = mx_run_cut(r)) < 0) return err;
    r->rest = r->o.problem;
    r->rest.nt = mx_parts_have_ended(r) ? 0 : r->rest.nt - r->first_time;
    r->rest.done = r->first_time;
    if ((err = mx_run_check_edits(r)) < 0) return err;
    const int cores = r->report.machine.cores, own = mx_run_own_cores(r, cores);
    if (r->o.threads == 0 && own < cores) r->o.threads = own;
    mx_take_request(&r->o, &r->report.machine, &r->request);
    r->request.problem = &r->rest;
    if ((err = mx_run_measure_link(r)) < 0) return err;
    if ((err = mx_run_take_accel(r)) < 0) return err;
    r->request.style = mx_style_of(r->backend);
    r->request.advised = r->o.advice == MX_ADVICE_SCHEDULE;
    r->request.anonymous = r->backend->anonymous;
    if ((err = mx_run_stopped(r)) == 0)
        err = mx_take_rates(&r->o, r->backend, &r->report.machine, r->report.dram_limit_bytes, &r->why,
                            &r->request.rates);
    if (err < 0) return err;
    /* What was not measured, and why: a raw device is not written to be measured. */
    if (r->o.calibrate && r->why.text[0] != 0 && !r->o.quiet) mx_run_remark(r, "%s", r->why.text);
    r->why.text[0] = 0;
    return mx_run_stopped(r);
}

int mx_run_make_ready(struct mx_run *r) {
    mx_run_begin_phase(r, "prepare", "", 0);
    r->names_unknown = r->o.sources != NULL;
    int err = mx_run_check_names(r);
    if (err == 0) err = mx_run_request(r);
    if (err == 0) err = mx_run_plan(r);
    if (err == 0) mx_run_say_planned(r);
    if (err == 0) err = mx_run_check_note(r);
    if (err == 0) err = mx_run_check_extents(r);
    if (err == 0) err = mx_run_check_edit_dram(r);
    if (err == 0 && r->o.dry_run) err = mx_run_ask_place(r);
    if (err == 0 && !r->o.dry_run && mx_run_alone(r)) err = mx_run_ask_outputs(r);
    if (err == 0 && !r->o.dry_run && r->system != NULL) err = mx_run_read_profiles(r);
    if (err == 0 && !r->o.dry_run) err = mx_run_open_outputs(r);
    if (err == 0) err = mx_run_stopped(r);
    if (err == 0 && !r->o.dry_run) err = mx_run_open_store(r);
    /* Nobody begins before all can: what one refuses is refused by all. */
    return err == 0 && !r->o.dry_run ? mx_run_meet(r) : err;
}
