/* SPDX-License-Identifier: BSD-3-Clause */
/* report_text.c - a report as the lines that a user reads. */
#include "observe/report_private.h"

#include <stdio.h>

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
                r->accel.bus_s, r->accel.flash_s, mx_report_slowest(&r->accel));
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
    fprintf(to, "rate       %.4f Gupdates/s, peak RSS %.3f GiB, %llu major faults\n",
            mx_report_rate(r) * 1e-9, gib((double)r->peak_rss_bytes),
            (unsigned long long)r->usage.major_faults);
    print_checks(r, to);
    if (r->checksum[0] != 0)
        fprintf(to, "checksum   %s%s\n", r->checksum,
                r->verified < 0 ? ""
                : r->verified   ? ", verified bit by bit"
                                : ", DIFFERENT from the plain computation");
}
