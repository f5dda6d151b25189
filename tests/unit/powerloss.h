/* SPDX-License-Identifier: BSD-3-Clause */
/* powerloss.h - what a run does to its files, recorded call by call, and what of it may be there after the
 * power was lost.
 *
 * The record. A table in place of mx_sys notes when each call that changes a file begins and when it has
 * returned; both are events, and an event's number is the time of this file. The power is lost before event
 * `when`: calls that began before it may have reached the storage.
 *
 * What is durable. A write to a descriptor of O_DSYNC when it has returned; every other write, and every
 * change of a size, when an fsync or fdatasync of its file has returned that was called after the write had
 * returned; a name when an fsync of its directory has, likewise. What a rename or a link puts there, and what
 * an unlink takes away, are names. Nothing else is: of the writes that are not durable any subset may be
 * there, each whole or in part, in pieces of a sector. Of two writes to one sector the later one wins if both
 * are there, as in any page cache and on any drive. Names of one directory appear in the order of their
 * calls; two directories may be on two file systems.
 */
#ifndef MX_POWERLOSS_H
#define MX_POWERLOSS_H

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <memext/backend.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { SECTOR_BYTES = 512, PAGE_BYTES = 4096, MOST_FDS = 1024, NEVER = INT_MAX };
#define MOST_FILE_BYTES (UINT64_C(64) << 20)

/* Files are known by what they are for, so that a record goes on from one process to the next. A name is
 * that of a file: of the output it is its final one, or the temporary one. */
enum role { OTHER, STORE, OUTPUT, STORE_DIRECTORY, OUTPUT_DIRECTORY, ROLES };
enum kind { WRITE, ALLOCATE, TRUNCATE, FLUSH, NAME, UNNAME };

struct op {
    enum kind kind;
    enum role role; /* FLUSH of a directory: of names, else of this file's data */
    char *data;     /* WRITE */
    uint64_t at, bytes;
    bool dsync;
    bool final;      /* NAME: the name that counts; not a temporary one */
    int begin, end;  /* events; end NEVER = not returned */
    int durable;     /* event from which on it is there for sure; NEVER */
    int64_t step;    /* WRITE of a superblock with a note: steps that it commits; else -1 */
    bool superblock; /* WRITE of one */
};

static struct {
    pthread_mutex_t lock;
    struct op *ops;
    int n, capacity, events;
    char paths[ROLES][PATH_MAX]; /* "" = none */
    enum role fd_role[MOST_FDS];
    bool fd_dsync[MOST_FDS];
    int stop_after;    /* commits; then the process gets SIGTERM, once. 0 = never */
    char trouble[200]; /* what cannot be recorded */
    int64_t (*step_of)(const char *data, uint64_t at, uint64_t bytes, bool *superblock);
} record = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- events. Lock held by record_begin and record_end alone. */

static int record_begin(struct op op, const void *data) {
    op.end = op.durable = NEVER;
    op.step = -1;
    if (data != NULL) {
        op.data = malloc(op.bytes > 0 ? op.bytes : 1);
        memcpy(op.data, data, op.bytes);
        if (op.role == STORE) op.step = record.step_of(op.data, op.at, op.bytes, &op.superblock);
    }
    pthread_mutex_lock(&record.lock);
    if (record.n == record.capacity) {
        record.capacity = record.capacity == 0 ? 1024 : 2 * record.capacity;
        record.ops = realloc(record.ops, (size_t)record.capacity * sizeof *record.ops);
    }
    op.begin = record.events++;
    record.ops[record.n] = op;
    int i = record.n++;
    pthread_mutex_unlock(&record.lock);
    return i;
}

/* Durable from now on: what had returned when the flush was called. */
static void record_flush(const struct op *f) {
    for (int i = 0; i < record.n; i++) {
        struct op *o = &record.ops[i];
        const bool names = o->kind == NAME || o->kind == UNNAME;
        const enum role role = !names ? o->role : o->role == STORE ? STORE_DIRECTORY : OUTPUT_DIRECTORY;
        const bool covered = o->kind != FLUSH && role == f->role;
        if (covered && o->end < f->begin && o->durable == NEVER) o->durable = f->end;
    }
}

