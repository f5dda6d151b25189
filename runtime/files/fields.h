/* SPDX-License-Identifier: BSD-3-Clause */
/* fields.h - the fields of a system by name: where their first values come from, where their last ones go.
 *
 *     name      is                                  initial values                    result
 *     u         a field of the state                --input u=FILE, --init u=NAME     --output u=FILE
 *     p.old     of leapfrog: p one step before      likewise; p itself without one    the state before the
 * last k         a field of C                        --field k=FILE, --init k=NAME     none
 *
 * Where the state has one field its name may be left out. A file of C is a .npy file or raw cells:
 * `k=file.raw,u8,offset=352,frame=no`; it has the frame, or, where C is read at the cell itself alone, may
 * come without. A raw file says by its length which, or, where more follows the cells, by `frame`. Files of
 * the state may be raw too. With --frame (frame.h) files come without, and the frame is made.
 */
#ifndef MX_FILES_FIELDS_H
#define MX_FILES_FIELDS_H

#include "ask/words.h"
#include "grid/grid.h"
#include "system/sides.h"

#include <limits.h>

/* A file as it was when it was read. bytes 0 = no file. */
struct mx_input_identity {
    uint64_t inode, bytes;
    int64_t modified_ns;
    int64_t changed_ns; /* when anything about it changed, which this process alone remembers */
    bool sampled;       /* the rest is known, as it is but of notes of an older memext */
    bool whole;         /* the sample is of all cells, as it is of fields that are alike along axes */
    uint64_t sample; /* XXH3-64 of pages spread over all of it, both ends among them; of what a program gives
                        what it says of it */
    int64_t offset_bytes; /* of the first cell */
};
/* All of a file whose first cell is at offset_bytes; path is for sentences. */
int mx_input_look(int fd, int64_t offset_bytes, const char *path, mx_why *why, struct mx_input_identity *out);
/* Do both identities mean the same content, as far as is known? named: both files have the same name or the
 * same inode. Small files, which the sample covers whole, need neither that nor the same time of change. */
bool mx_input_same(const struct mx_input_identity *then, const struct mx_input_identity *now, bool named);

enum {
    MX_FIELD_OF_C = 2,
    MX_FIELD_PATH = 1024,
    MX_FIELD_INSIDE = 256,
    MX_FIELDS_MOST = 2 * MX_MAX_FIELDS + MX_MAX_FIXED
};

struct mx_run_field {
    char name[MX_FIELD_NAME + 4];
    enum mx_dtype dtype;
    int32_t array, index; /* array: 0 = A, 1 = B, MX_FIELD_OF_C; index: among the fields of that array */
    int32_t same_as;      /* p.old without a word of its own: the field whose values it takes; else -1 */
    const struct mx_init *init;   /* NULL: a file */
    char path[MX_FIELD_PATH];     /* of the file, absolute; "" = none */
    char inside[MX_FIELD_INSIDE]; /* of an HDF5 file the dataset: "/group/name"; else "" */
    char data[MX_FIELD_PATH];     /* of the file of its cells, if its header names one; "" = itself */
    char raw[48];                 /* of raw files what follows the name: "u8,offset=352"; "" = none */
    struct mx_frame made;         /* of a file, or a program's planes, that have no frame */
    struct mx_input_identity identity;
    struct mx_npy npy; /* open while the run needs it; fd -1 = not */
    bool frame;        /* the file has it */
    uint8_t alike; /* of C: axes along which the file's cells are alike (system/profile.h); with in_place it
                      is a profile, and its file is read once */
    bool in_place; /* of C: the run reads the file itself, not a copy of it in the store */
    bool program;  /* neither: the source of a program gives it */
};

struct mx_run_fields {
    struct mx_run_field field[MX_FIELDS_MOST];
    int32_t n;
};

/* The names of a system's fields, nothing known of their values. */
void mx_fields_of(const struct mx_system *system, struct mx_run_fields *out);
/* Opens a field's file, takes its identity, and closes it. Extents as for mx_fields_open. */
/* Opens a file that takes the place of a field of the state; with the frame or without it. -EINVAL: another
 * type, or other extents. */
int mx_field_open_edit(struct mx_run_field *field, const struct mx_problem *problem, mx_why *why);
int mx_field_look(struct mx_run_field *field, struct mx_problem *problem, mx_why *why);
/* Opens the files; extents of the problem that are 0 follow from them. Identities are taken, or, with
 * `former`, compared with what they were. */
int mx_fields_open(struct mx_run_fields *fields, struct mx_problem *problem, bool former, mx_why *why);
/* With `former`, those of the state alone. */
int mx_fields_open_state(struct mx_run_fields *fields, struct mx_problem *problem, mx_why *why);
void mx_fields_close(struct mx_run_fields *fields);
/* Of a resumed run, the files that it reads in place: they must be what they were. */
int mx_fields_open_in_place(struct mx_run_fields *fields, struct mx_problem *problem, mx_why *why);
/* Takes its identity, or, with `former`, compares it with what it was. */
int mx_field_take_identity(struct mx_run_field *field, bool former, mx_why *why);
/* The file of this field, open now, is read in place from here on: completes its identity. */
int mx_field_begin_in_place(struct mx_run_field *field, mx_why *why);
/* Completes the identity of a field that is alike along axes, which is of all cells: not before it is known
 * that there is room for them. Nothing to do for others. */
int mx_field_take_cells(struct mx_run_field *field, mx_why *why);
/* Are the cells still those of its identity? Of fields that are alike along axes. -ESTALE with a sentence. */
int mx_field_values_unchanged(struct mx_run_field *field, mx_why *why);
/* Is it still what it was then? -ESTALE with a sentence. What leaves bytes and the time of their change as
 * they were (a new name, other permissions) is looked at once more, and allowed where the sample is the same.
 */
int mx_field_unchanged(struct mx_run_field *field, mx_why *why);
/* Opens a program's source for each of its fields; *opened is set once that was done. */
int mx_fields_open_source(const struct mx_run_fields *fields, struct mx_problem *problem,
                          const struct mx_source *source, bool *opened, mx_why *why);
/* field_files.c: how the file of a field of C, open, lies if it is read in place; 0, or -errno with the
 * reason why it has to be copied. */
int mx_field_lay_in_place(const struct mx_run_field *field, const struct mx_problem *problem,
                          uint32_t align_bytes, mx_why *why, struct mx_fixed_layout *out);
/* field_files.c: what periodic sides ask of a field of C is in a copy alone: a frame that is the other end,
 * where a kernel reads it, and rows that direct transfers can take from there. 0, or -EINVAL with the reason.
 */
int mx_fields_check_sides(const struct mx_system *system, const struct mx_sides *sides,
                          const struct mx_backend *backend, mx_why *why);

/* Fills plane z of array A (0) or B (1) of the initial state; `layout` that of the Buffers. */
struct mx_fields_fill {
    const struct mx_run_fields *fields;
    const struct mx_problem *problem;
    const struct mx_layout *layout;
    int32_t threads;                /* as in mx_fill */
    int32_t array, index;           /* A, B, or MX_FIELD_OF_C and which */
    const struct mx_source *source; /* of the fields that a program gives */
    mx_why *why;
};
mx_source_fn mx_fields_fill_plane;

#endif
