/* SPDX-License-Identifier: BSD-3-Clause */
/* uring - io_uring: O_DIRECT with registered memory and a registered file, or buffered I/O that leaves
 * nothing in the page cache. facts.note says which of these do not work here. */
#include <memext/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x80
#endif

/* The kernel registers at most 1 GiB at a time; a larger Block takes several slots. */
enum { SLOTS = 1024 };
#define PIECE_BYTES (UINT64_C(1) << 30)

struct slot {
    char *base; /* NULL = free */
    uint64_t bytes;
    void *block; /* base of the memory that it is a piece of */
};

struct uring_state {
    struct io_uring ring;
    bool have_ring;
    int fd;
    bool direct;     /* O_DIRECT */
    bool fixed_file; /* fd is registered as number 0 */
    bool fixed_memory;
    int rw_flags;         /* of every request */
    unsigned n_taken;     /* requests taken and not given back; the I/O thread's */
    pthread_mutex_t lock; /* slots: Blocks come and go in other threads than the I/O thread */
    unsigned used_slots;  /* all used slots lie below */
    struct slot slots[SLOTS];
};

/* ---- can it work? */

static int read_number(const char *path) {
    FILE *file = fopen(path, "re");
    int value = -1;
    if (file != NULL) {
        if (fscanf(file, "%d", &value) != 1) value = -1;
        fclose(file);
    }
    return value;
}

static int explain_setup(int err, mx_why *why) {
    int disabled = read_number("/proc/sys/kernel/io_uring_disabled");
    if (err == -EPERM && disabled > 0)
        return mx_fail(
            why, -ENOTSUP,
            "io_uring is switched off here (sysctl kernel.io_uring_disabled is %d); set it to 0 or use "
            "--backend aio",
            disabled);
    if (err == -ENOSYS || err == -EPERM)
        return mx_fail(why, -ENOTSUP,
                       "this system has no io_uring (%s; containers often forbid it); use --backend aio",
                       strerror(-err));
    if (err == -ENOMEM)
        return mx_fail(why, -ENOTSUP,
                       "io_uring cannot get memory for its rings; raise RLIMIT_MEMLOCK (ulimit -l), lower "
                       "--queue-depth or use --backend aio");
    return mx_fail(why, -ENOTSUP, "io_uring cannot be set up: %s; use --backend aio", strerror(-err));
}

static int uring_probe(const struct mx_place *place, mx_why *why) {
    (void)place;
    struct io_uring ring;
    int err = io_uring_queue_init(2, &ring, 0);
    if (err != 0) return explain_setup(err, why);
    io_uring_queue_exit(&ring);
    return 0;
}

/* Busy completion needs a driver with poll queues; asked for without them, every request would fail. */
static bool has_poll_queues(int fd) {
    struct stat st;
    char path[128];
    if (fstat(fd, &st) != 0) return false;
    dev_t device = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/queue/io_poll", major(device), minor(device));
    int polled = read_number(path);
    if (polled < 0) { /* a partition */
        snprintf(path, sizeof path, "/sys/dev/block/%u:%u/../queue/io_poll", major(device), minor(device));
        polled = read_number(path);
    }
    return polled == 1;
}

/* ---- open */

/* Buffered, dropped from the page cache as soon as done; where the kernel or the file system cannot, plain
 * buffered. The flag is refused before anything is read, so an empty file can be asked. The place is opened
 * once more: the kernel lets go of a registered file late, and core's fd holds the lock. */
static int open_uncached(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts,
                         struct uring_state *s) {
    char byte;
    struct iovec one = {&byte, 1};
    s->fd = mx_place_reopen(place, 0);
    if (s->fd < 0)
        return mx_fail(why, s->fd, "%.300s cannot be opened again for --uncached: %s", place->path,
                       strerror(-s->fd));
    s->rw_flags = RWF_DONTCACHE;
    *facts = (struct mx_backend_facts){.offset_align_bytes = 4096, .memory_align_bytes = 1};
    if (preadv2(s->fd, &one, 1, 0, RWF_DONTCACHE) >= 0) return 0;
    s->rw_flags = 0;
    mx_note_add(facts->note, sizeof facts->note,
                "uncached I/O (RWF_DONTCACHE) is not supported here: plain buffered I/O is used");
    return 0;
}

static unsigned setup_flags(const struct mx_place *place, struct uring_state *s,
                            struct mx_backend_facts *facts) {
    unsigned flags = 0;
    if (place->options->sqpoll) flags |= IORING_SETUP_SQPOLL;
    if (!place->options->iopoll) return flags;
    if (s->direct && has_poll_queues(s->fd)) return flags | IORING_SETUP_IOPOLL;
    mx_note_add(facts->note, sizeof facts->note,
                "busy completion (iopoll) is not possible: %s; interrupts are used",
                s->direct ? "the device has no poll queues" : "it needs O_DIRECT");
    return flags;
}

