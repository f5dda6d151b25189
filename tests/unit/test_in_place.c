/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of users as devices: read to their last byte by every backend with a place, and otherwise left alone.
 */
#include "core/device.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const backends[] = {"uring", "aio", "mmap"};
enum { BACKENDS = 3 };

static uint64_t state = 1;

static int64_t pick(int64_t low, int64_t high) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1));
}

struct file {
    char dir[256], path[300];
    int fd;
    size_t bytes;
    unsigned char *image;
    struct stat before;
};

static void make(struct file *f, const char *base, size_t bytes) {
    snprintf(f->dir, sizeof f->dir, "%s/mx-in-place-XXXXXX", base);
    cr_assert(mkdtemp(f->dir) != NULL, "no directory under %s", base);
    snprintf(f->path, sizeof f->path, "%s/field.raw", f->dir);
    f->bytes = bytes;
    f->image = malloc(bytes);
    for (size_t i = 0; i < bytes; i++) f->image[i] = (unsigned char)pick(0, 255);
    int fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    cr_assert(fd >= 0 && mx_write_all(fd, f->image, bytes, 0) == 0 && close(fd) == 0);
    f->fd = open(f->path, O_RDONLY);
    cr_assert(f->fd >= 0 && fstat(f->fd, &f->before) == 0);
}

/* Everything but the time of the last access is as it was, and so is every byte. */
static void check_untouched(struct file *f) {
    struct stat now;
    unsigned char *again = malloc(f->bytes);
    cr_assert(stat(f->path, &now) == 0);
    const struct stat *b = &f->before;
    cr_expect(now.st_size == b->st_size && now.st_ino == b->st_ino && now.st_mode == b->st_mode &&
              now.st_nlink == b->st_nlink && now.st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
              now.st_mtim.tv_sec == b->st_mtim.tv_sec && now.st_ctim.tv_nsec == b->st_ctim.tv_nsec &&
              now.st_ctim.tv_sec == b->st_ctim.tv_sec);
    cr_assert(mx_read_all(f->fd, again, f->bytes, 0) == 0);
    cr_expect(memcmp(again, f->image, f->bytes) == 0);
    free(again);
}

static void drop(struct file *f) {
    check_untouched(f);
    close(f->fd);
    unlink(f->path);
    cr_expect(rmdir(f->dir) == 0, "something was left beside the file");
    free(f->image);
}

static const char *base(void) {
    return getenv("MEMEXT_TEST_DIR") != NULL ? getenv("MEMEXT_TEST_DIR") : "build";
}

static mx_device *open_device(const struct file *f, const char *backend, const char *fault) {
    const struct mx_device_options o = {
        .backend = backend, .path = f->path, .queue_depth = 4, .max_request_bytes = 8192, .fault = fault};
    mx_device *device = NULL;
    mx_why why = {""};
    cr_assert(mx_device_open_file(f->fd, &o, &why, &device) == 0, "%s: %s", backend, why.text);
    return device;
}

static mx_buffer *open_buffer(mx_device *device) {
    mx_buffer *buffer = NULL;
    mx_why why = {""};
    cr_assert(mx_buffer_open(device, MX_FILE_BUFFER, &why, &buffer) == 0, "%s", why.text);
    return buffer;
}

static int read_all(mx_buffer *buffer, struct mx_span *spans, size_t n) {
    mx_ticket *ticket = NULL;
    int err = mx_buffer_read(buffer, spans, n, &ticket);
    return err < 0 ? err : mx_wait(ticket);
}

/* Some pieces, the last of which ends with the block that the file ends in: the bytes of the file, and those
 * that were asked for are counted. */
static void read_pieces(const struct file *f, const char *backend, const char *fault) {
    struct mx_device_facts facts = {.size = sizeof facts};
    mx_device *device = open_device(f, backend, fault);
    mx_buffer *buffer = open_buffer(device);
    mx_device_facts(device, &facts);
    const uint64_t align = facts.offset_align_bytes, end = (f->bytes + align - 1) / align * align;
    mx_block *block = NULL;
    cr_assert(mx_block_create(&(struct mx_block_options){.no_huge = true}, end, NULL, &block) == 0);
    unsigned char *dram = mx_block_data(block);
    cr_expect(mx_buffer_bytes(buffer) == f->bytes && !facts.mapped == (strcmp(backend, "mmap") != 0));
    uint64_t asked = 0;
    for (int i = 0; i < 8; i++) {
        const uint64_t from = (uint64_t)pick(0, (int64_t)(end / align) - 1) * align;
        const uint64_t upto = i < 2 ? end : from + (uint64_t)pick(1, (int64_t)((end - from) / align)) * align;
        struct mx_span span = {from, upto - from, dram + from};
        memset(dram, 0, f->bytes);
        cr_assert(read_all(buffer, &span, 1) == 0, "%s [%llu, %llu) of %zu", backend,
                  (unsigned long long)from, (unsigned long long)upto, f->bytes);
        asked += upto - from;
        const uint64_t there = upto < f->bytes ? upto : f->bytes;
        cr_expect(memcmp(dram + from, f->image + from, there - from) == 0, "%s", backend);
    }
    struct mx_counters c = {.size = sizeof c};
    mx_device_counters(device, &c);
    cr_expect(c.read_bytes == asked && c.write_bytes == 0, "%s: %llu of %llu", backend,
              (unsigned long long)c.read_bytes, (unsigned long long)asked);
    mx_block_free(block);
    mx_buffer_close(buffer);
    mx_device_close(device);
}

