/* SPDX-License-Identifier: BSD-3-Clause */
/* report_json.c - a report as JSON. */
#include "observe/json.h"
#include "observe/report_private.h"

#include <stdio.h>
#include <string.h>

static json_t *whole(int64_t value) { return json_integer(value); }

static json_t *json_names(const struct mx_field_of *field, int32_t n) {
    json_t *o = json_object();
    for (int32_t i = 0; i < n; i++) mx_json_put(o, field[i].name, json_string(mx_dtype_name(field[i].dtype)));
    return o;
}

/* What a kernel computes: fields by name with their types, parameters with their values. */
static json_t *json_system(const struct mx_system *s) {
    static const char *const forms[] = {
        [MX_JACOBI] = "jacobi", [MX_LEAPFROG] = "leapfrog", [MX_STAGGERED] = "staggered"};
    json_t *o = json_object(), *params = json_object();
    char identity[17];
    snprintf(identity, sizeof identity, "%016llx", (unsigned long long)s->identity);
    mx_json_put(o, "name", json_string(s->name));
    mx_json_put(o, "identity", json_string(identity));
    mx_json_put(o, "form", json_string(forms[s->form]));
    if (s->stages > 1) mx_json_put(o, "stages", whole(s->stages));
    mx_json_put(o, "state", json_names(s->field[0], s->n_field[0]));
    if (s->form == MX_STAGGERED) mx_json_put(o, "partner", json_names(s->field[1], s->n_field[1]));
    mx_json_put(o, "fixed", json_names(s->fixed, s->n_fixed));
    for (int32_t i = 0; i < s->n_param; i++) mx_json_put(params, s->param_name[i], json_real(s->param[i]));
    for (int32_t i = 0; i < s->n_series; i++)
        mx_json_put(params, s->param_name[s->series[i].param], json_string(s->series[i].path));
    mx_json_put(o, "params", params);
    return o;
}

json_t *mx_json_problem(const struct mx_problem *p) {
    json_t *o = json_object(), *coef = json_array();
    mx_json_put(o, "nx", whole(p->nx));
    mx_json_put(o, "ny", whole(p->flat ? p->nz : p->ny)); /* as users have the axes */
    mx_json_put(o, "nz", whole(p->flat ? p->ny : p->nz));
    mx_json_put(o, "nt", whole(p->nt));
    mx_json_put(o, "h", whole(p->h));
    mx_json_put(o, "dimensions", whole(p->flat ? 2 : 3));
    mx_json_put(o, "stencil", p->system != NULL ? json_null() : json_string(p->stencil));
    mx_json_put(o, "dtype", json_string(mx_dtype_name(p->dtype)));
    for (int i = 0; i < 4 && p->system == NULL; i++) json_array_append_new(coef, json_real(p->coef[i]));
    mx_json_put(o, "coef", coef);
    mx_json_put(o, "kernel", p->system != NULL ? json_system(p->system) : json_null());
    return o;
}

json_t *mx_json_machine(const struct mx_machine *m) {
    json_t *o = json_object();
    mx_json_put(o, "cpu", json_string(m->cpu));
    mx_json_put(o, "cores", whole(m->cores));
    mx_json_put(o, "sockets", whole(m->sockets));
    mx_json_put(o, "numa_nodes", whole(m->numa_nodes));
    mx_json_put(o, "l1_bytes", whole((int64_t)m->l1_bytes));
    mx_json_put(o, "l2_bytes", whole((int64_t)m->l2_bytes));
    mx_json_put(o, "l3_bytes", whole((int64_t)m->l3_bytes));
    mx_json_put(o, "memory_bytes", whole((int64_t)m->memory_bytes));
    mx_json_put(o, "cgroup_limit_bytes", whole((int64_t)m->cgroup_limit_bytes));
    mx_json_put(o, "cgroup", json_string(m->cgroup_kind));
    return o;
}

json_t *mx_json_plan(const struct mx_plan *p) {
    json_t *o = json_object();
    mx_json_put(o, "algorithm", json_string(p->algorithm));
    mx_json_put(o, "engine", json_string(p->engine));
    mx_json_put(o, "tuner", json_string(p->tuner));
    mx_json_put(o, "by", whole(p->by));
    mx_json_put(o, "bz", whole(p->bz));
    mx_json_put(o, "bt", whole(p->bt));
    mx_json_put(o, "iy", whole(p->iy));
    mx_json_put(o, "iz", whole(p->iz));
    mx_json_put(o, "slab", whole(p->slab));
    mx_json_put(o, "tile", whole(p->tile));
    mx_json_put(o, "ct", whole(p->ct));
    mx_json_put(o, "column", whole(p->column));
    mx_json_put(o, "ahead", whole(p->ahead));
    mx_json_put(o, "faces", p->seams[0] != 0 ? json_string(p->seams) : json_null());
    mx_json_put(o, "threads", whole(p->threads));
    return o;
}

