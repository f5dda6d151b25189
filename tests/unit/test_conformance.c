/* SPDX-License-Identifier: BSD-3-Clause */
/* test_conformance - one suite over all backends and kinds of places: what was written is what is read, every
 * request completes once, errors are told, commits survive, and nobody's data is overwritten. */
#include "conformance.h"
#include "core/device.h"
#include "core/queue.h"
#include "core/safety.h"
#include "core/store.h"
#include "effort.h"
#include "machine/machine.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>
#include <sys/time.h>

static struct loop disk = {-1, ""}; /* of the running test */

static void tear_down(void) {
    if (disk.fd >= 0) close(disk.fd);
    disk.fd = -1;
    remove_dir();
}

TestSuite(conformance, .init = make_dir, .fini = tear_down, .timeout = 900);

/* ---- what is tested: backends on places */

enum where { NOWHERE, IN_DIRECTORY, IN_FILE, ON_DISK };

struct target {
    const char *backend;
    enum where where;
    const char *fault;
    bool sqpoll, iopoll, uncached, no_register;
    enum mx_advice advice;
};

#define TROUBLE "seed=11,short=0.4,eagain=0.1,refuse=0.2,delay_us=200,reorder=1"

/* Besides these, each backend that transfers works in a directory, in a file, on a disk and with faults. */
static const struct target special[] = {
    {.backend = "dram"},
    {.backend = "mmap", .where = IN_DIRECTORY},
    {.backend = "mmap", .where = IN_FILE, .advice = MX_ADVICE_SCHEDULE},
    {.backend = "mmap", .where = ON_DISK, .advice = MX_ADVICE_SEQUENTIAL},
    {.backend = "mmap", .where = IN_FILE, .advice = MX_ADVICE_RANDOM},
    {.backend = "mmap", .where = IN_FILE, .advice = MX_ADVICE_WILLNEED},
    {.backend = "mmap", .where = IN_FILE, .advice = MX_ADVICE_HUGEPAGE},
    {.backend = "uring", .where = IN_FILE, .no_register = true},
    {.backend = "uring", .where = IN_FILE, .sqpoll = true},
    {.backend = "uring", .where = IN_FILE, .iopoll = true},
    {.backend = "uring", .where = IN_FILE, .uncached = true},
    {.backend = "uring", .where = ON_DISK, .uncached = true},
    {.backend = "fault:dram", .fault = TROUBLE},
    {.backend = "fault:mmap", .where = IN_FILE, .fault = TROUBLE},
    {.backend = "fault:uring", .where = IN_DIRECTORY, .fault = TROUBLE},
    {.backend = "fault:aio", .where = IN_FILE, .fault = TROUBLE ",sys=1"},
    {.backend = "fault:mmap", .where = ON_DISK, .fault = TROUBLE ",sys=1"},
};
enum { N_SPECIAL = sizeof special / sizeof special[0], N_PLACES = 4, MOST_TARGETS = 128 };
static struct target targets[MOST_TARGETS];
static unsigned n_targets;

static void add_targets(const struct mx_backend *b) {
    static char faulty[MOST_TARGETS / N_PLACES][32];
    char *name = faulty[n_targets / N_PLACES];
    snprintf(name, sizeof faulty[0], "fault:%s", b->name);
    targets[n_targets++] = (struct target){.backend = b->name, .where = IN_DIRECTORY};
    targets[n_targets++] = (struct target){.backend = b->name, .where = IN_FILE};
    targets[n_targets++] = (struct target){.backend = b->name, .where = ON_DISK};
    targets[n_targets++] = (struct target){.backend = name, .where = IN_FILE, .fault = TROUBLE};
}

static void __attribute__((constructor)) make_targets(void) {
    add_targets(mx_backend_skeleton);
    for (const struct mx_backend *const *b = mx_backends; *b != NULL; b++)
        if ((*b)->face == MX_FACE_TRANSFER && n_targets + N_PLACES + N_SPECIAL <= MOST_TARGETS)
            add_targets(*b);
    memcpy(&targets[n_targets], special, sizeof special);
    n_targets += N_SPECIAL;
}

static bool have_disk(void) {
    if (disk.fd < 0 && geteuid() == 0) disk = make_loop("disk", 64 * MIB, 0);
    if (disk.fd < 0) cr_log_warn("skipped on a block device: needs root for a loop device");
    return disk.fd >= 0;
}

static struct mx_device_options options_of(const struct target *t) {
    const char *path = t->where == IN_DIRECTORY ? dir
                       : t->where == IN_FILE    ? in_dir("a.store")
                       : t->where == ON_DISK    ? disk.path
                                                : NULL;
    return (struct mx_device_options){.backend = t->backend,
                                      .path = path,
                                      .queue_depth = 4,
                                      .max_request_bytes = 64 * KIB,
                                      .workers = 3,
                                      .advice = t->advice,
                                      .sqpoll = t->sqpoll,
                                      .iopoll = t->iopoll,
                                      .uncached = t->uncached,
                                      .no_register = t->no_register,
                                      .fault = t->fault};
}

/* ---- spans that hurt */

enum { UNIT = 4096, BUFFER_UNITS = 1024 };

struct pattern_case {
    const char *name;
    unsigned n, units, stride, dram_stride; /* in units; spans i: [i*stride, +units), DRAM at i*dram_stride */
    uint64_t requests;                      /* exactly so many without faults; 0 = not said */
};

static const struct pattern_case cases[] = {
    {"nothing", 0, 0, 0, 0, 0},
    {"one unit", 1, 1, 1, 1, 1},
    {"adjoining: one request", 16, 1, 1, 1, 1},
    {"adjoining in the Buffer alone", 16, 1, 1, 2, 16},
    {"adjoining in DRAM alone", 16, 1, 3, 1, 16},
    {"strided, more than the queue is deep", 200, 2, 5, 3, 200},
    {"longer than a request", 1, 100, 1, 100, 7}, /* 400 KiB in pieces of 64 KiB */
    {"the whole Buffer", 1, BUFFER_UNITS, 1, 1, 64},
    {"a few bytes over a request", 3, 17, 40, 50, 6},
};

struct bench {
    mx_device *device;
    mx_buffer *buffer;
    mx_block *block;
    char *dram, *shadow,
        *back; /* Block: source, then destination of the whole Buffer; shadow: what must be there */
    bool exact;
};

static struct bench open_bench(const struct target *t) {
    struct mx_device_options options = options_of(t);
    struct bench b = {.device = open_ok(&options), .exact = t->fault == NULL};
    uint64_t bytes = (uint64_t)UNIT * BUFFER_UNITS;
    b.buffer = create_ok(b.device, "data", bytes);
    b.block = block_ok(b.device, 3 * bytes);
    b.dram = mx_block_data(b.block);
    b.back = b.dram + 2 * bytes;
    b.shadow = calloc(1, bytes);
    cr_assert_eq(write_now(b.buffer, 0, bytes, b.dram), 0, "zeroes on %s", t->backend);
    return b;
}

static void close_bench(struct bench *b) {
    free(b->shadow);
    mx_block_free(b->block);
    mx_buffer_close(b->buffer);
    mx_device_close(b->device);
}

static void same_as_shadow(struct bench *b, const char *what, const char *backend) {
    uint64_t bytes = mx_buffer_bytes(b->buffer);
    memset(b->back, 0xa5, bytes);
    cr_assert_eq(read_now(b->buffer, 0, bytes, b->back), 0, "%s on %s", what, backend);
    cr_assert_eq(memcmp(b->back, b->shadow, bytes), 0, "%s on %s", what, backend);
}

static struct mx_span *make_spans(const struct bench *b, const struct pattern_case *c) {
    struct mx_span *spans = calloc(c->n + 1, sizeof *spans);
    for (unsigned i = 0; i < c->n; i++)
        spans[i] = (struct mx_span){(uint64_t)i * c->stride * UNIT, (uint64_t)c->units * UNIT,
                                    b->dram + (uint64_t)i * c->dram_stride * UNIT};
    return spans;
}

/* For all cases c: write(c) then read(everything) = shadow, where shadow[o..) := dram[..) for every span; and
 * read(c) puts the same bytes back into DRAM. Bytes counted = bytes asked for; without faults, requests =
 * pieces. */
static void run_case(struct bench *b, const struct pattern_case *c, const char *backend) {
    struct mx_span *spans = make_spans(b, c);
    struct mx_counters before = {.size = sizeof before}, after = {.size = sizeof after};
    mx_ticket *ticket = NULL;
    fill_pattern(b->dram, 2 * mx_buffer_bytes(b->buffer), (uint64_t)(c - cases) << 32);
    mx_device_counters(b->device, &before);
    cr_assert_eq(mx_buffer_write(b->buffer, spans, c->n, &ticket), 0, "%s on %s", c->name, backend);
    cr_assert_eq(mx_wait(ticket), 0, "%s on %s", c->name, backend);
    mx_device_counters(b->device, &after);
    for (unsigned i = 0; i < c->n; i++)
        memcpy(b->shadow + spans[i].offset_bytes, spans[i].dram, spans[i].bytes);
    cr_assert_eq(after.write_bytes - before.write_bytes, (uint64_t)c->n * c->units * UNIT, "%s on %s",
                 c->name, backend);
    if (b->exact)
        cr_assert_eq(after.write_requests - before.write_requests, c->requests, "%s on %s: %llu requests",
                     c->name, backend, (unsigned long long)(after.write_requests - before.write_requests));
    same_as_shadow(b, c->name, backend);
    memset(b->dram, 0, 2 * mx_buffer_bytes(b->buffer));
    cr_assert_eq(mx_buffer_read(b->buffer, spans, c->n, &ticket), 0);
    cr_assert_eq(mx_wait(ticket), 0);
    for (unsigned i = 0; i < c->n; i++)
        cr_assert_eq(memcmp(b->shadow + spans[i].offset_bytes, spans[i].dram, spans[i].bytes), 0, "%s on %s",
                     c->name, backend);
    free(spans);
}

Test(conformance, spans) {
    for (unsigned i = 0; i < n_targets; i++) {
        if (targets[i].where == ON_DISK && !have_disk()) continue;
        struct bench b = open_bench(&targets[i]);
        const int n = sizeof cases / sizeof cases[0];
        for (int c = (int)i % mx_case_step(); c < n; c += mx_case_step())
            run_case(&b, &cases[c], targets[i].backend);
        close_bench(&b);
    }
}

/* Tickets over disjoint random ranges, waited for in another order: the Buffer is the shadow afterwards, and
 * 1 <= peak_in_flight <= queue depth (transfer style) or pieces of a batch times workers (mapped style). */
Test(conformance, many_tickets_in_any_order) {
    enum { TICKETS = 60, RANGE = BUFFER_UNITS / TICKETS };
    for (unsigned i = 0; i < n_targets; i++) {
        if (targets[i].where == ON_DISK && !have_disk()) continue;
        struct bench b = open_bench(&targets[i]);
        mx_ticket *tickets[TICKETS];
        uint64_t random = i;
        fill_pattern(b.dram, (uint64_t)UNIT * BUFFER_UNITS, 77);
        for (unsigned k = 0; k < TICKETS; k++) {
            uint64_t from = ((uint64_t)k * RANGE + draw(&random, RANGE)) * UNIT;
            uint64_t bytes = ((uint64_t)(k + 1) * RANGE * UNIT - from);
            struct mx_span span = {from, bytes, b.dram + from};
            memcpy(b.shadow + from, b.dram + from, bytes);
            cr_assert_eq(mx_buffer_write(b.buffer, &span, 1, &tickets[k]), 0);
        }
        for (unsigned left = TICKETS; left > 0; left--) {
            unsigned k = (unsigned)draw(&random, left);
            int done = mx_test(tickets[k]);
            cr_assert(done == 0 || done == 1);
            cr_assert_eq(mx_wait(tickets[k]), 0);
            tickets[k] = tickets[left - 1];
        }
        same_as_shadow(&b, "many tickets", targets[i].backend);
        struct mx_counters c = {.size = sizeof c};
        mx_device_counters(b.device, &c);
        cr_assert_geq(c.peak_in_flight, 1);
        if (strcmp(targets[i].backend, "dram") != 0 && strcmp(targets[i].backend, "mmap") != 0)
            cr_assert_leq(c.peak_in_flight, 4);
        cr_assert_gt(c.write_ns, 0);
        close_bench(&b);
    }
}

/* ---- several threads */

struct worker {
    mx_buffer *buffer;
    char *dram;
    uint64_t first_unit, units, seed;
    int failures;
};

/* In a range of its own, reads and writes at random: every read = the last write. */
static void *work(void *argument) {
    struct worker *w = argument;
    uint64_t random = w->seed, bytes = w->units * UNIT;
    char *shadow = calloc(1, bytes);
    w->failures += write_now(w->buffer, w->first_unit * UNIT, bytes, memset(w->dram, 0, bytes)) != 0;
    for (int k = 0; k < 40; k++) {
        uint64_t from = draw(&random, w->units) * UNIT, most = bytes - from;
        uint64_t n = (1 + draw(&random, most / UNIT)) * UNIT, place = w->first_unit * UNIT + from;
        if (draw(&random, 2) == 0) {
            fill_pattern(w->dram, n, random);
            memcpy(shadow + from, w->dram, n);
            w->failures += write_now(w->buffer, place, n, w->dram) != 0;
        } else {
            memset(w->dram, 0x5a, n);
            w->failures +=
                read_now(w->buffer, place, n, w->dram) != 0 || memcmp(w->dram, shadow + from, n) != 0;
        }
    }
    free(shadow);
    return NULL;
}

