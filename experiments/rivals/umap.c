/* SPDX-License-Identifier: BSD-3-Clause */
/* umap.c - the kernel of rows.c over files that LLNL's UMap maps by userfaultfd, a step a pass.
 *
 *     umap STEPS THREADS SLAB OUTPUT.npy WORKDIR STATE.npy [C.npy ...]
 *
 * The files of numpy, whose cells begin in the middle of a page, are copied into files that can be mapped, and the result out of one. Knobs of UMap are in
 * its environment variables: UMAP_PAGESIZE (bytes), UMAP_BUFSIZE (pages), UMAP_PAGE_FILLERS, UMAP_PAGE_EVICTORS. Prints the seconds of import
 * and export as JSON. */
#define _GNU_SOURCE
#include "rows.c"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <umap/umap.h>
#include <unistd.h>

enum { HEADER = 128, MOST = 2 + mx_n_fixed };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void all(ssize_t (*move)(int, void *, size_t), int fd, char *at, size_t bytes) {
    while (bytes > 0) {
        const ssize_t n = move(fd, at, bytes);
        if (n <= 0) fail("umap: read or write");
        at += n;
        bytes -= (size_t)n;
    }
}

static ssize_t writing(int fd, void *at, size_t bytes) { return write(fd, at, bytes); }
static ssize_t reading(int fd, void *at, size_t bytes) { return read(fd, at, bytes); }

/* {x, y, z} of a file that the experiment has written. */
static void shape(const char *path, int64_t n[3]) {
    char text[HEADER + 1] = {0};
    const int fd = open(path, O_RDONLY);
    if (fd < 0) fail(path);
    all(reading, fd, text, HEADER);
    close(fd);
    const char *at = strstr(text + 10, "'shape': (");
    long long z, y, x;
    if (at == NULL || sscanf(at + 10, "%lld, %lld, %lld", &z, &y, &x) != 3) fail(path);
    n[0] = x, n[1] = y, n[2] = z;
}

/* A file in the work directory with the cells of a .npy file, mapped by UMap. */
static void *mapped(const char *folder, const char *name, const char *from, size_t bytes, size_t page) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int source = open(from, O_RDONLY), fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (source < 0 || fd < 0 || lseek(source, HEADER, SEEK_SET) < 0) fail(path);
    char *some = malloc(1 << 20);
    for (size_t done = 0, n; done < bytes; done += n) {
        n = bytes - done < 1 << 20 ? bytes - done : 1 << 20;
        all(reading, source, some, n);
        all(writing, fd, some, n);
    }
    free(some);
    const size_t length = (bytes + page - 1) / page * page;
    if (ftruncate(fd, (off_t)length) != 0 || fsync(fd) != 0) fail(path);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    close(source);
    const int direct = open(path, O_RDWR | O_DIRECT);
    if (direct < 0) fail(path);
    void *at = umap(NULL, length, PROT_READ | PROT_WRITE, UMAP_PRIVATE, direct, 0);
    if (at == UMAP_FAILED) fail("umap");
    return at;
}

int main(int argc, char **argv) {
    if (argc != 7 + mx_n_fixed) {
        fprintf(stderr, "usage: umap STEPS THREADS SLAB OUTPUT.npy WORKDIR STATE.npy and %d files of C\n", mx_n_fixed);
        return 2;
    }
    const double begin = now();
    const int64_t steps = atoll(argv[1]), threads = atoll(argv[2]), slab = atoll(argv[3]);
    const size_t page = umapcfg_get_umap_page_size();
    int64_t n[3];
    shape(argv[6], n);
    const size_t cells = (size_t)(n[0] * n[1] * n[2]), bytes = cells * mx_state_[0].bytes, plane = bytes / (size_t)n[2];
    void *u[2] = {mapped(argv[5], "umap-0", argv[6], bytes, page), mapped(argv[5], "umap-1", argv[6], bytes, page)};
    const void *c[mx_n_fixed + 1];
    for (int i = 0; i < mx_n_fixed; i++) {
        char name[32];
        snprintf(name, sizeof name, "umap-c%d", i);
        c[i] = mapped(argv[5], name, argv[7 + i], cells * mx_fixed_[i].bytes, page);
    }
    const double imported = now();
    for (int64_t t = 0; t < steps; t++)
        for (int64_t z = H; z < n[2] - H; z += slab) {
            const int64_t end = z + slab < n[2] - H ? z + slab : n[2] - H, box[6] = {H, n[0] - H, H, n[1] - H, z, end};
            rival_level(u[(t + 1) % 2], u[t % 2], c, n, box, threads);
        }
    const double stepped = now();
    const int out = open(argv[4], O_RDWR | O_CREAT | O_TRUNC, 0644), in = open(argv[6], O_RDONLY);
    char header[HEADER], *copy = malloc(plane);
    if (out < 0 || in < 0 || copy == NULL) fail(argv[4]);
    all(reading, in, header, HEADER);
    all(writing, out, header, HEADER);
    for (int64_t z = 0; z < n[2]; z++) {
        memcpy(copy, (char *)u[steps % 2] + (size_t)z * plane, plane);
        all(writing, out, copy, plane);
    }
    if (fsync(out) != 0) fail(argv[4]);
    printf("{\"import_s\": %.6f, \"export_s\": %.6f}\n", imported - begin, now() - stepped);
    fflush(stdout);
    _exit(0); /* uunmap would write the last dirty pages of work files that nobody needs */
}
