/* SPDX-License-Identifier: BSD-3-Clause */
/* table.h - the table of options: a row each with its name, how its text is read, where the value goes, and
 * what users are told of it. The command line (cli/options.c), mx_run_open and job files read the same rows;
 * help, the manual, completion and the keywords of Python's Run are made from them (docs/make_options.py).
 *
 * A new option is a field of struct mx_options, a row of one of the files rows_*.c and, where no function
 * reads such a value yet, a function of take.c.
 */
#ifndef MX_ASK_TABLE_H
#define MX_ASK_TABLE_H

#include "ask/options.h"

/* Who takes an option. LIBRARY: mx_run_open. */
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

/* With --resume: may be another than before; is compared with the store's, where it is given. */
enum mx_on_resume { MX_RESUME_FREE, MX_RESUME_SAME };

struct mx_option;
typedef int mx_take(const struct mx_option *row, const char *value, struct mx_options *options, mx_why *why);
typedef const char *mx_value_at(int i); /* NULL behind the last one */

/* Texts are sentences for users. In `more` a line is a paragraph, `word` is a word to be typed, and a line
 * "* `word`: text" belongs to a list. */
struct mx_option {
    const char *name;
    int letter; /* short form or 0 */
    enum mx_group group;
    unsigned commands; /* of enum mx_command */
    unsigned first;    /* those whose first page of help has it */
    int words;         /* of its value on a command line; 0 = it has none */
    bool repeats;      /* may be given several times */
    bool optional;     /* its value may be left out */
    mx_take *take;
    size_t offset;               /* of its field in struct mx_options */
    uint64_t low, high;          /* limits of a number; high 0 = none */
    const char *argument;        /* form of the value */
    const char *summary, *more;  /* a sentence; paragraphs or NULL */
    mx_value_at *value_at;       /* values with a name, or NULL */
    bool closed;                 /* it has no others */
    const char *unit, *range;    /* range: where low and high do not say it */
    const char *zero, *initial;  /* what 0 means; what holds without the option */
    enum mx_on_resume on_resume; /* of options of a run */
    /* Options that it contradicts, separated by blanks, and why; those of which it needs one. */
    const char *excludes, *because, *needs;
    int fewest; /* words, where the last of `words`, numbers, may be left out; 0 = all are needed */
};

/* Rows in the order of the manual; NULL behind the last one. */
const struct mx_option *mx_option_at(int i);
/* NULL where no row of the command has this name. */
const struct mx_option *mx_option_find(enum mx_command command, const char *name);

/* -EINVAL, and the name that was meant. name: so many bytes; dashes: as options are written there; way: where
 * they are listed. */
int mx_no_option(enum mx_command command, const char *name, size_t length, const char *dashes,
                 const char *way, mx_why *why);

/* Reads a value into its field. value: words are separated by blanks; NULL for an option without. 0, 1 =
 * help was asked for, -EINVAL. */
int mx_option_take(const struct mx_option *row, const char *value, struct mx_options *options, mx_why *why);
/* Was this option (its long form) given? */
bool mx_option_given(const struct mx_options *options, const char *name);
/* Once all options are taken: checks that they agree, fills in what follows from them. -EINVAL. */
int mx_options_complete(enum mx_command command, struct mx_options *options, mx_why *why);

#endif