Test(conformance, threads_share_a_device) {
    enum { WORKERS = 4, UNITS = BUFFER_UNITS / WORKERS };
    for (unsigned i = 0; i < n_targets; i++) {
        if (targets[i].where == ON_DISK && !have_disk()) continue;
        struct bench b = open_bench(&targets[i]);
        pthread_t threads[WORKERS];
        struct worker workers[WORKERS];
        for (unsigned k = 0; k < WORKERS; k++) {
            workers[k] =
                (struct worker){b.buffer, b.dram + (uint64_t)k * UNITS * UNIT, k * UNITS, UNITS, k, 0};
            cr_assert_eq(pthread_create(&threads[k], NULL, work, &workers[k]), 0);
        }
        for (unsigned k = 0; k < WORKERS; k++) {
            pthread_join(threads[k], NULL);
            cr_assert_eq(workers[k].failures, 0, "%s: thread %u", targets[i].backend, k);
        }
        close_bench(&b);
    }
}

/* ---- the raw style: every taken request has exactly one completion, a refused one none */

static void once_each(const struct mx_backend *backend, const char *full_name) {
    enum { DEPTH = 8, REQUESTS = 100 };
    struct mx_device_options options = {
        .backend = full_name, .queue_depth = DEPTH, .max_request_bytes = MIB, .workers = 1, .fault = TROUBLE};
    const char *path = in_dir("raw");
    struct mx_storage facts;
    make_file(path, REQUESTS * UNIT);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    cr_assert_eq(mx_storage_facts(fd, NULL, &facts), 0);
    struct mx_place place = {fd,
                             path,
                             false,
                             REQUESTS * UNIT,
                             facts.direct_offset_align_bytes,
                             facts.direct_memory_align_bytes,
                             UNIT,
                             &options,
                             false};
    struct mx_backend_facts backend_facts = {0};
    mx_why why = {""};
    void *state = NULL;
    if (backend->probe != NULL) cr_assert_eq(backend->probe(&place, &why), 0, "%s", why.text);
    cr_assert_eq(backend->open(&place, &why, &backend_facts, &state), 0, "%s", why.text);
    char *memory = aligned_alloc(UNIT, REQUESTS * UNIT);
    struct mx_request requests[REQUESTS];
    struct mx_completion done[DEPTH];
    unsigned taken = 0, reaped = 0, seen[REQUESTS] = {0};
    for (unsigned i = 0; i < REQUESTS; i++)
        requests[i] =
            (struct mx_request){(uint64_t)i * UNIT, UNIT, i % 2 == 0, memory + (uint64_t)i * UNIT, 1000 + i};
    memset(memory, 1, REQUESTS * UNIT);
    for (unsigned i = 0; i < REQUESTS && backend->move != NULL; i++) {
        cr_assert_eq(backend->move(state, &requests[i]), UNIT, "%s: request %u", full_name, i);
        seen[i]++;
    }
    while (reaped < REQUESTS && backend->move == NULL) {
        int k = taken < REQUESTS && taken - reaped < DEPTH
                    ? backend->submit(state, requests + taken,
                                      REQUESTS - taken < DEPTH - (taken - reaped) ? REQUESTS - taken
                                                                                  : DEPTH - (taken - reaped))
                    : 0;
        cr_assert_geq(k, 0);
        taken += (unsigned)k;
        if (taken == reaped) continue;
        int n = backend->reap(state, 1, DEPTH, done);
        if (n == -EINTR)
            continue; /* the wait may be cut short by anything that stops the process for a moment */
        cr_assert(n >= 1 && n <= DEPTH, "%d", n);
        for (int j = 0; j < n; j++) {
            unsigned i = (unsigned)(done[j].tag - 1000);
            cr_assert_lt(i, taken, "a completion of a request that was not taken");
            seen[i]++;
        }
        reaped += (unsigned)n;
    }
    if (backend->move == NULL) cr_assert_eq(backend->reap(state, 0, DEPTH, done), 0);
    for (unsigned i = 0; i < REQUESTS; i++) cr_assert_eq(seen[i], 1, "%s: request %u", full_name, i);
    if (backend->close != NULL) backend->close(state);
    free(memory);
    close(fd);
    unlink(path);
}

Test(conformance, every_request_completes_once) {
    for (const struct mx_backend *const *b = mx_backends; *b != NULL; b++)
        if ((*b)->face == MX_FACE_TRANSFER) once_each(*b, (*b)->name);
    once_each(mx_backend_skeleton, "skeleton");
    once_each(mx_backend_fault, "fault:aio");
    once_each(mx_backend_fault, "fault:uring");
    once_each(mx_backend_fault, "fault:mmap");
}

/* Every table is complete for its style, and names are unique. */
Test(conformance, tables_are_complete) {
    for (const struct mx_backend *const *b = mx_backends; *b != NULL; b++) {
        cr_expect((*b)->open && (*b)->summary, "%s", (*b)->name);
        if ((*b)->face == MX_FACE_TRANSFER) {
            const bool waits = (*b)->move != NULL, queues = (*b)->submit && (*b)->reap;
            cr_expect(waits != queues, "%s", (*b)->name);
        }
        if ((*b)->face == MX_FACE_MAPPED)
            cr_expect((*b)->map && (*b)->advise && (*b)->unmap, "%s", (*b)->name);
        cr_expect_eq(mx_backend_find((*b)->name), *b);
    }
    cr_expect_null(mx_backend_find("nothing"));
}

/* ---- errors */

/* P(EIO) = 1: every ticket gives -EIO. P(ENOSPC) = 1: writes give -ENOSPC, reads 0. The device still closes.
 */
Test(conformance, errors_reach_the_ticket) {
    static const char *const inners[] = {"fault:dram", "fault:mmap", "fault:aio", "fault:uring"};
    for (size_t i = 0; i < sizeof inners / sizeof inners[0]; i++) {
        struct mx_device_options options = {
            .backend = inners[i], .path = dir, .queue_depth = 3, .max_request_bytes = 8 * KIB};
        for (int full = 0; full < 2; full++) {
            options.fault = full ? "enospc=1" : "eio=1";
            mx_device *device = open_ok(&options);
            mx_buffer *buffer = create_ok(device, "b", MIB);
            mx_block *block = block_ok(device, MIB);
            cr_expect_eq(write_now(buffer, 0, MIB, mx_block_data(block)), full ? -ENOSPC : -EIO, "%s",
                         inners[i]);
            cr_expect_eq(read_now(buffer, 0, MIB, mx_block_data(block)), full ? 0 : -EIO, "%s", inners[i]);
            mx_block_free(block);
            mx_buffer_close(buffer);
            mx_device_close(device);
        }
    }
}

/* A ticket gives 0 or -EIO. Those that give 0 hold the right bytes, and both kinds occur. */
Test(conformance, errors_hit_their_own_ticket_only) {
    enum { TICKETS = 200 };
    struct mx_device_options options = {.backend = "fault:aio",
                                        .path = dir,
                                        .queue_depth = 8,
                                        .max_request_bytes = 16 * KIB,
                                        .fault =
                                            "seed=5,eio=0.02,short=0.3,eagain=0.1,reorder=1,delay_us=50"};
    mx_device *device = open_ok(&options);
    mx_buffer *buffer = create_ok(device, "b", TICKETS * 64 * KIB);
    mx_block *block = block_ok(device, 2 * TICKETS * 64 * KIB);
    char *out = mx_block_data(block), *back = out + TICKETS * 64 * KIB;
    mx_ticket *tickets[TICKETS];
    bool written[TICKETS];
    unsigned good = 0, bad = 0;
    fill_pattern(out, TICKETS * 64 * KIB, 3);
    for (uint64_t k = 0; k < TICKETS; k++)
        cr_assert_eq(mx_buffer_write(buffer, &(struct mx_span){k * 64 * KIB, 64 * KIB, out + k * 64 * KIB}, 1,
                                     &tickets[k]),
                     0);
    for (unsigned k = 0; k < TICKETS; k++) {
        int err = mx_wait(tickets[k]);
        cr_assert(err == 0 || err == -EIO, "%d", err);
        written[k] = err == 0;
    }
    for (uint64_t k = 0; k < TICKETS; k++) {
        int err = read_now(buffer, k * 64 * KIB, 64 * KIB, back);
        cr_assert(err == 0 || err == -EIO, "%d", err);
        if (err == 0 && written[k])
            cr_assert_eq(memcmp(back, out + k * 64 * KIB, 64 * KIB), 0, "ticket %u", (unsigned)k);
        (*(err == 0 && written[k] ? &good : &bad))++;
    }
    cr_assert_gt(good, 0);
    cr_assert_gt(bad, 0);
    mx_block_free(block);
    mx_buffer_close(buffer);
    mx_device_close(device);
}

Test(conformance, spans_are_checked) {
    struct mx_device_options options = {.backend = "aio", .path = dir};
    mx_device *device = open_ok(&options);
    mx_buffer *buffer = create_ok(device, "b", MIB);
    mx_block *block = block_ok(device, MIB);
    char *dram = mx_block_data(block);
    struct mx_device_facts facts = {.size = sizeof facts};
    mx_device_facts(device, &facts);
    uint64_t align = facts.offset_align_bytes;
    const struct mx_span bad[] = {{1, align, dram},
                                  {0, align - 1, dram},
                                  {0, align, dram + 1},
                                  {MIB, align, dram},
                                  {MIB + align, 0, dram},
                                  {0, MIB + align, dram},
                                  {UINT64_MAX - align + 1, align, dram},
                                  {align, UINT64_MAX - align + 1, dram}};
    mx_ticket *ticket = (mx_ticket *)-1;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_expect_eq(mx_buffer_write(buffer, &bad[i], 1, &ticket), -EINVAL, "span %zu", i);
    cr_expect_eq(ticket, (mx_ticket *)-1, "out-pointers are written only on success");
    cr_expect_eq(mx_wait(NULL), 0);
    void *base;
    cr_expect_eq(mx_buffer_map(buffer, NULL, &base), -ENOTSUP);
    cr_expect_eq(mx_buffer_advise(buffer, 0, 1, MX_ADVICE_DROP), -ENOTSUP);
    mx_block_free(block);
    mx_buffer_close(buffer);
    mx_device_close(device);
}

/* ---- a backend that breaks its contract, or whose kernel fails: the queue ends every ticket all the same */

struct hostile {
    enum { TWICE, NOTHING, TOO_MUCH, ALWAYS_AGAIN, DEAD_REAP, REFUSES, NEVER_ROOM, MISALIGNED } mode;
    struct mx_completion done[64];
    unsigned n;
};

static int hostile_submit(void *state, const struct mx_request *r, unsigned n) {
    struct hostile *h = state;
    static const int64_t results[] = {[NOTHING] = 0, [ALWAYS_AGAIN] = -EAGAIN, [MISALIGNED] = 100};
    if (h->mode == REFUSES) return -EPERM;
    if (h->mode == NEVER_ROOM) return 0;
    unsigned taken = 0;
    for (; taken < n && h->n < 62; taken++) {
        int64_t result = h->mode == TWICE || h->mode == DEAD_REAP ? r[taken].bytes
                         : h->mode == TOO_MUCH                    ? (int64_t)r[taken].bytes + 1
                                                                  : results[h->mode];
        for (int k = 0; k < (h->mode == TWICE ? 2 : 1); k++)
            h->done[h->n++] = (struct mx_completion){r[taken].tag, result};
    }
    return (int)taken;
}

static int hostile_reap(void *state, unsigned min, unsigned max, struct mx_completion *out) {
    struct hostile *h = state;
    (void)min;
    if (h->mode == DEAD_REAP) return -EBADF;
    unsigned n = 0;
    while (n < max && h->n > 0) out[n++] = h->done[--h->n];
    return (int)n;
}

Test(conformance, the_queue_survives_a_hostile_backend) {
    static const struct {
        int mode, result;
    } rows[] = {{TWICE, 0},          {NOTHING, -EIO},   {TOO_MUCH, -EIO},      {ALWAYS_AGAIN, -EAGAIN},
                {DEAD_REAP, -EBADF}, {REFUSES, -EPERM}, {NEVER_ROOM, -EAGAIN}, {MISALIGNED, -EIO}};
    static const struct mx_backend backend = {
        .name = "hostile", .face = MX_FACE_TRANSFER, .submit = hostile_submit, .reap = hostile_reap};
    static char dram[64 * KIB];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hostile h = {.mode = rows[i].mode};
        struct mx_queue_setup setup = {
            .backend = &backend, .state = &h, .depth = 8, .max_request_bytes = 8192, .align_bytes = 512};
        struct mx_queue *queue = NULL;
        cr_assert_eq(mx_queue_create(&setup, NULL, &queue), 0);
        mx_ticket *tickets[2] = {NULL, NULL};
        /* Where nothing ever moves, a request gives up after a second or so: one ticket will do. */
        int n = rows[i].result == -EAGAIN || rows[i].mode == MISALIGNED ? 1 : 2;
        for (int k = 0; k < n; k++)
            cr_assert_eq(
                mx_queue_post(queue, k == 0, &(struct mx_span){0, 16384, dram}, 1, 0, NULL, &tickets[k]), 0);
        for (int k = 0; k < n; k++)
            cr_expect_eq(mx_wait(tickets[k]), rows[i].result, "mode %d", rows[i].mode);
        mx_queue_free(queue);
    }
}

