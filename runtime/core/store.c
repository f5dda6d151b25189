/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store.h"

#include <errno.h>
#include <memext/backend.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

_Static_assert(sizeof(struct mx_superblock) == MX_SUPERBLOCK_BYTES, "a superblock is 16 KiB on the device");
_Static_assert(sizeof(struct mx_extent) == sizeof(struct mx_store_extent), "one shape inside and outside");

#define MAGIC UINT64_C(0x31307478656d656d) /* "memext01" */
#define MOST_GENERATIONS (UINT64_C(1) << 62)

static uint64_t checksum_of(const struct mx_superblock *s) {
    return XXH3_64bits(s, offsetof(struct mx_superblock, checksum));
}

static bool intact(const struct mx_superblock *s) {
    return s->magic == MAGIC && s->version == MX_STORE_FORMAT && s->checksum == checksum_of(s) &&
           s->generation > 0 && s->generation < MOST_GENERATIONS && s->note_bytes <= MX_NOTE_BYTES;
}

/* ---- reading */

/* Zero-filled behind the end of a file. A copy that cannot be read is one that is not intact. */
static int read_copies(int fd, struct mx_superblock copies[4]) {
    int bad = 0, err = 0;
    memset(copies, 0, MX_SLOTS_BYTES);
    for (int i = 0; i < 4; i++) {
        int result = mx_read_all(fd, &copies[i], sizeof copies[i], (off_t)mx_store_offset(i / 2, i % 2));
        if (result == 0 || result == -ENODATA) continue;
        memset(&copies[i], 0, sizeof copies[i]);
        err = result;
        bad++;
    }
    return bad == 4 ? err : 0;
}

/* No copy is intact: was there ever one? A damaged one of this format says more than one of another. */
static enum mx_store_kind name_damage(const struct mx_superblock copies[4], struct mx_superblock *out) {
    enum mx_store_kind kind = MX_STORE_NONE;
    for (int i = 0; i < 4; i++) {
        if (copies[i].magic != MAGIC) continue;
        if (copies[i].version == MX_STORE_FORMAT) return MX_STORE_DAMAGED;
        kind = MX_STORE_OTHER;
        out->version = copies[i].version;
    }
    return kind;
}

enum mx_store_kind mx_store_choose(const struct mx_superblock copies[4], struct mx_superblock *out,
                                   int *slot) {
    int newest = -1;
    for (int i = 0; i < 4; i++)
        if (intact(&copies[i]) && (newest < 0 || copies[i].generation > copies[newest].generation))
            newest = i;
    if (newest < 0) return name_damage(copies, out);
    *out = copies[newest];
    *slot = newest / 2;
    return MX_STORE_INTACT;
}

int mx_store_read(int fd, struct mx_superblock *out, int *slot) {
    struct mx_superblock *copies = malloc(MX_SLOTS_BYTES);
    if (copies == NULL) return -ENOMEM;
    int err = read_copies(fd, copies);
    if (err == 0) err = (int)mx_store_choose(copies, out, slot);
    free(copies);
    return err;
}

/* ---- the extents */

static int check_extent(const struct mx_extent *e, uint64_t place_bytes, const char *path, mx_why *why) {
    if (e->name[0] == 0 || memchr(e->name, 0, sizeof e->name) == NULL)
        return mx_fail(why, -EIO, "%.300s is damaged: one of its Buffers has no valid name", path);
    if (e->offset_bytes < MX_DATA_OFFSET_BYTES || e->offset_bytes % MX_EXTENT_ALIGN_BYTES != 0 ||
        e->bytes == 0)
        return mx_fail(why, -EIO, "%.300s is damaged: its Buffer \"%s\" has an impossible position or length",
                       path, e->name);
    if (e->offset_bytes > place_bytes || e->bytes > place_bytes - e->offset_bytes)
        return mx_fail(why, -EIO,
                       "%.300s has %llu bytes, but its Buffer \"%s\" has %llu bytes from byte %llu on: the "
                       "file was cut short or copied in part; restore all of it, or start again with --force",
                       path, (unsigned long long)place_bytes, e->name, (unsigned long long)e->bytes,
                       (unsigned long long)e->offset_bytes);
    return 0;
}

