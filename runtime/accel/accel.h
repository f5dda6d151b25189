/* SPDX-License-Identifier: BSD-3-Clause */
/* accel.h - memory that computes: devices with memory of their own, behind one table of functions.
 *
 * Memory of a device is named by addresses, like any other, so that rows and planes are found by the same
 * arithmetic wherever an array is. Addresses of `here` devices are those of ordinary memory; those of others
 * are a reserved range that stands for it: who touches it dies at once, instead of computing nonsense.
 *
 * What is handed over is done later: every operation has a number in its queue, and numbers of a queue are
 * done in order. Nothing orders operations of different queues, nor those of a queue with what the caller
 * does, but waiting (or seeing that something is done). One thread at a time.
 *
 * The first operation that fails, at once or when it is found out, is remembered with its sentence;
 * everything after it fails alike, and nothing is under way any more when mx_accel_wait has returned.
 */
#ifndef MX_ACCEL_H
#define MX_ACCEL_H

#include "system/system.h"

typedef struct mx_accel mx_accel;

enum mx_accel_queue { MX_ACCEL_PUT, MX_ACCEL_GET, MX_ACCEL_COPY, MX_ACCEL_WORK, MX_ACCEL_QUEUES };

struct mx_accel_options {
    const char *spec;      /* NAME[,KEY=VALUE...]: a name of the table, or "auto"; keys: spec.c */
    uint64_t memory_bytes; /* that may be used; 0 = what the device has */
    /* Of several processes of this machine that open one each: the number of this one, from 0, and how many
     * they are; 0 = it is by itself. They take devices in turns, where `spec` names none, and those that take
     * the same one have equal shares of its memory. */
    int32_t place, places;
};

struct mx_accel_facts {
    char name[16];         /* of the table */
    char device[128];      /* what it calls itself */
    int32_t number;        /* of the device, as device=N has it; -1 = there is but one */
    int32_t sharers;       /* processes that have taken it, see mx_accel_options; at least 1 */
    uint64_t memory_bytes; /* that may be used; UINT64_MAX = as much as there is DRAM */
    uint64_t most_bytes;   /* of one allocation */
    int64_t most_planes;   /* work items in z of one launch; 0 = any number */
    int64_t most_group;    /* work items of one group; 0 = it has no groups */
    int32_t fuse; /* levels in one launch where that is possible: 1, 2; 0 = what turns out to be faster */
    int32_t pin;  /* whether it shall reach Buffers in DRAM by itself: 1 yes, 0 no, -1 not said */
    bool here; /* its memory is DRAM of this process, and kernels are functions of it: mx_accel_launch_here */
    /* To plan with; 0 = unknown. Bytes per second each way, updates per second. */
    double put_bytes_per_s, get_bytes_per_s, updates_per_s;
};

/* Since it was opened. */
struct mx_accel_counters {
    uint64_t put_bytes, get_bytes;             /* host to device, device to host */
    uint64_t aside_put_bytes, aside_get_bytes; /* of what mx_accel_aside says, not counted in those */
    uint64_t operations;                       /* puts, gets, copies and launches */
    bool pinned;                               /* memory that was staged last */
    int32_t direct, refused;                   /* calls of mx_accel_pin that pinned, and that did not */
};

struct mx_accel_span {
    char *device, *host;
    uint64_t bytes;
};

/* n pieces, `to_pitch` and `from_pitch` apart; they do not overlap. */
struct mx_accel_copy {
    char *to;
    const char *from;
    int64_t to_pitch, from_pitch, bytes, n;
};

enum { MX_ACCEL_NUMBERS = 12, MX_ACCEL_ARRAYS = 4 + MX_MAX_FIXED, MX_ACCEL_KERNELS = 32 };
/* Allocations that a run may have: arrays of a sweep, their staging, points, norms and parameters over time.
 */
enum { MX_ACCEL_ALLOCATIONS = 2 * MX_ACCEL_ARRAYS + 24 };

/* One launch of a kernel that was built: its arguments are `arrays` addresses of allocations, then
 * MX_ACCEL_NUMBERS int64_t. */
struct mx_accel_level {
    int32_t kernel; /* of mx_accel_program.names */
    int32_t arrays;
    char *array[MX_ACCEL_ARRAYS];
    int64_t number[MX_ACCEL_NUMBERS];
    int64_t size[3];  /* work items in x, y, z */
    int64_t group[2]; /* of so many in x and y; 0 = as the device likes */
};

struct mx_accel_program {
    const char *text;         /* memext/cell_device.h and a cell */
    const char *const *names; /* of kernels */
    int32_t n_names;          /* up to MX_ACCEL_KERNELS */
};

/* ---- the table */

