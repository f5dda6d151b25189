/* SPDX-License-Identifier: BSD-3-Clause */
/* verify.c - --verify: the result beside the plain computation. Of ranks rank 0 gets the result of all in
 * DRAM and computes it there once more. */
#include "run/work/work.h"

#include "machine/clock.h"
#include "machine/size.h"

#include <string.h>

enum { MX_WHOLE_ALIGN = 64 };

/* DRAM that a verification may use. */
static uint64_t left_bytes(const struct mx_run *r) {
    struct mx_budget_facts b = {.size = sizeof b};
    mx_budget_facts(r->budget, &b);
    const uint64_t taken =
        b.reserve_bytes + b.used_bytes + MX_TUNE_OVERHEAD_BYTES +
        (r->resident ? (uint64_t)mx_run_buffers(r) * (uint64_t)r->report.layout.buffer_bytes : 0);
    return b.limit_bytes > taken ? b.limit_bytes - taken : 0;
}

/* ------------------------------------------------------------------ of ranks */

/* The Buffers of the whole grid, laid out as those of a rank are, but for C. */
static int lay_whole(struct mx_run *r, struct mx_layout *out) {
    struct mx_layout l = r->report.layout, own;
    int err = mx_layout_make(&r->whole, MX_WHOLE_ALIGN, false, &r->why, &own);
    if (err < 0) return err;
    l.planes = own.planes;
    l.buffer_bytes = l.planes * l.plane_pitch_bytes;
    memcpy(l.fixed, own.fixed, sizeof l.fixed);
    return *out = l, 0;
}

static uint64_t bytes_of_whole(const struct mx_run *r, const struct mx_layout *l) {
    uint64_t bytes = (r->tuned.shape.pairs ? 4 : 2) * (uint64_t)l->buffer_bytes;
    for (int32_t i = 0; i < mx_fixed_count(&r->whole); i++) bytes += (uint64_t)l->fixed[i].bytes;
    return bytes;
}

static struct mx_after after_whole(const struct mx_run *r, const struct mx_layout *l) {
    return (struct mx_after){
        .problem = &r->whole, .layout = l, .sides = r->whole.sides, .sources = r->after.sources};
}

static int check_whole(struct mx_run *r, uint64_t left) {
    struct mx_problem least = r->whole;
    struct mx_layout layout;
    int err = lay_whole(r, &layout);
    if (err < 0) return err;
    const uint64_t need = bytes_of_whole(r, &layout);
    if (need >= left)
        return mx_fail(
            &r->why, -ENOMEM,
            "--verify with several ranks computes on rank 0, where two whole grids need %s of DRAM and %s is "
            "free: raise --dram, or compare the checksum with that of a run with one rank",
            mx_size(need).text, mx_size(left).text);
    const struct mx_after after = after_whole(r, &layout);
    const struct mx_verification v = {
        .problem = &least, .layout = &layout, .after = &after, .memory_bytes = left - need};
    return mx_verify_fits(&v, &r->why);
}

/* Planes of one array in their order, from the ranks that have them, to rank 0. */
struct gathering {
    struct mx_run *r;
    struct mx_plane_stream *own;
};

static int gather_plane(void *context, int64_t z, char *plane) {
    struct gathering *g = context;
    struct mx_run *r = g->r;
    const size_t bytes = (size_t)r->report.layout.plane_pitch_bytes;
    char *from;
    int err = mx_run_hand_plane(r, z - r->whole.h, plane, bytes);
    if (err != 0) return err < 0 ? err : 0;
    err = mx_plane_stream_next(g->own, &from);
    if (err != 1) return err < 0 ? err : -EIO;
    memcpy(plane, from, bytes);
    return 0;
}

static int hand_plane(void *context, int64_t z, char *plane) {
    struct mx_run *r = context;
    const int err = mx_run_hand_plane(r, z - r->whole.h + r->o.problem.first_plane, plane,
                                      (size_t)r->report.layout.plane_pitch_bytes);
    return err < 0 ? err : 0;
}

