/* SPDX-License-Identifier: BSD-3-Clause */
/* sets.h - finds the stores that belong together. The stores of one state and one cut of the grid are a set:
 * those of P ranks, DIR/rank-N, or the one of a single process, DIR. If another number of ranks has continued
 * the run, its set is in directories cut-1, cut-2, ... in there (recut.h). Notes have the run, cut and rank
 * of a store.
 */
#ifndef MX_NOTE_SETS_H
#define MX_NOTE_SETS_H

#include "note/store.h"

#include <limits.h>

/* A store as it was seen. */
struct mx_seen {
    char path[PATH_MAX]; /* the directory, or the file or device that -d names */
    uint64_t run;        /* 0 = it has no note */
    int32_t folder;      /* the number of its directory cut-N, 0 = it is in none */
    bool foreign;        /* a file of this name that memext did not make */
    bool begun;          /* nothing was committed to it, and no run works in it, so it is of no use */
    int32_t cut, ranks, rank;
    int64_t time, before_time;
    int64_t moment, before_moment; /* mx_note_moment of these states */
    int64_t first_plane, all_planes;
    uint64_t generation; /* commits */
    uint32_t finished;
    bool pending;
};

struct mx_sight {
    struct mx_seen *seen;
    int32_t n, room;
    struct mx_stored *stored; /* buffer for one look after another */
};

bool mx_is_directory(const char *path);
/* Can this path be the -d of several ranks: a directory, or a path with %r that is not a file? */
bool mx_is_base(const char *path);
/* Makes the path of the store of rank `rank` of `ranks`, or (ranks 1) of a single process. cut: 0 = the first
 * one. -ENAMETOOLONG. */
int mx_place_of(const char *base, int32_t ranks, int32_t rank, int32_t cut, char out[PATH_MAX]);

/* Finds all stores of a base (-d of a run), as far as this machine can see them. -ENOMEM with a sentence.
 * Give *out to mx_forget in any case. */
int mx_see_all(const char *base, mx_why *why, struct mx_sight *out);
/* Adds the store at `path` and those in its directories cut-N. */
void mx_see_cuts(struct mx_sight *sight, const char *path);
void mx_forget(struct mx_sight *sight);

/* Finds the store of a rank in the set of `of`; NULL = it was not seen. */
const struct mx_seen *mx_find_rank(const struct mx_sight *sight, const struct mx_seen *of, int32_t rank);
/* Returns the moment (note.h) of the newest state that all stores of a set hold; -1 = there is none. first:
 * the store of rank 0. */
int64_t mx_common_moment(const struct mx_sight *sight, const struct mx_seen *first);
/* Returns the step of that state. */
int64_t mx_common_step(const struct mx_sight *sight, const struct mx_seen *first);
/* Do the stores of a set share step 0, which no Buffer holds? first: the store of rank 0. */
bool mx_set_is_pending(const struct mx_sight *sight, const struct mx_seen *first);
/* first: a store of rank 0 whose set is complete. Returns the lowest rank whose store has the latest state.
 * The note of that store has the newest options of the run. */
int32_t mx_newest_rank(const struct mx_sight *sight, const struct mx_seen *first);
/* Is this the store of rank 0, and is its set complete? */
bool mx_is_whole(const struct mx_sight *sight, const struct mx_seen *seen);
/* Is there no complete set of a later cut of the same run? */
bool mx_is_newest(const struct mx_sight *sight, const struct mx_seen *seen);

/* Is this the store of rank 0 of a set that is complete and the newest? */
bool mx_set_counts(const struct mx_sight *sight, const struct mx_seen *seen);
/* Writes a path that names this set and no other one in `base`. Returns name. */
enum { MX_SET_NAME_BYTES = PATH_MAX + 32 };
const char *mx_set_name(const struct mx_sight *sight, const struct mx_seen *first, const char *base,
                        char name[MX_SET_NAME_BYTES]);

/* Finds the newest whole set in `base`. If there are sets of several runs, it takes the one with `ranks`
 * ranks; with ranks = 0, the one whose store is the file in `base` itself. *out NULL = there is none. -EINVAL
 * with a sentence: more than one set fits. */
int mx_newest_set(const struct mx_sight *sight, const char *base, int32_t ranks, mx_why *why,
                  const struct mx_seen **out);

/* Finds the newest complete set in `base`; *out NULL = there is none. -EINVAL with a sentence that says how
 * to name them: there are sets of two runs. */
int mx_only_set(const struct mx_sight *sight, const char *base, mx_why *why, const struct mx_seen **out);

/* ---- sets_told.c */

/* Describe everything that was seen in `base`, for people and programs: sets, and stores that belong to no
 * current set. mx_are_sets is false if there is nothing, or only one store in `base` itself. */
bool mx_are_sets(const struct mx_sight *sight, const char *base);
/* dram_bytes: as of mx_stored_print. */
int mx_sets_print(const struct mx_sight *sight, const char *base, uint64_t dram_bytes, mx_why *why, FILE *to);
int mx_sets_json(const struct mx_sight *sight, const char *base, mx_why *why, json_t **out);

/* ---- the end */

/* Removes directories (rank-N, cut-N) that a run has made in `base`, and that are empty and not in use. */
void mx_leave_folders(const char *base);
/* Removes a file that memext has made and nobody has open, and the directory cut-N that it was in. */
void mx_remove_store(const struct mx_seen *seen);

#endif