static int init_ring(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts,
                     struct uring_state *s) {
    unsigned depth = place->options->queue_depth, flags = setup_flags(place, s, facts);
    struct io_uring_params params = {.flags = flags, .sq_thread_idle = 2000};
    int err = io_uring_queue_init_params(depth, &s->ring, &params);
    if (err != 0 && (flags & IORING_SETUP_SQPOLL)) {
        params = (struct io_uring_params){.flags = flags & ~IORING_SETUP_SQPOLL};
        mx_note_add(facts->note, sizeof facts->note, "Linux gives no submission thread (sqpoll): %s",
                    strerror(-err));
        err = io_uring_queue_init_params(depth, &s->ring, &params);
    }
    if (err != 0) return explain_setup(err, why);
    s->have_ring = true;
    return 0;
}

static void register_all(const struct mx_place *place, struct mx_backend_facts *facts,
                         struct uring_state *s) {
    if (place->options->no_register) return;
    int err = io_uring_register_files(&s->ring, &s->fd, 1);
    s->fixed_file = err == 0;
    if (err != 0)
        mx_note_add(facts->note, sizeof facts->note, "the file is not registered with the kernel: %s",
                    strerror(-err));
    /* Buffered I/O copies through the page cache: pinned memory would gain nothing. */
    if (!s->direct) return;
    err = io_uring_register_buffers_sparse(&s->ring, SLOTS);
    s->fixed_memory = err == 0;
    if (err != 0)
        mx_note_add(facts->note, sizeof facts->note,
                    "Blocks are not registered with the kernel: %s (needs Linux 5.19)", strerror(-err));
}

