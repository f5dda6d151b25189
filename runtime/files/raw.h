/* SPDX-License-Identifier: BSD-3-Clause */
/* raw.h - files of raw cells, described by a word of the command line:
 * FILE,TYPE[,offset=BYTES][,frame=yes|no]. */
#ifndef MX_FILES_RAW_H
#define MX_FILES_RAW_H

#include "grid/grid.h"

#include <limits.h>

enum { MX_RAW_TEXT = 48 };

/* Splits a word into the file and what follows it: "f32,offset=352"; raw "" = nothing follows, a .npy file.
 * If the name has commas, the file that exists decides, otherwise the first comma. */
void mx_raw_split(const char *word, char path[PATH_MAX], char raw[MX_RAW_TEXT]);

/* What a raw file must have. */
struct mx_raw_want {
    const char *option; /* for sentences: "--field k" */
    int64_t nx, ny, nz; /* interior cells; 0 = not known, which is an error */
    int32_t h;          /* width of the frame in cells */
    bool flat;          /* two dimensions: ny is 1 and has no frame (system.h) */
    bool may_have,
        may_lack; /* it may have the frame, it may lack it; if both, the file's length or the word decides */
};

/* Opens a raw file like a .npy file of that shape. *frame: it has the frame. Other bytes may follow the
 * cells. So if a file is long enough for both, the word must say whether it has the frame. -EINVAL, -errno;
 * out->fd is -1 then. */
int mx_raw_open(const char *path, const char *raw, const struct mx_raw_want *want, mx_why *why,
                struct mx_npy *out, bool *frame);

#endif
