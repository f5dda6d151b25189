/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate.c - measures the rates for predictions, of the place of a store and both engines, and stores
 * them. */
#include "tune/calibrate.h"
#include "tune/tune.h"

#include "machine/minmax.h"
#include "machine/size.h"

#include <memext/backend.h>

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { CALIBRATION_SHARE = 4, LEAST_CACHES = 2 };
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

/* Stores the rates. If that fails, *why says so, unless it says something already. */
static void keep(const char *cache, const char *device_key, const char *compute_key,
                 const struct mx_rates *rates, mx_why *why) {
    mx_why said = {""};
    if (cache[0] != 0 && mx_rates_store(cache, device_key, compute_key, rates, &said) < 0 &&
        why->text[0] == 0)
        mx_fail(why, 0, "the measured rates are not kept for later plans: %.300s", said.text);
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
    mx_why said = {""};
    int err = mx_calibrate_device(&o, seconds, 0, &said, rates);
    if (why->text[0] == 0 || err < 0) *why = said; /* what was said of the computation stays */
    if (err == 0 && cache[0] != 0 && mx_rates_device_key(backend, o.path, key, sizeof key, NULL) == 0)
        keep(cache, key, NULL, rates, why);
    return err;
}

static uint64_t caches_bytes(const struct mx_machine *m) {
    return m->l3_bytes * (uint64_t)mx_max(1, m->sockets);
}

/* A quarter of what the process sees: the rest is for others. */
static uint64_t within_share(const struct mx_machine *machine, uint64_t most) {
    const uint64_t share = mx_machine_dram_bytes(machine) / CALIBRATION_SHARE;
    return share > 0 && share < most ? share : most;
}

uint64_t mx_calibration_bytes(const struct mx_machine *machine, uint64_t most) {
    const uint64_t beyond = 3 * caches_bytes(machine);
    const uint64_t bytes = beyond > DEFAULT_MEMORY_BYTES ? beyond : DEFAULT_MEMORY_BYTES;
    most = within_share(machine, most);
    return bytes < most ? bytes : most;
}

bool mx_calibration_leaves_caches(const struct mx_machine *machine, uint64_t bytes) {
    return bytes >= LEAST_CACHES * caches_bytes(machine);
}

/* Measures the engines, and stores their rates if they are those of the machine, not of a cache. */
static int renew_compute(const struct mx_problem *problem, const struct mx_machine *machine, int32_t threads,
                         uint64_t most, double seconds, const char *cache, mx_why *why,
                         struct mx_rates *rates) {
    char key[512];
    const uint64_t bytes = mx_calibration_bytes(machine, most);
    const bool known = rates->refined.sizes.slab > 0 && rates->refined.raised > 0 &&
                       mx_refined_for(&rates->refined, problem);
    int err = mx_calibrate_compute(problem, machine, threads, COMPUTE_SHARE * seconds, bytes, why, rates);
    if (err == 0 && seconds > 0 && known) rates->tiled_updates_per_s *= rates->refined.raised;
    if (err == 0 && !(seconds > 0))
        err = mx_refine_tiled(problem, machine, threads, 0, within_share(machine, most), why, rates);
    if (err < 0) return err;
    if (!mx_calibration_leaves_caches(machine, bytes)) {
        const uint64_t caches = caches_bytes(machine);
        mx_fail(
            why, 0,
            "the speed of the computation was measured in %s of DRAM, much of which L3 caches of %s hold: "
            "this plan uses it, and later ones do not; memext tune --calibrate keeps it where a process may "
            "use %s of memory",
            mx_size(bytes).text, mx_size(caches).text,
            mx_size(CALIBRATION_SHARE * LEAST_CACHES * caches).text);
        return 0;
    }
    mx_rates_compute_key(machine, problem, threads, key, sizeof key);
    keep(cache, NULL, key, rates, why);
    return 0;
}

int mx_rates_renew(const struct mx_device_options *device, const struct mx_problem *problem,
                   const struct mx_machine *machine, int32_t threads, uint64_t most, double seconds,
                   mx_why *why, struct mx_rates *rates) {
    char cache[PATH_MAX] = "";
    mx_why none = {""};
    if (mx_rates_path(cache, sizeof cache, &none) < 0) cache[0] = 0;
    const int err = renew_compute(problem, machine, threads, most, seconds, cache, why, rates);
    if (err < 0) return err;
    if (none.text[0] != 0 && why->text[0] == 0) *why = none;
    return device != NULL ? renew_device(device, cache, (1 - COMPUTE_SHARE) * seconds, why, rates) : 0;
}
