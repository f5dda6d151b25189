/* SPDX-License-Identifier: BSD-3-Clause */
/* swap - Buffers are anonymous memory that Linux moves to swap space; Blocks are locked in DRAM. */
#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static int swap_probe(const struct mx_place *place, mx_why *why) {
    (void)place;
    FILE *file = fopen("/proc/swaps", "re");
    char line[4352];
    int lines = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) lines++;
    if (file != NULL) fclose(file);
    if (lines > 1) return 0; /* the first is a heading */
    return mx_fail(
        why, -ENOTSUP,
        "no swap space is active; make some as root: fallocate -l 16G /swapfile, chmod 600 /swapfile, "
        "mkswap /swapfile, swapon /swapfile");
}

static int swap_open(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts,
                     void **state) {
    (void)place, (void)why;
    *facts = (struct mx_backend_facts){.offset_align_bytes = 1, .memory_align_bytes = 1};
    *state = NULL;
    return 0;
}

static int swap_map(void *state, uint64_t offset_bytes, uint64_t bytes, mx_why *why, void **out) {
    (void)state, (void)offset_bytes;
    void *base;
    /* Not reserved: the kernel's guess whether it may fit is not better than core's check against memory and
     * swap. */
    int err = mx_map_aligned(-1, 0, bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, &base);
    if (err != 0)
        return mx_fail(why, err,
                       "there is no memory for a Buffer of %.1f MiB: %s; choose a smaller grid or a backend "
                       "with a store (-d)",
                       (double)bytes / 1048576, strerror(-err));
    *out = base;
    return 0;
}

/* Never MADV_DONTNEED: on anonymous memory it destroys the data. */
static const struct {
    enum mx_advice advice;
    int kernel;
} advices[] = {
    {MX_ADVICE_NONE, MADV_NORMAL},
    {MX_ADVICE_SEQUENTIAL, MADV_SEQUENTIAL},
    {MX_ADVICE_RANDOM, MADV_RANDOM},
    {MX_ADVICE_WILLNEED, MADV_WILLNEED},
    {MX_ADVICE_HUGEPAGE, MADV_HUGEPAGE},
    {MX_ADVICE_SCHEDULE, MADV_NORMAL},
    {MX_ADVICE_POPULATE, MADV_POPULATE_READ},
    {MX_ADVICE_DROP, MADV_PAGEOUT},
};

static int swap_advise(void *state, void *base, uint64_t bytes, enum mx_advice advice) {
    (void)state;
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++)
        if (advices[i].advice == advice) return madvise(base, bytes, advices[i].kernel) == 0 ? 0 : -errno;
    return -EINVAL;
}

static int swap_unmap(void *state, void *base, uint64_t bytes) {
    (void)state;
    return munmap(base, bytes) == 0 ? 0 : -errno;
}

const struct mx_backend mx_swap = {
    .name = "swap",
    .summary = "anonymous memory, moved to swap space by Linux; Blocks are locked",
    .face = MX_FACE_MAPPED,
    .anonymous = true,
    .locks_blocks = true,
    .probe = swap_probe,
    .open = swap_open,
    .map = swap_map,
    .advise = swap_advise,
    .unmap = swap_unmap,
};
