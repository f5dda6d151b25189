/* SPDX-License-Identifier: BSD-3-Clause */
/* report_text.c - a report as the lines that a user reads. */
#include "observe/report_private.h"

#include "machine/size.h"

#include <stdio.h>

/* Passes besides the sweeps, and what is done without one. */
static void print_fused(const struct mx_report *r, FILE *to) {
    static const enum mx_report_phases passes[] = {MX_PHASE_INIT, MX_PHASE_CHECKSUM, MX_PHASE_OUTPUT};
    static const char *const words[] = {"initialisation", "hash of the result", "output"};
    const struct mx_report_fused *f = &r->fused;
    const char *sep = "";
    fputs("passes     ", to);
    if (f->source)
        fprintf(to, "the first sweep %s", f->made ? "makes the initial grid" : "reads the input"), sep = "; ";
    if (f->checksum || f->output)
        fprintf(to, "%sthe last sweep %s", sep,
                !f->output     ? "hashes its result"
                : !f->checksum ? "writes the output"
                               : "hashes its result and writes the output"),
            sep = "; ";
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        const struct mx_report_phase *p = &r->phase[passes[i]];
        const int64_t bytes = p->predicted_read_bytes + p->predicted_write_bytes;
        if (bytes == 0) continue;
        fprintf(to, "%s%s %s", sep, words[i], mx_size((uint64_t)bytes).text);
        sep = ", ";
    }
    fputs(sep[0] == 0 ? "only the sweeps\n" : "\n", to);
}

static void print_commits(const struct mx_report *r, FILE *to) {
    if (!r->commits)
        fprintf(to, "commits    none: an interrupted run must start again\n");
    else if (r->sweeps <= 1)
        fprintf(to, "commits    at the end: the run is one sweep of about %.3g s\n", r->seconds_a_sweep);
    else if (r->commit_every_s > r->seconds_a_sweep)
        fprintf(
            to,
            "commits    every %g s, with a third Buffer; an interrupted run can resume from the last one\n",
            r->commit_every_s);
    else
        fprintf(
            to,
            "commits    after every sweep of about %.3g s; an interrupted run can resume from the last one\n",
            r->seconds_a_sweep);
}

static void print_accel(const struct mx_report_accel *a, FILE *to) {
    if (a->name[0] == 0) return;
    fprintf(to, "accel      %s: %s; %s of its memory, %s of DRAM as staging\n", a->name, a->device,
            mx_size((uint64_t)a->used_bytes).text, mx_size((uint64_t)a->staging_bytes).text);
    if (a->sharers > 1) fprintf(to, "shared     by %d ranks, each with its part of the memory\n", a->sharers);
    fprintf(to,
            "model      kernel at %.3g Gupdates/s (%s) takes %.3g s, bus at %.3g GB/s to it and %.3g GB/s "
            "from it (%s) %.3g s, flash %.3g s; the slowest is the %s\n",
            a->updates_per_s * 1e-9, a->kernel_source, a->kernel_s, a->put_bytes_per_s * 1e-9,
            a->get_bytes_per_s * 1e-9, a->bus_source, a->bus_s, a->flash_s, mx_report_slowest(a));
}

/* The fields of a kernel with their types. */
static void print_fields(const struct mx_field_of *field, int32_t n, const char *before, FILE *to) {
    for (int32_t i = 0; i < n; i++)
        fprintf(to, "%s%s %s", i == 0 ? before : ", ", field[i].name, mx_dtype_name(field[i].dtype));
}

static bool are_alike(const struct mx_field_of *field, int32_t n, enum mx_dtype dtype) {
    for (int32_t i = 0; i < n; i++)
        if (field[i].dtype != dtype) return false;
    return true;
}

/* One type, or those of all fields where they differ. */
static void print_types(const struct mx_problem *p, FILE *to) {
    const struct mx_system *s = p->system;
    if (s == NULL ||
        (are_alike(s->field[0], s->n_field[0], p->dtype) && are_alike(s->field[1], s->n_field[1], p->dtype) &&
         are_alike(s->fixed, s->n_fixed, p->dtype))) {
        fputs(mx_dtype_name(p->dtype), to);
        return;
    }
    print_fields(s->field[0], s->n_field[0], "(", to);
    if (s->form == MX_STAGGERED) print_fields(s->field[1], s->n_field[1], ", ", to);
    print_fields(s->fixed, s->n_fixed, "; read-only ", to);
    fputc(')', to);
}

