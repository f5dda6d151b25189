/* SPDX-License-Identifier: BSD-3-Clause */
/* rates.c - rates for predictions: defaults, and the cache of measured ones. */
#include "tune/job.h"

#include "machine/file.h"

#include <memext/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

const char *mx_rates_source_name(enum mx_rates_source source) {
    static const char *const names[] = {
        [MX_RATES_DEFAULT] = "default",   [MX_RATES_TIMED] = "timed", [MX_RATES_CACHED] = "cached",
        [MX_RATES_MEASURED] = "measured", [MX_RATES_GIVEN] = "given",
    };
    return names[source];
}

struct rate_row {
    const char *name;
    bool device; /* under the device's key, else under the compute key */
    size_t offset;
};
#define RATE(field, is_device)                                                                               \
    { #field, is_device, offsetof(struct mx_rates, field) }
static const struct rate_row rate_rows[] = {
    RATE(read_bytes_per_s, true),      RATE(write_bytes_per_s, true),
    RATE(mixed_bytes_per_s, true),     RATE(copy_bytes_per_s, false),
    RATE(iblock_updates_per_s, false), RATE(tiled_updates_per_s, false),
    RATE(slab_updates_per_s, false),   RATE(request_s, true),
    RATE(byte_core_s, true),
};
enum { N_RATES = sizeof rate_rows / sizeof rate_rows[0] };

/* Refined sizes, under the compute key: integers, of which all are present or none. */
static const struct size_row {
    const char *name;
    size_t offset;
    int64_t most; /* more is no size, but damage */
} size_rows[] = {
    {"tiled_slab", offsetof(struct mx_refined, sizes.slab), 1 << 12},
    {"tiled_tile", offsetof(struct mx_refined, sizes.tile), 1 << 12},
    {"tiled_ct", offsetof(struct mx_refined, sizes.ct), 1 << 12},
    {"tiled_nx", offsetof(struct mx_refined, nx), INT64_C(1) << 40},
};
enum { N_SIZES = sizeof size_rows / sizeof size_rows[0] };

/* Beside them: by what they raised the rate. */
static const char raised_name[] = "tiled_raised";
enum { MOST_RAISED = 100 };

static int64_t *size_at(struct mx_refined *refined, const struct size_row *row) {
    return (int64_t *)((char *)refined + row->offset);
}

static double *rate_at(struct mx_rates *rates, const struct rate_row *row) {
    return (double *)((char *)rates + row->offset);
}

void mx_rates_complete(struct mx_rates *r, int32_t threads) {
    const double fallback[] = {MX_DEFAULT_READ_BYTES_PER_S,
                               MX_DEFAULT_WRITE_BYTES_PER_S,
                               0,
                               MX_DEFAULT_COPY_BYTES_PER_S_AND_CORE * threads,
                               MX_DEFAULT_IBLOCK_UPDATES_PER_S_AND_CORE * threads,
                               MX_DEFAULT_TILED_UPDATES_PER_S_AND_CORE * threads,
                               0,
                               0,
                               0};
    for (int i = 0; i < N_RATES; i++)
        if (!(*rate_at(r, &rate_rows[i]) > 0)) *rate_at(r, &rate_rows[i]) = fallback[i];
    if (!(r->slab_updates_per_s > 0)) r->slab_updates_per_s = r->iblock_updates_per_s;
    if (!(r->mixed_bytes_per_s > 0))
        r->mixed_bytes_per_s = 2 / (1 / r->read_bytes_per_s + 1 / r->write_bytes_per_s);
}

double mx_rates_share(const struct mx_problem *p) {
    const int64_t bytes = p->system != NULL ? mx_step_bytes(p) : 0;
    return bytes > 0 ? 16.0 / (double)bytes : 1;
}

/* Seconds that a core takes for a step of a cell in engine tiled. */
static double timed_seconds(const struct mx_problem *p, double cell_ns) {
    const double wide = p->h > 1 ? MX_TIMED_WIDE_FACTOR : 1;
    return 1e-9 * (wide * cell_ns + MX_TIMED_BYTE_NS * (double)mx_step_bytes(p));
}

void mx_rates_of_problem(struct mx_rates *r, const struct mx_problem *problem, int32_t threads,
                         double cell_ns) {
    const double share = mx_rates_share(problem) * threads;
    const struct mx_system *s = problem->system;
    if (s == NULL && problem->h == 1) return;
    if (!(r->tiled_updates_per_s > 0)) {
        const bool timed = cell_ns > 0;
        r->tiled_updates_per_s =
            timed ? threads / timed_seconds(problem, cell_ns)
                  : MX_DEFAULT_TILED_UPDATES_PER_S_AND_CORE * MX_DEFAULT_TILED_SHARE * share;
        if (timed && r->compute_source == MX_RATES_DEFAULT) r->compute_source = MX_RATES_TIMED;
    }
    if (s != NULL && !(r->iblock_updates_per_s > 0))
        r->iblock_updates_per_s =
            mx_min_real(MX_DEFAULT_IBLOCK_UPDATES_PER_S_AND_CORE * share, r->tiled_updates_per_s);
}

/* ------------------------------------------------------------------ keys */

int mx_rates_path(char *path, size_t capacity, mx_why *why) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (cache != NULL && cache[0] == '/')
        n = snprintf(path, capacity, "%s/memext/rates.json", cache);
    else if (home != NULL && home[0] == '/')
        n = snprintf(path, capacity, "%s/.cache/memext/rates.json", home);
    if (n < 0)
        return mx_fail(why, -ENOENT,
                       "neither XDG_CACHE_HOME nor HOME is set, so measured rates are not kept");
    if ((size_t)n < capacity) return 0;
    return mx_fail(why, -ENAMETOOLONG, "the path of the cache of rates is longer than %zu bytes", capacity);
}

