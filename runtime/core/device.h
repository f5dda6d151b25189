/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h - a device as core's own files see it. */
#ifndef MX_DEVICE_H
#define MX_DEVICE_H

#include "core/place.h"
#include "core/queue.h"

#include <pthread.h>

struct mx_device {
    const struct mx_backend *backend; /* the backend that is called */
    const struct mx_backend *inner;   /* the backend itself; differs from `backend` under the fault wrapper */
    void *state;
    struct mx_queue *queue;
    struct mx_device_options options; /* defaults filled in; strings point below */
    char backend_name[64], fault[256];
    struct mx_found found;
    struct mx_backend_facts facts; /* note: guarded by lock */

    pthread_mutex_t lock; /* superblock, extents, Buffers, note */
    bool done;            /* mx_device_finish succeeded in this process */
    bool waiting;         /* the place still has its old content: mx_device_take has not been called */
    struct mx_superblock
        *former; /* supersede.c: the store in the place until the first commit of the new one, or NULL */
    bool held[MX_EXTENTS]; /* which Buffers of `former` must not be overwritten until then */
    bool late;             /* the extent that is being made is written only after the first commit */
    bool extent_open[MX_EXTENTS];
    bool unused;  /* the extent that is being made gets no space yet */
    bool unsaved; /* a file or device has extents that no superblock lists yet */
    uint64_t extended,
        flushed;            /* how often extents were added, and how many of these additions are flushed */
    bool told_registration; /* the note already says that memory could not be registered */
    int failed;     /* the first error of a write or flush, except for those of the queue's own writes */
    mx_why failure; /* and its sentence */
};

/* Like mx_device_open, but leaves the old content of the place alone until mx_device_take, for callers that
 * have more to check. mx_device_take writes the new store and gives up the old content. Before it, Buffers
 * can be created and opened but not written. If the device is closed before it, the place is unchanged. */
int mx_device_open_waiting(const struct mx_device_options *options, mx_why *why, mx_device **out);
/* Likewise, but makes the new store beside the one in the place. Until the first commit of the new store,
 * everybody finds the old one there. -ENOENT: there is no store with a note; -EEXIST: its run is not done
 * (force). */
int mx_device_open_beside(const struct mx_device_options *options, mx_why *why, mx_device **out);
/* Says whether a new store of options->expect_bytes could be made, or (beside) one beside the store in the
 * place. Opens nothing for writing, and locks and makes nothing. Errors as of mx_device_open. */
int mx_device_ask(const struct mx_device_options *options, bool beside, mx_why *why);
/* Writes the new store to the place, whose old content is then lost. Returns 0 also if there was nothing to
 * do. Errors as of mx_device_open. */
int mx_device_take(mx_device *device, mx_why *why);
/* Returns the generation of the newest superblock. */
uint64_t mx_device_generation(const mx_device *device);
/* Is this regular file or block device the one that the device works on? */
bool mx_device_is(const mx_device *device, const struct stat *file);
/* Opens a file of the user as a device, to be read in place. Its one Buffer, MX_FILE_BUFFER, is the whole
 * file. fd is open for reading, belongs to the caller, and may be closed once this returns. options as for
 * mx_device_open; their path is for messages only. The device never writes, locks, removes or renames the
 * file; new Buffers and writes are -EROFS. Transfers may reach to the end of the block that the file ends in.
 * If O_DIRECT is refused, the file is read through the page cache (facts.bypasses_page_cache). -ENOTSUP (the
 * backend is anonymous, or cannot work here), -ENOTBLK (not a regular file), -EINVAL. */
int mx_device_open_file(int fd, const struct mx_device_options *options, mx_why *why, mx_device **out);
/* Like mx_buffer_create, for a Buffer that will probably never be written: in a file it gets no space yet.
 * Call mx_buffer_allocate before it is written after all. That returns 0 also if the Buffer has its space
 * already; -ENOSPC. */
int mx_buffer_create_unused(mx_device *device, const char *name, uint64_t bytes, mx_why *why,
                            mx_buffer **out);
int mx_buffer_allocate(mx_buffer *buffer, mx_why *why);
/* Returns the device of a Buffer. */
mx_device *mx_buffer_device(const mx_buffer *buffer);
/* Returns the memory of a Buffer that stays in DRAM, where a transfer is only a copy. The caller may then
 * copy bytes itself, between a call of mx_buffer_move_begins and one of mx_buffer_move_ends. NULL: the Buffer
 * is on storage, may be swapped out, is checked (mx_buffer_integrity), or a wrapper stands before its
 * backend. */
char *mx_buffer_memory(const mx_buffer *buffer);
void mx_buffer_move_begins(mx_buffer *buffer, bool write);
void mx_buffer_move_ends(mx_buffer *buffer, bool write, uint64_t bytes);
/* Touches all pages with several threads, so that they are in DRAM. Their content stays. */
void mx_memory_touch(void *base, uint64_t bytes);

/* ---- supersede.c: a device that was opened beside a store */

/* Copies the note of that store, as mx_device_note does. */
int64_t mx_device_former_note(const mx_device *device, void *note, size_t capacity_bytes);
/* Says that the former store does not need its Buffer `name` (with its "name.sum"): these may be overwritten
 * before the first commit. */
void mx_device_give_former(mx_device *device, const char *name);
/* Commits a new note to the former store. Call it before anything overwrites Buffers that were given up. 0 or
 * -errno. */
int mx_device_renew_former(mx_device *device, const void *note, size_t note_bytes);
/* Says whether Buffers that are made from now on are written only after the first commit (late), or at once.
 */
void mx_device_make_late(mx_device *device, bool late);
/* Begins a new store beside the one in the place. Lock held. 0 or -errno. */
int mx_device_begin_beside(mx_device *device, mx_why *why);
/* Returns the first offset where `bytes` bytes do not overlap any of the n extents. */
uint64_t mx_extent_fit(const struct mx_extent *extents, size_t n, uint64_t bytes);

/* Takes over the extents of *next. The next superblock that is written lists them: that of a commit, or else
 * that of mx_device_flush or mx_device_close. Lock held. */
int mx_device_extend(mx_device *device, const struct mx_superblock *next);
/* Remembers the first failed write or flush. Lock held. Returns err. */
int mx_device_fail(mx_device *device, int err, const char *what);
/* For a process that must end at once because a page of a mapped Buffer cannot be read or written. Removes
 * the file if nothing in it is worth keeping. Waits for nothing and takes no lock, so a signal handler may
 * call it. The device must not be used afterwards. NULL allowed. */
void mx_device_abandon(mx_device *device);

/* ---- device_options.c */

/* Fills in the device's options, with defaults, and the backend of this name. -EINVAL with a sentence. */
int mx_device_options_take(mx_device *device, const struct mx_device_options *asked, const char *name,
                           mx_why *why);

/* ---- device_space.c */

/* Makes memory the device's place: finds how much of it anonymous Buffers may fill. */
int mx_device_memory(mx_device *device, mx_why *why);
/* Returns where the extents end, with those of a former store that must not be overwritten. Lock held. */
uint64_t mx_device_end(const mx_device *device);
/* -ENOSPC if there is no room for the Buffers that the options expect. */
int mx_device_check_space(mx_device *device, mx_why *why);
/* -ENOTSUP if the backend needs storage and the place is none. */
int mx_device_check_storage(const struct mx_backend *backend, const struct mx_storage *storage,
                            const char *path, mx_why *why);
/* Returns the space left for Buffers, in bytes. Lock held. */
uint64_t mx_device_room(const mx_device *device);

#endif
