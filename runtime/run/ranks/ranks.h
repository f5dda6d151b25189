/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.h - a run of several ranks: each is a process with a range of planes, its own store and its own plan
 * of the same sweeps; neighbours exchange layers (execute/exchange.h) over a link (link/link.h). Here ranks
 * do together what a run does once for the whole grid: the initial grid and the result by ranges of planes,
 * commits that count when all ranks have made them, one checksum, one report.
 *
 * A single process is a group of one: it is the first rank, waits for nobody, and has all planes. So other
 * folders of run/ need not ask for a rank's number. They call the functions of this folder, which do nothing
 * if there is one process. Only this folder reads the members of struct mx_run_ranks.
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
    int planner;       /* the rank whose plan all ranks use */
    int place, places; /* number of this rank among the ranks of this machine, and how many these are; 0 = not
                          known */
    int core_place, core_places; /* the same among the ranks that may use the same cores */
    int64_t *
        first; /* [ranks + 1]: first planes of all ranks, and the number of planes; NULL = a single process */
    char path[PATH_MAX];   /* -d of this rank */
    char folder[PATH_MAX]; /* the directory that its stores are in; "" = none of its own */
    int folder_fd;         /* held; -1 = not */
    bool uneven;           /* --resume: some ranks were a commit ahead when the run ended */
    bool went_back;        /* this rank was ahead, and is at the state before its newest one */
    bool silent;           /* another rank reports why this one ends */
    bool well;             /* everything was done together to the end */
    int status;            /* otherwise the exit status of this process; -1 = not known */
    uint64_t sent_bytes, received_bytes;
    const char *link_name;
    bool link_measured;
    /* --timeline and --trace of all ranks: are they asked for? Ranks other than 0 write them to nameless
     * files; -1 = not open. */
    bool observed[2];
    int observed_fd[2];
    char **reports; /* of rank 0: the summaries of all ranks, as text; NULL = none */
};

static inline bool mx_is_rank(const struct mx_run_ranks *q) { return q->link != NULL; }

/* ---- who this process is */

void mx_run_make_ranks(struct mx_run *r);
/* Returns the number of ranks; of a dry run those of --ranks. 1 = a single process. */
int32_t mx_run_ranks_of(const struct mx_run *r);
/* Is this process the only one? Then it need not wait for other ranks. */
bool mx_run_alone(const struct mx_run *r);
/* Is it one process, not a plan for several ranks, and not one that mpirun has started with others? */
bool mx_run_has_no_ranks(const struct mx_run *r);
/* Is this the rank that does what is done only once? */
bool mx_run_leads(const struct mx_run *r);
/* Gives the number of this rank and of ranks, for notes and timelines; 0 and 0 for a single process. */
void mx_run_number(const struct mx_run *r, int32_t *rank, int32_t *ranks);
/* Gives the number of this rank among the ranks of this machine, and how many those are; 0 = not known. */
void mx_run_home(const struct mx_run *r, int *number, int *ranks);
/* Returns how many ranks share this machine. Without --dram its DRAM is divided among them. */
int mx_run_ranks_here(const struct mx_run *r);
/* Did something other than memext start them, perhaps each in a container of its own? */
bool mx_run_ranks_apart(const struct mx_run *r);
/* Returns how many of `cores` cores this rank uses: mpirun may give each rank its own, otherwise they are
 * divided. */
int mx_run_own_cores(const struct mx_run *r, int cores);

/* Say who reports errors: the first rank, since all find the same error; or each rank its own. */
void mx_run_one_says(struct mx_run *r);
void mx_run_each_says(struct mx_run *r);
bool mx_run_is_silent(const struct mx_run *r);

/* The following functions return 0, or -errno with a sentence in r->why. */

/* Opens the link of this process, if it has one. Call it first. */
int mx_run_open_ranks(struct mx_run *r);
/* Checks the place of the stores, and finds the state to continue from. */
int mx_run_check_ranks(struct mx_run *r);
/* Checks that -d suits several ranks: a directory, or a path with %r. */
int mx_run_check_own_place(struct mx_run *r);
/* Makes -d the place of this rank. */
int mx_run_take_own_place(struct mx_run *r);
/* Takes the directory of this rank, and makes it if it does not exist. */
int mx_run_take_folder(struct mx_run *r, const char *path);
/* Checks that the store whose note was read belongs to this rank, of the same number of ranks. */
int mx_run_check_rank(struct mx_run *r, const char *place);
/* Returns how many planes a rank has, after mx_run_cut. */
int64_t mx_run_planes_of(const struct mx_run *r, int rank);
/* Makes r->o.problem this rank's part: by --rank-weights, or as in the stores of a resumed run. */
int mx_run_cut(struct mx_run *r);
/* Returns what --link says about the link. */
struct mx_tune_link mx_take_link(const struct mx_options *options, int ranks);
/* Takes the link's rates from --link, or measures them. All ranks call it together. */
int mx_run_measure_link(struct mx_run *r);
/* One rank makes the plan, and all others use it unchanged. */
int mx_run_agree_plan(struct mx_run *r, int (*plan)(struct mx_run *r));
/* Gives all ranks *most_bt of the rank that plans. */
int mx_run_share_plan_limit(struct mx_run *r, int64_t *most_bt);
/* Sets *any for all ranks if it is set for one. */
int mx_run_agree_any(struct mx_run *r, bool *any);
/* All ranks call it with their own error (0 = none). If some have failed, all fail, and the first of these
 * reports why. */