static int stat_nearest(const char *path, char *where, struct stat *st) {
    char copy[PATH_MAX];
    snprintf(where, PATH_MAX, "%s", path);
    if (stat(where, st) == 0) return 0;
    snprintf(copy, sizeof copy, "%s", path);
    snprintf(where, PATH_MAX, "%s", dirname(copy)); /* a file that will be made */
    return stat(where, st) == 0 ? 0 : -ENOENT;
}

int mx_rates_device_key(const char *backend, const char *path, char *key, size_t capacity, mx_why *why) {
    char where[PATH_MAX];
    struct stat st;
    struct statvfs fs;
    int saved = errno, n;
    if (strncmp(backend, "fault:", 6) == 0) backend += 6;
    if (path == NULL) {
        n = snprintf(key, capacity, "%s anonymous", backend);
    } else if (stat_nearest(path, where, &st) < 0) {
        errno = saved;
        return mx_fail(why, -ENOENT, "neither %s nor its directory exists", path);
    } else if (S_ISBLK(st.st_mode)) {
        n = snprintf(key, capacity, "%s block device %u:%u", backend, major(st.st_rdev), minor(st.st_rdev));
    } else {
        uint64_t bytes = statvfs(where, &fs) == 0 ? (uint64_t)fs.f_blocks * fs.f_frsize : 0;
        n = snprintf(key, capacity, "%s file system %u:%u %llu bytes", backend, major(st.st_dev),
                     minor(st.st_dev), (unsigned long long)bytes);
    }
    errno = saved;
    return n >= 0 && (size_t)n < capacity ? 0
                                          : mx_fail(why, -ENAMETOOLONG, "the key of %s is too long", backend);
}

void mx_rates_compute_key(const struct mx_machine *m, const struct mx_problem *p, int32_t threads, char *key,
                          size_t capacity) {
    int length_class = 0; /* rows of similar length run alike */
    while ((INT64_C(1) << length_class) < p->nx && length_class < 40) length_class++;
    char kernel[96];
    if (p->system != NULL) /* the kernel's text decides; parameters change nothing */
        snprintf(kernel, sizeof kernel, "%s %016llx", p->system->name,
                 (unsigned long long)p->system->identity);
    else
        snprintf(kernel, sizeof kernel, "%s %s", p->stencil, mx_dtype_name(p->dtype));
    snprintf(key, capacity, "%s, %d cores, %d sockets, L1 %llu L2 %llu L3 %llu, %d threads, %s, rows to %lld",
             m->cpu[0] != 0 ? m->cpu : "unknown CPU", m->cores, m->sockets, (unsigned long long)m->l1_bytes,
             (unsigned long long)m->l2_bytes, (unsigned long long)m->l3_bytes, threads, kernel,
             1LL << length_class);
}

/* ------------------------------------------------------------------ the file */

static const char *section_of(bool device) { return device ? "device" : "compute"; }

static json_t *read_cache(const char *path) {
    json_t *root = mx_file_check(path, NULL) == 0 ? json_load_file(path, 0, NULL) : NULL;
    if (json_is_object(root)) return root;
    json_decref(root);
    return json_object();
}

static bool take(const json_t *root, bool device, const char *key, struct mx_rates *rates) {
    const json_t *entry =
        key == NULL ? NULL : json_object_get(json_object_get(root, section_of(device)), key);
    bool any = false;
    for (int i = 0; i < N_RATES; i++) {
        double value = json_number_value(json_object_get(entry, rate_rows[i].name));
        if (rate_rows[i].device != device || !(value > 0)) continue;
        *rate_at(rates, &rate_rows[i]) = value;
        any = true;
    }
    return any;
}

static void take_sizes(const json_t *root, const char *key, struct mx_refined *out) {
    const json_t *entry = key == NULL ? NULL : json_object_get(json_object_get(root, section_of(false)), key);
    struct mx_refined r = {.gain = 0};
    for (int i = 0; i < N_SIZES; i++) {
        int64_t value = json_integer_value(json_object_get(entry, size_rows[i].name));
        if (value < 1 || value > size_rows[i].most) return;
        *size_at(&r, &size_rows[i]) = value;
    }
    const double raised = json_number_value(json_object_get(entry, raised_name));
    r.raised = raised > 1 && raised < MOST_RAISED ? raised : 0;
    *out = r;
}

