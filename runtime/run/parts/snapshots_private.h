/* SPDX-License-Identifier: BSD-3-Clause */
/* snapshots_private.h - what the files of snapshots share. */
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

/* Of the option, or, of a run that goes on without it, of the store. "" = there are no snapshots. */
int mx_snapshots_directory(const struct mx_run *r, char out[PATH_MAX]);
/* Is it there, can it be written, and is it nobody else's? *found: what it holds; nothing where it is not
 * there. 0 or -errno with r->why, as of those that follow. */
int mx_snapshots_check(struct mx_run *r, struct mx_snapshots_found *found);
int64_t mx_snapshot_bytes_of_step(const struct mx_run_snapshots *snapshots);
/* One has to fit; that others are taken away meanwhile is possible. */
int mx_snapshots_check_space(struct mx_run *r);
int mx_snapshots_lock(struct mx_run *r);
/* Temporaries of dead processes; and with --overwrite what a former run of snapshots has left. */
int mx_snapshots_clean(struct mx_run *r, const struct mx_snapshots_found *found);
int mx_snapshots_write_note(struct mx_run *r, const struct mx_snapshots_found *found);

/* ---- snapshot_rows.c: as struct mx_taking has them */

int mx_snapshot_rows(void *run, int64_t step, int array, int64_t z, int64_t y0, int64_t y1, const char *from,
                     int64_t pitch_bytes, mx_why *why);
int mx_snapshot_whole(void *run, int64_t step, mx_why *why);
/* The file of a step that all ranks write to, until it has its name; what a killed run has left of it is a
 * temporary for the next. */
void mx_snapshot_joint_name(const struct mx_run_snapshots *snapshots, const struct mx_snapshot_file *file,
                            int64_t step, char path[PATH_MAX + 64]);

#endif
