/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - the command line: words into struct mx_options by the table of ask/table.h, help, commands,
 * exit statuses. */
#ifndef MX_CLI_OPTIONS_H
#define MX_CLI_OPTIONS_H

#include "ask/asked.h"

#include <jansson.h>

/* Reads argv (argv[0] is the command's name) as far as knowing its options. They are known by their whole
 * name or by a beginning that no other one shares. `plain`: as many words that are no options are taken, and
 * more are refused. A request for help ends it. -EINVAL. */
int mx_options_read(enum mx_command command, int argc, char **argv, int plain, mx_why *why,
                    struct mx_asked *out);
/* Fills options from argv. 0, 1 = help was asked for (mx_options_help), -EINVAL. */
int mx_options_parse(enum mx_command command, int argc, char **argv, mx_why *why, struct mx_options *out);
/* Says of options that were given twice, unless --quiet, which value holds. */
void mx_options_say_twice(const struct mx_asked *asked, const struct mx_options *options);
/* Prints help: NULL = the most important options; "all", or the name of a group. Exit status. */
int mx_options_help(enum mx_command command, const char *topic);

/* The table of options as JSON, to standard output. Exit status. */
int mx_options_dump(void);

/* Writes one object to `path` ("-" = stdout), which is replaced when all of it is there, and drops the
 * reference. */
int mx_write_json(json_t *object, const char *path, mx_why *why);

int mx_cmd_run(int argc, char **argv);
int mx_cmd_tune(int argc, char **argv);
int mx_cmd_info(int argc, char **argv);
int mx_cmd_export(int argc, char **argv);
int mx_cmd_kernel(int argc, char **argv);
int mx_cmd_view(int argc, char **argv);
int mx_cmd_wavefront(int argc, char **argv);
/* memext tune --wavefront: is that word there, and the command itself. */
bool mx_wavefront_is_meant(int argc, char **argv);
int mx_cmd_tune_wavefront(int argc, char **argv);

/* A calibration ends by itself, sooner than that. */
enum { MX_CALIBRATE_PATIENCE_S = 300 };

/* Exit statuses. */
enum {
    MX_EXIT_OK = 0,
    MX_EXIT_REFUSED = 2,
    MX_EXIT_IO = 3,
    MX_EXIT_DIFFERENT = 4,
    MX_EXIT_INTERRUPTED = 5,
    MX_EXIT_NONFINITE = 6
};
/* Status for a negative errno that ended a command. moving: data was being moved, so that any error of a
 * device (a full or vanished one, a time-out) is one of I/O, and not of a request that could be put right. */
int mx_exit_status(int err, bool moving);

#endif