/* What an implementation gives; state is what open gave out. */
struct mx_accel_ops {
    const char *name, *summary;
    bool automatic; /* "auto" may take it */
    /* 0, or a sentence why it cannot be used here. `device`: what would be, up to 128 bytes; may be NULL. */
    int (*probe)(char *device, mx_why *why);
    /* How many devices there are of the kind that is taken where none is named, up to `most`: their numbers,
     * as device=N has them. NULL: there is one, without a number. */
    int (*alike)(int32_t *number, int most, mx_why *why);
    int (*open)(const char *keys, uint64_t memory_bytes, mx_why *why, void **state);
    void (*facts)(const void *state, struct mx_accel_facts *out);
    int (*alloc)(void *state, uint64_t bytes, mx_why *why, char **address);
    void (*release)(void *state, char *address);
    /* Pins host memory that later puts and gets will use, where pinning helps. 1 = pinned. 0 = pinning failed
     * or is not needed: copies are still correct, but slower if the device is behind a bus. */
    int (*stage)(void *state, void *host, uint64_t bytes, mx_why *why);
    void (*unstage)(void *state, void *host);
    bool pins_several; /* `stage` takes any memory of the process, up to 8 areas at once */
    int (*build)(void *state, const struct mx_accel_program *program, mx_why *why); /* NULL: here */
    /* 0 or -errno: taken, as the next number of its queue. */
    int (*put)(void *state, const struct mx_accel_span *span, size_t n, mx_why *why);
    int (*get)(void *state, const struct mx_accel_span *span, size_t n, mx_why *why);
    int (*copy)(void *state, enum mx_accel_queue queue, const struct mx_accel_copy *copy, mx_why *why);
    int (*level)(void *state, const struct mx_accel_level *level, mx_why *why); /* NULL: here */
    /* How many of a queue are done; -errno where one failed. */
    int64_t (*done)(void *state, enum mx_accel_queue queue, mx_why *why);
    /* Until `number` are; also where one failed nothing of the queue is under way then. */
    int (*wait)(void *state, enum mx_accel_queue queue, int64_t number, mx_why *why);
    void (*close)(void *state);
};

extern const struct mx_accel_ops *const mx_accels[]; /* best first, NULL-terminated */

/* ---- a device */

/* -EINVAL (the spec), -ENOTSUP (it cannot be used here), -ENOMEM (it has not as much memory as asked for). */
int mx_accel_open(const struct mx_accel_options *options, mx_why *why, mx_accel **out);
void mx_accel_close(mx_accel *accel); /* waits for what is under way; NULL allowed */
const struct mx_accel_facts *mx_accel_facts(const mx_accel *accel);
struct mx_accel_counters mx_accel_counters(const mx_accel *accel);

/* -ENOMEM with what there is. `what` is said in the sentence. */
int mx_accel_alloc(mx_accel *accel, uint64_t bytes, const char *what, mx_why *why, char **address);
void mx_accel_release(mx_accel *accel, char *address); /* nothing of it under way; NULL allowed */
uint64_t mx_accel_used_bytes(const mx_accel *accel);
int mx_accel_stage(mx_accel *accel, void *host, uint64_t bytes, mx_why *why);
void mx_accel_unstage(mx_accel *accel, void *host);
/* Memory that holds Buffers: true = puts and gets reach it at full speed, so that none of it has to pass
 * through staging memory. It takes a tenth to a fifth of a second a GB. mx_accel_unstage ends it. */
bool mx_accel_pin(mx_accel *accel, void *host, uint64_t bytes);
/* What fails here is remembered as well. */
int mx_accel_build(mx_accel *accel, const struct mx_accel_program *program);
/* For who finds out by himself that it cannot go on: remembered if it is the first, and returned. */
int mx_accel_fail(mx_accel *accel, int err, const char *sentence);

/* All: the number in the queue (of copy: COPY or WORK), 1, 2, 3...; or -errno. */
int64_t mx_accel_put(mx_accel *accel, const struct mx_accel_span *span, size_t n);
int64_t mx_accel_get(mx_accel *accel, const struct mx_accel_span *span, size_t n);
int64_t mx_accel_copy(mx_accel *accel, enum mx_accel_queue queue, const struct mx_accel_copy *copy);
int64_t mx_accel_level(mx_accel *accel, const struct mx_accel_level *level);
/* Puts and gets from here on are none of LOADs and STOREs, or are again: points and norms. */
void mx_accel_aside(mx_accel *accel, bool aside);
/* Of a device that is here: a call of an engine stands for a launch. 0 or -errno. */
int mx_accel_launch_here(mx_accel *accel);

bool mx_accel_is_done(mx_accel *accel, enum mx_accel_queue queue, int64_t number); /* also where it failed */
int mx_accel_wait(mx_accel *accel, enum mx_accel_queue queue, int64_t number);
/* 0, or what failed first, with its sentence. */
int mx_accel_error(const mx_accel *accel, mx_why *why);

#endif