Test(in_place, every_byte_of_files_of_any_length) {
    static const size_t lengths[] = {1, 511, 4096, 4097, 8192, 20000, 100003};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct file f;
        make(&f, base(), lengths[i]);
        for (int b = 0; b < BACKENDS; b++) read_pieces(&f, backends[b], NULL);
        read_pieces(&f, "fault:uring", "seed=3,short=0.4,reorder=1");
        drop(&f);
    }
}

/* Where there is no O_DIRECT files are read all the same, to the byte. */
Test(in_place, memory_file_systems) {
    struct file f;
    if (access("/dev/shm", W_OK) != 0) cr_skip_test("no /dev/shm");
    make(&f, "/dev/shm", 70001);
    for (int b = 0; b < BACKENDS; b++) {
        struct mx_device_facts facts = {.size = sizeof facts};
        read_pieces(&f, backends[b], NULL);
        mx_device *device = open_device(&f, backends[b], NULL);
        mx_device_facts(device, &facts);
        cr_expect(!facts.bypasses_page_cache && facts.offset_align_bytes == 1, "%s", backends[b]);
        mx_device_close(device);
    }
    drop(&f);
}

/* Writes, new Buffers and commits are refused; no lock keeps others out while the device is open, and closing
 * it takes none of theirs away. */
Test(in_place, nothing_is_written_or_locked) {
    struct file f;
    make(&f, base(), 12345);
    for (int b = 0; b < BACKENDS; b++) {
        mx_device *device = open_device(&f, backends[b], NULL);
        mx_buffer *buffer = open_buffer(device), *other = NULL;
        mx_block *block = NULL;
        mx_ticket *ticket = NULL;
        mx_why why = {""};
        cr_assert(mx_block_create(&(struct mx_block_options){.no_huge = true}, 8192, NULL, &block) == 0);
        const struct mx_span span = {0, 4096, mx_block_data(block)};
        cr_expect(mx_buffer_write(buffer, &span, 1, &ticket) == -EROFS, "%s", backends[b]);
        cr_expect(mx_buffer_create(device, "new", 4096, &why, &other) == -EROFS && why.text[0] != 0);
        cr_expect(mx_device_commit(device, "note", 4) == -EROFS);
        const int mine = open(f.path, O_RDWR);
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        cr_assert(mine >= 0 && flock(mine, LOCK_EX | LOCK_NB) == 0, "%s", backends[b]);
        cr_expect(fcntl(mine, F_OFD_SETLK, &whole) == 0, "%s", backends[b]);
        mx_block_free(block);
        mx_buffer_close(buffer);
        mx_device_close(device);
        const int second = open(f.path, O_RDWR);
        cr_expect(flock(second, LOCK_EX | LOCK_NB) != 0, "the lock of another is gone");
        close(second);
        close(mine);
    }
    drop(&f);
}

/* A file that is cut short while it is open: what is gone fails, and nothing waits for it. (Of a mapping the
 * kernel ends the process.) */
Test(in_place, a_file_that_shrinks) {
    for (int b = 0; b < 2; b++) {
        struct file f;
        make(&f, base(), 40860); /* ends in the last of its blocks, whatever their size */
        mx_device *device = open_device(&f, backends[b], NULL);
        mx_buffer *buffer = open_buffer(device);
        mx_block *block = NULL;
        cr_assert(mx_block_create(&(struct mx_block_options){.no_huge = true}, 40960, NULL, &block) == 0);
        cr_assert(truncate(f.path, 10000) == 0);
        struct mx_span all = {0, 40960, mx_block_data(block)}, head = {0, 8192, mx_block_data(block)};
        const int err = read_all(buffer, &all, 1);
        cr_expect(err == -EIO, "%s: %d", backends[b], err);
        cr_expect(read_all(buffer, &head, 1) == 0, "%s", backends[b]);
        mx_block_free(block);
        mx_buffer_close(buffer);
        mx_device_close(device);
        f.bytes = 10000;
        cr_assert(fstat(f.fd, &f.before) == 0);
        drop(&f);
    }
}

Test(in_place, refusals) {
    struct file f;
    mx_device *device = NULL;
    mx_why why = {""};
    make(&f, base(), 5000);
    struct mx_device_options o = {.backend = "dram", .path = f.path};
    cr_expect(mx_device_open_file(f.fd, &o, &why, &device) == -ENOTSUP && strstr(why.text, "dram") != NULL);
    o.backend = "tape";
    cr_expect(mx_device_open_file(f.fd, &o, &why, &device) == -EINVAL && strstr(why.text, "tape") != NULL);
    o.backend = "uring";
    o.path = "a pipe";
    int pipe_ends[2];
    cr_assert(pipe(pipe_ends) == 0);
    cr_expect(mx_device_open_file(pipe_ends[0], &o, &why, &device) == -ENOTBLK &&
              strstr(why.text, "a pipe") != NULL);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    drop(&f);
}
