/* SPDX-License-Identifier: BSD-3-Clause */
/* memext.h - out-of-core arrays and stencil runs on flash: the public interface of libmemext.
 *
 * Words: a Buffer is a whole array on a device. A Block is a piece of DRAM that holds a region of a Buffer. A
 * device is an opened place (a file, a directory, a block device, anonymous memory) driven by one backend:
 * dram, swap, mmap, aio or uring. The program chooses the backend at run time. The code that moves data
 * between Buffers and Blocks is the same for all backends.
 *
 *     mx_device_open -> mx_buffer_create -> mx_block_create -> mx_buffer_read / mx_buffer_write -> mx_wait
 *
 * Conventions, true for every function here:
 *  - A function that can fail returns 0 (or a count) on success and a negative errno on failure.
 *  - `mx_why *why` may be NULL. On failure it holds one sentence for the user: the value, the limit, the
 * way out.
 *  - Out-pointers come last. They are written only on success.
 *  - Nothing here prints, exits, aborts or sets errno.
 *  - Sizes and offsets are in bytes, times in nanoseconds, extents of a grid in cells. Names say which.
 *  - A zeroed options struct asks for all defaults. Every field says what 0 means.
 *  - Structs that may grow begin with their size, which the program sets to sizeof: {.size = sizeof s, ...}.
 * A library that knows more fields than the program treats the missing ones as 0. It never writes beyond that
 * size. Size 0 stands for the fields that the struct had first. mx_why, mx_span and mx_store_extent never
 * grow.
 */
#ifndef MEMEXT_MEMEXT_H
#define MEMEXT_MEMEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of memext. CMake and the Python package read it here. */
#define MX_VERSION "0.9.0"

/* One sentence for the user; text[0] == 0 if there is nothing to say. */
typedef struct mx_why {
    char text[512];
} mx_why;

/* ------------------------------------------------------------------ DRAM budget
 * A budget limits the DRAM that a program uses for Blocks. mx_block_create counts a Block against the budget
 * that is given to it. */

typedef struct mx_budget mx_budget;

struct mx_budget_facts {
    uint32_t size;          /* set by the caller */
    uint64_t limit_bytes;   /* DRAM visible to the run: min(physical, cgroup limit, asked for) */
    uint64_t reserve_bytes; /* left to the system (called Km in the papers) */
    uint64_t used_bytes;    /* used by Blocks now */
    uint64_t peak_bytes;    /* largest used_bytes so far */
};

/* Makes a budget. limit_bytes: DRAM that the run may see; 0 = all that this process may use, the smaller of
 * the machine's memory and the cgroup's limit (v1 or v2). reserve_bytes: the part of the limit that stays
 * free for the system; less than the limit. -EINVAL (limit_bytes is above what this process may use, or the
 * reserve leaves nothing), -ENOMEM. */
int mx_budget_create(uint64_t limit_bytes, uint64_t reserve_bytes, mx_why *why, mx_budget **out);
/* Frees a budget, after the Blocks that were counted against it. NULL allowed. */
void mx_budget_free(mx_budget *budget);
/* Fills *out with the budget's figures as they are now. Any thread may call. */
void mx_budget_facts(const mx_budget *budget, struct mx_budget_facts *out);

/* ------------------------------------------------------------------ device */

typedef struct mx_device mx_device;

/* What Linux is told (madvise) about accesses to Buffers that are mapped into memory. SCHEDULE: a run advises
 * each region just before it is needed, and drops it when it is done. */
enum mx_advice {
    MX_ADVICE_NONE,
    MX_ADVICE_SEQUENTIAL,
    MX_ADVICE_RANDOM,
    MX_ADVICE_WILLNEED,
    MX_ADVICE_HUGEPAGE,
    MX_ADVICE_SCHEDULE,
    /* the two verbs that SCHEDULE is made of: for mx_buffer_advise, not for device options */
    MX_ADVICE_POPULATE, /* bring the range into memory now */
    MX_ADVICE_DROP,     /* write the range back and free its memory */
};