/* ---- facts */

static uint64_t resident_bytes(const char *path, uint64_t offset, uint64_t bytes) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    unsigned char *pages = calloc(bytes / 4096, 1);
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)offset);
    cr_assert_neq(map, MAP_FAILED);
    cr_assert_eq(mincore(map, bytes, pages), 0);
    uint64_t n = 0;
    for (uint64_t i = 0; i < bytes / 4096; i++) n += pages[i] & 1;
    munmap(map, bytes);
    free(pages);
    close(fd);
    return n * 4096;
}

/* bypasses_page_cache => no page of the Buffer is resident after writing and reading all of it. */
Test(conformance, facts_hold) {
    for (unsigned i = 0; i < n_targets; i++) {
        if (targets[i].where == ON_DISK && !have_disk()) continue;
        struct bench b = open_bench(&targets[i]);
        struct mx_device_facts f = {.size = sizeof f};
        mx_device_facts(b.device, &f);
        same_as_shadow(&b, "zeroes", targets[i].backend);
        cr_expect_str_eq(f.backend, targets[i].backend);
        cr_expect_eq(f.durable, targets[i].where != NOWHERE);
        cr_expect_eq(f.bypasses_page_cache,
                     (strstr(f.backend, "aio") || strstr(f.backend, "uring")) && !targets[i].uncached &&
                         (targets[i].fault == NULL || strstr(targets[i].fault, "sys=1") == NULL),
                     "%s", f.backend);
        cr_expect_gt(f.capacity_bytes, 0);
        cr_expect_neq(f.place[0], 0);
        if (targets[i].iopoll) cr_expect_neq(f.note[0], 0, "no poll queues here, and nothing said");
        if (f.bypasses_page_cache && targets[i].where != ON_DISK)
            cr_expect_eq(resident_bytes(f.place, MX_DATA_OFFSET_BYTES, (uint64_t)UNIT * BUFFER_UNITS), 0,
                         "%s", f.backend);
        close_bench(&b);
    }
}

Test(conformance, default_backend) {
    struct mx_device_options options = {.path = dir};
    struct mx_device_facts f = {.size = sizeof f};
    mx_device *device = open_ok(&options);
    mx_device_facts(device, &f);
    cr_expect(strcmp(f.backend, "uring") == 0 || strcmp(f.backend, "aio") == 0, "%s", f.backend);
    mx_device_close(device);
}

/* ---- mapped Buffers */

/* map: bytes stored through the mapping are read by transfers and the other way round, under every advice,
 * and no advice loses a byte. */
Test(conformance, mapped_buffers) {
    static const enum mx_advice all[] = {MX_ADVICE_NONE,     MX_ADVICE_SEQUENTIAL, MX_ADVICE_RANDOM,
                                         MX_ADVICE_WILLNEED, MX_ADVICE_HUGEPAGE,   MX_ADVICE_SCHEDULE,
                                         MX_ADVICE_POPULATE, MX_ADVICE_DROP};
    for (unsigned i = 0; i < n_targets; i++) {
        if (targets[i].where == ON_DISK && !have_disk()) continue;
        if (strcmp(targets[i].backend, "mmap") != 0 && strcmp(targets[i].backend, "dram") != 0) continue;
        struct bench b = open_bench(&targets[i]);
        uint64_t bytes = mx_buffer_bytes(b.buffer);
        void *map = NULL;
        cr_assert_eq(mx_buffer_map(b.buffer, NULL, &map), 0);
        for (size_t a = 0; a < sizeof all / sizeof all[0]; a++) {
            fill_pattern(map, bytes, a);
            fill_pattern(b.shadow, bytes, a);
            int err = mx_buffer_advise(b.buffer, 12345, bytes - 54321, all[a]);
            cr_expect(err == 0 || err == -EINVAL, "%s: advice %zu gives %d", targets[i].backend, a, err);
            same_as_shadow(&b, "after advice", targets[i].backend);
            cr_assert_eq(memcmp(map, b.shadow, bytes), 0);
            if (targets[i].where != NOWHERE) cr_assert_eq(mx_device_flush(b.device), 0);
        }
        cr_expect_eq(mx_buffer_advise(b.buffer, bytes, 1, MX_ADVICE_DROP), -EINVAL);
        close_bench(&b);
    }
}

/* Real swap: what DROP moved to swap space comes back unchanged. Blocks are locked. */
static char swap_file[512];
static void swap_off(void) {
    if (swap_file[0] != 0) swapoff(swap_file);
    tear_down();
}

Test(conformance, swap, .fini = swap_off) {
    need_root();
    struct mx_device_options options = {.backend = "swap", .advice = MX_ADVICE_SCHEDULE};
    if (mx_backend_find("swap")->probe(NULL, NULL) != 0)
        refused(&options, -ENOTSUP, "no swap space is active");
    make_file(in_dir("swapfile"), 64 * MIB);
    snprintf(swap_file, sizeof swap_file, "%s", in_dir("swapfile"));
    if (chmod(swap_file, 0600) != 0 || shell("mkswap %s >/dev/null 2>&1", swap_file) != 0 ||
        swapon(swap_file, 0) != 0)
        cr_skip_test("no swap file can be made active here");
    refused(&(struct mx_device_options){.backend = "aio", .path = swap_file, .force = true}, -EBUSY, "swap");
    mx_device *device = open_ok(&options);
    const uint64_t bytes = 16 * MIB;
    mx_buffer *buffer = create_ok(device, "b", bytes);
    mx_block *block = block_ok(device, 2 * bytes);
    char *out = mx_block_data(block), *back = out + bytes;
    fill_pattern(out, bytes, 9);
    cr_assert_eq(write_now(buffer, 0, bytes, out), 0);
    cr_assert_eq(mx_buffer_advise(buffer, 0, bytes, MX_ADVICE_DROP), 0);
    cr_assert_eq(read_now(buffer, 0, bytes, back), 0);
    cr_assert_eq(memcmp(out, back, bytes), 0);
    mx_block_free(block);
    mx_buffer_close(buffer);
    mx_device_close(device);
}

/* ---- commits */

static int64_t note_of(const struct mx_device_options *options, char *note) {
    struct mx_device_options again = *options;
    again.resume = true;
    again.keep = true;
    mx_device *device = open_ok(&again);
    int64_t n = mx_device_note(device, note, MX_NOTE_BYTES);
    mx_device_close(device);
    return n;
}

static void damage(const char *path, uint64_t offset) {
    char byte;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    cr_assert_eq(pread(fd, &byte, 1, (off_t)offset), 1);
    byte ^= 1;
    cr_assert_eq(pwrite(fd, &byte, 1, (off_t)offset), 1);
    cr_assert_eq(fsync(fd), 0);
    close(fd);
}

/* Where byte `at` of a copy of a slot lies. */
static uint64_t in_slot(int slot, int copy, uint64_t at) { return mx_store_offset(slot, copy) + at; }

static struct {
    bool flushed;      /* since it was last set to false */
    int before, after; /* writes by pwrite, of superblocks that is, before and after a flush */
} order;

static int fdatasync_seen(int fd) {
    order.flushed = true;
    return mx_sys_kernel.fdatasync(fd);
}

static int fsync_seen(int fd) {
    order.flushed = true;
    return mx_sys_kernel.fsync(fd);
}

static int msync_seen(void *base, size_t bytes, int flags) {
    order.flushed |= (flags & MS_SYNC) != 0;
    return mx_sys_kernel.msync(base, bytes, flags);
}

static ssize_t pwrite_seen(int fd, const void *from, size_t bytes, off_t at) {
    *(order.flushed ? &order.after : &order.before) += 1;
    return mx_sys_kernel.pwrite(fd, from, bytes, at);
}

/* On every backend whose state outlives the process: after data was written no superblock is, before a flush
 * has made the data durable. The first commit also tells of a file that has grown; the second has data alone
 * to flush. */
Test(conformance, data_is_flushed_before_a_superblock_tells_of_it) {
    struct mx_sys seen = mx_sys_kernel;
    seen.fdatasync = fdatasync_seen, seen.fsync = fsync_seen, seen.msync = msync_seen,
    seen.pwrite = pwrite_seen;
    for (unsigned i = 0; i < n_targets; i++) {
        const struct target *t = &targets[i];
        if (t->where == NOWHERE || (t->where == ON_DISK && !have_disk())) continue;
        struct bench b = open_bench(t);
        const uint64_t bytes = mx_buffer_bytes(b.buffer);
        mx_sys = &seen;
        for (int k = 0; k < 3; k++) {
            fill_pattern(b.dram, bytes, i + (unsigned)k);
            cr_assert_eq(write_now(b.buffer, 0, bytes, b.dram), 0);
            memset(&order, 0, sizeof order);
            cr_assert_eq(mx_device_commit(b.device, "note", 4), 0);
            cr_expect(order.before == 0 && order.after > 0,
                      "%s, commit %d: %d writes before the flush, %d after it", t->backend, k, order.before,
                      order.after);
        }
        mx_sys = &mx_sys_kernel;
        close_bench(&b);
        struct mx_device_options again = options_of(t);
        again.force = true;
        mx_device_close(open_ok(&again)); /* the next target may have the same place */
    }
}

/* note(reopen) = last commit; with either copy of the newest slot damaged still; with both, the one before;
 * with all four, -EIO. A copy that is damaged is whole again after reopening. Buffers keep their bytes. An
 * interrupted run is not overwritten without force. */
Test(conformance, commits_survive) {
    for (unsigned i = 0; i < n_targets; i++) {
        const struct target *t = &targets[i];
        if (t->where == NOWHERE || (t->where == ON_DISK && !have_disk())) continue;
        char note[MX_NOTE_BYTES], place[512];
        struct bench b = open_bench(t);
        uint64_t bytes = mx_buffer_bytes(b.buffer);
        struct mx_device_facts f = {.size = sizeof f};
        mx_device_facts(b.device, &f);
        memcpy(place, f.place, sizeof place);
        cr_assert_eq(mx_device_note(b.device, note, sizeof note), 0);
        cr_assert_eq(mx_device_commit(b.device, "x", MX_NOTE_BYTES + 1), -EINVAL);
        fill_pattern(b.dram, bytes, i);
        cr_assert_eq(write_now(b.buffer, 0, bytes, b.dram), 0);
        cr_assert_eq(mx_device_commit(b.device, "first", 5), 0);
        cr_assert_eq(mx_device_commit(b.device, "second!", 7), 0);
        cr_assert_eq(mx_device_note(b.device, note, 3), -ENOSPC);
        close_bench(&b);

        struct mx_device_options options = options_of(t);
        refused(&options, -EEXIST, "--resume");
        cr_assert_eq(note_of(&options, note), 7);
        cr_assert_eq(memcmp(note, "second!", 7), 0);
        options.resume = true;
        mx_device *device = open_ok(&options);
        mx_block *block = block_ok(device, 2 * bytes);
        mx_buffer *buffer = NULL;
        cr_assert_eq(mx_buffer_open(device, "other", NULL, &buffer), -ENOENT);
        cr_assert_eq(mx_buffer_open(device, "data", NULL, &buffer), 0);
        mx_buffer *twice = NULL;
        cr_assert_eq(mx_buffer_open(device, "data", NULL, &twice), -EBUSY);
        cr_assert_eq(mx_buffer_create(device, "data", 1, NULL, &twice), -EEXIST);
        fill_pattern(mx_block_data(block), bytes, i);
        cr_assert_eq(read_now(buffer, 0, bytes, (char *)mx_block_data(block) + bytes), 0);
        cr_assert_eq(memcmp(mx_block_data(block), (char *)mx_block_data(block) + bytes, bytes), 0);
        mx_block_free(block);
        mx_buffer_close(buffer);
        mx_device_close(device);

        struct mx_superblock super;
        int slot = -1, fd = open(place, O_RDWR | O_CLOEXEC);
        cr_assert_eq(mx_store_read(fd, &super, &slot), MX_STORE_INTACT);
        close(fd);
        for (int copy = 0; copy < 2; copy++) {
            damage(place, in_slot(slot, copy, 1500));
            cr_assert_eq(note_of(&options, note), 7, "%s: copy %d damaged", t->backend, copy);
            cr_assert_eq(memcmp(note, "second!", 7), 0);
        }
        damage(place, in_slot(slot, 0, 1500));
        damage(place, in_slot(slot, 1, 1500));
        cr_assert_eq(note_of(&options, note), 5);
        cr_assert_eq(memcmp(note, "first", 5), 0);
        damage(place, in_slot(1 - slot, 0, 16380));
        cr_assert_eq(note_of(&options, note), 5);
        damage(place, in_slot(1 - slot, 0, 100));
        damage(place, in_slot(1 - slot, 1, 16380));
        refused(&options, -EIO, "damaged");
        options.resume = false;
        refused(&options, -EEXIST, "--force");
        options.force = true;
        mx_device_close(open_ok(&options));
        cr_assert_eq(access(place, F_OK) == 0, t->where != IN_DIRECTORY);
    }
}

/* A torn commit: of the newer slot's 64 sectors (two copies of 32) only some reached the disk, the first k or
 * the last k. note = new if a whole copy did (k >= 32), else old; never a mixture. */
