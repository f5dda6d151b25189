/* SPDX-License-Identifier: BSD-3-Clause */
/* dram - Buffers are anonymous memory that stays resident: the papers' "normal execution". core refuses
 * Buffers that do not fit into memory. */
#include <memext/backend.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static int dram_open(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts,
                     void **state) {
    (void)place, (void)why;
    *facts = (struct mx_backend_facts){.offset_align_bytes = 1, .memory_align_bytes = 1};
    *state = NULL;
    return 0;
}

static int dram_map(void *state, uint64_t offset_bytes, uint64_t bytes, mx_why *why, void **out) {
    (void)state, (void)offset_bytes;
    void *base;
    int err = mx_map_aligned(-1, 0, bytes, MAP_PRIVATE | MAP_ANONYMOUS, &base);
    if (err != 0)
        return mx_fail(why, err,
                       "there is no memory for a Buffer of %.1f MiB: %s; choose a smaller grid or a backend "
                       "with a store (-d)",
                       (double)bytes / 1048576, strerror(-err));
    madvise(base, bytes, MADV_HUGEPAGE); /* fewer TLB misses; without huge pages it works all the same */
    *out = base;
    return 0;
}

/* Everything is there and stays there: advice has nothing to do. */
static int dram_advise(void *state, void *base, uint64_t bytes, enum mx_advice advice) {
    (void)state, (void)base, (void)bytes, (void)advice;
    return 0;
}

static int dram_unmap(void *state, void *base, uint64_t bytes) {
    (void)state;
    return munmap(base, bytes) == 0 ? 0 : -errno;
}

const struct mx_backend mx_dram = {
    .name = "dram",
    .summary = "anonymous memory, all of it resident, for grids that fit in memory",
    .face = MX_FACE_MAPPED,
    .anonymous = true,
    .open = dram_open,
    .map = dram_map,
    .advise = dram_advise,
    .unmap = dram_unmap,
};
