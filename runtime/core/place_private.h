/* SPDX-License-Identifier: BSD-3-Clause */
/* place_private.h - shared by the files that find a place (place.h). */
#ifndef MX_PLACE_PRIVATE_H
#define MX_PLACE_PRIVATE_H

#include "core/place.h"

/* ---- place_name.c */

/* Returns the error for the caller, with a sentence about the path. error: a number of errno. */
int mx_place_explain(const char *path, int error, mx_why *why);
int mx_place_refuse_link(const char *path, mx_why *why);
int mx_place_join(char out[4096], const char *asked, const char *name, mx_why *why);

/* ---- place_lock.c */

/* O_RDONLY or O_RDWR: a store that is only read may be on a file system or device that is read-only. */
int mx_place_access(const struct mx_device_options *options);
/* Locks a place. -EBUSY (another memext holds it), -ENOLCK (the file system has no locks). */
int mx_place_lock(const char *path, int fd, bool read_only, bool no_lock, mx_why *why);
/* Waits for the requests of a memext that has ended. -EBUSY if they do not end. */
int mx_place_wait(const char *path, int fd, bool read_only, mx_why *why);

/* ---- place.c */

/* May this file, this device be written to? */
int mx_place_check_file(struct mx_found *found, const struct stat *st, bool force, mx_why *why);
int mx_place_check_device(const struct mx_found *found, dev_t device, mx_why *why);
/* Returns the room for Buffers: what a file of held_bytes has after its first used_bytes, plus what its file
 * system has free; or the room of the device.
 */
uint64_t mx_place_room_in(const struct mx_storage *storage, uint64_t held_bytes, uint64_t used_bytes);

/* ---- place_contents.c */

/* What is there, and may it be overwritten or resumed, as the options ask? */
int mx_place_examine(struct mx_found *found, const struct mx_device_options *options, mx_why *why);

#endif
