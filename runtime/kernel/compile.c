/* SPDX-License-Identifier: BSD-3-Clause */
/* compile.c - from a kernel's text to a shared object: the compiler, and the cache of what it made. */
#include "kernel/private.h"

#include "machine/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <memext/backend.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

/* Never fast-math: sums keep their order, products are not fused, so that every machine gives the same bits.
 */
static const char *const flags[] = {
    "-O3",           "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
    "-fopenmp-simd", "-std=gnu17",    "-shared",           "-fPIC",           "-Wl,-z,relro,-z,now",
    "-Wall"};
#define BUILD_PREFIX ".build-"
enum { N_FLAGS = sizeof flags / sizeof flags[0], MAX_WORDS = 12 };

struct compiler {
    char text[PATH_MAX]; /* CC, cut into words in place */
    char *words[MAX_WORDS + 1];
    char path[PATH_MAX]; /* of the program */
    struct mx_text version;
    bool gcc;
};

/* ---- files */

int mx_text_read(const char *path, const char *what, mx_why *why, struct mx_text *out) {
    const int64_t most = 64 << 20;
    mx_why reason = {""};
    int fd = mx_file_open(path, &reason);
    struct stat s;
    if (fd == -EINVAL) return mx_fail(why, fd, "%s: %.600s", what, reason.text);
    if (fd < 0 || fstat(fd, &s) < 0) {
        const int err = fd < 0 ? fd : -errno;
        if (fd >= 0) close(fd);
        return mx_fail(why, err, "%s %.300s cannot be read: %s", what, path, strerror(-err));
    }
    if (s.st_size > most) {
        close(fd);
        return mx_fail(why, -EINVAL, "%s %.300s is no file of at most 64 MiB", what, path);
    }
    struct mx_text text = {.data = malloc((size_t)s.st_size + 1), .bytes = (size_t)s.st_size};
    int err = text.data == NULL ? -ENOMEM : mx_read_all(fd, text.data, text.bytes, 0);
    close(fd);
    if (err < 0) {
        free(text.data);
        return mx_fail(why, err, "%s %.300s cannot be read: %s", what, path, strerror(-err));
    }
    text.data[text.bytes] = 0;
    *out = text;
    return 0;
}

static int write_file(const char *path, const char *first, const void *data, size_t bytes) {
    int fd = mx_retry(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (fd < 0) return -errno;
    int err = mx_write_all(fd, first, strlen(first), 0);
    if (err == 0) err = mx_write_all(fd, data, bytes, (off_t)strlen(first));
    if (close(fd) < 0 && err == 0) err = -errno;
    return err;
}

/* What mkdtemp made and write_file filled: names are known, so nothing else is ever removed. */
static void remove_directory(const char *directory) {
    static const char *const names[] = {"memext/cell.h", "memext",   "kernel.c", "kernel.so",
                                        "includes",      "messages", "version",  ""};
    char path[PATH_MAX + 32];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        remove(path);
    }
}

void mx_object_drop(struct mx_object *object) {
    if (object->directory[0] != 0) remove_directory(object->directory);
    object->directory[0] = 0;
}

/* ---- the compiler */

