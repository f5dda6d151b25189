/* options.h - the command line of `memext run` and `memext tune`, parsed once for both. */
#ifndef MX_OPTIONS_H
#define MX_OPTIONS_H

#include "system/system.h"

struct mx_options {
    struct mx_problem problem; /* nx.. from -n; 0 = not given (--input gives them) */
    bool have_n, have_t, have_coef, have_dtype, have_reserve, reserve_paper, reserve_auto;
    const char *path, *backend, *algorithm, *tuner, *engine, *init, *input, *output, *plan, *json, *fault;
    int64_t by, bz, bt; /* --block; 0 = not given */
    int64_t iy, iz;     /* --iblock */
    int64_t slab, tile, ct, column, ahead, threads;
    uint64_t dram_bytes, reserve_bytes; /* 0 = not given */
    enum mx_advice advice;
    bool dry_run, verify, resume, quiet, force, keep, sqpoll, iopoll, uncached, no_register, lock, progress;
    uint64_t queue_depth, request_bytes, workers;
    const char *timeline, *trace;
    /* tune */
    int64_t cores, sockets;
    uint64_t l2_bytes, l3_bytes, align_bytes, capacity_bytes;
    const char *topology;
    double read_bw, write_bw, rate; /* bytes/s, bytes/s, updates/s; 0 = measured or default */
    bool exhaustive, calibrate, explain;
    /* run: what is left behind */
    bool overwrite, integrity;
    double commit_every; /* seconds; with have_commit_every */
    bool have_commit_every;
    const char *place; /* info, export: the word without an option */
    uint64_t given[2]; /* which options were given: see mx_option_given */
};

enum mx_command { MX_CMD_RUN = 1, MX_CMD_TUNE = 2, MX_CMD_INFO = 4, MX_CMD_EXPORT = 8 };

/* Fills options from argv (argv[0] is the command's name). Options are known by their whole name or by a
 * beginning that no other one shares. 0, 1 = help was asked for (print mx_options_help), -EINVAL. */
int mx_options_parse(enum mx_command command, int argc, char **argv, mx_why *why, struct mx_options *out);
/* Was --NAME (the long form) on the command line? */
bool mx_option_given(const struct mx_options *options, const char *name);
void mx_options_help(enum mx_command command, const char *program);

/* "512MiB" "64 GiB" "4096" -> bytes. -EINVAL. */
int mx_parse_size(const char *text, uint64_t *out);
/* "1.50 GiB"; returns buffer. */
const char *mx_format_size(uint64_t bytes, char *buffer, size_t capacity);

int mx_cmd_run(int argc, char **argv);
int mx_cmd_tune(int argc, char **argv);
int mx_cmd_info(int argc, char **argv);
int mx_cmd_export(int argc, char **argv);
int mx_cmd_wavefront(int argc, char **argv);
/* memext tune --wavefront: is that word there, and the command itself. */
bool mx_wavefront_is_meant(int argc, char **argv);
int mx_cmd_tune_wavefront(int argc, char **argv);

/* Exit statuses. */
enum { MX_EXIT_OK = 0, MX_EXIT_REFUSED = 2, MX_EXIT_IO = 3, MX_EXIT_DIFFERENT = 4, MX_EXIT_INTERRUPTED = 5 };
/* Status for a negative errno that ended a command. moving: data was being moved, so that any error of a
 * device (a full or vanished one, a time-out) is one of I/O, and not of a request that could be put right. */
int mx_exit_status(int err, bool moving);

#endif
