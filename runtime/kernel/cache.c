/* SPDX-License-Identifier: BSD-3-Clause */
/* cache.c - the cache of compiled kernels: its directory, the names in it, and whether an object is whole. */
#include "kernel/compile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <memext/backend.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define BUILD_PREFIX ".build-"
#define LOCK_SUFFIX ".lock"
/* Of struct seal, and of what flags a text gets. Part of the names, so that versions of memext do not replace
 * each other's objects. */
#define SEAL_FORMAT "3"

/* What mkdtemp made and write_file filled: names are known, so nothing else is ever removed. */
static void remove_directory(const char *directory) {
    static const char *const names[] = {"memext/cell.h", "memext", "kernel.c", "includes", "version"};
    char path[PATH_MAX + 32];
    for (int i = 0; i < MX_FORMS; i++) {
        snprintf(path, sizeof path, "%s/kernel-%s.so", directory, mx_forms[i].name);
        remove(path);
        snprintf(path, sizeof path, "%s/messages-%s", directory, mx_forms[i].name);
        remove(path);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        remove(path);
    }
    remove(directory);
}

void mx_object_drop(struct mx_object *object) {
    if (object->directory[0] != 0) remove_directory(object->directory);
    object->directory[0] = 0;
}

/* Opens a directory of the cache, makes it if need be: 0, -EPERM (somebody else's), other errors: without. */
static int check_directory(const char *path, mx_why *why) {
    struct stat s;
    if (mkdir(path, 0700) < 0 && errno != EEXIST) return -errno;
    if (stat(path, &s) < 0) return -errno;
    if (!S_ISDIR(s.st_mode)) return -ENOTDIR;
    if (s.st_uid != geteuid())
        return mx_fail(why, -EPERM,
                       "the cache of compiled kernels, %.250s, belongs to user %u, and user %u runs memext: "
                       "set XDG_CACHE_HOME to a directory of your own",
                       path, (unsigned)s.st_uid, (unsigned)geteuid());
    if ((s.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return mx_fail(why, -EPERM,
                       "the cache of compiled kernels, %.250s, can be written by others: chmod go-w it, or "
                       "set XDG_CACHE_HOME to a directory of your own",
                       path);
    return access(path, W_OK | X_OK) < 0 ? -errno : 0;
}

/* "" = there is none. */
int mx_cache_find(mx_why *why, char *out, size_t capacity) {
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    out[0] = 0;
    int n = 0;
    if (base != NULL && base[0] == '/')
        n = snprintf(out, capacity, "%s", base);
    else if (home != NULL && home[0] == '/')
        n = snprintf(out, capacity, "%s/.cache", home);
    if (n == 0 || n + 32 >= (int)capacity) return out[0] = 0, 0;
    if (mkdir(out, 0700) < 0 && errno != EEXIST) return out[0] = 0, 0;
    static const char *const parts[] = {"/memext", "/kernels"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        strcat(out, parts[i]);
        const int err = check_directory(out, why);
        if (err == -EPERM && why != NULL && why->text[0] != 0) return err;
        if (err < 0) return out[0] = 0, 0;
    }
    return 0;
}

/* Directories that compilations which were killed have left: no compiler works for a day. */
static void sweep_cache(const char *cache) {
    enum { DAY_S = 24 * 3600 };
    char path[PATH_MAX];
    struct stat s;
    struct dirent *e;
    DIR *d = opendir(cache);
    while (d != NULL && (e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, BUILD_PREFIX, sizeof BUILD_PREFIX - 1) != 0 ||
            snprintf(path, sizeof path, "%s/%s", cache, e->d_name) >= PATH_MAX)
            continue;
        if (lstat(path, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid() &&
            time(NULL) - s.st_mtime > DAY_S)
            remove_directory(path);
    }
    if (d != NULL) closedir(d);
}

bool mx_cache_is_full(const char *directory) {
    enum { LEAST_BYTES = 4 << 20 }; /* of all forms of a kernel, and what compilers say */
    struct statvfs s;
    return statvfs(directory, &s) == 0 &&
           ((uint64_t)s.f_bavail * s.f_frsize < LEAST_BYTES || (s.f_files > 0 && s.f_favail == 0));
}

/* A directory to work in: in the cache, so that a rename is enough to publish, or a temporary one. */
int mx_cache_work_in(const char *cache, mx_why *why, char *out, size_t capacity) {
    if (cache[0] != 0) sweep_cache(cache);
    if (cache[0] != 0 && !mx_cache_is_full(cache) &&
        snprintf(out, capacity, "%s/" BUILD_PREFIX "XXXXXX", cache) < (int)capacity && mkdtemp(out) != NULL)
        return 0;
    const char *base = getenv("TMPDIR");
    if (base == NULL || base[0] != '/' || strlen(base) > PATH_MAX - 64) base = "/tmp";
    snprintf(out, capacity, "%s/memext-kernel-XXXXXX", base);
    if (mkdtemp(out) != NULL) return 0;
    const int err = -errno;
    mx_fail(why, err,
            "the kernel cannot be compiled: no directory can be made in %.200s (%s); set TMPDIR or "
            "XDG_CACHE_HOME",
            base, strerror(-err));
    out[0] = 0;
    return err;
}

/* What -march=native and times depend on: the first processor of /proc/cpuinfo, but for its clock. */
static void hash_cpu(XXH3_state_t *state) {
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL) return;
    static const char *const wanted[] = {"vendor_id",  "cpu family", "model", "stepping", "flags",
                                         "cache size", "Features",   "CPU ",  "isa",      "uarch"};
    char line[8192];
    while (fgets(line, sizeof line, file) != NULL && line[0] != '\n')
        for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
            if (strncmp(line, wanted[i], strlen(wanted[i])) == 0) {
                XXH3_128bits_update(state, line, strlen(line));
                break;
            }
    fclose(file);
}

static void hash_text(XXH3_state_t *state, const char *text) {
    XXH3_128bits_update(state, text, strlen(text) + 1);
}

/* Where compilers find headers and their own parts. */
static const char *const variables[] = {"CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX",
                                        "LIBRARY_PATH"};

int mx_cache_name(const struct compiler *c, const struct mx_text *source, const struct wanted *forms,
                  const char *cache, char *out, size_t capacity) {
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL) return -ENOMEM;
    XXH3_128bits_reset(state);
    const uint64_t sizes[] = {source->bytes, mx_cell_text_bytes, c->version.bytes};
    XXH3_128bits_update(state, sizes, sizeof sizes);
    XXH3_128bits_update(state, source->data, source->bytes);
    XXH3_128bits_update(state, mx_cell_text, mx_cell_text_bytes);
    XXH3_128bits_update(state, c->version.data, c->version.bytes);
    hash_text(state, c->path);
    for (char *const *word = c->words; *word != NULL; word++) hash_text(state, *word);
    bool finds = c->words[1] != NULL; /* paths in there may be relative */
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i]);
        hash_text(state, value != NULL ? value : "");
        finds |= value != NULL && value[0] != 0;
    }
    char here[PATH_MAX];
    if (finds && getcwd(here, sizeof here) != NULL) hash_text(state, here);
    for (int i = 0; i < N_FLAGS; i++) hash_text(state, mx_compiler_flags[i]);
    for (int32_t i = 0; i < forms->n; i++) {
        const struct mx_form *form = &mx_forms[forms->number[i]];
        for (int k = 0; k < MX_FORM_FLAGS; k++)
            hash_text(state, form->flags[k] != NULL ? form->flags[k] : "");
    }
    hash_cpu(state);
    hash_text(state, SEAL_FORMAT);
    const XXH128_hash_t key = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    return snprintf(out, capacity, "%s/%016llx%016llx.so", cache, (unsigned long long)key.high64,
                    (unsigned long long)key.low64) < (int)capacity
               ? 0
               : -ENAMETOOLONG;
}

