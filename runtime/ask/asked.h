/* SPDX-License-Identifier: BSD-3-Clause */
/* asked.h - options as texts, before their values are read: from a command line, a job file, or both. */
#ifndef MX_ASK_ASKED_H
#define MX_ASK_ASKED_H

#include "ask/effect.h"
#include "ask/table.h"

#include <jansson.h>

enum { MX_PLAIN_MOST = 2 };

/* Options in the order in which they were given, and the words that are not options. */
struct mx_asked {
    int32_t n, room;
    struct mx_asked_option {
        const struct mx_option *row;
        const char *value;
        char *own; /* memory that is freed with this option, or NULL */
    } * option;
    int32_t n_plain; /* words that are not options */
    const char *plain[MX_PLAIN_MOST];
    const char *extra; /* a word too many, or NULL */
};

/* Appends an option. `value` must stay valid as long as `asked` and the options read from it. `own`: NULL, or
 * memory that `asked` frees. -ENOMEM. */
int mx_asked_add(struct mx_asked *asked, const struct mx_option *row, const char *value, char *own,
                 mx_why *why);
/* Reads all values into `options`, which then point to the texts. Returns what mx_option_take returns. A word
 * too many is refused last, since the real mistake may be an option before it. */
int mx_asked_take(const struct mx_asked *asked, struct mx_options *options, mx_why *why);
/* Finds options that were given twice though they hold one value. The last value counts, and `say` gets a
 * remark for each. */
void mx_asked_say_twice(const struct mx_asked *asked, mx_remark *say, void *context);
/* Puts the options of `job` before those of a command line. It leaves out options that the line gives itself.
 */
int mx_asked_before(struct mx_asked *line, struct mx_asked *job, mx_why *why);
void mx_asked_free(struct mx_asked *asked);

/* A job file is one JSON object whose keys are options of memext run. These read a job from its text, and
 * make one. */
int mx_job_parse(const char *text, size_t bytes, mx_why *why, struct mx_asked *out);
json_t *mx_job_json(const struct mx_asked *asked);

#endif
