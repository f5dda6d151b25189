/* SPDX-License-Identifier: BSD-3-Clause */
/* table.h - what can be asked of a run, as one table: a row each with its name, how its text is read, where
 * the value goes and what help says. The command line (cli/options.c) and mx_run_open read the same rows.
 *
 * A new option is a field of struct mx_options, a row of mx_option_rows and, where no function reads such a
 * value yet, a function of ask/take.c.
 */
#ifndef MX_ASK_TABLE_H
#define MX_ASK_TABLE_H

#include "ask/options.h"

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

#endif
