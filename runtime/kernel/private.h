/* SPDX-License-Identifier: BSD-3-Clause */
/* private.h - between the files of kernel/. */
#ifndef MX_KERNEL_PRIVATE_H
#define MX_KERNEL_PRIVATE_H

#include "kernel/kernel.h"

#include <limits.h>

/* The text of memext/cell.h, with which kernels are compiled (cmake/cell_text.cmake). */
extern const char mx_cell_text[];
extern const size_t mx_cell_text_bytes;

/* A file in memory. */
struct mx_text {
    char *data; /* followed by a 0 */
    size_t bytes;
};
int mx_text_read(const char *path, const char *what, mx_why *why, struct mx_text *out);

/* Puts headers of the user into the text of a kernel: those that `#include "NAME"` finds beside it.
 * *identity: XXH3-64 of all these texts, as they are; of one without such headers, of that one. -EINVAL,
 * -errno. */
int mx_kernel_include(const char *path, mx_why *why, struct mx_text *text, uint64_t *identity);

/* Of a kernel that does not compile: a sentence with file and line that says why in the words of cell.h.
 * False: the compiler has to say it. */
bool mx_kernel_explain(const char *path, const char *source, char *out, size_t capacity);

/* A shared object that was compiled or found. */
struct mx_object {
    char path[PATH_MAX];      /* to be loaded from */
    char directory[PATH_MAX]; /* temporary, removed with mx_object_drop; "" = none */
    char compiler[128];
    const char *form; /* of its row functions, in words; NULL = the user built it */
    bool compiled, cached;
};
int mx_object_make(const struct mx_kernel_options *options, const struct mx_text *source, mx_why *why,
                   struct mx_object *out);
void mx_object_drop(struct mx_object *object);

/* Loads an object and reads its description. *handle: to be closed, also after an error, unless NULL. -EINVAL
 * and -ENOTSUP with a sentence; `name` is what the kernel is called there. */
int mx_kernel_load(const char *path, const char *name, mx_why *why, struct mx_system *out, void **handle);

/* Functions that an object takes from elsewhere and whose bits differ between machines: "exp, sin". "" where
 * there are none, or it is no ELF file of this machine. */
void mx_object_functions(const struct mx_text *object, char *out, size_t capacity);

/* Puts a value into a cell of a row that is tried out: real where cells are real, else whole. */
void mx_kernel_put(char *to, enum mx_dtype dtype, double real, int whole);

/* A loaded kernel; what mx_kernel_open gives out is its first member. */
struct mx_loaded {
    struct mx_system system;
    void *handle;
    struct mx_object object;
    char functions[256];
    char *path, *text; /* of the file, and what is compiled; text NULL = a .so */
};

/* Calls work(context, why) in a child process and passes on what it returns. A child that dies, or takes more
 * than `seconds` of CPU, is -EINVAL and a sentence that begins with `subject` and ends with what *stage says,
 * which the child may set as it goes on. */
struct mx_isolated {
    mx_why why;
    char stage[160];
    int result;
    bool done;
};
int mx_isolate(int (*work)(void *context, struct mx_isolated *report), void *context, const char *subject,
               unsigned seconds, mx_why *why);

/* Between these no thread of this process loads an object or forks such a child. */
void mx_loader_lock(void);
void mx_loader_unlock(void);

#endif
