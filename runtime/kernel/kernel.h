/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel.h - kernels that users write (memext/cell.h): compiled, loaded, looked at, tried out.
 *
 * A kernel is code of the user, and is trusted like the user. These checks find mistakes before a run spends
 * hours on them.
 */
#ifndef MX_KERNEL_H
#define MX_KERNEL_H

#include "system/system.h"

#include <stdatomic.h>

struct mx_kernel_options {
    const char *path;          /* FILE.c, compiled here, or FILE.so, built by the user */
    const char *const *params; /* "NAME=VALUE", a finite number; or "NAME=FILE.npy", a number for each step */
    int32_t n_params;
    char *messages; /* may be NULL: receives the compiler's messages ("" = none), cut to messages_bytes */
    size_t messages_bytes;
    const atomic_int *stop; /* may be NULL: as soon as it is not 0, a wait for another process ends (-EINTR);
                               it lives as long as the system */
};

/* What became of a kernel, for reports. Texts live as long as the system. */
struct mx_kernel_facts {
    const char *file;      /* the shared object: in the cache, the user's own, or "" (kept nowhere) */
    const char *compiler;  /* first line of its --version; "" for a .so or an object from the cache */
    const char *functions; /* what it calls beyond + - * / sqrt, "exp, sin": its bits depend on the machine;
                              "" = none */
    const char *form;      /* the form of its row functions: "2 rows in a pass"; "" for a .so */
    bool compiled;         /* true: compiled now; false: found in the cache, or a .so */
    bool cached;           /* kept in the cache */
};

/* Compiles (or finds in the cache ${XDG_CACHE_HOME:-~/.cache}/memext/kernels) and loads a kernel. The
 * compiler is that of the environment variable CC, else cc, gcc or clang. If the cache cannot be written, the
 * kernel is compiled without it. A cache that belongs to somebody else is refused (-EPERM). Other errors:
 * -EINVAL (the text, the description, a parameter), -ENOENT and other errors of files, -ENOTSUP (no
 * compiler). The object is first loaded in a child process, so that a crash becomes a sentence. */
int mx_kernel_open(const struct mx_kernel_options *options, mx_why *why, struct mx_system **out);
/* Compiles a kernel anew if DRAM has one cell of each row of some of its profiles (system/profile.h): its row
 * functions and reductions then read that cell for every x. Needs the kernel's text (system->text). Call it
 * before the first row function runs, and after mx_kernel_check. Errors as those of mx_kernel_open. */
int mx_kernel_take_profiles(struct mx_system *system, mx_why *why);
void mx_kernel_close(struct mx_system *system); /* NULL allowed; no row function may be running */
struct mx_kernel_facts mx_kernel_facts(const struct mx_system *system);

/* Interior cells of a grid, and its time steps. */
struct mx_kernel_grid {
    int64_t n[3], nt;
};

/* Runs a kernel on small poisoned rows, in a child process. -EINVAL with a sentence if it reads outside its
 * radius, or writes outside its cells; if it depends on how rows are cut, on old values that its form does
 * not have, or on anything but its arguments; if it crashes, does not end, or computes only NaN. Coordinates
 * are those of `grid`, at both its ends; with NULL those of a grid of 67 x 11 x 9 cells and 7 steps. It takes
 * a few milliseconds. Call it with the parameters of the run before the run allocates memory, since it forks.
 */
int mx_kernel_check(const struct mx_system *system, const struct mx_kernel_grid *grid, mx_why *why);

#endif
