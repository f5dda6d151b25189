/* SPDX-License-Identifier: BSD-3-Clause */
/* words.h - reads a fault spec: words NAME=VALUE, separated by commas. */
#ifndef MX_FAULT_WORDS_H
#define MX_FAULT_WORDS_H

#include <memext/memext.h>

enum { MX_FAULT_SPEC_BYTES = 256 };

struct mx_fault_settings {
    double seed;
    /* of the backend (fault.c) */
    double eio, enospc, short_transfer, eagain, refuse, delay_us, reorder, fail, fail_after, from, sys;
    /* of system calls (calls.c) */
    double call, error, eintr;
    char calls_from[32];
    bool has_call_word;
};

/* Reads a spec; NULL = no words. -EINVAL with a sentence if a word is unknown or a value is out of its range.
 */
int mx_fault_parse(const char *spec, mx_why *why, struct mx_fault_settings *out);

#endif
