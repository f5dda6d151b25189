/* SPDX-License-Identifier: BSD-3-Clause */
/* compiler.c - finds the C compiler and runs it. */
#include "kernel/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <memext/backend.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Never fast-math: sums keep their order, products are not fused, so that every machine gives the same bits.
 * No vectors of what stands side by side: gcc 12 then leaves out conversions such as (double)(float)x. The
 * loop over x has its vectors all the same.
 */
const char *const mx_compiler_flags[N_FLAGS] = {"-O3",
                                                "-march=native",
                                                "-ffp-contract=off",
                                                "-fno-math-errno",
                                                "-fno-trapping-math",
                                                "-fno-tree-slp-vectorize",
                                                "-fopenmp-simd",
                                                "-std=gnu17",
                                                "-shared",
                                                "-fPIC",
                                                "-Wl,-z,relro,-z,now",
                                                "-Wall",
                                                "-Werror=implicit-function-declaration"};

/* The child, or -errno. */
pid_t mx_compiler_start(const char *path, char *const *words, const char *from, const char *to) {
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
    const int err = -posix_spawn(&child, path, &actions, &attributes, words, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
    return err < 0 ? err : child;
}

int mx_compiler_wait(pid_t child, const atomic_int *stop) {
    const struct timespec step = {0, 500000};
    int status = 0;
    for (pid_t ended = 0; ended != child;) {
        ended = waitpid(child, &status, stop != NULL ? WNOHANG : 0);
        if (ended < 0 && errno != EINTR) return -errno;
        if (ended != 0 || stop == NULL) continue;
        if (atomic_load(stop) == 0)
            nanosleep(&step, NULL);
        else
            kill(child, SIGTERM), stop = NULL;
    }
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

int mx_compiler_find(mx_why *why, struct compiler *c) {
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
                       "the C compiler '%.200s' (environment variable CC) cannot be run: set CC to a "
                       "compiler that can, or give a kernel that is compiled already (FILE.so)",
                       c->words[0]);
    }
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        snprintf(c->text, sizeof c->text, "%s", usual[i]);
        c->words[0] = c->text;
        if (find_program(usual[i], c->path, sizeof c->path)) return 0;
    }
    return mx_fail(why, -ENOTSUP,
                   "there is no C compiler on PATH (cc, gcc, clang): install one, set CC, or give a kernel "
                   "that is compiled already (FILE.so)");
}

int mx_compiler_ask(struct compiler *c, const char *directory, mx_why *why) {
    static char option[] = "--version";
    char to[PATH_MAX + 32], *words[MAX_WORDS + 2];
    int n = 0;
    while (c->words[n] != NULL) words[n] = c->words[n], n++;
    words[n++] = option;
    words[n] = NULL;
    snprintf(to, sizeof to, "%s/version", directory);
    const pid_t child = mx_compiler_start(c->path, words, "/dev/null", to);
    const int status = child < 0 ? child : mx_compiler_wait(child, NULL);
    if (status == 0) {
        int err = mx_text_read(to, "the compiler's version", why, &c->version);
        if (err < 0) return err;
        c->gcc = strstr(c->version.data, "Free Software Foundation") != NULL;
        return 0;
    }
    if (status == 256 + SIGINT || status == 256 + SIGTERM)
        return mx_fail(why, -EINTR, "interrupted while the C compiler printed its version");
    return mx_fail(why, -ENOTSUP,
                   "the C compiler '%.200s' does not print its version (%s): set CC to gcc or clang, or give "
                   "a kernel that is compiled already (FILE.so)",
                   c->path, status < 0 ? strerror(-status) : "its exit status is not 0");
}
