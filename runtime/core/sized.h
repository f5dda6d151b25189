/* SPDX-License-Identifier: BSD-3-Clause */
/* sized.h - copies structs of programs that begin with their size (memext.h), as far as program and library
 * both know their fields. Size 0 stands for the fields that the struct had first. */
#ifndef MX_SIZED_H
#define MX_SIZED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes of a struct up to the end of a field. */
#define MX_END_OF(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

static inline uint32_t mx_sized(const void *s, size_t known, size_t first) {
    uint32_t size;
    memcpy(&size, s, sizeof size);
    if (size < sizeof size) return (uint32_t)first;
    return size < known ? size : (uint32_t)known;
}

/* A program's options: fields that it does not have are 0. */
static inline void mx_sized_take(void *to, const void *from, size_t known, size_t first) {
    memset(to, 0, known);
    memcpy(to, from, mx_sized(from, known, first));
}

/* Facts for a program: no more than it has room for. Its size stays. */
static inline void mx_sized_give(void *to, const void *from, size_t known, size_t first) {
    const uint32_t n = mx_sized(to, known, first);
    if (n > sizeof(uint32_t))
        memcpy((char *)to + sizeof(uint32_t), (const char *)from + sizeof(uint32_t), n - sizeof(uint32_t));
}

#endif
