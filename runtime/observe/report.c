/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/report.h"

#include <memext/backend.h>

#include <errno.h>
#include <math.h>
#include <string.h>

static json_t *whole(int64_t value) { return json_integer(value); }

/* JSON has no NaN. */
static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static void put(json_t *object, const char *key, json_t *value) { json_object_set_new(object, key, value); }

static json_t *json_names(const struct mx_field_of *field, int32_t n) {
    json_t *o = json_object();
    for (int32_t i = 0; i < n; i++) put(o, field[i].name, json_string(mx_dtype_name(field[i].dtype)));
    return o;
}

/* What a kernel computes: fields by name with their types, parameters with their values. */
static json_t *json_system(const struct mx_system *s) {
    static const char *const forms[] = {
        [MX_JACOBI] = "jacobi", [MX_LEAPFROG] = "leapfrog", [MX_STAGGERED] = "staggered"};
    json_t *o = json_object(), *params = json_object();
    char identity[17];
    snprintf(identity, sizeof identity, "%016llx", (unsigned long long)s->identity);
    put(o, "name", json_string(s->name));
    put(o, "identity", json_string(identity));
    put(o, "form", json_string(forms[s->form]));
    put(o, "state", json_names(s->field[0], s->n_field[0]));
    if (s->form == MX_STAGGERED) put(o, "partner", json_names(s->field[1], s->n_field[1]));
    put(o, "fixed", json_names(s->fixed, s->n_fixed));
    for (int32_t i = 0; i < s->n_param; i++) put(params, s->param_name[i], json_real(s->param[i]));
    put(o, "params", params);
    return o;
}

json_t *mx_json_problem(const struct mx_problem *p) {
    json_t *o = json_object(), *coef = json_array();
    put(o, "nx", whole(p->nx));
    put(o, "ny", whole(p->ny));
    put(o, "nz", whole(p->nz));
    put(o, "nt", whole(p->nt));
    put(o, "h", whole(p->h));
    put(o, "stencil", p->system != NULL ? json_null() : json_string(p->stencil));
    put(o, "dtype", json_string(mx_dtype_name(p->dtype)));
    for (int i = 0; i < 4 && p->system == NULL; i++) json_array_append_new(coef, json_real(p->coef[i]));
    put(o, "coef", coef);
    put(o, "kernel", p->system != NULL ? json_system(p->system) : json_null());
    return o;
}

json_t *mx_json_machine(const struct mx_machine *m) {
    json_t *o = json_object();
    put(o, "cpu", json_string(m->cpu));
    put(o, "cores", whole(m->cores));
    put(o, "sockets", whole(m->sockets));
    put(o, "numa_nodes", whole(m->numa_nodes));
    put(o, "l1_bytes", whole((int64_t)m->l1_bytes));
    put(o, "l2_bytes", whole((int64_t)m->l2_bytes));
    put(o, "l3_bytes", whole((int64_t)m->l3_bytes));
    put(o, "memory_bytes", whole((int64_t)m->memory_bytes));
    put(o, "cgroup_limit_bytes", whole((int64_t)m->cgroup_limit_bytes));
    put(o, "cgroup", json_string(m->cgroup_kind));
    return o;
}

json_t *mx_json_plan(const struct mx_plan *p) {
    json_t *o = json_object();
    put(o, "algorithm", json_string(p->algorithm));
    put(o, "engine", json_string(p->engine));
    put(o, "tuner", json_string(p->tuner));
    put(o, "by", whole(p->by));
    put(o, "bz", whole(p->bz));
    put(o, "bt", whole(p->bt));
    put(o, "iy", whole(p->iy));
    put(o, "iz", whole(p->iz));
    put(o, "slab", whole(p->slab));
    put(o, "tile", whole(p->tile));
    put(o, "ct", whole(p->ct));
    put(o, "column", whole(p->column));
    put(o, "ahead", whole(p->ahead));
    put(o, "faces", p->seams[0] != 0 ? json_string(p->seams) : json_null());
    put(o, "threads", whole(p->threads));
    return o;
}

