/* backend.h - what a backend author implements. Read backends/skeleton/skeleton.c beside it.
 *
 * A backend only moves bytes or maps them. Splitting, coalescing, retry of EAGAIN and EINTR, finishing of
 * short transfers, timing, counting, safety of the place and space checks are core's, so that every backend
 * is measured by the same code. A backend is one `const struct mx_backend` at the end of one file, named in
 * backends/table.c and nowhere else.
 */
#ifndef MEMEXT_BACKEND_H
#define MEMEXT_BACKEND_H

#include <memext/memext.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mx_backend_face {
    MX_FACE_TRANSFER, /* submit, reap */
    MX_FACE_MAPPED,   /* map, advise, unmap */
};

/* One contiguous transfer. Aligned as the backend's facts demand; at most max_request_bytes long. */
struct mx_request {
    uint64_t offset_bytes; /* in the place */
    uint32_t bytes;
    bool write;
    void *dram;
    uint64_t tag; /* returned in the completion, meaningless to the backend */
};

struct mx_completion {
    uint64_t tag;
    int64_t result; /* bytes moved (may be short, 0 = end of file) or -errno */
};

/* Where a backend works. Core has opened, checked and locked it. */
struct mx_place {
    int fd; /* O_RDWR, buffered; -1 for anonymous backends. Reopen through /proc/self/fd for other flags. */
    const char *path; /* for messages; "" for anonymous backends */
    bool block_device;
    uint64_t
        bytes; /* size of file or device when opened; anonymous: memory (and swap) there is for Buffers */
    uint32_t direct_offset_align_bytes, direct_memory_align_bytes; /* O_DIRECT; 0 = refused or unknown */
    uint32_t block_bytes; /* shorter direct writes are slow: file system block, physical block */
    const struct mx_device_options *options; /* all defaults filled in */
};

/* What open finds out. */
struct mx_backend_facts {
    uint32_t offset_align_bytes, memory_align_bytes; /* 1 on mapped backends */
    bool bypasses_page_cache;
    char note[512]; /* fallbacks that were taken; "" = none */
};

struct mx_backend {
    const char *name;
    const char *summary; /* one line for `memext info` */
    enum mx_backend_face face;
    bool anonymous;    /* needs no path; Buffers die with the process */
    bool locks_blocks; /* Blocks are to be mlocked (swap) */

    /* Can this backend work here? 0, or -ENOTSUP with one sentence. place is NULL when only the machine is
     * asked about. */
    int (*probe)(const struct mx_place *place, mx_why *why);
    int (*open)(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts, void **state);
    void (*close)(void *state);

    /* Transfer face. Called by one thread at a time. submit takes the first k of n requests and returns k (0
     * = full: reap first), or -errno when none was taken. Every taken request yields exactly one completion,
     * a refused one none. reap returns the number of completions, at least min (waiting) and at most max, or
     * -errno. */
    int (*submit)(void *state, const struct mx_request *requests, unsigned n);
    int (*reap)(void *state, unsigned min, unsigned max, struct mx_completion *out);
    int (*flush)(void *state); /* NULL or -ENOSYS = core calls fdatasync; any thread may call it */
    int (*register_memory)(void *state, void *base,
                           uint64_t bytes); /* optional: DRAM that transfers will use; a hint, may fail */
    void (*unregister_memory)(void *state, void *base);

    /* Mapped face. offset is a multiple of the page size (2 MiB for core's Buffers). */
    int (*map)(void *state, uint64_t offset_bytes, uint64_t bytes, mx_why *why, void **out);
    int (*advise)(void *state, void *base, uint64_t bytes, enum mx_advice advice);
    int (*unmap)(void *state, void *base, uint64_t bytes);
};

/* backends/table.c: every backend, in the order of `memext info`; NULL-terminated. */
extern const struct mx_backend *const mx_backends[];

/* "fault:NAME" wraps backend NAME for tests; not in mx_backends. Finds NAME in place->options->backend. */
extern const struct mx_backend *const mx_backend_fault;
/* By name; NULL if there is none. */
const struct mx_backend *mx_backend_find(const char *name);

/* ---- help for backends, given by core */

/* Opens the place once more with O_DIRECT and sets the alignments and bypasses_page_cache of facts as checked
 * on the new fd. -ENOTSUP with a sentence where the file system refuses. */
int mx_place_open_direct(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts, int *out);
/* mmap(2), read and write, at an address that is a multiple of 2 MiB when bytes is 2 MiB or more (huge
 * pages). fd -1 for anonymous memory. flags as for mmap. */
int mx_map_aligned(int fd, uint64_t offset_bytes, uint64_t bytes, int flags, void **out);
/* Appends a sentence to a note of facts, what does not fit is cut. */
void mx_note_add(char *note, size_t capacity_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fills why (if any) and returns err, so that a failing line reads `return mx_fail(why, -EINVAL, "...",
 * ...)`. */
int mx_fail(mx_why *why, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif
#endif
