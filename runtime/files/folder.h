/* SPDX-License-Identifier: BSD-3-Clause */
/* folder.h - directories that runs make for their stores (rank-N, cut-N, names with %r), and remove when they
 * are empty. Such a directory has a mark, an empty file .memext-made. It tells the end of the run, or the
 * next run after a kill, that the directory is not the user's. While a run is there, its directories are
 * locked (flock), so that no other run takes them for abandoned ones.
 */
#ifndef MX_FILES_FOLDER_H
#define MX_FILES_FOLDER_H

#include <stdbool.h>

/* Makes a directory if it does not exist, and locks it. 0 or -errno. *held: a descriptor that keeps the lock,
 * -1 = the file system has no locks. Close it before mx_folder_leave. */
int mx_folder_take(const char *path, int *held);
/* Has a run made it? */
bool mx_folder_is_made(const char *path);
/* Removes the directory if nobody holds it and it is empty. It must also have the mark of a run, or, with
 * `ours`, a name that only runs give. */
void mx_folder_leave(const char *path, bool ours);

#endif