static bool clash(const struct mx_extent *a, const struct mx_extent *b) {
    return strcmp(a->name, b->name) == 0 ||
           (a->offset_bytes < b->offset_bytes + b->bytes && b->offset_bytes < a->offset_bytes + a->bytes);
}

int mx_store_check(const struct mx_superblock *s, uint64_t place_bytes, const char *path, mx_why *why) {
    if (s->n_extents > MX_EXTENTS)
        return mx_fail(why, -EIO,
                       "%.300s is damaged: its superblock names %u Buffers, and a store has at most %d", path,
                       s->n_extents, MX_EXTENTS);
    if (s->finished > MX_RUN_KEPT)
        return mx_fail(why, -EIO, "%.300s is damaged: its superblock has an unknown state of the run, %u",
                       path, s->finished);
    for (uint32_t i = 0; i < s->n_extents; i++) {
        int err = check_extent(mx_extent_in(s, i), place_bytes, path, why);
        if (err != 0) return err;
        for (uint32_t k = 0; k < i; k++)
            if (clash(mx_extent_in(s, i), mx_extent_in(s, k)))
                return mx_fail(why, -EIO, "%.300s is damaged: its Buffers \"%s\" and \"%s\" overlap", path,
                               mx_extent_in(s, k)->name, mx_extent_in(s, i)->name);
    }
    return 0;
}

/* ---- writing */

/* Both copies by one call: one flush of the device makes them durable. */
static int write_slot(int fd, int slot, const struct mx_superblock *s) {
    struct mx_superblock *twice = malloc(2 * sizeof *twice);
    if (twice == NULL) return -ENOMEM;
    twice[0] = twice[1] = *s;
    int err = mx_write_all(fd, twice, 2 * sizeof *twice, (off_t)mx_store_offset(slot, 0));
    free(twice);
    return err;
}

int mx_store_commit(int fd, const struct mx_superblock *next, struct mx_superblock *now, int *slot) {
    struct mx_superblock s = *next;
    s.generation = now->generation + 1;
    if (s.generation >= MOST_GENERATIONS) return -EOVERFLOW;
    s.checksum = checksum_of(&s);
    int err = write_slot(fd, 1 - *slot, &s);
    if (err != 0) return err;
    *now = s;
    *slot = 1 - *slot;
    return 0;
}

int mx_store_make(int fd, enum mx_store_kind kind, struct mx_superblock *now, int *slot) {
    static const struct mx_superblock wiped;
    struct mx_superblock first = {.magic = MAGIC, .version = MX_STORE_FORMAT};
    struct mx_superblock old = {.generation = kind == MX_STORE_INTACT ? now->generation : 0};
    int at = kind == MX_STORE_INTACT ? *slot : 1, err = 0;
    if (kind == MX_STORE_OTHER || kind == MX_STORE_DAMAGED) err = write_slot(fd, 1, &wiped);
    if (err == 0) err = mx_store_commit(fd, &first, &old, &at);
    if (err != 0) return err;
    *now = old;
    *slot = at;
    return 0;
}

int mx_store_mend(int fd, const struct mx_superblock *now, int slot) {
    struct mx_superblock there;
    int err = 0;
    for (int copy = 0; copy < 2 && err == 0; copy++) {
        off_t at = (off_t)mx_store_offset(slot, copy);
        err = mx_read_all(fd, &there, sizeof there, at);
        bool right = err == 0 && memcmp(&there, now, sizeof there) == 0;
        if (!right) err = mx_write_all(fd, now, sizeof *now, at);
    }
    return err;
}