/* How to open a device. A zeroed struct with a path opens a new store there with the best backend. */
struct mx_device_options {
    uint32_t size;
    const char *backend; /* "dram" "swap" "mmap" "aio" "uring"; NULL = the first of uring, aio that works in
                            this place. "fault:NAME" wraps the backend NAME for tests, see `fault`. */
    const char *path; /* a directory, file or block device; ignored by dram and swap. If nothing is there, a
                         name that ends in .memext or .store becomes a new file */
    uint64_t expect_bytes;      /* total of the Buffers to come: mx_device_open checks that there is space for
                                   them; 0 = no check */
    uint32_t queue_depth;       /* requests in flight, 1..4096; 0 = 32 */
    uint32_t max_request_bytes; /* longest single request, rounded down to the alignment; 0 = 1 MiB */
    uint32_t workers;           /* copying threads of mapped backends, 1..64; 0 = min(cores, 4) */
    enum mx_advice advice;      /* mapped backends: applied to every Buffer when it is mapped */
    bool sqpoll;                /* uring: a thread of the kernel submits the requests */
    bool iopoll;                /* uring: polls for completions; needs a device with poll queues */
    bool uncached;              /* uring: buffered I/O with RWF_DONTCACHE instead of O_DIRECT */
    bool no_register;           /* uring: neither registered memory nor registered files */
    bool force;  /* overwrite a file that memext did not make, a device with a known signature, or a run that
                    is not done or was kept */
    bool resume; /* open the store in the place instead of making a new one */
    bool read_only;    /* with resume: nothing is written, not even to mend an interrupted commit. Writes,
                          commits and new Buffers are -EROFS. Works on read-only file systems and on stores of
                          other users */
    bool keep;         /* mx_device_close leaves the file of a store in a directory behind */
    const char *fault; /* fault backend: "seed=7,eio=0.01,enospc=0,short=0.1,delay_us=50,reorder=1" */
    bool no_lock; /* also work on a file system without locks, which is -ENOLCK otherwise. The caller must
                     make sure that nobody else works in the place */
};

/* What mx_device_open has found out. */
struct mx_device_facts {
    uint32_t size; /* set by the caller */
    char backend[24];
    char place[512]; /* the file or block device in use; "anonymous memory" for dram and swap */
    char note[512];  /* options that do not work here, and what happens instead (fallbacks); "" = none */
    bool mapped;     /* mx_buffer_map works */
    bool bypasses_page_cache;    /* as checked on the opened file, not as asked for */
    bool durable;                /* Buffers outlive the process, and commits are possible */
    uint32_t offset_align_bytes; /* offsets and lengths of transfers are multiples of this (1 on mapped
                                    backends) */
    uint32_t memory_align_bytes; /* addresses of transfers are multiples of this */
    uint64_t capacity_bytes;     /* space left for Buffers now */
};

/* Opens a place with a backend. A place is a regular file, a block device or a directory. In a directory the
 * store is a file that this function makes. Symbolic links to files are refused; those to directories and
 * block devices are followed. The file of a new store and its name are on stable storage when this returns.
 * Errors:
 *  - -EINVAL: an option is out of range, or options contradict each other
 *  - -ENOENT: nothing is there, or with `resume` no store
 *  - -EACCES, -EROFS, -ENOSPC
 *  - -EBUSY: mounted, held by the system, or locked by another memext
 *  - -EEXIST: data of somebody else, or a run that is not done or was kept; `force` overwrites them
 *  - -EPERM: the store of another user; `force` overwrites it
 *  - -ELOOP: a symbolic link to a file
 *  - -EMLINK: a file with several names
 *  - -EIO: the store is damaged
 *  - -ENOTBLK: the path is no storage
 *  - -ENOTSUP: the backend cannot work here, or the store has another format
 *  - -ENOLCK: the file system has no locks, see no_lock
 *  - -ENOMEM */
int mx_device_open(const struct mx_device_options *options, mx_why *why, mx_device **out);
/* Waits for transfers under way, then closes the device. Close its Buffers before. The file of a store in a
 * directory is removed if its run is done, or if it has no note; `keep` leaves it there. NULL allowed. */
void mx_device_close(mx_device *device);
/* Fills *out with the facts of an open device. Any thread may call. */
void mx_device_facts(const mx_device *device, struct mx_device_facts *out);

/* What was measured since the device was opened. Bytes are those that the backend reported as moved. On
 * mapped backends bytes that were copied count as well. */
struct mx_counters {
    uint32_t size; /* set by the caller */
    uint64_t read_bytes, write_bytes;
    uint64_t read_requests, write_requests; /* after splitting and coalescing */
    uint64_t retries;                       /* EAGAIN, EINTR */
    uint64_t short_transfers;               /* the rest was moved by a further request */
    uint64_t read_ns, write_ns;             /* time with at least one read (or write) under way */
    uint32_t peak_in_flight;
};
/* Fills *out with the counters as they are now. Any thread may call. */
void mx_device_counters(const mx_device *device, struct mx_counters *out);

/* Returns the first error of a write or flush, with a sentence in *why; 0 = none so far. After such an error
 * nobody knows what is on stable storage. mx_device_flush, mx_device_commit and mx_device_finish then return
 * this error, and the last commit before it stays the newest state. Any thread may call. */