static int gather_array(struct mx_run *r, mx_buffer *from, mx_buffer *to, const struct mx_layout *whole) {
    struct gathering g = {.r = r};
    if (!mx_run_leads(r))
        return mx_run_pass_layout(r, "verify", from, &r->report.layout, false, hand_plane, r);
    int err = mx_plane_stream_open(from, &r->report.layout, r->budget, false, &r->why, &g.own);
    if (err == 0) err = mx_run_pass_layout(r, "verify", to, whole, true, gather_plane, &g);
    return mx_plane_stream_close(g.own, err);
}

/* Rank 0's Buffers in DRAM: result and scratch of both arrays, and C. */
struct whole {
    struct mx_layout layout;
    mx_device *device;
    mx_buffer *buffer[2][2]; /* result and scratch, array A and B */
    mx_buffer *fixed[MX_MAX_FIXED];
};

static int open_whole(struct mx_run *r, struct whole *w) {
    static const char *const names[2][2] = {{"result", "result-b"}, {"scratch", "scratch-b"}};
    const struct mx_device_options d = {.size = sizeof d, .backend = "dram"};
    const int parts = r->tuned.shape.pairs ? 2 : 1;
    int err = lay_whole(r, &w->layout);
    if (err == 0) err = mx_device_open(&d, &r->why, &w->device);
    for (int i = 0; i < 2 * parts && err == 0; i++)
        err = mx_buffer_create(w->device, names[i / parts][i % parts], (uint64_t)w->layout.buffer_bytes,
                               &r->why, &w->buffer[i / parts][i % parts]);
    for (int32_t i = 0; i < mx_fixed_count(&r->whole) && err == 0; i++) {
        char name[16];
        struct mx_layout layout;
        if (mx_is_profile(&r->whole, i)) continue;
        err = mx_buffer_create(w->device, mx_note_fixed(0, i, name), (uint64_t)w->layout.fixed[i].bytes,
                               &r->why, &w->fixed[i]);
        if (err < 0) break;
        mx_layout_of_fixed(&w->layout, i, &layout);
        struct mx_fields_fill fill = mx_run_fill(r, MX_FIELD_OF_C, i, &layout);
        struct mx_sided_field sided = {r, &layout, r->system->fixed[i].dtype, &fill, 0};
        err = mx_run_pass_layout(r, "fields", w->fixed[i], &layout, true, mx_fill_sided_field, &sided);
    }
    return err;
}

static void close_whole(struct whole *w) {
    for (int i = 0; i < 4; i++) mx_buffer_close(w->buffer[i / 2][i % 2]);
    for (int i = 0; i < MX_MAX_FIXED; i++) mx_buffer_close(w->fixed[i]);
    mx_device_close(w->device);
}

/* 0, 1 = it differs, or < 0. */
static int compute_whole(struct mx_run *r, const struct whole *w) {
    struct mx_fields_fill fill[2] = {mx_run_fill(r, 0, 0, &r->report.layout),
                                     mx_run_fill(r, 1, 0, &r->report.layout)};
    struct mx_sided sided[2] = {{r, 0, mx_plain_plane, r}, {r, 1, mx_fields_fill_plane, &fill[1]}};
    if (r->system != NULL) sided[0] = (struct mx_sided){r, 0, mx_fields_fill_plane, &fill[0]};
    struct mx_problem done = r->whole;
    done.nt = r->report.steps_done;
    const struct mx_after after = after_whole(r, &w->layout);
    struct mx_verification v = {.problem = &done,
                                .layout = &w->layout,
                                .source = mx_fill_sided,
                                .source_context = &sided[0],
                                .device = w->device,
                                .result = w->buffer[0][0],
                                .scratch = w->buffer[1][0],
                                .partner_source = mx_fill_sided,
                                .partner_context = &sided[1],
                                .partner = w->buffer[0][1],
                                .scratch_partner = w->buffer[1][1],
                                .budget = r->budget,
                                .after = &after,
                                .memory_bytes = left_bytes(r) - bytes_of_whole(r, &w->layout),
                                .stop = &r->stop,
                                .progress = mx_run_on_progress,
                                .context = r};
    memcpy(v.fixed, w->fixed, sizeof v.fixed);
    mx_run_begin_phase(r, "verify", "updates", done.nx * done.ny * done.nz * done.nt);
    return mx_verify(&v, &r->why);
}

