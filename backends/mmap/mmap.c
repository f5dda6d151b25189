/* SPDX-License-Identifier: BSD-3-Clause */
/* mmap - Buffers are shared mappings of the file or device: the page cache moves them. */
#include <memext/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A dropped range cannot leave the page cache before it is written. Ranges that adjoin are gathered up to
 * GATHER_BYTES, then their writing is started and they wait in a ring; the oldest is waited for and evicted
 * when more than LAG_BYTES are under way, which also bounds the dirty pages. */
enum { LAG_RANGES = 2048, MOST_MAPPINGS = 64 };
#define GATHER_BYTES (UINT64_C(4) << 20)
#define LAG_BYTES (UINT64_C(32) << 20)
/* WILLNEED reads at most the read-ahead per call, or the device's largest request if that is larger. So a
 * range is told in pieces of what every device has. A whole Buffer is not. */
#define WILLNEED_PIECE_BYTES (UINT64_C(128) << 10)
#define WILLNEED_MOST_BYTES (UINT64_C(64) << 20)
/* Rows of a partial plane: the kernel's read-ahead would fetch what lies beyond them as well, up to a whole
 * window a row. Told beforehand, they are read and nothing else is. Longer ranges are left to read-ahead,
 * which takes larger pages. */
#define SHORT_BYTES (UINT64_C(1) << 20)

struct range {
    uint64_t offset_bytes, bytes;
};

struct mapping {
    char *base;
    uint64_t offset_bytes, bytes;
};

struct mmap_state {
    int fd;
    bool read_only; /* the file is open for reading alone: a private mapping, which nobody writes to */
    pthread_mutex_t lock;
    struct range gathered;
    struct range lag[LAG_RANGES]; /* a ring */
    unsigned lag_first, lag_n;
    uint64_t lag_bytes;
    int failed; /* the first error of writing back: the kernel tells it once, and it must reach the next flush
                 */
    struct mapping mappings[MOST_MAPPINGS];
};

static int mmap_open(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts,
                     void **state) {
    struct mmap_state *s = calloc(1, sizeof *s);
    if (s == NULL) return mx_fail(why, -ENOMEM, "no memory for the backend mmap");
    s->fd = place->fd;
    s->read_only = place->options->read_only;
    pthread_mutex_init(&s->lock, NULL);
    *facts = (struct mx_backend_facts){.offset_align_bytes = 1, .memory_align_bytes = 1};
    *state = s;
    return 0;
}

static void mmap_close(void *state) {
    struct mmap_state *s = state;
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- mappings */

static struct mapping *find_mapping(struct mmap_state *s, const char *address) {
    for (int i = 0; i < MOST_MAPPINGS; i++) {
        struct mapping *m = &s->mappings[i];
        if (m->bytes > 0 && address >= m->base && address < m->base + m->bytes) return m;
    }
    return NULL;
}

static int remember(struct mmap_state *s, const struct mapping *mapping) {
    int err = -ENOMEM;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < MOST_MAPPINGS && err != 0; i++)
        if (s->mappings[i].bytes == 0) {
            s->mappings[i] = *mapping;
            err = 0;
        }
    pthread_mutex_unlock(&s->lock);
    return err;
}

static int mmap_map(void *state, uint64_t offset_bytes, uint64_t bytes, mx_why *why, void **out) {
    struct mmap_state *s = state;
    void *base = NULL;
    int err = mx_map_aligned(s->fd, offset_bytes, bytes, s->read_only ? MAP_PRIVATE : MAP_SHARED, &base);
    if (err == 0) {
        err = remember(s, &(struct mapping){base, offset_bytes, bytes});
        if (err != 0) munmap(base, bytes);
    }
    if (err != 0)
        return mx_fail(
            why, err,
            "a Buffer of %.1f MiB cannot be mapped: %s; raise the limit of addresses (ulimit -v) or "
            "use --backend uring or aio",
            (double)bytes / 1048576, strerror(-err));
    *out = base;
    return 0;
}

static int mmap_unmap(void *state, void *base, uint64_t bytes) {
    struct mmap_state *s = state;
    pthread_mutex_lock(&s->lock);
    struct mapping *m = find_mapping(s, base);
    if (m != NULL) *m = (struct mapping){0};
    pthread_mutex_unlock(&s->lock);
    return munmap(base, bytes) == 0 ? 0 : -errno;
}

/* ---- advice */

static int keep_error(struct mmap_state *s, int err) {
    if (err == 0 || err == -EINVAL || err == -ENOSYS || err == -ESPIPE) return err; /* nothing was tried */
    pthread_mutex_lock(&s->lock);
    if (s->failed == 0) s->failed = err;
    pthread_mutex_unlock(&s->lock);
    return err;
}

static int write_back(struct mmap_state *s, struct range r, unsigned flags) {
    return keep_error(s,
                      mx_retry(mx_sys->sync_file_range(s->fd, (off_t)r.offset_bytes, (off_t)r.bytes, flags)));
}

