/* SPDX-License-Identifier: BSD-3-Clause */
#include "ask/near.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 40 };

/* Letters that are wrong, missing, too many, or change places with their neighbour. */
static size_t slips(const char *a, size_t n, const char *b, size_t m) {
    size_t row[3][LONGEST + 1];
    for (size_t j = 0; j <= m; j++) row[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t least = before[j - 1] + (a[i - 1] != b[j - 1]);
            if (before[j] + 1 < least) least = before[j] + 1;
            if (now[j - 1] + 1 < least) least = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && earlier[j - 2] + 1 < least)
                least = earlier[j - 2] + 1;
            now[j] = least;
        }
    }
    return row[n % 3][m];
}

struct mx_near mx_near_to(const char *word, size_t length) {
    return (struct mx_near){.word = word, .length = length, .slips = length < 3 ? 0 : length < 6 ? 2 : 3};
}

void mx_near_offer(struct mx_near *near, const char *name) {
    const size_t m = strlen(name);
    if (near->slips == 0 || near->length > LONGEST || m > LONGEST) return;
    size_t n = slips(near->word, near->length, name, m);
    /* A word that was cut short, and one with more behind it. */
    if (n > 1 && near->length >= 3 && m > near->length && memcmp(near->word, name, near->length) == 0) n = 1;
    if (n < near->slips && n < m) near->slips = n, near->best = name;
}

struct mx_near_text mx_near_say(const struct mx_near *near, const char *before) {
    struct mx_near_text t = {""};
    if (near->best != NULL) snprintf(t.text, sizeof t.text, "; did you mean %s%s?", before, near->best);
    return t;
}
