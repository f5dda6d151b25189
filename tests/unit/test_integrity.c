/* SPDX-License-Identifier: BSD-3-Clause */
/* test_integrity - data that comes back other than it was written is found, on every backend and however it
 * came about; what is right is never doubted; the sums outlive the process with a commit. The file of the
 * store is changed behind memext's back. */
#include "conformance.h"

#include <pthread.h>

TestSuite(integrity, .init = make_dir, .fini = remove_dir, .timeout = 900);

enum { UNIT = 3 * 4096, UNITS = 40, REST = 4096 }; /* the last unit is a third of one */
#define BYTES ((uint64_t)UNIT * UNITS + REST)

#define TROUBLE "seed=3,short=0.4,eagain=0.1,refuse=0.2,delay_us=100,reorder=1"

static const struct {
    const char *backend, *fault;
    enum mx_advice advice;
} targets[] = {
    {"dram", NULL, MX_ADVICE_NONE},          {"mmap", NULL, MX_ADVICE_NONE},
    {"mmap", NULL, MX_ADVICE_SCHEDULE},      {"aio", NULL, MX_ADVICE_NONE},
    {"uring", NULL, MX_ADVICE_NONE},         {"fault:aio", TROUBLE, MX_ADVICE_NONE},
    {"fault:mmap", TROUBLE, MX_ADVICE_NONE},
};
enum { N_TARGETS = sizeof targets / sizeof targets[0] };

struct bench {
    const char *backend;
    mx_device *device;
    mx_buffer *buffer;
    mx_block *block;
    char *dram, *back;
    int fd; /* of the store's file; -1 = anonymous */
};

static struct bench open_bench(unsigned target, bool resume, bool keep) {
    struct mx_device_options o = {.backend = targets[target].backend,
                                  .path = dir,
                                  .queue_depth = 4,
                                  .max_request_bytes = 8192,
                                  .workers = 3,
                                  .advice = targets[target].advice,
                                  .resume = resume,
                                  .keep = keep,
                                  .fault = targets[target].fault};
    struct bench b = {.backend = o.backend, .device = open_ok(&o), .fd = -1};
    struct mx_device_facts facts = {.size = sizeof facts};
    mx_why why = {""};
    mx_device_facts(b.device, &facts);
    if (facts.durable) b.fd = open(facts.place, O_RDWR | O_CLOEXEC);
    cr_assert(!facts.durable || b.fd >= 0);
    if (resume)
        cr_assert_eq(mx_buffer_open(b.device, "data", &why, &b.buffer), 0, "%s", why.text);
    else
        b.buffer = create_ok(b.device, "data", BYTES);
    b.block = block_ok(b.device, 2 * BYTES);
    b.dram = mx_block_data(b.block);
    b.back = b.dram + BYTES;
    fill_pattern(b.dram, BYTES, target);
    return b;
}

static void check_from_now(struct bench *b, uint64_t unit) {
    mx_why why = {""};
    cr_assert_eq(mx_buffer_integrity(b->buffer, unit, NULL, &why), 0, "%s: %s", b->backend, why.text);
}

static void close_bench(struct bench *b) {
    if (b->fd >= 0) close(b->fd);
    mx_block_free(b->block);
    mx_buffer_close(b->buffer);
    mx_device_close(b->device);
}

/* Bytes at a place of the Buffer, behind memext's back. */
static void peek(const struct bench *b, uint64_t at, void *to, size_t bytes) {
    void *base;
    if (b->fd < 0 && mx_buffer_map(b->buffer, NULL, &base) == 0)
        memcpy(to, (char *)base + at, bytes);
    else
        cr_assert_eq(pread(b->fd, to, bytes, (off_t)(mx_buffer_offset(b->buffer) + at)), (ssize_t)bytes);
}

static void poke(const struct bench *b, uint64_t at, const void *from, size_t bytes) {
    void *base;
    if (b->fd < 0 && mx_buffer_map(b->buffer, NULL, &base) == 0)
        memcpy((char *)base + at, from, bytes);
    else
        cr_assert(pwrite(b->fd, from, bytes, (off_t)(mx_buffer_offset(b->buffer) + at)) == (ssize_t)bytes &&
                  fdatasync(b->fd) == 0);
}