Test(conformance, torn_superblocks) {
    enum { BYTES = 4 * MX_SUPERBLOCK_BYTES, SLOT = 2 * MX_SUPERBLOCK_BYTES, SECTORS = SLOT / 512 };
    static char before[BYTES], after[BYTES], torn[BYTES], text[MX_NOTE_BYTES], note[MX_NOTE_BYTES];
    char path[512];
    snprintf(path, sizeof path, "%s", in_dir("a.store"));
    struct mx_device_options options = {.backend = "mmap", .path = path};
    mx_device *device = open_ok(&options);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    memset(text, 'o', sizeof text);
    cr_assert_eq(mx_device_commit(device, text, sizeof text), 0);
    cr_assert_eq(pread(fd, before, BYTES, 0), BYTES);
    memset(text, 'n', sizeof text);
    cr_assert_eq(mx_device_commit(device, text, sizeof text), 0);
    cr_assert_eq(pread(fd, after, BYTES, 0), BYTES);
    mx_device_close(device);
    uint64_t changed = memcmp(before, after, SLOT) == 0 ? SLOT : 0;
    for (uint64_t k = 0; k <= SECTORS; k++)
        for (int last = 0; last < 2; last++) {
            uint64_t from = changed + (last ? SLOT - k * 512 : 0);
            memcpy(torn, before, BYTES);
            memcpy(torn + from, after + from, k * 512);
            cr_assert_eq(pwrite(fd, torn, BYTES, 0), BYTES);
            cr_assert_eq(note_of(&options, note), MX_NOTE_BYTES);
            cr_assert_eq(note[0], k >= SECTORS / 2 ? 'n' : 'o', "%u sectors, last %d", (unsigned)k, last);
            cr_assert_eq(memcmp(note, note + 1, MX_NOTE_BYTES - 1), 0, "a mixture");
        }
    close(fd);
}

/* A commit, the first one after opening too, leaves the newest superblock as it is: bytes(slot of newest)
 * before = after. */
Test(conformance, commits_spare_the_newest_superblock) {
    enum { BYTES = 4 * MX_SUPERBLOCK_BYTES, SLOT = 2 * MX_SUPERBLOCK_BYTES };
    static char before[BYTES], after[BYTES];
    char path[512];
    snprintf(path, sizeof path, "%s", in_dir("a.store"));
    struct mx_device_options options = {.backend = "aio", .path = path};
    struct mx_superblock super;
    for (int round = 0; round < 4; round++) {
        mx_device *device = open_ok(&options);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        for (int k = 0; k < 1 + round % 2; k++) {
            int slot = -1;
            cr_assert_eq(mx_store_read(fd, &super, &slot), MX_STORE_INTACT);
            cr_assert_eq(pread(fd, before, BYTES, 0), BYTES);
            cr_assert_eq(mx_device_commit(device, "note", 4), 0);
            cr_assert_eq(pread(fd, after, BYTES, 0), BYTES);
            cr_assert_eq(memcmp(before + slot * SLOT, after + slot * SLOT, SLOT), 0);
            cr_assert_neq(memcmp(before, after, BYTES), 0);
        }
        close(fd);
        mx_device_close(device);
        options.resume = true;
    }
}

/* A directory's store goes when the device is closed, unless it is kept or its run is not finished. */
Test(conformance, what_stays_in_a_directory) {
    static const struct {
        bool keep, commit, finish, stays;
    } rows[] = {{0, 0, 0, 0}, {1, 0, 0, 1}, {0, 1, 0, 1}, {0, 1, 1, 0}, {1, 1, 1, 1}, {0, 0, 1, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mx_device_options options = {
            .backend = "uring", .path = dir, .keep = rows[i].keep, .force = true};
        mx_device *device = open_ok(&options);
        if (rows[i].commit) cr_assert_eq(mx_device_commit(device, "note", 4), 0);
        if (rows[i].finish) cr_assert_eq(mx_device_finish(device), 0);
        mx_device_close(device);
        cr_expect_eq(access(in_dir("memext.store"), F_OK) == 0, rows[i].stays, "row %zu", i);
    }
}

/* What a run left is overwritten without force only if the run is done, was not kept, and the file was named.
 */
Test(conformance, runs_that_are_not_overwritten) {
    static const struct {
        bool named, keep, finish;
        int result;
        const char *word;
    } rows[] = {{0, 0, 0, -EEXIST, "interrupted run"},
                {1, 0, 0, -EEXIST, "interrupted run"},
                {0, 1, 1, -EEXIST, "was kept"},
                {1, 1, 1, -EEXIST, "was kept"},
                {0, 0, 1, 0, ""},
                {1, 0, 1, 0, "finished run"}};
    char path[512];
    snprintf(path, sizeof path, "%s", in_dir("a.store"));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mx_device_options o = {
            .backend = "aio", .path = rows[i].named ? path : dir, .keep = rows[i].keep, .force = true};
        mx_device *device = open_ok(&o);
        cr_assert_eq(mx_device_commit(device, "note", 4), 0);
        if (rows[i].finish) cr_assert_eq(mx_device_finish(device), 0);
        mx_device_close(device);
        o.force = o.keep = false;
        if (rows[i].result != 0) {
            refused(&o, rows[i].result, rows[i].word);
            continue;
        }
        struct mx_device_facts f = {.size = sizeof f};
        device = open_ok(&o);
        mx_device_facts(device, &f);
        cr_expect_not_null(strstr(f.note, rows[i].word), "row %zu: %s", i, f.note);
        mx_device_close(device);
    }
}

/* The store of a run that was done, but whose process was killed before it could remove it, stays. */
Test(conformance, a_finished_run_in_a_directory_is_not_overwritten) {
    struct mx_device_options o = {.backend = "mmap", .path = dir};
    mx_device *device = open_ok(&o);
    cr_assert_eq(mx_device_commit(device, "note", 4), 0);
    cr_assert_eq(mx_device_finish(device), 0);
    cr_assert_eq(link(in_dir("memext.store"), in_dir("saved")), 0);
    mx_device_close(device);
    cr_assert_eq(rename(in_dir("saved"), in_dir("memext.store")), 0);
    refused(&o, -EEXIST, "a finished run");
    o.force = true;
    mx_device_close(open_ok(&o));
}

Test(conformance, anonymous_devices_do_not_commit) {
    struct mx_device_options options = {.backend = "dram"};
    mx_device *device = open_ok(&options);
    cr_expect_eq(mx_device_commit(device, "x", 1), -ENOTSUP);
    cr_expect_eq(mx_device_finish(device), -ENOTSUP);
    cr_expect_eq(mx_device_flush(device), 0);
    mx_device_close(device);
    options.resume = true;
    refused(&options, -ENOTSUP, "resume");
}

/* ---- refusals */

Test(conformance, options_are_checked) {
    struct mx_device_options o = {.backend = "dram", .queue_depth = 5000};
    refused(&o, -EINVAL, "5000");
    o = (struct mx_device_options){.backend = "dram", .max_request_bytes = 100};
    refused(&o, -EINVAL, "100");
    o = (struct mx_device_options){.backend = "dram", .workers = 65};
    refused(&o, -EINVAL, "65");
    o = (struct mx_device_options){.backend = "floppy"};
    refused(&o, -EINVAL, "floppy");
    o = (struct mx_device_options){.backend = "aio"};
    refused(&o, -EINVAL, "place");
    o = (struct mx_device_options){.backend = "aio", .path = dir, .force = true, .resume = true};
    refused(&o, -EINVAL, "choose one");
    o = (struct mx_device_options){.backend = "fault:aio", .path = dir, .fault = "typo=1"};
    refused(&o, -EINVAL, "typo");
    o = (struct mx_device_options){.backend = "dram", .advice = MX_ADVICE_DROP};
    refused(&o, -EINVAL, "advice");
    static const char *const bad[] = {"eio=",    "eio=x",    "eio=0.5x", "eio=-1",       "eio=1.1",
                                      "eio=nan", "eio=0x1",  "eio",      "fail=1.5",     "seed=1e300",
                                      "=1",      "eintr=1",  "call=one", "calls_from=x", "errno=5000",
                                      "errno=0", "reorder=2"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mx_why why = {""};
        cr_expect_eq(mx_fault_calls(bad[i], &why), -EINVAL, "%s", bad[i]);
        cr_expect_neq(why.text[0], 0, "%s", bad[i]);
        o = (struct mx_device_options){.backend = "fault:aio", .path = dir, .fault = bad[i]};
        if (strncmp(bad[i], "calls_from", 10) != 0) refused(&o, -EINVAL, "");
    }
    cr_expect_eq(mx_sys, &mx_sys_kernel);
    o = (struct mx_device_options){.backend = "fault:dram", .fault = "sys=1"};
    refused(&o, -EINVAL, "sys=1");
    cr_expect_neq(access(in_dir("memext.store"), F_OK), 0, "a refusal leaves nothing behind");
}

/* A refused place is unchanged, byte by byte. */
Test(conformance, foreign_files_are_refused) {
    static const char *const backends[] = {"mmap", "aio", "uring"};
    char text[64] = "somebody's thesis", back[64] = "";
    for (size_t i = 0; i < 3; i++) {
        for (int in_directory = 0; in_directory < 2; in_directory++) {
            const char *path = in_dir(in_directory ? "memext.store" : "thesis");
            FILE *file = fopen(path, "w");
            fputs(text, file);
            fclose(file);
            struct mx_device_options o = {.backend = backends[i], .path = in_directory ? dir : path};
            refused(&o, -EEXIST, "not made by memext");
            o.resume = true;
            refused(&o, -ENOENT, "no memext store");
            file = fopen(path, "r");
            cr_assert_not_null(fgets(back, sizeof back, file));
            fclose(file);
            cr_expect_str_eq(text, back);
            o.resume = false;
            o.force = true;
            mx_device_close(open_ok(&o));
            unlink(path);
        }
    }
}

Test(conformance, places_that_are_none) {
    struct mx_device_options o = {.backend = "aio", .path = in_dir("no/such/place")};
    refused(&o, -ENOENT, "no such place");
    o.path = "/dev/null";
    refused(&o, -ENOTBLK, "not storage");
    cr_assert_eq(mkfifo(in_dir("fifo"), 0600), 0);
    o.path = in_dir("fifo");
    refused(&o, -ENOTBLK, "not storage");
    make_file(in_dir("file"), 4096);
    o.path = in_dir("file/below");
    refused(&o, -ENOENT, "not a directory");
    o = (struct mx_device_options){.backend = "uring", .path = dir, .resume = true};
    refused(&o, -ENOENT, "no such place");
    cr_expect_neq(access(in_dir("memext.store"), F_OK), 0);
    char longest[5000];
    memset(longest, 'x', sizeof longest);
    longest[0] = '/';
    longest[sizeof longest - 1] = 0;
    o = (struct mx_device_options){.backend = "aio", .path = longest};
    refused(&o, -ENAMETOOLONG, "longer");
}

Test(conformance, a_store_has_one_user) {
    struct mx_device_options o = {.backend = "aio", .path = dir};
    mx_device *device = open_ok(&o);
    o.backend = "mmap";
    refused(&o, -EBUSY, "another memext");
    o.force = true;
    refused(&o, -EBUSY, "another memext");
    mx_device_close(device);
    mx_device_close(open_ok(&o));
}

Test(conformance, space_is_checked_before) {
    static const char *const backends[] = {"dram", "mmap", "aio", "uring"};
    for (size_t i = 0; i < 4; i++) {
        struct mx_device_options o = {.backend = backends[i], .path = dir, .expect_bytes = UINT64_C(1) << 50};
        refused(&o, -ENOSPC, "1 PiB");
        cr_expect_neq(access(in_dir("memext.store"), F_OK), 0);
        o.expect_bytes = MIB;
        mx_device *device = open_ok(&o);
        mx_buffer *buffer = NULL;
        mx_why why = {""};
        cr_expect_eq(mx_buffer_create(device, "b", UINT64_C(1) << 50, &why, &buffer), -ENOSPC, "%s",
                     why.text);
        cr_expect_not_null(strstr(why.text, "1 PiB"), "%s", why.text);
        cr_expect_eq(mx_buffer_create(device, "b", 0, &why, &buffer), -EINVAL);
        cr_expect_eq(mx_buffer_create(device, "a name too long", 1, &why, &buffer), 0,
                     "15 bytes are allowed");
        mx_buffer_close(buffer);
        cr_expect_eq(mx_buffer_create(device, "a name too long!", 1, &why, &buffer), -EINVAL);
        mx_device_close(device);
    }
}

Test(conformance, at_most_32_buffers) {
    mx_device *device = open_ok(&(struct mx_device_options){.backend = "mmap", .path = dir});
    mx_buffer *buffers[MX_EXTENTS], *more = NULL;
    char name[16];
    for (int i = 0; i < MX_EXTENTS; i++) {
        snprintf(name, sizeof name, "b%d", i);
        buffers[i] = create_ok(device, name, 100);
    }
    cr_expect_eq(mx_buffer_create(device, "more", 1, NULL, &more), -ENOSPC);
    for (int i = 0; i < MX_EXTENTS; i++) mx_buffer_close(buffers[i]);
    mx_device_close(device);
}

/* ---- full, read-only and unsuitable file systems */

