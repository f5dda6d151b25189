/* SPDX-License-Identifier: BSD-3-Clause */
/* effort.h - how many of its cases a test makes. All of them where MEMEXT_TEST_LONG is set (tests/run.sh
 * --long); else the share that finds a fault in seconds. Sanitizers take several times as long, and get
 * fewer. tests/summary.py adds up what is said here. */
#ifndef MX_EFFORT_H
#define MX_EFFORT_H

#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_THREAD__)
enum { MX_SANITIZER_SHARE = 8 };
#elif defined(__SANITIZE_ADDRESS__)
enum { MX_SANITIZER_SHARE = 3 };
#else
enum { MX_SANITIZER_SHARE = 1 };
#endif

/* How many of n cases to run: one in `share` in a short run, at least one. */
static inline int mx_cases(int n, int share) {
    const char *text = getenv("MEMEXT_TEST_LONG");
    const int all = n >= MX_SANITIZER_SHARE ? n / MX_SANITIZER_SHARE : 1;
    if (text != NULL && text[0] != 0) return all;
    const int made = all >= share ? all / share : 1;
    if (made < all) fprintf(stderr, "[SHORT] %d of %d cases\n", made, all);
    return made;
}

/* The way through cases of which those that follow each other are alike: one, and in a short run under a
 * sanitizer an odd number, so that what alternates is seen both ways. tests/run.sh says that some are left
 * out. */
static inline int mx_case_step(void) {
    const char *text = getenv("MEMEXT_TEST_LONG");
    return text != NULL && text[0] != 0 ? 1 : MX_SANITIZER_SHARE | 1;
}

#endif
