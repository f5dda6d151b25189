/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz.h - what the fuzz targets share. A target is LLVMFuzzerTestOneInput, as libFuzzer calls it: it gives
 * the bytes to the code under test and aborts where what comes back breaks a promise of a header. */
#ifndef MX_FUZZ_H
#define MX_FUZZ_H

#include <memext/memext.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A promise; broken, it ends the fuzzer, which keeps the input. */
#define FUZZ_CHECK(condition)                                                                                \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);                          \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* A refusal is a negative errno and a sentence. */
static inline void fuzz_check_refusal(int err, const mx_why *why) {
    FUZZ_CHECK(err > -4096);
    FUZZ_CHECK(memchr(why->text, 0, sizeof why->text) != NULL && why->text[0] != 0);
}

/* The input as a string; free() it. What follows a zero byte is not seen. */
static inline char *fuzz_text(const uint8_t *data, size_t bytes) {
    char *text = malloc(bytes + 1);
    FUZZ_CHECK(text != NULL);
    if (bytes > 0) memcpy(text, data, bytes);
    text[bytes] = 0;
    return text;
}

/* A file in memory that holds the input, and its path. */
static inline int fuzz_file(const uint8_t *data, size_t bytes, char path[64]) {
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && (bytes == 0 || write(fd, data, bytes) == (ssize_t)bytes));
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
