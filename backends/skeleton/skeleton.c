/* SPDX-License-Identifier: BSD-3-Clause */
/* skeleton - a backend to copy and fill: it waits for each pread and pwrite.
 *
 * It works and is tested, but is not in the list of backends. docs/extending.md says how to make a backend of
 * it. Core does the following, so a backend must not: splitting, joining, retry of EAGAIN and EINTR,
 * finishing of short transfers, timing, counting, checks of the place.
 *
 * A backend that has several transfers under way has submit and reap instead of move (backends/aio).
 */
#include <memext/backend.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct skeleton_state {
    int fd;
};

/* Core closes place->fd, after close. A backend that needs other flags reopens the place
 * (mx_place_open_direct). All options have their defaults filled in. If an option does not work here, say so
 * in facts->note, and work without it. */
static int skeleton_open(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts,
                         void **state) {
    struct skeleton_state *s = malloc(sizeof *s);
    if (s == NULL) return mx_fail(why, -ENOMEM, "no memory for the backend skeleton");
    s->fd = place->fd;
    *facts = (struct mx_backend_facts){.offset_align_bytes = 1, .memory_align_bytes = 1};
    *state = s;
    return 0;
}

/* One thread at a time calls it. It returns the bytes that were moved or -errno, as they are: core repeats
 * what is worth it, and goes on with the other requests. */
static int64_t skeleton_move(void *state, const struct mx_request *r) {
    struct skeleton_state *s = state;
    const ssize_t n = r->write ? pwrite(s->fd, r->dram, r->bytes, (off_t)r->offset_bytes)
                               : pread(s->fd, r->dram, r->bytes, (off_t)r->offset_bytes);
    return n >= 0 ? n : -errno;
}

const struct mx_backend mx_skeleton = {
    .name = "skeleton",
    .summary = "one line for memext info",
    .face = MX_FACE_TRANSFER,
    .by_name = true, /* never the default */
    .open = skeleton_open,
    .close = free,
    .move = skeleton_move,
    /* .probe: NULL, it works everywhere. .flush: NULL, core calls fdatasync. */
};
