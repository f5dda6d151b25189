/* SPDX-License-Identifier: BSD-3-Clause */
/* help.c - functions of core that help backends (backend.h). */
#include <memext/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_BYTES (UINT64_C(2) << 20)

void mx_note_add(char *note, size_t capacity_bytes, const char *format, ...) {
    size_t used = strlen(note);
    if (used + 3 >= capacity_bytes) return;
    if (used > 0) {
        memcpy(note + used, "; ", 3);
        used += 2;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(note + used, capacity_bytes - used, format, args);
    va_end(args);
}

/* A file of the user is where it is: through the page cache, to the byte. */
static int open_buffered(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts,
                         int *out) {
    const int fd = mx_place_reopen(place, 0);
    if (fd < 0) return mx_fail(why, fd, "%.300s cannot be opened again: %s", place->path, strerror(-fd));
    facts->offset_align_bytes = facts->memory_align_bytes = 1;
    facts->bypasses_page_cache = false;
    mx_note_add(facts->note, sizeof facts->note,
                "the file system of %.200s has no O_DIRECT: the file is read through the page cache",
                place->path);
    *out = fd;
    return 0;
}

int mx_place_open_direct(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts,
                         int *out) {
    int fd = place->direct_offset_align_bytes == 0 ? -1 : mx_place_reopen(place, O_DIRECT);
    int flags = fd < 0 ? 0 : fcntl(fd, F_GETFL);
    if (fd < 0 || flags < 0 || (flags & O_DIRECT) == 0) {
        mx_place_close_again(fd);
        if (place->user_file) return open_buffered(place, why, facts, out);
        return mx_fail(why, -ENOTSUP,
                       "the file system of %s has no O_DIRECT; name a place on another file system or use "
                       "--backend mmap",
                       place->path);
    }
    uint32_t offset = place->direct_offset_align_bytes, memory = place->direct_memory_align_bytes;
    facts->offset_align_bytes = offset > place->block_bytes ? offset : place->block_bytes;
    facts->memory_align_bytes = memory > 0 ? memory : offset;
    facts->bypasses_page_cache = true;
    *out = fd;
    return 0;
}

int mx_map_aligned(int fd, uint64_t offset_bytes, uint64_t bytes, int flags, void **out) {
    if (bytes == 0 || bytes > PTRDIFF_MAX - HUGE_BYTES) return -ENOMEM;
    uint64_t slack = bytes >= HUGE_BYTES ? HUGE_BYTES : 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t length = (bytes + page - 1) / page * page;
    /* A private mapping of a file is one that is only read; writable, all of it would count as memory. */
    const int access = fd >= 0 && (flags & MAP_PRIVATE) ? PROT_READ : PROT_READ | PROT_WRITE;
    char *wide = mmap(NULL, length + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (wide == MAP_FAILED) return -errno;
    char *base = slack ? (char *)(((uintptr_t)wide + slack - 1) / slack * slack) : wide;
    if (base > wide) munmap(wide, (size_t)(base - wide));
    if (base + length < wide + length + slack) munmap(base + length, (size_t)(wide + slack - base));
    if (mmap(base, length, access, flags | MAP_FIXED, fd, (off_t)offset_bytes) == MAP_FAILED) {
        int err = -errno;
        munmap(base, length);
        return err;
    }
    *out = base;
    return 0;
}
