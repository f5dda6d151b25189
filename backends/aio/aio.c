/* SPDX-License-Identifier: BSD-3-Clause */
/* aio - Linux native asynchronous I/O (libaio) with O_DIRECT. */
#include <memext/backend.h>

#include <errno.h>
#include <libaio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct aio_state {
    int fd; /* O_DIRECT */
    io_context_t context;
    uint32_t depth;
    struct iocb *iocbs; /* [depth]; the kernel copies them, so they are free again after io_submit */
    struct iocb **pointers;
    struct io_event *events;
};

static long read_number(const char *path) {
    FILE *file = fopen(path, "re");
    long value = -1;
    if (file != NULL) {
        if (fscanf(file, "%ld", &value) != 1) value = -1;
        fclose(file);
    }
    return value;
}

static int explain_setup(uint32_t depth, int err, mx_why *why) {
    if (err == -EAGAIN)
        return mx_fail(
            why, -ENOTSUP,
            "asynchronous I/O of %u requests cannot be set up: %ld of fs.aio-max-nr = %ld requests "
            "are in use; raise that limit (sysctl fs.aio-max-nr) or lower --queue-depth",
            depth, read_number("/proc/sys/fs/aio-nr"), read_number("/proc/sys/fs/aio-max-nr"));
    if (err == -ENOSYS)
        return mx_fail(
            why, -ENOTSUP,
            "this Linux was built without asynchronous I/O (CONFIG_AIO); use --backend uring or mmap");
    return mx_fail(why, -ENOTSUP,
                   "asynchronous I/O of %u requests cannot be set up: %s; use --backend uring or mmap", depth,
                   strerror(-err));
}

static int aio_probe(const struct mx_place *place, mx_why *why) {
    uint32_t depth = place != NULL ? place->options->queue_depth : 1;
    io_context_t context = NULL;
    int err = io_setup((int)depth, &context);
    if (err != 0) return explain_setup(depth, err, why);
    io_destroy(context);
    return 0;
}

static void aio_close(void *state) {
    struct aio_state *s = state;
    if (s->context != NULL) io_destroy(s->context);
    mx_place_close_again(s->fd);
    free(s->events);
    free(s->pointers);
    free(s->iocbs);
    free(s);
}

static int aio_open(const struct mx_place *place, mx_why *why, struct mx_backend_facts *facts, void **state) {
    uint32_t depth = place->options->queue_depth;
    struct aio_state *s = calloc(1, sizeof *s);
    if (s == NULL) return mx_fail(why, -ENOMEM, "no memory for the backend aio");
    s->fd = -1;
    s->depth = depth;
    s->iocbs = calloc(depth, sizeof *s->iocbs);
    s->pointers = calloc(depth, sizeof(struct iocb *));
    s->events = calloc(depth, sizeof *s->events);
    int err =
        s->iocbs && s->pointers && s->events ? 0 : mx_fail(why, -ENOMEM, "no memory for %u requests", depth);
    *facts = (struct mx_backend_facts){0};
    if (err == 0) err = mx_place_open_direct(place, why, facts, &s->fd);
    if (err == 0) {
        int setup = io_setup((int)depth, &s->context);
        if (setup != 0) err = explain_setup(depth, setup, why);
    }
    if (err != 0) {
        aio_close(s);
        return err;
    }
    *state = s;
    return 0;
}

static int aio_submit(void *state, const struct mx_request *requests, unsigned n) {
    struct aio_state *s = state;
    if (n > s->depth) n = s->depth;
    for (unsigned i = 0; i < n; i++) {
        const struct mx_request *r = &requests[i];
        struct iocb *iocb = s->pointers[i] = &s->iocbs[i];
        if (r->write)
            io_prep_pwrite(iocb, s->fd, r->dram, r->bytes, (long long)r->offset_bytes);
        else
            io_prep_pread(iocb, s->fd, r->dram, r->bytes, (long long)r->offset_bytes);
        iocb->data = (void *)(uintptr_t)r->tag;
    }
    int taken = io_submit(s->context, (long)n, s->pointers);
    return taken == -EAGAIN ? 0 : taken; /* full */
}

static int aio_reap(void *state, unsigned min, unsigned max, struct mx_completion *out) {
    struct aio_state *s = state;
    if (max > s->depth) max = s->depth;
    int n = io_getevents(s->context, (long)min, (long)max, s->events, NULL);
    for (int i = 0; i < n; i++)
        out[i] =
            (struct mx_completion){(uint64_t)(uintptr_t)s->events[i].data, (int64_t)(long)s->events[i].res};
    return n;
}

/* The kernel's end of a context waits for all that it holds. */
static int aio_drain(void *state) {
    struct aio_state *s = state;
    int err = io_destroy(s->context);
    s->context = NULL;
    return err;
}

const struct mx_backend mx_aio = {
    .name = "aio",
    .summary = "Linux native asynchronous I/O, O_DIRECT",
    .face = MX_FACE_TRANSFER,
    .probe = aio_probe,
    .open = aio_open,
    .close = aio_close,
    .submit = aio_submit,
    .reap = aio_reap,
    .drain = aio_drain,
};