/* 0; -EAGAIN: somebody else makes it. */
static int try_lock(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : -errno; }

static bool is_asked_to_end(const atomic_int *stop) { return stop != NULL && atomic_load(stop) != 0; }

/* Somebody had it before, and has failed: one that waited need not make others wait for the same failure. */
static bool has_failed(int fd) {
    struct stat s;
    return fstat(fd, &s) == 0 && s.st_size > 0;
}

int mx_cache_claim(const char *name, const atomic_int *stop, mx_why *why, struct mx_cache_claim *out) {
    enum { STEP_NS = 5000000, MOST_STEPS = 12000 };
    const struct timespec step = {0, STEP_NS};
    struct mx_built ignored;
    out->fd = -1;
    if (snprintf(out->path, sizeof out->path, "%s" LOCK_SUFFIX, name) >= (int)sizeof out->path) return 0;
    const int fd = mx_retry(open(out->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    int err = fd < 0 ? -errno : try_lock(fd), slept = 0, waited = 0;
    for (; err == -EAGAIN && waited < MOST_STEPS && slept == 0 && !is_asked_to_end(stop); waited++) {
        if (mx_cache_is_whole(name, &ignored)) break;
        slept = nanosleep(&step, NULL);
        err = try_lock(fd);
    }
    const bool end = slept < 0 || is_asked_to_end(stop), alone = waited > 0 && err == 0 && has_failed(fd);
    if (err == 0 && !end && !alone && ftruncate(fd, 0) == 0) return out->fd = fd, 0;
    if (err == 0 && end) unlink(out->path);
    if (fd >= 0) close(fd);
    return end ? mx_fail(why, -EINTR, "interrupted while another process compiled the kernel") : 0;
}

void mx_cache_release(const struct mx_cache_claim *claim, bool failed) {
    if (claim->fd < 0) return;
    if (failed) (void)mx_retry(write(claim->fd, "x", 1));
    unlink(claim->path);
    close(claim->fd);
}

/* The end of an object, behind the names of the headers. The hash is of everything before it. */
struct seal {
    char magic[8];
    uint64_t form;
    double cell_ns;
    uint64_t names_bytes, headers; /* of the names, and a hash of these files */
    uint64_t hash;
};
static const char seal_magic[8] = "MXKERNEL";

static uint64_t hash_of(const struct mx_text *text, const struct seal *seal) {
    const uint64_t of_seal = XXH3_64bits(seal, offsetof(struct seal, hash));
    return XXH3_64bits_withSeed(text->data, text->bytes, of_seal);
}

/* false: one of them cannot be read. */
static bool hash_files(const char *names, size_t bytes, uint64_t *hash) {
    *hash = 0;
    for (const char *name = names; name < names + bytes; name += strlen(name) + 1) {
        struct mx_text text;
        if (mx_text_read(name, "", NULL, &text) < 0) return false;
        *hash = XXH3_64bits_withSeed(text.data, text.bytes, *hash);
        free(text.data);
    }
    return true;
}

void mx_cache_hash_headers(struct mx_headers *headers) {
    const struct mx_text *names = &headers->names;
    headers->known = names->data != NULL && hash_files(names->data, names->bytes, &headers->hash);
}

bool mx_cache_same_headers(const struct mx_headers *a, const struct mx_headers *b) {
    if (!a->known || !b->known) return a->known == b->known;
    return a->hash == b->hash && a->names.bytes == b->names.bytes &&
           (a->names.bytes == 0 || memcmp(a->names.data, b->names.data, a->names.bytes) == 0);
}

bool mx_cache_is_whole(const char *path, struct mx_built *out) {
    struct stat s;
    struct mx_text text;
    if (lstat(path, &s) < 0 || !S_ISREG(s.st_mode) || s.st_uid != geteuid() ||
        (s.st_mode & (S_IWGRP | S_IWOTH)) != 0 || mx_text_read(path, "", NULL, &text) < 0)
        return false;
    struct seal seal;
    bool whole = text.bytes > sizeof seal;
    if (whole) {
        memcpy(&seal, text.data + text.bytes - sizeof seal, sizeof seal);
        text.bytes -= sizeof seal;
        uint64_t headers;
        whole = memcmp(seal.magic, seal_magic, sizeof seal_magic) == 0 && seal.form < MX_FORMS &&
                seal.hash == hash_of(&text, &seal) && seal.names_bytes <= text.bytes &&
                (seal.names_bytes == 0 || text.data[text.bytes - 1] == 0) &&
                hash_files(text.data + text.bytes - seal.names_bytes, seal.names_bytes, &headers) &&
                headers == seal.headers;
    }
    free(text.data);
    if (whole) *out = (struct mx_built){(int32_t)seal.form, seal.cell_ns};
    return whole;
}

int mx_cache_seal(const char *path, const struct mx_built *built, const struct mx_headers *headers) {
    struct mx_text text;
    const struct mx_text *names = &headers->names;
    struct seal seal = {.form = (uint64_t)built->form,
                        .cell_ns = built->cell_ns,
                        .names_bytes = names->bytes,
                        .headers = headers->hash};
    int err = mx_text_read(path, "the compiled kernel", NULL, &text);
    if (err < 0) return err;
    char *all = realloc(text.data, text.bytes + names->bytes + 1);
    if (all == NULL) return free(text.data), -ENOMEM;
    if (names->bytes > 0) memcpy(all + text.bytes, names->data, names->bytes);
    const size_t before = text.bytes;
    text.data = all, text.bytes += names->bytes;
    memcpy(seal.magic, seal_magic, sizeof seal_magic);
    if (!headers->known) seal.form = MX_FORMS; /* an object that is never whole */
    seal.hash = hash_of(&text, &seal);
    int fd = mx_retry(open(path, O_WRONLY | O_CLOEXEC));
    err = fd < 0 ? -errno : mx_write_all(fd, all + before, names->bytes, (off_t)before);
    if (err == 0) err = mx_write_all(fd, &seal, sizeof seal, (off_t)text.bytes);
    /* A linker makes what the umask allows. Where modes do not change, the object is not found again. */
    if (err == 0 && fchmod(fd, 0700) < 0) err = 0;
    if (fd >= 0 && close(fd) < 0 && err == 0) err = -errno;
    free(text.data);
    return err;
}
