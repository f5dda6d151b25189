/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - the values of all options, as read from a command line, a job file or a program. */
#ifndef MX_ASK_OPTIONS_H
#define MX_ASK_OPTIONS_H

#include "system/system.h"

#define MX_OPTIONS_MOST 192 /* rows of the table */

/* Values of an option that may be given several times. */
enum { MX_WORDS_MOST = 96 };
struct mx_words {
    int32_t n;
    const char *word[MX_WORDS_MOST];
};

/* Texts belong to the caller, and must stay valid as long as the options. */
struct mx_options {
    struct mx_problem problem; /* nx, ny, nz from -n; 0 = not given (--input gives them) */
    bool reserve_paper, reserve_auto;
    bool source; /* a program gives the initial grid, by callbacks */
    const char *path, *backend, *algorithm, *tuner, *engine, *init, *input, *output, *plan, *json, *fault;
    /* Systems. With a kernel, or if the store holds a system, input, init and output above are NULL, and
     * these lists hold all of them. */
    const char *kernel;
    struct mx_words params, edit_params, edit_inputs, fields, inputs, inits, outputs;
    bool in_place, field_copy;
    int64_t ranks;                           /* --ranks; 0 = not given */
    const char *rank_weights;                /* --rank-weights; NULL = all ranks equal */
    const char *link;                        /* --link; NULL = the link that the process was started with */
    double link_bytes_per_s, link_latency_s; /* given with --link; 0 and < 0 = not given */
    const char *accel;                       /* --accel; NULL = none */
    uint64_t device_memory;                  /* --device-memory; 0 = all of it */
    struct mx_words sides;                   /* --side */
    struct mx_words frames;                  /* --frame */
    bool bare_output;                        /* --output-frame none */
    struct mx_words point_sources;           /* --source */
    const char *sources, *probes, *probes_out;
    const char *time_step;  /* --time-step: seconds, a parameter's name, "none"; NULL = not given */
    const char *nonfinite;  /* --nonfinite: end or ignore; NULL = not given */
    int64_t check;          /* --check; 0 = not given */
    struct mx_words untils; /* --until */
    struct mx_words reduce_stored;
    /* --snapshot: steps from one snapshot to the next (0 = none), and the stride: every n-th cell. The
     * directory is a part of the option's text, snapshot_length bytes long */
    int64_t snapshot_every, snapshot_stride;
    const char *snapshot_directory, *snapshot_fields;
    size_t snapshot_length;
    int64_t by, bz, bt; /* --block; 0 = not given */
    int64_t iy, iz;     /* --iblock */
    int64_t tile, ct;   /* --tile */
    int64_t slab, column, ahead, threads;
    uint64_t dram_bytes, reserve_bytes; /* 0 = not given */
    enum mx_advice advice;
    /* plan_only: of memext tune, where fields need no values */
    bool dry_run, plan_only, verify, resume, same, supersede, quiet, force, keep, sqpoll, iopoll, uncached,
        no_register, lock, no_lock, no_fuse;
    uint64_t queue_depth, request_bytes, workers;
    const char *timeline, *trace;
    /* tune */
    int64_t cores, sockets;
    uint64_t l2_bytes, l3_bytes, align_bytes, capacity_bytes;
    const char *topology;
    double read_bw, write_bw, mixed_bw, rate; /* bytes/s, updates/s; 0 = measured or default */
    double calibrate_s;                       /* 0 = as long as needed, with a search for sizes */
    bool exhaustive, calibrate, explain;
    /* run: what it leaves */
    bool overwrite, integrity;
    double commit_every;         /* seconds; if given */
    const char *place;           /* info, export: the word that is not an option */
    const char *topic;           /* --help: a group or "all"; NULL = the first page */
    const char *write_job, *job; /* job: the file that options were read from; NULL = none */
    struct {                     /* memext wavefront */
        int64_t rows, cols, iterations, mb, nb, waves, ahead;
        const char *layout;
        bool unchained, sequential;
    } wavefront;
    uint64_t given[MX_OPTIONS_MOST / 64]; /* which options were given, a bit for each row: mx_option_given */
};

#endif
