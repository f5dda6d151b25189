/* SPDX-License-Identifier: BSD-3-Clause */
/* fuse.h - from file to file in as few passes as there are sweeps.
 *
 * Otherwise the initial grid is written to a Buffer before the first sweep reads it, and the result is read
 * again for its checksum and once more for the output. Where both can be done while the sweeps go on,
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
 * mx_run_decide_fuse alone says which of them a run does. What it predicts it counts step by step along the
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
    int64_t offset_bytes;      /* of its cell 0 in a row */
    int64_t row_cells, rows;   /* of the file */
    mx_device *device;         /* that reads the file; NULL: init */
    mx_buffer *file;
    uint32_t align_bytes;
    /* where it goes */
    struct mx_output *output; /* NULL = nowhere */
    struct mx_npy *npy;
    struct mx_writer *writer;
};

struct mx_run_fuse {
    bool source, checksum, output;                      /* what is done while sweeps go on */
    char no_source[80], no_checksum[80], no_output[80]; /* why not, in a few words; "" = it is */
    struct mx_fuse_field field[MX_MAX_FIELDS];
    int32_t n;
    bool opened;     /* the files of `source` */
    bool unfinished; /* nothing was committed since: what the run began with has to stay as it is */
    bool in_order;   /* all that is stored comes as the output has it, byte after byte */
    bool only;       /* the last sweep goes to the output and to no Buffer: nothing of it is kept besides */
    int32_t unused_buffers;              /* the first so many are never written */
    bool add_frame;                      /* the output's frame is not stored by the last sweep */
    int64_t saved_bytes, fed_bytes;      /* of the first sweep's LOADs: in Buffers, and in files instead */
    int64_t unstored_bytes;              /* of the last sweep's STOREs that are not made */
    int64_t output_bytes;                /* of all files, with what is written twice */
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
    int output_err;   /* of writing the outputs, with its sentence: told when the result is handed over */
    mx_why output_why;
};

/* Once there is a plan; again where the plan changes. 0 or -errno with r->why. */
int mx_run_decide_fuse(struct mx_run *r);
/* -EINVAL with r->why: what a pending store began with is not what it was. */
int mx_run_check_pending(struct mx_run *r);
/* Before the first sweep: memory, threads; frames that a schedule never writes. After mx_run_begin_fuse what
 * mx_execution asks for is in feeding and taking. */
int mx_run_begin_fuse(struct mx_run *r);
int mx_run_fuse_frames(struct mx_run *r);
/* -ESTALE with a sentence: a file of `source` changed, and no sweep was committed since it was read. */
int mx_run_fuse_unchanged(struct mx_run *r, mx_why *why);
/* The digests of this rank's planes, of the last sweep; NULL: they were not taken. */
const uint64_t *mx_run_fuse_digests(const struct mx_run *r);
/* After the last sweep: gives its memory back, all of the result is in the output's files, which are still
 * without a name, or output_err and output_why say why not. 0, or -EINTR. */
int mx_run_end_fuse(struct mx_run *r);
void mx_run_fuse_counters(const struct mx_run *r, struct mx_counters *out);
/* Before the outputs are closed: nothing writes to them any more. */
void mx_run_drop_fuse(struct mx_run *r);
void mx_run_release_fuse(struct mx_run *r);

#endif
