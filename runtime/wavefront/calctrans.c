/* SPDX-License-Identifier: BSD-3-Clause */
#include "wavefront/calctrans.h"
#include "ask/size.h"
#include "machine/minmax.h"
#include "machine/size.h"
#include "wavefront/kernel.h"

#include <errno.h>
#include <memext/backend.h>
#include <string.h>

/* ---- bytes */

int64_t mx_wf_slot_bytes(const struct mx_wf_geometry *g) {
    return ((g->mb - 1) / MX_WF_LANES + 1) * mx_wf_group_bytes(g->cols);
}

static int64_t set_bytes(const struct mx_wf_geometry *g) {
    int64_t bytes = 0;
    for (int m = 0; m < MX_WF_MATRICES; m++) bytes += mx_wf_most_tile_bytes(g, (enum mx_wf_matrix)m);
    return bytes;
}

int64_t mx_wf_dram_bytes(const struct mx_wf_plan *p) {
    const struct mx_wf_geometry *g = &p->geometry;
    return mx_wf_slots(p) * mx_wf_slot_bytes(g) + p->ahead * set_bytes(g) +
           p->behind * mx_wf_most_tile_bytes(g, MX_WF_ZA) + 2 * (g->cols + 2) * (int64_t)sizeof(double);
}

static int64_t all_bytes(const struct mx_wf_geometry *g) {
    int64_t all = 0;
    for (int m = 0; m < MX_WF_MATRICES; m++) all += mx_wf_buffer_bytes(g, (enum mx_wf_matrix)m);
    return all;
}

/* No fewer bytes than all_bytes, where those are beyond 64 bits too. */
static double most_bytes(const struct mx_wf_geometry *g) {
    double tile = 0;
    for (int m = 0; m < MX_WF_MATRICES; m++)
        tile = mx_max_real(tile, (double)mx_wf_most_tile_bytes(g, (enum mx_wf_matrix)m));
    return tile * (double)g->tile_rows * (double)g->tile_cols * MX_WF_MATRICES;
}

void mx_wf_predict(const struct mx_wf_plan *p, int64_t iterations, struct mx_wf_traffic *out) {
    const struct mx_wf_geometry *g = &p->geometry;
    const int64_t all = all_bytes(g);
    const int64_t data = mx_wf_buffer_bytes(g, MX_WF_ZA), passes = (iterations + p->waves - 1) / p->waves;
    *out = (struct mx_wf_traffic){.passes = passes,
                                  .read_bytes = passes * all,
                                  .write_bytes = passes * data,
                                  .load_bytes = all,
                                  .updates = iterations * g->rows * g->cols};
}

/* ---- tuner */

#define REQUEST_S 20e-6 /* of a transfer, beyond its bytes */

/* Transfers of a pass: a request reaches as far as a span does. */
static double requests(const struct mx_wf_geometry *g) {
    double tiles = (double)g->tile_rows * (double)g->tile_cols;
    return tiles * (g->layout == MX_WF_ROW ? (double)g->mb : 1) * (MX_WF_MATRICES + 1);
}

/* One group alone keeps too few operations under way for the machine: half the speed of two. */
static double rate(const struct mx_wf_request *q, const struct mx_wf_geometry *g) {
    const double two = q->updates_per_s > 0 ? q->updates_per_s : 3e8;
    const int64_t groups = (g->mb - 1) / MX_WF_LANES + 1;
    const double filled = (double)g->mb / (double)(groups * MX_WF_LANES);
    return (groups == 1 ? 0.6 : 1) * two * filled;
}

static double seconds(const struct mx_wf_request *q, const struct mx_wf_choice *c) {
    const double read = q->read_bytes_per_s > 0 ? q->read_bytes_per_s : 1e9;
    const double write = q->write_bytes_per_s > 0 ? q->write_bytes_per_s : 1e9;
    const double io = (double)c->traffic.read_bytes / read + (double)c->traffic.write_bytes / write +
                      (double)c->traffic.passes * requests(&c->plan.geometry) * REQUEST_S;
    const double compute =
        (double)c->traffic.updates / (rate(q, &c->plan.geometry) * (double)c->plan.threads);
    return io > compute ? io : compute;
}

/* Two tile rows are read ahead, one is written behind, where DRAM is left for them. */
static bool fit(const struct mx_wf_request *q, struct mx_wf_plan *p) {
    const struct mx_wf_geometry *g = &p->geometry;
    int64_t wish = q->ahead > 0 ? q->ahead : mx_max(2 * g->tile_cols, 3);
    p->ahead = 1, p->behind = 1;
    const int64_t left = (int64_t)q->dram_bytes - mx_wf_dram_bytes(p);
    if (left < 0) return false;
    const int64_t pair = set_bytes(g) + mx_wf_most_tile_bytes(g, MX_WF_ZA);
    const int64_t more = left / pair;
    p->ahead = mx_min(wish, 1 + more);
    p->behind = mx_min(mx_max(g->tile_cols, 2), 1 + more);
    return q->ahead == 0 || p->ahead == q->ahead;
}