static json_t *json_device(const struct mx_report *r) {
    json_t *o = json_object();
    mx_json_put(o, "place", json_string(r->device.place));
    mx_json_put(o, "note", json_string(r->device.note));
    mx_json_put(o, "bypasses_page_cache", json_boolean(r->device.bypasses_page_cache));
    mx_json_put(o, "offset_align_bytes", whole(r->device.offset_align_bytes));
    mx_json_put(o, "memory_align_bytes", whole(r->device.memory_align_bytes));
    mx_json_put(o, "read_requests", whole((int64_t)r->counters.read_requests));
    mx_json_put(o, "write_requests", whole((int64_t)r->counters.write_requests));
    mx_json_put(o, "retries", whole((int64_t)r->counters.retries));
    mx_json_put(o, "short_transfers", whole((int64_t)r->counters.short_transfers));
    mx_json_put(o, "peak_in_flight", whole(r->counters.peak_in_flight));
    return o;
}

static json_t *json_layout(const struct mx_layout *l) {
    json_t *o = json_object();
    mx_json_put(o, "row_bytes", whole(l->row_bytes));
    mx_json_put(o, "row_pitch_bytes", whole(l->row_pitch_bytes));
    mx_json_put(o, "plane_pitch_bytes", whole(l->plane_pitch_bytes));
    mx_json_put(o, "buffer_bytes", whole(l->buffer_bytes));
    return o;
}

static json_t *json_time(const struct mx_report *r) {
    json_t *o = json_object();
    mx_json_put(o, "buf2blk_s", json_real((double)r->counters.read_ns * 1e-9));
    mx_json_put(o, "blk2buf_s", json_real((double)r->counters.write_ns * 1e-9));
    mx_json_put(o, "blk2blk_s", json_real(r->blk2blk_s));
    mx_json_put(o, "update_s", json_real(r->update_s));
    mx_json_put(o, "wait_s", json_real(r->wait_s));
    return o;
}

static json_t *json_kernel(const struct mx_usage *u) {
    json_t *o = json_object();
    mx_json_put(o, "storage_read_bytes", whole((int64_t)u->storage_read_bytes));
    mx_json_put(o, "storage_write_bytes", whole((int64_t)u->storage_write_bytes));
    mx_json_put(o, "swap_in_bytes", whole((int64_t)u->swap_in_bytes));
    mx_json_put(o, "swap_out_bytes", whole((int64_t)u->swap_out_bytes));
    mx_json_put(o, "reclaimed_bytes", whole((int64_t)u->reclaimed_bytes));
    mx_json_put(o, "refault_bytes", whole((int64_t)u->refault_bytes));
    mx_json_put(o, "minor_faults", whole((int64_t)u->minor_faults));
    mx_json_put(o, "user_s", json_real((double)u->user_us * 1e-6));
    mx_json_put(o, "system_s", json_real((double)u->system_us * 1e-6));
    return o;
}

static json_t *json_commits(const struct mx_report *r) {
    json_t *o = json_object();
    mx_json_put(o, "possible", json_boolean(r->commits));
    mx_json_put(o, "every_s", json_real(r->commit_every_s));
    mx_json_put(o, "buffers", whole(r->buffers));
    mx_json_put(o, "sweep_s", json_real(r->seconds_a_sweep));
    mx_json_put(o, "sweeps", whole(r->sweeps));
    mx_json_put(o, "integrity", json_boolean(r->integrity));
    mx_json_put(o, "hash_bytes", whole((int64_t)r->hash_bytes));
    return o;
}

static json_t *json_snapshots(const struct mx_report_snapshots *s) {
    json_t *o = json_object();
    mx_json_put(o, "every", whole(s->every));
    mx_json_put(o, "stride", whole(s->stride));
    mx_json_put(o, "directory", json_string(s->directory));
    mx_json_put(o, "count", whole(s->count));
    mx_json_put(o, "bytes", whole(s->bytes));
    mx_json_put(o, "predicted_count", whole(s->predicted_count));
    mx_json_put(o, "predicted_bytes", whole(s->predicted_bytes));
    mx_json_put(o, "seconds", json_real(s->seconds));
    return o;
}

