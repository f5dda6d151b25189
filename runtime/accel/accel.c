/* SPDX-License-Identifier: BSD-3-Clause */
/* accel.c - the table of accelerators, and what all of them have in common: limits, counters, injected
 * faults, the first error. */
#include "accel/accel.h"
#include "accel/spec.h"

#include <memext/backend.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct mx_accel_ops mx_accel_cuda, mx_accel_opencl, mx_accel_host;

const struct mx_accel_ops *const mx_accels[] = {&mx_accel_cuda, &mx_accel_opencl, &mx_accel_host, NULL};

enum { MOST_ALLOCATIONS = MX_ACCEL_ALLOCATIONS };

struct mx_accel {
    const struct mx_accel_ops *ops;
    void *state;
    struct mx_accel_facts facts;
    struct mx_accel_counters counters;
    struct {
        char *address;
        uint64_t bytes;
    } allocation[MOST_ALLOCATIONS];
    uint64_t used_bytes;
    bool aside;
    int64_t taken[MX_ACCEL_QUEUES], done[MX_ACCEL_QUEUES];
    /* Faults: the operation that fails, 0 = none. */
    uint64_t fault, late;
    int64_t late_number; /* in late_queue; 0 = not taken yet */
    enum mx_accel_queue late_queue;
    int error;
    mx_why why;
};

/* ---- open and close */

