/* SPDX-License-Identifier: BSD-3-Clause */
/* place.h - finds, checks and locks the file or block device that a path names. */
#ifndef MX_PLACE_H
#define MX_PLACE_H

#include "core/store.h"
#include "machine/machine.h"

#include <memext/backend.h>
#include <sys/stat.h>

/* The name of the one extent of a file of the user. */
#define MX_FILE_BUFFER "file"

struct mx_found {
    struct mx_place place; /* place.path points to path below */
    char path[4096];
    int sync_fd;  /* the same file opened with O_DSYNC, for writing superblocks */
    dev_t device; /* device and inode of the opened file: only this file may be removed */
    ino_t inode;
    bool directory;     /* the path was a directory: the file in it is ours to remove */
    bool created;       /* the file was not there before */
    bool signature;     /* a known signature is there, which --force overwrites */
    bool beside;        /* what is there stays until the first commit of the new store */
    bool finished_lost; /* a finished run is in the store that will be overwritten */
    struct mx_storage storage;
    enum mx_store_kind kind;
    struct mx_superblock super; /* kind INTACT */
    int slot;
};

/* Finds what a path names. `path` becomes the file or block device; for a directory it is the store in it,
 * and *directory is true. *st is its stat. If nothing is there yet, *st is zero except for the mode of a
 * regular file. */
int mx_place_name(const char *asked, mx_why *why, char path[4096], bool *directory, struct stat *st);

/* Does the name end in .memext or .store? Only such a path becomes a new file if nothing is there yet.
 * Otherwise a missing directory or a typing mistake would become a file. */
bool mx_place_is_new_store(const char *path);
/* Says whether a run can begin there, as far as a look tells. Opens nothing. Errors as of mx_device_open. */
int mx_place_check(const char *path, mx_why *why);

/* Opens and locks the place. Writes nothing, but makes an empty file if it is new. Errors as of
 * mx_device_open. *out is large and must not be moved afterwards. */
int mx_place_find(const struct mx_device_options *options, mx_why *why, struct mx_found *out);
/* Makes a file of the user the place. fd is open and belongs to the caller; the path is for messages. The
 * file is only read, never locked, removed or made longer. Its one extent is the whole file. -ENOTBLK (not a
 * regular file), -errno. */
int mx_place_take_file(int fd, const struct mx_device_options *options, mx_why *why, struct mx_found *out);
/* Returns the space for Buffers in bytes: that of the block device, or what a file has after its first
 * used_bytes plus what is free in its file system. */
uint64_t mx_place_capacity(const struct mx_found *found, uint64_t used_bytes);
/* Says whether a new store could be made at options->path. Opens nothing for writing, and locks and makes
 * nothing. Errors as of mx_place_find. `path` becomes that of the store, *storage what it would be on, *room
 * the space for Buffers there. */
int mx_place_ask(const struct mx_device_options *options, bool beside, mx_why *why, char path[4096],
                 struct mx_storage *storage, uint64_t *room);
/* Makes a new store; the old content is lost. The file of a former store keeps its blocks, since writing them
 * again is faster than a first write to new ones. The file and its name are durable afterwards. */
int mx_place_take(struct mx_found *found, mx_why *why);
/* Takes over the store in the place. Afterwards the superblock that was found is on stable storage, with both
 * copies intact. */
int mx_place_adopt(struct mx_found *found, mx_why *why);
/* Cuts a file after its first used_bytes. */
void mx_place_trim(struct mx_found *found, uint64_t used_bytes);
/* Removes the file that was opened, if its name still leads to it. Takes no lock and no memory. */
void mx_place_remove(const struct mx_found *found);
/* Closes the place, and removes the file if asked. */
void mx_place_leave(struct mx_found *found, bool remove);
/* Does an error of flock mean that this file system has no locks? */
bool mx_place_has_no_locks(int err);
/* Does anybody work on the file of fd? fd must hold no flock. Waits for a process that is ending. */
bool mx_place_in_use(int fd);

#endif
