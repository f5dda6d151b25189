/* SPDX-License-Identifier: BSD-3-Clause */
/* A short measurement of what predictions rest on: the device through the public API, and both engines. */
#include "machine/clock.h"
#include "tune/job.h"
#include "tune/size_text.h"
#include "tune/trial.h"

#include "execute/execute.h"
#include "machine/machine.h"

#include <memext/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------ the device
 *
 * Long sequential transfers, several under way, as the executor makes them, and short ones. First writes once
 * (the region may be a hole before), then in turns reads, writes and both.
 */

enum { IN_FLIGHT = 4, CHUNK_BYTES = 4 << 20, DEFAULT_BYTES = 256 << 20 };
enum { SHORT_IN_FLIGHT = 32, SHORT_BYTES = 64 << 10, TURNS = 3, TRIALS = 4 };

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

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double least_zero(double x) { return x > 0 ? x : 0; }

static double middle_of(double *values, size_t n) {
    qsort(values, n, sizeof values[0], by_value);
    return values[n / 2];
}

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
    for (int i = 0; i < trials; i++) rate[i] = middle_of(found[i], TURNS);
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
        return mx_fail(why, -ENOTSUP, "backend %s keeps Buffers in memory: there is no device to measure",
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
            "of %.300s only reading was measured, since nothing is written to a block device for that; for "
            "writing its known or default rate is taken",
            path);
    return 0;
}

static bool is_block_device(const char *path) {
    struct stat st;
    return path != NULL && stat(path, &st) == 0 && S_ISBLK(st.st_mode);
}

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
        err = mx_fail(why, -ENOSPC, "%s has %s left: too little to measure its speed", facts.place,
                      mx_size_text(facts.capacity_bytes).text);
    if (err == 0) err = run_trial(device, seconds, bytes, known, why, rates);
    mx_device_close(device);
    return err;
}

/* ------------------------------------------------------------------ the engines */

enum {
    DEFAULT_MEMORY_BYTES = 128 << 20,
    TRIAL_ROWS = 512,
    LEAST_ROWS = 16,
    LEAST_PLANES = 64,
    LINE_BYTES = 64
};

int mx_trial_make(const struct mx_problem *p, uint64_t memory_bytes, mx_why *why, struct mx_trial *t) {
    const int64_t h2 = 2 * p->h, least = LEAST_ROWS + h2,
                  state = mx_max(mx_cell_bytes(p, 0), mx_cell_bytes(p, 1));
    const int64_t cells = (int64_t)memory_bytes / (2 * state + mx_fixed_cell_bytes(p));
    t->problem = *p;
    t->problem.nx = mx_max(1, mx_min(p->nx, cells / (least * least) - h2 - LINE_BYTES));
    const int64_t rows = cells / (t->problem.nx + h2 + LINE_BYTES);
    t->problem.ny = mx_max(1, mx_min(mx_min(p->ny, TRIAL_ROWS), rows / least - h2));
    t->problem.nz = mx_max(1, mx_min(mx_max(p->nz, LEAST_PLANES), rows / (t->problem.ny + h2) - h2));
    for (int i = 0; i < MX_TRIAL_LEVELS; i++)
        t->window[i] =
            (struct mx_window){p->h, (int32_t)t->problem.ny + p->h, p->h, (int32_t)t->problem.nz + p->h};
    return mx_layout_make(&t->problem, LINE_BYTES, false, why, &t->layout);
}

struct mx_fixed_view mx_trial_fixed(const struct mx_trial *t, int32_t i, char *base) {
    const struct mx_fixed_layout *f = &t->layout.fixed[i];
    return (struct mx_fixed_view){.base = base,
                                  .slots = t->layout.planes,
                                  .slot_pitch_bytes = f->plane_pitch_bytes,
                                  .row_pitch_bytes = f->row_pitch_bytes,
                                  .file_plane_pitch_bytes = f->plane_pitch_bytes,
                                  .align_bytes = 1};
}

struct bench {
    struct mx_trial trial;
    mx_block *block;
    struct mx_fixed_view fixed[MX_MAX_FIXED];
};

