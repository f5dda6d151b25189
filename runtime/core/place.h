/* SPDX-License-Identifier: BSD-3-Clause */
/* place.h - finding, checking and locking the file or block device that a path names. */
#ifndef MX_PLACE_H
#define MX_PLACE_H

#include "core/store.h"
#include "machine/machine.h"

#include <memext/backend.h>
#include <sys/stat.h>

/* Name of the one extent of a file of the user. */
#define MX_FILE_BUFFER "file"

struct mx_found {
    struct mx_place place; /* place.path points to path below */
    char path[4096];
    int sync_fd;  /* the same once more, O_DSYNC: superblocks are written by it */
    dev_t device; /* number of what was opened, which alone may be removed */
    ino_t inode;
    bool directory;     /* the path was a directory: the file in it is ours to remove */
    bool created;       /* the file was not there before */
    bool signature;     /* --force was needed to pass a known signature */
    bool beside;        /* what is there stays until the first commit of the new store */
    bool finished_lost; /* a finished run is in the store that will be overwritten */
    struct mx_storage storage;
    enum mx_store_kind kind;
    struct mx_superblock super; /* kind INTACT */
    int slot;
};

/* What a path names: path is the file or block device (of a directory, the store in it), *directory tells,
 * *st is its stat or, if nothing is there yet, all zero but for the mode of a regular file. */
int mx_place_name(const char *asked, mx_why *why, char path[4096], bool *directory, struct stat *st);

/* Does the name end in .memext or .store? Only such a path becomes a new file if nothing is there yet.
 * Otherwise a missing directory or a typing mistake would become a file. */
bool mx_place_is_new_store(const char *path);
/* Can a run begin there, as far as a look tells? Nothing is opened. Errors as mx_device_open. */
int mx_place_check(const char *path, mx_why *why);

/* Opens and locks; nothing is written but for an empty new file. Errors as mx_device_open. out is large and
 * must not be moved afterwards. */
int mx_place_find(const struct mx_device_options *options, mx_why *why, struct mx_found *out);
/* A file of the user, opened by fd (which stays the caller's), path for messages: only read, never locked,
 * removed or made longer. Its one extent is all of it. -ENOTBLK (no regular file), -errno. */
int mx_place_take_file(int fd, const struct mx_device_options *options, mx_why *why, struct mx_found *out);
/* Space for Buffers: of the device, or, behind the first used_bytes of a file, what the file has already and
 * what is free in the file system. */
uint64_t mx_place_capacity(const struct mx_found *found, uint64_t used_bytes);
/* Could a new store be made at options->path? Nothing is opened for writing, locked or made. Errors as
 * mx_place_find's; path: that of the store; *storage: what it would be on; *room: space for Buffers there. */
int mx_place_ask(const struct mx_device_options *options, bool beside, mx_why *why, char path[4096],
                 struct mx_storage *storage, uint64_t *room);
/* Makes a new store: whatever was there is lost from here on. The file of a former store keeps its blocks:
 * writing them again is faster than the first write into new ones. File and name are durable afterwards. */
int mx_place_take(struct mx_found *found, mx_why *why);
/* Goes on with the store that is there: what was found is on stable storage, and whole, afterwards. */
int mx_place_adopt(struct mx_found *found, mx_why *why);
/* Gives up what a file has behind its first used_bytes. */
void mx_place_trim(struct mx_found *found, uint64_t used_bytes);
/* Removes the file that was opened, if its name is still its own. Takes no lock and no memory. */
void mx_place_remove(const struct mx_found *found);
/* Closes, and removes the file if asked. */
void mx_place_leave(struct mx_found *found, bool remove);
/* Does an error of flock say that there are none in this file system? */
bool mx_place_has_no_locks(int err);
/* Does anybody work on what fd has opened? It must hold no flock, and waits for a process that is ending. */
bool mx_place_in_use(int fd);

#endif