/* Said of an accelerator that has no use for it, a key would be taken for granted. */
static int check_use(const struct mx_accel_ops *ops, const char *keys, mx_why *why) {
    const bool host = ops == &mx_accel_host;
    char text[64];
    if (host && mx_accel_key(keys, "device", text, sizeof text))
        return mx_fail(why, -EINVAL, "--accel host is a single device: leave device=%.40s out", text);
    if (host && mx_accel_key(keys, "fuse", text, sizeof text))
        return mx_fail(
            why, -EINVAL,
            "--accel host computes with engine tiled, which takes many levels at once: leave fuse=%.40s out",
            text);
    if (mx_accel_key(keys, "pin", text, sizeof text) && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return mx_fail(why, -EINVAL, "--accel %s: pin=%.40s is neither 0 nor 1: give one of these", ops->name,
                       text);
    if (!host && !ops->pins_several && mx_accel_key(keys, "pin", text, sizeof text))
        return mx_fail(why, -EINVAL,
                       "--accel %s cannot pin Buffers, its copies use staging memory: leave pin=%.40s out",
                       ops->name, text);
    if (!host && mx_accel_key(keys, "memory", text, sizeof text))
        return mx_fail(
            why, -EINVAL,
            "--accel %s: memory=%.40s is for --accel host alone; give --device-memory %.40s instead",
            ops->name, text, text);
    return 0;
}

static int find(const char *spec, mx_why *why, const struct mx_accel_ops **out) {
    const size_t n = strcspn(spec, ",");
    char reasons[400] = "";
    for (const struct mx_accel_ops *const *a = mx_accels; *a != NULL; a++) {
        const size_t used = strlen(reasons);
        mx_why reason = {""};
        if (strlen((*a)->name) == n && strncmp((*a)->name, spec, n) == 0) return *out = *a, 0;
        if (n != 4 || strncmp(spec, "auto", n) != 0 || !(*a)->automatic) continue;
        if ((*a)->probe(NULL, &reason) == 0) return *out = *a, 0;
        snprintf(reasons + used, sizeof reasons - used, "%s%s: %.180s", used > 0 ? "; " : "", (*a)->name,
                 reason.text);
    }
    if (reasons[0] != 0)
        return mx_fail(why, -ENOTSUP, "--accel auto: there is no accelerator here (%s); leave --accel out",
                       reasons);
    return mx_fail(why, -EINVAL, "--accel '%.40s' is not known; choose auto, cuda, opencl or host", spec);
}

/* Which device it is: the one that is named, or of several processes each the next one. spec: with its
 * number.
 */
enum { MOST_DEVICES = 1024, SPEC_BYTES = 512 };

static int choose_device(const struct mx_accel_options *o, const struct mx_accel_ops *ops,
                         char spec[SPEC_BYTES], struct mx_accel_facts *out, mx_why *why) {
    const char *comma = strchr(o->spec, ',');
    const int32_t places = o->places > 1 ? o->places : 1;
    char text[32];
    out->number = -1;
    out->sharers = places;
    if (snprintf(spec, SPEC_BYTES, "%s", o->spec) >= SPEC_BYTES)
        return mx_fail(why, -EINVAL, "--accel '%.40s...' is longer than %d bytes", o->spec, SPEC_BYTES - 1);
    if (ops->alike == NULL) return 0;
    if (comma != NULL && mx_accel_key(comma + 1, "device", text, sizeof text))
        return out->number = (int32_t)atoi(text), 0;
    if (places == 1) return 0;
    int32_t *number = calloc(MOST_DEVICES, sizeof *number);
    const int n = number == NULL ? mx_fail(why, -ENOMEM, "no memory for the numbers of devices")
                                 : ops->alike(number, MOST_DEVICES, why);
    if (n > 0) out->number = number[o->place % n];
    free(number);
    if (n < 0) return n;
    if (n == 0)
        return mx_fail(why, -ENODEV, "--accel %s: there is no device that ranks can share; leave --accel out",
                       spec);
    const size_t used = strlen(spec);
    snprintf(spec + used, SPEC_BYTES - used, ",device=%d", out->number);
    out->sharers = places / n + (o->place % n < places % n ? 1 : 0);
    return 0;
}

/* What is left for one of several that have taken the same device. */
static int share_memory(const struct mx_accel_options *o, struct mx_accel_facts *f, mx_why *why) {
    if (f->sharers < 2 || f->memory_bytes == UINT64_MAX) return 0;
    const uint64_t all = f->memory_bytes;
    f->memory_bytes /= (uint64_t)f->sharers;
    if (o->memory_bytes <= f->memory_bytes) return 0;
    return mx_fail(
        why, -ENOMEM,
        "%d ranks share %.100s, which has %.1f MiB, and --device-memory of each is %.1f MiB: ask for "
        "%.1f MiB or less",
        f->sharers, f->device, (double)all / 1048576, (double)o->memory_bytes / 1048576,
        (double)f->memory_bytes / 1048576);
}

static int take_facts(mx_accel *a, const struct mx_accel_options *o, const char *keys, mx_why *why) {
    double fault = 0, late = 0, rate = 0, fuse = 0;
    char pin[8];
    struct mx_accel_facts *f = &a->facts;
    const int32_t number = f->number, sharers = f->sharers;
    a->ops->facts(a->state, f);
    f->number = number, f->sharers = sharers;
    snprintf(f->name, sizeof f->name, "%s", a->ops->name);
    int err = mx_accel_number(keys, "fault", &fault, why);
    if (err == 0) err = mx_accel_number(keys, "late", &late, why);
    if (err == 0) err = mx_accel_number(keys, "rate", &rate, why);
    if (err == 0) err = mx_accel_number(keys, "updates", &f->updates_per_s, why);
    if (err == 0) err = mx_accel_number(keys, "fuse", &fuse, why);
    if (err < 0) return err;
    if (fuse != 0 && fuse != 1 && fuse != 2)
        return mx_fail(why, -EINVAL, "--accel %s: fuse=%g levels in one launch are not possible: give 1 or 2",
                       o->spec, fuse);
    f->fuse = (int32_t)fuse;
    f->pin = mx_accel_key(keys, "pin", pin, sizeof pin) ? pin[0] - '0' : -1;
    a->fault = (uint64_t)fault, a->late = (uint64_t)late;
    if (rate > 0) f->put_bytes_per_s = f->get_bytes_per_s = rate;
    if (o->memory_bytes <= f->memory_bytes && (err = share_memory(o, f, why)) < 0) return err;
    if (o->memory_bytes > f->memory_bytes)
        return mx_fail(why, -ENOMEM,
                       "--device-memory of %.1f MiB is more than the %.1f MiB that %.100s has; ask for less",
                       (double)o->memory_bytes / 1048576, (double)f->memory_bytes / 1048576, f->device);
    if (o->memory_bytes > 0) f->memory_bytes = o->memory_bytes;
    if (f->most_bytes > f->memory_bytes) f->most_bytes = f->memory_bytes;
    return 0;
}

int mx_accel_open(const struct mx_accel_options *o, mx_why *why, mx_accel **out) {
    const struct mx_accel_ops *ops = NULL;
    struct mx_accel_facts chosen = {.number = -1};
    const char *comma = strchr(o->spec, ',');
    char spec[SPEC_BYTES];
    mx_why reason = {""};
    int err = find(o->spec, why, &ops);
    if (err == 0) err = mx_accel_check_keys(o->spec, why);
    if (err == 0) err = check_use(ops, comma != NULL ? comma + 1 : "", why);
    if (err == 0) err = choose_device(o, ops, spec, &chosen, why);
    if (err < 0) return err;
    comma = strchr(spec, ',');
    const char *keys = comma != NULL ? comma + 1 : "";
    mx_accel *a = calloc(1, sizeof *a);
    if (a == NULL) return mx_fail(why, -ENOMEM, "no memory for the description of an accelerator");
    a->ops = ops;
    a->facts = chosen;
    err = ops->open(keys, o->memory_bytes, &reason, &a->state);
    if (err < 0 && strncmp(reason.text, "--accel", 7) == 0)
        mx_fail(why, err, "%s", reason.text);
    else if (err < 0)
        mx_fail(why, err, "--accel %s: %.440s, or leave --accel out", ops->name, reason.text);
    if (err == 0) err = take_facts(a, o, keys, why);
    if (err < 0) return mx_accel_close(a), err;
    *out = a;
    return 0;
}

/* A caller that gives up has not released its memory, and a device may continue to use it. */
static void release_all(mx_accel *a) {
    for (int q = 0; q < MX_ACCEL_QUEUES; q++) mx_accel_wait(a, (enum mx_accel_queue)q, a->taken[q]);
    for (int i = 0; i < MOST_ALLOCATIONS; i++) mx_accel_release(a, a->allocation[i].address);
}

void mx_accel_close(mx_accel *a) {
    if (a == NULL) return;
    if (a->state != NULL) {
        release_all(a);
        a->ops->close(a->state);
    }
    free(a);
}

const struct mx_accel_facts *mx_accel_facts(const mx_accel *a) { return &a->facts; }
struct mx_accel_counters mx_accel_counters(const mx_accel *a) {
    return a->counters;
}
uint64_t mx_accel_used_bytes(const mx_accel *a) { return a->used_bytes; }
void mx_accel_aside(mx_accel *a, bool aside) { a->aside = aside; }

/* ---- memory */

int mx_accel_alloc(mx_accel *a, uint64_t bytes, const char *what, mx_why *why, char **address) {
    mx_why reason = {""};
    int i = 0;
    while (i < MOST_ALLOCATIONS && a->allocation[i].address != NULL) i++;
    int err = i == MOST_ALLOCATIONS
                  ? mx_fail(&reason, -ENOMEM, "it has reached the limit of %d allocations", i)
                  : 0;
    if (err == 0 && bytes > a->facts.memory_bytes - a->used_bytes)
        err = mx_fail(&reason, -ENOMEM, "%.1f of %.1f MiB are in use", (double)a->used_bytes / 1048576,
                      (double)a->facts.memory_bytes / 1048576);
    if (err == 0 && bytes > a->facts.most_bytes)
        err = mx_fail(&reason, -ENOMEM, "one allocation there has %.1f MiB at most",
                      (double)a->facts.most_bytes / 1048576);
    if (err == 0) err = a->ops->alloc(a->state, bytes, &reason, address);
    if (err < 0)
        return mx_fail(
            why, err,
            "no %.1f MiB on the accelerator %.100s for %s (%.200s): lower --device-memory or bt, or "
            "leave --accel out",
            (double)bytes / 1048576, a->facts.device, what, reason.text);
    a->allocation[i].address = *address;
    a->allocation[i].bytes = bytes;
    a->used_bytes += bytes;
    return 0;
}

void mx_accel_release(mx_accel *a, char *address) {
    for (int i = 0; i < MOST_ALLOCATIONS && address != NULL; i++)
        if (a->allocation[i].address == address) {
            a->used_bytes -= a->allocation[i].bytes;
            a->allocation[i].address = NULL;
            a->ops->release(a->state, address);
            return;
        }
}

int mx_accel_stage(mx_accel *a, void *host, uint64_t bytes, mx_why *why) {
    const int pinned = a->ops->stage != NULL ? a->ops->stage(a->state, host, bytes, why) : 0;
    a->counters.pinned = pinned > 0;
    return pinned < 0 ? pinned : 0;
}
bool mx_accel_pin(mx_accel *a, void *host, uint64_t bytes) {
    mx_why why;
    const bool pinned =
        a->facts.here || (a->ops->pins_several && a->ops->stage(a->state, host, bytes, &why) > 0);
    (*(pinned ? &a->counters.direct : &a->counters.refused))++;
    return pinned;
}

void mx_accel_unstage(mx_accel *a, void *host) {
    if (a->ops->unstage != NULL) a->ops->unstage(a->state, host);
}

int mx_accel_fail(mx_accel *a, int err, const char *sentence) {
    if (a->error == 0) a->error = mx_fail(&a->why, err, "%s", sentence);
    return a->error;
}

int mx_accel_build(mx_accel *a, const struct mx_accel_program *program) {
    mx_why why = {""};
    if (a->error < 0) return a->error;
    int err =
        a->ops->build != NULL
            ? a->ops->build(a->state, program, &why)
            : mx_fail(&why, -ENOTSUP, "%s has no compiler for kernels (an internal error); leave --accel out",
                      a->facts.device);
    if (err == -ENOMEM || err == -EINVAL) err = -EIO; /* the request was all right */
    return err < 0 ? mx_accel_fail(a, err, why.text) : 0;
}

/* ---- operations */

static const char *const words[] = {[MX_ACCEL_PUT] = "a copy to it",
                                    [MX_ACCEL_GET] = "a copy from it",
                                    [MX_ACCEL_COPY] = "a copy within it",
                                    [MX_ACCEL_WORK] = "a computation"};

static int remember(mx_accel *a, enum mx_accel_queue queue, int err, const char *reason) {
    if (a->error == 0) {
        a->error = err == -ENOMEM || err == -EINVAL ? -EIO : err;
        mx_fail(&a->why, a->error, "the accelerator %.100s failed in %s: %.250s", a->facts.device,
                words[queue], reason[0] != 0 ? reason : strerror(-err));
    }
    return a->error;
}

/* An operation is about to be handed over: is it the one that is to fail? */
static int begin(mx_accel *a, enum mx_accel_queue queue) {
    if (a->error < 0) return a->error;
    a->counters.operations++;
    if (a->counters.operations == a->late) a->late_queue = queue, a->late_number = a->taken[queue] + 1;
    if (a->counters.operations == a->fault) return remember(a, queue, -EIO, "the fault that was asked for");
    return 0;
}

static int64_t end(mx_accel *a, enum mx_accel_queue queue, int err, const mx_why *why) {
    if (err < 0) return remember(a, queue, err, why->text);
    return ++a->taken[queue];
}

static uint64_t bytes_of(const struct mx_accel_span *span, size_t n) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++) bytes += span[i].bytes;
    return bytes;
}

