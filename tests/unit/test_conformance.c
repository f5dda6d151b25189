/* test_conformance - one suite over all backends and kinds of places: what was written is what is read, every
 * request completes once, errors are told, commits survive, and nobody's data is overwritten. */
#include "conformance.h"
#include "core/queue.h"
#include "core/safety.h"
#include "core/store.h"
#include "machine/machine.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>

static struct loop disk = {-1, ""}; /* of the running test */

static void tear_down(void) {
    if (disk.fd >= 0) close(disk.fd);
    disk.fd = -1;
    remove_dir();
}

TestSuite(conformance, .init = make_dir, .fini = tear_down, .timeout = 120);

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

static const struct target targets[] = {
    {.backend = "dram"},
    {.backend = "mmap", .where = IN_DIRECTORY},
    {.backend = "mmap", .where = IN_FILE, .advice = MX_ADVICE_SCHEDULE},
    {.backend = "mmap", .where = ON_DISK, .advice = MX_ADVICE_SEQUENTIAL},
    {.backend = "mmap", .where = IN_FILE, .advice = MX_ADVICE_RANDOM},
    {.backend = "mmap", .where = IN_FILE, .advice = MX_ADVICE_WILLNEED},
    {.backend = "mmap", .where = IN_FILE, .advice = MX_ADVICE_HUGEPAGE},
    {.backend = "aio", .where = IN_DIRECTORY},
    {.backend = "aio", .where = IN_FILE},
    {.backend = "aio", .where = ON_DISK},
    {.backend = "uring", .where = IN_DIRECTORY},
    {.backend = "uring", .where = IN_FILE, .no_register = true},
    {.backend = "uring", .where = ON_DISK},
    {.backend = "uring", .where = IN_FILE, .sqpoll = true},
    {.backend = "uring", .where = IN_FILE, .iopoll = true},
    {.backend = "uring", .where = IN_FILE, .uncached = true},
    {.backend = "uring", .where = ON_DISK, .uncached = true},
    {.backend = "fault:dram", .fault = TROUBLE},
    {.backend = "fault:mmap", .where = IN_FILE, .fault = TROUBLE},
    {.backend = "fault:aio", .where = IN_FILE, .fault = TROUBLE},
    {.backend = "fault:uring", .where = IN_DIRECTORY, .fault = TROUBLE},
    {.backend = "fault:aio", .where = IN_FILE, .fault = TROUBLE ",sys=1"},
    {.backend = "fault:mmap", .where = ON_DISK, .fault = TROUBLE ",sys=1"},
};
enum { N_TARGETS = sizeof targets / sizeof targets[0] };

static bool have_disk(void) {
    if (disk.fd < 0 && geteuid() == 0) disk = make_loop("disk", 64 * MIB, 0);
    if (disk.fd < 0) cr_log_warn("skipped on a block device: needs root for a loop device");
    return disk.fd >= 0;
}

static struct mx_device_options options_of(const struct target *t) {
    const char *path = t->where == IN_DIRECTORY ? dir
                       : t->where == IN_FILE    ? in_dir("store")
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
    struct mx_counters before, after;
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
    for (unsigned i = 0; i < N_TARGETS; i++) {
        if (targets[i].where == ON_DISK && !have_disk()) continue;
        struct bench b = open_bench(&targets[i]);
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
            run_case(&b, &cases[c], targets[i].backend);
        close_bench(&b);
    }
}

/* Tickets over disjoint random ranges, waited for in another order: the Buffer is the shadow afterwards, and
 * 1 <= peak_in_flight <= queue depth (transfer face) or pieces of a batch times workers (mapped face). */
