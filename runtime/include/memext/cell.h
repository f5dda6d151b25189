/* cell.h - kernels of users: what one looks like to the library.
 *
 * A library includes it as it is. A kernel's file includes it once, after MX_NAME, MX_RADIUS, MX_STATE...
 */
#ifndef MEMEXT_CELL_ABI
#define MEMEXT_CELL_ABI

#include <stdint.h>

#define MX_CELL_VERSION 1

/* Forms of time stepping. */
enum { MX_JACOBI, MX_LEAPFROG, MX_STAGGERED };

/* Some rows of one plane of one level. Pointers are to cell 0 of a row (frame included), of the patch's first
 * row; pitches are bytes from row to row. */
struct mx_row {
    void *const *out; /* [fields of the array written]: holds the old values on entry */
    const void *const
        *in; /* [fields of the array read * (2h+1)]: planes z-h .. z+h of field 0, then of field 1 ... */
    const void *const *fixed;   /* [n_fixed * (2hc+1)]: the same for C */
    int64_t row_pitch;          /* alike for all fields of A and B */
    const int64_t *fixed_pitch; /* [n_fixed] */
    int64_t rows;               /* of this call */
    const double *param;        /* [n_param] */
    int64_t x0, x1;             /* cells of this call, frame counted */
    int64_t y, z, t;            /* interior index of the first row; step computed from */
    int64_t nx, ny, nz;
};

#endif
