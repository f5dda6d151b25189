/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - what can be asked of a run, as one table: a row each with its name, how its text is read, where
 * the value goes and what help says. The command line (cli/options.c) and mx_run_open read the same rows.
 *
 * A new option is a field of struct mx_options, a row of mx_option_rows and, where no function reads such a
 * value yet, a function.
 */
#ifndef MX_RUN_OPTIONS_H
#define MX_RUN_OPTIONS_H

#include "system/system.h"

#define MX_OPTIONS_MOST 128 /* rows of the table */

/* Values of an option that may be given several times. */
enum { MX_WORDS_MOST = 96 };
struct mx_words {
    int32_t n;
    const char *word[MX_WORDS_MOST];
};

/* Texts are the caller's and outlive the options. */
struct mx_options {
    struct mx_problem problem; /* nx.. from -n; 0 = not given (--input gives them) */
    bool reserve_paper, reserve_auto;
    bool source; /* a program gives the initial grid, by callbacks */
    const char *path, *backend, *algorithm, *tuner, *engine, *init, *input, *output, *plan, *json, *fault;
    /* Systems. With a kernel, or where a store holds a system, input, init and output above are NULL and
     * these hold all of them. */
    const char *kernel;
    struct mx_words params, fields, inputs, inits, outputs;
    bool in_place, field_copy;
    int64_t ranks;                           /* --ranks; 0 = not given */
    const char *rank_weights;                /* --rank-weights; NULL = all alike */
    const char *link;                        /* --link; NULL = that of the process */
    double link_bytes_per_s, link_latency_s; /* what it says of the link; 0 and < 0 = nothing */
    const char *accel;                       /* --accel; NULL = none */
    uint64_t device_memory;                  /* --device-memory; 0 = all of it */
    struct mx_words sides;                   /* --side */
    struct mx_words frames;                  /* --frame */
    bool bare_output;                        /* --output-frame none */
    struct mx_words point_sources;           /* --source */
    const char *sources, *probes, *probes_out;
    const char *nonfinite;  /* --nonfinite: end or ignore; NULL = not given */
    int64_t check;          /* --check; 0 = not given */
    struct mx_words untils; /* --until */
    /* --snapshot: steps from one to the next (0 = none), one cell of how many; the directory stands in the
     * option's text, so many bytes of it */
    int64_t snapshot_every, snapshot_stride;
    const char *snapshot_directory, *snapshot_fields;
    size_t snapshot_length;
    int64_t by, bz, bt; /* --block; 0 = not given */
    int64_t iy, iz;     /* --iblock */
    int64_t tile, ct;   /* --tile */
    int64_t slab, column, ahead, threads;
    uint64_t dram_bytes, reserve_bytes; /* 0 = not given */
    enum mx_advice advice;
    bool dry_run, verify, resume, same, quiet, force, keep, sqpoll, iopoll, uncached, no_register, lock,
        no_lock, no_fuse;
    uint64_t queue_depth, request_bytes, workers;
    const char *timeline, *trace;
    /* tune */
    int64_t cores, sockets;
    uint64_t l2_bytes, l3_bytes, align_bytes, capacity_bytes;
    const char *topology;
    double read_bw, write_bw, mixed_bw, rate; /* bytes/s, updates/s; 0 = measured or default */
    double calibrate_s;                       /* 0 = as long as it takes, with a search for sizes */
    bool exhaustive, calibrate, explain;
    /* run: what is left behind */
    bool overwrite, integrity;
    double commit_every;                  /* seconds; if given */
    const char *place;                    /* info, export: the word without an option */
    uint64_t given[MX_OPTIONS_MOST / 64]; /* which were given, a bit for each row: see mx_option_given */
};

/* Who takes an option. LIBRARY: mx_run_open. */
enum mx_command { MX_CMD_RUN = 1, MX_CMD_TUNE = 2, MX_CMD_INFO = 4, MX_CMD_EXPORT = 8, MX_CMD_LIBRARY = 16 };

struct mx_option {
    const char *name;
    int letter;        /* short form or 0 */
    unsigned commands; /* of enum mx_command */
    int words;         /* of its value on a command line; 0 = it has none */
    int (*take)(const struct mx_option *row, const char *value, struct mx_options *options, mx_why *why);
    size_t offset;      /* of its field in struct mx_options */
    uint64_t low, high; /* limits of a number; high 0 = none */
    const char *argument, *help;
};
extern const struct mx_option mx_option_rows[]; /* ends with name NULL */
/* NULL where no row of the command has this name. */
const struct mx_option *mx_option_find(enum mx_command command, const char *name);

/* Reads a value into its field. value: words are separated by blanks; NULL for an option without. 0, 1 =
 * help was asked for, -EINVAL. */
int mx_option_take(const struct mx_option *row, const char *value, struct mx_options *options, mx_why *why);
/* Once all options are taken: checks that they agree, fills in what follows from them. -EINVAL. */
int mx_options_complete(enum mx_command command, struct mx_options *options, mx_why *why);
/* Was this option (its long form) given? */
bool mx_option_given(const struct mx_options *options, const char *name);

/* "512MiB" "64 GiB" "4096" -> bytes. -EINVAL. */
int mx_parse_size(const char *text, uint64_t *out);
/* "1.50 GiB"; returns buffer. */
const char *mx_format_size(uint64_t bytes, char *buffer, size_t capacity);

#endif