int mx_device_error(const mx_device *device, mx_why *why);
/* Puts every finished write on stable storage before it returns 0. On dram and swap it does nothing and
 * returns 0. Otherwise it returns the first error of a write or flush (mx_device_error). */
int mx_device_flush(mx_device *device);

/* The largest note of a commit. */
#define MX_NOTE_BYTES 14336
/* Commits: flushes the device, then stores `note` (1 to MX_NOTE_BYTES bytes) with a generation number and a
 * checksum. Two copies of them go to the older of two slots. After a crash at any moment mx_device_note
 * returns the newest intact note. -ENOTSUP (facts.durable is false), -EINVAL (the note is empty or too long),
 * -EROFS (read_only), or the first error of a write or flush. */
int mx_device_commit(mx_device *device, const void *note, size_t note_bytes);
/* Marks the run of the newest note as done, so that no resume needs the store any more. A named file or block
 * device may then be overwritten without `force`, and mx_device_close removes the file of a directory store.
 * Before the mark, a store with a note stays, and overwriting it needs `force`. The same holds after the mark
 * if the device was opened with `keep`. A store with a note that was left behind in a directory always needs
 * `force`. When the function returns, the mark is on stable storage, unless mx_device_close will remove the
 * file. -ENOTSUP (facts.durable is false), -EROFS (read_only), or the first error of a write or flush. */
int mx_device_finish(mx_device *device);
/* Copies the newest note to `note` and returns its length in bytes; 0 = none was committed. -ENOSPC: the note
 * is longer than capacity_bytes. */
int64_t mx_device_note(const mx_device *device, void *note, size_t capacity_bytes);

/* What mx_store_look finds in a store without opening a device: its content, and whether it is in use. */
#define MX_STORE_EXTENTS 62
struct mx_store_extent {
    char name[16]; /* of the Buffer; ends with a 0 */
    uint64_t offset_bytes, bytes;
};
struct mx_store_facts {
    uint32_t size;    /* set by the caller */
    char place[4096]; /* the file or device */
    bool block_device;
    bool in_use;                  /* a memext works on it now: the rest may change at any moment */
    uint64_t file_bytes;          /* size of the file or device */
    uint64_t generation;          /* counts the commits */
    uint32_t finished;            /* the run of the note is 0 = under way, 1 = done, 2 = done and kept */
    uint32_t note_bytes;          /* 0 = nothing was committed */
    char note[MX_NOTE_BYTES + 1]; /* ends with a 0 */
    uint32_t n_extents; /* not more than `size` has room for: 32 in programs that were built for the first
                           release */
    struct mx_store_extent extents[MX_STORE_EXTENTS];
};
/* Looks at the store in `path`, a directory, file or block device, and fills *out. Reads only, and locks
 * nobody out. -ENOENT (nothing is there, or no store), -EACCES, -ENOTBLK (no storage), -ELOOP (a symbolic
 * link to a file), -ENOTSUP (a store of another format), -EIO (damaged, or shorter than its Buffers). */
int mx_store_look(const char *path, mx_why *why, struct mx_store_facts *out);
/* Looks at a store as mx_store_look does, and returns one JSON object in *out: what `memext info PATH --json`
 * prints under `store`. The caller frees *out with free(). An object of a store with a note has, among
 * others, state, problem, plan, step and `arrays`.
 * `arrays` has an entry for each field whose cells are in the file: name, dtype, buffer, offset_bytes,
 * row_pitch_bytes, plane_pitch_bytes, planes, frame_low, frame_high. `buffer` names the Buffer of the field.
 * offset_bytes is where the first cell lies in the file, frame included. Rows and planes include the frame,
 * which is problem.h cells wide in x and y. planes = frame_low + nz + frame_high. frame_low and frame_high
 * are problem.h. In the store of a rank they are 0 for a field of the state at an end where another rank's
 * planes follow.
 * The arrays hold step `step` until a run resumes from the store, so look at the store's generation again
 * after a read. Errors as of mx_store_look; -ENOMEM. */
int mx_store_report(const char *path, mx_why *why, char **out);

/* The hashes that the option --integrity keeps, for programs that read a store's file themselves. */
typedef struct mx_hashes mx_hashes;
/* Reads the hashes of a Buffer as the last commit saved them. `buffer`: a name from `arrays` of
 * mx_store_report. Reads only. Errors as of mx_store_look; -ENODATA (the store keeps no hashes of this
 * Buffer), -EBADMSG (the hashes themselves are damaged), -ENOMEM. */