/* Runs words[0] = a file; what it says goes to the file `to`. Its exit status, 256 + signal, or -errno. */
static int run(const char *path, char *const *words, const char *from, const char *to) {
    static char c_locale[] = "LC_ALL=C";
    size_t n = 0, kept = 0;
    while (environ[n] != NULL) n++;
    char **environment = calloc(n + 2, sizeof *environment);
    if (environment == NULL) return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "LC_ALL=", 7) != 0) environment[kept++] = environ[i];
    environment[kept] = c_locale;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, from, O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t child;
    int status = 0, err = -posix_spawn(&child, path, &actions, &attributes, words, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
    if (err < 0) return err;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* The file of a command, as a shell would find it. */
static bool find_program(const char *name, char *out, size_t capacity) {
    if (strchr(name, '/') != NULL)
        return snprintf(out, capacity, "%s", name) < (int)capacity && access(out, X_OK) == 0;
    const char *path = getenv("PATH");
    for (path = path != NULL ? path : "/usr/bin:/bin"; *path != 0;) {
        const size_t n = strcspn(path, ":");
        if (n > 0 && snprintf(out, capacity, "%.*s/%s", (int)n, path, name) < (int)capacity &&
            access(out, X_OK) == 0)
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

static int find_compiler(mx_why *why, struct compiler *c) {
    static const char *const usual[] = {"cc", "gcc", "clang"};
    const char *given = getenv("CC");
    if (given != NULL && given[strspn(given, " \t")] == 0) given = NULL;
    int n = 0;
    if (given != NULL) {
        snprintf(c->text, sizeof c->text, "%s", given);
        char *rest = c->text;
        for (char *word; (word = strtok_r(rest, " \t", &rest)) != NULL && n < MAX_WORDS;)
            c->words[n++] = word;
        if (find_program(c->words[0], c->path, sizeof c->path)) return 0;
        return mx_fail(why, -ENOTSUP,
                       "the C compiler '%.200s' (environment variable CC) cannot be run: set CC to one that "
                       "can, or give a kernel that is built already (FILE.so)",
                       c->words[0]);
    }
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        snprintf(c->text, sizeof c->text, "%s", usual[i]);
        c->words[0] = c->text;
        if (find_program(usual[i], c->path, sizeof c->path)) return 0;
    }
    return mx_fail(why, -ENOTSUP,
                   "there is no C compiler on PATH (cc, gcc, clang): install one, set CC, or give a kernel "
                   "that is built already (FILE.so)");
}

static int ask_version(struct compiler *c, const char *directory, mx_why *why) {
    static char option[] = "--version";
    char to[PATH_MAX + 32], *words[MAX_WORDS + 2];
    int n = 0;
    while (c->words[n] != NULL) words[n] = c->words[n], n++;
    words[n++] = option;
    words[n] = NULL;
    snprintf(to, sizeof to, "%s/version", directory);
    const int status = run(c->path, words, "/dev/null", to);
    if (status == 0) {
        int err = mx_text_read(to, "the compiler's version", why, &c->version);
        if (err < 0) return err;
        c->gcc = strstr(c->version.data, "Free Software Foundation") != NULL;
        return 0;
    }
    return mx_fail(
        why, -ENOTSUP,
        "the C compiler '%.200s' does not tell its version (%s): set CC to gcc or clang, or give a "
        "kernel that is built already (FILE.so)",
        c->path, status < 0 ? strerror(-status) : "its exit status is not 0");
}

/* ---- the cache */

/* Opens a directory of the cache, makes it if need be: 0, -EPERM (somebody else's), other errors: without. */
static int check_directory(const char *path, mx_why *why) {
    struct stat s;
    if (mkdir(path, 0700) < 0 && errno != EEXIST) return -errno;
    if (stat(path, &s) < 0) return -errno;
    if (!S_ISDIR(s.st_mode)) return -ENOTDIR;
    if (s.st_uid != geteuid())
        return mx_fail(
            why, -EPERM,
            "the cache of compiled kernels, %.250s, belongs to user %u and not to %u, who runs this: "
            "set XDG_CACHE_HOME to a directory of your own",
            path, (unsigned)s.st_uid, (unsigned)geteuid());
    if ((s.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return mx_fail(
            why, -EPERM,
            "the cache of compiled kernels, %.250s, can be written by others: chmod go-w it, or set "
            "XDG_CACHE_HOME to a directory of your own",
            path);
    return access(path, W_OK | X_OK) < 0 ? -errno : 0;
}

/* "" = there is none. */
static int find_cache(mx_why *why, char *out, size_t capacity) {
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

/* A directory to work in: in the cache, so that a rename is enough to publish, or a temporary one. */
static int make_directory(const char *cache, mx_why *why, char *out, size_t capacity) {
    if (cache[0] != 0) sweep_cache(cache);
    if (cache[0] != 0 && snprintf(out, capacity, "%s/" BUILD_PREFIX "XXXXXX", cache) < (int)capacity &&
        mkdtemp(out) != NULL)
        return 0;
    const char *base = getenv("TMPDIR");
    if (base == NULL || base[0] != '/' || strlen(base) > PATH_MAX - 64) base = "/tmp";
    snprintf(out, capacity, "%s/memext-kernel-XXXXXX", base);
    if (mkdtemp(out) != NULL) return 0;
    const int err = -errno;
    mx_fail(why, err,
            "there is no place to compile the kernel in: no directory can be made in %.200s (%s); set TMPDIR "
            "or XDG_CACHE_HOME",
            base, strerror(-err));
    out[0] = 0;
    return err;
}

/* What -march=native depends on: the first processor of /proc/cpuinfo, but for its clock. */
static void hash_cpu(XXH3_state_t *state) {
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL) return;
    static const char *const wanted[] = {"vendor_id", "cpu family", "model", "stepping", "flags",
                                         "Features",  "CPU ",       "isa",   "uarch"};
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

static int cache_name(const struct compiler *c, const struct mx_text *source, const char *cache, char *out,
                      size_t capacity) {
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
    for (int i = 0; i < N_FLAGS; i++) hash_text(state, flags[i]);
    hash_cpu(state);
    const XXH128_hash_t key = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    return snprintf(out, capacity, "%s/%016llx%016llx.so", cache, (unsigned long long)key.high64,
                    (unsigned long long)key.low64) < (int)capacity
               ? 0
               : -ENAMETOOLONG;
}

/* An object ends with a hash of what is before: one that is cut or changed is made again and not loaded. */
struct seal {
    char magic[8];
    uint64_t hash;
};
static const char seal_magic[8] = "MXKERNEL";

static bool entry_is_whole(const char *path) {
    struct stat s;
    struct mx_text text;
    if (lstat(path, &s) < 0 || !S_ISREG(s.st_mode) || s.st_uid != geteuid() ||
        (s.st_mode & (S_IWGRP | S_IWOTH)) != 0 || mx_text_read(path, "", NULL, &text) < 0)
        return false;
    struct seal seal;
    bool whole = text.bytes > sizeof seal;
    if (whole) {
        memcpy(&seal, text.data + text.bytes - sizeof seal, sizeof seal);
        whole = memcmp(seal.magic, seal_magic, sizeof seal_magic) == 0 &&
                seal.hash == XXH3_64bits(text.data, text.bytes - sizeof seal);
    }
    free(text.data);
    return whole;
}

static int seal_object(const char *path) {
    struct mx_text text;
    int err = mx_text_read(path, "the compiled kernel", NULL, &text);
    if (err < 0) return err;
    struct seal seal = {.hash = XXH3_64bits(text.data, text.bytes)};
    memcpy(seal.magic, seal_magic, sizeof seal_magic);
    int fd = mx_retry(open(path, O_WRONLY | O_CLOEXEC));
    err = fd < 0 ? -errno : mx_write_all(fd, &seal, sizeof seal, (off_t)text.bytes);
    if (fd >= 0 && close(fd) < 0 && err == 0) err = -errno;
    free(text.data);
    return err;
}

/* ---- compiling */

/* The first line that tells an error, else the first line. */
static void first_error(const char *messages, char *out, size_t capacity) {
    const char *line = strstr(messages, "error: ");
    if (line == NULL) line = strstr(messages, "undefined reference");
    if (line == NULL) line = messages;
    while (line > messages && line[-1] != '\n') line--;
    snprintf(out, capacity, "%.*s", (int)strcspn(line, "\n"), line);
}

/* A file that the text includes, other than those of the system; "" = none. */
static void own_include(const char *rules, char *out, size_t capacity) {
    const char *word = strchr(rules, ':');
    out[0] = 0;
    for (word = word != NULL ? word + 1 : ""; *word != 0;) {
        word += strspn(word, " \t\n\\");
        const size_t n = strcspn(word, " \t\n");
        if (n > 0 && strncmp(word, "-", n) != 0 && strncmp(word, "<stdin>", n) != 0) {
            snprintf(out, capacity, "%.*s", (int)n, word);
            return;
        }
        word += n;
    }
}

/* "DIRECTORY/memext/cell.h" is "memext/cell.h" to the user. */
static void shorten_names(char *messages, const char *directory) {
    const size_t n = strlen(directory);
    for (char *at = messages; (at = strstr(at, directory)) != NULL;)
        if (at[n] == '/')
            memmove(at, at + n + 1, strlen(at + n + 1) + 1);
        else
            at += n;
}

struct names {
    char header[PATH_MAX + 32], directory[PATH_MAX + 32], source[PATH_MAX + 32], object[PATH_MAX + 32],
        includes[PATH_MAX + 32], messages[PATH_MAX + 32];
};

static void name_files(const char *directory, struct names *n) {
    snprintf(n->directory, sizeof n->directory, "%s/memext", directory);
    snprintf(n->header, sizeof n->header, "%s/memext/cell.h", directory);
    snprintf(n->source, sizeof n->source, "%s/kernel.c", directory);
    snprintf(n->object, sizeof n->object, "%s/kernel.so", directory);
    snprintf(n->includes, sizeof n->includes, "%s/includes", directory);
    snprintf(n->messages, sizeof n->messages, "%s/messages", directory);
}

/* The text that was read, and hashed, is what is compiled; its lines keep the user's file name. */
static int write_files(const struct names *n, const char *path, const struct mx_text *source) {
    char line[2 * PATH_MAX + 16] = "# 1 \"";
    size_t at = strlen(line);
    for (const char *p = path; *p != 0 && at < sizeof line - 8; p++) {
        if (*p == '"' || *p == '\\') line[at++] = '\\';
        line[at++] = *p == '\n' ? ' ' : *p;
    }
    memcpy(line + at, "\"\n", 3);
    if (mkdir(n->directory, 0700) < 0) return -errno;
    int err = write_file(n->header, "", mx_cell_text, mx_cell_text_bytes);
    return err < 0 ? err : write_file(n->source, line, source->data, source->bytes);
}

static int explain_status(const struct compiler *c, const struct mx_kernel_options *o, const char *source,
                          int status, const char *messages, mx_why *why) {
    const char *path = o->path;
    if (status == 256 + SIGINT || status == 256 + SIGTERM)
        return mx_fail(why, -EINTR, "interrupted while %.200s was compiled", path);
    if (status < 0)
        return mx_fail(why, -ENOTSUP,
                       "the C compiler '%.200s' cannot be run (%s): set CC to another one, or give a kernel "
                       "that is built already (FILE.so)",
                       c->path, strerror(-status));
    if (status > 256)
        return mx_fail(why, -EINVAL,
                       "the C compiler '%.100s' was ended by signal %d while it compiled %.200s", c->path,
                       status - 256, path);
    char line[500];
    if (mx_kernel_explain(path, source, line, sizeof line)) {
        if (o->messages != NULL) o->messages[0] = 0; /* of what cell.h makes of it */
    } else {
        first_error(messages, line, 330);
    }
    return mx_fail(why, -EINVAL, "the kernel %.120s does not compile: %s", path, line);
}

static int compile(const struct mx_kernel_options *o, struct compiler *c, const struct mx_text *source,
                   const char *directory, mx_why *why) {
    static const char *const fixed[] = {"-isystem", NULL, "-MMD", "-MF", NULL, "-x",
                                        "c",        "-",  "-o",   NULL,  "-lm"};
    struct names n;
    name_files(directory, &n);
    int err = write_files(&n, o->path, source);
    if (err < 0)
        return mx_fail(why, err, "the kernel cannot be compiled in %.300s: %s", directory, strerror(-err));
    const char *const paths[] = {directory, n.includes, n.object};
    char *words[MAX_WORDS + N_FLAGS + 16];
    int k = 0, path = 0;
    for (; c->words[k] != NULL; k++) words[k] = c->words[k];
    for (int i = 0; i < N_FLAGS; i++) words[k++] = (char *)(uintptr_t)flags[i];
    if (c->gcc)
        words[k++] = (char *)(uintptr_t) "-ftrack-macro-expansion=0"; /* errors on the kernel's line */
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        words[k++] = (char *)(uintptr_t)(fixed[i] != NULL ? fixed[i] : paths[path++]);
    words[k] = NULL;
    const int status = run(c->path, words, n.source, n.messages);
    struct mx_text messages = {0}, includes = {0};
    mx_text_read(n.messages, "", NULL, &messages);
    if (messages.data != NULL) shorten_names(messages.data, directory);
    if (o->messages != NULL && messages.data != NULL)
        snprintf(o->messages, o->messages_bytes, "%s", messages.data);
    if (status != 0)
        err = explain_status(c, o, source->data, status, messages.data != NULL ? messages.data : "", why);
    else
        err = mx_text_read(n.includes, "the list of included files", why, &includes);
    if (err == 0) {
        char own[200];
        own_include(includes.data, own, sizeof own);
        if (own[0] != 0)
            err = mx_fail(why, -EINVAL,
                          "the kernel %.150s includes %s: a kernel includes memext/cell.h and headers of the "
                          "system alone, for it is known by its text",
                          o->path, own);
    }
    if (err == 0 && (err = seal_object(n.object)) < 0)
        mx_fail(why, err, "the compiled kernel in %.300s cannot be kept: %s", directory, strerror(-err));
    free(messages.data);
    free(includes.data);
    return err;
}

/* Others that are at the same kernel make the same object; who renames last, wins, and nobody sees half of
 * one. */
static int publish(struct mx_object *object, const char *name) {
    char from[PATH_MAX + 32];
    snprintf(from, sizeof from, "%s/kernel.so", object->directory);
    if (name[0] == 0 || rename(from, name) < 0)
        return snprintf(object->path, sizeof object->path, "%s", from) < (int)sizeof object->path
                   ? 0
                   : -ENAMETOOLONG;
    snprintf(object->path, sizeof object->path, "%s", name);
    object->cached = true;
    mx_object_drop(object);
    return 0;
}

static int make(const struct mx_kernel_options *o, struct compiler *c, const struct mx_text *source,
                const char *cache, mx_why *why, struct mx_object *object) {
    char name[PATH_MAX] = "";
    int err = make_directory(cache, why, object->directory, sizeof object->directory);
    if (err == 0) err = ask_version(c, object->directory, why);
    if (err < 0) return err;
    if (cache[0] != 0 && cache_name(c, source, cache, name, sizeof name) < 0) name[0] = 0;
    if (name[0] != 0 && entry_is_whole(name)) {
        snprintf(object->path, sizeof object->path, "%s", name);
        object->cached = true;
        mx_object_drop(object);
        return 0;
    }
    snprintf(object->compiler, sizeof object->compiler, "%.*s", (int)strcspn(c->version.data, "\n"),
             c->version.data);
    object->compiled = true;
    err = compile(o, c, source, object->directory, why);
    if (err == 0 && (err = publish(object, name)) < 0)
        mx_fail(why, err, "the path of the compiled kernel in %.200s is too long", object->directory);
    return err;
}

int mx_object_make(const struct mx_kernel_options *o, const struct mx_text *source, mx_why *why,
                   struct mx_object *out) {
    mx_why own = {0};
    char cache[PATH_MAX];
    struct mx_object *object = calloc(1, sizeof *object);
    struct compiler *c = calloc(1, sizeof *c);
    int err = object == NULL || c == NULL ? mx_fail(&own, -ENOMEM, "no memory for the compiler's names") : 0;
    if (err == 0) err = find_cache(&own, cache, sizeof cache);
    if (err == 0) err = find_compiler(&own, c);
    if (err == 0) err = make(o, c, source, cache, &own, object);
    if (err == 0)
        *out = *object;
    else if (object != NULL)
        mx_object_drop(object);
    if (err < 0 && why != NULL) *why = own;
    if (c != NULL) free(c->version.data);
    free(c);
    free(object);
    return err;
}
