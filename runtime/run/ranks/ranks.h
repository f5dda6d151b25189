/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.h - a run of several ranks: each is a process with a range of planes, its own store and its own plan
 * of the same sweeps; neighbours exchange layers (execute/exchange.h) over a link (link/link.h). What a run
 * does once for the whole grid, it does together here: initial grid and result by ranges, commits that are
 * kept when all have made them, one checksum, one report. Of a run that is by itself all of these do nothing.
 */
#ifndef MX_RUN_RANKS_H
#define MX_RUN_RANKS_H

#include "ask/options.h"
#include "link/link.h"
#include "system/cut.h"
#include "system/sides.h"
#include "system/system.h"
#include "tune/tune.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct mx_run;

struct mx_run_ranks {
    mx_link *link; /* NULL = one rank */
    int rank, ranks;
    int planner;       /* whose plan all take */
    int place, places; /* number among the ranks of this machine, and how many they are; 0 = not known */
    int core_place, core_places; /* the same among those of them that may use the same cores */
    int64_t *first;        /* [ranks + 1]: first planes of all, and how many there are; NULL = by itself */
    char path[PATH_MAX];   /* -d of this rank */
    char folder[PATH_MAX]; /* the directory that its stores are in; "" = none of its own */
    int folder_fd;         /* held; -1 = not */
    bool uneven;           /* --resume: some ranks were a commit ahead when the run ended */
    bool went_back;        /* and this is one of them: it is at the state before its newest one */
    bool silent;           /* another rank says why this one ends */
    bool well;             /* everything was done together to the end */
    int status;            /* else the exit status of this process; -1 = it is not known */
    uint64_t sent_bytes, received_bytes;
    const char *link_name;
    bool link_measured;
    /* --timeline and --trace, of all ranks together: asked for? What rank 1 and on have of them, files
     * without a name; -1 = not open. */
    bool observed[2];
    int observed_fd[2];
    char **reports; /* of rank 0: the summaries of all, as text; NULL = none */
};

static inline bool mx_is_rank(const struct mx_run_ranks *q) { return q->link != NULL; }

/* Ranks that share this machine, and of those the ones that share its cores with this one (mpirun may give
 * each its own): DRAM and cores that are not asked for are divided. */
static inline int mx_ranks_here(const struct mx_run_ranks *q) {
    return q->link != NULL && q->places > 1 ? q->places : 1;
}
static inline int mx_ranks_on_cores(const struct mx_run_ranks *q) {
    return q->link != NULL && q->core_places > 1 ? q->core_places : 1;
}

/* All: 0, or -errno with a sentence in r->why. */

/* Opens the link of this process, if it has one. Before anything else. */
int mx_run_open_ranks(struct mx_run *r);
/* Its place, and what there is to go on from. */
int mx_run_check_ranks(struct mx_run *r);
/* -d is of all ranks: is it a directory, or has it %r? */
int mx_run_check_own_place(struct mx_run *r);
/* -d becomes that of this rank. */
int mx_run_take_own_place(struct mx_run *r);
/* The directory of this rank, made where it is not there. */
int mx_run_take_folder(struct mx_run *r, const char *path);
/* r->o.problem becomes this rank's part: by --rank-weights, or as the stores of a resumed run have it. */
int mx_run_cut(struct mx_run *r);
/* What --link says of it. */
struct mx_tune_link mx_take_link(const struct mx_options *options, int ranks);
/* What the link does: as --link says, or measured, by all. */
int mx_run_measure_link(struct mx_run *r);
/* One plan for all, made by one: the others take it as it is. */
int mx_run_agree_plan(struct mx_run *r, int (*plan)(struct mx_run *r));
/* A number of the rank that plans for all. */
int mx_run_share_plan_limit(struct mx_run *r, int64_t *most_bt);
/* Is it so for any? */
int mx_run_agree_any(struct mx_run *r, bool *any);
/* Of ranks that have failed with errors of their own, 0 = has not, the first says why. */
int mx_run_agree_error(struct mx_run *r, int mine);
/* A number of this run alone, where *run is 0. */
int mx_run_agree_number(struct mx_run *r, uint64_t *run);
/* --resume: the newest state that all have committed, in r->note, and what the newest note says that the run
 * was asked for. kept: is this rank's store kept when all is done? Then those of all are. */
int mx_run_agree_state(struct mx_run *r, bool *kept);
/* ranks.place and places, core_place and core_places, and threads go where that says. In a dry run all ranks
 * of the link local are on this machine, and each of another link has one of its own. */
int mx_run_find_place(struct mx_run *r);
/* Buffers and seconds between commits: a run that was resumed with others may have ended before all ranks had
 * that in their stores. */
int mx_run_agree_commits(struct mx_run *r);
/* norms.h, join: sums of planes from the ranks that have them. */
int mx_run_join_norms(void *run, int64_t quantities, double *planes, uint64_t *most, mx_why *why);
/* A number for each plane, of each quantity: mine[quantities * nz] of this rank, all[quantities * all planes]
 * of all.
 */
int mx_run_gather_planes(struct mx_run *r, int64_t quantities, const uint64_t *mine, uint64_t *all);
/* What rank 0 has: so many bytes of data, for all. */
int mx_run_share_bytes(struct mx_run *r, void *data, size_t bytes);
int mx_run_meet(struct mx_run *r);
/* --timeline and --trace: streams for what this rank has of them, NULL where it is rank 0, or they are not
 * asked for; all begin at the same moment. */
int mx_run_begin_observed(struct mx_run *r, FILE *out[2]);
/* The streams are closed: puts what all have into rank 0's files. */
int mx_run_join_observed(struct mx_run *r, mx_why *why);
/* The summaries of all ranks, to rank 0. */
int mx_run_collect_reports(struct mx_run *r);
/* What a report says of ranks, into its object (json_t). */
void mx_run_add_ranks(const struct mx_run *r, void *object);
/* At a failed end, before anything is freed: takes away the files that are not to stay, and where the link
 * says so this is the end of the process (mx_link_leave). */
void mx_run_leave_ranks(struct mx_run *r);
/* The exit status of this process as the others learn it. */
int mx_run_ranks_status(const struct mx_run_ranks *q);
void mx_run_close_ranks(struct mx_run *r);
/* The store is closed: directories that were made for it, and hold nothing any more, go. */
void mx_run_leave_folders(struct mx_run *r);

#endif
