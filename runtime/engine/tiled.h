/* SPDX-License-Identifier: BSD-3-Clause */
/* tiled.h - inside engine/ only: what the files of the tiled engine (tiled.c) share. */
#ifndef MX_TILED_H
#define MX_TILED_H

#include "engine/flow.h"
#include "engine/resident.h"
#include "engine/work.h"

struct job {
    struct mx_advance a;
    int64_t x_origin, y_origin, z_origin; /* skewed coordinates of column 0, tile 0 and slab 0 */
    int64_t z_end;
    int64_t slab, tile, column; /* sizes */
    int64_t x_skew;             /* cells a level */
    bool in_spans;              /* columns are those of tiles in place */
    int64_t chunks;             /* of all levels, those without work in this call among them */
    int64_t last_chunk;         /* that it, or a call it follows, has */
    bool regular;               /* spans go up from chunk to chunk */
    struct mx_flow_job flow;
    struct mx_flow_span *span;
    int64_t spans; /* allocated */
};

struct mx_engine {
    struct mx_work work;
    struct mx_flow *flow;
    struct mx_resident resident;
    int32_t threads;
    int64_t slab, tile, ct, column;
    bool to_l2;                   /* what is asked for ahead */
    struct job job[MX_FLOW_JOBS]; /* job n is job[n % MX_FLOW_JOBS] */
};

static inline struct job *mx_tiled_job(mx_engine *e, int64_t number) {
    return &e->job[number % MX_FLOW_JOBS];
}

static inline bool mx_tiled_has_seams(const struct mx_advance *a) {
    return a->seam_in.base || a->seam_out.base;
}

/* ---- tiled_sizes.c: of a tile, a chunk, a call; all pure. */

int64_t mx_tiled_slab(const struct mx_engine_options *o);
double mx_tiled_efficiency(const struct mx_engine_options *o);

/* With the planes of a tile in the place of those of a call: what the others are asked with. */
struct mx_engine_options mx_tiled_of_tile(const struct mx_engine_options *o);
int64_t mx_tiled_rows(const struct mx_engine_options *o);
int64_t mx_tiled_chunk(const struct mx_engine_options *o);
/* Cells. */
int64_t mx_tiled_column(const struct mx_engine_options *o);
bool mx_tiled_in_place(const struct mx_engine_options *o);
/* Cells of a span of tiles in place; 0: whole rows, or no tiles in place. */
int64_t mx_tiled_span(const struct mx_engine_options *o);
bool mx_tiled_small_l1(const struct mx_engine_options *o);

/* ---- tiled_job.c */

/* Cuts a call into lines and tiles; false when memory is short. */
bool mx_tiled_cut(const mx_engine *e, struct job *j);
/* Whether every box of `j` comes after, and is cut like, those of `before` (flow.h). */
bool mx_tiled_follows(const struct job *before, const struct job *j);
/* All in one line, which always has room. */
void mx_tiled_one_line(struct job *j);

/* ---- tiled_tile.c */

/* Seams of level 0, before the tiles of a call. */
void mx_tiled_load_seams(const mx_engine *e, const struct mx_advance *a);
/* For mx_flow_create, of an mx_engine. */
void mx_tiled_tile(void *arg, int thread, const struct mx_flow_tile *t);

#endif
