/* store.h - what memext writes before the data: two superblocks that are written in turn.
 *
 *     0 KiB superblock    4 KiB superblock    2 MiB extents, each at a multiple of 2 MiB
 *
 * The intact one with the larger generation counts. A commit writes the other one, so a torn write never
 * harms the state that was committed before. Numbers are in the byte order of the machine that made the
 * store; the magic number tells another order apart.
 */
#ifndef MX_STORE_H
#define MX_STORE_H

#include <memext/memext.h>

enum { MX_EXTENTS = 32, MX_SUPERBLOCK_BYTES = 4096 };
#define MX_DATA_OFFSET_BYTES (UINT64_C(2) << 20)
#define MX_EXTENT_ALIGN_BYTES (UINT64_C(2) << 20)

struct mx_extent {
    char name[16];
    uint64_t offset_bytes, bytes;
};

/* On the device exactly as here. */
struct mx_superblock {
    uint64_t magic;
    uint32_t version;
    uint32_t finished; /* 1 = the note tells of a run that is done */
    uint64_t generation;
    uint32_t n_extents, note_bytes;
    struct mx_extent extents[MX_EXTENTS];
    uint8_t note[MX_NOTE_BYTES];
    uint8_t unused[MX_SUPERBLOCK_BYTES - 32 - 32 * MX_EXTENTS - MX_NOTE_BYTES - 8];
    uint64_t checksum; /* XXH3-64 of everything before */
};

enum mx_store_kind {
    MX_STORE_NONE,    /* memext never wrote here */
    MX_STORE_DAMAGED, /* it did, but neither superblock is intact */
    MX_STORE_INTACT,
};

/* Looks at both superblocks; *out and *slot (0 or 1) only if intact. Returns an enum mx_store_kind or -errno.
 */
int mx_store_read(int fd, struct mx_superblock *out, int *slot);
/* A new store: generation 1 in slot 0, the other slot wiped, on stable storage. */
int mx_store_make(int fd, struct mx_superblock *out, int *slot);
/* Writes next as the generation after *now to the other slot, on stable storage; only then *now and *slot
 * change. */
int mx_store_commit(int fd, const struct mx_superblock *next, struct mx_superblock *now, int *slot);

#endif