void mx_report_print_plan(const struct mx_report *r, FILE *to) {
    const struct mx_problem *p = &r->problem;
    const struct mx_plan *q = &r->plan;
    char extents[MX_EXTENTS_TEXT];
    fprintf(to, "problem    %s, %lld steps, %s ", mx_extents_text(p, extents), (long long)p->nt,
            p->system != NULL ? p->system->name : p->stencil);
    print_types(p, to);
    fprintf(to, ", Buffers of %d x %s\n", r->buffers, mx_size((uint64_t)r->layout.buffer_bytes).text);
    if (r->simulated.known)
        fprintf(to, "simulated  %.6g s, %s%.6g s\n", mx_simulated_s(&r->simulated, p->nt),
                r->simulated.each != NULL ? "each step with its own length, the first of " : "steps of ",
                r->simulated.step_s);
    if (r->calls != NULL && r->calls[0] != 0)
        fprintf(to, "calls      %s: bits of the result depend on the machine and its C library\n", r->calls);
    if (r->resumed_from > 0 && r->met.until[0] != 0)
        fprintf(to, "resumed    from step %lld, where --until %s ended the run\n", (long long)r->resumed_from,
                r->met.until);
    else if (r->resumed_from > 0)
        fprintf(to, "resumed    from step %lld: the figures below are for the remaining %lld steps\n",
                (long long)r->resumed_from, (long long)(p->nt - r->resumed_from));
    fprintf(to,
            "plan       %s, engine %s, by %lld bz %lld bt %lld, slab %lld, %d thread%s (%s); Blocks %s of %s "
            "of DRAM\n",
            q->algorithm, q->engine, (long long)q->by, (long long)q->bz, (long long)q->bt, (long long)q->slab,
            q->threads, q->threads == 1 ? "" : "s", q->tuner, mx_size((uint64_t)r->block_bytes).text,
            mx_size((uint64_t)r->dram_budget_bytes).text);
    for (int32_t i = 0; i < r->n_files; i++)
        fprintf(to, "%-10s %s of %s%s%s, %s%s\n", i == 0 ? "files" : "", r->file[i].field, r->file[i].path,
                r->file[i].inside[0] != 0 ? ":" : "", r->file[i].inside,
                r->file[i].alike[0] != 0 ? "held in DRAM"
                : r->file[i].in_place    ? "read in place"
                                         : "copied",
                r->file[i].page_cache ? " through the page cache" : "");
    print_accel(&r->accel, to);
    if (r->side_file_bytes > 0)
        fprintf(to, "side file  %s for the faces between the strips\n",
                mx_size((uint64_t)r->side_file_bytes).text);
    fprintf(to, "predicted  read %s, write %s, initialisation %s; about %.3g s\n",
            mx_size((uint64_t)r->predicted_read_bytes).text, mx_size((uint64_t)r->predicted_write_bytes).text,
            mx_size((uint64_t)r->predicted_init_bytes).text, r->predicted_seconds);
    print_fused(r, to);
    print_commits(r, to);
    if (r->check > 0) {
        fprintf(to, "checks     every %lld steps", (long long)r->check);
        for (int32_t i = 0; i < r->n_until; i++)
            fprintf(to, "%s %s", i == 0 ? ", until" : " or", r->until[i]);
        fputs(r->n_until > 0 ? "; the prediction counts all steps\n" : "\n", to);
    }
    if (r->snapshots.every > 0)
        fprintf(to, "snapshots  %lld, every %lld steps, one cell of %lld in %s, %s in %s\n",
                (long long)r->snapshots.predicted_count, (long long)r->snapshots.every,
                (long long)r->snapshots.stride, p->flat ? "x and y" : "x, y and z",
                mx_size((uint64_t)r->snapshots.predicted_bytes).text, r->snapshots.directory);
}

static void print_checks(const struct mx_report *r, FILE *to) {
    const struct mx_norms_history *h = r->history;
    const struct mx_system *s = r->problem.system;
    if (h == NULL || h->n == 0) return;
    const struct mx_norms_result *n = &h->kept[h->n - 1].result;
    char at[MX_SIMULATED_TEXT];
    const bool stages = mx_has_stages(&r->problem); /* then no change is known */
    fprintf(to, "norms      after step %lld%s:", (long long)n->step,
            mx_simulated_text(&r->simulated, n->step, at));
    if (!stages) fprintf(to, " max-change %.6g, rms-change %.6g", n->max_change, n->rms_change);
    for (int32_t i = 0; s != NULL && i < n->n_reduce && i < s->n_reduce; i++)
        fprintf(to, "%s %s %.6g (spread %.3g)", stages && i == 0 ? "" : ",", s->reduce[i].name, n->reduce[i],
                n->spread[i]);
    fputc('\n', to);
    if (r->met.until[0] != 0)
        fprintf(to, "ended      at step %lld of %lld%s by --until %s\n", (long long)r->met.step,
                (long long)r->problem.nt, mx_simulated_text(&r->simulated, r->met.step, at), r->met.until);
}

void mx_report_print_result(const struct mx_report *r, FILE *to) {
    char verified[48] = "";
    if (r->verified >= 0) snprintf(verified, sizeof verified, ", verification %.3f s", r->verify_seconds);
    fprintf(to, "backend    %s on %s%s%s\n", r->device.backend, r->device.place,
            r->device.note[0] != 0 ? "; " : "", r->device.note);
    fprintf(to, "moved      read %s, write %s%s\n", mx_size((uint64_t)r->counters.read_bytes).text,
            mx_size((uint64_t)r->counters.write_bytes).text,
            r->moves ? "" : " (by the operating system; storage counters)");
    if (r->accel.name[0] != 0)
        fprintf(to, "bus        %s to the accelerator, %s from it\n",
                mx_size((uint64_t)r->accel.put_bytes).text, mx_size((uint64_t)r->accel.get_bytes).text);
    fprintf(to,
            "time       sweeps %.3f s of %.3f s in all (initialisation %.3f s%s): update %.3f s, copy "
            "%.3f s, waiting %.3f s (%.1f %%); reads under way %.3f s, writes %.3f s\n",
            r->seconds, r->wall_seconds, r->init_seconds, verified, r->update_s, r->blk2blk_s, r->wait_s,
            r->seconds > 0 ? 100 * r->wait_s / r->seconds : 0, (double)r->counters.read_ns * 1e-9,
            (double)r->counters.write_ns * 1e-9);
    fprintf(to, "rate       %.4f Gupdates/s, peak RSS %s, %llu major faults\n", mx_report_rate(r) * 1e-9,
            mx_size((uint64_t)r->peak_rss_bytes).text, (unsigned long long)r->usage.major_faults);
    print_checks(r, to);
    if (r->checksum[0] != 0)
        fprintf(to, "checksum   %s%s\n", r->checksum,
                r->verified < 0 ? ""
                : r->verified   ? ", verified bit by bit"
                                : ", DIFFERENT from the plain computation");
}
