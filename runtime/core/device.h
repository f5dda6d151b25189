/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h - a device as core's own files see it. */
#ifndef MX_DEVICE_H
#define MX_DEVICE_H

#include "core/place.h"
#include "core/queue.h"

#include <pthread.h>

struct mx_device {
    const struct mx_backend *backend; /* what is called */
    const struct mx_backend *inner;   /* what it stands for: differs under the fault wrapper */
    void *state;
    struct mx_queue *queue;
    struct mx_device_options options; /* defaults filled in; strings point below */
    char backend_name[64], fault[256];
    struct mx_found found;
    struct mx_backend_facts facts; /* note: guarded by lock */

    pthread_mutex_t lock; /* superblock, extents, Buffers, note */
    bool done;            /* mx_device_finish succeeded in this process */
    bool waiting;         /* what was in the place is there still: mx_device_take has not been called */
    struct mx_superblock
        *former;           /* supersede.c: the store that is in the place until the first commit, or NULL */
    bool held[MX_EXTENTS]; /* which of its Buffers nothing is written over until then */
    bool late;             /* the extent that is being made is written after the first commit alone */
    bool extent_open[MX_EXTENTS];
    bool unused;                /* the extent that is being made takes no space yet */
    bool unsaved;               /* there are extents that no superblock tells of yet, in a file or device */
    uint64_t extended, flushed; /* how often there were more extents, and of those how many are flushed */
    bool told_registration;     /* the note tells already that memory could not be registered */
    int failed;     /* the first error of a write or flush, other than of the queue's own writes */
    mx_why failure; /* and its sentence */
};

/* Like mx_device_open, but leaves the old content of the place alone until mx_device_take, for callers that
 * have more to check. mx_device_take writes the new store and gives up the old content. Before it, Buffers
 * can be created and opened but not written. If the device is closed before it, the place is unchanged. */
int mx_device_open_waiting(const struct mx_device_options *options, mx_why *why, mx_device **out);
/* Likewise, beside the store that is in the place, which stays what everybody finds there until the first
 * commit of the new one. -ENOENT: there is none with a note; -EEXIST: its run is not done (force). */
int mx_device_open_beside(const struct mx_device_options *options, mx_why *why, mx_device **out);
/* Could a new store of options->expect_bytes be made, or one beside the store that is there? For who only
 * asks: nothing is opened for writing, locked or made. Errors as mx_device_open's. */
int mx_device_ask(const struct mx_device_options *options, bool beside, mx_why *why);
/* 0, also where there is nothing to wait for. Errors as mx_device_open's. */
int mx_device_take(mx_device *device, mx_why *why);
/* Of the newest superblock. */
uint64_t mx_device_generation(const mx_device *device);
/* Is this regular file or block device the one that the device works on? */
bool mx_device_is(const mx_device *device, const struct stat *file);
/* A file of the user as a device, to be read where it is: its one Buffer, MX_FILE_BUFFER, is all of the file.
 * fd is open for reading, stays the caller's, and may be closed once this returns; options as for
 * mx_device_open, path for messages alone. Nothing is ever written, locked, removed or renamed; new Buffers
 * and writes are -EROFS. Transfers may reach to the end of the block that the file ends in. Where O_DIRECT is
 * refused it is read through the page cache (facts.bypasses_page_cache). -ENOTSUP (the backend is anonymous,
 * or cannot work here), -ENOTBLK (no regular file), -EINVAL. */
int mx_device_open_file(int fd, const struct mx_device_options *options, mx_why *why, mx_device **out);
/* Like mx_buffer_create, for a Buffer that will probably never be written: in a file it takes no space yet.
 * Before it is written after all, mx_buffer_allocate takes the space. 0 also if the Buffer has the space
 * already; -ENOSPC. */
int mx_buffer_create_unused(mx_device *device, const char *name, uint64_t bytes, mx_why *why,
                            mx_buffer **out);
int mx_buffer_allocate(mx_buffer *buffer, mx_why *why);
/* The device that a Buffer is on. */
mx_device *mx_buffer_device(const mx_buffer *buffer);
/* The memory that a Buffer is, where it stays in DRAM and a transfer is a copy and nothing else: whoever has
 * it may move bytes himself, and says when that begins and ends. NULL: it is on storage or may be swapped
 * out, is compared with hashes, or another backend stands before it. */
char *mx_buffer_memory(const mx_buffer *buffer);
void mx_buffer_move_begins(mx_buffer *buffer, bool write);
void mx_buffer_move_ends(mx_buffer *buffer, bool write, uint64_t bytes);
/* Takes memory for all its pages, with all cores. What is in them stays. */
void mx_memory_touch(void *base, uint64_t bytes);

/* ---- supersede.c: a device that was opened beside a store */

/* The note of that store. As mx_device_note. */
int64_t mx_device_former_note(const mx_device *device, void *note, size_t capacity_bytes);
/* Of its Buffers (name, or name.sum) this one holds nothing that the store needs. */
void mx_device_give_former(mx_device *device, const char *name);
/* Its note becomes this one: before anything is written over Buffers that were given. 0 or -errno. */
int mx_device_renew_former(mx_device *device, const void *note, size_t note_bytes);
/* Buffers that are made from here on are written after the first commit alone (late), or at once. */
void mx_device_make_late(mx_device *device, bool late);
/* Lock held. */
int mx_device_begin_beside(mx_device *device, mx_why *why);
/* The first offset at which so many bytes meet none of n extents. */
uint64_t mx_extent_fit(const struct mx_extent *extents, size_t n, uint64_t bytes);

/* Takes the extents of next, which the next superblock that is written tells of: that of a commit, or, of
 * what was never committed, that of mx_device_flush or mx_device_close. Lock held. */
int mx_device_extend(mx_device *device, const struct mx_superblock *next);
/* Remembers the first failed write or flush. Lock held. Returns err. */
int mx_device_fail(mx_device *device, int err, const char *what);
/* For a process that must end at once, since memory that Buffers are mapped to cannot be had: removes the
 * file if nothing in it is worth keeping. Waits for nothing, takes no lock: may be called by a signal
 * handler. The device must not be used afterwards. NULL allowed. */
void mx_device_abandon(mx_device *device);

/* ---- device_options.c */

/* Options with defaults filled in, and the backend of this name. -EINVAL with a sentence. */
int mx_device_options_take(mx_device *device, const struct mx_device_options *asked, const char *name,
                           mx_why *why);

/* ---- device_space.c */

/* Memory as a place: how much of it anonymous Buffers may fill. */
int mx_device_memory(mx_device *device, mx_why *why);
/* Where the extents end, and those of a former store that must not be written over. Lock held. */
uint64_t mx_device_end(const mx_device *device);
/* -ENOSPC where there is no room for what a new store expects. */
int mx_device_check_space(mx_device *device, mx_why *why);
/* -ENOTSUP where a place is no storage and the backend transfers. */
int mx_device_check_storage(const struct mx_backend *backend, const struct mx_storage *storage,
                            const char *path, mx_why *why);
/* Space left for Buffers. Lock held. */
uint64_t mx_device_room(const mx_device *device);

#endif