static int try_plan(const struct mx_wf_request *q, int64_t mb, int64_t nb, int64_t waves, mx_why *why,
                    struct mx_wf_choice *best) {
    struct mx_wf_choice c = {.plan = {.waves = waves, .threads = q->threads, .unchained = q->unchained}};
    int err = mx_wf_geometry(q->rows, q->cols, q->layout, mb, nb, q->align_bytes, why, &c.plan.geometry);
    if (err < 0) return err;
    if (!fit(q, &c.plan)) return 0;
    if (most_bytes(&c.plan.geometry) * (double)mx_max(q->iterations, 1) >= 0x1p62)
        return mx_fail(
            why, -EOVERFLOW,
            "%lld iterations over matrices of %lld x %lld move more bytes than memext can count: give "
            "fewer --iterations, smaller matrices or larger tiles",
            (long long)q->iterations, (long long)q->rows, (long long)q->cols);
    mx_wf_predict(&c.plan, q->iterations, &c.traffic);
    c.dram_bytes = mx_wf_dram_bytes(&c.plan);
    c.seconds = seconds(q, &c);
    c.tried = best->tried + 1;
    const bool better = best->tried == 0 || c.seconds < best->seconds * 0.999 ||
                        (c.seconds <= best->seconds * 1.001 && c.dram_bytes < best->dram_bytes);
    if (better)
        *best = c;
    else
        best->tried++;
    return 0;
}

/* As few waves as give the same number of passes: they need less DRAM. */
static int64_t even_waves(int64_t iterations, int64_t most) {
    if (iterations <= 1) return 1;
    const int64_t passes = (iterations + most - 1) / most;
    return (iterations + passes - 1) / passes;
}

static int try_waves(const struct mx_wf_request *q, int64_t mb, int64_t nb, mx_why *why,
                     struct mx_wf_choice *best) {
    if (q->waves > 0) return try_plan(q, mb, nb, mx_min(q->waves, mx_max(q->iterations, 1)), why, best);
    int64_t last = 0;
    for (int64_t most = 1;; most += mx_max(1, most / 8)) {
        const int64_t waves = even_waves(q->iterations, mx_min(most, mx_max(q->iterations, 1)));
        if (waves != last) {
            const int64_t before = best->tried;
            int err = try_plan(q, mb, nb, waves, why, best);
            if (err < 0) return err;
            if (best->tried == before) return 0; /* more waves need more still */
        }
        last = waves;
        if (most >= q->iterations) return 0;
    }
}

/* Widths of tiles whose transfers are of 64 KiB to 4 MiB; and whole rows. */
static int try_widths(const struct mx_wf_request *q, int64_t mb, mx_why *why, struct mx_wf_choice *best) {
    if (q->nb > 0) return try_waves(q, mb, q->nb, why, best);
    int err = try_waves(q, mb, q->cols, why, best);
    for (int64_t bytes = 64 << 10; bytes <= 4 << 20 && err == 0; bytes *= 2) {
        const int64_t nb = mx_max(1, bytes / (8 * mx_min(mb, q->rows)));
        if (nb < q->cols) err = try_waves(q, mb, nb, why, best);
    }
    return err;
}

static int refuse(const struct mx_wf_request *q, mx_why *why) {
    struct mx_wf_plan p = {.waves = q->waves > 0 ? q->waves : 1,
                           .threads = q->threads,
                           .ahead = q->ahead > 0 ? q->ahead : 1,
                           .behind = 1};
    const int64_t mb = q->mb > 0 ? q->mb : MX_WF_LANES, nb = q->nb > 0 ? q->nb : 1024;
    int err = mx_wf_geometry(q->rows, q->cols, q->layout, mb, nb, q->align_bytes, why, &p.geometry);
    if (err < 0) return err;
    const int64_t need = mx_wf_dram_bytes(&p);
    return mx_fail(
        why, -ENOMEM,
        "%lld wave%s in tile rows of %lld x %lld cells with %d threads need%s %s of DRAM, and %s is free "
        "beside the %s of the program: raise --dram to %lldMiB, or lower --waves, --ahead, "
        "--threads or --tile",
        (long long)p.waves, p.waves == 1 ? "" : "s", (long long)p.geometry.mb, (long long)q->cols, p.threads,
        p.waves == 1 ? "s" : "", mx_size((uint64_t)need).text, mx_size(q->dram_bytes).text,
        mx_size(q->program_bytes).text, (need + (long long)q->program_bytes + (1 << 20) - 1) >> 20);
}

int mx_wf_tune(const struct mx_wf_request *q, mx_why *why, struct mx_wf_choice *out) {
    static const int64_t heights[] = {8, 16, 24, 32, 48, 64, 96, 128, 192, 256};
    struct mx_wf_choice best = {.tried = 0};
    int err = 0;
    if (q->mb > 0)
        err = try_widths(q, q->mb, why, &best);
    else
        for (size_t i = 0; i < sizeof heights / sizeof heights[0] && err == 0; i++)
            err = try_widths(q, heights[i], why, &best);
    if (err < 0) return err;
    if (best.tried == 0) return refuse(q, why);
    strcpy(best.plan.tuner, q->mb > 0 && q->nb > 0 && q->waves > 0 ? "manual" : "auto");
    *out = best;
    return 0;
}