static void mount_loop(const char *name, const char *where, uint64_t bytes) {
    disk = make_loop(name, bytes, 0);
    cr_assert_eq(shell("mkfs.ext4 -q -F %s", disk.path), 0);
    mkdir(in_dir(where), 0777);
    cr_assert_eq(mount(disk.path, in_dir(where), "ext4", 0, NULL), 0, "%s", strerror(errno));
}

Test(conformance, full_file_system) {
    own_mounts();
    mount_loop("small", "mnt", 32 * MIB);
    static const char *const backends[] = {"mmap", "aio", "uring"};
    for (size_t i = 0; i < 3; i++) {
        struct mx_device_options o = {.backend = backends[i], .path = in_dir("mnt")};
        mx_device *device = open_ok(&o);
        mx_buffer *buffer = NULL;
        mx_why why = {""};
        cr_expect_eq(mx_buffer_create(device, "big", 64 * MIB, &why, &buffer), -ENOSPC, "%s", why.text);
        struct mx_device_facts f = {.size = sizeof f};
        mx_device_facts(device, &f);
        cr_expect_lt(f.capacity_bytes, 32 * MIB);
        buffer = create_ok(device, "fits", 8 * MIB);
        mx_buffer_close(buffer);
        mx_device_close(device);
        o.expect_bytes = 64 * MIB;
        refused(&o, -ENOSPC, "64 MiB");
    }
    umount2(in_dir("mnt"), MNT_DETACH);
}

Test(conformance, memory_is_no_storage) {
    own_mounts();
    mkdir(in_dir("tmpfs"), 0777);
    cr_assert_eq(mount("none", in_dir("tmpfs"), "tmpfs", 0, "size=16m"), 0);
    char path[512];
    snprintf(path, sizeof path, "%s", in_dir("tmpfs"));
    refused(&(struct mx_device_options){.backend = "aio", .path = path}, -ENOTSUP, "tmpfs");
    refused(&(struct mx_device_options){.backend = "uring", .path = path}, -ENOTSUP, "tmpfs");
    refused(&(struct mx_device_options){.backend = "uring", .path = path, .uncached = true}, -ENOTSUP,
            "tmpfs");
    refused(&(struct mx_device_options){.path = path}, -ENOTSUP, "tmpfs");
    mx_device *device = open_ok(&(struct mx_device_options){.backend = "mmap", .path = path});
    struct mx_device_facts f = {.size = sizeof f};
    mx_buffer *buffer = NULL;
    mx_device_facts(device, &f);
    cr_expect_not_null(strstr(f.note, "tmpfs"));
    cr_expect_eq(mx_buffer_create(device, "big", 64 * MIB, NULL, &buffer), -ENOSPC);
    mx_device_close(device);
    umount2(path, MNT_DETACH);
}

Test(conformance, read_only_places) {
    own_mounts();
    mkdir(in_dir("ro"), 0777);
    cr_assert_eq(mount(in_dir("ro"), in_dir("ro"), NULL, MS_BIND, NULL), 0);
    cr_assert_eq(mount(NULL, in_dir("ro"), NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
    refused(&(struct mx_device_options){.backend = "aio", .path = in_dir("ro")}, -EROFS, "read-only");
    umount2(in_dir("ro"), MNT_DETACH);
    disk = make_loop("readonly", 16 * MIB, 1);
    refused(&(struct mx_device_options){.backend = "aio", .path = disk.path}, -EROFS, "read-only");
    make_file(in_dir("mine"), 0);
    cr_assert_eq(chmod(in_dir("mine"), 0400), 0);
    cr_assert_eq(seteuid(65534), 0);
    refused(&(struct mx_device_options){.backend = "aio", .path = in_dir("mine")}, -EACCES, "permission");
    cr_assert_eq(seteuid(0), 0);
}

/* ---- block devices with data */

/* A known signature: -EEXIST. With force: it is gone, the device is a store, and the next open needs no
 * force. */
Test(conformance, signatures_are_refused) {
    need_root();
    static const struct {
        const char *command, *word;
    } rows[] = {{"mkfs.ext4 -q -F %s", "ext4"},
                {"printf '\\001CD001\\001' | dd of=%s bs=1 seek=32768 conv=notrunc", "iso9660"},
                {"mkswap %s", "swap"},
                /* one entry: type 0x83, from sector 2048, 8192 sectors; and the boot signature */
                {"{ head -c 446 /dev/zero; printf '\\0\\0\\0\\0\\203\\0\\0\\0\\0\\010\\0\\0\\0\\040\\0\\0'; "
                 "head -c 48 /dev/zero; printf '\\125\\252'; } > %s",
                 "dos partition table"}};
    disk = make_loop("disk", 64 * MIB, 0);
    struct mx_device_options o = {.backend = "aio", .path = disk.path};
    mx_device_close(open_ok(&o)); /* nothing there: taken */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char command[300];
        snprintf(command, sizeof command, rows[i].command, disk.path);
        cr_assert_eq(shell("(%s) >/dev/null 2>&1", command), 0, "%s", command);
        o.force = o.resume = false;
        refused(&o, -EEXIST, rows[i].word);
        o.resume = true;
        refused(&o, -EEXIST, rows[i].word);
        o.resume = false;
        o.force = true;
        mx_device_close(open_ok(&o));
        o.force = false;
        mx_device_close(open_ok(&o));
    }
}

/* Mounted or held: -EBUSY, with force too, and the file system is unharmed. */
Test(conformance, devices_in_use_are_refused) {
    own_mounts();
    mount_loop("fs", "mnt", 32 * MIB);
    for (int force = 0; force < 2; force++)
        refused(&(struct mx_device_options){.backend = "aio", .path = disk.path, .force = force}, -EBUSY,
                "mounted");
    cr_assert_eq(umount(in_dir("mnt")), 0);
    cr_expect_eq(shell("fsck.ext4 -fn %s >/dev/null 2>&1", disk.path), 0);
    int holder = open(disk.path, O_RDWR | O_EXCL | O_CLOEXEC);
    cr_assert_geq(holder, 0);
    refused(&(struct mx_device_options){.backend = "aio", .path = disk.path, .force = true}, -EBUSY, "held");
    close(holder);
}

/* Recorded trees: a disk whose partition is mounted, whose partition is held by dm, and one that is free. */
Test(conformance, partitions_in_use) {
    mx_why why = {""};
    cr_assert_eq(
        shell("cd %s && mkdir -p proc/self sys/dev/block/8:0/sda1 sys/dev/block/8:0/sda2 sys/dev/block/8:1 "
              "sys/dev/block/8:2/holders && touch sys/dev/block/8:0/sda1/partition "
              "sys/dev/block/8:0/sda2/partition && echo 8:1 > sys/dev/block/8:0/sda1/dev && "
              "echo 8:2 > sys/dev/block/8:0/sda2/dev && "
              "echo '22 1 8:1 / /home rw shared:1 - ext4 /dev/sda1 rw' > proc/self/mountinfo",
              dir),
        0);
    cr_expect_eq(mx_check_unused(dir, makedev(8, 0), "/dev/sda", &why), -EBUSY);
    cr_expect_not_null(strstr(why.text, "/home"), "%s", why.text);
    cr_expect_eq(mx_check_unused(dir, makedev(8, 2), "/dev/sda2", &why), 0);
    cr_assert_eq(shell(": > %s/proc/self/mountinfo; mkdir %s/sys/dev/block/8:2/holders/dm-0", dir, dir), 0);
    cr_expect_eq(mx_check_unused(dir, makedev(8, 0), "/dev/sda", &why), -EBUSY);
    cr_expect_not_null(strstr(why.text, "dm-0"), "%s", why.text);
    cr_expect_eq(mx_check_unused(dir, makedev(8, 1), "/dev/sda1", &why), 0);
    /* A line longer than any buffer, whose tail looks like a mount, is one line; a name with a blank is told.
     */
    cr_assert_eq(rmdir(in_dir("sys/dev/block/8:2/holders/dm-0")), 0);
    FILE *mounts = fopen(in_dir("proc/self/mountinfo"), "w");
    fprintf(mounts, "21 1 0:5 / /x rw - overlay none %020000d 22 1 8:1 / /home rw - ext4 /dev/sda1 rw\n", 0);
    fclose(mounts);
    cr_expect_eq(mx_check_unused(dir, makedev(8, 1), "/dev/sda1", &why), 0, "%s", why.text);
    mounts = fopen(in_dir("proc/self/mountinfo"), "w");
    fprintf(mounts, "22 1 8:1 / /my\\040home rw - ext4 /dev/sda1 rw\n");
    fclose(mounts);
    cr_expect_eq(mx_check_unused(dir, makedev(8, 0), "/dev/sda", &why), -EBUSY);
    cr_expect_not_null(strstr(why.text, "/my home"), "%s", why.text);
    struct stat file;
    make_file(in_dir("swap file"), 0);
    FILE *swaps = fopen(in_dir("proc/swaps"), "w");
    fprintf(swaps, "Filename Type Size\n%s/swap\\040file file 1 0 -2\n", dir);
    fclose(swaps);
    cr_assert_eq(stat(in_dir("swap file"), &file), 0);
    cr_expect_eq(mx_check_no_swap_file(dir, &file, "swap file", &why), -EBUSY, "a name with a blank");
}

/* ---- Blocks and budgets */

/* used = sum of live Blocks in pages; peak = its maximum; a Block that does not fit is -ENOMEM and changes
 * nothing. */
Test(conformance, budgets_are_kept) {
    mx_budget *budget = NULL;
    mx_why why = {""};
    cr_assert_eq(mx_budget_create(32 * MIB, 8 * MIB, &why, &budget), 0, "%s", why.text);
    struct mx_block_options o = {.budget = budget, .node_split_bytes = 4096};
    mx_block *a = NULL, *b = NULL, *c = NULL;
    cr_assert_eq(mx_block_create(&o, 16 * MIB, &why, &a), 0);
    o.no_huge = true;
    cr_assert_eq(mx_block_create(&o, 8 * MIB - 5000, &why, &b), 0);
    cr_expect_eq(mx_block_create(&o, 4097, &why, &c), -ENOMEM);
    cr_expect_not_null(strstr(why.text, "32 MiB"), "%s", why.text);
    cr_expect_null(c);
    cr_expect_eq(budget_facts(budget).used_bytes, 24 * MIB - 4096);
    cr_expect_eq((uintptr_t)mx_block_data(a) % (2 * MIB), 0);
    for (uint64_t i = 0; i < 16 * MIB; i += 4096) cr_assert_eq(((char *)mx_block_data(a))[i], 0);
    cr_expect_eq(mx_block_bytes(b), 8 * MIB - 5000);
    mx_block_free(a);
    mx_block_free(b);
    cr_expect_eq(budget_facts(budget).used_bytes, 0);
    cr_expect_eq(budget_facts(budget).peak_bytes, 24 * MIB - 4096);
    mx_budget_free(budget);
    cr_expect_eq(mx_budget_create(UINT64_C(1) << 60, 0, &why, &budget), -EINVAL);
    cr_expect_eq(mx_budget_create(MIB, MIB, &why, &budget), -EINVAL);
    cr_expect_eq(mx_block_create(NULL, 0, &why, &c), -EINVAL);
    mx_block_free(NULL);
    mx_budget_free(NULL);
}

/* Without the right to lock memory: a locked Block is refused with the figures; uring goes on unregistered
 * and says so. */
Test(conformance, limits_on_locked_memory) {
    need_root();
    cr_assert_eq(chmod(dir, 0777), 0);
    struct rlimit low = {64 * KIB, 64 * KIB};
    const uid_t nobodys =
        1 << 30 | (uid_t)getpid(); /* Linux counts a user's locked memory over all processes */
    cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &low), 0);
    cr_assert_eq(setresuid(nobodys, nobodys, 0), 0);
    mx_block *block = NULL;
    mx_why why = {""};
    int err;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    /* Criterion counts a warning as a failure of the whole program: said plainly instead. */
    fprintf(stderr, "note: locked Blocks are not tested: mlock does nothing under a sanitizer\n");
#else
    err = mx_block_create(&(struct mx_block_options){.lock = true}, MIB, &why, &block);
    cr_expect(err == -ENOMEM || err == -EPERM, "%d", err);
    cr_expect_not_null(strstr(why.text, "RLIMIT_MEMLOCK allows 64 KiB"), "%s", why.text);
#endif
    struct mx_device_options o = {.backend = "uring", .path = dir};
    mx_device *device = NULL;
    err = mx_device_open(&o, &why, &device);
    if (err == -EACCES || err == -ENOENT) {
        cr_assert_eq(setresuid(0, 0, 0), 0);
        cr_skip_test("the test's directory cannot be reached without root");
    }
    cr_assert_eq(err, 0, "%s", why.text);
    mx_buffer *buffer = create_ok(device, "b", MIB);
    block = block_ok(device, MIB);
    struct mx_device_facts f = {.size = sizeof f};
    mx_device_facts(device, &f);
    cr_expect_not_null(strstr(f.note, "RLIMIT_MEMLOCK is 64 KiB"), "note: %s", f.note);
    fill_pattern(mx_block_data(block), MIB, 1);
    cr_expect_eq(write_now(buffer, 0, MIB, mx_block_data(block)), 0);
    mx_block_free(block);
    mx_buffer_close(buffer);
    mx_device_close(device);
    cr_assert_eq(setresuid(0, 0, 0), 0);
}