static void flip(const struct bench *b, uint64_t at, int bit) {
    char byte;
    peek(b, at, &byte, 1);
    byte = (char)(byte ^ 1 << bit);
    poke(b, at, &byte, 1);
}

static uint64_t unit_bytes(uint64_t unit) { return unit < UNITS ? UNIT : REST; }

static int read_unit(struct bench *b, uint64_t unit) {
    return read_now(b->buffer, unit * UNIT, unit_bytes(unit), b->back + unit * UNIT);
}

/* One bit of the file is flipped: reading its unit alone, or everything, is -EBADMSG and names the unit,
 * which stays the one first found; other units are read; written anew all is well. */
Test(integrity, one_bit) {
    for (unsigned t = 0; t < N_TARGETS; t++) {
        struct bench b = open_bench(t, false, false);
        uint64_t random = t;
        check_from_now(&b, UNIT);
        cr_assert_eq(write_now(b.buffer, 0, BYTES, b.dram), 0);
        cr_expect_eq(read_now(b.buffer, 0, BYTES, b.back), 0, "%s: as it was written", b.backend);
        cr_expect(memcmp(b.back, b.dram, BYTES) == 0 && mx_buffer_damage(b.buffer) == -1);
        int64_t first = -1;
        for (int i = 0; i < 6; i++) {
            const uint64_t at = i == 0 ? BYTES - 1 : i == 1 ? 0 : draw(&random, BYTES), unit = at / UNIT;
            if (first < 0) first = (int64_t)(unit * UNIT);
            flip(&b, at, (int)draw(&random, 8));
            cr_expect_eq(read_unit(&b, unit), -EBADMSG, "%s: byte %llu", b.backend, (unsigned long long)at);
            cr_expect_eq(read_now(b.buffer, 0, BYTES, b.back), -EBADMSG, "%s", b.backend);
            cr_expect_eq(mx_buffer_damage(b.buffer), first, "%s", b.backend);
            for (uint64_t u = 0; u <= UNITS; u++)
                cr_expect(u == unit || read_unit(&b, u) == 0, "%s: unit %llu", b.backend,
                          (unsigned long long)u);
            cr_assert_eq(write_now(b.buffer, unit * UNIT, unit_bytes(unit), b.dram + unit * UNIT), 0);
            cr_expect_eq(read_now(b.buffer, 0, BYTES, b.back), 0, "%s: written again", b.backend);
        }
        close_bench(&b);
    }
}

/* A write of which a part arrived, one that was lost, and two that went to each other's place. */
Test(integrity, torn_lost_and_misdirected_writes) {
    static char old[UNIT], new[UNIT];
    for (unsigned t = 0; t < N_TARGETS; t++) {
        struct bench b = open_bench(t, false, false);
        check_from_now(&b, UNIT);
        cr_assert_eq(write_now(b.buffer, 0, BYTES, b.dram), 0);
        peek(&b, 5 * UNIT, old, UNIT);
        fill_pattern(b.dram + 5 * UNIT, UNIT, 1234);
        cr_assert_eq(write_now(b.buffer, 5 * UNIT, UNIT, b.dram + 5 * UNIT), 0);
        peek(&b, 5 * UNIT, new, UNIT);
        cr_assert(memcmp(new, b.dram + 5 * UNIT, UNIT) == 0);
        for (size_t part = 512; part <= UNIT; part += 512) {
            poke(&b, 5 * UNIT + UNIT - part, old + UNIT - part, part);
            cr_expect_eq(read_unit(&b, 5), -EBADMSG, "%s: %zu bytes are old", b.backend, part);
            poke(&b, 5 * UNIT, new, UNIT);
            cr_expect_eq(read_unit(&b, 5), 0);
        }
        peek(&b, 6 * UNIT, old, UNIT);
        poke(&b, 6 * UNIT, new, UNIT);
        poke(&b, 5 * UNIT, old, UNIT);
        cr_expect(read_unit(&b, 5) == -EBADMSG && read_unit(&b, 6) == -EBADMSG, "%s", b.backend);
        close_bench(&b);
    }
}

