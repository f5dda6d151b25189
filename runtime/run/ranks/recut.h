/* SPDX-License-Identifier: BSD-3-Clause */
/* recut.h - resumes a run with another number of ranks than that of its stores: one to several, several to
 * one, P to Q.
 *
 * The stores of one state and one cut of the grid are a set: those of P ranks, or the one of a single
 * process. With -d DIR the first set of a run is DIR/rank-N (DIR for a single process). Later sets, made by
 * other numbers of ranks, are in directories cut-1, cut-2, ... in there. Notes have the run, cut and rank of
 * a store.
 *
 *     choose    the newest cut whose ranks all hold a common step
 *     read      each rank makes a store of its own in the next cut, and reads its planes
 *     commit    all ranks together: now the new set is complete, and the newest
 *     remove    the former set, and rests of older ones
 *
 * So one set is complete at any moment. If a run is killed before the commit, it resumes from the former set
 * and ignores rests of the new one. After the commit it resumes from the new set and ignores rests of the
 * former one.
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
    bool left;           /* a new run replaces a store from which nothing can be read */
    bool turned;         /* all ranks have committed the state in the stores of the new cut */
    bool found;          /* a set of stores was chosen; else the place is as given */
    char base[PATH_MAX]; /* -d as it was given */
    char own[PATH_MAX];  /* the directory of this rank's new store, "" = none */
    int own_fd;          /* keeps its lock; -1 = none */
    int32_t n_discarded; /* --force: number of runs whose stores were in this rank's place */
    uint64_t discarded[MX_RUNS_DISCARDED];
    int32_t ranks, cut;       /* ranks and cut of the chosen set; ranks 1 = a single process */
    int32_t newest;           /* the rank whose note has the newest options of the run */
    int32_t to;               /* the cut of this run's stores */
    uint64_t run;             /* 0 = made by an older version, which gave runs no number */
    int64_t time, moment;     /* of the state that all these stores hold (note.h) */
    bool pending;             /* that state is the run's input, and no Buffer holds it */
    struct mx_former *former; /* [ranks] */
    uint64_t read_bytes;      /* of them */
};

/* Functions that return int return 0, or -errno with a sentence in r->why. */

/* --resume: chooses the set, and sets r->o.path to the place of this rank's store, which exists or will be
 * made. For new runs: is there a set that --resume would continue? Then it refuses. */
int mx_run_find_state(struct mx_run *r);
/* Finds the paths of the stores of another cut. */
int mx_run_name_former(struct mx_run *r);
/* Returns the place of the store whose note describes the run. */
const char *mx_run_noted_place(const struct mx_run *r);
/* Call it with the note of that store in r->note: reads the notes of the other stores, and finds the step
 * that all have. *kept becomes true if one of them is kept when the run is done. */
int mx_run_take_former(struct mx_run *r, bool *kept);
/* Reads the state and the fields of C into the new Buffers. */
int mx_run_read_former(struct mx_run *r);
/* Returns the place from which an ended run can be resumed: -d of the set that all ranks have committed. */
const char *mx_run_committed_place(const struct mx_run *r);
/* Returns the bytes that this rank reads from the former stores. */
int64_t mx_run_former_bytes(const struct mx_run *r);
/* Call it when the state is committed in the new stores: removes stores of this run's other cuts. What cannot
 * be removed stays. */
void mx_run_remove_former(struct mx_run *r);
/* Call it when this run's store is open: removes what killed runs left in its place and nobody can resume:
 * stores of runs that --force discards, stores without a commit, directories without a store. */
void mx_run_sweep_left(struct mx_run *r);
/* --force: discards what mx_run_find_state would have refused. */
void mx_run_discard_former(struct mx_run *r);
void mx_run_close_former(struct mx_run *r);

#endif
