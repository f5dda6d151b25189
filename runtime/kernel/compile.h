/* SPDX-License-Identifier: BSD-3-Clause */
/* compile.h - inside kernel/ only: the C compiler, and the cache of compiled objects. */
#ifndef MX_KERNEL_COMPILE_H
#define MX_KERNEL_COMPILE_H

#include "kernel/forms.h"
#include "kernel/private.h"

#include <sys/types.h>

enum { N_FLAGS = 13, MAX_WORDS = 12 };
/* The flags with which every kernel is compiled. */
extern const char *const mx_compiler_flags[N_FLAGS];

struct compiler {
    char text[PATH_MAX]; /* CC, cut into words in place */
    char *words[MAX_WORDS + 1];
    char path[PATH_MAX]; /* of the program */
    struct mx_text version;
    bool gcc;
    bool wraps; /* use -fwrapv, since the kernel's state has integers (cell.h) */
};

/* Finds the compiler of the variable CC, or else the first of cc, gcc and clang. -ENOTSUP with a sentence. */
int mx_compiler_find(mx_why *why, struct compiler *out);
/* Fills version and gcc; `directory`: a directory for temporary files. -ENOTSUP with a sentence. */
int mx_compiler_ask(struct compiler *compiler, const char *directory, mx_why *why);
/* Starts the program `path` with these words. It reads the file `from`, and its output goes to the file `to`.
 * Returns the child, or -errno. */
pid_t mx_compiler_start(const char *path, char *const *words, const char *from, const char *to);
/* Waits for a child, which is asked to end when *stop (may be NULL) is not 0 any more. Returns its exit
 * status, 256 + signal, or -errno. */
int mx_compiler_wait(pid_t child, const atomic_int *stop);

/* The forms to compile: indices of mx_forms. */
struct wanted {
    int32_t n, number[MX_FORMS];
};

/* Finds the directory of the cache; "" = there is none. -EPERM with a sentence: others can write to it. */
int mx_cache_find(mx_why *why, char *out, size_t capacity);
/* Has its file system too little space for a kernel? false: nobody knows. */
bool mx_cache_is_full(const char *directory);
/* Makes a directory for temporary files: in the cache, so that a rename publishes an object, or else
 * elsewhere. */
int mx_cache_work_in(const char *cache, mx_why *why, char *out, size_t capacity);
/* Makes the name of the object in the cache, for this compiler, text, machine and forms. */
int mx_cache_name(const struct compiler *compiler, const struct mx_text *source, const struct wanted *forms,
                  const char *cache, char *out, size_t capacity);
/* What is found out about an object when it is made, and kept in it. */
struct mx_built {
    int32_t form;   /* index of mx_forms */
    double cell_ns; /* mx_forms_fastest; 0 = not measured */
};
/* All headers that a text includes. names: with an absolute path, each ended by a 0. */
struct mx_headers {
    struct mx_text names;
    uint64_t hash; /* of these files */
    bool known;    /* false: the compiler does not list them, or one cannot be read */
};
/* Fills hash and known from the files that have these names now. */
void mx_cache_hash_headers(struct mx_headers *headers);
bool mx_cache_same_headers(const struct mx_headers *a, const struct mx_headers *b);
/* An object ends with the names of all headers that its text includes, what is known of it, and a hash of
 * everything before and of these headers. One that was cut, or whose headers have changed, is compiled again,
 * and not loaded. So is one whose headers are not known. */
bool mx_cache_is_whole(const char *path, struct mx_built *out);
/* The right to make the object of this name, so that ranks and other processes that need it at the same time
 * do not make it too. */
struct mx_cache_claim {
    char path[PATH_MAX + 8];
    int fd; /* negative = there is none: somebody else has made the object, or the directory has no locks */
};
/* Waits until nobody else makes it, or has made it, or for a minute: one that was stopped does not hold up
 * others. Where the one before has failed, all that have waited go on at the same time. -EINTR with a
 * sentence: a signal, or *stop (may be NULL) is not 0. */
int mx_cache_claim(const char *name, const atomic_int *stop, mx_why *why, struct mx_cache_claim *out);
void mx_cache_release(const struct mx_cache_claim *claim, bool failed);
int mx_cache_seal(const char *path, const struct mx_built *built, const struct mx_headers *headers);

#endif
