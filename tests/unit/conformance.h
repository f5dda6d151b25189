/* SPDX-License-Identifier: BSD-3-Clause */
/* conformance.h - places to test on (directories, files, loop devices, mounts), and patterns to write there.
 * Mounts live in a mount namespace of the test's own and loop devices detach themselves, so that nothing is
 * left behind even by a crash. */
#ifndef MX_CONFORMANCE_H
#define MX_CONFORMANCE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <memext/backend.h>
#include <memext/memext.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

static inline struct mx_budget_facts budget_facts(const mx_budget *budget) {
    struct mx_budget_facts facts = {.size = sizeof facts};
    mx_budget_facts(budget, &facts);
    return facts;
}

/* ---- the test's own directory */

static char dir[256];

static inline const char *in_dir(const char *name) {
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, 512, "%s/%s", dir, name);
    return path;
}

__attribute__((format(printf, 1, 2))) static inline int shell(const char *format, ...) {
    char command[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return system(command);
}

static inline void make_dir(void) {
    const char *base = getenv("MEMEXT_TEST_DIR");
    if (base == NULL) base = access("build", W_OK) == 0 ? "build" : "/var/tmp";
    snprintf(dir, sizeof dir, "%.200s/conformance.XXXXXX", base);
    cr_assert_not_null(mkdtemp(dir), "%s: %s", dir, strerror(errno));
}

static inline void remove_dir(void) {
    if (dir[0] != 0) shell("rm -rf --one-file-system '%s'", dir);
    dir[0] = 0;
}

static inline void need_root(void) {
    if (geteuid() != 0) cr_skip_test("needs root for loop devices, mounts or swap");
}

static inline void make_file(const char *path, uint64_t bytes) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
    if (bytes > 0) cr_assert_eq(posix_fallocate(fd, 0, (off_t)bytes), 0);
    close(fd);
}

/* ---- loop devices */

struct loop {
    int fd; /* the device detaches when this and all other users are closed */
    char path[32];
};

/* A loop device of a new file, or one that skips. read_only: 1 = the device refuses writes. */
static inline struct loop make_loop(const char *name, uint64_t bytes, int read_only) {
    struct loop loop = {-1, ""};
    const char *file = in_dir(name);
    if (access(file, F_OK) != 0) make_file(file, bytes);
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0) cr_skip_test("no loop devices here");
    int backing = open(file, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
    for (int tries = 0; tries < 3000 && loop.fd < 0; tries++) { /* others want one too */
        int number = ioctl(control, LOOP_CTL_GET_FREE);
        snprintf(loop.path, sizeof loop.path, "/dev/loop%d", number);
        int fd = open(loop.path, O_RDWR | O_CLOEXEC);
        struct loop_config config = {
            .fd = (__u32)backing, .info.lo_flags = LO_FLAGS_AUTOCLEAR | (read_only ? LO_FLAGS_READ_ONLY : 0)};
        if (fd >= 0 && ioctl(fd, LOOP_CONFIGURE, &config) == 0)
            loop.fd = fd;
        else if (fd >= 0)
            close(fd);
        if (loop.fd < 0) usleep(20000);
    }
    close(backing);
    close(control);
    if (loop.fd < 0) cr_skip_test("no loop device can be set up here");
    return loop;
}

/* Mounts from here on end with this process. */
static inline void own_mounts(void) {
    need_root();
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        cr_skip_test("no mount namespace of its own for the test");
}

/* ---- patterns */

static inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline void fill_pattern(void *memory, uint64_t bytes, uint64_t seed) {
    uint64_t *word = memory;
    for (uint64_t i = 0; i < bytes / 8; i++) word[i] = mix(seed + i + 1);
}

/* Of a sequence of its own per caller: threads share nothing. */
static inline uint64_t draw(uint64_t *state, uint64_t below) {
    return mix(*state += UINT64_C(0x9e3779b97f4a7c15)) % below;
}

/* ---- devices */

static inline mx_device *open_ok(const struct mx_device_options *options) {
    mx_why why = {""};
    mx_device *device = NULL;
    int err = mx_device_open(options, &why, &device);
    cr_assert_eq(err, 0, "%s on %s: %d %s", options->backend, options->path, err, why.text);
    return device;
}

/* Opening fails with err and a sentence. */
static inline void refused(const struct mx_device_options *options, int want, const char *word) {
    mx_why why = {""};
    mx_device *device = NULL;
    int err = mx_device_open(options, &why, &device);
    cr_expect_eq(err, want, "%s on %s: got %d, not %d: %s", options->backend ? options->backend : "(default)",
                 options->path ? options->path : "(none)", err, want, why.text);
    cr_expect_not_null(strstr(why.text, word), "\"%s\" is not in: %s", word, why.text);
    if (err == 0) mx_device_close(device);
}

static inline mx_buffer *create_ok(mx_device *device, const char *name, uint64_t bytes) {
    mx_why why = {""};
    mx_buffer *buffer = NULL;
    int err = mx_buffer_create(device, name, bytes, &why, &buffer);
    cr_assert_eq(err, 0, "%s", why.text);
    return buffer;
}

static inline mx_block *block_ok(mx_device *device, uint64_t bytes) {
    mx_why why = {""};
    mx_block *block = NULL;
    int err = mx_block_create(&(struct mx_block_options){.device = device}, bytes, &why, &block);
    cr_assert_eq(err, 0, "%s", why.text);
    return block;
}

static inline int write_now(mx_buffer *buffer, uint64_t offset, uint64_t bytes, void *dram) {
    mx_ticket *ticket = NULL;
    int err = mx_buffer_write(buffer, &(struct mx_span){offset, bytes, dram}, 1, &ticket);
    return err != 0 ? err : mx_wait(ticket);
}

static inline int read_now(mx_buffer *buffer, uint64_t offset, uint64_t bytes, void *dram) {
    mx_ticket *ticket = NULL;
    int err = mx_buffer_read(buffer, &(struct mx_span){offset, bytes, dram}, 1, &ticket);
    return err != 0 ? err : mx_wait(ticket);
}

#endif
