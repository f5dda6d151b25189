/* SPDX-License-Identifier: BSD-3-Clause */
/* fuse_private.h - shared by the files of fuse.h. Functions that return int return 0 or -errno with r->why.
 */
#ifndef MX_RUN_FUSE_PRIVATE_H
#define MX_RUN_FUSE_PRIVATE_H

#include "run/work/work.h"

enum {
    MX_FUSE_PIECE_BYTES = 1 << 20,
    MX_FUSE_HEAD_BYTES = 128, /* of a .npy file */
};

/* ---- feed.c */

int64_t mx_fuse_row_bytes(const struct mx_fuse_field *field); /* in its file */
/* Returns the bytes of files that are read for these rows of the state. */
int64_t mx_fuse_read_bytes(const struct mx_run *r, int64_t z, int64_t y0, int64_t y1);
int mx_run_feed(void *run, int32_t thread, int64_t z, int64_t y0, int64_t y1, char *rows, int64_t pitch_bytes,
                mx_why *why);
/* For a run that begins (again): takes identities, and opens devices that read the files. */
int mx_fuse_open_files(struct mx_run *r);
int mx_fuse_open_staging(struct mx_run *r);

/* ---- foresee.c: follow the schedule's steps. 1 = there are too many steps. */

/* Along the last sweep: the plane that comes next if all comes in order. */
struct mx_fuse_order {
    int64_t z, interior_z, rows;
    int64_t *next; /* [nz]: the row that each plane gets next, if those of a plane come in order */
    bool file, interior, planes;
    int64_t bytes; /* in Buffers */
};
int mx_fuse_follow_first(struct mx_run *r);
int mx_fuse_follow_last(struct mx_run *r, struct mx_fuse_order *order);

/* ---- take.c */

int64_t mx_fuse_places(const struct mx_run *r, int64_t z); /* of a plane in the output: 1, or 2 */
void mx_fuse_put_row(struct mx_run *r, int64_t z, int64_t y, const char *row);
int mx_fuse_take_box(void *run, const struct mx_taken_box *box, mx_why *why);
int mx_fuse_take_whole(void *run, int64_t step, mx_why *why);
int mx_fuse_open_writers(struct mx_run *r);

/* ---- frames.c */

/* The planes of the output that this rank writes: its own, and the frame at ends without a neighbour. */
static inline int64_t mx_fuse_first_own(const struct mx_problem *p) {
    return mx_has_neighbour(p, 0) ? p->h : 0;
}
static inline int64_t mx_fuse_end_own(const struct mx_problem *p) {
    return p->nz + p->h + (mx_has_neighbour(p, 1) ? 0 : p->h);
}
int64_t mx_fuse_frame_rows(const struct mx_problem *problem); /* of them */
int64_t mx_fuse_frame_rows_out(const struct mx_run *r);       /* with copies that are written besides */
int mx_fuse_count_frames(struct mx_run *r);  /* before there is any memory: what will be read */
int mx_fuse_output_frames(struct mx_run *r); /* of the result, into the outputs */

#endif
