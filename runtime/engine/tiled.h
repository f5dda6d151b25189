/* SPDX-License-Identifier: BSD-3-Clause */
/* tiled.h - inside engine/ only: shared by the files of the tiled engine (tiled.c). */
#ifndef MX_TILED_H
#define MX_TILED_H

#include "engine/flow.h"
#include "engine/resident.h"
#include "engine/work.h"

/* A call of the engine, cut into lines and tiles. */
struct job {
    struct mx_advance a;
    int64_t x_origin, y_origin, z_origin; /* skewed coordinates of column 0, tile 0 and slab 0 */
    int64_t z_end;
    int64_t slab, tile, column; /* sizes */
    int64_t x_skew;             /* cells per level */
    bool in_spans;              /* columns are spans of tiles that are computed in place */
    int64_t chunks;             /* chunks of all levels, also those without work in this call */
    int64_t last_chunk;         /* the last chunk of this call, or of a call that it follows */
    bool regular;               /* spans ascend from chunk to chunk */
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
    bool asks_ahead, to_l2;       /* tiles prefetch; to L2 only */
    struct job job[MX_FLOW_JOBS]; /* job n is job[n % MX_FLOW_JOBS] */
};

static inline struct job *mx_tiled_job(mx_engine *e, int64_t number) {
    return &e->job[number % MX_FLOW_JOBS];
}

static inline bool mx_tiled_has_seams(const struct mx_advance *a) {
    return a->seam_in.base || a->seam_out.base;
}

/* ---- tiled_sizes.c: sizes of tiles, chunks and calls; all functions are pure. */

int64_t mx_tiled_slab(const struct mx_engine_options *o);
double mx_tiled_efficiency(const struct mx_engine_options *o);

/* Returns the options with the planes of a tile instead of those of a call. The following functions need such
 * options. */
struct mx_engine_options mx_tiled_of_tile(const struct mx_engine_options *o);
int64_t mx_tiled_rows(const struct mx_engine_options *o);
int64_t mx_tiled_chunk(const struct mx_engine_options *o);
/* Returns the cells of a column in x. */
int64_t mx_tiled_column(const struct mx_engine_options *o);
bool mx_tiled_in_place(const struct mx_engine_options *o);
/* Returns the cells of a span of tiles in place; 0 = whole rows, or no tiles in place. */
int64_t mx_tiled_span(const struct mx_engine_options *o);
bool mx_tiled_small_l1(const struct mx_engine_options *o);
/* Are lines prefetched that a tile will need? */
bool mx_tiled_asks_ahead(const struct mx_engine_options *o);

/* ---- tiled_job.c */

/* Cuts a call into lines and tiles; false = no memory. */
bool mx_tiled_cut(const mx_engine *e, struct job *j);
/* Does every box of `j` come after those of `before`, and are they cut in the same way (flow.h)? */
bool mx_tiled_follows(const struct job *before, const struct job *j);
/* Puts all tiles of a call into one line, for which there is always memory. */
void mx_tiled_one_line(struct job *j);

/* ---- tiled_tile.c */

/* Inserts the seams of level 0, before the tiles of a call. */
void mx_tiled_load_seams(const mx_engine *e, const struct mx_advance *a);
/* Computes a tile: the function for mx_flow_create, whose `arg` is an mx_engine. */
void mx_tiled_tile(void *arg, int thread, const struct mx_flow_tile *t);

#endif
