/* SPDX-License-Identifier: BSD-3-Clause */
/* store.h - what memext writes before the data: two slots that are written in turn, each with two copies of a
 * superblock.
 *
 *     0 KiB slot 0    16 KiB its copy    32 KiB slot 1    48 KiB its copy    2 MiB extents, each at a
 * multiple of 2 MiB
 *
 * The intact superblock with the largest generation counts; a slot is intact if either copy is. A commit
 * writes both copies of the slot that does not count, so neither a torn write nor a bad sector harms the
 * state that was committed before. A new store has a generation above that of the old content, so it outranks
 * every old slot. Numbers are in the byte order of the machine that made the store; the magic number shows
 * another order.
 *
 * Every format begins with the magic number and the version. Making a store of one format wipes the slots of
 * the others.
 */
#ifndef MX_STORE_H
#define MX_STORE_H

#include <memext/memext.h>

enum {
    MX_EXTENTS = MX_STORE_EXTENTS,
    MX_FIRST_EXTENTS = 32,
    MX_SUPERBLOCK_BYTES = 16384,
    MX_STORE_FORMAT = 2
};
#define MX_DATA_OFFSET_BYTES (UINT64_C(2) << 20)
#define MX_EXTENT_ALIGN_BYTES (UINT64_C(2) << 20)
#define MX_SLOTS_BYTES (UINT64_C(4) * MX_SUPERBLOCK_BYTES)

struct mx_extent {
    char name[16];
    uint64_t offset_bytes, bytes;
};

enum mx_store_finished { MX_RUN_UNDER_WAY, MX_RUN_DONE, MX_RUN_KEPT };

/* On the device exactly as here. */
struct mx_superblock {
    uint64_t magic;
    uint32_t version;
    uint32_t finished; /* enum mx_store_finished, of the run of the note */
    uint64_t generation;
    uint32_t n_extents, note_bytes;
    struct mx_extent first_extents[MX_FIRST_EXTENTS]; /* mx_extent_at */
    uint8_t note[MX_NOTE_BYTES];
    struct mx_extent more_extents[MX_EXTENTS - MX_FIRST_EXTENTS]; /* the first release cannot read a store
                                                                     that uses these */
    uint8_t unused[MX_SUPERBLOCK_BYTES - 32 - 32 * MX_EXTENTS - MX_NOTE_BYTES - 8];
    uint64_t checksum; /* XXH3-64 of everything before */
};

/* Returns extent i of s->n_extents. */
static inline struct mx_extent *mx_extent_at(struct mx_superblock *s, uint32_t i) {
    return i < MX_FIRST_EXTENTS ? &s->first_extents[i] : &s->more_extents[i - MX_FIRST_EXTENTS];
}
static inline const struct mx_extent *mx_extent_in(const struct mx_superblock *s, uint32_t i) {
    return i < MX_FIRST_EXTENTS ? &s->first_extents[i] : &s->more_extents[i - MX_FIRST_EXTENTS];
}

enum mx_store_kind {
    MX_STORE_NONE,    /* memext never wrote here */
    MX_STORE_DAMAGED, /* it did, but no superblock is intact */
    MX_STORE_OTHER,   /* it did, in another format */
    MX_STORE_INTACT,
};

/* Where copy (0 or 1) of slot (0 or 1) begins. */
static inline uint64_t mx_store_offset(int slot, int copy) {
    return ((uint64_t)slot * 2 + (uint64_t)copy) * MX_SUPERBLOCK_BYTES;
}

/* Looks at a store as mx_store_look does, but fills all of *out, whatever out->size says. */
int mx_store_see(const char *path, mx_why *why, struct mx_store_facts *out);

/* Reads all superblocks. Returns an enum mx_store_kind or -errno. *out and *slot (0 or 1) are set if one is
 * intact; of another format only out->version is. */
int mx_store_read(int fd, struct mx_superblock *out, int *slot);
/* Does the same with superblocks that were read: copies[slot * 2 + copy]. */
enum mx_store_kind mx_store_choose(const struct mx_superblock copies[4], struct mx_superblock *out,
                                   int *slot);
/* Checks that the extents of an intact superblock are possible, and lie within place_bytes. 0, or -EIO with a
 * sentence that names path. */
int mx_store_check(const struct mx_superblock *s, uint64_t place_bytes, const char *path, mx_why *why);

/* The following functions write. fd was opened with O_DSYNC: what they wrote is on stable storage when they
 * return 0. */

/* Makes a new store above what mx_store_read found (kind, and *now and *slot if it was intact). Only the old
 * notes and extents are lost. */
int mx_store_make(int fd, enum mx_store_kind kind, struct mx_superblock *now, int *slot);
/* Repairs the slot that counts: writes its damaged copy again, and leaves the intact one alone. */
int mx_store_mend(int fd, const struct mx_superblock *now, int slot);
/* Writes next as the generation after *now to the other slot; only then *now and *slot change. */
int mx_store_commit(int fd, const struct mx_superblock *next, struct mx_superblock *now, int *slot);

#endif