/* What was never written, or before the checks began, is not checked. */
Test(integrity, units_not_written_are_not_checked) {
    for (unsigned t = 0; t < N_TARGETS; t++) {
        struct bench b = open_bench(t, false, false);
        cr_assert_eq(write_now(b.buffer, 0, 10 * UNIT, b.dram), 0);
        check_from_now(&b, UNIT);
        cr_assert_eq(write_now(b.buffer, 10 * UNIT, 10 * UNIT, b.dram), 0);
        flip(&b, 3 * UNIT, 0);
        flip(&b, 30 * UNIT + 7, 0);
        cr_expect_eq(read_now(b.buffer, 0, BYTES, b.back), 0, "%s", b.backend);
        flip(&b, 10 * UNIT + 7, 0);
        cr_expect_eq(read_now(b.buffer, 0, BYTES, b.back), -EBADMSG, "%s", b.backend);
        close_bench(&b);
    }
}

/* Rows of planes: spans apart or adjoining, in the Buffer, in DRAM or in both. Every unit of every span is
 * written with its sum and compared; a span of anything but whole units is -EINVAL. */
Test(integrity, spans) {
    static const struct mx_span wrong[] = {
        {4096, UNIT, NULL}, {4096, 2 * UNIT - 4096, NULL}, {0, 4096, NULL}, {0, UNIT + 4096, NULL}};
    for (unsigned t = 0; t < N_TARGETS; t++)
        for (unsigned stride = 1; stride <= 3; stride++)
            for (unsigned dram_stride = 1; dram_stride <= 2; dram_stride++) {
                struct bench b = open_bench(t, false, false);
                struct mx_span spans[10];
                mx_ticket *ticket = NULL;
                check_from_now(&b, UNIT);
                for (unsigned i = 0; i < 10; i++)
                    spans[i] = (struct mx_span){(uint64_t)i * stride * UNIT, UNIT,
                                                b.dram + (uint64_t)i * dram_stride * UNIT};
                cr_assert(mx_buffer_write(b.buffer, spans, 10, &ticket) == 0 && mx_wait(ticket) == 0);
                cr_assert(mx_buffer_read(b.buffer, spans, 10, &ticket) == 0 && mx_wait(ticket) == 0);
                for (unsigned i = 0; i < 10; i++) {
                    flip(&b, spans[i].offset_bytes + 100 * i, 3);
                    cr_assert_eq(mx_buffer_read(b.buffer, spans, 10, &ticket), 0);
                    cr_expect_eq(mx_wait(ticket), -EBADMSG, "%s: span %u", b.backend, i);
                    flip(&b, spans[i].offset_bytes + 100 * i, 3);
                }
                for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
                    struct mx_span s = wrong[i];
                    s.dram = b.dram;
                    ticket = (mx_ticket *)&b;
                    cr_expect(mx_buffer_write(b.buffer, &s, 1, &ticket) == -EINVAL &&
                              mx_buffer_read(b.buffer, &s, 1, &ticket) == -EINVAL &&
                              ticket == (mx_ticket *)&b);
                }
                close_bench(&b);
            }
}

/* Threads that write and read units of their own: nothing is doubted. */
enum { THREADS = 4, ROUNDS = 40 };
struct worker {
    struct bench *bench;
    unsigned number;
    int failures;
};

static void *work(void *argument) {
    struct worker *w = argument;
    uint64_t random = w->number;
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t at = (draw(&random, UNITS / THREADS) * THREADS + w->number) * UNIT;
        fill_pattern(w->bench->dram + at, UNIT, mix((uint64_t)i * THREADS + w->number));
        w->failures += write_now(w->bench->buffer, at, UNIT, w->bench->dram + at) != 0;
        w->failures += read_now(w->bench->buffer, at, UNIT, w->bench->back + at) != 0;
    }
    return NULL;
}

Test(integrity, threads) {
    for (unsigned t = 0; t < N_TARGETS; t++) {
        struct bench b = open_bench(t, false, false);
        pthread_t thread[THREADS];
        struct worker worker[THREADS];
        check_from_now(&b, UNIT);
        for (unsigned i = 0; i < THREADS; i++) {
            worker[i] = (struct worker){&b, i, 0};
            cr_assert_eq(pthread_create(&thread[i], NULL, work, &worker[i]), 0);
        }
        for (unsigned i = 0; i < THREADS; i++) {
            pthread_join(thread[i], NULL);
            cr_expect_eq(worker[i].failures, 0, "%s", b.backend);
        }
        close_bench(&b);
    }
}

