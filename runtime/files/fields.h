/* SPDX-License-Identifier: BSD-3-Clause */
/* fields.h - the fields of a system by name: where their initial values come from, and where their last ones
 * go.
 *
 *     name     is                              initial values                     result
 *     u        a field of the state            --input u=FILE, --init u=NAME      --output u=FILE
 *     p.old    leapfrog: p one step before     likewise; without one those of p   the state before the last
 *     k        a read-only field (of C)        --field k=FILE, --init k=NAME      none
 *
 * If the state has one field, its name may be left out. A file of C is a .npy file or raw cells:
 * `k=file.raw,u8,offset=352,frame=no`. It includes the frame; a file without it will do if C is read only at
 * the cell itself. For a raw file its length decides whether it has the frame; if more bytes follow the
 * cells, the word `frame` does. Files of the state may be raw too. With --frame (frame.h) files have no
 * frame, and it is made.
 */
#ifndef MX_FILES_FIELDS_H
#define MX_FILES_FIELDS_H

#include "ask/words.h"
#include "grid/grid.h"
#include "system/sides.h"

#include <limits.h>

/* The identity of a file, as it was when it was read. bytes 0 = no file. */
struct mx_input_identity {
    uint64_t inode, bytes;
    int64_t modified_ns;
    int64_t changed_ns; /* when anything about it changed; only this process remembers it */
    bool sampled;       /* the following is known (not in notes of older versions of memext) */
    bool whole;         /* the sample covers all cells, as for fields that are constant along axes */
    uint64_t sample; /* XXH3-64 of pages spread over the file, both ends included; for a program's source the
                        hash that it gives */
    int64_t offset_bytes; /* of the first cell */
};
/* Finds the identity of a file whose first cell is at offset_bytes; path is for sentences. */
int mx_input_look(int fd, int64_t offset_bytes, const char *path, mx_why *why, struct mx_input_identity *out);
/* Do both identities mean the same content, as far as is known? named: both files have the same name or
 * inode. Small files, which the sample covers whole, need neither the same name nor the same time of change.
 */
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
    int32_t same_as;      /* p.old without a word of its own: the field whose values it gets; else -1 */
    const struct mx_init *init;   /* NULL: a file */
    char path[MX_FIELD_PATH];     /* of the file, absolute; "" = none */
    char inside[MX_FIELD_INSIDE]; /* of an HDF5 file the dataset: "/group/name"; else "" */
    char data[MX_FIELD_PATH];     /* the file with its cells, if its header names one; "" = the file itself */
    char raw[48];                 /* of a raw file what follows its name: "u8,offset=352"; "" = not raw */
    struct mx_frame made;         /* how the frame is made, if the file or a program's planes have none */
    struct mx_input_identity identity;
    struct mx_npy npy; /* open while the run needs it; fd -1 = not open */
    bool frame;        /* the file has the frame */
    uint8_t alike; /* of C: axes along which the field is constant (system/profile.h). With in_place it is a
                      profile, and its file is read once */
    bool in_place; /* of C: the run reads the file itself, not a copy of it in the store */
    bool program;  /* neither init nor file: a program's source gives the field */
};

struct mx_run_fields {
    struct mx_run_field field[MX_FIELDS_MOST];
    int32_t n;
};

/* Makes the list of a system's fields, without values. */
void mx_fields_of(const struct mx_system *system, struct mx_run_fields *out);
/* Opens a file whose cells replace a field of the state, with the frame or without it. -EINVAL: another type,
 * or other extents. */
int mx_field_open_edit(struct mx_run_field *field, const struct mx_problem *problem, mx_why *why);
/* Opens a field's file, takes its identity, and closes it. Extents as for mx_fields_open. */
int mx_field_look(struct mx_run_field *field, struct mx_problem *problem, mx_why *why);
/* Opens the files. Extents of the problem that are 0 are taken from them. Takes their identities, or with
 * `former` compares them with the known ones. */
int mx_fields_open(struct mx_run_fields *fields, struct mx_problem *problem, bool former, mx_why *why);
/* Opens the files of the state alone, with `former`. */
int mx_fields_open_state(struct mx_run_fields *fields, struct mx_problem *problem, mx_why *why);
void mx_fields_close(struct mx_run_fields *fields);
/* For a resumed run: opens the files that it reads in place, which must not have changed. */
int mx_fields_open_in_place(struct mx_run_fields *fields, struct mx_problem *problem, mx_why *why);
/* Takes the identity of an open file, or with `former` compares it with the known one. */
int mx_field_take_identity(struct mx_run_field *field, bool former, mx_why *why);
/* Says that the open file of this field is read in place from now on: completes its identity. */
int mx_field_begin_in_place(struct mx_run_field *field, mx_why *why);
/* Completes the identity of a field that is constant along axes, which covers all cells. Call it when it is
 * known that there is memory for them. Does nothing for other fields. */
int mx_field_take_cells(struct mx_run_field *field, mx_why *why);
/* For fields that are constant along axes: checks that the cells are still those of the identity. -ESTALE
 * with a sentence. */
int mx_field_values_unchanged(struct mx_run_field *field, mx_why *why);
/* Checks that a file has not changed. -ESTALE with a sentence. Changes that leave the bytes and the time of
 * their change (a new name, other permissions) are allowed if the sample is the same.
 */
int mx_field_unchanged(struct mx_run_field *field, mx_why *why);
/* Opens a program's source for each of its fields; *opened is set once that was done. */
int mx_fields_open_source(const struct mx_run_fields *fields, struct mx_problem *problem,
                          const struct mx_source *source, bool *opened, mx_why *why);
/* in_place.c: computes how the open file of a field of C lies if it is read in place. 0, or -errno with the
 * reason why it must be copied. */
int mx_field_lay_in_place(const struct mx_run_field *field, const struct mx_problem *problem,
                          uint32_t align_bytes, mx_why *why, struct mx_fixed_layout *out);
/* in_place.c: checks that periodic sides allow to read fields of C in place. Only a copy can have a frame
 * that equals the other end, if a kernel reads it, and rows there that direct transfers can read. 0, or
 * -EINVAL with the reason.
 */
int mx_fields_check_sides(const struct mx_system *system, const struct mx_sides *sides,
                          const struct mx_backend *backend, mx_why *why);

/* Context of mx_fields_fill_plane. */
struct mx_fields_fill {
    const struct mx_run_fields *fields;
    const struct mx_problem *problem;
    const struct mx_layout *layout;
    int32_t threads;                /* as in mx_fill */
    int32_t array, index;           /* A, B, or MX_FIELD_OF_C and which */
    const struct mx_source *source; /* of the fields that a program gives */
    mx_why *why;
};
/* Fills plane z of array A (0) or B (1) of the initial state. `layout` is that of the Buffers. */
mx_source_fn mx_fields_fill_plane;

#endif