static int evict(struct mmap_state *s, struct range r) {
    int err =
        write_back(s, r, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    posix_fadvise(s->fd, (off_t)r.offset_bytes, (off_t)r.bytes, POSIX_FADV_DONTNEED);
    return err;
}

/* Takes the oldest range out if the ring is too full. Lock held. */
static bool pop_lag(struct mmap_state *s, struct range *out) {
    if (s->lag_n == 0 || (s->lag_n < LAG_RANGES - 1 && s->lag_bytes <= LAG_BYTES)) return false;
    *out = s->lag[s->lag_first];
    s->lag_first = (s->lag_first + 1) % LAG_RANGES;
    s->lag_n--;
    s->lag_bytes -= out->bytes;
    return true;
}

/* Adds to what is gathered if it adjoins. Otherwise *start is what was gathered before, now in the ring. Lock
 * held. */
static bool gather(struct mmap_state *s, struct range now, struct range *start) {
    struct range *g = &s->gathered;
    bool behind = now.offset_bytes == g->offset_bytes + g->bytes;
    bool before = now.offset_bytes + now.bytes == g->offset_bytes;
    if ((behind || before) && g->bytes + now.bytes <= GATHER_BYTES) {
        if (before) g->offset_bytes = now.offset_bytes;
        g->bytes += now.bytes;
        return false;
    }
    *start = *g;
    *g = now;
    if (start->bytes == 0) return false;
    s->lag[(s->lag_first + s->lag_n++) % LAG_RANGES] = *start;
    s->lag_bytes += start->bytes;
    return true;
}

static bool to_evict(struct mmap_state *s, struct range *out) {
    pthread_mutex_lock(&s->lock);
    bool any = pop_lag(s, out);
    pthread_mutex_unlock(&s->lock);
    return any;
}

/* Shared pages are given up by the mapping first (their dirty bits go to the page cache, nothing is lost),
 * then written, then evicted. */
static int drop(struct mmap_state *s, char *base, uint64_t bytes) {
    struct range start = {0, 0}, oldest;
    if (madvise(base, bytes, MADV_DONTNEED) != 0) return -errno;
    pthread_mutex_lock(&s->lock);
    const struct mapping *m = find_mapping(s, base);
    bool full =
        m != NULL && gather(s, (struct range){m->offset_bytes + (uint64_t)(base - m->base), bytes}, &start);
    pthread_mutex_unlock(&s->lock);
    if (m == NULL) return -EINVAL;
    int err = full ? write_back(s, start, SYNC_FILE_RANGE_WRITE) : 0;
    while (to_evict(s, &oldest)) {
        int evicted = evict(s, oldest);
        if (err == 0) err = evicted;
    }
    return err;
}

static int will_need(char *base, uint64_t bytes) {
    uint64_t step = bytes <= WILLNEED_MOST_BYTES ? WILLNEED_PIECE_BYTES : bytes;
    for (uint64_t at = 0; at < bytes; at += step)
        if (madvise(base + at, at + step < bytes ? step : bytes - at, MADV_WILLNEED) != 0) return -errno;
    return 0;
}

static int populate(char *base, uint64_t bytes) {
    int err = bytes < SHORT_BYTES ? will_need(base, bytes) : 0;
    if (err != 0) return err;
    if (madvise(base, bytes, MADV_POPULATE_READ) == 0) return 0;
    return errno == EINVAL ? will_need(base, bytes) : -errno; /* kernels before 5.14 */
}

static const struct {
    enum mx_advice advice;
    int kernel;
} advices[] = {
    {MX_ADVICE_NONE, MADV_NORMAL},     {MX_ADVICE_SEQUENTIAL, MADV_SEQUENTIAL},
    {MX_ADVICE_RANDOM, MADV_RANDOM},   {MX_ADVICE_HUGEPAGE, MADV_HUGEPAGE},
    {MX_ADVICE_SCHEDULE, MADV_NORMAL},
};

static int mmap_advise(void *state, void *base, uint64_t bytes, enum mx_advice advice) {
    if (advice == MX_ADVICE_DROP) return drop(state, base, bytes);
    if (advice == MX_ADVICE_POPULATE) return populate(base, bytes);
    if (advice == MX_ADVICE_WILLNEED) return will_need(base, bytes);
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++)
        if (advices[i].advice == advice) return madvise(base, bytes, advices[i].kernel) == 0 ? 0 : -errno;
    return -EINVAL;
}

/* ---- */

/* fdatasync alone would do on Linux; POSIX wants msync for what was stored through a mapping. */
static int mmap_flush(void *state) {
    struct mmap_state *s = state;
    struct mapping mappings[MOST_MAPPINGS];
    pthread_mutex_lock(&s->lock);
    memcpy(mappings, s->mappings, sizeof mappings);
    int err = s->failed;
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < MOST_MAPPINGS && err == 0; i++)
        if (mappings[i].bytes > 0)
            err = keep_error(s, mx_retry(mx_sys->msync(mappings[i].base, mappings[i].bytes, MS_SYNC)));
    return err != 0 ? err : keep_error(s, mx_retry(mx_sys->fdatasync(s->fd)));
}

const struct mx_backend mx_mmap = {
    .name = "mmap",
    .summary = "shared mappings of the file or device, moved by the page cache",
    .face = MX_FACE_MAPPED,
    .open = mmap_open,
    .close = mmap_close,
    .flush = mmap_flush,
    .map = mmap_map,
    .advise = mmap_advise,
    .unmap = mmap_unmap,
};
