/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate.c - measures the rates for predictions, of the place of a store and both engines, and stores
 * them. */
#include "tune/calibrate.h"
#include "tune/tune.h"

#include <memext/backend.h>

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define COMPUTE_SHARE 0.4 /* of given seconds; the rest is the device's */

/* A directory or block device as it is; of a file its directory. */
static const char *place_of(const char *path, char *copy, size_t capacity) {
    struct stat st;
    int saved = errno;
    bool whole = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    errno = saved;
    if (whole || (size_t)snprintf(copy, capacity, "%s", path) >= capacity) return path;
    return dirname(copy);
}

static int renew_device(const struct mx_device_options *device, const char *cache, double seconds,
                        mx_why *why, struct mx_rates *rates) {
    char key[512], copy[PATH_MAX];
    struct mx_device_options o = *device;
    const char *backend = o.backend != NULL ? o.backend : "uring";
    if (o.path == NULL)
        return mx_fail(why, -EINVAL,
                       "there is no device to measure: name it with -d PATH, or leave the backend out");
    o.path = place_of(o.path, copy, sizeof copy);
    int err = mx_calibrate_device(&o, seconds, 0, why, rates);
    if (err == 0 && cache[0] != 0 && mx_rates_device_key(backend, o.path, key, sizeof key, NULL) == 0)
        mx_rates_store(cache, key, NULL, rates, NULL);
    return err;
}

int mx_rates_renew(const struct mx_device_options *device, const struct mx_problem *problem,
                   const struct mx_machine *machine, int32_t threads, uint64_t memory_bytes, double seconds,
                   mx_why *why, struct mx_rates *rates) {
    char key[512], cache[PATH_MAX] = "";
    mx_rates_path(cache, sizeof cache, NULL);
    uint64_t least = memory_bytes < DEFAULT_MEMORY_BYTES ? memory_bytes : DEFAULT_MEMORY_BYTES;
    const bool known = rates->refined.sizes.slab > 0 && rates->refined.raised > 0 &&
                       mx_refined_for(&rates->refined, problem);
    int err = mx_calibrate_compute(problem, machine, threads, COMPUTE_SHARE * seconds, least, why, rates);
    if (err == 0 && seconds > 0 && known) rates->tiled_updates_per_s *= rates->refined.raised;
    if (err == 0 && !(seconds > 0))
        err = mx_refine_tiled(problem, machine, threads, 0, memory_bytes, why, rates);
    if (err < 0) return err;
    mx_rates_compute_key(machine, problem, threads, key, sizeof key);
    if (cache[0] != 0) mx_rates_store(cache, NULL, key, rates, NULL);
    return device != NULL ? renew_device(device, cache, (1 - COMPUTE_SHARE) * seconds, why, rates) : 0;
}
