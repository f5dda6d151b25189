/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores. A superblock is large and has a checksum, so the input is a recipe for the four copies and the size
 * of the place:
 *
 *     u8 place size: low 5 bits a power of two from 4 KiB, bit 5: less a byte, bit 6: nothing behind the
 * slots for each copy: u8 how, then, unless it is like the one before or left out: u64 generation, u32
 *     n_extents, u32 note_bytes, u32 finished, u64 magic and u32 version (only if they are not to be right),
 *     u8 rows of extents (raw bytes, as on the device), and u8 bytes of note
 *
 * What is called intact is as memext makes it, and a commit on top of it is what is read next. */
#include "core/store.h"
#include "fuzz.h"

#include <fcntl.h>
#include <xxhash.h>

enum how { LEFT_OUT = 1, LIKE_THE_LAST = 2, OWN_MAGIC = 4, BROKEN = 8, NEXT = 16, TIDY = 32 };

struct input {
    const uint8_t *at;
    size_t left;
};

static void take(struct input *in, void *to, size_t bytes) {
    size_t n = bytes < in->left ? bytes : in->left;
    memset(to, 0, bytes);
    if (n > 0) memcpy(to, in->at, n);
    in->at += n, in->left -= n;
}
static uint8_t take_byte(struct input *in) {
    uint8_t byte;
    take(in, &byte, 1);
    return byte;
}

/* Extents as a mutation seldom hits them: named, aligned, one behind the other. */
static void tidy(struct mx_superblock *s) {
    uint64_t at = MX_DATA_OFFSET_BYTES;
    for (uint32_t i = 0; i < s->n_extents && i < MX_EXTENTS; i++) {
        struct mx_extent *e = mx_extent_at(s, i);
        e->name[0] = (char)('A' + i), e->name[15] = 0;
        e->offset_bytes = at;
        e->bytes = e->bytes % (UINT64_C(64) << 20) + 1;
        at += (e->bytes + MX_EXTENT_ALIGN_BYTES - 1) / MX_EXTENT_ALIGN_BYTES * MX_EXTENT_ALIGN_BYTES;
    }
}

static void cook(struct input *in, uint8_t how, struct mx_superblock *s) {
    memset(s, 0, sizeof *s);
    s->magic = UINT64_C(0x31307478656d656d);
    s->version = MX_STORE_FORMAT;
    take(in, &s->generation, 8);
    take(in, &s->n_extents, 4);
    take(in, &s->note_bytes, 4);
    take(in, &s->finished, 4);
    if (how & OWN_MAGIC) take(in, &s->magic, 8), take(in, &s->version, 4);
    uint32_t rows = take_byte(in) % (MX_EXTENTS + 1);
    for (uint32_t i = 0; i < rows; i++) take(in, mx_extent_at(s, i), sizeof(struct mx_extent));
    take(in, s->note, take_byte(in));
    if (how & TIDY) tidy(s);
    s->checksum = XXH3_64bits(s, offsetof(struct mx_superblock, checksum)) + (how & BROKEN ? 1 : 0);
}

static uint64_t make_place(struct input *in, int fd) {
    static struct mx_superblock s;
    const uint8_t size = take_byte(in);
    uint64_t bytes = (UINT64_C(4096) << (size & 31)) - (size & 32 ? 1 : 0);
    FUZZ_CHECK(ftruncate(fd, 0) == 0);
    memset(&s, 0, sizeof s);
    for (int i = 0; i < 4; i++) {
        const uint8_t how = take_byte(in);
        if (how & LEFT_OUT) continue;
        if (!(how & LIKE_THE_LAST)) cook(in, how, &s);
        FUZZ_CHECK(pwrite(fd, &s, sizeof s, (off_t)mx_store_offset(i / 2, i % 2)) == (ssize_t)sizeof s);
    }
    if (size & 64) bytes = MX_SLOTS_BYTES;
    FUZZ_CHECK(ftruncate(fd, (off_t)bytes) == 0);
    return bytes;
}

static void check_extents(const struct mx_superblock *s, uint64_t place_bytes) {
    FUZZ_CHECK(s->n_extents <= MX_EXTENTS);
    for (uint32_t i = 0; i < s->n_extents; i++) {
        const struct mx_extent *e = mx_extent_in(s, i);
        FUZZ_CHECK(e->name[0] != 0 && memchr(e->name, 0, sizeof e->name) != NULL);
        FUZZ_CHECK(e->bytes > 0 && e->offset_bytes >= MX_DATA_OFFSET_BYTES);
        FUZZ_CHECK(e->offset_bytes <= place_bytes && e->bytes <= place_bytes - e->offset_bytes);
        for (uint32_t k = 0; k < i; k++) {
            const struct mx_extent *other = mx_extent_in(s, k);
            FUZZ_CHECK(strcmp(e->name, other->name) != 0);
            FUZZ_CHECK(e->offset_bytes >= other->offset_bytes + other->bytes ||
                       other->offset_bytes >= e->offset_bytes + e->bytes);
        }
    }
}

/* look must agree with what read and check said. */
static void check_look(const char *path, bool good, const struct mx_superblock *s) {
    static struct mx_store_facts facts = {.size = sizeof facts};
    mx_why why = {0};
    int err = mx_store_look(path, &why, &facts);
    FUZZ_CHECK((err == 0) == good);
    if (err != 0) {
        fuzz_check_refusal(err, &why);
        return;
    }
    FUZZ_CHECK(facts.generation == s->generation && facts.note_bytes == s->note_bytes);
    FUZZ_CHECK(facts.n_extents == s->n_extents && facts.note[s->note_bytes] == 0);
    FUZZ_CHECK(memcmp(facts.note, s->note, s->note_bytes) == 0);
}

static void check_commit(int fd, struct mx_superblock *now, int slot) {
    static struct mx_superblock next, read_back;
    int before = slot, there;
    next = *now;
    next.note_bytes = 1;
    next.note[0]++;
    if (mx_store_commit(fd, &next, now, &slot) != 0) return;
    FUZZ_CHECK(slot == 1 - before && mx_store_read(fd, &read_back, &there) == MX_STORE_INTACT);
    FUZZ_CHECK(there == slot && memcmp(&read_back, now, sizeof read_back) == 0);
}

static char path[] = "store-XXXXXX"; /* in the working directory */
static void remove_place(void) { unlink(path); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static struct mx_superblock s;
    static int fd = -1;
    if (fd < 0) {
        FUZZ_CHECK((fd = mkstemp(path)) >= 0);
        atexit(remove_place);
    }
    struct input in = {data, bytes};
    const uint64_t place_bytes = make_place(&in, fd);
    int slot = -1;
    mx_why why = {0};
    int kind = mx_store_read(fd, &s, &slot);
    FUZZ_CHECK(kind >= MX_STORE_NONE && kind <= MX_STORE_INTACT);
    bool good = kind == MX_STORE_INTACT;
    if (good) {
        FUZZ_CHECK(slot == 0 || slot == 1);
        int err = mx_store_check(&s, place_bytes, path, &why);
        if (err != 0) fuzz_check_refusal(err, &why);
        if (err == 0) check_extents(&s, place_bytes);
        good = err == 0;
    }
    check_look(path, good, &s);
    if (kind == MX_STORE_INTACT) check_commit(fd, &s, slot);
    return 0;
}
