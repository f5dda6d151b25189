/* SPDX-License-Identifier: BSD-3-Clause */
/* flow.h - inside engine/ only: a team of threads that computes the tiles of jobs, job after job without a
 * pause.
 *
 * A job has slabs x columns x chunks lines, in this order. A line has the tiles of its chunk's span. The
 * tiles of a line are done in order. Tile i of a line can be done when tiles up to i are done in three other
 * lines: one slab, one column and one chunk back. If a job follows the one before, its first slab depends in
 * the same way on the last slab of that job. Any other job begins when all jobs before it are done.
 *
 * After each tile a thread takes the first line, in order, whose next tile can be done and that no other
 * thread holds. As a rule this is the line that it holds, one tile behind the thread of the line before. A
 * thread that has caught up does a tile of a later line meanwhile, so slower cores (because others use them
 * too) do smaller shares. There are progress counters and no barriers. The first unfinished line never waits,
 * so any number of threads works.
 */
#ifndef MX_FLOW_H
#define MX_FLOW_H

#include <memext/memext.h>

enum { MX_FLOW_JOBS = 4 }; /* under way at a time */

/* Tiles [first,end), with the same numbers in all chunks. */
struct mx_flow_span {
    int64_t first, end;
};

struct mx_flow_job {
    int64_t slabs, columns; /* >= 0 */
    int64_t first_chunk, chunks;
    const struct mx_flow_span *span; /* [chunks]; read only by mx_flow_post */
    /* The tiles of this job depend on those of the job before it. Both jobs have slabs and columns, and the
     * same columns, spans and first chunk. None of the jobs that the job before follows in turn has later
     * chunks than that job. */
    bool follows;
};

struct mx_flow_tile {
    int64_t job; /* 1, 2, 3... */
    int64_t slab, column, chunk, tile;
    bool more; /* the line has a next tile, and the chunk before has done its part of it */
};

typedef struct mx_flow mx_flow;
typedef void mx_flow_fn(void *arg, int thread, const struct mx_flow_tile *tile);

/* fn computes one tile. Threads are placed as those of mx_team_create. -ENOMEM, -EAGAIN. */
int mx_flow_create(int threads, mx_flow_fn *fn, void *arg, mx_why *why, mx_flow **out);
void mx_flow_free(mx_flow *flow); /* call it when every job is done; NULL allowed */

/* Returns the number of the next job, when no thread uses the job MX_FLOW_JOBS before it any more. The memory
 * of that job may be overwritten then. */
int64_t mx_flow_next(mx_flow *flow);
/* Posts that job. A job of up to 64 lines always succeeds; of more lines it may be -ENOMEM. */
int mx_flow_post(mx_flow *flow, const struct mx_flow_job *job);
int64_t mx_flow_done(const mx_flow *flow); /* returns how many jobs are done, in order */
void mx_flow_wait(mx_flow *flow, int64_t number);

#endif
