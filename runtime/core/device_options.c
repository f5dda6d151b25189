/* SPDX-License-Identifier: BSD-3-Clause */
/* device_options.c - the options of a device, with defaults, and the choice of its backend. */
#include "core/device.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

struct range {
    const char *name;
    size_t offset; /* of a uint32_t in the options */
    uint32_t least, most, standard;
    const char *unit;
};

static const struct range ranges[] = {
    {"queue depth (--queue-depth)", offsetof(struct mx_device_options, queue_depth), 1, 4096, 32, "requests"},
    {"largest request (--request-size)", offsetof(struct mx_device_options, max_request_bytes), 4096,
     1u << 30, 1u << 20, "bytes"},
    {"number of copying threads (--workers)", offsetof(struct mx_device_options, workers), 1, 64, 0,
     "threads"},
};

static uint32_t standard_workers(void) {
    cpu_set_t allowed;
    int cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
    return cores < 1 ? 1 : cores > 4 ? 4 : (uint32_t)cores;
}

static int check_ranges(struct mx_device_options *options, mx_why *why) {
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        const struct range *r = &ranges[i];
        uint32_t *value = (uint32_t *)((char *)options + r->offset);
        if (*value == 0) *value = r->standard != 0 ? r->standard : standard_workers();
        if (*value < r->least || *value > r->most)
            return mx_fail(why, -EINVAL,
                           "a %s of %u is not possible; choose %u to %u %s, or 0 for the default", r->name,
                           *value, r->least, r->most, r->unit);
    }
    if ((unsigned)options->advice > MX_ADVICE_SCHEDULE)
        return mx_fail(why, -EINVAL,
                       "advice %d is not for a whole device: give a value up to MX_ADVICE_SCHEDULE",
                       (int)options->advice);
    if (options->force && options->resume)
        return mx_fail(why, -EINVAL, "--force starts a new run and --resume continues one; choose one");
    if (options->read_only && !options->resume)
        return mx_fail(why, -EINVAL, "a new store cannot be read only: set resume too");
    return 0;
}

static void list_backends(char *out, size_t capacity) {
    out[0] = 0;
    for (const struct mx_backend *const *b = mx_backends; *b != NULL; b++) {
        size_t used = strlen(out);
        snprintf(out + used, capacity - used, "%s%s", used ? ", " : "", (*b)->name);
    }
}

static int choose_backend(mx_device *d, const char *name, mx_why *why) {
    static const char wrapper[] = "fault:";
    bool wrapped = strncmp(name, wrapper, sizeof wrapper - 1) == 0;
    const char *inner = wrapped ? name + sizeof wrapper - 1 : name;
    d->inner = mx_backend_find(inner);
    if (d->inner == NULL) {
        char names[128];
        list_backends(names, sizeof names);
        return mx_fail(why, -EINVAL, "there is no backend \"%.40s\"; choose one of %s", inner, names);
    }
    d->backend = wrapped ? mx_backend_fault : d->inner;
    snprintf(d->backend_name, sizeof d->backend_name, "%s", name);
    return 0;
}

int mx_device_options_take(mx_device *d, const struct mx_device_options *asked, const char *name,
                           mx_why *why) {
    d->options = *asked;
    int err = check_ranges(&d->options, why);
    if (err == 0) err = choose_backend(d, name, why);
    if (err != 0) return err;
    if (asked->fault != NULL && strlen(asked->fault) >= sizeof d->fault)
        return mx_fail(why, -EINVAL, "--fault is longer than %zu bytes", sizeof d->fault - 1);
    snprintf(d->fault, sizeof d->fault, "%s", asked->fault ? asked->fault : "");
    d->options.fault = d->fault;
    d->options.backend = d->backend_name;
    return 0;
}