static ssize_t record_end(int i, ssize_t result) {
    pthread_mutex_lock(&record.lock);
    struct op *o = &record.ops[i];
    o->end = record.events++;
    if (result < 0 || (o->kind == WRITE && (uint64_t)result != o->bytes))
        snprintf(record.trouble, sizeof record.trouble, "a call of kind %d gave %zd", (int)o->kind, result);
    if (o->dsync) o->durable = o->end;
    if (o->kind == FLUSH) record_flush(o);
    if (o->step >= 0 && record.stop_after > 0 && --record.stop_after == 0) kill(getpid(), SIGTERM);
    pthread_mutex_unlock(&record.lock);
    return result;
}

static void record_clear(void) {
    for (int i = 0; i < record.n; i++) free(record.ops[i].data);
    record.n = record.events = record.stop_after = 0;
    record.trouble[0] = 0;
}

/* The process was killed before event `when`: calls that had begun are taken as done by the kernel, for which
 * reason they are not durable; later ones never were. */
static void record_kill(int when) {
    int n = 0;
    for (int i = 0; i < record.n; i++) {
        struct op o = record.ops[i];
        if (o.begin >= when) {
            free(o.data);
            continue;
        }
        /* What this process committed without living to know it is none that had returned. */
        if (o.end >= when) o.step = -1;
        if (o.end >= when) o.end = when;
        if (o.durable >= when) o.durable = NEVER;
        record.ops[n++] = o;
    }
    record.n = n;
    record.events = when + 1;
}

/* ---- the table */

static enum role role_of_path(const char *path, int flags) {
    int fd;
    if (sscanf(path, "/proc/self/fd/%d", &fd) == 1) return record.fd_role[fd];
    for (int i = STORE; i < ROLES; i++)
        if (strcmp(path, record.paths[i]) == 0 && (flags & O_TMPFILE) != O_TMPFILE) return (enum role)i;
    if ((flags & O_TMPFILE) == O_TMPFILE) return OUTPUT;
    if (strstr(path, ".memext-") != NULL) return OUTPUT;
    return OTHER;
}

static int recorded_open(const char *path, int flags, mode_t mode) {
    const enum role role = role_of_path(path, flags);
    const bool creates = flags & O_CREAT && (role == STORE || role == OUTPUT);
    int i = -1;
    if (creates) i = record_begin((struct op){.kind = NAME, .role = role, .final = role == STORE}, NULL);
    int fd = mx_sys_kernel.open(path, flags, mode);
    if (creates) record_end(i, fd);
    if (fd >= MOST_FDS) cr_assert(false, "descriptor %d: descriptors are left open", fd);
    if (fd < 0) return fd;
    record.fd_role[fd] = role;
    record.fd_dsync[fd] = flags & O_DSYNC;
    return fd;
}

static int recorded_close(int fd) {
    record.fd_role[fd] = OTHER;
    return mx_sys_kernel.close(fd);
}

static bool is_recorded(int fd) { return record.fd_role[fd] == STORE || record.fd_role[fd] == OUTPUT; }

/* A flush takes its time on a drive, and other threads go on meanwhile. Here it lasts until they have made a
 * few calls, or until it is clear that they wait for its end. */
