/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.h - a run of several ranks: each is a process with a range of planes, its own store and its own plan
 * of the same sweeps; neighbours exchange layers (execute/exchange.h) over a link (link/link.h). What a run
 * does once for the whole grid, it does together here: initial grid and result by ranges, commits that are
 * kept when all have made them, one checksum, one report.
 *
 * A run by itself is a group of one: it is the first rank, has nobody to wait for, and all planes are its
 * own. So the other rooms ask no rank for its number. They call what stands here, and it does nothing where
 * there is nobody else. The members of struct mx_run_ranks are read in this room alone.
 */
#ifndef MX_RUN_RANKS_H
#define MX_RUN_RANKS_H

#include "ask/options.h"
#include "execute/execute.h"
#include "files/grid_file.h"
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

/* ---- who this process is */

void mx_run_make_ranks(struct mx_run *r);
/* The ranks of this run: those that are there, or, of a dry run, that are asked about. 1 = it is by itself.
 */
int32_t mx_run_ranks_of(const struct mx_run *r);
/* Is this process the whole group? Then it may do at once what ranks do when all have come to it. */
bool mx_run_alone(const struct mx_run *r);
/* Is this the rank that does once what is done once? */
bool mx_run_leads(const struct mx_run *r);
/* As notes and timelines have it: number and number of ranks, 0 and 0 of a run by itself. */
void mx_run_number(const struct mx_run *r, int32_t *rank, int32_t *ranks);
/* Its number among the ranks of this machine, and how many those are; 0 = not known. */
void mx_run_home(const struct mx_run *r, int *number, int *ranks);
/* Ranks that share this machine: DRAM that is not asked for is divided. */
int mx_run_ranks_here(const struct mx_run *r);
/* Of a number of cores those for this rank: mpirun may give each its own, else they are divided. */
int mx_run_own_cores(const struct mx_run *r, int cores);

/* All ranks find the same wrong, and the first one says it; or each says what it finds. */
void mx_run_one_says(struct mx_run *r);
void mx_run_each_says(struct mx_run *r);
bool mx_run_is_silent(const struct mx_run *r);

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
/* Is the store whose note was read that of this rank, of as many? */
int mx_run_check_rank(struct mx_run *r, const char *place);
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
/* All ranks take the same number of Buffers and the same seconds between commits. Their stores may disagree:
 * a run that was resumed with new values may have ended before every rank had stored them. */
int mx_run_agree_commits(struct mx_run *r);
/* A number for each plane, of each quantity: mine[quantities * nz] of this rank, all[quantities * all planes]
 * of all.
 */
int mx_run_gather_planes(struct mx_run *r, int64_t quantities, const uint64_t *mine, uint64_t *all);
/* What rank 0 has: so many bytes of data, for all. */
int mx_run_share_bytes(struct mx_run *r, void *data, size_t bytes);
int mx_run_meet(struct mx_run *r);
/* The same on the thread that commits, without a sentence. */
int mx_run_meet_to_commit(struct mx_run *r);
/* The first rank waits here until all other ranks have called mx_run_others_wait; the others do not wait. */
int mx_run_first_waits(struct mx_run *r);
/* The others wait here until the first rank has called mx_run_first_waits; the first rank does not wait. */
int mx_run_others_wait(struct mx_run *r);
/* `bytes` of each rank, in their order: all[mx_run_ranks_of * bytes]. */
int mx_run_gather(struct mx_run *r, enum mx_channel channel, const void *mine, size_t bytes, void *all,
                  mx_why *why);
/* What the first rank finds is found by all; it says it. Of a dry run this one finds it. */
int mx_run_first_finds(struct mx_run *r, int (*find)(struct mx_run *r, uint64_t bytes), uint64_t bytes);

/* ---- together.c, probes.c: what several do to one thing */

/* A file of the result, which the first rank makes and all write to. */
int mx_run_open_joint(struct mx_run *r, struct mx_grid_file *file, struct mx_sink *sink,
                      struct mx_grid *grid);
/* Hands interior plane z of the whole grid from the rank that has it to the first rank. 1 = this rank has
 * sent or received it. 0 = nothing to do for this rank: the first rank has the plane itself, or this rank is
 * neither sender nor receiver. */
int mx_run_hand_plane(struct mx_run *r, int64_t z, void *plane, size_t bytes);
/* Neighbours, and the moments of commits as the first rank's clock has them. */
void mx_run_take_neighbours(struct mx_run *r, bool commits, struct mx_execution *x);
/* After the sweeps, which ended with err: what was sent, and err as it is to be told. */
int mx_run_leave_neighbours(struct mx_run *r, int err);
/* Nothing follows that they would decide about. */
int mx_run_end_agreeing(struct mx_run *r, const struct mx_execution *x);
/* --resume: all are at the state that they have in common, and their stores say so. hashes and note write
 * those of the state that is gone on from. */
int mx_run_settle(struct mx_run *r, int (*hashes)(struct mx_run *r), int (*note)(struct mx_run *r));
/* This rank records the probes of its own planes, under numbers of its own. */
int mx_run_split_probes(struct mx_run *r);
/* Rows of the traces up to a step, of all probes, to the file. */
int mx_run_write_traces(struct mx_run *r, int64_t end, mx_why *why);
/* norms.h: as mx_norms_options.join. */
typedef int mx_run_join_fn(void *run, int64_t quantities, double *planes, uint64_t *most, mx_why *why);
mx_run_join_fn *mx_run_joins_norms(const struct mx_run *r);

/* ---- observed.c, report.c, the end */

/* --timeline and --trace: streams for what this rank has of them, NULL where it is rank 0, or they are not
 * asked for; all begin at the same moment. */
int mx_run_begin_observed(struct mx_run *r, FILE *out[2]);
/* The streams are closed: puts what all have into rank 0's files. */
int mx_run_join_observed(struct mx_run *r, mx_why *why);
/* All have ended well: their summaries, to the first one. Until then nobody removes a store that another run
 * of all ranks would need. */
int mx_run_end_together(struct mx_run *r);
/* An error of a rank whose neighbours have gone: -EINTR where all were asked to end. */
int mx_run_why_ended(const struct mx_run *r, int err);
/* What a report says of ranks, into its object (json_t). */
void mx_run_add_ranks(const struct mx_run *r, void *object);
/* At a failed end, before anything is freed, where the link says so this is the end of the process
 * (mx_link_leave). clean takes away the files that are not to stay. */
void mx_run_leave_ranks(struct mx_run *r, void (*clean)(struct mx_run *r));
void mx_run_close_ranks(struct mx_run *r);
/* The store is closed: directories that were made for it, and hold nothing any more, go. */
void mx_run_leave_folders(struct mx_run *r);

#endif