/* Planes of a Block have rather these rows than 512: a slab of eight in both arrays is 8 MiB of 4 KiB rows,
 * which an L3 holds from level to level, and not 33. */
enum { SLAB_ROWS = 128 };

static uint64_t fixed_bytes(const struct bench *b) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < mx_fixed_count(&b->trial.problem); i++)
        bytes += (uint64_t)b->trial.layout.fixed[i].bytes;
    return bytes;
}

/* The fields of C stand behind the two arrays. */
static void place_fixed(struct bench *b) {
    char *at = (char *)mx_block_data(b->block) + 2 * b->trial.layout.buffer_bytes;
    for (int32_t i = 0; i < mx_fixed_count(&b->trial.problem); i++) {
        b->fixed[i] = mx_trial_fixed(&b->trial, i, at);
        at += b->trial.layout.fixed[i].bytes;
    }
}

static int plan_bench(const struct mx_problem *p, uint64_t memory_bytes, mx_why *why, struct bench *b,
                      uint64_t *bytes) {
    int err = mx_trial_make(p, memory_bytes, why, &b->trial);
    if (err < 0) return err;
    mx_layout_in_dram(&b->trial.layout);
    *bytes = 2 * (uint64_t)b->trial.layout.buffer_bytes + fixed_bytes(b);
    return 0;
}

/* Two grids in the same memory: whole planes, and narrow ones. The block is the first one's. */
static int make_bench(const struct mx_problem *p, uint64_t memory_bytes, mx_why *why, struct bench *b,
                      struct bench *narrow) {
    const struct mx_block_options none = {0};
    struct mx_problem part = *p;
    uint64_t bytes, narrow_bytes;
    part.ny = mx_min(p->ny, SLAB_ROWS);
    part.nz = INT32_MAX; /* as many planes as there is room for */
    int err = plan_bench(p, memory_bytes, why, b, &bytes);
    if (err == 0) err = plan_bench(&part, memory_bytes, why, narrow, &narrow_bytes);
    if (err == 0) err = mx_block_create(&none, bytes > narrow_bytes ? bytes : narrow_bytes, why, &b->block);
    if (err < 0) return err;
    place_fixed(b);
    narrow->block = b->block;
    place_fixed(narrow);
    return 0;
}

static struct mx_advance whole_grid(const struct bench *b, int32_t levels) {
    char *base = mx_block_data(b->block);
    return (struct mx_advance){.view = {.base = {base, base + b->trial.layout.buffer_bytes},
                                        .slots = {b->trial.layout.planes, b->trial.layout.planes},
                                        .plane_pitch_bytes = b->trial.layout.plane_pitch_bytes,
                                        .row_pitch_bytes = b->trial.layout.row_pitch_bytes,
                                        .fixed = b->fixed},
                               .levels = levels,
                               .window = b->trial.window};
}

static int engine_rate(const char *name, const struct bench *b, const struct mx_machine *machine,
                       int32_t threads, int32_t levels, bool cold, double seconds, mx_why *why,
                       double *rate) {
    const struct mx_engine_ops *ops = mx_engine_find(name);
    struct mx_engine_options o = {.problem = &b->trial.problem,
                                  .machine = machine,
                                  .row_pitch_bytes = b->trial.layout.row_pitch_bytes,
                                  .threads = threads,
                                  .levels = levels,
                                  .rows = b->trial.layout.rows,
                                  .planes = b->trial.layout.planes};
    mx_engine *engine = NULL;
    int err =
        ops == NULL ? mx_fail(why, -EINVAL, "there is no engine %s", name) : ops->create(&o, why, &engine);
    if (err < 0) return err;
    struct mx_advance a = whole_grid(b, levels);
    double cells = (double)b->trial.problem.nx * (double)b->trial.problem.ny * (double)b->trial.problem.nz *
                   levels,
           done = 0;
    if (cold) mx_engine_advance(ops, engine, &a); /* warms caches and pages */
    uint64_t begin = mx_clock_ns(), spent;
    do {
        mx_engine_advance(ops, engine, &a);
        done += cells;
        spent = mx_clock_ns() - begin;
    } while ((double)spent < seconds * 1e9);
    ops->free(engine);
    *rate = done / (double)mx_levels_a_step(&b->trial.problem) / ((double)spent * 1e-9);
    return 0;
}

