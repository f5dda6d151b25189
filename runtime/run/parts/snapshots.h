/* SPDX-License-Identifier: BSD-3-Clause */
/* snapshots.h - writes the state at regular steps as .npy files to a directory, during the run.
 *
 *     DIR/FIELD-000100.npy     cells 0, STRIDE, 2 STRIDE ... of the interior in x, y and z, after step 100
 *     DIR/memext.snapshots     whose they are: the run's number, what was asked for
 *
 * Rows come from the executor (execute/take.h). A file appears when all files of its step are complete. The
 * files up to a committed step are durable before the commit is; a resumed run writes later ones again, with
 * the same bits. DIR belongs to the run alone: it is locked, and its files are of the same run, unless
 * --overwrite gives the others up. Ranks write their planes to the same files, whose names begin with a dot
 * until all ranks are done. Rank 0 manages the directory. Writes are buffered; their pages are written back
 * and dropped soon, so that they do not displace other pages.
 */
#ifndef MX_RUN_SNAPSHOTS_H
#define MX_RUN_SNAPSHOTS_H

#include "ask/options.h"
#include "execute/take.h"
#include "files/fields.h"
#include "files/output.h"
#include "grid/grid.h"
#include "note/note.h"

#include <pthread.h>

struct mx_snapshot_file;

struct mx_run_snapshots {
    struct mx_snapshots_asked asked;
    struct mx_taking taking;
    struct mx_snapshot_file *file; /* [n_files]: a field each */
    int32_t n_files;
    int64_t cells[3];  /* z, y, x; of all ranks together */
    int lock_fd;       /* of the directory; -1 = not open */
    mx_block *block;   /* rows that lie apart are put together here, counted against the budget */
    int64_t open_step; /* of which files are open; 0 = none */
    int64_t unwritten; /* bytes since write-back was last started */
    /* With the lock: what others wait for. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool made;         /* lock and changed */
    int64_t published; /* newest step whose files are there */
    int err;
    mx_why why;
    /* Of the report. */
    int64_t count, bytes, predicted_count, predicted_bytes;
    uint64_t ns;
};

/* Is this the name of a file that snapshots have in their directory, whatever the field is called? */
bool mx_snapshot_name(const char *name);
/* -EINVAL: `path`, of `option`, is or would be one of them, or (place) the store's directory is theirs. */
int mx_run_check_snapshot_name(const mx_run *r, const char *option, const char *path, bool place,
                               mx_why *why);

#endif
