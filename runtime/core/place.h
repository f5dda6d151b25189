/* place.h - finding, checking and locking the file or block device that a path names. */
#ifndef MX_PLACE_H
#define MX_PLACE_H

#include "core/store.h"
#include "machine/machine.h"

#include <memext/backend.h>

struct mx_found {
    struct mx_place place; /* place.path points to path below */
    char path[4096];
    bool directory; /* the path was a directory: the file in it is ours to remove */
    bool created;   /* the file was not there before */
    bool signature; /* --force was needed to pass a known signature */
    struct mx_storage storage;
    enum mx_store_kind kind;
    struct mx_superblock super; /* kind INTACT */
    int slot;
};

/* Opens and locks; nothing is written but for an empty new file. Errors as mx_device_open. out is large and
 * must not be moved afterwards. */
int mx_place_find(const struct mx_device_options *options, mx_why *why, struct mx_found *out);
/* Space for Buffers: of the device, or, behind the first used_bytes of a file, what the file has already and
 * what is free in the file system. */
uint64_t mx_place_capacity(const struct mx_found *found, uint64_t used_bytes);
/* Makes a new store: whatever was there is lost from here on. The file of a former store keeps its blocks:
 * writing them again is faster than the first write into new ones. */
int mx_place_take(struct mx_found *found, mx_why *why);
/* Gives up what a file has behind its first used_bytes. */
void mx_place_trim(struct mx_found *found, uint64_t used_bytes);
/* Closes, and removes the file if asked. */
void mx_place_leave(struct mx_found *found, bool remove);

#endif
