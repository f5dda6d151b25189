/* SPDX-License-Identifier: BSD-3-Clause */
/* table.h - the table of options. A row holds the option's name, the function that reads its text, the field
 * for its value, and its text for users. The command line (cli/options.c), mx_run_open and job files use the
 * same rows. docs/make_options.py makes help, the manual, completion and the keywords of Python's Run from
 * them.
 *
 * To add an option, add a field to struct mx_options and a row to one of the files rows_*.c. If no function
 * reads such a value yet, add one to take.c.
 */
#ifndef MX_ASK_TABLE_H
#define MX_ASK_TABLE_H

#include "ask/options.h"

/* The commands that accept an option. LIBRARY: mx_run_open. */
enum mx_command {
    MX_CMD_RUN = 1,
    MX_CMD_TUNE = 2,
    MX_CMD_INFO = 4,
    MX_CMD_EXPORT = 8,
    MX_CMD_LIBRARY = 16,
    MX_CMD_KERNEL = 32,
    MX_CMD_VIEW = 64, /* the Python package reads it */
    MX_CMD_WAVEFRONT = 128,
    MX_CMD_TUNE_WAVEFRONT = 256
};

enum mx_group {
    MX_GROUP_PROBLEM,
    MX_GROUP_KERNEL,
    MX_GROUP_POINTS,
    MX_GROUP_CHECKS,
    MX_GROUP_OUTPUT,
    MX_GROUP_PLACE,
    MX_GROUP_RESUME,
    MX_GROUP_PLAN,
    MX_GROUP_TRANSFERS,
    MX_GROUP_RANKS,
    MX_GROUP_ACCEL,
    MX_GROUP_RATES,
    MX_GROUP_MACHINE,
    MX_GROUP_WAVEFRONT,
    MX_GROUP_REPORT,
    MX_GROUPS
};

/* The word for `--help GROUP`, and a title. */
struct mx_group_name {
    const char *name, *title;
};
extern const struct mx_group_name mx_group_names[MX_GROUPS];

/* With --resume an option is free (it may have another value than before), or must be the same (a given value
 * is compared with the store's). */
enum mx_on_resume { MX_RESUME_FREE, MX_RESUME_SAME };

struct mx_option;
typedef int mx_take(const struct mx_option *row, const char *value, struct mx_options *options, mx_why *why);
typedef const char *mx_value_at(int i); /* NULL behind the last one */

/* A row. Texts are sentences for users. In `more` each line is a paragraph. `word` is a word to type, and a
 * line "* `word`: text" is an item of a list. */
struct mx_option {
    const char *name;
    int letter; /* short form or 0 */
    enum mx_group group;
    unsigned commands; /* of enum mx_command */
    unsigned first;    /* commands whose first page of help shows it */
    int words;         /* words of its value on a command line; 0 = it has no value */
    bool repeats;      /* may be given several times */
    bool optional;     /* its value may be left out */
    mx_take *take;
    size_t offset;               /* of its field in struct mx_options */
    uint64_t low, high;          /* limits of a number; high 0 = none */
    const char *argument;        /* form of the value */
    const char *summary, *more;  /* a sentence; paragraphs or NULL */
    mx_value_at *value_at;       /* values with a name, or NULL */
    bool closed;                 /* there are no other values than these */
    const char *unit, *range;    /* range: text for limits that low and high do not give */
    const char *zero, *initial;  /* what 0 means; the value without the option */
    enum mx_on_resume on_resume; /* of options of a run */
    /* excludes: options that it contradicts, separated by blanks; because: the reason. needs: options of
     * which at least one must be given. */
    const char *excludes, *because, *needs;
    int fewest; /* the least number of words, if the last of its `words` numbers may be left out; 0 = all are
                   needed */
};

/* Returns row i, in the order of the manual; NULL after the last one. */
const struct mx_option *mx_option_at(int i);
/* Finds the row of a command by its name; NULL = there is none. */
const struct mx_option *mx_option_find(enum mx_command command, const char *name);

/* Returns -EINVAL for an unknown option, with a sentence that suggests the nearest name. name has `length`
 * bytes. dashes: what stands before an option there ("--" or ""). way: where options are listed. */
int mx_no_option(enum mx_command command, const char *name, size_t length, const char *dashes,
                 const char *way, mx_why *why);

/* Reads a value into its field. value: its words are separated by blanks; NULL if the option has no value. 0,
 * 1 = help was asked for, -EINVAL. */
int mx_option_take(const struct mx_option *row, const char *value, struct mx_options *options, mx_why *why);
/* Was this option given? name: its long form. */
bool mx_option_given(const struct mx_options *options, const char *name);
/* Call it when all options are read: checks that they agree, and fills in values that follow from others.
 * -EINVAL. */
int mx_options_complete(enum mx_command command, struct mx_options *options, mx_why *why);
/* Checks that --input, --init and --output name no other field than that of a built-in stencil: for callers
 * that know from a store what is computed. -EINVAL. */
int mx_check_built_in_words(const struct mx_options *options, mx_why *why);

#endif