static json_t *json_model(const struct mx_report_accel *a) {
    json_t *o = json_object();
    mx_json_put(o, "updates_per_s", json_real(a->updates_per_s));
    mx_json_put(o, "put_bytes_per_s", json_real(a->put_bytes_per_s));
    mx_json_put(o, "get_bytes_per_s", json_real(a->get_bytes_per_s));
    mx_json_put(o, "kernel_source", json_string(a->kernel_source));
    mx_json_put(o, "bus_source", json_string(a->bus_source));
    mx_json_put(o, "kernel_s", json_real(a->kernel_s));
    mx_json_put(o, "bus_s", json_real(a->bus_s));
    mx_json_put(o, "flash_s", json_real(a->flash_s));
    mx_json_put(o, "decides", json_string(mx_report_slowest(a)));
    return o;
}

static json_t *json_accel(const struct mx_report_accel *a) {
    json_t *o = json_object();
    mx_json_put(o, "name", json_string(a->name));
    mx_json_put(o, "device", json_string(a->device));
    if (a->number >= 0) mx_json_put(o, "device_number", whole(a->number));
    mx_json_put(o, "ranks_on_device", whole(a->sharers));
    mx_json_put(o, "memory_bytes",
                a->memory_bytes == UINT64_MAX ? json_null() : whole((int64_t)a->memory_bytes));
    mx_json_put(o, "used_bytes", whole((int64_t)a->used_bytes));
    mx_json_put(o, "staging_bytes", whole((int64_t)a->staging_bytes));
    mx_json_put(o, "operations", whole((int64_t)a->operations));
    mx_json_put(o, "pinned", json_boolean(a->pinned));
    mx_json_put(o, "direct", json_boolean(a->direct));
    mx_json_put(o, "aside_host_to_device_bytes", whole((int64_t)a->aside_put_bytes));
    mx_json_put(o, "aside_device_to_host_bytes", whole((int64_t)a->aside_get_bytes));
    mx_json_put(o, "model", json_model(a));
    return o;
}

static const char *const phase_names[MX_PHASES] = {"prepare", "init",   "stencil", "checksum",
                                                   "verify",  "output", "finish"};

static json_t *json_phases(const struct mx_report *r) {
    json_t *all = json_object();
    const bool planned = strcmp(r->status, "planned") == 0;
    for (int i = 0; i < MX_PHASES; i++) {
        const struct mx_report_phase *p = &r->phase[i];
        const bool moves = i != MX_PHASE_PREPARE && i != MX_PHASE_FINISH;
        json_t *o = json_object();
        if (!planned) mx_json_put(o, "seconds", json_real(p->seconds));
        if (!planned && moves) mx_json_put(o, "read_bytes", whole(p->read_bytes));
        if (!planned && moves) mx_json_put(o, "write_bytes", whole(p->write_bytes));
        if (moves && i != MX_PHASE_VERIFY)
            mx_json_put(o, "predicted_read_bytes", whole(p->predicted_read_bytes));
        if (moves && i != MX_PHASE_VERIFY)
            mx_json_put(o, "predicted_write_bytes", whole(p->predicted_write_bytes));
        mx_json_put(all, phase_names[i], o);
    }
    return all;
}

/* true, or in a few words why not. */
static json_t *yes_or_why(bool yes, const char *why) {
    return yes ? json_true() : json_string(why != NULL ? why : "");
}

static json_t *json_fused(const struct mx_report_fused *f) {
    json_t *o = json_object();
    mx_json_put(o, "source", yes_or_why(f->source, f->no_source));
    mx_json_put(o, "checksum", yes_or_why(f->checksum, f->no_checksum));
    mx_json_put(o, "output", yes_or_why(f->output, f->no_output));
    return o;
}

static json_t *json_predicted_time(const struct mx_report_time *t) {
    json_t *o = json_object();
    mx_json_put(o, "io_s", json_real(t->io_s));
    mx_json_put(o, "stall_s", json_real(t->stall_s));
    mx_json_put(o, "compute_s", json_real(t->compute_s));
    mx_json_put(o, "copy_s", json_real(t->copy_s));
    mx_json_put(o, "cores_s", json_real(t->cores_s));
    mx_json_put(o, "edge_s", json_real(t->edge_s));
    return o;
}

