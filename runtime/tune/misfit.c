/* SPDX-License-Identifier: BSD-3-Clause */
/* misfit.c - why no plan fits, and what would: the sentences of a search that found nothing. */
#include "machine/size.h"
#include "tune/request.h"

#include "execute/execute.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PITCHES = 100 };

/* The smallest --dram with which blk finds a plan; 0 = none at any size. */
static uint64_t smallest_dram(const struct context *c, const struct job *job, struct mx_plan *plan) {
    struct job least = *job;
    least.by_dram = true;
    least.found = false;
    least.room_bytes = UINT64_MAX;
    least.z_step = 1;
    mx_job_thinnest(&least);
    mx_job_search(&least);
    if (mx_job_may_file(&least)) {
        strcpy(least.base.seams, MX_SEAMS_IN_FILE);
        mx_job_search(&least);
    }
    if (!least.found) return 0;
    *plan = least.best.plan;
    uint64_t bytes = least.best.dram_bytes + 1 + c->q.reserve_bytes + c->overhead_bytes;
    return (bytes + TUNE_MIB - 1) / TUNE_MIB * TUNE_MIB;
}

static uint64_t resident_bytes(const struct job *job, const struct mx_plan *plan) {
    struct mx_shape shape;
    job->algorithm->shape(&job->problem, plan, &shape);
    return mx_job_resident_bytes(mx_job_layout(job, plan), &shape);
}

/* The smallest memory of an accelerator that would do; 0 = none. And DRAM with it. */
static uint64_t smallest_device(const struct job *job, uint64_t *dram_bytes) {
    struct job least = *job;
    least.by_dram = true;
    least.found = false;
    least.room_bytes = least.device_bytes = UINT64_MAX;
    least.z_step = 1;
    if (least.base.slab == 0) least.base.slab = 1;
    if (job->request->manual.ahead == 0) least.base.ahead = 1;
    mx_job_search(&least);
    *dram_bytes = least.best.dram_bytes;
    return least.found ? least.best.device_bytes : 0;
}

static void explain_misfit_there(const struct context *c, const struct job *job,
                                 struct mx_tune_candidate *out) {
    uint64_t dram = 0;
    const uint64_t device = smallest_device(job, &dram);
    const char *name = job->algorithm->name;
    if (device == 0 && c->q.layout != NULL) {
        mx_why rows;
        mx_tune_explain_layout(&c->q, name, &rows);
        snprintf(out->why, sizeof out->why, "%.300s", rows.text);
    } else if (device == 0)
        snprintf(out->why, sizeof out->why, "%s has no plan for this grid on an accelerator", name);
    else if (device > job->device_bytes)
        snprintf(out->why, sizeof out->why,
                 "every plan of %s needs more than the %s of memory of %.60s; the smallest needs %s: raise "
                 "--device-memory%s, or leave --accel out",
                 name, mx_size(job->device_bytes).text, job->request->accel->device, mx_size(device).text,
                 job->request->accel->here ? " or memory= of --accel host" : "");
    else
        snprintf(out->why, sizeof out->why,
                 "every plan of %s needs more than the %s of DRAM that the accelerator leaves (with %s of "
                 "its memory); the smallest needs %s: raise --dram",
                 name, mx_size(c->room_bytes).text, mx_size(job->device_bytes).text, mx_size(dram + 1).text);
}

/* How far apart the rows of a store are, which of two dimensions are its planes. */
static const char *pitches(const struct mx_tune_request *q, char text[PITCHES]) {
    const long long row = q->layout->row_pitch_bytes, plane = q->layout->plane_pitch_bytes;
    if (q->problem->flat)
        snprintf(text, PITCHES, "its rows of %lld bytes begin every %lld bytes", row, plane);
    else
        snprintf(text, PITCHES, "its rows begin every %lld bytes, its planes every %lld bytes", row, plane);
    return text;
}

/* Can the device transfer what a sweep over whole planes reads? Not rows of files that are read in place and
 * do not suit it. */
static bool transfers_whole_planes(const struct job *job) {
    struct mx_plan whole = mx_job_with_block(job, job->problem.ny, job->problem.nz, job->bt_min);
    return mx_job_can_transfer(job, &whole);
}

