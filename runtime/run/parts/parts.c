/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/parts/parts.h"

#include "machine/minmax.h"
#include "run/state.h"

const struct mx_part *const mx_parts[] = {&mx_part_points, &mx_part_norms, &mx_part_snapshots, NULL};

/* ------------------------------------------------------------------ states that are handed out */

int mx_parts_hand_out(struct mx_run *r, const struct mx_taking *taking) {
    const int32_t n = mx_run_takings(r);
    if (n + 1 == MX_TAKINGS) /* one is left for the last sweep's checksum and output */
        return mx_fail(&r->why, -EINVAL, "more than %d parts of a run ask for its states", MX_TAKINGS - 1);
    r->taking[n] = taking;
    return 0;
}

/* From the Buffers of an algorithm that rewrites them in place, and those of an accelerator, a plane at a
 * time. */
static bool reads_buffers(const struct mx_run *r, const char *algorithm) {
    const struct mx_algorithm *a = mx_algorithm_find(algorithm);
    return r->taking[0] != NULL && a->uses_blocks && (!a->resumable || r->o.accel != NULL);
}

static int64_t common_multiple(int64_t a, int64_t b) {
    int64_t x = a, y = b;
    while (y != 0) {
        const int64_t rest = x % y;
        x = y, y = rest;
    }
    const mx_wide all = (mx_wide)(a / x) * b;
    return all < INT64_MAX ? (int64_t)all : INT64_MAX;
}

/* Planes at steps that some of them want: of each alone, less those that two want, and so on. */
static int64_t planes_taken(const struct mx_run *r) {
    const struct mx_problem *p = &r->o.problem;
    const int32_t n = mx_run_takings(r);
    int64_t all = 0;
    for (uint32_t set = 1; set < UINT32_C(1) << n; set++) {
        int64_t every = 1, stride = 1;
        for (int32_t i = 0; i < n; i++)
            if (set >> i & 1)
                every = common_multiple(every, r->taking[i]->every),
                stride = common_multiple(stride, r->taking[i]->stride);
        const int64_t steps = p->nt / every - r->first_time / every;
        const int64_t before = p->first_plane / stride + (p->first_plane % stride > 0),
                      end = (p->first_plane + p->nz) / stride + ((p->first_plane + p->nz) % stride > 0);
        all += (__builtin_popcount(set) & 1 ? 1 : -1) * steps * (end - before);
    }
    return all;
}

int64_t mx_parts_read_bytes(const struct mx_run *r, const char *algorithm, const struct mx_layout *layout) {
    if (!reads_buffers(r, algorithm)) return 0;
    return planes_taken(r) * layout->plane_pitch_bytes * (mx_form(&r->o.problem) == MX_STAGGERED ? 2 : 1);
}

static bool has_room_for_planes(struct mx_run *r) {
    const uint64_t plane =
        reads_buffers(r, r->tuned.plan.algorithm) ? (uint64_t)r->tuned.layout.plane_pitch_bytes : 0;
    if (plane <= r->taken_plane_bytes) return true;
    r->taken_plane_bytes = plane;
    return false;
}

/* ------------------------------------------------------------------ all parts */

/* The parts that have such a call. */
#define EACH(part, call)                                                                                     \
    for (const struct mx_part *const *part##_at = mx_parts, *part; (part = *part##_at) != NULL; part##_at++) \
        if (part->call != NULL)

#define CALL_ALL(name, call)                                                                                 \
    void name(struct mx_run *r) { EACH(p, call) p->call(r); }

#define CALL_UNTIL_ERROR(name, call)                                                                         \
    int name(struct mx_run *r) {                                                                             \
        int err = 0;                                                                                         \
        EACH(p, call) if (err == 0) err = p->call(r);                                                        \
        return err;                                                                                          \
    }

#define ANY(name, call)                                                                                      \
    bool name(const struct mx_run *r) {                                                                      \
        bool any = false;                                                                                    \
        EACH(p, call) any |= p->call(r);                                                                     \
        return any;                                                                                          \
    }

CALL_ALL(mx_parts_make, make)
CALL_UNTIL_ERROR(mx_parts_take, take)
CALL_UNTIL_ERROR(mx_parts_check, check)
ANY(mx_parts_have_ended, has_ended)
ANY(mx_parts_may_end_early, may_end_early)
CALL_UNTIL_ERROR(mx_parts_open, open)
CALL_UNTIL_ERROR(mx_parts_hold, hold)
CALL_UNTIL_ERROR(mx_parts_begin, begin)
CALL_ALL(mx_parts_note, note)
CALL_UNTIL_ERROR(mx_parts_finish, finish)
CALL_ALL(mx_parts_report, report)
CALL_ALL(mx_parts_abandon, abandon)
CALL_ALL(mx_parts_close, close)

const char *mx_parts_name(const struct mx_run *r, int64_t i, const char **option) {
    EACH(p, names) {
        int64_t n = 0;
        for (const char *path; (path = p->names(r, n, option)) != NULL; n++)
            if (n == i) return path;
        i -= n;
    }
    return NULL;
}

uint64_t mx_parts_dram_bytes(const struct mx_run *r) {
    uint64_t bytes = r->taken_plane_bytes;
    EACH(p, dram_bytes) bytes += p->dram_bytes(r);
    return bytes;
}

bool mx_parts_fit(struct mx_run *r) {
    bool fit = has_room_for_planes(r);
    EACH(p, fits) fit &= p->fits(r);
    return fit;
}

uint64_t mx_parts_accel_bytes(const struct mx_run *r) {
    uint64_t bytes = 0;
    EACH(p, accel_bytes) bytes += p->accel_bytes(r);
    return bytes;
}

void mx_parts_predict(struct mx_run *r) {
    const int64_t read = mx_parts_read_bytes(r, r->algorithm->name, &r->report.layout);
    r->report.predicted_read_bytes += read;
    r->report.accel.more_put_bytes -= read;
    EACH(p, predict) p->predict(r);
}

const char *mx_parts_hinder(const struct mx_run *r) {
    const char *why = NULL;
    EACH(p, hinders) if (why == NULL) why = p->hinders(r);
    return why;
}

int64_t mx_parts_most_ahead(const struct mx_run *r) {
    int64_t most = 0;
    EACH(p, most_ahead) {
        const int64_t levels = p->most_ahead(r);
        if (levels > 0) most = most > 0 ? mx_min(most, levels) : levels;
    }
    return most;
}

int mx_parts_swept(struct mx_run *r, int64_t step, mx_why *why) {
    int result = 0;
    EACH(p, swept) {
        const int one = result < 0 ? 0 : p->swept(r, step, why);
        if (one != 0) result = one;
    }
    return result;
}

bool mx_parts_may_end(const struct mx_run *r, int64_t step) {
    bool any = false;
    EACH(p, may_end) any |= p->may_end(r, step);
    return any;
}

int mx_parts_prepare(struct mx_run *r, int64_t step) {
    int err = 0;
    EACH(p, prepare) if (err == 0) err = p->prepare(r, step);
    return err;
}

const char *mx_parts_failed(const struct mx_run *r) {
    const char *why = NULL;
    EACH(p, failed) if (why == NULL) why = p->failed(r);
    return why;
}
