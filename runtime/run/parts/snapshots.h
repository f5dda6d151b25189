/* SPDX-License-Identifier: BSD-3-Clause */
/* snapshots.h - the state every so many steps, as .npy files in a directory, written while the run goes on.
 *
 *     DIR/FIELD-000100.npy     cells 0, STRIDE, 2 STRIDE ... of the interior in x, y and z, after step 100
 *     DIR/memext.snapshots     whose they are: the run's number, what was asked for
 *
 * Rows come from the executor (execute/take.h). A file appears when all files of its step are whole, and
 * those up to a committed step are durable before the commit is: a run that is resumed writes those after it
 * again, with the same bits. DIR is the run's alone: it is locked, and what is in it is of the same run or
 * was given up with --overwrite. Ranks write their planes to the same files, which have names that begin with
 * a dot until all have; rank 0 looks after the directory. Buffered writes; their pages are written back and
 * given up as they come, so that they do not push anything else out.
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