static json_t *json_device(const struct mx_report *r) {
    json_t *o = json_object();
    put(o, "place", json_string(r->device.place));
    put(o, "note", json_string(r->device.note));
    put(o, "bypasses_page_cache", json_boolean(r->device.bypasses_page_cache));
    put(o, "offset_align_bytes", whole(r->device.offset_align_bytes));
    put(o, "memory_align_bytes", whole(r->device.memory_align_bytes));
    put(o, "read_requests", whole((int64_t)r->counters.read_requests));
    put(o, "write_requests", whole((int64_t)r->counters.write_requests));
    put(o, "retries", whole((int64_t)r->counters.retries));
    put(o, "short_transfers", whole((int64_t)r->counters.short_transfers));
    put(o, "peak_in_flight", whole(r->counters.peak_in_flight));
    return o;
}

static json_t *json_layout(const struct mx_layout *l) {
    json_t *o = json_object();
    put(o, "row_bytes", whole(l->row_bytes));
    put(o, "row_pitch_bytes", whole(l->row_pitch_bytes));
    put(o, "plane_pitch_bytes", whole(l->plane_pitch_bytes));
    put(o, "buffer_bytes", whole(l->buffer_bytes));
    return o;
}

static json_t *json_time(const struct mx_report *r) {
    json_t *o = json_object();
    put(o, "buf2blk_s", json_real((double)r->counters.read_ns * 1e-9));
    put(o, "blk2buf_s", json_real((double)r->counters.write_ns * 1e-9));
    put(o, "blk2blk_s", json_real(r->blk2blk_s));
    put(o, "update_s", json_real(r->update_s));
    put(o, "wait_s", json_real(r->wait_s));
    return o;
}

static json_t *json_kernel(const struct mx_usage *u) {
    json_t *o = json_object();
    put(o, "storage_read_bytes", whole((int64_t)u->storage_read_bytes));
    put(o, "storage_write_bytes", whole((int64_t)u->storage_write_bytes));
    put(o, "swap_in_bytes", whole((int64_t)u->swap_in_bytes));
    put(o, "swap_out_bytes", whole((int64_t)u->swap_out_bytes));
    put(o, "reclaimed_bytes", whole((int64_t)u->reclaimed_bytes));
    put(o, "refault_bytes", whole((int64_t)u->refault_bytes));
    put(o, "minor_faults", whole((int64_t)u->minor_faults));
    put(o, "user_s", json_real((double)u->user_us * 1e-6));
    put(o, "system_s", json_real((double)u->system_us * 1e-6));
    return o;
}

static double rate(const struct mx_report *r) {
    const struct mx_problem *p = &r->problem;
    double cells = (double)p->nx * (double)p->ny * (double)p->nz * (double)(r->steps_done - r->resumed_from);
    return r->seconds > 0 ? cells / r->seconds : 0;
}

static json_t *json_commits(const struct mx_report *r) {
    json_t *o = json_object();
    put(o, "possible", json_boolean(r->commits));
    put(o, "every_s", json_real(r->commit_every_s));
    put(o, "buffers", whole(r->buffers));
    put(o, "sweep_s", json_real(r->seconds_a_sweep));
    put(o, "integrity", json_boolean(r->integrity));
    put(o, "hash_bytes", whole((int64_t)r->hash_bytes));
    return o;
}

static json_t *json_snapshots(const struct mx_report_snapshots *s) {
    json_t *o = json_object();
    put(o, "every", whole(s->every));
    put(o, "stride", whole(s->stride));
    put(o, "directory", json_string(s->directory));
    put(o, "count", whole(s->count));
    put(o, "bytes", whole(s->bytes));
    put(o, "predicted_count", whole(s->predicted_count));
    put(o, "predicted_bytes", whole(s->predicted_bytes));
    put(o, "seconds", json_real(s->seconds));
    return o;
}

/* What takes longest, by prediction. */
static const char *slowest(const struct mx_report_accel *a) {
    if (a->kernel_s >= a->bus_s && a->kernel_s >= a->flash_s) return "kernel";
    return a->bus_s >= a->flash_s ? "bus" : "flash";
}

static json_t *json_model(const struct mx_report_accel *a) {
    json_t *o = json_object();
    put(o, "updates_per_s", json_real(a->updates_per_s));
    put(o, "put_bytes_per_s", json_real(a->put_bytes_per_s));
    put(o, "get_bytes_per_s", json_real(a->get_bytes_per_s));
    put(o, "kernel_source", json_string(a->kernel_source));
    put(o, "bus_source", json_string(a->bus_source));
    put(o, "kernel_s", json_real(a->kernel_s));
    put(o, "bus_s", json_real(a->bus_s));
    put(o, "flash_s", json_real(a->flash_s));
    put(o, "decides", json_string(slowest(a)));
    return o;
}

