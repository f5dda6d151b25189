/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate_store.c - measures the place of a store through the public API.
 *
 * Long sequential transfers, several under way, as the executor makes them, and short ones. First writes once
 * (the region may be a hole before), then in turns reads, writes and both.
 */
#include "machine/size.h"
#include "tune/calibrate.h"
#include "tune/tune.h"

#include "machine/clock.h"
#include "machine/machine.h"

#include <memext/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IN_FLIGHT = 4, CHUNK_BYTES = 4 << 20, DEFAULT_BYTES = 256 << 20 };
enum { SHORT_IN_FLIGHT = 32, SHORT_BYTES = 64 << 10, TRIALS = 4 };

struct trial {
    mx_buffer *buffer;
    char *memory;   /* IN_FLIGHT chunks */
    uint64_t bytes; /* of the region */
    uint64_t limit_ns;
};

/* How it is gone through. */
struct pattern {
    uint64_t chunk_bytes;
    size_t in_flight;
    bool (*is_write)(uint64_t); /* says whether the i-th is a write */
    bool once;                  /* each chunk at most once, else round and round */
};

/* Transfers chunk after chunk until the time is over. Returns bytes moved, or -errno; *seconds covers their
 * completion. */
static int64_t transfer(const struct trial *t, const struct pattern *p, double *seconds) {
    mx_ticket *ticket[SHORT_IN_FLIGHT] = {NULL};
    const uint64_t begin = mx_clock_ns(), chunks = t->bytes / p->chunk_bytes;
    uint64_t i = 0;
    int err = 0;
    for (; err == 0 && (i < chunks || !p->once) && (i == 0 || mx_clock_ns() - begin < t->limit_ns); i++) {
        const size_t at = i % p->in_flight;
        const struct mx_span span = {i % chunks * p->chunk_bytes, p->chunk_bytes,
                                     t->memory + at * p->chunk_bytes};
        err = mx_wait(ticket[at]);
        ticket[at] = NULL;
        if (err == 0)
            err = (p->is_write(i) ? mx_buffer_write : mx_buffer_read)(t->buffer, &span, 1, &ticket[at]);
    }
    for (size_t k = 0; k < p->in_flight; k++) {
        const int e = mx_wait(ticket[k]);
        if (err == 0) err = e;
    }
    *seconds = (double)(mx_clock_ns() - begin) * 1e-9;
    return err < 0 ? err : (int64_t)(i * p->chunk_bytes);
}

static bool always(uint64_t i) { return (void)i, true; }
static bool never(uint64_t i) { return (void)i, false; }
static bool every_other(uint64_t i) { return i & 1; }

static double least_zero(double x) { return x > 0 ? x : 0; }

/* Seconds of all cores that this process has used. */
static double used_core_s(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Of the region as far as it is written: rate[] = medians of the first so many of read, write, mixed, mixed
 * in short requests, and core seconds a byte of all of them. */
static int take_turns(const struct trial *t, int trials, double rate[TRIALS], double *byte_core_s) {
    static const struct pattern patterns[TRIALS] = {{CHUNK_BYTES, IN_FLIGHT, never, false},
                                                    {CHUNK_BYTES, IN_FLIGHT, always, false},
                                                    {CHUNK_BYTES, IN_FLIGHT, every_other, false},
                                                    {SHORT_BYTES, SHORT_IN_FLIGHT, every_other, false}};
    double found[TRIALS][TURNS], seconds, bytes = 0;
    const double before = used_core_s();
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < trials; i++) {
            const int64_t n = transfer(t, &patterns[i], &seconds);
            if (n < 0) return (int)n;
            found[i][turn] = (double)n / (seconds > 0 ? seconds : 1e-9);
            bytes += (double)n;
        }
    *byte_core_s = (used_core_s() - before) / bytes;
    for (int i = 0; i < trials; i++) rate[i] = mx_median(found[i], TURNS);
    return 0;
}

/* What a request costs is the difference of two rates: in little time it would be mostly noise. `known`: it
 * is taken for as much slower as the device is. */
static int run_trial(mx_device *device, double seconds, uint64_t bytes, bool known, mx_why *why,
                     struct mx_rates *rates) {
    const double request_s = rates->request_s, mixed = rates->mixed_bytes_per_s;
    const int trials = known && request_s > 0 && mixed > 0 ? TRIALS - 1 : TRIALS;
    static const struct pattern first = {CHUNK_BYTES, IN_FLIGHT, always, true};
    struct mx_block_options b = {.device = device};
    mx_buffer *buffer = NULL;
    mx_block *block = NULL;
    double rate[TRIALS], spent, byte_core_s = 0;
    int err = mx_buffer_create(device, "calibration", bytes, why, &buffer);
    if (err == 0) err = mx_block_create(&b, (uint64_t)IN_FLIGHT * CHUNK_BYTES, why, &block);
    if (err < 0) goto end;
    struct trial t = {buffer, mx_block_data(block), bytes, (uint64_t)(seconds / 4 * 1e9)};
    const int64_t written = transfer(&t, &first, &spent);
    t.bytes = (uint64_t)(written > 0 ? written : 0);
    t.limit_ns = (uint64_t)(seconds * 3 / 4 / (TURNS * trials) * 1e9);
    err = written < 0 ? (int)written : take_turns(&t, trials, rate, &byte_core_s);
    if (err < 0) {
        mx_fail(why, err, "the device could not be measured: %s", strerror(-err));
        goto end;
    }
    rates->read_bytes_per_s = rate[0];
    rates->write_bytes_per_s = rate[1];
    rates->mixed_bytes_per_s = rate[2];
    rates->request_s = trials < TRIALS ? request_s * mixed / rate[2]
                                       : least_zero(SHORT_BYTES / rate[3] - SHORT_BYTES / rate[2]);
    rates->byte_core_s = byte_core_s;
    rates->device_source = MX_RATES_MEASURED;
end:
    mx_block_free(block);
    mx_buffer_close(buffer);
    return err;
}