/* ---- saved */

static void save_and_commit(struct bench *b) {
    cr_assert_eq(mx_buffer_integrity_save(b->buffer), 0, "%s", b->backend);
    cr_assert_eq(mx_device_commit(b->device, "x", 1), 0, "%s", b->backend);
}

/* A store is left with sums and opened again: with _load a flipped bit is found, without nothing is known; of
 * units of another size nothing is known and it is said. What was written after the save is known by the sums
 * of the save alone. */
Test(integrity, sums_are_loaded) {
    for (unsigned t = 1; t < N_TARGETS; t++) {
        struct bench b = open_bench(t, false, true);
        check_from_now(&b, UNIT);
        cr_expect_eq(mx_buffer_integrity_load(b.buffer), -ENODATA, "%s: nothing was saved", b.backend);
        cr_assert_eq(write_now(b.buffer, 0, 20 * UNIT, b.dram), 0);
        save_and_commit(&b);
        flip(&b, 7 * UNIT + 5, 1);
        flip(&b, 30 * UNIT + 5, 1); /* was not written */
        close_bench(&b);

        b = open_bench(t, true, true);
        cr_expect_eq(mx_buffer_integrity_load(b.buffer), -EINVAL);
        check_from_now(&b, UNIT);
        cr_expect_eq(read_now(b.buffer, 0, BYTES, b.back), 0, "%s: without load", b.backend);
        cr_assert_eq(mx_buffer_integrity_load(b.buffer), 0, "%s", b.backend);
        for (uint64_t u = 0; u <= UNITS; u++)
            cr_expect_eq(read_unit(&b, u), u == 7 ? -EBADMSG : 0, "%s: unit %llu", b.backend,
                         (unsigned long long)u);
        cr_expect_eq(mx_buffer_damage(b.buffer), 7 * UNIT);
        close_bench(&b);

        b = open_bench(t, true, true);
        check_from_now(&b, 2 * UNIT);
        cr_expect_eq(mx_buffer_integrity_load(b.buffer), -ENODATA, "%s: other units", b.backend);
        cr_expect_eq(read_now(b.buffer, 0, BYTES, b.back), 0);
        close_bench(&b);
        remove_dir();
        make_dir();
    }
}

/* Every byte of the saved sums matters: a damaged table is -EBADMSG or -ENODATA, and then nothing is known.
 */
Test(integrity, damaged_sums_are_refused) {
    const uint64_t table = (BYTES + (2 * MIB - 1)) / (2 * MIB) * (2 * MIB); /* the extent behind the data */
    static const uint64_t places[] = {0, 8, 16, 24, 4096, 4096 + 4 * 19 + 3, 4096 + 4 * UNITS};
    struct bench b = open_bench(4, false, true);
    check_from_now(&b, UNIT);
    cr_assert_eq(write_now(b.buffer, 0, BYTES, b.dram), 0);
    save_and_commit(&b);
    close_bench(&b);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        b = open_bench(4, true, true);
        flip(&b, table + places[i], 2);
        check_from_now(&b, UNIT);
        const int err = mx_buffer_integrity_load(b.buffer);
        cr_expect(err == (places[i] < 24 ? -ENODATA : -EBADMSG), "byte %llu of the table: %d",
                  (unsigned long long)places[i], err);
        flip(&b, 0, 0);
        cr_expect_eq(read_now(b.buffer, 0, BYTES, b.back), 0, "nothing is known");
        flip(&b, 0, 0);
        flip(&b, table + places[i], 2);
        cr_expect_eq(mx_buffer_integrity_load(b.buffer), 0, "as it was saved");
        cr_expect_eq(read_now(b.buffer, 0, BYTES, b.back), 0);
        close_bench(&b);
    }
}