static json_t *json_accel(const struct mx_report_accel *a) {
    json_t *o = json_object();
    put(o, "name", json_string(a->name));
    put(o, "device", json_string(a->device));
    if (a->number >= 0) put(o, "device_number", whole(a->number));
    put(o, "ranks_on_device", whole(a->sharers));
    put(o, "memory_bytes", a->memory_bytes == UINT64_MAX ? json_null() : whole((int64_t)a->memory_bytes));
    put(o, "used_bytes", whole((int64_t)a->used_bytes));
    put(o, "staging_bytes", whole((int64_t)a->staging_bytes));
    put(o, "operations", whole((int64_t)a->operations));
    put(o, "pinned", json_boolean(a->pinned));
    put(o, "aside_host_to_device_bytes", whole((int64_t)a->aside_put_bytes));
    put(o, "aside_device_to_host_bytes", whole((int64_t)a->aside_get_bytes));
    put(o, "model", json_model(a));
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
        if (!planned) put(o, "seconds", json_real(p->seconds));
        if (!planned && moves) put(o, "read_bytes", whole(p->read_bytes));
        if (!planned && moves) put(o, "write_bytes", whole(p->write_bytes));
        if (moves && i != MX_PHASE_VERIFY) put(o, "predicted_read_bytes", whole(p->predicted_read_bytes));
        if (moves && i != MX_PHASE_VERIFY) put(o, "predicted_write_bytes", whole(p->predicted_write_bytes));
        put(all, phase_names[i], o);
    }
    return all;
}

/* true, or in a few words why not. */
static json_t *yes_or_why(bool yes, const char *why) {
    return yes ? json_true() : json_string(why != NULL ? why : "");
}

static json_t *json_fused(const struct mx_report_fused *f) {
    json_t *o = json_object();
    put(o, "source", yes_or_why(f->source, f->no_source));
    put(o, "checksum", yes_or_why(f->checksum, f->no_checksum));
    put(o, "output", yes_or_why(f->output, f->no_output));
    return o;
}

static json_t *json_predicted_time(const struct mx_report_time *t) {
    json_t *o = json_object();
    put(o, "io_s", json_real(t->io_s));
    put(o, "stall_s", json_real(t->stall_s));
    put(o, "compute_s", json_real(t->compute_s));
    put(o, "copy_s", json_real(t->copy_s));
    put(o, "cores_s", json_real(t->cores_s));
    put(o, "edge_s", json_real(t->edge_s));
    return o;
}

static void put_prediction(json_t *o, const struct mx_report *r) {
    put(o, "predicted_read_bytes", whole(r->predicted_read_bytes));
    put(o, "predicted_write_bytes", whole(r->predicted_write_bytes));
    put(o, "predicted_init_bytes", whole(r->predicted_init_bytes));
    put(o, "predicted_updates", whole(r->predicted_updates));
    put(o, "predicted_seconds", json_real(r->predicted_seconds));
    put(o, "predicted_time", json_predicted_time(&r->predicted_time));
    put(o, "side_file_bytes", whole(r->side_file_bytes));
    put(o, "fused", json_fused(&r->fused));
    put(o, "phases", json_phases(r));
    if (r->accel.name[0] != 0) {
        put(o, "accelerator", json_accel(&r->accel));
        put(o, "predicted_host_to_device_bytes", whole(r->predicted_read_bytes + r->accel.more_put_bytes));
        put(o, "predicted_device_to_host_bytes", whole(r->predicted_write_bytes));
    }
    put(o, "commits", json_commits(r));
}

static void put_measurement(json_t *o, const struct mx_report *r) {
    put(o, "seconds", json_real(r->seconds));
    put(o, "wall_seconds", json_real(r->wall_seconds));
    put(o, "init_seconds", json_real(r->init_seconds));
    put(o, "verify_seconds", r->verified < 0 ? json_null() : json_real(r->verify_seconds));
    put(o, "updates_per_second", json_real(rate(r)));
    put(o, "updates", whole(r->updates));
    put(o, "steps_done", whole(r->steps_done));
    put(o, "resumed_from", whole(r->resumed_from));
    put(o, "nonfinite_cells", whole(r->nonfinite_cells));
    put(o, "read_bytes", whole((int64_t)r->counters.read_bytes));
    put(o, "write_bytes", whole((int64_t)r->counters.write_bytes));
    if (r->accel.name[0] != 0) {
        put(o, "host_to_device_bytes", whole((int64_t)r->accel.put_bytes));
        put(o, "device_to_host_bytes", whole((int64_t)r->accel.get_bytes));
    }
    put(o, "time", json_time(r));
    put(o, "wait_share", json_real(r->seconds > 0 ? r->wait_s / r->seconds : 0));
    put(o, "peak_rss_bytes", whole((int64_t)r->peak_rss_bytes));
    put(o, "block_bytes", whole((int64_t)r->block_bytes));
    put(o, "major_faults", whole((int64_t)r->usage.major_faults));
    put(o, "kernel", json_kernel(&r->usage));
    put(o, "checksum", r->checksum[0] != 0 ? json_string(r->checksum) : json_null());
    put(o, "verified", r->verified < 0 ? json_null() : json_boolean(r->verified));
}

