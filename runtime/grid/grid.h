/* SPDX-License-Identifier: BSD-3-Clause */
/* grid.h - a 3D field on a Buffer: geometry, padding, regions as spans, .npy files in and out. */
#ifndef MX_GRID_H
#define MX_GRID_H

#include "system/system.h"

#include <memext/backend.h>

#include <stdatomic.h>

__extension__ typedef __int128 mx_wide; /* products of extents that may overflow 64 bits */

/* Returns a box of a grid of two dimensions with the axes of programs and files: z here is y there. The
 * conversion back is the same. */
static inline struct mx_grid_box mx_box_of_users(const struct mx_grid_box *b) {
    struct mx_grid_box u = *b;
    u.y0 = b->z0, u.y1 = b->z1, u.z0 = b->y0, u.z1 = b->y1;
    u.row_pitch_bytes = b->plane_pitch_bytes, u.plane_pitch_bytes = b->row_pitch_bytes;
    return u;
}

/* The most steps: up to here a double counts without a gap, and reports and rates are doubles. */
#define MX_MOST_STEPS (INT64_C(1) << 53)
/* Checks that all counts of a run of the problem fit into 64 bits. -EOVERFLOW, -EINVAL (extents < 1). */
int mx_layout_check(const struct mx_problem *problem, mx_why *why);
/* Computes pitches for a device with the given alignment. cuts_y: partial planes are transferred, so every
 * row starts aligned (rows of C if y is periodic, since their ghost rows come from elsewhere). Otherwise only
 * planes start aligned, and rows are padded only for the cache. Alignment 0: packed, as the papers count.
 * -EOVERFLOW, -EINVAL (extents < 1). */
int mx_layout_make(const struct mx_problem *problem, uint32_t offset_align_bytes, bool cuts_y, mx_why *why,
                   struct mx_layout *out);

/* A file of the user that holds field `field` of C as it is: cells of one type, x fastest, rows and planes
 * without gaps, from offset_bytes on. */
struct mx_fixed_file {
    enum mx_dtype dtype;
    int64_t offset_bytes;
    int64_t bytes; /* of the whole file */
    bool frame;    /* true: (nx+2h) x (ny+2h) x (nz+2h) cells, false: nx x ny x nz, which needs hc = 0 */
    uint32_t align_bytes; /* of transfers; 0 or 1: any */
};
/* Computes the layout of such a file, for layout.fixed[field]. -EINVAL: another type than the field's, an
 * offset that is not a multiple of a cell, no frame though one is read, a file that is too short. */
int mx_layout_fixed_file(const struct mx_problem *problem, int32_t field, const struct mx_fixed_file *file,
                         mx_why *why, struct mx_fixed_layout *out);
/* Makes transfers of the run's own Buffers of C consist of whole units of unit_bytes, a power of two. pad:
 * for a new layout of mx_layout_make, whose planes, and rows that are transferred alone, become multiples of
 * a unit. Without pad: for a stored layout, whose planes are multiples already. */
void mx_layout_fixed_units(const struct mx_problem *problem, int64_t unit_bytes, bool pad, bool cuts_y,
                           struct mx_layout *layout);
/* Makes a layout that treats a Buffer of C like one of A, for mx_field_write, mx_field_read, plane streams
 * and .npy files. Not for files of users. */
void mx_layout_of_fixed(const struct mx_layout *layout, int32_t field, struct mx_layout *out);

/* Returns the pitch in DRAM of planes of plane_bytes bytes. For large planes it is not a multiple of a page.
 * Planes that all start at the same page offset would compete for the same few sets of L1 (the rows that one
 * vector of a stencil needs), and loads from one would alias with stores to another. The pitch is a multiple
 * of 512 if plane_bytes is one, which is enough for direct transfers. */
int64_t mx_plane_pitch_in_dram(int64_t plane_bytes);
/* The same for the Buffers of a layout that lives in DRAM only. */
void mx_layout_in_dram(struct mx_layout *layout);

/* Values of the initial grid. Cell (x,y,z) counts the frame; any thread, any order. */
struct mx_init {
    const char *name, *summary;
    double (*value)(const struct mx_problem *problem, int64_t x, int64_t y, int64_t z);
};
extern const struct mx_init mx_inits[]; /* ends with name NULL */
const struct mx_init *mx_init_find(const char *name);

/* A stream of the whole planes of a Buffer in order, z = 0, 1, ..., through double-buffered groups of planes
 * in DRAM. It reads ahead or writes behind. */
struct mx_plane_stream;
/* Bytes of each half of a stream's DRAM: as many planes as fit, at least one. */
enum { MX_PLANE_GROUP_BYTES = 4 << 20 };
int mx_plane_stream_open(mx_buffer *buffer, const struct mx_layout *layout, mx_budget *budget, bool write,
                         mx_why *why, struct mx_plane_stream **out);
/* The same with half_bytes bytes in each half; at least one plane. */
int mx_plane_stream_open_small(mx_buffer *buffer, const struct mx_layout *layout, mx_budget *budget,
                               int64_t half_bytes, bool write, mx_why *why, struct mx_plane_stream **out);
/* The next plane, plane_pitch bytes: its content (reading), or memory to fill (writing). Valid until the next
 * call. 1, 0 after the last plane, -errno. */