static void uring_close(void *state) {
    struct uring_state *s = state;
    /* Asked for by name: the end of a ring comes later, in the kernel's own time. */
    if (s->fixed_memory) io_uring_unregister_buffers(&s->ring);
    if (s->fixed_file) io_uring_unregister_files(&s->ring);
    if (s->have_ring) io_uring_queue_exit(&s->ring);
    mx_place_close_again(s->fd);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static int uring_open(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts,
                      void **state) {
    struct uring_state *s = calloc(1, sizeof *s);
    if (s == NULL) return mx_fail(why, -ENOMEM, "no memory for the backend uring");
    s->fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    *facts = (struct mx_backend_facts){0};
    int err = 0;
    if (place->options->uncached) {
        err = open_uncached(place, why, facts, s);
    } else {
        s->direct = true;
        err = mx_place_open_direct(place, why, facts, &s->fd);
        if (err == 0) s->direct = facts->bypasses_page_cache; /* not of every file of the user */
    }
    if (err == 0) err = init_ring(place, why, facts, s);
    if (err != 0) {
        uring_close(s);
        return err;
    }
    register_all(place, facts, s);
    *state = s;
    return 0;
}

/* ---- registered memory */

static int set_slot(struct uring_state *s, unsigned i, char *base, uint64_t bytes, void *block) {
    struct iovec memory = {base, bytes};
    __u64 tag = 0;
    int done = io_uring_register_buffers_update_tag(&s->ring, i, &memory, &tag, 1);
    if (done < 0) return done;
    s->slots[i] = (struct slot){base, bytes, block};
    if (base != NULL && i >= s->used_slots) s->used_slots = i + 1;
    return 0;
}

static void clear_slots(struct uring_state *s, const void *block) {
    for (unsigned i = 0; i < s->used_slots; i++)
        if (s->slots[i].base != NULL && s->slots[i].block == block) {
            set_slot(s, i, NULL, 0, NULL);
            s->slots[i] = (struct slot){0}; /* never used again, even if the kernel kept it */
        }
    while (s->used_slots > 0 && s->slots[s->used_slots - 1].base == NULL) s->used_slots--;
}

static int uring_register_memory(void *state, void *base, uint64_t bytes) {
    struct uring_state *s = state;
    if (!s->fixed_memory) return -ENOTSUP;
    int err = 0;
    pthread_mutex_lock(&s->lock);
    unsigned i = 0;
    for (uint64_t at = 0; at < bytes && err == 0; at += PIECE_BYTES) {
        while (i < SLOTS && s->slots[i].base != NULL) i++;
        uint64_t piece = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        err = i < SLOTS ? set_slot(s, i, (char *)base + at, piece, base) : -ENOSPC;
    }
    if (err != 0) clear_slots(s, base);
    pthread_mutex_unlock(&s->lock);
    return err;
}

static void uring_unregister_memory(void *state, void *base) {
    struct uring_state *s = state;
    if (!s->fixed_memory) return;
    pthread_mutex_lock(&s->lock);
    clear_slots(s, base);
    pthread_mutex_unlock(&s->lock);
}

/* The slot that the whole request lies in, or -1. */
static int find_slot(const struct uring_state *s, const struct mx_request *r) {
    const char *from = r->dram;
    for (unsigned i = 0; i < s->used_slots; i++) {
        const struct slot *slot = &s->slots[i];
        if (slot->base != NULL && from >= slot->base && from + r->bytes <= slot->base + slot->bytes)
            return (int)i;
    }
    return -1;
}

/* ---- transfers */

static void prepare(const struct uring_state *s, const struct mx_request *r, struct io_uring_sqe *sqe) {
    int fd = s->fixed_file ? 0 : s->fd, slot = find_slot(s, r);
    if (slot >= 0 && r->write)
        io_uring_prep_write_fixed(sqe, fd, r->dram, r->bytes, r->offset_bytes, slot);
    else if (slot >= 0)
        io_uring_prep_read_fixed(sqe, fd, r->dram, r->bytes, r->offset_bytes, slot);
    else if (r->write)
        io_uring_prep_write(sqe, fd, r->dram, r->bytes, r->offset_bytes);
    else
        io_uring_prep_read(sqe, fd, r->dram, r->bytes, r->offset_bytes);
    if (s->fixed_file) sqe->flags |= IOSQE_FIXED_FILE;
    sqe->rw_flags = s->rw_flags;
    sqe->user_data = r->tag;
}

/* What has an entry in the ring is taken; should the kernel not fetch it now, reap makes it do so. */
static int uring_submit(void *state, const struct mx_request *requests, unsigned n) {
    struct uring_state *s = state;
    unsigned taken = 0;
    pthread_mutex_lock(&s->lock);
    for (struct io_uring_sqe *sqe; taken < n && (sqe = io_uring_get_sqe(&s->ring)) != NULL; taken++)
        prepare(s, &requests[taken], sqe);
    pthread_mutex_unlock(&s->lock);
    s->n_taken += taken;
    if (taken > 0) io_uring_submit(&s->ring);
    return (int)taken;
}

/* What the kernel cancels of its own had no thread to be done by: it may have one a moment later. */
static int32_t result_of(const struct io_uring_cqe *cqe) {
    return cqe->res == -ECANCELED ? -EAGAIN : cqe->res;
}

static unsigned harvest(struct uring_state *s, unsigned max, struct mx_completion *out) {
    struct io_uring_cqe *cqes[64];
    unsigned n = 0;
    while (n < max) {
        unsigned got = io_uring_peek_batch_cqe(&s->ring, cqes, max - n < 64 ? max - n : 64);
        for (unsigned i = 0; i < got; i++)
            out[n + i] = (struct mx_completion){cqes[i]->user_data, result_of(cqes[i])};
        io_uring_cq_advance(&s->ring, got);
        s->n_taken -= got;
        n += got;
        if (got == 0) break;
    }
    return n;
}

static int uring_reap(void *state, unsigned min, unsigned max, struct mx_completion *out) {
    struct uring_state *s = state;
    unsigned n = harvest(s, max, out);
    while (n < min) {
        int err = io_uring_submit_and_wait(&s->ring, min - n);
        if (err < 0) return n > 0 ? (int)n : err;
        n += harvest(s, max - n, out + n);
    }
    return (int)n;
}

/* Cancels what has not reached the device and waits for the rest. Entries that the kernel never fetched from
 * the ring move nothing. Waiting is done by looking, for the ring may be what failed. */
static int uring_drain(void *state) {
    struct uring_state *s = state;
    struct io_uring_sync_cancel_reg all = {.flags = IORING_ASYNC_CANCEL_ALL | IORING_ASYNC_CANCEL_ANY,
                                           .timeout = {-1, -1}};
    struct mx_completion done[64];
    io_uring_register_sync_cancel(&s->ring, &all); /* Linux 6.0; else they run to their end */
    for (;;) {
        harvest(s, 64, done);
        if (s->n_taken <= io_uring_sq_ready(&s->ring)) return 0;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

const struct mx_backend mx_uring = {
    .name = "uring",
    .summary = "io_uring, O_DIRECT, registered memory and file; or uncached buffered I/O",
    .face = MX_FACE_TRANSFER,
    .probe = uring_probe,
    .open = uring_open,
    .close = uring_close,
    .submit = uring_submit,
    .reap = uring_reap,
    .drain = uring_drain,
    .register_memory = uring_register_memory,
    .unregister_memory = uring_unregister_memory,
};
