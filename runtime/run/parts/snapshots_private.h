/* SPDX-License-Identifier: BSD-3-Clause */
/* snapshots_private.h - shared by the files of snapshots. */
#ifndef MX_RUN_SNAPSHOTS_PRIVATE_H
#define MX_RUN_SNAPSHOTS_PRIVATE_H

#include "run/ranks/ranks.h"
#include "run/state.h"

enum { MX_SNAPSHOT_HEAD_BYTES = 128, MX_SNAPSHOT_GATHER_BYTES = 1 << 20 };

/* A field of the state, and its file of the step that is open. */
struct mx_snapshot_file {
    char name[MX_FIELD_NAME + 4];
    enum mx_dtype dtype;
    int32_t array, index;
    struct mx_output output;
    struct mx_npy npy;
};

/* ---- snapshot_directory.c */

/* What a directory holds. */
struct mx_snapshots_found {
    uint64_t run;     /* of its note; 0 = none */
    bool note;        /* there is one */
    char other[64];   /* a name in it besides the note and temporaries, "" = none; snapshots come first */
    char odd[64];     /* a snapshot's name that is no regular file */
    char strange[64]; /* the name of a snapshot to come, of a file that no run of the note has written */
    bool snapshots;
};

/* Gives the directory of the option, or else that of the resumed store. "" = there are no snapshots. */
int mx_snapshots_directory(const struct mx_run *r, char out[PATH_MAX]);
/* Checks that the directory exists, can be written, and belongs to nobody else. *found: what it holds.
 * Returns 0 or -errno with r->why, like the following functions. */
int mx_snapshots_check(struct mx_run *r, struct mx_snapshots_found *found);
int64_t mx_snapshot_bytes_of_step(const struct mx_run_snapshots *snapshots);
/* Checks that there is space for one snapshot. Users may remove earlier ones during the run. */
int mx_snapshots_check_space(struct mx_run *r);
int mx_snapshots_lock(struct mx_run *r);
/* Removes temporary files of dead processes, and with --overwrite the snapshots of a former run. */
int mx_snapshots_clean(struct mx_run *r, const struct mx_snapshots_found *found);
int mx_snapshots_write_note(struct mx_run *r, const struct mx_snapshots_found *found);

/* ---- snapshot_rows.c: as struct mx_taking has them */

int mx_snapshot_rows(void *run, int64_t step, const struct mx_state_rows *rows, mx_why *why);
int mx_snapshot_whole(void *run, int64_t step, mx_why *why);
/* Makes the name of the file of a step to which all ranks write, until it gets its own name. If a killed run
 * leaves it, the next run treats it as a temporary file. */
void mx_snapshot_joint_name(const struct mx_run_snapshots *snapshots, const struct mx_snapshot_file *file,
                            int64_t step, char path[PATH_MAX + 64]);

#endif