/* Of a kernel's reductions those that a result has. */
static json_t *json_check(const struct mx_norms_result *r, const struct mx_system *s) {
    json_t *o = json_object(), *all = json_object();
    put(o, "step", whole(r->step));
    put(o, "max_change", number(r->max_change));
    put(o, "rms_change", number(r->rms_change));
    for (int32_t i = 0; s != NULL && i < r->n_reduce && i < s->n_reduce; i++) {
        static const char *const kinds[] = {[MX_SUM] = "sum", [MX_MAX] = "max", [MX_MIN] = "min"};
        json_t *one = json_object();
        put(one, kinds[s->reduce[i].kind], number(r->reduce[i]));
        put(one, "spread", number(r->spread[i]));
        put(all, s->reduce[i].name, one);
    }
    put(o, "reductions", all);
    return o;
}

static void put_checks(json_t *o, const struct mx_report *r) {
    json_t *until = json_array(), *norms = json_array(), *met = json_null();
    for (int32_t i = 0; i < r->n_until; i++) json_array_append_new(until, json_string(r->until[i]));
    for (int32_t i = 0; r->history != NULL && i < r->history->n; i++)
        json_array_append_new(norms, json_check(&r->history->kept[i].result, r->problem.system));
    if (r->met.until[0] != 0) {
        met = json_object();
        put(met, "until", json_string(r->met.until));
        put(met, "step", whole(r->met.step));
        put(met, "value", number(r->met.value));
    }
    put(o, "check_every", whole(r->check));
    put(o, "until", until);
    put(o, "met", met);
    put(o, "norms", norms);
}

static json_t *json_files(const struct mx_report *r) {
    json_t *o = json_object();
    for (int32_t i = 0; i < r->n_files; i++) {
        const struct mx_report_file *f = &r->file[i];
        json_t *file = json_object(), *path = json_string(f->path);
        put(file, "path", path != NULL ? path : json_null()); /* bytes that are no UTF-8 */
        if (f->inside[0] != 0 && (path = json_string(f->inside)) != NULL) put(file, "dataset", path);
        put(file, "in_place", json_boolean(f->in_place));
        put(file, "page_cache", json_boolean(f->page_cache));
        if (f->in_place) put(file, "align_bytes", whole(f->align_bytes));
        put(o, f->field, file);
    }
    return o;
}

json_t *mx_report_json(const struct mx_report *r) {
    json_t *o = json_object();
    put(o, "memext", json_string(MX_VERSION));
    put(o, "status", json_string(r->status));
    put(o, "error", r->error != NULL && r->error[0] != 0 ? json_string(r->error) : json_null());
    put(o, "problem", mx_json_problem(&r->problem));
    put(o, "machine", mx_json_machine(&r->machine));
    put(o, "plan", mx_json_plan(&r->plan));
    put(o, "layout", json_layout(&r->layout));
    put(o, "backend", json_string(r->device.backend));
    put(o, "device", json_device(r));
    const char *origin = r->input != NULL ? r->input : r->init; /* NULL with a kernel */
    put(o, r->input != NULL ? "input" : "init", origin != NULL ? json_string(origin) : json_null());
    if (r->n_files > 0) put(o, "files", json_files(r));
    put(o, "dram_budget_bytes", whole((int64_t)r->dram_budget_bytes));
    put(o, "dram_limit_bytes", whole((int64_t)r->dram_limit_bytes));
    put_prediction(o, r);
    if (r->sources > 0) put(o, "sources", whole(r->sources));
    if (r->probes > 0) put(o, "probes", whole(r->probes));
    if (r->check > 0) put_checks(o, r);
    if (r->snapshots.every > 0) put(o, "snapshots", json_snapshots(&r->snapshots));
    if (r->fault_calls > 0) put(o, "fault_calls", whole(r->fault_calls));
    if (strcmp(r->status, "planned") != 0) put_measurement(o, r);
    return o;
}