static void put_prediction(json_t *o, const struct mx_report *r) {
    mx_json_put(o, "predicted_read_bytes", whole(r->predicted_read_bytes));
    mx_json_put(o, "predicted_write_bytes", whole(r->predicted_write_bytes));
    mx_json_put(o, "predicted_init_bytes", whole(r->predicted_init_bytes));
    mx_json_put(o, "predicted_updates", whole(r->predicted_updates));
    mx_json_put(o, "predicted_seconds", json_real(r->predicted_seconds));
    mx_json_put(o, "time_step_s",
                r->simulated.each != NULL ? json_null() : mx_json_number(mx_simulated_s(&r->simulated, 1)));
    mx_json_put(o, "predicted_simulated_s", mx_json_number(mx_simulated_s(&r->simulated, r->problem.nt)));
    mx_json_put(o, "predicted_time", json_predicted_time(&r->predicted_time));
    mx_json_put(o, "side_file_bytes", whole(r->side_file_bytes));
    mx_json_put(o, "fused", json_fused(&r->fused));
    mx_json_put(o, "phases", json_phases(r));
    if (r->accel.name[0] != 0) {
        mx_json_put(o, "accelerator", json_accel(&r->accel));
        mx_json_put(o, "predicted_host_to_device_bytes",
                    whole(r->predicted_read_bytes + r->accel.more_put_bytes));
        mx_json_put(o, "predicted_device_to_host_bytes", whole(r->predicted_write_bytes));
    }
    mx_json_put(o, "commits", json_commits(r));
}

void mx_report_put_measured(json_t *o, const struct mx_report *r) {
    mx_json_put(o, "seconds", json_real(r->seconds));
    mx_json_put(o, "wall_seconds", json_real(r->wall_seconds));
    mx_json_put(o, "init_seconds", json_real(r->init_seconds));
    mx_json_put(o, "verify_seconds", r->verified < 0 ? json_null() : json_real(r->verify_seconds));
    mx_json_put(o, "updates_per_second", json_real(mx_report_rate(r)));
    mx_json_put(o, "updates", whole(r->updates));
    mx_json_put(o, "steps_done", whole(r->steps_done));
    mx_json_put(o, "simulated_s", mx_json_number(mx_simulated_s(&r->simulated, r->steps_done)));
    mx_json_put(o, "resumed_from", whole(r->resumed_from));
    mx_json_put(o, "read_bytes", whole((int64_t)r->counters.read_bytes));
    mx_json_put(o, "write_bytes", whole((int64_t)r->counters.write_bytes));
    mx_json_put(o, "time", json_time(r));
    mx_json_put(o, "peak_rss_bytes", whole((int64_t)r->peak_rss_bytes));
    mx_json_put(o, "block_bytes", whole((int64_t)r->block_bytes));
    mx_json_put(o, "major_faults", whole((int64_t)r->usage.major_faults));
    mx_json_put(o, "kernel", json_kernel(&r->usage));
    mx_json_put(o, "checksum", r->checksum[0] != 0 ? json_string(r->checksum) : json_null());
    mx_json_put(o, "verified", r->verified < 0 ? json_null() : json_boolean(r->verified));
}

static void put_measurement(json_t *o, const struct mx_report *r) {
    mx_report_put_measured(o, r);
    mx_json_put(o, "nonfinite_cells", whole(r->nonfinite_cells));
    mx_json_put(o, "wait_share", json_real(r->seconds > 0 ? r->wait_s / r->seconds : 0));
    if (r->accel.name[0] != 0) {
        mx_json_put(o, "host_to_device_bytes", whole((int64_t)r->accel.put_bytes));
        mx_json_put(o, "device_to_host_bytes", whole((int64_t)r->accel.get_bytes));
    }
}

/* Of a kernel's reductions those that a result has. */
static json_t *json_check(const struct mx_report *of, const struct mx_norms_result *r) {
    const struct mx_system *s = of->problem.system;
    json_t *o = json_object(), *all = json_object();
    mx_json_put(o, "step", whole(r->step));
    /* Of a check before the length of a step was changed it is what it was then. */
    const bool before = of->simulated.each == NULL && r->step < of->simulated.since;
    mx_json_put(o, "simulated_s",
                mx_json_number(before ? r->simulated_s : mx_simulated_s(&of->simulated, r->step)));
    mx_json_put(o, "max_change", mx_json_number(r->max_change));
    mx_json_put(o, "rms_change", mx_json_number(r->rms_change));
    for (int32_t i = 0; s != NULL && i < r->n_reduce && i < s->n_reduce; i++) {
        static const char *const kinds[] = {[MX_SUM] = "sum", [MX_MAX] = "max", [MX_MIN] = "min"};
        json_t *one = json_object();
        mx_json_put(one, kinds[s->reduce[i].kind], mx_json_number(r->reduce[i]));
        mx_json_put(one, "spread", mx_json_number(r->spread[i]));
        mx_json_put(all, s->reduce[i].name, one);
    }
    mx_json_put(o, "reductions", all);
    return o;
}

