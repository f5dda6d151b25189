/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel.h - the loop itself (Livermore loop 23), in a form that runs fast on current processors.
 *
 * Along a row every cell waits for its left neighbour, about 8 dependent operations, so the plain loop is
 * limited by their latency. But a cell of the row below can be computed one column later, with the same
 * operations. So DRAM holds rows in groups of 8 lanes, skewed: record t has column t - k of the group's row k
 * in lane k. A record is one step of 8 independent cells; west and north are the record before, east and
 * south the record after. Two groups, the lower one MX_WF_LAG records later, are interleaved, so that still
 * more operations are under way. Each cell sees the plain loop's operations in the plain loop's order, so the
 * bits are the same.
 */
#ifndef MX_WAVEFRONT_KERNEL_H
#define MX_WAVEFRONT_KERNEL_H

#include "wavefront/layout.h"

enum { MX_WF_LANES = 8, MX_WF_LAG = 12 };

/* 8 cells of all matrices. za comes first, so that a load of it one lane further stays in the record. */
struct mx_wf_record {
    double za[MX_WF_LANES], zr[MX_WF_LANES], zb[MX_WF_LANES], zu[MX_WF_LANES], zv[MX_WF_LANES],
        zz[MX_WF_LANES];
};

/* Records of a group of rows of cols interior columns: lane k's column c, 0..cols + 1, is in record c + k. */
static inline int64_t mx_wf_records(int64_t cols) { return cols + 2 + MX_WF_LANES; }
static inline int64_t mx_wf_group_bytes(int64_t cols) {
    return mx_wf_records(cols) * (int64_t)sizeof(struct mx_wf_record);
}

struct mx_wf_group {
    struct mx_wf_record *at;
    int64_t cols;
    int64_t last;                   /* lane of the last row, 0..7; later lanes hold zeros */
    const double *north, *south;    /* column 0 of the row above and of the row below */
    int64_t north_step, south_step; /* doubles from one column to the next */
};

/* Row of lane k, as north or south of another group. */
static inline const double *mx_wf_lane(const struct mx_wf_record *at, int64_t k) { return &at[k].za[k]; }
enum { MX_WF_LANE_STEP = sizeof(struct mx_wf_record) / sizeof(double) };

/* Records t0..t1-1 of n groups that follow one another downwards, group g MX_WF_LAG * g records behind: t -
 * MX_WF_LAG * g, where that is one of 1..cols + 7. A row is complete at t = mx_wf_end. */
void mx_wf_advance(const struct mx_wf_group *groups, int64_t n, int64_t t0, int64_t t1);
static inline int64_t mx_wf_end(int64_t cols, int64_t groups) {
    return cols + MX_WF_LANES + MX_WF_LAG * (groups - 1);
}

/* The plain loop over one row of cols interior columns; pointers are to column 0. */
struct mx_wf_plain {
    double *za;
    const double *north, *south, *zr, *zb, *zu, *zv, *zz;
};
void mx_wf_plain_row(const struct mx_wf_plain *row, int64_t cols);

/* Records t0..t1-1 of the first group, all lanes of all n (1 or 2) groups within the interior: 8 <= t <=
 * cols. */
typedef void mx_wf_steps_fn(const struct mx_wf_group *groups, int n, int64_t t0, int64_t t1);
mx_wf_steps_fn mx_wf_steps_plain, mx_wf_steps_avx2;
/* Returns the name of the function in use: "avx2" or "plain". */
const char *mx_wf_isa(void);

#endif