static void linger(int calls) {
    for (int looks = 0, until = INT_MAX; looks < 20; looks++) {
        pthread_mutex_lock(&record.lock);
        const int events = record.events;
        pthread_mutex_unlock(&record.lock);
        if (looks == 0) until = events + calls;
        if (events >= until) return;
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

static ssize_t recorded_pwrite(int fd, const void *from, size_t bytes, off_t at) {
    if (!is_recorded(fd)) return mx_sys_kernel.pwrite(fd, from, bytes, at);
    int i = record_begin((struct op){.kind = WRITE,
                                     .role = record.fd_role[fd],
                                     .at = (uint64_t)at,
                                     .bytes = bytes,
                                     .dsync = record.fd_dsync[fd]},
                         from);
    if (record.fd_dsync[fd]) linger(i & 7);
    return record_end(i, mx_sys_kernel.pwrite(fd, from, bytes, at));
}

static int flush(int fd, int (*call)(int fd)) {
    if (record.fd_role[fd] == OTHER) return call(fd);
    int i = record_begin((struct op){.kind = FLUSH, .role = record.fd_role[fd]}, NULL);
    if (record.fd_role[fd] == STORE) linger(i & 7);
    return (int)record_end(i, call(fd));
}

static int recorded_fdatasync(int fd) { return flush(fd, mx_sys_kernel.fdatasync); }
static int recorded_fsync(int fd) { return flush(fd, mx_sys_kernel.fsync); }

/* Data that is written through a mapping would be missing in the record. */
static int recorded_msync(void *base, size_t bytes, int flags) {
    snprintf(record.trouble, sizeof record.trouble, "a mapping is written to");
    return mx_sys_kernel.msync(base, bytes, flags);
}

static int recorded_fallocate(int fd, int mode, off_t at, off_t bytes) {
    if (!is_recorded(fd) || mode != 0) return mx_sys_kernel.fallocate(fd, mode, at, bytes);
    int i = record_begin(
        (struct op){
            .kind = ALLOCATE, .role = record.fd_role[fd], .at = (uint64_t)at, .bytes = (uint64_t)bytes},
        NULL);
    return (int)record_end(i, mx_sys_kernel.fallocate(fd, mode, at, bytes));
}

static int recorded_ftruncate(int fd, off_t bytes) {
    if (!is_recorded(fd)) return mx_sys_kernel.ftruncate(fd, bytes);
    int i = record_begin((struct op){.kind = TRUNCATE, .role = record.fd_role[fd], .bytes = (uint64_t)bytes},
                         NULL);
    return (int)record_end(i, mx_sys_kernel.ftruncate(fd, bytes));
}

static int recorded_rename(const char *from, const char *to) {
    const bool final = strcmp(to, record.paths[OUTPUT]) == 0;
    int i = record_begin((struct op){.kind = NAME, .role = OUTPUT, .final = final}, NULL);
    return (int)record_end(i, mx_sys_kernel.rename(from, to));
}

static int recorded_link(int fd, const char *to) {
    int i = record_begin(
        (struct op){.kind = NAME, .role = record.fd_role[fd], .final = strcmp(to, record.paths[OUTPUT]) == 0},
        NULL);
    return (int)record_end(i, mx_sys_kernel.link(fd, to));
}

static int recorded_unlink(const char *path) {
    const bool store = strcmp(path, record.paths[STORE]) == 0;
    int i = record_begin((struct op){.kind = UNNAME, .role = store ? STORE : OTHER, .final = store}, NULL);
    return (int)record_end(i, mx_sys_kernel.unlink(path));
}

static struct mx_sys recorder(void) {
    struct mx_sys table = mx_sys_kernel;
    table.open = recorded_open;
    table.close = recorded_close;
    table.pwrite = recorded_pwrite;
    table.fdatasync = recorded_fdatasync;
    table.fsync = recorded_fsync;
    table.msync = recorded_msync;
    table.fallocate = recorded_fallocate;
    table.ftruncate = recorded_ftruncate;
    table.rename = recorded_rename;
    table.link = recorded_link;
    table.unlink = recorded_unlink;
    return table;
}

/* ---- chance */

static uint64_t chance_state = 1;

static uint64_t next_random(void) { /* splitmix64 (Steele, Lea, Flood 2014) */
    uint64_t z = chance_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static int below(int n) { return n > 0 ? (int)(next_random() % (uint64_t)n) : 0; }

/* ---- what is there of the calls that are not durable */

enum part { NOTHING, WHOLE, TORN };

struct pick {
    const struct op *newest, *victim; /* of what is pending */
    int half;                         /* event: the middle of what is pending */
};

static enum part pick_nothing(const struct op *o, const struct pick *p) { return (void)o, (void)p, NOTHING; }
static enum part pick_all(const struct op *o, const struct pick *p) { return (void)o, (void)p, WHOLE; }
static enum part pick_some(const struct op *o, const struct pick *p) {
    return (void)o, (void)p, below(2) ? WHOLE : NOTHING;
}
static enum part pick_few(const struct op *o, const struct pick *p) {
    return (void)o, (void)p, below(8) ? NOTHING : WHOLE;
}
static enum part pick_newest(const struct op *o, const struct pick *p) {
    return o == p->newest ? WHOLE : NOTHING;
}
static enum part pick_newer(const struct op *o, const struct pick *p) {
    return o->begin >= p->half ? WHOLE : NOTHING;
}
static enum part pick_all_but_one(const struct op *o, const struct pick *p) {
    return o == p->victim ? NOTHING : WHOLE;
}
static enum part pick_torn(const struct op *o, const struct pick *p) { return (void)o, (void)p, TORN; }
static enum part pick_newest_torn(const struct op *o, const struct pick *p) {
    return o == p->newest ? TORN : WHOLE;
}
static enum part pick_superblocks(const struct op *o, const struct pick *p) {
    return (void)p, o->superblock ? WHOLE : NOTHING;
}
static enum part pick_data(const struct op *o, const struct pick *p) {
    return (void)p, o->superblock ? NOTHING : WHOLE;
}
static enum part pick_superblocks_torn(const struct op *o, const struct pick *p) {
    return (void)p, o->superblock ? TORN : WHOLE;
}
static enum part pick_data_torn(const struct op *o, const struct pick *p) {
    return (void)p, o->superblock ? WHOLE : TORN;
}
static enum part pick_any(const struct op *o, const struct pick *p) {
    return (void)o, (void)p, (enum part)below(3);
}

static const struct mode {
    const char *name;
    enum part (*pick)(const struct op *op, const struct pick *pick);
    int names; /* of the pending changes of names: 0 none, 1 all, 2 any number of the first */
} modes[] = {
    {"nothing of what is pending", pick_nothing, 0},
    {"all", pick_all, 1},
    {"a half", pick_some, 2},
    {"the newest alone", pick_newest, 1},
    {"the newer half", pick_newer, 2},
    {"all but one", pick_all_but_one, 2},
    {"all torn", pick_torn, 2},
    {"all, the newest torn", pick_newest_torn, 1},
    {"superblocks alone", pick_superblocks, 1},
    {"data alone", pick_data, 2},
    {"data and torn superblocks", pick_superblocks_torn, 1},
    {"superblocks and torn data", pick_data_torn, 1},
    {"a few", pick_few, 2},
    {"none, whole or torn by chance", pick_any, 2},
};
enum { MODES = sizeof modes / sizeof modes[0] };

/* ---- images */

struct image {
    char *bytes; /* [MOST_FILE_BYTES], untouched pages are zero */
    uint64_t size;
    bool named; /* the file has its (final) name */
    bool touched[MOST_FILE_BYTES / PAGE_BYTES];
};

static void image_make(struct image *m) {
    m->bytes = mmap(NULL, MOST_FILE_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert(m->bytes != MAP_FAILED);
}

static void image_clear(struct image *m) {
    for (size_t i = 0; i < sizeof m->touched; i++)
        if (m->touched[i]) memset(m->bytes + i * PAGE_BYTES, 0, PAGE_BYTES);
    memset(m->touched, 0, sizeof m->touched);
    m->size = 0;
    m->named = false;
}

static void image_put(struct image *m, const char *data, uint64_t at, uint64_t bytes) {
    cr_assert_leq(at + bytes, MOST_FILE_BYTES);
    memcpy(m->bytes + at, data, bytes);
    for (uint64_t page = at / PAGE_BYTES; page * PAGE_BYTES < at + bytes; page++) m->touched[page] = true;
}

static void image_grow(struct image *m, uint64_t size) {
    if (size > m->size) m->size = size;
}

static void image_shrink(struct image *m, uint64_t size) {
    static const char zero[PAGE_BYTES];
    for (uint64_t page = size / PAGE_BYTES; page < sizeof m->touched; page++) {
        const uint64_t at = page * PAGE_BYTES < size ? size : page * PAGE_BYTES;
        if (m->touched[page]) image_put(m, zero, at, (page + 1) * PAGE_BYTES - at);
    }
    m->size = size;
}

/* Sector by sector of the file: what of a write is there, is there in whole sectors. */
static void image_tear(struct image *m, const struct op *o) {
    for (uint64_t at = o->at; at < o->at + o->bytes;) {
        uint64_t end = (at / SECTOR_BYTES + 1) * SECTOR_BYTES;
        if (end > o->at + o->bytes) end = o->at + o->bytes;
        if (below(2)) image_put(m, o->data + (at - o->at), at, end - at);
        at = end;
    }
}

/* A write behind the end of a file grows it only when it is there as a whole. */
static void image_apply(struct image *m, const struct op *o, enum part part) {
    if (part == NOTHING) return;
    if (o->kind == ALLOCATE) image_grow(m, o->at + o->bytes);
    if (o->kind == TRUNCATE && o->bytes >= m->size) image_grow(m, o->bytes);
    if (o->kind == TRUNCATE && o->bytes < m->size) image_shrink(m, o->bytes);
    if (o->kind != WRITE) return;
    if (part == TORN) {
        image_tear(m, o);
        return;
    }
    image_put(m, o->data, o->at, o->bytes);
    image_grow(m, o->at + o->bytes);
}

static bool is_content(const struct op *o, enum role role) {
    return o->role == role && (o->kind == WRITE || o->kind == ALLOCATE || o->kind == TRUNCATE);
}

static bool is_name(const struct op *o, enum role role) {
    return o->role == role && (o->kind == NAME || o->kind == UNNAME);
}

static bool is_pending(const struct op *o, int when) { return o->begin < when && o->durable >= when; }

static struct pick look_at_pending(int when, enum role role) {
    struct pick p = {NULL, NULL, 0};
    int n = 0, half = 0;
    for (int i = 0; i < record.n; i++)
        if (is_content(&record.ops[i], role) && is_pending(&record.ops[i], when)) n++;
    const int victim = below(n);
    for (int i = 0; i < record.n; i++) {
        const struct op *o = &record.ops[i];
        if (!is_content(o, role) || !is_pending(o, when)) continue;
        if (half == victim) p.victim = o;
        if (half++ == n / 2) p.half = o->begin;
        p.newest = o;
    }
    return p;
}

/* Whether the file has its name: changes of names in one directory come in their order. */
static void name_draw(struct image *m, enum role role, int when, const struct mode *mode) {
    int n = 0, taken = 0;
    for (int i = 0; i < record.n; i++) n += is_name(&record.ops[i], role) && is_pending(&record.ops[i], when);
    const int most = mode->names == 2 ? below(n + 1) : mode->names * n;
    for (int i = 0; i < record.n; i++) {
        const struct op *o = &record.ops[i];
        if (!is_name(o, role) || o->begin >= when) continue;
        if (is_pending(o, when) && taken++ >= most) return;
        if (o->final) m->named = o->kind == NAME;
    }
}

/* The file as the storage may hold it if the power is lost before event `when`. */
static void image_draw(struct image *m, enum role role, int when, const struct mode *mode) {
    const struct pick pick = look_at_pending(when, role);
    image_clear(m);
    for (int i = 0; i < record.n; i++) {
        const struct op *o = &record.ops[i];
        if (o->begin >= when || !is_content(o, role)) continue;
        image_apply(m, o, is_pending(o, when) ? mode->pick(o, &pick) : WHOLE);
    }
    image_shrink(m, m->size); /* bytes behind the end are in no file */
    name_draw(m, role, when, mode);
}

static uint64_t image_hash(const struct image *m, uint64_t seed) {
    uint64_t hash = XXH3_64bits_withSeed(&m->size, sizeof m->size, seed + m->named);
    for (size_t i = 0; i < sizeof m->touched; i++)
        if (m->touched[i]) hash = XXH3_64bits_withSeed(m->bytes + i * PAGE_BYTES, PAGE_BYTES, hash + i);
    return hash;
}

/* Makes the file what the image is. */
static void image_write(const struct image *m, const char *path) {
    unlink(path);
    if (!m->named) return;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0666);
    cr_assert(fd >= 0 && ftruncate(fd, (off_t)m->size) == 0, "%s: %s", path, strerror(errno));
    for (uint64_t page = 0; page * PAGE_BYTES < m->size; page++) {
        const uint64_t at = page * PAGE_BYTES, left = m->size - at, n = left < PAGE_BYTES ? left : PAGE_BYTES;
        if (m->touched[page])
            cr_assert_eq(pwrite(fd, m->bytes + at, n, (off_t)at), (ssize_t)n, "%s: %s", path,
                         strerror(errno));
    }
    close(fd);
}

#endif
