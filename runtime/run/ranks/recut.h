/* SPDX-License-Identifier: BSD-3-Clause */
/* recut.h - a run that goes on with another number of ranks than its stores are of: one to several, several
 * to one, P to Q.
 *
 * The stores of one state by one cut of the grid are a set: those of P ranks, or the one of a run by itself.
 * With -d DIR the first set of a run is DIR/rank-N (DIR, by itself); the sets after it, which another number
 * of ranks has made, are in directories cut-1, cut-2, ... in there. Notes say of which run, cut and rank a
 * store is.
 *
 *     choose    the newest cut of which all ranks hold a step that they have in common
 *     read      each rank makes a store of its own in the next cut, and reads its planes where they are
 *     commit    together: now the new set is whole, and the newest
 *     remove    the former set, and what else is left of older ones
 *
 * So at any moment one set is whole: killed before the commit a run goes on from the former set, whatever
 * there is of the new one, and after it from the new one, whatever is left of the former.
 */
#ifndef MX_RUN_RECUT_H
#define MX_RUN_RECUT_H

#include <memext/backend.h>

#include <limits.h>

struct mx_run;
struct mx_former;

enum { MX_RUNS_DISCARDED = 8 };

struct mx_run_recut {
    bool asked;          /* the state is read from the stores of another cut */
    bool left;           /* a new run takes the place of a store that nothing can be got out of */
    bool turned;         /* and all have committed it in those of this one */
    bool found;          /* a set of stores was chosen; else the place is what it was said to be */
    char base[PATH_MAX]; /* -d as it was given */
    char own[PATH_MAX];  /* the directory of this rank's new store, "" = none */
    int own_fd;          /* held; -1 = not */
    int32_t n_discarded; /* --force: runs whose stores were in this rank's place */
    uint64_t discarded[MX_RUNS_DISCARDED];
    int32_t ranks, cut;       /* of the set that was chosen; 1: of a run by itself */
    int32_t newest;           /* whose note has what the run was asked for last */
    int32_t to;               /* the cut of this run's stores */
    uint64_t run;             /* 0 = of an older memext, which gave runs no number */
    int64_t time, moment;     /* of the state that all of them hold (note.h) */
    bool pending;             /* in what the run began with, and in no Buffer */
    struct mx_former *former; /* [ranks] */
    uint64_t read_bytes;      /* of them */
};

/* All: 0, or -errno with a sentence in r->why. */

/* --resume: which set. r->o.path becomes the place of this rank's store, there or to be made. New runs: is
 * there a set of a run that --resume would go on with? */
int mx_run_find_state(struct mx_run *r);
/* Where the stores of another cut are. */
int mx_run_name_former(struct mx_run *r);
/* The store whose note tells of the run. */
const char *mx_run_noted_place(const struct mx_run *r);
/* With the note of that store in r->note: the stores of the others, and the step that all have. *kept becomes
 * true where one of them is kept when all is done. */
int mx_run_take_former(struct mx_run *r, bool *kept);
/* The state and the fields of C, into the new Buffers. */
int mx_run_read_former(struct mx_run *r);
/* Where a run that ends goes on from: -d of the set that all ranks have committed. */
const char *mx_run_committed_place(const struct mx_run *r);
/* What is read for that by one rank. */
int64_t mx_run_former_bytes(const struct mx_run *r);
/* The state is committed where it belongs: removes stores of this run's other cuts. What cannot be removed
 * stays. */
void mx_run_remove_former(struct mx_run *r);
/* This run's store is open: removes what killed runs left in its place and nobody can go on with: stores of
 * runs that --force discards, stores that nothing was committed to, directories without a store. */
void mx_run_sweep_left(struct mx_run *r);
/* --force: what mx_run_find_state would have refused. */
void mx_run_discard_former(struct mx_run *r);
void mx_run_close_former(struct mx_run *r);

#endif
