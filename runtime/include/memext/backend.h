/* SPDX-License-Identifier: BSD-3-Clause */
/* backend.h - what the author of a backend implements. backends/skeleton/skeleton.c is an example.
 *
 * A backend only moves bytes or maps them. Core (runtime/core) does everything else: splitting and joining
 * requests, repeating those that end with EAGAIN or EINTR, finishing short transfers, timing, counting,
 * checks of the place and of its space. So the same code measures every backend. A backend is one `const
 * struct mx_backend` at the end of one file, named in backends/table.c; docs/extending.md says where else a
 * new backend must be named.
 */
#ifndef MEMEXT_BACKEND_H
#define MEMEXT_BACKEND_H

#include <errno.h>
#include <memext/memext.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a backend gives access to a Buffer, and the functions that it then has. */
enum mx_backend_face {
    MX_FACE_TRANSFER, /* submit and reap, or move */
    MX_FACE_MAPPED,   /* map, advise, unmap */
};

/* One contiguous transfer, aligned as the backend's facts demand and at most max_request_bytes long. */
struct mx_request {
    uint64_t offset_bytes; /* in the place */
    uint32_t bytes;
    bool write;
    void *dram;
    uint64_t tag; /* copied to the completion; has no meaning for the backend */
};

/* The end of one request. */
struct mx_completion {
    uint64_t tag;
    int64_t result; /* bytes moved (may be short, 0 = end of file) or -errno */
};

/* Where a backend works. Core has opened, checked and locked it. */
struct mx_place {
    int fd;           /* O_RDWR, buffered; -1 for anonymous backends. For other flags see mx_place_reopen */
    const char *path; /* for messages; "" for anonymous backends */
    bool block_device;
    uint64_t bytes; /* size of the file or device when it was opened; anonymous: memory (and swap) that
                       Buffers may use */
    uint32_t direct_offset_align_bytes,
        direct_memory_align_bytes; /* alignments of O_DIRECT; 0 = refused or unknown */
    uint32_t
        block_bytes; /* the block of the file system or device: direct writes that are shorter are slow */
    const struct mx_device_options *options; /* all defaults filled in */
    /* true: a file of the user that is only read (O_RDONLY, without a lock). Transfers of its last block are
     * short. If O_DIRECT is refused, mx_place_open_direct opens it without. */
    bool user_file;
};

/* What `open` finds out about the place. */
struct mx_backend_facts {
    uint32_t offset_align_bytes, memory_align_bytes; /* 1 = any; always 1 on mapped backends */
    bool bypasses_page_cache;
    char note[512]; /* options that do not work here, and what happens instead; "" = none */
};

/* A backend: its name and its functions. Functions that return int return 0 or a negative errno, unless their
 * comment says otherwise. */
struct mx_backend {
    const char *name;
    const char *summary; /* one line for `memext info` */
    enum mx_backend_face face;
    bool by_name;      /* used only where it is named: never the default */
    bool anonymous;    /* needs no path; its Buffers end with the process */
    bool locks_blocks; /* core locks Blocks in DRAM (swap) */

    /* Says whether this backend can work here: 0, or -ENOTSUP with one sentence. place NULL: on this machine,
     * wherever the place is. */
    int (*probe)(const struct mx_place *place, mx_why *why);
    /* Opens the backend on a place, and fills *facts and *state; *state is passed to the other functions. A
     * run opens it several times: for its store, and for each file that it reads in place. 0, or a negative
     * errno with a sentence. */
    int (*open)(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts, void **state);
    /* Frees everything that open made; no request is under way. It is not called if *state is NULL. NULL
     * allowed. */
    void (*close)(void *state);

    /* Transfer face. One thread at a time calls submit and reap. submit starts the first k of the n requests
     * and returns k; 0 = there is no room, so call reap first. If it could start none it may return a
     * negative errno. Every request that was started yields exactly one completion, the others none. */
    int (*submit)(void *state, const struct mx_request *requests, unsigned n);
    /* Fills out[] with completions and returns their number: at least min, waiting if necessary, and at most
     * max. Or a negative errno. */
    int (*reap)(void *state, unsigned min, unsigned max, struct mx_completion *out);
    /* Instead of submit and reap, for a backend that waits for each transfer: moves one request. Returns the
     * bytes moved (may be fewer, 0 = end of file) or a negative errno. One thread at a time calls it. */
    int64_t (*move)(void *state, const struct mx_request *request);
    /* Returns when no request can touch DRAM any more, however long that takes. It is called at most once, by
     * the thread that submits, after the last submit and reap; only close follows. NULL: requests move data
     * only within submit, reap and move. */
    int (*drain)(void *state);
    /* Puts what was written on stable storage. NULL, or -ENOSYS: core calls fdatasync instead. Any thread. */
    int (*flush)(void *state);
    /* Registers DRAM that transfers will use, and ends that. NULL allowed. A hint: it may fail. */
    int (*register_memory)(void *state, void *base, uint64_t bytes);
    void (*unregister_memory)(void *state, void *base);