static double gib(double bytes) { return bytes / 1073741824.0; }

/* Passes besides the sweeps, and what is done without one. */
static void print_fused(const struct mx_report *r, FILE *to) {
    static const enum mx_report_phases passes[] = {MX_PHASE_INIT, MX_PHASE_CHECKSUM, MX_PHASE_OUTPUT};
    static const char *const words[] = {"initialisation", "hash of the result", "output"};
    const struct mx_report_fused *f = &r->fused;
    const char *sep = "";
    fputs("passes     ", to);
    if (f->source) fputs("the first sweep reads the input", to), sep = "; ";
    if (f->checksum || f->output)
        fprintf(to, "%sthe last one is %s", sep,
                !f->output     ? "hashed"
                : !f->checksum ? "written to the output"
                               : "hashed and written to the output"),
            sep = "; ";
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        const struct mx_report_phase *p = &r->phase[passes[i]];
        const int64_t bytes = p->predicted_read_bytes + p->predicted_write_bytes;
        if (bytes == 0) continue;
        fprintf(to, "%s%s %.4f GiB", sep, words[i], gib((double)bytes));
        sep = ", ";
    }
    fputs(sep[0] == 0 ? "none besides the sweeps\n" : "\n", to);
}

static void print_commits(const struct mx_report *r, FILE *to) {
    if (!r->commits)
        fprintf(to, "commits    none: an interrupted run starts again\n");
    else if (r->commit_every_s > r->seconds_a_sweep)
        fprintf(to, "commits    every %g s, with a third Buffer; an interrupted run goes on from there\n",
                r->commit_every_s);
    else
        fprintf(to, "commits    after every sweep, of about %.3g s; an interrupted run goes on from there\n",
                r->seconds_a_sweep);
}

void mx_report_print_plan(const struct mx_report *r, FILE *to) {
    const struct mx_problem *p = &r->problem;
    const struct mx_plan *q = &r->plan;
    fprintf(to, "problem    %lld x %lld x %lld, %lld steps, %s %s, Buffers of %d x %.2f GiB\n",
            (long long)p->nx, (long long)p->ny, (long long)p->nz, (long long)p->nt,
            p->system != NULL ? p->system->name : p->stencil, mx_dtype_name(p->dtype), r->buffers,
            gib((double)r->layout.buffer_bytes));
    if (r->resumed_from > 0 && r->met.until[0] != 0)
        fprintf(to, "resumed    from step %lld, where the run has ended by --until %s\n",
                (long long)r->resumed_from, r->met.until);
    else if (r->resumed_from > 0)
        fprintf(to,
                "resumed    from step %lld: the figures of this run are of the %lld steps that are left\n",
                (long long)r->resumed_from, (long long)(p->nt - r->resumed_from));
    fprintf(to,
            "plan       %s, engine %s, by %lld bz %lld bt %lld, slab %lld, %d thread%s (%s); Blocks %.3f of "
            "%.3f GiB of DRAM\n",
            q->algorithm, q->engine, (long long)q->by, (long long)q->bz, (long long)q->bt, (long long)q->slab,
            q->threads, q->threads == 1 ? "" : "s", q->tuner, gib((double)r->block_bytes),
            gib((double)r->dram_budget_bytes));
    for (int32_t i = 0; i < r->n_files; i++)
        fprintf(to, "%-10s %s of %s%s%s, %s%s\n", i == 0 ? "files" : "", r->file[i].field, r->file[i].path,
                r->file[i].inside[0] != 0 ? ":" : "", r->file[i].inside,
                r->file[i].in_place ? "read in place" : "copied",
                r->file[i].page_cache ? " through the page cache" : "");
    if (r->accel.name[0] != 0)
        fprintf(to, "accel      %s: %s; %.3f GiB of its memory, staged by %.3f GiB of DRAM\n", r->accel.name,
                r->accel.device, gib((double)r->accel.used_bytes), gib((double)r->accel.staging_bytes));
    if (r->accel.name[0] != 0 && r->accel.sharers > 1)
        fprintf(to, "shared     by %d ranks, each with its part of the memory\n", r->accel.sharers);
    if (r->accel.name[0] != 0)
        fprintf(to,
                "model      kernel %.3g Gupdates/s (%s) %.3g s, bus %.3g and %.3g GB/s (%s) %.3g s, flash "
                "%.3g s: %s "
                "decides\n",
                r->accel.updates_per_s * 1e-9, r->accel.kernel_source, r->accel.kernel_s,
                r->accel.put_bytes_per_s * 1e-9, r->accel.get_bytes_per_s * 1e-9, r->accel.bus_source,
                r->accel.bus_s, r->accel.flash_s, slowest(&r->accel));
    if (r->side_file_bytes > 0)
        fprintf(to, "side file  %.4f GiB for the faces between the strips\n",
                gib((double)r->side_file_bytes));
    fprintf(to, "predicted  read %.4f GiB, write %.4f GiB, initialisation %.4f GiB; about %.3g s\n",
            gib((double)r->predicted_read_bytes), gib((double)r->predicted_write_bytes),
            gib((double)r->predicted_init_bytes), r->predicted_seconds);
    print_fused(r, to);
    print_commits(r, to);
    if (r->check > 0) {
        fprintf(to, "checks     every %lld steps", (long long)r->check);
        for (int32_t i = 0; i < r->n_until; i++)
            fprintf(to, "%s %s", i == 0 ? ", until" : " or", r->until[i]);
        fputs(r->n_until > 0 ? "; what is predicted is for all steps\n" : "\n", to);
    }
    if (r->snapshots.every > 0)
        fprintf(to, "snapshots  %lld, every %lld steps, one cell of %lld in x, y and z, %.4f GiB in %s\n",
                (long long)r->snapshots.predicted_count, (long long)r->snapshots.every,
                (long long)r->snapshots.stride, gib((double)r->snapshots.predicted_bytes),
                r->snapshots.directory);
}

