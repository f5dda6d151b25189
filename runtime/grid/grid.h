/* grid.h - a 3D field on a Buffer: geometry, padding, regions -> spans, .npy files in and out. */
#ifndef MX_GRID_H
#define MX_GRID_H

#include <memext/backend.h>
#include <memext/memext.h>

__extension__ typedef __int128 mx_wide; /* products of extents that may overflow 64 bits */

/* Pitches for a device with the given alignment. cuts_y: partial planes are transferred, so every row starts
 * aligned; otherwise planes alone do and rows are padded for the cache only. -EOVERFLOW, -EINVAL (extents <
 * 1). */
int mx_layout_make(const struct mx_problem *problem, uint32_t offset_align_bytes, bool cuts_y, mx_why *why,
                   struct mx_layout *out);

/* Values of the initial grid. Cell (x,y,z) counts the frame; any thread, any order. */
struct mx_init {
    const char *name, *summary;
    double (*value)(const struct mx_problem *problem, int64_t x, int64_t y, int64_t z);
};
extern const struct mx_init mx_inits[]; /* ends with name NULL */
const struct mx_init *mx_init_find(const char *name);

/* A field passes through DRAM in groups of whole planes, double-buffered: while one group is filled (used)
 * the other is written (read). `planes` is called with n planes from z0 on at dram, laid out as in the
 * layout; it returns 0 or -errno, which ends the pass. stop (may be NULL) ends it with -EINTR. */
typedef int mx_planes_fn(void *context, int64_t z0, int64_t n, char *dram);
int mx_field_write(mx_buffer *buffer, const struct mx_layout *layout, const struct mx_device_facts *facts,
                   mx_budget *budget, const volatile int *stop, mx_planes_fn *planes, void *context,
                   mx_why *why);
int mx_field_read(mx_buffer *buffer, const struct mx_layout *layout, const struct mx_device_facts *facts,
                  mx_budget *budget, const volatile int *stop, mx_planes_fn *planes, void *context,
                  mx_why *why);

/* planes functions: the initial grid (context: struct mx_fill). */
struct mx_fill {
    const struct mx_problem *problem;
    const struct mx_layout *layout;
    const struct mx_init *init; /* or, if NULL, */
    const struct mx_npy *npy;
    mx_why *why;
};
mx_planes_fn mx_fill_planes;

/* A .npy file of a grid: shape (nz+2h, ny+2h, nx+2h), little-endian f4 or f8, C order. */
struct mx_npy {
    int fd;
    enum mx_dtype dtype;
    int64_t shape[3]; /* z, y, x, frame included */
    int64_t data_offset_bytes;
};
/* Clear refusals: Fortran order, wrong rank, big endian, other types, truncated, no .npy at all. */
int mx_npy_open(const char *path, mx_why *why, struct mx_npy *out);
int mx_npy_create(const char *path, enum mx_dtype dtype, const int64_t shape[3], mx_why *why,
                  struct mx_npy *out);
int mx_npy_close(struct mx_npy *npy, mx_why *why);
/* n_planes whole planes from z0 on; rows are row_pitch apart and planes plane_pitch apart in DRAM, dense in
 * the file. */
int mx_npy_read(const struct mx_npy *npy, int64_t z0, int64_t n_planes, void *dram,
                const struct mx_layout *layout, mx_why *why);
int mx_npy_write(const struct mx_npy *npy, int64_t z0, int64_t n_planes, const void *dram,
                 const struct mx_layout *layout, mx_why *why);

#endif
