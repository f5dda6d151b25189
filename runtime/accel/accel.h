/* SPDX-License-Identifier: BSD-3-Clause */
/* accel.h - accelerators: devices that compute in memory of their own, behind one table of functions.
 *
 * Memory of a device has addresses like any other memory, so the same arithmetic finds rows and planes
 * wherever an array is. The addresses of a `here` device are ordinary memory. Those of other devices are a
 * reserved range that stands for the device's memory: the CPU must not access it, and an access ends the
 * process at once.
 *
 * Operations are asynchronous. Each has a number in its queue, and the operations of one queue are done in
 * order. Operations of different queues are not ordered, nor are those of a queue and what the caller does
 * meanwhile, unless the caller waits for a number (or sees that it is done). One thread at a time calls these
 * functions.
 *
 * The accelerator remembers the first operation that fails, with its sentence. Everything after it fails with
 * the same error, and nothing is under way any more when mx_accel_wait has returned.
 */
#ifndef MX_ACCEL_H
#define MX_ACCEL_H

#include "system/system.h"

typedef struct mx_accel mx_accel;

enum mx_accel_queue { MX_ACCEL_PUT, MX_ACCEL_GET, MX_ACCEL_COPY, MX_ACCEL_WORK, MX_ACCEL_QUEUES };

struct mx_accel_options {
    const char *spec;      /* NAME[,KEY=VALUE...]: a name of the table, or "auto"; spec.c lists the keys */
    uint64_t memory_bytes; /* device memory that may be used; 0 = all that the device has */
    /* For several processes of this machine that each open an accelerator: the number of this process, from
     * 0, and the number of processes; places 0 = this is the only one. If `spec` names no device, the
     * processes take the devices in turn. Processes with the same device get equal shares of its memory. */
    int32_t place, places;
};

struct mx_accel_facts {
    char name[16];         /* its name in the table */
    char device[128];      /* the device's own name */
    int32_t number;        /* number of the device, as in device=N; -1 = none was named or chosen by number */
    int32_t sharers;       /* processes that share it, see mx_accel_options; at least 1 */
    uint64_t memory_bytes; /* device memory that may be used; UINT64_MAX = as much as there is DRAM */
    uint64_t most_bytes;   /* largest allocation */
    int64_t most_planes;   /* work items in z of one launch; 0 = any number */
    int64_t most_group;    /* work items of one group; 0 = the device has no groups */
    int32_t fuse;          /* levels in one launch if that is possible: 1 or 2; 0 = the faster of the two */
    int32_t pin; /* whether the device reaches Buffers in DRAM directly: 1 yes, 0 no, -1 not given */
    bool here;   /* its memory is DRAM of this process, and its kernels are functions of this process:
                    mx_accel_launch_here */
    /* Rates for the plan: bytes per second each way, updates per second; 0 = unknown. */
    double put_bytes_per_s, get_bytes_per_s, updates_per_s;
};

/* Counted since the accelerator was opened. */
struct mx_accel_counters {
    uint64_t put_bytes, get_bytes; /* host to device, device to host */
    uint64_t aside_put_bytes,
        aside_get_bytes;     /* of transfers after mx_accel_aside(accel, true); not part of the above */
    uint64_t operations;     /* puts, gets, copies and launches */
    bool pinned;             /* the memory of the last mx_accel_stage is pinned */
    int32_t direct, refused; /* calls of mx_accel_pin that pinned memory, and that did not */
};

/* `bytes` bytes of the device, and the same number of the host. */
struct mx_accel_span {
    char *device, *host;
    uint64_t bytes;
};

/* A copy within the device: n pieces of `bytes` bytes, `to_pitch` and `from_pitch` bytes apart. Pieces do not
 * overlap. */
struct mx_accel_copy {
    char *to;
    const char *from;
    int64_t to_pitch, from_pitch, bytes, n;
};

enum { MX_ACCEL_NUMBERS = 12, MX_ACCEL_ARRAYS = 4 + MX_MAX_FIXED, MX_ACCEL_KERNELS = 48 };
/* The most allocations of a run: arrays of a sweep, their staging, points, norms and parameters over time. */
enum { MX_ACCEL_ALLOCATIONS = 2 * MX_ACCEL_ARRAYS + 24 };

/* One launch of a kernel that was built: its arguments are `arrays` addresses of allocations, then
 * MX_ACCEL_NUMBERS int64_t. */
struct mx_accel_level {
    int32_t kernel; /* number of a kernel in mx_accel_program.names */
    int32_t arrays;
    char *array[MX_ACCEL_ARRAYS];
    int64_t number[MX_ACCEL_NUMBERS];
    int64_t size[3];  /* work items in x, y, z */
    int64_t group[2]; /* work items of a group in x and y; 0 = the device chooses */
};

/* What a device compiles. */
struct mx_accel_program {
    const char *text;         /* memext/cell_device.h and a cell */
    const char *const *names; /* names of its kernels */
    int32_t n_names;          /* up to MX_ACCEL_KERNELS */
};

/* ---- the table */

