/* SPDX-License-Identifier: BSD-3-Clause */
/* calctrans.h - counts exactly what a wavefront run moves and needs, and chooses waves and tiles.
 *
 * A pass advances the data matrix by W iterations (waves). It reads every tile of the six matrices once, and
 * writes the data matrix once. So an iteration costs transfers of 7 / W matrices. For that DRAM holds W + P +
 * 1 tile rows of the six matrices: wave w works w - 1 tile rows after the first one, and P workers are one
 * tile row apart each.
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
    bool unchained;  /* a pass begins only when the one before is complete */
    char tuner[12];  /* "auto" or "manual" */
};

struct mx_wf_traffic {
    int64_t passes;
    int64_t read_bytes, write_bytes; /* of all passes */
    int64_t load_bytes;              /* written by the conversion to the layout */
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
    uint64_t dram_bytes;    /* for the pass */
    uint64_t program_bytes; /* of --dram that is not, said where it does not suffice */
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
/* Finds the plan with the least predicted time that fits; of equal ones that with less DRAM. -ENOMEM with the
 * DRAM of the smallest plan. */
int mx_wf_tune(const struct mx_wf_request *request, mx_why *why, struct mx_wf_choice *out);

#endif
