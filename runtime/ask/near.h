/* SPDX-License-Identifier: BSD-3-Clause */
/* near.h - the name that somebody meant. */
#ifndef MX_ASK_NEAR_H
#define MX_ASK_NEAR_H

#include <stddef.h>

/* Offers names one by one; `best` is the nearest so far, NULL where none is near enough: a slip or two, fewer
 * in short words. */
struct mx_near {
    const char *word;
    size_t length;
    const char *best;
    size_t slips; /* of best */
};
struct mx_near mx_near_to(const char *word, size_t length);
void mx_near_offer(struct mx_near *near, const char *name);

struct mx_near_text {
    char text[80];
};
/* "; did you mean --dram?" where `before` is "--", or "". */
struct mx_near_text mx_near_say(const struct mx_near *near, const char *before);

#endif