int mx_run_agree_error(struct mx_run *r, int mine);
/* Makes a number that only this run has, if *run is 0. */
int mx_run_agree_number(struct mx_run *r, uint64_t *run);
/* --resume: finds the newest state that all ranks have committed, in r->note, with the run's options from the
 * newest note. *kept: is this rank's store kept when the run is done? If one is, all are. */
int mx_run_agree_state(struct mx_run *r, bool *kept);
/* Finds ranks.place and places, core_place and core_places, by which threads are then placed. In a dry run
 * all ranks of the link local are on this machine, and each rank of another link is on a machine of its own.
 */
int mx_run_find_place(struct mx_run *r);
/* Gives the place of a rank's store. *make: it is a directory that the run makes. */
int mx_run_own_place(struct mx_run *r, int rank, char *own, size_t capacity, bool *make);
/* Refuses a new run (-EEXIST) where a cut of the planes has left a store of this rank that --resume would
 * continue. */
int mx_run_refuse_leftover(struct mx_run *r, int rank);
/* All ranks take the same number of Buffers and the same seconds between commits. Their stores may disagree:
 * a run that was resumed with new values may have ended before every rank had stored them. */
int mx_run_agree_commits(struct mx_run *r);
/* Gathers numbers of planes: mine[quantities * nz] of this rank become all[quantities * all planes] of all
 * ranks.
 */
int mx_run_gather_planes(struct mx_run *r, int64_t quantities, const uint64_t *mine, uint64_t *all);
/* Gives all ranks the data of rank 0, `bytes` bytes. */
int mx_run_share_bytes(struct mx_run *r, void *data, size_t bytes);
int mx_run_meet(struct mx_run *r);
/* Waits for all ranks on the thread that commits; gives no sentence. */
int mx_run_meet_to_commit(struct mx_run *r);
/* The first rank waits here until all other ranks have called mx_run_others_wait; the others do not wait. */
int mx_run_first_waits(struct mx_run *r);
/* The others wait here until the first rank has called mx_run_first_waits; the first rank does not wait. */
int mx_run_others_wait(struct mx_run *r);
/* Gathers `bytes` bytes of each rank, in the order of ranks: all[mx_run_ranks_of * bytes]. */
int mx_run_gather(struct mx_run *r, enum mx_channel channel, const void *mine, size_t bytes, void *all,
                  mx_why *why);
/* The first rank calls `find`, and all ranks return its result; the first rank reports an error. In a dry run
 * this process calls it. */
int mx_run_first_finds(struct mx_run *r, int (*find)(struct mx_run *r, uint64_t bytes), uint64_t bytes);

/* ---- together.c, probes.c: several ranks work on one thing */

/* Opens a file of the result, which the first rank makes and all write to. */
int mx_run_open_joint(struct mx_run *r, struct mx_grid_file *file, struct mx_sink *sink,
                      struct mx_grid *grid);
/* Hands interior plane z of the whole grid from the rank that has it to the first rank. 1 = this rank has
 * sent or received it. 0 = nothing to do for this rank: the first rank has the plane itself, or this rank is
 * neither sender nor receiver. */
int mx_run_hand_plane(struct mx_run *r, int64_t z, void *plane, size_t bytes);
/* Sets up the neighbours of an execution, and commits at times of the first rank's clock. */
void mx_run_take_neighbours(struct mx_run *r, bool commits, struct mx_execution *x);
/* Call it after the sweeps, which ended with err: counts what was sent, and returns the error to report. */
int mx_run_leave_neighbours(struct mx_run *r, int err);
/* Says that no more decisions of all ranks follow. */
int mx_run_end_agreeing(struct mx_run *r, const struct mx_execution *x);
/* --resume: brings the stores of all ranks to the state that they have in common. `hashes` and `note` write
 * the hashes and the note of that state. */
int mx_run_settle(struct mx_run *r, int (*hashes)(struct mx_run *r), int (*note)(struct mx_run *r));
/* Gives this rank the probes of its own planes, with numbers of its own. */
int mx_run_split_probes(struct mx_run *r);
/* Writes the rows of the traces up to a step, of all probes, to the file. */
int mx_run_write_traces(struct mx_run *r, int64_t end, mx_why *why);
/* The function mx_norms_options.join (norms.h). */
typedef int mx_run_join_fn(void *run, int64_t quantities, double *planes, uint64_t *most, mx_why *why);
mx_run_join_fn *mx_run_joins_norms(const struct mx_run *r);

/* ---- observed.c, report.c, the end */

/* --timeline and --trace: opens streams for this rank's part. NULL = this is rank 0, or they are not asked
 * for. All ranks begin at the same moment. */
int mx_run_begin_observed(struct mx_run *r, FILE *out[2]);
/* Call it when the streams are closed: joins the parts of all ranks in rank 0's files. */
int mx_run_join_observed(struct mx_run *r, mx_why *why);
/* All ranks have ended well: sends their summaries to the first one. Before this, no rank removes a store
 * that a resumed run would need. */
int mx_run_end_together(struct mx_run *r);
/* Returns the error of a rank whose neighbours have ended: -EINTR if all were asked to end. */
int mx_run_why_ended(const struct mx_run *r, int err);
/* Adds what a report says about ranks to its object (json_t). */
void mx_run_add_ranks(const struct mx_run *r, void *object);
/* Call it when a run has failed, before anything is freed. With some links it ends the process
 * (mx_link_leave). `clean` removes files that must not stay. */
void mx_run_leave_ranks(struct mx_run *r, void (*clean)(struct mx_run *r));
void mx_run_close_ranks(struct mx_run *r);
/* Call it when the store is closed: removes empty directories that were made for it. */
void mx_run_leave_folders(struct mx_run *r);

#endif