int mx_hashes_open(const char *path, const char *buffer, mx_why *why, mx_hashes **out);
/* Frees the hashes. NULL allowed. */
void mx_hashes_free(mx_hashes *hashes);
/* Returns the bytes of a unit: each unit of the Buffer has one hash. The last unit may be shorter. */
uint64_t mx_hashes_unit_bytes(const mx_hashes *hashes);
/* Returns where the last unit of the Buffer ends, in bytes from its beginning. */
uint64_t mx_hashes_bytes(const mx_hashes *hashes);
/* Compares data, read from byte offset_bytes of the Buffer, with the hashes. offset_bytes and bytes are
 * multiples of a unit; only the Buffer's last unit may be shorter. 0 = equal. A unit without a known hash
 * passes. -EBADMSG: a unit differs, and *damage is the offset of the first such unit in the Buffer. -EINVAL:
 * not whole units, or beyond the Buffer. Any thread may call. */
int mx_hashes_check(const mx_hashes *hashes, uint64_t offset_bytes, uint64_t bytes, const void *data,
                    uint64_t *damage);

/* Gives up a store: removes its file from a directory, or allows a named file or block device to be
 * overwritten. generation and run name the state that the caller means. Give the values of mx_store_report;
 * its `run` has 16 hexadecimal digits, which are passed as a number (0 = the store has none). generation 0 =
 * give up whatever is there. no_lock: as in mx_device_options. -ESTALE with a sentence: a run has continued
 * from the store since, or another store is there. Other errors as of mx_device_open. */
int mx_store_discard(const char *path, uint64_t generation, uint64_t run, bool no_lock, mx_why *why);

/* ------------------------------------------------------------------ Buffer */

typedef struct mx_buffer mx_buffer;
typedef struct mx_ticket mx_ticket; /* one asynchronous transfer; mx_wait frees it */

/* Makes a Buffer of `bytes` bytes (at most 2^60) on the device; its content is undefined. `name` has 1 to 15
 * bytes and is unique on the device. A durable store records the Buffer with the next mx_device_flush or
 * mx_device_commit, at the latest with mx_device_close. -EINVAL (name, bytes), -EEXIST (the device has a
 * Buffer of this name), -ENOSPC (no space, or MX_STORE_EXTENTS Buffers exist), -EROFS (read_only), -ENOMEM.
 */
int mx_buffer_create(mx_device *device, const char *name, uint64_t bytes, mx_why *why, mx_buffer **out);
/* Opens a Buffer of a store that was opened with `resume`. -ENOENT (there is no Buffer of this name), -EBUSY
 * (it is open already), -ENOMEM. */
int mx_buffer_open(mx_device *device, const char *name, mx_why *why, mx_buffer **out);
/* Closes a Buffer that no transfer uses any more. On dram and swap its content is lost. NULL allowed. */
void mx_buffer_close(mx_buffer *buffer);
/* Returns the size of the Buffer in bytes, as it was created. */
uint64_t mx_buffer_bytes(const mx_buffer *buffer);
/* Returns where the Buffer begins in its file or block device, in bytes. */
uint64_t mx_buffer_offset(const mx_buffer *buffer);

/* One contiguous piece of a transfer. offset_bytes and bytes are multiples of offset_align_bytes, the address
 * dram is one of memory_align_bytes (mx_device_facts). */
struct mx_span {
    uint64_t offset_bytes; /* in the Buffer */
    uint64_t bytes;
    void *dram;
};

/* Starts a read of all n spans and returns at once with a ticket in *out; mx_wait waits for the transfer and
 * frees the ticket. `spans` is copied. Spans that adjoin in the Buffer and in DRAM are joined, long ones are
 * split. Transfers run in no particular order. -EINVAL (alignment, or outside the Buffer), -ENOMEM. Any
 * thread may call. */
int mx_buffer_read(mx_buffer *buffer, const struct mx_span *spans, size_t n, mx_ticket **out);
/* Starts a write, as mx_buffer_read does. The DRAM must not change before mx_wait has returned. -EROFS
 * (read_only). */
int mx_buffer_write(mx_buffer *buffer, const struct mx_span *spans, size_t n, mx_ticket **out);
/* Waits for a transfer, frees its ticket and returns 0 or the first error of the transfer: -EIO, -ENOSPC,
 * -EBADMSG (see mx_buffer_integrity), ... NULL: returns 0. */
int mx_wait(mx_ticket *ticket);
/* Returns 1 if the transfer is done, so that mx_wait will not block, else 0. */
int mx_test(const mx_ticket *ticket);

