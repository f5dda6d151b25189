/* SPDX-License-Identifier: BSD-3-Clause */
/* rates.h - how long a core takes for operations on whole vectors. */
#ifndef RATES_H
#define RATES_H

enum { RATE_F64, RATE_F32, RATE_TYPES };
enum { RATE_ADD, RATE_MULTIPLY, RATE_BOTH /* one of each */, RATE_DIVIDE, RATE_LOAD, RATE_STORE, RATE_KINDS };

/* ns a number, the best of some short runs; loads and stores are aligned and hit L1. */
struct rates {
    double ns[RATE_TYPES][RATE_KINDS];
};
/* One for each instruction set that rates.c is compiled for. */
void rates_plain(struct rates *out);
void rates_avx2(struct rates *out);
void rates_avx512(struct rates *out);

#endif
