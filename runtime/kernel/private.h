/* SPDX-License-Identifier: BSD-3-Clause */
/* private.h - shared by the files of kernel/. */
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

/* Puts headers of the user into the text of a kernel: those that `#include "NAME"` finds in its folder.
 * *identity: XXH3-64 of all these texts, unchanged. -EINVAL, -errno. */
int mx_kernel_include(const char *path, mx_why *why, struct mx_text *text, uint64_t *identity);

/* Explains why a kernel does not compile: a sentence with file and line, in the words of cell.h. false = it
 * found no reason, so the compiler's messages must do. */
bool mx_kernel_explain(const char *path, const char *source, char *out, size_t capacity);

/* A shared object that was compiled or found. */
struct mx_object {
    char path[PATH_MAX];      /* the file to load */
    char directory[PATH_MAX]; /* temporary, removed with mx_object_drop; "" = none */
    char compiler[128];
    const char *form; /* the form of its row functions, in words; NULL = the user built it */
    double cell_ns;   /* struct mx_system, cell_ns */
    bool compiled, cached;
};
int mx_object_make(const struct mx_kernel_options *options, const struct mx_text *source, mx_why *why,
                   struct mx_object *out);
void mx_object_drop(struct mx_object *object);

/* Loads an object and reads its description. The caller closes *handle, also after an error, unless it is
 * NULL. -EINVAL and -ENOTSUP with a sentence that calls the kernel `name`. */
int mx_kernel_load(const char *path, const char *name, mx_why *why, struct mx_system *out, void **handle);

/* Lists the functions that an object calls in libraries and whose bits may differ between machines: "exp,
 * sin". "" = there are none, or it is not an ELF file of this machine. */
void mx_object_functions(const struct mx_text *object, char *out, size_t capacity);

/* Puts a value into a cell of a row that is tried out: `real` into a floating-point cell, `whole` into an
 * integer cell. */
void mx_kernel_put(char *to, enum mx_dtype dtype, double real, int whole);

/* A loaded kernel. mx_kernel_open returns its first member. */
struct mx_loaded {
    struct mx_system system;
    void *handle;
    struct mx_object object;
    char functions[256];
    char *path, *text; /* path of the file, and the text that is compiled; text NULL = a .so */
    const atomic_int *stop;
};

/* What a child process reports to its parent. `stage` ends the sentence about a child that dies; the child
 * may change it as it goes on. */
struct mx_isolated {
    mx_why why;
    char stage[160], crash[120]; /* what it does now; why a crash is likely there */
    int result;
    bool done;
};
/* Calls work(context, report) in a child process, and returns what it returns, with its sentence. -EINVAL if
 * the child dies, or takes more than `seconds` of CPU time: the sentence then begins with `subject` and ends
 * with report->stage. */
int mx_isolate(int (*work)(void *context, struct mx_isolated *report), void *context, const char *subject,
               unsigned seconds, mx_why *why);

/* Lock out other threads of this process that load an object or fork such a child. */
void mx_loader_lock(void);
void mx_loader_unlock(void);

#endif
