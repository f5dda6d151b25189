/* SPDX-License-Identifier: BSD-3-Clause */
/* request.c - completes a request: tuner, engine, rates, and the DRAM that Blocks may take. */
#include "tune/request.h"

#include <memext/backend.h>

#include <errno.h>
#include <string.h>

static int find_tuner(const struct mx_tune_request *q, mx_why *why) {
    bool block = q->manual.by != 0 || q->manual.bz != 0 || q->manual.bt != 0;
    if (q->tuner == NULL) return block ? MANUAL : BLK;
    for (int i = 0; i < N_TUNERS; i++)
        if (strcmp(mx_tuners[i].name, q->tuner) == 0) {
            if (i == MANUAL || !block) return i;
            return mx_fail(why, -EINVAL,
                           "tuner %s chooses the Block itself: leave --block out, or give --tuner manual",
                           q->tuner);
        }
    return mx_fail(why, -EINVAL, "there is no tuner '%s': choose blk, naive or manual", q->tuner);
}

/* Where nothing but a direct algorithm may be chosen, periodic sides in y and z need the engine that computes
 * one level after the other. */
static bool asks_level_by_level(const struct mx_tune_request *q) {
    const struct mx_algorithm *a = q->algorithm != NULL ? mx_algorithm_find(q->algorithm) : NULL;
    const struct mx_sides *s = &q->problem->sides;
    const bool direct = a != NULL ? a->needs_mapped : q->style == MX_TUNE_RESIDENT;
    return direct && (mx_sides_periodic(s, MX_DIM_Y) || mx_sides_periodic(s, MX_DIM_Z));
}

/* Both may have been measured in a cache, where little memory is free beside a large L3
 * (mx_calibration_leaves_caches), or by an older memext. There iblock is as fast as it never is in a run,
 * while tiled hardly gains. So a little more is not enough. Beside an L3 of 480 MiB iblock was found 1.1
 * to 1.2 times as fast as tiled, and a run with it took 3.1 times as long. */
static const double iblock_is_faster = 1.25;

static const char *faster_engine(const struct mx_rates *r) {
    return r->iblock_updates_per_s > iblock_is_faster * r->tiled_updates_per_s ? "iblock" : "tiled";
}

static int find_engine(struct mx_tune_request *q, mx_why *why) {
    const bool device = q->engine != NULL && strcmp(q->engine, "device") == 0;
    if (q->accel != NULL && q->engine != NULL && !device)
        return mx_fail(
            why, -EINVAL,
            "engine %s computes in DRAM, and --accel computes with engine device: leave one of them out",
            q->engine);
    if (q->accel == NULL && device)
        return mx_fail(
            why, -EINVAL,
            "engine device needs an accelerator: name one with --accel, or choose tiled or iblock");
    if (q->accel != NULL) return q->engine = "device", 0;
    if (q->engine == NULL && asks_level_by_level(q)) q->engine = "iblock";
    if (q->engine == NULL) q->engine = faster_engine(&q->rates);
    if (mx_engine_find(q->engine) != NULL) return 0;
    return mx_fail(why, -EINVAL, "there is no engine '%s': choose iblock or tiled", q->engine);
}

static int check_in_place(const struct mx_tune_request *q, mx_why *why) {
    if (!q->manual.in_place || mx_reads_old(q->problem)) return 0;
    return mx_fail(why, -EINVAL,
                   "--in-place needs a kernel that reads the old value (MX_LEAPFROG, MX_STAGGERED); this one "
                   "needs two Buffers: leave --in-place out");
}

static int check_problem(const struct mx_problem *p, mx_why *why) {
    char extents[MX_EXTENTS_TEXT];
    if (p->nx >= 1 && p->ny >= 1 && p->nz >= 1 && p->nt >= 0 && p->h >= 1 && p->h <= MX_MAX_HALO) return 0;
    return mx_fail(why, -EINVAL,
                   "the grid is %s with %lld steps and a halo of %d: extents must be at least 1, steps at "
                   "least 0, the halo 1 to %d",
                   mx_extents_text(p, extents), (long long)p->nt, p->h, MX_MAX_HALO);
}

int mx_tune_complete(const struct mx_tune_request *request, mx_why *why, struct context *out) {
    struct context c = {.q = *request};
    struct mx_tune_request *q = &c.q;
    int err = check_problem(q->problem, why);
    if (err == 0) err = check_in_place(q, why);
    if (err == 0) err = c.tuner = find_tuner(q, why);
    if (err < 0) return err;
    if (q->threads <= 0) q->threads = (int32_t)mx_max(1, q->machine->cores);
    const struct mx_system *s = q->problem->system;
    mx_rates_of_problem(&q->rates, q->problem, q->threads, s == NULL || q->elsewhere ? 0 : s->cell_ns);
    mx_rates_complete(&q->rates, q->threads);
    if ((err = find_engine(q, why)) < 0) return err;
    if (q->dram_bytes == 0) q->dram_bytes = mx_machine_dram_bytes(q->machine);
    if (q->reserve_paper) q->reserve_bytes = mx_machine_reserve_paper(q->machine);
    c.overhead_bytes = q->extra_dram_bytes + (q->reserve_paper ? 0 : MX_TUNE_OVERHEAD_BYTES);
    if (q->style == MX_TUNE_MAPPED && !q->reserve_paper && q->dram_bytes > q->reserve_bytes) {
        uint64_t share = (q->dram_bytes - q->reserve_bytes) / MX_TUNE_CACHE_SHARE;
        c.overhead_bytes += share > MX_TUNE_CACHE_BYTES ? share : MX_TUNE_CACHE_BYTES;
    }
    uint64_t taken = q->reserve_bytes + c.overhead_bytes;
    c.room_bytes = taken < q->dram_bytes ? q->dram_bytes - taken : 0;
    *out = c;
    return 0;
}