/* Turns on the checking of a Buffer. From now on every write records a 32-bit checksum of each unit of
 * unit_bytes, and mx_wait compares every read with it. If they differ, mx_wait returns -EBADMSG and
 * mx_buffer_damage says where. The first read of a unit without a known checksum records it. Accesses through
 * mx_buffer_map are not checked. From now on transfers consist of whole units (the last one may be shorter),
 * and others are -EINVAL. A unit must not be written while another transfer reads or writes it; different
 * units may be. Before mx_wait has returned, the DRAM of a write must not change, and that of a read must not
 * be used.
 *
 * The checksums take 4 bytes a unit, in a Block that is counted against `budget` (NULL = not counted). On a
 * durable device they also take that space in a Buffer "NAME.sum". It is made now unless the store has it, so
 * NAME has at most 11 bytes. Call this before the first transfer of the Buffer; mx_buffer_close ends the
 * checking. -EINVAL (unit_bytes is neither a multiple nor a part of offset_align_bytes, or larger than the
 * Buffer; the name is too long), -EEXIST (the Buffer is checked already), -ENOMEM, -ENOSPC. */
int mx_buffer_integrity(mx_buffer *buffer, uint64_t unit_bytes, mx_budget *budget, mx_why *why);
/* Returns the offset in the Buffer of the first unit whose read was -EBADMSG; -1 = none was. */
int64_t mx_buffer_damage(const mx_buffer *buffer);
/* Stores the checksums as they are now. The next mx_device_commit makes them durable together with the data.
 * Each Buffer has its own place for them, so saving those of one Buffer leaves those of others as they are.
 * No transfer may write the Buffer meanwhile. -ENOTSUP (facts.durable is false), -EINVAL (without
 * mx_buffer_integrity), errors of writing. */
int mx_buffer_integrity_save(mx_buffer *buffer);
/* Returns the bytes that one save writes; mx_device_counters counts them like those of any other transfer. 0
 * without mx_buffer_integrity, and if facts.durable is false. */
uint64_t mx_buffer_integrity_bytes(const mx_buffer *buffer);
/* Loads the saved checksums of a Buffer that was opened with `resume`. Call it only if the Buffer still has
 * the content that it had at the save. That holds for the Buffer of the last commit, if
 * mx_buffer_integrity_save preceded that commit. -ENODATA (nothing was saved, or with units of another size;
 * no checksum is known then), -EBADMSG (what was saved is damaged), -ENOTSUP and -EINVAL as of the save,
 * errors of reading. */
int mx_buffer_integrity_load(mx_buffer *buffer);

/* Mapped backends: returns the address of the Buffer's first byte in *out, valid until mx_buffer_close.
 * -ENOTSUP on transfer backends (aio, uring). */
int mx_buffer_map(mx_buffer *buffer, mx_why *why, void **out);
/* Mapped backends: advises Linux about a range of the Buffer. Advice is a hint, so most of its errors may be
 * ignored. But if MX_ADVICE_DROP returns -EIO, -ENOSPC or -EDQUOT, data was not written: mx_device_flush and
 * mx_device_commit return that error from then on. -ENOTSUP (a transfer backend), -EINVAL (outside the
 * Buffer). */
int mx_buffer_advise(mx_buffer *buffer, uint64_t offset_bytes, uint64_t bytes, enum mx_advice advice);

/* ------------------------------------------------------------------ Block */

typedef struct mx_block mx_block;

/* How to make a Block. A zeroed struct is allowed. */
struct mx_block_options {
    uint32_t size;
    mx_budget *budget; /* the budget that the Block is counted against; NULL = none */
    bool lock;    /* keep the Block in DRAM (mlock). -ENOMEM or -EPERM if RLIMIT_MEMLOCK does not allow it */
    bool no_huge; /* do not ask for huge pages */
    uint64_t node_split_bytes; /* on several NUMA nodes: binds equal shares of the Block, each a multiple of
                                  this, to the nodes in turn (the z ranges of Fig. 5, Midorikawa & Tan); 0 =
                                  each page goes to the node of the thread that touches it first */
    mx_device *device; /* registers the memory with this device's backend (fixed buffers of uring); NULL =
                          does not */
};

/* Makes a Block of `bytes` bytes (1 or more): page-aligned DRAM that holds zeroes. Several threads touch its
 * pages, so that all of it is in DRAM when this returns. options NULL = all defaults. -EINVAL (bytes),
 * -ENOMEM (the budget or the machine has no room for it; *why has the figures), -EPERM (the option lock). */
