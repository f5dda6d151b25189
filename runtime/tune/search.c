/* SPDX-License-Identifier: BSD-3-Clause */
/* search.c - the table of searches. Blk-Tune finds the global optimum of CalcTrans under the papers'
 * constraints (iWAPT 2016, section V), algorithm by algorithm, once over every combination and once over a
 * reduced set that holds an optimum of the whole.
 *
 * Constraints: bx = nx; bz a multiple of iz*sockets, or nz; 2 <= bt <= nt; 2 bt h <= by, bz; the Blocks fit.
 */
#include "tune/search.h"

#include <string.h>

/* ---- direct: nothing to choose but levels */

/* Levels that the tiled engine gets at once: enough for its chunks, little enough to report progress. */
enum { DIRECT_LEVELS = 64 };

static void only_direct(struct job *job) {
    bool levels = strcmp(job->engine->name, "tiled") == 0;
    mx_job_try(job, job->problem.ny, job->problem.nz,
               levels ? mx_search_whole_steps(job, mx_min(job->stretch, DIRECT_LEVELS)) : mx_job_unit(job));
}

/* The same in an accelerator's memory, a few levels at a time so that an interrupt finds an end. */
enum { RESIDENT_LEVELS = 16 };

static void only_resident(struct job *job) {
    const int64_t levels = mx_min(mx_job_levels(job), RESIDENT_LEVELS);
    mx_job_try(job, job->problem.ny, job->problem.nz, mx_search_whole_steps(job, levels));
}

/* ---- the table */

static const struct strategy strategies[] = {
    {.algorithm = "direct", .reduced = only_direct, .exhaustive = only_direct},
    {.algorithm = "direct-skewed",
     .counted = "skewed",
     .reduced = mx_search_skewed,
     .exhaustive = mx_search_every_skewed,
     .blocks = true,
     .only_by_name = true},
    {.algorithm = "direct-skewed-opt",
     .counted = "skewed",
     .reduced = mx_search_skewed,
     .exhaustive = mx_search_every_skewed,
     .blocks = true,
     .only_by_name = true},
    {.algorithm = "redundant",
     .reduced = mx_search_lapped,
     .exhaustive = mx_search_every_lapped,
     .by_seconds = true,
     .blocks = true,
     .halo_twice = true},
    {.algorithm = "skewed",
     .reduced = mx_search_skewed,
     .exhaustive = mx_search_every_skewed,
     .blocks = true},
    {.algorithm = "skewed-y",
     .reduced = mx_search_skewed,
     .exhaustive = mx_search_every_skewed,
     .blocks = true},
    {.algorithm = "skewed-min",
     .reduced = mx_search_skewed,
     .exhaustive = mx_search_every_skewed,
     .blocks = true},
    {.algorithm = "stream",
     .reduced = mx_search_stream,
     .exhaustive = mx_search_every_stream,
     .side_file = true,
     .thin_slabs = true},
    {.algorithm = "resident",
     .reduced = only_resident,
     .exhaustive = only_resident,
     .thin_slabs = true,
     .only_by_name = true},
};

const struct strategy *mx_strategy_find(const char *algorithm) {
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++)
        if (strcmp(strategies[i].algorithm, algorithm) == 0) return &strategies[i];
    return NULL;
}

void mx_job_search(struct job *job) {
    /* At least two levels, in whole steps: one level is not temporal blocking. */
    job->bt_min = mx_min(mx_job_unit(job) * tune_ceil_div(2, mx_job_unit(job)), mx_search_largest_bt(job));
    if (job->request->exhaustive && !job->by_dram)
        job->strategy->exhaustive(job);
    else
        job->strategy->reduced(job);
}
