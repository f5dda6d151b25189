/* SPDX-License-Identifier: BSD-3-Clause */
/* asked.h - options and their texts before they are taken: of a command line, of a job file, of both. */
#ifndef MX_ASK_ASKED_H
#define MX_ASK_ASKED_H

#include "ask/effect.h"
#include "ask/table.h"

#include <jansson.h>

enum { MX_PLAIN_MOST = 2 };

struct mx_asked {
    int32_t n, room;
    struct mx_asked_option {
        const struct mx_option *row;
        const char *value;
        char *own; /* freed with it, or NULL */
    } * option;
    int32_t n_plain; /* words that are no options */
    const char *plain[MX_PLAIN_MOST];
    const char *extra; /* a word too many, or NULL */
};

/* value: lives as long as it is wanted; own: NULL, or allocated and now of `asked`. -ENOMEM. */
int mx_asked_add(struct mx_asked *asked, const struct mx_option *row, const char *value, char *own,
                 mx_why *why);
/* Reads all values; options point to the texts. As mx_option_take. A word too many is refused last, for an
 * option before it may be what is wrong. */
int mx_asked_take(const struct mx_asked *asked, struct mx_options *options, mx_why *why);
/* Options that are not made to be repeated, with two values: the last one holds, and this is said of each. */
void mx_asked_say_twice(const struct mx_asked *asked, mx_remark *say, void *context);
/* Moves the options of `job` before those of a command line, without those that the line gives itself. */
int mx_asked_before(struct mx_asked *line, struct mx_asked *job, mx_why *why);
void mx_asked_free(struct mx_asked *asked);

/* A job: one JSON object whose keys are options of memext run. */
int mx_job_parse(const char *text, size_t bytes, mx_why *why, struct mx_asked *out);
json_t *mx_job_json(const struct mx_asked *asked);

#endif