int mx_rates_load(const char *cache_path, const char *device_key, const char *compute_key,
                  struct mx_rates *rates) {
    int saved = errno;
    json_t *root = read_cache(cache_path);
    if (root == NULL) return -ENOMEM;
    if (take(root, true, device_key, rates)) rates->device_source = MX_RATES_CACHED;
    if (take(root, false, compute_key, rates)) rates->compute_source = MX_RATES_CACHED;
    take_sizes(root, compute_key, &rates->refined);
    json_decref(root);
    errno = saved;
    return 0;
}

static int put(json_t *root, bool device, const char *key, struct mx_rates *rates) {
    if (key == NULL) return 0;
    json_t *section = json_object_get(root, section_of(device));
    int err = 0;
    if (!json_is_object(section)) {
        section = json_object();
        err |= json_object_set_new(root, section_of(device), section);
    }
    json_t *entry = json_object();
    for (int i = 0; i < N_RATES; i++)
        if (rate_rows[i].device == device)
            err |= json_object_set_new(entry, rate_rows[i].name, json_real(*rate_at(rates, &rate_rows[i])));
    for (int i = 0; i < N_SIZES && !device && rates->refined.sizes.slab > 0; i++)
        err |= json_object_set_new(entry, size_rows[i].name,
                                   json_integer(*size_at(&rates->refined, &size_rows[i])));
    if (!device && rates->refined.sizes.slab > 0 && rates->refined.raised > 0)
        err |= json_object_set_new(entry, raised_name, json_real(rates->refined.raised));
    return err | json_object_set_new(section, key, entry);
}

static void make_parents(const char *path) {
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    for (char *slash = strchr(copy + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(copy, 0700); /* kernel/cache.c refuses a directory that others can write to */
        *slash = '/';
    }
}

/* A new file, renamed. */
static int write_cache(const char *cache_path, json_t *root, mx_why *why) {
    char next[PATH_MAX];
    const int n = snprintf(next, sizeof next, "%s.%ld", cache_path, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof next)
        return mx_fail(why, -ENAMETOOLONG, "%s: the path is too long", cache_path);
    make_parents(cache_path);
    errno = 0;
    if (json_dump_file(root, next, JSON_INDENT(2)) == 0 && rename(next, cache_path) == 0) return 0;
    const int err = errno != 0 ? -errno : -EIO;
    mx_fail(why, err, "%s cannot be written: %s", cache_path, strerror(-err));
    unlink(next);
    return err;
}

int mx_rates_store(const char *cache_path, const char *device_key, const char *compute_key,
                   const struct mx_rates *rates, mx_why *why) {
    struct mx_rates copy = *rates;
    int saved = errno;
    json_t *root = read_cache(cache_path);
    int err = put(root, true, device_key, &copy) != 0 || put(root, false, compute_key, &copy) != 0
                  ? mx_fail(why, -ENOMEM, "no memory for the cache of rates")
                  : write_cache(cache_path, root, why);
    json_decref(root);
    errno = saved;
    return err;
}

/* ------------------------------------------------------------------ accelerators */

static double known(const json_t *root, const char *key, const char *name) {
    const double v =
        json_number_value(json_object_get(json_object_get(json_object_get(root, "accel"), key), name));
    return v > 0 ? v : 0;
}

void mx_accel_rates_load(const char *cache_path, const struct mx_accel_keys *keys,
                         struct mx_accel_rates *out) {
    const int saved = errno;
    json_t *root = read_cache(cache_path);
    out->put_bytes_per_s = known(root, keys->bus, "put_bytes_per_s");
    out->get_bytes_per_s = known(root, keys->bus, "get_bytes_per_s");
    out->updates_per_s = known(root, keys->kernel, "updates_per_s");
    json_decref(root);
    errno = saved;
}

void mx_accel_rates_store(const char *cache_path, const struct mx_accel_keys *keys,
                          const struct mx_accel_rates *r) {
    const int saved = errno;
    json_t *root = read_cache(cache_path), *all = json_object_get(root, "accel"), *bus = json_object(),
           *kernel = json_object();
    if (!json_is_object(all)) json_object_set_new(root, "accel", all = json_object());
    json_object_set_new(bus, "put_bytes_per_s", json_real(r->put_bytes_per_s));
    json_object_set_new(bus, "get_bytes_per_s", json_real(r->get_bytes_per_s));
    json_object_set_new(all, keys->bus, bus);
    json_object_set_new(kernel, "updates_per_s", json_real(r->updates_per_s));
    if (r->updates_per_s > 0) json_object_set(all, keys->kernel, kernel);
    json_decref(kernel);
    write_cache(cache_path, root, NULL);
    json_decref(root);
    errno = saved;
}
