/* SPDX-License-Identifier: BSD-3-Clause */
/* explain.c - writes the report of --explain: the request, what bounds the plan, what was tried, which plan
 * won and why. */
#include "machine/size.h"
#include "tune/job.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static double gib(double bytes) { return bytes / 1073741824.0; }

static void say_problem(FILE *f, const struct mx_tune_request *q, const struct mx_tune_result *r) {
    const struct mx_problem *p = q->problem;
    const struct mx_machine *m = q->machine;
    char extents[MX_EXTENTS_TEXT];
    fprintf(f, "problem   %s cells, %lld steps, %s%s%s: %s Buffers of %.2f GiB\n",
            mx_extents_text(p, extents), (long long)p->nt, p->system != NULL ? p->system->name : p->stencil,
            p->system != NULL ? "" : " ", p->system != NULL ? "" : mx_dtype_name(p->dtype),
            mx_job_state_buffers(&r->shape) == 4 ? "four" : "two", gib((double)r->layout.buffer_bytes));
    for (int32_t i = 0; i < mx_fixed_count(p); i++)
        fprintf(f, "          read-only field %s %s: %.2f GiB\n", p->system->fixed[i].name,
                mx_dtype_name(p->system->fixed[i].dtype), gib((double)r->layout.fixed[i].bytes));
    fprintf(f, "machine   %d cores, %d sockets, L2 %s per core, L3 %s per socket\n", m->cores, m->sockets,
            mx_size(m->l2_bytes).text, mx_size(m->l3_bytes).text);
    fprintf(f, "DRAM      %s visible, less %s reserve and %s for the program: %s for Blocks\n",
            mx_size(r->visible_bytes).text, mx_size(r->reserve_bytes).text, mx_size(r->overhead_bytes).text,
            mx_size(r->room_bytes).text);
}

static void say_rates(FILE *f, const struct mx_rates *r) {
    static const char *const sources[] = {
        [MX_RATES_DEFAULT] = "assumed; --calibrate measures it",
        [MX_RATES_TIMED] = "tiled: from tiles, timed after compilation; --calibrate measures all",
        [MX_RATES_CACHED] = "measured before",
        [MX_RATES_MEASURED] = "measured now",
        [MX_RATES_GIVEN] = "given"};
    fprintf(f, "device    read %.2f, write %.2f, both together %.2f GB/s (%s)\n", r->read_bytes_per_s / 1e9,
            r->write_bytes_per_s / 1e9, r->mixed_bytes_per_s / 1e9, sources[r->device_source]);
    fprintf(f, "compute   tiled %.2f, iblock %.2f (slab by slab %.2f) Gupdates/s, copy %.1f GB/s (%s)\n",
            r->tiled_updates_per_s / 1e9, r->iblock_updates_per_s / 1e9, r->slab_updates_per_s / 1e9,
            r->copy_bytes_per_s / 1e9, sources[r->compute_source]);
}

static void say_sizes(FILE *f, const struct mx_rates *r) {
    const struct mx_tiled_sizes *s = &r->refined.sizes;
    if (s->slab > 0)
        fprintf(
            f,
            "sizes     for the tiled engine, refined for rows of %lld cells: slab %lld, tile %lld, ct %lld\n",
            (long long)r->refined.nx, (long long)s->slab, (long long)s->tile, (long long)s->ct);
}

static void say_constraints(FILE *f, const struct mx_tune_request *q, const struct mx_tune_result *r) {
    fprintf(f,
            "limits    a Block has whole rows; where it is cut, by and bz are at least twice bt times the "
            "radius; bz is nz or a multiple of %lld; Blocks take less than %s\n",
            (long long)r->z_step, mx_size(r->room_bytes).text);
    fprintf(f, "search    tuner %s%s, %lld plans evaluated in %.2f ms\n\n", r->tuner,
            q->exhaustive ? " (exhaustive)" : "", (long long)r->n_evaluated, (double)r->search_ns * 1e-6);
}

