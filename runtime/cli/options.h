/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - the command line: reads words into struct mx_options by the table of ask/table.h; help,
 * commands, exit statuses. */
#ifndef MX_CLI_OPTIONS_H
#define MX_CLI_OPTIONS_H

#include "ask/asked.h"

#include <jansson.h>

/* Finds the options in argv, without reading their values; argv[0] is the command's name. An option is known
 * by its whole name, or by a beginning that no other option has. `plain`: the most words that are not
 * options; more are an error. A request for help ends the reading. -EINVAL. */
int mx_options_read(enum mx_command command, int argc, char **argv, int plain, mx_why *why,
                    struct mx_asked *out);
/* Fills options from argv. 0, 1 = help was asked for (mx_options_help), -EINVAL. */
int mx_options_parse(enum mx_command command, int argc, char **argv, mx_why *why, struct mx_options *out);
/* Unless --quiet was given, says which value counts for options that were given twice. */
void mx_options_say_twice(const struct mx_asked *asked, const struct mx_options *options);
/* Prints help: topic NULL = the most important options; "all", or the name of a group. Returns the exit
 * status. */
int mx_options_help(enum mx_command command, const char *topic);

/* Prints the table of options as JSON to standard output. Returns the exit status. */
int mx_options_dump(void);

/* Writes one object to `path` ("-" = stdout), and drops the reference. An existing file is replaced when the
 * new one is complete. */
int mx_write_json(json_t *object, const char *path, mx_why *why);

int mx_cmd_run(int argc, char **argv);
int mx_cmd_tune(int argc, char **argv);
int mx_cmd_info(int argc, char **argv);
int mx_cmd_export(int argc, char **argv);
int mx_cmd_kernel(int argc, char **argv);
int mx_cmd_view(int argc, char **argv);
int mx_cmd_wavefront(int argc, char **argv);
/* Is the word --wavefront there (memext tune --wavefront)? And that command itself. */
bool mx_wavefront_is_meant(int argc, char **argv);
int mx_cmd_tune_wavefront(int argc, char **argv);

/* Seconds after which a calibration has ended by itself. */
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
/* Returns the exit status for a negative errno that ended a command. moving: data was being moved, so every
 * error of a device (full, gone, timed out) counts as one of I/O, and not as a wrong request. */
int mx_exit_status(int err, bool moving);

#endif