/* A Block of more than 1 GiB is registered in pieces: requests inside a piece and over the border are right.
 */
Test(conformance, a_block_larger_than_a_registration) {
    mx_device *device = open_ok(&(struct mx_device_options){.backend = "uring", .path = dir});
    mx_buffer *buffer = create_ok(device, "b", 8 * MIB);
    const uint64_t border = UINT64_C(1) << 30;
    mx_block *block = block_ok(device, border + 8 * MIB);
    char *over = (char *)mx_block_data(block) + border - 4 * MIB - 4096;
    fill_pattern(over, 8 * MIB, 1);
    cr_assert_eq(write_now(buffer, 0, 8 * MIB, over), 0);
    memset(over, 0, 8 * MIB);
    cr_assert_eq(read_now(buffer, 0, 8 * MIB, mx_block_data(block)), 0);
    fill_pattern(over, 8 * MIB, 1);
    cr_assert_eq(memcmp(over, mx_block_data(block), 8 * MIB), 0);
    mx_block_free(block);
    mx_buffer_close(buffer);
    mx_device_close(device);
}

/* ---- stores that are not as memext makes them */

/* Puts this superblock, with a checksum that fits, into every copy. */
static void put_superblock(const char *path, struct mx_superblock *s, bool seal) {
    int fd = open(path, O_RDWR | O_CLOEXEC), slot = 1;
    cr_assert_geq(fd, 0);
    struct mx_superblock now = *s;
    for (int i = 0; i < 2 && seal; i++) cr_assert_eq(mx_store_commit(fd, s, &now, &slot), 0);
    for (int i = 0; i < 4 && !seal; i++)
        cr_assert_eq(mx_write_all(fd, s, sizeof *s, (off_t)mx_store_offset(i / 2, i % 2)), 0);
    close(fd);
}

/* A store with the Buffers "a" and "b" of 8 MiB and the note "note" in a file; returns its superblock. */
static struct mx_superblock make_store(const char *path) {
    struct mx_device_options o = {.backend = "aio", .path = path, .force = true};
    struct mx_superblock super;
    int slot, fd;
    mx_device *device = open_ok(&o);
    mx_buffer *a = create_ok(device, "a", 8 * MIB), *b = create_ok(device, "b", 8 * MIB);
    cr_assert_eq(mx_device_commit(device, "note", 4), 0);
    mx_buffer_close(a);
    mx_buffer_close(b);
    mx_device_close(device);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert_eq(mx_store_read(fd, &super, &slot), MX_STORE_INTACT);
    close(fd);
    return super;
}

static void look_fails(const char *path, int want, const char *word) {
    static struct mx_store_facts facts = {.size = sizeof facts};
    mx_why why = {""};
    cr_expect_eq(mx_store_look(path, &why, &facts), want, "%s", why.text);
    cr_expect_not_null(strstr(why.text, word), "\"%s\" is not in: %s", word, why.text);
}

/* Of another format: named, never overwritten without force, and gone after that. */
Test(conformance, another_format_is_named) {
    char path[512], note[MX_NOTE_BYTES];
    snprintf(path, sizeof path, "%s", in_dir("a.store"));
    static const uint32_t versions[] = {1, 3, 77};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        struct mx_superblock s = make_store(path);
        char word[32];
        snprintf(word, sizeof word, "format %u", versions[i]);
        s.version = versions[i];
        put_superblock(path, &s, false);
        struct mx_device_options o = {.backend = "aio", .path = path, .resume = true};
        refused(&o, -ENOTSUP, word);
        look_fails(path, -ENOTSUP, word);
        o.resume = false;
        refused(&o, -EEXIST, word);
        o.force = true;
        mx_device_close(open_ok(&o));
        o.force = false;
        cr_expect_eq(note_of(&o, note), 0);
    }
}

/* A store that was cut short, or whose extents are none, is refused: there is nothing to map or read behind
 * its end. */
Test(conformance, extents_are_checked) {
    static const struct {
        const char *word;
        uint32_t n, finished;
        struct mx_extent a, b;
    } rows[] = {
        {"overlap", 2, 0, {"a", 2 * MIB, 8 * MIB}, {"b", 8 * MIB, 8 * MIB}},
        {"overlap", 2, 0, {"a", 4 * MIB, 8 * MIB}, {"b", 2 * MIB, 2 * MIB + 1}},
        {"overlap", 2, 0, {"a", 2 * MIB, 2 * MIB}, {"a", 8 * MIB, 2 * MIB}},
        {"impossible position", 1, 0, {"a", 0, 8 * MIB}, {"", 0, 0}},
        {"impossible position", 1, 0, {"a", 3 * MIB, 8 * MIB}, {"", 0, 0}},
        {"impossible position", 1, 0, {"a", 2 * MIB, 0}, {"", 0, 0}},
        {"cut short", 1, 0, {"a", 2 * MIB, 17 * MIB}, {"", 0, 0}},
        {"cut short", 1, 0, {"a", 2 * MIB, UINT64_MAX - MIB}, {"", 0, 0}},
        {"cut short", 1, 0, {"a", UINT64_MAX - 2 * MIB + 1, 4 * MIB}, {"", 0, 0}},
        {"no valid name", 1, 0, {"", 2 * MIB, MIB}, {"", 0, 0}},
        {"no valid name", 1, 0, {"sixteen letters!", 2 * MIB, MIB}, {"", 0, 0}},
        {"at most 62", 63, 0, {"a", 2 * MIB, MIB}, {"", 0, 0}},
        {"at most 62", UINT32_MAX, 0, {"a", 2 * MIB, MIB}, {"", 0, 0}},
        {"unknown state", 1, 3, {"a", 2 * MIB, MIB}, {"", 0, 0}},
    };
    char path[512];
    snprintf(path, sizeof path, "%s", in_dir("a.store"));
    struct mx_superblock good = make_store(path);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mx_superblock s = good;
        s.n_extents = rows[i].n;
        s.finished = rows[i].finished;
        s.first_extents[0] = rows[i].a;
        s.first_extents[1] = rows[i].b;
        put_superblock(path, &s, true);
        refused(&(struct mx_device_options){.backend = "mmap", .path = path, .resume = true}, -EIO,
                rows[i].word);
        refused(&(struct mx_device_options){.backend = "mmap", .path = path}, -EEXIST, "damaged");
        look_fails(path, -EIO, rows[i].word);
    }
    put_superblock(path, &good, true);
    mx_device_close(open_ok(&(struct mx_device_options){.backend = "mmap", .path = path, .resume = true}));
    cr_assert_eq(truncate(path, 16 * MIB), 0);
    refused(&(struct mx_device_options){.backend = "mmap", .path = path, .resume = true}, -EIO, "cut short");
    refused(&(struct mx_device_options){.backend = "mmap", .path = path}, -EEXIST, "damaged");
    look_fails(path, -EIO, "cut short");
    cr_assert_eq(truncate(path, 30000), 0);
    refused(&(struct mx_device_options){.backend = "mmap", .path = path, .resume = true}, -EIO, "");
}

/* A new store on an old one: nothing of the old one is found any more, though neither of its slots is wiped;
 * also when the first commit of the new one is torn. generation(new) > generation(any slot of the old). */
Test(conformance, a_new_store_outranks_the_old_slots) {
    char path[512], note[MX_NOTE_BYTES];
    snprintf(path, sizeof path, "%s", in_dir("a.store"));
    struct mx_device_options o = {.backend = "aio", .path = path};
    for (int commits = 1; commits <= 4; commits++) {
        struct mx_superblock old = make_store(path), now;
        int slot = -1;
        o.force = true;
        mx_device *device = open_ok(&o);
        for (int i = 1; i < commits; i++) cr_assert_eq(mx_device_commit(device, "new", 3), 0);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        cr_assert_eq(mx_store_read(fd, &now, &slot), MX_STORE_INTACT);
        cr_expect_gt(now.generation, old.generation);
        mx_device_close(device);
        o.force = false;
        cr_expect_eq(note_of(&o, note), commits > 1 ? 3 : 0);
        /* torn: the slot of the newest holds nothing that is intact */
        if (commits > 1) {
            for (int copy = 0; copy < 2; copy++) damage(path, in_slot(slot, copy, 40));
            cr_expect_eq(note_of(&o, note), commits > 2 ? 3 : 0, "the old run is found again");
        }
        close(fd);
    }
}

/* ---- failures that stay */

static struct mx_sys sick = {NULL};
static atomic_int sick_calls; /* that still fail; several threads call */

static int sick_fdatasync(int fd) { return sick_calls-- > 0 ? -EIO : mx_sys_kernel.fdatasync(fd); }

static int sick_msync(void *base, size_t bytes, int flags) {
    return sick_calls-- > 0 ? -ENOSPC : mx_sys_kernel.msync(base, bytes, flags);
}

static int sick_sync_file_range(int fd, off_t at, off_t bytes, unsigned flags) {
    return sick_calls-- > 0 ? -EIO : mx_sys_kernel.sync_file_range(fd, at, bytes, flags);
}

static ssize_t sick_pwrite(int fd, const void *from, size_t bytes, off_t at) {
    return sick_calls-- > 0 ? -EDQUOT : mx_sys_kernel.pwrite(fd, from, bytes, at);
}

static void be_sick(int calls) {
    sick_calls = calls;
    mx_sys = &sick;
}

/* One call fails, the later ones do not: the commit is refused, and so is every later one; a sentence is
 * there. The note that was committed before is the newest. */
static void stays_failed(mx_device *device, int want, const char *what) {
    mx_why why = {""};
    cr_expect_eq(mx_device_commit(device, "after", 5), want, "%s", what);
    cr_expect_leq(sick_calls, 0, "%s: nothing failed", what);
    cr_expect_eq(mx_device_commit(device, "after", 5), want, "%s", what);
    cr_expect_eq(mx_device_flush(device), want, "%s", what);
    cr_expect_eq(mx_device_finish(device), want, "%s", what);
    cr_expect_eq(mx_device_error(device, &why), want, "%s", what);
    cr_expect_not_null(strstr(why.text, "nothing more is committed"), "%s: %s", what, why.text);
    mx_sys = &mx_sys_kernel;
}

Test(conformance, failed_flushes_are_final) {
    static const struct {
        const char *what, *backend;
        int want;
    } rows[] = {{"fdatasync", "aio", -EIO},  {"fdatasync", "uring", -EIO}, {"fdatasync", "fault:uring", -EIO},
                {"fdatasync", "mmap", -EIO}, {"msync", "mmap", -ENOSPC},   {"drop", "mmap", -EIO},
                {"pwrite", "aio", -EDQUOT},  {"pwrite", "mmap", -EDQUOT}};
    char path[512], note[MX_NOTE_BYTES];
    snprintf(path, sizeof path, "%s", in_dir("a.store"));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mx_device_options o = {.backend = rows[i].backend, .path = path, .force = true};
        mx_device *device = open_ok(&o);
        mx_buffer *buffer = create_ok(device, "b", 64 * MIB);
        cr_assert_eq(mx_device_error(device, NULL), 0);
        cr_assert_eq(mx_device_commit(device, "before", 6), 0);
        sick = mx_sys_kernel;
        if (strcmp(rows[i].what, "fdatasync") == 0) sick.fdatasync = sick_fdatasync;
        if (strcmp(rows[i].what, "msync") == 0) sick.msync = sick_msync;
        if (strcmp(rows[i].what, "drop") == 0) sick.sync_file_range = sick_sync_file_range;
        if (strcmp(rows[i].what, "pwrite") == 0) sick.pwrite = sick_pwrite;
        be_sick(1);
        if (strcmp(rows[i].what, "drop") == 0) {
            int err = 0;
            for (uint64_t at = 0; at < 64 * MIB; at += 4 * MIB) {
                int result = mx_buffer_advise(buffer, at, 4 * MIB, MX_ADVICE_DROP);
                if (result != 0) err = result;
            }
            cr_expect_eq(err, -EIO, "the hint tells of it");
        }
        stays_failed(device, rows[i].want, rows[i].what);
        mx_buffer_close(buffer);
        mx_device_close(device);
        o.force = false;
        cr_expect_eq(note_of(&o, note), 6, "%s", rows[i].what);
    }
}

static atomic_int waits; /* for stable storage */

static int waiting_fsync(int fd) {
    waits++;
    return mx_sys_kernel.fsync(fd);
}
static int waiting_fdatasync(int fd) {
    waits++;
    return mx_sys_kernel.fdatasync(fd);
}
static ssize_t waiting_pwrite(int fd, const void *from, size_t bytes, off_t at) {
    waits += (fcntl(fd, F_GETFL) & O_DSYNC) != 0;
    return mx_sys_kernel.pwrite(fd, from, bytes, at);
}

static int waits_since(int *before) {
    const int n = waits - *before;
    *before += n;
    return n;
}

/* Until something is committed nothing but the store itself and its name is waited for: Buffers are told of
 * by the first commit, or flush, or when a store that stays is closed. A store that is removed when it is
 * closed does not wait until it says for good that its run is done. */
