/* SPDX-License-Identifier: BSD-3-Clause */
/* forms.h - inside kernel/ only: the forms in which a row function is compiled; one of them is kept.
 *
 * A form is a number of rows and planes that one pass over x computes together, so that they share what they
 * read, and a width of vectors. In blocks, neighbours in x come from registers. All forms do the same
 * operations in the same order, so they give the same bits. The fastest in tiled runs depends on the kernel,
 * the compiler and the processor. It is estimated from times on a tile. So is how long a step takes: the
 * tuner plans with that.
 */
#ifndef MX_KERNEL_FORMS_H
#define MX_KERNEL_FORMS_H

#include "kernel/private.h"

/* For tests and benchmarks: the variable that names the only form to compile, which is not timed. Unset or
 * empty: the fastest form. */
#define MX_FORM_VARIABLE "MEMEXT_ROWS"

enum { MX_FORMS = 12, MX_FORM_FLAGS = 4 };
struct mx_form {
    const char *name, *text; /* its name in the variable, and in words */
    int32_t rows, planes;    /* of a pass */
    bool blocks; /* in blocks of a vector (cell.h), which some kernels and compilers do not allow */
    bool avx512; /* only with vectors of 64 bytes, for which there are 32 registers; elsewhere it equals
                    another form, or 16 registers are too few */
    const char *flags[MX_FORM_FLAGS];
};
/* The first form computes one row, with the vectors that the compiler prefers. */
extern const struct mx_form mx_forms[MX_FORMS];

/* Lists the forms to compile for this processor: indices of mx_forms, the first form first. -EINVAL with a
 * sentence: the variable does not name a form. */
int mx_forms_wanted(mx_why *why, int32_t number[MX_FORMS], int32_t *n);

/* Which forms may pay for a kernel. */
struct mx_worth {
    bool rows;   /* several rows in a pass */
    bool blocks; /* blocks */
    bool fours;  /* four cells in a pass in blocks: rows times planes */
};
/* Says which forms may pay for the kernel of this object, which is in the first form. Its radius, its fields
 * and the bytes of its machine code decide, so the answer does not depend on the load of the machine. If the
 * object cannot be loaded or crashes, neither several rows nor four cells pay. */
struct mx_worth mx_forms_worth(const char *first);
/* Is a form worth compiling? in_blocks: one row was compiled in blocks. */
bool mx_form_is_worth(const struct mx_form *form, const struct mx_worth *worth, bool in_blocks);

/* Returns the index, below n, of the form to keep. number[i]: index in mx_forms; number[0] is the first form.
 * time[i] > 0: of one cell on a tile. prefers_rows: four rows in blocks are kept if they are hardly slower
 * than two, which are the fastest. Pure. */
int32_t mx_forms_choose(const int32_t *number, int32_t n, const double *time, bool prefers_rows);

/* Returns the index of the form to keep, of n objects of one kernel. Each is in another form: number[i] of
 * mx_forms. They are measured for some milliseconds in a child process. 0 (the first) unless another one is
 * clearly faster, and if one of them cannot be loaded, crashes or does not end. -EINTR: a signal. *cell_ns:
 * the time of a step of one cell on one core, in tiles, in that form (struct mx_system, cell_ns); 0 where it
 * was not measured.
 */
int32_t mx_forms_fastest(const char *const *path, const int32_t *number, int32_t n, double *cell_ns);

#endif
