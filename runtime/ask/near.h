/* SPDX-License-Identifier: BSD-3-Clause */
/* near.h - finds the name that a user meant by a mistyped one. */
#ifndef MX_ASK_NEAR_H
#define MX_ASK_NEAR_H

#include <stddef.h>

/* Begin with mx_near_to, then offer all names one by one. `best` is the nearest name so far. NULL = none is
 * near enough: at most two slips, fewer in short words. */
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
/* Returns "; did you mean --dram?" (if `before` is "--"), or "" if there is no such name. */
struct mx_near_text mx_near_say(const struct mx_near *near, const char *before);

#endif