Test(conformance, many_tickets_in_any_order) {
    enum { TICKETS = 60, RANGE = BUFFER_UNITS / TICKETS };
    for (unsigned i = 0; i < N_TARGETS; i++) {
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
        struct mx_counters c;
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
    for (unsigned i = 0; i < N_TARGETS; i++) {
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

/* ---- the raw face: every taken request has exactly one completion, a refused one none */

extern const struct mx_backend mx_skeleton;

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
                             &options};
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
    while (reaped < REQUESTS) {
        int k = taken < REQUESTS && taken - reaped < DEPTH
                    ? backend->submit(state, requests + taken,
                                      REQUESTS - taken < DEPTH - (taken - reaped) ? REQUESTS - taken
                                                                                  : DEPTH - (taken - reaped))
                    : 0;
        cr_assert_geq(k, 0);
        taken += (unsigned)k;
        if (taken == reaped) continue;
        int n = backend->reap(state, 1, DEPTH, done);
        cr_assert(n >= 1 && n <= DEPTH, "%d", n);
        for (int j = 0; j < n; j++) {
            unsigned i = (unsigned)(done[j].tag - 1000);
            cr_assert_lt(i, taken, "a completion of a request that was not taken");
            seen[i]++;
        }
        reaped += (unsigned)n;
    }
    cr_assert_eq(backend->reap(state, 0, DEPTH, done), 0);
    for (unsigned i = 0; i < REQUESTS; i++) cr_assert_eq(seen[i], 1, "%s: request %u", full_name, i);
    backend->close(state);
    free(memory);
    close(fd);
    unlink(path);
}

Test(conformance, every_request_completes_once) {
    for (const struct mx_backend *const *b = mx_backends; *b != NULL; b++)
        if ((*b)->face == MX_FACE_TRANSFER) once_each(*b, (*b)->name);
    once_each(&mx_skeleton, "skeleton");
    once_each(mx_backend_fault, "fault:aio");
    once_each(mx_backend_fault, "fault:uring");
    once_each(mx_backend_fault, "fault:mmap");
}

/* Every table is complete for its face, and names are unique. */
Test(conformance, tables_are_complete) {
    for (const struct mx_backend *const *b = mx_backends; *b != NULL; b++) {
        cr_expect((*b)->open && (*b)->close && (*b)->summary, "%s", (*b)->name);
        if ((*b)->face == MX_FACE_TRANSFER) cr_expect((*b)->submit && (*b)->reap, "%s", (*b)->name);
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
    struct mx_device_facts facts;
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
    for (unsigned i = 0; i < N_TARGETS; i++) {
        if (targets[i].where == ON_DISK && !have_disk()) continue;
        struct bench b = open_bench(&targets[i]);
        struct mx_device_facts f;
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
    struct mx_device_facts f;
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
    for (unsigned i = 0; i < N_TARGETS; i++) {
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

/* note(reopen) = last commit; with either copy of the newest slot damaged still; with both, the one before;
 * with all four, -EIO. A copy that is damaged is whole again after reopening. Buffers keep their bytes. An
 * interrupted run is not overwritten without force. */
Test(conformance, commits_survive) {
    for (unsigned i = 0; i < N_TARGETS; i++) {
        const struct target *t = &targets[i];
        if (t->where == NOWHERE || (t->where == ON_DISK && !have_disk())) continue;
        char note[MX_NOTE_BYTES], place[512];
        struct bench b = open_bench(t);
        uint64_t bytes = mx_buffer_bytes(b.buffer);
        struct mx_device_facts f;
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
    snprintf(path, sizeof path, "%s", in_dir("store"));
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
    snprintf(path, sizeof path, "%s", in_dir("store"));
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
    snprintf(path, sizeof path, "%s", in_dir("store"));
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
        struct mx_device_facts f;
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
    refused(&o, -ENOTBLK, "no storage");
    cr_assert_eq(mkfifo(in_dir("fifo"), 0600), 0);
    o.path = in_dir("fifo");
    refused(&o, -ENOTBLK, "no storage");
    make_file(in_dir("file"), 4096);
    o.path = in_dir("file/below");
    refused(&o, -ENOENT, "no directory");
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
        struct mx_device_facts f;
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
    struct mx_device_facts f;
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
    cr_expect_eq(mx_budget_facts(budget).used_bytes, 24 * MIB - 4096);
    cr_expect_eq((uintptr_t)mx_block_data(a) % (2 * MIB), 0);
    for (uint64_t i = 0; i < 16 * MIB; i += 4096) cr_assert_eq(((char *)mx_block_data(a))[i], 0);
    cr_expect_eq(mx_block_bytes(b), 8 * MIB - 5000);
    mx_block_free(a);
    mx_block_free(b);
    cr_expect_eq(mx_budget_facts(budget).used_bytes, 0);
    cr_expect_eq(mx_budget_facts(budget).peak_bytes, 24 * MIB - 4096);
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
    cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &low), 0);
    cr_assert_eq(seteuid(65534), 0);
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
        cr_assert_eq(seteuid(0), 0);
        cr_skip_test("the test's directory cannot be reached without root");
    }
    cr_assert_eq(err, 0, "%s", why.text);
    mx_buffer *buffer = create_ok(device, "b", MIB);
    block = block_ok(device, MIB);
    struct mx_device_facts f;
    mx_device_facts(device, &f);
    cr_expect_not_null(strstr(f.note, "RLIMIT_MEMLOCK is 64 KiB"), "note: %s", f.note);
    fill_pattern(mx_block_data(block), MIB, 1);
    cr_expect_eq(write_now(buffer, 0, MIB, mx_block_data(block)), 0);
    mx_block_free(block);
    mx_buffer_close(buffer);
    mx_device_close(device);
    cr_assert_eq(seteuid(0), 0);
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