int mx_block_create(const struct mx_block_options *options, uint64_t bytes, mx_why *why, mx_block **out);
/* Frees a Block that no transfer uses, before its device is closed. NULL allowed. */
void mx_block_free(mx_block *block);
/* Returns the address of the Block's first byte. */
void *mx_block_data(const mx_block *block);
/* Returns the size of the Block in bytes, as it was asked for. */
uint64_t mx_block_bytes(const mx_block *block);

/* ------------------------------------------------------------------ runs
 * A run computes time steps of a stencil on a grid that may be larger than DRAM, as the command `memext run`
 * does. It makes a plan, keeps the grid in Buffers on a device, commits states that can be resumed, and hands
 * over the result.
 *
 *     mx_run_open -> [mx_run_prepare] -> mx_run_start -> mx_run_wait or mx_run_poll ... -> mx_run_close
 *
 * The grid has nz planes of ny rows of nx cells (x is fastest in memory). Around them is a frame of h cells
 * on every side; h is the radius of the stencil. Cells of the frame keep their initial values, unless the
 * option side gives that end of an axis another boundary condition. A kernel with #define MX_RADII h, h, 0
 * computes grids of two dimensions, ny rows of nx cells: nz is 1, and z has no frame. Sources and sinks of
 * such a grid get single rows instead of planes. */

typedef struct mx_run mx_run;

/* The extents of a grid as sources and sinks see it. */
struct mx_grid {
    uint32_t size; /* sizeof(struct mx_grid), set by the library */
    int32_t frame; /* width of the frame in cells: h or 0. For a source it is 0 if the option frame is edge,
                      mirror, periodic or a number: the library makes the frame then. For a sink it is 0 with
                      output-frame=none. */
    int64_t nx, ny, nz; /* in cells, with the frame if there is one */
    char dtype[8]; /* type of a cell: "f64" or "f32"; of fields of kernels also "u8", "i8" and so on to "u64",
                      "i64" */
    char field[32]; /* with a kernel the name of the field, since open is called for each field; "" without */
    bool flat;      /* the kernel computes grids of two dimensions: nz is 1, and z has no frame */
};

/* A box of cells of a grid, and memory for it. Coordinates count from the first cell of struct mx_grid, which
 * is one of the frame if the grid has a frame. Cell (x, y, z) of `element` bytes lies at
 *
 *     data + (z - z0) * plane_pitch_bytes + (y - y0) * row_pitch_bytes + (x - x0) * element
 */
struct mx_grid_box {
    uint32_t size;                  /* sizeof(struct mx_grid_box), set by the library */
    int64_t x0, x1, y0, y1, z0, z1; /* x0 <= x < x1, and so on */
    int64_t row_pitch_bytes, plane_pitch_bytes;
    void *data;
    const char *field; /* with a kernel the name of the field; "" without */
};

/* Where an initial grid comes from. A run asks for whole planes, in order of z and each once. It asks for
 * some planes once more: for all of them if it verifies, and for planes that the frame copies, if the library
 * makes the frame or a side in z is not fixed. With a kernel a source gives all fields that no option gives:
 * those that are only read, and those of the state at step 0. (In a leapfrog kernel the step before,
 * NAME.old, then is the same as NAME.) open is called for each of these fields, and planes come field after
 * field. All functions are called one at a time, on a thread of the library. They return 0, or a negative
 * errno that ends the run, with a sentence in *why (or none). */
struct mx_source {
    uint32_t size;    /* sizeof(struct mx_source) */
    void *context;    /* first argument of the functions */
    const char *name; /* its name in the store's note and in reports: 1 to 63 printable ASCII characters. A
                         resumed run must give the same name */
    /* *grid holds what the options ask for (extents 0 = not asked for). A source that knows its own extents
     * writes them there; the run is refused if they contradict the options. NULL = the source can fill any
     * grid. */
    int (*open)(void *context, struct mx_grid *grid, mx_why *why);
    int (*region)(void *context, const struct mx_grid_box *box, mx_why *why); /* fills box->data */
    void (*close)(void *context); /* called once, if open returned 0; NULL = nothing to do */
    /* Instead of region, which is NULL then: fills a single row, row->y0 of plane row->z0. Cell x lies at
     * row->data + x * element, x from 0 to row->x1 - 1. */
    int (*row)(void *context, const struct mx_grid_box *row, mx_why *why);
    /* Writes a hash of the values of this field ("" without a kernel) to *out. Other values must give another
     * hash. The store keeps it, and a run is resumed only if the hash is the same. NULL = the source's name
     * alone identifies the values. */
    int (*identity)(void *context, const char *field, uint64_t *out, mx_why *why);
};

