/* SPDX-License-Identifier: BSD-3-Clause */
/* compile.h - inside kernel/ only: the C compiler, and the cache of what it made. */
#ifndef MX_KERNEL_COMPILE_H
#define MX_KERNEL_COMPILE_H

#include "kernel/forms.h"
#include "kernel/private.h"

#include <sys/types.h>

enum { N_FLAGS = 13, MAX_WORDS = 12 };
/* What every kernel is compiled with. */
extern const char *const mx_compiler_flags[N_FLAGS];

struct compiler {
    char text[PATH_MAX]; /* CC, cut into words in place */
    char *words[MAX_WORDS + 1];
    char path[PATH_MAX]; /* of the program */
    struct mx_text version;
    bool gcc;
    bool wraps; /* -fwrapv: the kernel's state has whole numbers (cell.h) */
};

/* The compiler of CC, or the first of the usual ones. -ENOTSUP with a sentence. */
int mx_compiler_find(mx_why *why, struct compiler *out);
/* Fills version and gcc; `directory` is one to work in. -ENOTSUP with a sentence. */
int mx_compiler_ask(struct compiler *compiler, const char *directory, mx_why *why);
/* Starts words[0] = a file; what it says goes to the file `to`. The child, or -errno. */
pid_t mx_compiler_start(const char *path, char *const *words, const char *from, const char *to);
/* Its exit status, 256 + signal, or -errno, when it has ended; and the CPU time that it took, if not NULL. */
int mx_compiler_wait(pid_t child, double *cpu_s);

/* Forms to compile: numbers of mx_forms. */
struct wanted {
    int32_t n, number[MX_FORMS];
};

/* The directory of the cache; "" = there is none. -EPERM with a sentence: it is not this user's alone. */
int mx_cache_find(mx_why *why, char *out, size_t capacity);
/* A directory to work in: in the cache, so that a rename is enough to publish, or a temporary one. */
int mx_cache_work_in(const char *cache, mx_why *why, char *out, size_t capacity);
/* The name of the object that this compiler makes of this text on this machine, the fastest of some forms. */
int mx_cache_name(const struct compiler *compiler, const struct mx_text *source, const struct wanted *forms,
                  const char *cache, char *out, size_t capacity);
/* An object ends with the number of its form and a hash of what is before: one that is cut or changed is made
 * again and not loaded. */
bool mx_cache_is_whole(const char *path, int32_t *form);
int mx_cache_seal(const char *path, int32_t form);

#endif