Test(conformance, new_stores_wait_for_few_flushes) {
    char path[512];
    snprintf(path, sizeof path, "%s", in_dir("a.store"));
    for (int directory = 0; directory < 2; directory++) {
        struct mx_device_options o = {.backend = "uring", .path = directory ? dir : path};
        struct mx_store_facts look = {.size = sizeof look};
        mx_buffer *buffer[3];
        int before = waits;
        sick = mx_sys_kernel;
        sick.fsync = waiting_fsync, sick.fdatasync = waiting_fdatasync, sick.pwrite = waiting_pwrite;
        be_sick(0);
        mx_device *device = open_ok(&o);
        cr_expect_eq(waits_since(&before), 2, "a superblock and a name");
        buffer[0] = create_ok(device, "a", MIB);
        buffer[1] = create_ok(device, "b", MIB);
        cr_expect_eq(waits_since(&before), 0);
        if (!directory) {
            cr_expect_eq(mx_device_flush(device), 0);
            cr_expect_eq(waits_since(&before), 2, "data, then the superblock that tells of them");
            cr_expect(mx_store_look(path, NULL, &look) == 0 && look.n_extents == 2);
        }
        buffer[2] = create_ok(device, "c", MIB);
        for (int i = 0; i < 2; i++) {
            cr_expect_eq(mx_device_commit(device, "x", 1), 0);
            cr_expect_eq(waits_since(&before), 2);
        }
        cr_expect_eq(mx_device_finish(device), 0);
        cr_expect_eq(waits_since(&before), directory ? 0 : 2);
        for (int i = 0; i < 3; i++) mx_buffer_close(buffer[i]);
        mx_device_close(device);
        mx_sys = &mx_sys_kernel;
        if (!directory) cr_expect(mx_store_look(path, NULL, &look) == 0 && look.n_extents == 3);
    }
}

/* With advice SCHEDULE written ranges are dropped by the queue: the error reaches a ticket, and the device.
 */
Test(conformance, what_dropping_loses_reaches_the_ticket) {
    struct mx_device_options o = {.backend = "mmap", .path = dir, .advice = MX_ADVICE_SCHEDULE};
    mx_device *device = open_ok(&o);
    mx_buffer *buffer = create_ok(device, "b", 64 * MIB);
    mx_block *block = block_ok(device, 64 * MIB);
    sick = mx_sys_kernel;
    sick.sync_file_range = sick_sync_file_range;
    be_sick(1);
    cr_expect_eq(write_now(buffer, 0, 64 * MIB, mx_block_data(block)), -EIO);
    cr_expect_eq(write_now(buffer, 0, 64 * MIB, mx_block_data(block)), 0, "the next ticket is another's");
    stays_failed(device, -EIO, "drop");
    mx_block_free(block);
    mx_buffer_close(buffer);
    mx_device_close(device);
}

/* What was stored through a mapping is written back while something is read: no ticket is to blame, but
 * nothing is committed after it. */
Test(conformance, what_dropping_loses_while_reading_is_remembered) {
    struct mx_device_options o = {.backend = "mmap", .path = dir, .advice = MX_ADVICE_SCHEDULE};
    mx_device *device = open_ok(&o);
    mx_buffer *buffer = create_ok(device, "b", 64 * MIB);
    mx_block *block = block_ok(device, 64 * MIB);
    void *map = NULL;
    cr_assert_eq(mx_buffer_map(buffer, NULL, &map), 0);
    fill_pattern(map, 64 * MIB, 1);
    sick = mx_sys_kernel;
    sick.sync_file_range = sick_sync_file_range;
    be_sick(1);
    cr_expect_eq(read_now(buffer, 0, 64 * MIB, mx_block_data(block)), 0);
    stays_failed(device, -EIO, "drop");
    mx_block_free(block);
    mx_buffer_close(buffer);
    mx_device_close(device);
}

/* A failed write: its ticket has the error, and no commit follows; a failed read alone harms nothing. */
Test(conformance, failed_writes_are_final) {
    static const char *const backends[] = {"fault:aio", "fault:uring", "fault:mmap"};
    for (int write = 0; write < 2; write++)
        for (size_t i = 0; i < 3; i++) {
            struct mx_device_options o = {
                .backend = backends[i], .path = dir, .force = true, .fault = write ? "fail=1" : "fail=2"};
            mx_device *device = open_ok(&o);
            mx_buffer *buffer = create_ok(device, "b", MIB);
            mx_block *block = block_ok(device, MIB);
            cr_expect_eq(write_now(buffer, 0, 64 * KIB, mx_block_data(block)), write ? -EIO : 0, "%s",
                         backends[i]);
            cr_expect_eq(read_now(buffer, 0, 64 * KIB, mx_block_data(block)), write ? 0 : -EIO, "%s",
                         backends[i]);
            cr_expect_eq(write_now(buffer, 0, 64 * KIB, mx_block_data(block)), 0);
            sick_calls = 0;
            if (write)
                stays_failed(device, -EIO, backends[i]);
            else
                cr_expect_eq(mx_device_commit(device, "note", 4), 0);
            mx_block_free(block);
            mx_buffer_close(buffer);
            mx_device_close(device);
        }
}

/* Every single failing call of a small run: an error is told, or all is as if nothing had failed; no
 * descriptor stays open; what was committed is there; and the place can be used again. */
static int count_fds(void) {
    int n = 0;
    DIR *list = opendir("/proc/self/fd");
    while (readdir(list) != NULL) n++;
    closedir(list);
    return n;
}

enum { REACHED_NOTHING, REACHED_WRITE, REACHED_COMMIT, REACHED_FINISH };

/* Returns the first error; *reached says how far it came. */
static int small_run(const struct mx_device_options *o, int *reached) {
    mx_device *device = NULL;
    mx_buffer *buffer = NULL;
    mx_block *block = NULL;
    mx_why why = {""};
    *reached = REACHED_NOTHING;
    int err = mx_device_open(o, &why, &device);
    if (err != 0) {
        cr_expect_neq(why.text[0], 0, "no sentence for %d", err);
        return err;
    }
    err = mx_buffer_create(device, "b", MIB, &why, &buffer);
    if (err == 0) err = mx_block_create(&(struct mx_block_options){.device = device}, MIB, &why, &block);
    if (err == 0) fill_pattern(mx_block_data(block), MIB, 5);
    if (err == 0) err = write_now(buffer, 0, MIB, mx_block_data(block));
    if (err == 0) *reached = REACHED_WRITE;
    if (err == 0) err = mx_device_commit(device, "first", 5);
    if (err == 0) *reached = REACHED_COMMIT;
    if (err == 0) err = mx_device_finish(device);
    if (err == 0) *reached = REACHED_FINISH;
    mx_block_free(block);
    mx_buffer_close(buffer);
    mx_device_close(device);
    return err;
}

static void check_after(const struct mx_device_options *options, int reached, uint64_t call) {
    struct mx_device_options o = *options;
    char note[MX_NOTE_BYTES];
    if (reached >= REACHED_COMMIT) {
        o.backend = "aio";
        o.force = false;
        cr_expect_eq(note_of(&o, note), 5, "%s: call %llu", options->backend, (unsigned long long)call);
        o.resume = true;
        mx_device *device = open_ok(&o);
        mx_buffer *buffer = NULL;
        cr_assert_eq(mx_buffer_open(device, "b", NULL, &buffer), 0);
        mx_block *block = block_ok(device, 2 * MIB);
        char *want = mx_block_data(block), *got = want + MIB;
        fill_pattern(want, MIB, 5);
        cr_assert_eq(read_now(buffer, 0, MIB, got), 0);
        cr_expect_eq(memcmp(want, got, MIB), 0, "%s: call %llu", options->backend, (unsigned long long)call);
        mx_block_free(block);
        mx_buffer_close(buffer);
        mx_device_close(device);
    }
}

/* False if the run had fewer calls than that. */
static bool call_fails(const struct mx_device_options *o, uint64_t call, bool fresh, int *errors) {
    char spec[64];
    int before = count_fds(), reached;
    snprintf(spec, sizeof spec, "call=%llu,errno=%d", (unsigned long long)call, call % 2 ? EIO : ENOSPC);
    if (fresh) unlink(in_dir("memext.store"));
    cr_assert_eq(mx_fault_calls(spec, NULL), 0);
    int err = small_run(o, &reached);
    uint64_t made = mx_fault_calls_made();
    cr_assert_eq(mx_fault_calls(NULL, NULL), 0);
    *errors += err != 0;
    cr_expect_eq(count_fds(), before, "%s: call %llu leaves descriptors", o->backend,
                 (unsigned long long)call);
    check_after(o, reached, call);
    return made >= call;
}

Test(conformance, every_call_fails_once, .timeout = 900) {
    static const char *const backends[] = {"aio", "uring", "mmap", "fault:aio"};
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        struct mx_device_options o = {.backend = backends[i],
                                      .path = dir,
                                      .keep = true,
                                      .force = true,
                                      .fault = strcmp(backends[i], "fault:aio") == 0 ? "sys=1" : NULL};
        int before = count_fds(), errors = 0, reached;
        cr_assert_eq(small_run(&o, &reached), 0); /* the last one there: the store is there and overwritten */
        for (int fresh = 0; fresh < 2; fresh++)
            for (uint64_t call = 1; call_fails(&o, call, fresh, &errors); call += (uint64_t)mx_case_step())
                cr_assert_lt(call, 1000);
        cr_expect_eq(count_fds(), before);
        cr_expect_gt(errors, 10 / mx_case_step(), "%s: only %d errors", backends[i], errors);
        cr_expect_eq(mx_sys, &mx_sys_kernel);
    }
}

/* ---- signals */

static void nothing(int signal) { (void)signal; }

/* Every call is interrupted more often than not, and signals come every 200 us: the run is as good as any. */
Test(conformance, interruptions_do_no_harm) {
    static const char *const backends[] = {"aio", "uring", "mmap", "fault:mmap", "fault:aio"};
    struct sigaction action = {.sa_handler = nothing}; /* no SA_RESTART */
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        struct mx_device_options o = {.backend = backends[i],
                                      .path = dir,
                                      .keep = true,
                                      .force = true,
                                      .fault = strncmp(backends[i], "fault", 5) == 0 ? "sys=1" : NULL};
        int reached;
        for (int round = 0; round < 5; round++) {
            cr_assert_eq(mx_fault_calls("eintr=0.7,seed=3", NULL), 0);
            setitimer(ITIMER_REAL, &often, NULL);
            int err = small_run(&o, &reached);
            setitimer(ITIMER_REAL, &never, NULL);
            cr_assert_gt(mx_fault_calls_made(), 0);
            cr_assert_eq(mx_fault_calls(NULL, NULL), 0);
            cr_assert_eq(err, 0, "%s: %d", backends[i], err);
            check_after(&o, reached, 0);
        }
    }
}

/* What SigBlk of a thread of this process says now. */
static unsigned long long blocked_now(int thread) {
    char path[64], line[256];
    unsigned long long blocked = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "SigBlk: %llx", &blocked) == 1) break;
    if (file != NULL) fclose(file);
    return blocked;
}

