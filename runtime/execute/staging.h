/* SPDX-License-Identifier: BSD-3-Clause */
/* staging.h - inside execute/ only, with an accelerator: what stands between Buffers and its memory. Pieces
 * of DRAM that I/O reads into and writes from, each for one LOAD or STORE under way; and the arrays over
 * there. */
#ifndef MX_STAGING_H
#define MX_STAGING_H

#include "accel/accel.h"

#include <memext/memext.h>

/* Two LOADs, one being read and one being put, and two STOREs. */
enum { MX_STAGING_PIECES = 4, MX_STAGING_ARRAYS = MX_MAX_FIXED + 3 };

struct mx_staging {
    mx_accel *accel;
    mx_budget *budget;
    char *base;
    int64_t piece_bytes;
    uint32_t taken; /* a bit for each piece */
    bool pinned;
    struct mx_accel_span *spans; /* of the transfer that was turned last */
    struct {
        char *base;
        uint64_t budget_bytes; /* of arrays that are in DRAM all the same */
    } array[MX_STAGING_ARRAYS];
    int32_t arrays;
};

/* base: MX_STAGING_PIECES * piece_bytes, outlives it. n_spans: the most of a transfer. */
int mx_staging_open(struct mx_staging *staging, mx_accel *accel, mx_budget *budget, char *base,
                    int64_t piece_bytes, int64_t n_spans, mx_why *why);
void mx_staging_close(struct mx_staging *staging); /* nothing under way */

int mx_staging_array(struct mx_staging *staging, int64_t bytes, const char *what, mx_why *why, char **base);
/* What DRAM has at `from`, to an array; nothing else is under way. */
int mx_staging_put(struct mx_staging *staging, char *base, const char *from, int64_t bytes, mx_why *why);
int mx_staging_poison(struct mx_staging *staging, char *base, int64_t bytes, mx_why *why);

/* One half of the pieces is for LOADs, the other for STOREs: neither waits for the other. */
bool mx_staging_is_taken(const struct mx_staging *staging, bool load); /* all of its half */
int32_t mx_staging_take(struct mx_staging *staging, bool load);        /* a piece; there is one */
void mx_staging_give(struct mx_staging *staging, int32_t piece);

/* Spans between a Buffer and the accelerator's memory become spans between the Buffer and the piece;
 * staging->spans are those from there on. */
/* The same, where the Buffer at `memory` is reached directly: to that, and the piece stays unused. */
void mx_staging_pass_by(struct mx_staging *staging, char *memory, struct mx_span *spans, int64_t n);
void mx_staging_turn(struct mx_staging *staging, int32_t piece, struct mx_span *spans, int64_t n);

#endif
