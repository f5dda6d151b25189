/* SPDX-License-Identifier: BSD-3-Clause */
/* folder.h - directories that runs make for their stores (rank-N, cut-N, what %r names), and take away when
 * they hold nothing any more. One that was made has a mark in it, an empty file .memext-made: whoever ends
 * the run, or begins the next one after a kill, knows by it that the directory is not the user's. As long as
 * a run is there its directories are locked (flock), and no other run takes them for left.
 */
#ifndef MX_FILES_FOLDER_H
#define MX_FILES_FOLDER_H

#include <stdbool.h>

/* Makes it where it is not there. 0 or -errno. *held: a descriptor that keeps it, -1 = a file system without
 * such locks; to be closed before mx_folder_leave. */
int mx_folder_take(const char *path, int *held);
/* Has a run made it? */
bool mx_folder_is_made(const char *path);
/* Removes the directory if nobody holds it and it is empty. It must also have the mark of a run, or, with
 * `ours`, a name that only runs give. */
void mx_folder_leave(const char *path, bool ours);

#endif