static int verify_together(struct mx_run *r) {
    const bool first = mx_run_leads(r);
    struct whole w = {.device = NULL};
    const uint64_t begin = mx_clock_ns();
    int err = first ? open_whole(r, &w) : 0, found = 0;
    for (int part = 0; part < (r->tuned.shape.pairs ? 2 : 1) && err == 0; part++)
        err = gather_array(r, mx_run_buffer(r, r->result, part), w.buffer[0][part], &w.layout);
    if (err == 0 && first) found = compute_whole(r, &w);
    if (found < 0) err = found;
    close_whole(&w);
    if (err == 0) err = mx_run_share_bytes(r, &found, sizeof found);
    r->report.verify_seconds = mx_seconds_since(begin);
    if (err < 0) return err;
    r->report.verified = found == 0;
    if (found != 0) mx_run_one_says(r);
    return 0;
}

/* ------------------------------------------------------------------ whoever it is */

/* Before the work, and not after it. A criterion may end the run at the first check. */
int mx_run_check_verify(struct mx_run *r, uint64_t left) {
    struct mx_problem least = r->o.problem;
    const struct mx_after after = {.sides = r->sides};
    if (!r->o.verify) return 0;
    if (mx_is_cut(&r->o.problem)) return mx_run_first_finds(r, check_whole, left);
    if (mx_parts_may_end_early(r) && least.nt > least.due[0] && least.due[0] > 0) least.nt = least.due[0];
    const struct mx_verification v = {.problem = &least,
                                      .layout = &r->report.layout,
                                      .one_pass = r->n_buffers < 2,
                                      .after = &after,
                                      .memory_bytes = left};
    return mx_verify_fits(&v, &r->why);
}

int mx_run_verify(struct mx_run *r) {
    if (mx_is_cut(&r->o.problem)) return verify_together(r);
    const int32_t other = r->result == 0 ? 1 : 0;
    struct mx_fields_fill fill[2] = {mx_run_fill(r, 0, 0, &r->report.layout),
                                     mx_run_fill(r, 1, 0, &r->report.layout)};
    struct mx_sided sided[2] = {{r, 0, mx_plain_plane, r}, {r, 1, mx_fields_fill_plane, &fill[1]}};
    if (r->system != NULL) sided[0] = (struct mx_sided){r, 0, mx_fields_fill_plane, &fill[0]};
    struct mx_problem done = r->o.problem; /* a criterion may have ended it before its last step */
    done.nt = r->report.steps_done;
    struct mx_verification v = {.problem = &done,
                                .layout = &r->report.layout,
                                .source = mx_fill_sided,
                                .source_context = &sided[0],
                                .device = r->device,
                                .result = r->buffer[r->result],
                                .scratch = r->buffer[other],
                                .one_pass = r->buffer[other] == NULL,
                                .partner_source = mx_fill_sided,
                                .partner_context = &sided[1],
                                .partner = r->partner[r->result],
                                .scratch_partner = r->partner[other],
                                .budget = r->budget,
                                .after = mx_run_asks(r) ? &r->after : NULL,
                                .memory_bytes = left_bytes(r),
                                .stop = &r->stop,
                                .progress = mx_run_on_progress,
                                .context = r};
    memcpy(v.fixed, r->fixed, sizeof v.fixed);
    const struct mx_problem *p = &done;
    uint64_t begin = mx_clock_ns();
    mx_run_begin_phase(r, "verify", "updates", p->nx * p->ny * p->nz * p->nt);
    int err = mx_verify(&v, &r->why);
    r->report.verify_seconds = mx_seconds_since(begin);
    if (err < 0) return err;
    r->report.verified = err == 0;
    return 0;
}