/* The saved sums of one Buffer stay when another's are saved. */
Test(integrity, every_buffer_has_sums_of_its_own) {
    struct bench b = open_bench(3, false, true);
    mx_why why = {""};
    mx_buffer *other = create_ok(b.device, "other", BYTES);
    check_from_now(&b, UNIT);
    cr_assert_eq(mx_buffer_integrity(other, UNIT, NULL, &why), 0, "%s", why.text);
    cr_assert_eq(write_now(b.buffer, 0, BYTES, b.dram), 0);
    save_and_commit(&b);
    fill_pattern(b.dram, BYTES, 5);
    cr_assert_eq(write_now(other, 0, BYTES, b.dram), 0);
    cr_assert_eq(mx_buffer_integrity_save(other), 0);
    mx_buffer_close(other);
    close_bench(&b);
    b = open_bench(3, true, false);
    check_from_now(&b, UNIT);
    cr_expect_eq(mx_buffer_integrity_load(b.buffer), 0);
    cr_expect_eq(read_now(b.buffer, 0, BYTES, b.back), 0);
    close_bench(&b);
}

/* ---- refusals */

Test(integrity, refusals) {
    struct bench b = open_bench(4, false, false), anonymous = open_bench(0, false, false);
    static const uint64_t wrong[] = {0, 100, 2 * BYTES};
    mx_why why = {""};
    mx_budget *budget = NULL;
    for (int i = 0; i < 3; i++) {
        why.text[0] = 0;
        cr_expect(mx_buffer_integrity(b.buffer, wrong[i], NULL, &why) == -EINVAL && why.text[0] != 0);
    }
    cr_expect_eq(mx_buffer_integrity_save(b.buffer), -EINVAL);
    cr_expect_eq(mx_buffer_damage(b.buffer), -1);
    cr_assert_eq(mx_budget_create(16384, 4096, &why, &budget), 0, "%s", why.text);
    cr_expect_eq(mx_buffer_integrity(b.buffer, 4096, budget, &why), 0, "%s", why.text);
    cr_expect_eq(budget_facts(budget).used_bytes, 8192, "a page, and 4 bytes for each of 121 units");
    cr_expect(mx_buffer_integrity(b.buffer, UNIT, NULL, &why) == -EEXIST && strstr(why.text, "data") != NULL);
    mx_buffer *other = create_ok(b.device, "eleven-long", BYTES),
              *longer = create_ok(b.device, "twelve--long", BYTES);
    cr_expect_eq(mx_buffer_integrity(other, 4096, budget, &why), -ENOMEM, "the budget is used up");
    cr_expect_eq(mx_buffer_integrity(other, UNIT, NULL, &why), 0, "%s", why.text);
    cr_expect(mx_buffer_integrity(longer, UNIT, NULL, &why) == -EINVAL && strstr(why.text, ".sum") != NULL);
    cr_expect_eq(mx_buffer_integrity(anonymous.buffer, 1, NULL, &why), 0, "any size in memory: %s", why.text);
    cr_expect_eq(mx_buffer_integrity_save(anonymous.buffer), -ENOTSUP);
    cr_expect_eq(mx_buffer_integrity_load(anonymous.buffer), -ENOTSUP);
    mx_buffer_close(other);
    mx_buffer_close(longer);
    close_bench(&b);
    close_bench(&anonymous);
    cr_expect_eq(budget_facts(budget).used_bytes, 0, "given back");
    mx_budget_free(budget);
}

/* A table that needs more than the extent has is refused, and the Buffer is as before. */
Test(integrity, an_extent_that_is_too_small) {
    struct bench b = open_bench(4, false, false);
    mx_why why = {""};
    mx_buffer *large = create_ok(b.device, "large", 8 * MIB);
    cr_assert_eq(mx_buffer_integrity(large, 8 * MIB, NULL, &why), 0, "%s", why.text);
    mx_buffer_close(large);
    cr_assert_eq(mx_buffer_open(b.device, "large", &why, &large), 0, "%s", why.text);
    cr_expect(mx_buffer_integrity(large, 4096, NULL, &why) == -ENOSPC && strstr(why.text, "12 KiB") != NULL,
              "%s", why.text);
    cr_expect_eq(write_now(large, 0, 4096, b.dram), 0);
    cr_expect_eq(mx_buffer_integrity(large, 4 * MIB, NULL, &why), 0, "%s", why.text);
    mx_buffer_close(large);
    close_bench(&b);
}