/* Where the result goes. A sink gets whole planes, each once and in order of z, with the frame unless struct
 * mx_grid says 0. With a kernel it gets all fields of the state, plane by plane. The fields of the other
 * array follow (NAME.old of a leapfrog kernel, the partner of a staggered one). Its functions are called as
 * those of a source are. */
struct mx_sink {
    uint32_t size; /* sizeof(struct mx_sink) */
    void *context;
    /* Called before anything is computed, so that a sink can refuse at once. NULL = nothing to do. */
    int (*open)(void *context, const struct mx_grid *grid, mx_why *why);
    int (*region)(void *context, const struct mx_grid_box *box,
                  mx_why *why); /* takes the planes from box->data, and changes nothing there */
    /* Called once, if open returned 0. whole: the sink has received the whole result. Otherwise there is no
     * result, because the run failed, was stopped, or verification found a difference: the sink must discard
     * what it has received. NULL = nothing to do. */
    int (*close)(void *context, bool whole, mx_why *why);
    int (*row)(void *context, const struct mx_grid_box *row,
               mx_why *why); /* instead of region, as in a source */
};

struct mx_run_options {
    uint32_t size; /* sizeof(struct mx_run_options) */
    /* The options: "NAME=VALUE", or "NAME" for an option without a value, with the names and values of the
     * long options in memext(1). NULL ends the list. Several numbers are separated by blanks: {"size=510 510
     * 1022", "steps=64", "device=/mnt/nvme", "dram=512MiB", "verify", NULL}. "snapshot=100:DIR:4" writes
     * every fourth cell of the state to DIR every 100 steps, while the run goes on. "same", together with
     * "resume", says that the options describe the whole problem: an option that is not given has its
     * default, not the store's value, and a store of another problem is refused (-EEXIST). The options json,
     * quiet, explain and help are not accepted. The texts are copied. */
    const char *const *options;
    const struct mx_source *source; /* instead of the options init and input; NULL = none. Copied */
    const struct mx_sink *sink;     /* instead of the option output; NULL = none. Copied */
    /* Called with a remark for the user while the run prepares, on a thread of the library; NULL = no
     * remarks. */
    void (*remark)(void *context, const char *sentence);
    void *context; /* of remark */
};

/* Makes a run and reads its options. Opens no file and starts no thread. Close the run with mx_run_close.
 * -EINVAL (an option, which *why names), -ENOMEM. */
int mx_run_open(const struct mx_run_options *options, mx_why *why, mx_run **out);

/* Makes the plan and opens source, sink, device and Buffers, so that errors are found before anything is
 * computed. It may be left out: mx_run_start prepares then. Blocks until a thread of the run has done it. Do
 * not call it again after an error. With the option `dry-run` nothing is opened, and the run cannot be
 * started. -EINVAL (options that contradict each other, or what the store holds with `resume`), -ENOMEM (no
 * plan fits into the DRAM; *why names the smallest size that would do), -ENOSPC, -ENOTSUP, -EINTR
 * (mx_run_stop), -EALREADY (it was prepared or started), the errors of mx_device_open, and those of source
 * and sink. */
int mx_run_prepare(mx_run *run, mx_why *why);

/* Compares the problem of the options with that of the store in the place; the store's step does not matter.
 * Needs the options `resume` and `same`. Opens nothing for writing and changes nothing. Blocks until a thread
 * of the run has done it. The run cannot be started afterwards. 0 = the same problem. -EEXIST = another one,
 * with a sentence that names the difference and the way out. -ENOENT (no store), -EINVAL (the store holds no
 * state), errors of files that are compared. */
int mx_run_compare(mx_run *run, mx_why *why);

/* Changes that a program makes to the state before a run with the option `resume` continues from it. The run
 * reads all planes of the state in order of z and calls `planes` for each. It writes the changed planes to
 * another Buffer and commits them before the next step, with the new values of the option edit-param. If the
 * process is killed before the commit, the store has the old state, otherwise the new one. */
struct mx_edit {
    uint32_t size; /* sizeof(struct mx_edit) */
    void *context; /* first argument of the function */
    /* Changes one plane: box[0] to box[n - 1] are this plane of each of the n fields of the state, and the
     * function changes box[i].data. Coordinates count the frame if `frame` is true; otherwise they begin with
     * the interior. A rank gets its own planes only. Calls come one at a time, on a thread of the library.
     * Returns 0, or a negative errno that ends the run, with a sentence in *why (or none); the store is
     * unchanged then. */
    int (*planes)(void *context, const struct mx_grid_box *box, int32_t n, mx_why *why);
    /* true: the planes include their frame, which may be changed at sides that are fixed. false: they are the
     * interior's. */
    bool frame;
    /* Names of read-only fields that get other values from now on; NULL ends the list. The function region
     * (or row) of `source` fills their planes, frame included; no other function of it is called. A field
     * whose file is read in place cannot be changed (-ENOTSUP): begin the run with the option field-copy.
     * fields NULL = none. If there are fields, `planes` may be NULL. */
    const char *const *fields;
    const struct mx_source *source;
};

