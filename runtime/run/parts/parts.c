/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/parts/parts.h"

#include "machine/minmax.h"
#include "run/state.h"

const struct mx_part *const mx_parts[] = {
    &mx_part_seconds,   /* simulated seconds of a step */
    &mx_part_points,    /* sources and probes */
    &mx_part_norms,     /* checks: norms of the change, reductions */
    &mx_part_stored,    /* reductions of the state that a check ends with */
    &mx_part_snapshots, /* states, to files */
    NULL,
};

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
    bool fit = mx_parts_have_planes(r);
    EACH(p, fits) fit &= p->fits(r);
    return fit;
}

uint64_t mx_parts_accel_bytes(const struct mx_run *r) {
    uint64_t bytes = 0;
    EACH(p, accel_bytes) bytes += p->accel_bytes(r);
    return bytes;
}

void mx_parts_predict(struct mx_run *r) {
    const int64_t read = mx_parts_read_bytes(r, r->algorithm->name, &r->tuned.shape, &r->report.layout);
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