/* A mapping measures the page cache: the storage below it is measured by the transfer backend that works
 * here. */
static int open_below(struct mx_device_options *o, mx_why *why, mx_device **device,
                      struct mx_device_facts *facts) {
    int err = mx_device_open(o, why, device);
    if (err < 0) return err;
    mx_device_facts(*device, facts);
    if (!facts->mapped) return 0;
    mx_device_close(*device);
    *device = NULL;
    if (o->path == NULL)
        return mx_fail(why, -ENOTSUP,
                       "backend %s keeps Buffers in memory, so there is no device to measure: leave it out, "
                       "or choose another backend",
                       o->backend);
    o->backend = NULL;
    err = mx_device_open(o, why, device);
    if (err == 0) mx_device_facts(*device, facts);
    return err;
}

/* ---- a block device is only read: whatever is on it stays */

struct reader {
    int fd;
    char *memory;                /* one chunk */
    atomic_uint_least64_t *next; /* the chunk that is read next, shared by all readers */
    uint64_t chunks, until_ns;
    int err;
    uint64_t done;
};

static void *read_chunks(void *argument) {
    struct reader *r = argument;
    uint64_t i;
    while (r->err == 0 && mx_clock_ns() < r->until_ns && (i = atomic_fetch_add(r->next, 1)) < r->chunks) {
        r->err = mx_read_all(r->fd, r->memory, CHUNK_BYTES, (off_t)(i * CHUNK_BYTES));
        r->done += r->err == 0;
    }
    return NULL;
}

/* IN_FLIGHT threads read one chunk after another. */
static int read_device(int fd, char *memory, uint64_t chunks, double seconds, double *rate) {
    struct reader readers[IN_FLIGHT];
    pthread_t threads[IN_FLIGHT];
    bool started[IN_FLIGHT];
    atomic_uint_least64_t next = 0;
    uint64_t begin = mx_clock_ns(), done = 0;
    int err = 0;
    for (int i = 0; i < IN_FLIGHT; i++) {
        readers[i] = (struct reader){
            fd, memory + (size_t)i * CHUNK_BYTES, &next, chunks, begin + (uint64_t)(seconds * 1e9), 0, 0};
        started[i] = mx_thread_start(&threads[i], read_chunks, &readers[i]) == 0;
    }
    if (!started[0]) read_chunks(&readers[0]);
    for (int i = 0; i < IN_FLIGHT; i++) {
        if (started[i]) pthread_join(threads[i], NULL);
        if (err == 0) err = readers[i].err;
        done += readers[i].done;
    }
    if (err == 0 && done == 0) err = -EIO;
    if (err == 0) *rate = (double)done * CHUNK_BYTES / ((double)(mx_clock_ns() - begin) * 1e-9);
    return err;
}

static int calibrate_block_device(const char *path, double seconds, uint64_t bytes, mx_why *why,
                                  struct mx_rates *rates) {
    const struct mx_block_options none = {0};
    mx_block *block = NULL;
    double rate = 0;
    int fd = mx_retry(mx_sys->open(path, O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOCTTY, 0));
    if (fd < 0) return mx_fail(why, fd, "%.300s cannot be read: %s", path, strerror(-fd));
    off_t size = lseek(fd, 0, SEEK_END);
    uint64_t chunks = (size > 0 && (uint64_t)size < bytes ? (uint64_t)size : bytes) / CHUNK_BYTES;
    int err = mx_block_create(&none, (uint64_t)IN_FLIGHT * CHUNK_BYTES, why, &block);
    if (err == 0) {
        err = read_device(fd, mx_block_data(block), chunks, seconds, &rate);
        if (err != 0) mx_fail(why, err, "%.300s could not be measured: %s", path, strerror(-err));
    }
    mx_block_free(block);
    mx_sys->close(fd);
    if (err != 0) return err;
    rates->read_bytes_per_s = rate;
    rates->device_source = MX_RATES_MEASURED;
    mx_fail(why, 0,
            "only reading of %.300s was measured, since measuring must not write to a block device; for "
            "writing, the known or default rate is used",
            path);
    return 0;
}

static bool is_block_device(const char *path) {
    struct stat st;
    return path != NULL && stat(path, &st) == 0 && S_ISBLK(st.st_mode);
}

/* ---- any place */

int mx_calibrate_device(const struct mx_device_options *options, double seconds, uint64_t bytes, mx_why *why,
                        struct mx_rates *rates) {
    struct mx_device_options o = *options;
    struct mx_device_facts facts = {.size = sizeof facts};
    mx_device *device = NULL;
    const bool known = seconds > 0;
    if (!(seconds > 0)) seconds = 2;
    if (bytes == 0) bytes = DEFAULT_BYTES;
    if (is_block_device(o.path)) return calibrate_block_device(o.path, seconds, bytes, why, rates);
    o.resume = o.keep = false;
    o.fault = NULL;
    o.expect_bytes = 0;
    int err = open_below(&o, why, &device, &facts);
    if (err < 0) return err;
    if (bytes > facts.capacity_bytes / 2) bytes = facts.capacity_bytes / 2;
    bytes = bytes / CHUNK_BYTES * CHUNK_BYTES;
    if (bytes < 2 * CHUNK_BYTES)
        err = mx_fail(why, -ENOSPC, "%s has only %s free, too little to measure its speed", facts.place,
                      mx_size(facts.capacity_bytes).text);
    if (err == 0) err = run_trial(device, seconds, bytes, known, why, rates);
    mx_device_close(device);
    return err;
}
