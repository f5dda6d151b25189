/* SPDX-License-Identifier: BSD-3-Clause */
/* flow.h - inside engine/ only: a team of threads that does the tiles of jobs, job after job without a stop.
 *
 * A job has slabs x columns x chunks lines, in this order, and a line the tiles of its chunk's span. The
 * tiles of a line are done in order; tile i of a line when tiles up to i are done in the lines one slab, one
 * column and one chunk back. The first slab of a job that follows the one before stands in the same way to
 * the last slab of that one; any other job begins when all before it are done.
 *
 * After each tile a thread takes the first line, in order, whose next tile can be done and that no other
 * thread holds: as a rule the one it holds, one tile behind the thread of the line before. A thread that has
 * caught up does a tile of a later line meanwhile, so cores of unequal speed (others share them) do unequal
 * shares. Progress counters, no barriers; the first line that is not finished never waits, so any number of
 * threads works.
 */
#ifndef MX_FLOW_H
#define MX_FLOW_H

#include <memext/memext.h>

enum { MX_FLOW_JOBS = 4 }; /* under way at a time */

/* Tiles [first,end), numbered alike in all chunks. */
struct mx_flow_span {
    int64_t first, end;
};

struct mx_flow_job {
    int64_t slabs, columns; /* >= 0 */
    int64_t first_chunk, chunks;
    const struct mx_flow_span *span; /* [chunks]; read by mx_flow_post only */
    /* The tiles of this job depend on those of the job before it. Both jobs have slabs and columns, and the
     * same columns, spans and first chunk. None of the jobs that the job before follows in turn has later
     * chunks than that job. */
    bool follows;
};

struct mx_flow_tile {
    int64_t job; /* 1, 2, 3... */
    int64_t slab, column, chunk, tile;
    bool more; /* the line has a next tile, for which the chunk before has done its part */
};

typedef struct mx_flow mx_flow;
typedef void mx_flow_fn(void *arg, int thread, const struct mx_flow_tile *tile);

/* fn does one tile. Threads have the places of those of mx_team_create. -ENOMEM, -EAGAIN. */
int mx_flow_create(int threads, mx_flow_fn *fn, void *arg, mx_why *why, mx_flow **out);
void mx_flow_free(mx_flow *flow); /* every job done; NULL allowed */

/* The number that the next job will have. Returns when no thread looks any more at the job MX_FLOW_JOBS
 * before it: what belongs to that one may be overwritten. */
int64_t mx_flow_next(mx_flow *flow);
/* Posts that job. 64 lines always fit; -ENOMEM for more. */
int mx_flow_post(mx_flow *flow, const struct mx_flow_job *job);
int64_t mx_flow_done(const mx_flow *flow); /* jobs done, in order */
void mx_flow_wait(mx_flow *flow, int64_t number);

#endif
