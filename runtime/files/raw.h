/* SPDX-License-Identifier: BSD-3-Clause */
/* raw.h - files of raw cells, of which a word of the command line says what they hold:
 * FILE,TYPE[,offset=BYTES][,frame=yes|no]. */
#ifndef MX_FILES_RAW_H
#define MX_FILES_RAW_H

#include "grid/grid.h"

#include <limits.h>

enum { MX_RAW_TEXT = 48 };

/* A word's file and, in `raw`, what follows it: "f32,offset=352"; "" = nothing, a .npy file. Names may have
 * commas: the file that is there decides, and where none is the first comma. */
void mx_raw_split(const char *word, char path[PATH_MAX], char raw[MX_RAW_TEXT]);

/* What is asked of such a file. */
struct mx_raw_want {
    const char *option;      /* for sentences: "--field k" */
    int64_t nx, ny, nz;      /* interior cells; 0 = not known, which is refused */
    int32_t h;               /* cells of a frame */
    bool flat;               /* two dimensions: ny is 1 and has no frame (system.h) */
    bool may_have, may_lack; /* the frame; where both, the file's length decides or the word says */
};

/* Opens it as if it were a .npy file of that shape. *frame: it has one. What follows the cells is nobody's
 * business, so a file that could be either has to be told. -EINVAL, -errno; out->fd is -1 then. */
int mx_raw_open(const char *path, const char *raw, const struct mx_raw_want *want, mx_why *why,
                struct mx_npy *out, bool *frame);

#endif