static void print_checks(const struct mx_report *r, FILE *to) {
    const struct mx_norms_history *h = r->history;
    const struct mx_system *s = r->problem.system;
    if (h == NULL || h->n == 0) return;
    const struct mx_norms_result *n = &h->kept[h->n - 1].result;
    fprintf(to, "norms      after step %lld: max-change %.6g, rms-change %.6g", (long long)n->step,
            n->max_change, n->rms_change);
    for (int32_t i = 0; s != NULL && i < n->n_reduce && i < s->n_reduce; i++)
        fprintf(to, ", %s %.6g (spread %.3g)", s->reduce[i].name, n->reduce[i], n->spread[i]);
    fputc('\n', to);
    if (r->met.until[0] != 0)
        fprintf(to, "ended      at step %lld of %lld by --until %s\n", (long long)r->met.step,
                (long long)r->problem.nt, r->met.until);
}

void mx_report_print_result(const struct mx_report *r, FILE *to) {
    fprintf(to, "backend    %s on %s%s%s\n", r->device.backend, r->device.place,
            r->device.note[0] != 0 ? "; " : "", r->device.note);
    fprintf(to, "moved      read %.4f GiB, write %.4f GiB%s\n", gib((double)r->counters.read_bytes),
            gib((double)r->counters.write_bytes), r->moves ? "" : " (by the kernel; storage counters)");
    if (r->accel.name[0] != 0)
        fprintf(to, "bus        %.4f GiB to the accelerator, %.4f GiB from it\n",
                gib((double)r->accel.put_bytes), gib((double)r->accel.get_bytes));
    fprintf(to,
            "time       %.3f s of %.3f s (initialisation %.3f s): update %.3f, copy %.3f, waiting %.3f (%.1f "
            "%%); "
            "reads under way %.3f, writes %.3f\n",
            r->seconds, r->wall_seconds, r->init_seconds, r->update_s, r->blk2blk_s, r->wait_s,
            r->seconds > 0 ? 100 * r->wait_s / r->seconds : 0, (double)r->counters.read_ns * 1e-9,
            (double)r->counters.write_ns * 1e-9);
    fprintf(to, "rate       %.4f Gupdates/s, peak RSS %.3f GiB, %llu major faults\n", rate(r) * 1e-9,
            gib((double)r->peak_rss_bytes), (unsigned long long)r->usage.major_faults);
    print_checks(r, to);
    if (r->checksum[0] != 0)
        fprintf(to, "checksum   %s%s\n", r->checksum,
                r->verified < 0 ? ""
                : r->verified   ? ", verified bit by bit"
                                : ", DIFFERENT from the plain computation");
}