static void say_candidate(FILE *f, const struct mx_tune_candidate *c, const struct mx_problem *p) {
    if (!c->fits) {
        fprintf(f, "  %-18s -- %s\n", c->algorithm, c->why);
        return;
    }
    double sweeps = (double)mx_max(1, mx_sweep_count(p, c->shape.max_levels));
    char block[48];
    snprintf(block, sizeof block, "%lld/%lld/%lld", (long long)c->plan.by, (long long)c->plan.bz,
             (long long)c->plan.bt);
    fprintf(f, "  %-18s %-18s %7.0f %10.2f %10.2f %9.2f %9.1f %9.1f %9.1f%s\n", c->algorithm, block, sweeps,
            gib((double)c->traffic.read_bytes) / sweeps, gib((double)c->traffic.write_bytes) / sweeps,
            gib((double)c->dram_bytes), c->seconds.io_s + c->seconds.stall_s,
            c->seconds.compute_s + c->seconds.copy_s + c->seconds.cores_s, c->seconds.total_s,
            c->shape.seams_in_file ? "  (side file)" : "");
}

static void say_candidates(FILE *f, const struct mx_tune_request *q, const struct mx_tune_result *r) {
    fprintf(f, "  %-18s %-18s %7s %10s %10s %9s %9s %9s %9s\n", "algorithm", "by/bz/bt", "sweeps",
            "read/sweep", "write/sw.", "DRAM", "I/O", "compute", "total");
    fprintf(f, "  %-18s %-18s %7s %10s %10s %9s %9s %9s %9s\n", "", "", "", "GiB", "GiB", "GiB", "s", "s",
            "s");
    for (int i = 0; i < r->n_candidates; i++) say_candidate(f, &r->candidates[i], q->problem);
}

static void say_why(FILE *f, const struct mx_tune_result *r) {
    const struct mx_tune_candidate *w = &r->candidates[0], *next = NULL;
    const struct mx_seconds *s = &w->seconds;
    if (r->n_candidates > 1 && r->candidates[1].fits) next = &r->candidates[1];
    const double moving = s->io_s + s->stall_s, computing = s->compute_s + s->cores_s;
    bool io = moving > computing + s->copy_s;
    fprintf(f,
            "\n%s is predicted to take %.1f s: I/O %.1f s, compute %.1f s, copies %.1f s, and %.1f s at the "
            "ends of sweeps. The limit is %s.\n",
            w->algorithm, s->total_s, moving, computing, s->copy_s, s->edge_s,
            s->link_s > moving && s->link_s > computing + s->copy_s ? "the link"
            : io                                                    ? "I/O"
                                                                    : "computing");
    if (s->hindrance_s >= 0.05)
        fprintf(f, "I/O and computing take %.1f s longer, because they hinder each other.\n", s->hindrance_s);
    if (s->link_s > 0)
        fprintf(f, "It sends %.2f GiB to neighbours in %.1f s, and waits %.3f s for theirs.\n",
                gib((double)w->traffic.sent_bytes), s->link_s, s->lag_s);
    if (next == NULL) return;
    double more =
        next->seconds.total_s > 0 ? 100 * (next->seconds.total_s / (s->total_s > 0 ? s->total_s : 1) - 1) : 0;
    double bytes = (double)w->traffic.read_bytes + (double)w->traffic.write_bytes;
    double other = (double)next->traffic.read_bytes + (double)next->traffic.write_bytes;
    fprintf(f,
            "%s would take %.1f s (%+.1f %%) and move %.2f GiB instead of %.2f. Among plans within 2 %% of "
            "the fastest, the one that moves the fewest bytes wins.\n",
            next->algorithm, next->seconds.total_s, more, gib(other), gib(bytes));
}

static void say_seams(FILE *f, const struct mx_tune_result *r) {
    const struct mx_shape *s = &r->shape;
    double rows = (double)(s->max_levels * s->seam_planes * s->seam_rows);
    double slab = rows * (double)r->layout.row_pitch_bytes;
    if (s->seam_slabs == 0) return;
    fprintf(f, "faces     between strips: %.2f GiB in %s\n", gib((double)s->seam_slabs * slab),
            s->seams_in_file ? "a side file, which each sweep writes and reads once" : "DRAM");
}

char *mx_tune_explain(const struct mx_tune_request *request, const struct mx_tune_result *r) {
    char *text = NULL, line[MX_PLAN_LINE_BYTES];
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (f == NULL) return NULL;
    say_problem(f, request, r);
    say_rates(f, &r->rates);
    say_sizes(f, &r->rates);
    say_constraints(f, request, r);
    say_candidates(f, request, r);
    say_why(f, r);
    say_seams(f, r);
    fprintf(f, "plan      %s\n", mx_plan_print(&r->plan, line, sizeof line));
    return fclose(f) == 0 ? text : NULL;
}