int64_t mx_accel_put(mx_accel *a, const struct mx_accel_span *span, size_t n) {
    mx_why why = {""};
    int err = begin(a, MX_ACCEL_PUT);
    if (err < 0) return err;
    *(a->aside ? &a->counters.aside_put_bytes : &a->counters.put_bytes) += bytes_of(span, n);
    err = a->ops->put(a->state, span, n, &why);
    return end(a, MX_ACCEL_PUT, err, &why);
}

int64_t mx_accel_get(mx_accel *a, const struct mx_accel_span *span, size_t n) {
    mx_why why = {""};
    int err = begin(a, MX_ACCEL_GET);
    if (err < 0) return err;
    *(a->aside ? &a->counters.aside_get_bytes : &a->counters.get_bytes) += bytes_of(span, n);
    err = a->ops->get(a->state, span, n, &why);
    return end(a, MX_ACCEL_GET, err, &why);
}

int64_t mx_accel_copy(mx_accel *a, enum mx_accel_queue queue, const struct mx_accel_copy *copy) {
    mx_why why = {""};
    int err = begin(a, queue);
    if (err < 0) return err;
    err = a->ops->copy(a->state, queue, copy, &why);
    return end(a, queue, err, &why);
}

int64_t mx_accel_level(mx_accel *a, const struct mx_accel_level *level) {
    mx_why why = {""};
    int err = begin(a, MX_ACCEL_WORK);
    if (err < 0) return err;
    err = a->ops->level(a->state, level, &why);
    return end(a, MX_ACCEL_WORK, err, &why);
}

