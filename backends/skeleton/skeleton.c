/* SPDX-License-Identifier: BSD-3-Clause */
/* skeleton - a backend to copy and fill: synchronous pread and pwrite behind the transfer style.
 *
 * It works, and is compiled and tested, but no table names it. To make a backend of your own:
 *
 *   1. copy this file to backends/NAME/NAME.c and name its table mx_NAME,
 *   2. add mx_NAME to backends/table.c, from which all of core takes them,
 *   3. add it to `targets` of tests/unit/test_conformance.c,
 *   4. run build/release/test_conformance -j1, which takes about a minute.
 *
 * docs/extending.md says where else a backend must be named. Core does the following, so a backend must not:
 * splitting, joining, retry of EAGAIN and EINTR, finishing of short transfers, timing, counting, checks of
 * the place. A backend keeps no statistics. Report what happened, as it happened.
 *
 * Threads: probe, open, close are called by one thread with nothing under way. submit and reap come from one
 * thread at a time. flush, register_memory and unregister_memory may come from any thread meanwhile.
 */
#include <memext/backend.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct skeleton_state {
    int fd;
    uint32_t depth;
    struct mx_completion *done; /* [depth]: finished, and not yet reaped */
    uint32_t n_done;
};

/* 0 if the backend can work on this machine (place NULL) and at this place. Otherwise -ENOTSUP and a sentence
 * that says what is missing and how to get it. */
static int skeleton_probe(const struct mx_place *place, mx_why *why) {
    (void)place, (void)why;
    return 0;
}

/* Core closes place->fd, after close; a backend that needs other flags reopens the place
 * (mx_place_open_direct). All options have their defaults filled in. If an option does not work here, say so
 * in facts->note, and work without it. */
static int skeleton_open(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts,
                         void **state) {
    struct skeleton_state *s = calloc(1, sizeof *s);
    if (s == NULL) return mx_fail(why, -ENOMEM, "no memory for the backend skeleton");
    s->fd = place->fd;
    s->depth = place->options->queue_depth;
    s->done = calloc(s->depth, sizeof *s->done);
    if (s->done == NULL) {
        free(s);
        return mx_fail(why, -ENOMEM, "no memory for %u requests", place->options->queue_depth);
    }
    *facts = (struct mx_backend_facts){.offset_align_bytes = 1, .memory_align_bytes = 1};
    *state = s;
    return 0;
}

static void skeleton_close(void *state) {
    struct skeleton_state *s = state;
    free(s->done);
    free(s);
}

/* Bytes moved (fewer than asked for is allowed, 0 = end of file), or -errno. */
static int64_t move(int fd, const struct mx_request *r) {
    ssize_t n = r->write ? pwrite(fd, r->dram, r->bytes, (off_t)r->offset_bytes)
                         : pread(fd, r->dram, r->bytes, (off_t)r->offset_bytes);
    return n >= 0 ? (int64_t)n : -errno;
}

/* Takes the first k requests and returns k; 0 = full, reap first. The request array is core's: copy what is
 * needed later. An error of one request is the result of its completion, not of submit. */
static int skeleton_submit(void *state, const struct mx_request *requests, unsigned n) {
    struct skeleton_state *s = state;
    unsigned taken = 0;
    for (; taken < n && s->n_done < s->depth; taken++)
        s->done[s->n_done++] = (struct mx_completion){requests[taken].tag, move(s->fd, &requests[taken])};
    return (int)taken;
}

/* Exactly one completion for every request that was taken, in any order. Waits until there are min; core
 * never asks for more than are under way. */
static int skeleton_reap(void *state, unsigned min, unsigned max, struct mx_completion *out) {
    struct skeleton_state *s = state;
    (void)min; /* all that was taken is done */
    unsigned n = 0;
    while (n < max && s->n_done > 0) out[n++] = s->done[--s->n_done];
    return (int)n;
}

extern const struct mx_backend mx_skeleton;
const struct mx_backend mx_skeleton = {
    .name = "skeleton",
    .summary = "one line for memext info",
    .face = MX_FACE_TRANSFER,
    .probe = skeleton_probe,
    .open = skeleton_open,
    .close = skeleton_close,
    .submit = skeleton_submit,
    .reap = skeleton_reap,
    /* .flush: NULL, core calls fdatasync. .register_memory: NULL, Blocks need nothing. */
};