int mx_plane_stream_next(struct mx_plane_stream *planes, char **plane);
/* Writes the rest, waits, and frees the stream. Returns err (0 or an earlier error), or else the first error
 * of the transfers. NULL allowed. */
int mx_plane_stream_close(struct mx_plane_stream *planes, int err);

/* A source of initial grids: fills plane z, with the layout's pitches. context: depends on the function. */
typedef int mx_source_fn(void *context, int64_t z, char *plane);

/* One field of a plane, and what fills it or takes it. */
struct mx_plane_field {
    enum mx_dtype dtype;
    int64_t offset_bytes;       /* of cell 0 in a row */
    const struct mx_init *init; /* or, if NULL, */
    const struct mx_npy *npy;   /* which has its dtype */
};

/* The source of `--init` and `--input`; context is a struct mx_fill. All threads take part. Integer cells are
 * the init's value rounded to the nearest. */
struct mx_fill {
    const struct mx_problem *problem;
    const struct mx_layout *layout;
    const struct mx_init *init; /* or, if NULL, */
    const struct mx_npy *npy;
    mx_why *why;
    const struct mx_plane_field *field; /* [n_fields], in place of init and npy; NULL = one field */
    int32_t n_fields;
    int32_t threads; /* threads that fill a plane of an init; 0 or 1 = the calling one alone */
};
mx_source_fn mx_fill_plane;
/* The init of one field alone: plane z, whose cell 0 of that field is at `plane`. */
void mx_fill_field_plane(const struct mx_problem *problem, const struct mx_layout *layout,
                         const struct mx_plane_field *field, int32_t threads, int64_t z, char *plane);

/* Row y of it alone, on the calling thread. */
void mx_fill_field_row(const struct mx_problem *problem, const struct mx_plane_field *field, int64_t y,
                       int64_t z, char *row);

/* Writes the whole grid. stop (may be NULL) ends it with -EINTR. */
int mx_field_write(mx_buffer *buffer, const struct mx_layout *layout, mx_budget *budget,
                   const atomic_int *stop, mx_source_fn *source, void *context, mx_why *why);
/* Hands every plane in order to `sink`, which must not change it. */
int mx_field_read(mx_buffer *buffer, const struct mx_layout *layout, mx_budget *budget,
                  const atomic_int *stop, mx_source_fn *sink, void *context, mx_why *why);

/* Returns -EBADMSG, with a sentence: reading `what` from `buffer` gave other data than was written (memext.h,
 * mx_buffer_integrity). It names the unit and, unless layout is NULL, the plane and row. */
int mx_field_damaged(const mx_buffer *buffer, const struct mx_layout *layout, const char *what, mx_why *why);

/* Where an array lies in a file, of whatever format (array.h): cells of one type, little endian, x fastest,
 * without gaps. A .npy file of a grid has shape (nz+2h, ny+2h, nx+2h), C order, f4 or f8; of a field of C any
 * mx_dtype. */
struct mx_npy {
    int fd;
    enum mx_dtype dtype;
    int64_t shape[3]; /* z, y, x; the grid knows whether the frame is included. In two dimensions y is 1, and
                         the user's y is z (system.h) */
    int64_t data_offset_bytes;
};
/* Opens a .npy file of f64 or f32. Refuses, with a sentence: Fortran order, wrong rank, big endian, other
 * types, truncated files, files that are not .npy. */
int mx_npy_open(const char *path, mx_why *why, struct mx_npy *out);
/* The same for every mx_dtype. */
int mx_npy_open_field(const char *path, mx_why *why, struct mx_npy *out);
/* Writes the header to an open, empty file, which the caller closes. */
int mx_npy_begin(int fd, enum mx_dtype dtype, const int64_t shape[3], mx_why *why, struct mx_npy *out);
/* The same of a grid, which may have two dimensions: shape[1] is 1 then, and the file has shape[0] and
 * shape[2] alone. */
int mx_npy_begin_grid(int fd, enum mx_dtype dtype, bool flat, const int64_t shape[3], mx_why *why,
                      struct mx_npy *out);
/* "(z, y, x)", of two dimensions "(z, x)". Returns text. */
enum { MX_SHAPE_TEXT = 72 };
const char *mx_shape_text(const int64_t shape[3], bool flat, char text[MX_SHAPE_TEXT]);
/* The same for a matrix of rows x cols: shape is {1, rows, cols}. */
int mx_npy_open_matrix(const char *path, mx_why *why, struct mx_npy *out);
int mx_npy_begin_matrix(int fd, enum mx_dtype dtype, int64_t rows, int64_t cols, mx_why *why,
                        struct mx_npy *out);
int mx_npy_close(struct mx_npy *npy, mx_why *why);
/* n_planes whole planes from z0 on; `dram` is cell 0 of the first row, of one field where rows hold several;
 * rows are row_pitch apart and planes plane_pitch apart in DRAM, dense in
 * the file. */
int mx_npy_read(const struct mx_npy *npy, int64_t z0, int64_t n_planes, void *dram,
                const struct mx_layout *layout, mx_why *why);
int mx_npy_write(const struct mx_npy *npy, int64_t z0, int64_t n_planes, const void *dram,
                 const struct mx_layout *layout, mx_why *why);

#endif