/* One pass of a Block as schedules walk through it (schedule/walk.h): every ADVANCE moves a front by a slab
 * of planes, level t staying t*h planes behind it. Returns the cells that it computes. */
static double walk_through(const struct mx_engine_ops *ops, mx_engine *engine, const struct bench *b,
                           int32_t levels, int64_t slab) {
    const int64_t h = b->trial.problem.h, top = b->trial.problem.nz + h;
    struct mx_window window[MX_TRIAL_LEVELS];
    double cells = 0;
    for (int64_t from = h; from < top + levels * h; from += slab) {
        struct mx_advance a = whole_grid(b, levels);
        for (int32_t l = 0; l < levels; l++) {
            const int64_t z0 = mx_max(h, from - l * h), z1 = mx_min(top, from + slab - l * h);
            window[l] = b->trial.window[l];
            window[l].z0 = (int32_t)mx_min(z0, top);
            window[l].z1 = (int32_t)mx_max(z1, window[l].z0);
            cells += (double)(window[l].z1 - window[l].z0);
        }
        a.window = window;
        mx_engine_advance(ops, engine, &a);
    }
    return cells * (double)b->trial.problem.nx * (double)b->trial.problem.ny;
}

static int slab_rate(const struct bench *b, const struct mx_machine *machine, int32_t threads, double seconds,
                     mx_why *why, double *rate) {
    const struct mx_engine_ops *ops = mx_engine_find("iblock");
    const int32_t levels = (int32_t)mx_levels_a_step(&b->trial.problem) * (MX_TRIAL_LEVELS / 4);
    const struct mx_engine_options o = {.problem = &b->trial.problem,
                                        .machine = machine,
                                        .row_pitch_bytes = b->trial.layout.row_pitch_bytes,
                                        .threads = threads,
                                        .levels = levels,
                                        .rows = b->trial.layout.rows,
                                        .planes = b->trial.layout.planes};
    mx_engine *engine = NULL;
    const int err = ops->create(&o, why, &engine);
    if (err < 0) return err;
    const int64_t slab = ops->slab(&o);
    double done = 0;
    uint64_t spent, begin = mx_clock_ns();
    do {
        done += walk_through(ops, engine, b, levels, slab);
        spent = mx_clock_ns() - begin;
    } while ((double)spent < seconds * 1e9);
    ops->free(engine);
    *rate = done / (double)mx_levels_a_step(&b->trial.problem) / ((double)spent * 1e-9);
    return 0;
}

static double copy_rate(const struct bench *b, int32_t threads) {
    char *base = mx_block_data(b->block);
    int64_t pitch = b->trial.layout.plane_pitch_bytes, planes = b->trial.layout.planes;
    uint64_t begin = mx_clock_ns();
#pragma omp parallel for schedule(static) num_threads(mx_loop_threads(threads))
    for (int64_t z = 0; z < planes; z++)
        memcpy(base + b->trial.layout.buffer_bytes + z * pitch, base + z * pitch, (size_t)pitch);
    return (double)b->trial.layout.buffer_bytes / ((double)(mx_clock_ns() - begin + 1) * 1e-9);
}

/* What is measured of the computation, in turns. */
enum { TILED, IBLOCK, SLAB, COPY, N_OF_COMPUTE };

static int one_turn(const struct bench *b, const struct bench *narrow, const struct mx_machine *machine,
                    int32_t threads, bool cold, double seconds, mx_why *why, double rate[N_OF_COMPUTE]) {
    int err =
        engine_rate("tiled", b, machine, threads, MX_TRIAL_LEVELS / 2, cold, seconds, why, &rate[TILED]);
    if (err == 0) err = engine_rate("iblock", b, machine, threads, 1, cold, seconds, why, &rate[IBLOCK]);
    if (err == 0) err = slab_rate(narrow, machine, threads, seconds, why, &rate[SLAB]);
    if (err == 0) rate[COPY] = copy_rate(b, threads);
    return err;
}