void mx_tune_explain_misfit(const struct context *c, const struct job *job, struct mx_tune_candidate *out) {
    struct mx_plan p;
    char text[PITCHES];
    const char *name = job->algorithm->name;
    if (c->q.accel != NULL) {
        explain_misfit_there(c, job, out);
        return;
    }
    out->smallest_dram_bytes = smallest_dram(c, job, &p);
    if (out->smallest_dram_bytes == 0 && c->q.layout != NULL)
        snprintf(out->why, sizeof out->why, "%s has no plan for this store on this device: %s", name,
                 pitches(&c->q, text));
    else if (out->smallest_dram_bytes == 0 && !transfers_whole_planes(job)) {
        mx_why rows;
        mx_tune_explain_layout(&c->q, name, &rows);
        snprintf(out->why, sizeof out->why, "%.300s", rows.text);
    } else if (out->smallest_dram_bytes == 0)
        snprintf(out->why, sizeof out->why, "%s has no plan for this grid at any size of DRAM", name);
    else if (job->resident && job->algorithm->needs_mapped)
        snprintf(out->why, sizeof out->why,
                 "%s needs %s in DRAM: %s, and %s is free; the smallest DRAM that works is %s", name,
                 mx_fixed_count(&job->problem) > 0 ? "all Buffers, read-only fields included,"
                                                   : "both Buffers",
                 mx_size(resident_bytes(job, &p)).text, mx_size(c->room_bytes).text,
                 mx_size(out->smallest_dram_bytes).text);
    else
        snprintf(out->why, sizeof out->why,
                 "every plan of %s needs more than the %s that is left for Blocks; the smallest DRAM that "
                 "works is %s (by=%lld bz=%lld bt=%lld)",
                 name, mx_size(c->room_bytes).text, mx_size(out->smallest_dram_bytes).text, (long long)p.by,
                 (long long)p.bz, (long long)p.bt);
}

/* Do the rows of a store suit the device? Then files of read-only fields that are read in place do not, or
 * there is no store yet. */
static bool suits(const struct mx_tune_request *q) {
    const struct mx_layout *l = q->layout;
    return !q->whole_planes && (l == NULL || (l->row_pitch_bytes % q->offset_align_bytes == 0 &&
                                              l->plane_pitch_bytes % q->offset_align_bytes == 0));
}

/* The rows of the store do not suit the device: the ways out that are left. */
int mx_tune_explain_layout(const struct mx_tune_request *q, const char *what, mx_why *why) {
    const uint32_t align = q->offset_align_bytes;
    const bool flat = q->problem->flat;
    /* Rows of two dimensions are never cut into strips. */
    const char *stream = flat ? "--algorithm stream" : "--algorithm stream without strips (BY = NY)";
    const char *leave = q->accel != NULL ? "leave --accel out" : "";
    char text[PITCHES];
    if (suits(q))
        return mx_fail(why, -EINVAL,
                       "%s cannot use direct transfers: with y=periodic it reads rows of read-only fields at "
                       "the other end, and in the files that the run reads in place these do not begin at "
                       "multiples of %u bytes; %s%schoose --backend mmap",
                       what, align, leave, leave[0] != 0 ? " or " : "");
    if (q->whole_planes)
        return mx_fail(
            why, -EINVAL,
            "%s would transfer %s, and --integrity keeps hashes of whole ones in this store: choose %s", what,
            flat ? "rows without their padding" : "parts of planes", stream);
    const bool planes = align > 0 && q->layout->plane_pitch_bytes % align == 0;
    return mx_fail(why, -EINVAL,
                   "%s cannot continue this store by direct transfers: %s, and the device transfers "
                   "multiples of %u bytes; %s%schoose --backend mmap%s%s, or memext export and a new run",
                   what, pitches(q, text), align, leave, leave[0] != 0 ? " and " : "", planes ? " or " : "",
                   planes ? stream : "");
}

int mx_tune_check_capacity(const struct mx_tune_request *q, const struct mx_tune_candidate *x, mx_why *why) {
    uint64_t bytes = mx_job_stored_bytes(&x->layout, &x->shape);
    char side_file[80] = "", fixed[60] = "";
    const int64_t buffers = mx_job_state_buffers(&x->shape);
    uint64_t seams = (uint64_t)mx_execute_seam_bytes(&x->shape, &x->layout);
    uint64_t others = bytes - seams - (uint64_t)buffers * (uint64_t)x->layout.buffer_bytes;
    if (q->capacity_bytes == 0 || q->style == MX_TUNE_RESIDENT || bytes <= q->capacity_bytes) return 0;
    if (x->shape.seams_in_file)
        snprintf(side_file, sizeof side_file, " and %s for faces", mx_size(seams).text);
    if (others > 0) snprintf(fixed, sizeof fixed, ", %s of read-only fields", mx_size(others).text);
    return mx_fail(why, -ENOSPC,
                   "the device has %s, and the problem needs %s (%s Buffers of %s%s%s): use a larger device "
                   "or a smaller grid%s",
                   mx_size(q->capacity_bytes).text, mx_size(bytes).text, buffers == 4 ? "four" : "two",
                   mx_size((uint64_t)x->layout.buffer_bytes).text, fixed, side_file,
                   buffers == 4 ? ", or give --in-place, which halves the Buffers but cannot be resumed"
                                : "");
}