    /* Mapped face. map gives the address of bytes of the place, read and write, in *out. offset_bytes is a
     * multiple of the page size (of 2 MiB for core's Buffers). advise advises a range of a mapping: a hint,
     * but errors of MX_ADVICE_DROP mean that data was not written (memext.h, mx_buffer_advise). unmap ends a
     * mapping. */
    int (*map)(void *state, uint64_t offset_bytes, uint64_t bytes, mx_why *why, void **out);
    int (*advise)(void *state, void *base, uint64_t bytes, enum mx_advice advice);
    int (*unmap)(void *state, void *base, uint64_t bytes);
};

/* All backends, in the order of `memext info` (backends/table.c); NULL-terminated. */
extern const struct mx_backend *const mx_backends[];

/* The wrapper of "fault:NAME", for tests; not in mx_backends. It finds NAME in place->options->backend. */
extern const struct mx_backend *const mx_backend_fault;
/* backends/skeleton, for tests; not in mx_backends, but it is found by its name. */
extern const struct mx_backend *const mx_backend_skeleton;
/* Finds a backend by its name; NULL if there is none. */
const struct mx_backend *mx_backend_find(const char *name);

/* ---- functions of core that help backends */

/* Opens the place once more with O_DIRECT and sets the alignments and bypasses_page_cache of *facts, as
 * checked on the new descriptor *out. If the file system refuses O_DIRECT: -ENOTSUP with a sentence. A
 * user_file is then opened for buffered reads instead, with bypasses_page_cache false and a remark in
 * facts->note. */
int mx_place_open_direct(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts, int *out);
/* Opens the place once more, with these flags besides O_RDWR (O_RDONLY if the device is only read). The place
 * counts as in use as long as Linux holds the descriptor. A request under way holds it even after this
 * process was killed. Returns the descriptor or a negative errno. */
int mx_place_reopen(const struct mx_place *place, int flags);
/* Closes a descriptor of one of these two functions; no request is under way. Does nothing if fd is negative.
 */
void mx_place_close_again(int fd);
/* Maps memory as mmap(2) does, for reading and writing (a file with MAP_PRIVATE: for reading). The address is
 * a multiple of 2 MiB if bytes is 2 MiB or more, for huge pages. fd -1 = anonymous memory. flags as for mmap.
 * 0 or a negative errno. */
int mx_map_aligned(int fd, uint64_t offset_bytes, uint64_t bytes, int flags, void **out);
/* Appends a sentence to a note (mx_backend_facts), after "; " if the note has one. What does not fit is cut
 * off. */
void mx_note_add(char *note, size_t capacity_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- system calls whose errors matter go through one table, so that tests can make them fail */

/* Each function returns what the system call returns, or a negative errno. */
struct mx_sys {
    int (*open)(const char *path, int flags, mode_t mode);
    int (*close)(int fd); /* the descriptor is closed even if this returns an error */
    ssize_t (*pread)(int fd, void *to, size_t bytes, off_t at);
    ssize_t (*pwrite)(int fd, const void *from, size_t bytes, off_t at);
    int (*fdatasync)(int fd);
    int (*fsync)(int fd);
    int (*msync)(void *base, size_t bytes, int flags);
    int (*sync_file_range)(int fd, off_t at, off_t bytes, unsigned flags);
    int (*fallocate)(int fd, int mode, off_t at, off_t bytes); /* mode 0: on any file system */
    int (*ftruncate)(int fd, off_t bytes);
    int (*rename)(const char *from, const char *to);
    int (*link)(int fd, const char *to); /* names an O_TMPFILE; -EEXIST */
    int (*unlink)(const char *path);
};

extern const struct mx_sys mx_sys_kernel; /* the real one */
/* The table in use. Tests replace it before anything is opened. */
extern const struct mx_sys *mx_sys;

/* Repeats a call of the table until its result is not -EINTR, and has that result as its value. Not for
 * close. */
#define mx_retry(call)                                                                                       \
    __extension__({                                                                                          \
        __typeof__(call) value_of_call_;                                                                     \
        do value_of_call_ = (call);                                                                          \
        while (value_of_call_ == -EINTR);                                                                    \
        value_of_call_;                                                                                      \
    })

/* Reads all bytes: interrupted and short transfers are finished. 0, -ENODATA (the file ends before), or
 * another negative errno. */
int mx_read_all(int fd, void *to, size_t bytes, off_t at);
/* Writes all bytes likewise. -EIO if a call writes nothing. */
int mx_write_all(int fd, const void *from, size_t bytes, off_t at);
/* Makes the names in the directory of this file durable, if the directory may be read. 0 or a negative errno.
 */
int mx_sync_directory(const char *path_of_a_file_in_it);

/* For tests: wraps mx_sys in a table whose calls fail as spec says. Its words, separated by commas: call=N
 * (the N-th call, counted from 1, is not made and fails; 0 = none does), errno=E (the number of that error,
 * default 5), calls_from=NAME (only calls of this name count, e.g. "pwrite"), eintr=P (a call that may be
 * interrupted first returns -EINTR with probability P, at most 0.99), seed=N (of these random numbers). Words
 * of the backend `fault` are ignored here. NULL, or a spec without call, errno, calls_from and eintr, removes
 * the table. -EINVAL with a sentence. */
int mx_fault_calls(const char *spec, mx_why *why);
/* Returns how many calls have counted since mx_fault_calls. */
uint64_t mx_fault_calls_made(void);

/* Fills *why, unless why is NULL, and returns err: `return mx_fail(why, -EINVAL, "...", ...)`. */
int mx_fail(mx_why *why, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif
#endif
