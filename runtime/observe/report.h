/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - writes the report of a run: JSON for programs, a summary for people. */
#ifndef MX_REPORT_H
#define MX_REPORT_H

#include <memext/memext.h>

#include "machine/machine.h"
#include "observe/usage.h"
#include "system/norms.h"
#include "system/simulated.h"
#include "system/system.h"

#include <jansson.h>
#include <stdio.h>

/* The snapshots of --snapshot. */
struct mx_report_snapshots {
    int64_t every, stride; /* every 0 = none */
    const char *directory;
    int64_t count, bytes, predicted_count, predicted_bytes;
    double seconds; /* of the thread that wrote them */
};

/* The file of a read-only field. */
struct mx_report_file {
    const char *field, *path, *inside; /* inside: the dataset of an HDF5 file, else "" */
    bool in_place;                     /* the run reads the file itself; else it was copied */
    char alike[4];                     /* of a profile, held in DRAM: the axes along which it is constant */
    bool page_cache;                   /* read in place, but through the page cache */
    uint32_t align_bytes;              /* read in place: alignment of its transfers */
};
enum { MX_REPORT_FILES = MX_MAX_FIXED };

/* A run on an accelerator. The bytes got from the device equal the bytes written, and the bytes put equal the
 * bytes read, apart from messages of ranks and snapshots (more_put_bytes). This also holds for the
 * prediction. */
struct mx_report_accel {
    char name[16], device[128];         /* name "" = none */
    int32_t number, sharers;            /* number of the device, -1 = none was named; ranks that share it */
    uint64_t memory_bytes;              /* that may be used; UINT64_MAX = as much as there is DRAM */
    uint64_t used_bytes, staging_bytes; /* used in its memory; DRAM of the staging memory */
    uint64_t put_bytes, get_bytes, operations;
    bool pinned; /* the staging memory is pinned */
    bool direct; /* Buffers in DRAM are pinned: their planes bypass the staging memory */
    /* Predicted bytes put beyond those read: messages of neighbours, less what is read to be sent first or
     * for snapshots. */
    int64_t more_put_bytes;
    uint64_t aside_put_bytes, aside_get_bytes; /* of points and norms, not part of the above */
    /* The rates from which the plan's seconds were predicted, and their source ("default" "cached" "measured"
     * "given"). */
    double put_bytes_per_s, get_bytes_per_s, updates_per_s;
    const char *bus_source, *kernel_source;
    double kernel_s, bus_s, flash_s; /* predicted, each alone */
};

/* The phases of a run, in order. Bytes count transfers of Buffers, of files that are read in place or by the
 * first sweep, and of outputs that the last sweep writes (these count in the output phase). Files that are
 * read or written in a pass of their own, through the page cache, are not counted. */
enum mx_report_phases {
    MX_PHASE_PREPARE,
    MX_PHASE_INIT,
    MX_PHASE_STENCIL,
    MX_PHASE_CHECKSUM,
    MX_PHASE_VERIFY, /* its bytes are not predicted */
    MX_PHASE_OUTPUT,
    MX_PHASE_FINISH,
    MX_PHASES
};
struct mx_report_phase {
    double seconds;
    int64_t read_bytes, write_bytes, predicted_read_bytes, predicted_write_bytes;
};

/* What is done during the sweeps instead of in a pass of its own, or why it is not. */
struct mx_report_fused {
    bool made; /* of `source`: only --init, no file is read */
    bool source, checksum, output;
    const char *no_source, *no_checksum, *no_output;
};

/* The parts of the predicted seconds (tune.h, mx_seconds). */
struct mx_report_time {
    double io_s, stall_s, compute_s, copy_s, cores_s, edge_s;
};

struct mx_report {
    struct mx_report_accel accel;
    struct mx_problem problem;
    struct mx_machine machine;
    struct mx_plan plan;
    struct mx_layout layout;
    struct mx_device_facts device;
    struct mx_counters counters; /* of the stencil phase */
    struct mx_usage usage;       /* of the stencil phase */
    const char *status;          /* "planned" "done" "interrupted" "failed" "different" "nonfinite" */
    const char *error;           /* a sentence, when it failed; NULL or "" = none */
    double seconds, init_seconds, verify_seconds;
    double wall_seconds; /* since the run was opened */
    struct mx_report_phase phase[MX_PHASES];
    struct mx_report_fused fused;
    double update_s, blk2blk_s, wait_s;
    int64_t updates; /* cells computed, redundant ones included */
    int64_t steps_done, resumed_from;
    int64_t nonfinite_cells; /* in the state that ended the run, or else in its newest one; 0 = none */
    int64_t predicted_read_bytes, predicted_write_bytes, predicted_init_bytes, predicted_updates;
    int64_t side_file_bytes; /* file of seams, beside the Buffers; 0 = none */
    double predicted_seconds, seconds_a_sweep;
    int64_t sweeps; /* sweeps that are left */
    struct mx_report_time predicted_time;
    int32_t buffers;       /* 2 or 3; with 3 one keeps the committed state */
    bool commits;          /* a run can be resumed from a finished sweep */
    double commit_every_s; /* 0 = after every sweep */
    bool integrity;
    uint64_t hash_bytes; /* of --integrity, written with the commits of the stencil phase; not in counters */
    int64_t sources, probes; /* cells to which something is added, or that are recorded; 0 = none */
    int64_t check;           /* steps from one check to the next; 0 = no checks */
    int32_t n_until;
    char until[MX_UNTILS_MOST][MX_UNTIL_TEXT];
    struct mx_met met;
    struct mx_simulated simulated;          /* seconds of the steps */
    const struct mx_norms_history *history; /* NULL = none */
    struct mx_report_snapshots snapshots;
    int64_t fault_calls; /* for tests: system calls that --fault counted; 0 = none */
    uint64_t dram_budget_bytes, dram_limit_bytes, block_bytes, peak_rss_bytes;
    bool moves;        /* memext moves the data (else Linux does, for a mapping) */
    int verified;      /* 1 yes, 0 no, -1 not asked */
    char checksum[17]; /* "" if there is no result */
    const char *input, *init;
    const char *calls; /* functions of the kernel whose bits depend on the machine; "" = none */
    struct mx_report_file file[MX_REPORT_FILES];
    int32_t n_files;
};

/* Returns the updates per second. */
static inline double mx_report_rate(const struct mx_report *r) {
    const struct mx_problem *p = &r->problem;
    double cells = (double)p->nx * (double)p->ny * (double)p->nz * (double)(r->steps_done - r->resumed_from);
    return r->seconds > 0 ? cells / r->seconds : 0;
}

json_t *mx_json_problem(const struct mx_problem *problem);
json_t *mx_json_machine(const struct mx_machine *machine);
json_t *mx_json_plan(const struct mx_plan *plan);
json_t *mx_report_json(const struct mx_report *report);
/* Put parts of it into reports of other kinds of runs: status, machine, device and memory; measurements. */
void mx_report_put_run(json_t *object, const struct mx_report *report);
void mx_report_put_measured(json_t *object, const struct mx_report *report);
/* Prints before a run: problem, plan, predictions, commits. */
void mx_report_print_plan(const struct mx_report *report, FILE *to);
/* Prints after a run: measurements and the checksum. */
void mx_report_print_result(const struct mx_report *report, FILE *to);

#endif
