/* SPDX-License-Identifier: BSD-3-Clause */
/* sets.h - which stores belong together. Those of one state by one cut of the grid are a set: of P ranks
 * DIR/rank-N (DIR, of a run by itself), or, where another number of ranks went on, the directories cut-1,
 * cut-2, ... in there (recut.h). Notes say of which run, cut and rank a store is.
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
    bool foreign;        /* a file of this name that no memext has begun */
    bool begun;          /* nothing was committed to it, and no run is at work in it: it is of no use */
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
    struct mx_stored *stored; /* of one look after the other */
};

bool mx_is_directory(const char *path);
/* Can it be what several ranks were given with -d: a directory, or a path with %r that is no file? */
bool mx_is_base(const char *path);
/* The place of a store: of rank `rank` of `ranks`, or (ranks 1) of a run by itself. cut: 0 = the first one.
 * -ENAMETOOLONG. */
int mx_place_of(const char *base, int32_t ranks, int32_t rank, int32_t cut, char out[PATH_MAX]);

/* All that a base (-d of a run) holds, as far as it can be seen from here. -ENOMEM with a sentence. To be
 * given to mx_forget, whatever came of it. */
int mx_see_all(const char *base, mx_why *why, struct mx_sight *out);
/* Adds the store at `path` and those in its directories cut-N. */
void mx_see_cuts(struct mx_sight *sight, const char *path);
void mx_forget(struct mx_sight *sight);

/* The store of a rank that belongs to `of`; NULL = it was not seen. */
const struct mx_seen *mx_find_rank(const struct mx_sight *sight, const struct mx_seen *of, int32_t rank);
/* first: of rank 0. The moment (note.h) of the state that all stores of its set have in common; -1 = there is
 * none. */
int64_t mx_common_moment(const struct mx_sight *sight, const struct mx_seen *first);
/* Its step. */
int64_t mx_common_step(const struct mx_sight *sight, const struct mx_seen *first);
/* first: of rank 0. Do the stores have step 0 in common, which no Buffer holds? */
bool mx_set_is_pending(const struct mx_sight *sight, const struct mx_seen *first);
/* first: a store of rank 0 whose set is complete. Returns the lowest rank whose store has the latest state.
 * The note of that store has the newest options of the run. */
int32_t mx_newest_rank(const struct mx_sight *sight, const struct mx_seen *first);
/* Is it of rank 0, and are all others of its set there? */
bool mx_is_whole(const struct mx_sight *sight, const struct mx_seen *seen);
/* Is no later cut of the same run whole? */
bool mx_is_newest(const struct mx_sight *sight, const struct mx_seen *seen);

/* Is it of rank 0 of a set that is whole and the newest? */
bool mx_set_counts(const struct mx_sight *sight, const struct mx_seen *seen);
/* A path that names this set and no other one in `base`, where there are several. */
enum { MX_SET_NAME_BYTES = PATH_MAX + 32 };
const char *mx_set_name(const struct mx_sight *sight, const struct mx_seen *first, const char *base,
                        char name[MX_SET_NAME_BYTES]);

/* Finds the newest whole set in `base`. If there are sets of several runs, it takes the one with `ranks`
 * ranks; with ranks = 0, the one whose store is the file in `base` itself. *out NULL = there is none. -EINVAL
 * with a sentence: more than one set fits. */
int mx_newest_set(const struct mx_sight *sight, const char *base, int32_t ranks, mx_why *why,
                  const struct mx_seen **out);

/* The newest whole set in `base`; NULL = there is none. -EINVAL with a sentence that says how to name either:
 * there are those of two runs. */
int mx_only_set(const struct mx_sight *sight, const char *base, mx_why *why, const struct mx_seen **out);

/* ---- sets_told.c */

/* All that was seen in `base`, for people and programs: sets, and stores that are part of none that counts.
 * False: there is no more than one store in `base` itself, or nothing. */
bool mx_are_sets(const struct mx_sight *sight, const char *base);
/* dram_bytes: as of mx_stored_print. */
int mx_sets_print(const struct mx_sight *sight, const char *base, uint64_t dram_bytes, mx_why *why, FILE *to);
int mx_sets_json(const struct mx_sight *sight, const char *base, mx_why *why, json_t **out);

/* ---- the end */

/* Directories of stores (rank-N, cut-N) that a run has made in `base`, and that are empty and not in use. */
void mx_leave_folders(const char *base);
/* A file that a memext has begun and that nobody has open, and the directory cut-N that it was in. */
void mx_remove_store(const struct mx_seen *seen);

#endif
