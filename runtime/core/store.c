#include "core/store.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

_Static_assert(sizeof(struct mx_superblock) == MX_SUPERBLOCK_BYTES, "a superblock is 4 KiB on the device");

#define MAGIC UINT64_C(0x31307478656d656d) /* "memext01" */
enum { VERSION = 1 };

static uint64_t checksum_of(const struct mx_superblock *s) {
    return XXH3_64bits(s, offsetof(struct mx_superblock, checksum));
}

static bool intact(const struct mx_superblock *s) {
    return s->magic == MAGIC && s->version == VERSION && s->checksum == checksum_of(s) &&
           s->n_extents <= MX_EXTENTS && s->note_bytes <= MX_NOTE_BYTES;
}

/* Zero-filled behind the end of a file. */
static int read_slot(int fd, int slot, struct mx_superblock *out) {
    char *to = (char *)out;
    memset(out, 0, sizeof *out);
    for (size_t got = 0; got < sizeof *out;) {
        ssize_t n = pread(fd, to + got, sizeof *out - got, (off_t)slot * MX_SUPERBLOCK_BYTES + (off_t)got);
        if (n == 0) break;
        if (n < 0 && errno != EINTR) return -errno;
        if (n > 0) got += (size_t)n;
    }
    return 0;
}

static int write_slot(int fd, int slot, const struct mx_superblock *s) {
    const char *from = (const char *)s;
    for (size_t put = 0; put < sizeof *s;) {
        ssize_t n = pwrite(fd, from + put, sizeof *s - put, (off_t)slot * MX_SUPERBLOCK_BYTES + (off_t)put);
        if (n < 0 && errno != EINTR) return -errno;
        if (n > 0) put += (size_t)n;
    }
    return 0;
}

int mx_store_read(int fd, struct mx_superblock *out, int *slot) {
    struct mx_superblock both[2];
    int newest = -1;
    for (int i = 0; i < 2; i++) {
        int err = read_slot(fd, i, &both[i]);
        if (err != 0) return err;
        if (intact(&both[i]) && (newest < 0 || both[i].generation > both[newest].generation)) newest = i;
    }
    if (newest < 0)
        return both[0].magic == MAGIC || both[1].magic == MAGIC ? MX_STORE_DAMAGED : MX_STORE_NONE;
    *out = both[newest];
    *slot = newest;
    return MX_STORE_INTACT;
}

static int write_durably(int fd, int slot, const struct mx_superblock *s) {
    int err = write_slot(fd, slot, s);
    if (err == 0 && fdatasync(fd) != 0) err = -errno;
    return err;
}

int mx_store_make(int fd, struct mx_superblock *out, int *slot) {
    static const struct mx_superblock wiped;
    struct mx_superblock first = {.magic = MAGIC, .version = VERSION, .generation = 1};
    first.checksum = checksum_of(&first);
    /* The old slot 1 goes first: it may be newer than generation 1. */
    int err = write_durably(fd, 1, &wiped);
    if (err == 0) err = write_durably(fd, 0, &first);
    if (err != 0) return err;
    *out = first;
    *slot = 0;
    return 0;
}

int mx_store_commit(int fd, const struct mx_superblock *next, struct mx_superblock *now, int *slot) {
    struct mx_superblock s = *next;
    s.generation = now->generation + 1;
    s.checksum = checksum_of(&s);
    int err = write_durably(fd, 1 - *slot, &s);
    if (err != 0) return err;
    *now = s;
    *slot = 1 - *slot;
    return 0;
}
