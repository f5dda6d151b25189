/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h - inside kernel/ only: the memory on which a kernel is tried out.
 *
 * The memory of a call is an image. It has one block for every field and plane that the kernel may see, with
 * room around its rows; one block to which all plane pointers beyond the radius lead; and one block for every
 * field that is written. Each image has three copies: `work`, in which the kernel runs, `clean`, which holds
 * values, and `poison`. One call over everything gives the expected results. All other calls must give the
 * same bits (NaN equals NaN): the same call again, in pieces of rows and of x, over other old values, at
 * other addresses, and cell by cell, with poison wherever the cell must not read.
 */
#ifndef MX_KERNEL_CHECK_H
#define MX_KERNEL_CHECK_H

#include "kernel/private.h"

#include <string.h>

enum {
    MOST_CELLS = 67, /* in x: several vectors and a rest, of any vector length */
    MOST_ROWS = 5,   /* more than a pass of a row function computes at once: 4 (forms.c) */
    SIDE = 16,       /* cells beside a row and its frame */
    BESIDE = 2,      /* rows beside the patch and its frame */
    AROUND = 4,      /* plane pointers before the first and after the last */
    ROUNDS = 3,
    POISONS = 2,
    MOST_COPIED = 4 << 20 /* cells that one round of poison copies at most */
};

enum kind { READ, FIXED, WRITTEN, BEYOND };

struct block {
    enum kind kind;
    int32_t field, dz, reach, reach_y; /* reach_y: in rows, 0 of kernels of two dimensions */
    enum mx_dtype dtype;
    int64_t pitch, from, bytes; /* in the image */
    int64_t at;                 /* of cell 0 of the patch's first row, frame counted */
};

struct image {
    int32_t n_blocks, n_in, n_out;
    struct block *blocks;
    int64_t bytes;
    char *work, *clean, *poison[POISONS];
    const void **in, **fixed; /* AROUND entries more on both sides */
    void **out;
    int64_t fixed_pitch[MX_MAX_FIXED + 1];
};

/* Where in the grid the patch is. */
struct place {
    int64_t x, y, z, t;
};

struct check {
    const struct mx_system *system;
    struct mx_kernel_grid grid;
    int64_t cells, rows; /* of the patch: no more than the grid has */
    struct mx_isolated *report;
    int level;                      /* of a step */
    const struct mx_reduce *reduce; /* not the level itself but what this gives for its cells; or NULL */
    int round;
    struct place place;
    struct image image;
    char *expected; /* [n_out][rows][cells] of 8 bytes */
    bool finite[2][MX_MAX_FIELDS];
};

struct cell {
    int32_t field;
    int64_t row, x; /* x: frame counted */
};

/* Returns the array that the level reads, A (0) or B (1). With more than two levels, both arrays have the
 * same fields. */
static inline int check_read(const struct check *c) { return c->level & 1; }
static inline int32_t check_radius(const struct check *c) { return c->system->h; }
/* What is written is not read: there is no old value. */
static inline bool check_has_old(const struct check *c) {
    return c->system->form != MX_JACOBI && c->reduce == NULL;
}
static inline struct block *check_written_block(struct image *m, int32_t field) {
    return &m->blocks[m->n_blocks - 1 - m->n_out + field];
}

/* ---- check_rows.c: values, images, and calls of the kernel */

/* Of values, in each round. */
extern const double mx_check_ranges[ROUNDS][2];

/* `spread` moves every field by another number of cells and makes rows longer by some. -ENOMEM with a
 * sentence in the report. */
int mx_check_image_make(const struct check *check, int spread, struct image *out);
void mx_check_image_free(struct image *image);
/* Values in `clean`, which are the same wherever a block lies, and `poison`. */
void mx_check_fill(const struct check *check, struct image *image);
static inline void check_work_from(struct image *m, const char *from) {
    memcpy(m->work, from, (size_t)m->bytes);
}
/* Cells x0 .. x1-1 of some rows, frame counted in x; and all cells of all rows. */
void mx_check_call(const struct check *check, struct image *image, int64_t row, int64_t rows, int64_t x0,
                   int64_t x1);
void mx_check_call_all(const struct check *check, struct image *image);

/* ---- check_planes.c */

/* -EINVAL with a sentence: calls for several planes compute something else than calls for one. */
int mx_check_planes(const struct mx_system *system, const struct mx_kernel_grid *grid,
                    struct mx_isolated *report);

/* ---- check_findings.c: what the kernel did, compared with what it may do */

/* Keeps the results of a call over everything in `expected`. */
void mx_check_keep(struct check *check);
/* All findings of a round, in order; `work` is as that call left it. -EINVAL with a sentence in the report.
 */
int mx_check_findings(struct check *check);
/* The name of the field that a block has. */
const char *mx_check_name(const struct check *check, const struct block *block);

#endif
