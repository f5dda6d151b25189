/* SPDX-License-Identifier: BSD-3-Clause */
/* fuse.h - reads the input and writes the output during the sweeps, without passes of their own.
 *
 * Without this, the initial grid is written to a Buffer before the first sweep reads it, and the result is
 * read again for its checksum and once more for the output. If possible, this is done during the sweeps:
 *
 *     source    the first sweep's LOADs come from --init or --input; no Buffer holds step 0. Until a sweep is
 *               committed the store's note says `pending`: a resumed run begins with the input once more, if
 *               that is what it was (bytes, time of change, a sample of its content)
 *     checksum  is taken from the last sweep's STOREs, which must bring the rows of each plane in their order
 *     output    likewise, in any order: the file is written beside, and named when the result is committed
 *
 * The last sweep is written to the output alone if the run leaves nothing else: the store is removed at the
 * end, and nothing reads the result again. Until the output has its name, --resume starts from the last
 * commit before that sweep.
 *
 * Only mx_run_decide_fuse decides which of them a run does. It counts its predictions step by step along the
 * schedule's first and last sweep.
 */
#ifndef MX_RUN_FUSE_H
#define MX_RUN_FUSE_H

#include "execute/execute.h"
#include "files/fields.h"
#include "files/writer.h"
#include "tune/tune.h"

struct mx_run;

enum { MX_FUSE_THREADS = 8 };

/* A field of the state, and where its first values come from. */
struct mx_fuse_field {
    struct mx_run_field field; /* a copy, with the identity of its file; init, or a file that is open */
    int64_t offset_bytes;      /* of cell 0 of the field in a row */
    int64_t row_cells, rows;   /* of the file */
    mx_device *device;         /* that reads the file; NULL: init */
    mx_buffer *file;
    uint32_t align_bytes;
    /* where its result goes */
    struct mx_output *output; /* NULL = nowhere */
    struct mx_npy *npy;
    struct mx_writer *writer;
};

struct mx_run_fuse {
    bool source, checksum, output; /* what is done during the sweeps */
    char no_source[80], no_checksum[80],
        no_output[80]; /* why it is not done, in a few words; "" = it is done */
    struct mx_fuse_field field[MX_MAX_FIELDS];
    int32_t n;
    bool opened;                    /* the files of `source` */
    bool unfinished;                /* nothing was committed since: the input must not change */
    bool in_order;                  /* everything is stored in the order of the output, byte after byte */
    bool only;                      /* the last sweep goes only to the output, and to no Buffer */
    int32_t unused_buffers;         /* the first so many are never written */
    bool add_frame;                 /* the output's frame is not stored by the last sweep */
    int64_t saved_bytes, fed_bytes; /* of the first sweep's LOADs: in Buffers, and in files instead */
    int64_t unstored_bytes;         /* of the last sweep's STOREs that are not made */
    int64_t output_bytes;           /* of all files, bytes that are written twice included */
    int64_t init_read_bytes, init_bytes; /* of frames that are written before the first sweep */
    int64_t frame_read_bytes;            /* of add_frame */
    int64_t written_bytes;               /* measured, of all outputs */
    /* while the run goes on */
    struct mx_feeding feeding;
    struct mx_taking taking;
    mx_block *staging; /* `threads` pieces */
    uint64_t piece_bytes;
    uint64_t *digest; /* [nz]: of this rank's planes (digest.h) */
    bool whole;       /* the last sweep was taken */
    int output_err;   /* error of writing the outputs, with its sentence; reported when the result is handed
                         over */
    mx_why output_why;
};

/* Call it when there is a plan, and again if the plan changes. 0 or -errno with r->why. */
int mx_run_decide_fuse(struct mx_run *r);
/* -EINVAL with r->why: the input of a pending store has changed. */
int mx_run_check_pending(struct mx_run *r);
/* Call these before the first sweep: allocate memory and start threads; write frames that the schedule never
 * writes. After mx_run_begin_fuse `feeding` and `taking` are ready for mx_execution. */
int mx_run_begin_fuse(struct mx_run *r);
int mx_run_fuse_frames(struct mx_run *r);
/* -ESTALE with a sentence: a file of `source` changed, and no sweep was committed since it was read. */
int mx_run_fuse_unchanged(struct mx_run *r, mx_why *why);
/* Returns the digests of this rank's planes after the last sweep; NULL = they were not taken. */
const uint64_t *mx_run_fuse_digests(const struct mx_run *r);
/* Call it after the last sweep: frees memory. The whole result is then in the output's files, which have no
 * name yet; otherwise output_err and output_why say why not. 0, or -EINTR. */
int mx_run_end_fuse(struct mx_run *r);
void mx_run_fuse_counters(const struct mx_run *r, struct mx_counters *out);
/* Call it before the outputs are closed: nothing writes to them any more. */
void mx_run_drop_fuse(struct mx_run *r);
void mx_run_release_fuse(struct mx_run *r);

#endif
