/* SPDX-License-Identifier: BSD-3-Clause */
/* calctrans.h - what a wavefront run moves and needs, exactly; and the choice of waves and tiles.
 *
 * A pass takes the data matrix W iterations (waves) on: every tile of the six matrices is read once and the
 * data matrix is written once, so that an iteration costs 7 / W matrices of transfers. For that DRAM holds W
 * + P + 1 tile rows of the six matrices: wave w works w - 1 tile rows behind the first one, and P workers are
 * as many tile rows apart.
 */
#ifndef MX_WAVEFRONT_CALCTRANS_H
#define MX_WAVEFRONT_CALCTRANS_H

#include "wavefront/layout.h"

struct mx_wf_plan {
    struct mx_wf_geometry geometry;
    int64_t waves;   /* W, of a pass, >= 1; the last pass may have fewer */
    int32_t threads; /* P, >= 1 */
    int64_t ahead;   /* tiles of all six matrices that are read ahead, >= 1 */
    int64_t behind;  /* tiles of the data matrix that are written behind, >= 1 */
    bool unchained;  /* a pass begins when the one before is complete */
    char tuner[12];  /* "auto" or "manual" */
};

struct mx_wf_traffic {
    int64_t passes;
    int64_t read_bytes, write_bytes; /* of all passes */
    int64_t load_bytes;              /* conversion to the layout, written */
    int64_t updates;                 /* cells computed */
};
void mx_wf_predict(const struct mx_wf_plan *plan, int64_t iterations, struct mx_wf_traffic *out);
/* DRAM of a pass: ring of tile rows, tiles under way, border rows. */
int64_t mx_wf_dram_bytes(const struct mx_wf_plan *plan);
/* Tile rows that the ring holds. */
static inline int64_t mx_wf_slots(const struct mx_wf_plan *p) { return p->waves + p->threads + 1; }
int64_t mx_wf_slot_bytes(const struct mx_wf_geometry *g);

struct mx_wf_request {
    int64_t rows, cols, iterations;
    enum mx_wf_layout layout;
    uint32_t align_bytes;
    uint64_t dram_bytes; /* for the pass */
    int32_t threads;
    int64_t mb, nb, waves, ahead; /* 0 = to be chosen */
    bool unchained;
    double read_bytes_per_s, write_bytes_per_s; /* 0 = 1 GB/s */
    double updates_per_s;                       /* of a thread; 0 = 3e8 */
};
struct mx_wf_choice {
    struct mx_wf_plan plan;
    struct mx_wf_traffic traffic;
    int64_t dram_bytes;
    double seconds; /* predicted */
    int64_t tried;  /* plans that fit */
};
/* The plan with the least predicted time of those that fit; of equals the one with less DRAM. -ENOMEM with
 * what the smallest plan needs. */
int mx_wf_tune(const struct mx_wf_request *request, mx_why *why, struct mx_wf_choice *out);

#endif