/* The same once the thread has set its mask: a thread that only begins still has that of who started it. */
static unsigned long long blocked_in(int thread, unsigned long long all, unsigned long long expected) {
    unsigned long long blocked = 0;
    for (int looks = 0; looks < 300000; looks++) { /* minutes */
        blocked = blocked_now(thread) & all;
        if (blocked == expected) break;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return blocked;
}

static int list_threads(int *threads, int most) {
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    for (struct dirent *task; n < most && (task = readdir(tasks)) != NULL;)
        if (task->d_name[0] != '.') threads[n++] = atoi(task->d_name);
    closedir(tasks);
    return n;
}

/* All threads that a device starts block all signals but those of their own instructions. */
Test(conformance, threads_block_signals) {
#if defined(__SANITIZE_THREAD__)
    cr_skip_test("the thread sanitizer starts a thread of its own, with other signals");
#endif
    enum { MOST = 64 };
    int before[MOST], after[MOST], n_before = list_threads(before, MOST), checked = 0;
    struct bench b = open_bench(&(struct target){.backend = "mmap", .where = IN_FILE});
    int n_after = list_threads(after, MOST);
    static const int raised[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    unsigned long long own = 0, all = 0;
    for (size_t i = 0; i < sizeof raised / sizeof raised[0]; i++) own |= 1ull << (raised[i] - 1);
    for (int s = 1; s < 32; s++)
        if (s != SIGKILL && s != SIGSTOP) all |= 1ull << (s - 1);
    for (int i = 0; i < n_after; i++) {
        bool old = false;
        for (int k = 0; k < n_before; k++) old |= before[k] == after[i];
        if (old) continue;
        unsigned long long blocked = blocked_in(after[i], all, all & ~own);
        cr_expect_eq(blocked, all & ~own, "%llx", blocked);
        checked++;
    }
    cr_expect_eq(checked, 3);
    close_bench(&b);
}

/* ---- tickets end after the last byte */

struct late {
    pthread_t writer;
    char *dram;
    atomic_bool go, drained;
};

static void *write_late(void *argument) {
    struct late *l = argument;
    while (!atomic_load(&l->go)) sched_yield();
    for (int i = 0; i < 1000; i++) {
        for (int k = 0; k < 16384; k += 64) ((volatile char *)l->dram)[k] = (char)i;
        sched_yield();
    }
    return NULL;
}

static int late_submit(void *state, const struct mx_request *requests, unsigned n) {
    struct late *l = state;
    l->dram = requests[0].dram;
    atomic_store(&l->go, true);
    return (int)n;
}

static int late_reap(void *state, unsigned min, unsigned max, struct mx_completion *out) {
    (void)state, (void)min, (void)max, (void)out;
    return -EBADF;
}

static int late_drain(void *state) {
    struct late *l = state;
    pthread_join(l->writer, NULL);
    atomic_store(&l->drained, true);
    return 0;
}

/* The backend cannot be reaped, but its requests go on writing to DRAM: when the ticket ends, with the error,
 * they have ended. */
Test(conformance, tickets_end_when_their_dram_is_left_alone) {
    static const struct mx_backend backend = {.name = "late",
                                              .face = MX_FACE_TRANSFER,
                                              .submit = late_submit,
                                              .reap = late_reap,
                                              .drain = late_drain};
    static char dram[64 * KIB];
    struct late l = {.dram = NULL};
    cr_assert_eq(pthread_create(&l.writer, NULL, write_late, &l), 0);
    struct mx_queue_setup setup = {
        .backend = &backend, .state = &l, .depth = 8, .max_request_bytes = 16384, .align_bytes = 512};
    struct mx_queue *queue = NULL;
    mx_ticket *ticket = NULL;
    cr_assert_eq(mx_queue_create(&setup, NULL, &queue), 0);
    cr_assert_eq(mx_queue_post(queue, false, &(struct mx_span){0, 16384, dram}, 1, 0, NULL, &ticket), 0);
    cr_expect_eq(mx_wait(ticket), -EBADF);
    cr_expect(atomic_load(&l.drained), "the ticket ended first");
    memset(dram, 77, sizeof dram);
    cr_expect_eq(mx_queue_post(queue, false, &(struct mx_span){0, 16384, dram}, 1, 0, NULL, &ticket), 0);
    cr_expect_eq(mx_wait(ticket), -EBADF);
    for (size_t i = 0; i < sizeof dram; i++) cr_assert_eq(dram[i], 77);
    mx_queue_free(queue);
}

/* aio and uring with requests under way, drained: afterwards nothing changes DRAM. */
Test(conformance, backends_are_drained) {
    enum { DEPTH = 32, BYTES = 1 << 20 };
    static const char *const backends[] = {"aio", "uring"};
    const char *path = in_dir("raw");
    make_file(path, (uint64_t)DEPTH * BYTES);
    for (size_t b = 0; b < 2; b++) {
        const struct mx_backend *backend = mx_backend_find(backends[b]);
        struct mx_device_options o = {.backend = backends[b], .queue_depth = DEPTH, .no_register = true};
        struct mx_storage facts;
        int fd = open(path, O_RDWR | O_CLOEXEC);
        cr_assert_eq(mx_storage_facts(fd, NULL, &facts), 0);
        struct mx_place place = {
            fd, path, false, (uint64_t)DEPTH * BYTES, facts.direct_offset_align_bytes, 4096, 4096, &o, false};
        struct mx_backend_facts backend_facts = {0};
        struct mx_request requests[DEPTH];
        void *state = NULL;
        cr_assert_eq(backend->open(&place, NULL, &backend_facts, &state), 0);
        char *dram = aligned_alloc(4096, (size_t)DEPTH * BYTES);
        memset(dram, 1, (size_t)DEPTH * BYTES);
        for (unsigned i = 0; i < DEPTH; i++)
            requests[i] = (struct mx_request){(uint64_t)i * BYTES, BYTES, false, dram + (size_t)i * BYTES, i};
        cr_assert_gt(backend->submit(state, requests, DEPTH), 0);
        cr_assert_eq(backend->drain(state), 0);
        memset(dram, 2, (size_t)DEPTH * BYTES);
        backend->close(state);
        for (size_t i = 0; i < (size_t)DEPTH * BYTES; i++) cr_assert_eq(dram[i], 2, "%s", backends[b]);
        free(dram);
        close(fd);
    }
}

/* ---- whose file is it, and which */

/* Links to files, files with two names, files of other users: refused, and not changed. Directories and block
 * devices may be links. */
Test(conformance, links_are_not_followed) {
    char path[512], text[64] = "somebody's thesis", back[64] = "";
    snprintf(path, sizeof path, "%s", in_dir("thesis"));
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    cr_assert_eq(symlink("thesis", in_dir("link")), 0);
    cr_assert_eq(symlink("nothing", in_dir("dangling")), 0);
    cr_assert_eq(mkdir(in_dir("d"), 0777), 0);
    cr_assert_eq(symlink("../thesis", in_dir("d/memext.store")), 0);
    cr_assert_eq(symlink(".", in_dir("here")), 0);
    for (int force = 0; force < 2; force++) {
        struct mx_device_options o = {.backend = "mmap", .force = force};
        static const char *const links[] = {"link", "dangling", "d"};
        for (size_t i = 0; i < 3; i++) {
            o.path = in_dir(links[i]);
            refused(&o, -ELOOP, "symbolic link");
        }
        cr_assert_eq(link(path, in_dir("second")), 0);
        o.path = in_dir("second");
        refused(&o, -EMLINK, "2 names");
        cr_assert_eq(unlink(in_dir("second")), 0);
    }
    look_fails(in_dir("link"), -ELOOP, "symbolic link");
    cr_expect_neq(access(in_dir("nothing"), F_OK), 0);
    file = fopen(path, "r");
    cr_assert_not_null(fgets(back, sizeof back, file));
    fclose(file);
    cr_expect_str_eq(text, back);
    mx_device_close(open_ok(&(struct mx_device_options){.backend = "mmap", .path = in_dir("here")}));
    if (!have_disk()) return;
    cr_assert_eq(symlink(disk.path, in_dir("disk-by-id")), 0);
    mx_device_close(open_ok(&(struct mx_device_options){.backend = "aio", .path = in_dir("disk-by-id")}));
}

Test(conformance, files_of_others_are_refused) {
    need_root();
    char path[512];
    snprintf(path, sizeof path, "%s", in_dir("memext.store"));
    make_store(path);
    cr_assert_eq(chown(path, 65534, 65534), 0);
    struct mx_device_options o = {.backend = "aio", .path = dir};
    refused(&o, -EPERM, "belongs to user 65534");
    o.resume = true;
    refused(&o, -EPERM, "belongs to user 65534");
    o.resume = false;
    o.force = true;
    mx_device_close(open_ok(&o));
}

/* The file was replaced by another one under its name while it was open: that one is nobody's to remove. */
Test(conformance, only_the_own_file_is_removed) {
    struct mx_device_options o = {.backend = "mmap", .path = dir};
    for (int abandoned = 0; abandoned < 2; abandoned++) {
        mx_device *device = open_ok(&o);
        cr_assert_eq(rename(in_dir("memext.store"), in_dir("moved")), 0);
        make_file(in_dir("memext.store"), 100);
        if (abandoned) mx_device_abandon(device);
        mx_device_close(device);
        cr_expect_eq(access(in_dir("memext.store"), F_OK), 0);
        cr_expect_eq(access(in_dir("moved"), F_OK), 0);
        unlink(in_dir("memext.store"));
    }
    mx_device *device = open_ok(&o);
    mx_device_abandon(device);
    cr_expect_neq(access(in_dir("memext.store"), F_OK), 0, "nothing in it is worth keeping");
    mx_device_close(device);
    device = open_ok(&o);
    cr_assert_eq(mx_device_commit(device, "note", 4), 0);
    mx_device_abandon(device);
    cr_expect_eq(access(in_dir("memext.store"), F_OK), 0, "a run that can be resumed");
    mx_device_close(device);
    mx_device_abandon(NULL);
}

struct opener {
    struct mx_device_options options;
    mx_device *device;
    int err;
    atomic_bool done;
};

static void *open_device(void *argument) {
    struct opener *o = argument;
    /* Whoever looks whether it has the lock may hold it for a moment. */
    do o->err = mx_device_open(&o->options, NULL, &o->device);
    while (o->err == -EBUSY);
    atomic_store(&o->done, true);
    return NULL;
}

/* A descriptor that requests go through outlives its process: who opens the store next waits until it is
 * gone. */
Test(conformance, requests_of_the_dead_are_waited_for) {
    char path[512];
    snprintf(path, sizeof path, "%s", in_dir("a.store"));
    make_file(path, 0);
    int fd = open(path, O_RDWR | O_CLOEXEC), probe = open(path, O_RDWR | O_CLOEXEC);
    struct mx_place place = {.fd = fd, .path = path};
    int again = mx_place_reopen(&place, 0);
    cr_assert_geq(again, 0);
    struct opener o = {.options = {.backend = "aio", .path = path}};
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, open_device, &o), 0);
    /* It has the lock that keeps others out, so that waiting is next. */
    while (flock(probe, LOCK_SH | LOCK_NB) == 0) {
        flock(probe, LOCK_UN);
        sched_yield();
    }
    /* Without the wait it would be open after a few milliseconds. */
    for (int i = 0; i < 300 && !atomic_load(&o.done); i++) usleep(1000);
    cr_expect(!atomic_load(&o.done), "opened while requests are under way");
    close(again);
    pthread_join(thread, NULL);
    cr_assert_eq(o.err, 0);
    mx_device_close(o.device);
    close(probe);
    close(fd);
}

/* ---- a look from outside */

Test(conformance, looking_at_a_store) {
    static struct mx_store_facts f = {.size = sizeof f};
    mx_why why = {""};
    look_fails(dir, -ENOENT, "memext.store");
    look_fails("/dev/null", -ENOTBLK, "not storage");
    make_file(in_dir("empty"), 0);
    look_fails(in_dir("empty"), -ENOENT, "no memext store");
    for (int on_disk = 0; on_disk < 2; on_disk++) {
        if (on_disk && !have_disk()) continue;
        struct mx_device_options o = {
            .backend = "uring", .path = on_disk ? disk.path : dir, .keep = true, .force = true};
        mx_device *device = open_ok(&o);
        mx_buffer *a = create_ok(device, "a", 100), *b = create_ok(device, "b", 3 * MIB);
        cr_assert_eq(mx_device_commit(device, "a note", 6), 0);
        cr_assert_eq(mx_store_look(o.path, &why, &f), 0, "%s", why.text);
        cr_expect(f.in_use && f.finished == 0 && f.block_device == (on_disk == 1));
        uint64_t generation = f.generation;
        cr_assert_eq(mx_device_finish(device), 0);
        mx_buffer_close(a);
        mx_buffer_close(b);
        mx_device_close(device);
        cr_assert_eq(mx_store_look(o.path, &why, &f), 0, "%s", why.text);
        cr_expect(!f.in_use && f.finished == 2 && f.generation > generation);
        cr_expect_str_eq(f.note, "a note");
        cr_expect_eq(f.note_bytes, 6);
        cr_expect_eq(f.n_extents, 2);
        cr_expect_str_eq(f.extents[1].name, "b");
        cr_expect_eq(f.extents[1].offset_bytes, 4 * MIB);
        cr_expect_eq(f.extents[1].bytes, 3 * MIB);
        cr_expect_geq(f.file_bytes, 7 * MIB);
        cr_expect_str_eq(f.place, on_disk ? disk.path : in_dir("memext.store"));
    }
}

/* A store has as many Buffers as a superblock has room for, and programs that were built when there was room
 * for 32 get the first 32 of them, and nothing behind. */
Test(conformance, as_many_buffers_as_there_may_be) {
    enum { BEFORE = 32 };
    struct {
        struct mx_store_facts facts;
        char behind[64];
    } f = {.facts.size = sizeof f.facts};
    const struct mx_device_options o = {.backend = "uring", .path = dir, .keep = true, .force = true};
    mx_buffer *buffer[MX_STORE_EXTENTS], *more;
    mx_device *device = open_ok(&o);
    char name[24];
    mx_why why = {""};
    for (int i = 0; i < MX_STORE_EXTENTS; i++) {
        snprintf(name, sizeof name, "number-%d", i);
        buffer[i] = create_ok(device, name, 100);
    }
    cr_expect_eq(mx_buffer_create(device, "one-more", 100, &why, &more), -ENOSPC);
    cr_assert_eq(mx_device_commit(device, "a note", 6), 0);
    for (int i = 0; i < MX_STORE_EXTENTS; i++) mx_buffer_close(buffer[i]);
    mx_device_close(device);
    cr_assert_eq(mx_store_look(dir, &why, &f.facts), 0, "%s", why.text);
    cr_expect_eq(f.facts.n_extents, MX_STORE_EXTENTS);
    for (int i = 0; i < MX_STORE_EXTENTS; i++) {
        snprintf(name, sizeof name, "number-%d", i);
        cr_expect_str_eq(f.facts.extents[i].name, name);
    }
    const struct mx_device_options again = {.backend = "aio", .path = dir, .resume = true};
    device = open_ok(&again);
    cr_assert_eq(mx_buffer_open(device, "number-61", &why, &more), 0, "%s", why.text);
    mx_buffer_close(more);
    mx_device_close(device);
    memset(&f, 0x55, sizeof f);
    f.facts.size = offsetof(struct mx_store_facts, extents) + BEFORE * sizeof f.facts.extents[0];
    cr_assert_eq(mx_store_look(dir, &why, &f.facts), 0, "%s", why.text);
    cr_expect_eq(f.facts.n_extents, BEFORE);
    cr_expect_str_eq(f.facts.extents[BEFORE - 1].name, "number-31");
    for (const char *c = (char *)&f.facts.extents[BEFORE]; c < (char *)(&f + 1); c++) cr_assert_eq(*c, 0x55);
}