int mx_accel_launch_here(mx_accel *a) {
    int err = begin(a, MX_ACCEL_WORK);
    if (err == 0 && a->counters.operations == a->late)
        err = remember(a, MX_ACCEL_WORK, -EIO, "the fault that was asked for");
    return err;
}

static void take_late(mx_accel *a, enum mx_accel_queue queue) {
    if (a->late_number > 0 && queue == a->late_queue && a->done[queue] >= a->late_number)
        remember(a, queue, -EIO, "the fault that was asked for, found when the operation was done");
}

bool mx_accel_is_done(mx_accel *a, enum mx_accel_queue queue, int64_t number) {
    mx_why why = {""};
    if (a->done[queue] >= number || a->error < 0) return true;
    const int64_t done = a->ops->done(a->state, queue, &why);
    if (done < 0) return remember(a, queue, (int)done, why.text), true;
    a->done[queue] = done;
    take_late(a, queue);
    return done >= number || a->error < 0;
}

int mx_accel_wait(mx_accel *a, enum mx_accel_queue queue, int64_t number) {
    mx_why why = {""};
    if (a->done[queue] < number) {
        int err = a->ops->wait(a->state, queue, number, &why);
        if (err < 0) remember(a, queue, err, why.text);
        a->done[queue] = number;
        take_late(a, queue);
    }
    return a->error;
}

int mx_accel_error(const mx_accel *a, mx_why *why) {
    return a->error < 0 ? mx_fail(why, a->error, "%s", a->why.text) : 0;
}