/* What an implementation provides. `state` is what its open returned. */
struct mx_accel_ops {
    const char *name, *summary;
    bool automatic; /* "auto" may choose it */
    /* Says whether it can be used here: 0, or an error with a sentence. `device` receives the name of the
     * device that would be used, up to 128 bytes; may be NULL. */
    int (*probe)(char *device, mx_why *why);
    /* Lists the devices that may be chosen if the user names none: up to `most` numbers, as in device=N.
     * Returns how many there are. NULL: there is one, without a number. */
    int (*alike)(int32_t *number, int most, mx_why *why);
    int (*open)(const char *keys, uint64_t memory_bytes, mx_why *why, void **state);
    void (*facts)(const void *state, struct mx_accel_facts *out);
    int (*alloc)(void *state, uint64_t bytes, mx_why *why, char **address);
    void (*release)(void *state, char *address);
    /* Pins host memory that later puts and gets will use, if pinning helps. 1 = pinned. 0 = pinning failed or
     * is not needed: copies are still correct, but slower if the device is behind a bus. */
    int (*stage)(void *state, void *host, uint64_t bytes, mx_why *why);
    void (*unstage)(void *state, void *host);
    bool pins_several; /* `stage` accepts any memory of the process, up to 8 areas at once */
    int (*build)(void *state, const struct mx_accel_program *program, mx_why *why); /* NULL: here */
    /* These hand over an operation, which gets the next number of its queue. 0 or -errno. */
    int (*put)(void *state, const struct mx_accel_span *span, size_t n, mx_why *why);
    int (*get)(void *state, const struct mx_accel_span *span, size_t n, mx_why *why);
    int (*copy)(void *state, enum mx_accel_queue queue, const struct mx_accel_copy *copy, mx_why *why);
    int (*level)(void *state, const struct mx_accel_level *level, mx_why *why); /* NULL: here */
    /* Returns how many operations of a queue are done; -errno if one failed. */
    int64_t (*done)(void *state, enum mx_accel_queue queue, mx_why *why);
    /* Waits until `number` of them are done. If one failed, nothing of the queue is under way when this
     * returns. */
    int (*wait)(void *state, enum mx_accel_queue queue, int64_t number, mx_why *why);
    void (*close)(void *state);
};

extern const struct mx_accel_ops *const mx_accels[]; /* best first, NULL-terminated */

/* ---- a device */

/* Opens an accelerator. -EINVAL (the spec), -ENOTSUP (it cannot be used here), -ENOMEM (it has less memory
 * than was asked for). */
int mx_accel_open(const struct mx_accel_options *options, mx_why *why, mx_accel **out);
void mx_accel_close(mx_accel *accel); /* waits for operations under way; NULL allowed */
const struct mx_accel_facts *mx_accel_facts(const mx_accel *accel);
struct mx_accel_counters mx_accel_counters(const mx_accel *accel);

/* Allocates device memory. -ENOMEM with a sentence that calls the memory `what` and says how much there is.
 */
int mx_accel_alloc(mx_accel *accel, uint64_t bytes, const char *what, mx_why *why, char **address);
void mx_accel_release(mx_accel *accel, char *address); /* no operation uses it; NULL allowed */
uint64_t mx_accel_used_bytes(const mx_accel *accel);
/* Pins and unpins host memory for puts and gets, as `stage` of the table does. */
int mx_accel_stage(mx_accel *accel, void *host, uint64_t bytes, mx_why *why);
void mx_accel_unstage(mx_accel *accel, void *host);
/* Pins memory that holds Buffers. true = puts and gets reach it at full speed, so that its data does not have
 * to pass through staging memory. Pinning takes 0.1 to 0.2 s per GB. mx_accel_unstage ends it. */
bool mx_accel_pin(mx_accel *accel, void *host, uint64_t bytes);
/* Compiles a program. The accelerator remembers an error. */
int mx_accel_build(mx_accel *accel, const struct mx_accel_program *program);
/* Reports an error that the caller has found: it is remembered if it is the first. Returns err. */
int mx_accel_fail(mx_accel *accel, int err, const char *sentence);

/* Each hands over an operation and returns its number in its queue, 1, 2, 3...; or -errno. mx_accel_copy uses
 * the queue COPY or WORK. */
int64_t mx_accel_put(mx_accel *accel, const struct mx_accel_span *span, size_t n);
int64_t mx_accel_get(mx_accel *accel, const struct mx_accel_span *span, size_t n);
int64_t mx_accel_copy(mx_accel *accel, enum mx_accel_queue queue, const struct mx_accel_copy *copy);
int64_t mx_accel_level(mx_accel *accel, const struct mx_accel_level *level);
/* true: puts and gets from now on are of points and norms, and are counted separately. false: they are of
 * LOADs and STOREs again. */
void mx_accel_aside(mx_accel *accel, bool aside);
/* For a device that is here, whose launches are calls of an engine: counts one such call as an operation. 0
 * or -errno. */
int mx_accel_launch_here(mx_accel *accel);

bool mx_accel_is_done(mx_accel *accel, enum mx_accel_queue queue,
                      int64_t number); /* also true if it failed */
int mx_accel_wait(mx_accel *accel, enum mx_accel_queue queue, int64_t number);
/* Returns 0, or the first error with its sentence. */
int mx_accel_error(const mx_accel *accel, mx_why *why);

#endif