static void put_checks(json_t *o, const struct mx_report *r) {
    json_t *until = json_array(), *norms = json_array(), *met = json_null();
    for (int32_t i = 0; i < r->n_until; i++) json_array_append_new(until, json_string(r->until[i]));
    for (int32_t i = 0; r->history != NULL && i < r->history->n; i++)
        json_array_append_new(norms, json_check(r, &r->history->kept[i].result));
    if (r->met.until[0] != 0) {
        met = json_object();
        mx_json_put(met, "until", json_string(r->met.until));
        mx_json_put(met, "step", whole(r->met.step));
        mx_json_put(met, "simulated_s", mx_json_number(mx_simulated_s(&r->simulated, r->met.step)));
        mx_json_put(met, "value", mx_json_number(r->met.value));
    }
    mx_json_put(o, "check_every", whole(r->check));
    mx_json_put(o, "until", until);
    mx_json_put(o, "met", met);
    mx_json_put(o, "norms", norms);
}

static json_t *json_files(const struct mx_report *r) {
    json_t *o = json_object();
    for (int32_t i = 0; i < r->n_files; i++) {
        const struct mx_report_file *f = &r->file[i];
        json_t *file = json_object();
        mx_json_put(file, "path", mx_json_path(f->path));
        if (f->inside[0] != 0) mx_json_put(file, "dataset", mx_json_path(f->inside));
        mx_json_put(file, "in_place", json_boolean(f->in_place));
        mx_json_put(file, "page_cache", json_boolean(f->page_cache));
        if (f->alike[0] != 0)
            mx_json_put(file, "alike", json_string(f->alike));
        else if (f->in_place)
            mx_json_put(file, "align_bytes", whole(f->align_bytes));
        mx_json_put(o, f->field, file);
    }
    return o;
}

void mx_report_put_run(json_t *o, const struct mx_report *r) {
    mx_json_put(o, "memext", json_string(MX_VERSION));
    mx_json_put(o, "status", json_string(r->status));
    mx_json_put(o, "error", r->error != NULL && r->error[0] != 0 ? json_string(r->error) : json_null());
    mx_json_put(o, "machine", mx_json_machine(&r->machine));
    mx_json_put(o, "backend", json_string(r->device.backend));
    mx_json_put(o, "device", json_device(r));
    mx_json_put(o, "dram_budget_bytes", whole((int64_t)r->dram_budget_bytes));
    mx_json_put(o, "dram_limit_bytes", whole((int64_t)r->dram_limit_bytes));
    if (r->fault_calls > 0) mx_json_put(o, "fault_calls", whole(r->fault_calls));
}

json_t *mx_report_json(const struct mx_report *r) {
    json_t *o = json_object();
    mx_report_put_run(o, r);
    mx_json_put(o, "problem", mx_json_problem(&r->problem));
    if (r->calls != NULL && r->calls[0] != 0) mx_json_put(o, "kernel_calls", json_string(r->calls));
    mx_json_put(o, "plan", mx_json_plan(&r->plan));
    mx_json_put(o, "layout", json_layout(&r->layout));
    const char *origin = r->input != NULL ? r->input : r->init; /* NULL with a kernel */
    mx_json_put(o, r->input != NULL ? "input" : "init", origin != NULL ? json_string(origin) : json_null());
    if (r->n_files > 0) mx_json_put(o, "files", json_files(r));
    put_prediction(o, r);
    if (r->sources > 0) mx_json_put(o, "sources", whole(r->sources));
    if (r->probes > 0) mx_json_put(o, "probes", whole(r->probes));
    if (r->check > 0) put_checks(o, r);
    if (r->snapshots.every > 0) mx_json_put(o, "snapshots", json_snapshots(&r->snapshots));
    if (strcmp(r->status, "planned") != 0) put_measurement(o, r);
    return o;
}