/* Asks the run to make these changes. Call it before mx_run_prepare and mx_run_start. *edit, the names and
 * *source are copied. A run without steps left makes the changes, commits them and ends. -EINVAL (`resume` is
 * not set, the edit has neither planes nor fields, or `size` is wrong), -EALREADY (the run was prepared or
 * started), -ENOMEM. */
int mx_run_edit(mx_run *run, const struct mx_edit *edit, mx_why *why);

/* Starts the run on threads of its own, which block all signals, and returns at once. -EALREADY (the run was
 * started, or mx_run_prepare failed), -EINVAL (the option dry-run), -EAGAIN (no thread can be started). */
int mx_run_start(mx_run *run, mx_why *why);

/* How far a run is. */
struct mx_run_progress {
    uint32_t size;     /* sizeof(struct mx_run_progress), set by the caller; no more is written */
    uint32_t n_phases; /* phases begun so far; a new number means a new phase */
    char
        phase[12]; /* "prepare" "initial" "edit" "frames" "updates" "checksum" "verify" "output"; "" before */
    char unit[12]; /* unit of done and total: "B" (bytes) or "updates" (of cells); "" if they are 0 */
    int64_t done, total;    /* of this phase; done may exceed total if cells are computed twice */
    double seconds;         /* since the phase began; of a run that has ended, what its last phase took */
    double rate;            /* done per second */
    int64_t committed_step; /* time step that a resumed run would continue from; -1 = none is committed */
    /* The newest check, with the options check or until. check_step: the step after which the state was
     * checked; -1 = no check yet. max_change: the greatest change of a cell in that step. rms_change: the
     * root mean square of the changes. Both are NaN for a kernel of several stages. check: the norms that the
     * criteria use, as text: "step 400: max-change 1.3e-05". */
    int64_t check_step;
    double max_change, rms_change;
    char check[104];
};

/* Says how far the run is, and returns at once. progress may be NULL. Any thread may call. 0 = under way (or
 * not started yet), 1 = it has ended well. Otherwise the error that ended it:
 *  - -EINTR: mx_run_stop
 *  - -EUCLEAN: the result was verified and differs from the plain computation, a fault of the machine
 *  - -EDOM: cells of the state are NaN or infinite; the last commit is finite. The option nonfinite=ignore
 * allows such cells
 *  - errors of devices, sources and sinks, and those of mx_run_prepare */
int mx_run_poll(mx_run *run, mx_why *why, struct mx_run_progress *progress);
/* Waits until the run has ended, at most `seconds` (negative = without a limit), and returns what mx_run_poll
 * returns then. */
int mx_run_wait(mx_run *run, double seconds, mx_why *why, struct mx_run_progress *progress);

/* Asks the run to end, and returns at once. The run finishes what is under way. If the algorithm allows it,
 * the run commits the newest complete sweep, and a run with the option `resume` can continue from there. Any
 * thread and any signal handler may call. NULL allowed. */
void mx_run_stop(mx_run *run);

/* Returns the report as one JSON object in *out, the text that `memext run --json` writes: problem, machine,
 * plan, predictions and, once the run has ended, measurements. The caller frees *out with free(). -EBUSY (the
 * run is under way), -ENOMEM. */
int mx_run_report(mx_run *run, mx_why *why, char **out);

/* Returns a text for people in *out, as `memext run --explain` prints it: how the plan of a prepared run was
 * chosen, what bounds it, what was tried, and why this plan won. The caller frees *out with free(). -EINVAL
 * (the run is not prepared, or under way), -ENOMEM. */
int mx_run_explain(mx_run *run, mx_why *why, char **out);

/* Returns a description of the machine as one JSON object in *out, the text that `memext info --json` writes:
 * machine, dram_limit_bytes, reserve_bytes, backends and whether they work here, algorithms, stencils. With a
 * path (a directory, file or block device; NULL = none) it also has `device`. The caller frees *out with
 * free(). -ENOENT, -EACCES (the path), -ENOMEM. */
int mx_machine_report(const char *path, mx_why *why, char **out);

/* Stops the run if it is under way, waits for its end, and closes and frees everything. NULL allowed. */
void mx_run_close(mx_run *run);

#ifdef __cplusplus
}
#endif
#endif
