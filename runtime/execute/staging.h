/* SPDX-License-Identifier: BSD-3-Clause */
/* staging.h - inside execute/ only, with an accelerator: the memory between Buffers and the accelerator. It
 * has pieces of DRAM that I/O reads into and writes from, each for one LOAD or STORE under way; and the
 * arrays in the accelerator's memory. */
#ifndef MX_STAGING_H
#define MX_STAGING_H

#include "accel/accel.h"

#include <memext/memext.h>

/* Pieces for two LOADs (one is being read, one is being put) and for two STOREs. */
enum { MX_STAGING_PIECES = 4, MX_STAGING_ARRAYS = MX_MAX_FIXED + 3 };

struct mx_staging {
    mx_accel *accel;
    mx_budget *budget;
    char *base;
    int64_t piece_bytes;
    uint32_t taken; /* a bit for each piece */
    bool pinned;
    struct mx_accel_span *spans; /* of the transfer of the last mx_staging_turn or mx_staging_pass_by */
    struct {
        char *base;
        uint64_t budget_bytes; /* counted for an array that is in DRAM (a `here` device) */
    } array[MX_STAGING_ARRAYS];
    int32_t arrays;
};

/* base: MX_STAGING_PIECES * piece_bytes bytes, which stay valid until mx_staging_close. n_spans: the most
 * spans of a transfer. */
int mx_staging_open(struct mx_staging *staging, mx_accel *accel, mx_budget *budget, char *base,
                    int64_t piece_bytes, int64_t n_spans, mx_why *why);
void mx_staging_close(struct mx_staging *staging); /* nothing under way */

/* Allocates an array in the accelerator's memory, which messages call `what`. */
int mx_staging_array(struct mx_staging *staging, int64_t bytes, const char *what, mx_why *why, char **base);
/* Copies bytes of DRAM to an array; nothing else is under way. */
int mx_staging_put(struct mx_staging *staging, char *base, const char *from, int64_t bytes, mx_why *why);
/* For tests: fills an array with NaN. */
int mx_staging_poison(struct mx_staging *staging, char *base, int64_t bytes, mx_why *why);

/* One half of the pieces is for LOADs, the other for STOREs: neither waits for the other. */
bool mx_staging_is_taken(const struct mx_staging *staging, bool load); /* is the whole half in use? */
int32_t mx_staging_take(struct mx_staging *staging, bool load); /* returns a free piece; there must be one */
void mx_staging_give(struct mx_staging *staging, int32_t piece);

/* For a Buffer at `memory` that the accelerator reaches directly: staging->spans become those between it and
 * the accelerator's memory. No piece is used. */
void mx_staging_pass_by(struct mx_staging *staging, char *memory, struct mx_span *spans, int64_t n);
/* Turns spans between a Buffer and the accelerator's memory into spans between the Buffer and the piece.
 * staging->spans become those between the piece and the accelerator's memory. */
void mx_staging_turn(struct mx_staging *staging, int32_t piece, struct mx_span *spans, int64_t n);

#endif
