/* SPDX-License-Identifier: BSD-3-Clause */
/* backend.h - what a backend author implements. Read backends/skeleton/skeleton.c beside it.
 *
 * A backend only moves bytes or maps them. Splitting, coalescing, retry of EAGAIN and EINTR, finishing of
 * short transfers, timing, counting, safety of the place and space checks are core's, so that every backend
 * is measured by the same code. A backend is one `const struct mx_backend` at the end of one file, named in
 * backends/table.c; docs/extending.md says what else names backends.
 */
#ifndef MEMEXT_BACKEND_H
#define MEMEXT_BACKEND_H

#include <errno.h>
#include <memext/memext.h>
#include <sys/types.h>

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
    /* A file of the user that is only read, O_RDONLY, and not locked: transfers of its last block are short,
     * and where O_DIRECT is refused mx_place_open_direct opens it without. */
    bool user_file;
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
    /* Nothing more will be submitted or reaped: returns only when no request that was taken can touch DRAM
     * any more, however long that takes. Called once at most, by the thread that submits; only close follows.
     * NULL where requests move nothing outside submit and reap. */
    int (*drain)(void *state);
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
 * on the new fd. -ENOTSUP with a sentence where the file system refuses; a user_file is opened for buffered
 * reads then, facts.bypasses_page_cache false and a note says so. */
int mx_place_open_direct(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts, int *out);
/* Opens the place once more, with these flags besides O_RDWR. As long as the kernel holds the descriptor (a
 * request under way, even after this process was killed) the place counts as in use. -errno. */
int mx_place_reopen(const struct mx_place *place, int flags);
/* Closes what one of the two opened, nothing being under way. Negative: nothing to do. */
void mx_place_close_again(int fd);
/* mmap(2), read and write (a file MAP_PRIVATE: read), at an address that is a multiple of 2 MiB when bytes is
 * 2 MiB or more (huge pages). fd -1 for anonymous memory. flags as for mmap. */
int mx_map_aligned(int fd, uint64_t offset_bytes, uint64_t bytes, int flags, void **out);
/* Appends a sentence to a note of facts, what does not fit is cut. */
void mx_note_add(char *note, size_t capacity_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- system calls that must not fail unnoticed go through one table, so that tests can let them fail */

/* Each returns what the call returns, or -errno. */
struct mx_sys {
    int (*open)(const char *path, int flags, mode_t mode);
    int (*close)(int fd); /* gives the descriptor up whatever it returns */
    ssize_t (*pread)(int fd, void *to, size_t bytes, off_t at);
    ssize_t (*pwrite)(int fd, const void *from, size_t bytes, off_t at);
    int (*fdatasync)(int fd);
    int (*fsync)(int fd);
    int (*msync)(void *base, size_t bytes, int flags);
    int (*sync_file_range)(int fd, off_t at, off_t bytes, unsigned flags);
    int (*fallocate)(int fd, int mode, off_t at, off_t bytes); /* mode 0: also where the file system cannot */
    int (*ftruncate)(int fd, off_t bytes);
    int (*rename)(const char *from, const char *to);
    int (*link)(int fd, const char *to); /* a name for a nameless file (O_TMPFILE); -EEXIST if it is taken */
    int (*unlink)(const char *path);
};

extern const struct mx_sys mx_sys_kernel; /* the real one */
/* The one in use. Tests put another in its place before anything is opened. */
extern const struct mx_sys *mx_sys;

/* Repeats a call of the table until its result is not -EINTR, and gives that result. Not for close. */
#define mx_retry(call)                                                                                       \
    __extension__({                                                                                          \
        __typeof__(call) value_of_call_;                                                                     \
        do value_of_call_ = (call);                                                                          \
        while (value_of_call_ == -EINTR);                                                                    \
        value_of_call_;                                                                                      \
    })

/* All of it: interrupted and short transfers are finished. -ENODATA where the file ends before. */
int mx_read_all(int fd, void *to, size_t bytes, off_t at);
/* The same for writes; where nothing is taken any more, -EIO. */
int mx_write_all(int fd, const void *from, size_t bytes, off_t at);
/* Makes the names in the directory of this file durable. */
int mx_sync_directory(const char *path_of_a_file_in_it);

/* For tests: wraps mx_sys in a table whose calls fail as spec says. Words, separated by commas: call=N (the
 * N-th call fails and is not made, counted from 1; 0 = none), errno=E (with this number, default 5),
 * calls_from=NAME (only calls of this name count, "pwrite"), eintr=P (a call that may be interrupted gives
 * -EINTR first, with probability P, at most 0.99), seed=N. Words for the backend `fault` are ignored here.
 * NULL, or a spec without call, errno, calls_from and eintr, removes the table. -EINVAL with a sentence. */
int mx_fault_calls(const char *spec, mx_why *why);
uint64_t mx_fault_calls_made(void); /* calls that counted since mx_fault_calls */

/* Fills why (if any) and returns err, so that a failing line reads `return mx_fail(why, -EINVAL, "...",
 * ...)`. */
int mx_fail(mx_why *why, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif
#endif