int mx_calibrate_compute(const struct mx_problem *problem, const struct mx_machine *machine, int32_t threads,
                         double seconds, uint64_t memory_bytes, mx_why *why, struct mx_rates *rates) {
    struct bench b = {.block = NULL}, narrow = {.block = NULL};
    double found[N_OF_COMPUTE][TURNS], rate[N_OF_COMPUTE] = {0};
    if (!(seconds > 0)) seconds = 2;
    int err = make_bench(problem, memory_bytes > 0 ? memory_bytes : DEFAULT_MEMORY_BYTES, why, &b, &narrow);
    for (int turn = 0; turn < TURNS && err == 0; turn++) {
        err = one_turn(&b, &narrow, machine, threads, turn == 0, seconds / (3 * TURNS), why, rate);
        for (int i = 0; i < N_OF_COMPUTE; i++) found[i][turn] = rate[i];
    }
    if (err == 0) {
        rates->tiled_updates_per_s = middle_of(found[TILED], TURNS);
        rates->iblock_updates_per_s = middle_of(found[IBLOCK], TURNS);
        rates->slab_updates_per_s = middle_of(found[SLAB], TURNS);
        rates->copy_bytes_per_s = middle_of(found[COPY], TURNS);
        rates->compute_source = MX_RATES_MEASURED;
    }
    mx_block_free(b.block);
    return err;
}

/* ------------------------------------------------------------------ both, kept */

#define COMPUTE_SHARE 0.4 /* of given seconds; the rest is the device's */

/* A directory or block device as it is; of a file its directory. */
static const char *place_of(const char *path, char *copy, size_t capacity) {
    struct stat st;
    int saved = errno;
    bool whole = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    errno = saved;
    if (whole || (size_t)snprintf(copy, capacity, "%s", path) >= capacity) return path;
    return dirname(copy);
}

static int renew_device(const struct mx_device_options *device, const char *cache, double seconds,
                        mx_why *why, struct mx_rates *rates) {
    char key[512], copy[PATH_MAX];
    struct mx_device_options o = *device;
    const char *backend = o.backend != NULL ? o.backend : "uring";
    if (o.path == NULL)
        return mx_fail(why, -EINVAL,
                       "there is no device to measure: give it with -d PATH, or leave the backend out");
    o.path = place_of(o.path, copy, sizeof copy);
    int err = mx_calibrate_device(&o, seconds, 0, why, rates);
    if (err == 0 && cache[0] != 0 && mx_rates_device_key(backend, o.path, key, sizeof key, NULL) == 0)
        mx_rates_store(cache, key, NULL, rates, NULL);
    return err;
}

int mx_rates_renew(const struct mx_device_options *device, const struct mx_problem *problem,
                   const struct mx_machine *machine, int32_t threads, uint64_t memory_bytes, double seconds,
                   mx_why *why, struct mx_rates *rates) {
    char key[512], cache[PATH_MAX] = "";
    mx_rates_path(cache, sizeof cache, NULL);
    uint64_t least = memory_bytes < DEFAULT_MEMORY_BYTES ? memory_bytes : DEFAULT_MEMORY_BYTES;
    const bool known = rates->refined.sizes.slab > 0 && rates->refined.raised > 0 &&
                       mx_refined_for(&rates->refined, problem);
    int err = mx_calibrate_compute(problem, machine, threads, COMPUTE_SHARE * seconds, least, why, rates);
    if (err == 0 && seconds > 0 && known) rates->tiled_updates_per_s *= rates->refined.raised;
    if (err == 0 && !(seconds > 0))
        err = mx_refine_tiled(problem, machine, threads, 0, memory_bytes, why, rates);
    if (err < 0) return err;
    mx_rates_compute_key(machine, problem, threads, key, sizeof key);
    if (cache[0] != 0) mx_rates_store(cache, NULL, key, rates, NULL);
    return device != NULL ? renew_device(device, cache, (1 - COMPUTE_SHARE) * seconds, why, rates) : 0;
}
